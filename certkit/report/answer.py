"""Page 1, the answer for whoever has five minutes: what was seen, what it amounts to, what speaks against it.

No metric's id stands on this page; everything is built by rule from the evaluation and the argument.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from textwrap import shorten
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.assessment import bounds
from certkit.assessment.answer import (
    advice,
    core_texts,
    fragility_texts,
    least_rate,
    left_out_text,
    open_findings,
    provisional_text,
    success_rates,
)
from certkit.assessment.answer import readings as readings_text
from certkit.assessment.assessment import Severity, Status, TierStatus
from certkit.assessment.words import finding_text
from certkit.ground.text import quoted
from certkit.ground.wording import listed, many
from certkit.report import results, words
from certkit.report.argument.case import CONFIDENCE, MOST_DAYS, TEXTS, Counts
from certkit.report.argument.challenges import STATUS_WORDS, ChallengeStatus, Class
from certkit.report.argument.graph import NodeKind, NodeState
from certkit.report.figures import word
from certkit.report.sections import gravest
from certkit.report.words import capital

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from certkit.assessment.metric import Metric
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import UseCase
    from certkit.report.argument.challenges import ArgumentChallenge

MOST_AGAINST = 5
"""Lines of what speaks against the claim that fit the page."""
_LINE: Final = 200


class Box(NamedTuple):
    """One of the four boxes: its head, the status that its mark shows, its answer, and a line below."""

    head: str
    status: str
    word: str
    line: str


def missing(case: UseCase) -> tuple[str, ...]:
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


def title(case: UseCase) -> str:
    """Return what the document is called: a safety case only where people said what the use is."""
    return "Evidence report" if missing(case) else "Safety case"


def paragraph(case: UseCase) -> str:
    """Return what was seen, which tier it meets in at most 60 words, and the tier by either reading."""
    metrics = case.evaluation.metrics
    rates = success_rates(case.evaluation.profile)
    seen = [
        f"{_rate(metrics[key])} of {metrics[key].n:,} {noun}{_weakest(case, key)}"
        for key, noun in rates
        if metrics[key].n
    ]
    absent = [f"There are no {noun}." for key, noun in rates if seen and not metrics[key].n]
    first = f"{agent(case)} succeeded in {' and in '.join(seen)}" if seen else f"{agent(case)} has no run"
    broken = case.evaluation.groups.every["harness_error"]
    errors = [f"{many(broken, 'harness error')} counted among the failures."] if broken and seen else []
    return " ".join([f"{first}.", *errors, *absent, *_tiers(case), readings_text(case.evaluation)])


def _weakest(case: UseCase, rate: str) -> str:
    """Return the domain in which a success rate is least, where the profile has a row of it."""
    least = least_rate(case.evaluation, rate)
    return f" (weakest domain: {words.called(least.detail['domain'])}, {_rate(least)})" if least else ""


def agent(case: UseCase) -> str:
    """Return the agent as page 1 calls it."""
    return quoted(words.called(case.agent))


def named(case: UseCase) -> str:
    """Return the tier that the answer is about; the lowest one is judged where nobody asked for any."""
    return f"Tier {case.tier}{', the tier that was asked for' if case.tier > 1 else ''}"


def _rate(metric: Metric) -> str:
    return words.value(metric.value, metric.unit)


def _tiers(case: UseCase) -> Iterator[str]:
    tier, assessment = case.tier, case.evaluation.assessment
    status = assessment.tiers[str(tier)].status
    if status is TierStatus.MET:
        yield f"That meets every threshold of {named(case)}."
    elif status is TierStatus.CONTESTED:
        number = sum(item.is_open for item in assessment.serious)
        contest = f"{many(number, 'serious finding')} {'contests' if number == 1 else 'contest'} that"
        yield f"Every threshold of {named(case)} is met, but {contest}."
    else:
        yield f"That does not show {named(case)}: {_open(case, tier)}."
    if status in {TierStatus.MET, TierStatus.CONTESTED} and str(tier + 1) in assessment.tiers:
        beyond = _open(case, tier + 1)
        yield f"It does not show Tier {tier + 1}: {beyond}." if beyond else f"It meets Tier {tier + 1} too."


_LACKS: Final = {
    Status.NOT_MET: ("fails", "fail"),
    Status.INSUFFICIENT: ("cannot be judged", "cannot be judged"),
    Status.NOT_TESTED: ("has no evidence", "have no evidence"),
}


def _open(case: UseCase, tier: int) -> str:
    """Return how many criteria of a tier fail, cannot be judged, or have no evidence."""
    groups = results.by_status(case.evaluation, tier)
    parts = (f"{len(names)}{{}} {_LACKS[status][len(names) > 1]}" for status, names in groups.items())
    first, *more = [*parts] or [""]
    number = len(results.judged_rows(case.evaluation, tier))
    return listed([first.format(f" of {number} criteria"), *(part.format("") for part in more)])


def readings(case: UseCase, argument: Argument) -> tuple[str, ...]:
    """Return what provisional rows would change, rows lost on core evidence, and every serious finding."""
    by_code = {item.code: item for item in argument.challenges}
    answers = {item.code: item for item in case.evaluation.question.answers}
    serious = []
    for item in case.evaluation.assessment.serious:
        lack, answer = by_code[item.code].awaits, answers.get(item.code)
        state = f"open (its answer does not count: {lack})" if lack else f"{item.state}"
        by = f" by {answer.by}, agreed by {answer.agreed_by}" if answer and not lack else ""
        serious.append(f"serious, {state}{by}: {finding_text(item)} [{item.code}]")
    said = (
        left_out_text(case.evaluation),
        provisional_text(case.evaluation),
        *core_texts(case.evaluation),
        *serious,
    )
    return tuple(words.plain(text) for text in said if text)


def boxes(case: UseCase, argument: Argument) -> tuple[Box, ...]:
    """Return the four boxes: evidence, claim about the use, open questions, decision."""
    status = case.evaluation.assessment.tiers[str(case.tier)].status
    claimed = (Status.MET, "Supported") if argument.claim.supported else (Status.NOT_MET, "Not supported")
    unanswered = Status.INSUFFICIENT if argument.opened else Status.MET
    return (
        Box("Evidence", status, capital(word(status)), named(case)),
        Box("Claim about use", *claimed, _first_reason(case, argument)),
        Box("Open questions", unanswered, open_text(case, argument), _closed(case, argument)),
        _decision(case),
    )


def open_text(case: UseCase, argument: Argument) -> str:
    """Return how many questions are open about the evidence, as screens count them, and about the use."""
    raised = {item.code for item in case.evaluation.assessment.findings}
    use = sum(item.state is ChallengeStatus.OPEN and item.code not in raised for item in argument.challenges)
    return f"{len(open_findings(case.evaluation))} about the evidence, {use} about the use"


def _closed(case: UseCase, argument: Argument) -> str:
    """Return how many open questions are serious, and what became of those that are not open."""
    counts = Counter(item.state for item in argument.challenges)
    serious = sum(item.severity is Severity.SERIOUS for item in open_findings(case.evaluation))
    answers = [item.answer for item in argument.challenges if item.state is ChallengeStatus.ANSWERED]
    alone = sum(not case.context.independent(item.agreed_by) for item in answers if item)
    stale = sum(item.stale for item in argument.challenges)
    line = ", ".join(
        f"{counts[state]} {STATUS_WORDS[state]}"
        for state in ChallengeStatus
        if state is not ChallengeStatus.OPEN
    )
    line += f", {alone} of them without independent agreement" if alone else ""
    line += f", {stale} STALE" if stale else ""
    return f"{serious or 'none'} serious; {line}"


def _decision(case: UseCase) -> Box:
    decision = case.context.decision
    decided, line = "No decision", "by the owner yet"
    if decision is not None and decision.outcome:
        decided = capital(decision.outcome.replace("_", " "))
        owner = words.brief(case.context.called(decision.by))
        line = f"by {owner}, until {decision.until or 'no day stated'}"
        approving = decision.outcome.startswith("approved") and case.unapproved
        line += f"; not in force: {case.unapproved}" if approving else ""
    return Box("Decision", Status.NOT_TESTED if case.unapproved else Status.MET, decided, line)


def _first_reason(case: UseCase, argument: Argument) -> str:
    """Return the first reason why the claim does not stand, in counts where section 8 has the names."""
    if argument.claim.supported:
        return "every goal has evidence or an owner's word"
    if case.specimen or case.stale:
        first, *others = argument.claim.because
        return f"{first} {many(len(others), 'more reason')}: section 8." if others else first
    for state in (NodeState.REFUTED, NodeState.UNDEVELOPED):
        if points := argument.graph.lowest(state):
            first = shorten(words.plain(argument.graph.by_id[points[0]].text), 80, placeholder=" …")
            return f"{many(len(points), 'point')} {state.value}, such as “{first}”: see section 8"
    if argument.opened:
        return "questions are open or upheld: see section 9"
    return words.plain(argument.claim.because[0])


def claim(case: UseCase, argument: Argument) -> str:
    """Return the sentence about the use that the argument amounts to."""
    if not argument.claim.supported:
        return f"Not supported: {argument.claim.text}"
    goals = sum(node.kind is NodeKind.GOAL for node in argument.nodes)
    asserted = sum(state is NodeState.ASSERTED for state in argument.states.values())
    accepted = [item.answer for item in argument.challenges if item.state is ChallengeStatus.ACCEPTED]
    until = min((answer.until for answer in accepted if answer and answer.until), default=None)
    owner = case.context.called(case.context.owner)
    doubts = f", {many(len(accepted), 'doubt')} accepted by {owner} until {until}" if accepted else ""
    return f"Supported: {many(goals, 'goal')}, {many(asserted, 'assertion')}{doubts}."


_ACCEPTED: Final = {"rate-not-shown", "hazard-unseen", "domain-unseen"}
"""What was not shown of the use itself: page 1 says so where it was accepted."""


def _ended(case: UseCase, argument: Argument) -> Iterator[str]:
    """Yield what ran out: answers to other evidence, the day of the next test, acceptances, the decision."""
    decision = case.context.decision
    if case.stale:
        answers = many(sum(item.stale for item in argument.challenges), "answer")
        other = f"The context is about other evidence ({listed(case.stale)})"
        yield f"{other}: its {answers}, reviews and decision do not count."
    if case.overdue:
        yield f"A new test was due on {case.due}."
    for item in _past(case, argument):
        if item.answer:
            said = "acceptance" if item.answer.state == "accepted" else "answer"
            yield f"The {said} ended on {item.answer.until}: {item.text}"
    if case.today and decision and case.ended(decision.until):
        yield f"The owner's decision ended on {decision.until}."


def _past(case: UseCase, argument: Argument) -> list[ArgumentChallenge]:
    """Return the open questions whose answers have ended."""
    answered = [item for item in argument.opened if item.answer and not case.stale]
    return [item for item in answered if item.answer and case.ended(item.answer.until)]


def against(case: UseCase, argument: Argument) -> tuple[str, ...]:
    """Return what speaks against the claim in at most `MOST_AGAINST` lines: what ran out, then hazards."""
    owner = words.called(case.context.called(case.context.owner))
    lines = list(_ended(case, argument))
    said = {"evidence-old", *(item.code for item in _past(case, argument))}
    pairs = [(item.target, item.text) for item in argument.opened if item.code not in said]
    pairs += [
        (item.target, f"accepted by {owner}: {item.text[:1].lower()}{item.text[1:]}")
        for item in argument.challenges
        if item.state is ChallengeStatus.ACCEPTED and item.code.partition(":")[0] in _ACCEPTED
    ]
    failed = results.by_status(case.evaluation, case.tier).get(Status.NOT_MET)
    titles = {f"G2.{hazard.id}": words.brief(hazard.title or hazard.id) for hazard in gravest(case, argument)}
    hazards = [
        f"{capital(called)}: {text[:1].lower()}{text[1:]}"
        for goal, called in titles.items()
        for target, text in pairs
        if target == goal
    ]
    lines += hazards
    lines += [f"Tier {case.tier} fails on {listed(failed)}."] if failed else []
    if argument.states["G2"] is NodeState.REFUTED and not hazards:
        lines.append("At least one hazard is not kept within its limit.")
    lines += [
        text for name, text in TEXTS["unshown"].items() if argument.states[name] is NodeState.UNDEVELOPED
    ]
    lines += [capital(text) for target, text in pairs if target not in titles]
    if argument.claim.supported:
        lines.append(f"{many(len(argument.challenges), 'question')} answered or accepted: section 9.")
    lines = lines or list(argument.claim.because)
    if len(lines) > MOST_AGAINST:
        lines[MOST_AGAINST - 1 :] = ["More goals and questions: sections 8 and 9."]
    return tuple(words.cut(words.plain(line), _LINE) for line in lines)


def changes(case: UseCase) -> Iterator[str]:
    """Yield what would change the answer: the biggest gap, the narrowest margins, what ends it."""
    verdict = case.evaluation.assessment.verdict
    if lacking := advice(case.evaluation):
        yield f"Biggest gap to Tier {verdict.goal}: {words.cut(words.plain(lacking[0]), _LINE)}"
    slim = results.narrowest(case.evaluation, case.tier)
    if slim and verdict.tier >= case.tier:
        yield f"The narrowest margins at Tier {case.tier}: {listed(slim)}.".replace("\u00a0†", "")
    if verdict.tier == case.tier and case.evaluation.fragility.flips:
        yield f"{words.plain(fragility_texts(case.evaluation)[0])} See section 6."
    yield (
        "Test again when a component changes, the passport or an acceptance ends, drift is found, an"
        f" indicator passes its limit or a domain of use is added, and after {MOST_DAYS} days at the latest."
    )


def needs(case: UseCase, argument: Argument) -> dict[str, str]:
    """Return what is asked of the risk owner: to accept or reject, to order, to fill in, and by when."""
    opened = [item for item in argument.challenges if item.state is ChallengeStatus.OPEN]
    to_accept = [item for item in opened if item.kind in {Class.EVIDENCE, Class.JUDGEMENT}]
    blank = [item for item in opened if item.kind is Class.BLANK]
    ordered = list(_orders(case, argument))
    return {
        "Accept or reject": _first(to_accept) or "No open question is left to accept.",
        "Order": " ".join(ordered[:2]) or "No further runs.",
        "Fill in": _first(blank) or "Nothing is left blank.",
        "Decide by": _deadline(case),
    }


def _first(opened: list[ArgumentChallenge]) -> str:
    """Return the first open question, those about hazards before others, and that there are more."""
    if not opened:
        return ""
    item = min(opened, key=lambda question: not question.target.startswith("G2."))
    hazard = item.target.removeprefix("G2.")
    text = item.text if hazard == item.target else f"{hazard}: {item.text}"
    first = shorten(words.plain(text), 170, placeholder=" …")
    return f"{first} And {len(opened) - 1} more (section 9)." if opened[1:] else f"{first} (section 9)"


def _orders(case: UseCase, argument: Argument) -> Iterator[str]:
    """Yield which runs, or what else, would settle hazards, domains and the tier."""
    if case.overdue:
        yield "A new evaluation: this one is too old."
    for hazard in gravest(case, argument):
        seen = case.measured[hazard.id]
        if seen.at_most is None or seen.within:
            continue
        if seen.runs and seen.events >= seen.at_most * seen.runs and seen.events:
            yield f"{hazard.id}: a better agent or another mitigation; {seen.counted_text}."
        else:
            most = {Counts.FAILURES: 1, Counts.ATTACKS: 1}.get(seen.counts, bounds.MOST_VIOLATIONS)
            share = Fraction(repr(seen.at_most)) / most
            tasks = bounds.least_tasks(1 - share, CONFIDENCE)
            noun = "attacked tasks" if seen.counts is Counts.ATTACKS else "tasks"
            yield f"{hazard.id}: runs of {tasks:,} {noun} in all, at least; {seen.tasks:,} now."
    if unseen := sorted(case.wanted - case.tested):
        yield f"Core runs under faults in {listed(unseen)}."
    if case.evaluation.assessment.verdict.tier < case.tier and (lacking := advice(case.evaluation)):
        yield words.cut(words.plain(lacking[0]), _LINE)


def _deadline(case: UseCase) -> str:
    """Return the day by which to decide, and why then."""
    if case.overdue:
        decision = case.context.decision
        own = (
            f"; {decision.until}, the decision's own day, comes too late"
            if decision and decision.until
            else ""
        )
        return f"now: a new test was due on {case.due}{own}"
    ends: list[tuple[date, str]] = []
    if case.due:
        ends.append((case.due, f"the evidence is {MOST_DAYS} days old then"))
    if case.passport:
        ends.append((case.passport.not_after.date(), "the passport ends then"))
    if not ends:
        return "no day: no run has a date, and there is no passport"
    day, why = min(ends)
    return f"{day}: {why}"
