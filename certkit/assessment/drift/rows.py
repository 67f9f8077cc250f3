"""The rows of a drift comparison: which means are compared between two standings, and under which mix.

In this order: r_op overall; every other criterion of the profile; nominal success; r_op per domain; r_op per
fault condition. Criteria that follow from others (`DERIVED`) have no row of their own. A row that cannot be
tested has state UNDERPOWERED and a reason.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from msgspec import Struct, structs

from certkit.assessment.drift.difference import Difference, Mean, Test, difference, plain, under_mix
from certkit.assessment.drift.standing import NOMINAL, above, is_cell, key_of
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.reliability import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.drift.standing import Key, Standing, Watched
    from certkit.assessment.reliability import Moments

DERIVED: Final = {"posterior", "domain_min", "gap", "cascade_penalty", "csi", "csi_windowed"}
MIX_LIMIT: Final = Fraction(1, 10)
"""Share of runs that may have moved between conditions before a row that cannot be reweighted is not tested.

With conditions whose means differ by up to half of the range, a smaller move changes a mean by less than a
margin of .05.
"""

State = Literal["WORSE", "BETTER", "EQUIVALENT", "UNDERPOWERED"]
_Mix = dict[tuple[str, str], int]
_ON_FAULTS: Final = {"frr", "irs"}
_ON_ALL: Final = {"pei", "ti", "violations"}


class Row(Struct, frozen=True, kw_only=True):
    """One mean, old against new, in its metric's unit. `flagged` is the same as state WORSE."""

    criterion: str
    metric: str
    domain: str | None
    condition: str | None
    old: Mean | None
    new: Mean | None
    margin: Fraction | None
    found: Difference | None
    state: State = "UNDERPOWERED"
    reason: str | None = None

    @property
    def key(self) -> tuple[str, str | None, str | None]:
        """What tells the row from all others."""
        return (self.criterion, self.domain, self.condition)

    @property
    def is_overall(self) -> bool:
        """Whether this is r_op overall, which decides on its own."""
        return self.metric == "r_op" and self.domain is None and self.condition is None

    @property
    def is_tested(self) -> bool:
        """Whether the row could be tested."""
        return self.reason is None

    @property
    def flagged(self) -> bool:
        """Whether the row is drift."""
        return self.state == "WORSE"

    @property
    def test(self) -> Test:
        """What the difference shows, of a tested row."""
        test = self.found.test if self.found else None
        assert test is not None  # noqa: S101 - a row without a test has a reason
        return test

    @property
    def no_loss(self) -> bool:
        """Whether the row was tested and a loss of the margin is excluded with 95 % confidence."""
        return self.is_tested and self.test.worst < self._limit

    @property
    def _limit(self) -> Fraction:
        return self.margin or Fraction(0)

    def decided(self, *, worse: bool, better: bool) -> Row:
        """Return the tested row with its state, given what the tests of loss and gain reject."""
        loss = self.found.loss if self.found else Fraction(0)
        state: State = "UNDERPOWERED"
        if worse and loss >= self._limit:
            state = "WORSE"
        elif better and -loss >= self._limit:
            state = "BETTER"
        elif self.test.most < self._limit:
            state = "EQUIVALENT"
        return structs.replace(self, state=state)

    @property
    def name(self) -> str:
        """The row in words."""
        return named(self.criterion, self.domain, self.condition)

    @property
    def sentence(self) -> str:
        """What a tested row shows, in words."""
        test, margin = self.test, float(self._limit)
        values = f"{self.name}: {_value(self.old)} before, {_value(self.new)} now"
        if self.flagged and self.found:
            loss = float(self.found.loss)
            return f"{values}; a loss of {loss:.3f} (margin {margin:g}, p {test.p_loss:.2g})"
        less = "is excluded" if self.no_loss else "is not excluded"
        return f"{values}; a loss of {margin:g} {less}: at most {test.worst:.3f} with 95 % confidence"

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        old, new, found = self.old, self.new, self.found
        test = found.test if found else None
        return {
            "criterion": self.criterion,
            "metric": self.metric,
            "domain": self.domain,
            "condition": self.condition,
            "unit": CATALOGUE[self.metric].unit.value,
            "old": float(old.value) if old else None,
            "new": float(new.value) if new else None,
            "n": {"old": old.n if old else 0, "new": new.n if new else 0},
            "clusters": {"old": old.k if old else 0, "new": new.k if new else 0},
            "difference": float(found.loss) if found else None,
            "margin": None if self.margin is None else float(self.margin),
            "standard_error": test.se if test else None,
            "degrees_of_freedom": test.freedom if test else None,
            "probability": test.p_loss if test and self.is_tested else None,
            "state": self.state,
            "flagged": self.flagged,
            "reason": self.reason,
        }


def named(criterion: str, domain: str | None, condition: str | None) -> str:
    """Return a row in words."""
    where = f" in {domain}" if domain is not None else ""
    return f"{criterion}{where}" + (f" under {condition}" if condition is not None else "")


def _value(side: Mean | None) -> str:
    return f"{float(side.value):.3f} (n {side.n:,})" if side else "nothing"


class _Sides:
    """Both standings with their integers by row."""

    def __init__(self, old: Standing, new: Standing) -> None:
        self.old, self.new = old, new
        self.before = {key_of(row): row for row in old.moments}
        self.now = {key_of(row): row for row in new.moments}
        self._cells_before, self._cells_now = by_cell(old), by_cell(new)
        self._moved = {faults: moved_within(old, new, faults_only=faults) for faults in (False, True)}

    def row(self, criterion: str, key: Key, margin: Fraction | None, blocked: str | None = None) -> Row:
        """Return one row, not yet decided."""
        metric, domain, condition = key
        first, second = self.before.get(key), self.now.get(key)
        old = None if first is None else plain(first)
        new = None if second is None else plain(second)
        found, reason = None, blocked or _unmeasured(metric, old, new)
        if first and second and old:
            reweighted = self._reweighted(key, second)
            if isinstance(reweighted, str):
                reason = reason or reweighted
            else:
                new = reweighted
                found = difference(old, new)
                reason = reason or _no_variance(old, new, found)
        if margin is None:
            reason = reason or "no drift margin is stated for it"
        return Row(
            criterion=criterion,
            metric=metric,
            domain=domain,
            condition=condition,
            old=old,
            new=new,
            margin=margin,
            found=found,
            reason=reason,
        )

    def _reweighted(self, key: Key, whole: Moments) -> Mean | str:
        """Return the new mean under the old mix, or why there is none."""
        old, new = self._cells_before.get(key, {}), self._cells_now.get(key, {})
        if missing := [name[1] for name in old if name not in new]:
            return f"the new side has no value in {', '.join(sorted(map(str, missing)))}"
        if key[0] in _ON_FAULTS | _ON_ALL:
            share = self._moved[key[0] in _ON_FAULTS]
            if share > MIX_LIMIT:
                return (
                    f"{float(100 * share):.0f} % of the runs moved between conditions,"
                    " and its integers do not tell conditions apart"
                )
        return under_mix(
            [row.n for row in old.values()],
            [new[name] for name in old],
            whole,
            sum(row.k for name, row in new.items() if name not in old),
        )


def by_cell(side: Standing) -> dict[Key, dict[Key, Moments]]:
    """Return the cells of every row by its key, the cells themselves as their own."""
    found: dict[Key, dict[Key, Moments]] = {}
    for row in side.moments:
        if is_cell(row):
            key = key_of(row)
            for name in (key, *above(row)):
                found.setdefault(name, {})[key] = row
    return found


def _unmeasured(metric: str, old: Mean | None, new: Mean | None) -> str | None:
    if metric not in METRICS:
        return "passports carry no integers of it"
    if old is None and new is None:
        return "neither side measured it"
    if old is None:
        return "only the new side measured it"
    return "only the old side measured it" if new is None else None


def _no_variance(old: Mean, new: Mean, found: Difference) -> str | None:
    if found.test is not None:
        return None
    few = " and ".join(name for name, side in (("old", old), ("new", new)) if side.variance is None)
    return f"too few clusters on the {few} side to tell how much runs vary"


def rows(old: Standing, new: Standing) -> tuple[Row, ...]:
    """Return the rows of two standings that can be compared, not yet decided."""
    sides = _Sides(old, new)
    return tuple(_rows(sides))


def overall(old: Standing, new: Standing) -> Mean | None:
    """Return r_op of the new side under the old side's mix, None where a side has no fault run."""
    return _Sides(old, new).row("r_op", ("r_op", None, None), None).new


class Listed(NamedTuple):
    """A row that there is to compare; `watched` is the old side's criterion, None for rates of success."""

    criterion: str
    key: Key
    margin: Fraction | None
    watched: Watched | None = None


def listed(old: Standing, new: Standing) -> Iterator[Listed]:
    """Yield the rows of two standings, in their order."""
    named = {row.metric: row.id for row in old.criteria}
    margins = {row.id: row.margin for row in (*new.criteria, *old.criteria) if row.margin is not None}
    r_op, c_nom = named.get("r_op", "r_op"), named.get("c_nom", "c_nom")
    margin = margins.get(r_op)
    yield Listed(r_op, ("r_op", None, None), margin)
    for row in old.criteria:
        if row.metric not in DERIVED and row.metric not in {"r_op", "c_nom"}:
            yield Listed(row.id, (row.metric, None, None), margins.get(row.id), row)
    keys = {key_of(row) for row in (*old.moments, *new.moments)}
    if ("c_nom", None, None) in keys:
        yield Listed(c_nom, ("c_nom", None, None), margins.get(c_nom, margin))
    for domain in sorted({key[1] for key in keys if key[0] == "r_op" and key[1] is not None}):
        yield Listed(r_op, ("r_op", domain, None), margin)
    for condition in sorted({key[2] for key in keys if key[2] is not None}):
        yield Listed(r_op, ("r_op", None, condition), margin)


def _rows(sides: _Sides) -> Iterator[Row]:
    for one in listed(sides.old, sides.new):
        reason = None if one.watched is None else blocked(one.watched, sides.old, sides.new)
        yield sides.row(one.criterion, one.key, one.margin, reason)


def blocked(watched: Watched, old: Standing, new: Standing) -> str | None:
    """Return why the means of a criterion of the old side may not be compared although both have one."""
    if watched.metric not in METRICS:
        return None
    if watched.metric == "irs" and old.memory_observable != new.memory_observable:
        return "the sides declare differently whether memory queries were observable"
    if not all(any(row.metric == watched.metric for row in side.moments) for side in (old, new)):
        return None
    now = next((row for row in new.criteria if row.id == watched.id), None)
    unjudged = [name for name, row in (("old", watched), ("new", now)) if row is None or not row.judged]
    return (
        f"not measured well enough to be judged on the {' and the '.join(unjudged)} side"
        if unjudged
        else None
    )


def moved(old: Standing, new: Standing) -> Fraction:
    """Return the share of fault runs that moved between cells of domain and condition."""
    return _distance(
        {cell: runs for cell, runs in old.cells.items() if cell[1] != NOMINAL},
        {cell: runs for cell, runs in new.cells.items() if cell[1] != NOMINAL},
    )


def moved_within(old: Standing, new: Standing, *, faults_only: bool) -> Fraction:
    """Return the share of runs that moved between conditions of one domain, domains weighted as before."""
    mixes: dict[str, tuple[_Mix, _Mix]] = {domain: ({}, {}) for domain in old.domains | new.domains}
    for number, side in enumerate((old, new)):
        for cell, runs in side.cells.items():
            if not (faults_only and cell[1] == NOMINAL):
                mixes[cell[0]][number][cell] = runs
    weights = {domain: sum(before.values()) for domain, (before, _) in mixes.items()}
    total = sum(weights.values())
    found = sum((weights[domain] * _distance(*pair) for domain, pair in mixes.items()), Fraction(0))
    return found / total if total else Fraction(0)


def _distance(old: _Mix, new: _Mix) -> Fraction:
    """Return the total variation between two mixes, 0 where one of them is empty."""
    before, now = sum(old.values()), sum(new.values())
    if not before or not now:
        return Fraction(0)
    apart = sum(abs(old.get(cell, 0) * now - new.get(cell, 0) * before) for cell in {*old, *new})
    return Fraction(apart, 2 * before * now)
