"""Opening a passport: by its form alone, or with the signature of an issuer of a trust policy.

    parse(data).passport_id               # the form holds; who signed is not known
    parse(data).unverified_statement()
    signed = open_signed(data, trust)     # steps 1 to 4 of a verification passed, or `RefusedPassportError`
    signed.signer.issuer, signed.statement

Verification, admission to a registry and audits all open passports here. Nothing of the payload is read
before the signature is verified. A key inside the passport is never trusted: its hint only selects
among the keys of the policy. Whether the passport is valid at a time is for `checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit import canonical
from certkit.errors import CertkitError, NegativeError
from certkit.passport import dsse, keys, payload, sealed
from certkit.passport.outcome import STEPS, UNTRUSTED, Step, StepId, failed, passed
from certkit.passport.trust import Candidate
from certkit.text import quoted

if TYPE_CHECKING:
    from certkit.canonical import Digest
    from certkit.passport.keyless import Certified
    from certkit.passport.sealed import Sealed
    from certkit.passport.statement import Statement
    from certkit.passport.trust import Trust

OPENED: Final = STEPS[:4]
"""The steps of a verification that are taken here."""


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

    file: Sealed
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


def parse(data: bytes) -> Passport:
    """Return the passport in the bytes of a file, its form checked and its signature not.

    Raises `InputError` with a ``json.*``, ``passport.form`` or ``dsse.*`` code.
    """
    envelope = dsse.parse(sealed.parse(data).envelope, payload_type=sealed.PAYLOAD_TYPE)
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
        envelope = dsse.parse(file.envelope, payload_type=sealed.PAYLOAD_TYPE)
        steps.append(passed("envelope", "one signature over an in-toto statement"))
        signer = _signature(file, envelope, trust)
        steps.append(passed("signature", _signed_by(signer)))
        statement = _statement(envelope.payload, signer)
        steps.append(passed("types", "an agent passport that agrees with itself"))
    except CertkitError as error:
        passport_id = canonical.digest(envelope.payload) if envelope else None
        step = OPENED[len(steps)]
        raise RefusedPassportError(step, error, before=tuple(steps), passport_id=passport_id) from None
    return Signed(file=file, envelope=envelope, signer=signer, statement=statement, steps=tuple(steps))


def _signed_by(signer: Candidate) -> str:
    if signer.identity is None:
        return f"by {quoted(signer.issuer)}, key {signer.id}"
    return f"by {quoted(signer.issuer)}, signed in as {signer.identity.identity} at {signer.identity.issuer}"


def _signature(seal: Sealed, envelope: dsse.Envelope, trust: Trust) -> Candidate:
    """Return the trusted key that signed the envelope.

    Raises `NegativeError` ``passport.untrusted-issuer`` where no trusted key or identity comes into question,
    ``dsse.signature`` where the one that the hint selects did not sign, and ``passport.certificate`` where
    a certificate names a trusted identity and does not hold.
    """
    if seal.material.keyless:
        return _by_certificate(seal, envelope, trust)
    candidates, hint = trust.candidates(), seal.material.hint
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


def _by_certificate(seal: Sealed, envelope: dsse.Envelope, trust: Trust) -> Candidate:
    """Return the key of a certificate that names a trusted identity, once it is verified."""
    trusted = [(issuer.name, identity) for issuer in trust.issuers for identity in issuer.identities]
    if not trusted:
        raise NegativeError(UNTRUSTED, "signed with a certificate, and this policy trusts keys")
    if trust.trusted_root is None or seal.material.certificate is None:
        lacking = "the policy has no trusted root" if trust.trusted_root is None else "it is not a single one"
        raise NegativeError(UNTRUSTED, f"signed with a certificate, and {lacking}")
    from certkit.passport import keyless  # noqa: PLC0415 - only where a certificate is met

    named = keyless.read(seal.material.certificate)
    for name, identity in trusted:
        if named.matches(identity.identity, identity.issuer):
            certified(seal, envelope, trust).verify()
            return Candidate(
                issuer=name,
                key=named.key,
                id=keys.key_id(named.key),
                hint=keys.hint(named.key),
                identity=identity,
            )
    raise NegativeError(UNTRUSTED, f"signed in as {named}, whom the policy does not know")


def certified(seal: Sealed, envelope: dsse.Envelope, trust: Trust) -> Certified:
    """Return the passport as `sigstore` verifies it, with the content written as `envelope` was read."""
    from certkit.passport.keyless import Certified  # noqa: PLC0415 - only where a certificate is met

    written = {
        "payload": dsse.encode(envelope.payload),
        "payloadType": envelope.payload_type,
        "signatures": [{"sig": dsse.encode(envelope.signature)}],
    }
    return Certified(
        sealed.bundle(seal.material.document, written),
        seal.material,
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
