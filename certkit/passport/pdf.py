"""A safety case in PDF as the wrapping of a passport: the one attached file that is signed is taken out.

    taken = take(data)                    # a PDF, or the bytes of passport.json themselves
    taken.passport, taken.proof, taken.in_pdf

Nothing of the pages is read, and nothing that the PDF says is believed. The pages are not signed: whoever
shows them must say so (`PAGES`). A PDF comes from anywhere: it is read strictly, nothing in it is repaired
or run, and size, decompression, the number of parts looked at and what is parsed are bounded.
"""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from certkit import canonical
from certkit.errors import CertkitError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.outcome import Verification

MAX_PDF: Final = 64 << 20
NAME: Final = "passport.json"
PROOF_NAME: Final = "passport.json.tlog-proof"
PAGES: Final = "the pages of the PDF: they are a drawing, and only the passport attached to them is signed"
"""What a verification leaves open where the passport came in a PDF."""

_MAGIC: Final = b"%PDF-"
_MAX_DECODED: Final = 4 << 20
_MAX_MEMBERS: Final = 10_000
_MAX_PARTS: Final = 64
_RECORDED: Final = re.compile(r"passport (sha256:[0-9a-f]{64})(?![0-9a-f])")
_HINT: Final = "'certkit report' and 'certkit issue' attach it; or name the file passport.json itself"


class Taken(Struct, frozen=True, kw_only=True):
    """A passport's bytes, the text of its proof of registration where that came along, and out of what.

    A proof that could not be read is the error that says why.
    """

    passport: bytes
    proof: bytes | CertkitError | None = None
    in_pdf: bool = False

    def told(self, verification: Verification) -> Verification:
        """Return a verification of this passport that says what of the file it does not speak of."""
        if not self.in_pdf:
            return verification
        compare = (
            f"; compare the id that they print: {verification.passport_id}"
            if verification.passport_id
            else ""
        )
        return structs.replace(verification, not_checked=(PAGES + compare, *verification.not_checked))


def take(data: bytes, *, where: str | None = None) -> Taken:
    """Return what a file holds that is a passport, or a PDF with one attached; `where` names it in errors.

    What does not begin as a PDF is returned as it is. Raises `InputError` ``pdf.*``.
    """
    if not data.startswith(_MAGIC):
        return Taken(passport=data)
    try:
        return _take(data)
    except CertkitError as error:
        error.where = where
        raise


def _take(data: bytes) -> Taken:
    if len(data) > MAX_PDF:
        raise InputError("pdf.too-large", f"larger than {MAX_PDF:,} bytes", hint="name passport.json itself")
    try:
        attached, keywords = _read(data)
    except CertkitError:
        raise
    except Exception as error:  # noqa: BLE001 - a parser of hostile files fails in any way
        # What the parser says would repeat what the file holds; its kind of failure is ours to tell.
        kind = type(error).__name__
        raise InputError("pdf.unreadable", f"the PDF cannot be read ({kind})", hint=_HINT) from None
    passport = _one_passport(attached)
    _compare(passport, keywords)
    proofs = [content for names, content in attached if PROOF_NAME in names]
    if len(proofs) > 1:
        raise InputError("pdf.several", f"{len(proofs)} attached files are named {PROOF_NAME}")
    return Taken(passport=passport, proof=proofs[0] if proofs else None, in_pdf=True)


def _one_passport(attached: list[tuple[set[str], bytes]]) -> bytes:
    """Return the only attached file that is a passport, which by its name and its content it must be."""
    named = [content for names, content in attached if NAME in names]
    passports = [content for _, content in attached if _is_passport(content)]
    if len(named) > 1 or len(passports) > 1:
        raise InputError(
            "pdf.several",
            f"{len(passports)} attached files are passports, {len(named)} named {NAME}; expected one",
            hint="take out the one that you mean, and name it instead of the PDF",
        )
    if not named:
        raise InputError("pdf.no-passport", f"no attached file is named {NAME}", hint=_HINT)
    if named != passports:
        raise InputError("pdf.no-passport", f"the attached {NAME} is not a passport", hint=_HINT)
    return named[0]


def _is_passport(content: bytes) -> bool:
    from certkit.passport.sealed import MEDIA_TYPE  # noqa: PLC0415 - with the cryptography behind it

    with suppress(CertkitError):
        document = canonical.loads(content)
        return isinstance(document, dict) and document.get("mediaType") == MEDIA_TYPE
    return False


def _compare(passport: bytes, keywords: str) -> None:
    """Refuse a PDF that was drawn of another passport, where it records which one that was."""
    from certkit.passport.opening import parse  # noqa: PLC0415 - as above

    recorded = set(_RECORDED.findall(keywords))
    try:
        attached = parse(passport).passport_id
    except CertkitError:
        return  # the first steps of a verification say what is wrong with it
    if recorded - {attached}:
        raise InputError(
            "pdf.other-passport",
            f"the attached passport is {attached}, the PDF was drawn of {', '.join(sorted(recorded))}",
            hint="the pages speak of another passport than the one attached; ask for the PDF again",
        )


def _read(data: bytes) -> tuple[list[tuple[set[str], bytes]], str]:
    """Return the attached files, each with all its names, and the keywords of the document."""
    import logging  # noqa: PLC0415 - only where a PDF is met

    import pypdf  # noqa: PLC0415 - the same

    from certkit.passport.pdf_reader import Reader  # noqa: PLC0415 - the same

    # The parser tells the log what it finds odd; a user of certkit is not its reader.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with pypdf.apply_configuration(
        maximum_declared_stream_length=MAX_PDF,
        array_based_stream_maximum_output_length=_MAX_DECODED,
        array_maximum_element_count=_MAX_MEMBERS,
        dictionary_maximum_element_count=_MAX_MEMBERS,
        zlib_maximum_output_length=_MAX_DECODED,
        zlib_maximum_recovery_input_length=0,
        lzw_maximum_output_length=_MAX_DECODED,
        run_length_maximum_output_length=_MAX_DECODED,
        brotli_maximum_output_length=_MAX_DECODED,
        stream_filters_maximum_length=2,
        jbig2dec_binary=None,
    ):
        reader = Reader(data)
        if reader.is_encrypted:
            raise InputError("pdf.unreadable", "the PDF is encrypted", hint="qpdf --decrypt IN OUT")
        walk = _Walk(reader)
        return list(walk.attached()), walk.keywords()


class _Walk:
    """A walk over the few objects that lead to attached files, each of which is asked for once."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._seen: set[int] = set()

    def attached(self) -> Iterator[tuple[set[str], bytes]]:
        """Yield the names and the content of every file in the tree of embedded files."""
        catalogue = self._dictionary(self._reader.trailer, "/Root")
        names = self._dictionary(catalogue, "/Names")
        waiting = [self._dictionary(names, "/EmbeddedFiles")]
        while waiting:
            node = waiting.pop()
            pairs = self._array(node, "/Names")
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                yield from self._file(str(self._object(key)), self._object(value, once=True))
            waiting += [self._object(kid, once=True) for kid in self._array(node, "/Kids")]

    def _file(self, key: str, specification: Any) -> Iterator[tuple[set[str], bytes]]:
        names = {key, *(str(self._get(specification, name) or key) for name in ("/F", "/UF"))}
        files = self._dictionary(specification, "/EF")
        references = {getattr(value, "idnum", None): value for value in files.values()}
        for reference in references.values():
            content = self._content(self._object(reference, once=True))
            if content is not None:
                yield names, content
            elif NAME in names:
                raise InputError("pdf.too-large", f"the attached {NAME} is larger than any verifier accepts")

    @staticmethod
    def _content(stream: Any) -> bytes | None:
        """Return the bytes of an attached file, None where they are more than a passport can have."""
        import pypdf  # noqa: PLC0415 - loaded by the caller
        from pypdf.errors import LimitReachedError  # noqa: PLC0415 - the same

        most = canonical.MAX_BYTES + 1
        with pypdf.apply_configuration(
            zlib_maximum_output_length=most,
            lzw_maximum_output_length=most,
            run_length_maximum_output_length=most,
            brotli_maximum_output_length=most,
        ):
            try:
                content = stream.get_data()
            except LimitReachedError as error:
                if isinstance(error.__cause__, zlib.error):  # damaged, and a repair was not tried
                    raise
                return None
        return bytes(content) if len(content) <= canonical.MAX_BYTES else None

    def keywords(self) -> str:
        """Return the keywords in the document's information, empty where there are none."""
        information = self._dictionary(self._reader.trailer, "/Info")
        return str(self._get(information, "/Keywords") or "")

    def _dictionary(self, parent: Any, key: str) -> Any:
        value = self._get(parent, key)
        return {} if value is None else value

    def _array(self, parent: Any, key: str) -> list[Any]:
        value = self._get(parent, key)
        return [] if value is None else list(value)

    def _get(self, parent: Any, key: str) -> Any:
        return self._object(dict.get(parent, key))

    def _object(self, value: Any, *, once: bool = False) -> Any:
        """Return what a reference leads to; `once` refuses what was met before, and so every circle."""
        number = getattr(value, "idnum", None)
        if number is None:
            return value
        if once and number in self._seen:
            raise InputError("pdf.unreadable", f"the PDF lists its object {number} as a file twice")
        self._seen.add(number)
        if len(self._seen) > _MAX_PARTS:
            raise InputError("pdf.unreadable", "more attached files than a safety case has", hint=_HINT)
        resolved = value.get_object()
        return None if type(resolved).__name__ == "NullObject" else resolved
