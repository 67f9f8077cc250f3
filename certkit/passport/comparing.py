"""The two sides of a drift comparison, and whether their signatures are trusted.

side = read(data, where="passport.json", trust=trust, at=now)     # refused unless its signature is trusted
side = read(data, where="passport.json")                          # signature "not_checked", and it says so
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from certkit.assessment.drift.document import SideKnown, SidesKnown
from certkit.errors import CertkitError, InputError, NegativeError, UntrustedError
from certkit.passport.opening import parse
from certkit.passport.verification import verify

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.assessment.drift import Drift
    from certkit.passport.statement import Statement
    from certkit.passport.trust import Trust


class Side(Struct, frozen=True, kw_only=True):
    """One side of a comparison; a bundle has no passport, no signature and no statement.

    `doubts` are the steps of the verification that failed although the signature held.
    """

    passport_id: str | None = None
    signature: Literal["trusted", "not_checked", "none"] = "none"
    doubts: tuple[str, ...] = ()
    statement: Statement | None = None

    @property
    def document(self) -> SideKnown:
        """What the document of a comparison says of the side."""
        return SideKnown(passport_id=self.passport_id, signature=self.signature, doubts=self.doubts)


class Comparison(Struct, frozen=True, kw_only=True):
    """The drift of an agent, the two sides that were compared, and those before them that the trend takes."""

    drift: Drift
    old: Side
    new: Side
    before: tuple[Side, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit drift --json`` prints, as JSON values."""
        sides = SidesKnown(old=self.old.document, new=self.new.document)
        return structs.replace(self.drift, sides=sides).to_dict()


def read(data: bytes, *, where: str, trust: Trust | None = None, at: datetime | None = None) -> Side:
    """Return the side that a passport gives; with a policy and a time its signature must be trusted.

    Raises `InputError`, `NegativeError` or `UntrustedError` with the code of the step that refuses it, among
    the first four of a verification; without a policy the signature is not among them.
    """
    if trust is not None and at is not None:
        return _trusted(data, where, trust, at)
    try:
        passport = parse(data)
        return Side(
            passport_id=passport.passport_id,
            signature="not_checked",
            statement=passport.unverified_statement(),
        )
    except CertkitError as error:
        hint = error.hint or "expected the file of a passport or the folder of a bundle"
        raise type(error)(error.code, error.message, where=where, hint=hint) from None


def _trusted(data: bytes, where: str, trust: Trust, at: datetime) -> Side:
    verification = verify(data, trust=trust, at=at)
    failed = [step for step in verification.steps if step.status == "failed"]
    if verification.statement is None:
        step = failed[0]
        kinds = {kind.exit_code: kind for kind in (InputError, UntrustedError)}
        raise kinds.get(step.exit_code, NegativeError)(step.code or "passport.form", step.detail, where=where)
    return Side(
        passport_id=verification.passport_id,
        signature="trusted",
        doubts=tuple(f"{step.id}: {step.detail}" for step in failed),
        statement=verification.statement,
    )
