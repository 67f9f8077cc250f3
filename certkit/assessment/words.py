"""The verdict in words, and what to measure next: plain sentences for the terminal and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.criteria import Row, Status
from certkit.assessment.estimators import runs_needed
from certkit.assessment.verdict import next_rows

if TYPE_CHECKING:
    from fractions import Fraction

    from certkit.assessment.metric import Metric, Value
    from certkit.assessment.result import Assessment

_LOST = {
    Status.NOT_MET: "fails on",
    Status.INSUFFICIENT: "cannot be judged on",
    Status.NOT_TESTED: "has no evidence for",
}


def shown(value: Value | None, unit: Unit) -> str:
    """Return a value as people read it, with its unit: ``67.8 %``, ``21.6 pp``, ``0.912``, ``yes``."""
    if value is None:
        return "not measured"
    if unit is Unit.BOOLEAN:
        return "yes" if value else "no"
    if unit is Unit.FRACTION:
        return f"{100 * float(value):.1f} %"
    if unit is Unit.PP:
        return f"{float(value):.1f} pp"
    return f"{float(value):.2f}" if unit in {Unit.POINTS, Unit.PER_RUN} else f"{float(value):.3f}"


def asked(operator: str, threshold: Fraction, unit: Unit) -> str:
    """Return a threshold as people read it: ``> 80 %``, ``>= 0.7``, ``< 30 pp``."""
    if unit is Unit.BOOLEAN:
        return "yes"
    if unit is Unit.FRACTION:
        return f"{operator} {float(100 * threshold):g} %"
    return f"{operator} {float(threshold):g}" + (" pp" if unit is Unit.PP else "")


def sentence(assessment: Assessment) -> str:
    """Return the verdict in words: the tier that is attained, and why not the next."""
    verdict, profile = assessment.verdict, assessment.profile
    attained = "No tier is attained"
    if verdict.tier:
        name = profile.tiers[str(verdict.tier)].name
        attained = f"Tier {verdict.tier} ({name}) is attained under {profile.id}"
    if verdict.tier == len(assessment.tiers):
        return f"{attained}, the highest."
    if assessment.counts.records == 0:
        return f"{attained}: the bundle holds no records."
    rows = next_rows(profile, assessment.criteria, verdict.tier)
    parts = []
    for status, words in _LOST.items():
        ids = [row.id for row in rows if row.deciding(profile.reading) is status]
        if ids:
            parts.append(f"{words} {', '.join(ids)}")
    missing = "; ".join(parts)
    return f"{attained}. Tier {verdict.tier + 1} {missing}."


def measure_next(assessment: Assessment) -> tuple[str, ...]:
    """Return one sentence for every open row of the next tier, worst first: what evidence would settle it."""
    rows = next_rows(assessment.profile, assessment.criteria, assessment.verdict.tier)
    return tuple(f"{row.id}: {_advice(row, assessment)}" for row in rows)


def _advice(row: Row, assessment: Assessment) -> str:
    if row.status is Status.NOT_MET:
        return _shortfall(row, assessment)
    if row.status is Status.NOT_TESTED:
        evidence = CATALOGUE[row.metric.id].evidence
        return f"{row.reason}; {evidence}." if row.reason else f"{evidence}."
    if row.status is Status.INSUFFICIENT:
        return f"{row.reason}; {_complete(row.metric)}."
    return "the bound is not computed."


def _complete(metric: Metric) -> str:
    if metric.blocked and "harness" in metric.blocked:
        return "mend the test rig and repeat those runs"
    return CATALOGUE[metric.id].evidence


def _shortfall(row: Row, assessment: Assessment) -> str:
    unit = row.metric.unit
    if row.threshold is None or row.operator is None:
        return "the tier does not specify it."
    found = f"{shown(row.value, unit)} where Tier {row.tier} asks {asked(row.operator, row.threshold, unit)}"
    if row.metric.id == "posterior":
        found += _more_runs(row, assessment)
    elif row.metric.id == "domain_min":
        found += f", in {row.metric.detail['domain']}"
    return f"{found}."


def _more_runs(row: Row, assessment: Assessment) -> str:
    """Tell how many fault runs would show the tier at the rate seen so far, where more runs can."""
    rate = assessment.metrics["r_op"].value
    tau = assessment.profile.tau.get(row.tier)
    if rate is None or tau is None or row.threshold is None or isinstance(rate, float):
        return ""
    if rate <= tau:
        return f"; no number of runs shows it at a success of {shown(rate, Unit.FRACTION)}"
    needed = runs_needed(rate, tau, row.threshold)
    if needed is None:
        return f"; success of {shown(rate, Unit.FRACTION)} is too close to τ for any number of runs"
    return f"; at {shown(rate, Unit.FRACTION)} success about {needed:,} fault runs would show it"
