"""One flipped bit, anywhere in a log, is found.

    python -m tests.faults.flips            # every bit of a small log: database, passports, exported tree

`sampled` flips bits in tiles of every level of a log of any size; `python -m tests.registry_bench --flips`
uses it. It looks with the structural part of an audit, which a whole audit begins with.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.registry.log import FILE
from certkit.registry.publish import export
from certkit.registry.reader import opened
from certkit.tlog import tiles
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.tiles import Rebuild
from certkit.tlog.tree import leaf_hashes
from tests.support.registries import audited, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.tlog.note import VerifierKey
    from certkit.tlog.tiles import Tile

Place = tuple[str, bytes, "Callable[[bytes], None]"]
"""Something that is stored: what it is, its bytes, and what puts others in their place."""

CELLS = {
    "leaf": ("entry", "idx"),
    "tile": ("hashes", "n + 1000000 * level"),
    "checkpoint": ("note", "size"),
}


def is_sound(folder: Path, vkey: VerifierKey) -> bool:
    """Do the structural part of an audit: entries into tiles, tiles into the root that was signed."""
    faults: list[tuple[int, int]] = []
    try:
        with opened(folder) as source:
            work = Rebuild(source.tile, lambda level, n, _row: faults.append((level, n)))
            for batch in source.batches():
                work.add(leaf_hashes([data for _, data in batch]))
            work.finish()
            faults += [(0, 0) for _ in source.faults(vkey)]
            head = open_checkpoint(source.note(), vkey).checkpoint
    except CertkitError:
        return False
    return not faults and (head.size, head.root) == (work.size, work.root)


def cells(folder: Path, keys: dict[str, list[int]] | None = None) -> Iterator[Place]:
    """Yield the cells of a registry's database, or those with the given keys."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for table, (column, key) in CELLS.items():
            query = f"SELECT {key}, {column} FROM {table}"  # noqa: S608 - named above
            chosen = "" if keys is None else f" WHERE {key} IN ({', '.join(map(str, keys[table]))})"
            for name, data in connection.execute(query + chosen).fetchall():
                update = f"UPDATE {table} SET {column} = ? WHERE {key} = {name}"  # noqa: S608 - the same

                def put(changed: bytes, update: str = update) -> None:
                    connection.execute(update, (changed,))

                yield f"{table} {name}", data, put


def stored_files(folder: Path, paths: list[str] | None = None) -> Iterator[Place]:
    """Yield the files below a folder but the database, or those with the given paths."""
    chosen = folder.rglob("*") if paths is None else [folder / path for path in paths]
    for path in sorted(path for path in chosen if path.is_file() and not path.name.startswith(FILE)):
        yield path.relative_to(folder).as_posix(), path.read_bytes(), path.write_bytes  # type: ignore[misc]


def flipped(places: Iterator[Place], is_found: Callable[[], bool], bits: int | None) -> tuple[int, list[str]]:
    """Flip bits one after the other, all or some of each place; return how many, and those not found."""
    tried, missed = 0, []
    for name, data, put in places:
        count = 8 * len(data)
        for bit in (
            range(count) if bits is None else sorted({(count - 1) * i // (bits - 1) for i in range(bits)})
        ):
            changed = bytearray(data)
            changed[bit // 8] ^= 1 << bit % 8
            put(bytes(changed))
            tried += 1
            if not is_found():
                missed.append(f"{name}, bit {bit}")
        put(data)
    return tried, missed


def sampled(folder: Path, vkey: VerifierKey, bits: int = 2) -> tuple[int, list[str]]:
    """Flip bits in the checkpoint, and in the first, a middle and the last tile of every level."""
    with opened(folder) as source:
        size = source.count()
    chosen: list[Tile] = []
    for level in sorted({tile.level for tile in tiles.tiles(size)}):
        row = [tile for tile in tiles.tiles(size) if tile.level == level]
        chosen += sorted({row[0], row[len(row) // 2], row[-1]})
    entries = [tile.n * tiles.WIDTH for tile in chosen if tile.level == 0]
    if (folder / FILE).exists():
        keys = {
            "leaf": entries,
            "tile": [tile.n + 1_000_000 * tile.level for tile in chosen],
            "checkpoint": [size],
        }
        places = cells(folder, keys)
    else:
        bundles = [tile._replace(level=tiles.BUNDLES) for tile in chosen if tile.level == 0]
        places = stored_files(folder, ["checkpoint", *(tile.path for tile in (*chosen, *bundles))])
    return flipped(places, lambda: not is_sound(folder, vkey), bits)


def _is_found(root: Path, vkey: VerifierKey) -> bool:
    return bool(audited(root, vkey).total)


def main() -> int:
    """Flip every bit of a log of two passports, in the registry and in the tree exported from it."""
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place) / "r", Path(place) / "out"
        vkey = filled(folder, 2)
        export(folder, out, passports=True, progress=SILENT)
        whole = [
            ("database", cells(folder), folder),
            ("passports", stored_files(folder / "blobs"), folder),
            ("exported tree", stored_files(out), out),
        ]
        lost = 0
        for name, places, root in whole:
            tried, missed = flipped(places, partial(_is_found, root, vkey), None)
            lost += len(missed)
            print(f"{name}: {tried:,} bits, {len(missed)} not found {missed or ''}", flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
