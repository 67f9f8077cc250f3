"""What ``certkit verify`` says beside its verdict, and what it remembers of a registry."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.support.running import certkit
from tests.support.two_passports import DAY, ending, verify
from tests.support.two_passports import place as place_

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

place = place_


def test_revocation_that_nobody_asked_about_stands_below_the_verdict(place: Path) -> None:
    said = certkit("verify", "second.json", "--trust", "trust.json", "--at", DAY).out
    first, _, rest = said.partition("\n")
    assert first.startswith("✓ VERIFIED")
    assert "revocation (--registry DIR)" in " ".join(rest.partition("Not checked:")[2].split())
    assert (place / "trust.json").exists()


def test_a_step_that_compared_nothing_did_not_pass(place: Path) -> None:
    said = certkit("verify", "second.json", "--trust", "trust.json", "--at", DAY, "-v").out
    assert place.exists()
    assert "\n–  6 subject    compared with nothing; it is about agent" in said


def test_what_no_option_checks_is_said_without_v_too(place: Path) -> None:
    said = certkit("verify", "second.json", "--trust", "trust.json", "--at", DAY).out
    listed = " ".join(said.partition("Not checked:")[2].partition("\n\n")[0].split())
    assert place.exists()
    assert listed.endswith(
        "signing time, other copies of the log, who evaluated, runs left out, whether the records are true"
    )


def test_a_registry_of_which_no_key_is_trusted_says_nothing_and_why(place: Path) -> None:
    policy = ("trust", "add", "-t", "unlogged.json", "--issuer", "Lab", "--key", place / "public.pem", "-q")
    assert certkit(*policy).code == 0
    said = certkit("verify", "second.json", "-t", "unlogged.json", "--at", DAY, "--registry", "registry").out
    assert "revocation (you trust no log: certkit trust add --log VKEY)" in " ".join(said.split())
    assert "\n–  9 status     no trusted verifier key signed the checkpoint of" in said


def test_a_bundle_that_is_not_there_is_refused_before_anything_is_verified(place: Path) -> None:
    (place / "bundle-of-may").mkdir()
    (place / "bundle-of-may" / "bundle.json").write_text("{}")
    (place / "empty").mkdir()
    for named, code, hint in (
        ("bundle-of-mai", "file.missing", "did you mean bundle-of-may?"),
        (
            "empty",
            "bundle.manifest-missing",
            "if it is a log, this judges it and says how to import it: certkit assess empty",
        ),
    ):
        done = certkit(
            "verify", "second.json", "--trust", "trust.json", "--at", DAY, "--bundle", named, "--json"
        )
        assert (done.code, done.document["error"]["code"]) == (3, code)
        assert done.document["error"]["hint"].startswith(hint)


def test_an_older_copy_of_a_registry_is_refused_once_a_newer_one_was_seen(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = str(place / "heads.db")
    monkeypatch.setenv("CERTKIT_HEADS", keeper)
    shutil.copytree("registry", "older")
    assert ending("revoke", "registry", "0", "--reason", "issued-in-error").code == 0
    for remembering, expected in (("--no-remember", 0), ("--remember", 6)):
        monkeypatch.setenv("CERTKIT_HEADS", str(place / f"reader{remembering}.db"))
        assert verify("second.json", "--registry", "registry", remembering).code == 0
        assert verify("second.json", "--registry", "older", remembering).code == expected
