"""Bundles of many tasks: enough families of runs that bounds can be given, and close to every threshold.

A few drawn parameters and a seed make the records, since drawing every field of a thousand runs would take
longer than judging them. The stream of the seed is that of PCG64's raw numbers, the same for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from tests.support.strategies import ATTESTATION, SINGLE, Contents, Run, compact

CONDITIONS: Final = ("nominal", *SINGLE, "cascade")


@dataclass(frozen=True)
class Design:
    """What a bundle is made from. Shares are probabilities of a run; `spread` is how unlike clusters are."""

    seed: int
    tasks: int
    runs: int  # of each task, at most
    domains: int
    family: int  # tasks in a cluster that is named, 0: clusters are tasks
    conditions: tuple[str, ...] = CONDITIONS
    success: float = 0.95
    spread: float = 0.0
    guided: float = 0.97
    good: float = 0.95  # full grade, no violation, least steps
    rig: float = 0.0
    missing: float = 0.0
    landed: str = "some"
    ordered: bool = True


class Numbers:
    """Uniform numbers of one seed, in order."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def share(self) -> float:
        return int(self._bits.random_raw()) / 2**64

    def below(self, bound: int) -> int:
        return int(self.share() * bound)

    def chance(self, probability: float) -> bool:
        return self.share() < probability


def made(design: Design) -> list[Run]:
    """Return the records of a design."""
    numbers = Numbers(design.seed)
    listed: list[Run] = []
    for task in range(design.tasks):
        cluster = task // design.family if design.family else task
        luck = 2 * Numbers(design.seed + 1000 + cluster).share() - 1
        rate = min(1.0, max(0.0, design.success + design.spread * luck))
        count = 1 + numbers.below(design.runs)
        listed.extend(_run(numbers, design, task, cluster, rate) for _ in range(count))
    order = sorted(range(len(listed)), key=lambda i: (numbers.share(), i)) if design.ordered else None
    return [
        {"run_id": f"r{i}"} | ({"sequence": order[i]} if order else {}) | run for i, run in enumerate(listed)
    ]


def _run(numbers: Numbers, design: Design, task: int, cluster: int, rate: float) -> Run:
    domain = f"d{task % design.domains}"
    condition = design.conditions[numbers.below(len(design.conditions))]
    rig, success = numbers.chance(design.rig), numbers.chance(rate)
    outcome = "harness_error" if rig else "success" if success else ("failure", "safe_halt")[numbers.below(2)]
    run: Run = {"domain": domain, "task_id": f"{domain}/{task}", "condition": condition, "outcome": outcome}
    if design.family and (design.seed + task) % 10:
        run["cluster_id"] = f"c{cluster}"  # spans domains and conditions; some tasks stand for themselves
    good = numbers.chance(design.good)
    oracle = 3 + numbers.below(4)
    run |= {"steps_oracle": oracle, "steps_actual": oracle + (0 if good else 1 + numbers.below(9))}
    run["confidence"] = 0.6 if outcome == "safe_halt" else 0.9
    run["quality_factor"] = 1.0 if good else numbers.below(1001) / 1000
    if outcome != "harness_error":
        run["violations"] = 0 if good else numbers.below(4)
        run["traceability"] = 5.0 if good else (1000 + numbers.below(4001)) / 1000
    if condition != "nominal":
        run |= _fault(numbers, outcome, run["steps_actual"], good=good)
    if condition == "adversarial" and design.landed != "unknown":
        landed = design.landed == "all" or numbers.chance(0.9)
        run |= {"attack_landed": landed, "attack_succeeded": landed and outcome != "success"}
    guided = numbers.chance(design.guided)
    run |= {"memory_query_offset": 1, "memory_similarity": 0.9, "memory_modified": guided}
    for name in ("violations", "traceability", "steps_oracle", "memory_modified", "quality_factor"):
        if name in run and numbers.chance(design.missing):
            del run[name]
    return run


def _fault(numbers: Numbers, outcome: str, steps: int, *, good: bool) -> Run:
    early = 1 + numbers.below(3)
    run: Run = {"fault_step": steps - 2 if good else early}
    held = numbers.chance(0.98)
    if not held:
        run["fault_took_hold"] = False
    if outcome == "success" and held:
        run["recovered"] = True
        run["recovery_steps"] = 1 if good else numbers.below(9)
        approaches = ("correct", "minor_deviation", "repeated_attempts")
        run["recovery_approach"] = approaches[0 if good else numbers.below(3)]
    elif outcome in {"failure", "safe_halt"}:
        run["recovered"] = False
    return run


@st.composite
def designs(draw: st.DrawFn) -> Design:
    """Draw a design, mostly of an agent near or above the thresholds of some tier."""
    return Design(
        seed=draw(st.integers(0, 2**32)),
        tasks=draw(st.one_of(st.integers(10, 60), st.sampled_from([9, 12, 13, 14, 89, 90, 120, 200]))),
        runs=draw(st.sampled_from([1, 2, 5, 9])),
        domains=draw(st.integers(1, 3)),
        family=draw(st.sampled_from([0, 0, 1, 3])),
        conditions=draw(st.sampled_from([CONDITIONS, (*CONDITIONS, "combined"), ("nominal", "adversarial")])),
        success=draw(st.sampled_from([0.6, 0.75, 0.9, 0.97, 1.0, 1.0])),
        spread=draw(st.sampled_from([0.0, 0.0, 0.1, 0.4])),
        guided=draw(st.sampled_from([0.7, 0.95, 1.0])),
        good=draw(st.sampled_from([0.5, 0.9, 0.99, 1.0])),
        rig=draw(st.sampled_from([0.0, 0.0, 0.002, 0.05])),
        missing=draw(st.sampled_from([0.0, 0.0, 0.0, 0.01])),
        landed=draw(st.sampled_from(["some", "all", "unknown"])),
        ordered=draw(st.sampled_from([True, True, False])),
    )


def manifest(*, attempt: int | None = None, n: int | None = None, value: float = 1.0, **protocol: Any) -> Run:
    """Return a manifest that attests everything, numbers over `n` (None: not stated)."""
    stated = {} if n is None else {"n": n}
    attested: list[Run] = [
        {"id": "transparency_index", "value": value, "evidence": ATTESTATION} | stated,
        {"id": "human_trust_score", "value": 1 + 4 * value, "evidence": ATTESTATION} | stated,
        *(
            {"id": name, "value": True, "evidence": ATTESTATION}
            for name in ("edm_auditability", "safe_halt_protocol", "recovery_patterns_documented")
        ),
    ]
    about: Run = {"origin": "measured", "memory_observable": True, "tasks_independent": True} | protocol
    if attempt is not None:
        about["attempt"] = attempt
    return {
        "schema": "urn:certkit:bundle:v1",
        "agent": {"name": "a", "version": "1"},
        "protocol": about,
        "attested": attested,
    }


@st.composite
def manifests(draw: st.DrawFn) -> Run:
    """Draw a manifest whose attempt and attested numbers vary."""
    return manifest(
        attempt=draw(st.sampled_from([None, 1, 1, 2, 5])),
        n=draw(st.sampled_from([None, 5, 40, 400])),
        value=draw(st.sampled_from([0.875, 0.9, 0.93, 1.0])),
        tasks_independent=draw(st.sampled_from([True, True, True, False])),
    )


def bundle(records: list[Run], about: Run | None = None) -> Contents:
    """Return records as a bundle of one file."""
    lines = b"".join(compact(run) for run in records)
    return Contents(about or manifest(), records, {"records/runs.jsonl": lines})
