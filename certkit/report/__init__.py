"""The report room: an assessment, and the passport where there is one, as a safety case people can read.

The same assessment, passport and date give the same bytes. A report is drawn from evidence that was judged
for it. Bad news stands first. No word of praise goes beyond "meets the Tier n evidence thresholds of profile
P". Information that is missing prints as "not provided". Simulated evidence is a specimen on every page.
Text that came from evidence is hostile: it is escaped and made visible.

    drawn = view(evaluation, context=given, passport=issued, today=today)
    markup = html(drawn)
    if pdf_missing() is None:
        file = pdf(drawn, markup)
    data = export(drawn, "junit")

The way through: `argument.case` (evaluation, context, passport) → `argument.build` (the graph) → `answer`,
`results`, `sections` (sentences, tables, figures) → `view` → `page`, `exports`.
"""

from __future__ import annotations

from certkit.report.argument.case import IssuedPassport
from certkit.report.exports import export
from certkit.report.page import HINTS, html, pdf, pdf_missing
from certkit.report.view import Attachment, ReportView, view

__all__ = [
    "HINTS",
    "Attachment",
    "IssuedPassport",
    "ReportView",
    "export",
    "html",
    "pdf",
    "pdf_missing",
    "view",
]
