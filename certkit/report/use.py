"""What people said about the use: purpose, domains, hazards, monitoring, review and decision, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.report import words
from certkit.report.svg import Bar, bars, judged
from certkit.report.table import Table, table

if TYPE_CHECKING:
    from markupsafe import Markup

    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case
    from certkit.report.argument.hazards import Measured


def domains(case: Case) -> Table:
    """Return each domain of the use with whether it was tested, and the tested ones that no use names."""
    body = (
        (
            name,
            "yes" if name in case.wanted else "not stated",
            "tested under faults" if name in case.tested else "not tested under faults",
        )
        for name in sorted(case.wanted | case.tested)
    )
    widths = {"domain": 50, "of this use": 20, "evidence": 30}
    return table("Domains of the use against domains with evidence", widths, body)


def hazards(case: Case, argument: Argument) -> Table:
    """Return every hazard with what was measured in its conditions and domains, and its state."""
    mitigations = {item.id: item for item in case.context.mitigations or ()}
    body = (
        (
            f"{hazard.id}: {hazard.title or 'not named'}",
            hazard.harm,
            hazard.severity,
            words.plain(words.listed(hazard.criteria)) if hazard.criteria else "no criterion",
            _failures(case.measured[hazard.id]),
            f"{100 * hazard.tolerable.at_most:g}\u00a0%" if hazard.tolerable else None,
            "; ".join(mitigations[name].what or name for name in hazard.mitigations or ()) or None,
            judged(argument.states[f"G2.{hazard.id}"]),
        )
        for hazard in case.context.hazards or ()
    )
    widths = {
        "hazard": 17,
        "harm": 16,
        "severity": 10,
        "rests on": 14,
        "failed runs": 13,
        "at most": 8,
        "mitigations": 12,
        "state": 10,
    }
    return table("Hazards of this use", widths, body, numbers=("at most",))


def _failures(measured: Measured) -> str:
    bound = "no bound" if measured.bound is None else f"≤\u00a0{100 * measured.bound:.2g}\u00a0%"
    return f"{measured.failures:,} of {measured.runs:,}; {bound}"


MOST_BARS = 12
"""Hazards that the figure shows."""


def hazard_bars(case: Case, argument: Argument) -> Markup | None:
    """Return each hazard's failures with their bound against what is tolerable; None without a hazard."""
    drawn = [
        Bar(
            label=hazard.id[:24],
            share=measured.failures / measured.runs if measured.runs else None,
            bound=measured.bound,
            tolerable=hazard.tolerable.at_most if hazard.tolerable else None,
            state=argument.states[f"G2.{hazard.id}"],
        )
        for hazard in (case.context.hazards or ())[:MOST_BARS]
        for measured in (case.measured[hazard.id],)
    ]
    said = (f"{hazard.id}: {_failures(case.measured[hazard.id])}" for hazard in case.context.hazards or ())
    return bars(drawn, title=f"Failures of each hazard: {'; '.join(said)}") if drawn else None


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
    widths = {"reviewer": 14, "relation": 14, "scope": 24, "date": 12, "comments": 36}
    return table("Reviewers", widths, body)


def crosswalk() -> Table:
    """Return where such evidence stands for readers of four frameworks; never that a clause is met."""
    body = (
        ("EU AI Act, Annex IV", "2(g) tests and metrics, 4", "1, 2(e), 2(h), 3, 5, 9", "2(a–d, f), 6–8"),
        ("UL 4600", "§5 argument, §16 indicators", "§6, 7, 12, 17", "§8–11, 13–15"),
        ("AMLAS", "stage 5, verification", "stages 1, 2, 6", "stages 3 (data), 4 (learning)"),
        (
            "NIST AI RMF",
            "Measure 2.3, 2.5, 2.13",
            "Map 1.1, 5.1; Measure 1.3, 2.4, 2.6, 2.7; Manage 1.1, 1.4, 4.1",
            "Govern; Measure 2.8–2.12",
        ),
    )
    widths = {"framework": 20, "such evidence stands here": 26, "in part": 28, "not covered": 26}
    return table("Crosswalk", widths, body)
