"""The assessment that a report is drawn from, with its document and manifest as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from certkit import canonical

if TYPE_CHECKING:
    from certkit.assessment import Assessment, Profile


class Material(Struct, frozen=True, kw_only=True, eq=False):
    """The document of an assessment, the manifest of its evidence without the file list, and its profile."""

    document: dict[str, Any]
    manifest: dict[str, Any]
    profile: Profile

    @property
    def data(self) -> bytes:
        """The bytes of the assessment document as ``certkit assess -o`` writes them."""
        return canonical.pretty(self.document).encode()


def material(assessment: Assessment) -> Material:
    """Return what a report of `assessment` is drawn from."""
    manifest = assessment.facts.manifest.to_dict()
    manifest.pop("files", None)
    return Material(document=assessment.to_dict(), manifest=manifest, profile=assessment.profile)
