"""Calibration files: several raters score the same items, so that a judge's error can be measured.

Each line of ``calibration/*.jsonl`` is a rating: the rater, the item, the score and, where it is known, the
score that the item truly deserves. Ratings are checked as strictly as records. The order of lines and files
does not matter.

    calibration = read_calibration(bundle)    # None where the bundle holds no rating
    calibration.raters[0].kind

It does not compute agreement; that is `certkit.assessment`.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from heapq import nsmallest
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from certkit import canonical, files
from certkit.document import DIALECT
from certkit.errors import InputError
from certkit.evidence.reading.lines import pointer, shown, split_lines
from certkit.evidence.records.faults import LIMIT, CalibrationFaultsError, Fault, Faults
from certkit.evidence.records.record import USER_FIELD, USER_FIELD_PATTERN, Name, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from certkit.evidence.bundle.folder import Bundle

CALIBRATION_SCHEMA: Final = "urn:certkit:calibration:v1"
FOLDER: Final = "calibration"
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_LINES: Final = 1_000_000
MAX_RATERS: Final = 1_000
MAX_LINE: Final = 64 * 1024
"""Longest line of a calibration file, bytes."""
MILLION: Final = 10**6
ABSENT: Final = -1
"""Stands in `Calibration.reference` for an item whose true score is not known."""

Kind = Literal["judge", "human"]
Score = bool | Unit


class Rating(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The score that a rater gave to an item (``urn:certkit:calibration:v1``)."""

    item: Annotated[Name, Meta(description="what was scored; the same item has one name for all raters")]
    rater: Annotated[
        Name, Meta(description="who scored it; the judge under the name that the manifest gives")
    ]
    score: Annotated[Score, Meta(description="0 to 1, success at 0.70 or more; or true, false")]
    reference: Annotated[
        Score | None, Meta(description="the score that the item truly deserves; one for all lines of an item")
    ] = None
    kind: Annotated[
        Kind | None, Meta(description="default: judge for the judge of the manifest, human for all others")
    ] = None
    domain: Annotated[Name | None, Meta(description="application domain of the item")] = None


_TYPES: Final = msgspec.structs.fields(Rating)
_EXPECTED: Final = {
    "item": "text of 1 to 512 characters",
    "rater": "text of 1 to 512 characters",
    "score": "a number from 0 to 1, or true or false",
    "reference": "a number from 0 to 1, or true or false",
    "kind": "one of judge, human",
    "domain": "text of 1 to 512 characters",
}


class Rater(Struct, frozen=True, kw_only=True):
    """A person or a model that scored items."""

    name: str
    kind: Kind


class Calibration(Struct, frozen=True, kw_only=True, eq=False):
    """All ratings of a bundle. Scores are in millionths, rounded down.

    `items` and `raters` are sorted by name. `domains` and `reference` (int64, `ABSENT` where unknown) have
    an element per item, and so do `conditions`, once the items were found among the runs. `drawn` tells
    whether the items with a reference are those of `drawn_runs`. The int64 arrays `item`, `rater` (both
    indices) and `score` have an element per rating, sorted by item and rater.
    """

    items: tuple[str, ...]
    domains: tuple[str | None, ...]
    reference: NDArray[np.int64]
    raters: tuple[Rater, ...]
    item: NDArray[np.int64]
    rater: NDArray[np.int64]
    score: NDArray[np.int64]
    conditions: tuple[str | None, ...] = ()
    drawn: bool = False

    @property
    def labelled(self) -> tuple[str, ...]:
        """The items with a reference."""
        return tuple(
            name for name, score in zip(self.items, self.reference.tolist(), strict=True) if score != ABSENT
        )


def drawn_runs(run_ids: Iterable[str], m: int) -> tuple[str, ...]:
    """Return the `m` runs that a person labels: those with the smallest SHA-256(seed ‖ run_id).

    The seed is the SHA-256 of all run ids, sorted, with a line feed after each, so that nobody chooses it.
    """
    ids = sorted(run_ids)
    seed = sha256("".join(f"{name}\n" for name in ids).encode()).digest()
    return tuple(nsmallest(m, ids, key=lambda name: sha256(seed + name.encode()).digest()))


@cache
def calibration_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one line of a calibration file."""
    body = msgspec.json.schema(Rating)["$defs"]["Rating"]
    for field in body["properties"].values():
        field.pop("default", None)
    return {
        "$schema": DIALECT,
        "$id": CALIBRATION_SCHEMA,
        "title": "certkit rating",
        "description": (
            "One line of calibration/*.jsonl. Null and absent mean the same: not stated. A line is at most "
            f"{MAX_LINE:,} bytes; keys occur once; one rater scores an item once."
        ),
        "type": "object",
        "properties": body["properties"],
        "patternProperties": {USER_FIELD_PATTERN: {"description": "the user's own; carried, not read"}},
        "required": body["required"],
        "additionalProperties": False,
    }


def read_calibration(bundle: Bundle) -> Calibration | None:
    """Return the ratings of `bundle`, or None where it holds none.

    Raises `CalibrationFaultsError` where any line is refused, and `InputError` ``calibration.file-name`` or
    ``calibration.too-large``.
    """
    sizes = {file["path"]: file["size"] for file in bundle.files if _inside(file["path"])}
    for path in sizes:
        folder, _, name = path.partition("/")
        if folder != FOLDER or "/" in name or not name.endswith(".jsonl"):
            raise InputError(
                "calibration.file-name",
                f"{path!r} is not {FOLDER}/NAME.jsonl",
                where=str(bundle.root),
                hint=f"rename it to {FOLDER}/NAME.jsonl, or move it out of {FOLDER}/",
            )
    if sum(sizes.values()) > MAX_BYTES:
        raise _too_large(f"{sum(sizes.values()):,} bytes, limit {MAX_BYTES:,}")
    ratings = Ratings()
    faults, lines = Faults(), 0
    for path in sizes:
        data = files.read(bundle.root / path, limit=MAX_BYTES)
        lines += data.count(b"\n") + 1
        if lines > MAX_LINES + len(sizes):
            raise _too_large(f"more than {MAX_LINES:,} lines")
        for number, line in enumerate(split_lines(data), 1):
            result = check_line(line, number)
            noted = result if isinstance(result, list) else ratings.add(result, path, number)
            faults.note([msgspec.structs.replace(fault, file=path) for fault in noted[:LIMIT]])
    if faults:
        raise CalibrationFaultsError(faults, faults.total)
    judge = bundle.manifest.protocol.judge
    return ratings.calibration(judge.name if judge else None)


def _inside(path: str) -> bool:
    return path.partition("/")[0].casefold() == FOLDER and "/" in path


def _too_large(message: str) -> InputError:
    return InputError("calibration.too-large", message, where=FOLDER + "/")


def check_line(line: bytes, number: int = 1) -> Rating | list[Fault]:
    """Return the rating on one line, or all faults of the line."""
    if not line.strip():
        return [_fault(number, "", "calibration.line", "one JSON object", "an empty line")]
    if len(line) > MAX_LINE:
        size = f"{len(line):,} bytes"
        return [_fault(number, "", "calibration.line", f"at most {MAX_LINE:,} bytes", size)]
    try:
        value = canonical.loads(line)
    except InputError as error:
        reason = f"{error.message} ({error.code})"
        return [_fault(number, "", "calibration.line", "one strict JSON object", reason)]
    if not isinstance(value, dict):
        return [_fault(number, "", "calibration.line", "one JSON object", shown(value))]
    known = {name: item for name, item in value.items() if not USER_FIELD.match(name)}
    try:
        return msgspec.convert(known, Rating, strict=True)
    except msgspec.ValidationError:
        return _field_faults(known, number)


def _field_faults(value: dict[str, Any], number: int) -> list[Fault]:
    faults = [
        _fault(
            number, pointer(name), "calibration.field", "a field of the format, or an x_ prefix", shown(item)
        )
        for name, item in value.items()
        if name not in _EXPECTED
    ]
    for field in _TYPES:
        if field.name not in value and not field.required:
            continue
        try:
            msgspec.convert(value.get(field.name), field.type, strict=True)
        except msgspec.ValidationError:
            actual = shown(value[field.name]) if field.name in value else "nothing"
            expected = _EXPECTED[field.name]
            faults.append(_fault(number, pointer(field.name), "calibration.field", expected, actual))
    return faults


def _fault(number: int, place: str, code: str, expected: str, actual: str) -> Fault:
    return Fault(line=number, pointer=place, code=code, expected=expected, found=actual)


def millionths(score: Score) -> int:
    """Return a score in millionths, rounded down, so that rounding meets no threshold."""
    if isinstance(score, bool):
        return MILLION * score
    count = round(score * MILLION)
    return count - (count / MILLION > score)


class Ratings:
    """Collects ratings, with the place of each, and finds those that contradict an earlier one."""

    def __init__(self) -> None:
        self._items: dict[str, int] = {}
        self._raters: dict[str, int] = {}
        self._ratings: dict[tuple[int, int], tuple[int, str]] = {}
        self._stated: dict[tuple[str, str], tuple[Any, str]] = {}

    def rate(self, item: str, rater: str, score: int, place: str) -> tuple[int, str] | None:
        """Add a score in millionths, or return the earlier score of this item by this rater and its place."""
        if len(self._raters) >= MAX_RATERS and rater not in self._raters:
            raise _too_large(f"more than {MAX_RATERS:,} raters")
        key = (
            self._items.setdefault(item, len(self._items)),
            self._raters.setdefault(rater, len(self._raters)),
        )
        new = (score, place)
        earlier = self._ratings.setdefault(key, new)
        return None if earlier is new else earlier

    def state(self, field: str, owner: str, value: Any, place: str) -> str | None:
        """Add the `field` of an item or rater; return the place that stated another value, if any."""
        earlier, first = self._stated.setdefault((field, owner), (value, place))
        return first if earlier != value else None

    def add(self, rating: Rating, path: str, number: int) -> list[Fault]:
        """Add a rating, or return the faults that forbid it."""
        place = f"{path}:{number}"
        faults = []
        if earlier := self.rate(rating.item, rating.rater, millionths(rating.score), place):
            expected = f"one rating of item {shown(rating.item)} by {shown(rating.rater)}"
            actual = f"a second, the first is at {earlier[1]}"
            faults.append(_fault(number, "/rater", "calibration.repeated", expected, actual))
        reference = None if rating.reference is None else millionths(rating.reference)
        for field, owner, value in (
            ("reference", rating.item, reference),
            ("kind", rating.rater, rating.kind),
            ("domain", rating.item, rating.domain),
        ):
            if value is not None and (first := self.state(field, owner, value, place)):
                expected = f"the {field} of {shown(owner)} as at {first}"
                actual = shown(getattr(rating, field))
                faults.append(_fault(number, f"/{field}", "calibration.differs", expected, actual))
        return faults

    def calibration(self, judge: str | None) -> Calibration | None:
        """Return all ratings, sorted; None without any. `judge` is the judge's name in the manifest."""
        import numpy as np  # noqa: PLC0415 - heavy

        if not self._ratings:
            return None
        items, raters = sorted(self._items), sorted(self._raters)
        places = (self._ranks(self._items), self._ranks(self._raters))
        keys = np.array(list(self._ratings), np.int64)
        item, rater = places[0][keys[:, 0]], places[1][keys[:, 1]]
        order = np.lexsort((rater, item))
        return Calibration(
            items=tuple(items),
            domains=tuple(self._of("domain", name) for name in items),
            reference=np.array([self._of("reference", name, ABSENT) for name in items], np.int64),
            raters=tuple(
                Rater(name=name, kind=self._of("kind", name, "judge" if name == judge else "human"))
                for name in raters
            ),
            item=item[order],
            rater=rater[order],
            score=np.array([score for score, _ in self._ratings.values()], np.int64)[order],
        )

    def _of(self, field: str, owner: str, default: Any = None) -> Any:
        return self._stated.get((field, owner), (default,))[0]

    @staticmethod
    def _ranks(names: dict[str, int]) -> NDArray[np.int64]:
        """Return the place of each name in sorted order, as an array over the names' numbers."""
        import numpy as np  # noqa: PLC0415 - heavy

        ranks = np.empty(len(names), np.int64)
        ranks[[names[name] for name in sorted(names)]] = np.arange(len(names))
        return ranks
