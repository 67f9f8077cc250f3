"""What would change the verdict: re-evaluated on both sides of every point that is named."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from scipy import stats

from certkit.assessment.assessing import assess
from certkit.assessment.bounded.fragility import Fragility, fragility
from certkit.assessment.profile import parse
from certkit.assessment.statistics.posterior import anytime_evidence
from certkit.assessment.words import fragile
from tests.support import bound_laws, bounded_oracle, build, clustered
from tests.support.bounded_oracle import family
from tests.support.clustered import Design

DESIGNS = {
    "strong": Design(seed=3, tasks=60, runs=9, domains=2, family=0, success=0.97),
    "clustered": Design(seed=8, tasks=60, runs=19, domains=2, family=1, success=0.9, spread=0.2),
    "weak": Design(seed=4, tasks=60, runs=9, domains=1, family=0, success=0.7),
}
ASKED = {1: 0.95, 2: 0.95, 3: 0.99}
TAU = {1: 0.60, 2: 0.80, 3: 0.95}


JUDGE = {"name": "j", "independent": True}


def found_for(name: str, **protocol: Any) -> tuple[Fragility, int, int, list[int]]:
    """Return the fragility with successes, runs and runs by cluster under a fault."""
    records = clustered.made(DESIGNS[name])
    judged = clustered.judged(records, build.profile(), clustered.manifest(**protocol))
    faults = [run for run in records if run["condition"] != "nominal"]
    sizes: dict[str, int] = {}
    for run in faults:
        cluster = family(run)
        sizes[cluster] = sizes.get(cluster, 0) + 1
    won = sum(run["outcome"] == "success" for run in faults)
    return fragility(judged), won, len(faults), list(sizes.values())


def tail(s: float, n: float, tau: float) -> float:
    return float(stats.beta(1 + s, 1 + n - s).sf(tau))


@pytest.mark.parametrize("name", DESIGNS)
def test_the_posterior_row_holds_as_the_table_says(name: str) -> None:
    found, s, n, _ = found_for(name)
    assert found.posterior.keys() == ASKED.keys()
    for tier, row in found.posterior.items():
        assert row.holds == (tail(s, n, TAU[tier]) > ASKED[tier])
        groups = bounded_oracle.Evidence(clustered.made(DESIGNS[name]), clustered.manifest()).proportion(
            "r_op"
        )
        weights = {"uniform": Fraction(1), "jeffreys": Fraction(1, 2), "sceptical": Fraction(5)}
        assert row.priors == {
            prior: pytest.approx(
                min(law.sf(TAU[tier]) for law in bound_laws.posteriors(groups, lower=True, prior=weight)),
                rel=1e-8,
                abs=1e-300,
            )
            for prior, weight in weights.items()
        }


@pytest.mark.parametrize("name", DESIGNS)
def test_the_posterior_falls_on_the_far_side_of_the_specificity(name: str) -> None:
    found, s, n, _ = found_for(name, judge=JUDGE)
    for tier, row in found.posterior.items():
        if not row.holds:
            assert row.specificity_falls_at is None
            continue
        assert row.specificity_falls_at is not None

        def shown(specificity: float, tau: float = TAU[tier]) -> float:
            # A true rate of τ looks like τ + (1 - τ)(1 - Sp) to a judge who misses no success.
            return tail(s, n, tau + (1 - tau) * (1 - specificity))

        assert shown(row.specificity_falls_at + 1e-6) > ASKED[tier]
        assert shown(row.specificity_falls_at - 1e-6) < ASKED[tier]


def test_where_no_model_gave_the_outcomes_no_error_of_a_judge_is_named() -> None:
    assert all(row.specificity_falls_at is None for row in found_for("strong")[0].posterior.values())


def test_a_later_attempt_asks_more_of_the_posterior() -> None:
    first, s, n, _ = found_for("clustered", judge=JUDGE)
    later = found_for("clustered", attempt=2, judge=JUDGE)[0]
    assert tail(s, n, 0.8) > 0.995
    for tier in (1, 2):
        one, other = first.posterior[tier], later.posterior[tier]
        assert other.specificity_falls_at is not None
        assert one.specificity_falls_at is not None
        assert other.specificity_falls_at > one.specificity_falls_at


def test_the_posterior_row_is_known_by_its_metric_and_not_by_its_name() -> None:
    text = (
        'id = "own"\n[tiers.1]\nname = "own"\n'
        '[[criteria]]\nid = "r_op"\nmetric = "r_op"\noperator = ">"\ntiers = {1 = 0.6}\n'
        '[[criteria]]\nid = "NAME"\nmetric = "posterior"\noperator = ">"\ntiers = {1 = 0.9999999}\n'
    )
    records = clustered.made(Design(seed=5, tasks=20, runs=2, domains=1, family=0, success=0.9))
    named, other = (
        fragility(clustered.judged(records, parse(text.replace("NAME", name), "own.toml")))
        for name in ("posterior", "shown")
    )
    assert named.posterior[1].priors["uniform"] > 0.95
    assert named.posterior[1] == other.posterior[1]
    assert not named.posterior[1].holds


def test_the_p_value_of_the_process_is_one_over_the_evidence() -> None:
    found, *_ = found_for("clustered")
    records = clustered.made(DESIGNS["clustered"])
    shares: dict[str, list[int]] = {}
    for run in records:
        if run["condition"] != "nominal":
            shares.setdefault(family(run), []).append(run["outcome"] == "success")
    means = np.array(sorted(sum(won) / len(won) for won in shares.values()))
    for tier, row in found.posterior.items():
        evidence = anytime_evidence(means, np.ones(len(means)), TAU[tier])
        assert row.anytime_p == pytest.approx(min(1.0, exp(-evidence)), rel=1e-9)


@pytest.mark.parametrize("declared", [None, 0, 1])
def test_runs_that_are_not_missing_say_nothing(declared: int | None) -> None:
    found = assess(build.strong(), build.facts(declared_runs=declared), build.profile()).fragility
    assert found.missing_runs is None


def test_missing_runs_are_failures_under_faults() -> None:
    of = build.strong()
    found = assess(of, build.facts(declared_runs=of.records + 1000), build.profile()).fragility.missing_runs
    assert found is not None
    successes = sum(cell.tally.success for cell in of.cells if cell.is_fault)
    assert (found.declared, found.recorded, found.missing) == (of.records + 1000, of.records, 1000)
    assert (found.successes, found.n) == (successes, build.FAULTS + 1000)
    assert found.r_op == float(Fraction(successes, build.FAULTS + 1000))


def test_bounds_that_hold_at_any_time_are_not_flipped() -> None:
    profile = clustered.profile_without("hb-eval-2026-bounded", "csi_windowed", head='stopping = "anytime"')
    records = clustered.made(Design(seed=3, tasks=200, runs=5, domains=1, family=0, success=1.0, good=1.0))
    found = fragility(clustered.judged(records, profile))
    assert found.tier > 0
    assert (found.flips, found.without_task) == (None, None)
    assert found.reason is not None
    assert "at any time" in found.reason
    assert any(found.reason in told for told in fragile(found))


def test_where_flips_and_clusters_are_missing_it_is_said_why() -> None:
    attained, lost = build.judged(build.strong()).fragility, build.judged(build.strong(bulk=0)).fragility
    assert (attained.reason, attained.flips is None, attained.without_task is None) == (None, False, False)
    assert (lost.reason, lost.flips, lost.without_task) == ("no tier is attained", None, None)
    assert not any("no tier" in told for told in fragile(lost))  # the verdict says it


def test_without_a_run_under_a_fault_there_is_no_posterior() -> None:
    of = build.summary([build.cell("d", "nominal", build.outcomes(10, 10))])
    assert assess(of, build.facts(), build.profile()).fragility.posterior == {}
