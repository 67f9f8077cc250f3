"""Two bundles of two agents, or two moments of one agent, read from disk and compared.

compare("a", "b").answer
drift(Path("january/passport.json"), Path("april")).result
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from certkit.assessment import compare as comparing
from certkit.assessment.drift import drift as between
from certkit.assessment.drift.document import SideKnown, SidesKnown
from certkit.assessment.drift.snapshot import snapshot
from certkit.bundle.folder import open_bundle
from certkit.ground import files
from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT, Progress
from certkit.passport.drift_side import drift_side
from certkit.passport.opening import open_signed, parse
from certkit.passport.pdf import take
from certkit.summary.summarise import summarise
from certkit.workflow.judging import judge
from certkit.workflow.named import DEFAULT_PROFILE
from certkit.workflow.verifying import MAX_PASSPORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment.drift.document import Drift
    from certkit.bundle.manifest import Facts
    from certkit.passport.statement import Statement
    from certkit.passport.trust import Trust
    from certkit.summary.summary import Summary


def _side(path: Path, trust: Trust | None) -> tuple[SideKnown, Statement | None]:
    """Return what is known of a side, and the statement of a passport; with a policy it must be trusted.

    Raises `CertkitError` with the code of the step that refuses the passport, among the first four of a
    verification; without a policy the signature is not among them.
    """
    if path.is_dir():
        return SideKnown(passport_id=None, signature="none"), None
    data = take(files.read(path, limit=MAX_PASSPORT), where=str(path)).passport
    try:
        if trust is not None:
            signed = open_signed(data, trust)
            return SideKnown(passport_id=signed.passport_id, signature="trusted"), signed.statement
        passport = parse(data)
        known = SideKnown(passport_id=passport.passport_id, signature="not_checked")
        return known, passport.unverified_statement()
    except CertkitError as error:
        error.where = str(path)
        error.hint = error.hint or "expected the file of a passport or the folder of a bundle"
        raise


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
    progress: Progress = SILENT,
) -> Drift:
    """Compare two snapshots of an agent, each a passport, a PDF with one, or a bundle's folder.

    `before` are those of its lineage before both, oldest first: the trend is taken over them too. A bundle
    is judged under `profile`, by default that of the other side's passport. With `trust` the signature of
    every passport must be trusted; whether it is still valid is not asked. Raises `CertkitError` subclasses.
    """
    paths = (*before, old, new)
    sides = [_side(path, trust) for path in paths]
    profiles = (statement.predicate.assessment.profile.id for _, statement in sides if statement)
    chosen = profile or next(profiles, DEFAULT_PROFILE)
    snapshots = [
        drift_side(statement)
        if statement
        else snapshot(*judge(path, chosen, required_tier=1, progress=progress))
        for path, (_, statement) in zip(paths, sides, strict=True)
    ]
    *earlier, first, second = (known for known, _ in sides)
    compared = between(*snapshots[-2:], before=snapshots[:-2])
    return structs.replace(compared, sides=SidesKnown(before=tuple(earlier), old=first, new=second))
