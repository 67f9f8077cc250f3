"""Benchmarks of the registry's log, as ratios to bare peers that are measured in the same run.

    python -m tests.registry_bench                       # 20,000 entries
    python -m tests.registry_bench --size 1000000        # once; signing them takes minutes
    python -m tests.registry_bench --size 1000000 --flips  # and bits flipped at every level of tiles

Entries are signed notes of about 0.7 KB. Appending is compared with SQLite alone, which commits the same
rows with the same settings; the structural part of an audit with a loop that hashes the same entries and
nodes; its signatures with bare Ed25519 verification. Nothing here is asserted by a test.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certkit.passport import dsse
from certkit.progress import SILENT
from certkit.registry import audit, store
from certkit.registry.entry import PAYLOAD_TYPE, read
from certkit.registry.export import export
from certkit.registry.log import Log
from certkit.tlog import tiles, tree
from certkit.tlog.note import Signer
from tests.bench import machine
from tests.faults.flips import is_sound, sampled
from tests.unit.registry.build import LOG_KEY, SUBMITTER, check, new, opened, submitters
from tests.unit.registry.notes import notes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from certkit.tlog.note import VerifierKey

WORDS = " " + "x" * 180
BATCH = 1000
ONE_BY_ONE = 400
PROOFS = 2000


class Recording:
    """A connection that remembers the rows it is given, so that a bare one can be given the same."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.writes: list[tuple[str, list[tuple[Any, ...]]]] = []

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        if not statement.startswith("SELECT"):
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
        log = Log(connection)
        for at in range(0, len(entries), 20_000):
            with store.writing(connection):
                log.extend(entries[at : at + 20_000], signer)
    return folder, signer


def appending(place: Path, held: list[bytes], batches: list[list[bytes]]) -> tuple[float, float, float]:
    """Return seconds of the log layer, of bare SQLite with the same rows, and with remembered heads."""
    folder, signer = made(place / "log", held)
    with closing(store.connect(folder, writable=True)) as connection:
        log, recorded = Log(connection), []
        log.trust(signer)
        for batch in batches:
            recorder = Recording(connection)
            log._connection = recorder  # type: ignore[assignment]
            connection.execute("BEGIN")
            log.extend(batch, signer)
            connection.execute("COMMIT")
            recorded.append(recorder.writes)
    ours = made(place / "ours", held)[0]
    bare = made(place / "bare", held)[0]
    with (
        closing(store.connect(ours, writable=True)) as one,
        closing(store.connect(bare, writable=True)) as other,
    ):
        log = Log(one)
        log.trust(signer)
        times = [0.0, 0.0]
        for batch, writes in zip(batches, recorded, strict=True):  # by turns, so that both meet the same disk
            times[0] += seconds(partial(append, one, log, batch, signer))
            times[1] += seconds(partial(replay, other, writes))
    with opened(made(place / "heads", held)[0]) as registry:
        remembering = sum(seconds(partial(remembered, registry, batch)) for batch in batches)
    return times[0], times[1], remembering


def append(connection: sqlite3.Connection, log: Log, batch: list[bytes], signer: Signer) -> None:
    """Append with the log layer, durably."""
    with store.writing(connection):
        log.extend(batch, signer)


def replay(connection: sqlite3.Connection, writes: list[tuple[str, list[tuple[Any, ...]]]]) -> None:
    """Write the same rows, durably, with nothing around SQLite."""
    connection.execute("BEGIN IMMEDIATE")
    for statement, rows in writes:
        connection.executemany(statement, rows)
    connection.execute("COMMIT")


def remembered(registry: Any, batch: list[bytes]) -> None:
    """Append as a registry does, the signed head remembered durably too."""
    registry._index.check = lambda _size: None  # notes that were put there without the derived tables
    with registry._signing(LOG_KEY) as signer:
        registry._log.extend(batch, signer)


def show_appending(held: list[bytes], more: list[bytes]) -> None:
    for label, size, count in (("one by one", 1, ONE_BY_ONE), (f"batches of {BATCH:,}", BATCH, BATCH * 10)):
        batches = [more[at : at + size] for at in range(0, count, size)]
        with tempfile.TemporaryDirectory() as place:
            log, bare, heads = appending(Path(place), held, batches)
        print(
            f"append {label}: {count / log:,.0f}/s, {bare / log:.2f} of bare SQLite ({count / bare:,.0f}/s);"
            f" with the head remembered, one more flush: {count / heads:,.0f}/s, {bare / heads:.2f}"
        )


def show_proofs(folder: Path, size: int) -> None:
    with opened(folder) as registry, registry.reading() as log:
        indices = [(7919 * number) % size for number in range(PROOFS)]
        single = [seconds(partial(log.prove, index)) for index in indices]
        node = tiles.node_reader(log.tile)
        between = [seconds(partial(tree.consistency_proof, old + 1, size, node)) for old in indices]
    for label, found in (("inclusion", single), ("consistency", between)):
        print(
            f"{label} proof: median {1000 * statistics.median(found):.2f} ms, "
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
    bare = seconds(lambda: bare_hashes(entries))
    start = time.perf_counter()
    sound = is_sound(folder, vkey)
    ours = time.perf_counter() - start
    print(
        f"audit, structure: {'sound' if sound else 'NOT SOUND'} in {ours:.2f} s, "
        f"{ours / bare:.2f} times bare hashing ({bare:.2f} s)"
    )
    whole = seconds(lambda: audit(folder, log=vkey, submitters=submitters(), check=check))
    envelopes = [read(entry).envelope for entry in entries[:20_000]]
    messages = [(one.signature, dsse.pae(PAYLOAD_TYPE, one.payload)) for one in envelopes]
    key = SUBMITTER.public_key()
    verifying = seconds(lambda: [key.verify(*one) for one in messages]) * len(entries) / len(messages)
    print(
        f"audit, signatures: {len(entries) / (whole - ours):,.0f}/s, "
        f"{100 * verifying / (whole - ours):.0f} % of bare Ed25519 ({len(entries) / verifying:,.0f}/s); "
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
                print(f"flips in {source.name}: {tried} bits, {len(missed)} not found {missed or ''}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--flips", action="store_true", help="flip bits at every level of tiles too")
    arguments = parser.parse_args()
    size = arguments.size
    print(machine())
    entries = list(notes(size + 10 * BATCH, words=WORDS))
    held, more = entries[:size], entries[size:]
    print(f"{size:,} entries of {sum(map(len, held)) / size:,.0f} bytes")
    show_appending(held[:20_000], more)
    with tempfile.TemporaryDirectory() as place:
        folder, signer = made(Path(place), held)
        show_proofs(folder, size)
        show_audit(folder, signer.vkey, held)
        show_export(folder, signer.vkey, size, flipped=arguments.flips)


if __name__ == "__main__":
    main()
