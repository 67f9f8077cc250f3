"""The published JSON Schemas (2020-12) of the assessment and of the profile."""

from __future__ import annotations

from typing import Any, Final

from certkit.assessment.criteria import Status
from certkit.assessment.findings.findings import SEVERITY, Severity
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import State
from certkit.assessment.profile import PROFILE_SCHEMA, Profile
from certkit.assessment.rater_error import judge_schema
from certkit.assessment.result import ASSESSMENT_SCHEMA
from certkit.assessment.statistics.posterior import PRIORS
from certkit.schema import (
    COUNT,
    DIALECT,
    DIGEST,
    FLAG,
    NUMBER,
    SHARE,
    SOME,
    TEXT,
    by_name,
    closed,
    listed,
    or_null,
)

_VALUE: Final = {"type": ["number", "boolean", "null"]}
_JUDGED: Final = [status.value for status in Status if status is not Status.NOT_APPLICABLE]
_TIER_STATUS: Final = ["met", "not_met", "insufficient"]


def profile_schema() -> dict[str, Any]:
    """Return the schema of a profile, once its TOML is parsed."""
    return {"$schema": DIALECT, "$id": PROFILE_SCHEMA, **Profile.model_json_schema(by_alias=True)}


def assessment_schema() -> dict[str, Any]:
    """Return the schema of the document that ``certkit assess --json`` prints."""
    judge, definitions = judge_schema()
    body = closed(**_parts(judge))
    body["properties"]["bundles"] = _bundles()
    return {
        "$schema": DIALECT,
        "$id": ASSESSMENT_SCHEMA,
        "title": "Assessment",
        "description": "The judgement of an evidence bundle under a profile.",
        **body,
        "$defs": {"metric": _metric(), "interval": _interval(), "criterion": _criterion(), **definitions},
    }


def _parts(judge: dict[str, Any]) -> dict[str, Any]:
    """Return the parts that every assessment has."""
    return {
        "schema": {"const": ASSESSMENT_SCHEMA},
        "tool": closed(name={"const": "certkit"}, version=TEXT),
        "bundle": _bundle(),
        "agent": closed(name=TEXT, version=TEXT, digest=DIGEST),
        "profile": closed(id=TEXT, digest=DIGEST, reading={"enum": ["table", "bounded"]}),
        "metrics": {
            "type": "object",
            "propertyNames": {"enum": list(CATALOGUE)},
            "required": list(CATALOGUE),
            "additionalProperties": {"$ref": "#/$defs/metric"},
        },
        "breakdown": {"type": "array", "items": _breakdown()},
        "criteria": {"type": "array", "items": {"$ref": "#/$defs/criterion"}},
        "tiers": {
            "type": "object",
            "propertyNames": {"pattern": "^[1-9]$"},
            "additionalProperties": _tier(),
        },
        "verdict": _verdict(),
        "findings": {"type": "array", "items": _finding()},
        "judge": judge,
        "fragility": _fragility(),
        "variation": or_null(_variation()),
    }


def _bundles() -> dict[str, Any]:
    """Return the schema of the bundles that were pooled; a single bundle has no such list."""
    text_or_null, time_or_null = (
        {"type": ["string", "null"]},
        {"type": ["string", "null"], "format": "date-time"},
    )
    tier = closed(tier=COUNT)
    bundle = closed(
        digest=DIGEST,
        declared_from=text_or_null,
        declared_to=text_or_null,
        first_run=time_or_null,
        last_run=time_or_null,
        records=COUNT,
        nominal_runs=COUNT,
        fault_runs=COUNT,
        successes=COUNT,
        by_domain={"type": "object", "additionalProperties": closed(successes=COUNT, n=COUNT)},
        table=tier,
        bounded=tier,
    )
    return {
        "type": "array",
        "items": bundle,
        "minItems": 2,
        "description": "each of several bundles that were pooled, alone, in the order of time",
    }


def _bundle() -> dict[str, Any]:
    return closed(
        digest=DIGEST,
        sealed=FLAG,
        origin={"enum": ["measured", "simulated"]},
        records=COUNT,
        nominal_runs=COUNT,
        fault_runs=COUNT,
        harness_errors=COUNT,
        novel_fault_runs=COUNT,
        domains=listed(TEXT),
    )


def _breakdown() -> dict[str, Any]:
    return closed(
        split={"enum": ["standard", "novel_fault"]},
        domain=TEXT,
        condition=TEXT,
        runs=COUNT,
        success=COUNT,
        failure=COUNT,
        safe_halt=COUNT,
        harness_error=COUNT,
        rate={"type": ["number", "null"]},
    )


def _metric() -> dict[str, Any]:
    """Return the schema of a metric: common keys are fixed, its own counts stand beside them."""
    return {
        "type": "object",
        "properties": {
            "state": {"enum": [state.value for state in State]},
            "value": _VALUE,
            "unit": {"enum": [unit.value for unit in Unit]},
            "n": {"type": ["integer", "null"], "minimum": 0, "description": "the denominator"},
            "interval": {"$ref": "#/$defs/interval"},
            "intervals": {"type": "array", "items": {"$ref": "#/$defs/interval"}},
            "coverage": {"type": "number", "minimum": 0, "maximum": 1},
            "reason": TEXT,
            "source": TEXT,
            "by_tier": by_name(NUMBER),
        },
        "required": ["state", "unit", "n", "source"],
        "anyOf": [{"required": ["value"]}, {"required": ["by_tier"]}],
        "if": {"properties": {"state": {"const": "unmeasured"}}},
        "then": {"properties": {"value": {"type": "null"}}, "required": ["value", "reason"]},
        "else": {"properties": {"value": {"type": ["number", "boolean"]}}},
    }


def _interval() -> dict[str, Any]:
    """Return the schema of an interval; a resampled one carries its seed and draws."""
    interval = closed(
        low=NUMBER,
        high=NUMBER,
        level=SHARE,
        method={"enum": ["wilson", "clopper-pearson", "jeffreys", "task-posterior"]},
    )
    interval["properties"] |= {"seed": COUNT, "draws": COUNT}
    return interval


def _criterion() -> dict[str, Any]:
    bounded = closed(
        status={"enum": _JUDGED},
        bound=_VALUE,
        confidence={"type": "number", "description": "the tier's, raised for a later attempt"},
        k={"type": ["integer", "null"], "minimum": 0, "description": "tasks that carry the row"},
        rests_on={"type": ["string", "null"]},
        reason={"type": ["string", "null"]},
    )
    return closed(
        id=TEXT,
        metric={"enum": list(CATALOGUE)},
        tier=SOME,
        operator={"enum": [">", ">=", "<", "<=", "is", None]},
        threshold=_VALUE,
        value=_VALUE,
        status={"enum": [status.value for status in Status]},
        margin={"type": ["number", "null"], "description": "signed so that positive passes"},
        reason={"type": ["string", "null"]},
        provisional=FLAG,
        bounded={"anyOf": [bounded, {"type": "null"}]},
    )


def _tier() -> dict[str, Any]:
    ids = listed(TEXT)
    return closed(
        name=TEXT,
        status={"enum": _TIER_STATUS},
        lower={"enum": [*_TIER_STATUS, None], "description": "the status of the tier below"},
        met=ids,
        not_met=ids,
        insufficient=ids,
        not_tested=ids,
        guidance={"type": ["object", "null"], "additionalProperties": TEXT},
    )


def _verdict() -> dict[str, Any]:
    reading = closed(tier=COUNT)
    return closed(
        tier=COUNT,
        required_tier=SOME,
        status={"enum": _TIER_STATUS},
        table=reading,
        bounded=reading,
        binding=listed(TEXT),
    )


def _fragility() -> dict[str, Any]:
    """Return the schema of what would change the verdict."""
    share = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    prior = {"type": "object", "propertyNames": {"enum": list(PRIORS)}, "additionalProperties": SHARE}
    row = closed(
        holds=FLAG,
        specificity_falls_at=share,
        priors=prior,
        anytime_p=SHARE,
    )
    return closed(
        reading={"enum": ["table", "bounded"]},
        tier=COUNT,
        reason={
            "type": ["string", "null"],
            "description": "why there are neither flips nor tasks to leave out",
        },
        flips=or_null(
            closed(
                needed=COUNT,
                of=COUNT,
                criterion=TEXT,
                domain={"type": ["string", "null"]},
                left_out=by_name(TEXT),
            )
        ),
        posterior={"type": "object", "propertyNames": {"pattern": "^[1-9]$"}, "additionalProperties": row},
        without_domain={"type": "array", "items": closed(domain=TEXT, table=COUNT, bounded=COUNT)},
        without_task=or_null(closed(tasks=COUNT, losing=COUNT, criteria=by_name(COUNT))),
        missing_runs=or_null(
            closed(declared=COUNT, recorded=COUNT, missing=COUNT, successes=COUNT, n=COUNT, r_op=share)
        ),
    )


def _variation() -> dict[str, Any]:
    number = {"type": ["number", "null"], "minimum": 0}
    return closed(
        tasks=COUNT,
        runs=COUNT,
        between={**number, "description": "variance between tasks"},
        within={**number, "description": "variance between runs of a task"},
        icc={**number, "description": "intraclass correlation, by analysis of variance"},
        all_succeed={
            "type": "object",
            "propertyNames": {"pattern": "^[1-9][0-9]?$"},
            "additionalProperties": SHARE,
            "description": "the chance that so many runs of one task all succeed (pass^j)",
        },
    )


def _finding() -> dict[str, Any]:
    return closed(
        code={"enum": sorted(SEVERITY)},
        severity={"enum": [severity.value for severity in Severity]},
        message=TEXT,
    )
