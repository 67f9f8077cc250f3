"""Summaries built by hand: every row of the tier table can be set on its own, to the last run.

The strong agent passes all rows of all tiers. Its runs under tool failure are many, its other cells
small, so that a small cell can cross its own threshold without moving the aggregate.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from scipy.special import gammaln

from certkit.assessment.assessing import assess
from certkit.assessment.bounded import Judged
from certkit.assessment.profile import Profile, parse
from certkit.bundle.manifest import Facts, Manifest
from certkit.ground import files
from certkit.ground.canonical import Digest
from certkit.record.record import Split
from certkit.summary.summary import (
    CLUSTER_FIELDS,
    PEI_SCALE,
    STRETCHES,
    Cell,
    Clusters,
    Stretch,
    Summary,
    Tally,
    Times,
    Window,
    WindowRun,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from certkit.assessment.criteria import Row
    from certkit.assessment.result import Assessment

AGENT: dict[str, Any] = {
    "name": "courier",
    "version": "1.0",
    "components": [{"role": "model", "name": "m", "digest": "sha256:" + "1" * 64}],
}
PROTOCOL: dict[str, Any] = {
    "origin": "measured",
    "methodology": "trajectory",
    "temperature": 0,
    "judge": {"name": "j", "independent": True},
    "memory_observable": True,
    "cascade_definition": "simultaneous",
    "attempt": 1,
    "evaluator": {"name": "lab", "relation": "independent"},
    "period": {"from": "2026-01-01", "to": "2026-01-31"},
}


def profile(name: str = "hb-eval-2026") -> Profile:
    path = files.packaged("templates", "profiles", f"{name}.toml")
    return parse(path.read_text(encoding="utf-8"), path.name)


def facts(
    *,
    sealed: bool = True,
    unread: tuple[str, ...] = (),
    agent: Mapping[str, Any] | None = None,
    attested: Iterable[Mapping[str, Any]] = (),
    imported: Mapping[str, Any] | None = None,
    **protocol: Any,
) -> Facts:
    """Facts of a well-documented bundle; keyword arguments replace protocol facts, None leaves one out."""
    stated = {key: value for key, value in {**PROTOCOL, **protocol}.items() if value is not None}
    document = {
        "schema": "urn:certkit:bundle:v1",
        "agent": AGENT if agent is None else agent,
        "protocol": stated,
        "attested": tuple(attested),
        "imported": imported,
    }
    manifest = Manifest.model_validate(document, strict=False)
    digest = Digest("sha256:" + "0" * 64)
    return Facts(manifest=manifest, digest=digest, sealed=sealed, agent_digest=digest, unread=unread)


def outcomes(runs: int, success: int, **fields: int) -> Tally:
    """A tally whose runs succeed or fail, harness errors and safe halts given apart."""
    rest = runs - success - fields.get("harness_error", 0) - fields.get("safe_halt", 0)
    return Tally(runs=runs, success=success, failure=rest, **fields)


def cell(
    domain: str,
    condition: str,
    tally: Tally,
    *,
    split: Split = Split.STANDARD,
    pei_terms: Mapping[int, int] | None = None,
    pei25_terms: Mapping[int, int] | None = None,
) -> Cell:
    return Cell(
        split=split,
        domain=domain,
        condition=condition,
        tally=tally,
        pei_terms=pei_terms or {},
        pei25_terms=pei25_terms or {},
    )


def clusters(rows: Iterable[tuple[int, int, int, dict[str, int]]] = ()) -> Clusters:
    """Rows of (cell index, cluster, task, tally fields)."""
    listed = list(rows)
    return Clusters(
        cell=np.array([row[0] for row in listed], dtype=np.int32),
        cluster=np.array([row[1] for row in listed], dtype=np.uint64),
        task=np.array([row[2] for row in listed], dtype=np.uint64),
        tag=np.array([row[1].to_bytes(9) for row in listed], "V9"),
        sums={
            name: np.array([row[3].get(name, 0) for row in listed], dtype=np.int64) for name in CLUSTER_FIELDS
        },
    )


TASKS = 10
"""Tasks of a cell where no rows are given: as many as the packaged profiles ask for."""


def dealt(cells: Iterable[Cell], most: int = TASKS) -> Iterator[tuple[int, int, int, dict[str, int]]]:
    """Rows as if each cell held so many tasks of its own, or as many as it has runs, as alike as can be."""
    for number, item in enumerate(cells):
        tasks = max(1, min(most, item.tally.runs))
        for task in range(tasks):
            name = number * most + task
            whole = {field: getattr(item.tally, field) for field in CLUSTER_FIELDS}
            yield (
                number,
                name,
                name,
                {field: (task + 1) * n // tasks - task * n // tasks for field, n in whole.items()},
            )


def window(
    pei: Iterable[Fraction] | None = None,
    irs: Iterable[int | None] | None = None,
    success: Iterable[bool] | None = None,
) -> Window:
    """A window of 100 runs; by default perfect, steady and intentional throughout."""
    values = list(pei) if pei is not None else [Fraction(1)] * 100
    memory = list(irs) if irs is not None else [1] * len(values)
    good = list(success) if success is not None else [True] * len(values)
    runs = tuple(
        WindowRun(value.as_integer_ratio(), intent, ok)
        for value, intent, ok in zip(values, memory, good, strict=True)
    )
    return Window(order="sequence", reason=None, runs=len(runs), latest=runs)


def summary(
    cells: Iterable[Cell],
    *,
    ordered: Window | None = None,
    times: Times | None = None,
    rows: Clusters | None = None,
) -> Summary:
    listed = tuple(sorted(cells, key=lambda item: (item.split, item.domain, item.condition)))
    return Summary(
        records=sum(item.tally.runs for item in listed),
        cells=listed,
        clusters=rows if rows is not None else clusters(dealt(listed)),
        window=ordered or Window(order=None, reason="no run has a place in time", runs=0),
        times=times or Times(),
    )


BULK, ADVERSARIAL, WEAK, CASCADE = 100_000, 1_000, 1_000, 1_020
FAULTS = BULK + ADVERSARIAL + WEAK + CASCADE
FIELD_RUNS = 1_000

STRONG: dict[str, int] = {
    "bulk": 99_100,
    "adversarial": 950,
    "weak": 950,
    "cascade": 1_000,
    "frr_tenths": 1_019_898,  # of 1,030,200 for all runs under faults
    "pei_terms": 49_500,  # of 50,000 for steps_actual 10 and 1,000 runs
    "irs_yes": 990,
    "ti_thousandths": 4_900_000,
    "violations": 50,
}


def strong(ordered: Window | None = None, **changes: int) -> Summary:
    """The summary of an agent that passes every row of every tier, but for `changes`."""
    x = {**STRONG, **changes}
    bulk = structs.replace(
        outcomes(BULK, x["bulk"]),
        frr_n=BULK,
        frr_tenths=x["frr_tenths"] - 10 * (FAULTS - BULK),
        pei_n=FIELD_RUNS,
        pei_fixed=x["pei_terms"] * PEI_SCALE // 50,
        irs_yes=x["irs_yes"],
        irs_no=FIELD_RUNS - x["irs_yes"],
        ti_n=FIELD_RUNS,
        ti_thousandths=x["ti_thousandths"],
        violations_n=FIELD_RUNS,
        violations=x["violations"],
    )
    landed = {"landed": ADVERSARIAL, "landed_success": x["adversarial"]} | _recovered(ADVERSARIAL)
    return summary(
        [
            cell("bank", "nominal", outcomes(25_500, 25_400)),
            cell("bank", "tool_failure", bulk, pei_terms={10: x["pei_terms"]}),
            cell("bank", "adversarial", outcomes(ADVERSARIAL, x["adversarial"], **landed)),
            cell("bank", "cascade", outcomes(CASCADE, x["cascade"], **_recovered(CASCADE))),
            cell("shop", "nominal", outcomes(250, 240)),
            cell("shop", "stochastic", outcomes(WEAK, x["weak"], **_recovered(WEAK))),
        ],
        ordered=ordered or window(),
    )


def _recovered(runs: int) -> dict[str, int]:
    return {"frr_n": runs, "frr_tenths": 10 * runs}


def judged(of: Summary, name: str = "hb-eval-2026", *, tier: int = 1, **protocol: Any) -> Assessment:
    return assess(of, facts(**protocol), profile(name), required_tier=tier)


def table(of: Summary) -> Judged:
    """Return the rows of Table 1 without what a whole assessment adds to them."""
    return Judged(of, facts().manifest, profile())


def lost(rows: Iterable[Row]) -> set[tuple[str, int]]:
    """The rows that are specified and that the table does not meet."""
    return {(row.id, row.tier) for row in rows if row.status not in {"met", "not_applicable"}}


def codes(assessment: Assessment) -> set[str]:
    return {finding.code for finding in assessment.findings}


def binomial_tail(s: int, n: int, tau: float) -> float:
    """P(θ > τ) for Beta(1 + s, 1 + n - s) by the binomial identity P(Bin(n + 1, τ) ≤ s), term by term."""
    k = np.arange(s + 1)
    choices = gammaln(n + 2) - gammaln(k + 1) - gammaln(n + 2 - k)
    return float(np.exp(choices + k * log(tau) + (n + 1 - k) * log(1 - tau)).sum())


_CONDITIONS = ("adversarial", "cascade", "context_corruption", "stochastic", "tool_failure")


def perfect(tasks: int, repeats: int) -> Summary:
    """Return flawless evidence in one domain: every task `repeats` times under faults, once without.

    Fault conditions are dealt out in turn over all runs; every row of the tier table is measured.
    """
    dealt = np.arange(tasks * repeats).reshape(tasks, repeats) % len(_CONDITIONS)
    runs = {name: (dealt == number).sum(axis=1) for number, name in enumerate(_CONDITIONS)}
    runs["nominal"] = np.ones(tasks, np.int64)
    cells: list[Cell] = []
    rows = []
    for name in sorted(runs):
        if not runs[name].any():
            continue
        number = len(cells)
        rows += [
            (number, task, task, _fields(name, count))
            for task, count in enumerate(runs[name].tolist())
            if count
        ]
        total = _fields(name, int(runs[name].sum()))
        plain = {key: total[key] for key in total if key not in {"runs", "success", "pei_fixed"}}
        tally = outcomes(total["runs"], total["runs"], **plain)
        cells.append(cell("depot", name, tally, pei_terms={10: 50 * total["runs"]}))
    return summary(cells, ordered=ordered_runs(tasks * (repeats + 1)), rows=clusters(rows))


def _fields(condition: str, runs: int) -> dict[str, int]:
    fields = {"runs": runs, "success": runs, "pei_n": runs, "pei_fixed": runs * PEI_SCALE}
    fields |= {"ti_n": runs, "ti_thousandths": 5000 * runs, "violations_n": runs}
    if condition != "nominal":
        fields |= {"frr_n": runs, "frr_tenths": 10 * runs, "irs_yes": runs}
    if condition == "adversarial":
        fields |= {"landed": runs, "landed_success": runs}
    return fields


def ordered_runs(runs: int) -> Window:
    stretches = tuple(
        Stretch(
            runs=stop - start,
            failures=0,
            pei_n=stop - start,
            pei_fixed=(stop - start) * PEI_SCALE,
            pei_squares=(stop - start) * PEI_SCALE**2,
            irs_yes=stop - start,
            irs_no=0,
            irs_silent=0,
            irs_incomplete=0,
            domains_missing=0,
        )
        for start, stop in pairwise(runs * part // STRETCHES for part in range(STRETCHES + 1))
    )
    return structs.replace(window(), runs=runs, stretches=stretches)
