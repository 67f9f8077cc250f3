"""Turns runs into the fields of records: by the importer, then the mapping, then the user's options.

What the mapping fills takes the place of what the importer filled. Where it says nothing, a column of a table
fills the field whose name it has, or of which it is a synonym (`certkit.imports.names`). An option
decides nothing that a mapping decides. `domain` and `condition` say what holds of runs that state none;
`success` alone decides anew. A run whose outcome is blank is a harness error. Where nothing names a run of a
table, its line does.
"""

from __future__ import annotations

import re
from itertools import accumulate, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from certkit.bundle.facts import UNVERSIONED
from certkit.ground import canonical, files
from certkit.ground.errors import InputError, UsageError
from certkit.ground.text import visible
from certkit.ground.wording import many
from certkit.imports.drafts import MAX_SHOWN
from certkit.imports.job import CHOICES
from certkit.imports.mapping import (
    NO_TIME_ZONE,
    OPTIONS,
    OTHERWISE,
    WORDS,
    CellError,
    Mapping,
    NaiveTimeError,
    Values,
    near,
    nearest,
    text_encoding,
    zone,
)
from certkit.imports.names import (
    MAX_COLUMNS,
    SINGLE,
    SYNONYMS,
    agent_columns,
    folds,
    paths,
    summary_counts,
    version_columns,
)
from certkit.imports.warnings import AttackNames, SuccessTexts
from certkit.record import trace as traces
from certkit.record.expressions import MISSING, ExpressionError, look_up, shell
from certkit.record.record import FIELDS, REQUIRED, USER_FIELD, Condition, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from certkit.imports.drafts import Draft
    from certkit.imports.job import Importer, ImportOptions, Job, Run
    from certkit.record.expressions import Expression
    from certkit.record.faults import Fault

    Evaluate = Callable[[dict[str, Any]], Any]

_SHOWN: Final = 12
"""Columns, values or versions that a message names."""

_TYPO: Final = 0.85
"""How alike a column must be to a field that nothing fills: `tasks_id` is to `task_id`, `trace_id` is not."""

_NAMED: Final = 60
"""Columns that the account names of those that fill nothing."""

_NAMES_LENGTH: Final = 1500
"""Characters of their names."""

_ALIKE: Final = 10
"""Runs up to which it is nothing odd that all have the same outcome."""

MAX_RULE: Final = 512
"""Characters of a success rule in a manifest."""
_READINGS: Final = ("strict", "utility")
_SUCCESS: Final = "--success"
_EQUAL: Final = "rows equal to an earlier row"
_INDEX: Final = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # the rows' numbers, as pandas writes them
_UNSCORED: Final = (
    *("run_id", "domain", "task_id", "condition", "sequence", "started_at", "cluster_id", "trial"),
    *("fault_step", "split", "trace", "measured"),
)
"""Fields that say which run it was; the others say how it went."""

_WAYS: Final = {
    "record.task-in-two-domains": "if equal names in two domains are different tasks, begin a mapping with"
    " `domain_before_task = true`; else correct these rows",
    "record.duplicate-run-id": "correct these rows; if the column names no runs, rename it: without one, each"
    " row is named by its line",
    "record.harness-error-scored": "a run whose outcome is blank is a harness error; if the agent failed"
    ' there, write `"" = "failure"` under `[values.outcome]` in a mapping; else correct these rows',
}
"""What to do about rows that were refused, by the code of their faults."""


class Mapper:
    """Turns the runs of one import into record fields, and remembers which columns were used."""

    def __init__(self, mapping: Mapping, options: ImportOptions, importer: Importer) -> None:
        self.mapping = mapping
        self._options, self._tabular, self._hints = options, importer.tabular, importer.hints
        self._values = Values(mapping, options.timezone, cells=importer.cells)
        self._places: dict[tuple[str, ...], str] = {}  # path → where the mapping names it first
        self._met: set[tuple[str, ...]] = set()  # of these paths, those that some row has
        self._columns = {field: self._getter(names, field) for field, names in mapping.columns.items()}
        self._when = {
            field: [
                (self._values.literal(field, value), self._test(text, f"when.{field}"))
                for value, text in cases.items()
            ]
            for field, cases in mapping.when.items()
        }  # None stands for `otherwise`
        if options.success not in {None, *_READINGS}:
            success = self._test(str(options.success), _SUCCESS)
            self._when["outcome"] = [(Outcome.SUCCESS, success), (Outcome.FAILURE, None)]
        self._where = self._test(mapping.read.where, "read.where") if mapping.read.where else None
        answer = mapping.trace.answer
        self._answer = self._getter(answer, "trace.answer") if answer is not None else lambda _: None
        self._taken = mapping.columns.keys() | mapping.constants.keys() | self._when.keys()
        self._claimed = {name for text in mapping.named for name in (text, text.split(".")[0])}
        self._decided = self._taken | self._claimed  # columns of these names fill nothing of themselves
        self._looked_at = {".".join(path) for path in self._places}
        importer.job.rows = mapping.read.rows
        self._cells = importer.cells
        self._had: set[str] = set()  # fields that some row had a value for
        self._unread: dict[str, dict[str, None]] = {}  # field → texts that a mapping may give a meaning
        self._versioned: Iterable[tuple[str, ...]] = importer.versioned
        self._keys: dict[str, None] = {}  # the columns of all rows
        self._filled_by: dict[str, dict[str, None]] = {}  # field → columns of a table that filled it
        self._given: set[str] = set()  # fields that transcripts filled
        self._absent: dict[str, None] = {}  # required fields that nothing fills
        self._incomplete = 0  # faults of runs that lack one
        self._left_out = 0  # rows for which `where` does not hold
        self._summaries = ""  # the first of them that counts several runs
        self._line = self._again = 0  # the last that named a run, and how many runs it named before
        self._nameless = self._chosen = False  # some run has no agent; some row was not left out
        self.derived = False  # of the last run, whether all that a trace can show is what its own shows
        self._texts = SuccessTexts(mapping, self._when.get("outcome", ()), self._values.fold)
        self._attacks = AttackNames(self._looked_at)

    def fields(self, run: Run, draft: Draft) -> tuple[dict[str, Any] | None, list[Fault]]:
        """Return the record fields of a run, None where it is dropped, and its faults."""
        again = self.mapping.read.duplicates
        if again == "drop-identical" and draft.rows.seen_before(repr(run.row)):
            draft.notes.add("refused", _EQUAL)
            return None, []
        fields = dict(run.fields)
        self._note_versions(run, draft)
        self._nameless |= not (run.agent or self._options.agent or self.mapping.agent)
        wanting: dict[str, Fault | None] = dict.fromkeys(set(REQUIRED) - fields.keys())
        faults = self._read(run, draft, fields, wanting) + self._decide(run, draft, fields, wanting)
        if "outcome" not in self._taken:
            self._texts.scored(run, fields.get("outcome"), draft)
        fields |= self.mapping.constants
        filled = self._given_by_option(run, draft, fields)
        if "condition" in filled and fields["condition"] == Condition.NOMINAL:
            self._attacks.look_at(run, draft, tabular=self._tabular)
        numbered = self._tabular and wanting.get("run_id", run) is None
        if numbered:
            self._again = self._again + 1 if run.place.line == self._line else 0
            self._line = run.place.line
            fields["run_id"] = f"{run.place.file}:{self._line}" + (f".{self._again}" if self._again else "")
        if (again == "refuse" or (again == "count" and numbered)) and draft.rows.seen_before(repr(run.row)):
            if again == "refuse":
                hint = '`duplicates` under `[read]` may say "count" or "drop-identical"'
                faults.append(run.place.fault("no row twice", "a row equal to an earlier row", hint=hint))
            else:
                detail = 'each counts; `duplicates = "drop-identical"` under `[read]` in a mapping drops them'
                draft.notes.add("odd", _EQUAL, detail)
        if self.mapping.domain_before_task and fields.get("task_id") is not None:
            fields["task_id"] = f"{fields.get('domain')}/{fields['task_id']}"
        faults += self._repeated(run, fields, draft)
        self._show(run, fields, draft)
        missing = [field for field in REQUIRED if field in wanting and fields.get(field) is None]
        faults += [fault for field in missing if (fault := wanting[field])]
        if absent := [field for field in missing if wanting[field] is None]:
            faults.append(self._missing(absent, run))
        return fields, faults

    def _note_columns(self, run: Run) -> None:
        """Remember the columns of a row, and which paths of the mapping it has."""
        if len(self._keys) < MAX_COLUMNS:
            self._keys |= dict.fromkeys(run.row)
        if len(self._met) < len(self._places):
            self._met |= {
                path
                for path in self._places.keys() - self._met
                if ".".join(path) in run.row or look_up(run.row, path) is not MISSING
            }

    def chooses(self, run: Run, job: Job) -> bool:
        """Tell whether a row is one that `where` chooses; a row that cannot be compared is a fault."""
        self._note_columns(run)
        try:
            chosen = self._where is None or bool(self._where.holds(run.row))
        except ExpressionError as error:
            expected = "values that can be compared"
            job.refuse(run.place.fault(expected, str(error), pointer="/read/where", hint=error.hint))
            return False
        self._chosen |= chosen
        self._left_out += not chosen
        if self._tabular and (counts := summary_counts(run.row, self._claimed)):
            self._look_at_summary(run, counts, job, chosen=chosen)
        return chosen

    def _look_at_summary(self, run: Run, counts: list[str], job: Job, *, chosen: bool) -> None:
        """Raise `InputError` where a summary of several runs is to be a run; remember one left out."""
        if not chosen:
            first = ", ".join(f"{name} = {run.row[name]}" for name in counts)
            self._summaries = self._summaries or f"first {first} in {run.place.file}:{run.place.line}"
            return
        message = f"each row is a summary of several runs ({', '.join(counts)})"
        hint = "import the log that has one row per run; if each row is one run, say so in a mapping: "
        hint += f'`x_{counts[0]} = "{counts[0]}"` under `[columns]`\nif only some rows are summaries, leave '
        hint += f'them out: `where = "{counts[0]} == null"` under `[read]`'
        where = f"{job.name}:{run.place.line}"
        raise InputError("import.source", message, where=where, hint=hint)

    def _note_versions(self, run: Run, draft: Draft) -> None:
        if self._tabular:
            self._versioned = [(column,) for column in version_columns(run.row)]
        for path in self._versioned:
            versions = draft.versions.setdefault(".".join(path), {})
            value = look_up(run.row, path)
            blank = value is MISSING or isinstance(value, bool) or self._values.is_blank(value)
            if len(versions) < _SHOWN and not blank:
                versions[str(value)] = None

    def _given_by_option(self, run: Run, draft: Draft, fields: dict[str, Any]) -> set[str]:
        """Fill domain and condition by their options where the log states none; return which."""
        filled = set()
        for field in ("domain", "condition"):
            if (value := getattr(self._options, field)) is None:
                continue
            if value in run.row and value not in WORDS.get(field, ()):
                hint = f"write `{field} = {_toml(value)}` under `[columns]` in a mapping"
                raise UsageError("usage.option", f"--{field}: {value!r} is a column", hint=hint)
            if fields.get(field) is None:
                fields[field] = value
                draft.given[field] += 1
                filled.add(field)
            elif fields[field] != value:
                draft.differs.add(field)
        return filled

    def _repeated(self, run: Run, fields: dict[str, Any], draft: Draft) -> list[Fault]:
        """Count rows of a trial that was met before; refuse a column that names each once, and does not."""
        if not self._tabular:
            return []
        trial, condition, task = (fields.get(name) for name in ("trial", "condition", "task_id"))
        if trial is not None and draft.trials.seen_before(f"{task}#{condition}#{trial}"):
            draft.notes.add("odd", "rows of a task, condition and trial met before", "they count")
        for field, column in SINGLE.items():
            if column not in self._filled_by.get(field, ()) or fields.get(field) is None:
                continue
            if draft.single.seen_before(fields[field], condition, trial):
                hint = f"if it names the {field}, map it: `{field} = {_toml(column)}` under `[columns]`"
                expected = "a value only once, or a column `trial`"
                return [run.place.fault_of(expected, fields[field], pointer=f"/{column}", hint=hint)]
        return []

    def _show(self, run: Run, fields: dict[str, Any], draft: Draft) -> None:
        """Fill what the transcript of a run shows, or the answer in its row, and nothing else fills."""
        shown, answer = run.shown, self._answer(run.row)
        if isinstance(answer, str) and isinstance(shown, traces.Shown) and run.data is None:  # else its own
            shown = replace(shown, answer=answer)
        derived = shown.fields(self.mapping.trace, fields.get("condition"), fields.get("outcome"))
        stated = {name: value for name in traces.FIELDS if (value := fields.get(name)) is not None}
        given = {name: value for name, value in derived.items() if name not in stated} if stated else derived
        self.derived = bool(derived) and all(derived.get(name) == value for name, value in stated.items())
        if (
            stated
            and run.data is not None
            and any(derived.get(name, it) != it for name, it in stated.items())
        ):
            contests = "assess contests it; --no-traces if the column is right"
            draft.notes.add("odd", "runs whose transcript says something else than a column", contests)
        self._given |= given.keys()
        fields |= given

    def _read(
        self, run: Run, draft: Draft, fields: dict[str, Any], wanting: dict[str, Fault | None]
    ) -> list[Fault]:
        """Fill the fields that columns hold; return the faults of their values.

        `wanting` names the required fields that nothing fills, each with its fault where a column is blank.
        """
        faults: list[Fault] = []
        sources = [
            (field, _text_of(self.mapping.columns[field]), get) for field, get in self._columns.items()
        ]
        if self._tabular:
            sources += self._known(run, faults)
            self._count_left(run, {column for _, column, _ in sources}, draft)
        for field, column, get in sources:
            raw = get(run.row)
            if raw is MISSING:
                if field not in wanting and "" not in self.mapping.values.get(field, {}):
                    continue
                raw = None
            wanting.pop(field, None)
            try:
                fields[field] = self._values.value(field, raw)
            except NaiveTimeError:
                draft.notes.add("unmeasured", field, NO_TIME_ZONE)
                continue
            except (CellError, ExpressionError) as error:
                if field != "split" or field in self._taken:
                    faults.append(_fault(error, run, column, raw))
                    self._note_unread(field, raw)
                    continue
                detail = f"its values, such as {str(raw)[:40]!r}, are no split of a record"
                draft.notes.add("refused", "column 'split'", detail)
                continue
            if field == "outcome":
                self._judged(raw, run, draft, fields)
            elif field in REQUIRED:
                self._note_blank(run, field, column, fields, wanting)
        return faults

    def _note_blank(
        self, run: Run, field: str, column: str, fields: dict[str, Any], wanting: dict[str, Fault | None]
    ) -> None:
        if fields[field] is None:
            wanting[field] = self._blank(run, field, column)
        else:
            self._had.add(field)

    def _note_unread(self, field: str, raw: Any) -> None:
        """Remember a text that the mapping may give a meaning."""
        texts = self._unread.setdefault(field, {}) if field in WORDS else {}
        if isinstance(raw, str) and len(texts) < _SHOWN and len(raw) <= MAX_SHOWN:
            texts[raw] = None

    def _judged(self, raw: Any, run: Run, draft: Draft, fields: dict[str, Any]) -> None:
        """Look at an outcome that a column states; a blank one is a harness error."""
        if "outcome" in self.mapping.values:
            self._texts.read(raw, fields["outcome"], run.place, draft)
        if fields["outcome"] is None:
            self._unjudged(fields, draft)

    def _known(self, run: Run, faults: list[Fault]) -> Iterator[tuple[str, str, Evaluate]]:
        """Yield field, column and getter of the columns of a row that the mapping need not name."""
        row = run.row
        chosen = {field: column for field in SYNONYMS if (column := self._column_for(field, run, faults))}
        for column in row:
            own = (column in FIELDS or USER_FIELD.match(column)) and column not in self._decided
            if own and (column not in SYNONYMS or chosen.get(column) == column):
                yield column, column, itemgetter(column)
        for field, column in chosen.items():
            if column != field:
                yield field, column, itemgetter(column)

    def _column_for(self, field: str, run: Run, faults: list[Fault]) -> str | None:
        """Return the column of a row that fills a field by its name or a synonym of it.

        It is the first that is not blank. Others that state something else are a fault. A list or an object
        fills none.
        """
        row = run.row
        if field in self._taken:
            return None
        columns = [name for name in _known_columns(field, row) if name not in self._claimed]
        columns = [name for name in columns if not _is_nested(row[name])]
        if not columns and SINGLE.get(field) in row:
            columns = [SINGLE[field]]
        filled = [name for name in columns if not self._values.is_blank(row[name])] or columns[:1]
        if not filled:
            return None
        self._filled_by.setdefault(field, {})[filled[0]] = None
        rivals = filled if field == "outcome" or filled[0] != field else []
        meanings = {self._meaning(field, row[name]) for name in rivals} - {None}
        if len(meanings) > 1:
            differing = ", ".join(f"{name} = {row[name]!r}"[:60] for name in rivals)
            hint = f"say which counts: `{field} = {_toml(rivals[0])}` under `[columns]` in a mapping"
            hint += f"; or both: `{field} = {_toml(rivals)}`" * (field != "outcome")
            expected, pointer = f"columns that agree on the {field}", f"/{visible(rivals[-1])}"
            faults.append(run.place.fault(expected, differing, pointer=pointer, hint=hint))
        return filled[0]

    def _meaning(self, field: str, raw: Any) -> Any:
        """Return what a column states of a field, None where no other column can contradict it."""
        if field != "outcome":
            return str(raw)
        try:
            meaning = self._values.value(field, raw)
        except CellError:
            return None
        return meaning if meaning in {Outcome.SUCCESS, Outcome.FAILURE} else None

    def _count_left(self, run: Run, used: set[str], draft: Draft) -> None:
        """Count the columns of a row that nothing uses; of an object the values in it."""
        used |= {column for column in agent_columns(run.row) if str(run.row[column]) == run.agent}
        used |= {path[0] for path in self._versioned} | self._looked_at
        for column, value in run.row.items():
            if column in used or _INDEX.fullmatch(column):
                continue
            for path, _ in paths({column: value}, lists=True):
                name = ".".join(path)
                if any(".".join(path[:end]) in used for end in range(2, len(path) + 1)):
                    continue
                # Names within names have no end; they leave room for columns.
                if name in draft.left or len(draft.left) < MAX_COLUMNS // min(len(path), 2):
                    draft.left[name] += 1
                elif len(path) == 1:
                    raise InputError("import.source", f"more than {MAX_COLUMNS:,} columns that fill no field")

    def _unjudged(self, fields: dict[str, Any], draft: Draft) -> None:
        draft.notes.add("odd", "runs whose outcome is blank, taken as harness errors")
        fields["outcome"] = str(Outcome.HARNESS_ERROR)

    def _decide(
        self, run: Run, draft: Draft, fields: dict[str, Any], wanting: dict[str, Fault | None]
    ) -> list[Fault]:
        """Fill the fields whose value an expression decides, unless the run never took place."""
        faults = []
        for field, cases in self._when.items():
            wanting.pop(field, None)
            if field == "outcome" and run.fields.get(field) == Outcome.HARNESS_ERROR:
                continue
            try:
                fields[field], blank = _decided(cases, run.row)
            except ExpressionError as error:
                expected, pointer = "values that can be compared", self._case(field)
                faults.append(run.place.fault(expected, str(error), pointer=pointer, hint=error.hint))
                continue
            if field == "outcome":
                self._texts.decided(run, fields[field], draft)
            if fields[field] is None and field in REQUIRED:
                if blank and field == "outcome" and self._tabular:
                    self._unjudged(fields, draft)
                    continue
                wanting[field] = self._undecided(run, field, blank)
        return faults

    def _undecided(self, run: Run, field: str, blank: list[str]) -> Fault:
        """Return the fault of a run for which no case of a field holds; what was `blank` leaves one open."""
        expected, actual = "a case that holds", "none"
        hint = f'end `[when.{field}]` with `VALUE = "{OTHERWISE}"`'
        if blank:
            expected, actual = f"values that decide {field}", f"nothing in {', '.join(blank)}"
            null, asked = _toml(f"{blank[0]} == null"), "if it was not scored"
            value = {"condition": "nominal", "outcome": "harness_error"}.get(field, "VALUE")
            asked = "if no fault was injected there" if field == "condition" else asked
            hint = f"{asked}, write `{value} = {null}` first under `[when.{field}]`"
        code = "record.missing-field"
        return run.place.fault(expected, actual, pointer=self._case(field), code=code, hint=hint)

    def _case(self, field: str) -> str:
        """Return where the expressions stand that decide a field."""
        return _SUCCESS if field == "outcome" and self._options.success else f"/when/{field}"

    def _getter(self, names: str | list[str], field: str) -> Evaluate:
        """Return what reads a column of this name, else a dotted path or an expression, or joins several."""
        if isinstance(names, list):
            parts = [self._getter(name, field) for name in names]
            return lambda row: self._values.joined([part(row) for part in parts])
        if (
            any(mark in names for mark in "([`")
            and (test := self._test(names, f"columns.{field}")) is not None
        ):
            return test
        path = tuple(names.split("."))
        self._places.setdefault(path, f"columns.{field}")

        def get(row: dict[str, Any]) -> Any:
            return row[names] if names in row else look_up(row, path)

        return get

    def _test(self, text: str, place: str) -> Expression | None:
        if text == OTHERWISE:
            return None
        expression = self._values.expression(text, place)
        if not expression.paths:
            message = f"{place}: {text!r} names no column, and says the same of every row"
            hint = "a value on every record stands under `[constants]`"
            raise InputError("import.mapping", message, hint=hint)
        for path in expression.paths:
            self._places.setdefault(path, place)
        return expression

    def _blank(self, run: Run, field: str, column: str) -> Fault:
        """Return the fault of a required field whose column is blank."""
        hint = ""
        if field == "condition":
            hint = "--condition nominal if no fault was injected there"
            self._absent[field] = None
            self._incomplete += 1
        elif self._cells and field in self._had:
            hint = "merged cells? fill them down in the spreadsheet"
        expected, code = f"a value for {field}", "record.missing-field"
        return run.place.fault(expected, "nothing", pointer=f"/{visible(column)}", code=code, hint=hint)

    def _missing(self, fields: Sequence[str], run: Run) -> Fault:
        """Return the fault of a row that has nothing for some required fields."""
        test = self._hints.get("outcome", "EXPRESSION")
        options = OPTIONS | {
            "condition": f"{OPTIONS['condition']} where no fault was injected",
            "outcome": f"{_SUCCESS} {shell(test)}{self._hints.get('several', '')}",
        }
        named = 'name the column in a mapping, such as {0} = "name"'
        hints = {field: options.get(field, named.format(field)) for field in fields}
        for field in fields:
            if nested := [name for name in _known_columns(field, run.row) if _is_nested(run.row[name])]:
                kind = "a list" if isinstance(run.row[nested[0]], list) else "an object"
                hints[field] = f"{nested[0]} holds {kind}; map another column to {field}" + (
                    f", or give {options[field]}" if field in options else ""
                )
            if close := nearest(field, run.row, _TYPO):
                hints[field] += f", or `{field} = {_toml(close)}` under `[columns]` in a mapping"
        self._absent |= dict.fromkeys(fields)
        self._incomplete += 1
        given = [f"{field}: {hint}" for field, hint in hints.items()] + [
            "agent: --agent NAME"
        ] * self._nameless
        silent = fields == ["condition"] and not self._tabular
        return run.place.fault(
            f"a value for {', '.join(fields)}",
            "a log that does not say whether faults were injected"
            if silent
            else f"the columns {self._listed()}",
            code="record.missing-field",
            hint="; ".join(given),
        )

    def _listed(self) -> str:
        """Return the names of the columns, for a message."""
        return ", ".join(map(visible, islice(self._keys, _SHOWN))) + ", …" * (len(self._keys) > _SHOWN)

    def advice(self, job: Job) -> str:
        """Return what to do about the rows that were refused, with the commands to copy."""
        codes = {fault.code for fault in job.faults}
        unread = all(
            fault.code.startswith("json.") or (fault.code, fault.pointer) == ("import.row", "")
            for fault in job.faults
        )
        agent = {"agent": "NAME"} if self._nameless else {}
        if way := next((way for code, way in _WAYS.items() if code in codes), None):
            return f"nothing was imported; {way}"
        if unread or self._options.mapping is not None:
            what = "these rows" + " or the mapping" * (not unread)
            what += ", or save the file as UTF-8" * ("json.encoding" in codes)
            return f"nothing was imported; correct {what}, then: {job.command(**agent)}{self._meanings()}"
        test = self._hints.get("outcome", "" if self._tabular else "EXPRESSION")
        given = {"domain": "NAME", "condition": "nominal", "outcome": test}
        first = "nothing was imported; correct these rows, or write a mapping:"
        if job.faults.total == self._incomplete and all(given.get(name) for name in self._absent):
            options = {"success" if name == "outcome" else name: given[name] for name in self._absent}
            when = "if no fault was injected" if "condition" in options else "say what is missing"
            when += self._hints.get("several", "") * ("success" in options)
            first = f"nothing was imported; {when}: {job.command(**options, **agent)}\nelse map it:"
        wrong: dict[str, Any] = (
            {"success": None} if any(fault.pointer == _SUCCESS for fault in job.faults) else {}
        )
        listing = f"{job.options.command(job.source, **wrong)} --columns -o MAP.toml"
        mapped = job.command(mapping="MAP.toml", **agent, **wrong)
        then = f"then fill in what the mapping leaves empty, and import: {mapped}"
        return f"{first} {listing}\n{then}{self._meanings()}"

    def _meanings(self) -> str:
        """Return lines for a mapping that say what texts mean, for the user to complete."""
        lines = []
        for field, texts in self._unread.items():
            table, there = f"[values.{field}]", field in self.mapping.values
            if texts:
                place = f"under `{table}`" if there else "in the mapping"
                lines += [f"{place}, with {', '.join(WORDS[field])} for VALUE:", *[table] * (not there)]
                lines += [f'{_toml(text)} = "VALUE"' for text in texts]
        return "".join(f"\n{line}" for line in lines)

    def check(self, job: Job) -> None:
        """Raise `InputError` where no row has a path of the mapping, or `where` holds for none."""
        if not self._keys:
            return
        if absent := [path for path in self._places if path not in self._met]:
            named = dict.fromkeys(
                f"{self._places[path]} names {visible('.'.join(path))!r}" for path in absent
            )
            message = f"{', '.join(named)}: no row has it{near(absent[0][0], self._keys)}"
            hint = f"the columns are {self._listed()}"
            raise InputError("import.mapping", message, where=job.name, hint=hint)
        if self._where is not None and not self._chosen and not job.faults:
            message = f"read.where: {self.mapping.read.where!r} holds for no row"
            hint = f"see what the columns hold: {job.options.command(job.source, mapping=None)} --columns"
            raise InputError("import.mapping", message, where=job.name, hint=hint)

    def account(self, draft: Draft, details: dict[str, str]) -> None:
        """Note which columns filled which fields or were left out; refuse an option that no run needs."""
        for field in sorted(draft.differs - draft.given.keys()):
            message = f"--{field}: every run states its {field}, and some another"
            raise UsageError("usage.option", message, hint=f"leave --{field} out, or map what holds")
        notes, mapping = draft.notes, self.mapping
        if draft.agent and self._options.agent not in {None, draft.agent}:
            what = f"runs of {draft.agent!r}, as the log names it"
            notes.add("odd", what, "--agent names it otherwise", count=draft.records)
        self._note_rows(draft)
        self._texts.note(draft)
        self._attacks.note(draft)
        self._note_left(draft)
        named = dict.fromkeys(self._given, "what the transcript shows")
        named |= {
            field: f"from {', '.join(map(repr, names))}"
            for field, names in self._filled_by.items()
            if [*names] != [field]
        }
        read = {field: field for field in mapping.values if self._tabular and field in self._keys}
        read |= {field: _text_of(column) for field, column in mapping.columns.items()}
        named |= {
            field: f"from {column!r}{_read_by(mapping.values.get(field))}" for field, column in read.items()
        }
        named |= {field: f"by {_cases(cases)}" for field, cases in mapping.when.items()}
        named |= {"outcome": f"by {self._rule()}"} if "outcome" in self._when else {}
        named |= {
            field: f"the mapping's constant {_toml(value)}" for field, value in mapping.constants.items()
        }
        for field, count in draft.given.items():
            named[field] = ", ".join(filter(None, [named.get(field), f"{count:,} by --{field}"]))
        tests = [test for cases in self._when.values() for _, test in cases if test]
        if cased := sorted({text for test in tests for text in test.near})[:_SHOWN]:
            detail = "told from others by case alone; `case_insensitive = true` under `[read]` does not"
            notes.add("odd", f"the values {', '.join(map(repr, cased))}", detail)
        for field in mapping.constants:
            if field in FIELDS and field not in _UNSCORED:
                notes.add("odd", field, "a constant of the mapping, whatever the log holds")
        draft.describe_fields(details | named)

    def _note_rows(self, draft: Draft) -> None:
        """Note what `where` left out, and that all runs have the same outcome."""
        notes = draft.notes
        if self._left_out:
            notes.add("refused", "rows that `where` of the mapping leaves out", count=self._left_out)
        if self._summaries:
            detail = f"{self._summaries}; check that the log holds each of these runs"
            notes.add("odd", "summaries of several runs that `where` leaves out", detail)
        if self._tabular and len(draft.words["outcome"]) == 1 and draft.records > _ALIKE:
            [outcome] = draft.words["outcome"]
            what = f"runs that all have the outcome {outcome}"
            notes.add("odd", what, "does the log leave out others?", count=draft.records)

    def _note_left(self, draft: Draft) -> None:
        """Note the columns that fill no field."""
        if left := sorted(draft.left):
            together = folds(draft.left, draft.records)
            names = list(dict.fromkeys(together.get(name, name) for name in left))
            lengths = accumulate(len(name) + 2 for name in names)
            fitting = [name for name, length in zip(names, lengths, strict=True) if length <= _NAMES_LENGTH]
            detail = ", ".join(fitting[:_NAMED]) + ", …" * (len(names) > len(fitting[:_NAMED]))
            what = f"{many(len(left), 'column')} that no record field takes"
            draft.notes.add("refused", what, detail, count=max(draft.left.values()))

    def state(self, draft: Draft) -> None:
        """State in a bundle what the mapping says of the protocol, and which choices made its records.

        What decided the outcome stands as the rule of success in place of the mapping's own words for it.
        """
        stated = self.mapping.protocol.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if (rule := self._rule()) is not None or not self._tabular:
            stated.pop("success_rule", None)
        draft.protocol |= stated
        if rule is not None:
            rule = visible(rule)
            draft.protocol["success_rule"] = rule if len(rule) <= MAX_RULE else rule[: MAX_RULE - 1] + "…"
        for name in CHOICES:
            if (value := getattr(self._options, name)) is not None:
                draft.options[name] = visible(value)[:500]
        if self._options.mapping is not None:
            name, digest = visible(self._options.mapping.name), files.sha256(self._options.mapping)
            draft.options["mapping"] = f"{name}, sha256:{digest}"

    def _rule(self) -> str | None:
        """Return how the outcome is read, None where the importer's own reading counts."""
        mapping, success = self.mapping, self._options.success
        if success not in {None, *_READINGS}:
            return success
        if cases := mapping.when.get("outcome"):
            return _cases(cases)
        if "outcome" in mapping.constants:
            return f"{mapping.constants['outcome']} on every run"
        words = mapping.values.get("outcome")
        filled_by = [name for name in self._filled_by.get("outcome", ()) if words or name != "outcome"]
        column = mapping.columns.get("outcome", filled_by)
        return _text_of(column) + _read_by(words) if column else None


def _known_columns(field: str, row: dict[str, Any]) -> list[str]:
    """Return the columns of a row that have the name of a field or are synonyms of it."""
    return [name for name in (field, *SYNONYMS.get(field, ())) if name in row]


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | dict) and bool(value)


def _fault(error: ValueError, run: Run, column: str, raw: Any) -> Fault:
    code, hint = getattr(error, "code", "import.row"), getattr(error, "hint", "")
    return run.place.fault_of(str(error), raw, pointer=f"/{visible(column)}", code=code, hint=hint)


def _text_of(names: str | list[str]) -> str:
    return names if isinstance(names, str) else ", ".join(names)


def _read_by(words: dict[str, Any] | None) -> str:
    pairs = ", ".join(f"{_toml(key)} = {_toml(value)}" for key, value in (words or {}).items())
    return f", read by {pairs}" if pairs else ""


def _cases(cases: dict[str, str]) -> str:
    return "; ".join(f"{value}: {test}" for value, test in cases.items())


def _decided(cases: Iterable[tuple[Any, Expression | None]], row: dict[str, Any]) -> tuple[Any, list[str]]:
    """Return the value of the first case that holds, None of none, and the blanks that left one undecided.

    What a blank leaves undecided, `otherwise` does not take.
    """
    blank: list[str] = []
    for value, case in cases:
        held = not blank if case is None else case.holds(row)
        if held:
            return value, blank
        if held is None and case is not None:
            blank += case.blanks(row)
    return None, blank


def _toml(text: Any) -> str:
    return visible(canonical.line(text).decode().strip())


def check_mapping(mapping: Mapping, options: ImportOptions, name: str) -> None:
    """Raise `UsageError` where an option differs from what a mapping file, called `name`, decides."""
    said = mapping.constants | mapping.read.model_dump(exclude_none=True)
    if (agent := mapping.agent) is not None:
        said["agent"] = agent.name
        if agent.version != UNVERSIONED:
            said["agent_version"] = agent.version
    outcome = {*mapping.columns, *mapping.when} & {"outcome"}
    for option in ("agent", "agent_version", *CHOICES):
        field = "outcome" if option == "success" else option
        if field in said.keys() | outcome and getattr(options, option) not in {None, said.get(field)}:
            flag = f"--{option.replace('_', '-')}"
            hint = f"leave {flag} out, or change the mapping"
            raise UsageError("usage.option", f"{flag}: {name} decides the {field} already", hint=hint)


def check_options(options: ImportOptions, format_: str) -> None:
    """Raise `UsageError` where an option cannot be used with this format."""
    if options.success in _READINGS and format_ != "agentdojo":
        message = f"--success {options.success} is AgentDojo's; give an expression, such as 'score >= 0.5'"
        raise UsageError("usage.option", message)
    for name in ("agent", "agent_version", "domain", "condition", "success"):
        given = getattr(options, name) or ""
        if given in {"NAME", "EXPRESSION"} or given.endswith((" THRESHOLD", " VALUE")):
            message = f"--{name.replace('_', '-')}: {given.rpartition(' ')[2]} is a placeholder"
            raise UsageError("usage.option", message, hint="write your own in its place")
    condition = options.condition or Condition.NOMINAL
    if condition not in WORDS["condition"] and not condition.startswith("x_"):
        message = f"--condition: {condition!r} is no condition{near(condition, [*Condition])}"
        raise UsageError("usage.option", message, hint=f"give {', '.join(Condition)}, or x_ and a name")
    for name, known in (("encoding", text_encoding), ("timezone", zone)):
        try:
            known(getattr(options, name))
        except ValueError as error:
            raise UsageError("usage.option", f"--{name}: {error}") from None
