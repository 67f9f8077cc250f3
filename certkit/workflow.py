"""What spans rooms: from a folder of evidence to a verdict, and the demonstration.

    assessment = assess(Path("bundle"), "hb-eval-2026")
    assessment.verdict.tier

Profiles are found here: by the name of a packaged one, or by the path of a file. The rooms below do not
know where anything is kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from certkit import canonical, files, resources
from certkit.errors import CertkitError, InputError, UsageError
from certkit.progress import SILENT, Progress

if TYPE_CHECKING:
    from certkit.assessment import Assessment, Profile

DEFAULT_PROFILE: Final = "hb-eval-2026"
MAX_PROFILE: Final = 1 << 20


def packaged_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with certkit, sorted."""
    folder = resources.path("templates", "profiles")
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def profile_text(name: str) -> tuple[str, str]:
    """Return the TOML text of a profile and what to call it in errors.

    `name` is that of a packaged profile or the path of a file; a path has a slash or ends in ``.toml``.
    Raises `UsageError` ``profile.unknown``.
    """
    if "/" in name or name.endswith(".toml"):
        path = Path(name)
    elif name in packaged_profiles():
        path = resources.path("templates", "profiles", f"{name}.toml")
    else:
        raise UsageError(
            "profile.unknown",
            f"no profile {name!r}",
            hint=f"packaged: {', '.join(packaged_profiles())}; a file is named by its path: ./mine.toml",
        )
    try:
        return files.read(path, limit=MAX_PROFILE).decode(), name
    except UnicodeDecodeError:
        raise InputError("profile.invalid", "not UTF-8", where=name) from None
    except CertkitError as error:
        if error.code != "file.missing":
            raise
        raise UsageError("profile.unknown", "no such file", where=name) from None


def load_profile(name: str) -> Profile:
    """Return a packaged profile by name, or one read from the file at a path."""
    from certkit.assessment import parse  # noqa: PLC0415 - keeps the help fast

    return parse(*profile_text(name))


def assess(
    path: str | Path,
    profile: str | Profile = DEFAULT_PROFILE,
    *,
    required_tier: int = 1,
    jobs: int | None = None,
    progress: Progress = SILENT,
) -> Assessment:
    """Read the bundle at `path` and judge it against `profile`.

    `profile` is a packaged name, the path of a TOML file, or a `Profile`. `required_tier` decides the
    exit code and `verdict.status`. `jobs` is the number of processes that read (None: one per core for
    large bundles); the result does not depend on it. Raises `CertkitError` subclasses where the bundle
    or the profile is refused.
    """
    from certkit import assessment, evidence  # noqa: PLC0415 - keeps the help fast

    judged = load_profile(profile) if isinstance(profile, str) else profile
    bundle = evidence.open_bundle(Path(path), progress=progress)
    summary = evidence.summarise(bundle, jobs=jobs, progress=progress)
    return assessment.assess(summary, bundle.facts, judged, required_tier=required_tier)


def demo(out: Path, *, seed: int, progress: Progress = SILENT) -> Assessment:
    """Simulate a Tier 2 agent into ``out/bundle``, seal it, assess it into ``out/assessment.json``."""
    from certkit.evidence.simulate import simulate  # noqa: PLC0415 - keeps the help fast

    bundle = out / "bundle"
    simulate(bundle, seed=seed, runs=1000, domains=5, tier_target=2, progress=progress)
    assessment = assess(bundle, required_tier=2, progress=progress)
    files.write(out / "assessment.json", canonical.pretty(assessment.to_dict()).encode())
    return assessment
