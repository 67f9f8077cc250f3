"""Reading a hostile source file, plain or gzipped, in bounded pieces.

The packed bytes are reported as progress. The unpacked bytes are limited in total and per row, against gzip
bombs and endless lines. A file is gzipped if it begins with gzip's two bytes, whatever its name. It is hashed
after it was read: a file that changes meanwhile is named by its later bytes.

    with opening(path, path.name, progress) as source:
        for number, line in source.lines():
            ...
    source.facts()      # name, SHA-256 and size of the file
"""

from __future__ import annotations

import gzip
import io
import stat
import zlib
from codecs import BOM_UTF8
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from certkit.bundle.manifest import ImportSource
from certkit.ground import files
from certkit.ground.errors import InputError
from certkit.imports.splitter import split

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.ground.progress import Progress
    from certkit.imports.splitter import Piece

MAX_ROW: Final = 16 * 1024 * 1024  # longest row, unpacked bytes

MAX_LOG_ROW: Final = 64 * 1024 * 1024
"""Longest run with its transcript, of which only a few fields are kept, unpacked bytes."""

MAX_RATIO: Final = 250
"""Unpacked bytes per packed byte above `FREE`; logs reach about 12, gzip itself 1,030."""

FREE: Final = 8 * 1024 * 1024
"""Unpacked bytes up to which the ratio is not limited, so that a short log of repeated texts is read."""

MAX_LINES: Final = 10_000_000
"""Lines of a text, blank ones too, and rows of a Parquet file, since of each row the place is kept."""

CHUNK: Final = 1 << 18
_HEAD: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_MANY_RUNS: Final = "if it holds many runs, name their list with `rows` under `[read]` in a mapping"


def refuse_growth(unpacked: int, packed: int, name: str) -> None:
    """Refuse a file whose first `packed` bytes unpack to more than `MAX_RATIO` times as many.

    Raises:
        InputError: ``import.unpacks``.
    """
    if unpacked > max(FREE, MAX_RATIO * packed):
        message = f"unpacks to more than {MAX_RATIO} times its size"
        raise InputError(
            "import.unpacks", message, where=name, hint="if you trust it, import its rows as JSON lines"
        )


class _Unpacked(io.RawIOBase):
    """The bytes after decompression, limited; the packed ones are reported as progress."""

    def __init__(self, raw: IO[bytes], name: str, progress: Progress) -> None:
        super().__init__()
        self._raw, self._name, self._progress = raw, name, progress
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        self._inner: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        self._told = self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            size: int = self._inner.readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            hint = "copy or download the file again; it is damaged or was cut off"
            raise InputError("import.source", f"damaged: {error}", where=self._name, hint=hint) from None
        self.tell_progress(self._raw.tell())
        self._size += size
        refuse_growth(self._size, self._told, self._name)
        return size

    def tell_progress(self, at: int) -> None:
        """Report the packed bytes before place `at` that were not reported yet."""
        self._progress.advance(at - self._told)
        self._told = at


class Source:
    """An opened source file; see the module's description."""

    def __init__(self, path: Path, name: str, unpacked: _Unpacked) -> None:
        self.name = name
        self._path, self._unpacked = path, unpacked
        self._stream = io.BufferedReader(unpacked, CHUNK)
        if self._stream.peek(3).startswith(BOM_UTF8):  # Windows writes it before JSON too
            self._stream.read(3)

    def head(self) -> bytes:
        """Return up to 64 KiB from the beginning of the file, without consuming them."""
        return self._stream.peek(_HEAD)[:_HEAD]

    @property
    def array(self) -> bool:
        """Whether what is not read yet begins like a JSON array."""
        return self.head().lstrip()[:1] == b"["

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its number, from 1, without its line end."""
        number = 0
        while line := self._stream.readline(MAX_ROW + 1):
            number += 1
            self._check_row(number, len(line))
            yield number, line.rstrip(b"\r\n")

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """Yield the JSON values of the file, each with its line: an array's items, lines, or the whole."""
        head = self.head().lstrip()
        first, newline, _ = head.partition(b"\n")
        if self.array:
            yield from ((piece.line, piece.data) for piece in self.pieces())
        elif newline and not first.rstrip().endswith(b"}"):
            yield 1, self.read(MAX_ROW)
        else:
            yield from self.lines()

    def pieces(self, limit: int | None = None, within: str | None = None) -> Iterator[Piece]:
        """Yield the rows of the JSON document that the file holds, as `splitter.split` does."""
        chunks = iter(lambda: self._stream.read(CHUNK), b"")
        return split(chunks, self.name, MAX_ROW if limit is None else limit, within)

    def text(self, encoding: str) -> Iterator[tuple[int, str]]:
        """Yield each line as text, with its number and its line end; a byte order mark is left out.

        Raises:
            InputError: ``json.encoding`` where the bytes are not in the encoding.
        """
        stream = io.TextIOWrapper(self._stream, encoding, newline="")
        number = 0
        try:
            while line := stream.readline(MAX_ROW + 1):
                number += 1
                self._check_row(number, len(line))
                if number > MAX_LINES:
                    raise InputError("import.source", f"more than {MAX_LINES:,} lines", where=self.name)
                yield number, line.removeprefix("\ufeff") if number == 1 else line
        except UnicodeError as error:
            # The wrapper decodes more than a line at once: lines before the bad byte are counted too.
            before = getattr(error, "object", b"")[: getattr(error, "start", 0)].count(b"\n")
            where = f"{self.name}:{number + 1 + before}"
            reason = f"not {encoding} hereabouts: {getattr(error, 'reason', error)}"
            raise InputError("json.encoding", reason, where=where) from None

    def read(self, limit: int) -> bytes:
        """Return the whole content, of at most `limit` bytes."""
        data = self._stream.read(limit + 1)
        if len(data) > limit:
            message = f"larger than {limit:,} bytes"
            raise InputError("json.too-large", message, where=self.name, hint=_MANY_RUNS)
        return data

    def facts(self) -> ImportSource:
        """Return name, SHA-256 and size of the file."""
        size = self._path.stat().st_size
        self._unpacked.tell_progress(size)
        return ImportSource(name=self.name, sha256=files.sha256(self._path), size=size)

    def _check_row(self, number: int, size: int) -> None:
        if size > MAX_ROW:
            where = f"{self.name}:{number}"
            message = f"row longer than {MAX_ROW:,} bytes"
            raise InputError("json.too-large", message, where=where, hint=_MANY_RUNS * (number == 1))


@contextmanager
def opening(path: Path, name: str, progress: Progress) -> Iterator[Source]:
    """Open a regular file as a `Source` called `name`; its bytes are reported to `progress`.

    Opening and reading raise `InputError` ``file.missing``, ``file.unreadable`` or ``import.source``.
    """
    try:
        raw = path.open("rb", buffering=0) if stat.S_ISREG(path.stat().st_mode) else None
    except FileNotFoundError:
        raise InputError("file.missing", "not found", where=name) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError("file.unreadable", reason, where=name) from error
    if raw is None:
        raise InputError("import.source", "expected a regular file", where=name)
    with raw:
        source = Source(path, name, _Unpacked(raw, name, progress))
        if source.head().startswith(_LFS):
            hint = "in the folder that it comes from: git lfs pull"
            raise InputError("import.source", "a Git LFS pointer: git lfs pull", where=name, hint=hint)
        yield source
