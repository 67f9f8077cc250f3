"""``certkit runs``: runs by task, one run with its transcript, and CSV."""

from __future__ import annotations

import csv
import io
import unicodedata
from typing import TYPE_CHECKING

import pytest
import zstandard

from certkit.ground import canonical
from tests.support import bundles
from tests.support.bundles import run
from tests.support.importing import conversation
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "Sorry\x1b[2J\u202e.\r\n\tIndented"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Task d/1 succeeds in two of three runs, d/2 in one of two, e/1 in none of two."""
    return bundles.of(
        tmp_path / "bundle",
        [
            run(0),
            run(1, outcome="failure", violations=1),
            run(2),
            run(3, task_id="d/2"),
            run(4, task_id="d/2", outcome="harness_error"),
            run(5, outcome="safe_halt", domain="e", task_id="e/1", condition="tool_failure"),
            run(6, outcome="failure", domain="e", task_id="e/1", violations=2, condition="tool_failure"),
        ],
    )


def listed(*words: object) -> list[tuple[str, list[int]]]:
    """The tasks of a list, each with the lines of its runs."""
    tasks = certkit("runs", *words, "--json").document["tasks"]
    return [(task["task_id"], [item["line"] for item in task["listed"]]) for task in tasks]


def test_tasks_that_fail_most_come_first_and_in_them_the_worst_runs(root: Path) -> None:
    assert listed(root) == [("e/1", [7, 6]), ("d/2", [5, 4]), ("d/1", [2, 1, 3])]
    assert listed(root, "--failed") == [("e/1", [7, 6]), ("d/2", [5]), ("d/1", [2])]
    assert listed(root, "--domain", "d", "--failed") == [("d/2", [5]), ("d/1", [2])]
    assert listed(root, "--condition", "tool_failure") == [("e/1", [7, 6])]
    screen = certkit("runs", root, "--failed").out
    assert screen.startswith("4 runs of 3 tasks, failing tasks first\n\ne/1: 0 of 2 runs succeeded\n")
    assert "\nd/1: 2 of 3 runs succeeded\n" in screen
    last = screen.replace("\\\n", "").splitlines()[-1].split()
    assert last == f"One run with its transcript: certkit runs {root} 6".split()


def test_a_domain_or_condition_that_no_run_has_is_refused_with_those_there_are(root: Path) -> None:
    nowhere = certkit("runs", root, "--domain", "nope")
    assert (nowhere.code, nowhere.out, "hint: domains: d, e\n" in nowhere.err) == (2, "", True)
    nowhere = certkit("runs", root, "--condition", "nope", "--csv")
    assert (nowhere.code, nowhere.out, "hint: conditions: nominal, tool_failure\n" in nowhere.err) == (
        2,
        "",
        True,
    )


def test_a_misspelt_run_brings_the_nearest(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "bundle", [run("airline/17"), run("retail/4")])
    done = certkit("runs", root, "airlines/17")
    assert (done.code, f"hint: certkit runs {root} airline/17\n" in done.err) == (2, True)
    assert certkit("runs", root, "airline/17").code == 0
    assert certkit("runs", root, "airline/17", "--failed").code == 2


def test_a_run_is_printed_with_its_record_and_its_conversation(tmp_path: Path) -> None:
    call = {"id": "c", "name": "find", "arguments": {"order": 7}}
    root = conversation(
        tmp_path,
        [
            {"role": "user", "content": "Where is my order?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "id": "c", "content": "on its way", "error": True},
            {"role": "assistant", "content": [{"type": "text", "text": HOSTILE}]},
        ],
    )
    name = certkit("runs", root, "--json").document["tasks"][0]["listed"][0]["run"]["run_id"]
    done = certkit("runs", root, name)
    assert f"run_id        {name}\n" in done.out
    assert "outcome       failure\n" in done.out
    assert (
        '\n1 user\n    Where is my order?\n2 assistant\n    calls find({"order":7})\n3 tool\n    on its way\n'
        in done.out
    )
    assert "\n4 assistant\n    Sorry\\u001b[2J\\u202e.\n     Indented\n" in done.out
    assert [c for c in done.out if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}] == []
    document = certkit("runs", root, name, "--json").document
    assert document["transcript"][3] == {"role": "assistant", "text": HOSTILE}
    with zstandard.ZstdDecompressor().stream_reader((root / document["trace"]).read_bytes()) as stream:
        lines = [canonical.loads(line) for line in stream.read().splitlines()]
    assert [line["run_id"] for line in lines] == [name, lines[1]["run_id"]]


def test_what_is_long_is_cut_and_says_so(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": f"turn {number} " + "word " * 2000} for number in range(100)]
    root = conversation(tmp_path, messages)
    name = certkit("runs", root, "--json").document["tasks"][0]["listed"][0]["run"]["run_id"]
    done = certkit("runs", root, name)
    assert len(done.out.splitlines()) < 1000
    assert "… 40 turns left out; -v prints all" in done.out
    assert "… cut; the turn has 10,007 characters, -v prints all" in done.out
    assert ("\n100 assistant\n" in done.out, "\n50 assistant\n" in done.out) == (True, False)
    assert max(map(len, done.out.splitlines())) <= 80
    everything = certkit("runs", root, name, "-v").out
    assert everything.count("word") == 200_000
    assert "-v prints all" not in everything


def test_a_run_without_a_trace_says_so(root: Path) -> None:
    assert "No transcript: the bundle encloses no trace of this run.\n" in certkit("runs", root, "0").out


def test_csv_holds_every_run_and_no_formula(tmp_path: Path) -> None:
    records = [run(i, outcome=("success", "failure")[i % 2]) for i in range(100)]
    records[0] |= {"run_id": "=1+1", "domain": "d", "task_id": 'a,"b\nc', "trial": 3}
    root = bundles.of(tmp_path / "bundle", records)
    done = certkit("runs", root, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["line"] for row in rows] == [str(number) for number in range(1, 101)]
    first = {name: rows[0][name] for name in ("run_id", "task_id", "trial", "outcome", "violations")}
    assert first == {
        "run_id": "'=1+1",
        "task_id": 'a,"b\\u000ac',
        "trial": "3",
        "outcome": "success",
        "violations": "",
    }
    failed = certkit("runs", root, "--csv", "--failed").out
    assert {row["outcome"] for row in csv.DictReader(io.StringIO(failed))} == {"failure"}
    assert certkit("runs", root, "--csv", "--json").code == 2


def test_a_bad_record_refuses_the_list(bad: Path) -> None:
    for words in ((), ("--csv",), ("r0",)):
        done = certkit("runs", bad, *words)
        assert (done.code, done.out, "problems in the records" in done.err) == (3, "", True)
    assert certkit("runs", bad, "--json").document["error"]["code"] == "bundle.records-invalid"


def test_a_log_is_told_to_be_imported(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("{}\n", encoding="utf-8")
    done = certkit("runs", tmp_path / "log.jsonl")
    judges = f"certkit assess {tmp_path}/log.jsonl"
    hint = f"hint: if it is a log, this judges it and says how to import it: {judges}\n"
    assert (done.code, done.err) == (3, f"error: {tmp_path}/log.jsonl: is a file, not a bundle\n{hint}")
