"""Durable file writes, and the only place that replaces a file.

A file is written beside its target, flushed to the disk, renamed over it, and the folder is flushed,
so that after a power cut a reader finds the old bytes or the new ones and never a part. An exception
inside `writing` leaves the target as it was and nothing beside it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from certkit.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def writing(path: Path, *, mode: int = 0o644, overwrite: bool = True) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` durably when the block ends without an exception.

    Raises `UsageError` ``file.exists`` where `overwrite` is false and the target is there, and
    ``file.unwritable`` for whatever the operating system refuses.
    """
    temporary: str | None = None
    try:
        _make_folder(path.parent)
        if not overwrite and (path.exists() or path.is_symlink()):
            raise UsageError(
                "file.exists", "exists", where=str(path), hint="choose another name or remove it"
            )
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(temporary, path)  # noqa: PTH105, TID251 - this module is the door
        temporary = None
        _sync_folder(path.parent)
    except OSError as error:
        raise UsageError("file.unwritable", _words(error), where=str(path)) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()


def write(path: Path, data: bytes, *, mode: int = 0o644, overwrite: bool = True) -> None:
    """Write `data` to `path` durably; see `writing`."""
    with writing(path, mode=mode, overwrite=overwrite) as stream:
        stream.write(data)


@contextmanager
def building(path: Path) -> Iterator[Path]:
    """Give an empty folder that becomes `path` when the block ends without an exception.

    Otherwise nothing is left behind. Raises `UsageError` ``file.exists`` where `path` is a file or a
    folder that is not empty, and ``file.unwritable`` for whatever the operating system refuses.
    """
    temporary: Path | None = None
    try:
        if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
            raise UsageError(
                "file.exists",
                "exists and is not an empty folder",
                where=str(path),
                hint="choose another name or remove it",
            )
        _make_folder(path.parent)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", dir=path.parent))
        yield temporary
        temporary.chmod(0o755)
        for folder in (temporary, *(item for item in temporary.rglob("*") if item.is_dir())):
            _sync_folder(folder)
        temporary.replace(path)
        temporary = None
        _sync_folder(path.parent)
    except OSError as error:
        raise UsageError("file.unwritable", _words(error), where=str(path)) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def lift(folder: Path) -> None:
    """Move what is in `folder`, which another program does not see yet, into its parent, and remove it."""
    try:
        for item in sorted(folder.iterdir()):
            item.replace(folder.parent / item.name)
        folder.rmdir()
    except OSError as error:
        raise UsageError("file.unwritable", _words(error), where=str(folder)) from error


def read(path: Path, *, limit: int) -> bytes:
    """Return the bytes of a file of at most `limit` bytes.

    Raises `InputError` ``file.missing``, ``file.unreadable`` or ``json.too-large``.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except FileNotFoundError:
        raise InputError("file.missing", "not found", where=str(path)) from None
    except OSError as error:
        raise InputError("file.unreadable", _words(error), where=str(path)) from error
    if len(data) > limit:
        raise InputError("json.too-large", f"larger than {limit:,} bytes", where=str(path))
    return data


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits, reading it in pieces."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError("file.unreadable", _words(error), where=str(path)) from error


def _words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents so that they, too, are there after a power cut."""
    missing = [item for item in (folder, *folder.parents) if not item.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for item in missing:
        _sync_folder(item.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
