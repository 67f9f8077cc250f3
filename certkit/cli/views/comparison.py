"""A comparison as people read it: the answer, the tables, the tests, the caveats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.compare.comparison import ALPHA
from certkit.assessment.compare.words import change, figure, signed
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.words import shown
from certkit.cli import output
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.compare.anova import Anova, Pair
    from certkit.assessment.compare.comparison import Compared, Comparison, Domain, Manner, Side
    from certkit.assessment.compare.effects import Test
    from certkit.assessment.compare.matched import Matched
    from certkit.assessment.compare.orders import Rank
    from certkit.assessment.statistics.estimators import Interval
    from certkit.assessment.statistics.resampling import Bootstrap

_NAME: Final = 18
_LABEL: Final = 34
_PAIRS: Final = 5
"""Pairs of cells that are listed unless all are asked for."""


def show(found: Comparison, *, verbose: bool, paper_tests: bool) -> None:
    """Print a comparison; `paper_tests` adds those that ignore clusters, `verbose` every pair of cells."""
    output.wrapped(found.answer)
    output.say()
    for name, facts, side in zip("AB", found.facts, (found.main.a, found.main.b), strict=True):
        agent = facts.manifest.agent
        output.wrapped(f"{name}: {agent.name} {agent.version}, {_rate(side)}", rest="   ")
        output.say(f"   {facts.digest}")
    if found.domains:
        _table(
            "domain",
            [(row.domain, row, Unit.FRACTION) for row in found.domains],
            f"Holm: p adjusted for {output.counted(_tested(found.domains), 'domain')}",
        )
    if found.main.matched is not None:
        _tests(found, found.main.matched)
        if paper_tests:
            _paper_tests(found, verbose=verbose)
    if found.manners is not None:
        _manners(found.manners)
    others = [(row.metric, row, CATALOGUE[row.metric].unit) for row in found.metrics[1:] if row.matched]
    if others:
        _table("metric", others, f"Holm: p adjusted for {output.counted(len(others), 'metric')}")
    _not_alike(found)
    if found.caveats:
        output.say()
        output.say("To bear in mind:")
        for caveat in found.caveats:
            output.wrapped(caveat, first="- ", rest="  ")


def _rate(side: Side) -> str:
    if side.value is None:
        return "not measured"
    return f"{side.successes:,} of {side.n:,} runs succeeded, {shown(side.value, Unit.FRACTION)}"


def _tested(rows: tuple[Domain, ...]) -> int:
    return sum(row.matched is not None for row in rows)


def _table(what: str, rows: Sequence[tuple[str, Compared | Domain, Unit]], legend: str) -> None:
    output.say()
    heads = f"{'A':>8}{'B':>8}{'A - B':>11}{'95 % CI':>18}{'p':>9}{'Holm':>8}"
    output.say(f"{what:<{_NAME}}{heads}")
    few = False
    for name, row, unit in rows:
        line = f"{output.cut(visible(name), _NAME - 1):<{_NAME}}"
        if row.matched is None:
            line += f"{_value(row.a, unit):>8}{_value(row.b, unit):>8}{'not compared':>14}"
            output.say(line)
            continue
        of = row.matched
        mark = "†" if of.permutation.least >= ALPHA else " "
        few |= mark == "†"
        line += f"{shown(of.a, unit):>8}{shown(of.b, unit):>8}{change(of.difference, unit):>11}"
        line += f"{_span(of.robust.interval, unit):>18}{figure(of.permutation.p):>8}{mark}"
        line += f"{'' if row.p_holm is None else figure(row.p_holm):>7}"
        output.say(line.rstrip())
    output.wrapped(f"A and B matched on what both cover; p: cluster permutation; {legend}")
    if few:
        output.wrapped("† no arrangement of these clusters has p < 0.05: too few to show a difference")


def _value(side: Side, unit: Unit) -> str:
    return "–" if side.value is None else shown(side.value, unit)


def _span(interval: Interval | None, unit: Unit) -> str:
    if interval is None:
        return "–"
    if unit is Unit.FRACTION:
        return f"{signed(100 * interval.low, 1)} to {signed(100 * interval.high, 1)}"
    return f"{change(interval.low, unit)} to {change(interval.high, unit)}"


def _tests(found: Comparison, of: Matched) -> None:
    output.say()
    output.say(f"Tests of {found.main.metric}")
    test = of.permutation
    how = "all" if test.method == "exact" else f"seed {test.seed},"
    _row("cluster permutation", f"{how} {test.arrangements:,} arrangements", figure(test.p))
    robust = of.robust
    if robust.t is not None and robust.df is not None and robust.p is not None:
        _row("cluster-robust t", f"t({robust.df:.1f}) = {robust.t:.3f}", figure(robust.p))
    else:
        _row("cluster-robust t", str(robust.reason))
    output.say()
    output.say("95 % intervals")
    _row("A - B, cluster-robust t", _points(robust.interval))
    _row("A - B, cluster bootstrap", _points(of.bootstrap) + f" ({found.draws:,} draws, seed {found.seed})")
    names = {
        "a": "A, bootstrap by cluster",
        "b": "B, bootstrap by cluster",
        "together_by_task": "A and B together, by cluster",
        "together_by_agent": "A and B together, by agent",
        "together_by_both": "A and B together, by both",
    }
    for key, label in names.items():
        _row(label, _share(found.rates[key]))
    output.wrapped("Two agents are too few for an interval by agent to say more than where the two lie.")


def _paper_tests(found: Comparison, *, verbose: bool) -> None:
    """Print the tests that the papers use."""
    output.say()
    output.say("Tests as papers print them")
    output.wrapped(
        "Those marked * take runs for independent, which repeats of a task are not: they are too sure."
    )
    if (runs := found.main.runs) is not None:
        if runs.z is not None:
            _row("two-proportion z, all runs *", f"z = {runs.z.statistic:.3f}", figure(runs.z.p))
        _row("Welch's t, all runs *", *_welch(runs.welch))
        sizes = {"Cohen's h": runs.cohen_h, "Cohen's d": runs.cohen_d, "Hedges' g": runs.hedges_g}
        if runs.newcombe is not None:
            _row("A - B, Newcombe, all runs *", _points(runs.newcombe))
        _row("effect, all runs", ", ".join(f"{k} {v:.3f}" for k, v in sizes.items() if v is not None))
    _analysis(found.anova, verbose=verbose)
    _order("domain orders, Spearman's ρ", found.spearman)
    _order("domain orders, Kendall's τ-b", found.kendall)


def _row(label: str, text: str, p: str = "") -> None:
    lead = f"  {label:<{_LABEL}}"
    output.wrapped(text + (f"  p {p}" if p else ""), first=lead, rest=" " * len(lead))


def _welch(test: Test | None) -> tuple[str, str]:
    if test is None:
        return "nothing varies", ""
    return f"t({test.df:.1f}) = {test.statistic:.3f}", figure(test.p)


def _points(interval: Interval | None) -> str:
    return "none" if interval is None else f"{_span(interval, Unit.FRACTION)} pp"


def _share(interval: Bootstrap) -> str:
    if interval.low is None or interval.high is None:
        return "none: one cluster shows no spread"
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"


def _analysis(found: Anova | None, *, verbose: bool) -> None:
    if found is None:
        return
    effects = {"agent": found.agent, "domain": found.domain, "agent × domain": found.interaction}
    for name, effect in effects.items():
        if effect is not None:
            text = f"F({effect.df}, {found.error_df}) = {effect.f:.3f}, η²p {effect.eta:.3f}"
            _row(f"ANOVA: {name}", text, figure(effect.p))
    if found.reason:
        _row("ANOVA of the clusters' rates", found.reason)
    if not found.pairs:
        return
    apart = [pair for pair in found.pairs if pair.p < ALPHA]
    _row("Tukey HSD, agent × domain", f"{len(apart)} of {len(found.pairs)} pairs differ")
    listed = found.pairs if verbose else apart[:_PAIRS]
    for pair in listed:
        output.wrapped(f"{_pair(pair)}, p {figure(pair.p)}", first="    ", rest="      ")
    if not verbose and len(apart) > _PAIRS:
        output.say(f"    and {len(apart) - _PAIRS} more; -v shows all pairs")


def _pair(pair: Pair) -> str:
    one, other = (f"{agent.upper()} {domain}" for agent, domain in (pair.first, pair.second))
    return f"{one} - {other}: {change(pair.difference, Unit.FRACTION)}"


def _order(label: str, rank: Rank | None) -> None:
    if rank is None:
        return
    if rank.value is None:
        _row(label, str(rank.reason))
        return
    text = f"{rank.value:.3f}, {output.counted(rank.n, 'domain')}" + (
        f"; {rank.reason}" if rank.reason else ""
    )
    _row(label, text, "" if rank.reason or rank.p is None else figure(rank.p))


def _manners(manners: tuple[Manner, Manner]) -> None:
    output.say()
    output.say("Intentional responses against trial and error *")
    for name, row in zip("AB", manners, strict=True):
        intentional, trial = (
            f"{s:,} of {n:,} ({shown(s / n if n else None, Unit.FRACTION)})"
            for s, n in (row.intentional, row.trial_and_error)
        )
        _row(name, f"intentional {intentional}, trial and error {trial}, unknown {row.unknown:,}")
        if row.difference is not None and row.z is not None:
            text = f"{change(row.difference, Unit.FRACTION)}, 95 % CI {_points(row.newcombe)}"
            _row("", f"{text}, z = {row.z.statistic:.3f}, Cohen's h {row.cohen_h:.3f}", figure(row.z.p))


def _not_alike(found: Comparison) -> None:
    if not found.not_alike:
        return
    output.say()
    output.say("Not alike, which can make a difference by itself:")
    for item in found.not_alike:
        a, b = (text or "not stated" for text in (item.a, item.b))
        output.wrapped(f"{item.item}: A {a}, B {b}", first="- ", rest="  ")
