"""Sheets for people: CSV files to rate tasks, to recognise families, and to audit the matcher.

A row is named by a digest, so that it tells neither task nor family nor verdict, and rows stand in the order
of their names. A sheet is drawn anew from the bundle when it comes back: nothing has to be kept between.
Golds are hidden but for the audit, which asks whether a reply says what was expected.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from certkit import files
from certkit.errors import InputError, UsageError
from certkit.evidence.integrity.reading import key_of
from certkit.probes.answer import ANNOTATIONS, FOLDER, Annotation, Key, asked, told
from certkit.probes.generate import line
from certkit.probes.matching import MAX_WORDS, Mode, judge
from certkit.probes.task import Family, surface

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.evidence.integrity.reading import Kept

Kind = Literal["difficulty", "construct", "audit"]
COLUMNS: Final[dict[Kind, tuple[str, ...]]] = {
    "difficulty": ("row", "text", "rating", "valid"),
    "construct": ("row", "text", "family"),
    "audit": ("row", "question", "expected", "reply", "verdict"),
}
"""The columns of every kind of sheet; people fill in those that `FILLED` names."""
FILLED: Final[dict[Kind, tuple[str, ...]]] = {
    "difficulty": ("rating", "valid"),
    "construct": ("family",),
    "audit": ("verdict",),
}
EACH: Final[dict[Kind, int]] = {"difficulty": 1_000_000, "construct": 6, "audit": 3}
"""Rows that are drawn of every cell: of family × variant × band, of family, of verdict × family × style."""
MAX_SHEET: Final = 64 * 1024 * 1024
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class Row(NamedTuple):
    """One row to fill in: the question it is about, what it is drawn from, and the texts that are shown."""

    name: str
    key: Key
    cell: tuple[str, ...]
    shown: tuple[str, ...]


def sheet(kept: Kept, kind: Kind, each: int | None = None) -> bytes:
    """Return a sheet with `each` rows of every cell, or fewer where it has fewer."""
    cells: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in sorted(_rows(kept, kind)):
        cells[row.cell].append(row)
    drawn = sorted(row for rows in cells.values() for row in rows[: EACH[kind] if each is None else each])
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(COLUMNS[kind])
    for row in drawn:
        shown = (f"'{text}" if text.startswith(_FORMULA) else text for text in row.shown)
        writer.writerow((row.name, *shown, *("" for _ in FILLED[kind])))
    return stream.getvalue().encode()


def _rows(kept: Kept, kind: Kind) -> Iterator[Row]:
    mode = Mode.JSON if kept.run is None else kept.run.mode
    for key, task, question in asked(kept.tasks):
        name = sha256(f"{kept.inventory.tasks_digest}/{kind}/{key.task}/{key.probe}".encode()).hexdigest()[
            :12
        ]
        if kind == "difficulty" and key.probe is None:
            yield Row(name, key, (task.family, task.variant, task.band), (told(task),))
        elif kind == "construct" and key.probe is not None:
            yield Row(name, key, (task.family,), (f"{told(task)}\n{question.prompt}",))
        elif kind == "audit" and (answer := kept.answers.get(key)) and isinstance(answer.text, str):
            style = "verbose" if len(answer.text.split()) > MAX_WORDS else "concise"
            verdict = judge(question, answer.text, mode=mode).verdict
            shown = (f"{told(task)}\n{question.prompt}", surface(question.gold), answer.text)
            yield Row(name, key, (verdict, task.family, style), shown)


def take(
    kept: Kept, kind: Kind, data: bytes, *, rater: str, adjudicated: bool, where: str
) -> tuple[Annotation, ...]:
    """Return what a rater filled in; rows that were left empty are passed over.

    Raises `InputError` ``integrity.field`` for a sheet of another kind, an unknown row or a wrong value, and
    ``integrity.repeated`` for a row that the rater filled in before.
    """
    rows = {row.name: row.key for row in _rows(kept, kind)}
    before = {(item.kind, key_of(item), item.rater) for item in kept.annotations}
    made: list[Annotation] = []
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig")), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError("integrity.field", f"is no CSV in UTF-8: {error}", where=where) from None
    if not lines or tuple(lines[0]) != COLUMNS[kind]:
        raise InputError("integrity.field", f"the first row is not {', '.join(COLUMNS[kind])}", where=where)
    for number, cells in enumerate(lines[1:], 2):
        place = f"{where}: row {number}"
        if len(cells) != len(COLUMNS[kind]) or cells[0] not in rows:
            raise InputError("integrity.field", "is no row of this sheet", where=place)
        filled = dict(zip(FILLED[kind], cells[-len(FILLED[kind]) :], strict=True))
        if not any(filled.values()):
            continue
        item = _annotation(kind, rows[cells[0]], filled, rater=rater, adjudicated=adjudicated, where=place)
        identity = (item.kind, key_of(item), item.rater)
        if identity in before:
            raise InputError("integrity.repeated", f"{rater} filled in this row before", where=place)
        before.add(identity)
        made.append(item)
    return tuple(made)


def _annotation(
    kind: Kind, key: Key, filled: dict[str, str], *, rater: str, adjudicated: bool, where: str
) -> Annotation:
    document: dict[str, object] = {"kind": kind, "task_id": key.task, "rater": rater}
    document |= {"probe_id": key.probe} if key.probe else {}
    document |= {"adjudicated": True} if adjudicated else {}
    for name, text in filled.items():
        value: object = text.strip().casefold()
        if value:
            if name == "rating" and text.strip().isascii() and text.strip().isdigit():
                value = int(text)
            elif name == "valid":
                value = {"yes": True, "true": True, "no": False, "false": False}.get(str(value), value)
            document[name] = value
    try:
        return msgspec.convert(document, Annotation, strict=True)
    except msgspec.ValidationError as error:
        expected = f"rating 1 to 5, valid yes or no, a family ({', '.join(Family)}), or match, no, unclear"
        raise InputError("integrity.field", f"{error}", where=where, hint=expected) from None


def keep(root: Path, kept: Kept, added: tuple[Annotation, ...]) -> None:
    """Write the annotations of a bundle with those that were added."""
    if not added:
        raise UsageError("usage.option", "no row is filled in")
    data = b"".join(map(line, (*kept.annotations, *added)))
    files.write(root / FOLDER / ANNOTATIONS, data)
