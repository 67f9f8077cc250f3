"""What follows from the entries before, entry by entry, as an audit and a writer hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from certkit.passport import keys
from certkit.registry.entry import (
    CLAIMS,
    Claims,
    Entry,
    KeyChange,
    Logged,
    Stored,
    read,
    write,
)
from certkit.registry.log import LogKeys
from certkit.registry.state import Lineages
from certkit.tlog.note import Signer
from certkit.tlog.tree import leaf_hash
from tests.support.registries import LOG_KEY, STRANGER, SUBMITTER, check, digest, passport

if TYPE_CHECKING:
    from certkit.passport.keys import PrivateKey
    from certkit.registry.entry import AnyClaims, Previous

ORIGIN = "certkit.test/1"


class Followed:
    """Lineages with the entries made for them."""

    def __init__(self) -> None:
        self.lineages = Lineages()
        self.size = 0

    def add(self, lineage: str, claims: AnyClaims, **change: Any) -> list[str]:
        data = made(lineage, claims, prev=self.lineages.last(lineage), **change)
        self.size += 1
        return self.lineages.follow(Logged(self.size - 1, leaf_hash(data), read(data)))

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
        found = digest(evidence)
        assert log.lineages.attempt(lineage, digest(profile), found) == attempt
        assert log.passport(number, lineage, attempt, profile, evidence=found) == []
        assert log.lineages.latest(lineage) == digest(f"passport {number}")
    assert log.passport(8, "a", 1, "p", evidence=digest("z")) == ["it says attempt 1, this is attempt 3"]
    assert log.lineages.attempt("a", digest("p"), digest("z")) == 3, "what it is counts, not what it says"
    assert log.lineages.attempt("c", digest("p"), digest("z")) == 1
    assert (log.lineages.last("c"), log.lineages.latest("c")) == (None, None)


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
