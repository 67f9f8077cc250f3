"""Reading record files in pieces, in this process or in several.

A `Piece` is a range of whole lines of a file. Pieces are reduced independently, and their sums come back in
the order of the file, so that the result does not depend on the number of processes. Workers are plain
interpreters that talk over pipes and import nothing from the caller's main module, so a notebook or a script
without a main guard can use certkit.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from certkit.errors import InputError
from certkit.evidence.reading.lines import Reader
from certkit.evidence.records.faults import Faults
from certkit.evidence.records.record import MAX_LINE
from certkit.evidence.summary.reduce import Sums, reduce

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


PIECE: Final = 8 * 1024 * 1024
"""Bytes of a piece of work."""
WORTH_A_PROCESS: Final = 24 * 1024 * 1024
"""Bytes of records below which starting processes costs more than it saves."""

# Blocks are large and short-lived: keeping their memory saves a tenth of the time. Workers multiply no
# matrices, so BLAS needs no threads.
_TUNING: Final = {
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "OPENBLAS_NUM_THREADS": "1",
}


class Piece(Struct):
    """Whole lines of a file: `size` bytes of `path` from `offset`. `salt` is that of the tasks' tags."""

    path: str
    offset: int
    size: int
    salt: bytes | None = None


class Outcome(Struct, kw_only=True):
    """The result of reading a piece: its sums, or its faults, whose lines count from the piece's first."""

    lines: int
    size: int
    sums: Sums | None = None
    faults: Faults = msgspec.field(default_factory=Faults)


def pieces(path: Path, *, piece: int = PIECE, salt: bytes | None = None) -> Iterator[Piece]:
    """Cut a file of lines into pieces at newlines.

    A line that goes on for more than `MAX_LINE` beyond a piece is cut there and its rest is skipped, so that
    the reader refuses it as a single line that is too long.
    """
    try:
        with path.open("rb") as stream:
            end = stream.seek(0, os.SEEK_END)
            start = 0
            while start < end:
                stop = min(start + piece, end)
                following = stop
                if stop < end:
                    stream.seek(stop)
                    # A byte above the limit shows the reader that the line is too long.
                    rest = stream.readline(MAX_LINE + 2)
                    stop += len(rest)
                    while rest and not rest.endswith(b"\n"):
                        rest = stream.readline(piece)
                    following = stream.tell()
                yield Piece(str(path), start, stop - start, salt)
                start = following
    except OSError as error:
        raise InputError(
            "file.unreadable", (error.strerror or "unreadable").lower(), where=str(path)
        ) from error


def read(reader: Reader, data: bytes, salt: bytes | None) -> Outcome:
    """Read and reduce whole lines."""
    result = reader.read(data)
    if isinstance(result, Faults):
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        return Outcome(lines=lines, size=len(data), faults=result)
    return Outcome(lines=result.size, size=len(data), sums=reduce(result, salt))


def _read_piece(reader: Reader, piece: Piece) -> Outcome:
    with Path(piece.path).open("rb") as stream:
        stream.seek(piece.offset)
        return read(reader, stream.read(piece.size), piece.salt)


def run(work: Iterable[Piece], *, processes: int) -> Iterator[Outcome]:
    """Yield the outcome of each piece in order, read by `processes` processes including the caller's."""
    helpers: list[_Helper] = []
    collecting = gc.isenabled()
    # Records are freed as fast as they are made and hold no cycles: collecting garbage only costs time.
    gc.disable()
    try:
        for _ in range(processes - 1):
            helpers.append(_Helper())  # noqa: PERF401 - if starting fails, those already started are closed
        yield from _in_turn(iter(work), [*helpers, _Here()])
    finally:
        if collecting:
            gc.enable()
        for helper in helpers:
            helper.close()


def _in_turn(work: Iterator[Piece], readers: list[_Helper | _Here]) -> Iterator[Outcome]:
    # Pieces are dealt round robin, two ahead, so that results come back in order without a queue.
    waiting: deque[_Helper | _Here] = deque()
    for turn, piece in enumerate(work):
        reader = readers[turn % len(readers)]
        reader.send(piece)
        waiting.append(reader)
        if len(waiting) >= 2 * len(readers):
            yield waiting.popleft().receive()
    while waiting:
        yield waiting.popleft().receive()


class _Here:
    """This process as a worker: it reads a piece when its outcome is received, while the others work."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._waiting: deque[Piece] = deque()

    def send(self, piece: Piece) -> None:
        self._waiting.append(piece)

    def receive(self) -> Outcome:
        return _read_piece(self._reader, self._waiting.popleft())


class _Helper:
    """Another interpreter that runs `main`; what it sends is pickled, since it is our own child."""

    def __init__(self) -> None:
        # The child must import this same package, whether installed, editable or on a changed path.
        package = str(Path(__file__).parents[3])
        command = (
            "import sys; sys.path.insert(0, sys.argv[1]); "
            "from certkit.evidence.reading.work import main; main()"
        )
        self._process: Any = subprocess.Popen(  # noqa: S603 - our own interpreter and constant arguments
            [sys.executable, "-c", command, package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | _TUNING,
        )

    def send(self, piece: Piece) -> None:
        pickle.dump(piece, self._process.stdin)
        self._process.stdin.flush()

    def receive(self) -> Outcome:
        try:
            outcome: Outcome = pickle.load(self._process.stdout)  # noqa: S301 - from our own child
        except EOFError:
            status = self._process.wait()
            raise RuntimeError(f"a reader process ended with status {status}") from None
        return outcome

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Serve as a worker: pieces on standard input until it ends, outcomes on standard output."""
    gc.disable()
    reader = Reader()
    while True:
        try:
            piece = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
        except EOFError:
            return
        pickle.dump(_read_piece(reader, piece), sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()
