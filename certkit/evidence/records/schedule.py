"""The schedule of an evaluation in the papers: the simulator draws it, and `plan` recommends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.evidence.records.record import SINGLE_FAULTS, Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

EVEN_MIX: Final[Mapping[str, float]] = dict.fromkeys([*map(str, SINGLE_FAULTS), str(Condition.CASCADE)], 0.2)
"""Shares of the fault conditions."""

NOMINAL_SHARE: Final = 0.20
"""Share of nominal runs in every domain ([26] §4.1)."""

MAX_RUNS: Final = 10_000_000
MAX_DOMAINS: Final = 100
