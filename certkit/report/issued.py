"""What a report says of a signed passport, read from its payload without judging the signature.

The report attaches the passport's bytes and repeats its identifier and its dates; it refuses a passport
that speaks of another assessment than the one beside it. Only ``certkit verify`` tells whether the
signature holds, and the report says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from certkit import canonical
from certkit._version import __version__
from certkit.errors import MismatchError
from certkit.passport.opening import parse

if TYPE_CHECKING:
    from certkit.canonical import Digest
    from certkit.passport.statement import Predicate


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


def check(issued: Issued, document: dict[str, Any]) -> None:
    """Raise `MismatchError` ``report.passport-differs`` where the passport is not about this assessment."""
    claimed, judgement = issued.predicate, issued.predicate.assessment
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
        again = canonical.digest(canonical.canonical(document))
        pairs.append(("assessment", judgement.digest, again))
    for name, passport, assessment in pairs:
        if passport != assessment:
            raise MismatchError(
                "report.passport-differs",
                f"the passport's {name} is {passport}, the assessment's is {assessment}",
                hint="'certkit verify PASSPORT --bundle BUNDLE --replay' names the first row that differs",
            )
