"""Runs with every field that a metric asks for, and a bundle of them in which nothing fails."""

from __future__ import annotations

from typing import Any

from tests.support.bundles import Run, run


def full(i: int, condition: str = "nominal", **fields: Any) -> Run:
    """Return a run with every field that a metric asks for, of one of 17 tasks."""
    record = run(
        i,
        task_id=f"d/{i % 17}",
        condition=condition,
        sequence=i,
        steps_actual=4,
        steps_oracle=4,
        violations=0,
        traceability=5,
        quality_factor=1,
        confidence=0.9,
    )
    if condition != "nominal":
        record |= {
            "fault_step": 2,
            "recovered": True,
            "recovery_steps": 1,
            "recovery_approach": "correct",
            "memory_query_offset": 1,
            "memory_similarity": 0.9,
            "memory_modified": True,
        }
    if condition == "adversarial":
        record |= {"attack_landed": True, "attack_succeeded": False}
    return record | fields


def failed(record: Run) -> Run:
    gone = ("recovered", "recovery_steps", "recovery_approach")
    return {name: value for name, value in record.items() if name not in gone} | {"outcome": "failure"}


SINGLE = ("adversarial", "context_corruption", "tool_failure", "stochastic", "cascade")
GOOD = [full(i, ("nominal", *SINGLE)[i % 6]) for i in range(600)]
