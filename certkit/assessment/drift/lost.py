"""How much of a loss the old side's own noise does not explain: what no failure of the new side can hide.

    lost(old, new).margins     # 0.0 to inf, in .row; None where the two can't be compared at all

A test of drift asks how far apart both sides may lie by chance, and failures can make the new side's
clusters less alike, so that a loss is harder to tell. Here the new side is taken as if it were known exactly,
and only the old side's noise is allowed for, at the levels of the test. So there are margins lost wherever a
test finds drift, and a success of the new side that becomes a failure, or a further failing run, never
leaves fewer of them:

- Each row of r_op and of nominal success is compared cell by cell, under the old side's mix. A cell that the
  new side lacks counts as if all its runs had failed: to fill it with failures changes nothing.
- Cells of the new side alone change nothing.
- A criterion that the old side judged and the new one does not, or that can't be compared, counts as one
  margin. What failing runs show in another criterion counts in that one: it is a mean over runs as they are.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.drift import ALPHA, Q, differences
from certkit.assessment.drift.difference import limit, plain
from certkit.assessment.drift.rows import blocked, by_cell, listed, named
from certkit.assessment.drift.standing import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from certkit.assessment.drift.difference import Mean
    from certkit.assessment.drift.standing import Key, Standing
    from certkit.assessment.reliability import Moments

    Cells = Mapping[Key, Moments]

_OVERALL: Final[Key] = ("r_op", None, None)


class Lost(NamedTuple):
    """The margins lost in the row that lost most; `inf` where anything was lost of a margin of 0."""

    margins: float = 0.0
    row: str | None = None


def lost(old: Standing, new: Standing) -> Lost | None:
    """Return what was lost in the row that lost most.

    It is None where the profile or the protocol of the sides differs, of which no number of failures makes
    anything else.
    """
    # What runs there are and what could be judged rests on failures too, and is asked row by row.
    if differences(old, structs.replace(new, runs=old.runs, criteria=())):
        return None
    return max(_rows(old, new), key=attrgetter("margins"), default=Lost())


def least(side: Standing) -> float | None:
    """Return r_op over all as it may have been at least, None where it was not measured."""
    row = next((row for row in side.moments if key_of(row) == _OVERALL), None)
    return None if row is None else limit(plain(row), ALPHA)


def below(value: float, side: Standing) -> float:
    """Return the margins by which r_op over all of a side, as its runs came, is lower than a value."""
    row = next((row for row in side.moments if key_of(row) == _OVERALL), None)
    margin = next((one.margin for one in side.criteria if one.metric == "r_op"), None)
    if row is None or margin is None:
        return 0.0
    return _margins(value - float(plain(row).value), margin)


def _margins(loss: float, margin: Fraction) -> float:
    if loss <= 0:
        return 0.0
    return loss / float(margin) if margin else inf


def _rows(old: Standing, new: Standing) -> Iterator[Lost]:
    before = {key_of(row): plain(row) for row in old.moments}
    cells, now = by_cell(old), by_cell(new)
    for one in listed(old, new):
        side = before.get(one.key)
        if side is None or one.margin is None or (one.watched and not one.watched.judged):
            continue
        there = now.get(one.key, {})
        value: Fraction | None = _rate(cells[one.key], there)
        lacking = cells[one.key].keys() - there.keys()
        if one.watched is not None:
            other = one.watched.metric == "ti" and old.judge != new.judge
            value = None if other or lacking or blocked(one.watched, old, new) else value
        beyond = 1.0 if value is None else _beyond(side, value, one.margin, overall=one.key == _OVERALL)
        more = ", of which runs are lacking" if lacking else ""
        yield Lost(beyond, named(one.criterion, *one.key[1:]) + more)


def _beyond(side: Mean, value: Fraction, margin: Fraction, *, overall: bool) -> float:
    least = limit(side, ALPHA if overall else Q)
    loss = least - float(value) if CATALOGUE[side.metric].higher else float(value) - least
    return _margins(loss, margin)


def _rate(old: Cells, new: Cells) -> Fraction:
    """Return a row's mean on the new side under the old mix; a cell that it lacks has a mean of 0."""
    found = Fraction(0)
    for key, before in old.items():
        if (row := new.get(key)) is not None:
            found += Fraction(before.n * row.y, row.n * row.scale)
    return found / sum(row.n for row in old.values())
