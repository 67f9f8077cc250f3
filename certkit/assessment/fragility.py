"""Fragility: how little would have to be otherwise for the tier to change.

The row tests of `assess` are run again on changed sums, under the reading that decides:

- how many successes must fail for the tier to fall, over all rows that rest on outcomes. Whole tasks fail
  first, those with the fewest runs before others, since a task counts once whatever its size. It is the least
  number that was found, which is not proved to be the least there is. A flip takes a whole recovery grade;
- both verdicts without each domain. Averages are those of the other domains, and so are the limits of rows on
  success; other limits stay those of all tasks, since only success is told apart by domain. CSI stays;
- the specificity of the judge at which the posterior row falls, if a model gave the outcomes;
- success under faults if every run that was declared and not recorded had failed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from copy import copy
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from msgspec import UNSET, structs

from certkit.assessment import beta, bounds
from certkit.assessment.assessment import Status
from certkit.assessment.catalogue import WEAKEST
from certkit.assessment.row import Evidence, hardest_rows, judge
from certkit.assessment.verdict import attained, tiers
from certkit.ground.document import Count, Part, Positive, Share, Text
from certkit.summary.summary import (
    PEI_UNIT,
    SCALE,
    PairSeries,
    ShareSeries,
    Summary,
    Tally,
    Terms,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.assessment import Assessment, Question
    from certkit.assessment.bounds import Tasks
    from certkit.assessment.metric import Metric, Value
    from certkit.assessment.profile import Criterion, Reading
    from certkit.summary.summary import Row3

DOMAINS: Final = 20
"""Domains above which the verdict is not computed again without each of them."""
_LOWERED: Final[Mapping[str, tuple[str, ...]]] = {
    "r_op": ("r_op",),
    "posterior": ("r_op",),
    "gap": ("r_op",),
    "c_nom": ("c_nom",),
    **{name: (rate,) for name, rate in WEAKEST.items()},
    "cascade_penalty": ("cascade",),
    "irs_2025": ("irs", "frr_2025"),
    **{
        name: (name,)
        for name in ("frr", "frr_2025", "irs", "cn_frr", "novel_fault", "adversarial_resistance")
    },
}
"""The series that a success turned into a failure lowers, by metric."""


class Flips(Part, frozen=True, kw_only=True):
    """The least number of successes that must fail for the tier to be lost.

    Attributes:
        needed: how many; more than `of` where no number is enough.
        of: the successes that the row rests on.
        criterion: the row that falls first.
        series: the runs that these successes are among: `r_op` under faults, `cascade`, `c_nom` …
        domain: the only domain that they are in.
        left_out: rows of the tier on which no flip was tried, with the reason.
    """

    needed: Positive
    of: Count
    criterion: Text
    series: Text
    domain: Text | None = None
    left_out: Mapping[Text, Literal["no-outcome", "run-order"]] = {}


class PosteriorFragility(Part, frozen=True, kw_only=True):
    """Whether success exceeds a tier's threshold as asked, and at which specificity of the judge it falls."""

    holds: bool
    specificity_falls_at: Share | None = None


class WithoutDomain(Part, frozen=True, kw_only=True):
    """The tiers of both readings without one domain."""

    domain: Text
    table: Count
    bounded: Count


class MissingRuns(Part, frozen=True, kw_only=True):
    """Success under faults if every run that was declared and not recorded had failed under a fault."""

    declared: Count
    recorded: Count
    missing: Count
    successes: Count
    n: Count
    r_op: Share


class Fragility(Part, frozen=True, kw_only=True):
    """How little would have to be otherwise; `flips` is null where no tier is attained, or no row falls."""

    reading: Text
    tier: Count
    flips: Flips | None = None
    posterior: Mapping[int, PosteriorFragility] = {}
    without_domain: tuple[WithoutDomain, ...] = ()
    missing_runs: MissingRuns | None = None


def fragility(evidence: Evidence, assessment: Assessment, question: Question) -> Fragility:
    """Return the fragility of an assessment, under the reading that decides."""
    verdict = assessment.verdict
    tier = (verdict.table if verdict.decides == "table" else verdict.bounded).tier
    return Fragility(
        reading=verdict.decides,
        tier=tier,
        flips=flips(evidence, tier, verdict.decides, strict=question.strict),
        posterior=_posteriors(evidence, assessment),
        without_domain=tuple(_without_domains(evidence, assessment, strict=question.strict)),
        missing_runs=_missing(evidence),
    )


def flips(evidence: Evidence, tier: int, reading: Reading, *, strict: bool) -> Flips | None:
    """Return the least number of flips that loses a tier; None where no row of it rests on outcomes."""
    first: Flips | None = None
    left_out: dict[str, Literal["no-outcome", "run-order"]] = {}
    for criterion, number in hardest_rows(evidence.profile, tier):
        if criterion.provisional and not strict:
            continue
        if criterion.metric not in _LOWERED:
            left_out[criterion.id] = "run-order" if criterion.metric == "csi" else "no-outcome"
            continue
        by_domain = criterion.metric in WEAKEST
        for domain in [part[1] for part in evidence.parts(criterion.metric)] if by_domain else [None]:
            flip = _least_flips(evidence, (criterion, number), domain, reading, first)
            if first is None or (flip.needed > flip.of, flip.needed) < (
                first.needed > first.of,
                first.needed,
            ):
                first = flip
    return None if first is None else structs.replace(first, left_out=left_out)


def _least_flips(
    evidence: Evidence, row: tuple[Criterion, int], domain: str | None, reading: Reading, first: Flips | None
) -> Flips:
    """Return the flips that lose a row; where as many as `first` needs do not, they are said to be more."""
    criterion, tier = row
    series = _LOWERED[criterion.metric][0]
    successes = _successes(evidence, series, domain)

    def fails(number: int) -> bool:
        changed = _flipped(evidence, criterion.metric, domain, number)
        return judge(changed, criterion, tier).deciding(reading) is not Status.MET

    most = successes if first is None or first.needed > first.of else min(first.needed, successes)
    lost = most > 0 and fails(most)
    needed = 1 + bisect_left(range(1, most + 1), x=True, key=fails) if lost else successes + 1
    return Flips(needed=needed, of=successes, criterion=criterion.id, series=series, domain=domain)


def _successes(evidence: Evidence, series: str, domain: str | None) -> int:
    if series in SCALE:
        return -(-evidence.summary.mean(series).sum // SCALE[series])
    share = evidence.summary.share(series)
    return sum(y * tasks for _, y, tasks in (share.rows if domain is None else share.domains[domain]))


def _flipped(evidence: Evidence, metric: str, domain: str | None, number: int) -> Evidence:
    """Return the evidence with so many successes of a metric turned into failures."""
    values: dict[str, Fraction] = {}
    tasks: dict[tuple[str, str | None], Tasks | None] = {}
    for series in _LOWERED[metric]:
        changed = _fewer(evidence, series, domain, number)
        tasks[series, domain] = changed
        values[series] = Fraction(0) if changed is None else changed.by_runs.wx / changed.k
    before, after = evidence.metrics[metric], min(values.values())
    value: Value | None = after
    by_tier = before.by_tier
    if metric == "posterior":
        n, y = before.n or 0, float(after * (before.n or 0))
        taus = evidence.profile.tau
        by_tier = {tier: beta.above(float(tau), 1 + y, 1 + n - y) for tier, tau in taus.items()}
        value = before.value
    elif metric in {"cascade_penalty", "gap"}:
        first = evidence.tasks("single" if metric == "cascade_penalty" else "c_nom")
        value = 100 * (first.by_runs.wx / first.k - after) if first else None
    elif metric == "irs_2025":
        value = values["irs"] * values["frr_2025"]
    changed_metric: Metric = structs.replace(before, value=value, by_tier=by_tier)
    pairs = {metric: _fewer_pairs(evidence, metric, number)} if metric in evidence.pairs else {}
    return evidence.replaced({metric: changed_metric}, tasks, pairs)


def _fewer(evidence: Evidence, series: str, domain: str | None, number: int) -> Tasks | None:
    """Return the tasks of a series after so many successes failed."""
    if series in SCALE:
        rows, left = [], number * SCALE[series]
        for runs, tasks, y, yy in evidence.summary.mean(series).rows:
            lost = min(int(y), left)
            left -= lost
            # Tasks of typical grades fail: of the groups, sums and sums of squares are known.
            rows.append((runs, tasks, int(y) - lost, int(yy) * (int(y) - lost) // int(y) if y else 0))
        unit = SCALE[series]
        return bounds.tasks_of(
            (runs, tasks, Fraction(y, unit), Fraction(yy, unit * unit)) for runs, tasks, y, yy in rows
        )
    share = evidence.summary.share(series)
    return bounds.share_tasks(
        failed_rows(share.rows if domain is None else share.domains[domain], number, leaves=series == "irs")
    )


def failed_rows(rows: tuple[Row3, ...], number: int, *, leaves: bool = False) -> Iterator[Row3]:
    """Yield rows ``[runs, successes, tasks]`` after so many successes failed, whole tasks of few runs first.

    Args:
        rows: as they were.
        number: successes that fail.
        leaves: whether a failed run leaves the series: only recoveries have an IRS.
    """
    for runs, successes, tasks in sorted(rows, key=lambda row: (row[0], -row[1])):
        failed = min(tasks, number // successes) if successes else 0
        part = min(number - failed * successes, successes) if failed < tasks else 0
        number -= failed * successes + part
        for lost, times in ((successes, failed), (part, int(part > 0)), (0, tasks - failed - int(part > 0))):
            remaining = runs - lost if leaves else runs
            if times and remaining:
                yield remaining, successes - lost, times


def _fewer_pairs(evidence: Evidence, metric: str, number: int) -> PairSeries:
    """Return the pairs of a difference after successes of its second series failed, in proportion."""
    successes = _successes(evidence, _LOWERED[metric][0], None)
    left = max(0, successes - number)
    rows = []
    for a, b, tasks, y_a, y_b, product in evidence.pairs[metric].rows:
        fewer = int(y_b) * left // (successes or 1)
        rows.append((a, b, tasks, y_a, fewer, min(int(product) * left // (successes or 1), a * fewer)))
    return PairSeries(rows=tuple(rows))


def _posteriors(evidence: Evidence, assessment: Assessment) -> dict[int, PosteriorFragility]:
    """Return for every tier whether success exceeds its threshold as asked, and at which specificity not.

    By averages it is the posterior row; with confidence limits the success row, the same test over tasks. A
    judge of specificity Sp who misses no success sees the rate θ + (1 − θ)(1 − Sp).
    """
    reading, result = assessment.verdict.decides, dict[int, PosteriorFragility]()
    for row in assessment.criteria:
        asked = row.threshold is not None and row.metric == ("posterior" if reading == "table" else "r_op")
        if not asked or not evidence.tasks("r_op"):
            continue
        holds, seen = row.deciding(reading) is Status.MET, None
        if reading == "table":
            metric = evidence.metrics["posterior"]
            s, n = metric.counts["s"], metric.n or 0
            seen = beta.quantile(1 - float(row.threshold or 0), 1 + s, 1 + n - s) if holds else None
        elif evidence.summary.labels.state != "labelled" and row.bounded is not None:
            seen = row.bounded.bound  # of labelled outcomes the judge's error is taken off already
        falls = None
        if (
            holds
            and evidence.by_model
            and seen is not None
            and (tau := float(evidence.profile.tau[row.tier])) < 1
        ):
            falls = round(1 - (seen - tau) / (1 - tau), 9)
        result[row.tier] = PosteriorFragility(holds=holds, specificity_falls_at=falls)
    return result


def _without_domains(evidence: Evidence, assessment: Assessment, *, strict: bool) -> Iterator[WithoutDomain]:
    names = evidence.summary.domains
    if not 1 < len(names) <= DOMAINS:
        return
    profile = evidence.profile
    criteria = {criterion.id: criterion for criterion in profile.criteria}
    for name in names:
        rest = Evidence(without_domain(evidence.summary, name), evidence.facts, profile)
        rows = [
            row if row.status is Status.INSUFFICIENT else judge(rest, criteria[row.id], row.tier)
            for row in assessment.criteria
        ]
        table, bounded = (
            attained(tiers(profile, rows, reading, records=rest.summary.records, strict=strict))
            for reading in ("table", "bounded")
        )
        yield WithoutDomain(domain=name, table=table, bounded=bounded)


def without_domain(summary: Summary, domain: str) -> Summary:
    """Return a summary without the runs of a domain, as far as runs are told apart by domain.

    Its parts agree no longer: other series, the order of runs and the task rows stay those of all runs.
    """
    cells = tuple(cell for cell in summary.cells if cell.domain != domain)
    normal, fault = (
        Tally.total(cell for cell in cells if cell.split == "standard" and cell.is_fault == wanted)
        for wanted in (False, True)
    )
    shares = dict(summary.shares)
    for name in shares.keys() & {"r_op", "c_nom"}:
        rest = {key: rows for key, rows in shares[name].domains.items() if key != domain}
        merged: dict[tuple[int, int], int] = {}
        for runs, successes, tasks in (row for rows in rest.values() for row in rows):
            merged[runs, successes] = merged.get((runs, successes), 0) + tasks
        rows = tuple((*key, tasks) for key, tasks in sorted(merged.items()))
        shares[name] = ShareSeries(rows=rows, domains=rest)
    changed = copy(summary)
    for field, value in {
        "records": sum(int(cell.counts["runs"]) for cell in cells),
        "cells": cells,
        "shares": shares,
        "pei_terms": {"normal": _terms(normal), "other": _terms(fault)},
    }.items():
        structs.force_setattr(changed, field, value)
    return changed


def _terms(tally: Tally) -> Terms:
    """Return the sums of planning efficiency in cells as terms: each run is rounded at 2^−30 there."""
    return Terms(
        pei=((PEI_UNIT, 5 * tally["pei_fixed"]),), pei_2025=((PEI_UNIT, 10**6 * tally["pei25_fixed"]),)
    )


def _missing(evidence: Evidence) -> MissingRuns | None:
    declared, recorded = evidence.facts.protocol.declared_runs, evidence.summary.records
    if (plan := evidence.summary.plan) is not UNSET and plan.records == evidence.summary.records:
        declared, recorded = plan.planned, plan.present
    if declared is None or declared <= recorded:
        return None
    fault, missing = evidence.groups.fault, declared - recorded
    n, successes = fault["runs"] + missing, fault["success"]
    return MissingRuns(
        declared=declared,
        recorded=recorded,
        missing=missing,
        successes=successes,
        n=n,
        r_op=round(successes / n, 6),
    )
