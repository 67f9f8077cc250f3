"""What the sections beside results show: rows of their tables, their sentences and figures.

What the records cover and rest on; what people said of the use; nodes, challenges, assumptions; how sure the
results are, where runs failed, and the commitments behind the answers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import floor
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from certkit.assessment import bounds, raters
from certkit.assessment.answer import judge_texts, traces_text
from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.variation import variation
from certkit.assessment.words import finding_text, percent, reason_text, rounded
from certkit.ground import canonical
from certkit.ground.text import visible
from certkit.ground.wording import many, tier_name
from certkit.record.record import Condition, Split
from certkit.report import results, words
from certkit.report.argument.case import TEXTS
from certkit.report.argument.challenges import CLASS_WORDS, STATUS_WORDS, ChallengeStatus
from certkit.report.argument.columns import drawn
from certkit.report.argument.graph import NodeKind, NodeState
from certkit.report.context import Assumption
from certkit.report.figures import BLUE, Polyline, ShareBar, bars, curves, judged, posterior, word
from certkit.summary.summary import Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.assessment.evaluation import Evaluation
    from certkit.record.record import Record
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import HazardEvents, UseCase
    from certkit.report.context import Context, Hazard
    from certkit.summary.summary import Cell, LatestRun, Summary

CellText = str | tuple[str, str]
"""The text of a cell, or its text and its style."""

MOST_CELLS: Final = 6
MOST_CONDITIONS: Final = 8
"""Columns of the coverage map that fit a page."""
PLACES: Final[dict[str, int]] = {condition: place for place, condition in enumerate(Condition)}
_SHADES: Final = (0.4, 0.6, 0.8, 0.95)
_SMALL: Final = 10


def breakdown(summary: Summary, split: Split = Split.STANDARD) -> dict[tuple[str, str], Tally]:
    """Return the counts of a split by domain and condition, sorted."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in summary.select(split):
        groups.setdefault((cell.domain, cell.condition), []).append(cell)
    return {key: Tally.total(groups[key]) for key in sorted(groups)}


def coverage(
    evaluation: Evaluation, split: str = Split.STANDARD
) -> tuple[dict[str, int], list[tuple[CellText, ...]], int]:
    """Return successes of runs for each domain and condition, shaded by rate; blanks are gaps.

    They come as the widths of columns, the rows, and how many conditions have no room.
    """
    counts = breakdown(evaluation.summary, Split(split))
    conditions = sorted({name for _, name in counts}, key=lambda name: (PLACES.get(name, 99), name))
    columns = conditions[:MOST_CONDITIONS]
    rows: list[tuple[CellText, ...]] = [
        (domain, *(covered(counts.get((domain, condition))) for condition in columns))
        for domain in sorted({domain for domain, _ in counts})
    ]
    width = min(15, 80 // max(1, len(columns)))
    heads = [name.replace("_", " ") for name in columns]
    widths = {"domain": 100 - width * len(heads)} | dict.fromkeys(heads, width)
    return widths, rows, len(conditions) - len(columns)


def covered(tally: Tally | None) -> CellText:
    """Return the successes of runs as a cell of a map shows them, with its shade; a gap where none ran."""
    if tally is None:
        return "none", "gap"
    rate = tally["success"] / tally["runs"]
    shade = sum(rate >= at for at in _SHADES)
    small = " small" if tally["runs"] < _SMALL else ""
    return f"{tally['success']:,}/{tally['runs']:,}", f"shade{shade}{small}"


def coverage_gaps(case: UseCase) -> Iterator[str]:
    """Yield which conditions of the record format no run covers, and which domains miss some."""
    counts = breakdown(case.evaluation.summary)
    domains, conditions = ({key[place] for key in counts} for place in (0, 1))
    absent = [condition.value.replace("_", " ") for condition in Condition if condition not in conditions]
    if absent:
        yield f"No run in any domain: {', '.join(absent)}."
    if holes := len(domains) * len(conditions) - len(counts):
        yield f"{many(holes, 'cell')} of the map without a run; a rate there is unknown, not 0."
    if small := sum(tally["runs"] < _SMALL for tally in counts.values()):
        yield f"{many(small, 'cell')} with fewer than {_SMALL} runs (dotted underline)."
    yield f"{traces_text(case.evaluation)}."


def register(case: UseCase) -> Iterator[tuple[str, ...]]:
    """Yield what the report rests on, each with its digest."""
    facts, profile, passport = case.evaluation.facts, case.evaluation.profile, case.passport
    sealed = "sealed" if facts.sealed else "NOT sealed"
    yield "E-1", f"evidence bundle, {sealed}, {facts.protocol.origin}", facts.digest
    yield "E-2", "identity of the agent", facts.agent.digest
    yield "E-3", f"profile {profile.id}", profile.digest
    yield "E-4", "assessment (the bytes of assessment.json)", canonical.digest(case.data)
    what = "no passport: nothing has been signed"
    if passport:
        what = f"signed passport that names {passport.issuer} as its issuer (digest of its payload)"
        what += f"; it replaces {passport.supersedes[:23]}…" if passport.supersedes else ""
    yield "E-5", what, passport.id if passport else "–"
    parts = {part.facts.digest: part for part in case.parts}
    for number, digest in enumerate(facts.bundles, 1):
        yield f"E-1.{number}", f"bundle {number}{_alone(parts.get(digest))}", digest


def _alone(part: Evaluation | None) -> str:
    """Return what one of several bundles shows alone, nothing where it was not judged."""
    if part is None:
        return ""
    period, r_op = part.facts.period, part.metrics["r_op"]
    start, end = (period.start, period.end) if period else (None, None)
    verdict = part.assessment.verdict
    return (
        f", {start or 'beginning not stated'} to {end or 'end not stated'}:"
        f" {many(part.summary.records, 'record')}, {r_op.counts.get('successes', 0):,} of"
        f" {many(r_op.n or 0)} under faults succeeded; alone {tier_name(verdict.table.tier)} on averages,"
        f" {tier_name(verdict.bounded.tier)} with confidence limits"
    )


_NOTES: Final = {
    "filled": "records and fields that were filled",
    "unmeasured": "fields that no row fills",
    "odd": "may surprise you",
    "refused": "left out",
    "inverted": "read as success although the text says failure",
}


def notes(case: UseCase) -> list[tuple[str, str, int]]:
    """Return what the import counted, by kind; the bundle holds the account itself."""
    imported = case.evaluation.facts.imported
    counts = imported.notes if imported else {}
    return [(kind, _NOTES.get(kind, "see the account of the import"), n) for kind, n in counts.items()]


def judge_lines(case: UseCase) -> Iterator[str]:
    """Yield what people's labels show of the judge; nothing without labels."""
    report = raters.judge_report(case.evaluation.summary, case.evaluation.facts)
    if report.state == "labelled":
        drawn = "which the hash draws" if report.drawn else "chosen by somebody, not drawn"
        kappa = "not defined" if report.kappa is None else f"{report.kappa:.2f}"
        judge = report.judge or "The judge"
        yield f"{judge} against people's labels of {many(sum(report.counts))}, {drawn}: Cohen's κ {kappa}."
    if report.contradicted:
        yield f"{many(report.contradicted, 'rating')} of the judge contradict what the records hold."
    yield from judge_texts(case.evaluation)


def domains(case: UseCase) -> Iterator[tuple[str, ...]]:
    """Yield each domain of the use with whether it was tested, and the tested ones that no use names."""
    wanted, tested = case.wanted, case.tested
    for name in sorted(wanted | tested):
        text = "core runs under faults" if name in tested else "no core run under faults"
        yield name, "yes" if name in wanted else "not stated", text


# A severity that nobody stated may be the gravest, and stands behind what is known to be.
_SEVERITIES: Final = ("catastrophic", None, "critical", "marginal", "negligible")


def gravest(case: UseCase, argument: Argument) -> list[Hazard]:
    """Return the hazards by the state of their goal, the worst first, and then by severity."""
    order, states = list(NodeState), argument.states

    def grave(hazard: Hazard) -> tuple[int, int]:
        return order.index(states[f"G2.{hazard.id}"]), _SEVERITIES.index(hazard.severity)

    return sorted(case.context.hazards or (), key=grave)


def hazard_state(case: UseCase, argument: Argument, hazard: Hazard) -> Markup:
    """Return the state of a hazard, "not shown" where limit and tolerable rate overlap."""
    state, seen = argument.states[f"G2.{hazard.id}"], case.measured[hazard.id]
    if state is NodeState.REFUTED:
        return judged(state)
    if seen.within:
        shown = state in {NodeState.ASSERTED, NodeState.SUPPORTED}
        return judged(state, "within limit" if shown else "")
    code = f"rate-not-shown:{hazard.id}"
    accepted = any(
        item.code == code and item.state is ChallengeStatus.ACCEPTED for item in argument.challenges
    )
    return judged(state, "not shown, accepted" if accepted else "not shown")


def hazards(case: UseCase, argument: Argument) -> Iterator[tuple[str | None, ...]]:
    """Yield every hazard with what was measured in its conditions and domains, and its state."""
    mitigations = {item.id: item for item in case.context.mitigations or ()}
    for hazard in gravest(case, argument):
        seen = case.measured[hazard.id]
        tolerable = seen.rate_text if seen.at_most else "not stated"
        yield (
            Markup('<span id="h-{0}">{0}: {1}</span> <span class="note">{2}</span>').format(
                hazard.id, visible(hazard.title or "not named"), hazard.severity or "severity not stated"
            ),
            hazard.harm and words.cut(hazard.harm),
            words.plain(", ".join(hazard.criteria)) if hazard.criteria else "no criterion",
            f"{_counted(seen)}; tolerable: {tolerable}",
            words.cut(
                " ".join(
                    f"{(mitigations[name].what or name).removesuffix('.')}."
                    for name in hazard.mitigations or ()
                )
            ),
            hazard_state(case, argument, hazard),
        )


def _counted(seen: HazardEvents) -> str:
    return f"{seen.counted_text} ({words.cut(seen.where)}); {seen.limit_text}"


MOST_HAZARDS: Final = 4
"""Hazards on page 1."""


def hazard_lines(case: UseCase, argument: Argument) -> Iterator[tuple[str | None, ...]]:
    """Yield the gravest hazards for page 1: what was counted, what is tolerable, the limit, the state."""
    for hazard in gravest(case, argument)[:MOST_HAZARDS]:
        seen = case.measured[hazard.id]
        yield (
            words.capital(words.brief(hazard.title or hazard.id)),
            seen.counted_text,
            f"≤\u00a0{seen.rate_text}" if seen.at_most else None,
            words.cut(seen.limit_text, 80),
            hazard_state(case, argument, hazard),
        )


MOST_BARS: Final = 12
"""Hazards that the figure shows."""


def hazard_bars(case: UseCase, argument: Argument) -> Markup | None:
    """Return each hazard's events with their limit against what is tolerable; None without a hazard."""
    ordered = gravest(case, argument)
    drawn = [
        ShareBar(
            label=hazard.id[:24],
            share=seen.events / seen.runs if seen.runs else None,
            bound=seen.upper,
            tolerable=seen.at_most,
            state=argument.states[f"G2.{hazard.id}"],
        )
        for hazard in ordered[:MOST_BARS]
        for seen in (case.measured[hazard.id],)
    ]
    texts = [f"{hazard.id}: {_counted(case.measured[hazard.id])}" for hazard in ordered]
    texts[MOST_BARS:] = [f"{len(texts) - MOST_BARS} more are not drawn"] if texts[MOST_BARS:] else []
    return bars(drawn, title=f"Events of each hazard: {'; '.join(texts)}") if drawn else None


def review(case: UseCase) -> Iterator[tuple[str | None, ...]]:
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
    texts = {name: (item["text"], item["falsified_by"]) for name, item in TEXTS["assumptions"].items()}
    texts |= {name: (item.text, item.falsified_by) for name, item in given.items() if item.text}
    for name, (text, usual) in texts.items():
        item = given.get(name, Assumption(id=name))
        owner = context.called(item.owner) if item.owner else None
        yield name, text, item.falsified_by or usual, owner, item.rationale


def challenges(case: UseCase, argument: Argument, *, stale: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield every challenge with its answer, upheld and open ones first."""
    for item in argument.challenges:
        if item.stale is stale:
            anchor = Markup('<span id="ch-{0}">{0}</span>').format(item.code)
            state = f"{STATUS_WORDS[item.state]} ({CLASS_WORDS[item.kind]})"
            yield anchor, item.text, item.target, state, item.answer_text(case.context) or "–"


def unraised_answers(case: UseCase, argument: Argument) -> Iterator[tuple[str | None, ...]]:
    """Yield the answers to questions that are not raised now."""
    codes = {item.code for item in argument.challenges}
    for answer in case.context.answers or ():
        if answer.state and answer.challenge not in codes:
            state = STATUS_WORDS[ChallengeStatus(answer.state)]
            yield answer.challenge, state, case.context.called(answer.by), answer.reason


def nodes(argument: Argument) -> Iterator[tuple[str, ...]]:
    """Yield the goals that neither a figure nor a table of criteria shows, with what each rests on."""
    graph, shown = argument.graph, drawn(argument)
    # Each goal's own part stands below it: G2, S2, G2.H-1, then G3.
    for node in sorted(graph.nodes, key=lambda node: node.id[1:2]):
        known = node.id in shown or node.id.startswith("G3-")
        if node.state and node.kind in {NodeKind.GOAL, NodeKind.STRATEGY} and not known:
            below = (*graph.below(node.id), *graph.attached(node.id))
            yield (
                Markup('<span id="g-{0}">{0}</span>').format(node.id),
                word(node.state),
                node.text,
                ", ".join(name for name in below if "Sn-" not in name) or ("evidence" if below else "–"),
                ", ".join(name.removeprefix("ch-") for name in graph.against(node.id)) or "–",
            )


def levels(evaluation: Evaluation) -> Iterator[tuple[str | None, ...]]:
    """Yield the source's SIL and ASIL guidance with the arithmetic beside it; nothing without guidance."""
    missing = "hazard and risk analysis, target failure measure, systematic capability, architecture"
    profile = evaluation.profile
    for number, tier in sorted(profile.tiers.items()):
        tau = profile.tau.get(int(number))
        if (tier.sil or tier.asil) and tau is not None:
            failure = float(1 - tau)
            arithmetic = (
                f"success above {float(tau):g} bounds the failure probability per demand by {failure:g};"
                f" IEC 61508 low-demand mode: {low_demand_band(failure)}"
            )
            yield f"Tier\u00a0{number}", tier.sil, tier.asil, arithmetic, missing


def low_demand_band(failure: float) -> str:
    """Return the IEC 61508 low-demand band of an average probability of failure on demand."""
    for level in (4, 3, 2, 1):
        if failure <= 10.0**-level:
            return f"at best the SIL {level} band (10^-{level + 1} to 10^-{level})"
    return "no SIL band (SIL 1 ends at 10^-1)"


def posterior_figure(evaluation: Evaluation) -> Markup | None:
    """Return the posterior of the success rate under faults, None without fault runs."""
    metric = evaluation.metrics["posterior"]
    tau = [(tier, float(at)) for tier, at in sorted(evaluation.profile.tau.items())]
    if metric.by_tier is None or not metric.n:
        return None
    s = metric.counts["s"]
    parts = "; ".join(
        f"P(θ > {at:g}) = {words.value(metric.by_tier[tier], Unit.PROBABILITY)}" for tier, at in tau
    )
    title = f"Posterior of the success rate under faults, {s:,} of {many(metric.n)}: {parts}"
    return posterior(s, metric.n, tau, title=title)


def posteriors(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    """Yield P(θ > τ) of every tier, by runs and by tasks, and what is asked."""
    metric, tasks = evaluation.metrics["posterior"], evaluation.evidence.tasks("r_op")
    limits = {
        row.tier: results.asked(row) for row in evaluation.assessment.criteria if CATALOGUE[row.metric].tau_of
    }
    for tier, chance in sorted((metric.by_tier or {}).items()):
        at = evaluation.profile.tau[tier]
        by_tasks = "–" if tasks is None else words.value(bounds.above(tasks, at), Unit.PROBABILITY)
        by_runs = words.value(chance, Unit.PROBABILITY)
        yield f"Tier\u00a0{tier}", f"{float(at):g}", by_runs, by_tasks, limits.get(tier, "not specified")


def limits(evaluation: Evaluation, tier: int) -> Iterator[tuple[str, ...]]:
    """Yield the confidence limit of every row of a tier, and what it rests on."""
    for row in results.rows(evaluation, tier):
        if row.bounded is not None:
            rests_on = reason_text(row.bounded.reason) or many(row.bounded.k or 0, "task")
            yield results.name(row), percent(row.bounded.confidence), results.bound(row) or "–", rests_on


def variation_text(evaluation: Evaluation) -> str | None:
    """Return how success under faults varies between tasks, None without a run under faults."""
    varies = variation(evaluation.summary)
    if varies is None:
        return None
    text = f"Success under faults rests on {many(varies.runs)} of {many(varies.tasks, 'task')}."
    if varies.icc is not None:
        text += f" The runs of one task are correlated (intraclass correlation {varies.icc:.2f})."
    if len(varies.all_succeed) > 1:
        j, chance = max(varies.all_succeed.items())
        text += f" All of {j} runs of one task succeed with probability {rounded(chance, 1, scale=100)} %."
    return text


def weakest(evaluation: Evaluation) -> list[tuple[object, ...]]:
    """Return the domains and conditions that failed most often, at most `MOST_CELLS`, worst first."""
    counts = [
        (tally["success"] / tally["runs"], -tally["runs"], key, tally)
        for key, tally in breakdown(evaluation.summary).items()
        if tally["success"] < tally["runs"]
    ]
    return [
        (
            domain,
            condition.replace("_", " "),
            tally["runs"] - tally["success"],
            tally["runs"],
            words.value(rate, Unit.FRACTION),
        )
        for rate, _, (domain, condition), tally in sorted(counts, key=lambda item: item[:3])[:MOST_CELLS]
    ]


def failed_runs(failed: Iterable[Record]) -> Iterator[tuple[str | None, ...]]:
    """Yield runs that failed: id, domain, condition, how each ended, and what else went wrong."""
    for run in failed:
        attack = ["attack succeeded"] if run.attack_succeeded else []
        count = [many(run.violations, "violation")] if run.violations else []
        yield (
            run.run_id,
            run.domain,
            run.condition.replace("_", " "),
            run.outcome.replace("_", " "),
            ", ".join(attack + count) or "–",
        )


def episodes(evaluation: Evaluation) -> Iterator[str]:
    """Yield other known ways to fail: under cascades, under attack, with violations, by stopping short."""
    cascade, attacks = (evaluation.metrics[name] for name in ("cascade_penalty", "attack_success_rate"))
    if cascade.value is not None:
        fall = words.value(cascade.value, Unit.PP)
        yield f"Under a cascade of faults success is {fall} below that under single faults."
    if attacks.value is not None:
        rate, won = words.value(attacks.value, Unit.FRACTION), attacks.counts["attack_succeeded"]
        resisted = evaluation.metrics["adversarial_resistance"]
        under_attack = (
            ""
            if resisted.value is None
            else f" Success under attack is {words.value(resisted.value, Unit.FRACTION)}."
        )
        yield f"{rate} of attacks succeeded ({won:,} of {attacks.n:,}).{under_attack}"
    if violating := evaluation.groups.every["success_with_violations"]:
        yield f"{many(violating)} succeeded with a violation."
    for item in evaluation.assessment.findings:
        if item.code in {"harness-errors", "success-with-attack"}:
            yield f"{words.capital(finding_text(item))}."


_PARTS: Final = 10


def run_chart(evaluation: Evaluation) -> tuple[Markup, str] | None:
    """Return how the latest runs went over the tenths of their order; None without an order."""
    order = evaluation.summary.order
    runs = order.latest
    if order.by is None or len(runs) < _PARTS:
        return None
    tenths = [runs[len(runs) * at // _PARTS : len(runs) * (at + 1) // _PARTS] for at in range(_PARTS)]
    lines = [
        Polyline(
            label="runs that succeeded", points=_means(tenths, lambda run: float(run.success)), stroke=BLUE
        ),
        Polyline(label="mean planning efficiency", points=_means(tenths, _efficiency), dash="6 3"),
        Polyline(label="recoveries guided by memory", points=_means(tenths, _guided), dash="2 3"),
    ]
    first, last = (words.value(lines[0].points[at][1], Unit.FRACTION) for at in (0, -1))
    text = (
        f"The latest {many(len(runs))} in order of {order.by.replace('_', ' ')}: {first} succeeded in the"
        f" first tenth and {last} in the last"
    )
    least = floor(10 * min(0.9, *(y for line in lines for _, y in line.points))) / 10
    up = [(at, f"{at:.2f}") for at in (least, (1 + least) / 2, 1.0)]
    across = [(float(at), str(at)) for at in range(1, _PARTS + 1)]
    drawn = [line for line in lines if line.points]
    return curves("runs", drawn, across, up, caption="tenths of these runs, oldest first", title=text), text


def _means(tenths: Iterable[Iterable[LatestRun]], value: Any) -> list[tuple[float, float]]:
    """Return the mean of a value in each tenth that has it."""
    points = []
    for at, runs in enumerate(tenths, 1):
        values = [number for run in runs if (number := value(run)) is not None]
        points += [(float(at), sum(values) / len(values))] if values else []
    return points


def _efficiency(run: LatestRun) -> float | None:
    return None if run.numerator is None else run.numerator / run.denominator


def _guided(run: LatestRun) -> float | None:
    return float(run.irs) if run.irs in {0, 1} and run.irs is not None else None


def commitments(case: UseCase) -> Iterator[str]:
    """Yield what commitment integrity shows; it moves no tier. Nothing where it was not tested."""
    integrity, scored = case.evaluation.facts.integrity, case.integrity
    if integrity is None:
        return
    tasks, matched, probes = (
        sum(getattr(cell, name) for cell in integrity.cells) for name in ("tasks", "matched", "probes")
    )
    unclear = f" ({scored.accuracy.unclear:,} replies were unclear)" if scored else ""
    yield (
        f"The agent answered {integrity.successes:,} of {many(tasks, 'task')} rightly. Asked for the rule,"
        f" the source or the update behind an answer, it held {matched:,} of {probes:,} probes{unclear}."
    )
    if integrity.hollow:
        of_successes = f"{integrity.hollow:,} of {integrity.successes:,} successes"
        yield f"{of_successes} hold fewer than half of their probes."
    value = "unmeasured, since replies are missing" if integrity.core is None else f"{integrity.core:.3f}"
    if scored and scored.core.interval:
        low, high = scored.core.interval
        value += f" (95 % interval {low:.3f} to {high:.3f})"
    reach = ""
    if scored:
        floor_, ceiling = float(scored.core.floor), float(scored.core.ceiling)
        reach = f"; on these tasks agents reach {floor_:.3f} to {ceiling:.3f}"
    yield f"Commitment integrity (HCCIS-CORE) is {value}{reach}."
    yield "It moves no tier and says nothing about safety."
    for item in case.evaluation.assessment.findings:
        if item.code in {"integrity-partial", "integrity-rated", "integrity-tasks"}:
            yield f"{words.capital(finding_text(item))}."


def families(case: UseCase) -> list[tuple[str, Markup, Markup]]:
    """Return tasks answered rightly and probes held in each family of probes, fewest probes held first."""
    integrity, counts = case.evaluation.facts.integrity, defaultdict[str, Counter[str]](Counter)
    for cell in integrity.cells if integrity else ():
        names = ("successes", "tasks", "matched", "probes")
        counts[cell.family].update({name: getattr(cell, name) for name in names})
    ordered = sorted(counts.items(), key=lambda item: item[1]["matched"] / max(1, item[1]["probes"]))
    return [
        (family.replace("_", " "), _bar(n["successes"], n["tasks"]), _bar(n["matched"], n["probes"]))
        for family, n in ordered
    ]


def _bar(part: int, total: int) -> Markup:
    bar = Markup('{:,} of {:,}<i class="bar" style="width:{:.0f}%"></i>')
    return bar.format(part, total, 100 * part / max(1, total))
