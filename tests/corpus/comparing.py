"""Answers as single figures, what may differ from the frozen ones, and what does.

A figure has a place: ``plain/hb-eval-2026/criteria/frr/2/bounded.bound``, that is bundle, profile, part, then
row, tier and key as far as the part has them. What certkit leaves out or answers with null has no place.

    complaints, used = compare(expected, now, differences)

`used` are the numbers of the differences that occurred.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, convert

from certkit.ground import canonical, toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Figure = str | int | float | bool
EXPECTED: Final = Path(__file__).with_name("expected.json")
DIFFERENCES: Final = Path(__file__).with_name("differences.toml")

BOUNDS: Final = ("bounded.bound", "corrected", "low", "high")
"""Figures that quantiles enter: C libraries differ in their last digits."""


class Difference(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A difference that is wanted; the head of ``differences.toml`` says what its members mean."""

    where: list[str]
    reason: str
    was: list[Figure] | None = None
    now: list[Figure] | None = None
    gone: bool = False
    new: bool = False
    lower: bool = False
    higher: bool = False
    within: float | None = None
    without: str | None = None
    any: bool = False

    def __post_init__(self) -> None:
        """Refuse a difference that demands nothing of the new answer and does not say so."""
        stated = (self.now, self.within, self.without)
        demands = any(
            (self.gone, self.new, self.lower, self.higher, any(item is not None for item in stated))
        )
        if not self.reason.strip() or self.any == demands:
            raise ValueError("a difference has a reason, and either demands on the new answer or `any`")

    def covers(self, place: str, old: Figure | None) -> bool:
        """Tell whether it speaks of the figure at `place`, which was `old`."""
        named = any(fnmatchcase(place, pattern) for pattern in self.where)
        return named and (self.was is None or any(_equal(place, old, item) for item in self.was))

    def allows(self, place: str, old: Figure | None, new: Figure | None) -> bool:
        """Tell whether the new answer is what it demands."""
        return all(self._demands(place, old, new))

    def _demands(self, place: str, old: Figure | None, new: Figure | None) -> Iterator[bool]:
        if self.now is not None:
            yield any(_equal(place, item, new) for item in self.now)
        if self.gone:
            yield new is None
        if self.new:
            yield old is None and new is not None
        if self.without is not None:
            left = [word for word in str(old).split() if word not in self.without.split()]
            yield isinstance(old, str) and new == " ".join(left)
        if self.lower or self.higher or self.within is not None:
            numbers = [item for item in (old, new) if isinstance(item, int | float)]
            yield len(numbers) == 2 and _moved(self, *numbers)


def _moved(difference: Difference, old: float, new: float) -> bool:
    return (
        (not difference.lower or new < old)
        and (not difference.higher or new > old)
        and (difference.within is None or abs(new - old) <= difference.within)
    )


def figures(answers: Mapping[str, Any], *names: str) -> dict[str, Figure]:
    """Return every figure of nested answers by its place."""
    result: dict[str, Figure] = {}
    for name, value in answers.items():
        if isinstance(value, dict):
            result |= figures(value, *names, name)
        elif value is not None:
            result["/".join((*names, name))] = value
    return result


def _equal(place: str, old: Figure | None, new: Figure | None) -> bool:
    """Tell whether two answers are the same: exactly, and numbers with a fraction nearly."""
    if float in (kinds := {type(old), type(new)}) and kinds <= {float, int}:
        assert isinstance(old, float | int)
        assert isinstance(new, float | int)
        near = 1e-8 if place.endswith(BOUNDS) else 1e-9
        return isclose(old, new, rel_tol=near, abs_tol=near)
    return type(old) is type(new) and old == new


def compare(
    expected: Mapping[str, Figure], now: Mapping[str, Figure], differences: Sequence[Difference]
) -> tuple[list[str], set[int]]:
    """Return what differs and is not wanted, and which of the wanted differences occurred."""
    complaints, used = [], set()
    for place in sorted(expected.keys() | now.keys()):
        old, new = expected.get(place), now.get(place)
        if _equal(place, old, new):
            continue
        listed = [number for number, item in enumerate(differences) if item.covers(place, old)]
        allowing = {number for number in listed if differences[number].allows(place, old, new)}
        used |= allowing
        if not allowing:
            told = "; ".join(f"listed, and not so: {differences[number].reason}" for number in listed)
            complaints.append(f"{place}: {_shown(old)} -> {_shown(new)}" + (f" ({told})" if told else ""))
    return complaints, used


def _shown(value: Figure | None) -> str:
    return "absent" if value is None else repr(value)


def read_expected() -> dict[str, Any]:
    """Return the frozen answers by bundle."""
    answers = canonical.loads(EXPECTED.read_bytes())
    assert isinstance(answers, dict)
    return answers


def read_differences(text: str | None = None) -> list[Difference]:
    """Return the wanted differences; a single pattern, `was` or `now` may stand without its brackets."""
    text = DIFFERENCES.read_text(encoding="utf-8") if text is None else text
    table = toml.loads(text, code="corpus.differences", where=DIFFERENCES.name)
    assert table.keys() <= {"difference"}, "differences.toml holds [[difference]] and nothing else"
    return [
        convert(
            {
                key: [value] if key in {"where", "was", "now"} and not isinstance(value, list) else value
                for key, value in item.items()
            },
            Difference,
        )
        for item in table.get("difference", ())
    ]


def written(answers: Mapping[str, Any], indent: str = "") -> str:
    """Return answers as JSON in which objects without objects in them stand on one line."""
    if not any(isinstance(value, dict) for value in answers.values()):
        return canonical.line(answers).decode().strip()
    deeper = indent + " "
    members = (
        f"{deeper}{canonical.line(name).decode().strip()}: "
        + (written(value, deeper) if isinstance(value, dict) else canonical.line(value).decode().strip())
        for name, value in answers.items()
    )
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"
