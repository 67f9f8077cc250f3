"""``certkit report`` and ``certkit context init``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import structs

from certkit import report as room
from certkit.api.judging import Judged, answered, judge
from certkit.api.passport_files import taken
from certkit.api.reporting import draw, leaves_page, page_beside, target_of, write_drawn
from certkit.assessment.assessment import Question
from certkit.assessment.bundles import assess_bundles, refuse_inside
from certkit.assessment.profile_file import DEFAULT_PROFILE, load_profile
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import answer, emit, emit_file, fold, progress
from certkit.ground import canonical, files
from certkit.ground.errors import UsageError
from certkit.ground.wording import listed, many
from certkit.passport.steps import open_unsigned
from certkit.report import IssuedPassport
from certkit.report.argument import skeleton
from certkit.report.argument.case import use_case
from certkit.report.argument.challenges import CLOSED_BY, challenges, load_context
from certkit.report.context import read_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.assessment.profile import Profile
    from certkit.report.argument.challenges import ArgumentChallenge
    from certkit.report.context import Given


def report(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A bundle's folder, or a passport or its PDF.")
    ],
    out: Annotated[
        Path | None,
        opt.OUT(
            callback=None,
            help="X.pdf (and X.html beside it, where there is none) or X.html; --format prints without.",
        ),
    ] = None,
    force: opt.Force = False,
    given: opt.ContextFile = None,
    kind: Annotated[
        Literal["junit", "sarif", "summary"] | None,
        opt.FORMAT(help="Write one of these instead: JUnit, SARIF, or a summary in Markdown."),
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
    changes: opt.Changes = None,
    require_tier: Annotated[
        int | None, opt.REQUIRE_TIER(help="The tier asked for; for a bundle, 1 by default.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Let rows decide that are provisional in the paper.")
    ] = False,
) -> None:
    """Draw the safety case of a bundle or of a passport, as HTML and PDF.

    A bundle is judged for the report. Of a passport certkit draws what it states; with --bundle the evidence
    is judged again, and a passport is refused where its evidence gives another verdict. No signature is
    checked. The same input gives the same bytes on the same day, since acceptances end and evidence ages;
    SOURCE_DATE_EPOCH sets the day. Where Pango is missing the HTML is written and the exit code is 0: the
    report is not a verdict.

    Example: certkit report bundle/ --context context.json -o safety-case.pdf
    """
    if kind is not None:
        out = None if out == Path("-") else out
    leaves = kind is not None or leaves_page(target_of(out), overwrite=force)
    context.check_outputs(out, None if leaves else page_beside(target_of(out)), force=force)
    read, date = None if given is None else load_context(given), context.document_date()
    if source.is_dir():
        if bundle:
            raise UsageError("usage.option", "--bundle goes with a passport")
        question = Question(required_tier=require_tier or 1, strict=strict)
        table, passport = load_profile(profile or DEFAULT_PROFILE, changes or ()), None
        judged = _judged([source], table, question, read)
    else:
        if require_tier or profile or changes or strict:
            message = "--require-tier, --profile, --set, --strict go with a bundle; a passport states its own"
            raise UsageError("usage.option", message, hint="certkit report BUNDLE")
        passport = IssuedPassport.of(open_unsigned(taken(source).passport, str(source))[0])
        signed = passport.evaluation
        judged = _judged(bundle or [], signed.profile, signed.question, read, passport)
    drawn = draw(judged, today=context.today(), given=read, passport=passport)
    context.check_dates(None, drawn.case.last_run)
    drawn = structs.replace(drawn, generated_at=date or drawn.generated_at)
    if kind is not None:
        exported = answer("report", html=None, pdf=None, pdf_missing=None, export=out)
        emit_file(exported, room.export(drawn, kind), out, force=force)
        return
    written = write_drawn(drawn, target_of(out), overwrite=force)
    document = answer("report", **structs.asdict(written), export=None)
    lines = [f"written: {path}" for path in (written.html, written.pdf) if path]
    if written.html is None:
        lines.append(f"left as it was: {page_beside(target_of(out))}; --force replaces it")
    missing = written.pdf_missing
    emit(document, lines, hints=[f"PDF not made: {missing}", *room.HINTS] if missing else ())


def _judged(
    bundles: Sequence[Path],
    profile: Profile,
    question: Question,
    given: Given | None,
    passport: IssuedPassport | None = None,
) -> Judged:
    """Return the judgement of bundles, or of a passport without its bundles."""
    if passport is None or bundles:
        judged = judge(bundles, profile, question, given, progress=progress())
    else:
        judged = answered(passport.evaluation, given)
    context.check_context(judged)
    return judged


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
    changes: opt.Changes = None,
    require_tier: Tier = 1,
) -> None:
    """Write a context.json to fill in, bound to this evidence; print the open questions and what closes them.

    What an earlier context says of other evidence does not carry over: reviewers with their comments are left
    out; answers and the decision are kept apart, as previous_answers and previous_decision, and only a person
    moves one back.

    Example: certkit context init bundle/ --require-tier 2 -o context.json
    """
    refuse_inside(bundles, out)
    context.check_outputs(out, force=force)
    question = Question(required_tier=require_tier)
    table = load_profile(profile, changes or ())
    evaluation = assess_bundles(bundles, table, question=question, progress=progress())
    case = use_case(evaluation, today=context.today())
    old = None if earlier is None else load_context(earlier).context
    written = canonical.pretty(skeleton.skeleton(case, earlier=old)).encode()
    if old is not None:  # what it states is not open
        given = read_context(written, where=str(earlier), folder=out.parent)
        case = use_case(evaluation, context=given, today=context.today())
    files.write(out, written, overwrite=force)
    tested = tuple(sorted(case.tested))
    raised = challenges(case)
    document = answer("context-init", context=out, tested=tested, challenges=raised)
    emit(document, _opened(out, tested, raised, carried=old is not None))


def _opened(
    out: Path, tested: Sequence[str], raised: Sequence[ArgumentChallenge], *, carried: bool
) -> Iterator[str]:
    yield f"written: {out}"
    if carried:
        yield from fold("carried over: owner, people, use, domains, risk, hazards, assumptions, monitoring")
        yield from fold(
            "put aside, since a person has to say them of this evidence: answers (previous_answers), decision"
            " (previous_decision); left out: reviewers and their comments"
        )
    domains = listed(tested) if tested else "none"
    yield from fold(f"domains with runs under faults: {domains}; name yours in operating_domain.domains")
    yield f"{many(len(raised), 'question')} {'is' if len(raised) == 1 else 'are'} open:"
    for kind, items in groupby(raised, key=lambda item: item.kind):
        yield from fold(f"{kind}, closed by {CLOSED_BY[kind]}:", first="  ", rest="    ")
        for item in items:
            yield from fold(f"{item.text} [{item.code}, against {item.target}]", first="    ", rest="      ")
