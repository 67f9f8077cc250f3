"""The scores of [NS], from integers to exact fractions; only what is printed is rounded.

Risk terms of a probe: d, t and x as docs/reference/integrity.md defines them, q and u risk and entropy of the
confidence, r and n as an agent supplied them, s 1 less its `success_probability`. The weights of eq. 8 are
taken unrounded, as 24, 5 and 5 of 34.

A question without a reply leaves a score without a value; `low` and `high` are the least and the
largest value that it can have. An unclear reply counts as wrong, in `high` as right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache, lru_cache
from math import fsum, log2, sqrt
from operator import mul
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from certkit.bundle.facts import IntegrityCell, IntegrityFacts
from certkit.ground import canonical
from certkit.ground.document import State, fill
from certkit.ground.errors import InputError
from certkit.probes import raters
from certkit.probes import scores_document as doc
from certkit.probes.matching import THOUSAND, ReplyGrade
from certkit.probes.reading import MAX_FILE, read
from certkit.probes.records import Family, QuestionKey, Variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from certkit.bundle.folder import Bundle
    from certkit.probes.matching import Reading
    from certkit.probes.reading import Kept
    from certkit.probes.records import Annotation, Phase, ProbeTask

    Scores = Mapping[str, Fraction | None]

LEVEL: Final = 0.95
LEAST_CLUSTERS: Final = 10
_BILLION: Final = 10**9
_PHASE: Final = {"initial": Fraction(15, 100), "mid": Fraction(1, 2), "late": Fraction(85, 100)}


class Scored(NamedTuple):
    """A task with its weight ω, the replies to it, and its scores by name.

    A score is None if it lacks a reply or a term; `floor` and `ceiling` are the core with all probes lost
    and held, and `success` is 1 or 0.
    """

    task: ProbeTask
    attempt: Reading | None
    replies: tuple[Reading | None, ...]
    weight: Fraction
    scores: Scores


@cache
def task_weight(design: Fraction, h: Fraction) -> Fraction:
    """Return ω ([NS] eq. 5)."""
    omega = design * (Fraction(85, 100) + Fraction(30, 100) * h)
    return min(max(omega, Fraction(1, 2)), Fraction(3, 2))


@cache
def probe_weight(alpha: float, omega: Fraction, nu: str) -> Fraction:
    """Return w of a probe ([NS] eq. 10), by its weight α and the name of ν."""
    weight = raters.exact(alpha) * omega * raters.NU[nu]
    return min(max(weight, Fraction(1, 10)), Fraction(3))


@cache
def context_risk(position: int, last: int, phase: Phase, variant: Variant) -> Fraction:
    """Return x ([NS] eq. 7), at most .9475; `last` is the largest position of the task."""
    misled = Fraction(variant is Variant.DISTRACTOR, 5)
    return Fraction(45 * position, 100 * last) + Fraction(35, 100) * _PHASE[phase] + misled


@cache
def entropy(confidence: int) -> Fraction:
    """Return u, the binary entropy of a confidence in thousandths, to billionths ([NS] eq. 6)."""
    c = confidence / THOUSAND
    return Fraction(round(_BILLION * -sum(p * log2(p) for p in (c, 1 - c) if p)), _BILLION)


@lru_cache(maxsize=65_536)
def held(reply: Reading | None, x: Fraction, h: Fraction) -> Scores:
    """Return 1 - ρ of one probe under every score ([NS] eq. 8, 9, 12); None where a term is missing."""
    ten_x = 10 * x

    def core(d: int, halves: int) -> Fraction:
        return (68 - 48 * d - 5 * halves - ten_x) / 68

    made: dict[str, Fraction | None] = dict.fromkeys(("core", "full", "neural"))
    made |= {"floor": core(1, 2), "ceiling": core(0, 0), "low": core(1, 2), "high": core(0, 0)}
    if reply is None:
        return made
    d, halves = int(reply.verdict is not ReplyGrade.MATCH), reply.breach + reply.competing
    made["core"] = made["low"] = core(d, halves)
    made["high"] = core(reply.verdict is ReplyGrade.NO, halves)
    if reply.confidence is None:
        return made
    q, u = 1 - Fraction(reply.confidence, THOUSAND), entropy(reply.confidence)
    made["full"] = 1 - (48 * d + 5 * halves + 18 * q + 14 * u + ten_x) / 100
    supplied = (reply.success_probability, reply.retrieval_risk, reply.neural_conflict)
    if None not in supplied:
        success, r, n = (Fraction(value or 0, THOUSAND) for value in supplied)
        risk = 42 * d + 5 * halves + 6 + 18 * q + 12 * u + 8 * x - 6 * success + 4 * r
        made["neural"] = 1 - min(risk / 100 * (80 + 35 * h + 15 * n) / 100, Fraction(1))
    return made


@lru_cache(maxsize=65_536)
def mean(weights: tuple[Fraction, ...], values: tuple[Fraction | None, ...]) -> Fraction | None:
    """Return the mean of values with their weights ([NS] eq. 10, 11).

    None where there is no value, or one of them is missing.
    """
    present = [value for value in values if value is not None]
    if not values or len(present) < len(values):
        return None
    return sum(map(mul, weights, present), Fraction(0)) / sum(weights)


def scored(
    task: ProbeTask, replies: Mapping[QuestionKey, Reading], said: Sequence[Annotation] = ()
) -> Scored:
    """Return a task with its scores."""
    h, last = raters.difficulty(task, said), max(probe.position for probe in task.probes)
    omega = task_weight(raters.exact(task.priors.weight), h)
    weights = tuple(probe_weight(p.weight, omega, raters.validity(task, p, said)) for p in task.probes)
    answers = tuple(replies.get(QuestionKey(task.id, probe.id)) for probe in task.probes)
    probes = [
        held(reply, context_risk(probe.position, last, probe.phase, task.variant), h)
        for reply, probe in zip(answers, task.probes, strict=True)
    ]
    scores = {name: mean(weights, tuple(probe[name] for probe in probes)) for name in probes[0]}
    attempt = replies.get(QuestionKey(task.id, None))
    scores["success"] = None if attempt is None else Fraction(attempt.verdict is ReplyGrade.MATCH)
    return Scored(task, attempt, answers, omega, scores)


def overall(items: Iterable[Scored], name: str) -> Fraction | None:
    """Return the mean of a score over tasks with their weights ω ([NS] eq. 11)."""
    parts = [(item.weight, item.scores[name]) for item in items]
    return mean(tuple(weight for weight, _ in parts), tuple(value for _, value in parts))


def _core(items: Sequence[Scored]) -> doc.ScoreCore:
    """Return the core with its 95 % interval over clusters of twins, within floor and ceiling.

    No interval with fewer than ten clusters, without variation, or where a reply is missing.
    """
    value = overall(items, "core")
    ends = {name: overall(items, name) or Fraction(0) for name in ("low", "high", "floor", "ceiling")}
    core = doc.ScoreCore(value=value, **ends, interval=None)
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
    limits = max(float(core.floor), float(value) - half), min(float(core.ceiling), float(value) + half)
    return msgspec.structs.replace(core, interval=limits)


def score_integrity(bundle: Path) -> doc.IntegrityDocument:
    """Return success and commitment integrity from the folder of a bundle; raises as `read` does."""
    return score(read(bundle))


def score(kept: Kept) -> doc.IntegrityDocument:
    """Return success and commitment integrity of an agent."""
    said: dict[str, list[Annotation]] = defaultdict(list)
    for item in kept.annotations:
        said[item.task_id].append(item)

    def scored_of(replies: Mapping[QuestionKey, Reading]) -> list[Scored]:
        return [scored(task, replies, said[task.id]) for task in kept.tasks]

    def of_families(*families: Family) -> list[Scored]:
        return [item for item in items if item.task.family in families]

    replies = kept.replies()
    items = scored_of(replies)
    attempts = [item.attempt for item in items]
    probes = [reply for item in items for reply in item.replies]
    state = State.MEASURED if len(replies) == len(attempts) + len(probes) else State.PARTIAL
    return doc.IntegrityDocument(
        state=state if replies else State.UNMEASURED,
        seed=kept.inventory.origin,
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
            unclear=sum(reply is not None and reply.verdict is ReplyGrade.UNCLEAR for reply in probes),
        ),
        core=_core(items),
        full=doc.Valued(value=overall(items, "full")),
        neural=doc.Valued(value=overall(items, "neural")),
        distractor_gap=doc.Gap(
            value=_gap(items), by_family={family: _gap(of_families(family)) for family in Family}
        ),
        repair_precision=doc.Valued(value=_repair(of_families(Family.REPAIR, Family.STALE))),
        hollow=doc.Hollow(tasks=tuple(item.task.id for item in items if _is_hollow(item))),
        by_cell=_cells(items),
        raters=doc.Raters(
            people=len({item.rater for item in kept.annotations if item.kind != "audit"}),
            difficulty=raters.difficulty_of(kept, said),
            construct=raters.construct_of(kept),
        ),
        audit=raters.audit_of(kept, replies, lambda mended: overall(scored_of(mended), "core")),
    )


def _matched(replies: Iterable[Reading | None]) -> int:
    return sum(reply is not None and reply.verdict is ReplyGrade.MATCH for reply in replies)


def _gap(items: Sequence[Scored]) -> Fraction | None:
    clean, misled = (
        overall((item for item in items if item.task.variant is variant), "core")
        for variant in (Variant.CLEAN, Variant.DISTRACTOR)
    )
    return None if clean is None or misled is None else clean - misled


def _repair(items: Sequence[Scored]) -> Fraction | None:
    """Return the share of the new state in replies that give the new or the old one alone."""
    replies = [reply for item in items for reply in item.replies if reply]
    matched, lured = _matched(replies), sum(reply.lured for reply in replies)
    return Fraction(matched, matched + lured) if matched + lured else None


def _is_hollow(item: Scored) -> bool:
    """Tell whether a success rests on fewer than half of its probes, whatever missing replies would be."""
    most = _matched(item.replies) + item.replies.count(None)
    return _matched([item.attempt]) == 1 and 2 * most < len(item.replies)


def _cells(items: Sequence[Scored]) -> tuple[doc.ScoreCell, ...]:
    cells: dict[tuple[str, str, str], list[Scored]] = defaultdict(list)
    for item in items:
        cells[item.task.family, item.task.variant, item.task.band].append(item)
    return tuple(
        fill(
            doc.ScoreCell,
            cell[0].task,
            tasks=len(cell),
            successes=_matched(item.attempt for item in cell),
            probes=sum(len(item.replies) for item in cell),
            matched=sum(_matched(item.replies) for item in cell),
            core=overall(cell, "core"),
        )
        for cell in cells.values()
    )


def integrity_facts(bundle: Bundle) -> IntegrityFacts | None:
    """Return the counts of commitment integrity that a passport signs, None where a bundle holds no replies.

    Raises:
        InputError: ``integrity.inventory`` where the run is of another agent, and what `read` raises.
    """
    files = {item["path"]: item["sha256"] for item in bundle.files if item["path"].startswith("integrity/")}
    if not files:
        return None
    # Through the bundle: the bytes that are counted are those that its manifest lists.
    kept = read(bundle.root, lambda path: bundle.read(path, limit=MAX_FILE))
    agent, origin = bundle.manifest.agent, bundle.manifest.protocol.origin
    if (run := kept.run) is not None:
        asked = run.name, run.agent_version, "simulated" if run.agent.startswith("reference:") else origin
        stated = agent.name, agent.version, origin
        if asked != stated:
            message = f"run.json is of {', '.join(asked)}, and bundle.json of {', '.join(stated)}"
            raise InputError("integrity.inventory", message, where=str(bundle.root))
    scored = score(kept)
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for cell in scored.by_cell:
        added = {name: getattr(cell, name) for name in ("tasks", "successes", "probes", "matched")}
        counts[cell.family.value, cell.variant.value].update(added)
    core = scored.core.value
    return IntegrityFacts(
        digest=canonical.digest(canonical.canonical(files)),
        seed=scored.seed,
        cells=tuple(
            IntegrityCell(family=family, variant=variant, **added)
            for (family, variant), added in sorted(counts.items())
        ),
        core=None if core is None else float(round(core, 6)),
        hollow=len(scored.hollow.tasks),
        successes=scored.success.successes,
        unanswered=scored.success.unanswered + scored.accuracy.unanswered,
        asked=scored.success.n + scored.accuracy.n,
        raters=scored.raters.people,
    )
