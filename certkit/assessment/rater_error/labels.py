"""Whether a model gave the outcomes, which rater it is, and what a person's labels say of each series.

A series takes the labels of its own runs: those of its conditions, and in one domain those of the domain. The
judge passed what the record holds as a success, whatever the calibration says. An item that is no run of the
bundle has no condition; it counts in every series, and is a finding.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from certkit.assessment.metrics import series as of_runs
from certkit.assessment.metrics.metric import names
from certkit.assessment.rater_error.corrected import Labels
from certkit.evidence.bundle.calibration import ABSENT, MILLION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from certkit.assessment.kinds import Sample
    from certkit.evidence.bundle.calibration import Calibration
    from certkit.evidence.bundle.manifest import Protocol

OF_OUTCOMES: Final = frozenset(
    (
        "adversarial_resistance",
        "c_nom",
        "cascade_penalty",
        "cn_frr",
        "domain_min",
        "frr",
        "frr_2025",
        "gap",
        "irs",
        "irs_2025",
        "novel_fault",
        "posterior",
        "r_op",
    )
)
"""Metrics that count successes."""


PASSES: Final = 7 * MILLION // 10
"""Success at 0.70, [26] §4.3.4."""

SHARES: Final[dict[str, Callable[[str], bool]]] = {
    "r_op": of_runs.fault,
    "c_nom": of_runs.nominal,
    "adversarial_resistance": of_runs.adversarial,
}
"""Series whose value is the share of successes, with their conditions: they are corrected."""

GRADED: Final[dict[str, Callable[[str], bool]]] = {
    "frr": of_runs.fault,
    "frr_2025": of_runs.fault,
    "cn_frr": of_runs.fault,
}
"""Series in which a wrongly passed run counts for one at most: that share is taken off their limit."""


EVEN: Final[Mapping[int | None, int]] = MappingProxyType({})
"""Sizes of tasks that are not told: every label counts one."""


class LabelledRun(NamedTuple):
    """Where a labelled run belongs, as far as known, whether the judge passed it, and if it is a success.

    `contradicted`: the score in the calibration is not what the record holds.
    """

    domain: str | None
    condition: str | None
    task: int | None
    passed: bool
    truly: bool
    contradicted: bool = False


class Labelled(Struct, frozen=True):
    """The runs that a person labelled."""

    runs: tuple[LabelledRun, ...]

    def of(
        self, series: str | None, domain: str | None = None, sizes: Mapping[int | None, int] = EVEN
    ) -> Labels:
        """Return the four counts over the runs of a series, or over all.

        `sizes` holds the runs of every task: where tasks weigh alike, a label of a task with n runs counts
        n_min/n, n_min being the runs of the smallest labelled task.
        """
        over = of_runs.every if series is None else SHARES.get(series) or GRADED[series]
        chosen = [
            run
            for run in self.runs
            if (run.condition is None or over(run.condition)) and domain in {None, run.domain}
        ]
        fewest = min((sizes[run.task] for run in chosen if run.task in sizes), default=1)
        counts: dict[tuple[bool, bool], float] = {(a, b): 0 for a in (True, False) for b in (True, False)}
        for run in chosen:
            counts[run.passed, run.truly] += fewest / sizes[run.task] if run.task in sizes else 1
        return Labels(*counts.values())

    def both(self, sample: Sample, series: str, domain: str | None) -> tuple[Labels, Labels]:
        """Return the counts that go with tasks that weigh alike, and with tasks that weigh by their runs."""
        tasks = sample.tasks(series, domain)
        sizes = dict(zip(tasks.task.tolist(), tasks.n.tolist(), strict=True))
        return self.of(series, domain, sizes), self.of(series, domain)


def counted(calibration: Calibration, judge: str, *, recorded: bool) -> Labelled:
    """Return the labelled runs that a rater scored; `recorded`: it gave the outcomes that records hold."""
    number = [rater.name for rater in calibration.raters].index(judge)
    nothing = (None,) * len(calibration.items)
    conditions, tasks = calibration.conditions or nothing, calibration.tasks or nothing
    outcomes = (recorded and calibration.passed) or nothing
    chosen = calibration.rater == number
    scores = zip(calibration.item[chosen].tolist(), calibration.score[chosen].tolist(), strict=True)
    reference = calibration.reference.tolist()
    runs = []
    for item, score in scores:
        if reference[item] != ABSENT:
            scored, outcome = score >= PASSES, outcomes[item]
            passed = scored if outcome is None else outcome
            place = calibration.domains[item], conditions[item], tasks[item]
            runs.append(LabelledRun(*place, passed, reference[item] >= PASSES, passed != scored))
    return Labelled(tuple(runs))


def labelled(calibration: Calibration | None, protocol: Protocol) -> Labelled | None:
    """Return the labels by which limits are corrected, None without labels or a judge of the outcomes."""
    if calibration is None or not gives_outcomes(protocol):
        return None
    judge, _ = judge_of(calibration, protocol)
    return None if judge is None else counted(calibration, judge, recorded=True)


def gives_outcomes(protocol: Protocol) -> bool:
    """Tell whether a model gave the outcomes: a judge is named, and the methodology is not ``trajectory``."""
    if protocol.methodology == "independent_judge":
        return True
    return protocol.judge is not None and protocol.methodology != "trajectory"


def judge_of(calibration: Calibration, protocol: Protocol) -> tuple[str | None, str | None]:
    """Return which rater is the judge of the runs, or why that is not known."""
    judges = [rater.name for rater in calibration.raters if rater.kind == "judge"]
    stated = protocol.judge.name if protocol.judge else None
    if stated is not None:
        if stated in judges:
            return stated, None
        named = f"; the calibration is of {names(judges)}" if judges else ""
        return None, f"{stated}, the judge of the runs, is not among the judges of the calibration{named}"
    if len(judges) == 1:
        return judges[0], None
    if judges:
        return None, f"the manifest does not say which of {len(judges):,} judges judged the runs"
    return None, "no rater of the calibration is a judge"


def unlabelled(calibration: Calibration | None, protocol: Protocol) -> str | None:
    """Return why a model's outcomes cannot be bounded; None where they can, or where a program gave them."""
    if not gives_outcomes(protocol):
        return None
    if calibration is None:
        return "a model gave the outcomes, and how often it errs is unknown: no run is labelled by a person"
    judge, reason = judge_of(calibration, protocol)
    if judge is None:
        return f"a model gave the outcomes, and how often it errs is unknown: {reason}"
    if not counted(calibration, judge, recorded=True).runs:
        return f"how often {judge} errs is unknown: no run that it scored is labelled by a person"
    return None
