"""Exports: the claim of a verified passport in the formats of others, each naming the passport by its id.

    verification = verify(data, trust=trust, at=now)
    export("in-toto-svr", verification, key=key).content

Only a passport that verifies is exported, and what is dated bears the time of that verification. An export is
a copy of a claim and no evidence; each says so. Three formats are signed by a key of the caller's, and speak
in the name of that key alone. Specimens are named so that no reader takes one for the real thing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from msgspec import Struct

from certkit.ground.document import Digest, Document, Text
from certkit.ground.errors import NegativeError, UsageError
from certkit.passport.exports import shown, signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.passport.keys import PrivateKey
    from certkit.passport.opening import Verification
    from certkit.passport.statement import Predicate

__all__ = ["FORMATS", "Export", "Format", "Source", "export"]

Format = Literal["in-toto-svr", "vc+jwt", "a2a", "markdown", "badge"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
SIGNED: Final[frozenset[Format]] = frozenset({"in-toto-svr", "vc+jwt", "a2a"})

_WRITERS: Final[dict[Format, Callable[..., tuple[str, str]]]] = {
    "in-toto-svr": signed.svr,
    "vc+jwt": signed.credential,
    "a2a": signed.agent_card,
    "markdown": shown.markdown,
    "badge": shown.badge,
}
"""What writes a format: ``writer(source, key=, card=)`` returns media type and text."""


class Source(Struct, frozen=True, kw_only=True, eq=False):
    """A passport's claim, and the verification that showed it."""

    passport_id: Digest
    predicate: Predicate
    verification: Verification

    @property
    def is_specimen(self) -> bool:
        """Whether the evidence is simulated."""
        return self.predicate.origin == "simulated"


class Export(Document, frozen=True, kw_only=True, tag="urn:certkit:export:v1"):
    """A passport's claim in a format of others: `content` is the text of the file, to the last byte."""

    format: Format
    passport_id: Digest
    media_type: Text
    content: Text


def export(
    format: Format,  # noqa: A002 - the word of the trade, and of the option
    verification: Verification,
    *,
    key: PrivateKey | None = None,
    card: Any = None,
) -> Export:
    """Return a verified passport in a format.

    `key` signs the formats that are signed; `card` is the JSON of the A2A agent card to sign. Raises
    `UsageError` ``usage.option``, `InputError` ``export.card``, and `NegativeError` ``export.unverified``
    with the exit code of the verification, where it did not verify.
    """
    if (key is not None) != (format in SIGNED):
        raise UsageError(
            "usage.option", "in-toto-svr, vc+jwt and a2a are signed and need --key; the others take none"
        )
    if (card is not None) != (format == "a2a"):
        raise UsageError("usage.option", "--card goes with --format a2a, which needs it")
    statement, passport_id = verification.statement, verification.passport_id
    if verification.verdict != "verified" or statement is None or passport_id is None:
        step = verification.deciding
        skipped = (f"{item.id}: {item.detail}" for item in verification.steps if item.status == "skipped")
        reason = f"unverifiable; steps that were not taken: {'; '.join(skipped)}"
        if step:
            reason = f"rejected at step {step.number} ({step.id}): {step.detail}"
        hint = "'certkit verify PASSPORT --trust FILE' tells of every step"
        error = NegativeError("export.unverified", f"the passport is {reason}", hint=hint)
        error.exit_code = verification.exit_code
        raise error
    source = Source(passport_id=passport_id, predicate=statement.predicate, verification=verification)
    media_type, content = _WRITERS[format](source, key=key, card=card)
    return Export(format=format, passport_id=passport_id, media_type=media_type, content=content)
