"""What a passport is compared with: nothing in between hides a loss, for the log or the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from certkit.assessment.drift import drift
from certkit.errors import NegativeError
from certkit.registry.admission import inspect
from certkit.registry.drifts import LINE, Consequences, Course, snapshot
from certkit.registry.entry import Drift
from certkit.registry.reader import reading
from tests.support import build as assessments
from tests.support.lineages import LINEAGE, clustered, issue, log, new, policy
from tests.support.standings import TINY, found, silently, uneven

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.passport.opening import Passport
    from certkit.registry.reader import History


def drifts_in(history: History) -> list[Drift]:
    claims = (logged.found.claims for logged in history.entries)
    return [claim for claim in claims if isinstance(claim, Drift)]


def logged(folder: Path) -> list[tuple[str, str, str]]:
    """What the drift entries say: of which passport against which, and the result."""
    with reading(folder) as whole:
        found = drifts_in(whole.history(LINEAGE))
    return [(one.passport_id, one.earlier, one.result) for one in found]


def test_a_passport_on_few_runs_in_between_hides_no_drift(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    first, worse = issue(1, summary=clustered(970)), issue(3, summary=clustered(800), days=2)
    trust = policy(new(folder))
    log(folder, first)
    between = log(folder, issue(2, summary=TINY, days=1), days=1).following.drift
    assert between is not None
    assert between.result == "UNDERPOWERED"
    done = log(folder, worse, days=2).following
    assert done.drift is not None
    assert (done.drift.result, done.earlier) == ("DRIFTED", first.passport_id)
    assert logged(folder) == [(worse.passport_id, first.passport_id, "DRIFTED")]
    assert inspect(folder, trust=trust).findings == ()


def test_nor_does_one_of_another_kind(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    first, worse = issue(1, summary=clustered(970)), issue(3, summary=clustered(800), days=2)
    log(folder, first)
    between = log(folder, issue(2, summary=assessments.strong(), days=1), days=1).following.drift
    assert between is not None
    assert between.result == "NOT_COMPARABLE"
    log(folder, worse, days=2)
    assert logged(folder) == [(worse.passport_id, first.passport_id, "DRIFTED")]
    assert inspect(folder, trust=trust).findings == ()


def test_nor_does_a_changed_agent_on_few_runs(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    first, worse = issue(1, summary=clustered(970)), issue(3, summary=clustered(800), identity=2, days=2)
    log(folder, first)
    between = issue(2, summary=TINY, identity=1, days=1)
    log(folder, between, days=1)
    log(folder, worse, days=2)
    assert logged(folder) == [
        (between.passport_id, first.passport_id, "IDENTITY_CHANGED"),
        (worse.passport_id, first.passport_id, "DRIFTED"),
    ]
    assert inspect(folder, trust=trust).findings == ()


def test_an_audit_finds_one_that_an_entry_says_of_the_neighbour_or_that_is_left_out(tmp_path: Path) -> None:
    first, between, worse = (
        issue(number, summary=summary)
        for number, summary in enumerate((clustered(970), TINY, clustered(800)), start=1)
    )
    truth = Consequences(worse.to_json()).compared([first.to_json(), between.to_json()])
    assert truth is not None
    cases: list[tuple[str, list[Drift], list[tuple[str, str]]]] = [
        ("true", [truth], []),
        ("left out", [], [("entry 2", "registry.drift")]),
        (
            "of the neighbour",
            [structs.replace(truth, earlier=between.passport_id)],
            [("entry 3", "registry.drift")],
        ),
    ]
    for name, said, wrong in cases:
        folder = tmp_path / name
        trust = policy(new(folder))
        log(folder, first)
        log(folder, between)
        silently(folder, worse, *said)
        assert found(folder, trust) == wrong, name


def test_what_was_told_is_not_told_again(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1, summary=clustered(970)))
    log(folder, issue(2, summary=uneven(*[(1, 1)] * 36, *[(1, 0)] * 24), days=1), days=1)
    log(folder, issue(3, summary=uneven(*[(1, 1)] * 37, *[(1, 0)] * 23), days=2), days=2)
    assert [result for *_, result in logged(folder)] == ["DRIFTED"]
    assert inspect(folder, trust=trust).findings == ()


def test_a_slow_decline_that_no_pair_shows_is_told_and_stays_told(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    trust = policy(new(folder))
    for number, successes in enumerate((970, 960, 950, 940, 930, 920), 1):
        last = issue(number, summary=clustered(successes), days=number)
        log(folder, last, days=number)
    with reading(folder) as whole:
        (entry,) = drifts_in(whole.history(LINEAGE))
        assert whole.history(LINEAGE).drifted
    assert (entry.passport_id, entry.result) == (last.passport_id, "DRIFTED")
    assert entry.rows == ("trend of r_op",)
    log(folder, issue(6, summary=clustered(920), days=7), days=7)  # issued again: nothing new is shown
    with reading(folder) as whole:
        assert whole.history(LINEAGE).drifted
    assert inspect(folder, trust=trust).findings == ()


def sides(*passports: Passport) -> dict[str, Snapshot]:
    return {str(number): snapshot(one.to_json())[1] for number, one in enumerate(passports)}


def test_the_comparison_that_counts_is_a_drift_or_the_one_before_unless_an_earlier_tells_more() -> None:
    known = sides(
        issue(1, summary=clustered(950)),
        issue(2, summary=TINY),
        issue(3, summary=clustered(951)),
        issue(4, summary=clustered(600)),
    )
    course = Course(known.__getitem__)
    steps = [course.follow(name) for name in known]
    assert steps[0] is None
    told = [(one.earlier, one.drift.result) for one in steps if one is not None]
    assert told == [("0", "UNDERPOWERED"), ("0", "STABLE"), ("2", "DRIFTED")]
    for (earlier, result), name in zip(told, list(known)[1:], strict=True):
        assert drift(known[earlier], known[name]).result == result


def test_one_that_contradicts_itself_is_passed_over_wherever_it_stands() -> None:
    known = sides(issue(1, summary=clustered(950)), issue(2, summary=clustered(600)))

    def read(name: str) -> Snapshot:
        if name not in known:
            raise NegativeError("passport.statement", "impossible")
        return known[name]

    course = Course(read)
    assert course.follow("bad") is None
    assert course.follow("0") is None
    with pytest.raises(NegativeError):
        course.follow("worse")
    step = course.follow("1")
    assert step is not None
    assert (step.earlier, step.drift.result) == ("0", "DRIFTED")


@pytest.mark.parametrize(("between", "remembered"), [(LINE - 1, True), (LINE, False)])
def test_so_many_passports_that_tell_nothing_hide_a_loss(between: int, *, remembered: bool) -> None:
    good, worse = (snapshot(issue(1, summary=clustered(n)).to_json())[1] for n in (950, 700))
    others = {f"kind {n}": structs.replace(good, success_rule=f"rule {n}") for n in range(between)}
    known = {"first": good, **others, "last": worse}
    course = Course(known.__getitem__)
    *_, told = (course.follow(name) for name in known)
    assert told is not None
    assert (told.drift.result == "DRIFTED") is remembered
