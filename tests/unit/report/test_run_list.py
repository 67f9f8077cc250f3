"""Which runs and transcripts a page holds, and what it says of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from certkit.bundle.folder import open_bundle
from certkit.report import run_list
from certkit.report.run_list import PageRuns, list_runs, page_json
from certkit.summary.runs import list_tasks
from tests.support import bundles
from tests.support.bundles import run
from tests.support.importing import conversation

if TYPE_CHECKING:
    from pathlib import Path

OUTCOMES = ("failure", "safe_halt", "harness_error", "success")


def runs_of(root: Path) -> PageRuns:
    return list_runs(open_bundle(root, defer_records=True))


def ids(runs: PageRuns) -> list[str]:
    return [row[0] for row in runs.data["runs"]]


def many_runs(tmp_path: Path, number: int, failed_of_ten: int) -> Path:
    """Runs of tasks of ten runs, of which the first ones fail."""
    outcomes = ["failure"] * failed_of_ten + ["success"] * (10 - failed_of_ten)
    records = (run(i, task_id=f"d/{i // 10}", outcome=outcomes[i % 10]) for i in range(number))
    return bundles.of(tmp_path / "bundle", records)


def opened(runs: PageRuns, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = runs.data["opened"][str(ids(runs).index(run_id))]
    return found


def texts(runs: PageRuns, run_id: str) -> list[str]:
    return [runs.data["texts"][place] for _, place, _ in opened(runs, run_id)["turns"]]


def test_the_order_is_that_of_the_list_of_tasks(tmp_path: Path) -> None:
    records = [
        run(
            i,
            task_id=f"d/{i % 7}",
            outcome=OUTCOMES[(i * i + i % 3) % 4],
            violations=None if (i * i + i % 3) % 4 == 2 else i % 2,
        )
        for i in range(60)
    ]
    root = bundles.of(tmp_path / "bundle", records)
    listed = [item.record.run_id for task in list_tasks(open_bundle(root)).tasks for item in task.runs]
    runs = runs_of(root)
    assert ids(runs) == listed
    assert runs.left_out == ("The bundle encloses no traces, so there are no transcripts.",)


def test_what_is_not_measured_is_no_zero(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "bundle", [run(0), run(1, violations=0, steps_actual=3)])
    assert [row[5:] for row in runs_of(root).data["runs"]] == [[None, None], [0, 3]]


def test_of_many_runs_all_failures_and_a_sample_are_listed(tmp_path: Path) -> None:
    root = many_runs(tmp_path, 4_000, 5)
    runs = runs_of(root)
    failures = {str(i) for i in range(4_000) if i % 10 < 5}
    listed = set(ids(runs))
    assert failures <= listed
    assert len(listed) == len(failures) + 500
    assert runs.left_out[0] == (
        "This page lists all 2,000 runs that did not succeed and 500 of the 2,000 that succeeded,"
        " drawn by the hashes of their ids."
    )
    assert runs.data == runs_of(root).data


def test_few_failures_leave_the_room_to_successes(tmp_path: Path) -> None:
    runs = runs_of(many_runs(tmp_path, 2_010, 1))
    assert (runs.listed, runs.total) == (2_000, 2_010)
    assert runs.left_out[0].startswith(
        "This page lists all 201 runs that did not succeed and 1,799 of the 1,809"
    )


@pytest.mark.parametrize("character", ["中", "<", '"', "\u200b"])
def test_rows_have_a_limit_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, character: str) -> None:
    monkeypatch.setattr(run_list, "ROW_BYTES", 20_000)
    records = [
        run(f"{character * 500}{i}", task_id=f"{character * 500}{i}", outcome="failure") for i in range(100)
    ]
    runs = runs_of(bundles.of(tmp_path / "bundle", records))
    assert 0 < runs.listed < 100
    assert f"{runs.listed} of the 100 runs that did not succeed" in runs.left_out[0]
    assert len(page_json([runs.data[name] for name in ("runs", "tasks")])) < 25_000
    assert ids(runs)[0].endswith("… (cut; 502 characters)") or ids(runs)[0].endswith(
        "… (cut; 501 characters)"
    )


def test_a_turn_of_ten_megabytes_is_cut_and_says_so(tmp_path: Path) -> None:
    root = conversation(tmp_path, [{"role": "assistant", "content": "word " * 2_000_000}])
    runs = runs_of(root)
    name = ids(runs)[0]
    [[role, place, full]] = opened(runs, name)["turns"]
    assert (role, full) == ("assistant", 10_000_000)
    assert len(runs.data["texts"][place]) == 8_000
    assert len(runs.data["texts"]) == 1, "what two runs say is written once"


def test_of_many_turns_the_first_and_the_last_are_there(tmp_path: Path) -> None:
    root = conversation(tmp_path, [{"role": "assistant", "content": f"turn {i}"} for i in range(100)])
    runs = runs_of(root)
    name = ids(runs)[0]
    assert texts(runs, name) == [f"turn {i}" for i in (*range(30), *range(70, 100))]
    assert (opened(runs, name)["over"], opened(runs, name)["before"]) == (40, 30)


def test_hidden_characters_are_made_visible(tmp_path: Path) -> None:
    hidden = {"role": "us\u202eer", "content": "a\x1b[2J\u202eb\r\n\tc\u200b"}
    root = conversation(tmp_path, [hidden, {"role": "assistant", "content": "ok"}])
    runs = runs_of(root)
    assert texts(runs, ids(runs)[0]) == ["a\\u001b[2J\\u202eb\n    c\\u200b", "ok"]
    assert opened(runs, ids(runs)[0])["turns"][0][0] == "us\\u202eer"


def test_transcripts_of_failures_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = conversation(tmp_path, [{"role": "assistant", "content": "Hello"}])
    monkeypatch.setattr(run_list, "MOST_OPENED", 1)
    runs = runs_of(root)
    assert [runs.data["outcomes"][row[4]] for row in runs.data["runs"]] == ["failure", "success"]
    assert list(runs.data["opened"]) == ["0"]
    assert runs.left_out == (
        "Transcripts in this page: 1 of 2, failures first.",
        "Whole records in this page: 1 of 2, failures first.",
    )


def test_transcripts_have_a_limit_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = conversation(tmp_path, [{"role": "assistant", "content": "x" * 5_000}])
    monkeypatch.setattr(run_list, "TEXT_BYTES", 5_000)
    runs = runs_of(root)
    assert (runs.transcripts, runs.data["texts"], runs.data["opened"]) == (0, [], {})
    assert runs.left_out[0] == "Transcripts in this page: 0 of 2, failures first."


def test_one_run_of_each_task_is_opened_before_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_list, "MOST_OPENED", 3)
    records = [run(f"{task}{i}", task_id=f"d/{task}", outcome="failure") for task in "abc" for i in range(3)]
    runs = runs_of(bundles.of(tmp_path / "bundle", records))
    assert [ids(runs)[int(place)] for place in runs.data["opened"]] == ["a0", "b0", "c0"]
