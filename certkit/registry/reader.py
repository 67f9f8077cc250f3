"""The reader: every entry of a log in its order, from a registry's database or a tree exported from it.

    with reading(folder, heads=heads) as log:      # or by the keys of a trust policy: trust=policy
        view = show(log, "lab/agent", at=now)      # every entry is read, and must give the signed root
        view.history[-1].drift                     # None, or how the agent compares with its passport before

An exported tree (C2SP tlog-tiles) is a folder of files: `checkpoint`, ``tile/<level>/<n>[.p/<width>]``,
``tile/entries/<n>[.p/<width>]``, and ``blobs/`` where the passports were exported too.

What is trusted: nothing that is read. The index of the database is not used. A log proves that an entry is in
it, never that one is not, so an answer about revocation takes all entries and holds as of the checkpoint.
Passports are read without checking their signature; who issued them is for the `Policy`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta

from certkit.ground import files
from certkit.ground.document import BESIDE, Count, Digest, Document, Hash, Part, Share, Text, Tier, Time
from certkit.ground.errors import (
    CertkitError,
    InputError,
    MismatchError,
    UnavailableError,
    UntrustedError,
    UsageError,
)
from certkit.ground.progress import SILENT, Progress, shown
from certkit.ground.text import name_key
from certkit.passport.logs import add_log
from certkit.passport.passport import CLOCK_SKEW
from certkit.registry import log as store
from certkit.registry.entry import (
    Entry,
    Limit,
    Logged,
    Reason,
    begins,
    chosen,
    drift_between,
    is_index,
    read,
    timestamp,
    unverified_evaluation,
    unverified_facts,
)
from certkit.registry.fold import (
    Ending,
    LoggedPassport,
    Passports,
    PassportStanding,
    Plans,
    Policy,
    ending_of,
)
from certkit.registry.heads import Heads, head_of, refuse_fork, remembered
from certkit.registry.log import EntryLog
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import (
    MAX_PROOF,
    NOBODY,
    Quorum,
    SignedCheckpoint,
    counted,
    open_checkpoint,
    parse_proof,
)
from certkit.tlog.note import MAX_NOTE, VerifierKey, open_note, parse_note
from certkit.tlog.tiles import WIDTH, Tile
from certkit.tlog.tree import EMPTY_ROOT, HASH_SIZE, Frontier, leaf_hash
from certkit.tlog.tree import Hash as LeafHash

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime, timedelta
    from pathlib import Path

    from certkit.assessment.evaluation import Evaluation
    from certkit.passport.trust import Trust
    from certkit.tlog.checkpoint import Checkpoint

    Seen = Callable[[str], Checkpoint | None]
    """Returns the newest checkpoint that is remembered of a log of this name, None where none is."""

CHECKPOINT: Final = "checkpoint"


# The bytes


class Database:
    """The database of a registry, on one state of it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, log = connection, EntryLog(connection)
        self.entry, self.tile, self.note = log.entry, log.tile, log.cosigned
        self.passports = self.indexed = True

    def vkey(self) -> VerifierKey | None:
        """Return the verifier key that the log says is its own, None where it says none."""
        return VerifierKey.parse(store.meta(self._connection).get("vkey", ""))

    def count(self) -> int:
        """Return how many entries there seem to be."""
        (count,) = self._connection.execute("SELECT count(*) FROM leaf").fetchone()
        return int(count)

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """Yield the entries in order with their indices, at most 256 together; raise `CertkitError`."""
        cursor = self._connection.execute("SELECT idx, entry FROM leaf ORDER BY idx")
        while rows := cursor.fetchmany(WIDTH):
            yield rows

    def index(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the index in the order of entries; those of ``ending`` are null where none is."""
        yield from self._connection.execute(
            "SELECT * FROM lineage LEFT JOIN ending ON ending.idx = lineage.idx ORDER BY lineage.idx"
        )

    def faults(self, log: VerifierKey) -> Iterator[tuple[str, str, str]]:
        """Yield what else does not hold of a log with this key: a code, where, in words."""
        for table in store.INDEX:
            (sound,) = self._connection.execute(f"PRAGMA integrity_check({table})").fetchone()
            if sound != "ok":
                yield "registry.index", table, str(sound)
        query = "SELECT idx FROM ending WHERE idx NOT IN (SELECT idx FROM lineage) LIMIT 1"
        for (index,) in self._connection.execute(query).fetchall():
            yield "registry.index", f"entry {index}", "the index has a row for no entry"
        stated = store.meta(self._connection)
        right = {"format": store.FORMAT, "origin": log.name, "vkey": str(log)}
        for name in sorted(stated.keys() | right.keys()):
            if stated.get(name) != right.get(name):
                message = f"expected {name} {right.get(name)}, found {stated.get(name)}"
                yield "registry.checkpoint", "meta", message


class Published:
    """The files of an exported tree; of a tile, narrower forms are not looked at."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        blobs = folder / store.BLOBS
        self.passports, self.indexed = blobs.is_dir() and not blobs.is_symlink(), False

    def note(self) -> bytes:
        """Return the signed checkpoint; raise `CertkitError`."""
        path = self._folder / CHECKPOINT
        if path.is_symlink():
            raise InputError("file.not-regular", "is a link, not a file", where=str(path))
        return files.read(path, limit=MAX_NOTE)

    def vkey(self) -> VerifierKey | None:
        """Return None: a tree does not say whose it is."""
        return None

    def count(self) -> int:
        """Return how many entries there are by the checkpoint."""
        return self._size

    @cached_property
    def _size(self) -> int:
        try:
            return head_of(self.note()).size
        except CertkitError:
            return 0  # the audit reads the checkpoint itself, and says what is wrong

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """See `Database.batches`."""
        for n in range(-(-self._size // WIDTH)):
            yield list(enumerate(self._entries(n), n * WIDTH))

    def entry(self, index: int) -> bytes | None:
        """Return an entry, None where there is none."""
        n, place = divmod(index, WIDTH)
        return self._entries(n)[place] if 0 <= index < self._size else None

    def _entries(self, n: int) -> list[bytes]:
        width, data = self._tile(tiles.BUNDLES, n)
        if data is None:
            raise InputError("tlog.tile", f"bundle {n} is missing, too long or a link")
        return tiles.decode_bundle(data, width)[: tiles.width(tiles.BUNDLES, n, self._size)]

    def tile(self, level: int, n: int) -> bytes:
        """Return the stored hashes of a tile, nothing where there is none."""
        width, data = self._tile(level, n)
        if data is None or len(data) != width * HASH_SIZE:
            return b""
        return data[: tiles.width(level, n, self._size) * HASH_SIZE]

    def _tile(self, level: int, n: int) -> tuple[int, bytes | None]:
        """Return a tile or bundle, and its width: that of the log's size, or full.

        Once a tile is full, its narrower forms may go, and a reader takes them from it.
        """
        width = tiles.width(level, n, self._size)
        for at_hand in (width, WIDTH) if width else ():
            data = self._read(Tile(level, n, at_hand))
            if data is not None:
                return at_hand, data
        return width, None

    def index(self) -> Iterator[tuple[Any, ...]]:
        """Yield nothing: a tree has no index."""
        return iter(())

    def faults(self, _log: VerifierKey) -> Iterator[tuple[str, str, str]]:
        """Yield nothing: a tree holds nothing else."""
        return iter(())

    def _read(self, tile: Tile) -> bytes | None:
        limit = tiles.MAX_BUNDLE if tile.level == tiles.BUNDLES else tiles.FULL
        path = self._folder
        for part in tile.path.split("/"):
            path /= part
            if path.is_symlink():  # what lies behind it is no part of the tree
                return None
        try:
            return files.read(path, limit=limit)
        except CertkitError:
            return None


Source = Database | Published
"""Bytes to read, none of them believed; `passports` tells whether the passports are part of it."""


@contextmanager
def opened(folder: Path) -> Iterator[Source]:
    """Open what an audit reads: a registry's database, or else an exported tree.

    Raises:
        InputError: ``registry.missing`` or ``registry.format``.
        MismatchError: ``registry.damaged``.
        UsageError: where the system refuses to read.
    """
    if (folder / store.FILE).exists() or not (folder / CHECKPOINT).exists():
        with (
            closing(store.connect(folder, writable=False)) as connection,
            store.translated(folder / store.FILE),
            store.snapshot(connection),
        ):
            yield Database(connection)
    else:
        yield Published(folder)


def walk(
    source: Source, progress: Progress, label: str, size: int
) -> Iterator[list[tuple[int, Any, LeafHash]]]:
    """Yield the entries of a source in order, in batches, with indices and leaf hashes; nothing is verified.

    A value that is no bytes, as a database may hold, has the leaf hash of an empty entry. Raises
    `CertkitError` where the source cannot be read.
    """
    with shown(progress, label, size) as bar:
        for batch in source.batches():
            yield [(n, data, leaf_hash(data if isinstance(data, bytes) else b"")) for n, data in batch]
            bar.advance(len(batch))


# Whose log it is


def keys_of_log(trust: Trust, origin: str) -> list[VerifierKey]:
    """Return the policy's keys of a log, the present one last."""
    return [key for key in map(VerifierKey.parse, trust.logs) if key.name == origin]


def log_key(note: bytes, trust: Trust, refusal: type[CertkitError] = UnavailableError) -> VerifierKey:
    """Return the policy's present key of the log that a checkpoint names, which must have signed it.

    Of several keys of one log the last one in the policy is the present one: whoever came by an older key
    could go on from the day on which it was given up. Raises `refusal` ``registry.untrusted-log``.
    """
    origin = head_of(note).origin
    keys = keys_of_log(trust, origin)
    if keys and (origin, keys[-1].key_id) in {line[:2] for line in parse_note(note).signatures}:
        return keys[-1]
    why, hint = (
        (
            "the checkpoint is not signed with the key that the policy lists last for",
            "ask for the log as it is now; in the policy, its present key has to stand after older ones",
        )
        if keys
        else (
            "no trusted verifier key signed the checkpoint of",
            add_log(trust),
        )
    )
    raise refusal("registry.untrusted-log", f"{why} {origin}", hint=hint)


def log_of(source: Source, trust: Trust, folder: Path) -> VerifierKey:
    """Return the policy's key of a log; of several, the last one listed is the log's present one.

    Raises:
        UntrustedError: ``registry.untrusted-log`` where there is none.
    """
    origin, logs = "a log", [VerifierKey.parse(text) for text in trust.logs]
    with suppress(CertkitError):  # whoever reads on says what is wrong with the checkpoint
        origin = head_of(source.note()).origin
        logs = keys_of_log(trust, origin)
    if logs:
        return logs[-1]
    raise UntrustedError(
        "registry.untrusted-log",
        f"no trusted verifier key for {origin}",
        where=str(folder),
        hint=add_log(trust),
    )


def remember(folder: Path, trust: Trust, heads: Path) -> None:
    """Remember the head of the log in `folder`; it must continue what is remembered."""
    with opened(folder) as source, closing(Heads.open(heads)) as file:
        log, note = log_of(source, trust, folder), source.note()
        now = open_checkpoint(note, log).checkpoint
        proven = tiles.verified(now.size, now.root, source.tile)
        with file.held(*keys_of_log(trust, log.name)) as head:
            head.advance(note, lambda size: tree.root(size, tiles.node_reader(proven)))


def checkpoint_in(path: Path, trust: Trust) -> Checkpoint:
    """Return the checkpoint in a file, a signed one or a proof, that a log of the policy signed.

    Raises:
        InputError: ``tlog.*`` for its form.
        MismatchError: ``tlog.unsigned`` or ``tlog.signature``.
    """
    data = files.read(path, limit=MAX_PROOF)
    with suppress(InputError):
        data = parse_proof(data).checkpoint
    try:
        open_note(data, keys_of_log(trust, parse_note(data).text.partition("\n")[0]))
        return head_of(data)
    except CertkitError as error:
        raise type(error)(error.code, error.message, where=str(path), hint=error.hint) from None


# The entries


class LogReader:
    """A log whose entries are all read, from a database or an exported tree."""

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
        self.folder, self.key, self._source, self._progress = folder, key, source, progress
        note = source.note()
        # Without a key the checkpoint says how many entries are meant and which root they have, no more.
        self.head = open_checkpoint(note, key, witnesses) if key else SignedCheckpoint(head_of(note), ())
        self._earlier = seen(self.head.checkpoint.origin)

    def entries(self) -> Iterator[tuple[int, bytes, LeafHash]]:
        """Yield every entry with its index and leaf hash; only after the last one are they all verified.

        Raises:
            MismatchError: ``registry.inconsistent`` where they are not the head's, and
                ``registry.rollback`` where they do not continue what is remembered.
        """
        frontier, head, earlier = Frontier(), self.head.checkpoint, self._earlier
        roots = {0: EMPTY_ROOT}
        for index, data, leaf in chain.from_iterable(
            walk(self._source, self._progress, "reading the log", head.size)
        ):
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
                where=str(self.folder),
                hint="'certkit registry audit' says what is wrong",
            )
        if earlier:
            refuse_fork(earlier, head, lambda size: roots.get(size, head.root), where=str(self.folder))

    def logged(self) -> Iterator[Logged]:
        """Yield every entry, whoever signed it; raise as `entries`, and `InputError` ``registry.entry``."""
        for index, data, leaf in self.entries():
            try:
                yield Logged(index, leaf, read(data))
            except InputError as error:
                raise InputError(error.code, error.message, where=f"entry {index}") from None

    def policy(self, trust: Trust | None = None) -> Policy:
        """Return whose entries count: everybody's, or those that a trust policy's keys signed."""
        return Policy(self.head.checkpoint.origin, trust, self.passport)

    def passport(self, sha256: str) -> bytes | None:
        """Return a logged passport by the digest of its file, None where it is not here or has changed."""
        return store.intact_blob(self.folder, sha256)

    def plan_of(self, sha256: str) -> str | None:
        """Return the plan that a logged passport names, by the digest of its file.

        Returns:
            Empty where it names none, None where the file is not here.
        """
        facts = unverified_facts(self.passport(sha256))
        return None if facts is None else facts.plan or ""


@contextmanager
def reading(
    folder: Path,
    *,
    heads: Path | None = None,
    trust: Trust | None = None,
    at: datetime | None = None,
    progress: Progress = SILENT,
) -> Iterator[LogReader]:
    """Open a log to read it, by the key that it states as its own or by those of a trust policy.

    An exported tree states no key, so without a policy its signature is not checked. The log must continue
    what the file `heads` remembers of it. Under a policy one of its log keys must have signed the checkpoint,
    and as many witnesses as it asks for, none later than `at`.
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

        log = LogReader(folder, source, key, witnesses=quorum.keys, seen=seen, progress=progress)
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


# What a registry shows


class ListedEntry(Part, frozen=True, kw_only=True):
    """An entry of a log; the last three members are null unless it logs a passport."""

    index: Count
    leaf: Hash
    entry: Annotated[Entry, BESIDE]
    status: PassportStanding | None = None
    ended_by: Annotated[Count | None, Meta(description="the entry that ended the passport")] = None
    reason: Annotated[Reason | None, Meta(description="of its revocation")] = None
    announced: Annotated[
        Text | None, Meta(description="whether the plan that the passport names was logged before it")
    ] = None


class LoggedDrift(Part, frozen=True, kw_only=True):
    """How a passport compares with the one before it on other evidence."""

    earlier: Annotated[Digest, Meta(description="id of the passport before")]
    result: Literal["STABLE", "DRIFTED", "IDENTITY_CHANGED", "UNDERPOWERED", "NOT_COMPARABLE"]
    row: Annotated[Text | None, Meta(description="the row that lost most")]
    loss: Annotated[float | None, Meta(description="of that row, in its unit; below 0: a gain")]
    trend_loss: Annotated[float | None, Meta(description="loss of r_op over the passports so far")]
    trend_p: Annotated[Share | None, Meta(description="p-value of the trend")]


class HistoryRow(Part, frozen=True, kw_only=True):
    """A passport of a lineage: facts, no score. The members from `reading` on are null without its file."""

    index: Count
    issued_at: Text
    passport_id: Digest
    tier: Tier
    status: PassportStanding
    attempt: Annotated[Count, Meta(description="counted by the log")]
    not_after: Text
    ended: Annotated[Ending | None, Meta(description="the entry that ended it, how and why")]
    reading: Annotated[Text | None, Meta(description="the reading that decides")] = None
    verdict: Annotated[Text | None, Meta(description="status of the verdict")] = None
    r_op: Annotated[Share | None, Meta(description="success rate over all fault runs")] = None
    limit: Annotated[Limit | None, Meta(description="lower confidence limit of r_op")] = None
    last_run: Time | None = None
    evidence_days: Annotated[int | None, Meta(description="days since the last run")] = None
    drift: LoggedDrift | None = None
    announced: Annotated[
        Text | None, Meta(description="whether the plan that it names was logged before it")
    ] = None


class RegistryView(Document, frozen=True, kw_only=True, tag="urn:certkit:registry:v1"):
    """A log, or what it holds of one lineage or passport, as of its checkpoint."""

    origin: Text
    size: Annotated[Count, Meta(description="all entries of the log")]
    root: Hash
    vkey: Annotated[Text | None, Meta(description="that signed the checkpoint; null where not checked")]
    signatures: Annotated[
        Literal["checked", "not checked"], Meta(description="of the entries, under a trust policy")
    ]
    left_out: Annotated[Sequence[Count], Meta(description="entries that do not count under the policy")]
    without_effect: Annotated[
        Sequence[Count], Meta(description="entries that name a passport's end, and are not its issuer's")
    ]
    lineage: Text | None = None
    entries: Sequence[ListedEntry]
    history: Annotated[Sequence[HistoryRow], Meta(description="of one lineage, oldest first")] = ()


def show(
    log: LogReader,
    name: str | None = None,
    *,
    at: datetime,
    trust: Trust | None = None,
    expiring: timedelta | None = None,
) -> RegistryView:
    """Return what a log holds.

    Args:
        log: An open log; all its entries are read.
        name: A lineage (``provider/name``, or the name alone where no provider is stated), an entry's index,
            or a passport's id or at least its first 8 digits. None for all entries.
        at: Time for validity and ages.
        trust: Where given, only entries count that its keys signed.
        expiring: Only passports that are valid at `at` and not so much later.

    Raises:
        UsageError: ``registry.unknown``.
        CertkitError: As `LogReader.logged`.
    """
    policy = log.policy(trust)
    passports, counted_entries, left_out = Passports(policy), list[Logged](), list[int]()
    size, plans = 0, Plans(policy, log.plan_of)
    for logged in log.logged():
        size += 1
        if passports.follow(logged):
            plans.follow(logged)
            counted_entries.append(logged)
        else:
            left_out.append(logged.index)
    weak = [logged for logged in counted_entries if not passports.ends(logged)]
    left_out += [logged.index for logged in weak if logged.entry.passport is None]
    issued = {item.claims.passport_id: item for item in passports.issued()}

    def announced(item: LoggedPassport) -> str | None:
        issuers = passports.issuers(item.claims.passport_id)
        return plans.text(item.lineage, plans.plan_of(item.file.sha256), item, issuers)

    entries = [logged for logged in counted_entries if logged.index not in set(left_out)]
    lineage, now = None, timestamp(at)
    history: tuple[HistoryRow, ...] = ()
    if name is not None:
        key = name_key(name if "/" in name else f"-/{name}")
        of_lineage = [logged for logged in entries if name_key(logged.entry.body.subject) == key]
        if of_lineage:
            lineage, entries = of_lineage[0].entry.body.subject, of_lineage
            of_agent = [item for item in issued.values() if name_key(item.lineage) == key]
            history = _history(log, of_agent, announced, at)
        else:
            entries = _named(name, entries, issued, size, where=str(log.folder))
    if expiring is not None:
        until = timestamp(at + expiring)
        soon = {
            item.index
            for item in issued.values()
            if item.standing(now) == "current" and item.claims.not_after <= until
        }
        entries = [logged for logged in entries if logged.index in soon]
    head = log.head.checkpoint
    return RegistryView(
        origin=head.origin,
        size=head.size,
        root=head.root.hex(),
        vkey=str(log.key) if log.key else None,
        signatures="not checked" if trust is None else "checked",
        left_out=sorted(left_out),
        without_effect=[logged.index for logged in weak],
        lineage=lineage,
        entries=[
            _listed(logged, issued, now, None if name is None or lineage else announced) for logged in entries
        ],
        history=history,
    )


def _named(
    ident: str, entries: list[Logged], issued: dict[str, LoggedPassport], size: int, *, where: str
) -> list[Logged]:
    """Return the entries about the passport with an id, or about that of the entry with an index."""
    if is_index(ident, size):
        index = int(ident)
    else:
        firsts = {name: item.index for name, item in issued.items() if begins(name, ident)}
        index = chosen(ident, firsts, where=where)
    named = next((logged for logged in entries if logged.index == index), None)
    if named is None:
        raise UsageError("registry.unknown", f"entry {index} does not count under the policy", where=where)
    passport_id = named.entry.passport_id
    if passport_id is None:
        return [named]
    return [
        logged
        for logged in entries
        if logged.entry.passport_id == passport_id
        or ((ended := ending_of(logged.index, logged.entry)) and ended[0] == passport_id)
    ]


def _listed(
    logged: Logged,
    issued: dict[str, LoggedPassport],
    now: str,
    announced: Callable[[LoggedPassport], str | None] | None,
) -> ListedEntry:
    claims = logged.entry.passport
    item = issued.get(claims.passport_id) if claims else None
    ending = item.ending if item else None
    return ListedEntry(
        index=logged.index,
        leaf=logged.leaf.hex(),
        entry=logged.entry.body,
        status=item.standing(now) if item else None,
        ended_by=ending.index if ending else None,
        reason=ending.reason if ending else None,
        announced=announced(item) if announced and item else None,
    )


# The history of a lineage

_LINE: Final = 7
"""How many passports before the newest one a comparison and its trend use."""


def _history(
    log: LogReader,
    passports: Sequence[LoggedPassport],
    announced: Callable[[LoggedPassport], str | None],
    at: datetime,
) -> tuple[HistoryRow, ...]:
    """Return the facts of each passport, oldest first, with its drift against the one before.

    A passport is compared with the last one before it on other evidence; a file that is missing, or is no
    passport, is passed over.
    """
    sides: dict[str, tuple[str, Evaluation]] = {}
    history: list[HistoryRow] = []
    for issued in passports:
        claims, data = issued.claims, log.passport(issued.file.sha256)
        facts, side = unverified_facts(data), unverified_evaluation(data)
        before = [item for evidence, item in sides.items() if evidence != claims.evidence][-_LINE:]
        history.append(
            HistoryRow(
                index=issued.index,
                issued_at=issued.issued_at,
                passport_id=claims.passport_id,
                tier=claims.tier,
                status=issued.standing(timestamp(at)),
                attempt=claims.attempt,
                not_after=claims.not_after,
                ended=issued.ending,
                reading=facts.reading if facts else None,
                verdict=facts.status if facts else None,
                r_op=facts.r_op if facts else None,
                limit=facts.limit if facts else None,
                last_run=facts.last_run if facts else None,
                evidence_days=(at - facts.last_run).days if facts and facts.last_run else None,
                drift=_drift(before, side) if before and side else None,
                announced=announced(issued),
            )
        )
        if side:
            sides.pop(claims.evidence, None)
            sides[claims.evidence] = claims.passport_id, side
    return tuple(history)


def _drift(before: list[tuple[str, Evaluation]], side: Evaluation) -> LoggedDrift:
    drift = drift_between([earlier for _, earlier in before], side)
    lost = [row for row in drift.behaviour if row.difference is not None]
    most = max(lost, key=lambda row: row.difference or 0.0, default=None)
    return LoggedDrift(
        earlier=before[-1][0],
        result=drift.result,
        row=most.name if most else None,
        loss=most.difference if most else None,
        trend_loss=drift.trend.loss if drift.trend else None,
        trend_p=drift.trend.probability if drift.trend else None,
    )
