"""The files that a report's PDF carries, so that whoever holds the report can check it; the passport first.

A signed passport is read from its payload without judging the signature: the report attaches its bytes and
repeats its identifier and its dates; it refuses a passport that speaks of another assessment. Only ``certkit
verify`` tells whether the signature holds, and the report says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from certkit import canonical
from certkit._version import __version__
from certkit.errors import MismatchError
from certkit.passport.opening import parse
from certkit.report.table import Table, table

if TYPE_CHECKING:
    from certkit.canonical import Digest
    from certkit.passport.statement import Predicate
    from certkit.report.argument.build import Argument
    from certkit.report.argument.case import Case


class Issued(Struct, frozen=True, kw_only=True):
    """A passport's bytes, its identifier (the digest of its payload), and what the payload claims."""

    data: bytes
    id: Digest
    predicate: Predicate


def read(data: bytes) -> Issued:
    """Return what a passport claims.

    Raises `CertkitError` with the codes of the passport room where it is malformed.
    """
    passport = parse(data)
    return Issued(data=data, id=passport.passport_id, predicate=passport.unverified_statement().predicate)


def check(case: Case) -> None:
    """Raise `MismatchError` ``report.passport-differs`` where the passport is not about this assessment."""
    if case.signed is None:
        return
    claimed, document = case.signed.predicate, case.document
    judgement = claimed.assessment
    pairs: list[tuple[str, object, object]] = [
        ("evidence bundle", claimed.evidence.digest, document["bundle"]["digest"]),
        ("agent", claimed.agent.digest, document["agent"]["digest"]),
        ("agent's name", claimed.agent.name, document["agent"]["name"]),
        ("agent's version", claimed.agent.version, document["agent"]["version"]),
        ("profile", judgement.profile.digest, document["profile"]["digest"]),
        ("tier", judgement.tier, document["verdict"]["tier"]),
        ("required tier", judgement.required_tier, document["verdict"]["required_tier"]),
    ]
    if judgement.tool.version == __version__:
        pairs.append(("assessment", judgement.digest, canonical.digest(canonical.canonical(document))))
    for name, passport, assessment in pairs:
        if passport != assessment:
            raise MismatchError(
                "report.passport-differs",
                f"the passport's {name} is {passport}, the assessment's is {assessment}",
                hint="'certkit verify PASSPORT --bundle BUNDLE --replay' names the first row that differs",
            )


class Attachment(Struct, frozen=True):
    """A file that the PDF carries; `relationship` is the AFRelationship of PDF/A-3."""

    name: str
    relationship: str
    description: str
    data: bytes


def attachments(case: Case, argument: Argument) -> tuple[Attachment, ...]:
    """Return what a report carries, in the order of the names: a PDF's readers search them by halves."""
    text = "the profile's canonical form, whose SHA-256 is its digest"
    profile, argued = canonical.canonical(case.assessment.profile.to_dict()), argument.to_dict()
    stated = {name: value for name, value in case.manifest.to_dict().items() if name != "files"}
    manifest = canonical.pretty(stated).encode()
    carried = [
        Attachment(
            "argument.json",
            "Data",
            "the argument: nodes, links, states, challenges",
            canonical.pretty(argued).encode(),
        ),
        Attachment("assessment.json", "Source", "the assessment that this report is drawn from", case.data),
        Attachment("manifest.json", "Source", "the bundle's manifest without its list of files", manifest),
        Attachment("profile.json", "Data", text, profile),
    ]
    if case.given is not None:
        said = "what people said of the use, as it was given"
        carried.append(Attachment("context.json", "Source", said, case.given.data))
    if case.signed is not None:
        said = "the signed passport; verify it with certkit verify"
        carried.append(Attachment("passport.json", "Supplement", said, case.signed.data))
    return tuple(sorted(carried, key=lambda item: item.name))


def listing(attached: tuple[Attachment, ...]) -> Table:
    """Return the table that names them, with their digests."""
    body = (
        (item.name, item.description, f"{len(item.data):,}", canonical.digest(item.data)) for item in attached
    )
    widths = {"file": 15, "what": 29, "bytes": 8, "digest": 48}
    return table("Attached files", widths, body, numbers=("bytes",))
