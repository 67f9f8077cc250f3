"""The scores of [NS], from integers to exact fractions; only what is printed is rounded.

Risk terms of a probe: d drift, t trajectory, x context position, q and u risk and entropy of the
confidence, s, r and n as an agent supplied them. [NS] leaves t, s, r and n open: t is half a breached
contract and half several options named, so that it does not depend on what is right; s is 1 less
`success_probability`. The weights of eq. 8 are taken unrounded, as 24, 5 and 5 of 34.

A question without a reply leaves a score without a value; `low` and `high` are the least and the
largest value that it can have. An unclear reply counts as wrong, in `high` as right.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cache, lru_cache
from math import fsum, log2, sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.assessment.integrity import document as doc
from certkit.assessment.integrity import raters
from certkit.evidence.integrity.reading import read
from certkit.probes.matching import Verdict
from certkit.probes.records import Family, Key, Phase, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from certkit.evidence.integrity.reading import Kept, Reply
    from certkit.probes.records import Annotation, Task

THOUSAND: Final = 1000
BILLION: Final = 10**9
LEAST_CLUSTERS: Final = 10
LEVEL: Final = 0.95
_ONE: Final = Fraction(1)
_PHASE: Final = {"initial": Fraction(15, 100), "mid": Fraction(1, 2), "late": Fraction(85, 100)}


class Scored(NamedTuple):
    """A task with its weight ω, the replies to it, and its scores, None where they lack a reply or a term.

    `floor` and `ceiling` are the core with all probes lost and held.
    """

    task: Task
    attempt: Reply | None
    replies: tuple[Reply | None, ...]
    weight: Fraction
    success: Fraction | None
    core: Fraction | None
    full: Fraction | None
    neural: Fraction | None
    low: Fraction
    high: Fraction
    floor: Fraction
    ceiling: Fraction


def clip(value: Fraction, low: Fraction = Fraction(0), high: Fraction = _ONE) -> Fraction:
    """Return a value kept within limits."""
    return min(max(value, low), high)


@lru_cache(maxsize=4096)
def task_weight(design: Fraction, h: Fraction) -> Fraction:
    """Return ω ([NS] eq. 5)."""
    return clip(design * (Fraction(85, 100) + Fraction(30, 100) * h), Fraction(1, 2), Fraction(3, 2))


@lru_cache(maxsize=4096)
def probe_weight(alpha: Fraction, omega: Fraction, nu: Fraction) -> Fraction:
    """Return w ([NS] eq. 10)."""
    return clip(alpha * omega * nu, Fraction(1, 10), Fraction(3))


@lru_cache(maxsize=4096)
def context_risk(position: int, last: int, phase: Phase, variant: Variant) -> Fraction:
    """Return x ([NS] eq. 7); `last` is the largest position of the task."""
    misled = variant is Variant.DISTRACTOR
    return clip(Fraction(45 * position, 100 * last) + Fraction(35, 100) * _PHASE[phase] + Fraction(misled, 5))


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


def scored(task: Task, replies: Mapping[Key, Reply], said: Sequence[Annotation] = ()) -> Scored:
    """Return a task with its scores."""
    h = raters.difficulty(task, said)
    weight = task_weight(raters.exact(task.priors.weight), h)
    last = max(probe.position for probe in task.probes)
    weights = tuple(
        probe_weight(raters.exact(probe.weight), weight, raters.validity(task, probe, said))
        for probe in task.probes
    )
    risks = [context_risk(probe.position, last, probe.phase, task.variant) for probe in task.probes]
    answers = tuple(replies.get(Key(task.id, probe.id)) for probe in task.probes)

    def mean(score: Callable[[Reply | None, Fraction], Fraction | None]) -> Fraction | None:
        values = tuple(score(reply, x) for reply, x in zip(answers, risks, strict=True))
        return None if None in values else _mean(values, weights)

    def known(score: Callable[[int, Reply, Fraction], Fraction | None]) -> Fraction | None:
        return mean(lambda reply, x: None if reply is None else score(_drift(reply), reply, x))

    def core(reply: Reply | None, x: Fraction, missing: int, unclear: int) -> Fraction:
        if reply is None:
            return core_integrity(missing, Fraction(missing), x)
        d = unclear if reply.verdict is Verdict.UNCLEAR else _drift(reply)
        return core_integrity(d, trajectory(reply), x)

    zero, attempt = Fraction(0), replies.get(Key(task.id, None))
    low = mean(lambda reply, x: core(reply, x, 1, 1)) or zero
    return Scored(
        task=task,
        attempt=attempt,
        replies=answers,
        weight=weight,
        success=None if attempt is None else Fraction(1 - _drift(attempt)),
        core=None if None in answers else low,
        full=known(full_integrity),
        neural=known(lambda d, reply, x: neural_integrity(d, reply, x, h)),
        low=low,
        high=mean(lambda reply, x: core(reply, x, 0, 0)) or zero,
        floor=mean(lambda _, x: core_integrity(1, _ONE, x)) or zero,
        ceiling=mean(lambda _, x: core_integrity(0, zero, x)) or zero,
    )


def _drift(reply: Reply) -> int:
    """Return d: 1 unless the reply matches."""
    return int(reply.verdict is not Verdict.MATCH)


@lru_cache(maxsize=4096)
def _mean(values: tuple[Fraction, ...], weights: tuple[Fraction, ...]) -> Fraction:
    """Return I_t ([NS] eq. 10)."""
    return sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0)) / sum(weights)


def overall(items: Iterable[Scored], name: str) -> Fraction | None:
    """Return the mean of a score over tasks with their weights ω ([NS] eq. 11).

    None where there is no task, or one of them has no value.
    """
    value_of: Callable[[Scored], Fraction | None] = attrgetter(name)
    top, weight = Fraction(0), Fraction(0)
    for item in items:
        if (value := value_of(item)) is None:
            return None
        top += item.weight * value
        weight += item.weight
    return top / weight if weight else None


def interval(items: Sequence[Scored]) -> tuple[float, float] | None:
    """Return the 95 % interval of the core over clusters of twins, within floor and ceiling.

    None with fewer than ten clusters, without variation, or where a reply is missing.
    """
    estimate = overall(items, "core")
    clusters: dict[str, list[Fraction]] = {}
    for item in items:
        sums = clusters.setdefault(item.task.cluster, [Fraction(0), Fraction(0)])
        sums[0] += item.weight * (item.core or 0)
        sums[1] += item.weight
    k = len(clusters)
    if estimate is None or k < LEAST_CLUSTERS:
        return None
    n = float(sum(item.weight for item in items))
    squares = fsum(float(y - estimate * size) ** 2 for y, size in clusters.values())
    variance = k / (k - 1) * squares / n**2
    if variance == 0:
        return None
    from scipy.special import stdtrit  # noqa: PLC0415 - heavy

    half = float(stdtrit(k - 1, (1 + LEVEL) / 2)) * sqrt(variance)
    floor, ceiling = (float(overall(items, name) or 0) for name in ("floor", "ceiling"))
    return max(floor, float(estimate) - half), min(ceiling, float(estimate) + half)


def score_integrity(bundle: Path) -> doc.IntegrityDocument:
    """Return success and commitment integrity from the folder of a bundle; raises as `read` does."""
    return score(read(bundle))


def score(kept: Kept) -> doc.IntegrityDocument:
    """Return success and commitment integrity of an agent."""
    said: dict[str, list[Annotation]] = defaultdict(list)
    for item in kept.annotations:
        said[item.task_id].append(item)

    def scored_of(read: Mapping[Key, Reply]) -> list[Scored]:
        return [scored(task, read, said[task.id]) for task in kept.tasks]

    def of_families(*families: Family) -> list[Scored]:
        return [item for item in items if item.task.family in families]

    replies = kept.replies()
    items = scored_of(replies)
    attempts = [item.attempt for item in items]
    probes = [reply for item in items for reply in item.replies]
    run, complete = kept.run, None not in attempts and None not in probes
    state = doc.State.MEASURED if complete else doc.State.PARTIAL
    return doc.IntegrityDocument(
        state=state if replies else doc.State.UNMEASURED,
        origin=doc.Origin(
            seed=kept.inventory.origin,
            tasks_digest=kept.inventory.tasks_digest,
            agent=None if run is None else run.agent,
            mode=None if run is None else run.mode,
        ),
        success=doc.Success(
            successes=_matched(attempts),
            n=len(attempts),
            unanswered=attempts.count(None),
            weighted=overall(items, "success"),
        ),
        accuracy=doc.Accuracy(
            matched=_matched(probes),
            n=len(probes),
            unanswered=probes.count(None),
            unclear=sum(reply is not None and reply.verdict is Verdict.UNCLEAR for reply in probes),
        ),
        core=_core(items),
        full=doc.Valued(value=overall(items, "full")),
        neural=doc.Valued(value=overall(items, "neural")),
        distractor_gap=doc.Gap(
            value=_gap(items), by_family={family: _gap(of_families(family)) for family in Family}
        ),
        repair_precision=_repair(of_families(Family.REPAIR, Family.STALE)),
        hollow=doc.Hollow(tasks=tuple(item.task.id for item in items if _is_hollow(item))),
        by_cell=_cells(items),
        raters=doc.Raters(difficulty=raters.difficulty_of(kept, said), construct=raters.construct_of(kept)),
        audit=raters.audit_of(kept, replies, lambda mended: overall(scored_of(mended), "core")),
    )


def _matched(replies: Sequence[Reply | None]) -> int:
    return sum(reply is not None and reply.verdict is Verdict.MATCH for reply in replies)


def _core(items: Sequence[Scored]) -> doc.Core:
    ends = {name: overall(items, name) or Fraction(0) for name in ("low", "high", "floor", "ceiling")}
    return doc.Core(value=overall(items, "core"), interval=interval(items), **ends)


def _gap(items: Sequence[Scored]) -> Fraction | None:
    clean, misled = (
        overall((item for item in items if item.task.variant is variant), "core")
        for variant in (Variant.CLEAN, Variant.DISTRACTOR)
    )
    return None if clean is None or misled is None else clean - misled


def _repair(items: Sequence[Scored]) -> doc.Repair:
    replies = [reply for item in items for reply in item.replies if reply]
    matched, lured = _matched(replies), sum(reply.lured for reply in replies)
    share = Fraction(matched, matched + lured) if matched + lured else None
    return doc.Repair(value=share, matched=matched, lured=lured)


def _is_hollow(item: Scored) -> bool:
    """Tell whether a success rests on fewer than half of its probes, whatever missing replies would be."""
    held = _matched(item.replies) + item.replies.count(None)
    return _matched([item.attempt]) == 1 and 2 * held < len(item.replies)


def _cells(items: Sequence[Scored]) -> tuple[doc.Cell, ...]:
    cells: dict[tuple[str, str, str], list[Scored]] = defaultdict(list)
    for item in items:
        cells[item.task.family, item.task.variant, item.task.band].append(item)
    return tuple(
        doc.Cell(
            family=cell[0].task.family,
            variant=cell[0].task.variant,
            band=cell[0].task.band,
            tasks=len(cell),
            successes=_matched([item.attempt for item in cell]),
            probes=sum(len(item.replies) for item in cell),
            matched=sum(_matched(item.replies) for item in cell),
            core=overall(cell, "core"),
        )
        for cell in cells.values()
    )
