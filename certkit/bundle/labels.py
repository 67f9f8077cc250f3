"""Calibration files: several raters score the same items, so that a judge's error can be measured.

Each line of ``calibration/*.jsonl`` is a rating: the rater, the item, the score and, where it is known, the
score that the item truly deserves. Ratings are checked as strictly as records. The order of lines and
files does not matter.

    calibration = read_calibration(bundle)    # None where the bundle holds no rating
    calibration.raters[0].kind

It does not compute agreement; that is `certkit.assessment`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from certkit.bundle.manifest import MANIFEST_NAME
from certkit.ground.errors import InputError
from certkit.ground.text import name_key
from certkit.record.faults import CalibrationFaultsError, Fault, Faults
from certkit.record.reader import object_on, pointer, shown, split_lines, wrong_fields
from certkit.record.record import USER_FIELD, Name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from certkit.bundle.folder import Bundle

FOLDER: Final = "calibration"
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_LINES: Final = 1_000_000
MAX_RATERS: Final = 1_000
MAX_LINE: Final = 64 * 1024
"""Longest line of a calibration file, bytes."""
MILLION: Final = 10**6
ABSENT: Final = -1
"""Stands in `Calibration.reference` for an item whose true score is not known."""

MAX_VARIABLES: Final = 20
OUTCOME: Final = "outcome"
"""The variable of a line that names none: whether the run is a success."""

Kind = Literal["judge", "human"]
Score = bool | float
Stated = dict[tuple[str, str], tuple[Any, str]]
"""What was stated of a field of an item or rater, and where first."""


class Rating(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The score that a rater gave to an item (``urn:certkit:calibration:v1``)."""

    item: Annotated[Name, Meta(description="what was scored; one name for all raters")]
    rater: Annotated[Name, Meta(description="who scored it; the judge as the manifest names it")]
    score: Annotated[Score, Meta(description="from `low` to `high`")]
    reference: Annotated[
        Score | None, Meta(description="the true score of the item, between those that people gave it")
    ] = None
    kind: Annotated[
        Kind | None,
        Meta(description="default: judge for the judge of the manifest, else human"),
    ] = None
    domain: Annotated[Name | None, Meta(description="domain of the item")] = None
    variable: Annotated[
        Name | None, Meta(description="what is scored; default: outcome, a success from 0.70 of the range")
    ] = None
    low: Annotated[float | None, Meta(description="the worst score; default 0")] = None
    high: Annotated[float | None, Meta(description="the best score; default 1")] = None

    @property
    def scale(self) -> tuple[float, float]:
        """The declared bounds of the score."""
        return (0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high)


_EXPECTED: Final = {
    "score": "a number, or true or false",
    "reference": "a number, or true or false",
    "kind": "one of judge, human",
    "low": "a number",
    "high": "a number",
}
"""What the fields hold that are no names."""


class Rater(Struct, frozen=True, kw_only=True):
    """A person or a model that scored items."""

    name: str
    kind: Kind


class Calibration(Struct, frozen=True, kw_only=True, eq=False):
    """All ratings of one variable of a bundle.

    Scores are in millionths of the way from the worst score to the best, which `scale` declares, rounded
    down. `others` are the calibrations of the variables beside the outcome.

    `items` and `raters` are sorted by name. `domains` and `reference` (int64, `ABSENT` where unknown) have
    an element per item, and so do `conditions`, `passed` (the recorded outcome is a success) and `tasks` (the
    hash of the task or family), once the items were found among the runs. `drawn` tells whether the items
    with a reference come first in `label_order`. The int64 arrays `item`, `rater` (both
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
    passed: tuple[bool | None, ...] = ()
    tasks: tuple[int | None, ...] = ()
    drawn: bool = False
    scale: tuple[float, float] = (0.0, 1.0)
    others: Mapping[str, Calibration] = {}

    @property
    def labelled(self) -> tuple[str, ...]:
        """The items with a reference."""
        return tuple(
            name for name, score in zip(self.items, self.reference.tolist(), strict=True) if score != ABSENT
        )


def label_order(*bundles: Iterable[bytes]) -> list[str]:
    """Return the run ids of bundles in the order in which a person labels them: by SHA-256(seed ‖ run_id).

    Each of `bundles` is the lines of its record files. Its seed is the SHA-256 of what all of them hold but
    `human_checked`, sorted, so that ids which are moved to other runs are drawn anew. Bundles that are judged
    together have one order, so that labels of each follow its share of the runs.
    """
    keys: list[tuple[bytes, str]] = []
    for records in bundles:
        ids, prints = [], []
        for line in records:
            record = msgspec.json.decode(line)
            record.pop("human_checked", None)
            ids.append(str(record["run_id"]))
            prints.append(sha256(msgspec.json.encode(record, order="sorted")).digest())
        seed = sha256(b"".join(sorted(prints))).digest()
        keys += ((sha256(seed + name.encode()).digest(), name) for name in ids)
    return [name for _, name in sorted(keys)]


def read_calibration(*bundles: Bundle) -> Calibration | None:
    """Return the ratings of bundles that are judged together, or None where they hold none.

    A rating that another bundle holds too counts once.

    Raises:
        CalibrationFaultsError: where any line is refused.
        InputError: ``calibration.file-name`` or ``calibration.too-large``.
    """
    ratings: dict[str, RatingCollector] = {}
    judges = [bundle.manifest.protocol.judge for bundle in bundles]
    known = {("kind", name_key(judge.name)): ("judge", MANIFEST_NAME) for judge in judges if judge}
    faults = Faults()
    for bundle in bundles:
        root = f"{bundle.root}/" if len(bundles) > 1 else ""
        for path, number, line in _lines(bundle):
            result = check_line(line, number)
            if isinstance(result, Rating):
                result = _variable(ratings, result, known).add(
                    result, (root, f"{root}{path}:{number}"), number
                )
            faults.note(msgspec.structs.replace(fault, file=root + path) for fault in result)
            if faults.enough():
                break
    if faults:
        raise CalibrationFaultsError(faults)
    if not ratings:
        return None
    made = {name: item.calibration() for name, item in sorted(ratings.items())}
    outcome = made.pop(OUTCOME, None) or RatingCollector(known).calibration()
    return msgspec.structs.replace(outcome, others=made)


def _lines(bundle: Bundle) -> Iterator[tuple[str, int, bytes]]:
    """Yield the lines of the calibration files of a bundle, with file and number."""
    sizes = {file["path"]: file["size"] for file in bundle.files if file["path"].startswith(f"{FOLDER}/")}
    for path in sizes:
        if path.count("/") > 1 or not path.endswith(".jsonl"):
            raise InputError(
                "calibration.file-name",
                f"{path!r} is not {FOLDER}/NAME.jsonl",
                where=str(bundle.root),
                hint=f"rename it to {FOLDER}/NAME.jsonl, or move it out of {FOLDER}/",
            )
    if sum(sizes.values()) > MAX_BYTES:
        raise _too_large(f"{sum(sizes.values()):,} bytes, limit {MAX_BYTES:,}")
    lines = 0
    for path in sizes:
        data = bundle.read(path, limit=MAX_BYTES)
        lines += data.count(b"\n") + 1
        if lines > MAX_LINES + len(sizes):
            raise _too_large(f"more than {MAX_LINES:,} lines")
        for number, line in enumerate(split_lines(data), 1):
            yield path, number, line


def _variable(ratings: dict[str, RatingCollector], rating: Rating, known: Stated) -> RatingCollector:
    """Return the ratings of the variable that a rating is of."""
    name = rating.variable or OUTCOME
    if len(ratings) >= MAX_VARIABLES and name not in ratings:
        raise _too_large(f"more than {MAX_VARIABLES} variables")
    return ratings.setdefault(name, RatingCollector(known))


def _too_large(message: str) -> InputError:
    return InputError("calibration.too-large", message, where=FOLDER + "/")


def check_line(line: bytes, number: int = 1) -> Rating | list[Fault]:
    """Return the rating on one line, or all faults of the line."""
    value = object_on(line, number, most=MAX_LINE, code="calibration.line")
    if isinstance(value, list):
        return value
    known = {name: item for name, item in value.items() if not USER_FIELD.match(name)}
    try:
        rating = msgspec.convert(known, Rating, strict=True)
    except msgspec.ValidationError:
        return [_wrong_field(name, known, number) for name in wrong_fields(Rating, known)]
    return _off_scale(rating, number) or rating


def _off_scale(rating: Rating, number: int) -> list[Fault]:
    """Return the faults of a rating whose bounds are none, or whose scores lie outside of them."""
    low, high = rating.scale
    if not low < high:
        expected = f"a number below {high:g}, the best score"
        return [_fault(number, "/low", "calibration.field", expected, shown(low))]
    return [
        _fault(number, f"/{name}", "calibration.field", f"a number from {low:g} to {high:g}", shown(score))
        for name, score in (("score", rating.score), ("reference", rating.reference))
        if score is not None and not isinstance(score, bool) and not low <= score <= high
    ]


def _wrong_field(name: str, value: dict[str, Any], number: int) -> Fault:
    known = name in Rating.__struct_fields__
    expected = _EXPECTED.get(name, "text of 1 to 512 characters")
    actual = shown(value[name]) if name in value else "nothing"
    expected = expected if known else "a field of the format, or an x_ prefix"
    return _fault(number, pointer(name), "calibration.field", expected, actual)


def _fault(number: int, place: str, code: str, expected: str, actual: str) -> Fault:
    return Fault(line=number, pointer=place, code=code, expected=expected, found=actual)


def millionths(score: Score, scale: tuple[float, float] = (0.0, 1.0)) -> int:
    """Return a score in millionths of its scale, rounded down, so that rounding meets no threshold."""
    if isinstance(score, bool):
        return MILLION * score
    if scale != (0.0, 1.0):
        low, high = (Fraction(repr(end)) for end in scale)
        return int((Fraction(repr(score)) - low) / (high - low) * MILLION)
    count = round(score * MILLION)
    return count - (count / MILLION > score)


class RatingCollector:
    """Collects ratings, with the place of each, and finds those that contradict an earlier one.

    Raters whose names differ in case only are of one kind. `known` is what the manifests state of them.
    """

    def __init__(self, known: Stated) -> None:
        self._raters: set[str] = set()
        self._ratings: dict[tuple[str, str], tuple[int, tuple[str, str]]] = {}
        self._stated = dict(known)
        self.scale = (0.0, 1.0)

    def add(self, rating: Rating, place: tuple[str, str], number: int) -> list[Fault]:
        """Add a rating of line `number`, or return the faults that forbid it; `place` is (bundle, line)."""
        self.scale = self.scale if self._ratings else rating.scale
        if rating.scale != self.scale:
            expected = "the bounds of the first rating of this variable, {:g} and {:g}".format(*self.scale)
            actual = "{:g} and {:g}".format(*rating.scale)
            return [_fault(number, "/low", "calibration.differs", expected, actual)]
        if len(self._raters) >= MAX_RATERS and rating.rater not in self._raters:
            raise _too_large(f"more than {MAX_RATERS:,} raters")
        faults = []
        score = millionths(rating.score, self.scale)
        self._raters.add(rating.rater)
        earlier, first = self._ratings.setdefault((rating.item, rating.rater), (score, place))
        if first != place and (first[0] == place[0] or earlier != score):
            expected = f"one rating of item {shown(rating.item)} by {shown(rating.rater)}"
            actual = f"a second, the first is at {first[1]}"
            faults.append(_fault(number, "/rater", "calibration.repeated", expected, actual))
        reference = None if rating.reference is None else millionths(rating.reference, self.scale)
        for field, owner, value in (
            ("reference", rating.item, reference),
            ("kind", name_key(rating.rater), rating.kind),
            ("domain", rating.item, rating.domain),
        ):
            if value is None:
                continue
            stated, where = self._stated.setdefault((field, owner), (value, place[1]))
            if stated != value:
                expected, actual = (
                    f"the {field} of {shown(rating.rater if field == 'kind' else owner)} as at {where}",
                    shown(getattr(rating, field)),
                )
                faults.append(_fault(number, f"/{field}", "calibration.differs", expected, actual))
        return faults

    def calibration(self) -> Calibration:
        """Return all ratings, sorted."""
        import numpy as np  # noqa: PLC0415 - heavy

        keys = sorted(self._ratings)
        items, raters = sorted({item for item, _ in keys}), sorted(self._raters)
        kinds: dict[str, Kind] = {name: self._of("kind", name_key(name), "human") for name in raters}
        people: dict[str, list[int]] = {}
        for (item, rater), (score, _) in self._ratings.items():
            if kinds[rater] == "human":
                people.setdefault(item, []).append(score)
        places = [{name: at for at, name in enumerate(names)} for names in (items, raters)]
        return Calibration(
            items=tuple(items),
            domains=tuple(self._of("domain", name) for name in items),
            reference=np.array([self._reference(name, people.get(name, ())) for name in items], np.int64),
            raters=tuple(Rater(name=name, kind=kinds[name]) for name in raters),
            item=np.array([places[0][item] for item, _ in keys], np.int64),
            rater=np.array([places[1][rater] for _, rater in keys], np.int64),
            score=np.array([self._ratings[key][0] for key in keys], np.int64),
            scale=self.scale,
        )

    def _reference(self, item: str, people: Sequence[int]) -> int:
        """Return the reference score of an item: between the scores that `people` gave it, else absent."""
        reference = int(self._of("reference", item, ABSENT))
        return reference if people and min(people) <= reference <= max(people) else ABSENT

    def _of(self, field: str, owner: str, default: Any = None) -> Any:
        return self._stated.get((field, owner), (default,))[0]
