"""Entries: what is hashed into the log, one statement each, signed by whoever submitted it.

An entry is a DSSE envelope. Its payload says which lineage (`subject`) the entry is about, which passport,
what that passport claims, and which entry came before it in the same lineage (`prev`). Envelope and payload
are canonical JSON (RFC 8785) of just these fields; other bytes are no entry, so a signed statement has one
form. The bytes that are stored are the bytes that are hashed.

    data = write(Entry(type="passport", …), submitter)
    entry = read(data)                       # form only
    entry.verify(trusted[entry.body.submitter])

Each type of entry has a class for its claims below. `facts_of` is the only place of the registry that reads a
passport's predicate; everything else reads `PassportFacts`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from certkit.ground import canonical
from certkit.ground.document import END, Digest, Part, Share, Tier, fill
from certkit.ground.document import Hash as Hex
from certkit.ground.errors import CertkitError, InputError, UsageError
from certkit.passport import envelope as dsse
from certkit.passport.logs import ENTRY_TYPE
from certkit.passport.passport import EPOCH, last_run, read_passport
from certkit.tlog.tree import Hash

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from certkit.assessment.assessment import Row
    from certkit.assessment.evaluation import Evaluation
    from certkit.comparison.drift import Drift
    from certkit.passport.keys import PrivateKey, PublicKey
    from certkit.passport.passport import Statement

PAYLOAD_TYPE: Final = ENTRY_TYPE
LIMIT: Final = 4096
"""The most bytes of an entry that is written."""
HARD_LIMIT: Final = 65_535
"""The most bytes of an entry that is read: an entry bundle of C2SP tlog-tiles holds no longer one."""

_Count = Annotated[int, Meta(ge=0, le=canonical.MAX_INTEGER)]
_Time = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z" + END)]
_Name = Annotated[str, Meta(min_length=1, max_length=1025)]  # a provider and a name of 512 each
_Text = Annotated[str, Meta(min_length=1, max_length=2048)]
_Vkey = Annotated[str, Meta(min_length=1, max_length=1024)]

Type = Literal["passport", "supersede", "revoke", "key", "plan"]
Reason = Literal[
    "evidence-false",
    "operation-below-threshold",
    "issued-in-error",
    "key-compromise",
    "component-change",
    "agent-withdrawn",
]
"""Why a passport was revoked."""

_GRAVITY: Final[dict[Reason, int]] = {
    "evidence-false": 3,
    "operation-below-threshold": 3,
    "issued-in-error": 2,
    "key-compromise": 1,
    "component-change": 1,
    "agent-withdrawn": 0,
}


def graver(reason: Reason, than: Reason) -> bool:
    """Tell whether one reason of a revocation is graver than another; several may weigh the same."""
    return _GRAVITY[reason] > _GRAVITY[than]


class _Passport(Part, frozen=True, kw_only=True):
    """The members that a passport and its entry both state; times are UTC in the form of RFC 3339.

    Attributes:
        passport_id: SHA-256 of the passport's payload.
        agent: Digest of the agent's identity in this version.
        evidence: Digest of the bundle, or of the pooled bundles.
        tier: Tier that the issuer attests, 0 for none.
        profile: Digest of the profile.
        not_before: Begin of the validity.
        not_after: End of the validity.
        supersedes: Id of the passport that this one replaces.
    """

    passport_id: Digest
    agent: Digest
    evidence: Digest
    tier: Tier
    profile: Digest
    not_before: _Time
    not_after: _Time
    supersedes: Digest | None


class Limit(Part, frozen=True, kw_only=True):
    """The lower confidence limit of r_op, at the tier that was attained or else at the lowest one.

    Attributes:
        value: The limit.
        confidence: Its one-sided confidence level.
        k: Number of tasks that it rests on.
    """

    value: Share
    confidence: Share
    k: Annotated[int, Meta(ge=0)] | None


class PassportFacts(_Passport, frozen=True, kw_only=True):
    """What a passport says of itself, as far as the registry reads it.

    Attributes:
        lineage: ``provider/name`` of the agent, ``-`` for no provider.
        attempt: Attempt that the passport declares.
        issuer: The policy's name for who signed; None where no policy was asked.
        bundles: Digests of the bundles that its evidence pools.
        profile_id: Name of the profile.
        reading: Reading that decides, as the profile says.
        status: Status of the verdict, such as ``met`` or ``contested``.
        r_op: Success rate over all fault runs.
        limit: Lower confidence limit of r_op.
        last_run: Time of the last run of the evidence.
        plan: Digest of the trial's plan that it names.
        supersedes: Id of the passport that it replaces.
    """

    lineage: _Name
    attempt: _Count | None = None
    supersedes: Digest | None = None
    issuer: _Name | None = None
    bundles: tuple[Digest, ...] = ()
    profile_id: str | None = None
    reading: str | None = None
    status: str | None = None
    r_op: float | None = None
    limit: Limit | None = None
    last_run: datetime | None = None
    plan: Digest | None = None


Check = Callable[[bytes, datetime], PassportFacts]
"""Verifies the bytes of a passport logged at a time, returns its facts; `CertkitError` refuses it."""


class Claims(_Passport, frozen=True, kw_only=True):
    """The claims of a ``passport`` entry.

    Attributes:
        attempt: Attempt that the log counts: 1 for the first evidence of this lineage under this profile. It
            counts different evidence, so a passport that is issued again from the same keeps its number.
    """

    attempt: Annotated[int, Meta(ge=1, le=canonical.MAX_INTEGER)]

    @classmethod
    def of(cls, facts: PassportFacts, attempt: int) -> Claims:
        """Return the claims that an entry about a passport with these facts makes."""
        return fill(cls, facts, attempt=attempt)


class Supersession(Part, frozen=True, kw_only=True):
    """The claims of a ``supersede`` entry.

    Attributes:
        passport_id: The passport that ends.
        by: The passport that replaces it.
    """

    passport_id: Digest
    by: Digest


class Revocation(Part, frozen=True, kw_only=True):
    """The claims of a ``revoke`` entry.

    Attributes:
        passport_id: The passport that ends.
        reason: Why, from a closed list.
        detail: Why, in words.
    """

    passport_id: Digest
    reason: Reason
    detail: _Text | None = None


class KeyChange(Part, frozen=True, kw_only=True):
    """The claims of a ``key`` entry, which the old key signs; its subject is the log's origin.

    Attributes:
        old: Verifier key of the log until now.
        new: Verifier key that signs every later checkpoint.
    """

    old: _Vkey
    new: _Vkey


class PlanNotice(Part, frozen=True, kw_only=True):
    """The claims of a ``plan`` entry: the plan of a trial, announced.

    Attributes:
        plan: Digest of the plan.
        lineage: The agent that the trial will run; it is the entry's subject too.
    """

    plan: Digest
    lineage: _Name


AnyClaims = Claims | Supersession | Revocation | KeyChange | PlanNotice
CLAIMS: Final[dict[Type, type[AnyClaims]]] = {
    "passport": Claims,
    "supersede": Supersession,
    "revoke": Revocation,
    "key": KeyChange,
    "plan": PlanNotice,
}
"""What an entry of each type claims."""


class Stored(Part, frozen=True, kw_only=True):
    """The bytes of a passport file, by their SHA-256 and size in bytes."""

    sha256: Hex
    size: _Count


class Previous(Part, frozen=True, kw_only=True):
    """An earlier entry, by its index and leaf hash."""

    index: _Count
    leaf: Hex


class Entry(Part, frozen=True, kw_only=True):
    """The payload of an entry (``application/vnd.certkit.registry-entry.v1+json``).

    Attributes:
        v: Version of the format.
        type: Which claims the entry makes.
        subject: The lineage, or the log's origin for a change of its key.
        passport: The passport's file; only in entries of type ``passport``.
        claims: One of `CLAIMS`.
        prev: The entry before it in the same lineage.
        issued_at: Time that the submitter states.
        submitter: Id of the key that signs the entry (SHA-256 of its SubjectPublicKeyInfo).
        log: Origin of the log that it is signed for, so that no other log can show it as its own.
    """

    v: Literal[1] = 1
    type: Type
    subject: _Name
    passport: Stored | None
    claims: dict[str, Any]
    prev: Previous | None
    issued_at: _Time
    submitter: Digest
    log: _Name


class UnverifiedEntry(Struct, frozen=True):
    """An entry whose form was read; `verify` checks that its submitter signed it."""

    body: Entry
    claims: AnyClaims
    envelope: dsse.Envelope

    @property
    def passport(self) -> Claims | None:
        """The claims of a ``passport`` entry, None for any other type."""
        return self.claims if isinstance(self.claims, Claims) else None

    @property
    def passport_id(self) -> str | None:
        """The passport that the entry is about, None for keys and plans."""
        return None if isinstance(self.claims, KeyChange | PlanNotice) else self.claims.passport_id

    def verify(self, key: PublicKey) -> None:
        """Raise `NegativeError` ``dsse.signature`` unless `key` signed the entry."""
        dsse.check(self.envelope, key)


class Logged(Struct, frozen=True):
    """An entry with its index and leaf hash; neither its signature nor its place in the log is verified."""

    index: int
    leaf: Hash
    entry: UnverifiedEntry


class _Signature(Part, frozen=True):
    sig: bytes


class _Envelope(Part, frozen=True):
    """An entry as its bytes have it (DSSE)."""

    payload: bytes
    signatures: tuple[_Signature]
    kind: Literal["application/vnd.certkit.registry-entry.v1+json"] = field(name="payloadType")


_ENVELOPES: Final = msgspec.json.Decoder(_Envelope)
_ENTRIES: Final = msgspec.json.Decoder(Entry)
_SORTED: Final = msgspec.json.Encoder(order="sorted")
"""Writes what RFC 8785 does of these types, which hold text, integers and nulls alone, many times as fast."""


def write(entry: Entry, key: PrivateKey) -> bytes:
    """Return the bytes of a signed entry.

    Raises:
        InputError: ``registry.entry`` beyond `LIMIT` bytes.
    """
    data = _SORTED.encode(dsse.sign(PAYLOAD_TYPE, _SORTED.encode(entry), key))
    if len(data) > LIMIT:
        raise InputError(
            "registry.entry",
            f"an entry of {len(data):,} bytes, limit {LIMIT:,}",
            # Of the entry's statement, that is, which stands in it in Base64.
            hint=f"say it in {-(-3 * (len(data) - LIMIT) // 4):,} bytes less",
        )
    read(data)  # since nothing has checked the fields of a struct that was made in Python
    return data


@lru_cache(maxsize=64)  # who writes asks for the last entries again and again
def read(data: bytes) -> UnverifiedEntry:
    """Return the form of an entry.

    Raises:
        InputError: ``registry.entry``.
    """
    if len(data) > HARD_LIMIT:
        raise InputError("registry.entry", f"an entry of {len(data):,} bytes, limit {HARD_LIMIT:,}")
    try:
        envelope = _ENVELOPES.decode(data)
        entry = _ENTRIES.decode(envelope.payload)
        claims = msgspec.convert(entry.claims, CLAIMS[entry.type])
        is_canonical = _SORTED.encode(envelope) == data and _SORTED.encode(entry) == envelope.payload
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _no_entry(str(error)) from None
    if not is_canonical:
        raise _no_entry("not in the canonical form, in which entries are written")
    if (entry.type == "passport") != (entry.passport is not None):
        raise _no_entry("passport entries, and no others, name a file")
    period = (claims.not_before, claims.not_after) if isinstance(claims, Claims) else ()
    for time in (entry.issued_at, *period):
        try:
            datetime.fromisoformat(time)
        except ValueError:
            raise _no_entry(f"{time} is no time") from None
    if isinstance(claims, PlanNotice) and claims.lineage != entry.subject:
        raise _no_entry("the plan is for another lineage than the entry's subject")
    signed = dsse.Envelope(
        payload_type=PAYLOAD_TYPE, payload=envelope.payload, signature=envelope.signatures[0].sig
    )
    return UnverifiedEntry(entry, claims, signed)


def readable(data: bytes) -> UnverifiedEntry | None:
    """Return an entry, None for what is none."""
    try:
        return read(data)
    except InputError:
        return None


def _no_entry(why: str) -> InputError:
    return InputError("registry.entry", f"not an entry: {why[:1].lower()}{why[1:]}")


def timestamp(at: datetime) -> str:
    """Return a time as entries write it: RFC 3339 in UTC, to the second."""
    if (offset := at.utcoffset()) is None:
        raise InputError("registry.entry", "the time of an entry needs a zone")
    return (at - offset).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    """Return a time as entries write it; raise `ValueError` for what is none."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


# Naming an entry or a passport

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}")
SHORTEST: Final = 8
"""How many digits of a digest are enough to ask for it."""


def begins(digest: str, digits: str) -> bool:
    """Tell whether a digest begins with some digits, at least `SHORTEST`; ``sha256:`` may stand before."""
    start = digits.removeprefix("sha256:")
    return len(start) >= SHORTEST and digest.removeprefix("sha256:").startswith(start)


def is_index(ident: str, size: int) -> bool:
    """Tell whether a word is the index of an entry of a log of this size."""
    return _INDEX.fullmatch(ident) is not None and int(ident) < size


def chosen(ident: str, firsts: Mapping[str, int], *, where: str) -> int:
    """Return the entry of the one passport whose id begins so, given the first entry of each that does.

    Raises:
        UsageError: ``registry.unknown``.
    """
    if len(firsts) == 1:
        return next(iter(firsts.values()))
    if firsts:
        raise UsageError("registry.unknown", f"several passports begin with {ident}", where=where)
    raise UsageError(
        "registry.unknown",
        f"no entry {ident[:80]!r}",
        where=where,
        hint="give an index, a passport id, or at least the first 8 digits of one",
    )


# What a passport says to the registry


def facts_of(passport_id: str, statement: Statement, issuer: str | None = None) -> PassportFacts:
    """Return what a passport says of itself.

    Args:
        passport_id: Its id.
        statement: Its statement; whether it was verified is the caller's matter.
        issuer: The policy's name for who signed it.
    """
    predicate = statement.predicate
    facts, verdict, validity = predicate.facts, predicate.assessment.verdict, predicate.validity
    rows = [row for row in predicate.assessment.criteria if row.metric == "r_op"]
    row = next((row for row in rows if row.tier == verdict.tier), rows[0] if rows else None)
    since = last_run(facts, predicate.summary)
    return PassportFacts(
        passport_id=passport_id,
        lineage=facts.agent.lineage,
        agent=facts.agent.digest,
        evidence=facts.digest,
        bundles=facts.bundles,
        attempt=facts.protocol.attempt,
        issuer=issuer,
        tier=verdict.tier,
        profile=predicate.profile.digest,
        profile_id=predicate.profile.id,
        reading=verdict.decides,
        status=verdict.status,
        not_before=timestamp(validity.not_before),
        not_after=timestamp(validity.not_after),
        supersedes=predicate.supersedes,
        r_op=row.value if row and isinstance(row.value, float) else None,
        limit=_limit(row),
        last_run=None if since is None else EPOCH + since,
        plan=facts.protocol.plan,
    )


def _limit(row: Row | None) -> Limit | None:
    bounded = row.bounded if row else None
    if bounded is None or bounded.bound is None:
        return None
    return Limit(value=bounded.bound, confidence=bounded.confidence, k=bounded.k)


def unverified_facts(passport: bytes | None) -> PassportFacts | None:
    """Return what the bytes of a passport file say, whoever signed it; None where they are no passport."""
    with suppress(CertkitError):
        if passport is not None:
            file = read_passport(passport)
            return facts_of(file.passport_id, file.unverified_statement())
    return None


def unverified_evaluation(passport: bytes | None) -> Evaluation | None:
    """Return what the bytes of a passport file signed, whoever signed it; None where they are no passport."""
    with suppress(CertkitError):
        if passport is not None:
            return read_passport(passport).unverified_statement().predicate.evaluation
    return None


def drift_between(before: Sequence[Evaluation], new: Evaluation) -> Drift:
    """Compare a passport with the last of those before it; the earlier ones are for the trend."""
    from certkit.comparison.drift import drift  # noqa: PLC0415 - heavy

    return drift(before[-1], new, before=before[:-1])
