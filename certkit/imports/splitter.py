"""Cuts a large JSON document into its rows without parsing it, in bounded memory.

A top-level array is cut into its items. A top-level object is cut into its members, and a member that is an
array into its items, so that the runs of ``{"info": {…}, "simulations": [{…}, …]}`` come one by one:

    for piece in split(chunks, name, limit):
        piece.key, piece.line, piece.data       # "simulations", 14, b'{…}'

With `within`, the member of this name is cut as the document itself is where it is an object, so that the
items of ``{"results": {"results": [{…}, …]}}`` come one by one too.

The brackets and commas outside strings are found with NumPy, a chunk at a time. The form of the levels that
are cut is checked; the pieces themselves are not.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import numpy as np

from certkit.ground import canonical
from certkit.ground.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MEMBER = re.compile(rb'\s*("(?:[^"\\]|\\[\s\S])*")\s*:([\s\S]*)\Z')
_QUOTE, _COMMA, _BACKSLASH, _OPENING, _CLOSING = b'",\\{}'
_CURLY: Final = np.uint8(ord("{") - ord("["))  # the bit that makes a square bracket curly
_CUT: Final = 2  # levels of nesting


class Piece(NamedTuple):
    """A row: the member it lies in ("" in an array), the line where it begins, and its bytes.

    `inside`: it lies in the object that `within` names. `item`: it is an item of the member's array.
    """

    key: str
    line: int
    data: bytes
    inside: bool = False
    item: bool = False


def split(chunks: Iterable[bytes], name: str, limit: int, within: str | None = None) -> Iterator[Piece]:
    """Yield the rows of a document that comes in chunks; `name` names it in errors.

    `within` names the member, an object, of which the members are cut too.

    Raises:
        InputError: ``json.syntax`` where the outer levels are not well formed, and ``json.too-large``
            where a row is longer than `limit` bytes.
    """
    cutter = _Cutter(name, limit, within)
    for chunk in chunks:
        yield from cutter.feed(chunk)
    cutter.close()


class _Cutter:
    def __init__(self, name: str, limit: int, within: str | None = None) -> None:
        self._name, self._limit, self._within = name, limit, within
        self._levels = _CUT + (within is not None)
        self._base = 0  # 1 inside the object that `within` names
        self._rest = bytearray()  # what came since the last cut
        self._line = 1  # the line of its first byte
        self._depth = 0
        self._in_string = False
        self._backslash = b""  # one whose character comes with the next chunk
        self._outer = b""  # the bracket that the document begins with
        self._ended = False
        self._key: str | None = None  # the member whose array is being cut
        self._items = 0  # of the array or object that is being cut

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        chunk, self._backslash = self._backslash + chunk, b""
        if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:
            chunk, self._backslash = chunk[:-1], b"\\"
        start = 0
        for at, outside in self._places(chunk):
            mark, depth = chunk[at : at + 1], outside - self._base
            if depth >= _CUT + (mark == b","):
                continue  # deeper than is cut here
            text = partial(self._since, chunk, start, at)  # copied where it is cut, and for no other mark
            pieces = self._cut(text, mark, depth)
            if pieces is not None:
                self._line += self._rest.count(b"\n") + chunk.count(b"\n", start, at)
                self._rest.clear()
                start = at + 1
                yield from pieces
        self._rest += chunk[start:]
        if len(self._rest) > self._limit:
            where = f"{self._name}:{self._line}"
            raise InputError("json.too-large", f"row longer than {self._limit:,} bytes", where=where)

    def _since(self, chunk: bytes, start: int, at: int) -> bytes:
        return b"".join((self._rest, chunk[start:at]))

    def _places(self, chunk: bytes) -> Iterator[tuple[int, int]]:
        """Yield where the marks of the levels that may be cut stand, and how deep outside the mark."""
        text = np.frombuffer(chunk, np.uint8)
        curly = text | _CURLY
        marked = (curly == _OPENING) | (curly == _CLOSING) | (text == _QUOTE) | (text == _COMMA)
        slashes = np.flatnonzero(text == _BACKSLASH)
        begins = np.maximum.accumulate(np.where(np.diff(slashes, prepend=-2) > 1, slashes, 0))
        marked[slashes[(slashes - begins) % 2 == 0] + 1] = False  # the characters that these escape
        marks = np.flatnonzero(marked)
        quotes = text[marks] == _QUOTE
        inside = np.logical_xor.accumulate(np.append(self._in_string, quotes))
        self._in_string = bool(inside[-1])
        marks = marks[~inside[1:] & ~quotes]
        steps = (curly[marks] == _OPENING) * 1 - (curly[marks] == _CLOSING)
        depths = np.append(self._depth, self._depth + np.cumsum(steps))
        self._depth = int(depths[-1])
        outside = np.minimum(depths[:-1], depths[1:])
        wanted = outside < np.where(text[marks] == _COMMA, self._levels + 1, self._levels)
        yield from zip(marks[wanted].tolist(), outside[wanted].tolist(), strict=True)

    def _cut(self, text: Callable[[], bytes], mark: bytes, depth: int) -> list[Piece] | None:
        """Return the pieces that end at a mark, or None where the mark lies within a piece."""
        if self._base and depth == 0:
            return self._leave(text(), mark)
        if depth < 0 or self._ended or (depth == 0 and mark == b","):
            self._refuse("expected one array or object")
        if mark in b"[{":
            return self._open(text, mark, depth)
        if depth == _CUT or (depth == 1 and mark != b","):
            if self._key is None:
                return None
            if mark == b"}":
                self._refuse("expected ']'")
            return self._item(self._key, text(), last=mark == b"]")
        if mark != b"," and (mark == b"]") != (self._outer == b"["):
            self._refuse("expected ']'" if self._outer == b"[" else "expected '}'")
        self._ended = depth == 0
        if self._outer == b"[":
            return self._item("", text(), last=self._ended)
        if self._items == -1 and not text().strip():
            self._items = 1
            return []
        return self._member(text(), last=self._ended)

    def _open(self, text: Callable[[], bytes], mark: bytes, depth: int) -> list[Piece] | None:
        if depth == 0:
            if self._outer or text().strip():
                self._refuse("expected one array or object")
            self._outer = mark
            return []
        if self._outer == b"[" or (mark == b"{" and (self._within is None or self._base)):
            return None
        member = _MEMBER.match(text())
        if member is None or member[2].strip() or self._items == -1:
            self._refuse("expected a comma or a member")
        key = self._name_of(member[1])
        if mark == b"[":
            self._key = key
        elif key == self._within:
            self._base = 1
        else:
            return None
        self._items = 0
        return []

    def _leave(self, text: bytes, mark: bytes) -> list[Piece]:
        """Return the last piece of the object that `within` names, which ends."""
        if mark != b"}":
            self._refuse("expected '}'")
        pieces = [] if self._items == -1 and not text.strip() else self._member(text, last=True)
        self._base, self._items = 0, -1
        return pieces

    def _item(self, key: str, text: bytes, *, last: bool) -> list[Piece]:
        data = text.strip()
        empty = last and not data and not self._items
        self._items += 1
        if last:
            self._key, self._items = None, -1  # nothing may follow the array but a comma or the end
        if empty:
            return []
        line = self._line + text[: len(text) - len(text.lstrip())].count(b"\n")
        return [Piece(key, line, data, bool(self._base), item=True)]

    def _member(self, text: bytes, *, last: bool) -> list[Piece]:
        if last and not text.strip() and not self._items:
            return []
        member = _MEMBER.match(text)
        if member is None or self._items == -1:
            self._refuse("expected a member")
        self._items = 1
        return [Piece(self._name_of(member[1]), self._line, member[2].strip(), bool(self._base))]

    def _name_of(self, key: bytes) -> str:
        return str(canonical.loads(key, where=f"{self._name}:{self._line}"))

    def close(self) -> None:
        if not self._ended or self._rest.strip() or self._backslash:
            reason = "holds more than one value" if self._ended else "ends inside a value: it was cut off"
            self._refuse(reason, hint="" if self._ended else "copy the log again, or export it anew")

    def _refuse(self, reason: str, hint: str = "") -> NoReturn:
        raise InputError("json.syntax", reason, where=f"{self._name}:{self._line}", hint=hint)
