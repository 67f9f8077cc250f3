"""Small bundles for tests, written by hand and not by the code under test."""

from __future__ import annotations

import json  # noqa: TID251 - what is written here must not depend on the door that reads it
from typing import TYPE_CHECKING, Any

import numpy as np

from certkit.bundle.folder import open_bundle
from certkit.summary.summarise import summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from certkit.summary.summary import Summary


Run = dict[str, Any]

MANIFEST: dict[str, Any] = {
    "schema": "urn:certkit:bundle:v1",
    "agent": {"name": "a", "version": "1"},
    "protocol": {"origin": "measured"},
}


def run(run_id: int | str, **fields: Any) -> Run:
    """Return a nominal success in domain ``d`` with what `fields` say otherwise."""
    base = {
        "run_id": str(run_id),
        "domain": "d",
        "task_id": "d/1",
        "condition": "nominal",
        "outcome": "success",
    }
    return base | fields


def line(record: Run) -> bytes:
    """Return a record as one line of JSON."""
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def lines(records: Iterable[Run]) -> bytes:
    """Return records as lines of JSON."""
    return b"".join(map(line, records))


def write(root: Path, files: Mapping[str, bytes], manifest: Mapping[str, Any] = MANIFEST) -> Path:
    """Write an unsealed bundle with `files` under ``records/``, and return its folder."""
    (root / "records").mkdir(parents=True)
    (root / "bundle.json").write_text(json.dumps(manifest), encoding="utf-8")
    for name, data in files.items():
        (root / "records" / name).write_bytes(data)
    return root


def of(root: Path, records: Iterable[Run]) -> Path:
    """Write an unsealed bundle with one file of `records`, and return its folder."""
    return write(root, {"a.jsonl": lines(records)})


def summary(root: Path) -> Summary:
    """Open the bundle in `root` and reduce its records."""
    return summarise(open_bundle(root))


CONDITIONS = (
    "nominal",
    "adversarial",
    "context_corruption",
    "tool_failure",
    "stochastic",
    "cascade",
    "x_own",
)


def campaign(count: int, seed: int = 1) -> list[Run]:
    """Return runs that fill every field, drawn from a seed."""
    draw = np.random.Generator(np.random.PCG64(seed))
    return [_one(i, draw) for i in range(count)]


def _one(i: int, draw: np.random.Generator) -> Run:
    domain, condition = f"d{i % 3}", CONDITIONS[int(draw.integers(len(CONDITIONS)))]
    success, oracle = bool(draw.integers(4)), int(draw.integers(1, 9))
    record = run(
        f"run-{i}",
        domain=domain,
        task_id=f"{domain}/{int(draw.integers(20))}",
        condition=condition,
        outcome="success" if success else "failure",
        sequence=int(i),
        started_at=f"2026-01-01T{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}Z",
        steps_oracle=oracle,
        steps_actual=oracle + int(draw.integers(4)),
        violations=int(draw.integers(3)),
        traceability=int(draw.integers(1000, 5001)) / 1000,
        quality_factor=int(draw.integers(1001)) / 1000,
        confidence=float(draw.random()),
    )
    if condition != "nominal":
        record |= {
            "recovered": success,
            "memory_query_offset": int(draw.integers(5)),
            "memory_similarity": float(draw.random()),
            "memory_modified": True,
        }
        if success:
            record |= {"recovery_steps": int(draw.integers(8)), "recovery_approach": "correct"}
    if i % 7 == 0:
        record["x_note"] = "é"
    return record
