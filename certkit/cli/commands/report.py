"""``certkit report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit import files, workflow
from certkit import report as room
from certkit.cli import context
from certkit.cli.documents import Report
from certkit.cli.emit import emit, progress
from certkit.cli.options import Force, Jobs, check_outputs
from certkit.cli.views.assessment import show_report
from certkit.errors import UsageError

if TYPE_CHECKING:
    from certkit.report import View


def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A bundle's folder, or a passport.json with --bundle."),
    ],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="X.pdf (X.html is written beside it) or X.html, the file to write."),
    ],
    force: Force = False,
    bundle: Annotated[
        list[Path] | None,
        typer.Option(
            "--bundle",
            metavar="BUNDLE",
            help="The evidence of a passport, which is judged again. Once for each bundle.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--profile",
            envvar="CERTKIT_PROFILE",
            help="A packaged profile or the path of a TOML file. Default: hb-eval-2026, or the passport's.",
        ),
    ] = None,
    require_tier: Annotated[
        int | None,
        typer.Option("--require-tier", min=1, max=9, help="The tier asked for; for a bundle, 1 by default."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Draw the safety case of a bundle, or of a passport with its evidence, as HTML and PDF.

    The evidence is judged for the report; a passport is refused where its evidence gives another verdict.
    The same input gives the same bytes; the document's date is SOURCE_DATE_EPOCH where that is set. Where
    Pango is missing the HTML is written and the exit code is 0: the report is not a verdict.

    Example: certkit report bundle/ -o safety-case.pdf
    """
    if out.suffix not in {".pdf", ".html"}:
        raise UsageError("usage.option", f"{out} ends in neither .pdf nor .html", hint="-o safety-case.pdf")
    check_outputs(out, out.with_suffix(".html"), force=force)
    drawn = _view(source, bundle, profile, require_tier, jobs)
    written = _write(drawn, out, force=force)
    emit(written, show_report(written, room.HINTS))


def _view(
    source: Path,
    bundle: list[Path] | None,
    profile: str | None,
    require_tier: int | None,
    jobs: int | None,
) -> View:
    date, bar = context.document_date(), progress()
    if source.is_dir():
        _refuse(bundle, "--bundle goes with a passport")
        name, tier = profile or workflow.DEFAULT_PROFILE, require_tier or 1
        judged = workflow.assess(source, name, required_tier=tier, jobs=jobs, progress=bar)
        return room.view(judged, generated_at=date)
    data = files.read(source, limit=workflow.MAX_PASSPORT)
    _refuse(require_tier, "--require-tier goes with a bundle: a passport states the tier that was asked for")
    if not bundle:
        raise UsageError(
            "usage.option",
            "a file must be a passport, and needs --bundle: its evidence is judged again",
            where=str(source),
            hint="without a passport: certkit report BUNDLE",
        )
    claimed = room.read(data).predicate.assessment
    name, tier = profile or claimed.profile.id, claimed.required_tier
    judged = workflow.assess(bundle, name, required_tier=tier, jobs=jobs, progress=bar)
    return room.view(judged, passport=data, generated_at=date)


def _refuse(value: object, message: str) -> None:
    if value:
        raise UsageError("usage.option", message)


def _write(drawn: View, out: Path, *, force: bool) -> Report:
    page = room.html(drawn)
    name = out.with_suffix(".html")
    reason = None
    if out.suffix == ".pdf":
        reason = room.pdf_missing()
        if reason is None:
            files.write(out, room.pdf(drawn, page), overwrite=force)
    files.write(name, page.encode(), overwrite=force)
    made = out.suffix == ".pdf" and reason is None
    return Report(html=name, pdf=out if made else None, pdf_missing=reason)
