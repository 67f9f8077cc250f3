"""The tests that papers print: what scipy does not have against published values and other ways to them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import gamma, sqrt

import numpy as np
import pytest
from scipy import stats

from certkit.comparison.paper import (
    FEWEST,
    MOST_DOMAINS,
    Moments,
    anova,
    means,
    moments,
    ranks,
    two_proportions,
)

X = [Fraction(value, 10) for value in (4, 7, 7, 10, 0, 4, 10, 10)]
Y = [Fraction(value, 10) for value in (0, 0, 4, 7, 4, 10)]
Cells = dict[tuple[str, str], list[float]]
UNEVEN: Cells = {
    ("a", "x"): [0.9, 0.8, 1.0],
    ("a", "y"): [0.5, 0.7, 0.65, 0.8],
    ("a", "z"): [0.3, 0.55],
    ("b", "x"): [0.7, 0.75],
    ("b", "y"): [0.6, 0.7],
    ("b", "z"): [0.4, 0.2, 0.35, 0.5, 0.1],
}
EVEN: Cells = {
    key: [0.1 * (place % 7) + 0.05 * step + 0.2 * (key[0] == "a") for step in range(4)]
    for place, key in enumerate(product("ab", "xyz"))
}


def summed(values: list[Fraction]) -> Moments:
    return moments(len(values), sum(values, Fraction(0)), sum((v * v for v in values), Fraction(0)))


def test_z_has_a_sign_and_is_none_where_nothing_varies() -> None:
    for s, n, t, m in ((61, 90, 40, 88), (5, 1000, 9, 30), (1, 2, 1, 3)):
        pooled = (s + t) / (n + m)
        z = (s / n - t / m) / sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
        result = two_proportions(s, n, t, m)
        assert result.statistic == pytest.approx(z, abs=1e-9)
        assert result.p == pytest.approx(2 * float(stats.norm.sf(abs(z))), abs=1e-12)
        assert two_proportions(t, m, s, n).statistic == pytest.approx(-z, abs=1e-9)
    for s, t in ((0, 0), (7, 9)):
        assert two_proportions(s, 7, t, 9).p == 1.0


def test_d_is_students_t_without_the_sample_sizes_and_g_takes_its_bias_out() -> None:
    result, one, two = means(summed(X), summed(Y)), [float(v) for v in X], [float(v) for v in Y]
    d = float(stats.ttest_ind(one, two).statistic) * sqrt(1 / 8 + 1 / 6)
    assert result.cohen_d == pytest.approx(d, abs=1e-12)
    assert result.hedges_g == pytest.approx(d * gamma(6) / (sqrt(6) * gamma(5.5)), abs=1e-12)
    done = stats.ttest_ind(one, two, equal_var=False)
    assert result.welch is not None
    assert (result.welch.statistic, result.welch.p) == pytest.approx((done.statistic, done.pvalue), abs=1e-9)


def test_without_variance_there_is_no_t_and_no_d() -> None:
    same = summed([Fraction(1)] * 3)
    for pair in ((same, same), (same, summed([Fraction(1)])), (summed([Fraction(1)]), same)):
        assert means(*pair).welch is None
        assert means(*pair).cohen_d is None
    assert moments(2, Fraction(1), Fraction(1, 2) + Fraction(1, 10**9), resolution=1e-8).variance == 0.0


def closed(cells: Cells) -> tuple[float, float]:
    """The sums of squares of agent and interaction for two agents, in closed form."""
    h, delta = [], []
    for domain in sorted({domain for _, domain in cells}):
        a, b = cells["a", domain], cells["b", domain]
        h.append(len(a) * len(b) / (len(a) + len(b)))
        delta.append(sum(a) / len(a) - sum(b) / len(b))
    shift = sum(x * y for x, y in zip(h, delta, strict=True)) / sum(h)
    inter = sum(x * (y - shift) ** 2 for x, y in zip(h, delta, strict=True))
    return sum(h) * shift**2, inter


@pytest.mark.parametrize("cells", [UNEVEN, EVEN], ids=["uneven", "even"])
def test_sums_of_squares_are_of_type_two(cells: Cells) -> None:
    result = anova(cells)
    n = sum(map(len, cells.values()))
    error = sum(float(np.var(values)) * len(values) for values in cells.values())
    assert (result.observations, result.error_df, result.reason) == (n, n - 6, None)
    assert result.error_ss == pytest.approx(error, abs=1e-12)
    assert result.agent is not None
    assert result.interaction is not None
    agent, interaction = closed(cells)
    assert (result.agent.ss, result.interaction.ss) == pytest.approx((agent, interaction), abs=1e-12)
    f = agent / (error / (n - 6))
    assert result.agent.f == pytest.approx(f)
    assert result.agent.p == pytest.approx(float(stats.f.sf(f, 1, n - 6)), abs=1e-12)
    assert result.agent.eta == pytest.approx(agent / (agent + error))


def test_one_domain_is_the_one_way_analysis() -> None:
    cells = {("a", "x"): [0.9, 0.8, 1.0, 0.4], ("b", "x"): [0.3, 0.5, 0.8, 0.7]}
    result, done = anova(cells), stats.f_oneway(*cells.values())
    assert result.agent is not None
    assert (result.agent.f, result.agent.p) == pytest.approx((done.statistic, done.pvalue), abs=1e-9)
    assert (result.domain, result.interaction) == (None, None)
    assert result.reason == "one domain: nothing but the agent can be told apart"


def test_pairs_are_all_pairs_of_cells_by_p() -> None:
    result, keys = anova(UNEVEN), list(UNEVEN)
    done = stats.tukey_hsd(*UNEVEN.values())
    assert len(result.pairs) == 15
    assert [pair.p for pair in result.pairs] == sorted(pair.p for pair in result.pairs)
    for pair in result.pairs:
        i, j = keys.index(pair.first), keys.index(pair.second)
        assert pair.p == pytest.approx(float(done.pvalue[i, j]), abs=1e-9)
        assert pair.difference == pytest.approx(np.mean(UNEVEN[pair.first]) - np.mean(UNEVEN[pair.second]))


def test_what_is_missing_is_said() -> None:
    single = anova({("a", "x"): [0.5], ("b", "x"): [0.4], ("a", "y"): [0.2], ("b", "y"): [0.1]})
    assert (single.agent, single.pairs) == (None, ())
    assert single.reason == "no cell of agent × domain has two clusters"
    alike = anova({("a", "x"): [0.7, 0.7], ("b", "x"): [0.1, 0.1]})
    assert (alike.agent, alike.reason) == (None, "the clusters of each agent and domain are all alike")
    cells = {
        (agent, f"{number:02d}"): [number % 5 / 5, number % 3 / 3, (agent == "a") / 2]
        for agent in "ab"
        for number in range(MOST_DOMAINS + 1)
    }
    assert anova(cells).pairs == ()
    assert anova(cells).reason == f"more than {MOST_DOMAINS} domains: no comparison of pairs"


def test_orders_of_domains() -> None:
    x, y = ([Fraction(v) for v in side] for side in ((1, 2, 2, 4, 5, 6), (2, 1, 3, 4, 6, 5)))
    rho, tau = ranks(x, y)
    one, two = [1, 2.5, 2.5, 4, 5, 6], [2, 1, 3, 4, 6, 5]
    assert rho.value == pytest.approx(float(np.corrcoef(one, two)[0, 1]))
    # 12 concordant pairs, 2 discordant, 1 tie of x: (12 - 2) / √(14 · 15).
    assert tau.value == pytest.approx(10 / sqrt(14 * 15))
    assert rho.p is not None
    few, _ = ranks(x[: FEWEST - 1], y[: FEWEST - 1])
    assert (few.n, few.p, few.reason) == (4, None, "4 domains are too few to say")
    alike, _ = ranks([Fraction(1)] * 6, y)
    assert (alike.value, alike.reason) == (
        None,
        "an agent does equally well in every domain, which is no order",
    )
