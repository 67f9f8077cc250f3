"""Margins lost: against closed forms, never fewer with more failures, and some where drift is found."""

from __future__ import annotations

from fractions import Fraction
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from scipy import stats

from certkit.assessment.drift import drift
from certkit.assessment.drift.difference import limit, plain, variance
from certkit.assessment.drift.lost import FAR, Highest, Lost
from certkit.assessment.drift.lost import lost as told
from tests.support.drift_sides import HIGH, LOW, both, even, one, row, side

if TYPE_CHECKING:
    from certkit.assessment.drift.standing import Standing
    from tests.support.drift_sides import Cells

MARGIN = 0.05


def lost(old: Standing, new: Standing) -> float | None:
    found = told(old, new)
    return None if found is None else found.margins


def nominal(pairs: dict[str, list[tuple[int, int]]]) -> list[Any]:
    """The rows of nominal success, by domain and over all."""
    each = [row("c_nom", of, domain=domain) for domain, of in pairs.items() if of]
    return [row("c_nom", [one for of in pairs.values() for one in of]), *each] if each else []


def test_it_is_what_the_old_sides_own_noise_does_not_explain() -> None:
    old, new = one(HIGH), one(LOW)
    whole = next(row for row in old.moments if row.domain is None and row.condition is None)
    var = variance(whole)
    assert var is not None
    # the same runs are three rows, of which r_op over all is tested at the widest level
    assert lost(old, new) == pytest.approx((0.8 + stats.norm.ppf(0.03) * sqrt(var) - 0.6) / MARGIN)
    assert lost(old, old) == lost(new, old) == 0
    assert told(old, new) == Lost(lost(old, new) or 0.0, "r_op")


def test_where_clusters_agree_or_are_one_the_posterior_tells_what_may_have_been() -> None:
    def of(metric: str, *pairs: tuple[int, int]) -> float:
        return limit(plain(row(metric, pairs)), 0.03)

    # of Beta(1 + 9, 1), the normal limit is nearer to 1
    assert of("r_op", *[(4, 4)] * 9) == pytest.approx(1 + stats.norm.ppf(0.03) * stats.beta(10, 1).std())
    assert of("r_op", (8, 8)) == pytest.approx(1 + stats.norm.ppf(0.03) * stats.beta(2, 1).std())
    assert of("r_op", *[(1, 10)] * 10) == pytest.approx(stats.beta(2, 10).ppf(0.03))
    assert of("r_op", *[(0, 4)] * 9) == 0
    assert of("violations", *[(0, 4)] * 9) == pytest.approx(
        min(stats.norm.ppf(0.97) * stats.gamma(1, scale=1 / 9).std(), stats.gamma(1, scale=1 / 9).ppf(0.97))
    )
    unlike = row("violations", [(0, 4), (4, 4), (2, 4)])
    assert limit(plain(unlike), 0.03) == pytest.approx(
        0.5 + stats.norm.ppf(0.97) * sqrt(variance(unlike) or 0)
    )


def test_it_is_compared_under_the_old_mix_and_what_is_lacking_counts_as_failed() -> None:
    cells = {(d, "x_f"): even(HIGH, names=d) for d in "de"}
    old = side(cells)
    # twice as many runs of a domain that fails, and the old mix still halves the rate
    fails = {f"e{i}": (0, 20) for i in range(60)}
    assert lost(old, side({**cells, ("e", "x_f"): fails})) == lost(
        old, side({("d", "x_f"): cells["d", "x_f"]})
    )
    assert lost(old, side({})) == lost(old, side({key: {"a": (0, 1)} for key in cells}))
    assert lost(old, side({**cells, ("f", "x_f"): fails})) == 0, "of the new side alone"


def test_another_profile_or_protocol_cannot_be_compared_whatever_failed() -> None:
    ti = both("ti", [(4000 + i % 3, 1) for i in range(60)], 1000)
    for changes in (
        {"profile_digest": "sha256:q"},
        {"origin": "simulated"},
        {"methodology": "environment"},
        {"success_rule": "other"},
    ):
        assert lost(one(HIGH), one(HIGH, **changes)) is None
        assert lost(one(HIGH), structs.replace(one(HIGH, **changes), runs=(), moments=())) is None
    assert lost(one(HIGH, methodology="independent_judge"), one(HIGH, methodology="independent_judge")) == 0
    assert (
        lost(
            one(HIGH, methodology="independent_judge"), one(HIGH, methodology="independent_judge", judge="k")
        )
        is None
    )
    # another judge of traceability alone is none of success
    assert lost(one(HIGH, *ti), one(HIGH, *ti, judge="k")) == lost(one(HIGH, *ti), one(HIGH, judge="k")) == 0
    cascade = side({("d", "cascade"): even(HIGH)})
    assert lost(cascade, structs.replace(cascade, cascade_definition=None)) is None
    assert lost(one(HIGH), one(HIGH, cascade_definition=None)) == 0


def test_criteria_that_some_failures_raise_have_no_part_in_it() -> None:
    steady = both("pei", [(80 + i % 3, 1) for i in range(60)], 100)
    worse = both("pei", [(60 + i % 3, 1) for i in range(60)], 100)
    assert drift(one(HIGH, *steady), one(HIGH, *worse)).result == "DRIFTED"
    assert lost(one(HIGH, *steady), one(HIGH, *worse)) == lost(one(HIGH, *steady), one(HIGH)) == 0
    irs = both("irs", [(8 + i % 2, 10) for i in range(60)])
    assert lost(one(HIGH, *irs), one(HIGH, *irs, memory_observable=False)) == 0
    # resistance to attacks is in the rows of r_op
    attacked, fewer = side({("d", "adversarial"): even(HIGH)}), side({("d", "adversarial"): even(LOW)})
    assert (lost(attacked, fewer) or 0) > 1


def test_a_history_is_held_against_the_best_so_far_row_by_row() -> None:
    def of(d: Fraction, e: Fraction, size: int = 100, **changes: Any) -> Standing:
        cells = {
            (domain, "x_f"): even(rate, clusters=200, size=size, names=domain)
            for domain, rate in (("d", d), ("e", e))
        }
        return side(cells, **changes)

    first, second = of(Fraction(9, 10), Fraction(7, 10)), of(Fraction(7, 10), Fraction(9, 10))
    last = of(Fraction(7, 10), Fraction(7, 10))
    highest = Highest()
    assert highest.lost(last) == Lost()
    highest.add(first)
    highest.add(second)
    row_d = next(it for it in first.moments if (it.domain, it.condition) == ("d", None))
    far = 0.9 + stats.norm.ppf(FAR) * sqrt(variance(row_d) or 0)
    assert highest.lost(last).margins == pytest.approx((far - 0.7) / MARGIN)
    assert highest.lost(second).margins == pytest.approx((far - 0.7) / MARGIN)
    assert highest.lost(second).row == "r_op in d"
    # what few runs show takes no mark's place, and what was told is told, of its rows alone
    highest.add(of(Fraction(9, 10), Fraction(9, 10), size=10))
    assert highest.lost(last).margins == pytest.approx((far - 0.7) / MARGIN)
    highest.told(second)
    highest.add(second)
    assert highest.lost(second) == Lost(0.0, highest.lost(second).row)
    assert highest.lost(last).margins == pytest.approx((far - 0.7) / MARGIN)
    assert highest.lost(last).row == "r_op in e"
    # whatever cannot be compared stands beside it
    other = structs.replace(last, success_rule="other")
    assert highest.lost(other) == Lost()
    highest.add(other)
    assert (highest.lost(other).margins, highest.lost(last).margins > 1) == (0, True)
    begun = Highest()
    for it in (structs.replace(first, success_rule="other"), first):
        begun.add(it)
    assert begun.lost(last).margins == pytest.approx((far - 0.7) / MARGIN)


def test_of_a_margin_of_nothing_any_loss_is_all() -> None:
    def strict(of: Standing) -> Standing:
        return structs.replace(
            of, criteria=tuple(structs.replace(it, margin=Fraction(0)) for it in of.criteria)
        )

    assert lost(strict(one(HIGH)), strict(one(HIGH))) == 0
    assert lost(strict(one(HIGH)), strict(one(LOW))) == inf
    unstated = structs.replace(one(LOW), criteria=())
    assert lost(structs.replace(one(HIGH), criteria=()), unstated) == 0


CELLS = [(domain, condition) for domain in "de" for condition in ("x_f", "x_g")]
size = st.sampled_from([1, 2, 5, 10, 40, 400])
cluster = size.flatmap(lambda n: st.tuples(st.integers(0, n) | st.just(n), st.just(n)))
fewer = st.dictionaries(st.sampled_from("abcdefgh"), cluster, min_size=1, max_size=8)
drawn = st.dictionaries(st.sampled_from(CELLS), fewer, min_size=1, max_size=4)
rated = st.fixed_dictionaries({domain: st.lists(cluster, max_size=4) for domain in "de"})


@given(drawn, rated, drawn, rated, st.data())
def test_no_failure_leaves_fewer(
    old: Cells,
    before: dict[str, list[tuple[int, int]]],
    new: Cells,
    now: dict[str, list[tuple[int, int]]],
    data: st.DataObject,
) -> None:
    first = side(old, *nominal(before))
    margins = [lost(first, side(new, *nominal(now)))]
    worse, rest = {key: dict(of) for key, of in new.items()}, {key: list(of) for key, of in now.items()}
    for _ in range(data.draw(st.integers(1, 4))):
        count = data.draw(st.sampled_from([1, 3, 20, 500]))
        if data.draw(st.booleans()):
            key, name = (
                data.draw(st.sampled_from([*CELLS, ("f", "x_f"), ("d", "x_h")])),
                data.draw(st.sampled_from("abxy")),
            )
            y, n = worse.setdefault(key, {}).get(name, (0, 0))
            worse[key][name] = (y, n + count) if not y or data.draw(st.booleans()) else (max(0, y - count), n)
        else:
            listed = rest[data.draw(st.sampled_from("de"))]
            at = data.draw(st.integers(0, len(listed)))
            y, n = listed.pop(at) if at < len(listed) else (0, 0)
            listed.append((y, n + count) if not y or data.draw(st.booleans()) else (max(0, y - count), n))
        margins.append(lost(first, side(worse, *nominal(rest))))
    assert None not in margins
    assert margins == sorted(margins, key=lambda value: value or 0.0)


def test_wherever_a_test_finds_drift_there_is_something_lost() -> None:
    drifted = 0
    draws = iter((np.random.PCG64(5).random_raw(200_000) >> np.uint64(11)).astype(float) / 2.0**53)
    for _ in range(1500):
        high, low, spread = 1 - next(draws) / 3, next(draws), next(draws) < 0.5
        clusters, runs = int(2 + 30 * next(draws)), int(1 + 20 * next(draws))

        def cells(rate: float, clusters: int = clusters, runs: int = runs, *, spread: bool = spread) -> Cells:
            found: Cells = {}
            for key in CELLS[:2]:
                shift = (next(draws) - 0.5) / 2
                each = [
                    round(runs * min(1, max(0, rate + shift * spread * (-1) ** i))) for i in range(clusters)
                ]
                found[key] = {f"{key[1]}{i}": (y, runs) for i, y in enumerate(each)}
            return found

        old, new = side(cells(high)), side(cells(min(high, low + 0.5)))
        if drift(old, new).result == "DRIFTED":
            drifted += 1
            assert (lost(old, new) or 0) > 0
    assert drifted >= 300
