"""Turns runs into the fields of records: by the importer, then the mapping, then the user's options.

What the mapping fills takes the place of what the importer filled. An option decides nothing that a mapping
decides. `domain` and `condition` say what holds of runs that state none; `success` alone decides anew. A run
whose outcome is blank is a harness error. Where nothing names a run of a table, its line does.
"""

from __future__ import annotations

import re
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from certkit.bundle.facts import UNVERSIONED
from certkit.ground import canonical, files
from certkit.ground.errors import InputError, UsageError
from certkit.ground.text import visible
from certkit.imports.job import CHOICES
from certkit.imports.mapping import (
    MERGED,
    NO_TIME_ZONE,
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
from certkit.imports.names import MAX_COLUMNS, agent_rank, paths, sums_up, versions
from certkit.imports.suggest import BLANK, VOCABULARY, column_name, says, stated
from certkit.record import trace as traces
from certkit.record.expressions import MISSING, ExpressionError, look_up, shell
from certkit.record.record import FIELDS, REQUIRED, USER_FIELD, Condition, Outcome

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from certkit.imports.drafts import Draft
    from certkit.imports.job import Importer, ImportOptions, Job, Run
    from certkit.record.expressions import Expression
    from certkit.record.faults import Fault

    Evaluate = Callable[[dict[str, Any]], Any]

_SHOWN: Final = 12
MAX_RULE: Final = 512
"""Characters of a success rule in a manifest."""
_READINGS: Final = ("strict", "utility")
_SUCCESS: Final = "--success"
_EQUAL: Final = "rows equal to an earlier row"
_INDEX: Final = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # the rows' numbers, as pandas writes them
_APART: Final = (
    "if another score decides there, tell such runs apart: \"eval.task == 'a' and ONE or eval.task == 'b' and"
    ' OTHER", with a test in place of ONE and of OTHER'
)
"""What to do about runs of a log that lack the score which an expression looks at."""

_UNSCORED: Final = (
    *("run_id", "domain", "task_id", "condition", "sequence", "started_at", "cluster_id", "trial"),
    *("fault_step", "split", "trace", "measured"),
)
"""Fields that say which run it was; the others say how it went."""


class Mapper:
    """Turns the runs of one import into record fields, and remembers which columns were used."""

    def __init__(self, mapping: Mapping, options: ImportOptions, importer: Importer) -> None:
        self.mapping = mapping
        self._options, self._tabular, self._hints = options, importer.tabular, importer.hints
        self._cells, self._labels = importer.cells, importer.labels
        self._values = Values(mapping, options.timezone, cells=importer.cells)
        self._paths: dict[tuple[str, ...], bool] = {}  # those the mapping names, and whether a row had them
        self._columns = {field: self._getter(text) for field, text in mapping.columns.items()}
        self._when = {
            field: [
                (self._values.literal(field, value), self._test(text, f"when.{field}"))
                for value, text in cases.items()
            ]
            for field, cases in mapping.when.items()
        }  # None stands for `otherwise`
        tests = [test for _, test in self._when.get("condition", []) if test]
        self._asked = {path for test in tests for path in test.paths}  # in tests of the condition
        if options.success not in {None, *_READINGS}:
            success = self._test(str(options.success), _SUCCESS)
            self._when["outcome"] = [(Outcome.SUCCESS, success), (Outcome.FAILURE, None)]
        answer = mapping.trace.answer
        self._answer = self._getter(answer) if answer is not None else lambda _: None
        self._taken = mapping.columns.keys() | mapping.constants.keys() | self._when.keys()
        self._claimed = {name for text in mapping.columns.values() for name in (text, text.split(".")[0])}
        self._looked_at = {path[0] for path in self._paths} | {".".join(path) for path in self._paths}
        self._used = {".".join(path[:end]) for path in self._paths for end in range(1, len(path) + 1)}
        importer.job.named = options.agent or (mapping.agent.name if mapping.agent else None)
        self._remarks = importer.remarks
        self._parts: dict[tuple[str, ...], tuple[Any, list[Any]]] = {}  # each as it was last, what it states
        self._versioned: Sequence[tuple[str, ...]] = importer.versioned
        self._keys: dict[str, None] = {}
        self._given: set[str] = set()  # fields that transcripts filled
        self._absent: dict[str, None] = {}  # required fields that nothing fills
        self._incomplete = 0  # faults of runs that lack one
        self._line = self._again = 0  # the last that named a run, and how many runs it named before
        self._faulty = ""  # the column of a fault that a run states and nothing maps
        self._nameless = self._blanks = False  # no agent is named; some outcome is blank
        self.derived = False  # of the last run, whether all that a trace can show is what its own shows
        self._suggested = options.mapping is None and mapping != Mapping()
        if self._suggested:  # what was guessed to name tasks or domains may name faults
            self._used -= {mapping.columns.get(field, "") for field in ("task_id", "domain")}

    def fields(self, run: Run, draft: Draft) -> tuple[dict[str, Any] | None, list[Fault]]:
        """Return the record fields of a run, None where it is dropped, and its faults."""
        again = self.mapping.read.duplicates
        if again == "drop-identical" and draft.seen(run.row):
            draft.notes.add("refused", _EQUAL)
            return None, []
        fields = dict(run.fields)
        self._note_versions(run, draft)
        self._nameless |= not (run.agent or self._options.agent or self.mapping.agent)
        wanting: dict[str, Fault | None] = dict.fromkeys(set(REQUIRED) - fields.keys())
        faults = self._read(run, draft, fields, wanting) + self._decide(run, draft, fields, wanting)
        fields |= self.mapping.constants
        filled = self._given_by_option(run, draft, fields)
        numbered = self._tabular and wanting.get("run_id", run) is None
        if numbered:
            self._again = self._again + 1 if run.place.line == self._line else 0
            self._line = run.place.line
            fields["run_id"] = f"line-{self._line}" + (f".{self._again}" if self._again else "")
        if (again == "refuse" or (again == "count" and numbered)) and draft.seen(run.row):
            if again == "refuse":
                hint = '`duplicates` under `[read]` may say "count" or "drop-identical"'
                faults.append(run.place.fault("no row twice", "a row equal to an earlier row", hint=hint))
            else:
                detail = 'each counts; `duplicates = "drop-identical"` under `[read]` in a mapping drops them'
                draft.notes.add("odd", _EQUAL, detail)
        if self._tabular and any(sums_up(str(fields.get(name))) for name in ("task_id", "domain")):
            draft.notes.add("odd", "rows called like a total", "each is a run; remove what sums up others")
        if self.mapping.domain_before_task and fields.get("task_id") is not None:
            fields["task_id"] = f"{fields.get('domain')}/{fields['task_id']}"
        faults += self._contradiction(run, fields, draft, chosen="condition" in filled)
        self._show(run, fields, draft)
        missing = [field for field in REQUIRED if field in wanting and fields.get(field) is None]
        faults += [fault for field in missing if (fault := wanting[field])]
        if absent := [field for field in missing if wanting[field] is None]:
            faults.append(self._missing(absent, run))
        return fields, faults

    def _note_versions(self, run: Run, draft: Draft) -> None:
        if self._tabular:
            self._versioned = versions(tuple(path for path, _ in paths(run.row)))
        for path in self._versioned:
            told = draft.versions.setdefault(".".join(path), {})
            held = look_up(run.row, path)
            if len(told) < _SHOWN and held is not MISSING and not self._blank_version(held):
                told[str(held)] = None

    def _blank_version(self, held: Any) -> bool:
        text = "" if held is None or isinstance(held, bool) else str(held).strip()
        return text.casefold() in BLANK | {""} or text in self.mapping.read.blank

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

    def _contradiction(self, run: Run, fields: dict[str, Any], draft: Draft, *, chosen: bool) -> list[Fault]:
        """Return the fault of a row that states another condition or outcome, or several runs, unused.

        `chosen`: an option says the condition.
        """
        condition, outcome = fields.get("condition"), fields.get("outcome")
        trial = fields.get("trial") if self._tabular else None
        if trial is not None and draft.repeat(f"{fields.get('task_id')}#{condition}#{trial}"):
            draft.notes.add("odd", "rows of a task, condition and trial met before", "they count")
        column: Evaluate = self._columns.get("condition") or (lambda _: True)
        blank = column(run.row) in (MISSING, None, "", [])
        decided = not self._tabular or "outcome" in self._when or "outcome" in self.mapping.constants
        nominal = condition == Condition.NOMINAL
        for path, held, kind, meant in self._told(run):
            name, part = ".".join(path), ".".join(says(path)[0] or path)
            # A value beside that of the condition counts where this is blank, or where it reads as a fault.
            more = nominal and kind == "fault" and (blank or meant) and path not in self._paths
            more = more or (kind == "none" and path in self._asked)
            if path[0] in FIELDS or USER_FIELD.match(path[0]) or (part in self._used and not more):
                continue
            hint = f"keep it as a note: `x_{kind} = {column_name(path)}` under `[columns]`"
            hint = f"{'write one row for each run; ' * (kind == 'count')}if it is no {kind}, {hint}"
            if kind == "fault" and (nominal or (meant not in {None, condition} and condition in VOCABULARY)):
                expected = "no fault in a nominal run" if nominal else f"no other fault than {condition}"
                self._faulty = self._faulty or column_name(path)
            elif kind == "result" and not decided and {meant, outcome} == {Outcome.SUCCESS, Outcome.FAILURE}:
                expected = f"{outcome}, as the outcome is"
            elif kind == "none" and chosen and not nominal:
                expected, hint = "a fault, as --condition says", "leave --condition out, or map what holds"
            elif (
                kind == "attack" and self._tabular and not nominal and fields.get("attack_succeeded") is None
            ):
                expected = "a field for an attack that succeeded"
                hint = (
                    f"if a yes is the attack's success, write `attack_succeeded = {column_name(path)}` under"
                )
                hint += f" `[columns]` in a mapping; if it is the agent's, `x_{kind} = {column_name(path)}`"
            elif kind == "count" and self._tabular:
                expected = "one run"
            else:
                continue
            return [run.place.fault_of(expected, held, pointer=f"/{visible(name)}", hint=visible(hint))]
        return []

    def _told(self, run: Run) -> Iterator[tuple[Any, ...]]:
        """Yield what the parts of a row state that importers do not read."""
        for lead in self._remarks:
            if isinstance(part := look_up(run.row, lead), dict):
                yield from self._stated(part, lead)

    def _stated(self, part: dict[str, Any], lead: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """Return what a part of a row states; a header that many runs share is read once."""
        last, told = self._parts.get(lead, (None, []))
        if last is not part:
            self._parts[lead] = part, (told := [*stated(part, lead)])
        return told

    def _show(self, run: Run, fields: dict[str, Any], draft: Draft) -> None:
        """Fill what the transcript of a run shows, or the answer in its row, and nothing else fills."""
        shown, answer = run.shown, self._answer(run.row)
        if isinstance(answer, str) and run.data is None:  # else it is that of the transcript
            shown = replace(shown, answer=answer)
        told = shown.fields(self.mapping.trace, fields.get("condition"), fields.get("outcome"))
        stated = {name: value for name in traces.FIELDS if (value := fields.get(name)) is not None}
        given = {name: value for name, value in told.items() if name not in stated} if stated else told
        self.derived = bool(told) and all(told.get(name) == value for name, value in stated.items())
        if stated and run.data is not None and any(told.get(name, it) != it for name, it in stated.items()):
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
        faults = []
        for field, column, get in self._sources(run, draft.left):
            raw = get(run.row)
            if raw is MISSING and (field in wanting or "" in self.mapping.values.get(field, {})):
                raw = None
            if raw is MISSING:
                continue
            wanting.pop(field, None)
            try:
                fields[field] = self._values.value(field, raw)
                if field == "condition" and raw in (None, "", []) and fields[field] and self._suggested:
                    taken = f"a blank in {column!r} was taken as nominal; if no cells are merged there and no"
                    taken += " fault was injected: --condition nominal"
                    draft.notes.add("guessed", "conditions", taken)
                if fields[field] is None and field == "outcome":
                    self._unjudged(fields, draft)
                elif fields[field] is None and field in REQUIRED:
                    wanting[field] = self._blank(run, field, column)
            except NaiveTimeError:
                draft.notes.add("unmeasured", field, NO_TIME_ZONE)
            except (CellError, ExpressionError) as error:
                code, hint = getattr(error, "code", "import.row"), getattr(error, "hint", "")
                pointer = f"/{visible(column)}"
                faults.append(run.place.fault_of(str(error), raw, pointer=pointer, code=code, hint=hint))
        return faults

    def _unjudged(self, fields: dict[str, Any], draft: Draft) -> None:
        self._blanks = True
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
            if fields[field] is None and field in REQUIRED:
                expected, actual = "a case that holds", "none"
                hint = f'end `[when.{field}]` with `VALUE = "{OTHERWISE}"`'
                if blank and field == "outcome" and self._tabular:
                    self._unjudged(fields, draft)
                    continue
                if blank:
                    expected, actual = f"values that decide {field}", f"nothing in {', '.join(blank)}"
                    case = f"nominal = {_toml(f'{blank[0]} == null')}"
                    told = f"if no fault was injected there, write `{case}` first under `[when.condition]`"
                    null = _toml(f"{blank[0]} == null")
                    unscored = (
                        f"if it was not scored, write `harness_error = {null}` first under `[when.outcome]`"
                    )
                    unscored += f"; {_APART}" * ("eval" in run.row)
                    hint = {"condition": told, "outcome": unscored}.get(field, "")
                wanting[field] = run.place.fault(
                    expected, actual, pointer=self._case(field), code="record.missing-field", hint=hint
                )
        return faults

    def _case(self, field: str) -> str:
        """Return where the expressions stand that decide a field."""
        return _SUCCESS if field == "outcome" and self._options.success else f"/when/{field}"

    def _sources(self, run: Run, left: Counter[str]) -> Iterable[tuple[str, str, Evaluate]]:
        """Yield field, column and getter of what fills a field of this row; count the other columns."""
        row = run.row
        for path, met in self._paths.items():
            if not met and (".".join(path) in row or look_up(row, path) is not MISSING):
                self._paths[path] = True
        for field, get in self._columns.items():
            yield field, self.mapping.columns[field], get
        if len(self._keys) < MAX_COLUMNS:
            self._keys |= dict.fromkeys(row)
        for column, nested in self._unclaimed(run) if self._tabular else ():
            # Names within names have no end; they leave room for columns.
            fits = column in left or len(left) < MAX_COLUMNS // (1 + nested)
            if not nested and (column in FIELDS or USER_FIELD.match(column)) and column not in self._taken:
                yield column, column, itemgetter(column)
            elif not nested and column in self._looked_at:  # an expression looks at it, and does not take it
                continue
            elif fits:
                left[column] += 1
            elif not nested:
                raise InputError("import.source", f"more than {MAX_COLUMNS:,} columns that fill no field")

    def _unclaimed(self, run: Run) -> Iterator[tuple[str, bool]]:
        """Yield the columns that nothing uses; of one that holds an object the values in it, as nested."""
        for column, held in run.row.items():
            whole = not isinstance(held, dict) or column in FIELDS or USER_FIELD.match(column)
            for path, value in [((column,), held)] if whole else paths(held, (column,)):
                name = ".".join(path)
                if (
                    name not in self._claimed
                    and not _INDEX.fullmatch(name)
                    and path not in self._versioned
                    and (value != run.agent or agent_rank(path) is None)
                ):
                    yield name, len(path) > 1

    def _getter(self, text: str) -> Evaluate:
        """Return what reads a column: one of exactly this name, else a dotted path or an expression."""
        if any(mark in text for mark in "([`") and (test := self._test(text, "columns")) is not None:
            return test
        path = tuple(text.split("."))
        self._paths[path] = False

        def get(row: dict[str, Any]) -> Any:
            return row[text] if text in row else look_up(row, path)

        return get

    def _test(self, text: str, place: str) -> Expression | None:
        if text == OTHERWISE:
            return None
        expression = self._values.expression(text, place)
        if not expression.paths:
            message = f"{place}: {text!r} names no column, and says the same of every row"
            hint = "a value on every record stands under `[constants]`"
            raise InputError("import.mapping", message, hint=hint)
        self._paths |= dict.fromkeys(expression.paths, False)
        return expression

    def _blank(self, run: Run, field: str, column: str) -> Fault:
        """Return the fault of a required field whose column is blank."""
        hint = MERGED if self._cells else ""
        if field == "condition":
            hint = "--condition nominal if no fault was injected there" + f"; {hint}" * bool(hint)
            self._absent[field] = None
            self._incomplete += 1
        pointer, code = f"/{visible(column)}", "record.missing-field"
        return run.place.fault(f"a value for {field}", "nothing", pointer=pointer, code=code, hint=hint)

    def _missing(self, fields: Sequence[str], run: Run) -> Fault:
        """Return the fault of a row that has nothing for some required fields."""
        fault = next((item[0] for item in self._told(run) if item[2] == "fault"), None)
        self._faulty = self._faulty or (column_name(fault) if fault else "")
        test = shell(self._hints.get("outcome", "EXPRESSION"))
        options = {
            "domain": "--domain NAME",
            "condition": "--condition nominal where no fault was injected",
            "outcome": f"--success {test}{self._hints.get('several', '')}",
        }
        held = [".".join(path) for path, _ in paths(run.row)]
        close = {field: nearest(field, held) for field in fields}
        mapped = {
            field: f"`{field} = {_toml(name or 'COLUMN')}` under `[columns]` in a mapping"
            for field, name in close.items()
        }
        hints = mapped | {field: option for field, option in options.items() if close.get(field, "-") is None}
        self._absent |= dict.fromkeys(fields)
        self._incomplete += 1
        given = [f"{field}: {hints[field]}" for field in fields] + ["agent: --agent NAME"] * self._nameless
        columns = ", ".join(map(visible, [*self._keys][:_SHOWN])) + ", …" * (len(self._keys) > _SHOWN)
        told = run.row.items() if self._tabular else ()
        lists = [key for key, held in told if isinstance(held, list) and isinstance([*held, 0][0], dict)]
        rows = [f"write the items of {visible(lists[0])!r} as rows of their own"] if lists else []
        silent = fields == ["condition"] and not self._tabular
        return run.place.fault(
            f"a value for {', '.join(fields)}",
            "a log that does not say whether faults were injected" if silent else f"the columns {columns}",
            code="record.missing-field",
            hint="; or ".join([*rows, "; ".join(given)]),
        )

    def advice(self, job: Job) -> str:
        """Return what to do about the rows that were refused, with the commands to copy."""
        codes = {fault.code for fault in job.faults}
        kinds = {(fault.code, fault.pointer) for fault in job.faults}
        changed: dict[str, Any] = {"condition": None} if self._faulty else {}
        suggest = f"{job.options.command(job.source, **changed)} --suggest -o MAP.toml"
        agent = changed | ({"agent": "NAME"} if self._nameless else {})
        if all(code.startswith("json.") or (code, at) == ("import.row", "") for code, at in kinds):
            save = ", or save the file as UTF-8" if "json.encoding" in codes else ""
            return f"nothing was imported; correct these rows{save}, then: {job.command(**agent)}"
        if "record.task-in-two-domains" in codes:
            way = "if equal names in two domains are different tasks, begin the mapping with"
            return f"nothing was imported; {way} `domain_before_task = true`; else correct these rows"
        if "record.duplicate-run-id" in codes and "run_id" not in self.mapping.columns:
            way = "rename the column `run_id` if it names no runs: without one, each row is named by its line"
            return f"nothing was imported; correct these rows, or {way}"
        if "record.harness-error-scored" in codes and self._blanks:
            way = "a run whose outcome is blank is a harness error; if the agent failed there, write"
            way += f' `"" = "failure"` under `[values.outcome]` in a mapping: {suggest}'
            return f"nothing was imported; {way}"
        if self._options.mapping is not None:
            left = "decide what the mapping leaves under DECIDE, or " * (
                b"DECIDE" in self._options.mapping.read_bytes()
            )
            return (
                f"nothing was imported; {left}correct these rows or the mapping, then: {job.command(**agent)}"
            )
        if any(fault.pointer == _SUCCESS for fault in job.faults):
            suggest = f"{job.options.command(job.source, success=None)} --suggest -o MAP.toml"
            agent["success"] = None
        test = self._hints.get("outcome", "EXPRESSION")
        given = {"domain": "NAME", "condition": "nominal", "success": test}
        names = [{"outcome": "success"}.get(field, field) for field in self._absent]
        mapped = job.command(mapping="MAP.toml", **agent)
        told = f"{visible(self._faulty)} tells of faults: " if self._faulty else ""
        first = f"nothing was imported; {told}correct these rows, or write a mapping:"
        decided = given.keys() - ({"condition"} if self._faulty else ())
        if job.faults.total == self._incomplete and set(names) <= decided:
            when = "if no fault was injected" if "condition" in names else "say what is missing"
            if "success" in names and test.endswith("VALUE"):
                seen = ", ".join(map(repr, map(visible, self._labels)))
                when += f", with {f'the good one of {seen}' if seen else 'what is good'} as VALUE"
            command = job.command(**{name: given[name] for name in names}, **agent)
            first = f"nothing was imported; {when}: {command}\nelse map it:"
        return f"{first} {suggest}\nthen decide there what stands under DECIDE, and import: {mapped}"

    def check(self, job: Job) -> None:
        """Raise `InputError` ``import.mapping`` where no row has a path of the mapping."""
        if self._keys and (absent := [path for path, met in self._paths.items() if not met]):
            paths = ", ".join(f"{visible('.'.join(path))!r}{near(path[0], self._keys)}" for path in absent)
            said = "the mapping" if self._options.mapping else _SUCCESS
            message = f"no row has what {said} names: {paths}"
            if not self._tabular:
                keys = ", ".join(map(visible, self._keys))
                message = f"a mapping can read {keys} in rows of this format, and not {paths}"
            raise InputError("import.mapping", message, where=job.name)

    def account(self, draft: Draft, details: dict[str, str]) -> None:
        """Note which columns filled which fields or were left out; refuse an option that no run needs."""
        for field in sorted(draft.differs - draft.given.keys()):
            message = f"--{field}: every run states its {field}, and some another"
            raise UsageError("usage.option", message, hint=f"leave --{field} out, or map what holds")
        if draft.agent and self._options.agent not in {None, draft.agent}:
            draft.notes.add(
                "odd",
                f"runs of {draft.agent!r}, as the log names it",
                "--agent names it otherwise",
                count=draft.records,
            )
        parts: dict[str, list[str]] = {}
        for column in sorted(draft.left):
            whole = column if column in self._keys else column.partition(".")[0]
            parts.setdefault(whole, []).append(column)
        why = "fills no record field" + "; --suggest says what it holds" * self._suggested
        groups = [*parts.values()]
        rest = list(chain.from_iterable(groups[_SHOWN:]))
        for columns in [*groups[:_SHOWN], *[rest] * bool(rest)]:
            names = ", ".join(repr(column) for column in columns[:_SHOWN]) + ", …" * (len(columns) > _SHOWN)
            count = max(map(draft.left.__getitem__, columns))
            draft.notes.add("refused", f"column{'s' * (len(columns) > 1)} {names}", why, count=count)
        named = dict.fromkeys(self._given, "what the transcript shows")
        mapping = self.mapping
        guess = self._hints.get(f"guessed {draft.agent}") if "outcome" not in self._taken else None
        if self._suggested and "outcome" in mapping.columns and (left := sorted(draft.left)):
            names = ", ".join(map(repr, left[:_SHOWN])) + ", …" * (len(left) > _SHOWN)
            guess = f"from the column {mapping.columns['outcome']!r}, for its name; columns were left out"
            guess += f" that may contradict it: {names}; look with --suggest -o MAP.toml, then take --map"
        if guess:
            draft.notes.add("guessed", "outcomes", guess, count=draft.records)
        read = {field: field for field in mapping.values if self._tabular and field in self._keys}
        read |= mapping.columns
        words = {field: _read_by(mapping.values.get(field)) for field in read}
        named |= {field: f"from {column!r}{words[field]}" for field, column in read.items()}
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
            draft.notes.add("odd", f"the values {', '.join(map(repr, cased))}", detail)
        for field in [field for field in mapping.constants if field in FIELDS and field not in _UNSCORED]:
            draft.notes.add("odd", field, "a constant of the mapping, whatever the log holds")
        draft.describe_fields(details | named)

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
        elif self._suggested:
            draft.options["mapping"] = "as --suggest writes it"

    def _rule(self) -> str | None:
        """Return how the user reads the outcome, None where the importer's own reading counts."""
        mapping, success = self.mapping, self._options.success
        if success not in {None, *_READINGS}:
            return success
        if cases := mapping.when.get("outcome"):
            return _cases(cases)
        if "outcome" in mapping.constants:
            return f"{mapping.constants['outcome']} on every run"
        words = mapping.values.get("outcome")
        column = mapping.columns.get("outcome", "outcome" if words and self._tabular else None)
        return column and column + _read_by(words)


def _read_by(words: dict[str, Any] | None) -> str:
    told = ", ".join(f"{_toml(key)} = {_toml(value)}" for key, value in (words or {}).items())
    return f", read by {told}" if told else ""


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
