"""Profiles and other packaged files by name, or a user's own by their path; and what answers challenges.

    load_profile("hb-eval-2026"), load_profile("./house-rule.toml")

The other rooms know neither the names nor the paths of packaged files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from certkit.assessment.lint import lint as profile_faults
from certkit.assessment.profile import parse
from certkit.ground import files
from certkit.ground.errors import InputError, UsageError
from certkit.ground.text import letters

if TYPE_CHECKING:
    from certkit.assessment.profile import Profile
    from certkit.bundle.context import Given

DEFAULT_PROFILE: Final = "hb-eval-2026"
MAX_TEXT: Final = 4 << 20


def packaged_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with certkit, sorted."""
    return packaged("profiles")


def packaged(kind: str) -> tuple[str, ...]:
    """Return the names of the packaged files of a kind: ``profiles``, ``recheck``; sorted."""
    return tuple(sorted(path.stem for path in files.packaged("templates", kind).glob("*.toml")))


def named_text(kind: str, name: str, *, what: str, codes: tuple[str, str]) -> tuple[str, str]:
    """Return the TOML text of a packaged file by name, or of a file by its path, and what to call it.

    A path has a slash or ends in ``.toml``. `codes` are those of an unknown name (`UsageError`) and of
    what is not UTF-8 (`InputError`); a file that is not there is ``file.missing``.
    """
    if "/" in name or name.endswith(".toml"):
        path = Path(name)
    elif name in packaged(kind):
        path = files.packaged("templates", kind, f"{name}.toml")
    else:
        raise UsageError(
            codes[0],
            f"no {what} {name!r}",
            hint=f"packaged: {', '.join(packaged(kind))}; a file is named by its path: ./mine.toml",
        )
    try:
        return files.read(path, limit=MAX_TEXT).decode(), name
    except UnicodeDecodeError:
        raise InputError(codes[1], "not UTF-8", where=name) from None


def profile_text(name: str) -> tuple[str, str]:
    """Return the TOML text of a profile and what to call it in errors.

    `name` is that of a packaged profile or the path of a file; a path has a slash or ends in ``.toml``.
    Raises `UsageError` ``profile.unknown``.
    """
    return named_text("profiles", name, what="profile", codes=("profile.unknown", "profile.invalid"))


def load_profile(name: str, *, linted: bool = True) -> Profile:
    """Return a packaged profile by name, or one read from the file at a path.

    Unless `linted` is false, a file is refused that takes the id of another table or that
    `certkit profile lint` finds fault with: rows that no agent can miss would judge nothing.
    """
    profile = parse(*profile_text(name))
    if not linted or name in packaged_profiles():
        return profile
    alike = next((item for item in packaged_profiles() if letters(item) == letters(profile.id)), None)
    if alike and profile.digest != load_profile(alike).digest:
        raise InputError(
            "profile.invalid",
            f"its id is {profile.id}, which reads as the packaged profile {alike}, with other contents",
            where=name,
            hint="give it an id of its own",
        )
    if faults := profile_faults(profile):
        raise InputError("profile.invalid", "\n  ".join(faults), where=name)
    return profile


def load_context(path: Path) -> Given:
    """Return the ``context.json`` at `path`; raises `InputError` where it is malformed."""
    from certkit.bundle import context  # noqa: PLC0415 - most are judged without answers
    from certkit.report.argument.challenges import check_answers  # noqa: PLC0415 - the same

    given = context.read(files.read(path, limit=context.MAX_BYTES), where=str(path), folder=path.parent)
    check_answers(given)
    return given
