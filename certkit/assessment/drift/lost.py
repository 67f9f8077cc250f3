"""How much of a loss the earlier side's own noise does not explain: what no failure of the later can hide.

    lost(old, new)             # Lost(margins, row); None where the two can't be compared at all
    Highest().add(old)         # row by row the best so far

A test of drift asks how far apart both sides may lie by chance, and failures can make the new side's
clusters less alike, so that a loss is harder to tell. Here the new side is taken as if it were known exactly,
and only the old side's noise is allowed for. A success of the new side that becomes a failure, or a further
failing run, never leaves fewer margins lost:

- Each row of r_op and of nominal success is compared cell by cell, under the old side's mix. A cell that the
  new side lacks counts as if all its runs had failed: to fill it with failures changes nothing. Cells of the
  new side alone change nothing.
- frr and irs are taken per fault run, with nothing for runs that do not show it. The criteria are means over
  fewer runs, those that succeeded for irs, and so rise with some failures. Resistance to attacks is r_op's
  row of that condition; the criterion's own runs are chosen by what they say of the attack.
- pei, ti and violations are means over the runs that show them, as they are, and failing runs show them too:
  what they show, or hide, counts there. Where the new side shows nothing any more, a margin is lost.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.drift import ALPHA, JUDGED_BY_MODEL, Q, differences
from certkit.assessment.drift.difference import limit, plain
from certkit.assessment.drift.rows import by_cell, listed, named
from certkit.assessment.drift.standing import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from certkit.assessment.drift.rows import Listed
    from certkit.assessment.drift.standing import Key, Standing

_OVERALL: Final[Key] = ("r_op", None, None)
_PER_RUN: Final = {"frr", "irs"}
_SHARES: Final = {"r_op", "c_nom", *_PER_RUN}
_UNCOUNTED: Final = {"adversarial_resistance"}

FAR: Final = 0.001
"""Level of what the highest of many may have been by chance."""


class Lost(NamedTuple):
    """The margins lost in the row that lost most; `inf` where anything was lost of a margin of 0."""

    margins: float = 0.0
    row: str | None = None


class _Mark(NamedTuple):
    """A row of an earlier side, as a later one is held against it: what it was at worst, and its mix."""

    key: Key
    limit: float
    weights: Mapping[Key, int]
    margin: Fraction
    name: str
    by: object

    def lost(self, new: _Side) -> Lost:
        """Return what a later side lost of it."""
        value = new.value(self.key, self.weights) if new.by(self.key) == self.by else None
        lacking = self.weights.keys() - new.runs(self.key).keys()
        name = f"{self.name}, of which runs are lacking" if lacking else self.name
        if value is None:
            return Lost(1.0, name)
        worse = self.limit - float(value) if CATALOGUE[self.key[0]].higher else float(value) - self.limit
        if worse <= 0:
            return Lost(0.0, name)
        return Lost(worse / float(self.margin) if self.margin else inf, name)

    def is_better(self, than: _Mark) -> bool:
        """Tell whether it is harder to be as good as."""
        return self.limit > than.limit if CATALOGUE[self.key[0]].higher else self.limit < than.limit


class _Side:
    """A standing with its integers by row and by cell."""

    def __init__(self, of: Standing) -> None:
        self._rows = {key_of(row): row for row in of.moments}
        self._cells = by_cell(of)
        self._by = {"ti": of.judge, "irs": of.memory_observable}

    def by(self, key: Key) -> object:
        """Return what both sides must have alike for a row to be compared."""
        return self._by.get(key[0])

    def runs(self, key: Key) -> dict[Key, int]:
        """Return over how many runs each cell of a row is taken."""
        metric, cells = key[0], self._cells.get(key, {})
        if metric not in _PER_RUN:
            return {name: row.n for name, row in cells.items()}
        faults: dict[Key, int] = {
            (metric, domain, None): row.n
            for (rate, domain, condition), row in self._rows.items()
            if rate == "r_op" and domain is not None and condition is None
        }
        # No more runs show it than there are, but in a forgery.
        return faults | {name: max(faults.get(name, 0), row.n) for name, row in cells.items()}

    def value(self, key: Key, weights: Mapping[Key, int]) -> Fraction | None:
        """Return a row's mean under a mix, None where it is no share of runs and a cell of it is lacking."""
        cells, runs = self._cells.get(key, {}), self.runs(key)
        if key[0] not in _SHARES and weights.keys() - cells.keys():
            return None
        shares = (
            weights.get(name, 0) * Fraction(row.y, row.scale * runs[name]) for name, row in cells.items()
        )
        return sum(shares, Fraction(0)) / sum(weights.values())

    def mark(self, one: Listed, level: float) -> _Mark | None:
        """Return a row as later sides are held against it, None where there is nothing to lose."""
        row = self._rows.get(one.key)
        judged = one.watched is None or one.watched.judged
        if row is None or one.margin is None or not judged or one.key[0] in _UNCOUNTED:
            return None
        weights = self.runs(one.key)
        of = limit(plain(row), level) * row.n / sum(weights.values())
        name = named(one.criterion, *one.key[1:])
        return _Mark(one.key, of, weights, one.margin, name, self.by(one.key))


def lost(old: Standing, new: Standing) -> Lost | None:
    """Return what was lost in the row that lost most, at the levels of the tests of drift.

    It is None where the profile or the protocol of the sides differs, of which no number of failures makes
    anything else.
    """
    if not _is_alike(old, new):
        return None
    side, later = _Side(old), _Side(new)
    marks = (side.mark(one, ALPHA if one.key == _OVERALL else Q) for one in listed(old, old))
    return max((one.lost(later) for one in marks if one), key=attrgetter("margins"), default=Lost())


def _is_alike(old: Standing, new: Standing) -> bool:
    # What runs there are and what could be judged rests on failures too, and is asked row by row.
    return not differences(old, structs.replace(new, runs=old.runs, criteria=()))


class Highest:
    """Row by row the best that any side of a history was at worst.

    With it neither a side on few runs nor many small steps hide a loss. Of many sides one is high by chance,
    so it is taken at the level `FAR`. Sides under different profiles and protocols stand beside each other.
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[object, ...], tuple[Standing, dict[Key, _Mark]]] = {}

    def add(self, one: Standing) -> None:
        """Take the next side."""
        _, marks = self._kinds.setdefault(_kind(one), (one, {}))
        side = _Side(one)
        for new in (side.mark(row, FAR) for row in listed(one, one)):
            if new is not None and ((old := marks.get(new.key)) is None or new.is_better(old)):
                marks[new.key] = new

    def lost(self, new: Standing) -> Lost:
        """Return what was lost since, in the row that lost most."""
        side = _Side(new)
        each = (mark.lost(side) for marks in self._of(new) for mark in marks.values())
        return max(each, key=attrgetter("margins"), default=Lost())

    def told(self, new: Standing) -> None:
        """Forget the rows of which a side lost something, as what was told of it is told once."""
        side = _Side(new)
        for marks in self._of(new):
            for key in [key for key, mark in marks.items() if mark.lost(side).margins > 0]:
                del marks[key]

    def _of(self, new: Standing) -> list[dict[Key, _Mark]]:
        return [marks for one, marks in self._kinds.values() if _is_alike(one, new)]


def _kind(one: Standing) -> tuple[object, ...]:
    """Return what sides that can all be compared with the same ones have in common."""
    judge = one.judge if one.methodology == JUDGED_BY_MODEL else None
    cascade = (one.cascade_definition,) if "cascade" in one.conditions else None
    return (one.profile_digest, one.origin, one.methodology, one.success_rule, judge, cascade)
