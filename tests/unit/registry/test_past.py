"""What the score asks of a log: how old the evidence is, what was lost on the way, why it was revoked."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit import assessment, canonical, evidence, passport, workflow
from certkit.errors import CertkitError
from certkit.registry import Registry
from certkit.registry.admission import checker
from certkit.registry.ending import revoke
from certkit.registry.entry import Drift
from certkit.registry.history import reading
from certkit.registry.past import past
from certkit.registry.search import Query
from tests.support import build as assessments
from tests.support.campaigns import campaign, made
from tests.support.lineages import KEY, NOW, clustered, hand, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY
from tests.support.scores import LINEAGE, asked, scored, valued
from tests.support.standings import DAY, drafted, rows, slip

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.entry import PassportFacts, Reason
    from certkit.registry.search import Standing

STANDINGS: tuple[Standing, ...] = ("upcoming", "current", "expired")


def results(folder: Path) -> list[str]:
    """What is told of each comparison, and by further drift entries."""
    return [one.result for one in asked(folder).drift]


def revoke_for(folder: Path, reason: Reason) -> None:
    with Registry.open(folder, heads=heads(folder)) as registry:
        revoke(registry, "0", reason=reason, detail=None, hand=hand())


def test_issued_again_from_the_same_evidence_it_is_as_old_as_before(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1, summary=clustered(900)))
    before = valued(folder, 80)
    log(folder, issue(1, summary=clustered(900), days=80), days=80)
    assert asked(folder).appeared == NOW
    assert valued(folder, 80) <= before
    # on new evidence it is new, and a further attempt
    log(folder, issue(2, summary=clustered(900), days=80), days=81)
    assert asked(folder).appeared == NOW + 80 * DAY
    log(folder, issue(1, summary=clustered(900), days=82), days=82)
    assert asked(folder).appeared == NOW, "nor does other evidence in between make it younger"


def test_a_passport_that_was_logged_before_it_began_is_as_old_as_its_entry(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1, days=0), days=2)
    assert asked(folder).appeared == NOW
    early = tmp_path / "early"
    new(early)
    log(early, issue(1, days=10), days=10)
    with Registry.open(early) as registry:
        entry = registry.logged(0).found
    assert entry.passport is not None
    third = tmp_path / "third"
    new(third)
    slip(
        third,
        drafted(
            "passport",
            LINEAGE,
            entry.passport,
            passport=entry.entry.passport,
            issued_at="2026-03-04T00:00:00Z",
        ),
    )
    with reading(early) as whole:
        held = whole.history(LINEAGE).passports[0].file
        data = whole.passport(held)
    with reading(third) as whole:
        assert (
            past(whole.history(LINEAGE), lambda _: data).appeared.isoformat() == "2026-03-04T00:00:00+00:00"
        )


@pytest.mark.parametrize("fault_runs", [True, False])
def test_pooled_evidence_is_as_old_as_its_good_runs_can_be_on_average(
    tmp_path: Path,
    fault_runs: bool,  # noqa: FBT001 - a parameter
) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    small, large = campaign("m1", 1)[:25], campaign("m2", 2)
    if not fault_runs:
        small, large = ([one for one in runs if one["condition"] == "nominal"] for runs in (small, large))
    roots = [
        made(tmp_path / name, runs, declared_runs=len(runs))
        for name, runs in (("small", small), ("large", large))
    ]

    def append(one: passport.Passport, day: int, attempt: int) -> None:
        def check(data: bytes) -> PassportFacts:
            return structs.replace(checker(policy(vkey), NOW + day * DAY)(data), attempt=attempt)

        with Registry.open(folder, heads=heads(folder)) as registry:
            registry.append(one.to_json(), check=check, submitter=KEY, log_key=LOG_KEY, at=NOW + day * DAY)

    def issued(day: int, *chosen: Path) -> passport.Passport:
        profile = workflow.load_profile("hb-eval-2026")
        start = NOW + day * DAY
        opened = [evidence.open_bundle(root) for root in chosen]
        if len(opened) > 1:
            pooled = evidence.accumulate(opened)
            judged, summary = assessment.assess_accumulation(pooled, profile), pooled.summary
        else:
            judged, summary = workflow.assess(chosen[0]), evidence.summarise(opened[0])
        return passport.issue(
            judged,
            summary,
            issuer=passport.Issuer(name="Example Lab", relation_to_evaluator="same"),
            key=KEY,
            not_before=start,
            not_after=start + passport.VALIDITY,
        )

    append(first := issued(0, roots[0]), 0, 1)
    append(issued(40, *roots), 40, 2)
    document = canonical.loads(first.payload)
    lineage = "/".join(("-", document["predicate"]["agent"]["name"]))
    with reading(folder) as whole:
        names = {one.found.entry.subject for one in whole.history(lineage.removeprefix("-/")).entries}
        lineage = names.pop()
    # the runs began before any passport on them; the good ones are taken to lie in the older bundle
    began = [min(datetime.fromisoformat(one["started_at"]) for one in runs) for runs in (small, large)]
    good = [one["outcome"] == "success" for one in (*small, *large) if one["condition"] != "nominal"].count(
        True
    )
    share = (good - 20) / good if fault_runs else 0
    appeared = asked(folder, lineage).appeared
    assert appeared == pytest.approx(began[0] + share * (began[1] - began[0]), abs=timedelta(seconds=1))
    # the large one alone was seen before, as a part
    append(issued(50, roots[1]), 50, 3)
    assert asked(folder, lineage).appeared == began[1] < NOW


def test_the_gravest_reason_counts_whenever_it_was_given(tmp_path: Path) -> None:
    values = {}
    cases: list[tuple[Reason, ...]] = [
        ("evidence-false",),
        ("agent-withdrawn",),
        ("agent-withdrawn", "evidence-false"),
        ("evidence-false", "agent-withdrawn"),
    ]
    for reasons in cases:
        folder = tmp_path / "-".join(reasons)
        new(folder)
        log(folder, issue(1, summary=clustered(950)))
        for reason in reasons:
            revoke_for(folder, reason)
        log(folder, issue(2, summary=clustered(951), days=1), days=1)
        assert asked(folder).revocations == (reasons[0] if len(reasons) == 1 else "evidence-false",)
        values[reasons] = valued(folder, 2)
    assert values["agent-withdrawn",] == pytest.approx(2 * values["evidence-false",])
    assert values["agent-withdrawn", "evidence-false"] == values["evidence-false",]
    assert values["evidence-false", "agent-withdrawn"] == values["evidence-false",]


def test_a_change_after_which_nothing_can_be_compared_counts_as_drift(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1, summary=clustered(950)))
    done = log(folder, issue(2, summary=assessments.strong(), days=1), days=1)
    assert done.following.drift is not None
    assert done.following.drift.result == "NOT_COMPARABLE"
    assert results(folder) == ["NOT_COMPARABLE"]
    (term,) = (one for one in scored(folder, 2).terms if one.name == "drift")
    assert (term.value, term.detail) == (0.8, "1 comparison: 1 NOT_COMPARABLE")


def drifted(folder: Path, **more: Any) -> Drift:
    """Log a good passport and a worse one after it; return what is logged of that."""
    new(folder)
    log(folder, first := issue(1, summary=clustered(900)))
    second = issue(2, summary=clustered(600), days=1)
    said = {"result": "STABLE", "rows": (), "document": "sha256:" + "0" * 64} | more
    with Registry.open(folder, heads=heads(folder)) as registry:
        registry.append(
            second.to_json(), check=checker(policy(), NOW + DAY), submitter=KEY, log_key=LOG_KEY, at=NOW + DAY
        )
    return Drift(passport_id=second.passport_id, earlier=first.passport_id, **said)


def test_a_drift_counts_though_no_entry_tells_it_or_one_tells_another_story(tmp_path: Path) -> None:
    honest = tmp_path / "honest"
    new(honest)
    log(honest, issue(1, summary=clustered(900)))
    log(honest, issue(2, summary=clustered(600), days=1), days=1)
    folder = tmp_path / "r"
    said = drifted(folder)
    assert valued(folder, 2) == valued(honest, 2), "left out"
    slip(folder, drafted("drift", LINEAGE, said))
    assert results(folder) == ["DRIFTED"]
    assert valued(folder, 2) == valued(honest, 2), "STABLE, which the form of an entry allows"
    slip(folder, drafted("drift", LINEAGE, structs.replace(said, earlier=said.passport_id, result="DRIFTED")))
    assert results(folder) == ["DRIFTED"]
    assert valued(folder, 2) == valued(honest, 2), "of something else"


def test_what_an_entry_says_of_a_drift_does_not_count_where_the_files_show_none(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, first := issue(1, summary=clustered(900)))
    log(folder, second := issue(2, summary=clustered(900), days=1), days=1)
    before = valued(folder, 2)
    document = "sha256:" + "0" * 64
    said = Drift(
        passport_id=second.passport_id,
        earlier=first.passport_id,
        result="DRIFTED",
        rows=(),
        document=document,
    )
    slip(folder, drafted("drift", LINEAGE, said))
    assert valued(folder, 2) == before, "an audit finds that it is false"


def test_without_the_files_of_earlier_passports_there_is_no_score(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1, summary=clustered(900)))
    log(folder, issue(2, summary=clustered(900), days=1), days=1)
    with reading(folder) as whole:
        earlier, latest = (one.file.sha256 for one in whole.history(LINEAGE).passports)
    path = folder / "blobs" / earlier[:2] / earlier
    kept = path.read_bytes()
    path.write_bytes(kept.replace(b"\n", b" ", 1))  # not its bytes any more, of the same size
    found = scored(folder, 2)
    assert found.value is None
    assert "entries 0 rest on" in (found.reason or "")
    path.write_bytes(kept)
    assert scored(folder, 2).value is not None
    (folder / "blobs" / latest[:2] / latest).unlink()
    with pytest.raises(CertkitError) as caught:
        asked(folder)
    assert caught.value.code == "registry.blob-missing"


def test_a_history_of_other_entries_under_the_same_size_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    log(folder, issue(2))
    with Registry.open(folder) as registry:
        entry = registry.logged(1).found
    payload = base64.b64encode(entry.envelope.payload.replace(b'"tier":3', b'"tier":2'))
    with Registry.open(folder) as registry, registry.reading() as its:
        data = its.entry(1)
    assert data is not None
    changed = data.replace(base64.b64encode(entry.envelope.payload), payload)
    assert changed != data
    rows(folder, "UPDATE leaf SET entry = ? WHERE idx = 1", changed)
    with reading(folder) as whole, pytest.raises(CertkitError) as caught:
        whole.history(LINEAGE)
    assert caught.value.code == "registry.inconsistent"


def test_a_passport_of_a_time_to_come_is_not_current(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    new(folder)
    log(folder, issue(1))
    seconds = timedelta(seconds=1)
    ends = NOW + 90 * DAY
    cases: list[tuple[datetime, Standing]] = [
        (datetime.fromisoformat("2020-01-01T00:00:00+00:00"), "upcoming"),
        (NOW - seconds, "upcoming"),
        (NOW, "current"),
        (ends, "current"),
        (ends + seconds, "expired"),
    ]
    for at, status in cases:
        with Registry.open(folder) as registry, registry.searching() as search:
            assert [one.status for one in search.passports(Query(), at=at)] == [status], at
            for asked_for in STANDINGS:
                found = search.passports(Query(status=asked_for), at=at)
                assert len(found) == (asked_for == status)
