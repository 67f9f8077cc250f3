"""Revoking and superseding: what the entries say counts, signed by whom it is for, and nothing else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.ground.errors import MismatchError, UntrustedError, UsageError
from certkit.passport import keys
from certkit.passport.trust import TrustedKey
from certkit.registry.audit import inspect
from certkit.registry.entry import Revocation, Supersession, read, write
from certkit.registry.reader import reading, show
from certkit.registry.writer import Registry, checker, revoke, supersede
from tests.support.lineages import KEY, NOW, hand, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER, digest, held
from tests.support.standings import standing

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey
    from certkit.passport.passport import Passport
    from certkit.registry.entry import AnyClaims
    from certkit.registry.writer import Appended


def opened(folder: Path) -> Registry:
    return Registry.open(folder, heads=heads(folder))


def ended(
    folder: Path, ident: str = "0", reason: Any = "key-compromise", **more: Any
) -> tuple[str, Appended]:
    with opened(folder) as registry:
        done = revoke(registry, ident, reason=reason, detail=None, hand=hand(**more))
        return done.passport_id, done.entry


def types(folder: Path) -> list[str]:
    with Registry.open(folder) as registry:
        return [one.entry.body.type for one in held(registry)]


def put(
    folder: Path,
    subject: str,
    claims: AnyClaims,
    key: PrivateKey,
    *,
    named: PrivateKey | None = None,
    **change: Any,
) -> None:
    """Log an entry as only whoever holds the log's key can: signed by one key, and naming another."""
    with opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        honest = read(turn.draft(subject, claims, submitter=key, at=NOW)).body
        entry = structs.replace(honest, submitter=keys.key_id((named or key).public_key()), **change)
        turn.add(write(entry, key))


def forged(folder: Path, one: Passport, key: PrivateKey, **more: Any) -> None:
    put(folder, "-/courier", Revocation(passport_id=one.passport_id, reason="key-compromise"), key, **more)


# What a revocation rests on


def test_a_revocation_in_another_log_is_none_in_this_one(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, one := issue(1))
    claims = Revocation(passport_id=one.passport_id, reason="key-compromise")
    put(folder, "-/courier", claims, KEY, log="certkit.other/1")
    done = [ended(folder)[1] for _ in range(2)]
    assert [(one.index, one.new) for one in done] == [(2, True), (2, False)]


def test_no_strangers_revocation_swallows_the_issuers(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, one := issue(1))
    forged(folder, one, STRANGER)
    done = ended(folder)[1]
    assert (done.index, done.new, types(folder)) == (2, True, ["passport", "revoke", "revoke"])
    again = ended(folder)[1]
    assert (again.index, again.new) == (2, False)


def test_a_passport_is_revoked_once_for_each_reason(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1))
    done = [ended(folder, reason=one)[1] for one in ("agent-withdrawn", "evidence-false", "agent-withdrawn")]
    assert [(one.index, one.new) for one in done] == [(1, True), (2, True), (1, False)]
    assert inspect(folder, trust=trust).findings == ()


def test_the_passport_that_was_named_is_revoked_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, one := issue(1))
    log(folder, other := issue(2))
    assert ended(folder, one.passport_id)[0] == one.passport_id
    assert ended(folder, other.passport_id[7:20])[0] == other.passport_id


def test_what_is_logged_nowhere_is_not_revoked(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    for ident in (digest("nothing"), "1"):
        with pytest.raises(UsageError) as caught:
            ended(folder, ident)
        assert (caught.value.code, caught.value.where) == ("registry.unknown", str(folder))


def test_a_file_that_is_another_passport_lets_nobody_revoke(tmp_path: Path) -> None:
    """An entry that claims one passport and names the file of another, which its own issuer may end."""
    folder = tmp_path / "r"
    new(folder)
    log(folder, other := issue(2))
    with Registry.open(folder) as registry:
        held = registry.logged(0).entry
    assert held.passport is not None
    claims = structs.replace(held.passport, passport_id=issue(1).passport_id, attempt=1)
    with opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        entry = turn.draft("lab/victim", claims, submitter=KEY, at=NOW, passport=held.body.passport)
        turn.add(entry)
    with pytest.raises(MismatchError) as caught:
        ended(folder, "1")
    assert caught.value.code == "registry.inconsistent"
    assert ended(folder, "0")[0] == other.passport_id


def test_of_several_who_revoke_at_once_one_does(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1))
    together = threading.Barrier(3)
    done: list[Appended] = []

    def go() -> None:
        with opened(folder) as registry:
            together.wait()
            done.append(revoke(registry, "0", reason="evidence-false", detail=None, hand=hand()).entry)

    threads = [threading.Thread(target=go) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted((one.index, one.new) for one in done) == [(1, False), (1, False), (1, True)]
    assert types(folder) == ["passport", "revoke"]
    assert inspect(folder, trust=trust).findings == ()


def test_whether_it_was_revoked_before_is_asked_in_the_transaction_that_logs_it(tmp_path: Path) -> None:
    """Whoever comes second has not asked before it was their turn."""
    folder = tmp_path / "r"
    new(folder)
    log(folder, one := issue(1))
    ready, begun, waiting = (threading.Event() for _ in range(3))
    done: list[Appended] = []

    def second() -> None:
        with opened(folder) as registry:
            assert registry._heads is not None
            held = registry._heads.held

            def announced(*arguments: Any) -> Any:
                waiting.set()
                return held(*arguments)

            registry._heads.held = announced  # type: ignore[method-assign]
            ready.set()
            begun.wait(30)
            done.append(revoke(registry, "0", reason="evidence-false", detail=None, hand=hand()).entry)

    thread = threading.Thread(target=second)
    thread.start()
    assert ready.wait(30)
    with opened(folder) as registry, registry.turn(LOG_KEY) as turn:
        begun.set()
        assert waiting.wait(30)
        what = Revocation(passport_id=one.passport_id, reason="evidence-false")
        turn.log("-/courier", what, submitter=KEY, at=NOW)
    thread.join()
    assert [(one.index, one.new) for one in done] == [(1, False)]
    assert types(folder) == ["passport", "revoke"]


def test_what_another_writer_logged_meanwhile_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    with opened(folder) as slow, opened(folder) as fast:
        slow.append(issue(2).to_json(), check=checker(policy()), submitter=KEY, log_key=LOG_KEY, at=NOW)
        for registry, new_ in ((fast, True), (slow, False), (fast, False)):
            done = revoke(registry, "0", reason="evidence-false", detail=None, hand=hand()).entry
            assert (done.index, done.new) == (2, new_)


# What a supersession and a note rest on


def test_no_stranger_swallows_a_supersession(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, first := issue(1))
    log(folder, second := issue(2))
    claims = Supersession(passport_id=first.passport_id, by=second.passport_id)
    put(folder, "-/courier", claims, STRANGER)
    with opened(folder) as registry:
        done = [supersede(registry, "0", by="1", hand=hand()).entry for _ in range(2)]
    assert [(one.index, one.new) for one in done] == [(3, True), (3, False)]


def test_what_another_passport_took_the_place_of_needs_no_supersession(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, first := issue(1))
    log(folder, issue(2, supersedes=first.passport_id))
    with opened(folder) as registry:
        done = supersede(registry, "0", by="1", hand=hand()).entry
    assert (done.index, done.new) == (1, False)


def test_a_passport_of_another_issuer_takes_the_place_of_none(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    other = keys.generate("ed25519")
    rules = policy(vkey).with_issuer("Other Lab", TrustedKey(pem=keys.public_pem(other.public_key())))
    log(folder, first := issue(1), trust=rules)
    log(folder, issue(2, supersedes=first.passport_id, key=other), trust=rules, submitter=other)
    assert standing(folder, first, rules).status == "passed"
    report = inspect(folder, trust=rules)
    assert report.findings == ()
    assert report.notes == (
        "entry 1: its 'supersedes' has no effect; Other Lab issued it, Example Lab the other",
    )
    with reading(folder, trust=rules) as its:
        view = show(its, "courier", at=NOW, trust=rules)
    assert [(row.index, row.status) for row in view.history] == [(0, "current"), (1, "current")]
    assert (view.without_effect, view.left_out) == ([1], [])
    with opened(folder) as registry:
        done = supersede(registry, "0", by="1", hand=hand(rules=rules)).entry
    assert (done.index, done.new) == (2, True), "its issuer says so, in an entry of its own"


def test_a_retired_key_submits_no_more_and_may_still_revoke(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    (issuer,) = policy(new(folder)).issuers
    retired = structs.replace(issuer, keys=(structs.replace(issuer.keys[0], not_after=NOW),))
    rules = structs.replace(policy(), issuers=(retired,))
    log(folder, first := issue(1), trust=rules)
    late = hand(days=1, rules=rules)
    with pytest.raises(UntrustedError, match=r"dated 2026-03-02.* trusted … to 2026-03-01") as caught:
        log(folder, issue(2), days=1, trust=rules)
    assert caught.value.code == "registry.submitter"
    with opened(folder) as registry:
        revoke(registry, first.passport_id, reason="key-compromise", detail=None, hand=late)
    assert types(folder) == ["passport", "revoke"]
