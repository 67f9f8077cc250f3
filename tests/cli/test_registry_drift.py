"""``certkit registry drift``: which passports are compared, what is logged of it, and how it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.running import certkit
from tests.cli.test_registry_history import NAME, log, narrow
from tests.cli.test_registry_history import place as place_
from tests.unit.registry.lineages import clustered, issue
from tests.unit.registry.test_course import TINY

if TYPE_CHECKING:
    from pathlib import Path

place = place_


def brought(place: Path, number: int, successes: int | None) -> str:
    """Log evidence `number`, on few runs without `successes`; return what append prints of its drift."""
    one = issue(number, summary=TINY if successes is None else clustered(successes))
    (place / f"{number}.json").write_bytes(one.to_json())
    done = log(f"{number}.json")
    assert done.code == 0
    return done.out.splitlines()[-1]


def test_a_passport_on_few_runs_is_passed_over_where_it_cannot_tell(place: Path) -> None:
    second = issue(2, summary=clustered(600), supersedes=issue(1, summary=clustered(900)).passport_id)
    assert brought(place, 3, None).endswith(": UNDERPOWERED")
    assert brought(place, 4, 400) == f"against passport {second.passport_id[7:19]}: DRIFTED"
    assert log("4.json").out.startswith("was logged already")
    text = narrow(certkit("registry", "drift", "registry", NAME))
    assert "     5        1  DRIFTED           DRIFTED " in text
    document = certkit("registry", "drift", "registry", NAME, "--json").document
    pairs = [(one["old"], one["new"], one["result"], one["agrees"]) for one in document["pairs"]]
    assert pairs == [(0, 1, "DRIFTED", True), (1, 4, "UNDERPOWERED", True), (1, 5, "DRIFTED", True)]
    assert document["exit_code"] == 5
    done = certkit("registry", "audit", "registry", "--trust", "trust.json")
    assert done.code == 0, done.out


def test_after_a_passport_that_is_not_here_nothing_is_said_of_what_was_logged(place: Path) -> None:
    brought(place, 3, 600)
    second = (place / "second.json").read_bytes()
    (path,) = (one for one in (place / "registry" / "blobs").glob("*/*") if one.read_bytes() == second)
    path.unlink()
    rows = certkit("registry", "drift", "registry", NAME, "--json").document["pairs"]
    assert [(one["old"], one["new"], one["result"], one["agrees"]) for one in rows] == [
        (0, 1, None, None),
        (0, 4, "DRIFTED", None),
    ]
    assert rows[0]["reasons"] == ["its file is not here, or has changed"]


@pytest.mark.usefixtures("place")
def test_a_time_is_for_validity_and_age_and_every_entry_counts() -> None:
    assert "Every entry counts" in certkit("registry", "history", "--help").out
    early = certkit("registry", "history", "registry", NAME, "--at", "2026-03-01T00:00:00Z", "--json")
    first = early.document["passports"][0]
    assert first["status"] == "superseded", "by an entry of the day after"
