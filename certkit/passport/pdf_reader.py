"""The reader of hostile PDFs: `pypdf`'s, with bounds on what it parses. Loaded only where a PDF is met.

`pypdf` parses every object of an object stream when one is asked for, and lets them overlap, so that a few
kilobytes keep it busy for minutes. Here only the object that is asked for is parsed, no further than to where
the next begins, and from the file itself no more is read than any PDF needs.
"""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pypdf import PdfReader
from pypdf.errors import LimitReachedError, PdfReadError
from pypdf.generic import IndirectObject, read_object

if TYPE_CHECKING:
    from pypdf.generic import PdfObject

MAX_READS: Final = 4_000_000
"""How often the parser may read from the file; it reads byte by byte wherever there is work."""
MAX_STREAM: Final = 1 << 20
"""The decoded size of an object stream; a few hundred small objects are usual."""
MAX_IN_STREAM: Final = 10_000
MAX_PARSED: Final = 256 << 10
"""What is parsed out of all object streams; what leads to the attached files is a small part of them."""
MAX_STREAMS: Final = 16


class Reader(PdfReader):
    """Reads the bytes of a PDF strictly; raises whatever its base does, and `LimitReachedError`."""

    def __init__(self, data: bytes) -> None:
        self._opened: dict[int, dict[int, bytes]] = {}
        self._left = MAX_PARSED
        super().__init__(_Counted(data), strict=True)

    def _get_object_from_stream(self, indirect_reference: IndirectObject) -> PdfObject:
        number = indirect_reference.idnum
        stream = self.xref_objStm[number][0]
        if stream not in self._opened:
            if len(self._opened) == MAX_STREAMS:
                raise LimitReachedError("too many object streams")
            self._opened[stream] = {}  # a stream that leads back to itself holds nothing
            self._opened[stream] = _objects(IndirectObject(stream, 0, self).get_object())
        body = self._opened[stream][number]
        self._left -= len(body)
        if self._left < 0:
            raise LimitReachedError("too much to parse")
        parsed = read_object(io.BytesIO(body), self)
        self.cache_indirect_object(0, number, parsed)
        return parsed


def _objects(stream: Any) -> dict[int, bytes]:
    """Return the text of each object in an object stream by its number."""
    if stream["/Type"] != "/ObjStm":
        raise PdfReadError("not an object stream")
    data, count, first = stream.get_data(), int(stream["/N"]), int(stream["/First"])
    if len(data) > MAX_STREAM or not 0 <= count <= MAX_IN_STREAM or not 0 <= first <= len(data):
        raise LimitReachedError("an object stream beyond what is looked at")
    head = [int(word) for word in data[:first].split()[: 2 * count]]
    numbers, offsets = head[::2], [*head[1::2], len(data) - first]
    if len(head) != 2 * count or len(set(numbers)) != count:
        raise PdfReadError("an object stream holds something twice or not")
    if offsets[0] < 0 or any(begin >= end for begin, end in pairwise(offsets)):
        raise PdfReadError("objects of an object stream overlap")
    spans = pairwise(first + offset for offset in offsets)
    return {
        number: data[begin:end].lstrip() + b" " for number, (begin, end) in zip(numbers, spans, strict=True)
    }


class _Counted(io.BytesIO):
    """A file that is read from no more than so many times."""

    _reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self._reads += 1
        if self._reads > MAX_READS:
            raise LimitReachedError("too much to parse")
        return super().read(size)
