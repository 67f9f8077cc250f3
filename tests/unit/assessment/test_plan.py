"""Plans: closed forms, exact distributions, monotony, refusals, and what the real reading makes of them."""

from __future__ import annotations

import re
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from scipy import stats

from certkit.assessment import evaluate as judging
from certkit.assessment import parse
from certkit.assessment.bounded import bounds
from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.plan import demand, plan
from certkit.assessment.plan.demand import Expected, expectations
from certkit.assessment.plan.power import (
    Bar,
    Kind,
    Outcome,
    Runs,
    chance,
    difference_chance,
    share,
)
from certkit.assessment.plan.schedule import design
from certkit.assessment.plan.schema import plan_schema
from certkit.errors import NegativeError, UsageError
from certkit.evidence.records.record import SINGLE_FAULTS
from certkit.evidence.summary.summary import CLUSTER_FIELDS, Clusters
from tests.unit.assessment import build

if TYPE_CHECKING:
    from certkit.assessment.plan import Plan, Planned
    from certkit.assessment.profile import Profile
    from certkit.evidence.summary.summary import Summary

BOUNDED = "hb-eval-2026-bounded"
FULL = "r_op=.88,frr=.9,pei=.86,irs=.85,ti=4.3:.5,violations=.15,adversarial_resistance=.85,cascade_penalty=8"

TIERS = '[tiers.1]\nname = "A"\n[tiers.2]\nname = "B"\n'
R_OP = '[[criteria]]\nid = "r_op"\nmetric = "r_op"\noperator = ">"\n'
PURE = parse(
    f'id = "pure"\nreading = "bounded"\n{TIERS}[tiers.3]\nname = "C"\nconfidence = 0.99\n{R_OP}'
    "tiers = {1 = 0.6, 2 = 0.8, 3 = 0.95}\n",
    "pure.toml",
)
"""A table of r_op alone, which any fault mix can show."""


def planned(expect: str, tier: int = 2, name: str | Profile = BOUNDED, **options: Any) -> Plan:
    profile = build.profile(name) if isinstance(name, str) else name
    reading = options.pop("reading", profile.reading)
    return plan(profile, tier, expectations([expect]), design(reading, **options))


def row(of: Plan, name: str) -> Planned:
    return next(item for item in of.rows if item.demand.criterion.id == name)


def counted(of: Plan, name: str) -> Runs:
    """The runs that a row has under its own least schedule."""
    item = row(of, name)
    assert item.least is not None
    assert item.demand.of is not None
    runs = item.least.counted(item.demand.of)
    assert runs is not None
    return runs


def refused(expect: str, tier: int = 2, name: str | Profile = BOUNDED, **options: Any) -> str:
    with pytest.raises(NegativeError) as caught:
        planned(expect, tier, name, **options)
    assert (caught.value.code, caught.value.exit_code) == ("plan.impossible", 1)
    return caught.value.message


# --- closed forms -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("tier", "tau", "delta", "least"), [(2, "0.8", "0.95", 13), (3, "0.95", "0.99", 89)])
def test_without_a_failure_the_least_n_is_where_tau_to_n_plus_1_falls_below_alpha(
    tier: int, tau: str, delta: str, least: int
) -> None:
    alpha = 1 - Fraction(delta)
    assert Fraction(tau) ** (least + 1) < alpha <= Fraction(tau) ** least
    for reading in ("table", "bounded"):
        found = planned("r_op=1", tier, "hb-eval-2026", reading=reading).failure_free
        assert [(item.tier, item.least) for item in found] == [(tier, least)]


@pytest.mark.parametrize(("tier", "tau", "delta", "least"), [(2, 0.80, 0.95, 13), (3, 0.95, 0.99, 89)])
def test_without_a_failure_single_runs_are_worth_what_they_are(
    tier: int, tau: float, delta: float, least: int
) -> None:
    (item,) = planned("r_op=1", tier).failure_free
    assert item.bounded == item.least == least
    for n, met in ((least - 1, False), (least, True)):
        assert bool(stats.beta(1 + n, 1).sf(tau) > delta) == met


def test_a_perfect_agent_is_planned_with_the_least_failure_free_runs() -> None:
    found = planned(
        "r_op=1", 3, domains=1, cluster_size=1, icc=0.0, fault_mix={"tool_failure": 1.0}, name=PURE
    )
    assert found.schedule.per_domain == {"nominal": 23, "tool_failure": 89}


# --- exact distributions ----------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p", "tau"), [(25, 0.9, 0.8), (100, 0.85, 0.8), (337, 0.7, 0.6)])
def test_the_table_reading_at_icc_0_is_a_binomial_tail(n: int, p: float, tau: float) -> None:
    limit = Fraction(str(tau)) * n
    exact = sum(comb(n, s) * p**s * (1 - p) ** (n - s) for s in range(n + 1) if s > limit)
    found = chance(share(p), Runs(n=n, k=n, icc=0.0), Bar(threshold=tau, operator=">"))
    assert found == pytest.approx(exact, abs=1e-9)
    least = sum(comb(n, s) * p**s * (1 - p) ** (n - s) for s in range(n + 1) if s >= limit)
    found = chance(share(1 - p), Runs(n=n, k=n, icc=0.0), Bar(threshold=round(1 - tau, 9), operator="<="))
    assert found == pytest.approx(least, abs=1e-9)


def test_a_tail_of_very_many_runs_is_read_at_some_of_its_counts() -> None:
    n = 2_000_000
    exact = stats.binom(n, 0.8003).sf(n * 4 // 5)
    found = chance(share(0.8003), Runs(n=n, k=n, icc=0.0), Bar(threshold=0.8, operator=">"))
    assert found == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("n", [40, 300])
def test_the_naive_posterior_is_summed_over_every_count(n: int) -> None:
    s = np.arange(n + 1)
    shows = stats.beta(1 + s, 1 + n - s).sf(0.8) > 0.95
    exact = stats.binom(n, 0.88).pmf(s)[shows].sum()
    found = chance(share(0.88), Runs(n=n, k=n, icc=0.0), Bar(threshold=0.8, operator=">", level=0.95))
    assert found == pytest.approx(exact, abs=1e-9)


def test_one_cluster_is_beta_binomial() -> None:
    n, p, icc = 60, 0.85, 0.2
    exact = stats.betabinom(n, p * (1 - icc) / icc, (1 - p) * (1 - icc) / icc).sf(48)
    found = chance(share(p), Runs(n=n, k=1, icc=icc), Bar(threshold=0.8, operator=">"))
    assert found == pytest.approx(exact, abs=1e-9)


def test_counts_are_poisson_and_in_clusters_negative_binomial() -> None:
    bar = Bar(threshold=0.3, operator="<")
    of = Outcome(mean=0.2, variance=0.2, kind=Kind.COUNT)
    found = chance(of, Runs(n=50, k=50, icc=0.0), bar)
    assert found == pytest.approx(stats.poisson(10).cdf(14), abs=1e-9)
    mean, variance = 10.0, 10.0 * 1.9
    exact = stats.nbinom(mean**2 / (variance - mean), mean / variance).cdf(14)
    assert chance(of, Runs(n=50, k=5, icc=0.1), bar) == pytest.approx(exact, abs=1e-6)


def test_a_mean_of_known_spread_has_the_variance_of_its_clusters() -> None:
    of = Outcome(mean=0.9, variance=0.04, kind=Kind.BETWEEN)
    found = chance(of, Runs(n=200, k=40, icc=0.2), Bar(threshold=0.88, operator=">="))
    variance = 0.04 / 200 * (1 + 4 * 0.2)
    size = 0.9 * 0.1 / variance - 1
    assert found == pytest.approx(stats.beta(0.9 * size, 0.1 * size).sf(0.88), abs=2e-3)


def test_a_difference_is_normal_in_the_table_reading() -> None:
    one, other = (share(0.9), Runs(n=400, k=100, icc=0.1)), (share(0.82), Runs(n=100, k=100, icc=0.1))
    error = (0.9 * 0.1 / 400 * 1.3 + 0.82 * 0.18 / 100) ** 0.5
    found = difference_chance(one, other, Bar(threshold=0.15, operator="<"))
    assert found == pytest.approx(stats.norm.cdf(0.07 / error), abs=1e-5)


@pytest.mark.parametrize("reading", ["table", "bounded"])
def test_a_rate_of_1_leaves_nothing_to_chance(reading: str) -> None:
    bar = Bar(threshold=1.0, operator=">=", confidence=0.95 if reading == "bounded" else None, every=True)
    assert chance(share(1.0), Runs(n=40, k=40, icc=0.3), bar) == 1
    assert chance(share(0.99), Runs(n=40, k=40, icc=0.0), bar) == pytest.approx(0.99**40, abs=1e-6)


# --- what the real reading makes of it --------------------------------------------------------------


def drawn(p: float, runs: Runs, draws: int, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Successes of every cluster (columns) in every draw (rows): beta-binomial, sizes as equal as may be."""
    rng = np.random.Generator(np.random.PCG64(seed))
    rate: Any = p
    if runs.icc:
        rate = rng.beta(p * (1 - runs.icc) / runs.icc, (1 - p) * (1 - runs.icc) / runs.icc, (draws, runs.k))
    return rng.binomial(sizes(runs), rate, (draws, runs.k))


def sizes(runs: Runs) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.full(runs.k, runs.n // runs.k) + (np.arange(runs.k) < runs.n % runs.k)


def sample(y: np.ndarray[Any, Any], runs: Runs) -> bounds.Sample:
    """The cluster-robust sample of every draw, by the rule as the design states it."""
    size, n, k = sizes(runs), runs.n, runs.k
    mean = y.sum(1) / n
    return bounds.Sample(
        mean=mean,
        variance=k / (k - 1) * ((y - mean[:, None] * size) ** 2).sum(1) / n**2,
        n=n,
        k=n * n / (size * size).sum(),
        mixed=((y > 0) & (y < size)).sum(1),
    )


# τ, δ, true rate, ICC, runs of a cluster
SHARES = [
    (2, "0.88", 0.0, 1),
    (2, "0.88", 0.1, 5),
    (2, "0.86", 0.3, 5),
    (2, "0.9", 0.1, 20),
    (1, "0.7", 0.2, 10),
    (3, "0.98", 0.1, 5),
    (3, "0.985", 0.3, 4),
]


@pytest.mark.parametrize(("tier", "p", "icc", "size"), SHARES)
def test_planned_runs_meet_the_bounded_reading_about_as_often_as_planned(
    tier: int, p: str, icc: float, size: int
) -> None:
    found = planned(
        f"r_op={p}", tier, PURE, domains=1, icc=icc, cluster_size=size, fault_mix={"tool_failure": 1.0}
    )
    runs = counted(found, "r_op")
    delta = 0.99 if tier == 3 else 0.95
    data = sample(drawn(float(p), runs, 4000, seed=26), runs)
    n_eff = bounds.effective_runs(data, delta, icc0=1.0)
    met = bounds.beta_bound(data.mean, n_eff, delta, lower=True) > (0.6, 0.8, 0.95)[tier - 1]
    assert 0.74 <= met.mean() <= 0.92


@pytest.mark.parametrize(("p", "icc", "size"), [("0.9", 0.1, 5), ("0.92", 0.3, 4)])
def test_planned_runs_meet_the_bounds_of_a_mean_that_spreads_most(p: str, icc: float, size: int) -> None:
    found = planned(f"frr={p}", icc=icc, cluster_size=size)
    runs = counted(found, "frr")
    data = sample(drawn(float(p), runs, 1000, seed=5), runs)
    n_eff = bounds.effective_runs(data, 0.95, icc0=1.0)
    bound = np.minimum(
        bounds.beta_bound(data.mean, n_eff, 0.95, lower=True), bounds.t_bound(data, 0.95, lower=True)
    )
    assert 0.74 <= (bound >= 0.85).mean() <= 0.92


def test_planned_runs_meet_the_bounds_of_a_count() -> None:
    found = planned("violations=.22", icc=0.1)
    runs = counted(found, "violations")
    rng = np.random.Generator(np.random.PCG64(3))
    # Gamma-Poisson with an intraclass correlation of .1: Var(λ) = ICC · (mean + Var(λ)).
    extra = 0.1 / 0.9 * 0.22
    rate = rng.gamma(0.22**2 / extra, extra / 0.22, (1000, runs.k))
    data = sample(rng.poisson(rate * sizes(runs)), runs)
    n_eff = bounds.effective_runs(data, 0.95, icc0=1.0, counts=True)
    bound = np.maximum(bounds.gamma_bound(data.mean, n_eff, 0.95), bounds.t_bound(data, 0.95, lower=False))
    assert 0.74 <= (bound < 0.3).mean() <= 0.92


def test_planned_runs_meet_the_bound_of_a_difference() -> None:
    found = planned("r_op=.88,cascade_penalty=8", icc=0.1)
    item = row(found, "cascade_penalty")
    assert item.least is not None
    arms = []
    for number, arm in enumerate(item.demand.arms):
        runs = item.least.counted(arm.of)
        assert runs is not None
        data = sample(drawn(arm.outcome.mean, runs, 400, seed=number), runs)
        arms.append((data.mean, bounds.effective_runs(data, 0.95, icc0=1.0)))
    (one, n_one), (other, n_other) = arms
    met = [
        bounds.difference_below(bounds.Arm(mean=a, n_eff=x), bounds.Arm(mean=b, n_eff=y), 0.2) > 0.95
        for a, x, b, y in zip(one, n_one, other, n_other, strict=True)
    ]
    assert 0.74 <= np.mean(met) <= 0.92


RATES = {"nominal": 0.95, "cascade": 0.816} | dict.fromkeys(map(str, SINGLE_FAULTS), 0.896)


def evidence(of: Plan, seed: int) -> Summary:
    """A summary with the cells and clusters of a plan; a cluster that is hard is so under every condition."""
    schedule, icc = of.schedule, of.design.icc
    rng = np.random.Generator(np.random.PCG64(seed))
    k = schedule.clusters_per_domain
    cells, cell, cluster, n, y = [], [], [], [], []
    for domain in range(schedule.domains):
        rank, turn = rng.random(k), 0
        for condition, runs in sorted(schedule.per_domain.items()):
            p, scale = RATES[condition], (1 - icc) / icc
            size = np.bincount((turn + np.arange(runs)) % k, minlength=k)
            turn += runs
            good = rng.binomial(size, stats.beta.ppf(rank, p * scale, (1 - p) * scale))
            held = np.flatnonzero(size)
            cells.append(build.cell(f"domain {domain}", condition, build.outcomes(runs, int(good.sum()))))
            cell.append(np.full(len(held), len(cells) - 1))
            cluster.append(domain * k + held)
            n.append(size[held])
            y.append(good[held])
    names = np.concatenate(cluster).astype(np.uint64)
    sums = {name: np.zeros(len(names), np.int64) for name in CLUSTER_FIELDS}
    sums["runs"], sums["success"] = np.concatenate(n), np.concatenate(y)
    sums["failure"] = sums["runs"] - sums["success"]
    rows = Clusters(
        cell=np.concatenate(cell).astype(np.int32),
        cluster=names,
        task=names,
        tag=np.zeros(len(names), "V9"),
        sums=sums,
    )
    return build.summary(cells, rows=rows)


def test_whole_evidence_of_a_plan_is_judged_as_planned() -> None:
    found = planned("r_op=.88,cascade_penalty=8,adversarial_resistance=.896", icc=0.1, domains=4, clusters=76)
    names = {"r_op", "posterior", "domain_min", "adversarial_resistance", "cascade_penalty"}
    met = dict.fromkeys(names, 0)
    draws, profile, manifest = 150, build.profile(BOUNDED), build.facts().manifest
    for seed in range(draws):
        for item in judging.judge(evidence(found, seed), manifest, profile).rows:
            if item.tier == 2 and item.id in names:
                met[item.id] += item.deciding("bounded") == "met"
    for name in names:
        power = row(found, name).power
        assert power is not None
        spread = (power * (1 - power) / draws) ** 0.5
        # Arms that share clusters differ less than the plan takes them to: it may be too careful there.
        most = 1.0 if name == "cascade_penalty" else power + 3 * spread + 0.05
        assert power - 3 * spread - 0.05 <= met[name] / draws <= most, name


# --- the plan ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", ["table", "bounded"])
@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"icc": 0.0}, {"icc": 0.1}),
        ({"icc": 0.1}, {"icc": 0.4}),
        ({"power": 0.6}, {"power": 0.8}),
        ({"power": 0.8}, {"power": 0.95}),
        ({"cluster_size": 2}, {"cluster_size": 10}),
        ({"domains": 2}, {"domains": 8}),
        ({"joint": False}, {"joint": True}),
    ],
    ids=str,
)
def test_harder_conditions_take_more_runs(reading: str, less: dict[str, Any], more: dict[str, Any]) -> None:
    few, many = (planned(FULL, name="hb-eval-2026", reading=reading, **way) for way in (less, more))
    assert few.schedule.runs <= many.schedule.runs
    # A row that holds one run of each cluster does not feel the ICC; taken together, the rows do.
    few_runs, many_runs = (sum(item.runs for item in found.rows) for found in (few, many))
    assert few_runs < many_runs or few.schedule.runs < many.schedule.runs


def test_later_attempts_take_more_runs_by_bounds_alone() -> None:
    first, fifth = (planned(FULL, attempt=attempt).schedule.runs for attempt in (1, 5))
    assert first < fifth
    first, fifth = (planned(FULL, attempt=attempt, reading="table").schedule.runs for attempt in (1, 5))
    assert first == fifth


def test_every_row_reaches_the_power_and_its_least_schedule_does_so_alone() -> None:
    found = planned(FULL)
    for item in found.rows:
        if item.power is not None:
            assert item.power >= 0.8
    assert found.driver.runs == max(item.runs for item in found.rows)
    assert found.runner_up is not None
    assert found.driver.runs >= found.runner_up.runs
    assert found.schedule.runs >= found.driver.runs
    assert found.together >= 1 - sum(1 - item.power for item in found.rows if item.power is not None) - 1e-12
    assert planned(FULL, joint=True).together >= 0.8


def test_the_schedule_follows_the_mix_and_a_fifth_is_nominal() -> None:
    mix = {"adversarial": 0.5, "tool_failure": 0.1, "cascade": 0.4}
    schedule = planned(FULL, fault_mix=mix, domains=3).schedule
    faults = sum(schedule.per_domain.values()) - schedule.per_domain["nominal"]
    assert list(schedule.per_domain) == ["nominal", "adversarial", "tool_failure", "cascade"]
    for condition, part in mix.items():
        assert part * faults - 3 <= schedule.per_domain[condition] <= part * faults + 1
    assert schedule.per_domain["nominal"] - 1 < faults / 4 <= schedule.per_domain["nominal"]
    assert schedule.clusters_per_domain == -(-faults // 5)
    assert schedule.runs == 3 * sum(schedule.per_domain.values())


def test_a_stated_deviation_takes_fewer_runs_than_the_largest() -> None:
    largest, stated = (counted(planned(text, reading="table"), "ti").n for text in ("ti=4.05", "ti=4.05:.4"))
    assert stated < largest


def test_rows_without_expectation_count_with_the_clusters_of_their_bound() -> None:
    found = planned("r_op=.99")
    frr = row(found, "frr")
    assert (frr.power, frr.demand.reason, frr.demand.clusters) == (None, "no expectation is given", 18)
    assert found.schedule.clusters >= 18
    assert row(found, "csi_windowed").runs >= 500
    assert row(planned("r_op=.99", reading="table"), "frr").least is None
    assert row(planned("r_op=.99", reading="table", name="hb-eval-2026"), "csi").runs >= 100
    assert row(planned("r_op=.99", name="hb-eval-2026", reading="bounded"), "csi").runs >= 500
    attested = row(planned("frr_2025=.95", 3, "hb-eval-2025"), "transparency_index")
    assert (attested.demand.reason or "").startswith("attested")


def test_a_row_of_a_lower_tier_is_left_out_where_a_higher_one_entails_it() -> None:
    ids = [item.demand.criterion.id for item in planned("r_op=.97", 3).rows]
    assert len(ids) == len(set(ids)) == 11
    # The loosest row of a tier may be asked with more confidence below: both stay.
    tiers = TIERS.replace('"A"', '"A"\nconfidence = 0.99').replace('"B"', '"B"\nconfidence = 0.9')
    text = f'id = "x"\nreading = "bounded"\n{tiers}{R_OP}tiers = {{1 = 0.6, 2 = 0.62}}\n'
    found = plan(parse(text, "x.toml"), 2, expectations(["r_op=.7"]), design("bounded"))
    assert [item.demand.tier for item in found.rows] == [1, 2]


def test_the_weakest_domain_is_planned_with_the_others_that_make_up_the_mean() -> None:
    alike, weak = planned("r_op=.88"), planned("r_op=.88,domain_min=.75")
    assert row(alike, "domain_min").runs < row(weak, "domain_min").runs
    means = [arm.outcome.mean for arm in row(weak, "domain_min").demand.arms]
    assert means == pytest.approx([0.75, *[(5 * 0.88 - 0.75) / 4] * 4])


def test_the_arms_of_a_cascade_penalty_average_to_r_op() -> None:
    item = row(planned("r_op=.88,cascade_penalty=8"), "cascade_penalty")
    single, cascade = (arm.outcome.mean for arm in item.demand.arms)
    assert single - cascade == pytest.approx(0.08)
    assert 0.8 * single + 0.2 * cascade == pytest.approx(0.88)


def test_the_curve_ends_beyond_the_plan_and_passes_through_it() -> None:
    found = planned(FULL)
    points = {point.runs: point for point in found.curve}
    at = points[found.schedule.runs]
    assert at.together == found.together
    assert at.driver == found.curve_of.power
    assert max(points) > 1.8 * found.schedule.runs
    assert [point.runs for point in found.curve] == sorted(points)


@pytest.mark.parametrize(
    ("expect", "tier", "name"), [(FULL, 2, BOUNDED), ("frr_2025=.95", 3, "hb-eval-2025")]
)
def test_the_document_has_its_published_form_and_is_always_the_same(
    expect: str, tier: int, name: str
) -> None:
    document = planned(expect, tier, name).to_dict()
    jsonschema.Draft202012Validator(plan_schema()).validate(document)
    assert document == planned(expect, tier, name).to_dict()


# --- refusals ---------------------------------------------------------------------------------------


def test_an_expectation_at_or_beyond_the_threshold_is_refused_by_name() -> None:
    assert (
        refused("r_op=.8", name=PURE)
        == "no number of runs shows r_op at Tier 2: 80.0 % expected, > 80 % asked"
    )
    text = refused("frr=.85,violations=.4,r_op=.7,cascade_penalty=20")
    for name in ("frr", "violations", "r_op", "cascade_penalty", "posterior"):
        assert f"{name} at Tier 2" in text
    assert "violations at Tier 2: 0.400 expected, < 0.3 asked" in text


def test_more_than_ten_million_runs_are_too_close() -> None:
    assert "too close to the threshold, more than 10,000,000 runs" in refused("r_op=.8001", name=PURE)


def test_too_few_clusters_are_refused() -> None:
    assert "its bound takes 13 clusters, the plan has 10" in refused("r_op=.99", name=PURE, clusters=10)
    assert "50 clusters are too few at ICC 0.5" in refused("r_op=.85", name=PURE, clusters=50, icc=0.5)


def test_a_mix_without_the_runs_of_a_row_is_refused() -> None:
    text = refused("r_op=.99", fault_mix={"tool_failure": 1.0})
    assert "adversarial_resistance at Tier 2: the fault mix has no adversarial runs" in text
    assert "cascade_penalty at Tier 2: the fault mix has no cascade runs" in text


def test_a_profile_that_nothing_meets_is_refused() -> None:
    text = 'id = "x"\n[tiers.1]\nname = "A"\n[[criteria]]\nid = "r"\nmetric = "r_op"\noperator = ">"\n'
    with pytest.raises(NegativeError, match="no value of r_op is > 1") as caught:
        plan(parse(text + "tiers = {1 = 1}\n", "x.toml"), 1, expectations(["r_op=1"]), design("table"))
    assert caught.value.code == "plan.impossible"


@pytest.mark.parametrize(
    ("expect", "options", "message"),
    [
        ("rop=.9", {}, "'rop' is no metric"),
        ("posterior=.99", {}, "'posterior' is no metric"),
        ("csi_windowed=.9", {}, "'csi_windowed' is no metric"),
        ("irs=.9", {}, "irs is planned together with an expectation of r_op"),
        ("cascade_penalty=8", {}, "cascade_penalty is planned together with"),
        ("r_op", {}, "is not METRIC=VALUE"),
        ("r_op=nan", {}, "is not METRIC=VALUE"),
        ("r_op=1e9", {}, "is not METRIC=VALUE"),
        ("r_op=.9,r_op=.8", {}, "two expectations of r_op"),
        ("r_op=1.1", {}, "expected values are 0 to 1, found 1.1"),
        ("ti=0.5", {}, "expected values are 1 to 5"),
        ("violations=-1", {}, "expected values are 0 or more"),
        ("r_op=.9:.1", {}, "follows from its value"),
        ("frr=.9:.31", {}, "no values with mean 0.9 have a standard deviation of 0.31"),
        ("violations=0:.1", {}, "no values with mean 0 have a standard deviation of 0.1"),
        ("r_op=.88,domain_min=.9", {}, "does not fit r_op"),
        ("r_op=.95,domain_min=.7", {}, "does not fit r_op"),
        ("r_op=.9,domain_min=.8", {"domains": 1}, "does not fit r_op"),
        ("r_op=.98,cascade_penalty=15", {}, "would be a success of 101.0 % in single-fault runs"),
        ("r_op=.9", {"domains": 0}, "domains: expected 1 to 100"),
        ("r_op=.9", {"icc": 1.0}, "icc: expected 0 to below 1"),
        ("r_op=.9", {"power": 1.0}, "power: expected"),
        ("r_op=.9", {"attempt": 0}, "attempt: expected"),
        ("r_op=.9", {"cluster_size": 0}, "cluster_size: expected"),
        ("r_op=.9", {"cluster_size": 5, "clusters": 50}, "give one"),
        ("r_op=.9", {"clusters": 4}, "one per domain or more"),
        ("r_op=.9", {"fault_mix": {"rain": 1.0}}, "fault_mix: 'rain' is none of"),
        ("r_op=.9", {"fault_mix": {"nominal": 1.0}}, "fault_mix: 'nominal' is none of"),
        ("r_op=.9", {"fault_mix": {"cascade": 0.9}}, "that sum to 1"),
        ("r_op=.9", {"fault_mix": {"cascade": float("nan")}}, "that sum to 1"),
    ],
)
def test_what_cannot_be_is_a_wrong_use(expect: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        planned(expect, **options)
    assert caught.value.code == "usage.option"


def test_a_tier_that_is_not_there_no_expectation_and_bounds_at_any_time() -> None:
    with pytest.raises(UsageError, match="tier 4 is not in profile"):
        planned("r_op=.9", 4)
    text = 'id = "x"\n[tiers.1]\nname = "A"\n[[criteria]]\nid = "i"\nmetric = "irs"\noperator = ">"\n'
    irs = parse(text + "tiers = {1 = 0.5}\n", "x.toml")
    for profile, expect in ((build.profile(), {}), (irs, {"r_op": Expected(value=Fraction(9, 10))})):
        with pytest.raises(UsageError, match="nothing is expected") as caught:
            plan(profile, 1, expect, design("table"))
        assert (caught.value.hint or "").startswith("known: ")
    text = 'id = "x"\nstopping = "anytime"\n[tiers.1]\nname = "A"\n[[criteria]]\nid = "r"\nmetric = "r_op"\n'
    profile = parse(text + 'operator = ">"\ntiers = {1 = 0.5}\n', "x.toml")
    with pytest.raises(UsageError, match="not fixed beforehand"):
        plan(profile, 1, {"r_op": Expected(value=Fraction(9, 10))}, design("bounded"))
    assert plan(profile, 1, {"r_op": Expected(value=Fraction(9, 10))}, design("table")).together >= 0.8


@pytest.mark.parametrize("metric", CATALOGUE)
def test_every_metric_is_planned_or_it_is_said_why_not(metric: str) -> None:
    planned = demand._unplannable(metric) is None
    assert planned == (metric in demand._OF)


@pytest.mark.parametrize("reading", ["table", "bounded"])
def test_rows_that_are_not_planned_stand_in_the_plan_with_the_reason(reading: Any) -> None:
    found = plan(
        build.profile("hb-eval-2025"),
        3,
        expectations(["frr_2025=.96,pei_2025=.93"]),
        design(reading, domains=5),
    )
    reasons = {row["id"]: row["reason"] for row in found.to_dict()["criteria"]}
    assert "product of two metrics" in reasons["irs_2025"]
    assert "call for a halt" in reasons["safe_halt_on_risk"]
    assert "attested" in reasons["transparency_index"]
    assert reasons["frr_2025"] is None
