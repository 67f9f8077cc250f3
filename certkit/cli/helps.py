"""Help as it is printed: an example can be copied, and a line of a list of commands ends where sense does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH: Final = 78
_EXAMPLE: Final = "Example: "
_AS_IT_IS: Final = "\b\n"  # what stands before a paragraph whose lines are not to be put together
_GUTTER: Final = 4  # beside the names in a list of commands
_WORD: Final = re.compile(r'(?:--?[a-z-]+ )?(?:"[^"]*"|[^\s"])+')  # an option stays with its value
_SENTENCE: Final = re.compile(r"\.(?=\s|$)")
_PAUSES: Final = (re.compile(r"[;:](?=\s)"), re.compile(r",(?=\s)"))


def tidied(command: Any) -> Any:
    """Return a command with those below it, their help made so."""
    for name, below in getattr(command, "commands", {}).items():
        room = _WIDTH - _GUTTER - max(map(len, [name, *command.commands]))
        tidied(below).short_help = short(below.help or "", room)
    text, found, example = (command.help or "").partition(_EXAMPLE)
    if found:
        command.help = f"{text}{_AS_IT_IS}{chr(10).join(_lines(_EXAMPLE + example))}"
    return command


def short(text: str, room: int) -> str:
    """Return the first sentence of a text, or as much of it up to a pause as there is room for."""
    sentence = _SENTENCE.split(text.replace("\n", " "))[0]
    if len(sentence) > room:
        for pause in _PAUSES:
            if ends := [match.start() for match in pause.finditer(sentence) if match.start() <= room]:
                return sentence[: ends[-1]]
    return sentence


def _lines(text: str) -> Iterator[str]:
    line = ""
    for word in _WORD.findall(text):
        if len(line) + len(word) > _WIDTH - len("   \\"):
            yield line + " \\"
            line = "   "
        line += f" {word}" if line else word
    yield line
