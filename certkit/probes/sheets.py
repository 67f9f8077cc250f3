"""Sheets for people: CSV files to rate tasks, to recognise families, and to audit the matcher.

A row is named by a digest, and rows stand in the order of their names. A sheet is drawn anew from the bundle
when it comes back: nothing has to be kept between.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET

from certkit.ground.errors import InputError
from certkit.probes.agents import told
from certkit.probes.matching import MAX_WORDS
from certkit.probes.records import Annotation, Family, QuestionKey, asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.probes.reading import Kept

Kind = Literal["difficulty", "construct", "audit"]
COLUMNS: Final[dict[Kind, tuple[str, ...]]] = {
    "difficulty": ("row", "text", "rating", "valid"),
    "construct": ("row", "text", "family", "valid"),
    "audit": ("row", "question", "reply", "verdict"),
}
EACH: Final[dict[Kind, int]] = {"difficulty": 1_000_000, "construct": 6, "audit": 3}
"""Rows that are drawn of every cell: of family × variant × band, of family, of verdict × family × style."""
MAX_SHEET: Final = 64 * 1024 * 1024
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_FILLED: Final = {
    "rating": "1 to 5",
    "valid": "yes or no",
    "family": ", ".join(Family),
    "verdict": "match, no or unclear",
}
"""What columns that people fill in may hold."""
_YES: Final[dict[tuple[str, str], Any]] = {("valid", "yes"): True, ("valid", "no"): False}


class SheetRow(NamedTuple):
    """One row to fill in: the question it is about, what it is drawn from, and the texts that are shown."""

    name: str
    key: QuestionKey
    cell: tuple[str, ...]
    shown: tuple[str, ...]


def allowed(kind: Kind) -> str:
    """Return what the columns that people fill in may hold."""
    return "\n".join(f"{name}: {_FILLED[name]}" for name in COLUMNS[kind] if name in _FILLED)


def sheet(kept: Kept, kind: Kind) -> tuple[bytes, int]:
    """Return a sheet, and how many rows it has."""
    cells: dict[tuple[str, ...], list[SheetRow]] = defaultdict(list)
    for row in sorted(_rows(kept, kind)):
        cells[row.cell].append(row)
    drawn = sorted(row for rows in cells.values() for row in rows[: EACH[kind]])
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS[kind])
    writer.writeheader()
    for row in drawn:
        shown = (f"'{text}" if text.startswith(_FORMULA) else text for text in row.shown)
        writer.writerow(dict(zip(COLUMNS[kind], (row.name, *shown), strict=False)))
    return stream.getvalue().encode(), len(drawn)


def _rows(kept: Kept, kind: Kind) -> Iterator[SheetRow]:
    replies = kept.replies() if kind == "audit" else {}
    for key, task, question in asked(kept.tasks):
        reply = answer.text if kind == "audit" and (answer := kept.answers.get(key)) else UNSET
        # A verdict is on one reply: the sheet of another run has rows of other names.
        name = f"{kept.inventory.tasks_digest}/{kind}/{key.task}/{key.probe}/{reply}".encode()
        row, text = sha256(name).hexdigest()[:12], told(task)
        if key.probe is not None:
            text += f"\n{question.prompt}"
        if kind == "difficulty" and key.probe is None:
            yield SheetRow(row, key, (task.family, task.variant, task.band), (text,))
        elif kind == "construct" and key.probe is not None:
            yield SheetRow(row, key, (task.family,), (text,))
        elif reply is not UNSET:
            style = "verbose" if len(reply.split()) > MAX_WORDS else "concise"
            yield SheetRow(row, key, (replies[key].verdict, task.family, style), (text, reply))


def take(
    kept: Kept, kind: Kind, data: bytes, *, rater: str, adjudicated: bool, where: str
) -> tuple[Annotation, ...]:
    """Return what a rater filled in; rows that were left empty are passed over.

    Raises:
        InputError: ``integrity.field`` for a sheet of another kind, and with every row that is unknown,
            holds a wrong value, or was filled in by the rater before.
    """
    rows, head = {row.name: row.key for row in _rows(kept, kind)}, COLUMNS[kind]
    before = {(item.kind, item.key, item.rater) for item in kept.annotations}
    made: list[Annotation] = []
    wrong: list[str] = []
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig")), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError("integrity.field", f"is no CSV in UTF-8: {error}", where=where) from None
    if not lines or tuple(lines[0]) != head:
        raise InputError("integrity.field", f"the first row is not {', '.join(head)}", where=where)
    for number, cells in enumerate(lines[1:], 2):
        said = {name: cell.strip().casefold() for name, cell in zip(head, cells, strict=False)}
        filled = {name: _YES.get((name, said[name]), said[name]) for name in _FILLED if said.get(name)}
        key = rows.get(cells[0]) if len(cells) == len(head) else None
        if key is None:
            wrong.append(f"row {number}: is no row of this sheet")
        elif filled and (kind, key, rater) in before:
            wrong.append(f"row {number}: {rater} filled in this row before")
        elif filled:
            document = {"kind": kind, "task_id": key.task, "rater": rater, **filled}
            document |= {"probe_id": key.probe} if key.probe else {}
            document |= {"adjudicated": True} if adjudicated else {}
            try:
                made.append(msgspec.convert(document, Annotation, strict=False))
                before.add((kind, key, rater))
            except msgspec.ValidationError as error:
                wrong.append(f"row {number}: {error}")
    if wrong or not made:
        reason = "\n  ".join(wrong) or "no row is filled in"
        raise InputError("integrity.field", reason, where=where, hint=allowed(kind))
    return tuple(made)
