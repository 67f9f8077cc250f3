"""Durable file writes, and reading files that users name. No other module replaces a file.

A file is written beside its target, flushed to the disk, renamed over it, and the folder is flushed,
so that after a power cut a reader finds either the old bytes or the new ones. An exception
inside `writing` leaves the target as it was and nothing beside it.

Only regular files are read: a pipe can keep a reader waiting for ever, and a device may never end. Pipes
that the shell has opened are read, such as /dev/stdin, or /dev/fd/63 of ``<(command)``.

`packaged` says where the schemas and templates are: in the installed package, or at the root of a checkout.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from certkit.ground.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import BufferedReader

RENAME: Final = "choose another name"
"""The hint about a name that is taken."""

_OPENED: Final = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
_TAIL: Final = 1 << 16
_KINDS: Final = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}


def root() -> Path:
    """Return the folder that holds ``schemas/`` and ``templates/``."""
    package = Path(__file__).parents[1]
    installed = package / "_data"
    return installed if installed.is_dir() else package.parent


def packaged(*parts: str) -> Path:
    """Return the path of a packaged file, such as ``packaged("schemas", "record.v1.schema.json")``."""
    return root().joinpath(*parts)


@contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    """Raise `UsageError` ``file.unwritable`` where the operating system refuses."""
    try:
        yield
    except OSError as error:
        raise UsageError("file.unwritable", _words(error), where=str(path)) from error


@contextmanager
def writing(path: Path, *, mode: int = 0o644, overwrite: bool = True) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` durably when the block ends without an exception.

    Raises:
        UsageError: as `check_target` does, and ``file.unwritable`` where the operating system refuses.
    """
    with _unwritable(path):
        check_target(path, overwrite=overwrite)
        _make_folder(path.parent)
        with _placing(path, mode) as stream:
            yield stream
        _sync(path.parent)


def check_target(path: Path, *, overwrite: bool, hint: str = RENAME) -> None:
    """Raise `UsageError` where a file may not be written to `path`; call it before long work.

    ``file.exists`` where it exists and `overwrite` is false, ``file.not-regular`` where it exists and is no
    regular file.
    """
    if not overwrite and (path.exists() or path.is_symlink()):
        raise UsageError("file.exists", "exists", where=str(path), hint=hint)
    if _is_opened(path) or (path.exists() and not path.is_file()):
        raise UsageError("file.not-regular", f"is {_kind(path)}, not a file", where=str(path))


def _temporary(path: Path) -> str:
    """Return how the name of a file begins that becomes `path`."""
    return f".{path.name[:40]}."


@contextmanager
def _placing(path: Path, mode: int) -> Iterator[IO[bytes]]:
    """Replace a file by new bytes that are on the disk; the caller must flush the folder."""
    descriptor, temporary = tempfile.mkstemp(prefix=_temporary(path), dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        os.replace(temporary, path)  # noqa: PTH105, TID251 - this module is the door
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def write(path: Path, data: bytes, *, mode: int = 0o644, overwrite: bool = True) -> None:
    """Write `data` to `path` durably; see `writing`."""
    with writing(path, mode=mode, overwrite=overwrite) as stream:
        stream.write(data)


@contextmanager
def building(path: Path) -> Iterator[Path]:
    """Give an empty folder that becomes `path` when the block ends without an exception.

    Otherwise nothing is left behind.

    Raises:
        UsageError: ``file.exists`` where `path` is a file or a folder that is not empty, and
            ``file.unwritable`` where the operating system refuses.
    """
    with _unwritable(path):
        if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
            raise UsageError("file.exists", "exists and is not an empty folder", where=str(path), hint=RENAME)
        _make_folder(path.parent)
        temporary = Path(tempfile.mkdtemp(prefix=_temporary(path), dir=path.parent))
        try:
            yield temporary
            temporary.chmod(0o755)
            for folder in (temporary, *(item for item in temporary.rglob("*") if item.is_dir())):
                _sync(folder)
            temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)  # there is none where it was renamed
        _sync(path.parent)


@contextmanager
def appending(path: Path) -> Iterator[Callable[[bytes], None]]:
    """Give a function that appends bytes to a file, at once for other programs to see.

    They are flushed to the disk after every 32 appends and at the end; a power cut between loses the last
    ones or leaves part of one.

    Raises:
        UsageError: ``file.unwritable``.
    """
    with _unwritable(path), path.open("ab", buffering=0) as stream:
        written = 0

        def append(data: bytes) -> None:
            nonlocal written
            stream.write(data)
            written += 1
            if written % 32 == 0:
                os.fsync(stream.fileno())

        try:
            yield append
        finally:
            os.fsync(stream.fileno())


def remove_temporary(path: Path) -> None:
    """Remove the files that a writer of `path` left beside it when it was killed."""
    with _unwritable(path):
        for leftover in path.parent.glob(f"{_temporary(path)}*"):
            leftover.unlink()


def remove(path: Path) -> None:
    """Remove a file durably, if it is there.

    Raises:
        UsageError: ``file.unwritable``.
    """
    with _unwritable(path):
        path.unlink(missing_ok=True)
        _sync(path.parent)


def cut_last_line(path: Path) -> None:
    """Cut off what follows the last newline of a file, durably; do nothing where there is no such file."""
    with _unwritable(path):
        if not path.is_file():
            return
        with path.open("r+b") as stream:
            at = size = stream.seek(0, os.SEEK_END)
            newline = -1
            while newline < 0 < at:
                stream.seek(start := max(0, at - _TAIL))
                newline = stream.read(at - start).rfind(b"\n")
                at = start
            stream.truncate(min(size, at + newline + 1))
            os.fsync(stream.fileno())


def move(source: Path, target: Path) -> None:
    """Rename a file over another one in the same folder, durably.

    Raises:
        UsageError: ``file.unwritable``.
    """
    with _unwritable(target):
        source.replace(target)
        _sync(target.parent)


def lift(folder: Path) -> None:
    """Move the content of `folder` into its parent, and remove it; no other program may use it yet."""
    with _unwritable(folder):
        for item in sorted(folder.iterdir()):
            item.replace(folder.parent / item.name)
        folder.rmdir()


def write_all(top: Path, items: Iterable[tuple[str, bytes]]) -> None:
    """Write many files below `top` durably: all are on the disk when this returns, each whole or absent.

    `items` are paths below `top` with their bytes. Every folder on the way is flushed once, at the end,
    even if it existed: the program that made it may have died before flushing.

    Raises:
        UsageError: ``file.unwritable``.
    """
    folders: dict[Path, None] = {}
    target = top
    try:
        for path, data in items:
            target = top / path
            if target.parent not in folders:
                _make_folder(target.parent)
                folders |= dict.fromkeys([target.parent, *target.parent.parents])
            with _placing(target, 0o644) as stream:
                stream.write(data)
        for target in folders:
            if target == top.parent or target.is_relative_to(top):
                _sync(target)
    except OSError as error:
        raise UsageError("file.unwritable", _words(error), where=str(target)) from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes that call this function.

    Raises:
        UsageError: ``registry.busy`` where another process holds it, ``file.unwritable`` where the system
            refuses.
    """
    import fcntl  # noqa: PLC0415 - Windows has no such module

    with _unwritable(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        with _unwritable(folder):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                message = "another program is writing here"
                raise UsageError("registry.busy", message, where=str(folder)) from error
        yield
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, and its parents, durably.

    Raises:
        UsageError: ``file.unwritable``.
    """
    with _unwritable(folder):
        _make_folder(folder)


def flush(path: Path, below: Path) -> None:
    """Wait until an existing file, and its name in every folder from `below` on, is on the disk.

    The program that wrote it may have died before flushing.

    Raises:
        UsageError: ``file.unwritable``.
    """
    with _unwritable(path):
        for item in (path, *path.parents):
            _sync(item)
            if item == below:
                break


def read(path: Path, *, limit: int) -> bytes:
    """Return the bytes of a file of at most `limit` bytes.

    Raises:
        InputError: ``file.missing``, ``file.not-regular``, ``file.unreadable`` or ``json.too-large``.
    """
    with reading(path) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise InputError("json.too-large", f"larger than {limit:,} bytes", where=str(path))
    return data


def inside(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield everything below a folder except folders, and whether it is a link; links are not followed.

    If `folder` itself is a link, only the link is yielded; if it does not exist, nothing.

    Raises:
        InputError: ``file.unreadable``.
    """
    if folder.is_symlink():
        yield folder, True
        return
    waiting = [folder] if folder.exists() else []
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as items:
                for item in items:
                    if item.is_dir(follow_symlinks=False):
                        waiting.append(place / item.name)
                    else:
                        yield place / item.name, item.is_symlink()
        except OSError as error:
            raise InputError("file.unreadable", _words(error), where=str(place)) from error


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits, reading it in pieces; raises as `reading`."""
    return hashed(path)[0]


def hashed(path: Path) -> tuple[str, int]:
    """Return the SHA-256 of a file as `sha256` does, and how many bytes it is of."""
    with reading(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()


class Hashing(io.RawIOBase):
    """An open file of which everything that is read is hashed, in `digest`, and counted, in `size`."""

    def __init__(self, stream: BufferedReader) -> None:
        super().__init__()
        self._stream = stream
        self.digest = hashlib.sha256()
        self.size = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return how many bytes."""
        count = self._stream.readinto(buffer)
        self.digest.update(memoryview(buffer)[:count])
        self.size += count
        return count


@contextmanager
def reading(path: Path) -> Iterator[BufferedReader]:
    """Open a file that a user named.

    Raises:
        InputError: ``file.missing``, ``file.not-regular``, or ``file.unreadable`` where the operating
            system refuses, also while the block reads.
    """
    try:
        check_source(path)
        # If it became a pipe since the check, opening it must not wait for a writer.
        patient = 0 if _is_opened(path) else os.O_NONBLOCK
        with os.fdopen(os.open(path, os.O_RDONLY | patient), "rb") as stream:
            yield stream
    except FileNotFoundError:
        raise InputError("file.missing", "not found", where=str(path)) from None
    except OSError as error:
        raise InputError("file.unreadable", _words(error), where=str(path)) from error


def check_source(path: Path) -> None:
    """Raise `InputError` ``file.not-regular`` where `path` exists and is no file to read."""
    if path.exists() and not path.is_file() and not (_is_opened(path) and not path.is_dir()):
        raise InputError("file.not-regular", f"is {_kind(path)}, not a file", where=str(path))


def _is_opened(path: Path) -> bool:
    """Tell whether `path` names a file that this process or its shell has opened."""
    return path.parent in _OPENED and (path.name.isdigit() or path.name in {"stdin", "stdout", "stderr"})


def _kind(path: Path) -> str:
    return f"a {_KINDS.get(stat.S_IFMT(path.stat().st_mode), 'device')}"


def _words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents so that they exist after a power cut."""
    missing = [item for item in (folder, *folder.parents) if not item.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for item in missing:
        _sync(item.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
