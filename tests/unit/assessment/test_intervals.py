"""The intervals that respect clusters, against plain computations on the cluster table or on records."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from certkit import canonical
from certkit.assessment import assess
from tests.support import build, clustered, oracle
from tests.support.bounded_oracle import family
from tests.support.clustered import Design

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.evidence.summary.summary import Summary
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


VALUES: dict[str, tuple[Callable[[Run], float | None], float, float]] = {
    "r_op": (success, 0, 1),
    "ti": (traceability, 1, 5),
    "violations": (violations, 0, np.inf),
    "pei": (efficiency, 0, 1),
}


@pytest.mark.parametrize("metric", VALUES)
def test_the_t_interval_is_that_of_the_cluster_robust_variance(metric: str) -> None:
    value, low, high = VALUES[metric]
    shares: dict[str, list[float]] = {}
    for run in RECORDS:
        if (found := value(run)) is not None:
            shares.setdefault(family(run), []).append(found)
    n, k = sum(map(len, shares.values())), len(shares)
    mean = sum(map(sum, shares.values())) / n
    squares = sum((sum(own) - mean * len(own)) ** 2 for own in shares.values())
    equal = n * n / sum(len(own) ** 2 for own in shares.values())
    reach = stats.t.ppf(0.975, equal - 1) * sqrt(k / (k - 1) * squares) / n
    found_interval = intervals(RECORDS)[metric]["cluster-t"]
    # PEI is summed in millionths per row of the table.
    assert found_interval["low"] == pytest.approx(max(low, mean - reach), abs=1e-6)
    assert found_interval["high"] == pytest.approx(min(high, mean + reach), abs=1e-6)
    if metric != "pei":
        assert found_interval["low"] == pytest.approx(max(low, mean - reach), rel=1e-9)
        assert found_interval["high"] == pytest.approx(min(high, mean + reach), rel=1e-9)


def drawn(seed: int, draws: int, size: int) -> list[list[int]]:
    """Return the indices of every draw: 32-bit halves of raw words, the low one first, scaled to the size."""
    words = np.random.PCG64(seed).random_raw(draws * size)
    halves = [half for word in words.tolist() for half in (word & 0xFFFFFFFF, word >> 32)]
    return [[half * size >> 32 for half in halves[i * size : (i + 1) * size]] for i in range(draws)]


def by_hand(summary: Summary, fields: tuple[str, str], *, faults: bool, scale: int) -> tuple[float, float]:
    """Resample the clusters of a summary one by one, in the order of their hashes."""
    table: dict[int, list[int]] = {}
    rows = zip(
        summary.clusters.cell.tolist(),
        summary.clusters.cluster.tolist(),
        *(summary.clusters.sums[name].tolist() for name in fields),
        strict=True,
    )
    for cell, cluster, y, n in rows:
        own = table.setdefault(cluster, [0, 0])
        if summary.cells[cell].is_fault or not faults:
            own[0] += y
            own[1] += n
    names = sorted(table)
    ratios = []
    for indices in drawn(26, 1000, len(names)):
        chosen = [table[names[i]] for i in indices]
        total = sum(n for _, n in chosen)
        if total:
            ratios.append(sum(y for y, _ in chosen) / total / scale)
    ratios.sort()
    return ratios[24], ratios[-25]  # ⌊1,001 · .025⌋ from either end


@pytest.mark.parametrize("size", [25, 24])
def test_the_bootstrap_is_the_written_stream_of_indices(size: int) -> None:
    # An odd and an even number of clusters, since a word makes two indices.
    records = clustered.made(Design(seed=6, tasks=size, runs=9, domains=2, family=0, success=0.85, good=0.8))
    summary, _ = clustered.summarised(clustered.bundle(records))
    found = intervals(records)
    for metric, fields, faults, scale in (
        ("r_op", ("success", "runs"), True, 1),
        ("frr", ("frr_tenths", "frr_n"), True, 10),
        ("ti", ("ti_thousandths", "ti_n"), False, 1000),
    ):
        interval = found[metric]["cluster-bootstrap"]
        wanted = by_hand(summary, fields, faults=faults, scale=scale)
        assert (interval["low"], interval["high"]) == pytest.approx(wanted, rel=1e-12)
        assert (interval["seed"], interval["draws"], interval["level"]) == (26, 1000, 0.95)


def test_draws_without_a_run_of_the_metric_are_left_out_and_told() -> None:
    # Attacks in two of forty clusters: a draw has neither with a chance of (38/40)^40 = .13.
    records = clustered.made(
        Design(
            seed=9, tasks=40, runs=6, domains=1, family=0, conditions=("nominal", "tool_failure"), success=0.9
        )
    )
    for task, outcome in (("d0/3", "success"), ("d0/4", "failure")):
        for run in records:
            if run["task_id"] == task and run["condition"] == "tool_failure":
                run |= {"condition": "adversarial", "attack_landed": True, "outcome": outcome}
                run["recovered"] = outcome == "success"
                for name in ("recovery_steps", "recovery_approach", "fault_took_hold"):
                    run.pop(name, None)
    interval = intervals(records)["adversarial_resistance"]["cluster-bootstrap"]
    assert 800 < interval["draws"] < 940
    assert (interval["low"], interval["high"]) == (0.0, 1.0)


def test_clusters_that_do_not_differ_have_no_interval_over_clusters() -> None:
    records = clustered.made(Design(seed=6, tasks=20, runs=5, domains=1, family=0, success=1.0, good=1.0))
    found = intervals(records)["r_op"]
    assert found.keys() == {"clopper-pearson", "jeffreys"}
    assert found["jeffreys"]["high"] == 1.0


def test_one_cluster_has_no_interval_over_clusters() -> None:
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


def assessed(records: list[Run], jobs: int) -> bytes:
    """Return the canonical assessment without the digest of the bundle, which the order of lines changes."""
    summary, facts = clustered.summarised(clustered.bundle(records), jobs=jobs)
    document = assess(summary, facts, build.profile("hb-eval-2026-bounded")).to_dict()
    del document["bundle"]["digest"]
    return canonical.canonical(document)


def test_neither_order_nor_processes_change_a_bit_of_an_assessment(monkeypatch: pytest.MonkeyPatch) -> None:
    # About 14,000 records. Two processes read them at once only above a size that is set to nothing here.
    monkeypatch.setattr("certkit.evidence.reading.work.WORTH_A_PROCESS", 0)
    records = clustered.made(
        Design(seed=1, tasks=1000, runs=27, domains=5, family=3, success=0.9, spread=0.1, good=0.9)
    )
    assert 13_500 < len(records) < 14_500
    one = assessed(records, 1)
    assert assessed(shuffled(records, 1), 1) == one
    assert assessed(shuffled(records, 2), 2) == one
