"""``certkit import``: from the log of another program to a bundle of evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import answer, coloured, emit, progress
from certkit.cli.views.account import all_notes
from certkit.ground import canonical, files
from certkit.ground.errors import Exit, UsageError
from certkit.ground.text import quoted
from certkit.ground.wording import many
from certkit.imports import FORMATS, ImportOptions, columns_of, preview, run
from certkit.imports.columns import described
from certkit.imports.drafts import counted
from certkit.record.expressions import shell

if TYPE_CHECKING:
    from certkit.cli.emit import Line
    from certkit.imports import ImportAccount


def import_(
    log: Annotated[
        list[str],
        typer.Argument(
            metavar="[FORMAT] LOG",
            help=f"The log, a file or a folder. Its format is found by content: {', '.join(FORMATS)}.",
        ),
    ],
    out: Annotated[
        Path | None, opt.OUT(help="The folder to write, empty or absent (default: bundle).")
    ] = None,
    agent: opt.LogAgent = None,
    agent_version: Annotated[
        str | None, opt.AGENT_VERSION(help="Its version, where the log does not tell.")
    ] = None,
    mapping: opt.LogMapping = None,
    split_by: Annotated[
        str | None,
        typer.Option(
            "--split-by", metavar="COLUMN", help="Make a bundle of each 'agent', or value of a column."
        ),
    ] = None,
    domain: opt.LogDomain = None,
    condition: opt.LogCondition = None,
    success: opt.LogSuccess = None,
    timezone: opt.LogTimezone = None,
    encoding: opt.LogEncoding = None,
    tasks_independent: opt.IndependentTasks = None,
    attempt: opt.LogAttempt = None,
    like: opt.Like = None,
    verbose: opt.Verbose = False,
    no_seal: opt.NoSeal = False,
    no_traces: Annotated[
        bool,
        typer.Option("--no-traces", help="Enclose no transcripts; what they show then counts as asserted."),
    ] = False,
    columns: Annotated[
        bool,
        typer.Option("--columns", help="List what the columns hold; -o writes a mapping to fill in."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show ten runs as they would become, and write nothing.")
    ] = False,
) -> None:
    """Turn the log of another program into an evidence bundle.

    What the log holds is filled, what it does not hold stays unmeasured, and everything that was left
    out, odd or refused is counted, printed, and kept in the manifest. One unreadable row refuses the import.
    A table whose columns have names of its own needs a mapping: --columns writes one to fill in.
    Importing again gives the same bytes, so no task salt is drawn: --like takes that of another bundle.

    Example: certkit import runs.jsonl.gz -o bundle
    """
    format_, source = _named(log)
    if str(source) == "-":
        raise UsageError("usage.option", "- is no log: an import reads a file or a folder")
    options = ImportOptions(
        format=format_,
        agent=agent,
        agent_version=agent_version,
        mapping=mapping,
        split_by=split_by,
        domain=domain,
        condition=condition,
        success=success,
        timezone=timezone,
        encoding=encoding,
        tasks_independent=tasks_independent,
        attempt=attempt,
        seal=not no_seal,
        traces=not no_traces,
        task_salt=None if like is None else context.salt_of(like),
        like=like,
    )
    if columns:
        _list_columns(source, options, out, verbose=verbose)
        return
    if dry_run:
        _preview(source, options)
        return
    accounts = run(source, out or Path("bundle"), options, progress())
    bundles = [
        {"bundle": item.out, "digest": item.digest, "agent": item.agent, "imported": item.imported}
        for item in accounts
    ]
    without = accounts[0].without
    emit(
        answer("import", bundles=bundles, left_out=without),
        [
            *(line for account in accounts for line in _imported(account, verbose=verbose)),
            *(f"left out: {quoted(agent)}, of whom the log has no run to import" for agent in without),
        ],
        hints=[f"certkit assess {shell(str(account.out))}" for account in accounts],
        code=Exit.INSUFFICIENT if without else Exit.OK,
    )


def _list_columns(source: Path, options: ImportOptions, out: Path | None, *, verbose: bool) -> None:
    contents = columns_of(source, options)
    if out is not None:
        files.write(out, contents.mapping.encode(), overwrite=False)
    lines = described(contents.columns, contents.rows, verbose=verbose)
    emit(
        answer("import-columns", rows=contents.rows, columns=contents.columns, mapping=contents.mapping),
        [f"{many(contents.rows, 'row')}, {many(len(contents.columns), 'column')}", *lines]
        + ([] if out is None else [f"written: {out}"]),
        hints=[] if out else [f"{options.command(source)} --columns -o MAP.toml"],
    )


def _preview(source: Path, options: ImportOptions) -> None:
    records, counts, faults = preview(source, options)
    told = [*faults.grouped()]
    shown = [canonical.line(record).decode().rstrip() for record in records]
    shown += [f"{name}: {counted(words)}" for name, words in counts.items() if words]
    problems = f"{many(faults.total, 'problem')} in all rows"
    conditions, outcomes = counts.values()
    emit(
        answer("import-preview", records=records, conditions=conditions, outcomes=outcomes, faults=told),
        [*shown, problems if told else "all rows can be imported", *told],
        code=Exit.MALFORMED if told else Exit.OK,
    )


def _named(words: list[str]) -> tuple[str | None, Path]:
    """Return the format, None where only the log is named, and the log."""
    if len(words) == 1:
        return None, Path(words[0])
    if len(words) == 2 and words[0] in FORMATS:  # noqa: PLR2004 - format and log
        return words[0], Path(words[1])
    known = ", ".join(FORMATS)
    hint = f"certkit import LOG -o BUNDLE; or, before LOG, one of the formats {known}"
    raise UsageError("usage.option", f"expected one log, found {' '.join(words)!r}", hint=hint)


def _imported(account: ImportAccount, *, verbose: bool) -> Iterator[Line]:
    imported = account.imported
    sealed = "sealed as" if account.digest else "not sealed"
    text = f"{account.out}: {many(imported.records, 'record')} of {quoted(account.agent.name)}, {sealed}"
    yield from coloured([text], "bold green")
    if account.digest:
        yield account.digest
    yield from all_notes(imported, verbose=verbose)
