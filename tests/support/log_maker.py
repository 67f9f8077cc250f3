"""A log as its specifications describe it, for the vectors: entries, signed notes, proofs, status files.

Nothing of certkit is used. Sources: C2SP signed-note, tlog-checkpoint and tlog-proof; RFC 6962 for hashes
(`tests.support.merkle`); the form of entries and of status files as docs/reference/registry.md publishes it.
"""

from __future__ import annotations

import base64
import hashlib
import json  # noqa: TID251 - the vectors must not depend on the door that reads them
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support import merkle

Json = dict[str, Any]

ORIGIN: Final = "certkit.example/00000000-0000-4000-8000-000000000001"
LOG: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(96, 128)))
ENTRY: Final = "application/vnd.certkit.registry-entry.v1+json"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def compact(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def key_id(name: str, key: Ed25519PrivateKey) -> bytes:
    public = key.public_key().public_bytes_raw()
    return hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]


def vkey() -> str:
    """Return the log's verifier key."""
    public = LOG.public_key().public_bytes_raw()
    return f"{ORIGIN}+{key_id(ORIGIN, LOG).hex()}+{b64(bytes([1]) + public)}"


def note(text: str) -> str:
    """Return a text signed by the log."""
    return f"{text}\n— {ORIGIN} {b64(key_id(ORIGIN, LOG) + LOG.sign(text.encode()))}\n"


def submitter_id(key: Ed25519PrivateKey) -> str:
    spki = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return "sha256:" + hashlib.sha256(spki).hexdigest()


class Log:
    """Entries of one lineage, each chained to the one before."""

    def __init__(self, lineage: str, submitter: Ed25519PrivateKey) -> None:
        self.lineage, self.submitter = lineage, submitter
        self.entries: list[bytes] = []

    def add(self, kind: str, claims: Json, at: str, stored: bytes | None = None) -> None:
        """Add an entry; `stored` is the passport file that a ``passport`` entry names."""
        last = len(self.entries) - 1
        leaf = hashlib.sha256(b"\x00" + self.entries[-1]).hexdigest() if self.entries else None
        file = None if stored is None else {"sha256": hashlib.sha256(stored).hexdigest(), "size": len(stored)}
        payload = compact(
            {
                "v": 1,
                "type": kind,
                "subject": self.lineage,
                "passport": file,
                "claims": claims,
                "prev": None if leaf is None else {"index": last, "leaf": leaf},
                "issued_at": at,
                "submitter": submitter_id(self.submitter),
                "log": ORIGIN,
            }
        )
        message = f"DSSEv1 {len(ENTRY)} {ENTRY} {len(payload)} ".encode() + payload
        signature = {"sig": b64(self.submitter.sign(message))}
        envelope = {"payload": b64(payload), "payloadType": ENTRY, "signatures": [signature]}
        self.entries.append(compact(envelope))

    def checkpoint(self, size: int | None = None) -> str:
        """Return the checkpoint over the first `size` entries."""
        found = self.entries[:size]
        return note(f"{ORIGIN}\n{len(found)}\n{b64(merkle.mth(found))}\n")

    def proof(self, index: int) -> str:
        """Return the offline proof of an entry (C2SP tlog-proof)."""
        hashes = [b64(one) for one in merkle.path(index, self.entries)]
        lines = ["c2sp.org/tlog-proof@v1", f"extra {b64(self.entries[index])}", f"index {index}", *hashes]
        return "\n".join(lines) + "\n\n" + self.checkpoint()

    def status(self, index: int, at: str, size: int | None = None) -> str:
        """Return the status file of the passport that entry `index` logs, as of `size` entries."""
        entries = self.entries[:size]
        passport = json.loads(payload_of(entries[index]))["claims"]["passport_id"]
        named = [n for n, entry in enumerate(entries) if passport.encode() in payload_of(entry)]
        places = "".join(f"{n} {hashlib.sha256(bytes(1) + entries[n]).hexdigest()}\n" for n in named)
        lines = (
            "certkit.status/v1",
            ORIGIN,
            str(len(entries)),
            b64(merkle.mth(entries)),
            passport,
            hashlib.sha256(places.encode()).hexdigest(),
            at,
        )
        document = {
            "schema": "urn:certkit:status:v1",
            "says": "that no other entry of the log names the passport is the word of the log's key;"
            " no proof shows it",
            "checkpoint": self.checkpoint(size),
            "word": note("".join(f"{line}\n" for line in lines)),
            "entries": [{"index": n, "entry": b64(entries[n])} for n in named],
        }
        return json.dumps(document, indent=1, ensure_ascii=False)


def payload_of(entry: bytes) -> bytes:
    """Return what an entry's envelope holds."""
    return base64.b64decode(json.loads(entry)["payload"])
