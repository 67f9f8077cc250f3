"""Runs, names and tasks that are alike: what shows that one measurement was entered many times.

A run's print is the hash of every field that was measured of it, ids and times left out. Two runs with the
same print are alike. Equal runs prove copying only if equality by chance is unlikely. A run is compared only
if its scores together can take at least 1,000 times as many values as there are runs (`SPARE`). The digits of
a score give that number. Where all its values are quotients of small counts, or are few and have two decimals
at most, the number of distinct values does: a score that repeats to many digits is no grade.

Everything here works on whole columns. What follows from it is for `assessment.findings` to say.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xxhash

from certkit.evidence.reading.columns import ABSENT, DEFAULTS, KINDS
from certkit.evidence.summary.summary import Likeness
from certkit.text import skeleton

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from certkit.evidence.reading.columns import Columns

    Hashes = NDArray[np.uint64]

SCORES: Final = (
    "memory_similarity",
    "layer2_score",
    "layer3_score",
    "confidence",
    "safety_risk",
    "quality_factor",
    "traceability",
)
"""The continuous fields of a record."""

_NOT_MEASURED: Final = {
    *("run_id", "task_id", "cluster_id", "sequence", "started_at", "trial"),
    *("trace", "measured", "human_checked"),
}
_CODED: Final = tuple(name for name, kind in KINDS.items() if kind == "string" and name not in _NOT_MEASURED)
_NUMBERS: Final = tuple(
    name for name, kind in KINDS.items() if kind not in {"string", "time"} and name not in _NOT_MEASURED
)
_BILLION: Final = 10**9
MOST_DIGITS: Final = 9
BITS: Final = 4
"""Bits of `digits` for each of `SCORES`."""

SAMPLE: Final = 4096
"""Values of a score that are looked at in each block to tell how many it takes."""

VALUES: Final = 1000
"""Distinct values of a score after which it takes many."""

SPARE: Final = 3
"""Powers of ten by which the values that scores can take must outnumber the runs."""


def name_hash(name: str) -> int:
    """Return the 64-bit hash of the name of a run, task or cluster."""
    return xxhash.xxh3_64_intdigest(name.encode())


def name_hashes(names: Collection[str]) -> Hashes:
    """Return the hash of every name."""
    return np.fromiter(map(xxhash.xxh3_64_intdigest, map(str.encode, names)), np.uint64, len(names))


_FACTORS: Final = {name: np.uint64(name_hash(name) | 1) for name in _NUMBERS}
"""Odd numbers by which the fields are multiplied, so that their sum is a hash of the whole run."""


def prints(columns: Columns) -> Hashes:
    """Return the print of every run; scores are taken to nine digits, so that noise below hides nothing.

    It is a sum over the fields, to which an absent one adds 0.
    """
    total = np.zeros(columns.size, np.uint64)
    for name in _CODED:
        if name in columns.texts:
            index, numbers = columns.coded(name)
            hashes = [name_hash(f"{name} {value}") if value else 0 for value in numbers]
            total += np.array(hashes, np.uint64)[index]
    for name in _NUMBERS:
        if name in columns.numbers:
            column, absent = columns.numbers[name], DEFAULTS[KINDS[name]]
            if column.dtype == np.float64:
                column, absent = np.rint(column * _BILLION), absent * _BILLION
            total += (column.astype(np.int64) - int(absent)).view(np.uint64) * _FACTORS[name]
    return total


def digits(columns: Columns) -> NDArray[np.uint32]:
    """Return how many digits each of `SCORES` has in every run, `BITS` bits each; 0 where it is absent."""
    packed = np.zeros(columns.size, np.uint32)
    for place, name in enumerate(SCORES):
        if name in columns.numbers:
            whole = np.rint(columns.numbers[name] * _BILLION)
            digits = np.full(columns.size, MOST_DIGITS, np.uint32)
            for zeros, fewer in ((6, 6), (7, 1), (8, 1), (9, 1)):  # from 9 digits to 3, 2, 1 and 0
                quotient = whole / 10**zeros
                digits -= np.uint32(fewer) * (quotient == np.rint(quotient))
            packed |= digits << np.uint32(BITS * place)
    return packed


def sampled(columns: Columns) -> dict[str, set[int]]:
    """Return what each score takes in some of the runs, in billionths."""
    present = {
        name: column[columns.present(name)][:SAMPLE]
        for name, column in columns.numbers.items()
        if name in SCORES
    }
    return {
        name: set(np.unique(np.rint(column * _BILLION).astype(np.int64)).tolist())
        for name, column in present.items()
        if len(column)
    }


def spellings(names: Sequence[str], hashes: Hashes) -> Hashes:
    """Return the hashes of the skeletons of names; `hashes` are those of the names."""
    text = "\n".join(("", *names, ""))
    printable = text.encode().translate(None, _PRINTABLE) == b"\n" * (len(names) + 1)
    if not printable or (" " in text and any(spaces in text for spaces in ("  ", " \n", "\n "))):
        return name_hashes([skeleton(name) for name in names])
    folded = text.lower().replace("_", "-")
    return hashes if folded == text else name_hashes(folded.split("\n")[1:-1])


_PRINTABLE: Final = bytes(range(32, 127))


def stems(names: Collection[str]) -> Hashes:
    """Return the hashes of names without digits: names that differ by a counter share one."""
    cut = (name.encode().translate(None, b"0123456789") for name in names)
    return np.fromiter(map(xxhash.xxh3_64_intdigest, cut), np.uint64, len(names))


def likeness(
    runs: dict[str, NDArray[Any]],
    groups: NDArray[np.void],
    values: dict[str, set[int]],
    part: NDArray[np.int64] | None = None,
) -> Likeness:
    """Return how many runs are alike; `runs` holds columns of `reduce.RUN`, `groups` is of `reduce.GROUP`.

    `values` holds what each score takes, as `sampled` collects it; `part` numbers the bundle of each run.
    """
    once, counting = _counting(groups)
    across, within, renamed = _alike(runs, groups, values, part)
    return Likeness(
        across=across,
        within=within,
        renamed=renamed,
        tasks_spelled_alike=len(np.unique(groups["task"])) - len(np.unique(groups["spelling"])),
        tasks_once=once,
        tasks_counting=counting,
        oracles=_oracles(groups),
    )


def _alike(
    runs: dict[str, NDArray[Any]],
    groups: NDArray[np.void],
    values: dict[str, set[int]],
    part: NDArray[np.int64] | None,
) -> tuple[int, int, int]:
    """Return runs alike across tasks or parts, within one task of one part, and across tasks of one stem."""
    size = len(runs["print"])
    if not size:
        return 0, 0, 0
    telling = _telling(runs["digits"], _most(values, runs["print"]), SPARE + math.log10(size))
    place = np.flatnonzero(telling)
    ordered = np.sort(runs["print"][place])
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return 0, 0, 0
    place = place[np.isin(runs["print"][place], twice)]
    _, kind = np.unique(runs["print"][place], return_inverse=True)
    task = runs["task"][place]
    names, first = np.unique(groups["task"], return_index=True)
    stem = groups["stem"][first[np.searchsorted(names, task)]]
    tasks = (_distinct(kind, task) > 1)[kind]
    across = tasks if part is None else tasks | (_distinct(kind, part[place]) > 1)[kind]
    one_stem = (_distinct(kind, stem) == 1)[kind]
    return int(across.sum()), int((~across).sum()), int((tasks & one_stem).sum())


def _distinct(kind: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many distinct values stand under each kind."""
    order = np.lexsort((values, kind))
    kind, values = kind[order], values[order]
    new = np.ones(len(kind), np.bool_)
    new[1:] = (kind[1:] != kind[:-1]) | (values[1:] != values[:-1])
    return np.bincount(kind[new])


def _most(values: dict[str, set[int]], hashes: Hashes) -> dict[str, int]:
    """Return how many digits each score can be worth: no more than its values where these are coarse."""
    if not values:
        return {}
    kinds = len(np.unique(hashes)) if len(hashes) <= SAMPLE else VALUES
    most = {}
    for name, taken in values.items():
        few = len(taken) < min(kinds / 2, VALUES)
        if all(_quotient(value) or (few and value % 10**7 == 0) for value in taken):
            most[name] = int(math.log10(max(len(taken), 1)))
        else:
            most[name] = MOST_DIGITS
    return most


def _quotient(value: int) -> bool:
    """Tell whether a score in billionths is a quotient of small counts, rounded to the digits it has."""
    if value % 10**6 == 0:
        places, most = 3, 12
    else:
        places = next(places for places in range(4, 10) if value % 10 ** (MOST_DIGITS - places) == 0)
        most = 64
    unit = 10 ** (MOST_DIGITS - places)
    return any(
        2 * abs(value * n - round(value * n / _BILLION) * _BILLION) <= n * max(unit, 2)
        for n in range(2, most + 1)
    )


def _telling(packed: NDArray[np.uint32], most: dict[str, int], needed: float) -> NDArray[np.bool_]:
    total = np.zeros(len(packed), np.int64)
    for place, name in enumerate(SCORES):
        if name in most:
            digits = (packed >> np.uint32(BITS * place)) & np.uint32(2**BITS - 1)
            total += np.minimum(digits, most[name])
    return total >= needed


def _counting(groups: NDArray[np.void]) -> tuple[int, int]:
    """Return how many tasks occur once, and in how many of them `trial` is beyond a first or second try."""
    _, place = np.unique(groups["task"], return_inverse=True)
    runs = np.bincount(place, weights=groups["runs"]) if len(groups) else np.zeros(0)
    trial = np.full(len(runs), -1, np.int64)
    np.maximum.at(trial, place, groups["trial"])
    once = runs == 1
    return int(once.sum()), int((once & (trial > 1)).sum())


def _oracles(groups: NDArray[np.void]) -> int:
    """Return how many tasks have several values of `steps_oracle`."""
    names, place = np.unique(groups["task"], return_inverse=True)
    low, high = (np.full(len(names), start, np.int64) for start in (-ABSENT, ABSENT))
    np.minimum.at(low, place, groups["oracle_low"])
    np.maximum.at(high, place, groups["oracle_high"])
    return int((low < high).sum())
