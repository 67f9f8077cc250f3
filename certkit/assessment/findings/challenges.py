"""Challenges: what findings ask of a verdict, and what became of it.

Every serious finding and every warning raises a challenge; several findings of one code are one. A serious
challenge contests the verdict while it is open: a tier whose criteria are met is then `contested`. It closes
when the evidence changes, so that the finding is gone, or when it is answered in ``context.json``. Values,
rows and the tiers attained stay as they were computed.

An answer to a serious challenge counts where the context is bound to this evidence, profile and tier, where
the answer gives a reason and names evidence by digest, and where an independent reviewer agrees who is not
its author.
No serious challenge is merely accepted, and no answer to one holds for a time: nobody here has a clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from certkit.assessment.findings.findings import STATED, Code, Severity, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from certkit.assessment.findings.findings import Finding
    from certkit.evidence.context import Answer, Context


class Challenge(Struct, frozen=True, kw_only=True):
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
    """Return the challenges that findings raise; `answers` holds the authors who answered a code.

    Only serious challenges have answers.
    """
    messages: dict[str, list[str]] = {}
    severities: dict[str, Severity] = {}
    for item in findings:
        if item.severity is not Severity.INFO or item.code in STATED:
            messages.setdefault(item.code, []).append(item.message)
            severities[item.code] = item.severity
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
    context: Context, *, bundles: Sequence[str], profile: str, tier: int
) -> dict[str, tuple[str, ...]]:
    """Return the codes of challenges that are answered, with the names of who answered; none where stale."""
    if context.stale(bundles=bundles, profile=profile, tier=tier):
        return {}
    people = context.by_id
    return {
        answer.challenge: (people[answer.by].name or answer.by,)
        for answer in context.answers or ()
        if answer.by is not None and not any(lacking(answer, context))
    }


def lacking(answer: Answer, context: Context) -> Iterator[str]:
    """Yield what an answer to a serious challenge lacks to count."""
    if answer.state != "answered":
        yield "its state is not answered"
    if answer.reason is None:
        yield "it gives no reason"
    if answer.by is None:
        yield "it has no author"
    if not any(item.digest for item in answer.evidence or ()):
        yield "it names no evidence by its digest"
    if answer.agreed_by is None or answer.agreed_by == answer.by:
        yield "no reviewer other than its author agrees"
    elif not context.independent(answer.agreed_by):
        yield "who agrees is no independent reviewer"
    if answer.until is not None:
        yield "it has an end"
