"""What follows from the entries before, entry by entry, as an audit and a writer hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from certkit.passport import keys
from certkit.registry.entry import CLAIMS, Claims, Entry, KeyChange, Logged, Previous, Stored, read, write
from certkit.registry.fold import Lineages, LogKeys
from certkit.tlog.note import Signer
from certkit.tlog.tree import leaf_hash
from tests.support.registries import LOG_KEY, STRANGER, SUBMITTER, check, digest, passport

if TYPE_CHECKING:
    from certkit.passport.keys import PrivateKey
    from certkit.registry.entry import AnyClaims

ORIGIN = "certkit.test/1"


class Followed:
    """Lineages with the entries made for them."""

    def __init__(self) -> None:
        self.lineages = Lineages()
        self.last: dict[str, Previous] = {}
        self.size = 0

    def add(self, lineage: str, claims: AnyClaims, **change: Any) -> list[str]:
        data = made(lineage, claims, prev=self.last.get(lineage), **change)
        logged = Logged(self.size, leaf_hash(data), read(data))
        self.last[lineage] = Previous(index=self.size, leaf=logged.leaf.hex())
        self.size += 1
        return list(self.lineages.follow(logged))

    def passport(
        self, number: int, lineage: str, attempt: int, profile: str = "profile", **change: Any
    ) -> list[str]:
        facts = check(passport(number, lineage=lineage, profile=profile))
        return self.add(lineage, structs.replace(Claims.of(facts, attempt), **change))


def made(
    lineage: str,
    claims: AnyClaims,
    *,
    key: PrivateKey = SUBMITTER,
    named: PrivateKey = SUBMITTER,
    prev: Previous | None = None,
) -> bytes:
    entry = Entry(
        type=next(name for name, kind in CLAIMS.items() if isinstance(claims, kind)),
        subject=lineage,
        passport=Stored(sha256="0" * 64, size=1) if isinstance(claims, Claims) else None,
        claims=msgspec.to_builtins(claims),
        prev=prev,
        issued_at="2026-03-01T00:00:00Z",
        submitter=keys.key_id(named.public_key()),
        log=ORIGIN,
    )
    return write(entry, key)


def test_attempts_count_different_evidence_of_a_lineage_under_a_profile() -> None:
    log = Followed()
    for number, lineage, profile, attempt, evidence in (
        (1, "a", "p", 1, "x"),
        (2, "a", "p", 2, "y"),
        (3, "a", "p", 1, "x"),
        (4, "a", "q", 1, "y"),
        (5, "b", "p", 1, "y"),
    ):
        assert log.passport(number, lineage, attempt, profile, evidence=digest(evidence)) == []
    assert log.passport(8, "a", 1, "p", evidence=digest("z")) == ["it says attempt 1, this is attempt 3"]
    assert log.passport(9, "a", 3, "p", evidence=digest("z")) == [], "what it is counts, not what it says"


def test_a_change_of_keys_is_submitted_by_the_key_that_it_hands_over_from() -> None:
    old, new = (str(Signer(ORIGIN, key).vkey) for key in (LOG_KEY, STRANGER))
    change = KeyChange(old=old, new=new)
    for key, named, wrong in (
        (LOG_KEY, LOG_KEY, None),
        (LOG_KEY, SUBMITTER, "not submitted by the key that it hands over from"),
        (SUBMITTER, SUBMITTER, "not submitted by the key that it hands over from"),
    ):
        found = read(made(ORIGIN, change, key=key, named=named))
        assert LogKeys(ORIGIN).follow(found, change) == wrong
    assert LogKeys(ORIGIN).follow(read(made(ORIGIN, change, key=STRANGER, named=LOG_KEY)), change) is not None
