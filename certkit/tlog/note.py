"""Signed notes and their keys (C2SP signed-note): text, a blank line, one line per signature.

Key types: ``0x01``, Ed25519 over the text; ``0x04``, a witness's Ed25519 cosignature with its time (C2SP
tlog-cosignature). A signature line names its key by name and a four-byte id, which prove nothing. So
a note is opened only with keys that the caller already trusts:

    key = VerifierKey.parse("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")
    opened = open_note(data, [key])
    opened.text                                  # signed by at least one of the keys

Signatures by other keys are ignored, as the specification requires, so that witnesses and new keys can sign
too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from certkit.ground.errors import InputError, MismatchError
from certkit.tlog.tree import HASH_SIZE, MAX_SIZE, Hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_NOTE: Final = 256 * 1024
MAX_SIGNATURES: Final = 64

_ID_SIZE: Final = 4
_PUBLIC_SIZE: Final = 32
_TIME_SIZE: Final = 8
_MAX_TIME: Final = 2**63 - 1
_HEX_ID: Final = re.compile(r"[0-9a-f]{8}")
_CONTROL: Final = re.compile("[\x00-\x09\x0b-\x1f]")
_DASH: Final = "\N{EM DASH} "
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,18}")


# The base64 and decimal numbers of C2SP texts: each value has exactly one form.


def encode64(data: bytes) -> str:
    """Return standard base64 with padding (RFC 4648 section 4)."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def decode64(text: str) -> bytes | None:
    """Return the bytes of standard base64, None for text that `encode64` does not write."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return data if encode64(data) == text else None


def decode_hash(text: str) -> Hash | None:
    """Return the hash in a line of base64, None for any other text."""
    data = decode64(text)
    return Hash(data) if data is not None and len(data) == HASH_SIZE else None


def decode_number(text: str) -> int | None:
    """Return a decimal number up to 2^63 − 1 without leading zeros, None for any other text."""
    if _DECIMAL.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number <= MAX_SIZE else None


class KeyType(IntEnum):
    """The signature types that certkit reads."""

    ED25519 = 1
    COSIGNATURE = 4


def is_key_name(name: str) -> bool:
    """Tell whether `name` may name a key: not empty, no plus, no white space, no control character."""
    return name.split() == [name] and "+" not in name and not _CONTROL.search(name)


class VerifierKey(NamedTuple):
    """A public key with its name; `key_id` follows from the other three."""

    name: str
    type: KeyType
    public: bytes

    @property
    def key_id(self) -> bytes:
        """The first four bytes of the SHA-256 of name, newline, type and public key."""
        return hashlib.sha256(self.name.encode() + b"\n" + bytes([self.type]) + self.public).digest()[
            :_ID_SIZE
        ]

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{encode64(bytes([self.type]) + self.public)}"

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Read a vkey.

        Raises:
            InputError: ``tlog.key`` where its form or its id is wrong.
        """
        name, hex_id, material = ([*text.split("+", 2), "", ""])[:3]
        data = decode64(material)
        if not is_key_name(name) or _HEX_ID.fullmatch(hex_id) is None or not data:
            raise InputError(
                "tlog.key",
                f"{text!r} is not a verifier key",
                hint="expected NAME+8 hexadecimal digits+BASE64",
            )
        if data[0] not in set(KeyType) or len(data) != 1 + _PUBLIC_SIZE:
            raise InputError(
                "tlog.key", f"key {name!r} is of a type that certkit does not read", hint="expected Ed25519"
            )
        key = cls(name, KeyType(data[0]), data[1:])
        if key.key_id.hex() != hex_id:
            raise InputError("tlog.key", f"key {name!r}: expected id {key.key_id.hex()}, found {hex_id}")
        return key


class Signature(NamedTuple):
    """A signature line of a note, not verified."""

    name: str
    key_id: bytes
    value: bytes

    @property
    def line(self) -> str:
        """The line, with its newline."""
        return f"{_DASH}{self.name} {encode64(self.key_id + self.value)}\n"


class UnverifiedNote(NamedTuple):
    """A note whose signatures are not verified."""

    text: str
    signatures: tuple[Signature, ...]


class Signed(NamedTuple):
    """A signature that verified: by which key, and when (seconds since 1970) if it is a cosignature."""

    key: VerifierKey
    time: int | None


class OpenedNote(NamedTuple):
    """A note's text with the trusted keys that signed it, at least one, each once."""

    text: str
    signed: tuple[Signed, ...]


def parse_note(data: bytes) -> UnverifiedNote:
    """Read the form of a note.

    Raises:
        InputError: ``tlog.note``.
    """
    if len(data) > MAX_NOTE:
        raise InputError("tlog.note", f"a note of {len(data):,} bytes, limit {MAX_NOTE:,}")
    try:
        whole = data.decode()
    except UnicodeDecodeError as error:
        raise InputError("tlog.note", f"a note that is not UTF-8 at byte {error.start}") from None
    if match := _CONTROL.search(whole):
        raise InputError("tlog.note", f"a note with a control character at {match.start()}")
    text, blank, tail = whole.rpartition("\n\n")
    lines = tail.split("\n")
    if not blank or lines.pop() or not lines:
        raise InputError("tlog.note", "expected text, a blank line and lines of signatures")
    return UnverifiedNote(text + "\n", _signatures(lines))


def parse_lines(data: bytes) -> tuple[Signature, ...]:
    """Read lines of signatures without a text, as witnesses return them.

    Raises:
        InputError: ``tlog.note``.
    """
    lines = data[:MAX_NOTE].decode(errors="replace").split("\n")
    if lines.pop() or not lines:
        raise InputError("tlog.note", "expected lines of signatures")
    return _signatures(lines)


def _signatures(lines: Sequence[str]) -> tuple[Signature, ...]:
    if len(lines) > MAX_SIGNATURES:
        raise InputError("tlog.note", f"a note with {len(lines)} signatures, limit {MAX_SIGNATURES}")
    return tuple(_signature(line) for line in lines)


def _signature(line: str) -> Signature:
    name, space, material = line.removeprefix(_DASH).partition(" ")
    data = decode64(material)
    if not (line.startswith(_DASH) and space and is_key_name(name) and data) or len(data) <= _ID_SIZE:
        raise InputError("tlog.note", f"{line[:80]!r} is not a line of a signature")
    return Signature(name, data[:_ID_SIZE], data[_ID_SIZE:])


def open_note(data: bytes, keys: Iterable[VerifierKey]) -> OpenedNote:
    """Return the text of a note, and which of `keys` signed it.

    Raises:
        InputError: ``tlog.note`` for its form.
        MismatchError: ``tlog.signature`` where a signature by one of the keys does not verify,
            ``tlog.unsigned`` where none of them signed.
    """
    note = parse_note(data)
    known = {(key.name, key.key_id): key for key in keys}
    signed: dict[VerifierKey, Signed] = {}
    for signature in note.signatures:
        key = known.get((signature.name, signature.key_id))
        if key is not None:
            signed.setdefault(key, Signed(key, _verify(note.text, signature, key)))
    if not signed:
        names = ", ".join(sorted({signature.name for signature in note.signatures}))
        raise MismatchError(
            "tlog.unsigned",
            f"not signed by a trusted key; signed as {names}",
            hint="get the verifier key from the operator of the log or witness, never from the note",
        )
    return OpenedNote(note.text, tuple(signed.values()))


def _verify(text: str, signature: Signature, key: VerifierKey) -> int | None:
    """Return the time of a cosignature, None for a plain signature; raise where it does not verify."""
    message, value, time = text.encode(), signature.value, None
    if key.type is KeyType.COSIGNATURE:
        time, value = int.from_bytes(value[:_TIME_SIZE]), value[_TIME_SIZE:]
        message = cosigned_message(text, time)
    if time is not None and time > _MAX_TIME:
        raise MismatchError("tlog.signature", f"the cosignature of {key.name} has an impossible time")
    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(value, message)
    except InvalidSignature:
        raise MismatchError("tlog.signature", f"the signature of {key.name} does not verify") from None
    return time


def cosigned_message(text: str, time: int) -> bytes:
    """Return what a cosignature/v1 at `time` (seconds since 1970) signs."""
    return f"cosignature/v1\ntime {time}\n{text}".encode()


@dataclass(frozen=True)
class Signer:
    """A private Ed25519 key with the name that it signs notes under.

    Raises `InputError` ``tlog.key`` for what cannot be a name.
    """

    name: str
    key: Ed25519PrivateKey

    def __post_init__(self) -> None:
        if not is_key_name(self.name):
            raise InputError("tlog.key", f"{self.name!r} cannot name a key")

    @cached_property
    def vkey(self) -> VerifierKey:
        """The key that others verify with."""
        return VerifierKey(self.name, KeyType.ED25519, self.key.public_key().public_bytes_raw())

    def sign(self, text: str) -> Signature:
        """Return the signature of a note's text."""
        return Signature(self.name, self.vkey.key_id, self.key.sign(text.encode()))


def write_note(text: str, signatures: Iterable[Signature]) -> bytes:
    """Return the bytes of a note; raise `InputError` ``tlog.note`` where `parse_note` could not read them.

    `text` ends in a newline and has no control character but newlines.
    """
    data = own_note(text, signatures)
    if not text.endswith("\n"):
        raise InputError("tlog.note", "a text that does not end in a newline")
    parse_note(data)
    return data


def own_note(text: str, signatures: Iterable[Signature]) -> bytes:
    """Return the bytes of a note whose text is formed as `write_note` demands: it is not read back.

    A log that signs a checkpoint for every entry would feel that.
    """
    return (text + "\n" + "".join([signature.line for signature in signatures])).encode()
