"""From bundles on disk to their evaluation.

evaluation = assess_bundles(Path("bundle"), "hb-eval-2026")
evaluation.assessment.verdict.tier
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from certkit.assessment.evaluation import Evaluation, evaluate
from certkit.assessment.profile_file import DEFAULT_PROFILE, load_profile
from certkit.bundle.folder import open_bundle
from certkit.ground.errors import UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.probes.score import integrity_facts
from certkit.summary.pooling import accumulate
from certkit.summary.summarise import joined_facts, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from certkit.assessment.assessment import Question
    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import Facts
    from certkit.bundle.folder import Bundle
    from certkit.summary.summary import Summary


class Reduced(NamedTuple):
    """Bundles as a judgement reads them.

    Attributes:
        facts: what their manifests state.
        summary: their records, reduced.
        parts: facts and summary of each of several bundles, in the order of time.
    """

    facts: Facts
    summary: Summary
    parts: tuple[tuple[Facts, Summary], ...] = ()


def paths_of(bundles: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """Return the folders of one bundle or of several."""
    return (Path(bundles),) if isinstance(bundles, str | Path) else tuple(Path(path) for path in bundles)


def refuse_inside(bundles: str | Path | Sequence[str | Path], *outputs: Path | None) -> None:
    """Raise `UsageError` where an output would be written into a bundle and change the evidence."""
    for root in (path.resolve() for path in paths_of(bundles)):
        for out in outputs:
            if out is not None and (out.resolve() == root or root in out.resolve().parents):
                message = "would be written into the bundle"
                raise UsageError("usage.option", message, where=str(out), hint="evidence is only read")


def reduce_bundles(
    bundles: str | Path | Sequence[str | Path],
    *,
    core_conditions: Iterable[str] = (),
    progress: Progress = SILENT,
) -> Reduced:
    """Read the bundle in a folder, or pool those in several, and return what a judgement reads of them.

    Raises:
        CertkitError: a bundle is refused, or several cannot be pooled.
    """
    opened = [open_bundle(path, defer_records=True, progress=progress) for path in paths_of(bundles)]
    if len(opened) == 1:
        summary = summarise(opened[0], core_conditions=core_conditions, progress=progress)
        return Reduced(bundle_facts(opened[0], summary), summary)
    pooled = accumulate(opened, core_conditions=core_conditions, progress=progress)
    return Reduced(pooled.facts, pooled.summary, tuple((part.facts, part.summary) for part in pooled.parts))


def bundle_facts(bundle: Bundle, summary: Summary | None) -> Facts:
    """Return the facts of a bundle, with its counts of commitment integrity.

    Args:
        bundle: the bundle.
        summary: of its records; it may be None where the bundle encloses no plan.
    """
    return structs.replace(joined_facts(bundle.facts, summary), integrity=integrity_facts(bundle))


def assess_bundles(
    bundles: str | Path | Sequence[str | Path],
    profile: str | Profile = DEFAULT_PROFILE,
    *,
    question: Question | None = None,
    progress: Progress = SILENT,
) -> Evaluation:
    """Read the bundle in a folder, or pool those in several, and judge them against a profile.

    Args:
        bundles: one folder or several.
        profile: a packaged name, the path of a TOML file, or a table.
        question: the tier asked for, whether provisional rows decide, and answered findings.
        progress: told what is being read.

    Raises:
        CertkitError: a bundle or the profile is refused.
    """
    table = load_profile(profile) if isinstance(profile, str) else profile
    reduced = reduce_bundles(bundles, core_conditions=table.core_conditions, progress=progress)
    return evaluate(reduced.summary, reduced.facts, table, question)


def evaluate_parts(reduced: Reduced, profile: Profile) -> tuple[Evaluation, ...]:
    """Return each of several bundles judged alone."""
    return tuple(evaluate(summary, facts, profile) for facts, summary in reduced.parts)


def attains_tier(folder: Path, tier: int) -> bool:
    """Tell whether a bundle attains a tier of the default profile and no higher one, CSI counted."""
    verdict = assess_bundles(folder).assessment.verdict
    return verdict.tier_strict == tier
