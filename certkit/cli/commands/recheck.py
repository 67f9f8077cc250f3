"""``certkit recheck``: the arithmetic of published claims."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit import workflow
from certkit.assessment import recheck as room
from certkit.cli.emit import emit, fold
from certkit.errors import Exit

if TYPE_CHECKING:
    from certkit.assessment.recheck import RecheckDocument

_MARKS: Final = {"impossible": "✗", "inconsistent": "≠", "undecidable": "?", "consistent": "✓"}
_INDENT: Final = " " * 15


def recheck(
    name: Annotated[str, typer.Argument(metavar="FILE", help="A TOML file of claims, or a packaged name.")],
) -> None:
    """Check the arithmetic of published claims: posteriors, intervals, tiers, aggregates, differences, tests.

    A claim is consistent, undecidable, inconsistent, or impossible: nothing that prints as stated gives it.
    Exit code 0: all are consistent; 1: one is impossible or inconsistent; 4: the rest is undecidable.

    Example: certkit recheck hb-eval-papers
    """
    codes = ("recheck.unknown", "recheck.invalid")
    claims = room.parse(*workflow.named_text("recheck", name, what="claims", codes=codes))
    done = room.recheck(claims, profiles=cache(workflow.load_profile))
    emit(done.to_dict, _screen(done), code=Exit(done.exit_code))


def _screen(done: RecheckDocument) -> Iterator[str]:
    yield from fold(f"{done.id}: {done.title}" if done.title else done.id)
    for result in done.claims:
        yield ""
        state = str(result.state)
        yield from fold(f"{result.id}: {result.where}", first=f"{_MARKS[state]} {state:<12} ", rest=_INDENT)
        yield from fold(f"printed: {result.printed}", first=_INDENT, rest=_INDENT)
        yield from fold(result.arithmetic, first=_INDENT, rest=_INDENT)
        if result.missing:
            yield from fold(f"missing: {', '.join(result.missing)}", first=_INDENT, rest=_INDENT)
    yield ""
    yield from fold(", ".join(f"{number} {state}" for state, number in done.counts.items()))
