"""A tree made again from its leaves and compared, tile by tile, with the one that is stored.

    rebuild = Rebuild(stored_tile, differs)      # differs(level, n) is called for each tile that is another
    rebuild.add(leaf_hashes)
    rebuild.finish()
    rebuild.root

It keeps the rightmost tile of each level and nothing else. Whether the root is one that somebody signed is
the caller's question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit.tlog import tiles, tree
from certkit.tlog.hashing import HASH_SIZE, Hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_FULL = tiles.WIDTH * HASH_SIZE


class Rebuild:
    """A tree that grows by leaves; `differs` is called for every stored tile that differs from theirs."""

    def __init__(self, stored: tiles.Read, differs: Callable[[int, int], None]) -> None:
        self._stored = stored
        self._differs = differs
        self._rows: list[bytes] = []  # the rightmost tile of each level, as made so far
        self._counts: list[int] = []  # how many full tiles each level has

    def add(self, leaves: Sequence[Hash]) -> None:
        """Add the next leaves."""
        level, new = 0, b"".join(leaves)
        while new:
            if level == len(self._rows):
                self._rows.append(b"")
                self._counts.append(0)
            row, above = self._rows[level] + new, []
            while len(row) >= _FULL:
                piece, row = row[:_FULL], row[_FULL:]
                self._compare(level, piece)
                above.append(tiles.subtree(piece))
                self._counts[level] += 1
            self._rows[level] = row
            level, new = level + 1, b"".join(above)

    def finish(self) -> None:
        """Compare the tiles that are not full; to be called when there are no more leaves."""
        for level, row in enumerate(self._rows):
            if row:
                self._compare(level, row)

    def tiles(self) -> Iterator[tuple[int, int]]:
        """Yield the place of every tile of the tree."""
        for level, (count, row) in enumerate(zip(self._counts, self._rows, strict=True)):
            yield from ((level, n) for n in range(count + bool(row)))

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return self._counts[0] * tiles.WIDTH + len(self._rows[0]) // HASH_SIZE if self._rows else 0

    @property
    def root(self) -> Hash:
        """The root over them."""
        # It rests on the rightmost tile of each level alone.
        return tree.root(self.size, tiles.node_reader(lambda level, _n: self._rows[level]))

    def _compare(self, level: int, row: bytes) -> None:
        n = self._counts[level]
        if self._stored(level, n) != row:
            self._differs(level, n)
