"""``certkit report``."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certkit.cli import output
from certkit.cli.options import Force, Jobs, Json, Quiet, check_outputs
from certkit.cli.views.bar import progress
from certkit.errors import UsageError

if TYPE_CHECKING:
    from certkit.assessment import Profile
    from certkit.progress import Progress
    from certkit.report import View

REPORT_SCHEMA = "urn:certkit:report:v1"


def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A bundle's folder, an assessment.json or a passport.json."),
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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw the safety case of a bundle, an assessment or a passport as HTML and PDF.

    A bundle is judged first; a passport needs --bundle and is refused where the evidence gives another
    verdict; an assessment file is repeated only where its rows carry its verdict. The same input gives the
    same bytes; the document's date is SOURCE_DATE_EPOCH where that is set. Where Pango is missing the
    HTML is written and the exit code is 0: the report is not a verdict.

    Example: certkit report bundle/ -o safety-case.pdf
    """
    if out.suffix not in {".pdf", ".html"}:
        raise UsageError("usage.option", f"{out} ends in neither .pdf nor .html", hint="-o safety-case.pdf")
    check_outputs(out, out.with_suffix(".html"), force=force)
    date = _date()  # first: numpy reads the variable too, and fails on it without a word to the user
    drawn = _view(source, bundle, profile, require_tier, jobs, date, progress(hidden=quiet or json))
    written = _write(drawn, out, force=force)
    if json:
        output.document({"schema": REPORT_SCHEMA, **written})
    elif not quiet:
        _say(written)


def _view(
    source: Path,
    bundle: list[Path] | None,
    profile: str | None,
    require_tier: int | None,
    jobs: int | None,
    date: datetime | None,
    bar: Progress,
) -> View:
    from certkit import report as room  # noqa: PLC0415 - keeps the help fast
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast

    if source.is_dir():
        _refuse(bundle, "--bundle goes with a passport")
        name, tier = profile or workflow.DEFAULT_PROFILE, require_tier or 1
        judged = workflow.assess(source, name, required_tier=tier, jobs=jobs, progress=bar)
        return room.view(judged, generated_at=date)
    found = room.read(source)
    _refuse(require_tier, "--require-tier goes with a bundle: the tier is stated in the file")
    if found.passport is None:
        _refuse(bundle, "--bundle goes with a passport")
        table = _profile(profile, found.assessment)
        return room.view(
            room.of_document(found.assessment, profile=table, where=found.where), generated_at=date
        )
    if not bundle:
        raise UsageError(
            "usage.option", "a passport needs --bundle: its evidence is judged again", where=found.where
        )
    claimed = found.passport.predicate.assessment
    name, tier = profile or claimed.profile.id, claimed.required_tier
    judged = workflow.assess(bundle, name, required_tier=tier, jobs=jobs, progress=bar)
    return room.view(judged, passport=found.passport.data, generated_at=date)


def _profile(name: str | None, assessment: Any) -> Profile | None:
    """Return the named profile, else the packaged one that the assessment names, where there is one."""
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast

    if name is not None:
        return workflow.load_profile(name)
    profile = assessment.get("profile")
    stated = profile.get("id") if isinstance(profile, dict) else None
    return workflow.load_profile(stated) if stated in workflow.packaged_profiles() else None


def _refuse(value: object, message: str) -> None:
    if value:
        raise UsageError("usage.option", message)


def _date() -> datetime | None:
    """Return the date that the caller's environment sets for reproducible documents, if it does."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if not text:
        return None
    try:
        return datetime.fromtimestamp(int(text), tz=UTC)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            "usage.option", f"SOURCE_DATE_EPOCH is {text[:40]!r}, not seconds since 1970"
        ) from None


def _write(drawn: View, out: Path, *, force: bool) -> dict[str, str | None]:
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.report import html, pdf, pdf_missing  # noqa: PLC0415 - keeps the help fast

    page = html(drawn)
    name = out.with_suffix(".html")
    reason = None
    if out.suffix == ".pdf":
        reason = pdf_missing()
        if reason is None:
            files.write(out, pdf(drawn, page), overwrite=force)
    files.write(name, page.encode(), overwrite=force)
    made = out.suffix == ".pdf" and reason is None
    return {"html": str(name), "pdf": str(out) if made else None, "pdf_missing": reason}


def _say(written: dict[str, str | None]) -> None:
    output.say(f"written: {written['html']}")
    if written["pdf"]:
        output.say(f"written: {written['pdf']}")
    if written["pdf_missing"]:
        say_missing(written["pdf_missing"])


def say_missing(reason: str) -> None:
    """Say why there is no PDF, and what would make one."""
    from certkit.report import HINTS  # noqa: PLC0415 - keeps the help fast

    output.note(f"PDF not made: {reason}")
    for line in HINTS:
        output.hint(line)
