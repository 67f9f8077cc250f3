"""CSI against a direct transcription of [26] eq. 7-9 in floating point, and where it is undefined."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from certkit.ground.document import State
from tests.support import build
from tests.support.extremes import failed, full

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.metric import Metric
    from tests.support.bundles import Run

SIZES = range(100)
ORACLES = [(80 + (7 * i) % 13, 100) for i in SIZES]
STEADY = [(4, 4)] * 100
SILENT = ("memory_query_offset", "memory_similarity", "memory_modified")


def printed(pei: Sequence[float], irs: Sequence[float], failures: Sequence[bool]) -> float:
    """The printed formula, with the slope from a least-squares solver."""
    slope = float(np.polyfit(np.arange(20), np.array(failures[-20:], dtype=float), 1)[0])
    slope = 0.0 if abs(slope) < 1e-12 else slope
    rho = min(max(slope / max(abs(slope), 1e-6), 0.0), 1.0)
    factors = [1 - min(1.0, 2 * float(np.std(x, ddof=1)) / 0.5) for x in (pei, irs)]
    return factors[0] * factors[1] * (1 - rho)


def window(
    steps: Sequence[tuple[int, int]] = STEADY,
    irs: Sequence[int | None] | None = None,
    failed_at: tuple[int, ...] = (),
) -> list[Run]:
    """Runs under one fault with (oracle, actual) steps; irs: guided 1, not 0, silent -1, undecided -2."""
    listed = []
    for i, (oracle, actual) in enumerate(steps):
        run = full(i, "tool_failure", steps_oracle=oracle, steps_actual=actual)
        memory = 1 if irs is None else irs[i]
        if i in failed_at:
            run = failed(run)
        elif memory is None:
            run = run | {"fault_took_hold": False}
            run = {name: value for name, value in run.items() if not name.startswith("recover")}
        elif memory == 0:
            run = run | {"memory_modified": False}
        elif memory < 0:
            gone = SILENT if memory == -1 else SILENT[1:]
            run = {name: value for name, value in run.items() if name not in gone}
        listed.append(run)
    return listed


def csi(records: list[Run], **protocol: Any) -> Metric:
    return build.judged(records, **protocol).metrics["csi"]


@pytest.mark.parametrize(
    ("irs", "failed_at"),
    [
        ([1] * 100, ()),
        ([0] * 100, ()),
        ([1] * 99 + [0], ()),
        ([1, 0] * 50, ()),
        ([1] * 100, (80,)),  # early in the last twenty: failures fall
        ([1] * 100, (99,)),  # late: failures rise, and any rise makes the index 0
        ([1] * 100, (5, 40)),  # before the last twenty
        ([1] * 100, (80, 99)),  # symmetric: no slope
    ],
)
def test_csi_is_the_printed_formula(irs: list[int], failed_at: tuple[int, ...]) -> None:
    # A failed run does not stop short of its oracle here, so that its planning counts as any other's.
    metric = csi(window(ORACLES, irs, failed_at))
    pei = [oracle / actual for oracle, actual in ORACLES]
    known = [float(value) for i, value in enumerate(irs) if i not in failed_at]
    assert metric.state is State.MEASURED
    failures = [i in failed_at for i in SIZES]
    assert metric.value == pytest.approx(printed(pei, known, failures), abs=1e-12)


def test_one_unlike_recovery_in_a_hundred_caps_csi_at_060() -> None:
    assert csi(window(irs=[1] * 99 + [0])).value == pytest.approx(1 - 4 * sqrt(1 / 100))


def test_a_steady_agent_has_csi_one_and_a_rising_one_zero() -> None:
    assert csi(window()).value == 1.0
    assert csi(window(failed_at=(99,))).value == 0.0


def test_silent_recoveries_are_not_intentional_only_where_memory_was_observable() -> None:
    half = window(irs=[-1] * 50 + [1] * 50)
    assert csi(half).value == csi(window(irs=[0] * 50 + [1] * 50)).value
    hidden = csi(half, memory_observable=None)
    assert hidden.state is State.PARTIAL
    assert hidden.coverage == Fraction(1, 2)
    assert csi(window(irs=[-1] * 100), memory_observable=False).state is State.UNMEASURED


def without(records: list[Run], name: str) -> list[Run]:
    return [{key: value for key, value in run.items() if key != name} for run in records]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (without(window(), "sequence"), "unordered"),
        (window(STEADY[:99]), "few-ordered-runs"),
        (window(irs=[None] * 99 + [1]), "csi-few-recoveries"),
        (window(irs=[-2] * 99 + [1]), "csi-few-recoveries"),
        (without(window()[:1], "steps_oracle") + window()[1:], "csi-without-pei"),
    ],
)
def test_csi_is_unmeasured_with_the_reason(records: list[Run], code: str) -> None:
    metric = csi(records)
    assert (metric.state, metric.value) == (State.UNMEASURED, None)
    assert metric.reason is not None
    assert metric.reason.code == code


def test_csi_is_told_of_where_it_has_a_value() -> None:
    assert "csi-as-printed" in build.codes(build.judged(window()))
    assert "csi-as-printed" not in build.codes(build.judged(without(window(), "sequence")))
