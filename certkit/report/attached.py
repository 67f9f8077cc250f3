"""The files that a report's PDF carries, so that whoever holds the report can check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from certkit import canonical
from certkit.report.argument.document import document
from certkit.report.table import Column, Table, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.evidence.context import Given
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case
    from certkit.report.issued import Issued
    from certkit.report.material import Material


class Attachment(Struct, frozen=True, kw_only=True):
    """A file that the PDF carries; `relationship` is the AFRelationship of PDF/A-3."""

    name: str
    data: bytes
    description: str
    relationship: str


def attachments(
    material: Material, signed: Issued | None, case: Case, argument: Argument, context: Given | None
) -> tuple[Attachment, ...]:
    """Return what a report carries, in the order of the names."""
    digest = None if context is None else context.digest
    argued = canonical.pretty(document(argument, case, context=digest).to_dict()).encode()
    carried = [*_attachments(material, signed), _argument(argued)]
    if context is not None:
        carried.append(_context(context))
    # A PDF's tree of names is searched by halves, and a reader would not find what is out of order.
    return tuple(sorted(carried, key=lambda item: item.name))


def _argument(data: bytes) -> Attachment:
    return Attachment(
        name="argument.json",
        data=data,
        description="the argument: nodes, links, states, challenges",
        relationship="Data",
    )


def _context(context: Given) -> Attachment:
    return Attachment(
        name="context.json",
        data=context.data,
        description="what people said of the use, as it was given",
        relationship="Source",
    )


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
    yield Attachment(
        name="manifest.json",
        data=canonical.pretty(material.manifest).encode(),
        description="the bundle's manifest without its list of files",
        relationship="Source",
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
