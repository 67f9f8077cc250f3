"""How a lineage stands: facts of its latest passport and of the log, and the order of a sorted list."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from certkit.passport.opening import parse
from certkit.registry import standing as room
from certkit.registry.entry import begins, timestamp
from certkit.registry.reader import reading
from certkit.registry.registry import Registry
from certkit.registry.standing import Limit, Query, Standing, Stated, ranked, standing_of
from certkit.registry.writing import revoke
from tests.support.lineages import NOW, clustered, hand, heads, issue, log, new

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.reader import Reader
    from certkit.registry.state import Issued

DAY = timedelta(days=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A registry of two passports of one agent; the later one lost 30 of 100 runs under faults."""
    new(tmp_path / "r")
    log(tmp_path / "r", issue(1, summary=clustered(900)))
    log(tmp_path / "r", issue(2, summary=clustered(600)), days=1)
    return tmp_path / "r"


def standing_in(folder: Path, days: int = 2) -> Standing:
    with reading(folder) as whole:
        (lineage,) = {issued.lineage for issued in list(whole.listed()[1].values())}
        return standing_of(whole, whole.history(lineage), at=NOW + days * DAY)


def test_it_holds_the_facts_of_the_latest_passport(folder: Path) -> None:
    latest = issue(2, summary=clustered(600))
    predicate = parse(latest.to_json()).unverified_statement().predicate
    found = standing_in(folder)
    assert found.stated is not None
    assert (found.stated.profile, found.stated.r_op) == (predicate.assessment.profile.id, 0.6)
    row = next(row for row in predicate.criteria if row.metric == "r_op")
    bound = row.tiers["1"].bounded
    assert bound is not None
    assert found.stated.limit is not None
    assert str(found.stated.limit.value) in str(bound.bound)
    assert (found.attempt, found.passports, found.status, found.ended) == (2, 2, "current", None)
    assert found.first == NOW
    assert found.drift is not None
    assert (found.drift.result, round(found.drift.loss or 0, 3)) == ("DRIFTED", 0.3)
    assert found.size == 3, "the drift is logged too"
    compared = f"against passport {issue(1, summary=clustered(900)).passport_id[7:19]}: DRIFTED, "
    assert f"{compared}{found.drift.row} lost 0.300" in found.sentence
    better = structs.replace(found.drift, row="r_op", loss=-0.021, trend_loss=-0.01, trend_p=0.5)
    sentence = structs.replace(found, drift=better).sentence
    assert f"{compared}r_op gained 0.021; trend of r_op: gained 0.010 (p 0.5)" in sentence


def test_it_says_what_ended_the_passport_and_when(folder: Path) -> None:
    with Registry.open(folder, heads=heads(folder)) as registry:
        for days, reason in ((2, "component-change"), (3, "evidence-false")):
            revoke(registry, "1", reason=reason, detail=None, hand=hand(days=days))  # type: ignore[arg-type]
    ended = standing_in(folder, days=4).ended
    assert ended is not None
    assert (ended.how, ended.reason, ended.at, ended.revocations) == (
        *("revoked", "evidence-false", NOW + 3 * DAY),
        2,
    )
    assert "revoked on " in standing_in(folder, days=4).sentence


def test_without_the_file_the_rest_is_still_told(folder: Path) -> None:
    for path in (folder / "blobs").rglob("*/*"):
        path.unlink()
    found = standing_in(folder)
    assert (found.stated, found.drift, found.passports) == (None, None, 2)
    assert "file is not here" in found.sentence


def test_in_force_come_first_by_their_limit_and_others_say_why_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(folder, issue(3, summary=clustered(900)), days=2)
    with reading(folder) as whole:
        (one, drifted, *_) = passports = list(whole.listed()[1].values())
        weaker, contested, gone = (
            structs.replace(one, index=number, file=structs.replace(one.file, size=number))
            for number in (10, 11, 12)
        )
        plain = Stated(profile="p", reading="table", verdict="met", r_op=None, limit=None, last_run=None)
        limits = {one.index: 0.8, drifted.index: 0.99, 10: 0.7, 11: 0.95}
        told = {
            index: structs.replace(plain, limit=Limit(value=value, confidence=0.95, k=40))
            for index, value in limits.items()
        }
        told[11] = structs.replace(told[11], verdict="contested")

        def read(_log: Reader, issued: Issued) -> Stated | None:
            return told.get(issued.index)

        monkeypatch.setattr(room, "stated_in", read)
        mixed = [gone, contested, drifted, weaker, one]
        rows = ranked(whole, mixed, timestamp(NOW + 2 * DAY))
        late = ranked(whole, [one], timestamp(NOW + 900 * DAY))
    assert [(issued.index, label) for issued, _, label in rows] == [
        *((one.index, ""), (10, "")),
        *((drifted.index, "drifted"), (11, "contested"), (12, "not here")),
    ]
    assert [label for _, _, label in late] == ["expired"]
    assert len(passports) == 3


def test_what_ends_soon_is_in_force_and_not_valid_after(folder: Path) -> None:
    with reading(folder) as whole:
        first, second = list(whole.listed()[1].values())
        now, end = timestamp(NOW + DAY), second.claims.not_after
        assert Query(expiring=end).takes(second, now)
        assert not Query(expiring=now).takes(second, now)
        assert not Query(expiring=end).takes(second, timestamp(NOW + 900 * DAY)), "it has expired"
    with Registry.open(folder, heads=heads(folder)) as registry:
        revoke(registry, "0", reason="issued-in-error", detail=None, hand=hand(days=2))
    with reading(folder) as whole:
        assert not Query(expiring=end).takes(next(iter(whole.listed()[1].values())), now), "it was revoked"
        assert whole.find(first.claims.passport_id[7:19])[1] == next(iter(whole.listed()[1].values()))


def test_eight_digits_name_a_digest() -> None:
    digest = "sha256:" + "0123456789abcdef" * 4
    for digits, names in ((digest, True), ("01234567", True), ("0123456789ab", True), ("0123456", False)):
        assert begins(digest, digits) is names
    assert not begins(digest, "12345678")
