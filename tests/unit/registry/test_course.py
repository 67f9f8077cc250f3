"""What a passport is compared with: the one before it on other evidence, for the log and the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.registry.admission import inspect
from certkit.registry.drifts import LINE, Line, compared
from certkit.registry.entry import Drift
from certkit.registry.reader import reading
from tests.support import build as assessments
from tests.support.lineages import LINEAGE, clustered, issue, log, new, policy
from tests.support.standings import TINY

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.reader import History


def drifts_in(history: History) -> list[Drift]:
    claims = (logged.found.claims for logged in history.entries)
    return [claim for claim in claims if isinstance(claim, Drift)]


def logged(folder: Path) -> list[tuple[str, str, str]]:
    """What the drift entries say: of which passport against which, and the result."""
    with reading(folder) as whole:
        found = drifts_in(whole.history(LINEAGE))
    return [(one.passport_id, one.earlier, one.result) for one in found]


def test_it_is_compared_with_the_one_before_whatever_that_shows(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    log(folder, issue(1, summary=clustered(970)))
    for number, summary, result in (
        (2, TINY, "UNDERPOWERED"),
        (3, assessments.strong(), "NOT_COMPARABLE"),
        (4, clustered(800), "NOT_COMPARABLE"),
    ):
        told = log(folder, issue(number, summary=summary, days=number), days=number).compared
        assert told is not None
        assert told.drift.result == result
    assert logged(folder) == []
    assert inspect(folder, trust=trust).findings == ()


def test_one_on_the_same_evidence_is_compared_with_the_one_before_both(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder))
    first, worse = issue(1, summary=clustered(900)), issue(2, summary=clustered(600))
    again = issue(2, summary=clustered(600), days=1)
    for one in (first, worse):
        log(folder, one)
    log(folder, again, days=1)
    assert logged(folder) == [
        (worse.passport_id, first.passport_id, "DRIFTED"),
        (again.passport_id, first.passport_id, "DRIFTED"),
    ]
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
    log(folder, issue(6, summary=clustered(920), days=7), days=7)  # issued again, and told again
    with reading(folder) as whole:
        assert whole.history(LINEAGE).drifted
    assert inspect(folder, trust=trust).findings == ()


def test_one_that_is_missing_or_no_passport_is_passed_over() -> None:
    first, worse = issue(1, summary=clustered(950)), issue(2, summary=clustered(600))
    told = compared([first.to_json(), None, b"{}", worse.to_json()])
    assert told is not None
    assert (told[0], told[1].result) == (first.passport_id, "DRIFTED")
    assert compared([first.to_json(), None]) is None
    assert compared([None, worse.to_json()]) is None


def test_so_many_are_kept_and_of_one_evidence_the_newest() -> None:
    line = Line()
    for number in range(LINE + 3):
        line.add(f"evidence {number % (LINE + 2)}", str(number))
    assert line.before("none") == [str(number) for number in range(3, LINE + 3)]
    assert line.before(f"evidence {LINE + 1}")[-1] == str(LINE + 2)
