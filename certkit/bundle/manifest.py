"""The manifest of a bundle, ``bundle.json``: the agent, the evaluator, and how the runs were made.

Only `schema`, `agent.name`, `agent.version` and `protocol.origin` are required. The assessment names other
entries that are missing. The bundle's digest is the digest of the manifest's canonical form, whose `files`
list covers every byte of the bundle.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from certkit.bundle.facts import AttestedId, refuse_attested
from certkit.ground.base import Authored, EditorSchema
from certkit.ground.text import TIMESTAMP, lineage, moment, span

MANIFEST_SCHEMA: Final = "urn:certkit:bundle:v1"
MANIFEST_NAME: Final = "bundle.json"
SIMULATOR: Final = "simulate"
"""What `imported.format` says of simulated records."""

_DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"
_WINDOWS_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?\Z", re.IGNORECASE)
_UNPORTABLE = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\\ud800-\udfff]')


def _real(text: str) -> str:
    moment(text)
    return text


MAX_TEXT: Final = 512
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
Prose = Annotated[str, Field(min_length=1, max_length=20_000)]
DigestText = Annotated[str, Field(pattern=_DIGEST_PATTERN)]
Timestamp = Annotated[
    str,
    Field(
        description="RFC 3339 date of the calendar, or time with offset",
        json_schema_extra={"pattern": TIMESTAMP},
    ),
    AfterValidator(_real),
]


def unsafe_path(path: str) -> str | None:
    """Return what is wrong with `path` as the name of a file in a bundle, None where nothing is."""
    if not path or path.startswith("/") or path.endswith("/") or "//" in path:
        return "is not a relative path with a file name"
    if _UNPORTABLE.search(path):
        return "holds a character that not every file system can store"
    if len(path.encode()) > 1024:  # noqa: PLR2004 - bytes
        return "is longer than 1,024 bytes"
    if unicodedata.normalize("NFC", path) != path:
        return "is not in Unicode normal form C"
    for part in path.split("/"):
        if part in {".", ".."}:
            return "leaves its folder"
        if part.endswith((".", " ")) or _WINDOWS_DEVICE.match(part):
            return "holds a name that not every file system can store"
    return None


def _relative(path: str) -> str:
    if reason := unsafe_path(path):
        raise ValueError(f"path {path!r} {reason}")
    return path


RelativePath = Annotated[str, AfterValidator(_relative), Field(max_length=1024)]


class Component(Authored):
    """One part of the agent: the model, its prompt, its tools, its scaffold and so on."""

    role: Literal["model", "system_prompt", "tools", "memory", "scaffold", "code"]
    name: Text
    version: Text | None = None
    digest: DigestText | None = None
    pinned: bool | None = Field(default=None, description="false: no digest pins the component to its bytes")

    @model_validator(mode="after")
    def _pinned_by_digest(self) -> Component:
        if self.pinned is not None and self.pinned != (self.digest is not None):
            raise ValueError("pinned is true exactly where a digest is given")
        return self


class Agent(Authored):
    """The agent under evaluation."""

    name: Text
    version: Text
    provider: Text | None = None
    components: tuple[Component, ...] = ()

    @property
    def lineage(self) -> str:
        """See `certkit.ground.text.lineage`."""
        return lineage(self.provider, self.name)


class Judge(Authored):
    """The model that judged the runs."""

    name: Text
    family: Text | None = None
    independent: bool = Field(description="false where the evaluated model or its family judges itself")


class Period(Authored):
    """When the runs were made. It does not end before it begins; an end that is a date is the whole day."""

    from_: Timestamp | None = Field(default=None, alias="from")
    to: Timestamp | None = None

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Period:
        span(self.from_, self.to)
        return self

    @property
    def span(self) -> tuple[int | None, int | None]:
        """First and last moment in microseconds since 1970; None where not stated."""
        epoch, unit = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
        first, last = (None if time is None else (time - epoch) // unit for time in span(self.from_, self.to))
        return first, last


class Evaluator(Authored):
    """Who ran the evaluation, and their relation to the agent's developer."""

    name: Text
    relation: Literal["same", "affiliated", "independent"] | None = None


class Embedding(Authored):
    """What turns an episode of memory into a vector: a similarity means nothing without it."""

    name: Text
    version: Text | None = None
    dimensions: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class Protocol(Authored):
    """How the evidence was gathered."""

    origin: Literal["measured", "simulated"]
    methodology: Literal["trajectory", "constraint_verification", "independent_judge", "other"] | None = None
    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    judge: Judge | None = None
    memory_observable: bool | None = Field(
        default=None, description="true: a memory query would show in the log if there had been one"
    )
    cascade_definition: Literal["simultaneous", "sequential"] | Prose | None = None
    success_rule: Text | None = Field(
        default=None,
        description="how the source's fields were read as success, where it can be read two ways",
    )
    success: Literal["strict", "utility"] | None = Field(
        default=None,
        description="strict (the default): a run whose landed attack succeeded is no success; utility: it"
        " is one where the task was done",
    )
    plan: DigestText | None = Field(default=None, description="digest of the plan of a trial")
    plan_seed: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = Field(
        default=None, description="the seed from which the plan was drawn"
    )
    embedding: Embedding | None = Field(
        default=None, description="of the similarities of memory: without it they are not comparable"
    )
    tasks_independent: bool | None = Field(
        default=None,
        description="true: no two tasks come from one family (a template, a site, a document), so that"
        " results are independent between tasks; where some do, give every record a cluster_id instead",
    )
    public_tasks: tuple[Text, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="published collections that tasks come from, which may be in a model's training data",
    )
    declared_runs: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    declared_mix: dict[Text, Annotated[float, Field(ge=0, le=1)]] | None = Field(
        default=None, description="planned share of each condition among all runs"
    )
    attempt: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    evaluator: Evaluator | None = None
    period: Period | None = None
    task_salt: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="32 random bytes, the same for all bundles of a lineage: under them passports name tasks,"
        " so that drift pairs what both ran and nobody else can read the names",
    )

    @property
    def salt(self) -> bytes | None:
        """The bytes of `task_salt`."""
        return None if self.task_salt is None else bytes.fromhex(self.task_salt)


class Attested(Authored):
    """A measurement that records cannot hold, with the file in the bundle that shows it."""

    id: AttestedId
    value: float | bool
    n: Annotated[int, Field(ge=0)] | None = None
    method: Prose | None = None
    evidence: RelativePath

    @model_validator(mode="after")
    def _value_fits(self) -> Attested:
        refuse_attested(self.id, self.value)
        return self


class File(Authored):
    """One file of a sealed bundle."""

    path: RelativePath
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]
    media_type: Text


NoteKind = Literal["filled", "unmeasured", "inverted", "odd", "refused"]


class ImportNote(Authored):
    """Something that an importer filled in, left unmeasured, found odd or refused."""

    kind: NoteKind
    what: Text
    count: Annotated[int, Field(ge=0)]
    detail: Prose | None = None

    @property
    def heading(self) -> str:
        """The kind as people read it."""
        return "left out" if self.kind == "refused" else self.kind


class ImportSource(Authored):
    """A file that an importer read."""

    name: Text
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]


class Imported(Authored):
    """How the import that made this bundle went.

    The notes state the column, expression or value by which a mapping filled a field; the options, the
    digest of its file.
    """

    format: Text
    sources: tuple[ImportSource, ...] = ()
    sources_total: Annotated[int, Field(ge=0)] = 0
    records: Annotated[int, Field(ge=0)]
    options: dict[str, str] = Field(default_factory=dict)
    notes: tuple[ImportNote, ...] = ()


class Manifest(Authored):
    """``bundle.json`` (``urn:certkit:bundle:v1``)."""

    editor_schema: EditorSchema = None
    schema_: Literal["urn:certkit:bundle:v1"] = Field(alias="schema")
    agent: Agent
    protocol: Protocol
    attested: tuple[Attested, ...] = ()
    imported: Imported | None = None
    files: tuple[File, ...] | None = Field(
        default=None, description="every file of the bundle but this one, sorted by path; absent: not sealed"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Manifest:
        if self.files is not None:
            paths = [file.path for file in self.files]
            if paths != sorted(set(paths)):
                raise ValueError("files is not sorted by path without repetition")
            listed = set(paths)
            for item in self.attested:
                if item.evidence not in listed:
                    raise ValueError(f"attested {item.id}: evidence {item.evidence!r} is not among files")
        ids = [item.id for item in self.attested]
        if len(set(ids)) != len(ids):
            raise ValueError("attested holds the same id twice")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as it is stored: no nulls, `from` by its JSON name."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {"schema": self.schema_}
