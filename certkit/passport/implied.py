"""Parts of a statement that follow from its other parts.

`claim` writes them and `agreement` compares them, so that no issuer leaves out what speaks against the claim:
name and sentence, limitations, failure modes, exclusions, what ends the claim early. Of the challenges only
the codes follow here; their words, and the challenges that only the evidence gives rise to, a replay tells.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from certkit import wording
from certkit.passport.statement import FailureMode, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.passport.statement import (
        Agent,
        Cell,
        Challenge,
        CriterionClaim,
        Evidence,
        Predicate,
        Profile,
        Protocol,
    )

SPECIMEN: Final = "SPECIMEN (simulated evidence)"
NOMINAL: Final = "nominal"
FAILURE_MODES: Final = 10
"""How many failing cells a passport names, worst first."""

SERIOUS: Final = {"no-records", "no-fault-runs", "own-conditions-dominate"}
INTERVENTION_RATE: Final = "0.050000"
_OPERATION: Final = ("r_op", "frr")
_JUDGED: Final = {"met", "not_met"}
_FEW: Final = 30
"""Fault runs of a domain below which its rate says little, as `certkit.assessment.findings` has it."""


def sentence(tier: int, profile: str, origin: str, challenges: Iterable[Challenge]) -> str:
    """Return the claim in words, the only words in which a passport may make it."""
    serious = [item for item in challenges if item.severity == "serious"]
    answered = [item for item in serious if item.state == "answered"]
    shown = f"meets the evidence thresholds of no tier of profile {profile}"
    if tier:
        shown = wording.qualified(
            f"meets the Tier {tier} evidence thresholds of profile {profile}",
            [item.code for item in serious if item.state == "open"],
            len(answered),
            list(dict.fromkeys(name for item in answered for name in item.answered_by or ())),
        )
    return f"specimen, from simulated evidence: {shown}" if origin == "simulated" else shown


def title(name: str, version: str, origin: str) -> str:
    """Return the name of a passport; a specimen says so in it."""
    plain = f"Agent passport of {name} {version}"
    return f"{SPECIMEN}: {plain}" if origin == "simulated" else plain


def limitations(
    agent: Agent, evidence: Evidence, profile: Profile, criteria: Iterable[CriterionClaim]
) -> tuple[str, ...]:
    """Return what the claim does not rest on, or rests on only in part."""
    rests = "the records of one evaluation"
    if evidence.bundles:
        rests = f"the pooled records of {len(evidence.bundles)} evaluations, which the issuer chose"
    listed = [f"rests on {rests}; what happens in operation is not observed"]
    if profile.reading == "table":
        listed.append(
            "the table reading decides: thresholds are compared with point estimates, not with bounds"
        )
    if not agent.components:
        listed.append("the agent's components are not listed")
    for row in criteria:
        judged = row.state == "measured" and all(tier.table in _JUDGED for tier in row.tiers.values())
        if not judged:
            listed.append(f"{row.id}: {row.reason or 'not fully measured'}")
    return tuple(listed)


def failure_modes(cells: Iterable[Cell]) -> tuple[FailureMode, ...]:
    """Return the domains and faults in which the agent failed, the worst ones first."""
    failed = [cell for cell in cells if cell.condition != NOMINAL and cell.successes < cell.runs]
    worst = sorted(
        failed, key=lambda cell: (Fraction(cell.successes, cell.runs), cell.domain, cell.condition)
    )
    return tuple(
        FailureMode(
            domain=cell.domain,
            condition=cell.condition,
            failures=cell.runs - cell.successes,
            runs=cell.runs,
        )
        for cell in worst[:FAILURE_MODES]
    )


def exclusions(evidence: Evidence, criteria: Iterable[CriterionClaim]) -> tuple[str, ...]:
    """Return the runs that no criterion counts, and what the claim does not speak of."""
    listed = []
    if evidence.novel_fault_runs:
        listed.append(f"{evidence.novel_fault_runs} runs under held-out faults are not in the criteria")
    left_out = next((row.counts.get("left_out", 0) for row in criteria if row.metric == "frr"), 0)
    if left_out:
        listed.append(f"{left_out} fault runs whose fault did not take hold are not graded")
    listed.append("agents, versions, components, domains and conditions other than those named")
    return tuple(listed)


def triggers(tier: int, criteria: Iterable[CriterionClaim]) -> tuple[Trigger, ...]:
    """Return what ends the claim of a tier before its date."""
    beyond = (
        Trigger(
            event="metric_beyond_threshold", metric=row.metric, operator=at.operator, threshold=at.threshold
        )
        for row in criteria
        if row.metric in _OPERATION
        if (at := row.tiers.get(str(tier))) is not None and isinstance(at.threshold, str)
    )
    return (
        Trigger(event="component_change"),
        *beyond,
        Trigger(event="intervention_rate_above", threshold=INTERVENTION_RATE),
    )


def challenges(predicate: Predicate) -> dict[str, str]:
    """Return the challenges that the rest of a statement gives rise to: code and severity."""
    agent = predicate.agent
    codes = {*_of_protocol(predicate.protocol, predicate.evidence.records), *_of_runs(predicate)}
    if any(not part.pinned for part in agent.components):
        codes.add("unpinned-components")
    if predicate.integrity is not None and predicate.integrity.seed != "stated":
        codes.add("integrity-tasks")
    if predicate.integrity is not None and predicate.integrity.core is None:
        codes.add("integrity-partial")
    return {code: "serious" if code in SERIOUS else "warning" for code in codes}


def _of_protocol(protocol: Protocol, records: int) -> Iterator[str]:
    evaluator, judge = protocol.evaluator, protocol.judge
    if evaluator is not None and evaluator.relation != "independent":
        yield "evaluator-not-independent"
    if judge is not None and not judge.independent:
        yield "judge-not-independent"
    if protocol.temperature is not None and Fraction(protocol.temperature):
        yield "temperature-not-zero"
    if None in (protocol.methodology, protocol.temperature, evaluator):
        yield "protocol-not-stated"
    if protocol.attempt is None:
        yield "undeclared-attempt"
    elif protocol.attempt > 1:
        yield "repeated-attempt"
    if records and protocol.declared_runs not in {None, records}:
        yield "declared-runs-differ"


def _of_runs(predicate: Predicate) -> Iterator[str]:
    evidence = predicate.evidence
    if not evidence.records:
        yield "no-records"
        return
    if not evidence.fault_runs:
        yield "no-fault-runs"
    if not evidence.nominal_runs:
        yield "no-nominal-runs"
    if evidence.novel_fault_runs:
        yield "held-out-runs"
    faults: dict[str, int] = {}
    for cell in predicate.profile_of_reliability.cells:
        faults[cell.domain] = faults.get(cell.domain, 0) + (cell.runs if cell.condition != NOMINAL else 0)
    own = sum(cell.runs for cell in predicate.profile_of_reliability.cells if cell.condition.startswith("x_"))
    if 2 * own > sum(faults.values()):
        yield "own-conditions-dominate"
    if 0 in faults.values():
        yield "nominal-only-domain"
    if any(0 < runs < _FEW for runs in faults.values()):
        yield "few-fault-runs"
