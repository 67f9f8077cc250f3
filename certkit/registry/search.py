"""The derived table ``passport_index``: what is asked of the passports of a log, all at once.

    search = Search(connection)
    search.add(index, found)                       # kept up with every entry that is logged
    search.passports(Query(tier=2, status="current"), at=now)
    search.rebuild(); search.differences()         # it follows from the entries and from nothing else

It says what the log says and verifies nothing: any entry ends a passport here, whoever signed it. Whether a
passport stands is asked of the entries themselves (`certkit.registry.status`); who may write the file may
write this table too, and `differences` tells.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import Struct

from certkit.errors import CertkitError, MismatchError
from certkit.registry.entry import Claims, Revocation, Supersession, read, timestamp
from certkit.registry.index import REINDEX, Index, row
from certkit.registry.log import Log
from certkit.tlog.hashing import leaf_hash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from certkit.registry.entry import UnverifiedEntry


DERIVED: Final = ("seen", "entry_index", "passport_index")
"""The tables that follow from the entries."""

NO_COSIGNATURE: Final = "no cosignature by the key that it is kept for of a checkpoint that the log had"
"""What is wrong with a row of ``cosignature``."""

_SCHEMA: Final = "SELECT tbl_name, sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY rowid"

Standing = Literal["current", "superseded", "revoked", "expired", "upcoming"]
_COLUMNS: Final = (
    "idx, passport_id, lineage, agent, profile, tier, not_before, not_after, attempt, ended, ended_by"
)


class Query(Struct, frozen=True, kw_only=True):
    """What is looked for; None asks nothing. `agent` is a lineage, a part of one, or an agent's digest."""

    agent: str | None = None
    tier: int | None = None
    profile: str | None = None
    status: Standing | None = None


class Found(Struct, frozen=True, kw_only=True):
    """A passport as the log has it; `ended_by` is the entry that superseded or revoked it."""

    index: int
    passport_id: str
    lineage: str
    agent: str
    profile: str
    tier: int
    not_before: str
    not_after: str
    attempt: int
    status: Standing
    ended_by: int | None


def passport_row(index: int, lineage: str, claims: Claims) -> tuple[object, ...]:
    """Return the row of the table for a passport, up to what ended it."""
    return (
        *(index, claims.passport_id, lineage, claims.agent, claims.profile, claims.tier),
        *(claims.not_before, claims.not_after, claims.attempt, claims.evidence),
    )


def ending(found: UnverifiedEntry) -> tuple[str, Standing] | None:
    """Return which passport an entry ends, and how; None where it ends none."""
    claims = found.claims
    if isinstance(claims, Revocation):
        return claims.passport_id, "revoked"
    superseded = claims.passport_id if isinstance(claims, Supersession) else None
    if isinstance(claims, Claims):
        superseded = claims.supersedes
    return None if superseded is None else (superseded, "superseded")


class Search:
    """The table in an open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.entries = Index(connection)

    def add(self, index: int, found: UnverifiedEntry) -> None:
        """Take the next entry into account."""
        claims = found.claims
        if isinstance(claims, Claims):
            self._connection.execute(
                "INSERT INTO passport_index VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
                passport_row(index, found.entry.subject, claims),
            )
        if ended := ending(found):
            self._end(*ended, index)

    def _end(self, passport_id: str, how: Standing, by: int) -> None:
        # What was superseded can still be revoked; what is revoked stays so, by the first entry that said it.
        self._connection.execute(
            "UPDATE passport_index SET ended = ?1, ended_by = ?2"
            " WHERE idx = (SELECT min(idx) FROM entry_index WHERE passport_id = ?3 AND type = 'passport')"
            " AND (ended IS NULL OR (?1 = 'revoked' AND ended = 'superseded'))",
            (how, by, passport_id),
        )

    def passports(self, query: Query, *, at: datetime) -> list[Found]:
        """Return the passports that a query asks for, oldest first, with their status at a time."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM passport_index WHERE (?1 IS NULL OR agent = ?1 OR instr(lineage, ?1))"  # noqa: S608 - ours
            " AND (?2 IS NULL OR tier = ?2) AND (?3 IS NULL OR profile = ?3) ORDER BY idx",
            (query.agent, query.tier, query.profile),
        )
        found = (_found(row, timestamp(at)) for row in rows)
        return [one for one in found if query.status in {None, one.status}]

    def rebuild(self) -> None:
        """Make all derived tables again from the entries, and remove cosignatures that are none."""
        for table in DERIVED:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - ours
        for index, data in self._connection.execute("SELECT idx, entry FROM leaf ORDER BY idx"):
            self._add_all(index, data)
        with suppress(CertkitError):  # by a checkpoint or tree that cannot be read, nothing is judged
            Log(self._connection).tidy()

    def _add_all(self, index: int, data: bytes) -> None:
        # An entry that a log holds twice, which an audit finds, is seen where it stands first.
        self._connection.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (leaf_hash(data), index))
        try:
            found = read(data)
        except CertkitError:  # which an audit finds as well; it has a place all the same
            self._connection.execute("INSERT INTO entry_index VALUES (?, '', '', NULL, NULL)", (index,))
            return
        self._connection.execute("INSERT INTO entry_index VALUES (?, ?, ?, ?, ?)", row(index, found))
        self.add(index, found)

    def differences(self) -> Iterator[str]:
        """Yield what of the derived tables does not follow from the entries, and false cosignatures."""
        with closing(sqlite3.connect(":memory:")) as fresh:
            for name, statement in self._connection.execute(_SCHEMA):
                if name in DERIVED:
                    fresh.execute(statement)
            made = Search(fresh)
            for index, data in self._connection.execute("SELECT idx, entry FROM leaf ORDER BY idx"):
                made._add_all(index, data)
            for table in DERIVED:
                yield from _apart(table, self._connection, fresh)
        with suppress(CertkitError):  # as in `rebuild`
            for number, kept in enumerate(Log(self._connection).cosignatures()):
                if kept is None:
                    yield f"table cosignature, row {number}: {NO_COSIGNATURE}"


def _apart(table: str, stored: sqlite3.Connection, fresh: sqlite3.Connection) -> Iterator[str]:
    query = f"SELECT idx, * FROM {table} ORDER BY idx"  # noqa: S608 - ours
    stored.text_factory = lambda data: data.decode(errors="surrogateescape")  # what is no text differs
    try:
        there = {row[0]: row for row in stored.execute(query)}
    finally:
        stored.text_factory = str
    for expected in fresh.execute(query):
        found = there.pop(expected[0], None)
        if found is None:
            yield f"table {table} leaves out entry {expected[0]}"
        elif found != expected:
            yield f"table {table} says something else of entry {expected[0]}"
    for index in there:
        yield f"table {table} has a row for entry {index}, which gives none"


def _found(row: tuple[object, ...], now: str) -> Found:
    names = [name.strip() for name in _COLUMNS.split(",")]
    values = dict(zip(names, row, strict=True))
    ended = values.pop("ended")
    in_time = timely(str(values["not_before"]), str(values["not_after"]), now)
    values |= {"index": values.pop("idx"), "status": ended or in_time}
    try:
        return msgspec.convert(values, Found)
    except msgspec.ValidationError:
        message = f"table passport_index holds something else than a passport for entry {values['index']}"
        raise MismatchError("registry.inconsistent", message, hint=REINDEX) from None


def timely(not_before: str, not_after: str, now: str) -> Standing:
    """Return how a passport that nothing ended stands at a time; times are as entries write them."""
    if now < not_before:
        return "upcoming"
    return "expired" if not_after < now else "current"
