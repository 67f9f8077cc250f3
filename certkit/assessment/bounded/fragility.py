"""Fragility: how little would have to be otherwise for the verdict to change.

Said in every assessment, of the reading that decides: successes that must flip for the tier to be lost; for
every tier, how alike runs of one task would have to be (ICC) and how often a judge would have to pass a
failure (specificity) for the posterior row to fall; the posterior under other priors; the verdict without
each domain, and without each cluster; what missing runs would do; and the evidence of the e-process, which
holds although the evidence was looked at while it grew.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.assessment.bounded import anytime, bounds
from certkit.assessment.bounded.flips import Flips, flips
from certkit.assessment.bounded.jackknife import DOMAINS, WithoutCluster, without_each_cluster
from certkit.assessment.evaluate import Judged, judge
from certkit.assessment.metrics.view import restricted
from certkit.assessment.statistics.estimators import PRIORS, posterior

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.evidence.summary.summary import Summary

_HALVINGS: Final = 50
NO_TIER: Final = "no tier is attained"
AT_ANY_TIME: Final = (
    "a bound at any time rests on the mean of each cluster, so that it depends on which run is flipped and"
    " which cluster is left out"
)
"""Why neither flips nor clusters are counted."""


class Posterior(Struct, frozen=True, kw_only=True):
    """What the posterior row of a tier rests on.

    `icc_falls_at` and `specificity_falls_at` are None where the row holds at any ICC, or at any specificity,
    or does not hold at all. `priors` gives P(θ > τ) by prior; `anytime_p` the p-value of the e-process.
    """

    holds: bool
    icc_falls_at: float | None
    specificity_falls_at: float | None
    priors: dict[str, float]
    anytime_p: float


class WithoutDomain(Struct, frozen=True, kw_only=True):
    """The tiers of both readings without one domain."""

    domain: str
    table: int
    bounded: int


class MissingRuns(Struct, frozen=True, kw_only=True):
    """R_op if every run that was declared and not recorded had failed under a fault."""

    declared: int
    recorded: int
    missing: int
    successes: int
    n: int
    r_op: float


class Fragility(Struct, frozen=True, kw_only=True):
    """How little would have to be otherwise for the verdict to change.

    `flips` and `without_cluster` are None where no tier is attained, and for bounds that hold at any time;
    `reason` then says so. `without_domain` is empty where there is one domain or too many.
    """

    reading: str
    tier: int
    reason: str | None
    flips: Flips | None
    posterior: dict[int, Posterior]
    without_domain: tuple[WithoutDomain, ...]
    without_cluster: WithoutCluster | None
    missing_runs: MissingRuns | None


def fragility(judged: Judged) -> Fragility:
    """Return the fragility of a judged summary, under the reading that decides."""
    reading = judged.profile.reading
    tier = judged.tier(reading)
    at_any_time = reading == "bounded" and judged.profile.stopping == "anytime"
    reason = NO_TIER if tier == 0 else AT_ANY_TIME if at_any_time else None
    return Fragility(
        reading=reading,
        tier=tier,
        reason=reason,
        flips=None if reason else flips(judged, tier, reading),
        posterior=_posteriors(judged),
        without_domain=_without_domains(judged),
        without_cluster=None if reason else without_each_cluster(judged, tier, reading),
        missing_runs=_missing(judged),
    )


def _posteriors(judged: Judged) -> dict[int, Posterior]:
    data = judged.reader.clustered("r_op")
    if data.sums is None:
        return {}
    s, n = data.sums.y, data.sums.n
    alike = data.sums.nn / n  # runs that an average run shares its cluster with, itself included
    means, counts = anytime.distinct(data.clusters.y, data.clusters.n, 0, 1)
    found = {}
    for tier, tau in judged.profile.tau.items():
        rows = [row for row in judged.rows if row.metric.id == "posterior" and row.tier == tier]
        asked = max((row.threshold or Fraction(0) for row in rows), default=Fraction(0))
        asked = max(asked, judged.reader.confidence(tier))
        holds = posterior(s, n, tau) > asked
        evidence = anytime.log_evidence(means, counts, float(tau))
        found[tier] = Posterior(
            holds=holds,
            icc_falls_at=_icc(s, n, alike, tau, asked) if holds else None,
            specificity_falls_at=_specificity(s, n, tau, asked) if holds else None,
            priors={name: posterior(s, n, tau, name) for name in PRIORS},
            anytime_p=1.0 if evidence <= 0 else exp(-evidence),
        )
    return found


def _icc(s: int, n: int, alike: float, tau: Fraction, asked: Fraction) -> float | None:
    """Return the ICC at which n / (1 + (m - 1)·ICC) runs no longer show the tier."""

    def holds(icc: float) -> bool:
        return bool(bounds.above(s / n, n / (1 + (alike - 1) * icc), float(tau)) > asked)

    return None if holds(1.0) else _crossing(holds)


def _specificity(s: int, n: int, tau: Fraction, asked: Fraction) -> float | None:
    """Return the specificity of a judge, who misses no success, at which the posterior row falls.

    The observed rate is then θ + (1 - θ)(1 - Sp), so that θ > τ where it is above τ + (1 - τ)(1 - Sp).
    """
    observed = float(bounds.beta_bound(s / n, n, float(asked), lower=True))
    found = 1 - (observed - float(tau)) / (1 - float(tau)) if tau < 1 else 1.0
    return found if 0 < found < 1 else None


def _crossing(holds: Callable[[float], bool]) -> float:
    """Return where a condition that holds at 0 and not at 1 ceases to hold."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def _without_domains(judged: Judged) -> tuple[WithoutDomain, ...]:
    """Return both verdicts without each domain; the order of the runs, and so CSI, is left as it is."""
    names = judged.view.summary.domains
    if not 1 < len(names) <= DOMAINS:
        return ()
    found = []
    for name in names:
        rest = judge(without_domain(judged.view.summary, name), judged.view.manifest, judged.profile)
        found.append(WithoutDomain(domain=name, table=rest.tier("table"), bounded=rest.tier("bounded")))
    return tuple(found)


def without_domain(summary: Summary, domain: str) -> Summary:
    """Return a summary without the runs of a domain; its window and times stay those of all runs."""
    return restricted(summary, lambda cell: cell.domain != domain)


def _missing(judged: Judged) -> MissingRuns | None:
    """Return the worst case where fewer runs were recorded than declared."""
    declared, recorded = judged.view.manifest.protocol.declared_runs, judged.view.summary.records
    if declared is None or declared <= recorded:
        return None
    fault, missing = judged.view.fault, declared - recorded
    n = fault.runs + missing
    return MissingRuns(
        declared=declared,
        recorded=recorded,
        missing=missing,
        successes=fault.success,
        n=n,
        r_op=fault.success / n,
    )
