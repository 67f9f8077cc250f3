"""What the next entry says: signed by who submits it, chained to the one before it in its lineage.

    drafts = Drafts(ledger)
    drafts.entry("lab/agent", drafts.claims(facts), submitter=key, at=now, passport=file)

To be used inside the transaction that logs the entry, which the ledger has followed to the log's end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from certkit.errors import InputError, MismatchError
from certkit.passport import keys
from certkit.registry.entry import CLAIMS, Claims, Entry, KeyChange, timestamp, write
from certkit.registry.rules import is_before

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from certkit.passport.keys import PrivateKey
    from certkit.registry.entry import AnyClaims, PassportFacts, Stored
    from certkit.registry.ledger import Ledger
    from certkit.registry.log import Log
    from certkit.tlog.proof import LogProof


class Drafts:
    """Writes entries that go on from those of a log."""

    def __init__(self, known: Ledger) -> None:
        self._known = known

    def claims(self, facts: PassportFacts) -> Claims:
        """Return what the entry of a passport says; the attempt is counted.

        Raises `MismatchError` ``registry.supersedes`` or ``registry.attempt``.
        """
        latest = self._known.latest(facts.lineage)
        if facts.supersedes not in {None, latest}:
            raise MismatchError(
                "registry.supersedes",
                f"expected to supersede {latest or 'nothing'}, found {facts.supersedes}",
                hint=f"the latest passport of {facts.lineage} in this registry is what can be superseded",
            )
        attempt = self._known.attempt(facts.lineage, facts.profile, facts.evidence)
        if (facts.attempt or 1) < attempt:
            declared = "no attempt" if facts.attempt is None else f"attempt {facts.attempt}"
            raise MismatchError(
                "registry.attempt",
                f"declares {declared}, and the log holds {attempt - 1} by other evidence",
                hint="bounds depend on it, so declare it and issue anew: "
                f"certkit bundle seal BUNDLE --attempt {attempt}",
            )
        return Claims.of(facts, attempt)

    def entry(
        self,
        subject: str,
        claims: AnyClaims,
        *,
        submitter: PrivateKey,
        at: datetime,
        passport: Stored | None = None,
    ) -> bytes:
        """Return the bytes of a signed entry.

        Raises `InputError` ``registry.entry`` beyond its limit, `MismatchError` ``registry.time`` where it
        would be dated back.
        """
        date = timestamp(at)
        if is_before(date, self._known.newest):
            raise MismatchError(
                "registry.time",
                f"would be dated {date}, and the log holds an entry of {self._known.newest}",
                hint="nothing is dated back: check the clock, or give a later time",
            )
        entry = Entry(
            type=next(name for name, kind in CLAIMS.items() if isinstance(claims, kind)),
            subject=subject,
            passport=passport,
            claims=msgspec.to_builtins(claims),
            prev=self._known.last(subject),
            issued_at=date,
            submitter=keys.key_id(submitter.public_key()),
            log=self._known.origin,
        )
        return write(entry, submitter)


class Appended(Struct, frozen=True, kw_only=True):
    """What became of an append: the index, whether it is a new one, and the proof to hand out."""

    index: int
    new: bool
    proof: LogProof


class Turn:
    """One turn at writing, from `Registry.turn`; `known` is what the entries say, those of this turn too."""

    def __init__(self, known: Ledger, log: Log, extend: Callable[[bytes], int]) -> None:
        self.known = known
        self._log, self._extend, self._drafts = log, extend, Drafts(known)

    def log(self, subject: str, claims: AnyClaims, *, submitter: PrivateKey, at: datetime) -> Appended:
        """Log an entry about `subject`; raise as `Registry.append_entry` does."""
        if isinstance(claims, Claims | KeyChange):
            raise InputError("registry.entry", "passports and keys have an operation of their own")
        index = self._extend(self._drafts.entry(subject, claims, submitter=submitter, at=at))
        return self.appended(index, new=True)

    def appended(self, index: int, *, new: bool) -> Appended:
        """Return an entry with its proof; one that is not `new` says already what was to be logged."""
        return Appended(index=index, new=new, proof=self._log.prove(index))
