"""The published JSON Schema (2020-12) of a plan."""

from __future__ import annotations

from typing import Any, Final

from certkit.assessment.catalogue import CATALOGUE
from certkit.assessment.plan import PLAN_SCHEMA, POINTS
from certkit.assessment.plan.demand import Of
from certkit.evidence.record import Condition

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_SOME: Final = {"type": "integer", "minimum": 1}
_SHARE: Final = {"type": "number", "minimum": 0, "maximum": 1}
_DIGEST: Final = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}


def _closed(**properties: Any) -> dict[str, Any]:
    """Return an object that holds exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _by_name(names: list[str], schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "propertyNames": {"enum": names}, "additionalProperties": schema}


def plan_schema() -> dict[str, Any]:
    """Return the schema of the document that ``certkit plan --json`` prints."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": PLAN_SCHEMA,
        "title": "Plan",
        "description": "How many runs a tier takes at what is expected of an agent.",
        **_closed(
            schema={"const": PLAN_SCHEMA},
            profile=_closed(id=_TEXT, digest=_DIGEST),
            tier=_SOME,
            design=_design(),
            expect=_by_name(
                list(CATALOGUE), _closed(value={"type": "number"}, sd=_or_null({"type": "number"}))
            ),
            criteria={"type": "array", "items": _criterion()},
            schedule=_schedule(),
            driver={**_TEXT, "description": "the row that asks for most runs"},
            runner_up=_or_null(_TEXT),
            power_of_all_at_least={**_SHARE, "description": "Bonferroni's bound, rows with an expectation"},
            failure_free={
                "type": "object",
                "propertyNames": {"pattern": "^[1-9]$"},
                "additionalProperties": _closed(least=_COUNT, bounded=_or_null(_COUNT)),
            },
            curve=_closed(
                criterion=_TEXT,
                points={
                    "type": "array",
                    "minItems": 1,
                    "maxItems": POINTS,
                    "items": _closed(runs=_SOME, power=_SHARE, power_of_all_at_least=_SHARE),
                },
            ),
        ),
    }


def _design() -> dict[str, Any]:
    faults = [condition.value for condition in Condition if condition is not Condition.NOMINAL]
    return _closed(
        reading={"enum": ["table", "bounded"]},
        domains=_SOME,
        icc=_SHARE,
        power=_SHARE,
        joint={"type": "boolean", "description": "the power is wanted of all rows together"},
        attempt=_SOME,
        cluster_size={**_or_null(_SOME), "description": "runs under faults of one cluster"},
        clusters={**_or_null(_SOME), "description": "clusters in all, where their number is fixed"},
        nominal_share=_SHARE,
        fault_mix=_by_name(faults, _SHARE),
    )


def _criterion() -> dict[str, Any]:
    own = {"n": _or_null(_COUNT), "clusters": _or_null(_COUNT)}
    return _closed(
        id=_TEXT,
        metric={"enum": list(CATALOGUE)},
        tier=_SOME,
        operator={"enum": [">", ">=", "<", "<=", "is"]},
        threshold={"type": ["number", "boolean"]},
        confidence={**_or_null(_SHARE), "description": "null in the table reading"},
        expected=_or_null({"type": "number"}),
        counts={**_or_null({"enum": [of.value for of in Of]}), "description": "what n counts"},
        least={
            **_or_null(_closed(**own, total_runs=_SOME)),
            "description": "the least schedule that shows this row alone",
        },
        planned=_closed(**own, power=_or_null(_SHARE)),
        clusters_needed=_COUNT,
        failure_free={**_or_null(_COUNT), "description": "least n that could show the row at its best"},
        reason={**_or_null(_TEXT), "description": "why the row is not planned"},
    )


def _schedule() -> dict[str, Any]:
    cells = _by_name([condition.value for condition in Condition], _COUNT)
    return _closed(
        domains=_SOME,
        per_domain=cells,
        runs_per_domain=_SOME,
        clusters_per_domain=_SOME,
        total=cells,
        runs=_SOME,
        clusters=_SOME,
    )
