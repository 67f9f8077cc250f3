"""The report room: an assessment, and the passport where there is one, as a safety case people can read.

The same assessment, passport and date give the same bytes. A report is drawn from evidence that was judged
for it. Bad news stands first. No word of praise goes beyond "meets the Tier n evidence thresholds of profile
P". Information that is missing prints as "not provided". Simulated evidence is a specimen on every page.
Text that came from evidence is hostile: it is escaped and made visible.

    drawn = view(assessment, passport=data, generated_at=moment)
    page = html(drawn)
    if pdf_missing() is None:
        file = pdf(drawn)

The way through: `argument.case` (assessment, context, passport) → `argument.build` (the graph) → `answer`,
`results`, `sections` (sentences, tables, figures) → `view` → `render`, `exports`.
"""

from __future__ import annotations

from certkit.report.render import HINTS, html, pdf, pdf_missing
from certkit.report.view import Attachment, Issued, View, read, view

__all__ = [
    "HINTS",
    "Attachment",
    "Issued",
    "View",
    "html",
    "pdf",
    "pdf_missing",
    "read",
    "view",
]
