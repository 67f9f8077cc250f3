"""What is logged along with a passport: what it supersedes, and that its agent drifted since the one before.

    found = Consequences()
    registry.append(passport, follow=found.of, …)
    found.drift                              # the comparison, None where there was nothing to compare with

The comparison rests on the two passports alone (`certkit.assessment.drift`); only a drift is logged. That of
passports that cannot be compared, or say too little, is shown to whoever appends and is no event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit import canonical
from certkit.errors import CertkitError
from certkit.passport import issuing
from certkit.passport import statement as st
from certkit.registry.entry import ROW_LENGTH, ROWS, Drift, Supersession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.assessment import drift as comparing
    from certkit.assessment.drift.standing import Standing
    from certkit.registry.entry import AnyClaims, PassportFacts

LOGGED: Final = {"DRIFTED", "IDENTITY_CHANGED"}
"""The results of a comparison that are logged."""


class Consequences:
    """What follows from one passport that is appended."""

    def __init__(self, passport: bytes) -> None:
        self._passport = passport
        self.drift: comparing.Drift | None = None
        self.earlier: str | None = None
        self.reason: str | None = None
        """Why nothing was compared although there is an earlier passport."""

    def of(self, facts: PassportFacts, earlier: bytes | None) -> Sequence[AnyClaims]:
        """Return the claims that are logged after the passport's own."""
        found: list[AnyClaims] = []
        if facts.supersedes is not None:
            found.append(Supersession(passport_id=facts.supersedes, by=facts.passport_id))
        if earlier is not None and (drifted := self.compared(earlier)):
            found.append(drifted)
        return found

    def compared(self, earlier: bytes) -> Drift | None:
        """Return what is logged of the passport against an earlier one, None where nothing is."""
        from certkit.assessment.drift import drift  # noqa: PLC0415 - heavy, and most passports are the first

        try:
            self.earlier, old = standing(earlier)
            passport_id, new = standing(self._passport)
        except CertkitError as error:
            self.reason = str(error)
            return None
        self.drift = drift(old, new)
        return claims(self.drift, passport_id, self.earlier) if self.drift.result in LOGGED else None


def expected(earlier: bytes, later: bytes) -> Drift | None:
    """Return what is logged of two passports that follow each other in a lineage; None where nothing is."""
    return Consequences(later).compared(earlier)


def agree(one: Drift | None, other: Drift | None) -> bool:
    """Tell whether two claims of a drift say the same: of which passports, which result, which rows.

    The digest of the document is left out: the sentences in it may be worded otherwise by another version.
    """
    if one is None or other is None:
        return one is other
    return one == structs.replace(other, document=one.document)


def standing(passport: bytes) -> tuple[str, Standing]:
    """Return the id of a passport that was verified before, and the standing that it gives.

    Raises `CertkitError` where it cannot be read or its integers contradict each other.
    """
    from certkit.passport.standing import standing as of  # noqa: PLC0415 - heavy

    found = issuing.parse(passport)
    return found.passport_id, of(st.read(found.payload))


def claims(found: comparing.Drift, passport_id: str, earlier: str) -> Drift:
    """Return the claims of the entry about a drift."""
    flagged = [row.name for row in found.behaviour if row.flagged]
    more = f"and {len(flagged) - ROWS + 1} more"
    return Drift(
        passport_id=passport_id,
        earlier=earlier,
        result=found.result,
        rows=tuple(map(_short, flagged if len(flagged) <= ROWS else [*flagged[: ROWS - 1], more])),
        document=canonical.digest(canonical.canonical(found.to_dict())),
    )


def _short(name: str) -> str:
    return name if len(name) <= ROW_LENGTH else f"{name[: ROW_LENGTH - 1]}…"
