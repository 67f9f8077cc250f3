"""The intervals beside Wilson's, against plain computations on records."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from certkit.assessment.assessing import assess
from certkit.ground import canonical
from tests.support import bound_laws, build, clustered, oracle
from tests.support.bounded_oracle import family
from tests.support.clustered import Design

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.strategies import Run

DESIGN = Design(seed=6, tasks=25, runs=9, domains=2, family=3, success=0.85, spread=0.1, good=0.8)
RECORDS = clustered.made(DESIGN)


def intervals(records: list[Run]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return metric → method → interval."""
    summary, facts = clustered.summarised(clustered.bundle(records))
    document = assess(summary, facts, build.profile()).to_dict()
    return {
        name: {row["method"]: row for row in metric.get("intervals", ())}
        for name, metric in document["metrics"].items()
    }


def success(run: Run) -> float | None:
    return float(run["outcome"] == "success") if run["condition"] != "nominal" else None


def traceability(run: Run) -> float | None:
    return run.get("traceability")


def violations(run: Run) -> float | None:
    return None if run.get("violations") is None else float(run["violations"])


def efficiency(run: Run) -> float | None:
    found = oracle.planning_efficiency(run)
    return None if found is None else float(found)


VALUES: dict[str, tuple[Callable[[Run], float | None], int, float]] = {
    "r_op": (success, 0, 1),
    "ti": (traceability, 1, 5),
    "violations": (violations, 0, np.inf),
    "pei": (efficiency, 0, 1),
}


@pytest.mark.parametrize("metric", VALUES)
def test_the_interval_over_tasks_is_the_outermost_of_both_weightings(metric: str) -> None:
    value, low, high = VALUES[metric]
    shares: dict[str, list[float]] = {}
    for run in RECORDS:
        if (found := value(run)) is not None:
            shares.setdefault(family(run), []).append(found)
    # PEI is summed in millionths per row of the table.
    sums = {name: Fraction(sum(own)).limit_denominator(10**7) for name, own in shares.items()}
    groups = bound_laws.Groups(
        tuple(shares),
        tuple(map(len, shares.values())),
        tuple(sums.values()),
        Fraction(low),
        None if high == np.inf else Fraction(high),
    )
    interval = intervals(RECORDS)[metric]["task-posterior"]
    wanted = [bound_laws.limit(groups, 0.975, lower=lower) for lower in (True, False)]
    assert (interval["low"], interval["high"]) == pytest.approx(wanted, abs=2e-6)


def test_one_task_has_no_interval_over_tasks() -> None:
    records = [run | {"cluster_id": "one"} for run in RECORDS]
    assert intervals(records)["r_op"].keys() == {"clopper-pearson", "jeffreys"}


def test_the_intervals_of_a_rate_take_its_own_counts() -> None:
    found = intervals(RECORDS)
    faults = [run for run in RECORDS if run["condition"] != "nominal"]
    won = sum(run["outcome"] == "success" for run in faults)
    wanted = stats.binomtest(won, len(faults)).proportion_ci(method="exact")
    interval = found["r_op"]["clopper-pearson"]
    assert (interval["low"], interval["high"]) == pytest.approx((wanted.low, wanted.high), rel=1e-9)
    by_domain = {
        name: [run for run in faults if run["domain"] == name]
        for name in sorted({run["domain"] for run in faults})
    }
    rates = {
        name: sum(run["outcome"] == "success" for run in own) / len(own) for name, own in by_domain.items()
    }
    worst = by_domain[min(rates, key=lambda name: (rates[name], name))]
    hits = sum(run["outcome"] == "success" for run in worst)
    wanted = stats.binomtest(hits, len(worst)).proportion_ci(method="exact")
    interval = found["domain_min"]["clopper-pearson"]
    assert (interval["low"], interval["high"]) == pytest.approx((wanted.low, wanted.high), rel=1e-9)


def shuffled(records: list[Run], seed: int) -> list[Run]:
    keys = np.random.PCG64(seed).random_raw(len(records)).tolist()
    return [run for _, run in sorted(zip(keys, records, strict=True), key=lambda pair: pair[0])]


def assessed(records: list[Run]) -> bytes:
    """Return the canonical assessment without the digest of the bundle, which the order of lines changes."""
    summary, facts = clustered.summarised(clustered.bundle(records))
    document = assess(summary, facts, build.profile("hb-eval-2026-bounded")).to_dict()
    del document["bundle"]["digest"]
    return canonical.canonical(document)


def test_the_order_changes_no_bit_of_an_assessment() -> None:
    records = clustered.made(
        Design(seed=1, tasks=60, runs=9, domains=5, family=3, success=0.9, spread=0.1, good=0.9)
    )
    in_order = assessed(records)
    assert assessed(shuffled(records, 1)) == in_order
    assert assessed(shuffled(records, 2)) == in_order
