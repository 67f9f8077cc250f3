"""The document that ``--json`` prints where a command fails. A result's stands beside its command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from certkit.ground.document import Count, Document, ErrorCode, Part, Text


class ReportedFault(Part, frozen=True, kw_only=True):
    """Something that is wrong with a line of evidence."""

    file: Text
    line: Count
    pointer: Text
    code: ErrorCode
    expected: Text
    found: Text
    row: Annotated[Count, Meta(description="of a sheet, where it is not the line")] | UnsetType = UNSET
    hint: Annotated[Text, Meta(description="how to correct it")] | UnsetType = UNSET


class Failure(Part, frozen=True, kw_only=True):
    """What went wrong."""

    code: ErrorCode
    message: Text
    where: (
        Annotated[Text, Meta(description="the file, line or pointer that the error is about")] | UnsetType
    ) = UNSET
    hint: Annotated[Text, Meta(description="what to do about it")] | UnsetType = UNSET
    total: Annotated[Count, Meta(description="all faults; `faults` lists the first ones")] | UnsetType = UNSET
    faults: Sequence[ReportedFault] | UnsetType = UNSET


class Error(Document, frozen=True, kw_only=True, tag="urn:certkit:error:v1"):
    """What --json prints on standard output where a command fails."""

    error: Failure
