"""PDFs for tests, written object by object, so that any of them can be wrong in one place."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

import pytest

from certkit.errors import InputError
from certkit.passport import pdf
from tests.support.making import issued

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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


def packed(
    inside: Sequence[tuple[int, bytes]],
    *,
    offsets: Sequence[int] | None = None,
    extra: Mapping[int, bytes] | None = None,
) -> bytes:
    """A PDF whose objects stand in one object stream, as number 99; `offsets` stand there for the true ones.

    `extra` are objects outside of it. The cross-reference table is a stream, with the number 98, and says
    nothing of objects from 100 on.
    """
    true = [sum(len(body) + 1 for _, body in inside[:place]) for place in range(len(inside))]
    head = b"".join(b"%d %d " % (number, at) for (number, _), at in zip(inside, offsets or true, strict=True))
    content = zlib.compress(head + b"".join(body + b" " for _, body in inside), 9)
    objects = {
        **(extra or {}),
        99: b"<< /Type /ObjStm /N %d /First %d /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream"
        % (len(inside), len(head), len(content), content),
    }
    data = b"%PDF-1.7\n"
    rows = {number: (2, 99, place) for place, (number, _) in enumerate(inside) if number < 100}
    for number, body in objects.items():
        rows[number] = (1, len(data), 0)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    rows[98] = (1, len(data), 0)
    table = b"".join(
        bytes([kind]) + first.to_bytes(4, "big") + second.to_bytes(4, "big")
        for kind, first, second in (rows[number] for number in sorted(rows))
    )
    index = b" ".join(b"%d 1" % number for number in sorted(rows))
    form = b"/Type /XRef /Size 100 /W [1 4 4] /Index [%s] /Root 1 0 R /Length %d" % (index, len(table))
    return data + b"98 0 obj\n<< %s >>\nstream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n" % (
        form,
        table,
        rows[98][1],
    )


def bomb(size: int) -> bytes:
    """Zeros, compressed twice, with the dictionary that says so."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
    twice = zlib.compress(packed, 9)
    return b"<< /Filter [/FlateDecode /FlateDecode] /Length %d >>\nstream\n%s\nendstream" % (
        len(twice),
        twice,
    )


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
