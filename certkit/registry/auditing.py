"""The audit: everything in a registry's folder, made again from the bytes of its entries.

    report = audit(folder, log=trusted_vkey, submitters=trusted_keys, check=check)
    report.findings                       # what does not hold, each with a code and a place
    report.not_shown                      # the limits of any look at these files

`folder` holds a registry's database, or the tree that was exported from one. The log's verifier key and the
keys of those who may submit are never read from it. `check` verifies a passport's signature.

For every entry: its index, form, submitter's signature and date, its place in its lineage, the passport that
it names, the drift that follows from that one, and who ends a passport. Then every tile, the checkpoint, and
the checkpoints that are remembered. No byte of the registry is changed, and nothing is left beside it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta

from certkit.ground.document import Count, Document, ErrorCode, Hash, Part, Text
from certkit.ground.errors import CertkitError, Exit, InputError, MismatchError
from certkit.ground.progress import SILENT, Progress
from certkit.passport.checks import CLOCK_SKEW
from certkit.registry import store
from certkit.registry.drifts import Drifts
from certkit.registry.entry import (
    HARD_LIMIT,
    Claims,
    Drift,
    KeyChange,
    Logged,
    Revocation,
    Supersession,
    moment,
    read,
)
from certkit.registry.heads import refuse_fork
from certkit.registry.log import LogKeys
from certkit.registry.source import opened, walk
from certkit.registry.state import Dates, Lineages, Passports, Policy, outside
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import NOBODY, Quorum, counted, open_checkpoint
from certkit.tlog.tiles import Rebuild

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from certkit.passport.trust import Candidate
    from certkit.registry.entry import Check
    from certkit.registry.source import Source
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey
    from certkit.tlog.tree import Hash as LeafHash

_LAST: Final = 253_402_300_799  # the end of the year 9999, later than which there is no datetime
LISTED: Final = 1000
"""How many findings of each code are listed; all are counted."""
UNTRUSTED: Final = "registry.entry-untrusted"
_NOT_THEN: Final = {"passport.key-window", "passport.expired", "passport.not-yet-valid"}

NOT_SHOWN: Final = (
    (
        "whether a later state was undone by putting older files back: a checkpoint remembered elsewhere, or"
        " a witness, would show it"
    ),
    "whether the log's key was used to sign a shorter or different log later: the same would show it",
    "whether others are shown a different log under the same key: the same would show it",
    "whether a passport was issued and never submitted",
)
NO_WITNESS: Final = (
    "what the holder of the log's key did: your policy asks for no witness, so only a checkpoint that someone"
    " remembers can show the next three"
)
NO_PASSPORTS: Final = (
    "whether the passports say what the entries repeat, were valid then, drifted as the entries tell, and"
    " were ended by their issuers: this tree holds none"
)


def unshown(k: int, witnessed: int | None, *, passports: bool) -> tuple[str, ...]:
    """Return what an audit could not see; `k` witnesses vouch up to a time (Unix seconds), or not."""
    more = () if passports else (NO_PASSPORTS,)
    if witnessed is None:
        return (*(() if k else (NO_WITNESS,)), *NOT_SHOWN, *more)
    time = datetime.fromtimestamp(witnessed, UTC).isoformat().replace("+00:00", "Z")
    who = "1 witness vouches" if k == 1 else f"{k} witnesses vouch"
    return (
        f"whether anything was undone or shown otherwise after {time}: up to then {who} that nothing was",
        NOT_SHOWN[-1],
        *more,
    )


class Finding(Part, frozen=True, kw_only=True):
    """Something that does not hold."""

    code: ErrorCode
    where: Text
    message: Text


class Audit(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-audit:v1"):
    """What an audit found."""

    result: Literal["sound", "unsound"]
    origin: Text
    size: Count
    root: Annotated[Hash, Meta(description="made from the entries, whatever the checkpoint says")]
    passports: Count
    total: Annotated[Count, Meta(description="all findings; `findings` lists the first 1,000 of each code")]
    findings: Sequence[Finding]
    notes: Annotated[Sequence[Text], Meta(description="what is unusual and harmless")]
    not_shown: Sequence[Text]

    @property
    def exit_code(self) -> Exit:
        """What the findings amount to: `UNTRUSTED` where nothing else is wrong."""
        codes = {finding.code for finding in self.findings}
        return Exit.MISMATCH if codes - {UNTRUSTED} else Exit.UNTRUSTED if codes else Exit.OK


class _Verified(Policy):
    """The policy of an audit, which verifies signatures itself: of what it has verified, everything counts.

    `issuers` says of each passport that verified who issued it.
    """

    def __init__(self, origin: str, submitters: Mapping[str, Candidate]) -> None:
        super().__init__(origin)
        self._submitters = submitters
        self.issuers: dict[str, str | None] = {}

    def name(self, logged: Logged) -> str:
        """Return the policy's name for who submitted an entry."""
        submitter = logged.found.entry.submitter
        known = self._submitters.get(submitter)
        return known.issuer if known else submitter

    def issuer(self, logged: Logged) -> str | None:
        """See `Policy`."""
        return self.issuers.get(str(logged.found.passport_id)) or self.name(logged)

    def is_issuers(self, logged: Logged, issuers: Iterable[str]) -> bool:
        """See `Policy`."""
        return self.name(logged) in issuers


def audit(
    folder: Path,
    *,
    log: VerifierKey,
    submitters: Mapping[str, Candidate],
    check: Check,
    remembered: Sequence[Checkpoint] = (),
    quorum: Quorum = NOBODY,
    at: datetime | None = None,
    progress: Progress = SILENT,
    source: Source | None = None,
) -> Audit:
    """Audit the registry, or the exported tree, in `folder`, or what is open of it already, its `source`.

    `log` is the trusted verifier key; `quorum` are the witnesses that must have cosigned its checkpoint;
    `submitters` are the trusted keys by id; `remembered` are earlier checkpoints of the log, which it must
    continue; no entry is to be dated later than `at`, and cosignatures that are do not count. Raises as
    `opened` does, but that what is wrong with the registry is a finding.
    """
    work = _Work(folder, log, submitters, check, quorum=quorum, at=at)
    try:
        with opened(folder) if source is None else nullcontext(source) as its:
            work.run(its, remembered, progress)
    except MismatchError as error:
        work.found("registry.damaged", store.FILE, error.message)
    return work.report()


class _Work:
    """One audit under way."""

    def __init__(
        self,
        folder: Path,
        log: VerifierKey,
        submitters: Mapping[str, Candidate],
        check: Check,
        *,
        quorum: Quorum,
        at: datetime | None,
    ) -> None:
        self._limit = _LAST if at is None else (at + CLOCK_SKEW).timestamp()
        self._folder, self._key, self._submitters, self._check = folder, log, submitters, check
        self._quorum = quorum
        self._witnessed: int | None = None
        self._findings: list[Finding] = []
        self._counts: Counter[str] = Counter()
        self._notes: list[str] = []
        self._size = 0
        self._lineages = Lineages()
        self._keys = LogKeys(log.name)
        self._drifts = Drifts(partial(store.intact_blob, folder))
        self._dates = Dates(at)
        self._policy = _Verified(log.name, submitters)
        self._endings = Passports(self._policy)
        self._structure = Rebuild(lambda _level, _n: b"", lambda _level, _n, _row: None)
        self._passports = True

    def found(self, code: str, where: str, message: str) -> None:
        """Note down what does not hold."""
        self._counts[code] += 1
        if self._counts[code] <= LISTED:
            self._findings.append(Finding(code=code, where=where, message=message))

    def run(self, source: Source, remembered: Sequence[Checkpoint], progress: Progress) -> None:
        """Go through everything."""
        self._source, self._passports = source, source.passports
        self._structure = Rebuild(source.tile, self._differs)
        try:
            for batch in walk(source, progress, "auditing", source.count()):
                self._structure.add([leaf for _, _, leaf in batch])
                for index, data, leaf in batch:
                    self._entry(index, data, leaf)
        except InputError as error:
            self.found("registry.leaf", f"entry {self._size}", error.message)
        for where, message in self._drifts.left_out():
            self.found("registry.drift", where, message)
        self._structure.finish()
        self._checkpoint(remembered)
        for fault in source.faults(self._key):
            self.found(*fault)
        for names in self._lineages.alike():
            self._notes.append(f"the lineages {', '.join(map(repr, names))} differ in spelling alone")

    def report(self) -> Audit:
        """Return what was found."""
        return Audit(
            result="unsound" if self._findings else "sound",
            origin=self._key.name,
            size=self._size,
            root=self._structure.root.hex(),
            passports=self._lineages.passports,
            total=self._counts.total(),
            findings=tuple(self._findings),
            notes=tuple(self._notes),
            not_shown=unshown(self._quorum.k, self._witnessed, passports=self._passports),
        )

    def _differs(self, level: int, n: int, _row: bytes) -> None:
        self.found("registry.tile-differs", f"tile {level}/{n}", "not what the entries give")

    def _checkpoint(self, remembered: Sequence[Checkpoint]) -> None:
        if self._keys.last not in {None, str(self._key)}:
            message = f"the entries hand the log over to {self._keys.last}, which is not the trusted key"
            self.found("registry.log-keys", "log key", message)
        try:
            signed = open_checkpoint(self._source.note(), self._key, self._quorum.keys)
        except CertkitError as error:
            self.found("registry.checkpoint", "checkpoint", error.message)
            return
        head = signed.checkpoint
        # A key that the log gave up, which its entries tell, is nobody else's.
        witnesses = [signature for signature in signed.cosigned if signature.key.public not in self._keys.had]
        cosigned = counted(witnesses, self._limit)
        if not self._quorum.is_met(cosigned):
            message = f"{len(cosigned)} of {self._quorum.k} required witnesses cosigned"
            self.found("registry.witnesses", "checkpoint", message)
        else:
            self._witnessed = self._quorum.since(cosigned)
        if head.size != self._size:
            message = f"signed for {head.size:,} entries, found {self._size:,}"
            self.found("registry.checkpoint", "checkpoint", message)
        elif head.root != self._structure.root:
            self.found("registry.checkpoint", "checkpoint", "the signed root is not that of the entries")
        else:
            self._continues(head, remembered)

    def _continues(self, head: Checkpoint, remembered: Sequence[Checkpoint]) -> None:
        def root_at(size: int) -> LeafHash:
            read = tiles.verified(head.size, head.root, self._source.tile)
            return tree.root(size, tiles.node_reader(read))

        for earlier in dict.fromkeys(remembered):
            many = f"{earlier.size:,} {'entry' if earlier.size == 1 else 'entries'}"
            try:
                refuse_fork(earlier, head, root_at)
                self._notes.append(f"it continues a checkpoint over {many} that was remembered")
            except MismatchError as error:
                self.found("registry.rollback", "checkpoint", error.message)

    def _entry(self, index: int, data: Any, leaf: LeafHash) -> None:
        if index != self._size or not isinstance(data, bytes) or len(data) > HARD_LIMIT:
            self.found("registry.leaf", f"entry {self._size}", f"expected an entry, found index {index}")
            self._size = index
        self._size += 1
        where = f"entry {index}"
        if not isinstance(data, bytes):
            return
        try:
            logged = Logged(index, leaf, read(data))
        except InputError as error:
            self.found("registry.entry", where, error.message)
            return
        signed = self._signature(where, logged)
        for message in self._dates.follow(index, logged.found, signed=signed):
            self.found("registry.time", where, message)
        for message in self._lineages.follow(logged):
            self.found("registry.chain", where, message)
        claims = logged.found.claims
        if isinstance(claims, Claims) and self._passports:
            sound = self._passport(where, logged, claims)
            self._drifts.passport(where, logged.found.entry.subject, claims, sound)
        elif isinstance(claims, Drift) and self._passports and (wrong := self._drifts.follow(claims)):
            self.found("registry.drift", where, wrong)
        if signed and not isinstance(claims, KeyChange):
            self._ends(where, logged)

    def _signature(self, where: str, logged: Logged) -> bool:
        """Hold an entry against its submitter's key; tell whether that one signed it."""
        entry, claims = logged.found.entry, logged.found.claims
        if isinstance(claims, KeyChange):
            if message := self._keys.follow(logged.found, claims):
                self.found("registry.log-keys", where, message)
            return not message
        known = self._submitters.get(entry.submitter)
        if known is None:
            self.found(UNTRUSTED, where, f"submitted by an untrusted key, {entry.submitter}")
            return False
        try:
            logged.found.verify(known.key)
        except CertkitError as error:
            self.found("registry.entry-signature", where, error.message)
            return False
        ends = isinstance(claims, Revocation | Supersession)  # for which no word comes too late
        if not ends and (message := outside(known, entry.issued_at)):
            self.found(UNTRUSTED, where, message)
        if entry.log != self._key.name:
            self.found("registry.entry-signature", where, f"signed for another log, {entry.log}")
        return entry.log == self._key.name

    def _passport(self, where: str, logged: Logged, claims: Claims) -> str | None:
        """Hold a passport against its entry; return the digest of its file where that is sound."""
        entry = logged.found.entry
        stored = entry.passport
        if stored is None or (data := store.load_blob(self._folder, stored.sha256)) is None:
            self.found("registry.blob-missing", where, "the passport's file is not in blobs/")
            return None
        if hashlib.sha256(data).hexdigest() != stored.sha256 or len(data) != stored.size:
            self.found("registry.blob-changed", where, f"blobs/{stored.sha256[:2]}/{stored.sha256} differs")
            return None
        try:
            facts = self._check(data, moment(entry.issued_at))
        except CertkitError as error:
            code = "registry.time" if error.code in _NOT_THEN else "registry.passport"
            code = UNTRUSTED if error.exit_code is Exit.UNTRUSTED else code
            self.found(code, where, f"{error.message} [{error.code}]")
            return None
        self._policy.issuers[facts.passport_id] = facts.issuer
        if (facts.attempt or 1) < claims.attempt:
            message = f"declares attempt {facts.attempt or 1}, and is attempt {claims.attempt} in this log"
            self.found("registry.attempt", where, message)
        if facts.lineage != entry.subject or Claims.of(facts, claims.attempt) != claims:
            self.found("registry.claims", where, "the entry claims something else than the passport")
        if not self._endings.refuted(facts.lineage).isdisjoint({facts.evidence, *facts.bundles}):
            self.found("registry.evidence-false", where, "it rests on evidence that was revoked as false")
        return stored.sha256

    def _ends(self, where: str, logged: Logged) -> None:
        """Hold an entry against what ended passports before it."""
        self._endings.follow(logged)
        passport_id = str(logged.found.passport_id)
        if passport_id in self._policy.issuers and not self._endings.ends(logged):
            name, issuer = self._policy.name(logged), self._policy.issuers[passport_id]
            self.found("registry.not-issuer", where, f"{name} ends a passport that {issuer} issued")
