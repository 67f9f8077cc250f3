"""Benchmarks of the registry's log, as ratios to bare peers that are measured in the same run.

    python -m tests.registry_bench                       # 20,000 entries
    python -m tests.registry_bench --size 1000000        # once; takes some ten minutes
    python -m tests.registry_bench --size 1000000 --flips  # and bits flipped at every level of tiles

Entries are signed notes of about 0.7 KB. Appending is compared with SQLite alone, which commits the same
rows with the same settings; with the signed head remembered, also with SQLite alone and the durable
replacement of a file that holds the head, since that is two things that have to be on the disk. All four
take turns, each directly after each other one equally often, and medians are compared: of 3,000 appends one
by one and 60 batches, since a disk's pace drifts. The structural part of an audit is compared with a loop
that hashes the same entries and nodes; its signatures with bare Ed25519 verification.
Leaves with 1 where a limit is not kept. Nothing here is asserted by a test.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from certkit.ground import files
from certkit.ground.progress import SILENT
from certkit.passport import envelope as dsse
from certkit.registry import log as store
from certkit.registry.audit import audit
from certkit.registry.entry import PAYLOAD_TYPE, read
from certkit.registry.log import EntryLog
from certkit.registry.publish import export
from certkit.registry.writer import LineageIndex
from certkit.tlog import tiles, tree
from certkit.tlog.note import Signer
from tests.bench import machine
from tests.faults.flips import is_sound, sampled
from tests.support.notes import notes
from tests.support.registries import LOG_KEY, SUBMITTER, check, new, opened, passport, submitters
from tests.support.registries import append as build_append

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from certkit.tlog.note import VerifierKey

WORDS = " " + "x" * 180
BATCH = 1000
BATCHES = 60
ONE_BY_ONE = 3000
PROOFS = 2000
AUDITS = 5
SIGNED = 100_000
# Turn after turn, each comes directly after each other one once: none has the better neighbour on the disk.
ORDERS = ((0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 3, 2))
BROKEN: list[str] = []
"""The limits that were not kept."""


class Recording:
    """A connection that remembers the rows it is given, so that a bare one can be given the same."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.writes: list[tuple[str, list[tuple[Any, ...]]]] = []

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        if not statement.startswith(("SELECT", "PRAGMA")):
            self.writes.append((statement, [values]))
        return self._connection.execute(statement, values)

    def executemany(self, statement: str, rows: Any) -> sqlite3.Cursor:
        kept = list(rows)
        self.writes.append((statement, kept))
        return self._connection.executemany(statement, kept)


def seconds(work: Callable[[], object]) -> float:
    """Return how long something took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def made(place: Path, entries: list[bytes]) -> tuple[Path, Signer]:
    """Return a registry that holds entries already."""
    folder = place / "r"
    signer = Signer(new(folder).name, LOG_KEY)
    with closing(store.connect(folder, writable=True)) as connection:
        log = EntryLog(connection)
        for at in range(0, len(entries), 20_000):
            with store.Writing(connection):
                log.extend(entries[at : at + 20_000], signer)
        with store.Writing(connection):
            LineageIndex(connection, log, where=str(folder)).rebuild()
    return folder, signer


class Times(NamedTuple):
    """Seconds of each batch: the log layer, SQLite alone, with the head remembered, its peer."""

    log: list[float]
    bare: list[float]
    heads: list[float]
    bare_heads: list[float]


def appending(place: Path, held: list[bytes], batches: list[list[bytes]]) -> Times:
    """Append batches to logs that hold entries already, and the same rows to bare databases."""
    folder, signer = made(place / "log", held)
    recorded, notes = [], []
    with closing(store.connect(folder, writable=True)) as connection:
        log = EntryLog(connection)
        log.trust(signer)
        for batch in batches:
            recorder = Recording(connection)
            log._connection = recorder  # type: ignore[assignment]
            connection.execute("BEGIN")
            log.extend(batch, signer)
            connection.execute("COMMIT")
            recorded.append(recorder.writes)
            notes.append(log.note())
    ours, bare, heads, other = (made(place / name, held)[0] for name in ("ours", "bare", "heads", "other"))
    times = Times([], [], [], [])
    with (
        closing(store.connect(ours, writable=True)) as one,
        closing(store.connect(bare, writable=True)) as two,
        opened(heads) as registry,
        closing(store.connect(other, writable=True)) as three,
    ):
        log = EntryLog(one)
        log.trust(signer)
        head = heads.parent / "head"
        for turn, (batch, writes, note) in enumerate(zip(batches, recorded, notes, strict=True)):
            both = [partial(replay, three, writes), partial(files.write, head, note)]
            measured = [
                (times.log, [partial(append, one, log, batch, signer)]),
                (times.bare, [partial(replay, two, writes)]),
                (times.heads, [partial(remembered, registry, batch)]),
                (times.bare_heads, both),
            ]
            for which in ORDERS[turn % len(ORDERS)]:
                kept, work = measured[which]
                kept.append(sum(map(seconds, work)))
    return times


def append(connection: sqlite3.Connection, log: EntryLog, batch: list[bytes], signer: Signer) -> None:
    """Append with the log layer, durably."""
    with store.Writing(connection):
        log.extend(batch, signer)


def replay(connection: sqlite3.Connection, writes: list[tuple[str, list[tuple[Any, ...]]]]) -> None:
    """Write the same rows, durably, with nothing around SQLite."""
    connection.execute("BEGIN IMMEDIATE")
    for statement, rows in writes:
        connection.executemany(statement, rows)
    connection.execute("COMMIT")


def remembered(registry: Any, batch: list[bytes]) -> None:
    """Append as a registry does: one by one with its row in the index, and the signed head remembered."""
    with registry.turn(LOG_KEY) as turn:
        for entry in batch if len(batch) == 1 else ():
            turn.add(entry)
        if len(batch) > 1:
            registry._log.extend(batch, turn.signer)


def kept(label: str, value: float, limit: float, *, most: bool = False) -> str:
    """Return a value with its limit in words, and count what is not kept."""
    good = value <= limit if most else value >= limit
    if not good:
        BROKEN.append(label)
    return f"{value:.2f} (limit {limit:.2f}{'' if good else ', NOT KEPT'})"


def show_appending(held: list[bytes], more: list[bytes]) -> None:
    for label, size, count in (
        ("one by one", 1, ONE_BY_ONE),
        (f"batches of {BATCH:,}", BATCH, BATCH * BATCHES),
    ):
        batches = [more[at : at + size] for at in range(0, count, size)]
        with tempfile.TemporaryDirectory() as place:
            times = appending(Path(place), held, batches)
        log, bare, heads, bare_heads = (statistics.median(one) / size for one in times)
        ratio = kept("append", bare / log, 0.65) if size == 1 else f"{bare / log:.2f}"
        print(
            f"append {label}: {1 / log:,.0f}/s, {ratio} of bare SQLite"
            f" ({1 / bare:,.0f}/s)\n  with the head remembered, one more flush: {1 / heads:,.0f}/s,"
            f" {bare / heads:.2f} of bare SQLite, {bare_heads / heads:.2f} of bare SQLite and a bare durable"
            f" file ({1 / bare_heads:,.0f}/s)"
        )


def show_proofs(folder: Path, size: int) -> None:
    with opened(folder) as registry, registry.reading() as log:
        indices = [(7919 * number) % size for number in range(PROOFS)]
        single = [seconds(partial(log.prove, index)) for index in indices]
        node = tiles.node_reader(log.tile)
        between = [seconds(partial(tree.consistency_proof, old + 1, size, node)) for old in indices]
    for label, found in (("inclusion", single), ("consistency", between)):
        print(
            f"{label} proof: median {kept(label, 1000 * statistics.median(found), 3, most=True)} ms, "
            f"slowest {1000 * max(found):.2f} ms of {len(found):,}"
        )


def bare_hashes(entries: list[bytes]) -> None:
    """Hash the same entries and as many nodes."""
    sha256 = hashlib.sha256
    row = [sha256(b"\0" + entry).digest() for entry in entries]
    while len(row) > 1:
        odd = row[len(row) & ~1 :]
        row = [sha256(b"\1" + row[at] + row[at + 1]).digest() for at in range(0, len(row) - 1, 2)] + odd


def show_audit(folder: Path, vkey: VerifierKey, entries: list[bytes]) -> None:
    """Take turns, since a single look lies up to a half apart from the next; medians are compared."""
    bares, owns, sound = [], [], True
    for _ in range(AUDITS):
        bares.append(seconds(lambda: bare_hashes(entries)))
        start = time.perf_counter()
        sound &= is_sound(folder, vkey)
        owns.append(time.perf_counter() - start)
    bare, ours = statistics.median(bares), statistics.median(owns)
    if not sound:
        BROKEN.append("sound")
    print(
        f"audit, structure: {'sound' if sound else 'NOT SOUND'} in {ours:.2f} s, "
        f"{kept('structure', ours / bare, 2.5, most=True)} times bare hashing ({bare:.2f} s)"
    )


def show_signatures(vkey: VerifierKey, entries: list[bytes]) -> None:
    """Audit so many entries alone: a whole million takes minutes and shows the same."""
    with tempfile.TemporaryDirectory() as place:
        folder, _ = made(Path(place), entries)
        ours = seconds(partial(is_sound, folder, vkey))
        whole = seconds(lambda: audit(folder, log=vkey, submitters=submitters(), check=check))
    envelopes = [read(entry).envelope for entry in entries[:20_000]]
    messages = [(one.signature, dsse.pae(PAYLOAD_TYPE, one.payload)) for one in envelopes]
    key = SUBMITTER.public_key()
    verifying = seconds(lambda: [key.verify(*one) for one in messages]) * len(entries) / len(messages)
    print(
        f"audit, signatures: {len(entries) / (whole - ours):,.0f}/s, "
        f"{kept('signatures', verifying / (whole - ours), 0.5)} of bare Ed25519"
        f" ({len(entries) / verifying:,.0f}/s); "
        f"all of it {whole:.1f} s"
    )


def show_export(folder: Path, vkey: VerifierKey, size: int, *, flipped: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "out"
        first = seconds(lambda: export(folder, out, passports=False, progress=SILENT))
        again = seconds(lambda: export(folder, out, passports=False, progress=SILENT))
        print(f"export: {first:.1f} s, {size / first:,.0f} entries/s; again, nothing new: {again:.2f} s")
        if flipped:
            for source in (folder, out):
                tried, missed = sampled(source, vkey)
                BROKEN.extend(missed)
                print(
                    f"flips in {source.name}: {tried} bits, {len(missed)} not found {missed or ''}".rstrip()
                )


def show_first(folder: Path) -> None:
    """Time the first append on a log that was just opened."""
    append = partial(build_append, folder, passport(1))
    print(f"first append on an opened log: {kept('first append', seconds(append), 0.5, most=True)} s")


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--flips", action="store_true", help="flip bits at every level of tiles too")
    arguments = parser.parse_args()
    size = arguments.size
    print(machine())
    entries = list(notes(size + BATCHES * BATCH, words=WORDS))
    held, more = entries[:size], entries[size:]
    print(f"{size:,} entries of {sum(map(len, held)) / size:,.0f} bytes")
    show_appending(held[:20_000], more)
    with tempfile.TemporaryDirectory() as place:
        folder, signer = made(Path(place), held)
        show_proofs(folder, size)
        show_audit(folder, signer.vkey, held)
        show_signatures(signer.vkey, held[:SIGNED])
        show_export(folder, signer.vkey, size, flipped=arguments.flips)
        show_first(folder)
    return 1 if BROKEN else 0


if __name__ == "__main__":
    sys.exit(main())
