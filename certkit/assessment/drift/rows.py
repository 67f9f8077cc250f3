"""The rows of a drift comparison: which means are compared, how each is tested, and the one rule that flags.

In this order: r_op overall; every other criterion of the profile; nominal success; r_op per domain; r_op per
fault condition. Criteria that follow from others have no row of their own. A row that cannot be tested has
state UNDERPOWERED and a reason.

A row is flagged where its loss reaches the profile's margin and its p, adjusted for all rows (Benjamini &
Hochberg), is at most `LEVEL`; the same rule reports a gain. Rows need `LEAST` tasks a side.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from certkit.assessment.drift.contrast import adjusted, contrast, limit
from certkit.assessment.drift.document import Counts, Row
from certkit.assessment.drift.snapshot import NOMINAL
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.tasks import METRICS, SUCCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from certkit.assessment.drift.contrast import Contrast, Panel
    from certkit.assessment.drift.document import State
    from certkit.assessment.drift.snapshot import Snapshot, Watched

LEVEL: Final = 0.015
"""Adjusted p up to which a row is flagged."""

DERIVED: Final = {"posterior", "domain_min", "gap", "cascade_penalty", "csi", "csi_windowed"}
"""Metrics that follow from others, and those of no mean over tasks."""

LEAST: Final = 10
"""Tasks a side that a row needs."""

MIX_LIMIT: Final = Fraction(1, 10)
"""Share of runs that may have moved between conditions where a row that does not tell them apart is tested.

With conditions whose means differ by up to half of the range, a smaller move changes a mean by less than a
margin of .05.
"""

_VIOLATIONS: Final = 5.0
"""Violations that count as all that a task can have, where no task has more ([26] eq. 5)."""

_ON_FAULTS: Final = {"frr", "irs"}
_RATES: Final[dict[str, Callable[[str], bool]]] = {
    "r_op": lambda condition: condition != NOMINAL,
    "c_nom": lambda condition: condition == NOMINAL,
}
_DIGITS: Final = 1e-9
"""A loss that is the margin but for rounding reaches it."""


class _Tested(NamedTuple):
    """A row that has no state yet, its contrast, and the gain that is not exceeded with 95 % confidence."""

    row: Row
    contrast: Contrast | None = None
    gain: float = 0.0


def reaches(loss: float, margin: float | None) -> bool:
    """Tell whether a loss is at least the margin."""
    return loss >= (margin or 0.0) - _DIGITS


def rows(old: Snapshot, new: Snapshot, side_by_side: Panel) -> tuple[Row, ...]:
    """Return the rows of two sides that can be compared, each with its state."""
    return _decided([_tested(row, old, new, side_by_side) for row in _listed(old, new)])


def _listed(old: Snapshot, new: Snapshot) -> Iterator[Row]:
    """Yield the rows of two sides in their order, not yet tested."""

    def row(criterion: str, metric: str, domain: str | None = None, condition: str | None = None) -> Row:
        margin = margins.get(criterion, margins.get(r_op) if metric == "c_nom" else None)
        return Row(
            criterion=criterion,
            metric=metric,
            domain=domain,
            condition=condition,
            unit=CATALOGUE[metric].unit.value,
            margin=None if margin is None else float(margin),
            reason=blocked(watched[criterion], old, new) if metric not in _RATES else None,
        )

    watched = {item.id: item for item in old.criteria}
    names = {item.metric: item.id for item in old.criteria}
    margins = {item.id: item.margin for item in (*new.criteria, *old.criteria) if item.margin is not None}
    r_op = names.get("r_op", "r_op")
    yield row(r_op, "r_op")
    for item in old.criteria:
        if item.metric not in {*_RATES, *DERIVED}:
            yield row(item.id, item.metric)
    if NOMINAL in old.conditions | new.conditions:
        yield row(names.get("c_nom", "c_nom"), "c_nom")
    faults = [cell for cell in (*old.cells, *new.cells) if cell[1] != NOMINAL]
    for domain in sorted({domain for domain, _ in faults}):
        yield row(r_op, "r_op", domain)
    for condition in sorted({condition for _, condition in faults}):
        yield row(r_op, "r_op", None, condition)


def blocked(watched: Watched, old: Snapshot, new: Snapshot) -> str | None:
    """Return why the means of a criterion of the old side may not be compared although both have one."""
    if watched.metric not in METRICS:
        return "passports carry no sums of it"
    if watched.metric == "irs" and old.memory_observable != new.memory_observable:
        return "the sides declare differently whether memory queries were observable"
    if not all(any(c.metric == watched.metric for c in side.table.columns) for side in (old, new)):
        return None
    now = next((row for row in new.criteria if row.id == watched.id), None)
    sides = (("old", watched), ("new", now))
    unjudged = [name for name, row in sides if row is None or not row.judged]
    return (
        f"not measured well enough to be judged on the {' and the '.join(unjudged)} side"
        if unjudged
        else None
    )


def columns_of(panel: Panel, metric: str, condition: str | None = None) -> list[int]:
    """Return the places of a metric's columns, of one condition or of all that it is taken over."""
    over = _RATES.get(metric)
    return [
        place
        for place, (name, of_column) in enumerate(panel.columns)
        if (name == metric and over is None)
        or (name == SUCCESS and over is not None and over(str(of_column)) and condition in {None, of_column})
    ]


def _tested(row: Row, old: Snapshot, new: Snapshot, panel: Panel) -> _Tested:
    """Return a row with its means and its contrast, or with the reason why there is none."""
    columns = columns_of(panel, row.metric, row.condition)
    sides = panel.chosen(columns, row.domain) if columns else None
    if sides is None or not any(sides.k):
        return _Tested(structs.replace(row, reason=row.reason or "neither side measured it"))
    reason = row.reason or _unmeasured(sides.k) or _mixed(row.metric, old, new)
    if row.margin is None:
        reason = reason or "no drift margin is stated for it"
    before, now = (
        float(x @ v / v.sum()) if k else None for x, v, k in zip(sides.x, sides.v, sides.k, strict=True)
    )
    if row.reason:
        before = now = None  # the mean of some runs would be read as that of all
    runs = sides.n.sum(axis=1).tolist()
    row = structs.replace(
        row,
        old=before,
        new=now,
        n=Counts(old=runs[0], new=runs[1]),
        tasks=Counts(old=sides.k[0], new=sides.k[1]),
        reason=reason,
    )
    if before is None or now is None:
        return _Tested(row)
    spec, sign = CATALOGUE[row.metric], 1 if CATALOGUE[row.metric].higher else -1
    change = contrast(sides, (sign, -sign))
    row = structs.replace(
        row, difference=change.loss, standard_error=change.se, degrees_of_freedom=change.freedom
    )
    if reason is not None:
        return _Tested(row)
    good = sides if spec.higher else structs.replace(sides, x=-sides.x)
    low, high = float(spec.low), spec.high
    width = max(_VIOLATIONS, float(sides.x.max())) if high is None else float(high) - low
    start = low if spec.higher else -(low + width)
    row = structs.replace(row, limit=limit(good, low=start, width=width))
    return _Tested(row, change, limit(good.swapped, low=start, width=width))


def _unmeasured(k: Sequence[int]) -> str | None:
    if not all(k):
        return f"only the {'new' if k[1] else 'old'} side measured it"
    few = [
        f"{count} on the {name} side" for name, count in zip(("old", "new"), k, strict=True) if count < LEAST
    ]
    return f"a row takes {LEAST} tasks a side, and there are {' and '.join(few)}" if few else None


def _mixed(metric: str, old: Snapshot, new: Snapshot) -> str | None:
    """Return why a metric whose sums do not tell conditions apart cannot be compared under another mix."""
    if metric in _RATES or metric == "adversarial_resistance":
        return None
    share = moved(old, new, faults_only=metric in _ON_FAULTS)
    if share <= MIX_LIMIT:
        return None
    percent = float(100 * share)
    return f"{percent:.0f} % of the runs moved between conditions, and its sums do not tell them apart"


def moved(old: Snapshot, new: Snapshot, *, faults_only: bool) -> Fraction:
    """Return the share of runs that moved between conditions within a domain, domains weighted as before."""
    total = sum(_runs(old.cells, domain, faults_only=faults_only)[1] for domain in old.domains)
    share = Fraction(0)
    for domain in old.domains & new.domains:
        (before, n), (now, m) = (_runs(side.cells, domain, faults_only=faults_only) for side in (old, new))
        if n and m:
            apart = sum(abs(before.get(name, 0) * m - now.get(name, 0) * n) for name in {*before, *now})
            share += Fraction(apart, 2 * m)
    return share / total if total else share


def _runs(
    cells: Mapping[tuple[str, str], int], domain: str, *, faults_only: bool
) -> tuple[dict[str, int], int]:
    kept = {
        condition: runs
        for (name, condition), runs in cells.items()
        if name == domain and not (faults_only and condition == NOMINAL)
    }
    return kept, sum(kept.values())


def _decided(listed: Sequence[_Tested]) -> tuple[Row, ...]:
    """Give every row its state: all rows that were tested are one family."""
    changes = [(at, item.contrast) for at, item in enumerate(listed) if item.contrast is not None]
    losses = adjusted([change.p_loss for _, change in changes])
    gains = adjusted([change.p_gain for _, change in changes])
    rows = [item.row for item in listed]
    for (at, change), p_loss, p_gain in zip(changes, losses, gains, strict=True):
        row, state = rows[at], _state(listed[at], change.loss, p_loss, p_gain)
        rows[at] = structs.replace(row, probability=p_loss, state=state, flagged=state == "WORSE")
    return tuple(rows)


def _state(item: _Tested, loss: float, p_loss: float, p_gain: float) -> State:
    margin = item.row.margin or 0.0
    if p_loss <= LEVEL and reaches(loss, margin):
        return "WORSE"
    if p_gain <= LEVEL and reaches(-loss, margin):
        return "BETTER"
    return "EQUIVALENT" if max(item.row.limit or 0.0, item.gain) < margin else "UNDERPOWERED"
