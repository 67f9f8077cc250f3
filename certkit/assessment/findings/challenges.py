"""Challenges: what findings ask of a verdict, and what became of it.

Every serious finding and every warning raises a challenge; several findings of one code are one. A serious
challenge contests the verdict while it is open: a tier whose criteria are met is then `contested`. It closes
when the evidence changes, so that the finding is gone, or when it is answered. Values, rows and the tiers
attained stay as they were computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from certkit.assessment.findings.findings import STATED, Code, Severity, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from certkit.assessment.findings.findings import Finding


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
