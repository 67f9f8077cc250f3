"""How a verdict is told: the same words on every screen, in every report and in a passport's claim.

The tier by each reading stands in one line, and every serious challenge in a line of its own, with its code.
Whether challenges are open is said in the verdict itself. This module knows plain values only; nothing is
decided here.

    >>> readings(2, 0, decides="table")
    'Table reading: Tier 2 (decides); bounded reading: no tier.'
    >>> qualified("Tier 2 is attained under hb-eval-2026", ["names-alike"])
    'Tier 2 is attained under hb-eval-2026; CONTESTED by 1 open challenge: names-alike'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence


UNDECLARED: Final = (
    "nothing says that the tasks are independent: give every record a cluster_id, or import the log again"
    " with --independent-tasks"
)
"""Why the bounded reading judges no row."""


def weakest(derived: int, traced: int, records: int) -> Literal["asserted", "traced", "derived"]:
    """Return the weakest evidence level of `records`, the rest of which is asserted."""
    if not records or derived + traced < records:
        return "asserted"
    return "traced" if traced else "derived"


def tier(number: int | None) -> str:
    """Return ``Tier 2``, or that there is none; None is a reading that a document does not speak of."""
    if number is None:
        return "not stated"
    return f"Tier {number}" if number else "no tier"


def many(number: int, noun: str = "run") -> str:
    """Return a count with its noun: ``1 run``, ``1,200 runs``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def readings(table: int | None, bounded: int | None, *, decides: str) -> str:
    """Return the tier by each reading, and which reading decides."""
    told = {"table": f"Table reading: {tier(table)}", "bounded": f"bounded reading: {tier(bounded)}"}
    told[decides] += " (decides)"
    return f"{told['table']}; {told['bounded']}."


def challenge(code: str, state: str, message: str, answered_by: Sequence[str] = ()) -> str:
    """Return a serious challenge in words: whether it is open, what it says, its code."""
    by = f" by {listed(answered_by)}" if answered_by else ""
    return f"serious, {state}{by}: {message} [{code}]"


def qualified(
    text: str, contested_by: Sequence[str], answered: int = 0, answerers: Sequence[str] = ()
) -> str:
    """Return what a verdict says, with the codes of the serious challenges that contest it.

    Where all of them are answered, the verdict says how many, and by whom.
    """
    if contested_by:
        return f"{text}; CONTESTED by {many(len(contested_by), 'open challenge')}: {', '.join(contested_by)}"
    by = listed(answerers) if answerers else "nobody named"
    return f"{text}; {many(answered, 'challenge')} answered by {by}" if answered else text


def listed(names: Sequence[str]) -> str:
    """Return names as "a, b and c"."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
