"""The published JSON Schemas (2020-12) of the assessment and of the profile."""

from __future__ import annotations

from typing import Any, Final

from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.criteria import Status
from certkit.assessment.estimators import PRIORS
from certkit.assessment.findings import SEVERITY, Severity
from certkit.assessment.judge import judge_schema
from certkit.assessment.metric import State
from certkit.assessment.profile import PROFILE_SCHEMA, Profile
from certkit.assessment.result import ASSESSMENT_SCHEMA

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_DIGEST: Final = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_SHARE: Final = {"type": "number", "minimum": 0, "maximum": 1}
_VALUE: Final = {"type": ["number", "boolean", "null"]}
_JUDGED: Final = [status.value for status in Status if status is not Status.NOT_APPLICABLE]
_TIER_STATUS: Final = ["met", "not_met", "insufficient"]


def profile_schema() -> dict[str, Any]:
    """Return the schema of a profile, once its TOML is parsed."""
    return {"$schema": _DIALECT, "$id": PROFILE_SCHEMA, **Profile.model_json_schema(by_alias=True)}


def assessment_schema() -> dict[str, Any]:
    """Return the schema of the document that ``certkit assess --json`` prints."""
    judge, definitions = judge_schema()
    body = _closed(**_parts(judge))
    body["properties"]["bundles"] = _bundles()
    return {
        "$schema": _DIALECT,
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
        "tool": _closed(name={"const": "certkit"}, version=_TEXT),
        "bundle": _bundle(),
        "agent": _closed(name=_TEXT, version=_TEXT, digest=_DIGEST),
        "profile": _closed(id=_TEXT, digest=_DIGEST, reading={"enum": ["table", "bounded"]}),
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
    }


def _bundles() -> dict[str, Any]:
    """Return the schema of the bundles that were pooled; a single bundle has no such list."""
    text_or_null, time_or_null = (
        {"type": ["string", "null"]},
        {"type": ["string", "null"], "format": "date-time"},
    )
    tier = _closed(tier=_COUNT)
    bundle = _closed(
        digest=_DIGEST,
        declared_from=text_or_null,
        declared_to=text_or_null,
        first_run=time_or_null,
        last_run=time_or_null,
        records=_COUNT,
        nominal_runs=_COUNT,
        fault_runs=_COUNT,
        successes=_COUNT,
        by_domain={"type": "object", "additionalProperties": _closed(successes=_COUNT, n=_COUNT)},
        table=tier,
        bounded=tier,
    )
    return {
        "type": "array",
        "items": bundle,
        "minItems": 2,
        "description": "each of several bundles that were pooled, alone, in the order of time",
    }


def _closed(**properties: Any) -> dict[str, Any]:
    """Return an object that holds exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _bundle() -> dict[str, Any]:
    return _closed(
        digest=_DIGEST,
        sealed={"type": "boolean"},
        origin={"enum": ["measured", "simulated"]},
        records=_COUNT,
        nominal_runs=_COUNT,
        fault_runs=_COUNT,
        harness_errors=_COUNT,
        novel_fault_runs=_COUNT,
        domains={"type": "array", "items": _TEXT},
    )


def _breakdown() -> dict[str, Any]:
    return _closed(
        split={"enum": ["standard", "novel_fault"]},
        domain=_TEXT,
        condition=_TEXT,
        runs=_COUNT,
        success=_COUNT,
        failure=_COUNT,
        safe_halt=_COUNT,
        harness_error=_COUNT,
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
            "reason": _TEXT,
            "source": _TEXT,
            "by_tier": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "required": ["state", "unit", "n", "source"],
        "anyOf": [{"required": ["value"]}, {"required": ["by_tier"]}],
        "if": {"properties": {"state": {"const": "unmeasured"}}},
        "then": {"properties": {"value": {"type": "null"}}, "required": ["value", "reason"]},
        "else": {"properties": {"value": {"type": ["number", "boolean"]}}},
    }


def _interval() -> dict[str, Any]:
    """Return the schema of an interval; a resampled one carries its seed and draws."""
    interval = _closed(
        low={"type": "number"},
        high={"type": "number"},
        level=_SHARE,
        method={"enum": ["wilson", "clopper-pearson", "jeffreys", "cluster-t", "cluster-bootstrap"]},
    )
    interval["properties"] |= {"seed": _COUNT, "draws": _COUNT}
    return interval


def _criterion() -> dict[str, Any]:
    bounded = _closed(
        status={"enum": _JUDGED},
        bound=_VALUE,
        confidence={"type": "number", "description": "the tier's, raised for a later attempt"},
        method={"type": ["string", "null"]},
        clusters={"type": ["integer", "null"], "minimum": 0},
        n_eff={"type": ["number", "null"], "minimum": 0, "description": "what the runs are worth"},
        reason={"type": ["string", "null"]},
    )
    return _closed(
        id=_TEXT,
        metric={"enum": list(CATALOGUE)},
        tier={"type": "integer", "minimum": 1},
        operator={"enum": [">", ">=", "<", "<=", "is", None]},
        threshold=_VALUE,
        value=_VALUE,
        status={"enum": [status.value for status in Status]},
        margin={"type": ["number", "null"], "description": "signed so that positive passes"},
        reason={"type": ["string", "null"]},
        provisional={"type": "boolean"},
        bounded={"anyOf": [bounded, {"type": "null"}]},
    )


def _tier() -> dict[str, Any]:
    ids = {"type": "array", "items": _TEXT}
    return _closed(
        name=_TEXT,
        status={"enum": _TIER_STATUS},
        lower={"enum": [*_TIER_STATUS, None], "description": "the status of the tier below"},
        met=ids,
        not_met=ids,
        insufficient=ids,
        not_tested=ids,
        guidance={"type": ["object", "null"], "additionalProperties": _TEXT},
    )


def _verdict() -> dict[str, Any]:
    reading = _closed(tier=_COUNT)
    return _closed(
        tier=_COUNT,
        required_tier={"type": "integer", "minimum": 1},
        status={"enum": _TIER_STATUS},
        table=reading,
        bounded=reading,
        binding={"type": "array", "items": _TEXT},
    )


def _fragility() -> dict[str, Any]:
    """Return the schema of what would change the verdict."""
    share = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    prior = {"type": "object", "propertyNames": {"enum": list(PRIORS)}, "additionalProperties": _SHARE}
    row = _closed(
        holds={"type": "boolean"},
        icc_falls_at=share,
        specificity_falls_at=share,
        priors=prior,
        anytime_p=_SHARE,
    )
    return _closed(
        reading={"enum": ["table", "bounded"]},
        tier=_COUNT,
        flips=_or_null(needed=_COUNT, of=_COUNT, criterion=_TEXT, domain={"type": ["string", "null"]}),
        posterior={"type": "object", "propertyNames": {"pattern": "^[1-9]$"}, "additionalProperties": row},
        without_domain={"type": "array", "items": _closed(domain=_TEXT, table=_COUNT, bounded=_COUNT)},
        without_cluster=_or_null(
            clusters=_COUNT, losing=_COUNT, criteria={"type": "object", "additionalProperties": _COUNT}
        ),
        missing_runs=_or_null(
            declared=_COUNT, recorded=_COUNT, missing=_COUNT, successes=_COUNT, n=_COUNT, r_op=share
        ),
    )


def _or_null(**properties: Any) -> dict[str, Any]:
    return {"anyOf": [_closed(**properties), {"type": "null"}]}


def _finding() -> dict[str, Any]:
    return _closed(
        code={"enum": sorted(SEVERITY)},
        severity={"enum": [severity.value for severity in Severity]},
        message=_TEXT,
    )
