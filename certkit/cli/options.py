"""Options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
BundleFolder = Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder with bundle.json.")]
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
