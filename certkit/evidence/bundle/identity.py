"""What several bundles are called together: a digest over theirs. Light, since every verification asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit import canonical, document

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BUNDLES: Final = 100


class Accumulation(document.Document, frozen=True, kw_only=True, tag="urn:certkit:accumulation:v1"):
    """What is hashed for the identity of bundles that were judged together, in the order of time."""

    bundles: tuple[document.Digest, ...]


def accumulation_digest(bundles: Sequence[str]) -> canonical.Digest:
    """Return the digest of an accumulation, from the digests of its bundles in their order."""
    return canonical.digest(canonical.canonical(Accumulation(bundles=tuple(bundles)).to_dict()))
