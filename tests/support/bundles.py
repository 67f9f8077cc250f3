"""Small bundles for tests, written by hand and not by the code under test."""

from __future__ import annotations

import json  # noqa: TID251 - what is written here must not depend on the door that reads it
from typing import TYPE_CHECKING, Any

from certkit import evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

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


def summary(root: Path, *, jobs: int | None = None) -> evidence.Summary:
    """Open the bundle in `root` and reduce its records."""
    return evidence.summarise(evidence.open_bundle(root), jobs=jobs)
