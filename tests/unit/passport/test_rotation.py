"""A new key takes over from an old one, in files and in trust policies."""

from __future__ import annotations

import stat
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.ground.errors import CertkitError
from certkit.passport import keys
from certkit.passport.editing import rotated
from certkit.passport.issuing import Issuer, issue
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.passport.trust import parse as parse_trust
from certkit.passport.verification import verify
from tests.support.making import KEY, NOW, issued, trust
from tests.support.running import certkit
from tests.support.signers import ALGORITHMS

if TYPE_CHECKING:
    from pathlib import Path

NEXT = keys.generate("p256")
TURN = NOW + timedelta(days=10)


def verdict(key: Any, policy: Trust, *, signed: datetime, at: datetime | None = None) -> str:
    """Return the verdict on a passport that `key` signed at a time."""
    found = issued(key=key)
    if signed != NOW:
        from tests.support import build  # noqa: PLC0415 - for this case only

        summary = build.strong()
        found = issue(
            build.judged(summary),
            summary,
            issuer=Issuer(name="Example Lab"),
            key=key,
            not_before=signed,
            not_after=signed + timedelta(days=90),
        )
    return verify(found.to_json(), trust=policy, at=at or TURN + timedelta(days=5)).verdict


def test_each_key_counts_on_its_side_of_the_turn() -> None:
    policy = rotated(trust(), KEY.public_key(), NEXT.public_key(), at=TURN)
    after = TURN + timedelta(days=1)
    assert verdict(KEY, policy, signed=NOW) == "unverifiable"  # nothing proves that it signed before the turn
    assert verdict(KEY, policy, signed=NOW, at=TURN) == "verified"
    assert verdict(KEY, policy, signed=after) == "rejected"
    assert verdict(NEXT, policy, signed=NOW) == "rejected"
    assert verdict(NEXT, policy, signed=after) == "verified"


def test_nothing_else_in_the_policy_changes() -> None:
    other = TrustedIssuer(
        name="Other", keys=(TrustedKey(pem=keys.public_pem(keys.generate("p256").public_key())),)
    )
    before = structs.replace(trust(min_tier=2), issuers=(*trust().issuers, other))
    after = rotated(before, KEY.public_key(), NEXT.public_key(), at=TURN)
    assert structs.replace(after, issuers=()) == structs.replace(before, issuers=())
    assert [issuer.name for issuer in after.issuers] == ["Example Lab", "Other"]
    assert after.issuers[1] == other
    old, new = after.issuers[0].keys
    assert (old.not_before, old.not_after) == (None, TURN)
    assert (new.not_before, new.not_after) == (TURN, None)


def test_a_window_is_never_widened() -> None:
    sooner = TURN - timedelta(days=5)
    key = TrustedKey(pem=keys.public_pem(KEY.public_key()), not_after=sooner)
    policy = Trust(issuers=(TrustedIssuer(name="Example Lab", keys=(key,)),))
    after = rotated(policy, KEY.public_key(), NEXT.public_key(), at=TURN)
    assert after.issuers[0].keys[0].not_after == sooner


def test_a_key_that_the_policy_does_not_hold_is_not_replaced() -> None:
    stranger = keys.generate("ed25519").public_key()
    for old, new, code in (
        (stranger, NEXT.public_key(), "trust.unknown-key"),
        (KEY.public_key(), KEY.public_key(), "usage.option"),
    ):
        with pytest.raises(CertkitError) as caught:
            rotated(trust(), old, new, at=TURN)
        assert caught.value.code == code
        assert keys.key_id(old) in caught.value.message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    keys.write_private(tmp_path / "old.pem", KEY, passphrase=None)
    (tmp_path / "old-public.pem").write_text(keys.public_pem(KEY.public_key()))
    (tmp_path / "trust.json").write_bytes(trust().to_json())
    return tmp_path


def rotate(folder: Path, *more: object, old: str = "old-public.pem") -> Any:
    paths = ("-o", folder / "new.pem", "--public", folder / "new-public.pem")
    return certkit("keys", "rotate", folder / old, *paths, *more)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("old", ["old.pem", "old-public.pem"])
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_rotate_writes_a_new_pair_and_tells_what_to_do_with_policies(
    folder: Path, kind: str, old: str
) -> None:
    before = snapshot(folder)
    done = rotate(folder, "--type", kind, "--json", old=old)
    assert done.code == 0
    new = keys.load_private(folder / "new.pem").public_key()
    assert keys.key_id(new) == keys.key_id(keys.load_public(folder / "new-public.pem"))
    assert stat.S_IMODE((folder / "new.pem").stat().st_mode) == 0o600
    assert (done.document["schema"], done.document["id"]) == ("urn:certkit:key:v1", keys.key_id(new))
    assert done.document["replaces"] == keys.key_id(KEY.public_key())
    after = snapshot(folder)
    assert {name: after[name] for name in before} == before
    for name in ("new.pem", "new-public.pem"):
        (folder / name).unlink()
    done = rotate(folder, old=old)
    assert keys.key_id(KEY.public_key()) in done.out
    assert f"certkit trust rotate OLD.pem {folder}/new-public.pem\n" in done.err


def test_a_refused_rotation_writes_nothing(folder: Path) -> None:
    keys.write_private(folder / "locked.pem", KEY, passphrase=b"right")
    (folder / "taken.pem").write_text("precious")
    before = snapshot(folder)
    for done, error in (
        (rotate(folder, "--json", old="locked.pem"), "key.passphrase"),
        (rotate(folder, "--json", "--public", folder / "taken.pem"), "file.exists"),
        (rotate(folder, "--json", "-o", folder / "taken.pem"), "file.exists"),
    ):
        assert (done.code, done.document["error"]["code"]) == (2, error)
        assert snapshot(folder) == before


# --- certkit trust rotate: the policies of others


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "trust.json").write_bytes(trust(min_tier=2).to_json())
    (tmp_path / "old.pem").write_text(keys.public_pem(KEY.public_key()))
    (tmp_path / "new.pem").write_text(keys.public_pem(NEXT.public_key()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_policy_of_others_follows_the_issuer(others: Path) -> None:
    done = certkit("trust", "rotate", "old.pem", "new.pem", "--trust", "trust.json", "--at", "2026-03-11")
    assert (done.code, done.err) == (0, "")
    said = f"from 2026-03-11T00:00:00Z on counts {keys.key_id(NEXT.public_key())}"
    assert said in " ".join(done.out.split())
    policy = parse_trust((others / "trust.json").read_bytes(), "trust.json")
    assert policy == rotated(
        trust(min_tier=2), KEY.public_key(), NEXT.public_key(), at=datetime.fromisoformat("2026-03-11T00:00Z")
    )
    shown = certkit("trust", "show", "--trust", "trust.json", "--json").document
    assert shown["policy"] == policy.to_dict()


def test_a_policy_that_cannot_follow_is_left_as_it_is(others: Path) -> None:
    before = (others / "trust.json").read_bytes()
    keys.write_private(others / "secret.pem", KEY, passphrase=None)
    for old, new, expected in (
        ("new.pem", "old.pem", (8, "trust.unknown-key")),
        ("old.pem", "old.pem", (2, "usage.option")),
        ("old.pem", "secret.pem", (3, "key.unreadable")),
        ("old.pem", "missing.pem", (3, "file.missing")),
    ):
        done = certkit("trust", "rotate", old, new, "--trust", "trust.json", "--json")
        assert (done.code, done.document["error"]["code"]) == expected
    late = certkit("trust", "add", "--trust", "trust.json", "--issuer", "Other", "--key", "new.pem", "-q")
    assert late.code == 0
    both = (others / "trust.json").read_bytes()
    done = certkit("trust", "rotate", "old.pem", "new.pem", "--trust", "trust.json", "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "trust.invalid")
    assert (others / "trust.json").read_bytes() == both != before
