"""Expands a description of groups of runs into records, as ``tests/vectors/tricks`` holds them.

Nothing of certkit is used. A group is an object with

- `tasks`: the number of its tasks, `runs`: how often each is run; `domain`, `condition`;
- `task`: what its task names start with (left out: the domain); the tasks are `<task>/0`, `<task>/1`, …;
- `success`: [a, b]: run n of the group, counted from 0 task by task, succeeds where ⌊(n + 1)a/b⌋ > ⌊na/b⌋;
- `first`: the number of the first task (left out: 0), `step`: what the next adds (left out: 1);
- `stage`: when its runs are made (left out: 0);
- `won` and `lost`: the fields of a run that succeeds and of one that fails.

Runs are ordered by stage, then by (2n + 1)/(2 · runs of the group), then by the group's place in the list.
That order is the field `sequence`, unless the case says `ordered: false`.

    >>> group = {"tasks": 2, "runs": 2, "domain": "d", "condition": "nominal", "success": [3, 4]}
    >>> [run["outcome"] for run in records({"groups": [group]})]
    ['failure', 'success', 'success', 'success']
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.honest import Run


def records(case: Mapping[str, Any]) -> list[Run]:
    """Return the records of a case, in their order."""
    placed = []
    for place, group in enumerate(case["groups"]):
        size = group["tasks"] * group["runs"]
        for n in range(size):
            moment = group.get("stage", 0), Fraction(2 * n + 1, 2 * size), place
            placed.append((moment, _run(group, place, n)))
    placed.sort(key=lambda pair: pair[0])
    ordered = case.get("ordered", True)
    return [run | ({"sequence": i} if ordered else {}) for i, (_, run) in enumerate(placed)]


def _run(group: Mapping[str, Any], place: int, n: int) -> Run:
    a, b = group["success"]
    won = (n + 1) * a // b > n * a // b
    task = group.get("first", 0) + group.get("step", 1) * (n // group["runs"])
    return {
        "run_id": f"{place}-{n}",
        "domain": group["domain"],
        "task_id": f"{group.get('task', group['domain'])}/{task}",
        "condition": group["condition"],
        "outcome": "success" if won else "failure",
        **group.get("won" if won else "lost", {}),
    }


def manifest(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a case."""
    return {
        "schema": "urn:certkit:bundle:v1",
        "agent": {"name": "courier", "version": "1.0"},
        "protocol": case["protocol"],
    }
