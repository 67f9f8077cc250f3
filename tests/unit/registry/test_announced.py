"""What a log says of the plan that a passport names: announced before it, after it, or not at all."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from certkit.ground.errors import MismatchError
from certkit.passport import keys
from certkit.passport.trust import TrustedIssuer, TrustedKey
from certkit.registry.audit import inspect
from certkit.registry.entry import PlanNotice
from certkit.registry.fold import NOT_ANNOUNCED
from certkit.registry.reader import reading, show
from certkit.registry.writer import Registry
from tests.support.lineages import KEY, LINEAGE, NOW, heads, issue, log, new, policy
from tests.support.passports import ISSUER
from tests.support.registries import LOG_KEY, STRANGER, digest
from tests.support.standings import file, offline, standing

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey
    from certkit.passport.trust import Trust
    from certkit.registry.writer import Appended

OTHER = keys.generate("ed25519")
PLAN = digest("plan")
BY = f"its plan is announced by {ISSUER}"


def announce(
    folder: Path, at: timedelta, *, plan: str = PLAN, lineage: str = LINEAGE, key: PrivateKey = KEY
) -> Appended:
    """Log a plan some time after `NOW`."""
    with Registry.open(folder, heads=heads(folder)) as registry:
        notice = PlanNotice(plan=plan, lineage=lineage)
        return registry.announce(notice, submitter=key, log_key=LOG_KEY, at=NOW + at)


def words(folder: Path, index: int, trust: Trust | None) -> list[str | None]:
    """What the history of the lineage, and a passport's entry alone, say of the plan."""
    with reading(folder, trust=trust) as its:
        view = show(its, LINEAGE, at=NOW + timedelta(days=9), trust=trust)
    with reading(folder, trust=trust) as its:
        [entry] = show(its, str(index), at=NOW + timedelta(days=9), trust=trust).entries
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
    said = f"{BY}: entry 0, {text} before the passport's entry 1"
    step = standing(folder, one, trust, days=5)
    assert (step.status, step.detail.endswith(f"; {said}")) == ("passed", True), step.detail
    assert words(folder, 1, trust) == [said, said]
    assert noted(folder, trust) == [f"entry 1: {said}"]


def test_a_plan_that_is_announced_afterwards_is_called_so(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    log(folder, one)
    announce(folder, timedelta(days=1))
    said = f"{BY}: entry 1, after the passport's entry 0, and so not beforehand"
    assert standing(folder, one, trust, days=2).detail.endswith(said)
    assert words(folder, 0, trust) == [said, said]
    assert noted(folder, trust) == [f"entry 0: {said}"]


@pytest.mark.parametrize(
    "change", [{"lineage": "-/other"}, {"key": STRANGER}, {}], ids=["agent", "key", "none"]
)
def test_another_agents_plan_and_a_strangers_word_announce_nothing(
    tmp_path: Path, change: dict[str, PrivateKey]
) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    if change:
        announce(folder, timedelta(), **change)  # type: ignore[arg-type]
    log(folder, one)
    assert standing(folder, one, trust).detail.endswith(f"; {NOT_ANNOUNCED}")
    index = int(bool(change))
    assert noted(folder, trust) == [f"entry {index}: {NOT_ANNOUNCED}"]


def test_an_agents_other_spelling_is_the_same_agent(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    announce(folder, timedelta(), lineage=LINEAGE.upper())
    assert standing(folder, one, trust).detail.endswith(f"; {BY}: entry 0 at {NOW:%Y-%m-%dT%H:%M:%SZ}")


def test_another_submitter_than_the_issuer_is_named(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trusted = policy(new(folder))
    rival = TrustedIssuer(name="Other Lab", keys=(TrustedKey(pem=keys.public_pem(OTHER.public_key())),))
    trust = structs.replace(trusted, issuers=(*trusted.issuers, rival))
    announce(folder, timedelta(), key=OTHER)
    log(folder, one, days=1)
    said = (
        "its plan is announced by Other Lab, another submitter than the issuer: entry 0, 24 hours before the"
        " passport's entry 1"
    )
    assert standing(folder, one, trust, days=2).detail.endswith(f"; {said}")
    assert words(folder, 1, trust) == [said, said]
    assert noted(folder, trust) == [f"entry 1: {said}"]
    key = keys.key_id(OTHER.public_key()).removeprefix("sha256:")[:8]
    assert words(folder, 1, None) == [said.replace("Other Lab", f"key {key}")] * 2


def test_it_is_said_how_many_plans_are_announced_for_the_agent_and_how_many_have_no_passport(
    tmp_path: Path,
) -> None:
    folder, one, two = tmp_path / "r", issue(1, plan=PLAN), issue(2, plan=digest("second"))
    trust = policy(new(folder))
    for name in ("plan", "second", "third"):
        announce(folder, timedelta(), plan=digest(name))
    announce(folder, timedelta(), plan=digest("of another"), lineage="-/other")
    announce(folder, timedelta(), plan=digest("of a stranger"), key=STRANGER)
    log(folder, one, days=1)
    said = "; 1 of 3 plans announced for this agent; 2 have no passport"
    assert standing(folder, one, trust, days=2).detail.endswith(said)
    assert [str(text).endswith(said) for text in words(folder, 5, trust)] == [True, True]
    assert [note.endswith(said) for note in noted(folder, trust)] == [True]
    log(folder, two, days=2)
    said = said.replace("2 have", "1 has")
    assert standing(folder, two, trust, days=3).detail.endswith(said)
    assert [note.endswith(said) for note in noted(folder, trust)] == [True, True]
    log(folder, issue(3, plan=digest("third")), days=3)
    assert standing(folder, one, trust, days=4).detail.endswith("; each has a passport")


def test_a_plan_that_was_not_announced_is_told_beside_those_that_were(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    announce(folder, timedelta(), plan=digest("third"))
    log(folder, one)
    said = f"{NOT_ANNOUNCED}; 1 plan announced for this agent; 1 has no passport"
    assert standing(folder, one, trust).detail.endswith(said)


def test_without_the_files_it_is_not_known_which_plans_have_a_passport(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1, plan=PLAN)
    trust = policy(new(folder))
    for name in ("plan", "second"):
        announce(folder, timedelta(), plan=digest(name))
    log(folder, one)
    shutil.rmtree(folder / "blobs")
    said = "; 1 of 2 plans announced for this agent; which of them have a passport is not known here"
    assert standing(folder, one, trust).detail.endswith(said)


def test_a_lineage_is_shown_from_its_first_entry_of_any_type(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    announce(folder, timedelta())
    with reading(folder) as its:
        view = show(its, LINEAGE.upper(), at=NOW)
    assert (view.lineage, view.history, [row.entry.type for row in view.entries]) == (LINEAGE, (), ["plan"])


def test_of_a_passport_that_names_no_plan_nothing_is_said(tmp_path: Path) -> None:
    folder, one = tmp_path / "r", issue(1)
    trust = policy(new(folder))
    log(folder, one)
    assert "plan" not in standing(folder, one, trust).detail
    assert words(folder, 0, trust) == [None, None]
    assert noted(folder, trust) == []


def test_of_a_passport_that_is_not_logged_the_entry_is_named_alone(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    announce(folder, timedelta())
    said = standing(folder, issue(1, plan=PLAN), trust)
    assert said.status == "skipped"
    assert said.detail.endswith(f"; {BY}: entry 0 at {NOW:%Y-%m-%dT%H:%M:%SZ}")


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
