"""The cells of the study: an agent at a threshold (or above it), and the share of bundles that pass.

Every agent here has a true mean over tasks of `mean`. Tasks differ by a Beta law, by two points, or in that
some always fail ("hopeless") while the others make up the mean. Runs of a task are drawn given its chance.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certkit.assessment.bounds import MOST_VIOLATIONS, corrected
from tests.study import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVELS = {2: (0.80, 0.95), 3: (0.95, 0.99)}
"""Tier → threshold of r_op, confidence."""
LEAST = {2: 13, 3: 89}
SIZES = ("equal", "rank^-.7", "1/rank")
LAWS = ("beta 0", "beta .1", "beta .3", "beta .7", "two-point .3", "hopeless 5 %", "hopeless 15 %")


class Cell(NamedTuple):
    """One cell: what was drawn, in how many bundles, and the share that pass."""

    section: str
    tier: int
    what: str
    tasks: int
    draws: int
    passed: float


def sizes(name: str, k: int, each: int = 5) -> NDArray[np.int64]:
    """Return runs by task with a mean of about `each`, one at least."""
    rank = np.arange(1, k + 1, dtype=np.float64)
    weight = {"equal": np.ones(k), "rank^-.7": rank**-0.7, "1/rank": 1 / rank}[name]
    runs: NDArray[np.int64] = np.maximum(1, np.rint(weight * each * k / weight.sum())).astype(np.int64)
    return runs


def chances(rng: np.random.Generator, law: str, mean: float, shape: tuple[int, ...]) -> Floats:
    """Return every task's chance of success under a law with this mean."""
    name, number = law.split()[:2]
    if name == "hopeless":
        share = float(number) / 100
        return np.where(rng.random(shape) < share, 0.0, mean / (1 - share))
    icc = float(number)
    if icc == 0:
        return np.full(shape, mean)
    if name == "two-point":
        # Half of the spread on either side, as far as 1 allows.
        up = min(1 - mean, sqrt(icc * mean * (1 - mean)))
        down = icc * mean * (1 - mean) / up
        return np.where(rng.random(shape) < down / (up + down), mean + up, mean - down)
    size = (1 - icc) / icc
    return rng.beta(mean * size, (1 - mean) * size, shape)


def passes(y: NDArray[Any], n: NDArray[Any], tau: float, delta: float) -> float:
    """Return the share of bundles whose row passes."""
    return float((rule.above(np.asarray(y, np.float64), n, tau) > delta).mean())


def proportions(rng: np.random.Generator, draws: int, *, above: float = 0.0) -> Iterator[Cell]:
    """Shares at the threshold (or `above` it): sizes, laws, numbers of tasks."""
    for tier, (tau, delta) in LEVELS.items():
        for k in (13, 40, 100, 200):
            if k < LEAST[tier]:
                continue
            for size in SIZES if not above else ("equal",):
                for law in LAWS:
                    n = sizes(size, k)
                    mean = tau + above * (1 - tau)
                    if "hopeless" in law and mean / (1 - float(law.split()[1]) / 100) > 1:
                        continue
                    y = rng.binomial(n, chances(rng, law, mean, (draws, k)))
                    name = f"{law}, {size}" + (f", θ {mean:.3g}" if above else "")
                    yield Cell("power" if above else "shares", tier, name, k, draws, passes(y, n, tau, delta))


def repeats(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Runs that depend on results: more where a pilot passed or failed, and repeats until a success."""
    for tier, (tau, delta) in LEVELS.items():
        for k in (40, 100, 200):
            if k < LEAST[tier]:
                continue
            for law in ("beta 0", "beta .3", "two-point .3"):
                chance = chances(rng, law, tau, (draws, k))
                pilot = rng.random((draws, k)) < chance
                for name, more in (("more where a pilot passed", pilot), ("more where it failed", ~pilot)):
                    n = np.where(more, 25, 1)
                    y = pilot + rng.binomial(n - 1, chance)
                    yield Cell("repeats", tier, f"{name}, {law}", k, draws, passes(y, n, tau, delta))
                tried = np.minimum(rng.geometric(np.maximum(chance, 1e-9)), 25)
                won = rng.random((draws, k)) < 1 - (1 - chance) ** 25
                n = np.where(won, tried, 25)
                yield Cell("repeats", tier, f"until a success, {law}", k, draws, passes(won, n, tau, delta))


def domains(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """One domain at the threshold among five."""
    for tier, (tau, delta) in {2: (0.65, 0.95), 3: (0.90, 0.99), 1: (0.40, 0.95)}.items():
        for k in (20, 50):
            if k < {1: 4, 2: 6, 3: 43}[tier]:
                continue
            # One domain at the threshold, four far above it.
            met = np.ones(draws, np.bool_)
            for mean in (tau, *[1 - (1 - tau) / 4] * 4):
                y = rng.binomial(5, chances(rng, "beta .3", mean, (draws, k)))
                met &= rule.above(y, np.full(k, 5), tau) > delta
            yield Cell("domains", tier, "one of five at the threshold, beta .3", k, draws, float(met.mean()))


def differences(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """A cascade's penalty at its limit, over separate and over shared tasks."""
    for tier, (limit, delta) in {2: (0.20, 0.95), 3: (0.10, 0.99)}.items():
        for k in (50, 100, 200):
            for name, b in (("arms apart", 0.7), ("same tasks", 0.7), ("one arm never fails", 1 - limit)):
                a = b + limit
                y_b = rng.binomial(1, chance_b := chances(rng, "beta .3", b, (draws, k)))
                chance_a = np.minimum(1, chance_b + limit) if name == "same tasks" else None
                if chance_a is None:
                    chance_a = chances(rng, "beta .3", a, (draws, k)) if a < 1 else np.ones((draws, k))
                n_a = 4
                y_a = rng.binomial(n_a, chance_a)
                limit_true = float(np.mean(chance_a) - np.mean(chance_b)) if name == "same tasks" else limit
                sides = (y_a, np.full(k, n_a)), (y_b, np.full(k, 1))
                upper = rule.upper_difference(*sides, delta, shared=name == "same tasks")
                yield Cell("cascade", tier, name, k, draws, float((upper < limit_true).mean()))


def counts(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Violations at their limit, which few tasks cause."""
    for tier, (limit, delta) in {2: (0.3, 0.95), 3: (0.1, 0.99)}.items():
        for k in (48, 100, 227):
            if k < {2: 48, 3: 227}[tier]:
                continue
            for most in (1, 2, MOST_VIOLATIONS):  # a run counts no more
                cause = rng.random((draws, k)) < limit / most
                y = 5 * (1 - cause * most / MOST_VIOLATIONS)
                share = passes(y, np.full(k, 5), 1 - limit / MOST_VIOLATIONS, delta)
                yield Cell("violations", tier, f"few tasks of {most}", k, draws, share)


def looking(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Looking after every fifth task and stopping at a pass."""
    tau, delta = LEVELS[2]
    k = 100
    y = rng.binomial(5, chances(rng, "beta .3", tau, (draws, k)))
    ever = np.zeros(draws, np.bool_)
    for stop in range(15, k + 1, 5):
        ever |= rule.above(y[:, :stop], np.full(stop, 5), tau) > delta
    yield Cell("looking", 2, "looked at every 5 tasks", k, draws, float(ever.mean()))


def families(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Tasks of one family have one chance, once unknown to the rule and once declared, as `cluster_id` is."""
    for tier, (tau, delta) in LEVELS.items():
        for size in (2, 5):
            k = 200
            chance = np.repeat(chances(rng, "beta .3", tau, (draws, k // size)), size, axis=1)
            y = rng.binomial(5, chance)
            joined = y.reshape(draws, -1, size).sum(axis=2)
            for name, won, n in (
                ("undeclared", y, np.full(k, 5)),
                ("declared", joined, np.full(k // size, 5 * size)),
            ):
                share = passes(won, n, tau, delta)
                yield Cell("families", tier, f"families of {size}, beta .3, {name}", k, draws, share)


def attempts(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Ten attempts at the threshold: with the tier's confidence each, and with what attempts must reach."""
    tau, delta = LEVELS[2]
    plain, spent = np.zeros(draws, np.bool_), np.zeros(draws, np.bool_)
    for attempt in range(1, 11):
        y = rng.binomial(5, chances(rng, "beta .3", tau, (draws, 100)))
        chance = rule.above(y, np.full(100, 5), tau)
        plain |= chance > delta
        spent |= chance > float(corrected(Fraction(str(delta)), attempt))
    yield Cell("attempts", 2, "ten attempts, no correction", 100, draws, float(plain.mean()))
    yield Cell("attempts", 2, "ten attempts, corrected", 100, draws, float(spent.mean()))
