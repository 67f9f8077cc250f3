"""Options that several commands share, said once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from certkit.errors import UsageError


def packaged(incomplete: str) -> list[str]:
    """Return the packaged profiles whose names begin so, for the shell's completion."""
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast

    return [name for name in workflow.packaged_profiles() if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Print nothing but errors and warnings; the exit code tells.")
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print every detail.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--jobs",
        min=1,
        max=256,
        envvar="CERTKIT_JOBS",
        help="Processes that read records; results do not depend on it. Default: one per core.",
    ),
]
HeadsFile = Annotated[
    Path | None,
    typer.Option(
        "--heads",
        metavar="FILE",
        envvar="CERTKIT_HEADS",
        help="Remembers, outside the registry, what was signed. Default: in your state folder.",
    ),
]
PassportFile = Annotated[
    Path,
    typer.Argument(metavar="PASSPORT", help="The file passport.json, or the PDF that it is attached to."),
]
BundleFolder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder with bundle.json.")]
BundleFolders = Annotated[
    list[Path],
    typer.Argument(metavar="BUNDLE...", help="The folder with bundle.json; several of one agent are pooled."),
]
ProfileName = Annotated[
    str,
    typer.Option(
        "-p",
        "--profile",
        envvar="CERTKIT_PROFILE",
        autocompletion=packaged,
        help="A packaged profile (see 'certkit profile list') or the path of a TOML file.",
    ),
]
AsOf = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="Verify as of this time. Default: now.")
]
Evidence = Annotated[
    list[Path] | None,
    typer.Option("--bundle", help="The evidence bundle: its digests are checked. Once for each bundle."),
]
ReplayProfile = Annotated[
    str | None, typer.Option("--profile", help="Where the replay finds a profile of your own.")
]
Icc = Annotated[
    float, typer.Option("--icc", min=0.0, max=0.99, help="Intraclass correlation of outcomes in a cluster.")
]
DomainCount = Annotated[int, typer.Option("--domains", min=1, help="Application domains.")]
FaultMix = Annotated[
    str | None,
    typer.Option(
        "--fault-mix", metavar="C=S,…", help="Shares of fault conditions: adversarial=0.5,cascade=0.5"
    ),
]
Out = Annotated[Path, typer.Option("-o", "--out", help="The folder to write; must not exist or be empty.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file to write, if it is there.")]


def mix(text: str | None) -> dict[str, float] | None:
    """Return what ``--fault-mix`` says: the share of each condition."""
    if text is None:
        return None
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = part.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            message = f"{part!r} is not CONDITION=SHARE"
            raise typer.BadParameter(message, param_hint="--fault-mix") from None
    return shares


def check_outputs(*paths: Path | None, force: bool) -> None:
    """Refuse files to write that are there and shall not be replaced, before any work is done for them."""
    from certkit import files  # noqa: PLC0415 - keeps the help fast

    for path in paths:
        if path is not None:
            files.check_target(path, overwrite=force, hint="choose another name, or replace it with --force")


def profile_digest(name: str) -> str:
    """Return the digest of a profile that was named, by its name, its file, or the digest itself."""
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast
    from certkit.canonical import is_digest  # noqa: PLC0415 - the same

    return name if is_digest(name) else workflow.load_profile(name).digest


def heads_path(given: Path | None) -> Path:
    """Return the file that remembers what was signed: the one that was named, or the user's own."""
    from certkit import files  # noqa: PLC0415 - keeps the help fast

    if given is not None:
        files.check_source(given)
        return given
    state = os.environ.get("XDG_STATE_HOME", "")
    # A relative path there is to be ignored, by the XDG base directory specification.
    folder = state if state.startswith("/") else os.path.expanduser("~/.local/state")  # noqa: PTH111 - see below
    if not folder.startswith("/"):  # where there is no home, pathlib would raise RuntimeError
        raise UsageError(
            "usage.option", "there is no home folder to remember signed heads in", hint="--heads FILE"
        )
    return Path(folder) / "certkit" / "heads.db"
