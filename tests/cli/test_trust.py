"""``certkit trust``: whatever a policy holds is put in, shown and taken out by commands, never by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from certkit import workflow
from certkit.ground import canonical
from certkit.passport import keys, trust
from tests.support.running import Done, certkit
from tests.support.signers import LOG, OTHER, WITNESS

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = workflow.load_profile("hb-eval-2026").digest
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


def test_every_field_of_a_policy_is_set_by_commands(folder: Path) -> None:
    before = held(folder)
    identity = ("--identity", "a@lab.example", "--oidc-issuer", "https://login.example")
    for command in (
        ("add", "--witness", ONE, "--witness", TWO, "--log", str(LOG.vkey)),
        ("add", "--profile", "hb-eval-2026", "--domain", "banking", "--domain", "travel"),
        ("add", "--issuer", "Lab", *identity),
        ("add", "--trusted-root", "public"),
        ("set", "--quorum", "2", "--require", "registry", "--require", "status", "--min-tier", "2"),
        ("set", "--reading", "bounded", "--max-status-age", "PT12H"),
        ("set", "--accept", "specimens", "--accept", "contested"),
    ):
        assert told(*command).code == 0, command
    assert told("set", "--accept", "specimens").code == 0
    assert held(folder)["accept_answered"] is False
    assert told("set", "--accept", "specimens", "--accept", "contested").code == 0
    after = held(folder)
    assert after["accept_answered"] is True
    assert {name for name in after if after[name] == before[name]} == {"schema", "accept_answered"}
    assert set(after) == {field.encode_name for field in msgspec.structs.fields(trust.Trust)}
    assert after["witnesses"] == {"k": 2, "keys": [ONE, TWO]}
    assert after["require"] == ["registry", "status"]
    assert (after["profiles"], after["domains"]) == ([PROFILE], ["banking", "travel"])
    assert (after["min_tier"], after["reading"], after["max_status_age"]) == (2, "bounded", "PT43200S")

    shown = " ".join(told("show").out.split())
    assert "caution no replay is required: " in shown
    assert told("set", "--require", "replay").code == 0
    assert "no replay" not in told("show").out
    for text in (
        *("issuer Lab", "a@lab.example", f"log {LOG.vkey}", f"witness 2 of 2 must have cosigned {ONE} {TWO}"),
        *("requires registry, status", "status no older than 0.5 days", f"profile one of these {PROFILE}"),
        "tier 2 and above reading bounded domains banking, travel accepts specimens, contested, answered",
    ):
        assert text in shown


def test_everything_that_was_put_in_is_taken_out(folder: Path) -> None:
    before = held(folder)
    pairs = (
        (("add", "--witness", ONE), ("remove", "--witness", ONE)),
        (("add", "--log", str(LOG.vkey)), ("remove", "--log", str(LOG.vkey))),
        (("add", "--profile", PROFILE), ("remove", "--profile", "hb-eval-2026")),
        (("add", "--domain", "banking"), ("remove", "--domain", "banking")),
        (("add", "--issuer", "Lab", "--key", "spare.pem"), ("remove", "--key", "spare.pem")),
        (("add", "--issuer", "Other", "--key", "spare.pem"), ("remove", "--issuer", "Other")),
        (("add", "--issuer", "Other", "--key", "spare.pem"), ("remove", "--key", "spare.pem")),
        (
            ("add", "--issuer", "Lab", "--identity", "a@b.example", "--oidc-issuer", "https://c.example"),
            ("remove", "--identity", "a@b.example"),
        ),
        (("set", "--require", "evidence"), ("set", "--require", "nothing")),
        (("set", "--min-tier", "3"), ("set", "--min-tier", "0")),
        (("set", "--reading", "table"), ("set", "--reading", "any")),
        (("set", "--accept", "specimens"), ("set", "--accept", "answered")),
        (("set", "--max-status-age", "P1D"), ("set", "--max-status-age", "P7D")),
    )
    for there, back in pairs:
        assert told(*there, "-q").code == 0
        assert held(folder) != before, there
        assert told(*back, "-q").code == 0
        assert held(folder) == before, back


def test_what_is_there_is_not_put_in_twice(folder: Path) -> None:
    again = ("add", "--witness", ONE, "--log", str(LOG.vkey), "--domain", "d", "--profile", PROFILE)
    assert told(*again).code == 0
    once = held(folder)
    assert told(*again).code == 0
    assert held(folder) == once


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("remove", "--witness", ONE), 2, "the policy holds no witness"),
        (("remove", "--issuer", "Nobody"), 2, "the policy holds no issuer Nobody"),
        (("remove", "--key", "spare.pem"), 2, "the policy holds no key sha256:"),
        (("remove", "--profile", "hb-eval-2025"), 2, "the policy holds no profile sha256:"),
        (("remove",), 2, "there is nothing to remove"),
        (("set",), 2, "there is nothing to set"),
        (("set", "--quorum", "1"), 2, "--quorum 1: the policy names 0 witness keys"),
        (("set", "--max-status-age", "a week"), 2, "'a week' is not a period"),
        (("set", "--max-status-age", "-P1D"), 3, "max_status_age is not positive"),
        (("set", "--require", "nothing", "--require", "status"), 2, "--require: nothing goes alone"),
        (("set", "--require", "everything"), 2, "--require: everything is none of registry, "),
        (
            (
                *("add", "--issuer", "L", "--key", "spare.pem"),
                *("--not-before", "2026-02-01", "--not-after", "2026-01-01"),
            ),
            3,
            "its window ends before it begins",
        ),
        (("set", "--accept", "all"), 2, "--accept: all is none of specimens, "),
        (("add", "--witness", str(LOG.vkey)), 3, "is the key of a log, not of a witness"),
        (("add", "--witness", ONE, "--log", str(WITNESS.vkey)), 3, "has a key of the log"),
        (("add", "--log", ""), 3, "t.json: expected a verifier key (vkey), as 'certkit registry checkpoint"),
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


def test_a_witness_that_the_quorum_needs_is_not_taken_out_alone(folder: Path) -> None:
    assert told("add", "--witness", ONE, "--witness", TWO).code == 0
    assert told("set", "--quorum", "2").code == 0
    before = held(folder)
    done = told("remove", "--witness", ONE)
    assert (done.code, held(folder)) == (3, before)
    assert told("set", "--quorum", "1").code == 0
    assert told("remove", "--witness", ONE).code == 0
    assert held(folder)["witnesses"] == {"k": 1, "keys": [TWO]}


def test_a_window_is_shown_to_the_second_where_it_is_no_whole_day(folder: Path) -> None:
    (folder / "key.pem").write_text(keys.public_pem(keys.generate("p256").public_key()))
    start, end = ("--not-before", "2026-01-01"), ("--not-after", "2026-03-11T08:09:10Z")
    assert told("add", "--issuer", "Lab", "--key", "key.pem", *start, *end).code == 0
    assert "from 2026-01-01 to 2026-03-11T08:09:10Z" in told("show").out
