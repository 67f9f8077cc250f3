"""A report before it is laid out: what it is drawn from, and the files that its PDF carries.

Templates decide where things stand, and call the other modules for every sentence, table and figure; the
globals of `render` are the whole list. `SECTIONS` holds the headings, in templates and contents alike.

A signed passport is read from its payload without judging the signature: the report attaches its bytes and
repeats its identifier and its dates; it refuses a passport that speaks of another assessment. A passport that
was issued with another context, or with none, is about the same one where no answer changes the verdict. Only
``certkit verify`` tells whether the signature holds, and the report says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit._version import __version__
from certkit.assessment.assessing import contested
from certkit.ground import canonical
from certkit.ground.errors import MismatchError
from certkit.passport.opening import parse
from certkit.report.argument.build import build
from certkit.report.argument.case import case
from certkit.report.argument.challenges import check_answers
from certkit.report.exports import EXPORTS

if TYPE_CHECKING:
    from datetime import date, datetime

    from certkit.assessment.result import Assessment
    from certkit.bundle.context import Given
    from certkit.ground.canonical import Digest
    from certkit.passport.statement import Predicate
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case
    from certkit.summary.summary import Summary

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


class Issued(Struct, frozen=True, kw_only=True):
    """A passport's bytes, its identifier (the digest of its payload), and what the payload claims."""

    data: bytes
    id: Digest
    predicate: Predicate


def read(data: bytes, where: str | None = None) -> Issued:
    """Return what a passport claims; `where` names it in errors.

    Raises `CertkitError` with the codes of the passport room where it is malformed.
    """
    passport = parse(data, where)
    return Issued(data=data, id=passport.passport_id, predicate=passport.unverified_statement().predicate)


def _check(case: Case) -> None:
    """Raise `MismatchError` ``report.passport-differs`` where the passport is not about this assessment."""
    if case.signed is None:
        return
    claimed, document = case.signed.predicate, case.document
    judgement = claimed.assessment
    pairs: list[tuple[str, object, object]] = [
        ("evidence bundle", claimed.evidence.digest, document["bundle"]["digest"]),
        ("agent", claimed.agent.digest, document["agent"]["digest"]),
        ("profile", judgement.profile.digest, document["profile"]["digest"]),
        ("tier", judgement.tier, document["verdict"]["tier"]),
        ("required tier", judgement.required_tier, document["verdict"]["required_tier"]),
    ]
    hint = "'certkit verify PASSPORT --bundle BUNDLE --replay' names the first row that differs"
    if judgement.tool.version == __version__:
        made, digest = case.assessment, _digest(case.assessment)
        if judgement.context != made.context and all(stated == here for _, stated, here in pairs):
            hint = f"it was issued {_option(judgement.context)}, and this is {_option(made.context)}"
            unanswered = contested(made, {})
            if unanswered.verdict.status == made.verdict.status:  # no answer changes the verdict
                digest = _digest(structs.replace(unanswered, context=judgement.context))
        pairs.append(("assessment", judgement.digest, digest))
    for name, passport, assessment in pairs:
        if passport != assessment:
            message = f"the passport's {name} is {passport}, the assessment's is {assessment}"
            raise MismatchError("report.passport-differs", message, hint=hint)


def _digest(assessment: Assessment) -> Digest:
    return canonical.digest(canonical.canonical(assessment.to_dict()))


def _option(context: str | None) -> str:
    return f"with --context {context}" if context else "without --context"


class Attachment(Struct, frozen=True):
    """A file that the PDF carries; `relationship` is the AFRelationship of PDF/A-3."""

    name: str
    relationship: str
    description: str
    data: bytes

    @property
    def bytes(self) -> int:
        """Its size."""
        return len(self.data)

    @property
    def digest(self) -> Digest:
        """Its SHA-256."""
        return canonical.digest(self.data)


def _attachments(case: Case, argument: Argument) -> tuple[Attachment, ...]:
    """Return what a report carries, in the order of the names: a PDF's readers search them by halves."""
    text = "the profile's canonical form, whose SHA-256 is its digest"
    said = "the argument: nodes, links, states, challenges"
    argued, profile = argument.to_dict(), canonical.canonical(case.assessment.profile.to_dict())
    stated = {name: value for name, value in case.manifest.to_dict().items() if name != "files"}
    carried = [
        Attachment("argument.json", "Data", said, canonical.pretty(argued).encode()),
        Attachment("assessment.json", "Source", "the assessment that this report is drawn from", case.data),
        Attachment("profile.json", "Data", text, profile),
    ]
    said, manifest = "the manifest without the list of files", canonical.pretty(stated).encode()
    carried.append(Attachment("manifest-without-files.json", "Source", said, manifest))
    if case.given is not None:
        said = "what people said of the use, as it was given"
        carried.append(Attachment("context.json", "Source", said, case.given.data))
    if case.signed is not None:
        said = "the signed passport; verify it with certkit verify"
        carried.append(Attachment("passport.json", "Supplement", said, case.signed.data))
    return tuple(sorted(carried, key=lambda item: item.name))


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
    signed = None if passport is None else read(passport)
    if context is not None:
        check_answers(context)
    about = case(assessment, context=context, summary=summary, signed=signed, today=today)
    _check(about)
    argument = build(about)
    dated = generated_at or (signed.predicate.validity.not_before if signed else None)
    files = _attachments(about, argument)
    return View(case=about, argument=argument, generated_at=dated, attachments=files)
