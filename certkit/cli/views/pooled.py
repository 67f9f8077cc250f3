"""Several bundles that were pooled, one line each, as people read them on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.cli import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.result import BundleResult


def show_bundles(bundles: Sequence[BundleResult]) -> None:
    """Print each bundle alone: period, records, successes under faults, and the tier of each reading."""
    output.say()
    output.say(f"Pooled from {len(bundles)} bundles, each alone:")
    output.say(f"  {'':>3} {'period':<24}{'records':>9}{'under faults':>17}{'rate':>7}  {'table':<7}bounded")
    for number, one in enumerate(bundles, 1):
        rate = f"{one.successes / one.fault_runs:.3f}" if one.fault_runs else "-"
        counts = f"{one.successes:,} of {one.fault_runs:,}"
        output.say(
            f"  {number:>3} {period(one):<24}{one.records:>9,}{counts:>17}{rate:>7}"
            f"  {tier(one.table):<7}{tier(one.bounded)}"
        )
        output.say(f"      {one.digest}")


def period(one: BundleResult) -> str:
    """Return the declared period of a bundle, else that of its start times, by days."""
    from certkit.assessment.result import moment  # noqa: PLC0415 - drawing only

    start, end = one.declared_from, one.declared_to
    if start is None and end is None:
        times = (moment(one.first_run), moment(one.last_run))
        start, end = (None if time is None else time.isoformat() for time in times)
    if start is None and end is None:
        return "not stated"
    return f"{(start or '…')[:10]} to {(end or '…')[:10]}"


def tier(number: int) -> str:
    """Return a tier as a cell shows it."""
    return f"Tier {number}" if number else "none"
