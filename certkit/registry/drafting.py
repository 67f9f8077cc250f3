"""What the next entry says: signed by who submits it, chained to the one before it in its lineage.

    drafts = Drafts(ledger)
    drafts.entry("lab/agent", drafts.claims(facts), submitter=key, at=now, passport=file)

To be used inside the transaction that logs the entry, which the ledger has followed to the log's end.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from certkit.errors import InputError, MismatchError
from certkit.passport import keys
from certkit.registry.entry import CLAIMS, Claims, Entry, KeyChange, timestamp, write
from certkit.registry.rules import Rest, is_before

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from certkit.passport.keys import PrivateKey
    from certkit.registry.entry import AnyClaims, PassportFacts, Stored
    from certkit.registry.ledger import Ledger
    from certkit.tlog.proof import LogProof


class Drafts:
    """Writes entries that go on from those of a log."""

    def __init__(self, known: Ledger) -> None:
        self._known = known

    def claims(self, facts: PassportFacts) -> Claims:
        """Return what the entry of a passport says; the attempt is counted.

        Raises `MismatchError` ``registry.evidence-false``, ``registry.supersedes`` or ``registry.attempt``.
        """
        self._refuse_false(facts)
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

    def _refuse_false(self, facts: PassportFacts) -> None:
        """Raise where a passport rests on evidence that the issuer of an earlier one revoked as false."""
        evidence = Rest(frozenset(facts.bundles or (facts.evidence,)), facts.runs)
        for index, false in self._known.refuted(facts.lineage):
            if evidence.repeats(false):
                raise MismatchError(
                    "registry.evidence-false",
                    f"rests on evidence that entry {index} revoked as false",
                    hint="have the agent judged on new evidence, with the times of its runs",
                )

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
        if (newest := self._known.newest(date)) and is_before(date, newest):
            whose = "" if self._known.trust else "; by a trust policy, what its keys signed counts alone"
            raise MismatchError(
                "registry.time",
                f"would be dated {date}, and the log holds an entry of {newest}",
                hint=f"nothing is dated back: check the clock, or give a later time{whose}",
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


class Appended:
    """What became of an append: the index, and whether it is a new one.

    The proof is made when it is asked for, as the log then stands.
    """

    def __init__(self, index: int, *, new: bool, prove: Callable[[int], LogProof]) -> None:
        self.index, self.new, self.prove = index, new, prove

    @cached_property
    def proof(self) -> LogProof:
        """The proof to hand out; raise as `Registry.prove` does."""
        return self.prove(self.index)


class Turn:
    """One turn at writing, from `Registry.turn`; `known` is what the entries say, those of this turn too."""

    def __init__(
        self,
        known: Ledger,
        drafts: Drafts,
        extend: Callable[[bytes], int],
        prove: Callable[[int], LogProof],
    ) -> None:
        self.known = known
        self._extend, self._drafts, self._prove = extend, drafts, prove

    def log(self, subject: str, claims: AnyClaims, *, submitter: PrivateKey, at: datetime) -> Appended:
        """Log an entry about `subject`; raise as `Registry.append_entry` does."""
        if isinstance(claims, Claims | KeyChange):
            raise InputError("registry.entry", "passports and keys have an operation of their own")
        index = self._extend(self._drafts.entry(subject, claims, submitter=submitter, at=at))
        return self.appended(index, new=True)

    def appended(self, index: int, *, new: bool) -> Appended:
        """Return an entry with its proof; one that is not `new` says already what was to be logged."""
        return Appended(index, new=new, prove=self._prove)
