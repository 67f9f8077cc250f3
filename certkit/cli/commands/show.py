"""``certkit show``: what a passport or a bundle says, on a screen and in the formats of other programs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certkit.api.judging import judge
from certkit.api.passport_files import evidence_of, taken
from certkit.assessment.assessment import Question
from certkit.assessment.profile_file import DEFAULT_PROFILE, load_profile
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.verify import checked, show_verdict
from certkit.cli.emit import coloured, emit, emit_file, entry, fold, progress, refuse
from certkit.cli.views.assessment import show_evaluation
from certkit.ground import canonical
from certkit.ground.document import to_builtins
from certkit.ground.errors import Exit, UsageError
from certkit.ground.text import quoted
from certkit.ground.wording import many
from certkit.passport import exports, words
from certkit.passport.passport import read_passport
from certkit.passport.steps import open_unsigned
from certkit.passport.verify import open_questions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from certkit.cli.emit import Line
    from certkit.passport.passport import Predicate, Validity
    from certkit.passport.verify import Verification


def show(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="The file passport.json, the PDF that it is attached to, or the folder of a bundle.",
        ),
    ],
    kind: Annotated[
        exports.Format | None,
        opt.FORMAT(
            help="Write a view for other programs: in-toto statements, an A2A extension, Markdown, a badge."
        ),
    ] = None,
    out: Annotated[
        Path | None, opt.OUT(help="The file that --format writes. Default: standard output.")
    ] = None,
    force: opt.Force = False,
    trust: Annotated[
        Path | None, opt.TRUST(help="Verify it under this trust policy as well.", envvar=None)
    ] = None,
    bundle: opt.Evidence = None,
    replay: opt.Replay = False,
    profile: Annotated[
        str | None, opt.PROFILE(help="The profile of a bundle. Default: hb-eval-2026.")
    ] = None,
    require_tier: Annotated[
        int | None, opt.REQUIRE_TIER(help="The tier that a bundle should meet. Default: 1.")
    ] = None,
    registry: opt.Registry = None,
    at: opt.AsOf = None,
) -> None:
    """Show what a passport or a bundle says, on one screen, or write a view of it for other programs.

    Without --trust nobody checks the signature of a passport. With --trust, --registry or PASSPORT.status
    says whether it is still valid, as in 'certkit verify'; a passport that is not verified then has no view.
    A bundle is judged, as in 'certkit assess'. A view is a copy of the verdict and no evidence; it is not
    signed, and carries the digest of what it is made from.

    Exit code: that of the verification with --trust, otherwise 0 for everything that can be read.

    Example: certkit show passport.json --trust trust.json
    """
    if out is not None and kind is None:
        raise UsageError("usage.option", "--out is for --format")
    context.check_outputs(out, force=force)
    if source.is_dir():
        refuse("is for a passport", "trust", "bundle", "replay", "registry", "at")
        table, question = load_profile(profile or DEFAULT_PROFILE), Question(required_tier=require_tier or 1)
        judged = judge([source], table, question, progress=progress())
        if kind is None:
            emit(judged.to_dict(), show_evaluation(judged, verbose=False), code=Exit.OK)
        else:
            _write(exports.export(kind, exports.View(evaluation=judged)), out, force=force)
        return
    refuse("is for a bundle", "profile", "require_tier")
    given, moment, verified = taken(source), at or context.now(), None
    if trust is None:
        refuse("is asked under a trust policy: --trust FILE", "registry", "bundle", "replay")
    else:
        evidence = evidence_of(bundle, None, replay=replay, progress=progress())
        verified = checked(source, given, context.load_policy(trust), registry, moment, **evidence)
        if kind is not None:
            exports.refuse_unverified(verified)
    # Nobody is known to have written what fails before its judgement, and nothing of it is repeated here.
    parsed, predicate = None, None
    if verified is None:
        parsed, predicate = open_unsigned(given.passport, str(source))
    elif verified.statement is not None:
        parsed, predicate = read_passport(given.passport, str(source)), verified.statement.predicate
    if kind is not None and parsed and predicate:
        view = exports.View(
            evaluation=predicate.evaluation,
            passport_id=parsed.passport_id,
            issuer=verified.claim.issuer.name if verified and verified.claim else predicate.issuer.name,
            validity=predicate.validity,
            verification=verified,
        )
        _write(exports.export(kind, view), out, force=force)
        return
    document: dict[str, Any] = {
        "schema": "urn:certkit:show:v1",
        "passport_id": parsed.passport_id if parsed else None,
        "verification": verified.to_dict() if verified else None,
        "statement": canonical.loads(parsed.payload) if parsed else None,
    }
    screen = _screen(verified, predicate, moment, dated=at is not None, in_pdf=given.in_pdf)
    emit(to_builtins(document), screen, code=verified.exit_code if verified else Exit.OK)


def _screen(
    verified: Verification | None,
    predicate: Predicate | None,
    moment: datetime,
    *,
    dated: bool,
    in_pdf: bool,
) -> Iterator[Line]:
    """Print the verification where there is one, what the passport says, and what it does not."""
    if verified is None:
        text = "SIGNATURE NOT CHECKED: anyone can write this. Check it: --trust FILE"
        yield from coloured([text], "bold yellow")
        if in_pdf:
            yield from fold("Taken out of a PDF, whose pages nobody signed: compare the id that they print")
    else:
        yield from show_verdict(verified, dated=dated)
    if predicate is None:
        return
    yield ""
    if verified is None:
        yield from fold(words.tiers_text(predicate.evaluation))
        yield from fold(words.questions_text(open_questions(predicate.assessment)))
        yield ""
    for label, text in _rows(predicate, _validity(predicate.validity, moment, dated=dated)):
        yield from entry(label, text, 9)
    yield ""
    yield from show_evaluation(predicate.evaluation, verbose=True)
    yield ""
    asked = verified is not None and verified.step("status").status != "skipped"
    yield "What a passport is not:"
    for text in words.IS_NOT[: -1 if asked else None]:
        yield from fold(text, first="  ", rest="    ")


def _rows(predicate: Predicate, valid: str) -> Iterator[tuple[str, str]]:
    facts, issuer = predicate.facts, predicate.issuer
    yield "valid", valid
    evaluator, developer = (
        name or "not stated" for name in (issuer.relation_to_evaluator, issuer.relation_to_developer)
    )
    relations = f"relation to the evaluator: {evaluator}; relation to the developer: {developer}"
    yield "issuer", f"{quoted(issuer.name)}, key {words.short(issuer.key_id)}; {relations}"
    provider = quoted(facts.agent.provider) if facts.agent.provider else "a provider not stated"
    yield "agent", f"{quoted(f'{facts.agent.name} {facts.agent.version}')}, by {provider}"
    yield "", facts.agent.digest
    yield "evidence", f"{facts.protocol.origin}; {facts.digest}"
    yield "profile", f"{quoted(predicate.profile.id)}; {words.short(predicate.profile.digest)}"
    yield "domains", ", ".join(map(quoted, predicate.summary.domains)) or "none"
    if facts.integrity:
        yield "probes", words.commitments_text(facts.integrity)
    if predicate.supersedes:
        yield "replaces", predicate.supersedes


def _validity(validity: Validity, at: datetime, *, dated: bool) -> str:
    left = validity.not_after - at
    state = f"{many(left.days, 'day')} left"
    if at < validity.not_before:
        state = "NOT YET VALID"
    elif left < timedelta(0):
        state = f"EXPIRED {many((-left).days, 'day')} ago"
    asked = f" as of {words.utc(at)}" if dated else ""
    return f"{words.utc(validity.not_before)} to {words.utc(validity.not_after)}: {state}{asked}"


def _write(made: exports.Export, out: Path | None, *, force: bool) -> None:
    emit_file(made, made.content.encode(), out, force=force)
