"""What kind of file a report is asked of: an assessment or a passport. Folders are bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from certkit import canonical, files
from certkit.assessment.documents import ASSESSMENT_SCHEMA
from certkit.errors import InputError
from certkit.passport.sealed import MEDIA_TYPE
from certkit.report import issued
from certkit.report.material import MAX_ASSESSMENT

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.report.issued import Issued


class Source(Struct, frozen=True, kw_only=True, eq=False):
    """A file, read: exactly one of an assessment document, not yet checked, and a passport."""

    where: str
    assessment: Any = None
    passport: Issued | None = None


def read(path: Path) -> Source:
    """Return what the file holds; raises `InputError` ``report.source`` where it is neither."""
    where = str(path)
    data = files.read(path, limit=MAX_ASSESSMENT)
    document = canonical.loads(data, where=where, max_bytes=MAX_ASSESSMENT)
    if isinstance(document, dict) and document.get("schema") == ASSESSMENT_SCHEMA:
        return Source(where=where, assessment=document)
    if isinstance(document, dict) and document.get("mediaType") == MEDIA_TYPE:
        return Source(where=where, passport=issued.read(data))
    raise InputError(
        "report.source",
        "neither an assessment nor a passport",
        where=where,
        hint="'certkit assess BUNDLE -o assessment.json' and 'certkit issue BUNDLE' write them",
    )
