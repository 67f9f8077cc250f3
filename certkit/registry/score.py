"""The trust score of a lineage: a pure function of what a log holds, shown with its terms.

    found = score(history, at=now)
    found.value, found.reason             # a number from 0 to 1, or None and why there is none
    found.terms                           # what it is the product of

    value = bound · attempts · age · drift · revocations

bound
    The 5 % quantile of Beta(1 + p·m, 1 + (1 − p)·m) for r_op of the latest passport: p = y / (scale · n) and
    m = n² / Σ n_c² from the integers that it carries, for c the clusters. That is how many independent
    runs there would be if all runs of a cluster were copies of one another. A bound that estimates how alike
    they are can rise when a success becomes a failure; this one cannot.
attempts
    The same bound at the confidence that the attempt's number demands (1 − 0.2·α / (i(i − 1)) for i ≥ 2,
    α = .05), divided by the bound. i counts the different evidence that the log holds for the lineage under
    the passport's profile.
age
    2 ^ (−days / 90) since the beginning of the passport's validity.
drift
    `DRIFT` for every drift entry of the lineage.
revocations
    `REVOKED` for every revoked passport of the lineage, by the reason given.

There is no score where the latest passport is revoked, expired, not yet valid, or carries no r_op: what is
not known is not 0. A lineage's past is never forgotten; a new name has none, which the number of passports
and days beside the score shows. The constants are choices of this project and no estimates; what the
score is good for is comparing like with like, and no decision should rest on it without its terms.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from certkit.assessment.reliability import Moments
    from certkit.registry.entry import Reason

SCORE_SCHEMA: Final = "urn:certkit:registry-score:v1"
CONFIDENCE: Final = Fraction(95, 100)
HALF_LIFE: Final = 90.0
"""Days in which a passport's weight halves: its validity unless told otherwise."""

DRIFT: Final = {"DRIFTED": 0.8, "IDENTITY_CHANGED": 0.95}
REVOKED: Final[Mapping[Reason, float]] = {
    "evidence-false": 0.5,
    "operation-below-threshold": 0.5,
    "issued-in-error": 0.8,
    "key-compromise": 0.9,
    "component-change": 0.9,
    "agent-withdrawn": 1.0,
}
"""What a revocation leaves, by its reason."""

_DAY: Final = 86_400.0


class Latest(Struct, frozen=True, kw_only=True):
    """The latest passport of a lineage; `r_op` are its integers over all fault runs, `attempt` the log's."""

    passport_id: str
    index: int
    not_before: datetime
    not_after: datetime
    origin: str
    attempt: int
    revoked: str | None
    r_op: Moments | None


class Past(Struct, frozen=True, kw_only=True):
    """What a log holds of a lineage, as far as the score asks.

    `passports` counts them, `drift` and `revocations` are the results and the reasons of the entries about
    them, `since` is the time of the first entry.
    """

    lineage: str
    passports: int
    since: datetime
    drift: tuple[str, ...]
    revocations: tuple[str, ...]
    latest: Latest


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
    reason = _none(past.latest, at)
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


def _terms(past: Past, at: datetime) -> list[Term]:
    latest = past.latest
    assert latest.r_op is not None  # noqa: S101 - else there is no score
    row, worth = latest.r_op, effective(latest.r_op)
    first, demanded = bound(row), bound(row, latest.attempt)
    days = (at - latest.not_before).total_seconds() / _DAY
    runs = f"{row.y // row.scale:,} of {row.n:,} fault runs, in {row.k:,} clusters worth {worth:.1f} runs"
    return [
        Term(name="bound", value=first, detail=f"r_op with 95 % confidence: {runs}"),
        Term(name="attempts", value=demanded / first, detail=f"attempt {latest.attempt:,}"),
        Term(name="age", value=2 ** (-days / HALF_LIFE), detail=f"{days:,.1f} days"),
        _events("drift", past.drift, DRIFT, "drift entry", "drift entries"),
        _events("revocations", past.revocations, REVOKED, "revoked passport", "revoked passports"),
    ]


def _events(name: str, found: Sequence[str], weights: Mapping[Any, float], one: str, many: str) -> Term:
    counts = {kind: found.count(kind) for kind in weights if kind in found}
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    detail = f"{len(found):,} {one if len(found) == 1 else many}" + (f": {listed}" if listed else "")
    return Term(name=name, value=prod(weights[kind] for kind in found), detail=detail)


def effective(row: Moments) -> float:
    """Return n² / Σ n_c²: the independent runs that a row is worth if all runs of a cluster are alike."""
    return row.n**2 / row.nn


def bound(row: Moments, attempt: int = 1) -> float:
    """Return the lower bound of a row's proportion at the confidence that an attempt's number demands."""
    from certkit.assessment.bounded.bounds import beta_bound, corrected  # noqa: PLC0415 - heavy

    confidence = float(corrected(CONFIDENCE, attempt))
    return float(beta_bound(row.y / (row.scale * row.n), effective(row), confidence, lower=True))


def _shown(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
