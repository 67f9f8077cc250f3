"""Who is asked whether a passport still stands: the registry that was named, or the file beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certkit.cli.options import heads_path

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.passport.trust import Trust
    from certkit.tlog.checkpoint import Checkpoint


def asked(passport: Path, registry: Path | None, *, trust: Trust, at: datetime) -> dict[str, Any]:
    """Return the arguments of `certkit.passport.verify` that bring the status along.

    Checkpoints that this user remembers of the log are held against it.
    """
    if registry is not None:
        from certkit.registry.status import FolderStatus  # noqa: PLC0415 - keeps verifying fast

        return {"status": FolderStatus(registry, trust=trust, at=at, seen=_seen)}
    path = passport.with_name(f"{passport.name}.status")
    if not path.exists():
        return {}
    from certkit import files  # noqa: PLC0415 - keeps verifying fast
    from certkit.registry.statusfile import MAX_SIZE, FileStatus  # noqa: PLC0415 - the same

    data = files.read(path, limit=MAX_SIZE)
    return {"beside": FileStatus(data, trust=trust, at=at, seen=_seen)}


def _seen(origin: str) -> Checkpoint | None:
    from certkit.registry.heads import remembered  # noqa: PLC0415 - keeps verifying fast

    named = os.environ.get("CERTKIT_HEADS")
    return remembered(heads_path(Path(named) if named else None), origin)
