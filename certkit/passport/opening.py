"""Opening a passport, and the result of its verification: eleven steps, one verdict, one exit code.

    parse(data).passport_id               # the form holds; who signed is not known
    parse(data).unverified_statement()
    signed = open_signed(data, trust)     # steps 1 to 4 of a verification passed, or `RefusedPassportError`
    signed.signer.issuer, signed.statement

Verification, admission to a registry and audits all open passports here. Nothing of the payload is read
before the signature is verified. A key inside the passport is never trusted: its hint only selects
among the keys of the policy. Whether the passport is valid at a time is for `checks`.

Text, JSON and exit code are all taken from `Verification`. A step that failed is never outweighed; one that
was skipped is never counted as passed.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, structs, to_builtins

from certkit.ground import canonical
from certkit.ground.canonical import Digest
from certkit.ground.document import Document, Part, Time, fill
from certkit.ground.errors import CertkitError, Exit, NegativeError
from certkit.ground.text import quoted
from certkit.passport import dsse, keys, payload, sealed
from certkit.passport.sealed import PassportFile
from certkit.passport.statement import Agent, Challenge, Statement
from certkit.passport.trust import Candidate, Trust

if TYPE_CHECKING:
    from certkit.passport.keyless import Certified

StepId = Literal[
    "parse",
    "envelope",
    "signature",
    "types",
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
    "subject": Exit.NEGATIVE,
    "validity": Exit.ENDED,
    "registry": Exit.MISMATCH,
    "status": Exit.ENDED,
    "evidence": Exit.MISMATCH,
    "replay": Exit.MISMATCH,
    "policy": Exit.UNTRUSTED,
}


class Step(Struct, frozen=True, kw_only=True):
    """A step: whether it passed, and in words the result or why it was not taken."""

    number: int
    id: StepId
    status: Literal["passed", "failed", "skipped"]
    code: str | None
    detail: str

    @property
    def exit_code(self) -> Exit:
        """The exit code of a verification that this step rejects."""
        return Exit.UNTRUSTED if self.code == UNTRUSTED else _EXITS[self.id]


def passed(name: StepId, detail: str) -> Step:
    """Return a step that passed."""
    return Step(number=STEPS.index(name) + 1, id=name, status="passed", code=None, detail=detail)


def failed(name: StepId, error: CertkitError) -> Step:
    """Return a step that failed."""
    return structs.replace(passed(name, str(error)), status="failed", code=error.code)


def skipped(name: StepId, code: str, detail: str) -> Step:
    """Return a step that was not taken."""
    return structs.replace(passed(name, detail), status="skipped", code=code)


class Profile(Struct, frozen=True, kw_only=True):
    """The profile that the claim was judged by; `known` tells who knows it by its digest, null for nobody."""

    id: str
    digest: str
    reading: str
    known: Literal["certkit", "policy"] | None


class SignedBy(Struct, frozen=True, kw_only=True):
    """The issuer who signed, by the name in the verifier's policy and by the name that the issuer states."""

    name: str
    stated_name: str
    key_id: str


class Claim(Part, frozen=True, kw_only=True):
    """The claim of a passport whose signature holds. The verdict tells whether it is accepted."""

    claim: str
    agent: Agent
    tier: int
    readings: dict[str, int]
    decides: str
    profile: Profile
    domains: tuple[str, ...]
    origin: str
    issuer: SignedBy
    not_before: Time
    not_after: Time
    challenges: tuple[Challenge, ...]


class Verification(Struct, frozen=True, kw_only=True):
    """The result of `certkit.passport.verification.verify`.

    `claim` and `statement` are None unless the signature held and the payload is a passport.
    `at` is the time of verification, and `not_checked` says in words what was not verified.
    """

    at: datetime
    passport_id: str | None
    verdict: Literal["verified", "rejected", "unverifiable"]
    steps: tuple[Step, ...]
    not_checked: tuple[str, ...]
    claim: Claim | None
    statement: Statement | None

    @property
    def deciding(self) -> Step | None:
        """The first step that failed, None where none did."""
        return next((step for step in self.steps if step.status == "failed"), None)

    @property
    def contested(self) -> Step | None:
        """The step that left the verdict open because the tier is contested, None where that is not why."""
        steps = self.steps if self.verdict == "unverifiable" else ()
        return next((step for step in steps if step.code == "passport.contested"), None)

    @property
    def exit_code(self) -> Exit:
        """0 verified; that of the first failed step where rejected; 4 unverifiable."""
        if self.deciding is not None:
            return self.deciding.exit_code
        return Exit.OK if self.verdict == "verified" else Exit.INSUFFICIENT

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit verify --json`` prints."""
        at, claim = self.at.replace(microsecond=0), self.claim or UNSET
        return fill(VerificationDocument, self, at=at, claim=claim).to_dict()


class VerificationDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:verification:v1"):
    """The verification of a passport, as certkit verify prints it."""

    at: Annotated[Time, Meta(description="the time that it speaks of")]
    passport_id: Annotated[str, Meta(description="SHA-256 of the payload")] | None
    verdict: Literal["verified", "rejected", "unverifiable"]
    exit_code: int
    steps: Annotated[tuple[Step, ...], Meta(min_length=len(STEPS), max_length=len(STEPS))]
    not_checked: tuple[str, ...]
    claim: Annotated[Claim, Meta(description="present only where the signature held")] | UnsetType = UNSET


class Passport(Struct, frozen=True, kw_only=True):
    """A passport file and the payload in it.

    `document` is the bytes of the file. Whether the signature holds is not known here; `verify` tells.
    """

    payload: bytes
    document: bytes

    @property
    def passport_id(self) -> Digest:
        """The SHA-256 of the payload: signatures and white space can be written in other ways."""
        return canonical.digest(self.payload)

    def to_json(self) -> bytes:
        """Return the bytes of ``passport.json``."""
        return self.document

    def unverified_statement(self) -> Statement:
        """Return the statement, whoever signed it; raises as `certkit.passport.payload.read`."""
        return payload.read(self.payload)


class Signed(Struct, frozen=True, kw_only=True, eq=False):
    """A passport that a trusted issuer signed: who signed, the statement, and the steps that showed it."""

    file: PassportFile
    envelope: dsse.Envelope
    signer: Candidate
    statement: Statement
    steps: tuple[Step, ...]

    @property
    def passport_id(self) -> Digest:
        """The SHA-256 of the payload."""
        return canonical.digest(self.envelope.payload)


class RefusedPassportError(CertkitError):
    """A passport that a step of its verification refuses; its exit code is that of the step.

    `steps` were taken and the last of them failed; `passport_id` is None where the envelope is malformed.
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
        self.steps = (*before, failed(step, cause))
        self.exit_code = self.steps[-1].exit_code
        self.passport_id = passport_id


def parse(data: bytes, where: str | None = None) -> Passport:
    """Return the passport in the bytes of a file, which errors call `where`; its signature is not checked.

    Raises `InputError` with a ``json.*``, ``passport.form`` or ``dsse.*`` code.
    """
    try:
        envelope = dsse.parse(sealed.parse(data).dsse_envelope, payload_type=sealed.PAYLOAD_TYPE)
    except CertkitError as error:
        error.where = where or error.where
        raise
    return Passport(payload=envelope.payload, document=data)


def open_signed(data: bytes, trust: Trust) -> Signed:
    """Return a passport that a key or identity of the policy signed and that agrees with itself.

    Raises `RefusedPassportError`, which tells the step: parse, envelope, signature or types.
    """
    steps: list[Step] = []
    envelope = None
    try:
        file = sealed.parse(data)
        steps.append(passed("parse", "strict JSON in the form of a Sigstore bundle"))
        envelope = dsse.parse(file.dsse_envelope, payload_type=sealed.PAYLOAD_TYPE)
        steps.append(passed("envelope", "one signature over an in-toto statement"))
        signer = _signature(file, envelope, trust)
        named = signer.identity
        by = f"signed in as {named.identity} at {named.issuer}" if named else f"key {signer.id}"
        steps.append(passed("signature", f"by {quoted(signer.issuer)}, {by}"))
        statement = _statement(envelope.payload, signer)
        steps.append(passed("types", "an agent passport that agrees with itself"))
    except CertkitError as error:
        passport_id = canonical.digest(envelope.payload) if envelope else None
        step = STEPS[len(steps)]
        raise RefusedPassportError(step, error, before=tuple(steps), passport_id=passport_id) from None
    return Signed(file=file, envelope=envelope, signer=signer, statement=statement, steps=tuple(steps))


def _signature(file: PassportFile, envelope: dsse.Envelope, trust: Trust) -> Candidate:
    """Return the trusted key that signed the envelope.

    Raises `NegativeError` ``passport.untrusted-issuer`` where no trusted key or identity comes into question,
    ``dsse.signature`` where the one that the hint selects did not sign, and ``passport.certificate`` where
    a certificate names a trusted identity and does not hold.
    """
    if file.verification_material.keyless:
        return _by_certificate(file, envelope, trust)
    candidates, hint = trust.candidates(), file.verification_material.hint
    if hint is not None:
        candidates = tuple(item for item in candidates if item.hint == hint)
    if not candidates:
        raise NegativeError(UNTRUSTED, "no trusted key has the id that the passport hints at")
    message = dsse.pae(envelope.payload_type, envelope.payload)
    for item in candidates:
        if dsse.is_signature(envelope.signature, message, item.key):
            return item
    if hint is not None:
        raise NegativeError("dsse.signature", f"not a signature by {candidates[0].issuer}'s key over this")
    raise NegativeError(UNTRUSTED, "no trusted key made the signature")


def _by_certificate(file: PassportFile, envelope: dsse.Envelope, trust: Trust) -> Candidate:
    """Return the key of a certificate that names a trusted identity, once it is verified."""
    trusted = [(issuer.name, identity) for issuer in trust.issuers for identity in issuer.identities]
    if not trusted:
        raise NegativeError(UNTRUSTED, "signed with a certificate, and this policy trusts keys")
    certificate = file.verification_material.certificate
    if trust.trusted_root is None or not certificate:
        lacking = "the policy has no trusted root" if trust.trusted_root is None else "it is not a single one"
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
    raise NegativeError(UNTRUSTED, f"signed in as {named}, whom the policy does not know")


def certified(file: PassportFile, envelope: dsse.Envelope, trust: Trust) -> "Certified":
    """Return the passport as `sigstore` verifies it, with the content written as `envelope` was read."""
    from certkit.passport.keyless import Certified  # noqa: PLC0415 - only where a certificate is met

    written = {
        "payload": dsse.encode(envelope.payload),
        "payloadType": envelope.payload_type,
        "signatures": [{"sig": dsse.encode(envelope.signature)}],
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
    statement = payload.read(data)
    stated = statement.predicate.issuer.key_id
    if stated != signer.id:
        raise NegativeError(
            "passport.statement", f"names key {stated} as its issuer's, signed by {signer.id}"
        )
    return statement
