"""The only reader of TOML, with limits.

Lines are bounded, because the time of the standard parser grows with the square of the length of a dotted
key; so are nesting and digits. Errors name no internals of Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit.ground import files
from certkit.ground.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE: Final = 4096
"""Longest line, characters."""


def loads(text: str, *, code: str, where: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the table of a TOML text.

    Raises:
        InputError: with `code`, `where` naming the source.
    """
    import tomllib  # noqa: PLC0415, TID251 - this module is the door, and most commands read no TOML

    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            message = f"line {number} has {len(line):,} characters, limit {MAX_LINE:,}"
            raise InputError(code, message, where=where)
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except tomllib.TOMLDecodeError as error:
        told = str(error)
        raise InputError(code, f"not TOML: {told[:1].lower()}{told[1:]}", where=where) from None
    except RecursionError:
        raise InputError(code, "nested too deeply", where=where) from None
    except ValueError:
        raise InputError(code, "holds a number with too many digits", where=where) from None


def packaged(*parts: str) -> dict[str, Any]:
    """Return the table of a packaged file, such as ``packaged("templates", "words.toml")``."""
    path = files.packaged(*parts)
    return loads(path.read_text(encoding="utf-8"), code="internal.bug", where=path.name)
