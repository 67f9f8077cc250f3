"""Cosignatures as C2SP tlog-cosignature writes them, and logs that take them."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
import struct
from contextlib import closing
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.registry.writer import Registry, gather
from certkit.tlog.note import KeyType, VerifierKey
from tests.support.registries import (
    AT,
    opened,
)

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.tlog.checkpoint import SignedCheckpoint


TIME = int(AT.timestamp())
A, B = (Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32) for seed in (7, 8))


def witness(name: str, key: Ed25519PrivateKey) -> VerifierKey:
    return VerifierKey(name, KeyType.COSIGNATURE, key.public_key().public_bytes_raw())


KEYS = (witness("a.example/w", A), witness("b.example/w", B))


def line(text: str, name: str, key: Ed25519PrivateKey, time: int, kind: bytes = b"\4") -> bytes:
    """A cosignature/v1 as C2SP tlog-cosignature writes it, made without the code under test."""
    public = key.public_key().public_bytes_raw()
    key_id = hashlib.sha256(name.encode() + b"\n" + kind + public).digest()[:4]
    signature = key.sign(b"cosignature/v1\ntime %d\n%b" % (time, text.encode()))
    value = base64.b64encode(key_id + struct.pack(">Q", time) + signature).decode()
    return f"\N{EM DASH} {name} {value}\n".encode()


def note(folder: Path) -> bytes:
    with Registry.open(folder) as registry:
        return registry.checkpoint()


def text(folder: Path) -> str:
    return note(folder).decode().partition("\n\n")[0] + "\n"


def taken(folder: Path, *returned: bytes, witnesses: tuple[VerifierKey, ...] = KEYS) -> SignedCheckpoint:
    with opened(folder) as registry:
        return gather(registry, returned, witnesses=witnesses, at=AT)


def stored(folder: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(folder / "registry.db")) as connection:
        return connection.execute("SELECT size, vkey FROM cosignature ORDER BY 1, 2").fetchall()
