"""Honest evaluations from a generator of the tests' own: nothing in them tricks, and every figure is stated.

240 tasks in five domains, five trials a task; every trial is one nominal run and one run under a fault, of
which there are six kinds. Eight workers run them side by side in an order that SHA-256 shuffles. A task has
its own chance of success, drawn from Beta(32, 1); 0.4 % of the runs break in the rig. The records are made
from SHA-256 alone, so they are the same on every machine, and nothing of certkit is imported.

    >>> len(VARIANTS), len(evaluation("plain").records)
    (8, 2400)
"""

from __future__ import annotations

import hashlib
import heapq
import json  # noqa: TID251 - what is written here must not depend on the door that reads it
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

Run = dict[str, Any]

ROOT: Final = Path(__file__).parents[2]
DOMAINS: Final = ("banking", "healthcare", "logistics", "retail", "travel")
FAULTS: Final = ("adversarial", "context_corruption", "tool_failure", "stochastic", "combined", "cascade")
ATTACKED: Final = frozenset({"adversarial", "combined", "cascade"})
START: Final = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
WORKERS: Final = 8
SLACK: Final = {"nominal": 0.99, "cascade": 0.95, "combined": 0.97}
"""What a task's chance of success is multiplied with under a condition."""


class Draws:
    """Uniform numbers in [0, 1) that a key and their place decide."""

    def __init__(self, *key: object) -> None:
        self._key = "\x1f".join(map(str, key)).encode()
        self._count = 0

    def share(self) -> float:
        self._count += 1
        digest = hashlib.sha256(self._key + self._count.to_bytes(8, "big")).digest()
        return int.from_bytes(digest[:6], "big") / 2**48

    def below(self, bound: int) -> int:
        return int(self.share() * bound)

    def chance(self, probability: float) -> bool:
        return self.share() < probability


@dataclass(frozen=True)
class Variant:
    """How an honest evaluation differs from the plain one.

    `filtered` is the share of attacks that the agent's own filter stops, `pace` the mean length of a run in
    seconds, `seeds` whether `trial` holds the seed of the run instead of its number.
    """

    oracle_by_condition: bool = False
    short: bool = False
    filtered: float = 0.0
    seeds: bool = False
    deterministic: bool = False
    pace: float = 150.0
    greek: bool = False


VARIANTS: Final = {
    "plain": Variant(),
    "oracle stated per condition": Variant(oracle_by_condition=True),
    "tasks of one to three steps": Variant(short=True),
    "a filter that stops 56 % of attacks": Variant(filtered=0.56),
    "trial used as a seed": Variant(seeds=True),
    "deterministic agent": Variant(deterministic=True),
    "60 runs a second": Variant(pace=WORKERS / 60),
    "tasks α1 and a1": Variant(greek=True),
}


@dataclass(frozen=True)
class Evaluation:
    """What is written into a bundle: the manifest, and the records in the order in which runs ended."""

    manifest: dict[str, Any]
    records: list[Run] = field(repr=False)


def evaluation(name: str, *, tasks: int = 240, trials: int = 5) -> Evaluation:
    """Return an honest evaluation of one of the `VARIANTS`."""
    variant = VARIANTS[name]
    planned = [
        (task, trial, condition)
        for task in range(tasks)
        for trial in range(trials)
        for condition in ("nominal", FAULTS[(task + trial) % len(FAULTS)])
    ]
    planned.sort(key=lambda run: hashlib.sha256(repr(run).encode()).digest())
    records, last = timed([_run(variant, *run) for run in planned], variant.pace)
    return Evaluation(manifest(len(records), last, deterministic=variant.deterministic), records)


def timed(runs: list[Run], pace: float) -> tuple[list[Run], datetime]:
    """Give the runs their order and start times on eight workers; return them in order of their ends."""
    free = [(0.0, worker) for worker in range(WORKERS)]
    ended: list[tuple[float, int]] = []
    for place, run in enumerate(runs):
        begin, worker = heapq.heappop(free)
        begin += pace * 0.01 * (worker + 1) * Draws("pause", place).share()
        end = begin + pace * (0.5 + Draws("length", place).share())
        heapq.heappush(free, (end, worker))
        run["started_at"] = _text(START + timedelta(seconds=begin))
        ended.append((end, place))
    # By its start, a run that began in the same microsecond after another comes after it.
    order = sorted(range(len(runs)), key=lambda place: (runs[place]["started_at"], place))
    for sequence, place in enumerate(order):
        runs[place]["sequence"] = sequence
    return [runs[place] for _, place in sorted(ended)], START + timedelta(seconds=max(ended)[0])


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _run(variant: Variant, task: int, trial: int, condition: str) -> Run:
    domain = DOMAINS[task % len(DOMAINS)]
    # A deterministic agent does the same again; the rig that breaks, and the judge, do not know it.
    draws = Draws(task, condition) if variant.deterministic else Draws(task, trial, condition)
    chance = Draws("difficulty", task).share() ** (1 / 32) * SLACK.get(condition, 0.985)  # Beta(32, 1)
    least = 1 + task % 3 if variant.short else 4 + Draws("oracle", task).below(6)
    if variant.oracle_by_condition and condition != "nominal":
        least += 1 + FAULTS.index(condition) % 2
    run: Run = {
        "run_id": f"{task}-{trial}-{condition}",
        "domain": domain,
        "task_id": _task(task, domain, greek=variant.greek),
        "condition": condition,
        "trial": Draws("seed", task, trial, condition).below(1_000_000) if variant.seeds else trial,
        "steps_oracle": least,
        "memory_query_offset": 1 + draws.below(3),
        "memory_similarity": (880 + draws.below(110)) / 1000,
        "memory_modified": draws.chance(0.92),
    }
    if Draws("rig", task, trial, condition).chance(0.004):
        return run | {"outcome": "harness_error", "steps_actual": 1 + draws.below(least)}
    detour = draws.chance(0.12 if variant.short else 0.35)
    steps = least + (1 + (0 if variant.short else draws.below(2)) if detour else 0)
    run |= {
        "steps_actual": steps,
        "violations": int(draws.chance(0.06)) + int(draws.chance(0.01)),
        "traceability": (4200 + draws.below(700)) / 1000,
    }
    success = draws.chance(chance)
    if condition != "nominal":
        attack = _attack(variant, draws) if condition in ATTACKED else {}
        success = success and not attack.get("attack_succeeded")
        run |= attack | _recovery(draws, condition, steps, success=success)
    if success:
        return run | {"outcome": "success"}
    return run | {"outcome": "safe_halt" if draws.chance(0.3) else "failure"}


def _task(task: int, domain: str, *, greek: bool) -> str:
    if greek:
        return f"{'αa'[task % 2]}{task // 2 + 1}"
    return f"{domain}-{task:03}"


def _attack(variant: Variant, draws: Draws) -> Run:
    """An attack that the agent's own filter stops has landed, and did not succeed."""
    if not draws.chance(0.96):
        return {"attack_attempted": True, "attack_landed": False, "attack_succeeded": False}
    stopped = draws.chance(variant.filtered)
    return {
        "attack_attempted": True,
        "attack_landed": True,
        "attack_succeeded": not stopped and draws.chance(0.02),
    }


def _recovery(draws: Draws, condition: str, steps: int, *, success: bool) -> Run:
    run: Run = {"fault_step": 1 + draws.below(steps)}
    if condition in {"tool_failure", "stochastic"} and draws.chance(0.02):
        return run | {"fault_took_hold": False}
    run["fault_took_hold"] = True
    if not success:
        return run | {"recovered": False}
    late = draws.chance(0.04)
    return run | {
        "recovered": True,
        "recovery_steps": 3 + draws.below(4) if late else draws.below(3),
        "recovery_approach": "minor_deviation" if draws.chance(0.05) else "correct",
    }


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def manifest(runs: int, last: datetime, *, deterministic: bool = False, **protocol: Any) -> dict[str, Any]:
    """Return a manifest that states everything which can be stated of an evaluation."""
    roles = ("model", "system_prompt", "tools", "memory", "scaffold", "code")
    return {
        "schema": "urn:certkit:bundle:v1",
        "agent": {
            "name": "front-desk",
            "version": "4.1.0",
            "provider": "example.org",
            "components": [
                {"role": role, "name": f"front-desk-{role}", "version": "4.1.0", "digest": digest(role)}
                for role in roles
            ],
        },
        "protocol": {
            "origin": "measured",
            "methodology": "trajectory",
            "temperature": 0 if deterministic else 0.2,
            "judge": None,
            "memory_observable": True,
            "cascade_definition": "simultaneous",
            "declared_runs": runs,
            "tasks_independent": True,
            "task_salt": hashlib.sha256(b"salt").hexdigest(),
            "attempt": 1,
            "evaluator": {"name": "Test house", "relation": "independent"},
            "period": {"from": START.date().isoformat(), "to": last.date().isoformat()},
        }
        | protocol,
    }


def lines(records: list[Run]) -> Iterator[bytes]:
    """Yield each record as a line of JSON."""
    for run in records:
        yield json.dumps(run, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def write(made: Evaluation, folder: Path) -> Path:
    """Write an evaluation as an unsealed bundle into a new folder, and return it."""
    (folder / "records").mkdir(parents=True)
    (folder / "records" / "runs.jsonl").write_bytes(b"".join(lines(made.records)))
    (folder / "bundle.json").write_text(json.dumps(made.manifest, indent=1), encoding="utf-8")
    return folder


def stated(made: Evaluation, **protocol: Any) -> Evaluation:
    """Return an evaluation with other facts in its protocol; what is None is left out."""
    gone = {name for name, value in protocol.items() if value is None}
    facts = {n: v for n, v in (made.manifest["protocol"] | protocol).items() if n not in gone}
    return replace(made, manifest=made.manifest | {"protocol": facts})
