"""``certkit report``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Meta

from certkit import report as room
from certkit import workflow
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, emit_file, fold, progress
from certkit.ground import canonical, files
from certkit.ground.document import Document, GivenPath, Text
from certkit.ground.errors import Exit, UsageError
from certkit.ground.wording import listed
from certkit.report.argument import skeleton
from certkit.report.argument.challenges import CLOSED_BY, challenges
from certkit.workflow.verifying import taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report import View


class Report(Document, frozen=True, kw_only=True, tag="urn:certkit:report:v1"):
    """What certkit report wrote."""

    html: GivenPath | None
    pdf: GivenPath | None
    pdf_missing: Annotated[Text | None, Meta(description="why there is no PDF")]
    export: GivenPath | None


def report(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A bundle's folder; a passport or its PDF with --bundle.")
    ],
    out: Annotated[
        Path | None,
        opt.OUT(
            callback=None,
            help="X.pdf (X.html is written beside it) or X.html, the file to write; --format prints without.",
        ),
    ] = None,
    force: opt.Force = False,
    given: opt.ContextFile = None,
    kind: Annotated[
        Literal["argument", "gsn", "register", "junit", "sarif", "csv", "summary"] | None,
        opt.FORMAT(
            help="Write one of these instead: the argument as JSON or GSN in YAML, its challenges in"
            " Markdown, or what was found as JUnit, SARIF, CSV or a summary in Markdown."
        ),
    ] = None,
    bundle: Annotated[
        list[Path] | None,
        opt.BUNDLE(help="The evidence of a passport, which is judged again. Once for each bundle."),
    ] = None,
    profile: Annotated[
        str | None,
        opt.PROFILE(
            help="A packaged profile or the path of a TOML file. Default: hb-eval-2026, or the passport's.",
            envvar="CERTKIT_PROFILE",
        ),
    ] = None,
    require_tier: Annotated[
        int | None, opt.REQUIRE_TIER(help="The tier asked for; for a bundle, 1 by default.")
    ] = None,
) -> None:
    """Draw the safety case of a bundle, or of a passport with its evidence, as HTML and PDF.

    The evidence is judged for the report; a passport is refused where its evidence gives another verdict.
    The same input gives the same bytes on the same day, since acceptances end and evidence ages;
    SOURCE_DATE_EPOCH sets the day. Where Pango is missing the HTML is written and the exit code is 0:
    the report is not a verdict.

    Example: certkit report bundle/ --context context.json -o safety-case.pdf
    """
    if kind is not None:
        out = None if out == Path("-") else out
    context.check_outputs(out, None if kind else _drawn(out).with_suffix(".html"), force=force)
    read = None if given is None else workflow.load_context(given)
    date, bar = context.document_date(), progress()
    tier, name, passport = require_tier or 1, profile or workflow.DEFAULT_PROFILE, None
    if source.is_dir():
        if bundle:
            raise UsageError("usage.option", "--bundle goes with a passport")
        evidence = [source]
    else:
        passport = taken(source).passport
        if not bundle or require_tier:
            fault = "--require-tier goes without a passport, which states its tier"
            raise UsageError(
                "usage.option",
                fault if bundle else "a passport needs --bundle",
                where=str(source),
                hint="without a passport: certkit report BUNDLE",
            )
        evidence = bundle
        claimed = room.read(passport, str(source)).predicate.assessment
        tier, name = claimed.required_tier, profile or claimed.profile.id
    drawn = workflow.draw(
        evidence,
        name,
        required_tier=tier,
        today=context.today(),
        context=read,
        passport=passport,
        generated_at=date,
        progress=bar,
    )
    context.check_dates(None, drawn.case.last_run)
    context.check_about(read, drawn.case.assessment)
    if kind is not None:
        exported = Report(html=None, pdf=None, pdf_missing=None, export=out)
        emit_file(exported, drawn.export(kind), out, force=force)
        return
    written = _write(drawn, _drawn(out), force=force)
    lines = [f"written: {path}" for path in (written.html, written.pdf) if path]
    missing = written.pdf_missing
    emit(written, lines, hints=[f"PDF not made: {missing}", *room.HINTS] if missing else ())


def _drawn(out: Path | None) -> Path:
    """Return the file that a report is drawn into; raise `UsageError` where none is named so."""
    if out is None or out.suffix not in {".pdf", ".html"}:
        fault = "no file is named" if out is None else f"{out} ends in neither .pdf nor .html"
        raise UsageError("usage.option", fault, hint="-o safety-case.pdf")
    return out


def _write(drawn: View, out: Path, *, force: bool) -> Report:
    page, name, pdf, reason = room.html(drawn), out.with_suffix(".html"), None, None
    if out.suffix == ".pdf" and (reason := room.pdf_missing()) is None:
        pdf = out
        files.write(pdf, room.pdf(drawn, page), overwrite=force)
    files.write(name, page.encode(), overwrite=force)
    return Report(html=name, pdf=pdf, pdf_missing=reason, export=None)


Tier = Annotated[int, opt.REQUIRE_TIER(help="The tier that is asked for.")]


def init(
    bundles: opt.BundleFolders,
    out: Annotated[Path, opt.OUT(help="The file to write.")] = Path("context.json"),
    force: opt.Force = False,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="OLD", help="Carry over an earlier context, without its reviews and answers."
        ),
    ] = None,
    profile: opt.ProfileName = "hb-eval-2026",
    require_tier: Tier = 1,
) -> None:
    """Write a context.json to fill in, bound to this evidence, and print every challenge and what closes it.

    What an earlier context says of other evidence does not carry over: reviewers with their comments are left
    out; answers and the decision are kept apart, as previous_answers and previous_decision, and only a person
    moves one back.

    Example: certkit context init bundle/ --require-tier 2 -o context.json
    """
    workflow.refuse_inside(bundles, out)
    context.check_outputs(out, force=force)
    case = workflow.draw(
        bundles, profile, required_tier=require_tier, today=context.today(), progress=progress()
    ).case
    old = None if earlier is None else workflow.load_context(earlier).context
    files.write(out, canonical.pretty(skeleton.skeleton(case, earlier=old)).encode(), overwrite=force)
    tested = tuple(sorted(case.tested))
    document = skeleton.ContextInit(context=out, tested=tested, challenges=challenges(case))
    emit(document, _opened(document, carried=old is not None))


def _opened(document: skeleton.ContextInit, *, carried: bool) -> Iterator[str]:
    yield f"written: {document.context}"
    if carried:
        yield from fold("left out, as said of other evidence: reviewers, their comments, answers, decision")
    tested = listed(document.tested) if document.tested else "none"
    yield from fold(f"domains with runs under faults: {tested}; name yours in operating_domain.domains")
    yield f"{len(document.challenges)} challenges are open:"
    for kind, items in groupby(document.challenges, key=lambda item: item.kind):
        yield from fold(f"{kind}, closed by {CLOSED_BY[kind]}:", first="  ", rest="    ")
        for item in items:
            yield from fold(f"{item.text} [{item.code}, against {item.target}]", first="    ", rest="      ")


def lint(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The context.json.")],
    bundle: Annotated[
        list[Path] | None, opt.BUNDLE(help="The evidence that it should be about. Once for each bundle.")
    ] = None,
    profile: opt.ProfileName = "hb-eval-2026",
) -> None:
    """Check a context.json, and tell what is still blank, undeveloped in the report, or about other evidence.

    Exit code 0: nothing is blank, undeveloped or about other evidence than --bundle; 4: something is, or
    --bundle is missing; 3: the file is malformed.

    Example: certkit context lint context.json --bundle bundle/
    """
    given = workflow.load_context(file)
    if bundle:
        subject = given.context.about
        case = workflow.draw(
            bundle,
            profile,
            required_tier=(subject.tier if subject else None) or 1,
            today=context.today(),
            context=given,
            progress=progress(),
        ).case
        missing = tuple(skeleton.blanks(case))
    else:
        missing = tuple(skeleton.unfilled(given.context))
    lines = [line for text in missing or ["nothing is blank"] for line in fold(text, rest="  ")]
    emit(
        skeleton.ContextLint(context=file, blanks=missing),
        lines,
        code=Exit.INSUFFICIENT if missing else Exit.OK,
    )
