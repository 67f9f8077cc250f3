"""The evidence bundle: a folder whose manifest covers every byte.

Opening a bundle walks the folder without following links and refuses names that differ between systems
(links, devices, names that leave the folder or collide). It reads the manifest and hashes every file. The
files of a sealed bundle must match the manifest's list exactly. For an unsealed bundle the list is computed
as sealing would write it, so that the digest is known either way.

    bundle = open_bundle(Path("bundle"))     # raises unless structure and digests are right
    bundle.facts.digest                      # SHA-256 of the canonical manifest
    seal(Path("bundle"))                     # writes the list of files

It does not look inside record files; `summarise` does.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.bundle.manifest import (
    MANIFEST_NAME,
    MANIFEST_SCHEMA,
    SIMULATOR,
    Facts,
    Manifest,
    unsafe_path,
)
from certkit.ground import base, canonical, files
from certkit.ground.errors import CertkitError, InputError
from certkit.ground.progress import SILENT, Progress
from certkit.ground.text import skeleton

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILES: Final = 100_000
MAX_MANIFEST: Final = 64 * 1024 * 1024
MAX_NAMED: Final = 20
"""Differing files that an error names; of further ones it gives the number."""

_MEDIA_TYPES: Final = {
    ".jsonl": "application/jsonl",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".pdf": "application/pdf",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
}
_TRACE: Final = re.compile(r"traces/(?:.*/)?(?:sha256-)?([0-9a-f]{64})(?:\..*)?\Z")


class Bundle(Struct, frozen=True, kw_only=True):
    """An opened bundle: its structure and digests are verified, its records not yet read.

    `document` is the JSON of the manifest as read; `files` is the list of files that the manifest holds, or
    would hold once sealed.
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


def open_bundle(root: str | Path, *, progress: Progress = SILENT) -> Bundle:
    """Open and verify the bundle in folder `root`.

    Raises `InputError` with a ``bundle.*`` or ``json.*`` code, which names the files that differ with the
    digest that was expected and the digest that was found.
    """
    present = _inventory(root := Path(root))
    document, manifest = _read_manifest(root)
    hashed = _hash(root, present, progress)
    if (listed := document.get("files")) is not None:
        _compare(root, listed, hashed)
    return _bundle(root, document, manifest, hashed)


def _bundle(root: Path, document: dict[str, Any], manifest: Manifest, hashed: list[dict[str, Any]]) -> Bundle:
    """Return the bundle of a manifest and the files that were hashed; refuse what contradicts itself."""
    _refuse_relabelled(manifest)
    present = {file["path"] for file in hashed}
    if absent := sorted({item.evidence for item in manifest.attested} - present):
        message = _named(absent, "attested as evidence but not found")
        raise InputError("bundle.manifest-invalid", message, where=MANIFEST_NAME)
    _compare_trace_names(hashed)
    sealed = document.get("files") is not None
    facts = Facts(
        manifest=manifest,
        digest=canonical.digest(canonical.canonical(document if sealed else document | {"files": hashed})),
        sealed=sealed,
        agent_digest=canonical.digest(canonical.canonical(document["agent"])),
        unread=("context.json",) * ("context.json" in present),
    )
    return Bundle(root=root, document=document, files=tuple(hashed), facts=facts)


def _refuse_relabelled(manifest: Manifest) -> None:
    """Raise `InputError` where the simulator made the records and the manifest does not say so."""
    simulated = manifest.imported is not None and skeleton(manifest.imported.format) == SIMULATOR
    if simulated and manifest.protocol.origin != "simulated":
        raise InputError(
            "bundle.relabelled-simulation",
            f"imported.format is {SIMULATOR}, and protocol.origin is {manifest.protocol.origin}",
            where=MANIFEST_NAME,
            hint="simulated records are evidence of nothing but the tools: state origin simulated",
        )


def _compare_trace_names(hashed: list[dict[str, Any]]) -> None:
    """Raise `InputError` where a trace is named by a digest that is not its own."""
    for file in hashed:
        named = _TRACE.match(file["path"])
        if named and named[1] != file["sha256"]:
            raise InputError(
                "bundle.file-changed",
                f"{file['path']}: its name says sha256 {named[1]}, found {file['sha256']}",
                hint="put the trace that the records mean in its place, or name it by its own digest",
            )


def seal(root: Path, *, attempt: int | None = None, progress: Progress = SILENT) -> Bundle:
    """Write the list of all files into the manifest, and return the sealed bundle.

    Sealing again writes a new list. `attempt` declares how many evaluations of the agent there have been,
    this one included. Raises `InputError` where the bundle cannot be opened.
    """
    present = _inventory(root)
    document, _ = _read_manifest(root)
    if attempt is not None:
        document["protocol"] |= {"attempt": attempt}
    document["files"] = hashed = _hash(root, present, progress)
    manifest = base.validate(Manifest, document, code="bundle.manifest-invalid", where=MANIFEST_NAME)
    bundle = _bundle(root, document, manifest, hashed)
    if _inventory(root) != {file["path"]: file["size"] for file in hashed}:
        hint = "seal it when nothing writes there any more"
        raise InputError("bundle.file-changed", "changes while it is sealed", where=str(root), hint=hint)
    files.write(root / MANIFEST_NAME, canonical.pretty(document).encode())
    return bundle


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
            hint=f"certkit bundle init {root} --agent NAME --version VERSION; for a log: certkit import",
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
            raise InputError("bundle.path-unsafe", f"{path!r} {reason}", where=str(root))
        key = unicodedata.normalize("NFC", path).casefold()
        if key in names:
            message = f"{names[key]!r} and {path!r} are the same name on some systems; rename one of them"
            raise InputError("bundle.path-collision", message, where=str(root))
        names[key] = path
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            message = f"{path!r} is a link, device, socket or pipe"
            raise InputError("bundle.not-regular", message, where=str(root))
        if path != MANIFEST_NAME:
            _check_record_name(root, path)
            sizes[path] = status.st_size
        if len(names) > MAX_FILES:
            raise InputError("bundle.too-many-files", f"more than {MAX_FILES:,} names", where=str(root))
    return dict(sorted(sizes.items()))


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
    if folder != "records" or "/" in name or not name.endswith((".jsonl", ".parquet", ".arrow")):
        raise InputError(
            "bundle.record-file-name",
            f"{path!r} is not records/NAME.jsonl, NAME.parquet or NAME.arrow",
            where=str(root),
            hint="name it so, or move it out of records/; other formats: certkit import FILE -o BUNDLE",
        )


def _hash(root: Path, present: dict[str, int], progress: Progress) -> list[dict[str, Any]]:
    progress.start("hashing", sum(present.values()), "bytes")

    entries = []
    for path in present:
        media_type = _MEDIA_TYPES.get(Path(path).suffix.lower(), "application/octet-stream")
        digest, size = files.hashed(root / path)
        entries.append({"path": path, "sha256": digest, "size": size, "media_type": media_type})
        progress.advance(size)
    progress.finish()
    return entries


def _compare(root: Path, listed: list[dict[str, Any]], present: list[dict[str, Any]]) -> None:
    """Raise `InputError` where the files that the manifest lists are not those in the folder."""
    expected, actual = ({file["path"]: file for file in files} for files in (listed, present))
    if missing := sorted(expected.keys() - actual.keys()):
        raise InputError("bundle.file-missing", _named(missing, "listed but not found"), where=str(root))
    if unlisted := sorted(actual.keys() - expected.keys()):
        raise InputError(
            "bundle.file-unlisted",
            _named(unlisted, "found but not listed"),
            where=str(root),
            hint=f"remove it; if it belongs to the evidence: certkit bundle seal {root}",
        )
    changed = [
        f"{path}: expected sha256 {file['sha256']} ({file['size']:,} bytes), "
        f"found {actual[path]['sha256']} ({actual[path]['size']:,} bytes)"
        for path, file in expected.items()
        if any(file[name] != actual[path][name] for name in ("sha256", "size"))
    ]
    if changed:
        more = [f"and {len(changed) - MAX_NAMED:,} more"] if len(changed) > MAX_NAMED else []
        raise InputError(
            "bundle.file-changed",
            "\n  ".join([*changed[:MAX_NAMED], *more]),
            hint="the bundle changed after sealing: get it again from its sender, or seal it as new evidence",
        )


def _named(paths: list[str], what: str) -> str:
    more = f" (and {len(paths) - MAX_NAMED:,} more)" if len(paths) > MAX_NAMED else ""
    return ", ".join(repr(path) for path in paths[:MAX_NAMED]) + f" {what}{more}"
