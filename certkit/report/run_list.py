"""The runs that a page holds: which of a bundle fit it, in which order, and the transcripts that fit.

    runs = list_runs(open_bundle(Path("bundle"), defer_records=True))
    runs.data["runs"][0], runs.left_out

A page holds up to `MOST_LISTED` runs. Of more it holds all that did not succeed, as far as they fit, and a
sample of the successes. Transcripts are read until `TEXT_BYTES` are full: failures come before successes,
and of either one run of each task after the other. The order of the list is that of ``certkit runs``.

Every text is made visible and cut here. The same bundle gives the same data.
"""

from __future__ import annotations

import heapq
from collections import Counter
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from certkit.ground import canonical
from certkit.ground.text import visible
from certkit.record.record import Outcome
from certkit.record.trace import SUFFIX
from certkit.summary.runs import OUTCOMES, RunFilter, each_run, severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.bundle.folder import Bundle
    from certkit.record.transcript import SpokenTurn
    from certkit.summary.runs import ListedRun

MOST_LISTED: Final = 2_000
"""Runs up to which a page lists all of a bundle."""
SAMPLE: Final = 500
"""Successes that a page lists at least, where it lists not all of them."""
MOST_FAILED: Final = 100_000
"""Runs that did not succeed which a page lists at most."""
MOST_OPENED: Final = 2_000
"""Runs of which a page holds the record and the transcript."""
ROW_BYTES: Final = 6_000_000
"""Bytes of all rows of the list."""
TEXT_BYTES: Final = 3_300_000
"""Bytes of all records and transcripts."""
_NAME: Final = 160
"""Characters of a name."""
_TURNS: Final = 60
"""Turns of a transcript, half of them from its end."""
_TURN: Final = 8_000
"""Characters of a turn."""
_LONGEST: Final = 500_000
"""Bytes of a transcript."""
_IN_ROWS: Final = {
    "run_id",
    "domain",
    "task_id",
    "condition",
    "outcome",
    "steps_actual",
    "violations",
    "trace",
}
"""Fields of a record that its row shows, or its place."""


class PageRuns(Struct, frozen=True, kw_only=True):
    """The runs of a page.

    Attributes:
        data: what the script of the page reads: see ``templates/view/script.js``.
        names: domains and conditions as the records have them, in the order of the data.
        total: how many runs the bundle holds.
        listed: how many of them the page lists.
        transcripts: of how many the page holds the transcript.
        left_out: what the page leaves out, a sentence each.
    """

    data: dict[str, Any]
    names: dict[str, tuple[str, ...]]
    total: int
    listed: int
    transcripts: int
    left_out: tuple[str, ...]


class _Drawn:
    """Runs, or of more than `most` those whose ids have the smallest hashes."""

    def __init__(self, most: int) -> None:
        self.most, self.total = most, 0
        self._runs: list[tuple[int, int, ListedRun]] = []

    def add(self, run: ListedRun) -> None:
        self.total += 1
        digest = sha256(run.record.run_id.encode()).digest()[:8]
        item = (-int.from_bytes(digest), self.total, run)
        (heapq.heappush if len(self._runs) < self.most else heapq.heappushpop)(self._runs, item)

    def first(self, number: int) -> list[ListedRun]:
        """Return the runs with the smallest hashes, these first."""
        return [run for _, _, run in heapq.nlargest(number, self._runs)]


class _Table(dict[str, int]):
    """Texts that are written once, by their place in the table; `size` is their bytes."""

    size = 0

    def place(self, text: str) -> int:
        if text not in self:
            self.size += len(page_json(text))
            self[text] = len(self)
        return self[text]


def page_json(value: Any) -> bytes:
    """Return a value as JSON that holds no ``<``, so that no tag and no comment begins in it."""
    return canonical.line(value).replace(b"<", b"\\u003c")


def list_runs(bundle: Bundle) -> PageRuns:
    """Return the runs of a page.

    Args:
        bundle: the bundle; its record files may still have to be hashed.

    Raises:
        RecordFaultsError: a record is refused.
        InputError: a trace cannot be read.
    """
    tasks: dict[str, list[int]] = {}
    failed, passed = _Drawn(MOST_FAILED), _Drawn(MOST_LISTED)
    for run in each_run(bundle, RunFilter()):
        success = run.record.outcome == Outcome.SUCCESS
        counts = tasks.setdefault(run.record.task_id, [0, 0])
        counts[0] += 1
        counts[1] += success
        (passed if success else failed).add(run)
    total = passed.total + failed.total
    room = MOST_LISTED if total <= MOST_LISTED else max(SAMPLE, MOST_LISTED - failed.total)
    tables = {name: _Table() for name in ("tasks", "domains", "conditions")}
    rows = _rows([*passed.first(room), *failed.first(MOST_FAILED)], tables)
    ranks = {
        name: (Fraction(won, runs), won - runs, place)
        for place, (name, (runs, won)) in enumerate(tasks.items())
    }

    def worst_first(row: tuple[ListedRun, list[Any]]) -> tuple[Any, ...]:
        run, _ = row
        return ranks[run.record.task_id], severity(run), run.file, run.line

    rows.sort(key=worst_first)
    runs = [run for run, _ in rows]
    texts = _Table()
    opened = _opened(bundle, runs, texts)
    said = sum("turns" in item for item in opened.values())
    traces = sum(run.trace is not None for run in runs)
    data = {
        "domains": [_name(name) for name in tables["domains"]],
        "conditions": [_name(name) for name in tables["conditions"]],
        "outcomes": OUTCOMES,
        "tasks": [[_name(name), *tasks[name]] for name in tables["tasks"]],
        "runs": [row for _, row in rows],
        "opened": {str(place): opened[place] for place in sorted(opened)},
        "texts": list(texts),
        "traces": traces > 0,
    }
    listed = Counter(run.record.outcome == Outcome.SUCCESS for run in runs)
    left_out = (
        *_unlisted((listed[False], failed.total), (listed[True], passed.total)),
        *_unopened(len(runs), len(opened), said, traces),
    )
    return PageRuns(
        data=data,
        names={name: tuple(table) for name, table in tables.items()},
        total=total,
        listed=len(runs),
        transcripts=said,
        left_out=left_out,
    )


def _rows(runs: Iterable[ListedRun], tables: dict[str, _Table]) -> list[tuple[ListedRun, list[Any]]]:
    """Return as many runs as `ROW_BYTES` hold, each with its row."""
    rows, size = [], 0
    for run in runs:
        record = run.record
        row = [
            _name(record.run_id),
            tables["tasks"].place(record.task_id),
            tables["domains"].place(record.domain),
            tables["conditions"].place(record.condition),
            OUTCOMES.index(record.outcome),
            record.violations,
            record.steps_actual,
        ]
        size += len(page_json(row))
        if size + sum(table.size for table in tables.values()) > ROW_BYTES:
            break
        rows.append((run, row))
    return rows


def _opened(bundle: Bundle, runs: list[ListedRun], texts: _Table) -> dict[int, dict[str, Any]]:
    """Return records and transcripts by the places of their runs, as many as `TEXT_BYTES` hold."""
    files: dict[tuple[bool, str], dict[str, int]] = {}
    for place in _first_opened(runs):
        run = runs[place]
        path = run.trace if run.trace and run.trace.endswith(SUFFIX) else ""
        group = files.setdefault((run.record.outcome == Outcome.SUCCESS, path), {})
        group[run.record.run_id] = place
    opened: dict[int, dict[str, Any]] = {}
    size = 0
    for (_, path), places in files.items():
        conversations = bundle.conversations(path, places) if path else {}
        for name, place in places.items():
            item: dict[str, Any] = {"fields": [*_fields(runs[place])]}
            said = _transcript(conversations[name]) if name in conversations else {}
            if len(page_json(said)) <= _LONGEST:
                item |= said
            new = {text for _, text, _ in item.get("turns", ())} - texts.keys()
            size += len(page_json(item["fields"])) + 30 * (1 + len(item.get("turns", ())))
            if size + texts.size + sum(len(page_json(text)) for text in new) > TEXT_BYTES:
                return opened
            item |= (
                {"turns": [[role, texts.place(text), full] for role, text, full in said["turns"]]}
                if "turns" in item
                else {}
            )
            opened[place] = item
    return opened


def _first_opened(runs: list[ListedRun]) -> list[int]:
    """Return the places of the runs to open: failures first, and one run of each task after the other."""
    earlier = Counter[tuple[bool, str]]()
    keys = []
    for place, run in enumerate(runs):
        group = run.record.outcome == Outcome.SUCCESS, run.record.task_id
        keys.append((group[0], earlier[group], place))
        earlier[group] += 1
    return [place for _, _, place in heapq.nsmallest(MOST_OPENED, keys)]


def _fields(run: ListedRun) -> Iterator[tuple[str, str]]:
    """Yield what the record holds beside its row, and where it is."""
    for name, value in msgspec.to_builtins(run.record).items():
        if value is not None and name not in _IN_ROWS:
            yield name, str(value).lower() if isinstance(value, bool) else _name(str(value))
    yield "record", _name(f"{run.file}, line {run.line}")
    if run.trace:
        yield "trace", _name(run.trace)


def _transcript(turns: tuple[SpokenTurn, ...]) -> dict[str, Any]:
    """Return turns as role, text and, where it is cut, its full length; and how many are left out."""
    over = max(0, len(turns) - _TURNS)
    some = turns if not over else (*turns[: _TURNS // 2], *turns[-_TURNS // 2 :])
    said = [
        [_name(turn.role), _text(turn.text), len(turn.text) if len(turn.text) > _TURN else 0] for turn in some
    ]
    return {"turns": said} | ({"over": over, "before": _TURNS // 2} if over else {})


def _text(text: str) -> str:
    lines = text[:_TURN].replace("\t", "    ").split("\n")
    return "\n".join(visible(line.rstrip("\r")) for line in lines)


def _name(text: str) -> str:
    return visible(text if len(text) <= _NAME else f"{text[:_NAME]}… (cut; {len(text):,} characters)")


def _unlisted(failed: tuple[int, int], passed: tuple[int, int]) -> Iterator[str]:
    """Yield how many of the runs are listed, where not all are."""
    if failed[0] < failed[1] or passed[0] < passed[1]:
        groups = {"runs that did not succeed": failed, "that succeeded": passed}
        some = (
            f"{'all' if number == total else f'{number:,} of the'} {total:,} {what}"
            for what, (number, total) in groups.items()
            if total
        )
        yield f"This page lists {' and '.join(some)}, drawn by the hashes of their ids."


def _unopened(listed: int, opened: int, said: int, traces: int) -> Iterator[str]:
    """Yield of how many listed runs the page has records and transcripts, where not of all."""
    if not traces and listed:
        yield "The bundle encloses no traces, so there are no transcripts."
    elif said < traces:
        yield f"Transcripts in this page: {said:,} of {traces:,}, failures first."
    if opened < listed:
        yield f"Whole records in this page: {opened:,} of {listed:,}, failures first."
