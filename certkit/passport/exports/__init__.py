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

from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from msgspec import Struct

from certkit import canonical
from certkit.document import Digest, Document, Text
from certkit.errors import CertkitError, NegativeError, UsageError
from certkit.passport import words
from certkit.passport.exports import shown, signed
from certkit.passport.opening import parse
from certkit.passport.verification import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from certkit.passport.keys import PrivateKey
    from certkit.passport.opening import Verification
    from certkit.passport.statement import Predicate
    from certkit.passport.trust import Trust

__all__ = ["FORMATS", "Export", "Format", "Source", "export", "unverified", "verified"]

Format = Literal["in-toto-svr", "vc+jwt", "a2a", "markdown", "badge"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
OPEN: Final[frozenset[Format]] = frozenset({"markdown", "badge"})
"""The formats that are never signed, and so may show an unverified passport."""

_WRITERS: Final[dict[Format, Callable[..., tuple[str, str]]]] = {
    "in-toto-svr": signed.svr,
    "vc+jwt": signed.credential,
    "a2a": signed.agent_card,
    "markdown": shown.markdown,
    "badge": shown.badge,
}
"""What writes a format: ``writer(source, key=, card=, verifier=)`` returns media type and text."""


class Source(Struct, frozen=True, kw_only=True, eq=False):
    """A passport's claim as of a time: `verification` and `trust` are None where nobody verified it.

    `at` is the time that it was verified for, `made` when that was done.
    """

    passport_id: Digest
    predicate: Predicate
    at: datetime
    made: datetime
    verification: Verification | None = None
    trust: Trust | None = None

    @property
    def as_of(self) -> str | None:
        """The time that was asked for, in words, None where that was the present."""
        return words.day(self.at) if self.at != self.made else None

    @property
    def is_specimen(self) -> bool:
        """Whether the evidence is simulated."""
        return self.predicate.origin == "simulated"


def verified(
    data: bytes, *, trust: Trust, at: datetime, made: datetime | None = None, **checks: Any
) -> Source:
    """Return the claim of a passport that verifies under `trust` at an aware time.

    `made` is the present, where that is not the time asked for: what is signed is dated by it.
    `checks` are the further questions of `certkit.passport.verification.verify`. Raises `CertkitError`
    ``export.unverified`` with the exit code of the verification, naming the step that stands in the way.
    """
    verification = verify(data, trust=trust, at=at, **checks)
    if (
        verification.verdict != "verified"
        or verification.statement is None
        or verification.passport_id is None
    ):
        raise _refused(
            verification, {*trust.require, *(name for name, given in checks.items() if given is not None)}
        )
    return Source(
        passport_id=canonical.Digest(verification.passport_id),
        predicate=verification.statement.predicate,
        at=at,
        made=made or at,
        verification=verification,
        trust=trust,
    )


def unverified(data: bytes, *, at: datetime, made: datetime | None = None) -> Source:
    """Return the claim of a passport whose form holds, and of which nothing else is known.

    `at` and `made` are as in `verified`.
    Raises `InputError` and `NegativeError` with the codes of `certkit.passport.opening.parse` and
    `certkit.passport.payload.read`.
    """
    passport = parse(data)
    predicate = passport.unverified_statement().predicate
    return Source(passport_id=passport.passport_id, predicate=predicate, at=at, made=made or at)


def _refused(verification: Verification, required: set[str]) -> CertkitError:
    step = verification.deciding
    if step is not None:
        message = f"the passport is rejected at step {step.number} ({step.id}): {step.detail}"
    else:
        needed = [check for check in verification.steps if check.status == "skipped" and check.id in required]
        what = "; ".join(f"{check.id}: {check.detail}" for check in needed) or "a timestamp"
        message = f"what is required could not be checked: {what}"
    error = NegativeError(
        "export.unverified", message, hint="'certkit verify PASSPORT --trust FILE' tells of every step"
    )
    error.exit_code = verification.exit_code
    return error


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
    media_type, content = _WRITERS[format](source, key=key, card=card, verifier=verifier)
    return Export(format=format, passport_id=source.passport_id, media_type=media_type, content=content)
