"""The fast reader against the slow one, and its sums against sums made one record at a time."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from certkit.record.columns import Columns, Index
from certkit.record.reader import RecordReader, check_line, split_lines
from certkit.summary.reduce import reduce
from certkit.summary.summary import TALLY_FIELDS, pei25_sum, pei_sum
from tests.support import bundles, naive, strategies

if TYPE_CHECKING:
    from certkit.record.faults import Fault
    from certkit.summary.summary import Summary

Run = dict[str, Any]
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
    sums = reduce(columns)
    runs = {name: column.tolist() for name, column in sums.runs.items()}
    return structs.asdict(sums) | {
        "tallies": sums.tallies.tolist(),
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


def summarised(contents: strategies.Contents) -> Summary:
    with tempfile.TemporaryDirectory() as folder:
        return bundles.summary(contents.write(Path(folder) / "bundle"))


@thorough
@given(strategies.bundles(max_groups=5, max_count=12))
def test_every_sum_is_what_the_records_add_up_to(contents: strategies.Contents) -> None:
    summary = summarised(contents)
    found = {
        (str(cell.split), cell.domain, cell.condition): {
            name: value for name in TALLY_FIELDS if (value := getattr(cell.tally, name))
        }
        for cell in summary.cells
    }
    assert found == naive.tallies(contents.records)
    assert summary.records == len(contents.records)
    keys = [(cell.split, cell.domain, cell.condition) for cell in summary.cells]
    assert keys == sorted(keys)


@thorough
@given(strategies.bundles(max_groups=5, max_count=12))
def test_the_sums_of_planning_efficiency_are_exact(contents: strategies.Contents) -> None:
    for cell in summarised(contents).cells:
        key = (str(cell.split), cell.domain, cell.condition)
        assert pei_sum([cell]) == naive.pei_terms(contents.records)[key]
        assert pei25_sum([cell]) == naive.pei25_sums(contents.records)[key]


@thorough
@given(strategies.bundles(max_groups=5, max_count=12))
def test_clusters_add_up_to_their_cells(contents: strategies.Contents) -> None:
    summary = summarised(contents)
    clusters = summary.clusters
    for name, values in clusters.sums.items():
        for number, cell in enumerate(summary.cells):
            assert int(values[clusters.cell == number].sum()) == getattr(cell.tally, name), name
    families = {
        (naive.key(run), family, run["task_id"])
        for run, family in zip(contents.records, naive.families(contents.records), strict=True)
    }
    assert len(clusters.cell) == len(families)
    rows = list(zip(clusters.cell.tolist(), clusters.cluster.tolist(), clusters.task.tolist(), strict=True))
    assert rows == sorted(rows)


def ordered(runs: list[Run]) -> list[Run] | None:
    """Return the standard runs in their order of time, or None where there is none."""
    runs = [run for run in runs if run.get("split") in {None, "standard"}]
    if runs and all(run.get("sequence") is not None for run in runs):
        return sorted(runs, key=lambda run: int(run["sequence"]))
    if not runs or any(run.get("started_at") is None for run in runs):
        return None
    moments = [datetime.fromisoformat(run["started_at"]) for run in runs]
    if len(set(moments)) < len(moments):
        return None
    return [run for _, run in sorted(zip(moments, runs, strict=True), key=lambda pair: pair[0])]


@thorough
@given(strategies.bundles())
def test_the_window_holds_the_latest_runs_in_their_order(contents: strategies.Contents) -> None:
    window = summarised(contents).window
    wanted = ordered(contents.records)
    if wanted is None:
        assert window.order is None
        assert window.reason
        assert not window.latest
        return
    assert window.runs == len(wanted)
    assert [run.success for run in window.latest] == [run["outcome"] == "success" for run in wanted[-100:]]
    for found, run in zip(window.latest, wanted[-100:], strict=True):
        assert (None if found.pei is None else Fraction(*found.pei)) == naive.efficiency(run)[0]
        recovery = (
            naive.is_fault(run) and run["outcome"] == "success" and run.get("fault_took_hold") is not False
        )
        manners = {"guided": 1, "unguided": 0, "silent": -1, "undecidable": -2}
        assert found.irs == (manners[naive.manner(run)] if recovery else None)
    failed = [i for i, run in enumerate(wanted) if run["outcome"] != "success"]
    assert (window.failures, window.failure_moment) == (len(failed), sum(failed))


@thorough
@given(strategies.bundles())
def test_the_tenths_of_the_order_add_up(contents: strategies.Contents) -> None:
    window = summarised(contents).window
    wanted = ordered(contents.records)
    if wanted is None or len(wanted) < 10:
        assert window.stretches == ()
        return
    domains = {run["domain"] for run in wanted}
    start = 0
    for i, stretch in enumerate(window.stretches):
        part = wanted[start : len(wanted) * (i + 1) // 10]
        start += len(part)
        sums = Counter[str]()
        for run in part:
            tally = naive.tally(run)
            sums.update({**tally, "pei_squares": tally["pei_fixed"] ** 2})
        assert stretch.runs == len(part)
        assert stretch.failures == len(part) - sums["success"]
        for name in (
            "pei_n",
            "pei_fixed",
            "pei_squares",
            "irs_yes",
            "irs_no",
            "irs_silent",
            "irs_incomplete",
        ):
            assert getattr(stretch, name) == sums[name], name
        assert stretch.domains_missing == len(domains - {run["domain"] for run in part})
    assert start == len(wanted)


@thorough
@given(strategies.bundles())
def test_the_facts_about_time_are_those_of_the_start_times(contents: strategies.Contents) -> None:
    times = summarised(contents).times
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    moments = {
        i: (datetime.fromisoformat(run["started_at"]) - epoch) // timedelta(microseconds=1)
        for i, run in enumerate(contents.records)
        if run.get("started_at") is not None
    }
    by_clock = sorted(moments.values())
    assert times.timed == len(by_clock)
    assert times.distinct == len(set(by_clock))
    if not by_clock:
        return
    assert (times.first, times.last) == (by_clock[0], by_clock[-1])
    gaps = {b - a for a, b in pairwise(by_clock)}
    if times.constant_interval is not None:
        assert gaps == {times.constant_interval}
    elif len(by_clock) > 2:
        assert len(gaps) > 1
    by_sequence = [
        moments[i]
        for i, run in sorted(enumerate(contents.records), key=lambda item: item[1].get("sequence", -1))
        if i in moments and run.get("sequence") is not None
    ]
    assert times.backwards == sum(b < a for a, b in pairwise(by_sequence))


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
