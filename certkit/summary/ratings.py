"""What people's labels show of the model that gave the outcomes: from calibration files to `Labels`.

A series takes the labels of its own runs. The judge passed what the record holds as a success, whatever the
calibration says or leaves out. An item that is no run of the bundle counts in no task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec import Struct

from certkit.bundle.labels import ABSENT, MILLION, label_order, read_calibration
from certkit.record.columns import name_hash
from certkit.record.record import Condition, Outcome
from certkit.summary.lines import Named, record_lines
from certkit.summary.summary import LABELLED_SERIES, MEANS, LabelledTask, Labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.bundle.folder import Bundle
    from certkit.bundle.labels import Calibration
    from certkit.bundle.manifest import Protocol
    from certkit.summary.series import Sources, Units

PASSES: Final = 7 * MILLION // 10
"""Success at 0.70, [26] §4.3.4."""
_KINDS: Final = ((True, True), (True, False), (False, True), (False, False))
"""Whether the judge passed a run, and whether it is a success: the order of counts of labels."""


class LabelledItem(Struct, frozen=True, kw_only=True):
    """An item that a person labelled and the judge scored.

    Attributes:
        run: the run of the bundle, None where the item is none.
        passed: whether the judge passed it.
        truly: whether it is a success.
        contradicted: whether the judge's score in the calibration is not what the record holds.
    """

    run: Named | None
    passed: bool
    truly: bool
    contradicted: bool


class Ratings(Struct, frozen=True, kw_only=True):
    """The labels of bundles that are judged together; fields without a comment as in `Labels`."""

    state: str = "none"
    rated: bool = False
    referenced: int = 0
    drawn: bool = False
    items: tuple[LabelledItem, ...] = ()  # with labels of the judge's runs


def read_ratings(*bundles: Bundle) -> Ratings:
    """Return the labels of bundles that are judged together.

    Raises:
        CalibrationFaultsError: lines of calibration files are refused.
    """
    calibration = read_calibration(*bundles)
    if calibration is None:
        return Ratings()
    labelled = calibration.labelled
    judge = judge_of(calibration, bundles[0].manifest.protocol)
    items = tuple(_items(calibration, judge, _runs(calibration, bundles))) if judge is not None else ()
    return Ratings(
        state="no-judge" if judge is None else "labelled" if items else "unlabelled",
        rated=any(rater.kind == "judge" for rater in calibration.raters),
        referenced=len(labelled),
        drawn=set(labelled) == set(to_label(len(labelled), *bundles) if labelled else ()),
        items=items,
    )


def judge_of(calibration: Calibration, protocol: Protocol) -> str | None:
    """Return which rater is the judge of the runs, None where that is not known."""
    judges = [rater.name for rater in calibration.raters if rater.kind == "judge"]
    if protocol.judge is not None:
        return protocol.judge.name if protocol.judge.name in judges else None
    return judges[0] if len(judges) == 1 else None


def to_label(m: int, *bundles: Bundle) -> tuple[str, ...]:
    """Return the ids of the `m` runs that a person labels to calibrate a judge.

    `bundles` are all that are judged together: they are one draw.
    """
    return tuple(label_order(*((line for *_, line in record_lines(bundle)) for bundle in bundles))[:m])


def _runs(calibration: Calibration, bundles: tuple[Bundle, ...]) -> dict[str, Named]:
    decoder, wanted = msgspec.json.Decoder(Named), set(calibration.items)
    records = (decoder.decode(line) for bundle in bundles for *_, line in record_lines(bundle))
    return {record.run_id: record for record in records if record.run_id in wanted}


def _items(calibration: Calibration, judge: str, runs: dict[str, Named]) -> Iterator[LabelledItem]:
    number = [rater.name for rater in calibration.raters].index(judge)
    chosen = calibration.rater == number
    scores = (calibration.score[chosen] >= PASSES).tolist()
    scored: dict[int, bool] = dict(zip(calibration.item[chosen].tolist(), scores, strict=True))
    for item, reference in enumerate(calibration.reference.tolist()):
        run = runs.get(calibration.items[item])
        passed = scored.get(item) if run is None else run.outcome == Outcome.SUCCESS
        if reference != ABSENT and passed is not None:
            yield LabelledItem(
                run=run,
                passed=passed,
                truly=reference >= PASSES,
                contradicted=passed != scored.get(item, passed),
            )


def labels(ratings: Ratings, units: Units, sources: Sources) -> Labels:
    """Return the labels with the tasks that they lie on."""
    counts = [0, 0, 0, 0]
    by_task: dict[tuple[int, str], dict[str, list[int]]] = {}
    tasks, first = np.unique(units.groups["task"], return_index=True)
    for item in ratings.items:
        kind = _KINDS.index((item.passed, item.truly))
        counts[kind] += 1
        if item.run is not None:
            row = first[np.searchsorted(tasks, np.uint64(name_hash(item.run.task_id)))]
            groups = by_task.setdefault((int(units.of_row[row]), item.run.domain), {})
            for name in _groups(item.run.condition):
                groups.setdefault(name, [0, 0, 0, 0])[kind] += 1
    return Labels(
        state=ratings.state,
        rated=ratings.rated,
        referenced=ratings.referenced,
        drawn=ratings.drawn,
        contradicted=sum(item.contradicted for item in ratings.items),
        counts=(counts[0], counts[1], counts[2], counts[3]),
        tasks=tuple(_tasks(by_task, units, sources)) if by_task else (),
    )


def _groups(condition: str) -> tuple[str, ...]:
    if condition == Condition.NOMINAL:
        return ("normal",)
    return ("fault", "attacked") if condition == Condition.ADVERSARIAL else ("fault",)


def _tasks(
    by_task: dict[tuple[int, str], dict[str, list[int]]], units: Units, sources: Sources
) -> Iterator[LabelledTask]:
    """Yield the labelled tasks, each in every domain in which it ran: their runs there count too."""
    labelled = sorted({unit for unit, _ in by_task})
    pairs = np.flatnonzero(np.isin(units.pair_unit, labelled))
    sums = {
        name: [column[pairs].tolist() for column in units.sums(sources.standard_series[name], by_domain=True)]
        for name in LABELLED_SERIES
    }
    columns = units.pair_unit[pairs].tolist(), units.pair_domain[pairs].tolist()
    for at, (unit, place) in enumerate(zip(*columns, strict=True)):
        domain = units.domains[place]
        yield LabelledTask(
            task=labelled.index(unit),
            domain=domain,
            series={name: (n[at], 0 if name in MEANS else y[at]) for name, (n, y) in sums.items() if n[at]},
            labels={
                name: (counts[0], counts[1], counts[2], counts[3])
                for name, counts in sorted(by_task.get((unit, domain), {}).items())
            },
        )
