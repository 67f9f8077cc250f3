"""Rows with a mapping: names, values, constants, strict cells, and every fault named."""

from __future__ import annotations

import datetime as dt
import gzip
import re
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import hypothesis
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyarrow import parquet

from certkit.bundle.folder import open_bundle
from certkit.bundle.writer import record_line
from certkit.ground import canonical, files
from certkit.ground.errors import CertkitError
from certkit.imports import ImportFaultsError
from certkit.imports.splitter import split
from tests.support.importing import DATA, TELLS_PEAK, counts, imported, peak_of_import

if TYPE_CHECKING:
    from pathlib import Path

CSV = DATA / "records" / "runs.csv"
JSONL = DATA / "records" / "runs.jsonl"
HEADER = "run_id,domain,task_id,condition,outcome,steps_actual,quality_factor,recovered\n"


def example() -> Path:
    return files.packaged("templates", "mappings", "example.toml")


def test_the_example_mapping_reads_a_log_in_its_shape(tmp_path: Path) -> None:
    account, records = imported("records", CSV, tmp_path / "out", mapping=example())
    assert records[1] == {
        "measured": "derived",
        "run_id": "a2",
        "domain": "rail",
        "task_id": "rail/reroute",
        "condition": "adversarial",
        "outcome": "failure",
        "steps_actual": 9,
        "steps_oracle": 5,
        "violations": 2,
        "started_at": "2025-03-01T09:05:00+01:00",
    }
    assert [record["outcome"] for record in records] == [
        "success",
        "failure",
        "safe_halt",
        "success",
        "harness_error",
    ]
    assert records[3]["task_id"] == "road/close, then reopen"
    assert "violations" not in records[2]
    assert counts(account, "refused") == {"1 column that no record field takes": 5}
    assert counts(account, "filled")["violations"] == 3
    assert account.imported.options["mapping"].startswith("example.toml, sha256:")
    manifest = open_bundle(account.out).manifest
    assert (manifest.agent.name, manifest.agent.version, manifest.agent.provider) == (
        "dispatch-agent",
        "2.4.0",
        "example",
    )
    assert (manifest.protocol.origin, manifest.protocol.temperature) == ("measured", 0.0)


@pytest.mark.parametrize("shape", ["lines", "array", "packed"])
def test_our_own_names_need_no_mapping(tmp_path: Path, shape: str) -> None:
    data = JSONL.read_bytes()
    source = tmp_path / "rows"
    if shape == "array":
        data = b"[\n" + b",\n".join(data.splitlines()) + b"\n]"
    source.write_bytes(gzip.compress(data) if shape == "packed" else data)
    account, records = imported("records", source, tmp_path / "out", agent="mine")
    assert [record["run_id"] for record in records] == ["j1", "j2"]
    assert list(records[0].items())[-1] == ("x_shift", "early")
    assert list(records[1]) == ["run_id", "domain", "task_id", "condition", "outcome"]
    assert "violations" not in records[1]
    assert counts(account, "refused") == {"1 column that no record field takes": 1}


def test_numbers_name_agents(tmp_path: Path) -> None:
    rows = [{"task_id": "t", "domain": "d", "condition": "nominal", "outcome": "success"}] * 2
    source = tmp_path / "rows.jsonl"
    source.write_bytes(b"".join(canonical.line(row | {"agent_id": i}) for i, row in enumerate(rows, 1)))
    with pytest.raises(CertkitError, match="2 agents"):
        imported(None, source, tmp_path / "out")


def test_an_agent_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CertkitError) as caught:
        imported("records", JSONL, tmp_path / "out")
    assert caught.value.code == "import.choice-needed"
    assert "--agent" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("cells", "pointer", "expected"),
    [
        ("1.5,,", "/steps_actual", "an integer"),
        ("1.00,,", "/steps_actual", "an integer"),
        ("07,,", "/steps_actual", "an integer"),
        ("7 0,,", "/steps_actual", "an integer"),
        ("\u0667,,", "/steps_actual", "an integer"),
        (",.5,", "/quality_factor", "a number"),
        (",nan,", "/quality_factor", "a number"),
        (",,yes", "/recovered", "true or false"),
        (",,TRUE", "/recovered", "true or false"),
    ],
)
def test_cells_are_converted_strictly(tmp_path: Path, cells: str, pointer: str, expected: str) -> None:
    source = tmp_path / "runs.csv"
    source.write_text(HEADER + "r1,d,t,tool_failure,success,,,\n" + f"r2,d,t,tool_failure,success,{cells}\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert [(f.file, f.line, f.pointer, f.expected) for f in caught.value.faults] == [
        ("runs.csv", 3, pointer, expected)
    ]
    assert not (tmp_path / "out").exists()


def test_values_and_rules_are_checked_at_the_import(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    source.write_text(
        HEADER
        + "r1,d,t,nominal,success,,,true\n"
        + "r2,d,t,sunny,success,,,\n"
        + "r3,d,t,tool_failure,success,,1.5,\n"
        + ",d,t,tool_failure,success,,,\n"
    )
    with pytest.raises(ImportFaultsError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert [(fault.line, fault.pointer, fault.code) for fault in caught.value.faults] == [
        (2, "/recovered", "record.nominal-with-fault"),
        (3, "/condition", "record.value"),
        (4, "/quality_factor", "record.value"),
        (5, "/run_id", "record.missing-field"),
    ]


def test_names_used_twice_are_refused_at_their_lines(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    source.write_text(
        "run_id,domain,task_id,condition,outcome,sequence\n"
        "r1,d,t,nominal,success,1\n"
        "r2,d,u,nominal,success,2\n"
        "r1,d,t,nominal,success,3\n"
        "r4,e,t,nominal,success,2\n"
    )
    with pytest.raises(ImportFaultsError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert sorted((fault.line, fault.code) for fault in caught.value.faults) == [
        (4, "record.duplicate-run-id"),
        (5, "record.duplicate-sequence"),
        (5, "record.task-in-two-domains"),
    ]
    assert {fault.file for fault in caught.value.faults} == {"runs.csv"}


def test_a_name_used_twice_on_one_line_is_refused(tmp_path: Path) -> None:
    row = '{"run_id": "r1", "domain": "d", "task_id": "t", "condition": "nominal", "outcome": "success"}'
    source = tmp_path / "runs.json"
    source.write_text(f"[{row}, {row}]")
    with pytest.raises(ImportFaultsError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert [(fault.line, fault.code) for fault in caught.value.faults] == [(1, "record.duplicate-run-id")]


def test_like_faults_are_shown_together_with_their_first_lines(tmp_path: Path) -> None:
    source = tmp_path / "runs.jsonl"
    source.write_bytes(b"{}\n" * 12 + b"\n" * 10 + b'{"run_id": NaN}\n' * 100)
    with pytest.raises(ImportFaultsError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert caught.value.total == 12 + 10 + 100
    assert [fault.line for fault in caught.value.faults] == list(range(1, 51))
    assert "122 problems" in str(caught.value)
    assert "100 rows (first runs.jsonl:23, 24, 25)" in str(caught.value)


@pytest.mark.parametrize(
    ("mapping", "word"),
    [
        ('[columns]\nspeed = "v"', "speed"),
        ('[columns]\ndomain = "area"\n[constants]\ndomain = "x"', "domain"),
        ('[columns]\ndomain = "nowhere"', "nowhere"),
        ("[columns]\ndomain = 3", "/columns/domain"),
        ("unknown = 1", "/unknown"),
        ("[columns", "not TOML"),
        ('[protocol]\ntemperature = "cold"', "/protocol/temperature"),
        ("[constants]\ndomain = 2025-01-01", "JSON"),
        ("[read]\ncase_insensitiv = true", "did you mean 'case_insensitive'?"),
        ('[column]\ndomain = "area"', "did you mean 'columns'?"),
        ('[columns]\ntask = "id"', "did you mean 'task_id'?"),
        ('[columns]\nx_o = "note"', "did you mean 'notes'?"),
        ('[read]\ntimezone = "Berlin"', "no time zone"),
        ('[values.outcome]\nsucces = ["ok"]', "did you mean 'success'?"),
        ("[read]\nencoding = 'foo'", "no text encoding"),
        ("[values.domain]\nx = 'NAME'", "stands for a name of yours"),
        ("[constants]\ndomain = 'NAME'", "stands for a name of yours"),
        ('[when.condition]\nnominel = "otherwise"', "did you mean 'nominal'?"),
    ],
)
def test_wrong_mappings_are_refused(tmp_path: Path, mapping: str, word: str) -> None:
    file = tmp_path / "map.toml"
    file.write_text(mapping)
    with pytest.raises(CertkitError) as caught:
        imported("records", JSONL, tmp_path / "out", agent="mine", mapping=file)
    assert caught.value.code == "import.mapping"
    assert word in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_run_ids_from_lines_and_values_that_are_not_text(tmp_path: Path) -> None:
    source, file = tmp_path / "runs.jsonl", tmp_path / "map.toml"
    source.write_bytes(b'{"ok": true, "kind": 0, "task": "t"}\n{"ok": false, "kind": 1, "task": "t"}\n')
    file.write_text(
        "domain_before_task = true\n"
        '[columns]\ntask_id = "task"\noutcome = "ok"\ncondition = "kind"\n'
        '[values.outcome]\ntrue = "success"\nfalse = "failure"\n'
        '[values.condition]\n0 = "nominal"\n1 = "stochastic"\n'
        '[constants]\ndomain = "d"\n[agent]\nname = "a"\n'
    )
    account, records = imported("records", source, tmp_path / "out", mapping=file)
    assert [(r["run_id"], r["task_id"], r["condition"], r["outcome"]) for r in records] == [
        ("runs.jsonl:1", "d/t", "nominal", "success"),
        ("runs.jsonl:2", "d/t", "stochastic", "failure"),
    ]
    assert account.agent.version == "unversioned"


def test_text_is_not_a_number_in_json(tmp_path: Path) -> None:
    source = tmp_path / "runs.jsonl"
    source.write_bytes(JSONL.read_bytes().replace(b'"violations": 0', b'"violations": "0"'))
    with pytest.raises(ImportFaultsError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert [(fault.line, fault.pointer, fault.code) for fault in caught.value.faults] == [
        (1, "/violations", "record.type")
    ]


def test_a_quoted_cell_may_hold_line_ends_and_lines_stay_right(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    source.write_bytes(
        b"\xef\xbb\xbf"
        + HEADER.replace("\n", ",note\r\n").encode()
        + b'r1,d,t,nominal,success,,,,"two\r\nlines"\r\nr2,d,t,nominal,great,,,,x\r\n'
    )
    with pytest.raises(ImportFaultsError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert [(fault.line, fault.pointer) for fault in caught.value.faults] == [(4, "/outcome")]


@pytest.mark.parametrize(
    "text", ["", "a,a\n1,2\n", "a,,b\n1,2,3\n", 'run_id,domain\n"open,d\n', 'run_id,domain\n"x"y,d\n']
)
def test_broken_csv_is_refused(tmp_path: Path, text: str) -> None:
    source = tmp_path / "runs.csv"
    source.write_text(text)
    with pytest.raises(CertkitError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert caught.value.code == "import.source"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"Title;;\ntask;domain;x\n", "2 of 3 have no name here"),
        (b"PAR1 and no more", "cannot be read as Parquet"),
    ],
)
def test_a_table_that_cannot_be_read_says_why_and_what_to_do(tmp_path: Path, data: bytes, word: str) -> None:
    (tmp_path / "runs").write_bytes(data)
    with pytest.raises(CertkitError, match=word) as caught:
        imported(None, tmp_path / "runs", tmp_path / "out", agent="mine")
    assert caught.value.hint


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_sheets_as_excel_writes_them_are_read(tmp_path: Path, encoding: str) -> None:
    source = tmp_path / "runs.csv"
    source.write_text("sep=;\ntask;domain;condition;passed\nt;Büro;nominal;True\n", encoding=encoding)
    _, [record] = imported(None, source, tmp_path / "out", agent="mine")
    assert (record["run_id"], record["domain"], record["outcome"]) == ("runs.csv:3", "Büro", "success")


def test_instants_of_parquet_need_no_further_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytz", None)
    at = dt.datetime(2026, 1, 31, 9, 5, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    times = pa.array([at], pa.timestamp("us", "Europe/Berlin"))
    nested = pa.StructArray.from_arrays([pa.array([[at]])], ["at"])
    table = pa.table({"task_id": ["t"], "started_at": times, "ok": [1], 'the "rest"': nested})
    parquet.write_table(table, tmp_path / "runs.parquet")
    options = {"agent": "a", "domain": "d", "condition": "nominal", "success": "ok == 1"}
    _, [record] = imported(None, tmp_path / "runs.parquet", tmp_path / "out", **options)
    assert record["started_at"] == "2026-01-31T08:05:00+00:00"


GOOD: dict[str, Any] = {
    "run_id": "r1",
    "domain": "d",
    "task_id": "t",
    "condition": "tool_failure",
    "outcome": "success",
    "steps_actual": 7,
    "steps_oracle": 5,
    "quality_factor": 0.5,
    "recovered": True,
    "started_at": "2026-01-31T09:05:00+01:00",
}
CORPUS: dict[str, tuple[dict[str, Any], str | None]] = {
    "good": ({}, None),
    "a word that is none": ({"outcome": "great"}, "record.value"),
    "a condition that is none": ({"condition": "sunny"}, "record.value"),
    "a number out of range": ({"quality_factor": 1.5}, "record.value"),
    "no steps": ({"steps_actual": 0}, "record.value"),
    "shorter than the oracle": ({"steps_actual": 4}, "record.shorter-than-oracle"),
    "a nominal run with a recovery": ({"condition": "nominal"}, "record.nominal-with-fault"),
    "a success that did not recover": ({"recovered": False}, "record.success-not-recovered"),
    "a harness error with a violation": (
        {"outcome": "harness_error", "violations": 1, "recovered": None},
        "record.harness-error-scored",
    ),
    "a day that is none": ({"started_at": "2026-02-31T09:05:00Z"}, "record.value"),
    "no name": ({"task_id": ""}, "record.missing-field"),
}


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("name", list(CORPUS))
def test_bad_records_have_the_same_verdict_in_every_form(tmp_path: Path, name: str, form: str) -> None:
    changes, code = CORPUS[name]
    row = {key: value for key, value in (GOOD | changes).items() if value is not None}
    path = tmp_path / f"rows.{form}"
    if form == "jsonl":
        path.write_bytes(canonical.line(row))
    elif form == "csv":
        cells = [
            value if isinstance(value, str) else canonical.line(value).decode().strip()
            for value in row.values()
        ]
        path.write_text(",".join(row) + "\n" + ",".join(cells) + "\n")
    else:
        parquet.write_table(pa.table({key: [value] for key, value in row.items()}), path)
    if code is None:
        _, [record] = imported(None, path, tmp_path / "out", agent="a")
        assert record == row
        return
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, path, tmp_path / "out", agent="a")
    assert {fault.code for fault in caught.value.faults} == {code}


def test_a_success_that_did_not_recover_is_mended_as_its_hint_says(tmp_path: Path) -> None:
    rows = "RESULT,RECOVERED,task_id\npass,no,a\npass,yes,b\nfail,no,c\n"
    (tmp_path / "rows.csv").write_text(rows)
    start = (
        "[constants]\ndomain = 'd'\ncondition = 'stochastic'\n"
        "[when.outcome]\nsuccess = \"RESULT == 'pass'\"\nfailure = 'otherwise'\n"
    )
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(
        f"[columns]\nrecovered = 'RECOVERED'\n{start}[values.recovered]\nyes = true\nno = false\n"
    )
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, tmp_path / "rows.csv", tmp_path / "out", agent="mine", mapping=mapping)
    (fault,) = caught.value.faults
    _, _, told = fault.hint.partition("under `[when.recovered]`")
    mapping.write_text("\n".join([start, "[when.recovered]", *re.findall("`([^`]+ = [^`]+)`", told)]))
    _, records = imported(None, tmp_path / "rows.csv", tmp_path / "out", agent="mine", mapping=mapping)
    assert [record.get("recovered") for record in records] == [None, True, False]


def test_an_empty_condition_is_a_fault_and_a_blank_row_is_counted(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    row = "r1,d,t,nominal,success,,,\n"
    source.write_text(f"{HEADER}{row},, ,,,,,\n\nr2,d,t,,success,,,\n")
    with pytest.raises(ImportFaultsError) as caught:
        imported("records", source, tmp_path / "out", agent="mine")
    assert [(f.line, f.pointer, f.code, f.found) for f in caught.value.faults] == [
        (5, "/condition", "record.missing-field", "nothing")
    ]
    source.write_text(f"{HEADER}{row},, ,,,,,\n\n")
    account, records = imported("records", source, tmp_path / "out", agent="mine")
    assert len(records) == 1
    assert counts(account, "refused") == {"blank rows": 1}


@pytest.mark.parametrize("column", ["agent", "Agent", "MODEL", "agent_id", "llm", "model_name"])
def test_a_column_in_any_case_names_the_agent(tmp_path: Path, column: str) -> None:
    source = tmp_path / "runs.csv"
    rows = [f"r{i},d,t,nominal,success,{agent}\n" for i, agent in enumerate("ab")]
    source.write_text(f"run_id,domain,task_id,condition,outcome,{column}\n{''.join(rows)}")
    with pytest.raises(CertkitError, match="holds 2 agents: a, b") as caught:
        imported("records", source, tmp_path / "out")
    assert caught.value.code == "import.choice-needed"


def test_the_account_names_what_is_left_out_and_the_column_of_the_agent(tmp_path: Path) -> None:
    source = tmp_path / "runs.jsonl"
    row = {
        "run": {"id": "r1", "seed": 1, "started": 2},
        "model": "bot",
        "version": "0.9 b",
        "usage": 3,
        "score": 1,
    } | {key: GOOD[key] for key in ("task_id", "domain", "outcome")}
    source.write_bytes(canonical.line(row | {"condition": "nominal"}))
    (tmp_path / "map.toml").write_text('[columns]\nrun_id = "run.id"\n[when.x_kind]\nnamed = "score == 1"\n')
    account, _ = imported(None, source, tmp_path / "out", mapping=tmp_path / "map.toml")
    told = {note.what: note.detail for note in account.imported.notes}
    assert told["3 columns that no record field takes"] == "run.seed, run.started, usage"
    assert (told["agent"], account.agent.name, account.agent.version) == ("from 'model'", "bot", "0.9 b")


SHEET = "task,domain,condition,outcome,agent"
CELLS = "t,d,nominal,success,b"


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        (f"{SHEET}\n{CELLS}\nTotal,,,1 of 1,\n", "runs.csv:3 /domain: expected a value for domain", "map"),
        (f"Report\n{SHEET}\n{CELLS}\n", "4 of 5 have no name here", "remove a title"),
        (f"{SHEET},,\n{CELLS},,\n{CELLS},,x\n", "2 of 7 have no name here", "give each column"),
        ("Task,,Domain,\nt,,d,\n", "1 of 3 have no name here", "give each column"),
        (
            f"{SHEET},quality_factor\n{CELLS},95%\n",
            "remove the %: as a share 95% is 0.95",
            "correct these rows",
        ),
        (f"\n{SHEET}\n{CELLS}\n", "is blank here", "remove the blank lines"),
    ],
)
def test_what_is_no_table_of_runs_is_told_as_what_it_is(
    tmp_path: Path, text: str, found: str, hint: str
) -> None:
    source = tmp_path / "runs.csv"
    source.write_text(text)
    with pytest.raises(CertkitError) as caught:
        imported(None, source, tmp_path / "out")
    assert found in str(caught.value)
    assert hint in str(caught.value.hint)


def test_blank_columns_at_the_end_and_blanks_around_cells_are_no_part_of_a_table(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    source.write_text(f"{SHEET},,\nt,d,nominal,success ,b,,\n u,d,nominal,failure,b ,,\n")
    account, records = imported(None, source, tmp_path / "out")
    assert [(r["task_id"], r["outcome"]) for r in records] == [("t", "success"), ("u", "failure")]
    assert account.agent.name == "b"


def test_a_fault_names_its_row_where_cells_hold_line_ends(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    source.write_text(
        f'{SHEET},note\n{CELLS},"two\nlines"\nu,d,nominal,great,b,\nv,d,nominal,nice,b,\n' + f"{CELLS},\n" * 2
    )
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, source, tmp_path / "out")
    assert "2 rows (first runs.csv:4 (row 3), 5 (row 4)) /outcome" in str(caught.value)
    assert [fault["row"] for fault in caught.value.to_dict()["faults"]] == [3, 4]  # type: ignore[attr-defined]
    source.write_text(source.read_text().replace("two\n", "two "))
    with pytest.raises(ImportFaultsError, match=r"first runs.csv:3, 4\)"):
        imported(None, source, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "data", "told", "hint"),
    [
        ("runs.csv", b"%PDF-1.7\n", "a PDF document", "export the table"),
        ("runs.csv", SHEET.encode("utf-16-le"), "is no text", "for instance utf-16"),
        ("runs.zip", None, "a zip without an Inspect log", "unpack it"),
        ("", None, "no file in this folder begins like a log", "give the file itself"),
    ],
)
def test_what_is_no_log_is_told_as_what_it_is(
    tmp_path: Path, name: str, data: bytes | None, told: str, hint: str
) -> None:
    source = tmp_path / "given" / name
    (tmp_path / "given").mkdir()
    if data is not None:
        source.write_bytes(data)
    elif name:
        with zipfile.ZipFile(source, "w") as file:
            file.writestr("runs.csv", SHEET)
    for table in () if name else ("a.csv", "b.csv"):
        (source / table).write_text(SHEET)
    with pytest.raises(CertkitError, match=told) as caught:
        imported(None, source, tmp_path / "out")
    assert hint in str(caught.value.hint)


def test_a_byte_order_mark_before_json_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "runs.jsonl"
    source.write_bytes(b"\xef\xbb\xbf" + canonical.line(GOOD))
    assert len(imported(None, source, tmp_path / "out", agent="mine")[1]) == 1


def test_a_mapping_may_say_which_agent_was_evaluated(tmp_path: Path) -> None:
    rows = [GOOD | {"run_id": rival, "a": {"model": "x"}, "b": {"model": rival}} for rival in "yz"]
    (tmp_path / "runs.jsonl").write_bytes(b"".join(map(canonical.line, rows)))
    (tmp_path / "map.toml").write_text('[agent]\nname = "x"\nversion = "1"\n')
    agent = imported(None, tmp_path / "runs.jsonl", tmp_path / "out", mapping=tmp_path / "map.toml")[0].agent
    assert (agent.name, agent.version, agent.components) == ("x", "1", ())


@pytest.mark.parametrize(
    ("more", "version"),
    [
        (
            {
                "judge": {"release": "3"},
                "dataset": {"snapshot": "2026-01"},
                "judge_snapshots": {"release": "4"},
            },
            None,
        ),
        ({"release": False}, None),
        ({"release": ""}, None),
        ({"release": "1.5"}, "1.5"),
        ({"checkpoint": 7}, "7"),
    ],
)
def test_what_tells_the_version_of_the_agent(
    tmp_path: Path, more: dict[str, Any], version: str | None
) -> None:
    (tmp_path / "runs.jsonl").write_bytes(canonical.line(GOOD | {"agent": "a"} | more))
    agent = imported(None, tmp_path / "runs.jsonl", tmp_path / "out")[0].agent
    assert (agent.name, agent.version) == ("a", version or "unversioned")


def test_models_and_versions_beside_an_agent_stand_in_the_manifest(tmp_path: Path) -> None:
    row = GOOD | {"agent": "helper", "model": "gpt-4", "agent_version": "2", "prompt_version": "p3"}
    (tmp_path / "runs.jsonl").write_bytes(canonical.line(row | {"checkpoint": 500}))
    agent = imported(None, tmp_path / "runs.jsonl", tmp_path / "out")[0].agent
    assert (agent.name, agent.version) == ("helper", "2, 500, p3")
    assert [(part.role, part.name, part.pinned) for part in agent.components] == [("model", "gpt-4", False)]


def test_rows_that_name_no_agent_beside_rows_that_do_are_told(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    source.write_text("task_id,agent,domain,condition,outcome\nt,,d,nominal,success\nu,a,d,nominal,success\n")
    for agent in (None, "a"):  # a name picks no rows while others have none
        with pytest.raises(CertkitError, match=r"holds 2 agents: \(unnamed\), a") as caught:
            imported("records", source, tmp_path / "out", agent=agent)
        assert caught.value.hint == "write the agent's name also in the rows that have none"


@TELLS_PEAK
@pytest.mark.parametrize("head", [b"task;success\n", b""], ids=["a row", "the header"])
def test_a_line_of_millions_of_cells_is_refused_within_300_megabytes(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(head + b";" * 15_000_000 + b"\n")
    code, peak = peak_of_import(path)
    assert (code, peak <= 300_000_000) == ("json.too-large", True)


ROW = {"agent": "A", "task_id": "t", "domain": "d", "condition": "nominal", "outcome": "success"}


def test_the_items_of_an_array_on_one_line_are_runs_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_bytes(canonical.canonical([ROW, ROW, ROW | {"task_id": "u"}]))
    _, records = imported(None, tmp_path / "one.json", tmp_path / "out")
    assert [record["run_id"] for record in records] == ["one.json:1", "one.json:1.1", "one.json:1.2"]


def test_whole_numbers_as_pandas_writes_them_and_long_cells_are_read(tmp_path: Path) -> None:
    names = "agent;task_id;domain;condition;outcome;steps_actual;Unnamed: 0;x_said"
    path = tmp_path / "rows.csv"
    path.write_text(f"{names}\nA;t;d;nominal;success;13.0;0;{'y' * 200_000}\n")
    account, [record] = imported(None, path, tmp_path / "out")
    assert (record["steps_actual"], len(record["x_said"])) == (13, 200_000)
    assert not counts(account, "refused")  # the numbers of the rows hold nothing back
    path.write_text(f"{names}\nA;t;d;nominal;success;13,0;0;y\n")
    (tmp_path / "map.toml").write_text("[read]\ndecimal_comma = true\n")
    _, [record] = imported(None, path, tmp_path / "comma", mapping=tmp_path / "map.toml")
    assert record["steps_actual"] == 13


def test_a_column_called_run_id_that_repeats_has_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"".join(canonical.line(ROW | {"run_id": "r"}) for _ in range(2)))
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, tmp_path / "rows.jsonl", tmp_path / "out")
    assert "if the column names no runs, rename it" in str(caught.value.hint)


def test_another_name_for_the_agent_is_told(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(canonical.line(ROW))
    account, _ = imported(None, tmp_path / "rows.jsonl", tmp_path / "out", agent="B")
    assert counts(account, "odd") == {"runs of 'A', as the log names it": 1}
    assert "agent" not in counts(account, "filled")


@TELLS_PEAK
@pytest.mark.parametrize("form", ["names", "scores"])
def test_long_names_and_scores_are_not_remembered(tmp_path: Path, form: str) -> None:
    lead = {"id": 1, "epoch": 1, "scores": {"s": {"value": 1}}}
    path = tmp_path / "log.json"
    with path.open("wb") as stream:
        stream.write(b'{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[')
        for number in range(200):
            text = f"{number}" + "x" * 1_000_000
            more = {"metadata": {text: 1}} if form == "names" else {"scores": {"s": {"value": text}}}
            stream.write(canonical.line(lead | {"id": number} | more) + b"," * (number < 199))
        stream.write(b"]}")
    _, peak = peak_of_import(path)
    assert peak <= 200_000_000


def test_a_table_with_a_very_long_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(canonical.line(ROW | {"x" * 1001: 1}))
    with pytest.raises(ImportFaultsError, match="names of at most 1,000 characters"):
        imported(None, tmp_path / "rows.jsonl", tmp_path / "out")


def test_many_marks_beside_a_long_text_are_cut_in_time() -> None:
    row = ROW | {"x_said": "y" * (8 << 20)} | {f"x_{at}": 1 for at in range(2_000)}
    pieces = list(split([canonical.line([row, ROW])], "a", 1 << 24))
    assert [canonical.loads(piece.data, max_bytes=1 << 24) for piece in pieces] == [row, ROW]


def test_versions_in_any_of_the_usual_columns_are_not_pooled(tmp_path: Path) -> None:
    rows = [ROW | {"prompt_version": version, "task_id": version} for version in "12"]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(map(canonical.line, rows)))
    with pytest.raises(CertkitError, match="several versions"):
        imported(None, tmp_path / "rows.jsonl", tmp_path / "out")


@hypothesis.given(
    st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.none() | st.floats(-1e9, 1e9))
)
def test_a_record_is_written_as_the_standard_library_does(row: dict[str, Any]) -> None:
    assert record_line(row) == canonical.line(row)


def test_every_character_is_written_as_by_the_standard_library() -> None:
    row = {chr(code): chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000}
    assert record_line(row) == canonical.line(row)


@pytest.mark.parametrize("column", ["agent", "agent_name", "model", "model_id", "Model"])
def test_agents_that_stand_in_the_rows_are_not_pooled(tmp_path: Path, column: str) -> None:
    source = tmp_path / "runs.jsonl"
    rows = [GOOD | {"run_id": f"r{i}", "task_id": f"t{i}", column: "ab"[i % 2]} for i in range(4)]
    source.write_bytes(b"".join(map(canonical.line, rows)))
    with pytest.raises(CertkitError, match="holds 2 agents: a, b"):
        imported("records", source, tmp_path / "none")
    account, records = imported("records", source, tmp_path / "out", agent="a")
    assert (account.agent.name, len(records)) == ("a", 2)
    assert counts(account, "refused") == {"runs of other agents": 2}


def test_a_text_as_long_as_a_prompt_names_no_agent(tmp_path: Path) -> None:
    source = tmp_path / "runs.jsonl"
    source.write_bytes(canonical.line(GOOD | {"model": "x" * 201}))
    with pytest.raises(CertkitError, match="does not name the agent"):
        imported("records", source, tmp_path / "none")


def test_nan_is_a_blank_of_a_table_and_infinity_is_refused(tmp_path: Path) -> None:
    path, file = tmp_path / "runs.parquet", tmp_path / "map.toml"
    file.write_text('[when.outcome]\nfailure = "score < 0.5"\nsuccess = "otherwise"\n')
    given: dict[str, Any] = {"agent": "a", "domain": "d", "condition": "nominal"}

    def wrote(score: str, cost: str) -> None:
        table = {"task_id": ["t"], "score": [float(score)], "cost": [float(cost)]}
        parquet.write_table(pa.table(table), path)

    wrote("0.5", "nan")
    _, [record] = imported(None, path, tmp_path / "out", mapping=file, **given)
    assert record["outcome"] == "success"
    wrote("nan", "1")
    _, [record] = imported(None, path, tmp_path / "blank", mapping=file, **given)
    assert record["outcome"] == "harness_error"
    wrote("1", "-inf")
    with pytest.raises(ImportFaultsError, match="/cost: expected a finite number"):
        imported(None, path, tmp_path / "none", mapping=file, **given)


def test_a_printed_command_repeats_the_format_that_the_user_named(tmp_path: Path) -> None:
    source = tmp_path / "runs.csv"
    source.write_text("task_id,agent,outcome\nt,a,success\n")
    for named, log in (("records", f"records {source}"), (None, str(source))):
        with pytest.raises(ImportFaultsError) as caught:
            imported(named, source, tmp_path / "out", like=tmp_path / "first")
        assert f"certkit import {log} --domain NAME" in str(caught.value.hint)
        assert f"--like {tmp_path / 'first'} -o" in str(caught.value.hint)
