"""The files that a report's PDF carries, so that whoever holds the report can check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from certkit import canonical
from certkit.report.table import Column, Table, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.report.issued import Issued
    from certkit.report.material import Material


class Attachment(Struct, frozen=True, kw_only=True):
    """A file that the PDF carries; `relationship` is the AFRelationship of PDF/A-3."""

    name: str
    data: bytes
    description: str
    relationship: str


def attachments(material: Material, signed: Issued | None) -> tuple[Attachment, ...]:
    """Return what a report carries, in the order of the names."""
    # A PDF's tree of names is searched by halves, and a reader would not find what is out of order.
    return tuple(sorted(_attachments(material, signed), key=lambda item: item.name))


def _attachments(material: Material, signed: Issued | None) -> Iterator[Attachment]:
    if signed is not None:
        yield Attachment(
            name="passport.json",
            data=signed.data,
            description="the signed passport; verify it with certkit verify",
            relationship="Supplement",
        )
    yield Attachment(
        name="assessment.json",
        data=material.data,
        description="the assessment that this report is drawn from",
        relationship="Source",
    )
    yield Attachment(
        name="profile.json",
        data=canonical.canonical(material.profile.to_dict()),
        description="the profile's canonical form, whose SHA-256 is its digest",
        relationship="Data",
    )


def listing(attachments: tuple[Attachment, ...]) -> Table:
    """Return the table that names them, with their digests."""
    body = (
        (item.name, item.description, f"{len(item.data):,}", canonical.digest(item.data))
        for item in attachments
    )
    columns = (
        Column("file", 15),
        Column("what", 29),
        Column("bytes", 8, "number"),
        Column("digest", 48),
    )
    return table("Attached files", columns, body)
