"""Reading a hostile ZIP archive member by member: bounded, nothing is unpacked to the disk.

Members may be stored, deflated, or packed with zstd (method 93), which `zipfile` of Python 3.11 cannot read.
A member whose name leaves the archive, that is encrypted, or that declares more than the limit refuses the
archive before anything is unpacked. What a member really holds is limited again while it is read, and the
whole by the ratio that `source` allows.
"""

from __future__ import annotations

import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Final, NoReturn

from certkit.errors import InputError
from certkit.evidence.importers import source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

MAX_MEMBERS: Final = 1_000_000
ZSTD: Final = 93
_LOCAL_HEADER: Final = 30
_ENCRYPTED: Final = 1
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError)


class Archive:
    """An opened archive; `names` are those of its members, the last of equal names counts."""

    def __init__(self, path: Path, name: str, limit: int) -> None:
        self._name, self._limit, self._size = name, limit, path.stat().st_size
        self._unpacked = 0
        self._raw: IO[bytes] = path.open("rb")
        try:
            self._zip = zipfile.ZipFile(self._raw)
            members = self._zip.infolist()
            if len(members) > MAX_MEMBERS:
                self._refuse(f"holds more than {MAX_MEMBERS:,} members")
            self._members = {member.filename: member for member in members}
            for member in self._members.values():
                self._check(member)
        except InputError:
            self._raw.close()
            raise
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            self._raw.close()
            self._refuse(f"damaged or truncated archive: {error}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()
        self._raw.close()

    @property
    def names(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """Return the content of a member; raise `InputError` where it is damaged or too large."""
        member, content = self._members[name], bytearray()
        try:
            for part in self._parts(member):
                content += part
                self._unpacked += len(part)
                if len(content) > member.file_size:
                    self._refuse(f"member {name!r} holds more than it declares")
                if self._unpacked > max(source.FREE, source.MAX_RATIO * self._size):
                    self._refuse(f"unpacks to more than {source.MAX_RATIO} times its size")
        except (*_DAMAGED, OSError, NotImplementedError, RuntimeError) as error:
            self._refuse(f"member {name!r} is damaged: {error}")
        if zlib.crc32(content) != member.CRC:
            self._refuse(f"member {name!r} is damaged: wrong checksum")
        return bytes(content)

    def _check(self, member: zipfile.ZipInfo) -> None:
        name = member.filename
        if name.startswith("/") or "\\" in name or ".." in name.split("/") or ":" in name.split("/", 1)[0]:
            self._refuse(f"member {name!r} has a name that leaves the archive")
        if member.flag_bits & _ENCRYPTED:
            self._refuse(f"member {name!r} is encrypted")
        if member.file_size > self._limit:
            self._refuse(f"member {name!r} declares {member.file_size:,} bytes, limit {self._limit:,}")

    def _parts(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        if member.compress_type != ZSTD:
            with self._zip.open(member) as stream:
                while part := stream.read(source.CHUNK):
                    yield part
            return
        import zstandard  # noqa: PLC0415 - many logs have no zstd member

        self._raw.seek(member.header_offset)
        header = self._raw.read(_LOCAL_HEADER)
        if len(header) < _LOCAL_HEADER:
            raise EOFError("no header")
        # The lengths of name and extra field may differ from those in the directory.
        skipped = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        self._raw.seek(skipped, 1)
        packed = self._raw.read(member.compress_size)
        unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        try:
            with unpacker.stream_reader(packed, read_across_frames=True) as stream:
                while part := stream.read(source.CHUNK):
                    yield part
        except zstandard.ZstdError as error:
            raise zipfile.BadZipFile(str(error)) from None

    def _refuse(self, reason: str) -> NoReturn:
        hint = "copy the log again, or write it anew with `inspect log convert`"
        raise InputError("import.source", reason, where=self._name, hint=hint)
