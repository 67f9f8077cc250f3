"""The runs behind a number, the worst first: which failed, where, and under which fault.

    listed = worst_runs(open_bundle(Path("bundle")), failed=True, domain="travel")
    listed.total, listed.runs[0].record.run_id

Failures come first, among them those with more violations, then safe halts, successes and errors of the test
rig; equals in the order of the record files. All records are checked first, and no more than `MOST` are kept.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.ground.errors import UsageError
from certkit.ground.text import visible
from certkit.record.faults import Faults, RecordFaultsError
from certkit.record.reader import typed_line
from certkit.record.record import Outcome, Record
from certkit.summary.lines import record_lines
from certkit.summary.summarise import summarise_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.bundle.folder import Bundle

MOST: Final = 10_000
_NAMED: Final = 40
_ORDER: Final = (Outcome.FAILURE, Outcome.SAFE_HALT, Outcome.SUCCESS, Outcome.HARNESS_ERROR)


class ListedRun(Struct, frozen=True, kw_only=True):
    """A record with its place, and the path of its trace in the bundle, None where it names none."""

    file: str
    line: int
    record: Record
    trace: str | None


class ListedRuns(Struct, frozen=True, kw_only=True):
    """The worst of `total` runs that were asked for."""

    total: int
    runs: tuple[ListedRun, ...]


def worst_runs(
    bundle: Bundle, *, failed: bool = False, domain: str | None = None, condition: str | None = None
) -> ListedRuns:
    """Return the runs of a domain and a condition (None: any); `failed` leaves successes out.

    Raises `RecordFaultsError` where any record is refused, and `UsageError` where no run
    has the domain or condition.
    """
    summarise_part(bundle)
    total, domains, conditions = 0, set[str](), set[str]()

    def chosen() -> Iterator[ListedRun]:
        nonlocal total
        traces = {f"sha256:{file['sha256']}": file["path"] for file in bundle.files}
        for file, number, line in record_lines(bundle):
            record = typed_line(line, number)
            if isinstance(record, list):  # the file changed since it was checked
                raise RecordFaultsError(Faults(record))
            domains.add(record.domain)
            conditions.add(record.condition)
            if failed and record.outcome == Outcome.SUCCESS:
                continue
            if domain in {None, record.domain} and condition in {None, record.condition}:
                total += 1
                trace = traces.get(record.trace) if record.trace else None
                yield ListedRun(file=file, line=number, record=record, trace=trace)

    runs = nsmallest(
        MOST, chosen(), key=lambda run: (_ORDER.index(run.record.outcome), -(run.record.violations or 0))
    )
    for what, asked, there in (("domain", domain, domains), ("condition", condition, conditions)):
        if asked is not None and asked not in there:
            names = ", ".join(map(visible, sorted(there)[:_NAMED])) or "none"
            raise UsageError(
                "usage.option", f"no run has the {what} {asked[:80]!r}", hint=f"{what}s: {names}"
            )
    return ListedRuns(total=total, runs=tuple(runs))
