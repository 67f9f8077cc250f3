"""The order of the runs in time, and what CSI and the plausibility checks need of it.

The order is ``sequence`` where every run has one, else ``started_at`` where every run has one and all
differ; otherwise there is none, and the reason is said. Only the standard split is ordered.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from certkit.evidence.columns import ABSENT
from certkit.evidence.record import Split
from certkit.evidence.reduce import GAMMA_FIFTHS, NOT_A_RECOVERY
from certkit.evidence.summary import PEI_SCALE, STRETCHES, WINDOW, Cell, Stretch, Times, Window, WindowRun

if TYPE_CHECKING:
    from numpy.typing import NDArray


def order(runs: NDArray[np.void], cells: list[Cell]) -> tuple[Window, Times]:
    """Return the ordered window and the facts about time of all `runs`.

    `runs` has dtype `reduce.RUN`; its ``cell`` is an index into `cells`.
    """
    times = _times(runs)
    standard = np.array([cell.split == Split.STANDARD for cell in cells], np.bool_)
    chosen = runs if standard.all() else runs[standard[runs["cell"]]]
    by, name, reason = _key(chosen)
    if by is None:
        return Window(order=None, reason=reason, runs=len(chosen)), times
    ordered = chosen[_order_of(by)]
    failed = ~ordered["success"]
    position = np.arange(len(ordered), dtype=np.int64)
    window = Window(
        order=name,
        reason=None,
        runs=len(ordered),
        latest=tuple(_window_run(run) for run in ordered[-WINDOW:]),
        stretches=_stretches(ordered, cells),
        failures=int(failed.sum()),
        failure_moment=int(position[failed].sum()),
    )
    return window, times


def _sorted(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return values[_order_of(values)]


def _order_of(values: NDArray[np.int64]) -> NDArray[np.intp] | slice:
    """Return what sorts `values`; logs are mostly written in order, which is quicker to see than to sort."""
    return slice(None) if (values[1:] >= values[:-1]).all() else np.argsort(values, kind="stable")


def _key(runs: NDArray[np.void]) -> tuple[NDArray[np.int64] | None, str, str | None]:
    if not len(runs):
        return None, "", "there are no runs"
    sequence, started = runs["sequence"], runs["started"]
    if (sequence != ABSENT).all():
        return sequence, "sequence", None
    if (started == ABSENT).any():
        unordered = int(((sequence == ABSENT) & (started == ABSENT)).sum())
        if unordered:
            return None, "", f"{unordered:,} of {len(runs):,} runs have neither sequence nor started_at"
        return None, "", "some runs have only a sequence and others only a started_at"
    if not np.diff(_sorted(started)).all():
        return None, "", "runs have no sequence, and some share their started_at"
    return started, "started_at", None


def _window_run(run: np.void) -> WindowRun:
    irs = int(run["irs"])
    numerator = int(run["numerator"])
    return WindowRun(
        pei=None if numerator < 0 else (numerator, GAMMA_FIFTHS * int(run["steps"])),
        irs=None if irs == NOT_A_RECOVERY else irs,
        success=bool(run["success"]),
    )


def _stretches(ordered: NDArray[np.void], cells: list[Cell]) -> tuple[Stretch, ...]:
    if len(ordered) < STRETCHES:
        return ()
    names = sorted({cell.domain for cell in cells if cell.split == Split.STANDARD})
    domain = np.array([names.index(cell.domain) if cell.domain in names else -1 for cell in cells])
    bounds = [len(ordered) * i // STRETCHES for i in range(STRETCHES + 1)]
    result = []
    for start, stop in pairwise(bounds):
        part = ordered[start:stop]
        known = part["numerator"] >= 0
        numerator, steps = part["numerator"][known].astype(np.int64), part["steps"][known].astype(np.int64)
        fixed = (2 * numerator * PEI_SCALE + GAMMA_FIFTHS * steps) // (2 * GAMMA_FIFTHS * steps)
        root = (2 * numerator * 2**15 + GAMMA_FIFTHS * steps) // (2 * GAMMA_FIFTHS * steps)
        result.append(
            Stretch(
                runs=len(part),
                failures=int((~part["success"]).sum()),
                pei_n=int(known.sum()),
                pei_fixed=int(fixed.sum()),
                pei_squares=int((root * root).sum()),
                irs_yes=int((part["irs"] == 1).sum()),
                irs_no=int((part["irs"] == 0).sum()),
                irs_silent=int((part["irs"] == -1).sum()),
                irs_incomplete=int((part["irs"] == -2).sum()),  # noqa: PLR2004 - see reduce
                domains_missing=len(names) - len(np.unique(domain[part["cell"]])),
            )
        )
    return tuple(result)


def _times(runs: NDArray[np.void]) -> Times:
    started = runs["started"]
    timed = _sorted(started[started != ABSENT])
    if not len(timed):
        return Times()
    gaps = np.diff(timed)
    constant = int(gaps[0]) if len(gaps) > 1 and (gaps == gaps[0]).all() else None
    both = (runs["sequence"] != ABSENT) & (started != ABSENT)
    in_sequence = started[both][_order_of(runs["sequence"][both])]
    return Times(
        timed=len(timed),
        first=int(timed[0]),
        last=int(timed[-1]),
        distinct=1 + int((gaps != 0).sum()),
        constant_interval=constant,
        backwards=int((np.diff(in_sequence) < 0).sum()),
    )
