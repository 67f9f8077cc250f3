r"""JSON documents: strict reading, canonical and readable writing.

All JSON input is hostile. `loads` refuses duplicate keys, NaN and infinities, integers that a
double cannot hold, numbers too small for a double, lone surrogates, byte order marks, documents over a
size and nesting over a depth; the standard library accepts all of these. `canonical` gives the RFC 8785
bytes that digests are computed from; `pretty` gives JSON for people.

    >>> canonical({"b": 1.0, "a": "ü"})
    b'{"a":"\\xc3\\xbc","b":1}'
    >>> loads(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    certkit.ground.errors.InputError: duplicate key 'a'

Every document that people or other programs hand over is read here. Lines that come by the million are not:
`record.reader` checks each record, and `msgspec` decodes what was checked, or what the program wrote itself.
`registry.entry` decodes an entry so too, and refuses one that is not byte for byte its canonical form. In a
trial, `msgspec` reads what an agent, a tool server or a public task says; it becomes events, which `bundle`
reads again.

This module does not know schemas, and it does not read files.
"""

from __future__ import annotations

import hashlib
import json  # noqa: TID251 - this module is the door
import re
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, NewType, overload

import rfc8785

from certkit.ground.errors import InputError
from certkit.ground.text import HIDDEN_IN_LINES

Digest = NewType("Digest", str)
"""``sha256:`` and 64 lower-case hexadecimal digits."""

DIGITS: Final = 6
"""Digits after the point of every decimal."""

MAX_BYTES: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**53 - 1
MAX_MEMORY: Final = 200_000_000
"""Bytes of memory that a document may take while it is read.

Each of its bytes counts twice, as it is and in a text. Each value counts 150: an object with one member takes
more, most take less. Each byte of a text with a character beyond U+FFFF counts three more, since Python then
keeps four for every character.
"""

_FIRST_WITH_EXPONENT: Final = 1e21
"""From here on ECMAScript, and so RFC 8785, writes a number with an exponent."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
# Strings are taken out whole, so that brackets inside them are not counted; one that never ends is taken out
# too, since to begin anew at every quotation mark in it would take time quadratic in its length.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STRING_OR_MARK = re.compile(_STRING.pattern + rb"|[,\[{]", re.DOTALL)
# A digit other than 0 before the exponent: the number is not zero, whatever a double makes of it.
_NONZERO = r"^[^eE]*[1-9]"
_BEYOND = re.compile(rb"[\xf0-\xf4]|\\u[dD][89abAB]")  # a character beyond U+FFFF, or half of one
# A surrogate as JSON escapes it. Both halves of a pair are; what is left of them in a value stood alone.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DEEPER = [(byte in b"[{") - (byte in b"]}") for byte in range(256)]


class _RefusedError(ValueError):
    """Carries a code out of a callback of the json module."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RefusedError("json.duplicate-key", f"duplicate key {key!r}")
            seen.add(key)
    return result


def _constant(name: str) -> Any:
    raise _RefusedError("json.number", f"{name} is not a JSON number")


def _integer(text: str) -> int:
    if len(text) < _DIGITS:
        return int(text)
    if len(text) > _DIGITS + 1 or abs(value := int(text)) > MAX_INTEGER:
        raise _RefusedError("json.number", f"integer {_shorten(text)} is beyond ±(2^53 − 1)")
    return value


def _floating(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _RefusedError("json.number", f"number {_shorten(text)} is beyond the range of a double")
    if value == 0 and re.search(_NONZERO, text):
        raise _RefusedError("json.number", f"number {_shorten(text)} is too small for a double")
    return value


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, parse_float=_floating
)
"""Made once, since making one takes as long as reading a line with it."""
_SMALL_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_floating
)
"""For documents in which no number can be an integer beyond 2^53 − 1, so that none needs to be checked."""
_DIGITS_AS_ZEROS: Final = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
_DIGITS: Final = len(str(MAX_INTEGER))
_LONG: Final = b"0" * _DIGITS


def _shorten(text: str) -> str:
    return text if len(text) <= 24 else text[:20] + "…"  # noqa: PLR2004 - display width


def check_depth(data: bytes, where: str | None = None) -> None:
    """Raise `InputError` ``json.too-deep`` where a document is nested deeper than `MAX_DEPTH`."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return  # too few brackets to be too deep, and nearly every document ends here
    brackets = _STRING.sub(b"", data).translate(None, _NO_BRACKETS)
    if max(accumulate(map(_DEEPER.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise InputError("json.too-deep", f"nested deeper than {MAX_DEPTH} levels", where=where)


def check_memory(data: bytes, where: str | None = None, *, copies: int = 2) -> None:
    """Raise `InputError` ``json.too-large`` where reading a document would take more than `MAX_MEMORY`.

    `copies`: how often its bytes are in memory, as they are and in texts.
    """
    if 160 * len(data) <= MAX_MEMORY:  # whatever it holds
        return
    if memory_bound(data, copies=copies) <= MAX_MEMORY:
        return
    if memory(data, copies=copies, most=MAX_MEMORY) > MAX_MEMORY:
        reason = f"a document that takes more than {MAX_MEMORY:,} bytes of memory to read"
        raise InputError("json.too-large", reason, where=where)


def memory_bound(data: bytes, *, copies: int = 2) -> int:
    """Return at least as much as `memory` does, and faster: as if the marks in texts were values."""
    plain = data.isascii() and b"\\" not in data  # most are, and this is seen at once
    beyond = 0 if plain else 3 * (_BEYOND.search(data) is not None)
    return (copies + beyond) * len(data) + 150 * (data.count(b",") + data.count(b"[") + data.count(b"{"))


def memory(data: bytes, *, copies: int = 2, most: int | None = None) -> int:
    """Return the bytes of memory that a document counts for under `MAX_MEMORY`.

    Args:
        data: the document, or a part of one: the parts of a document count for what it counts for.
        copies: how often its bytes count.
        most: counting stops beyond it.
    """
    beyond = 3 * (_BEYOND.search(data) is not None)
    size = copies * len(data)
    for match in _STRING_OR_MARK.finditer(data):
        start, end = match.span()
        if data[start] != ord('"'):
            size += 150
        elif beyond and _BEYOND.search(data, start, end):
            size += beyond * (end - start)
        if most is not None and size > most:
            break
    return size


def loads(data: bytes, *, where: str | None = None, max_bytes: int = MAX_BYTES) -> Any:
    """Read one JSON document strictly; `where` names the source in errors.

    Raises:
        InputError: with a ``json.*`` code.
    """
    if len(data) > max_bytes:
        raise InputError("json.too-large", f"{len(data):,} bytes, limit {max_bytes:,}", where=where)
    try:
        text = data.decode("utf-8", errors="strict")
    except UnicodeDecodeError as error:
        raise InputError("json.encoding", f"not UTF-8 at byte {error.start}", where=where) from None
    if text.startswith("\ufeff"):
        raise InputError(
            "json.encoding", "begins with a byte order mark", where=where, hint="save the file as plain UTF-8"
        )
    check_memory(data, where)
    check_depth(data, where)
    try:
        value = (_DECODER if _has_long_number(data) else _SMALL_DECODER).decode(text)
    except _RefusedError as error:
        raise InputError(error.code, str(error), where=where) from None
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError("json.syntax", f"{reason} at {place}", where=where) from None
    if _SURROGATE.search(text) and _has_lone_surrogate(value):
        raise InputError("json.encoding", "a string holds a lone surrogate", where=where)
    return value


def _has_long_number(data: bytes) -> bool:
    """Tell whether a number may have so many digits that it lies beyond ±(2^53 − 1)."""
    digits = data.translate(_DIGITS_AS_ZEROS) + b" "
    place = digits.find(_LONG)
    while place >= 0:
        if place == 0 or data[place - 1] in b":,[- \t\r\n":
            return True
        place = digits.find(_LONG, digits.find(b" ", place))
    return False


def _has_lone_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, dict):
        return any(_has_lone_surrogate(key) or _has_lone_surrogate(item) for key, item in value.items())
    return isinstance(value, list) and any(_has_lone_surrogate(item) for item in value)


def canonical(value: Any) -> bytes:
    """Return the RFC 8785 (JCS) bytes of `value`, which digests are taken over.

    Raises:
        InputError: ``json.not-canonical``, also for floats such as 1e16: RFC 8785 writes them as integers
            that `loads` refuses.
    """
    if (number := _unreadable(value)) is not None:
        raise InputError(
            "json.not-canonical", f"{number!r} would be written as an integer beyond ±(2^53 − 1)"
        )
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise InputError("json.not-canonical", str(error)) from None


def _unreadable(value: Any) -> float | None:
    """Return the first float that RFC 8785 writes as an integer beyond `MAX_INTEGER`, or None."""
    if isinstance(value, float):
        return value if MAX_INTEGER < abs(value) < _FIRST_WITH_EXPONENT else None
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return None
    return next((number for item in value if (number := _unreadable(item)) is not None), None)


def pretty(value: Any) -> str:
    """Return `value` as indented JSON for people, keys in their given order, ending in a newline.

    Invisible characters and terminal controls are escaped, which JSON always allows.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return re.sub(HIDDEN_IN_LINES, _escaped, text) + "\n"


def _escaped(match: re.Match[str]) -> str:
    mark = match.group()
    return mark if "\ud800" <= mark <= "\udfff" else json.dumps(mark)[1:-1]


_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def line(value: Any) -> bytes:
    """Return `value` as one compact line of JSON, for record files; keys in their given order."""
    return _COMPACT.encode(value).encode() + b"\n"


def digest(data: bytes) -> Digest:
    """Return the SHA-256 of `data` as ``sha256:<hex>``."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


def is_digest(text: str) -> bool:
    """Tell whether `text` has the form of a `Digest`."""
    return _DIGEST.match(text) is not None


@overload
def decimal(value: Fraction | float) -> str: ...


@overload
def decimal(value: Fraction | float | None) -> str | None: ...


def decimal(value: Fraction | float | None) -> str | None:
    """Return a number with six digits after the point, rounded half to even; None where there is none."""
    if value is None:
        return None
    # Fractions round half to even, and exactly: a quotient of decimals would round twice.
    number = round((value if isinstance(value, Fraction) else Fraction(repr(float(value)))) * 10**DIGITS)
    whole, digits = divmod(abs(number), 10**DIGITS)
    return f"{'-' if number < 0 else ''}{whole}.{digits:0{DIGITS}}"


def millionths(decimal: str) -> int:
    """Return such a number as the integer of its digits."""
    return int(decimal.replace(".", ""))
