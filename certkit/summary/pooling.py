"""Pooling: the runs of several bundles of an agent, summarised as those of a single evaluation.

An agent is evaluated in several contexts and periods, and each evaluation gives a sealed bundle. Pooling
adds up all their runs; tasks and clusters of the same name in two bundles are the same. Bundles of different
agents, or measured or judged in different ways, and repeated records are refused.

    pooled = accumulate([open_bundle(path) for path in paths])
    pooled.summary, pooled.facts             # as for a single bundle
    pooled.parts[0].facts.digest             # each bundle alone, in the order of time

Bundles are ordered by the median of their start times (else the middle of their period), then by digest,
never by the order of the arguments, so that nobody can choose which runs come last. `sequence` counts within
a bundle: runs are ordered bundle after bundle. Where periods overlap, runs are ordered by their start times.
Where the time of a bundle is unknown the runs have no order, and the summary gives the reason.

What manifests state differently is not stated for the whole. Of an attested measurement the lowest value
counts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct, structs

from certkit.bundle.identity import MAX_BUNDLES, accumulation_digest
from certkit.bundle.manifest import Attested, Facts, Manifest, Period, Protocol
from certkit.ground import canonical
from certkit.ground.base import Authored
from certkit.ground.errors import InputError, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.record.columns import ABSENT
from certkit.summary.likeness import named_alike, record_lines, refuse_repetitions
from certkit.summary.summarise import Merge, calibration, gathered, traces
from certkit.summary.summary import Traces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from certkit.bundle.folder import Bundle
    from certkit.summary.summary import Summary, Times

CLASS: Final = ("methodology", "success_rule", "judge", "cascade_definition", "memory_observable")
"""Fields of the protocol that must be equal in all bundles: the protocol class."""

Span = tuple[int, int]
"""First and last moment of a bundle's runs, microseconds since 1970."""


class Part(Struct, frozen=True, kw_only=True, eq=False):
    """A bundle of an accumulation, summarised alone."""

    facts: Facts
    summary: Summary


class Accumulation(Struct, frozen=True, kw_only=True, eq=False):
    """Pooled bundles.

    `ordered`: the time of every part is known, and `parts` are in that order.
    """

    facts: Facts
    summary: Summary
    parts: tuple[Part, ...]
    ordered: bool


def accumulate(bundles: Sequence[Bundle], *, progress: Progress = SILENT) -> Accumulation:
    """Read and validate every record of two or more bundles, and pool them.

    Raises `InputError` ``accumulation.agent``, ``accumulation.protocol`` or ``accumulation.repeated``, the
    errors of `summarise`, and `UsageError` for fewer than two bundles or more than `MAX_BUNDLES`.
    """
    if not 1 < len(bundles) <= MAX_BUNDLES:
        raise UsageError("usage.option", f"2 to {MAX_BUNDLES} bundles can be pooled, not {len(bundles)}")
    _refuse_others(bundles)
    _refuse_copies(bundles)
    read = [_read(bundle, progress) for bundle in bundles]
    read.sort(key=lambda item: (item.middle, item.part.facts.digest))
    sequences, reason = _sequences(read)
    pool = Merge()
    for item in read:
        pool.add(item.merge.sums())
    if sequences is not None:
        pool.put("sequence", sequences)
    refuse_repetitions(_lines(read), pool, np.empty(0, np.int64))
    pool.forget_names()
    parts = tuple(item.part for item in read)
    summary = pool.summary(unordered=reason, parts=[part.summary.records for part in parts])
    manifest = _manifest([part.facts.manifest for part in parts])
    return Accumulation(
        facts=_facts(bundles, parts, manifest),
        summary=structs.replace(
            summary,
            likeness=named_alike(summary.likeness, _lines(read)),
            times=structs.replace(
                summary.times, backwards=sum(part.summary.times.backwards for part in parts)
            ),
            calibration=calibration(summary, *(item.bundle for item in read)),
            traces=Traces(
                **{
                    name: sum(getattr(part.summary.traces, name) for part in parts)
                    for name in Traces.__struct_fields__
                }
            ),
        ),
        parts=parts,
        ordered=all(item.span is not None for item in read),
    )


def _lines(read: Sequence[_Read]) -> Iterator[tuple[str, int, bytes]]:
    for item in read:
        for path, number, line in record_lines(item.bundle):
            yield f"{item.bundle.root}/{path}", number, line


_NEVER: Final = 2**62


class _Read(Struct, frozen=True, kw_only=True, eq=False):
    bundle: Bundle
    merge: Merge
    part: Part
    span: Span | None
    middle: int


def _read(bundle: Bundle, progress: Progress) -> _Read:
    try:
        merge = gathered(bundle, progress=progress)
        summary = merge.summary()
        summary = structs.replace(
            summary,
            likeness=named_alike(summary.likeness, record_lines(bundle)),
            calibration=calibration(summary, bundle),
            traces=traces(bundle, summary),
        )
    except InputError as error:
        error.where = f"{bundle.root}/{error.where}" if error.where else str(bundle.root)
        raise
    span, started = _span(summary.times, summary.records, bundle.manifest), merge.run("started")
    timed = len(started) > 0 and bool((started != ABSENT).all())
    return _Read(
        bundle=bundle,
        merge=merge,
        part=Part(facts=bundle.facts, summary=summary),
        span=span,
        middle=_NEVER if span is None else int(np.median(started)) if timed else sum(span) // 2,
    )


def _span(times: Times, records: int, manifest: Manifest) -> Span | None:
    """Return when the runs were made: by their start times where all have one, else by the manifest."""
    if times.first is not None and times.last is not None and times.timed == records:
        return times.first, times.last
    period = manifest.protocol.period
    start, end = period.span if period else (None, None)
    return None if start is None or end is None or end < start else (start, end)


def _refuse_others(bundles: Sequence[Bundle]) -> None:
    """Raise `InputError` unless all bundles are about the same agent, measured and judged in the same way."""
    first = bundles[0]
    for bundle in bundles[1:]:
        if bundle.facts.agent_digest != first.facts.agent_digest:
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
    return f"{agent.name} {agent.version} ({bundle.facts.agent_digest})"


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


def _one_after_another(read: Sequence[_Read]) -> bool:
    return all(
        earlier.span is not None and later.span is not None and earlier.span[1] < later.span[0]
        for earlier, later in pairwise(read)
    )


def _sequences(read: Sequence[_Read]) -> tuple[NDArray[np.int64] | None, str | None]:
    """Return the place in time of every run, bundle after bundle, or the reason why there is no order."""
    unknown = [item for item in read if item.span is None]
    if unknown:
        return None, (
            f"{len(unknown)} of {len(read)} bundles neither declare their period nor have a start time for"
            " every run, so that the bundles have no order in time"
        )
    if not _one_after_another(read):
        if all((item.merge.run("started") != ABSENT).all() for item in read):
            return np.full(sum(item.part.summary.records for item in read), ABSENT, np.int64), None
        return None, "the periods of the bundles overlap, and not every run has a start time"
    return _one_sequence(read)


def _one_sequence(read: Sequence[_Read]) -> tuple[NDArray[np.int64] | None, str | None]:
    columns, following = [], 0
    for item in read:
        window = item.part.summary.window
        if window.order is None and window.runs:
            return None, f"{window.reason} (in {item.part.facts.digest})"
        column = item.merge.run("started" if window.order == "started_at" else "sequence")
        if window.order is not None:
            known = column[column != ABSENT]
            column = np.where(column == ABSENT, ABSENT, column - known.min() + following)
            following += int(known.max() - known.min()) + 1
        columns.append(column)
    return np.concatenate(columns), None


def _facts(bundles: Sequence[Bundle], parts: Sequence[Part], manifest: Manifest) -> Facts:
    first = parts[0].facts
    return Facts(
        manifest=manifest,
        digest=accumulation_digest([part.facts.digest for part in parts]),
        sealed=all(part.facts.sealed for part in parts),
        agent_digest=first.agent_digest,
        unread=("context.json",) * any(part.facts.unread for part in parts)
        + ("integrity/",)
        * any(file["path"].startswith("integrity/") for bundle in bundles for file in bundle.files),
    )


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
