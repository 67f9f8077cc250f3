"""The trust policy, ``trust.json``: whose signatures count, which logs, and what must be checked.

    trust = parse(data, "trust.json")
    trust.candidates()                    # every trusted key with its issuer and window

Only the verifier writes a policy: keys found in a passport or a registry are never added to it. `parse`
refuses unknown JSON members, because a misspelt requirement would silently require nothing.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import msgspec
from msgspec import Meta, Struct, structs

from certkit.ground import canonical, files
from certkit.ground.canonical import Digest
from certkit.ground.document import END, Part, Time
from certkit.ground.document import Digest as DigestText
from certkit.ground.errors import CertkitError, InputError, UntrustedError
from certkit.passport import keys, trusted_root
from certkit.passport.keys import PublicKey
from certkit.passport.trusted_root import KINDS, Kind

TRUST_SCHEMA: Final = "urn:certkit:trust:v1"
MAX_POLICY: Final = 4 * 1024 * 1024
STATUS_AGE: Final = timedelta(days=7)

Requirement = Literal["registry", "status", "timestamp", "evidence", "replay"]

_LONGEST_VALIDITY: Final = timedelta(days=366)
_Text = Annotated[str, Meta(min_length=1, max_length=512)]
_VKEY: Final = r"^[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+={0,2}" + END
_IS_VKEY: Final = "a verifier key (vkey), as 'certkit registry show DIR' prints that of a log"
_Vkey = Annotated[str, Meta(pattern=_VKEY, max_length=1024, description="C2SP signed-note verifier key")]


class TrustedKey(Part, frozen=True, kw_only=True):
    """A public key in PEM, and the period in which signatures by it count; open ends where null."""

    pem: Annotated[str, Meta(max_length=keys.MAX_PEM)]
    not_before: Time | None = None
    not_after: Time | None = None


class Identity(Part, frozen=True, kw_only=True):
    """A keyless signer: who signed in, and where."""

    identity: _Text
    issuer: _Text


class TrustedIssuer(Part, frozen=True, kw_only=True):
    """An issuer by the verifier's own name for it."""

    name: _Text
    keys: tuple[TrustedKey, ...] = ()
    identities: tuple[Identity, ...] = ()


class Witnesses(Part, frozen=True, kw_only=True):
    """Witnesses of the registry, `k` of which must have signed a checkpoint."""

    k: Annotated[int, Meta(ge=0, le=1000)] = 0
    keys: tuple[_Vkey, ...] = ()


class Candidate(Struct, frozen=True, kw_only=True):
    """A key that may have signed: its issuer, and when signatures by it count.

    With an `identity` it is the key of a certificate, and counts for this one signature.
    """

    issuer: str
    key: PublicKey
    id: Digest
    hint: str
    not_before: datetime | None = None
    not_after: datetime | None = None
    identity: Identity | None = None


class Trust(Part, frozen=True, kw_only=True, rename={"schema_": "schema"}):
    """A trust policy (``urn:certkit:trust:v1``).

    Attributes:
        issuers: whose signatures count.
        logs: verifier keys of the registries that are asked.
        witnesses: who must have cosigned a checkpoint.
        require: steps that must not be skipped.
        profiles: digests of the profiles that are accepted; any where empty.
        min_tier: the lowest tier that is accepted.
        reading: the reading whose tier is compared, whatever the profile decides by.
        domains: domains that a passport must cover.
        accept_specimens: take simulated evidence.
        accept_contested: take a tier against which a serious finding is open.
        accept_answered: take a tier against which serious findings are answered.
        count_provisional: compare the tier with provisional rows counted.
        max_status_age: how old a status may be.
        trusted_root: a Sigstore TrustedRoot, the authorities and logs behind certificates and timestamps;
            without it none counts.
    """

    schema_: Literal["urn:certkit:trust:v1"] = TRUST_SCHEMA
    issuers: tuple[TrustedIssuer, ...] = ()
    logs: tuple[_Vkey, ...] = ()
    witnesses: Witnesses = Witnesses()
    require: Annotated[tuple[Requirement, ...], Meta(description="steps that must not be skipped")] = ()
    profiles: tuple[DigestText, ...] = ()
    min_tier: Annotated[int, Meta(ge=0, le=9)] | None = None
    reading: Literal["table", "bounded"] | None = None
    domains: tuple[_Text, ...] = ()
    accept_specimens: Annotated[bool, Meta(description="accept simulated evidence; default false")] = False
    accept_contested: Annotated[bool, Meta(description="accept open serious findings; default false")] = False
    accept_answered: Annotated[bool, Meta(description="accept answered serious ones; default true")] = True
    count_provisional: Annotated[bool, Meta(description="count provisional rows; default false")] = False
    max_status_age: Annotated[timedelta, Meta(description="of a status; default P7D")] = STATUS_AGE
    trusted_root: dict[str, Any] | None = None

    def candidates(self) -> tuple[Candidate, ...]:
        """Return every trusted key with its issuer."""
        return tuple(
            Candidate(
                issuer=issuer.name,
                key=(parsed := _parsed(item.pem, f"issuer {issuer.name}"))[0],
                id=parsed[1],
                hint=parsed[2],
                not_before=item.not_before,
                not_after=item.not_after,
            )
            for issuer in self.issuers
            for item in issuer.keys
        )

    def with_issuer(self, name: str, signer: TrustedKey | Identity) -> Self:
        """Return the policy with a key or a keyless signer added to the first issuer of that name."""
        names = [issuer.name for issuer in self.issuers]
        place = names.index(name) if name in names else len(names)
        known = self.issuers[place] if name in names else TrustedIssuer(name=name)
        if isinstance(signer, TrustedKey):
            known = structs.replace(known, keys=(*known.keys, signer))
        else:
            known = structs.replace(known, identities=(*known.identities, signer))
        issuers = (*self.issuers[:place], known, *self.issuers[place + 1 :])
        return structs.replace(self, issuers=issuers)

    def with_root(self, root: dict[str, Any]) -> Self:
        """Return the policy with another trusted root.

        Raises:
            UntrustedError: ``trust.rollback`` where the new one forgets an end that this one knows.
        """
        lost = trusted_root.rolled_back(self.trusted_root, root) if self.trusted_root else None
        if lost is not None:
            raise UntrustedError(
                "trust.rollback",
                f"older than the trusted root in the policy: {lost} in it",
                hint="to go back on purpose, write a new policy: certkit trust add --trust NEW",
            )
        return structs.replace(self, trusted_root=root)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as JSON values."""
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return document

    def to_json(self) -> bytes:
        """Return the policy as the bytes of ``trust.json``."""
        return canonical.pretty(self.to_dict()).encode()


@lru_cache(maxsize=1024)
def _parsed(pem: str, where: str) -> tuple[PublicKey, Digest, str]:
    """Return the key in PEM, its id and its hint; an audit asks for the same ones once per passport."""
    key = keys.parse_public(pem.encode(), where=where)
    return key, keys.key_id(key), keys.hint(key)


def read_policy(path: Path) -> Trust:
    """Return the policy in a file; raises as `parse` and `certkit.ground.files.read`."""
    return parse(files.read(path, limit=MAX_POLICY), str(path))


def parse(data: bytes, where: str) -> Trust:
    """Return the policy in the bytes of a ``trust.json``; `where` names it in errors.

    Raises:
        InputError: ``trust.invalid`` or a ``json.*`` code.
    """
    document = canonical.loads(data, where=where)
    if not isinstance(document, dict) or document.get("schema") != TRUST_SCHEMA:
        raise InputError("trust.invalid", f'expected an object with "schema": "{TRUST_SCHEMA}"', where=where)
    try:
        trust = msgspec.convert(document, Trust)
        candidates = trust.candidates()
        _check_logs(trust)
        if trust.trusted_root is not None:
            trusted_root.check(trust.trusted_root, "trusted_root")
    except msgspec.ValidationError as error:
        message = str(error).replace(f"`str` matching regex {_VKEY!r}", _IS_VKEY)
        raise InputError("trust.invalid", message[:1].lower() + message[1:], where=where) from None
    except CertkitError as error:
        raise InputError("trust.invalid", f"{error}", where=where, hint=error.hint) from None
    _check(trust, candidates, where)
    return trust


def _check_logs(trust: Trust) -> None:
    """Raise `InputError` unless every key of a log or witness is one, and no log is a witness."""
    if trust.logs or trust.witnesses.keys:
        from certkit.tlog.checkpoint import Quorum  # noqa: PLC0415 - the same
        from certkit.tlog.note import VerifierKey  # noqa: PLC0415 - most policies name none

        logs = {(key := VerifierKey.parse(text)).public: key.name for text in trust.logs}
        for witness in Quorum.of(trust.witnesses.k, trust.witnesses.keys).keys:
            if log := logs.get(witness.public):
                raise InputError(
                    "trust.invalid",
                    f"the witness {witness.name!r} has a key of the log {log}",
                    hint="remove this witness, or give the witness's own verifier key",
                )


def _check(trust: Trust, candidates: tuple[Candidate, ...], where: str) -> None:
    who = [f"{item.identity} at {item.issuer}" for issuer in trust.issuers for item in issuer.identities]
    for what, names in (("key", [str(candidate.id) for candidate in candidates]), ("identity", who)):
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InputError("trust.invalid", f"the same {what} twice: {repeated[0]}", where=where)
    for key in candidates:
        if key.not_before is not None and key.not_after is not None and key.not_after < key.not_before:
            raise InputError("trust.invalid", f"key {key.id}: its window ends before it begins", where=where)
    if (k := trust.witnesses.k) > (count := len(trust.witnesses.keys)):
        raise InputError("trust.invalid", f"witnesses: {k} of {count} cannot be had", where=where)
    if trust.max_status_age <= timedelta(0):
        raise InputError("trust.invalid", "max_status_age is not positive", where=where)


def cautions(policy: Trust) -> Iterator[str]:
    """Yield what a policy lets pass that a careful verifier would not, one sentence each."""
    if not policy.profiles:
        yield "any profile is accepted: a passport may be judged by a table that asks for little"
    if policy.reading != "bounded":
        yield "the table reading may decide: a tier then rests on point estimates, however few the tasks"
    if "replay" not in policy.require:
        yield "no replay is required: a finding that only the records show may be left out"
    if policy.max_status_age > _LONGEST_VALIDITY:
        yield "a status of any age counts: it may be older than a revocation"
    if policy.trusted_root is not None:
        logs: tuple[Kind, ...] = ("tlogs", "ctlogs")
        lacking = [KINDS[kind] for kind in logs if not policy.trusted_root.get(kind)]
        if lacking:
            yield f"the trusted root names no {' and no '.join(lacking)}: it verifies no certificate"
