"""What a passport says of an agent: the side of a drift comparison that needs no evidence."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from certkit.assessment.drift.snapshot import Part, Snapshot, Watched, named_judge
from certkit.ground.document import fill
from certkit.ground.errors import NegativeError

if TYPE_CHECKING:
    from certkit.passport import statement as st

_JUDGED: Final = {"met", "not_met"}


def drift_side(statement: st.Statement) -> Snapshot:
    """Return the side that a statement gives.

    Raises `NegativeError` ``passport.statement`` for a margin below 0.
    """
    predicate = statement.predicate
    agent, protocol, judgement = predicate.agent, predicate.protocol, predicate.assessment
    judge = protocol.judge
    return fill(
        Snapshot,
        protocol,
        lineage=agent.lineage,
        version=agent.version,
        identity=agent.digest,
        components=tuple(fill(Part, part) for part in agent.components),
        evidence=predicate.evidence.digest,
        origin=predicate.origin,
        tier=judgement.tier,
        profile_id=judgement.profile.id,
        profile_digest=judgement.profile.digest,
        criteria=tuple(_tested(row) for row in predicate.criteria),
        judge=None if judge is None else named_judge(judge.name, judge.family),
        table=predicate.profile_of_reliability,
    )


def _tested(row: st.CriterionClaim) -> Watched:
    margin = None if row.drift_margin is None else Fraction(row.drift_margin)
    if margin is not None and margin < 0:
        raise NegativeError("passport.statement", f"the drift margin of {row.id} is below 0")
    return Watched(
        id=row.id,
        metric=row.metric,
        margin=margin,
        judged=any(tier.table in _JUDGED for tier in row.tiers.values()),
    )
