"""Where a registry is: the first argument, or ``-r DIR``, which ``CERTKIT_REGISTRY`` stands in for."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.cli.standing import memory
from certkit.cli.views.bar import progress
from certkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.registry import Registry
    from certkit.registry.reader import Reader
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


@contextmanager
def own(folder: Path, *, hidden: bool) -> Iterator[Reader]:
    """Open a log to read it whole, by the verifier key that a registry says is its own.

    It must go on from what this user remembers by that key. An exported tree says no key, and is read by what
    its checkpoint says. How far that is, is shown unless it is `hidden`. Raises as
    `certkit.registry.reader.reading` does.
    """
    from certkit.registry import store  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.reader import reading  # noqa: PLC0415 - the same
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    keys: list[VerifierKey] = []
    if (folder / store.FILE).exists():
        with Registry.open(folder) as registry:
            keys.append(registry.vkey)
    key = keys[0] if keys else None
    bar = progress(hidden=hidden)
    with reading(folder, key=key, seen=memory(lambda _: keys), progress=bar) as log:
        yield log


def signed_head(opened: Registry) -> Checkpoint:
    """Return the head of a registry that its own key signed; whose that key is, is not asked.

    Raises `MismatchError` ``registry.rollback`` unless it goes on from what this user remembers by that key.
    """
    from certkit.registry.heads import refuse_fork  # noqa: PLC0415 - keeps the help fast

    with opened.reading() as log:
        head = log.verified_head(opened.vkey)
        if earlier := memory(lambda _: [opened.vkey])(head.origin):
            refuse_fork(earlier, head, log.root_at)
    return head
