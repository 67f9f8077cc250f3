"""The plan of a trial as a bundle encloses it: what was planned for each run, to be compared with its record.

    plan = read_enclosed(data, where=PLAN_FILE)
    plan.runs["r-017"].condition

`certkit.trial.plan` makes plans and owns their form. Here only those parts are read that a record repeats and
a manifest states; all of the document is under its digest.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from certkit.ground import canonical
from certkit.ground.document import Count, Positive
from certkit.ground.errors import InputError
from certkit.record.record import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAN_FILE: Final = "trial/plan.json"
"""Where a bundle has its plan."""

MAX_PLAN: Final = 64 * 1024 * 1024
"""Longest document, bytes."""

MAX_RUNS: Final = 200_000
"""Most runs of a plan."""

Cascade = Literal["simultaneous", "sequential"]
_Name = Annotated[str, Meta(min_length=1, max_length=4096)]


class EnclosedTask(Struct, frozen=True, kw_only=True):
    """A task of an enclosed plan.

    Attributes:
        id: unique in the plan.
        domain: its domain.
        steps: the least number of steps, null if it is not known.
    """

    id: _Name
    domain: _Name
    steps: Positive | None = None


class EnclosedRun(Struct, frozen=True, kw_only=True):
    """A run of an enclosed plan.

    Attributes:
        id: unique in the plan.
        task: the id of its task.
        condition: what it is exposed to.
        trial: repeat number of the same task and condition.
    """

    id: _Name
    task: _Name
    condition: _Name
    trial: Count = 0


class EnclosedWorld(Struct, frozen=True, kw_only=True):
    """A world of an enclosed plan, and whether its tasks are published."""

    name: _Name
    public: bool = False


class _Document(Struct, frozen=True, kw_only=True):
    """What is read of the document."""

    schema: Literal["urn:certkit:trial-plan:v1"]
    digest: str
    seed: Count
    cascade_definition: Cascade
    tasks_independent: bool | None
    worlds: tuple[EnclosedWorld, ...]
    tasks: tuple[EnclosedTask, ...]
    runs: Annotated[tuple[EnclosedRun, ...], Meta(min_length=1, max_length=MAX_RUNS)]


class EnclosedPlan:
    """A plan whose digest holds.

    Attributes:
        digest: over all of the document but itself.
        runs: by their ids, in the order of the plan.
        tasks: by their ids.
    """

    def __init__(self, document: _Document) -> None:
        self._document, self.digest = document, document.digest
        self.runs = {run.id: run for run in document.runs}
        self.tasks = {task.id: task for task in document.tasks}
        self._places = {run_id: place for place, run_id in enumerate(self.runs)}

    def attacks(self, run: EnclosedRun) -> bool:
        """Tell whether a run is attacked."""
        return is_attack(run.condition, self._document.cascade_definition)

    def named(self, run: EnclosedRun) -> dict[str, Any]:
        """Return the fields of a run's record that are known before it is made."""
        return {
            "run_id": run.id,
            "domain": self.tasks[run.task].domain,
            "task_id": run.task,
            "sequence": self._places[run.id],
            "trial": run.trial,
            "condition": run.condition,
        }

    def announced(self) -> dict[str, Any]:
        """Return what a manifest says of the plan under ``protocol``."""
        plan, total = self._document, len(self.runs)
        shares = Counter(run.condition for run in plan.runs)
        members = {
            "plan": plan.digest,
            "plan_seed": plan.seed,
            "declared_runs": total,
            "declared_mix": {name: round(count / total, 6) for name, count in sorted(shares.items())},
            "cascade_definition": plan.cascade_definition,
            "tasks_independent": plan.tasks_independent,
            "public_tasks": [world.name for world in plan.worlds if world.public] or None,
        }
        return {name: value for name, value in members.items() if value is not None}


def is_attack(condition: str, cascade: Cascade) -> bool:
    """Tell whether runs of a condition are attacked."""
    return condition == Condition.ADVERSARIAL or (
        condition == Condition.CASCADE and cascade == "simultaneous"
    )


def plan_digest(document: Mapping[str, Any]) -> canonical.Digest:
    """Return the digest of a plan: over everything in its document but ``digest``."""
    return canonical.digest(
        canonical.canonical({name: value for name, value in document.items() if name != "digest"})
    )


def read_enclosed(data: bytes, *, where: str) -> EnclosedPlan:
    """Return the plan in a file of a bundle; raises as `enclosed_plan` and ``json.*`` codes."""
    return enclosed_plan(canonical.loads(data, where=where, max_bytes=MAX_PLAN), where=where)


def enclosed_plan(document: Any, *, where: str) -> EnclosedPlan:
    """Return the plan in JSON values.

    Raises:
        InputError: ``trial.invalid`` where it is no plan or contradicts itself, ``trial.plan-changed`` where
            it is not what its digest says.
    """
    try:
        held = msgspec.convert(document, _Document, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError("trial.invalid", f"no plan of a trial: {error}", where=where) from None
    if held.digest != (actual := plan_digest(document)):
        raise InputError("trial.plan-changed", f"expected {held.digest}, found {actual}", where=where)
    plan = EnclosedPlan(held)
    if len(plan.runs) != len(held.runs) or len(plan.tasks) != len(held.tasks):
        raise InputError("trial.invalid", "two runs or two tasks have one id", where=where)
    if strays := [run.id for run in held.runs if run.task not in plan.tasks]:
        raise InputError("trial.invalid", f"run {strays[0]!r} is of no task of the plan", where=where)
    return plan
