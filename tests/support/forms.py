"""The same records as JSON lines, as Parquet, as Arrow and as CSV."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from pyarrow import ipc

from certkit.ground.errors import CertkitError
from certkit.record.faults import RecordFaultsError
from tests.support import breaking, bundles, strategies
from tests.support.importing import imported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.strategies import Run

_TYPES: Final[dict[frozenset[type], str]] = {
    frozenset(): "INTEGER",
    frozenset({str}): "VARCHAR",
    frozenset({bool}): "BOOLEAN",
    frozenset({int}): "BIGINT",
    frozenset({float}): "DOUBLE",
    frozenset({int, float}): "DOUBLE",
}


def parquet(path: Path, records: Sequence[Run]) -> bool:
    """Write records as Parquet; False where no table can hold them."""
    names = list(dict.fromkeys(name for record in records for name in record))
    kinds = {
        name: frozenset(type(record[name]) for record in records if record.get(name) is not None)
        for name in names
    }
    alike = len({name.casefold() for name in names}) < len(names)
    if alike or any(kind not in _TYPES for kind in kinds.values()):
        return False
    columns = ", ".join(f'"{name}" {_TYPES[kinds[name]]}' for name in names)
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({columns})")
        marks = ", ".join("?" * len(names))
        connection.executemany(
            f"INSERT INTO t VALUES ({marks})",  # noqa: S608 - marks alone
            [[record.get(name) for name in names] for record in records],
        )
        target = str(path).replace("'", "''")
        connection.execute(f"COPY t TO '{target}' (FORMAT parquet)")
    return True


def as_arrow(path: Path, rows: int = 3) -> None:
    """Write a Parquet file as Arrow in its place, `rows` in a batch."""
    table = pq.read_table(path)
    with ipc.new_file(path.with_suffix(".arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    path.unlink()


def places(root: Path) -> list[tuple[int, str, str]]:
    """Return line, pointer and code of every fault of a bundle's records; none where all are right."""
    try:
        bundles.summary(root)
    except RecordFaultsError as error:
        return [(fault.line, fault.pointer, fault.code) for fault in error.faults]
    return []


def refused_as_csv(folder: Path, records: Sequence[Run]) -> bool:
    """Tell whether an import of the records as CSV is refused."""
    source = folder / "runs.csv"
    names = list(dict.fromkeys(name for record in records for name in record))
    with source.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows([_cell(record.get(name)) for name in names] for record in records)
    try:
        imported("records", source, folder / "out", agent="a")
    except CertkitError:
        return True
    return False


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@st.composite
def files(draw: st.DrawFn) -> list[Run]:
    """Draw a file of records, sometimes with a broken one among them or alone."""
    listed = draw(strategies.records(max_groups=3, max_count=6))
    how = draw(st.sampled_from(["right", "among", "alone"]))
    if how == "right" and listed:
        return listed
    broken = draw(breaking.broken_records()).record
    return [*listed, broken] if how == "among" else [broken]


def differs(listed: list[Run]) -> None:
    """Raise where a file of records is not the same as JSON lines, as Parquet and as Arrow."""
    with tempfile.TemporaryDirectory() as folder:
        lines = bundles.of(Path(folder) / "lines", listed)
        columns = bundles.write(Path(folder) / "columns", {})
        path = columns / "records" / "a.parquet"
        if not parquet(path, listed):
            return
        try:
            as_lines = places(lines)
        except CertkitError as error:
            raise AssertionError(f"lines were refused as {error.code}") from error
        _compare(lines, as_lines, columns)
        as_arrow(path)
        _compare(lines, as_lines, columns)


def _compare(lines: Path, as_lines: list[tuple[int, str, str]], columns: Path) -> None:
    if any(code == "record.unknown-field" for *_, code in as_lines):
        with pytest.raises(CertkitError, match="is not a field of the record format"):
            places(columns)
        return
    assert places(columns) == as_lines
    if not as_lines:
        left, right = bundles.summary(lines), bundles.summary(columns)
        assert left.cells == right.cells
        assert left.window == right.window
        assert (left.times, left.likeness) == (right.times, right.likeness)
