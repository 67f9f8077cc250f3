"""The passports themselves, outside the log and under their digest, so that one can be withdrawn.

``blobs/<first 2 hexadecimal digits>/<SHA-256>``. Only digests become names, so no text from a passport
is ever part of a path.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from certkit import canonical, files
from certkit.errors import CertkitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER: Final = "blobs"

_NAME: Final = re.compile(r"[0-9a-f]{64}")


def path(registry: Path, sha256: str) -> Path:
    """Return where the passport with this digest (64 hexadecimal digits) is kept."""
    if _NAME.fullmatch(sha256) is None:
        raise ValueError("not a digest")
    return registry / FOLDER / sha256[:2] / sha256


def store(registry: Path, data: bytes) -> Path | None:
    """Write a passport durably; return its path, None where it was there already.

    Called by one writer at a time. A file that is there but has other bytes is replaced.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    target = path(registry, sha256)
    if load(registry, sha256) == data:
        files.flush(target, registry / FOLDER)
        return None
    if target.parent.is_dir():
        files.write(target, data)
    else:
        # The new folder appears with the file in it and is on the disk before this returns.
        with files.building(target.parent) as folder:
            files.write(folder / sha256, data)
    return target


def load(registry: Path, sha256: str) -> bytes | None:
    """Return the bytes kept for a digest, whatever they are; None where there is no regular file."""
    target = path(registry, sha256)
    if target.is_symlink() or target.parent.is_symlink() or not target.is_file():
        return None
    try:
        return files.read(target, limit=canonical.MAX_BYTES)
    except CertkitError:
        return None


def intact(registry: Path, sha256: str) -> bytes | None:
    """Return the bytes kept for a digest, None where they are missing or have another one."""
    data = load(registry, sha256)
    return data if data is not None and hashlib.sha256(data).hexdigest() == sha256 else None


def names(registry: Path) -> Iterator[str]:
    """Yield the path, below the blobs folder, of everything that is kept there."""
    folder = registry / FOLDER
    if folder.is_dir():
        for item in sorted(folder.rglob("*")):
            if item.is_symlink() or not item.is_dir():
                yield item.relative_to(folder).as_posix()
