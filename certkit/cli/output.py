"""Where and how results and errors are printed; the one place where errors become words.

Results go to standard output, everything else to standard error. With ``--json`` there is exactly one
document on standard output, for errors too. Text that comes from evidence is made visible first, so
that no record can move the cursor or colour the verdict.
"""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

from certkit.errors import CertkitError, Exit
from certkit.text import visible

if TYPE_CHECKING:
    from rich.console import Console

WIDTH: Final = 80
ERROR_SCHEMA: Final = "urn:certkit:error:v1"


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


def unicode() -> bool:
    """Tell whether standard output can show more than letters."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def dash() -> str:
    """Return what stands where there is no value."""
    return "–" if unicode() else "-"


def cut(text: str, width: int) -> str:
    """Return text that fits a column, its end left out where it is too long."""
    return text if len(text) <= width else text[: width - 1] + ("…" if unicode() else "~")


def brief(passport_id: str | None) -> str:
    """Return the beginning of a passport's id, by which people call it; empty for none."""
    return (passport_id or "").removeprefix("sha256:")[:12]


def counted(number: int, noun: str) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def entries(number: int) -> str:
    """Return ``1 entry``, ``2 entries``."""
    return "1 entry" if number == 1 else f"{number:,} entries"


def say(text: str = "") -> None:
    """Print a line of result."""
    sys.stdout.write(visible(text) + "\n")


def wrapped(text: str, *, first: str = "", rest: str = "") -> None:
    """Print a paragraph of result within 80 columns, with its indents."""
    for line in fold(text, first=first, rest=rest):
        say(line)


def fold(text: str, *, first: str = "", rest: str = "") -> list[str]:
    """Return a paragraph as lines of at most 80 columns.

    No word is broken, since it may be one to copy: a digest that does not fit behind its indent has a line
    of its own with less of one, and only what is wider than the screen by itself sticks out.
    """
    lines = textwrap.wrap(
        visible(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [part for line in lines for part in _fitting(line)]


def _fitting(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    lead, _, word = line.rpartition(" ")
    return [*filter(None, [lead.rstrip()]), word.rjust(WIDTH)]


def hint(text: str) -> None:
    """Print in words what to do next, which is no result; a command to copy is a `note` of one line."""
    note("\n".join(fold(text, first="hint: ", rest="      ")))


def note(text: str) -> None:
    """Print what is not a result; the one text that may have several lines.

    They are folded on a terminal alone: in a log, one message is one line to search for.
    """
    lines = text.split("\n")
    if sys.stderr.isatty():
        lines = [part for line in lines for part in fold(line, rest=_hanging(line)) or [""]]
    sys.stderr.write("\n".join(map(visible, lines)) + "\n")


def _hanging(line: str) -> str:
    return " " * (len(line) - len(line.lstrip(" ")) + 2)


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
