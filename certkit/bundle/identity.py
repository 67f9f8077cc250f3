"""The identity of several bundles judged together: the digest over their digests, in the order of time.

It stands apart because every verification computes it and needs nothing else of this folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.ground import canonical, document

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BUNDLES: Final = 100


class Accumulation(document.Document, frozen=True, kw_only=True, tag="urn:certkit:accumulation:v1"):
    """The document that is hashed to identify bundles that were judged together, in the order of time."""

    bundles: tuple[document.Digest, ...]


def accumulation_digest(bundles: Sequence[str]) -> canonical.Digest:
    """Return the digest of an accumulation, from the digests of its bundles in their order."""
    return canonical.digest(canonical.canonical(Accumulation(bundles=tuple(bundles)).to_dict()))
