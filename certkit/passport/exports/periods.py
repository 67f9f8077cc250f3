"""The bundles of an accumulated passport in words: when each was made, where, and what it shows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.passport.exports import words

if TYPE_CHECKING:
    from certkit.passport.statement import BundleClaim, Dates, Evidence


def periods(evidence: Evidence) -> list[str]:
    """Return a line for each bundle, in their order; none where the evidence is a single one."""
    return [f"{number}. {_line(part)}" for number, part in enumerate(evidence.bundles or (), 1)]


def _line(part: BundleClaim) -> str:
    domains = ", ".join(
        f"{name} {row.successes:,} of {row.n:,}" for name, row in sorted(part.by_domain.items())
    )
    faults = f"{part.successes:,} of {part.fault_runs:,} runs under faults"
    told = (
        _when(part.dates),
        f"succeeded in {faults} ({domains or 'no domain'})",
        f"{part.nominal_runs:,} nominal",
        f"{words.tier(part.table.tier)} by table reading, {words.tier(part.bounded.tier)} by bounded reading",
        words.short(part.digest),
    )
    return "; ".join(told)


def _when(dates: Dates) -> str:
    if dates.first_run is not None and dates.last_run is not None:
        return f"run from {words.utc(dates.first_run)} to {words.utc(dates.last_run)}"
    if dates.declared_from or dates.declared_to:
        return f"declared from {dates.declared_from or 'not stated'} to {dates.declared_to or 'not stated'}"
    return "time not stated"
