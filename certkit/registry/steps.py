"""What became of an agent from one passport to the next, as the score counts it.

    steps(history, standings, recent)        # a standing per passport, None without its file

A passport is compared with what `certkit.registry.course` says. While its evidence is recent, every loss
counts by its size, whether or not a test could tell it from chance: else failures that make a loss harder to
tell would raise the score. Of what lies further back only what a comparison told is kept, and what a drift
of another criterion than success told is a margin.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from certkit.registry.course import Course
from certkit.registry.score import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from certkit.assessment.drift.standing import Standing
    from certkit.registry import course
    from certkit.registry.history import History

_TOLD: Final = {"DRIFTED", "NOT_COMPARABLE"}


def steps(of: History, standings: Sequence[Standing | None], recent: Collection[int]) -> tuple[Step, ...]:
    """Return what is told of each passport against those before it.

    `recent` are the places of passports whose evidence is no older than that of the latest. Of those on the
    same evidence the one that lost most counts.
    """
    from certkit.assessment.drift.lost import Highest  # noqa: PLC0415 - heavy

    names = [one.claims.passport_id for one in of.passports]
    known = {name: one for name, one in zip(names, standings, strict=True) if one is not None}
    line, highest = Course(known.__getitem__), Highest()
    found: list[tuple[str | None, Step]] = []
    for issued, name in zip(of.passports, names, strict=True):
        if (new := known.get(name)) is None:
            continue
        if (compared := line.follow(name)) is not None:
            shown, is_recent = _step(compared, known.__getitem__, new, issued.index), issued.index in recent
            if not is_recent and shown.result not in _TOLD:
                shown = replace(shown, margins=0.0)
            elif not is_recent and shown.result == "DRIFTED" and not shown.margins:
                shown = replace(shown, margins=1.0, row=None)  # what it lost was not success
            elif (since := highest.lost(new)).margins > shown.margins:
                shown = replace(shown, margins=since.margins, row=f"{since.row}, since the highest")
            found.append((new.evidence if is_recent else None, shown))
            if shown.result == "DRIFTED":
                highest.told(new)
        highest.add(new)
    return tuple(_once(found))


def _once(found: Sequence[tuple[str | None, Step]]) -> Iterator[Step]:
    """Yield steps, of those to the same evidence only the one that lost most with what was lost."""
    worst: dict[str | None, float] = {}
    for evidence, step in found:
        worst[evidence] = max(worst.get(evidence, 0.0), step.margins)
    for evidence, step in found:
        counts = evidence is None or worst.get(evidence) == step.margins
        yield step if counts else replace(step, margins=0.0)
        if counts and evidence is not None:
            worst.pop(evidence)


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
