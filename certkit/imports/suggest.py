"""A first mapping for a log that nobody described: what its columns hold, and what they may mean.

The text is a mapping file that `--map` accepts as it is. A proposal is made only where the name of a column
and its values agree; what must be decided stands there as a comment with the candidates. Columns are proposed
for fields that the importer does not fill itself.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from certkit.ground import canonical
from certkit.ground.text import visible
from certkit.imports.drafts import row_digest
from certkit.imports.mapping import DATES, GROUPED, read_time
from certkit.imports.mapping import WORDS as ENUMERATIONS
from certkit.imports.names import LISTS, MAX_NAME, agent_rank, paths, plain_name, short
from certkit.record.columns import KINDS
from certkit.record.expressions import shell, spelled, success_test
from certkit.record.record import FIELDS, REQUIRED, Condition, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from certkit.imports.job import Importer, ImportOptions, Run

MAX_PATHS: Final = 200
MAX_DISTINCT: Final = 40
_SHOWN: Final = 6

NAMES: Final = {field: words.split() for field, words in LISTS["names"].items()}
_FIELD_NAMES: Final = frozenset(FIELDS).union(*NAMES.values())

_OTHERWISE, _DENYING, _FILLING, _ENDING, _UNSURE, _FAILING, _FAILED, _NEUTRAL = (
    frozenset(words.split()) for words in LISTS["beside"].values()
)
_BAD: Final = re.compile("|".join(LISTS["beginnings"]["bad"].split()))
_CAREFUL: Final = frozenset(("condition", "outcome"))
"""Fields that decide who succeeded at what: of these a name is proposed only beside neutral words."""
_CHOSEN: Final = frozenset(("outcome", "task_id"))
"""Fields for which the reader chooses where two columns have a name of theirs."""

VOCABULARY: Final = {
    condition: [frozenset(words.split()) for words in parts]
    for condition, parts in LISTS["conditions"].items()
}
"""Condition → words that each mean it, or things and what befalls them: it takes one word of both."""

_COUNTING: Final = frozenset(LISTS["counting"]["runs"].split())

_MEASURE: Final = re.compile(r"[-+]?[0-9][0-9.,:/TZAPMapm +-]*(s|ms|sec|min|h|%|€|\$)?")
"""A number, a time or a date."""

_FAULTY: Final = frozenset(NAMES["condition"]) - {"bedingung"}  # words beside which a column speaks of faults

_TEXTS: Final = {
    meaning: frozenset(words.split() if isinstance(words, str) else words)
    for meaning, words in LISTS["texts"].items()
}
_NONE: Final = _TEXTS["no_fault"] | {""}  # texts that may say that there was no fault

_UNKNOWN: Final = "CONDITION"
"""Stands for a condition that the reader must name; no mapping with it is accepted."""

_CANDIDATES: Final = 4
_LONGEST: Final = 80  # characters of a text that may mean a condition

_YES: Final = _TEXTS["yes"]
_NO: Final = _TEXTS["no"]
_TRUTH: Final = _YES | _NO
_DENIED: Final = frozenset(("none", "no", "false", "nein", "non"))
"""Texts that say that there was no fault, under a name of conditions; numbers may be ids."""

WORDS: Final[dict[str, frozenset[str]]] = {
    Outcome.SUCCESS: _YES | _TEXTS["success"],
    Outcome.FAILURE: _NO | _TEXTS["failure"],
    Outcome.HARNESS_ERROR: _TEXTS["harness_error"],
}
_WON: Final = frozenset(("achieved", "success", "successful", "succeeded", "won"))
_FAILS: Final[dict[str, frozenset[str]]] = {Outcome.FAILURE: _YES}  # what a name of failure says
BLANK: Final = _TEXTS["blank"]
_DECIMAL = re.compile(r"-?[0-9]+,[0-9]+\Z")


class Column:
    """What was seen at a path: distinct values with their counts, up to a limit, and how many were blank."""

    def __init__(self) -> None:
        self.rows = self.blank = 0  # with a value, and without
        self.values: Counter[str] = Counter()
        self.many = self.above = False  # more values than are kept; a number above 1 or below 0
        self.literal: set[str] = set()  # values that are no texts

    def add(self, value: Any) -> None:
        """Count a value."""
        if value in (None, "", []):
            return
        self.rows += 1
        text = value if isinstance(value, str) else canonical.line(value).decode().strip()
        self.above = self.above or (_is_number(text) and not 0 <= float(text.replace(",", ".")) <= 1)
        if not isinstance(value, str) and len(self.literal) < MAX_DISTINCT:
            self.literal.add(text)
        if text in self.values or len(self.values) < MAX_DISTINCT:
            self.values[text] += 1
        else:
            self.many = True

    def told(self) -> str:
        """Return the most frequent values, for a comment."""
        shown = ", ".join(
            f"{visible(value)[:40]} ({count:,})" for value, count in self.values.most_common(_SHOWN)
        )
        more = ", …" if self.many or len(self.values) > _SHOWN else ""
        more += f"; blank ({self.blank:,})" if self.blank else ""
        distinct = f"{'more than ' * self.many}{len(self.values)} distinct: {shown}{more}"
        return distinct if shown else "always blank"

    def plain(self) -> list[str]:
        """Return the values that are not blank."""
        return [value for value in self.values if value.casefold() not in BLANK]

    def folded(self) -> set[str]:
        """Return the values that are not blank, without the case of their letters."""
        return {value.casefold() for value in self.plain()}

    def numeric(self) -> bool:
        """Tell whether all values that are not blank are numbers."""
        return all(map(_is_number, self.plain()))


class Suggestion:
    """Collects what the rows of a log hold, and writes a mapping of it."""

    def __init__(self, source: Path, options: ImportOptions, importer: Importer) -> None:
        self.source, self.options, self.hints = source, options, importer.hints
        self._cells = importer.cells
        self.columns: dict[tuple[str, ...], Column] = defaultdict(Column)
        self.rows = self.again = 0
        self.filled: set[str] = set()
        self._nameless = False
        self._add(importer.runs())
        self.unread = importer.job.faults.total

    def _add(self, runs: Iterable[Run]) -> None:
        """Look at the rows of runs; a required field is filled where every run or an option fills it."""
        lacking: set[str] = set()
        met: set[bytes] = set()
        for run in runs:
            self.rows += 1
            self.again += (digest := row_digest(run.row)) in met
            met.add(digest)
            self._nameless |= not (run.agent or self.options.agent)
            filled = {field for field, value in run.fields.items() if value is not None}
            self.filled |= filled | ({"steps_actual"} if run.shown.steps else set())
            lacking |= set(REQUIRED) - filled
            for path, value in paths(run.row, lists=True):
                if short(path) != path or (isinstance(value, dict | list) and not says(path)[0]):
                    continue
                if agent_rank(path) is None and (path in self.columns or len(self.columns) < MAX_PATHS):
                    self.columns[path].add(value)
        for column in self.columns.values():
            column.blank = self.rows - column.rows  # also where the path is absent
        self.filled = self.filled - lacking | ({"outcome"} if self.options.success else set())

    def proposals(self) -> dict[str, tuple[str, ...]]:
        """Return record field → path of the column where name and values agree."""
        proposed: dict[str, tuple[str, ...]] = {}
        for named in (_named, _worded):
            for field in FIELDS:
                if field in self.filled | proposed.keys():
                    continue
                # The reader chooses: the form of a date, of two outcomes, of two that hold a word of a field.
                fitting = [
                    path
                    for path in self._fitting(field, named, proposed)
                    if len(_forms(self.columns[path])) < 2  # noqa: PLR2004
                    and _means(path, field)
                ]
                named_so = [path for path in fitting if path == (field,)]
                if named_so or len(fitting) == 1 or (fitting and named is _named and field not in _CHOSEN):
                    proposed[field] = (named_so or fitting)[0]
        return proposed

    def _fitting(
        self, field: str, named: Callable[[tuple[str, ...], str], bool], proposed: dict[str, tuple[str, ...]]
    ) -> list[tuple[str, ...]]:
        """Return the paths not proposed yet whose name and values agree with a field."""
        return [
            path
            for path, column in self.columns.items()
            if column.values and path not in proposed.values()
            if named(path, field) and self._fits(field, path)
        ]

    def _candidates(self, field: str, proposed: dict[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Return the column that is proposed for a field, else the first whose values alone would fit."""
        if field in proposed:
            return [proposed[field]]
        chosen = []
        for path in self._fitting(field, lambda *_: True, proposed):
            column = self.columns[path]
            meant = {*map(_meant, column.values)}
            speaks = says(path)[0] or "nominal" in meant or not (column.many or None in meant)
            beside = _words(".".join(path)) & (_OTHERWISE | _ENDING)
            means = speaks and not (column.folded() <= _TRUTH or beside)
            domains = not column.many and column.rows == self.rows and not _judges(column)
            fits = {"domain": domains, "condition": means, "task_id": not _judges(column)}
            if not column.numeric() and fits.get(field, True):
                chosen.append(path)
        return chosen[:_CANDIDATES]

    def _fits(self, field: str, path: tuple[str, ...]) -> bool:
        column, kind = self.columns[path], KINDS[field]
        values = column.folded()
        if field == "run_id":
            return column.rows == self.rows and max(column.values.values(), default=2) == 1
        if field == "outcome":
            return _judges(column) and not (values & _TRUTH and _words(".".join(path)) & _FAILING)
        if kind == "ternary" or (field in ENUMERATIONS and field != "condition"):
            words = {word for synonyms in _synonyms(field).values() for word in synonyms}
            return bool(values) and not column.many and values <= words | set(ENUMERATIONS.get(field, ()))
        if kind == "time":
            return bool(_forms(column))
        if kind == "string":
            if field in {"domain", "task_id"} and all(map(_MEASURE.fullmatch, column.plain())):
                return field == "task_id" and all(map(str.isdigit, column.plain()))
            return field != "task_id" or len(values - _TRUTH) > 1 or self.rows == 1 or _named(path, field)
        if not self._cells and not {*column.plain()} <= column.literal:
            return False  # texts, which become numbers only as cells of CSV
        return all(map(str.isdigit, values)) if kind == "integer" else column.numeric()

    def text(self, format_: str, *, guess: bool) -> Iterator[str]:
        """Yield the lines of the mapping; with `guess` a blank may mean nominal before the user says so."""
        proposed = self.proposals()
        size = f"{self.rows:,} rows, {len(self.columns)} columns"
        size += f"; left out, since they cannot be read: {self.unread:,}" * bool(self.unread)
        yield f"# A mapping for {visible(self.source.name)}, read as {format_}: {size}."
        yield "# Lines with # say what was seen. Where one says DECIDE: check it, remove its first #. Then:"
        given = {name for name in ("domain", "condition") if getattr(self.options, name) is not None}
        full = {field for field, path in proposed.items() if not self.columns[path].blank}
        options = replace(self.options, **dict.fromkeys(given & full))
        options = replace(options, agent="NAME") if self._nameless else options
        yield f"#   {options.command(self.source)} -o BUNDLE --map THIS_FILE"
        yield from self._columns(proposed)
        if "outcome" not in self.filled | proposed.keys():
            yield from self._outcome(proposed)
        for field, path in proposed.items():
            yield from self._values(field, self.columns[path])
        if "condition" not in self.filled | (given - proposed.keys()):
            yield from self._condition(proposed, guess=guess)
        if "domain" not in self.filled | proposed.keys() | given:
            above = self._candidates("domain", proposed)
            yield (
                "# DECIDE the domain: a column above, or --domain NAME\n"
                if above
                else LISTS["asked"]["domain"]
            )
        yield from self._read(proposed)
        yield "# Columns that no line above uses:"
        for path, column in self.columns.items():
            if path not in proposed.values():
                yield f"#   {visible('.'.join(path))}: {column.told()}"
        yield "#\n# What criteria still need, as columns of these names or mapped to them:"
        for criterion, fields in LISTS["needs"].items():
            needed = {word.strip(",") for word in fields.split()} & set(FIELDS)
            lacking = needed - self.filled - proposed.keys()
            if lacking and (lacking == needed or " or " not in fields):
                yield f"#   {criterion}: {fields}"

    def _columns(self, proposed: dict[str, tuple[str, ...]]) -> Iterator[str]:
        """Yield the columns that are proposed, and as comments those that the reader may choose."""
        yield "\n[columns]"
        for field, path in proposed.items():
            yield f"{'# ' * (path == (field,))}{field} = {column_name(path)}  # {self.columns[path].told()}"
        for field in (*REQUIRED, "started_at"):
            if field not in self.filled | proposed.keys() | {"run_id"}:
                choices = (
                    self._candidates(field, proposed) if field != "domain" or not self.options.domain else []
                )
                yield from [f"# DECIDE which column holds {field}:"] if choices else []
                for path in choices:
                    yield f"# {field} = {column_name(path)}  # {self.columns[path].told()}"
        yield ""

    def _values(self, field: str, column: Column) -> Iterator[str]:
        """Yield what the values of a column mean, where they are no words of the field itself."""
        lines, synonyms = [], _synonyms(field)
        known = {*ENUMERATIONS.get(field, ()), *synonyms}
        for ours, words in synonyms.items():
            if theirs := [v for v in sorted(column.plain()) if v.casefold() in words and v not in known]:
                lines.append(f"{ours} = {_quoted(theirs)}")
                known.update(theirs)
        unknown = [text for text in column.plain() if field == "outcome" and text not in known]
        for text in unknown:
            lines += [f'# {_quoted(text)} = "SUCCESS OR FAILURE"  # DECIDE (rows: {column.values[text]:,})']
        if field == "outcome" and column.blank:
            lines.append(
                f'# "" = "failure"  # rows: {column.blank:,}; without this line they are harness errors'
            )
        if lines:
            yield from (f"[values.{field}]", *lines, "")

    def _outcome(self, proposed: dict[str, tuple[str, ...]]) -> Iterator[str]:
        yield "# DECIDE what a success is, for instance so:"
        hint = self.hints.get("outcome")
        tests, looked = {hint: self.hints.get("several", "")} if hint else {}, []
        for path, column in () if hint else self.columns.items():
            words = _words(".".join(path))
            bad = words & (_FAILING - {"status"}) or words & _FAILING
            if bad:  # a no says that nothing failed, where no other word denies or turns it
                fine = [v if v in column.literal else repr(v) for v in column.plain() if v.casefold() in _NO]
                truth = (
                    column.folded() <= _TRUTH
                    and len(bad) == 1
                    and words <= bad.union(_NEUTRAL, NAMES["outcome"])
                )
                test = f"in [{', '.join(fine)}]" if fine and truth and not column.many else ""
            else:
                numbers = column.values and column.numeric() and not any(says(at)[2] for at in self.columns)
                test = ">= THRESHOLD" if column.above or not _means(path, "outcome") else ">= 0.5"
                test *= bool(numbers and words & {"outcome", *NAMES["outcome"]} and not any(map(fails, path)))
            if test:
                looked.append(path)
                tests[success_test(spelled(path), test)] = f"  ({column.told()})"
        candidates = self._candidates("outcome", proposed)[:1]
        for path, column in () if hint or tests or candidates else self.columns.items():
            called = (_named(path, "outcome") or _worded(path, "outcome")) and _means(path, "outcome")
            if called and column.plain() and not column.numeric() and not any(map(fails, path)):
                tests[success_test(spelled(path), "== VALUE")] = f"  ({column.told()})"
        commas = any(map(_DECIMAL.match, chain.from_iterable(self.columns[path].values for path in looked)))
        judging = [path for path, column in self.columns.items() if says(path)[1] and _judges(column)]
        rivals = [column_name(path) for path in judging if not any(map(fails, path))]
        if rivals and not hint:
            self.hints["several"] = f" (it may look at {', '.join(map(visible, rivals[:_CANDIDATES]))})"
        elif tests and not hint and not commas:  # which a mapping alone makes numbers
            self.hints["outcome"], *rivals = tests
            self.hints["several"] = f" (or by {', '.join(rivals)})" if rivals else ""
        example = {} if candidates else {"COLUMN >= 0.5": "  (none of the columns is called like an outcome)"}
        told = tests or example
        yield from (f"#   --success {shell(test)}{more}" for test, more in told.items())
        for test in [*tests][:1]:
            yield f'# or so:\n# [when.outcome]\n# success = {_quoted(test)}\n# failure = "otherwise"'
        yield ""
        for path in candidates:  # until the column is chosen above, its values are not looked at
            yield from self._values("outcome", self.columns[path])

    def _condition(self, proposed: dict[str, tuple[str, ...]], *, guess: bool) -> Iterator[str]:
        """Yield what each value of the column means; nothing looks there until the column is chosen."""
        if not (fitting := self._candidates("condition", proposed)):
            yield LISTS["asked"]["condition"].format(conditions=", ".join(Condition))
            return
        column, name = self.columns[fitting[0]], fitting[0][-1].casefold()
        lines = []
        # A blank says "no fault" in a column of faults unless a text says it too, as in merged cells; in a
        # column of conditions it says nothing.
        said = name == "condition" or "nominal" in map(_meant, column.values)
        blank = column.blank and self.options.condition is None  # else the option says what a blank means
        for value in [*column.values, *([""] if blank else [])]:
            meant = _meant(value) if value or said else "nominal"
            if value not in ENUMERATIONS["condition"]:
                likely = "nominal" if value.casefold() in _NONE else _UNKNOWN
                count = column.values[value] if value else column.blank
                asked = "" if meant else f"  # DECIDE (rows: {count:,})"
                if meant and not value:
                    asked = f"  # DECIDE (rows: {count:,}): not so if merged cells left blanks under a fault"
                lead = "" if meant and (value or (guess and "condition" in proposed)) else "# "
                lines.append(f'{lead}{_quoted(value)} = "{meant or likely}"{asked}')
        if lines:
            yield f"# What each value means: {', '.join(Condition)}, or x_ and a name"
            yield from ("[values.condition]", *lines, "")

    def _read(self, proposed: dict[str, tuple[str, ...]]) -> Iterator[str]:
        texts = [value for column in self.columns.values() for value in column.values]
        mapped = [self.columns[path] for field, path in proposed.items() if field != "condition"]
        blank = sorted({value for column in mapped for value in column.values if value.casefold() in BLANK})
        begun = self._candidates("started_at", proposed)
        forms = _forms(self.columns[begun[0]]) if begun and "started_at" not in self.filled else {}
        yield "[read]"
        if self.options.encoding is not None:
            yield f"encoding = {_quoted(self.options.encoding)}"
        if commas := sorted(filter(_DECIMAL.match, texts)):
            proven = not all(map(GROUPED.match, commas))
            asked = f"  # DECIDE: if the comma in {commas[0]} marks no thousands" * (not proven)
            yield f"{'# ' * bool(asked)}decimal_comma = true{asked}"
        if blank:
            yield f"blank = {_quoted(blank)}"
        if dates := [form for form in forms if form]:
            either = f"  # or {_quoted(dates[1])}" if len(dates) > 1 else ""
            asked = "  # DECIDE: with started_at above" * ("started_at" not in proposed)
            yield f"{'# ' * bool(asked)}date = {_quoted(dates[0])}{either}{asked}"
        if self.again:
            equal = "row equals" if self.again == 1 else "rows equal"
            asked = f"{self.again:,} {equal} an earlier one, and count{'s' * (self.again == 1)}"
            yield f'# duplicates = "drop-identical"  # DECIDE: {asked}'
        if any(forms.values()):
            yield '# timezone = "Europe/Berlin"  # the times have no offset; else they are left out'
        yield ""


def _named(path: tuple[str, ...], field: str) -> bool:
    """Tell whether a path is called as a field: by its last two parts, or by the part above an ``id``."""
    parts = list(map(plain_name, path[-2:]))
    called = ["_".join(parts), *parts[: parts[-1] in {"id", "name", "slug"}], parts[-1]]
    name = next((name for name in called if name in _FIELD_NAMES), "")
    return name == field or name in NAMES.get(field, ())


def _worded(path: tuple[str, ...], field: str) -> bool:
    """Tell whether the words of a column's name hold a name of this field, and of no other that matters."""
    words = _words(path[-1])
    holding = {held for held, names in NAMES.items() if held != "run_id" and words & set(names)}
    return field in holding and (field in _CAREFUL or holding == {field})


def _means(path: tuple[str, ...], field: str) -> bool:
    """Tell whether no word of a path makes a name of this field mean something else."""
    words = _words(".".join(path)) - _words(field)
    if field in _CAREFUL:
        return words <= _NEUTRAL.union(NAMES[field])
    return not words & _OTHERWISE


@lru_cache(4096)
def _meant(text: str) -> str | None:
    """Return the condition that every word of a text means or leaves as it is, None where there is none.

    What denies is nominal where it denies faults alone: "no attack", and not "no response".
    """
    text = text.removeprefix('["').removesuffix('"]')  # a list of one text
    words = _spoken(text) if len(text) <= _LONGEST and re.fullmatch(r"[^\W_][\w\s-]*", text) else []
    if words and words[0] in _DENYING:
        denied = _FAULTY.union(_FILLING, ["fehler"], *VOCABULARY["adversarial"])
        return "nominal" if {*words[1:]} <= denied else None
    for condition, (alone, things, mishaps) in VOCABULARY.items():
        held = {*words}
        if held & alone or (held & things and held & mishaps):
            return condition if held <= alone | things | mishaps | _FILLING else None
    return None


@lru_cache(1024)
def _called_a_fault(name: str) -> bool:
    return not _words(name).isdisjoint(_FAULTY) or _named((name,), "condition")


def stated(row: dict[str, Any], lead: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any, str, str | None]]:
    """Yield where a row states a fault or none, a result, a count of runs; what stands there and means.

    A fault is all that denies none under a name with a word for faults, a yes under a name that reads as one,
    and elsewhere a text that reads as one, unless it says how the run ended.
    """
    for path, held in paths(row, lead, lists=True):
        called, judging, counting = says(path)
        for value in held if isinstance(held, list) else [held]:
            whole = str(value)[: _LONGEST + 1] if called or not isinstance(value, dict | list) else ""
            text = whole.casefold()
            if judging and (outcome := next((key for key in judging if text in judging[key]), None)):
                yield path, held, "result", outcome
            if counting and (count := text.removesuffix(".0")).isdecimal() and int(count) > 1:
                numbers = [str(number)[:_LONGEST] for beside, number in paths(row, lead) if says(beside)[1]]
                numbers = [number.removesuffix(".0") for number in numbers]
                if any(number.isdecimal() and int(number) <= int(count) for number in numbers):
                    yield path, held, "count", None
            meant = (
                None if text in BLANK | _NONE else _meant(path[-1][: _LONGEST + 1] if text in _YES else whole)
            )
            denied = meant == "nominal" or text in _DENIED
            if denied and _named(short(path), "condition") and isinstance(value, str | bool):
                yield path, held, "none", "nominal"
            if text in BLANK | _NONE or meant == "nominal":
                continue
            if text in _YES and _wins(path[-1][:MAX_NAME]):
                yield path, held, "attack", None
            if called or (
                meant and not (text in WORDS[Outcome.HARNESS_ERROR] and _words(path[-1][:MAX_NAME]) & _ENDING)
            ):
                yield path, held, "fault", meant
                break


@lru_cache(1024)
def _wins(name: str) -> bool:
    """Tell whether a yes under this name says that an attack succeeded."""
    words = _words(name)
    return "asr" in words or bool(words & _FAULTY and words & _WON)


Sayings = tuple[tuple[str, ...] | None, dict[str, frozenset[str]], bool]


def says(path: tuple[str, ...]) -> Sayings:
    """Return the part of a path that speaks of faults, what is said of outcomes, whether it counts runs."""
    return _says(short(path))


@lru_cache(1024)
def _says(path: tuple[str, ...]) -> Sayings:
    called = next((path[: at + 1] for at, name in enumerate(path) if _called_a_fault(name)), None)
    named = (_named(path, "outcome") or _worded(path, "outcome")) and _means(path, "outcome")
    words = _words(path[-1])
    failed = _FAILS if words & _FAILED and words <= _FAILED | _NEUTRAL else {}
    return called, WORDS if named and not words & (_FAILING | _UNSURE) else failed, words <= _COUNTING


def faults(row: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a row that state a fault."""
    return {path[0]: row[path[0]] for path, _, kind, _ in stated(row) if kind == "fault"}


def propose(importer: Importer, path: tuple[str, ...], seen: Any) -> None:
    """Propose a test of a score as what decides the outcome, one of success first.

    Whether a high number, a yes or a label is good, the name of a score tells only where it is one of
    outcomes: else it is asked for as THRESHOLD or VALUE, and under a name of harm a number is not proposed.
    """
    asked = path, seen, type(seen), importer.least
    if asked == importer.proposed:  # as of the run before
        return
    importer.proposed = asked
    if not isinstance(seen, str | int | float) or len(str(seen)) > _LONGEST or short(path) != path:
        return
    number = isinstance(seen, int | float) and not isinstance(seen, bool)
    if number and not 0 <= seen <= 1:  # type: ignore[operator]  # it is no text
        importer.least = "THRESHOLD"
    if not (tested := _test(path, seen, importer.least * number)):
        return
    if tested.endswith("VALUE") and len(importer.labels) < _SHOWN:
        importer.labels[str(seen)] = None
    importer.hints["outcome"] = importer.hints.get("outcome", tested) if tested.endswith("VALUE") else tested


@lru_cache(1024, typed=True)
def _test(path: tuple[str, ...], seen: str | float, least: str) -> str:
    """Return a test of a score, "" for none; a number must reach `least`."""
    name, text = path[1:2] + path[3:], str(seen).casefold()
    clear = (_named(name, "outcome") or _worded(name, "outcome")) and _means(name, "outcome")
    harm = any(map(fails, path))
    test = "== VALUE"
    if least:
        test = "" if harm else f">= {least if clear else 'THRESHOLD'}"
    elif isinstance(seen, bool) and clear:
        test = "== true"
    elif seen in {"C", "I", "P", "N"} and not harm:  # of Inspect's letters one alone is a success
        test = "== 'C'"
    elif text in WORDS[Outcome.SUCCESS] - {"p"} and not harm and (clear or text not in _YES):
        test = f"== {seen!r}"
    return success_test(spelled(path), test) if test else ""


def fails(name: str) -> bool:
    """Tell whether a yes under this name may say that a run failed, or an attack succeeded."""
    return _fails(name[:MAX_NAME])


@lru_cache(1024)
def _fails(name: str) -> bool:
    words = _spoken(name)
    bad = _FAILING.union(_FAULTY, _DENYING, *VOCABULARY["adversarial"][:2])
    return not bad.isdisjoint(words) or any(map(_BAD.match, words))


def _words(name: str) -> set[str]:
    return {*_spoken(name)}


def _spoken(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).casefold())


def _judges(column: Column) -> bool:
    """Tell whether most values mean success or failure, and those that are no such word no number."""
    words = {word for synonyms in WORDS.values() for word in synonyms} | set(Outcome)
    known = [value for value in column.plain() if value.casefold() in words]
    unknown = [value for value in column.plain() if value not in known]
    most = 2 * sum(column.values[value] for value in known) > column.rows
    decides = any(value.casefold() not in WORDS[Outcome.HARNESS_ERROR] for value in known)
    graded = "p" in column.folded() and not column.folded() <= {"p", "f"}  # partly, beside C and I
    return decides and most and not column.many and not graded and not any(map(_is_number, unknown))


def _synonyms(field: str) -> dict[str, frozenset[str]]:
    """Return value of a field → words that mean it, of fields that hold an outcome or a truth value."""
    if KINDS[field] == "ternary":
        return {"true": WORDS[Outcome.SUCCESS], "false": WORDS[Outcome.FAILURE]}
    return WORDS if field == "outcome" else {}


def _forms(column: Column) -> dict[str, bool]:
    """Return how the values can be read as times, "" for ISO 8601, and whether a time lacks an offset.

    Where no form fits all, those that fit nearly all are returned: an import then refuses the others by name.
    """
    values = column.plain()
    for least in (len(values), max(1, len(values) * 0.9)):
        forms: dict[str, bool] = {}
        for form in ("", *DATES):
            times = [time for value in values if (time := read_time(value, form)) is not None]
            if values and len(times) >= least and "" not in forms:
                forms[form] = any(time.tzinfo is None for time in times)
        if forms:
            return forms
    return {}


def _is_number(value: str) -> bool:
    return re.fullmatch(r"-?[0-9]+([.,][0-9]+)?", value) is not None


def column_name(path: tuple[str, ...]) -> str:
    """Return a path as `[columns]` names it: as it stands, or spelled where that names something else."""
    plain = ".".join(path)
    unclear = any(mark in plain for mark in "([`") or (len(path) > 1 and plain.count(".") >= len(path))
    return _quoted(spelled(path) if unclear else plain)


def _quoted(value: str | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_quoted, value))}]"
    return canonical.line(value).decode().strip()
