"""Bundles of entries, as the C2SP tlog-tiles page describes them."""

from __future__ import annotations

import pytest

from certkit.ground.errors import InputError
from certkit.tlog.tiles import BUNDLES, Tile, decode_bundle, encode_bundle


def test_the_bytes_of_the_specification() -> None:
    # "a big-endian uint16 length, followed by the entry", one after the other.
    assert encode_bundle([b"", b"ab", b"x" * 258]) == b"\0\0" + b"\0\2ab" + b"\1\2" + b"x" * 258
    assert encode_bundle([]) == b""


@pytest.mark.parametrize("entries", [[], [b""], [b"a"], [b"\xff" * 65_535, b"b"], [b"c"] * 256])
def test_a_bundle_gives_its_entries_back(entries: list[bytes]) -> None:
    assert decode_bundle(encode_bundle(entries), len(entries)) == entries


def test_what_is_no_bundle_of_so_many_entries_is_refused() -> None:
    data = encode_bundle([b"one", b"two"])
    bad = [(data, 1), (data, 3), (data[:-1], 2), (data + b"\0", 2), (data + b"\0\0", 2), (b"\0", 0), (b"", 1)]
    for changed, count in bad:
        with pytest.raises(InputError) as caught:
            decode_bundle(changed, count)
        assert caught.value.code == "tlog.tile"


def test_a_narrower_bundle_is_the_beginning_of_a_wider_one() -> None:
    assert encode_bundle([b"a", b"b", b"c"]).startswith(encode_bundle([b"a", b"b"]))


def test_the_path_of_a_bundle() -> None:
    assert Tile(BUNDLES, 0, 256).path == "tile/entries/000"
    assert Tile(BUNDLES, 1234067, 9).path == "tile/entries/x001/x234/067.p/9"
