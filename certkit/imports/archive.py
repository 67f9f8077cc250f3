"""Reading a hostile ZIP archive member by member: bounded, nothing is unpacked to the disk.

`zipfile` reads the list of members. Each is read here: `zipfile` of Python 3.11 knows no zstd (method 93)
and takes as long to open a small member as to unpack it. A member whose name leaves the archive, that is
encrypted, or that declares more than the limit refuses the archive before anything is unpacked. What a member
really holds is limited again while it is read, and the whole by the ratio that `source` allows.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import zstandard

from certkit.ground.errors import InputError
from certkit.imports import source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet
    from pathlib import Path

MAX_LIST: Final = 16 * 1024 * 1024
"""Bytes of the list of members, each some 80, of which `zipfile` makes some 600 in memory."""

ZSTD: Final = 93
_ENCRYPTED: Final = 0x61  # flags: encrypted, patched, strongly encrypted
_MARK: Final = b"PK\x03\x04"
_HEADER: Final = struct.Struct("<26xHH")
"""What stands before a member: the mark among others, and how long its name and its extra field are."""

ANEW: Final = "copy the log again, or write it anew with `inspect log convert`"
_UNLIKE: Final = "Inspect writes no such name; ask where this file comes from before you open it elsewhere"
_LARGE: Final = "a run of this size is not read; leave it out of the log if you trust the file"
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, zstandard.ZstdError, OSError, ValueError)


class _ManyError(Exception):
    """An archive has too many members."""


class _Listed(io.BufferedReader):
    """A file of which no more than `MAX_LIST` bytes are read at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_LIST:
            raise _ManyError(f"its list of members has {size:,} bytes, limit {MAX_LIST:,}")
        return super().read(size)


class _Member(NamedTuple):
    """A member as the list states it: where it begins, how it is packed, its bytes and their CRC-32."""

    start: int
    method: int
    packed: int
    size: int
    checksum: int


class Archive:
    """An opened archive; `names` are those of its members, of which the last of a name counts."""

    def __init__(self, path: Path, name: str, limit: int) -> None:
        self._name, self._limit, self._size = name, limit, path.stat().st_size
        self._unpacked = 0
        self._file = path.open("rb")
        try:
            with _Listed(io.FileIO(path)) as file:
                listed = zipfile.ZipFile(file).infolist()
        except _ManyError as error:
            self._refuse(str(error), "write fewer samples into each log")
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            self._refuse(f"damaged or truncated archive: {error}")
        self._members: dict[str, _Member] = {}
        self._earlier: list[tuple[str, _Member]] = []  # members whose name comes again
        for member in listed:
            if (before := self._members.get(member.filename)) is not None:
                self._earlier.append((member.filename, before))
            self._members[member.filename] = self._checked(member)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def names(self) -> AbstractSet[str]:
        """The names of the members."""
        return self._members.keys()

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Raises:
            InputError: where it is damaged or too large.
        """
        return self._read(name, self._members[name])

    def earlier(self) -> Iterator[tuple[str, bytes]]:
        """Yield the names that come again with the contents of their earlier members; raise as `read`."""
        for name, member in self._earlier:
            yield name, self._read(name, member)

    def _read(self, name: str, member: _Member) -> bytes:
        try:
            content = self._content(name, member)
        except _DAMAGED as error:
            self._refuse(f"member {name!r} is damaged: {error}")
        if len(content) > member.size:
            self._refuse(f"member {name!r} holds more than it declares")
        if len(content) < member.size or zlib.crc32(content) != member.checksum:
            self._refuse(f"member {name!r} is damaged: wrong size or checksum")
        self._unpacked += member.size
        source.refuse_growth(self._unpacked, self._size, self._name)
        return content

    def _checked(self, member: zipfile.ZipInfo) -> _Member:
        name, largest = member.filename, max(member.file_size, member.compress_size)
        if name.startswith("/") or "\\" in name or ".." in name.split("/") or ":" in name.split("/", 1)[0]:
            self._refuse(f"member {name!r} has a name that leaves the archive", _UNLIKE)
        if member.flag_bits & _ENCRYPTED:
            self._refuse(f"member {name!r} is encrypted or patched")
        if largest > self._limit:
            self._refuse(f"member {name!r} declares {largest:,} bytes, limit {self._limit:,}", _LARGE)
        return _Member(
            member.header_offset, member.compress_type, member.compress_size, member.file_size, member.CRC
        )

    def _content(self, name: str, member: _Member) -> bytes:
        """Return what a member holds, at most a byte more than it declares."""
        self._file.seek(member.start)
        header = self._file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(_MARK):
            raise zipfile.BadZipFile("none begins where the list says so")
        named, extra = _HEADER.unpack(header)
        called = self._file.read(named)
        if called != name.encode(errors="replace") and called != name.encode("cp437", "replace"):
            raise zipfile.BadZipFile("it is called otherwise where it stands")
        self._file.seek(extra, io.SEEK_CUR)
        packed = self._file.read(member.packed)
        if member.method == zipfile.ZIP_STORED:
            return packed
        if member.method == zipfile.ZIP_DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)
        if member.method != ZSTD:
            self._refuse(f"member {name!r} is packed with method {member.method}; deflate and zstd are read")
        unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        with unpacker.stream_reader(packed, read_across_frames=True) as stream:
            return stream.read(member.size + 1)

    def _refuse(self, reason: str, hint: str = ANEW) -> NoReturn:
        self.close()
        raise InputError("import.source", reason, where=self._name, hint=hint)
