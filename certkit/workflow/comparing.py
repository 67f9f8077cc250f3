"""Two bundles of two agents, or two moments of one agent, read from disk and compared.

compare("a", "b").answer
drift(Path("january/passport.json"), Path("april")).drift.result
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from certkit import files
from certkit.assessment import compare as comparing
from certkit.assessment.drift import drift as between
from certkit.assessment.drift.document import SideKnown, SidesKnown
from certkit.assessment.drift.snapshot import snapshot
from certkit.errors import CertkitError, InputError, NegativeError, UntrustedError
from certkit.evidence.bundle.folder import open_bundle
from certkit.evidence.summary.gather import summarise
from certkit.passport.drift_side import drift_side
from certkit.passport.opening import parse
from certkit.passport.pdf import take
from certkit.passport.verification import verify
from certkit.progress import SILENT, Progress
from certkit.workflow.judging import judge
from certkit.workflow.named import DEFAULT_PROFILE
from certkit.workflow.verifying import MAX_PASSPORT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from certkit.assessment.drift.document import Drift
    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.evidence.bundle.manifest import Facts
    from certkit.evidence.summary.summary import Summary
    from certkit.passport.statement import Statement
    from certkit.passport.trust import Trust


class Side(Struct, frozen=True, kw_only=True):
    """One side of a comparison; a bundle has no passport, no signature and no statement.

    `doubts` are the steps of the verification that failed although the signature held.
    """

    passport_id: str | None = None
    signature: Literal["trusted", "not_checked", "none"] = "none"
    doubts: tuple[str, ...] = ()
    statement: Statement | None = None

    @property
    def document(self) -> SideKnown:
        """What the document of a comparison says of the side."""
        return SideKnown(passport_id=self.passport_id, signature=self.signature, doubts=self.doubts)


class Comparison(Struct, frozen=True, kw_only=True):
    """The drift of an agent, the two sides that were compared, and those before them that the trend takes."""

    drift: Drift
    old: Side
    new: Side
    before: tuple[Side, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit drift --json`` prints, as JSON values."""
        sides = SidesKnown(old=self.old.document, new=self.new.document)
        return structs.replace(self.drift, sides=sides).to_dict()


def _side(data: bytes, *, where: str, trust: Trust | None = None, at: datetime | None = None) -> Side:
    """Return the side that a passport gives; with a policy and a time its signature must be trusted.

    Raises `InputError`, `NegativeError` or `UntrustedError` with the code of the step that refuses it, among
    the first four of a verification; without a policy the signature is not among them.
    """
    if trust is not None and at is not None:
        return _trusted(data, where, trust, at)
    try:
        passport = parse(data)
        return Side(
            passport_id=passport.passport_id,
            signature="not_checked",
            statement=passport.unverified_statement(),
        )
    except CertkitError as error:
        hint = error.hint or "expected the file of a passport or the folder of a bundle"
        raise type(error)(error.code, error.message, where=where, hint=hint) from None


def _trusted(data: bytes, where: str, trust: Trust, at: datetime) -> Side:
    verification = verify(data, trust=trust, at=at)
    failed = [step for step in verification.steps if step.status == "failed"]
    if verification.statement is None:
        step = failed[0]
        kinds = {kind.exit_code: kind for kind in (InputError, UntrustedError)}
        raise kinds.get(step.exit_code, NegativeError)(step.code or "passport.form", step.detail, where=where)
    return Side(
        passport_id=verification.passport_id,
        signature="trusted",
        doubts=tuple(f"{step.id}: {step.detail}" for step in failed),
        statement=verification.statement,
    )


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
        else _side(
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
