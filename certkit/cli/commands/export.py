"""``certkit show`` and ``certkit export``: what a passport says, on a screen and in formats of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import Meta

from certkit import canonical, files
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.verify import show_verdict
from certkit.cli.emit import emit, entry, fold, progress
from certkit.cli.views.table import Asked, Cells, digits, table
from certkit.document import Digest, Document
from certkit.errors import Exit, UsageError
from certkit.passport import exports, words
from certkit.passport.opening import parse
from certkit.passport.verification import verify as check
from certkit.text import quoted
from certkit.wording import many
from certkit.workflow.verifying import evidence_of, standing_of, taken

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.cli.emit import Line
    from certkit.passport.exports import Export
    from certkit.passport.opening import Verification
    from certkit.passport.pdf import Taken
    from certkit.passport.statement import CriterionClaim, Predicate, RowAtTier, Trigger, Validity

MAX_CARD: Final = 1024 * 1024
_entry = partial(entry, width=9)  # beside it a digest ends in column 80
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
    verified = _verified(passport, taken(passport), trust, registry, at or context.now(), **evidence)
    made = exports.export(to, verified, key=signer, card=document)
    content = made.content.encode()
    if out is not None:
        files.write(out, content, overwrite=force)
    emit(made.to_dict, content if out is None else _screen(made, out))


def _screen(made: Export, out: Path) -> Iterator[str]:
    yield f"written: {out}"
    yield from fold(f"{made.media_type}, of passport {made.passport_id}")


def _verified(
    passport: Path, given: Taken, trust: Path | None, registry: Path | None, at: datetime, **evidence: Any
) -> Verification:
    policy, heads = context.load_policy(trust), context.heads_path()
    standing = standing_of(passport, registry, trust=policy, at=at, heads=heads, progress=progress())
    return check(given.passport, trust=policy, at=at, proof=given.proof, **standing, **evidence)


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
    verified = _verified(passport, given, trust, registry, moment) if trust else None
    parsed = parse(given.passport) if verified is None or verified.statement else None
    # What fails before its fourth step is not known to be anybody's words, and is not repeated here.
    predicate = parsed.unverified_statement().predicate if parsed else None
    valid = _validity(predicate.validity, moment, dated=at is not None) if predicate else ""
    emit(
        Show(
            passport_id=parsed.passport_id if parsed else None,
            verification=verified.to_dict() if verified else None,
            statement=canonical.loads(parsed.payload) if parsed else None,
        ),
        chain(
            _verdict(verified, in_pdf=given.in_pdf, dated=at is not None),
            _passport(predicate, parsed.passport_id, valid) if parsed and predicate else (),
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


def _passport(predicate: Predicate, passport_id: Digest, valid: str) -> Iterator[Line]:
    """Print a passport: who and what, the table, its limits, what ends it, and what it is not."""
    yield passport_id
    yield from _head(predicate, valid)
    yield ""
    yield from _table(predicate)
    yield ""
    yield from _scope(predicate)
    if pooled := words.periods(predicate.evidence):
        yield from _section(f"Pooled from {len(pooled)} bundles, each alone", _first(pooled))
    yield from _limits(predicate)
    yield from _ends(predicate)
    yield from _section("What it is not", words.IS_NOT)


def _head(predicate: Predicate, valid: str) -> Iterator[str]:
    agent, issuer = predicate.agent, predicate.issuer
    judgement, evidence = predicate.assessment, predicate.evidence
    yield from fold(words.one_line(predicate.name))
    yield ""
    for line in words.above(predicate):
        yield from fold(line)
    yield from _entry("claim", words.one_line(predicate.claim))
    yield from _entry("valid", valid)
    relations = [
        f"relation to the {name}: {relation}" if relation else f"relation to the {name} not stated"
        for name, relation in (
            ("evaluator", issuer.relation_to_evaluator),
            ("developer", issuer.relation_to_developer),
        )
    ]
    yield from _entry(
        "issuer", f"{quoted(issuer.name)}, key {words.short(issuer.key_id)}; {'; '.join(relations)}"
    )
    yield from _entry(
        "agent",
        f"{quoted(agent.name)} {words.one_line(agent.version)}, by"
        f" {quoted(agent.provider) if agent.provider else 'a provider not stated'}",
    )
    yield from _entry("", agent.digest)
    runs = f"{evidence.nominal_runs:,} nominal, {evidence.fault_runs:,} under faults"
    records = many(evidence.records, "record")
    yield from _entry("evidence", f"{predicate.origin}, {records}: {runs}; {words.short(evidence.digest)}")
    yield from _entry("profile", f"{quoted(judgement.profile.id)}; {words.short(judgement.profile.digest)}")
    if predicate.integrity:
        yield from _entry("probes", words.commitments(predicate.integrity))
    if predicate.supersedes:
        yield from _entry("replaces", predicate.supersedes)


def _validity(validity: Validity, at: datetime, *, dated: bool) -> str:
    span = f"{words.utc(validity.not_before)} to {words.utc(validity.not_after)}"
    asked = f" as of {words.utc(at)}" if dated else ""
    if at < validity.not_before:
        return f"{span}: NOT YET VALID{asked}"
    left = validity.not_after - at
    if left < timedelta(0):
        return f"{span}: EXPIRED {many((-left).days, 'day')} ago{asked}"
    return f"{span}: {many(left.days, 'day')} left{asked}"


def _table(predicate: Predicate) -> Iterator[Line]:
    tiers = sorted({tier for row in predicate.criteria for tier in row.tiers}, key=int)
    decisive = str(predicate.assessment.tier + 1)
    decisive = decisive if decisive in tiers else tiers[-1]
    rows = []
    for row in predicate.criteria:
        at = row.tiers.get(decisive)
        value = (
            row.state if row.state == "partial" else _number(row, at.value if at and at.value else row.value)
        )
        bound = _number(row, at.bounded.bound) if at and at.bounded else ""
        asked = [_asked(row.tiers.get(tier)) for tier in tiers]
        rows.append(Cells(row.id, row.metric, value, bound, row.n, asked))
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


def _scope(predicate: Predicate) -> Iterator[str]:
    scope = predicate.scope
    yield from _entry("domains", ", ".join(scope.domains) or "none")
    yield from _entry(
        "runs in", ", ".join(f"{name} {count:,}" for name, count in scope.fault_mix.items()) or "none"
    )


def _limits(predicate: Predicate) -> Iterator[str]:
    yield from _section("Limitations", predicate.limitations)
    modes = [
        f"{mode.domain}, {mode.condition}: failed {mode.failures:,} of {mode.runs:,} runs"
        for mode in predicate.known_failure_modes
    ]
    yield from _section("Known failure modes, worst first", _first(modes))
    yield from _section(
        "Open challenges", [f"{item.severity}: {item.message} [{item.code}]" for item in predicate.challenges]
    )


def _first(items: Sequence[str]) -> list[str]:
    """Return as many items as one screen bears, and how many there are beside them."""
    more = len(items) - _MOST
    return [*items[:_MOST], *([f"and {more} more; --json has them"] if more > 0 else [])]


def _ends(predicate: Predicate) -> Iterator[str]:
    yield from _section(
        "Ends before its date, and asks for a new test", map(_trigger, predicate.validity.retest_triggers)
    )


def _trigger(trigger: Trigger) -> str:
    if trigger.event == "component_change":
        return "any component of the agent changes"
    if trigger.event == "intervention_rate_above":
        return f"people intervene in more than {_percent(trigger.threshold)} of runs in operation"
    return f"in operation, {trigger.metric} is no longer {trigger.operator} {_plain(trigger.threshold)}"


def _plain(threshold: str | None) -> str:
    return "?" if threshold is None else threshold.rstrip("0").rstrip(".")


def _percent(threshold: str | None) -> str:
    return "?" if threshold is None else f"{_plain(f'{100 * Decimal(threshold):.6f}')} %"


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    listed = list(items)
    yield f"{title}:" if listed else f"{title}: none stated"
    for item in listed:
        yield from fold(item, first="  ", rest="    ")
