"""Agent × domain: two-way analysis of variance of the clusters' rates, and Tukey's comparison of its cells.

An observation is one rate: of one agent, in one domain, of one cluster. Sums of squares are of type II (each
factor after the other, the interaction after both), which for two agents have closed forms: with
h_d = n_Ad·n_Bd / n_d and δ_d = ȳ_Ad - ȳ_Bd, the agent has (Σhδ)²/Σh and the interaction Σh(δ - Σhδ/Σh)².
Clusters that both agents met count as if each agent had met clusters of its own, and a cluster of many
runs as much as one of few.
"""

from __future__ import annotations

from itertools import combinations
from math import fsum, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from certkit.assessment.compare import studentized
from certkit.assessment.statistics.estimators import LEVEL, Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Cells = Mapping[tuple[str, str], Sequence[float]]

AGENTS: Final = ("a", "b")
MOST_DOMAINS: Final = 20
"""Domains up to which all pairs of cells are compared."""

_ROUNDING: Final = 1e-24


class Effect(Struct, frozen=True, kw_only=True):
    """One line of the table; `eta` is partial η², SS / (SS + SS of the error)."""

    ss: float
    df: int
    f: float
    p: float
    eta: float


class Pair(Struct, frozen=True, kw_only=True):
    """Two cells (agent, domain): difference of their means, studentized range, Tukey's p and interval."""

    first: tuple[str, str]
    second: tuple[str, str]
    difference: float
    q: float
    p: float
    interval: Interval


class Anova(Struct, frozen=True, kw_only=True):
    """The table; where `reason` is given, why (some of) it is missing. `pairs` are in the order of p."""

    observations: int
    agent: Effect | None = None
    domain: Effect | None = None
    interaction: Effect | None = None
    error_ss: float = 0.0
    error_df: int = 0
    pairs: tuple[Pair, ...] = ()
    reason: str | None = None


def anova(cells: Cells) -> Anova:
    """Return the analysis of observations by (agent, domain), the agents being "a" and "b".

    Only domains in which both have an observation may be given.
    """
    sorted_cells = {key: sorted(cells[key]) for key in sorted(cells)}
    domains = sorted({domain for _, domain in sorted_cells})
    means = {key: fsum(values) / len(values) for key, values in sorted_cells.items()}
    number = sum(map(len, sorted_cells.values()))
    freedom = number - len(sorted_cells)
    error = fsum(_squares(values, means[key]) for key, values in sorted_cells.items())
    found = Anova(observations=number, error_ss=error, error_df=freedom)
    if freedom < 1:
        return _without(found, "no cell of agent × domain has two clusters")
    size = fsum(value * value for values in sorted_cells.values() for value in values)
    if error <= _ROUNDING * size:
        return _without(found, "the clusters of each agent and domain are all alike")
    agent, domain, interaction = _sums(sorted_cells, means, domains)
    more = len(domains) - 1
    return Anova(
        observations=number,
        agent=_effect(agent, 1, error, freedom),
        domain=_effect(domain, more, error, freedom) if more else None,
        interaction=_effect(interaction, more, error, freedom) if more else None,
        error_ss=error,
        error_df=freedom,
        pairs=_tukey(sorted_cells, means, error / freedom, freedom) if len(domains) <= MOST_DOMAINS else (),
        reason=_partly(len(domains)),
    )


def _without(found: Anova, reason: str) -> Anova:
    return Anova(
        observations=found.observations, error_ss=found.error_ss, error_df=found.error_df, reason=reason
    )


def _partly(domains: int) -> str | None:
    if domains == 1:
        return "one domain: nothing but the agent can be told apart"
    return f"more than {MOST_DOMAINS} domains: no comparison of pairs" if domains > MOST_DOMAINS else None


def _squares(values: Sequence[float], mean: float) -> float:
    return fsum((value - mean) ** 2 for value in values)


def _sums(
    cells: Mapping[tuple[str, str], Sequence[float]],
    means: Mapping[tuple[str, str], float],
    domains: Sequence[str],
) -> tuple[float, float, float]:
    """Return the sums of squares of agent, domain and interaction, type II."""
    h, delta = [], []
    for domain in domains:
        n, m = (len(cells[agent, domain]) for agent in AGENTS)
        h.append(n * m / (n + m))
        delta.append(means["a", domain] - means["b", domain])
    total = fsum(h)
    shift = fsum(x * y for x, y in zip(h, delta, strict=True)) / total
    agent = total * shift**2
    interaction = fsum(x * (y - shift) ** 2 for x, y in zip(h, delta, strict=True))
    # Domain after agent: what is left with the agents' means alone, less what is left with both factors.
    alone = 0.0
    for name in AGENTS:
        values = [value for domain in domains for value in cells[name, domain]]
        alone += _squares(values, fsum(values) / len(values))
    error = fsum(_squares(values, means[key]) for key, values in cells.items())
    return agent, max(0.0, alone - error - interaction), interaction


def _effect(ss: float, df: int, error: float, freedom: int) -> Effect:
    from scipy.special import fdtrc  # noqa: PLC0415 - heavy

    f = (ss / df) / (error / freedom)
    return Effect(ss=ss, df=df, f=f, p=float(fdtrc(df, freedom, f)), eta=ss / (ss + error))


def _tukey(
    cells: Mapping[tuple[str, str], Sequence[float]],
    means: Mapping[tuple[str, str], float],
    variance: float,
    freedom: int,
) -> tuple[Pair, ...]:
    """Return Tukey's honest differences, with Kramer's standard error where cells are of unequal size."""
    chosen = list(combinations(cells, 2))
    error = [sqrt(variance / 2 * (1 / len(cells[one]) + 1 / len(cells[other]))) for one, other in chosen]
    gaps = [means[one] - means[other] for one, other in chosen]
    q = [abs(gap) / se for gap, se in zip(gaps, error, strict=True)]
    p = studentized.survival(np.array(q), len(cells), freedom)
    bar = studentized.critical(LEVEL, len(cells), freedom)
    pairs = [
        Pair(
            first=one,
            second=other,
            difference=gap,
            q=value,
            p=float(chance),
            interval=Interval(low=gap - bar * se, high=gap + bar * se, method="tukey-kramer"),
        )
        for (one, other), gap, se, value, chance in zip(chosen, gaps, error, q, p, strict=True)
    ]
    return tuple(sorted(pairs, key=lambda pair: (pair.p, -pair.q, pair.first, pair.second)))
