"""Whether two agents find the same domains hard: Spearman's ρ and Kendall's τ-b of their orders, with ties.

Rates are exact fractions, so that equal ones are seen to be equal. Up to `ENUMERATED` domains p comes from
all orders, two-sided by size; beyond, from Student's t for ρ (n - 2 degrees of freedom) and from the normal
distribution with the variance corrected for ties for τ (Kendall 1970).
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import erfc, sqrt
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

ENUMERATED: Final = 8
FEWEST: Final = 5
"""Domains below which no order, however like, can have p < 0.05 (2/4! is 0.083)."""


class Rank(Struct, frozen=True, kw_only=True):
    """A rank correlation of `n` domains; `value` and `p` are None where every domain of an agent is alike."""

    n: int
    value: float | None = None
    p: float | None = None
    method: Literal["exact", "asymptotic"] | None = None
    reason: str | None = None


def spearman(x: Sequence[Fraction], y: Sequence[Fraction]) -> Rank:
    """Return Spearman's ρ, the correlation of the ranks, ties sharing their mean."""
    n = len(x)
    if reason := _undefined(x, y):
        return Rank(n=n, reason=reason)
    one, other = _centred_ranks(x), _centred_ranks(y)
    covariance = int(one @ other)
    rho = covariance / sqrt(int(one @ one) * int(other @ other))
    if n <= ENUMERATED:
        found = np.abs(_orders(n, other) @ one)
        return _exact(n, rho, found, abs(covariance))
    from scipy.special import stdtr  # noqa: PLC0415 - heavy

    rest = (1 - rho) * (1 + rho)
    p = 2 * float(stdtr(n - 2, -abs(rho) * sqrt((n - 2) / rest))) if rest > 0 else 0.0
    return Rank(n=n, value=rho, p=p, method="asymptotic")


def kendall(x: Sequence[Fraction], y: Sequence[Fraction]) -> Rank:
    """Return Kendall's τ-b: concordant less discordant pairs, over what ties leave of all pairs."""
    n = len(x)
    if reason := _undefined(x, y):
        return Rank(n=n, reason=reason)
    first, second = np.triu_indices(n, 1)
    one, other = _centred_ranks(x), _centred_ranks(y)
    signs = np.sign(one[first] - one[second])
    others = np.sign(other[first] - other[second])
    excess = int(signs @ others)
    tau = excess / sqrt(int((signs != 0).sum()) * int((others != 0).sum()))
    if n <= ENUMERATED:
        arranged = _orders(n, other)
        found = np.abs(np.sign(arranged[:, first] - arranged[:, second]) @ signs)
        return _exact(n, tau, found, abs(excess))
    p = erfc(abs(excess) / sqrt(2 * _variance(x, y)))
    return Rank(n=n, value=tau, p=p, method="asymptotic")


def _undefined(x: Sequence[Fraction], y: Sequence[Fraction]) -> str | None:
    if len(x) < 2:  # noqa: PLR2004 - an order needs two
        return "fewer than two domains have no order"
    if len(set(x)) == 1 or len(set(y)) == 1:
        return "an agent does equally well in every domain, which is no order"
    return None


def _exact(n: int, value: float, found: Integers, observed: int) -> Rank:
    reason = f"{n} domains are too few to say" if n < FEWEST else None
    return Rank(
        n=n, value=value, p=int((found >= observed).sum()) / len(found), method="exact", reason=reason
    )


def _orders(n: int, values: Integers) -> Integers:
    arranged: Integers = values[np.array(list(permutations(range(n))))]
    return arranged


def _centred_ranks(values: Sequence[Fraction]) -> Integers:
    """Return mean ranks less their mean, doubled, which are whole numbers."""
    ordered = sorted(values)
    counts = Counter(ordered)
    place = {value: rank for rank, value in reversed(list(enumerate(ordered)))}
    n = len(values)
    return np.array([2 * place[value] + counts[value] - n for value in values], np.int64)


def _variance(x: Sequence[Fraction], y: Sequence[Fraction]) -> float:
    """Return the variance of concordant less discordant pairs of unrelated orders."""
    n = len(x)
    pairs = n * (n - 1)
    ties = [list(Counter(values).values()) for values in (x, y)]
    v0 = pairs * (2 * n + 5)
    vx, vy = (sum(t * (t - 1) * (2 * t + 5) for t in part) for part in ties)
    two = [sum(t * (t - 1) for t in part) for part in ties]
    three = [sum(t * (t - 1) * (t - 2) for t in part) for part in ties]
    return (v0 - vx - vy) / 18 + two[0] * two[1] / (2 * pairs) + three[0] * three[1] / (9 * pairs * (n - 2))
