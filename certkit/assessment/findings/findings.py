"""Findings: what a careful reader would ask about the evidence, said without being asked; and challenges.

Each finding has a stable code, a severity and a message with its counts; none changes a value or a row.
`templates/findings.toml` lists every code with the gravest severity it may have and what it means. Findings
come from `provenance.py` (who, how, by whom), `contradictions.py` (records that nobody would believe, runs
against each other), `plausibility.py` (what the numbers themselves show), `accumulated.py` and `rater_error`
(the judge's error).

Every serious finding and every warning raises a challenge; several findings of one code are one. A serious
challenge contests the verdict while it is open: a tier whose criteria are met is then `contested`. It closes
when the evidence changes, so that the finding is gone, or when it is answered in ``context.json``. Such an
answer counts where the context is bound to this evidence, profile and tier, where the answer gives a reason
and names a file beside the context by its digest, and where an independent reviewer agrees who is not its
author. No serious challenge is merely accepted, and no answer to one holds for a time: nobody here has a
clock.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from certkit.ground import toml
from certkit.ground.document import Part
from certkit.ground.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from certkit.bundle.context import Answer, Given


class Severity(StrEnum):
    """How much a finding should trouble a reader."""

    SERIOUS = "serious"
    WARNING = "warning"
    INFO = "info"


COMMITMENTS: Final = {"integrity-hollow", "integrity-partial", "integrity-rated", "integrity-tasks"}
"""Findings about commitments, which stand beside the verdict and never among its challenges."""
STATED: Final = {"faults-left-out"}
"""Findings that are always among the challenges, however little there is of them."""
GRADED: Final = {
    "attacks-left-out",
    "faults-left-out",
    "judge-correction",
    "own-conditions-dominate",
    "periods-not-compared",
}
"""Findings whose severity follows how much there is of them; every other code has one severity."""

_TOLD: Final = toml.packaged("templates", "findings.toml")
SEVERITY: Final = {code: severity for severity in Severity for code in _TOLD[severity]}
"""Every code with the gravest severity that it may have, serious ones first."""
MEANING: Final[dict[str, str]] = {code: text for codes in _TOLD.values() for code, text in codes.items()}
"""What raises each finding, what does not, and how to clear it."""


# Limits of the findings that a statement's own counts give too: `certkit.passport.derived` asks for those.
HALF: Final = Fraction(1, 2)
TENTH: Final = Fraction(1, 10)
KIND_SHARE: Final = Fraction(5, 100)
KINDS: Final = 3
"""Standard kinds of fault that a mix should have, each with at least `KIND_SHARE` of the fault runs."""
FAULT_RUNS: Final = 30
"""Fault runs of a domain below which its rate says little."""
HARNESS_SHARE: Final = Fraction(5, 100)
RUNS_PER_SECOND: Final = 50
"""What a large evaluation with many workers does at most."""


def graded(share: Fraction) -> Severity:
    """Return how grave it is that runs of this share of all are left out."""
    return Severity.SERIOUS if share > HALF else Severity.WARNING if share > TENTH else Severity.INFO


class State(StrEnum):
    """What became of a challenge."""

    OPEN = "open"
    ANSWERED = "answered"


Code = Annotated[str, Meta(extra_json_schema={"enum": sorted(SEVERITY)})]


class Finding(Struct, frozen=True, omit_defaults=True):
    """One thing that a reader should know; `state` is that of the challenge which a serious one raises."""

    code: Code
    severity: Severity
    message: str
    state: State | UnsetType = UNSET


def finding(code: str, message: str, severity: Severity | None = None) -> Finding:
    """Return a finding; `severity` is that of its code unless told otherwise. A serious one is open."""
    severity = severity or SEVERITY[code]
    return Finding(code, severity, message, State.OPEN if severity is Severity.SERIOUS else UNSET)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by severity, then in the order of `SEVERITY`."""
    severities, codes = list(Severity), list(SEVERITY)
    return tuple(sorted(findings, key=lambda item: (severities.index(item.severity), codes.index(item.code))))


class Challenge(Part, frozen=True, kw_only=True):
    """What all findings of one code ask; `answered_by` names the authors of the answers that count."""

    code: Code
    severity: Severity
    state: State
    message: str
    answered_by: tuple[str, ...] = ()

    @property
    def contests(self) -> bool:
        """Tell whether it stands against a verdict."""
        return self.severity is Severity.SERIOUS and self.state is State.OPEN


def raised(findings: Iterable[Finding], answers: Mapping[str, tuple[str, ...]]) -> tuple[Challenge, ...]:
    """Return the challenges that findings raise, each as grave as the gravest finding of its code.

    `answers` holds the authors who answered a code; only serious challenges have answers.
    """
    messages: dict[str, list[str]] = {}
    severities: dict[str, Severity] = {}
    for item in ordered(findings):
        if item.severity is not Severity.INFO or item.code in STATED:
            messages.setdefault(item.code, []).append(item.message)
            severities.setdefault(item.code, item.severity)
    return tuple(
        Challenge(
            code=code,
            severity=severities[code],
            state=State.ANSWERED if severities[code] is Severity.SERIOUS and code in answers else State.OPEN,
            message="; ".join(told),
            answered_by=answers.get(code, ()) if severities[code] is Severity.SERIOUS else (),
        )
        for code, told in messages.items()
    )


def stated(findings: Iterable[Finding], challenges: Sequence[Challenge]) -> tuple[Finding, ...]:
    """Return the findings, the serious ones with the state of their challenge."""
    states = {item.code: item.state for item in challenges if item.severity is Severity.SERIOUS}
    return tuple(
        structs.replace(item, state=states[item.code]) if item.code in states else item for item in findings
    )


def answers(
    given: Given, findings: Iterable[Finding], *, bundles: Sequence[str], profile: str, tier: int
) -> dict[str, tuple[str, ...]]:
    """Return the codes of challenges that are answered, with who answered and agreed; none where stale.

    Raises `InputError` ``context.invalid`` where a serious finding is accepted.
    """
    context = given.context
    if context.stale(bundles=bundles, profile=profile, tier=tier):
        return {}
    serious = {item.code for item in findings if item.severity is Severity.SERIOUS}
    for place, answer in enumerate(context.answers or ()):
        if answer.state == "accepted" and answer.challenge in serious:
            message = f"/answers/{place}/state: {answer.challenge} is serious, and never merely accepted"
            raise InputError("context.invalid", message, where=given.where)
    people: dict[str | None, str | None] = {person.id: person.name for person in context.people or ()}
    return {
        answer.challenge: (f"{people[answer.by]}, agreed by {people[answer.agreed_by]}",)
        for answer in context.answers or ()
        if not any(lacking(answer, given))
    }


def lacking(answer: Answer, given: Given) -> Iterator[str]:
    """Yield what an answer to a serious challenge lacks to count."""
    if answer.state != "answered":
        yield "its state is not answered"
    if answer.reason is None:
        yield "it gives no reason"
    if not given.context.named(answer.by):
        yield "it has no author with a name"
    if not any(item.digest in given.beside for item in answer.evidence or ()):
        yield "it names no file beside the context (where) with its digest"
    if answer.agreed_by is None or answer.agreed_by == answer.by:
        yield "no reviewer other than its author agrees"
    elif not given.context.independent(answer.agreed_by):
        yield "who agrees is no independent reviewer with the date of a review"
    if answer.until is not None:
        yield "it has an end"
