"""What people said about the use: purpose, domains, hazards, monitoring, review and decision, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.report import words
from certkit.report.argument.claim import approved
from certkit.report.svg import state_mark
from certkit.report.table import Column, Entry, Table, table

if TYPE_CHECKING:
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case
    from certkit.report.argument.hazards import Measured


def use(case: Case) -> tuple[Entry, ...]:
    """Return purpose, users, oversight, exclusions and operating domain."""
    given, domain, risk = case.context.use, case.context.operating_domain, case.context.risk
    oversight = given.oversight.replace("_", " ") if given and given.oversight else None
    return (
        Entry("Purpose", given.purpose if given else None),
        Entry("Users", given.users if given else None),
        Entry("Human oversight", oversight),
        Entry("Not to be used for", words.listed(given.exclusions) if given and given.exclusions else None),
        Entry("Operating domain", domain.description if domain else None),
        Entry("Accepted risk", risk.criterion if risk else None),
    )


def domains(case: Case) -> Table:
    """Return each domain of the use with whether it was tested, and the tested ones that no use names."""
    stated = case.context.operating_domain
    wanted = set(stated.domains or () if stated else ())
    body = (
        (
            name,
            "yes" if name in wanted else "not stated",
            "tested under faults" if name in case.tested else "not tested under faults",
        )
        for name in sorted(wanted | case.tested)
    )
    columns = (Column("domain", 50), Column("of this use", 20), Column("evidence", 30))
    return table("Domains of the use against domains with evidence", columns, body)


def people(case: Case) -> Table:
    """Return the people who are named, and how they relate to the developer."""
    body = (
        (person.id, person.name, person.role, person.organisation, person.relation)
        for person in case.context.people or ()
    )
    columns = (
        Column("id", 16),
        Column("name", 24),
        Column("role", 20),
        Column("organisation", 22),
        Column("relation", 18),
    )
    return table("People", columns, body)


_HAZARDS: Final = (
    Column("hazard", 17),
    Column("harm", 16),
    Column("severity", 10),
    Column("rests on", 14),
    Column("failed runs", 13),
    Column("at most", 8, "number"),
    Column("mitigations", 12),
    Column("state", 10),
)


def hazards(case: Case, argument: Argument) -> Table:
    """Return every hazard with what was measured in its conditions and domains, and its state."""
    mitigations = {item.id: item for item in case.context.mitigations or ()}
    body = (
        (
            f"{hazard.id}: {hazard.title or 'not named'}",
            hazard.harm,
            hazard.severity,
            words.listed(hazard.criteria) if hazard.criteria else "no criterion",
            failures(case.measured[hazard.id]),
            f"{100 * hazard.tolerable.at_most:g}\u00a0%" if hazard.tolerable else None,
            "; ".join(mitigations[name].what or name for name in hazard.mitigations or ()) or None,
            state_mark(argument.states[f"G2.{hazard.id}"]),
        )
        for hazard in case.context.hazards or ()
    )
    return table("Hazards of this use", _HAZARDS, body)


def failures(measured: Measured) -> str:
    """Return failures of runs with the bound of their share."""
    bound = "no bound" if measured.bound is None else f"≤\u00a0{100 * measured.bound:.2g}\u00a0%"
    return f"{measured.failures:,} of {measured.runs:,}; {bound}"


def monitoring(case: Case) -> Table:
    """Return what is watched in operation, its limit, and what is done beyond it."""
    body = (
        (item.claim or item.id, item.measure, item.limit, item.window, item.owner, item.action)
        for item in case.context.monitoring or ()
    )
    columns = (
        Column("about", 10),
        Column("measure", 24),
        Column("limit", 18),
        Column("window", 12),
        Column("owner", 12),
        Column("action beyond it", 24),
    )
    return table("Indicators", columns, body)


def review(case: Case) -> Table:
    """Return who looked at the argument, at what, and what they said."""
    body = (
        (
            item.person,
            case.context.by_id[item.person].relation,
            item.scope,
            item.date,
            "; ".join(
                f"{comment.node}: {comment.text or 'no text'}"
                f" ({'resolved' if comment.resolved else 'NOT resolved'})"
                for comment in item.comments or ()
            )
            or "none",
        )
        for item in case.context.reviewers or ()
    )
    columns = (
        Column("reviewer", 14),
        Column("relation", 14),
        Column("scope", 24),
        Column("date", 12),
        Column("comments", 36),
    )
    return table("Reviewers", columns, body)


def decision(case: Case) -> tuple[Entry, ...]:
    """Return what the owner decided, and whether an approval is in force."""
    made = case.context.decision
    if made is None or made.outcome is None:
        return (Entry("Decision", None),)
    return (
        Entry("Decision", made.outcome.replace("_", " ")),
        Entry("By", made.by),
        Entry("Date", made.date),
        Entry("Until", made.until),
        Entry("Conditions", words.listed(made.conditions) if made.conditions else None),
        Entry("Residual risk", made.residual_risk),
        Entry("In force", "yes" if approved(case) else "no"),
    )


_CROSSWALK: Final = (
    (
        "EU AI Act, Annex IV",
        "2(g) tests and metrics, 4",
        "1, 2(e), 2(h), 3, 5, 9",
        "2(a–d, f), 6–8",
    ),
    ("UL 4600", "§5 argument, §16 indicators", "§6, 7, 12, 17", "§8–11, 13–15"),
    ("AMLAS", "stage 5, verification", "stages 1, 2, 6", "stages 3 (data), 4 (learning)"),
    (
        "NIST AI RMF",
        "Measure 2.3, 2.5, 2.13",
        "Map 1.1, 5.1; Measure 1.3, 2.4, 2.6, 2.7; Manage 1.1, 1.4, 4.1",
        "Govern; Measure 2.8–2.12",
    ),
)


def crosswalk() -> Table:
    """Return where such evidence stands for readers of four frameworks; never that a clause is met."""
    columns = (
        Column("framework", 20),
        Column("such evidence stands here", 26),
        Column("in part", 28),
        Column("not covered", 26),
    )
    return table("Crosswalk", columns, _CROSSWALK)
