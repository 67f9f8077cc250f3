"""What ended passports, for every command that asks a registry or a status file."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.support.lineages import clustered, issue
from tests.support.running import Done, certkit
from tests.support.two_passports import DAY, ending, log, narrow, status, verify
from tests.support.two_passports import place as place_

if TYPE_CHECKING:
    from pathlib import Path

place = place_


def test_with_false_evidence_every_passport_on_it_is_revoked(place: Path) -> None:
    (place / "renewed.json").write_bytes(issue(2, summary=clustered(600), identity=1).to_json())
    assert log("renewed.json").code == 0
    done = ending("revoke", "registry", 1, "--reason", "evidence-false")
    first, second = narrow(done).splitlines()
    assert first.endswith(" revoked, by entry 3")
    assert second.endswith(" revoked too, by entry 4: it is on that evidence")
    codes = {
        name: status(verify(f"{name}.json", "--registry", "registry")).get("code")
        for name in ("first", "second", "renewed")
    }
    assert codes == {
        "first": "passport.superseded",
        "second": "passport.revoked",
        "renewed": "passport.revoked",
    }
    again = ending("revoke", "registry", 1, "--reason", "evidence-false", "--json").document
    assert (again["entry"], again["also"]) == ({"index": 3, "new": False}, {})


@pytest.mark.usefixtures("place")
def test_a_verifier_asks_the_registry_or_the_exported_tree() -> None:
    assert status(verify("second.json"))["status"] == "skipped"
    assert status(verify("second.json", "--registry", "registry"))["status"] == "passed"
    superseded = verify("first.json", "--registry", "registry")
    assert (superseded.code, status(superseded)["code"]) == (6, "passport.superseded")
    done = ending("revoke", "registry", 1, "--reason", "key-compromise")
    assert done.out.endswith(" revoked, by entry 2\n")
    again = ending("revoke", "registry", 1, "--reason", "key-compromise")
    assert again.out.endswith(" revoked already, by entry 2\n")
    assert certkit("registry", "export", "registry", "public", "-q").code == 0
    for where in ("registry", "public"):
        revoked = verify("second.json", "--registry", where)
        assert (revoked.code, status(revoked)["code"]) == (6, "passport.revoked")
    assert ending("revoke", "registry", 1, "--reason", "issued-in-error").code == 0
    behind = verify("second.json", "--registry", "public")
    assert status(behind)["code"] == "registry.rollback", "this user has signed a later state"


def test_a_status_file_is_found_beside_the_passport(place: Path) -> None:
    done = certkit("registry", "status", "registry", 1, "-o", "second.json.status", "--at", DAY)
    assert done.out == "written: second.json.status\n"
    assert status(verify("second.json"))["status"] == "passed"
    old = verify("second.json", at="2026-04-01")
    assert (old.code, status(old)["status"]) == (0, "skipped")
    policy = (place / "trust.json").read_text()
    (place / "trust.json").write_text(policy.replace('"require": []', '"require": ["status"]'))
    assert verify("second.json", at="2026-04-01").code == 4
    assert verify("second.json").code == 0
    raw = certkit("registry", "status", "registry", 1, "--at", DAY)
    assert raw.out == (place / "second.json.status").read_text()


def told(command: str, name: str, *more: object) -> Done:
    return certkit(*command.split(), name, "--trust", "trust.json", "--at", DAY, *more)


@pytest.mark.parametrize("command", ["verify", "show", "show --format badge"])
def test_a_revoked_passport_is_revoked_for_every_command(place: Path, command: str) -> None:
    assert told(command, "second.json", "--registry", "registry").code == 0
    assert ending("revoke", "registry", 1, "--reason", "key-compromise").code == 0
    assert told(command, "second.json", "--registry", "registry").code == 6
    assert told(command, "second.json").code == 0
    assert certkit("registry", "status", "registry", 1, "-o", "second.json.status", "--at", DAY).code == 0
    done = told(command, "second.json")
    assert done.code == 6
    assert "VERIFIED" not in done.out
    assert place.is_dir()


@pytest.mark.parametrize("command", ["verify", "show", "show --format badge"])
def test_a_revocation_beside_the_passport_counts_against_an_older_registry(
    place: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree("registry", "older")
    assert ending("revoke", "registry", 1, "--reason", "key-compromise").code == 0
    assert certkit("registry", "status", "registry", 1, "-o", "second.json.status", "--at", DAY).code == 0
    monkeypatch.setenv("CERTKIT_HEADS", str(place / "elsewhere.db"))  # one who has seen neither
    assert told(command, "second.json", "--registry", "older").code == 6
    (place / "second.json.status").write_bytes(b"junk")
    assert told(command, "second.json", "--registry", "older").code == 0
    (place / "second.json.status").unlink()
    assert told(command, "second.json", "--registry", "older").code == 0


@pytest.mark.parametrize("command", ["verify", "show", "show --format badge"])
def test_a_registry_that_cannot_be_read_ends_no_passport(place: Path, command: str) -> None:
    assert told(command, "second.json", "--registry", "absent").code == 4
    for url in ("https://lab.example/log", "http:/lab.example"):
        refused = told(command, "second.json", "--registry", url)
        assert refused.code == 2
        assert "not supported yet" in refused.err
    (place / "damaged").mkdir()
    (place / "damaged" / "registry.db").write_bytes(b"no database" * 1000)
    assert told(command, "second.json", "--registry", "damaged").code == 4
    junk = place / "second.json.status"
    for data in (b"junk", b"{}", b"\x00" * 4096):
        junk.write_bytes(data)
        assert told(command, "second.json").code == 0
    assert (
        "revocation: not a status file: "
        in told("verify", "second.json", "-v").out.split("Not checked:\n")[1]
    )
    policy = (place / "trust.json").read_text()
    (place / "trust.json").write_text(policy.replace('"require": []', '"require": ["status"]'))
    assert told(command, "second.json").code == 4


@pytest.mark.usefixtures("place")
def test_a_registry_is_asked_under_a_policy() -> None:
    assert certkit("show", "second.json", "--registry", "registry").code == 2


def test_a_stored_tree_that_was_changed_is_made_again(place: Path) -> None:
    with closing(sqlite3.connect(place / "registry" / "registry.db")) as connection, connection:
        connection.execute("UPDATE tile SET hashes = zeroblob(32)")
    audit = ("registry", "audit", "registry", "--trust", "trust.json", "--json")
    assert certkit(*audit).code == 7
    done = certkit(*audit, "--repair")
    assert done.code == 0
    assert "repaired: tile 0/0" in done.document["notes"]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "registry", "nobody"), "registry.unknown"),
        (("show",), "usage.option"),
        (("status", "registry", "2"), "registry.unknown"),
        (("show", "a", "b", "c"), "usage.option"),
        (("revoke", "registry", "1", "--key", "key.pem"), "usage.option"),
    ],
)
def test_refusals(words: tuple[str, ...], code: str) -> None:
    done = certkit("registry", *words, "--json")
    assert (done.code, done.document["error"]["code"]) == (2, code)


@pytest.mark.usefixtures("place")
def test_a_stranger_cannot_end_a_passport() -> None:
    assert certkit("keys", "generate", "-o", "other.pem", "--public", "other-public.pem", "-q").code == 0
    words = ("registry", "revoke", "registry", "1", "--reason", "issued-in-error", "--key", "other.pem")
    done = certkit(*words, "--trust", "trust.json", "--json")
    assert (done.code, done.document["error"]["code"]) == (8, "registry.not-issuer")
