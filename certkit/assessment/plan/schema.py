"""The published JSON Schema (2020-12) of a plan."""

from __future__ import annotations

from typing import Any

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.plan import PLAN_SCHEMA, POINTS
from certkit.assessment.plan.demand import Of
from certkit.evidence.records.record import Condition
from certkit.schema import COUNT, DIALECT, DIGEST, FLAG, NUMBER, SHARE, SOME, TEXT, by_name, closed, or_null


def plan_schema() -> dict[str, Any]:
    """Return the schema of the document that ``certkit plan --json`` prints."""
    return {
        "$schema": DIALECT,
        "$id": PLAN_SCHEMA,
        "title": "Plan",
        "description": "How many runs a tier takes at what is expected of an agent.",
        **closed(
            schema={"const": PLAN_SCHEMA},
            profile=closed(id=TEXT, digest=DIGEST),
            tier=SOME,
            design=_design(),
            expect=by_name(closed(value=NUMBER, sd=or_null(NUMBER)), list(CATALOGUE)),
            criteria={"type": "array", "items": _criterion()},
            schedule=_schedule(),
            driver={**TEXT, "description": "the row that asks for most runs"},
            runner_up=or_null(TEXT),
            power_of_all_at_least={**SHARE, "description": "Bonferroni's bound, rows with an expectation"},
            failure_free={
                "type": "object",
                "propertyNames": {"pattern": "^[1-9]$"},
                "additionalProperties": closed(least=COUNT, bounded=or_null(COUNT)),
            },
            curve=closed(
                criterion=TEXT,
                points={
                    "type": "array",
                    "minItems": 1,
                    "maxItems": POINTS,
                    "items": closed(runs=SOME, power=SHARE, power_of_all_at_least=SHARE),
                },
            ),
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
        cluster_size={**or_null(SOME), "description": "runs under faults of one cluster"},
        clusters={**or_null(SOME), "description": "clusters in all, where their number is fixed"},
        nominal_share=SHARE,
        fault_mix=by_name(SHARE, faults),
    )


def _criterion() -> dict[str, Any]:
    own = {"n": or_null(COUNT), "clusters": or_null(COUNT)}
    return closed(
        id=TEXT,
        metric={"enum": list(CATALOGUE)},
        tier=SOME,
        operator={"enum": [">", ">=", "<", "<=", "is"]},
        threshold={"type": ["number", "boolean"]},
        confidence={**or_null(SHARE), "description": "null in the table reading"},
        expected=or_null(NUMBER),
        counts={**or_null({"enum": [of.value for of in Of]}), "description": "what n counts"},
        least={
            **or_null(closed(**own, total_runs=SOME)),
            "description": "the least schedule that shows this row alone",
        },
        planned=closed(**own, power=or_null(SHARE)),
        clusters_needed=COUNT,
        failure_free={**or_null(COUNT), "description": "least n that could show the row at its best"},
        reason={**or_null(TEXT), "description": "why the row is not planned"},
    )


def _schedule() -> dict[str, Any]:
    cells = by_name(COUNT, [condition.value for condition in Condition])
    return closed(
        domains=SOME,
        per_domain=cells,
        runs_per_domain=SOME,
        clusters_per_domain=SOME,
        total=cells,
        runs=SOME,
        clusters=SOME,
    )
