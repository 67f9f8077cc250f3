"""The verified reader: every entry of a log in its order, from a database or an exported tree.

    with reading(folder, key=key) as log:          # or without a key: nothing is said of who signed
        found = log.history("lab/agent")           # every entry is read, and must give the signed root
    found.passports[-1].ending                     # None, or what ended it

A log proves that something is in it, never that something is not. So whoever asks whether a passport was
revoked has to read all entries, and the answer is "as of checkpoint N". What the entries say is
`certkit.registry.state`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from certkit.errors import MismatchError, UsageError
from certkit.progress import SILENT, Progress, shown
from certkit.registry import blobs, store
from certkit.registry.entry import Logged, Stored, naming, read, skim
from certkit.registry.heads import read as read_head
from certkit.registry.heads import refuse_fork
from certkit.registry.source import CHECKPOINT, Database, Published, Source
from certkit.registry.state import History, Issued, Passports, Policy, history
from certkit.tlog.checkpoint import SignedCheckpoint, open_checkpoint
from certkit.tlog.hashing import Hash, leaf_hash
from certkit.tlog.tree import Frontier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from certkit.passport.trust import Trust
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey

    Seen = Callable[[str], Checkpoint | None]
    """Returns the newest checkpoint that is remembered of a log of this name, None where none is."""


@contextmanager
def opened(folder: Path) -> Iterator[Source]:
    """Open what an audit reads: a registry's database, or else an exported tree.

    Raises `InputError` ``registry.missing`` or ``registry.format``, `MismatchError` ``registry.damaged``,
    and `UsageError` where the system refuses to read.
    """
    if (folder / store.FILE).exists() or not (folder / CHECKPOINT).exists():
        with Database.open(folder) as source:
            yield source
    else:
        yield Published(folder)


class Reader:
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

    def history(self, name: str, trust: Trust | None = None) -> History:
        """Return the history of a lineage, by its whole name or, where no provider is stated, by the agent's.

        With a trust policy only what counts under it is told. Raises as `entries` and
        `certkit.registry.state.history`, `InputError` ``registry.entry``, and `UsageError`
        ``registry.unknown``.
        """
        lineage = name if "/" in name else f"-/{name}"
        may_be = naming(lineage)
        found = (Logged(index, leaf, read(data)) for index, data, leaf in self.entries() if may_be(data))
        about = [one for one in found if one.found.entry.subject == lineage]
        its = history(lineage, about, self.policy(trust))
        if its.passports:
            return its
        counts = " counts under the policy" if trust is not None and self._holds(about) else ""
        raise UsageError(
            "registry.unknown",
            f"no passport of {name[:80]!r}{counts}",
            where=str(self._folder),
            hint=None
            if counts
            else "'certkit registry list' names the lineages: provider/name, or -/name without a provider",
        )

    def _holds(self, about: Iterable[Logged]) -> bool:
        return any(one.found.passport for one in about)

    def passports(self) -> list[Issued]:
        """Return all passports of the log with what ended them, whoever signed the entries, oldest first.

        Raises as `entries`, and `InputError` ``registry.entry``.
        """
        found = Passports(self.policy())
        tells = (b"passport", b"supersede", b"revoke")
        for index, data, leaf in self.entries():
            skimmed = skim(data)
            if skimmed is None or skimmed.type in tells:
                found.follow(Logged(index, leaf, read(data)))
        return list(found.issued())

    def policy(self, trust: Trust | None = None) -> Policy:
        """Return whose word counts of this log: everybody's, or that of a trust policy."""
        return Policy(self.head.checkpoint.origin, trust, self.passport)

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
) -> Iterator[Reader]:
    """Open a log to read it whole; with a key its checkpoint must be signed by it.

    It must go on from what `seen` remembers of a log of its name. Raises as
    `opened` and `open_checkpoint` do.
    """
    with opened(folder) as source:
        yield Reader(folder, source, key, witnesses=witnesses, seen=seen, progress=progress)
