"""Cutting record files into blocks of whole lines."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from certkit.bundle.folder import open_bundle
from certkit.ground.errors import InputError
from certkit.record import reader as lines
from certkit.record.reader import blocks
from certkit.summary.summarise import summarise
from tests.support import bundles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("size", [1, 7, 30, 64, 1000])
def test_blocks_are_whole_lines_and_together_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(lines, "BLOCK", size)
    path = tmp_path / "a"
    path.write_bytes(b"".join(b"x" * (i * 7 % 40) + b"\n" for i in range(50)))
    data = path.read_bytes()
    parts = list(blocks(path))
    assert b"".join(parts) == data
    assert all(part.endswith(b"\n") for part in parts)
    assert len(parts) == 1 or len(parts) > len(data) / (size + 41) - 1


@pytest.mark.parametrize(("data", "parts"), [(b"aa\nbb\ncc", [b"aa\nbb\n", b"cc"]), (b"", [])])
def test_a_file_without_a_last_newline_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, parts: list[bytes]
) -> None:
    monkeypatch.setattr(lines, "BLOCK", 4)
    (tmp_path / "a").write_bytes(data)
    assert list(blocks(tmp_path / "a")) == parts


def test_a_file_that_went_away_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list(blocks(tmp_path / "none"))
    assert caught.value.code == "file.unreadable"


def test_the_rest_of_an_endless_line_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 4)
    monkeypatch.setattr(lines, "MAX_LINE", 10)
    (tmp_path / "a").write_bytes(b"ok\n" + b"l" * 100 + b"\nend\n")
    # The first block ends above the limit, so that its reader refuses the line; the second begins a line.
    assert list(blocks(tmp_path / "a")) == [b"ok\n" + b"l" * 13, b"end\n"]


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight times the file, hardly more memory beyond the rows that every run needs."""
    monkeypatch.setattr(lines, "BLOCK", 256 * 1024)
    filler = "f" * 3000

    def peak(copies: int) -> int:
        root = bundles.of(tmp_path / str(copies), (bundles.run(i, x_filler=filler) for i in range(copies)))
        opened = open_bundle(root)
        tracemalloc.start()
        try:
            summarise(opened)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(300)
    small, large = peak(1000), peak(8000)
    assert large < small + 5_000_000
