"""``certkit issue``, ``verify`` and ``show``: the answer in four lines, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.passport import keys
from tests.support import bundles, passports
from tests.support.running import HEAVY, certkit, loaded

if TYPE_CHECKING:
    from pathlib import Path

AT = ("--at", passports.LATER.isoformat())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CERTKIT_HEADS", str(tmp_path / "heads.db"))
    (tmp_path / "passport.json").write_bytes(passports.specimen_passport().to_json())
    (tmp_path / "trust.json").write_bytes(passports.lenient().to_json())
    (tmp_path / "public.pem").write_text(keys.public_pem(passports.KEY.public_key()))
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_answer_is_the_verdict_the_claim_the_open_questions_and_what_was_not_checked() -> None:
    found = certkit("verify", "passport.json", "-t", "trust.json", *AT)
    assert found.code == 0
    answer = " ".join(found.out.split("\n\n")[0].split())
    assert answer == (
        '✓ VERIFIED as of 2026-03-02T12:00:00Z, signed by "Example Lab" "simulated-agent 1.0.0": Tier 1 of'
        " hb-eval-2026 by averages; no tier with confidence limits (specimen, simulated evidence) Open"
        " questions: 3, none serious. Warning: components-not-listed, evaluator-not-independent,"
        " judge-uncalibrated"
        " ('certkit explain CODE' says what a code means) Not checked: evidence (--bundle DIR),"
        " replay (--bundle DIR --replay), registry proof (a file PASSPORT.tlog-proof),"
        " revocation (--registry DIR), subject (--agent DIGEST or --bundle DIR),"
        " signing time, who evaluated, runs left out, whether the records are true"
    )
    assert "Policy:" not in found.out


@pytest.mark.usefixtures("folder")
def test_a_lone_key_refuses_a_specimen_and_v_prints_its_policy_before_the_steps() -> None:
    found = certkit("verify", "passport.json", "-k", "public.pem", "--issuer", "Example Lab", "-v", *AT)
    assert found.code == 8
    assert found.out.startswith("✗ REJECTED as of 2026-03-02T12:00:00Z at step 12 (policy): it is a specimen")
    assert "your policy" not in found.out
    assert 'hint: "accept_specimens": true in the policy' in found.err
    policy, steps = found.out.index("Policy:"), found.out.index(" 1 parse")
    assert policy < steps
    shown = certkit("trust", "show", "-t", "trust.json").out
    [requires] = [line for line in shown.splitlines() if line.startswith("requires")]
    assert requires in found.out[policy:steps]
    assert "– 11 replay" in found.out


def test_a_bundle_is_replayed(folder: Path) -> None:
    asked = (
        "verify",
        "passport.json",
        "-t",
        "trust.json",
        "--bundle",
        str(passports.bundle()),
        "--replay",
        *AT,
    )
    found = certkit(*asked)
    assert found.code == 0
    assert "✓ 11 replay     the signed summary is what the records give" in found.out
    assert sorted(path.name for path in folder.iterdir()) == ["passport.json", "public.pem", "trust.json"]


@pytest.mark.usefixtures("folder")
def test_show_says_that_nobody_checked_the_signature_and_what_the_passport_says() -> None:
    found = certkit("show", "passport.json", *AT)
    assert found.code == 0
    assert found.out.startswith("SIGNATURE NOT CHECKED: anyone can write this. Check it: --trust FILE")
    for text in ("Tier 1 of hb-eval-2026 by averages", "89 days left", "Operational reliability (r_op)"):
        assert text in found.out


def test_show_repeats_nothing_of_a_passport_whose_judgement_differs(folder: Path) -> None:
    def better(predicate: dict[str, dict[str, dict[str, int]]]) -> None:
        predicate["assessment"]["verdict"]["tier"] = 3

    (folder / "passport.json").write_bytes(passports.edited(better))
    found = certkit("show", "passport.json", *AT)
    assert found.out == ""
    assert found.code == 1
    assert "the summary gives" in " ".join(found.err.split())


@pytest.mark.usefixtures("folder")
def test_a_view_is_written_of_what_is_verified() -> None:
    found = certkit("show", "passport.json", "-t", "trust.json", "-f", "svr", *AT)
    assert found.code == 0
    assert "CERTKIT_SPECIMEN_PASSPORT_VERIFIED" in found.out


def test_issue_writes_a_folder_that_verifies(folder: Path) -> None:
    keys.write_private(folder / "key.pem", passports.KEY, passphrase=None)
    signing = ("-k", "key.pem", "--issuer", "Example Lab", "-o", "out", "--no-pdf")
    found = certkit("issue", str(passports.bundle()), *signing)
    assert found.code == 0
    assert found.out.startswith("Tier 1 of hb-eval-2026 by averages; no tier with confidence limits")
    evidence = ("--bundle", str(passports.bundle()), "--replay")
    assert certkit("verify", "out/passport.json", "-t", "trust.json", *evidence).code == 0


@pytest.mark.usefixtures("folder")
def test_issue_refuses_a_bundle_that_is_not_sealed(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "open", [bundles.run(1)])
    keys.write_private(tmp_path / "key.pem", passports.KEY, passphrase=None)
    found = certkit("issue", str(root), "-k", "key.pem", "--issuer", "Example Lab", "-o", "out")
    assert found.code == 2
    assert "not sealed" in " ".join(found.err.split())
    assert not (tmp_path / "out").exists()


LIGHT = {"cryptography", "msgspec"}
"""What a verification may load of what is heavy."""


@pytest.mark.usefixtures("folder")
def test_verify_with_a_key_loads_neither_numpy_nor_pydantic() -> None:
    asked = ("verify", "passport.json", "--key", "public.pem", "--issuer", "Example Lab", *AT)
    packages = loaded(*asked)
    assert packages & set(HEAVY) == LIGHT


def test_an_empty_date_of_documents_counts_as_absent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    keys.write_private(folder / "key.pem", passports.KEY, passphrase=None)
    signing = ("-k", "key.pem", "--issuer", "Example Lab", "-o", "out", "--no-pdf")
    assert certkit("issue", passports.bundle(), *signing).code == 0
