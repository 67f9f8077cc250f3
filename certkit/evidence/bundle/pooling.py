"""Several bundles of one agent, pooled: what they say together, and what each says alone.

An agent is evaluated in several contexts and periods, and each gives a sealed bundle. Pooled, their runs
count as those of one evaluation: tasks and clusters are known by their names across bundles, every sum is
over all runs. What may not be pooled is refused: another agent, another way of measuring or of judging, the
same records twice.

    found = accumulate([open_bundle(path) for path in paths])
    found.summary, found.facts               # as of one bundle
    found.parts[0].facts.digest              # each bundle alone, in the order of time

The order of the bundles is that of their time, then of their digests, and never that in which they were
given. Runs are ordered bundle after bundle, since sequences begin anew in each; bundles that overlap in time
are ordered by start times alone. Where the time of a bundle is not known there is no order, and the reason
is said: nobody may choose which runs come last.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, structs

from certkit.errors import InputError, UsageError
from certkit.evidence.bundle import together
from certkit.evidence.bundle.identity import MAX_BUNDLES, accumulation_digest
from certkit.evidence.bundle.manifest import Facts, Manifest
from certkit.evidence.reading.columns import ABSENT
from certkit.evidence.summary.gather import Merge, calibration, gathered, record_lines, refuse_repetitions
from certkit.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from certkit.evidence.bundle.folder import Bundle
    from certkit.evidence.summary.summary import Summary, Times

Span = tuple[int, int]
"""First and last moment of a bundle's runs, microseconds since 1970."""


class Part(Struct, frozen=True, kw_only=True, eq=False):
    """One bundle of an accumulation, alone."""

    facts: Facts
    summary: Summary


class Accumulation(Struct, frozen=True, kw_only=True, eq=False):
    """Bundles pooled. `conflicts` tells in words where the manifests state different things.

    `ordered` tells whether `parts` stand in the order of their time, one after the other.
    """

    facts: Facts
    summary: Summary
    parts: tuple[Part, ...]
    conflicts: tuple[str, ...]
    ordered: bool


def accumulate(
    bundles: Sequence[Bundle], *, jobs: int | None = None, progress: Progress = SILENT
) -> Accumulation:
    """Read and validate every record of two or more bundles, and pool them.

    Raises `InputError` ``accumulation.agent``, ``accumulation.protocol`` or ``accumulation.repeated``, what
    `summarise` raises, and `UsageError` for fewer than two bundles or more than `MAX_BUNDLES`.
    """
    if not 1 < len(bundles) <= MAX_BUNDLES:
        raise UsageError("usage.option", f"2 to {MAX_BUNDLES} bundles can be pooled, not {len(bundles)}")
    _refuse_others(bundles)
    _refuse_copies(bundles)
    read = [_read(bundle, jobs, progress) for bundle in bundles]
    read.sort(key=lambda one: (one.span or (_NEVER, _NEVER), one.part.facts.digest))
    sequences, reason = _sequences(read)
    pool = Merge()
    for one in read:
        pool.absorb(one.merge)
    if sequences is not None:
        pool.put("sequence", sequences)
    lines = (
        (f"{one.bundle.root}/{path}", number, line)
        for one in read
        for path, number, line in record_lines(one.bundle)
    )
    refuse_repetitions(lines, pool, np.empty(0, np.int64))
    pool.forget_names()
    parts = tuple(one.part for one in read)
    summary = pool.summary(unordered=reason)
    ordered = _one_after_another(read)
    manifest, conflicts = together.manifest([part.facts.manifest for part in parts], ordered=ordered)
    return Accumulation(
        facts=_facts(parts, manifest),
        summary=structs.replace(
            summary,
            times=structs.replace(
                summary.times, backwards=sum(part.summary.times.backwards for part in parts)
            ),
            calibration=together.calibration(
                [(str(one.bundle.root), one.part.summary.calibration) for one in read]
            ),
        ),
        parts=parts,
        conflicts=conflicts,
        ordered=ordered,
    )


_NEVER: Final = 2**62


class _Read(Struct, frozen=True, kw_only=True, eq=False):
    bundle: Bundle
    merge: Merge
    part: Part
    span: Span | None


def _read(bundle: Bundle, jobs: int | None, progress: Progress) -> _Read:
    try:
        merge = gathered(bundle, jobs=jobs, progress=progress)
        summary = structs.replace(merge.summary(), calibration=calibration(bundle))
    except InputError as error:
        error.where = f"{bundle.root}/{error.where}" if error.where else str(bundle.root)
        raise
    return _Read(
        bundle=bundle,
        merge=merge,
        part=Part(facts=bundle.facts, summary=summary),
        span=_span(summary.times, summary.records, bundle.manifest),
    )


def _span(times: Times, records: int, manifest: Manifest) -> Span | None:
    """Return when the runs were made: as their start times say, or else as the manifest declares."""
    if times.first is not None and times.last is not None and times.timed == records:
        return times.first, times.last
    period = manifest.protocol.period
    start, end = period.span if period else (None, None)
    return None if start is None or end is None or end < start else (start, end)


def _refuse_others(bundles: Sequence[Bundle]) -> None:
    """Raise `InputError` where a bundle is about another agent, or was made or judged in another way."""
    first = bundles[0]
    for other in bundles[1:]:
        if other.facts.agent_digest != first.facts.agent_digest:
            raise InputError(
                "accumulation.agent",
                f"about {_named(other)}, and {first.root} is about {_named(first)}",
                where=str(other.root),
                hint="only evidence of one agent, the same in every component, can be pooled;"
                " 'certkit drift' compares two",
            )
        for field, one, two in together.differences(first.manifest.protocol, other.manifest.protocol):
            raise InputError(
                "accumulation.protocol",
                f"protocol.{field} is {two}, and in {first.root} it is {one}",
                where=str(other.root),
                hint="runs that were made or judged in different ways cannot be counted as one evaluation",
            )


def _named(bundle: Bundle) -> str:
    agent = bundle.manifest.agent
    return f"{agent.name} {agent.version} ({bundle.facts.agent_digest})"


def _refuse_copies(bundles: Sequence[Bundle]) -> None:
    """Raise `InputError` where a bundle, or a record file that is not empty, is there twice."""
    digests: dict[str, Bundle] = {}
    files: dict[str, str] = {}
    for bundle in bundles:
        first = digests.setdefault(bundle.facts.digest, bundle)
        if first is not bundle:
            raise InputError(
                "accumulation.repeated", f"the same bundle as {first.root}", where=str(bundle.root)
            )
    for bundle in bundles:
        for file in bundle.files:
            place = f"{bundle.root}/{file['path']}"
            if file["path"].startswith("records/") and file["size"]:
                earlier = files.setdefault(file["sha256"], place)
                if earlier != place:
                    raise InputError("accumulation.repeated", f"the same records as {earlier}", where=place)


def _one_after_another(read: Sequence[_Read]) -> bool:
    return all(
        one.span is not None and two.span is not None and one.span[1] < two.span[0]
        for one, two in pairwise(read)
    )


def _sequences(read: Sequence[_Read]) -> tuple[NDArray[np.int64] | None, str | None]:
    """Return the sequence of every run, bundle after bundle, or why there is no order; before pooling."""
    unknown = [one for one in read if one.span is None]
    if unknown:
        return None, (
            f"{len(unknown)} of {len(read)} bundles neither declare their period nor have a start time for"
            " every run, so that the bundles have no order in time"
        )
    if not _one_after_another(read):
        if all((one.merge.run("started") != ABSENT).all() for one in read):
            return np.full(sum(one.part.summary.records for one in read), ABSENT, np.int64), None
        return None, "the periods of the bundles overlap, and not every run has a start time"
    return _one_sequence(read)


def _one_sequence(read: Sequence[_Read]) -> tuple[NDArray[np.int64] | None, str | None]:
    found, following = [], 0
    for one in read:
        window = one.part.summary.window
        if window.order is None and window.runs:
            return None, f"{window.reason} (in {one.part.facts.digest})"
        column = one.merge.run("started" if window.order == "started_at" else "sequence")
        if window.order is not None:
            known = column[column != ABSENT]
            column = np.where(column == ABSENT, ABSENT, column - known.min() + following)
            following += int(known.max() - known.min()) + 1
        found.append(column)
    return np.concatenate(found), None


def _facts(parts: Sequence[Part], manifest: Manifest) -> Facts:
    first = parts[0].facts
    return Facts(
        manifest=manifest,
        digest=accumulation_digest([part.facts.digest for part in parts]),
        sealed=all(part.facts.sealed for part in parts),
        agent_digest=first.agent_digest,
        unread=tuple(sorted({name for part in parts for name in part.facts.unread})),
    )
