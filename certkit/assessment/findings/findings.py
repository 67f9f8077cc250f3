"""Findings: what a careful reader would ask about the evidence, said without being asked; and challenges.

Each finding has a stable code, a severity and a message with its counts; none changes a value or a row.
`SEVERITY` lists every code with the gravest severity it may have, and `templates/findings.toml` what each
means; what is found is told in `provenance.py`
(who, how, by whom), `contradictions.py` (records that nobody would believe, runs against each other),
`plausibility.py` (what the numbers themselves show), `accumulated.py` and `rater_error` (the judge's error).

Every serious finding and every warning raises a challenge; several findings of one code are one. A serious
challenge contests the verdict while it is open: a tier whose criteria are met is then `contested`. It closes
when the evidence changes, so that the finding is gone, or when it is answered in ``context.json``. Such an
answer counts where the context is bound to this evidence, profile and tier, where the answer gives a reason
and names evidence by digest, and where an independent reviewer agrees who is not its author. No serious
challenge is merely accepted, and no answer to one holds for a time: nobody here has a clock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType, structs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from certkit.evidence.context import Answer, Context


class Severity(StrEnum):
    """How much a finding should trouble a reader."""

    SERIOUS = "serious"
    WARNING = "warning"
    INFO = "info"


_SERIOUS, _WARNING, _INFO = Severity.SERIOUS, Severity.WARNING, Severity.INFO

COMMITMENTS: Final = {"integrity-hollow", "integrity-partial", "integrity-tasks"}
"""Findings about commitments, which stand beside the verdict and never among its challenges."""
STATED: Final = {"faults-left-out"}
"""Findings that are always among the challenges, however little there is of them."""

SEVERITY: Final[dict[str, Severity]] = {
    # what was assessed
    "no-records": _SERIOUS,
    "no-fault-runs": _SERIOUS,
    "held-out-runs": _WARNING,
    "no-nominal-runs": _WARNING,
    "nominal-below-faults": _WARNING,
    "simulated-origin": _INFO,
    # who and how
    "unsealed": _WARNING,
    "unversioned-agent": _WARNING,
    "unpinned-components": _WARNING,
    "components-not-listed": _INFO,
    "protocol-not-stated": _WARNING,
    "evaluator-not-independent": _WARNING,
    "judge-not-independent": _WARNING,
    "judge-uncalibrated": _WARNING,
    "judge-agreement-low": _WARNING,
    "calibration-chosen": _SERIOUS,
    "judge-correction": _WARNING,
    "temperature-not-zero": _WARNING,
    "repeated-attempt": _WARNING,
    "undeclared-attempt": _WARNING,
    "undeclared-runs": _WARNING,
    "success-reading": _INFO,
    "cascade-definition": _WARNING,
    "unread-parts": _INFO,
    "traces-not-enclosed": _WARNING,
    "derived-differs": _SERIOUS,
    "user-fields-ignored": _INFO,
    "import-odd": _WARNING,
    "import-refused": _WARNING,
    # whether anybody would believe it
    "success-with-attack": _SERIOUS,
    "own-conditions-dominate": _SERIOUS,
    "narrow-fault-mix": _WARNING,
    "faults-left-out": _SERIOUS,
    "attacks-left-out": _SERIOUS,
    "runs-alike": _SERIOUS,
    "names-alike": _SERIOUS,
    "tasks-not-distinct": _SERIOUS,
    "oracle-varies": _SERIOUS,
    "oracle-equals-actual": _WARNING,
    "implausible-pace": _SERIOUS,
    # counts and schedule
    "declared-runs-differ": _WARNING,
    "harness-errors": _WARNING,
    "nominal-only-domain": _WARNING,
    "nominal-share": _WARNING,
    "few-fault-runs": _WARNING,
    "fault-mix-differs": _WARNING,
    "outside-period": _WARNING,
    "one-start-time": _WARNING,
    "constant-interval": _WARNING,
    "times-backwards": _WARNING,
    "domains-in-blocks": _WARNING,
    "repeated-identical-runs": _WARNING,
    "repeats-as-independent": _SERIOUS,
    "undeclared-independence": _WARNING,
    "clusters-joined": _SERIOUS,
    "clusters-unequal": _WARNING,
    # what single metrics rest on
    "no-attack-landed": _SERIOUS,
    "attack-landed-unknown": _WARNING,
    "success-with-violations": _WARNING,
    "stopped-short": _WARNING,
    "grade-on-failure": _WARNING,
    "outcome-against-rule-a": _WARNING,
    "outcome-against-composite": _WARNING,
    "no-halt-due": _WARNING,
    "few-human-checks": _WARNING,
    "csi-as-printed": _INFO,
    "csi-trend-zero": _WARNING,
    "csi-irs-factor": _WARNING,
    "sil-guidance": _INFO,
    # commitments behind the answers
    "integrity-hollow": _WARNING,
    "integrity-partial": _WARNING,
    "integrity-tasks": _WARNING,
    # several bundles that are pooled
    "periods-differ": _SERIOUS,
    "periods-not-compared": _WARNING,
    "bundles-differ": _WARNING,
}


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
