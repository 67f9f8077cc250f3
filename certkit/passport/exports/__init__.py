"""Exports: a verified passport's claim in the formats of others, each naming the passport it is taken from.

    source = verified(data, trust=trust, at=now)          # or an error that says at which step it failed
    export("in-toto-svr", source, key=key).content
    export("badge", unverified(data, at=now)).content     # says UNVERIFIED in the picture

An export is a copy of a claim and no evidence; each says so. What is signed here is signed by a key of the
caller's: a verifier (``in-toto-svr``), the issuer (``vc+jwt``), or whoever publishes an agent card (``a2a``).
These are made from a verified passport alone. The unsigned formats can be had of an unverified one, which
they then show. Specimens are named so that no reader takes one for the real thing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from certkit.document import Digest, Document, Text
from certkit.errors import UsageError
from certkit.passport.exports.source import Source, unverified, verified

if TYPE_CHECKING:
    from certkit.passport.keys import PrivateKey

__all__ = ["FORMATS", "Export", "Format", "Source", "export", "unverified", "verified"]

Format = Literal["in-toto-svr", "vc+jwt", "a2a", "markdown", "badge"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
OPEN: Final[frozenset[Format]] = frozenset({"markdown", "badge"})
"""The formats that are never signed, and so may show an unverified passport."""

_MODULES: Final[dict[str, str]] = {"in-toto-svr": "svr", "vc+jwt": "credential", "a2a": "a2a"} | {
    name: name for name in OPEN
}
"""Where a format is written: ``write(source, key=, card=, verifier=)`` returns media type and text."""


class Export(Document, frozen=True, kw_only=True, tag="urn:certkit:export:v1"):
    """A passport's claim in a format of others: `content` is the text of the file, to the last byte."""

    format: Format
    passport_id: Digest
    media_type: Text
    content: Text


def export(
    format: Format,  # noqa: A002 - the word of the trade, and of the option
    source: Source,
    *,
    key: PrivateKey | None = None,
    card: Any = None,
    verifier: str | None = None,
) -> Export:
    """Return `source` in a format.

    `key` signs: required for ``vc+jwt`` and ``a2a``, possible for ``in-toto-svr``. `card` is the JSON of the
    A2A agent card to sign; `verifier` the URI that names who verified. Raises `UsageError` ``usage.option``,
    ``export.unverified`` or ``export.key``, and `InputError` ``export.card``.
    """
    faults = {
        f"no format {format!r}; formats: {', '.join(FORMATS)}": format not in FORMATS,
        f"{format} is signed, and needs --key": format in {"vc+jwt", "a2a"} and key is None,
        f"{format} is not signed; leave --key out": format in OPEN and key is not None,
        "--card goes with --format a2a, which needs it": (card is not None) != (format == "a2a"),
        "--verifier goes with --format in-toto-svr": verifier is not None and format != "in-toto-svr",
    }
    if message := next((text for text, holds in faults.items() if holds), None):
        raise UsageError("usage.option", message)
    if source.verification is None and format not in OPEN:
        raise UsageError(
            "export.unverified",
            f"{format} is written only of a passport that was verified",
            hint=f"verify it with --trust FILE; unverified there are {' and '.join(sorted(OPEN))}",
        )
    module = import_module(f"{__name__}.{_MODULES[format]}")  # a single format is asked for
    media_type, content = module.write(source, key=key, card=card, verifier=verifier)
    return Export(format=format, passport_id=source.passport_id, media_type=media_type, content=content)
