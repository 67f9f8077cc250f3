"""A summary whose numbers were altered is refused, except where nothing but the records could tell."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from certkit.bundle.folder import open_bundle
from certkit.ground.errors import InputError
from certkit.summary.summarise import summarise
from certkit.summary.summary import read_summary
from tests.support import build, bundles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.summary.summary import Summary

CONDITIONS = ("nominal", "adversarial", "context_corruption", "tool_failure", "cascade", "x_own")
OUTCOMES = ("success", "success", "success", "failure", "safe_halt", "success", "harness_error")


def run_of_everything(i: int) -> bundles.Run:
    """Return run i: every field that its condition and outcome allow, in values that vary with i."""
    condition, outcome = CONDITIONS[i % 6], OUTCOMES[(i * 5) % 7]
    domain, task = "de"[i % 2], (i // 2) % 3
    short = outcome == "failure" and i % 4 == 0
    run = bundles.run(
        i,
        domain=domain,
        task_id=f"{domain}/{task}",
        condition=condition,
        outcome=outcome,
        sequence=i,
        started_at=f"2026-01-{1 + i // 60:02}T10:{i % 60:02}:00Z",
        split="novel_fault" if i % 11 == 5 else "standard",
        steps_oracle=5,
        steps_actual=3 if short else 5 + i % 4,
        quality_factor=0.9,
        confidence=0.6 if i % 3 == 0 else 0.9,
        layer2_score=0.8,
        layer3_score=0.5 + (i % 5) / 10,
    )
    if i % 4 == 1:
        run["cluster_id"] = f"family-{task % 2}"
    if outcome != "harness_error":
        run |= {"violations": i % 8, "traceability": 3.5 + (i % 3) / 2}
    if condition != "nominal":
        run |= {
            "fault_step": 2,
            "memory_query_offset": i % 5,
            "memory_similarity": 0.9,
            "memory_modified": i % 3 > 0,
        }
        if outcome == "success":
            run |= {"fault_took_hold": True, "recovered": True, "recovery_steps": i % 7}
            run["recovery_approach"] = "correct"
        elif outcome != "harness_error":
            run["recovery_grade"] = 0.4 if i % 5 == 0 else 0.0
            if i % 2:
                run["fault_took_hold"] = False
    if condition in {"adversarial", "cascade"} and outcome != "harness_error":
        run |= {"attack_landed": i % 5 > 0, "attack_succeeded": i % 5 > 0 and i % 4 == 0}
    return run


def summary_of_everything(root: Path) -> Summary:
    records = [run_of_everything(i) for i in range(150)]
    judge: dict[str, Any] = {"name": "j", "independent": True}
    protocol = {"origin": "measured", "judge": judge, "task_salt": "01" * 32, "memory_observable": True}
    bundles.write(root / "b", {"a.jsonl": bundles.lines(records)}, {**bundles.MANIFEST, "protocol": protocol})
    (root / "b" / "calibration").mkdir()
    ratings = [
        {
            "item": str(i),
            "rater": rater,
            "score": float(i % 3 > 0),
            "reference": float(i % 3 > 0),
            "kind": kind,
        }
        for i in range(0, 60, 3)
        for rater, kind in (("p", "human"), ("j", "judge"))
    ]
    (root / "b" / "calibration" / "a.jsonl").write_bytes(bundles.lines(ratings))
    return summarise(open_bundle(root / "b"))


ACCEPTED: Final = {
    "counted once, in cells: findings and information rest on them, no row of a tier": (
        r"cells\.counts\.(frr_squares|pei_squares|ti_squares|violations_squares|effect_unknown)",
        r"cells\.counts\.(pei_stopped_short|pei_literal_fixed|grade_on_failure|success_with_violations)",
        r"cells\.counts\.(un)?guided(_success)?",
        r"cells\.counts\.(risk_reported|composite_differs|layer[23]_passes|layers_pass|not_landed)",
        r"cells\.counts\.(attack_known|attack_succeeded|success_with_attack|landed_known|landed_won)",
        r"cells\.counts\.violations",
        r"(equal_runs|repeated|varying_oracles|times)(\..*)?",
        r"labels\.(referenced|contradicted)",
    ),
    "cells of held-out faults, of which one series is made": (
        r"cells\.counts\.(frr_tenths|ti_thousandths|violations_capped|frr25_halves|halt_missed)",
    ),
    "rounded: the exact terms decide, and the sums by task lie within the rounding": (
        r"cells\.counts\.pei(25)?_fixed",
        r"(core\.)?means\.pei(_fault|_2025)?\.rows\.2",
    ),
    "squares by task, which no other part holds; they move the standard error": (
        r"(core\.)?means\.\w+\.rows\.3",
    ),
    "normal core runs of tasks with a fault run, which no other part tells apart": (
        r"core\.means\.\w+_normal\.rows\.0",
    ),
    "single runs in time, which no other part holds": (r"order\.latest\..*", r"order\.thirds\.\w+\.1"),
    "single labelled tasks, which no other part holds": (r"labels\.tasks\..*",),
    "tasks without rows: with one more, the rows are the smallest tags": (r"tasks\.tasks",),
}
"""Why an altered number is accepted, and by which places: replay of the evidence finds all of them."""


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every integer in JSON values."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path


def altered(document: Any, path: tuple[str | int, ...], change: int) -> bool:
    """Tell whether the document is accepted with one number changed, and change it back."""
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] += change
    try:
        read_summary(document)
    except InputError:
        return False
    finally:
        parent[path[-1]] -= change
    return True


def name(path: tuple[str | int, ...]) -> str:
    """Return a path with the places of rows left out, but not those inside a row."""
    inside = [str(key) for place, key in enumerate(path) if isinstance(key, str) or place == len(path) - 1]
    return ".".join(inside)


def test_an_altered_number_is_refused_unless_only_the_records_could_tell(tmp_path: Path) -> None:
    document = summary_of_everything(tmp_path).to_dict()
    patterns = {pattern: re.compile(pattern) for places in ACCEPTED.values() for pattern in places}
    met, total, unknown = Counter[str](), 0, Counter[str]()
    for path in leaves(document):
        for change in (1, -1):
            total += 1
            if altered(document, path, change):
                place = next((key for key, it in patterns.items() if it.fullmatch(name(path))), None)
                (unknown if place is None else met)[place or name(path)] += 1
    assert not unknown
    assert sorted(patterns.keys() - met.keys()) == []
    assert met.total() < 0.3 * total


# --- parts that no cell holds, beside the series that they are of ------------------------------------------


def in_order(results: str, domain: str) -> list[bundles.Run]:
    """Fault runs of one task each, in their order; S succeeds and f fails."""
    return [
        bundles.run(
            f"{domain}-{i}",
            domain=domain,
            task_id=f"{domain}/{i}",
            condition="tool_failure",
            outcome="success" if result == "S" else "failure",
            sequence=i,
        )
        for i, result in enumerate(results)
    ]


SIZE = "the last third of a is not a third of its fault runs"
DOMAINS = "the last thirds are not those of the domains with fault runs"


@pytest.mark.parametrize(
    ("results", "last", "thirds", "message"),
    [
        ("SSfffS", [[1, 0, 1], [1, 1, 1]], [[1, 1, 1]], SIZE),
        ("SSfffS", [[1, 0, 1], [1, 1, 1]], [[1, 0, 2], [1, 1, 1]], SIZE),
        ("fffffS", [[1, 0, 1], [1, 1, 1]], [[1, 1, 2]], SIZE),
        ("SSSSSf", [[1, 0, 1], [1, 1, 1]], [[1, 0, 2]], SIZE),
        ("SSfffS", [[1, 0, 1], [1, 1, 1]], None, DOMAINS),
    ],
    ids=[
        "fewer runs than a third",
        "more runs than a third",
        "more successes than in all",
        "more successes before it than runs",
        "none of a domain",
    ],
)
def test_a_last_third_that_is_none_of_its_fault_runs_is_refused(
    results: str, last: list[list[int]], thirds: list[list[int]] | None, message: str
) -> None:
    document = build.summary([*in_order(results, "a"), *in_order("SSS", "b")]).to_dict()
    assert document["order"]["thirds"] == {"a": last, "b": [[1, 1, 1]]}
    if thirds is None:
        del document["order"]["thirds"]["a"]
    else:
        document["order"]["thirds"]["a"] = thirds
    with pytest.raises(InputError, match=message) as caught:
        read_summary(document)
    assert caught.value.code == "summary.invalid"


def test_a_last_third_of_a_domain_without_fault_runs_is_refused() -> None:
    document = build.summary(in_order("SSfffS", "a")).to_dict()
    document["order"]["thirds"]["b"] = [[1, 1, 1]]
    with pytest.raises(InputError, match=DOMAINS):
        read_summary(document)


@pytest.mark.parametrize("metric", ["cascade_penalty", "gap"])
@pytest.mark.parametrize(
    "row",
    [[1, 1, 5, 2, 1, 1], [1, 1, 4, 3, 1, 1], [1, 1, 4, 2, 2, 1]],
    ids=["tasks", "successes of the first", "successes of the second"],
)
def test_pairs_of_more_than_the_tasks_of_both_series_are_refused(metric: str, row: list[int]) -> None:
    """Four tasks have one run of either series, of which two and one succeed: both in one task."""
    first, second = {"cascade_penalty": ("tool_failure", "cascade"), "gap": ("nominal", "stochastic")}[metric]
    made = [*build.runs(4, 2, first, tasks=4), *build.runs(4, 1, second, tasks=4)]
    document = build.summary(made).to_dict()
    assert document["pairs"][metric] == {"rows": [[1, 1, 4, 2, 1, 1]]}
    assert read_summary(document).pairs.keys() == {metric}
    document["pairs"][metric] = {"rows": [row]}
    with pytest.raises(InputError, match=f"the pairs of {metric} are more than the tasks of both"):
        read_summary(document)
