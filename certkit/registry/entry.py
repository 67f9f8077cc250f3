"""Entries: what is hashed into the log, one statement each, signed by whoever submitted it.

An entry is a DSSE envelope whose payload says which lineage (`subject`) it is about, which passport,
what that passport claims, and where the entry before it in the same lineage stands (`prev`), so that a
lineage can be followed without an index. Envelope and payload are canonical JSON (RFC 8785) of just these
fields; other bytes are no entry, so a signed statement has one form. What is stored is what is hashed.

    data = write(Entry(type="passport", …), submitter)
    found = read(data)                       # form only
    found.verify(trusted[found.entry.submitter])

What an entry of each type claims is a class of its own below; `Claims` is what a passport's claims are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from certkit.ground import canonical
from certkit.ground.document import Tier, fill
from certkit.ground.errors import InputError, UsageError
from certkit.passport import dsse
from certkit.passport.statement import END, Count, Digest, Hex
from certkit.tlog.tree import Hash  # noqa: TC001 - msgspec resolves annotations at run time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from certkit.passport.keys import PrivateKey, PublicKey

PAYLOAD_TYPE: Final = "application/vnd.certkit.registry-entry.v1+json"
LIMIT: Final = 4096
"""The most bytes of an entry that is written."""
HARD_LIMIT: Final = 65_535
"""The most bytes of an entry that is read: an entry bundle of C2SP tlog-tiles holds no longer one."""

_Time = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z" + END)]
_Name = Annotated[str, Meta(min_length=1, max_length=1025)]  # a provider and a name of 512 each

WORDS: Final = 2048
"""How many characters may be said in words, at most."""

_Text = Annotated[str, Meta(min_length=1, max_length=WORDS)]
ROWS: Final = 8
"""How many rows a drift entry names, at most."""
ROW_LENGTH: Final = 120

_Row = Annotated[str, Meta(min_length=1, max_length=ROW_LENGTH)]
_Vkey = Annotated[str, Meta(min_length=1, max_length=1024)]

Type = Literal["passport", "supersede", "revoke", "drift", "key", "note"]
Reason = Literal[
    "evidence-false",
    "operation-below-threshold",
    "issued-in-error",
    "key-compromise",
    "component-change",
    "agent-withdrawn",
]
"""Why a passport was revoked."""
DriftResult = Literal["STABLE", "DRIFTED", "IDENTITY_CHANGED", "UNDERPOWERED", "NOT_COMPARABLE"]

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


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of an entry."""


class _Passport(_Part, frozen=True, kw_only=True):
    """What a passport and its entry both say; digests, and times in UTC as RFC 3339 has them."""

    passport_id: Digest
    agent: Digest
    evidence: Digest
    tier: Tier
    profile: Digest
    not_before: _Time
    not_after: _Time
    supersedes: Digest | None


class PassportFacts(_Passport, frozen=True, kw_only=True):
    """What a verified passport says of itself, as far as the log needs it.

    `lineage` is ``provider/name``; `attempt` is the attempt that it declares; `issuer` is the policy's name
    for who signed it; `bundles` are those that its evidence pools.
    """

    lineage: _Name
    attempt: Count | None = None
    supersedes: Digest | None = None
    issuer: _Name | None = None
    bundles: tuple[Digest, ...] = ()


Check = Callable[[bytes, datetime], PassportFacts]
"""Verifies the bytes of a passport logged at a time, returns its facts; `CertkitError` refuses it."""


class Claims(_Passport, frozen=True, kw_only=True):
    """The claims of a ``passport`` entry: the passport's facts, and which attempt the log counts.

    `attempt` is 1 for the first evidence of this lineage under this profile that the log holds, and counts
    different evidence: a passport that is issued again from the same keeps its number.
    """

    attempt: Annotated[int, Meta(ge=1, le=canonical.MAX_INTEGER)]

    @classmethod
    def of(cls, facts: PassportFacts, attempt: int) -> Claims:
        """Return the claims that an entry about a passport with these facts makes."""
        return fill(cls, facts, attempt=attempt)


class Supersession(_Part, frozen=True, kw_only=True):
    """The claims of a ``supersede`` entry: another passport stands in for this one from now on."""

    passport_id: Digest
    by: Digest


class Revocation(_Part, frozen=True, kw_only=True):
    """The claims of a ``revoke`` entry."""

    passport_id: Digest
    reason: Reason
    detail: _Text | None = None


class Drift(_Part, frozen=True, kw_only=True):
    """The claims of a ``drift`` entry: what a comparison with an `earlier` passport of the agent gave.

    `rows` names those that got worse, in words; where they are many, the last says how many more there are.
    `document` is the digest of the comparison as ``certkit drift --json`` gives it, in canonical JSON.
    """

    passport_id: Digest
    earlier: Digest
    result: DriftResult
    rows: Annotated[tuple[_Row, ...], Meta(max_length=ROWS)]
    document: Digest


class KeyChange(_Part, frozen=True, kw_only=True):
    """The claims of a ``key`` entry, which the old key signs: `new` signs every checkpoint after this one.

    Both are verifier keys of the log; the entry's subject is the log's origin.
    """

    old: _Vkey
    new: _Vkey


class Note(_Part, frozen=True, kw_only=True):
    """The claims of a ``note`` entry: words for the record."""

    text: _Text


AnyClaims = Claims | Supersession | Revocation | Drift | KeyChange | Note
CLAIMS: Final[dict[Type, type[AnyClaims]]] = {
    "passport": Claims,
    "supersede": Supersession,
    "revoke": Revocation,
    "drift": Drift,
    "key": KeyChange,
    "note": Note,
}
"""What an entry of each type claims."""


class Stored(_Part, frozen=True, kw_only=True):
    """The bytes of a passport file by digest and size."""

    sha256: Hex
    size: Count


class Previous(_Part, frozen=True, kw_only=True):
    """An earlier entry, by place and leaf hash."""

    index: Count
    leaf: Hex


class Entry(_Part, frozen=True, kw_only=True):
    """What an entry says (``application/vnd.certkit.registry-entry.v1+json``).

    `subject` is a lineage; `submitter` is the id of the key that signs the entry (SHA-256 of its
    SubjectPublicKeyInfo), by which a reader picks among the keys that it trusts. `log` is the origin of the
    log that it is signed for, so that no other can show it as its own.
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
    """An entry whose form was read; `verify` tells whether its submitter signed it."""

    entry: Entry
    claims: AnyClaims
    envelope: dsse.Envelope

    @property
    def passport(self) -> Claims | None:
        """The claims of a ``passport`` entry, None for any other."""
        return self.claims if isinstance(self.claims, Claims) else None

    @property
    def passport_id(self) -> str | None:
        """The passport that the entry is about, None for entries about keys and for notes."""
        return None if isinstance(self.claims, KeyChange | Note) else self.claims.passport_id

    def verify(self, key: PublicKey) -> None:
        """Raise `NegativeError` ``dsse.signature`` unless `key` signed the entry."""
        dsse.check(self.envelope, key)


class Logged(Struct, frozen=True):
    """An entry with its place. Its signature is not verified, and that it stands there is for a proof."""

    index: int
    leaf: Hash
    found: UnverifiedEntry


class _Signature(_Part, frozen=True):
    sig: bytes


class _Envelope(_Part, frozen=True):
    """An entry as its bytes have it (DSSE)."""

    payload: bytes
    signatures: tuple[_Signature]
    kind: Literal["application/vnd.certkit.registry-entry.v1+json"] = field(name="payloadType")


_ENVELOPES: Final = msgspec.json.Decoder(_Envelope)
_ENTRIES: Final = msgspec.json.Decoder(Entry)
_SORTED: Final = msgspec.json.Encoder(order="sorted")
"""Writes what RFC 8785 does of these types, which hold text, integers and nulls alone, many times as fast."""


def write(entry: Entry, key: PrivateKey) -> bytes:
    """Return the bytes of a signed entry; raise `InputError` ``registry.entry`` beyond `LIMIT` bytes."""
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
    """Return the form of an entry; raise `InputError` ``registry.entry``."""
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
        raise _no_entry("those of passports, and no others, name a file")
    period = (claims.not_before, claims.not_after) if isinstance(claims, Claims) else ()
    for time in (entry.issued_at, *period):
        try:
            datetime.fromisoformat(time)
        except ValueError:
            raise _no_entry(f"{time} is no time") from None
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

    Raises `UsageError` ``registry.unknown``.
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
