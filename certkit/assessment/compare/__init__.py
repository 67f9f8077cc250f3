"""Two bundles of two agents compared: who succeeds more often under faults, by how much, how surely.

    comparison = compare((summary_a, facts_a), (summary_b, facts_b))
    comparison.answer.words, comparison.main.better, comparison.metrics["r_op"].matched.interval

One rule for every metric: the contrast of drift (`certkit.assessment.drift.contrast`), a t test over tasks,
paired where both have a task. Every task counts once, as the mean of its runs; cells (domain × condition) of
both weigh by their share of the tasks of both, so that another mix is no difference. A better agent is named
where p, adjusted for the number of rows, is below `ALPHA` and each side has `LEAST` tasks.

It does not judge tiers, read files, ask the clock or print. Tests that take runs for independent are in
`paper`, and made on demand only.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit.assessment.compare import paper, words
from certkit.assessment.compare.document import (
    Answer,
    Better,
    BundlePart,
    Compared,
    Comparison,
    Difference,
    Side,
)
from certkit.assessment.compare.words import ALPHA
from certkit.assessment.drift.contrast import adjusted, contrast, observed
from certkit.assessment.drift.rows import LEAST
from certkit.assessment.metrics import metrics_2026
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.metric import State
from certkit.assessment.metrics.series import View, series
from certkit.assessment.result import AgentPart
from certkit.assessment.statistics.estimators import LEVEL, Interval
from certkit.ground.document import fill
from certkit.ground.errors import Exit
from certkit.record.record import Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from certkit.assessment.drift.contrast import Panel
    from certkit.assessment.metrics.metric import Metric
    from certkit.bundle.manifest import Facts
    from certkit.summary.summary import Summary

__all__ = ["ALPHA", "METRICS", "Comparison", "compare"]

METRICS: Final = ("r_op", "c_nom", "frr", "pei", "irs", "ti", "violations", "adversarial_resistance")
"""What is compared on the standard split, the main metric first; held-out faults have `novel_fault` alone."""


class _Bundle(Struct, frozen=True, kw_only=True, eq=False):
    """One side: its view and facts, and all its metrics by name."""

    view: View
    facts: Facts
    metrics: Mapping[str, Metric]


def compare(
    a: tuple[Summary, Facts], b: tuple[Summary, Facts], *, novel: bool = False, paper_tests: bool = False
) -> Comparison:
    """Return the comparison of two bundles; `novel` compares the held-out faults instead of all else.

    `paper_tests` adds those of `certkit.assessment.compare.paper`. Nothing is raised where nothing can be
    compared: the result says so and has exit code 4.
    """
    bundles = _bundle(*a), _bundle(*b)
    main, *others = ("novel_fault",) if novel else METRICS
    panels = {name: _panel(bundles, name) for name in (main, *others)}
    rows = {name: _compared(name, bundles, panel) for name, panel in panels.items()}
    metrics = _judged({main: rows.pop(main)}, main) | _judged(rows)
    panel = panels[main] if metrics[main].matched else None
    domains = {} if panel is None else _domains(main, panel)
    sides = [_side(part) for part in bundles]
    comparison = Comparison(
        split=Split.NOVEL_FAULT if novel else Split.STANDARD,
        a=sides[0],
        b=sides[1],
        alpha=ALPHA,
        answer=Answer(metric=main, better=metrics[main].better, words=words.answer(main, metrics, sides)),
        metrics=metrics,
        domains=domains,
        not_alike=words.not_alike(*(part.facts.manifest.protocol for part in bundles)),
        caveats=(),
        exit_code=Exit.OK if any(row.matched for row in metrics.values()) else Exit.INSUFFICIENT,
    )
    if paper_tests:
        views = bundles[0].view, bundles[1].view
        comparison = structs.replace(comparison, paper_tests=_paper_tests(comparison, views, panel))
    return structs.replace(
        comparison, caveats=words.caveats(comparison, tested=panel is None or bool(domains))
    )


def _bundle(summary: Summary, facts: Facts) -> _Bundle:
    view = View(summary, facts.manifest, {})
    return _Bundle(
        view=view, facts=facts, metrics={metric.id: metric for metric in metrics_2026.metrics(view)}
    )


def _side(part: _Bundle) -> BundlePart:
    facts = part.facts
    return BundlePart(
        bundle=facts.digest,
        sealed=facts.sealed,
        origin=facts.manifest.protocol.origin,
        records=part.view.summary.records,
        agent=fill(AgentPart, facts.manifest.agent, digest=facts.agent_digest),
    )


def _panel(bundles: tuple[_Bundle, _Bundle], name: str) -> Panel | None:
    metrics = [part.metrics[name] for part in bundles]
    if any(metric.state is not State.MEASURED or metric.blocked for metric in metrics):
        return None  # the mean of some runs would pass for that of all
    views = [part.view for part in bundles]
    tasks = [series(view.summary, name, memory_observable=view.observable) for view in views]
    return observed(name, [view.summary for view in views], tasks)


def _compared(name: str, bundles: tuple[_Bundle, _Bundle], panel: Panel | None) -> Compared:
    metrics = [part.metrics[name] for part in bundles]
    a, b = (
        Side(
            state=metric.state,
            value=None if metric.value is None or metric.coverage < 1 else float(metric.value),
            n=metric.n or 0,
            successes=metric.counts.get("successes", metric.counts.get("intentional")) if metric.n else None,
            reason=metric.reason or metric.blocked,
        )
        for metric in metrics
    )
    matched = None if panel is None else _difference(panel)
    return Compared(
        unit=CATALOGUE[name].unit,
        a=a,
        b=b,
        matched=matched,
        notes=words.notes(name, *metrics) if matched else (),
        reason=None if matched else words.not_compared(a, b),
    )


def _difference(panel: Panel, domain: str | None = None) -> Difference | None:
    """Return the difference with its t interval, in one domain or in all.

    None where a side has no task, or one, in the cells of both.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - heavy

    sides = panel.chosen(domain=domain, pooled=True)
    if min(sides.k) < 2:  # noqa: PLR2004 - one task shows no variance
        return None
    change = contrast(sides, (1, -1))
    a, b = sides.means.tolist()
    first, second = (set(sides.unit[v > 0].tolist()) for v in sides.v)
    half = float(stdtrit(change.freedom, (1 + LEVEL) / 2)) * change.se
    interval = Interval(low=change.loss - half, high=change.loss + half, method="t over tasks")
    return Difference(
        a=a,
        b=b,
        difference=change.loss,
        interval=interval if half else None,
        standard_error=change.se,
        degrees_of_freedom=change.freedom,
        p=min(1.0, 2 * min(change.p_loss, change.p_gain)),
        runs=(int(sides.n[0].sum()), int(sides.n[1].sum())),
        tasks=(sides.k[0], sides.k[1]),
        shared=len(first & second),
    )


def _judged(rows: Mapping[str, Compared], metric: str | None = None) -> dict[str, Compared]:
    """Return rows of one family with who is better; `metric` is theirs where names are those of domains."""
    tested = {
        name: row.matched.p for name, row in rows.items() if row.matched and min(row.matched.tasks) >= LEAST
    }
    p = dict(zip(tested, adjusted(list(tested.values())), strict=True))
    return {
        name: structs.replace(
            row,
            p_adjusted=p.get(name),
            better=_better(row, p.get(name, 1.0), higher=CATALOGUE[metric or name].higher),
        )
        for name, row in rows.items()
    }


def _better(row: Compared, p: float, *, higher: bool) -> Better | None:
    if row.matched is None or p >= ALPHA:
        return None
    return "a" if (row.matched.difference > 0) == higher else "b"


def _domains(metric: str, panel: Panel) -> dict[str, Compared]:
    """Return the main metric in every domain that either bundle has runs in, sorted by name."""
    there = sorted(set(panel.domain.tolist()))
    if len(there) > words.MOST_DOMAINS:
        return {}
    rows = {}
    for number in there:
        y, n = (column[:, panel.domain == number].sum(axis=(1, 2)).tolist() for column in (panel.y, panel.n))
        a, b = (
            Side(state=State.MEASURED, value=total / runs, n=runs, successes=total)
            if runs
            else Side(state=State.UNMEASURED, value=None, n=0, reason="no run under a fault")
            for total, runs in zip(y, n, strict=True)
        )
        name = panel.domains[number]
        matched = _difference(panel, name)
        rows[name] = Compared(
            unit=CATALOGUE[metric].unit,
            a=a,
            b=b,
            matched=matched,
            reason=None if matched else words.not_compared(a, b),
        )
    return _judged(rows, metric)


def _paper_tests(comparison: Comparison, views: tuple[View, View], panel: Panel | None) -> paper.PaperTests:
    shared = [row for row in comparison.domains.values() if row.matched]
    rates = [[Fraction(side.successes or 0, side.n) for side in (row.a, row.b)] for row in shared]
    rho, tau = paper.ranks(*zip(*rates, strict=True)) if rates else (None, None)
    return paper.PaperTests(
        metrics={
            name: paper.runs(name, views, (row.a, row.b))
            for name, row in comparison.metrics.items()
            if row.matched
        },
        anova=_anova(panel) if panel is not None and shared else None,
        spearman=rho,
        kendall=tau,
    )


def _anova(panel: Panel) -> paper.Anova:
    """Return the analysis of one rate per agent, domain and task, in the domains of both."""
    y, n = panel.y.sum(axis=2) / next(iter(panel.scale.values())), panel.n.sum(axis=2)
    there = [set(panel.domain[side > 0].tolist()) for side in n]
    cells = {
        (agent, panel.domains[number]): (y[side, rows] / n[side, rows]).tolist()
        for side, agent in enumerate("ab")
        for number in there[0] & there[1]
        if (rows := (panel.domain == number) & (n[side] > 0)).any()
    }
    return paper.anova(cells)
