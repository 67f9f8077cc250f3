"""The argument as tables: nodes, challenges, assumptions; limits of the sources, and SIL arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from certkit.report.svg import state_mark
from certkit.report.table import Column, Table, table

if TYPE_CHECKING:
    from certkit.evidence.context import Context
    from certkit.report.argument.build import Argument
    from certkit.report.argument.challenges import Challenge

ASSUMPTIONS: Final = (
    (
        "The recorded tasks resemble those of the intended use.",
        "Tasks were chosen for convenience, or operation has drifted from them.",
    ),
    (
        "An outcome recorded as a success is a success.",
        "A lenient check, a judge that errs, or a success rule that ignores a side effect.",
    ),
    (
        "The agent assessed is the agent deployed.",
        "A model alias, prompt, tool or memory changed after the runs; only digests pin a component.",
    ),
    (
        "Runs say something new each time.",
        "Repeats of one task at temperature 0 stand or fall together, and look like many runs.",
    ),
    (
        "Injected faults took hold and resemble real ones.",
        "A fault that never reached the agent tests nothing; real faults have other shapes and other shares.",
    ),
    (
        "All runs that were made are in the bundle.",
        "Failed runs, or whole attempts, were left out before the bundle was sealed.",
    ),
    (
        "A failure of the test rig is not the agent's.",
        "Harness errors count against the agent here; a rig that hides failures would not be seen.",
    ),
)
"""What the verdict takes for granted, and how each could be false."""

SOURCE_LIMITS: Final = (
    (
        "The fault types stand for mechanisms, not for how often faults occur in any deployment, and no "
        "hazard analysis ties the scenarios to real hazards ([26] §12.2)."
    ),
    (
        "All of the source's evaluations were made at one point in time; it asks for re-evaluation "
        "every quarter ([26] §12.1, §12.4)."
    ),
    "The CSI thresholds are not calibrated against production data but reference points ([26] §12.1, §12.6).",
    "IRS rests on observable proxies; a trace need not reflect the computation behind it ([26] §12.3).",
    "Human oversight in the source's explanation layer was simulated, not measured with people ([26] §12.1).",
    (
        "The SIL and ASIL columns are offered as guidance on evidence, and were not validated against "
        "incidents ([26] §12.2)."
    ),
)
"""Limits that the source states of its own method, in our words."""

DISCREPANCIES: Final = (
    (
        "[26] §3.1 prints a posterior of 0.89 for 820 successes in 1,000 at τ = 0.80; the formula gives "
        "0.9416. This report uses the formula."
    ),
    (
        "[26] eq. 8 as printed makes the trend term of CSI 0 or 1 for any slope above 10^−6, so that an "
        "agent whose failures come at random is often given a CSI of 0."
    ),
    (
        "[26] Table 1 puts SIL 2–3 beside a success rate above 95 %; the arithmetic of the SIL section gives "
        "the SIL 1 band at best."
    ),
    (
        "[25] asks for a TI of at least 0.90 where its traceability score runs from 1 to 5; it is read as "
        "the attested transparency index, which runs from 0 to 1."
    ),
)
"""Where the source papers contradict themselves, as far as this report is concerned."""


def assumptions(context: Context) -> Table:
    """Return the assumptions with who owns each and why; those of the use stand behind the report's own."""
    given = {item.id: item for item in context.assumptions or ()}
    texts = {f"A-{number}": pair for number, pair in enumerate(ASSUMPTIONS, start=1)}
    added = {name: (item.text, item.falsified_by) for name, item in given.items() if item.text}
    body = (
        (
            name,
            text,
            (given[name].falsified_by if name in given else None) or usual,
            given[name].owner if name in given else None,
            given[name].rationale if name in given else None,
        )
        for name, (text, usual) in (texts | added).items()
    )
    columns = (
        Column("id", 7),
        Column("assumption", 28),
        Column("how it could be false", 31),
        Column("owner", 11),
        Column("rationale", 23),
    )
    return table("Assumptions", columns, body)


def challenges(argument: Argument, *, stale: bool = False) -> Table:
    """Return every challenge, sustained and open ones first, with what would close it and its answer."""
    body = (
        (
            Markup('<span id="ch-{0}">{0}</span>').format(item.code),
            item.text,
            item.target,
            f"{item.state.value} ({item.kind.value})",
            _answered(item) or item.closed_by,
        )
        for item in argument.challenges
        if item.stale is stale
    )
    columns = (
        Column("challenge", 18),
        Column("what it says", 38),
        Column("goal", 8),
        Column("state", 12),
        Column("answer, or what would close it", 24),
    )
    return table("Stale answers: given for other evidence" if stale else "Challenges", columns, body)


def _answered(item: Challenge) -> str | None:
    answer = item.answer
    if answer is None or answer.state is None:
        return None
    agreed = f", agreed by {answer.agreed_by}" if answer.agreed_by else ""
    until = f", until {answer.until}" if answer.until else ""
    awaits = f" Does not count: {item.awaits}." if item.awaits else ""
    return (
        f"{answer.state} by {answer.by or 'nobody'}{agreed}{until}: {answer.reason or 'no reason'}.{awaits}"
    )


def nodes(argument: Argument) -> Table:
    """Return the register of nodes, solutions left to the attached argument, which has them all."""
    graph = argument.graph
    body = (
        (
            Markup('<span id="g-{0}">{0}</span>').format(node.id),
            state_mark(argument.states[node.id]),
            node.text,
            ", ".join((*graph.below(node.id), *graph.beside(node.id))) or "–",
            ", ".join(name.removeprefix("ch-") for name in graph.against(node.id)) or "–",
        )
        for node in graph.nodes
        if node.id in argument.states and not node.id.startswith("Sn-")
    )
    columns = (
        Column("node", 13),
        Column("state", 13),
        Column("text", 42),
        Column("rests on", 16),
        Column("challenged by", 16),
    )
    return table("Register of nodes", columns, body)


def levels(document: dict[str, Any]) -> Table:
    """Return the source's SIL and ASIL guidance with the arithmetic beside it, empty without guidance."""
    body = [
        (
            f"Tier\u00a0{number}",
            given.get("sil"),
            given.get("asil"),
            given.get("arithmetic"),
            "hazard and risk analysis, target failure measure, systematic capability, architecture",
        )
        for number, tier in sorted(document["tiers"].items())
        if (given := tier["guidance"])
    ]
    columns = (
        Column("tier", 7),
        Column("source's SIL text", 13),
        Column("source's ASIL text", 13),
        Column("arithmetic", 36),
        Column("not determined here", 31),
    )
    return table("Guidance of the source against its own thresholds", columns, body)
