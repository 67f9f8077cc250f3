"""The order of the runs in time, and the facts that CSI and the plausibility checks take from it.

Runs are ordered by ``sequence`` where all have it, else by ``started_at`` where all have it and all differ.
Otherwise there is no order, and the reason is returned. Only the standard split is ordered.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from certkit.evidence.reading.columns import ABSENT, Index
from certkit.evidence.records.record import Split
from certkit.evidence.summary.summary import (
    PEI_SCALE,
    STRETCHES,
    WINDOW,
    Cell,
    Stretch,
    Times,
    Window,
    WindowRun,
)
from certkit.evidence.summary.terms import GAMMA_FIFTHS, NOT_A_RECOVERY

BURST: Final = 10 * 10**6
"""Microseconds in which the most start times are counted; workers that start together fit in."""

_COUNTED: Final = ("cell", "numerator", "steps", "irs", "success", "harness")
"""Columns that are put in order; no other is copied."""

if TYPE_CHECKING:
    from numpy.typing import NDArray


def order(
    runs: dict[str, NDArray[Any]], cells: list[Cell], *, unordered: str | None = None
) -> tuple[Window, Times]:
    """Return the ordered window, and the facts about the start times of all `runs`.

    `runs` holds the columns of `reduce.RUN`; ``cell`` is an index into `cells`. `unordered` is a reason why
    the runs have no order even if their columns would give one.
    """
    times = _times(runs)
    standard = np.array([cell.split == Split.STANDARD for cell in cells], np.bool_)
    if not standard.all():
        chosen = standard[runs["cell"]]
        runs = {name: runs[name][chosen] for name in (*_COUNTED, "sequence", "started")}
    by, name, reason = (None, "", unordered) if unordered else _key(runs)
    if by is None:
        return Window(order=None, reason=reason, runs=len(runs["cell"])), times
    index = _order_of(by)
    runs = {name: runs[name][index] for name in _COUNTED}
    failed = np.flatnonzero(~runs["success"])
    window = Window(
        order=name,
        reason=None,
        runs=len(by),
        latest=_latest(runs),
        stretches=_stretches(runs, cells),
        failures=len(failed),
        failure_moment=int(failed.sum()),
    )
    return window, times


def _latest(runs: dict[str, NDArray[Any]]) -> tuple[WindowRun, ...]:
    """Return the last `WINDOW` runs, oldest first."""
    tail = (runs[name][-WINDOW:].tolist() for name in ("numerator", "steps", "irs", "success"))
    return tuple(
        WindowRun(
            pei=None if numerator < 0 else (numerator, GAMMA_FIFTHS * steps),
            irs=None if irs == NOT_A_RECOVERY else irs,
            success=success,
        )
        for numerator, steps, irs, success in zip(*tail, strict=True)
    )


def _sorted(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return values[_order_of(values)]


def _order_of(values: NDArray[np.int64]) -> NDArray[np.intp] | slice:
    """Return the index that sorts `values`; most logs are in order, and checking is faster than sorting."""
    return slice(None) if (values[1:] >= values[:-1]).all() else np.argsort(values, kind="stable")


def _key(runs: dict[str, NDArray[Any]]) -> tuple[NDArray[np.int64] | None, str, str | None]:
    sequence, started = runs["sequence"], runs["started"]
    if not len(sequence):
        return None, "", "there are no runs"
    if (sequence != ABSENT).all():
        return sequence, "sequence", None
    if (started == ABSENT).any():
        unordered = int(((sequence == ABSENT) & (started == ABSENT)).sum())
        if unordered:
            return None, "", f"{unordered:,} of {len(sequence):,} runs have neither sequence nor started_at"
        return None, "", "some runs have only a sequence and others only a started_at"
    if not np.diff(_sorted(started)).all():
        return None, "", "some runs share their started_at, and no sequence orders all of them"
    return started, "started_at", None


def _stretches(runs: dict[str, NDArray[Any]], cells: list[Cell]) -> tuple[Stretch, ...]:
    if (size := len(runs["cell"])) < STRETCHES:
        return ()
    number_of = Index()
    domain = np.array([number_of[cell.domain] if cell.split == Split.STANDARD else -1 for cell in cells])
    bounds = [size * i // STRETCHES for i in range(STRETCHES + 1)]
    return tuple(
        _stretch({name: column[start:stop] for name, column in runs.items()}, domain)
        for start, stop in pairwise(bounds)
    )


def _stretch(runs: dict[str, NDArray[Any]], domain: NDArray[np.int64]) -> Stretch:
    """Return the sums of runs; `domain` numbers the domain of each cell."""
    numerator = runs["numerator"].astype(np.int64)
    known = numerator >= 0
    numerator, steps = numerator[known], runs["steps"][known].astype(np.int64)
    fixed = (2 * numerator * PEI_SCALE + GAMMA_FIFTHS * steps) // (2 * GAMMA_FIFTHS * steps)
    irs = runs["irs"]
    met = np.unique(domain[runs["cell"]])
    return Stretch(
        runs=len(irs),
        failures=int((~runs["success"]).sum()),
        harness_errors=int(runs["harness"].sum()),
        pei_n=len(numerator),
        pei_fixed=int(fixed.sum()),
        pei_squares=_squares(fixed),
        irs_yes=int((irs == 1).sum()),
        irs_no=int((irs == 0).sum()),
        irs_silent=int((irs == -1).sum()),
        irs_incomplete=int((irs == -2).sum()),  # noqa: PLR2004 - see reduce
        domains_missing=int(domain.max()) + 1 - len(met),
    )


def _squares(values: NDArray[np.int64]) -> int:
    """Return Σx² of values up to 2^30 exactly, by halves of 15 bits: sums of squares would exceed 64 bits."""
    high, low = np.divmod(values, 2**15)
    return (int((high * high).sum()) << 30) + (int((high * low).sum()) << 16) + int((low * low).sum())


def _times(runs: dict[str, NDArray[Any]]) -> Times:
    started = runs["started"]
    timed = _sorted(started[started != ABSENT])
    if not len(timed):
        return Times()
    gaps = np.diff(timed)
    constant = int(gaps[0]) if len(gaps) > 1 and (gaps == gaps[0]).all() else None
    both = (runs["sequence"] != ABSENT) & (started != ABSENT)
    in_sequence = started[both][_order_of(runs["sequence"][both])]
    starts = timed[np.append(True, gaps != 0)]
    burst = np.searchsorted(starts, starts + BURST) - np.arange(len(starts))
    return Times(
        burst=int(burst.max()),
        timed=len(timed),
        first=int(timed[0]),
        last=int(timed[-1]),
        distinct=1 + int((gaps != 0).sum()),
        constant_interval=constant,
        backwards=int((np.diff(in_sequence) < 0).sum()),
    )
