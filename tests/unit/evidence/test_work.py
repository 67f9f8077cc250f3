"""Cutting files into pieces at newlines, and reading in other processes."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from certkit.errors import InputError
from certkit.evidence.reading import work
from tests.support import bundles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("size", [1, 7, 30, 64, 1000])
def test_pieces_are_whole_lines_and_together_the_file(tmp_path: Path, size: int) -> None:
    rows = [b"x" * (i * 7 % 40) + b"\n" for i in range(50)]
    path = tmp_path / "a"
    path.write_bytes(b"".join(rows))
    data = path.read_bytes()
    cut = list(work.pieces(path, piece=size))
    parts = [data[piece.offset : piece.offset + piece.size] for piece in cut]
    assert b"".join(parts) == data
    assert all(part.endswith(b"\n") for part in parts)
    assert len(parts) == 1 or len(parts) > len(data) / (size + 41) - 1


def test_a_file_without_a_last_newline_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"aa\nbb\ncc")
    cut = [(piece.offset, piece.size) for piece in work.pieces(tmp_path / "a", piece=4)]
    assert cut == [(0, 6), (6, 2)]


def test_an_empty_file_has_no_pieces(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert list(work.pieces(tmp_path / "a")) == []


def test_a_file_that_went_away_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list(work.pieces(tmp_path / "none"))
    assert caught.value.code == "file.unreadable"


def test_the_rest_of_an_endless_line_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_LINE", 10)
    (tmp_path / "a").write_bytes(b"ok\n" + b"l" * 100 + b"\nend\n")
    cut = list(work.pieces(tmp_path / "a", piece=4))
    # The second piece is more than the limit, so that its reader refuses it; the third begins a line.
    assert [(piece.offset, piece.size) for piece in cut] == [(0, 16), (104, 4)]


@pytest.mark.parametrize("processes", [1, 3])
def test_outcomes_come_in_the_order_of_the_pieces(tmp_path: Path, processes: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"".join(bundles.line(bundles.run(i)) * (1 + i % 3) for i in range(40)))
    cut = list(work.pieces(path, piece=300))
    outcomes = list(work.run(cut, processes=processes))
    assert [outcome.size for outcome in outcomes if outcome.size] == [piece.size for piece in cut]
    assert sum(outcome.lines for outcome in outcomes) == path.read_bytes().count(b"\n")


def test_processes_end_with_the_work(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bundles.line(bundles.run(1)))
    reading = work.run(work.pieces(path), processes=2)
    next(reading)
    reading.close()  # type: ignore[attr-defined]  # a generator; must not wait for ever nor leave a process
    with pytest.raises(StopIteration):
        next(reading)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Eight times the file, hardly more memory beyond the rows that every run needs."""
    path = tmp_path / "a"
    row = bundles.line(bundles.run("r", x_filler="f" * 3000))

    def peak(copies: int) -> int:
        path.write_bytes(row * copies)
        tracemalloc.start()
        try:
            for _ in work.run(work.pieces(path, piece=256 * 1024), processes=1):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(300)
    small, large = peak(1000), peak(8000)
    assert path.stat().st_size > 24_000_000
    assert large < small + 3_000_000


def test_readers_import_nothing_that_they_do_not_need() -> None:
    """What each of many processes would load for nothing costs its time and memory."""
    code = "import sys, certkit.evidence.reading.work; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = set(done.stdout.split())
    assert "certkit.evidence.reading.lines" in loaded
    assert not {"pydantic", "duckdb", "jsonschema", "scipy", "typer", "rich"} & loaded
