"""The steps of a verification, and the first five of them: who signed, and whether the judgement follows.

    signed = open_signed(data, trust)     # steps 1 to 5, or `RefusedPassportError`
    signed.signer.issuer, signed.statement

Verification, admission to a registry and audits all open passports here. Nothing of the payload is read
before the signature holds. A key inside the passport is never trusted: its hint only selects among the keys
of the policy. Whether the passport is valid at a time is for `checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from msgspec import Struct, structs, to_builtins

from certkit.assessment.assess import assess
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, Exit, NegativeError
from certkit.ground.text import quoted
from certkit.passport import envelope as sealed
from certkit.passport import keys
from certkit.passport.differences import difference, judgement_difference
from certkit.passport.envelope import Envelope, PassportFile
from certkit.passport.passport import (
    OtherRulesError,
    Passport,
    Predicate,
    Statement,
    read_passport,
    read_statement,
    triggers_of,
)
from certkit.passport.trust import Candidate, Trust

if TYPE_CHECKING:
    from certkit.ground.canonical import Digest
    from certkit.passport.keyless import Certified

StepId = Literal[
    "parse",
    "envelope",
    "signature",
    "types",
    "judgement",
    "subject",
    "validity",
    "registry",
    "status",
    "evidence",
    "replay",
    "policy",
]
STEPS: Final[tuple[StepId, ...]] = get_args(StepId)
"""The ids of the steps, in order; the first has number 1."""
UNTRUSTED: Final = "passport.untrusted-issuer"

_EXITS: Final[dict[StepId, Exit]] = {
    "parse": Exit.MALFORMED,
    "envelope": Exit.MALFORMED,
    "signature": Exit.NEGATIVE,
    "types": Exit.NEGATIVE,
    "judgement": Exit.NEGATIVE,
    "subject": Exit.NEGATIVE,
    "validity": Exit.ENDED,
    "registry": Exit.MISMATCH,
    "status": Exit.ENDED,
    "evidence": Exit.MISMATCH,
    "replay": Exit.MISMATCH,
    "policy": Exit.UNTRUSTED,
}


class Step(Struct, frozen=True, kw_only=True):
    """One step of a verification.

    Attributes:
        number: from 1.
        id: its name.
        status: what came of it; a step that was not taken is never passed.
        code: of the error, null where it passed.
        detail: the result in words, or why it was not taken.
        hint: what to do where it did not pass, null where nothing helps.
    """

    number: int
    id: StepId
    status: Literal["passed", "failed", "skipped"]
    code: str | None
    detail: str
    hint: str | None = None

    @property
    def exit_code(self) -> Exit:
        """The exit code of a verification that this step rejects."""
        return Exit.UNTRUSTED if self.code == UNTRUSTED else _EXITS[self.id]


def passed(name: StepId, detail: str) -> Step:
    """Return a step that passed."""
    return Step(number=STEPS.index(name) + 1, id=name, status="passed", code=None, detail=detail)


def failed(name: StepId, error: CertkitError) -> Step:
    """Return a step that failed."""
    return structs.replace(passed(name, str(error)), status="failed", code=error.code, hint=error.hint)


def skipped(name: StepId, error: CertkitError) -> Step:
    """Return a step that could not be taken."""
    return structs.replace(failed(name, error), status="skipped")


class SignedPassport(Struct, frozen=True, kw_only=True, eq=False):
    """A passport that a trusted issuer signed and whose judgement follows from its summary.

    Attributes:
        file: the file around the envelope.
        envelope: payload and signature.
        signer: the trusted key.
        statement: the payload, read.
        steps: the steps that passed.
    """

    file: PassportFile
    envelope: Envelope
    signer: Candidate
    statement: Statement
    steps: tuple[Step, ...]

    @property
    def passport_id(self) -> Digest:
        """The SHA-256 of the payload."""
        return canonical.digest(self.envelope.payload)

    @property
    def predicate(self) -> Predicate:
        """What the statement says."""
        return self.statement.predicate


class RefusedPassportError(CertkitError):
    """A passport that one of the first five steps refuses, or does not read: other rules.

    Attributes:
        steps: those that were taken; the last of them failed, or was skipped for other rules.
        passport_id: None where the envelope is malformed.
    """

    def __init__(
        self,
        step: StepId,
        cause: CertkitError,
        *,
        before: tuple[Step, ...] = (),
        passport_id: Digest | None = None,
    ) -> None:
        super().__init__(cause.code, f"{step}: {cause.message}", where=cause.where, hint=cause.hint)
        other_rules = isinstance(cause, OtherRulesError)
        last = skipped(step, cause) if other_rules else failed(step, cause)
        self.steps = (*before, last)
        self.exit_code = Exit.INSUFFICIENT if other_rules else last.exit_code
        self.passport_id = passport_id


def open_signed(data: bytes, trust: Trust) -> SignedPassport:
    """Return a passport that a key or identity of the policy signed and that agrees with itself.

    Args:
        data: the file.
        trust: the verifier's policy.

    Raises:
        RefusedPassportError: names the step: parse, envelope, signature, types or judgement.
    """
    steps: list[Step] = []
    envelope = None
    try:
        file = sealed.parse_file(data)
        steps.append(passed("parse", "strict JSON in the form of a Sigstore bundle"))
        envelope = sealed.parse_envelope(file.dsse_envelope, payload_type=sealed.PAYLOAD_TYPE)
        steps.append(passed("envelope", "one signature over an in-toto statement"))
        signer = _signature(file, envelope, trust)
        named = signer.identity
        by = f"signed in as {named.identity} at {named.issuer}" if named else f"key {signer.id}"
        steps.append(passed("signature", f"by {quoted(signer.issuer)}, {by}"))
        statement = _statement(envelope.payload, signer)
        steps.append(passed("types", "an agent passport whose parts agree"))
        check_judgement(statement.predicate)
        steps.append(passed("judgement", "the signed assessment is what the signed summary gives"))
    except CertkitError as error:
        passport_id = canonical.digest(envelope.payload) if envelope else None
        step = STEPS[len(steps)]
        raise RefusedPassportError(step, error, before=tuple(steps), passport_id=passport_id) from None
    return SignedPassport(
        file=file, envelope=envelope, signer=signer, statement=statement, steps=tuple(steps)
    )


def signer_of(data: bytes, trust: Trust) -> Candidate:
    """Return the trusted key that signed a passport file; of the payload nothing is read.

    Raises:
        CertkitError: as steps 1 to 3 refuse the file.
    """
    file = sealed.parse_file(data)
    envelope = sealed.parse_envelope(file.dsse_envelope, payload_type=sealed.PAYLOAD_TYPE)
    return _signature(file, envelope, trust)


def open_unsigned(data: bytes, where: str | None = None) -> tuple[Passport, Predicate]:
    """Return a passport whose judgement follows from its summary, whoever signed it.

    Args:
        data: the file.
        where: what errors call it.

    Raises:
        CertkitError: it is none, or its signed judgement is another than its summary gives.
    """
    passport = read_passport(data, where)
    try:
        predicate = passport.unverified_statement().predicate
        check_judgement(predicate)
    except CertkitError as error:
        error.where = where or error.where
        raise
    return passport, predicate


def _signature(file: PassportFile, envelope: Envelope, trust: Trust) -> Candidate:
    """Return the trusted key that signed the envelope.

    Raises:
        NegativeError: ``passport.untrusted-issuer`` where no trusted key or identity comes into question,
            ``dsse.signature`` where the key that the hint selects did not sign, ``passport.certificate``
            where a certificate names a trusted identity and does not hold.
    """
    if file.verification_material.keyless:
        return _by_certificate(file, envelope, trust)
    candidates, hint = trust.candidates(), file.verification_material.hint
    if hint is not None:
        candidates = tuple(item for item in candidates if item.hint == hint)
    if not candidates:
        raise NegativeError(UNTRUSTED, "the passport is signed by a key that you do not trust")
    message = sealed.pae(envelope.payload_type, envelope.payload)
    for item in candidates:
        if sealed.is_signature(envelope.signature, message, item.key):
            return item
    if hint is not None:
        raise NegativeError(
            "dsse.signature", "The signature does not match: the file was changed, or another key signed it"
        )
    raise NegativeError(UNTRUSTED, "no key that you trust made the signature")


def _by_certificate(file: PassportFile, envelope: Envelope, trust: Trust) -> Candidate:
    """Return the key of a certificate that names a trusted identity, once it is verified."""
    trusted = [(issuer.name, identity) for issuer in trust.issuers for identity in issuer.identities]
    if not trusted:
        raise NegativeError(UNTRUSTED, "signed with a certificate, and you trust keys only")
    certificate = file.verification_material.certificate
    if trust.trusted_root is None or not certificate:
        lacking = (
            "your policy has no trusted root" if trust.trusted_root is None else "it is not a single one"
        )
        raise NegativeError(UNTRUSTED, f"signed with a certificate, and {lacking}")
    from certkit.passport import keyless  # noqa: PLC0415 - only where a certificate is met

    named = keyless.read(certificate.raw_bytes)
    for name, identity in trusted:
        if named.matches(identity.identity, identity.issuer):
            certified(file, envelope, trust).verify()
            return Candidate(
                issuer=name,
                key=named.key,
                id=keys.key_id(named.key),
                hint=keys.hint(named.key),
                identity=identity,
            )
    raise NegativeError(UNTRUSTED, f"signed in as {named}, whom your policy does not know")


def certified(file: PassportFile, envelope: Envelope, trust: Trust) -> Certified:
    """Return the passport as `sigstore` verifies it, with the content written as `envelope` was read."""
    from certkit.passport.keyless import Certified  # noqa: PLC0415 - only where a certificate is met

    written = {
        "payload": sealed.encode(envelope.payload),
        "payloadType": envelope.payload_type,
        "signatures": [{"sig": sealed.encode(envelope.signature)}],
    }
    return Certified(
        sealed.bundle(to_builtins(file.verification_material), written),
        file.verification_material,
        envelope.signature,
        trust.trusted_root or {},
        lambda verifier, bundle, policy: verifier.verify_dsse(bundle, policy),
    )


def _statement(data: bytes, signer: Candidate) -> Statement:
    """Return the statement in a payload that `signer` signed, which must name that key as its issuer's."""
    statement = read_statement(data)
    stated = statement.predicate.issuer.key_id
    if stated != signer.id:
        raise NegativeError(
            "passport.statement", f"names key {stated} as its issuer's, and {signer.id} signed it"
        )
    return statement


def check_judgement(predicate: Predicate) -> None:
    """Judge the signed summary again, whoever signed it.

    Raises:
        NegativeError: ``passport.judgement-differs`` names the first difference.
    """
    try:
        judged = assess(predicate.summary, predicate.facts, predicate.profile, predicate.question)
    except CertkitError as error:
        raise NegativeError("passport.judgement-differs", error.message) from None
    signed = predicate.validity.retest_triggers
    mismatch = judgement_difference(predicate.assessment, judged) or difference(
        {"validity": {"retest_triggers": signed}},
        {"validity": {"retest_triggers": triggers_of(judged)}},
        "the tier gives",
    )
    if mismatch:
        raise NegativeError("passport.judgement-differs", mismatch)
