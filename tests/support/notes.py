"""Logs of short entries, announced plans, as many as it takes to fill tiles."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from certkit.passport import keys
from certkit.registry.entry import Entry, Previous, write
from certkit.tlog.note import Signer
from certkit.tlog.tree import leaf_hash
from tests.support.registries import LOG_KEY, ORIGIN, SUBMITTER, new, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.tlog.note import VerifierKey

SUBMITTER_ID = keys.key_id(SUBMITTER.public_key())


def notes(count: int, *, start: int = 0, last: Previous | None = None, words: str = "") -> Iterator[bytes]:
    """Yield signed entries of one lineage, each chained to the one before; `words` makes others of them."""
    for number in range(start, start + count):
        plan = hashlib.sha256(f"{number}{words}".encode()).hexdigest()
        entry = Entry(
            type="plan",
            subject="lab/notes",
            passport=None,
            claims={"plan": f"sha256:{plan}", "lineage": "lab/notes"},
            prev=last,
            issued_at="2026-03-01T00:00:00Z",
            submitter=SUBMITTER_ID,
            log=ORIGIN,
        )
        data = write(entry, SUBMITTER)
        last = Previous(index=number, leaf=leaf_hash(data).hex())
        yield data


def extend(folder: Path, origin: str, entries: list[bytes]) -> None:
    """Add entries to the log in a registry, in one transaction that no operation of it would make."""
    with opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        assert turn.signer == Signer(origin, LOG_KEY)
        registry._log.extend(entries, turn.signer)
        turn.index.rebuild()


def noted(folder: Path, count: int) -> tuple[VerifierKey, list[bytes]]:
    """Make a registry with `count` notes."""
    vkey, entries = new(folder), list(notes(count))
    extend(folder, vkey.name, entries)
    return vkey, entries


def following(entries: list[bytes], count: int, words: str = "") -> list[bytes]:
    """Return further notes that go on from those of a log."""
    last = Previous(index=len(entries) - 1, leaf=hashlib.sha256(b"\0" + entries[-1]).hexdigest())
    return list(notes(count, start=len(entries), last=last, words=words))
