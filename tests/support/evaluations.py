"""An evaluation that a reader would believe, and what tricks make of its records.

`honest` is drawn from a seed: two hundred tasks in two domains, three runs of each under every kind of fault
in turn and some without, scores with many digits. It attains Tier 2 by both readings without a serious
finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from certkit.assessment.assessment import Question
from certkit.assessment.bundles import assess_bundles
from tests.support import bundles

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from certkit.assessment.assessment import Assessment
    from certkit.assessment.evaluation import Evaluation
    from tests.support.bundles import Run

FAULTS: Final = ("adversarial", "context_corruption", "tool_failure", "stochastic", "cascade")
START: Final = np.datetime64("2026-03-02T08:00:00")
PROTOCOL: Final[dict[str, Any]] = {
    "origin": "measured",
    "methodology": "trajectory",
    "temperature": 0.7,
    "memory_observable": True,
    "cascade_definition": "simultaneous",
    "tasks_independent": True,
    "attempt": 1,
    "period": {"from": "2026-03-01", "to": "2026-03-31"},
    "evaluator": {"name": "lab", "relation": "independent"},
}


def honest(tasks: int = 200, per: int = 3, seed: int = 1) -> list[Run]:
    """Return the runs of an evaluation, `per` of each task, in the order of time."""
    draw = np.random.Generator(np.random.PCG64(seed))
    oracle = draw.integers(20, 40, tasks)
    return [_one(draw, i, i % tasks, i // tasks, int(oracle[i % tasks])) for i in range(tasks * per)]


def _one(draw: np.random.Generator, i: int, task: int, trial: int, oracle: int) -> Run:
    condition = "nominal" if (task + trial) % 5 == 0 else FAULTS[int(draw.integers(len(FAULTS)))]
    domain = ("harbour", "museum")[task % 2]
    started = START + np.timedelta64(int(200 * i + draw.integers(1, 150)), "s")
    success = i % 97 != 5
    run = bundles.run(
        f"r{i:05d}",
        domain=domain,
        task_id=f"{domain}/errand-{task:03d}",
        condition=condition,
        outcome="success" if success else "failure",
        sequence=i,
        started_at=f"{started}Z",
        steps_actual=oracle + int(draw.integers(0, 3)),
        steps_oracle=oracle,
        violations=0,
        traceability=float(draw.integers(4600, 5001)) / 1000,
        confidence=float(draw.uniform(0.75, 1)),
        safety_risk=float(draw.uniform(0, 0.5)),
    )
    if condition != "nominal":
        run |= {"fault_step": int(draw.integers(1, 9)), "fault_took_hold": True, "recovered": success}
        if success:
            run |= {
                "recovery_steps": int(draw.integers(0, 3)),
                "recovery_approach": "correct",
                "memory_query_offset": int(draw.integers(0, 4)),
                "memory_similarity": float(draw.uniform(0.88, 1)),
                "memory_modified": True,
            }
    if condition in {"adversarial", "cascade"}:
        run |= {"attack_attempted": True, "attack_landed": True, "attack_succeeded": not success}
    return run


def written(root: Path, records: Iterable[Run], **protocol: Any) -> Path:
    """Write an unsealed bundle of records; None takes a protocol fact away."""
    listed = list(records)
    stated = {"declared_runs": len(listed)} | PROTOCOL | protocol
    facts = {key: item for key, item in stated.items() if item is not None}
    return bundles.write(root, {"runs.jsonl": bundles.lines(listed)}, bundles.MANIFEST | {"protocol": facts})


def judged(root: Path, records: Iterable[Run], *, tier: int = 1, **protocol: Any) -> Evaluation:
    """Write an unsealed bundle as `written` does, and judge it."""
    return assess_bundles(written(root, records, **protocol), question=Question(required_tier=tier))


def serious(assessment: Assessment) -> set[str]:
    """Return the codes of the serious findings that are open."""
    return {item.code for item in assessment.serious if item.is_open}
