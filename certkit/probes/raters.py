"""What people say: how difficult tasks are, which family a probe belongs to, whether the matcher is right.

An adjudicated line decides what it is about, and its author is no rater of the agreement.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, structs

from certkit.probes.agreement import contingency, icc, kappa
from certkit.probes.matching import ReplyGrade
from certkit.probes.records import SAYS, Band, Family
from certkit.probes.scores_document import Assigner, Audit, Construct, Difficulty, RaterPair

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from certkit.probes.matching import Reading
    from certkit.probes.reading import Kept
    from certkit.probes.records import Annotation, Probe, ProbeTask, QuestionKey

    Said = Sequence[Annotation]  # what people said of one task

LEAST: Final = 5
"""Rated tasks of a band that its mean takes."""
_RATERS: Final = 2
"""Blinded raters who must all be right, so that a probe counts as validated."""
NU: Final = {
    "needs_review": Fraction(75, 100),
    "design": Fraction(90, 100),
    "sampled": Fraction(95, 100),
    "validated": Fraction(1),
    "adjudicated": Fraction(110, 100),
}


@cache
def exact(value: float) -> Fraction:
    """Return a number of the design in thousandths."""
    return Fraction(round(value * 1000), 1000)


def counting(said: Said, kind: str) -> list[Any]:
    """Return what lines of a kind say: adjudicated ones alone where there are any."""
    given = [(getattr(item, SAYS[kind]), item.adjudicated is True) for item in said if item.kind == kind]
    stated = [(value, decides) for value, decides in given if value is not UNSET]
    return [value for value, decides in stated if decides] or [value for value, _ in stated]


def difficulty(task: ProbeTask, said: Said) -> Fraction:
    """Return h: the mean rating over 5 ([NS] eq. 13), or what the design says."""
    rated = counting(said, "difficulty")
    return Fraction(sum(rated), 5 * len(rated)) if rated else exact(task.priors.difficulty)


def validity(task: ProbeTask, probe: Probe, said: Said) -> str:
    """Return the name of ν ([NS] after eq. 11), from annotations of a probe or of its whole task."""
    about = [item for item in said if item.key.probe in {None, probe.id} and item.kind != "audit"]
    if any(item.valid is False for item in about):
        return "needs_review"
    if any(item.adjudicated is True for item in about):
        return "adjudicated"
    assigned = [item for item in about if item.kind == "construct"]
    right = all(item.family is task.family for item in assigned)
    if right and len({item.rater for item in assigned}) >= _RATERS:
        return "validated"
    return "sampled" if any(isinstance(item.rating, int) for item in about) else "design"


def _by_rater(kept: Kept, kind: str) -> dict[str, dict[QuestionKey, Any]]:
    """Return what each rater said by question, adjudicated lines aside."""
    said: dict[str, dict[QuestionKey, Any]] = defaultdict(dict)
    for item in kept.annotations:
        value = getattr(item, SAYS[kind])
        if item.kind == kind and value is not UNSET and item.adjudicated is not True:
            said[item.rater][item.key] = value
    return dict(sorted(said.items()))


def _pairs(said: Mapping[str, Mapping[QuestionKey, Any]], *, rated: bool = False) -> tuple[RaterPair, ...]:
    """Return the agreement of every two raters who have questions in common; weighted κ where they rated."""
    pairs = []
    for a, b in combinations(said, 2):
        if shared := said[a].keys() & said[b].keys():
            x, y = ([said[rater][key] for key in shared] for rater in (a, b))
            values = sorted({*x, *y})
            scores = values if rated else list(range(len(values)))
            table = contingency(x, y, values)
            plain, linear, quadratic = (
                kappa(table, scores, w) if rated or w == "none" else None
                for w in ("none", "linear", "quadratic")
            )
            pairs.append(RaterPair(a=a, b=b, n=len(shared), kappa=plain, linear=linear, quadratic=quadratic))
    return tuple(pairs)


def difficulty_of(kept: Kept, said: Mapping[str, Said]) -> Difficulty:
    """Return how difficult people found the tasks, and how far they agree."""
    rated = _by_rater(kept, "difficulty")
    complete = set.intersection(*(set(given) for given in rated.values())) if rated else set()
    by_task = [(task, counting(said[task.id], "difficulty")) for task in kept.tasks]
    means: dict[Band, Fraction | None] = {}
    for band in Band:
        levels = [difficulty(task, said[task.id]) for task, given in by_task if given and task.band is band]
        means[band] = sum(levels, Fraction(0)) / len(levels) if len(levels) >= LEAST else None
    known = [mean for mean in means.values() if mean is not None]
    return Difficulty(
        tasks=sum(bool(given) for _, given in by_task),
        ratings=sum(len(given) for _, given in by_task),
        pairs=_pairs(rated, rated=True),
        icc=icc([[given[key] for given in rated.values()] for key in complete]),
        bands=means,
        rising=all(a < b for a, b in pairwise(known)) if len(known) == len(means) else None,
    )


def construct_of(kept: Kept) -> Construct:
    """Return how often people recognise the family of a probe."""
    right = {task.id: task.family for task in kept.tasks}
    assigned = _by_rater(kept, "construct")
    confused: Counter[tuple[Family, Family]] = Counter()
    raters = []
    for rater, given in assigned.items():
        tally = Counter((right[key.task], family) for key, family in given.items())
        totals = Counter(right[key.task] for key in given)
        confused.update({pair: count for pair, count in tally.items() if pair[0] is not pair[1]})
        accuracy = Fraction(sum(tally[family, family] for family in totals), len(given))
        macro = sum(Fraction(tally[family, family], n) for family, n in totals.items()) / Fraction(
            len(totals)
        )
        raters.append(Assigner(rater=rater, n=len(given), accuracy=accuracy, macro=macro))
    return Construct(
        raters=tuple(raters),
        pairs=_pairs(assigned),
        confusions=tuple((*pair, count) for pair, count in sorted(confused.items())),
    )


def audit_of(
    kept: Kept,
    replies: Mapping[QuestionKey, Reading],
    core_of: Callable[[Mapping[QuestionKey, Reading]], Fraction | None],
) -> Audit | None:
    """Return what people say of the matcher's verdicts; None where nobody audited any.

    `core_of` returns the core with the replies as it gets them, read as people did.
    A reply on which the raters differ counts as unclear, unless somebody adjudicated it; so does a reply on
    which those who adjudicated differ.
    """
    audited: dict[QuestionKey, list[Annotation]] = defaultdict(list)
    for item in kept.annotations:
        if item.kind == "audit" and item.key in replies:
            audited[item.key].append(item)
    if not audited:
        return None
    judged = {key: set(counting(said, "audit")) for key, said in audited.items()}
    verdicts = {
        key: ReplyGrade(*said) if len(said) == 1 else ReplyGrade.UNCLEAR for key, said in judged.items()
    }
    tally = Counter((replies[key].verdict is ReplyGrade.MATCH, verdict) for key, verdict in verdicts.items())
    negatives, positives = (
        sum(tally[matched, verdict] for verdict in ReplyGrade) for matched in (False, True)
    )
    wrongly_no, wrongly_yes = tally[False, ReplyGrade.MATCH], tally[True, ReplyGrade.NO]
    mended = {key: structs.replace(replies[key], verdict=verdict) for key, verdict in verdicts.items()}
    return Audit(
        replies=len(judged),
        pairs=_pairs(_by_rater(kept, "audit")),
        confirmed=tally[True, ReplyGrade.MATCH] + tally[False, ReplyGrade.NO],
        overturned=wrongly_no + wrongly_yes,
        unclear=tally[True, ReplyGrade.UNCLEAR] + tally[False, ReplyGrade.UNCLEAR],
        false_negative=Fraction(wrongly_no, negatives) if negatives else None,
        false_positive=Fraction(wrongly_yes, positives) if positives else None,
        core=core_of({**replies, **mended}),
    )
