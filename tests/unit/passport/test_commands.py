"""``certkit keys`` and ``certkit trust``: what they write, and what they leave alone."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from certkit.ground import canonical
from certkit.passport import keys
from tests.support.documents import certkit
from tests.support.passports import KEY, issued, trust
from tests.support.running import edit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["ed25519", "p256"])
def test_generate_writes_a_private_key_for_its_owner_alone(tmp_path: Path, kind: str) -> None:
    private, public = tmp_path / "key.pem", tmp_path / "public.pem"
    code, document = certkit(
        "keys", "generate", "-o", str(private), "--public", str(public), "--type", kind, "--json"
    )
    assert code == 0
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert document["id"] == keys.key_id(keys.load_public(public))
    assert document["id"] == keys.key_id(keys.load_private(private).public_key())
    assert document["encrypted"] is False
    assert document["pem"] == public.read_text()


def test_generate_never_overwrites_and_leaves_nothing_behind(tmp_path: Path) -> None:
    public = tmp_path / "public.pem"
    public.write_text("precious")
    code, document = certkit(
        "keys", "generate", "-o", str(tmp_path / "key.pem"), "--public", str(public), "--json"
    )
    assert (code, document["error"]["code"]) == (2, "file.exists")
    assert [path.name for path in tmp_path.iterdir()] == ["public.pem"]
    assert public.read_text() == "precious"


def test_a_passphrase_that_is_too_long_is_told_and_no_file_is_left(tmp_path: Path) -> None:
    private, words = tmp_path / "key.pem", tmp_path / "words"
    command = ("keys", "generate", "-o", str(private), "--json", "--passphrase-file", str(words))
    words.write_bytes(b"x" * 1024 + b"\n")
    code, document = certkit(*command)
    assert (code, document["error"]["code"]) == (2, "key.passphrase")
    assert not private.exists()
    words.write_bytes(b"x" * 1023 + b"\n")
    assert certkit(*command)[0] == 0
    keys.load_private(private, passphrase=b"x" * 1023)  # does not raise


def test_a_passphrase_file_locks_and_unlocks(tmp_path: Path) -> None:
    private, right, wrong, empty = (tmp_path / name for name in ("key.pem", "right", "wrong", "empty"))
    right.write_bytes(b"correct horse\r\nignored")
    wrong.write_bytes(b"battery staple\n")
    empty.write_bytes(b"\nsecond line")
    base = ("keys", "generate", "-o", str(private), "--json", "--passphrase-file")
    assert certkit(*base, str(empty))[0] == 2
    assert not private.exists()
    assert certkit(*base, str(right))[1]["encrypted"] is True
    keys.load_private(private, passphrase=b"correct horse")  # does not raise
    issue = ("issue", str(tmp_path / "bundle"), "--key", str(private), "--issuer", "Lab")
    out = ("-o", str(tmp_path / "out"))
    for extra in (("--passphrase-file", str(wrong)), ()):
        code, document = certkit(*issue, *out, *extra, "--json")
        assert (code, document["error"]["code"]) == (2, "key.passphrase")


def test_trust_is_made_extended_and_shown(tmp_path: Path) -> None:
    policy, first, second = (tmp_path / name for name in ("trust.json", "first.pem", "second.pem"))
    first.write_text(keys.public_pem(KEY.public_key()))
    second.write_text(keys.public_pem(keys.generate("p256").public_key()))
    base = ("--trust", str(policy), "--json", "--issuer", "Example Lab", "--key")
    assert certkit("trust", "add", *base, str(first))[0] == 0
    edit(policy, accept_specimens=True, require=["replay"])
    code, document = certkit("trust", "add", *base, str(second), "--not-after", "2026-12-31")
    assert code == 0
    assert canonical.loads(policy.read_bytes()) == document
    assert (document["accept_specimens"], document["require"]) == (True, ["replay"])
    assert [item["not_after"] for item in document["issuers"][0]["keys"]] == [None, "2026-12-31T00:00:00Z"]
    shown = certkit("trust", "show", "--trust", str(policy), "--json")
    assert (shown[0], shown[1]["policy"]) == (0, document)
    before = policy.read_bytes()
    for arguments, expected in (
        (("trust", "add", *base, str(second)), (3, "trust.invalid")),  # the same key twice
        (("trust", "add", "--trust", str(policy), "--json", "--issuer", "x"), (2, "usage.option")),
    ):
        code, document = certkit(*arguments)
        assert (code, document["error"]["code"]) == expected
        assert policy.read_bytes() == before


def test_a_private_key_never_reaches_a_policy(tmp_path: Path) -> None:
    private = tmp_path / "key.pem"
    keys.write_private(private, KEY, passphrase=None)
    policy = tmp_path / "trust.json"
    code, document = certkit(
        "trust", "add", "--trust", str(policy), "--issuer", "L", "--key", str(private), "--json"
    )
    assert (code, document["error"]["code"]) == (3, "key.unreadable")
    assert not policy.exists()


def test_the_users_own_policy_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.get_app_dir", lambda name: str(tmp_path / name))
    file = tmp_path / "passport.json"
    file.write_bytes(issued().to_json())
    verify = ("verify", str(file), "--at", "2026-03-02", "--json")
    assert certkit(*verify)[1]["error"]["code"] == "file.missing"
    (tmp_path / "certkit").mkdir()
    (tmp_path / "certkit" / "trust.json").write_bytes(trust().to_json())
    assert certkit(*verify)[0] == 0


def test_the_text_of_a_verification_says_the_verdict_and_what_is_open(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from certkit.cli.main import main  # noqa: PLC0415 - the text, not the document

    file, policy = tmp_path / "passport.json", tmp_path / "trust.json"
    file.write_bytes(issued().to_json())
    policy.write_bytes(trust().to_json())
    assert main(["verify", str(file), "--trust", str(policy), "--at", "2026-03-02"]) == 0
    text = capfdbinary.readouterr().out.decode()
    assert "VERIFIED" in text
    assert "Not checked:" in text
    assert max(map(len, text.splitlines())) <= 110
    assert main(["verify", str(file), "--trust", str(policy), "--at", "2027-03-02"]) == 6
    text = capfdbinary.readouterr().out.decode()
    assert "REJECTED as of 2027-03-02T00:00:00Z at step 7 (validity): expired" in " ".join(text.split())
    assert "VERIFIED" not in text
    assert main(["verify", str(file), "--trust", str(policy), "--at", "2027-03-02", "-q"]) == 6
    assert capfdbinary.readouterr().out == b""


def test_a_verification_says_for_which_time_it_holds(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from certkit.cli.main import main  # noqa: PLC0415 - the text, not the document

    file, policy = tmp_path / "passport.json", tmp_path / "trust.json"
    file.write_bytes(issued().to_json())
    policy.write_bytes(trust().to_json())
    for at, text in (
        ("2026-03-02", "VERIFIED as of 2026-03-02T00:00:00Z, signed by"),
        ("2026-03-02T09:30:15+02:00", "VERIFIED as of 2026-03-02T07:30:15Z, signed by"),
        ("2027-03-02", "REJECTED as of 2027-03-02T00:00:00Z at step 7 (validity): expired"),
    ):
        main(["verify", str(file), "--trust", str(policy), "--at", at])
        assert text in " ".join(capfdbinary.readouterr().out.decode().split())
        _, document = certkit("verify", str(file), "--trust", str(policy), "--at", at, "--json")
        assert document["at"] in text
    main(["verify", str(file), "--trust", str(policy)])
    assert "as of" not in capfdbinary.readouterr().out.decode()


def test_a_proof_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    file, policy = tmp_path / "passport.json", tmp_path / "trust.json"
    file.write_bytes(issued().to_json())
    (tmp_path / "passport.json.tlog-proof").mkdir()
    for require, expected in (((), 0), (("registry",), 4)):
        policy.write_bytes(trust(require=require).to_json())
        code, document = certkit("verify", str(file), "--trust", str(policy), "--at", "2026-03-02", "--json")
        assert code == expected
        (step,) = (one for one in document["steps"] if one["id"] == "registry")
        assert (step["status"], step["code"]) == ("skipped", "file.not-regular")


def test_a_single_key_and_a_name_verify_without_a_policy(tmp_path: Path) -> None:
    file, public, other = tmp_path / "passport.json", tmp_path / "public.pem", tmp_path / "other.pem"
    file.write_bytes(issued().to_json())
    public.write_text(keys.public_pem(KEY.public_key()))
    other.write_text(keys.public_pem(keys.generate("ed25519").public_key()))
    for key, name, expected in (
        (public, "Example Lab", 0),
        (public, "Another Lab", 8),
        (other, "Example Lab", 8),
    ):
        command = ("verify", str(file), "--key", str(key), "--issuer", name)
        code, document = certkit(*command, "--at", "2026-03-02", "--json")
        assert (code, document["verdict"]) == (expected, "rejected" if expected else "verified")
    assert certkit("verify", str(file), "--key", str(public), "--json")[0] == 2
