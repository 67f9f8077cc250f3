"""Power cuts, simulated: what a program did to files, and every state in which a disk may be found then.

`Recorder` notes down what goes through the door `ground.files`: folders made, files renamed into place, what
was flushed. The model of the disk is the weakest that POSIX allows. The bytes of a file are safe once it was
flushed. A name is safe once its folder was flushed; before, any subset of the changes of names may have
reached the disk, in any order. What a power cut leaves is then, at every instant: all that is safe, plus any
of the rest, with files that were not flushed empty or cut in half.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from itertools import chain, combinations
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pytest

EXHAUSTIVE = 8
"""Up to so many unsafe changes, every subset of them is tried; beyond, the extreme ones."""

Disk = dict[str, bytes]


class Killed(BaseException):
    """Ends a program between two of its operations."""


class Operation(NamedTuple):
    """A change of a name: a folder made (`data` is None), a file put in place, or one removed."""

    name: str
    data: bytes | None = None
    flushed: bool = True
    removed: bool = False


class Flush(NamedTuple):
    """A folder was flushed."""

    folder: str


class Recorder:
    """Notes down what is done to the files below a folder; `flush_files` and `flush_folders` may be off."""

    def __init__(
        self, root: Path, *, flush_files: bool = True, flush_folders: bool = True, limit: int | None = None
    ) -> None:
        self.events: list[Operation | Flush] = []
        self._root = root.resolve()
        self._flush_files, self._flush_folders = flush_files, flush_folders
        self._limit = limit
        self._paths: dict[int, Path] = {}
        self._flushed: set[Path] = set()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Stand between `certkit.ground.files` and the operating system until the patch is undone."""
        for name in ("mkdir", "open", "replace"):
            patch.setattr(os, name, partial(getattr(self, f"_{name}"), getattr(os, name)))
        patch.setattr(os, "fsync", self._fsync)
        patch.setattr(shutil, "rmtree", partial(self._rmtree, shutil.rmtree))

    def _mkdir(self, real: Callable[..., None], path: Any, *more: Any, **named: Any) -> None:
        real(path, *more, **named)
        self._note(path)

    def _open(self, real: Callable[..., int], path: Any, *more: Any, **named: Any) -> int:
        descriptor = real(path, *more, **named)
        self._paths[descriptor] = Path(path)
        return descriptor

    def _fsync(self, descriptor: int) -> None:
        path = self._paths[descriptor]
        if not path.is_dir():
            self._flushed |= {path} if self._flush_files else set()
        elif self._flush_folders and path.resolve().is_relative_to(self._root):
            self.events.append(Flush(self._name(path)))
            self._stop()

    def _replace(self, real: Callable[..., None], source: Any, target: Any) -> None:
        if Path(source).is_dir():
            old = self._name(source)
            real(source, target)
            self._moved(old, self._name(target))
            return
        data = Path(source).read_bytes()
        real(source, target)
        self._note(target, data=data, flushed=Path(source) in self._flushed)

    def _moved(self, old: str, new: str) -> None:
        """Note that a folder has another name now: what is in it, and was flushed in it, came along."""
        kept: list[Operation | Flush] = []
        for event in self.events:
            if isinstance(event, Flush):
                kept.append(Flush(new) if event.folder == old else event)
            elif event.name != old:
                inside = event.name.startswith(f"{old}/")
                kept.append(event._replace(name=new + event.name[len(old) :]) if inside else event)
        self.events = kept
        self.events.append(Operation(new))
        self._stop()

    def _rmtree(self, real: Callable[..., None], path: Path, **named: Any) -> None:
        gone = list(path.rglob("*"))
        real(path, **named)
        for item in gone:
            self._note(item, removed=True)

    def _name(self, path: Any) -> str:
        return Path(path).resolve().relative_to(self._root).as_posix()

    def _note(self, path: Any, **how: Any) -> None:
        self.events.append(Operation(self._name(path), **how))
        self._stop()

    def _stop(self) -> None:
        if self._limit is not None and len(self.events) > self._limit:
            raise Killed


def states(before: Mapping[str, bytes], events: list[Operation | Flush]) -> Iterator[Disk]:
    """Yield every state of the disk that a power cut may leave during or after `events`."""
    seen: set[int] = set()
    for instant in range(len(events) + 1):
        for disk in _at(before, events[:instant]):
            mark = hash(frozenset(disk.items()))
            if mark not in seen:
                seen.add(mark)
                yield disk


def after(before: Mapping[str, bytes], events: list[Operation | Flush]) -> Iterator[Disk]:
    """Yield every state of the disk that a power cut may leave when all of `events` are done."""
    yield from _at(before, events)


def _at(before: Mapping[str, bytes], events: list[Operation | Flush]) -> Iterator[Disk]:
    safe: list[int] = []
    unsafe: list[int] = []
    for place, event in enumerate(events):
        if isinstance(event, Operation):
            unsafe.append(place)
            continue
        done = [one for one in unsafe if _parent(events[one].name) == event.folder]  # type: ignore[union-attr]
        safe += done
        unsafe = [one for one in unsafe if one not in done]
    for chosen in _subsets(unsafe):
        applied = [one for place in sorted((*safe, *chosen)) if isinstance(one := events[place], Operation)]
        for torn in (None, 0, 2):
            yield _apply(before, applied, torn)


def _subsets(places: list[int]) -> Iterator[tuple[int, ...]]:
    if len(places) <= EXHAUSTIVE:
        yield from chain.from_iterable(combinations(places, size) for size in range(len(places) + 1))
        return
    yield ()
    yield tuple(places)
    for place in places:
        yield (place,)
        yield tuple(one for one in places if one != place)
        yield tuple(one for one in places if one <= place)
        yield tuple(one for one in places if one >= place)


def _apply(before: Mapping[str, bytes], applied: list[Operation], torn: int | None) -> Disk:
    """Return the files that can be reached; what was not flushed is whole (None), empty (0) or halved (2)."""
    disk: Disk = dict(before)
    folders = {"."} | {str(parent) for name in before for parent in PurePosixPath(name).parents}
    for one in applied:
        if one.removed:
            disk.pop(one.name, None)
        elif one.data is None:
            folders.add(one.name)
        else:
            whole = one.flushed or torn is None
            disk[one.name] = one.data if whole else one.data[: len(one.data) // torn] if torn else b""
    return {
        name: data
        for name, data in disk.items()
        if all(str(parent) in folders for parent in PurePosixPath(name).parents)
    }


def _parent(name: str) -> str:
    return str(PurePosixPath(name).parent)
