"""The summary as the metrics see it: the standard split's tallies, nominal and fault runs apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit.evidence.records.record import Split
from certkit.evidence.summary.summary import Tally, add

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from certkit.evidence.bundle.manifest import Manifest
    from certkit.evidence.summary.summary import Cell, Summary

_NOTHING: Final = Tally()


class View(Struct, frozen=True, kw_only=True, eq=False):
    """What every metric starts from.

    `domains` holds each domain's nominal and fault runs, by name; `tau` the aggregate threshold of each
    tier that has one.
    """

    summary: Summary
    manifest: Manifest
    cells: tuple[Cell, ...]
    total: Tally
    nominal: Tally
    fault: Tally
    domains: dict[str, tuple[Tally, Tally]]
    tau: dict[int, Fraction]

    def condition(self, *names: str) -> Tally:
        """Return the tally of the standard runs of the named conditions."""
        return add(cell.tally for cell in self.cells if cell.condition in names)

    @property
    def novel(self) -> Tally:
        """The fault runs of the held-out split."""
        return add(cell.tally for cell in self.summary.select(split=Split.NOVEL_FAULT) if cell.is_fault)


def look(summary: Summary, manifest: Manifest, tau: dict[int, Fraction]) -> View:
    """Return the view of a summary."""
    cells = summary.select()
    nominal = add(cell.tally for cell in cells if not cell.is_fault)
    fault = add(cell.tally for cell in cells if cell.is_fault)
    return View(
        summary=summary,
        manifest=manifest,
        cells=cells,
        total=nominal + fault,
        nominal=nominal,
        fault=fault,
        domains=_by_domain(cells),
        tau=tau,
    )


def restricted(summary: Summary, wanted: Callable[[Cell], bool]) -> Summary:
    """Return a summary of the wanted cells alone; its window and times stay those of all runs."""
    import numpy as np  # noqa: PLC0415 - heavy

    kept = [number for number, cell in enumerate(summary.cells) if wanted(cell)]
    place = np.full(len(summary.cells), -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    clusters = summary.clusters
    rows = np.flatnonzero(place[clusters.cell] >= 0)
    cells = tuple(summary.cells[number] for number in kept)
    return structs.replace(
        summary,
        records=sum(cell.tally.runs for cell in cells),
        cells=cells,
        clusters=structs.replace(
            clusters,
            cell=place[clusters.cell[rows]],
            cluster=clusters.cluster[rows],
            task=clusters.task[rows],
            sums={name: column[rows] for name, column in clusters.sums.items()},
        ),
    )


def _by_domain(cells: tuple[Cell, ...]) -> dict[str, tuple[Tally, Tally]]:
    # Grouped in one pass: a hostile log may name a domain per run.
    groups: dict[str, tuple[list[Tally], list[Tally]]] = {}
    for cell in cells:
        groups.setdefault(cell.domain, ([], []))[cell.is_fault].append(cell.tally)
    return {name: (_sum(nominal), _sum(fault)) for name, (nominal, fault) in sorted(groups.items())}


def _sum(tallies: list[Tally]) -> Tally:
    """Return what `add` does; with a domain per run nearly all lists are of one tally or none."""
    if len(tallies) > 1:
        return add(tallies)
    return tallies[0] if tallies else _NOTHING
