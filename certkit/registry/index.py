"""The derived table ``entry_index``: what a look-up needs of each entry. It can be made again from them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from certkit.errors import MismatchError, UsageError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from certkit.registry.entry import UnverifiedEntry

_IDENT: Final = re.compile(r"(?:sha256:)?([0-9a-f]{8,64})")
REINDEX: Final = "'certkit registry audit DIR --repair' makes them again from the entries"
"""What helps where the derived tables are not what the entries give."""

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}")


def row(index: int, found: UnverifiedEntry) -> tuple[int, str, str, str | None, str | None]:
    """Return the row of the table for an entry."""
    profile = found.passport.profile if found.passport else None
    return (index, found.entry.type, found.entry.subject, found.passport_id, profile)


def chosen(ident: str, size: int, beginning: Callable[[str], Sequence[int]], *, where: str) -> int:
    """Return the entry with an index, or that of a passport by its id or the beginning of it.

    `beginning` returns the first entry of each passport whose id begins so. Raises `UsageError`
    ``registry.unknown``.
    """
    if _INDEX.fullmatch(ident) and int(ident) < size:
        return int(ident)
    if match := _IDENT.fullmatch(ident):
        found = beginning(f"sha256:{match[1]}")
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError("registry.unknown", f"several passports begin with {ident}", where=where)
    raise UsageError(
        "registry.unknown",
        f"no entry {ident[:80]!r}",
        where=where,
        hint="give an index, a passport id, or at least the first 8 digits of one",
    )


def logs(ident: str, found: UnverifiedEntry) -> bool:
    """Tell whether an entry logs the passport whose id is, or begins with, `ident`."""
    claims = found.passport
    return claims is not None and claims.passport_id.startswith(f"sha256:{ident.removeprefix('sha256:')}")


class Index:
    """The table in an open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def check(self, size: int) -> None:
        """Raise `MismatchError` ``registry.inconsistent`` unless the table ends where the log does."""
        if self._one("SELECT max(idx) FROM entry_index") != (size - 1 if size else None):
            raise MismatchError(
                "registry.inconsistent",
                "the derived tables are not those of this log",
                hint=REINDEX,
            )

    def add(self, index: int, found: UnverifiedEntry) -> None:
        """Add the row of a new entry."""
        self._connection.execute("INSERT INTO entry_index VALUES (?, ?, ?, ?, ?)", row(index, found))

    def first(self, passport_id: str) -> int | None:
        """Return the first entry of a passport, None where it has none."""
        return self._one(
            "SELECT min(idx) FROM entry_index WHERE passport_id = ? AND type = 'passport'", passport_id
        )

    def beginning(self, start: str) -> list[int]:
        """Return the first entry of each passport whose id begins so, of two at most."""
        rows = self._connection.execute(
            "SELECT min(idx) FROM entry_index WHERE passport_id >= ? AND passport_id < ?"
            " AND type = 'passport' GROUP BY passport_id LIMIT 2",
            (start, start + "g"),
        )
        return [int(index) for (index,) in rows]

    def _one(self, query: str, *values: object) -> int | None:
        (found,) = self._connection.execute(query, values).fetchone()
        return None if found is None else int(found)
