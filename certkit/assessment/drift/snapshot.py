"""One side of a comparison over time: all that drift needs to know of a passport or of a bundle.

A passport carries it (`certkit.passport.drift_side` reads it out), a bundle's assessment gives it (`snapshot`
here). No raw evidence is needed: the task table tells of every task in integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.assessment.criteria import Status
from certkit.assessment.profile import exact
from certkit.assessment.tasks import task_table

if TYPE_CHECKING:
    from fractions import Fraction

    from certkit.assessment.criteria import Row
    from certkit.assessment.result import Assessment
    from certkit.assessment.task_table import TaskTable
    from certkit.summary.summary import Summary

NOMINAL: Final = "nominal"
_JUDGED: Final = {Status.MET, Status.NOT_MET}


class Part(Struct, frozen=True, kw_only=True):
    """One component of the agent; without a digest it is not pinned to its bytes."""

    role: str
    name: str
    version: str | None = None
    digest: str | None = None


class Watched(Struct, frozen=True, kw_only=True):
    """A criterion of the profile: its metric, the loss that counts as drift, and whether it was judged.

    `margin` is in the metric's unit, None where none is stated. `judged` is false where the metric was not
    measured, or not well enough for a status.
    """

    id: str
    metric: str
    margin: Fraction | None
    judged: bool


class Snapshot(Struct, frozen=True, kw_only=True):
    """One side of a comparison.

    `identity` is the agent's digest, `judge` the judge's name and family in one text.
    """

    lineage: str
    version: str
    identity: str
    components: tuple[Part, ...]
    evidence: str
    origin: str
    tier: int
    profile_id: str
    profile_digest: str
    criteria: tuple[Watched, ...]
    methodology: str | None
    success_rule: str | None
    judge: str | None
    cascade_definition: str | None
    memory_observable: bool | None
    table: TaskTable

    @property
    def cells(self) -> dict[tuple[str, str], int]:
        """The runs of every domain and condition."""
        return {(cell.domain, cell.condition): cell.runs for cell in self.table.cells}

    @property
    def domains(self) -> frozenset[str]:
        """The domains with runs."""
        return frozenset(domain for domain, _ in self.cells)

    @property
    def conditions(self) -> frozenset[str]:
        """The conditions with runs."""
        return frozenset(condition for _, condition in self.cells)


def named_judge(name: str, family: str | None) -> str:
    """Return the judge as one text, by which two sides are compared."""
    return f"{name} ({family})" if family else name


def snapshot(assessment: Assessment, summary: Summary) -> Snapshot:
    """Return the side of the bundle that `assessment` judged from `summary`."""
    facts = assessment.facts
    agent, protocol = facts.manifest.agent, facts.manifest.protocol
    judge = protocol.judge
    return Snapshot(
        lineage=agent.lineage,
        version=agent.version,
        identity=facts.agent_digest,
        components=tuple(
            Part(role=part.role, name=part.name, version=part.version, digest=part.digest)
            for part in agent.components
        ),
        evidence=facts.digest,
        origin=protocol.origin,
        tier=assessment.verdict.tier,
        profile_id=assessment.profile.id,
        profile_digest=assessment.profile.digest,
        criteria=_criteria(assessment.criteria),
        methodology=protocol.methodology,
        success_rule=protocol.success_rule,
        judge=None if judge is None else named_judge(judge.name, judge.family),
        cascade_definition=protocol.cascade_definition,
        memory_observable=protocol.memory_observable,
        table=task_table(summary, salt=protocol.salt, memory_observable=protocol.memory_observable is True),
    )


def _criteria(rows: tuple[Row, ...]) -> tuple[Watched, ...]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.id, []).append(row)
    return tuple(
        Watched(
            id=name,
            metric=group[0].metric.id,
            margin=None if group[0].criterion.margin is None else exact(group[0].criterion.margin),
            judged=any(row.status in _JUDGED for row in group),
        )
        for name, group in groups.items()
    )
