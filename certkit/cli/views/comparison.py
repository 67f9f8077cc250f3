"""A comparison as people read it: the answer, the tables, the tests, the caveats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.assessment.compare.words import ALPHA, change, figure, signed
from certkit.assessment.drift.rows import LEAST
from certkit.assessment.metrics.catalogue import Unit
from certkit.assessment.metrics.metric import shown
from certkit.cli.emit import counted, cut, fold
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from certkit.assessment.compare.document import Better, Compared, Comparison, Manner, Side
    from certkit.assessment.compare.paper import Anova, Pair, PaperTests, Rank, Runs
    from certkit.assessment.drift import Drift, Row
    from certkit.assessment.drift.rows import Mean
    from certkit.assessment.statistics.estimators import Interval
    from certkit.passport.comparing import Comparison as Drifted
    from certkit.passport.comparing import Side as Signed

_NAME: Final = 18
_LABEL: Final = 34
_PAIRS: Final = 5
"""Pairs of cells that are listed unless all are asked for."""

_RESULTS: Final = {
    "STABLE": "a loss of the margin in r_op is excluded, and no row shows that it got worse",
    "DRIFTED": "it behaves worse",
    "IDENTITY_CHANGED": "the agent is not the same, though no row shows that it got worse",
    "UNDERPOWERED": "no row shows that it got worse, and a loss in r_op is not excluded",
    "NOT_COMPARABLE": "the two sides measure different things",
}
_ROW, _VALUE, _RUNS, _LOSS = 29, 7, 8, 8


def show_comparison(compared: Comparison, *, verbose: bool) -> Iterator[str]:
    """Print a comparison; `verbose` adds every pair of cells to the tests that papers print."""
    yield from fold(compared.answer.words)
    yield ""
    main = compared.answer.metric
    for name, bundle, side in (("A", compared.a, compared.main.a), ("B", compared.b, compared.main.b)):
        yield from fold(f"{name}: {bundle.agent.name} {bundle.agent.version}, {_rate(side)}", rest="   ")
        yield f"   {bundle.bundle}"
    if compared.domains:
        yield from _table("domain", compared.domains)
    if compared.manners:
        yield from _manners(compared.manners)
    if isinstance(compared.paper_tests, Struct):
        yield from _paper_tests(compared.paper_tests, main, verbose=verbose)
    beside = {name: row for name, row in compared.metrics.items() if row.matched and name != main}
    if beside:
        yield from _table("metric", beside)
    yield from _not_alike(compared)
    if compared.caveats:
        yield ""
        yield "To bear in mind:"
        for caveat in compared.caveats:
            yield from fold(caveat, first="- ", rest="  ")


def _rate(side: Side) -> str:
    if side.value is None:
        return "not measured"
    return f"{side.successes:,} of {side.n:,} runs succeeded, {shown(side.value, Unit.FRACTION)}"


def _table(heading: str, rows: Mapping[str, Compared]) -> Iterator[str]:
    yield ""
    yield f"{heading:<{_NAME}}{'A':>8}{'B':>8}{'A - B':>11}{'95 % CI':>18}{'tasks':>7}{'adj. p':>9}"
    for name, row in rows.items():
        line, matched = f"{cut(visible(name), _NAME - 1):<{_NAME}}", row.matched
        if matched is None:
            yield line + f"{_value(row.a, row.unit):>8}{_value(row.b, row.unit):>8}{'not compared':>14}"
            continue
        line += f"{shown(matched.a, row.unit):>8}{shown(matched.b, row.unit):>8}"
        line += f"{change(matched.difference, row.unit):>11}{_span(matched.interval, row.unit):>18}"
        line += f"{min(matched.tasks):>7,}"
        yield line + f"{'few' if row.p_adjusted is None else figure(row.p_adjusted):>9}"
    yield from fold(
        f"A and B over what both cover; p adjusted for {counted(len(rows), heading)};"
        f" few: not tested below {LEAST} tasks a side"
    )


def _value(side: Side, unit: Unit) -> str:
    return "–" if side.value is None else shown(side.value, unit)


def _span(interval: Interval | None, unit: Unit) -> str:
    if interval is None:
        return "–"
    if unit is Unit.FRACTION:
        return f"{signed(100 * interval.low, 1)} to {signed(100 * interval.high, 1)}"
    return f"{change(interval.low, unit)} to {change(interval.high, unit)}"


def _paper_tests(tests: PaperTests, main: str, *, verbose: bool) -> Iterator[str]:
    yield ""
    yield "Tests as papers print them"
    yield from fold(f"To bear in mind: {tests.warning}.")
    if main in tests.metrics:
        yield from _of_runs(tests.metrics[main])
    for label, manner in tests.manners.items():
        yield from fold(f"{label.upper()}, intentional responses less trial and error:", first="  ")
        yield from _of_runs(manner)
    yield from _analysis(tests.anova, verbose=verbose)
    yield from _order("domain orders, Spearman's ρ", tests.spearman)
    yield from _order("domain orders, Kendall's τ-b", tests.kendall)


def _row(label: str, text: str, p: str = "") -> Iterator[str]:
    lead = f"  {label:<{_LABEL}}"
    yield from fold(text + (f"  p {p}" if p else ""), first=lead, rest=" " * len(lead))


def _of_runs(runs: Runs) -> Iterator[str]:
    if runs.z is not None:
        yield from _row("two-proportion z", f"z = {runs.z.statistic:.3f}", figure(runs.z.p))
    if runs.welch is not None:
        yield from _row("Welch's t", f"t = {runs.welch.statistic:.3f}", figure(runs.welch.p))
    if runs.newcombe is not None:
        yield from _row("difference, Newcombe", _points(runs.newcombe))
    sizes = {"Cohen's h": runs.cohen_h, "Cohen's d": runs.cohen_d, "Hedges' g": runs.hedges_g}
    yield from _row("effect", ", ".join(f"{k} {v:.3f}" for k, v in sizes.items() if v is not None))


def _points(interval: Interval | None) -> str:
    return "none" if interval is None else f"{_span(interval, Unit.FRACTION)} pp"


def _analysis(anova: Anova | None, *, verbose: bool) -> Iterator[str]:
    if anova is None:
        return
    effects = {"agent": anova.agent, "domain": anova.domain, "agent × domain": anova.interaction}
    for name, effect in effects.items():
        if effect is not None:
            text = f"F({effect.df}, {anova.error_df}) = {effect.f:.3f}, η²p {effect.eta:.3f}"
            yield from _row(f"ANOVA: {name}", text, figure(effect.p))
    if anova.reason:
        yield from _row("ANOVA of the clusters' rates", anova.reason)
    if not anova.pairs:
        return
    apart = [pair for pair in anova.pairs if pair.p < ALPHA]
    yield from _row("Tukey HSD, agent × domain", f"{len(apart)} of {len(anova.pairs)} pairs differ")
    listed = anova.pairs if verbose else apart[:_PAIRS]
    for pair in listed:
        yield from fold(f"{_pair(pair)}, p {figure(pair.p)}", first="    ", rest="      ")
    if not verbose and len(apart) > _PAIRS:
        yield f"    and {len(apart) - _PAIRS} more; -v shows all pairs"


def _pair(pair: Pair) -> str:
    first, second = (f"{agent.upper()} {domain}" for agent, domain in (pair.first, pair.second))
    return f"{first} - {second}: {change(pair.difference, Unit.FRACTION)}"


def _order(label: str, rank: Rank | None) -> Iterator[str]:
    if rank is None:
        return
    if rank.value is None:
        yield from _row(label, str(rank.reason))
        return
    text = f"{rank.value:.3f}, {counted(rank.n, 'domain')}" + (f"; {rank.reason}" if rank.reason else "")
    yield from _row(label, text, "" if rank.reason or rank.p is None else figure(rank.p))


def _manners(manners: Mapping[Better, Manner]) -> Iterator[str]:
    yield ""
    yield "Intentional responses against trial and error"
    for name, row in manners.items():
        intentional, trial = (
            f"{part.successes:,} of {part.n:,} ({shown(part.value, Unit.FRACTION)})"
            for part in (row.intentional, row.trial_and_error)
        )
        text = f"intentional {intentional}, trial and error {trial}, unknown {row.unknown:,}"
        yield from _row(name.upper(), text)
        if row.difference is not None:
            yield from _row("", change(row.difference, Unit.FRACTION))


def _not_alike(compared: Comparison) -> Iterator[str]:
    if not compared.not_alike:
        return
    yield ""
    yield "Not alike, which can make a difference by itself:"
    for item in compared.not_alike:
        a, b = (text or "not stated" for text in (item.a, item.b))
        yield from fold(f"{item.item}: A {a}, B {b}", first="- ", rest="  ")


def show_drift(drifted: Drifted, *, verbose: bool) -> Iterator[str]:
    """Print a drift: the result, the signatures, what changed, the rows, the reasons."""
    drift = drifted.drift
    worse = sum(row.flagged for row in drift.behaviour)
    rows = f", in {worse} of {counted(len(drift.behaviour), 'row')}" if worse else ""
    yield from fold(f"{drift.result}: {_RESULTS[drift.result]}{rows}")
    yield from fold(f"tier: {_tier(drift.old_tier)} before, {_tier(drift.new_tier)} now")
    yield from fold(_signatures(*drifted.before, drifted.old, drifted.new))
    for name, side in (("old", drifted.old), ("new", drifted.new)):
        for doubt in side.doubts:
            yield from _item(f"the {name} passport fails a later step of verification: {doubt}", first="")
    if drift.identity:
        yield ""
        yield "Identity:"
        for change in drift.identity:
            yield from _item(f"{change.role}: {change.old or 'nothing'} -> {change.new or 'nothing'}")
    if drift.behaviour:
        yield ""
        yield from _rows_of_drift(drift, verbose=verbose)
    if drift.trend is not None:
        yield from fold(f"trend: {drift.trend.sentence}{', a decline' if drift.trend.flagged else ''}")
    yield ""
    yield "Reasons:"
    for reason in drift.reasons:
        if not reason.startswith("identity: "):
            yield from _item(reason)


def _item(text: str, *, first: str = "  ") -> Iterator[str]:
    yield from fold(text, first=first, rest=first + "  ")


def _tier(number: int) -> str:
    return f"Tier {number}" if number else "no tier"


def _signatures(*sides: Signed) -> str:
    """Say what is known of the signatures, in one sentence that stands above all figures."""
    signatures = {side.signature for side in sides} - {"none"}
    if not signatures:
        return "no signatures: all sides are bundles"
    if signatures == {"trusted"}:
        return "signatures checked: every passport is signed by an issuer whom the policy trusts"
    return "SIGNATURES NOT CHECKED: name a trust policy with --trust"


def _rows_of_drift(drift: Drift, *, verbose: bool) -> Iterator[str]:
    yield (
        f"{'row':<{_ROW}}{'old':>{_VALUE}}{'tasks':>{_RUNS}}{'new':>{_VALUE}}{'tasks':>{_RUNS}}"
        f"{'loss':>{_LOSS}} state"
    )
    for row in drift.behaviour:
        name = cut(row.name, _ROW - 1)
        loss = f"{row.found.loss:+.3f}" if row.found else "-"
        state = "not tested" if row.reason else row.state
        yield f"{name:<{_ROW}}{_cell(row.old)}{_cell(row.new)}{loss:>{_LOSS}} {state}"
        if verbose and row.is_tested:
            yield f"  {_details(row)}"
    yield from fold(
        "loss: the change for the worse, in the row's unit. WORSE is drift, BETTER a gain; EQUIVALENT: no"
        " change as large as the margin; UNDERPOWERED: none of these is shown."
    )


def _cell(side: Mean | None) -> str:
    if side is None:
        return f"{'-':>{_VALUE}}{0:>{_RUNS}}"
    return f"{side.value:>{_VALUE}.3f}{side.tasks:>{_RUNS},}"


def _details(row: Row) -> str:
    margin = "no margin" if row.margin is None else f"margin {float(row.margin):g}"
    se = row.found.se if row.found else 0.0
    return f"{margin}, se {se:.4f}, adjusted p {row.p:.2g}, at most {row.limit:+.3f}"
