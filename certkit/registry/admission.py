"""Who may be admitted: a passport that a trusted issuer signed, submitted by a key that the policy knows.

Admission takes steps 1 to 4 and 6 of a passport's verification (`certkit.passport.verification`) and
nothing of the policy's taste: a log that left out low tiers, specimens or unwelcome profiles would hide
what it is there to show. An audit asks the same of every logged passport, at the time it was signed for.

    appended = admit(folder, data, trust=trust, submitter=key, log_key=log_key, at=now)
    report = inspect(folder, trust=trust)
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit import canonical, files
from certkit.errors import CertkitError, InputError, UntrustedError
from certkit.passport import checks, dsse, keys, sealed
from certkit.passport.outcome import STEPS, Step
from certkit.progress import SILENT, Progress
from certkit.registry.auditing import Audit, audit, opened
from certkit.registry.consequences import Consequences
from certkit.registry.entry import Check, PassportFacts, timestamp
from certkit.registry.heads import Heads, read, remembered
from certkit.registry.registry import Appended, Registry
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.note import VerifierKey, open_note, parse_note
from certkit.tlog.proof import MAX_PROOF
from certkit.tlog.proof import parse as parse_proof
from certkit.tlog.witness import Quorum

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey, PublicKey
    from certkit.passport.trust import Trust
    from certkit.tlog.checkpoint import Checkpoint

PROOF_SUFFIX: Final = ".tlog-proof"
"""What is appended to a passport's file name to name the proof beside it."""


class Admitted(Appended, frozen=True, kw_only=True):
    """What became of a passport that was admitted, and what followed from it."""

    following: Consequences


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
    heads: Path,
    at: datetime,
) -> Admitted:
    """Append a passport to the registry in `folder`, if it is valid at `at` and its issuer is trusted.

    What it supersedes, and a drift since the passport before it, are logged in one with it. `heads` is the
    file that remembers what was signed, outside the registry. Raises `RefusedPassportError`,
    `UntrustedError` ``registry.submitter``, and what `Registry.append` does.
    """
    refuse_stranger(submitter, trust)
    following = Consequences(passport)
    with Registry.open(folder, heads=heads) as registry:
        appended = registry.append(
            passport,
            check=checker(trust, at),
            submitter=submitter,
            log_key=log_key,
            at=at,
            follow=following.of,
        )
    return Admitted(**structs.asdict(appended), following=following)


def refuse_stranger(submitter: PrivateKey, trust: Trust) -> None:
    """Raise `UntrustedError` ``registry.submitter`` unless the policy knows the key."""
    if (name := keys.key_id(submitter.public_key())) not in submitters(trust):
        raise UntrustedError(
            "registry.submitter",
            f"the trust policy does not know key {name}, and no auditor with it would accept its entry",
            hint="submit with an issuer's key, or add the submitter to the policy: certkit trust add",
        )


def inspect(
    folder: Path,
    *,
    trust: Trust,
    heads: Path | None = None,
    since: Checkpoint | None = None,
    progress: Progress = SILENT,
) -> Audit:
    """Audit the registry, or the exported tree, in `folder` against a trust policy.

    It must continue `since`, and what the file `heads` remembers of it, which remembers its checkpoint where
    it is sound. Raises `UntrustedError` ``registry.untrusted-log`` where the policy has no key for it, and
    what `audit` does.
    """
    log = _log(folder, trust)
    signed = remembered(heads, log.name) if heads else None
    report = audit(
        folder,
        log=log,
        submitters=submitters(trust),
        issuers={one.id: one.issuer for one in trust.candidates()},
        check=checker(trust, None),
        remembered=[one for one in (since, signed) if one is not None],
        quorum=Quorum.of(trust.witnesses.k, trust.witnesses.keys),
        progress=progress,
    )
    if heads and not report.total:
        try:
            _remember(folder, log, heads)
        except CertkitError as error:
            return structs.replace(report, notes=(*report.notes, f"not remembered: {error}"))
    return report


def _remember(folder: Path, log: VerifierKey, heads: Path) -> None:
    """Remember the checkpoint of a log, whoever signs it, for the next audit or verification."""
    with opened(folder) as source, closing(Heads.open(heads)) as file, file.held(log.name) as head:
        note = source.note()
        now = open_checkpoint(note, log).checkpoint
        proven = tiles.verified(now.size, now.root, source.tile)
        head.advance(note, lambda size: tree.root(size, tiles.node_reader(proven)))


def checkpoint_in(path: Path, trust: Trust) -> Checkpoint:
    """Return the checkpoint in a file, a signed one or a proof, that a log of the policy signed.

    Raises `InputError` ``tlog.*`` for its form, `MismatchError` ``tlog.unsigned`` or ``tlog.signature``.
    """
    data = files.read(path, limit=MAX_PROOF)
    with suppress(InputError):
        data = parse_proof(data).checkpoint
    logs = [VerifierKey.parse(text) for text in trust.logs]
    open_note(data, logs)
    return read(data)


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
        signing = checks.signing(file, envelope, trust)
        starts = statement.predicate.validity.not_before
        case = checks.Case(
            passport_id=canonical.digest(envelope.payload),
            statement=statement,
            signer=signer,
            signing=signing,
            trust=trust,
            at=at or max(starts, signing.time or starts),
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
        evidence=predicate.evidence.digest,
        attempt=predicate.protocol.attempt,
        issuer=signer.issuer,
        tier=predicate.assessment.tier,
        profile=predicate.assessment.profile.digest,
        not_before=timestamp(predicate.validity.not_before),
        not_after=timestamp(predicate.validity.not_after),
        supersedes=predicate.supersedes,
    )


def _log(folder: Path, trust: Trust) -> VerifierKey:
    """Return the trusted key to audit with: the only one, or the one with the registry's name."""
    logs = [VerifierKey.parse(text) for text in trust.logs]
    if len(logs) == 1:
        return logs[0]
    with opened(folder) as source:
        note = source.note()
        origin = read(note).origin
    named = [log for log in logs if log.name == origin]
    if len(named) == 1:
        return named[0]
    # After a change of keys several have the log's name. The one that signed its head is meant, and of two
    # that signed the head which covers the change, the later one.
    for signature in reversed(parse_note(note).signatures):
        for log in named:
            if signature.key_id == log.key_id:
                return log
    raise UntrustedError(
        "registry.untrusted-log",
        f"no trusted verifier key for {origin}",
        where=str(folder),
        hint="certkit trust add --log VKEY, with the key that 'certkit registry init' printed",
    )
