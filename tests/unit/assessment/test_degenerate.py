"""Little or odd evidence: a verdict in words, no crash, no NaN, and never a tier for nothing."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs

from certkit.assessment.assessing import assess
from certkit.assessment.criteria import Status, TierStatus
from certkit.assessment.profile import parse
from certkit.assessment.words import measure_next, sentence
from certkit.ground import canonical
from certkit.ground.errors import Exit, UsageError
from tests.support import build
from tests.support.degenerate import CASES

if TYPE_CHECKING:
    from certkit.summary.summary import Summary


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers(item)]
    if isinstance(value, list):
        return [n for item in value for n in numbers(item)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("profile", ["hb-eval-2026", "hb-eval-2025"])
@pytest.mark.parametrize("case", CASES)
def test_a_verdict_in_words_and_no_tier(case: str, profile: str) -> None:
    found = build.judged(build.summary(CASES[case]), profile)
    document = found.to_dict()
    assert canonical.canonical(document)
    assert all(isfinite(number) for number in numbers(document))
    assert found.verdict.tier == 0
    assert found.exit_code in {Exit.NEGATIVE, Exit.INSUFFICIENT}
    assert sentence(found).startswith("No tier is attained")
    assert len(measure_next(found)) == len(found.verdict.binding) > 0
    assert "nan" not in " ".join(measure_next(found)).lower()


def test_what_was_not_measured_is_not_zero() -> None:
    found = build.judged(build.summary([]))
    assert {metric.value for metric in found.metrics.values()} == {None}
    assert {row.status for row in found.criteria} == {Status.NOT_TESTED, Status.NOT_APPLICABLE}
    assert found.exit_code is Exit.INSUFFICIENT
    assert build.codes(found) >= {"no-records"}


def test_only_what_was_measured_fails() -> None:
    failures = build.judged(build.summary(CASES["all failures"]))
    assert failures.exit_code is Exit.NEGATIVE
    assert set(failures.tiers["1"].not_met) == {"r_op", "domain_min", "posterior"}
    successes = build.judged(build.summary(CASES["all successes"]))
    assert set(successes.tiers["1"].met) == {"r_op", "domain_min", "posterior"}
    assert successes.exit_code is Exit.INSUFFICIENT


def test_attestations_alone_never_attain_a_tier() -> None:
    profile = parse(
        'id = "paper"\n[tiers.1]\nname = "Paper"\n[[criteria]]\nid = "edm"\nmetric = "edm_auditability"\n'
        'operator = "is"\ntiers = {1 = true}\n',
        "paper.toml",
    )
    attested = [{"id": "edm_auditability", "value": True, "evidence": "traces/edm.md"}]

    def exit_code(of: Summary) -> Exit:
        return assess(of, build.facts(attested=attested), profile).exit_code

    assert exit_code(build.summary([])) is Exit.INSUFFICIENT
    assert exit_code(build.summary(CASES["one success"])) is Exit.OK


@pytest.mark.parametrize("tier", [-1, 0, 4])
def test_a_tier_that_the_profile_lacks_cannot_be_required(tier: int) -> None:
    with pytest.raises(UsageError, match="is not in profile hb-eval-2026") as caught:
        build.judged(build.strong(), tier=tier)
    assert caught.value.code == "usage.option"


def test_the_exit_code_is_that_of_the_required_tier() -> None:
    second = build.strong(ti_thousandths=4_200_000)
    assert [build.judged(second, tier=tier).exit_code for tier in (1, 2, 3)] == [0, 0, 1]
    assert build.judged(second).verdict.tier == 2
    missing = build.summary(c for c in build.strong().cells if c.condition != "cascade")
    assert [build.judged(missing, tier=tier).exit_code for tier in (1, 2, 3)] == [4, 4, 4]


def test_a_failing_lower_tier_fails_the_tiers_above() -> None:
    # The 2025 profile asks for documented recovery patterns at Tier 2 only; Tier 3 rests on it all the same.
    found = build.judged(
        build.strong(), "hb-eval-2025", attested=[
            {"id": "recovery_patterns_documented", "value": False, "evidence": "traces/a.md"}
        ],
    )  # fmt: skip
    assert "recovery_patterns_documented" not in found.tiers["3"].not_met
    assert found.tiers["3"].lower is TierStatus.NOT_MET
    assert found.tiers["3"].status is TierStatus.NOT_MET


def test_binding_rows_are_those_of_the_next_tier_worst_first() -> None:
    found = build.judged(build.strong(weak=200, ti_thousandths=2_900_000, irs_yes=0))
    assert found.verdict.binding == ("irs", "domain_min", "ti")
    untested = build.judged(
        build.summary([build.cell("a", "stochastic", build.outcomes(90, 61, ti_n=80, ti_missing=10))])
    )
    by_status = {row.id: row.status for row in untested.criteria if row.tier == 1}
    ranks = [["not_met", "insufficient", "not_tested"].index(by_status[n]) for n in untested.verdict.binding]
    assert ranks == sorted(ranks)
    assert set(untested.verdict.binding) == {
        n for n, s in by_status.items() if s not in {"met", "not_applicable"}
    }


def test_a_profile_that_decides_by_bounds_attains_nothing_without_clusters() -> None:
    profile = build.profile("hb-eval-2026-bounded")
    assert profile.reading == "bounded"
    evidence = build.strong()
    few = structs.replace(evidence, clusters=build.clusters(build.dealt(evidence.cells, 2)))
    found = assess(few, build.facts(), profile)
    assert found.exit_code is Exit.INSUFFICIENT
    assert found.verdict.readings == {"table": 0, "bounded": 0}
    rows = {row.id: row.bounded for row in found.criteria if row.tier == 1 and row.bounded}
    assert rows["r_op"].bound is None
    assert rows["r_op"].reason == ("8 families of tasks; Tier 1 takes at least 10")


@pytest.mark.parametrize("tasks", [9, 10])
def test_every_row_takes_ten_tasks(tasks: int) -> None:
    evidence = build.strong()
    rows = build.clusters(build.dealt(evidence.cells, tasks))
    # The cells share their tasks, so that no row rests on more.
    shared = structs.replace(rows, cluster=rows.cluster % np.uint64(tasks))
    found = assess(structs.replace(evidence, clusters=shared), build.facts(), build.profile())
    for row in found.criteria:
        if row.tier > 1:
            continue
        if tasks == 10 or row.threshold is None:
            assert row.status in {Status.MET, Status.NOT_APPLICABLE}
        else:
            assert row.bounded is not None
            assert (row.status, row.bounded.status) == (Status.INSUFFICIENT, Status.INSUFFICIENT)
            assert row.reason == "rests on 9 tasks, the profile asks for 10"
            if row.id != "csi":
                assert "9 families of tasks; Tier 1 takes at least" in str(row.bounded.reason)
