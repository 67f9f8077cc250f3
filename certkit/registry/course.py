"""What a passport of a lineage is compared with: one rule for who writes and who audits.

    course = Course(snapshot)                # snapshot(name): that of a passport, by whatever names it
    course.follow(first)                     # None: there is nothing to compare it with
    step = course.follow(second)
    step.told.earlier, step.told.drift.result

A passport is compared with the one before it, and with every base of its lineage. A base is a passport that
cannot be compared with any base before it, as the first one; whenever a comparison with a base tells
something, a drift or that a loss of the margin is excluded, the later passport takes its place. So neither a
passport on few runs nor one of another kind hides a loss from the next, and what was told is not told again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.errors import CertkitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from certkit.assessment.drift import Drift
    from certkit.assessment.drift.snapshot import Snapshot

BASES: Final = 8
"""How many bases are kept, the newest: to lose one takes as many kinds that cannot be compared with it."""


LINE: Final = 7
"""How many passports before the newest are kept for the trend."""


class Compared(Struct, frozen=True):
    """The comparison with an earlier passport."""

    earlier: str
    drift: Drift


class Step(Struct, frozen=True):
    """What a passport was compared with: the one before it first, then the bases, the newest first."""

    found: tuple[Compared, ...]

    @property
    def told(self) -> Compared:
        """The comparison that counts: a drift before all, else that with the one before.

        Where that one says too little, it is one with a base that says there is no loss.
        """
        before = self.found[0]
        wanted = ["DRIFTED", "STABLE"] if before.drift.result == "UNDERPOWERED" else ["DRIFTED"]
        return next((one for result in wanted for one in self.found if one.drift.result == result), before)


class Course:
    """The passports of one lineage, oldest first; only names are kept, of the last ones and of the bases."""

    def __init__(self, snapshot: Callable[[str], Snapshot]) -> None:
        self._snapshot = snapshot
        self._line: list[str] = []
        self._bases: list[str] = []

    def follow(self, name: str) -> Step | None:
        """Take the next passport, None where there is none before it; raise what `snapshot` does.

        One that raises is passed over: the next is compared with those before it.
        """
        if not self._line:
            self._line, self._bases = [name], [name]  # read when there is something to compare it with
            return None
        new, bases = self._snapshot(name), self._bases
        found = tuple(self._compared(dict.fromkeys((self._line[-1], *bases)), new))
        told = {one.earlier for one in found if _tells(one.drift)}
        compared = {one.earlier for one in found if one.drift.result != "NOT_COMPARABLE"}
        if told.intersection(bases) or not compared.intersection(bases):
            self._bases = [name, *(one for one in bases if one not in told)][:BASES]
        step = Step(found) if found else None
        drifted = step is not None and step.told.drift.result == "DRIFTED"
        # A loss that was told is the trend's past: it is not told again with every passport that follows.
        self._line = [name] if drifted else [*self._line, name][-LINE:]
        return step

    def _compared(self, earlier: Iterable[str], new: Snapshot) -> Iterator[Compared]:
        from certkit.assessment.drift import drift  # noqa: PLC0415 - heavy

        for one in earlier:
            with suppress(CertkitError):  # only of the first one it is not known yet
                before = self._earlier() if one == self._line[-1] else ()
                yield Compared(one, drift(self._snapshot(one), new, before=before))

    def _earlier(self) -> list[Snapshot]:
        """Return the passports before the last one, as far as they can be read: the trend's."""
        found = []
        for name in self._line[:-1]:
            with suppress(CertkitError):
                found.append(self._snapshot(name))
        return found


def _tells(found: Drift) -> bool:
    """Tell whether a comparison shows a drift, or excludes a loss in all that the base measured."""
    rows = [row for row in found.behaviour if row.old is not None and row.margin is not None]
    excludes = any(row.is_overall for row in rows) and all(row.no_loss for row in rows)
    return found.result == "DRIFTED" or excludes
