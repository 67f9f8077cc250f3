"""CSI against a direct transcription of [26] eq. 7-9 in floating point, and where it is undefined."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec import structs

from certkit.assessment.metrics.metric import Metric, State
from certkit.summary.summary import Window, WindowRun
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES = range(100)


def printed(pei: Sequence[float], irs: Sequence[float], failed: Sequence[bool]) -> float:
    """The printed formula, with the slope from a least-squares solver."""
    slope = float(np.polyfit(np.arange(20), np.array(failed[-20:], dtype=float), 1)[0])
    slope = 0.0 if abs(slope) < 1e-12 else slope
    rho = min(max(slope / max(abs(slope), 1e-6), 0.0), 1.0)
    factors = [1 - min(1.0, 2 * float(np.std(x, ddof=1)) / 0.5) for x in (pei, irs)]
    return factors[0] * factors[1] * (1 - rho)


def csi(window: Window, *, observable: bool | None = True) -> Metric:
    found = build.judged(build.strong(window), memory_observable=observable)
    return found.metrics["csi"]


PEI = [Fraction(80 + (7 * i) % 13, 100) for i in SIZES]


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
    failed = [i in failed_at for i in SIZES]
    memory = [None if bad else value for value, bad in zip(irs, failed, strict=True)]
    metric = csi(build.window(PEI, memory, [not bad for bad in failed]))
    kept = [float(value) for value in memory if value is not None]
    assert metric.state is State.MEASURED
    assert metric.value == pytest.approx(printed([float(x) for x in PEI], kept, failed), abs=1e-12)


def test_one_unlike_recovery_in_a_hundred_caps_csi_at_060() -> None:
    metric = csi(build.window(irs=[1] * 99 + [0]))
    assert metric.value == pytest.approx(1 - 4 * sqrt(1 / 100))


def test_a_steady_agent_has_csi_one_and_a_rising_one_zero() -> None:
    assert csi(build.window()).value == 1.0
    rising = [True] * 99 + [False]
    assert csi(build.window(irs=[1] * 99 + [None], success=rising)).value == 0.0


def test_silent_recoveries_are_not_intentional_only_where_memory_was_observable() -> None:
    window = build.window(irs=[-1] * 50 + [1] * 50)
    assert csi(window).value == csi(build.window(irs=[0] * 50 + [1] * 50)).value
    hidden = csi(window, observable=None)
    assert hidden.state is State.PARTIAL
    assert hidden.coverage == Fraction(1, 2)
    assert csi(build.window(irs=[-1] * 100), observable=False).state is State.UNMEASURED


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (Window(order=None, reason="sequence repeats", runs=0), "sequence repeats"),
        (build.window([Fraction(1)] * 99), "99 ordered runs"),
        (build.window(irs=[None] * 99 + [1]), "1 recoveries of known intentionality"),
        (build.window(irs=[-2] * 99 + [1]), "1 recoveries of known intentionality"),
        (
            structs.replace(build.window(), latest=(WindowRun(None, 1, True), *build.window().latest[1:])),
            "1 of the latest 100 runs carry no PEI",
        ),
    ],
)
def test_csi_is_unmeasured_with_the_reason(window: Window, reason: str) -> None:
    metric = csi(window)
    assert metric.state is State.UNMEASURED
    assert metric.value is None
    assert reason in (metric.reason or "")


def test_csi_is_warned_of_where_it_has_a_value() -> None:
    assert "csi-as-printed" in build.codes(build.judged(build.strong()))
    unordered = build.judged(build.strong(Window(order=None, reason="no order", runs=0)))
    assert not {code for code in build.codes(unordered) if code.startswith("csi")}
