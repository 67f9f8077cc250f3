"""The quadrature behind `correction`: the posterior of a true rate that a fallible judge reports on.

With p the rate that is seen, S the judge's sensitivity and F its rate of false alarms, all Beta variables,
the true rate θ solves p = θ·S + (1 - θ)·F. Everything here is Gauss-Legendre on smooth integrands: no draws,
no seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from numpy.polynomial import legendre
from scipy.special import betainc, betaincc, betaincinv, betaln, xlog1py, xlogy

from certkit.assessment.statistics.estimators import LEVEL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CONTRADICTION: Final = 1e-3
"""Weight of the rates that the calibration allows below which it contradicts the runs."""
EDGE: Final = 1e-11
"""Tail of a Beta distribution that is left out."""
NODES: Final = 28
PANEL: Final = 10
"""Nodes in each panel of the grid over θ."""
REACH: Final = 12
"""Standard deviations on both sides of the point estimate over which the grid is fine."""


class Beta(Struct, frozen=True):
    """A Beta distribution with parameters of at least 1."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        """The mean."""
        return self.a / (self.a + self.b)

    @property
    def sd(self) -> float:
        """The standard deviation."""
        total = self.a + self.b
        return float((self.a * self.b / (total * total * (total + 1))) ** 0.5)

    def density(self, x: Floats) -> Floats:
        """Return the density at each x."""
        found: Floats = np.exp(xlogy(self.a - 1, x) + xlog1py(self.b - 1, -x) - betaln(self.a, self.b))
        return found

    def span(self) -> tuple[float, float]:
        """Return where all but a part of `EDGE` at either end lies."""
        return float(betaincinv(self.a, self.b, EDGE)), 1 - float(betaincinv(self.b, self.a, EDGE))


def not_above(x: Beta, y: Beta) -> float:
    """Return P(X ≤ Y)."""
    # The narrower one carries the nodes, so that the other varies little between two of them.
    narrow, wide = (x, y) if x.sd < y.sd else (y, x)
    low, high = narrow.span()
    nodes, weights = _spread(np.array(low), np.array(high))
    tail = betaincc(wide.a, wide.b, nodes) if narrow is x else betainc(wide.a, wide.b, nodes)
    return min(1.0, float(np.sum(weights * narrow.density(nodes) * tail)))


def _spread(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return nodes and weights on each stretch from `low` to `high`, along a new last axis."""
    nodes, weights = legendre.leggauss(NODES)
    half = (high - low)[..., None] / 2
    return low[..., None] + half * (1 + nodes), half * weights


def _density(theta: Floats, seen: Beta, hits: Beta, alarms: Beta) -> Floats:
    """Return π(θ), not normalised, at each θ within 0 < θ < 1.

    Of the three variables of p - θ·S - (1 - θ)·F = 0 two are integrated over; the third follows. It is the
    one that varies most, so that the integrand is as smooth as the nodes are close.
    """
    parts = (seen, hits, alarms)
    factors = np.stack([np.ones_like(theta), -theta, theta - 1])
    spread = np.abs(factors) * np.array([[part.sd] for part in parts])
    widest = np.argmax(spread, axis=0)
    found = np.zeros_like(theta)
    for follows in np.unique(widest).tolist():
        outer, inner = (number for number in range(3) if number != follows)
        at = widest == follows
        c_outer, c_inner, c_follows = (factors[number, at] for number in (outer, inner, follows))
        found[at] = _integral(
            theta[at], (c_outer, c_inner, c_follows), (parts[outer], parts[inner], parts[follows])
        )
    return found


def _integral(
    theta: Floats, factors: tuple[Floats, Floats, Floats], parts: tuple[Beta, Beta, Beta]
) -> Floats:
    """Return ∫∫ of the three densities over the first two variables, the third between 0 and 1.

    Where the first is p, the limits of the second bend at p = θ (there S = 1 goes with F = 0), and a judge
    that may be perfect has density there. So each half has nodes of its own.
    """
    c_outer, c_inner, c_follows = (factor[:, None, None] for factor in factors)
    outer, inner, follows = parts
    start, stop = outer.span()
    bend = np.clip(theta, start, stop)
    x, x_weights = (
        np.concatenate(pair, axis=1)
        for pair in zip(
            _spread(np.full_like(bend, start), bend), _spread(bend, np.full_like(bend, stop)), strict=True
        )
    )
    base = -c_outer * x[:, :, None]
    ends = np.stack([base / c_inner, (base - c_follows) / c_inner])
    y, weights = _spread(
        *(np.clip(end, *inner.span())[:, :, 0] for end in (ends.min(axis=0), ends.max(axis=0)))
    )
    z = np.clip((base - c_inner * y) / c_follows, 0.0, 1.0)
    within = (inner.density(y) * follows.density(z) * weights).sum(axis=2)
    total: Floats = (x_weights * outer.density(x) * within).sum(axis=1) / np.abs(factors[2])
    return total


def posterior(
    seen: Beta, hits: Beta, alarms: Beta, tau: list[float]
) -> tuple[float, float, float, list[float]] | None:
    """Return mean, both ends of the interval and P(θ > τ); None where next to no θ is possible."""
    edges = _edges(seen, hits, alarms, tau)
    nodes, weights = legendre.leggauss(PANEL)
    half = np.diff(edges)[:, None] / 2
    theta = edges[:-1, None] + half * (1 + nodes)
    density = _density(theta.ravel(), seen, hits, alarms).reshape(theta.shape)
    panels = (density * weights * half).sum(axis=1)
    total = panels.sum()
    # Priors uniform in p would give E[1/|S - F|] over all θ, which is at least 1.
    if not total > CONTRADICTION:
        return None
    mean = float((theta * density * weights * half).sum() / total)
    above = [float(min(1.0, panels[edges[:-1] >= t].sum() / total)) for t in tau]
    low, high = (
        _quantile(edges, density, panels, total * tail) for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    )
    return mean, low, high, above


def _edges(seen: Beta, hits: Beta, alarms: Beta, tau: list[float]) -> Floats:
    """Return the panels of θ: fine about the point estimate, coarse elsewhere, a boundary at every τ."""
    gain = hits.mean - alarms.mean
    centre = (seen.mean - alarms.mean) / gain
    near = min(1.0, max(0.0, centre))
    variance = seen.sd**2 + (near * hits.sd) ** 2 + ((1 - near) * alarms.sd) ** 2
    fine = centre + np.linspace(-REACH, REACH, 2 * REACH + 1) * variance**0.5 / gain
    # For a judge that may be perfect the density bends where θ is the rate that was seen.
    bend = seen.mean + np.array([-8, -4, -2, -1, 0, 1, 2, 4, 8]) * seen.sd
    places = np.concatenate([np.linspace(0, 1, 9), fine, bend, tau])
    edges: Floats = np.unique(np.clip(places, 0.0, 1.0))
    return edges


def _quantile(edges: Floats, density: Floats, panels: Floats, target: float) -> float:
    """Return where the integral of the density reaches `target`, by the polynomial through a panel."""
    reached = np.cumsum(panels)
    panel = min(int(np.searchsorted(reached, target)), len(panels) - 1)
    half = (edges[panel + 1] - edges[panel]) / 2
    nodes, _ = legendre.leggauss(PANEL)
    series = legendre.legint(legendre.legfit(nodes, density[panel], PANEL - 1), lbnd=-1) * half
    rest = target - (reached[panel] - panels[panel])
    low, high = -1.0, 1.0
    while high - low > 1e-13:  # noqa: PLR2004 - a double's resolution
        middle = (low + high) / 2
        low, high = (middle, high) if legendre.legval(middle, series) < rest else (low, middle)
    return float(edges[panel] + half * (1 + low))
