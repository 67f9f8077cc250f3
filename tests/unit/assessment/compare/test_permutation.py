"""Permutation tests against every arrangement tried one by one with exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb, sqrt

import numpy as np
import pytest

from certkit.assessment.compare import permutation
from certkit.assessment.compare.permutation import PERMUTATIONS, exchange, swap

PARTS = [Fraction(*pair) for pair in ((3, 10), (-1, 10), (1, 5), (2, 5), (-1, 5), (1, 10), (1, 2))]


def flipped(parts: list[Fraction]) -> Fraction:
    observed = abs(sum(parts, Fraction(0)))
    signs = list(product((1, -1), repeat=len(parts)))
    hits = sum(
        abs(sum((s * d for s, d in zip(row, parts, strict=True)), Fraction(0))) >= observed for row in signs
    )
    return Fraction(hits, len(signs))


def test_flips_of_signs_are_all_tried() -> None:
    found = swap(np.array([float(part) for part in PARTS]))
    assert (found.method, found.arrangements, found.seed) == ("exact", 2**7, None)
    assert found.p == float(flipped(PARTS))
    assert found.least == 2 / 2**7


def test_clusters_that_contribute_nothing_are_not_arranged() -> None:
    found = swap(np.array([0.25, 0.0, -0.125, 0.0, 0.5]))
    assert (found.arrangements, found.p) == (8, float(flipped([Fraction(2), Fraction(-1), Fraction(4)])))


def test_the_same_twice_has_p_one() -> None:
    found = swap(np.zeros(30))
    assert (found.p, found.least, found.arrangements) == (1.0, 1.0, 1)


def test_rounding_breaks_no_tie() -> None:
    # 0.1 + 0.2 is not 0.3 in binary: of the eight flips, four reach the size of what was observed, 0.
    found = swap(np.array([0.1, 0.2, -0.3]))
    assert found.p == 1.0
    assert swap(np.array([0.1, 0.2, 0.3])).p == 2 / 8


def test_drawn_arrangements_agree_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = np.array([float(part) for part in PARTS])
    exact = swap(parts).p
    monkeypatch.setattr(permutation, "EXACT", 1)
    drawn = swap(parts, seed=3)
    assert (drawn.method, drawn.arrangements, drawn.seed) == ("monte-carlo", PERMUTATIONS, 3)
    assert drawn.p == pytest.approx(exact, abs=4 * sqrt(exact * (1 - exact) / PERMUTATIONS))
    assert drawn.least == 1 / (PERMUTATIONS + 1)
    assert swap(parts, seed=3) == drawn


def test_a_drawn_p_is_never_zero() -> None:
    assert swap(np.ones(60)).p == 1 / (PERMUTATIONS + 1)


@pytest.mark.parametrize("name", ["swap", "exchange"])
def test_how_much_is_held_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    values = np.sin(np.arange(1.0, 41.0))

    def found() -> permutation.Permutation:
        if name == "swap":
            return swap(values)
        return exchange(values, np.ones(40), np.arange(40) % 3 == 0, np.arange(40) % 2)

    whole = found()
    assert whole.method == "monte-carlo"
    monkeypatch.setattr(permutation, "_CHUNK", 500)
    assert found() == whole


Cluster = tuple[Fraction, int, int]  # rest, runs, stratum


def t_squared(clusters: list[Cluster], first: set[int]) -> Fraction | None:
    """The squared statistic of one arrangement, from its definition; None where its variance is 0."""
    total = sum(runs for _, runs, _ in clusters)
    difference = variance = Fraction(0)
    sides = [first, set(range(len(clusters))) - first]
    for stratum in {s for _, _, s in clusters}:
        members = {i for i, c in enumerate(clusters) if c[2] == stratum}
        weight = Fraction(sum(clusters[i][1] for i in members), total)
        for side, sign in zip(sides, (1, -1), strict=True):
            here = members & side
            runs = sum(clusters[i][1] for i in here)
            mean = sum(clusters[i][0] for i in here) / Fraction(runs)
            squares = sum((clusters[i][0] - mean * clusters[i][1]) ** 2 for i in here) / Fraction(runs) ** 2
            variance += Fraction(len(side), len(side) - 1) * weight**2 * squares
            difference += sign * weight * mean
    return difference**2 / variance if variance else None


STRATA: list[Cluster] = [
    (Fraction(3, 2), 4, 0),
    (Fraction(-1), 3, 0),
    (Fraction(1, 2), 2, 0),
    (Fraction(-2), 5, 0),
    (Fraction(1), 3, 0),
    (Fraction(2), 6, 1),
    (Fraction(-1, 2), 2, 1),
    (Fraction(-3, 2), 3, 1),
    (Fraction(1, 4), 4, 1),
]


def test_whole_clusters_change_hands_within_their_stratum() -> None:
    first = {0, 2, 5, 8}
    observed = t_squared(STRATA, first)
    assert observed is not None
    arranged = [
        set(one) | set(other) for one in combinations(range(5), 2) for other in combinations(range(5, 9), 2)
    ]
    hits = 0
    for sides in arranged:
        value = t_squared(STRATA, sides)
        hits += value is None or value >= observed
    rest, runs, stratum = (np.array([float(c[i]) for c in STRATA]) for i in range(3))
    found = exchange(rest, runs, np.isin(np.arange(9), list(first)), stratum.astype(np.int64))
    assert (found.method, found.arrangements) == ("exact", comb(5, 2) * comb(4, 2))
    assert found.p == hits / len(arranged)


def test_drawn_exchanges_agree_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rest, runs, stratum = (np.array([float(c[i]) for c in STRATA]) for i in range(3))
    first = np.isin(np.arange(9), [0, 2, 5, 8])
    exact = exchange(rest, runs, first, stratum.astype(np.int64)).p
    monkeypatch.setattr(permutation, "EXACT", 1)
    drawn = exchange(rest, runs, first, stratum.astype(np.int64))
    assert drawn.method == "monte-carlo"
    assert drawn.p == pytest.approx(exact, abs=4 * sqrt(exact * (1 - exact) / PERMUTATIONS))


def test_clusters_that_differ_between_the_agents_alone_are_the_rarest_arrangement() -> None:
    rest = np.array([0.5] * 4 + [-0.5] * 4)
    found = exchange(rest, np.ones(8), rest > 0, np.zeros(8, np.int64))
    assert found.p == found.least == 2 / comb(8, 4)


def test_clusters_without_any_difference_have_p_one() -> None:
    found = exchange(np.zeros(8), np.ones(8), np.arange(8) < 4, np.zeros(8, np.int64))
    assert (found.p, found.least) == (1.0, 1.0)
