"""The recorder: every planned run once, resumed after whatever happens, and one bundle at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import structs

from certkit import assess, open_bundle
from certkit.ground.errors import CertkitError
from certkit.trial import Halt, Recorder, RunVerdict
from certkit.trial.recorder import JOURNAL, RecordedRun
from tests.support.trials import content, own_plan, records

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.trial.plan import TrialPlan


def look(key: str) -> dict[str, Any]:
    return {"key": key, "found": 3}


def loop(run: RecordedRun) -> RunVerdict:
    """An agent of one's own: it looks twice, and once more after a failure."""
    tools = run.wrap({"look": look})
    for key in ("a", "b"):
        for _ in range(3):
            try:
                tools["look"](key)
                break
            except Exception:  # noqa: BLE001, S112 - it tries again
                continue
    return run.finish(success=True, answer="found", violations=0, attack_succeeded=False)


def make(folder: Path, plan: TrialPlan, most: int | None = None, **more: Any) -> Recorder:
    with Recorder(folder, plan, agent="mine", **more) as recorder:
        for number, run in enumerate(recorder.runs()):
            if number == most:
                break
            loop(run)
    return recorder


def test_a_loop_of_ones_own_makes_a_bundle_whose_rows_are_derived(tmp_path: Path) -> None:
    plan = own_plan()
    recorder = make(tmp_path / "b", plan, version="2")
    evaluation = assess(tmp_path / "b")
    traces = evaluation.summary.traces
    assert (traces.named, traces.enclosed, traces.derived, traces.bare, traces.differ) == (10, 10, 10, 0, 0)
    assert recorder.made.digest == evaluation.facts.digest
    assert [record["run_id"] for record in records(tmp_path / "b")] == [run.id for run in plan.runs]
    manifest = open_bundle(tmp_path / "b").manifest
    assert (manifest.agent.name, manifest.agent.version) == ("mine", "2")
    protocol = manifest.protocol
    assert (protocol.plan, protocol.plan_seed, protocol.declared_runs) == (plan.digest, plan.seed, 10)
    assert manifest.protocol.cascade_definition == "simultaneous"
    assert not (tmp_path / "b" / JOURNAL).exists()


def test_the_agent_is_told_its_task_and_each_run_gives_a_verdict(tmp_path: Path) -> None:
    plan, verdicts = own_plan(), {}
    with Recorder(tmp_path / "b", plan, agent="mine") as recorder:
        for run in recorder.runs():
            assert run.task.prompt == "Find it."
            verdicts[run.id] = loop(run)
    assert recorder.made.planned == recorder.made.made == 10
    assert all(verdict.safe for verdict in verdicts.values() if verdict.frr is None)


def test_unsafe_runs_are_called_back(tmp_path: Path) -> None:
    unsafe: list[tuple[str, str | None]] = []
    plan = own_plan()
    with Recorder(
        tmp_path / "b",
        plan,
        agent="mine",
        on_unsafe=lambda run, verdict: unsafe.append((run, verdict.reason)),
    ) as recorder:
        for run in recorder.runs():
            run.search()
            run.finish(success=False, answer="?")
    assert unsafe == [(run.id, "NO_SUCCESS") for run in plan.runs]
    assert recorder.made.unsafe == {"NO_SUCCESS": 10}


def test_a_halt_in_place_of_an_answer_is_a_safe_halt(tmp_path: Path) -> None:
    with Recorder(tmp_path / "b", own_plan(), agent="mine") as recorder:
        for run in recorder.runs():
            run.finish(answer=Halt("unsure"), success=False)
    assert recorder.made.outcomes == {"safe_halt": 10}


def test_a_run_that_was_left_is_a_harness_error(tmp_path: Path) -> None:
    with Recorder(tmp_path / "b", own_plan(), agent="mine") as recorder:
        for run in recorder.runs():
            run.search()
    assert recorder.made.outcomes == {"harness_error": 10}
    assert assess(tmp_path / "b").summary.traces.differ == 0


@pytest.mark.parametrize("most", [0, 1, 7, 9])
def test_a_stopped_trial_goes_on_and_gives_the_same_bytes(most: int, tmp_path: Path) -> None:
    plan = own_plan()
    make(tmp_path / "whole", plan)
    assert make(tmp_path / "b", plan, most).made.digest is None
    assert len(make(tmp_path / "b", plan).missing) == 0
    assert content(tmp_path / "b") == content(tmp_path / "whole")


def _breaking_off(recorder: Recorder) -> None:
    with recorder:
        for number, run in enumerate(recorder.runs()):
            if number == 4:
                raise ZeroDivisionError
            loop(run)


def test_an_exception_in_the_loop_loses_the_unfinished_run_alone(tmp_path: Path) -> None:
    plan = own_plan()
    recorder = Recorder(tmp_path / "b", plan, agent="mine")
    with pytest.raises(ZeroDivisionError):
        _breaking_off(recorder)
    assert len(recorder.missing) == 6
    make(tmp_path / "b", plan)
    make(tmp_path / "whole", plan)
    assert content(tmp_path / "b") == content(tmp_path / "whole")


@pytest.mark.parametrize("cut", [1, 30, 5000])
def test_half_a_line_that_a_kill_left_is_made_again(cut: int, tmp_path: Path) -> None:
    plan = own_plan()
    make(tmp_path / "b", plan, 5)
    journal = tmp_path / "b" / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-cut])
    make(tmp_path / "b", plan)
    make(tmp_path / "whole", plan)
    assert content(tmp_path / "b") == content(tmp_path / "whole")


def test_a_kill_between_records_and_seal_is_made_up_for(tmp_path: Path) -> None:
    plan = own_plan()
    make(tmp_path / "b", plan)
    whole = content(tmp_path / "b")
    manifest = msgspec.json.decode(whole["bundle.json"])
    del manifest["files"]
    (tmp_path / "b/bundle.json").write_bytes(msgspec.json.encode(manifest))
    recorder = make(tmp_path / "b", plan)
    assert recorder.made.made == 10
    assert content(tmp_path / "b") == whole


def test_a_finished_trial_is_left_as_it_is(tmp_path: Path) -> None:
    plan = own_plan()
    first = make(tmp_path / "b", plan).made
    before = content(tmp_path / "b")
    assert make(tmp_path / "b", plan).made == structs.replace(first, new=0)
    assert content(tmp_path / "b") == before


def test_a_trial_is_closed_with_the_runs_that_are_there(tmp_path: Path) -> None:
    plan = own_plan()
    with Recorder(tmp_path / "b", plan, agent="mine") as recorder:
        for number, run in enumerate(recorder.runs()):
            if number == 4:
                break
            loop(run)
        recorder.close()
    evaluation = assess(tmp_path / "b")
    assert (evaluation.summary.records, evaluation.facts.protocol.declared_runs) == (4, 10)
    assert "runs-missing" in {finding.code for finding in evaluation.assessment.findings}
    before = content(tmp_path / "b")
    assert make(tmp_path / "b", plan).made.made == 4
    assert content(tmp_path / "b") == before


def test_a_trial_without_runs_is_not_closed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "b", own_plan(), agent="mine")
    with pytest.raises(CertkitError, match="nothing to close"), recorder:
        recorder.close()


def code(folder: Path, plan: TrialPlan, **more: Any) -> str:
    before = content(folder)
    with pytest.raises(CertkitError) as caught:
        make(folder, plan, **({"version": "unversioned"} | more))
    assert content(folder) == before
    return caught.value.code


def test_a_folder_of_another_trial_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    plan = own_plan()
    make(tmp_path / "b", plan, 2)
    assert code(tmp_path / "b", own_plan(seed=2)) == "trial.other-run"
    assert code(tmp_path / "b", plan, version="2") == "trial.other-run"
    assert code(tmp_path / "b", plan, protocol={"memory_observable": True}) == "trial.other-run"


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "note.txt").write_text("mine")
    assert code(tmp_path / "b", own_plan()) == "file.exists"


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    plan = own_plan()
    make(tmp_path / "b", plan, 2)
    with (tmp_path / "b" / JOURNAL).open("ab") as stream:
        stream.write(b'{"run_id": 3}\n')
    assert code(tmp_path / "b", plan) == "trial.other-run"


def test_two_programs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    plan = own_plan()
    with Recorder(tmp_path / "b", plan, agent="mine"), pytest.raises(CertkitError) as caught:
        make(tmp_path / "b", plan)
    assert caught.value.code == "registry.busy"


def test_a_run_is_finished_once(tmp_path: Path) -> None:
    with Recorder(tmp_path / "b", own_plan(), agent="mine") as recorder:
        run = next(recorder.runs())
        run.finish(success=True, answer="a")
        with pytest.raises(CertkitError):
            run.finish(success=True, answer="a")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"success": 1}, "success: expected True, False or None, found int 1"),
        ({"success": "no"}, "success"), ({"attack_succeeded": "x"}, "attack_succeeded"),
        ({"violations": -1}, "violations: expected a whole number from 0 to 1,000,000 or None"),
        ({"violations": True}, "violations"), ({"violations": 1.0}, "violations"),
        ({"violations": 1_000_001}, "violations"), ({"violations": 2**70}, "violations"),
        ({"ended": "stopped"}, "ended: expected one of answered, "), ({"detail": 3}, "detail"),
    ],
)  # fmt: skip
def test_an_end_that_no_record_holds_is_refused_and_the_run_stays_open(
    wrong: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with Recorder(tmp_path / "b", own_plan(), agent="mine") as recorder:
        for run in recorder.runs():
            before = (tmp_path / "b" / JOURNAL).read_bytes()
            with pytest.raises(CertkitError, match=named) as caught:
                run.finish(**{"success": True, "answer": Halt("no"), **wrong})
            assert caught.value.code == "usage.option"
            assert (tmp_path / "b" / JOURNAL).read_bytes() == before
            loop(run)
    assert recorder.made.outcomes.keys() == {"success"}
    assert assess(tmp_path / "b").summary.traces.differ == 0


@pytest.mark.parametrize(
    "log",
    [
        b"", b"{}", b'{"plan":"p","task":"t","condition":"nominal","events":[{"event":"end","success":1}]}',
        b'{"plan":"p","task":"t","condition":"X","events":[{"event":"end","ended":"answered"}]}',
        b'{"plan":"p","task":"t","condition":"nominal","events":[{"event":"end","violations":-1}]}',
        b'{"plan":"p","task":"t","condition":"nominal","events":[{"event":"end","answer":' + b"[" * 2000,
        b'{"plan":"p","task":"t","condition":"nominal","events":[{"event":"end","answer":['
        + b"[]," * 700_000 + b"0]}]}",
    ],
)  # fmt: skip
def test_a_log_that_nobody_could_read_is_not_kept(log: bytes, tmp_path: Path) -> None:
    plan = own_plan()
    with pytest.raises(CertkitError) as caught, Recorder(tmp_path / "b", plan, agent="mine") as recorder:
        recorder.keep(plan.runs[0], log)
    assert caught.value.code == "usage.option"
    assert (tmp_path / "b" / JOURNAL).read_bytes() == b""
    assert make(tmp_path / "b", plan).made.made == 10


def test_a_manifest_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(CertkitError) as caught:
        Recorder(tmp_path / "b", own_plan(), agent="mine", protocol={"temprature": 0})
    assert caught.value.code == "usage.option"


def altered(folder: Path, change: Any) -> None:
    """Change the log of the first fault run in the enclosed traces, and name the file by its new digest."""
    import hashlib  # noqa: PLC0415

    import zstandard  # noqa: PLC0415

    (path,) = (folder / "traces").iterdir()
    lines = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read().splitlines()
    for place, line in enumerate(lines):
        document = msgspec.json.decode(line)
        if any(event.get("fault", {}).get("injected") for event in document["log"]["events"]):
            change(document["log"])
            lines[place] = msgspec.json.encode(document)
            break
    data = zstandard.ZstdCompressor().compress(b"\n".join(lines) + b"\n")
    digest = hashlib.sha256(data).hexdigest()
    path.unlink()
    (folder / "traces" / f"{digest}.jsonl.zst").write_bytes(data)
    text = (folder / "records/runs.jsonl").read_text()
    old = path.name.partition(".")[0]
    (folder / "records/runs.jsonl").write_text(text.replace(old, digest))
    manifest = msgspec.json.decode((folder / "bundle.json").read_bytes())
    del manifest["files"]
    (folder / "bundle.json").write_bytes(msgspec.json.encode(manifest))


def _unseen(log: dict[str, Any]) -> None:
    for event in log["events"]:
        if "fault" in event:
            event["fault"]["observed"] = None


def _longer(log: dict[str, Any]) -> None:
    log["events"].insert(0, {"event": "call", "tool": "look", "arguments": {}, "result": 1})


def _failed(log: dict[str, Any]) -> None:
    log["events"][-1]["success"] = False


def _violated(log: dict[str, Any]) -> None:
    log["events"][-1]["violations"] = 2


def _normal(log: dict[str, Any]) -> None:
    log["condition"] = "nominal"


def _oracle(log: dict[str, Any]) -> None:
    log["oracle"] = 2


@pytest.mark.parametrize("change", [_unseen, _longer, _failed, _violated, _normal, _oracle])
def test_an_altered_event_shows_as_a_difference(change: Any, tmp_path: Path) -> None:
    make(tmp_path / "b", own_plan())
    altered(tmp_path / "b", change)
    evaluation = assess(tmp_path / "b")
    assert evaluation.summary.traces.differ == 1
    assert "trace-differs" in {finding.code for finding in evaluation.assessment.findings}


def test_an_unaltered_log_shows_none(tmp_path: Path) -> None:
    make(tmp_path / "b", own_plan())
    altered(tmp_path / "b", lambda log: log)
    assert assess(tmp_path / "b").summary.traces.differ == 0
