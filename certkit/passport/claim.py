"""From an assessment to what a passport states, and from the evidence to the same statement again.

Everything here but who signs, and for how long, follows from the assessment and the summary. What the
manifest declares is stated by `replay`, and what follows from other parts by `derived`. `from_bundle`
returns the two callables that `verify` takes, for a bundle in a folder or for several.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from msgspec import structs

from certkit._version import __version__
from certkit.assessment.assessing import assess, assess_accumulation, contested
from certkit.assessment.criteria import Status
from certkit.assessment.metrics.metric import State
from certkit.assessment.rater_error.labels import gives_outcomes
from certkit.assessment.result import moment
from certkit.assessment.tasks import task_table
from certkit.bundle.folder import Bundle, open_bundle
from certkit.bundle.manifest import Facts
from certkit.ground import canonical
from certkit.ground.canonical import decimal
from certkit.ground.document import fill
from certkit.ground.errors import CertkitError, UnavailableError
from certkit.passport import replay
from certkit.passport import statement as st
from certkit.passport.derived import rebuilt
from certkit.passport.replay import Opened
from certkit.summary.pooling import Accumulation, accumulate
from certkit.summary.summarise import summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from certkit.assessment.criteria import Bounded, Row
    from certkit.assessment.integrity.document import IntegrityDocument
    from certkit.assessment.metrics.metric import Metric, Value
    from certkit.assessment.profile import Profile
    from certkit.assessment.result import Assessment
    from certkit.assessment.statistics.estimators import Interval
    from certkit.bundle.context import Given
    from certkit.ground.progress import Progress
    from certkit.summary.summary import Summary

_ABSENT: Final = {"file.missing", "file.unreadable", "bundle.manifest-missing"}


def state(
    assessment: Assessment,
    summary: Summary,
    *,
    issuer: st.Issuer,
    validity: tuple[datetime, datetime],
    supersedes: str | None,
) -> st.Statement:
    """Return the statement that an assessment of `summary` makes."""
    manifest, judgement, times = assessment.facts.manifest, _judgement(assessment), summary.times
    dates = structs.replace(
        replay.period(manifest), first_run=moment(times.first), last_run=moment(times.last)
    )
    statement = rebuilt(
        st.Predicate(
            name="",
            claim="",
            origin=manifest.protocol.origin,
            issuer=issuer,
            agent=replay.agent(assessment.facts),
            evidence=fill(
                st.Evidence,
                assessment.counts,
                digest=assessment.facts.digest,
                judged=gives_outcomes(manifest.protocol, summary.calibration) or None,
                bundles=tuple(
                    st.BundleClaim(digest=part.digest, dates=fill(st.Dates, part))
                    for part in assessment.bundles
                )
                or None,
            ),
            protocol=replay.protocol(manifest),
            assessment=judgement,
            criteria=tuple(
                _criterion([*rows]) for _, rows in groupby(assessment.criteria, key=lambda row: row.id)
            ),
            profile_of_reliability=task_table(
                summary,
                salt=manifest.protocol.salt,
                memory_observable=manifest.protocol.memory_observable is True,
            ),
            scope=st.Scope(domains=(), fault_mix={}, dates=dates, exclusions=()),
            limitations=(),
            known_failure_modes=(),
            challenges=tuple(
                fill(
                    st.Challenge,
                    challenge,
                    severity=challenge.severity.value,
                    state=challenge.state.value,
                    answered_by=challenge.answered_by or None,
                )
                for challenge in assessment.challenges
            ),
            validity=st.Validity(not_before=validity[0], not_after=validity[1], retest_triggers=()),
            supersedes=supersedes,
            integrity=None
            if assessment.integrity is None
            else _commitments(assessment.integrity, assessment.facts),
        )
    )
    if statement.predicate.assessment != judgement:
        raise AssertionError("the rows of the statement do not give the verdict of the assessment")
    return statement


def from_bundle(
    roots: Path | Sequence[Path],
    load_profile: Callable[[str], Profile],
    *,
    progress: Progress,
    context: Given | None = None,
) -> tuple[Callable[[], Opened], Callable[[st.Statement], st.Statement]]:
    """Return two callables: the first opens the bundles in the folders, the second computes a claim again.

    `load_profile` gives the profile of an id. Without a `context` the answers to challenges are those that
    the claim states, since no evidence tells them. Both raise `UnavailableError` where there is no such
    bundle or no profile of the right digest, and what `open_bundle` and `summarise` raise otherwise.
    """
    folders = (roots,) if isinstance(roots, Path) else tuple(roots)

    @cache  # hashed once, for the digests and for the replay
    def bundles() -> tuple[Bundle, ...]:
        try:
            return tuple(open_bundle(root, progress=progress) for root in folders)
        except CertkitError as error:
            if error.code in _ABSENT:
                raise UnavailableError("passport.unavailable", str(error)) from None
            raise

    @cache  # several are read to know their order
    def pooled() -> Accumulation:
        return accumulate(bundles(), progress=progress)

    def opened() -> Opened:
        facts, parts = bundles()[0].facts, tuple[Facts, ...]()
        if len(folders) > 1:
            facts, parts = pooled().facts, tuple(part.facts for part in pooled().parts)
        return Opened(facts=facts, parts=parts, context=context.digest if context else None)

    def recomputed(statement: st.Statement) -> st.Statement:
        predicate = statement.predicate
        judgement, validity = predicate.assessment, predicate.validity
        profile, tier = _profile(load_profile, judgement.profile), judgement.required_tier
        if len(folders) > 1:
            judged = assess_accumulation(pooled(), profile, required_tier=tier, context=context)
            summary = pooled().summary
        else:
            source = bundles()[0]
            summary = summarise(source, progress=progress)
            judged = assess(summary, source.facts, profile, required_tier=tier, context=context)
        return state(
            judged if context else _answered(judged, statement),
            summary,
            issuer=predicate.issuer,
            validity=(validity.not_before, validity.not_after),
            supersedes=predicate.supersedes,
        )

    return opened, recomputed


def _answered(judged: Assessment, statement: st.Statement) -> Assessment:
    """Return a judgement with the stated answers."""
    predicate = statement.predicate
    stated = {item.code: item.answered_by or () for item in predicate.challenges if item.state == "answered"}
    answered = contested(judged, stated)
    return structs.replace(answered, context=predicate.assessment.context)


def _profile(load: Callable[[str], Profile], wanted: st.Profile) -> Profile:
    try:
        profile = load(wanted.id)
    except CertkitError as error:
        raise UnavailableError("passport.unavailable", str(error), hint=error.hint) from None
    if profile.digest != wanted.digest:
        raise UnavailableError(
            "passport.unavailable",
            f"profile {wanted.id} here is {profile.digest}, the passport was judged by {wanted.digest}",
            hint="give the profile that it was judged by with --profile FILE",
        )
    return profile


def _commitments(scored: IntegrityDocument, facts: Facts) -> st.Commitments | None:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for cell in scored.by_cell:
        told = {name: getattr(cell, name) for name in ("tasks", "successes", "probes", "matched")}
        counts[cell.family.value, cell.variant.value].update(told)
    if (digest := replay.integrity_digest(facts)) is None:
        return None
    return st.Commitments(
        digest=digest,
        seed=scored.seed,
        cells=tuple(
            st.CommitmentCell(family=family, variant=variant, **told)
            for (family, variant), told in sorted(counts.items())
        ),
        core=decimal(scored.core.value),
        raters=scored.raters.people or None,
    )


def _judgement(assessment: Assessment) -> st.Judgement:
    verdict, profile = assessment.verdict, assessment.profile
    return st.Judgement(
        digest=canonical.digest(canonical.canonical(assessment.to_dict())),
        required_tier=verdict.required_tier,
        profile=fill(st.Profile, profile, stopping="anytime" if profile.stopping == "anytime" else None),
        tool=st.Tool(name="certkit", version=__version__),
        tier=verdict.tier,
        status=verdict.status.value,
        table=fill(st.Attained, verdict.table),
        bounded=fill(st.Attained, verdict.bounded),
        binding=verdict.binding,
        context=assessment.context,
    )


def _criterion(rows: list[Row]) -> st.CriterionClaim:
    first = rows[0]
    metric, shown = first.metric, first.evidence
    unjudged = next((row.reason for row in rows if row.status is Status.INSUFFICIENT), None)
    return st.CriterionClaim(
        id=first.id,
        metric=metric.id,
        unit=metric.unit.value,
        state=metric.state.value,
        value=None if metric.by_tier is not None else _value(metric.value, metric),
        n=metric.n,
        counts=dict(metric.counts),
        interval=_interval(metric.interval),
        reason=metric.reason or metric.blocked or unjudged,
        provisional=first.criterion.provisional,
        drift_margin=decimal(first.criterion.margin),
        evidence=fill(st.EvidenceLevel, shown) if shown and shown.derived + shown.traced else None,
        tiers={str(row.tier): _at_tier(row) for row in rows if row.status is not Status.NOT_APPLICABLE},
    )


def _value(value: Value | None, metric: Metric) -> str | bool | None:
    if value is None or metric.state is State.UNMEASURED:
        return None
    return bool(value) if metric.unit.value == "boolean" else decimal(value)


def _interval(interval: Interval | None) -> st.Interval | None:
    if interval is None:
        return None
    low, high, level = map(decimal, (interval.low, interval.high, interval.level))
    return st.Interval(low=low, high=high, level=level, method=interval.method)


def _at_tier(row: Row) -> st.RowAtTier:
    assert row.operator is not None  # noqa: S101 - the tier specifies the row
    assert row.bounded is not None  # noqa: S101 - every row is judged by both readings
    threshold = row.threshold or Fraction(0)
    return st.RowAtTier(
        operator=row.operator,
        threshold=True if row.operator == "is" else decimal(threshold),
        table=cast("st.Judged", row.status.value),
        bounded=_bound(row.bounded, row.metric),
        value=decimal(row.metric.by_tier.get(row.tier)) if row.metric.by_tier is not None else None,
    )


def _bound(bounded: Bounded, metric: Metric) -> st.Bound:
    return st.Bound(
        status=cast("st.Judged", bounded.status.value),
        bound=_value(bounded.bound, metric),
        confidence=decimal(bounded.confidence),
        k=bounded.k,
        rests_on=bounded.rests_on,
        reason=bounded.reason,
    )
