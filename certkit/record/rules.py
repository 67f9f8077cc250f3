"""The closed list of contradictions: combinations of fields that a record may not have.

`contradictions` returns the faults of the records that break a rule. Anything else that is merely odd is a
finding of the assessment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from certkit.record.faults import Fault
from certkit.record.record import ATTACK_FIELDS, FAULT_FIELDS, GRADES
from certkit.record.times import YEARS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from certkit.record.columns import Columns

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
