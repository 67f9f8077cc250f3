"""A report before it is laid out: every sentence, table and figure as a value, and the attached files.

The view decides what is said; templates decide where it stands. It is built from the assessment's document
and the manifest, and prints "not provided" for what they do not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit import canonical
from certkit._version import __version__
from certkit.assessment import Status, fragile, of_judge
from certkit.report import argue, attached, confidence, issued, register, results, words
from certkit.report.material import material as drawn_from
from certkit.report.svg import WORDS, judged
from certkit.report.table import Entry, Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from markupsafe import Markup

    from certkit.assessment import Assessment, Profile
    from certkit.report.attached import Attachment
    from certkit.report.issued import Issued
    from certkit.report.material import Material

_LOST: Final = {
    Status.NOT_MET: "It fails on",
    Status.INSUFFICIENT: "It cannot be judged on",
    Status.NOT_TESTED: "There is no evidence for",
}


class Tier(Struct, frozen=True, kw_only=True):
    """One tier's table of results and what stands above it."""

    heading: str
    results: Table


class View(Struct, frozen=True, kw_only=True, eq=False):
    """Everything that a report prints. `notice` stands on every page, empty where nothing must be said."""

    title: str
    notice: str
    specimen: bool
    generated_at: datetime | None
    passport_id: str | None
    generator: str
    claim: str
    status: Markup
    asked: str
    verdict_class: str
    identity: tuple[Entry, ...]
    counts: tuple[Entry, ...]
    bad_news: tuple[str, ...]
    good_news: tuple[str, ...]
    limits: tuple[str, ...]
    changes: tuple[str, ...]
    forest: Markup
    forest_tier: int
    legend: tuple[tuple[Markup, str], ...]
    provisional: bool
    reading: str
    scope: tuple[Entry, ...]
    components: Table
    imports: Table
    register: Table
    coverage: Table
    novel: Table
    coverage_gaps: tuple[str, ...]
    remarks: Table
    tiers: tuple[Tier, ...]
    gaps: Table
    posterior: Markup | None
    posteriors: Table
    bounds: Table
    intervals: Table
    priors: Table
    attained: bool
    fragility: tuple[str, ...]
    judge: tuple[str, ...]
    bounded: str
    csi: tuple[str, ...]
    challenges: Table
    assumptions: Table
    source_limits: tuple[str, ...]
    levels: Table
    commands: tuple[Entry, ...]
    thresholds: Table
    profile: tuple[Entry, ...]
    formulas: Table
    data_sheets: Table
    discrepancies: tuple[str, ...]
    attached: Table
    attachments: tuple[Attachment, ...]


def view(
    assessment: Assessment, *, passport: bytes | None = None, generated_at: datetime | None = None
) -> View:
    """Return the report of an assessment.

    `passport` is the signed passport's file, attached as it is; `generated_at` (with a time zone) becomes
    the date of the document; without it the passport's first day does, and without a passport no date is
    recorded. Raises `CertkitError` where the passport is malformed or about another assessment.
    """
    material = drawn_from(assessment)
    document = material.document
    signed = None if passport is None else issued.read(passport)
    if signed is not None:
        issued.check(signed, document)
    attachments = attached.attachments(material, signed)
    tier = document["verdict"]["tier"]
    specimen = document["bundle"]["origin"] == "simulated"
    forest_tier = min(tier + 1, len(document["tiers"]))
    return View(
        title=f"Safety case: {document['agent']['name']} {document['agent']['version']}",
        notice="SPECIMEN – simulated evidence, says nothing about a real agent" if specimen else "",
        specimen=specimen,
        generated_at=generated_at or (signed.predicate.validity.not_before if signed else None),
        passport_id=signed.id if signed else None,
        generator=f"certkit {__version__}",
        **_verdict(document),
        identity=_identity(material, signed),
        counts=_counts(document),
        bad_news=tuple(_bad_news(document)),
        good_news=tuple(_good_news(document)),
        limits=_limits(document),
        changes=tuple(_changes(document)),
        forest=results.figure(document, forest_tier),
        forest_tier=forest_tier,
        legend=results.legend(),
        provisional=any(row["provisional"] for row in document["criteria"]),
        reading=document["profile"]["reading"],
        **_evidence(material, signed),
        tiers=tuple(_tier(document, number) for number in results.tiers_shown(document)),
        gaps=results.gaps(document),
        posterior=confidence.posterior_figure(document),
        posteriors=confidence.posterior_table(document),
        bounds=confidence.bounds_table(document, results.tiers_shown(document)[-1]),
        intervals=confidence.intervals_table(document),
        priors=confidence.priors_table(document),
        attained=document["verdict"]["tier"] > 0,
        fragility=fragile(assessment.fragility),
        judge=of_judge(assessment.judge),
        bounded=_bounded(document),
        csi=tuple(_csi(document)),
        challenges=argue.challenges(material),
        assumptions=argue.assumptions(),
        source_limits=argue.SOURCE_LIMITS,
        levels=argue.levels(document),
        commands=_commands(document, signed),
        thresholds=results.profile_table(document),
        profile=_profile(assessment.profile),
        formulas=results.formulas(),
        data_sheets=results.data_sheets(document),
        discrepancies=argue.DISCREPANCIES,
        attached=attached.listing(attachments),
        attachments=attachments,
    )


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
        "remarks": register.remarks(document),
    }


def _verdict(document: dict[str, Any]) -> dict[str, Any]:
    """Return the claim and the box beside it; every word of praise rests on rows that were checked."""
    verdict, profile = document["verdict"], document["profile"]
    tier, required = verdict["tier"], verdict["required_tier"]
    status = Status(verdict["status"])
    if tier:
        info = document["tiers"][str(tier)]
        what = (
            "Specimen: simulated evidence" if document["bundle"]["origin"] == "simulated" else "The evidence"
        )
        claim = (
            f"{what} meets the Tier {tier} ({info['name']}) evidence thresholds of profile {profile['id']}"
        )
        claim += f", {profile['reading']} reading."
    else:
        claim = f"The evidence shows no tier of profile {profile['id']}."
    return {
        "claim": claim,
        "status": judged(status),
        "asked": f"Tier {required}, the tier asked for: {WORDS[status]}",
        "verdict_class": status.value,
    }


def _identity(material: Material, signed: Issued | None) -> tuple[Entry, ...]:
    document = material.document
    bundle = document["bundle"]
    sealed = "sealed" if bundle["sealed"] else "NOT sealed"
    scope = {entry.label: entry.value for entry in register.scope(material)}
    validity = signed.predicate.validity if signed else None
    until = f"{validity.not_after:%Y-%m-%d %H:%M} UTC{validity.not_after:%z}" if validity else None
    return (
        Entry("Agent", f"{document['agent']['name']} {document['agent']['version']}"),
        Entry("Agent identity", document["agent"]["digest"]),
        Entry("Evidence", f"{bundle['digest']} ({bundle['origin']}, {sealed})"),
        Entry("Profile", f"{document['profile']['id']}, {document['profile']['digest']}"),
        Entry("Assessment", canonical.digest(material.data)),
        Entry("Passport", signed.id if signed else "none: nothing has been signed"),
        Entry("Issuer named in the passport", signed.predicate.issuer.name if signed else None),
        Entry("Evidence window", scope["Evidence window"]),
        Entry(
            "Valid until",
            until.replace("UTC+0000", "UTC") if until else "no validity: a report is not a passport",
        ),
        Entry(
            "Ended sooner by", "any change of a component; success in operation below the tier's thresholds"
        ),
        Entry("Owner", None),
        Entry("Reviewer", "none recorded"),
    )


def _counts(document: dict[str, Any]) -> tuple[Entry, ...]:
    bundle = document["bundle"]
    domains = bundle["domains"]
    return (
        Entry("records", f"{bundle['records']:,}"),
        Entry("nominal", f"{bundle['nominal_runs']:,}"),
        Entry("under faults", f"{bundle['fault_runs']:,}"),
        Entry("harness errors", f"{bundle['harness_errors']:,}"),
        Entry("domain" if len(domains) == 1 else "domains", f"{len(domains):,}"),
    )


def _bad_news(document: dict[str, Any]) -> Iterator[str]:
    if document["bundle"]["records"] == 0:
        yield "The bundle holds no records."
    top = len(document["tiers"])
    tier = document["verdict"]["tier"] + 1
    if tier <= top:
        name = document["tiers"][str(tier)]["name"]
        yield f"Tier {tier} ({name}) is not shown."
        for status, names in results.by_status(document, tier).items():
            yield f"{_LOST[status]} {words.listed(names)}."
    for message in register.serious(document):
        yield message[:1].upper() + message[1:] + "."


def _good_news(document: dict[str, Any]) -> Iterator[str]:
    tier = document["verdict"]["tier"]
    wanted = (Status.MET,)
    if tier:
        names = results.by_status(document, tier, wanted).get(Status.MET, [])
        yield f"All criteria that Tier {tier} specifies are met: {words.listed(names)}."
    elif names := results.by_status(document, 1, wanted).get(Status.MET, []):
        yield f"Met at Tier 1: {words.listed(names)}; a tier asks for all of its criteria at once."


def _limits(document: dict[str, Any]) -> tuple[str, ...]:
    return (
        "It speaks of the recorded runs. Whether they resemble operation is an assumption (section 9).",
        f"{_decides(document)} {_bounded(document)}",
        "It shows one point in time; a changed component ends it.",
        "The thresholds are those of the profile. Meeting them is evidence, not a certificate of safety.",
        "The evidence was read, and every figure recomputed, for this report.",
        "No reviewer is recorded and no hazards were supplied.",
    )


def _decides(document: dict[str, Any]) -> str:
    if document["profile"]["reading"] == "bounded":
        return "Verdicts compare bounds with thresholds, at the confidence of each tier."
    return "Verdicts compare point estimates with thresholds."


def _bounded(document: dict[str, Any]) -> str:
    tier = document["verdict"]["bounded"]["tier"]
    return f"Under the bounded reading the evidence shows {f'Tier {tier}' if tier else 'no tier'}."


def _changes(document: dict[str, Any]) -> Iterator[str]:
    rows = results.binding(document)
    if rows:
        tier = document["verdict"]["tier"] + 1
        names = words.listed(results.name(row) for row in rows)
        yield f"Upwards, to Tier {tier}: {names}; the gap table in section 5 says what would settle each."
    if slim := results.narrowest(document):
        held = document["verdict"]["tier"]
        yield f"Downwards: the narrowest margins at Tier {held} are {words.listed(slim)}."
    yield "Any changed component of the agent, or evidence that contradicts this evidence."


def _tier(document: dict[str, Any], number: int) -> Tier:
    roles = {document["verdict"]["tier"]: "attained", document["verdict"]["tier"] + 1: "the next tier"}
    heading = f"Tier {number}, {roles.get(number, 'the tier asked for')}"
    return Tier(heading=heading, results=results.tier_table(document, number))


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
