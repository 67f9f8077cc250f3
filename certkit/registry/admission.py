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

from certkit.ground import files
from certkit.ground.document import fill
from certkit.ground.errors import CertkitError, InputError, MismatchError, NegativeError, UntrustedError
from certkit.ground.progress import SILENT, Progress
from certkit.passport import checks
from certkit.passport.opening import RefusedPassportError, open_signed
from certkit.registry.auditing import audit
from certkit.registry.drifts import compared
from certkit.registry.entry import Check, PassportFacts, timestamp
from certkit.registry.heads import Heads, read, remembered
from certkit.registry.registry import Registry
from certkit.registry.source import keys_of_log, opened
from certkit.registry.state import outside, submitters
from certkit.registry.writing import Appended, refuse_stranger
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import MAX_PROOF, Quorum, open_checkpoint, parse_proof
from certkit.tlog.note import VerifierKey, open_note, parse_note

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey
    from certkit.passport.trust import Trust
    from certkit.registry.auditing import Audit
    from certkit.registry.ledger import Warn
    from certkit.registry.source import Source
    from certkit.tlog.checkpoint import Checkpoint, LogProof

PROOF_SUFFIX: Final = ".tlog-proof"
"""What is appended to a passport's file name to name the proof beside it."""


class Admitted(Appended, frozen=True, kw_only=True):
    """What became of a passport that was admitted, with the proof of its entry."""

    proof: LogProof


def admit(
    folder: Path,
    passport: bytes,
    *,
    trust: Trust,
    submitter: PrivateKey,
    log_key: Ed25519PrivateKey,
    heads: Path,
    at: datetime,
    progress: Progress = SILENT,
    warn: Warn = lambda _: None,
) -> Admitted:
    """Append a passport to the registry in `folder`, if it is valid at `at` and its issuer is trusted.

    The same write also logs any drift since the previous one. `heads` is the file that remembers what was
    signed, outside the registry. Raises `RefusedPassportError`,
    `UntrustedError` ``registry.submitter``, and what `Registry.append` does.
    """
    refuse_stranger(submitter, trust, at)
    with Registry.open(folder, heads=heads, progress=progress, warn=warn) as registry:
        appended = registry.append(
            passport,
            check=checker(trust),
            submitter=submitter,
            log_key=log_key,
            at=at,
            compare=compared,
            trust=trust,
        )
        return fill(Admitted, appended, proof=registry.prove(appended.index))


def inspect(
    folder: Path,
    *,
    trust: Trust,
    heads: Path | None = None,
    since: Checkpoint | None = None,
    at: datetime | None = None,
    progress: Progress = SILENT,
) -> Audit:
    """Audit the registry, or the exported tree, in `folder` against a trust policy.

    It must continue `since`, and what the file `heads` remembers of it, which remembers its checkpoint where
    it is sound. Raises `UntrustedError` ``registry.untrusted-log`` where the policy has no key for it, and
    what `audit` does.
    """
    with opened(folder) as source:
        log = log_of(source, trust, folder)
        if since is not None and since.origin != log.name:
            raise MismatchError(
                "tlog.origin", f"expected a checkpoint of {log.name}, found one of {since.origin}"
            )
        keys_of = keys_of_log(trust, log.name)
        signed = remembered(heads, *keys_of) if heads else None
        report = audit(
            folder,
            log=log,
            submitters=submitters(trust),
            check=checker(trust),
            remembered=[known for known in (since, signed) if known is not None],
            quorum=Quorum.of(trust.witnesses.k, trust.witnesses.keys),
            at=at,
            progress=progress,
            source=source,
        )
        if heads and not report.total:
            try:
                _remember(source, log, keys_of, heads)
            except CertkitError as error:
                return structs.replace(report, notes=(*report.notes, f"not remembered: {error}"))
    return report


def remember(folder: Path, trust: Trust, heads: Path) -> None:
    """Remember the head of the log in `folder`, as an audit does; it must continue what is remembered."""
    with opened(folder) as source:
        log = log_of(source, trust, folder)
        _remember(source, log, keys_of_log(trust, log.name), heads)


def _remember(source: Source, log: VerifierKey, keys_of: Sequence[VerifierKey], heads: Path) -> None:
    """Remember the checkpoint of a log, whoever signs it, for the next audit or verification."""
    with closing(Heads.open(heads)) as file, file.held(*keys_of) as head:
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
    try:
        open_note(data, keys_of_log(trust, parse_note(data).text.partition("\n")[0]))
        return read(data)
    except CertkitError as error:
        raise type(error)(error.code, error.message, where=str(path), hint=error.hint) from None


def checker(trust: Trust) -> Check:
    """Return what verifies a passport as it is, or was, logged at a time."""
    # Only verifiers require a timestamp; the log's own time is no part of a passport.
    policy = structs.replace(trust, require=())

    def check(data: bytes, at: datetime) -> PassportFacts:
        passport = open_signed(data, policy)
        signing = checks.signing(passport, policy)
        predicate = passport.statement.predicate
        try:
            checks.validity(checks.Case(passport=passport, signing=signing, trust=policy, at=at))
            if signing.time is None and (message := outside(passport.signer, timestamp(at))):
                hint = (
                    "a passport signed before needs a timestamp to show it; or issue anew, with a present key"
                )
                raise NegativeError("passport.key-window", f"it would be {message}", hint=hint)
        except CertkitError as error:
            raise RefusedPassportError("validity", error) from None
        return PassportFacts(
            passport_id=passport.passport_id,
            lineage=predicate.agent.lineage,
            agent=predicate.agent.digest,
            evidence=predicate.evidence.digest,
            attempt=predicate.protocol.attempt,
            issuer=passport.signer.issuer,
            tier=predicate.assessment.tier,
            profile=predicate.assessment.profile.digest,
            not_before=timestamp(predicate.validity.not_before),
            not_after=timestamp(predicate.validity.not_after),
            supersedes=predicate.supersedes,
            bundles=tuple(bundle.digest for bundle in predicate.evidence.bundles or ()),
        )

    return check


def log_of(source: Source, trust: Trust, folder: Path) -> VerifierKey:
    """Return the policy's key of a log; of several, the last one listed is the log's present one.

    Raises `UntrustedError` ``registry.untrusted-log`` where there is none.
    """
    origin, logs = "a log", [VerifierKey.parse(text) for text in trust.logs]
    with suppress(CertkitError):  # whoever reads on says what is wrong with the checkpoint
        origin = read(source.note()).origin
        logs = keys_of_log(trust, origin)
    if logs:
        return logs[-1]
    raise UntrustedError(
        "registry.untrusted-log",
        f"no trusted verifier key for {origin}",
        where=str(folder),
        hint="certkit trust add --log VKEY, with the key that 'certkit registry init' printed",
    )
