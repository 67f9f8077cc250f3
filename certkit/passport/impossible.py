"""Faults of a statement that show without its evidence: times out of order, tables that no runs give.

Decimals have six digits, so a value written like the threshold may lie on either side of it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from certkit import canonical
from certkit.passport.bounds import needs_none
from certkit.passport.terms import millionths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport import statement as st

MAX_VALIDITY: Final = timedelta(days=366)
TASKS: Final = 1_000
"""Tasks that a task table keeps."""
RANGES: Final[dict[str, tuple[int, int]]] = {
    **dict.fromkeys(("success", "frr", "pei", "irs", "adversarial_resistance"), (0, 1)),
    "ti": (1, 5),
}
"""The least and the most that a run can add to a column."""

_YEARS: Final = range(2, 9998)
"""Years in which a time has a day before and after it, whatever its offset."""
_JUDGED: Final = {"met", "not_met"}


def impossible(predicate: st.Predicate) -> Iterator[str]:
    """Yield why no evidence gives such a statement; nothing where some does."""
    evidence = predicate.evidence
    yield from _times(predicate)
    if len({row.id for row in predicate.criteria}) != len(predicate.criteria) or not predicate.criteria:
        yield "it has no criteria, or one of them twice"
    if evidence.nominal_runs + evidence.fault_runs + evidence.novel_fault_runs > evidence.records:
        yield "its evidence has more runs than records"
    for part in evidence.bundles or ():
        rows = part.by_domain.values()
        sums = sum(row.successes for row in rows), sum(row.n for row in rows)
        whole = all(row.successes <= row.n > 0 for row in rows) and sums == (part.successes, part.fault_runs)
        if not whole or part.nominal_runs + part.fault_runs > part.records:
            yield f"the counts of bundle {part.digest} do not add up"
    yield from _table(predicate.profile_of_reliability)
    for criterion in predicate.criteria:
        shown = criterion.evidence
        if shown.derived + shown.traced > evidence.records:
            yield f"criterion {criterion.id} rests on more traces than records"
        for tier, row in criterion.tiers.items():
            if not by_value(criterion, row):
                yield f"criterion {criterion.id} at Tier {tier} cannot be {row.table} with its value"
            if not by_bound(criterion, row):
                yield f"criterion {criterion.id} at Tier {tier} cannot be met by bounds with its bound"


def _times(predicate: st.Predicate) -> Iterator[str]:
    validity = predicate.validity
    periods = [predicate.scope.dates, *(bundle.dates for bundle in predicate.evidence.bundles or ())]
    runs = [time for period in periods for time in (period.first_run, period.last_run) if time is not None]
    for time in (*runs, validity.not_before, validity.not_after):
        if time.year not in _YEARS:
            yield f"{time} is no time of a run or of a validity"
    if not all(map(_in_order, periods)):
        yield "the times of the first and last run do not agree"
    if not timedelta(0) <= validity.not_after - validity.not_before <= MAX_VALIDITY:
        yield f"the validity ends before it begins, or is longer than {MAX_VALIDITY.days} days"


def _in_order(dates: st.Dates) -> bool:
    """Tell whether the first and the last run are both there or neither is, the first not after the last."""
    if dates.first_run is None or dates.last_run is None:
        return dates.first_run is dates.last_run
    return dates.first_run <= dates.last_run


def _table(table: st.TaskTable) -> Iterator[str]:
    """Yield why no runs give a task table, so that no such table decides about bounds or drift."""
    places = [(cell.domain, cell.condition) for cell in table.cells]
    columns = [(column.metric, column.condition) for column in table.columns]
    order = [(urlsafe_b64decode(row.tag), row.domain) for row in table.rows]
    width = 2 * len(columns)
    if any(len(keys) != len(set(keys)) for keys in (places, columns, table.domains)):
        yield "a cell, a column or a domain of its task table occurs twice"
    if order != sorted(set(order)) or len({tag for tag, _ in order}) != min(table.tasks, TASKS):
        yield "the rows of its task table are not sorted, or not as many as it says"
    if any(len(row.sums) != width or row.domain >= len(table.domains) for row in table.rows):
        yield "a row of its task table does not fit the columns and domains"
        return
    counted = {("success", cell.condition) for cell in table.cells if cell.runs}
    if {key for key in columns if key[0] == "success" or key[1] is not None} != counted:
        yield "its task table does not count the successes of every condition"
    if any(cell.successes > cell.runs for cell in table.cells):
        yield "a cell of its task table has more successes than runs"
    for place, column in enumerate(table.columns):
        low, high = RANGES.get(column.metric, (0, canonical.MAX_INTEGER))
        pairs = [(row.sums[2 * place], row.sums[2 * place + 1]) for row in table.rows]
        if not all(
            low * column.scale * n <= y <= high * column.scale * n for y, n in (*pairs, (column.y, column.n))
        ):
            yield f"no runs give the integers of {column.metric} in its task table"


def by_value(criterion: st.CriterionClaim, row: st.RowAtTier) -> bool:
    """Tell whether the value of a row allows its status by the table."""
    if row.table not in _JUDGED:
        return True
    value = criterion.value if row.value is None else row.value
    if value is None or criterion.state == "unmeasured":
        return False
    return _allowed(row, by=value, met=row.table == "met")


def by_bound(criterion: st.CriterionClaim, row: st.RowAtTier) -> bool:
    """Tell whether the bound of a row allows its status by bounds."""
    bounded = row.bounded
    if bounded is None or bounded.status != "met":
        return True
    if row.table != "met":
        return False
    if bounded.bound is None:
        return needs_none(criterion, row)
    return _allowed(row, by=bounded.bound, met=True)


def _allowed(row: st.RowAtTier, *, by: str | bool, met: bool) -> bool:
    """Tell whether a row may be met, or unmet, by a number or a truth value."""
    if isinstance(by, bool) or isinstance(row.threshold, bool):
        return (by == row.threshold) == met
    value, asked = millionths(by), millionths(row.threshold)
    return value >= asked if (row.operator in {">", ">="}) == met else value <= asked
