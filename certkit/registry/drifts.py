"""Drift from one passport of a lineage to the next: what is compared, logged and audited.

    found = Consequences(passport)
    registry.append(passport, follow=found.of, …)
    found.drift                              # the comparison, None where there was nothing to compare with

    course = Course(snapshot)                # snapshot(name): that of a passport, by whatever names it
    course.follow(first)                     # None: there is nothing to compare it with
    course.follow(second).told               # the comparison that counts

A passport is compared with the one before it, and with every base of its lineage. A base is a passport that
cannot be compared with any base before it, as the first one; whenever a comparison with a base tells
something, a drift or that a loss of the margin is excluded, the later passport takes its place. So neither a
passport on few runs nor one of another kind hides a loss from the next, and what was told is not told again.
The trend is over the passports since the last drift that was told.

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

    from certkit.assessment import drift as comparing
    from certkit.assessment.drift.snapshot import Snapshot
    from certkit.passport.statement import Statement
    from certkit.registry.entry import AnyClaims, Claims, PassportFacts

LOGGED: Final = {"DRIFTED", "IDENTITY_CHANGED"}
"""The results of a comparison that are logged."""
BASES: Final = 8
"""How many bases are kept, the newest: to lose one takes as many kinds that cannot be compared with it."""
LINE: Final = 7
"""How many passports before the newest are kept for the trend."""


class Compared(Struct, frozen=True):
    """The comparison with an earlier passport."""

    earlier: str
    drift: comparing.Drift


class Step(Struct, frozen=True):
    """What a passport was compared with: the one before it first, then the bases, the newest first."""

    comparisons: tuple[Compared, ...]

    @property
    def told(self) -> Compared:
        """The comparison that counts: a drift before all, else that with the one before.

        Where that one says too little, it is one with a base that says there is no loss.
        """
        before = self.comparisons[0]
        wanted = ["DRIFTED", "STABLE"] if before.drift.result == "UNDERPOWERED" else ["DRIFTED"]
        for result in wanted:
            for compared in self.comparisons:
                if compared.drift.result == result:
                    return compared
        return before


class Course:
    """The passports of one lineage, oldest first; only names are kept, of the last ones and of the bases."""

    def __init__(self, snapshot: Callable[[str], Snapshot]) -> None:
        self._snapshot = snapshot
        self._line: list[str] = []
        self._bases: list[str] = []

    def follow(self, name: str) -> Step | None:
        """Take the next passport, None where there is none before it; raise what `snapshot` does.

        One that raises is passed over: the next is compared with those before it.
        """
        if not self._line:
            self._line, self._bases = [name], [name]  # read when there is something to compare it with
            return None
        new, bases = self._snapshot(name), self._bases
        comparisons = tuple(self._compared(dict.fromkeys((self._line[-1], *bases)), new))
        told = {comparison.earlier for comparison in comparisons if _tells(comparison.drift)}
        compared = {
            comparison.earlier for comparison in comparisons if comparison.drift.result != "NOT_COMPARABLE"
        }
        if told.intersection(bases) or not compared.intersection(bases):
            self._bases = [name, *(comparison for comparison in bases if comparison not in told)][:BASES]
        step = Step(comparisons) if comparisons else None
        drifted = step is not None and step.told.drift.result == "DRIFTED"
        # A loss that was told is the trend's past: it is not told again with every passport that follows.
        self._line = [name] if drifted else [*self._line, name][-LINE:]
        return step

    def _compared(self, earlier: Iterable[str], new: Snapshot) -> Iterator[Compared]:
        from certkit.assessment.drift import drift  # noqa: PLC0415 - heavy

        for name in earlier:
            with suppress(CertkitError):  # only of the first one it is not known yet
                before = self._earlier() if name == self._line[-1] else ()
                yield Compared(name, drift(self._snapshot(name), new, before=before))

    def _earlier(self) -> list[Snapshot]:
        """Return the passports before the last one, as far as they can be read: the trend's."""
        snapshots = []
        for name in self._line[:-1]:
            with suppress(CertkitError):
                snapshots.append(self._snapshot(name))
        return snapshots


def _tells(drift: comparing.Drift) -> bool:
    """Tell whether a comparison shows a drift, or excludes a loss in all that the base measured."""
    rows = [row for row in drift.behaviour if row.old is not None and row.margin is not None]
    excludes = any(row.is_overall for row in rows) and all(row.no_loss for row in rows)
    return drift.result == "DRIFTED" or excludes


class Consequences:
    """What follows from one passport that is appended."""

    def __init__(self, passport: bytes) -> None:
        self._passport = passport
        self.known: tuple[str, Statement] | None = None
        """The passport's id and what it states, where it was read already."""
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
        last = next(reversed(files))
        read = cache(lambda name: self._snapshot() if name == last else snapshot(files[name]))
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

    def _snapshot(self) -> tuple[str, Snapshot]:
        """Return the id of the passport that is appended, and its snapshot."""
        from certkit.passport.drift_side import drift_side  # noqa: PLC0415 - heavy

        if self.known is None:
            return snapshot(self._passport)
        passport_id, statement = self.known
        return passport_id, drift_side(statement)


def logged(drift: comparing.Drift, passport_id: str, earlier: str) -> Drift | None:
    """Return what is logged of a comparison, None where nothing is."""
    return claims(drift, passport_id, earlier) if drift.result in LOGGED else None


def agree(said: Drift | None, due: Drift | None) -> bool:
    """Tell whether two claims of a drift say the same: of which passports, which result, which rows.

    The digest of the document is left out: the sentences in it may be worded otherwise by another version.
    """
    if said is None or due is None:
        return said is due
    return said == structs.replace(due, document=said.document)


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
        self.notes: list[str] = []
        """On entries whose comparison reads otherwise today, though it says the same."""

    def passport(self, where: str, lineage: str, claims: Claims, sha256: str | None) -> None:
        """Take the next passport of a lineage; `sha256` of its file is None where that cannot be had."""
        course = self._courses.setdefault(lineage, Course(lambda name: self._snapshot(name)[1]))
        if sha256 is None or course is None:
            # Whoever wrote had the file, and what they compared later passports with cannot be told any more.
            self._courses[lineage] = None
            self._unknown.add(claims.passport_id)
            return
        try:
            step = course.follow(sha256)
        except CertkitError:
            return  # it contradicts itself, which keeps nobody from logging it, and is compared with nothing
        if step is None:
            return
        earlier = self._snapshot(step.told.earlier)[0]
        if due := logged(step.told.drift, claims.passport_id, earlier):
            self._due[claims.passport_id] = where, due

    def _snapshot(self, sha256: str) -> tuple[str, Snapshot]:
        data = self._load(sha256)
        if data is None:
            raise MismatchError("registry.blob-missing", "it was there a moment ago")
        return snapshot(data)

    def follow(self, where: str, said: Drift) -> str | None:
        """Take the next drift entry; return what does not hold of it."""
        if said.passport_id in self._unknown:
            return None
        _, due = self._due.pop(said.passport_id, ("", None))
        if due is None:
            return f"it says {said.result}, and the passports do not show it, or it was said before"
        if not agree(said, due):
            return f"it says {_worded(said)}, and the passports give {_worded(due)}"
        if said.document != due.document:
            self.notes.append(f"{where}: the comparison that it names reads otherwise in this version")
        return None

    def left_out(self) -> Iterator[tuple[str, str]]:
        """Yield the drifts that no entry tells, each with the entry of its passport."""
        for where, due in self._due.values():
            yield where, f"{_worded(due)}, and no entry says so"


def _worded(claims: Drift) -> str:
    rows = f" ({', '.join(claims.rows)})" if claims.rows else ""
    return f"{claims.result} against {claims.earlier[:19]}{rows}"
