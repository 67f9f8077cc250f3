"""The published JSON Schema and the reader accept and refuse the same records, but for what is listed."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from certkit.ground import canonical, files
from certkit.ground.errors import CODES
from certkit.record.columns import KINDS
from certkit.record.reader import check_line
from certkit.record.record import FIELDS
from tests.support import breaking, strategies
from tests.support.bundles import Run, run
from tests.support.schemas import record_schema

# What a schema of one record cannot say, and the reader says in addition. The first three are rules about
# one value: the calendar, decimals of a score; the others compare fields, which a schema cannot do.
BEYOND_THE_SCHEMA = frozenset(
    {
        ("record.value", "/started_at"),
        ("record.value", "/traceability"),
        *(
            (code, None)
            for code in (
                "record.nominal-with-fault",
                "record.attack-without-attack-condition",
                "record.attack-not-attempted",
                "record.attack-not-landed",
                "record.recovery-without-recovered",
                "record.success-not-recovered",
                "record.shorter-than-oracle",
                "record.fault-after-end",
                "record.grade-mismatch",
                "record.harness-error-scored",
            )
        ),
    }
)


@cache
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(record_schema())
    return Draft202012Validator(record_schema())


def by_schema(record: Any) -> bool:
    return bool(validator().is_valid(record))


def by_reader(record: Any) -> set[tuple[str, str]]:
    result = check_line(canonical.line(record))
    return {(fault.code, fault.pointer) for fault in result} if isinstance(result, list) else set()


def beyond(fault: tuple[str, str]) -> bool:
    return bool({fault, (fault[0], None)} & BEYOND_THE_SCHEMA)


def assert_agree(record: Any) -> None:
    faults = by_reader(record)
    if by_schema(record):
        assert {fault for fault in faults if not beyond(fault)} == set()
    else:
        assert faults != set()


BASE = run(1, condition="stochastic", outcome="failure")
VALUES: dict[str, tuple[Any, ...]] = {
    "string": ("", "a", "a" * 512, "a" * 513, "é" * 512, "\U0001f600" * 512, "a\n", "\u0000", "nominal"),
    "integer": (-1, 0, 1, 1.0, 1.5, 1e3, -0.0, 10**6, 10**6 + 1, 10**6 + 0.0, 2**53 - 1, 1e300, -(10**6)),
    "floating": (
        0,
        1,
        0.0,
        1.0,
        -0.0,
        1.0000001,
        -1e-9,
        5,
        5.001,
        -1.0,
        0.4,
        0.7,
        0.5,
        1e-300,
        3.125,
        3.1256,
    ),
    "ternary": (),
    "time": (
        "2026-01-01T00:00:00Z",
        "2026-01-01t00:00:00.123456789z",
        "2026-01-01 00:00:00+0130",
        "2026-01-01T00:00:00",
        "2026-02-30T00:00:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00Z\n",
        "2026-01-01T00:00:00+01",
        "20260101T000000Z",
        "",
    ),
}
EVERYWHERE: tuple[Any, ...] = (None, True, False, 0, 1, 1.5, "", "1", "success", [], [1], {}, {"a": 1})
CONDITIONS = ("nominal", "x_a", "x_", "x_A", "x_" + "a" * 62, "x_" + "a" * 63, "x_a\n", "Nominal", " nominal")
DIGESTS = (
    "sha256:" + "a" * 64,
    "sha256:" + "A" * 64,
    "sha256:" + "a" * 64 + "\n",
    "a" * 64,
    "sha256:" + "a" * 63,
)
OWN: dict[str, tuple[Any, ...]] = {
    "condition": CONDITIONS,
    "trace": DIGESTS,
    "outcome": ("success", "failure", "safe_halt", "harness_error", "Success", "won"),
    "split": ("standard", "novel_fault", "novel"),
    "recovery_approach": ("correct", "minor_deviation", "repeated_attempts", "other"),
    "measured": ("derived", "asserted", "guessed"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_holds_the_same_values_for_both(name: str) -> None:
    tried = [*EVERYWHERE, *VALUES[KINDS[name]], *OWN.get(name, ())]
    answers = set()
    for value in tried:
        record = BASE | {name: value}
        assert_agree(record)
        answers.add(by_schema(record))
    assert answers == {True, False}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_may_be_left_out_for_both_or_for_neither(name: str) -> None:
    full = BASE | {"condition": "stochastic"}
    record = {key: value for key, value in full.items() if key != name}
    assert_agree(record)
    assert by_schema(record) == (name not in {"run_id", "domain", "task_id", "condition", "outcome"})


@pytest.mark.parametrize(
    "name",
    [
        "x_a",
        "x_A9_",
        "x_" + "a" * 126,
        "x_" + "a" * 127,
        "x_",
        "x_a\n",
        "X_a",
        "x-a",
        "x_é",
        "",
        "Run_id",
        " run_id",
    ],
)
@pytest.mark.parametrize("value", [None, 1, {"a": [1]}])
def test_names_of_the_users_own(name: str, value: Any) -> None:
    record = BASE | {name: value}
    assert_agree(record)
    assert by_schema(record) == (by_reader(record) == set())


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "record", [], [{}]])
def test_only_an_object_is_a_record(value: Any) -> None:
    assert not by_schema(value)
    assert by_reader(value) == {("record.json", "")}


@settings(max_examples=80, deadline=None)
@given(st.builds(dict, strategies.runs()))
def test_every_valid_record_is_valid_for_both(record: Run) -> None:
    record = {"run_id": "1"} | record
    assert by_schema(record)
    assert by_reader(record) == set()


@settings(max_examples=100, deadline=None)
@given(strategies.runs(), st.sampled_from(FIELDS), st.data())
def test_a_field_with_some_other_value_is_judged_alike(record: Run, name: str, data: st.DataObject) -> None:
    value = data.draw(st.sampled_from([*EVERYWHERE, *VALUES[KINDS[name]], *OWN.get(name, ())]))
    assert_agree({"run_id": "1"} | record | {name: value})


@settings(max_examples=80, deadline=None)
@given(breaking.broken_records())
def test_what_the_schema_accepts_and_the_reader_refuses_is_on_the_list(broken: breaking.Broken) -> None:
    assert_agree(broken.record)
    assert not by_schema(broken.record) or beyond((broken.code, broken.pointer))


def test_every_exception_is_really_one() -> None:
    """An entry of the list that nothing needs would hide a difference."""
    needed = set()
    stochastic = {"condition": "stochastic", "outcome": "success"}
    for fields in (
        {"started_at": "2026-02-30T00:00:00Z"},
        {"traceability": 3.0005},
        {"condition": "nominal", "fault_step": 1},
        {"attack_landed": True},
        {"condition": "adversarial", "attack_attempted": False, "attack_landed": True},
        {"condition": "adversarial", "attack_landed": False, "attack_succeeded": True},
        {"recovery_steps": 1},
        stochastic | {"recovered": False},
        stochastic | {"steps_actual": 1, "steps_oracle": 2},
        {"steps_actual": 1, "fault_step": 2},
        stochastic | {"recovered": True, "recovery_approach": "repeated_attempts", "recovery_grade": 1},
        {"outcome": "harness_error", "violations": 0},
    ):
        record = BASE | fields
        assert by_schema(record), fields
        needed |= by_reader(record)
    for code, pointer in BEYOND_THE_SCHEMA:
        assert code in CODES
        assert any(code == found and pointer in {None, place} for found, place in needed), code


def test_the_schema_names_every_field_and_nothing_else() -> None:
    document = record_schema()
    assert tuple(document["properties"]) == FIELDS
    assert document["additionalProperties"] is False
    assert all(field.get("description") for field in document["properties"].values())


def test_the_committed_schema_is_the_one_of_the_types() -> None:
    path = files.packaged("schemas", "record.v1.schema.json")
    if not path.is_file():
        pytest.skip("the schemas have not been written into schemas/ yet")
    assert canonical.loads(path.read_bytes()) == canonical.loads(canonical.line(record_schema()))
