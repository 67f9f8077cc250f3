"""Layer 2 against layer 3: whether the constraint checks and the judge see the same runs succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.assessment.metrics.metric import Metric, proportion
from certkit.assessment.rater_error.agreement import kappa

if TYPE_CHECKING:
    from certkit.evidence.summary.summary import Tally


def layer_agreement(tally: Tally) -> Metric:
    """Return the share of runs whose two layer scores are on the same side of 0.70 ([26] §4.3.4).

    The interval takes runs as independent. Beside it κ of the two sides.
    """
    n, both = tally.composite_checked, tally.layers_pass
    only2, only3 = tally.layer2_passes - both, tally.layer3_passes - both
    neither = n - both - only2 - only3
    return proportion(
        "layer_agreement",
        both + neither,
        n,
        empty="no run carries both layer scores",
        counts={"both_pass": both, "layer2_only": only2, "layer3_only": only3, "neither_passes": neither},
        detail={
            "kappa": kappa([[neither, only3], [only2, both]], [0, 1]),
        },
    )
