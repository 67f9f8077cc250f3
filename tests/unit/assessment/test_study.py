"""The study in a small, seeded form: its rule is the program's, and it errs about as often as is promised."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec import structs

from certkit.assessment import bounds, raters
from certkit.record.record import Outcome
from certkit.summary.summary import LabelledTask, Labels, PairSeries
from tests.study import cells, judged, rule
from tests.support.sides import run, summarised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.bounds import Tasks
    from certkit.summary.summary import Summary

PROMISED = {1: 0.05, 2: 0.05, 3: 0.01}


def tasks_of(y: list[int], n: list[int]) -> Tasks:
    rows = [(runs, won, 1) for won, runs in zip(y, n, strict=True) if runs]
    tasks = bounds.share_tasks(rows)
    assert tasks is not None
    return tasks


def drawn(seed: int, bundles: int = 6, k: int = 30) -> Iterator[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(seed)
    for _ in range(bundles):
        n = rng.integers(0, 9, k)
        yield rng.binomial(n, rng.beta(6, 1, k)).tolist(), n.tolist()


@pytest.mark.parametrize("tau", ["0.8", "0.4"])
def test_the_limits_of_the_study_are_those_of_the_program(tau: str) -> None:
    for y, n in drawn(1):
        told = tasks_of(y, n)
        arrays = np.array([y], np.float64), np.array([n], np.float64)
        limit = bounds.lower(told, Fraction(tau), Fraction(19, 20))
        assert rule.lower(*arrays, float(tau), 0.95)[0] == pytest.approx(limit, abs=1e-9)
        chance = bounds.above(told, Fraction(tau))
        assert rule.above(*arrays, float(tau))[0] == pytest.approx(chance, abs=1e-9)


@pytest.mark.parametrize("shared", [True, False])
def test_the_differences_of_the_study_are_those_of_the_program(shared: bool) -> None:  # noqa: FBT001
    pairs = list(drawn(2))
    for (y_a, n_a), (y_b, n_b) in pairwise(pairs):
        sums: dict[tuple[int, int], list[int]] = {}
        for won, m, other, n in zip(y_a, n_a, y_b, n_b, strict=True):
            if m and n and shared:
                row = sums.setdefault((m, n), [0, 0, 0, 0])
                for place, value in enumerate((1, won, other, won * other)):
                    row[place] += value
        rows = tuple((m, n, k, a, b, both) for (m, n), (k, a, b, both) in sorted(sums.items()))
        a, b = tasks_of(y_a, n_a), tasks_of(y_b, n_b)
        told = bounds.upper_difference(a, b, PairSeries(rows=rows), Fraction(99, 100))
        arrays = [np.array([values], np.float64) for values in (y_a, n_a, y_b, n_b)]
        upper = rule.upper_difference((arrays[0], arrays[1]), (arrays[2], arrays[3]), 0.99, shared=shared)
        assert upper[0] == pytest.approx(told, abs=1e-9)


def labelled(counts: np.ndarray, n: list[int]) -> Summary:
    """Return a summary of which all runs that `counts` names are labelled."""
    y = (counts[0] + counts[1]).tolist()
    numbered = [
        (task, i < won) for task, (won, runs) in enumerate(zip(y, n, strict=True)) for i in range(runs)
    ]
    outcomes = {True: Outcome.SUCCESS, False: Outcome.FAILURE}
    summary = summarised(
        run(number, task_id=f"t{task}", outcome=outcomes[won]) for number, (task, won) in enumerate(numbered)
    )
    listed = [(task, told) for task, told in enumerate(counts.T.tolist()) if sum(told)]
    labels = Labels(
        state="labelled",
        referenced=int(counts.sum()),
        drawn=True,
        counts=tuple(counts.sum(axis=1).tolist()),
        tasks=tuple(
            LabelledTask(
                task=place,
                domain="d",
                series=dict.fromkeys(("r_op", "cn_frr"), (n[task], y[task])),
                labels={"fault": tuple(told)},
            )
            for place, (task, told) in enumerate(listed)
        ),
    )
    return structs.replace(summary, labels=labels)


def test_the_study_weighs_labels_as_the_program_does() -> None:
    n = [3, 1, 4, 1, 6, 2]
    counts = np.array([[2, 0, 1, 0, 3, 0], [1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 0], [0, 0, 2, 0, 2, 2]])
    # Every run of the first, third, fifth and sixth task is labelled: two smaller tasks were not looked at.
    summary = labelled(counts, n)
    y = (counts[0] + counts[1])[None].astype(np.float64)
    pair = rule.labelled(counts[:, None].astype(np.float64), y, np.array([n], np.float64))
    tasks = bounds.tasks(summary, "r_op")
    assert tasks is not None
    limit = raters.lower(raters.judged_laws(summary, "r_op", None, tasks, Fraction(4, 5)), Fraction(19, 20))
    drawn_up = rule.worse(rule.corrected(part).quantile(0.05) for part in pair)
    assert drawn_up[0] == pytest.approx(limit, abs=1e-9)
    # The share of runs that were wrongly passed is taken off a graded series.
    least = raters.lower(raters.judged_laws(summary, "cn_frr", None, tasks, Fraction(4, 5)), Fraction(19, 20))
    assert rule.least_graded(pair, 0.95)[0] == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize(
    "section", [cells.repeats, cells.domains, cells.differences], ids=lambda part: part.__name__
)
def test_an_agent_at_the_threshold_rarely_passes(section: object) -> None:
    draws = 400
    for cell in section(np.random.default_rng(7), draws):  # type: ignore[operator]
        allowed = PROMISED[cell.tier] * 1.4
        assert cell.passed <= allowed + 3 * np.sqrt(allowed / draws), cell


def test_every_size_and_law_at_100_tasks() -> None:
    found = [cell for cell in cells.proportions(np.random.default_rng(8), 400) if cell.tasks == 100]
    assert {cell.tier for cell in found} == {2, 3}
    for cell in found:
        allowed = PROMISED[cell.tier] * 1.4
        assert cell.passed <= allowed + 3 * np.sqrt(allowed / cell.draws), cell


def test_power_grows_with_tasks() -> None:
    found = [
        cell
        for cell in cells.proportions(np.random.default_rng(9), 300, above=0.4)
        if cell.what.startswith("beta .3") and cell.tier == 2
    ]
    assert [cell.tasks for cell in found] == [13, 40, 100, 200]
    powers = [next(group).passed for _, group in groupby(found, key=lambda cell: cell.tasks)]
    assert powers == sorted(powers)
    assert powers[-1] > 0.9


def test_who_looks_all_the_time_is_fooled() -> None:
    (cell,) = cells.looking(np.random.default_rng(10), 60)
    assert cell.passed > 0.05


def test_ten_attempts_spend_no_more_than_a_fifth_above_one() -> None:
    plain, spent = cells.attempts(np.random.default_rng(11), 500)
    assert spent.passed <= 0.06 + 3 * np.sqrt(0.06 / 500) < plain.passed


def test_labels_mend_what_a_judge_does() -> None:
    for cell in judged.judge(np.random.default_rng(14), 300):
        if cell.section == "judge" and cell.what.endswith("labels"):
            allowed = PROMISED[cell.tier] * 1.3
            assert cell.passed <= allowed + 3 * np.sqrt(allowed / 300), cell
        if cell.tier == 2 and cell.what.startswith("passes 30% of failures, fails 0%"):
            assert cell.passed > 0.5 or not cell.what.endswith("uncorrected"), cell


def test_violations_and_undeclared_families() -> None:
    rng = np.random.default_rng(15)
    for cell in cells.counts(rng, 300):
        assert cell.passed <= PROMISED[cell.tier] * 1.4 + 3 * np.sqrt(0.05 / 300), cell
    told = {(cell.tier, cell.what): cell.passed for cell in cells.families(rng, 300)}
    assert told[2, "families of 5, beta .3, undeclared"] > 0.1 > told[2, "families of 5, beta .3, declared"]
