"""What several bundles are called together: a digest over theirs. Light, since every verification asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.canonical import Digest

ACCUMULATION_SCHEMA: Final = "urn:certkit:accumulation:v1"
MAX_BUNDLES: Final = 100


def accumulation_digest(bundles: Sequence[str]) -> Digest:
    """Return the digest of an accumulation, from the digests of its bundles in their order."""
    document = {"schema": ACCUMULATION_SCHEMA, "bundles": list(bundles)}
    return canonical.digest(canonical.canonical(document))
