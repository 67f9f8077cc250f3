"""From files to a summary: order and blocks change nothing; repetitions are named."""

from __future__ import annotations

import hashlib
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest

from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.record.faults import RecordFaultsError
from certkit.record.reader import blocks
from certkit.record.record import Record
from certkit.summary import summarise as gather
from certkit.summary.summary import Traces
from tests.support import bundles
from tests.support.bundles import campaign, line, lines, run

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.summary.summary import Summary


def summarised(root: Path) -> Summary:
    return gather.summarise(open_bundle(root))


@pytest.fixture(scope="module")
def runs() -> list[bundles.Run]:
    return campaign(1500)


@pytest.fixture
def whole(runs: list[bundles.Run], tmp_path: Path) -> Path:
    return bundles.of(tmp_path / "whole", runs)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut files into many blocks."""
    monkeypatch.setattr("certkit.record.reader.BLOCK", 5000)


def test_shuffled_lines_and_renamed_files_give_the_same_summarised(
    runs: list[bundles.Run], whole: Path, tmp_path: Path
) -> None:
    order = np.random.Generator(np.random.PCG64(2)).permutation(len(runs)).tolist()
    shuffled = [runs[i] for i in order]
    split = {f"{name}.jsonl": lines(shuffled[i::4]) for i, name in enumerate(("z", "a a", "ü", "0"))} | {
        "empty.jsonl": b""
    }
    other = bundles.write(tmp_path / "other", split)
    documents = [canonical.canonical(summarised(root).to_dict()) for root in (whole, other)]
    assert documents[0] == documents[1]


def test_pieces_give_what_the_whole_file_gives(
    whole: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    at_once = summarised(whole)
    request.getfixturevalue("small_pieces")
    assert len(list(blocks(whole / "records" / "a.jsonl"))) > 50
    # Groups are merged again and again.
    monkeypatch.setattr(gather, "COMPACT", 10)
    assert summarised(whole) == at_once


def faults(root: Path) -> list[tuple[str, int, str, str]]:
    with pytest.raises(RecordFaultsError) as caught:
        summarised(root)
    assert caught.value.total >= len(caught.value.faults)
    return [(fault.file, fault.line, fault.pointer, fault.code) for fault in caught.value.faults]


def test_a_run_id_used_again_in_another_file_is_named_with_both_places(tmp_path: Path) -> None:
    root = bundles.write(
        tmp_path / "b", {"b.jsonl": lines([run(0), run(9)]), "a.jsonl": lines([run(7), run(8), run(9)])}
    )
    with pytest.raises(RecordFaultsError) as caught:
        summarised(root)
    [fault] = caught.value.faults
    assert (fault.file, fault.line, fault.code) == ("records/b.jsonl", 2, "record.duplicate-run-id")
    assert "records/a.jsonl:3" in fault.found
    assert '"9"' in fault.found


@pytest.mark.usefixtures("small_pieces")
def test_repetitions_are_found_across_pieces(runs: list[bundles.Run], tmp_path: Path) -> None:
    spoilt = [*runs, runs[3] | {"run_id": "new"}, runs[5] | {"sequence": 99_999}]
    root = bundles.of(tmp_path / "b", spoilt)
    assert faults(root) == [
        ("records/a.jsonl", len(runs) + 1, "/sequence", "record.duplicate-sequence"),
        ("records/a.jsonl", len(runs) + 2, "/run_id", "record.duplicate-run-id"),
    ]


def test_a_task_in_two_domains_is_named_once_for_each_stranger(tmp_path: Path) -> None:
    records = [run(1), run(2, domain="e"), run(3), run(4, domain="f")]
    found = faults(bundles.of(tmp_path / "b", records))
    assert found == [
        ("records/a.jsonl", 2, "/task_id", "record.task-in-two-domains"),
        ("records/a.jsonl", 4, "/task_id", "record.task-in-two-domains"),
    ]


def test_the_novel_split_shares_the_names_of_runs_and_tasks(tmp_path: Path) -> None:
    records = [run(1), run(1, split="novel_fault"), run(2, split="novel_fault", domain="e")]
    codes = [code for *_, code in faults(bundles.of(tmp_path / "b", records))]
    assert codes == ["record.duplicate-run-id", "record.task-in-two-domains"]


def test_a_sequence_written_as_a_float_is_the_same_number(tmp_path: Path) -> None:
    data = line(run(1, sequence=8)) + line(run(2, sequence=8.0)) + line(run(3, sequence=9))
    root = bundles.write(tmp_path / "b", {"a.jsonl": data})
    assert faults(root) == [("records/a.jsonl", 2, "/sequence", "record.duplicate-sequence")]


@pytest.mark.parametrize("width", [0, 1])
def test_colliding_hashes_refuse_no_good_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Hashes of no bit or one bit collide all the time; the names decide."""

    def narrow(data: bytes) -> int:
        return sum(data) % 2 if width else 0

    monkeypatch.setattr("certkit.record.columns.xxhash.xxh3_64_intdigest", narrow)
    records = [run(i, domain=f"d{i % 4}", task_id=f"t{i}", sequence=i) for i in range(40)]
    assert summarised(bundles.of(tmp_path / "good", records)).records == 40
    assert faults(bundles.of(tmp_path / "bad", [*records, records[4] | {"sequence": 40}])) == [
        ("records/a.jsonl", 41, "/run_id", "record.duplicate-run-id")
    ]


@pytest.mark.usefixtures("small_pieces")
def test_faults_are_numbered_through_all_pieces(tmp_path: Path) -> None:
    records = campaign(400)
    data = lines(records[:300]) + b"\n" + lines(records[300:]) + b"{}\n" + lines(campaign(2, seed=9))
    found = faults(bundles.write(tmp_path / "b", {"a.jsonl": data}))
    assert found[0] == ("records/a.jsonl", 301, "", "record.json")
    assert {row[1] for row in found[1:]} == {402}


def test_only_the_first_faults_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    good, bad = lines(run(f"g{i}") for i in range(3)), line(run(1, trial=-1)) * 60
    root = bundles.write(tmp_path / "b", {"a.jsonl": good + bad, "b.jsonl": bad})
    with pytest.raises(RecordFaultsError) as caught:
        summarised(root)
    assert caught.value.total == 120
    assert [(fault.file, fault.line) for fault in caught.value.faults] == [
        ("records/a.jsonl", 4 + i) for i in range(50)
    ]


@pytest.mark.parametrize("bad", [b"\n", b"{}\n", line(run(1, sequence=1, recovery_grade=0.5))])
def test_reading_ends_after_some_number_of_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: bytes
) -> None:
    monkeypatch.setattr("certkit.record.faults.MOST", 100)
    monkeypatch.setattr("certkit.record.reader.MOST", 100)
    monkeypatch.setattr("certkit.record.reader.BLOCK", 8000)
    root = bundles.write(tmp_path / "b", {"a.jsonl": bad * 10_000, "b.jsonl": bad * 10_000})
    with pytest.raises(RecordFaultsError) as caught:
        summarised(root)
    assert (
        str(caught.value)
        .splitlines()[0]
        .endswith("more than 100 problems in the records; the rest was not read")
    )
    assert 100 < caught.value.total < 8100


def test_a_line_beyond_every_limit_stays_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certkit.record.reader.MAX_LINE", 5000)
    monkeypatch.setattr("certkit.record.reader.BLOCK", 3000)
    data = lines([run(1), run(2, x_long="l" * 40_000), run(3), run(4, trial=-1)])
    assert faults(bundles.write(tmp_path / "b", {"a.jsonl": data})) == [
        ("records/a.jsonl", 2, "", "record.json"),
        ("records/a.jsonl", 4, "/trial", "record.value"),
    ]


def test_a_long_line_is_refused_among_lines_that_teach_the_reader_its_fields(tmp_path: Path) -> None:
    data = lines([run(1, x_a="s"), run(2, x_a="s" * 2**20), run(3, x_a="s")])
    assert faults(bundles.write(tmp_path / "b", {"a.jsonl": data})) == [
        ("records/a.jsonl", 2, "", "record.json")
    ]


def test_more_fields_of_the_users_own_than_the_fast_reader_learns(tmp_path: Path) -> None:
    records = [run(i, **{f"x_{i:03}": i, "x_same": "s"}) for i in range(150)]
    assert summarised(bundles.of(tmp_path / "b", records)).records == 150


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lines([run(1), run(2)]).rstrip(b"\n"), id="no last newline"),
        pytest.param(lines([run(1), run(2)]).replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lines([run(1), run(2)]).replace(b"\n", b"\r\n").rstrip(), id="CRLF, no last newline"),
        pytest.param(lines([run(1), run(2)]).replace(b"{", b" \t{").replace(b"}", b"} \t"), id="white space"),
    ],
)
def test_line_ends_are_no_evidence(tmp_path: Path, data: bytes) -> None:
    found = summarised(bundles.write(tmp_path / "b", {"a.jsonl": data}))
    assert (found.records, found.cells[0].counts["success"]) == (2, 2)


def test_null_and_absent_mean_the_same(tmp_path: Path) -> None:
    records = campaign(60)
    every = dict.fromkeys(Record.__struct_fields__)
    nulls = [every | record for record in records]
    left = summarised(bundles.of(tmp_path / "absent", records))
    right = summarised(bundles.of(tmp_path / "null", nulls))
    assert left == right
    # Alternating, so that a block has both.
    mixed = [nulls[i] if i % 2 else records[i] for i in range(60)]
    assert summarised(bundles.of(tmp_path / "mixed", mixed)) == left


def test_names_of_every_script_are_carried_through(tmp_path: Path) -> None:
    names = ["漢字", "Größe", "\U0001f600", "a\u0000b", 'quo"te', "back\\slash", "e\u0301", "\u2028", " "]
    records = [run(name, domain=name, task_id=name) for name in names]
    summary = summarised(bundles.of(tmp_path / "b", records))
    assert summary.domains == tuple(sorted(names))


def test_no_records_give_an_empty_summary(tmp_path: Path) -> None:
    for files in ({}, {"a.jsonl": b""}):
        summary = summarised(bundles.write(tmp_path / str(len(files)), files))
        assert (summary.records, summary.cells, summary.domains) == (0, (), ())
        assert (summary.order.reason, summary.tasks.rows, summary.clustered) == ("no-runs", (), False)


def test_sums_beyond_what_a_double_counts_are_exact(tmp_path: Path) -> None:
    records = [
        run(
            i, condition="stochastic", outcome="failure", violations=1_000_000 - i % 2, steps_actual=1_000_000
        )
        for i in range(9_100)
    ]
    [cell] = summarised(bundles.of(tmp_path / "b", records)).cells
    wanted = sum((1_000_000 - i % 2) ** 2 for i in range(9_100))
    assert wanted > 2**53
    assert cell.counts["violations_squares"] == wanted


def test_traces_count_where_a_file_of_their_digest_is_enclosed(tmp_path: Path) -> None:
    trace, name = b"step 1", hashlib.sha256(b"step 1").hexdigest()
    absent = "sha256:" + "0" * 64
    runs = [
        run(1, trace=f"sha256:{name}", measured="derived"),
        run(2, trace=absent, measured="derived"),
        run(3, trace=absent),
        run(4, measured="derived"),
        run(5),
    ]
    root = bundles.of(tmp_path / "b", runs)
    (root / "traces").mkdir()
    (root / "traces" / f"{name}.json").write_bytes(trace)
    assert summarised(root).traces == Traces(named=3, enclosed=1, bare=3)
    shared = bundles.of(tmp_path / "c", [run(i, trace=f"sha256:{name}") for i in (1, 2)])
    (shared / "traces").mkdir()
    (shared / "traces" / f"{name}.json").write_bytes(trace)
    assert summarised(shared).traces == Traces(named=2)
    (root / "traces" / f"{name}.json").write_bytes(b"step 2")
    with pytest.raises(InputError, match="its name says sha256") as caught:
        summarised(root)
    assert caught.value.code == "bundle.file-changed"


def test_an_import_keeps_of_a_task_no_more_than_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "CHECKED", 1 << 18)
    peaks = []
    for tasks in (5_000, 25_000):
        path = tmp_path / f"{tasks}.jsonl"
        path.write_bytes(b"".join(line(run(i, task_id=f"d/{i}")) for i in range(tasks)))
        tracemalloc.start()
        try:
            assert not gather.all_faults(path, lambda index: ("a", index))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 20_000 * 200  # their sums would take a thousand bytes each


def test_names_that_repeat_blocks_apart_are_found_by_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "CHECKED", 5_000)
    records = [run(i, sequence=i) for i in range(300)]
    records[250] |= {"run_id": records[3]["run_id"]}
    records[260] |= {"sequence": 4}
    records[270] |= {"domain": "elsewhere"}
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(records))
    found = gather.all_faults(path, lambda index: (f"part-{index // 100}", 2 * index))
    assert [(fault.file, fault.line, fault.pointer) for fault in found] == [
        ("part-2", 500, "/run_id"),
        ("part-2", 520, "/sequence"),
        ("part-2", 540, "/task_id"),
    ]


def test_a_task_in_two_domains_is_found_where_they_share_no_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "CHECKED", 1)  # a line each
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([run(i, domain="d" if i < 10 else "e") for i in range(20)]))
    found = gather.all_faults(path, lambda index: ("a", index + 1))
    assert (found.total, found[0].line, found[0].code) == (10, 11, "record.task-in-two-domains")
