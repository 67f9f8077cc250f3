"""Safety cases on disk: a judgement is drawn, and written as HTML and PDF.

drawn = draw(judged, today=today)
written = write_drawn(drawn, Path("safety-case.pdf"))
written.html, written.pdf, written.pdf_missing
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from certkit import report
from certkit.ground import files
from certkit.ground.errors import UsageError

if TYPE_CHECKING:
    from datetime import date

    from certkit.api.judging import Judged
    from certkit.report.context import Given


class WrittenReport(Struct, frozen=True, kw_only=True):
    """The files of a report.

    Attributes:
        html: the HTML file; None where one was there already and stays as it is.
        pdf: the PDF file; None where none was asked for or drawn.
        pdf_missing: why a PDF that was asked for is not there.
    """

    html: Path | None
    pdf: Path | None
    pdf_missing: str | None


def draw(
    judged: Judged,
    *,
    today: date,
    given: Given | None = None,
    passport: report.IssuedPassport | None = None,
) -> report.ReportView:
    """Return the report of a judgement.

    Args:
        judged: what was judged.
        today: the day for which acceptances and the age of the evidence are shown.
        given: the context that it quotes.
        passport: the passport of the judgement.
    """
    return report.view(
        judged,
        context=given,
        passport=passport,
        parts=judged.parts,
        integrity=judged.integrity,
        today=today,
        failed=judged.failed_runs(),
    )


def target_of(out: Path | None) -> Path:
    """Return the file that a report is written to.

    Raises:
        UsageError: ``usage.option`` where no file is named, or one that is neither HTML nor PDF.
    """
    if out is None or out.suffix not in {".pdf", ".html"}:
        fault = "no file is named" if out is None else f"{out} ends in neither .pdf nor .html"
        raise UsageError("usage.option", fault, hint="-o safety-case.pdf")
    return out


def page_beside(out: Path) -> Path:
    """Return the HTML file of a report that is written to a file."""
    return out.with_suffix(".html")


def leaves_page(out: Path, *, overwrite: bool) -> bool:
    """Tell whether the HTML beside a PDF is there already, and stays as it is."""
    there = page_beside(out).exists()
    return out.suffix == ".pdf" and not overwrite and there and report.pdf_missing() is None


def write_drawn(drawn: report.ReportView, out: Path, *, overwrite: bool = False) -> WrittenReport:
    """Write a report as PDF with the HTML beside it, or as HTML alone, by the name of the file.

    Raises:
        UsageError: ``usage.option`` for another name, ``file.exists`` where a file is in the way.
    """
    page, name, pdf, reason = report.html(drawn), page_beside(target_of(out)), None, None
    leaves = leaves_page(out, overwrite=overwrite)
    if out.suffix == ".pdf" and (reason := report.pdf_missing()) is None:
        pdf = out
        files.write(pdf, report.pdf(drawn, page), overwrite=overwrite)
    if not leaves:
        files.write(name, page.encode(), overwrite=overwrite)
    return WrittenReport(html=None if leaves else name, pdf=pdf, pdf_missing=reason)
