"""Where a registry is: the first argument, or ``-r DIR``, which ``CERTKIT_REGISTRY`` stands in for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.errors import UsageError

if TYPE_CHECKING:
    from certkit.registry import Registry
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey

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


def several(words: list[str], option: Path | None, what: str) -> tuple[Path, list[str]]:
    """Return the registry and all other arguments, called `what`, of words such as ``DIR FILE FILE``.

    Raises `UsageError` where there are none.
    """
    found = (option, words) if option is not None else (Path(words[0]), words[1:])
    if not found[1]:
        raise UsageError("usage.option", f"expected DIR {what}..., or {what}... with -r DIR")
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


def own_key(folder: Path) -> VerifierKey | None:
    """Return the verifier key that a registry says is its own, None for an exported tree, which says none.

    Raises as `certkit.registry.Registry.open` does.
    """
    from certkit.registry import store  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    if not (folder / store.FILE).exists():
        return None
    with Registry.open(folder) as registry:
        return registry.vkey


def signed_head(opened: Registry) -> Checkpoint:
    """Return the head of a registry that its own key signed; whose that key is, is not asked."""
    with opened.reading() as log:
        return log.verified_head(opened.vkey)
