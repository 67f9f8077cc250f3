"""The statement of a passport: an in-toto Statement v1 about an agent and the evidence bundle it rests on.

These types are the published form of the signed payload. Counts are integers; decimals are strings with
six digits, so that two readers compare the same text. A key that is absent makes no claim. As in-toto asks of
its readers, keys that are not known here are ignored, so that a later writer can say more without being
refused.

Nothing is computed here: `claim` states, `payload` writes and reads.
"""

from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from certkit.assessment.task_table import TaskTable
from certkit.ground import canonical
from certkit.ground.document import Part, Tier, Time

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:certkit:agent-passport:v1"

CLOCK_SKEW: Final = timedelta(minutes=5)
"""How far two clocks may differ. An end of validity is not stretched."""

MAX_VALIDITY: Final = timedelta(days=366)

NOMINAL: Final = "nominal"
"""The condition of runs without a fault."""

END: Final = r"$(?!\n)"  # in Python a bare $ also matches before a final newline

Digest = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}" + END)]
Hex = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END)]
Decimal = Annotated[str, Meta(pattern=r"^-?[0-9]{1,20}\.[0-9]{6}" + END)]
Count = Annotated[int, Meta(ge=0, le=canonical.MAX_INTEGER)]
TierKey = Annotated[str, Meta(pattern=r"^[1-9]" + END)]
Text = Annotated[str, Meta(min_length=1, max_length=20_000)]

Relation = Literal["same", "affiliated", "independent"]
Origin = Literal["measured", "simulated"]
Reading = Literal["table", "bounded"]
TierStatus = Literal["met", "contested", "not_met", "insufficient"]
Judged = Literal["met", "not_met", "insufficient", "not_tested"]


class _Part(Part, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False):
    """A part of the statement; what has no value is left out."""


class Sha256(_Part, frozen=True, kw_only=True):
    """A digest as in-toto writes it."""

    sha256: Hex


class Subject(_Part, frozen=True, kw_only=True):
    """One of the two things that the statement is about."""

    name: Text
    digest: Sha256


class Issuer(_Part, frozen=True, kw_only=True):
    """Who signs, and their relation to the evaluator and to the developer of the agent."""

    name: Text
    key_id: Digest
    relation_to_evaluator: Relation | None = None
    relation_to_developer: Relation | None = None


class Component(_Part, frozen=True, kw_only=True):
    """One part of the agent; without a digest it is not pinned to its bytes."""

    role: Text
    name: Text
    version: Text | None = None
    digest: Digest | None = None
    pinned: bool


class Agent(_Part, frozen=True, kw_only=True):
    """The agent: `lineage` is what history follows, `digest` its identity in this version."""

    name: Text
    version: Text
    provider: Text | None = None
    lineage: Text
    digest: Digest
    components: tuple[Component, ...]


class Attained(_Part, frozen=True, kw_only=True):
    """The tier attained under one reading, 0 for none."""

    tier: Tier


class Dates(_Part, frozen=True, kw_only=True):
    """When the runs were made: the first and last start time, and the declared period."""

    first_run: Time | None = None
    last_run: Time | None = None
    declared_from: Text | None = None
    declared_to: Text | None = None


class BundleClaim(_Part, frozen=True, kw_only=True):
    """One of several bundles that were pooled, and when its runs were made."""

    digest: Digest
    dates: Dates


class Evidence(_Part, frozen=True, kw_only=True):
    """The sealed bundle that everything here was computed from.

    Where several bundles were pooled, `bundles` lists them in the order of time, and `digest` is that of the
    canonical ``{"schema": "urn:certkit:accumulation:v1", "bundles": [their digests]}``. `judged`: a model
    gave the outcomes, so that labels bear on the bounds.
    """

    digest: Digest
    records: Count
    nominal_runs: Count
    fault_runs: Count
    harness_errors: Count
    novel_fault_runs: Count
    judged: bool | None = None
    bundles: Annotated[tuple[BundleClaim, ...], Meta(min_length=2, max_length=100)] | None = None


class Judge(_Part, frozen=True, kw_only=True):
    """The model that judged the runs."""

    name: Text
    family: Text | None = None
    independent: bool


class Evaluator(_Part, frozen=True, kw_only=True):
    """Who ran the evaluation."""

    name: Text
    relation: Relation | None = None


class Protocol(_Part, frozen=True, kw_only=True):
    """How the evidence was gathered, as the bundle declares it."""

    methodology: Text | None = None
    temperature: Decimal | None = None
    success_rule: Text | None = None
    cascade_definition: Text | None = None
    memory_observable: bool | None = None
    tasks_independent: bool | None = None
    declared_runs: Count | None = None
    attempt: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    judge: Judge | None = None
    evaluator: Evaluator | None = None


class Profile(_Part, frozen=True, kw_only=True):
    """The tier table that the evidence was judged against, and the reading that decides under it.

    `stopping` is given where its bounds hold although the evidence was looked at while it grew.
    """

    id: Text
    digest: Digest
    reading: Reading
    stopping: Literal["anytime"] | None = None


class Tool(_Part, frozen=True, kw_only=True):
    """The program that judged."""

    name: Text
    version: Text


class Judgement(_Part, frozen=True, kw_only=True):
    """The verdict. `digest` is that of the canonical assessment document made for `required_tier`.

    `context` is the digest of the ``context.json`` whose answers to challenges were looked at.
    """

    digest: Digest
    required_tier: Tier
    profile: Profile
    tool: Tool
    tier: Tier
    status: TierStatus
    table: Attained
    bounded: Attained
    binding: tuple[Text, ...]
    context: Digest | None = None


class Interval(_Part, frozen=True, kw_only=True):
    """A confidence interval."""

    low: Decimal
    high: Decimal
    level: Decimal
    method: Text


class Bound(_Part, frozen=True, kw_only=True):
    """The bounded reading of a row: the bound, and the `k` tasks that it rests on, in words too."""

    status: Judged
    bound: Decimal | bool | None = None
    confidence: Decimal
    k: Count | None = None
    rests_on: Text | None = None
    reason: Text | None = None


class RowAtTier(_Part, frozen=True, kw_only=True):
    """A criterion at a tier that specifies it: what is asked, and both readings."""

    operator: Literal[">", ">=", "<", "<=", "is"]
    threshold: Decimal | bool
    table: Judged
    bounded: Bound | None = None
    value: Decimal | None = None


class EvidenceLevel(_Part, frozen=True, kw_only=True):
    """How many records a criterion rests on by their traces; the rest is asserted. `level` is the weakest."""

    level: Literal["asserted", "traced", "derived"]
    derived: Count
    traced: Count


class CriterionClaim(_Part, frozen=True, kw_only=True):
    """A criterion: its metric's value with denominator and counts, and its status tier by tier.

    A value that differs from tier to tier stands with each tier instead. `drift_margin` is the loss that
    the profile counts as drift, in the metric's unit. Without `evidence` every record is asserted.
    """

    id: Text
    metric: Text
    unit: Text
    state: Literal["measured", "partial", "unmeasured"]
    value: Decimal | bool | None = None
    n: Count | None = None
    counts: dict[str, Count]
    interval: Interval | None = None
    reason: Text | None = None
    provisional: bool
    drift_margin: Decimal | None = None
    evidence: EvidenceLevel | None = None
    tiers: dict[TierKey, RowAtTier]


class Scope(_Part, frozen=True, kw_only=True):
    """What the claim covers, and what it leaves out."""

    domains: tuple[Text, ...]
    fault_mix: dict[str, Count]
    dates: Dates
    exclusions: tuple[Text, ...]


class FailureMode(_Part, frozen=True, kw_only=True):
    """A domain and a fault condition in which the agent failed."""

    domain: Text
    condition: Text
    failures: Count
    runs: Count


class Challenge(_Part, frozen=True, kw_only=True):
    """A question about the evidence, whether it is open or answered, and by whom."""

    code: Text
    severity: Literal["serious", "warning", "info"]
    state: Literal["open", "answered"] = "open"
    answered_by: tuple[Text, ...] | None = None
    message: Text


class CommitmentCell(_Part, frozen=True, kw_only=True):
    """Tasks of one family and variant, and the probes that were held."""

    family: Text
    variant: Text
    tasks: Count
    successes: Count
    probes: Count
    matched: Count


class Commitments(_Part, frozen=True, kw_only=True):
    """Commitment integrity, which moves no tier; `digest` names the files under ``integrity/``.

    `seed` tells where the tasks are from, `core` is absent where a reply is missing, and `raters`, how many
    people rated the tasks, where none did.
    """

    digest: Digest
    seed: Literal["public", "stated", "withheld", "own"]
    cells: Annotated[tuple[CommitmentCell, ...], Meta(max_length=16)]
    core: Decimal | None = None
    raters: Count | None = None


class Trigger(_Part, frozen=True, kw_only=True):
    """An event that ends the claim before its date."""

    event: Literal["component_change", "metric_beyond_threshold", "intervention_rate_above"]
    metric: Text | None = None
    operator: Text | None = None
    threshold: Decimal | None = None


class Validity(_Part, frozen=True, kw_only=True):
    """From when to when the claim stands, both ends included, and what ends it sooner."""

    not_before: Time
    not_after: Time
    retest_triggers: tuple[Trigger, ...]


class Predicate(_Part, frozen=True, kw_only=True):
    """The passport's claim (``urn:certkit:agent-passport:v1``)."""

    name: Text
    claim: Text
    origin: Origin
    issuer: Issuer
    agent: Agent
    evidence: Evidence
    protocol: Protocol
    assessment: Judgement
    criteria: Annotated[tuple[CriterionClaim, ...], Meta(max_length=100)]
    profile_of_reliability: TaskTable
    scope: Scope
    limitations: tuple[Text, ...]
    known_failure_modes: tuple[FailureMode, ...]
    challenges: tuple[Challenge, ...]
    validity: Validity
    supersedes: Digest | None = None
    integrity: Commitments | None = None


class Statement(
    _Part, frozen=True, kw_only=True, rename={"type_": "_type", "predicate_type": "predicateType"}
):
    """The signed payload."""

    type_: Literal["https://in-toto.io/Statement/v1"]
    subject: Annotated[tuple[Subject, ...], Meta(min_length=2, max_length=2)]
    predicate_type: Literal["urn:certkit:agent-passport:v1"]
    predicate: Predicate


def plain(part: Part) -> dict[str, Any]:
    """Return a part of the statement as JSON values."""
    value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(part))  # lists, where parts hold tuples
    return value
