"""Bundles on disk, judged against a profile; outputs are kept out of them.

assessment = assess(Path("bundle"), "hb-eval-2026")
assessment, summary = judge([Path("a"), Path("b")], profile, required_tier=1, progress=SILENT)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from certkit.assessment import assessing
from certkit.bundle.folder import open_bundle
from certkit.ground.errors import InputError, UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.summary.pooling import accumulate
from certkit.summary.summarise import summarise
from certkit.workflow.named import DEFAULT_PROFILE, load_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.profile import Profile
    from certkit.assessment.result import Assessment
    from certkit.bundle.context import Given
    from certkit.summary.summary import Summary

MOST_ICC: Final = 0.99
"""The largest correlation that is planned with; at 1 more runs of a task would say nothing."""


def refuse_inside(bundles: Path | Sequence[Path], *outputs: Path | None) -> None:
    """Raise `UsageError` where an output would be written into a bundle and change the evidence."""
    for root in (path.resolve() for path in paths_of(bundles)):
        for out in outputs:
            if out is not None and (out.resolve() == root or root in out.resolve().parents):
                raise UsageError(
                    "usage.option",
                    "would be written into the bundle",
                    where=str(out),
                    hint="evidence is only read",
                )


def paths_of(bundles: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """Return the folders of one bundle or of several."""
    return (Path(bundles),) if isinstance(bundles, str | Path) else tuple(Path(path) for path in bundles)


def assess(
    path: str | Path | Sequence[str | Path],
    profile: str | Profile = DEFAULT_PROFILE,
    *,
    required_tier: int = 1,
    context: Given | None = None,
    progress: Progress = SILENT,
) -> Assessment:
    """Read the bundle at `path`, or pool those at several paths, and judge it against `profile`.

    `profile` is a packaged name, the path of a TOML file, or a `Profile`. `required_tier` decides the
    exit code and `verdict.status`. `context` may answer challenges (`load_context`).
    Raises `CertkitError` subclasses where the bundle or the profile is refused.
    """
    return judge(path, profile, required_tier=required_tier, context=context, progress=progress)[0]


def judge(
    path: str | Path | Sequence[str | Path],
    profile: str | Profile,
    *,
    required_tier: int,
    context: Given | None = None,
    progress: Progress,
) -> tuple[Assessment, Summary]:
    """Return the assessment of a bundle, or of several that are pooled, and the summary that it rests on."""
    table = load_profile(profile) if isinstance(profile, str) else profile
    bundles = [open_bundle(folder, progress=progress) for folder in paths_of(path)]
    if len(bundles) == 1:
        facts, summary = bundles[0].facts, summarise(bundles[0], progress=progress)
        judged = assessing.assess(summary, facts, table, required_tier=required_tier, context=context)
        return judged, summary
    pooled = accumulate(bundles, progress=progress)
    judged = assessing.assess_accumulation(pooled, table, required_tier=required_tier, context=context)
    return judged, pooled.summary


def measured_icc(path: str | Path) -> tuple[float, int]:
    """Return how runs of one task correlate under faults in the bundle at `path` (Donner 1986), below 1.

    With it, in how many tasks that was measured.

    Raises `InputError` ``plan.unmeasured`` where tasks have one run each, or there is one task.
    """
    variation = assess(path).variation
    if variation is None or variation.icc is None:
        raise InputError(
            "plan.unmeasured",
            "no task has two runs under faults, or there is one task: nothing shows how runs correlate",
            where=str(path),
            hint="guess with --icc; .3 is taken unless stated",
        )
    return min(variation.icc, MOST_ICC), variation.tasks
