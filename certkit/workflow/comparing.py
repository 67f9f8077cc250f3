"""Two bundles of two agents, or two moments of one agent, read from disk and compared.

compare("a", "b").answer
drift(Path("january/passport.json"), Path("april")).drift.result
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from certkit import files
from certkit.assessment import compare as comparing
from certkit.assessment.drift import drift as between
from certkit.assessment.drift import snapshot
from certkit.errors import CertkitError
from certkit.evidence.bundle.folder import open_bundle
from certkit.evidence.summary.gather import summarise
from certkit.passport.comparing import Comparison, Side, read
from certkit.passport.drift_side import drift_side
from certkit.passport.pdf import take
from certkit.progress import SILENT, Progress
from certkit.workflow.judging import judge
from certkit.workflow.named import DEFAULT_PROFILE
from certkit.workflow.verifying import MAX_PASSPORT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.evidence.bundle.manifest import Facts
    from certkit.evidence.summary.summary import Summary
    from certkit.passport.trust import Trust

"""What is read of a file that claims to be a passport; far above what its first step accepts."""


def compare(
    a: str | Path,
    b: str | Path,
    *,
    novel: bool = False,
    paper_tests: bool = False,
    progress: Progress = SILENT,
) -> comparing.Comparison:
    """Read the bundles at `a` and `b` and compare their agents; `novel` takes the held-out faults alone.

    `paper_tests` adds tests that take runs for independent. Raises `CertkitError` subclasses where a bundle
    is refused, which say which of the two it is.
    """
    first, second = (_read(Path(path), progress) for path in (a, b))
    return comparing.compare(first, second, novel=novel, paper_tests=paper_tests)


def _read(path: Path, progress: Progress) -> tuple[Summary, Facts]:
    try:
        bundle = open_bundle(path, progress=progress)
        return summarise(bundle, progress=progress), bundle.facts
    except CertkitError as failure:
        if not (failure.where or "").startswith(str(path)):
            failure.where = f"{path}/{failure.where}" if failure.where else str(path)
        raise


def drift(
    old: Path,
    new: Path,
    *,
    before: Sequence[Path] = (),
    profile: str | None = None,
    trust: Trust | None = None,
    at: datetime | None = None,
    progress: Progress = SILENT,
) -> Comparison:
    """Compare two snapshots of an agent, each a passport, a PDF with one, or a bundle's folder.

    `before` are those of its lineage before both, oldest first: the trend is taken over them too. A bundle
    is judged under `profile`, by default that of the other side's passport. With `trust` and the time `at`,
    the signature of every passport must be trusted. Raises `CertkitError` subclasses.
    """
    sides = [
        Side()
        if path.is_dir()
        else read(
            take(files.read(path, limit=MAX_PASSPORT), where=str(path)).passport,
            where=str(path),
            trust=trust,
            at=at,
        )
        for path in (*before, old, new)
    ]
    profiles = (side.statement.predicate.assessment.profile.id for side in sides if side.statement)
    chosen = profile or next(profiles, DEFAULT_PROFILE)
    snapshots = [
        drift_side(side.statement) if side.statement else _of_bundle(path, chosen, progress=progress)
        for path, side in zip((*before, old, new), sides, strict=True)
    ]
    return Comparison(
        drift=between(*snapshots[-2:], before=snapshots[:-2]),
        before=tuple(sides[:-2]),
        old=sides[-2],
        new=sides[-1],
    )


def _of_bundle(path: Path, profile: str, *, progress: Progress) -> Snapshot:
    return snapshot(*judge(path, profile, required_tier=1, progress=progress))
