"""The difference of one mean between two sides, with its cluster-robust standard error: numbers in and out.

For a mean over n runs in k clusters (n_c runs, y_c their sum) the variance is

    v = k/(k − 1) · Σ(y_c − p̂·n_c)² / n² = k/(k − 1) · (Σy_c² − 2p̂·Σy_c·n_c + p̂²·Σn_c²) / n²

computed in integers up to the last division. One cluster gives no variance at all. Clusters that all agree
give 0, which says that the variance is small and not that it is nothing; then the k clusters count as k
runs of a Beta posterior with a uniform prior (Gamma for counts), whatever number of runs they hold: a
hundred repeats of one task are one observation of how tasks differ.

A side that did well by luck also seems to vary little. So what is said of the largest loss that is still
possible takes each variance at the posterior mean of its k clusters, not at the estimate itself; where one
side has few clusters, a loss would else be excluded wrongly twice as often as stated.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from certkit.assessment.metrics.catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from certkit.assessment.reliability import Moments

    Floats = NDArray[np.floating[Any]]

LEVEL: Final = 0.95
"""One-sided confidence of `worst` and `most`."""

_NODES: Final = 128
_TAIL: Final = 1e-16


class Mean(Struct, frozen=True, kw_only=True):
    """A mean in its metric's unit over `n` runs in `k` clusters.

    `variance` is None where it cannot be told. `freedom` are its degrees of freedom; `reweighted` tells that
    the mean is not that of the runs as they came.
    """

    metric: str
    value: Fraction
    n: int
    k: int
    variance: float | None
    freedom: float
    reweighted: bool = False


class Test(Struct, frozen=True, kw_only=True):
    """What a difference shows: its standard error and degrees of freedom, and what follows.

    `p_loss` is the one-sided probability against no loss, `p_gain` that against no gain. `worst` is the loss
    that is not exceeded with 95 % confidence, `most` the same for the difference in either direction.
    """

    se: float
    freedom: float
    p_loss: float
    p_gain: float
    worst: float
    most: float


class Difference(Struct, frozen=True, kw_only=True):
    """Old against new. `loss` is the change in the bad direction, negative where the new side is better.

    `test` is None where one side has no variance.
    """

    loss: Fraction
    test: Test | None = None


def spread(row: Moments) -> int:
    """Return n² · Σ(y_c − p̂·n_c)², which is never negative for integers that come from clusters."""
    return row.yy * row.n * row.n - 2 * row.y * row.n * row.yn + row.y * row.y * row.nn


def variance(row: Moments) -> float | None:
    """Return the cluster-robust variance of a row's mean, None for one cluster."""
    if row.k < 2:  # noqa: PLR2004 - a variance takes two
        return None
    return row.k * spread(row) / ((row.k - 1) * row.n**4 * row.scale**2)


def plain(row: Moments) -> Mean:
    """Return the mean of a row as its runs came."""
    return Mean(
        metric=row.metric,
        value=Fraction(row.y, row.n * row.scale),
        n=row.n,
        k=row.k,
        variance=variance(row),
        freedom=row.k - 1,
    )


def under_mix(weights: Sequence[int], cells: Sequence[Moments], whole: Moments, beyond: int) -> Mean:
    """Return the mean of `whole` under another mix: Σ w_g · (mean of cell g), w_g ∝ `weights`.

    `cells` are those of `whole` that have a weight; `beyond` counts the clusters of its cells that have none.
    With equal shares this is `plain`. Else the variance is the worse of the plain one and

        D + r · (S² − D),    D = Σ w_g²·v_g,    S = Σ w_g·√v_g

    D is right where no cluster spans two cells, S² bounds what clusters that do can add (Cauchy–Schwarz), and
    r is the common correlation of cells that makes the same formula give the plain variance under the mix
    that was drawn. A cell of one cluster has the largest variance that its range allows.
    """
    total, drawn = sum(weights), whole.n
    usual = plain(whole)
    if all(weight * drawn == cell.n * total for weight, cell in zip(weights, cells, strict=True)):
        return usual
    means = [
        Fraction(weight * cell.y, total * cell.n * cell.scale)
        for weight, cell in zip(weights, cells, strict=True)
    ]
    changed = Mean(
        metric=whole.metric,
        value=sum(means, Fraction(0)),
        n=sum(cell.n for cell in cells),
        k=whole.k,
        variance=None,
        freedom=usual.freedom,
        reweighted=True,
    )
    single = _largest_variance(whole.metric)
    found = [variance(cell) for cell in cells]
    if usual.variance is None or (single is None and None in found):
        return changed
    each = [single or 0.0 if v is None else v for v in found]
    sds = [sqrt(v) for v in each]
    asked = [weight / total for weight in weights]
    diagonal, widest = _forms(asked, sds)
    mixed = diagonal
    if sum(cell.k for cell in cells) + beyond > whole.k:  # clusters span cells
        own, bound = _forms([cell.n / drawn for cell in cells], sds)
        between = (usual.variance - own) / (bound - own) if bound > own else 1.0
        mixed = diagonal + min(max(between, 0.0), 1.0) * (widest - diagonal)
    # Satterthwaite: a heavy cell with few clusters leaves few degrees of freedom.
    terms = [
        (w * w * v) ** 2 / (cell.k - 1)
        for w, v, cell in zip(asked, each, cells, strict=True)
        if cell.k > 1 and v > 0
    ]
    freedom = min(usual.freedom, diagonal**2 / sum(terms)) if terms else usual.freedom
    return structs.replace(changed, variance=max(mixed, usual.variance), freedom=max(freedom, 1.0))


def _forms(weights: list[float], sds: list[float]) -> tuple[float, float]:
    """Return Σ(w·sd)² and (Σ w·sd)²."""
    terms = [w * sd for w, sd in zip(weights, sds, strict=True)]
    return sum(term * term for term in terms), sum(terms) ** 2


def _largest_variance(metric: str) -> float | None:
    """Return the largest variance that a mean within the metric's range can have, None without a range."""
    spec = CATALOGUE[metric]
    return None if spec.low is None or spec.high is None else float(spec.high - spec.low) ** 2 / 4


def difference(old: Mean, new: Mean) -> Difference:
    """Compare two means of one metric.

    p is 1 − T(loss/se) with k₁ + k₂ − 2 degrees of freedom, or the posterior probability of no loss where
    the clusters of both sides agree among themselves. After reweighting, Welch's degrees of freedom are
    taken instead, and always for `worst` and `most`, since it is a wrong "no loss" that costs.
    """
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415 - heavy

    loss = old.value - new.value if CATALOGUE[old.metric].higher else new.value - old.value
    if old.variance is None or new.variance is None:
        return Difference(loss=loss)
    sides, beliefs = (old, new), (_Belief(old), _Belief(new))
    variances = [side.variance or belief.variance for side, belief in zip(sides, beliefs, strict=True)]
    careful = [
        side.variance * belief.widening if side.variance else belief.variance
        for side, belief in zip(sides, beliefs, strict=True)
    ]
    se, d = sqrt(sum(variances)), float(loss)
    freedom = _welch(variances, sides) if new.reweighted else old.freedom + new.freedom
    if old.variance == new.variance == 0:
        p_loss, p_gain = _posterior(*beliefs, higher=CATALOGUE[old.metric].higher)
    else:
        p_loss, p_gain = float(stdtr(freedom, -d / se)), float(stdtr(freedom, d / se))
    reach = float(stdtrit(_welch(careful, sides), LEVEL)) * sqrt(sum(careful))
    return Difference(
        loss=loss,
        test=Test(se=se, freedom=freedom, p_loss=p_loss, p_gain=p_gain, worst=d + reach, most=abs(d) + reach),
    )


def limit(mean: Mean, level: float) -> float:
    """Return the value, in the metric's unit, that a mean is worse than with a chance of `level` (0 to 1).

    It is the normal limit, and where the clusters agree, or are one, what the posterior of `difference`
    gives, or the normal limit with the posterior's variance if that is nearer to the mean.
    """
    from scipy.special import ndtri  # noqa: PLC0415 - heavy

    higher, value, far = CATALOGUE[mean.metric].higher, float(mean.value), float(ndtri(1 - level))
    if mean.variance:
        reach = far * sqrt(mean.variance)
        return value - reach if higher else value + reach
    belief = _Belief(mean)
    reach = far * sqrt(belief.variance)
    beyond = belief.quantile(level if higher else 1 - level)
    return min(value, max(value - reach, beyond)) if higher else max(value, min(value + reach, beyond))


def _welch(variances: list[float], sides: tuple[Mean, Mean]) -> float:
    """Return Welch's degrees of freedom of a difference."""
    parts = sum(v * v / side.freedom for v, side in zip(variances, sides, strict=True))
    return sum(variances) ** 2 / parts


class _Belief:
    """The posterior of a mean whose k clusters agree: Beta on its range, Gamma where it has no upper end."""

    def __init__(self, side: Mean) -> None:
        spec = CATALOGUE[side.metric]
        low = spec.low or Fraction(0)
        self.low = float(low)
        self.counts = spec.high is None
        self.width = 1.0 if spec.high is None else float(spec.high - low)
        self.share = share = float(side.value - low) / self.width
        self.a = 1 + side.k * share
        self.b = float(side.k) if self.counts else 1 + side.k * (1 - share)

    @property
    def variance(self) -> float:
        a, b = self.a, self.b
        inner = a / b**2 if self.counts else a * b / ((a + b) ** 2 * (a + b + 1))
        return inner * self.width**2

    @property
    def widening(self) -> float:
        """How much more a run varies at the posterior mean than at the estimate, of clusters that differ."""
        mean = self.a / self.b if self.counts else self.a / (self.a + self.b)
        if self.counts:
            return mean / self.share if self.share > 0 else 1.0
        spread = self.share * (1 - self.share)
        return mean * (1 - mean) / spread if spread > 0 else 1.0

    def quantile(self, level: float) -> float:
        """Return the value that the mean is below with a probability of `level`, in the metric's unit."""
        from scipy.special import betaincinv, gammaincinv  # noqa: PLC0415 - heavy

        share = gammaincinv(self.a, level) / self.b if self.counts else betaincinv(self.a, self.b, level)
        return self.low + self.width * float(share)

    def below(self, x: Floats) -> Floats:
        """Return P(mean < x), x on the scale of the posterior."""
        from scipy.special import betainc, gammainc  # noqa: PLC0415 - heavy

        found: Floats = gammainc(self.a, self.b * x) if self.counts else betainc(self.a, self.b, x)
        return found

    def above(self, x: Floats) -> Floats:
        """Return P(mean > x), with its digits where it is small."""
        from scipy.special import betaincc, gammaincc  # noqa: PLC0415 - heavy

        found: Floats = gammaincc(self.a, self.b * x) if self.counts else betaincc(self.a, self.b, x)
        return found

    def nodes(self) -> tuple[Floats, Floats]:
        """Return Gauss-Legendre nodes over all of the posterior but its last digits, and their masses."""
        from scipy import special  # noqa: PLC0415 - heavy

        a, b = self.a, self.b
        if self.counts:
            start, end = special.gammaincinv(a, _TAIL) / b, special.gammainccinv(a, _TAIL) / b
        else:
            start, end = special.betaincinv(a, b, _TAIL), special.betainccinv(a, b, _TAIL)
        at, weight = _legendre()
        x = start + (end - start) * (at + 1) / 2
        log: Floats
        if self.counts:
            log = special.xlogy(a - 1, b * x) - b * x - special.gammaln(a)
        else:
            log = special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b)
        import numpy as np  # noqa: PLC0415 - heavy

        density = np.exp(log) * (b if self.counts else 1.0)
        return x, density * weight * (end - start) / 2


def _posterior(old: _Belief, new: _Belief, *, higher: bool) -> tuple[float, float]:
    """Return the posterior probabilities that there is no loss, and that there is no gain."""
    x, mass = old.nodes()
    at_least, at_most = float(mass @ new.above(x)), float(mass @ new.below(x))
    return (at_least, at_most) if higher else (at_most, at_least)


@cache
def _legendre() -> tuple[Floats, Floats]:
    import numpy as np  # noqa: PLC0415 - heavy

    found = np.polynomial.legendre.leggauss(_NODES)
    return found[0], found[1]


def rejected(probabilities: Sequence[float], q: float) -> list[bool]:
    """Tell which of a family's probabilities Benjamini and Hochberg's procedure rejects at rate `q`."""
    count = len(probabilities)
    held = [p for rank, p in enumerate(sorted(probabilities), start=1) if p * count <= q * rank]
    limit = max(held, default=-1.0)
    return [p <= limit for p in probabilities]
