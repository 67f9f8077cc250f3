"""What the results show at a glance, and where runs failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment import Status, Unit
from certkit.report import words
from certkit.report.results import by_status, deciding, rows, title
from certkit.report.table import Column, Table, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report.results import Document

MOST_CELLS: Final = 10


def finding(document: Document, tier: int) -> str:
    """Return what the figure of a tier's criteria shows, in one sentence."""
    asked = [
        row
        for row in rows(document, tier)
        if deciding(row, document["profile"]["reading"]) is not Status.NOT_APPLICABLE
    ]
    met = len(by_status(document, tier, (Status.MET,)).get(Status.MET, []))
    if met < len(asked):
        return f"{met} of {len(asked)} criteria of Tier {tier} are met"
    slim = min(
        (row for row in asked if row["margin"] is not None),
        key=lambda row: row["margin"] / (abs(row["threshold"]) or 1.0),
        default=None,
    )
    room = f"; {title(slim)} has the least room" if slim else ""
    return f"All {len(asked)} criteria of Tier {tier} are met{room}"


def weakest(document: Document) -> Table:
    """Return the domains and conditions that failed most often, at most `MOST_CELLS`, worst first."""
    cells = [cell for cell in document["breakdown"] if cell["runs"] and cell["success"] < cell["runs"]]
    cells.sort(key=lambda cell: (cell["success"] / cell["runs"], -cell["runs"]))
    body = (
        (
            cell["domain"],
            cell["condition"].replace("_", " "),
            f"{cell['runs'] - cell['success']:,}",
            f"{cell['runs']:,}",
            words.value(cell["success"] / cell["runs"], Unit.FRACTION),
        )
        for cell in cells[:MOST_CELLS]
    )
    columns = (
        Column("domain", 34),
        Column("condition", 26),
        Column("failed", 12, "number"),
        Column("runs", 12, "number"),
        Column("success", 16, "number"),
    )
    return table("Where runs failed most often", columns, body)


def episodes(document: Document) -> Iterator[str]:
    """Yield other known ways to fail: under cascades, with violations, by stopping short."""
    cascade = document["metrics"].get("cascade_penalty")
    if cascade and cascade["value"] is not None:
        fall = words.value(cascade["value"], Unit.PP)
        yield f"Under a cascade of faults success is {fall} below that under single faults."
    told = {"success-with-violations", "stopped-short", "harness-errors", "success-with-attack"}
    for item in document["findings"]:
        if item["code"] in told:
            yield f"{item['message'][:1].upper()}{item['message'][1:]}."
