"""``certkit registry``, as it is used."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from tests.support.one_passport import AT, append
from tests.support.one_passport import place as place_
from tests.support.registries import contents
from tests.support.running import certkit
from tests.support.two_passports import log_key

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
        "schema": "urn:certkit:registry-append:v1",
        "index": 0,
        "new": False,
        "proof": str(proof),
    }
    listed = certkit("registry", "show", registry, "--json").document
    assert [one["index"] for one in listed["entries"]] == [0]
    shown = certkit("registry", "show", registry, "0", "--json").document
    assert (shown["schema"], shown["size"]) == ("urn:certkit:registry:v1", 1)
    passport_id = shown["entries"][0]["claims"]["passport_id"]
    fresh = certkit("registry", "prove", registry, passport_id)
    assert fresh.out.encode() == proof.read_bytes()
    out = place / "again.tlog-proof"
    assert certkit("registry", "prove", registry, passport_id[7:19], "-o", out, "-q").out == ""
    assert out.read_bytes() == proof.read_bytes()
    assert passport_id in certkit("registry", "show", registry, passport_id).out
    assert "1 entry" in certkit("registry", "show", registry).out

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
    assert certkit("registry", "show", place / "registry", "--json").document["entries"] == []


def test_at_another_time(place: Path) -> None:
    done = certkit(*append(place, "--at", "2001-01-01", "--json"))
    assert (done.code, done.document["error"]["code"]) == (6, "passport.not-yet-valid")


def test_the_logs_key_lies_in_the_configuration_folder(place: Path) -> None:
    path = log_key(place / "registry")
    assert path.parent == place / "config" / "certkit" / "logs"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {item.name for item in (place / "registry").iterdir()} == {"registry.db", "blobs"}
    path.rename(place / "log.pem")
    missing = certkit(*append(place), "--json")
    assert (missing.code, missing.document["error"]["code"]) == (3, "file.missing")
    assert missing.document["error"]["hint"] == "name the log's private key: --log-key FILE"
    wrong = certkit(*append(place), "--log-key", place / "key.pem", "--json")
    assert (wrong.code, wrong.document["error"]["code"]) == (2, "registry.log-key")
    assert certkit(*append(place), "--log-key", place / "log.pem", "-q").code == 0


def test_a_log_key_is_where_it_was_said(place: Path) -> None:
    init = ("registry", "init", place / "other", "--name", "lab", "--log-key")
    inside = certkit(*init, place / "other" / "log.pem", "--json")
    assert (inside.code, inside.document["error"]["code"]) == (2, "usage.option")
    assert not (place / "other").exists()
    made = certkit(*init, place / "keys" / "log.pem", "--json")
    assert made.code == 0
    assert stat.S_IMODE((place / "keys" / "log.pem").stat().st_mode) == 0o600
    assert len(list((place / "config" / "certkit" / "logs").iterdir())) == 1, "that of the other registry"
    before = (place / "keys" / "log.pem").read_bytes()
    refused = certkit(*init, place / "keys" / "log.pem", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "file.exists")
    again = ("registry", "init", place / "third", "--name", "lab", "--log-key", place / "keys" / "log.pem")
    assert certkit(*again, "-q").code == 0
    assert (place / "keys" / "log.pem").read_bytes() == before, "a key that is there is used"


def test_a_registry_that_is_not_made_leaves_no_key(place: Path) -> None:
    logs = place / "config" / "certkit" / "logs"
    before = contents(logs)
    assert certkit("registry", "init", place / "registry", "--name", "lab").code == 2
    assert contents(logs) == before


@pytest.mark.parametrize(
    ("command", "code", "exit_code"),
    [
        (("show", "none"), "registry.missing", 3),
        (("show", "registry", "7"), "registry.unknown", 2),
        (("show", "registry", "../../etc/passwd"), "registry.unknown", 2),
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
