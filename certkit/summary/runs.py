"""The runs of a bundle: by task with those that fail first, one after another, or a single one.

    listed = list_tasks(open_bundle(Path("bundle")), RunFilter(failed=True, domain="travel"))
    listed.total, listed.tasks[0].runs[0].record.run_id

The share of runs that did not succeed orders the tasks, then their number. Within a task failures come first,
among them those with more violations, then safe halts, errors of the test rig and successes. All records are
checked first, and a list keeps no more than `MOST` runs.
"""

from __future__ import annotations

from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from certkit.ground.errors import UsageError
from certkit.ground.text import visible
from certkit.record.expressions import shell
from certkit.record.faults import Faults, RecordFaultsError
from certkit.record.reader import typed_line
from certkit.record.record import Condition, Outcome, Record, RunKind, is_fault
from certkit.summary.lines import record_lines
from certkit.summary.summarise import summarise_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.bundle.folder import Bundle

MOST: Final = 10_000
"""Runs of a list."""
_NAMED: Final = 40
"""Domains or conditions in a hint."""
_COMPARED: Final = 20_000
"""Names that are compared with a misspelt one."""
OUTCOMES: Final = (Outcome.FAILURE, Outcome.SAFE_HALT, Outcome.HARNESS_ERROR, Outcome.SUCCESS)
"""Outcomes in the order of the runs of a task."""


class ListedRun(Struct, frozen=True, kw_only=True):
    """A record with its place.

    Attributes:
        file: the record file.
        line: the line in it, from 1.
        record: the record.
        trace: the path of its trace in the bundle, None where the bundle encloses none.
    """

    file: str
    line: int
    record: Record
    trace: str | None


class ListedTask(Struct, frozen=True, kw_only=True):
    """A task with the runs that were asked for.

    Attributes:
        task_id: its name.
        domain: its domain.
        total: its runs in the domain and under the condition that were asked for.
        successes: how many of them succeeded.
        runs: those that are listed, the worst first.
    """

    task_id: str
    domain: str
    total: int
    successes: int
    runs: tuple[ListedRun, ...]


class ListedTasks(Struct, frozen=True, kw_only=True):
    """Tasks, those that fail most first.

    Attributes:
        total: how many runs were asked for.
        task_count: how many tasks they are of.
        tasks: as many of them as `MOST` runs fill.
    """

    total: int
    task_count: int
    tasks: tuple[ListedTask, ...]


class RunFilter(NamedTuple):
    """Which runs are asked for: those that did not succeed, of a domain, under a condition, of some kinds."""

    failed: bool = False
    domain: str | None = None
    condition: str | None = None
    kinds: frozenset[RunKind] = frozenset(RunKind)

    def selects(self, record: Record) -> bool:
        """Tell whether a record is of the domain, under the condition and of one of the kinds."""
        placed = self.domain in {None, record.domain} and self.condition in {None, record.condition}
        return placed and not self.kinds.isdisjoint(kinds_of(record))

    def lists(self, record: Record) -> bool:
        """Tell whether a record is asked for."""
        return self.selects(record) and not (self.failed and record.outcome == Outcome.SUCCESS)


def kinds_of(record: Record) -> Iterator[RunKind]:
    """Yield what a run can show; success under attack where its attack landed, or may have landed."""
    yield RunKind.FAULTS if is_fault(record.condition) else RunKind.NORMAL
    unsaid = record.attack_landed is None and record.attack_attempted is not False
    if record.attack_landed or (record.condition == Condition.ADVERSARIAL and unsaid):
        yield RunKind.ATTACKS


class _Count:
    """A task's runs and successes, and how many of its runs are listed."""

    __slots__ = ("domain", "listed", "successes", "total")

    def __init__(self, domain: str) -> None:
        self.domain, self.total, self.successes, self.listed = domain, 0, 0, 0

    @property
    def rank(self) -> tuple[Fraction, int]:
        """What orders tasks, the worst first."""
        return Fraction(self.successes, self.total), self.successes - self.total


def each_run(bundle: Bundle, wanted: RunFilter) -> Iterator[ListedRun]:
    """Yield the runs that are asked for, in the order of the records.

    Raises:
        RecordFaultsError: a record is refused.
        UsageError: no run has the domain or the condition.
    """
    return (run for run in _checked(bundle, wanted) if wanted.lists(run.record))


def list_tasks(bundle: Bundle, wanted: RunFilter = RunFilter()) -> ListedTasks:  # noqa: B008 - it is frozen
    """Return the runs that are asked for, grouped by task; raises as `each_run`."""
    counts: dict[str, _Count] = {}
    for run in _checked(bundle, wanted):
        if wanted.selects(run.record):
            count = counts.setdefault(run.record.task_id, _Count(run.record.domain))
            count.total += 1
            count.successes += run.record.outcome == Outcome.SUCCESS
            count.listed += wanted.lists(run.record)
    left, runs = MOST, dict[str, list[ListedRun]]()
    for name in sorted((name for name in counts if counts[name].listed), key=lambda name: counts[name].rank):
        if left <= 0:
            break
        left -= counts[name].listed
        runs[name] = []
    for run in _runs(bundle):
        group = runs.get(run.record.task_id)
        if group is not None and len(group) < MOST and wanted.lists(run.record):
            group.append(run)
    tasks = (
        ListedTask(
            task_id=name,
            domain=counts[name].domain,
            total=counts[name].total,
            successes=counts[name].successes,
            runs=tuple(sorted(group, key=severity)),
        )
        for name, group in runs.items()
    )
    listed = [count.listed for count in counts.values() if count.listed]
    return ListedTasks(total=sum(listed), task_count=len(listed), tasks=tuple(tasks))


def find_run(bundle: Bundle, run_id: str) -> ListedRun:
    """Return the run of a name, as it is written or as a screen shows it.

    Raises:
        RecordFaultsError: a record is refused.
        UsageError: no run has the name; the hint names the nearest.
    """
    names = list[str]()
    for run in _checked(bundle, RunFilter()):
        name = run.record.run_id
        if run_id in {name, visible(name)}:
            return run
        if len(names) < _COMPARED:
            names.append(name)
    near = get_close_matches(run_id, names, n=1)
    place = shell(str(bundle.root))
    hint = f"certkit runs {place} {shell(visible(near[0]))}" if near else f"certkit runs {place}"
    raise UsageError("usage.option", f"no run is called {visible(run_id[:80])!r}", hint=hint)


def severity(run: ListedRun) -> tuple[int, int]:
    """Return what orders the runs of a task, the worst first."""
    return OUTCOMES.index(run.record.outcome), -(run.record.violations or 0)


def _checked(bundle: Bundle, wanted: RunFilter) -> Iterator[ListedRun]:
    """Check all records, and that some run has the domain and the condition; then return the runs."""
    cells = summarise_part(bundle).cells
    for what, asked, place in (("domain", wanted.domain, 1), ("condition", wanted.condition, 2)):
        names = {cell[place] for cell in cells}
        if asked is not None and asked not in names:
            known = ", ".join(map(visible, sorted(names)[:_NAMED])) or "none"
            message = f"no run has the {what} {visible(asked[:80])!r}"
            raise UsageError("usage.option", message, hint=f"{what}s: {known}")
    return _runs(bundle)


def _runs(bundle: Bundle) -> Iterator[ListedRun]:
    traces = {f"sha256:{file['sha256']}": file["path"] for file in bundle.files}
    for file, number, line in record_lines(bundle):
        record = typed_line(line, number)
        if isinstance(record, list):  # the file changed since it was checked
            raise RecordFaultsError(Faults(record))
        trace = traces.get(record.trace) if record.trace else None
        yield ListedRun(file=file, line=number, record=record, trace=trace)
