"""Several bundles judged as one: what each says alone, and what pooling would hide.

A pooled rate is a mean over time. Where success under faults fell from an earlier bundle to a later one, the
mean says more than the agent now does; every pair is compared as drift compares two sides, on the domains
and conditions that both have, at the level of drift divided by the number of pairs. What speaks against a
single bundle is told here unless the pooled evidence says the same; what only its size gives rise to is not.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit.assessment.drift import ALPHA
from certkit.assessment.drift.difference import Difference, Mean, difference, plain, under_mix
from certkit.assessment.findings.findings import Severity, finding, ordered
from certkit.assessment.metrics.view import restricted
from certkit.assessment.profile import exact
from certkit.assessment.reliability import moments
from certkit.assessment.result import BundleResult
from certkit.evidence.summary.summary import add

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.assessment.findings.findings import Finding
    from certkit.assessment.reliability import Moments
    from certkit.assessment.result import Assessment
    from certkit.evidence.bundle.pooling import Accumulation, Part
    from certkit.evidence.summary.summary import Cell, Summary

OF_SIZE: Final = {
    "no-records",
    "no-fault-runs",
    "no-nominal-runs",
    "held-out-runs",
    "nominal-only-domain",
    "nominal-share",
    "few-fault-runs",
    "domains-in-blocks",
    "csi-trend-zero",
    "csi-irs-factor",
    "repeats-as-independent",
    "judge-uncalibrated",
    "judge-correction",
}
"""Findings of a part that pooling answers."""

NETTED: Final = {"declared-runs-differ"}
"""Findings of single parts that are always reported, since a surplus in one hides what another lacks."""


def joined(pooled: Assessment, alone: Sequence[Assessment], accumulation: Accumulation) -> Assessment:
    """Return the pooled judgement with its bundles and with the findings that they give rise to."""
    parts = zip(accumulation.parts, alone, strict=True)
    return structs.replace(
        pooled,
        bundles=tuple(_result(part, judged) for part, judged in parts),
        findings=ordered(
            (
                *pooled.findings,
                *_of_parts(pooled, alone),
                *_decline(pooled, accumulation),
                *(
                    finding("bundles-differ", f"bundles state different things: {text}")
                    for text in accumulation.conflicts
                ),
            )
        ),
    )


def _result(part: Part, judged: Assessment) -> BundleResult:
    period, times = part.facts.manifest.protocol.period, part.summary.times
    by_domain = {
        name: (fault.success, fault.runs)
        for name in part.summary.domains
        if (fault := add(cell.tally for cell in _faults(part.summary) if cell.domain == name)).runs
    }
    return BundleResult(
        digest=part.facts.digest,
        declared_from=period.from_ if period else None,
        declared_to=period.to if period else None,
        first_run=times.first,
        last_run=times.last,
        records=judged.counts.records,
        nominal_runs=judged.counts.nominal_runs,
        fault_runs=judged.counts.fault_runs,
        successes=sum(successes for successes, _ in by_domain.values()),
        by_domain=by_domain,
        table=judged.verdict.table,
        bounded=judged.verdict.bounded,
    )


def _faults(summary: Summary) -> Iterator[Cell]:
    return (cell for cell in summary.select() if cell.is_fault)


def _of_parts(pooled: Assessment, alone: Sequence[Assessment]) -> Iterator[Finding]:
    told = {item.code for item in pooled.findings} - NETTED | OF_SIZE
    for number, judged in enumerate(alone, 1):
        for item in judged.findings:
            if item.severity is not Severity.INFO and item.code not in told:
                yield finding(item.code, f"bundle {number} of {len(alone)}: {item.message}")


class _Pair(Struct, frozen=True, kw_only=True):
    """An earlier and a later bundle, by their numbers, compared on what both have."""

    earlier: int
    later: int
    old: Mean
    new: Mean
    change: Difference


def _decline(pooled: Assessment, accumulation: Accumulation) -> Iterator[Finding]:
    """Tell where r_op is lower in a later bundle than in an earlier one, or why that cannot be told."""
    if not accumulation.ordered:
        yield finding(
            "periods-not-compared",
            "whether success fell from one bundle to the next is not known: their order in time is not",
        )
        return
    named = list(enumerate(accumulation.parts, 1))
    pairs = [
        pair
        for (earlier, first), (later, second) in combinations(named, 2)
        if (pair := _compared(earlier, first, later, second)) is not None
    ]
    possible = len(named) * (len(named) - 1) // 2
    if len(pairs) < possible:
        yield finding(
            "periods-not-compared",
            f"{possible - len(pairs)} of {possible} pairs of bundles cannot be compared: they share no domain"
            " and fault condition, or hold too few clusters to tell how much runs vary",
        )
    worse = [pair for pair in pairs if _is_worse(pair, len(pairs), _margin(pooled))]
    if worse:
        pair = min(
            worse, key=lambda each: (each.change.test.p_loss if each.change.test else 1.0, each.earlier)
        )
        p = pair.change.test.p_loss if pair.change.test else 1.0
        more = f"; so it is in {len(worse)} of {len(pairs)} pairs" if len(worse) > 1 else ""
        yield finding(
            "periods-differ",
            f"success under faults fell from {float(pair.old.value):.3f} (n {pair.old.n:,}, bundle"
            f" {pair.earlier}) to {float(pair.new.value):.3f} (n {pair.new.n:,}, bundle {pair.later}),"
            f" p {p:.2g}{more}: the pooled rate says more than the agent now does",
        )


def _margin(pooled: Assessment) -> Fraction:
    margins = [row.criterion.margin for row in pooled.criteria if row.id == "r_op"]
    return exact(margins[0]) if margins and margins[0] is not None else Fraction(0)


def _is_worse(pair: _Pair, pairs: int, margin: Fraction) -> bool:
    test = pair.change.test
    return test is not None and test.p_loss * pairs < ALPHA and pair.change.loss >= margin


def _compared(earlier: int, first: Part, later: int, second: Part) -> _Pair | None:
    """Compare r_op on the domains and conditions that both bundles have, under the earlier one's mix."""
    common = {(cell.domain, cell.condition) for cell in _faults(first.summary)} & {
        (cell.domain, cell.condition) for cell in _faults(second.summary)
    }
    if not common:
        return None
    before, now = _rows(first.summary, common), _rows(second.summary, common)
    cells = sorted(common)
    old = plain(before[None, None])
    new = under_mix([before[cell].n for cell in cells], [now[cell] for cell in cells], now[None, None], 0)
    change = difference(old, new)
    return (
        None if change.test is None else _Pair(earlier=earlier, later=later, old=old, new=new, change=change)
    )


def _rows(summary: Summary, cells: set[tuple[str, str]]) -> dict[tuple[str | None, str | None], Moments]:
    """Return the integers of r_op over some cells: overall, and each cell's."""
    kept = restricted(summary, lambda cell: (cell.domain, cell.condition) in cells)
    return {(row.domain, row.condition): row for row in moments(kept, "r_op", memory_observable=False)}
