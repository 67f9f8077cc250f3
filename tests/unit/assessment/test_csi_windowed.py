"""The windowed index against scipy.stats on raw values, its formula, and every reason why there is none."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from certkit.assessment.assessing import assess
from certkit.assessment.metrics.csi import csi_windowed, irs_spread, pei_spread, trend
from certkit.assessment.metrics.series import View
from certkit.bundle.folder import open_bundle
from certkit.summary.summarise import summarise
from certkit.summary.summary import PEI_SCALE, Stretch
from tests.support import build, clustered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from certkit.assessment.metrics.metric import Metric
    from certkit.summary.summary import Window
    from tests.support.strategies import Run


def uniform(seed: int, count: int) -> list[float]:
    return [float(word) / 2**64 for word in np.random.PCG64(seed).random_raw(count).tolist()]


def stretch(pei: list[float], **fields: int) -> Stretch:
    """A window with these PEI values, to 2^-30."""
    fixed = [round(value * PEI_SCALE) for value in pei]
    known: dict[str, int] = {
        "runs": len(pei),
        "failures": 0,
        "pei_n": len(pei),
        "pei_fixed": sum(fixed),
        "pei_squares": sum(value * value for value in fixed),
        "irs_yes": 20,
        "irs_no": 0,
        "irs_silent": 0,
        "irs_incomplete": 0,
        "domains_missing": 0,
    }
    return Stretch(**(known | fields))


def scattered(levels: list[float], size: int, seed: int = 1) -> list[list[float]]:
    values = iter(uniform(seed, size * len(levels)))
    return [[0.2 * next(values) + level for _ in range(size)] for level in levels]


STEADY, FALLING = [0.6] * 10, [0.8 - 0.05 * i for i in range(10)]


@pytest.mark.parametrize("levels", [STEADY, FALLING, [*STEADY[:9], 0.64]])
def test_the_test_of_pei_is_the_analysis_of_variance(levels: list[float]) -> None:
    windows = scattered(levels, 50)
    found = pei_spread([stretch(window) for window in windows])
    assert found.p == pytest.approx(stats.f_oneway(*windows).pvalue, rel=1e-6)


def test_windows_of_unequal_size_are_weighed_by_their_runs() -> None:
    windows = [window[: 30 + 2 * i] for i, window in enumerate(scattered(FALLING, 60))]
    found = pei_spread([stretch(window) for window in windows])
    assert found.p == pytest.approx(stats.f_oneway(*windows).pvalue, rel=1e-6)


def test_the_spread_of_pei_is_what_scatter_inside_the_windows_leaves() -> None:
    windows = scattered(FALLING, 50)
    means = [np.mean(window) for window in windows]
    inside = [np.var(window, ddof=1) / 50 for window in windows]
    wanted = sqrt(np.var(means, ddof=1) - np.mean(inside))
    assert pei_spread([stretch(window) for window in windows]).sigma == pytest.approx(wanted, rel=1e-6)


def test_steady_pei_has_no_spread_although_the_means_differ() -> None:
    windows = scattered(STEADY, 50, seed=3)
    assert len({sum(window) for window in windows}) == 10
    found = pei_spread([stretch(window) for window in windows])
    assert found.p > 0.05
    assert found.sigma == 0.0


def test_windows_without_scatter_differ_or_are_alike() -> None:
    alike = pei_spread([stretch([0.5] * 50)] * 10)
    assert (alike.sigma, alike.p) == (0.0, 1.0)
    apart = pei_spread([stretch([0.5] * 50)] * 5 + [stretch([0.75] * 50)] * 5)
    assert apart.p == 0.0
    assert apart.sigma == pytest.approx(np.std([0.5] * 5 + [0.75] * 5, ddof=1), rel=1e-12)


SHARES = [(50, 60), (40, 60), (55, 60), (30, 61), (60, 60), (20, 40), (33, 44), (50, 50), (10, 20), (45, 60)]


def test_the_test_of_intentionality_is_chi_square_with_nine_degrees_of_freedom() -> None:
    table = [[yes for yes, _ in SHARES], [m - yes for yes, m in SHARES]]
    wanted = stats.chi2_contingency(table, correction=False)
    assert wanted.dof == 9
    assert irs_spread(SHARES).p == pytest.approx(wanted.pvalue, rel=1e-9)


def test_the_spread_of_intentionality_takes_runs_as_0_and_1() -> None:
    raw = [[1.0] * yes + [0.0] * (m - yes) for yes, m in SHARES]
    inside = [np.var(window, ddof=1) / len(window) for window in raw]
    wanted = sqrt(np.var([np.mean(window) for window in raw], ddof=1) - np.mean(inside))
    assert irs_spread(SHARES).sigma == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("shares", [[(0, 9)] * 10, [(9, 9)] * 10, [(8, 9), (7, 9)] * 5])
def test_alike_intentionality_has_no_spread(shares: list[tuple[int, int]]) -> None:
    assert irs_spread(shares).sigma == 0.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rise", [-0.3, 0.0, 0.1, 0.4])
def test_the_trend_is_the_one_sided_test_of_the_slope(seed: int, rise: float) -> None:
    failed = [float(x < 0.3 + rise * i / 600) for i, x in enumerate(uniform(seed, 600))]
    moment = sum(i for i, value in enumerate(failed) if value)
    slope, p = trend(600, int(sum(failed)), moment)
    wanted = stats.linregress(np.arange(600), failed, alternative="greater")
    assert slope == pytest.approx(wanted.slope, rel=1e-9, abs=1e-15)
    assert p == pytest.approx(wanted.pvalue, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("failures", [0, 600])
def test_runs_that_all_end_alike_have_no_trend(failures: int) -> None:
    assert trend(600, failures, failures * 599 // 2) == (0.0, 1.0)


def window(stretches: list[Stretch], *, failed: tuple[int, ...] = ()) -> Window:
    runs = sum(part.runs for part in stretches)
    return type(build.window())(
        order="sequence",
        reason=None,
        runs=runs,
        stretches=tuple(stretches),
        failures=len(failed),
        failure_moment=sum(failed),
    )


def index(ordered: Window, **protocol: Any) -> Metric:
    facts = build.facts(**protocol)
    return csi_windowed(View(build.strong(ordered), facts.manifest, {}))


def test_a_steady_agent_has_the_whole_index() -> None:
    found = index(window([stretch([0.5] * 50)] * 10))
    assert (found.state, found.value, found.n) == ("measured", 1.0, 500)


def test_the_index_is_the_product_of_its_three_terms() -> None:
    windows = scattered(FALLING, 50)
    parts = [
        stretch(values, irs_yes=yes, irs_no=m - yes) for values, (yes, m) in zip(windows, SHARES, strict=True)
    ]
    failed = tuple(range(400, 500, 2))
    found = index(window(parts, failed=failed))
    line = stats.linregress(np.arange(500), np.isin(np.arange(500), failed), alternative="greater")
    sigmas = pei_spread(parts).sigma, irs_spread(SHARES).sigma
    wanted = np.prod([1 - min(1, 2 * sigma / 0.5) for sigma in sigmas]) * (1 - min(1, 499 * line.slope))
    assert found.value == pytest.approx(wanted, rel=1e-9)
    assert 0 < wanted < 0.7


def test_silent_recoveries_count_only_where_memory_was_observable() -> None:
    parts = [stretch([0.5] * 50, irs_yes=20, irs_silent=20 * (i % 2)) for i in range(10)]
    seen, unseen = (index(window(parts), memory_observable=value) for value in (True, False))
    assert (seen.state, unseen.state, unseen.value) == ("measured", "partial", 1.0)
    assert seen.value is not None
    assert seen.value < 0.5
    assert unseen.coverage == Fraction(200, 300)
    assert unseen.reason == "100 recoveries have unknown intentionality"


UNMEASURED: dict[str, tuple[Callable[[], Window], str]] = {
    "no order": (lambda: build.summary([]).window, "no run has a place in time"),
    "499 runs": (
        lambda: window([stretch([0.5] * 49)] + [stretch([0.5] * 50)] * 9),
        "499 ordered runs, 500 needed",
    ),
    "four recoveries": (
        lambda: window([stretch([0.5] * 50)] * 9 + [stretch([0.5] * 50, irs_yes=3, irs_no=1)]),
        "4 recoveries of known intentionality in one window, 5 needed in each",
    ),
    "one PEI": (
        lambda: window([stretch([0.5] * 50)] * 9 + [stretch([0.5], runs=50)]),
        "the runs of a window carry no PEI",
    ),
}


@pytest.mark.parametrize("name", UNMEASURED)
def test_what_cannot_be_measured_says_why(name: str) -> None:
    ordered, reason = UNMEASURED[name]
    found = index(ordered())
    assert (found.state, found.value, found.reason) == ("unmeasured", None, reason)


def test_missing_pei_makes_the_index_partial() -> None:
    found = index(window([stretch([0.5] * 50)] * 9 + [stretch([0.5] * 49, runs=50)]))
    assert (found.state, found.coverage) == ("partial", Fraction(499, 500))
    assert found.reason == "1 of 500 ordered runs carry no PEI"


# --- through bundles ---------------------------------------------------------------------------------

DESIGN = clustered.Design(seed=4, tasks=60, runs=19, domains=2, family=0, success=0.9, guided=0.9)


def measured(tmp_path: Path, records: list[Run]) -> dict[str, Any]:
    bundle = open_bundle(clustered.bundle(records).write(tmp_path / "bundle"))
    document = assess(summarise(bundle), bundle.facts, build.profile("hb-eval-2026-bounded")).to_dict()
    found: dict[str, Any] = document["metrics"]["csi_windowed"]
    return found | {
        "rows": {row["tier"]: row["status"] for row in document["criteria"] if row["id"] == "csi_windowed"}
    }


def test_a_steady_agent_attains_every_tier_through_a_bundle(tmp_path: Path) -> None:
    records = clustered.made(DESIGN)
    assert len(records) > 500
    found = measured(tmp_path, records)
    assert found["state"] == "measured"
    assert found["rows"] == {1: "met", 2: "met", 3: "met"}


def test_an_agent_that_gets_worse_loses_the_row(tmp_path: Path) -> None:
    half = (
        clustered.made(DESIGN),
        clustered.made(
            clustered.Design(seed=5, tasks=60, runs=19, domains=2, family=0, success=0.5, guided=0.9)
        ),
    )
    records = [
        run | {"run_id": f"{part}-{run['run_id']}", "sequence": run["sequence"] + 10_000 * part}
        for part, runs in enumerate(half)
        for run in runs
    ]
    found = measured(tmp_path, records)
    ordered = sorted(records, key=lambda run: run["sequence"])
    failed = [float(run["outcome"] != "success") for run in ordered]
    wanted = stats.linregress(np.arange(len(failed)), failed, alternative="greater")
    assert found["slope"] == pytest.approx(wanted.slope, rel=1e-9)
    assert found["p_slope"] == pytest.approx(wanted.pvalue, rel=1e-9, abs=1e-15)
    assert set(found["rows"].values()) == {"not_met"}


def test_runs_without_order_are_not_tested(tmp_path: Path) -> None:
    records = [
        {name: value for name, value in run.items() if name != "sequence"} for run in clustered.made(DESIGN)
    ]
    found = measured(tmp_path, records)
    assert found["state"] == "unmeasured"
    assert set(found["rows"].values()) == {"not_tested"}
