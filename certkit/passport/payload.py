"""The signed payload: a statement as bytes, and back.

    payload = write(statement)            # canonical JSON, the bytes that are signed
    read(payload)                         # the statement, or why it is none

`read` returns a statement only where its form holds, where it agrees with itself (`derived`, `bounds`), and
where its rows are those of the packaged profile that it names (`tables`). Who signed is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from certkit import canonical
from certkit.errors import InputError, NegativeError
from certkit.passport import bounds, derived, tables
from certkit.passport.statement import PREDICATE_TYPE, STATEMENT_TYPE, Statement, plain

if TYPE_CHECKING:
    from collections.abc import Iterator


def write(statement: Statement) -> bytes:
    """Return the payload that is signed: the statement's canonical JSON."""
    return canonical.canonical(plain(statement))


def read(payload: bytes) -> Statement:
    """Return the statement in a payload whose signature holds.

    Raises `NegativeError` ``passport.types`` where it is a statement of another kind,
    ``passport.statement`` or a ``json.*`` code where it is malformed or contradicts itself, and
    ``passport.period-in-future`` where it is valid before its last run.
    """
    try:
        document = canonical.loads(payload, where="payload")
    except InputError as error:
        raise NegativeError(error.code, error.message, where="payload") from None
    if not isinstance(document, dict):
        raise NegativeError("passport.types", "the payload is not a statement")
    for key, expected in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if document.get(key) != expected:
            raise NegativeError(
                "passport.types", f"expected {key} {expected}, found {str(document.get(key))[:80]}"
            )
    try:
        statement = msgspec.convert(document, Statement)
    except msgspec.ValidationError as error:
        text = str(error)
        raise NegativeError("passport.statement", text[:1].lower() + text[1:]) from None
    contradiction = next(_contradictions(statement), None)
    if contradiction is not None:
        raise NegativeError("passport.statement", contradiction)
    if late := derived.late_run(statement.predicate):
        raise NegativeError("passport.period-in-future", late)
    return statement


def _contradictions(statement: Statement) -> Iterator[str]:
    yield from derived.disagreements(statement)
    criteria = bounds.rows(statement.predicate)
    yield from tables.disagreements(statement.predicate, criteria)
    yield from bounds.disagreements(statement.predicate, criteria)
