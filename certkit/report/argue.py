"""The argument as tables: nodes, challenges, assumptions; and the arithmetic of SIL guidance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from certkit.report.argument.build import ASSUMPTIONS
from certkit.report.argument.graph import Kind
from certkit.report.svg import judged
from certkit.report.table import Table, table

if TYPE_CHECKING:
    from certkit.evidence.context import Context
    from certkit.report.argument.build import Argument


def assumptions(context: Context) -> Table:
    """Return the assumptions with who owns each and why; those of the use stand behind the report's own."""
    given = {item.id: item for item in context.assumptions or ()}
    texts: dict[str, tuple[str | None, str | None]] = {
        f"A-{number}": pair for number, pair in enumerate(ASSUMPTIONS, start=1)
    }
    texts |= {name: (item.text, item.falsified_by) for name, item in given.items() if item.text}
    body = (
        (
            name,
            text,
            (given[name].falsified_by if name in given else None) or usual,
            given[name].owner if name in given else None,
            given[name].rationale if name in given else None,
        )
        for name, (text, usual) in texts.items()
    )
    widths = {"id": 7, "assumption": 28, "how it could be false": 31, "owner": 11, "rationale": 23}
    return table("Assumptions", widths, body)


def challenges(argument: Argument, *, stale: bool = False) -> Table:
    """Return every challenge with its answer, sustained and open ones first."""
    body = (
        (
            Markup('<span id="ch-{0}">{0}</span>').format(item.code),
            item.text,
            item.target,
            f"{item.state.value} ({item.kind.value})",
            item.said or "–",
        )
        for item in argument.challenges
        if item.stale is stale
    )
    widths = {
        "challenge": 20,
        "what it says": 41,
        "goal": 8,
        "state": 13,
        "answer": 18,
    }
    return table("Stale answers: given for other evidence" if stale else "Challenges", widths, body)


def nodes(argument: Argument) -> Table:
    """Return the goals and strategies with what each rests on; the attached argument has every node."""
    graph = argument.graph
    chosen = [node for node in graph.nodes if node.kind in {Kind.GOAL, Kind.STRATEGY} and node.state]
    body = (
        (
            Markup('<span id="g-{0}">{0}</span>').format(node.id),
            judged(node.state),
            node.text,
            ", ".join(name for name in (*graph.below(node.id), *graph.beside(node.id)) if "Sn-" not in name)
            or ("evidence" if graph.below(node.id) else "–"),
            ", ".join(name.removeprefix("ch-") for name in graph.against(node.id)) or "–",
        )
        for node in chosen
    )
    widths = {"node": 20, "state": 13, "text": 35, "rests on": 16, "challenged by": 16}
    return table("Register of nodes", widths, body)


def levels(document: dict[str, Any]) -> Table:
    """Return the source's SIL and ASIL guidance with the arithmetic beside it, empty without guidance."""
    missing = "hazard and risk analysis, target failure measure, systematic capability, architecture"
    body = (
        (f"Tier\u00a0{number}", given.get("sil"), given.get("asil"), given.get("arithmetic"), missing)
        for number, tier in sorted(document["tiers"].items())
        if (given := tier["guidance"])
    )
    widths = {
        "tier": 7,
        "source's SIL text": 13,
        "source's ASIL text": 13,
        "arithmetic": 36,
        "not determined here": 31,
    }
    return table("Guidance of the source against its own thresholds", widths, body)
