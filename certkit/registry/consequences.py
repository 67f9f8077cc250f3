"""What is logged along with a passport: what it supersedes, and that its agent drifted since one before it.

    found = Consequences()
    registry.append(passport, follow=found.of, …)
    found.drift                              # the comparison, None where there was nothing to compare with

Which earlier passports it is compared with follows from the lineage's files (`certkit.registry.course`), and
what that gives from the two alone (`certkit.assessment.drift`). Only a drift is logged. That passports cannot
be compared, or say too little, is shown to whoever appends and is no event.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import structs

from certkit import canonical
from certkit.errors import CertkitError
from certkit.passport import opening
from certkit.registry.course import Course
from certkit.registry.entry import ROW_LENGTH, ROWS, Drift, Supersession

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from certkit.assessment import drift as comparing
    from certkit.assessment.drift.snapshot import Snapshot
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

    def of(self, facts: PassportFacts, earlier: Iterable[bytes]) -> Sequence[AnyClaims]:
        """Return the claims that are logged after the passport's own, given those before it, oldest first."""
        found: list[AnyClaims] = []
        if facts.supersedes is not None:
            found.append(Supersession(passport_id=facts.supersedes, by=facts.passport_id))
        if drifted := self.compared(earlier):
            found.append(drifted)
        return found

    def compared(self, earlier: Iterable[bytes]) -> Drift | None:
        """Return what is logged of the passport against those before it, None where nothing is."""
        files = {str(number): data for number, data in enumerate((*earlier, self._passport))}
        read = cache(lambda name: snapshot(files[name]))
        course = Course(lambda name: read(name)[1])
        step = None
        for name in files:
            try:
                step, self.reason = course.follow(name), None
            except CertkitError as error:
                step, self.reason = None, str(error)
        if step is None:
            if len(files) > 1 and self.reason is None:
                self.reason = "none of them can be read"
            return None
        self.earlier, self.drift = read(step.told.earlier)[0], step.told.drift
        return logged(self.drift, read(name)[0], self.earlier)


def logged(found: comparing.Drift, passport_id: str, earlier: str) -> Drift | None:
    """Return what is logged of a comparison, None where nothing is."""
    return claims(found, passport_id, earlier) if found.result in LOGGED else None


def agree(one: Drift | None, other: Drift | None) -> bool:
    """Tell whether two claims of a drift say the same: of which passports, which result, which rows.

    The digest of the document is left out: the sentences in it may be worded otherwise by another version.
    """
    if one is None or other is None:
        return one is other
    return one == structs.replace(other, document=one.document)


def snapshot(passport: bytes) -> tuple[str, Snapshot]:
    """Return the id of a passport that was verified before, and the snapshot that it gives.

    Raises `CertkitError` where it cannot be read or its integers contradict each other.
    """
    from certkit.passport.drift_side import drift_side  # noqa: PLC0415 - heavy

    found = opening.parse(passport)
    return found.passport_id, drift_side(found.unverified_statement())


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
    data = name.encode()  # bytes are what an entry has little room for
    return name if len(data) <= ROW_LENGTH else f"{data[: ROW_LENGTH - 1].decode(errors='ignore')}…"
