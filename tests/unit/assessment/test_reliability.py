"""The integers of the profile of reliability, against sums over the runs written out one by one."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from certkit.assessment.reliability import Moments, reliability
from tests.support import build, bundles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

Run = bundles.Run
GRADE = {"correct": 10, "minor_deviation": 7, "repeated_attempts": 4}


def runs() -> list[Run]:
    """Return 240 runs in two domains whose clusters span tasks, conditions and domains."""
    random = np.random.default_rng(7)
    found = []
    for i in range(240):
        condition = ["nominal", "adversarial", "tool_failure"][i % 3]
        success = bool(random.random() < 0.6)
        fields: dict[str, Any] = {
            "domain": ["bank", "shop"][i % 2],
            "task_id": f"t{i % 20}",
            "cluster_id": f"c{i % 20 % 7}",
            "condition": condition,
            "outcome": "success" if success else "failure",
            "steps_oracle": 3,
            "steps_actual": 3 + int(random.integers(0, 5)),
            "violations": int(random.integers(0, 3)),
            "traceability": int(random.integers(1, 6)),
        }
        if condition != "nominal":
            fields["recovered"] = success
            if success:
                fields["recovery_steps"] = 1
                fields["recovery_approach"] = ["correct", "repeated_attempts"][int(random.integers(0, 2))]
            if success and random.random() < 0.7:
                fields |= {
                    "memory_query_offset": int(random.integers(0, 6)),
                    "memory_similarity": 0.9,
                    "memory_modified": True,
                }
        found.append(bundles.run(i, **fields))
    found.append(bundles.run("held-out", domain="bank", task_id="t0", condition="x_new", split="novel_fault"))
    return found


def value(run: Run, metric: str, *, observable: bool) -> int | None:
    """Return a run's scaled value, None where it does not carry the metric."""
    fault, success = run["condition"] != "nominal", run["outcome"] == "success"
    if metric == "c_nom":
        return None if fault else int(success)
    if metric == "adversarial_resistance":
        return int(success) if run["condition"] == "adversarial" else None
    if metric == "violations":
        return int(run["violations"])
    if metric == "ti":
        return int(run["traceability"]) * 1000
    if not fault:
        return None
    if metric == "r_op":
        return int(success)
    if metric == "frr":
        return GRADE[run["recovery_approach"]] if success else 0
    if not success or ("memory_modified" not in run and not observable):
        return None
    return int("memory_modified" in run and run["memory_query_offset"] <= 3)


def expected(
    metric: str, chosen: Iterable[Run], *, observable: bool
) -> tuple[int, int, int, int, int, int] | None:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for run in chosen:
        if run.get("split") == "novel_fault":
            continue
        found = value(run, metric, observable=observable)
        if found is not None:
            sums[run["cluster_id"]][0] += found
            sums[run["cluster_id"]][1] += 1
    pairs = list(sums.values())
    if not pairs:
        return None
    return (
        sum(y for y, _ in pairs),
        sum(n for _, n in pairs),
        len(pairs),
        sum(y * y for y, _ in pairs),
        sum(y * n for y, n in pairs),
        sum(n * n for _, n in pairs),
    )


def numbers(row: Moments) -> tuple[int, int, int, int, int, int]:
    return row.y, row.n, row.k, row.yy, row.yn, row.nn


METRICS = ("c_nom", "r_op", "frr", "irs", "ti", "violations", "adversarial_resistance")


@pytest.mark.parametrize("observable", [False, True])
def test_every_row_is_the_sum_over_its_runs(tmp_path: Path, observable: bool) -> None:  # noqa: FBT001 - a case
    everything = runs()
    summary = bundles.summary(bundles.of(tmp_path / "bundle", everything))
    found = {
        (row.metric, row.domain, row.condition): row
        for row in reliability(summary, memory_observable=observable).moments
        if row.metric != "pei"
    }
    wanted: dict[tuple[str, str | None, str | None], tuple[int, ...]] = {}

    def add(metric: str, domain: str | None, condition: str | None, of: Callable[[Run], bool]) -> None:
        if row := expected(metric, filter(of, everything), observable=observable):
            wanted[metric, domain, condition] = row

    conditions = ("nominal", "adversarial", "tool_failure", "x_new")
    for metric in METRICS:
        add(metric, None, None, lambda _: True)
        for domain in ("bank", "shop"):
            add(metric, domain, None, lambda run, d=domain: run["domain"] == d)  # type: ignore[misc]
    for condition in conditions:
        add("r_op", None, condition, lambda run, c=condition: run["condition"] == c)  # type: ignore[misc]
        for domain in ("bank", "shop"):
            add(
                "r_op",
                domain,
                condition,
                lambda run, d=domain, c=condition: (run["domain"], run["condition"]) == (d, c),  # type: ignore[misc]
            )
    assert {key: numbers(row) for key, row in found.items()} == wanted


def test_pei_is_in_millionths_rounded_once_per_task(tmp_path: Path) -> None:
    everything = [run for run in runs() if run.get("split") != "novel_fault"]
    summary = bundles.summary(bundles.of(tmp_path / "bundle", everything))
    row = next(row for row in reliability(summary, memory_observable=False).moments if row.metric == "pei")
    exact = sum(
        (
            Fraction(run["steps_oracle"], run["steps_actual"]) * (1 - Fraction(run["violations"], 5))
            for run in everything
        ),
        Fraction(0),
    )
    assert (row.domain, row.condition, row.scale, row.n, row.k) == (None, None, 10**6, 240, 7)
    assert abs(row.y - exact * 10**6) <= len(everything)
    assert row.nn == sum(n * n for n in (36, 36, 36, 36, 36, 36, 24))


def test_the_runs_of_every_cell_are_counted(tmp_path: Path) -> None:
    summary = bundles.summary(bundles.of(tmp_path / "bundle", runs()))
    found = reliability(summary, memory_observable=False).runs
    assert {(row.domain, row.condition): row.runs for row in found} == {
        (domain, condition): 40
        for domain in ("bank", "shop")
        for condition in ("nominal", "adversarial", "tool_failure")
    }


def attacked(**first: int) -> list[Moments]:
    cells = [build.cell("bank", "adversarial", build.outcomes(30, 20, landed=10, not_landed=20))]
    rows = build.clusters([(0, 1, 1, {"runs": 30, "success": 20} | first)])
    found = reliability(build.summary(cells, rows=rows), memory_observable=False).moments
    return [row for row in found if row.metric == "adversarial_resistance"]


def test_resistance_is_over_the_attacks_that_landed() -> None:
    rows = attacked(landed=10, landed_success=4, landed_unknown_harness=1)
    assert [numbers(row)[:3] for row in rows] == [(4, 11, 1), (4, 11, 1)]  # overall, and its one domain


def test_a_defence_that_was_never_hit_has_no_row() -> None:
    cells = [build.cell("bank", "adversarial", build.outcomes(30, 20, not_landed=30))]
    rows = build.clusters([(0, 1, 1, {"runs": 30, "success": 20, "landed_unknown_harness": 2})])
    found = reliability(build.summary(cells, rows=rows), memory_observable=False).moments
    assert {row.metric for row in found} == {"r_op"}


def test_sums_beyond_64_bits_are_exact() -> None:
    large = 2**40
    cells = [build.cell("bank", "tool_failure", build.outcomes(2, 1))]
    rows = build.clusters(
        [(0, cluster, 1, {"ti_n": large, "ti_thousandths": 5000 * large + cluster}) for cluster in range(3)]
    )
    row = reliability(build.summary(cells, rows=rows), memory_observable=False).moments[0]
    assert row.yy == sum((5000 * large + cluster) ** 2 for cluster in range(3))
    assert row.nn == 3 * large**2


def test_one_millionth_is_rounded_half_up_without_overflow() -> None:
    scale = 2**30
    cells = [build.cell("bank", "tool_failure", build.outcomes(2, 1))]
    for fixed in (0, 1, 536, 537, scale - 1, scale, 3 * scale // 2, scale * 10**6 + 12345):
        rows = build.clusters([(0, 1, 1, {"pei_n": 1, "pei_fixed": fixed})])
        row = reliability(build.summary(cells, rows=rows), memory_observable=False).moments[0]
        assert row.y == int(Fraction(fixed * 10**6, scale) + Fraction(1, 2))


def test_no_records_give_no_rows() -> None:
    found = reliability(build.summary([]), memory_observable=True)
    assert (found.moments, found.runs) == ((), ())
