"""The metrics that certkit computes: identifier, unit, direction, range, source, and evidence needed.

A profile may name any metric of `CATALOGUE`; the reference page and `profile lint` read the same table.
[26] is HB-Eval OS (2026), [25] is HB-Eval (2025).
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import Final

from msgspec import Struct


class Unit(StrEnum):
    """What a metric's number means."""

    FRACTION = "fraction"
    INDEX = "index"
    PROBABILITY = "probability"
    PP = "pp"
    POINTS = "points"
    PER_RUN = "violations per run"
    BOOLEAN = "boolean"


class Spec(Struct, frozen=True, kw_only=True):
    """One metric: `higher` tells whether more is better, `low` and `high` what its value can be.

    `evidence` completes the sentence "to measure it, …".
    """

    id: str
    title: str
    unit: Unit
    source: str
    evidence: str
    higher: bool = True
    low: Fraction | None = Fraction(0)
    high: Fraction | None = Fraction(1)


_OUTCOMES = "record runs with their outcome"
_FAULTS = "record runs under faults with their outcome"
_STEPS = "record steps_actual, steps_oracle and violations on every run"
_PP = (Fraction(-100), Fraction(100))

_SPECS: Final = (
    Spec(
        id="c_nom",
        title="nominal success",
        unit=Unit.FRACTION,
        source="[26] eq. 1",
        evidence="record runs of the nominal condition",
    ),
    Spec(
        id="r_op",
        title="operational reliability",
        unit=Unit.FRACTION,
        source="[26] eq. 2",
        evidence=_FAULTS,
    ),
    Spec(
        id="gap",
        title="capability-reliability gap",
        unit=Unit.PP,
        source="[26] eq. 3",
        evidence="record both nominal runs and runs under faults",
        higher=False,
        low=_PP[0],
        high=_PP[1],
    ),
    Spec(
        id="frr",
        title="failure resilience rate",
        unit=Unit.INDEX,
        source="[26] eq. 4",
        evidence="record recovered, recovery_steps and recovery_approach, or recovery_grade, on fault runs",
    ),
    Spec(id="pei", title="planning efficiency index", unit=Unit.INDEX, source="[26] eq. 5", evidence=_STEPS),
    Spec(
        id="pei_fault",
        title="planning efficiency under faults",
        unit=Unit.INDEX,
        source="[26] eq. 5, fault runs only",
        evidence=_STEPS,
    ),
    Spec(
        id="irs",
        title="intentional recovery score",
        unit=Unit.FRACTION,
        source="[26] eq. 6",
        evidence="record memory_query_offset, memory_similarity and memory_modified on successful fault runs,"
        " and declare protocol.memory_observable",
    ),
    Spec(
        id="ti",
        title="traceability index",
        unit=Unit.POINTS,
        source="[26] def. 4",
        evidence="record a judge's traceability score on every run",
        low=Fraction(1),
        high=Fraction(5),
    ),
    Spec(
        id="csi",
        title="consistency stability index",
        unit=Unit.INDEX,
        source="[26] eq. 7-9",
        evidence="record sequence, steps and memory evidence on at least 100 ordered runs",
    ),
    Spec(
        id="csi_windowed",
        title="consistency over ten windows",
        unit=Unit.INDEX,
        source="certkit, after [26] eq. 9",
        evidence="record sequence, steps and memory evidence on at least 500 ordered runs",
    ),
    Spec(
        id="domain_min",
        title="weakest domain",
        unit=Unit.FRACTION,
        source="[26] Table 1",
        evidence="record runs under faults in every domain",
    ),
    Spec(
        id="violations",
        title="violations per run",
        unit=Unit.PER_RUN,
        source="[26] Table 1",
        evidence="record violations on every run, 0 where a check found none",
        higher=False,
        high=None,
    ),
    Spec(
        id="adversarial_resistance",
        title="adversarial resistance",
        unit=Unit.FRACTION,
        source="[26] Table 1",
        evidence="record adversarial runs, with attack_landed, in which attacks reach the agent",
    ),
    Spec(
        id="cascade_penalty",
        title="cascade penalty",
        unit=Unit.PP,
        source="[26] Table 1, §11.5",
        evidence="record runs under single faults and under cascade faults",
        higher=False,
        low=_PP[0],
        high=_PP[1],
    ),
    Spec(
        id="posterior",
        title="P(θ > τ)",
        unit=Unit.PROBABILITY,
        source="[26] §3.1",
        evidence=_FAULTS,
    ),
    Spec(
        id="cn_frr",
        title="success or safe halt under faults",
        unit=Unit.FRACTION,
        source="[25] eq. 6",
        evidence=_FAULTS,
    ),
    Spec(
        id="frr_2025",
        title="failure resilience rate (2025)",
        unit=Unit.INDEX,
        source="[25] eq. 1-2",
        evidence="record steps_actual and fault_step on every fault run",
    ),
    Spec(
        id="pei_2025",
        title="planning efficiency index (2025)",
        unit=Unit.INDEX,
        source="[25] eq. 3-4",
        evidence="record steps_actual, steps_oracle and quality_factor on every run",
    ),
    Spec(
        id="irs_2025",
        title="intentional recovery score (2025)",
        unit=Unit.INDEX,
        source="[25] §7.2, eq. 5",
        evidence="record fault_step and memory evidence on successful fault runs",
    ),
    Spec(
        id="safe_halt_on_risk",
        title="halts when confidence is low or risk high",
        unit=Unit.FRACTION,
        source="[25] §7.6.3",
        evidence="record confidence and safety_risk on every run, some of which call for a halt",
    ),
    Spec(
        id="transparency_index",
        title="transparency index (attested)",
        unit=Unit.INDEX,
        source="[25] §7.6, HCI-EDM",
        evidence="attest transparency_index, with its evidence file, in the manifest",
    ),
    Spec(
        id="human_trust_score",
        title="human trust score (attested)",
        unit=Unit.POINTS,
        source="[25] §7.6.3",
        evidence="attest human_trust_score, with its evidence file, in the manifest",
        low=Fraction(1),
        high=Fraction(5),
    ),
    Spec(
        id="edm_auditability",
        title="EDM auditability (attested)",
        unit=Unit.BOOLEAN,
        source="[25] §7.6.3",
        evidence="attest edm_auditability, with its evidence file, in the manifest",
    ),
    Spec(
        id="safe_halt_protocol",
        title="safe-halt protocol (attested)",
        unit=Unit.BOOLEAN,
        source="[25] §7.6.3",
        evidence="attest safe_halt_protocol, with its evidence file, in the manifest",
    ),
    Spec(
        id="recovery_patterns_documented",
        title="recovery patterns documented (attested)",
        unit=Unit.BOOLEAN,
        source="[25] §7.6.2",
        evidence="attest recovery_patterns_documented, with its evidence file, in the manifest",
    ),
    Spec(
        id="rule_a_agreement",
        title="outcomes that agree with success rule A",
        unit=Unit.FRACTION,
        source="[26] §4.2.3",
        evidence="record recovery and steps on every fault run",
    ),
    Spec(
        id="composite_agreement",
        title="outcomes that agree with the composite rule",
        unit=Unit.FRACTION,
        source="[26] §4.3.4",
        evidence="record layer2_score and layer3_score on every run",
    ),
    Spec(
        id="layer_agreement",
        title="runs on which layers 2 and 3 agree",
        unit=Unit.FRACTION,
        source="[26] §4.3.4",
        evidence="record layer2_score and layer3_score on every run",
    ),
    Spec(
        id="novel_fault",
        title="reliability under held-out faults",
        unit=Unit.FRACTION,
        source="[26] eq. 2, split novel_fault",
        evidence="record runs of split novel_fault",
    ),
    Spec(
        id="harness_errors",
        title="share of harness errors",
        unit=Unit.FRACTION,
        source="outcome harness_error over all runs",
        evidence=_OUTCOMES,
        higher=False,
    ),
)

CATALOGUE: Final[dict[str, Spec]] = {spec.id: spec for spec in _SPECS}
