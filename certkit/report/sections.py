"""What the sections beside results show: rows of their tables, their sentences and figures.

What the records cover and rest on; what people said of the use; nodes, challenges, assumptions; how sure the
results are, where runs failed, and the commitments behind the answers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import floor
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from certkit.assessment.findings.provenance import TASKS
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.csi import LEVEL
from certkit.assessment.metrics.metric import percent
from certkit.assessment.statistics.posterior import PRIORS
from certkit.bundle.context import Assumption
from certkit.ground import canonical, wording
from certkit.ground.text import visible
from certkit.ground.wording import many
from certkit.record.record import Condition, Split
from certkit.report import results, words
from certkit.report.argument.build import ASSUMPTIONS
from certkit.report.argument.challenges import unraised as unraised  # noqa: PLC0414 - templates call it
from certkit.report.argument.graph import Kind, State
from certkit.report.svg import BLUE, Bar, Line, bars, curves, judged, posterior
from certkit.summary.summary import PEI_SCALE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from certkit.bundle.context import Context, Hazard
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case, Measured
    from certkit.report.results import Document

Value = str | tuple[str, str]
"""The text of a cell, or its text and its style."""

MOST_CELLS: Final = 10
MOST_CONDITIONS: Final = 8
"""Columns of the coverage map that fit a page."""
_PLACES: Final[dict[str, int]] = {condition: place for place, condition in enumerate(Condition)}
_SHADES: Final = (0.4, 0.6, 0.8, 0.95)
_SMALL: Final = 10


def coverage(
    document: Document, split: str = Split.STANDARD
) -> tuple[dict[str, int], list[tuple[Value, ...]], int]:
    """Return successes of runs for each domain and condition, shaded by rate; blanks are gaps.

    They come as the widths of columns, the rows, and how many conditions have no room.
    """
    cells = [cell for cell in document["breakdown"] if cell["split"] == split]
    every = sorted({cell["condition"] for cell in cells}, key=lambda name: (_PLACES.get(name, 99), name))
    by_domain: dict[str, dict[str, dict[str, Any]]] = {}
    for cell in cells:
        by_domain.setdefault(cell["domain"], {})[cell["condition"]] = cell
    shown = every[:MOST_CONDITIONS]
    rows = [
        (domain, *(_covered(by_condition.get(condition)) for condition in shown))
        for domain, by_condition in sorted(by_domain.items())
    ]
    width = min(15, 80 // max(1, len(shown)))
    heads = [name.replace("_", " ") for name in shown]
    widths = {"domain": 100 - width * len(heads)} | dict.fromkeys(heads, width)
    return widths, rows, len(every) - len(shown)


def _covered(cell: dict[str, Any] | None) -> Value:
    if cell is None or not cell["runs"]:
        return "none", "gap"
    rate = cell["success"] / cell["runs"]
    shade = sum(rate >= at for at in _SHADES)
    small = " small" if cell["runs"] < _SMALL else ""
    return f"{cell['success']:,}/{cell['runs']:,}", f"shade{shade}{small}"


def gaps(case: Case) -> Iterator[str]:
    """Yield which conditions of the record format no run covers, and which domains miss some."""
    seen, domains = ({cell[name] for cell in case.cells} for name in ("condition", "domain"))
    absent = [condition.value.replace("_", " ") for condition in Condition if condition not in seen]
    if absent:
        yield f"No run in any domain: {', '.join(absent)}."
    if holes := len(domains) * len(seen) - len(case.cells):
        yield f"{many(holes, 'cell')} of the map without a run; a rate there is unknown, not 0."
    if small := sum(cell["runs"] < _SMALL for cell in case.cells):
        yield f"{many(small, 'cell')} with fewer than {_SMALL} runs (dotted underline)."


def register(case: Case) -> Iterator[tuple[str, ...]]:
    """Yield what the report rests on, each with its digest."""
    document, signed = case.document, case.signed
    bundle, profile = document["bundle"], document["profile"]
    sealed = "sealed" if bundle["sealed"] else "NOT sealed"
    yield "E-1", f"evidence bundle, {sealed}, {bundle['origin']}", bundle["digest"]
    yield "E-2", "identity of the agent", document["agent"]["digest"]
    yield "E-3", f"profile {profile['id']}", profile["digest"]
    yield "E-4", "assessment (the bytes of assessment.json)", canonical.digest(case.data)
    passport = "no passport: nothing has been signed"
    if signed:
        issuer = signed.predicate.issuer.name
        passport = f"signed passport that names {issuer} as its issuer (digest of its payload)"
    yield "E-5", passport, signed.id if signed else "–"
    yield from _bundles(document)


def _bundles(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield the bundles of an accumulation with their periods, their rate and the tier of each alone."""
    for number, bundle in enumerate(document.get("bundles", ()), 1):
        start, end = bundle["first_run"], bundle["last_run"]
        if bundle["declared_from"] or bundle["declared_to"] or start is None:
            start, end = bundle["declared_from"], bundle["declared_to"]
        table_tier, bounded = (wording.tier(bundle[reading]["tier"]) for reading in ("table", "bounded"))
        what = (
            f"bundle {number}, {start or 'beginning not stated'} to {end or 'end not stated'}:"
            f" {many(bundle['records'], 'record')},"
            f" {bundle['successes']:,} of {bundle['fault_runs']:,} runs under faults succeeded;"
            f" alone {table_tier} by the table, {bounded} by bounds"
        )
        yield (f"E-1.{number}", what, bundle["digest"])


def domains(case: Case) -> Iterator[tuple[str, ...]]:
    """Yield each domain of the use with whether it was tested, and the tested ones that no use names."""
    wanted, tested = case.wanted, case.tested
    for name in sorted(wanted | tested):
        told = "tested" if name in tested else "not tested"
        yield name, "yes" if name in wanted else "not stated", f"{told} under faults"


# A severity that nobody stated may be the gravest, and stands behind what is known to be.
_SEVERITIES: Final = ("catastrophic", None, "critical", "marginal", "negligible")


def gravest(case: Case, argument: Argument) -> list[Hazard]:
    """Return the hazards by the state of their goal, the worst first, and then by severity."""
    states, has = list(State), argument.states

    def grave(hazard: Hazard) -> tuple[int, int]:
        return states.index(has[f"G2.{hazard.id}"]), _SEVERITIES.index(hazard.severity)

    return sorted(case.context.hazards or (), key=grave)


def hazards(case: Case, argument: Argument) -> Iterator[tuple[str | None, ...]]:
    """Yield every hazard with what was measured in its conditions and domains, and its state."""
    mitigations = {item.id: item for item in case.context.mitigations or ()}
    for hazard in gravest(case, argument):
        yield (
            Markup('<span id="h-{0}">{0}: {1}</span>').format(
                hazard.id, visible(hazard.title or "not named")
            ),
            hazard.harm and words.cut(hazard.harm),
            hazard.severity,
            words.plain(words.listed(hazard.criteria)) if hazard.criteria else "no criterion",
            _failures(case.measured[hazard.id], hazard),
            words.rate(hazard.tolerable.at_most) if hazard.tolerable else None,
            words.cut("; ".join(mitigations[name].what or name for name in hazard.mitigations or ())),
            judged(argument.states[f"G2.{hazard.id}"]),
        )


def _failures(measured: Measured, hazard: Hazard) -> str:
    limit = hazard.tolerable.at_most if hazard.tolerable else None
    bound = "no bound" if measured.bound is None else f"≤\u00a0{words.share(measured.bound, limit)}"
    return f"{measured.failures:,} of {measured.runs:,} runs ({words.cut(measured.where)}); {bound}"


MOST_BARS: Final = 12
"""Hazards that the figure shows."""


def hazard_bars(case: Case, argument: Argument) -> Markup | None:
    """Return each hazard's failures with their bound against what is tolerable; None without a hazard."""
    listed = gravest(case, argument)
    drawn = [
        Bar(
            label=hazard.id[:24],
            share=measured.failures / measured.runs if measured.runs else None,
            bound=measured.bound,
            tolerable=hazard.tolerable.at_most if hazard.tolerable else None,
            state=argument.states[f"G2.{hazard.id}"],
        )
        for hazard in listed[:MOST_BARS]
        for measured in (case.measured[hazard.id],)
    ]
    said = [f"{hazard.id}: {_failures(case.measured[hazard.id], hazard)}" for hazard in listed]
    said[MOST_BARS:] = [f"{len(said) - MOST_BARS} more are not drawn"] if said[MOST_BARS:] else []
    return bars(drawn, title=f"Failures of each hazard: {'; '.join(said)}") if drawn else None


def review(case: Case) -> Iterator[tuple[str | None, ...]]:
    """Yield who looked at the argument, at what, and what they said."""
    for item in case.context.reviewers or ():
        comments = "; ".join(
            f"{comment.node}: {comment.text or 'no text'}"
            f" ({'resolved' if comment.resolved else 'NOT resolved'})"
            for comment in item.comments or ()
        )
        relation = case.context.by_id[item.person].relation
        yield case.context.called(item.person), relation, item.scope, item.date, comments or "none"


def indicators(context: Context) -> Iterator[tuple[str | None, ...]]:
    """Yield what is watched in operation, by whom, and what is done then."""
    for item in context.monitoring or ():
        owner = context.called(item.owner) if item.owner else None
        yield item.claim, item.measure, item.limit, item.window, owner, item.action


def assumptions(context: Context) -> Iterator[tuple[str | None, ...]]:
    """Yield the assumptions with who owns each and why; those of the use stand behind the report's own."""
    given = {item.id: item for item in context.assumptions or ()}
    texts: dict[str, tuple[str | None, str | None]] = {
        f"A-{number}": pair for number, pair in enumerate(ASSUMPTIONS, start=1)
    }
    texts |= {name: (item.text, item.falsified_by) for name, item in given.items() if item.text}
    for name, (text, usual) in texts.items():
        item = given.get(name, Assumption(id=name))
        owner = context.called(item.owner) if item.owner else None
        yield name, text, item.falsified_by or usual, owner, item.rationale


def challenges(case: Case, argument: Argument, *, stale: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield every challenge with its answer, sustained and open ones first."""
    for item in argument.challenges:
        if item.stale is stale:
            anchor = Markup('<span id="ch-{0}">{0}</span>').format(item.code)
            said = item.said(case.context) or "–"
            yield anchor, item.text, item.target, f"{item.state} ({item.kind})", said


def nodes(argument: Argument) -> Iterator[tuple[str, ...]]:
    """Yield the goals and strategies with what each rests on; the attached argument has every node."""
    graph = argument.graph
    # Each goal's own part stands below it: G2, S2, G2.H-1, then G3.
    for node in sorted(graph.nodes, key=lambda node: node.id[1:2]):
        if node.state and node.kind in {Kind.GOAL, Kind.STRATEGY}:
            below = (*graph.below(node.id), *graph.beside(node.id))
            yield (
                Markup('<span id="g-{0}">{0}</span>').format(node.id),
                node.state,
                node.text,
                ", ".join(name for name in below if "Sn-" not in name) or ("evidence" if below else "–"),
                ", ".join(name.removeprefix("ch-") for name in graph.against(node.id)) or "–",
            )


def levels(document: Document) -> Iterator[tuple[str | None, ...]]:
    """Yield the source's SIL and ASIL guidance with the arithmetic beside it; nothing without guidance."""
    missing = "hazard and risk analysis, target failure measure, systematic capability, architecture"
    for number, tier in sorted(document["tiers"].items()):
        if given := tier["guidance"]:
            texts = (given.get(name) for name in ("sil", "asil", "arithmetic"))
            yield f"Tier\u00a0{number}", *texts, missing


def posterior_figure(document: Document) -> Markup | None:
    """Return the posterior of the success rate under faults, None without fault runs."""
    metric = document["metrics"]["posterior"]
    tau = sorted((int(tier), float(at)) for tier, at in metric.get("tau", {}).items())
    if metric["state"] == "unmeasured" or not metric["n"] or not tau:
        return None
    parts = "; ".join(
        f"P(θ > {at:g}) = {words.probability(metric['by_tier'][str(tier)])}" for tier, at in tau
    )
    title = f"Posterior of the success rate under faults, {metric['s']:,} of {metric['n']:,} runs: {parts}"
    return posterior(metric["s"], metric["n"], tau, title=title)


def posteriors(document: Document) -> Iterator[tuple[str, ...]]:
    """Yield P(θ > τ) of every tier: by runs, by tasks under each prior, at any time; and what is asked."""
    metric, fragility = document["metrics"]["posterior"], document["fragility"]["posterior"]
    limits = {
        row["tier"]: results.asked(row) for row in document["criteria"] if CATALOGUE[row["metric"]].tau_of
    }
    for tier, at in sorted(metric.get("tau", {}).items()):
        shown = [words.probability(metric["by_tier"][tier])]
        if by_tasks := fragility.get(tier):
            every = (*(by_tasks["priors"][prior] for prior in PRIORS), by_tasks["anytime_p"])
            shown += map(words.probability, every)
        else:
            shown += ["–"] * (len(PRIORS) + 1)
        yield f"Tier\u00a0{tier}", f"{at:g}", *shown, limits.get(int(tier), "not specified")


def bounds(document: Document, tier: int) -> Iterator[tuple[str, ...]]:
    """Yield how the bound of every row of a tier was got, and what it rests on."""
    for row in results.rows(document, tier):
        if bounded := row["bounded"]:
            rests_on = bounded["reason"] or bounded["rests_on"] or "–"
            limit = results.bound(row) or "–"
            yield results.name(row), percent(bounded["confidence"]), limit, rests_on


def weakest(document: Document) -> list[tuple[object, ...]]:
    """Return the domains and conditions that failed most often, at most `MOST_CELLS`, worst first."""
    cells = [cell for cell in document["breakdown"] if cell["success"] < cell["runs"]]
    cells.sort(key=lambda cell: (cell["success"] / cell["runs"], -cell["runs"]))
    return [
        (
            cell["domain"],
            cell["condition"].replace("_", " "),
            cell["runs"] - cell["success"],
            cell["runs"],
            words.value(cell["success"] / cell["runs"], Unit.FRACTION),
        )
        for cell in cells[:MOST_CELLS]
    ]


def episodes(document: Document) -> Iterator[str]:
    """Yield other known ways to fail: under cascades, with violations, by stopping short."""
    cascade = document["metrics"].get("cascade_penalty")
    if cascade and cascade["value"] is not None:
        fall = words.value(cascade["value"], Unit.PP)
        yield f"Under a cascade of faults success is {fall} below that under single faults."
    told = {"success-with-violations", "harness-errors", "success-with-attack"}
    for item in document["findings"]:
        if item["code"] in told:
            yield f"{words.capital(item['message'])}."


def run_chart(case: Case) -> tuple[Markup, str] | None:
    """Return how runs went over the tenths of their order, and what that shows; None without an order."""
    window = case.window
    if window is None or window.order is None or not window.stretches:
        return None
    parts = list(enumerate(window.stretches, 1))
    success = [(at, 1 - part.failures / part.runs) for at, part in parts]
    planned = [(at, part.pei_fixed / PEI_SCALE / part.pei_n) for at, part in parts if part.pei_n]
    guided = [
        (at, part.irs_yes / (part.irs_yes + part.irs_no)) for at, part in parts if part.irs_yes + part.irs_no
    ]
    lines = [
        Line(label="runs that succeeded", points=success, stroke=BLUE),
        Line(label="mean planning efficiency", points=planned, dash="6 3"),
        Line(label="recoveries guided by memory", points=guided, dash="2 3"),
    ]
    p = case.document["metrics"].get("csi_windowed", {}).get("p_slope")
    trend = "no trend was tested" if p is None else f"failures rise (p = {p:.2g})"
    if p is not None and p >= LEVEL:
        trend = f"no rise of failures beyond chance (p = {p:.2g})"
    first, last = (words.value(success[at][1], Unit.FRACTION) for at in (0, -1))
    said = (
        f"Over {window.runs:,} runs in order of {window.order.replace('_', ' ')}: {first} succeeded in the"
        f" first tenth and {last} in the last; {trend}"
    )
    least = floor(10 * min(0.9, *(y for line in lines for _, y in line.points))) / 10
    up = [(at, f"{at:.2f}") for at in (least, (1 + least) / 2, 1.0)]
    across = [(at, str(at)) for at, _ in parts]
    drawn = [line for line in lines if line.points]
    return curves("runs", drawn, across, up, caption="tenths of the runs, oldest first", title=said), said


def commitments(scored: Mapping[str, Any]) -> Iterator[str]:
    """Yield what commitment integrity shows; it moves no tier."""
    success, accuracy, core = scored["success"], scored["accuracy"], scored["core"]
    yield (
        f"The agent answered {success['successes']:,} of {success['n']:,} tasks rightly. Asked for the "
        f"rule, the source or the update behind an answer, it held {accuracy['matched']:,} of "
        f"{accuracy['n']:,} probes ({accuracy['unclear']:,} replies were unclear)."
    )
    if hollow := len(scored["hollow"]["tasks"]):
        yield f"{hollow:,} of {success['successes']:,} successes hold fewer than half of their probes."
    value = "unmeasured, since replies are missing" if core["value"] is None else f"{core['value']:.3f}"
    if core["interval"]:
        value += f" (95 % interval {core['interval'][0]:.3f} to {core['interval'][1]:.3f})"
    yield (
        f"Commitment integrity (HCCIS-CORE) is {value}; on these tasks agents reach {core['floor']:.3f} to "
        f"{core['ceiling']:.3f}. It moves no tier and says nothing about safety."
    )
    if people := scored["raters"]["people"]:
        yield f"The core rests on the ratings of {many(people, 'rater')}."
    if reason := TASKS.get(scored["seed"]):
        yield f"{reason[:1].upper()}{reason[1:]}."


def families(scored: Mapping[str, Any]) -> list[tuple[str, Markup, Markup]]:
    """Return tasks answered rightly and probes held in each family of probes, fewest probes held first."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for cell in scored["by_cell"]:
        names = ("successes", "tasks", "matched", "probes")
        counts[cell["family"]].update({name: cell[name] for name in names})
    ordered = sorted(counts.items(), key=lambda item: item[1]["matched"] / item[1]["probes"])
    return [
        (family.replace("_", " "), _bar(n["successes"], n["tasks"]), _bar(n["matched"], n["probes"]))
        for family, n in ordered
    ]


def _bar(part: int, whole: int) -> Markup:
    bar = Markup('{:,} of {:,}<i class="bar" style="width:{:.0f}%"></i>')
    return bar.format(part, whole, 100 * part / whole)
