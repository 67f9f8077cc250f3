"""A summary as metrics and kinds of criteria see it: nominal and fault runs apart, and sums over tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from certkit.assessment.metrics.series import series, tasks
from certkit.evidence.records.record import Split
from certkit.evidence.summary.summary import Tally, add
from certkit.evidence.summary.tasks import shared, task_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from certkit.assessment.rater_error.labels import Labelled
    from certkit.evidence.bundle.manifest import Manifest
    from certkit.evidence.summary.summary import Cell, Summary
    from certkit.evidence.summary.tasks import Shared, Tasks, TaskSums

_NOTHING: Final = Tally()


class View:
    """What every metric and every bound starts from; the tasks of a series are gathered once.

    `by_domain` holds each domain's nominal and fault runs; `tau` the aggregate threshold of the tiers that
    have one. `observable` tells whether a recovery without any memory field counts as not intentional
    ([26] eq. 6). `anytime` asks for bounds that hold although the evidence was looked at while it grew;
    `labelled` is what a person labelled where a model gave the outcomes.
    """

    def __init__(
        self,
        summary: Summary,
        manifest: Manifest,
        tau: Mapping[int, Fraction],
        *,
        anytime: bool = False,
        labelled: Labelled | None = None,
    ) -> None:
        self.summary, self.manifest, self.tau = summary, manifest, tau
        self.anytime, self.labelled = anytime, labelled
        self.observable = manifest.protocol.memory_observable is True
        self.cells = summary.select()
        self.nominal = add(cell.tally for cell in self.cells if not cell.is_fault)
        self.fault = add(cell.tally for cell in self.cells if cell.is_fault)
        self.total = self.nominal + self.fault
        self.by_domain = _by_domain(self.cells)
        self._tasks: dict[tuple[str, str | None], Tasks] = {}
        self._sums: dict[tuple[str, str | None], TaskSums | None] = {}

    def condition(self, *names: str) -> Tally:
        """Return the tally of the standard runs of the named conditions."""
        return add(cell.tally for cell in self.cells if cell.condition in names)

    @property
    def novel(self) -> Tally:
        """The fault runs of the held-out split."""
        return add(cell.tally for cell in self.summary.select(split=Split.NOVEL_FAULT) if cell.is_fault)

    @property
    def domains(self) -> Sequence[str]:
        """The domains with runs under a fault, sorted."""
        return [name for name, (_, fault) in self.by_domain.items() if fault.runs]

    def tasks(self, name: str, domain: str | None = None) -> Tasks:
        """Return the tasks that carry a series, in all domains or in one."""
        if (name, domain) not in self._tasks:
            self._gather(name, domain)
        return self._tasks[name, domain]

    def sums(self, name: str, domain: str | None = None) -> TaskSums | None:
        """Return the sums of a series, None where no run carries it."""
        if (name, domain) not in self._sums:
            self._gather(name, domain)
        return self._sums[name, domain]

    def shared(self, first: str, second: str) -> Shared:
        """Return the products of two series over the tasks that carry both."""
        return shared(self.tasks(first), self.tasks(second))

    def _gather(self, name: str, domain: str | None) -> None:
        """Gather a series over all domains, or in each at once, since a hostile log may name one per run."""
        rows = series(self.summary, name, memory_observable=self.observable)
        if domain is None:
            self._tasks[name, None] = gathered = tasks(self.summary, rows)
            self._sums[name, None] = task_sums(gathered).get(0)
            return
        place = {each: number for number, each in enumerate(self.by_domain)}
        # Cells of another split have no runs in this series, so that their number does not matter.
        number = np.array([place.get(cell.domain, 0) for cell in self.summary.cells], np.int64)
        parts = tasks(self.summary, rows, number)
        sums = task_sums(parts)
        for each, index in place.items():
            self._tasks[name, each] = parts.only(index)
            self._sums[name, each] = sums.get(index)


def restricted(summary: Summary, wanted: Callable[[Cell], bool]) -> Summary:
    """Return a summary of the wanted cells alone; its window and times stay those of all runs."""
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
