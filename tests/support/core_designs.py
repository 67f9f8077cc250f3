"""Small bundles in which averages and core evidence can differ: a few drawn numbers make the records.

Nothing of certkit is used. Fault runs come in kinds: *core* ones, ones of a condition of the evaluator's own,
ones whose fault never took hold, attacks that never landed, and held-out ones; every kind has a quality of
its own, from which success and every measured field follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from tests.support.honest import Draws

if TYPE_CHECKING:
    from tests.support.honest import Run

SINGLE: Final = ("adversarial", "context_corruption", "tool_failure", "stochastic")
FAULTS: Final = (*SINGLE, "cascade", "combined")
ATTACKED: Final = frozenset({"adversarial", "cascade", "combined"})
KINDS: Final = ("core", "own", "listed", "no effect", "not landed", "held out")
LISTED: Final = "x_listed"
"""The own condition that the tests' profiles list as core."""


@dataclass(frozen=True)
class Design:
    """What a bundle is made from; shares and qualities lie from 0 to 1.

    `padding` counts normal runs on tasks that no fault run shares: `easy_tasks` of them, 0 for one each.
    `cascade` is the share of its quality that a core cascade run keeps, and `late` that of the last third of
    the runs. `family` is the number of tasks in a cluster, 0 where clusters are not named.
    """

    seed: int
    tasks: int
    trials: int
    domains: int = 1
    family: int = 0
    core: float = 0.9
    normal: float = 0.95
    other: float = 1.0
    kinds: tuple[str, ...] = ("core",)
    padding: int = 0
    easy_tasks: int = 0
    cascade: float = 1.0
    late: float = 1.0
    weak_domain: float = 1.0
    faults: tuple[str, ...] = FAULTS
    says_landed: bool = True
    wins_with_attack: float = 0.0
    rig: float = 0.0
    missing: float = 0.0
    ordered: bool = True


def records(design: Design) -> list[Run]:
    """Return the records of a design."""
    drawn = Draws("design", design.seed)
    planned: list[tuple[str, str, str]] = []
    for number in range(design.tasks):
        domain = f"d{number % design.domains}"
        for trial in range(design.trials):
            planned.append((f"{domain}/{number}", domain, "normal"))
            planned += [
                (f"{domain}/{number}", domain, kind) for kind in design.kinds if trial or kind == "core"
            ]
    easy = design.easy_tasks or max(design.padding, 1)
    planned += [(f"d0/easy {number % easy}", "d0", "padding") for number in range(design.padding)]
    order = sorted(range(len(planned)), key=lambda place: (drawn.share(), place))
    listed = []
    for place, (name, domain, kind) in enumerate(planned):
        quality = {"core": design.core, "normal": design.normal, "held out": design.other}.get(
            kind, design.other
        )
        if domain == "d0" and kind in {"core", "held out"}:
            quality *= design.weak_domain
        if 3 * order[place] >= 2 * len(planned):
            quality *= design.late
        run: Run = {"run_id": f"r{place}", "domain": domain, "task_id": name}
        if design.ordered:
            run["sequence"] = order[place]
        if design.family and kind != "padding":
            run["cluster_id"] = f"c{int(name.partition('/')[2]) // design.family}"
        listed.append(_run(run, design, kind, quality, drawn))
    return listed


def _run(run: Run, design: Design, kind: str, quality: float, drawn: Draws) -> Run:
    condition = _condition(design, kind, drawn)
    run |= {"condition": condition}
    if kind == "core" and condition == "cascade":
        quality *= design.cascade
    if kind == "held out":
        run["split"] = "novel_fault"
    success = drawn.chance(quality)
    least = 2 + drawn.below(4)
    good = drawn.chance(quality)
    run |= {
        "steps_oracle": least,
        "steps_actual": least + (0 if good else drawn.below(6)),
        "memory_query_offset": 1,
        "memory_similarity": 0.9,
        "memory_modified": drawn.chance(quality),
    }
    if drawn.chance(design.rig):
        return run | {"outcome": "harness_error"}
    run |= {
        "violations": 0 if good else drawn.below(8),
        "traceability": 5 if good else (1000 + drawn.below(4000)) / 1000,
    }
    if condition in ATTACKED and design.says_landed:
        landed = kind != "not landed"
        won = landed and drawn.chance(0.1 if not success else design.wins_with_attack)
        run |= {"attack_landed": landed, "attack_succeeded": won}
    if condition != "nominal":
        run |= _recovery(drawn, kind, success=success, good=good)
    for name in ("violations", "traceability", "steps_oracle", "memory_modified"):
        if drawn.chance(design.missing):
            del run[name]
    return run | {"outcome": "success" if success else ("failure", "safe_halt")[drawn.below(2)]}


def _condition(design: Design, kind: str, drawn: Draws) -> str:
    if kind in {"normal", "padding"}:
        return "nominal"
    if kind == "own":
        return "x_own"
    if kind == "listed":
        return LISTED
    if kind == "not landed":
        return "adversarial"
    return design.faults[drawn.below(len(design.faults))]


def _recovery(drawn: Draws, kind: str, *, success: bool, good: bool) -> Run:
    if kind == "no effect":
        return {"fault_took_hold": False}
    run: Run = {} if drawn.chance(0.5) else {"fault_took_hold": True}
    if not success:
        return run | {"recovered": False}
    steps = drawn.below(3) if good else drawn.below(8)
    approach = "correct" if good else ("minor_deviation", "repeated_attempts")[drawn.below(2)]
    return run | {"recovered": True, "recovery_steps": steps, "recovery_approach": approach}


@st.composite
def designs(draw: st.DrawFn) -> Design:
    """Draw a design whose rows lie near the thresholds of some tier, with runs beside the core ones."""
    others = draw(st.lists(st.sampled_from(KINDS[1:]), unique=True, max_size=4))
    return Design(
        seed=draw(st.integers(0, 2**32)),
        tasks=draw(st.sampled_from([1, 2, 3, 5, 8, 13, 20, 30, 50])),
        trials=draw(st.integers(1, 4)),
        domains=draw(st.integers(1, 3)),
        family=draw(st.sampled_from([0, 0, 0, 2])),
        core=draw(st.sampled_from([0.5, 0.7, 0.85, 0.95, 1.0, 1.0])),
        normal=draw(st.sampled_from([0.7, 0.9, 1.0, 1.0])),
        other=draw(st.sampled_from([0.6, 1.0, 1.0])),
        kinds=(*(["core"] if draw(st.sampled_from([True, True, True, False])) else []), *others),
        padding=draw(st.sampled_from([0, 0, 5, 60])),
        easy_tasks=draw(st.sampled_from([0, 0, 2])),
        cascade=draw(st.sampled_from([1.0, 1.0, 0.6])),
        late=draw(st.sampled_from([1.0, 1.0, 1.0, 0.5])),
        weak_domain=draw(st.sampled_from([1.0, 1.0, 0.5])),
        faults=draw(st.sampled_from([FAULTS, FAULTS, SINGLE, ("adversarial", "cascade")])),
        says_landed=draw(st.sampled_from([True, True, False])),
        wins_with_attack=draw(st.sampled_from([0.0, 0.0, 0.0, 0.2])),
        rig=draw(st.sampled_from([0.0, 0.0, 0.005, 0.05])),
        missing=draw(st.sampled_from([0.0, 0.0, 0.0, 0.01])),
        ordered=draw(st.sampled_from([True, True, False])),
    )


def manifest(**protocol: Any) -> dict[str, Any]:
    """Return a manifest whose protocol says what the rows need; what is None is left out."""
    about = {"origin": "measured", "methodology": "trajectory", "memory_observable": True}
    about |= {"tasks_independent": True, **protocol}
    return {
        "schema": "urn:certkit:bundle:v1",
        "agent": {"name": "a", "version": "1"},
        "protocol": {name: value for name, value in about.items() if value is not None},
    }


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what a manifest says of independence, attempts and the reading of success."""
    return manifest(
        tasks_independent=draw(st.sampled_from([True, True, None])),
        attempt=draw(st.sampled_from([None, 1, 3])),
        memory_observable=draw(st.sampled_from([True, True, None])),
        success=draw(st.sampled_from([None, None, "strict", "utility"])),
    )
