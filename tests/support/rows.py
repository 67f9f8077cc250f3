"""Summaries from runs written one by one, for comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from certkit.record.record import Split
from tests.support.build import cell, clusters, outcomes, summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.summary.summary import Summary


class Rows(Struct, frozen=True, kw_only=True):
    """Runs of one domain, condition, cluster and task: y of n succeeded."""

    domain: str = "bank"
    condition: str = "tool_failure"
    cluster: int = 0
    task: int = 0
    y: int
    n: int


def evidence(rows: Iterable[Rows], *, split: Split = Split.STANDARD, **fields: int) -> Summary:
    """A summary of the rows, in their order; `fields` are further tally fields of every row and cell."""
    listed = list(rows)
    names = sorted({(row.domain, row.condition) for row in listed})
    cells = [
        cell(
            domain,
            condition,
            outcomes(
                sum(row.n for row in listed if (row.domain, row.condition) == (domain, condition)),
                sum(row.y for row in listed if (row.domain, row.condition) == (domain, condition)),
                **fields,
            ),
            split=split,
        )
        for domain, condition in names
    ]
    table = clusters(
        (
            names.index((row.domain, row.condition)),
            row.cluster,
            row.task,
            {"runs": row.n, "success": row.y, "failure": row.n - row.y},
        )
        for row in listed
    )
    return summary(cells, rows=table)


def tasks(
    successes: Iterable[int],
    n: int = 4,
    *,
    first: int = 0,
    domain: str = "bank",
    condition: str = "tool_failure",
) -> list[Rows]:
    """One task after another, each a cluster of its own, with `n` runs each."""
    return [
        Rows(domain=domain, condition=condition, cluster=first + place, task=first + place, y=y, n=n)
        for place, y in enumerate(successes)
    ]
