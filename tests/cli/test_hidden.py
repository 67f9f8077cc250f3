"""Names with characters that nobody sees: shown wherever people read them, kept whole where programs do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from certkit.bundle.writer import seal
from certkit.passport import keys
from tests.support import bundles
from tests.support.passports import KEY, runs
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

NAME = "tri\u200bage\u2063\u00ad\ufeff\U000e0041\ufe0f"
SHOWN = r"tri\u200bage\u2063\u00ad\ufeff\U000e0041\ufe0f"
HIDDEN = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufe0f\ufeff\U000e0000-\U000e0fff]")
AT = ("--at", "2026-03-02")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle, passport, policy and registry of an agent whose name hides something."""
    root = tmp_path_factory.mktemp("hidden")
    manifest = {
        **bundles.MANIFEST,
        "agent": {"name": NAME, "version": NAME, "provider": NAME},
        "protocol": {"origin": "measured", "success_rule": NAME, "evaluator": {"name": NAME}},
    }
    records = [{**run, "domain": NAME, "task_id": f"{NAME}/{run['task_id']}"} for run in runs()]
    bundles.write(root / "bundle", {"a.jsonl": bundles.lines(records)}, manifest)
    seal(root / "bundle")
    keys.write_private(root / "key.pem", KEY, passphrase=None)
    (root / "public.pem").write_text(keys.public_pem(KEY.public_key()))
    log = certkit("registry", "init", root / "registry", "--name", "lab").out.strip()
    policy = ("--trust", root / "trust.json")
    made = certkit(
        *("trust", "add", *policy, "--issuer", NAME, "--key", root / "public.pem", "--log", log, "-q")
    )
    assert made.code == 0, made.err
    issued = certkit(
        *("issue", root / "bundle", "-o", root / "issued", "--issuer", NAME, "--key", root / "key.pem"),
        *("--registry", root / "registry", *policy, "--valid-from", "2026-03-01"),
    )
    assert issued.code == 0, issued.err
    return root


def screens(place: Path) -> list[tuple[object, ...]]:
    passport, policy = place / "issued" / "passport.json", ("--trust", place / "trust.json")
    return [
        ("assess", place / "bundle", "-v"),
        ("bundle", "check", place / "bundle"),
        ("show", passport, *AT),
        ("verify", passport, *policy, *AT),
        ("show", passport, "--format", "markdown", *policy, *AT),
        ("show", passport, "--format", "badge", *policy, *AT),
        ("trust", "show", *policy),
        ("registry", "show", place / "registry"),
        ("registry", "show", place / "registry", "--expiring", "90", *AT),
        ("registry", "show", place / "registry", "0"),
        ("registry", "show", place / "registry", f"{NAME}/{NAME}", *AT),
        ("registry", "audit", place / "registry", *policy),
        ("compare", place / "bundle", place / "bundle"),
        ("drift", passport, place / "bundle"),
    ]


def test_a_screen_shows_what_a_name_hides(place: Path) -> None:
    for command in screens(place):
        done = certkit(*command)
        text = done.out + done.err
        assert done.code in {0, 1, 4}, (command, text)
        assert HIDDEN.search(text) is None, (command, text)
        if not {"badge", "audit", "drift"} & set(command):  # these name no agent
            assert r"tri\u200bage" in text, (command, text)


def test_a_document_hides_nothing_and_says_the_same(place: Path) -> None:
    shown = certkit("bundle", "check", place / "bundle", "--json")
    assert HIDDEN.search(shown.out) is None
    assert shown.document["manifest"]["agent"]["name"] == NAME
    listed = certkit("registry", "show", place / "registry", "--json")
    assert HIDDEN.search(listed.out) is None
    assert listed.document["entries"][0]["subject"] == f"{NAME}/{NAME}"


def test_a_safety_case_shows_what_a_name_hides(place: Path) -> None:
    page = (place / "issued" / "safety-case.html").read_text(encoding="utf-8")
    assert SHOWN in page
    assert HIDDEN.search(page) is None


def test_what_is_refused_is_shown_too(place: Path, tmp_path: Path) -> None:
    records = [{**run, NAME: 1} for run in runs()]
    spoilt = bundles.write(tmp_path / "b", {f"{NAME}.jsonl": bundles.lines(records)})
    for command in (
        ("assess", spoilt),
        ("assess", place / NAME),
        ("registry", "show", place / "registry", NAME),
        ("profile", "show", NAME),
        (NAME,),
    ):
        done = certkit(*command)
        assert done.code in {2, 3}, done.err
        assert r"tri\u200bage" in done.err, command
        assert HIDDEN.search(done.err) is None, done.err
