"""Fragility: how little would have to be otherwise for the verdict to change.

Every assessment states, for the reading that decides: how many successes must become failures for the tier
to be lost, over all rows that use outcomes; the rate of failures wrongly passed at which the posterior row
falls; the posterior under other priors; the verdict without each domain and each task, and with missing
runs failed; and the e-process evidence, valid however often it was inspected while it grew.
"""

from __future__ import annotations

from functools import cache, partial
from math import exp
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, structs

from certkit.assessment.bounded import Judged, least_tasks, lower, of_every_run, row_passes, shows
from certkit.assessment.criteria import Row, Status
from certkit.assessment.kinds import AsItIs, Attested, Posterior, TaskMean
from certkit.assessment.metrics.series import COST, restricted
from certkit.assessment.rater_error.labels import gives_outcomes
from certkit.assessment.samples import Changed, LeftOut, successes
from certkit.assessment.statistics import posterior
from certkit.assessment.statistics.estimators import least
from certkit.assessment.statistics.posterior import PRIORS
from certkit.assessment.words import ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from certkit.assessment.kinds import Fall, Kind, Sample
    from certkit.assessment.profile import Reading
    from certkit.summary.summary import Summary

    Booleans = NDArray[np.bool_]

DOMAINS: Final = 50
"""Domains above which the verdict is not computed again without each of them, or their tasks."""
NO_TIER: Final = "no tier is attained"
AT_ANY_TIME: Final = (
    "a bound at any time rests on the mean of each task, so that it depends on which run is flipped and"
    " which task is left out"
)
"""Why neither flips nor tasks are counted."""
NO_OUTCOME: Final = "no outcome enters it"


class Flips(Struct, frozen=True, kw_only=True):
    """The least number of flips that loses a tier, of how many successes, and the row that falls first.

    `left_out` names the rows of the tier that no flip was tried on, with the reason.
    """

    needed: int
    of: int
    criterion: str
    domain: str | None = None
    left_out: dict[str, str] = {}


class WithoutTask(Struct, frozen=True, kw_only=True):
    """Of how many tasks the tier is lost without any one of `losing`, by the rows that then fail."""

    tasks: int
    losing: int
    criteria: dict[str, int]


class TierPosterior(Struct, frozen=True, kw_only=True):
    """What the posterior row of a tier rests on, under the reading that decides.

    `specificity_falls_at` is None where no model gave the outcomes or its error is taken off already, and
    where the row holds at any specificity, or does not hold at all. `priors`
    gives P(θ > τ) over tasks by the weight of the prior tasks; `anytime_p` the p-value of the e-process.
    """

    holds: bool
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

    `flips` and `without_task` are None where no tier is attained, and for bounds that hold at any time;
    `reason` then says so. `without_domain` is empty where there is one domain or too many.
    """

    reading: str
    tier: int
    reason: str | None
    flips: Flips | None
    posterior: dict[int, TierPosterior]
    without_domain: tuple[WithoutDomain, ...]
    without_task: WithoutTask | None
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
        without_domain=tuple(_without_domains(judged)),
        without_task=None if reason else without_each_task(judged, tier, reading),
        missing_runs=_missing(judged),
    )


def met_rows(judged: Judged, tier: int, reading: Reading) -> list[tuple[Row, Kind | None]]:
    """Return the rows that carry a tier, with their kind; None where no run can be changed or left out."""
    rows = []
    for row in judged.rows:
        if row.tier <= tier and row.deciding(reading) is Status.MET:
            kind = judged.kind(row)
            rows.append((row, None if isinstance(kind, AsItIs | Attested) else kind))
    return rows


def flips(judged: Judged, tier: int, reading: Reading) -> Flips | None:
    """Return the least number of flips that loses `tier` under a reading; None where no row sees them."""
    left_out: dict[str, str] = {}
    first: Flips | None = None
    changed = cache(partial(Changed, judged.view))  # several rows ask for the same
    for row, kind in met_rows(judged, tier, reading):
        places = () if kind is None else kind.falls(judged.view)
        if not places:
            consistency = isinstance(judged.kind(row), AsItIs)
            left_out[row.id] = ORDER if consistency else NO_OUTCOME
        for fall in places:
            most = first.needed if first is not None and first.needed <= first.of else None
            flip = _flips(judged, row, fall, reading, changed, most=most)
            # A row that stands without a single success comes after any that can fall.
            first = min(
                (each for each in (first, flip) if each is not None),
                key=lambda flip: (flip.needed > flip.of, flip.needed, flip.criterion, flip.domain or ""),
            )
    return None if first is None else structs.replace(first, left_out=left_out)


def _flips(
    judged: Judged,
    row: Row,
    fall: Fall,
    reading: Reading,
    changed: Callable[..., Changed],
    *,
    most: int | None,
) -> Flips:
    """Return the least number of flips that loses a row; where `most` do not, it is only known to be more."""
    base = judged.view
    series = fall.lowered[0]
    high = int(successes(base.tasks(series, fall.domain), COST[series]).sum())

    def fails(number: int) -> bool:
        return not _met(judged, row, fall.kind, changed(fall.lowered, number, fall.domain), reading)

    enough = high if most is None else min(most, high)
    # A row that stands at the fewest flips of the rows before it needs no search.
    needed = (least(fails, enough) if enough and (most is None or fails(enough)) else None) or high + 1
    return Flips(needed=needed, of=high, criterion=row.id, domain=fall.domain)


def _met(judged: Judged, row: Row, kind: Kind, sample: Sample, reading: Reading) -> bool:
    """Tell whether a row is met by a sample with exact sums."""
    sums = [sample.sums(part.series, part.domain) for part in kind.parts(sample)]
    if None in sums or not row_passes(row, kind.value(sample)):
        return False
    confidence = _confidence(judged, row, reading)
    if not all(part is not None and part.k >= least_tasks(row, kind, confidence) for part in sums):
        return False
    if confidence is None:
        return True
    return bool(shows(row, kind, kind.bound(sample, confidence, lower=lower(row)), confidence))


def _confidence(judged: Judged, row: Row, reading: Reading) -> Fraction | None:
    """Return the confidence that a row's bound must reach, None where the value alone is compared."""
    return None if reading == "table" or of_every_run(row) else judged.confidence(row.tier)


def without_each_task(judged: Judged, tier: int, reading: Reading) -> WithoutTask:
    """Return how many tasks, left out alone, lose `tier` under a reading.

    Rows on the order of single runs (consistency) and attested rows stay as they are, and so does a rule
    that every run must meet: the runs that are left meet it.
    """
    summary = judged.view.summary
    standard = np.array([cell.split == "standard" for cell in summary.cells], np.bool_)
    names = np.unique(summary.clusters.cluster[standard[summary.clusters.cell]])
    lost: dict[str, Booleans] = {}
    for row, kind in met_rows(judged, tier, reading):
        if kind is None or of_every_run(row) or len(kind.parts(judged.view)) > DOMAINS:
            continue
        fails = _fails_without(judged, row, kind, names, reading)
        lost[row.id] = lost.get(row.id, np.zeros_like(fails)) | fails
    together = np.any(list(lost.values()), axis=0) if lost else np.zeros(0, np.bool_)
    return WithoutTask(
        tasks=len(names),
        losing=int(np.count_nonzero(together)),
        criteria={name: int(np.count_nonzero(fails)) for name, fails in lost.items() if fails.any()},
    )


def _fails_without(
    judged: Judged, row: Row, kind: Kind, names: NDArray[np.uint64], reading: Reading
) -> Booleans:
    """Tell for each task whether a row fails without it; tasks with equal sums are judged once."""
    base = judged.view
    every, parts = LeftOut(base, names), kind.parts(base)
    columns = [column for part in parts for column in every.own(part.series, part.domain)]
    _, chosen, place = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(chosen)
    sample = LeftOut(base, names[chosen[order]])
    met = np.asarray(row_passes(row, kind.value(sample)))
    confidence = _confidence(judged, row, reading)
    if confidence is not None:
        bound = kind.bound(sample, confidence, lower=lower(row))
        met = met & np.asarray(shows(row, kind, bound, confidence))
    for part in parts:
        met = met & (part.sums(sample).k >= least_tasks(row, kind, confidence))
    fails = np.empty(len(order), np.bool_)
    fails[order] = ~met
    return fails[place.ravel()]


def _posteriors(judged: Judged) -> dict[int, TierPosterior]:
    sample = judged.view
    success = TaskMean("r_op")
    if sample.sums("r_op") is None:
        return {}
    tasks = sample.tasks("r_op")
    means, counts = posterior.distinct(tasks.y / tasks.n)
    told = {}
    for tier, tau in judged.profile.tau.items():
        rows = [row for row in judged.rows if isinstance(judged.kind(row), Posterior) and row.tier == tier]
        asked = max([judged.confidence(tier), *(row.threshold for row in rows if row.threshold is not None)])
        holds = bool(rows) and all(row.deciding(judged.profile.reading) is Status.MET for row in rows)
        evidence = posterior.anytime_evidence(means, counts, float(tau))
        told[tier] = TierPosterior(
            holds=holds,
            specificity_falls_at=_specificity(judged, tau, asked) if holds else None,
            priors={name: success.chance(sample, tau, prior) for name, prior in PRIORS.items()},
            anytime_p=1.0 if evidence <= 0 else exp(-evidence),
        )
    return told


def _specificity(judged: Judged, tau: Fraction, asked: Fraction) -> float | None:
    """Return the specificity of a judge, who misses no success, at which the posterior row falls.

    The observed rate is then θ + (1 - θ)(1 - Sp), so that θ > τ where it is above τ + (1 - τ)(1 - Sp).
    """
    sample, success = judged.view, TaskMean("r_op")
    if not gives_outcomes(sample.manifest.protocol, sample.summary.calibration) or (
        judged.profile.reading == "bounded" and sample.labelled is not None
    ):
        return None
    if judged.profile.reading == "bounded":
        observed = float(success.bound(sample, asked, lower=True))
    else:
        from scipy.special import betaincinv  # noqa: PLC0415 - heavy

        sums = success.sums(sample)
        observed = float(betaincinv(1 + sums.y, 1 + sums.n - sums.y, 1 - float(asked)))
    falls = 1 - (observed - float(tau)) / (1 - float(tau)) if tau < 1 else 1.0
    return falls if 0 < falls < 1 else None


def _without_domains(judged: Judged) -> Iterator[WithoutDomain]:
    """Yield both verdicts without each domain; the order of the runs, and so CSI, is left as it is."""
    names = judged.view.summary.domains
    if not 1 < len(names) <= DOMAINS:
        return
    for name in names:
        rest = Judged(without_domain(judged.view.summary, name), judged.view.manifest, judged.profile)
        yield WithoutDomain(domain=name, table=rest.tier("table"), bounded=rest.tier("bounded"))


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
