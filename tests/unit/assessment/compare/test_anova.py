"""Two-way analysis of variance against least squares, and Tukey's pairs against scipy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from certkit.assessment.compare.anova import MOST_DOMAINS, anova

Cells = dict[tuple[str, str], list[float]]

UNEVEN: Cells = {
    ("a", "x"): [0.9, 0.8, 1.0],
    ("a", "y"): [0.5, 0.7, 0.65, 0.8],
    ("a", "z"): [0.3, 0.55],
    ("b", "x"): [0.7, 0.75],
    ("b", "y"): [0.6],
    ("b", "z"): [0.4, 0.2, 0.35, 0.5, 0.1],
}
EVEN: Cells = {
    key: [0.1 * (place % 7) + 0.05 * step + 0.2 * (key[0] == "a") for step in range(4)]
    for place, key in enumerate(product("ab", "xyz"))
}


def rss(cells: Cells, columns: list[str]) -> float:
    """The residual sum of squares of a least-squares fit on dummy variables."""
    domains = sorted({domain for _, domain in cells})
    rows, values = [], []
    for (agent, domain), observed in cells.items():
        row = [1.0]
        if "agent" in columns:
            row.append(float(agent == "a"))
        if "domain" in columns:
            row += [float(domain == name) for name in domains[1:]]
        if "both" in columns:
            row += [float(agent == "a" and domain == name) for name in domains[1:]]
        rows += [row] * len(observed)
        values += observed
    design, y = np.array(rows), np.array(values)
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(((y - fitted) ** 2).sum())


@pytest.mark.parametrize("cells", [UNEVEN, EVEN], ids=["uneven", "even"])
def test_sums_of_squares_are_comparisons_of_least_squares_fits(cells: Cells) -> None:
    found = anova(cells)
    full, additive = rss(cells, ["agent", "domain", "both"]), rss(cells, ["agent", "domain"])
    n = sum(map(len, cells.values()))
    assert (found.observations, found.error_df, found.reason) == (n, n - 6, None)
    assert found.error_ss == pytest.approx(full, abs=1e-12)
    expected = {
        "agent": (rss(cells, ["domain"]) - additive, 1),
        "domain": (rss(cells, ["agent"]) - additive, 2),
        "interaction": (additive - full, 2),
    }
    for name, (ss, df) in expected.items():
        effect = getattr(found, name)
        f = (ss / df) / (full / (n - 6))
        assert (effect.ss, effect.f) == (pytest.approx(ss, abs=1e-12), pytest.approx(f, abs=1e-9))
        assert effect.p == pytest.approx(float(stats.f.sf(f, df, n - 6)), abs=1e-9)
        assert (effect.df, effect.eta) == (df, pytest.approx(ss / (ss + full), abs=1e-12))


def test_one_domain_is_the_one_way_analysis() -> None:
    cells = {("a", "x"): [0.9, 0.8, 1.0, 0.4], ("b", "x"): [0.3, 0.5, 0.8, 0.7]}
    found = anova(cells)
    done = stats.f_oneway(*cells.values())
    assert found.agent is not None
    assert found.agent.f == pytest.approx(float(done.statistic), abs=1e-9)
    assert found.agent.p == pytest.approx(float(done.pvalue), abs=1e-9)
    assert (found.domain, found.interaction) == (None, None)
    assert found.reason == "one domain: nothing but the agent can be told apart"


@pytest.mark.parametrize("cells", [UNEVEN, EVEN], ids=["kramer", "tukey"])
def test_pairs_are_scipys(cells: Cells) -> None:
    if cells is UNEVEN:
        # scipy pools the variance over all groups given, one of which may not be a single observation.
        cells = {**cells, ("b", "y"): [0.6, 0.7]}
    found = anova(cells)
    keys = list(cells)
    done = stats.tukey_hsd(*cells.values())
    span = done.confidence_interval(0.95)
    low, high = np.asarray(span.low), np.asarray(span.high)
    assert len(found.pairs) == 15
    for pair in found.pairs:
        i, j = keys.index(pair.first), keys.index(pair.second)
        assert pair.difference == pytest.approx(float(done.statistic[i, j]), abs=1e-12)
        assert pair.p == pytest.approx(float(done.pvalue[i, j]), abs=1e-7)
        assert pair.interval.low == pytest.approx(float(low[i, j]), abs=1e-6)
        assert pair.interval.high == pytest.approx(float(high[i, j]), abs=1e-6)
    assert [pair.p for pair in found.pairs] == sorted(pair.p for pair in found.pairs)


def test_the_order_of_observations_and_cells_changes_nothing() -> None:
    turned = {key: values[::-1] for key, values in reversed(UNEVEN.items())}
    assert anova(turned) == anova(UNEVEN)


def test_without_an_error_there_is_no_f() -> None:
    single = anova({("a", "x"): [0.5], ("b", "x"): [0.4], ("a", "y"): [0.2], ("b", "y"): [0.1]})
    assert (single.agent, single.pairs) == (None, ())
    assert single.reason == "no cell of agent × domain has two clusters"
    alike = anova({("a", "x"): [0.7, 0.7], ("b", "x"): [0.1, 0.1]})
    assert (alike.agent, alike.reason) == (None, "the clusters of each agent and domain are all alike")


def test_many_domains_have_a_table_and_no_pairs() -> None:
    cells = {
        (agent, f"{number:02d}"): [number % 5 / 5, number % 3 / 3, (agent == "a") / 2]
        for agent in "ab"
        for number in range(MOST_DOMAINS + 1)
    }
    found = anova(cells)
    assert found.interaction is not None
    assert (found.pairs, found.reason) == ((), f"more than {MOST_DOMAINS} domains: no comparison of pairs")
