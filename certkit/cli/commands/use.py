"""``certkit context``: what people say about the use of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit import canonical, files, workflow
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, fold, progress
from certkit.errors import Exit
from certkit.report.argument.skeleton import ContextInit, ContextLint, blanks, skeleton, to_close, unfilled

if TYPE_CHECKING:
    from collections.abc import Iterator

Tier = Annotated[int, opt.REQUIRE_TIER(help="The tier that is asked for.")]


def init(
    bundles: opt.BundleFolders,
    out: Annotated[Path, opt.OUT(help="The file to write.")] = Path("context.json"),
    force: opt.Force = False,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="OLD", help="Carry over an earlier context; its answers no longer count."
        ),
    ] = None,
    profile: opt.ProfileName = "hb-eval-2026",
    require_tier: Tier = 1,
) -> None:
    """Write a context.json to fill in, bound to this evidence, and print every challenge and what closes it.

    Answers and the decision of an earlier context were given for other evidence: they are kept apart, as
    previous_answers and previous_decision, and only a person moves one back.

    Example: certkit context init bundle/ --require-tier 2 -o context.json
    """
    workflow.refuse_inside(bundles, out)
    opt.check_outputs(out, force=force)
    case = workflow.case_of(
        bundles, profile, required_tier=require_tier, today=context.today(), progress=progress()
    )
    old = None if earlier is None else workflow.load_context(earlier).context
    files.write(out, canonical.pretty(skeleton(case, earlier=old)).encode(), overwrite=force)
    document = ContextInit(context=out, challenges=to_close(case))
    emit(document.to_dict, _opened(document))


def _blank(missing: tuple[str, ...]) -> Iterator[str]:
    for line in missing or ("nothing is blank",):
        yield from fold(line, rest="  ")


def _opened(document: ContextInit) -> Iterator[str]:
    yield f"written: {document.context}"
    yield f"{len(document.challenges)} challenges are open:"
    for item in document.challenges:
        yield from fold(f"{item.text} [{item.code}, against {item.target}]", first="  ", rest="    ")
        yield from fold(f"closed by: {item.closed_by}", first="    ", rest="      ")


def lint(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The context.json.")],
    bundle: Annotated[
        list[Path] | None,
        opt.BUNDLE(help="The evidence that it should be about. Once for each bundle."),
    ] = None,
    profile: opt.ProfileName = "hb-eval-2026",
) -> None:
    """Check a context.json, and tell what is still blank, or about other evidence.

    Exit code 0: nothing is blank, and it is about the evidence of --bundle; 4: something is blank or stale;
    3: it is malformed.

    Example: certkit context lint context.json --bundle bundle/
    """
    given = workflow.load_context(file)
    if bundle:
        subject = given.context.about
        case = workflow.case_of(
            bundle,
            profile,
            required_tier=(subject.tier if subject else None) or 1,
            today=context.today(),
            context=given,
            progress=progress(),
        )
        missing = tuple(blanks(case))
    else:
        missing = tuple(unfilled(given.context))
    document = ContextLint(context=file, blanks=missing)
    emit(document.to_dict, _blank(missing), code=Exit.INSUFFICIENT if missing else Exit.OK)
