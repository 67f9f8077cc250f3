"""Where and how results and errors are printed; the one place where errors become words.

Results go to standard output, everything else to standard error. With ``--json`` there is exactly one
document on standard output, for errors too. Text that comes from evidence is made printable first, so
that no record can move the cursor or colour the verdict.
"""

from __future__ import annotations

import re
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

from certkit.errors import CertkitError, Exit

if TYPE_CHECKING:
    from rich.console import Console

WIDTH: Final = 80
ERROR_SCHEMA: Final = "urn:certkit:error:v1"

# C0 and C1 controls, line and paragraph separators, and the marks that reorder text: what a terminal
# would obey, or what could make one line look like two.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return one line of text with everything that a terminal would obey made visible."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def console(*, error: bool = False) -> Console:
    """Return the rich console of standard output or standard error."""
    from rich.console import Console  # noqa: PLC0415 - only where something is drawn

    return Console(stderr=error, highlight=False, markup=False, emoji=False, soft_wrap=True)


def document(value: dict[str, Any]) -> None:
    """Print one JSON document."""
    from certkit import canonical  # noqa: PLC0415 - not needed for help

    raw(canonical.pretty(value))


def raw(text: str) -> None:
    """Print text as it is: a document that is already in its final form.

    It is UTF-8 whatever the terminal's encoding, as JSON and TOML demand.
    """
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.buffer.flush()


def counted(number: int, noun: str) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def say(text: str = "") -> None:
    """Print a line of result."""
    sys.stdout.write(printable(text) + "\n")


def wrapped(text: str, *, first: str = "", rest: str = "") -> None:
    """Print a paragraph of result within 80 columns, with its indents."""
    for line in fold(text, first=first, rest=rest):
        say(line)


def fold(text: str, *, first: str = "", rest: str = "") -> list[str]:
    """Return a paragraph as lines of at most 80 columns."""
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def note(text: str) -> None:
    """Print what is not a result; the one text that may have several lines."""
    sys.stderr.write("\n".join(map(printable, text.split("\n"))) + "\n")


def error(failure: CertkitError, *, json: bool) -> None:
    """Print an error: one JSON document, or ``error:`` and its ``hint:`` lines."""
    if json:
        document({"schema": ERROR_SCHEMA, "error": failure.to_dict()})
        return
    note(f"error: {failure}")
    for line in (failure.hint or "").splitlines():
        note(f"hint: {line}")


def usage(message: str, *, json: bool) -> None:
    """Print what is wrong with a command line."""
    if json:
        document({"schema": ERROR_SCHEMA, "error": {"code": "usage.option", "message": message}})
    else:
        note(f"error: {message}")
        note("hint: 'certkit --help' and 'certkit COMMAND --help' show what there is")


def bug(failure: BaseException, *, json: bool, traceback: bool) -> Exit:
    """Report a failure that is certkit's own, and return its exit code."""
    if traceback:
        import traceback as tracebacks  # noqa: PLC0415 - a bug is rare

        tracebacks.print_exception(failure)
    message = f"certkit failed with {type(failure).__name__}: {failure}"
    if json:
        document({"schema": ERROR_SCHEMA, "error": {"code": "internal.bug", "message": message}})
    else:
        note(f"error: {message}")
        note("hint: this is a bug in certkit; please report it with the output of the same command and -v")
    return Exit.BUG
