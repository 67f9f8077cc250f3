"""The history of a lineage: its passports, and what the log says became of them.

    with reading(folder, log=key) as log:          # or without a key: nothing is said of who signed
        found = log.history("lab/agent")           # every entry is read, and must give the signed root
    found.passports[-1].ending                     # None, or what ended it
    past(found, log.passport)                      # what the score asks

A log proves that something is in it, never that something is not. So whoever asks whether a passport was
revoked has to read all entries, and the answer is "as of checkpoint N".
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from certkit.errors import MismatchError, UsageError
from certkit.passport import issuing
from certkit.passport import statement as st
from certkit.registry import blobs
from certkit.registry.auditing import opened
from certkit.registry.entry import Claims, Drift, Revocation, Stored, Supersession, read
from certkit.registry.heads import read as read_head
from certkit.registry.heads import refuse_fork
from certkit.registry.registry import Logged
from certkit.registry.score import Latest, Past
from certkit.tlog.checkpoint import SignedCheckpoint, open_checkpoint
from certkit.tlog.hashing import Hash, leaf_hash
from certkit.tlog.tree import Frontier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from certkit.assessment.reliability import Moments
    from certkit.registry.source import Source
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey


class Ending(Struct, frozen=True, kw_only=True):
    """What ended a passport: the entry that says so; `by` is the passport that took its place."""

    index: int
    how: str
    reason: str | None = None
    by: str | None = None


class Issued(Struct, frozen=True, kw_only=True):
    """A passport as the log has it; `ending` is what ended it, None where nothing did."""

    index: int
    issued_at: str
    claims: Claims
    file: Stored
    ending: Ending | None = None


class History(Struct, frozen=True, kw_only=True):
    """A lineage as of a checkpoint: its passports, oldest first, and every entry about it."""

    lineage: str
    passports: tuple[Issued, ...]
    entries: tuple[Logged, ...]

    @property
    def drifts(self) -> tuple[tuple[int, Drift], ...]:
        """The drift entries, with their places."""
        return tuple(
            (one.index, one.found.claims) for one in self.entries if isinstance(one.found.claims, Drift)
        )


def history(
    lineage: str, entries: Iterable[Logged], counts: Callable[[Logged], bool] | None = None
) -> History:
    """Return the history that the entries about a lineage tell, in their order.

    A revocation or supersession for which `counts` returns false ends nothing; by default all do.
    """
    found = tuple(entries)
    issued: dict[str, Issued] = {}
    for one in found:
        claims, file = one.found.claims, one.found.entry.passport
        if isinstance(claims, Claims) and file is not None:
            issued.setdefault(
                claims.passport_id,
                Issued(index=one.index, issued_at=one.found.entry.issued_at, claims=claims, file=file),
            )
    for one in found:
        ended, ending = ending_of(one)
        if ended in issued and ending is not None and (counts is None or counts(one)):
            issued[ended] = _ended(issued[ended], ending)
    return History(lineage=lineage, passports=tuple(issued.values()), entries=found)


def ending_of(one: Logged) -> tuple[str | None, Ending | None]:
    """Return which passport an entry ends, and how; (None, None) where it ends none."""
    claims = one.found.claims
    if isinstance(claims, Revocation):
        return claims.passport_id, Ending(index=one.index, how="revoked", reason=claims.reason)
    if isinstance(claims, Supersession):
        return claims.passport_id, Ending(index=one.index, how="superseded", by=claims.by)
    if isinstance(claims, Claims) and claims.supersedes is not None:
        return claims.supersedes, Ending(index=one.index, how="superseded", by=claims.passport_id)
    return None, None


def _ended(one: Issued, ending: Ending) -> Issued:
    """Return a passport with what ended it: the first entry that did, and a revocation before all."""
    before = one.ending
    if before is None or (ending.how == "revoked" and before.how != "revoked"):
        return structs.replace(one, ending=ending)
    return one


class Log:
    """A log that is read whole, from a database or an exported tree."""

    def __init__(
        self, folder: Path, source: Source, key: VerifierKey | None, witnesses: Iterable[VerifierKey]
    ) -> None:
        self._folder = folder
        self._source = source
        note = source.note()
        # Without a key the checkpoint says how many entries are meant and which root they have, no more.
        self.head = open_checkpoint(note, key, witnesses) if key else SignedCheckpoint(read_head(note), ())

    def entries(self, earlier: Checkpoint | None = None) -> Iterator[tuple[int, bytes, Hash]]:
        """Yield every entry with its place and leaf; nothing of it is to be believed before the last one is.

        Raises `MismatchError` ``registry.inconsistent`` where they are not the head's, and
        ``registry.rollback`` where they do not go on from the `earlier` checkpoint.
        """
        frontier, head = Frontier(), self.head.checkpoint
        roots: dict[int, Hash] = {}
        for batch in self._source.batches():
            for index, data in batch:
                if index != frontier.size or not isinstance(data, bytes):
                    raise MismatchError("registry.inconsistent", f"entry {frontier.size} is missing")
                leaf = leaf_hash(data)
                if earlier and earlier.size == frontier.size:
                    roots[frontier.size] = frontier.root
                yield index, data, leaf
                frontier.add(leaf)
        if (frontier.size, frontier.root) != (head.size, head.root):
            raise MismatchError(
                "registry.inconsistent",
                f"the entries are not those of the checkpoint over {head.size:,}",
                where=str(self._folder),
                hint="'certkit registry audit' tells what is wrong",
            )
        if earlier:
            refuse_fork(earlier, head, lambda size: roots.get(size, head.root))

    def history(self, name: str) -> History:
        """Return the history of a lineage, by its whole name or, where no provider is stated, by the agent's.

        Raises as `entries`, `InputError` ``registry.entry``, and `UsageError` ``registry.unknown``.
        """
        names = {name, f"-/{name}"}
        every = (Logged(index, leaf, read(data)) for index, data, leaf in self.entries())
        about = [one for one in every if one.found.entry.subject in names]
        for lineage in (name, f"-/{name}"):
            found = history(lineage, [one for one in about if one.found.entry.subject == lineage])
            if found.passports:
                return found
        raise UsageError(
            "registry.unknown",
            f"no passport of {name[:80]!r}",
            where=str(self._folder),
            hint="'certkit registry list' names the lineages: provider/name, or -/name without a provider",
        )

    def passport(self, file: Stored) -> bytes | None:
        """Return a logged passport's bytes, None where they are not here or have changed."""
        data = blobs.load(self._folder, file.sha256)
        return data if data is not None and hashlib.sha256(data).hexdigest() == file.sha256 else None


@contextmanager
def reading(
    folder: Path, *, key: VerifierKey | None = None, witnesses: Iterable[VerifierKey] = ()
) -> Iterator[Log]:
    """Open a log to read it whole; with a key its checkpoint must be signed by it.

    Raises as `certkit.registry.auditing.opened` and `open_checkpoint` do.
    """
    with opened(folder) as source:
        yield Log(folder, source, key, witnesses)


def statement(data: bytes) -> st.Statement:
    """Return the statement of a passport; whoever signed it was looked at when it was admitted."""
    return st.read(issuing.parse(data).payload)


def r_op(found: st.Statement) -> Moments | None:
    """Return the integers of r_op over all fault runs, None where a passport carries none."""
    from certkit.passport.standing import standing  # noqa: PLC0415 - heavy

    rows = standing(found).moments
    return next(
        (row for row in rows if (row.metric, row.domain, row.condition) == ("r_op", None, None)), None
    )


def past(of: History, passport: Callable[[Stored], bytes | None]) -> Past:
    """Return what the score asks of a lineage.

    Raises `MismatchError` ``registry.blob-missing`` where the latest passport is not here.
    """
    latest = of.passports[-1]
    data = passport(latest.file)
    if data is None:
        raise MismatchError(
            "registry.blob-missing", f"the file of entry {latest.index} is not here, or has changed"
        )
    found = statement(data)
    ending = latest.ending
    gone = [one.ending.reason for one in of.passports if one.ending and one.ending.how == "revoked"]
    return Past(
        lineage=of.lineage,
        passports=len(of.passports),
        since=moment(of.entries[0].found.entry.issued_at),
        drift=tuple(claims.result for _, claims in of.drifts),
        revocations=tuple(reason for reason in gone if reason is not None),
        latest=Latest(
            passport_id=latest.claims.passport_id,
            index=latest.index,
            not_before=found.predicate.validity.not_before,
            not_after=found.predicate.validity.not_after,
            origin=found.predicate.origin,
            attempt=latest.claims.attempt,
            revoked=ending.reason if ending and ending.how == "revoked" else None,
            r_op=r_op(found),
        ),
    )


def moment(text: str) -> datetime:
    """Return a time as entries write it."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
