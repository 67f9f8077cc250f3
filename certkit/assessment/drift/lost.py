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
- Other criteria have no part in it. They are means over the runs that show them, which some failures raise:
  irs is over successes alone, and a run that fails may show few violations, or take many along.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from certkit.assessment.drift import ALPHA, JUDGED_BY_MODEL, Q, differences
from certkit.assessment.drift.difference import limit, plain
from certkit.assessment.drift.rows import by_cell, listed, named
from certkit.assessment.drift.standing import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from certkit.assessment.drift.standing import Key, Standing
    from certkit.assessment.reliability import Moments

_OVERALL: Final[Key] = ("r_op", None, None)
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

    def lost(self, cells: Mapping[Key, Moments]) -> Lost:
        """Return what a later side lost of it, by that side's cells of the row; one that it lacks is 0."""
        shares = (
            weight * Fraction(cells[key].y, cells[key].scale * cells[key].n)
            for key, weight in self.weights.items()
            if key in cells
        )
        worse = self.limit - float(sum(shares, Fraction(0)) / sum(self.weights.values()))
        name = self.name if self.weights.keys() <= cells.keys() else f"{self.name}, of which runs are lacking"
        if worse <= 0:
            return Lost(0.0, name)
        return Lost(worse / float(self.margin) if self.margin else inf, name)


def _marks(one: Standing, level: float | None = None) -> Iterator[_Mark]:
    """Yield the rows of a side, at a level, or at those of the tests of drift."""
    rows, cells = {key_of(row): row for row in one.moments}, by_cell(one)
    for row in listed(one, one):
        if row.watched is None and row.margin is not None and row.key in rows:
            at = level or (ALPHA if row.key == _OVERALL else Q)
            weights = {key: cell.n for key, cell in cells[row.key].items()}
            name = named(row.criterion, *row.key[1:])
            yield _Mark(row.key, limit(plain(rows[row.key]), at), weights, row.margin, name)


def lost(old: Standing, new: Standing) -> Lost | None:
    """Return what was lost in the row that lost most, at the levels of the tests of drift.

    It is None where the profile or the protocol of the sides differs, of which no number of failures makes
    anything else.
    """
    if not _is_alike(old, new):
        return None
    return _worst(_marks(old), new)


def _worst(marks: Iterable[_Mark], new: Standing) -> Lost:
    cells = by_cell(new)
    return max((one.lost(cells.get(one.key, {})) for one in marks), key=attrgetter("margins"), default=Lost())


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
        for new in _marks(one, FAR):
            if (old := marks.get(new.key)) is None or new.limit > old.limit:
                marks[new.key] = new

    def lost(self, new: Standing) -> Lost:
        """Return what was lost since, in the row that lost most."""
        return _worst((mark for marks in self._of(new) for mark in marks.values()), new)

    def told(self, new: Standing) -> None:
        """Forget the rows of which a side lost something, as what was told of it is told once."""
        cells = by_cell(new)
        for marks in self._of(new):
            for key, mark in list(marks.items()):
                if mark.lost(cells.get(key, {})).margins > 0:
                    del marks[key]

    def _of(self, new: Standing) -> list[dict[Key, _Mark]]:
        return [marks for one, marks in self._kinds.values() if _is_alike(one, new)]


def _kind(one: Standing) -> tuple[object, ...]:
    """Return what sides that can all be compared with the same ones have in common."""
    judge = one.judge if one.methodology == JUDGED_BY_MODEL else None
    cascade = (one.cascade_definition,) if "cascade" in one.conditions else None
    return (one.profile_digest, one.origin, one.methodology, one.success_rule, judge, cascade)
