"""The evidence bundle: a folder whose manifest covers every byte. This module reads one.

Opening a bundle walks the folder without following links and refuses names that differ between systems
(links, devices, names that leave the folder or collide). It reads the manifest and hashes every file. The
files of a sealed bundle must match the manifest's list exactly. For an unsealed bundle the list is computed
as sealing would write it, so that the digest is known either way.

Other modules read a file of a bundle through the `Bundle`, which hashes what is read and compares the digest
at the end of the file. So the bytes that were used are the bytes that the manifest lists, whatever another
program does to the folder meanwhile.

    bundle = open_bundle(Path("bundle"))     # raises unless structure and digests are right
    bundle.facts.digest                      # SHA-256 of the canonical manifest
    for path in bundle.record_files:
        for block in bundle.blocks(path):    # raises after the last one where the file is another by now
            ...

It does not look inside record files; `summarise` does. It writes nothing; `certkit.bundle.writer` does.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from certkit.bundle.facts import Facts
from certkit.bundle.manifest import MANIFEST_NAME, SIMULATOR, Manifest, unsafe_path
from certkit.bundle.manifest_facts import facts_of
from certkit.ground import base, canonical, files
from certkit.ground.errors import InputError
from certkit.ground.progress import SILENT, Progress
from certkit.record import trace
from certkit.record.expressions import shell
from certkit.record.planned import MAX_PLAN, PLAN_FILE, EnclosedPlan, read_enclosed
from certkit.record.reader import blocks_of
from certkit.record.transcript import turns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from certkit.record.outcome import TrialShown
    from certkit.record.transcript import SpokenTurn

MAX_FILES: Final = 100_000
MAX_MANIFEST: Final = 64 * 1024 * 1024
MAX_NAMED: Final = 20
"""Differing files that an error names; of further ones it gives the number."""

_MEDIA_TYPES: Final = {
    ".jsonl": "application/jsonl",
    ".json": "application/json",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".pdf": "application/pdf",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
}
_CHANGED: Final = "get it again from its sender, or seal it as new evidence"
BUFFER: Final = 1024 * 1024
"""Bytes that are read and hashed at once."""

_TRACE: Final = re.compile(r"traces/(?:.*/)?(?:sha256-)?([0-9a-f]{64})(?:\..*)?\Z")


class Bundle(Struct, frozen=True, kw_only=True, dict=True):
    """An opened bundle: its structure is verified, its records not yet read.

    Attributes:
        root: The folder.
        document: The JSON of the manifest as read.
        manifest: The manifest as a typed object.
        files: The list of files that the manifest holds, or would hold once sealed.
        facts: What is judged and signed of the manifest.
        plan: The plan that the manifest names, if it is enclosed.
    """

    root: Path
    document: dict[str, Any]
    manifest: Manifest
    files: tuple[dict[str, Any], ...]
    facts: Facts
    plan: EnclosedPlan | None = None

    @cached_property
    def by_path(self) -> dict[str, dict[str, Any]]:
        """The entries of `files` by their paths."""
        return {file["path"]: file for file in self.files}

    @property
    def record_files(self) -> tuple[str, ...]:
        """Paths of the record files relative to the root, sorted."""
        return tuple(filter(_holds_records, self.by_path))

    @property
    def records_size(self) -> int:
        """Bytes in all record files."""
        return sum(self.by_path[path]["size"] for path in self.record_files)

    @contextmanager
    def reading(self, path: str) -> Iterator[BinaryIO]:
        """Open a file of the bundle, and check at the end of the block that it is the one that was listed.

        What the block made of the bytes counts only once this has returned without an exception. It reads
        what the block left unread.

        Raises:
            InputError: ``bundle.file-changed`` where the bytes are others than those whose digest the
                manifest has (of a bundle that is not sealed: than those at its opening),
                ``bundle.file-unlisted``, and what `files.reading` raises.
        """
        if path not in self.by_path:
            raise InputError("bundle.file-unlisted", f"{path!r} was not there before", where=str(self.root))
        with files.reading(self.root / path) as file:
            hashing = files.Hashing(file)
            stream: BufferedReader = BufferedReader(hashing, BUFFER)
            yield stream
            while stream.read(BUFFER):
                pass
        digest, size = hashing.digest.hexdigest(), hashing.size
        since = "sealing" if self.facts.sealed else "opening"
        if difference := _difference(self.by_path[path], {"sha256": digest, "size": size}, since=since):
            raise InputError("bundle.file-changed", difference, hint=_CHANGED)

    def read(self, path: str, *, limit: int) -> bytes:
        """Return the bytes of a file of at most `limit` bytes; raises as `reading` and ``json.too-large``."""
        with self.reading(path) as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise InputError("json.too-large", f"larger than {limit:,} bytes", where=str(self.root / path))
        return data

    def blocks(self, path: str) -> Iterator[bytes]:
        """Yield a record file in blocks of whole lines, as `certkit.record.reader.blocks` does.

        Whoever takes all blocks has the file that the manifest lists; raises as `reading` after the last one.
        """
        with self.reading(path) as stream:
            yield from blocks_of(stream)

    def transcripts(self, path: str) -> Iterator[tuple[str, trace.Shown | TrialShown]]:
        """Yield the id of each run in a trace file, and what its transcript shows; raises as `reading`.

        Raises:
            InputError: ``bundle.trace`` for a line that cannot be read.
        """
        with self.reading(path) as stream:
            yield from trace.read(stream, path)

    def conversations(self, path: str, run_ids: Collection[str]) -> dict[str, tuple[SpokenTurn, ...]]:
        """Return the transcripts of runs by their ids; without the runs that the trace file does not hold.

        Args:
            path: the trace file.
            run_ids: the runs that are wanted.

        Raises:
            InputError: as `transcripts`.
        """
        with self.reading(path) as stream:
            logs = trace.logs(stream, path)
            try:
                return {name: turns(log) for name, _, log in logs if name in run_ids}
            except (msgspec.MsgspecError, RecursionError) as error:
                raise InputError("bundle.trace", f"no trace: {error}", where=path) from None

    def trace_rules(self) -> trace.Rules:
        """Return the rules beside the traces, none where there is no such file; raises as `transcripts`."""
        if trace.RULES not in self.by_path:
            return trace.Rules()
        return trace.rules_of(self.read(trace.RULES, limit=trace.MAX_RULES))


def open_bundle(root: str | Path, *, defer_records: bool = False, progress: Progress = SILENT) -> Bundle:
    """Open and verify the bundle in a folder.

    Args:
        root: The folder.
        defer_records: Do not hash the record files of a sealed bundle now, since the caller reads all of them
            to their ends, as `summarise` does; their names and sizes are compared.
        progress: Receives how many bytes were hashed.

    Raises:
        InputError: A ``bundle.*`` or ``json.*`` code; it names the files that differ with the digest that was
            expected and the digest that was found.
    """
    present = list_files(root := Path(root))
    document, manifest = read_manifest(root)
    if (listed := document.get("files")) is None:
        return bundle_of(root, document, manifest, hash_files(root, present, progress))
    _compare(root, listed, present, progress, defer_records=defer_records)
    return bundle_of(root, document, manifest, listed)


def bundle_of(
    root: Path, document: dict[str, Any], manifest: Manifest, hashed: list[dict[str, Any]]
) -> Bundle:
    """Return the bundle of a manifest and the files that were hashed; refuse what contradicts itself."""
    _refuse_relabelled(manifest)
    present = {file["path"] for file in hashed}
    if absent := sorted({item.evidence for item in manifest.attested} - present):
        message = _named(absent, "attested as evidence but not found")
        raise InputError("bundle.manifest-invalid", message, where=MANIFEST_NAME)
    _compare_trace_names(hashed)
    plan = _plan(root, manifest, hashed)
    sealed = document.get("files") is not None
    facts = facts_of(
        manifest,
        agent_digest=canonical.digest(canonical.canonical(document["agent"])),
        digest=canonical.digest(canonical.canonical(document if sealed else document | {"files": hashed})),
        sealed=sealed,
        plan=None if plan is None else plan.digest,
    )
    return Bundle(
        root=root, document=document, manifest=manifest, files=tuple(hashed), facts=facts, plan=plan
    )


def _plan(root: Path, manifest: Manifest, hashed: Sequence[dict[str, Any]]) -> EnclosedPlan | None:
    """Return the plan that a manifest names, None where it is not enclosed; refuse another in its place."""
    stated, listed = manifest.protocol, next((file for file in hashed if file["path"] == PLAN_FILE), None)
    if stated.plan is None or listed is None:
        return None
    data = files.read(root / PLAN_FILE, limit=MAX_PLAN)
    actual = {"sha256": canonical.digest(data).removeprefix("sha256:"), "size": len(data)}
    if difference := _difference(listed, actual, since="opening"):
        raise InputError("bundle.file-changed", difference, hint=_CHANGED)
    plan = read_enclosed(data, where=PLAN_FILE)
    if plan.digest != stated.plan:
        message = f"{MANIFEST_NAME} names {stated.plan}, and {plan.digest} is enclosed"
        raise InputError("trial.plan-changed", message, where=PLAN_FILE)
    if stated.declared_runs not in {None, len(plan.runs)}:
        message = f"protocol.declared_runs is {stated.declared_runs:,}, and the plan has {len(plan.runs):,}"
        raise InputError("bundle.manifest-invalid", message, where=MANIFEST_NAME)
    return plan


def _refuse_relabelled(manifest: Manifest) -> None:
    """Raise `InputError` where the simulator made the records and the manifest does not say so."""
    simulated = manifest.imported is not None and manifest.imported.format == SIMULATOR
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


def read_manifest(root: Path) -> tuple[dict[str, Any], Manifest]:
    """Return the manifest in a folder, as it is written and as a typed object.

    Raises:
        InputError: ``bundle.manifest-missing``, ``bundle.manifest-invalid`` or a ``json.*`` code.
    """
    check_bundle(root)
    data = files.read(root / MANIFEST_NAME, limit=MAX_MANIFEST)
    document = canonical.loads(data, where=MANIFEST_NAME, max_bytes=MAX_MANIFEST)
    if not isinstance(document, dict):
        raise InputError("bundle.manifest-invalid", "expected an object", where=MANIFEST_NAME)
    manifest = base.validate(Manifest, document, code="bundle.manifest-invalid", where=MANIFEST_NAME)
    return document, manifest


def check_bundle(root: Path) -> None:
    """Refuse a path that is no folder with a manifest.

    Raises:
        InputError: ``file.missing`` where there is no such folder, ``bundle.manifest-missing``.
    """
    _check_folder(root)
    if not (root / MANIFEST_NAME).exists():
        raise InputError(
            "bundle.manifest-missing",
            f"no {MANIFEST_NAME} in this folder",
            where=str(root),
            hint=f"{_if_log(root)}\n"
            f"else: certkit bundle init {shell(str(root))} --agent NAME --version VERSION",
        )


def _check_folder(root: Path) -> None:
    if root.is_dir():
        return
    if root.is_file():
        message = "is a file, not a bundle"
        raise InputError("bundle.manifest-missing", message, where=str(root), hint=_if_log(root))
    bundles = sorted(path.parent.name for path in root.parent.glob(f"*/{MANIFEST_NAME}"))
    near = get_close_matches(root.name, bundles, n=1)
    hint = f"did you mean {root.with_name(near[0])}?\n" if near else ""
    what = "is not a folder" if root.exists() else "not found"
    raise InputError(
        "file.missing", what, where=str(root), hint=f"{hint}a bundle is a folder with a {MANIFEST_NAME}"
    )


def _if_log(root: Path) -> str:
    return f"if it is a log, this judges it and says how to import it: certkit assess {shell(str(root))}"


def list_files(root: Path) -> dict[str, int]:
    """Return path → size of every file but the manifest, sorted by path; refuse what is not portable."""
    _check_folder(root)
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
    if folder != "records" or "/" in name or not name.endswith(".jsonl"):
        raise InputError(
            "bundle.record-file-name",
            f"{path!r} is not records/NAME.jsonl",
            where=str(root),
            hint="name it so, or move it out of records/; other formats: certkit import FILE -o BUNDLE",
        )


def hash_files(root: Path, present: dict[str, int], progress: Progress = SILENT) -> list[dict[str, Any]]:
    """Return the entries of files for a manifest; `present` maps their paths to their sizes."""
    progress.start("hashing", sum(present.values()), "bytes")
    entries = []
    for path in present:
        media_type = _MEDIA_TYPES.get(Path(path).suffix.lower(), "application/octet-stream")
        digest, size = files.hashed(root / path)
        entries.append({"path": path, "sha256": digest, "size": size, "media_type": media_type})
        progress.advance(size)
    progress.finish()
    return entries


def _holds_records(path: str) -> bool:
    return path.startswith("records/")


def _compare(
    root: Path,
    listed: Sequence[dict[str, Any]],
    present: dict[str, int],
    progress: Progress,
    *,
    defer_records: bool = False,
) -> None:
    """Raise `InputError` where the files that the manifest lists are not those in the folder."""
    expected = {file["path"]: file for file in listed}
    if missing := sorted(expected.keys() - present.keys()):
        raise InputError("bundle.file-missing", _named(missing, "listed but not found"), where=str(root))
    if unlisted := sorted(present.keys() - expected.keys()):
        raise InputError(
            "bundle.file-unlisted",
            _named(unlisted, "found but not listed"),
            where=str(root),
            hint=f"remove it; if it belongs to the evidence: certkit bundle seal {root}",
        )
    hashed = {
        path: size
        for path, size in present.items()
        if not (defer_records and _holds_records(path) and size == expected[path]["size"])
    }
    actual = hash_files(root, hashed, progress)
    changed = list(filter(None, (_difference(expected[file["path"]], file) for file in actual)))
    if changed:
        more = [f"and {len(changed) - MAX_NAMED:,} more"] if len(changed) > MAX_NAMED else []
        raise InputError("bundle.file-changed", "\n  ".join([*changed[:MAX_NAMED], *more]), hint=_CHANGED)


def _difference(listed: dict[str, Any], actual: dict[str, Any], *, since: str = "sealing") -> str:
    """Return how a file differs from what it was at `since`, empty where it does not."""
    if all(listed[name] == actual[name] for name in ("sha256", "size")):
        return ""
    return (
        f"{listed['path']}: changed after {since}; expected sha256 {listed['sha256']}"
        f" ({listed['size']:,} bytes), found {actual['sha256']} ({actual['size']:,} bytes)"
    )


def _named(paths: list[str], what: str) -> str:
    more = f" (and {len(paths) - MAX_NAMED:,} more)" if len(paths) > MAX_NAMED else ""
    return ", ".join(repr(path) for path in paths[:MAX_NAMED]) + f" {what}{more}"
