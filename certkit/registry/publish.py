"""The public form of a log: a folder of files that any static host can serve (C2SP tlog-tiles).

    exported = export(folder, out)
    exported.size, exported.written

Written in this order: whatever the new checkpoint needs, all of it on the disk; then the checkpoint, by
renaming. So at any instant, and after a power cut at any instant, the checkpoint in the folder is one whose
tiles and bundles are all there. Nothing is exported that does not lead to the signed root, and what is there
already is read, compared and not touched: a folder with a file that is not this log's, with another log, or
with a later state of this one, is refused. Narrower forms of a tile stay where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from certkit.ground import files
from certkit.ground.errors import CertkitError, MismatchError, UsageError
from certkit.ground.wording import many
from certkit.registry import log as store
from certkit.registry.entry import read as parse
from certkit.registry.heads import BRING_BACK, head_of, refuse_fork
from certkit.registry.reader import CHECKPOINT, Published
from certkit.registry.writer import Registry
from certkit.tlog import tiles
from certkit.tlog.tree import leaf_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.ground.progress import Progress
    from certkit.registry.log import EntryLog
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.tiles import Tile


class Exported(NamedTuple):
    """What an export did: the size of the log, that of the tree before (None: a new one), files written."""

    origin: str
    size: int
    before: int | None
    written: int


def export(folder: Path, out: Path, *, passports: bool, progress: Progress) -> Exported:
    """Write the log of the registry in `folder` to `out`, or bring the tree there up to date.

    With `passports`, those are written too, into ``blobs/``; a tree that has them keeps having all. Raises
    `MismatchError` ``registry.export`` where `out` holds something else, a changed file or a later state,
    ``registry.inconsistent`` where the registry contradicts its checkpoint, `UsageError` ``usage.option``
    where `out` is in the registry, ``registry.busy`` or ``file.unwritable``, and as `Registry.open`.
    """
    if out.resolve().is_relative_to(folder.resolve()):
        raise UsageError("usage.option", "would be written into the registry", where=str(out))
    with Registry.open(folder) as registry:
        files.make_folder(out)
        with files.locked(out), registry.reading() as log:
            work = _TreeExport(registry, log, out)
            before = work.before()
            written = work.write(before, passports=passports, progress=progress)
    return Exported(work.head.origin, work.head.size, before.size if before else None, written)


class _TreeExport:
    """One export under way, on one state of the log."""

    def __init__(self, registry: Registry, log: EntryLog, out: Path) -> None:
        self._registry = registry
        self._log = log
        self._out = out
        self._tree = Published(out)
        self._note = log.cosigned()
        self.head = log.verified_head(registry.vkey)
        self._tile = tiles.verified(self.head.size, self.head.root, log.tile)

    def before(self) -> Checkpoint | None:
        """Return the checkpoint in the folder, None where there is no tree yet.

        Raises:
            MismatchError: ``registry.export`` unless this log goes on from it.
        """
        names = {item.name for item in self._out.iterdir()}
        if CHECKPOINT not in names:
            # Tiles without a checkpoint are what an export leaves that was cut off, and are compared below.
            if stray := sorted(names - {"tile", store.BLOBS}):
                raise self._foreign(f"holds {stray[0]}, and no log")
            return None
        try:
            old = head_of(self._tree.note())
        except CertkitError as error:
            raise self._foreign(f"its checkpoint cannot be read: {error.message}") from None
        if old.origin != self.head.origin:
            raise self._foreign(f"holds the log {old.origin}")
        try:
            refuse_fork(old, self.head, self._log.root_at)
        except MismatchError:
            raise MismatchError(
                "registry.export",
                f"its checkpoint is over {many(old.size, 'entry')} that this registry does not hold",
                where=str(self._out),
                hint=BRING_BACK,
            ) from None
        return old

    def _foreign(self, message: str) -> MismatchError:
        return MismatchError(
            "registry.export", message, where=str(self._out), hint="choose an empty folder, or the log's own"
        )

    def write(self, before: Checkpoint | None, *, passports: bool, progress: Progress) -> int:
        """Write what is new; return how many files that were."""
        size, places = before.size if before else 0, list(tiles.tiles(self.head.size))
        progress.start("exporting", len(places), "tiles")
        written = 0

        def items() -> Iterator[tuple[str, bytes]]:
            nonlocal written
            if passports or self._tree.passports:
                for name, data in self._passports():
                    written += 1
                    yield name, data
            for tile in places:
                # A file beyond the checkpoint, of an export that died, may never have reached the disk.
                covered = tiles.width(tile.level, tile.n, size) >= tile.width
                for file, data in self._files(tile):
                    if not self._is_there(file, data) or not covered:
                        written += 1
                        yield file.path, data
                progress.advance(1)

        try:
            files.write_all(self._out, items())
        finally:
            progress.finish()
        # What others wrote below the one that is there is not kept: nobody here can tell if it is true.
        if before is None or self._tree.note() != self._note:
            files.write(self._out / CHECKPOINT, self._note)
            written += 1
        return written

    def _files(self, tile: Tile) -> Iterator[tuple[Tile, bytes]]:
        """Yield a tile, and the bundle of its entries, each shown to lead to the signed root."""
        hashes = self._tile(tile.level, tile.n)
        if tile.level == 0:
            entries = self._log.entries(tile.n * tiles.WIDTH, tile.n * tiles.WIDTH + tile.width)
            if b"".join(leaf_hashes(entries)) != hashes:
                message = f"the entries of tile 0/{tile.n} do not lead to the root that was signed"
                raise MismatchError("registry.inconsistent", message)
            yield tile._replace(level=tiles.BUNDLES), tiles.encode_bundle(entries)
        yield tile, hashes

    def _is_there(self, tile: Tile, data: bytes) -> bool:
        """Tell whether the folder has a file already; raise `MismatchError` where it is another."""
        path = self._out / tile.path
        if path.exists() and files.read(path, limit=tiles.MAX_BUNDLE) != data:
            raise self._damaged(tile.path)
        return path.exists()

    def _damaged(self, name: str) -> MismatchError:
        return MismatchError(
            "registry.export",
            f"{name} is there and is not this log's",
            where=str(self._out),
            hint="if the file is damaged, remove it and export again",
        )

    def _passports(self) -> Iterator[tuple[str, bytes]]:
        for start in range(0, self.head.size, tiles.WIDTH):
            for entry in self._log.entries(start, start + tiles.WIDTH):
                stored = parse(entry).body.passport
                if stored is None:
                    continue
                target = store.blob_path(self._out, stored.sha256)
                name = target.relative_to(self._out).as_posix()
                if target.exists():
                    if store.intact_blob(self._out, stored.sha256) is None:
                        raise self._damaged(name)
                    files.flush(target, self._out)  # as above
                elif (data := self._registry.passport(stored.sha256)) is not None:
                    yield name, data  # else it was withdrawn, which the entry survives
