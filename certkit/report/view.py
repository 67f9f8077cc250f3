"""A report before it is laid out: what it is drawn from, and the files that its PDF carries.

    drawn = view(evaluation, context=given, passport=issued, today=today)

Templates decide where things stand, and call the other modules for every sentence, table and figure; the
globals of `page` are the complete list. `SECTIONS` holds the headings, in templates and contents alike.

A passport is read from its payload without judging the signature: the report attaches its bytes and repeats
its identifier and its dates; it refuses a passport about another judgement. Only ``certkit verify`` tells
whether the signature holds, and the report says so.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.document import to_builtins
from certkit.ground.errors import MismatchError
from certkit.record.record import Record
from certkit.report.argument.build import Argument, build
from certkit.report.argument.case import UseCase, use_case

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from certkit.assessment.evaluation import Evaluation
    from certkit.ground.canonical import Digest
    from certkit.probes.scores_document import IntegrityDocument
    from certkit.report.argument.case import IssuedPassport
    from certkit.report.context import Given

SECTIONS: Final = {
    "answer": "1 The answer",
    "glance": "2 At a glance",
    "use": "3 Use and hazards",
    "evidence": "4 Evidence",
    "results": "5 Results",
    "confidence": "6 Confidence",
    "fails": "7 Where it fails",
    "argument": "8 The argument",
    "challenges": "9 Open questions",
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


class Attachment(Struct, frozen=True):
    """A file that the PDF carries; `relationship` is the AFRelationship of PDF/A-3."""

    name: str
    relationship: str
    description: str
    data: bytes  # noqa: A003 - the property is the heading of a column

    @property
    def bytes(self) -> int:
        """Its size."""
        return len(self.data)

    @property
    def digest(self) -> Digest:
        """Its SHA-256."""
        return canonical.digest(self.data)


class ReportView(Struct, frozen=True, kw_only=True, eq=False):
    """A report: what it is drawn from.

    Attributes:
        case: evaluation, context and passport.
        argument: the argument about the use.
        generated_at: the date of the document, None where none is recorded.
        attachments: the files that the PDF carries.
        failed: the worst runs that failed, None where the records are not at hand.
    """

    case: UseCase
    argument: Argument
    generated_at: datetime | None
    attachments: tuple[Attachment, ...]
    failed: tuple[Record, ...] | None = None


def view(
    evaluation: Evaluation,
    *,
    context: Given | None = None,
    passport: IssuedPassport | None = None,
    parts: tuple[Evaluation, ...] = (),
    integrity: IntegrityDocument | None = None,
    today: date | None = None,
    generated_at: datetime | None = None,
    failed: tuple[Record, ...] | None = None,
) -> ReportView:
    """Return the report of an evaluation.

    Args:
        evaluation: what was judged; the passport's, or that of bundles.
        context: what people said of the use.
        passport: the passport, attached as it is.
        parts: each of several bundles judged alone.
        integrity: the scores of commitment integrity, where a bundle gives them.
        today: ends acceptances and ages evidence.
        generated_at: the date of the document; by default the passport's first moment, and none without one.
        failed: the worst runs that failed, where the records are at hand.

    Raises:
        MismatchError: ``report.passport-differs`` where the passport is about another judgement.
        InputError: ``context.invalid`` where the context names what there is not.
    """
    if passport is not None:
        _check(passport, evaluation)
    case = use_case(
        evaluation, context=context, passport=passport, parts=parts, integrity=integrity, today=today
    )
    argument = build(case)
    return ReportView(
        case=case,
        argument=argument,
        generated_at=generated_at or (passport.not_before if passport else None),
        attachments=tuple(sorted(_attachments(case, argument), key=lambda item: item.name)),
        failed=failed,
    )


def _check(passport: IssuedPassport, evaluation: Evaluation) -> None:
    signed = passport.evaluation
    pairs: tuple[tuple[str, object, object], ...] = (
        ("evidence bundle", signed.facts.digest, evaluation.facts.digest),
        ("agent", signed.facts.agent.digest, evaluation.facts.agent.digest),
        ("profile", signed.profile.digest, evaluation.profile.digest),
        ("required tier", signed.question.required_tier, evaluation.question.required_tier),
        ("tier", signed.assessment.verdict.tier, evaluation.assessment.verdict.tier),
        ("status", signed.assessment.verdict.status, evaluation.assessment.verdict.status),
        ("rows", _statuses(signed), _statuses(evaluation)),
    )
    for name, stated, judged in pairs:
        if stated != judged:
            values = "differ" if name == "rows" else f"is {stated}, the evidence gives {judged}"
            raise MismatchError(
                "report.passport-differs",
                f"the passport's {name} {values}",
                hint="'certkit verify PASSPORT --bundle BUNDLE --replay' names the first value that differs;"
                " answers of a context count only as the passport was issued with",
            )


def _statuses(evaluation: Evaluation) -> list[tuple[str, int, str, str | None]]:
    return [
        (row.id, row.tier, row.status, row.bounded.status if row.bounded else None)
        for row in evaluation.assessment.criteria
    ]


def _attachments(case: UseCase, argument: Argument) -> Iterator[Attachment]:
    """Yield what a report carries; in the order of the names, a PDF's readers search them by halves."""
    evaluation = case.evaluation
    text = "the argument: nodes, links, states, challenges"
    yield Attachment("argument.json", "Data", text, canonical.pretty(argument.to_dict()).encode())
    text = "the assessment that this report is drawn from"
    yield Attachment("assessment.json", "Source", text, case.data)
    text = "what the manifest states, without the list of files"
    facts = canonical.pretty(to_builtins(evaluation.facts)).encode()
    yield Attachment("facts.json", "Source", text, facts)
    text = "the profile's canonical form, whose SHA-256 is its digest"
    yield Attachment("profile.json", "Data", text, canonical.canonical(evaluation.profile.to_dict()))
    if case.given is not None:
        text = "what people said of the use, as it was given"
        yield Attachment("context.json", "Source", text, case.given.data)
    if case.passport is not None:
        text = "the signed passport; verify it with certkit verify"
        yield Attachment("passport.json", "Supplement", text, case.passport.data)
