"""The rows of a drift comparison: which means are compared, how each is tested, and the one rule that flags.

In this order: r_op overall; every other criterion of the profile; nominal success; r_op per domain; r_op per
fault condition. Criteria that follow from others have no row of their own. A row that cannot be tested has
state UNDERPOWERED and a reason.

A row is flagged where its loss reaches the profile's margin and its p, adjusted for all rows (Benjamini &
Hochberg), is at most `LEVEL`; the same rule reports a gain. Rows need `LEAST` tasks a side.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit.assessment.drift.contrast import Contrast, adjusted, contrast, limit
from certkit.assessment.drift.document import Behaviour, Counts
from certkit.assessment.drift.snapshot import NOMINAL
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.tasks import METRICS, SUCCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from certkit.assessment.drift.contrast import Panel, Sides
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


class Mean(Struct, frozen=True, kw_only=True):
    """A mean over `tasks` tasks in its metric's unit, and the runs behind it."""

    value: float
    runs: int
    tasks: int


class Row(Struct, frozen=True, kw_only=True):
    """One mean, old against new. `p` is adjusted for all rows; `limit` is the loss not exceeded at 95 %.

    `gain` is the same limit of a gain.
    """

    criterion: str
    metric: str
    domain: str | None
    condition: str | None
    old: Mean | None
    new: Mean | None
    margin: Fraction | None
    found: Contrast | None = None
    limit: float | None = None
    gain: float | None = None
    p: float | None = None
    state: State = "UNDERPOWERED"
    reason: str | None = None

    @property
    def is_overall(self) -> bool:
        """Whether this is r_op overall, which tells whether an agent is stable."""
        return self.metric == "r_op" and self.domain is None and self.condition is None

    @property
    def is_tested(self) -> bool:
        """Whether the row was tested."""
        return self.found is not None and self.reason is None

    @property
    def flagged(self) -> bool:
        """Whether the row is drift."""
        return self.state == "WORSE"

    @property
    def no_loss(self) -> bool:
        """Whether a loss of the margin is excluded with 95 % confidence."""
        return self.is_tested and self.limit is not None and self.limit < float(self.margin or 0)

    @property
    def name(self) -> str:
        """The row in words."""
        where = f" in {self.domain}" if self.domain is not None else ""
        return f"{self.criterion}{where}" + (f" under {self.condition}" if self.condition is not None else "")

    @property
    def sentence(self) -> str:
        """What a tested row shows, in words."""
        margin, loss = float(self.margin or 0), self.found.loss if self.found else 0.0
        values = f"{self.name}: {_value(self.old)} before, {_value(self.new)} now"
        if self.flagged:
            return f"{values}; a loss of {loss:.3f} (margin {margin:g}, adjusted p {self.p:.2g})"
        less = "is excluded" if self.no_loss else "is not excluded"
        return f"{values}; a loss of {margin:g} {less}: at most {self.limit:.3f} with 95 % confidence"

    @property
    def document(self) -> Behaviour:
        """The row as it is printed."""
        old, new, found = self.old, self.new, self.found
        return Behaviour(
            criterion=self.criterion,
            metric=self.metric,
            domain=self.domain,
            condition=self.condition,
            unit=CATALOGUE[self.metric].unit.value,
            old=old.value if old else None,
            new=new.value if new else None,
            n=Counts(old=old.runs if old else 0, new=new.runs if new else 0),
            tasks=Counts(old=old.tasks if old else 0, new=new.tasks if new else 0),
            difference=found.loss if found else None,
            margin=None if self.margin is None else float(self.margin),
            standard_error=found.se if found else None,
            degrees_of_freedom=found.freedom if found else None,
            probability=self.p,
            limit=self.limit,
            state=self.state,
            flagged=self.flagged,
            reason=self.reason,
        )


def _value(mean: Mean | None) -> str:
    return f"{mean.value:.3f} ({mean.tasks:,} tasks)" if mean else "nothing"


def reaches(loss: float, margin: Fraction | None) -> bool:
    """Tell whether a loss is at least the margin."""
    return loss >= float(margin or 0) - _DIGITS


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
            old=None,
            new=None,
            margin=margin,
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


def columns_of(found: Panel, metric: str, condition: str | None = None) -> list[int]:
    """Return the places of a metric's columns, of one condition or of all that it is taken over."""
    over = _RATES.get(metric)
    return [
        place
        for place, (name, of_column) in enumerate(found.columns)
        if (name == metric and over is None)
        or (name == SUCCESS and over is not None and over(str(of_column)) and condition in {None, of_column})
    ]


def _tested(row: Row, old: Snapshot, new: Snapshot, found: Panel) -> Row:
    """Return a row with its means and its contrast, or with the reason why there is none."""
    columns = columns_of(found, row.metric, row.condition)
    sides = found.chosen(columns, row.domain) if columns else None
    if sides is None or not any(sides.k):
        return structs.replace(row, reason=row.reason or "neither side measured it")
    before, now = _means(sides)
    reason = row.reason or _unmeasured(sides.k) or _mixed(row.metric, old, new)
    if row.margin is None:
        reason = reason or "no drift margin is stated for it"
    row = structs.replace(row, old=before, new=now, reason=reason)
    if not all(sides.k):
        return row
    spec, sign = CATALOGUE[row.metric], 1 if CATALOGUE[row.metric].higher else -1
    tested = structs.replace(row, found=contrast(sides, (sign, -sign)))
    if reason is not None:
        return tested
    good = sides if spec.higher else structs.replace(sides, x=-sides.x)
    low, high = float(spec.low or 0), spec.high
    width = max(_VIOLATIONS, float(sides.x.max())) if high is None else float(high) - low
    start = low if spec.higher else -(low + width)
    swapped = structs.replace(good, x=good.x[::-1], v=good.v[::-1], n=good.n[::-1], k=good.k[::-1])
    return structs.replace(
        tested,
        limit=limit(good, low=start, width=width),
        gain=limit(swapped, low=start, width=width),
    )


def _means(sides: Sides) -> list[Mean | None]:
    return [
        Mean(value=float(x @ v / v.sum()), runs=int(n.sum()), tasks=k) if k else None
        for x, v, n, k in zip(sides.x, sides.v, sides.n, sides.k, strict=True)
    ]


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
    found = Fraction(0)
    for domain in old.domains & new.domains:
        (before, n), (now, m) = (_runs(side.cells, domain, faults_only=faults_only) for side in (old, new))
        if n and m:
            apart = sum(abs(before.get(name, 0) * m - now.get(name, 0) * n) for name in {*before, *now})
            found += Fraction(apart, 2 * m)
    return found / total if total else found


def _runs(
    cells: Mapping[tuple[str, str], int], domain: str, *, faults_only: bool
) -> tuple[dict[str, int], int]:
    kept = {
        condition: runs
        for (name, condition), runs in cells.items()
        if name == domain and not (faults_only and condition == NOMINAL)
    }
    return kept, sum(kept.values())


def _decided(found: Sequence[Row]) -> tuple[Row, ...]:
    """Give every row its state: all rows that were tested are one family."""
    tested = [row for row in found if row.is_tested]
    losses = adjusted([row.found.p_loss for row in tested if row.found])
    gains = adjusted([row.found.p_gain for row in tested if row.found])
    decided = {id(row): _state(row, *pair) for row, *pair in zip(tested, losses, gains, strict=True)}
    return tuple(decided.get(id(row), row) for row in found)


def _state(row: Row, p_loss: float, p_gain: float) -> Row:
    loss = row.found.loss if row.found else 0.0
    state: State = "UNDERPOWERED"
    if p_loss <= LEVEL and reaches(loss, row.margin):
        state = "WORSE"
    elif p_gain <= LEVEL and reaches(-loss, row.margin):
        state = "BETTER"
    elif max(row.limit or 0.0, row.gain or 0.0) < float(row.margin or 0):
        state = "EQUIVALENT"
    return structs.replace(row, p=p_loss, state=state)
