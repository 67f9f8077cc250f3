"""The schedule of an evaluation in the papers: the simulator draws it, and `plan` recommends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.record.record import SINGLE_FAULTS, Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

EVEN_MIX: Final[Mapping[str, float]] = dict.fromkeys([*map(str, SINGLE_FAULTS), str(Condition.CASCADE)], 0.2)
"""Shares of the fault conditions."""

NOMINAL_SHARE: Final = 0.20
"""Share of nominal runs in every domain ([26] §4.1)."""

MAX_RUNS: Final = 10_000_000
MAX_DOMAINS: Final = 100
FAULTS: Final = [condition.value for condition in Condition if condition is not Condition.NOMINAL]


def mix_complaint(mix: Mapping[str, float]) -> str | None:
    """Return why these are no shares of the fault conditions, None where they are."""
    if unknown := sorted(set(mix) - set(FAULTS)):
        return f"fault_mix: {unknown[0]!r} is none of {', '.join(sorted(FAULTS))}"
    if all(0 <= share <= 1 for share in mix.values()) and abs(sum(mix.values()) - 1) <= 1e-9:  # noqa: PLR2004
        return None
    listed = ", ".join(f"{name}={share:g}" for name, share in mix.items())
    return f"fault_mix: expected shares of at least 0 that sum to 1, found {listed}"
