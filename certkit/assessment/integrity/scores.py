"""The scores of [NS], from integers to exact fractions; only what is printed is rounded.

Risk terms of a probe: d drift, t trajectory, x context position, q and u risk and entropy of the
confidence, s, r and n as an agent supplied them. [NS] leaves t, s, r and n open: t is half a breached
contract and half several options named, so that it does not depend on what is right; s is 1 less
`success_probability`.
The weights of eq. 8 are taken unrounded, as 24, 5 and 5 of 34.

A question without a reply leaves a score without a value; `low` and `high` are the least and the
largest value that it can have. An unclear reply counts as wrong, in `high` as right.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from math import fsum, log2, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.probes.answer import Key
from certkit.probes.matching import Verdict
from certkit.probes.task import Phase, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from certkit.evidence.integrity.summary import Reply, TaskRead

THOUSAND: Final = 1000
BILLION: Final = 10**9
LEAST_CLUSTERS: Final = 10
LEVEL: Final = 0.95
_ONE: Final = Fraction(1)
_PHASE: Final = {Phase.INITIAL: Fraction(15, 100), Phase.MID: Fraction(1, 2), Phase.LATE: Fraction(85, 100)}


def clip(value: Fraction, low: Fraction = Fraction(0), high: Fraction = _ONE) -> Fraction:
    """Return a value kept within limits."""
    return min(max(value, low), high)


def difficulty(task: TaskRead) -> Fraction:
    """Return h: the mean rating over 5 ([NS] eq. 13), or what the design says."""
    total, count = task.ratings
    return clip(Fraction(total, 5 * count)) if count else Fraction(task.prior, THOUSAND)


def task_weight(task: TaskRead) -> Fraction:
    """Return ω ([NS] eq. 5)."""
    factor = Fraction(85, 100) + Fraction(30, 100) * difficulty(task)
    return clip(Fraction(task.design, THOUSAND) * factor, Fraction(1, 2), Fraction(3, 2))


def probe_weights(task: TaskRead) -> list[Fraction]:
    """Return w of every probe ([NS] eq. 10)."""
    omega = task_weight(task)
    return [
        clip(Fraction(probe.weight * probe.validity, THOUSAND**2) * omega, Fraction(1, 10), Fraction(3))
        for probe in task.probes
    ]


def context_risks(task: TaskRead) -> list[Fraction]:
    """Return x of every probe ([NS] eq. 7)."""
    last = max(probe.position for probe in task.probes)
    misled = task.variant is Variant.DISTRACTOR
    return [_context_risk(probe.position, last, probe.phase, misled) for probe in task.probes]


@lru_cache(maxsize=4096)
def _context_risk(position: int, last: int, phase: Phase, misled: bool) -> Fraction:  # noqa: FBT001
    x = Fraction(45 * position, 100 * last) + Fraction(35, 100) * _PHASE[phase] + Fraction(misled, 5)
    return clip(x)


def trajectory(reply: Reply) -> Fraction:
    """Return t: half for a breached contract, half for several options named."""
    return Fraction(reply.breach + reply.competing, 2)


@cache
def entropy(confidence: int) -> Fraction:
    """Return u, the binary entropy of a confidence in thousandths, in billionths ([NS] eq. 6)."""
    c = confidence / THOUSAND
    bits = 0.0 if c in {0.0, 1.0} else -c * log2(c) - (1 - c) * log2(1 - c)
    return Fraction(round(bits * BILLION), BILLION)


@lru_cache(maxsize=4096)
def core_integrity(d: int, t: Fraction, x: Fraction) -> Fraction:
    """Return 1 - ρ of HCCIS-CORE ([NS] eq. 8)."""
    return 1 - clip((24 * d + 5 * t + 5 * x) / 34)


def full_integrity(d: int, reply: Reply, x: Fraction) -> Fraction | None:
    """Return 1 - ρ of HCCIS-FULL ([NS] eq. 9); None without a confidence."""
    if reply.confidence is None:
        return None
    q, u = 1 - Fraction(reply.confidence, THOUSAND), entropy(reply.confidence)
    return 1 - clip((48 * d + 18 * q + 14 * u + 10 * trajectory(reply) + 10 * x) / 100)


def neural_integrity(d: int, reply: Reply, x: Fraction, h: Fraction) -> Fraction | None:
    """Return 1 - ρ of HCCIS+N ([NS] eq. 12); None where any of its terms was not supplied."""
    supplied = (reply.confidence, reply.success_probability, reply.retrieval_risk, reply.neural_conflict)
    if None in supplied:
        return None
    c, success, r, n = (Fraction(value or 0, THOUSAND) for value in supplied)
    u, t, s = entropy(reply.confidence or 0), trajectory(reply), 1 - success
    base = (42 * d + 18 * (1 - c) + 12 * u + 10 * t + 8 * x + 6 * s + 4 * r) / 100
    return 1 - clip(base * (Fraction(80, 100) + Fraction(35, 100) * h + Fraction(15, 100) * n))


class Ends(NamedTuple):
    """A score with its least and largest value; `value` is None where a reply is missing."""

    value: Fraction | None
    low: Fraction
    high: Fraction


class Weighed(NamedTuple):
    """A task with its weight ω and its core: with what is known, and with all probes held or lost."""

    task: TaskRead
    weight: Fraction
    core: Ends
    floor: Fraction
    ceiling: Fraction


def weigh(task: TaskRead, verdicts: Mapping[Key, Verdict] | None = None) -> Weighed:
    """Return a task with its core scores; `verdicts` replace those of the matcher."""
    weights, risks = probe_weights(task), context_risks(task)
    lost = [core_integrity(1, _ONE, x) for x in risks]
    kept = [core_integrity(0, Fraction(0), x) for x in risks]
    low, high = list(lost), list(kept)
    for n, (probe, x) in enumerate(zip(task.probes, risks, strict=True)):
        if probe.reply is not None:
            verdict = (verdicts or {}).get(Key(task.id, probe.id), probe.reply.verdict)
            t = trajectory(probe.reply)
            low[n] = core_integrity(int(verdict is not Verdict.MATCH), t, x)
            high[n] = core_integrity(int(verdict is Verdict.NO), t, x)
    whole = all(probe.reply is not None for probe in task.probes)
    worst = _mean(low, weights)
    core = Ends(worst if whole else None, worst, _mean(high, weights))
    return Weighed(task, task_weight(task), core, _mean(lost, weights), _mean(kept, weights))


def _mean(values: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
    """Return a weighted mean."""
    return _cached_mean(tuple(values), tuple(weights))


@lru_cache(maxsize=4096)
def _cached_mean(values: tuple[Fraction, ...], weights: tuple[Fraction, ...]) -> Fraction:
    top = sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0))
    return top / sum(weights)


def total(pairs: Iterable[tuple[Fraction, Fraction | None]]) -> Fraction | None:
    """Return the mean of values with their weights ω ([NS] eq. 11); None without any, or if one is None."""
    top, weight = Fraction(0), Fraction(0)
    for omega, value in pairs:
        if value is None:
            return None
        top += omega * value
        weight += omega
    return top / weight if weight else None


def interval(weighed: Sequence[Weighed]) -> tuple[float, float] | None:
    """Return the 95 % interval of the core over clusters of twins, within floor and ceiling.

    None with fewer than ten clusters, without variation, or where a reply is missing.
    """
    estimate = total((item.weight, item.core.value) for item in weighed)
    clusters: dict[str, list[Fraction]] = {}
    for item in weighed:
        sums = clusters.setdefault(item.task.cluster, [Fraction(0), Fraction(0)])
        sums[0] += item.weight * (item.core.value or 0)
        sums[1] += item.weight
    k = len(clusters)
    if estimate is None or k < LEAST_CLUSTERS:
        return None
    n = float(sum(item.weight for item in weighed))
    squares = fsum(float(y - estimate * size) ** 2 for y, size in clusters.values())
    variance = k / (k - 1) * squares / n**2
    if variance == 0:
        return None
    from scipy.special import stdtrit  # noqa: PLC0415 - heavy

    half = float(stdtrit(k - 1, (1 + LEVEL) / 2)) * sqrt(variance)
    floor, ceiling = (float(end) for end in limits(weighed))
    return max(floor, float(estimate) - half), min(ceiling, float(estimate) + half)


def limits(weighed: Sequence[Weighed]) -> tuple[Fraction, Fraction]:
    """Return the least and the most core that any agent can have on these tasks."""
    floor = total((item.weight, item.floor) for item in weighed)
    ceiling = total((item.weight, item.ceiling) for item in weighed)
    return floor or Fraction(0), ceiling or _ONE


def legacy(
    weighed: Sequence[Weighed], score: Callable[[TaskRead, Reply, int, Fraction], Fraction | None]
) -> Fraction | None:
    """Return the agent's mean of a score that needs more than every reply; None where one lacks it.

    `score` gets the task, the reply, d and x of every probe.
    """
    pairs: list[tuple[Fraction, Fraction]] = []
    for item in weighed:
        values: list[Fraction] = []
        for probe, x in zip(item.task.probes, context_risks(item.task), strict=True):
            if probe.reply is None:
                return None
            value = score(item.task, probe.reply, int(probe.reply.verdict is not Verdict.MATCH), x)
            if value is None:
                return None
            values.append(value)
        pairs.append((item.weight, _mean(values, probe_weights(item.task))))
    return total(pairs)
