"""``certkit show --format``: what is printed, written, refused, and left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.cli import context
from certkit.ground import canonical
from certkit.passport import exports, keys
from tests.support.passports import NOW, issued, of_bundle, sealed_bundle, trust
from tests.support.running import Done, certkit

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-03-02"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "passport.json").write_bytes(issued().to_json())
    (tmp_path / "trust.json").write_bytes(trust().to_json())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(context, "now", lambda: NOW)
    return tmp_path


def view(format: str, *more: object, at: str = AT) -> Done:  # noqa: A002 - as the option
    return certkit("show", "passport.json", "--format", format, "--trust", "trust.json", "--at", at, *more)


@pytest.mark.parametrize("format", exports.FORMATS)
def test_the_content_is_the_same_on_the_screen_in_a_file_and_in_json(format: str, folder: Path) -> None:  # noqa: A002
    printed = view(format)
    assert (printed.code, printed.err) == (0, "")
    assert view(format, "-o", "out").out == "written: out\n"
    assert (folder / "out").read_bytes() == printed.out.encode()
    document = view(format, "--json").document
    assert document == {
        "schema": "urn:certkit:export:v1",
        "format": format,
        "subject": issued().passport_id,
        "media_type": document["media_type"],
        "content": printed.out,
    }
    assert "/" in document["media_type"]


def test_a_refusal_leaves_with_the_exit_code_of_the_verification_and_writes_nothing(folder: Path) -> None:
    done = view("badge", "-o", "out", "--json", at="2027-01-01")
    assert (done.code, done.document["error"]["code"]) == (6, "export.unverified")
    (folder / "trust.json").write_bytes(trust(keys.generate("p256")).to_json())
    assert view("badge", "-o", "out").code == 8
    assert not (folder / "out").exists()


def test_a_policy_that_requires_a_replay_is_answered_with_the_bundle(folder: Path) -> None:
    bundle = sealed_bundle(folder / "bundle")
    (folder / "passport.json").write_bytes(of_bundle(bundle).to_json())
    (folder / "trust.json").write_bytes(trust(require=("replay",)).to_json())
    assert view("markdown").code == 4
    assert view("markdown", "--replay").code == 2
    done = view("svr", "--bundle", bundle, "--replay")
    properties = canonical.loads(done.out.encode())["predicate"]["properties"]
    assert {"CERTKIT_PASSED_REPLAY", "CERTKIT_PASSED_EVIDENCE"} <= set(properties)


def test_a_view_never_replaces_what_it_is_made_from(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in before:
        done = view("a2a", "-o", name, "--json")
        assert (done.code, done.document["error"]["code"]) == (2, "file.exists")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_bundle_is_judged_and_shown_as_assess_shows_it(folder: Path) -> None:
    bundle = sealed_bundle(folder / "bundle")
    done = certkit("show", bundle, "--json")
    assert (done.code, done.document) == (0, certkit("assess", bundle, "--json").document)
    badge = certkit("show", bundle, "--format", "badge", "--require-tier", "2")
    assert (badge.code, badge.out[:5]) == (0, "<svg ")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "line",
    [
        "show passport.json -o out",
        "show passport.json --format pdf",
        "show passport.json --format svr",
        "show passport.json --require-tier 2",
        "show passport.json --replay",
        "show bundle --trust trust.json",
        "show bundle --at 2026-03-02",
        "show bundle --format svr",
    ],
)
def test_options_that_would_be_passed_over_are_refused(folder: Path, line: str) -> None:
    sealed_bundle(folder / "bundle")
    assert certkit(*line.split()).code == 2
    assert not (folder / "out").exists()
