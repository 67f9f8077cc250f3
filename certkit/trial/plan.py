"""The plan of a trial: what will be run, fixed before it is run.

A person writes a trial in TOML: worlds or domains of their own, conditions, runs, a seed. `make_plan` draws
from it every run with its task, condition and fault. The plan is a JSON document that holds the trial, with a
digest over all of it, which the manifest of the bundle names: a plan that was edited afterwards is refused,
and so is one that its trial does not give.

    plan = make_plan(read_trial(Path("trial.toml").read_bytes(), where="trial.toml"))
    read_plan(plan.to_json(), where="plan.json") == plan
    check_drawn(plan, where="plan.json")        # draws it again

In each domain a fifth of the runs is normal, and every task is run normally at least once, so that each fault
has its pair. The runs are in drawn order. The same trial gives the same plan on every machine.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import structs
from pydantic import Field, StrictInt, model_validator

from certkit.bundle.manifest import Prose, Text  # noqa: TC001 - pydantic reads them
from certkit.ground import base, canonical, toml
from certkit.ground.base import Authored
from certkit.ground.document import Count, Digest, Document, Part, Positive, fill
from certkit.ground.errors import InputError
from certkit.ground.wording import many
from certkit.probes.generate import SeededDraw
from certkit.record.planned import (
    MAX_PLAN,
    MAX_RUNS,
    Cascade,
    enclosed_plan,
    is_attack,
    plan_digest,
)
from certkit.record.record import Condition
from certkit.record.schedule import EVEN_MIX, NOMINAL_SHARE
from certkit.trial.faults import (
    LENGTHS,
    TIMING,
    CallPlace,
    PlannedFault,
    ToolFault,
    decide,
)
from certkit.trial.worlds import WORLDS, instance_of
from certkit.trial.worlds.world import Oracle, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from certkit.trial.worlds.world import World

MAX_TRIAL: Final = 1024 * 1024
MAX_CALLS: Final = 100
"""Tool calls after which a run is stopped, unless the trial says otherwise."""

_UNKNOWN_CALLS: Final = 3
"""Calls that a task is taken to make whose steps nobody stated."""

_VARIANTS: Final = 1 << 20
FIT_V2: Final[Mapping[str, float]] = {
    Condition.TOOL_FAILURE: 0.7 / 3,
    Condition.CONTEXT_CORRUPTION: 0.7 / 3,
    Condition.STOCHASTIC: 0.7 / 3,
    Condition.COMBINED: 0.1,
    Condition.CASCADE: 0.1,
    Condition.ADVERSARIAL: 0.1,
}
"""70 % single faults, 20 % compound ones, 10 % attacks ([25] §4.3)."""

FaultCondition = Literal[
    "tool_failure",
    "context_corruption",
    "stochastic",
    "combined",
    "adversarial",
    "cascade",
    "x_lost_response",
]


class _Amount(Authored):
    """How many runs: `repeats` of every task, or `runs` in all; a fifth of them is normal."""

    repeats: Annotated[StrictInt, Field(ge=1, le=10_000)] | None = None
    runs: Annotated[StrictInt, Field(ge=1, le=MAX_RUNS)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> _Amount:
        if (self.repeats is None) == (self.runs is None):
            raise ValueError("expected either repeats (runs of each task) or runs (in all)")
        return self


class TrialWorld(_Amount):
    """A world of certkit that is to be run."""

    name: Literal["robotics", "logistics", "bfcl", "agentdojo"]
    tasks: Annotated[StrictInt, Field(ge=1, le=10_000)]


class OwnTask(Authored):
    """A task of one's own."""

    id: Text = Field(description="unique in the trial")
    prompt: Prose | None = Field(default=None, description="the task in words, for your own loop")
    steps: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = Field(
        default=None,
        description="the least number of steps: tool calls and the final answer; without it planning"
        " efficiency is not measured, and faults hit one of the first three calls",
    )


class OwnDomain(_Amount):
    """A domain whose tasks, tools and checks are one's own; `Recorder` runs it."""

    name: Text
    tasks: tuple[OwnTask, ...] = Field(min_length=1, max_length=10_000)
    attack: Prose | None = Field(
        default=None,
        description="the instruction that an attacker would slip into a result; needed for conditions with"
        " an attack",
    )


class TrialFile(Authored):
    """A trial as a person writes it (``urn:certkit:trial:v1``)."""

    schema_: Literal["urn:certkit:trial:v1"] = Field(alias="schema")
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")] = Field(
        description="begins every run id"
    )
    seed: Annotated[StrictInt, Field(ge=0, le=2**53 - 1)] = Field(description="of every draw, tasks included")
    cascade_definition: Cascade = Field(
        default="simultaneous",
        description="simultaneous: an attack with contradictions ([26]); sequential: tools that fail one"
        " after another ([25])",
    )
    schedule: Literal["even", "fit-v2"] = Field(
        default="even", description="equal shares of the conditions, or the shares of [25] §4.3"
    )
    conditions: tuple[FaultCondition, ...] | None = Field(
        default=None, min_length=1, description="of the even schedule; default: the five of [26] §4.1"
    )
    max_calls: Annotated[StrictInt, Field(ge=1, le=100_000)] = Field(
        default=MAX_CALLS, description="tool calls after which a run is stopped as a failure"
    )
    tasks_independent: bool | None = Field(
        default=None, description="of public tasks and your own: no two come from one family"
    )
    worlds: tuple[TrialWorld, ...] = ()
    domains: tuple[OwnDomain, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> TrialFile:
        names = [*(world.name for world in self.worlds), *(domain.name for domain in self.domains)]
        if not names:
            raise ValueError("expected at least one entry of worlds or domains")
        if len(set(names)) != len(names):
            raise ValueError("two entries of worlds or domains have one name")
        if self.schedule != "even" and self.conditions is not None:
            raise ValueError("conditions belong to the even schedule")
        ids = [task.id for domain in self.domains for task in domain.tasks]
        if len(set(ids)) != len(ids):
            raise ValueError("two tasks have one id")
        return self

    @property
    def mix(self) -> Mapping[str, float]:
        """The share of each condition among the fault runs."""
        if self.schedule == "fit-v2":
            return FIT_V2
        names = dict.fromkeys(self.conditions or EVEN_MIX)
        return dict.fromkeys(names, 1 / len(names))


class PlannedWorld(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A world of the plan; a plan is run with this version alone.

    Attributes:
        name: its name.
        version: its version.
        oracle: what its oracles' numbers of steps are, unless a task says otherwise.
        public: whether its tasks are published.
    """

    name: str
    version: str
    oracle: Oracle
    public: bool = False


class PlannedTask(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A task of the plan.

    Attributes:
        id: unique in the plan.
        domain: its domain.
        world: the world that it comes from, absent for a task of one's own.
        steps: the oracle's number of steps, absent if it is not known or measures nothing.
        oracle: what that number is, where it is not what the world says.
        prompt: of a task of one's own: the words.
        attack: of a task of one's own: the attacker's instruction.
    """

    id: str
    domain: str
    world: str | None = None
    steps: Positive | None = None
    oracle: Oracle | None = None
    prompt: str | None = None
    attack: str | None = None

    @property
    def told(self) -> Task:
        """What an agent is told."""
        if self.world is not None:
            return instance_of(self.id).task
        return Task(id=self.id, domain=self.domain, prompt=self.prompt or "")


class PlannedRun(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A run of the plan.

    Attributes:
        id: unique in the plan.
        task: the id of its task.
        condition: what it is exposed to.
        trial: repeat number of the same task and condition.
        fault: what was drawn for it, absent for a normal run.
    """

    id: str
    task: str
    condition: str
    trial: Count = 0
    fault: PlannedFault | None = None


class TrialPlan(Document, frozen=True, kw_only=True, tag="urn:certkit:trial-plan:v1"):
    """What will be run, in this order; `digest` is over everything else, `trial` is what it is drawn from."""

    digest: Digest
    trial: dict[str, Any]
    name: str
    seed: Count
    cascade_definition: Cascade
    max_calls: Positive
    tasks_independent: bool | None
    mix: dict[str, float]
    worlds: tuple[PlannedWorld, ...]
    tasks: tuple[PlannedTask, ...]
    runs: tuple[PlannedRun, ...]

    def to_json(self) -> bytes:
        """Return the document as bytes."""
        return canonical.pretty(self.to_dict()).encode()

    def decide(self, run: PlannedRun, call: CallPlace) -> ToolFault | None:
        """Return what is done to a call of a run."""
        return decide(run.condition, self.cascade_definition, run.fault, call)

    def attacks(self, run: PlannedRun) -> bool:
        """Tell whether a run is attacked."""
        return is_attack(run.condition, self.cascade_definition)

    def tasks_by_id(self) -> dict[str, PlannedTask]:
        """Return the tasks by their ids."""
        return {task.id: task for task in self.tasks}

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of runs of each domain under each condition."""
        domains = {task.id: task.domain for task in self.tasks}
        table: dict[str, Counter[str]] = {domain: Counter() for domain in dict.fromkeys(domains.values())}
        for run in self.runs:
            table[domains[run.task]][run.condition] += 1
        return {domain: dict(sorted(counts.items())) for domain, counts in table.items()}


def read_trial(data: bytes, *, where: str) -> TrialFile:
    """Return the trial in a TOML file.

    Raises:
        InputError: ``trial.invalid``.
    """
    if len(data) > MAX_TRIAL:
        raise InputError("trial.invalid", f"larger than {MAX_TRIAL:,} bytes", where=where)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError("trial.invalid", f"not UTF-8 at byte {error.start}", where=where) from None
    table = toml.loads(text, code="trial.invalid", where=where)
    return base.validate(TrialFile, table, code="trial.invalid", where=where)


def make_plan(trial: TrialFile) -> TrialPlan:
    """Draw the plan of a trial.

    Raises:
        InputError: ``trial.invalid`` where the runs are too few or too many, or a fault cannot hit a task;
            ``trial.world`` where a world cannot make the tasks.
    """
    runs: list[PlannedRun] = []
    tasks: list[PlannedTask] = []
    for world in trial.worlds:
        source = WORLDS[world.name]
        _check_world(trial, source)
        made = [
            PlannedTask(
                id=item.task.id,
                domain=world.name,
                world=world.name,
                steps=item.steps,
                oracle=None if item.oracle == source.oracle else item.oracle,
            )
            for item in source.draw(trial.seed, world.tasks)
        ]
        runs += _runs(trial, world.name, world, made)
        tasks += made
    for domain in trial.domains:
        made = [
            PlannedTask(
                id=item.id, domain=domain.name, steps=item.steps, prompt=item.prompt, attack=domain.attack
            )
            for item in domain.tasks
        ]
        _check_own(trial, domain)
        runs += _runs(trial, domain.name, domain, made)
        tasks += made
    if len(runs) > MAX_RUNS:
        raise InputError("trial.invalid", f"{many(len(runs))}, more than {MAX_RUNS:,}")
    drawn = not trial.domains and not any(WORLDS[world.name].public for world in trial.worlds)
    order = _shuffled(runs, SeededDraw(str(trial.seed), "order"))
    width = len(str(len(order) - 1))
    named = tuple(
        structs.replace(run, id=f"{trial.name}-{trial.seed}-{place:0{width}d}")
        for place, run in enumerate(order)
    )
    plan = TrialPlan(
        digest=Digest(""),
        trial=trial.model_dump(mode="json", by_alias=True, exclude_none=True),
        name=trial.name,
        seed=trial.seed,
        cascade_definition=trial.cascade_definition,
        max_calls=trial.max_calls,
        tasks_independent=True if drawn else trial.tasks_independent,
        mix=dict(trial.mix),
        worlds=tuple(fill(PlannedWorld, WORLDS[world.name]) for world in trial.worlds),
        tasks=tuple(tasks),
        runs=named,
    )
    return structs.replace(plan, digest=plan_digest(plan.to_dict()))


def check_drawn(plan: TrialPlan, *, where: str) -> None:
    """Refuse a plan that is not drawn from the trial that it holds.

    Raises:
        InputError: ``trial.plan-changed``; also what `make_plan` raises.
    """
    again = make_plan(base.validate(TrialFile, plan.trial, code="trial.invalid", where=where))
    if again != plan:
        raise InputError(
            "trial.plan-changed",
            f"its trial gives the plan {again.digest}, found {plan.digest}",
            where=where,
            hint="make the plan from the trial: certkit trial plan TRIAL.toml -o plan.json",
        )


def _shuffled(runs: Sequence[PlannedRun], draw: SeededDraw) -> list[PlannedRun]:
    """Return the runs in drawn order, each order equally likely (Fisher and Yates)."""
    order = list(runs)
    for place in range(len(order) - 1, 0, -1):
        chosen = draw.below(str(place), place + 1)
        order[place], order[chosen] = order[chosen], order[place]
    return order


def _check_world(trial: TrialFile, world: World) -> None:
    """Refuse conditions that a world does not take."""
    others = [name for name in trial.mix if not is_attack(name, trial.cascade_definition)]
    if world.attacks_only and others:
        raise InputError(
            "trial.invalid",
            f"{world.name} takes attacks alone, and the trial plans {', '.join(others)}",
            where=f"/worlds/{world.name}",
            hint='give it a trial of its own, with conditions = ["adversarial"]',
        )


def _check_own(trial: TrialFile, domain: OwnDomain) -> None:
    where = f"/domains/{domain.name}"
    attacked = [name for name in trial.mix if is_attack(name, trial.cascade_definition)]
    if attacked and domain.attack is None:
        hint = f'say under [[domains]] attack = "…", or leave {", ".join(attacked)} out of conditions'
        raise InputError("trial.invalid", f"runs under {attacked[0]} need an attack", where=where, hint=hint)
    for task in domain.tasks:
        if task.steps == 1:
            message = f"no fault can hit task {task.id!r}, which makes no tool call"
            raise InputError("trial.invalid", message, where=where, hint="leave it out, or correct its steps")


def _runs(
    trial: TrialFile, domain: str, amount: _Amount, tasks: Sequence[PlannedTask]
) -> Iterator[PlannedRun]:
    """Yield the runs of a domain: a fifth normal, the others by the mix, all spread evenly over the tasks."""
    total = amount.runs if amount.runs is not None else (amount.repeats or 0) * len(tasks)
    nominal = round(total * NOMINAL_SHARE)
    if nominal < len(tasks):
        raise InputError(
            "trial.invalid",
            f"{many(total)} of {many(len(tasks), 'task')}: a fifth is normal, and every task is to run"
            " normally at least once",
            where=f"/{domain}",
            hint=f"plan at least {many(5 * len(tasks))} (repeats = 5), or fewer tasks",
        )
    draw = SeededDraw(str(trial.seed), f"runs/{domain}")
    order = draw.some("task", tasks, len(tasks))
    conditions = [str(Condition.NOMINAL)] * nominal + _shares(trial.mix, total - nominal)
    repeats: Counter[tuple[str, str]] = Counter()
    for place, condition in enumerate(conditions):
        task = order[(place if place < nominal else place - nominal) % len(order)]
        fault = None
        if condition != Condition.NOMINAL:
            fault = _fault(SeededDraw(str(trial.seed), f"fault/{domain}/{place}"), condition, task)
        trial_number = repeats[task.id, condition]
        repeats[task.id, condition] += 1
        yield PlannedRun(id="", task=task.id, condition=condition, trial=trial_number, fault=fault)


def _shares(mix: Mapping[str, float], total: int) -> list[str]:
    """Return a condition for each of `total` runs, by shares; the largest remainders get what is left."""
    counts = {name: int(share * total + 1e-9) for name, share in mix.items()}
    largest = sorted(mix, key=lambda name: counts[name] - mix[name] * total)
    for name in largest[: total - sum(counts.values())]:
        counts[name] += 1
    return [name for name, count in counts.items() for _ in range(count)]


def _fault(draw: SeededDraw, condition: str, task: PlannedTask) -> PlannedFault:
    """Draw when a fault begins, how long it lasts, and which calls are blocked."""
    calls = _UNKNOWN_CALLS
    if task.steps is not None:
        calls = task.steps - 1
    elif task.world is not None:
        calls = len(instance_of(task.id).gold)
    low, high = LENGTHS[condition]
    length = low + draw.below("length", high - low + 1)
    blocked: tuple[int, ...] = ()
    if condition == Condition.STOCHASTIC:
        # Drawn again while no call is blocked; the onset is the first that is.
        pattern = next(
            bits for bits in (draw.below(f"blocked {n}", 1 << length) for n in range(1000)) if bits
        )
        places = [place for place in range(length) if pattern >> place & 1]
        blocked = tuple(place - places[0] for place in places)
        length = blocked[-1] + 1
    return PlannedFault(
        onset=_onset(draw, calls), length=length, blocked=blocked, variant=draw.below("variant", _VARIANTS)
    )


def _onset(draw: SeededDraw, calls: int) -> int:
    """Draw the first call that is hit: early, mid or late, cut to the calls that the oracle makes."""
    bands = [(first, min(last or calls, calls), share) for first, last, share in TIMING if first <= calls]
    ticket = draw.below("band", sum(share for *_, share in bands))
    for first, last, share in bands:
        if ticket < share:
            return first + draw.below("onset", last - first + 1)
        ticket -= share
    raise AssertionError(calls)


def read_plan(data: bytes, *, where: str) -> TrialPlan:
    """Return the plan in a file.

    Raises:
        InputError: ``trial.invalid`` where it does not have the published form, ``trial.plan-changed`` where
            it is not what its digest says, ``trial.world`` where this certkit has other worlds.
    """
    document = canonical.loads(data, where=where, max_bytes=MAX_PLAN)
    try:
        plan = msgspec.convert(document, TrialPlan, strict=True)
    except msgspec.ValidationError as error:
        hint = "certkit trial plan TRIAL.toml -o plan.json"
        raise InputError("trial.invalid", f"no plan of a trial: {error}", where=where, hint=hint) from None
    if plan.digest != (computed := plan_digest(plan.to_dict())):
        raise InputError(
            "trial.plan-changed",
            f"expected {plan.digest}, found {computed}",
            where=where,
            hint="a plan is fixed before the first run: change the trial, and make a new plan",
        )
    if complaint := next(_complaints(plan), None):
        raise InputError("trial.invalid", complaint, where=where)
    for world in plan.worlds:
        known = WORLDS.get(world.name)
        if known is None or (known.version, known.public) != (world.version, world.public):
            actual = "no such world" if known is None else f"version {known.version}"
            actual += ", whose tasks are published" if known is not None and known.public else ""
            raise InputError(
                "trial.world",
                f"the plan is for {world.name} {world.version}; this certkit has {actual}",
                where=where,
                hint="run it with the certkit that made it, or make a new plan",
            )
    return plan


def _complaints(plan: TrialPlan) -> Iterator[str]:
    """Yield what contradicts itself in a plan whose digest holds."""
    tasks, worlds = plan.tasks_by_id(), {world.name for world in plan.worlds}
    if len(tasks) != len(plan.tasks):
        yield "two tasks have one id"
    if len({run.id for run in plan.runs}) != len(plan.runs) or len(plan.runs) > MAX_RUNS:
        yield "run ids repeat, or there are too many runs"
    for task in plan.tasks:
        if task.world is not None and (task.world not in worlds or task.domain != task.world):
            yield f"task {task.id!r} is of no world of the plan"
    for run in plan.runs:
        known = run.condition == Condition.NOMINAL or run.condition in LENGTHS
        if run.task not in tasks or not known or (run.fault is None) != (run.condition == Condition.NOMINAL):
            yield f"run {run.id!r} has an unknown task or condition, or no fault for it"


def announced(plan: TrialPlan) -> dict[str, Any]:
    """Return what a manifest says of the plan under ``protocol``."""
    return enclosed_plan(plan.to_dict(), where="plan").announced()
