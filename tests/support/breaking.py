"""Hypothesis strategies for records that break exactly one rule, each with the fault it plants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from tests.support.strategies import ATTACK, FAULT, Run, names, runs, without

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Broken:
    """A record that breaks one rule, with the fault that must be reported."""

    record: Run
    code: str
    pointer: str


TIED: Final = (*FAULT, *ATTACK, "steps_actual", "steps_oracle", "violations", "traceability")

Breaker = tuple[str, str, "Callable[[Run], Run]"]

# Each takes a valid record, removes what could break a second rule, and breaks the named one.
BREAKERS: Final[tuple[Breaker, ...]] = (
    ("record.missing-field", "/outcome", lambda run: without(run, "outcome", *TIED)),
    ("record.missing-field", "/domain", lambda run: run | {"domain": None}),
    ("record.unknown-field", "/surprise", lambda run: run | {"surprise": 1}),
    ("record.unknown-field", "/X_note", lambda run: run | {"X_note": 1}),
    ("record.type", "/steps_actual", lambda run: without(run, *FAULT) | {"steps_actual": "8"}),
    (
        "record.type",
        "/violations",
        lambda run: without(run, *TIED) | {"outcome": "failure", "violations": 1.5},
    ),
    ("record.type", "/trial", lambda run: run | {"trial": True}),
    ("record.type", "/human_checked", lambda run: run | {"human_checked": 0}),
    ("record.type", "/cluster_id", lambda run: run | {"cluster_id": ["a"]}),
    ("record.value", "/run_id", lambda run: run | {"run_id": ""}),
    ("record.value", "/condition", lambda run: without(run, *TIED) | {"condition": "Nominal"}),
    ("record.value", "/outcome", lambda run: without(run, *TIED) | {"outcome": "won"}),
    ("record.value", "/confidence", lambda run: run | {"confidence": 1.0000001}),
    ("record.value", "/memory_similarity", lambda run: run | {"memory_similarity": -1.1}),
    ("record.value", "/trial", lambda run: run | {"trial": -1}),
    ("record.value", "/trace", lambda run: run | {"trace": "sha256:" + "A" * 64}),
    ("record.value", "/started_at", lambda run: run | {"started_at": "2026-01-01T00:00:00"}),
    (
        "record.value",
        "/traceability",
        lambda run: without(run, *TIED) | {"outcome": "failure", "traceability": 3.0005},
    ),
    (
        "record.nominal-with-fault",
        "/fault_took_hold",
        lambda run: without(run, *TIED) | {"condition": "nominal", "fault_took_hold": True},
    ),
    (
        "record.attack-without-attack-condition",
        "/attack_landed",
        lambda run: without(run, *TIED) | {"condition": "stochastic", "attack_landed": False},
    ),
    (
        "record.attack-not-attempted",
        "/attack_attempted",
        lambda run: (
            without(run, *TIED)
            | {"condition": "adversarial", "attack_attempted": False, "attack_landed": True}
        ),
    ),
    (
        "record.attack-not-landed",
        "/attack_landed",
        lambda run: (
            without(run, *TIED)
            | {"condition": "adversarial", "attack_landed": False, "attack_succeeded": True}
        ),
    ),
    (
        "record.recovery-without-recovered",
        "/recovery_steps",
        lambda run: without(run, *TIED) | {"condition": "tool_failure", "recovery_steps": 0},
    ),
    (
        "record.success-not-recovered",
        "/recovered",
        lambda run: (
            without(run, *TIED) | {"condition": "stochastic", "outcome": "success", "recovered": False}
        ),
    ),
    (
        "record.shorter-than-oracle",
        "/steps_actual",
        lambda run: without(run, *TIED) | {"outcome": "success", "steps_actual": 3, "steps_oracle": 4},
    ),
    (
        "record.fault-after-end",
        "/fault_step",
        lambda run: without(run, *TIED) | {"condition": "combined", "steps_actual": 3, "fault_step": 4},
    ),
    (
        "record.grade-mismatch",
        "/recovery_grade",
        lambda run: (
            without(run, *TIED)
            | {
                "condition": "cascade",
                "outcome": "success",
                "recovered": True,
                "recovery_steps": 2,
                "recovery_approach": "minor_deviation",
                "recovery_grade": 1.0,
            }
        ),
    ),
    (
        "record.harness-error-scored",
        "/violations",
        lambda run: without(run, *TIED) | {"outcome": "harness_error", "violations": 0},
    ),
)


@st.composite
def broken_records(draw: st.DrawFn) -> Broken:
    """Draw a valid record and break exactly one rule of it."""
    run = {"run_id": draw(names)} | draw(runs())
    code, pointer, breaker = draw(st.sampled_from(BREAKERS))
    return Broken(breaker(run), code, pointer)
