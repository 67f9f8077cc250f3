"""Two bundles of two agents, or several moments of one agent, read from disk and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from certkit.assessment.bundles import assess_bundles, bundle_facts
from certkit.assessment.evaluation import evaluate
from certkit.bundle.folder import open_bundle
from certkit.comparison.compare import SALT, compare
from certkit.comparison.drift import SideKnown, drift
from certkit.ground import files
from certkit.ground.errors import CertkitError
from certkit.passport.pdf import MAX_PDF, take
from certkit.passport.steps import open_signed, open_unsigned
from certkit.summary.summarise import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import Facts
    from certkit.comparison.compare import Comparison
    from certkit.comparison.drift import Drift
    from certkit.ground.progress import Progress
    from certkit.passport.trust import Trust
    from certkit.summary.summary import Summary


def compare_bundles(
    a: Path, b: Path, *, novel: bool = False, paper_tests: bool = False, progress: Progress
) -> Comparison:
    """Read two bundles and compare their agents.

    Args:
        a: the bundle of one agent.
        b: the bundle of the other.
        novel: compare runs under held-out faults, and no others.
        paper_tests: add tests that treat runs as independent.
        progress: told what is being read.

    Raises:
        CertkitError: a bundle is refused; its place says which.
    """
    first, second = (_read(path, progress) for path in (a, b))
    return compare(first, second, novel=novel, paper_tests=paper_tests)


def _read(path: Path, progress: Progress) -> tuple[Summary, Facts]:
    try:
        bundle = open_bundle(path, defer_records=True, progress=progress)
        summary = summarise(bundle, most_tasks=None, salt=SALT, progress=progress)
        return summary, bundle_facts(bundle, summary)
    except CertkitError as failure:
        if not (failure.where or "").startswith(str(path)):
            failure.where = f"{path}/{failure.where}" if failure.where else str(path)
        raise


def side_of(
    path: Path, *, profile: Profile | str | None, trust: Trust | None, progress: Progress
) -> tuple[Evaluation, SideKnown]:
    """Return what a passport or a bundle says, and what is known of its signature.

    Args:
        path: the file of a passport, a PDF with one attached, or the folder of a bundle.
        profile: the tier table under which a bundle is judged; a passport brings its own.
        trust: whose signatures are trusted; without a policy no signature is checked.
        progress: told what is being read.

    Raises:
        CertkitError: with the code of the step that refuses the passport, among the first five of a
            verification.
    """
    if path.is_dir():
        judged = assess_bundles(path, profile or "hb-eval-2026", progress=progress)
        return judged, SideKnown(passport_id=None, signature="none")
    data = take(files.read(path, limit=MAX_PDF), where=str(path)).passport
    try:
        if trust is not None:
            signed = open_signed(data, trust)
            known = SideKnown(passport_id=signed.passport_id, signature="trusted")
            return signed.statement.predicate.evaluation, known
        passport, predicate = open_unsigned(data)
        known = SideKnown(passport_id=passport.passport_id, signature="not_checked")
    except CertkitError as error:
        error.where = str(path)
        error.hint = error.hint or "expected the file of a passport or the folder of a bundle"
        raise
    return predicate.evaluation, known


def drift_of_sides(
    paths: Sequence[Path], *, profile: str | None = None, trust: Trust | None = None, progress: Progress
) -> Drift:
    """Compare the last two of several moments of an agent; the trend is taken over all of them.

    Args:
        paths: passports, PDFs with one, or folders of bundles, oldest first.
        profile: the tier table under which bundles are judged; by default that of the first passport.
        trust: whose signatures are trusted.
        progress: told what is being read.
    """
    passports = {
        path: side_of(path, profile=None, trust=trust, progress=progress)
        for path in paths
        if not path.is_dir()
    }
    table = profile or next((side.profile for side, _ in passports.values()), None)
    sides = [
        passports.get(path) or side_of(path, profile=table, trust=trust, progress=progress) for path in paths
    ]
    *before, old, new = (side for side, _ in sides)
    return structs.replace(drift(old, new, before=before), sides=tuple(known for _, known in sides))


def drift_of(old: tuple[Evaluation, SideKnown], new: Evaluation) -> Drift:
    """Return the drift of a bundle that was just judged, under the profile of the earlier side."""
    earlier, known = old
    if new.profile.digest != earlier.profile.digest:
        new = evaluate(new.summary, new.facts, earlier.profile)
    return structs.replace(drift(earlier, new), sides=(known, SideKnown(passport_id=None, signature="none")))
