"""The fast reader against the slow one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from certkit.record.columns import Columns, Index
from certkit.record.reader import RecordReader, check_line, split_lines
from certkit.summary.reduce import reduce
from tests.support import strategies

if TYPE_CHECKING:
    from certkit.record.faults import Fault

STYLES = (
    strategies.compact,
    strategies.spaced,
    strategies.escaped,
    strategies.reversed_keys,
    strategies.with_nulls,
)
thorough = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

# What a producer gets wrong, as bytes put somewhere into a line.
TOKENS = (
    b'"run_id":"other",',
    *(b'"x_a":%s,' % value for value in (b"1", b"9007199254740993", b"1e400", b'{"k":[1]}', b'"\\ud800"')),
    *(b'"violations":%s,' % value for value in (b"null", b"8.0", b"-0", b'"8"', b"1e2", b"true")),
    *(b'"started_at":%s,' % value for value in (b'"2026-01-01T00:00:00Z"', b'"2026-02-30T00:00:00Z"', b'""')),
    *(b'"domain":null, "surprise":1, "split":"novel_fault", "traceability":3.0005,'.split()),
    *(b'NaN { } [ ] " \\ \\" \\u0061 , : 0 - . e'.split()),
    *(b"\xff", b"\xc3\xa9", b"\x00", b"\t", b" ", b"\r", b"\xef\xbb\xbf"),
)


@st.composite
def blocks(draw: st.DrawFn) -> list[bytes]:
    """Draw lines that are mostly alike and mostly valid, in one style, some of them damaged."""
    listed = draw(strategies.records(max_groups=3, max_count=6))
    style = draw(st.sampled_from(STYLES))
    written = [style(run).rstrip(b"\n") for run in listed]
    written = draw(st.sampled_from([written, written, written * 3]))
    for _ in range(draw(st.integers(0, 3))):
        if not written:
            break
        at = draw(st.integers(0, len(written) - 1))
        where = draw(st.one_of(st.sampled_from([1, 1]), st.integers(0, len(written[at]))))
        size = draw(st.sampled_from([0, 0, 1, 5]))
        written[at] = written[at][:where] + draw(st.sampled_from(TOKENS)) + written[at][where + size :]
    if draw(st.integers(0, 9)) == 0:
        written.insert(draw(st.integers(0, len(written))), b"")
    return written


def one_by_one(lines: list[bytes]) -> Columns | list[Fault]:
    """Read every line alone; this is what the fast reader must not differ from."""
    faults: list[Fault] = []
    records = []
    for number, line in enumerate(lines, 1):
        result = check_line(line, number)
        if isinstance(result, list):
            faults += result
        else:
            records.append(result)
    if faults:
        return faults
    return Columns.of_records(records)


def reduced(columns: Columns) -> dict[str, Any]:
    """Return all that the summary learns of some columns."""
    sums = reduce(columns, None)
    runs = {name: sums.column(name).tolist() for name in sums.runs}
    return structs.asdict(sums) | {
        "counts": sums.counts.tolist(),
        "groups": sums.groups.tobytes(),
        "runs": runs,
    }


def assert_same(found: Columns | list[Fault], wanted: Columns | list[Fault]) -> None:
    if isinstance(found, list) or isinstance(wanted, list):
        assert found == wanted
        return
    assert found.size == wanted.size
    assert reduced(found) == reduced(wanted)


@settings(parent=thorough, max_examples=36)
@given(st.lists(blocks(), min_size=1, max_size=3))
def test_the_fast_reader_says_what_the_slow_one_says(drawn: list[list[bytes]]) -> None:
    # One reader for several blocks, because it learns from each what the next may hold.
    reader = RecordReader()
    for lines in drawn:
        block = b"\n".join(lines) + b"\n"
        if not lines:
            continue
        wanted = one_by_one([*split_lines(block)])
        found = reader.read(block)
        assert_same(found, wanted)


@thorough
@given(blocks())
def test_a_missing_last_newline_changes_nothing(lines: list[bytes]) -> None:
    if not lines or not lines[-1]:
        return
    block = b"\n".join(lines)
    assert_same(RecordReader().read(block), RecordReader().read(block + b"\n"))


def test_the_blocks_reach_both_readers_and_both_answers() -> None:
    seen: set[str] = set()

    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(blocks())
    def collect(lines: list[bytes]) -> None:
        if lines:
            reader = RecordReader()
            seen.add(type(reader.read(b"\n".join(lines) + b"\n")).__name__)
            if reader._layout.decode(b"\n".join(lines) + b"\n", defaultdict(Index)) is not None:
                seen.add("fast")

    collect()
    assert seen == {"Columns", "Faults", "fast"}


@pytest.mark.parametrize(
    "token", [b"9007199254740993", b"123456789012345678901234567890", b"-9007199254740992"]
)
def test_an_integer_beyond_a_double_is_refused_by_both_readers(token: bytes) -> None:
    reader = RecordReader()
    row = b'{"run_id":"1","domain":"d","task_id":"t","condition":"nominal","outcome":"success","x_n":%s}\n'
    assert isinstance(reader.read(row % b"1"), Columns)
    found = reader.read(row % b"1" + row % token)
    assert isinstance(found, list)
    assert [(fault.line, fault.code) for fault in found] == [(2, "record.json")]
    # The largest that a double holds, and a float of any size, are fine.
    assert isinstance(reader.read(row % b"9007199254740991" + row % b"1e300"), Columns)
