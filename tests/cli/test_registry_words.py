"""What is said to commands of a registry: lineages, times, places and keys; what they write and refuse."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from certkit.tlog.note import Signer, write_note
from tests.support.lineages import clustered, issue
from tests.support.registries import contents
from tests.support.running import certkit
from tests.support.two_passports import DAY, NAME, STRANGER, TRUST, ending, log, log_key, place  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

# Words


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "time",
    ["0001-01-01", "0001-01-01T00:00:00+05:00", "1969-12-31", "9999-12-31T23:59:59-05:00", "9999-01-01"],
)
def test_a_time_outside_the_calendar_is_refused(time: str) -> None:
    for words in (("show", "registry", NAME), ("show", "registry", "--expiring", "30")):
        done = certkit("registry", *words, "--at", time)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"error: {time!r} is not a time from 1970 to 9998\nhint: a date, ")


@pytest.mark.usefixtures("place")
def test_the_first_and_the_last_time_are_taken() -> None:
    for time in ("1970-01-01", "9998-12-31T23:59:59Z"):
        assert certkit("registry", "show", "registry", NAME, "--at", time).code == 0


@pytest.mark.usefixtures("place")
def test_no_entry_is_dated_ahead_and_so_bars_those_after_it() -> None:
    words = ("registry", "revoke", "registry", "0", "--reason", "issued-in-error", "--key", "key.pem", *TRUST)
    done = certkit(*words, "--at", "9998-12-31")
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == "error: --at: 9998-12-31T00:00:00+00:00 is to come\nhint: what is signed is dated now or before\n"
    )
    assert certkit(*words, "--at", DAY).code == 0


@pytest.mark.usefixtures("place")
def test_what_is_missing_is_named() -> None:
    assert certkit("registry", "export", "registry", "public", "-q").code == 0
    for command in (("append", "{}", "first.json"), ("revoke", "{}", "0", "--reason", "key-compromise")):
        for folder in ("none", "public"):
            words = (*(word.format(folder) for word in command), "--key", "key.pem", *TRUST)
            done = certkit("registry", *words, "--json")
            assert (done.code, done.document["error"]["code"]) == (3, "registry.missing")
    hints = {
        folder: certkit("registry", "prove", folder, 0, "--json").document["error"]["hint"]
        for folder in ("none", "public")
    }
    assert "init" in hints["none"]
    assert "'certkit registry audit'" in hints["public"]
    assert "init" not in hints["public"]
    words = ("registry", "append", "registry", "first.json", "--key", "key.pem", *TRUST)
    assert certkit(*words, "--log-key", "none.pem").code == 3


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("option", ["--log", "--witness"])
@pytest.mark.parametrize("text", ["", "none", "a+00000000+AAAA"])
def test_a_bad_verifier_key_makes_no_policy(option: str, text: str) -> None:
    done = certkit("trust", "add", *TRUST, option, text, "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "trust.invalid")


def test_a_malformed_checkpoint_is_named(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "letter.txt").write_text("Dear Sir")
    (place / "unsigned").write_bytes(
        write_note("certkit.x/1\n0\nAAAA\n", [Signer("certkit.x/1", STRANGER).sign("x\n")])
    )
    for name, code in (("letter.txt", 3), ("unsigned", 7)):
        done = certkit("registry", "audit", "registry", *TRUST, "--since", name)
        assert done.code == code
        assert done.err.startswith(f"error: {name}: ")


@pytest.mark.usefixtures("place")
def test_memory_that_cannot_be_asked_is_no_sound_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTKIT_HEADS", "public.pem")
    done = certkit("registry", "audit", "registry", *TRUST, "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "registry.heads")
    monkeypatch.setenv("CERTKIT_HEADS", "registry")
    done = certkit("registry", "audit", "registry", *TRUST, "--json")
    assert done.code in {2, 3}
    assert done.document["schema"] == "urn:certkit:error:v1"


# What is written


@pytest.mark.parametrize(
    "words",
    [
        ("prove", "registry", 0, "-o", "registry/registry.db"),
        ("status", "registry", 0, "-o", "registry/registry.db"),
    ],
)
def test_nothing_of_a_registry_is_overwritten(place: Path, words: tuple[object, ...]) -> None:  # noqa: F811
    before = contents(place / "registry")
    done = certkit("registry", *words, "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "file.exists")
    assert contents(place / "registry") == before


@pytest.mark.parametrize("case", ["rollback", "other key", "no key"])
def test_a_change_of_keys_that_is_refused_leaves_no_key(place: Path, case: str) -> None:  # noqa: F811
    key = log_key(place / "registry")
    if case == "rollback":
        shutil.copytree(place / "registry", place / "before")
        assert ending("revoke", "registry", 0, "--reason", "issued-in-error").code == 0
        shutil.rmtree(place / "registry")
        (place / "before").rename(place / "registry")
    elif case == "other key":
        key.write_bytes((place / "key.pem").read_bytes())
    else:
        key.unlink()
    before = contents(place)
    assert certkit("registry", "rotate-key", "registry").code in {2, 3, 7}
    assert contents(place) == before


# Attempts


def test_a_refused_attempt_says_how_it_is_declared(place: Path) -> None:  # noqa: F811 - a fixture
    (place / "third.json").write_bytes(issue(3, summary=clustered(900), attempt=2).to_json())
    refused = log("third.json", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (7, "registry.attempt")
    assert refused.document["error"]["hint"].endswith("certkit bundle seal BUNDLE --attempt 3")
    assert certkit("simulate", "-o", "bundle", "--runs", 300, "--domains", 2, "-q").code == 0
    before = certkit("bundle", "check", "bundle", "--json").document["digest"]
    sealed = certkit("bundle", "seal", "bundle", "--attempt", 3, "--json").document["digest"]
    assert sealed == certkit("bundle", "check", "bundle", "--json").document["digest"] != before
    assert '"attempt": 3' in (place / "bundle" / "bundle.json").read_text()
    assert certkit("bundle", "seal", "bundle", "--json").document["digest"] == sealed, "it stays"
    for wrong in ("0", "x", "1000001"):
        assert certkit("bundle", "seal", "bundle", "--attempt", wrong).code == 2


def test_a_refused_attempt_names_the_command(place: Path) -> None:  # noqa: F811 - a fixture
    made = []
    for seed in (1, 2):
        bundle = f"bundle {seed}"
        simulated = ("simulate", "-o", bundle, "--runs", 300, "--domains", 2, "--seed", seed, "-q")
        assert certkit(*simulated).code == 0
        assert certkit("bundle", "seal", bundle, "-q").code == 0
        issuing = ("issue", bundle, "-o", f"out{seed}", "--key", "key.pem", "--issuer", "Lab")
        made.append(certkit(*issuing, "--registry", "registry", "--trust", "trust.json", "--json"))
    assert [done.code for done in made] == [0, 7]
    assert made[1].document["error"]["hint"].endswith("certkit bundle seal BUNDLE --attempt 2")
    assert not (place / "out2").exists()
