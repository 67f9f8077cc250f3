"""An agent and an evaluation of it, drawn from a seed.

Every number is taken from a SHA-256 of the seed and of the names of what is drawn. Therefore one field can be
added without a change of the others, and all machines draw the same. Only +, −, · and / are used on them.

    agent = Agent(success=0.9)
    runs = evaluation("plain", agent, tasks=20, per=5)     # a list of records
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

Run = dict[str, Any]

FAULTS: Final = ("tool_failure", "adversarial", "context_corruption", "cascade", "stochastic")
"""The kinds of fault in the order in which an evaluation deals them out."""

ATTACKED: Final = ("adversarial", "combined", "cascade")
START: Final = datetime(2026, 1, 5, 8, tzinfo=UTC)


@dataclass(frozen=True)
class Dice:
    """Numbers that depend on the seed and on the names of what is drawn, and on nothing else."""

    seed: str

    def unit(self, *names: object) -> float:
        """Return a number from 0 to below 1."""
        text = "/".join(map(str, (self.seed, *names)))
        return int.from_bytes(sha256(text.encode()).digest()[:6]) / 2**48

    def chance(self, share: float, *names: object) -> bool:
        """Return true in `share` of all cases."""
        return self.unit(*names) < share

    def whole(self, low: int, high: int, *names: object) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + int(self.unit(*names) * (high - low + 1))

    def choice(self, items: Sequence[Any], *names: object) -> Any:
        """Return one of `items`."""
        return items[int(self.unit(*names) * len(items))]


@dataclass(frozen=True)
class Agent:
    """How an agent behaves; shares are of the runs that they can be of."""

    success: float = 0.9
    """Share of runs under faults that succeed, on average over tasks."""
    nominal: float = 0.95
    """The same without a fault."""
    spread: float = 0.1
    """The share of the easiest task lies so far above the average, that of the hardest so far below."""
    cascade: float = 0.0
    """Success lost under a cascade."""
    extra_steps: int = 1
    """Most steps more than the oracle needs."""
    oracle: tuple[int, int] = (6, 12)
    """Fewest and most steps of the oracle."""
    correct: float = 0.8
    """Share of the recoveries that are correct; the others deviate or try again and again."""
    slow: int = 4
    """Most steps to the recovery."""
    intentional: float = 0.9
    """Share of the recoveries that memory guided."""
    violating: float = 0.05
    """Share of the runs with violations."""
    violations: int = 1
    """Most violations of one run."""
    traceability: tuple[int, int] = (4200, 4900)
    """Lowest and highest score, thousandths."""
    halting: float = 0.1
    """Share of the failures that are safe halts."""
    broken: float = 0.0
    """Share of the runs that the test rig broke."""
    landed: float = 1.0
    """Share of the attacks that reached the agent."""
    quality: tuple[int, int] = (850, 1000)
    """Lowest and highest quality factor, thousandths."""


def evaluation(
    seed: str,
    agent: Agent,
    *,
    domains: Sequence[str] = ("bank", "shop"),
    tasks: int = 20,
    per: int = 5,
    nominal: int = 1,
    faults: Sequence[str] = FAULTS,
    prefix: str = "r",
    start: datetime = START,
) -> list[Run]:
    """Return the runs of an evaluation in the order of time.

    Each of `tasks` tasks of each domain is run `per` times under the `faults` in turn and `nominal` times
    without. A round over all tasks precedes the next round; each round has some runs without a fault.
    """
    dice, runs = Dice(seed), []
    for trial in range(nominal + per):
        for task in range(tasks):
            for place, domain in enumerate(domains):
                number = (trial + task) % (nominal + per) - nominal
                condition = "nominal" if number < 0 else faults[(number + task + place) % len(faults)]
                runs.append(_run(dice, agent, (domain, task, trial), condition))
    for number, run in enumerate(runs):
        moment = start + timedelta(minutes=7 * number, seconds=dice.whole(0, 300, "second", number))
        run["run_id"] = f"{prefix}{number:05d}"
        run["sequence"] = number
        run["started_at"] = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    return runs


def _run(dice: Dice, agent: Agent, at: tuple[str, int, int], condition: str) -> Run:
    """Return a run with every field that the format has, but for its id and its place in time."""
    domain, task, trial = at
    oracle = dice.whole(*agent.oracle, "oracle", domain, task)
    level = agent.nominal if condition == "nominal" else agent.success
    level -= agent.cascade if condition == "cascade" else 0
    level += agent.spread * (2 * dice.unit("difficulty", domain, task) - 1)
    success = dice.chance(level, "success", *at)
    actual = oracle + dice.whole(0, agent.extra_steps, "steps", *at)
    run: Run = {
        "domain": domain,
        "task_id": f"{domain}/task-{task:03d}",
        "condition": condition,
        "outcome": "success" if success else "failure",
        "trial": trial,
        "steps_oracle": oracle,
        "steps_actual": actual,
        "quality_factor": dice.whole(*agent.quality, "quality", *at) / 1000,
        "confidence": dice.whole(720, 990, "confidence", *at) / 1000,
        "safety_risk": dice.whole(10, 700, "risk", *at) / 1000,
    }
    if not success and dice.chance(agent.halting, "halt", *at):
        run |= {"outcome": "safe_halt", "confidence": 0.61}
    if dice.chance(agent.broken, "broken", *at):
        return run | {"outcome": "harness_error"}
    run["traceability"] = dice.whole(*agent.traceability, "traceability", *at) / 1000
    run["violations"] = 0
    if dice.chance(agent.violating, "violating", *at):
        run["violations"] = dice.whole(1, agent.violations, "violations", *at)
    if condition != "nominal":
        onset = dice.whole(1, oracle // 2 + 1, "onset", *at)
        run |= {"fault_step": onset, "fault_took_hold": True, "recovered": success}
        if success:
            run |= _recovery(dice, agent, at)
    if condition in ATTACKED:
        landed = dice.chance(agent.landed, "landed", *at)
        run |= {"attack_attempted": True, "attack_landed": landed, "attack_succeeded": landed and not success}
    return run


def _recovery(dice: Dice, agent: Agent, at: tuple[object, ...]) -> Run:
    """Return what is recorded of a recovery."""
    correct = dice.chance(agent.correct, "correct", *at)
    guided = dice.chance(agent.intentional, "guided", *at)
    return {
        "recovery_steps": dice.whole(0, 2 if correct else agent.slow, "recovery", *at),
        "recovery_approach": "correct"
        if correct
        else dice.choice(("minor_deviation", "repeated_attempts"), "approach", *at),
        "memory_query_offset": dice.whole(0, 3, "query", *at),
        "memory_similarity": dice.whole(880, 999, "similarity", *at) / 1000 if guided else 0.5,
        "memory_modified": True,
    }
