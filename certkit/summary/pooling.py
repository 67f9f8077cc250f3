"""Several bundles of one agent: the sum of their partial sums, finished once.

    pooled = accumulate([open_bundle(path) for path in paths])
    pooled.summary, pooled.facts             # as for a single bundle
    pooled.parts[0].facts.digest             # each bundle alone, in order of time

An agent is evaluated in several contexts and periods, and each evaluation gives a sealed bundle. Tasks and
clusters of the same name in two bundles are the same. Bundles of different agents, or measured or judged in
different ways, and repeated records are refused.

Bundles are ordered by the median of their start times (else the middle of their period), then by digest,
never by the order of the arguments, so that nobody can choose which runs come last. `sequence` counts within
a bundle: runs are ordered bundle after bundle. Where periods overlap, runs are ordered by their start times.

What manifests state differently is not stated of all. Of an attested measurement the lowest value counts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from certkit.bundle.facts import Facts
from certkit.bundle.folder import Bundle
from certkit.bundle.identity import MAX_BUNDLES, accumulation_digest
from certkit.bundle.manifest import Attested, Manifest, Period, Protocol
from certkit.bundle.manifest_facts import facts_of
from certkit.ground import canonical
from certkit.ground.base import Authored
from certkit.ground.errors import InputError, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.record.columns import ABSENT
from certkit.record.faults import RecordFaultsError
from certkit.summary.finish import Unordered, finish
from certkit.summary.lines import record_lines, refuse_repetitions
from certkit.summary.ratings import read_ratings
from certkit.summary.reduce import Partial, merge
from certkit.summary.summarise import finish_bundle, joined_facts, summarise_part
from certkit.summary.summary import MOST_TASKS, PlannedRuns, Summary, Traces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray


CLASS: Final = ("methodology", "success", "success_rule", "judge", "cascade_definition", "memory_observable")
"""Fields of the protocol that must be equal in all bundles: the protocol class."""
_NEVER: Final = 2**62
_SAME_IDS: Final = (
    "leave one bundle out if they share runs; rows without a run_id are named by file and line: if two logs"
    " have the same file name, rename one and import it again"
)

Span = tuple[int, int]
"""First and last moment of a bundle's runs, microseconds since 1970."""


class PooledPart(Struct, frozen=True, kw_only=True):
    """A bundle among several, summarised alone.

    Attributes:
        facts: of the bundle.
        summary: of its records alone.
    """

    facts: Facts
    summary: Summary


class Pooled(Struct, frozen=True, kw_only=True):
    """Several bundles, judged together.

    Attributes:
        facts: what all of them state.
        summary: of all their records.
        parts: each alone; in order of time where the time of every part is known.
    """

    facts: Facts
    summary: Summary
    parts: tuple[PooledPart, ...]


class _Read(Struct, frozen=True, kw_only=True, eq=False):
    """A bundle that was read; `middle` is the median of its start times or the middle of its period."""

    bundle: Bundle
    partial: Partial
    part: PooledPart
    span: Span | None
    middle: int


def accumulate(
    bundles: Sequence[Bundle],
    *,
    core_conditions: Iterable[str] = (),
    most_tasks: int | None = MOST_TASKS,
    salt: bytes | None = None,
    progress: Progress = SILENT,
) -> Pooled:
    """Return two or more bundles pooled, every record read and validated.

    Args:
        bundles: opened bundles of one agent, in any order.
        core_conditions: `x_` conditions that count as core evidence.
        most_tasks: how many tasks get rows, those with the smallest tags; None for all.
        salt: of the tags, in place of those in the manifests.
        progress: told the bytes that were read.

    Raises:
        InputError: ``accumulation.agent``, ``accumulation.protocol`` or ``accumulation.repeated``, and the
            errors of `summarise`.
        UsageError: there are fewer than two bundles or more than `MAX_BUNDLES`.
    """
    if not 1 < len(bundles) <= MAX_BUNDLES:
        raise UsageError("usage.option", f"2 to {MAX_BUNDLES} bundles can be pooled, not {len(bundles)}")
    _refuse_others(bundles)
    _refuse_copies(bundles)
    core = tuple(core_conditions)
    read = [_read(bundle, core, most_tasks, salt, progress) for bundle in bundles]
    read.sort(key=lambda item: (item.middle, item.part.facts.digest))
    sequences, unordered = _sequences(read)
    pool = merge(
        *(
            replace(item.partial, runs=item.partial.runs | {"sequence": (sequence,)})
            for item, sequence in zip(read, sequences, strict=True)
        )
    )
    # Within each bundle no sequence repeats; here they count from bundle to bundle.
    try:
        refuse_repetitions(_lines(read), pool, np.empty(0, np.int64))
    except RecordFaultsError as error:
        if any(fault.code == "record.duplicate-run-id" for fault in error.faults):
            error.hint = _SAME_IDS
        raise
    parts = tuple(item.part for item in read)
    manifest = _manifest([item.bundle.manifest for item in read])
    summary = finish(
        pool,
        memory_observable=manifest.protocol.memory_observable is True,
        core_conditions=core,
        most_tasks=most_tasks,
        salt=manifest.protocol.salt if salt is None else salt,
        traces=_all_traces([part.summary.traces for part in parts]),
        plan=_all_plans([part.summary.plan for part in parts]),
        ratings=read_ratings(*(item.bundle for item in read)),
        unordered=unordered,
        backwards=sum(part.summary.times.backwards for part in parts),
    )
    return Pooled(
        facts=facts_of(
            manifest,
            agent_digest=parts[0].facts.agent.digest,
            digest=accumulation_digest([part.facts.digest for part in parts]),
            sealed=all(part.facts.sealed for part in parts),
            bundles=tuple(part.facts.digest for part in parts),
            plan=plans.pop() if len(plans := {part.facts.protocol.plan for part in parts}) == 1 else None,
        ),
        summary=summary,
        parts=parts,
    )


def _all_traces(traces: Sequence[Traces]) -> Traces:
    return Traces(**{name: sum(getattr(item, name) for item in traces) for name in Traces.__struct_fields__})


def _all_plans(plans: Sequence[PlannedRuns | UnsetType]) -> PlannedRuns | None:
    """Return the sums over the bundles that enclose a plan, None where none does."""
    if not (enclosed := [plan for plan in plans if plan is not UNSET]):
        return None
    names = PlannedRuns.__struct_fields__
    return PlannedRuns(**{name: sum(getattr(plan, name) for plan in enclosed) for name in names})


def _lines(read: Sequence[_Read]) -> Iterator[tuple[str, int, bytes]]:
    for item in read:
        for path, number, line in record_lines(item.bundle):
            yield f"{item.bundle.root}/{path}", number, line


def _read(
    bundle: Bundle, core: tuple[str, ...], most_tasks: int | None, salt: bytes | None, progress: Progress
) -> _Read:
    salt = bundle.manifest.protocol.salt if salt is None else salt
    try:
        partial = summarise_part(bundle, salt=salt, progress=progress)
        summary = finish_bundle(bundle, partial, core, most_tasks, salt)
    except InputError as error:
        error.where = f"{bundle.root}/{error.where}" if error.where else str(bundle.root)
        raise
    span, started = _span(summary, bundle.manifest), partial.column("started")
    timed = len(started) > 0 and bool((started != ABSENT).all())
    return _Read(
        bundle=bundle,
        partial=partial,
        part=PooledPart(facts=joined_facts(bundle.facts, summary), summary=summary),
        span=span,
        middle=_NEVER if span is None else int(np.median(started)) if timed else sum(span) // 2,
    )


def _span(summary: Summary, manifest: Manifest) -> Span | None:
    """Return when the runs were made: by their start times where all have one, else by the manifest."""
    times = summary.times
    if times.first is not None and times.last is not None and times.timed == summary.records:
        return times.first, times.last
    period = manifest.protocol.period
    start, end = period.span if period else (None, None)
    return None if start is None or end is None or end < start else (start, end)


def _refuse_others(bundles: Sequence[Bundle]) -> None:
    """Raise `InputError` unless all bundles are about the same agent, measured and judged in the same way."""
    first = bundles[0]
    for bundle in bundles[1:]:
        if bundle.facts.agent.digest != first.facts.agent.digest:
            raise InputError(
                "accumulation.agent",
                f"about {_named(bundle)}, and {first.root} is about {_named(first)}",
                where=str(bundle.root),
                hint="only evidence of the same agent in the same version can be pooled;"
                " to compare two: certkit drift",
            )
        for field, expected, actual in _differences(first.manifest.protocol, bundle.manifest.protocol):
            raise InputError(
                "accumulation.protocol",
                f"protocol.{field} is {actual}, and in {first.root} it is {expected}",
                where=str(bundle.root),
                hint="assess these bundles apart: their runs were made or judged in different ways",
            )


def _named(bundle: Bundle) -> str:
    agent = bundle.manifest.agent
    return f"{agent.name} {agent.version} ({bundle.facts.agent.digest})"


def _refuse_copies(bundles: Sequence[Bundle]) -> None:
    """Raise `InputError` where a record file with content occurs twice."""
    files: dict[str, str] = {}
    for bundle in bundles:
        for file in bundle.files:
            place = f"{bundle.root}/{file['path']}"
            if file["path"].startswith("records/") and file["size"]:
                earlier = files.setdefault(file["sha256"], place)
                if earlier != place:
                    raise InputError("accumulation.repeated", f"the same records as {earlier}", where=place)


def _sequences(read: Sequence[_Read]) -> tuple[list[NDArray[np.int64]], Unordered | None]:
    """Return the place in time of the runs of every bundle, or why there is no order."""
    sequences = [item.partial.column("sequence") for item in read]
    unknown = sum(item.span is None for item in read)
    if unknown:
        return sequences, Unordered("bundle-times-unknown", {"unknown": unknown, "bundles": len(read)})
    if not _one_after_another(read):
        if all((item.partial.column("started") != ABSENT).all() for item in read):
            return [np.full(item.partial.records, ABSENT, np.int64) for item in read], None
        return sequences, Unordered("bundles-overlap", {"bundles": len(read)})
    return _one_sequence(read, sequences)


def _one_after_another(read: Sequence[_Read]) -> bool:
    return all(
        earlier.span is not None and later.span is not None and earlier.span[1] < later.span[0]
        for earlier, later in pairwise(read)
    )


def _one_sequence(
    read: Sequence[_Read], sequences: list[NDArray[np.int64]]
) -> tuple[list[NDArray[np.int64]], Unordered | None]:
    columns, following = [], 0
    for place, item in enumerate(read):
        order = item.part.summary.order
        if order.by is None and order.runs:
            reason = Unordered(f"bundle-{order.reason}", {**order.counts, "bundle": place + 1})
            return sequences, reason
        column = sequences[place] if order.by != "started_at" else item.partial.column("started")
        if order.by is not None:
            known = column[column != ABSENT]
            column = np.where(column == ABSENT, ABSENT, column - known.min() + following)
            following += int(known.max() - known.min()) + 1
        columns.append(column)
    return columns, None


def _differences(left: Protocol, right: Protocol) -> Iterator[tuple[str, str, str]]:
    """Yield each field of the protocol class that differs, with both values in words."""
    for field in CLASS:
        first, second = getattr(left, field), getattr(right, field)
        if first != second:
            yield field, _words(first), _words(second)


def _words(value: Any) -> str:
    value = value.model_dump(mode="json") if isinstance(value, Authored) else value
    return "not stated" if value is None else canonical.line(value).decode().strip()


def _manifest(manifests: Sequence[Manifest]) -> Manifest:
    """Return the manifest of bundles of one agent and one protocol class."""
    protocols = [item.protocol for item in manifests]
    stated = {name: [getattr(item, name) for item in protocols] for name in Protocol.model_fields}
    differing = [name for name, values in stated.items() if any(value != values[0] for value in values)]
    declared = stated["declared_runs"]
    protocol = protocols[0].model_copy(
        update=dict.fromkeys(differing)
        | {
            "origin": "simulated" if "simulated" in stated["origin"] else "measured",
            "declared_runs": None if None in declared else sum(declared),
            "attempt": max((number for number in stated["attempt"] if number is not None), default=None),
            "public_tasks": tuple(sorted({name for names in stated["public_tasks"] for name in names or ()}))
            or None,
            "period": _period(stated["period"]),
        }
    )
    attested: dict[str, Attested] = {}
    for item in (item for bundle in manifests for item in bundle.attested):
        attested[item.id] = min(attested.get(item.id, item), item, key=lambda item: float(item.value))
    return Manifest(
        schema=manifests[0].schema_,
        agent=manifests[0].agent,
        protocol=protocol,
        attested=tuple(attested.values()),
    )


def _period(periods: Sequence[Period | None]) -> Period | None:
    """Return the period over all bundles; a start or end that a bundle does not state is left out."""
    known = [item for item in periods if item is not None]
    if len(known) < len(periods):
        return None
    starts = [(start, item.from_) for item in known if (start := item.span[0]) is not None]
    ends = [(end, item.to) for item in known if (end := item.span[1]) is not None]
    return Period.model_validate(
        {
            "from": min(starts)[1] if len(starts) == len(periods) else None,
            "to": max(ends)[1] if len(ends) == len(periods) else None,
        }
    )
