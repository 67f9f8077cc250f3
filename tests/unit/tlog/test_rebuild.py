"""A tree that is made again: every stored tile is compared, and the root is that of the leaves."""

from __future__ import annotations

import pytest

from certkit.tlog import tiles, tree
from certkit.tlog.tiles import Rebuild
from tests.support import merkle

ENTRIES = [b"%d" % number for number in range(70_000)]
LEAVES = [tree.leaf_hash(entry) for entry in ENTRIES]


def stored(count: int) -> dict[tuple[int, int], bytes]:
    return tiles.grow(0, LEAVES[:count], lambda _level, _n: b"")


def rebuilt(kept: dict[tuple[int, int], bytes], count: int) -> tuple[Rebuild, list[tuple[int, int]]]:
    """Rebuild the tree over so many leaves, against stored tiles; return it with the tiles that differ."""
    wrong = list[tuple[int, int]]()
    rebuild = Rebuild(lambda level, n: kept[level, n], lambda level, n, _row: wrong.append((level, n)))
    for start in range(0, count, 1000):
        rebuild.add(LEAVES[start : min(start + 1000, count)])
    rebuild.finish()
    return rebuild, wrong


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 513, 65_536, 65_537])
def test_a_tree_that_is_stored_as_it_should_be_is_found_so(count: int) -> None:
    kept = stored(count)
    rebuild, wrong = rebuilt(kept, count)
    assert wrong == []
    assert (rebuild.size, rebuild.root) == (count, merkle.mth(ENTRIES[:count]))
    assert {(tile.level, tile.n) for tile in tiles.tiles(count)} == kept.keys()


@pytest.mark.parametrize("count", [300, 65_537])
def test_every_tile_that_differs_is_named(count: int) -> None:
    kept = stored(count)
    for place in [*list(kept)[:2], *list(kept)[-2:]]:
        last = kept[place][-1] ^ 1
        _, wrong = rebuilt(kept | {place: kept[place][:-1] + bytes([last])}, count)
        assert wrong == [place]
