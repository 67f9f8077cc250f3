"""From two summaries to a `Comparison`: every metric matched and tested, the main one by domain as well."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, structs

from certkit.assessment.compare import paper, words
from certkit.assessment.compare.comparison import ALPHA, MOST_DOMAINS, Compared, Comparison, Manner
from certkit.assessment.compare.document import Better, Domain, Side
from certkit.assessment.compare.matched import Matched, matched
from certkit.assessment.compare.sample import MOST_UNITS, Arm, Sample, arm, match
from certkit.assessment.metrics import metrics_2026
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.metric import State, rate
from certkit.assessment.metrics.series import Series, series
from certkit.assessment.metrics.view import View
from certkit.assessment.statistics.resampling import DRAWS, SEED, Bootstrap, bootstrap
from certkit.evidence.records.record import Split
from certkit.evidence.summary.summary import add

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.metrics.metric import Metric
    from certkit.evidence.bundle.manifest import Facts
    from certkit.evidence.summary.summary import Cell, Summary, Tally

METRICS: Final = ("r_op", "c_nom", "frr", "pei", "irs", "ti", "violations", "adversarial_resistance")
"""What is compared on the standard split, the main metric first; held-out faults have `novel_fault` alone."""


class _Bundle(Struct, frozen=True, kw_only=True, eq=False):
    """One side: its summary and facts, and all its metrics by name."""

    summary: Summary
    facts: Facts
    view: View
    metrics: dict[str, Metric]

    def series(self, metric: str) -> Series:
        """Return a metric on the rows of the cluster table."""
        return series(self.summary, metric, memory_observable=self.memory_observable)

    @property
    def memory_observable(self) -> bool:
        """Whether a memory query would show in the log."""
        return self.facts.manifest.protocol.memory_observable is True


def compare(
    a: tuple[Summary, Facts],
    b: tuple[Summary, Facts],
    *,
    novel: bool = False,
    seed: int = SEED,
    draws: int = DRAWS,
    paper_tests: bool = False,
) -> Comparison:
    """Return the comparison of two bundles; `novel` compares the held-out faults instead of all else.

    `paper_tests` adds those of `certkit.assessment.compare.paper`. `seed` and `draws` are those of the
    resampling. Nothing is raised where nothing can be compared: the result says so and has exit code 4.
    """
    sides = _bundle(*a), _bundle(*b)
    names = ("novel_fault",) if novel else METRICS
    samples = {name: _sample(sides, name) for name in names}
    rows = _judged([_compared(name, sides, samples[name], seed, draws) for name in names])
    main = samples[names[0]] if rows[0].matched else None
    domains = () if main is None else _domains(names[0], sides, main, seed, draws)
    manners = (_manner(sides[0]), _manner(sides[1])) if novel and rows[0].matched else None
    not_alike = words.not_alike(*(side.facts.manifest.protocol for side in sides))
    found = Comparison(
        split=str(Split.NOVEL_FAULT if novel else Split.STANDARD),
        facts=(sides[0].facts, sides[1].facts),
        records=(sides[0].summary.records, sides[1].summary.records),
        seed=seed,
        draws=draws,
        answer="",
        metrics=tuple(rows),
        domains=domains,
        rates={} if main is None else _rates(names[0], sides, seed, draws),
        manners=manners,
        paper_tests=_paper_tests(sides, rows, main, domains, manners) if paper_tests else None,
        not_alike=not_alike,
        caveats=(),
    )
    return structs.replace(found, answer=words.answer(found), caveats=words.caveats(found))


def _bundle(summary: Summary, facts: Facts) -> _Bundle:
    view = View(summary, facts.manifest, {})
    return _Bundle(
        summary=summary,
        facts=facts,
        view=view,
        metrics={
            "r_op": rate("r_op", view.fault, empty=metrics_2026.NO_FAULTS),
            "c_nom": rate("c_nom", view.nominal, empty="no nominal run"),
            "frr": metrics_2026.frr(view.fault),
            "pei": metrics_2026.pei("pei", view.cells, view.total),
            "irs": metrics_2026.irs(view),
            "ti": metrics_2026.ti(view.total),
            "violations": metrics_2026.violations(view.total),
            "adversarial_resistance": metrics_2026.adversarial_resistance(view.condition("adversarial")),
            "novel_fault": metrics_2026.novel_fault(view),
        },
    )


def _sample(sides: tuple[_Bundle, _Bundle], name: str) -> Sample | None:
    metrics = [side.metrics[name] for side in sides]
    if any(metric.state is not State.MEASURED or metric.blocked for metric in metrics):
        return None  # the mean of some runs would pass for that of all
    one, other = (side.series(name) for side in sides)
    return match(arm(sides[0].summary, one), arm(sides[1].summary, other), scale=one.scale)


def _side(metric: Metric) -> Side:
    return Side(
        state=metric.state,
        value=None if metric.value is None else float(metric.value),
        n=metric.n or 0,
        successes=metric.counts.get("successes", metric.counts.get("intentional")) if metric.n else None,
        reason=metric.reason or metric.blocked,
    )


def _compared(
    name: str, sides: tuple[_Bundle, _Bundle], sample: Sample | None, seed: int, draws: int
) -> Compared:
    found = Compared(
        metric=name,
        unit=str(CATALOGUE[name].unit),
        a=_side(sides[0].metrics[name]),
        b=_side(sides[1].metrics[name]),
    )
    if sample is None:
        return structs.replace(found, reason=words.not_compared(found.a, found.b))
    return structs.replace(
        found,
        matched=matched(sample, seed=seed, draws=draws),
        notes=words.notes(name, sides[0].metrics[name], sides[1].metrics[name]),
    )


def _judged(rows: list[Compared]) -> list[Compared]:
    """Return the rows with who is better; all but the main one are adjusted for their number."""
    adjusted = [None, *_holm([row.matched for row in rows[1:]])]
    return [
        structs.replace(
            row,
            p_holm=p,
            better=_better(row.matched, p, higher=CATALOGUE[row.metric].higher) if row.matched else None,
        )
        for row, p in zip(rows, adjusted, strict=True)
    ]


def _holm(found: list[Matched | None]) -> list[float | None]:
    return holm([None if row is None else row.permutation.p for row in found])


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values, in the order given; what was not tested stays None."""
    tested = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    reached = 0.0
    for rank, (value, place) in enumerate(tested):
        reached = max(reached, min(1.0, (len(tested) - rank) * value))
        adjusted[place] = reached
    return adjusted


def _better(of: Matched, p_adjusted: float | None, *, higher: bool) -> Better | None:
    """Tell who is better, where both the permutation test and the cluster-robust interval show it."""
    p = of.permutation.p if p_adjusted is None else p_adjusted
    interval = of.robust.interval
    if p >= ALPHA or of.difference == 0 or (interval is not None and interval.low <= 0 <= interval.high):
        return None
    return "a" if (of.difference > 0) == higher else "b"


def _domains(
    name: str, sides: tuple[_Bundle, _Bundle], sample: Sample, seed: int, draws: int
) -> tuple[Domain, ...]:
    """Return the main metric per domain that either bundle has runs in, sorted by name."""
    cells = [_carrying(side.summary, side.series(name)) for side in sides]
    names = sorted({cell.domain for of in cells for cell in of})
    if len(names) > MOST_DOMAINS:
        return ()
    tables = [_by_domain(of) for of in cells]
    shared = {domain for domain, _ in sample.names}
    rows = []
    for domain in names:
        a, b = (_rate(table.get(domain)) for table in tables)
        if domain in shared:
            found = matched(sample.of_domain(domain), seed=seed, draws=draws, bootstrapped=False)
            rows.append(Domain(domain=domain, a=a, b=b, matched=found))
        else:
            reason = words.not_compared(a, b, what="condition" if not sample.paired else "task and condition")
            rows.append(Domain(domain=domain, a=a, b=b, reason=reason))
    adjusted = _holm([row.matched for row in rows])
    return tuple(
        structs.replace(row, p_holm=p, better=_better(row.matched, p, higher=True) if row.matched else None)
        for row, p in zip(rows, adjusted, strict=True)
    )


def _carrying(summary: Summary, of: Series) -> list[Cell]:
    """Return the cells that a series is taken over."""
    return [cell for cell in summary.cells if cell.split == of.split and of.over(cell.condition)]


def _by_domain(cells: list[Cell]) -> dict[str, Tally]:
    groups: dict[str, list[Tally]] = {}
    for cell in cells:
        groups.setdefault(cell.domain, []).append(cell.tally)
    return {domain: add(tallies) for domain, tallies in groups.items()}


def _rate(tally: Tally | None) -> Side:
    if tally is None or not tally.runs:
        return Side(state=State.UNMEASURED, value=None, n=0, reason="no run under a fault")
    value = tally.success / tally.runs
    return Side(state=State.MEASURED, value=value, n=tally.runs, successes=tally.success)


def _rates(name: str, sides: tuple[_Bundle, _Bundle], seed: int, draws: int) -> dict[str, Bootstrap]:
    """Return intervals of the rates themselves, over all runs of either bundle, clusters being the tasks."""
    arms = [arm(side.summary, side.series(name)) for side in sides]
    clusters = [_coarse(one) for one in arms]
    agents = [np.full(len(one.n), place) for place, one in enumerate(arms)]
    found = {
        label: bootstrap(one.y, one.n, cluster, agent, by="task", seed=seed, draws=draws)
        for label, one, cluster, agent in zip("ab", arms, clusters, agents, strict=True)
    }
    y, n = (np.concatenate([getattr(one, field) for one in arms]) for field in ("y", "n"))
    cluster, agent = np.concatenate(clusters), np.concatenate(agents)
    for by in ("task", "agent", "both"):
        found[f"together_by_{by}"] = bootstrap(y, n, cluster, agent, by=by, seed=seed, draws=draws)
    return found


def _coarse(of: Arm) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    many = len(np.unique(of.cluster)) > MOST_UNITS
    return of.cluster % np.uint64(MOST_UNITS) if many else of.cluster


def _paper_tests(
    sides: tuple[_Bundle, _Bundle],
    rows: Sequence[Compared],
    main: Sample | None,
    domains: Sequence[Domain],
    manners: tuple[Manner, Manner] | None,
) -> paper.PaperTests:
    views = sides[0].view, sides[1].view
    shared = [row for row in domains if row.matched]
    rates = [[Fraction(side.successes or 0, side.n) for side in (row.a, row.b)] for row in shared]
    rho, tau = paper.ranks(*zip(*rates, strict=True)) if rates else (None, None)
    return paper.PaperTests(
        metrics={row.metric: paper.runs(row.metric, views, (row.a, row.b)) for row in rows if row.matched},
        anova=_anova(main) if main is not None and shared else None,
        spearman=rho,
        kendall=tau,
        manners={
            label: paper.shares(*manner.intentional, *manner.trial_and_error)
            for label, manner in zip("ab", manners or (), strict=False)
            if manner.difference is not None
        },
    )


def _anova(sample: Sample) -> paper.Anova:
    """Return the analysis of one rate per agent, domain and unit."""
    domains = np.array([domain for domain, _ in sample.names])[sample.cell]
    cells: dict[tuple[str, str], list[float]] = {}
    for agent, y, n in (("a", sample.a, sample.a_n), ("b", sample.b, sample.b_n)):
        for domain in np.unique(domains).tolist():
            here = (domains == domain) & (n > 0)
            runs = np.bincount(sample.unit[here], n[here])
            sums = np.bincount(sample.unit[here], y[here])
            cells[agent, domain] = (sums[runs > 0] / runs[runs > 0] / sample.scale).tolist()
    return paper.anova(cells)


def _manner(side: _Bundle) -> Manner:
    """Return how the agent fared under held-out faults, by whether it met them intentionally."""
    tally = side.view.novel
    silent = side.memory_observable
    intentional = tally.guided_success, tally.guided
    trial = (
        tally.unguided_success + (tally.unguided_silent_success if silent else 0),
        tally.unguided + (tally.unguided_silent if silent else 0),
    )
    both = intentional[1] and trial[1]
    return Manner(
        intentional=intentional,
        trial_and_error=trial,
        unknown=tally.runs - tally.harness_error - intentional[1] - trial[1],
        difference=float(Fraction(*intentional) - Fraction(*trial)) if both else None,
    )
