"""What a log says of the plan that a passport names: announced before it, after it, or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import MismatchError
from certkit.registry.audit import inspect
from certkit.registry.entry import PlanNotice
from certkit.registry.reader import reading, show
from certkit.registry.writer import Registry
from tests.support.lineages import KEY, LINEAGE, NOW, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER, digest
from tests.support.standings import file, offline, standing

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey
    from certkit.passport.trust import Trust
    from certkit.registry.writer import Appended

PLAN = digest("plan")
NOT = "its plan is not announced here"


def announce(
    folder: Path, at: timedelta, *, plan: str = PLAN, lineage: str = LINEAGE, key: PrivateKey = KEY
) -> Appended:
    """Log a plan some time after `NOW`."""
    with Registry.open(folder, heads=heads(folder)) as registry:
        notice = PlanNotice(plan=plan, lineage=lineage)
        return registry.announce(notice, submitter=key, log_key=LOG_KEY, at=NOW + at)


def words(folder: Path, index: int) -> list[str | None]:
    """What the history of the lineage, and a passport's entry alone, say of the plan."""
    with reading(folder) as its:
        view = show(its, LINEAGE, at=NOW + timedelta(days=9))
    with reading(folder) as its:
        [entry] = show(its, str(index), at=NOW + timedelta(days=9)).entries
    return [row.announced for row in view.history] + [entry.announced]


def noted(folder: Path, trust: Trust) -> list[str]:
    """What an audit notes of plans."""
    return [note for note in inspect(folder, trust=trust).notes if "plan" in note]


@pytest.mark.parametrize(
    ("lead", "text"),
    [
        (timedelta(days=3, hours=23), "3 days"),
        (timedelta(days=1, hours=23), "47 hours"),
        (timedelta(minutes=119), "119 minutes"),
        (timedelta(seconds=119), "1 minute"),
        (timedelta(seconds=59), "less than a minute"),
    ],
)
def test_verification_history_and_entry_say_how_long_before_the_passport(
    tmp_path: Path, lead: timedelta, text: str
) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    announce(folder, timedelta(days=4) - lead)
    log(folder, one, days=4)
    said = f"its plan is announced: entry 0, {text} before the passport's entry 1"
    step = standing(folder, one, trust, days=5)
    assert (step.status, step.detail.endswith(f"; {said}")) == ("passed", True), step.detail
    assert words(folder, 1) == [said, said]
    assert noted(folder, trust) == ["passports whose plan was announced before them: entry 1 (by entry 0)"]


def test_a_plan_that_is_announced_afterwards_is_called_so(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    log(folder, one)
    announce(folder, timedelta(days=1))
    said = "its plan is announced: entry 1, after the passport's entry 0, and so not beforehand"
    assert standing(folder, one, trust, days=2).detail.endswith(said)
    assert words(folder, 0) == [said, said]
    assert noted(folder, trust) == ["passports whose plan was not announced before them: entry 0"]


@pytest.mark.parametrize(
    "change",
    [{"plan": digest("other")}, {"lineage": "-/other"}, {"key": STRANGER}],
    ids=["plan", "agent", "key"],
)
def test_another_plan_another_agents_and_a_strangers_word_announce_nothing(
    tmp_path: Path, change: dict[str, PrivateKey]
) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    announce(folder, timedelta(), **change)  # type: ignore[arg-type]
    log(folder, one)
    assert standing(folder, one, trust).detail.endswith(NOT)
    assert noted(folder, trust) == ["passports whose plan was not announced before them: entry 1"]


def test_of_a_passport_that_names_no_plan_nothing_is_said(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1)
    trust = policy(new(folder))
    log(folder, one)
    assert "plan" not in standing(folder, one, trust).detail
    assert words(folder, 0) == [None, None]
    assert noted(folder, trust) == []


def test_of_a_passport_that_is_not_logged_the_entry_is_named_alone(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    announce(folder, timedelta())
    said = standing(folder, issue(1, plan=PLAN), trust)
    assert said.status == "skipped"
    assert said.detail.endswith(f"; its plan is announced: entry 0 at {NOW:%Y-%m-%dT%H:%M:%SZ}")


def test_a_status_file_says_nothing_of_a_plan(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    announce(folder, timedelta())
    log(folder, one)
    assert "plan" not in offline(file(folder, 1), one, trust).detail


def test_the_same_plan_is_logged_once_for_an_agent_and_a_submitter(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    first, again = (announce(folder, timedelta(days=day)) for day in range(2))
    assert (first.index, first.new, again.index, again.new) == (0, True, 0, False)
    assert announce(folder, timedelta(days=1), lineage="-/other").new
    assert announce(folder, timedelta(days=1), key=STRANGER).new


def test_a_plan_for_a_logged_agent_in_another_spelling_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    with pytest.raises(MismatchError) as caught:
        announce(folder, timedelta(days=1), lineage=LINEAGE.upper())
    assert caught.value.code == "registry.lineage"
