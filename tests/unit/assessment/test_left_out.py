"""The verdict without each task and without each domain, against really leaving their records out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from certkit.assessment.bounded.fragility import fragility
from certkit.assessment.profile import parse
from tests.support import clustered
from tests.support.bounded_oracle import family
from tests.support.clustered import Design

if TYPE_CHECKING:
    from certkit.assessment.bounded import Judged
    from certkit.assessment.profile import Profile
    from tests.support.strategies import Run

# Consistency rests on the order of all runs, which leaving some out would change too. A row's least number of
# tasks is left away: agents that one task carries have few.
TABLE = clustered.profile_without("hb-eval-2026", "csi", few=True)
BOUNDED = clustered.profile_without("hb-eval-2026-bounded", "csi_windowed", few=True)
EARLIER = clustered.profile_without("hb-eval-2025", few=True)
ATTEMPT = clustered.manifest(attempt=2, n=400)

# Found by a search over seeds: agents that attain a tier which some of their clusters carry.
CASES = {
    "table, memory": (
        TABLE,
        Design(seed=12, tasks=30, runs=6, domains=2, family=1, success=0.9, spread=0.05, guided=0.8),
    ),
    "table, two rows": (
        TABLE,
        Design(seed=88, tasks=24, runs=3, domains=1, family=0, success=0.85, guided=0.8, good=0.8),
    ),
    "bounds, attacks": (
        BOUNDED,
        Design(seed=15, tasks=60, runs=3, domains=1, family=1, success=0.95, guided=0.95, good=0.97),
    ),
    "bounds, recovery": (
        BOUNDED,
        Design(
            seed=31, tasks=40, runs=6, domains=2, family=0, success=0.9, spread=0.05, guided=0.8, good=0.8
        ),
    ),
    "bounds, second attempt": (
        BOUNDED,
        Design(seed=16, tasks=50, runs=6, domains=1, family=0, success=0.85, good=0.95),
    ),
    "earlier paper": (
        EARLIER,
        Design(seed=2, tasks=34, runs=6, domains=1, family=1, success=0.8, good=0.8),
    ),
}


def clusters(records: list[Run]) -> list[str]:
    return sorted({family(run) for run in records})


def failing(judged: Judged, tier: int) -> set[str]:
    reading = judged.profile.reading
    allowed = {"met", "not_applicable"}
    return {row.id for row in judged.rows if row.tier <= tier and row.deciding(reading) not in allowed}


def by_hand(records: list[Run], profile: Profile, tier: int, about: Run | None) -> tuple[int, Counter[str]]:
    """Read and judge the records without each cluster."""
    losing, rows = 0, Counter[str]()
    for name in clusters(records):
        left = [run for run in records if family(run) != name]
        lost = failing(clustered.judged(left, profile, about), tier)
        losing += bool(lost)
        rows.update(lost)
    return losing, rows


@pytest.mark.parametrize("name", CASES)
def test_each_cluster_left_out_is_each_cluster_not_read(name: str) -> None:
    profile, design = CASES[name]
    about = ATTEMPT if "attempt" in name else None
    records = clustered.made(design)
    found = fragility(clustered.judged(records, profile, about))
    assert found.without_task is not None
    losing, rows = by_hand(records, profile, found.tier, about)
    assert losing > 0
    assert found.without_task.tasks == len(clusters(records))
    assert found.without_task.criteria == rows
    assert found.without_task.losing == losing


@pytest.mark.parametrize("name", CASES)
def test_each_domain_left_out_is_each_domain_not_read(name: str) -> None:
    profile, design = CASES[name]
    records = clustered.made(design)
    found = fragility(clustered.judged(records, profile))
    domains = sorted({run["domain"] for run in records})
    assert [row.domain for row in found.without_domain] == (domains if len(domains) > 1 else [])
    for row in found.without_domain:
        rest = clustered.judged([run for run in records if run["domain"] != row.domain], profile)
        assert (row.table, row.bounded) == (rest.tier("table"), rest.tier("bounded"))


OWN = """
id = "own"
reading = "bounded"
[tiers.1]
name = "own"
[[criteria]]
id = "r_op"
metric = "r_op"
operator = ">"
tiers = {1 = 0.6}
[[criteria]]
id = "shown"
metric = "posterior"
operator = ">"
tiers = {1 = 0.95}
[[criteria]]
id = "halts"
metric = "safe_halt_on_risk"
operator = ">="
tiers = {1 = 1.0}
[[criteria]]
id = "gap"
metric = "gap"
operator = "<"
tiers = {1 = 15}
"""


def test_a_rule_that_no_run_broke_hangs_on_no_cluster() -> None:
    profile = parse(OWN, "own.toml")
    records = clustered.made(Design(seed=2, tasks=60, runs=6, domains=1, family=0, success=1.0, good=1.0))
    records[0] |= {"outcome": "safe_halt", "confidence": 0.2, "recovered": False} | (
        {} if records[0]["condition"] != "nominal" else {"recovered": None}
    )
    records[0] = {
        key: value
        for key, value in records[0].items()
        if value is not None and key not in {"recovery_steps", "recovery_approach"}
    }
    found = fragility(clustered.judged(records, profile))
    assert found.tier == 1
    assert found.without_task is not None
    assert by_hand(records, profile, 1, None) == (0, Counter())
    assert (found.without_task.losing, found.without_task.criteria) == (0, {})


def test_what_no_tier_is_attained_on_hangs_on_nothing() -> None:
    records = clustered.made(Design(seed=2, tasks=20, runs=2, domains=1, family=0, success=0.2))
    found = fragility(clustered.judged(records, TABLE))
    assert (found.tier, found.without_task, found.flips) == (0, None, None)


@pytest.mark.parametrize("profile", [TABLE, BOUNDED], ids=["table", "bounds"])
def test_two_clusters_can_be_judged_without_one(profile: Profile) -> None:
    # Nothing but that no division by zero is met on the way to one cluster, or to none.
    for tasks in (1, 2):
        records = clustered.made(
            Design(seed=1, tasks=tasks, runs=9, domains=1, family=0, success=1.0, good=1.0)
        )
        found = fragility(clustered.judged(records, profile))
        assert found.without_task is None or found.without_task.tasks == tasks


def one_row(metric: str, operator: str, threshold: float) -> Profile:
    return parse(
        f'id = "own"\nreading = "bounded"\n[tiers.1]\nname = "own"\n'
        f'[[criteria]]\nid = "row"\nmetric = "{metric}"\n'
        f'operator = "{operator}"\ntiers = {{1 = {threshold}}}\n',
        "own.toml",
    )


@pytest.mark.parametrize(("tasks", "threshold"), [(4, 0.5), (13, 0.8), (14, 0.8)])
def test_with_as_many_clusters_as_a_bound_needs_each_is_needed(tasks: int, threshold: float) -> None:
    records = clustered.made(
        Design(seed=2, tasks=tasks, runs=1, domains=1, family=0, conditions=("stochastic",), success=1.0)
    )
    profile = one_row("r_op", ">", threshold)
    found = fragility(clustered.judged(records, profile))
    assert found.without_task is not None
    assert found.without_task.losing == (tasks if tasks in {4, 13} else 0)
    assert by_hand(records, profile, 1, None)[0] == found.without_task.losing


def test_a_task_with_a_violation_can_carry_the_row() -> None:
    # The bound falls where a task without one is left out, so that a threshold just above it is lost.
    records = clustered.made(Design(seed=2, tasks=30, runs=4, domains=1, family=0, success=1.0, good=1.0))
    for name in clusters(records)[:5]:
        next(run for run in records if run["task_id"] == name)["violations"] = 1
    bound = clustered.judged(records, one_row("violations", "<", 0.9)).rows[0].bounded
    assert bound is not None
    assert bound.bound is not None
    for threshold, carry in ((0.9, False), (round(float(bound.bound), 4) + 1e-4, True)):
        profile = one_row("violations", "<", threshold)
        found = fragility(clustered.judged(records, profile))
        assert found.without_task is not None
        assert found.without_task.losing == by_hand(records, profile, 1, None)[0]
        assert (found.without_task.losing > 0) == carry
