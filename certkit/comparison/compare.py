"""Two bundles of two agents compared: who succeeds more often under faults, by how much, how surely.

    a, b = (summarise(bundle, most_tasks=None, salt=SALT) for bundle in bundles)
    comparison = compare((a, facts_a), (b, facts_b))
    comparison.answer.words, comparison.main.better, comparison.metrics["r_op"].matched.interval

One rule for every metric: the contrast of drift (`certkit.comparison.contrast`), a t test over tasks, paired
where both have a task. Every task counts once, as the mean of its runs; domains and conditions of both weigh
by their share of the tasks of both, so that another mix is no difference. Each side has the two prior tasks
of confidence limits (`contrast.with_priors`), one at the worst value and one at the best: without them an
agent whose few tasks all succeed is taken for exact. p, adjusted for the number of rows (Benjamini &
Hochberg), and the interval rest on them; the difference that is shown does not. A better agent is named where
p is below `ALPHA` and each side has `LEAST` tasks.

It does not judge tiers, read files, ask the clock or print. Tests that take runs as independent are in
`paper`, and made on demand only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType, structs

from certkit.assessment.assessment import Tool
from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.metric import HARNESS_LIMIT, Interval, Metric
from certkit.assessment.metrics import Groups, measure
from certkit.assessment.words import amount_text, p_text, reason_text, value_text
from certkit.bundle.facts import AgentFacts, Facts, JudgeFacts, ProtocolFacts
from certkit.comparison import paper
from certkit.comparison.contrast import (
    LEAST,
    LEVEL,
    Panel,
    adjusted,
    contrast,
    mixed,
    span,
    student_limit,
    with_priors,
)
from certkit.ground.document import Count, Digest, Document, Part, Share, State
from certkit.ground.errors import Exit
from certkit.ground.text import quoted
from certkit.ground.wording import many
from certkit.record.record import Split
from certkit.summary.summary import Summary, Tally

METRICS: Final = ("r_op", "c_nom", "frr", "pei", "irs", "ti", "violations", "adversarial_resistance")
"""What is compared on the standard split, the main metric first; held-out faults have `novel_fault` alone."""
ALPHA: Final = 0.05
"""Two-sided level at which a difference is called shown."""
MOST_DOMAINS: Final = 100
"""Domains of both bundles up to which each is tested on its own."""
SALT: Final = b"compare"
"""Both summaries must be made with it, and with all their tasks: a task is the same where its name is."""

Better = Literal["a", "b"]


class BundlePart(Part, frozen=True, kw_only=True):
    """One side: a bundle and the agent that it is evidence of.

    Attributes:
        bundle: digest of the bundle.
        sealed: whether its manifest lists every file.
        origin: whether the evidence was measured or simulated.
        records: its records.
        agent: the agent.
    """

    bundle: Digest
    sealed: bool
    origin: Literal["measured", "simulated"]
    records: Count
    agent: AgentFacts


class MainResult(Part, frozen=True, kw_only=True):
    """The result.

    Attributes:
        metric: the main metric.
        better: the better side; null where none is shown to be.
        words: the answer in words.
    """

    metric: str
    better: Better | None
    words: str


class MeasuredSide(Part, frozen=True, kw_only=True):
    """One metric of one bundle over all its runs, whatever the other bundle has.

    Attributes:
        state: how much of the evidence was there.
        value: the metric; null where it was not measured on all eligible runs.
        n: its denominator.
        successes: of a share.
        reason: why it was not measured, in words.
    """

    state: State
    value: float | None
    n: Count
    successes: Count | None = None
    reason: str | None = None


class Difference(Part, frozen=True, kw_only=True):
    """The difference A − B over what both bundles cover, in the metric's unit.

    Attributes:
        a: the mean of A.
        b: the mean of B.
        difference: the first less the second.
        interval: of the true difference, 95 %, with both prior tasks on each side.
        standard_error: the same.
        degrees_of_freedom: of the t distribution.
        p: two-sided, with the prior tasks.
        runs: of A and B.
        tasks: of A and B.
        shared: tasks that both have.
    """

    a: float
    b: float
    difference: float
    interval: Interval
    standard_error: float
    degrees_of_freedom: Count
    p: Share
    runs: tuple[Count, Count]
    tasks: tuple[Count, Count]
    shared: Count


class Compared(Part, frozen=True, kw_only=True):
    """One metric of both sides.

    Attributes:
        unit: the metric's.
        a: A alone.
        b: B alone.
        matched: the comparison; null where there is none.
        p_adjusted: p, adjusted for the number of domains, or of metrics beside the main one.
        better: the better side; null unless a difference is shown.
        reason: why there is none.
    """

    unit: Unit
    a: MeasuredSide
    b: MeasuredSide
    matched: Difference | None = None
    p_adjusted: Share | None = None
    better: Better | None = None
    reason: str | None = None


class Unlike(Part, frozen=True, kw_only=True):
    """A part of the protocol in which the bundles differ; null: not stated."""

    item: str
    a: str | None
    b: str | None


class Comparison(Document, frozen=True, kw_only=True, tag="urn:certkit:comparison:v1"):
    """Two agents compared on their evidence; every difference is A less B.

    Attributes:
        tool: the program that compared.
        split: whose runs are compared.
        a: the first bundle.
        b: the second.
        alpha: the level of p at which a difference is shown.
        answer: the result.
        metrics: the main metric first.
        domains: the main metric by domain.
        paper_tests: tests that take runs as independent, on demand.
        not_alike: how the protocols differ.
        caveats: what a reader should know.
    """

    tool: Tool = Tool()
    split: str
    a: BundlePart
    b: BundlePart
    alpha: Share = ALPHA
    answer: MainResult
    metrics: Annotated[
        Mapping[str, Compared], Meta(extra_json_schema={"propertyNames": {"enum": list(CATALOGUE)}})
    ]
    domains: Mapping[str, Compared]
    paper_tests: paper.PaperTests | UnsetType = UNSET
    not_alike: tuple[Unlike, ...]
    caveats: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Comparison: {self.answer.words}>"

    @property
    def main(self) -> Compared:
        """The metric that the answer is about."""
        return self.metrics[self.answer.metric]

    @property
    def exit_code(self) -> Exit:
        """0 where anything was compared, whoever is better; 4 where nothing was."""
        return Exit.OK if any(row.matched for row in self.metrics.values()) else Exit.INSUFFICIENT


class _Bundle(NamedTuple):
    """One side with all its metrics by name."""

    summary: Summary
    facts: Facts
    metrics: Mapping[str, Metric]


def compare(
    a: tuple[Summary, Facts], b: tuple[Summary, Facts], *, novel: bool = False, paper_tests: bool = False
) -> Comparison:
    """Return the comparison of two bundles.

    Args:
        a: summary and facts of the first, as the module says.
        b: those of the second.
        novel: compare the held-out faults instead of all else.
        paper_tests: add the tests of `paper`.
    """
    bundles = tuple(_Bundle(summary, facts, measure(Groups(summary), facts, {})) for summary, facts in (a, b))
    panel = Panel([summary.tasks for summary, *_ in bundles], pooled=True)
    main, *others = ("novel_fault",) if novel else METRICS
    rows = {name: _compared(name, bundles, panel) for name in (main, *others)}
    metrics = _judged({main: rows.pop(main)}, main) | _judged(rows)
    domains = _domains(main, bundles, panel) if metrics[main].matched else {}
    parts = [
        BundlePart(
            bundle=facts.digest,
            sealed=facts.sealed,
            origin=facts.protocol.origin,
            records=summary.records,
            agent=facts.agent,
        )
        for summary, facts, _ in bundles
    ]
    comparison = Comparison(
        split=Split.NOVEL_FAULT if novel else Split.STANDARD,
        a=parts[0],
        b=parts[1],
        answer=MainResult(metric=main, better=metrics[main].better, words=answer(main, metrics, parts)),
        metrics=metrics,
        domains=domains,
        not_alike=tuple(_not_alike(bundles[0].facts.protocol, bundles[1].facts.protocol)),
    )
    if paper_tests:
        comparison = structs.replace(comparison, paper_tests=_paper_tests(comparison, bundles, panel))
    notes = (
        f"{name}: {note}"
        for name, row in metrics.items()
        if row.matched
        for note in _notes(name, *(bundle.metrics[name] for bundle in bundles))
    )
    return structs.replace(comparison, caveats=(*caveats(comparison), *notes))


def _compared(name: str, bundles: Sequence[_Bundle], panel: Panel) -> Compared:
    metrics = [bundle.metrics[name] for bundle in bundles]
    a, b = (
        MeasuredSide(
            state=metric.state,
            value=None if metric.value is None or metric.coverage < 1 else round(float(metric.value), 9),
            n=metric.n or 0,
            successes=metric.counts.get("successes", metric.counts.get("intentional")) if metric.n else None,
            reason=reason_text(metric.reason or metric.blocked) or None,
        )
        for metric in metrics
    )
    matched, reason = None, None
    # The mean of some runs would be taken for that of all.
    if all(metric.state is State.MEASURED and not metric.blocked for metric in metrics):
        first, second = (bundle.summary for bundle in bundles)
        reason = mixed(name, first, second) or mixed(name, second, first)
        matched = None if reason else _difference(panel, name)
    return Compared(
        unit=CATALOGUE[name].unit,
        a=a,
        b=b,
        matched=matched,
        reason=None if matched else reason or not_compared(a, b),
    )


def _difference(panel: Panel, metric: str, domain: str | None = None) -> Difference | None:
    """Return the difference, in one domain or in all.

    None where a side has no task, or one, in the domains and conditions of both.
    """
    sides = panel.sides(metric, domain=domain)
    if min(sides.k) < 2:  # noqa: PLR2004 - one task shows no variance
        return None
    low, width = span(metric)
    change = contrast(with_priors(sides, low, width), (1, -1))
    half = student_limit((1 - LEVEL) / 2, change.freedom) * change.se
    low, high = max(-width, change.loss - half), min(width, change.loss + half)
    a, b = (round(value, 9) for value in sides.means)
    first, second = sides.runs
    return Difference(
        a=a,
        b=b,
        difference=round(a - b, 9),
        interval=Interval(low=round(low, 9), high=round(high, 9), method="t over tasks"),
        standard_error=round(change.se, 9),
        degrees_of_freedom=change.freedom,
        p=round(min(1.0, 2 * min(change.p_loss, change.p_gain)), 9),
        runs=(first, second),
        tasks=(sides.k[0], sides.k[1]),
        shared=sides.shared,
    )


def _judged(rows: Mapping[str, Compared], metric: str | None = None) -> dict[str, Compared]:
    """Return rows of one family with the better side; `metric` is theirs where names are those of domains."""
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


def _domains(metric: str, bundles: Sequence[_Bundle], panel: Panel) -> dict[str, Compared]:
    """Return the main metric in every domain that either bundle has fault runs in, sorted by name."""
    split = Split.NOVEL_FAULT if metric == "novel_fault" else Split.STANDARD
    cells = [[cell for cell in bundle.summary.select(split) if cell.is_fault] for bundle in bundles]
    names = sorted({cell.domain for side in cells for cell in side})
    if len(names) > MOST_DOMAINS:
        return {}
    rows = {}
    for name in names:
        tallies = (Tally.total(cell for cell in side if cell.domain == name) for side in cells)
        a, b = (
            MeasuredSide(
                state=State.MEASURED,
                value=round(t["success"] / t["runs"], 9),
                n=t["runs"],
                successes=t["success"],
            )
            if t["runs"]
            else MeasuredSide(
                state=State.UNMEASURED, value=None, n=0, reason="there are no runs under faults"
            )
            for t in tallies
        )
        matched = _difference(panel, metric, name)
        rows[name] = Compared(
            unit=CATALOGUE[metric].unit,
            a=a,
            b=b,
            matched=matched,
            reason=None if matched else not_compared(a, b),
        )
    return _judged(rows, metric)


def _paper_tests(comparison: Comparison, bundles: Sequence[_Bundle], panel: Panel) -> paper.PaperTests:
    shared = {name: row for name, row in comparison.domains.items() if row.matched}
    rates = [[Fraction(side.successes or 0, side.n) for side in (row.a, row.b)] for row in shared.values()]
    rho, tau = paper.ranks(*zip(*rates, strict=True)) if rates else (None, None)
    groups = [Groups(bundle.summary) for bundle in bundles]
    cells: dict[tuple[str, str], list[float]] = {}
    for (_, place), parts in panel.rows(comparison.answer.metric).items():
        for agent, runs in zip("ab", parts, strict=True):
            if runs:
                rate = sum(y for _, y, _ in runs) / sum(n for *_, n in runs)
                cells.setdefault((agent, panel.domains[place]), []).append(rate)
    both = {key: values for key, values in cells.items() if {("a", key[1]), ("b", key[1])} <= cells.keys()}
    return paper.PaperTests(
        metrics={
            name: paper.runs(name, [(group.fault if name == "frr" else group.every) for group in groups])
            if name in paper.SQUARES
            else paper.shares(row.a.successes or 0, row.a.n, row.b.successes or 0, row.b.n)
            for name, row in comparison.metrics.items()
            if row.matched
        },
        anova=paper.anova(both) if shared else None,
        spearman=rho,
        kendall=tau,
    )


def answer(main: str, rows: Mapping[str, Compared], sides: Sequence[BundlePart]) -> str:
    """Return the better side, by how much, how sure that is, and what it rests on, in words."""
    where = "under held-out faults" if main == "novel_fault" else "under faults"
    row = rows[main]
    if row.matched is None:
        others = [name for name, compared in rows.items() if compared.matched]
        rest = f" Compared are: {', '.join(others)}." if others else " Nothing can be compared."
        return f"Success {where} cannot be compared: {row.reason}.{rest}"
    matched, better_is_b = row.matched, row.better == "b"
    values = (matched.a, matched.b)
    ends = (matched.interval.low, matched.interval.high)
    difference = matched.difference
    if better_is_b:  # the better side is named first, and so are its value and its lead
        values, ends, difference = values[::-1], (-ends[1], -ends[0]), -difference
    first, second = (value_text(value, row.unit) for value in values)
    low, high = (amount_text(end, row.unit, sign=True) for end in ends)
    size = (
        f"{first} against {second}, {amount_text(difference, row.unit, sign=True)}"
        f" (95 % confidence: {low} to {high}, p {p_text(matched.p)}; {_tasks_text(matched)})"
    )
    agents = ", ".join(
        f"{label} is {quoted(f'{side.agent.name} {side.agent.version}')}"
        for label, side in zip("AB", sides, strict=True)
    )
    if row.better is not None:
        better, worse = ("A", "B") if row.better == "a" else ("B", "A")
        return f"{better} succeeds {where} more often than {worse}: {size}. {agents}."
    few = f" It takes {LEAST} tasks a side to show a difference." if min(matched.tasks) < LEAST else ""
    return f"No difference {where} is shown between A and B: {size}.{few} {agents}."


def _tasks_text(matched: Difference) -> str:
    a, b = matched.tasks
    tasks = f"{a:,} and {many(b, 'task')}, {matched.shared:,} of them on both sides"
    if matched.shared == a == b:
        tasks = f"the same {many(a, 'task')}"
    return f"{matched.runs[0]:,} and {many(matched.runs[1])} on {tasks}"


def not_compared(a: MeasuredSide, b: MeasuredSide) -> str:
    """Return why a metric has no comparison."""
    if a.reason and a.reason == b.reason:
        return a.reason
    missing = [f"{label}: {side.reason}" for label, side in (("A", a), ("B", b)) if side.reason]
    return "; ".join(missing) or "no domain and condition in which each side has two tasks that carry it"


def _notes(name: str, a: Metric, b: Metric) -> Iterator[str]:
    """Yield what limits a metric that was compared."""
    for label, metric in (("A", a), ("B", b)):
        errors, n = metric.counts.get("harness_errors", 0), metric.n or 0
        if metric.interval_by_runs is not None and errors > HARNESS_LIMIT * n:
            yield f"{label}: {errors:,} of {many(n)} are harness errors and count as failures"
    if name == "adversarial_resistance":
        known = [bool(metric.counts["landed"] + metric.counts["not_landed"]) for metric in (a, b)]
        if known[0] != known[1]:
            yield "only one bundle says which attacks landed; the other counts all attacked runs"
    if name == "violations":
        yield "at most five violations of a run count in the difference"


def _not_alike(a: ProtocolFacts, b: ProtocolFacts) -> Iterator[Unlike]:
    """Yield the parts of the protocol that can make a difference by themselves and are not the same."""
    items = ("origin", "methodology", "success", "success_rule", "judge", "cascade_definition")
    for item in (*items, "temperature", "memory_observable"):
        first, second = (_text(getattr(protocol, item)) for protocol in (a, b))
        if first != second:
            yield Unlike(item=item, a=first, b=second)


def _text(value: Any) -> str | None:
    if isinstance(value, JudgeFacts):
        family = f" ({value.family})" if value.family else ""
        return f"{value.name}{family}, {'independent' if value.independent else 'not independent'}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)


def caveats(comparison: Comparison) -> Iterator[str]:
    """Yield what a reader should know before believing the answer."""
    if comparison.a.bundle == comparison.b.bundle:
        yield "A and B are the same bundle"
    elif comparison.a.agent.digest == comparison.b.agent.digest:
        yield "A and B are the same agent: the difference is between two evaluations of it"
    if "simulated" in {comparison.a.origin, comparison.b.origin}:
        yield "simulated evidence says nothing about any agent"
    main = comparison.main
    if main.matched is not None:
        if main.matched.shared:
            yield "a task is known by its name: the same name stands for the same task in both bundles"
        else:
            yield "the bundles share no task: the agents are compared on different tasks"
        for label, side, runs in zip("AB", (main.a, main.b), main.matched.runs, strict=True):
            if left := side.n - runs:
                yield f"{left:,} of {many(side.n)} of {label} are left out: the other side has none like them"
        if not comparison.domains:
            yield f"more than {MOST_DOMAINS} domains: none is tested on its own"
    rows = comparison.metrics.items()
    if missing := [f"{name} ({row.reason})" for name, row in rows if not row.matched and row is not main]:
        yield f"not compared: {'; '.join(missing)}"
