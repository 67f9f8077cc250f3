"""``certkit recheck``: the arithmetic of published claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.cli import output
from certkit.cli.options import Json, Quiet

if TYPE_CHECKING:
    from certkit.assessment.profile import Profile
    from certkit.assessment.recheck import Recheck

_MARKS: Final = {"impossible": "✗", "inconsistent": "≠", "undecidable": "?", "consistent": "✓"}
_INDENT: Final = " " * 15


def recheck(
    name: Annotated[str, typer.Argument(metavar="FILE", help="A TOML file of claims, or a packaged name.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the arithmetic of published claims: posteriors, intervals, tiers, aggregates, differences, tests.

    A claim is consistent, undecidable, inconsistent, or impossible: nothing that prints as stated gives it.
    Exit code 0: all are consistent; 1: one is impossible or inconsistent; 4: the rest is undecidable.

    Example: certkit recheck hb-eval-papers
    """
    from certkit.assessment import recheck as room  # noqa: PLC0415 - keeps the help fast

    done = room.recheck(room.parse(*_text(name)), profiles=_remembering())
    if json:
        output.document(done.to_dict())
    elif not quiet:
        _show(done)
    raise typer.Exit(done.exit_code)


def _remembering() -> Callable[[str], Profile]:
    """Return a finder of profiles that reads each of them once."""
    from functools import cache  # noqa: PLC0415 - keeps the help fast

    from certkit import workflow  # noqa: PLC0415 - the same

    return cache(workflow.load_profile)


def _text(name: str) -> tuple[str, str]:
    """Return the text of a file of claims, or of a packaged one, and what to call it in errors."""
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast

    codes = ("recheck.unknown", "recheck.invalid")
    return workflow.named_text("recheck", name, what="claims", codes=codes)


def _show(done: Recheck) -> None:
    document = done.document
    output.wrapped(f"{document.id}: {document.title}" if document.title else document.id)
    for result in done.results:
        output.say()
        state = str(result.state)
        output.wrapped(f"{result.id}: {result.where}", first=f"{_MARKS[state]} {state:<12} ", rest=_INDENT)
        output.wrapped(f"printed: {result.printed}", first=_INDENT, rest=_INDENT)
        output.wrapped(result.arithmetic, first=_INDENT, rest=_INDENT)
        if result.missing:
            output.wrapped(f"missing: {', '.join(result.missing)}", first=_INDENT, rest=_INDENT)
    output.say()
    output.wrapped(", ".join(f"{number} {state}" for state, number in done.counts.items()))
