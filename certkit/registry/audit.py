"""The audit: everything in a registry's folder, made again from the bytes of its entries.

    report = inspect(folder, trust=policy, heads=heads, at=now)
    report.findings                       # what does not hold, each with a code and a place
    report.not_shown                      # the limits of any look at these files

`folder` holds a registry's database, or a tree that was exported from one. For every entry an audit checks
its index, form, submitter's signature and date, its place in its lineage, the passport that it names, and who
ends a passport. Then it checks every tile, the index, the checkpoint, and the remembered checkpoints.

What is trusted: the trust policy alone. The log's verifier key and the keys of submitters are never read from
the folder. No byte of the registry is changed, and no file is left beside it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, structs

from certkit.ground.document import Count, Document, ErrorCode, Hash, Part, Text
from certkit.ground.errors import CertkitError, Exit, InputError, MismatchError
from certkit.ground.progress import SILENT, Progress
from certkit.ground.wording import many
from certkit.passport.passport import CLOCK_SKEW
from certkit.registry import log as store
from certkit.registry.entry import (
    HARD_LIMIT,
    Claims,
    KeyChange,
    Logged,
    Revocation,
    Supersession,
    moment,
    read,
)
from certkit.registry.fold import (
    EntryDates,
    Lineages,
    LogKeys,
    Passports,
    Plans,
    Policy,
    ending_of,
    outside,
    rows,
    submitters,
)
from certkit.registry.heads import refuse_fork, remembered
from certkit.registry.reader import keys_of_log, log_of, opened, remember, walk
from certkit.registry.writer import checker
from certkit.tlog import tiles, tree
from certkit.tlog.checkpoint import NOBODY, Quorum, counted, open_checkpoint
from certkit.tlog.tiles import Rebuild

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from certkit.passport.trust import Candidate, Trust
    from certkit.registry.entry import Check, PassportFacts
    from certkit.registry.reader import Source
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey
    from certkit.tlog.tree import Hash as LeafHash

_LAST: Final = 253_402_300_799  # the end of the year 9999, later than which there is no datetime
LISTED: Final = 1000
"""How many findings of each code are listed; all are counted."""
UNTRUSTED: Final = "registry.entry-untrusted"
_NOT_THEN: Final = {
    "passport.key-window",
    "passport.expired",
    "passport.not-yet-valid",
    "passport.period-in-future",
}

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
    "whether the passports say what the entries repeat, were valid then, and were ended by their issuers:"
    " this tree holds none"
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


class AuditFinding(Part, frozen=True, kw_only=True):
    """Something that does not hold."""

    code: ErrorCode
    where: Text
    message: Text


class RegistryAudit(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-audit:v1"):
    """What an audit found."""

    result: Literal["sound", "unsound"]
    origin: Text
    size: Count
    root: Annotated[Hash, Meta(description="made from the entries, whatever the checkpoint says")]
    passports: Count
    total: Annotated[Count, Meta(description="all findings; `findings` lists the first 1,000 of each code")]
    findings: Sequence[AuditFinding]
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
        """See `Policy`."""
        submitter = logged.entry.body.submitter
        known = self._submitters.get(submitter)
        return known.issuer if known else submitter

    def issuer(self, logged: Logged) -> str | None:
        """See `Policy`."""
        return self.issuers.get(str(logged.entry.passport_id)) or self.name(logged)

    def is_issuers(self, logged: Logged, issuers: Iterable[str]) -> bool:
        """See `Policy`."""
        by = self.name(logged) if logged.entry.passport is None else self.issuer(logged)
        return by is not None and by in issuers


def inspect(
    folder: Path,
    *,
    trust: Trust,
    heads: Path | None = None,
    since: Checkpoint | None = None,
    at: datetime | None = None,
    progress: Progress = SILENT,
) -> RegistryAudit:
    """Audit the registry, or the exported tree, in `folder` against a trust policy.

    It must continue `since`, and what the file `heads` remembers of it. A sound audit remembers its
    checkpoint there.

    Raises:
        UntrustedError: ``registry.untrusted-log`` where the policy has no key for the log, and what
            `audit` does.
    """
    with opened(folder) as source:
        log = log_of(source, trust, folder)
        if since is not None and since.origin != log.name:
            raise MismatchError(
                "tlog.origin", f"expected a checkpoint of {log.name}, found one of {since.origin}"
            )
        signed = remembered(heads, *keys_of_log(trust, log.name)) if heads else None
        report = audit(
            folder,
            log=log,
            submitters=submitters(trust),
            check=checker(trust),
            remembered=[earlier for earlier in (since, signed) if earlier is not None],
            quorum=Quorum.of(trust.witnesses.k, trust.witnesses.keys),
            at=at,
            progress=progress,
            source=source,
        )
    if heads and not report.total:
        try:
            remember(folder, trust, heads)
        except CertkitError as error:
            return structs.replace(report, notes=(*report.notes, f"not remembered: {error}"))
    return report


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
) -> RegistryAudit:
    """Audit the registry, or the exported tree, in `folder`; what is wrong with it is a finding.

    Args:
        folder: The registry's folder, or the tree's.
        log: The trusted verifier key of the log.
        submitters: The trusted keys that may submit, by id.
        check: Verifies a passport.
        remembered: Earlier checkpoints of the log, which it must continue.
        quorum: The witnesses that must have cosigned its checkpoint.
        at: Latest time of an entry or cosignature.
        progress: Receives how far it is.
        source: The log, where it is open already.

    Raises:
        CertkitError: As `opened`.
    """
    work = _Work(folder, log, submitters, check, quorum=quorum, at=at)
    try:
        with opened(folder) if source is None else nullcontext(source) as its:
            work.run(its, remembered, progress)
    except MismatchError as error:
        work.note("registry.damaged", store.FILE, error.message)
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
        self._findings: list[AuditFinding] = []
        self._counts: Counter[str] = Counter()
        self._notes: list[str] = []
        self._size = 0
        self._lineages = Lineages()
        self._keys = LogKeys(log.name)
        self._newest = ""
        self._dates = EntryDates(at)
        self._policy = _Verified(log.name, submitters)
        self._endings = Passports(self._policy)
        self._planned: dict[str, tuple[str, PassportFacts]] = {}
        self._plan_of: dict[str, str] = {}
        self._plans = Plans(self._policy, self._plan_of.get)
        self._structure = Rebuild(lambda _level, _n: b"", lambda _level, _n, _row: None)
        self._passports = True

    def note(self, code: str, where: str, message: str) -> None:
        """Note down what does not hold."""
        self._counts[code] += 1
        if self._counts[code] <= LISTED:
            self._findings.append(AuditFinding(code=code, where=where, message=message))

    def run(self, source: Source, remembered: Sequence[Checkpoint], progress: Progress) -> None:
        """Go through everything."""
        self._source, self._passports = source, source.passports
        self._index = source.index()
        self._row = next(self._index, None)
        self._structure = Rebuild(source.tile, self._differs)
        try:
            for batch in walk(source, progress, "auditing", source.count()):
                self._structure.add([leaf for _, _, leaf in batch])
                for index, data, leaf in batch:
                    self._entry(index, data, leaf)
        except InputError as error:
            self.note("registry.leaf", f"entry {self._size}", error.message)
        while self._row is not None:
            self._surplus()
        self._structure.finish()
        self._checkpoint(remembered)
        for fault in source.faults(self._key):
            self.note(*fault)

    def report(self) -> RegistryAudit:
        """Return what was found."""
        return RegistryAudit(
            result="unsound" if self._findings else "sound",
            origin=self._key.name,
            size=self._size,
            root=self._structure.root.hex(),
            passports=self._lineages.passports,
            total=self._counts.total(),
            findings=tuple(self._findings),
            notes=(*self._notes, *self._plan_notes()),
            not_shown=unshown(self._quorum.k, self._witnessed, passports=self._passports),
        )

    def _plan_notes(self) -> Iterator[str]:
        """Say of the passports that name a plan by whom and when it was announced."""
        for where, facts in islice(self._planned.values(), LISTED):
            passport = self._endings.logged(facts.passport_id)
            issuers = self._endings.issuers(facts.passport_id)
            yield f"{where}: {self._plans.text(facts.lineage, facts.plan, passport, issuers)}"
        if (more := len(self._planned) - LISTED) > 0:
            yield f"{many(more, 'more passport')} of trials"

    def _differs(self, level: int, n: int, _row: bytes) -> None:
        self.note("registry.tile-differs", f"tile {level}/{n}", "not what the entries give")

    def _checkpoint(self, remembered: Sequence[Checkpoint]) -> None:
        if self._keys.last not in {None, str(self._key)}:
            message = f"the entries hand the log over to {self._keys.last}, which is not the trusted key"
            self.note("registry.log-keys", "log key", message)
        try:
            signed = open_checkpoint(self._source.note(), self._key, self._quorum.keys)
        except CertkitError as error:
            self.note("registry.checkpoint", "checkpoint", error.message)
            return
        head = signed.checkpoint
        # A key that the log gave up, which its entries tell, is nobody else's.
        witnesses = [signature for signature in signed.cosigned if signature.key.public not in self._keys.had]
        cosigned = counted(witnesses, self._limit)
        if not self._quorum.is_met(cosigned):
            message = f"{len(cosigned)} of {self._quorum.k} required witnesses cosigned"
            self.note("registry.witnesses", "checkpoint", message)
        else:
            self._witnessed = self._quorum.since(cosigned)
        if head.size != self._size:
            message = f"signed for {many(head.size, 'entry')}, found {self._size:,}"
            self.note("registry.checkpoint", "checkpoint", message)
        elif head.root != self._structure.root:
            self.note("registry.checkpoint", "checkpoint", "the signed root is not that of the entries")
        else:
            self._continues(head, remembered)

    def _continues(self, head: Checkpoint, remembered: Sequence[Checkpoint]) -> None:
        def root_at(size: int) -> LeafHash:
            read = tiles.verified(head.size, head.root, self._source.tile)
            return tree.root(size, tiles.node_reader(read))

        for earlier in dict.fromkeys(remembered):
            try:
                refuse_fork(earlier, head, root_at)
                size = many(earlier.size, "entry")
                self._notes.append(f"it continues a checkpoint over {size} that was remembered")
            except MismatchError as error:
                self.note("registry.rollback", "checkpoint", error.message)

    def _entry(self, index: int, data: Any, leaf: LeafHash) -> None:
        if index != self._size or not isinstance(data, bytes) or len(data) > HARD_LIMIT:
            self.note("registry.leaf", f"entry {self._size}", f"expected an entry, found index {index}")
            self._size = index
        self._size += 1
        where = f"entry {index}"
        if not isinstance(data, bytes):
            return
        try:
            logged = Logged(index, leaf, read(data))
        except InputError as error:
            self.note("registry.entry", where, error.message)
            return
        self._indexed(where, logged)
        signed = self._signature(where, logged)
        for message in self._dates.follow(index, logged.entry, signed=signed):
            self.note("registry.time", where, message)
        for message in self._lineages.follow(logged):
            self.note("registry.chain", where, message)
        claims = logged.entry.claims
        if isinstance(claims, Claims) and self._passports:
            self._passport(where, logged, claims)
        if signed:
            self._plans.follow(logged)
        if signed and not isinstance(claims, KeyChange):
            self._ends(where, logged)

    def _indexed(self, where: str, logged: Logged) -> None:
        """Compare an entry with its rows in the index, where the source has one."""
        if not self._source.indexed:
            return
        while self._row is not None and self._row[0] < logged.index:
            self._surplus()
        row, ending = rows(self._key.name, logged.index, logged.entry, self._newest)
        self._newest = row.newest
        if self._row is None or self._row[0] > logged.index:
            self.note("registry.index", where, "the index has no row for it")
            return
        if self._row != (*row, *(ending or (None,) * 6)):
            self.note("registry.index", where, "its rows in the index are not what the entry gives")
        self._row = next(self._index, None)

    def _surplus(self) -> None:
        if self._row is not None:
            self.note("registry.index", f"entry {self._row[0]}", "the index has a row for no entry")
            self._row = next(self._index, None)

    def _signature(self, where: str, logged: Logged) -> bool:
        """Hold an entry against its submitter's key; tell whether that one signed it."""
        entry, claims = logged.entry.body, logged.entry.claims
        if isinstance(claims, KeyChange):
            if message := self._keys.follow(logged.entry, claims):
                self.note("registry.log-keys", where, message)
            return not message
        known = self._submitters.get(entry.submitter)
        if known is None:
            self.note(UNTRUSTED, where, f"submitted by an untrusted key, {entry.submitter}")
            return False
        try:
            logged.entry.verify(known.key)
        except CertkitError as error:
            self.note("registry.entry-signature", where, error.message)
            return False
        ends = isinstance(claims, Revocation | Supersession)  # for which no word comes too late
        if not ends and (message := outside(known, entry.issued_at)):
            self.note(UNTRUSTED, where, message)
        if entry.log != self._key.name:
            self.note("registry.entry-signature", where, f"signed for another log, {entry.log}")
        return entry.log == self._key.name

    def _passport(self, where: str, logged: Logged, claims: Claims) -> None:
        """Compare a passport with its entry."""
        body = logged.entry.body
        stored = body.passport
        if stored is None or (data := store.load_blob(self._folder, stored.sha256)) is None:
            self.note("registry.blob-missing", where, "the passport's file is not in blobs/")
            return
        if hashlib.sha256(data).hexdigest() != stored.sha256 or len(data) != stored.size:
            self.note("registry.blob-changed", where, f"blobs/{stored.sha256[:2]}/{stored.sha256} differs")
            return
        try:
            facts = self._check(data, moment(body.issued_at))
        except CertkitError as error:
            code = "registry.time" if error.code in _NOT_THEN else "registry.passport"
            code = UNTRUSTED if error.exit_code is Exit.UNTRUSTED else code
            self.note(code, where, f"{error.message} [{error.code}]")
            return
        self._policy.issuers[facts.passport_id] = facts.issuer
        if (facts.attempt or 1) < claims.attempt:
            message = f"declares attempt {facts.attempt or 1}, and is attempt {claims.attempt} in this log"
            self.note("registry.attempt", where, message)
        if facts.lineage != body.subject or Claims.of(facts, claims.attempt) != claims:
            self.note("registry.claims", where, "the entry claims something else than the passport")
        self._plan_of[stored.sha256] = facts.plan or ""
        if facts.plan:
            self._planned.setdefault(facts.passport_id, (where, facts))
        signer = self._policy.issuer(logged)
        if reason := self._lineages.replaces(logged, claims, signer):
            self.note("registry.chain", where, reason)
        if not self._endings.refuted(facts.lineage, signer).isdisjoint({facts.evidence, *facts.bundles}):
            self.note(
                "registry.evidence-false", where, "it rests on evidence that its issuer revoked as false"
            )

    def _ends(self, where: str, logged: Logged) -> None:
        """Follow an entry, and note one that ends a passport of another issuer."""
        self._endings.follow(logged)
        ended = ending_of(logged.index, logged.entry)
        if ended is None or ended[0] not in self._policy.issuers or self._endings.ends(logged):
            return
        issuer = self._policy.issuers[ended[0]]
        if logged.entry.passport is None:
            message = f"{self._policy.name(logged)} ends a passport that {issuer} issued"
            self.note("registry.not-issuer", where, message)
        else:
            by = self._policy.issuer(logged)
            self._notes.append(f"{where}: its 'supersedes' has no effect; {by} issued it, {issuer} the other")
