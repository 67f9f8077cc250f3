"""The verified reader: every entry of a log in its order, from a database or an exported tree.

    with reading(folder, heads=heads) as log:      # or by the keys of a trust policy: trust=policy
        history = log.history("lab/agent")         # every entry is read, and must give the signed root
        history.passports[-1].ending               # None, or what ended it

A log proves that something is in it, never that something is not. So whoever asks whether a passport was
revoked has to read all entries, and the answer is "as of checkpoint N". What the entries say is
`certkit.registry.state`.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from certkit.ground.errors import InputError, MismatchError, UntrustedError, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.passport.checks import CLOCK_SKEW
from certkit.registry import store
from certkit.registry.entry import Logged, begins, chosen, is_index, read
from certkit.registry.heads import read as read_head
from certkit.registry.heads import refuse_fork, remembered
from certkit.registry.source import keys_of_log, log_key, opened, walk
from certkit.registry.state import Issued, Passports, Policy
from certkit.tlog.checkpoint import NOBODY, Quorum, SignedCheckpoint, counted, open_checkpoint
from certkit.tlog.tree import EMPTY_ROOT, Frontier, Hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from certkit.passport.trust import Trust
    from certkit.registry.source import Source
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey

    Seen = Callable[[str], Checkpoint | None]
    """Returns the newest checkpoint that is remembered of a log of this name, None where none is."""


class History(Struct, frozen=True, kw_only=True):
    """A lineage as of a checkpoint: its passports, oldest first, and every entry about it that counts.

    `left_out` are the places of those that do not.
    """

    lineage: str
    passports: tuple[Issued, ...]
    entries: tuple[Logged, ...]
    left_out: tuple[int, ...] = ()

    @property
    def drifted(self) -> bool:
        """Whether the log says that the latest passport drifted."""
        return self.passports[-1].drift is not None


def history(lineage: str, entries: Iterable[Logged], policy: Policy) -> History:
    """Return the history that the entries about a lineage tell, in their order, under a policy."""
    passports, about = Passports(policy), list(entries)
    counted = [(logged, passports.follow(logged)) for logged in about]
    kept = tuple(logged for logged, counts in counted if counts and passports.ends(logged))
    places = {logged.index for logged in kept}
    return History(
        lineage=lineage,
        passports=tuple(passports.issued()),
        entries=kept,
        left_out=tuple(logged.index for logged in about if logged.index not in places),
    )


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
        self._folder, self._source, self._progress = folder, source, progress
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
        roots = {0: EMPTY_ROOT}
        rows = chain.from_iterable(walk(self._source, self._progress, "reading the log", head.size))
        for index, data, leaf in rows:
            if index != frontier.size or not isinstance(data, bytes):
                raise MismatchError("registry.inconsistent", f"entry {frontier.size} is missing")
            frontier.add(leaf)
            if earlier and frontier.size == earlier.size:
                roots[earlier.size] = frontier.root
            yield index, data, leaf
        if (frontier.size, frontier.root) != (head.size, head.root):
            raise MismatchError(
                "registry.inconsistent",
                f"the entries are not those of the checkpoint over {head.size:,}",
                where=str(self._folder),
                hint="'certkit registry audit' tells what is wrong",
            )
        if earlier:
            refuse_fork(earlier, head, lambda size: roots.get(size, head.root), where=str(self._folder))

    def history(self, name: str, trust: Trust | None = None) -> History:
        """Return the history of a lineage, by its whole name or, where no provider is stated, by the agent's.

        With a trust policy only what counts under it is told. Raises as `entries`, `InputError`
        ``registry.entry``, and `UsageError` ``registry.unknown``.
        """
        lineage = name if "/" in name else f"-/{name}"
        about = [logged for logged in self.logged() if logged.found.entry.subject == lineage]
        told = history(lineage, about, self.policy(trust))
        if told.passports:
            return told
        held = trust is not None and any(logged.found.passport for logged in about)
        counts = " counts under the policy" if held else ""
        raise UsageError(
            "registry.unknown",
            f"no passport of {name[:80]!r}{counts}",
            where=str(self._folder),
            hint=None
            if counts
            else "'certkit registry list' names the lineages: provider/name, or -/name without a provider",
        )

    def logged(self) -> Iterator[Logged]:
        """Yield every entry, whoever signed it; raise as `entries`, and `InputError` ``registry.entry``."""
        for index, data, leaf in self.entries():
            try:
                yield Logged(index, leaf, read(data))
            except InputError as error:
                raise InputError(error.code, error.message, where=f"entry {index}") from None

    def find(self, ident: str) -> tuple[Logged, Issued | None]:
        """Return an entry by its index, or that of a passport by its id or the beginning of it.

        With it comes the passport that it logs. Raises as `logged`, and `UsageError` ``registry.unknown``.
        """
        entries, passports = self.listed()
        firsts = {name: issued.index for name, issued in passports.items() if begins(name, ident)}
        index = (
            int(ident) if is_index(ident, len(entries)) else chosen(ident, firsts, where=str(self._folder))
        )
        claims = entries[index].found.passport
        return entries[index], passports.get(claims.passport_id) if claims else None

    def listed(self) -> tuple[list[Logged], dict[str, Issued]]:
        """Return every entry, and all passports by id, whoever signed the entries; raise as `logged`."""
        entries, passports = list(self.logged()), Passports(self.policy())
        for logged in entries:
            passports.follow(logged)
        return entries, {issued.claims.passport_id: issued for issued in passports.issued()}

    def policy(self, trust: Trust | None = None) -> Policy:
        """Return whose entries count: everybody's, or those that a trust policy's keys signed."""
        return Policy(self.head.checkpoint.origin, trust, self.passport)

    def passport(self, sha256: str) -> bytes | None:
        """Return a logged passport by the digest of its file, None where it is not here or has changed."""
        return store.intact_blob(self._folder, sha256)


@contextmanager
def reading(
    folder: Path,
    *,
    heads: Path | None = None,
    trust: Trust | None = None,
    at: datetime | None = None,
    progress: Progress = SILENT,
) -> Iterator[Reader]:
    """Open a log to read it whole: by the key that it says is its own, or by those of a trust policy.

    An exported tree says no key; without a policy nobody's signature is checked there. The log must go on
    from what the file `heads` remembers of it. Under a policy one of its log keys must have signed the
    checkpoint, and as many witnesses as it asks for, none later than `at`.
    Raises as `opened` and `open_checkpoint` do, `UntrustedError` ``registry.untrusted-log``, and
    `MismatchError` ``registry.witnesses``.
    """
    with opened(folder) as source:
        if trust is None:
            key, quorum = source.vkey(), NOBODY
        else:
            key = log_key(source.note(), trust, UntrustedError)
            quorum = Quorum.of(trust.witnesses.k, trust.witnesses.keys)

        def seen(origin: str) -> Checkpoint | None:
            known = keys_of_log(trust, origin) if trust else [key] if key else []
            return remembered(heads, *known) if heads else None

        log = Reader(folder, source, key, witnesses=quorum.keys, seen=seen, progress=progress)
        cosigned = (
            log.head.cosigned if at is None else counted(log.head.cosigned, (at + CLOCK_SKEW).timestamp())
        )
        if not quorum.is_met(cosigned):
            raise MismatchError(
                "registry.witnesses",
                f"{len(cosigned)} of {quorum.k} required witnesses cosigned",
                where=str(folder),
                hint="the log's keeper takes in what they sign: certkit registry cosign",
            )
        yield log
