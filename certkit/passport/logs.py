"""Registration and status of a passport in a log: steps 7 and 8 of a verification.

A proof of inclusion shows that a trusted log holds an entry about the passport; a `StatusSource` tells
whether a later entry ended it. Both raise as `checks` does.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from certkit.ground import canonical
from certkit.ground.errors import (
    CertkitError,
    InputError,
    MismatchError,
    NegativeError,
    UnavailableError,
    UsageError,
)
from certkit.passport import envelope as sealed
from certkit.passport.checks import NOT_ASKED, period, shown
from certkit.passport.passport import CLOCK_SKEW

if TYPE_CHECKING:
    from certkit.passport.checks import Case, StatusSource
    from certkit.passport.trust import Trust

PROOF_SUFFIX: Final = ".tlog-proof"
"""What is appended to a passport's file name to name the proof beside it."""
ENDED: Final = {"revoked": "passport.revoked", "superseded": "passport.superseded"}  # codes
ENTRY_TYPE: Final = "application/vnd.certkit.registry-entry.v1+json"


class _Claims(Struct, frozen=True):
    passport_id: str


class _Entry(Struct, frozen=True, tag_field="type", tag="passport"):
    """The part of a log's entry about a passport that is read here."""

    issued_at: Annotated[datetime, Meta(tz=True)]
    claims: _Claims
    log: str | None = None


def add_log(trust: Trust) -> str:
    """Return what to do about a log that a policy does not trust."""
    return f"{'' if trust.logs else 'you trust no log: '}certkit trust add --log VKEY"


def registry(case: Case) -> str:
    """Check the offline proof that a trusted log holds an entry about this passport."""
    if case.proof is None:
        hint = f"a file PASSPORT{PROOF_SUFFIX}"
        raise UnavailableError(NOT_ASKED, "no proof of registration was given", hint=hint)
    if isinstance(case.proof, CertkitError):
        raise UnavailableError(case.proof.code, str(case.proof), hint=case.proof.hint)
    if not case.trust.logs:
        raise UnavailableError(
            "passport.unavailable", "a proof was given, and you trust no log", hint=add_log(case.trust)
        )
    from certkit.tlog import checkpoint, note, tree  # noqa: PLC0415 - many come without a proof

    logs = [note.VerifierKey.parse(key) for key in case.trust.logs]
    quorum = checkpoint.Quorum.of(case.trust.witnesses.k, case.trust.witnesses.keys)
    parsed = checkpoint.parse_proof(case.proof)
    entry = parsed.extra or b""
    head = checkpoint.verify_proof(parsed, tree.leaf_hash(entry), logs, quorum.keys)
    if not quorum.is_met(head.cosigned):
        raise MismatchError(
            "passport.witnesses", f"{len(head.cosigned)} of {quorum.k} required witnesses cosigned"
        )
    by_then = checkpoint.counted(head.cosigned, (case.at + CLOCK_SKEW).timestamp())
    if not quorum.is_met(by_then):
        message = f"{len(by_then)} of {quorum.k} required witnesses had cosigned at {shown(case.at)}"
        raise UnavailableError("passport.unavailable", message)
    _about(entry, head.checkpoint.origin, case)
    return f"entry {parsed.index} of {head.checkpoint.size} in {head.checkpoint.origin}"


def _about(entry: bytes, origin: str, case: Case) -> None:
    """Raise `MismatchError` unless an entry of the log `origin` registers this passport.

    The issuer alone states the beginning of the validity, and a retired key could state an early one: so the
    time at which the log says that the entry was made must lie in the key's window.
    """
    try:
        envelope = sealed.parse_envelope(canonical.loads(entry), payload_type=ENTRY_TYPE)
        logged = msgspec.convert(canonical.loads(envelope.payload), _Entry)
    except (InputError, msgspec.ValidationError) as error:
        raise MismatchError("passport.registry", f"the logged entry registers no passport: {error}") from None
    if logged.claims.passport_id != case.passport.passport_id:
        raise MismatchError("passport.registry", "the logged entry is about another passport")
    if logged.log not in {None, origin}:
        raise MismatchError("passport.registry", f"the logged entry was signed for another log, {logged.log}")
    signed = sealed.pae(envelope.payload_type, envelope.payload)
    if not any(sealed.is_signature(envelope.signature, signed, item.key) for item in case.trust.candidates()):
        raise MismatchError("passport.registry", "no trusted key signed the logged entry")
    until = case.passport.signer.not_after
    if until is not None and logged.issued_at > until:
        message = f"logged at {shown(logged.issued_at)}, its key is trusted until {shown(until)}"
        raise MismatchError("passport.key-window", message)


def status(case: Case) -> str:
    """Check that the passport was neither revoked nor superseded, as of a checkpoint that is fresh.

    The registry that the verifier named and the status file beside the passport may differ in age, so each of
    them can end the passport. The file can show that the passport stands only if no registry was named.
    """
    source = case.status or case.beside
    if source is None:
        message = "no registry was asked whether it was revoked or superseded"
        raise UnavailableError(NOT_ASKED, message, hint="--registry DIR")
    if case.beside is not None:
        with suppress(UnavailableError):
            _told(case.beside, case)
    return _told(source, case)


def _told(source: StatusSource, case: Case) -> str:
    revokers = {
        item.id: item.key for item in case.trust.candidates() if item.issuer == case.passport.signer.issuer
    }
    try:
        status = source.status(case.passport.passport_id, revokers, case.predicate.facts)
    except (InputError, UsageError, MismatchError) as error:
        if isinstance(error, MismatchError) and error.code != "registry.damaged":
            raise MismatchError(error.code, f"its status does not hold together: {error}") from None
        # What cannot be read says nothing, and so not that the passport has ended.
        raise UnavailableError(error.code, str(error), hint=error.hint) from None
    if status.standing in ENDED:
        raise NegativeError(ENDED[status.standing], status.detail)
    if status.lineages and (lineage := case.predicate.facts.agent.lineage) not in status.lineages:
        raise MismatchError(
            "registry.status", f"logged under {status.lineages[0]!r}, and it is of {lineage!r}"
        )
    if status.standing != "current":
        raise UnavailableError("passport.unavailable", status.detail)
    age = None if status.time is None else case.at - status.time
    if age is None:
        doubt = "of unknown age"
    elif age < -CLOCK_SKEW:
        doubt = f"as of {shown(status.time)}, which is to come"
    elif age > case.trust.max_status_age:
        doubt = f"{period(age)} old, more than the policy takes"
    else:
        return status.detail
    raise UnavailableError("passport.unavailable", f"the status is {doubt}: {status.detail}")
