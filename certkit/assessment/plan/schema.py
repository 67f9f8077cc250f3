"""The published JSON Schema (2020-12) of a plan."""

from __future__ import annotations

from typing import Any

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.plan import PLAN_SCHEMA, POINTS
from certkit.evidence.records.record import Condition
from certkit.schema import COUNT, DIALECT, DIGEST, FLAG, NUMBER, SHARE, SOME, TEXT, by_name, closed, or_null


def plan_schema() -> dict[str, Any]:
    """Return the schema of the document that ``certkit plan --json`` prints."""
    return {
        "$schema": DIALECT,
        "$id": PLAN_SCHEMA,
        "title": "Plan",
        "description": "How many tasks and runs a tier takes at what is expected of an agent.",
        **closed(
            schema={"const": PLAN_SCHEMA},
            profile=closed(id=TEXT, digest=DIGEST),
            tier=SOME,
            design=_design(),
            expect=by_name(closed(value=NUMBER, sd=or_null(NUMBER)), list(CATALOGUE)),
            criteria={"type": "array", "items": _criterion()},
            schedule=_schedule(),
            driver={**TEXT, "description": "the row that asks for most"},
            runner_up=or_null(TEXT),
            power_of_all={**SHARE, "description": "all rows with an expectation together"},
            curve={
                "type": "array",
                "minItems": 1,
                "maxItems": POINTS,
                "items": closed(tasks=SOME, runs=SOME, power=SHARE, power_of_all=SHARE),
            },
        ),
    }


def _design() -> dict[str, Any]:
    faults = [condition.value for condition in Condition if condition is not Condition.NOMINAL]
    return closed(
        reading={"enum": ["table", "bounded"]},
        domains=SOME,
        icc=SHARE,
        power=SHARE,
        joint={**FLAG, "description": "the power is wanted of all rows together"},
        attempt=SOME,
        runs_per_task={**SOME, "description": "runs of a task under faults"},
        nominal_share=SHARE,
        fault_mix=by_name(SHARE, faults),
        draws=SOME,
        seed=COUNT,
    )


def _criterion() -> dict[str, Any]:
    return closed(
        id=TEXT,
        metric={"enum": list(CATALOGUE)},
        tier=SOME,
        operator={"enum": [">", ">=", "<", "<=", "is"]},
        threshold={"type": ["number", "boolean"]},
        confidence={**or_null(SHARE), "description": "null in the table reading"},
        expected=or_null(NUMBER),
        least_tasks={**or_null(COUNT), "description": "tasks at which flawless ones would just pass"},
        power=or_null(SHARE),
        reason={**or_null(TEXT), "description": "why the row has no power"},
    )


def _schedule() -> dict[str, Any]:
    return closed(
        domains=SOME,
        tasks_per_domain=SOME,
        tasks=SOME,
        per_domain=by_name(COUNT, [condition.value for condition in Condition]),
        runs_per_domain=SOME,
        runs=SOME,
    )
