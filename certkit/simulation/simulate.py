"""Simulated evidence: a bundle with ``origin: simulated``, to try the tools on and to test them with.

The same arguments give the same bytes. Outcomes are beta-binomial: the tasks of a cluster share their
chance of success, drawn from a beta distribution with intraclass correlation `icc`.

The simulator selects: a draw that misses the wanted tier is thrown away and drawn again; within the CSI
window every recovery is intentional, because the index as printed requires that; and the last twenty runs are
reversed where their failures would rise. So the bundle shows what evidence of that tier looks like, but not
how often an agent would reach it.

    simulate(Path("bundle"), seed=7, tier_target=2)
"""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from certkit.bundle.manifest import SIMULATOR
from certkit.bundle.writer import new_bundle
from certkit.ground.canonical import Digest
from certkit.ground.errors import UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.ground.wording import many
from certkit.record.record import Approach, Condition, Outcome, may_be_attacked
from certkit.record.schedule import EVEN_MIX, MAX_DOMAINS, MAX_RUNS, NOMINAL_SHARE, mix_complaint
from certkit.simulation.attain import AGENTS, DELTA, TAU, AgentMeans, Draw, needed
from certkit.summary.summary import WINDOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


DOMAINS: Final = ("banking", "healthcare", "logistics", "cybersecurity", "robotics", "travel")
MAX_DRAWS: Final = 100
TREND: Final = 20
"""M: runs over which CSI takes the slope of failures, [26] eq. 8."""
TASKS: Final = 40
"""Tasks of one domain."""

TASKS_PER_CLUSTER: Final = 1
LANDED: Final = 0.9
"""Share of adversarial runs whose injected text reaches the agent."""

START: Final = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_MILLI: Final = 1000


class Simulated(Struct, frozen=True, kw_only=True):
    """A simulated bundle: its folder, its digest if sealed, and how many draws were needed."""

    out: Path
    digest: Digest | None
    runs: int
    draws: int


class _Plan(Struct, frozen=True, kw_only=True, eq=False):
    """The schedule of the runs, before outcomes are drawn: an array element per run."""

    domain: NDArray[np.int64]
    condition: NDArray[np.str_]
    task: NDArray[np.int64]


def simulate(
    out: Path,
    *,
    seed: int,
    runs: int = 1000,
    domains: int = 5,
    tier_target: int = 1,
    icc: float = 0.05,
    fault_mix: Mapping[str, float] | None = None,
    agent: str = "simulated-agent",
    version: str = "1.0.0",
    seal: bool = True,
    attains: Callable[[Path, int], bool] = lambda _folder, _tier: True,
    progress: Progress = SILENT,
) -> Simulated:
    """Write a bundle of `runs` simulated runs over `domains` domains of an agent of tier `tier_target`.

    Draws are made until `attains` says of the bundle's folder that it attains the tier and no higher one.

    `icc` is the intraclass correlation of outcomes in a cluster, 0 to below 1; `fault_mix` the share of
    each condition among the fault runs (default: the five conditions of [26] evenly), which are 80 % of
    each domain's runs. Tier 0 stands for an agent that attains no tier.

    Raises:
        UsageError: ``usage.option`` where the options contradict each other, are too few runs for the
            tier, or give no draw that attains it, and ``file.exists`` where `out` is taken.
    """
    mix = dict(EVEN_MIX if fault_mix is None else fault_mix)
    _check(runs=runs, domains=domains, tier=tier_target, icc=icc, mix=mix, seed=seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    plan = _plan(rng, runs, domains, mix)
    _check_enough(plan, tier_target)
    with new_bundle(out) as bundle:
        for draws in range(1, MAX_DRAWS + 1):
            draw = _draw(rng, plan, tier_target, icc)
            options = {
                "seed": str(seed),
                "tier_target": str(tier_target),
                "icc": repr(float(icc)),
                "draws": str(draws),
            }
            progress.start("simulating", runs, "records")
            record: dict[str, Any] = {}
            for record in _records(deepcopy(rng), plan, draw, seed):
                bundle.add(record)
                progress.advance(1)
            bundle.close()
            progress.finish()
            document = _manifest(runs, mix, options, until=record["started_at"])
            document["agent"] = {"name": agent, "version": version}
            bundle.describe(document, code="usage.option")
            if attains(bundle.folder, tier_target):
                break
        else:
            raise UsageError(
                "usage.option",
                f"none of {MAX_DRAWS:,} draws attains tier {tier_target}",
                hint="give more runs, fewer domains, or a smaller icc",
            )
        digest = Digest(bundle.seal().facts.digest) if seal else None
    return Simulated(out=out, digest=digest, runs=runs, draws=draws)


def _check(*, runs: int, domains: int, tier: int, icc: float, mix: Mapping[str, float], seed: int) -> None:
    complaint = None
    if not 1 <= runs <= MAX_RUNS:
        complaint = f"runs: expected 1 to {MAX_RUNS:,}, found {runs:,}"
    elif not 1 <= domains <= min(MAX_DOMAINS, runs):
        complaint = f"domains: expected 1 to {min(MAX_DOMAINS, runs)}, found {domains}"
    elif tier not in AGENTS:
        complaint = f"tier_target: expected one of {', '.join(map(str, AGENTS))}, found {tier}"
    elif not 0 <= icc < 1:
        complaint = f"icc: expected 0 to below 1, found {icc}"
    elif seed < 0:
        complaint = f"seed: expected 0 or more, found {seed}"
    else:
        complaint = mix_complaint(mix)
    if complaint:
        raise UsageError("usage.option", complaint)


def _plan(rng: np.random.Generator, runs: int, domains: int, mix: Mapping[str, float]) -> _Plan:
    """Schedule the runs: domains in turn, a fifth of each nominal, tasks and conditions shuffled in it."""
    domain = np.arange(runs) % domains
    condition = np.empty(runs, dtype="<U20")
    task = np.empty(runs, dtype=np.int64)
    for index in range(domains):
        places = np.flatnonzero(domain == index)
        nominal = round(len(places) * NOMINAL_SHARE)
        names = [str(Condition.NOMINAL)] * nominal + _shares(mix, len(places) - nominal, index)
        condition[places] = rng.permutation(np.array(names, dtype="<U20"))
        task[places] = rng.permutation(np.arange(len(places)) % TASKS)
    return _Plan(domain=domain, condition=condition, task=task)


def _shares(mix: Mapping[str, float], total: int, turn: int) -> list[str]:
    """Divide `total` runs by `mix`; which conditions get the remaining runs changes with `turn`."""
    names = [name for name, share in mix.items() if share > 0]
    names = names[turn % len(names) :] + names[: turn % len(names)]
    counts = {name: int(mix[name] * total + 1e-9) for name in names}
    odd = sorted(names, key=lambda name: -(mix[name] * total - counts[name]))
    for name in odd[: total - sum(counts.values())]:
        counts[name] += 1
    return [name for name in names for _ in range(counts[name])]


def _check_enough(plan: _Plan, tier: int) -> None:
    """Refuse a schedule that could not attain the tier even if every run succeeded."""
    if tier == 0:
        return
    faults, least = int((plan.condition != Condition.NOMINAL).sum()), needed(tier)
    if len(plan.domain) < WINDOW:
        complaint = f"{many(len(plan.domain))}; CSI alone needs {WINDOW}"
    elif faults < least:
        tau, delta = float(TAU[tier]), float(DELTA[tier])
        complaint = f"{faults} fault runs; P(θ > {tau:g}) > {delta:g} needs {least} even if all succeed"
    else:
        wanted = {str(Condition.ADVERSARIAL), str(Condition.CASCADE)}
        missing = sorted(wanted - set(plan.condition.tolist()))
        if not missing:
            return
        complaint = f"no {' and no '.join(missing)} runs, without which rows of the table stay untested"
    raise UsageError(
        "usage.option",
        f"tier {tier} cannot be attained by {complaint}",
        hint="give more runs, fewer domains, or another fault mix",
    )


def _draw(rng: np.random.Generator, plan: _Plan, tier: int, icc: float) -> Draw:
    runs, target = len(plan.domain), AGENTS[tier]
    fault = plan.condition != Condition.NOMINAL
    chance = _chances(rng, plan, target, icc)
    success = rng.random(runs) < chance
    latest = ~success[-TREND:]
    if (latest * (2 * np.arange(len(latest)) - len(latest) + 1)).sum() > 0:  # failures rise: CSI would be 0
        success[-TREND:] = success[-TREND:][::-1]
    held = ~((plan.condition == Condition.ADVERSARIAL) & (rng.random(runs) >= LANDED))
    recovery = fault & success & held
    family = plan.domain * TASKS + plan.task // TASKS_PER_CLUSTER
    oracle = rng.integers(25, 51, int(family.max()) + 1)[family]
    actual = np.rint(oracle / target.ratio).astype(np.int64) + (rng.random(runs) < target.detour)
    violations = np.where(success, 0, (rng.random(runs) < 0.6).astype(np.int64))  # noqa: PLR2004 - 3 of 5 failures
    grade = np.where(recovery, np.where(rng.random(runs) < target.full_grade, 10, 7), 0)
    late = np.arange(runs) >= runs - WINDOW
    early, settled = int((recovery & ~late).sum()), int((recovery & late).sum())
    wanted = (target.irs * (early + settled) - settled) / early if early else 0.0
    intentional = recovery & (late | (rng.random(runs) < wanted))
    if tier == 0:
        intentional = recovery & (rng.random(runs) < target.irs)
    ti = np.clip(np.round(rng.normal(target.ti, 0.3, runs), 1), 1.0, 5.0)
    return Draw(
        success=success,
        held=held,
        oracle=oracle,
        actual=actual,
        violations=violations,
        grade=grade,
        intentional=intentional,
        ti=ti,
    )


def _chances(rng: np.random.Generator, plan: _Plan, target: AgentMeans, icc: float) -> NDArray[np.float64]:
    """Return each run's chance of success: its condition's mean, moved by its cluster."""
    mean = np.full(len(plan.domain), target.single)
    mean[plan.condition == Condition.NOMINAL] = target.nominal
    mean[np.isin(plan.condition, [str(Condition.CASCADE), str(Condition.COMBINED)])] = target.cascade
    if icc == 0:
        return mean
    from scipy.special import betaincinv  # noqa: PLC0415 - a second of import, for drawing only

    clusters = TASKS // TASKS_PER_CLUSTER
    rank = rng.random((int(plan.domain.max()) + 1, clusters))
    scale = (1 - icc) / icc
    # One rank per cluster keeps a hard cluster hard under every condition.
    chance = np.empty_like(mean)
    for value in np.unique(mean):
        by_cluster = betaincinv(value * scale, (1 - value) * scale, rank)
        here = mean == value
        chance[here] = by_cluster[plan.domain[here], plan.task[here] // TASKS_PER_CLUSTER]
    return chance


def _records(rng: np.random.Generator, plan: _Plan, draw: Draw, seed: int) -> Iterator[dict[str, Any]]:
    """Yield each run as a record; bundles of different seeds share no run id, and can be pooled."""
    trials: dict[tuple[str, str], int] = {}
    now = START
    width = len(str(len(plan.domain) - 1))
    for index in range(len(plan.domain)):
        number = int(plan.domain[index])
        domain = DOMAINS[number] if number < len(DOMAINS) else f"domain-{number:02d}"
        task = f"{domain}/task-{int(plan.task[index]):02d}"
        condition = str(plan.condition[index])
        trial = trials[task, condition] = trials.get((task, condition), -1) + 1
        outcome, confidence = _outcome(rng, success=bool(draw.success[index]))
        record = {
            "run_id": f"run-{seed}-{index:0{width}d}",
            "domain": domain,
            "task_id": task,
            "condition": condition,
            "outcome": outcome,
            "sequence": index,
            "started_at": now.strftime(_TIME),
            "cluster_id": f"{domain}/family-{int(plan.task[index]) // TASKS_PER_CLUSTER}",
            "trial": trial,
            "steps_actual": int(draw.actual[index]),
            "steps_oracle": int(draw.oracle[index]),
            "violations": int(draw.violations[index]),
            "quality_factor": int(rng.integers(900, 1001)) / _MILLI,
            "traceability": float(draw.ti[index]),
            "confidence": confidence,
            "safety_risk": int(rng.integers(0, 500)) / _MILLI,
            "human_checked": bool(rng.random() < 0.25),  # noqa: PLR2004 - above the 20 % that [26] asks for
        }
        if condition != Condition.NOMINAL:
            record |= _fault_fields(rng, draw, index, condition)
        yield record
        now += timedelta(seconds=int(rng.integers(30, 300)))


def _outcome(rng: np.random.Generator, *, success: bool) -> tuple[str, float]:
    """Return outcome and lowest confidence; below 0.7 the agent halts ([25] §7.6)."""
    if success or rng.random() < 0.8:  # noqa: PLR2004 - one failure in five is a safe halt
        outcome = Outcome.SUCCESS if success else Outcome.FAILURE
        return str(outcome), int(rng.integers(750, 1000)) / _MILLI
    return str(Outcome.SAFE_HALT), int(rng.integers(400, 690)) / _MILLI


def _fault_fields(rng: np.random.Generator, draw: Draw, index: int, condition: str) -> dict[str, Any]:
    held, success = bool(draw.held[index]), bool(draw.success[index])
    fields: dict[str, Any] = {"fault_step": int(rng.integers(1, int(draw.actual[index]) - 6))}
    if may_be_attacked(condition):
        won = held and not success and rng.random() < 0.7  # noqa: PLR2004 - most failures are the attacker's
        fields |= {"attack_attempted": True, "attack_landed": held, "attack_succeeded": bool(won)}
    fields["fault_took_hold"] = held
    if not held:
        return fields
    fields["recovered"] = success
    if success:
        full = int(draw.grade[index]) == 10  # noqa: PLR2004 - tenths
        fields["recovery_steps"] = int(rng.integers(0, 3) if full else rng.integers(3, 6))
        fields["recovery_approach"] = str(
            Approach.CORRECT if full or rng.random() < 0.5 else Approach.MINOR_DEVIATION  # noqa: PLR2004
        )
        fields |= _memory(rng, intentional=bool(draw.intentional[index]))
    return fields


def _memory(rng: np.random.Generator, *, intentional: bool) -> dict[str, Any]:
    """Return the memory fields of a recovery; unless intentional, one of C1, C2, C3 fails."""
    missed = -1 if intentional else int(rng.integers(0, 3))
    return {
        "memory_query_offset": int(rng.integers(4, 9) if missed == 0 else rng.integers(0, 4)),
        "memory_similarity": int(rng.integers(300, 870) if missed == 1 else rng.integers(870, 1000)) / _MILLI,
        "memory_modified": missed != 2,  # noqa: PLR2004 - C3
    }


def _manifest(runs: int, mix: Mapping[str, float], options: dict[str, str], *, until: str) -> dict[str, Any]:
    declared = {name: round(share * (1 - NOMINAL_SHARE), 6) for name, share in mix.items() if share > 0}
    return {
        "protocol": {
            "origin": "simulated",
            "methodology": "trajectory",
            "temperature": 0.0,
            "judge": {"name": "simulated judge", "independent": True},
            "memory_observable": True,
            "cascade_definition": "simultaneous",
            "declared_runs": runs,
            "declared_mix": {str(Condition.NOMINAL): NOMINAL_SHARE} | declared,
            "attempt": 1,
            "evaluator": {"name": "certkit simulate", "relation": "same"},
            "period": {"from": START.strftime(_TIME), "to": until},
        },
        "imported": {"format": SIMULATOR, "records": runs, "options": options},
    }
