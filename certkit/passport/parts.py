"""Whether the bundles of an accumulated passport are the parts of its whole, as far as the statement tells.

Their integers must add up, their times must allow the order they stand in, and the tier of each must be one
that its own successes carry. What else each bundle gives alone is told by a replay.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.passport.statement import BundleClaim, Dates, Predicate, RowAtTier

    Key = tuple[datetime, datetime, str]

NOMINAL: Final = "nominal"
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_DATE: Final = len("2026-01-31")
_MICRO: Final = 10**6


def disagreements(predicate: Predicate) -> Iterator[str]:
    """Yield how the bundles of an accumulation are not the parts of the whole; nothing of a single bundle."""
    evidence, parts = predicate.evidence, predicate.evidence.bundles
    if parts is None:
        return
    from certkit.evidence.bundle.identity import accumulation_digest  # noqa: PLC0415 - most rest on one bundle

    digests = [part.digest for part in parts]
    if len(set(digests)) != len(digests):
        yield "a bundle is counted twice"
    if evidence.digest != accumulation_digest(digests):
        yield "its evidence is not the accumulation of the bundles that it lists"
    for name in ("records", "nominal_runs", "fault_runs"):
        if sum(getattr(part, name) for part in parts) != getattr(evidence, name):
            yield f"the {name} of its bundles do not add up to its {name}"
    for number, part in enumerate(parts, 1):
        yield from _alone(number, part)
        yield from _tiers(number, part, predicate)
    yield from _by_domain(predicate)
    yield from _dates(predicate)
    yield from _order(parts)


def in_order(dates: Dates) -> bool:
    """Tell whether the first and the last run are both there or neither is, the first not after the last."""
    if dates.first_run is None or dates.last_run is None:
        return dates.first_run is dates.last_run
    return dates.first_run <= dates.last_run


def _alone(number: int, part: BundleClaim) -> Iterator[str]:
    rows = part.by_domain.values()
    inner = (sum(row.successes for row in rows), sum(row.n for row in rows))
    if inner != (part.successes, part.fault_runs) or part.nominal_runs + part.fault_runs > part.records:
        yield f"the counts of bundle {number} do not agree"
    if any(row.successes > row.n for row in rows):
        yield f"bundle {number} has more successes than runs"
    if any(row.n == 0 for row in rows):
        yield f"bundle {number} names a domain in which it has no runs under faults"
    if not in_order(part.dates):
        yield f"the times of the first and last run of bundle {number} do not agree"


def _tiers(number: int, part: BundleClaim, predicate: Predicate) -> Iterator[str]:
    """Yield the tiers of a bundle that no row speaks of, or that its own successes do not carry."""
    judged = {0, *(int(tier) for row in predicate.criteria for tier in row.tiers)}
    for reading in ("table", "bounded"):
        if (tier := getattr(part, reading).tier) not in judged:
            yield f"bundle {number} attains Tier {tier} under the {reading} reading, of which no row speaks"
    attained = max(part.table.tier, part.bounded.tier)  # what is met by bounds is met by its value
    for criterion in predicate.criteria:
        for tier, row in criterion.tiers.items():
            asked = criterion.metric == "r_op" and int(tier) <= attained
            if asked and not _reaches(part.successes, part.fault_runs, row):
                yield (
                    f"bundle {number} attains Tier {attained} with {part.successes:,} successes in"
                    f" {part.fault_runs:,} runs, and {criterion.id} asks for {row.threshold}"
                )


def _reaches(successes: int, runs: int, row: RowAtTier) -> bool:
    """Tell whether a share of successes may be what a row asks for with its six digits."""
    if isinstance(row.threshold, bool) or row.operator not in {">", ">="}:
        return True  # no profile asks so of a share
    low = 2 * int(row.threshold.replace(".", "")) - 1  # in halves of the last digit, less one
    return runs > 0 and 2 * _MICRO * successes >= low * runs


def _by_domain(predicate: Predicate) -> Iterator[str]:
    """Yield the domains whose successes or runs, over all bundles, are not those of the whole."""
    whole: dict[str | None, tuple[int, int]] = {}
    for cell in predicate.profile_of_reliability.cells:
        if cell.condition != NOMINAL:
            for name in (None, cell.domain):
                y, n = whole.get(name, (0, 0))
                whole[name] = (y + cell.successes, n + cell.runs)
    parts: dict[str | None, tuple[int, int]] = {}
    for part in predicate.evidence.bundles or ():
        counts: dict[str | None, tuple[int, int]] = {None: (part.successes, part.fault_runs)}
        counts.update({name: (row.successes, row.n) for name, row in part.by_domain.items()})
        for domain, (successes, runs) in counts.items():
            y, n = parts.get(domain, (0, 0))
            parts[domain] = (y + successes, n + runs)
    apart = [
        str(name or "all domains")
        for name in sorted(parts.keys() | whole.keys(), key=str)
        if parts.get(name, (0, 0)) != whole.get(name, (0, 0))
    ]
    if apart:
        yield f"the successes of its bundles do not add up in {', '.join(apart)}"


def _dates(predicate: Predicate) -> Iterator[str]:
    dates = [part.dates for part in predicate.evidence.bundles or ()]
    first = min((one.first_run for one in dates if one.first_run is not None), default=None)
    last = max((one.last_run for one in dates if one.last_run is not None), default=None)
    if (predicate.scope.dates.first_run, predicate.scope.dates.last_run) != (first, last):
        yield "the runs of its bundles were not made in the time that its scope states"


def _order(parts: Sequence[BundleClaim]) -> Iterator[str]:
    """Yield the first bundle that cannot stand where it does: they are in the order of time, then of digests.

    A bundle's time is that of its runs where every run has one, which the statement does not tell, and else
    the declared one; without either it stands last. So only what no such choice allows is refused.
    """
    before: Key | None = None
    for number, part in enumerate(parts, 1):
        after = [key for key in sorted(_keys(part)) if before is None or key > before]
        if not after:
            yield f"bundle {number} does not stand in the order of time"
            return
        before = after[0]


def _keys(part: BundleClaim) -> Iterator[Key]:
    """Yield the places in the order that a bundle may take."""
    dates = part.dates
    if dates.first_run is not None and dates.last_run is not None:
        yield dates.first_run, dates.last_run, part.digest
    start, end = _moment(dates.declared_from), _moment(dates.declared_to, whole_day=True)
    if start is None or end is None or end < start:
        yield _NEVER, _NEVER, part.digest
    else:
        yield start, end, part.digest


def _moment(text: str | None, *, whole_day: bool = False) -> datetime | None:
    """Return a declared time, None where the calendar has no such; a date at the end means the whole day."""
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    if found is None or text is None:
        return None
    if whole_day and len(text) == _DATE:
        found += timedelta(days=1, microseconds=-1)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
