"""``certkit registry``, as it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.passport import keys
from tests.support.one_passport import AT, append
from tests.support.one_passport import place as place_
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

place = place_


def test_the_way_through(place: Path) -> None:
    trust, registry = ("--trust", place / "trust.json"), place / "registry"
    before = certkit("verify", place / "passport.json", *trust, *AT)
    assert before.code == 4, "the policy requires a proof and there is none yet"
    done = certkit(*append(place))
    proof = place / "passport.json.tlog-proof"
    assert (done.code, done.err) == (0, "")
    assert done.out == f"logged as entry 0; proof in {proof}\n"
    assert certkit("verify", place / "passport.json", *trust, *AT).code == 0

    again = certkit(*append(place, "--json"))
    assert again.document == {
        "schema": "urn:certkit:registry-append:v1", "index": 0, "new": False, "proof": str(proof),
        "earlier": None, "drift": None,
    }  # fmt: skip
    listed = certkit("registry", "list", registry, "--json").document
    assert [one["index"] for one in listed["entries"]] == [0]
    shown = certkit("registry", "list", registry, "0", "--json").document
    assert (shown["schema"], shown["size"]) == ("urn:certkit:registry-list:v1", 1)
    passport_id = shown["entries"][0]["claims"]["passport_id"]
    fresh = certkit("registry", "prove", registry, passport_id)
    assert fresh.out.encode() == proof.read_bytes()
    out = place / "again.tlog-proof"
    assert certkit("registry", "prove", registry, passport_id[7:19], "-o", out, "-q").out == ""
    assert out.read_bytes() == proof.read_bytes()
    assert passport_id in certkit("registry", "list", registry, passport_id).out
    assert "1 entry" in certkit("registry", "list", registry).out

    audit = certkit("registry", "audit", place / "registry", *trust)
    assert audit.code == 0
    assert audit.out.startswith("SOUND: 1 entry, 1 passport, signed as\ncertkit.lab/")
    assert "Not shown by these files:" in audit.out


def test_a_tampered_registry(place: Path) -> None:
    certkit(*append(place))
    (blob,) = (path for path in (place / "registry" / "blobs").rglob("*") if path.is_file())
    blob.write_bytes(b"{}")
    arguments = ("registry", "audit", place / "registry", "--trust", place / "trust.json")
    text = certkit(*arguments)
    assert text.code == 7
    assert text.out.startswith("UNSOUND: 1 finding in 1 entry of\ncertkit.lab/")
    document = certkit(*arguments, "--json")
    assert document.code == 7
    assert [one["code"] for one in document.document["findings"]] == ["registry.blob-changed"]
    assert certkit(*arguments, "-q").out == ""


def test_a_refused_passport_leaves_no_proof(place: Path) -> None:
    data = (place / "passport.json").read_bytes()
    (place / "passport.json").write_bytes(data.replace(b'"sig": "', b'"sig": "A'))
    done = certkit(*append(place, "--json"))
    assert done.code == 3
    assert done.document["error"]["code"].startswith("dsse.")
    assert not (place / "passport.json.tlog-proof").exists()
    assert certkit("registry", "list", place / "registry", "--json").document["entries"] == []


def test_at_another_time(place: Path) -> None:
    done = certkit(*append(place, "--at", "2001-01-01", "--json"))
    assert (done.code, done.document["error"]["code"]) == (6, "passport.not-yet-valid")


def test_a_log_key_kept_elsewhere(place: Path) -> None:
    keys.write_private(place / "log.pem", keys.generate("ed25519"), passphrase=None)
    other = place / "other"
    made = certkit("registry", "init", other, "--name", "lab", "--log-key", place / "log.pem", "--json")
    assert made.code == 0
    assert {path.name for path in other.iterdir()} == {"registry.db", "blobs"}
    arguments = append(place, registry="other")
    missing = certkit(*arguments, "--json")
    assert (missing.code, missing.document["error"]["code"]) == (3, "file.missing")
    wrong = certkit(*arguments, "--log-key", place / "key.pem", "--json")
    assert (wrong.code, wrong.document["error"]["code"]) == (2, "registry.log-key")
    assert certkit(*arguments, "--log-key", place / "log.pem", "-q").code == 0


@pytest.mark.parametrize(
    ("command", "code", "exit_code"),
    [
        (("list", "none"), "registry.missing", 3),
        (("list", "registry", "7"), "registry.unknown", 2),
        (("list", "registry", "../../etc/passwd"), "registry.unknown", 2),
        (("prove", "registry", "none"), "registry.unknown", 2),
        (("audit", "none", "--trust", "trust.json"), "registry.missing", 3),
        (("audit", "registry", "--trust", "none.json"), "file.missing", 3),
        (("init", "registry", "--name", "lab"), "file.exists", 2),
        (("init", "fresh", "--name", "no name"), "registry.name", 2),
    ],
)
def test_refusals(
    place: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], code: str, exit_code: int
) -> None:
    monkeypatch.chdir(place)
    done = certkit("registry", *command, "--json")
    assert (done.code, done.document["error"]["code"]) == (exit_code, code)
    assert not (place / "fresh").exists()
    assert not (place / "none").exists()
