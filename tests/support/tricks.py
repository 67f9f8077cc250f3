"""Expands a description of groups of runs into records, as ``tests/vectors/tricks`` holds them.

Nothing of certkit is used. A group is an object with

- `tasks`: the number of its tasks, `runs`: how often each is run; `domain`, `condition`;
- `task`: what its task names start with (left out: the domain); the tasks are `<task>/0`, `<task>/1`, …;
- `success`: [a, b]: run n of the group, counted from 0 task by task, succeeds where ⌊(n + 1)a/b⌋ > ⌊na/b⌋;
- `first`: the number of the first task (left out: 0), `step`: what the next adds (left out: 1);
- `stage`: when its runs are made (left out: 0);
- `won` and `lost`: the fields of a run that succeeds and of one that fails.

Runs are ordered by stage, then by (2n + 1)/(2 · runs of the group), then by the group's place in the list.
That order is the field `sequence`, unless the case says `ordered: false`. Run n of group g
has the id `g-n`, both counted from 0.

Beside its groups a case may hold what else lies in the bundle:

- `imported`: the account of the import in the manifest;
- `ratings`: [run id, score by the judge, score by a person] of labelled runs. Each is two lines of
  ``calibration/ratings.jsonl``, by the judge that the protocol names and by a person, ann, whose score is the
  reference;
- `traces`: the lines of one trace file, as JSON without spaces, members in the order in which they stand. It
  is packed with zstd, and every run that a line names holds its digest as `trace`.

    >>> group = {"tasks": 2, "runs": 2, "domain": "d", "condition": "nominal", "success": [3, 4]}
    >>> [run["outcome"] for run in records({"groups": [group]})]
    ['failure', 'success', 'success', 'success']
"""

from __future__ import annotations

import hashlib
import json  # noqa: TID251 - what is written here must not depend on the door that reads it
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import zstandard

from tests.support import honest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

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
    traced = {line["run_id"] for line in case.get("traces", ())}
    trace = {"trace": f"sha256:{_digest(_packed(case))}"} if traced else {}
    return [
        run | ({"sequence": i} if ordered else {}) | (trace if run["run_id"] in traced else {})
        for i, (_, run) in enumerate(placed)
    ]


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
        **({"imported": case["imported"]} if "imported" in case else {}),
    }


def write(case: Mapping[str, Any], folder: Path) -> Path:
    """Write a case as an unsealed bundle into a new folder, and return it."""
    honest.write(honest.Evaluation(manifest(case), records(case)), folder)
    files = {}
    if "ratings" in case:
        files["calibration/ratings.jsonl"] = _lines(_ratings(case))
    if "traces" in case:
        packed = _packed(case)
        files[f"traces/{_digest(packed)}.jsonl.zst"] = packed
    for name, data in files.items():
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(data)
    return folder


def _ratings(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    judge = case["protocol"]["judge"]["name"]
    listed = []
    for item, by_judge, by_person in case["ratings"]:
        listed.append({"item": item, "rater": judge, "kind": "judge", "score": by_judge})
        label = {"score": by_person, "reference": by_person}
        listed.append({"item": item, "rater": "ann", "kind": "human", **label})
    return listed


def _packed(case: Mapping[str, Any]) -> bytes:
    return zstandard.compress(_lines(case["traces"]))


def _lines(objects: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(item, separators=(",", ":")).encode() + b"\n" for item in objects)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
