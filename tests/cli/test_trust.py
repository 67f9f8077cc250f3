"""``certkit trust``: a policy is added to, edited, and shown with its cautions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from certkit.assessment.profile_file import load_profile
from certkit.ground import canonical
from certkit.passport import keys, trust
from tests.support.running import Done, certkit, edit
from tests.support.signers import LOG, OTHER, WITNESS

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = load_profile("hb-eval-2026").digest
ONE, TWO = str(WITNESS.witness_vkey), str(OTHER.witness_vkey)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("lab", "spare"):
        key = keys.generate("ed25519").public_key()
        (tmp_path / f"{name}.pem").write_text(keys.public_pem(key))
    monkeypatch.chdir(tmp_path)
    assert certkit("trust", "add", "--trust", "t.json", "--issuer", "Lab", "--key", "lab.pem").code == 0
    return tmp_path


def told(command: str, *more: str) -> Done:
    return certkit("trust", command, "--trust", "t.json", *more)


def held(folder: Path) -> dict[str, Any]:
    document = canonical.loads((folder / "t.json").read_bytes())
    assert isinstance(document, dict)
    return document


def test_a_policy_is_added_to_by_commands_changed_by_an_editor_and_shown(folder: Path) -> None:
    before = held(folder)
    identity = ("--identity", "a@lab.example", "--oidc-issuer", "https://login.example")
    for command in (
        ("add", "--witness", ONE, "--witness", TWO, "--log", str(LOG.vkey)),
        ("add", "--profile", "hb-eval-2026", "--domain", "banking", "--domain", "travel"),
        ("add", "--issuer", "Lab", *identity),
        ("add", "--trusted-root", "public"),
    ):
        assert told(*command).code == 0, command
    edit(
        folder / "t.json",
        witnesses=held(folder)["witnesses"] | {"k": 2},
        require=["registry", "status"],
        min_tier=2,
        reading="bounded",
        max_status_age="PT12H",
        accept_specimens=True,
        accept_contested=True,
        count_provisional=True,
    )
    assert told("add", "--domain", "travel").code == 0
    after = held(folder)
    assert {name for name in after if after[name] == before[name]} == {"schema", "accept_answered"}
    assert set(after) == {field.encode_name for field in msgspec.structs.fields(trust.Trust)}
    assert after["witnesses"] == {"k": 2, "keys": [ONE, TWO]}
    assert after["require"] == ["registry", "status"]
    assert (after["profiles"], after["domains"]) == ([PROFILE], ["banking", "travel"])
    assert (after["min_tier"], after["reading"], after["max_status_age"]) == (2, "bounded", "PT43200S")

    shown = " ".join(told("show").out.split())
    assert "caution no replay is required: " in shown
    edit(folder / "t.json", require=["replay"])
    assert "no replay" not in told("show").out
    for text in (
        *("issuer Lab", "a@lab.example", f"log {LOG.vkey}", f"witness 2 of 2 must have cosigned {ONE} {TWO}"),
        *("requires registry, status", "status no older than 0.5 days", f"profile one of these {PROFILE}"),
        "tier 2 and above reading with confidence limits rows provisional ones count domains",
        '"banking", "travel" accepts specimens, contested tiers, answered findings',
    ):
        assert text in shown


def test_what_is_there_is_not_put_in_twice(folder: Path) -> None:
    again = ("add", "--witness", ONE, "--log", str(LOG.vkey), "--domain", "d", "--profile", PROFILE)
    assert told(*again).code == 0
    once = held(folder)
    assert told(*again).code == 0
    assert held(folder) == once


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            (
                *("add", "--issuer", "L", "--key", "spare.pem"),
                *("--not-before", "2026-02-01", "--not-after", "2026-01-01"),
            ),
            3,
            "its window ends before it begins",
        ),
        (("add", "--witness", str(LOG.vkey)), 3, "is the key of a log, not of a witness"),
        (("add", "--witness", ONE, "--log", str(WITNESS.vkey)), 3, "has a key of the log"),
        (
            ("add", "--log", ""),
            3,
            "expected a verifier key (vkey), as 'certkit registry show DIR'",
        ),
        (("add", "--profile", "no-such"), 2, "no profile 'no-such'"),
    ],
)
def test_what_makes_no_policy_is_refused_and_changes_nothing(
    folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    before = (folder / "t.json").read_bytes()
    done = told(*arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert (folder / "t.json").read_bytes() == before


def test_a_window_is_shown_to_the_second_where_it_is_no_whole_day(folder: Path) -> None:
    (folder / "key.pem").write_text(keys.public_pem(keys.generate("p256").public_key()))
    start, end = ("--not-before", "2026-01-01"), ("--not-after", "2026-03-11T08:09:10Z")
    assert told("add", "--issuer", "Lab", "--key", "key.pem", *start, *end).code == 0
    assert "from 2026-01-01 to 2026-03-11T08:09:10Z" in told("show").out
