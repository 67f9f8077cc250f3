"""The evidence bundle: a folder whose manifest covers every byte.

Opening a bundle walks it without following anything, refuses what cannot be the same on every system
(links, devices, names that leave the folder or collide), reads the manifest and hashes every file. A
sealed bundle must match its list exactly; an unsealed one gets the list that sealing would write, so
that its digest is known either way.

    bundle = open_bundle(Path("bundle"))     # refused, or true from here on
    bundle.facts.digest                      # SHA-256 of the canonical manifest
    seal(Path("bundle"))                     # writes the list of files

It does not look inside record files; that is `summarise`.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit import base, canonical, files
from certkit.errors import CertkitError, InputError, UsageError
from certkit.evidence.bundle.manifest import MANIFEST_NAME, MANIFEST_SCHEMA, Facts, Manifest, unsafe_path
from certkit.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_FILES: Final = 100_000
MAX_MANIFEST: Final = 64 * 1024 * 1024
MAX_NAMED: Final = 20
"""How many differing files one error names."""

_MEDIA_TYPES: Final = {
    ".jsonl": "application/jsonl",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".pdf": "application/pdf",
    ".gz": "application/gzip",
}
_UNREAD: Final = {"probes": "probes/", "context.json": "context.json"}


class Bundle(Struct, frozen=True, kw_only=True):
    """An opened bundle: its structure and digests are verified, its records not yet read.

    `document` is the manifest's JSON as it stands in the file; `files` is the list it carries, or
    would carry once sealed.
    """

    root: Path
    document: dict[str, Any]
    files: tuple[dict[str, Any], ...]
    facts: Facts

    @property
    def manifest(self) -> Manifest:
        """The manifest as a typed object."""
        return self.facts.manifest

    @property
    def record_files(self) -> tuple[str, ...]:
        """Paths of the record files relative to the root, sorted."""
        return tuple(file["path"] for file in self.files if file["path"].startswith("records/"))

    @property
    def records_size(self) -> int:
        """Bytes in all record files."""
        return sum(file["size"] for file in self.files if file["path"].startswith("records/"))


def init(
    root: Path, *, agent: str, version: str, origin: str = "measured", task_salt: str | None = None
) -> None:
    """Write the manifest of a new bundle with nothing but the required entries and the salt of its tasks.

    Raises `UsageError` ``file.exists`` where `root` already has a manifest.
    """
    document = {
        "schema": MANIFEST_SCHEMA,
        "agent": {"name": agent, "version": version},
        "protocol": {"origin": origin} | ({} if task_salt is None else {"task_salt": task_salt}),
    }
    base.validate(Manifest, document, code="bundle.manifest-invalid", where=MANIFEST_NAME)
    files.write(root / MANIFEST_NAME, canonical.pretty(document).encode(), overwrite=False)
    (root / "records").mkdir(exist_ok=True)


def open_bundle(root: Path, *, progress: Progress = SILENT) -> Bundle:
    """Open and verify the bundle in folder `root`.

    Raises `InputError` with a ``bundle.*`` or ``json.*`` code; every differing file is named with what
    was expected and found.
    """
    present = _inventory(root)
    document, manifest = _read_manifest(root)
    listed = document.get("files")
    if listed is not None:
        _compare_names(root, {file["path"] for file in listed}, set(present))
    if absent := sorted({item.evidence for item in manifest.attested} - set(present)):
        raise InputError(
            "bundle.manifest-invalid",
            _named(absent, "attested as evidence but not found"),
            where=MANIFEST_NAME,
        )
    found = _hash(root, present, progress)
    if listed is not None:
        _compare_content(listed, found)
    sealed_document = document | {"files": found} if listed is None else document
    facts = Facts(
        manifest=manifest,
        digest=canonical.digest(canonical.canonical(sealed_document)),
        sealed=listed is not None,
        agent_digest=canonical.digest(canonical.canonical(document["agent"])),
        unread=tuple(shown for name, shown in _UNREAD.items() if _has(present, name)),
    )
    return Bundle(root=root, document=document, files=tuple(found), facts=facts)


def seal(root: Path, *, attempt: int | None = None, progress: Progress = SILENT) -> Bundle:
    """Write the list of all files into the manifest, and return the sealed bundle.

    Sealing again renews the list. With `attempt` the manifest declares which attempt of its agent the
    evidence is. Raises `InputError` where the bundle cannot be opened.
    """
    present = _inventory(root)
    document, _ = _read_manifest(root)
    if attempt is not None:
        document["protocol"] |= {"attempt": attempt}
    document["files"] = _hash(root, present, progress)
    base.validate(Manifest, document, code="bundle.manifest-invalid", where=MANIFEST_NAME)
    files.write(root / MANIFEST_NAME, canonical.pretty(document).encode())
    return open_bundle(root)


def _has(present: Iterable[str], name: str) -> bool:
    return any(path == name or path.startswith(name + "/") for path in present)


def _read_manifest(root: Path) -> tuple[dict[str, Any], Manifest]:
    try:
        data = files.read(root / MANIFEST_NAME, limit=MAX_MANIFEST)
    except CertkitError as error:
        if error.code != "file.missing":
            raise
        raise InputError(
            "bundle.manifest-missing",
            f"no {MANIFEST_NAME} in this folder",
            where=str(root),
            hint="'certkit bundle init' writes one; 'certkit import' makes a bundle from a log",
        ) from None
    document = canonical.loads(data, where=MANIFEST_NAME, max_bytes=MAX_MANIFEST)
    if not isinstance(document, dict):
        raise InputError("bundle.manifest-invalid", "expected an object", where=MANIFEST_NAME)
    manifest = base.validate(Manifest, document, code="bundle.manifest-invalid", where=MANIFEST_NAME)
    return document, manifest


def _inventory(root: Path) -> dict[str, int]:
    """Return path → size of every file but the manifest, sorted by path; refuse what is not portable."""
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "not found"
        raise InputError(
            "file.missing", what, where=str(root), hint="a bundle is a folder with a bundle.json"
        )
    sizes: dict[str, int] = {}
    names: dict[str, str] = {}
    for path, status in _walk(root, ""):
        if reason := unsafe_path(path):
            raise InputError("bundle.path-unsafe", f"{path!r} {_is(reason)}", where=str(root))
        key = unicodedata.normalize("NFC", path).casefold()
        if key in names:
            raise InputError(
                "bundle.path-collision",
                f"{names[key]!r} and {path!r} are one name on some systems",
                where=str(root),
            )
        names[key] = path
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            raise InputError(
                "bundle.not-regular", f"{path!r} is a link, device, socket or pipe", where=str(root)
            )
        if path != MANIFEST_NAME:
            _check_record_name(root, path)
            sizes[path] = status.st_size
        if len(names) > MAX_FILES:
            raise InputError("bundle.too-many-files", f"more than {MAX_FILES:,} names", where=str(root))
    return dict(sorted(sizes.items()))


def _is(reason: str) -> str:
    return f"is {reason}" if reason.startswith(("not", "longer")) else reason


def _walk(root: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(root / prefix) as entries:
            children = sorted(entries, key=lambda entry: entry.name)
        for child in children:
            status = child.stat(follow_symlinks=False)
            yield prefix + child.name, status
            if stat.S_ISDIR(status.st_mode):
                yield from _walk(root, prefix + child.name + "/")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError("file.unreadable", reason, where=str(root / prefix)) from error


def _check_record_name(root: Path, path: str) -> None:
    folder, _, name = path.partition("/")
    if folder.casefold() != "records" or not name:
        return
    if folder != "records" or "/" in name or not name.endswith((".jsonl", ".parquet")):
        raise InputError(
            "bundle.record-file-name",
            f"{path!r} is not records/NAME.jsonl or records/NAME.parquet",
            where=str(root),
            hint="a record file that is not read would be evidence left out in silence",
        )


def _hash(root: Path, present: dict[str, int], progress: Progress) -> list[dict[str, Any]]:
    progress.start("hashing", sum(present.values()), "bytes")

    def one(path: str) -> dict[str, Any]:
        digest = files.sha256(root / path)
        return {
            "path": path,
            "sha256": digest,
            "size": present[path],
            "media_type": _MEDIA_TYPES.get(Path(path).suffix.lower(), "application/octet-stream"),
        }

    found = []
    with ThreadPoolExecutor(2) as pool:
        for item in pool.map(one, present):
            found.append(item)
            progress.advance(item["size"])
    progress.finish()
    return found


def _compare_names(root: Path, listed: set[str], present: set[str]) -> None:
    if MANIFEST_NAME in listed:
        raise InputError(
            "bundle.manifest-invalid", f"files lists {MANIFEST_NAME} itself", where=MANIFEST_NAME
        )
    if missing := sorted(listed - present):
        raise InputError("bundle.file-missing", _named(missing, "listed but not found"), where=str(root))
    if unlisted := sorted(present - listed):
        raise InputError(
            "bundle.file-unlisted",
            _named(unlisted, "found but not listed"),
            where=str(root),
            hint="remove it, or seal again if it belongs to the evidence",
        )


def _named(paths: list[str], what: str) -> str:
    more = f" (and {len(paths) - MAX_NAMED:,} more)" if len(paths) > MAX_NAMED else ""
    return ", ".join(repr(path) for path in paths[:MAX_NAMED]) + f" {what}{more}"


def _compare_content(listed: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    by_path = {file["path"]: file for file in found}
    changed = [
        f"{file['path']}: expected sha256 {file['sha256']} ({file['size']:,} bytes), "
        f"found {by_path[file['path']]['sha256']} ({by_path[file['path']]['size']:,} bytes)"
        for file in listed
        if (file["sha256"], file["size"]) != (by_path[file["path"]]["sha256"], by_path[file["path"]]["size"])
    ]
    if changed:
        more = [f"and {len(changed) - MAX_NAMED:,} more"] if len(changed) > MAX_NAMED else []
        raise InputError(
            "bundle.file-changed",
            "\n  ".join([changed[0], *changed[1:MAX_NAMED], *more]),
            hint="the bundle is not what was sealed; ask its sender, or seal it again as new evidence",
        )


def require_sealed(bundle: Bundle) -> None:
    """Raise `UsageError` where `bundle` is not sealed."""
    if not bundle.facts.sealed:
        raise UsageError(
            "bundle.unsealed",
            "not sealed",
            where=str(bundle.root),
            hint="certkit bundle seal " + str(bundle.root),
        )
