"""The closed list of contradictions: combinations of fields that a record may not have.

`contradictions` returns the faults of the records that break a rule. Anything else that is merely odd is a
finding of the assessment.

`parse_times` reads RFC 3339 times of a common form, many at once, as microseconds since 1970-01-01 UTC; for
all others it returns None, and the slow reader decides, which accepts exactly what the published schema and
the calendar allow.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from certkit.record.faults import Fault
from certkit.record.record import ATTACK_FIELDS, FAULT_FIELDS, GRADES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from certkit.record.columns import Columns

    Integers = NDArray[np.int64]

THOUSAND: Final = 1000


class _Rule(NamedTuple):
    """The records in `broken` may not have what stands in `field`; `fill` completes `expected` per record."""

    field: str
    code: str
    expected: str
    broken: NDArray[np.bool_]
    fill: Any = None
    hint: str = ""


def contradictions(columns: Columns, lines: Sequence[int]) -> list[Fault]:
    """Return the faults of well-typed records, which stand on `lines`, in their order."""
    faults = [
        Fault(
            line=lines[row],
            pointer=f"/{rule.field}",
            code=rule.code,
            expected=rule.expected if rule.fill is None else rule.expected.format(rule.fill[row]),
            found=_shown(columns, rule.field, row),
            hint=rule.hint,
        )
        for rules in (_conditions, _recoveries, _steps, _values)
        for rule in rules(columns)
        for row in np.flatnonzero(rule.broken).tolist()
    ]
    return sorted(faults, key=lambda fault: (fault.line, fault.pointer, fault.code))


def _shown(columns: Columns, field: str, row: int) -> str:
    if field == "started_at":
        return "an earlier or later time"
    if field not in columns.numbers:
        return str(columns.text(field)[row])
    value = columns.numbers[field][row].item()
    if columns.numbers[field].dtype == np.int8:
        return "true" if value else "false"
    return repr(value).removesuffix(".0")


def _conditions(columns: Columns) -> Iterator[_Rule]:
    for name in (*FAULT_FIELDS, *ATTACK_FIELDS):
        if columns.has(name):
            broken = columns.nominal & columns.present(name)
            yield _Rule(name, "record.nominal-with-fault", "nothing on a nominal run", broken)
    for name in ATTACK_FIELDS:
        if columns.has(name):
            broken = ~columns.nominal & ~columns.attackable & columns.present(name)
            expected, conditions = "nothing on a {} run", columns.text("condition")
            yield _Rule(name, "record.attack-without-attack-condition", expected, broken, conditions)
    attempted, landed, won = (columns.number(name) == 1 for name in ATTACK_FIELDS)
    never_made = "an attack that was never made cannot land or succeed"
    never_met = "an attack that never reached the agent cannot succeed"
    for name, code, broken, hint in (
        ("attack_attempted", "record.attack-not-attempted", ~attempted & (landed | won), never_made),
        ("attack_landed", "record.attack-not-landed", ~landed & won, never_met),
    ):
        if columns.has(name):
            stated = columns.present(name) & broken
            expected = "true or nothing where a later step of the attack is true"
            yield _Rule(name, code, expected, stated, hint=f"{hint}: leave {name} out if unknown")


def _recoveries(columns: Columns) -> Iterator[_Rule]:
    if not columns.has("recovery_steps", "recovery_approach", "recovered", "recovery_grade"):
        return
    recovered = columns.number("recovered")
    for name in ("recovery_steps", "recovery_approach"):
        broken = (recovered != 1) & columns.present(name)
        yield _Rule(name, "record.recovery-without-recovered", "nothing unless recovered is true", broken)
    broken = columns.success & (recovered == 0) & (columns.number("fault_took_hold") != 0)
    expected = "true on a success, or fault_took_hold: false"
    hint = (
        "say fault_took_hold: false where the fault had no effect, else leave recovered out of these runs;"
        " in a mapping, under `[when.recovered]` instead of `[columns]`: `true = \"RECOVERED == 'yes'\"` and"
        " `false = \"RECOVERED == 'no' and RESULT != 'pass'\"`"
    )
    yield _Rule("recovered", "record.success-not-recovered", expected, broken, hint=hint)
    grade, graded = columns.number("recovery_grade"), columns.present("recovery_grade")
    derived = columns.derived_grade
    broken = graded & (recovered >= 0) & (derived >= 0) & (np.rint(grade * 10) != derived)
    expected = "{:g}, which the recovery fields give"
    yield _Rule("recovery_grade", "record.grade-mismatch", expected, broken, derived / 10)
    highest = columns.highest_grade / 10
    known = np.isin(grade, GRADES)
    expected = "at most {:g}, which the recovery fields allow"
    broken = known & (derived < 0) & (grade > highest)
    yield _Rule("recovery_grade", "record.grade-mismatch", expected, broken, highest)
    yield _Rule("recovery_grade", "record.value", "0, 0.4, 0.7 or 1", graded & ~known)


def _steps(columns: Columns) -> Iterator[_Rule]:
    if not columns.has("steps_actual"):
        return
    actual, known = columns.number("steps_actual"), columns.present("steps_actual")
    oracle = columns.number("steps_oracle")
    broken = known & columns.success & (actual < oracle)
    expected = "at least steps_oracle ({}) on a success"
    yield _Rule("steps_actual", "record.shorter-than-oracle", expected, broken, oracle)
    broken = known & (columns.number("fault_step") > actual)
    yield _Rule("fault_step", "record.fault-after-end", "at most steps_actual ({})", broken, actual)


def _values(columns: Columns) -> Iterator[_Rule]:
    if columns.times is not None:
        broken = (columns.times < YEARS[0]) | (columns.times > YEARS[1])
        broken &= columns.present("started_at")
        yield _Rule("started_at", "record.value", "a time that in UTC too is of the years 1 to 9999", broken)
    for name in ("recovery_grade", "violations", "traceability"):
        if columns.has(name):
            broken = columns.harness_error & columns.present(name)
            expected = "nothing on a harness_error, where the test rig broke"
            hint = f"leave {name} out of these runs, or call them failure where the agent failed, not the rig"
            yield _Rule(name, "record.harness-error-scored", expected, broken, hint=hint)
    if columns.has("traceability"):
        score = columns.number("traceability")
        broken = columns.present("traceability") & (np.rint(score * THOUSAND) / THOUSAND != score)
        yield _Rule("traceability", "record.value", "at most three decimals", broken)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FORM: Final = b"0000-00-00T00:00:00.000000"
_SECONDS: Final = len("2026-01-31T12:00:00")
YEARS: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Microseconds from the first moment of year 1 to the last of year 9999."""

_DAY: Final = np.frombuffer(b"1970-01-01T", np.uint8)


def of(time: datetime) -> int:
    """Return an aware datetime in microseconds since 1970-01-01 UTC."""
    return (time - _EPOCH) // _MICROSECOND


def parse_times(texts: Sequence[str]) -> Integers | None:
    """Return times of equal length and form, or None where any has an uncommon form."""
    length = len(texts[0])
    data = "".join(texts).upper().replace(" ", "T").encode()
    if len(data) != length * len(texts):
        return None
    marks = np.frombuffer(data, np.uint8).reshape(-1, length)
    zone = b"Z" if (marks[:, -1] == ord("Z")).all() else b"+00:00"
    end = length - len(zone)
    # Finer fractions than microseconds must be rounded; the slow reader does that.
    if not _SECONDS <= end <= len(_FORM) or end == _SECONDS + 1:
        return None
    form = np.frombuffer(_FORM[:end] + zone, np.uint8)
    # What is below the digit 0 wraps around.
    formed = np.where(form == ord("0"), marks - ord("0") <= 9, marks == form)  # noqa: PLR2004 - a digit
    formed[:, end] |= (marks[:, end] == ord("-")) & (zone != b"Z")
    if not formed.all():
        return None
    try:
        times = _moments(marks[:, :end])
        if times.min() < YEARS[0]:
            return None
        if zone != b"Z":
            clock = np.hstack([np.broadcast_to(_DAY, (len(texts), len(_DAY))), marks[:, end + 1 :]])
            times -= np.where(marks[:, end] == ord("-"), -1, 1) * _moments(clock)
    except ValueError:
        return None
    return times


def _moments(marks: NDArray[np.uint8]) -> Integers:
    """Return local times, a row of characters each, in microseconds; raise `ValueError` where one is none."""
    texts = np.ascontiguousarray(marks).view(f"S{marks.shape[1]}")[:, 0]
    return texts.astype("datetime64[us]").astype(np.int64)
