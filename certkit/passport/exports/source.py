"""What is exported: a passport's claim, and the verification that it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from certkit import canonical
from certkit.errors import CertkitError, NegativeError
from certkit.passport.exports import words
from certkit.passport.opening import parse
from certkit.passport.verification import verify

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.canonical import Digest
    from certkit.passport.outcome import Verification
    from certkit.passport.statement import Predicate
    from certkit.passport.trust import Trust


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
    `checks` are the further questions of `certkit.passport.verify`. Raises `CertkitError`
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
    Raises `InputError` and `NegativeError` with the codes of `certkit.passport.parse` and
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
