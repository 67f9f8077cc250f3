"""The mapping: expressions, readings of texts, faults together, and what it must refuse."""

from __future__ import annotations

import csv
import hashlib
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, UsageError
from certkit.imports import ImportFaultsError, ImportOptions, preview, suggest
from certkit.imports.mapping import parse_mapping
from certkit.record.expressions import Expression, ExpressionError
from tests.support.importing import counts, imported

if TYPE_CHECKING:
    from pathlib import Path

ROW: dict[str, Any] = {
    "score": 0.75,
    "text": "0,75",
    "empty": None,
    "tags": ["x", "Y"],
    "deep": {"list": [{"v": 3}], "Odd Name": "q"},
    "flag": True,
}


def number(text: str) -> float | None:
    return float(text.replace(",", ".")) if text else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("score >= 0.5", True),
        ("text > 0.7 and not flag == false", True),
        ("0.5 < score < 0.7", False),
        ("empty == null", True),
        ("absent.path > 1", False),
        ("empty != 'x'", True),
        ("'y' in tags", True),
        ("'z' not in tags", True),
        ("score in [0.1, 0.75]", True),
        ("deep.list[0].v == 3", True),
        ("deep.`Odd Name` == 'Q'", True),
        ("max(score, 2) == 2", True),
        ("min(text, 2)", 0.75),
        ("len(tags) == 2 or nonsense", True),
        ("-1 < score", True),
        ("tags.`²` == null", True),
    ],
)
def test_an_expression_over_a_row(text: str, value: object) -> None:
    assert Expression(text, number=number, fold=True)(ROW) == value


@pytest.mark.parametrize("text", ["'5' in text", "'5' not in text", "null in text"])
def test_in_takes_a_list_and_searches_no_text(text: str) -> None:
    with pytest.raises(ExpressionError, match="in the text '0,75'") as caught:
        Expression(text, number=number, fold=True)(ROW)
    assert caught.value.hint == "`in` takes a list; a text is compared with =="
    assert Expression("'' in empty", number=number, fold=True)(ROW | {"empty": ""}) is False


@pytest.mark.parametrize(
    "text",
    [
        *("open('x')", "score.real()", "[x for x in tags]", "lambda: 1", "score + 1", "2 ** 9", "f'{score}'"),
        *(
            "x := 1",
            "score is 1",
            "",
            "1 +",
            "a if b else c",
            "(" * 500,
            "tags[score]",
            "len()",
            "__import__('os')",
        ),
        "a" * 3000,
    ],
)
def test_an_expression_that_calls_loops_or_computes_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text, number=number, fold=False)


def test_otherwise_stands_last(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("task_id\nt\n")
    file = tmp_path / "map.toml"
    file.write_text("[when.outcome]\nsuccess = 'otherwise'\nfailure = \"task_id == 't'\"\n")
    with pytest.raises(CertkitError, match=r"when\.outcome: 'otherwise' takes every row") as caught:
        imported(None, tmp_path / "runs.csv", tmp_path / "out", agent="a", mapping=file)
    assert caught.value.code == "import.mapping"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[values.condition]\nnetwork_loss = ['loss']\n",
            "stochastic, combined, cascade or your own, x_network_loss",
        ),
        (
            "[columns]\noutcome = 'ok'\n[when.outcome]\nsuccess = 'ok'\n",
            "'outcome' stands under [columns] and [when.outcome]; keep one",
        ),
    ],
)
def test_a_refused_mapping_says_what_to_write(text: str, told: str) -> None:
    with pytest.raises(CertkitError) as caught:
        parse_mapping(text, "map.toml")
    assert str(caught.value).endswith(told)


def test_a_refused_expression_names_its_place_in_the_mapping(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("task_id\nt\n")
    file = tmp_path / "map.toml"
    file.write_text("[when.outcome]\nsuccess = \"open('x')\"\n")
    with pytest.raises(CertkitError) as caught:
        imported(None, tmp_path / "runs.csv", tmp_path / "out", agent="a", mapping=file)
    assert caught.value.code == "import.mapping"
    assert "when.outcome" in str(caught.value)
    assert "only min, max and len" in str(caught.value)


MESSY = (
    "Aufgabe;Bereich;Erfolg;Punkte;Beginn;Erholt\r\n"
    "t1;bank;yes;0,91;31.01.2026 09:05;Y\r\n"
    "t2;bank;No;0,2;31.01.2026 09:06;n/a\r\n"
    "t2;bank;No;0,2;31.01.2026 09:06;n/a\r\n"
    "t3;Büro;Y;1;31.03.2026 09:07;\r\n\r\n"
)
MAPPING = """
[columns]
task_id = "Aufgabe"
domain = "Bereich"
outcome = "Erfolg"
quality_factor = "Punkte"
started_at = "Beginn"
recovered = "Erholt"
[values.outcome]
success = ["yes", "Y"]
failure = ["no"]
[values.recovered]
true = ["y"]
[when.condition]
tool_failure = "Aufgabe == 'T1'"
nominal = "otherwise"
[read]
case_insensitive = true
blank = ["", "n/a"]
decimal_comma = true
date = "%d.%m.%Y %H:%M"
timezone = "Europe/Berlin"
duplicates = "drop-identical"
"""


def test_a_messy_spreadsheet(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_bytes(b"\xef\xbb\xbf" + MESSY.encode())
    (tmp_path / "map.toml").write_text(MAPPING)
    account, records = imported(
        None, tmp_path / "runs.csv", tmp_path / "out", agent="a", mapping=tmp_path / "map.toml"
    )
    assert records[0] == {
        "task_id": "t1",
        "domain": "bank",
        "outcome": "success",
        "quality_factor": 0.91,
        "started_at": "2026-01-31T09:05:00+01:00",
        "recovered": True,
        "condition": "tool_failure",
        "run_id": "line-2",
    }
    assert [record["run_id"] for record in records] == ["line-2", "line-3", "line-5"]
    assert records[2]["started_at"] == "2026-03-31T09:07:00+02:00"
    assert counts(account, "refused") == {"rows equal to an earlier row": 1}


def test_cp1252_needs_the_users_word(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_bytes(MESSY.encode("cp1252"))
    (tmp_path / "map.toml").write_text(MAPPING)
    options = {"agent": "a", "mapping": tmp_path / "map.toml"}
    with pytest.raises(CertkitError) as caught:
        imported(None, tmp_path / "runs.csv", tmp_path / "out", **options)
    assert (caught.value.code, "--encoding" in str(caught.value.hint)) == ("json.encoding", True)
    _, records = imported(None, tmp_path / "runs.csv", tmp_path / "out", encoding="cp1252", **options)
    assert records[2]["domain"] == "Büro"


def test_faults_of_one_kind_are_one_line_and_say_what_to_do(tmp_path: Path) -> None:
    rows = [f"t{i},d,nominal,{'No' if i % 2 else 'success'}" for i in range(400)]
    (tmp_path / "runs.csv").write_text("task_id,domain,condition,outcome\n" + "\n".join(rows) + "\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, tmp_path / "runs.csv", tmp_path / "out", agent="a")
    assert caught.value.total == 200
    assert str(caught.value).count("\n") == 1
    assert "200 rows (first runs.csv:3, 5, 7) /outcome" in str(caught.value)
    assert "found 'No'" in str(caught.value)
    assert "add it to `[values.outcome]`" in str(caught.value)


def test_columns_that_are_missing_are_one_fault_with_the_nearest_names(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("tasks_id;domains;Outcomes\nt1;d;success\nt2;d;success\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, tmp_path / "runs.csv", tmp_path / "out")
    message = str(caught.value)
    assert message.count("\n") == 1
    assert "expected a value for domain, task_id, condition, outcome" in message
    assert "found the columns tasks_id, domains, Outcomes" in message
    assert '`task_id = "tasks_id"` under `[columns]`' in message
    assert '`outcome = "Outcomes"` under `[columns]`' in message
    assert "--condition nominal" in message
    assert "--agent NAME" in message


def test_a_column_of_agents_is_never_pooled(tmp_path: Path) -> None:
    (tmp_path / "runs.tsv").write_text(
        "model\ttask_id\tdomain\tcondition\toutcome\nm1\tt\td\tnominal\tsuccess\nm2\tt\td\tnominal\tfailure\n"
    )
    with pytest.raises(CertkitError) as caught:
        imported(None, tmp_path / "runs.tsv", tmp_path / "out")
    assert caught.value.code == "import.choice-needed"
    account, records = imported(
        None, tmp_path / "runs.tsv", tmp_path / "out", agent="m2", tasks_independent=True
    )
    assert [record["outcome"] for record in records] == ["failure"]
    assert account.agent.name == "m2"
    assert b'"tasks_independent": true' in (tmp_path / "out" / "bundle.json").read_bytes()


def test_an_option_fills_what_is_blank_and_is_refused_where_nothing_is(tmp_path: Path) -> None:
    path, out = tmp_path / "runs.csv", tmp_path / "out"
    for number, header in enumerate(("task_id,domain,condition,outcome", "Task,Area,Injected fault,Passed")):
        path.write_text(f"{header}\nt,d,tool_failure,failure\nu,,,success\n")
        for condition in ("nominal", "adversarial"):
            given = {"agent": "a", "condition": condition, "domain": "d"}
            account, records = imported(None, path, out / f"{condition}{number}", **given)
            assert [record["condition"] for record in records] == ["tool_failure", condition]
            assert [record["domain"] for record in records] == ["d", "d"]
            assert "conditions" not in [
                note.what for note in account.imported.notes if note.kind == "guessed"
            ]
        path.write_text(f"{header}\nt,d,tool_failure,failure\n")
        with pytest.raises(UsageError, match="--condition: every run states its condition, and some another"):
            imported(None, path, tmp_path / "refused", agent="a", condition="nominal")


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("condition", "x_other", "every run states its condition"),
        ("domain", "d", "every run states its domain"),
        ("success", "Punkte >= 0.5", "map.toml decides"),
        ("timezone", "UTC", "map.toml decides"),
        ("encoding", "utf-8", "map.toml decides"),
        ("agent", "a", "map.toml decides"),
    ],
)
def test_an_option_beside_a_mapping_that_decides_the_same_is_refused(
    tmp_path: Path, option: str, value: str, told: str
) -> None:
    (tmp_path / "runs.csv").write_text(MESSY)
    (tmp_path / "map.toml").write_text(MAPPING + 'encoding = "cp1252"\n[agent]\nname = "b"\n')
    with pytest.raises(CertkitError, match=f"--{option}: {told}") as caught:
        imported(
            None,
            tmp_path / "runs.csv",
            tmp_path / "out",
            mapping=tmp_path / "map.toml",
            **{option: value},
        )
    assert caught.value.code == "usage.option"


def test_a_suggested_mapping_is_accepted_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(MESSY)
    text = suggest(path, ImportOptions())
    (tmp_path / "map.toml").write_text(text)
    for line in (
        'task_id = "Aufgabe"  # 3 distinct: t2 (2), t1 (1), t3 (1)',
        'success = ["Y", "yes"]',
        "decimal_comma = true",
        'date = "%d.%m.%Y %H:%M"',
        "#   Erholt: 2 distinct: n/a (2), Y (1)",
    ):
        assert line in text
    _, records = imported(
        None, path, tmp_path / "out", mapping=tmp_path / "map.toml", agent="a", condition="nominal"
    )
    assert [record["outcome"] for record in records] == ["success", "failure", "failure", "success"]


def test_a_suggestion_reads_an_absent_fault_as_a_blank_and_the_end_of_a_run_as_no_fault(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.jsonl"
    rows: list[dict[str, Any]] = [
        {"task": "t", "fault": {"type": "tool timeout"}},
        {"task": "u", "fault": None},
    ]
    path.write_bytes(b"".join(map(canonical.line, rows)))
    assert '"" = "nominal"' in suggest(path, ImportOptions())
    path.write_bytes(b"".join(canonical.line({"task": row["task"], "error.type": "timeout"}) for row in rows))
    assert "# condition =" not in suggest(path, ImportOptions())


def test_a_suggestion_names_what_must_be_decided(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"task": "t", "fault": "none", "info": {"reward": 0.5}}\n{"task": "u", "fault": "x"}\n')
    text = suggest(path, ImportOptions())
    (tmp_path / "map.toml").write_text(text)
    assert '#   --success "info.reward >= 0.5"  (1 distinct: 0.5 (1); blank (1))' in text
    assert '"none" = "nominal"' in text
    assert '# "x" = "CONDITION"  # DECIDE (rows: 1)' in text
    options = ImportOptions(mapping=tmp_path / "map.toml", success="info.reward >= 0.5", domain="d")
    records, _, faults = preview(path, options)
    assert [record.get("outcome") for record in records] == ["success", "harness_error"]
    assert [fault.pointer for fault in faults] == ["/fault"]


CASES = (
    "Prompt Ref;Business Line;Attack used?;Handled OK?;Judge OK?;Max steps;Run date\r\n"
    "P-1;claims;none;yes;No;9;13.02.2026\r\nP-2;lending;prompt injection;n;No;9;14.02.2026\r\n"
    "P-2;lending;no tool;YES;No;9;14.02.2026\r\nP-3;lending;sabotage;;No;9;14.02.2026\r\n"
)


def test_a_column_is_proposed_by_a_word_of_its_name_where_its_values_agree(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text(CASES)
    lines = suggest(path, ImportOptions()).splitlines()
    at = lines.index("[columns]")
    proposed = [line.partition("  #")[0] for line in lines[at + 1 : lines.index("", at)]]
    assert proposed == [
        'domain = "Business Line"',
        'task_id = "Prompt Ref"',
        'condition = "Attack used?"',
        'outcome = "Handled OK?"',
        'started_at = "Run date"',
    ]
    values = lines[lines.index("[values.condition]") + 1 :][:4]
    assert values == [
        '"none" = "nominal"',
        '"prompt injection" = "adversarial"',
        '# "no tool" = "CONDITION"  # DECIDE (rows: 1)',
        '# "sabotage" = "CONDITION"  # DECIDE (rows: 1)',
    ]


def test_columns_whose_values_alone_fit_are_left_to_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("Ticket;Crew;Setting;Fine\nA1;north;baseline;yes\nA2;south;outage of the search;no\n")
    text = suggest(path, ImportOptions())
    for line in (
        '# domain = "Crew"  # 2 distinct: north (1), south (1)',
        '# task_id = "Ticket"  # 2 distinct: A1 (1), A2 (1)',
        '# condition = "Setting"  # 2 distinct: baseline (1), outage of the search (1)',
        '# outcome = "Fine"  # 2 distinct: yes (1), no (1)',
        '\nsuccess = ["yes"]\nfailure = ["no"]\n',
        '[values.condition]\n"baseline" = "nominal"\n# "outage of the search" = "CONDITION"',
    ):
        assert line in text
    with pytest.raises(ImportFaultsError, match="domain, task_id, condition, outcome"):
        imported(None, path, tmp_path / "out", agent="a")


def test_a_sheet_in_the_encoding_of_excel_is_suggested_with_it_and_imported_only_when_told(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cases.csv"
    path.write_bytes(
        "Testfall;Fachbereich;Störungsart;Bestanden\nF1;Kredit;Werkzeugausfall;J\n".encode("cp1252")
    )
    with pytest.raises(CertkitError) as caught:
        imported(None, path, tmp_path / "out", agent="a")
    command = f"certkit import {path} --agent a --encoding cp1252 -o {tmp_path / 'out'}"
    assert str(caught.value.hint).endswith(command)
    (tmp_path / "map.toml").write_text(suggest(path, ImportOptions()))
    _, [record] = imported(None, path, tmp_path / "out", agent="a", mapping=tmp_path / "map.toml")
    assert (record["domain"], record["condition"], record["outcome"]) == ("Kredit", "tool_failure", "success")


SHEET = (
    "Nr.;Aufgabe?;Punkte (0-1);Erfolg?;recovered;Störung\r\n"
    "1;t1;0,5;ja;;keine\r\n2;t2;0,25;nein;nein;tool_failure\r\n3;t2;?;ja;ja;tool_failure\r\n"
)


def test_a_table_that_lacks_columns_is_read_as_suggested(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(SHEET)
    text = suggest(path, ImportOptions())
    assert '[values.recovered]\ntrue = ["ja"]\nfalse = ["nein"]' in text
    account, _ = imported(None, path, tmp_path / "guessed", agent="a", domain="d")
    [guess] = [note for note in account.imported.notes if note.kind == "guessed"]
    assert (
        "'Erfolg?', for its name; columns were left out that may contradict it: 'Nr.', 'Punkte (0-1)'"
        in str(guess.detail)
    )
    kept = "Aufgabe?;Erfolg?;recovered;Störung"
    rows = list(csv.DictReader(SHEET.splitlines(), delimiter=";"))
    path.write_text("\n".join([kept, *(";".join(row[name] for name in kept.split(";")) for row in rows)]))
    account, records = imported(None, path, tmp_path / "out", agent="a", domain="d")
    assert "guessed" not in {note.kind for note in account.imported.notes}
    found = [(r["task_id"], r["condition"], r["outcome"], r.get("recovered")) for r in records]
    assert found == [
        ("t1", "nominal", "success", None),
        ("t2", "tool_failure", "failure", False),
        ("t2", "tool_failure", "success", True),
    ]
    assert account.imported.options["mapping"] == "as --suggest writes it"
    filled = {note.what: note.detail for note in account.imported.notes if note.kind == "filled"}
    assert filled["outcome"] == (
        """2 success, 1 failure, from 'Erfolg?', read by "success" = ["ja"], "failure" = ["nein"]"""
    )


@pytest.mark.parametrize(
    ("name", "values", "printed"),
    [
        ("score", "0.9 0.1", '--success "score >= 0.5"'),
        ("reward", "-1 0.5", '--success "reward >= THRESHOLD"'),
        ("max_score", "0.9 0.1", '--success "max_score >= THRESHOLD"'),
        *(
            (name, "0.9 0.1", "--success EXPRESSION")
            for name in ("risk_score", "exploit_success", "refusal_score")
        ),
        ("score", "0,9 0,1", "--success EXPRESSION"),  # which a mapping alone makes numbers
        ("failed", "0 1", "--success \"failed in ['0']\""),
        *((name, "0 1", "--success EXPRESSION") for name in ("no_errors", "error_free")),
        ("not_passed", "0 1", "--success \"not_passed in ['0']\""),
    ],
)
def test_a_printed_test_is_whole_only_where_the_name_says_what_is_good(
    tmp_path: Path, name: str, values: str, printed: str
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"task_id;{name}\n" + "".join(f"t;{value}\n" for value in values.split()))
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", domain="d", condition="nominal")
    assert f"outcome: {printed}" in str(caught.value)


@pytest.mark.parametrize("name", ["Punkte (0-1)", "Score Nr.", "score.in", "Punkte?"])
def test_what_is_suggested_for_a_column_of_any_name_is_accepted(tmp_path: Path, name: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"task_id;{name}\nt;0.5\n")
    [line] = [line for line in suggest(path, ImportOptions()).splitlines() if "--success" in line]
    [_, option, *_] = shlex.split(line.removeprefix("#").partition("  (")[0].replace("THRESHOLD", "0.5"))
    _, [record] = imported(
        None, path, tmp_path / "out", agent="a", domain="d", condition="nominal", success=option
    )
    assert record["outcome"] == "success"


def test_a_date_that_can_be_read_in_two_ways_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task;begin\nt;01/02/2026 09:05\n")
    text = suggest(path, ImportOptions())
    assert '\n# started_at = "begin"' in text
    assert '\n# date = "%m/%d/%Y %H:%M"  # or "%d/%m/%Y %H:%M"' in text


@pytest.mark.parametrize(
    ("begin", "form"),
    [("3/31/2026 3:05 PM", "%m/%d/%Y %I:%M %p"), ("2026-03-31 03:05:09 pm", "%Y-%m-%d %I:%M:%S %p")],
)
def test_a_clock_of_twelve_hours_is_read(tmp_path: Path, begin: str, form: str) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text(f"task,suite,passed,begin\nt,d,yes,{begin}\n")
    text = suggest(path, ImportOptions())
    assert f'date = "{form}"' in text
    file.write_text(text.replace("# timezone", "timezone"))
    _, [record] = imported(None, path, tmp_path / "out", agent="a", condition="nominal", mapping=file)
    assert record["started_at"][:16] == "2026-03-31T15:05"
    path.write_text(f"task_id,domain,condition,outcome,started_at\nt,d,nominal,success,{begin}\n")
    with pytest.raises(ImportFaultsError, match=f'date = "{form}"'):
        imported(None, path, tmp_path / "out2", agent="a")


def test_a_preview_tells_the_faults_of_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    rows = [f"t{i},d,nominal,{'success' if i < 20 else 'good'},{1 - i}" for i in range(40)]
    path.write_text("task_id,domain,condition,outcome,trial\n" + "\n".join(rows) + "\n")
    records, _, faults = preview(path, ImportOptions(agent="a"))
    assert len(records) == 10
    assert {(fault.pointer, fault.code) for fault in faults} == {
        ("/outcome", "record.value"),
        ("/trial", "record.value"),
    }
    assert any(line.startswith("20 rows (first runs.csv:22, 23, 24) /outcome") for line in faults.grouped())


BLANKS = """
[columns]
task_id = "task"
outcome = "result"
recovered = "back"
[values.outcome]
"" = "harness_error"
success = ["ok"]
[when.condition]
nominal = "fault == ''"
tool_failure = "otherwise"
[constants]
domain = "d"
"""


@pytest.mark.parametrize("null", ["fault == ''", "fault == null", "fault in ['', 'none']"])
def test_a_blank_means_the_same_in_csv_and_in_json_lines(tmp_path: Path, null: str) -> None:
    (tmp_path / "map.toml").write_text(BLANKS.replace("fault == ''", null))
    texts = {
        "csv": "task,result,back,fault\nt,ok,,\nu,,,x\n",
        "jsonl": '{"task": "t", "result": "ok", "back": "", "fault": ""}\n'
        '{"task": "u", "result": null, "back": null, "fault": "x"}\n',
    }
    for name, text in texts.items():
        (tmp_path / f"runs.{name}").write_text(text)
        _, records = imported(
            None, tmp_path / f"runs.{name}", tmp_path / name, agent="a", mapping=tmp_path / "map.toml"
        )
        found = [(r["condition"], r["outcome"], "recovered" in r) for r in records]
        assert found == [("nominal", "success", False), ("tool_failure", "harness_error", False)], name


@pytest.mark.parametrize(
    ("text", "row", "rule"),
    [
        (
            '[columns]\noutcome = "real"\n[values.outcome]\nfail = "success"',
            "task_id,real\nt,fail\n",
            'real, read by "fail" = "success"',
        ),
        ('[columns]\noutcome = "real"', "task_id,real\nt,success\n", "real"),
        (
            '[values.outcome]\nfail = "success"',
            "task_id,outcome\nt,fail\n",
            'outcome, read by "fail" = "success"',
        ),
        ('[constants]\noutcome = "success"', "task_id,real\nt,fail\n", "success on every run"),
        ("", "task_id,outcome\nt,success\n", "strict"),  # the table's own words
    ],
)
def test_the_manifest_says_what_decided_and_not_what_a_mapping_claims(
    tmp_path: Path, text: str, row: str, rule: str
) -> None:
    (tmp_path / "map.toml").write_text(f'{text}\n[protocol]\nsuccess_rule = "strict"\n')
    (tmp_path / "runs.csv").write_text(row)
    given: dict[str, Any] = {"agent": "a", "domain": "d", "condition": "nominal"}
    imported(None, tmp_path / "runs.csv", tmp_path / "out", mapping=tmp_path / "map.toml", **given)
    manifest = canonical.loads((tmp_path / "out/bundle.json").read_bytes())
    assert manifest["protocol"]["success_rule"] == rule
    warned = [note.get("detail", "") for note in manifest["imported"]["notes"] if note["kind"] == "odd"]
    assert any("a constant of the mapping" in detail for detail in warned) is ("constants" in text)


def test_a_suggestion_says_what_a_blank_condition_means_and_needs_no_word_for_a_blank_outcome(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task;Erfolg;Störungsart;trial\nt;ja;;1\nu;;x;y\n")
    text = suggest(path, ImportOptions(domain="d"))
    (tmp_path / "map.toml").write_text(text)
    for line in (
        'outcome = "Erfolg"  # 1 distinct: ja (1); blank (1)',
        '# "" = "nominal"  # DECIDE (rows: 1): not so if merged cells left blanks under a fault',
        '# "x" = "CONDITION"  # DECIDE (rows: 1)',
    ):
        assert line in text.splitlines()
    assert "The domain must be decided" not in text
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", domain="d", mapping=tmp_path / "map.toml")
    assert {fault.pointer for fault in caught.value.faults} == {"/Störungsart", "/trial"}
    assert "; decide what the mapping leaves under DECIDE, or correct" in str(caught.value.hint)


def test_words_of_an_outcome_that_nobody_knows_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("Aufgabe;Ergebnis\nt;gut\nu;schlecht\n")
    given: dict[str, Any] = {"domain": "d", "condition": "nominal"}
    asked = '--success "Ergebnis == VALUE"'
    assert f"#   {asked}  (2 distinct: gut (1), schlecht (1))" in suggest(path, ImportOptions(**given))
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "none", agent="a", **given)
    assert asked in str(caught.value.hint)
    _, records = imported(None, path, tmp_path / "out", agent="a", success="Ergebnis == 'gut'", **given)
    assert [record["outcome"] for record in records] == ["success", "failure"]


def test_a_column_is_no_domain_and_is_proposed_where_it_is_named_like_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task_id;domains;outcome\nt;bank;success\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", condition="nominal")
    assert '`domain = "domains"` under `[columns]`' in str(caught.value)
    with pytest.raises(CertkitError, match="'domains' is a column") as refused:
        imported(None, path, tmp_path / "out", agent="a", condition="nominal", domain="domains")
    assert refused.value.code == "usage.option"


def test_a_suggestion_keeps_the_encoding_and_names_the_command(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes("Aufgabe;Domäne;Erfolg\nt;Büro;ja\n".encode("cp1252"))
    text = suggest(path, ImportOptions(encoding="cp1252", agent="a b"))
    assert f'#   certkit import {path} --agent "a b" --encoding cp1252 -o BUNDLE --map THIS_FILE' in text
    (tmp_path / "map.toml").write_text(text)
    _, [record] = imported(
        None, path, tmp_path / "out", agent="a b", condition="nominal", mapping=tmp_path / "map.toml"
    )
    assert record["domain"] == "Büro"


EQUAL = "task_id,domain,condition,outcome,model\n" + "t,d,nominal,success,m\n" * 2


@pytest.mark.parametrize("word", ["count", "refuse", "drop-identical"])
def test_equal_rows_count_are_refused_or_are_left_out(tmp_path: Path, word: str) -> None:
    (tmp_path / "runs.csv").write_text(EQUAL)
    (tmp_path / "map.toml").write_text(f'[read]\nduplicates = "{word}"\n')
    options = {"mapping": tmp_path / "map.toml"}
    if word == "refuse":
        with pytest.raises(ImportFaultsError, match="equal to an earlier row"):
            imported(None, tmp_path / "runs.csv", tmp_path / "out", **options)
        return
    account, records = imported(None, tmp_path / "runs.csv", tmp_path / "out", **options)
    kind, left = ("odd", 2) if word == "count" else ("refused", 1)
    assert (counts(account, kind), len(records)) == ({"rows equal to an earlier row": 1}, left)
    assert account.agent.name == "m"
    assert not any(note.what == "column 'model'" for note in account.imported.notes)


@pytest.mark.parametrize(
    ("cell", "comma", "hint"),
    [
        ("0,5", "false", "set `decimal_comma = true` under `[read]`"),
        ("1.234,5", "false", "set `decimal_comma = true` under `[read]`"),
        ("1.234,5", "true", "remove thousands points"),
    ],
)
def test_numbers_with_a_comma_get_a_hint(tmp_path: Path, cell: str, comma: str, hint: str) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text(f"task_id;score;quality_factor\nt;{cell};{cell}\n")
    file.write_text(f"[read]\ndecimal_comma = {comma}\n")
    options = {"agent": "a", "domain": "d", "condition": "nominal", "success": "score >= 1"}
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", mapping=file, **options)
    assert [hint in fault.hint for fault in caught.value.faults] == [True, True]


def test_backticks_within_a_text_of_an_expression_are_its_own() -> None:
    row = {"v": "`fail`", "a b": "x"}
    for text, held in (
        ("v == '`fail`'", True),
        ('v != "`fail`"', False),
        ("`a b` == 'x' and v != '`'", True),
    ):
        assert Expression(text, number=float, fold=False).holds(row) is held


@pytest.mark.parametrize(
    "table",
    [
        'success = ["P", "pass"]\nfailure = ["p", "fail"]\n[read]\ncase_insensitive = true\n',
        'success = ["yes", "ok"]\nfailure = ["no", "ok"]\n',
        '"p" = "success"\nfailure = ["p"]\n',
    ],
)
def test_a_value_that_means_two_things_is_refused(tmp_path: Path, table: str) -> None:
    (tmp_path / "runs.csv").write_text("task_id,domain,condition,outcome\nt,d,nominal,p\n")
    (tmp_path / "map.toml").write_text(f"[values.outcome]\n{table}")
    with pytest.raises(CertkitError, match="means both 'success' and 'failure'") as caught:
        imported(None, tmp_path / "runs.csv", tmp_path / "out", agent="a", mapping=tmp_path / "map.toml")
    assert caught.value.code == "import.mapping"


def test_a_form_of_dates_with_a_part_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("task_id,domain,condition,outcome,started_at\nt,d,nominal,p,1\n")
    (tmp_path / "map.toml").write_text('[read]\ndate = "%Y-%Y"\n')
    with pytest.raises(CertkitError, match="'%Y-%Y' is no form of a date"):
        imported(None, tmp_path / "runs.csv", tmp_path / "out", agent="a", mapping=tmp_path / "map.toml")


def test_a_blank_beside_a_word_for_no_fault_takes_the_option_that_the_refusal_prints(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("Aufgabe,Bereich,Störung,Erfolg\nt,d,keine,ja\nu,d,timeout,nein\nv,d,,ja\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a")
    assert [(fault.line, fault.pointer) for fault in caught.value.faults] == [(4, "/Störung")]
    assert "if no fault was injected: certkit import" in str(caught.value.hint)
    assert "--agent a --condition nominal -o" in str(caught.value.hint)
    _, records = imported(None, path, tmp_path / "out", agent="a", condition="nominal")
    assert [record["condition"] for record in records] == ["nominal", "tool_failure", "nominal"]


def test_what_a_suggested_mapping_leaves_open_is_said_by_options(tmp_path: Path) -> None:
    """Its tables of values are there before a column is chosen, and decide nothing until then."""
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text("Ticket,Setting,Fine,Score\nA1,baseline,yes,0.2\nA2,normal,no,0.9\nA3,baseline,yes,0.8\n")
    text = suggest(path, ImportOptions(domain="d"))
    assert "\n[values.condition]\n" in text
    assert "\n[values.outcome]\n" in text
    file.write_text(text.replace('# task_id = "Ticket"', 'task_id = "Ticket"'))
    given: dict[str, Any] = {"agent": "a", "domain": "d", "condition": "nominal", "mapping": file}
    account, records = imported(None, path, tmp_path / "out", success="Score >= 0.5", **given)
    assert [record["outcome"] for record in records] == ["failure", "success", "success"]
    assert {note.what: note.detail for note in account.imported.notes}[
        "condition"
    ] == "3 nominal, 3 by --condition"


def test_a_mapping_suggested_beside_an_option_is_used_beside_it(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text("Task,Area,Injected fault,Passed\nt,d,timeout,yes\nu,d,,no\nv,d,none,no\n")
    text = suggest(path, ImportOptions(agent="a", condition="nominal"))
    assert "#   certkit import" in text
    assert "--condition nominal" in text
    file.write_text(text)
    account, records = imported(None, path, tmp_path / "out", agent="a", condition="nominal", mapping=file)
    assert [record["condition"] for record in records] == ["tool_failure", "nominal", "nominal"]
    assert "1 by --condition" in str({note.what: note.detail for note in account.imported.notes}["condition"])


@pytest.mark.parametrize(
    "row",
    [
        {"task_id": "t", "domain": "d", "outcome": "success", "meta": {"fault": "none"}},
        {"task": "t", "suite": "s", "ok": True, "attack": "no"},
        {"task": "t", "suite": "s", "ok": True, "attack": "no attack"},
    ],
)
def test_a_run_that_the_log_calls_free_of_faults_is_none_by_an_option(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(canonical.line(row))
    for condition, kept in (("adversarial", False), ("nominal", True)):
        try:
            _, records = imported(None, path, tmp_path / condition, agent="a", condition=condition)
            assert (kept, [record["condition"] for record in records]) == (True, ["nominal"])
        except (ImportFaultsError, UsageError) as error:
            assert (kept, "condition" in str(error)) == (False, True)  # noqa: PT017 - one of two refusals


@pytest.mark.parametrize(
    "beside",
    [
        *(
            {"attack_success": False},
            {"attack_id": 0},
            {"timeout": "no"},
            {"attack": None},
            {"fault_seed": "0"},
        ),
        {"fault": {"type": "prompt injection", "retries": 0}},
        {"prompt_injection": "yes", "tool_timeout": "no"},
    ],
)
def test_what_stands_beside_a_fault_is_no_word_against_an_option(
    tmp_path: Path, beside: dict[str, Any]
) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(
        canonical.line({"task_id": "t", "domain": "d", "outcome": "success", "agent": "a"} | beside)
    )
    _, [record] = imported(None, path, tmp_path / "out", condition="adversarial")
    assert record["condition"] == "adversarial"


def test_a_domain_that_an_option_names_is_guessed_from_no_column(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(
        canonical.line({"task_id": "t", "outcome": "success", "condition": "nominal", "suite": "x"})
    )
    _, [record] = imported(None, path, tmp_path / "out", agent="a", domain="retail")
    assert record["domain"] == "retail"


def test_an_option_is_no_otherwise_of_a_mapping_and_of_a_list(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text(
        "task_id,domain,outcome,agent,attack\nt,d,success,z,none\nu,d,failure,z,prompt injection\n"
    )
    file.write_text("[when.condition]\nadversarial = \"attack == 'prompt injection'\"\n")
    with pytest.raises(
        ImportFaultsError, match="/attack: expected a fault, as --condition says, found 'none'"
    ):
        imported(None, path, tmp_path / "out", mapping=file, condition="adversarial")
    run = {"task_id": "t", "domain": "d", "outcome": "success", "agent": "a"}
    (tmp_path / "runs.json").write_bytes(canonical.line({"condition": "nominal", "results": [run]}))
    with pytest.raises(UsageError, match="every run states its condition"):
        imported(None, tmp_path / "runs.json", tmp_path / "out", condition="adversarial")


def test_a_column_of_faults_counts_beside_columns_of_records_and_an_option(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "task_id,domain,outcome,agent,fault\nt,d,success,z,none\nu,d,failure,z,timeout\nv,d,success,z,\n"
    )
    _, records = imported(None, path, tmp_path / "out", condition="nominal")
    assert [record["condition"] for record in records] == ["nominal", "tool_failure", "nominal"]
    _, records = imported(None, path, tmp_path / "odd", condition="tool_failure")  # of what says nothing
    assert [record["condition"] for record in records] == ["nominal", "tool_failure", "tool_failure"]
    with pytest.raises(UsageError, match="--condition: 'nominall' is no condition; did you mean 'nominal'"):
        imported(None, path, tmp_path / "none", condition="nominall")


def test_a_blank_outcome_beside_violations_is_refused_with_what_it_may_mean(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text(
        "task,domain,condition,result,violations,agent\nt1,a,nominal,pass,0,z\nt2,a,nominal,,0,z\n"
    )
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out")
    line = '"" = "failure"'
    assert f"if the agent failed there, write `{line}` under `[values.outcome]`" in str(caught.value.hint)
    text = suggest(path, ImportOptions())
    assert f"# {line}" in text
    file.write_text(text.replace(f"# {line}", line))
    _, records = imported(None, path, tmp_path / "out", mapping=file)
    assert [record["outcome"] for record in records] == ["success", "failure"]


def test_one_equals_sign_is_told_from_a_name_that_needs_backticks(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task_id,domain,condition,score\nt,d,nominal,1\n")
    for text, way in (("score = 1", "== compares"), ("my score == 1", "stands in `backticks`")):
        with pytest.raises(CertkitError, match=f"is no expression; .*{way}"):
            imported(None, path, tmp_path / "out", agent="a", success=text)
    with pytest.raises(CertkitError, match="no row has what --success names: 'Score'; did you mean 'score'"):
        imported(None, path, tmp_path / "out", agent="a", success="Score == 1")


def test_a_date_that_does_not_exist_is_refused_by_name_and_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    rows = [f"t{day},d,nominal,success,{day:02}.02.2026 08:00\n" for day in range(1, 32) if day != 30]
    path.write_text(f"task_id,domain,condition,Passed,Datum\n{''.join(rows)}")
    assert 'date = "%d.%m.%Y %H:%M"' in suggest(path, ImportOptions()).splitlines()
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", timezone="UTC")
    assert [(fault.line, fault.found) for fault in caught.value.faults] == [
        (30, "'29.02.2026 08:00'"),
        (31, "'31.02.2026 08:00'"),
    ]


def test_an_outcome_is_not_proposed_as_the_condition_and_a_score_has_a_rule(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task,worked,team\nt,yes,x\nu,no,y\n")
    text = suggest(path, ImportOptions())
    assert "[values.outcome]" in text.splitlines()
    assert "# condition =" not in text
    assert '# domain = "team"' in text
    assert '# domain = "NAME"' not in text
    path.write_text("task,score\nt,0.7\nu,0.2\n")
    rule = '# [when.outcome]\n# success = "score >= 0.5"\n# failure = "otherwise"\n'
    assert rule in suggest(path, ImportOptions())
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", domain="d", condition="nominal")
    assert '--condition nominal --success "score >= 0.5" -o' in str(caught.value.hint)


@pytest.mark.parametrize(
    ("row", "advice"),
    [
        (b'{"task_id": "\xff"}', "save the file as UTF-8, then: certkit import"),
        (b'{"task_id": ' + b"[" * 90 + b"]" * 90 + b"}", "correct these rows, then: certkit import"),
    ],
)
def test_rows_that_cannot_be_read_need_no_mapping(tmp_path: Path, row: bytes, advice: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b'{"task_id": "t", "ok": true}\n' + row + b"\n")
    assert "read as records: 1 rows, 2 columns; left out, since they cannot be read: 1." in suggest(
        path, ImportOptions()
    )
    given: dict[str, Any] = {"agent": "a", "domain": "d", "condition": "nominal", "success": "ok"}
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", **given)
    assert advice in str(caught.value.hint)
    assert "--suggest" not in str(caught.value.hint)


def test_tasks_in_two_domains_are_told_shortly_with_a_way_out(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    rows = "".join(f"t{i},{domain}\n" for domain in "ab" for i in range(60))
    path.write_text(f"task_id,domain\n{rows}")
    text = '[constants]\ncondition = "nominal"\noutcome = "success"\n'
    file.write_text(text)
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", mapping=file)
    assert len(str(caught.value).splitlines()) < 15
    assert "and 50 more" in str(caught.value)
    assert "`domain_before_task = true`" in str(caught.value.hint)
    path.write_text(path.read_text().replace("task_id,domain", "case,suite"))
    file.write_text(f"domain_before_task = true\n{suggest(path, ImportOptions())}")
    given = {"condition": "nominal", "success": "case != ''"}
    assert len(imported(None, path, tmp_path / "first", agent="a", mapping=file, **given)[1]) == 120
    path.write_text(path.read_text().replace("case,suite", "task_id,domain"))
    file.write_text(f"domain_before_task = true\n{text}")
    assert len(imported(None, path, tmp_path / "out", agent="a", mapping=file)[1]) == 120


def test_values_of_unlike_kinds_are_refused_and_not_unequal() -> None:
    row = {"flag": True, "text": "0.75", "name": "x", "at": "2026-03-01T10:00:00Z", "empty": None}

    def said(text: str) -> Any:
        try:
            return Expression(text, number=float, fold=False)(row)
        except ExpressionError as error:
            return str(error)

    assert said("flag == 'true'") == "\"flag == 'true'\" compares the truth value true with the text 'true'"
    for text in ("flag != 1", "flag in ['true']", "name < true", "text >= '0.5'", "name >= 'x'", "flag > 0"):
        assert isinstance(said(text), str), text
    for text in (
        "text >= 0.5",
        "name in ['x', true]",
        "flag in [true, 'yes']",
        "name != null",
        "empty != 'x'",
    ):
        assert said(text) is True, text
    assert said("at >= '2026-03-01T09:00:00+00:00'") is True
    assert said("at < '2026-03-01T09:00:00+00:00'") is False


def test_an_expression_that_cannot_compare_is_told_with_commands_that_leave_it_out(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    words = ("true", "false", "true")
    rows = [
        f'{{"task_id": "t{i}", "domain": "d", "condition": "nominal", "ok": {w}}}'
        for i, w in enumerate(words)
    ]
    path.write_text("\n".join(rows))
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", success="ok == 'true'")
    assert "3 rows (first runs.jsonl:1, 2, 3) --success: expected values that can be" in str(caught.value)
    assert "ok ==" not in str(caught.value.hint)
    account, _ = imported(None, path, tmp_path / "out", agent="a", success="ok == true")
    told = {note.what: note.detail for note in account.imported.notes}
    assert told["outcome"] == "2 success, 1 failure, by ok == true"


SHEETS: dict[str, str] = {
    "fault": "Task,Domain,Injected fault?,Fault type,Result,Agent\n"
    "t,d,No,,pass,b\nt,d,Yes,timeout,fail,b\nu,d,Yes,,fail,b\n",
    "merged": "Task,Domain,Fault,Result,Agent\nt,d,none,pass,b\n,,timeout,fail,b\nu,d,none,pass,b\n",
}


def test_a_blank_is_no_normal_run_where_another_column_speaks_of_faults(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(SHEETS["fault"])
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out")
    assert "runs.csv:4 /Injected fault?: expected no fault in a nominal run, found 'Yes'" in str(caught.value)
    path.write_text(SHEETS["fault"].replace("Injected fault?", "Seed"))
    account, _ = imported(None, path, tmp_path / "out")
    told = {note.what: note.detail for note in account.imported.notes}
    assert told["condition"] == (
        "2 nominal, 1 tool_failure, from 'Fault type',"
        """ read by "timeout" = "tool_failure", "" = "nominal\""""
    )
    assert preview(path, ImportOptions())[1]["condition"] == {"nominal": 2, "tool_failure": 1}


def test_a_list_of_faults_means_what_the_mapping_says_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    row = {"task": "t", "suite": "s", "success": True}
    kinds: list[list[str]] = [[], ["timeout"], ["timeout", "jailbreak"]]
    path.write_bytes(b"".join(canonical.line(row | {"fault": kind}) for kind in kinds[:2]))
    _, records = imported(None, path, tmp_path / "out", agent="a")
    assert [record["condition"] for record in records] == ["nominal", "tool_failure"]
    path.write_bytes(b"".join(canonical.line(row | {"fault": kind}) for kind in kinds))
    with pytest.raises(ImportFaultsError, match=r"`\[values.condition\]` may say what it means"):
        imported(None, path, tmp_path / "none", agent="a")
    text = suggest(path, ImportOptions())
    asked = '# "[\\"timeout\\",\\"jailbreak\\"]" = "CONDITION"  # DECIDE (rows: 1)'
    assert asked in text
    text = text.replace('# "" = ', '"" = ').replace(asked, asked[2:].replace("CONDITION", "combined"))
    (tmp_path / "map.toml").write_text(text)
    _, records = imported(None, path, tmp_path / "mapped", agent="a", mapping=tmp_path / "map.toml")
    assert [record["condition"] for record in records] == ["nominal", "tool_failure", "combined"]


def test_hints_about_a_nested_fault_lead_to_its_column_and_never_in_a_circle(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.jsonl", tmp_path / "map.toml"
    row = {"task": "t", "suite": "s", "success": True}
    path.write_bytes(canonical.line(row) + canonical.line(row | {"injected": {"fault": {"kind": "odd"}}}))
    for options in ({}, {"condition": "nominal"}):
        with pytest.raises(ImportFaultsError) as caught:
            imported(None, path, tmp_path / "out", agent="a", **options)
        assert '"injected.fault.kind"' in f"{caught.value} {caught.value.hint}"
        assert "--condition" not in str(caught.value.hint)
    assert '# condition = "injected.fault.kind"' in suggest(path, ImportOptions())
    file.write_text('[columns]\ntask_id = "task"\ndomain = "suite"\ncondition = "injected.fault.kind"\n')
    with file.open("a") as more:
        more.write(
            'outcome = "success"\n[values]\noutcome = {success = [true]}\ncondition = {odd = "x_odd"}\n'
        )
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", mapping=file)
    assert "--condition nominal if no fault was injected there" in str(caught.value)
    _, [blank, odd] = imported(None, path, tmp_path / "out", agent="a", mapping=file, condition="nominal")
    assert (blank["condition"], odd["condition"]) == ("nominal", "x_odd")


@pytest.mark.parametrize(
    "fault",
    [
        "timeout",
        True,
        ["odd"],
        {"at_step": 2},
        {"type": None, "tool": "x"},
        {"type": "none", "kind": "timeout"},
    ],
)
def test_a_fault_beside_the_blank_column_of_faults_is_not_nominal(tmp_path: Path, fault: Any) -> None:
    path = tmp_path / "runs.jsonl"
    row = {"task": "t", "suite": "s", "success": True}
    faults = ({"type": "timeout", "severity": "low"}, fault)
    path.write_bytes(b"".join(canonical.line(row | {"fault": kind}) for kind in faults) + canonical.line(row))
    with pytest.raises(ImportFaultsError, match=r"runs.jsonl:2 /fault.*: expected no fault in a nominal run"):
        imported(None, path, tmp_path / "out", agent="a")


def test_blank_names_look_like_merged_cells_and_get_no_name_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(SHEETS["merged"])
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out")
    assert str(caught.value).count("look like merged cells: fill the value down") == 2
    assert "NAME" not in str(caught.value)


SCORES = "task_id,domain,condition,Score,ok\nt,d,nominal,1,yes\nu,d,nominal,,\nv,d,nominal,n/a,no\n"


def test_a_blank_outcome_is_a_harness_error_unless_the_mapping_says_something_else(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    given: dict[str, Any] = {"agent": "a"}
    blank = "runs whose outcome is blank, taken as harness errors"
    path.write_text(SCORES.replace("n/a", "0"))
    account, records = imported(None, path, tmp_path / "given", success="Score >= 0.5", **given)
    assert [record["outcome"] for record in records] == ["success", "harness_error", "failure"]
    assert counts(account, "odd")[blank] == 1
    path.write_text(SCORES)
    text = '[when.outcome]\nsuccess = "%s"\nfailure = "otherwise"\n[read]\nblank = ["n/a"]\n'
    for number, test in enumerate(("Score >= 0.5", "Score != 0", "not Score < 0.5 and ok != 'x'")):
        file.write_text(text % test)
        account, records = imported(None, path, tmp_path / f"mapped{number}", mapping=file, **given)
        assert Counter(record["outcome"] for record in records) == {"success": 1, "harness_error": 2}, test
        assert counts(account, "odd")[blank] == 2
    file.write_text(
        "[when.outcome]\nsuccess = \"ok == 'yes'\"\n"
    )  # of 'no' no case holds, though it is no blank
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "none", mapping=file, **given)
    assert [(fault.line, fault.expected) for fault in caught.value.faults] == [(4, "a case that holds")]
    file.write_text(text % "Score == null or Score > 2")  # asks for the blank itself
    _, records = imported(None, path, tmp_path / "asked", mapping=file, **given)
    assert [record["outcome"] for record in records] == ["failure", "success", "success"]


def test_a_text_or_a_number_alone_is_no_success(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(SCORES.replace("u,d,nominal,,\n", ""))
    for test in ("ok", "not ok", "ok and Score >= 0.5", "Score > 2 or ok", "Score"):
        with pytest.raises(ImportFaultsError, match="neither true nor false"):
            imported(None, path, tmp_path / "none", agent="a", success=test)
    path.write_text(SCORES.replace("yes", "true").replace("no\n", "false\n").replace("u,d,nominal,,\n", ""))
    _, records = imported(None, path, tmp_path / "out", agent="a", success="ok")
    assert [record["outcome"] for record in records] == ["success", "failure"]
    _, records = imported(None, path, tmp_path / "turned", agent="a", success="not ok")
    assert [record["outcome"] for record in records] == ["failure", "success"]


def test_a_fault_that_is_null_or_an_object_is_told_with_the_test_to_write(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    row = {"task_id": "t", "domain": "d", "outcome": "success"}
    faults = (None, {"kind": "latency", "at_step": 3})
    path.write_bytes(b"".join(canonical.line(row | {"fault": fault}) for fault in faults))
    (tmp_path / "map.toml").write_text("[when.condition]\nnominal = \"fault == 'x'\"\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", mapping=tmp_path / "map.toml")
    assert "it is an object or null: use `fault == null`, or `fault.kind`" in str(caught.value)


@pytest.mark.parametrize(
    ("sheet", "lines"),
    [
        (
            "Task,Failed\nt,yes\nu,no\n",
            ("#   --success \"Failed in ['no']\"  (2 distinct: yes (1), no (1))",),
        ),
        ("Task,Fault injected\nt,0\nu,1\nv,-\n", ('# "0" = "nominal"', '# "-" = "nominal"')),
        (
            "Task,Condition\nt,no_attack\nu,no response\nv,kein Fehler\n",
            ('"no_attack" = "nominal"', '# "no response" = "CONDITION"', '"kein Fehler" = "nominal"'),
        ),
        (
            "Task,Failure result\nt,yes\nu,no\n",
            ("# DECIDE what a success is", "#   --success '`Failure result` in [\"no\"]'"),
        ),
        ("Task,Failed result\nt,yes\n", ("# DECIDE what a success is",)),
        ("Task,error_status\nt,1\nu,0\n", ("#   --success \"error_status in ['0']\"",)),
        ("Task,Status,Passed\nt,ok,yes\nu,ok,no\n", ('# outcome = "Status"', '# outcome = "Passed"')),
        ('{"Task": "t", "expected": {"result": "ok"}}\n', ('# outcome = "expected.result"',)),
        ("Task,Pass/Fail\nt,pass\nu,fail\n", ('outcome = "Pass/Fail"', 'success = ["pass"]')),
        ("Task,Condition\nt,clean\nu,injected\n", ('"clean" = "nominal"', '# "injected" = "CONDITION"')),
        ("Task,Success\nt,yes\nu,maybe\nv,TRUE\n", ('success = ["TRUE", "yes"]', '# "maybe" = "SUCCESS OR')),
        ("Task;Erfolg\nt;WAHR\nu;FALSCH\nSumme;50%\n", ('success = ["WAHR"]', 'failure = ["FALSCH"]')),
        ("Task,Ergebnis\nt,bestanden\nu,nicht bestanden\n", ('failure = ["nicht bestanden"]',)),
        ("Aufgabe;Lauf\nt;1\nt;2\n", ('trial = "Lauf"',)),
        ("Task,Score\nt,7\nu,0.4\n", ('#   --success "Score >= THRESHOLD"',)),
        ("Task,passed,trials\nt,3,5\nu,1,5\n", ('#   --success "COLUMN >= 0.5"',)),
        ("Task,Hallucinated\nt,yes\nu,no\n", ("#   --success \"Hallucinated in ['no']\"",)),
        ("Task,Result\nt,P\nu,C\n", ("# DECIDE what a success is",)),
        ("Task,Result\nt,P\nu,F\n", ('success = ["P"]', 'failure = ["F"]')),
        ("Task,Result\nt,✓\nu,✗\n", ('success = ["✓"]', 'failure = ["✗"]')),
        ("Task,Result\nt,T\nu,nok\n", ('success = ["T"]', 'failure = ["nok"]')),
        (
            "Tâche;Domaine;Attaque;Réussi\nt;d;aucune;oui\nu;d;jailbreak;non\n",
            ('domain = "Domaine"', 'task_id = "Tâche"', '"aucune" = "nominal"', 'success = ["oui"]'),
        ),
        ("task,begin\nt,11/23/2026 2:18 PM\n", ('date = "%m/%d/%Y %I:%M %p"',)),
    ],
)
def test_a_suggestion_asks_where_a_value_may_mean_something_else(
    tmp_path: Path, sheet: str, lines: tuple[str, ...]
) -> None:
    (tmp_path / "runs.csv").write_text(sheet)
    text = suggest(tmp_path / "runs.csv", ImportOptions())
    assert all(f"\n{line}" in text for line in lines)
    assert 'success = ["yes"]' not in text.split("[values.condition]")[0] or "Success" in sheet


@pytest.mark.parametrize("values", ["12 min", "3/4/2026", "7", "0:45", "2,5", "2026-03-01T10:00:00Z"])
def test_a_number_or_a_time_is_no_domain_or_task(tmp_path: Path, values: str) -> None:
    (tmp_path / "runs.csv").write_text(f"Durée;Category;Test case\n{values};{values};{values}\n")
    text = suggest(tmp_path / "runs.csv", ImportOptions())
    assert 'domain = "Durée' not in text
    assert 'domain = "Cat' not in text
    assert ('task_id = "Test' in text) is values.isdigit()


def test_a_word_that_is_no_outcome_is_named_with_its_row_and_times_propose_their_form(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "Task,Domain,Condition,Success,started_at\n"
        "t,d,nominal,yes,11/3/2026 2:18 PM\nt,d,nominal,maybe,11/4/2026 3:18 PM\nu,d,nominal,no,\n"
    )
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out")
    told = str(caught.value)
    assert "runs.csv:3 /Success: expected success, failure, safe_halt or harness_error for outcome" in told
    assert "found 'maybe' [record.value]; add it to `[values.outcome]`" in told
    assert "2 rows (first runs.csv:2, 3) /started_at" in told
    assert '`date = "%m/%d/%Y %I:%M %p"` under `[read]`' in told
    assert "--agent NAME" in str(caught.value.hint)


LOOKED_AT = (
    "task_id,domain,condition,result,violations,attack_succeeded,note\n"
    "t,bank,adversarial,success,2,true,x\nu,bank,adversarial,success,0,false,y\n"
)


@pytest.mark.parametrize(
    "test", ["violations != 'x' and attack_succeeded != 'x'", "domain == 'bank' and note != ''"]
)
@pytest.mark.parametrize("place", ["success", "when", "columns", "answer"])
def test_an_expression_looks_at_a_column_and_does_not_take_it(tmp_path: Path, test: str, place: str) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text(LOOKED_AT)
    given: dict[str, Any] = {"agent": "a", "success": f"result == 'success' and {test}"}
    mapping = {
        "when": f'[when.fault_took_hold]\ntrue = "{test}"\n',
        "columns": '[columns]\nx_least = "min(violations, 0)"\n',
        "answer": '[trace]\nanswer = "violations"\n',
    }
    if place in mapping:
        file.write_text(mapping[place])
        given["mapping"] = file
    account, records = imported(None, path, tmp_path / "out", **given)
    seen = [(r["domain"], r["violations"], r["attack_succeeded"], r["outcome"]) for r in records]
    assert seen == [("bank", 2, True, "success"), ("bank", 0, False, "success")]
    assert ("column 'note'" in counts(account, "refused")) is ("note" not in test)


def test_a_column_that_the_mapping_gives_to_another_field_fills_its_own_no_longer(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(LOOKED_AT)
    (tmp_path / "map.toml").write_text('[columns]\noutcome = "result"\nx_broken = "violations"\n')
    _, records = imported(
        None, tmp_path / "runs.csv", tmp_path / "out", agent="a", mapping=tmp_path / "map.toml"
    )
    assert [(r["x_broken"], "violations" in r) for r in records] == [("2", False), ("0", False)]


HONEST = ("task_success", "Final result?", "Ergebnis Testlauf", "metadata.passed", "Injected fault?")
OTHERS = (
    *(
        "attacker_success",
        "exploit_result",
        "harm_score",
        "violation_status",
        "setup_ok",
    ),
    *(
        "unsafe_result",
        "previous_result",
        "http_status",
        "user_success",
        "not ok",
        "attack.passed",
        "judge.ok",
    ),
)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        *(("condition", name) for name in ("attack_blocked", "fault_in_tool_log", "Fehler", HONEST[-1])),
        *(("outcome", name) for name in (*HONEST[:-1], *OTHERS)),
    ],
)
def test_who_succeeded_at_what_is_guessed_only_by_a_name_that_says_it(
    tmp_path: Path, field: str, name: str
) -> None:
    path = tmp_path / "runs.jsonl"
    words = {"condition": "timeout", "outcome": "ok"}
    row: dict[str, Any] = {"task": "t", "suite": "d", "condition": "tool_failure", "outcome": "success"}
    del row[field]
    above, _, column = name.rpartition(".")
    row |= {above: {column: words[field]}} if above else {column: words[field]}
    path.write_bytes(canonical.line(row))
    lead = "" if name in HONEST else "# "
    assert f'\n{lead}{field} = "{name}"' in suggest(path, ImportOptions())
    if name in HONEST:
        _, [record] = imported(None, path, tmp_path / "out", agent="a")
        assert (record["condition"], record["outcome"]) == ("tool_failure", "success")
        return
    with pytest.raises(ImportFaultsError, match=f"expected a value for {field}"):
        imported(None, path, tmp_path / "out", agent="a")


CONDITIONS = {
    "nominal": "none, no injection, no_attack, kein Fehler, aucune attaque, clean run, baseline",
    "adversarial": "jailbreak, prompt injection, the attack, prompt-injection attack, attaque",
    "tool_failure": "tool timeout, Werkzeugausfall, tool broken, timeout, panne",
    "context_corruption": "context corruption, corrupted context",
    "cascade": "cascading failure, cascades",
    "stochastic": "stochastic fault",
    "combined": "combined faults",
    "CONDITION": "baseline attack, clean injection, w/o attack, attack-free, non-adversarial,"
    " not attacked, unattacked, pre-attack, attack failure, tool ok, tool success, tool failure fixed,"
    " normal tool error, unclean context, injection and tool timeout, baseline injection, no response,"
    " ✗ attack, attack?, tool, no fault; attack",
}


@pytest.mark.parametrize("name", ["Attack", "Fault type", "Bedingung", "condition", "Panne"])
@pytest.mark.parametrize("meant", CONDITIONS)
def test_a_text_means_a_condition_where_all_its_words_do(tmp_path: Path, meant: str, name: str) -> None:
    path = tmp_path / "runs.csv"
    for text in CONDITIONS[meant].split(", "):
        path.write_text(f"Task|{name}|Passed\nt|{text}|yes\nu|latency|yes\n")
        lead = "# " if meant == "CONDITION" else ""
        assert f'\n{lead}"{text}" = "{meant}"' in suggest(path, ImportOptions()), text


TRICKS = """
[columns]
violations = "min(broken, 0)"
[values.recovered]
no = true
[when.attack_succeeded]
false = "broken != null"
[constants]
domain = "d"
traceability = 5
layer3_score = 1
x_note = "n"
"""


def test_the_account_states_what_the_mapping_makes_of_each_field(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text("task_id,condition,outcome,broken,recovered\nt,combined,failure,3,no\n")
    file.write_text(TRICKS)
    account, _ = imported(None, path, tmp_path / "out", agent="a", mapping=file)
    told = {note.what: note.detail for note in account.imported.notes if note.kind == "filled"}
    assert {name: told[name] for name in ("violations", "recovered", "attack_succeeded", "traceability")} == {
        "violations": "from 'min(broken, 0)'",
        "recovered": "from 'recovered', read by \"no\" = true",
        "attack_succeeded": "by false: broken != null",
        "traceability": "the mapping's constant 5",
    }
    assert told["domain"] == 'the mapping\'s constant "d"'
    assert counts(account, "odd") == {"traceability": 1, "layer3_score": 1}
    digest = hashlib.sha256(TRICKS.encode()).hexdigest()
    assert account.imported.options["mapping"] == f"map.toml, sha256:{digest}"


REFUSED: dict[str, tuple[str, dict[str, str], str]] = {
    "commas that may mark thousands": (
        'task,latency\nt,"1,200"\nu,"2,000"\n',
        {"condition": "nominal", "success": "latency < 1500"},
        "write thousands without commas, or set `decimal_comma = true`",
    ),
    "a comma in an expression": (
        "task,score\nt,0.7\n",
        {"condition": "nominal", "success": "score >= 0,5"},
        "write 0.5, not 0,5",
    ),
    "a fault that is denied": (
        "task,fault,success\nt,prompt injection (blocked),1\n",
        {},
        "found 'prompt injection (blocked)'",
    ),
    "a nominal row with a fault": (
        "task,condition,fault,success\nt,nominal,timeout,1\nu,adversarial,none,1\n",
        {},
        "runs.csv:2 /fault: expected no fault in a nominal run, found 'timeout'",
    ),
    "nested faults": (
        '{"task": "t", "ok": true, "injection": {"type": "jailbreak"}}\n{"task": "u", "ok": true}\n',
        {"condition": "nominal"},
        "/injection.type: expected no fault in a nominal run",
    ),
    **{
        f"a fault that {name} tells": (
            canonical.line({"task": "t", "ok": True, name: held}).decode(),
            {"condition": "nominal"},
            "expected no fault in a nominal run",
        )
        for name, held in {
            **dict.fromkeys(("Szenario", "Fehler", "variant"), "prompt injection"),
            **dict.fromkeys(("is_attacked", "tool_broken", "tool_failure"), 1),
            "jailbreak": "yes",
            "noise_level": 0.4,
            "a": {"b": {"c": {"d": {"e": {"f": {"fault": "timeout"}}}}}},
            "tags": ["easy", "tool failure"],
            "config": {"inject": {"mode": "timeout"}},
        }.items()
    },
    **{
        f"a fault without a meaning that {name} tells": (
            canonical.line({"task": "t", "ok": True, name: "high"}).decode(),
            {"condition": "nominal"},
            f"/{name}: expected nominal, adversarial",
        )
        for name in ("perturbed", "corruption", "disruption", "injections", "chaos")
    },
    "a fault beside a member that a mapping uses": (
        '{"meta": {"task": "t", "mode": "jailbreak"}, "ok": true}\n',
        {"condition": "nominal"},
        "/meta.mode: expected no fault in a nominal run",
    ),
    "two faults that differ": (
        "task,condition,attack,ok\nt,tool_failure,jailbreak,1\nu,nominal,none,1\n",
        {},
        "/attack: expected no other fault than tool_failure, found 'jailbreak'",
    ),
    "a total with a blank cell": (
        "Suite,Task,Fault,Passed\ns,t,none,yes\nTotal (2),2,,yes\n",
        {},
        "what looks like a total",
    ),
    "rows within an object": (
        '{"meta": {"n": 2}, "entries": [{"task": "t", "ok": true}, {"task": "u", "ok": true}]}\n',
        {"condition": "nominal"},
        "write the items of 'entries' as rows of their own; or ",
    ),
    "two versions": (
        "task,agent_version,condition,success\nt,1.0,nominal,1\nu,2.0,nominal,0\n",
        {},
        "agent '' has several versions: 1.0, 2.0",
    ),
    **{
        f"two versions called {name}": (
            f"task,Modell,{name},condition,success\nt,m,1.0,nominal,1\nu,m,2.0,nominal,0\n",
            {},
            "agent 'm' has several versions: 1.0, 2.0",
        )
        for name in ("Version", "model_version", "Model Version", "modelVersion")
    },
    "two models of an agent": (
        "task,agent,model,condition,success\nt,m,x,nominal,1\nu,m,y,nominal,0\n",
        {},
        "agent 'm' has several versions: x, y a bundle of each: certkit import",
    ),
    "two versions of the model of an agent": (
        "task,agent,agent_version,model_version,condition,success\nt,m,1,x,nominal,1\nu,m,1,y,nominal,0\n",
        {},
        "several versions: x, y a bundle of each: certkit import",
    ),
    **{
        f"two outcomes, one called {name}": (
            f"task,condition,passed,{name}\nt,nominal,yes,fail\nu,nominal,no,fail\n",
            {},
            f"runs.csv:2 /{name}: expected success, as the outcome is, found 'fail'",
        )
        for name in ("final_result", "verdict of the task", "Résultat du test")
    },
    **{
        f"an outcome denied by {name}": (
            f"task,condition,passed,{name}\nt,nominal,yes,true\nu,nominal,no,true\n",
            {},
            f"runs.csv:2 /{name}: expected success, as the outcome is, found 'true'",
        )
        for name in ("failed", "is_failure", "unresolved")
    },
    **{
        f"counts over {name}": (
            f"task,condition,{name},passed\nt,nominal,5,1\n",
            {"success": "passed >= 1"},
            "found '5' [import.row]; write one row for each run; if it is no count, keep it as a note",
        )
        for name in ("trials", "n", "Runs", "total")
    },
    "counts that pandas wrote, beside an endless number": (
        f"task,condition,trials,passed,success\nt,nominal,5.0,4.0,{'9' * 5000}\n",
        {"success": "passed >= 1"},
        "expected one run, found '5.0'",
    ),
    "a row of several attempts": (
        "task,condition,passed,attempts\nt,nominal,1,5\n",
        {"success": "passed == 1"},
        "expected one run, found '5'",
    ),
    "a count of runs in other words": (
        "task,condition,passed,Anzahl\nt,nominal,1,5\n",
        {"success": "passed == 1"},
        "expected one run, found '5'",
    ),
    "an exit status": ("task,condition,status\nt,nominal,0\nu,nominal,1\n", {}, "a value for outcome"),
    "two columns of tasks": (
        "sample,question,condition,passed\n1,q,nominal,yes\n2,q,nominal,no\n",
        {},
        "a value for task_id",
    ),
    "a fault that became the task": (
        "case_id,scenario,passed\nc1,prompt injection,yes\n",
        {"condition": "nominal"},
        "/scenario: expected no fault in a nominal run",
    ),
    "merged cells of faults": (
        "task,fault,passed\nt,timeout,yes\nu,,yes\nv,none,yes\n",
        {},
        "a value for condition",
    ),
    "a threshold that is none": (
        "task,condition,Score\nt,nominal,7\n",
        {"success": "Score >= THRESHOLD"},
        "THRESHOLD is a placeholder",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_mean_something_else_is_refused(tmp_path: Path, name: str) -> None:
    text, options, said = REFUSED[name]
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(CertkitError) as caught:
        imported(None, path, tmp_path / "out", domain="d", **options)
    assert said in f"{caught.value} {caught.value.hint}"


TAKEN: dict[str, tuple[str, dict[str, str], str, str]] = {
    "the field's own name": (
        "task,condition,outcome,passed\nt,nominal,success,yes\nu,nominal,harness_error,no\n",
        {},
        "outcome",
        "1 success",
    ),
    "a running number": (
        "task,condition,passed,Number\nt,nominal,1,1\nu,nominal,1,2\n",
        {"success": "passed == 1"},
        "outcome",
        "2 success",
    ),
    "what the user says of the outcome": (
        "task,passed,final_result\nt,yes,fail\n",
        {"condition": "nominal", "success": "passed == 'yes'"},
        "outcome",
        "1 success",
    ),
    "rows of one trial": (
        "task,trial,condition,passed\nt,1,nominal,yes\nt,1,nominal,no\nt,1,tool_failure,no\nu,1,nominal,no\n",
        {},
        "rows of a task, condition and trial met before",
        "they count",
    ),
    "a count that a mapping need not know": (
        "task,passed,trials\nt,1,1\nu,0,1\n",
        {"condition": "nominal", "success": "passed == 1"},
        "outcome",
        "1 success, 1 failure",
    ),
    "texts that differ in case": (
        "task,result,x\nt,Pass,1\nu,PASS,2\n",
        {"condition": "nominal", "success": "result == 'Pass'"},
        "the values 'PASS'",
        "by case alone",
    ),
    "texts that are both named": (
        "task,result,x\nt,Pass,1\nu,PASS,2\n",
        {"condition": "nominal", "success": "result in ['Pass', 'PASS']"},
        "outcome",
        "2 success",
    ),
    "what is no fault": (
        "task,note,status,tool_errors,no_attack,ok\nt,the agent fell for a jailbreak,timeout,1,1,1\n",
        {"condition": "nominal", "success": "ok == 1"},
        "condition",
        "1 nominal",
    ),
    "a version": ("task,agent_version,condition,success\nt,1,nominal,1\n", {}, "condition", "1 nominal"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_decides_is_told(tmp_path: Path, name: str) -> None:
    text, options, what, detail = TAKEN[name]
    path = tmp_path / "runs.csv"
    path.write_text(text)
    account, _ = imported(None, path, tmp_path / "out", agent="a", domain="d", **options)
    told = {note.what: note.detail or "" for note in account.imported.notes}
    assert detail in told[what]
    assert ("values" in str(told.keys())) is ("differ in case" in name)
    assert account.agent.version == ("1" if "version" in name else "unversioned")


def test_a_value_that_a_nested_row_lacks_is_blank(tmp_path: Path) -> None:
    path, rules = tmp_path / "runs.jsonl", tmp_path / "map.toml"
    path.write_text(
        '{"task_id": "t", "outcome": "success", "fault": {"type": "jailbreak"}}\n'
        '{"task_id": "u", "outcome": "success"}\n'
    )
    rules.write_text(
        '[columns]\ncondition = "fault.type"\n[values.condition]\n"" = "nominal"\njailbreak = "adversarial"\n'
    )
    _, records = imported(None, path, tmp_path / "out", agent="a", domain="d", mapping=rules)
    assert [record["condition"] for record in records] == ["adversarial", "nominal"]


def test_a_slug_names_what_it_lies_in_and_yes_and_no_name_no_task(tmp_path: Path) -> None:
    rows = [{"scenario": {"slug": f"s{at}"}, "crashed": bool(at), "passed": at == 1} for at in (0, 1)]
    (tmp_path / "runs.jsonl").write_bytes(b"".join(map(canonical.line, rows)))
    text = suggest(tmp_path / "runs.jsonl", ImportOptions())
    assert [line for line in text.splitlines() if "task_id =" in line] == [
        'task_id = "scenario.slug"  # 2 distinct: s0 (1), s1 (1)'
    ]


@pytest.mark.parametrize(("given", "guesses"), [({}, 2), ({"condition": "nominal"}, 0)])
def test_a_blank_that_is_taken_for_nominal_is_a_guess_until_the_user_says_it(
    tmp_path: Path, given: dict[str, str], guesses: int
) -> None:
    path = tmp_path / "merged.csv"
    path.write_text("task_id,domain,Störung,Passed\nt0,d,timeout,yes\nt1,d,,yes\nt2,d,,no\n")
    if given:  # what a row states otherwise, the option does not decide
        path.write_text("task_id,domain,Störung,Passed\nt1,d,none,yes\nt2,d,,no\n")
    account, _ = imported(None, path, tmp_path / "out", agent="a", **given)
    assert [note.count for note in account.imported.notes if note.kind == "guessed"] == [guesses] * bool(
        guesses
    )


def test_the_rows_of_a_json_object_are_the_items_of_its_list(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    rows = [{"task_id": f"t{n}", "domain": "d", "outcome": "success"} for n in range(2)]
    document = {"meta": {"model": "m", "n": 2}, "success": True, "total": 2, "results": rows}
    path.write_bytes(canonical.line(document))
    account, records = imported(None, path, tmp_path / "out", condition="nominal")
    assert (account.agent.name, [record["task_id"] for record in records]) == ("m", ["t0", "t1"])
    assert counts(account, "refused") == {
        "what stands beside the list of rows: 'meta', 'success', 'total'": 1
    }
    ungraded = [{"task_id": "t0", "domain": "d", "grade": 0.1}]  # the file's success is not the item's
    path.write_bytes(canonical.line(document | {"results": ungraded}))
    with pytest.raises(ImportFaultsError, match="expected a value for outcome"):
        imported(None, path, tmp_path / "none", condition="nominal")
    path.write_bytes(canonical.line(document | {"failed": rows}))
    with pytest.raises(ImportFaultsError, match="expected a value for"):
        imported(None, path, tmp_path / "none", condition="nominal")
    path.write_text(canonical.pretty(document | {"setup": {"fault": "timeout"}}))
    with pytest.raises(ImportFaultsError, match="expected no fault in a nominal run, found 'timeout'"):
        imported(None, path, tmp_path / "none", condition="nominal")


def test_a_suggested_mapping_asks_about_equal_rows(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task_id;Erfolg\nt1;ja\nt2;nein\nt1;ja\n")
    told = '# duplicates = "drop-identical"  # DECIDE: 1 row equals an earlier one, and counts'
    assert told in suggest(path, ImportOptions()).splitlines()


def test_an_account_names_many_columns_that_fill_nothing_on_few_lines(tmp_path: Path) -> None:
    path, names = tmp_path / "wide.csv", [f"metric_{number:03}" for number in range(100)]
    path.write_text(f"task_id,outcome,{','.join(names)}\nt,success,{','.join('1' * len(names))}\n")
    account, _ = imported(None, path, tmp_path / "out", agent="a", domain="d", condition="nominal")
    refused = counts(account, "refused")
    assert len(refused) == 13
    assert "columns 'metric_012', 'metric_013'" in [*refused][-1]
