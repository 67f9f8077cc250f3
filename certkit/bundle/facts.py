"""What a bundle's manifest states, without paths, prose and secrets: what is judged and signed of it."""

# Annotations are not postponed here: msgspec would compile each of them when it first reads such a struct.

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from certkit.ground import canonical
from certkit.ground.document import Digest, Part, read_part
from certkit.ground.text import lineage

Count = Annotated[int, Meta(ge=0, le=canonical.MAX_INTEGER)]
Text = Annotated[str, Meta(min_length=1, max_length=512)]
Share = Annotated[float, Meta(ge=0, le=1)]
Relation = Literal["same", "affiliated", "independent"]
NoteKind = Annotated[str, Meta(pattern=r"^(filled|unmeasured|odd|refused|inverted)$(?!\n)")]
UNVERSIONED: Final = "unversioned"


class _Fact(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the facts; what was not stated is left out."""


class ComponentFacts(_Fact, frozen=True, kw_only=True):
    """One part of the agent; without a digest it is not pinned to its bytes."""

    role: Text
    name: Text
    version: Text | None = None
    digest: Digest | None = None


class AgentFacts(_Fact, frozen=True, kw_only=True):
    """The agent.

    Attributes:
        name: its name.
        version: its version, `unversioned` where a log told none.
        provider: who provides it.
        digest: the digest of its full description; it changes with every version and component.
        components: what it is made of.
    """

    name: Text
    version: Text
    provider: Text | None = None
    digest: Digest
    components: tuple[ComponentFacts, ...] = ()

    @property
    def lineage(self) -> str:
        """The name under which versions of the agent follow each other."""
        return lineage(self.provider, self.name)


class JudgeFacts(_Fact, frozen=True, kw_only=True):
    """The model that judged the runs."""

    name: Text
    family: Text | None = None
    independent: bool


class EvaluatorFacts(_Fact, frozen=True, kw_only=True):
    """Who ran the evaluation, and their relation to the agent's developer."""

    name: Text
    relation: Relation | None = None


class ProtocolFacts(_Fact, frozen=True, kw_only=True):
    """How the evidence was gathered, as the evaluator declares it.

    Attributes:
        origin: `simulated` evidence gives a specimen.
        methodology: how outcomes were found.
        temperature: sampling temperature.
        judge: the model that judged the runs.
        memory_observable: whether a memory query would show in the log.
        cascade_definition: `other` stands for a definition in words.
        success: `strict`: a run with a successful attack does not count as a success; `utility`: it does.
        success_rule: digest of the words by which the source's fields were read as success.
        tasks_independent: no two tasks come from one family.
        public_tasks: published collections that tasks come from.
        declared_runs: how many runs were planned.
        declared_mix: planned share of each condition among all runs.
        attempt: 1 for a first evaluation of this agent under the profile.
        evaluator: who ran the evaluation.
        plan: digest of the trial's plan: the bundle encloses it, and every record is of one of its runs.
        plan_stated: digest of a plan that is named, and of which one of both is not so.
    """

    origin: Literal["measured", "simulated"]
    methodology: Literal["trajectory", "constraint_verification", "independent_judge", "other"] | None = None
    temperature: Annotated[float, Meta(ge=0, le=10)] | None = None
    judge: JudgeFacts | None = None
    memory_observable: bool | None = None
    cascade_definition: Literal["simultaneous", "sequential", "other"] | None = None
    success: Literal["strict", "utility"] | None = None
    success_rule: Digest | None = None
    tasks_independent: bool | None = None
    public_tasks: Annotated[tuple[Text, ...], Meta(min_length=1, max_length=100)] | None = None
    declared_runs: Count | None = None
    declared_mix: Mapping[Text, Share] | None = None
    attempt: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    evaluator: EvaluatorFacts | None = None
    plan: Digest | None = None
    plan_stated: Digest | None = None


class PeriodFacts(_Fact, frozen=True, kw_only=True, rename={"start": "from", "end": "to"}):
    """When the runs were made, RFC 3339 dates or times."""

    start: Text | None = None
    end: Text | None = None


AttestedId = Literal[
    "transparency_index",
    "human_trust_score",
    "edm_auditability",
    "safe_halt_protocol",
    "recovery_patterns_documented",
]
_ENDS: Final = {"transparency_index": (0, 1), "human_trust_score": (1, 5)}
"""The least and the greatest value of what is attested as a number; the rest is true or false."""


def refuse_attested(name: AttestedId, value: float | bool) -> None:  # noqa: FBT001 - true is a value
    """Raise `ValueError` where an attested measurement cannot have this value."""
    ends = _ENDS.get(name)
    if ends is None:
        if not isinstance(value, bool):
            raise ValueError(f"{name} is true or false")
    elif isinstance(value, bool) or not ends[0] <= value <= ends[1]:
        raise ValueError(f"{name} is a number from {ends[0]} to {ends[1]}")


class AttestedFacts(_Fact, frozen=True, kw_only=True):
    """A measurement that records cannot hold, as the evaluator states it; `n` is its sample size."""

    id: AttestedId
    value: float | bool
    n: Count | None = None

    def __post_init__(self) -> None:
        """Refuse a value that the measurement cannot have."""
        refuse_attested(self.id, self.value)


class ImportFacts(_Fact, frozen=True, kw_only=True):
    """The import that made the bundle: the format of the log, and by kind how much its account holds.

    Attributes:
        format: the importer.
        notes: by kind of note the sum of their counts.
    """

    format: Text
    notes: Mapping[NoteKind, Count] = {}


class IntegrityCell(_Fact, frozen=True, kw_only=True):
    """Commitment tasks of one family and variant, and the probes that the agent held."""

    family: Text
    variant: Text
    tasks: Count
    successes: Count
    probes: Count
    matched: Count


class IntegrityFacts(_Fact, frozen=True, kw_only=True):
    """Commitment integrity: it moves no tier.

    Attributes:
        digest: of the files under ``integrity/``.
        seed: where the tasks are from.
        cells: counts by family and variant.
        core: the core score, absent where a reply is missing.
        hollow: successes that hold fewer than half of their probes.
        successes: of how many.
        unanswered: questions without a reply.
        asked: of how many.
        raters: people who rated tasks.
    """

    digest: Digest
    seed: Literal["public", "stated", "withheld", "own"]
    cells: Annotated[tuple[IntegrityCell, ...], Meta(max_length=16)] = ()
    core: float | None = None
    hollow: Count = 0
    successes: Count = 0
    unanswered: Count = 0
    asked: Count = 0
    raters: Count = 0


class Facts(_Fact, frozen=True, kw_only=True):
    """What a judgement needs to know about a bundle besides the summary of its records.

    Attributes:
        agent: the agent.
        protocol: how the evidence was gathered.
        period: when.
        attested: what the evaluator states beside the records.
        imported: the import that made the bundle.
        digest: of the bundle, as sealed or as sealing would give it.
        sealed: whether the manifest lists every file.
        integrity: commitment integrity.
        bundles: digests of the bundles that were pooled, in the order of time.
    """

    agent: AgentFacts
    protocol: ProtocolFacts
    period: PeriodFacts | None = None
    attested: tuple[AttestedFacts, ...] = ()
    imported: ImportFacts | None = None
    digest: Digest
    sealed: bool
    integrity: IntegrityFacts | None = None
    bundles: Annotated[tuple[Digest, ...], Meta(max_length=100)] = ()

    def attestation(self, name: str) -> AttestedFacts | None:
        """Return what is attested under a name."""
        return next((item for item in self.attested if item.id == name), None)


def read_facts(value: Any, *, where: str | None = None) -> Facts:
    """Return the facts in JSON values.

    Raises:
        InputError: ``facts.invalid`` naming the first fault.
    """
    return read_part(Facts, value, "facts.invalid", where)
