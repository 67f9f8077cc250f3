"""From judged rows to tiers and a verdict.

A tier is met when every row that it specifies and that decides is met, and so is the tier below; it is not
met when a measured row of it, or of a tier below, fails; otherwise the evidence is insufficient. Without a
record no tier is met, whatever is attested. An optional row without runs is left out, unless
that would leave the tier without rows. A tier that would be met is contested where a serious finding is open
against it or a tier below: its rows are met, and it does not stand. Provisional rows decide only under
`strict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit.assessment.assessment import Attained, Finding, Question, Row, Status, Tier, TierStatus, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from certkit.assessment.profile import Profile, Reading

WITHOUT_RUNS: Final = frozenset(
    {
        *("no-nominal-runs", "no-fault-runs", "no-adversarial-run", "no-cascade"),
        *("no-single-fault", "no-held-out-run", "no-such-run"),
    }
)
"""Why a row has no evidence: there is no run of its kind, whatever became of it.

An attack that never reached the agent, and a run that the test rig broke, are runs of their kind.
"""
_WORST_FIRST = {Status.NOT_MET: 0, Status.INSUFFICIENT: 1, Status.NOT_TESTED: 2}
"""A failure that was measured, then what could not be judged, then what was never tested."""


def tiers(
    profile: Profile, rows: Sequence[Row], reading: Reading, *, records: int, strict: bool
) -> dict[str, Tier]:
    """Return every tier of the profile under a reading, ascending, by its number, findings aside.

    Args:
        profile: the table.
        rows: every criterion at every tier.
        reading: averages or confidence limits.
        records: how many records there are.
        strict: whether provisional rows decide.
    """
    result: dict[str, Tier] = {}
    lower: TierStatus | None = None
    for number in profile.tier_numbers:
        out = left_out(profile, rows, number)
        statuses = [
            (row.id, status, strict or not row.provisional)
            for row in rows
            if row.tier == number and row.id not in out
            if (status := _deciding(row, reading, strict=strict)) is not None
        ]
        by_status = {
            status.value: tuple(name for name, judged, decides in statuses if decides and judged is status)
            for status in Status
            if status is not Status.NOT_APPLICABLE
        }
        open_rows = (name for name, judged, decides in statuses if not decides and judged in _WORST_FIRST)
        lower = _status({judged for _, judged, decides in statuses if decides}, lower)
        if records == 0 and lower is TierStatus.MET:
            lower = TierStatus.INSUFFICIENT
        result[str(number)] = Tier(status=lower, provisional=tuple(open_rows), left_out=out, **by_status)
    return result


def left_out(profile: Profile, rows: Iterable[Row], tier: int) -> tuple[str, ...]:
    """Return the optional rows of a tier that have no runs; none where no other row would be left."""
    optional = {criterion.id for criterion in profile.criteria if criterion.optional}
    specified = [row for row in rows if row.tier == tier and row.status is not Status.NOT_APPLICABLE]
    untested = [row for row in specified if row.id in optional and row.status is Status.NOT_TESTED]
    out = tuple(row.id for row in untested if row.reason and row.reason.code in WITHOUT_RUNS)
    return out if len(out) < len(specified) else ()


def _deciding(row: Row, reading: Reading, *, strict: bool) -> Status | None:
    """Return the status of a row under a reading; a provisional row without a limit counts on averages."""
    status = row.deciding(reading)
    return row.status if status is None and row.provisional and strict else status


def _status(statuses: set[Status], lower: TierStatus | None) -> TierStatus:
    if Status.NOT_MET in statuses or lower is TierStatus.NOT_MET:
        return TierStatus.NOT_MET
    some = Status.MET in statuses or lower is TierStatus.MET
    if some and statuses <= {Status.MET, Status.NOT_APPLICABLE} and lower in {None, TierStatus.MET}:
        return TierStatus.MET
    return TierStatus.INSUFFICIENT


def contested(judged: Mapping[str, Tier], findings: Iterable[Finding]) -> dict[str, Tier]:
    """Return tiers with those contested that an open serious finding is against."""
    lowest = min((item.tier or 1 for item in findings if item.is_open), default=None)
    return {
        number: structs.replace(tier, status=TierStatus.CONTESTED)
        if lowest is not None and int(number) >= lowest and tier.status is TierStatus.MET
        else tier
        for number, tier in judged.items()
    }


def attained(judged: Mapping[str, Tier]) -> int:
    """Return the highest tier that stands, 0 where none does."""
    return max((int(number) for number, tier in judged.items() if tier.status is TierStatus.MET), default=0)


def verdict(
    profile: Profile,
    rows: Sequence[Row],
    judged: Mapping[str, Tier],
    *,
    tier_strict: int,
    records: int,
    question: Question,
) -> Verdict:
    """Return the verdict under the profile's reading.

    Args:
        profile: the table.
        rows: every criterion at every tier.
        judged: the tiers, contested or not.
        tier_strict: the tier that stands where provisional rows decide.
        records: how many records there are.
        question: the tier asked for, and whether provisional rows decide.
    """

    def tier_by(reading: Reading) -> int:
        return attained(tiers(profile, rows, reading, records=records, strict=question.strict))

    tier, table, bounded = attained(judged), tier_by("table"), tier_by("bounded")
    return Verdict(
        tier=tier,
        tier_strict=tier_strict,
        required_tier=question.required_tier,
        status=judged[str(question.required_tier)].status,
        decides=profile.reading,
        table=Attained(tier=table),
        bounded=Attained(tier=bounded),
        binding=tuple(row.id for row in next_rows(profile, rows, tier, strict=question.strict)),
    )


def next_rows(profile: Profile, rows: Iterable[Row], tier: int, *, strict: bool) -> tuple[Row, ...]:
    """Return the deciding rows of the tier above `tier` that are not met, the worst first."""
    rows = tuple(rows)
    out = left_out(profile, rows, tier + 1)
    open_rows = [
        (_WORST_FIRST[status], _relative(row), row)
        for row in rows
        if row.tier == tier + 1 and row.id not in out and (strict or not row.provisional)
        if (status := _deciding(row, profile.reading, strict=strict)) in _WORST_FIRST and status is not None
    ]
    return tuple(row for *_, row in sorted(open_rows, key=lambda item: item[:2]))


def _relative(row: Row) -> float:
    """Return the margin against the threshold's size, so that rows of different units can be ordered."""
    return 0.0 if row.margin is None else row.margin / (abs(float(row.threshold or 0)) or 1.0)
