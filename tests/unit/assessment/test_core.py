"""What a row may miss its threshold by on core evidence, just inside and just outside.

Core runs are one of each task. So are easy runs of an own kind, which lift the rate of all runs. With s of k
tasks solved, p = s/k and one squared standard error over tasks is p(1 − p)/(k − 1):

| runs | solved | rate | standard error |
|---|---|---|---|
| core | 1 of 10 | 0.1 | √(0.09/9) = 0.1 |
| and 5 easy | 6 of 15 | 0.4 | √(0.24/14) = 0.131 |
| core | 13 of 26 | 0.5 | √(0.25/25) = 0.1 |
| and 39 easy | 52 of 65 | 0.8 | √(0.16/64) = 0.05 |
| core | 2 of 20 | 0.1 | √(0.09/19) = 0.0688 |
| and 10 easy | 12 of 30 | 0.4 | √(0.24/29) = 0.091 |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from certkit.assessment.assessment import Status
from certkit.assessment.profile_file import parse_profile
from certkit.ground.errors import Exit
from tests.support import build
from tests.support.build import runs

if TYPE_CHECKING:
    from certkit.assessment.evaluation import Evaluation
    from tests.support.bundles import Run


class Padded(NamedTuple):
    """Core runs, how many of them succeed, and easy runs beside them, which all do."""

    core: int
    good: int
    easy: int

    def judged(self, *rows: str) -> Evaluation:
        """Judge success under faults, one run of each task."""
        core = runs(self.core, self.good, "tool_failure", tasks=self.core)
        return _judged([*core, *runs(self.easy, self.easy, "x_easy", tasks=self.easy, name="e")], *rows)


CORE_ERROR_IS_SMALLER = Padded(10, 1, 5)
ERROR_OF_ALL_IS_SMALLER = Padded(26, 13, 39)
ERROR_IS_ABOVE_THE_MARGIN = Padded(20, 2, 10)


def _judged(records: list[Run], *rows: str) -> Evaluation:
    table = 'id = "own"\ncore = true\n[tiers.1]\nname = "One"\n' + "".join(rows)
    return build.judged(records, parse_profile(table, "own"))


def _row(metric: str, operator: str, threshold: float, margin: float | None = None) -> str:
    text = f'[[criteria]]\nid = "{metric}"\nmetric = "{metric}"\noperator = "{operator}"\n'
    return text + f"tiers = {{1 = {threshold}}}\n" + ("" if margin is None else f"margin = {margin}\n")


def _state(found: Evaluation, name: str) -> str:
    """Return how a row that all runs meet stands on core evidence."""
    assert build.row(found, name).status is Status.MET
    return next(core.state for core in found.assessment.core if core.id == name)


@pytest.mark.parametrize(
    ("padded", "threshold", "state"),
    [
        (CORE_ERROR_IS_SMALLER, 0.19, "differs"),
        (CORE_ERROR_IS_SMALLER, 0.2, "differs"),
        (CORE_ERROR_IS_SMALLER, 0.21, "lost"),
        (ERROR_OF_ALL_IS_SMALLER, 0.54, "differs"),
        (ERROR_OF_ALL_IS_SMALLER, 0.55, "differs"),
        (ERROR_OF_ALL_IS_SMALLER, 0.56, "lost"),
    ],
)
def test_a_row_is_lost_if_it_misses_by_more_than_the_smaller_standard_error(
    padded: Padded, threshold: float, state: str
) -> None:
    found = padded.judged(_row("r_op", ">=", threshold))
    assert _state(found, "r_op") == state
    assert found.exit_code is (Exit.INSUFFICIENT if state == "lost" else Exit.OK)


@pytest.mark.parametrize(
    ("threshold", "state"), [(0.13, "differs"), (0.14, "differs"), (0.15, "lost"), (0.16, "lost")]
)
def test_a_row_is_lost_if_it_misses_by_more_than_a_margin_below_the_standard_error(
    threshold: float, state: str
) -> None:
    found = ERROR_IS_ABOVE_THE_MARGIN.judged(_row("r_op", ">=", threshold, margin=0.04))
    assert _state(found, "r_op") == state


@pytest.mark.parametrize(("threshold", "state"), [(0.81, "differs"), (0.8, "differs"), (0.79, "lost")])
def test_a_row_that_asks_for_little_tolerates_the_same_above_its_threshold(
    threshold: float, state: str
) -> None:
    """Nine of ten core attacks succeed and none of five easy ones: 0.9, with the error of one of ten."""
    core = [
        run | {"attack_landed": True, "attack_succeeded": place > 0}
        for place, run in enumerate(runs(10, 1, "adversarial", tasks=10))
    ]
    never: dict[str, Any] = {"attack_landed": True, "attack_succeeded": False}
    found = _judged(
        [*core, *runs(5, 5, "x_easy", tasks=5, name="e", **never)],
        _row("attack_success_rate", "<=", threshold),
    )
    assert _state(found, "attack_success_rate") == state


@pytest.mark.parametrize(
    ("padded", "threshold", "state"),
    [
        (CORE_ERROR_IS_SMALLER, 81, "differs"),
        (CORE_ERROR_IS_SMALLER, 79, "lost"),
        (ERROR_OF_ALL_IS_SMALLER, 46, "differs"),
        (ERROR_OF_ALL_IS_SMALLER, 44, "lost"),
    ],
)
def test_a_difference_tolerates_the_smaller_standard_error_of_both_arms(
    padded: Padded, threshold: float, state: str
) -> None:
    """Single faults never fail, easy cascades had no effect: 90 points with error 10, 50 with error 5."""
    core = runs(padded.core, padded.good, "cascade", tasks=padded.core)
    easy = runs(padded.easy, padded.easy, "cascade", tasks=padded.easy, name="e", fault_took_hold=False)
    found = _judged(
        [*core, *easy, *runs(10, 10, "tool_failure", tasks=10)], _row("cascade_penalty", "<", threshold)
    )
    assert _state(found, "cascade_penalty") == state


@pytest.mark.parametrize(("asked", "state"), [(0.9, "differs"), (0.92, "lost")])
def test_the_posterior_is_lost_if_a_rate_that_is_better_by_the_smaller_standard_error_misses(
    asked: float, state: str
) -> None:
    """One of ten core runs succeeded, two would with one standard error more."""
    found = CORE_ERROR_IS_SMALLER.judged(_row("r_op", ">=", 0.1), _row("posterior", ">", asked))
    at, better = (build.binomial_tail(s, 10, 0.1) for s in (1, 2))
    assert (at, better) == pytest.approx((0.697, 0.910), abs=5e-4)
    assert _state(found, "posterior") == state
    core = next(core for core in found.assessment.core if core.id == "posterior")
    assert core.value == pytest.approx(at, abs=1e-6)


@pytest.mark.parametrize(("asked", "state"), [(0.84, "differs"), (0.86, "lost")])
def test_the_posterior_tolerates_at_most_the_margin_of_the_success_row(asked: float, state: str) -> None:
    """Two of twenty core runs succeeded, three would with the margin more, and 3.4 with the error."""
    rows = _row("r_op", ">=", 0.1, margin=0.05), _row("posterior", ">", asked)
    found = ERROR_IS_ABOVE_THE_MARGIN.judged(*rows)
    at, better, with_error = (build.binomial_tail(s, 20, 0.1) for s in (2, 3, 4))
    assert (at, better, with_error) == pytest.approx((0.648, 0.848, 0.948), abs=5e-4)
    assert _state(found, "posterior") == state
