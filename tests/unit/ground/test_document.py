"""Documents as structs: what is written of each kind of value, and the schema that says the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from certkit.ground import canonical, document
from certkit.ground.base import Authored
from tests.support import schemas

SHA = "sha256:" + 64 * "a"


@pytest.mark.parametrize(("kind", "text"), [(document.Digest, SHA), (document.Hash, SHA[7:])])
def test_a_digest_ends_with_its_last_digit(kind: Any, text: str) -> None:
    assert msgspec.convert(text, kind) == text
    for more in ("\n", "0", " "):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(text + more, kind)


class Colour(StrEnum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Code(IntEnum):
    """An exit code."""

    BAD = 3


class Author(Authored):
    """Who wrote it."""

    name: str
    year: int | None = None


class Inner(Struct, frozen=True, kw_only=True):
    """A part that is no `Part`.

    What the second paragraph says is for readers of the code.
    """

    value: Fraction | None = None
    colour: Colour = Colour.RED


class Told(document.Part, frozen=True, kw_only=True):
    """A part with counts of its own."""

    counts: Annotated[Mapping[str, int], document.BESIDE]
    source: document.Text


class Sample(document.Document, frozen=True, kw_only=True, tag="urn:certkit:sample:v1"):
    """All kinds of values
    in one document.
    """

    digest: document.Digest
    n: Annotated[document.Count, Meta(description="how many")]
    share: document.Share | None
    inner: Inner
    at: document.Time
    path: document.GivenPath
    code: Code
    by_tier: Mapping[int, tuple[float, ...]]
    by_colour: Mapping[Colour, bool]
    author: Author
    told: Told
    state: Literal["on", "off"]
    reason: str | UnsetType = UNSET


class Signed(document.Document, frozen=True, kw_only=True, tag="urn:certkit:signed:v1"):
    """A document whose author stands in it."""

    author: Annotated[Author, document.BESIDE]
    told: Annotated[Told, document.BESIDE]


SAMPLE = Sample(
    digest=SHA,
    n=2,
    share=0.5,
    inner=Inner(value=Fraction(1, 3)),
    at=datetime(2026, 1, 31, 14, 0, 0, 250000, tzinfo=timezone(timedelta(hours=2))),
    path=Path("a/b"),
    code=Code.BAD,
    by_tier={1: (0.25, 1.0)},
    by_colour={Colour.BLUE: True},
    author=Author(name="Ada"),
    told=Told(counts={"yes": 1}, source="here"),
    state="on",
)
WRITTEN: dict[str, Any] = {
    "schema": "urn:certkit:sample:v1",
    "digest": SHA,
    "n": 2,
    "share": 0.5,
    "inner": {"value": 1 / 3, "colour": "red"},
    "at": "2026-01-31T12:00:00.250000Z",
    "path": "a/b",
    "code": 3,
    "by_tier": {"1": [0.25, 1.0]},
    "by_colour": {"blue": True},
    "author": {"name": "Ada", "year": None},
    "told": {"yes": 1, "source": "here"},
    "state": "on",
}


def validator(kind: type[document.Document]) -> jsonschema.Draft202012Validator:
    schema = schemas.schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )


def test_every_kind_of_value_is_written_by_its_rule() -> None:
    made = SAMPLE.to_dict()
    assert made == WRITTEN
    assert list(made) == list(WRITTEN)
    assert canonical.loads(canonical.canonical(made)) == made  # nothing but JSON values, lists for tuples


def test_what_is_written_fits_the_schema() -> None:
    validator(Sample).validate(WRITTEN)
    validator(Sample).validate(WRITTEN | {"reason": "said", "share": None})


@pytest.mark.parametrize(
    "change",
    [
        {"surprise": 1},
        {"schema": "urn:certkit:other:v1"},
        {"digest": "sha256:ab"},
        {"n": -1},
        {"share": 1.5},
        {"inner": {"value": 1.0}},
        {"inner": {"value": "1/3", "colour": "red"}},
        {"inner": {"value": None, "colour": "green"}},
        {"inner": {"value": None, "colour": "red", "surprise": 1}},
        {"by_colour": {"blue": 1}},
        {"author": {"year": 3}},
        {"told": {"yes": 1}},
        {"state": "else"},
        {"reason": None},
    ],
)
def test_what_the_types_do_not_allow_does_not_fit(change: dict[str, Any]) -> None:
    assert not validator(Sample).is_valid(WRITTEN | change)


@pytest.mark.parametrize("key", sorted(WRITTEN))
def test_every_key_is_required_unless_it_may_be_unset(key: str) -> None:
    assert not validator(Sample).is_valid({name: item for name, item in WRITTEN.items() if name != key})


def test_a_schema_names_itself_and_speaks_in_the_words_of_the_docstrings() -> None:
    made = schemas.schema_of(Sample)
    assert made["$id"] == "urn:certkit:sample:v1"
    assert (made["title"], made["description"]) == ("certkit sample", "All kinds of values in one document.")
    assert made["properties"]["n"]["description"] == "how many"
    assert made["$defs"]["Inner"]["description"] == "A part that is no `Part`."
    assert schemas.name_of(Sample) == "sample.v1"


def test_fields_beside_stand_in_the_object_which_keeps_its_own_keys() -> None:
    told = Told(counts={"schema": 1, "name": 2, "yes": 3}, source="here")
    made = Signed(author=Author(name="Ada"), told=told).to_dict()
    assert made == {
        "schema": "urn:certkit:signed:v1",
        "name": "Ada",
        "year": None,
        "yes": 3,
        "source": "here",
    }
    validator(Signed).validate(made)
    assert not validator(Signed).is_valid({key: item for key, item in made.items() if key != "name"})


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, datetime(2026, 1, 31), object(), 1j])  # noqa: DTZ001 - naive
def test_what_has_no_rule_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no rule"):
        document.to_builtins({"a": [value]})


def test_a_time_in_utc_without_a_fraction_of_a_second() -> None:
    assert document.to_builtins(datetime(2026, 1, 31, 12, tzinfo=UTC)) == "2026-01-31T12:00:00Z"


def test_a_document_without_a_urn_is_refused() -> None:
    class Nameless(document.Document, frozen=True, kw_only=True):
        """It forgot its tag."""

    with pytest.raises(TypeError, match="Nameless names no schema"):
        schemas.schema_of(Nameless)


def test_documents_load_nothing_heavy() -> None:
    code = "import sys, certkit.ground.document; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} & {
        "pydantic",
        "numpy",
        "jsonschema",
    } == set()
