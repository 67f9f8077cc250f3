"""``certkit runs``: the runs behind a number, and one of them with its transcript."""

from __future__ import annotations

import csv
import io
import textwrap
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer
from msgspec import structs
from rich.text import Text

from certkit.bundle.folder import open_bundle
from certkit.cli import options as opt
from certkit.cli.emit import (
    answer,
    coloured,
    command_lines,
    cut,
    emit,
    entry,
    fold,
    raw,
    refuse,
    wanted,
    width,
)
from certkit.ground.errors import UsageError
from certkit.ground.text import visible
from certkit.ground.wording import many
from certkit.record.expressions import shell
from certkit.record.outcome import run_verdict
from certkit.record.record import FIELDS, Outcome
from certkit.record.trace import SUFFIX
from certkit.summary.runs import RunFilter, each_run, find_run, list_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.bundle.folder import Bundle
    from certkit.cli.emit import Line
    from certkit.record.transcript import SpokenTurn
    from certkit.summary.runs import ListedRun, ListedTasks

_SHOWN: Final = 40
"""Runs on a screen."""
_TURNS: Final = 60
"""Turns of a transcript on a screen, half of them from its end."""
_LINES: Final = 12
"""Lines of a turn on a screen."""
_INDENT: Final = " " * 4
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet would compute."""
_MARKS: Final = {
    Outcome.SUCCESS: "✓",
    Outcome.FAILURE: "✗",
    Outcome.SAFE_HALT: "✗",
    Outcome.HARNESS_ERROR: "?",
}
_STYLES: Final = {
    Outcome.SUCCESS: "green",
    Outcome.FAILURE: "red",
    Outcome.SAFE_HALT: "red",
    Outcome.HARNESS_ERROR: "yellow",
}
_PLACE: Final = ("file", "line", "trace_file")


def runs(
    folder: opt.BundleFolder,
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run to print with its transcript.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that did not succeed.")] = False,
    domain: Annotated[str | None, opt.DOMAIN(help="Only runs of this domain.")] = None,
    condition: Annotated[str | None, opt.CONDITION(help="Only runs under this condition.")] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the runs as CSV, all of them, in the order of the records.")
    ] = False,
    verbose: opt.Verbose = False,
) -> None:
    """List the runs of a bundle by task, failing tasks first, or print one run with its transcript.

    Long transcripts are cut, and the screen says so; -v prints all of a run.

    Example: certkit runs bundle --failed --domain travel
    """
    bundle, filter_ = open_bundle(folder, defer_records=True), RunFilter(failed, domain, condition)
    if run is not None:
        refuse("goes with a list, and a run is named", "failed", "domain", "condition", "as_csv")
        _print_run(bundle, find_run(bundle, run), verbose=verbose)
        return
    if as_csv:
        if wanted.get().json:
            raise UsageError("usage.option", "choose --csv or --json")
        for line in _csv(each_run(bundle, filter_)):
            raw(line)
        return
    listed = list_tasks(bundle, filter_)
    document = answer(
        "runs",
        total=listed.total,
        tasks=[
            {
                "task_id": task.task_id,
                "domain": task.domain,
                "runs": task.total,
                "success": task.successes,
                "listed": [_members(item) for item in task.runs],
            }
            for task in listed.tasks
        ],
    )
    emit(document, _listed(listed, folder))


def _members(item: ListedRun) -> dict[str, Any]:
    fields = {name: value for name, value in structs.asdict(item.record).items() if value is not None}
    return {"file": item.file, "line": item.line, "run": fields, "trace": item.trace}


def _listed(listed: ListedTasks, folder: Path) -> Iterator[Line]:
    shown, tasks = 0, many(listed.task_count, "task")
    more = "" if listed.total <= _SHOWN else f"; the first {_SHOWN} follow, --csv lists all"
    yield from coloured([f"{many(listed.total)} of {tasks}, failing tasks first{more}"], "bold")
    for task in listed.tasks:
        if shown >= _SHOWN:
            break
        yield ""
        named = "" if task.task_id.startswith(f"{task.domain}/") else f" ({task.domain})"
        yield from fold(f"{task.task_id}{named}: {task.successes:,} of {many(task.total)} succeeded")
        for item in task.runs[: _SHOWN - shown]:
            record = item.record
            violations = "" if not record.violations else f"  {many(record.violations, 'violation')}"
            lead = f"  {_MARKS[record.outcome]} {record.outcome:<14}{cut(record.condition, 19):<20}"
            text = f"{lead}{record.run_id}{violations}"
            yield from coloured(fold(text, rest="      "), _STYLES[record.outcome])
        shown += len(task.runs)
    if listed.tasks:
        first = shell(visible(listed.tasks[0].runs[0].record.run_id))
        yield ""
        yield from command_lines(
            "One run with its transcript: ", f"certkit runs {shell(str(folder))} {first}"
        )


def _csv(listed: Iterator[ListedRun]) -> Iterator[bytes]:
    """Yield a head and the runs; no text is one that a spreadsheet computes or a terminal obeys."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*FIELDS, *_PLACE])
    for item in listed:
        fields = msgspec.to_builtins(item.record)
        values = [fields[name] for name in FIELDS] + [item.file, item.line, item.trace]
        writer.writerow(map(_csv_cell, values))
        if buffer.tell() > 1 << 16:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{visible(value)}" if value.startswith(_FORMULA) else visible(value)
    return value


def _print_run(bundle: Bundle, item: ListedRun, *, verbose: bool) -> None:
    from certkit.record.planned import PLAN_FILE  # noqa: PLC0415 - for one run alone

    said: tuple[SpokenTurn, ...] = ()
    if item.trace is not None and item.trace.endswith(SUFFIX):
        name = item.record.run_id
        said = bundle.conversations(item.trace, {name}).get(name, ())
    transcript = [{"role": turn.role, "text": turn.text} for turn in said]
    fields = {name: value for name, value in msgspec.to_builtins(item.record).items() if value is not None}
    verdict = run_verdict(fields) if PLAN_FILE in bundle.by_path else None
    judged = {} if verdict is None else {"verdict": verdict}
    document = answer("run", **_members(item), **judged, transcript=transcript)
    if verdict is not None:
        fields["verdict"] = "SAFE" if verdict.safe else f"UNSAFE: {verdict.reason}"
    emit(document, _run(item, fields, said, verbose=verbose))


def _run(
    item: ListedRun, fields: dict[str, Any], said: tuple[SpokenTurn, ...], *, verbose: bool
) -> Iterator[Line]:
    column = max(map(len, fields)) + 2
    for name, value in fields.items():
        text = str(value).lower() if isinstance(value, bool) else value
        yield from entry(name, text, column)
    yield from entry("record", f"{item.file}, line {item.line}", column)
    yield ""
    if not said:
        why = "the bundle encloses no trace of this run" if item.trace is None else f"see {item.trace}"
        yield from fold(f"No transcript: {why}.")
        return
    left_out = 0 if verbose else max(0, len(said) - _TURNS)
    for number, turn in enumerate(said, 1):
        if left_out and number == _TURNS // 2 + 1:
            yield f"… {many(left_out, 'turn')} left out; -v prints all"
        if _TURNS // 2 < number <= _TURNS // 2 + left_out:
            continue
        yield from _turn(number, turn, verbose=verbose)


def _turn(number: int, turn: SpokenTurn, *, verbose: bool) -> Iterator[Line]:
    yield Text(visible(f"{number} {cut(turn.role, 40)}"), style="bold")
    most = len(turn.text) if verbose else _LINES * width()
    lines = [line for part in turn.text[:most].split("\n") for line in _folded(part)]
    kept = lines if verbose else lines[:_LINES]
    yield from kept
    if len(kept) < len(lines) or most < len(turn.text):
        yield f"{_INDENT}… cut; the turn has {len(turn.text):,} characters, -v prints all"


def _folded(text: str) -> list[str]:
    """Return a line of a transcript, made visible and broken where it is too long, with its indentation."""
    lines = textwrap.wrap(
        visible(text.rstrip("\r").replace("\t", " ")),
        width(),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
    )
    return lines or [""]
