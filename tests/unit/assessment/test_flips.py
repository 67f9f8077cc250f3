"""How many successes must turn into failures, against really turning them and judging again."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from certkit.assessment.bounded.fragility import flips
from certkit.assessment.profile import parse
from certkit.assessment.statistics.estimators import least
from tests.support import bound_laws, bounded_oracle, clustered, oracle
from tests.support.clustered import Design

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.profile import Profile
    from tests.support.strategies import Run

TABLE = clustered.profile_without("hb-eval-2026", "csi")
BOUNDED = clustered.profile_without("hb-eval-2026-bounded", "csi_windowed")
EARLIER = clustered.profile_without("hb-eval-2025")
RECOVERY = ("recovery_steps", "recovery_approach", "recovery_grade")

DESIGNS = {
    "recovery": Design(seed=9, tasks=90, runs=3, domains=2, family=0, success=0.75, guided=0.8, good=0.8),
    "memory": Design(seed=12, tasks=30, runs=6, domains=2, family=1, success=0.9, spread=0.05, guided=0.8),
    "some harness errors": Design(seed=5, tasks=60, runs=6, domains=3, family=0, success=0.97, rig=0.004),
    "perfect": Design(seed=3, tasks=40, runs=5, domains=2, family=0, success=1.0, good=1.0, guided=1.0),
    "one domain": Design(
        seed=52, tasks=30, runs=6, domains=1, family=1, success=0.75, spread=0.05, guided=0.8
    ),
}


def flipped(records: list[Run], chosen: set[str]) -> list[Run]:
    """Turn the chosen runs into failures that did not recover; everything else stays."""
    return [
        {name: value for name, value in run.items() if name not in RECOVERY}
        | {"outcome": "failure"}
        | ({"recovered": False} if "recovered" in run else {})
        if run["run_id"] in chosen
        else run
        for run in records
    ]


def groups(records: list[Run]) -> Iterator[tuple[str, str | None, list[Run]]]:
    """Yield for every row (and domain) the successes under a fault that it loses most by, worst first."""
    won = [run for run in records if run["condition"] != "nominal" and run["outcome"] == "success"]
    graded = [run for run in won if run.get("fault_took_hold") is not False]
    yield "r_op", None, won
    yield "frr", None, sorted(graded, key=lambda run: -(oracle.grade(run) or 0))
    yield "irs", None, [run for run in won if oracle.is_recovery(run) and run.get("memory_modified")]
    yield "cascade_penalty", None, [run for run in won if run["condition"] == "cascade"]
    yield (
        "adversarial_resistance",
        None,
        [run for run in won if run["condition"] == "adversarial" and run.get("attack_landed")],
    )
    yield "frr_2025", None, sorted(won, key=lambda run: -(oracle.grade_2025(run) or 0))
    for domain in sorted({run["domain"] for run in records}):
        yield "domain_min", domain, [run for run in won if run["domain"] == domain]


def lost(records: list[Run], profile: Profile, tier: int, chosen: list[Run]) -> set[str]:
    """Return the rows of a tier that fail when the chosen runs are flipped."""
    judged = clustered.judged(flipped(records, {run["run_id"] for run in chosen}), profile)
    reading = judged.profile.reading
    return {row.id for row in judged.rows if row.tier <= tier and row.deciding(reading) == "not_met"}


CASES = [*((TABLE, name) for name in DESIGNS), (EARLIER, "memory"), (EARLIER, "perfect")]


@pytest.mark.parametrize(("profile", "name"), CASES)
def test_the_least_number_of_flips_loses_the_tier_and_no_smaller_one_does(
    profile: Profile, name: str
) -> None:
    records = clustered.made(DESIGNS[name])
    judged = clustered.judged(records, profile)
    tier = judged.tier("table")
    found = flips(judged, tier, "table")
    assert tier > 0
    assert found is not None
    assert 0 < found.needed <= found.of
    named = {(row, domain): runs for row, domain, runs in groups(records)}
    own = named["r_op" if found.criterion == "posterior" else found.criterion, found.domain]
    if found.criterion not in {"frr", "frr_2025"}:  # of graded runs all successes are told
        assert found.of == len(own)
    assert found.criterion in lost(records, profile, tier, own[: found.needed])
    for runs in named.values():
        assert not lost(records, profile, tier, runs[: found.needed - 1])


def test_grades_that_are_not_whole_cost_less_than_is_told() -> None:
    # 7 tenths each: a flip takes .7 from the sum, and the number told is the safe side of the truth.
    records = clustered.made(Design(seed=3, tasks=40, runs=5, domains=1, family=0, success=1.0, good=1.0))
    for run in records:
        if run["condition"] != "nominal" and run.get("recovered"):
            run["recovery_approach"] = "minor_deviation"
    only = parse(
        'id = "own"\n[tiers.1]\nname = "own"\n'
        '[[criteria]]\nid = "frr"\nmetric = "frr"\noperator = ">="\ntiers = {1 = 0.4}\n',
        "own.toml",
    )
    found = flips(clustered.judged(records, only), 1, "table")
    assert found is not None
    graded = next(runs for row, _, runs in groups(records) if row == "frr")
    truth = next(j for j in range(len(graded)) if lost(records, only, 1, graded[:j]))
    safe = next(j for j in range(len(graded)) if 7 * len(graded) - 10 * j < 4 * len(graded))
    assert safe < found.needed <= truth


@pytest.mark.parametrize("reading", ["table", "bounded"])
@pytest.mark.parametrize(
    ("metric", "operator", "threshold", "group"),
    [
        ("irs_2025", ">=", 0.7, "irs"),
        ("gap", "<", 25, "r_op"),
        ("cascade_penalty", "<", 40, "cascade_penalty"),
    ],
)
def test_rows_that_rest_on_two_series_fall_too(
    metric: str, operator: str, threshold: float, group: str, reading: str
) -> None:
    profile = parse(
        f'id = "own"\nreading = "{reading}"\n[tiers.1]\nname = "own"\n'
        '[[criteria]]\nid = "r_op"\nmetric = "r_op"\noperator = ">="\ntiers = {1 = 0.1}\n'
        f'[[criteria]]\nid = "{metric}"\nmetric = "{metric}"\n'
        f'operator = "{operator}"\ntiers = {{1 = {threshold}}}\n',
        "own.toml",
    )
    design = Design(seed=3, tasks=120, runs=5, domains=1, family=0, success=1.0, good=1.0, guided=1.0)
    records = clustered.made(design)
    judged = clustered.judged(records, profile)
    assert judged.tier("bounded") == 1
    of_table, of_bounds = flips(judged, 1, "table"), flips(judged, 1, "bounded")
    assert of_table is not None
    assert of_bounds is not None
    assert of_table.criterion == of_bounds.criterion == metric
    assert of_bounds.needed < of_table.needed
    own = whole_tasks(next(runs for row, _, runs in groups(records) if row == group), records, group)
    truth = bisect_left(range(len(own)), 1, key=lambda j: bool(lost(records, profile, 1, own[:j])))
    needed = (of_table if reading == "table" else of_bounds).needed
    # The factors of a product are lowered each in its own order of tasks, which is no gentler than one order.
    assert needed == truth or (metric == "irs_2025" and truth - 2 <= needed < truth)


def whole_tasks(won: list[Run], records: list[Run], group: str) -> list[Run]:
    """Return successes task by task: those with the fewest runs that carry the row first, then the best."""
    if group == "irs":
        carrying = [run for run in records if oracle.is_recovery(run) and run["condition"] != "nominal"]
    elif group == "cascade_penalty":
        carrying = [run for run in records if run["condition"] == "cascade"]
    else:
        carrying = [run for run in records if run["condition"] != "nominal"]
    size = Counter(run["task_id"] for run in carrying)
    good = Counter(run["task_id"] for run in won)
    task = {run["run_id"]: run["task_id"] for run in won}
    return sorted(
        won,
        key=lambda run: (
            size[run["task_id"]],
            -good[run["task_id"]] / size[run["task_id"]],
            task[run["run_id"]],
        ),
    )


def one_success_left(records: list[Run], condition: str) -> list[Run]:
    won = [run for run in records if run["condition"] == condition and run["outcome"] == "success"]
    return flipped(records, {run["run_id"] for run in won[1:]})


def test_a_row_that_no_flip_can_lose_gives_way_to_one_that_can() -> None:
    # Single faults succeed rarely, so that no cascade can be worse by 30 points, while r_op rests on others.
    conditions = ("combined", "combined", "combined", "combined", "tool_failure", "cascade")
    records = clustered.made(
        Design(seed=1, tasks=40, runs=9, domains=1, family=0, conditions=conditions, success=1.0)
    )
    records = one_success_left(one_success_left(records, "tool_failure"), "cascade")
    profile = parse(
        'id = "own"\n[tiers.1]\nname = "own"\n'
        '[[criteria]]\nid = "r_op"\nmetric = "r_op"\noperator = ">"\ntiers = {1 = 0.5}\n'
        '[[criteria]]\nid = "penalty"\nmetric = "cascade_penalty"\noperator = "<"\ntiers = {1 = 30}\n',
        "own.toml",
    )
    judged = clustered.judged(records, profile)
    found = flips(judged, 1, "table")
    assert found is not None
    assert found.criterion == "r_op"
    assert 2 < found.needed <= found.of


def test_what_no_flip_can_lose_needs_more_than_there_are() -> None:
    records = clustered.made(
        Design(
            seed=1, tasks=40, runs=9, domains=1, family=0, conditions=("tool_failure", "cascade"), success=1.0
        )
    )
    records = one_success_left(one_success_left(records, "tool_failure"), "cascade")
    profile = parse(
        'id = "own"\n[tiers.1]\nname = "own"\n'
        '[[criteria]]\nid = "penalty"\nmetric = "cascade_penalty"\noperator = "<"\ntiers = {1 = 30}\n',
        "own.toml",
    )
    found = flips(clustered.judged(records, profile), 1, "table")
    assert found is not None
    assert (found.needed, found.of) == (2, 1)


def test_rows_that_no_flip_was_tried_on_are_named_with_the_reason() -> None:
    profile = clustered.profile_without("hb-eval-2026")
    design = Design(
        seed=5, tasks=60, runs=20, domains=1, family=0, success=1.0, good=1.0, guided=1.0, ordered=True
    )
    judged = clustered.judged(clustered.made(design), profile)
    found = flips(judged, judged.tier("table"), "table")
    assert found is not None
    assert found.left_out == {
        "pei": "no outcome enters it",
        "ti": "no outcome enters it",
        "violations": "no outcome enters it",
        "csi": "it depends on when the runs were made",
    }


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("name", ["perfect", "memory"])
def test_bounds_fall_at_the_flip_that_the_oracle_finds(name: str, attempt: int) -> None:
    profile = parse(
        'id = "own"\nreading = "bounded"\n[tiers.1]\nname = "own"\n[tiers.2]\nname = "more"\n'
        '[[criteria]]\nid = "r_op"\nmetric = "r_op"\noperator = ">"\ntiers = {1 = 0.5, 2 = 0.6}\n',
        "own.toml",
    )
    records, about = clustered.made(DESIGNS[name]), clustered.manifest(attempt=attempt)
    judged = clustered.judged(records, profile, about)
    tier = judged.tier("bounded")
    found = flips(judged, tier, "bounded")
    assert found is not None
    assert (tier, found.criterion) == (2, "r_op")
    own = whole_tasks(next(runs for row, _, runs in groups(records) if row == "r_op"), records, "r_op")
    level = 1 - 0.05 * (1 if attempt == 1 else 0.1)

    def bound(j: int) -> float:
        left = flipped(records, {run["run_id"] for run in own[:j]})
        return bound_laws.limit(bounded_oracle.Evidence(left, about).proportion("r_op"), level, lower=True)

    assert bound(found.needed - 1) > 0.6 >= bound(found.needed)


def test_the_bounded_reading_falls_no_later_than_the_table() -> None:
    for name in ("perfect", "memory", "one domain"):
        judged = clustered.judged(clustered.made(DESIGNS[name]), BOUNDED)
        tier = judged.tier("bounded")
        if tier:
            of_table, of_bounds = flips(judged, tier, "table"), flips(judged, tier, "bounded")
            assert of_table is not None
            assert of_bounds is not None
            assert of_bounds.needed <= of_table.needed


def test_the_perfect_agent_attains_a_tier_by_bounds() -> None:
    judged = clustered.judged(clustered.made(DESIGNS["perfect"]), BOUNDED)
    assert judged.tier("bounded") > 0


@pytest.mark.parametrize("first", [1, 2, 7, 10, 11])
def test_least_is_the_first_that_is_enough_or_none(first: int) -> None:
    assert least(lambda j: j >= first, 10) == (first if first <= 10 else None)
