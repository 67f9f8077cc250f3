"""Records, their logs and the enclosed plan of a trial belong together, run by run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from certkit import assess, open_bundle
from certkit.assessment.answer import plan_text
from certkit.bundle.writer import BundleWriter
from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.record.outcome import RunLog, decode_log
from certkit.record.planned import PLAN_FILE, enclosed_plan, plan_digest
from certkit.summary.pooling import accumulate
from certkit.summary.summarise import summarise
from certkit.summary.summary import PlannedRuns
from certkit.trial.boundary import Boundary, OwnRules
from certkit.trial.recorder import Recorder
from tests.support.trials import own_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from certkit.assessment.evaluation import Evaluation

PLAN = own_plan()
DOCUMENT: dict[str, Any] = PLAN.to_dict()


def log_of(place: int) -> bytes:
    """Return the log of a planned run that calls a tool until it was answered three times."""
    run = PLAN.runs[place]
    task = PLAN.tasks_by_id()[run.task]
    boundary = Boundary(PLAN, run, task, OwnRules(task.attack))
    tools, answered = boundary.wrap({"look": lambda key: {"key": key, "found": 3}}), 0
    while answered < 3:
        try:
            tools["look"](key=answered)
            answered += 1
        except Exception:  # noqa: BLE001, S110 - it tries again
            pass
    attacked = False if PLAN.attacks(run) else None
    return boundary.finish(success=True, answer="3", violations=0, attack_succeeded=attacked)


def made(folder: Path, logs: dict[int, bytes] | None = None) -> Path:
    """Make the bundle of the plan's runs, with these logs at these places."""
    given = {place: log_of(place) for place in range(len(PLAN.runs))} if logs is None else logs
    with Recorder(folder, PLAN, agent="mine") as recorder:
        for place, log in given.items():
            recorder.keep(PLAN.runs[place], log)
        recorder.close()
    return folder


def sealed_again(folder: Path, **protocol: Any) -> Path:
    """Seal what was changed by hand; `protocol` replaces what the manifest states."""
    document = msgspec.json.decode((folder / "bundle.json").read_bytes())
    document.pop("files", None)
    stated = document["protocol"] | protocol
    document["protocol"] = {name: value for name, value in stated.items() if value is not None}
    (folder / "bundle.json").write_bytes(canonical.line(document))
    BundleWriter(folder).seal()
    return folder


def rewritten(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the first record."""
    path = folder / "records/runs.jsonl"
    first, *others = path.read_bytes().splitlines()
    record = msgspec.json.decode(first)
    change(record)
    path.write_bytes(b"\n".join((canonical.line(record).strip(), *others)) + b"\n")
    return sealed_again(folder)


def codes(evaluation: Evaluation) -> set[str]:
    return {finding.code for finding in evaluation.assessment.findings}


def test_a_whole_trial_is_joined(tmp_path: Path) -> None:
    evaluation = assess(made(tmp_path / "b"))
    assert evaluation.summary.plan == PlannedRuns(planned=10, present=10)
    assert evaluation.facts.protocol.plan == PLAN.digest
    assert not codes(evaluation) & {"trace-differs", "plan-differs", "runs-missing", "declared-runs-differ"}
    assert plan_text(evaluation).endswith("10 of its 10 runs are there.")


def test_the_log_of_another_run_in_the_place_of_ones_own_differs(tmp_path: Path) -> None:
    logs = {place: log_of(place) for place in range(len(PLAN.runs))}
    first = next(place for place, run in enumerate(PLAN.runs) if run.condition == "nominal")
    again = next(place for place, run in enumerate(PLAN.runs) if run.condition == "nominal" and place > first)
    logs[again] = logs[first]
    evaluation = assess(made(tmp_path / "b", logs))
    assert evaluation.summary.traces.differ == 1
    assert "trace-differs" in codes(evaluation)


@pytest.mark.parametrize("member", ["run", "task", "plan"])
def test_a_log_of_another_run_task_or_plan_differs(member: str, tmp_path: Path) -> None:
    logs = {place: log_of(place) for place in range(len(PLAN.runs))}
    log: RunLog = decode_log(logs[0])
    setattr(log, member, "other")
    logs[0] = msgspec.json.encode(log)
    assert assess(made(tmp_path / "b", logs)).summary.traces.differ == 1


def test_a_plan_that_is_named_and_not_enclosed_is_stated_and_no_more(tmp_path: Path) -> None:
    folder = made(tmp_path / "b")
    (folder / PLAN_FILE).unlink()
    evaluation = assess(sealed_again(folder))
    protocol = evaluation.facts.protocol
    assert (protocol.plan, protocol.plan_stated) == (None, PLAN.digest)
    assert plan_text(evaluation) == (
        f"A plan's digest is stated ({PLAN.digest[:15]}…); the plan is not enclosed."
    )


def test_runs_of_the_plan_that_are_left_out_are_missing_whatever_is_declared(tmp_path: Path) -> None:
    folder = made(tmp_path / "b", {place: log_of(place) for place in range(4)})
    with pytest.raises(CertkitError, match="declared_runs is 4, and the plan has 10"):
        sealed_again(folder, declared_runs=4)
    evaluation = assess(sealed_again(folder, declared_runs=None))
    assert evaluation.summary.plan == PlannedRuns(planned=10, present=4)
    assert "runs-missing" in codes(evaluation)


def test_a_recorder_states_nothing_that_its_plan_contradicts(tmp_path: Path) -> None:
    with pytest.raises(CertkitError, match="declared_runs"):
        Recorder(tmp_path / "b", PLAN, agent="mine", protocol={"declared_runs": 4})


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(task_id="t9"),
        lambda record: record.update(condition="x_other"),
        lambda record: record.update(trial=7),
        lambda record: record.update(steps_oracle=9, steps_actual=9),
        lambda record: record.pop("steps_oracle"),
    ],
)
def test_a_record_that_its_planned_run_contradicts_differs(change: Any, tmp_path: Path) -> None:
    evaluation = assess(rewritten(made(tmp_path / "b"), change))
    assert evaluation.summary.plan == PlannedRuns(planned=10, present=10, differ=1)
    assert "plan-differs" in codes(evaluation)
    assert evaluation.facts.protocol.plan is None


def test_a_record_of_no_run_of_the_plan_is_outside_and_its_run_is_missing(tmp_path: Path) -> None:
    evaluation = assess(rewritten(made(tmp_path / "b"), lambda record: record.update(run_id="new")))
    assert evaluation.summary.plan == PlannedRuns(planned=10, present=9, outside=1)
    assert {"plan-differs", "runs-missing"} <= codes(evaluation)
    assert evaluation.facts.protocol.plan is None
    assert plan_text(evaluation).endswith("9 of its 10 runs are there. Records that are not of it: 1.")


def test_another_plan_in_the_place_of_the_named_one_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "b")
    (folder / PLAN_FILE).write_bytes(own_plan(seed=2).to_json())
    with pytest.raises(CertkitError, match="is enclosed"):
        sealed_again(folder)


def test_plans_of_pooled_bundles_add_up_and_one_is_named_if_all_enclose_it(tmp_path: Path) -> None:
    halves = [made(tmp_path / "a", {0: log_of(0)}), made(tmp_path / "b", {1: log_of(1), 2: log_of(2)})]
    pooled = accumulate([open_bundle(path) for path in halves])
    assert pooled.summary.plan == PlannedRuns(planned=20, present=3)
    assert pooled.facts.protocol.plan == PLAN.digest
    (halves[0] / PLAN_FILE).unlink()
    sealed_again(halves[0])
    pooled = accumulate([open_bundle(path) for path in halves])
    assert pooled.summary.plan == PlannedRuns(planned=10, present=2)
    assert (pooled.facts.protocol.plan, pooled.facts.protocol.plan_stated) == (None, PLAN.digest)


def _changed(**members: Any) -> dict[str, Any]:
    document = DOCUMENT | members
    return document | {"digest": plan_digest(document)}


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (DOCUMENT | {"seed": 9}, "trial.plan-changed"),
        (_changed(runs=[]), "trial.invalid"),
        (_changed(runs=[*DOCUMENT["runs"], DOCUMENT["runs"][0]]), "trial.invalid"),
        (_changed(tasks=[*DOCUMENT["tasks"], DOCUMENT["tasks"][0]]), "trial.invalid"),
        (_changed(tasks=DOCUMENT["tasks"][1:]), "trial.invalid"),
        (_changed(seed="3"), "trial.invalid"),
        (_changed(schema="urn:certkit:trial-plan:v2"), "trial.invalid"),
        ([], "trial.invalid"),
    ],
)
def test_a_plan_that_is_none_is_refused(document: Any, code: str) -> None:
    with pytest.raises(CertkitError) as caught:
        enclosed_plan(document, where="plan.json")
    assert caught.value.code == code


def test_no_record_is_compared_without_a_plan(tmp_path: Path) -> None:
    folder = made(tmp_path / "b")
    assert summarise(open_bundle(sealed_again(folder, plan=None))).plan is msgspec.UNSET
