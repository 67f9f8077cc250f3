"""A passport out of a PDF that certkit drew: found among the file's streams, not through its objects.

Every stream that inflates to JSON with a Sigstore bundle's media type is a passport, and one that is the
text of a log proof its proof; a single passport must be there. So no PDF parser is needed, and nothing in
the file is repaired. A stream that is encrypted, or compressed otherwise than by Flate, is not found. Anybody
can draw the pages: only the passport is signed.
"""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError
from certkit.ground.wording import many
from certkit.passport.envelope import MEDIA_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PDF: Final = 64 << 20

_MAGIC: Final = b"%PDF-"
_MAX_STREAMS: Final = 4_000
_PIECE: Final = 1 << 12
_PROOF: Final = b"c2sp.org/tlog-proof@v1\n"
_HINT: Final = "'certkit report' and 'certkit issue' attach it; or name the file passport.json itself"


class Taken(Struct, frozen=True, kw_only=True):
    """A passport that was taken from a file.

    Attributes:
        passport: its bytes.
        proof: text of its proof of registration, or why it could not be read; None where none came along.
        in_pdf: whether the file is a PDF.
    """

    passport: bytes
    proof: bytes | CertkitError | None = None
    in_pdf: bool = False


def take(data: bytes, *, where: str | None = None) -> Taken:
    """Return what a file holds that is a passport, or a PDF with one attached; `where` names it in errors.

    What does not begin as a PDF is returned as it is.

    Raises:
        InputError: ``pdf.*``.
    """
    if not data.startswith(_MAGIC):
        return Taken(passport=data)
    if len(data) > MAX_PDF:
        raise InputError("pdf.too-large", f"larger than {MAX_PDF:,} bytes", where=where)
    passports, proofs = set[bytes](), set[bytes]()
    for content in _contents(data, where):
        if content.startswith(_PROOF):
            proofs.add(content)
        elif content.lstrip().startswith(b"{") and MEDIA_TYPE.encode() in content:
            passports.add(content)
    if not passports:
        raise InputError("pdf.no-passport", "no passport is attached", where=where, hint=_HINT)
    if len(passports) > 1 or len(proofs) > 1:
        message = f"{many(len(passports), 'passport')} and {many(len(proofs), 'proof')} are attached"
        raise InputError("pdf.several", message, where=where, hint="name the passport.json that you mean")
    return Taken(passport=passports.pop(), proof=proofs.pop() if proofs else None, in_pdf=True)


def _contents(data: bytes, where: str | None) -> Iterator[bytes]:
    """Yield the streams of a PDF, inflated, but for those larger than any passport."""
    left = MAX_PDF  # of what is inflated and what it inflates to
    for number, match in enumerate(re.finditer(rb"stream\r?\n", data)):
        unpacking, content = zlib.decompressobj(), bytearray()
        with suppress(zlib.error):
            for place in range(match.end(), len(data), _PIECE):
                most = canonical.MAX_BYTES + 1 - len(content)
                piece = unpacking.decompress(data[place : place + _PIECE], most)
                content += piece
                left -= _PIECE + len(piece)
                if unpacking.eof or len(content) > canonical.MAX_BYTES or left < 0:
                    break
            if len(content) <= canonical.MAX_BYTES:
                yield bytes(content)
        if left < 0 or number >= _MAX_STREAMS:
            raise InputError("pdf.too-large", "unpacks to more than a safety case holds", where=where)
