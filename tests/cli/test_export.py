"""``certkit export``: what is printed, written, refused, and left alone."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from certkit import workflow
from certkit.assessment.assessing import assess_accumulation
from certkit.bundle.folder import open_bundle
from certkit.cli import context
from certkit.ground import canonical
from certkit.passport import exports, keys
from certkit.passport.issuing import VALIDITY, issue
from certkit.summary.pooling import accumulate
from tests.support.campaigns import campaign, made
from tests.support.making import ISSUER, KEY, NOW, issued, of_bundle, sealed_bundle, trust
from tests.support.running import Done, certkit, program
from tests.support.sources import CARD

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-03-02"
PRESENT = datetime(2026, 9, 1, 6, 30, tzinfo=UTC)
MORE: dict[str, tuple[str, ...]] = {
    "in-toto-svr": ("--key", "key.pem"),
    "vc+jwt": ("--key", "key.pem"),
    "a2a": ("--key", "key.pem", "--card", "card.json"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "passport.json").write_bytes(issued().to_json())
    (tmp_path / "trust.json").write_bytes(trust().to_json())
    (tmp_path / "card.json").write_bytes(canonical.canonical(CARD))
    keys.write_private(tmp_path / "key.pem", KEY, passphrase=None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(context, "now", lambda: PRESENT)
    return tmp_path


def export(format: str, *more: object, at: str = AT) -> Done:  # noqa: A002 - as the option
    return certkit("export", "passport.json", "--format", format, "--at", at, *MORE.get(format, ()), *more)


@pytest.mark.parametrize("format", exports.FORMATS)
@pytest.mark.usefixtures("folder")
def test_the_content_is_the_same_on_the_screen_in_a_file_and_in_json(format: str, folder: Path) -> None:  # noqa: A002
    printed = export(format, "--trust", "trust.json")
    assert (printed.code, printed.err) == (0, "")
    written = export(format, "--trust", "trust.json", "-o", "out")
    assert written.code == 0
    assert written.out == "written: out\n"
    assert (folder / "out").read_bytes() == printed.out.encode()
    document = export(format, "--trust", "trust.json", "--json").document
    assert document == {
        "schema": "urn:certkit:export:v1",
        "format": format,
        "passport_id": issued().passport_id,
        "media_type": document["media_type"],
        "content": printed.out,
    }
    assert "/" in document["media_type"]


@pytest.mark.parametrize("format", exports.FORMATS)
@pytest.mark.usefixtures("folder")
def test_a_refusal_leaves_with_the_exit_code_of_the_verification(format: str, folder: Path) -> None:  # noqa: A002
    (folder / "other.json").write_bytes(trust(keys.generate("p256")).to_json())
    for policy, at, code in (("other.json", AT, 8), ("trust.json", "2027-01-01", 6)):
        done = export(format, "--trust", policy, "-o", "out", "--json", at=at)
        assert (done.code, done.document["error"]["code"]) == (code, "export.unverified")
        assert not (folder / "out").exists()


def test_a_policy_that_requires_a_replay_is_answered_with_the_bundle(folder: Path) -> None:
    bundle = sealed_bundle(folder / "bundle")
    (folder / "passport.json").write_bytes(of_bundle(bundle).to_json())
    (folder / "trust.json").write_bytes(trust(require=("replay",)).to_json())
    assert export("markdown", "--trust", "trust.json").code == 4
    assert export("markdown", "--trust", "trust.json", "--replay").code == 2
    done = export("in-toto-svr", "--trust", "trust.json", "--bundle", bundle, "--replay")
    properties = properties_of(done)
    assert {"CERTKIT_PASSED_REPLAY", "CERTKIT_PASSED_EVIDENCE"} <= set(properties)
    assert not [item for item in properties if item.startswith("CERTKIT_TIER")]  # it attains none


def properties_of(done: Done) -> list[str]:
    payload = base64.b64decode(canonical.loads(done.out.encode())["payload"])
    found: list[str] = canonical.loads(payload)["predicate"]["properties"]
    return found


def test_a_passport_of_several_bundles_is_exported_with_all_of_them(folder: Path) -> None:
    roots = [made(folder / f"bundle-{month}", campaign(f"m{month}", month)) for month in (1, 2)]
    pooled = accumulate([open_bundle(root) for root in roots])
    judged = assess_accumulation(pooled, workflow.load_profile("hb-eval-2026"))
    whole = issue(judged, pooled.summary, issuer=ISSUER, key=KEY, not_before=NOW, not_after=NOW + VALIDITY)
    (folder / "passport.json").write_bytes(whole.to_json())
    both = ("--bundle", "bundle-1", "--bundle", "bundle-2", "--replay")
    done = export("in-toto-svr", "--trust", "trust.json", *both)
    assert (done.code, done.err) == (0, "")
    assert "CERTKIT_PASSED_REPLAY" in properties_of(done)
    assert export("in-toto-svr", "--trust", "trust.json", *both[2:]).code in {1, 7}


def test_an_export_never_replaces_what_it_is_made_from(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in before:
        done = export("a2a", "--trust", "trust.json", "-o", name, "--json")
        assert (done.code, done.document["error"]["code"]) == (2, "file.exists")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.usefixtures("folder")
def test_keys_and_cards_that_do_not_fit() -> None:
    keys_error = certkit("export", "passport.json", "-f", "vc+jwt", "--key", "trust.json", "--json")
    assert (keys_error.code, keys_error.document["error"]["code"]) == (3, "key.unreadable")
    card = certkit(
        "export", "passport.json", "-f", "a2a", "--key", "key.pem", "--trust", "trust.json", "--at", AT
    )
    assert card.code == 2
    assert "--card" in card.err
    assert export("pdf", "--trust", "trust.json").code == 2


def test_the_installed_program_prints_a_badge(folder: Path) -> None:
    done = program(
        "export",
        folder / "passport.json",
        "-f",
        "badge",
        "--trust",
        folder / "trust.json",
        "--at",
        AT,
        LANG="C",
        LC_ALL="C",
    )
    assert done.code == 0
    assert done.out.startswith("<svg ")


@pytest.mark.usefixtures("folder")
def test_an_export_bears_the_time_that_it_was_verified_for() -> None:
    assert "| Verified | 2026-03-02T00:00:00Z: parse," in export("markdown", "--trust", "trust.json").out
