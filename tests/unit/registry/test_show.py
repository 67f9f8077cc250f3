"""What a registry shows: all entries, the history of a lineage as facts over time, or one passport."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground.errors import UsageError
from certkit.passport.passport import read_passport
from certkit.registry.entry import begins
from certkit.registry.reader import reading, show
from certkit.registry.writer import Registry, revoke
from tests.support.lineages import NOW, begun, clustered, hand, heads, issue, log, new

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.reader import RegistryView

DAY = timedelta(days=1)
FIRST = issue(1, summary=clustered(900), tasks_independent=True)
SECOND = issue(2, summary=clustered(600), supersedes=FIRST.passport_id, tasks_independent=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A registry of two passports of one agent; the later one lost 30 of 100 runs under faults."""
    new(tmp_path / "r")
    log(tmp_path / "r", FIRST)
    log(tmp_path / "r", SECOND, days=1)
    return tmp_path / "r"


def view(folder: Path, name: str | None = None, days: int = 2, **more: Any) -> RegistryView:
    with reading(folder) as its:
        return show(its, name, at=NOW + days * DAY, **more)


def test_a_history_holds_the_facts_of_each_passport(folder: Path) -> None:
    found = view(folder, "courier")
    assert (found.lineage, found.size, len(found.root)) == ("-/courier", 2, 64)
    first, second = found.history
    predicate = read_passport(SECOND.to_json()).unverified_statement().predicate
    bound = next(row for row in predicate.assessment.criteria if row.metric == "r_op").bounded
    assert bound is not None
    assert second.limit is not None
    assert second.limit.value == bound.bound
    assert (second.r_op, second.limit.k, second.attempt, second.status) == (0.6, bound.k, 2, "current")
    assert (first.attempt, first.status, first.drift) == (1, "superseded", None)
    assert first.ended is not None
    assert (first.ended.index, first.ended.how, first.ended.by) == (1, "superseded", SECOND.passport_id)
    assert second.drift is not None
    assert (second.drift.result, second.drift.earlier) == ("DRIFTED", FIRST.passport_id)
    assert round(second.drift.loss or 0, 3) == 0.3


def test_a_passport_on_the_same_evidence_is_compared_with_the_one_before_both(folder: Path) -> None:
    log(folder, issue(2, summary=clustered(600), days=2), days=2)
    third = view(folder, "courier").history[2]
    assert third.drift is not None
    assert third.drift.earlier == FIRST.passport_id


def test_a_trend_is_told_that_no_pair_shows(tmp_path: Path) -> None:
    new(tmp_path / "r")
    for number, good in enumerate((900, 880, 860, 840), 1):
        log(tmp_path / "r", issue(number, summary=clustered(good), days=number), days=number)
    drifts = [row.drift for row in view(tmp_path / "r", "courier", days=5).history]
    assert drifts[1] is not None
    assert drifts[1].trend_loss is None
    assert drifts[3] is not None
    assert (drifts[3].trend_loss or 0) > 0


def test_the_age_of_the_evidence_is_in_days(tmp_path: Path) -> None:
    new(tmp_path / "r")
    log(tmp_path / "r", issue(1, summary=begun(clustered(900), -10)))
    (row,) = view(tmp_path / "r", "courier", days=3).history
    assert (row.last_run, row.evidence_days) == (NOW - 10 * DAY, 13)


def test_it_says_what_ended_a_passport(folder: Path) -> None:
    with Registry.open(folder, heads=heads(folder)) as registry:
        for days, reason in ((2, "component-change"), (3, "evidence-false")):
            revoke(registry, "1", reason=reason, detail=None, hand=hand(days=days))  # type: ignore[arg-type]
    ended = view(folder, "courier", days=4).history[1].ended
    assert ended is not None
    assert (ended.how, ended.reason, ended.index) == ("revoked", "evidence-false", 3)


def test_without_the_files_the_entries_are_shown(folder: Path) -> None:
    for path in (folder / "blobs").rglob("*/*"):
        path.unlink()
    rows = view(folder, "courier").history
    assert [(row.limit, row.r_op, row.drift, row.attempt) for row in rows] == [
        (None, None, None, 1),
        (None, None, None, 2),
    ]


def test_an_id_or_an_index_shows_what_is_about_a_passport(folder: Path) -> None:
    for ident, indices in (
        ("0", [0, 1]),
        (FIRST.passport_id[7:15], [0, 1]),
        (SECOND.passport_id, [1]),
        (None, [0, 1]),
    ):
        found = view(folder, ident)
        assert [row.index for row in found.entries] == indices
        assert found.history == ()
    for ident in ("2", "courier-2", "lab/courier", "sha256:00000000"):
        with pytest.raises(UsageError) as caught:
            view(folder, ident)
        assert caught.value.code == "registry.unknown"


def test_a_passport_that_expires_soon_is_in_force_now(folder: Path) -> None:
    def soon(days: int, within: int) -> list[int]:
        return [row.index for row in view(folder, days=days, expiring=within * DAY).entries]

    assert (soon(2, 80), soon(2, 88), soon(91, 88)) == ([], [1], [])


def test_the_document_has_the_keys_that_programs_read(folder: Path) -> None:
    document = view(folder, "courier").to_dict()
    assert document["schema"] == "urn:certkit:registry:v1"
    entry = document["entries"][1]
    assert (entry["index"], entry["type"], entry["status"]) == (1, "passport", "current")
    assert (entry["claims"]["passport_id"], entry["claims"]["attempt"]) == (SECOND.passport_id, 2)
    assert document["history"][1]["drift"]["result"] == "DRIFTED"


def test_eight_digits_name_a_digest() -> None:
    digest = "sha256:" + "0123456789abcdef" * 4
    for digits, names in ((digest, True), ("01234567", True), ("0123456789ab", True), ("0123456", False)):
        assert begins(digest, digits) is names
    assert not begins(digest, "12345678")
