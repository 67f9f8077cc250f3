"""Words that every room says in the same way: counts with their nouns, lists, tiers.

>>> many(1_200, "entry"), listed(["a", "b", "c"]), tier_name(0)
('1,200 entries', 'a, b and c', 'no tier')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def many(number: int, noun: str = "run") -> str:
    """Return a count with its noun: ``1 run``, ``1,200 runs``."""
    if number == 1:
        return f"{number:,} {noun}"
    consonant = noun.endswith("y") and not noun.endswith(("ay", "ey", "oy"))
    return f"{number:,} {noun.removesuffix('y')}ies" if consonant else f"{number:,} {noun}s"


def tier_name(number: int) -> str:
    """Return ``Tier 2``, or that there is none."""
    return f"Tier {number}" if number else "no tier"


def listed(names: Sequence[str]) -> str:
    """Return names as "a, b and c"."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
