"""The stock that tasks are told with, and draws from it that depend on nothing but the seed.

Names are one word each. Remarks and fillers name no person, place, number or thing that a task asks about,
and are about as long as what a misleading last turn says, so that length gives nothing away.
"""

from __future__ import annotations

import hmac
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

Item = TypeVar("Item")
_RANGE: Final = 1 << 256

_NAMES: Final = (
    "Adaeze Borys Chiara Dewi Eleni Farid Goran Hanae Ingrid Jomo Katya Lautaro Mireille Nikhil Oksana "
    "Pavlos Qiang Rosalind Søren Tamsin Ulla Vusi Wanjiru Ximena Yusuf Zoë Anouk Bashir Ciarán Dilnoza "
    "Emeka Fenna Gyula Hoshi Isaura Jelena Kofi Łucja Malik Nerys Orhan Petra Rangi Saskia Tomasz Ume "
    "Viorel Willow Yared Zsófia"
)
NAMES: Final = tuple(_NAMES.split())

FILLERS: Final = (
    "Tea is ready in the back room, and somebody has brought rye bread.",
    "The printer by the window needs a new drum and is out of use until noon.",
    "A window blind came loose, and the caretaker is on the way with a ladder.",
    "Parking behind the building is closed while the drains are flushed.",
    "The radio reports drizzle along the coast and clear skies inland.",
    "A parcel without a label was left at reception and is still there.",
    "The choir rehearses upstairs tonight, so the corridor will be loud.",
    "Two chairs in the meeting room wobble and were put aside.",
    "The clock over the stairs runs slow and nobody has the key to it.",
    "Whoever used the whiteboard last, please wipe it before leaving.",
    "The coffee grinder was returned from repair and works again.",
    "A cat has settled on the boiler and refuses to be moved.",
)

REMARKS: Final = (
    "the lift is slow today.",
    "the lamp by the door flickers.",
    "the kettle was left on again; mind it.",
    "the lift is slow tonight, so allow five minutes.",
    "the rain has stopped, and the yard is dry enough to cross.",
    "somebody left an umbrella in the hall; it is still hanging there.",
    "the radiators were bled this morning, so expect some knocking from them.",
    "the bell in the corridor rings twice these days, and once is enough to come.",
    "the floor near the entrance was washed just now, so walk slowly until it has dried.",
    "the caretaker will test the lights after closing, and nobody needs to stay behind for that.",
    "the bus stop was moved across the road this week, so leave a little earlier than you used to do.",
    "the canteen closes sooner than it used to, so whoever wants a warm meal should go there early.",
    "the heating will be off for a while this evening, and there are blankets in the cupboard upstairs.",
    (
        "the windows facing the street are being cleaned, so please keep the sills clear and the blinds up"
        " until they finish."
    ),
)


class Draw:
    """Choices for one pair of twins: HMAC-SHA-256 under the seed of where and what is chosen."""

    def __init__(self, seed: str, place: str) -> None:
        self._key = seed.encode()
        self._place = place

    def below(self, name: str, n: int) -> int:
        """Return a number from 0 to n - 1, all equally likely, drawing again what does not divide evenly."""
        for counter in count():
            text = f"{self._place}/{name}/{counter}".encode()
            number = int.from_bytes(hmac.digest(self._key, text, "sha256"))
            if number < _RANGE - _RANGE % n:
                break
        return number % n

    def pick(self, name: str, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[self.below(name, len(items))]

    def some(self, name: str, items: Sequence[Item], k: int) -> list[Item]:
        """Return k different items in drawn order."""
        left = list(items)
        return [left.pop(self.below(f"{name}.{number}", len(left))) for number in range(k)]

    def numbers(self, name: str, k: int) -> list[int]:
        """Return k different numbers of three or four digits."""
        drawn: dict[int, None] = {}
        for number in count():
            drawn[100 + self.below(f"{name}.{number}", 9_900)] = None
            if len(drawn) == k:
                break
        return list(drawn)


def capital(text: str) -> str:
    """Return a text that begins a sentence."""
    return text[:1].upper() + text[1:]


def neutral(said: str) -> str:
    """Return the remark whose length is nearest to what is said instead."""
    return min(REMARKS, key=lambda remark: (abs(len(remark) - len(said)), remark))
