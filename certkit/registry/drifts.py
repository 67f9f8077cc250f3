"""Drift from one passport of a lineage to the next: what is compared, logged and audited.

    consequences = Consequences(passport)
    registry.append(passport, follow=consequences.of, …)
    consequences.drift                       # the comparison, None where there was nothing to compare with

A passport is compared with the previous one of its lineage. If that comparison is inconclusive, earlier
passports are tried, newest first, until one comparison is conclusive; at most seven. One passport with few
runs cannot hide a loss; seven in a row can, and so can one with few runs in a single domain.
After a drift that was told, the passport that drifted is the first of a new line, also for the trend.

What a comparison gives follows from the two files alone (`certkit.assessment.drift`). Only a drift is logged.
That passports cannot be compared, or say too little, is shown to whoever appends and is no event.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit import canonical
from certkit.errors import CertkitError, MismatchError
from certkit.passport import opening
from certkit.registry.entry import ROW_LENGTH, ROWS, Drift, Supersession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from certkit.assessment.drift import document as comparing
    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.registry.entry import AnyClaims, Claims, PassportFacts

LOGGED: Final = {"DRIFTED", "IDENTITY_CHANGED"}
"""The results of a comparison that are logged."""
LINE: Final = 7
"""How many passports before the newest are kept, for comparison and trend."""


class Compared(Struct, frozen=True):
    """The comparison with an earlier passport."""

    earlier: str
    drift: comparing.Drift


class Course:
    """The passports of one lineage, oldest first; only names are kept, and of the last ones alone.

    `snapshot` returns that of a passport by its name.
    """

    def __init__(self, snapshot: Callable[[str], Snapshot]) -> None:
        self._snapshot = snapshot
        self._line: list[str] = []

    def follow(self, name: str) -> Compared | None:
        """Take the next passport; return the comparison that counts, None where there is none before it.

        Raises what `snapshot` does; the passport is passed over then, and the next is compared with those
        before it.
        """
        if not self._line:
            self._line = [name]  # read when there is something to compare it with
            return None
        compared = self._compared(self._snapshot(name))
        drifted = compared is not None and compared.drift.result == "DRIFTED"
        # A loss that was told is the trend's past: it is not told again with every passport that follows.
        self._line = [name] if drifted else [*self._line, name][-LINE:]
        return compared

    def _compared(self, new: Snapshot) -> Compared | None:
        """Return a drift, or else the comparison with the one before.

        Where that one says too little, it is one with an earlier passport that says there is no loss.
        """
        from certkit.assessment.drift import drift  # noqa: PLC0415 - heavy

        first: Compared | None = None
        line = [(name, earlier) for name in self._line if (earlier := self._readable(name))]
        for place, (name, earlier) in reversed(list(enumerate(line))):
            before = [snapshot for _, snapshot in line[:place]] if first is None else []
            compared = Compared(name, drift(earlier, new, before=before))
            first = first or compared
            if compared.drift.result == "DRIFTED":
                return compared
            if compared.drift.result == "STABLE":
                return compared if first.drift.result == "UNDERPOWERED" else first
        return first

    def _readable(self, name: str) -> Snapshot | None:
        """Return a snapshot, None of the first passport where it cannot be read, which is known only now."""
        with suppress(CertkitError):
            return self._snapshot(name)
        return None


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
        following: list[AnyClaims] = []
        if facts.supersedes is not None:
            following.append(Supersession(passport_id=facts.supersedes, by=facts.passport_id))
        if drifted := self.compared(earlier):
            following.append(drifted)
        return following

    def compared(self, earlier: Iterable[bytes]) -> Drift | None:
        """Return what is logged of the passport against those before it, None where nothing is."""
        files = {str(number): data for number, data in enumerate((*earlier, self._passport))}
        read = cache(lambda name: snapshot(files[name]))
        course = Course(lambda name: read(name)[1])
        told = None
        for name in files:
            try:
                told, self.reason = course.follow(name), None
            except CertkitError as error:
                told, self.reason = None, str(error)
        if told is None:
            if len(files) > 1 and self.reason is None:
                self.reason = "none of them can be read"
            return None
        self.earlier, self.drift = read(told.earlier)[0], told.drift
        return logged(self.drift, read(name)[0], self.earlier)


def logged(drift: comparing.Drift, passport_id: str, earlier: str) -> Drift | None:
    """Return what is logged of a comparison, None where nothing is."""
    return claims(drift, passport_id, earlier) if drift.result in LOGGED else None


def snapshot(passport: bytes) -> tuple[str, Snapshot]:
    """Return the id of a passport that was verified before, and the snapshot that it gives.

    Raises `CertkitError` where it cannot be read or its integers contradict each other.
    """
    from certkit.passport.drift_side import drift_side  # noqa: PLC0415 - heavy

    file = opening.parse(passport)
    return file.passport_id, drift_side(file.unverified_statement())


def claims(drift: comparing.Drift, passport_id: str, earlier: str) -> Drift:
    """Return the claims of the entry about a drift."""
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

    `load` returns the file of a passport by its digest, None where it cannot be had. Of a passport only the
    digest is kept, and of those alone that later ones are compared with.
    """

    def __init__(self, load: Callable[[str], bytes | None]) -> None:
        self._load = load
        self._courses: dict[str, Course | None] = {}
        self._due: dict[str, tuple[str, Drift]] = {}
        self._unknown: set[str] = set()

    def passport(self, where: str, lineage: str, claims: Claims, sha256: str | None) -> None:
        """Take the next passport of a lineage; `sha256` of its file is None where that cannot be had."""
        course = self._courses.setdefault(lineage, Course(lambda name: self._snapshot(name)[1]))
        if sha256 is None or course is None:
            # Whoever wrote had the file, and what they compared later passports with cannot be told any more.
            self._courses[lineage] = None
            self._unknown.add(claims.passport_id)
            return
        try:
            told = course.follow(sha256)
        except CertkitError:
            return  # it contradicts itself, which keeps nobody from logging it, and is compared with nothing
        if told is None:
            return
        earlier = self._snapshot(told.earlier)[0]
        if due := logged(told.drift, claims.passport_id, earlier):
            self._due[claims.passport_id] = where, due

    def _snapshot(self, sha256: str) -> tuple[str, Snapshot]:
        data = self._load(sha256)
        if data is None:
            raise MismatchError("registry.blob-missing", "it was there a moment ago")
        return snapshot(data)

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
