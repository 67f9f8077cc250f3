"""What speaks against the argument: challenges raised by rule, and what people answered.

Serious findings and warnings raise one challenge a code; standing rules raise the others, from what the
evidence is about and from what ``context.json`` leaves blank. A challenge is open until it is closed as its
class says (`CLOSED_BY`). An acceptance counts until its last day. An answer to other evidence is stale and
counts for nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from msgspec import Meta, structs

from certkit.assessment.assessment import Answer, Severity
from certkit.assessment.evaluation import Evaluation, evaluate
from certkit.assessment.findings import FINDINGS
from certkit.assessment.words import finding_text
from certkit.ground import files, toml
from certkit.ground.document import Part, Text
from certkit.ground.wording import listed, many, tier_name
from certkit.record.record import Condition
from certkit.report import words
from certkit.report.argument.case import TEXTS, UseCase, stale
from certkit.report.context import MAX_BYTES, GivenAnswer, read_context, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.report.context import Context, Given, Hazard, Indicator


class Class(StrEnum):
    """How a challenge is closed, the gravest first."""

    SERIOUS = "serious"
    EVIDENCE = "evidence"
    JUDGEMENT = "judgement"
    BLANK = "blank"


class ChallengeStatus(StrEnum):
    """What became of a challenge, worst first."""

    SUSTAINED = "sustained"
    OPEN = "open"
    ACCEPTED = "accepted"
    ANSWERED = "answered"


CLASS_WORDS: Final = {**{kind: kind.value for kind in Class}, Class.BLANK: "not filled in"}
STATUS_WORDS: Final = {
    **{state: state.value for state in ChallengeStatus},
    ChallengeStatus.SUSTAINED: "upheld",
}
"""What people read; the documents keep the values."""

CLOSED_BY: Final = {kind: TEXTS["closed_by"][kind] for kind in Class}
TARGETS: Final[dict[str, str]] = {code: goal for goal, codes in TEXTS["targets"].items() for code in codes}
"""Code of a finding → the goal that it speaks against."""
_ALWAYS_SERIOUS: Final = {row.code for row in FINDINGS if row.severity is Severity.SERIOUS} - {
    row.code for row in FINDINGS if row.severity is not Severity.SERIOUS
}


class Rule(NamedTuple):
    """A standing rule: its class, the goal that it speaks against, and what it says.

    A goal with ``{}`` is that of the hazard or goal which the code names behind a colon. `path` is the
    member of ``context.json`` that closes it where it is blank.
    """

    kind: Class
    target: str
    text: str
    path: str = ""


HAZARD: Final = "G2.{}"
STANDING: Final[dict[str, Rule]] = {
    code: Rule(**{**members, "kind": Class(members["kind"])})
    for code, members in toml.packaged("templates", "challenges.toml").items()
}
"""Code → rule; ``{}`` stands for what a case puts there."""

ASSUMED: Final = {"G4": ("A-2", "A-3", "A-4", "A-6", "A-7"), "G5": ("A-1", "A-5")}
"""Goal → the assumptions that it rests on."""
FRAGILE: Final = 3
"""Outcomes that decide the tier, at or below which the verdict is called fragile."""


class ArgumentChallenge(Part, frozen=True, kw_only=True, rename={"kind": "class"}):
    """What speaks against a goal, what closes it, and what became of it."""

    code: Annotated[
        str, Meta(description="with the id of its hazard or goal behind a colon where it has one")
    ]
    target: Text
    text: Text
    kind: Class
    closed_by: Text
    state: ChallengeStatus = ChallengeStatus.OPEN
    stale: bool = False
    answer: GivenAnswer | None = None
    awaits: Annotated[str | None, Meta(description="what an answer lacks that does not count yet")] = None

    def answer_text(self, context: Context) -> str | None:
        """Return the answer in words, with what it lacks; None where there is none."""
        answer = self.answer
        if answer is None:
            return None
        agreed = f", agreed by {context.called(answer.agreed_by)}" if answer.agreed_by else ""
        until = f", until {answer.until}" if answer.until else ""
        awaits = f" Does not count: {self.awaits}." if self.awaits else ""
        reason = (answer.reason or "no reason").removesuffix(".")
        names = "; ".join(
            f"{item.title or 'untitled'}, {(item.digest or 'no digest')[:23]}"
            for item in answer.evidence or ()
        )
        evidence = f" ({names})" if names else ""
        state = STATUS_WORDS[ChallengeStatus(answer.state)] if answer.state else "no state"
        return f"{state} by {context.called(answer.by)}{agreed}{until}: {reason}{evidence}.{awaits}"


def load_context(path: Path) -> Given:
    """Return the ``context.json`` at a path.

    Raises:
        InputError: ``context.invalid`` or a ``json.*`` code where it is malformed.
    """
    data = files.read(path, limit=MAX_BYTES)
    given = read_context(data, where=str(path), folder=path.parent)
    check_answers(given)
    return given


def check_answers(given: Given) -> None:
    """Raise `InputError` ``context.invalid`` where an answer can never count."""
    refuse(_answer_faults(given.context), given.where)


def _answer_faults(context: Context) -> Iterator[str]:
    about = {HAZARD: {hazard.id for hazard in context.hazards or ()}, "{}": set(ASSUMED)}
    for place, answer in enumerate(context.answers or ()):
        at, (name, _, subject) = f"/answers/{place}", answer.challenge.partition(":")
        rule = STANDING.get(name)
        known = subject in about.get(rule.target, {""}) if rule else answer.challenge in TARGETS
        if answer.challenge == "simulated-origin":
            yield f"{at}/challenge: simulated-origin cannot be answered: the evidence stays a specimen"
        elif not known:
            yield f"{at}/challenge: no rule raises the question {answer.challenge!r}"
        elif answer.state == "accepted" and name in _ALWAYS_SERIOUS:
            yield f"{at}/state: {name} is serious, and never merely accepted"
        elif rule and rule.kind is Class.BLANK and answer.state is not None:
            yield f"{at}/state: {answer.challenge} is closed by filling in what is missing"


def answers_of(given: Given, evaluation: Evaluation) -> tuple[Answer, ...]:
    """Return the answers of a context that count, to the serious findings of an evaluation.

    An answer counts where the context is about this evidence, profile and tier, where it gives a reason and
    names a file beside the context by its digest, and where an independent reviewer agrees who is not its
    author. No answer to a serious finding holds for a time.

    Args:
        given: the context.
        evaluation: what was judged; its own answers do not matter.

    Raises:
        InputError: ``context.invalid`` where a serious finding is accepted.
    """
    if stale(given, evaluation):
        return ()
    given = given.knowing(evaluation.facts)
    context, serious = given.context, {item.code for item in evaluation.assessment.serious}
    said = [answer for answer in context.answers or () if answer.challenge in serious]
    refuse(
        (
            f"/answers/{place}/state: {answer.challenge} is serious, and never merely accepted"
            for place, answer in enumerate(context.answers or ())
            if answer in said and answer.state == "accepted"
        ),
        given.where,
    )
    return tuple(
        Answer(
            code=answer.challenge, by=context.called(answer.by), agreed_by=context.called(answer.agreed_by)
        )
        for answer in said
        if not any(lacking(answer, given))
    )


def answered(evaluation: Evaluation, given: Given | None) -> Evaluation:
    """Return an evaluation judged with the answers of a context that count; as it is without a context."""
    if given is None:
        return evaluation
    question = structs.replace(evaluation.question, answers=answers_of(given, evaluation))
    if question == evaluation.question:
        return evaluation
    return evaluate(evaluation.summary, evaluation.facts, evaluation.profile, question)


def lacking(answer: GivenAnswer, given: Given) -> Iterator[str]:
    """Yield what an answer to a serious finding lacks to count."""
    if answer.state != "answered":
        yield "its state is not answered"
    if answer.reason is None:
        yield "it gives no reason"
    if not given.context.named(answer.by):
        yield "it has no author with a name"
    if not any(item.digest in given.files for item in answer.evidence or ()):
        yield "it names no file beside the context (where) with its digest"
    if answer.agreed_by is None or answer.agreed_by == answer.by:
        yield "no reviewer other than its author agrees"
    elif not given.context.independent(answer.agreed_by):
        yield "who agrees is no independent reviewer with the date of a review"
    if answer.until is not None:
        yield "it has an end"


def challenges(case: UseCase) -> tuple[ArgumentChallenge, ...]:
    """Return every challenge with what became of it: sustained first, then open, accepted, answered."""
    answers = {answer.challenge: answer for answer in case.context.answers or ()}
    nearer = case.given.nearer if case.given else {}
    raised = (
        *_from_findings(case),
        *about_context(case.context, case.reviewing, nearer),
        *_about_evidence(case),
    )
    answered = [_answered(item, answers.get(item.code), case) for item in raised]
    return tuple(
        sorted(
            answered, key=lambda item: (list(ChallengeStatus).index(item.state), list(Class).index(item.kind))
        )
    )


def _answered(raised: ArgumentChallenge, answer: GivenAnswer | None, case: UseCase) -> ArgumentChallenge:
    """Return a challenge with its answer, and with what that lacks where it does not count."""
    if answer is None or answer.state is None:
        return raised
    awaits = _lacks(raised.kind, answer, case)
    if case.stale:
        awaits = f"it was given for other evidence ({listed(case.stale)})"
    state = ChallengeStatus.OPEN if awaits else ChallengeStatus(answer.state)
    return structs.replace(raised, state=state, answer=answer, stale=bool(case.stale), awaits=awaits)


def _lacks(kind: Class, answer: GivenAnswer, case: UseCase) -> str | None:
    if answer.state == "sustained" or case.given is None:
        return None
    if kind is Class.SERIOUS and (lack := next(lacking(answer, case.given), None)):
        return lack
    if not case.context.named(answer.by):
        return "it has no author with a name"
    if case.ended(answer.until):
        return f"it ended on {answer.until}"
    if answer.state == "accepted":
        return None
    if answer.agreed_by not in case.reviewing or answer.agreed_by == answer.by:
        return "it awaits review"
    if kind is Class.EVIDENCE and not any(item.digest in case.given.files for item in answer.evidence or ()):
        return "it names no file beside the context (where) with its digest"
    return None


def _from_findings(case: UseCase) -> Iterator[ArgumentChallenge]:
    for item in case.evaluation.assessment.findings:
        if item.severity is not Severity.INFO:
            kind = Class.SERIOUS if item.severity is Severity.SERIOUS else Class.EVIDENCE
            yield _challenge(item.code, kind, TARGETS[item.code], words.capital(finding_text(item)) + ".")


def _challenge(code: str, kind: Class, target: str, text: str) -> ArgumentChallenge:
    return ArgumentChallenge(code=code, target=target, text=text, kind=kind, closed_by=CLOSED_BY[kind])


def _raise(code: str, *values: object) -> ArgumentChallenge:
    name, _, subject = code.partition(":")
    rule = STANDING[name]
    return _challenge(code, rule.kind, rule.target.format(subject), rule.text.format(*values))


def about_context(
    context: Context, reviewing: set[str], nearer: dict[str, str]
) -> Iterator[ArgumentChallenge]:
    """Yield what a context leaves open, whatever the evidence is; the reviews of `reviewing` count."""
    dependent = []
    for person in sorted(reviewing):
        relation = nearer.get(person) or context.by_id[person].relation or "relation not stated"
        owner = "the owner" if context.same(person, context.owner) else relation
        dependent.append(f"{context.called(person)} ({owner})")
    holds: dict[str, object] = {
        "no-use": context.use is None or not context.use.purpose,
        "no-owner": not context.named(context.owner),
        "no-reviewer": not reviewing,
        "reviewer-not-independent": not any(map(context.independent, reviewing)) and "; ".join(dependent),
        "no-hazards": not context.hazards,
        "no-monitoring": ", ".join(unwatched(context)),
    }
    yield from (_raise(code, value) for code, value in holds.items() if value)
    comments = [comment for reviewer in context.reviewers or () for comment in reviewer.comments or ()]
    if unresolved := sum(comment.resolved is not True for comment in comments):
        yield _raise("comment-unresolved", many(unresolved, "comment"))
    for goal in ASSUMED:
        if names := unowned(context, goal):
            yield _raise(f"assumption-unowned:{goal}", listed(names))
    for hazard in context.hazards or ():
        if missing := [name for name in _STATED if getattr(hazard, name) is None]:
            yield _raise(f"hazard-blank:{hazard.id}", listed([_STATED[name] for name in missing]))
    yield from _domains(context)


def _domains(context: Context) -> Iterator[ArgumentChallenge]:
    """Yield where the domains of the use, if they are stated, are not those of the hazards."""
    wanted = set((context.operating_domain and context.operating_domain.domains) or ())
    hazards = {hazard.id: set(hazard.domains or wanted) for hazard in context.hazards or ()}
    for name, domains in hazards.items() if wanted else ():
        if outside := sorted(domains - wanted):
            yield _raise(f"hazard-elsewhere:{name}", listed(outside))
    if hazards and (unnamed := sorted(wanted - set().union(*hazards.values()))):
        yield _raise("domain-without-hazard", listed(unnamed))


_STATED: Final = {"title": "title", "harm": "harm", "severity": "severity", "tolerable": "tolerable rate"}
"""What every hazard states → its name."""


def watched(item: Indicator, context: Context) -> bool:
    """Tell whether an indicator says what is measured, its limit, who watches it and what is done."""
    return all((item.measure, item.limit, context.named(item.owner), item.action))


def unowned(context: Context, goal: str) -> list[str]:
    """Return the assumptions of a goal that nobody owns with a rationale."""
    owned = {item.id for item in context.assumptions or () if context.named(item.owner) and item.rationale}
    return [name for name in ASSUMED[goal] if name not in owned]


def unwatched(context: Context) -> list[str]:
    """Return G3 and the hazards that have no whole indicator."""
    claims = {item.claim for item in context.monitoring or () if watched(item, context)}
    every = ("G3", *(item.id for item in context.hazards or ()))
    return [name for name in every if not claims & {name, f"G2.{name}"}]


def _about_hazard(case: UseCase, hazard: Hazard) -> Iterator[ArgumentChallenge]:
    seen = case.measured[hazard.id]
    if hazard.tolerable is not None and not seen.within:
        counted = f"{seen.counted_text} ({seen.where})"
        yield _raise(f"rate-not-shown:{hazard.id}", counted, seen.limits_text, seen.tolerable_text)
    if seen.unseen:
        yield _raise(f"hazard-unseen:{hazard.id}", listed(seen.unseen))
    grave = hazard.severity not in {"negligible", "marginal"}
    if grave and case.use.oversight in {None, "none"}:
        yield _raise(f"no-oversight:{hazard.id}", hazard.severity or "of a severity that is not stated")
    provisional = {row.id for row in case.evaluation.assessment.criteria if row.provisional}
    if names := sorted(provisional & set(hazard.criteria or ())):
        yield _raise(f"provisional-criterion:{hazard.id}", listed(names))


def _about_evidence(case: UseCase) -> Iterator[ArgumentChallenge]:
    for hazard in case.context.hazards or ():
        yield from _about_hazard(case, hazard)
    evaluation = case.evaluation
    verdict, times = evaluation.assessment.verdict, evaluation.summary.times
    if verdict.decides == "table" and verdict.table.tier >= case.tier > verdict.bounded.tier:
        yield _raise("point-estimates", tier_name(verdict.bounded.tier))
    flips = evaluation.fragility.flips
    if flips and flips.needed <= FRAGILE:
        yield _raise("fragile", many(flips.needed, "other outcome"), verdict.tier)
    if unseen := sorted(case.wanted - case.tested):
        yield _raise("domain-unseen", listed(unseen))
    conditions = {cell.condition for cell in case.core_cells}
    if absent := [item.value.replace("_", " ") for item in Condition if item not in conditions]:
        yield _raise("condition-unseen", listed(absent))
    if Condition.ADVERSARIAL in conditions:
        yield _raise("static-attacks")
    yield _raise("one-period")
    records = evaluation.summary.records
    if undated := records - times.timed:
        yield _raise("evidence-undated", undated, many(records))
    if case.overdue:
        yield _raise("evidence-old", case.due)
    if case.last_run and case.today and case.today < case.last_run:
        yield _raise("runs-to-come", case.last_run, case.today)
