"""A passport gives the same side of a comparison as its evidence, and impossible tables are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit import workflow
from certkit.assessment import tasks
from certkit.assessment.assessing import assess
from certkit.assessment.drift.snapshot import snapshot as of_bundle
from certkit.assessment.task_table import Column, TaskTable
from certkit.bundle.folder import open_bundle
from certkit.ground.errors import CertkitError
from certkit.passport import payload
from certkit.passport import statement as st
from certkit.passport.drift_side import drift_side
from certkit.summary.summarise import summarise
from tests.support import bundles, making

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return making.sealed_bundle(tmp_path / "bundle")


def stated(root: Path) -> st.Statement:
    return payload.read(making.of_bundle(root).payload)


def with_table(statement: st.Statement, change: Callable[[TaskTable], TaskTable]) -> bytes:
    """The payload of the statement with its task table changed."""
    predicate = statement.predicate
    changed = structs.replace(predicate, profile_of_reliability=change(predicate.profile_of_reliability))
    return payload.write(structs.replace(statement, predicate=changed))


def test_a_passport_shows_what_its_evidence_shows(root: Path) -> None:
    bundle = open_bundle(root)
    summary = summarise(bundle)
    judged = assess(summary, bundle.facts, workflow.load_profile("hb-eval-2026"))
    assert drift_side(stated(root)) == of_bundle(judged, summary)


def test_margins_are_carried_in_the_unit_of_the_metric(root: Path) -> None:
    found = {row.id: row.drift_margin for row in stated(root).predicate.criteria}
    assert (found["r_op"], found["ti"], found["cascade_penalty"]) == ("0.050000", "0.250000", "5.000000")
    assert found["posterior"] is None


def first_row(**fields: Any) -> Callable[[TaskTable], TaskTable]:
    return lambda table: structs.replace(
        table, rows=(structs.replace(table.rows[0], **fields), *table.rows[1:])
    )


def column(metric: str, /, **fields: Any) -> Callable[[TaskTable], TaskTable]:
    return lambda table: structs.replace(
        table,
        columns=tuple(
            structs.replace(item, **fields) if item.metric == metric else item for item in table.columns
        ),
    )


def more_successes(table: TaskTable) -> TaskTable:
    sums = table.rows[0].sums
    return first_row(sums=(sums[0] + 1, *sums[1:]))(table)


IMPOSSIBLE: dict[str, tuple[Callable[[TaskTable], TaskTable], str]] = {
    "a column twice": (lambda t: structs.replace(t, columns=(*t.columns, t.columns[0])), "occurs twice"),
    "a row twice": (lambda t: structs.replace(t, rows=(t.rows[0], *t.rows)), "not sorted"),
    "rows in another order": (lambda t: structs.replace(t, rows=t.rows[::-1]), "are not sorted"),
    "a row left out": (lambda t: structs.replace(t, rows=t.rows[1:]), "not as many"),
    "more tasks than rows": (lambda t: structs.replace(t, tasks=t.tasks + 1), "not as many"),
    "a domain that is not there": (first_row(domain=99), "does not fit"),
    "a sum left out": (first_row(sums=(1,)), "does not fit"),
    "sums that do not add up": (more_successes, "no runs give|totals"),
    "more successes than runs": (first_row(sums=()), "does not fit"),
    "another scale": (column("violations", metric="ti", scale=1000), "no runs give the integers of ti"),
    "successes of other runs": (column("success", n=10**6), "the totals of success"),
    "conditions of another metric": (column("violations", condition="nominal"), "does not count"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_table_that_no_runs_give_is_refused(root: Path, name: str) -> None:
    change, words = IMPOSSIBLE[name]
    with pytest.raises(CertkitError, match=words) as caught:
        payload.read(with_table(stated(root), change))
    assert (caught.value.code, caught.value.exit_code) == ("passport.statement", 1)


def test_a_negative_margin_is_refused(root: Path) -> None:
    statement = stated(root)
    criteria = (structs.replace(statement.predicate.criteria[0], drift_margin="-0.100000"),)
    below = structs.replace(statement, predicate=structs.replace(statement.predicate, criteria=criteria))
    with pytest.raises(CertkitError, match="below 0"):
        drift_side(below)


def test_columns_of_a_later_writer_change_nothing(root: Path) -> None:
    def later(table: TaskTable) -> TaskTable:
        more = Column(metric="later", scale=1, y=0, n=0)
        rows = tuple(structs.replace(row, sums=(*row.sums, 0, 0)) for row in table.rows)
        return structs.replace(table, columns=(*table.columns, more), rows=rows)

    changed = payload.read(with_table(stated(root), later))
    assert changed.predicate.profile_of_reliability.columns[-1].metric == "later"


def test_a_bundle_without_fault_runs_has_a_table(tmp_path: Path) -> None:
    empty = making.sealed_bundle(tmp_path / "empty", [bundles.run(0)])
    found = drift_side(stated(empty)).table
    assert [(item.metric, item.condition) for item in found.columns] == [("success", "nominal")]


def test_the_reader_and_the_writer_of_tables_know_the_same() -> None:
    assert payload.TASKS == tasks.MOST
    assert payload.RANGES.keys() == {tasks.SUCCESS, *tasks.METRICS} - {"violations"}


def test_a_passport_of_a_thousand_tasks_has_at_most_150_kb(tmp_path: Path) -> None:
    conditions = ["nominal", "tool_failure", "context_corruption", "stochastic", "adversarial", "cascade"]
    runs = [
        bundles.run(
            f"{task}-{condition}-{repeat}",
            domain=f"d{task % 5}",
            task_id=f"task {task}",
            condition=condition,
            outcome="success" if (task + repeat) % 7 else "failure",
            steps_actual=9 + task % 5,
            steps_oracle=7,
            violations=task % 3 % 2,
            traceability=4.2,
        )
        for task in range(1000)
        for condition in conditions
        for repeat in range(2)
    ]
    root = making.sealed_bundle(tmp_path / "many", runs)
    found = making.of_bundle(root)
    assert payload.read(found.payload).predicate.profile_of_reliability.tasks == 1000
    assert len(found.to_json()) <= 150_000
