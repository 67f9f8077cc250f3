"""``certkit view``: the runs of a bundle as one page for a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from certkit.api.judging import judge
from certkit.assessment.assessment import Question
from certkit.assessment.bundles import refuse_inside
from certkit.assessment.profile_file import load_profile
from certkit.bundle.folder import open_bundle
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import answer, emit, fold, progress
from certkit.ground import files
from certkit.ground.wording import many
from certkit.report.run_list import list_runs
from certkit.report.run_page import run_page


def view(
    folder: opt.BundleFolder,
    out: Annotated[Path, opt.OUT(help="The HTML file to write.")],
    force: opt.Force = False,
    profile: opt.ProfileName = "hb-eval-2026",
    changes: opt.Changes = None,
    strict: opt.Strict = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
) -> None:
    """Write the runs of a bundle as one page: the answer, the table, and each run with its transcript.

    The page is for engineers. It filters and sorts the runs by itself and fetches nothing. Of more than 2,000
    runs it holds all failures and a sample of the successes; the page and the screen say what is left out.

    Example: certkit view bundle -o page.html --open
    """
    refuse_inside([folder], out)
    context.check_outputs(out, force=force)
    table, question = load_profile(profile, changes or ()), Question(strict=strict)
    evaluation = judge([folder], table, question, progress=progress())
    runs = list_runs(open_bundle(folder, defer_records=True))
    files.write(out, run_page(evaluation, runs).encode(), overwrite=force)
    document = answer(
        "view",
        html=out,
        runs=runs.total,
        listed=runs.listed,
        transcripts=runs.transcripts,
        left_out=runs.left_out,
    )
    lines = [f"written: {out}, {many(runs.listed)}, {many(runs.transcripts, 'transcript')}"]
    opened = not open_ or webbrowser.open(out.resolve().as_uri())
    hints = [] if opened else [f"no browser was found; open {out} in one"]
    emit(document, [*lines, *(line for text in runs.left_out for line in fold(text))], hints=hints)
