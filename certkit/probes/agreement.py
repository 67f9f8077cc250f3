"""How far raters agree: Cohen's kappa and its weighted forms, and ICC(2,1).

Scores are integers, values exact fractions, so that the order of ratings changes nothing.

- J. Cohen, Educ. Psychol. Meas. 20 (1960) 37; weighted: Psychol. Bull. 70 (1968) 213.
- P. E. Shrout, J. L. Fleiss, Psychol. Bull. 86 (1979) 420: ICC(2,1), two-way random effects, absolute
agreement, one
  rater.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Weights = Literal["none", "linear", "quadratic"]


def kappa(table: Sequence[Sequence[int]], scores: Sequence[int], weights: Weights = "none") -> float | None:
    """Return the kappa of two raters, None where no item was scored or agreement by chance is certain.

    Args:
        table: ``table[i][j]`` items got scores[i] from one rater and scores[j] from the other.
        scores: in the order of the table; weights depend on their distance.
        weights: 1 for equal scores only, 1 − distance/range, or 1 − (distance/range)².
    """
    places = range(len(scores))
    n = sum(map(sum, table))
    if n == 0:
        return None
    span = max(1, max(scores) - min(scores))

    def weight(i: int, j: int) -> Fraction:
        distance = Fraction(abs(scores[i] - scores[j]), span)
        if weights == "none":
            return Fraction(int(distance == 0))
        return 1 - (distance if weights == "linear" else distance * distance)

    rows = [sum(row) for row in table]
    columns = [sum(column) for column in zip(*table, strict=True)]
    observed = sum((weight(i, j) * table[i][j] for i in places for j in places), Fraction(0)) / n
    chance = sum((weight(i, j) * rows[i] * columns[j] for i in places for j in places), Fraction(0)) / (n * n)
    return None if chance == 1 else float((observed - chance) / (1 - chance))


def contingency(x: Sequence[int], y: Sequence[int], scores: Sequence[int]) -> list[list[int]]:
    """Return how often each pair of `scores` occurs."""
    place = {score: number for number, score in enumerate(scores)}
    table = [[0] * len(scores) for _ in scores]
    for i, j in zip(x, y, strict=True):
        table[place[i]][place[j]] += 1
    return table


def icc(rows: Sequence[Sequence[int]]) -> float | None:
    """Return ICC(2,1) of a complete table of items and raters, None where fewer than two of either vary."""
    n, k = len(rows), len(rows[0]) if rows else 0
    if n < 2 or k < 2:  # noqa: PLR2004 - a variance needs two
        return None
    by_item = [sum(row) for row in rows]
    by_rater = [sum(column) for column in zip(*rows, strict=True)]
    square = sum(by_item) ** 2
    # Sums of squares, n·k times each, as integers.
    of_items = n * sum(total * total for total in by_item) - square
    of_raters = k * sum(total * total for total in by_rater) - square
    rest = n * k * sum(x * x for row in rows for x in row) - square - of_items - of_raters
    msr, msc = Fraction(of_items, n - 1), Fraction(of_raters, k - 1)
    mse = Fraction(rest, (n - 1) * (k - 1))
    total = msr + (k - 1) * mse + k * (msc - mse) / n
    return None if total == 0 else float((msr - mse) / total)
