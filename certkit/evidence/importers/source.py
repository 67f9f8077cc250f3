"""Reading a hostile source file, plain or gzipped: bounded, and hashed while it is read.

A source is read once, in pieces. Its packed bytes are hashed and reported as progress. Its unpacked bytes
are limited in total and per row, against gzip bombs and endless lines. A file is gzipped if it begins with
gzip's two bytes, whatever its name.

    with opening(path, path.name, progress) as source:
        for number, line in source.lines():
            ...
    source.facts()      # name, SHA-256 and size of what was read
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import stat
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from certkit.errors import InputError
from certkit.evidence.bundle.manifest import ImportSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.progress import Progress

MAX_ROW: Final = 16 * 1024 * 1024
"""Longest row, unpacked bytes."""

MAX_RATIO: Final = 250
"""Unpacked bytes per packed byte above `FREE`; logs reach about 12, gzip itself 1,030."""

FREE: Final = 64 * 1024 * 1024
"""Unpacked bytes up to which the ratio is not limited."""

_CHUNK: Final = 1 << 18
_GZIP: Final = b"\x1f\x8b"
_MARKS = re.compile(rb'["\\\[\]{},\n]')


class _Packed(io.RawIOBase):
    """The bytes of the file: hashed, counted, reported as progress."""

    def __init__(self, raw: IO[bytes], name: str, progress: Progress) -> None:
        super().__init__()
        self._raw, self._name, self._progress = raw, name, progress
        self.digest = hashlib.sha256()
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._raw.read(len(buffer))
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise InputError("file.unreadable", reason, where=self._name) from error
        buffer[: len(data)] = data
        self.digest.update(data)
        self.size += len(data)
        self._progress.advance(len(data))
        return len(data)


class _Unpacked(io.RawIOBase):
    """The bytes after decompression, limited."""

    def __init__(self, inner: IO[bytes], packed: _Packed, name: str) -> None:
        super().__init__()
        self._inner, self._packed, self._name = inner, packed, name
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._inner.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise InputError("import.source", f"damaged gzip data: {error}", where=self._name) from None
        buffer[: len(data)] = data
        self._size += len(data)
        if self._size > max(FREE, MAX_RATIO * self._packed.size):
            raise InputError(
                "import.source",
                f"unpacks to more than {MAX_RATIO} times its size",
                where=self._name,
                hint="unpack it yourself if you trust it, and import the plain file",
            )
        return len(data)


class Source:
    """An opened source file; see the module's description."""

    def __init__(self, name: str, stream: io.BufferedReader, packed: _Packed) -> None:
        self.name = name
        self._stream = stream
        self._packed = packed

    def first_byte(self) -> bytes:
        """Return the first byte that is not white space among the first 4,096, without consuming it."""
        return self._stream.peek(4096)[:4096].lstrip()[:1]

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its number, from 1, without its line end."""
        number = 0
        while line := self._stream.readline(MAX_ROW + 1):
            number += 1
            self._check_row(number, len(line))
            yield number, line.rstrip(b"\r\n")

    def items(self) -> Iterator[tuple[int, bytes]]:
        """Yield each item of the JSON array that the file holds, with the line where it begins.

        The form of the array is checked, the items are not.
        """
        splitter = _Splitter(self.name)
        while chunk := self._stream.read(_CHUNK):
            yield from splitter.feed(chunk)
            self._check_row(splitter.line, len(splitter.rest))
        splitter.close()

    def read(self, limit: int) -> bytes:
        """Return the whole content, of at most `limit` bytes."""
        data = self._stream.read(limit + 1)
        if len(data) > limit:
            raise InputError("json.too-large", f"larger than {limit:,} bytes", where=self.name)
        return data

    def facts(self) -> ImportSource:
        """Return name, SHA-256 and size of the file; reads the rest of it."""
        while self._packed.read(_CHUNK):
            pass
        return ImportSource(name=self.name, sha256=self._packed.digest.hexdigest(), size=self._packed.size)

    def _check_row(self, number: int, size: int) -> None:
        if size > MAX_ROW:
            raise InputError(
                "json.too-large", f"row longer than {MAX_ROW:,} bytes", where=f"{self.name}:{number}"
            )


class _Splitter:
    """Cuts the text of a JSON array, fed in pieces, at its top-level commas."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.rest = bytearray()  # the current item so far
        self.line = 1  # the line where it begins
        self._here = 1
        self._depth = 0
        self._in_string = self._closed = False
        self._escaped = -1  # offset in the next piece of a character that a backslash escapes
        self._items = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        start = 0
        for match in _MARKS.finditer(chunk):
            at, mark = match.start(), match.group()
            self._here += mark == b"\n"
            if at == self._escaped or (self._in_string and mark not in b'"\\'):
                continue
            if mark == b"\\":
                self._escaped = at + 1
            elif mark == b'"':
                self._in_string = not self._in_string
            elif mark in b"[{":
                self._depth += 1
                if self._depth == 1:
                    self._open(mark, chunk[start:at])
                    start = at + 1
            elif mark in b"]}" or (mark == b"," and self._depth == 1):
                self._depth -= mark in b"]}"
                if self._depth == 0 and mark == b"}":
                    raise InputError("json.syntax", "expected ']'", where=f"{self._name}:{self._here}")
                if self._depth == 0 or mark == b",":
                    yield from self._item(chunk[start:at], last=mark != b",")
                    start = at + 1
        self._escaped = self._escaped - len(chunk) if self._escaped >= len(chunk) else -1
        self.rest += chunk[start:]

    def close(self) -> None:
        if not self._closed or self.rest.strip():
            reason = "holds more than one array" if self._closed else "ends inside the array"
            raise InputError("json.syntax", reason, where=f"{self._name}:{self._here}")

    def _open(self, mark: bytes, before: bytes) -> None:
        if self._closed or mark != b"[" or before.strip() or self.rest.strip():
            raise InputError("json.syntax", "expected one array", where=f"{self._name}:{self._here}")
        self.rest.clear()
        self.line = self._here

    def _item(self, piece: bytes, *, last: bool) -> Iterator[tuple[int, bytes]]:
        self.rest += piece
        text = bytes(self.rest)
        self.rest.clear()
        lead = text[: len(text) - len(text.lstrip())].count(b"\n")
        number, self.line = self.line + lead, self._here
        self._closed = last
        if last and not text.strip() and self._items == 0:
            return
        self._items += 1
        yield number, text.strip()


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
        packed = _Packed(raw, name, progress)
        inner: IO[bytes] = io.BufferedReader(packed, _CHUNK)
        if inner.peek(2)[:2] == _GZIP:  # type: ignore[attr-defined]
            inner = gzip.GzipFile(fileobj=inner)  # type: ignore[assignment]
        yield Source(name, io.BufferedReader(_Unpacked(inner, packed, name), _CHUNK), packed)
