"""The page "Where the papers contradict themselves": each formula gives what it says, not what is printed."""

from __future__ import annotations

import re
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import fmean, pstdev, stdev
from typing import Final

import pytest
from scipy import stats

PAGE: Final = Path(__file__).parents[1] / "docs" / "explanation" / "where-the-papers-contradict-themselves.md"
ROWS: Final = re.findall(
    r"^\| (\[[^|]+) \| ([^|]+) \| `([^`|]+)` \| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
)


def posterior(s: int, n: int, tau: float) -> float:
    return float(stats.beta.sf(tau, 1 + s, 1 + n - s))


def wilson(p: float, n: int) -> float:
    interval = stats.binomtest(round(p * n), n).proportion_ci(0.95, method="wilson")
    return float(100 * (interval.high - interval.low) / 2)


def mean(*values: float, weights: tuple[float, ...] | None = None) -> float:
    return fmean(values, weights)


def sigma(*values: float) -> float:
    return stdev(values)


def spread(*values: float) -> float:
    return pstdev(values)


def welch(mean_1: float, sd_1: float, mean_2: float, sd_2: float, n: int) -> float:
    return float(stats.ttest_ind_from_stats(mean_1, sd_1, n, mean_2, sd_2, n, equal_var=False).statistic)


def se(p: float, n: int) -> float:
    return 100 * sqrt(p * (1 - p) / n)


def nearest(p: float, n: int) -> float:
    """Return the share of n that is nearest to p among those that whole numbers give."""
    return min((s / n for s in range(n + 1)), key=lambda share: abs(share - p))


def rising(p: float, runs: int = 20) -> float:
    """Return the probability that the least-squares slope of independent failures is positive."""
    ways = {0: 1.0}  # the slope has the sign of the sum of 2i − (runs − 1) over the runs i that fail
    for i, _ in enumerate(range(runs)):
        step: dict[int, float] = {}
        for (total, weight), failed in product(ways.items(), (False, True)):
            after = total + (2 * i - runs + 1) * failed
            step[after] = step.get(after, 0.0) + weight * (p if failed else 1 - p)
        ways = step
    return sum(weight for total, weight in ways.items() if total > 0)


FUNCTIONS: Final = {
    function.__name__: function
    for function in (posterior, wilson, mean, sigma, spread, welch, se, nearest, rising)
}


def as_printed(value: float, text: str) -> str:
    """Return a value with the digits and the unit of a printed number."""
    number, _, unit = text.partition(" ")
    form = "e" if "e" in number else "f"
    decimals = len(number.partition("e")[0].partition(".")[2])
    return f"{value:.{decimals}{form}} {unit}".strip()


@pytest.mark.parametrize(("place", "printed", "formula", "gives"), ROWS, ids=[row[0] for row in ROWS])
def test_a_formula_gives_what_the_page_says_and_not_what_is_printed(
    place: str, printed: str, formula: str, gives: str
) -> None:
    value = eval(formula, {"__builtins__": {}} | FUNCTIONS)  # noqa: S307 - our own page
    assert as_printed(value, gives) == gives, place
    if printed != "–":
        assert as_printed(value, printed) != printed, place


def test_every_row_with_a_formula_is_computed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = re.findall(r"^\| place \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert sum(table.count("\n") for table in tables) == len(ROWS) > 40


def test_every_formula_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    used = {name for _, _, formula, _ in ROWS for name in re.findall(r"([a-z]\w*)\(", formula)}
    assert used == set(FUNCTIONS)
    assert [name for name in used if f"`{name}(" not in text.partition("## Posteriors")[0]] == []
