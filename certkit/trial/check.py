"""The check of a rig without an agent under evaluation: of a plan and of the worlds of its tasks.

`check_plan` makes every planned run with the reference agent ``gold`` and compares the events with the plan;
runs every task with ``gold`` and with an agent that does nothing; and leaves out each call of each oracle's
plan in turn. A plan that is right passes all of it:

- every fault hits the call that was planned, and no other call than planned;
- the oracle's plan passes every task in the stated number of steps;
- doing nothing passes no task, unless the oracle is merely a plan: then the number is stated;
- where the oracle is said to be optimal or to lose no call, no plan passes that lacks a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from certkit.ground.document import Count, Digest, Document, Part
from certkit.ground.errors import Exit
from certkit.ground.progress import SILENT, Progress
from certkit.record.outcome import decode_log, derive
from certkit.record.record import Condition, Outcome
from certkit.trial.agents import gold, idle
from certkit.trial.episode import execute
from certkit.trial.faults import CallPlace
from certkit.trial.plan import PlannedRun, TrialPlan
from certkit.trial.worlds import instance_of
from certkit.trial.worlds.world import replayed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.record.outcome import RunLog
    from certkit.trial.worlds.world import Oracle

MOST_NAMED = 20
"""Complaints that are listed; of further ones there is the number."""


class WorldCheck(Part, frozen=True, kw_only=True):
    """What was found of a world.

    Attributes:
        world: its name.
        oracle: what its oracles' numbers of steps are, unless a task says otherwise.
        tasks: tasks of the plan.
        gold_passes: tasks that the oracle's plan passes in the stated number of steps.
        idle_passes: tasks that doing nothing passes.
        deletions: oracles' plans with one call left out.
        deletions_fail: those of them that fail.
        minimal: tasks whose plan can lose no call.
        unfounded: further tasks whose oracle is said to be optimal or to lose no call.
    """

    world: str
    oracle: str
    tasks: Count
    gold_passes: Count
    idle_passes: Count
    deletions: Count
    deletions_fail: Count
    minimal: Count
    unfounded: Count

    @property
    def right(self) -> bool:
        """Whether the world is what it claims."""
        idle = self.idle_passes and self.oracle != "gold"
        return self.gold_passes == self.tasks and not idle and not self.unfounded


class TrialCheck(Document, frozen=True, kw_only=True, tag="urn:certkit:trial-check:v1"):
    """What certkit trial check prints."""

    plan: Digest
    faults: Annotated[Count, Meta(description="planned faults of tasks of a world")]
    landed: Annotated[Count, Meta(description="faults that hit the planned calls and no others")]
    unchecked: Annotated[
        Count, Meta(description="runs of tasks of one's own, which only their loop can make")
    ]
    worlds: tuple[WorldCheck, ...]
    complaints: Annotated[tuple[str, ...], Meta(description="the first of what is wrong, in words")]

    @property
    def right(self) -> bool:
        """Whether everything is as planned."""
        return self.landed == self.faults and all(world.right for world in self.worlds)

    @property
    def exit_code(self) -> Exit:
        """0 if everything is as planned, else 1."""
        return Exit.OK if self.right else Exit.NEGATIVE


def check_plan(plan: TrialPlan, *, progress: Progress = SILENT) -> TrialCheck:
    """Check a plan and its worlds.

    Args:
        plan: the plan.
        progress: told of every run.

    Returns:
        Counts, and what is wrong in words.
    """
    tasks, complaints = plan.tasks_by_id(), list[str]()
    own = [run for run in plan.runs if tasks[run.task].world is None]
    faults = [run for run in plan.runs if run.fault is not None and tasks[run.task].world is not None]
    progress.start("checking", len(faults), "runs")
    landed = 0
    for run in faults:
        log = decode_log(execute(plan, run, tasks[run.task], gold))
        wrong = next(_misses(plan, run, log), None)
        landed += wrong is None
        if wrong is not None and len(complaints) < MOST_NAMED:
            complaints.append(f"run {run.id} under {run.condition}: {wrong}")
        progress.advance(1)
    progress.finish()
    worlds = tuple(_world(plan, world.name, world.oracle, complaints) for world in plan.worlds)
    return TrialCheck(
        plan=plan.digest,
        faults=len(faults),
        landed=landed,
        unchecked=len(own),
        worlds=worlds,
        complaints=tuple(complaints[:MOST_NAMED]),
    )


def _misses(plan: TrialPlan, run: PlannedRun, log: RunLog) -> Iterator[str]:
    """Yield where the events of a run are not what the plan says."""
    calls = [event for event in log.events if event.event == "call"]
    onset = run.fault.onset if run.fault is not None else 0
    if onset > len(calls):
        yield f"the fault is planned for call {onset}, and the run ends after {len(calls)}"
        return
    source = calls[onset - 1].tool
    for number, event in enumerate(calls, 1):
        place = CallPlace(number, event.tool or "", source if number >= onset else None)
        planned, made = plan.decide(run, place), event.fault
        if (planned is None) != (made is None):
            effects = (planned and planned.effect, made and made.effect)
            yield f"call {number} of {event.tool}: planned {effects[0]}, found {effects[1]}"
        elif planned is not None and made is not None:
            if made.injected is None and number == onset:
                yield f"call {number} of {event.tool}: the world cannot alter its result"
            if made.effect != planned.effect or made.intended != run.condition:
                yield f"call {number} of {event.tool}: planned {planned.effect}, found {made.effect}"
    first = next((n for n, event in enumerate(calls, 1) if event.fault and event.fault.injected), None)
    if first != onset:
        yield f"planned for call {onset}, found at call {first}"


def _world(plan: TrialPlan, name: str, oracle: Oracle, complaints: list[str]) -> WorldCheck:
    """Check the tasks of a world with agents that are not exposed to faults."""
    tasks = [task for task in plan.tasks if task.world == name]
    passes, nothing, deletions, fail, minimal, unfounded = 0, 0, 0, 0, 0, 0
    for task in tasks:
        normal = PlannedRun(id="check", task=task.id, condition=str(Condition.NOMINAL))
        fields = derive(decode_log(execute(plan, normal, task, gold)))
        passed = fields["outcome"] == Outcome.SUCCESS and task.steps in {None, fields["steps_actual"]}
        passes += passed
        if not passed:
            steps = "" if task.steps is None else f" in {task.steps} steps"
            complaints.append(f"task {task.id}: the oracle's plan does not pass{steps}")
        fields = derive(decode_log(execute(plan, normal, task, idle)))
        nothing += fields["outcome"] == Outcome.SUCCESS
        instance = instance_of(task.id)
        cuts = [(*instance.gold[:place], *instance.gold[place + 1 :]) for place in range(len(instance.gold))]
        needed = sum(not instance.success(replayed(instance, cut), instance.answer) for cut in cuts)
        deletions, fail = deletions + len(cuts), fail + needed
        minimal += needed == len(cuts)
        if needed < len(cuts) and (task.oracle or oracle) != "gold":
            unfounded += 1
            complaints.append(f"task {task.id}: a plan passes that lacks a call")
    return WorldCheck(
        world=name,
        oracle=oracle,
        tasks=len(tasks),
        gold_passes=passes,
        idle_passes=nothing,
        deletions=deletions,
        deletions_fail=fail,
        minimal=minimal,
        unfounded=unfounded,
    )
