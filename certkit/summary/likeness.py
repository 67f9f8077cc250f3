"""Runs, names and tasks that are alike: what shows that one measurement was entered many times.

A run's print is the hash of every field that was measured of it, ids and times left out. Two runs with the
same print are alike. Equal runs prove copying only if equality by chance is unlikely: the runs themselves
tell how likely it is, see `_chance`.

Names that repeat across the records of a bundle (a run id or sequence used twice, a task in two domains) are
found by sorted 64-bit hashes, and then confirmed by comparing the names themselves, so that a collision of
hashes cannot refuse good evidence.

Everything here works on whole columns. What follows from it is for `assessment.findings` to say.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import xxhash
from msgspec.structs import replace

from certkit.ground.text import spelled_alike
from certkit.record import arrow, parquet
from certkit.record.columns import ABSENT, DEFAULTS, KINDS, Hashes, Index, name_hash
from certkit.record.faults import Fault, Faults, RecordFaultsError
from certkit.record.reader import blocks, repeated, split_lines, two_domains
from certkit.summary.summary import Likeness

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from certkit.bundle.folder import Bundle
    from certkit.record.columns import Columns
    from certkit.summary.reduce import CellKey
    from certkit.summary.summarise import Merge


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

COLUMNAR: Final = {".parquet": parquet, ".arrow": arrow}
"""What reads record files of columns, by the end of their names."""

_NOT_MEASURED: Final = {
    *("run_id", "task_id", "cluster_id", "sequence", "started_at", "trial"),
    *("trace", "measured", "human_checked"),
}
_CODED: Final = tuple(name for name, kind in KINDS.items() if kind == "string" and name not in _NOT_MEASURED)
_NUMBERS: Final = tuple(
    name for name, kind in KINDS.items() if kind not in {"string", "time"} and name not in _NOT_MEASURED
)
_BILLION: Final = 10**9

FAR: Final = 10
"""How many times as many pairs of runs must be alike as chance explains."""
FEW_VALUES: Final = 5
"""Values of the scores of different runs below which nothing is known of how often they recur."""
DRAWN: Final = 100_000
"""Different runs that are compared at most, to see how often a score recurs."""


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


def scaled(columns: Columns, name: str) -> NDArray[np.int32]:
    """Return one of `SCORES` in units of 1e-8, rounded as in `prints`; `_UNSCORED` where it is absent."""
    if name not in columns.numbers:
        return np.broadcast_to(_UNSCORED, columns.size)
    return np.asarray(np.rint(columns.numbers[name] * _BILLION) // 10, np.int32)


_UNSCORED: Final = np.int32(DEFAULTS["floating"] * _BILLION // 10)


def stems(names: Collection[str]) -> Hashes:
    """Return the hashes of names without digits: names that differ by a counter share one."""
    cut = map(methodcaller("translate", None, b"0123456789"), map(str.encode, names))
    return np.fromiter(map(xxhash.xxh3_64_intdigest, cut), np.uint64, len(names))


def likeness(
    runs: dict[str, NDArray[Any]], groups: NDArray[np.void], part: NDArray[np.int64] | None = None
) -> Likeness:
    """Return how many runs are alike; `runs` holds columns of `reduce.RUN`, `groups` is of `reduce.GROUP`.

    `part` numbers the bundle of each run.
    """
    once, counting = _counting(groups)
    across, within, renamed = _alike(runs, groups, part)
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
    runs: dict[str, NDArray[Any]], groups: NDArray[np.void], part: NDArray[np.int64] | None
) -> tuple[int, int, int]:
    """Return runs alike across tasks or parts, within one task of one part, and across tasks of one stem.

    Runs are compared with those that have the same of `SCORES`, and not at all without any.
    """
    scored = np.zeros(len(runs["print"]), np.uint8)
    for bit, name in enumerate(SCORES):
        scored |= (runs[name] != _UNSCORED).astype(np.uint8) << np.uint8(bit)
    across = within = renamed = 0
    for pattern in np.flatnonzero(np.bincount(scored)[1:]) + 1:
        place = np.flatnonzero(scored == pattern)
        ordered = np.sort(runs["print"][place])
        new = np.append(True, ordered[1:] != ordered[:-1])
        if new.all():
            continue
        last = ordered[new][:DRAWN][-1]  # prints are hashes: the least are drawn at random
        drawn = place[runs["print"][place] <= last]
        drawn = drawn[np.unique(runs["print"][drawn], return_index=True)[1]]
        by_chance = FAR * _chance(runs, drawn) * _pairs(np.array([len(place)]))
        if _pairs(np.diff(np.append(np.flatnonzero(new), len(new)))) <= by_chance:
            continue
        place = place[np.isin(runs["print"][place], ordered[~new])]
        _, kind = np.unique(runs["print"][place], return_inverse=True)
        task = runs["task"][place]
        home = task if part is None else task + part[place].astype(np.uint64)
        names, first = np.unique(groups["task"], return_index=True)
        stem = groups["stem"][first[np.searchsorted(names, task)]]
        together = _pairs(np.unique(np.stack([kind, home.view(np.int64)]), axis=1, return_counts=True)[1])
        apart = (_distinct(kind, home) > 1)[kind]
        if _pairs(np.bincount(kind)) - together > by_chance:
            one_stem = (_distinct(kind, task) > 1) & (_distinct(kind, stem) == 1)
            across, renamed = across + int(apart.sum()), renamed + int(one_stem[kind].sum())
        if together > by_chance:
            within += int((~apart).sum())
    return across, within, renamed


def _chance(runs: dict[str, NDArray[Any]], different: NDArray[np.int64]) -> float:
    """Return how likely two runs agree in every score by chance, as `different` ones of them show.

    It is the share of their pairs that agree in a score, one more pair at least, multiplied over the scores.
    Where the scores have too few values to show it, two of them with more than six decimals never agree.
    """
    chance, values, fine = 1.0, 1, 0
    for name in SCORES:
        column = runs[name][different]
        _, times = np.unique(column, return_counts=True)
        chance *= min(1, (_pairs(times) + 1) / max(1, _pairs(np.array([len(different)]))))
        values, fine = max(values, len(times)), fine + bool((column % 100).any())
    if values < FEW_VALUES:
        return float(fine < 2)  # noqa: PLR2004 - see above
    return chance


def _pairs(times: NDArray[np.int64]) -> int:
    """Return how many pairs there are of things that occur so many times."""
    return int((times * (times - 1) // 2).sum())


def _distinct(kind: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many distinct values stand under each kind."""
    order = np.lexsort((values, kind))
    kind, values = kind[order], values[order]
    new = np.ones(len(kind), np.bool_)
    new[1:] = (kind[1:] != kind[:-1]) | (values[1:] != values[:-1])
    return np.bincount(kind[new])


def _counting(groups: NDArray[np.void]) -> tuple[int, int]:
    """Return how many tasks occur once, and in how many of them `trial` is beyond a first or second try."""
    _, place = np.unique(groups["task"], return_inverse=True)
    runs = np.bincount(place, weights=groups["runs"]) if len(groups) else np.zeros(0)
    trial = np.full(len(runs), -1, np.int64)
    np.maximum.at(trial, place, groups["trial"])
    once = runs == 1
    counting = trial[once & (trial > 1)]  # one trial for all of them is a round of its own
    return int(once.sum()), len(counting) * bool((counting[1:] != counting[:-1]).any())


def _oracles(groups: NDArray[np.void]) -> int:
    """Return how many tasks have several values of `steps_oracle`."""
    names, place = np.unique(groups["task"], return_inverse=True)
    low, high = (np.full(len(names), start, np.int64) for start in (-ABSENT, ABSENT))
    np.minimum.at(low, place, groups["oracle_low"])
    np.maximum.at(high, place, groups["oracle_high"])
    return int((low < high).sum())


CONFIRM: Final = 100_000
"""Repeated hashes that are confirmed by name; where there are more, the first ones are."""


class Named(msgspec.Struct):
    """What of a record names it."""

    run_id: str
    domain: str
    task_id: str
    condition: str
    outcome: str
    sequence: int | float | None = None


def homes(groups: NDArray[np.void], cells: Iterable[CellKey], domains: Index) -> Hashes:
    """Return the tasks of groups and the numbers of their domains, (2, n); `cells` stand by number."""
    domain_of = np.array([domains[domain] for _, domain, _condition in cells], np.uint64)
    return np.unique(np.stack([groups["task"], domain_of[groups["cell"]]]), axis=1)


def repetitions(
    lines: Iterable[tuple[str, int, bytes]], run_ids: Hashes, sequences: NDArray[Any], placed: Hashes
) -> Iterator[Fault]:
    """Yield a fault for every run id and every one of `sequences` used again, and every task in two domains.

    `lines` are the records with file and number; `run_ids` are hashes of their ids, `placed` is of `homes`.
    They are read only where hashes repeat, and the names themselves compared, so that a collision of hashes
    refuses nothing.
    """
    hashes = (repeated_values(run_ids), sequences, repeated_values(np.unique(placed, axis=1)[0]))
    runs, ordered, tasks = (set(values[:CONFIRM].tolist()) for values in hashes)
    if not (runs or ordered or tasks):
        return
    decoder = msgspec.json.Decoder(Named)
    places: dict[tuple[str, str | int], str] = {}
    homes: dict[str, tuple[str, str]] = {}
    for path, number, line in lines:
        record = decoder.decode(line)
        place = f"{path}:{number}" if path else f"line {number}"
        names: list[tuple[str, str | int]] = []
        if name_hash(record.run_id) in runs:
            names.append(("run_id", record.run_id))
        if record.sequence is not None and record.sequence in ordered:
            names.append(("sequence", int(record.sequence)))
        for key in names:
            if key in places:
                yield replace(repeated(number, *key, places[key]), file=path)
            places.setdefault(key, place)
        if name_hash(record.task_id) in tasks:
            domain, first = homes.setdefault(record.task_id, (record.domain, place))
            if domain != record.domain:
                fault = two_domains(number, record.task_id, domain, record.domain, first)
                yield replace(fault, file=path)


def refuse_repetitions(
    lines: Iterable[tuple[str, int, bytes]], merge: Merge, sequences: NDArray[Any]
) -> None:
    """Raise `RecordFaultsError` where names repeat; see `repetitions`."""
    placed = homes(merge.groups(), merge.cells, Index())
    if faults := Faults(repetitions(lines, merge.run("run_id"), sequences, placed)):
        raise RecordFaultsError(faults)


def named_alike(counted: Likeness, lines: Iterable[tuple[str, int, bytes]]) -> Likeness:
    """Return `counted` with two names of tasks or runs that are spelled alike, where there are any."""
    if not counted.tasks_spelled_alike + counted.runs_spelled_alike:
        return counted
    decoder = msgspec.json.Decoder(Named)
    records = (decoder.decode(line) for *_, line in lines)
    tasks, runs = zip(*((record.task_id, record.run_id) for record in records), strict=True)
    return replace(counted, seen=spelled_alike(dict.fromkeys(tasks), runs))


def repeated_values(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the values that occur more than once, sorted."""
    ordered = np.sort(values)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def record_lines(bundle: Bundle) -> Iterator[tuple[str, int, bytes]]:
    """Yield every line of every record file, with the path of the file and the number of the line from 1."""
    for path in bundle.record_files:
        number = 0
        file = bundle.root / path
        reader = COLUMNAR.get(file.suffix)
        for block in reader.lines(file, shown=path) if reader else blocks(file):
            for line in split_lines(block):
                number += 1
                yield path, number, line
