"""Reading record files in pieces, in this process or in several.

A `Piece` is a range of whole lines of a file. Pieces are reduced independently, and their sums come back in
the order of the file, so that the result does not depend on the number of processes. Workers are plain
interpreters that talk over pipes and import nothing from the caller's main module, so a notebook or a script
without a main guard can use certkit.
"""

from __future__ import annotations

import gc
import os
import struct
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from certkit.errors import InputError
from certkit.evidence.reading.lines import Reader
from certkit.evidence.records.faults import Fault  # noqa: TC001 - msgspec resolves the annotation at run time
from certkit.evidence.records.record import MAX_LINE
from certkit.evidence.summary.reduce import Partial, Reducer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE: Final = 8 * 1024 * 1024
"""Bytes of a piece of work."""
MANY_GROUPS: Final = 200_000
"""Groups above which a worker hands over its sums, so that its memory stays bounded."""
MANY_RECORDS: Final = 250_000
"""Records above which a worker hands over its sums."""
WORTH_A_PROCESS: Final = 24 * 1024 * 1024
"""Bytes of records below which starting processes costs more than it saves."""

# Blocks are large and short-lived: keeping their memory saves a tenth of the time. Workers multiply no
# matrices, so BLAS needs no threads.
_TUNING: Final = {
    "MALLOC_MMAP_THRESHOLD_": "268435456",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "OPENBLAS_NUM_THREADS": "1",
}
_FRAME: Final = struct.Struct("<Q")


class Piece(Struct):
    """Whole lines of a file: `size` bytes of `path` from `offset`. `salt` is that of the tasks' tags."""

    path: str
    offset: int
    size: int
    salt: bytes | None = None


class Outcome(Struct, kw_only=True):
    """The result of reading a piece: its faults, whose lines count from the first line of the piece.

    `partial` holds the sums of this and earlier pieces, where the worker handed them over; the last outcome
    of every worker has them.
    """

    lines: int = 0
    size: int = 0
    partial: Partial | None = None
    faults: list[Fault] = []
    total_faults: int = 0


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


class Station:
    """Reads and reduces pieces; hands over its sums when they are many, and at the end."""

    def __init__(self, salt: bytes | None = None) -> None:
        self._reader = Reader()
        self._reducer = Reducer(salt)

    def read_piece(self, piece: Piece) -> Outcome:
        """Read and reduce a piece of a file."""
        self._reducer.salt = piece.salt
        with Path(piece.path).open("rb") as stream:
            stream.seek(piece.offset)
            return self.read_data(stream.read(piece.size))

    def read_data(self, data: bytes) -> Outcome:
        """Read and reduce lines that are in memory."""
        outcome = Outcome(size=len(data))
        result = self._reader.read(data)
        if isinstance(result, list):
            outcome.total_faults, outcome.faults = result.total, list(result)
            outcome.lines = data.count(b"\n") + (not data.endswith(b"\n"))
        else:
            outcome.lines = result.size
            self._reducer.add(result)
        if self._reducer.groups > MANY_GROUPS or self._reducer.records > MANY_RECORDS:
            outcome.partial = self._reducer.take()
        return outcome

    def finish(self) -> Outcome:
        """Hand over the remaining sums."""
        return Outcome(partial=self._reducer.take())


def run(work: Iterable[Piece], *, processes: int) -> Iterator[Outcome]:
    """Yield the outcome of each piece in order, read by `processes` processes including the caller's.

    After them comes an outcome per process with its remaining sums.
    """
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
    for reader in readers:
        reader.send(None)
    for reader in readers:
        yield reader.receive()


class _Here:
    """This process as a worker: it reads a piece when its outcome is received, while the others work."""

    def __init__(self) -> None:
        self._station = Station()
        self._waiting: deque[Piece | None] = deque()

    def send(self, piece: Piece | None) -> None:
        self._waiting.append(piece)

    def receive(self) -> Outcome:
        piece = self._waiting.popleft()
        return self._station.finish() if piece is None else self._station.read_piece(piece)


class _Helper:
    """Another interpreter that runs `main`."""

    def __init__(self) -> None:
        # The child must import this same package, whether installed, editable or on a changed path.
        package = str(Path(__file__).parents[3])
        command = (
            "import sys; sys.path.insert(0, sys.argv[1]); "
            "from certkit.evidence.reading.work import main; main()"
        )
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and constant arguments
            [sys.executable, "-c", command, package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | _TUNING,
        )

    def send(self, piece: Piece | None) -> None:
        assert self._process.stdin is not None  # noqa: S101 - opened as a pipe
        _write(self._process.stdin, msgspec.msgpack.encode(piece))

    def receive(self) -> Outcome:
        assert self._process.stdout is not None  # noqa: S101 - opened as a pipe
        data = _read(self._process.stdout)
        if data is None:
            raise RuntimeError(f"a reader process ended with status {self._process.wait()}")
        return msgspec.msgpack.decode(data, type=Outcome)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(_FRAME.pack(len(data)))
    stream.write(data)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    return stream.read(_FRAME.unpack(head)[0])


def main() -> None:
    """Serve as a worker: pieces on standard input (null: no more), outcomes on standard output."""
    gc.disable()
    station = Station()
    while (data := _read(sys.stdin.buffer)) is not None:
        piece = msgspec.msgpack.decode(data, type=Piece | None)
        outcome = station.finish() if piece is None else station.read_piece(piece)
        _write(sys.stdout.buffer, msgspec.msgpack.encode(outcome))
