"""The mapping file: how a source's rows become record fields, and how its texts are read.

    [read]
    rows = "results.results"      # the list that holds the runs
    where = "kind == 'attempt'"   # of its items, those that are runs
    [columns]                     # our field = their column, a dotted path into the row, or several columns
    task_id = ["year", "day"]
    [when.outcome]                # our value = when it holds; the first that holds, "otherwise" last
    success = "score >= 0.5"

The tables stand in docs/reference/importers.md; templates/mappings/example.toml is an example.
A text becomes a number or a truth value only in the form that JSON has for it, or that `[read]` states.
Expressions are described in `certkit.record.expressions`. This module reads no rows and writes no records.
"""

from __future__ import annotations

import re
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, field_validator, model_validator

from certkit.bundle.facts import UNVERSIONED
from certkit.bundle.manifest import Agent, Protocol
from certkit.ground import base, canonical, files, toml
from certkit.ground.base import Authored
from certkit.ground.errors import InputError
from certkit.ground.text import visible
from certkit.record.columns import KINDS
from certkit.record.expressions import MISSING, Expression, ExpressionError
from certkit.record.record import FIELDS, USER_FIELD, Approach, Condition, Measured, Outcome, Split
from certkit.record.trace import Rules

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

MAX_MAPPING: Final = 1024 * 1024
OTHERWISE: Final = "otherwise"
NO_TIME_ZONE: Final = "times without an offset; --timezone states their zone"

Scalar = StrictStr | StrictBool | StrictInt | StrictFloat
Column = Annotated[str, Field(min_length=1, max_length=1024)]
Columns = Annotated[list[Column], Field(min_length=2, max_length=16)]
"""Columns whose values make one text, joined by ``/``; a ``/`` in a value is written %2F, and a % as %25."""

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "condition": tuple(Condition),
    "outcome": tuple(Outcome),
    "split": tuple(Split),
    "recovery_approach": tuple(Approach),
    "measured": tuple(Measured),
}
"""The words that a field may hold; `condition` may also hold an ``x_`` name."""

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,15})\Z")
_GROUPED = re.compile(r"-?[1-9][0-9]{0,2}(,[0-9]{3})+\Z")  # the commas may mark thousands
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?\Z")
_EXPECTED: Final = {"integer": "an integer", "floating": "a number", "ternary": "true or false"}
_TRUTH: Final = {"true": True, "false": False}
_OUTCOMES: Final = dict.fromkeys(("true", "1", "1.0"), "success") | dict.fromkeys(
    ("false", "0", "0.0"), "failure"
)
"""Truth values, in lower case, as outcomes."""

OPTIONS: Final = {
    "domain": "--domain NAME",
    "condition": "--condition nominal",
    "outcome": "--success EXPRESSION",
}
"""The options that fill a field."""


class Read(Authored):
    """Which rows of the source are read, and how its texts are."""

    rows: Column | None = Field(
        default=None,
        description="JSON: the list that holds the runs, such as results.results; or runs.* for the values of"
        " an object",
    )
    where: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="an expression: rows for which it does not hold are left out, and counted",
    )
    encoding: str | None = Field(default=None, description="CSV: how its text is encoded, such as cp1252")
    case_insensitive: bool = Field(
        default=False, description="ignore case, and white space around texts, where texts are compared"
    )
    blank: tuple[str, ...] = Field(
        default=(), description="texts that mean: not measured, as the empty text always does"
    )
    decimal_comma: bool = Field(default=False, description="numbers are written 0,5; a point is refused")
    date: str | None = Field(default=None, description="how times are written, for example %d.%m.%Y %H:%M")
    timezone: str | None = Field(
        default=None, description="the zone of times without an offset, for example Europe/Berlin"
    )
    duplicates: Literal["count", "refuse", "drop-identical"] = Field(
        default="count",
        description="a row whose columns all equal an earlier row's counts, is a fault, or is left out",
    )

    @field_validator("date")
    @classmethod
    def _date(cls, form: str | None) -> str | None:
        try:
            read_time("", form)
        except re.error:  # a part that stands twice
            raise ValueError(f"{form!r} is no form of a date, such as %d.%m.%Y %H:%M") from None
        return form

    @field_validator("timezone")
    @classmethod
    def _zone(cls, name: str | None) -> str | None:
        zone(name)
        return name

    @field_validator("encoding")
    @classmethod
    def _encoding(cls, name: str | None) -> str | None:
        return text_encoding(name)


class Mapping(Authored):
    """How the rows of a source become records."""

    columns: dict[str, Column | Columns] = Field(default_factory=dict)
    when: dict[str, dict[str, StrictStr]] = Field(default_factory=dict)
    values: dict[str, dict[str, Scalar | list[Scalar]]] = Field(default_factory=dict)
    constants: dict[str, Scalar] = Field(default_factory=dict)
    agent: Agent | None = None
    protocol: Protocol = Protocol(origin="measured")
    read: Read = Read()
    trace: Rules = Rules()
    domain_before_task: bool = Field(default=False, description="write task_id as domain/task_id")

    @property
    def named(self) -> list[str]:
        """The columns that `[columns]` names."""
        return [
            name for names in self.columns.values() for name in ([names] if isinstance(names, str) else names)
        ]

    @field_validator("columns")
    @classmethod
    def _joined(cls, columns: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
        for field, names in columns.items():
            if isinstance(names, list) and (KINDS.get(field, "string") != "string" or field in WORDS):
                raise ValueError(f"{field}: several columns make a text, and {field!r} is none")
        return columns

    @model_validator(mode="after")
    def _fields_exist(self) -> Mapping:
        for table in ("columns", "when", "values", "constants"):
            for name in getattr(self, table):
                if name not in FIELDS and not USER_FIELD.match(name):
                    raise ValueError(
                        f"{table}: {name!r} is neither a record field nor an x_ field{near(name, FIELDS)}"
                    )
        if early := [field for field, cases in self.when.items() if OTHERWISE in [*cases.values()][:-1]]:
            raise ValueError(f"when.{early[0]}: {OTHERWISE!r} takes every row: move its line to the end")
        for field, words in WORDS.items():
            meant = self.values.get(field, {}).items()
            chosen = [key if isinstance(value, list) else value for key, value in meant]
            for word in (*chosen, *self.when.get(field, ()), *[self.constants.get(field, words[0])]):
                text = str(word)
                if word not in words and not (field == "condition" and text.startswith("x_")):
                    named = " or your own, x_network_loss" * (field == "condition")
                    known = f"; give {', '.join(words)}{named}"
                    raise ValueError(f"{text!r} is no value of {field}{near(text, words) or known}")
        filled = [*self.columns, *self.when, *self.constants]
        if both := sorted({name for name in filled if filled.count(name) > 1}):
            names = ("columns", f"when.{both[0]}", "constants")
            told = [f"[{name}]" for name in names if both[0] in getattr(self, name.partition(".")[0])]
            raise ValueError(f"{both[0]!r} stands under {' and '.join(told)}; keep one")
        means = [word for table in self.values.values() for word in table.values() if isinstance(word, str)]
        if "NAME" in {*self.constants.values(), self.agent and self.agent.name, *means}:
            raise ValueError("'NAME' stands for a name of yours: write that")
        return self


def zone(name: str | None) -> ZoneInfo | None:
    """Return a time zone.

    Raises:
        ValueError: where it has no such name.
    """
    try:
        return None if name is None else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{name!r} is no time zone, such as Europe/Berlin or UTC") from None


def text_encoding(name: str | None) -> str | None:
    """Return the name of a text encoding.

    Raises:
        ValueError: where none is called so.
    """
    try:
        "".encode(name or "utf-8")
    except (LookupError, ValueError):
        raise ValueError(f"{name!r} is no text encoding, such as cp1252 or utf-16") from None
    return name


def read_time(text: str, form: str | None) -> datetime | None:
    """Return a text as a time of this form, of ISO 8601 without a form; None where it is none."""
    try:  # the time may have no offset
        return datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007
    except ValueError:
        return None


def near(name: str, names: Collection[str]) -> str:
    """Return ``; did you mean 'x'?`` where a name is like one of `names`, else nothing."""
    close = nearest(name, names)
    return f"; did you mean {close!r}?" if close else ""


def nearest(name: str, names: Collection[str], cutoff: float = 0.6) -> str | None:
    """Return that of `names` which a name is like, None where there is none; `cutoff` 1 takes equal ones."""
    folded = {item.casefold(): item for item in names}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return str(folded[close[0]]) if close else None


def read_mapping(path: Path) -> Mapping:
    """Read a mapping file.

    Raises:
        InputError: ``import.mapping`` naming every fault.
    """
    try:
        return parse_mapping(files.read(path, limit=MAX_MAPPING).decode(), path.name)
    except UnicodeDecodeError:
        raise InputError("import.mapping", "not UTF-8", where=path.name) from None


def parse_mapping(text: str, name: str) -> Mapping:
    """Read the text of a mapping file called `name`."""
    document = toml.loads(text, code="import.mapping", where=name)
    tables = (("read/", document.get("read"), Read), ("trace/", document.get("trace"), Rules))
    for where, table, known in (("", document, Mapping), *tables):
        for key in table if isinstance(table, dict) else ():
            if key not in known.model_fields:
                message = f"/{where}{key}: not known{near(key, known.model_fields)}"
                raise InputError("import.mapping", message, where=name)
    _refuse_empty(document.get("columns"), name)
    # Entries that bundle.json requires have a default here.
    for key, entry, default in (("agent", "version", UNVERSIONED), ("protocol", "origin", "measured")):
        if isinstance(document.get(key), dict):
            document[key].setdefault(entry, default)
    return base.validate(Mapping, document, code="import.mapping", where=name)


def _refuse_empty(columns: Any, name: str) -> None:
    """Raise `InputError` where a mapping that ``--columns`` wrote was not filled in."""
    if isinstance(columns, dict) and (empty := [field for field, column in columns.items() if column == ""]):
        fields = ", ".join(map(visible, empty))
        message = f"/columns/{visible(empty[0])}: empty; write the columns that hold {fields}"
        given = ", ".join(OPTIONS[field] for field in empty if field in OPTIONS)
        raise InputError(
            "import.mapping", message, where=name, hint=f"or remove the lines, and give {given}" * bool(given)
        )


class CellError(ValueError):
    """A value that cannot be read; the message is the expected content."""

    def __init__(self, expected: str, *, code: str = "import.row", hint: str = "") -> None:
        super().__init__(expected)
        self.code, self.hint = code, hint


class NaiveTimeError(ValueError):
    """A time that has no offset, where no time zone was given."""


class Values:
    """Reads the values of a source as values of record fields, by a mapping.

    `cells`: all values are texts, as in CSV, so that texts become numbers and truth values.
    """

    def __init__(self, mapping: Mapping, timezone: str | None, *, cells: bool) -> None:
        self._read, self._cells = mapping.read, cells
        self._zone = zone(timezone or mapping.read.timezone)
        self._blank = frozenset(map(self.fold, ("", *mapping.read.blank)))
        self._tables = {field: self._table(field, table) for field, table in mapping.values.items()}

    def expression(self, text: str, place: str) -> Expression:
        """Read an expression of the mapping that stands at `place`."""
        try:
            fold = self._read.case_insensitive
            return Expression(text, number=self.number, fold=fold, blank=self.is_blank)
        except ExpressionError as error:
            raise InputError("import.mapping", f"{place}: {error}") from None

    def is_blank(self, value: Any) -> bool:
        """Tell whether a value means: not measured."""
        return value is None or (isinstance(value, str) and self.fold(value) in self._blank)

    def number(self, text: str) -> float | None:
        """Return a text as a number, None where it is blank.

        Raises:
            ExpressionError: where it is none.
        """
        if self.fold(text) in self._blank:
            return None
        plain = self._plain(text)
        if not _NUMBER.match(plain):
            error = ExpressionError(f"{text!r} is no number")
            error.hint = self._comma(text)
            raise error
        return float(plain)

    def _comma(self, text: str) -> str:
        """Return a hint where a comma or thousands points make a text no number."""
        if self._read.decimal_comma:
            return "points are refused beside `decimal_comma`: remove thousands points" * ("." in text)
        if text.endswith("%"):
            return "remove the %: as a share 95% is 0.95"
        if _GROUPED.match(text):
            return "write thousands without commas, or set `decimal_comma = true` under `[read]` in a mapping"
        plain = text.replace(".", "").replace(",", ".") if "," in text else ""
        return "set `decimal_comma = true` under `[read]` in a mapping" * bool(_NUMBER.match(plain))

    def value(self, field: str, raw: Any) -> Any:
        """Return the value of a record field, None where it is not measured.

        Raises `CellError`, and `NaiveTimeError` for a time without an offset.
        """
        table = self._tables.get(field, {})
        if (key := "" if raw in (None, []) else self._key(raw)) in table:
            return table[key]
        if isinstance(raw, dict | list) and raw:
            part = ", or a value in the object: COLUMN.NAME" * isinstance(raw, dict)
            hint = f"map another column to {field}{part}; `[values.{field}]` may say what it means"
            raise CellError("a text, number or truth value", hint=hint)
        if key in self._blank:
            return None
        kind = KINDS.get(field, "string")
        if field in WORDS:
            return self._word(field, raw if isinstance(raw, str) else key)
        if kind == "time":
            return self._time(raw)
        if kind == "string":
            # Numbers are fine names of tasks and runs.
            return str(raw) if field in FIELDS and isinstance(raw, int) and not isinstance(raw, bool) else raw
        return self._typed(kind, raw, field) if self._cells and isinstance(raw, str) else raw

    def joined(self, values: list[Any]) -> str | None:
        """Return the values of several columns as one text, None where one is blank."""
        if any(value is MISSING or self.is_blank(value) for value in values):
            return None
        texts = [value if isinstance(value, str) else self._key(value) for value in values]
        return "/".join(text.replace("%", "%25").replace("/", "%2F") for text in texts)

    def literal(self, field: str, text: str) -> Any:
        """Return a value of the field that the mapping writes as a key, and so as text."""
        kind = KINDS.get(field, "string")
        if kind in {"string", "time"}:
            return text
        if kind == "ternary":
            return _TRUTH.get(text, text)
        return (int if kind == "integer" else float)(text) if _NUMBER.match(text) else text

    def _table(self, field: str, table: dict[str, Any]) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        for key, value in table.items():
            words = [(self.fold(key), value)]
            if isinstance(value, list):
                words = [(self._key(item), self.literal(field, key)) for item in value]
            for word, meant in words:
                if pairs.setdefault(word, meant) != meant:
                    message = f"values.{field}: {word!r} means both {pairs[word]!r} and {meant!r}"
                    raise InputError("import.mapping", message, hint="write it once")
        return pairs

    def _key(self, raw: Any) -> str:
        return self.fold(raw if isinstance(raw, str) else canonical.line(raw).decode().strip())

    def fold(self, text: str) -> str:
        """Return a text as it is compared."""
        return text.strip().casefold() if self._read.case_insensitive else text

    def _word(self, field: str, raw: str) -> str:
        word = self.fold(raw)
        if word in WORDS[field] or (field == "condition" and word.startswith("x_")):
            return word
        truths = field == "outcome" and field not in self._tables
        if truths and (outcome := _OUTCOMES.get(raw.casefold())):
            return outcome
        words = [*WORDS[field], *(("true", "false", "1", "0") if truths else ())]
        named = f"{', '.join(words[:-1])} or {words[-1]}"
        hint = f"say what it means under `[values.{field}]` in a mapping"
        hint = f"say what is a success: {OPTIONS[field]}; or {hint}" if truths else hint
        raise CellError(f"{named} for {field}", code="record.value", hint=hint)

    def _plain(self, text: str) -> str:
        if not self._read.decimal_comma:
            return text
        return text.replace(",", ".") if "." not in text else ""

    def _typed(self, kind: str, raw: str, field: str) -> Any:
        if kind == "ternary" and raw in _TRUTH:
            return _TRUTH[raw]
        if kind == "integer" and _INTEGER.match(whole := self._plain(raw).removesuffix(".0")):
            return int(whole)  # pandas writes 13.0 in a column that has a blank
        if kind == "floating" and _NUMBER.match(plain := self._plain(raw)):
            return float(plain)
        hint = self._comma(raw) if kind != "ternary" else ""
        raise CellError(_EXPECTED[kind], hint=hint or f"add it to `[values.{field}]`")

    def _time(self, raw: Any) -> Any:
        if not isinstance(raw, str):
            return raw
        stated = self._read.date
        if (time := read_time(raw, stated)) is None:
            expected = f"a time like {stated}" if stated else "an RFC 3339 time with offset"
            hint = "`date` under `[read]` in a mapping states how times are written, such as %d.%m.%Y %H:%M"
            hint = "correct it, or leave it blank" if stated else hint
            raise CellError(expected, code="import.row" if stated else "record.value", hint=hint)
        if time.tzinfo is not None:
            return time.isoformat() if stated or " " in raw else raw
        if self._zone is None:
            raise NaiveTimeError
        return time.replace(tzinfo=self._zone).isoformat()
