"""What people say: how difficult tasks are, which family a probe belongs to, whether the matcher is right.

An adjudicated line decides what it is about, and its author is no rater of the agreement.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import UNSET

from certkit.assessment.integrity.document import Assigner, Audit, Confusion, Construct, Difficulty, RaterPair
from certkit.assessment.integrity.scores import difficulty, total, weigh
from certkit.assessment.rater_error.agreement import contingency, icc, kappa
from certkit.evidence.integrity.reading import key_of
from certkit.probes.answer import Key
from certkit.probes.matching import Verdict
from certkit.probes.task import Band, Family

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from certkit.evidence.integrity.summary import Commitments
    from certkit.probes.answer import Annotation

LEAST: Final = 5
"""Rated tasks of a band that its mean takes."""

Said = TypeVar("Said", str, int)


def _by_rater(annotations: Iterable[Annotation], kind: str) -> dict[str, dict[Key, Annotation]]:
    """Return what each rater said by question, adjudicated lines aside."""
    said: dict[str, dict[Key, Annotation]] = defaultdict(dict)
    for item in annotations:
        if item.kind == kind and item.adjudicated is not True:
            said[item.rater][key_of(item)] = item
    return dict(sorted(said.items()))


def _pairs(
    said: Mapping[str, Mapping[Key, int]], scores: list[int], *, ordered: bool
) -> tuple[RaterPair, ...]:
    """Return the agreement of every two raters who have questions in common."""
    rows = []
    for a, b in combinations(said, 2):
        shared = sorted(said[a].keys() & said[b].keys(), key=lambda key: (key.task, key.probe or ""))
        if shared:
            table = contingency([said[a][key] for key in shared], [said[b][key] for key in shared], scores)
            plain, linear, quadratic = (
                kappa(table, scores, w).value for w in ("none", "linear", "quadratic")
            )
            weighted = (linear, quadratic) if ordered else (None, None)
            rows.append(
                RaterPair(a=a, b=b, n=len(shared), kappa=plain, linear=weighted[0], quadratic=weighted[1])
            )
    return tuple(rows)


def difficulty_of(data: Commitments) -> Difficulty:
    """Return how difficult people found the tasks, and how far they agree."""
    said = {
        rater: {key: item.rating for key, item in items.items() if item.rating is not UNSET}
        for rater, items in _by_rater(data.annotations, "difficulty").items()
    }
    complete = sorted(set.intersection(*(set(items) for items in said.values()))) if said else []
    rated = [task for task in data.tasks if task.ratings[1]]
    means: dict[Band, Fraction | None] = {}
    for band in Band:
        levels = [difficulty(task) for task in rated if task.band is band]
        means[band] = sum(levels, Fraction(0)) / len(levels) if len(levels) >= LEAST else None
    known = [mean for mean in means.values() if mean is not None]
    return Difficulty(
        tasks=len(rated),
        ratings=sum(task.ratings[1] for task in rated),
        pairs=_pairs(said, [1, 2, 3, 4, 5], ordered=True),
        icc=icc([[items[key] for items in said.values()] for key in complete]).value,
        bands=means,
        rising=all(a < b for a, b in pairwise(known)) if len(known) == len(means) else None,
    )


def construct_of(data: Commitments) -> Construct:
    """Return how often people recognise the family of a probe."""
    right = {task.id: task.family for task in data.tasks}
    places = {family: number for number, family in enumerate(Family)}
    said = _by_rater(data.annotations, "construct")
    assigned = {
        rater: {key: places[item.family] for key, item in items.items() if item.family is not UNSET}
        for rater, items in said.items()
    }
    confused: Counter[tuple[Family, Family]] = Counter()
    raters = []
    for rater, items in assigned.items():
        by_family: dict[Family, list[bool]] = defaultdict(list)
        for key, place in items.items():
            family, named = right[key.task], tuple(Family)[place]
            by_family[family].append(family is named)
            confused[family, named] += family is not named
        hits = [Fraction(sum(values), len(values)) for values in by_family.values()]
        correct = sum(sum(values) for values in by_family.values())
        raters.append(
            Assigner(
                rater=rater,
                n=len(items),
                accuracy=Fraction(correct, len(items)),
                macro=sum(hits, Fraction(0)) / len(hits),
            )
        )
    return Construct(
        raters=tuple(raters),
        pairs=_pairs(assigned, list(places.values()), ordered=False),
        confusions=tuple(
            Confusion(family=family, taken_for=named, count=count)
            for (family, named), count in sorted(confused.items())
            if count
        ),
    )


def audit_of(data: Commitments) -> Audit | None:
    """Return what people say of the matcher's verdicts; None where nobody audited any.

    A reply on which the raters differ counts as unclear, unless somebody adjudicated it.
    """
    lines = [item for item in data.annotations if item.kind == "audit" and item.verdict is not UNSET]
    if not lines:
        return None
    judged: dict[Key, set[str]] = defaultdict(set)
    decided: dict[Key, str] = {}
    for item in lines:
        if item.adjudicated is True:
            decided[key_of(item)] = str(item.verdict)
        judged[key_of(item)].add(str(item.verdict))
    verdicts = {
        key: Verdict(decided.get(key) or (said.pop() if len(said) == 1 else "unclear"))
        for key, said in judged.items()
    }
    automatic = _automatic(data)
    tally = Counter(
        (automatic[key] is Verdict.MATCH, verdict) for key, verdict in verdicts.items() if key in automatic
    )
    negatives = sum(count for (matched, _), count in tally.items() if not matched)
    positives = sum(count for (matched, _), count in tally.items() if matched)
    wrongly_no, wrongly_yes = tally[False, Verdict.MATCH], tally[True, Verdict.NO]
    said = {
        rater: {key: list(Verdict).index(Verdict(item.verdict)) for key, item in items.items()}  # type: ignore[arg-type]
        for rater, items in _by_rater(lines, "audit").items()
    }
    weighed = [weigh(task, verdicts) for task in data.tasks]
    return Audit(
        replies=sum(tally.values()),
        pairs=_pairs(said, [0, 1, 2], ordered=False),
        confirmed=tally[True, Verdict.MATCH] + tally[False, Verdict.NO],
        overturned=wrongly_no + wrongly_yes,
        unclear=tally[True, Verdict.UNCLEAR] + tally[False, Verdict.UNCLEAR],
        false_negative=Fraction(wrongly_no, negatives) if negatives else None,
        false_positive=Fraction(wrongly_yes, positives) if positives else None,
        core=total((item.weight, item.core.value) for item in weighed),
    )


def _automatic(data: Commitments) -> dict[Key, Verdict]:
    """Return the matcher's verdict on every reply."""
    verdicts: dict[Key, Verdict] = {}
    for task in data.tasks:
        if task.attempt is not None:
            verdicts[Key(task.id, None)] = task.attempt.verdict
        for probe in task.probes:
            if probe.reply is not None:
                verdicts[Key(task.id, probe.id)] = probe.reply.verdict
    return verdicts
