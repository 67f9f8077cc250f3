"""A safety case drawn from bundles on disk, with the passport and the context where they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit import report
from certkit.ground.progress import SILENT, Progress
from certkit.workflow.judging import judge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime
    from pathlib import Path

    from certkit.bundle.context import Given
    from certkit.report import View


def draw(
    bundle: Path | Sequence[Path],
    profile: str,
    *,
    required_tier: int,
    today: date,
    context: Given | None = None,
    passport: bytes | None = None,
    generated_at: datetime | None = None,
    progress: Progress = SILENT,
) -> View:
    """Judge bundles for a report, and return the report; `today` ends acceptances and ages evidence."""
    judged, summary = judge(bundle, profile, required_tier=required_tier, context=context, progress=progress)
    return report.view(
        judged,
        context=context,
        summary=summary,
        today=today,
        passport=passport,
        generated_at=generated_at,
    )
