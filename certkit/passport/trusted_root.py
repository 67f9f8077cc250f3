"""A Sigstore trusted root: the keys of certificate authorities, logs and timestamp authorities, with windows.

A root is part of a verifier's own trust policy, as the JSON that Sigstore publishes (TrustedRoot v0.1 of
protobuf-specs). Only its form and its windows are known here; `keyless` and `timestamp` verify with it.

    check(document, "root.json")
    within(document, [signed_at])              # the same root with the members that were in office then
    rolled_back(old, new)                      # what `new` forgets, or None

A window is closed: it holds both its beginning and its end.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from certkit.ground.errors import InputError

Kind = Literal["certificateAuthorities", "tlogs", "ctlogs", "timestampAuthorities"]

KINDS: Final[dict[Kind, str]] = {
    "certificateAuthorities": "certificate authority",
    "tlogs": "transparency log",
    "ctlogs": "certificate transparency log",
    "timestampAuthorities": "timestamp authority",
}
"""The lists of a root, and what a member of each is called."""

_ALWAYS: Final = {"start": "1970-01-01T00:00:00Z"}
_Time = Annotated[datetime, Meta(tz=True)]


class Window(Struct, frozen=True):
    """When a member of the root is in office; for ever where there is no end."""

    start: _Time
    end: _Time | None = None

    def holds(self, time: datetime) -> bool:
        """Tell whether the window holds `time`."""
        return self.start <= time and (self.end is None or time <= self.end)


class _Bytes(Struct, frozen=True, rename="camel"):
    raw_bytes: Annotated[bytes, Meta(min_length=1)]


class _Key(_Bytes, frozen=True, rename="camel"):
    valid_for: Window


class _Chain(Struct, frozen=True):
    certificates: Annotated[tuple[_Bytes, ...], Meta(min_length=1)]


class Log(Struct, frozen=True, rename="camel"):
    """A log, by the key that it signs with."""

    public_key: _Key


class Authority(Struct, frozen=True, rename="camel"):
    """A certificate or timestamp authority, by its chain from the certificate that signs to the root."""

    cert_chain: _Chain
    valid_for: Window

    @property
    def chain(self) -> tuple[bytes, ...]:
        """The certificates in DER, from the one that signs to the root."""
        return tuple(certificate.raw_bytes for certificate in self.cert_chain.certificates)


class _Root(Struct, frozen=True, kw_only=True, rename="camel"):
    media_type: Literal["application/vnd.dev.sigstore.trustedroot+json;version=0.1"]
    certificate_authorities: tuple[Authority, ...] = ()
    tlogs: tuple[Log, ...] = ()
    ctlogs: tuple[Log, ...] = ()
    timestamp_authorities: tuple[Authority, ...] = ()


def check(document: Any, where: str) -> None:
    """Raise `InputError` ``trust.root`` unless `document` has the form of a trusted root."""
    try:
        _read(document)
    except msgspec.ValidationError as error:
        raise InputError(
            "trust.root",
            f"not a Sigstore trusted root: {error}",
            where=where,
            hint="expected the JSON of a TrustedRoot v0.1",
        ) from None


def timestamp_authorities(document: Any) -> tuple[Authority, ...]:
    """Return the timestamp authorities of a root that was checked."""
    return _read(document).timestamp_authorities


def within(document: dict[str, Any], times: Sequence[datetime]) -> dict[str, Any]:
    """Return the root with the members that were in office at each of `times`; `timestamp` asks its own."""
    lists: dict[str, Any] = {
        kind: [raw for raw in document.get(kind, []) if all(map(member(raw)[1].holds, times))]
        for kind in KINDS
        if kind != "timestampAuthorities"
    }
    return {**document, **lists}


def timeless(document: dict[str, Any]) -> dict[str, Any]:
    """Return the root without any window, for a library that would compare them with the machine's clock."""
    lists: dict[str, Any] = {kind: [_always(member) for member in document.get(kind, [])] for kind in KINDS}
    return {**document, **lists}


def _always(member: dict[str, Any]) -> dict[str, Any]:
    if "publicKey" in member:
        return {**member, "publicKey": {**member["publicKey"], "validFor": _ALWAYS}}
    return {**member, "validFor": _ALWAYS}


def rolled_back(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """Tell which end, known to the `old` root, the `new` one has lost or put off; None where none.

    A root that is published later may end a member sooner or add one. One that lets an ended member live
    on is an older root: whoever holds a retired key would be believed again.
    """
    for kind, name in KINDS.items():
        for key, was in map(member, old.get(kind, [])):
            for same, now in map(member, new.get(kind, [])):
                if key == same and was.end is not None and (now.end is None or now.end > was.end):
                    later = "has no end" if now.end is None else f"ends at {now.end:%Y-%m-%d}"
                    return f"a {name} that ended at {was.end:%Y-%m-%d} {later}"
    return None


def member(raw: dict[str, Any]) -> tuple[bytes, Window]:
    """Return the key of a log, or the signing certificate of an authority, and when that is in office."""
    log = raw.get("publicKey")
    key = (log or raw["certChain"]["certificates"][0])["rawBytes"]
    return msgspec.convert(key, bytes), msgspec.convert((log or raw)["validFor"], Window)


def _read(document: Any) -> _Root:
    return msgspec.convert(document, _Root)
