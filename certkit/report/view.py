"""A report before it is laid out: every sentence, table and figure as a value, and the attached files.

The view decides what is said; templates decide where it stands. It is built from the assessment's document
and the manifest, and prints "not provided" for what they do not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit._version import __version__
from certkit.assessment import fragile, of_judge
from certkit.report import answer, argue, attached, confidence, register, results, use
from certkit.report.argument.build import build
from certkit.report.argument.case import case
from certkit.report.argument.challenges import Standing, check_answers
from certkit.report.argument.figures import figures
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
    "answer": "The answer",
    "glance": "At a glance",
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
    """A report: what it is drawn from, and `page`, everything that the templates print, by name.

    `generated_at` is None where no date is recorded; `attachments` are the files that the PDF carries.
    """

    case: Case
    argument: Argument
    generated_at: datetime | None
    attachments: tuple[Attachment, ...]
    page: dict[str, Any]

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
    files = attached.attachments(about, argument)
    dated = generated_at or (signed.predicate.validity.not_before if signed else None)
    page = {
        "generated_at": dated,
        "today": today,
        "attached": attached.listing(files),
        **_answer(about, argument),
        **_evidence(about, argument),
        **_results(about),
        **_argument(about, argument),
        **_appendices(about),
    }
    return View(case=about, argument=argument, generated_at=dated, attachments=files, page=page)


def _answer(about: Case, argument: Argument) -> dict[str, Any]:
    """Return page 1, the figure of page 2, and what stands around the pages."""
    agent = about.document["agent"]
    opened = argument.count(Standing.OPEN, Standing.SUSTAINED)
    name = f"{agent['name']} {agent['version']}"
    return {
        "agent": name,
        "title": f"{'Evidence report' if answer.missing(about) else 'Safety case'}: {name}",
        "generator": f"certkit {__version__}",
        "passport_id": about.signed.id if about.signed else None,
        "specimen": about.specimen,
        "contents": SECTIONS,
        "marks": {"challenges": f"{opened} open"} if opened else {},
        "kind": answer.kind(about),
        "paragraph": answer.paragraph(about),
        "readings": answer.readings(about),
        "boxes": answer.boxes(about, argument),
        "claim": answer.claim(about, argument),
        "against": answer.against(about, argument),
        "changes": tuple(answer.changes(about)),
        "because": argument.claim.because,
        "identity": answer.identity(about),
        "forest": results.figure(about.document, about.tier),
        "forest_title": results.finding(about.document, about.tier),
        "legend": results.legend(),
        "reading": about.assessment.profile.reading,
    }


def _evidence(about: Case, argument: Argument) -> dict[str, Any]:
    """Return what people said of the use and decided, and what the evidence covers."""
    return {
        "use": use.use(about),
        "domains": use.domains(about),
        "people": use.people(about),
        "hazards": use.hazards(about, argument),
        "hazard_bars": use.hazard_bars(about, argument),
        "monitoring": use.monitoring(about),
        "reviews": use.review(about),
        "decision": use.decision(about),
        "crosswalk": use.crosswalk(),
        "scope": register.scope(about),
        "components": register.components(about),
        "imports": register.imports(about),
        "register": register.register(about),
        "coverage": register.coverage(about.document),
        "novel": register.coverage(about.document, split="novel_fault"),
        "coverage_gaps": tuple(register.gaps(about)),
        "judge": of_judge(about.assessment.judge),
    }


def _results(about: Case) -> dict[str, Any]:
    document, asked = about.document, about.tier
    tiers = {f"Tier {asked}, the tier that was asked for": results.tier_table(document, asked)}
    if str(asked + 1) in document["tiers"]:
        tiers[f"Tier {asked + 1}, the next tier"] = results.tier_table(document, asked + 1)
    return {
        "tiers": tiers,
        "provisional": any(row["provisional"] for row in document["criteria"]),
        "gaps": results.gaps(document),
        "posterior": confidence.posterior_figure(document),
        "posteriors": confidence.posterior_table(document),
        "bounded": about.assessment.verdict.bounded.tier,
        "bounds": confidence.bounds_table(document, asked),
        "priors": confidence.priors_table(document),
        "attained": about.assessment.verdict.tier > 0,
        "fragility": fragile(about.assessment.fragility),
        "csi": tuple(confidence.csi(document)),
        "failures": confidence.weakest(document),
        "fails": tuple(confidence.episodes(document)),
    }


def _argument(about: Case, argument: Argument) -> dict[str, Any]:
    return {
        "figures": figures(argument),
        "nodes": argue.nodes(argument),
        "challenges": argue.challenges(argument),
        "stale": argue.challenges(argument, stale=True),
        "assumptions": argue.assumptions(about.context),
        "levels": argue.levels(about.document),
    }


def _appendices(about: Case) -> dict[str, Any]:
    document, profile = about.document, about.assessment.profile
    metrics = {row["metric"] for row in document["criteria"]}
    return {
        "options": f"--profile {profile.id} --require-tier {about.tier}",
        "thresholds": results.profile_table(document),
        "profile": {
            "Id": profile.id,
            "Digest": profile.digest,
            "Reading that decides": profile.reading,
            "Title": profile.title,
            "Sources": "; ".join(profile.sources) or None,
        },
        "formulas": results.formulas(metrics),
        "data_sheets": results.data_sheets(document, metrics),
        "left_to_json": len(document["metrics"]) - len(metrics),
    }
