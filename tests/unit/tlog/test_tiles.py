"""Tiles: the numbers of the C2SP tlog-tiles page, and growth against the definition of a tile."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import MismatchError
from certkit.tlog import tiles, tree
from certkit.tlog.tiles import Tile
from tests.support import merkle

if TYPE_CHECKING:
    from certkit.tlog.tree import Hash


def test_paths_of_the_specification() -> None:
    assert Tile(0, 1234067, 256).path == "tile/0/x001/x234/067"
    assert Tile(1, 67, 9).path == "tile/1/067.p/9"
    assert Tile(0, 0, 256).path == "tile/0/000"
    assert Tile(0, 1000, 1).path == "tile/0/x001/000.p/1"


def test_the_tiles_of_the_specifications_example() -> None:
    found = Counter((tile.level, tile.width == 256) for tile in tiles.tiles(70_000))
    assert found == {(0, True): 273, (0, False): 1, (1, True): 1, (1, False): 1, (2, False): 1}
    partial = {tile.level: tile.width for tile in tiles.tiles(70_000) if tile.width < 256}
    assert partial == {0: 112, 1: 17, 2: 1}
    assert list(tiles.tiles(256)) == [Tile(0, 0, 256), Tile(1, 0, 1)]
    assert list(tiles.tiles(0)) == []


class Store:
    """Tiles in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, int], bytes] = {}
        self.size = 0

    def read(self, level: int, n: int) -> bytes:
        return self.kept.get((level, n), b"")

    def add(self, leaves: list[Hash]) -> None:
        self.kept.update(tiles.grow(self.size, leaves, self.read))
        self.size += len(leaves)


def entries(count: int) -> list[bytes]:
    return [number.to_bytes(3) for number in range(count)]


@pytest.mark.parametrize("steps", [[1] * 600, [256, 256, 1], [255, 2, 300, 511], [1, 66_000]])
def test_growth_gives_the_tiles_of_the_definition(steps: list[int]) -> None:
    store = Store()
    every = [tree.leaf_hash(entry) for entry in entries(sum(steps))]
    for step in steps:
        store.add(every[store.size : store.size + step])
    assert {(tile.level, tile.n) for tile in tiles.tiles(store.size)} == set(store.kept)
    data = entries(sum(steps))
    for tile in tiles.tiles(store.size):
        hashes = store.kept[tile.level, tile.n]
        assert len(hashes) == 32 * tile.width
        for place in (0, tile.width // 2, tile.width - 1):  # MTH(D[(n·256 + i)·256^l : …]) of the page
            start = (tile.n * 256 + place) * 256**tile.level
            expected = merkle.mth(data[start : start + 256**tile.level])
            assert hashes[32 * place : 32 * place + 32] == expected
    assert tree.root(store.size, tiles.node_reader(store.read)) == merkle.mth(data)


def test_proofs_from_tiles_across_their_edges() -> None:
    store = Store()
    data = entries(771)
    store.add([tree.leaf_hash(entry) for entry in data])
    node = tiles.node_reader(store.read)
    for size in (1, 255, 256, 257, 511, 512, 513, 768, 771):
        for index in {0, size // 2, size - 1}:
            assert tree.inclusion_proof(index, size, node) == merkle.path(index, data[:size])
        for old in {1, size // 3 or 1, size}:
            assert tree.consistency_proof(old, size, node) == merkle.proof(old, data[:size])


def test_a_tile_of_a_wrong_width_is_neither_read_nor_built_upon() -> None:
    store = Store()
    store.add([tree.leaf_hash(entry) for entry in entries(5)])
    whole = store.kept[0, 0]
    for damaged in (whole[:-32], whole[:-1], whole + whole[:32], b""):
        store.kept[0, 0] = damaged
        with pytest.raises(MismatchError) as caught:
            tiles.grow(5, [tree.leaf_hash(b"x")], store.read)
        assert caught.value.code == "tlog.tile"
    store.kept[0, 0] = whole[:-32]
    with pytest.raises(MismatchError):
        tree.root(5, tiles.node_reader(store.read))
    assert tiles.grow(5, [], store.read) == {}


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65_536, 70_000])
def test_the_width_of_a_tile(size: int) -> None:
    found = {(tile.level, tile.n): tile.width for tile in tiles.tiles(size)}
    for level in range(4):
        for n in (0, 1, 255, 256, 273, 274):
            assert tiles.width(level, n, size) == found.get((level, n), 0)
    assert tiles.width(tiles.BUNDLES, 0, size) == tiles.width(0, 0, size)


@pytest.mark.parametrize("size", [1, 256, 257, 771, 66_000])
def test_a_verified_reader_gives_what_leads_to_the_root_and_nothing_else(size: int) -> None:
    store = Store()
    store.add([tree.leaf_hash(entry) for entry in entries(size)])
    root = tree.root(size, tiles.node_reader(store.read))
    read = tiles.verified(size, root, store.read)
    places = [(tile.level, tile.n) for tile in tiles.tiles(size)]
    assert all(read(*place) == store.kept[place] for place in places)
    for place in {places[0], places[len(places) // 2], *places[-3:]}:
        whole = store.kept[place]
        for changed in (
            bytes([whole[0] ^ 1]) + whole[1:],
            whole[:-1] + bytes([whole[-1] ^ 128]),
            whole[:-32],
        ):
            store.kept[place] = changed
            with pytest.raises(MismatchError) as caught:
                tiles.verified(size, root, store.read)(*place)
            assert caught.value.code == "tlog.tile"
        store.kept[place] = whole


def test_a_full_tile_that_is_too_long_is_refused_though_it_begins_as_it_should() -> None:
    store = Store()
    store.add([tree.leaf_hash(entry) for entry in entries(300)])
    root, whole = tree.root(300, tiles.node_reader(store.read)), store.kept[0, 0]
    for more in (whole[:32], whole[:1], whole):
        store.kept[0, 0] = whole + more
        with pytest.raises(MismatchError) as caught:
            tiles.verified(300, root, store.read)(0, 0)
        assert caught.value.code == "tlog.tile"


def test_a_verified_reader_has_no_tile_beyond_the_edge() -> None:
    store = Store()
    store.add([tree.leaf_hash(entry) for entry in entries(300)])
    read = tiles.verified(300, tree.root(300, tiles.node_reader(store.read)), store.read)
    for place in [(0, 2), (1, 1), (2, 0), (63, 0), (0, 10**9)]:
        with pytest.raises(MismatchError) as caught:
            read(*place)
        assert caught.value.code == "tlog.tile"


def test_a_wider_tile_is_read_as_wide_as_the_tree_is() -> None:
    store = Store()
    every = [tree.leaf_hash(entry) for entry in entries(300)]
    store.add(every[:200])
    root = tree.root(200, tiles.node_reader(store.read))
    store.add(every[200:])
    assert tiles.verified(200, root, store.read)(0, 0) == b"".join(every[:200])
