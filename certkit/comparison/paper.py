"""The tests that papers print, on `scipy.stats`: they treat runs, or the rates of clusters, as independent.

Repeats of one task are not independent, so p-values here are too small. No answer of a comparison rests
on them; they are made on demand only.

- For every metric, over all runs of either bundle: z (the signed root of Pearson's χ²), Welch's t, Cohen's d,
  Hedges' g (1981).
- For the rates of clusters: the two-way analysis of variance, agent by domain, with sums of squares of type
  II, and Tukey's comparison of all cells (Kramer's where they are of unequal size).
- For the rates of domains: Spearman's ρ and Kendall's τ-b, whether both agents find the same domains hard.

R: ``prop.test(correct = FALSE)``, ``t.test``, ``effectsize::hedges_g``, ``car::Anova``, ``TukeyHSD``,
``cor.test(method = "spearman")`` and ``"kendall"``. numpy and scipy are imported when a test is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from certkit.ground.document import Part
from certkit.summary.summary import PEI_UNIT, Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Cells = Mapping[tuple[str, str], Sequence[float]]

WARNING: Final = "these tests treat runs as independent; repeats of a task are not, so p-values are too small"
MOST_DOMAINS: Final = 20
"""Domains up to which all pairs of cells are compared."""
FEWEST: Final = 5
"""Domains below which no order, however like, can have p < 0.05 (2/4! is 0.083)."""

# runs, sum and squares of a mean in the tally, the scale of either, and what rounding leaves of a variance
SQUARES: Final = {
    "frr": ("frr_n", "frr_tenths", 10, "frr_squares", 100, 0.0),
    "pei": ("pei_n", "pei_fixed", PEI_UNIT, "pei_squares", PEI_UNIT, 2.0**-27),
    "ti": ("ti_n", "ti_thousandths", 1000, "ti_squares", 10**6, 0.0),
    "violations": ("violations_n", "violations", 1, "violations_squares", 1, 0.0),
}
_ROUNDING: Final = 1e-24


class Statistic(Part, frozen=True, kw_only=True):
    """A statistic with its two-sided p-value."""

    statistic: float
    p: float


class Runs(Part, frozen=True, kw_only=True):
    """Tests and effect sizes over all runs of either side; null where nothing varies.

    Attributes:
        z: of two shares.
        welch: Welch's t of two means.
        cohen_d: the difference in pooled standard deviations.
        hedges_g: the same without its bias.
    """

    z: Statistic | None = None
    welch: Statistic | None = None
    cohen_d: float | None = None
    hedges_g: float | None = None


class AnovaLine(Part, frozen=True, kw_only=True):
    """One line of an analysis of variance; `eta` is partial η², SS / (SS + SS of the error)."""

    ss: float
    df: int
    f: float
    p: float
    eta: float


class Pair(Part, frozen=True, kw_only=True):
    """Two cells (agent, domain): the difference of their means, and Tukey's p."""

    first: tuple[str, str]
    second: tuple[str, str]
    difference: float
    p: float


class Anova(Part, frozen=True, kw_only=True):
    """Agent by domain over one rate per agent, domain and cluster.

    Attributes:
        observations: rates.
        error_ss: sum of squares within cells.
        error_df: its degrees of freedom.
        agent: the effect of the agent.
        domain: the effect of the domain.
        interaction: the effect of both together.
        pairs: comparisons of two cells, in the order of p.
        reason: what is missing, and why.
    """

    observations: int
    error_ss: float
    error_df: int
    agent: AnovaLine | None = None
    domain: AnovaLine | None = None
    interaction: AnovaLine | None = None
    pairs: tuple[Pair, ...] = ()
    reason: str | None = None


class Rank(Part, frozen=True, kw_only=True):
    """A rank correlation of `n` domains; null where every domain of an agent is alike."""

    n: int
    value: float | None = None
    p: float | None = None
    reason: str | None = None


class PaperTests(Part, frozen=True, kw_only=True):
    """The tests of a comparison: by metric, of the clusters' rates, of the order of domains."""

    warning: str = WARNING
    metrics: Mapping[str, Runs]
    anova: Anova | None
    spearman: Rank | None
    kendall: Rank | None


class Moments(Struct, frozen=True):
    """Runs, their mean and their sample variance (n - 1; None below two runs)."""

    n: int
    mean: Fraction
    variance: float | None


def runs(metric: str, tallies: Sequence[Tally]) -> Runs:
    """Return the tests of a metric of `SQUARES` over the runs of both sides."""
    a, b = (_moments(metric, tally) for tally in tallies)
    return means(a, b)


def shares(s: int, n: int, t: int, m: int) -> Runs:
    """Return the tests of s successes of n ≥ 1 against t of m ≥ 1."""
    tests = means(moments(n, Fraction(s), Fraction(s)), moments(m, Fraction(t), Fraction(t)))
    return structs.replace(tests, z=two_proportions(s, n, t, m))


def means(a: Moments, b: Moments) -> Runs:
    """Return Welch's t, Cohen's d and Hedges' g of two means."""
    from scipy import special, stats  # noqa: PLC0415 - heavy

    if a.variance is None or b.variance is None or not a.variance + b.variance:
        return Runs()
    freedom = a.n + b.n - 2
    pooled = sqrt(((a.n - 1) * a.variance + (b.n - 1) * b.variance) / freedom)
    d = float(a.mean - b.mean) / pooled
    (x, s), (y, t) = ((float(side.mean), sqrt(side.variance or 0.0)) for side in (a, b))
    done: Any = stats.ttest_ind_from_stats(x, s, a.n, y, t, b.n, equal_var=False)
    small = special.poch((freedom - 1) / 2, 0.5) / sqrt(freedom / 2)  # Γ(m/2) / (√(m/2) Γ((m - 1)/2))
    return Runs(
        welch=Statistic(statistic=float(done.statistic), p=float(done.pvalue)),
        cohen_d=d,
        hedges_g=d * float(small),
    )


def moments(n: int, total: Fraction, squares: Fraction, *, resolution: float = 0.0) -> Moments:
    """Return the moments of `n` ≥ 1 values from their sum and the sum of their squares, exactly.

    A variance below `resolution` is 0: the sums were rounded, and no more can be told from them.
    """
    if n < 2:  # noqa: PLR2004 - a variance needs two
        return Moments(n, total / n, None)
    variance = float((squares - total * total / n) / (n - 1))
    return Moments(n, total / n, variance if variance > resolution else 0.0)


def _moments(metric: str, tally: Tally) -> Moments:
    n, total, scale, squares, square, resolution = SQUARES[metric]
    value, squared = Fraction(tally[total], scale), Fraction(tally[squares], square)
    return moments(tally[n], value, squared, resolution=resolution)


def two_proportions(s: int, n: int, t: int, m: int) -> Statistic:
    """Return the pooled z test of s of n against t of m; z is 0 where nothing varies."""
    from scipy import stats  # noqa: PLC0415 - heavy

    if s + t in {0, n + m}:
        return Statistic(statistic=0.0, p=1.0)
    done = stats.chi2_contingency([[s, n - s], [t, m - t]], correction=False)
    sign = 1 if s * m >= t * n else -1
    return Statistic(statistic=sign * sqrt(float(done.statistic)), p=float(done.pvalue))


def anova(cells: Cells) -> Anova:
    """Return the analysis of observations by (agent, domain), the agents being "a" and "b".

    Only domains in which both have an observation may be given.
    """
    import numpy as np  # noqa: PLC0415 - heavy

    keys = sorted(cells)
    domains = sorted({domain for _, domain in keys})
    y = np.array([value for key in keys for value in sorted(cells[key])])
    agent, domain = _dummies(keys, cells, 0), _dummies(keys, cells, 1)
    both = np.concatenate([agent, domain], axis=1)
    cell = (agent[:, :, None] * domain[:, None, :]).reshape(len(y), -1)
    error, freedom = _left(y, cell), len(y) - len(keys)
    analysis = Anova(observations=len(y), error_ss=error, error_df=freedom)
    if freedom < 1:
        return structs.replace(analysis, reason="no cell of agent × domain has two clusters")
    if error <= _ROUNDING * float(y @ y):
        return structs.replace(analysis, reason="the clusters of each agent and domain are all alike")
    additive, more = _left(y, both), len(domains) - 1
    reason = None if more else "one domain: nothing but the agent can be told apart"
    if many := len(domains) > MOST_DOMAINS:
        reason = f"more than {MOST_DOMAINS} domains: no comparison of pairs"
    return structs.replace(
        analysis,
        agent=_effect(_left(y, domain) - additive, 1, error, freedom),
        domain=_effect(_left(y, agent) - additive, more, error, freedom) if more else None,
        interaction=_effect(additive - error, more, error, freedom) if more else None,
        pairs=() if many else _tukey(cells),
        reason=reason,
    )


def _dummies(keys: Sequence[tuple[str, str]], cells: Cells, factor: int) -> Floats:
    import numpy as np  # noqa: PLC0415 - heavy

    levels = sorted({key[factor] for key in keys})
    return np.array([[float(key[factor] == level) for level in levels] for key in keys for _ in cells[key]])


def _left(y: Floats, design: Floats) -> float:
    """Return the residual sum of squares of a least-squares fit."""
    import numpy as np  # noqa: PLC0415 - heavy

    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(((y - fitted) ** 2).sum())


def _effect(ss: float, df: int, error: float, freedom: int) -> AnovaLine:
    from scipy import stats  # noqa: PLC0415 - heavy

    ss = max(0.0, ss)
    f = (ss / df) / (error / freedom)
    return AnovaLine(ss=ss, df=df, f=f, p=float(stats.f.sf(f, df, freedom)), eta=ss / (ss + error))


def _tukey(cells: Cells) -> tuple[Pair, ...]:
    """Return Tukey's comparison of the cells with two observations at least, which scipy asks for."""
    from scipy import stats  # noqa: PLC0415 - heavy

    keys = [key for key in sorted(cells) if len(cells[key]) > 1]
    if len(keys) < 2:  # noqa: PLR2004 - a pair takes two
        return ()
    done = stats.tukey_hsd(*(sorted(cells[key]) for key in keys))
    pairs = [
        Pair(
            first=keys[i],
            second=keys[j],
            difference=float(done.statistic[i, j]),
            p=float(done.pvalue[i, j]),
        )
        for i, j in combinations(range(len(keys)), 2)
    ]
    return tuple(sorted(pairs, key=lambda pair: (pair.p, -abs(pair.difference), pair.first, pair.second)))


def ranks(x: Sequence[Fraction], y: Sequence[Fraction]) -> tuple[Rank, Rank]:
    """Return Spearman's ρ and Kendall's τ-b of the rates of domains."""
    from scipy import stats  # noqa: PLC0415 - heavy

    n = len(x)
    if min(len(set(x)), len(set(y))) < 2:  # noqa: PLR2004 - an order needs two
        alike = "an agent does equally well in every domain, which is no order"
        absent = Rank(n=n, reason=alike if n > 1 else "fewer than two domains have no order")
        return absent, absent
    reason = f"{n} domains are too few to say" if n < FEWEST else None
    places: list[Any] = [stats.rankdata([float(value) for value in side]) for side in (x, y)]
    tests = stats.spearmanr(*places), stats.kendalltau(*places)
    rho, tau = (
        Rank(n=n, value=float(done.statistic), p=None if reason else float(done.pvalue), reason=reason)
        for done in tests
    )
    return rho, tau
