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
from operator import mul
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from certkit.assessment.integrity import document as doc
from certkit.assessment.integrity import raters
from certkit.evidence.integrity.reading import read
from certkit.probes.matching import Verdict
from certkit.probes.records import Family, Key, Phase, Variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from certkit.evidence.integrity.reading import Kept
    from certkit.probes.matching import Reading
    from certkit.probes.records import Annotation, Task

    Scores = Mapping[str, Fraction | None]

LEAST_CLUSTERS: Final = 10
LEVEL: Final = 0.95
_THOUSAND: Final = 1000
_MILLION: Final = 10**6
_BILLION: Final = 10**9
_PHASE: Final = {"initial": Fraction(15, 100), "mid": Fraction(1, 2), "late": Fraction(85, 100)}


class Scored(NamedTuple):
    """A task with its weight ω, the replies to it, and its scores by name.

    A score is None if it lacks a reply or a term; `floor` and `ceiling` are the core with all probes lost
    and held, and `success` is 1 or 0.
    """

    task: Task
    attempt: Reading | None
    replies: tuple[Reading | None, ...]
    weight: Fraction
    scores: Scores


@lru_cache(maxsize=4096)
def task_weight(design: Fraction, h: Fraction) -> Fraction:
    """Return ω ([NS] eq. 5)."""
    omega = design * (Fraction(85, 100) + Fraction(30, 100) * h)
    return min(max(omega, Fraction(1, 2)), Fraction(3, 2))


@lru_cache(maxsize=4096)
def probe_weights(
    alphas: tuple[Fraction, ...], omega: Fraction, nus: tuple[str, ...]
) -> tuple[Fraction, ...]:
    """Return w of every probe of a task ([NS] eq. 10), by the names of ν."""
    weights = (alpha * omega * raters.NU[nu] for alpha, nu in zip(alphas, nus, strict=True))
    return tuple(min(max(weight, Fraction(1, 10)), Fraction(3)) for weight in weights)


@lru_cache(maxsize=4096)
def context_risk(position: int, last: int, phase: Phase, variant: Variant) -> Fraction:
    """Return x ([NS] eq. 7), at most .9475; `last` is the largest position of the task."""
    misled = variant is Variant.DISTRACTOR
    return Fraction(45 * position, 100 * last) + Fraction(35, 100) * _PHASE[phase] + Fraction(misled, 5)


@cache
def entropy(confidence: int) -> int:
    """Return u, the binary entropy of a confidence in thousandths, in billionths ([NS] eq. 6)."""
    c = confidence / _THOUSAND
    return round(_BILLION * (0.0 if c in {0.0, 1.0} else -c * log2(c) - (1 - c) * log2(1 - c)))


@lru_cache(maxsize=65_536)
def mean(values: tuple[int | Fraction, ...], weights: tuple[Fraction, ...]) -> Fraction:
    """Return the weighted mean over the probes of a task ([NS] eq. 10)."""
    return sum(map(mul, weights, values), Fraction(0)) / sum(weights)


def scored(task: Task, replies: Mapping[Key, Reading], said: Sequence[Annotation] = ()) -> Scored:
    """Return a task with its scores.

    Eq. 8 and 9 are linear, so that the mean of a score follows from the means of its terms.
    """
    h = raters.difficulty(task, said)
    weight = task_weight(raters.exact(task.priors.weight), h)
    last = max(probe.position for probe in task.probes)
    weights = probe_weights(
        tuple(raters.exact(probe.weight) for probe in task.probes),
        weight,
        tuple(raters.validity(task, probe, said) for probe in task.probes),
    )
    risks = tuple(context_risk(probe.position, last, probe.phase, task.variant) for probe in task.probes)
    x = mean(risks, weights)
    answers = tuple(replies.get(Key(task.id, probe.id)) for probe in task.probes)
    given = [reply for reply in answers if reply is not None]

    def core(missing: int, unclear: int) -> Fraction:
        """Return the core if missing replies are all right or all wrong (0, 1), and unclear ones too."""
        drifts = (
            missing if reply is None else unclear if reply.verdict is Verdict.UNCLEAR else _drift(reply)
            for reply in answers
        )
        halves = tuple(2 * missing if reply is None else _halves(reply) for reply in answers)
        return 1 - (24 * mean(tuple(drifts), weights) + 5 * mean(halves, weights) / 2 + 5 * x) / 34

    scores: dict[str, Fraction | None] = dict.fromkeys(("core", "full", "neural", "success"))
    scores |= {"low": core(1, 1), "floor": (5 - 5 * x) / 34, "ceiling": 1 - 5 * x / 34}
    doubtful = any(reply is None or reply.verdict is Verdict.UNCLEAR for reply in answers)
    scores["high"] = core(0, 0) if doubtful else scores["low"]
    if len(given) == len(answers):
        scores["core"] = scores["low"]
        scores["full"], scores["neural"] = _full(given, weights, x), _neural(given, weights, risks, h)
    if (attempt := replies.get(Key(task.id, None))) is not None:
        scores["success"] = Fraction(1 - _drift(attempt))
    return Scored(task, attempt, answers, weight, scores)


def _full(replies: Sequence[Reading], weights: tuple[Fraction, ...], x: Fraction) -> Fraction | None:
    """Return 1 - ρ of HCCIS-FULL ([NS] eq. 9); None without a confidence."""
    stated = [reply.confidence for reply in replies if reply.confidence is not None]
    if len(stated) < len(replies):
        return None
    terms = (
        _BILLION * (48 * _drift(reply) + 18 + 5 * _halves(reply)) - 18 * _MILLION * c + 14 * entropy(c)
        for reply, c in zip(replies, stated, strict=True)
    )
    return 1 - (mean(tuple(terms), weights) / _BILLION + 10 * x) / 100


def _neural(
    replies: Sequence[Reading], weights: tuple[Fraction, ...], risks: Sequence[Fraction], h: Fraction
) -> Fraction | None:
    """Return 1 - ρ of HCCIS+N ([NS] eq. 12); None where any of its terms was not supplied."""
    held = []
    for reply, x in zip(replies, risks, strict=True):
        supplied = (reply.confidence, reply.success_probability, reply.retrieval_risk, reply.neural_conflict)
        if None in supplied:
            return None
        c, success, r, n = (Fraction(value or 0, _THOUSAND) for value in supplied)
        u = Fraction(entropy(reply.confidence or 0), _BILLION)
        risk = 42 * _drift(reply) + 18 * (1 - c) + 12 * u + 5 * _halves(reply) + 8 * x
        risk += 6 * (1 - success) + 4 * r
        held.append(1 - min(risk / 100 * (80 + 35 * h + 15 * n) / 100, Fraction(1)))
    return mean(tuple(held), weights)


def _drift(reply: Reading) -> int:
    """Return d: 1 unless the reply matches."""
    return int(reply.verdict is not Verdict.MATCH)


def _halves(reply: Reading) -> int:
    """Return t in halves: one for a breached contract, one for several options named."""
    return reply.breach + reply.competing


def overall(items: Iterable[Scored], name: str) -> Fraction | None:
    """Return the mean of a score over tasks with their weights ω ([NS] eq. 11).

    None where there is no task, or one of them has no value.
    """
    top = total = Fraction(0)
    for item in items:
        if (value := item.scores[name]) is None:
            return None
        top += item.weight * value
        total += item.weight
    return top / total if total else None


def _core(items: Sequence[Scored]) -> doc.Core:
    """Return the core with its 95 % interval over clusters of twins, within floor and ceiling.

    No interval with fewer than ten clusters, without variation, or where a reply is missing.
    """
    value = overall(items, "core")
    low, high, floor, ceiling = (
        overall(items, name) or Fraction(0) for name in ("low", "high", "floor", "ceiling")
    )
    core = doc.Core(value=value, low=low, high=high, floor=floor, ceiling=ceiling, interval=None)
    if value is None:
        return core
    residuals: dict[str, Fraction] = defaultdict(Fraction)
    for item in items:
        residuals[item.task.cluster] += item.weight * ((item.scores["core"] or 0) - value)
    k = len(residuals)
    if k < LEAST_CLUSTERS or not any(residuals.values()):
        return core
    from scipy.special import stdtrit  # noqa: PLC0415 - heavy

    variance = k / (k - 1) * fsum(float(residual) ** 2 for residual in residuals.values())
    half = float(stdtrit(k - 1, (1 + LEVEL) / 2)) * sqrt(variance) / float(sum(item.weight for item in items))
    limits = max(float(floor), float(value) - half), min(float(ceiling), float(value) + half)
    return msgspec.structs.replace(core, interval=limits)


def score_integrity(bundle: Path) -> doc.IntegrityDocument:
    """Return success and commitment integrity from the folder of a bundle; raises as `read` does."""
    return score(read(bundle))


def score(kept: Kept) -> doc.IntegrityDocument:
    """Return success and commitment integrity of an agent."""
    said: dict[str, list[Annotation]] = defaultdict(list)
    for item in kept.annotations:
        said[item.task_id].append(item)

    def scored_of(replies: Mapping[Key, Reading]) -> list[Scored]:
        return [scored(task, replies, said[task.id]) for task in kept.tasks]

    def of_families(*families: Family) -> list[Scored]:
        return [item for item in items if item.task.family in families]

    replies = kept.replies()
    items = scored_of(replies)
    attempts = [item.attempt for item in items]
    probes = [reply for item in items for reply in item.replies]
    complete = None not in attempts and None not in probes
    state = doc.State.MEASURED if complete else doc.State.PARTIAL
    return doc.IntegrityDocument(
        state=state if replies else doc.State.UNMEASURED,
        origin=doc.Origin(
            seed=kept.inventory.origin,
            tasks_digest=kept.inventory.tasks_digest,
            agent=None if kept.run is None else kept.run.agent,
            mode=None if kept.run is None else kept.run.mode,
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
        raters=doc.Raters(
            people=len({item.rater for item in kept.annotations if item.kind != "audit"}),
            core=overall(
                [scored(task, replies) for task in kept.tasks] if kept.annotations else items, "core"
            ),
            difficulty=raters.difficulty_of(kept, said),
            construct=raters.construct_of(kept),
        ),
        audit=raters.audit_of(kept, replies, lambda mended: overall(scored_of(mended), "core")),
    )


def _matched(replies: Iterable[Reading | None]) -> int:
    return sum(reply is not None and reply.verdict is Verdict.MATCH for reply in replies)


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
            successes=_matched(item.attempt for item in cell),
            probes=sum(len(item.replies) for item in cell),
            matched=sum(_matched(item.replies) for item in cell),
            core=overall(cell, "core"),
        )
        for cell in cells.values()
    )
