r"""Foreign text made safe to show: invisible characters and terminal controls are escaped.

The list of characters that no reader sees or that a terminal obeys is the same for terminal, reports, exports
and JSON: controls, line and paragraph separators, marks that reorder text, lone surrogates, and
everything that Unicode lets a renderer leave out (Default_Ignorable_Code_Point), such as zero-width spaces,
soft hyphens, fillers and tags. So two names that look the same are equal, except where
different letters look alike.

    >>> visible("tria\u200bge")
    'tria\\u200bge'

The list is written out and not taken from `unicodedata`, whose answers differ between versions of Python.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_BEYOND_ASCII: Final = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
HIDDEN: Final = re.compile(f"[\x00-\x1f{_BEYOND_ASCII}]")
"""A character that a reader does not see, or that a terminal obeys."""

HIDDEN_IN_LINES: Final = f"[{_BEYOND_ASCII}]"
"""The same, in text whose control characters of ASCII are its own."""

# A variation selector is seen in the form that it gives to the character before it, where that has several:
# an emblem or an ideograph. Anywhere else it is hidden text.
_VARYING: Final = (
    "(?<=[\u203c\u2049\u2139-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
    "|(?<=[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af])[\U000e0100-\U000e01ef]"
)


TIMESTAMP: Final = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?"
    "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?$"
)
"""The form of a date or of a time with offset; not every one of them is of the calendar."""


def visible(text: str) -> str:
    r"""Return a line of text with hidden characters escaped as in Python and C: ``\u200b``."""
    return HIDDEN.sub(_shown, text)


def quoted(text: str, most: int = 80) -> str:
    """Return foreign text in quotation marks, on one line, cut to `most` characters."""
    line = visible(" ".join(text.split())).replace('"', '\\"')
    return f'"{line if len(line) <= most else line[: most - 1] + "…"}"'


def name_key(text: str) -> str:
    """Return the form in which names are compared: NFKC and case folding, nothing more."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def is_said(text: str) -> bool:
    """Tell whether a text holds a letter or a digit."""
    return any(map(str.isalnum, text))


def moment(text: str, *, last: bool = False) -> datetime:
    """Return an RFC 3339 date or time in UTC: of a date its first moment, or its `last`.

    Raises:
        ValueError: where no calendar has it.
    """
    try:
        time = datetime.fromisoformat(text if re.fullmatch(TIMESTAMP, text) else "")
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{quoted(text)} is no date, or time with offset, of the calendar") from None
    return time.replace(tzinfo=UTC) + (timedelta(days=1, microseconds=-1) if last else timedelta(0))


def span(start: str | None, end: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the first and last moment of a declared period, whose end may be a date: the whole day.

    Raises:
        ValueError: where one is of no calendar, or the period ends before it begins.
    """
    first = None if start is None else moment(start)
    final = None if end is None else moment(end, last=True)
    if first and final and final < first:
        raise ValueError(f"the period ends before it begins: {start} to {end}")
    return first, final


def lineage(provider: str | None, name: str) -> str:
    """Return ``provider/name`` of an agent: what history, supersession, attempts and drift follow.

    The first slash ends the provider: one in its name is written ``%2F``, a percent sign ``%25``, and a
    provider called ``-`` is ``%2D``, since a dash alone stands for none.
    """
    provider = (provider or "").replace("%", "%25").replace("/", "%2F")
    return f"{'%2D' if provider == '-' else provider or '-'}/{name}"


def judges_itself(judge: Any, components: Iterable[Any]) -> bool:
    """Tell whether a judge is said to be dependent, or has the name or family of a model of the agent."""
    models = {name_key(part.name) for part in components if part.role == "model"}
    return not judge.independent or any(
        name_key(name) in models for name in (judge.name, judge.family) if name
    )


def _shown(match: re.Match[str]) -> str:
    varies = re.compile(_VARYING).match(match.string, match.start())  # rarely wanted, and slow to compile
    return match.group() if varies else escape(match.group())


def escape(character: str) -> str:
    r"""Return a character as ``\uXXXX``, or as ``\UXXXXXXXX`` where four digits are too few."""
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
