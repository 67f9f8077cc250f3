"""Page 1, the answer for whoever has five minutes: what was seen, what it amounts to, what speaks against it.

No metric's id stands on this page; everything is built by rule from the assessment and the argument.
"""

from __future__ import annotations

from collections import Counter
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from certkit.assessment.criteria import Status
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.words import left_out, measure_next
from certkit.ground import wording
from certkit.ground.text import quoted
from certkit.ground.wording import many
from certkit.report import results, words
from certkit.report.argument.case import MOST_DAYS
from certkit.report.argument.challenges import Standing
from certkit.report.argument.graph import State
from certkit.report.sections import gravest
from certkit.report.svg import CONTESTED, word
from certkit.report.words import capital

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case

MOST_AGAINST = 5
"""Lines of what speaks against the claim that fit the page."""
_LINE: Final = 240


class Box(NamedTuple):
    """One of the four boxes: its head, the status that its mark shows, its answer, and a line below."""

    head: str
    status: str
    word: str
    line: str


def missing(case: Case) -> tuple[str, ...]:
    """Return what a safety case needs and nobody provided."""
    context, domain = case.context, case.domain
    given = {
        "an owner": context.named(context.owner),
        "a purpose": case.use.purpose,
        "an operating domain": domain.description or domain.domains,
        "a hazard": context.hazards,
        "a reviewer": case.reviewing,
    }
    return tuple(name for name, said in given.items() if not said)


def title(case: Case) -> str:
    """Return what the document is called: a safety case only where people said what the use is."""
    return "Evidence report" if missing(case) else "Safety case"


_RUNS = (("c_nom", "normal run"), ("r_op", "run under faults"))


def paragraph(case: Case) -> str:
    """Return what was seen and which tier it meets, in at most 60 words."""
    metrics = case.document["metrics"]
    seen = [
        f"{_rate(metrics[key])} of {metrics[key]['n']:,} {noun.replace('run', 'runs')}"
        for key, noun in _RUNS
        if metrics[key]["n"] and metrics[key]["value"] is not None
    ]
    absent = [f"No {noun} was recorded." for key, noun in _RUNS if seen and not metrics[key]["n"]]
    told = (
        f"{agent(case)} succeeded in {' and in '.join(seen)}"
        if seen
        else f"No run of {agent(case)} was recorded"
    )
    least = metrics["domain_min"]
    if least["value"] is not None and least.get("domain"):
        told += f" (weakest domain: {words.called(least['domain'])}, {_rate(least)})"
    broken = case.assessment.counts.harness_errors
    errors = [f"{many(broken, 'harness error')} counted among the failures."] if broken and seen else []
    return " ".join([f"{told}.", *errors, *absent, *_tiers(case)])


def agent(case: Case) -> str:
    """Return the agent as page 1 calls it."""
    return quoted(words.called(case.agent))


def named(case: Case) -> str:
    """Return the tier that the answer is about; the lowest one is judged where nobody asked for any."""
    return f"Tier {case.tier}{', the tier that was asked for' if case.tier > 1 else ''}"


def _rate(metric: dict[str, Any]) -> str:
    return words.value(metric["value"], Unit.FRACTION)


def _tiers(case: Case) -> Iterator[str]:
    tier, tiers = case.tier, case.document["tiers"]
    status, contested = tiers[str(tier)]["status"], sum(item.contests for item in case.assessment.challenges)
    if status == Status.MET:
        yield f"That meets every threshold of {named(case)}."
    elif status == CONTESTED:
        raised, contest = many(contested, "serious challenge"), "contests" if contested == 1 else "contest"
        yield f"Every threshold of {named(case)} is met, but {raised} {contest} that."
    else:
        yield f"That does not show {named(case)}: {_open(case, tier)}."
    if status in {Status.MET, CONTESTED} and str(tier + 1) in tiers:
        beyond = _open(case, tier + 1)
        yield f"It does not show Tier {tier + 1}: {beyond}." if beyond else f"It meets Tier {tier + 1} too."


def _open(case: Case, tier: int) -> str:
    """Return how many criteria of a tier fail, cannot be judged, or have no evidence."""
    said = {
        Status.NOT_MET: ("fails", "fail"),
        Status.INSUFFICIENT: ("cannot be judged", "cannot be judged"),
        Status.NOT_TESTED: ("has no evidence", "have no evidence"),
    }
    groups = results.by_status(case.document, tier)
    parts = (f"{len(names)}{{}} {said[status][len(names) > 1]}" for status, names in groups.items())
    first, *more = [*parts] or [""]
    asked = len(results.judged_rows(case.document, tier))
    return words.listed([first.format(f" of {asked} criteria"), *(part.format("") for part in more)])


def readings(case: Case, argument: Argument) -> tuple[str, ...]:
    """Return the tier by each reading, and every serious challenge, by day, as every screen says it."""
    verdict, awaits = case.assessment.verdict, {item.code: item.awaits for item in argument.challenges}
    decides, serious = case.assessment.profile.reading, []
    told = wording.readings(verdict.table.tier, verdict.bounded.tier, decides=decides)
    for item in case.assessment.serious:
        lack = awaits[item.code]
        state = f"open (its answer does not count: {lack})" if lack else item.state
        said = wording.challenge(item.code, state, item.message, () if lack else item.answered_by)
        serious.append(words.plain(said))
    return (told, *serious)


def boxes(case: Case, argument: Argument) -> tuple[Box, ...]:
    """Return the four boxes: evidence, claim about the use, challenges, decision."""
    status = case.document["tiers"][str(case.tier)]["status"]
    counts = Counter(item.state for item in argument.challenges)
    stale = sum(item.stale for item in argument.challenges)
    decision = case.context.decision
    decided, line = "No decision", "by the owner yet"
    if decision is not None and decision.outcome:
        decided = capital(decision.outcome.replace("_", " "))
        owner = words.called(case.context.called(decision.by))
        line = f"by {owner}, until {decision.until or 'no day stated'}"
        approving = decision.outcome.startswith("approved") and case.unapproved
        line += f"; not in force: {case.unapproved}" if approving else ""
    closed = (Standing.SUSTAINED, Standing.ACCEPTED, Standing.ANSWERED)
    kinds = Counter(item.kind for item in argument.challenges if item.state is Standing.OPEN)
    classes = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    answers = [item.answer for item in argument.challenges if item.state is Standing.ANSWERED]
    alone = sum(not case.context.independent(item.agreed_by) for item in answers if item)
    told = ", ".join(f"{counts[state]} {state}" for state in closed)
    told += f", {alone} of them agreed by nobody independent" if alone else ""
    told += f", {stale} STALE" if stale else ""
    told = f"{classes}; {told}" if classes else told
    claimed = (Status.MET, "Supported") if argument.claim.supported else (Status.NOT_MET, "Not supported")
    unanswered = Status.INSUFFICIENT if argument.opened else Status.MET
    return (
        Box("Evidence", status, word(status), named(case)),
        Box("Claim about use", *claimed, _first_reason(case, argument)),
        Box("Challenges", unanswered, f"{counts[Standing.OPEN]} open", told),
        Box("Decision", Status.NOT_TESTED if case.unapproved else Status.MET, decided, line),
    )


def _first_reason(case: Case, argument: Argument) -> str:
    """Return the first reason why the claim does not stand, in counts where section 8 has the names."""
    if argument.claim.supported:
        return "every goal has evidence or an owner's word"
    if case.specimen or case.stale:
        return argument.claim.because[0]
    for state in (State.REFUTED, State.UNDEVELOPED):
        if points := argument.graph.lowest(state):
            first = shorten(words.plain(argument.graph.by_id[points[0]].text), 80, placeholder=" …")
            return f"{many(len(points), 'point')} {state.value}, such as “{first}”: see section 8"
    if argument.opened:
        return f"{many(len(argument.opened), 'challenge')} open or sustained: see section 9"
    return words.plain(argument.claim.because[0])


def claim(case: Case, argument: Argument) -> str:
    """Return the sentence about the use that the whole argument amounts to."""
    if not argument.claim.supported:
        return f"Not supported: {argument.claim.text}"
    goals = sum(node.kind == "goal" for node in argument.nodes)
    asserted = sum(state is State.ASSERTED for state in argument.states.values())
    accepted = [item.answer for item in argument.challenges if item.state is Standing.ACCEPTED]
    until = min((answer.until for answer in accepted if answer and answer.until), default=None)
    owner = case.context.called(case.context.owner)
    doubts = f", {many(len(accepted), 'doubt')} accepted by {owner} until {until}"
    return f"Supported: {many(goals, 'goal')}, {many(asserted, 'assertion')}{doubts if accepted else ''}."


_UNSHOWN: Final = {
    "G2": "Nobody showed that every hazard is kept within its limit.",
    "G3": "The evidence does not show every threshold of the tier that was asked for.",
    "G4": "Nobody showed that the evidence is genuine and complete.",
    "G5": "Nobody showed that what was tested resembles what this use will bring.",
    "G6": "Nobody showed that a change for the worse is noticed and acted on.",
}


_ACCEPTED: Final = {"rate-not-shown", "hazard-unseen", "domain-unseen"}
"""What was not shown of the use itself: page 1 says so where it was accepted."""


def against(case: Case, argument: Argument) -> tuple[str, ...]:
    """Return what speaks against the claim in at most `MOST_AGAINST` lines: hazards, then the gravest."""
    owner = words.called(case.context.called(case.context.owner))
    told = [(item.target, item.text) for item in argument.opened]
    told += [
        (item.target, f"accepted by {owner}: {item.text[:1].lower()}{item.text[1:]}")
        for item in argument.challenges
        if item.state is Standing.ACCEPTED and item.code.partition(":")[0] in _ACCEPTED
    ]
    failed = results.by_status(case.document, case.tier, (Status.NOT_MET,)).get(Status.NOT_MET)
    titles = {
        f"G2.{hazard.id}": words.called(hazard.title or hazard.id) for hazard in gravest(case, argument)
    }
    lines = [
        f"{capital(called)}: {text[:1].lower()}{text[1:]}"
        for goal, called in titles.items()
        for target, text in told
        if target == goal
    ]
    lines += [f"Tier {case.tier} fails on {words.listed(failed)}."] if failed else []
    if argument.states["G2"] is State.REFUTED:
        lines.append("At least one hazard is not kept within its limit.")
    lines += [said for name, said in _UNSHOWN.items() if argument.states[name] is State.UNDEVELOPED]
    lines += [capital(text) for target, text in told if target not in titles]
    if argument.claim.supported:
        lines.append(f"{many(len(argument.challenges), 'challenge')} answered or accepted: section 9.")
    lines = lines or list(argument.claim.because)
    if len(lines) > MOST_AGAINST:
        more = len(lines) - MOST_AGAINST + 1
        lines[MOST_AGAINST - 1 :] = [f"{more} more goals and challenges: sections 8 and 9."]
    return tuple(words.cut(words.plain(line), _LINE) for line in lines)


def changes(case: Case) -> Iterator[str]:
    """Yield what would change the answer: what is missing most, the narrowest margins, what ends it."""
    verdict = case.assessment.verdict
    if missing := measure_next(case.assessment):
        yield f"Furthest from Tier {verdict.goal}: {words.cut(words.plain(missing[0]), _LINE)}"
    slim = results.narrowest(case.document, case.tier)
    if slim and verdict.tier >= case.tier:
        yield f"The narrowest margins at Tier {case.tier}: {words.listed(slim)}.".replace("\u00a0†", "")
    flips = case.assessment.fragility.flips
    if flips and verdict.tier == case.tier and flips.needed <= flips.of:
        metric = CATALOGUE.get(flips.criterion)
        where = f" in {words.called(flips.domain)}" if flips.domain else ""
        row = f"{metric.title if metric else flips.criterion}{words.plain(left_out(flips))}"
        yield (
            f"Tier {case.tier} would be lost if {flips.needed:,} of {flips.of:,} successes{where} had"
            f" been failures ({row}; section 6)."
        )
    yield (
        "Test again when a component changes, the passport or an acceptance ends, drift is found, an"
        f" indicator passes its limit or a domain of use is added, and after {MOST_DAYS} days at the latest."
    )
    if case.due and case.today and case.due < case.today:
        yield f"A new test was due on {case.due}."
