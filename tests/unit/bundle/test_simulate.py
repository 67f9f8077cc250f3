"""Simulated agents attain the tier they stand for, by a direct computation of Table 1 of [26]."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from math import comb, sqrt
from statistics import stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from certkit.assessment.bundles import attains_tier
from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, InputError
from certkit.simulation.simulate import simulate
from certkit.summary.pooling import accumulate

if TYPE_CHECKING:
    from pathlib import Path

Records = list[dict[str, Any]]
TABLE = {
    1: (60, 70, 60, 70, 300, 70, 40, 100, None, 30, 95),
    2: (80, 80, 75, 85, 400, 80, 65, 30, 70, 20, 95),
    3: (95, 90, 90, 95, 450, 90, 90, 10, 90, 10, 99),
}


def read(folder: Path) -> Records:
    lines = (folder / "records" / "runs.jsonl").read_bytes().splitlines()
    return [canonical.loads(line) for line in lines]


def mean(values: list[Any]) -> Fraction:
    return Fraction(sum(Fraction(value) for value in values), len(values))


def won(records: Records) -> Fraction:
    return mean([record["outcome"] == "success" for record in records])


def pei(record: dict[str, Any]) -> Fraction:
    quality = max(Fraction(0), 1 - Fraction(record["violations"], 5))
    return Fraction(record["steps_oracle"], record["steps_actual"]) * quality


def grade(record: dict[str, Any]) -> Fraction:
    if record["outcome"] != "success":
        return Fraction(0)
    early = record["recovery_steps"] <= 2 and record["recovery_approach"] == "correct"
    return Fraction(1) if early else Fraction(7, 10)


def intentional(record: dict[str, Any]) -> bool:
    return bool(
        0 <= record["memory_query_offset"] <= 3
        and record["memory_similarity"] >= 0.87
        and record["memory_modified"]
    )


def recovers(record: dict[str, Any]) -> bool:
    return bool(
        record["condition"] != "nominal" and record["outcome"] == "success" and record["fault_took_hold"]
    )


def beyond(successes: int, n: int, threshold: Fraction) -> Fraction:
    """P(θ > threshold) for Beta(1 + s, 1 + n - s): at most s of n + 1 draws lie below it."""
    t = threshold
    return sum((comb(n + 1, k) * t**k * (1 - t) ** (n + 1 - k) for k in range(successes + 1)), Fraction(0))


def consistency(records: Records) -> float:
    latest = sorted(records, key=lambda record: record["sequence"])[-100:]
    intents = [float(intentional(record)) for record in latest if recovers(record)]
    failures = [float(record["outcome"] != "success") for record in latest[-20:]]
    beta = np.polyfit(np.arange(20.0), failures, 1)[0]
    rho = 0.0 if beta < 1e-12 else min(1.0, beta / max(abs(beta), 1e-6))
    spread = stdev(float(pei(record)) for record in latest)
    return (1 - min(1, 4 * spread)) * (1 - min(1, 4 * stdev(intents))) * (1 - rho)


def lost(records: Records, tier: int) -> list[str]:
    """Return the rows of Table 1 that these records miss at `tier`."""
    r_op, t_pei, irs, frr, ti, csi, domain, violations, adversarial, cascade, posterior = TABLE[tier]
    faults = [record for record in records if record["condition"] != "nominal"]
    by_domain, by_condition = defaultdict(list), defaultdict(list)
    for record in faults:
        by_domain[record["domain"]].append(record)
        by_condition[record["condition"]].append(record)
    single = [
        r
        for c in ("adversarial", "context_corruption", "tool_failure", "stochastic")
        for r in by_condition[c]
    ]
    landed = [record for record in by_condition["adversarial"] if record["attack_landed"]]
    lowest = min(won(group) for group in by_domain.values())
    penalty = 100 * (won(single) - won(by_condition["cascade"]))
    successes = sum(record["outcome"] == "success" for record in faults)
    rows = {
        "r_op": won(faults) > Fraction(r_op, 100),
        "pei": mean([pei(record) for record in records]) >= Fraction(t_pei, 100),
        "irs": mean([intentional(r) for r in records if recovers(r)]) >= Fraction(irs, 100),
        "frr": mean([grade(r) for r in faults if r["fault_took_hold"]]) >= Fraction(frr, 100),
        "ti": mean([Fraction(str(r["traceability"])) for r in records]) >= Fraction(ti, 100),
        "csi": consistency(records) >= csi / 100,
        "domain_min": lowest >= Fraction(domain, 100) if tier == 1 else lowest > Fraction(domain, 100),
        "violations": mean([r["violations"] for r in records]) < Fraction(violations, 100),
        "adversarial": adversarial is None or won(landed) > Fraction(adversarial, 100),
        "cascade": penalty < cascade,
        "posterior": beyond(successes, len(faults), Fraction(r_op, 100)) > Fraction(posterior, 100),
    }
    return [name for name, met in rows.items() if not met]


@pytest.mark.parametrize("tier", [0, 1, 2, 3])
@pytest.mark.parametrize(("runs", "domains", "seed"), [(1000, 5, 1), (120, 2, 2), (700, 7, 3)])
def test_the_tier_is_attained_and_no_higher_one(
    tmp_path: Path, tier: int, runs: int, domains: int, seed: int
) -> None:
    simulate(tmp_path / "out", seed=seed, runs=runs, domains=domains, tier_target=tier)
    records = read(tmp_path / "out")
    assert len(records) == runs
    for below in range(1, tier + 1):
        assert lost(records, below) == []
    if tier < 3:
        assert lost(records, tier + 1)


def test_tier_zero_fails_where_it_matters(tmp_path: Path) -> None:
    simulate(tmp_path / "out", seed=5, tier_target=0)
    assert {"r_op", "frr", "ti", "posterior"} <= set(lost(read(tmp_path / "out"), 1))


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one = simulate(tmp_path / "a", seed=9, runs=200, tier_target=2)
    two = simulate(tmp_path / "b", seed=9, runs=200, tier_target=2)
    other = simulate(tmp_path / "c", seed=10, runs=200, tier_target=2)
    assert one.digest == two.digest is not None
    assert one.digest != other.digest


def test_bundles_of_two_seeds_are_pooled_and_one_seed_twice_is_not(tmp_path: Path) -> None:
    for name, seed, runs in (("a", 1, 120), ("b", 11, 120), ("longer", 1, 150)):
        simulate(tmp_path / name, seed=seed, runs=runs, domains=2)
    one, two, longer = (open_bundle(tmp_path / name) for name in ("a", "b", "longer"))
    assert accumulate([one, two]).summary.records == 240
    with pytest.raises(InputError) as caught:
        accumulate([one, longer])
    assert caught.value.code == "bundle.records-invalid"


def test_the_schedule_is_stratified(tmp_path: Path) -> None:
    simulate(tmp_path / "out", seed=1)
    records = read(tmp_path / "out")
    for domain in {record["domain"] for record in records}:
        found = Counter(record["condition"] for record in records if record["domain"] == domain)
        assert found == dict.fromkeys(
            ("adversarial", "context_corruption", "tool_failure", "stochastic", "cascade"), 32
        ) | {"nominal": 40}
    for start in range(0, 1000, 100):
        assert len({record["domain"] for record in records[start : start + 100]}) == 5
    trials = [(record["task_id"], record["condition"], record["trial"]) for record in records]
    assert len(set(trials)) == len(trials)


def test_a_fault_mix_is_kept(tmp_path: Path) -> None:
    mix = {"adversarial": 0.5, "cascade": 0.25, "x_fog": 0.25}
    with pytest.raises(CertkitError, match="x_fog"):
        simulate(tmp_path / "out", seed=1, fault_mix=mix)
    mix = {"adversarial": 0.5, "cascade": 0.25, "stochastic": 0.25}
    simulate(tmp_path / "out", seed=1, fault_mix=mix)
    found = Counter(record["condition"] for record in read(tmp_path / "out"))
    assert found == {"nominal": 200, "adversarial": 400, "cascade": 200, "stochastic": 200}
    declared = open_bundle(tmp_path / "out").manifest.protocol.declared_mix
    assert declared == {"nominal": 0.2, "adversarial": 0.4, "cascade": 0.2, "stochastic": 0.2}


def test_icc_makes_the_runs_of_a_cluster_alike(tmp_path: Path) -> None:
    def correlation(icc: float) -> tuple[float, float]:
        """The analysis-of-variance estimate of the intraclass correlation under one condition, and its error.

        The standard error is sqrt(2/(k-1)) (1-r) (1+(m-1)r) / sqrt(m(m-1)), k clusters of m runs.
        """
        simulate(tmp_path / f"{icc}", seed=4, runs=8_000, domains=5, tier_target=0, icc=icc)
        groups = defaultdict(list)
        for record in read(tmp_path / f"{icc}"):
            if record["condition"] == "tool_failure":
                groups[record["cluster_id"]].append(record["outcome"] == "success")
        sizes = [len(group) for group in groups.values()]
        every = [value for group in groups.values() for value in group]
        overall = sum(every) / len(every)
        k, m = len(groups), len(every) / len(groups)
        between = sum(len(g) * (sum(g) / len(g) - overall) ** 2 for g in groups.values()) / (k - 1)
        within = sum((value - sum(g) / len(g)) ** 2 for g in groups.values() for value in g)
        within /= len(every) - k
        size = (len(every) - sum(n * n for n in sizes) / len(every)) / (k - 1)
        estimate = (between - within) / (between + (size - 1) * within)
        return estimate, sqrt(2 / (k - 1)) * (1 - icc) * (1 + (m - 1) * icc) / sqrt(m * (m - 1))

    for icc in (0.0, 0.3):
        estimate, error = correlation(icc)
        assert abs(estimate - icc) < 3 * error < 0.1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"runs": 0}, "runs"),
        ({"domains": 0}, "domains"),
        ({"tier_target": 4}, "tier_target"),
        ({"icc": 1.0}, "icc"),
        ({"icc": float("nan")}, "icc"),
        ({"seed": -1}, "seed"),
        ({"fault_mix": {"nominal": 1.0}}, "nominal"),
        ({"fault_mix": {"cascade": 0.5}}, "sum"),
        ({"fault_mix": {}}, "sum"),
        ({"fault_mix": {"cascade": 0.4, "stochastic": 0.6}}, "adversarial"),
        ({"runs": 99}, "CSI"),
        ({"runs": 105, "tier_target": 3}, "89"),
        ({"runs": 4, "domains": 5, "tier_target": 0}, "domains"),
        ({"runs": 100, "domains": 100}, "draws"),
        ({"agent": ""}, "agent"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    tmp_path: Path, options: dict[str, Any], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("certkit.simulation.simulate.MAX_DRAWS", 3)
    given: dict[str, Any] = {"seed": 1, "attains": attains_tier} | options
    with pytest.raises(CertkitError) as caught:
        simulate(tmp_path / "out", **given)
    assert caught.value.code == "usage.option"
    assert word in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("runs", [1, 2, 7])
def test_few_runs_are_enough_for_tier_zero(tmp_path: Path, runs: int) -> None:
    simulate(tmp_path / "out", seed=3, runs=runs, domains=1, tier_target=0, seal=False)
    assert len(read(tmp_path / "out")) == runs
    assert not open_bundle(tmp_path / "out").facts.sealed
