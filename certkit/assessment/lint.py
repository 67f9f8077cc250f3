"""Whether a profile makes sense as a whole: `lint` lists what would make its verdicts meaningless.

It does not repeat what `parse` refuses (form, unknown metrics, repeated rows, tiers with a gap).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.criteria import passes
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.csi import LEAST_RUNS
from certkit.assessment.statistics.estimators import least_failure_free
from certkit.summary.summary import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from certkit.assessment.profile import Criterion, Operator, Profile

_UP = (">", ">=")
_STRICT = (">", "<")
LEAST_COVERAGE: Final = 0.5
"""Share of eligible runs below which a row would rest on the smaller part of the evidence."""


def lint(profile: Profile, declared_runs: int | None = None) -> tuple[str, ...]:
    """Return the faults of a profile, one sentence each; empty where there are none.

    With `declared_runs`, rows that no evidence of that many runs can meet are faults too. The count is
    generous: every declared run is taken as a run under a fault that succeeds.
    """
    faults: list[str] = []
    for row in profile.criteria:
        faults.extend(_direction(row))
        faults.extend(_falling(row, profile.tier_numbers))
        faults.extend(_range(row, profile.tier_numbers))
        if declared_runs is not None:
            faults.extend(_attainable(row, profile, declared_runs))
    return tuple(faults)


def _specified(row: Criterion, tiers: tuple[int, ...]) -> Iterator[tuple[int, Fraction, Operator]]:
    for tier in tiers:
        threshold = row.threshold(tier)
        if threshold is not None and row.operator_at(tier) != "is":
            yield tier, threshold, row.operator_at(tier)


def _direction(row: Criterion) -> Iterator[str]:
    higher = CATALOGUE[row.metric].higher
    for tier in sorted(int(tier) for tier in row.tiers):
        operator = row.operator_at(tier)
        if operator != "is" and (operator in _UP) != higher:
            wanted = "above or at least" if higher else "below or at most"
            yield f"{row.id}: tier {tier}: operator {operator} rewards the wrong side, not {wanted}"


def _falling(row: Criterion, tiers: tuple[int, ...]) -> Iterator[str]:
    previous: tuple[int, Fraction, Operator] | None = None
    for tier, threshold, operator in _specified(row, tiers):
        if previous is not None:
            below, before, strict = previous
            change = threshold - before if CATALOGUE[row.metric].higher else before - threshold
            loosened = change == 0 and strict in _STRICT and operator not in _STRICT
            if change < 0 or loosened:
                yield (
                    f"{row.id}: tier {tier} asks {operator} {float(threshold):g}, less than"
                    f" tier {below}: {strict} {float(before):g}"
                )
        previous = (tier, threshold, operator)


def _range(row: Criterion, tiers: tuple[int, ...]) -> Iterator[str]:
    """Tell of thresholds that every value of the metric meets, and of those that none does."""
    spec = CATALOGUE[row.metric]
    for tier, threshold, operator in _specified(row, tiers):
        worst, best = (spec.low, spec.high) if operator in _UP else (spec.high, spec.low)
        asked = f"{row.metric} is {operator} {float(threshold):g}"
        if worst is not None and passes(worst, operator, threshold):
            yield f"{row.id}: tier {tier}: every value of {asked}"
        if best is not None and not passes(best, operator, threshold):
            yield f"{row.id}: tier {tier}: no value of {asked}"
    if row.min_coverage < LEAST_COVERAGE:
        yield f"{row.id}: min_coverage {row.min_coverage:g} lets most of the evidence be missing"


def _attainable(row: Criterion, profile: Profile, declared: int) -> Iterator[str]:
    if row.min_n > declared:
        yield f"{row.id}: min_n asks for {row.min_n:,} tasks, {declared:,} runs are declared"
    ordered = {"csi": WINDOW, "csi_windowed": LEAST_RUNS}.get(row.metric, 0)
    if declared < ordered:
        yield f"{row.id}: needs {ordered} ordered runs, {declared:,} are declared"
    if CATALOGUE[row.metric].tau_of is None:
        return
    for tier, threshold, _ in _specified(row, profile.tier_numbers):
        tau = profile.tau[tier]
        least = least_failure_free(tau, threshold)
        if least is not None and least > declared:
            yield (
                f"{row.id}: tier {tier}: P(θ > {float(tau):g}) > {float(threshold):g} needs {least:,}"
                f" failure-free fault runs, {declared:,} runs are declared"
            )
