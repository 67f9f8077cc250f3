"""The report room: an assessment, and the passport where there is one, as a safety case people can read.

What it knows: how to say a verdict honestly, how to draw it, and how to lay it out as HTML and PDF. What
it does not do: judge evidence, verify a signature, ask the clock. The same assessment, passport and date
give the same bytes.

Rules. Bad news stands first. A verdict is repeated only where the rows carry it (`consistency`). No word
of praise goes beyond "meets the Tier n evidence thresholds of profile P". What nobody provided prints as
"not provided". Simulated evidence is a specimen on every page. Whatever came from evidence is hostile:
it is escaped and made visible.

    drawn = view(assessment, passport=data, generated_at=moment)
    page = html(drawn)
    if pdf_missing() is None:
        file = pdf(drawn)

The road inside: `material` (the document, checked) → `results`, `register`, `argue` (tables, figures,
sentences) → `view` → `render`.
"""

from __future__ import annotations

from certkit.report.attached import Attachment
from certkit.report.material import Material, of_assessment, of_document
from certkit.report.render import HINTS, html, pdf, pdf_missing
from certkit.report.source import Source, read
from certkit.report.view import View, view

__all__ = [
    "HINTS",
    "Attachment",
    "Material",
    "Source",
    "View",
    "html",
    "of_assessment",
    "of_document",
    "pdf",
    "pdf_missing",
    "read",
    "view",
]
