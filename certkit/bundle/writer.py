"""The only way to make a bundle folder: imports, simulations and probes write through a `BundleWriter`.

A bundle that is made in one go is all or nothing: an exception leaves nothing behind.

    with new_bundle(Path("bundle")) as bundle:
        bundle.add({"run_id": "r1", ...})
        bundle.write("calibration/judge.jsonl", data)
        bundle.describe({"agent": {"name": "triage", "version": "1.4.0"}, "protocol": {...}})
        bundle.seal()

A run of hours begins the same way, and goes on in the folder. Every line that it appends is there for other
programs at once, and stays there when the run is killed.

    bundle = BundleWriter(Path("bundle"))
    bundle.resume(RECORD_FILE)
    with bundle.appending(RECORD_FILE) as append:
        append(record_line({"run_id": "r2", ...}))
    bundle.seal()

Records are written as they are given: who reads the bundle decides whether they are right.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from certkit.bundle.folder import bundle_of, hash_files, list_files, read_manifest
from certkit.bundle.manifest import MANIFEST_NAME, MANIFEST_SCHEMA, Manifest, unsafe_path
from certkit.ground import base, canonical, files
from certkit.ground.errors import InputError
from certkit.ground.progress import SILENT, Progress
from certkit.record import trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from certkit.bundle.folder import Bundle

RECORD_FILE: Final = "records/runs.jsonl"
"""Where the records of a bundle are that certkit makes."""

_PLAIN: Final = frozenset({str, int, bool})


@contextmanager
def new_bundle(out: Path) -> Iterator[BundleWriter]:
    """Make a folder that becomes `out` when the block ends without an exception.

    Raises:
        UsageError: ``file.exists`` where `out` is a file or a folder that is not empty, ``file.unwritable``
            where the operating system refuses.
    """
    with files.building(out) as folder, BundleWriter(folder) as writer:
        yield writer


def init_bundle(root: Path, *, agent: str, version: str, task_salt: str | None = None) -> None:
    """Write the manifest of a bundle of measured evidence into a folder, for a user to put records beside it.

    Raises:
        UsageError: ``file.exists`` where `root` already has a manifest.
    """
    protocol = {"origin": "measured"} | ({} if task_salt is None else {"task_salt": task_salt})
    named = {"name": agent, "version": version}
    document = {"$schema": MANIFEST_SCHEMA, "agent": named, "protocol": protocol}
    BundleWriter(root).describe(document, overwrite=False)
    files.make_folder(root / "records")


def record_line(row: Mapping[str, Any]) -> bytes:
    """Return a record as a line of JSON, which is `canonical.line` in a quarter of its time."""
    plain = _PLAIN.issuperset(map(type, row.values()))
    return msgspec.json.encode(row) + b"\n" if plain else canonical.line(row)


class BundleWriter:
    """Writes the files of a bundle into a folder; the end of the block closes the records.

    Attributes:
        folder: The folder, which need not exist.
        size: Bytes of the records that were added.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.size = 0
        self._stack = ExitStack()
        self._stream: IO[bytes] | None = None
        self._waiting: list[
            tuple[bytes, bool]
        ] = []  # records, and whether the trace file will hold their run
        self._traces: trace.TracePacker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        self._stack.__exit__(kind, error, traceback)

    def add(self, row: Mapping[str, Any], log: tuple[str, bytes] | None = None) -> None:
        """Add a record to `RECORD_FILE`, which replaces an earlier one when the writer is closed.

        Args:
            row: The fields of the record.
            log: The form (`certkit.record.trace.FORMS`) and the JSON of the run's log, to be enclosed as its
                trace. The record then waits for the digest of its trace file.

        Raises:
            ValueError: The row has a value that JSON has not.
        """
        line = record_line(row)
        if self._stream is None:
            self._stream = self._stack.enter_context(files.writing(self.folder / RECORD_FILE))
        self._waiting.append((line, log is not None))
        self.size += len(line)
        if log is not None:
            self._traces = self._traces or trace.TracePacker()
            self._traces.add(str(row["run_id"]), *log)
        if self._traces is None or self._traces.size >= trace.FULL:
            self._flush()

    def _flush(self) -> None:
        """Write the trace file that was begun, and the records that wait for its digest."""
        named = b""
        if self._traces is not None:
            named = b',"trace":"%b"}\n' % self.enclose(self._traces).encode()
        if self._stream is not None:
            self._stream.writelines(line[:-2] + named if traced else line for line, traced in self._waiting)
        self._waiting, self._traces = [], None

    def close(self) -> None:
        """Write what waits, durably; an `add` after it begins `RECORD_FILE` again."""
        self._flush()
        self._stack.close()
        self._stream = None

    def discard(self) -> None:
        """Remove the folder with all that was written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def enclose(self, traces: trace.TracePacker) -> str:
        """Write a trace file under ``traces/``, and return its digest, by which records name it."""
        packed = traces.packed()
        digest = hashlib.sha256(packed).hexdigest()
        self.write(f"traces/{digest}{trace.SUFFIX}", packed)
        return f"sha256:{digest}"

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the bundle durably, over an earlier one of the name."""
        files.write(self._inside(path), data)

    def remove(self, path: str) -> None:
        """Remove a file of the bundle, if it is there."""
        files.remove(self._inside(path))

    def resume(self, path: str) -> None:
        """Remove what a kill left: the half of a last line of a file, and temporary files of the writer."""
        for place in (self.folder / MANIFEST_NAME, self._inside(path)):
            files.remove_temporary(place)
        files.cut_last_line(self._inside(path))

    def appending(self, path: str) -> AbstractContextManager[Callable[[bytes], None]]:
        """Give a function that appends lines to a file; see `certkit.ground.files.appending`."""
        target = self._inside(path)
        files.make_folder(target.parent)
        return files.appending(target)

    def _inside(self, path: str) -> Path:
        if reason := unsafe_path(path):
            raise InputError("bundle.path-unsafe", f"{path!r} {reason}", where=str(self.folder))
        return self.folder / path

    def describe(
        self, document: Mapping[str, Any], *, code: str = "bundle.manifest-invalid", overwrite: bool = True
    ) -> Manifest:
        """Write the manifest of a bundle that is not sealed yet.

        Args:
            document: The manifest without its schema and list of files.
            code: The code of the error where it does not have the published form.
            overwrite: Whether an earlier manifest may be replaced.

        Raises:
            InputError: `code`.
            UsageError: ``file.exists``, ``file.unwritable``.
        """
        made = {"schema": MANIFEST_SCHEMA, **document}
        manifest = base.validate(Manifest, made, code=code, where=MANIFEST_NAME)
        data = canonical.pretty(manifest.to_dict()).encode()
        files.write(self.folder / MANIFEST_NAME, data, overwrite=overwrite)
        return manifest

    def seal(self, *, attempt: int | None = None, progress: Progress = SILENT) -> Bundle:
        """Close the records and seal the bundle; see `seal`."""
        self.close()
        return seal(self.folder, attempt=attempt, progress=progress)


def seal(root: Path, *, attempt: int | None = None, progress: Progress = SILENT) -> Bundle:
    """Write the list of all files into the manifest, and return the sealed bundle.

    Sealing again writes a new list.

    Args:
        root: The folder of the bundle.
        attempt: How many evaluations of the agent there have been, this one included (None: as it states).
        progress: Receives how many bytes were hashed.

    Raises:
        InputError: The bundle cannot be opened, or it changes while it is sealed.
    """
    present = list_files(root)
    document, _ = read_manifest(root)
    if attempt is not None:
        document["protocol"] |= {"attempt": attempt}
    document["files"] = hashed = hash_files(root, present, progress)
    manifest = base.validate(Manifest, document, code="bundle.manifest-invalid", where=MANIFEST_NAME)
    bundle = bundle_of(root, document, manifest, hashed)
    if list_files(root) != {file["path"]: file["size"] for file in hashed}:
        hint = "seal it when nothing writes there any more"
        raise InputError("bundle.file-changed", "changes while it is sealed", where=str(root), hint=hint)
    files.write(root / MANIFEST_NAME, canonical.pretty(document).encode())
    return bundle
