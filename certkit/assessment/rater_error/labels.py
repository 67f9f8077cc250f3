"""Whether a model gave the outcomes, which rater it is, and what a person's labels say of each series.

A series takes the labels of its own runs: those of its conditions, and in one domain those of the domain. An
item that is no run of the bundle has no condition; it counts in every series, and is a finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from certkit.assessment.metrics import series as of_runs
from certkit.assessment.metrics.metric import names
from certkit.assessment.rater_error.corrected import Labels
from certkit.evidence.bundle.calibration import ABSENT, MILLION

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Labelled(Struct, frozen=True):
    """Labelled runs: domain and condition where known, whether the judge passed it, if it is a success."""

    runs: tuple[tuple[str | None, str | None, bool, bool], ...]

    def of(self, series: str | None, domain: str | None = None) -> Labels:
        """Return the four counts over the runs of a series, or over all."""
        over = of_runs.every if series is None else SHARES.get(series) or GRADED[series]
        counts = dict.fromkeys(((True, True), (True, False), (False, True), (False, False)), 0)
        for place, condition, passed, truly in self.runs:
            if (condition is None or over(condition)) and domain in {None, place}:
                counts[passed, truly] += 1
        return Labels(*counts.values())


def counted(calibration: Calibration, judge: str) -> Labelled:
    """Return the labelled runs that a rater scored."""
    place = [rater.name for rater in calibration.raters].index(judge)
    conditions = calibration.conditions or (None,) * len(calibration.items)
    chosen = calibration.rater == place
    scores = zip(calibration.item[chosen].tolist(), calibration.score[chosen].tolist(), strict=True)
    reference = calibration.reference.tolist()
    return Labelled(
        tuple(
            (calibration.domains[item], conditions[item], score >= PASSES, reference[item] >= PASSES)
            for item, score in scores
            if reference[item] != ABSENT
        )
    )


def labelled(calibration: Calibration | None, protocol: Protocol) -> Labelled | None:
    """Return the labels by which limits are corrected, None without labels or a judge of the outcomes."""
    if calibration is None or not gives_outcomes(protocol):
        return None
    judge, _ = judge_of(calibration, protocol)
    return None if judge is None else counted(calibration, judge)


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
    if not counted(calibration, judge).runs:
        return f"how often {judge} errs is unknown: no run that it scored is labelled by a person"
    return None
