"""PDFs for tests, written object by object, so that any of them can be wrong in one place."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import InputError
from certkit.passport import pdf
from tests.support.passports import issued

if TYPE_CHECKING:
    from collections.abc import Mapping


CATALOGUE = b"<< /Type /Catalog /Pages 2 0 R /Names 3 0 R >>"
PAGES = b"<< /Type /Pages /Kids [] /Count 0 >>"


def stream(content: bytes, head: bytes = b"", *, packed: bytes | None = None) -> bytes:
    """A stream with Flate compression; `packed` stands in the file in place of the compressed bytes."""
    body = zlib.compress(content, 9) if packed is None else packed
    return b"<< /Type /EmbeddedFile /Filter /FlateDecode /Length %d %s >>\nstream\n%s\nendstream" % (
        len(body),
        head,
        body,
    )


def document(objects: Mapping[int, bytes], *, trailer: bytes = b"") -> bytes:
    """A PDF of numbered objects, the first of which is the catalogue, with its cross-reference table."""
    data = b"%PDF-1.7\n"
    offsets = {}
    for number, body in sorted(objects.items()):
        offsets[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size, start = max(objects) + 1, len(data)
    rows = (
        b"%010d %05d %s \n" % ((offsets[i], 0, b"n") if i in offsets else (0, 65535, b"f"))
        for i in range(size)
    )
    table = b"xref\n0 %d\n%s" % (size, b"".join(rows))
    return (
        data
        + table
        + b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, start)
    )


def attaching(*files: tuple[str, bytes], **more: bytes) -> bytes:
    """A PDF with attached files, by name and content; `more` are further objects by ``o`` and number."""
    objects = {1: CATALOGUE, 2: PAGES, 3: b"<< /EmbeddedFiles 4 0 R >>"}
    names = b""
    for place, (name, content) in enumerate(files):
        number = 10 + 2 * place
        objects[number] = b"<< /Type /Filespec /F (%s) /UF (%s) /EF << /F %d 0 R >> >>" % (
            name.encode(),
            name.encode(),
            number + 1,
        )
        objects[number + 1] = stream(content)
        names += b"(%s) %d 0 R " % (name.encode(), number)
    objects[4] = b"<< /Names [%s] >>" % names
    objects |= {int(name[1:]): body for name, body in more.items()}
    return document(objects)


def bomb(size: int) -> bytes:
    """A stream of zeros."""
    return stream(bytes(size))


def draws(seed: str, count: int, below: int) -> list[int]:
    """Integers below a bound that follow from a seed for ever."""
    return [
        int.from_bytes(hashlib.sha256(f"{seed} {i}".encode()).digest()[:8], "big") % below
        for i in range(count)
    ]


PASSPORT = issued().to_json()


def code(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        pdf.take(data)
    assert caught.value.exit_code == 3
    return caught.value.code
