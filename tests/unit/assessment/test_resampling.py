"""Seeded resampling: the stream, the counts, the intervals, against loops in plain Python."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from certkit.assessment.statistics import resampling
from certkit.assessment.statistics.resampling import SEED, Stream, bootstrap, percentiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.statistics.resampling import By

TASK = ["t3", "t1", "t1", "t2", "t3", "t2", "t4", "t4"]
AGENT = ["a", "a", "b", "b", "b", "a", "a", "b"]
Y = [3, 1, 0, 2, 2, 0, 4, 1]
N = [4, 2, 2, 2, 4, 1, 4, 3]


def halves(seed: int, count: int) -> list[int]:
    """The 32-bit numbers of a seed: the low half of each raw word, then the high one."""
    words = np.random.PCG64(seed).random_raw((count + 1) // 2).tolist()
    return [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)][:count]


def times(seed: int, sizes: Sequence[int], draws: int) -> list[list[list[int]]]:
    """How often each block is drawn: per size, per draw; every size continues the stream."""
    numbers = iter(halves(seed, 2 * draws * sum(sizes)))
    found = []
    for size in sizes:
        rows = []
        for _ in range(draws):
            drawn = [next(numbers) * size >> 32 for _ in range(size)]
            rows.append([drawn.count(block) for block in range(size)])
        found.append(rows)
    return found


def oracle(by: By, draws: int, seed: int) -> list[float]:
    tasks, agents = sorted(set(TASK)), sorted(set(AGENT))
    if by == "both":
        few, many = times(seed, [len(agents), len(tasks)], draws)
        weights = [
            [(m[tasks.index(t)], f[agents.index(a)]) for t, a in zip(TASK, AGENT, strict=True)]
            for m, f in zip(many, few, strict=True)
        ]
        product = [[one * other for one, other in row] for row in weights]
    else:
        labels, names = (TASK, tasks) if by == "task" else (AGENT, agents)
        product = [
            [row[names.index(label)] for label in labels] for row in times(seed, [len(names)], draws)[0]
        ]
    sums = [
        (sum(w * y for w, y in zip(row, Y, strict=True)), sum(w * n for w, n in zip(row, N, strict=True)))
        for row in product
    ]
    return sorted(y / n for y, n in sums if n)


@pytest.mark.parametrize("by", ["task", "agent", "both"])
def test_an_interval_is_the_order_statistics_of_the_drawn_ratios(by: By) -> None:
    draws = 400
    values = oracle(by, draws, seed=7)
    rank = floor((len(values) + 1) * 0.025)
    found = bootstrap(Y, N, TASK, AGENT, by=by, seed=7, draws=draws)
    assert (found.low, found.high) == (values[rank - 1], values[-rank])
    assert (found.value, found.draws, found.seed) == (sum(Y) / sum(N), len(values), 7)
    assert (found.by, found.blocks, found.level) == (by, (4, 2), 0.95)


def test_the_stream_is_the_one_that_numpy_promises() -> None:
    # python -c "import numpy as np; print(np.random.PCG64(26).random_raw(2))", NumPy 2.4.6
    assert Stream(26).words(2).tolist() == [9068399419970302404, 4323908029266571262]
    assert SEED == 26


@pytest.mark.parametrize("by", ["task", "agent", "both"])
def test_the_order_of_observations_changes_nothing(by: By) -> None:
    y = [value / 7 for value in Y]
    order = [5, 2, 7, 0, 1, 6, 3, 4]
    shuffled = ([column[place] for place in order] for column in (y, N, TASK, AGENT))
    assert bootstrap(y, N, TASK, AGENT, by=by) == bootstrap(*shuffled, by=by)


@pytest.mark.parametrize("by", ["task", "both"])
def test_how_much_is_held_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch, by: By) -> None:
    whole = bootstrap(Y, N, TASK, AGENT, by=by)
    monkeypatch.setattr(resampling, "_CHUNK", 9)
    assert bootstrap(Y, N, TASK, AGENT, by=by) == whole


def test_one_block_shows_no_spread() -> None:
    found = bootstrap(Y, N, ["t"] * 8, AGENT)
    assert (found.value, found.low, found.high) == (13 / 22, None, None)
    assert bootstrap(Y, N, ["t"] * 8, AGENT, by="both").low is None
    assert bootstrap(Y, N, ["t"] * 8, AGENT, by="agent").low is not None


def test_draws_without_a_run_are_left_out() -> None:
    # Two observations that share neither task nor agent: a draw of task 1 and agent 2 alone holds nothing.
    found = bootstrap([1, 0], [1, 1], ["s", "t"], ["a", "b"], by="both", draws=1000)
    # Each side draws one of its two labels twice with probability 1/4; opposite ones: 2 · 1/16.
    assert 0.85 < found.draws / 1000 < 0.90


def test_an_interval_respects_clusters() -> None:
    # 40 tasks of 25 like runs each: the standard error is √(p(1 - p)/40), five times that of 1,000 runs.
    y = np.repeat([1, 1, 1, 0], 250)
    task = np.repeat(np.arange(40), 25)
    found = bootstrap(y, np.ones(1000), task, np.zeros(1000))
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * (0.75 * 0.25 / 40) ** 0.5, rel=0.1)


def test_percentiles_keep_to_the_outermost_where_draws_are_few() -> None:
    assert percentiles(np.array([3.0, 1.0, 2.0]), 0.95) == (1.0, 3.0)
    assert percentiles(np.arange(1.0, 40.0), 0.95) == (1.0, 39.0)
    assert percentiles(np.arange(1.0, 2000.0), 0.95) == (50.0, 1950.0)
