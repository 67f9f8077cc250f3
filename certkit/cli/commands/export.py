"""``certkit show`` and ``certkit export``: what a passport says, on a screen and in formats of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import Meta

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.verify import checked, show_verdict
from certkit.cli.emit import emit, emit_file, entry, fold, progress
from certkit.cli.views.table import Asked, Cells, digits, table
from certkit.ground import canonical, files
from certkit.ground.document import Digest, Document
from certkit.ground.errors import Exit, UsageError
from certkit.ground.text import quoted
from certkit.ground.wording import many
from certkit.passport import exports, words
from certkit.passport.opening import parse
from certkit.workflow.verifying import evidence_of, taken

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.cli.emit import Line
    from certkit.passport.opening import Verification
    from certkit.passport.statement import CriterionClaim, Predicate, RowAtTier, Validity

MAX_CARD: Final = 1024 * 1024
_MOST: Final = 3


class Show(Document, frozen=True, kw_only=True, tag="urn:certkit:show:v1"):
    """What a passport says; without a trust policy its signature is not checked."""

    passport_id: Digest | None
    verification: Annotated[
        Mapping[str, Any] | None, Meta(description="as urn:certkit:verification:v1; null: not checked")
    ]
    statement: Annotated[
        Mapping[str, Any] | None, Meta(description="as urn:certkit:passport:v1 says of the payload")
    ]


def export(
    passport: opt.PassportFile,
    to: Annotated[exports.Format, opt.FORMAT()],
    out: Annotated[Path | None, opt.OUT()] = None,
    force: opt.Force = False,
    trust: opt.TrustFile = None,
    key: Annotated[Path | None, opt.KEY(help="The private key that signs the export (PEM).")] = None,
    passphrase_file: opt.PassphraseFile = None,
    card: Annotated[Path | None, typer.Option("--card", help="The agent card that a2a signs (JSON).")] = None,
    bundle: opt.Evidence = None,
    replay: opt.Replay = False,
    profile: opt.ReplayProfile = None,
    registry: opt.Registry = None,
    at: opt.AsOf = None,
) -> None:
    """Write what a passport says in a format of others: a copy of the claim, and no evidence.

    The passport is verified first, as 'certkit verify' does; one that is not verified gives the exit
    code of its verification. in-toto-svr, vc+jwt and a2a are signed with --key, and speak in its name;
    markdown and badge are not signed. What is dated bears the time of the verification.

    Example: certkit export passport.json -f markdown -o passport.md
    """
    context.check_outputs(out, force=force)
    signer = context.signing_key(key, passphrase_file) if key else None
    document = canonical.loads(files.read(card, limit=MAX_CARD), where=str(card)) if card else None
    evidence = evidence_of(bundle, profile, replay=replay, progress=progress())
    verified = checked(passport, taken(passport), context.load_policy(trust), registry, at, **evidence)
    made = exports.export(to, verified, key=signer, card=document)
    emit_file(made, made.content.encode(), out, force=force)


def show(
    passport: opt.PassportFile,
    trust: Annotated[
        Path | None, opt.TRUST(help="Verify it under this trust policy as well.", envvar=None)
    ] = None,
    registry: opt.Registry = None,
    at: opt.AsOf = None,
) -> None:
    """Show what a passport says, on one screen. Without --trust its signature is not checked.

    What is too long for the screen, such as how every bound was got, is in the document of --json.

    With --trust, --registry or PASSPORT.status says whether it still stands, as in 'certkit verify'.

    Exit code: that of the verification with --trust, otherwise 0 for every passport that can be read.

    Example: certkit show passport.json --trust trust.json
    """
    if registry is not None and trust is None:
        raise UsageError("usage.option", "--registry is asked under a trust policy", hint="--trust FILE")
    moment, given = at or context.now(), taken(passport)
    verified = checked(passport, given, context.load_policy(trust), registry, moment) if trust else None
    parsed = parse(given.passport, str(passport)) if verified is None or verified.statement else None
    # What fails before its fourth step is not known to be anybody's words, and is not repeated here.
    predicate = parsed.unverified_statement().predicate if parsed else None
    valid = _validity(predicate.validity, moment, dated=at is not None) if predicate else ""
    told = verified is not None and any(
        step.id == "status" and step.status != "skipped" for step in verified.steps
    )
    is_not = words.IS_NOT[:-1] if told else words.IS_NOT  # the last is what a registry tells
    emit(
        Show(
            passport_id=parsed.passport_id if parsed else None,
            verification=verified.to_dict() if verified else None,
            statement=canonical.loads(parsed.payload) if parsed else None,
        ),
        chain(
            _verdict(verified, in_pdf=given.in_pdf, dated=at is not None),
            _passport(predicate, parsed.passport_id, valid, is_not) if parsed and predicate else (),
        ),
        code=verified.exit_code if verified else Exit.OK,
    )


def _verdict(verified: Verification | None, *, in_pdf: bool, dated: bool) -> Iterator[Line]:
    if verified is None:
        yield "SIGNATURE NOT CHECKED: anyone can write this. Check it: --trust FILE"
    else:
        yield from show_verdict(verified, dated=dated)
        skipped = [step.id for step in verified.steps if step.status == "skipped"]
        yield from fold(f"Not checked: {', '.join(skipped) or 'no step'}; 'certkit verify' tells why")
    if in_pdf:
        yield from fold("Taken out of a PDF, whose pages are not signed: compare the id that they print")


def _passport(
    predicate: Predicate, passport_id: Digest, valid: str, is_not: tuple[str, ...] = words.IS_NOT
) -> Iterator[Line]:
    """Print a passport: who and what, the table, its limits, and what it is not."""
    yield passport_id
    yield from fold(words.one_line(predicate.name))
    yield ""
    for line in words.above(predicate):
        yield from fold(line)
    for label, text in _rows(predicate, valid):
        yield from entry(label, text, 9)  # beside it a digest ends in column 80
    yield ""
    yield from _table(predicate)
    yield ""
    modes = [
        f"{mode.domain}, {mode.condition}: failed {mode.failures:,} of {mode.runs:,} runs"
        for mode in predicate.known_failure_modes
    ]
    if len(modes) > _MOST:
        modes[_MOST:] = [f"and {len(modes) - _MOST} more; --json has them"]
    sections = {
        "Limitations": predicate.limitations,
        "Known failure modes, worst first": modes,
        "Open challenges": [
            f"{item.severity}: {item.message} [{item.code}]" for item in predicate.challenges
        ],
        "What it is not": is_not,
    }
    for title, items in sections.items():
        yield f"{title}:" if items else f"{title}: none stated"
        for item in items:
            yield from fold(item, first="  ", rest="    ")


def _rows(predicate: Predicate, valid: str) -> Iterator[tuple[str, str]]:
    agent, issuer, scope = predicate.agent, predicate.issuer, predicate.scope
    judgement, evidence = predicate.assessment, predicate.evidence
    yield "claim", words.one_line(predicate.claim)
    yield "valid", valid
    evaluator, developer = (
        name or "not stated" for name in (issuer.relation_to_evaluator, issuer.relation_to_developer)
    )
    relations = f"relation to the evaluator: {evaluator}; relation to the developer: {developer}"
    yield "issuer", f"{quoted(issuer.name)}, key {words.short(issuer.key_id)}; {relations}"
    provider = quoted(agent.provider) if agent.provider else "a provider not stated"
    yield "agent", f"{quoted(f'{agent.name} {agent.version}')}, by {provider}"
    yield "", agent.digest
    runs = f"{evidence.nominal_runs:,} nominal, {evidence.fault_runs:,} under faults"
    records = many(evidence.records, "record")
    yield "evidence", f"{predicate.origin}, {records}: {runs}; {words.short(evidence.digest)}"
    yield "profile", f"{quoted(judgement.profile.id)}; {words.short(judgement.profile.digest)}"
    yield "domains", ", ".join(map(quoted, scope.domains)) or "none"
    yield "runs in", ", ".join(f"{name} {count:,}" for name, count in scope.fault_mix.items()) or "none"
    if predicate.integrity:
        yield "probes", words.commitments(predicate.integrity)
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


def _table(predicate: Predicate) -> Iterator[Line]:
    tiers = sorted({tier for row in predicate.criteria for tier in row.tiers}, key=int)
    decisive = str(predicate.assessment.tier + 1)
    decisive = decisive if decisive in tiers else tiers[-1]
    rows = []
    for row in predicate.criteria:
        at = row.tiers.get(decisive)
        value = _number(row, at.value if at and at.value else row.value)
        value = "partial" if row.state == "partial" else value
        bound = _number(row, at.bounded.bound) if at and at.bounded else ""
        asked = [_asked(row.tiers.get(tier)) for tier in tiers]
        by_tier = [_number(row, at.value) for tier in tiers if (at := row.tiers.get(tier)) and at.value]
        rows.append(Cells(row.id, row.metric, value, bound, row.n, asked, by_tier))
    yield from table(rows, tiers, reading=predicate.assessment.profile.reading, bound_tier=decisive)
    provisional = [row.id for row in predicate.criteria if row.provisional]
    if provisional:
        yield from fold(f"provisional in the source: {', '.join(provisional)}")


def _number(row: CriterionClaim, value: str | bool | None) -> str:
    """Return a signed value in digits, a dash for what was not measured."""
    number = value if value is None or isinstance(value, bool) else float(value)
    return digits(number, probability=row.unit == "probability")


def _asked(at: RowAtTier | None) -> Asked:
    if at is None:
        return Asked(None, None, "", None)
    threshold = at.threshold if isinstance(at.threshold, bool) else float(at.threshold)
    return Asked(at.operator, threshold, at.table, at.bounded.status if at.bounded else None)
