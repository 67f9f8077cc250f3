"""Page 1, the answer for whoever has five minutes: what was seen, what it amounts to, what speaks against it.

No metric's id stands on this page; everything is built by rule from the assessment and the argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup  # noqa: TC002 - msgspec resolves the annotation at run time
from msgspec import Struct

from certkit import wording
from certkit.assessment import Status, Unit
from certkit.report import results, words
from certkit.report.argument.challenges import MOST_DAYS, Standing
from certkit.report.argument.claim import approved
from certkit.report.argument.graph import ROOT, State
from certkit.report.svg import CONTESTED, judged
from certkit.report.table import Entry
from certkit.report.words import capital

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case
    from certkit.report.issued import Issued

MOST_AGAINST = 5
"""Lines of what speaks against the claim that fit the page."""
_DIGITS = len("sha256:") + 16


class Box(Struct, frozen=True, kw_only=True):
    """One of the four boxes: its head, its answer, and a line below."""

    head: str
    answer: Markup | str
    line: str
    style: str


def missing(case: Case) -> tuple[str, ...]:
    """Return what a safety case needs and nobody provided."""
    context = case.context
    given = {
        "an owner": context.owner,
        "a purpose": context.use and context.use.purpose,
        "an operating domain": context.operating_domain
        and (context.operating_domain.description or context.operating_domain.domains),
        "a hazard": context.hazards,
        "a reviewer": context.reviewers,
    }
    return tuple(name for name, said in given.items() if not said)


def kind(case: Case) -> str:
    """Return what the document is called: a safety case only where people said what the use is."""
    lacking = missing(case)
    if not lacking:
        return "Safety case"
    be = "is" if len(lacking) == 1 else "are"
    return f"Evidence report. No safety case yet: {words.listed(lacking)} {be} missing"


def paragraph(case: Case) -> str:
    """Return what was seen and which tier it meets, in at most 60 words."""
    document = case.document
    metrics, agent = document["metrics"], document["agent"]
    parts = [
        f"{_rate(metrics[name])} of {metrics[name]['n']:,} {what}"
        for name, what in (("c_nom", "normal runs"), ("r_op", "runs under faults"))
        if metrics[name]["n"] and metrics[name]["value"] is not None
    ]
    name = f"{agent['name']} {agent['version']}"
    seen = f"{name} succeeded in {' and in '.join(parts)}" if parts else f"No run of {name} was recorded"
    least = metrics["domain_min"]
    if least["value"] is not None and least.get("domain"):
        seen += f" (weakest domain: {least['domain']}, {_rate(least)})"
    absent = [
        f"No {what} was recorded."
        for name, what in (("c_nom", "normal run"), ("r_op", "run under a fault"))
        if parts and not metrics[name]["n"]
    ]
    return " ".join([f"{seen}.", *absent, *_tiers(case)])


def _rate(metric: dict[str, Any]) -> str:
    return words.value(metric["value"], Unit.FRACTION)


def _tiers(case: Case) -> Iterator[str]:
    document, tier = case.document, case.tier
    status = document["tiers"][str(tier)]["status"]
    contested = sum(
        item["state"] == "open" and item["severity"] == "serious"
        for item in document["verdict"]["challenges"]
    )
    if status == Status.MET:
        yield f"That meets every threshold of Tier {tier}, the tier that was asked for."
    elif status == CONTESTED:
        raised = words.plural(contested, "serious challenge")
        yield f"Every threshold of Tier {tier}, which was asked for, is met, but {raised} contest that."
    else:
        yield f"That does not show Tier {tier}, the tier that was asked for: {_open(document, tier)}."
    if status in {Status.MET, CONTESTED} and str(tier + 1) in document["tiers"]:
        beyond = _open(document, tier + 1)
        yield f"It does not show Tier {tier + 1}: {beyond}." if beyond else f"It meets Tier {tier + 1} too."


def _open(document: dict[str, Any], tier: int) -> str:
    """Return how many criteria of a tier fail, cannot be judged, or have no evidence."""
    groups = results.by_status(document, tier)
    asked = [
        row
        for row in results.rows(document, tier)
        if results.deciding(row, document["profile"]["reading"]) is not Status.NOT_APPLICABLE
    ]
    said = {
        Status.NOT_MET: "fail",
        Status.INSUFFICIENT: "cannot be judged",
        Status.NOT_TESTED: "have no evidence",
    }
    parts = [f"{len(names)} {said[status]}" for status, names in groups.items()]
    return f"of {len(asked)} criteria {words.listed(parts)}" if parts else ""


def readings(case: Case) -> tuple[str, ...]:
    """Return the tier by each reading, and every serious challenge with its code, as every screen says it."""
    document = case.document
    verdict = document["verdict"]
    told = {item["code"]: item["message"] for item in document["findings"]}
    serious = (
        wording.challenge(item["code"], item["state"], told[item["code"]], item["answered_by"])
        for item in verdict["challenges"]
        if item["severity"] == "serious"
    )
    table, bounded = verdict["table"]["tier"], verdict["bounded"]["tier"]
    return (wording.readings(table, bounded, decides=document["profile"]["reading"]), *serious)


def boxes(case: Case, argument: Argument) -> tuple[Box, ...]:
    """Return the four boxes: evidence, claim about the use, challenges, decision."""
    status = case.document["tiers"][str(case.tier)]["status"]
    supported = "Supported" if argument.supported else "Not supported"
    counts = {standing: argument.count(standing) for standing in Standing}
    stale = sum(item.stale for item in argument.challenges)
    decision = case.context.decision
    decided = "Nobody has decided"
    line = "an owner's decision is not recorded"
    if decision is not None and decision.outcome:
        decided = capital(decision.outcome.replace("_", " "))
        line = f"by {decision.by or 'nobody'}, until {decision.until or 'no day stated'}" + (
            "" if approved(case) else "; not in force for this evidence"
        )
    return (
        Box(
            head="Evidence",
            answer=judged(status),
            line=f"Tier {case.tier}, the tier that was asked for",
            style=status,
        ),
        Box(
            head="Claim about use",
            answer=supported,
            line=argument.because[0] if argument.because else "every goal is supported or owned",
            style="met" if argument.supported else "not_met",
        ),
        Box(
            head="Challenges",
            answer=f"{counts[Standing.OPEN]} open",
            line=f"{counts[Standing.SUSTAINED]} sustained, {counts[Standing.ACCEPTED]} accepted,"
            f" {counts[Standing.ANSWERED]} answered" + (f", {stale} STALE" if stale else ""),
            style="met" if not counts[Standing.OPEN] + counts[Standing.SUSTAINED] else "insufficient",
        ),
        Box(
            head="Decision",
            answer=decided,
            line=line,
            style="met" if approved(case) else "not_tested",
        ),
    )


def claim(case: Case, argument: Argument) -> str:
    """Return the sentence about the use that the whole argument amounts to."""
    if not argument.supported:
        return f"Not supported: {argument.graph.by_id[ROOT].text}"
    goals = sum(node.kind == "goal" for node in argument.graph.nodes)
    asserted = sum(state is State.ASSERTED for state in argument.states.values())
    accepted = [item for item in argument.challenges if item.state is Standing.ACCEPTED]
    until = min((item.answer.until for item in accepted if item.answer and item.answer.until), default=None)
    doubts = (
        f", {words.plural(len(accepted), 'doubt')} accepted by {case.context.owner} until {until}"
        if accepted
        else ""
    )
    return f"Supported: {words.plural(goals, 'goal')}, {words.plural(asserted, 'assertion')}{doubts}."


def against(case: Case, argument: Argument) -> tuple[str, ...]:
    """Return what speaks against the claim, gravest first, at most `MOST_AGAINST` lines."""
    graph = argument.graph.by_id
    lines = [
        f"{capital(state.value)}: {graph[name].text}"
        for state in (State.REFUTED, State.UNDEVELOPED)
        for name in argument.states
        if argument.states[name] is state and name in {"G2", "G3", "G4", "G5", "G6"}
    ]
    lines += [item.text for item in argument.challenges if item.state in {Standing.SUSTAINED, Standing.OPEN}]
    failed = results.by_status(case.document, case.tier, (Status.NOT_MET,)).get(Status.NOT_MET, [])
    if failed:
        lines.insert(0, f"Tier {case.tier} fails on {words.listed(failed)}.")
    return tuple(lines[:MOST_AGAINST])


def changes(case: Case) -> tuple[str, ...]:
    """Return what would change the answer: the narrowest margins, and what ends it."""
    lines = []
    if slim := results.narrowest(case.document):
        lines.append(
            f"The narrowest margins at Tier {case.document['verdict']['tier']}: {words.listed(slim)}."
        )
    lines.append(
        "A changed component, an ended passport, drift, an indicator beyond its limit, an acceptance that"
        f" ended, or a new domain of use asks for another test; so do {MOST_DAYS} days."
    )
    return tuple(lines)


def identity(case: Case, signed: Issued | None) -> tuple[Entry, ...]:
    """Return who and what this is about in six lines; digests by their first 16 digits."""
    document, context = case.document, case.context
    people = context.by_id
    owner = people[context.owner].name or context.owner if context.owner else None
    reviewers = [
        f"{people[item.person].name or item.person} ({people[item.person].relation or 'relation not stated'})"
        for item in context.reviewers or ()
    ]
    age = f", {(case.today - case.last_run).days:,} days old" if case.today and case.last_run else ""
    validity = signed.predicate.validity if signed else None
    bundle, agent = document["bundle"], document["agent"]
    sealed = "sealed" if bundle["sealed"] else "NOT sealed"
    return (
        Entry("Agent", f"{agent['name']} {agent['version']}, {agent['digest'][:_DIGITS]}…"),
        Entry(
            "Evidence",
            f"{bundle['digest'][:_DIGITS]}…, {bundle['origin']}, {sealed}; last run"
            f" {case.last_run or 'not dated'}{age}",
        ),
        Entry("Tier table", f"{document['profile']['id']}, {document['profile']['reading']} reading"),
        Entry("Owner", owner),
        Entry("Reviewers", words.listed(reviewers) if reviewers else None),
        Entry(
            "Valid until",
            f"{validity.not_after:%Y-%m-%d %H:%M} UTC"
            if validity
            else "no validity: a report is not a passport",
        ),
    )
