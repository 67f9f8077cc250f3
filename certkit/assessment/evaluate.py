"""From a summary to judged rows: the metrics, both readings of every row, and the tier of each reading."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from certkit.assessment import criteria, verdict
from certkit.assessment.bounded import Reader
from certkit.assessment.kinds import fewest
from certkit.assessment.metrics import metrics_2025, metrics_2026
from certkit.assessment.metrics.view import look

if TYPE_CHECKING:
    from certkit.assessment.criteria import Row
    from certkit.assessment.metrics.metric import Metric
    from certkit.assessment.metrics.view import View
    from certkit.assessment.profile import Profile, Reading
    from certkit.evidence.bundle.manifest import Manifest
    from certkit.evidence.summary.summary import Summary


class Judged(Struct, frozen=True, kw_only=True, eq=False):
    """A summary as judged by a profile: every metric, and every row in both readings."""

    profile: Profile
    view: View
    metrics: dict[str, Metric]
    reader: Reader
    rows: tuple[Row, ...]

    def tier(self, reading: Reading) -> int:
        """Return the tier attained under a reading, 0 for none."""
        records = self.view.summary.records
        return verdict.attained(verdict.tiers(self.profile, self.rows, reading, records=records))


def judge(summary: Summary, manifest: Manifest, profile: Profile) -> Judged:
    """Return the judged rows of a summary under a profile."""
    view = look(summary, manifest, profile.tau)
    measured = (*metrics_2026.metrics(view), *metrics_2025.metrics(view))
    metrics = {metric.id: metric for metric in measured}
    reader = Reader(view, profile, metrics)
    return Judged(
        profile=profile,
        view=view,
        metrics=metrics,
        reader=reader,
        rows=reader.read(criteria.table(profile, metrics, partial(fewest, reader.sample))),
    )
