"""Options that several commands share, said once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from certkit.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but errors; the exit code tells.")]
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
        help="A packaged profile (see 'certkit profile list') or the path of a TOML file.",
    ),
]
Out = Annotated[Path, typer.Option("-o", "--out", help="The folder to write; must not exist or be empty.")]


def heads_path(given: Path | None) -> Path:
    """Return the file that remembers what was signed: the one that was named, or the user's own."""
    if given is not None:
        return given
    state = os.environ.get("XDG_STATE_HOME", "")
    # A relative path there is to be ignored, by the XDG base directory specification.
    folder = state if state.startswith("/") else os.path.expanduser("~/.local/state")  # noqa: PTH111 - see below
    if not folder.startswith("/"):  # where there is no home, pathlib would raise RuntimeError
        raise UsageError(
            "usage.option", "there is no home folder to remember signed heads in", hint="--heads FILE"
        )
    return Path(folder) / "certkit" / "heads.db"
