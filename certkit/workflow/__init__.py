"""What spans rooms: from a folder of evidence to a verdict, to a signed passport, and the demonstration.

    assessment = assess(Path("bundle"), "hb-eval-2026")
    assessment.verdict.tier
    issue(Path("bundle"), Path("issued"), key=key, issuer=Issuer(name="Lab"), at=now)

Profiles are found here, by the name of a packaged one or by the path of a file: `named`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit import canonical, files
from certkit.errors import CertkitError, InputError, UsageError
from certkit.progress import SILENT, Progress
from certkit.workflow.named import (
    DEFAULT_PROFILE,
    load_profile,
    named_text,
    packaged_profiles,
    profile_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.assessment import Assessment, Profile
    from certkit.assessment import compare as comparing
    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.canonical import Digest
    from certkit.evidence import Facts, Summary
    from certkit.passport import Issuer, Passport, Trust
    from certkit.passport.comparing import Comparison
    from certkit.passport.keys import PrivateKey
    from certkit.passport.sealed import Signer
    from certkit.registry.admission import Admitted

__all__ = [
    "DEFAULT_PROFILE",
    "IssuedFiles",
    "Logging",
    "assess",
    "compare",
    "demo",
    "drift",
    "issue",
    "load_profile",
    "named_text",
    "own_trust",
    "packaged_profiles",
    "profile_text",
    "refuse_inside",
]

MOST_ICC: Final = 0.99
"""The largest correlation that is planned with; at 1 more runs of a task would say nothing."""
MAX_PASSPORT: Final = 64 << 20
"""What is read of a file that claims to be a passport; far above what its first step accepts."""


def refuse_inside(bundles: Path | Sequence[Path], *outputs: Path | None) -> None:
    """Raise `UsageError` where an output would be written into a bundle and change the evidence."""
    for root in (path.resolve() for path in _paths(bundles)):
        for out in outputs:
            if out is not None and (out.resolve() == root or root in out.resolve().parents):
                raise UsageError(
                    "usage.option",
                    "would be written into the bundle",
                    where=str(out),
                    hint="evidence is only read",
                )


def _paths(bundles: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    return (Path(bundles),) if isinstance(bundles, str | Path) else tuple(Path(path) for path in bundles)


def assess(
    path: str | Path | Sequence[str | Path],
    profile: str | Profile = DEFAULT_PROFILE,
    *,
    required_tier: int = 1,
    jobs: int | None = None,
    progress: Progress = SILENT,
) -> Assessment:
    """Read the bundle at `path`, or pool those at several paths, and judge it against `profile`.

    `profile` is a packaged name, the path of a TOML file, or a `Profile`. `required_tier` decides the
    exit code and `verdict.status`. `jobs` is the number of processes that read (None: one per core for
    large bundles); the result does not depend on it. Raises `CertkitError` subclasses where the bundle
    or the profile is refused.
    """
    judged = load_profile(profile) if isinstance(profile, str) else profile
    return _judged(_paths(path), judged, required_tier, jobs, progress)[0]


def _judged(
    paths: Sequence[Path], profile: Profile, required_tier: int, jobs: int | None, progress: Progress
) -> tuple[Assessment, Summary]:
    """Return the judgement of a bundle, or of several that are pooled, and the summary that it rests on."""
    from certkit import assessment, evidence  # noqa: PLC0415 - keeps the help fast

    bundles = [evidence.open_bundle(path, progress=progress) for path in paths]
    if len(bundles) == 1:
        summary = evidence.summarise(bundles[0], jobs=jobs, progress=progress)
        facts = bundles[0].facts
        return assessment.assess(summary, facts, profile, required_tier=required_tier), summary
    pooled = evidence.accumulate(bundles, jobs=jobs, progress=progress)
    together = assessment.assess_accumulation(pooled, profile, required_tier=required_tier)
    return together, pooled.summary


def measured_icc(path: str | Path) -> float:
    """Return how runs of one task correlate under faults in the bundle at `path` (Donner 1986), below 1.

    Raises `InputError` ``plan.unmeasured`` where tasks have one run each, or there is one task.
    """
    found = assess(path).variation
    if found is None or found.icc is None:
        raise InputError(
            "plan.unmeasured",
            "no task has two runs under faults, or there is one task: nothing shows how runs correlate",
            where=str(path),
            hint="guess with --icc; .3 is taken unless stated",
        )
    return min(found.icc, MOST_ICC)


def compare(
    a: str | Path,
    b: str | Path,
    *,
    novel: bool = False,
    seed: int | None = None,
    draws: int | None = None,
    jobs: int | None = None,
    progress: Progress = SILENT,
) -> comparing.Comparison:
    """Read the bundles at `a` and `b` and compare their agents; `novel` takes the held-out faults alone.

    `seed` and `draws` are those of the resampling (None: the documented ones). Raises `CertkitError`
    subclasses where a bundle is refused, which say which of the two it is.
    """
    from certkit.assessment import compare as comparing  # noqa: PLC0415 - keeps the help fast

    one, other = (_read_one_of_two(Path(path), jobs, progress) for path in (a, b))
    return comparing.compare(
        one,
        other,
        novel=novel,
        seed=comparing.SEED if seed is None else seed,
        draws=draws or comparing.DRAWS,
    )


def _read_one_of_two(path: Path, jobs: int | None, progress: Progress) -> tuple[Summary, Facts]:
    from certkit import evidence  # noqa: PLC0415 - keeps the help fast

    try:
        bundle = evidence.open_bundle(path, progress=progress)
        return evidence.summarise(bundle, jobs=jobs, progress=progress), bundle.facts
    except CertkitError as failure:
        if not (failure.where or "").startswith(str(path)):
            failure.where = f"{path}/{failure.where}" if failure.where else str(path)
        raise


class Logging(Struct, frozen=True, kw_only=True):
    """Where a passport is logged: the registry's folder, the log's key, and who may have signed.

    `heads` is the file, outside the registry, that remembers what was signed; `now` is as for
    `certkit.registry.Registry.open`.
    """

    registry: Path
    log_key: Ed25519PrivateKey
    heads: Path
    trust: Trust
    now: datetime | None = None


class IssuedFiles(Struct, frozen=True, kw_only=True):
    """What `issue` made: the passport, the assessment it rests on, how it was logged, what is missing."""

    assessment: Assessment
    passport: Passport
    logged: Admitted | None
    pdf_missing: str | None


def issue(
    bundle: Path | Sequence[Path],
    out: Path,
    *,
    key: PrivateKey | Signer,
    issuer: Issuer,
    at: datetime,
    timestamp: Callable[[bytes], bytes] | None = None,
    validity: timedelta | None = None,
    profile: str = DEFAULT_PROFILE,
    required_tier: int = 1,
    supersedes: Digest | None = None,
    logging: Logging | None = None,
    jobs: int | None = None,
    progress: Progress = SILENT,
) -> IssuedFiles:
    """Judge the bundle again, or several pooled, sign the judgement, log it, and draw its safety case.

    `out` becomes a folder with ``passport.json`` (and ``passport.json.tlog-proof`` where it was logged),
    ``assessment.json``, ``public-key.pem`` where a key signs, ``safety-case.html`` and, where Pango is there,
    ``safety-case.pdf``. `at` is the beginning of the validity, which is 90 days unless told otherwise;
    `timestamp` is as in `certkit.passport.issue`; only a key logs. Raises `CertkitError`
    subclasses; nothing is left at `out` then.
    """
    from certkit import passport  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import keys  # noqa: PLC0415 - the same

    refuse_inside(bundle, out)
    judged, summary = _judged(_paths(bundle), load_profile(profile), required_tier, jobs, progress)
    signed = passport.issue(
        judged,
        summary,
        issuer=issuer,
        key=key,
        not_before=at,
        not_after=at + (validity or passport.VALIDITY),
        supersedes=supersedes,
        timestamp=timestamp,
    )
    with files.building(out) as folder:
        files.write(folder / "passport.json", signed.to_json())
        files.write(folder / "assessment.json", canonical.pretty(judged.to_dict()).encode())
        pdf_missing, logged = _draw(folder, judged, signed), None
        if isinstance(key, keys.PrivateKey):
            files.write(folder / "public-key.pem", keys.public_pem(key.public_key()).encode())
            logged = _log(folder, signed, key, logging, at=at, progress=progress) if logging else None
    return IssuedFiles(assessment=judged, passport=signed, logged=logged, pdf_missing=pdf_missing)


def _draw(folder: Path, judged: Assessment, signed: Passport) -> str | None:
    """Write the safety case; return why there is no PDF, or None where there is one."""
    from certkit import report  # noqa: PLC0415 - keeps the help fast

    view = report.view(judged, passport=signed.to_json())
    page = report.html(view)
    files.write(folder / "safety-case.html", page.encode())
    reason = report.pdf_missing()
    if reason is None:
        files.write(folder / "safety-case.pdf", report.pdf(view, page))
    return reason


def _log(
    folder: Path, signed: Passport, key: PrivateKey, logging: Logging, *, at: datetime, progress: Progress
) -> Admitted:
    from certkit.registry.admission import PROOF_SUFFIX, admit  # noqa: PLC0415 - keeps the help fast

    appended = admit(
        logging.registry,
        signed.to_json(),
        trust=logging.trust,
        submitter=key,
        log_key=logging.log_key,
        heads=logging.heads,
        at=at,
        now=logging.now,
        progress=progress,
    )
    files.write(folder / f"passport.json{PROOF_SUFFIX}", appended.proof.to_bytes())
    return appended


def drift(
    old: Path,
    new: Path,
    *,
    profile: str | None = None,
    trust: Trust | None = None,
    at: datetime | None = None,
    jobs: int | None = None,
    progress: Progress = SILENT,
) -> Comparison:
    """Compare two snapshots of an agent, each a passport, a PDF with one, or a bundle's folder.

    A bundle is judged under `profile`, by default that of the other side's passport. With `trust` and the
    time `at`, the signature of every passport must be trusted. Raises `CertkitError` subclasses.
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
        for path in (old, new)
    ]
    profiles = (side.statement.predicate.assessment.profile.id for side in sides if side.statement)
    chosen = profile or next(profiles, DEFAULT_PROFILE)
    snapshots = [
        drift_side(side.statement)
        if side.statement
        else _of_bundle(path, chosen, jobs=jobs, progress=progress)
        for path, side in zip((old, new), sides, strict=True)
    ]
    return Comparison(drift=between(*snapshots), old=sides[0], new=sides[1])


def _of_bundle(path: Path, profile: str, *, jobs: int | None, progress: Progress) -> Snapshot:
    from certkit import assessment, evidence  # noqa: PLC0415 - keeps the help fast
    from certkit.assessment.drift import snapshot  # noqa: PLC0415 - the same

    judged = load_profile(profile)
    bundle = evidence.open_bundle(path, progress=progress)
    summary = evidence.summarise(bundle, jobs=jobs, progress=progress)
    return snapshot(assessment.assess(summary, bundle.facts, judged), summary)


def own_trust(name: str, key: PrivateKey) -> Trust:
    """Return the trust policy of an issuer who trusts nobody but itself."""
    from certkit import passport  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import keys  # noqa: PLC0415 - the same

    pem = keys.public_pem(key.public_key())
    return passport.Trust(issuers=(passport.TrustedIssuer(name=name, keys=(passport.TrustedKey(pem=pem),)),))


def demo(out: Path, *, seed: int, at: datetime, progress: Progress = SILENT) -> IssuedFiles:
    """Run the whole chain on simulated evidence of a Tier 2 agent: simulate, issue, register, report.

    `out` becomes a folder with ``bundle/``, the files of `issue`, ``issuer-key.pem``, ``registry/`` and a
    ``trust.json`` that accepts specimens and requires no proof of registration. Keys are drawn from the
    operating system's randomness; everything else follows from `seed` and the time `at`.
    """
    from certkit import passport  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import keys  # noqa: PLC0415 - the same
    from certkit.registry.log_key import make_log_key  # noqa: PLC0415 - the same
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same
    from certkit.simulation.simulate import simulate  # noqa: PLC0415 - the same

    name = "certkit demo"
    with files.building(out) as folder:
        simulate(folder / "bundle", seed=seed, runs=1000, domains=5, tier_target=2, progress=progress)
        key, log_key = keys.generate("ed25519"), make_log_key()
        keys.write_private(folder / "issuer-key.pem", key, passphrase=None)
        vkey = Registry.init(folder / "registry", "demo", log_key, at=at)
        trust = structs.replace(own_trust(name, key), logs=(str(vkey),), accept_specimens=True)
        files.write(folder / "trust.json", trust.to_json())
        issued = issue(
            folder / "bundle",
            folder / "issued",
            key=key,
            issuer=passport.Issuer(name=name, relation_to_evaluator="same", relation_to_developer="same"),
            at=at,
            required_tier=2,
            logging=Logging(
                registry=folder / "registry", log_key=log_key, heads=folder / "heads.db", trust=trust
            ),
            progress=progress,
        )
        (folder / "heads.db").unlink()  # a demonstration leaves nothing outside its folder
        files.lift(folder / "issued")
    return issued
