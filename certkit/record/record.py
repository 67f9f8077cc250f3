"""The evaluation record: the facts about a run of an agent under a condition.

A frozen struct, from which the rest of the format is derived: the published JSON Schema (`schema.py`), the
column layouts of the fast reader (`layout.py`) and the reference page. Null and absent both mean "not
measured", which is never read as zero.

    >>> record = Record(run_id="r1", domain="banking", task_id="banking/pay", condition="nominal",
    ...                 outcome="success")
    >>> record.violations is None
    True

The types here say what a field may hold; `rules.py` says which combinations of fields contradict each other.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

MAX_LINE: Final = 1 << 20
"""Longest line of a record file, bytes."""

MAX_STEPS: Final = 1_000_000
"""Largest step count, violation count and the like."""


class Condition(StrEnum):
    """What the run was exposed to. Users may add conditions named ``x_…``."""

    NOMINAL = "nominal"
    ADVERSARIAL = "adversarial"
    CONTEXT_CORRUPTION = "context_corruption"
    TOOL_FAILURE = "tool_failure"
    STOCHASTIC = "stochastic"
    COMBINED = "combined"
    CASCADE = "cascade"


class Outcome(StrEnum):
    """How the run ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    SAFE_HALT = "safe_halt"
    HARNESS_ERROR = "harness_error"


def is_fault(condition: str) -> bool:
    """Tell whether runs under a condition are fault runs: every condition but nominal."""
    return condition != Condition.NOMINAL


class RunKind(StrEnum):
    """What a run can show: success without faults, under faults, under attack."""

    NORMAL = "normal"
    FAULTS = "faults"
    ATTACKS = "attacks"


class Split(StrEnum):
    """Which part of the evidence the run belongs to."""

    STANDARD = "standard"
    NOVEL_FAULT = "novel_fault"


class Approach(StrEnum):
    """How the agent recovered from the fault."""

    CORRECT = "correct"
    MINOR_DEVIATION = "minor_deviation"
    REPEATED_ATTEMPTS = "repeated_attempts"


class Measured(StrEnum):
    """Whether the values were computed from the trace or stated by the evaluator."""

    DERIVED = "derived"
    ASSERTED = "asserted"


# In Python, unlike in JSON Schema, $ also stands before a newline at the end; the lookahead takes that back.
END: Final = r"$(?!\n)"
CONDITION_PATTERN: Final = "^(" + "|".join(Condition) + "|x_[a-z0-9_]{1,62})" + END
DIGEST_PATTERN: Final = "^sha256:[0-9a-f]{64}" + END
USER_FIELD_PATTERN: Final = "^x_[A-Za-z0-9_]{1,126}" + END
GRADES: Final = (0.0, 0.4, 0.7, 1.0)
USER_FIELD: Final = re.compile(USER_FIELD_PATTERN)

Name = Annotated[str, Meta(min_length=1, max_length=512)]
Count = Annotated[int, Meta(ge=0, le=MAX_STEPS)]
Steps = Annotated[int, Meta(ge=1, le=MAX_STEPS)]
Offset = Annotated[int, Meta(ge=-MAX_STEPS, le=MAX_STEPS)]
Order = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Unit = Annotated[float, Meta(ge=0.0, le=1.0)]
Cosine = Annotated[float, Meta(ge=-1.0, le=1.0)]
Likert = Annotated[float, Meta(ge=1.0, le=5.0)]


class Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One evaluation run (``urn:certkit:record:v1``)."""

    run_id: Annotated[Name, Meta(description="unique in the bundle")]
    domain: Annotated[Name, Meta(description="application domain, e.g. healthcare")]
    task_id: Annotated[
        Name, Meta(description="unique across domains; prefix it with the domain if the source repeats it")
    ]
    condition: Annotated[
        str, Meta(pattern=CONDITION_PATTERN, description="nominal, a kind of fault, or x_… of your own")
    ]
    outcome: Annotated[
        Outcome,
        Meta(
            description="how it ended; safe_halt: escalated instead of going on; harness_error: the test rig"
            " failed, which counts as no success"
        ),
    ]
    sequence: Annotated[Order | None, Meta(description="order of the runs in time; unique when present")] = (
        None
    )
    started_at: Annotated[
        Annotated[datetime, Meta(tz=True)] | None, Meta(description="RFC 3339 time with offset")
    ] = None
    cluster_id: Annotated[
        Name | None, Meta(description="family of tasks that stand or fall together; default: task_id")
    ] = None
    trial: Annotated[Order | None, Meta(description="repeat number of the same task and condition")] = None
    steps_actual: Annotated[Steps | None, Meta(description="decision steps taken")] = None
    steps_oracle: Annotated[Steps | None, Meta(description="oracle-verified minimum of decision steps")] = (
        None
    )
    violations: Annotated[
        Count | None, Meta(description="hard-constraint violations found by deterministic checks")
    ] = None
    quality_factor: Annotated[
        Unit | None, Meta(description="product of the step quality factors, [25] eq. 4; cut to six decimals")
    ] = None
    fault_step: Annotated[
        Steps | None, Meta(description="step of the fault's onset, counted like steps_actual")
    ] = None
    fault_took_hold: Annotated[
        bool | None, Meta(description="false: the injected fault never affected the run")
    ] = None
    split: Annotated[
        Split | None, Meta(description="novel_fault: held-out fault types; default: standard")
    ] = None
    recovery_steps: Annotated[Count | None, Meta(description="steps from fault to recovery")] = None
    recovered: Annotated[bool | None, Meta(description="whether the agent recovered from the fault")] = None
    recovery_approach: Annotated[Approach | None, Meta(description="how it recovered")] = None
    recovery_grade: Annotated[
        float | None,
        Meta(
            description="the graded recovery, [26] eq. 4, where the source gives it directly",
            extra_json_schema={"enum": [*GRADES, None]},
        ),
    ] = None
    memory_query_offset: Annotated[
        Offset | None, Meta(description="steps from fault onset to the memory query (C1)")
    ] = None
    memory_similarity: Annotated[
        Cosine | None, Meta(description="cosine similarity of the retrieved episode (C2)")
    ] = None
    memory_modified: Annotated[
        bool | None, Meta(description="the next action carries a modification taken from it (C3)")
    ] = None
    traceability: Annotated[
        Likert | None, Meta(description="the judge's traceability score, 1–5, at most three decimals")
    ] = None
    layer2_score: Annotated[Unit | None, Meta(description="constraint score (methodologies B, C)")] = None
    layer3_score: Annotated[Unit | None, Meta(description="judge score (methodologies B, C)")] = None
    attack_attempted: Annotated[bool | None, Meta(description="an attack was injected")] = None
    attack_landed: Annotated[
        bool | None, Meta(description="the injected content reached the agent system's boundary")
    ] = None
    attack_succeeded: Annotated[bool | None, Meta(description="the attacker's goal was reached")] = None
    confidence: Annotated[Unit | None, Meta(description="lowest confidence of the agent over the run")] = None
    safety_risk: Annotated[Unit | None, Meta(description="highest risk seen by the agent over the run")] = (
        None
    )
    human_checked: Annotated[bool | None, Meta(description="a person validated this run's score")] = None
    trace: Annotated[
        Annotated[str, Meta(pattern=DIGEST_PATTERN)] | None,
        Meta(description="digest of the trace file in traces/"),
    ] = None
    measured: Annotated[
        Measured | None,
        Meta(description="derived: computed from the trace; default: asserted by the evaluator"),
    ] = None


REQUIRED: Final = ("run_id", "domain", "task_id", "condition", "outcome")
FIELDS: Final[tuple[str, ...]] = Record.__struct_fields__
RECOVERY_FIELDS: Final = ("recovery_steps", "recovered", "recovery_approach", "recovery_grade")
FAULT_FIELDS: Final = ("fault_step", "fault_took_hold", *RECOVERY_FIELDS)
ATTACK_FIELDS: Final = ("attack_attempted", "attack_landed", "attack_succeeded")
ATTACK_CONDITIONS: Final = frozenset({Condition.ADVERSARIAL, Condition.COMBINED, Condition.CASCADE})
SINGLE_FAULTS: Final = (
    Condition.ADVERSARIAL,
    Condition.CONTEXT_CORRUPTION,
    Condition.TOOL_FAILURE,
    Condition.STOCHASTIC,
)


def may_be_attacked(condition: str) -> bool:
    """Tell whether a run of this condition may have attack fields."""
    return condition in ATTACK_CONDITIONS or condition.startswith("x_")
