"""What speaks against the argument: challenges raised by rule, and what people answered.

Serious findings and warnings raise one challenge a code, with the state that the assessment gave to serious
ones; standing rules raise the others, from what the evidence is about and from what ``context.json`` leaves
blank. A challenge is open until it is closed as its class says:

| class | closed by |
|---|---|
| serious | other evidence; an answer with a digest that an independent reviewer agrees with |
| evidence | other evidence; an answer with a digest that a reviewer agrees with; acceptance by the owner |
| judgement | an answer with a reason that a reviewer agrees with; acceptance by the owner |
| blank | filling it in |

An acceptance counts until its last day. An answer to other evidence is stale and counts for nothing.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.assessment.findings.findings import SEVERITY, STATED, Severity, lacking
from certkit.errors import InputError
from certkit.evidence.records.record import Condition, Split
from certkit.report import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.evidence.context import Answer, Context, Hazard
    from certkit.report.argument.case import Case


class Class(StrEnum):
    """How a challenge is closed."""

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
    Class.SERIOUS: "other evidence, or an answer with a file's digest that an independent reviewer"
    " agrees with",
    Class.EVIDENCE: "other evidence, an answer with a file's digest that a reviewer agrees with, or"
    " acceptance by the owner until a day",
    Class.JUDGEMENT: "an answer with a reason that a reviewer agrees with, or acceptance by the owner"
    " until a day",
    Class.BLANK: "filling it in",
}

_AGAINST: Final = {
    "G3": (
        "no-fault-runs held-out-runs no-nominal-runs nominal-below-faults nominal-only-domain "
        "nominal-share few-fault-runs repeated-identical-runs repeats-as-independent clusters-joined "
        "clusters-unequal undeclared-independence row-rests-on-few csi-trend-zero csi-irs-factor "
        "no-halt-due integrity-hollow"
    ),
    "G3.2": "faults-left-out",
    "G3.4": "no-attack-landed attack-landed-unknown attacks-left-out success-with-attack cascade-definition",
    "G4.1": "unsealed",
    "G4.2": (
        "no-records repeated-attempt undeclared-attempt undeclared-runs declared-runs-differ "
        "harness-errors outside-period one-start-time constant-interval times-backwards domains-in-blocks "
        "implausible-pace runs-alike names-alike tasks-not-distinct import-odd import-refused "
        "periods-differ periods-not-compared bundles-differ integrity-partial integrity-tasks"
    ),
    "G4.3": (
        "judge-not-independent judge-uncalibrated judge-agreement-low calibration-chosen judge-correction "
        "success-with-violations stopped-short grade-on-failure outcome-against-rule-a "
        "outcome-against-composite few-human-checks oracle-varies oracle-equals-actual "
        "traces-not-enclosed derived-differs"
    ),
    "G4.4": (
        "unversioned-agent unpinned-components protocol-not-stated evaluator-not-independent "
        "temperature-not-zero"
    ),
    "G5.2": "fault-mix-differs narrow-fault-mix own-conditions-dominate",
}
TARGETS: Final = {code: goal for goal, codes in _AGAINST.items() for code in codes.split()}
"""Code of a finding → the goal that it speaks against."""

STANDING: Final[dict[str, tuple[Class, str]]] = {
    "no-use": (Class.BLANK, "G1"),
    "no-owner": (Class.BLANK, "G1"),
    "no-reviewer": (Class.BLANK, "G1"),
    "reviewer-not-independent": (Class.JUDGEMENT, "G1"),
    "comment-unresolved": (Class.JUDGEMENT, "G1"),
    "no-hazards": (Class.BLANK, "G2"),
    "rate-not-shown": (Class.EVIDENCE, "G2"),
    "no-oversight": (Class.BLANK, "G2"),
    "provisional-criterion": (Class.JUDGEMENT, "G2"),
    "point-estimates": (Class.EVIDENCE, "G3"),
    "fragile": (Class.JUDGEMENT, "G3"),
    "assumption-unowned": (Class.BLANK, "G4"),
    "domain-unseen": (Class.EVIDENCE, "G5.1"),
    "condition-unseen": (Class.EVIDENCE, "G5.2"),
    "static-attacks": (Class.JUDGEMENT, "G5.2"),
    "single-time-point": (Class.JUDGEMENT, "G6"),
    "no-monitoring": (Class.BLANK, "G6"),
    "evidence-undated": (Class.EVIDENCE, "G6"),
    "evidence-old": (Class.EVIDENCE, "G6"),
}
"""Code of a standing rule → its class, and the goal that it speaks against where it names no other."""

FRAGILE: Final = 3
"""Outcomes that decide the tier, at or below which the verdict is called fragile."""
MOST_DAYS: Final = 90
"""Age of the evidence beyond which it is called old: [26] §12.4 asks for an evaluation every quarter."""
_GRAVE: Final = {"critical", "catastrophic"}


class Challenge(Struct, frozen=True, kw_only=True):
    """What is asked of a goal; `code` carries the id of its hazard or goal behind a colon where it has one.

    `awaits` says what an answer lacks that does not count yet.
    """

    code: str
    target: str
    text: str
    kind: Class
    state: Standing = Standing.OPEN
    answer: Answer | None = None
    stale: bool = False
    awaits: str | None = None

    @property
    def closed_by(self) -> str:
        """How it can be closed."""
        return CLOSED_BY[self.kind]


def kind_of(code: str) -> Class | None:
    """Return the class of a code, None where no rule raises it."""
    name = code.partition(":")[0]
    if name in STANDING:
        return STANDING[name][0]
    severity = SEVERITY.get(code)
    if severity is Severity.SERIOUS:
        return Class.SERIOUS
    return Class.EVIDENCE if severity is Severity.WARNING or code in STATED else None


def check_answers(context: Context, where: str) -> None:
    """Raise `InputError` ``context.invalid`` where an answer can never count."""
    if faults := tuple(_answer_faults(context)):
        message = faults[0] if len(faults) == 1 else f"{len(faults)} faults\n  " + "\n  ".join(faults)
        raise InputError("context.invalid", message, where=where)


def _answer_faults(context: Context) -> Iterator[str]:
    for place, answer in enumerate(context.answers or ()):
        at, kind = f"/answers/{place}", kind_of(answer.challenge)
        if answer.challenge == "simulated-origin":
            yield f"{at}/challenge: simulated-origin cannot be answered: the evidence stays a specimen"
        elif kind is None:
            yield f"{at}/challenge: no rule raises a challenge {answer.challenge!r}"
        elif kind is Class.BLANK and answer.state is not None:
            yield f"{at}/state: {answer.challenge} is closed by filling in what is missing"
        elif kind is Class.SERIOUS and answer.state == "accepted":
            yield f"{at}/state: {answer.challenge} is serious, and never merely accepted"


def challenges(case: Case) -> tuple[Challenge, ...]:
    """Return every challenge with what became of it: sustained first, then open, accepted, answered."""
    answers = {answer.challenge: answer for answer in case.context.answers or ()}
    settled = [
        _settled(raised, answers.get(raised.code), case) for raised in (*_found(case), *_standing(case))
    ]
    order = list(Standing)
    grave = list(Class)
    return tuple(sorted(settled, key=lambda item: (order.index(item.state), grave.index(item.kind))))


def _settled(raised: Challenge, answer: Answer | None, case: Case) -> Challenge:
    if answer is None or answer.state is None:
        return raised
    state, awaits = _counted(raised, answer, case)
    if case.stale:
        state, awaits = raised.state, f"it was given for other evidence ({', '.join(case.stale)} differ)"
    values = {name: getattr(raised, name) for name in ("code", "target", "text", "kind")}
    return Challenge(**values, state=state, answer=answer, stale=bool(case.stale), awaits=awaits)


def _counted(raised: Challenge, answer: Answer, case: Case) -> tuple[Standing, str | None]:
    """Return what an answer makes of a challenge, and what it lacks where it does not count."""
    context = case.context
    if answer.state == "sustained":
        return Standing.SUSTAINED, None
    if answer.state == "accepted":
        ended = case.today is None or answer.until is None or date.fromisoformat(answer.until) < case.today
        return (
            (Standing.OPEN, f"the acceptance ended on {answer.until}") if ended else (Standing.ACCEPTED, None)
        )
    if raised.kind is Class.SERIOUS:
        missing = next(lacking(answer, context), None)
        return (Standing.OPEN, missing) if missing else (Standing.ANSWERED, None)
    reviewing = {reviewer.person for reviewer in context.reviewers or ()}
    if answer.agreed_by not in reviewing or answer.agreed_by == answer.by:
        return Standing.OPEN, "it awaits review"
    if raised.kind is Class.JUDGEMENT:
        return Standing.ANSWERED, None
    if not any(item.digest for item in answer.evidence or ()):
        return Standing.OPEN, "it names no evidence by its digest"
    return Standing.ANSWERED, None


def _found(case: Case) -> Iterator[Challenge]:
    """Yield the challenges that findings raise, one a code."""
    told: dict[str, list[str]] = {}
    for item in case.document["findings"]:
        if kind_of(item["code"]) is not None and item["code"] != "simulated-origin":
            told.setdefault(item["code"], []).append(item["message"])
    for code, messages in told.items():
        text = "; ".join(messages)
        kind = Class.SERIOUS if SEVERITY[code] is Severity.SERIOUS else Class.EVIDENCE
        yield Challenge(
            code=code, target=TARGETS.get(code, "G3"), text=text[:1].upper() + text[1:], kind=kind
        )


def _raise(code: str, text: str, target: str | None = None) -> Challenge:
    kind, usual = STANDING[code.partition(":")[0]]
    return Challenge(code=code, target=target or usual, text=text, kind=kind)


def _standing(case: Case) -> Iterator[Challenge]:
    yield from about_people(case.context)
    yield from _about_hazards(case)
    yield from _about_evidence(case)
    yield from _about_use(case)
    yield from _about_time(case)


def about_people(context: Context) -> Iterator[Challenge]:
    """Yield what the people who are named, or nobody, leave open."""
    if context.use is None or not context.use.purpose:
        yield _raise("no-use", "Nobody stated what the agent is to be used for.")
    if context.owner is None:
        yield _raise("no-owner", "Nobody owns the risk of this use.")
    reviewers = context.reviewers or ()
    if not reviewers:
        yield _raise("no-reviewer", "No reviewer is recorded: only the program has looked at this argument.")
    elif not any(context.independent(reviewer.person) for reviewer in reviewers):
        text = "No reviewer is independent of the developer and other than the owner."
        yield _raise("reviewer-not-independent", text)
    unresolved = sum(comment.resolved is not True for one in reviewers for comment in one.comments or ())
    if unresolved:
        yield _raise(
            "comment-unresolved", f"{words.plural(unresolved, 'comment')} of reviewers stand unresolved."
        )
    for goal in ("G4", "G5"):
        names = unowned(context, goal)
        if names:
            text = f"Nobody owns {words.listed(names)} with a rationale."
            yield _raise(f"assumption-unowned:{goal}", text, goal)


ASSUMED: Final = {"G4": ("A-2", "A-3", "A-4", "A-6", "A-7"), "G5": ("A-1", "A-5")}
"""Goal → the assumptions that it rests on."""


def unowned(context: Context, goal: str) -> list[str]:
    """Return the assumptions of a goal that nobody owns with a rationale."""
    owned = {item.id for item in context.assumptions or () if item.owner and item.rationale}
    return [name for name in ASSUMED[goal] if name not in owned]


def _about_hazards(case: Case) -> Iterator[Challenge]:
    hazards = case.context.hazards or ()
    if not hazards:
        yield _raise("no-hazards", "No hazard is named: no criterion is tied to a harm of this use.")
    for hazard in hazards:
        yield from _about_hazard(case, hazard)


def _about_hazard(case: Case, hazard: Hazard) -> Iterator[Challenge]:
    goal, measured = f"G2.{hazard.id}", case.measured[hazard.id]
    if hazard.tolerable is not None and (measured.bound is None or measured.bound > hazard.tolerable.at_most):
        rate = f"{100 * hazard.tolerable.at_most:g} %"
        shown = (
            f"the share of failures is shown to be below {100 * measured.bound:.2g} %"
            if measured.bound is not None
            else f"no bound on the share of failures can be told: {measured.reason}"
        )
        yield _raise(f"rate-not-shown:{hazard.id}", f"{rate} of runs may fail, and {shown}.", goal)
    oversight = case.context.use.oversight if case.context.use else None
    if hazard.severity in _GRAVE and oversight in {None, "none"}:
        text = f"The harm is {hazard.severity}, and nobody oversees the agent."
        yield _raise(f"no-oversight:{hazard.id}", text, goal)
    provisional = {row["id"] for row in case.document["criteria"] if row["provisional"]}
    if names := sorted(provisional & set(hazard.criteria or ())):
        text = f"It rests on {words.listed(names)}, whose thresholds the source calls provisional."
        yield _raise(f"provisional-criterion:{hazard.id}", text, goal)


def _about_evidence(case: Case) -> Iterator[Challenge]:
    verdict = case.document["verdict"]
    table, bounded = verdict["table"]["tier"], verdict["bounded"]["tier"]
    if case.document["profile"]["reading"] == "table" and table >= case.tier > bounded:
        shown = f"Tier {bounded}" if bounded else "no tier"
        text = f"The verdict rests on point estimates; by bounds the evidence shows {shown}."
        yield _raise("point-estimates", text)
    flips = case.document["fragility"].get("flips")
    if flips and flips["needed"] <= FRAGILE:
        text = f"{words.plural(flips['needed'], 'other outcome')} would lose Tier {verdict['tier']}."
        yield _raise("fragile", text)


def _about_use(case: Case) -> Iterator[Challenge]:
    domain = case.context.operating_domain
    if unseen := sorted(set(domain.domains or () if domain else ()) - case.tested):
        yield _raise(
            "domain-unseen", f"Domains of the use without a run under faults: {words.listed(unseen)}."
        )
    cells = [cell for cell in case.document["breakdown"] if cell["split"] == Split.STANDARD and cell["runs"]]
    seen = {cell["condition"] for cell in cells}
    absent = [item.value.replace("_", " ") for item in Condition if item not in seen]
    if absent:
        yield _raise("condition-unseen", f"Kinds of faults without a run: {words.listed(absent)}.")
    if Condition.ADVERSARIAL in seen:
        text = "The attacks are the recorded ones: an opponent who adapts to this agent was not shown."
        yield _raise("static-attacks", text)


def _about_time(case: Case) -> Iterator[Challenge]:
    text = (
        "The evidence shows one stretch of time: the agent, its model or its surroundings may have changed."
    )
    yield _raise("single-time-point", text)
    if not monitored(case.context):
        text = "Nobody says what is watched in operation: an indicator for G3 and for each hazard is missing."
        yield _raise("no-monitoring", text)
    if case.last_run is None:
        yield _raise("evidence-undated", "No run says when it was made.")
    elif case.today is not None and (days := (case.today - case.last_run).days) > MOST_DAYS:
        text = f"The last run is {days:,} days old; the source asks for an evaluation every quarter."
        yield _raise("evidence-old", text)


def monitored(context: Context) -> bool:
    """Tell whether one indicator watches G3 and one each hazard, with limit, owner and action."""
    watched = {item.claim for item in context.monitoring or () if item.limit and item.owner and item.action}
    hazards: list[Any] = [*(context.hazards or ())]
    return "G3" in watched and all(watched & {item.id, f"G2.{item.id}"} for item in hazards)
