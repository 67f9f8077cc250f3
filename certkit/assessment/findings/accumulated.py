"""Several bundles judged as one: what each says alone, and what pooling would hide.

A pooled rate is a mean over time. Where success under faults fell from an earlier bundle to a later one, the
mean says more than the agent now does. Drift's rule compares every pair on the domains and conditions that
both have, over all domains and in each; all comparisons are adjusted together. What speaks against a single
bundle is told here unless the pooled evidence says the same as gravely; what only its size gives rise to is
not.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from certkit.assessment.bounded.fragility import DOMAINS
from certkit.assessment.drift.contrast import adjusted, contrast, observed
from certkit.assessment.drift.rows import LEAST, LEVEL, reaches
from certkit.assessment.findings.findings import Severity, finding, ordered
from certkit.assessment.metrics.series import series
from certkit.assessment.profile import exact
from certkit.assessment.result import BundleResult, moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.assessment.drift.contrast import Contrast, Sides
    from certkit.assessment.findings.findings import Finding
    from certkit.assessment.result import Assessment
    from certkit.summary.pooling import Accumulation, Part

OF_SIZE: Final = {
    "no-records",
    "no-fault-runs",
    "no-nominal-runs",
    "held-out-runs",
    "nominal-only-domain",
    "nominal-share",
    "few-fault-runs",
    "domains-in-blocks",
    "repeats-as-independent",
    "judge-uncalibrated",
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
            )
        ),
    )


def _result(part: Part, judged: Assessment) -> BundleResult:
    period, times = part.facts.manifest.protocol.period, part.summary.times
    return BundleResult(
        digest=part.facts.digest,
        declared_from=period.from_ if period else None,
        declared_to=period.to if period else None,
        first_run=moment(times.first),
        last_run=moment(times.last),
        records=judged.counts.records,
        fault_runs=judged.counts.fault_runs,
        successes=_under_faults(part)[0],
        table=judged.verdict.table,
        bounded=judged.verdict.bounded,
    )


def _of_parts(pooled: Assessment, alone: Sequence[Assessment]) -> Iterator[Finding]:
    """Yield what speaks against one bundle, unless the pool says it as gravely or answers it by its size."""
    gravest = {item.code: item.severity for item in reversed(pooled.findings) if item.code not in NETTED}
    for number, judged in enumerate(alone, 1):
        for item in judged.findings:
            said = item.code in OF_SIZE or gravest.get(item.code) in {Severity.SERIOUS, item.severity}
            if item.severity is not Severity.INFO and not said:
                yield structs.replace(item, message=f"bundle {number} of {len(alone)}: {item.message}")


def _decline(pooled: Assessment, accumulation: Accumulation) -> Iterator[Finding]:
    """Tell where r_op is lower in a later bundle than in an earlier one, or why that cannot be told."""
    pairs, apart = [], []
    for (earlier, first), (later, second) in combinations(enumerate(accumulation.parts, 1), 2):
        if accumulation.ordered and (compared := _compared(first, second)):
            pairs += [(earlier, later, *item) for item in compared]
        else:
            apart.append((first, second))
    if apart:
        possible = comb(len(accumulation.parts), 2)
        yield _not_compared(apart, possible, float(_margin(pooled)), ordered=accumulation.ordered)
    p = adjusted([change.p_loss for *_, change in pairs])
    worse = [
        (chance, earlier, later, where, sides)
        for chance, (earlier, later, where, sides, change) in zip(p, pairs, strict=True)
        if chance <= LEVEL and reaches(change.loss, float(_margin(pooled)))
    ]
    if worse:
        chance, earlier, later, where, sides = min(worse, key=lambda item: item[:2])
        (old, new), runs = sides.means.tolist(), sides.n.sum(axis=1).tolist()
        more = f"; so it is in {len(worse)} of {len(pairs)} comparisons" if len(worse) > 1 else ""
        yield finding(
            "periods-differ",
            f"success under faults{where} fell from {old:.3f} (n {runs[0]:,}, bundle {earlier}) to {new:.3f}"
            f" (n {runs[1]:,}, bundle {later}), p {chance:.2g}{more}: the pooled rate says more"
            " than the agent now does",
        )


def _not_compared(
    apart: Sequence[tuple[Part, Part]], possible: int, margin: float, *, ordered: bool
) -> Finding:
    """Return the finding about pairs that nothing compares: serious where success over all their runs fell.

    Runs count as independent there, so that it is serious rather too often than too rarely.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - heavy

    y, n = np.array([[_under_faults(part) for part in pair] for pair in apart], float).T  # side by pair
    fall = y[0] / np.maximum(n[0], 1) - y[1] / np.maximum(n[1], 1)
    fall = fall if ordered else abs(fall)
    mean = y.sum(axis=0) / np.maximum(n.sum(axis=0), 1)
    error = np.sqrt(mean * (1 - mean) * (1 / np.maximum(n, 1)).sum(axis=0))
    known = (error > 0) & n.all(axis=0)
    p = np.array(adjusted(np.where(known, ndtr(-fall / np.where(known, error, 1)), 1).tolist()))
    worst = float(fall[p <= LEVEL].max(initial=0))
    serious = worst > 0 and reaches(worst, margin)
    share = f"they share no domain and fault condition, or hold fewer than {LEAST} tasks"
    why = share if ordered else "their order in time is not known"
    message = f"{len(apart)} of {possible} pairs of bundles cannot be compared: {why}"
    if serious:
        message += f"; over all runs under faults success differs by {worst:.1%}"
    return finding("periods-not-compared", message, Severity.SERIOUS if serious else Severity.WARNING)


def _under_faults(part: Part) -> tuple[int, int]:
    """Return the successes and the runs under faults."""
    faults = [cell.tally for cell in part.summary.select() if cell.is_fault]
    return sum(tally.success for tally in faults), sum(tally.runs for tally in faults)


def _margin(pooled: Assessment) -> Fraction:
    margins = [row.criterion.margin for row in pooled.criteria if row.id == "r_op"]
    return exact(margins[0]) if margins and margins[0] is not None else Fraction(0)


def _compared(first: Part, second: Part) -> list[tuple[str, Sides, Contrast]]:
    """Compare r_op on the domains and conditions that both bundles have, under the earlier one's mix.

    First over all domains, and nothing where they hold too few tasks; then in each domain that holds enough.
    """
    summaries = first.summary, second.summary
    tasks = [series(part, "r_op", memory_observable=False) for part in summaries]
    panel = observed("r_op", summaries, tasks)
    places = panel.domains if 1 < len(panel.domains) <= DOMAINS else ()
    compared = [("", panel.chosen()), *((f" in {name}", panel.chosen(domain=name)) for name in places)]
    if min(compared[0][1].k) < LEAST:
        return []
    return [(where, sides, contrast(sides, (1, -1))) for where, sides in compared if min(sides.k) >= LEAST]
