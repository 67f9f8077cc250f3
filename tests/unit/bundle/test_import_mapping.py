"""The mapping: expressions, readings of texts, faults together, and what it must refuse."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, UsageError
from certkit.imports import ImportFaultsError, ImportOptions, preview
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
        "run_id": "runs.csv:2",
    }
    assert [record["run_id"] for record in records] == ["runs.csv:2", "runs.csv:3", "runs.csv:5"]
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
    lines = str(caught.value.hint).splitlines()
    assert lines[lines.index("[values.outcome]") :] == ["[values.outcome]", '"No" = "VALUE"']


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
    for number, header in enumerate(("task_id,domain,condition,outcome", "task,suite,condition,outcome")):
        path.write_text(f"{header}\nt,d,tool_failure,failure\nu,,,success\n")
        for condition in ("nominal", "adversarial"):
            given = {"agent": "a", "condition": condition, "domain": "d"}
            account, records = imported(None, path, out / f"{condition}{number}", **given)
            assert [record["condition"] for record in records] == ["tool_failure", condition]
            assert [record["domain"] for record in records] == ["d", "d"]
            assert account.imported.options["condition"] == condition
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


CASES = (
    "Prompt Ref;Business Line;Attack used?;Handled OK?;Judge OK?;Max steps;Run date\r\n"
    "P-1;claims;none;yes;No;9;13.02.2026\r\nP-2;lending;prompt injection;n;No;9;14.02.2026\r\n"
    "P-2;lending;no tool;YES;No;9;14.02.2026\r\nP-3;lending;sabotage;;No;9;14.02.2026\r\n"
)


SHEET = (
    "Nr.;Aufgabe?;Punkte (0-1);Erfolg?;recovered;Störung\r\n"
    "1;t1;0,5;ja;;keine\r\n2;t2;0,25;nein;nein;tool_failure\r\n3;t2;?;ja;ja;tool_failure\r\n"
)


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


def test_a_column_is_no_domain_and_is_proposed_where_it_is_named_like_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task_id;domains;outcome\nt;bank;success\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", condition="nominal")
    assert '`domain = "domains"` under `[columns]`' in str(caught.value)
    with pytest.raises(CertkitError, match="'domains' is a column") as refused:
        imported(None, path, tmp_path / "out", agent="a", condition="nominal", domain="domains")
    assert refused.value.code == "usage.option"


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


def test_an_option_says_what_holds_of_runs_that_no_case_of_a_mapping_decides(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text(
        "task_id,domain,outcome,agent,attack\nt,d,success,z,none\nu,d,failure,z,prompt injection\n"
    )
    file.write_text("[when.condition]\nadversarial = \"attack == 'prompt injection'\"\n")
    with pytest.raises(ImportFaultsError, match="/when/condition: expected a case that holds, found none"):
        imported(None, path, tmp_path / "none", mapping=file)
    _, records = imported(None, path, tmp_path / "out", mapping=file, condition="stochastic")
    assert [record["condition"] for record in records] == ["stochastic", "adversarial"]


def test_one_equals_sign_is_told_from_a_name_that_needs_backticks(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task_id,domain,condition,score\nt,d,nominal,1\n")
    for text, way in (("score = 1", "== compares"), ("my score == 1", "stands in `backticks`")):
        with pytest.raises(CertkitError, match=f"is no expression; .*{way}"):
            imported(None, path, tmp_path / "out", agent="a", success=text)
    with pytest.raises(CertkitError, match="--success names 'Score': no row has it; did you mean 'score'"):
        imported(None, path, tmp_path / "out", agent="a", success="Score == 1")


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


def test_a_word_that_is_no_outcome_is_named_with_its_row_and_a_time_with_what_to_write(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "task,domain,condition,success,started_at\n"
        "t,d,nominal,yes,11/3/2026 2:18 PM\nt,d,nominal,maybe,11/4/2026 3:18 PM\nu,d,nominal,no,\n"
    )
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out")
    told = str(caught.value)
    assert "harness_error, true, false, 1 or 0 for outcome, found 'yes', 'maybe', 'no'" in told
    assert "say what is a success: --success EXPRESSION; or" in told
    assert "2 rows (first runs.csv:2, 3) /started_at" in told
    assert "`date` under `[read]` in a mapping states how times are written" in told
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
    assert ("1 column that no record field takes" in counts(account, "refused")) is ("note" not in test)


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
        "task,trial,condition,passed\nt,1,nominal,1\nt,1,nominal,0\nt,1,tool_failure,0\nu,1,nominal,0\n",
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


def test_an_account_names_many_columns_that_fill_nothing_on_one_line(tmp_path: Path) -> None:
    path, names = tmp_path / "wide.csv", [f"metric_{number:03}" for number in range(100)]
    path.write_text(f"task_id,outcome,{','.join(names)}\nt,success,{','.join('1' * len(names))}\n")
    account, _ = imported(None, path, tmp_path / "out", agent="a", domain="d", condition="nominal")
    [note] = [note for note in account.imported.notes if note.kind == "refused"]
    assert (note.what, note.count) == ("100 columns that no record field takes", 1)
    assert (note.detail or "").endswith("metric_058, metric_059, …")


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
    given: dict[str, Any] = {"agent": "a", "domain": "d", "condition": "nominal", "success": "ok"}
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", **given)
    assert advice in str(caught.value.hint)
    assert "--columns" not in str(caught.value.hint)


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
    file.write_text(f"domain_before_task = true\n{text}")
    assert len(imported(None, path, tmp_path / "out", agent="a", mapping=file)[1]) == 120


def test_a_blank_outcome_beside_violations_is_refused_with_what_it_may_mean(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text("task,domain,condition,passed,violations,agent\nt1,a,nominal,1,0,z\nt2,a,nominal,,0,z\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out")
    assert 'if the agent failed there, write `"" = "failure"` under `[values.outcome]`' in str(
        caught.value.hint
    )
    file.write_text('[values.outcome]\n"1" = "success"\n"" = "failure"\n')
    _, records = imported(None, path, tmp_path / "out", mapping=file)
    assert [record["outcome"] for record in records] == ["success", "failure"]


def test_a_list_of_faults_means_what_the_mapping_says_of_its_text(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.jsonl", tmp_path / "map.toml"
    row = {"task": "t", "suite": "s", "success": True}
    kinds: list[list[str]] = [[], ["timeout"], ["timeout", "jailbreak"]]
    path.write_bytes(b"".join(canonical.line(row | {"fault": kind}) for kind in kinds))
    text = '[columns]\ncondition = "fault"\n[values.condition]\n"" = "nominal"\n'
    text += '\'["timeout"]\' = "tool_failure"\n'
    file.write_text(text)
    with pytest.raises(ImportFaultsError, match=r"`\[values.condition\]` may say what it means"):
        imported(None, path, tmp_path / "none", agent="a", mapping=file)
    file.write_text(text + '\'["timeout","jailbreak"]\' = "combined"\n')
    _, records = imported(None, path, tmp_path / "mapped", agent="a", mapping=file)
    assert [record["condition"] for record in records] == ["nominal", "tool_failure", "combined"]


def test_a_clock_of_twelve_hours_and_a_date_that_does_not_exist(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.csv", tmp_path / "map.toml"
    path.write_text(
        "task_id,domain,condition,outcome,started_at\n"
        "t,d,nominal,success,3/31/2026 3:05 PM\nu,d,nominal,success,2/31/2026 3:05 PM\n"
    )
    file.write_text('[read]\ndate = "%m/%d/%Y %I:%M %p"\ntimezone = "UTC"\n')
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a", mapping=file)
    assert [(fault.line, fault.found) for fault in caught.value.faults] == [(3, "'2/31/2026 3:05 PM'")]
    path.write_text(path.read_text().replace("2/31", "2/28"))
    _, records = imported(None, path, tmp_path / "out", agent="a", mapping=file)
    assert records[0]["started_at"] == "2026-03-31T15:05:00+00:00"
