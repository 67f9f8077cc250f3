"""Error rates that the project promises, on fresh draws of the simulation study; and the study itself."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from certkit.assessment.bounded import bounds
from certkit.assessment.criteria import Status
from tests.study import coverage, drifting, identical, others, page, proportion, stopping
from tests.study.draws import ICCS, LEVELS, Cell, _cumulative, bounded, drawn, sizes, successes, table

from . import build

DRAWS = 4000
PUBLISHED = page.read()


def published(part: str, cell: Cell) -> Cell:
    """The cell of the same setting in the file of results."""
    setting = cell._replace(hits=0)
    (found,) = (one for one in PUBLISHED[part] if one._replace(hits=0) == setting)
    return found


@pytest.mark.parametrize("icc", ICCS)
@pytest.mark.parametrize(("tier", "k", "most"), [(2, 40, 0.065), (3, 90, 0.02)])
def test_an_agent_at_the_threshold_passes_by_bounds_as_rarely_as_promised(
    tier: int, k: int, most: float, icc: float
) -> None:
    level = LEVELS[tier]
    by_table, by_bounds = proportion.both(page.SEED, DRAWS, level, k, 1000, icc=icc, rate=float(level.tau))
    assert by_bounds.share <= most
    assert by_table.share > (0.02 if tier == 3 else 0.10) or icc == 0
    assert [published("false-pass", cell) for cell in (by_table, by_bounds)] == [by_table, by_bounds]


def test_without_a_design_effect_the_promise_would_break(monkeypatch: pytest.MonkeyPatch) -> None:
    level = LEVELS[2]
    monkeypatch.setattr(bounds, "effective_runs", lambda of, _, **__: of.n)
    _, naive = proportion.both(page.SEED, DRAWS, level, 40, 1000, icc=0.1, rate=0.8)
    assert naive.share > 0.10


@pytest.mark.parametrize(("icc", "draws"), [(0.0, DRAWS), (0.1, DRAWS), (0.3, 10 * DRAWS)])
def test_ten_attempts_stay_within_their_error_and_dividing_by_the_attempt_does_not(
    icc: float, draws: int
) -> None:
    cells = proportion.ever(2, draws, LEVELS[2], icc=icc)
    share = {cell.reading: cell.share for cell in cells if cell.attempts == 10}
    assert share["bounded"] <= 0.065
    assert share["bounded, uncorrected"] > 0.25
    assert share["bounded, α/i"] > share["bounded"] + 0.02


def test_corrections_of_any_number_of_attempts_sum_to_at_most_a_fifth_more() -> None:
    delta = Fraction(95, 100)
    spent = sum(1 - bounds.corrected(delta, attempt) for attempt in range(1, 1001))
    assert Fraction(119, 100) * (1 - delta) < spent <= Fraction(12, 10) * (1 - delta)


def test_ten_tasks_of_twenty_identical_successes_pass_no_tier_by_bounds_and_tier_3_by_the_table() -> None:
    assert identical.tiers(10, 20) == (3, 0)
    # The evidence is not refused for something else: more tasks of the same kind pass.
    assert identical.tiers(100, 20) == (3, 3)


@pytest.mark.parametrize("n", coverage.RUNS)
def test_coverage_is_never_below_nominal_or_near_it_on_average(n: int) -> None:
    assert coverage.coverage("Clopper–Pearson", n).least >= 0.95 - coverage.SLACK
    for method in ("Wilson", "Jeffreys"):
        assert abs(coverage.coverage(method, n).mean - 0.95) <= 0.015


@pytest.mark.parametrize("method", coverage.METHODS)
def test_coverage_is_that_of_counting_every_outcome(method: str) -> None:
    n, p = 20, (np.arange(20_000) + 0.5) / 20_000
    held = np.zeros_like(p)
    for s in range(n + 1):
        found = coverage.METHODS[method](s, n)
        held += ((found.low <= p) & (p <= found.high)) * stats.binom.pmf(s, n, p)
    exact = coverage.coverage(method, n)
    np.testing.assert_allclose(coverage.at(method, n, p), held, atol=1e-12)
    assert held.mean() == pytest.approx(exact.mean, abs=2e-5)
    assert exact.least <= held.min() <= exact.least + 2e-3


@pytest.mark.parametrize(
    ("loss", "design", "least", "most"),
    [
        ("nothing", 0, 0.0, 0.16),
        ("nothing", 2, 0.0, 0.16),
        ("10 points in all", 0, 0.95, 1.0),
        ("a point a passport", 0, 0.85, 1.0),
    ],
)
def test_drift_answers_as_promised(loss: str, design: int, least: float, most: float) -> None:
    found = drifting.answers(page.SEED, 120, design=design, icc=0.3, loss=loss)
    assert least <= found.share <= most + 2 * found.error


@pytest.mark.parametrize(
    ("row", "icc", "most"),
    [
        ("domain, tier 3", 0.3, 0.02),
        ("domain, tier 3, 20 tasks", 0.2, 0.025),
        ("one weak domain", 0.2, 0.065),
    ],
)
def test_the_weakest_domain_errs_as_published(row: str, icc: float, most: float) -> None:
    _, by_bounds = (cell for cell in others._cells(page.SEED, DRAWS, row, lambda _: None) if cell.icc == icc)
    assert by_bounds.share <= most
    assert published("rows", by_bounds) == by_bounds


def test_every_published_promise_holds() -> None:
    limits = [limit for name, part in page.SECTIONS.items() for limit in part.limits(PUBLISHED[name])]
    assert [limit.promise for limit in limits if not limit.holds] == []
    assert len(limits) == 9


def test_page_figures_and_results_are_one() -> None:
    differing = [
        path.name for path, text in page.outputs(PUBLISHED).items() if path.read_text("utf-8") != text
    ]
    assert differing == [], "run 'make study'"


def test_every_table_of_the_study_stands_on_its_page() -> None:
    named = [match[2] for match in page.REGION.finditer(page.PAGE.read_text("utf-8"))]
    assert sorted(named) == sorted(page.blocks(PUBLISHED))


def test_what_the_study_judges_is_what_an_assessment_judges() -> None:
    seen = set()
    for number, (tier, k, icc) in enumerate((2, k, icc) for k in (12, 40) for icc in (0.0, 0.3)):
        n = sizes(300, k)
        y = successes(number, "assess", 12, n, rate=0.86, icc=icc)
        y[0] = n  # one without failures, one with failures on a few clusters
        y[1] = n - (np.arange(k) < 3)
        of, level = drawn(y, n), LEVELS[tier]
        expected = zip(table(of, level).tolist(), bounded(of, level).tolist(), strict=True)
        for draw, pair in enumerate(expected):
            found = _assessed(y[draw].tolist(), n.tolist(), tier)
            assert found == pair, (k, icc, draw)
            seen.add(found)
    assert seen == {(False, False), (True, False), (True, True)}


def _assessed(y: list[int], n: list[int], tier: int) -> tuple[bool, bool]:
    fields: list[dict[str, int]] = [{"runs": m, "success": s} for s, m in zip(y, n, strict=True)]
    cell = build.cell("depot", "tool_failure", build.outcomes(sum(n), sum(y)))
    rows = build.clusters((0, task, task, sums) for task, sums in enumerate(fields))
    found = build.judged(build.summary([cell], rows=rows))
    own = [row for row in found.criteria if row.tier == tier and row.id in {"r_op", "posterior"}]
    assert len(own) == 2
    bounded_too = [row.bounded is not None and row.bounded.status is Status.MET for row in own]
    return all(row.status is Status.MET for row in own), all(bounded_too)


@pytest.mark.parametrize(("size", "rate", "icc"), [(25, 0.8, 0.1), (11, 0.95, 0.3), (50, 0.6, 0.0)])
def test_clusters_are_beta_binomial(size: int, rate: float, icc: float) -> None:
    a, b = (rate * (1 / icc - 1), (1 - rate) * (1 / icc - 1)) if icc else (0, 0)
    law: Any = stats.betabinom(size, a, b) if icc else stats.binom(size, rate)
    np.testing.assert_allclose(_cumulative(size, rate, icc), law.cdf(np.arange(size)), atol=1e-12)


def test_runs_that_arrive_one_by_one_are_beta_binomial_too() -> None:
    order = stopping.ORDERS[1]
    success = stopping.outcomes(3, 200, order)
    y = np.stack([success[:, order.cluster == task].sum(axis=1) for task in range(40)], axis=1).ravel()
    a, b = 0.8 * 9, 0.2 * 9
    expected = stats.betabinom(25, a, b).pmf(np.arange(26)) * y.size
    common = expected >= 5
    observed = np.bincount(y, minlength=26)
    pooled = np.append(observed[common], observed[~common].sum())
    assert stats.chisquare(pooled, np.append(expected[common], expected[~common].sum())).pvalue > 0.001
