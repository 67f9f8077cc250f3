"""Where a registry is: the first argument, or ``-r DIR``, which ``CERTKIT_REGISTRY`` stands in for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certkit.errors import UsageError

RegistryOption = Annotated[
    Path | None,
    typer.Option(
        "-r", "--registry", metavar="DIR", envvar="CERTKIT_REGISTRY", help="The registry, instead of [DIR]."
    ),
]
RegistryArgument = Annotated[
    Path | None, typer.Argument(metavar="[DIR]", help="The registry's folder.", show_default=False)
]


def the(argument: Path | None, option: Path | None) -> Path:
    """Return the one registry that was named; raise `UsageError` where there is none."""
    found = argument or option
    if found is None:
        raise UsageError("usage.option", "expected the registry's folder", hint="DIR, or -r DIR")
    return found


def split(words: list[str], option: Path | None, what: str) -> tuple[Path, str]:
    """Return the registry and the one other argument, called `what`, of words such as ``DIR ID``.

    Raises `UsageError` where there are more or less.
    """
    if len(words) == 1 and option is not None:
        return option, words[0]
    if len(words) == len(("DIR", what)):
        return Path(words[0]), words[1]
    raise UsageError("usage.option", f"expected DIR {what}, or {what} with -r DIR")
