"""A report before it is laid out: every sentence, table and figure as a value, and the attached files.

The view decides what is said; templates decide where it stands. It is built from the assessment's document
and the manifest, and prints "not provided" for what they do not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit._version import __version__
from certkit.assessment import fragile, of_judge
from certkit.report import answer, argue, attached, confidence, fails, issued, register, results, use, words
from certkit.report.argument.build import build
from certkit.report.argument.case import case
from certkit.report.argument.challenges import Standing, check_answers
from certkit.report.argument.document import gsn
from certkit.report.argument.document import register as register_of
from certkit.report.argument.figures import figures
from certkit.report.integrity import Commitments, commitments
from certkit.report.material import material as drawn_from
from certkit.report.table import Entry, Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime

    from markupsafe import Markup

    from certkit.assessment import Assessment, Profile
    from certkit.evidence.context import Given
    from certkit.evidence.summary.summary import Summary
    from certkit.report.answer import Box
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case
    from certkit.report.attached import Attachment
    from certkit.report.issued import Issued
    from certkit.report.material import Material


SECTIONS: Final = (
    ("answer", "The answer"),
    ("glance", "At a glance"),
    ("use", "3 Use and hazards"),
    ("evidence", "4 Evidence"),
    ("results", "5 Results"),
    ("confidence", "6 Confidence"),
    ("fails", "7 Where it fails"),
    ("argument", "8 The argument"),
    ("challenges", "9 Challenges"),
    ("assumptions", "10 Assumptions and limits"),
    ("levels", "11 Integrity levels"),
    ("monitoring", "12 Monitoring"),
    ("review", "13 Review and decision"),
    ("crosswalk", "14 Crosswalk"),
    ("verify", "15 How to verify"),
    ("profile", "A Profile"),
    ("formulas", "B Formulas"),
    ("data", "C Data sheets"),
    ("attached", "D Attached files"),
    ("discrepancies", "E Contradictions of the sources"),
)
"""Anchor and heading of every section, in order."""


class Tier(Struct, frozen=True, kw_only=True):
    """One tier's table of results and what stands above it."""

    heading: str
    results: Table


class View(Struct, frozen=True, kw_only=True, eq=False):
    """Everything that a report prints. `notice` stands on every page, empty where nothing must be said."""

    title: str
    kind: str
    notice: str
    specimen: bool
    generated_at: datetime | None
    today: date | None
    passport_id: str | None
    generator: str
    paragraph: str
    readings: tuple[str, ...]
    boxes: tuple[Box, ...]
    claim: str
    against: tuple[str, ...]
    changes: tuple[str, ...]
    because: tuple[str, ...]
    identity: tuple[Entry, ...]
    contents: tuple[Section, ...]
    forest: Markup
    forest_title: str
    legend: tuple[tuple[Markup, str], ...]
    provisional: bool
    reading: str
    use: tuple[Entry, ...]
    domains: Table
    people: Table
    hazards: Table
    scope: tuple[Entry, ...]
    components: Table
    imports: Table
    register: Table
    coverage: Table
    novel: Table
    coverage_gaps: tuple[str, ...]
    judge: tuple[str, ...]
    tiers: tuple[Tier, ...]
    gaps: Table
    posterior: Markup | None
    posteriors: Table
    bounds: Table
    priors: Table
    attained: bool
    fragility: tuple[str, ...]
    bounded: str
    csi: tuple[str, ...]
    failures: Table
    fails: tuple[str, ...]
    commitments: Commitments | None
    figures: tuple[tuple[str, Markup], ...]
    nodes: Table
    challenges: Table
    stale: Table
    assumptions: Table
    source_limits: tuple[str, ...]
    levels: Table
    monitoring: Table
    reviews: Table
    decision: tuple[Entry, ...]
    crosswalk: Table
    commands: tuple[Entry, ...]
    thresholds: Table
    profile: tuple[Entry, ...]
    formulas: Table
    data_sheets: Table
    left_to_json: int
    discrepancies: tuple[str, ...]
    attached: Table
    attachments: tuple[Attachment, ...]
    exports: dict[str, bytes]
    stale_about: tuple[str, ...]


class Section(Struct, frozen=True):
    """A section in the list of contents: its anchor, its heading, and a mark where something is open."""

    anchor: str
    heading: str
    mark: str


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
    material = drawn_from(assessment)
    document = material.document
    signed = None if passport is None else issued.read(passport)
    if signed is not None:
        issued.check(signed, document)
    if context is not None:
        check_answers(context.context, "context.json")
    about = case(
        assessment,
        document=document,
        manifest=material.manifest,
        context=context.context if context else None,
        summary=summary,
        today=today,
    )
    argument = build(about)
    attachments = attached.attachments(material, signed, about, argument, context)
    name = f"{document['agent']['name']} {document['agent']['version']}"
    return View(
        title=f"{'Safety case' if not answer.missing(about) else 'Evidence report'}: {name}",
        notice="SPECIMEN – simulated evidence, says nothing about a real agent" if about.specimen else "",
        specimen=about.specimen,
        generated_at=generated_at or (signed.predicate.validity.not_before if signed else None),
        today=today,
        passport_id=signed.id if signed else None,
        generator=f"certkit {__version__}",
        reading=document["profile"]["reading"],
        legend=results.legend(),
        provisional=any(row["provisional"] for row in document["criteria"]),
        contents=_contents(argument),
        levels=argue.levels(document),
        commands=_commands(document, signed),
        discrepancies=argue.DISCREPANCIES,
        attached=attached.listing(attachments),
        attachments=attachments,
        exports={
            "argument": next(item.data for item in attachments if item.name == "argument.json"),
            "gsn": gsn(argument).encode(),
            "register": register_of(argument).encode(),
        },
        stale_about=about.stale,
        **_answer(about, argument, signed),
        **_use(about, argument),
        **_evidence(material, signed),
        **_results(document, about.tier),
        **_confidence(assessment, document),
        **_fails(document),
        **_argument(about, argument),
        **_appendices(assessment, document),
    )


def _answer(about: Case, argument: Argument, signed: Issued | None) -> dict[str, Any]:
    """Return page 1 and the figure of page 2."""
    return {
        "kind": answer.kind(about),
        "paragraph": answer.paragraph(about),
        "readings": answer.readings(about),
        "boxes": answer.boxes(about, argument),
        "claim": answer.claim(about, argument),
        "against": answer.against(about, argument),
        "changes": answer.changes(about),
        "because": argument.because,
        "identity": answer.identity(about, signed),
        "forest": results.figure(about.document, about.tier),
        "forest_title": fails.finding(about.document, about.tier),
    }


def _use(about: Case, argument: Argument) -> dict[str, Any]:
    """Return what people said of the use, of monitoring, and what they decided."""
    return {
        "use": use.use(about),
        "domains": use.domains(about),
        "people": use.people(about),
        "hazards": use.hazards(about, argument),
        "monitoring": use.monitoring(about),
        "reviews": use.review(about),
        "decision": use.decision(about),
        "crosswalk": use.crosswalk(),
    }


def _results(document: dict[str, Any], asked: int) -> dict[str, Any]:
    shown = [asked, *([asked + 1] if str(asked + 1) in document["tiers"] else [])]
    return {
        "tiers": tuple(_tier(document, number, asked) for number in shown),
        "gaps": results.gaps(document),
    }


def _confidence(assessment: Assessment, document: dict[str, Any]) -> dict[str, Any]:
    return {
        "posterior": confidence.posterior_figure(document),
        "posteriors": confidence.posterior_table(document),
        "bounds": confidence.bounds_table(document, document["verdict"]["required_tier"]),
        "priors": confidence.priors_table(document),
        "attained": document["verdict"]["tier"] > 0,
        "fragility": fragile(assessment.fragility),
        "judge": of_judge(assessment.judge),
        "bounded": _bounded(document),
        "csi": tuple(_csi(document)),
    }


def _argument(about: Case, argument: Argument) -> dict[str, Any]:
    return {
        "figures": figures(argument),
        "nodes": argue.nodes(argument),
        "challenges": argue.challenges(argument),
        "stale": argue.challenges(argument, stale=True),
        "assumptions": argue.assumptions(about.context),
        "source_limits": argue.SOURCE_LIMITS,
    }


def _appendices(assessment: Assessment, document: dict[str, Any]) -> dict[str, Any]:
    of_profile = {row["metric"] for row in document["criteria"]}
    return {
        "thresholds": results.profile_table(document),
        "profile": _profile(assessment.profile),
        "formulas": results.formulas(of_profile),
        "data_sheets": results.data_sheets(document, of_profile),
        "left_to_json": len(document["metrics"]) - len(of_profile),
    }


def _contents(argument: Argument) -> tuple[Section, ...]:
    """Return the sections with a mark where one of them holds something open."""
    opened = argument.count(Standing.OPEN) + argument.count(Standing.SUSTAINED)
    marks = {"challenges": f"{opened} open"} if opened else {}
    return tuple(Section(anchor, heading, marks.get(anchor, "")) for anchor, heading in SECTIONS)


def _evidence(material: Material, signed: Issued | None) -> dict[str, Any]:
    """Return the tables of what was evaluated and of what the evidence covers."""
    document = material.document
    return {
        "scope": register.scope(material),
        "components": register.components(material),
        "imports": register.imports(material),
        "register": register.register(material, signed),
        "coverage": register.coverage(document),
        "novel": register.coverage(document, split="novel_fault"),
        "coverage_gaps": register.gaps(document),
    }


def _bounded(document: dict[str, Any]) -> str:
    tier = document["verdict"]["bounded"]["tier"]
    return f"Under the bounded reading the evidence shows {f'Tier {tier}' if tier else 'no tier'}."


def _tier(document: dict[str, Any], number: int, asked: int) -> Tier:
    role = "the tier that was asked for" if number == asked else "the next tier"
    return Tier(heading=f"Tier {number}, {role}", results=results.tier_table(document, number))


def _fails(document: dict[str, Any]) -> dict[str, Any]:
    """Return the known failure modes: the weakest cells, and what else is seen to go wrong."""
    return {
        "failures": fails.weakest(document),
        "fails": tuple(fails.episodes(document)),
        "commitments": commitments(document),
    }


def _csi(document: dict[str, Any]) -> Iterator[str]:
    """Say what CSI as printed does, and what it did here, wherever a row of the profile uses it."""
    if not any(row["metric"] == "csi" for row in document["criteria"]):
        return
    yield (
        "CSI is computed as the source prints it, and its thresholds are provisional there. As printed its "
        "trend term is 0 or 1 for any slope above 10^−6, so that an agent whose failures come at random can "
        "score 0 by chance; and one recovery that differs from the others in intentionality holds the IRS "
        "factor at 0.60 or less, so that every tier needs a window of recoveries that are all intentional, "
        "or all not."
    )
    metric = document["metrics"]["csi"]
    if metric["value"] is None:
        yield f"Here it is unmeasured: {metric.get('reason', 'no reason given')}."
        return
    factors = [metric.get(key) for key in ("pei_stability", "irs_stability", "trend")]
    if all(isinstance(factor, int | float) for factor in factors):
        stable, intentional, trend = factors
        yield (
            f"Here: PEI factor {stable:.3f}, IRS factor {intentional:.3f}, trend factor {trend:.3f}, over "
            f"{words.plural(metric['n'], 'run')}."
        )


def _commands(document: dict[str, Any], signed: Issued | None) -> tuple[Entry, ...]:
    options = f"--profile {document['profile']['id']} --require-tier {document['verdict']['required_tier']}"
    steps = [
        Entry("Take the attached files out of the PDF", "pdfdetach -saveall safety-case.pdf"),
        Entry("Check the bundle's files against its seal", "certkit bundle check BUNDLE"),
        Entry("Judge the evidence again", f"certkit assess BUNDLE {options} -o again.json"),
        Entry(
            "Compare: the same evidence, profile and version give the same bytes",
            "cmp again.json assessment.json",
        ),
        Entry(
            "Draw this report again, with the same SOURCE_DATE_EPOCH",
            f"certkit report BUNDLE {options} -o again.pdf",
        ),
    ]
    if signed is not None:
        verify = "certkit verify passport.json --trust trust.json --bundle BUNDLE --replay"
        steps.insert(1, Entry("Verify the passport's signature, validity, evidence and claim", verify))
        again = "certkit report passport.json --bundle BUNDLE -o again.pdf"
        steps[-1] = Entry("Draw this report again", again)
    return tuple(steps)


def _profile(profile: Profile) -> tuple[Entry, ...]:
    return (
        Entry("Id", profile.id),
        Entry("Digest", profile.digest),
        Entry("Reading that decides", profile.reading),
        Entry("Title", profile.title),
        Entry("Sources", "; ".join(profile.sources) or None),
    )
