"""Tasks that need several rooms: from a folder of evidence to a verdict, and on to a signed passport.

    assessment = assess(Path("bundle"), "hb-eval-2026")
    assessment.verdict.tier
    issue(Path("bundle"), Path("issued"), key=key, issuer=Issuer(name="Lab"), at=now)

`judging` judges bundles, `comparing` sets two of them side by side, `issuing` signs, logs and draws the
judgement, `demonstration` runs the whole chain, and `named` finds a profile by the name of a packaged one or
by the path of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.lazy import lazy

if TYPE_CHECKING:
<<<<<<< HEAD
    from collections.abc import Sequence
    from datetime import datetime

    from certkit.assessment import compare as comparing
    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.evidence import Facts, Summary
    from certkit.passport import Trust
    from certkit.passport.comparing import Comparison
=======
    from certkit.workflow.comparing import MAX_PASSPORT, compare, drift
>>>>>>> main
    from certkit.workflow.demonstration import demo
    from certkit.workflow.issuing import IssuedFiles, Logging, issue, own_trust
    from certkit.workflow.judging import assess, measured_icc, refuse_inside
    from certkit.workflow.named import (
        DEFAULT_PROFILE,
        load_profile,
        named_text,
        packaged_profiles,
        profile_text,
    )

__all__ = [
    "DEFAULT_PROFILE",
    "MAX_PASSPORT",
    "IssuedFiles",
    "Logging",
    "assess",
    "compare",
    "demo",
    "drift",
    "issue",
    "load_profile",
    "measured_icc",
    "named_text",
    "own_trust",
    "packaged_profiles",
    "profile_text",
    "refuse_inside",
]

<<<<<<< HEAD
# Loaded when asked for: they need the passport, the report and the registry.
_HOMES: Final = {
    "issuing": ("IssuedFiles", "Logging", "issue", "own_trust"),
    "demonstration": ("demo",),
}

MAX_PASSPORT: Final = 64 << 20
"""What is read of a file that claims to be a passport; far above what its first step accepts."""


def compare(
    a: str | Path,
    b: str | Path,
    *,
    novel: bool = False,
    seed: int | None = None,
    draws: int | None = None,
    paper_tests: bool = False,
    jobs: int | None = None,
    progress: Progress = SILENT,
) -> comparing.Comparison:
    """Read the bundles at `a` and `b` and compare their agents; `novel` takes the held-out faults alone.

    `seed` and `draws` are those of the resampling (None: the documented ones); `paper_tests` adds tests that
    take runs for independent. Raises `CertkitError` subclasses where a bundle is refused, which say which of
    the two it is.
    """
    from certkit.assessment import compare as comparing  # noqa: PLC0415 - keeps the help fast

    first, second = (_read(Path(path), jobs, progress) for path in (a, b))
    return comparing.compare(
        first,
        second,
        novel=novel,
        seed=comparing.SEED if seed is None else seed,
        draws=draws or comparing.DRAWS,
        paper_tests=paper_tests,
    )


def _read(path: Path, jobs: int | None, progress: Progress) -> tuple[Summary, Facts]:
    from certkit import evidence  # noqa: PLC0415 - keeps the help fast

    try:
        bundle = evidence.open_bundle(path, progress=progress)
        return evidence.summarise(bundle, jobs=jobs, progress=progress), bundle.facts
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
    jobs: int | None = None,
    progress: Progress = SILENT,
) -> Comparison:
    """Compare two snapshots of an agent, each a passport, a PDF with one, or a bundle's folder.

    `before` are those of its lineage before both, oldest first: the trend is taken over them too. A bundle
    is judged under `profile`, by default that of the other side's passport. With `trust` and the time `at`,
    the signature of every passport must be trusted. Raises `CertkitError` subclasses.
    """
    from certkit.assessment.drift import drift as between  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.comparing import Comparison, Side, read  # noqa: PLC0415 - the same
    from certkit.passport.drift_side import drift_side  # noqa: PLC0415 - the same
    from certkit.passport.pdf import take  # noqa: PLC0415 - the same

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
        drift_side(side.statement)
        if side.statement
        else _of_bundle(path, chosen, jobs=jobs, progress=progress)
        for path, side in zip((*before, old, new), sides, strict=True)
    ]
    return Comparison(
        drift=between(*snapshots[-2:], before=snapshots[:-2]),
        before=tuple(sides[:-2]),
        old=sides[-2],
        new=sides[-1],
    )


def _of_bundle(path: Path, profile: str, *, jobs: int | None, progress: Progress) -> Snapshot:
    from certkit import assessment, evidence  # noqa: PLC0415 - keeps the help fast
    from certkit.assessment.drift import snapshot  # noqa: PLC0415 - the same

    judged = load_profile(profile)
    bundle = evidence.open_bundle(path, progress=progress)
    summary = evidence.summarise(bundle, jobs=jobs, progress=progress)
    return snapshot(assessment.assess(summary, bundle.facts, judged), summary)


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"certkit.workflow.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
=======
__getattr__ = lazy(
    __name__,
    {
        "comparing": ("MAX_PASSPORT", "compare", "drift"),
        "demonstration": ("demo",),
        "issuing": ("IssuedFiles", "Logging", "issue", "own_trust"),
        "judging": ("assess", "measured_icc", "refuse_inside"),
        "named": ("DEFAULT_PROFILE", "load_profile", "named_text", "packaged_profiles", "profile_text"),
    },
)
>>>>>>> main
