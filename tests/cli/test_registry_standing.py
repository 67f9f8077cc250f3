"""What became of passports, on every screen of the registry and in its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.lineages import clustered, issue
from tests.support.running import certkit
from tests.support.two_passports import DAY, NAME, ending, log, narrow, passport_ids
from tests.support.two_passports import place as place_

if TYPE_CHECKING:
    from pathlib import Path

place = place_
AT = ("--at", DAY)


def test_a_revocation_is_on_every_screen_and_in_every_document(place: Path) -> None:
    latest = passport_ids(place / "registry")[-1]
    said = ending("revoke", "registry", latest[7:19], "--reason", "key-compromise")
    assert said.out == f"{latest[7:19]} revoked, by entry 3\n", "12 digits name it"
    listed = narrow(certkit("registry", "list", "registry", *AT))
    assert "revoked by entry 3: key-compromise" in listed
    assert "superseded by entry 1" in listed
    rows = certkit("registry", "list", "registry", *AT, "--json").document["entries"]
    assert [(row["status"], row["ended_by"], row["reason"]) for row in rows[:2]] == [
        ("superseded", 1, None),
        ("revoked", 3, "key-compromise"),
    ]
    assert (rows[3]["status"], rows[3]["ended_by"]) == (None, None)
    for name in (latest[7:19], "1"):
        shown = certkit("registry", "list", "registry", name, *AT)
        assert shown.out.startswith("This passport is revoked by entry 3: key-compromise\n")
    (row,) = certkit("registry", "list", "registry", latest[7:19], *AT, "--json").document["entries"]
    assert (row["index"], row["status"], row["reason"]) == (1, "revoked", "key-compromise")
    history = certkit("registry", "history", "registry", NAME, *AT)
    assert "revoked on 2026-03-02 (key-compromise)" in " ".join(history.out.split())
    told = certkit("registry", "history", "registry", NAME, *AT, "--json").document
    assert (told["standing"]["status"], told["standing"]["ended"]["how"]) == ("revoked", "revoked")
    assert told["passports"][1]["reason"] == "key-compromise"
    show = ("show", "second.json", "--trust", "trust.json", "--registry", "registry", *AT)
    screen = narrow(certkit(*show))
    assert "revoked by entry 3" in screen
    assert "proof that it still stands" not in screen
    steps = certkit(*show, "--json").document["verification"]["steps"]
    assert {step["id"]: step["code"] for step in steps}["status"] == "passport.revoked"


@pytest.mark.usefixtures("place")
def test_what_expires_soon_is_listed() -> None:
    found = certkit("registry", "list", "registry", "--expiring", "90d", *AT, "--json").document
    assert [row["index"] for row in found["entries"]] == [1], "the first was superseded"
    none = certkit("registry", "list", "registry", "--expiring", "30d", *AT, "--json").document
    assert none["entries"] == []
    for wrong in ("30", "0d", "P30D"):
        assert certkit("registry", "list", "registry", "--expiring", wrong).code == 2


def test_sorted_by_standing_those_in_force_come_first(place: Path) -> None:
    (place / "third.json").write_bytes(issue(3, summary=clustered(900)).to_json())
    assert log("third.json").code == 0
    done = certkit("registry", "list", "registry", "--sort", "standing", *AT, "--json").document
    assert [(row["claims"]["tier"] >= 0, row["label"]) for row in done["entries"]] == [
        (True, None),
        (True, "superseded"),
        (True, "drifted"),
    ]
    limits = [row["limit"] and row["limit"]["value"] for row in done["entries"]]
    assert limits[0] is not None
    text = narrow(certkit("registry", "list", "registry", "--sort", "standing", *AT))
    assert f"r_op at least {limits[0]:.4f} with 0.9" in text


def test_a_refused_attempt_names_the_command(place: Path) -> None:
    made = []
    for seed in (1, 2):
        bundle = f"bundle {seed}"
        simulated = ("simulate", "-o", bundle, "--runs", 300, "--domains", 2, "--seed", seed, "-q")
        assert certkit(*simulated).code == 0
        assert certkit("bundle", "seal", bundle, "-q").code == 0
        issuing = ("issue", bundle, "-o", f"out{seed}", "--key", "key.pem", "--issuer", "Lab")
        made.append(certkit(*issuing, "--registry", "registry", "--trust", "trust.json", "--json"))
    assert [done.code for done in made] == [0, 7]
    assert made[1].document["error"]["hint"].endswith("certkit bundle seal 'bundle 2' --attempt 2")
    assert not (place / "out2").exists()
