"""Parquet and Arrow record files say what the same lines of JSON say, faults included."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certkit import workflow
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.record import parquet
from certkit.record.faults import RecordFaultsError
from tests.support import bundles, forms
from tests.support.bundles import campaign, lines, run
from tests.support.running import program

if TYPE_CHECKING:
    from pathlib import Path


SUFFIXES = (".parquet", ".arrow")


def quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def as_parquet(source: Path, target: Path, columns: str = "*") -> None:
    """Turn a file of JSON lines into Parquet, in its order, all times as text."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
        # A type is guessed from all rows, and a column of text stays text.
        rows = f"read_json({quoted(source)}, format='newline_delimited', sample_size=-1)"
        query = f"SELECT {columns} FROM {rows}"  # noqa: S608 - the test's own text
        connection.execute(f"COPY ({query}) TO {quoted(target)} (FORMAT parquet)")


def select(target: Path, query: str) -> None:
    """Write what a query gives as Parquet."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'Asia/Kolkata'")
        connection.execute(f"COPY ({query}) TO {quoted(target)} (FORMAT parquet)")


def bundle(root: Path, query: str, suffix: str = ".parquet") -> Path:
    bundles.write(root, {})
    select(root / "records" / "a.parquet", query)
    if suffix == ".arrow":
        forms.as_arrow(root / "records" / "a.parquet")
    return root


def row(**columns: str) -> str:
    """Return SQL for one record whose columns have the given expressions."""
    base = {
        "run_id": "'1'",
        "domain": "'d'",
        "task_id": "'t'",
        "condition": "'nominal'",
        "outcome": "'success'",
    }
    return "SELECT " + ", ".join(f'{value} AS "{name}"' for name, value in (base | columns).items())


def verdict(root: Path) -> dict[str, Any]:
    document = workflow.assess(root).to_dict()
    del document["bundle"]["digest"]
    return document


def places(root: Path) -> list[tuple[str, int, str, str]]:
    with pytest.raises(RecordFaultsError) as caught:
        bundles.summary(root)
    return [(fault.file, fault.line, fault.pointer, fault.code) for fault in caught.value.faults]


def test_a_program_that_read_parquet_ends_without_a_word_more(tmp_path: Path) -> None:
    """DuckDB tells of what was not collected at exit."""
    assert "nanobind" not in program("assess", bundle(tmp_path / "b", row()), "-q").err


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_give_the_verdict_of_the_same_lines(tmp_path: Path, suffix: str) -> None:
    source = bundles.of(tmp_path / "json", campaign(1200))
    other = bundles.write(tmp_path / "parquet", {})
    as_parquet(
        source / "records" / "a.jsonl",
        other / "records" / "a.parquet",
        "* REPLACE (CAST(started_at AS TIMESTAMPTZ) AS started_at)",
    )
    if suffix == ".arrow":
        forms.as_arrow(other / "records" / "a.parquet", rows=500)
    assert canonical.canonical(verdict(other)) == canonical.canonical(verdict(source))


def test_all_forms_may_stand_side_by_side(tmp_path: Path) -> None:
    runs = campaign(900)
    whole = bundles.of(tmp_path / "whole", runs)
    mixed = bundles.write(tmp_path / "mixed", {"b.jsonl": lines(runs[600:])})
    for name, part in (("c.parquet", runs[:300]), ("d.parquet", runs[300:600])):
        (tmp_path / "part.jsonl").write_bytes(lines(part))
        as_parquet(
            tmp_path / "part.jsonl",
            mixed / "records" / name,
            "* REPLACE (CAST(started_at AS TIMESTAMPTZ) AS started_at)",
        )
    forms.as_arrow(mixed / "records" / "d.parquet")
    assert verdict(mixed) == verdict(whole)


def test_a_path_is_no_pattern_and_no_sql(tmp_path: Path) -> None:
    folder = tmp_path / "a*b?[c] d'e;--"
    folder.mkdir()
    root = bundle(folder / "bundle", row())
    bundle(tmp_path / "aXbYc d'e;--", row())  # what the pattern would match
    assert bundles.summary(root).records == 1


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("TIMESTAMPTZ '2026-01-01 12:00:00.250001+05:30'", 1_767_249_000_250_001),
        ("TIMESTAMPTZ '1969-12-31 23:59:59.5+00'", -500_000),
        ("'2026-01-01T12:00:00+05:30'", 1_767_249_000_000_000),
    ],
)
def test_times_with_a_zone_are_instants(tmp_path: Path, column: str, expected: int) -> None:
    times = bundles.summary(bundle(tmp_path / "b", row(started_at=column))).times
    assert (times.first, times.last) == (expected, expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("trial", [0, -1])  # the second makes lines of the rows
def test_nanoseconds_are_instants_too(tmp_path: Path, suffix: str, trial: int) -> None:
    """As pandas writes them."""
    root = bundles.write(tmp_path / "b", {})
    path, noon = root / "records" / "a.parquet", 1_767_249_000_250_001_000
    columns = {name: [value] for name, value in run(0, trial=trial).items()}
    pq.write_table(pa.table(columns | {"started_at": pa.array([noon], pa.timestamp("ns", "UTC"))}), path)
    if suffix == ".arrow":
        forms.as_arrow(path)
    if trial < 0:
        assert places(root) == [(f"records/a{suffix}", 1, "/trial", "record.value")]
    else:
        assert bundles.summary(root).times.first == noon // 1000


FAULTS = [
    pytest.param("started_at", "TIMESTAMP '2026-01-01 12:00:00'", "record.value", id="time without zone"),
    pytest.param("started_at", "DATE '2026-01-01'", "record.value", id="date"),
    pytest.param("started_at", "'infinity'::TIMESTAMPTZ", "record.value", id="no end of time"),
    pytest.param("trial", "'8'", "record.type", id="text for integer"),
    pytest.param("trial", "1.5::DOUBLE", "record.type", id="fraction for integer"),
    pytest.param("trial", "true", "record.type", id="truth for integer"),
    pytest.param("trial", "[1]", "record.type", id="list for integer"),
    pytest.param("human_checked", "1", "record.type", id="integer for truth"),
    pytest.param("confidence", "2.0::DOUBLE", "record.value", id="out of range"),
    pytest.param("condition", "'Nominal'", "record.value", id="unknown condition"),
    pytest.param("fault_step", "1", "record.nominal-with-fault", id="contradiction"),
    pytest.param("domain", "NULL", "record.missing-field", id="null where required"),
]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("column", "value", "code"), FAULTS)
def test_a_wrong_column_is_named_with_its_row(
    tmp_path: Path, column: str, value: str, code: str, suffix: str
) -> None:
    required = {"condition": "'nominal'", "domain": "'d'"}
    good = row(**{"run_id": "'0'", column: required.get(column, "NULL")})
    query = f"{good} UNION ALL {row(**{column: value})}"
    root = bundle(tmp_path / "b", query, suffix)
    assert places(root) == [(f"records/a{suffix}", 2, f"/{column}", code)]


@pytest.mark.parametrize("value", ["'nan'::DOUBLE", "'inf'::DOUBLE"])
def test_numbers_that_json_has_not_are_refused(tmp_path: Path, value: str) -> None:
    [(file, number, _, code)] = places(bundle(tmp_path / "b", row(confidence=value)))
    assert (file, number, code) == ("records/a.parquet", 1, "record.json")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_are_counted_through_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr("certkit.record.parquet.BATCH", 30)
    monkeypatch.setattr("certkit.record.parquet.BLOCK", 1000)
    monkeypatch.setattr("certkit.record.parquet.ROWS", 7)
    query = (
        "SELECT CAST(i AS VARCHAR) run_id, 'd' \"domain\", 't' task_id, 'nominal' \"condition\", "
        "'success' outcome, CASE WHEN i IN (3, 90) THEN -1 ELSE 0 END trial FROM range(100) t(i)"
    )
    root = bundle(tmp_path / "b", query, suffix)
    assert places(root) == [(f"records/a{suffix}", row, "/trial", "record.value") for row in (4, 91)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_repetitions_are_found_across_forms(tmp_path: Path, suffix: str) -> None:
    root = bundle(tmp_path / "b", row(sequence="4"), suffix)
    (root / "records" / "b.jsonl").write_bytes(lines([run(1, sequence=4, task_id="t")]))
    assert places(root) == [
        ("records/b.jsonl", 1, "/run_id", "record.duplicate-run-id"),
        ("records/b.jsonl", 1, "/sequence", "record.duplicate-sequence"),
    ]


@pytest.mark.parametrize("kind", ["INTEGER", "HUGEINT", "UTINYINT", "DOUBLE", "DECIMAL(9,2)"])
def test_every_kind_of_number_is_a_number(tmp_path: Path, kind: str) -> None:
    root = bundle(tmp_path / "b", row(condition="'stochastic'", violations=f"3::{kind}"))
    assert bundles.summary(root).cells[0].tally.violations == 3


def test_text_of_every_kind_is_carried(tmp_path: Path) -> None:
    root = bundle(
        tmp_path / "b", row(domain="'é\"\\' || chr(10) || chr(128512)", x_list="[1, 2]", x_n="'nan'::DOUBLE")
    )
    summary = bundles.summary(root)
    assert summary.domains == ('é"\\\n\U0001f600',)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_rows_are_no_records(tmp_path: Path, suffix: str) -> None:
    assert bundles.summary(bundle(tmp_path / "b", row() + " WHERE false", suffix)).records == 0
    few = bundle(tmp_path / "few", "SELECT 1 AS trial WHERE false", suffix)
    assert bundles.summary(few).records == 0
    with pytest.raises(InputError, match="'alien' is not a field"):
        bundles.summary(bundle(tmp_path / "c", "SELECT 1 AS alien WHERE false", suffix))


@pytest.mark.parametrize("name", ["surprise", "X_note", "x_", 'x_"; DROP', "run_id "])
def test_a_column_that_is_no_field_refuses_the_file(tmp_path: Path, name: str) -> None:
    escaped = name.replace('"', '""')
    with pytest.raises(InputError) as caught:
        bundles.summary(bundle(tmp_path / "b", row(**{escaped: "1"})))
    assert caught.value.code == "bundle.parquet-unreadable"
    assert caught.value.where == "records/a.parquet"
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("data", [b"", b"PAR1", b"{}\n", b"PAR1" + b"\x00" * 100 + b"PAR1"])
def test_what_is_no_columns_is_refused(tmp_path: Path, data: bytes, suffix: str) -> None:
    with pytest.raises(InputError) as caught:
        bundles.summary(bundles.write(tmp_path / "b", {f"a{suffix}": data}))
    assert caught.value.code == "bundle.parquet-unreadable"
    assert caught.value.where == f"records/a{suffix}"
    assert "/dev/fd" not in str(caught.value)


def test_a_file_cut_off_is_refused(tmp_path: Path) -> None:
    root = bundle(tmp_path / "b", row())
    file = root / "records" / "a.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(InputError) as caught:
        bundles.summary(root)
    assert caught.value.code == "bundle.parquet-unreadable"


def test_a_missing_required_column_is_a_fault_of_every_row(tmp_path: Path) -> None:
    root = bundles.write(tmp_path / "b", {})
    select(root / "records" / "a.parquet", "SELECT CAST(i AS VARCHAR) run_id FROM range(2) t(i)")
    assert {(number, code) for _, number, _, code in places(root)} == {
        (1, "record.missing-field"),
        (2, "record.missing-field"),
    }


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a program's own peak")
def test_a_text_that_many_rows_repeat_does_not_fill_the_memory(tmp_path: Path) -> None:
    """Of a longer text than a record may have, no more is read than shows it."""
    root, long = bundles.write(tmp_path / "b", {}), pa.array(["x" * 10_000_000])
    columns = {name: ["d"] * 4000 for name in ("domain", "condition", "outcome")}
    columns |= {"run_id": [str(i) for i in range(4000)]}
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), long)
    table = pa.table(columns | {"task_id": repeated})
    pq.write_table(table, root / "records" / "a.parquet", dictionary_pagesize_limit=1 << 30)
    script = """
import sys
from pathlib import Path
from certkit.bundle.folder import open_bundle
from certkit.record.faults import RecordFaultsError
from certkit.summary.summarise import summarise
try:
    summarise(open_bundle(Path(sys.argv[1])))
except RecordFaultsError as error:
    assert any(fault.pointer == "/task_id" for fault in error.faults)
    status = Path("/proc/self/status").read_text()
    print(int(status.partition("VmHWM:")[2].split()[0]))
"""
    done = subprocess.run([sys.executable, "-c", script, root], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300_000


def test_a_query_that_the_user_interrupts_is_no_bug(tmp_path: Path) -> None:
    (path := tmp_path / "a.parquet").touch()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt), parquet.opened(path, "x", "a") as (connection, _):
            connection.execute("SELECT max(hash(i)) FROM range(1000000000000) AS t(i)").fetchall()
    finally:
        signal.signal(signal.SIGALRM, before)
