"""A report before it is laid out: what it is drawn from, and the files that its PDF carries.

Templates decide where things stand, and call the other modules for every sentence, table and figure; the
globals of `render` are the whole list. `SECTIONS` holds the headings, in templates and contents alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.report import attached
from certkit.report.argument.build import build
from certkit.report.argument.case import case
from certkit.report.argument.challenges import check_answers
from certkit.report.exports import EXPORTS

if TYPE_CHECKING:
    from datetime import date, datetime

    from certkit.assessment import Assessment
    from certkit.evidence.context import Given
    from certkit.evidence.summary.summary import Summary
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case
    from certkit.report.attached import Attachment

SECTIONS: Final = {
    "answer": "1 The answer",
    "glance": "2 At a glance",
    "use": "3 Use and hazards",
    "evidence": "4 Evidence",
    "results": "5 Results",
    "confidence": "6 Confidence",
    "fails": "7 Where it fails",
    "argument": "8 The argument",
    "challenges": "9 Challenges",
    "assumptions": "10 Assumptions and limits",
    "levels": "11 Integrity levels",
    "monitoring": "12 Monitoring",
    "review": "13 Review and decision",
    "crosswalk": "14 Crosswalk",
    "verify": "15 How to verify",
    "profile": "A Profile",
    "formulas": "B Formulas",
    "data": "C Data sheets",
    "attached": "D Attached files",
    "discrepancies": "E Contradictions of the sources",
}
"""Anchor and heading of every section, in order."""


class View(Struct, frozen=True, kw_only=True, eq=False):
    """A report: what it is drawn from; `generated_at` is None where no date is recorded.

    `attachments` are the files that the PDF carries.
    """

    case: Case
    argument: Argument
    generated_at: datetime | None
    attachments: tuple[Attachment, ...]

    def export(self, kind: str) -> bytes:
        """Return the report in one of the formats of `certkit.report.exports`."""
        return EXPORTS[kind](self.case, self.argument).encode()


def view(
    assessment: Assessment,
    *,
    context: Given | None = None,
    summary: Summary | None = None,
    today: date | None = None,
    passport: bytes | None = None,
    generated_at: datetime | None = None,
) -> View:
    """Return the report of an assessment.

    `context` is what people said of the use, with the `summary` that the assessment rests on; `today` ends
    acceptances and ages evidence. `passport` is the signed passport's file, attached as it is; `generated_at`
    (with a time zone) becomes the date of the document; without it the passport's first day does, and without
    a passport no date is recorded. Raises `CertkitError` where the passport is malformed or about another
    assessment, or an answer can never count.
    """
    signed = None if passport is None else attached.read(passport)
    if context is not None:
        check_answers(context.context, "context.json")
    about = case(assessment, context=context, summary=summary, signed=signed, today=today)
    attached.check(about)
    argument = build(about)
    dated = generated_at or (signed.predicate.validity.not_before if signed else None)
    files = attached.attachments(about, argument)
    return View(case=about, argument=argument, generated_at=dated, attachments=files)
