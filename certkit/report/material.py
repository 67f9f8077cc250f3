"""What a report is drawn from: an assessment document, and what may stand beside it.

A report of a bundle is drawn from the assessment just made; a report of an ``assessment.json`` from that
file alone. Both pass the same door: the published schema, then `certkit.report.consistency`, so that no
report can print a verdict that its own rows do not carry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit import canonical
from certkit.assessment import AssessmentDocument
from certkit.document import schema_of
from certkit.errors import InputError
from certkit.report import consistency

if TYPE_CHECKING:
    from certkit.assessment import Assessment, Profile

MAX_ASSESSMENT: Final = 32 * 1024 * 1024
"""Largest assessment document, bytes."""

_SHOWN = 5


class Material(Struct, frozen=True, kw_only=True, eq=False):
    """An assessment document that is complete and agrees with itself.

    `manifest` (without its file list) and `profile` are None where the report is drawn from a file that
    does not hold them. `reassessed` tells whether the evidence was read for this report.
    """

    document: dict[str, Any]
    manifest: dict[str, Any] | None
    profile: Profile | None
    reassessed: bool

    @property
    def data(self) -> bytes:
        """The bytes of the assessment document as ``certkit assess -o`` writes them."""
        return canonical.pretty(self.document).encode()


def of_assessment(assessment: Assessment) -> Material:
    """Return the material of an assessment made from the evidence."""
    document = assessment.to_dict()
    consistency.check(document, assessment.profile, where="assessment")
    manifest = assessment.facts.manifest.to_dict()
    manifest.pop("files", None)
    return Material(document=document, manifest=manifest, profile=assessment.profile, reassessed=True)


def of_document(document: Any, *, profile: Profile | None, where: str) -> Material:
    """Return the material of an assessment document that somebody wrote; `where` names it in errors.

    `profile` is used where its digest is the one that the document names. Raises `InputError`
    ``report.assessment-invalid`` or ``report.assessment-contradicts``.
    """
    _validate(document, where)
    known = profile if profile is not None and profile.digest == document["profile"]["digest"] else None
    consistency.check(document, known, where=where)
    return Material(document=document, manifest=None, profile=known, reassessed=False)


def _validate(document: Any, where: str) -> None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - only for a file

    validator = Draft202012Validator(schema_of(AssessmentDocument))
    errors = sorted(validator.iter_errors(document), key=lambda e: e.json_path)
    if not errors:
        return
    lines = [f"{error.json_path}: {error.message[:200]}" for error in errors[:_SHOWN]]
    more = f" (and {len(errors) - _SHOWN} more)" if len(errors) > _SHOWN else ""
    raise InputError("report.assessment-invalid", "; ".join(lines) + more, where=where)
