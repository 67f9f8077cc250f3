"""Two who write to one log by different policies do each other's log no harm: a wider one finds it sound."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import structs

from certkit.passport import keys
from certkit.passport.trust import Trust, TrustedKey
from certkit.registry.audit import inspect
from certkit.registry.writer import Registry, revoke, supersede
from tests.support.lineages import KEY, hand, heads, issue, log, new, policy
from tests.support.standings import copied, slip

if TYPE_CHECKING:
    from pathlib import Path

OTHER = keys.generate("ed25519")
DAY = timedelta(days=1)


def key(one: keys.PrivateKey) -> TrustedKey:
    return TrustedKey(pem=keys.public_pem(one.public_key()))


def found(folder: Path, trust: Trust) -> list[tuple[str, str]]:
    return [(one.where, one.code) for one in inspect(folder, trust=trust).findings]


def test_what_another_desk_logged_may_be_logged_again(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    narrow = policy(new(folder))
    with Registry.open(folder) as registry:
        wide = policy(registry.vkey).with_issuer("Desk", key(OTHER))
    assert log(folder, issue(1), trust=wide, submitter=OTHER).index == 0
    for days in (1, 2):
        done = log(folder, issue(1), trust=narrow, days=days)
        assert (done.index, done.new) == (1, days == 1)
    assert found(folder, wide) == []
    assert found(folder, narrow) == [("entry 0", "registry.entry-untrusted")]


def test_what_another_key_ended_may_be_ended_again(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    narrow = policy(new(folder))
    (issuer,) = narrow.issuers
    wide = structs.replace(narrow, issuers=(structs.replace(issuer, keys=(*issuer.keys, key(OTHER))),))
    log(folder, issue(1))
    log(folder, issue(2))
    log(folder, issue(3))
    for number, rules in enumerate((wide, narrow), 3):
        by = hand(submitter=OTHER if rules is wide else KEY, rules=rules)
        with Registry.open(folder, heads=heads(folder)) as registry:
            said = revoke(registry, "0", reason="key-compromise", detail=None, hand=by).entry
        assert said.index == number
    with Registry.open(folder, heads=heads(folder)) as registry:
        assert supersede(registry, "1", by="2", hand=hand(submitter=OTHER, rules=wide)).entry.index == 5
    with Registry.open(folder, heads=heads(folder)) as registry:
        assert supersede(registry, "1", by="2", hand=hand(rules=narrow)).entry.index == 6
    assert found(folder, wide) == []


def test_a_passport_that_was_logged_elsewhere_too_is_ended_where_it_belongs(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1))
    slip(folder, copied(folder, 0, OTHER, subject="evil/decoy"))
    with Registry.open(folder, heads=heads(folder)) as registry:
        assert revoke(registry, "0", reason="key-compromise", detail=None, hand=hand(days=1)).entry.index == 2
    assert {where for where, _ in found(folder, trust)} == {"entry 1"}
