"""Who is asked whether a passport still stands: the registry that was named, and the file beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from certkit.cli.options import heads_path
from certkit.cli.views.bar import progress
from certkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from certkit.canonical import Digest
    from certkit.passport.checks import Status
    from certkit.passport.keys import PublicKey
    from certkit.passport.trust import Trust
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey

RegistryAsked = Annotated[
    Path | None,
    typer.Option(
        "-r",
        "--registry",
        metavar="DIR",
        help="Ask this registry, or exported tree, whether the passport still stands.",
    ),
]
_SUFFIX: Final = ".status"
"""What is appended to a passport's file name to name the status beside it."""
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""With one slash, since a path has no two; a drive has one letter."""


def asked(
    passport: Path, registry: Path | None, *, trust: Trust, at: datetime, hidden: bool
) -> dict[str, Any]:
    """Return the arguments of `certkit.passport.verify` that bring the status along: of both where both are.

    Checkpoints that this user remembers of the log are held against it. Raises `UsageError` ``usage.option``
    for a URL.
    """
    path, found = passport.with_name(passport.name + _SUFFIX), dict[str, Any]()
    if path.exists():
        found["beside"] = _Beside(path, trust, at)
    if registry is not None:
        if _URL.match(str(registry)):
            raise UsageError(
                "usage.option",
                "--registry: a URL is not supported yet",
                hint="--registry DIR, with a copy of the tree that is published there",
            )
        from certkit.registry.status import FolderStatus  # noqa: PLC0415 - keeps verifying fast

        found["status"] = FolderStatus(
            registry, trust=trust, at=at, seen=_memory(trust), progress=progress(hidden=hidden)
        )
    return found


class _Beside:
    """The status file beside a passport, read only when it is asked: it may be anything."""

    def __init__(self, path: Path, trust: Trust, at: datetime) -> None:
        self._path, self._trust, self._at = path, trust, at

    def status(self, passport_id: Digest, revokers: Mapping[Digest, PublicKey]) -> Status:
        """Return the standing that the file tells, as `certkit.registry.statusfile.FileStatus` does."""
        from certkit import files  # noqa: PLC0415 - keeps verifying fast
        from certkit.registry.statusfile import MAX_SIZE, FileStatus  # noqa: PLC0415 - the same

        data = files.read(self._path, limit=MAX_SIZE)
        seen = _memory(self._trust)
        return FileStatus(data, trust=self._trust, at=self._at, seen=seen).status(passport_id, revokers)


def _memory(trust: Trust) -> Callable[[str], Checkpoint | None]:
    from certkit.registry.admission import keys_of_log  # noqa: PLC0415 - keeps verifying fast

    return memory(lambda origin: keys_of_log(trust, origin))


def memory(keys: Callable[[str], Sequence[VerifierKey]]) -> Callable[[str], Checkpoint | None]:
    """Return what tells the newest checkpoint that this user remembers of a log, by any of its keys."""
    from certkit.registry.heads import remembered  # noqa: PLC0415 - keeps verifying fast

    named = os.environ.get("CERTKIT_HEADS")
    path = heads_path(Path(named) if named else None)
    return lambda origin: remembered(path, *keys(origin))
