"""``certkit compare`` and ``certkit drift``: two agents, and two moments of one agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import Struct, to_builtins

from certkit.api.sides import compare_bundles, drift_of_sides
from certkit.assessment.catalogue import Unit, named
from certkit.assessment.words import amount_text, p_text, rounded, value_text
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import coloured, cut, emit, entry, fold, progress
from certkit.cli.views import WORDS
from certkit.comparison.compare import ALPHA
from certkit.comparison.contrast import LEAST
from certkit.ground.errors import Exit
from certkit.ground.text import quoted, visible
from certkit.ground.wording import many, tier_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from certkit.assessment.metric import Interval
    from certkit.cli.emit import Line
    from certkit.comparison.compare import Compared, Comparison, MeasuredSide
    from certkit.comparison.drift import Drift, SideKnown
    from certkit.comparison.paper import PaperTests


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="The bundle of one agent.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The bundle of the other.")],
    novel: Annotated[
        bool, typer.Option("--novel", help="Compare the held-out faults (split novel_fault) instead.")
    ] = False,
    paper_tests: Annotated[
        bool,
        typer.Option(
            "--paper-tests",
            help="Show z, t, effect sizes, ANOVA and rank orders too, which treat runs as independent.",
        ),
    ] = False,
) -> None:
    """Compare two agents on their evidence: who succeeds more often under faults, by how much, how surely.

    Compares what both bundles cover, task by task: those that both have are pairs, and runs of one task count
    once. Tests that ignore this are shown on demand. Exit code 0: compared,
    whoever is better; 4: the bundles share nothing that could be compared; 3: a bundle is malformed.

    Example: certkit compare bundle-a bundle-b --json
    """
    compared = compare_bundles(a, b, novel=novel, paper_tests=paper_tests, progress=progress())
    emit(compared, show_comparison(compared))


def drift(
    sides: Annotated[
        list[Path],
        typer.Argument(
            metavar="[EARLIER]... OLD NEW",
            help="Passports, PDFs with one attached, or folders of bundles, oldest first. The last two are"
            " compared; with any before them the trend is told too.",
        ),
    ],
    trust: Annotated[
        Path | None,
        opt.TRUST(help="The trust policy by which signatures are checked. Default: they are not checked."),
    ] = None,
    profile: Annotated[
        str | None,
        opt.PROFILE(
            help="The profile that a bundle is judged under. Default: that of the passport, or hb-eval-2026."
        ),
    ] = None,
) -> None:
    """Compare an agent with itself at a later time: whether it is the same, and behaves as well.

    Every row is tested for a loss of at least the profile's margin over tasks. Tasks that both sides ran are
    paired, and both sides are weighted by the older side's mix of domains and faults. Of three or more, the
    last eight are also searched for a slow decline. No raw evidence of a passport is needed.

    Exit code 0: STABLE; 5: DRIFTED or IDENTITY_CHANGED; 4: UNDERPOWERED or NOT_COMPARABLE.

    Example: certkit drift january.json april.json --trust trust.json
    """
    if len(sides) < 2:  # noqa: PLR2004 - a comparison takes two
        raise typer.BadParameter("an older and a newer one", param_hint="OLD NEW")
    compared = drift_of_sides(
        sides,
        profile=profile,
        trust=context.load_policy(trust) if trust else None,
        progress=progress(),
    )
    emit(compared, show_drift(compared))


_NAME: Final = 17
_LABEL: Final = 36
_ROW, _VALUE, _RUNS, _LOSS = 32, 6, 8, 7


def show_comparison(compared: Comparison) -> Iterator[Line]:
    """Print a comparison."""
    yield from coloured(fold(compared.answer.words), "bold")
    yield ""
    main = compared.answer.metric
    for name, bundle, side in (("A", compared.a, compared.main.a), ("B", compared.b, compared.main.b)):
        agent = quoted(f"{bundle.agent.name} {bundle.agent.version}")
        yield from fold(f"{name}: {agent}, {_rate(side)}", rest="   ")
        yield f"   {bundle.bundle}"
    if compared.domains:
        yield from _table("domain", compared.domains)
    if isinstance(compared.paper_tests, Struct):
        yield from _paper_tests(compared.paper_tests, main)
    beside = {name: row for name, row in compared.metrics.items() if row.matched and name != main}
    if beside:
        yield from _table("metric", beside)
    if compared.not_alike:
        yield ""
        yield "Not alike, which can make a difference by itself:"
    for item in compared.not_alike:
        a, b = (text or "not stated" for text in (item.a, item.b))
        yield from fold(f"{item.item}: A {a}, B {b}", first="- ", rest="  ")
    if compared.caveats:
        yield ""
        yield "To bear in mind:"
        for caveat in compared.caveats:
            yield from fold(caveat, first="- ", rest="  ")


def _rate(side: MeasuredSide) -> str:
    if side.value is None:
        return "not measured"
    return f"{side.successes:,} of {many(side.n)} succeeded, {value_text(side.value, Unit.FRACTION)}"


def _table(heading: str, rows: Mapping[str, Compared]) -> Iterator[str]:
    yield ""
    yield f"{heading:<{_NAME}}{'A':>8}{'B':>8}{'A - B':>13}{'95 % CI':>17}{'tasks':>7}{'adj. p':>9}"
    for name, row in rows.items():
        line, matched = f"{cut(visible(name), _NAME - 1):<{_NAME}}", row.matched
        if matched is None:
            yield line + f"{_value(row.a, row.unit):>8}{_value(row.b, row.unit):>8}{'not compared':>14}"
            continue
        line += f"{value_text(matched.a, row.unit):>8}{value_text(matched.b, row.unit):>8}"
        line += f"{amount_text(matched.difference, row.unit, sign=True):>13}"
        line += f"{_span(matched.interval, row.unit):>17}"
        line += f"{min(matched.tasks):>7,}"
        yield line + f"{'few' if row.p_adjusted is None else p_text(row.p_adjusted):>9}"
    yield from fold(
        f"A and B over what both cover; p adjusted for {many(len(rows), heading)};"
        f" few: not tested below {LEAST} tasks a side"
    )


def _value(side: MeasuredSide, unit: Unit) -> str:
    return "–" if side.value is None else value_text(side.value, unit)


def _span(interval: Interval | None, unit: Unit) -> str:
    if interval is None:
        return "–"
    if unit is Unit.FRACTION:
        return f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"
    return f"{amount_text(interval.low, unit, sign=True)} to {amount_text(interval.high, unit, sign=True)}"


def _paper_tests(tests: PaperTests, main: str) -> Iterator[str]:
    """Print every test by the names of its figures; the pairs of cells are in the document alone."""
    yield ""
    yield "Tests as papers print them"
    yield from fold(f"To bear in mind: {tests.warning}.")
    parts = {"": tests.metrics.get(main), "ANOVA, ": tests.anova, "domain orders, ": tests}
    for group, part in parts.items():
        for name, figures in (to_builtins(part) or {}).items():
            pairs = figures.items() if isinstance(figures, dict) else [("", figures)]
            if told := [f"{key} {value:.4g}" for key, value in pairs if isinstance(value, float | int)]:
                yield from entry(f"  {group}{name.replace('_', ' ')}", ", ".join(told), _LABEL)
    if tests.anova is not None:
        apart = sum(pair.p < ALPHA for pair in tests.anova.pairs)
        text = f"{apart} of {len(tests.anova.pairs)} pairs differ; --json lists them"
        yield from entry("  Tukey HSD, agent × domain", tests.anova.reason or text, _LABEL)


_STYLES: Final = {Exit.OK: "bold green", Exit.DRIFT: "bold red", Exit.INSUFFICIENT: "bold yellow"}


def show_drift(drift: Drift) -> Iterator[Line]:
    """Print a drift: the result, the signatures, what changed, the rows, the reasons."""
    worse = sum(row.flagged for row in drift.behaviour)
    rows = f", in {worse} of {many(len(drift.behaviour), 'row')}" if worse else ""
    yield from coloured(fold(f"{drift.result}: {WORDS[drift.result]}{rows}"), _STYLES[drift.exit_code])
    yield from fold(f"tier: {tier_name(drift.tier.old)} before, {tier_name(drift.tier.new)} now")
    if drift.sides:
        yield from fold(_signatures(*drift.sides))
    if drift.identity:
        yield ""
        yield "Identity:"
        for change in drift.identity:
            yield from _item(f"{change.role}: {change.old or 'nothing'} -> {change.new or 'nothing'}")
    if drift.behaviour:
        yield ""
        yield from _rows_of_drift(drift)
    if drift.trend is not None:
        yield from fold(f"trend: {drift.trend.sentence}{', a decline' if drift.trend.flagged else ''}")
    yield ""
    yield "Reasons:"
    for reason in drift.reasons:
        if not reason.startswith("identity: "):
            yield from _item(reason)


def _item(text: str, *, first: str = "  ") -> Iterator[str]:
    yield from fold(text, first=first, rest=first + "  ")


def _signatures(*sides: SideKnown) -> str:
    """Say what is known of the signatures, in one sentence that stands above all figures."""
    signatures = {side.signature for side in sides} - {"none"}
    if not signatures:
        return "no signatures: all sides are bundles"
    if signatures == {"trusted"}:
        return "signatures checked: every passport is signed by an issuer whom the policy trusts"
    return "SIGNATURES NOT CHECKED: name a trust policy with --trust"


def _rows_of_drift(drift: Drift) -> Iterator[str]:
    yield (
        f"{'row':<{_ROW}}{'old':>{_VALUE}}{'tasks':>{_RUNS}}{'new':>{_VALUE}}{'tasks':>{_RUNS}}"
        f"{'loss':>{_LOSS}} state"
    )
    for row in drift.behaviour:
        name = named(row.metric) if row.name == row.criterion else row.name
        if len(name) >= _ROW:
            yield from fold(visible(name))
            name = ""
        loss = "-" if row.difference is None else f"{row.difference:+.3f}"
        state = "not tested" if row.reason else row.state
        sides = _cell(row.old, row.tasks.old) + _cell(row.new, row.tasks.new)
        yield f"{name:<{_ROW}}{sides}{loss:>{_LOSS}} {state}"
    yield from fold(
        "loss: the change for the worse, in the row's unit. WORSE is drift, BETTER a gain; EQUIVALENT: no"
        " change as large as the margin; UNDERPOWERED: too few tasks to tell."
    )


def _cell(value: float | None, tasks: int) -> str:
    shown = "-" if value is None else rounded(value, 3)
    return f"{shown:>{_VALUE}}{tasks:>{_RUNS},}"
