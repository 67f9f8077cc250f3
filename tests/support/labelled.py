"""Runs with labels by people, for tests of what a judge's errors do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certkit.summary.lines import Named
from certkit.summary.ratings import LabelledItem, Ratings
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.bundles import Run

ONE = build.runs(200, 160, tasks=200)
"""Two hundred tasks of one run, 160 of which the judge passed."""


def ratings(records: Iterable[Run], truth: Mapping[str, bool], **fields: Any) -> Ratings:
    """Labels on the runs that `truth` names; the judge passed what the records call a success."""
    by_id = {run["run_id"]: run for run in records}
    items = tuple(
        LabelledItem(
            run=Named(
                **{name: by_id[run_id][name] for name in Named.__struct_fields__ if name in by_id[run_id]}
            ),
            passed=by_id[run_id]["outcome"] == "success",
            truly=truly,
            contradicted=False,
        )
        for run_id, truly in truth.items()
    )
    state = "labelled" if items else "unlabelled"
    stated: dict[str, Any] = {"state": state, "rated": True, "referenced": len(items), "drawn": True} | fields
    return Ratings(items=items, **stated)


def told(records: list[Run], counts: tuple[int, int, int, int], domain: str | None = None) -> dict[str, bool]:
    """Label runs under faults: passed rightly, passed wrongly, failed wrongly and failed rightly."""
    mine = [run for run in records if domain in {None, run["domain"]} and run["condition"] != "nominal"]
    right, wrong, missed, rightly = counts
    passed = [run["run_id"] for run in mine if run["outcome"] == "success"][: right + wrong]
    failing = [run["run_id"] for run in mine if run["outcome"] != "success"][: missed + rightly]
    assert (len(passed), len(failing)) == (right + wrong, missed + rightly)
    return {name: i < right for i, name in enumerate(passed)} | {
        name: i < missed for i, name in enumerate(failing)
    }
