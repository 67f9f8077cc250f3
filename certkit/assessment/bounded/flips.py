"""How many successes must turn into failures for a tier to be lost: the least number over its rows.

A flipped run is one under a fault. It costs r_op, the posterior, its domain, the attacked and the cascade
runs one success each, FRR at most a whole grade, IRS an intentional recovery, their product both; the gap
grows by it. The other rows do not see it, consistency apart, which depends on where in time the run stands.
For the bounded reading the runs keep the worth (n_eff) that their clusters were found to have.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.assessment.bounded import ARMS, MEANS, bounds
from certkit.assessment.criteria import Status, passes
from certkit.assessment.statistics.estimators import posterior

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.assessment.bounded import Clustered
    from certkit.assessment.criteria import Row
    from certkit.assessment.evaluate import Judged
    from certkit.assessment.profile import Reading

COST: Final = {
    "r_op": 1,
    "adversarial_resistance": 1,
    "irs": 1,
    "cn_frr": 1,
    "frr": 10,  # tenths: a whole grade
    "frr_2025": 2,  # halves
}
"""Series that a flipped run lowers, and by how much in the series' own scale."""

PRODUCTS: Final = {"irs_2025": ("irs", "frr_2025")}
"""Metrics that are products of two such series; an intentional recovery that is flipped lowers both."""


class Flips(Struct, frozen=True, kw_only=True):
    """The least number of flips that loses a tier, of how many successes, and the row that falls first."""

    needed: int
    of: int
    criterion: str
    domain: str | None = None


def flips(judged: Judged, tier: int, reading: Reading) -> Flips | None:
    """Return the least number of flips that loses `tier` under a reading; None where no row sees them."""
    rows = [row for row in judged.rows if row.tier <= tier and row.deciding(reading) is Status.MET]
    found = [flip for row in rows for flip in _row(judged, row, reading)]
    # A row that stands without a single success gives way to any that can fall.
    return min(
        found,
        key=lambda flip: (flip.needed > flip.of, flip.needed, flip.criterion, flip.domain or ""),
        default=None,
    )


def _row(judged: Judged, row: Row, reading: Reading) -> Iterator[Flips]:
    name = row.metric.id
    if name == "domain_min":
        for domain, (_, fault) in judged.view.domains.items():
            fails = _in_domain(judged, row, domain, reading)
            yield _flips(row, fails, fault.success, domain)
        return
    fault = judged.view.fault
    if name == "posterior":
        yield _flips(row, _posterior(judged, row, reading), fault.success)
    elif name in ARMS:
        arm = judged.reader.clustered(ARMS[name][1]).sums
        yield _flips(row, _difference(judged, row, reading), arm.y if arm else 0)
    elif name in PRODUCTS:
        memory = judged.metrics["irs"].counts["intentional"]
        yield _flips(row, _series(judged, row, reading), memory)
    elif name in COST:
        successes = row.metric.counts.get("intentional", row.metric.counts.get("successes", fault.success))
        yield _flips(row, _series(judged, row, reading), successes)


def _flips(row: Row, fails: Callable[[int], bool], successes: int, domain: str | None = None) -> Flips:
    return Flips(needed=least(fails, successes), of=successes, criterion=row.id, domain=domain)


def least(fails: Callable[[int], bool], high: int) -> int:
    """Return the least j in 1 … high with fails(j), which is false and then true; high + 1 where none is."""
    low, high = 0, high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def _series(judged: Judged, row: Row, reading: Reading) -> Callable[[int], bool]:
    parts = [judged.reader.clustered(name) for name in PRODUCTS.get(row.metric.id, (row.metric.id,))]
    error, icc0 = 1 - judged.reader.confidence(row.tier), judged.profile.icc0

    def fails(j: int) -> bool:
        share = prod((_share(part, j) for part in parts), start=Fraction(1))
        if reading == "table" or not _passes(row, share):
            return not _passes(row, share)
        delta = float(1 - error / len(parts))
        return not _passes(row, prod(max(0.0, _bound(part, j, delta, icc0)) for part in parts))

    return fails


def _share(data: Clustered, j: int) -> Fraction:
    """Return the mean of a series after j flips; an intentional recovery leaves its denominator too."""
    assert data.sums is not None  # noqa: S101 - a row that is met rests on runs
    name = data.of.metric
    runs = data.sums.n - j * (name == "irs")
    return Fraction(max(0, data.sums.y - COST[name] * j), data.of.scale * runs) if runs > 0 else Fraction(0)


def _bound(data: Clustered, j: int, delta: float, icc0: float) -> float:
    """Return the lower bound of a series after j flips, its runs worth what they were."""
    assert data.sums is not None  # noqa: S101 - as above
    sample, share = bounds.sample(data.of, data.sums), float(_share(data, j))
    kept = 1 - j * (data.of.metric == "irs") / data.sums.n
    worth = kept * bounds.effective_runs(sample, delta, icc0=icc0)
    bound = float(bounds.beta_bound(share, worth, delta, lower=True))
    if data.of.metric in MEANS:
        bound = min(bound, share - sample.mean + float(bounds.t_bound(sample, delta, lower=True)))
    return bound


def _passes(row: Row, value: Fraction | float) -> bool:
    assert row.operator is not None  # noqa: S101 - a row that is met is specified
    assert row.threshold is not None  # noqa: S101 - the same
    return passes(value, row.operator, row.threshold)


def _posterior(judged: Judged, row: Row, reading: Reading) -> Callable[[int], bool]:
    s, n, tau = judged.view.fault.success, judged.view.fault.runs, judged.profile.tau[row.tier]

    def fails(j: int) -> bool:
        if reading == "table":
            return not _passes(row, posterior(s - j, n, tau))
        if row.bounded is None or row.bounded.n_eff is None:
            return False
        probability = bounds.above((s - j) / n, row.bounded.n_eff, float(tau))
        return not (_passes(row, probability) and probability > row.bounded.confidence)

    return fails


def _in_domain(judged: Judged, row: Row, domain: str, reading: Reading) -> Callable[[int], bool]:
    fault = judged.view.domains[domain][1]
    found = judged.reader.domain_bounds(judged.reader.confidence(row.tier)).get(domain)

    def fails(j: int) -> bool:
        share = Fraction(fault.success - j, fault.runs)
        if reading == "table" or not _passes(row, share):
            return not _passes(row, share)
        if found is None or found.n_eff is None or row.bounded is None:
            return False
        return not _passes(
            row, bounds.beta_bound(float(share), found.n_eff, row.bounded.confidence, lower=True)
        )

    return fails


def _difference(judged: Judged, row: Row, reading: Reading) -> Callable[[int], bool]:
    first, second = ARMS[row.metric.id]
    one, other = (judged.reader.clustered(name).sums for name in (first, second))
    assert one is not None  # noqa: S101 - a row that is met rests on runs
    assert other is not None  # noqa: S101 - the same
    y, n, kept = other.y, other.n, Fraction(one.y, one.n)
    confidence = judged.reader.confidence(row.tier)

    def fails(j: int) -> bool:
        share = Fraction(y - j, n)
        if reading == "table" or not _passes(row, 100 * (kept - share)):
            return not _passes(row, 100 * (kept - share))
        arms = judged.reader.arms(first, second, confidence)
        if arms is None or row.threshold is None:
            return False
        moved = bounds.Arm(mean=float(share), n_eff=arms[1].n_eff)
        return bounds.difference_below(arms[0], moved, float(row.threshold / 100)) < float(confidence)

    return fails
