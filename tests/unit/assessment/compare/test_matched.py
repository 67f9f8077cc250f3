"""The matched difference: what is paired with what, and its tests against scipy and plain arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from certkit.assessment.compare import sample as sampling
from certkit.assessment.compare.matched import Matched, matched
from certkit.assessment.compare.sample import Sample, arm, components, match
from certkit.assessment.metrics.series import series
from tests.support.rows import Rows, evidence, tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

A = [4, 3, 4, 2, 4, 1, 3, 4]
B = [3, 3, 1, 2, 4, 0, 2, 1]


def side_by_side(a: Iterable[Rows], b: Iterable[Rows]) -> Sample | None:
    arms = []
    for rows in (a, b):
        found = evidence(rows)
        arms.append(arm(found, series(found, "r_op", memory_observable=True)))
    return match(*arms, scale=1)


def compared(a: Iterable[Rows], b: Iterable[Rows]) -> Matched:
    found = side_by_side(a, b)
    assert found is not None
    return matched(found)


def test_shared_tasks_are_paired_and_the_t_test_is_the_paired_one() -> None:
    found = compared(tasks(A), tasks(B))
    done = stats.ttest_rel(np.array(A) / 4, np.array(B) / 4)
    robust = found.robust
    assert (found.paired, found.tasks, found.clusters) == (True, 8, (8, 8))
    assert found.difference == pytest.approx((sum(A) - sum(B)) / 32, abs=1e-15)
    assert robust.t == pytest.approx(float(done.statistic), abs=1e-9)
    assert robust.df == pytest.approx(7)
    assert robust.p == pytest.approx(float(done.pvalue), abs=1e-9)
    span = done.confidence_interval(0.95)
    assert robust.interval is not None
    assert robust.interval.low == pytest.approx(float(span.low), abs=1e-9)
    assert robust.interval.high == pytest.approx(float(span.high), abs=1e-9)


def test_the_paired_permutation_swaps_the_agents_within_tasks() -> None:
    found = compared(tasks(A), tasks(B)).permutation
    gaps = [a - b for a, b in zip(A, B, strict=True)]
    moved = [gap for gap in gaps if gap]
    hits = sum(
        abs(sum(gap if code >> place & 1 else -gap for place, gap in enumerate(moved))) >= abs(sum(gaps))
        for code in range(2 ** len(moved))
    )
    assert (found.method, found.arrangements) == ("exact", 2 ** len(moved))
    assert found.p == hits / 2 ** len(moved)


def test_other_tasks_are_not_paired_and_the_t_test_is_welchs() -> None:
    found = compared(tasks(A), tasks([*B, 2, 1], first=100))
    done = stats.ttest_ind(np.array(A) / 4, np.array([*B, 2, 1]) / 4, equal_var=False)
    robust = found.robust
    assert (found.paired, found.tasks, found.clusters) == (False, 0, (8, 10))
    assert robust.t == pytest.approx(float(done.statistic), abs=1e-9)
    assert robust.df == pytest.approx(float(done.df), abs=1e-9)
    assert robust.p == pytest.approx(float(done.pvalue), abs=1e-9)


def test_tasks_of_one_family_swap_together() -> None:
    def family(rows: list[Rows]) -> list[Rows]:
        return [Rows(cluster=1000 + row.task // 2, task=row.task, y=row.y, n=row.n) for row in rows]

    found = compared(family(tasks(A)), family(tasks(B)))
    pairs = np.array(A).reshape(4, 2).sum(axis=1) / 8, np.array(B).reshape(4, 2).sum(axis=1) / 8
    assert (found.tasks, found.clusters, found.permutation.arrangements) == (8, (4, 4), 2**4)
    assert found.robust.t == pytest.approx(float(stats.ttest_rel(*pairs).statistic), abs=1e-9)


def test_families_of_either_bundle_hold_tasks_together() -> None:
    # B names a family of the tasks 0 and 1, A one of 1 and 2: all three hang together.
    a = [
        Rows(cluster=cluster, task=task, y=y, n=4)
        for task, (cluster, y) in enumerate([(10, 4), (11, 2), (11, 3)])
    ]
    b = [
        Rows(cluster=cluster, task=task, y=y, n=4)
        for task, (cluster, y) in enumerate([(20, 1), (20, 2), (22, 1)])
    ]
    rest = tasks([3, 2], first=50)
    found = compared([*a, *rest], [*b, *tasks([1, 2], first=50)])
    assert (found.tasks, found.clusters) == (5, (3, 3))


def test_a_different_mix_is_no_difference() -> None:
    # Both do 3/4 of the easy and 1/4 of the hard ones; A has met mostly easy ones.
    a = [*tasks([9] * 6, 12, domain="easy"), *tasks([1] * 6, domain="hard", first=20)]
    b = [*tasks([3] * 6, domain="easy"), *tasks([3] * 6, 12, domain="hard", first=20)]
    found = compared(a, b)
    assert (found.a, found.b, found.difference) == (0.5, 0.5, 0.0)
    assert found.permutation.p == 1.0


def test_both_weigh_a_cell_by_its_share_of_all_runs() -> None:
    a = [*tasks([4, 3], 5, domain="x"), *tasks([2, 2], 3, domain="y", first=10)]
    b = [*tasks([2, 1], 4, domain="x"), *tasks([5, 1], 6, domain="y", first=10)]
    found = compared(a, b)
    w_x, w_y = Fraction(18, 36), Fraction(18, 36)
    assert found.a == pytest.approx(float(w_x * Fraction(7, 10) + w_y * Fraction(4, 6)), abs=1e-15)
    assert found.b == pytest.approx(float(w_x * Fraction(3, 8) + w_y * Fraction(6, 12)), abs=1e-15)


def test_only_what_both_have_is_compared() -> None:
    a = [*tasks(A), *tasks([0, 0], domain="a-only", first=50), *tasks([0], first=70)]
    b = [*tasks(B), *tasks([0, 0], condition="cascade", first=60)]
    found = compared(a, b)
    assert (found.runs, found.cells, found.tasks) == ((32, 32), 1, 8)
    assert found.difference == compared(tasks(A), tasks(B)).difference


def test_a_few_shared_tasks_make_no_pair() -> None:
    # 3 of 8 tasks are shared: less than half of the runs of either.
    found = compared(tasks(A), tasks(B, first=5))
    assert (found.paired, found.runs) == (False, (32, 32))
    assert compared(tasks(A), tasks(B, first=4)).paired


def test_a_task_of_another_domain_is_another_task() -> None:
    a = [*tasks(A, domain="x"), *tasks(A, domain="y", first=8)]
    b = [*tasks(B, domain="y"), *tasks(B, domain="x", first=8)]
    assert not compared(a, b).paired


def test_bundles_without_a_common_cell_have_nothing_to_compare() -> None:
    assert side_by_side(tasks(A), tasks(B, domain="elsewhere")) is None
    assert side_by_side(tasks(A), []) is None


def test_clusters_that_all_agree_show_no_variance() -> None:
    same = compared(tasks(A), tasks(A))
    assert (same.difference, same.permutation.p, same.robust.interval) == (0.0, 1.0, None)
    assert same.robust.reason == "the clusters show no variance: all of them say the same"
    perfect = compared(tasks([4] * 12), tasks([4] * 12, first=30))
    assert (perfect.robust.se, perfect.permutation.p) == (None, 1.0)


def test_one_cluster_shows_no_variance() -> None:
    found = compared(tasks([3]), tasks([1]))
    assert (found.robust.reason, found.bootstrap) == ("one cluster shows no variance", None)
    assert (found.permutation.p, found.permutation.least) == (1.0, 1.0)


def test_the_bootstrap_agrees_with_the_robust_interval_where_clusters_are_many() -> None:
    draws = np.random.Generator(np.random.PCG64(1))
    a, b = draws.integers(0, 5, 200).tolist(), draws.integers(0, 5, 200).tolist()
    for first in (0, 500):
        found = compared(tasks(a), tasks(b, first=first))
        assert found.bootstrap is not None
        assert found.robust.interval is not None
        width = found.robust.interval.high - found.robust.interval.low
        assert found.bootstrap.low == pytest.approx(found.robust.interval.low, abs=0.05 * width)
        assert found.bootstrap.high == pytest.approx(found.robust.interval.high, abs=0.05 * width)


def test_swapping_the_bundles_turns_the_sign_and_nothing_else() -> None:
    one, other = compared(tasks(A), tasks(B)), compared(tasks(B), tasks(A))
    assert (one.difference, one.permutation) == (-other.difference, other.permutation)
    assert one.robust.p == other.robust.p


@pytest.mark.parametrize(("first", "blocks"), [(0, 10 + 5), (100, 5 + 5 + 2 + 2)])
def test_many_units_are_put_into_blocks(monkeypatch: pytest.MonkeyPatch, first: int, blocks: int) -> None:
    a = [*tasks(A * 4), *tasks(A * 2, domain="shop", first=300)]
    b = [*tasks(B * 4, first=first), *tasks(B * 2, domain="shop", first=300 + first)]
    whole = compared(a, b)
    monkeypatch.setattr(sampling, "MOST_UNITS", 16)
    found = side_by_side(a, b)
    assert found is not None
    blocked = matched(found)
    assert (whole.blocked, blocked.blocked, len(found.stratum)) == (False, True, blocks)
    assert (blocked.difference, blocked.clusters) == (whole.difference, whole.clusters)
    assert blocked.robust.se == pytest.approx(whole.robust.se, rel=0.6)


def test_components_are_what_hangs_together() -> None:
    left, right = np.array([1, 2, 3, 3, 9]), np.array([7, 8, 8, 6, 5])
    assert components(left, right).tolist() == [0, 1, 1, 1, 2]
