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

from certkit.assessment.findings.findings import GRADED, SEVERITY, Severity, lacking
from certkit.bundle.context import Answer, refuse
from certkit.ground import toml, wording
from certkit.ground.document import Part, Text
from certkit.ground.wording import many
from certkit.record.record import Condition
from certkit.report import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.bundle.context import Context, Given, Hazard, Indicator
    from certkit.report.argument.case import Case


class Class(StrEnum):
    """How a challenge is closed, the gravest first."""

    SERIOUS = "serious"
    EVIDENCE = "evidence"
    JUDGEMENT = "judgement"
    BLANK = "blank"


class Standing(StrEnum):
    """What became of a challenge, worst first."""

    SUSTAINED = "sustained"
    OPEN = "open"
    ACCEPTED = "accepted"
    ANSWERED = "answered"


CLOSED_BY: Final = {
    Class.SERIOUS: "other evidence, or an answer with a file beside context.json (where, digest) that an"
    " independent reviewer agrees with",
    Class.EVIDENCE: "other evidence, an answer with a file beside context.json (where, digest) that a"
    " reviewer agrees with, or acceptance by the owner until a day",
    Class.JUDGEMENT: "an answer with a reason that a reviewer agrees with, or acceptance by the owner"
    " until a day",
    Class.BLANK: "writing what is missing into context.json",
}

_AGAINST: Final = {
    "G3": (
        "no-fault-runs held-out-runs failures-elsewhere no-nominal-runs "
        "nominal-only-domain nominal-share few-fault-runs repeated-identical-runs repeats-as-independent "
        "clusters-joined undeclared-independence "
        "no-halt-due integrity-hollow"
    ),
    "G3.2": "faults-left-out fault-effect-unknown",
    "G3.4": "no-attack-landed attack-landed-unknown attacks-left-out success-with-attack cascade-definition",
    "G4.1": "unsealed",
    "G4.2": (
        "no-records repeated-attempt undeclared-attempt undeclared-runs declared-runs-differ repeats-uneven "
        "harness-errors outside-period one-start-time constant-interval times-backwards domains-in-blocks "
        "implausible-pace runs-alike names-alike names-accents tasks-not-distinct import-odd import-refused "
        "periods-differ periods-not-compared integrity-partial integrity-rated "
        "integrity-tasks"
    ),
    "G4.3": (
        "judge-not-independent judge-uncalibrated calibration-chosen judge-correction "
        "success-with-violations outcome-against-rule-a import-guessed "
        "outcome-against-composite few-human-checks oracle-varies oracle-equals-actual "
        "traces-not-enclosed derived-differs"
    ),
    "G4.4": (
        "unversioned-agent unpinned-components protocol-not-stated evaluator-not-independent "
        "temperature-not-zero"
    ),
    "G5.2": "fault-mix-differs narrow-fault-mix own-conditions-dominate faults-at-the-end",
}
TARGETS: Final = {code: goal for goal, codes in _AGAINST.items() for code in codes.split()}
"""Code of a finding → the goal that it speaks against."""


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
    code: Rule(**{**told, "kind": Class(told["kind"])})
    for code, told in toml.packaged("templates", "challenges.toml").items()
}
"""Code → rule; ``{}`` stands for what a case puts there."""

ASSUMED: Final = {"G4": ("A-2", "A-3", "A-4", "A-6", "A-7"), "G5": ("A-1", "A-5")}
"""Goal → the assumptions that it rests on."""
FRAGILE: Final = 3
"""Outcomes that decide the tier, at or below which the verdict is called fragile."""


class Challenge(Part, frozen=True, kw_only=True, rename={"kind": "class"}):
    """What speaks against a goal, what closes it, and what became of it."""

    code: Annotated[
        str, Meta(description="with the id of its hazard or goal behind a colon where it has one")
    ]
    target: Text
    text: Text
    kind: Class
    closed_by: Text
    state: Standing = Standing.OPEN
    stale: bool = False
    answer: Answer | None = None
    awaits: Annotated[str | None, Meta(description="what an answer lacks that does not count yet")] = None

    def said(self, context: Context) -> str | None:
        """Return the answer in words, with what it lacks; None where there is none."""
        answer = self.answer
        if answer is None:
            return None
        agreed = f", agreed by {context.called(answer.agreed_by)}" if answer.agreed_by else ""
        until = f", until {answer.until}" if answer.until else ""
        awaits = f" Does not count: {self.awaits}." if self.awaits else ""
        reason = (answer.reason or "no reason").removesuffix(".")
        shown = [
            f"{item.title or 'untitled'}, {(item.digest or 'no digest')[:23]}"
            for item in answer.evidence or ()
        ]
        files = f" ({'; '.join(shown)})" if shown else ""
        return f"{answer.state} by {context.called(answer.by)}{agreed}{until}: {reason}{files}.{awaits}"


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
            yield f"{at}/challenge: no rule raises a challenge {answer.challenge!r}"
        elif answer.state == "accepted" and SEVERITY.get(name) is Severity.SERIOUS and name not in GRADED:
            yield f"{at}/state: {name} is serious, and never merely accepted"
        elif rule and rule.kind is Class.BLANK and answer.state is not None:
            yield f"{at}/state: {answer.challenge} is closed by filling in what is missing"


def challenges(case: Case) -> tuple[Challenge, ...]:
    """Return every challenge with what became of it: sustained first, then open, accepted, answered."""
    answers = {answer.challenge: answer for answer in case.context.answers or ()}
    nearer = case.given.nearer if case.given else {}
    raised = (
        *_from_findings(case),
        *about_context(case.context, case.reviewing, nearer),
        *_about_evidence(case),
    )
    told = [_told(item, answers.get(item.code), case) for item in raised]
    return tuple(
        sorted(told, key=lambda item: (list(Standing).index(item.state), list(Class).index(item.kind)))
    )


def unraised(context: Context, challenges: Iterable[Challenge]) -> Iterator[tuple[int, Answer]]:
    """Yield the answers to challenges that are not raised now, with their places."""
    codes = {item.code for item in challenges}
    for place, answer in enumerate(context.answers or ()):
        if answer.state and answer.challenge not in codes:
            yield place, answer


def _told(raised: Challenge, answer: Answer | None, case: Case) -> Challenge:
    """Return a challenge with its answer, and with what that lacks where it does not count."""
    if answer is None or answer.state is None:
        return raised
    awaits = _lacks(raised.kind, answer, case)
    if case.stale:
        awaits = f"it was given for other evidence ({words.listed(case.stale)})"
    state = Standing.OPEN if awaits else Standing(answer.state)
    return structs.replace(raised, state=state, answer=answer, stale=bool(case.stale), awaits=awaits)


def _lacks(kind: Class, answer: Answer, case: Case) -> str | None:
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
    if kind is Class.EVIDENCE and not any(item.digest in case.given.beside for item in answer.evidence or ()):
        return "it names no file beside the context (where) with its digest"
    return None


def _from_findings(case: Case) -> Iterator[Challenge]:
    for item in case.assessment.challenges:
        kind = Class.SERIOUS if item.severity is Severity.SERIOUS else Class.EVIDENCE
        yield _challenge(item.code, kind, TARGETS.get(item.code, "G3"), words.capital(item.message))


def _challenge(code: str, kind: Class, target: str, text: str) -> Challenge:
    return Challenge(code=code, target=target, text=text, kind=kind, closed_by=CLOSED_BY[kind])


def _raise(code: str, *values: object) -> Challenge:
    name, _, subject = code.partition(":")
    rule = STANDING[name]
    return _challenge(code, rule.kind, rule.target.format(subject), rule.text.format(*values))


def about_context(context: Context, reviewing: set[str], nearer: dict[str, str]) -> Iterator[Challenge]:
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
            yield _raise(f"assumption-unowned:{goal}", words.listed(names))
    for hazard in context.hazards or ():
        if missing := [name for name in _STATED if getattr(hazard, name) is None]:
            yield _raise(f"hazard-blank:{hazard.id}", words.listed([_STATED[name] for name in missing]))
    yield from _domains(context)


def _domains(context: Context) -> Iterator[Challenge]:
    """Yield where the domains of the use, if they are stated, are not those of the hazards."""
    wanted = set((context.operating_domain and context.operating_domain.domains) or ())
    hazards = {hazard.id: set(hazard.domains or wanted) for hazard in context.hazards or ()}
    for name, domains in hazards.items() if wanted else ():
        if outside := sorted(domains - wanted):
            yield _raise(f"hazard-elsewhere:{name}", words.listed(outside))
    if hazards and (unnamed := sorted(wanted - set().union(*hazards.values()))):
        yield _raise("domain-without-hazard", words.listed(unnamed))


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


def _about_hazard(case: Case, hazard: Hazard) -> Iterator[Challenge]:
    seen, bound = case.measured[hazard.id], case.measured[hazard.id].bound
    if hazard.tolerable is not None and (bound is None or bound > hazard.tolerable.at_most):
        shown = (
            f"and no bound on their share can be told: {seen.reason}"
            if bound is None
            else f"which shows only that their share is below {words.share(bound, hazard.tolerable.at_most)}"
        )
        limit, failed = words.rate(hazard.tolerable.at_most), f"{seen.failures:,} of {seen.runs:,}"
        yield _raise(f"rate-not-shown:{hazard.id}", seen.where, limit, failed, shown)
    if seen.unseen:
        yield _raise(f"hazard-unseen:{hazard.id}", words.listed(seen.unseen))
    grave = hazard.severity not in {"negligible", "marginal"}
    if grave and case.use.oversight in {None, "none"}:
        yield _raise(f"no-oversight:{hazard.id}", hazard.severity or "of a severity that nobody stated")
    provisional = {row["id"] for row in case.document["criteria"] if row["provisional"]}
    if names := sorted(provisional & set(hazard.criteria or ())):
        yield _raise(f"provisional-criterion:{hazard.id}", words.listed(names))


def _about_evidence(case: Case) -> Iterator[Challenge]:
    for hazard in case.context.hazards or ():
        yield from _about_hazard(case, hazard)
    verdict, reading = case.assessment.verdict, case.assessment.profile.reading
    if reading == "table" and verdict.table.tier >= case.tier > verdict.bounded.tier:
        yield _raise("point-estimates", wording.tier(verdict.bounded.tier))
    flips = case.document["fragility"].get("flips")
    if flips and flips["needed"] <= FRAGILE:
        yield _raise("fragile", many(flips["needed"], "other outcome"), verdict.tier)
    if unseen := sorted(case.wanted - case.tested):
        yield _raise("domain-unseen", words.listed(unseen))
    seen = {cell["condition"] for cell in case.cells}
    if absent := [item.value.replace("_", " ") for item in Condition if item not in seen]:
        yield _raise("condition-unseen", words.listed(absent))
    if Condition.ADVERSARIAL in seen:
        yield _raise("static-attacks")
    yield _raise("single-time-point")
    every = case.assessment.counts.records
    if undated := every - case.assessment.times.timed:
        yield _raise("evidence-undated", undated, many(every))
    if case.due and case.today and case.today > case.due:
        yield _raise("evidence-old", case.due)
    if case.last_run and case.today and case.today < case.last_run:
        yield _raise("runs-to-come", case.last_run, case.today)
