"""Looking while the evidence grows: an agent at the threshold, judged every ten runs until it passes."""

from __future__ import annotations

from functools import cache
from math import log
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs

from certkit.assessment.bounded import anytime
from tests.study.draws import (
    LEVELS,
    Cell,
    Drawn,
    bounded,
    drawn,
    markdown,
    percent,
    table,
    uniforms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.study.draws import Integers, Truths

RUNS: Final = 1000
STEP: Final = 10
NOTED: Final = 100
"""Every so many runs it is noted who has passed."""

LEVEL: Final = LEVELS[2]
READINGS: Final = {
    "table": "table",
    "bounded": "bounded, fixed number",
    "anytime": "bounded, at any time",
}


class Order(NamedTuple):
    """How runs arrive: of which cluster each is, and how alike the runs of one are."""

    name: str
    words: str
    cluster: Integers
    icc: float


_RUN: Final = np.arange(RUNS)
ORDERS: Final = (
    Order("alone", "every run a task of its own", _RUN, 0.0),
    Order("in turn", "40 tasks in turn, ICC 0.1", _RUN % 40, 0.1),
    Order("in blocks", "40 tasks one after the other, ICC 0.1", _RUN // 25, 0.1),
)


def outcomes(seed: int, draws: int, order: Order) -> Integers:
    """Return success of every run, draws × runs, at the threshold.

    By Pólya's urn: after s successes in m runs of a cluster, the next succeeds with probability
    (a + s)/(a + b + m), which makes the clusters beta-binomial.
    """
    chance = uniforms(seed, f"stopping {order.name}", (draws, RUNS))
    tau = float(LEVEL.tau)
    if order.icc == 0:
        return (chance < tau).astype(np.int64)
    size = 1 / order.icc - 1
    success = np.empty((draws, RUNS), np.int64)
    seen = np.zeros(int(order.cluster.max()) + 1, np.int64)
    won = np.zeros((draws, len(seen)))
    for run, cluster in enumerate(order.cluster.tolist()):
        success[:, run] = chance[:, run] < (tau * size + won[:, cluster]) / (size + seen[cluster])
        won[:, cluster] += success[:, run]
        seen[cluster] += 1
    return success


def looks(order: Order, success: Integers) -> Iterator[tuple[int, Integers, Integers]]:
    """Yield, at each look, the runs so far, and the successes and runs of every cluster met so far."""
    held = np.zeros((len(success), int(order.cluster.max()) + 1), np.int64)
    for stop in range(STEP, RUNS + 1, STEP):
        for run in range(stop - STEP, stop):
            held[:, order.cluster[run]] += success[:, run]
        n = np.bincount(order.cluster[:stop])
        yield stop, held[:, : len(n)], n


def ever(seed: int, draws: int, order: Order) -> list[Cell]:
    """Return the shares that have passed by each look, under each reading."""
    passed = {reading: np.zeros(draws, np.bool_) for reading in READINGS}
    cells = []
    for stop, y, n in looks(order, outcomes(seed, draws, order)):
        for reading, now in _read(order, y, n, passed["anytime"]).items():
            passed[reading] |= now
            if stop % NOTED:
                continue
            hits, k = int(passed[reading].sum()), len(n)
            section = f"stopping, {order.name}"
            cells.append(Cell(section, reading, 2, k, stop, order.icc, float(LEVEL.tau), 1, draws, hits))
    return cells


def _read(order: Order, y: Integers, n: Integers, done: Truths) -> dict[str, Truths]:
    found = _singles(y.sum(axis=1), len(n)) if order.name == "alone" else drawn(y, n)
    by_table = table(found, LEVEL)
    at_any_time = np.zeros(len(y), np.bool_)
    # A verdict at any time needs the table reading too, as every bounded one does.
    for draw in np.flatnonzero(by_table & ~done).tolist():
        at_any_time[draw] = (
            _evident(int(found.y[draw]), len(n)) if order.name == "alone" else _proven(y[draw], n)
        )
    return {"table": by_table, "bounded": bounded(found, LEVEL), "anytime": at_any_time}


def _proven(y: Integers, n: Integers) -> bool:
    means, counts = anytime.distinct(y, n, 0, 1)
    return anytime.log_evidence(means, counts, float(LEVEL.tau)) >= -log(1 - float(LEVEL.delta))


@cache
def _evident(successes: int, n: int) -> bool:
    y = (np.arange(n) < successes).astype(np.int64)
    return _proven(y, np.ones_like(y))


def _singles(successes: Integers, n: int) -> Drawn:
    """Return the draws of runs that are clusters of their own: equal successes have equal sums."""
    kinds, back = np.unique(successes, return_inverse=True)
    y = (np.arange(n) < kinds[:, None]).astype(np.int64)
    found = drawn(y, np.ones(n, np.int64))
    columns = {name: getattr(found.sample, name)[back] for name in ("mean", "variance", "mixed")}
    return found._replace(y=found.y[back], sample=structs.replace(found.sample, **columns))


def stopping(seed: int, draws: int, tick: Callable[[str], None]) -> list[Cell]:
    """Return false passes by looks, for every order of arrival."""
    cells = []
    for order in ORDERS:
        tick(order.words)
        cells += ever(seed, draws, order)
    return cells


def stopping_table(cells: Sequence[Cell]) -> str:
    """Return the table of who has passed by the first hundred, the first half and all looks."""
    rows = []
    for order in ORDERS:
        for reading, words in READINGS.items():
            found = [
                cell
                for cell in cells
                if (cell.section, cell.reading) == (f"stopping, {order.name}", reading)
                and cell.n in {100, 500, RUNS}
            ]
            rows.append(
                [
                    f"{order.words}: {words}",
                    *(f"{percent(cell.share)} ({percent(cell.error)})" for cell in found),
                ]
            )
    return markdown(("arrival and reading", "by run 100", "by run 500", "by run 1,000"), rows)
