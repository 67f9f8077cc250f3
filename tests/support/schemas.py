"""The published JSON Schemas (2020-12), made from the types that read and write the documents.

    schema_of(Comparison)                            # of a document that certkit prints, closed
    assessment_schema()                              # of the answer of ``certkit assess``
    passport_schema(), trust_schema()                # of the files that passports and policies are
    authored_schema(ProfileTable, "profile")         # of a file that a person writes
    record_schema(), calibration_schema()            # of the lines that a bundle holds

The package ships the files that are made of them (`python -m tests.generate --write`).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from inspect import cleandoc
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from certkit.assessment.assessment import Assessment
from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.evaluation import SCHEMA as ASSESSMENT_SCHEMA
from certkit.assessment.fragility import Fragility
from certkit.assessment.metric import Interval
from certkit.assessment.profile import Reading
from certkit.assessment.profile_file import ProfileTable
from certkit.assessment.raters import JudgeReport
from certkit.assessment.variation import Variation
from certkit.bundle import labels as calibration
from certkit.bundle.facts import IntegrityFacts
from certkit.bundle.manifest import Manifest
from certkit.comparison.drift import Drift
from certkit.ground import canonical
from certkit.ground.document import Count, Digest, Part, Share, State, Text, TierKey
from certkit.imports.mapping import Mapping
from certkit.passport.envelope import PAYLOAD_TYPE, PassportFile
from certkit.passport.passport import Statement
from certkit.passport.trust import TRUST_SCHEMA, Trust
from certkit.record.record import END, MAX_LINE, USER_FIELD_PATTERN, Record, Split
from certkit.registry.entry import Entry
from certkit.report.context import Context
from certkit.summary.summary import Effect
from certkit.trial.plan import TrialFile

if TYPE_CHECKING:
    from certkit.ground.base import Authored
    from certkit.ground.document import Document

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
URN: Final = "urn:certkit:"
_BESIDE: Final = "beside"
PASSPORT_SCHEMA: Final = "urn:certkit:passport:v1"
_TEXT: Final = {"type": "string"}
_BASE64: Final = {"type": "string", "contentEncoding": "base64"}

_SIGNERS: Final = ("publicKey", "certificate", "x509CertificateChain")
"""The members of the material, one of which tells who signed."""
TIMESTAMP_PATTERN: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:?[0-9]{2})"
    + END
)


def name_of(kind: type[Document]) -> str:
    """Return the name of a document with its version: ``bundle-seal.v1``."""
    tag = kind.__struct_config__.tag
    if not (isinstance(tag, str) and tag.startswith(URN)):
        raise TypeError(f"{kind.__name__} names no schema: class {kind.__name__}(Document, tag='{URN}…:v1')")
    return tag.removeprefix(URN).replace(":", ".")


def schema_of(kind: type[Document]) -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of a document.

    Every object is closed, and a key is required unless its field may be `UNSET`; a default in Python says
    nothing about the JSON. Descriptions are the docstrings' first paragraphs, and `Meta(description=…)`.
    """
    title = f"certkit {name_of(kind).partition('.')[0]}"
    foreign: dict[str, Any] = {}
    made = msgspec.json.schema(kind, schema_hook=lambda unknown: _foreign(unknown, foreign))
    root = made["$defs"].pop(made["$ref"].rpartition("/")[2])
    structs = made["$defs"]
    for body in (root, *structs.values()):
        _close(body, structs, foreign)
    root["properties"]["schema"] = {"const": kind.__struct_config__.tag}
    head = {"$schema": DIALECT, "$id": kind.__struct_config__.tag, **root, "title": title}
    definitions = foreign | structs
    used = _used(root, definitions)
    return head | ({"$defs": {name: definitions[name] for name in sorted(used)}} if used else {})


def _foreign(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type that msgspec does not know; what it refers to joins `definitions`."""
    if kind is Fraction:
        return {"type": "number"}
    if issubclass(kind, PurePath):
        return {"type": "string"}
    if hasattr(kind, "model_json_schema"):
        body = kind.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        definitions |= body.pop("$defs", {}) | {kind.__name__: body}
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise TypeError(f"no rule says what the schema of {kind.__name__} is")


def _close(body: dict[str, Any], structs: dict[str, Any], foreign: dict[str, Any]) -> None:
    """Change the schema of a struct into the schema of the JSON that is printed of it."""
    _described(body)
    if "properties" not in body:
        return
    body.setdefault("additionalProperties", False)
    required = set(body.get("required", ()))
    omits = body.get("title") in _omitting(msgspec.Struct)
    for key, field in list(body["properties"].items()):
        if "default" in field:
            required |= set() if omits else {key}
            del field["default"]
        if field.pop(_BESIDE, False):
            required.discard(key)
            del body["properties"][key]
            required |= _spread(body, field, structs, foreign)
    body["required"] = [key for key in body["properties"] if key in required]


def _omitting(kind: type[msgspec.Struct]) -> set[str]:
    """Return the names of the structs below `kind` whose JSON leaves out what has its default."""
    names = {kind.__name__} if kind.__struct_config__.omit_defaults else set()
    return names.union(*(_omitting(below) for below in kind.__subclasses__()))


def _described(body: dict[str, Any]) -> None:
    """Make descriptions of a docstring: its first paragraph, and its ``Attributes:`` for the fields."""
    if "description" not in body:
        return
    about, _, listed = cleandoc(body["description"]).partition("\n\nAttributes:\n")
    body["description"] = " ".join(about.split("\n\n")[0].split())
    for item in re.split(r"\n(?=    \w)", listed.split("\n\n")[0]):
        name, _, words = item.strip().partition(": ")
        if field := body.get("properties", {}).get(name):
            field.setdefault("description", " ".join(words.split()).removesuffix("."))


def _spread(
    body: dict[str, Any], field: dict[str, Any], structs: dict[str, Any], foreign: dict[str, Any]
) -> set[str]:
    """Add the keys of a field to its object, and return those that are required."""
    name = field.get("$ref", "").rpartition("/")[2]
    if name in structs:
        _close(structs[name], structs, foreign)
    field = structs.get(name) or foreign.get(name) or field
    if "properties" not in field or field["additionalProperties"] is not False:
        body["additionalProperties"] = True
    body["properties"] |= field.get("properties", {})
    return set(field.get("required", ()))


def _used(body: Any, definitions: dict[str, Any]) -> set[str]:
    """Return the names of all definitions that `body` refers to, directly or not."""
    used: set[str] = set()
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            name = value.get("$ref", "").rpartition("/")[2] if isinstance(value.get("$ref"), str) else ""
            if name and name not in used:
                used.add(name)
                waiting.append(definitions[name])
            waiting += value.values()
    return used


class _Bundle(Part, frozen=True, kw_only=True):
    """The evidence that was judged, in figures.

    Attributes:
        bundles: digests of the bundles, where several were pooled.
    """

    digest: Digest
    sealed: bool
    origin: Text
    records: Count
    nominal_runs: Count
    fault_runs: Count
    harness_errors: Count
    novel_fault_runs: Count
    domains: tuple[Text, ...]
    bundles: tuple[Digest, ...]


class _Agent(Part, frozen=True, kw_only=True):
    """The agent that was evaluated."""

    name: Text
    version: Text
    digest: Digest


class _Table(Part, frozen=True, kw_only=True):
    """The tier table, and which reading decides."""

    id: Text
    digest: Digest
    reading: Reading


class _Cell(Part, frozen=True, kw_only=True):
    """Outcomes of the runs of one split, domain, condition and effect."""

    split: Split
    domain: Text
    condition: Text
    effect: Effect
    runs: Count
    success: Count
    failure: Count
    safe_halt: Count
    harness_error: Count
    rate: Share


class _Beside(Part, frozen=True, kw_only=True):
    """What the answer of ``certkit assess`` holds beside the assessment; a passport signs none of it."""

    bundle: _Bundle
    agent: _Agent
    profile: _Table
    breakdown: tuple[_Cell, ...]
    judge: JudgeReport | None
    fragility: Fragility
    variation: Variation | None
    integrity: IntegrityFacts | None
    baseline: Drift | UnsetType = UNSET


class _Metric(Part, frozen=True, kw_only=True):
    """A metric's value, its unit and state, and the counts it was made of.

    Attributes:
        value: of the metric; null where nothing was measured, absent where it differs by tier.
        by_tier: the value at each tier, where it differs.
        n: the denominator; null where an attestation does not state it.
        interval: over tasks, which it takes as independent.
        interval_by_runs: Wilson's, which takes runs as independent.
        coverage: the share of eligible runs that carry the fields.
        reason: why the metric is not measured, or only in part.
        source: where its definition is.
    """

    state: State
    value: float | bool | UnsetType | None = UNSET
    by_tier: dict[TierKey, Share] | UnsetType = UNSET
    unit: Unit
    n: Count | None
    interval: Interval | UnsetType = UNSET
    interval_by_runs: Interval | UnsetType = UNSET
    coverage: Share | UnsetType = UNSET
    reason: Text | UnsetType = UNSET
    source: Text


def assessment_schema() -> dict[str, Any]:
    """Return the schema of the answer of ``certkit assess``: the assessment, sentences and metrics."""
    _, parts = msgspec.json.schema_components((Assessment, _Beside, _Metric), ref_template="#/$defs/{name}")
    for body in parts.values():
        _close(body, parts, {})
    for name in ("Finding", "Reason"):
        parts[name]["properties"]["message"] = {"type": "string"}
        parts[name]["required"].append("message")
    parts["_Metric"]["additionalProperties"] = True
    signed, beside = parts.pop("Assessment"), parts.pop("_Beside")
    names = {"type": "object", "propertyNames": {"enum": list(CATALOGUE)}, "required": list(CATALOGUE)}
    properties = (
        {"schema": {"const": ASSESSMENT_SCHEMA}}
        | beside["properties"]
        | {"metrics": {**names, "additionalProperties": {"$ref": "#/$defs/_Metric"}}}
        | signed["properties"]
    )
    body = {
        "type": "object",
        "title": "certkit assessment",
        "description": signed["description"],
        "properties": properties,
        "required": [name for name in properties if name != "baseline"],
        "additionalProperties": False,
    }
    text = canonical.line({"$schema": DIALECT, "$id": ASSESSMENT_SCHEMA, **body, "$defs": parts})
    made: dict[str, Any] = canonical.loads(text.replace(b"/$defs/_", b"/$defs/"))
    made["$defs"] = {name.removeprefix("_"): body for name, body in made["$defs"].items()}
    return made


def passport_schema() -> dict[str, Any]:
    """Return the schema of ``passport.json``; that of the signed statement stands at its payload."""
    statement = msgspec.json.schema(Statement)
    definitions = statement.pop("$defs")
    made = msgspec.json.schema(PassportFile)["$defs"]
    for body in (*definitions.values(), *made.values()):
        _described(body)
    file = made.pop("PassportFile")
    file["properties"]["dsseEnvelope"] = _envelope(statement)
    made["VerificationMaterial"]["oneOf"] = [{"required": [name]} for name in _SIGNERS]
    return {
        "$schema": DIALECT,
        "$id": PASSPORT_SCHEMA,
        **file,
        "title": "certkit agent passport",
        "description": (
            "A Sigstore bundle v0.3 around a DSSE envelope over an in-toto Statement v1. What is signed is "
            "the payload's bytes; the passport's id is their SHA-256."
        ),
        "$defs": made | definitions,
    }


def _envelope(statement: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the envelope, whose form `dsse.parse` checks with an error code for each fault."""
    keyid = {**_TEXT, "description": "never written, ignored where met"}
    signature = _closed({"sig": _BASE64, "keyid": keyid}, required=["sig"])
    fields = {
        "payload": {**_BASE64, "contentMediaType": PAYLOAD_TYPE, "contentSchema": statement},
        "payloadType": {"const": PAYLOAD_TYPE},
        "signatures": {"type": "array", "items": signature, "minItems": 1, "maxItems": 1},
    }
    return _closed(fields, required=list(fields))


def _closed(properties: dict[str, Any], *, required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def trust_schema() -> dict[str, Any]:
    """Return the schema of ``trust.json``."""
    document = msgspec.json.schema(Trust)
    definitions = document["$defs"]
    for part in definitions.values():
        _described(part)
    body = definitions.pop("Trust")
    body["required"] = ["schema"]
    return {
        "$schema": DIALECT,
        "$id": TRUST_SCHEMA,
        **body,
        "title": "certkit trust policy",
        "$defs": definitions,
    }


def authored_schema(kind: type[Authored], name: str, **about: str) -> dict[str, Any]:
    """Return the schema of a document that a person writes, once its TOML is parsed; `about` stands last."""
    body: dict[str, Any] = kind.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, "$id": f"{URN}{name}:v1", **body, **about}


def context_schema() -> dict[str, Any]:
    """Return the schema of ``context.json``."""
    return authored_schema(Context, "context", title="certkit context")


def mapping_schema() -> dict[str, Any]:
    """Return the schema of a mapping, by which an import reads a table."""
    return authored_schema(Mapping, "mapping", title="certkit mapping")


def trial_schema() -> dict[str, Any]:
    """Return the schema of a trial, from which a plan is drawn."""
    return authored_schema(TrialFile, "trial", title="certkit trial")


def entry_schema() -> dict[str, Any]:
    """Return the schema of an entry of a registry's log, the payload of its envelope."""
    document = msgspec.json.schema(Entry)
    definitions = document["$defs"]
    for part in definitions.values():
        _described(part)
    body = definitions.pop("Entry")
    about = {"title": "certkit registry entry", "$defs": definitions}
    return {"$schema": DIALECT, "$id": f"{URN}entry:v1", **body, **about}


def manifest_schema() -> dict[str, Any]:
    """Return the schema of ``bundle.json``."""
    return authored_schema(Manifest, "bundle", title="certkit evidence bundle")


def profile_schema() -> dict[str, Any]:
    """Return the schema of a profile."""
    return authored_schema(ProfileTable, "profile")


@cache
def record_schema() -> dict[str, Any]:
    """Return the schema of a record.

    It says what each field may hold. A schema cannot compare two numbers, so contradictions between fields
    and between records are listed on the reference page instead.
    """
    document = _line(
        Record,
        "record",
        "certkit evaluation record",
        "One line of records/*.jsonl. Null and absent mean the same: not measured. A line is at most "
        f"{MAX_LINE:,} bytes; keys occur once.",
    )
    for field in document["properties"].values():
        for option in field.get("anyOf", ()):
            if option.get("format") == "date-time":
                option["pattern"] = TIMESTAMP_PATTERN
    return document


@cache
def calibration_schema() -> dict[str, Any]:
    """Return the schema of one line of a calibration file."""
    document = _line(
        calibration.Rating,
        "calibration",
        "certkit rating",
        "One line of calibration/*.jsonl. Null and absent mean the same: not stated. A line is at most "
        f"{calibration.MAX_LINE:,} bytes; keys occur once; one rater scores an item once.",
    )
    # Other bounds are compared with the scores by the reader alone.
    return document | {
        "if": {"properties": {"low": {"type": "null"}, "high": {"type": "null"}}},
        "then": {"properties": {name: {"minimum": 0, "maximum": 1} for name in ("score", "reference")}},
    }


def _line(kind: type[msgspec.Struct], name: str, title: str, description: str) -> dict[str, Any]:
    """Return the schema of a line: the fields of a struct, and the user's own."""
    definitions = msgspec.json.schema(kind)["$defs"]
    for part in definitions.values():
        _described(part)
    body = definitions.pop(kind.__name__)
    for field in body["properties"].values():
        field.pop("default", None)
    return {
        "$schema": DIALECT,
        "$id": f"{URN}{name}:v1",
        "title": title,
        "description": description,
        "type": "object",
        "properties": body["properties"],
        "patternProperties": {USER_FIELD_PATTERN: {"description": "the user's own; carried, not read"}},
        "required": body["required"],
        "additionalProperties": False,
    } | ({"$defs": definitions} if definitions else {})
