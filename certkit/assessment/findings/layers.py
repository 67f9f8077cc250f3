"""Layer 2 against layer 3: whether the constraint checks and the judge see the same runs succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.assessment.metrics.metric import Metric, proportion
from certkit.assessment.rater_error.agreement import Sums, kappa, mae, pearson

if TYPE_CHECKING:
    from certkit.evidence.summary.summary import Tally

SCALE: Final = 10**4
"""Units of a score in the sums of a tally."""


def layer_agreement(tally: Tally) -> Metric:
    """Return the share of runs whose two layer scores are on the same side of 0.70 ([26] §4.3.4).

    The interval takes runs as independent. Beside it κ of the two sides, Pearson's r and the mean absolute
    difference of the scores.
    """
    n, both = tally.composite_checked, tally.layers_pass
    only2, only3 = tally.layer2_passes - both, tally.layer3_passes - both
    neither = n - both - only2 - only3
    sums = Sums(
        n=n,
        x=tally.layer2_sum,
        y=tally.layer3_sum,
        xx=tally.layer2_squares,
        yy=tally.layer3_squares,
        xy=tally.layers_product,
        apart=tally.layers_apart,
        scale=SCALE,
    )
    return proportion(
        "layer_agreement",
        both + neither,
        n,
        empty="no run carries both layer scores",
        counts={"both_pass": both, "layer2_only": only2, "layer3_only": only3, "neither_passes": neither},
        detail={
            "kappa": kappa([[neither, only3], [only2, both]], [0, 1]),
            "pearson": pearson(sums),
            "mae": mae(sums),
        },
    )
