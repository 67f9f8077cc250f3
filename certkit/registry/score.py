"""The trust score of a lineage: a pure function of what a log holds, shown with its terms.

    found = score(history, at=now)
    found.value, found.reason             # a number from 0 to 1, or None and why there is none
    found.terms                           # what it is the product of

    value = bound · attempts · later · age · drift · revocations

bound
    The 5 % quantile of Beta(p·m, 1 + (1 − p)·m) for r_op of the latest passport: p = y / (scale · n) and
    m = (y / scale)² / Σ n_c² from the integers that it carries, for c the clusters; 0 where y is. Where
    nothing failed, m is how many independent runs there would be if all runs of a cluster were copies of one
    another. A failure lowers p and m, or raises neither, and the quantile rises with both: see `bound`.
attempts
    The same bound at the confidence that the attempt demands (1 − 0.2·α / (i(i − 1)) for i ≥ 2, α = .05),
    divided by the bound. i counts the different evidence that the log holds for the lineage under the
    passport's profile.
later
    The lowest bound of all passports of the lineage on evidence that is no older, each for its own attempt,
    divided by what the two terms above give, if that is below 1: what was found since is not forgotten
    where older evidence is brought again.
age
    2 ^ (−days / 90) since the latest passport's evidence appeared. A bundle did with its first run, or with
    the first validity or entry of a passport of the lineage that rests on it, whatever is earliest.
drift
    For every passport, `STEP` to the power of the margins that were lost, at most one: in the worst of its
    comparisons (`certkit.registry.course`), beyond what the earlier passport's own noise explains
    (`certkit.assessment.drift.lost`). So no failure makes a loss harder to tell. `CHANGED` besides where it
    is no longer the same agent. What cannot be compared is not known to be no worse, and counts as one
    margin. What no test calls a drift counts as `LOWER` for the latest passport and those on evidence that is
    no older, once for each evidence; these are also held against the best so far, row by row. A drift that
    other criteria than success show is charged, a margin, once it lies further back. What drift entries say
    does not count: the files do.
revocations
    `REVOKED` for every revoked passport of the lineage, by the gravest reason given.

There is no score where the latest passport is revoked, expired, not yet valid, or carries no r_op: what is
not known is not 0. A lineage's past is never forgotten; a new name has none, which the number of passports
and days beside the score shows. The constants are choices of this project and no estimates; what the
score is good for is comparing like with like, and no decision should rest on it without its terms.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from certkit.assessment.reliability import Moments

SCORE_SCHEMA: Final = "urn:certkit:registry-score:v1"
CONFIDENCE: Final = Fraction(95, 100)
HALF_LIFE: Final = 90.0
"""Days in which a passport's weight halves: its validity unless told otherwise."""

LOWER: Final = "LOWER"
STEP: Final = 0.8
"""What the loss of a margin leaves."""

CHANGED: Final = 0.95
"""What a step to another agent of the same name leaves."""

REVOKED: Final[Mapping[str, float]] = {
    "evidence-false": 0.5,
    "operation-below-threshold": 0.5,
    "issued-in-error": 0.8,
    "key-compromise": 0.9,
    "component-change": 0.9,
    "agent-withdrawn": 1.0,
}
"""What a revocation leaves, by its reason."""

_DAY: Final = 86_400.0
_LEAST: Final = 1e-300


class Measured(Struct, frozen=True, kw_only=True):
    """What a passport measured: r_op over all fault runs; `attempt` counts the evidence under its profile."""

    index: int
    attempt: int
    r_op: Moments


class Latest(Struct, frozen=True, kw_only=True):
    """The latest passport of a lineage; `r_op` and `attempt` are as `Measured` has them."""

    passport_id: str
    index: int
    not_before: datetime
    not_after: datetime
    origin: str
    attempt: int
    revoked: str | None
    r_op: Moments | None


class Step(Struct, frozen=True):
    """What became of an agent with a passport: the result, and the `margins` of the profile that were lost.

    `is_changed` tells that it is not the agent of the passport before; `index` is the passport's entry, and
    `row` the one that lost most.
    """

    result: str
    margins: float = 0.0
    is_changed: bool = False
    index: int | None = None
    row: str | None = None

    @property
    def shown(self) -> str:
        """The result in words, `LOWER` for a loss that no test calls a drift."""
        untold = self.margins > 0 and self.result not in {"DRIFTED", "NOT_COMPARABLE"}
        return LOWER if untold else self.result

    @property
    def left(self) -> float:
        """What it leaves of the score."""
        return float(STEP ** min(1.0, self.margins) * (CHANGED if self.is_changed else 1.0))


class Past(Struct, frozen=True, kw_only=True):
    """What a log holds of a lineage, as far as the score asks.

    `passports` counts them; `since` is when the first was logged; `appeared` is when the latest passport's
    evidence did; `drift` is what comparing each passport with those before it shows; `revocations` are the
    gravest reasons of those that were revoked; `later` is what was measured on evidence that is no older than
    the latest passport's; `missing` are the entries of earlier passports whose file is not here, or
    contradicts itself.
    """

    lineage: str
    passports: int
    since: datetime
    appeared: datetime
    drift: tuple[Step, ...]
    revocations: tuple[str, ...]
    latest: Latest
    later: tuple[Measured, ...] = ()
    missing: tuple[int, ...] = ()


class Term(Struct, frozen=True, kw_only=True):
    """One factor of the score, with what it rests on in words."""

    name: str
    value: float
    detail: str


class Score(Struct, frozen=True, kw_only=True):
    """A lineage's score at a time; `value` is None where there is none, for `reason`."""

    past: Past
    at: datetime
    value: float | None
    reason: str | None
    terms: tuple[Term, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the score as JSON values; the log's size and root belong beside it."""
        latest = self.past.latest
        return {
            "lineage": self.past.lineage,
            "at": _shown(self.at),
            "value": self.value,
            "reason": self.reason,
            "terms": [{"name": one.name, "value": one.value, "detail": one.detail} for one in self.terms],
            "passport_id": latest.passport_id,
            "index": latest.index,
            "evidence_origin": latest.origin,
            "passports": self.past.passports,
            "since": _shown(self.past.since),
        }


def score(past: Past, *, at: datetime) -> Score:
    """Return the score of a lineage at an aware time."""
    reason = _none(past.latest, at) or _untold(past.missing)
    terms = () if reason else tuple(_terms(past, at))
    value = None if reason else prod(term.value for term in terms)
    return Score(past=past, at=at, value=value, reason=reason, terms=terms)


def _none(latest: Latest, at: datetime) -> str | None:
    if latest.revoked is not None:
        return f"the latest passport is revoked: {latest.revoked}"
    if at > latest.not_after:
        return f"the latest passport expired at {_shown(latest.not_after)}"
    if at < latest.not_before:
        return f"the latest passport is valid from {_shown(latest.not_before)}"
    if latest.r_op is None:
        return "the latest passport measured no r_op"
    return None


def _untold(missing: Sequence[int]) -> str | None:
    if not missing:
        return None
    listed = ", ".join(map(str, missing[:3])) + (" and others" if len(missing) > 3 else "")  # noqa: PLR2004 - enough
    return f"what the passports of entries {listed} rest on cannot be told: their files are not here or wrong"


def _terms(past: Past, at: datetime) -> list[Term]:
    latest = past.latest
    assert latest.r_op is not None  # noqa: S101 - else there is no score
    row, worth = latest.r_op, effective(latest.r_op)
    first, demanded = bound(row), bound(row, latest.attempt)
    days = (at - past.appeared).total_seconds() / _DAY
    runs = f"{_runs(row)}, in {row.k:,} clusters worth {worth:.1f} or more"
    return [
        Term(name="bound", value=first, detail=f"r_op with 95 % confidence: {runs}"),
        Term(name="attempts", value=demanded / first if first else 1.0, detail=f"attempt {latest.attempt:,}"),
        _later(demanded, past.later),
        Term(name="age", value=2 ** (-days / HALF_LIFE), detail=f"{days:,.1f} days"),
        _drift(past.drift),
        _revocations(past.revocations),
    ]


def _later(demanded: float, later: Sequence[Measured]) -> Term:
    bounds = [(bound(one.r_op, one.attempt), one) for one in later]
    least, one = min(bounds, key=itemgetter(0), default=(demanded, None))
    if one is None or least >= demanded:
        return Term(name="later", value=1.0, detail="no evidence since then shows less")
    detail = f"entry {one.index:,} shows less: {_runs(one.r_op)}, attempt {one.attempt:,}"
    return Term(name="later", value=least / demanded, detail=detail)


def _runs(row: Moments) -> str:
    return f"{row.y // row.scale:,} of {row.n:,} fault runs"


def _drift(steps: Sequence[Step]) -> Term:
    lowered = [one for one in steps if one.left < 1]
    detail = _counted(len(steps), "comparison", [one.shown for one in lowered])
    if lowered and (last := lowered[-1]).row is not None:
        detail += f"; entry {last.index:,} lost {last.margins:.2f} margins of {last.row}"
    return Term(name="drift", value=prod(one.left for one in steps), detail=detail)


def _revocations(reasons: Sequence[str]) -> Term:
    detail = _counted(len(reasons), "revoked passport", reasons)
    return Term(name="revocations", value=prod(REVOKED[one] for one in reasons), detail=detail)


def _counted(total: int, what: str, kinds: Sequence[str]) -> str:
    listed = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    return f"{total:,} {what}{'' if total == 1 else 's'}" + (f": {listed}" if listed else "")


def gravest(reasons: Iterable[str]) -> str:
    """Return the reason that leaves least of the score, the first of those that leave the same."""
    return min(reasons, key=REVOKED.__getitem__)


def graver(reason: str, than: str) -> bool:
    """Tell whether a reason leaves less than another."""
    return REVOKED[reason] < REVOKED[than]


def effective(row: Moments) -> float:
    """Return y² / Σ n_c², y in successes: how many independent runs the good ones are worth at least.

    It is at most n'² / Σ n'_c² for the runs n' that are left when any of those that failed are taken away.
    """
    return float(Fraction(row.y, row.scale) ** 2 / row.nn)


def bound(row: Moments, attempt: int = 1) -> float:
    """Return the lower bound of a row's proportion at the confidence that an attempt's number demands.

    It is Clopper and Pearson's, of which the number of runs need not be an integer. For m fixed it rises with
    p, since one parameter rises and the other falls. For p fixed it rises with m: d/dm log(F/(1 − F)) at the
    quantile q is E[g | θ ≤ q] − E[g | θ > q] for g = p·log θ + (1 − p)·log(1 − θ), which rises up to p and
    falls after it. At every value of g below g(q) the density c · e^(m·g) / θ has no less mass on the left
    branch than on the right one, so the difference is not above 0 for any q of at most a half of the mass.
    """
    from scipy.special import betaincinv  # noqa: PLC0415 - heavy

    from certkit.assessment.statistics.posterior import corrected  # noqa: PLC0415 - heavy

    if not row.y:
        return 0.0
    p, worth = float(Fraction(row.y, row.scale * row.n)), effective(row)
    found = float(betaincinv(p * worth, 1 + (1 - p) * worth, float(1 - corrected(CONFIDENCE, attempt))))
    return found if found > _LEAST else 0.0  # at the end of a double's range it keeps no order


def _shown(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
