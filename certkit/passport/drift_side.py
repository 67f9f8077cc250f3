"""A passport as one side of a drift comparison, which then needs no evidence.

    drift_side(statement)                    # `certkit.assessment.drift.standing.Standing`

A signature says who wrote the integers, not that clusters can have such integers. Integers that are
impossible for any evidence are refused here, so that no impossible variance decides about drift.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NoReturn

from certkit.assessment.drift.standing import (
    NOMINAL,
    Key,
    Part,
    Standing,
    Watched,
    above,
    is_cell,
    key_of,
    named_judge,
)
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.reliability import METRICS, CellRuns, Moments
from certkit.errors import NegativeError

if TYPE_CHECKING:
    from certkit.passport import statement as st

_JUDGED: Final = {"met", "not_met"}
_DIGITS: Final = 40
"""Digits that a sum of squares of counts up to 2^53 can have, with a margin."""


def drift_side(statement: st.Statement) -> Standing:
    """Return the side of a drift comparison that a statement gives.

    Raises `NegativeError` ``passport.statement`` where the integers contradict each other.
    """
    predicate = statement.predicate
    agent, protocol, judgement = predicate.agent, predicate.protocol, predicate.assessment
    judge = protocol.judge
    runs, moments = _integers(predicate.profile_of_reliability)
    return Standing(
        lineage=agent.lineage,
        version=agent.version,
        identity=agent.digest,
        components=tuple(
            Part(role=part.role, name=part.name, version=part.version, digest=part.digest)
            for part in agent.components
        ),
        evidence=predicate.evidence.digest,
        origin=predicate.origin,
        tier=judgement.tier,
        profile_id=judgement.profile.id,
        profile_digest=judgement.profile.digest,
        criteria=tuple(_tested(row) for row in predicate.criteria),
        methodology=protocol.methodology,
        success_rule=protocol.success_rule,
        judge=None if judge is None else named_judge(judge.name, judge.family),
        cascade_definition=protocol.cascade_definition,
        memory_observable=protocol.memory_observable,
        runs=runs,
        moments=moments,
    )


def _tested(row: st.CriterionClaim) -> Watched:
    margin = None if row.drift_margin is None else Fraction(row.drift_margin)
    if margin is not None and margin < 0:
        _refuse(f"the drift margin of {row.id} is below 0")
    return Watched(
        id=row.id,
        metric=row.metric,
        margin=margin,
        judged=any(tier.table in _JUDGED for tier in row.tiers.values()),
    )


def _integers(reliability: st.Reliability) -> tuple[tuple[CellRuns, ...], tuple[Moments, ...]]:
    runs = tuple(
        CellRuns(domain=row.domain, condition=row.condition, runs=row.runs) for row in reliability.runs
    )
    # A later writer may carry more rows than are known here.
    known = (row for row in reliability.sums if row.metric in METRICS)
    moments = tuple(_moments(row) for row in known if row.metric == "r_op" or row.condition is None)
    cells = {(row.domain, row.condition): row.runs for row in runs}
    by_key = {key_of(row): row for row in moments}
    if len(cells) != len(runs) or len(by_key) != len(moments):
        _refuse("a row of the profile of reliability occurs twice")
    reported = {
        (domain, condition): row.n
        for (metric, domain, condition), row in by_key.items()
        if is_cell(row) and metric == "r_op"
    }
    if reported != {cell: count for cell, count in cells.items() if cell[1] != NOMINAL and count}:
        _refuse("the integers of r_op are not over the fault runs that it counts")
    _check_sums(by_key)
    return runs, moments


def _check_sums(rows: dict[Key, Moments]) -> None:
    """Refuse totals that are not the sums of their rows, and rows without their total."""
    wanted: dict[Key, tuple[int, int]] = {}
    for row in rows.values():
        for key in above(row) if is_cell(row) else ():
            y, n = wanted.get(key, (0, 0))
            wanted[key] = (y + row.y, n + row.n)
    for key in wanted.keys() | {key for key, row in rows.items() if not is_cell(row)}:
        moments = rows.get(key)
        if moments is None or (moments.y, moments.n) != wanted.get(key):
            _refuse(f"the integers of {key[0]} do not add up")


def _moments(row: st.Sums) -> Moments:
    if max(map(len, (row.yy, row.yn, row.nn))) > _DIGITS:
        _refuse(f"an integer of {row.metric} is larger than counts can give")
    moments = Moments(
        metric=row.metric,
        domain=row.domain,
        condition=row.condition,
        scale=row.scale,
        y=row.y,
        n=row.n,
        k=row.k,
        yy=int(row.yy),
        yn=int(row.yn),
        nn=int(row.nn),
    )
    low, high = CATALOGUE[row.metric].low, CATALOGUE[row.metric].high
    possible = (
        moments.scale > 0
        and 1 <= moments.k <= moments.n <= moments.nn <= moments.n**2 <= moments.k * moments.nn
        and (low is None or moments.y >= low * moments.scale * moments.n)
        and (high is None or moments.y <= high * moments.scale * moments.n)
        and moments.y**2 <= moments.k * moments.yy
        and moments.yn**2 <= moments.yy * moments.nn
    )
    if not possible:
        _refuse(f"no runs give the integers of {row.metric}")
    return moments


def _refuse(message: str) -> NoReturn:
    raise NegativeError("passport.statement", message)
