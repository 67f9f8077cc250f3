"""A status by command line: with a memory of the log, and after a change of its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.running import certkit
from tests.support.two_passports import DAY, ending, status, verify
from tests.support.two_passports import place as place_

place = place_


def required(place: Path) -> None:
    policy = (place / "trust.json").read_text()
    (place / "trust.json").write_text(policy.replace('"require": []', '"require": ["status"]'))


def test_after_a_change_of_keys_the_policys_last_one_counts(place: Path) -> None:
    required(place)
    changed = certkit("registry", "rotate-key", "registry", "--at", DAY)
    assert changed.code == 0
    behind = verify("second.json", "--registry", "registry")
    assert behind.code == 0, "the checkpoint that covers the change has both signatures"
    assert certkit("trust", "add", "--trust", "trust.json", "--log", changed.out.strip(), "-q").code == 0
    assert verify("second.json", "--registry", "registry").code == 0
    assert ending("revoke", "registry", 0, "--reason", "issued-in-error").code == 0
    assert verify("second.json", "--registry", "registry").code == 0
    assert certkit("registry", "audit", "registry", "--trust", "trust.json", "-q").code == 0


@pytest.mark.usefixtures("place")
def test_no_status_is_dated_ahead_of_the_clock() -> None:
    write = ("registry", "status", "registry", 1, "-o", "second.json.status", "-q")
    done = certkit(*write, "--at", "9990-01-01")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: --at: 9990-01-01T00:00:00+00:00 is to come")
    assert not Path("second.json.status").exists()
    assert certkit(*write, "--at", DAY).code == 0


def test_a_memory_that_is_a_link_to_nowhere_is_no_empty_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    required(place)
    assert verify("second.json", "--registry", "registry").code == 0
    (place / "gone.db").symlink_to(place / "nowhere")
    monkeypatch.setenv("CERTKIT_HEADS", str(place / "gone.db"))
    found = verify("second.json", "--registry", "registry")
    assert (found.code, status(found)["code"]) == (4, "registry.heads")
    refused = certkit("registry", "audit", "registry", "--trust", "trust.json", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (3, "registry.heads")
    assert not (place / "nowhere").exists()
