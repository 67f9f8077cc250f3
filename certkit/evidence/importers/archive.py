"""Reading a hostile ZIP archive member by member: bounded, nothing is unpacked to the disk.

Members may be stored, deflated, or packed with zstd (method 93), which `zipfile` of Python 3.11 cannot read.
A member whose name leaves the archive, that is encrypted, or that declares more than the limit refuses the
archive before anything is unpacked. What a member really holds is limited again while it is read, and the
whole by the ratio that `source` allows.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NoReturn

import zstandard

from certkit.errors import InputError
from certkit.evidence.importers import source

if TYPE_CHECKING:
    from pathlib import Path

MAX_LIST: Final = 16 * 1024 * 1024
"""Bytes of the list of members, each some 80, of which `zipfile` makes some 600 in memory."""

ZSTD: Final = 93
_ENCRYPTED: Final = 1
ANEW: Final = "copy the log again, or write it anew with `inspect log convert`"
_UNLIKE: Final = "Inspect writes no such name; ask where this file comes from before you open it elsewhere"
_LARGE: Final = "a run of this size is not read; leave it out of the log if you trust the file"
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, zstandard.ZstdError, EOFError)


class _ManyError(Exception):
    """An archive has too many members."""


class _Listed(io.BufferedReader):
    """A file of which, while `limit` is set, no more than so many bytes are read at once."""

    limit: int | None = MAX_LIST

    def read(self, size: int | None = -1, /) -> bytes:
        if self.limit is not None and size is not None and size > self.limit:
            raise _ManyError(f"its list of members has {size:,} bytes, limit {self.limit:,}")
        return super().read(size)


class Archive:
    """An opened archive; `names` are those of its members, none of them twice."""

    def __init__(self, path: Path, name: str, limit: int) -> None:
        self._name, self._limit, self._size = name, limit, path.stat().st_size
        self._unpacked = 0
        self._file = _Listed(io.FileIO(path))
        try:
            self._zip = zipfile.ZipFile(self._file)
            self._file.limit = None
        except _ManyError as error:
            self._refuse(str(error), "write fewer samples into each log")
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            self._refuse(f"damaged or truncated archive: {error}")
        members = self._zip.infolist()
        self._members = {member.filename: member for member in members}
        if len(self._members) < len(members):
            self._refuse("holds two members of one name")
        for member in self._members.values():
            self._check(member)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def names(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """Return the content of a member; raise `InputError` where it is damaged or too large."""
        member = self._members[name]
        try:
            with self._open(member) as stream:
                content: bytes = stream.read(member.file_size + 1)
        except (*_DAMAGED, OSError, NotImplementedError, RuntimeError) as error:
            self._refuse(f"member {name!r} is damaged: {error}")
        if len(content) > member.file_size:
            self._refuse(f"member {name!r} holds more than it declares")
        self._unpacked += len(content)
        if self._unpacked > max(source.FREE, source.MAX_RATIO * self._size):
            self._refuse(f"unpacks to more than {source.MAX_RATIO} times its size")
        if member.compress_type == ZSTD and zlib.crc32(content) != member.CRC:  # else `zipfile` checked it
            self._refuse(f"member {name!r} is damaged: wrong checksum")
        return content

    def _check(self, member: zipfile.ZipInfo) -> None:
        name = member.filename
        if name.startswith("/") or "\\" in name or ".." in name.split("/") or ":" in name.split("/", 1)[0]:
            self._refuse(f"member {name!r} has a name that leaves the archive", _UNLIKE)
        if member.flag_bits & _ENCRYPTED:
            self._refuse(f"member {name!r} is encrypted")
        if member.file_size > self._limit:
            self._refuse(
                f"member {name!r} declares {member.file_size:,} bytes, limit {self._limit:,}", _LARGE
            )

    def _open(self, member: zipfile.ZipInfo) -> Any:
        if member.compress_type != ZSTD:
            return self._zip.open(member)
        packed = copy(member)  # read as if it were stored, without a checksum
        packed.compress_type, packed.file_size = zipfile.ZIP_STORED, member.compress_size
        packed.CRC = None  # type: ignore[assignment]
        unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return unpacker.stream_reader(self._zip.open(packed), read_across_frames=True)

    def _refuse(self, reason: str, hint: str = ANEW) -> NoReturn:
        self.close()
        raise InputError("import.source", reason, where=self._name, hint=hint)
