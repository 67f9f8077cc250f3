"""The history of a lineage: its passports, and what the log says became of them.

    with reading(folder, log=key) as log:          # or without a key: nothing is said of who signed
        found = log.history("lab/agent")           # every entry is read, and must give the signed root
    found.passports[-1].ending                     # None, or what ended it

A log proves that something is in it, never that something is not. So whoever asks whether a passport was
revoked has to read all entries, and the answer is "as of checkpoint N".
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from certkit.errors import MismatchError, UsageError
from certkit.passport import opening
from certkit.passport import statement as st
from certkit.progress import SILENT, Progress, shown
from certkit.registry import blobs
from certkit.registry.auditing import opened
from certkit.registry.entry import Claims, Drift, Revocation, Stored, Supersession, naming, read, timestamp
from certkit.registry.heads import read as read_head
from certkit.registry.heads import refuse_fork
from certkit.registry.registry import Logged
from certkit.registry.rules import is_of
from certkit.registry.score import graver
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

    Seen = Callable[[str], Checkpoint | None]
    """Returns the newest checkpoint that is remembered of a log of this name, None where none is."""


class Ending(Struct, frozen=True, kw_only=True):
    """What ended a passport: the entry that says so; `by` is the passport that took its place."""

    index: int
    how: Literal["superseded", "revoked"]
    reason: str | None = None
    by: str | None = None


class Issued(Struct, frozen=True, kw_only=True):
    """A passport as the log has it; `ending` is what ended it, None where nothing did.

    The gravest revocation counts before all else; `reasons` are those of every one.
    """

    index: int
    issued_at: str
    claims: Claims
    file: Stored
    ending: Ending | None = None
    reasons: tuple[str, ...] = ()


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
    """Return a passport with one more entry that ends it."""
    return structs.replace(
        one,
        ending=ending if outweighs(ending, one.ending) else one.ending,
        reasons=one.reasons if ending.reason is None else (*one.reasons, ending.reason),
    )


def outweighs(ending: Ending, before: Ending | None) -> bool:
    """Tell whether a further ending is the one to name: a revocation before all, and the gravest of them."""
    if before is None or ending.reason is None:
        return before is None
    return before.reason is None or graver(ending.reason, before.reason)


class Log:
    """A log that is read whole, from a database or an exported tree."""

    def __init__(
        self,
        folder: Path,
        source: Source,
        key: VerifierKey | None,
        *,
        witnesses: Iterable[VerifierKey] = (),
        seen: Seen = lambda _: None,
        progress: Progress = SILENT,
    ) -> None:
        self._folder, self._progress = folder, progress
        self._source = source
        note = source.note()
        # Without a key the checkpoint says how many entries are meant and which root they have, no more.
        self.head = open_checkpoint(note, key, witnesses) if key else SignedCheckpoint(read_head(note), ())
        self._earlier = seen(self.head.checkpoint.origin)

    def entries(self) -> Iterator[tuple[int, bytes, Hash]]:
        """Yield every entry with its place and leaf; nothing of it is to be believed before the last one is.

        Raises `MismatchError` ``registry.inconsistent`` where they are not the head's, and
        ``registry.rollback`` where they do not go on from what is remembered.
        """
        frontier, head, earlier = Frontier(), self.head.checkpoint, self._earlier
        roots: dict[int, Hash] = {}
        for batch in self._batches(head.size):
            start = frontier.size
            leaves = [leaf_hash(data) if isinstance(data, bytes) else None for _, data in batch]
            for number, ((index, data), leaf) in enumerate(zip(batch, leaves, strict=True), start):
                if index != number or leaf is None:
                    raise MismatchError("registry.inconsistent", f"entry {number} is missing")
                yield index, data, leaf
            found = [leaf for leaf in leaves if leaf is not None]
            if earlier and start <= earlier.size < start + len(found):
                then = frontier.copy()
                then.extend(found[: earlier.size - start])
                roots[earlier.size] = then.root
            frontier.extend(found)
        if (frontier.size, frontier.root) != (head.size, head.root):
            raise MismatchError(
                "registry.inconsistent",
                f"the entries are not those of the checkpoint over {head.size:,}",
                where=str(self._folder),
                hint="'certkit registry audit' tells what is wrong",
            )
        if earlier:
            refuse_fork(earlier, head, lambda size: roots.get(size, head.root), where=str(self._folder))

    def _batches(self, size: int) -> Iterator[list[tuple[int, Any]]]:
        with shown(self._progress, "reading the log", size) as bar:
            for batch in self._source.batches():
                yield batch
                bar.advance(len(batch))

    def history(self, name: str) -> History:
        """Return the history of a lineage, by its whole name or, where no provider is stated, by the agent's.

        Raises as `entries`, `InputError` ``registry.entry``, and `UsageError` ``registry.unknown``.
        """
        lineage = name if "/" in name else f"-/{name}"
        may_be = naming(lineage)
        found = (Logged(index, leaf, read(data)) for index, data, leaf in self.entries() if may_be(data))
        about = [one for one in found if one.found.entry.subject == lineage and self._counts(one)]
        its = history(lineage, about)
        if its.passports:
            return its
        raise UsageError(
            "registry.unknown",
            f"no passport of {name[:80]!r}",
            where=str(self._folder),
            hint="'certkit registry list' names the lineages: provider/name, or -/name without a provider",
        )

    def _counts(self, one: Logged) -> bool:
        # A passport is logged here by an entry that was signed for this log, and names no file of another;
        # what ends it, ends it anywhere.
        file = one.found.entry.passport
        if file is None:
            return True
        data = self.passport(file)
        is_its_own = data is None or is_of(data, one.found)
        return is_its_own and one.found.entry.is_for(self.head.checkpoint.origin)

    def passport(self, file: Stored) -> bytes | None:
        """Return a logged passport's bytes, None where they are not here or have changed."""
        return blobs.intact(self._folder, file.sha256)


@contextmanager
def reading(
    folder: Path,
    *,
    key: VerifierKey | None = None,
    witnesses: Iterable[VerifierKey] = (),
    seen: Seen = lambda _: None,
    progress: Progress = SILENT,
) -> Iterator[Log]:
    """Open a log to read it whole; with a key its checkpoint must be signed by it.

    It must go on from what `seen` remembers of a log of its name. Raises as
    `certkit.registry.auditing.opened` and `open_checkpoint` do.
    """
    with opened(folder) as source:
        yield Log(folder, source, key, witnesses=witnesses, seen=seen, progress=progress)


def statement(data: bytes) -> st.Statement:
    """Return the statement of a passport; whoever signed it was looked at when it was admitted."""
    return opening.parse(data).unverified_statement()


def r_op(found: st.Statement) -> Moments | None:
    """Return the integers of r_op over all fault runs, None where a passport carries none."""
    from certkit.passport.drift_side import drift_side  # noqa: PLC0415 - heavy

    rows = drift_side(found).moments
    return next(
        (row for row in rows if (row.metric, row.domain, row.condition) == ("r_op", None, None)), None
    )


def moment(text: str) -> datetime:
    """Return a time as entries write it; raise `ValueError` where it is not written so."""
    time = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    if timestamp(time) != text:
        raise ValueError(text)
    return time
