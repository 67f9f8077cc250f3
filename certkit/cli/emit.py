"""The one way out: a result leaves as its document, as its screen or silently, and with its exit code.

    emit(result, screen, hints=["certkit assess BUNDLE"])

With ``--json`` there is exactly one document on standard output, for errors too; with ``-q`` nothing but what
was asked for as a document, and serious findings on standard error. A screen is made of lines, and only where
it is shown; everything that is no result goes to standard error. Text that comes from evidence is made
visible here, so that no record can move the cursor or colour the verdict. This is also the one place where
errors become words.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from traceback import print_exception
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import typer

from certkit.ground import canonical, files
from certkit.ground.errors import CertkitError, Exit, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.ground.text import visible

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType
    from rich.progress import Progress as RichProgress

    class Result(Protocol):
        """A document; where it has an ``exit_code``, the command exits with that."""

        def to_dict(self) -> Mapping[str, Any]:
            """Return its members."""

    Printed = Result | Mapping[str, Any] | bytes
    """What ``--json`` prints: a document, its members, or the final bytes."""

    Line = str | RenderableType
    """A line of a screen; what is more than text is drawn by rich, such as a coloured line or a table."""

    Screen = Iterable[Line] | bytes
    """What is shown without ``--json``: lines, or bytes as they are, which ``-q`` does not silence."""

WIDTH: Final = 80
"""Columns of a screen where no terminal says more."""
WIDEST: Final = 120
"""Columns beyond which lines are hard to read."""


def width() -> int:
    """Return the columns of a screen: those of the terminal, from `WIDTH` to `WIDEST`."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH), WIDEST)


class Wanted(NamedTuple):
    """How the user wants to be answered; `named` are the options of the command line by their parameters."""

    json: bool = False
    quiet: bool = False
    named: Mapping[str, str] = {}


_PLAIN: Final = Wanted()
wanted: Final = ContextVar("wanted", default=_PLAIN)
"""Set for each command before it runs."""


def refuse(told: str, *names: str) -> None:
    """Refuse options that would be passed over, by their parameters' names; from a variable one may stand."""
    if passed := [option for name, option in wanted.get().named.items() if name in names]:
        raise UsageError("usage.option", f"{passed[0]} {told}")


def answer(schema: str, **members: Any) -> dict[str, Any]:
    """Return the document of a command's answer, for programs: ``urn:certkit:SCHEMA:v1`` and its members."""
    from certkit.ground.document import to_builtins  # noqa: PLC0415 - help loads nothing heavy

    return {"schema": f"urn:certkit:{schema}:v1", **to_builtins(members)}


def emit(
    document: Printed,
    screen: Screen,
    *,
    code: int | None = None,
    serious: Iterable[str] = (),
    hints: Iterable[str] = (),
) -> None:
    """Print a result once, as the user wants it, and exit with its code, or with another `code`.

    `serious` are the serious findings of the screen: ``-q`` leaves only them, on standard error. `hints` say
    below a screen what to do next.
    """
    if wanted.get().json:
        raw(_bytes(document))
    elif isinstance(screen, bytes):
        raw(screen)
    elif not wanted.get().quiet:
        for line in screen:
            _print(line)
        for text in hints:
            hint(text)
    else:
        for text in serious:
            note(text)
    if code := getattr(document, "exit_code", Exit.OK) if code is None else code:
        raise typer.Exit(code)


def emit_file(document: Printed, data: bytes, out: Path | None, *, force: bool = False) -> None:
    """Write what was made to the file `out` and say so, or print it where no file is named."""
    if out is not None:
        files.write(out, data, overwrite=force)
    emit(document, data if out is None else [f"written: {out}"])


def _bytes(document: Printed) -> bytes:
    if isinstance(document, bytes):
        return document
    return canonical.pretty(document if isinstance(document, Mapping) else document.to_dict()).encode()


def _print(line: Line) -> None:
    if isinstance(line, str):
        sys.stdout.write(visible(line) + "\n")
    else:
        console().print(line)


def raw(data: bytes) -> None:
    """Print bytes that are already in their final form, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def console(*, error: bool = False) -> Console:
    """Return the rich console of standard output or standard error."""
    from rich.console import Console  # noqa: PLC0415 - most screens are plain text

    return Console(stderr=error, highlight=False, markup=False, emoji=False, soft_wrap=True)


def cut(text: str, most: int) -> str:
    """Return text that fits a column, its end left out where it is too long."""
    return text if len(text) <= most else text[: most - 1] + "…"


def brief(passport_id: str | None) -> str:
    """Return the beginning of a passport's id, by which people call it; empty for none."""
    return (passport_id or "").removeprefix("sha256:")[:12]


def coloured(lines: Iterable[str], style: str) -> Iterator[Line]:
    """Yield lines in colour on a terminal, and as they are elsewhere, without loading what draws."""
    if not style or not sys.stdout.isatty():
        yield from lines
        return
    from rich.text import Text  # noqa: PLC0415 - on a terminal alone

    yield from (Text(visible(line), style=style) for line in lines)


_GLUED: Final = "\u00a0%"
"""A number keeps its percent sign on its line."""


def fold(text: str, *, first: str = "", rest: str = "") -> list[str]:
    """Return a paragraph as lines that fit the screen.

    No word is broken, since it may be one to copy: a digest that does not fit behind its indent has a line
    of its own with less of one, and only what is wider than the screen by itself sticks out.
    """
    columns = width()
    lines = textwrap.wrap(
        visible(text).replace(" %", _GLUED),
        columns,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [part.replace(_GLUED, " %") for line in lines for part in _fitting(line, columns)]


def entry(label: str, text: object, column: int) -> list[str]:
    """Return a paragraph behind its label, which has a column of its own."""
    return fold(str(text), first=f"{label:<{column}}", rest=" " * column)


def _fitting(line: str, columns: int) -> list[str]:
    if len(line) <= columns:
        return [line]
    lead, _, word = line.rpartition(" ")
    return [*filter(None, [lead.rstrip()]), word.rjust(columns)]


def command_lines(lead: str, command: str) -> Iterator[str]:
    """Yield a command that can be copied, on several lines where it is long; an option keeps its value."""
    lexer = shlex.shlex(command, posix=False, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    parts: list[str] = []
    for word in lexer:
        if parts and re.fullmatch("-[^ ]*", parts[-1]) and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    line, indent = f"{lead}{parts[0]}", " " * (len(lead) - len(lead.lstrip()) + 2)
    for part in parts[1:]:
        if len(line) + len(part) > width() - 3:
            yield f"{line} \\"
            line = f"{indent}{part}"
        else:
            line += f" {part}"
    yield line


def hint(text: str) -> None:
    """Print what to do next, which is no result."""
    note(f"hint: {text}")


def note(text: str) -> None:
    """Print what is not a result, folded on a terminal alone: in a log, a message is one line to find."""
    lines = text.split("\n")
    if sys.stderr.isatty():
        lines = [part for line in lines for part in fold(line, rest="      ") or [""]]
    sys.stderr.write("\n".join(map(visible, lines)) + "\n")


def warn(text: str) -> None:
    """Print in one line what is wrong and was passed over."""
    note(f"warning: {text}")


def error(failure: CertkitError, *, json: bool) -> None:
    """Print an error: one JSON document, or ``error:`` and its ``hint:`` lines."""
    if json:
        from certkit.cli.documents import Error, Failure  # noqa: PLC0415 - most commands do not fail

        members: Mapping[str, Any] = failure.to_dict()
        raw(_bytes(Error(error=Failure(**members))))
        return
    note(f"error: {failure}")
    for line in (failure.hint or "").splitlines():
        hint(line)


def bug(failure: BaseException, *, json: bool, traceback: bool) -> Exit:
    """Report a failure that is certkit's own, and return its exit code."""
    if traceback:
        print_exception(failure)
    message = f"certkit failed with {type(failure).__name__}: {failure}"
    advice = "this is a bug in certkit; please report it with the command, its traceback (-v) and the version"
    error(CertkitError("internal.bug", message, hint=advice), json=json)
    return Exit.BUG


class Bar:
    """Draws what a room reports; see `certkit.ground.progress.Progress`."""

    def __init__(self) -> None:
        self._drawn: RichProgress | None = None

    def start(self, label: str, total: int | None, unit: str) -> None:  # noqa: ARG002 - shares are drawn
        """Draw a new bar."""
        from rich.progress import Progress as RichProgress  # noqa: PLC0415 - only on a terminal

        self.finish()
        self._drawn = RichProgress(console=console(error=True), transient=True)
        self._drawn.start()
        self._drawn.add_task(label, total=total)

    def advance(self, amount: int) -> None:
        """Move the bar on."""
        if self._drawn is not None:
            self._drawn.advance(self._drawn.task_ids[0], amount)

    def finish(self) -> None:
        """Take the bar away."""
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = None


def progress() -> Progress:
    """Return a bar on standard error where that is a terminal and the user wants to read, else silence."""
    return SILENT if wanted.get().json or wanted.get().quiet or not sys.stderr.isatty() else Bar()
