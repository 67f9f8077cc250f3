"""Evaluations of one agent in several months, each a sealed bundle of sixty runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certkit.bundle.folder import seal
from tests.support import bundles

if TYPE_CHECKING:
    from pathlib import Path


PROTOCOL = {"origin": "measured", "declared_runs": 60, "attempt": 1, "memory_observable": True}


def campaign(name: str, month: int, good: int = 9, *, domain: str = "d") -> list[bundles.Run]:
    """Return sixty runs of twenty tasks, every fifth nominal; of ten fault runs `good` succeed."""
    return [
        bundles.run(
            f"{name}-{i}",
            domain=domain,
            task_id=f"{domain}/{i % 20}",
            condition="nominal" if i % 5 == 0 else "adversarial",
            outcome="success" if i % 5 == 0 or (7 * i + i // 10) % 10 < good else "failure",
            sequence=i,
            started_at=f"2026-{month:02d}-02T10:{i:02d}:{i % 7:02d}Z",
            steps_actual=4,
            steps_oracle=3,
            violations=0,
        )
        for i in range(60)
    ]


def made(root: Path, runs: list[bundles.Run], **fields: Any) -> Path:
    manifest = {**bundles.MANIFEST, "protocol": {**PROTOCOL, **fields}}
    bundles.write(root, {"a.jsonl": bundles.lines(runs)}, manifest)
    seal(root)
    return root
