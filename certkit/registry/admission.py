"""Who may be admitted: a passport that a trusted issuer signed, submitted by a key that the policy knows.

Admission takes steps 1 to 4 and 6 of a passport's verification (`certkit.passport.verification`) and
nothing of the policy's taste: a log that left out low tiers, specimens or unwelcome profiles would hide
what it is there to show. An audit asks the same of every logged passport, at the time it was signed for.

    appended = admit(folder, data, trust=trust, submitter=key, log_key=log_key, at=now)
    report = inspect(folder, trust=trust)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit import canonical
from certkit.errors import CertkitError, UntrustedError
from certkit.passport import checks, dsse, keys, sealed
from certkit.passport.outcome import STEPS, Step
from certkit.progress import SILENT, Progress
from certkit.registry.auditing import Audit, audit
from certkit.registry.entry import Check, PassportFacts, timestamp
from certkit.registry.registry import Appended, Registry
from certkit.tlog.note import VerifierKey, open_note

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey, PublicKey
    from certkit.passport.trust import Trust

PROOF_SUFFIX: Final = ".tlog-proof"
"""What is appended to a passport's file name to name the proof beside it."""


class RefusedPassportError(CertkitError):
    """A passport that is not admitted; leaves with the exit code that its verification would."""

    def __init__(self, step: str, cause: CertkitError) -> None:
        super().__init__(cause.code, f"{step}: {cause.message}", where=cause.where, hint=cause.hint)
        failed = Step(
            number=STEPS.index(step) + 1, id=step, status="failed", code=cause.code, detail=cause.message
        )
        self.exit_code = failed.exit_code


def admit(
    folder: Path,
    passport: bytes,
    *,
    trust: Trust,
    submitter: PrivateKey,
    log_key: Ed25519PrivateKey,
    at: datetime,
) -> Appended:
    """Append a passport to the registry in `folder`, if it is valid at `at` and its issuer is trusted.

    Raises `RefusedPassportError`, `UntrustedError` ``registry.submitter``, and what `Registry.append` does.
    """
    if (name := keys.key_id(submitter.public_key())) not in submitters(trust):
        raise UntrustedError(
            "registry.submitter",
            f"the trust policy does not know key {name}, and no auditor with it would accept its entry",
            hint="submit with an issuer's key, or add the submitter to the policy: certkit trust add",
        )
    with Registry.open(folder, writable=True) as registry:
        return registry.append(
            passport, check=checker(trust, at), submitter=submitter, log_key=log_key, at=at
        )


def inspect(folder: Path, *, trust: Trust, progress: Progress = SILENT) -> Audit:
    """Audit the registry in `folder` against a trust policy.

    Raises `UntrustedError` ``registry.untrusted-log`` where the policy has no key for it, and what `audit`
    does.
    """
    return audit(
        folder,
        log=_log(folder, trust),
        submitters=submitters(trust),
        check=checker(trust, None),
        progress=progress,
    )


def submitters(trust: Trust) -> dict[str, PublicKey]:
    """Return the keys that may submit entries, by id: those of the trusted issuers."""
    return {one.id: one.key for one in trust.candidates()}


def checker(trust: Trust, at: datetime | None) -> Check:
    """Return what verifies a passport at a time, or (None) at the beginning of its own validity."""
    # Whether a timestamp is required is asked by verifiers; the log's own time is no part of a passport.
    policy = structs.replace(trust, require=())
    return lambda data: _facts(data, policy, at)


def _facts(data: bytes, trust: Trust, at: datetime | None) -> PassportFacts:
    step = "parse"
    try:
        file = sealed.parse(data)
        step = "envelope"
        envelope = dsse.parse(file.envelope, payload_type=sealed.PAYLOAD_TYPE)
        step = "signature"
        signer = checks.signature(file, envelope, trust)
        step = "types"
        statement = checks.statement(envelope.payload, signer)
        step = "validity"
        case = checks.Case(
            data=data,
            passport_id=canonical.digest(envelope.payload),
            statement=statement,
            signer=signer,
            trust=trust,
            at=at or statement.predicate.validity.not_before,
            agent=None,
            domain=None,
            require_tier=None,
            opened=None,
            replay=None,
            proof=None,
            status=None,
        )
        checks.validity(case)
    except CertkitError as error:
        raise RefusedPassportError(step, error) from None
    predicate = statement.predicate
    return PassportFacts(
        passport_id=case.passport_id,
        lineage=predicate.agent.lineage,
        agent=predicate.agent.digest,
        tier=predicate.assessment.tier,
        profile=predicate.assessment.profile.digest,
        not_before=timestamp(predicate.validity.not_before),
        not_after=timestamp(predicate.validity.not_after),
        supersedes=predicate.supersedes,
    )


def _signed(checkpoint: bytes, log: VerifierKey) -> bool:
    try:
        return bool(open_note(checkpoint, [log]).signed)
    except CertkitError:
        return False


def _log(folder: Path, trust: Trust) -> VerifierKey:
    """Return the trusted key to audit with: the only one, or the one with the registry's name."""
    logs = [VerifierKey.parse(text) for text in trust.logs]
    if len(logs) == 1:
        return logs[0]
    with Registry.open(folder) as registry:
        origin = registry.origin
        note = registry.checkpoint()
    named = [log for log in logs if log.name == origin]
    for log in named:
        # After a rotation several keys have the log's name; the one that signed its head is meant.
        if len(named) == 1 or _signed(note, log):
            return log
    raise UntrustedError(
        "registry.untrusted-log",
        f"no trusted verifier key for {origin}",
        where=str(folder),
        hint="certkit trust add --log VKEY, with the key that 'certkit registry init' printed",
    )
