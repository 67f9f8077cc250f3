"""What became of an agent from one passport to the next, as the score counts it.

    steps(history, standings, recent)        # a standing per passport, None without its file

A passport is compared with what `certkit.registry.course` says. While its evidence is recent, every loss
counts by its size, whether or not a test could tell it from chance: else failures that make a loss harder to
tell would raise the score. Of what lies further back only what the comparison itself told is kept.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from certkit.registry.course import Course
from certkit.registry.score import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from certkit.assessment.drift.standing import Standing
    from certkit.registry import course
    from certkit.registry.history import History

_TOLD = {"DRIFTED", "NOT_COMPARABLE"}


def steps(of: History, standings: Sequence[Standing | None], recent: Collection[int]) -> Iterator[Step]:
    """Yield the worst that is told of each passport against those before it, and of whatever else drifted.

    `recent` are the places of passports whose evidence is no older than that of the latest.
    """
    said: dict[tuple[str, str], list[str]] = {}
    for _, claims in of.drifts:
        said.setdefault((claims.earlier, claims.passport_id), []).append(claims.result)
    names = [one.claims.passport_id for one in of.passports]
    known = {name: one for name, one in zip(names, standings, strict=True) if one is not None}
    line, slow = Course(known.__getitem__), _Slow()
    for issued, name in zip(of.passports, names, strict=True):
        if (new := known.get(name)) is None:
            continue
        if (found := line.follow(name)) is not None:
            shown = _step(found, known.__getitem__, new, issued.index)
            if issued.index in recent:
                if (margins := slow.lost(new)) > shown.margins:
                    shown = replace(shown, margins=margins, row="r_op since the highest")
            elif shown.result not in _TOLD:
                shown = replace(shown, margins=0.0)
            results = [
                Step.said(result)
                for other in found.found
                for result in said.pop((other.earlier, name), [])
                if result != other.drift.result
            ]
            yield min([shown, *results], key=attrgetter("left"))
            if shown.result == "DRIFTED":
                slow = _Slow()
        slow.add(new)
    yield from map(Step.said, chain.from_iterable(said.values()))


def _step(found: course.Step, standing: Callable[[str], Standing], new: Standing, index: int) -> Step:
    before = found.found[0]
    each = [_lost(standing(one.earlier), new, is_next=one is before) for one in found.found]
    margins, row = max(each, key=itemgetter(0))
    changed = bool(before.drift.identity)
    return Step(found.told.drift.result, margins, is_changed=changed, index=index, row=row)


def _lost(old: Standing, new: Standing, *, is_next: bool) -> tuple[float, str | None]:
    """Return the margins lost since an earlier passport, which is the one before or a base, and in which row.

    From the one before nothing may differ but what runs are lacking, of which `lost` makes the worst.
    """
    from certkit.assessment.drift.lost import Lost, lost  # noqa: PLC0415 - heavy

    found = lost(old, new)
    has_more = new.domains - old.domains or new.conditions - old.conditions
    return (1.0, None) if is_next and (found is None or has_more) else found or Lost()


class _Slow:
    """The highest r_op over all since the last drift, beyond its noise, under every profile.

    Each of many small steps may exclude a loss of the margin, so that one base takes the place of another.
    """

    def __init__(self) -> None:
        self._highest: dict[str, float] = {}

    def add(self, one: Standing) -> None:
        """Take the next passport."""
        from certkit.assessment.drift.lost import least  # noqa: PLC0415 - heavy

        if (found := least(one)) is not None:
            self._highest[one.profile_digest] = max(found, self._highest.get(one.profile_digest, found))

    def lost(self, one: Standing) -> float:
        """Return the margins lost since."""
        from certkit.assessment.drift.lost import below  # noqa: PLC0415 - heavy

        highest = self._highest.get(one.profile_digest)
        return 0.0 if highest is None else below(highest, one)
