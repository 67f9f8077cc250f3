"""The Beta and Student t distributions in plain Python: judging and ``verify`` load neither numpy nor scipy.

``below`` and ``above`` keep their digits in small tails: the tail on the far side of the mean is computed
itself, never as one minus the other. ``quantile`` inverts them.

    >>> round(below(0.7, 71, 31), 6)
    0.523088
    >>> round(quantile(0.05, 71, 31), 6)
    0.61935

A tail is the factor x^a y^b / B(a, b) times one of two sums. Neither takes more than 130 terms for parameters
from 10⁻³ to 10¹⁵, so that a hostile document cannot make a verifier slow:

- near the mean of large parameters, an asymptotic expansion [DiDonato and Morris, ACM TOMS 18 (1992)];
- elsewhere, a continued fraction [the even part of DLMF 8.17.22].

The factor is computed by the deviances of Loader, "Fast and accurate computation of binomial probabilities"
(2000): differences of ``lgamma`` lose nine digits at 10⁶.
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, exp, expm1, isfinite, lgamma, log, pi, sqrt
from typing import Final

LEAST: Final = 1e-100
MOST: Final = 1e100
"""What parameters lie between: a product of two of them is a double."""

MOST_TERMS: Final = 500
"""Terms of the continued fraction; no parameters from 10⁻³ to 10¹⁵ take more than 130."""

MOST_STEPS: Final = 60
"""Evaluations of the tail in one quantile; ordinary parameters take two to five."""

LARGE: Final = 3_000.0
"""Where both parameters are larger, the expansion is as exact near the mean as the fraction, and faster."""

NEAR: Final = 20.0
"""Deviance up to which the expansion is used, 6.3 standard deviations."""

MOST_ORDERS: Final = 12
"""Of the expansion; it stops earlier where parameters are larger."""

FARTHEST: Final = 745.0
"""Log-odds at which a double is zero or one."""

_EPSILON: Final = 2e-16
_HALF_LOG_2PI: Final = 0.9189385332046728
_TINY: Final = 1e-300


def below(x: float, a: float, b: float) -> float:
    """Return P(θ ≤ x) for θ ~ Beta(a, b).

    Raises:
        ValueError: where a or b is not between `LEAST` and `MOST`.
    """
    if not 0 < x < 1:
        return float(x >= 1)
    return _tail(x, 1 - x, a, b, _scale(a, b))[0]


def above(x: float, a: float, b: float) -> float:
    """Return P(θ > x) for θ ~ Beta(a, b).

    Raises:
        ValueError: where a or b is not between `LEAST` and `MOST`.
    """
    if not 0 < x < 1:
        return float(x < 1)
    return _tail(1 - x, x, b, a, _scale(b, a))[0]


def student_above(t: float, df: float) -> float:
    """Return P(T > t) for Student's t with `df` degrees of freedom, which may be a fraction.

    Raises:
        ValueError: where `df` is not between `LEAST` and `MOST`.
    """
    square = t * t
    if square == 0:
        return 0.5
    if not isfinite(square):
        return float(t < 0)
    tail = _tail(df / (df + square), square / (df + square), df / 2, 0.5, _scale(df / 2, 0.5))[0] / 2
    return tail if t > 0 else 1 - tail


@lru_cache(4096)  # tiers of one confidence ask for the same limits
def quantile(p: float, a: float, b: float) -> float:
    """Return the x with P(θ ≤ x) = p for θ ~ Beta(a, b), by Halley steps inside a bracket.

    The steps are taken in log-odds u = log(x / (1 - x)) and on log P: there the distribution is log-concave,
    its density is the factor x^a y^b / B, and no x near zero or one loses digits.

    Raises:
        ValueError: where a or b is not between `LEAST` and `MOST`, or p is not within (0, 1).
    """
    if not 0 < p < 1:
        msg = f"a probability within (0, 1) has a quantile, not {p!r}"
        raise ValueError(msg)
    if p > 0.5:  # noqa: PLR2004 - the smaller tail has the digits
        return _odds(-_log_odds(1 - p, b, a))
    return _odds(_log_odds(p, a, b))


def _log_odds(p: float, a: float, b: float) -> float:
    """Return the log-odds of the quantile of p ≤ 1/2."""
    scale = _scale(a, b)
    # A cubic method that moved by this is exact at its next point.
    near = 1e-5 / sqrt(1 + min(a, b))
    low, high = -FARTHEST, FARTHEST
    u = min(max(_guess(p, a, b), low), high)
    for _ in range(MOST_STEPS):
        x, y = _odds(u), _odds(-u)
        tail, weight = _tail(x, y, a, b, scale)
        if tail < p:
            low = u
        else:
            high = u
        following = (low + high) / 2
        if tail > 0 and weight > 0:
            # The derivative of log P is `slope`, the second one slope * (a y - b x - slope).
            slope = weight / tail
            newton = log(p / tail) / slope
            halley = 1 + newton * (a * y - b * x - slope) / 2
            newton /= halley if 0.5 < halley < 2 else 1  # noqa: PLR2004 - beyond, one step is not near
            if low <= u + newton <= high:
                following = u + newton
        step, u = following - u, following
        if -near < step < near:
            break
    return u


def _guess(p: float, a: float, b: float) -> float:
    """Return log-odds near the quantile of p ≤ 1/2: Abramowitz and Stegun 26.5.22, or the power of a tail."""
    if a > 1 and b > 1:
        t = sqrt(-2 * log(p))
        z = t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481))
        r, s = 1 / (2 * a - 1), 1 / (2 * b - 1)
        h = 2 / (r + s)
        share = (z * z - 3) / 6
        w = z * sqrt(max(h + share, 0.0)) / h - (s - r) * (share + 5 / 6 - 2 / (3 * h))
        return log(a / b) - 2 * w
    # Two powers, of x and of 1 - x, each with its part of the probability.
    n = a + b
    left, right = exp(a * log(a / n)) / a, exp(b * log(b / n)) / b
    part = left / (left + right)
    if p < part:
        power = min(log(p / part) / a + log(a / n), -_TINY)
        return power - log(-expm1(power))
    power = min(log((1 - p) / (1 - part)) / b + log(b / n), -_TINY)
    return log(-expm1(power)) - power


def _odds(u: float) -> float:
    """Return the probability with log-odds u."""
    return 1 / (1 + exp(-u)) if u >= 0 else exp(u) / (1 + exp(u))


def _scale(a: float, b: float) -> float:
    """Return x^a y^b / B(a, b) at the mean, by Stirling's series."""
    n = a + b
    if not (LEAST < a < MOST and LEAST < b < MOST):
        msg = f"a Beta distribution has positive, finite parameters, not {a!r} and {b!r}"
        raise ValueError(msg)
    return sqrt(a / n * b / (2 * pi)) * exp(_stirling(n) - _stirling(a) - _stirling(b))


def _stirling(z: float) -> float:
    """Return log Γ(z) less Stirling's formula for it."""
    if z < 10:  # noqa: PLR2004 - from here on the series has every digit
        return lgamma(z) - (z - 0.5) * log(z) + z - _HALF_LOG_2PI
    r = 1 / z
    w = r * r
    series = 1 / 1188 - w * (691 / 360360 - w / 156)
    return r * (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * series))))


def _deviance(d: float, ratio: float) -> float:
    """Return d - log(1 + d), where `ratio` is 1 + d; without loss of digits near zero."""
    if -0.2 < d < 0.2:  # noqa: PLR2004 - as far as these terms of the series have every digit
        v = d / (2 + d)
        w = v * v
        series = 1 / 9 + w * (1 / 11 + w * (1 / 13 + w * (1 / 15 + w * (1 / 17 + w / 19))))
        return v * (d - 2 * w * (1 / 3 + w * (1 / 5 + w * (1 / 7 + w * series))))
    return d - log(ratio)


def _tail(x: float, y: float, a: float, b: float, scale: float) -> tuple[float, float]:
    """Return P(θ ≤ x), and x^a y^b / B(a, b), the density of the log-odds.

    Args:
        x: within [0, 1].
        y: 1 - x, to its own last digit.
        a: first parameter.
        b: second parameter.
        scale: what `_scale` returns for them.
    """
    if x <= 0 or y <= 0:
        return float(y <= 0), 0.0
    n = a + b
    excess = a * y - b * x
    deviance = a * _deviance(-excess / a, n / a * x) + b * _deviance(excess / b, n / b * y)
    weight = scale * exp(-deviance)
    # Both methods are for one side of the mean.
    far = excess <= x - y
    if far:
        x, y, a, b, excess = y, x, b, a, -excess
    if deviance < NEAR and a > LARGE and b > LARGE:
        tail = weight * _expansion(a, b, max(deviance, 0.0))
    else:
        tail = weight * _fraction(x, y, a, b, excess)
    return (1 - tail if far else tail), weight


def _fraction(x: float, y: float, a: float, b: float, excess: float) -> float:
    """Return P(θ ≤ x) B(a, b) / (x^a y^b) for x below the mean, by the continued fraction.

    Args:
        x: where.
        y: 1 - x.
        a: first parameter.
        b: second parameter.
        excess: a y - b x.
    """
    # Modified Lentz, for b0 + a1 / (b1 + a2 / (b2 + ...)).
    p, n, s, e, y1 = a - 1, a + b - 1, a - 1, excess + 1, 1 + y
    total = c = a * e / (a + 1) or _TINY
    m = d = 0.0
    for _ in range(MOST_TERMS):
        m += 1.0
        s += 2.0
        q = m * (b - m) * x / s
        numerator = (p + m) * (n + m) / s * q * x
        denominator = m + q + (a + m) * (e + m * y1) / (s + 2.0)
        d = 1.0 / ((denominator + numerator * d) or _TINY)
        c = (denominator + numerator / c) or _TINY
        change = c * d
        total *= change
        if -_EPSILON < change - 1.0 < _EPSILON:
            break
    return 1 / total


def _expansion(a: float, b: float, deviance: float) -> float:
    """Return P(θ ≤ x) B(a, b) / (x^a y^b) for x at or below the mean of large parameters.

    The density of θ is a normal density of ζ = ±sqrt(2 deviance), times a power series in ζ. The recursion of
    DiDonato and Morris (BASYM) computes its coefficients; each term is integrated in closed form.
    """
    smaller, larger = min(a, b), max(a, b)
    h = smaller / larger
    width = 1 / sqrt(smaller * (1 + h))
    z = sqrt(deviance)
    r0, r1 = 1 / (1 + h), (b - a) / larger
    first = 2 / 3 * r1
    xs, cs, ds = [first], [-first / 2], [first / 2]
    even, odd = sqrt(pi) / 4 * exp(deviance) * erfc(z), sqrt(1 / 8)
    total = even + ds[0] * width * odd
    sum_h, power_h, power = 1.0, 1.0, width
    low_z, high_z = z * sqrt(2), 2 * deviance
    for n in range(2, MOST_ORDERS, 2):
        power_h *= h * h
        xs.append(r0 * 2 * (1 + h * power_h) / (n + 2))
        sum_h += power_h
        xs.append(r1 * 2 * sum_h / (n + 3))
        for i in (n, n + 1):
            r = -0.5 * (i + 1)
            bs = [r * xs[0]]
            for m in range(2, i + 1):
                inner = 0.0
                for j in range(1, m):
                    inner += (j * r - (m - j)) * xs[j - 1] * bs[m - j - 1]
                bs.append(r * xs[m - 1] + inner / m)
            cs.append(bs[i - 1] / (i + 1))
            ds.append(-(sum(ds[i - j - 1] * cs[j - 1] for j in range(1, i)) + cs[i - 1]))
        even = sqrt(1 / 8) * low_z + (n - 1) * even
        odd = sqrt(1 / 8) * high_z + n * odd
        low_z *= 2 * deviance
        high_z *= 2 * deviance
        power *= width
        term = ds[n - 1] * power * even
        power *= width
        last = ds[n] * power * odd
        total += term + last
        if abs(term) + abs(last) <= _EPSILON * total:
            break
    return total * sqrt(8 * (1 + h) / smaller)
