"""Whether a model gave the outcomes, which rater it is, and whether a person labelled runs that it judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.metrics.metric import names
from certkit.evidence.bundle.calibration import ABSENT

if TYPE_CHECKING:
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
        found = f"; the calibration is of {names(judges)}" if judges else ""
        return None, f"{stated}, the judge of the runs, is not among the judges of the calibration{found}"
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
    place = [rater.name for rater in calibration.raters].index(judge)
    if not (calibration.reference[calibration.item[calibration.rater == place]] != ABSENT).any():
        return f"how often {judge} errs is unknown: no run that it scored is labelled by a person"
    return None
