"""Expressions in a mapping: conditions over a row, in a small closed language.

    scores.strict.value == 'C' and metadata.attack in ['none', null]

There are paths into the row, texts, numbers, true, false and null, lists, comparisons, ``in``, ``and``,
``or``, ``not``, and the functions min, max and len. A name that is no word stands in backticks. Nothing else
can be said: no other call, no arithmetic, no loop. Python's parser reads the text, and nothing runs it.

A path that the row does not have is null. Null and the empty text are equal to each other, to nothing else,
and neither less nor greater than anything. In `Expression.holds` a comparison with a blank decides nothing
unless it asks for blanks (``score == null``). Values of unlike kinds are refused, not unequal: a text that
is compared with a number is read as one. ``<`` and ``>`` compare numbers, or two times of ISO 8601.
"""

from __future__ import annotations

import ast
import operator
import re
import shlex
from datetime import datetime
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Final

from certkit.ground.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Row = Mapping[str, Any]
    Evaluate = Callable[[Row], Any]

MAX_LENGTH: Final = 2000
"""Longest expression, characters."""

_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|`([^`]+)`""")
"""A text, or a name in backticks outside of texts."""

_WORDS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLS: Final[dict[str, Callable[[Any], Any]]] = {"min": min, "max": max, "len": len}

_UNLIKE: Final = "a truth value is written true or false, and a number 1, without quotation marks"
_TRUTH: Final = {"true": True, "false": False}
_ORDERED: Final = "< and > compare numbers, without quotation marks, or times of ISO 8601"

MISSING: Final = object()
"""Stands for a path that a row does not have."""


class ExpressionError(ValueError):
    """The text is no expression of the language, or a row holds what it cannot compare; `hint` helps."""

    hint = ""


def look_up(row: Any, path: tuple[str, ...]) -> Any:
    """Return what stands at a path in a row, or `MISSING`; a number is an index into a list."""
    for part in path:
        if isinstance(row, dict) and part in row:
            row = row[part]
        elif isinstance(row, list) and part.isdecimal() and int(part) < len(row):
            row = row[int(part)]
        else:
            return MISSING
    return row


def spelled(path: Iterable[str]) -> str:
    """Return a path as an expression names it: what is no word of the language stands in backticks."""
    return ".".join(part if part.isidentifier() and not iskeyword(part) else f"`{part}`" for part in path)


def success_test(path: str, test: str) -> str:
    """Return an expression that `shell` can quote: beside backticks its texts stand in double quotes."""
    return visible(f"{path} {test.replace(chr(39), chr(34)) if '`' in path else test}")


def shell(word: str) -> str:
    """Return a word of a command line, in double quotes where they hold it as it stands."""
    plain = shlex.quote(word)
    return plain if plain == word or set(word) & set('"$`!\\') else f'"{word}"'


class Expression:
    """An expression that was read; `paths` are those that it names."""

    def __init__(
        self,
        text: str,
        *,
        number: Callable[[str], float | None],
        fold: bool,
        blank: Callable[[Any], bool] | None = None,
    ) -> None:
        """Read an expression.

        `number` reads a text as a number; `fold` ignores case in texts; `blank` tells which values are blank
        besides null and the empty text, and makes a comparison with one that it does not ask for undecided.
        """
        self.text = text
        self.paths: list[tuple[str, ...]] = []
        self.near: set[str] = set()  # texts that differ by case alone from what they were compared with
        self.texts: list[tuple[tuple[str, ...], str | None]] = []
        """Paths that are compared with texts, each with a text that makes the comparison hold, or None."""

        self._denied = False  # while what `not` takes is read
        self._names: dict[str, str] = {}
        self._number, self._fold = number, fold
        self._undecided, self._is_blank = blank is not None, blank or (lambda value: value in (None, ""))
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"longer than {MAX_LENGTH:,} characters")
        try:
            tree = ast.parse(_QUOTED.sub(self._name, text).strip(), mode="eval")
            self._evaluate = self._compile(tree.body)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, ExpressionError):
                raise
            equals = re.search(r"(?<![=!<>])=(?!=)", text)
            way = "== compares" if equals else "a name with other signs than letters stands in `backticks`"
            raise ExpressionError(f"{text!r} is no expression; {way}") from None

    def __call__(self, row: Row) -> Any:
        """Return the value for a row; raise `ExpressionError` where values cannot be compared."""
        return self._evaluate(row)

    def holds(self, row: Row) -> bool | None:
        """Tell whether the expression holds, None where a blank leaves it undecided; raise as a call does."""
        return self._truth(self._evaluate(row))

    def blanks(self, row: Row) -> list[str]:
        """Return the paths that are blank in a row, as an expression names them."""
        values = {spelled(path): look_up(row, path) for path in self.paths}
        return [path for path, value in values.items() if value is MISSING or self._is_blank(value)]

    def _truth(self, value: Any) -> bool | None:
        if not self._undecided:
            return bool(value)
        if self._is_blank(value):
            return None
        if isinstance(value, str) and value in _TRUTH:
            return _TRUTH[value]
        if value not in (0, 1):
            error = ExpressionError(f"{self.text!r} takes {_shown(value)}, neither true nor false")
            comma = isinstance(value, list)  # what Python makes of `x >= 0,5`
            compared = "== 'yes'" if isinstance(value, str) else ">= 0.5"
            error.hint = "write 0.5, not 0,5" if comma else f"compare it, for instance with {compared}"
            raise error
        return bool(value)

    def _name(self, match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        word = f"quoted_{len(self._names)}_"
        self._names[word] = match[2]
        return word

    def _compile(self, node: ast.expr) -> Evaluate:
        if isinstance(node, ast.Name) and node.id in _WORDS:
            return _constant(_WORDS[node.id])
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            path = self._path(node)
            self.paths.append(path)
            return lambda row: None if (value := look_up(row, path)) is MISSING else value
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
            return _constant(node.value)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.List | ast.Tuple):
            items = [self._compile(item) for item in node.elts]
            return lambda row: [item(row) for item in items]
        if isinstance(node, ast.BoolOp):
            parts = [self._compile(item) for item in node.values]
            return self._joined(parts, last=isinstance(node.op, ast.Or))
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise ExpressionError(
            f"{ast.unparse(node)!r} is not part of the language: paths, texts, numbers, lists, comparisons,"
            " in, and, or, not, min, max, len"
        )

    def _path(self, node: ast.expr) -> tuple[str, ...]:
        if isinstance(node, ast.Name):
            return (self._names.get(node.id, node.id),)
        if isinstance(node, ast.Attribute):
            return (*self._path(node.value), self._names.get(node.attr, node.attr))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return (*self._path(node.value), str(node.slice.value))
        raise ExpressionError(f"{ast.unparse(node)!r} is no path into the row")

    def _joined(self, parts: list[Evaluate], *, last: bool) -> Evaluate:
        """Return what joins parts by ``or`` (the `last` that is looked at holds) or by ``and``."""

        def decide(row: Row) -> bool | None:
            undecided = False
            for part in parts:
                held = self._truth(part(row))
                if held is last:
                    return last
                undecided |= held is None
            return None if undecided else not last

        return decide

    def _unary(self, node: ast.UnaryOp) -> Evaluate:
        self._denied ^= isinstance(node.op, ast.Not)
        inner = self._compile(node.operand)
        self._denied ^= isinstance(node.op, ast.Not)
        if isinstance(node.op, ast.Not):
            return lambda row: None if (held := self._truth(inner(row))) is None else not held
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return lambda row: -inner(row)
        raise ExpressionError(f"{ast.unparse(node)!r} is not part of the language")

    def _call(self, node: ast.Call) -> Evaluate:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _CALLS or node.keywords or not node.args or (name == "len" and len(node.args) > 1):
            raise ExpressionError(
                f"{ast.unparse(node)!r} calls something; only min, max and len can be called"
            )
        parts = [self._compile(item) for item in node.args]

        def call(row: Row) -> Any:
            values = [part(row) for part in parts]
            if name == "len":
                return len(values[0]) if isinstance(values[0], list | str | dict) else None
            if len(values) == 1 and isinstance(values[0], list):
                values = values[0]
            numbers = [number for number in map(self._numeric, values) if number is not None]
            return _CALLS[name](numbers) if numbers else None

        return call

    def _comparison(self, node: ast.Compare) -> Evaluate:
        sides = [node.left, *node.comparators]
        if any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
            texts = [
                side.value for side in sides if isinstance(side, ast.Constant) if isinstance(side.value, str)
            ]
            if wrong := [text for text in texts if _times(text) is None]:
                raise ExpressionError(f"{self.text!r} orders the text {wrong[0]!r}; {_ORDERED}")
        parts = [self._compile(item) for item in sides]
        tests = [self._test(op) for op in node.ops]
        self._note_texts(node, sides)
        decided = not self._undecided or any(map(self._asks, sides))

        def compare(row: Row) -> bool | None:
            values = [part(row) for part in parts]
            if not decided and any(map(self._is_blank, values)):
                return None
            try:
                return all(test(values[i], values[i + 1]) for i, test in enumerate(tests))
            except ExpressionError as error:
                for side, value in zip(sides, values, strict=True):
                    if isinstance(value, dict) and value and not isinstance(side, ast.Constant):
                        path = self._path(side)
                        inner = spelled((*path, next(iter(value))))
                        error.hint = f"it is an object or null: use `{spelled(path)} == null`, or `{inner}`"
                raise

        return compare

    def _note_texts(self, node: ast.Compare, sides: list[ast.expr]) -> None:
        """Note the texts that a path is compared with."""
        holds = isinstance(node.ops[0], ast.Eq | ast.In) != self._denied
        paths = [
            self._path(side) for side in sides if isinstance(side, ast.Name | ast.Attribute | ast.Subscript)
        ]
        items = [item for side in sides for item in getattr(side, "elts", [side])]
        texts = [
            item.value for item in items if isinstance(item, ast.Constant) if isinstance(item.value, str)
        ]
        self.texts += [(path, text if holds else None) for path in paths for text in texts]

    def _asks(self, side: ast.expr) -> bool:
        """Tell whether a side of a comparison is a blank, or a list that holds one."""
        items = side.elts if isinstance(side, ast.List | ast.Tuple) else [side]
        values = [getattr(item, "value", _WORDS.get(getattr(item, "id", ""), 0)) for item in items]
        return any(self._is_blank(value) for value in values if isinstance(value, str | None))

    def _test(self, op: ast.cmpop) -> Callable[[Any, Any], bool]:
        if isinstance(op, ast.In | ast.NotIn):
            return lambda item, many: self._within(item, many) != isinstance(op, ast.NotIn)
        if type(op) not in _COMPARE:
            raise ExpressionError("compares with 'is'; write == or !=")
        return lambda left, right: self._compare(_COMPARE[type(op)], left, right)

    def _within(self, item: Any, many: Any) -> bool:
        if isinstance(many, str) and not self._is_blank(many):
            error = ExpressionError(f"{self.text!r} looks for {_shown(item)} in {_shown(many)}")
            error.hint = "`in` takes a list; a text is compared with =="
            raise error
        if not isinstance(many, list | dict):
            return False
        # Of a list of several kinds, those that are unlike the item are not it.
        like = {_kind(item), "null", *({"text", "number"} if _kind(item) in {"text", "number"} else ())}
        alike = [member for member in many if _kind(member) in like]
        return any(self._compare(operator.eq, item, member) for member in alike or many)

    def _compare(self, test: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
        left, right = (None if self._is_blank(value) else value for value in (left, right))
        orders = test not in {operator.eq, operator.ne}
        if {_kind(left), _kind(right)} == {"text", "number"}:
            left, right = self._numeric(left), self._numeric(right)
        elif orders and isinstance(left, str) and isinstance(right, str):
            left, right = _times(left, right) or (self._numeric(left), self._numeric(right))
        if left is None or right is None:
            return test is operator.ne if left is not right else test is operator.eq
        if _kind(left) != _kind(right) or (orders and _kind(left) not in {"number", "time"}):
            error = ExpressionError(f"{self.text!r} compares {_shown(left)} with {_shown(right)}")
            error.hint = _ORDERED if orders else _UNLIKE
            raise error
        left, right = self._folded(left), self._folded(right)
        if isinstance(left, str) and left.casefold() == right.casefold():
            (self.near.discard if left == right else self.near.add)(left)
        return test(left, right)

    def _folded(self, value: Any) -> Any:
        return value.strip().casefold() if self._fold and isinstance(value, str) else value

    def _numeric(self, value: Any) -> Any:
        return self._number(value) if isinstance(value, str) else value


def _kind(value: Any) -> str:
    """Return the kind of a value of JSON; values of two kinds cannot be compared."""
    if value is None or value == "":
        return "null"
    kinds = {bool: "truth value", str: "text", int: "number", float: "number", list: "list", datetime: "time"}
    return kinds.get(type(value), "object")


def _times(*texts: str) -> tuple[datetime, ...] | None:
    """Return texts as times, None where one is none, or where not all or none have an offset."""
    try:
        times = tuple(map(datetime.fromisoformat, texts))
    except ValueError:
        return None
    return times if len({time.tzinfo is None for time in times}) == 1 else None


def _shown(value: Any) -> str:
    return f"the {_kind(value)} {str(value).lower() if isinstance(value, bool) else repr(value)}"


def _constant(value: Any) -> Evaluate:
    return lambda _: value
