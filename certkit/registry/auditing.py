"""The audit: everything in a registry's folder, made again from the bytes of its entries.

    report = audit(folder, log=trusted_vkey, submitters=trusted_keys, check=check)
    report.findings                       # what does not hold, each with a code and a place
    report.not_shown                      # the limits of any look at these files

`folder` holds a registry's database, or the tree that was exported from one. Two things come from outside
and are never read from it: the log's verifier key and the keys of those who may submit. `check` verifies a
passport's signature; that one has expired since is no finding.

What is done, in this order, for every entry: (1) its index follows the one before; (2) its bytes are
hashed into the tree; (3) its form is read, which has to be the canonical one, and its submitter's signature
verified, which for a change of the log's key is the old one; (4) its date is none before those above it, nor
to come; (5) `prev`, the number of the attempt and what is superseded follow from the entries before it in its
lineage; (6) the passport that it names is there, has the digest and size, verifies, and claims what the entry
repeats; (7) a drift is what a comparison of the two passports gives, and none is left out; (8) who ends a
passport is its issuer, and it was not ended so before, nor does a later one rest on evidence that was false.
Then every tile is compared with the one made again, and the checkpoint
with the root, with the trusted key and with the checkpoints that are remembered. No byte of the registry is
changed, and nothing is left beside it.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from certkit.errors import CertkitError, Exit, InputError, MismatchError
from certkit.passport.checks import CLOCK_SKEW
from certkit.progress import SILENT, Progress
from certkit.registry import store
from certkit.registry.audited import Audit, Finding, Verified, unshown
from certkit.registry.drifts import Drifts
from certkit.registry.entry import (
    HARD_LIMIT,
    Claims,
    Drift,
    KeyChange,
    Logged,
    Revocation,
    Supersession,
    UnverifiedEntry,
    read,
)
from certkit.registry.heads import refuse_fork
from certkit.registry.reader import opened, walk
from certkit.registry.rules import Dates, Lineages, LogKeys, Rest, is_written_so, outside
from certkit.registry.state import Passports
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.rebuild import Rebuild
from certkit.tlog.witness import NOBODY, Quorum, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from certkit.passport.trust import Candidate
    from certkit.registry.entry import Check
    from certkit.registry.source import Fault, Source
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.hashing import Hash
    from certkit.tlog.note import VerifierKey

_LAST: Final = 253_402_300_799  # the end of the year 9999, later than which there is no datetime
LISTED: Final = 1000
"""How many findings are listed; all are counted."""


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
    `submitters` are the trusted keys by id, each with the window that its entries are to be dated in and with
    the name under which it may revoke; `check` returns the facts of a passport whose signature holds;
    `remembered` are earlier checkpoints of the log, which it must continue; no entry is to be dated later
    than `at`, and cosignatures that are do not count. Raises as `opened` does, but that what is wrong with
    the registry is a finding.
    """
    work = _Work(folder, log, submitters, check, quorum=quorum, at=at)
    try:
        with ExitStack() as undo:
            work.run(undo.enter_context(opened(folder)) if source is None else source, remembered, progress)
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
        self._total = 0
        self._untrusted = 0
        self._notes: list[str] = []
        self._size = 0
        self._lineages = Lineages()
        self._keys = LogKeys(log.name)
        self._drifts = Drifts(partial(store.intact_blob, folder))
        self._dates = Dates(at)
        self._policy = Verified(log.name, {name: key.issuer for name, key in submitters.items()})
        self._endings = Passports(self._policy)
        self._unclear: list[int] = []
        self._blobs: set[str] = set()
        self._structure = Rebuild(lambda _level, _n: b"", lambda _level, _n: None)
        self._passports = True

    def found(self, code: str, where: str, message: str, exit_code: Exit = Exit.MISMATCH) -> None:
        """Note down what does not hold."""
        self._total += 1
        self._untrusted += exit_code is Exit.UNTRUSTED
        if len(self._findings) < LISTED:
            self._findings.append(Finding(code, where, message, exit_code))

    def run(self, source: Source, remembered: Sequence[Checkpoint], progress: Progress) -> None:
        """Go through everything."""
        self._source, self._passports = source, source.passports
        self._structure = Rebuild(source.tile, self._differs)
        grow, size = self._structure.add, source.count()
        try:
            for index, data, leaf in walk(source, grow, progress=progress, label="auditing", size=size):
                self._entry(index, data, leaf)
        except InputError as error:
            self.found("registry.leaf", f"entry {self._size}", error.message)
        for where, message in self._drifts.left_out():
            self.found("registry.drift", where, message)
        self._structure.finish()
        self._faults(source.surplus(set(self._structure.tiles())))
        self._checkpoint(remembered)
        self._faults(source.faults(self._key.name, str(self._key)))
        self._notes += (*self._left_open(), *self._drifts.notes)
        self._notes += source.notes(self._blobs)

    def report(self) -> Audit:
        """Return what was found."""
        exit_code = Exit.MISMATCH if self._total > self._untrusted else Exit.UNTRUSTED
        return Audit(
            origin=self._key.name,
            size=self._size,
            root=self._structure.root.hex(),
            passports=len(self._lineages.passports),
            total=self._total,
            findings=tuple(self._findings),
            notes=tuple(self._notes),
            exit_code=exit_code if self._total else Exit.OK,
            not_shown=unshown(self._quorum.k, self._witnessed, passports=self._passports),
        )

    def _faults(self, faults: Iterator[Fault]) -> None:
        for fault in faults:
            self.found(*fault)

    # The tree

    def _differs(self, level: int, n: int) -> None:
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
        def root_at(size: int) -> Hash:
            read = tiles.verified(head.size, head.root, self._source.tile)
            return tree.root(size, tiles.node_reader(read))

        for earlier in dict.fromkeys(remembered):
            many = "1 entry" if earlier.size == 1 else f"{earlier.size:,} entries"
            try:
                refuse_fork(earlier, head, root_at)
                self._notes.append(f"it continues a checkpoint over {many} that was remembered")
            except MismatchError as error:
                self.found("registry.rollback", "checkpoint", error.message)

    # One entry

    def _entry(self, index: int, data: Any, leaf: Hash) -> None:
        if index != self._size or not isinstance(data, bytes) or len(data) > HARD_LIMIT:
            self.found("registry.leaf", f"entry {self._size}", f"expected an entry, found index {index}")
            self._size = index
        self._size += 1
        where = f"entry {index}"
        try:
            unverified = read(data) if isinstance(data, bytes) else None
        except CertkitError as error:
            self.found("registry.entry", where, error.message)
            return
        if unverified is None:
            return
        if not is_written_so(data, unverified):
            self.found("registry.entry", where, "not in the canonical form, in which entries are written")
        signed = self._signature(where, unverified)
        for message in self._dates.follow(index, unverified, signed=signed):
            self.found("registry.time", where, message)
        for message in self._lineages.follow(index, leaf, unverified):
            self.found("registry.chain", where, message)
        self._about(where, unverified)
        if signed and not isinstance(unverified.claims, KeyChange):
            self._ends(where, Logged(index, leaf, unverified))

    def _about(self, where: str, unverified: UnverifiedEntry) -> None:
        if unverified.passport is not None and self._passports:
            sound = self._passport(where, unverified, unverified.passport)
            self._drifts.passport(where, unverified.entry.subject, unverified.passport, sound)
        elif (
            isinstance(unverified.claims, Drift)
            and self._passports
            and (wrong := self._drifts.follow(where, unverified.claims))
        ):
            self.found("registry.drift", where, wrong)

    def _signature(self, where: str, unverified: UnverifiedEntry) -> bool:
        """Hold an entry against its submitter's key; tell whether that one signed it."""
        if isinstance(unverified.claims, KeyChange):
            if message := self._keys.follow(unverified, unverified.claims):
                self.found("registry.log-keys", where, message)
            return not message
        known = self._submitters.get(unverified.entry.submitter)
        if known is None:
            message = f"submitted by an untrusted key, {unverified.entry.submitter}"
            self.found("registry.entry-untrusted", where, message, Exit.UNTRUSTED)
            return False
        try:
            unverified.verify(known.key)
        except CertkitError as error:
            self.found("registry.entry-signature", where, error.message)
            return False
        ends = isinstance(unverified.claims, Revocation | Supersession)  # for which no word comes too late
        if not ends and (message := outside(known, unverified.entry.issued_at)):
            self.found("registry.entry-untrusted", where, message, Exit.UNTRUSTED)
        is_for_it = unverified.entry.is_for(self._key.name)
        if not is_for_it:
            self.found("registry.entry-signature", where, f"signed for another log, {unverified.entry.log}")
        return is_for_it

    def _passport(self, where: str, unverified: UnverifiedEntry, claims: Claims) -> str | None:
        """Hold a passport against its entry; return the digest of its file where that is sound."""
        stored = unverified.entry.passport
        data = store.load_blob(self._folder, stored.sha256) if stored else None
        if stored is None or data is None:
            self.found("registry.blob-missing", where, "the passport's file is not in blobs/")
            return None
        self._blobs.add(stored.sha256)
        if hashlib.sha256(data).hexdigest() != stored.sha256 or len(data) != stored.size:
            self.found("registry.blob-changed", where, f"blobs/{stored.sha256[:2]}/{stored.sha256} differs")
            return None
        try:
            facts = self._check(data)
        except CertkitError as error:
            exit_code = Exit.UNTRUSTED if error.exit_code is Exit.UNTRUSTED else Exit.MISMATCH
            self.found("registry.passport", where, f"{error.message} [{error.code}]", exit_code)
            return None
        self._policy.facts[facts.passport_id] = (
            facts.issuer,
            Rest(frozenset(facts.bundles or (facts.evidence,)), facts.runs),
        )
        if facts.key_until is not None and unverified.entry.issued_at > facts.key_until:
            message = f"logged when its key was no longer trusted, which is till {facts.key_until}"
            self.found("registry.time", where, message)
        known = Claims.of(facts, claims.attempt)
        if (facts.attempt or 1) < claims.attempt:
            message = f"declares attempt {facts.attempt or 1}, and is attempt {claims.attempt} in this log"
            self.found("registry.attempt", where, message)
        if facts.lineage != unverified.entry.subject or known != claims:
            self.found("registry.claims", where, "the entry claims something else than the passport")
        return stored.sha256

    # What ends a passport

    def _ends(self, where: str, logged: Logged) -> None:
        """Hold an entry against what ended passports before it."""
        self._endings.follow(logged)
        claims = logged.found.claims
        if isinstance(claims, Claims):
            rest = self._policy.evidence(claims)
            for by, false in self._endings.refuted(logged.found.entry.subject):
                if rest.repeats(false):
                    message = f"rests on evidence that entry {by} revoked as false"
                    self.found("registry.evidence-false", where, message)
                    break
        elif isinstance(claims, Revocation | Supersession):
            if self._endings.ends(logged):
                if (before := self._endings.said_before(logged)) is not None:
                    self.found("registry.chain", where, f"entry {before} has ended it already")
            elif claims.passport_id in self._policy.facts:
                name, issuer = self._policy.name(logged), self._policy.facts[claims.passport_id][0]
                self.found("registry.not-issuer", where, f"{name} ends a passport that {issuer} issued")
            else:
                self._unclear.append(logged.index)

    def _left_open(self) -> Iterator[str]:
        """Yield what the entries leave open."""
        if unclear := self._unclear:
            many = f"{len(unclear):,} passports are" if len(unclear) > 1 else "1 passport is"
            yield (
                f"{many} ended by somebody else than who submitted it, the first by entry {unclear[0]}:"
                " who issued it, no file here tells"
            )
        for names in self._lineages.alike():
            yield f"the lineages {', '.join(map(repr, names))} differ in spelling alone"
        for issued in self._endings.issued():
            refuted = () if issued.ending else self._endings.refuted(issued.lineage)
            rest = self._policy.rest(issued)
            for by, false in refuted:
                if rest.repeats(false):
                    logs = f"entry {issued.index} logs a passport"
                    yield f"{logs} on evidence that entry {by} revoked as false; it stands"
                    break
