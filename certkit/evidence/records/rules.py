"""The closed list of contradictions: combinations of fields that a record may not have.

Anything else that is merely odd is a finding of the assessment. `contradictions` returns the rules that a
record breaks. `suspicious` tells for whole columns whether any record might break a rule; where it says yes,
possibly wrongly, the reader calls `contradictions` for each record. Every rule is written in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from certkit.evidence.records.record import (
    ATTACK_FIELDS,
    FAULT_FIELDS,
    GRADES,
    Condition,
    Outcome,
    Record,
    grade_tenths,
    may_be_attacked,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from certkit.evidence.reading.columns import Columns

    Booleans = NDArray[np.bool_]

THOUSAND: Final = 1000


class Contradiction(NamedTuple):
    """A broken rule: the field, the code of the rule, and the words for the user."""

    pointer: str
    code: str
    expected: str
    found: str


def contradictions(record: Record) -> list[Contradiction]:
    """Return the rules that a well-typed record breaks, in the order of the list."""
    return [*_nominal(record), *_attack(record), *_recovery(record), *_steps(record), *_values(record)]


def _nominal(record: Record) -> list[Contradiction]:
    if record.condition != Condition.NOMINAL:
        return []
    return [
        Contradiction(
            f"/{name}", "record.nominal-with-fault", "nothing on a nominal run", _show(record, name)
        )
        for name in (*FAULT_FIELDS, *ATTACK_FIELDS)
        if getattr(record, name) is not None
    ]


def _attack(record: Record) -> list[Contradiction]:
    if record.condition == Condition.NOMINAL or may_be_attacked(record.condition):
        return []
    return [
        Contradiction(
            f"/{name}",
            "record.attack-without-attack-condition",
            f"nothing on a {record.condition} run",
            _show(record, name),
        )
        for name in ATTACK_FIELDS
        if getattr(record, name) is not None
    ]


def _recovery(record: Record) -> list[Contradiction]:
    broken = []
    if record.recovered is not True:
        broken = [
            Contradiction(
                f"/{name}",
                "record.recovery-without-recovered",
                "nothing unless recovered is true",
                _show(record, name),
            )
            for name in ("recovery_steps", "recovery_approach")
            if getattr(record, name) is not None
        ]
    if (
        record.outcome == Outcome.SUCCESS
        and record.recovered is False
        and record.fault_took_hold is not False
    ):
        broken.append(
            Contradiction(
                "/recovered",
                "record.success-not-recovered",
                "true on a success, or fault_took_hold: false",
                "false",
            )
        )
    derived = grade_tenths(record.outcome, record.recovered, record.recovery_approach, record.recovery_steps)
    both = record.recovery_grade is not None and record.recovered is not None and derived is not None
    if both and round((record.recovery_grade or 0) * 10) != derived:
        broken.append(
            Contradiction(
                "/recovery_grade",
                "record.grade-mismatch",
                f"{(derived or 0) / 10:g}, which the recovery fields give",
                _show(record, "recovery_grade"),
            )
        )
    return broken


def _steps(record: Record) -> list[Contradiction]:
    broken = []
    actual, oracle = record.steps_actual, record.steps_oracle
    if actual is not None and oracle is not None and actual < oracle and record.outcome == Outcome.SUCCESS:
        broken.append(
            Contradiction(
                "/steps_actual",
                "record.shorter-than-oracle",
                f"at least steps_oracle ({oracle}) on a success",
                str(actual),
            )
        )
    if actual is not None and record.fault_step is not None and record.fault_step > actual:
        broken.append(
            Contradiction(
                "/fault_step",
                "record.fault-after-end",
                f"at most steps_actual ({actual})",
                str(record.fault_step),
            )
        )
    return broken


def _values(record: Record) -> list[Contradiction]:
    broken = []
    if record.outcome == Outcome.HARNESS_ERROR:
        broken = [
            Contradiction(
                f"/{name}", "record.harness-error-scored", "nothing on a harness_error", _show(record, name)
            )
            for name in ("recovery_grade", "violations", "traceability")
            if getattr(record, name) is not None
        ]
    if record.recovery_grade is not None and record.recovery_grade not in GRADES:
        broken.append(
            Contradiction(
                "/recovery_grade", "record.value", "0, 0.4, 0.7 or 1", _show(record, "recovery_grade")
            )
        )
    score = record.traceability
    if score is not None and round(score * THOUSAND) / THOUSAND != score:
        broken.append(Contradiction("/traceability", "record.value", "at most three decimals", repr(score)))
    return broken


def _show(record: Record, name: str) -> str:
    value = getattr(record, name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def suspicious(columns: Columns) -> bool:
    """Tell whether any record of `columns` might break a rule; False is a proof that none does."""
    checks = (_suspicious_fault, _suspicious_recovery, _suspicious_steps, _suspicious_values)
    return any(bool(broken.any()) for check in checks for broken in check(columns))


def _suspicious_fault(columns: Columns) -> Iterator[Booleans]:
    fault = columns.any_present(FAULT_FIELDS)
    attack = columns.any_present(ATTACK_FIELDS)
    yield columns.nominal & (fault | attack)
    yield attack & ~columns.attackable


def _suspicious_recovery(columns: Columns) -> Iterator[Booleans]:
    if columns.has("recovery_steps", "recovery_approach", "recovered"):
        recovered = columns.ternary("recovered")
        yield (recovered != 1) & columns.any_present(("recovery_steps", "recovery_approach"))
        yield columns.success & (recovered == 0) & (columns.ternary("fault_took_hold") != 0)
    if columns.has("recovery_grade"):
        grade, graded = columns.floating("recovery_grade"), columns.present("recovery_grade")
        derived = columns.derived_grade
        yield graded & ~np.isin(grade, GRADES)
        known = graded & (columns.ternary("recovered") >= 0) & (derived >= 0)
        yield known & (np.rint(grade * 10) != derived)


def _suspicious_steps(columns: Columns) -> Iterator[Booleans]:
    if columns.has("steps_actual"):
        actual, known = columns.integer("steps_actual"), columns.present("steps_actual")
        yield known & columns.success & (actual < columns.integer("steps_oracle"))
        yield known & (columns.integer("fault_step") > actual)


def _suspicious_values(columns: Columns) -> Iterator[Booleans]:
    if columns.harness_error.any():
        yield columns.harness_error & columns.any_present(("recovery_grade", "violations", "traceability"))
    if columns.has("traceability"):
        score = columns.floating("traceability")
        yield columns.present("traceability") & (np.rint(score * THOUSAND) / THOUSAND != score)
