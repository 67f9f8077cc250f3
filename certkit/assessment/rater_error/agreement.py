"""How far raters agree: Cohen's, weighted and Fleiss' κ, ICC(2,1), Pearson's r, mean absolute error.

Scores are integers (millionths), sums are exact, and one division is made at the end, so that the order of
ratings changes nothing. Every estimate carries its number of items and raters, its method and its source;
where it does not exist it says why.

- J. Cohen, Educ. Psychol. Meas. 20 (1960) 37; weighted: Psychol. Bull. 70 (1968) 213.
- J. L. Fleiss, J. Cohen, B. S. Everitt, Psychol. Bull. 72 (1969) 323: the standard error of both.
- J. L. Fleiss, Psychol. Bull. 76 (1971) 378: many raters. Its standard error over items: K. L. Gwet, Br. J.
  Math. Stat. Psychol. 61 (2008) 29.
- P. E. Shrout, J. L. Fleiss, Psychol. Bull. 86 (1979) 420; K. O. McGraw, S. P. Wong, Psychol. Methods 1
  (1996) 30: ICC(2,1), two-way random effects, absolute agreement, one rater.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import atanh, fsum, isfinite, isqrt, sqrt, tanh
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, structs

from certkit.assessment.statistics.estimators import LEVEL, Interval, Z, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_CATEGORIES: Final = 20
"""Distinct scores beyond which they are measurements and not categories."""
_TOO_MANY: Final = f"more than {MAX_CATEGORIES} distinct scores: no categories"
_NO_ITEM: Final = "no item scored by both"
_NO_CHANCE: Final = "one and the same score throughout: agreement by chance is certain"
_ZERO: Final = 1e-24
"""A variance below it is 0 but for rounding."""
_FISHER_LEAST: Final = 4
"""Items below which Fisher's transformation gives no interval: its variance is 1/(n - 3)."""

Weights = Literal["none", "linear", "quadratic"]
_KAPPA: Final[dict[Weights, tuple[str, str]]] = {
    "none": ("Cohen's κ", "Cohen 1960"),
    "linear": ("weighted κ, weights 1 - |difference|/range", "Cohen 1968; Cicchetti & Allison 1971"),
    "quadratic": ("weighted κ, weights 1 - (difference/range)²", "Cohen 1968; Fleiss & Cohen 1973"),
}


class Estimate(Struct, frozen=True, kw_only=True):
    """A measure of agreement over `items` scored by `raters`.

    `value` is null with a `reason` where it does not exist; `se` and `interval` where they do not.
    """

    value: float | None
    items: int
    raters: int
    se: float | None = None
    interval: Interval | None = None
    method: str
    source: str
    reason: str | None = None


def kappa(table: Sequence[Sequence[int]], scores: Sequence[int], weights: Weights = "none") -> Estimate:
    """Return κ of two raters from their contingency table, with the standard error of Fleiss et al. 1969.

    table[i][j] counts the items to which one rater gave scores[i] and the other scores[j]; `scores` ascend.
    Weights go by the distance of the scores, so that a score that nobody gave changes nothing. Where the
    standard error is 0 for lack of disagreement or of variation, the interval is Wilson's for the agreement.
    """
    n = sum(map(sum, table))
    bare = _kappa(n, weights)
    if n == 0:
        return structs.replace(bare, reason=_NO_ITEM)
    weight, full = _weights(scores, weights)
    cells = list(product(range(len(scores)), repeat=2))
    rows = [sum(row) for row in table]
    columns: list[int] = [sum(column) for column in zip(*table, strict=True)]
    observed = Fraction(sum(weight[i][j] * table[i][j] for i, j in cells), full * n)
    chance = Fraction(sum(weight[i][j] * rows[i] * columns[j] for i, j in cells), full * n * n)
    if chance == 1:
        return structs.replace(bare, reason=_NO_CHANCE)
    value = (observed - chance) / (1 - chance)
    po, pe = float(observed), float(chance)
    mean_row = [
        sum(w * c for w, c in zip(weight[i], columns, strict=True)) / (full * n) for i in range(len(rows))
    ]
    mean_column = [
        sum(weight[i][j] * rows[i] for i in range(len(rows))) / (full * n) for j in range(len(rows))
    ]

    def term(i: int, j: int) -> float:
        return weight[i][j] / full * (1 - pe) - (mean_row[i] + mean_column[j]) * (1 - po)

    centre = po * pe - 2 * pe + po
    variance = fsum(table[i][j] * (term(i, j) - centre) ** 2 for i, j in cells if table[i][j]) / (n * n)
    se = sqrt(variance) / (1 - pe) ** 2 if variance > _ZERO else 0.0
    interval = _around(value, se, Z, observed=observed, chance=chance, n=n, method="fleiss-cohen-everitt")
    return structs.replace(bare, value=float(value), se=se or None, interval=interval)


def _kappa(n: int, weights: Weights, reason: str | None = None) -> Estimate:
    """Return a κ over `n` items without its value."""
    method, source = _KAPPA[weights]
    return Estimate(value=None, items=n, raters=2, method=method, source=source, reason=reason)


def _weights(scores: Sequence[int], weights: Weights) -> tuple[list[list[int]], int]:
    """Return the weight of each pair of scores as a numerator, and the common denominator."""
    span = scores[-1] - scores[0]
    measure: dict[str, tuple[Callable[[int], int], int]] = {
        "none": (lambda distance: int(distance == 0), 1),
        "linear": (lambda distance: span - distance, span),
        "quadratic": (lambda distance: span * span - distance * distance, span * span),
    }
    of, full = measure[weights]
    return [[of(abs(a - b)) if full else 1 for b in scores] for a in scores], full or 1


def _around(
    value: Fraction,
    se: float,
    quantile: float,
    *,
    observed: Fraction,
    chance: Fraction,
    n: int,
    method: str,
) -> Interval:
    """Return value ± quantile · se within -1 to 1, or Wilson's interval where the standard error is 0.

    The latter is that of the agreement `observed` in n items, chance agreement held at what it is.
    """
    if se:
        low, high = float(value) - quantile * se, float(value) + quantile * se
        return Interval(low=max(-1.0, low), high=min(1.0, high), method=method)
    agreed = observed * n
    ends = wilson(int(agreed), n).low, wilson(-int(-agreed // 1), n).high
    low, high = ((end - float(chance)) / float(1 - chance) for end in ends)
    # The ends are rounded one by one: perfect agreement would else end a bit in the last place below 1.
    low, high = min(low, float(value)), max(high, float(value))
    return Interval(low=max(-1.0, low), high=min(1.0, high), method="wilson on agreement")


def fleiss(counts: Sequence[Sequence[int]]) -> Estimate:
    """Return Fleiss' κ; counts[i][c] ratings put item i into category c, equally many for every item.

    The standard error is taken over the items and holds for any κ, not only for none; the interval has n - 1
    degrees of freedom.
    """
    n = len(counts)
    sizes = {sum(row) for row in counts}
    m = min(sizes, default=0)
    bare = Estimate(value=None, items=n, raters=m, method="Fleiss' κ", source="Fleiss 1971; Gwet 2008")
    if n == 0:
        return structs.replace(bare, reason="no item")
    if len(sizes) > 1:
        return structs.replace(bare, reason="the items have different numbers of ratings")
    if m < 2:  # noqa: PLR2004 - agreement needs two
        return structs.replace(bare, reason="one rating for each item")
    totals = [sum(column) for column in zip(*counts, strict=True)]
    pairs = [sum(c * (c - 1) for c in row) for row in counts]
    observed = Fraction(sum(pairs), n * m * (m - 1))
    chance = Fraction(sum(total * total for total in totals), (n * m) ** 2)
    if chance == 1:
        return structs.replace(bare, reason=_NO_CHANCE)
    value = (observed - chance) / (1 - chance)
    if n == 1:
        return structs.replace(bare, value=float(value), reason="no interval: one item")
    po, pe = float(observed), float(chance)
    by_chance = [sum(t * c for t, c in zip(totals, row, strict=True)) / (n * m * m) for row in counts]
    # (κ_i - κ)(1 - chance) of Gwet's linearisation, whose mean is 0.
    lean = [
        (pair / (m * (m - 1)) - po) - 2 * (1 - float(value)) * (own - pe)
        for pair, own in zip(pairs, by_chance, strict=True)
    ]
    variance = fsum(item * item for item in lean) / (n * (n - 1))
    se = sqrt(variance) / (1 - pe) if variance > _ZERO else 0.0
    interval = _around(
        value, se, _student(n - 1), observed=observed, chance=chance, n=n, method="student over items"
    )
    return structs.replace(bare, value=float(value), se=se or None, interval=interval)


def _student(df: int) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415 - heavy

    return float(stdtrit(df, (1 + LEVEL) / 2))


def icc(rows: Sequence[Sequence[int]]) -> Estimate:
    """Return ICC(2,1) of a complete table of items × raters, with the F interval of Shrout & Fleiss 1979."""
    n, k = len(rows), len(rows[0]) if rows else 0
    bare = Estimate(
        value=None,
        items=n,
        raters=k,
        method="ICC(2,1), two-way random, absolute agreement",
        source="Shrout & Fleiss 1979; McGraw & Wong 1996",
    )
    if n < 2 or k < 2:  # noqa: PLR2004 - a variance needs two
        few = "fewer than two raters" if k == 1 else "fewer than two items scored by all raters"
        return structs.replace(bare, reason=few)
    by_item = [sum(row) for row in rows]
    by_rater = [sum(column) for column in zip(*rows, strict=True)]
    square = sum(by_item) ** 2
    # Sums of squares, n·k times each, as integers.
    of_items = n * sum(total * total for total in by_item) - square
    of_raters = k * sum(total * total for total in by_rater) - square
    rest = n * k * sum(x * x for row in rows for x in row) - square - of_items - of_raters
    msr = Fraction(of_items, n - 1)
    msc = Fraction(of_raters, k - 1)
    mse = Fraction(rest, (n - 1) * (k - 1))
    whole = msr + (k - 1) * mse + k * (msc - mse) / n
    if whole == 0:
        return structs.replace(bare, reason="neither the items nor the raters differ")
    value = float((msr - mse) / whole)
    if not (msr and mse):
        what = "the raters differ by nothing but constants" if msr else "the items do not differ"
        return structs.replace(bare, value=value, reason=f"no interval: {what}")
    return structs.replace(bare, value=value, interval=_icc_interval(value, msr / mse, msc / mse, n, k))


def _icc_interval(value: float, f_items: Fraction, f_raters: Fraction, n: int, k: int) -> Interval:
    """Return the interval of ICC(2,1) from its two F ratios; Satterthwaite degrees of freedom."""
    from scipy.special import fdtri  # noqa: PLC0415 - heavy

    fr, fc = float(f_items), float(f_raters)
    a, b = k * value * fc, n * (1 + (k - 1) * value) - k * value
    v = (n - 1) * (k - 1) * (a + b) ** 2 / ((n - 1) * a * a + b * b)
    upper = (1 + LEVEL) / 2
    lower_f, upper_f = float(fdtri(n - 1, v, upper)), float(fdtri(v, n - 1, upper))
    shift = k * fc + k * n - k - n
    low = n * (fr - lower_f) / (lower_f * shift + n * fr)
    high = n * (upper_f * fr - 1) / (shift + n * upper_f * fr)
    # Degrees of freedom near 0 leave an end open.
    low, high = (low if isfinite(low) else -1.0), (high if isfinite(high) else 1.0)
    return Interval(low=max(-1.0, low), high=min(1.0, high), method="shrout-fleiss")


class Sums(Struct, frozen=True, kw_only=True):
    """n pairs of scores: Σx, Σy, Σx², Σy², Σxy and Σ|x - y|, in units and squared units of 1/`scale`."""

    n: int
    x: int
    y: int
    xx: int
    yy: int
    xy: int
    apart: int
    scale: int


def pearson(sums: Sums) -> Estimate:
    """Return Pearson's r with Fisher's interval."""
    vx, vy = (sums.n * square - total**2 for square, total in ((sums.xx, sums.x), (sums.yy, sums.y)))
    covariance = sums.n * sums.xy - sums.x * sums.y
    bare = Estimate(
        value=None, items=sums.n, raters=2, method="Pearson's r", source="Pearson 1895; Fisher 1921"
    )
    if sums.n == 0:
        return structs.replace(bare, reason=_NO_ITEM)
    if not (vx and vy):
        return structs.replace(bare, reason="one gives the same score throughout")
    if covariance**2 >= vx * vy:
        reason = "no interval: the scores lie on one line"
        return structs.replace(bare, value=1.0 if covariance > 0 else -1.0, reason=reason)
    # The root is good to 64 bits, whatever the size of the integers.
    value = float(Fraction(covariance << 64, isqrt(vx * vy << 128)))
    if sums.n < _FISHER_LEAST:
        reason = f"no interval: fewer than {_FISHER_LEAST} items"
        return structs.replace(bare, value=value, reason=reason)
    half = Z / sqrt(sums.n - 3)
    interval = Interval(low=tanh(atanh(value) - half), high=tanh(atanh(value) + half), method="fisher")
    return structs.replace(bare, value=value, interval=interval)


def mae(sums: Sums) -> Estimate:
    """Return the mean absolute difference of two scores."""
    value = float(Fraction(sums.apart, sums.n * sums.scale)) if sums.n else None
    return Estimate(
        value=value,
        items=sums.n,
        raters=2,
        method="mean absolute difference",
        source="definition",
        reason=None if sums.n else _NO_ITEM,
    )


class Agreement(Struct, frozen=True, kw_only=True):
    """Two raters (or one and the reference) over the items that both scored.

    `success` is κ of the scores read as success and failure, None of a variable that is no outcome; the
    others take the distinct scores as categories in their order.
    """

    a: str
    b: str
    success: Estimate | None
    kappa: Estimate
    linear: Estimate
    quadratic: Estimate
    pearson: Estimate
    mae: Estimate


def compare(
    a: str, b: str, x: Sequence[int], y: Sequence[int], *, passes: int | None, scale: int
) -> Agreement:
    """Return how far scores `x` of a and `y` of b agree, in units of 1/`scale`; success at `passes`."""
    sums = Sums(
        n=len(x),
        x=sum(x),
        y=sum(y),
        xx=sum(i * i for i in x),
        yy=sum(j * j for j in y),
        xy=sum(i * j for i, j in zip(x, y, strict=True)),
        apart=sum(abs(i - j) for i, j in zip(x, y, strict=True)),
        scale=scale,
    )
    success = None
    if passes is not None:
        success = kappa(contingency([i >= passes for i in x], [j >= passes for j in y], [0, 1]), [0, 1])
    scores = sorted({*x, *y})
    if len(scores) <= MAX_CATEGORIES:
        table = contingency(x, y, scores)
        none, linear, quadratic = (kappa(table, scores, weights) for weights in _KAPPA)
    else:
        none, linear, quadratic = (_kappa(len(x), weights, _TOO_MANY) for weights in _KAPPA)
    return Agreement(
        a=a,
        b=b,
        success=success,
        kappa=none,
        linear=linear,
        quadratic=quadratic,
        pearson=pearson(sums),
        mae=mae(sums),
    )


def contingency(x: Sequence[int], y: Sequence[int], scores: Sequence[int]) -> list[list[int]]:
    """Return how often each pair of `scores` occurs."""
    place = {score: number for number, score in enumerate(scores)}
    table = [[0] * len(scores) for _ in scores]
    for i, j in zip(x, y, strict=True):
        table[place[i]][place[j]] += 1
    return table
