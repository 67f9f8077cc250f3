"""Drift and trend over lineages that are drawn: how often nothing is flagged, and how often a loss is found.

A lineage has eight passports of five domains under five fault conditions. Tasks are the same in all of them,
or half of them, or none; a task's chance follows a Beta law. The rule of `certkit.comparison.drift` is taken
here over many lineages at once; `tests/unit/comparison/test_study_of_drift.py` holds it against the program's
own. The 18 rows are those that the program tests under ``hb-eval-2026``: r_op overall, by domain and by
condition, and seven other means over tasks, which a loss of success leaves as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from scipy.special import stdtr

from certkit.comparison.compare import ALPHA
from certkit.comparison.drift import ROW_LEVEL, TREND_LEVEL
from tests.study.cells import Cell, chances

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Passports = Sequence[Floats] | Floats

DOMAINS: Final = 5
CONDITIONS: Final = 5
OTHERS: Final = 7
"""Rows beside r_op: normal success, recovery, planning, memory, traceability, violations, attacks."""
MARGIN: Final = 0.05
RATE: Final = 0.85
PASSPORTS: Final = 8


class Design(NamedTuple):
    """Tasks and runs of each, the share of tasks that all passports have, and how tasks differ."""

    tasks: int
    runs: int
    shared: float
    law: str


DESIGNS: Final = ((100, 10, 1.0), (100, 10, 0.5), (100, 10, 0.0), (200, 5, 1.0))


def contrast(x: Passports, weights: Sequence[float], shared: int) -> tuple[Floats, Floats]:
    """Return the loss and its p of every lineage; each of `x` is a passport, by lineage and task.

    The first `shared` tasks are the same on every passport, the others are its own.
    """
    a, k = np.array(weights), np.array([side.shape[1] for side in x])
    means = np.array([side.mean(axis=1) for side in x])
    u = [(side - mean[:, None]) / side.shape[1] for side, mean in zip(x, means, strict=True)]
    together = sum(weight * part[:, :shared] for weight, part in zip(a, u, strict=True))
    squares = (together**2).sum(axis=1)
    squares += a**2 @ [(part[:, shared:] ** 2).sum(axis=1) for part in u]
    if k.min() < k.max():
        own = np.array([(part**2).sum(axis=1) for part in u])
        squares += np.maximum(0, (a**2 / k).sum() * (k**2 @ own) / k.sum() - a**2 @ own)
    loss = a @ means
    error = np.sqrt(k.min() / (k.min() - 1) * squares)
    p = stdtr(k.min() - 1, -np.divide(loss, error, out=np.zeros_like(loss), where=error > 0))
    return loss, np.where(error > 0, p, np.where(np.round(loss, 12) > 0, 2.0 ** -k.min(), 1.0))


def slopes(count: int) -> Floats:
    """Return the weights of the loss that a line fitted to `count` passports has from first to last."""
    t = np.arange(count) - (count - 1) / 2
    weights: Floats = -t * (count - 1) / (t @ t)
    return weights


def by_domain(x: Passports) -> list[Passports]:
    """Return r_op overall and in every domain, each by passport; tasks are sorted by domain."""
    return [x, *zip(*(np.split(side, DOMAINS, axis=1) for side in x), strict=True)]


def rows(x: Floats, others: Floats) -> list[Passports]:
    """Return the 18 rows, each by passport, lineage and task.

    Args:
        x: success by passport, lineage, task and condition.
        others: the other means by row, passport, lineage and task.
    """
    return [*by_domain(x.mean(axis=-1)), *np.moveaxis(x, -1, 0), *others]


def flagged(parts: Iterable[Passports], shared: float) -> NDArray[np.bool_]:
    """Tell for every lineage whether the second of two passports is flagged in any of the rows."""
    found = [
        contrast([halves(side, shared) for side in part], (1, -1), round(shared * part[0].shape[1]))
        for part in parts
    ]
    losses, p = (np.array(column) for column in zip(*found, strict=True))
    result: NDArray[np.bool_] = np.any((adjusted(p) <= ROW_LEVEL) & (losses >= MARGIN - 1e-9), axis=0)
    return result


def adjusted(p: Floats) -> Floats:
    """Return Benjamini and Hochberg's adjusted p of every lineage; `p` is by row and lineage."""
    order = np.argsort(p, axis=0)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, len(p) + 1)[:, None], axis=0)
    ranked = np.take_along_axis(p * len(p) / ranks, order, axis=0)
    least = np.minimum.accumulate(ranked[::-1], axis=0)[::-1]
    found: Floats = np.take_along_axis(least, ranks - 1, axis=0)
    return found


def halves(x: Floats, shared: float) -> Floats:
    """Return the tasks of a domain with the shared ones first; they are dealt by turns."""
    chosen = _shared(x.shape[-1], shared)
    return np.concatenate([x[..., chosen], x[..., ~chosen]], axis=-1)


def _shared(k: int, share: float) -> NDArray[np.bool_]:
    """Choose the shared tasks of `k`, as evenly as can be."""
    steps = np.floor(np.arange(k + 1) * share + 1e-9)
    return np.asarray(np.diff(steps) > 0)


def declining(x: Floats, shared: float) -> NDArray[np.bool_]:
    """Tell for every lineage whether the trend over its passports, up to any from the third, is flagged."""
    found: list[Any] = []
    number = round(shared * x.shape[2])
    for count in range(3, len(x) + 1):
        loss, p = contrast(halves(x[:count], shared), slopes(count).tolist(), number)
        found.append((p <= TREND_LEVEL) & (loss >= MARGIN - 1e-9))
    ever: NDArray[np.bool_] = np.any(found, axis=0)
    return ever


def lineages(
    rng: np.random.Generator,
    draws: int,
    design: Design,
    lost: Sequence[Sequence[float]],
    rate: float = RATE,
) -> Floats:
    """Return the value of every task by passport, lineage, task and condition.

    Args:
        rng: draws.
        draws: how many lineages.
        design: of each passport; runs are spread over the conditions.
        lost: points by passport and domain.
        rate: of success in the first passport.
    """
    k, runs, shared, law = design
    same, each = _shared(k, shared), max(1, runs // CONDITIONS)
    kept = chances(rng, law, rate, (draws, k))
    values = []
    for points in lost:
        chance = np.where(same, kept, chances(rng, law, rate, (draws, k)))
        chance = chance * (1 - np.repeat(np.asarray(points, np.float64), k // DOMAINS) / rate)
        values.append(rng.binomial(each, chance[..., None], (draws, k, CONDITIONS)) / each)
    return np.array(values)


def unchanged(rng: np.random.Generator, draws: int, design: Design, passports: int = 2) -> Floats:
    """Return the other rows of lineages, by row, passport, lineage and task: nothing changes in them."""
    rounds = (lineages(rng, draws, design, [NONE] * passports) for _ in range(OTHERS))
    return np.array([x.mean(axis=-1) for x in rounds])


NONE: Final = [0.0] * DOMAINS
CHANGES: Final = {
    "-10 in all": [0.1] * DOMAINS,
    "-10 in one domain": [0.1, *NONE[1:]],
    "-20 in one domain": [0.2, *NONE[1:]],
}


def drift(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """A lineage in which nothing changes, and one that loses: at once, or a point with every passport."""
    steps = [[0.01 * step] * DOMAINS for step in range(PASSPORTS)]
    for k, runs, shared in DESIGNS:
        for law in ("beta .1", "beta .3"):
            design = Design(k, runs, shared, law)
            told = "all" if shared == 1 else "half" if shared else "no"
            name = f"{runs} runs, {told} tasks shared, {law}"
            for change, lost in (
                ("nothing in eight passports", [NONE] * PASSPORTS),
                ("-1 with each of eight", steps),
            ):
                x = lineages(rng, draws, design, lost)
                others = unchanged(rng, draws, design, PASSPORTS)
                pairs = np.any(
                    [
                        flagged(rows(x[at : at + 2], others[:, at : at + 2]), shared)
                        for at in range(PASSPORTS - 1)
                    ],
                    axis=0,
                )
                trend = declining(x.mean(axis=-1), shared)
                for how, found in (("", pairs | trend), (": pairs", pairs), (": trend", trend)):
                    yield Cell("drift", 0, f"{change}{how}, {name}", k, draws, float(found.mean()))
            for change, by_domain_lost in CHANGES.items():
                two = lineages(rng, draws, design, [NONE, by_domain_lost])
                share = float(flagged(rows(two, unchanged(rng, draws, design)), shared).mean())
                yield Cell("drift", 0, f"{change}, {name}", k, draws, share)


def large(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """A loss in one domain of many tasks: how many it takes to find it in 80 %."""
    for k in (250, 500):
        for law in ("beta .1", "beta .3"):
            design = Design(k, 5, 1.0, law)
            two = lineages(rng, draws, design, [NONE, CHANGES["-10 in one domain"]])
            share = float(flagged(rows(two, unchanged(rng, draws, design)), 1.0).mean())
            yield Cell("drift", 0, f"-10 in one domain, 5 runs, all tasks shared, {law}", k, draws, share)


def mixes(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Two conditions, of which the harder is one half of the old runs and four fifths of the new ones.

    A task's value takes both in the old proportions, as the program does.
    """
    k, runs = 100, 10
    for icc in (".1", ".3"):
        for name, lost in (("nothing", 0.0), ("-10 in all", 0.1)):
            easy, hard = (chances(rng, f"beta {icc}", rate, (draws, k)) for rate in (0.95, 0.75))
            sides = []
            for share, factor in ((0.5, 1.0), (0.8, 1 - lost / RATE)):
                n = round(share * runs)
                x = rng.binomial(n, hard * factor) / n + rng.binomial(runs - n, easy * factor) / (runs - n)
                sides.append(x / 2)
            others = unchanged(rng, draws, Design(k, runs, 1.0, f"beta {icc}"))
            parts = [*by_domain(np.array(sides)), *others]
            found = float(flagged(parts, 1.0).mean())
            yield Cell("mix", 0, f"{name}, half of the runs hard, then 80 %, beta {icc}", k, draws, found)


def sampled(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Passports of 2,000 tasks that keep the 1,000 with the smallest tags, three quarters of them shared."""
    every, most, runs, same = 2_000, 1_000, 5, 1_500
    for icc in (".1", ".3"):
        for name, lost in (("nothing", 0.0), ("-6 in all", 0.06)):
            hits = 0
            for _ in range(0, draws, 10):
                tag = rng.random((2, every))
                tag[1, :same] = tag[0, :same]
                kept = [np.argsort(side)[:most] for side in tag]
                shared = np.intersect1d(kept[0][kept[0] < same], kept[1][kept[1] < same])
                chance = chances(rng, f"beta {icc}", RATE, (10, 2 * every))
                values = []
                for number, side in enumerate(kept):
                    own = np.setdiff1d(side, shared)
                    # The tasks that one side alone keeps are other tasks on the other.
                    apart = np.where(own < same, own, own + number * (every - same))
                    chosen = np.concatenate([shared, apart])
                    factor = 1 - lost / RATE * number
                    values.append(rng.binomial(runs, chance[:, chosen] * factor) / runs)
                loss, p = contrast(np.array(values), (1, -1), len(shared))
                hits += int(np.count_nonzero((p <= ROW_LEVEL) & (loss >= MARGIN - 1e-9)))
            share = hits / (-(-draws // 10) * 10)
            yield Cell("sample", 0, f"{name}, r_op overall, beta {icc}", every, draws, share)


def uneven(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Passports with other numbers of tasks, none of them shared: pairs, and trends of three."""

    def drawn(
        tasks: Sequence[int], rate: float, lost: Sequence[float] = NONE, shape: str = "beta .3"
    ) -> list[Floats]:
        points = [NONE] * (len(tasks) - 1) + [lost]
        designs = [Design(k, 5, 0.0, shape) for k in tasks]
        pairs = zip(designs, points, strict=True)
        return [lineages(rng, draws, design, [part], rate)[0] for design, part in pairs]

    for rate in (0.85, 0.95):
        for old, new in ((50, 500), (100, 500), (100, 1000), (100, 150), (500, 50)):
            for change, lost in {"nothing": NONE, **CHANGES}.items():
                x = drawn((old, new), rate, lost)
                others = [[side.mean(axis=-1) for side in drawn((old, new), RATE)] for _ in range(OTHERS)]
                under = [[side[..., place] for side in x] for place in range(CONDITIONS)]
                parts = [*by_domain([side.mean(axis=-1) for side in x]), *under, *others]
                share = float(flagged(parts, 0.0).mean())
                yield Cell("uneven", 0, f"{change}, then {new} tasks, rate {rate}", old, draws, share)
        for old, new in ((10, 100), (50, 500)):
            three = [side.mean(axis=-1) for side in drawn((old, new, new), rate)]
            loss, p = contrast(three, slopes(3).tolist(), 0)
            share = float(((p <= TREND_LEVEL) & (loss >= MARGIN - 1e-9)).mean())
            yield Cell("uneven", 0, f"nothing, then twice {new}: trend, rate {rate}", old, draws, share)


def called_different(x: Passports, shared: int) -> float:
    """Return the share of pairs of agents of which one is called better; each has two prior tasks."""
    sides = [np.pad(side, ((0, 0), (0, 2)), constant_values=((0, 0), (0, 1))) for side in x]
    for side in sides:
        side[:, -2] = 0.0
    _, p = contrast(sides, (1, -1), shared)
    return float((np.minimum(p, 1 - p) < ALPHA / 2).mean())


def compare(rng: np.random.Generator, draws: int) -> Iterator[Cell]:
    """Two agents of equal rate: both sampled, or one of them deterministic."""
    for rate in (0.7, 0.85, 0.95):
        for first, second in ((20, 20), (20, 30), (20, 200), (200, 200)):
            for name, laws in (
                ("ICC .3", ("beta .3", "beta .3")),
                ("ICC .7 against 0", ("beta .7", "beta 0")),
            ):
                sides = [
                    rng.binomial(5, chances(rng, law, rate, (draws, k))) / 5
                    for k, law in zip((first, second), laws, strict=True)
                ]
                told = f"{name}, {second} tasks of the other agent, rate {rate}"
                yield Cell("compare", 0, told, first, draws, called_different(sides, 0))
    for rate in (0.85, 0.95, 0.99):
        for k in (10, 20, 50, 100, 200):
            for law in ("beta 0", "beta .3"):
                chance = chances(rng, law, rate, (draws, k))
                sides = [rng.binomial(n, chance) / n for n in (1, 10)]
                told = f"deterministic against sampled, same tasks, {law}, rate {rate}"
                yield Cell("compare", 0, told, k, draws, called_different(sides, k))
