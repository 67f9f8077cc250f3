"""Drift from one passport of a lineage to the next: what is compared, logged and audited.

    appended = registry.append(passport, compare=compared, …)
    appended.compared                        # the comparison, None where there was nothing to compare with

A passport is compared with the last one before it in its lineage that rests on other evidence; those before
both are for the trend. What that gives follows from the files alone (`certkit.assessment.drift`). Only a
drift is logged. That passports cannot be compared, or say too little, is no event.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.passport import opening
from certkit.registry.entry import ROW_LENGTH, ROWS, Drift

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from certkit.assessment.drift import document as comparing
    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.registry.entry import Claims

LOGGED: Final = {"DRIFTED", "IDENTITY_CHANGED"}
"""The results of a comparison that are logged."""
LINE: Final = 7
"""How many passports before the newest are kept, for comparison and trend."""


class Compared(NamedTuple):
    """The comparison with an earlier passport, and the id of that."""

    earlier: str
    drift: comparing.Drift


class Line:
    """The last passports of a lineage, oldest first; of those on the same evidence the newest.

    They are digests of files, None for a file that cannot be had.
    """

    def __init__(self) -> None:
        self._files: dict[str, str | None] = {}

    def before(self, evidence: str) -> list[str | None]:
        """Return what a passport on some evidence is compared with."""
        return [file for known, file in self._files.items() if known != evidence][-LINE:]

    def add(self, evidence: str, file: str | None) -> None:
        """Take the next passport."""
        self._files.pop(evidence, None)
        self._files = dict([*self._files.items(), (evidence, file)][-LINE - 1 :])


def compared(passports: Iterable[bytes | None]) -> Compared | None:
    """Compare the last of some passports, verified before, with the one before it; None where there is none.

    A file that is missing (None) or contradicts itself is passed over.
    """
    from certkit.assessment.drift import drift  # noqa: PLC0415 - heavy

    sides = list(map(_side, passports))
    new, before = sides.pop(), list(filter(None, sides))
    if new is None or not before:
        return None
    (*trend, (earlier, old)) = before
    return Compared(earlier, drift(old, new[1], before=[side for _, side in trend]))


def _side(passport: bytes | None) -> tuple[str, Snapshot] | None:
    """Return the id of a passport and the side of a comparison that it gives, None where it gives none."""
    from certkit.passport.drift_side import drift_side  # noqa: PLC0415 - heavy

    with suppress(CertkitError):
        if passport is not None:
            file = opening.parse(passport)
            return file.passport_id, drift_side(file.unverified_statement())
    return None


def logged(passport_id: str, told: Compared) -> Drift | None:
    """Return the claims of the entry about a passport's comparison, None where none is logged."""
    earlier, drift = told
    if drift.result not in LOGGED:
        return None
    flagged = [row.name for row in drift.behaviour if row.flagged]
    if drift.trend is not None and drift.trend.flagged:
        flagged.append("trend of r_op")
    more = f"and {len(flagged) - ROWS + 1} more"
    return Drift(
        passport_id=passport_id,
        earlier=earlier,
        result=drift.result,
        rows=tuple(map(_short, flagged if len(flagged) <= ROWS else [*flagged[: ROWS - 1], more])),
        document=canonical.digest(canonical.canonical(drift.to_dict())),
    )


def _short(name: str) -> str:
    data = name.encode()  # bytes are what an entry has little room for
    return name if len(data) <= ROW_LENGTH else f"{data[: ROW_LENGTH - 1].decode(errors='ignore')}…"


class Drifts:
    """The drift entries of a log, compared with what their passports give.

    `load` returns the file of a passport by its digest, None where it cannot be had.
    """

    def __init__(self, load: Callable[[str], bytes | None]) -> None:
        self._load = load
        self._lines: dict[str, Line] = {}
        self._due: dict[str, tuple[str, Drift]] = {}
        self._unknown: set[str] = set()

    def passport(self, where: str, lineage: str, claims: Claims, sha256: str | None) -> None:
        """Take the next passport of a lineage; `sha256` of its file is None where that cannot be had."""
        line = self._lines.setdefault(lineage, Line())
        files = [*line.before(claims.evidence), sha256]
        line.add(claims.evidence, sha256)
        if None in files:  # whoever wrote had the file, and what it gave cannot be told any more
            self._unknown.add(claims.passport_id)
        else:
            told = compared(self._load(file) for file in files if file)
            if told and (due := logged(claims.passport_id, told)):
                self._due[claims.passport_id] = where, due

    def follow(self, said: Drift) -> str | None:
        """Take the next drift entry; return what does not hold of it."""
        if said.passport_id in self._unknown:
            return None
        _, due = self._due.pop(said.passport_id, ("", None))
        if due is None:
            return f"it says {said.result}, and the passports do not show it, or it was said before"
        # The digest of the document is left out: another version may word its sentences otherwise.
        if said != structs.replace(due, document=said.document):
            return f"it says {_worded(said)}, and the passports give {_worded(due)}"
        return None

    def left_out(self) -> Iterator[tuple[str, str]]:
        """Yield the drifts that no entry tells, each with the entry of its passport."""
        for where, due in self._due.values():
            yield where, f"{_worded(due)}, and no entry says so"


def _worded(claims: Drift) -> str:
    rows = f" ({', '.join(claims.rows)})" if claims.rows else ""
    return f"{claims.result} against {claims.earlier[:19]}{rows}"
