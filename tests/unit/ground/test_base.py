"""Documents that people write: unknown keys and wrong types are all named, by JSON pointer."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, Field, ValidationError

from certkit.ground import base, files
from certkit.ground.errors import InputError


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("an even number is wanted")
    return value


class Part(base.Authored):
    """A part of a document."""

    size: int = 0


class Document(base.Authored):
    """A document with a name that is no Python name."""

    name: str
    parts: tuple[Part, ...] = ()
    from_: str | None = Field(default=None, alias="from")


class Misspelt(base.Authored):
    """A document whose parts lie in lists and mappings."""

    name: str = ""
    from_: str | None = Field(default=None, alias="from")
    parts: tuple[Part, ...] = ()
    by_name: dict[str, Part] = Field(default_factory=dict)


class Forms(base.Authored):
    """A document whose values may have several forms."""

    counts: int | tuple[int, ...] = 0
    kinds: dict[str, Literal["a", "b"] | Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    nested: Part | tuple[Part, ...] | None = None
    even: Annotated[int, AfterValidator(_even)] = 0


def read(value: object) -> Document:
    return base.validate(Document, value, code="profile.invalid", where="mine.toml")


def test_a_document_is_read_into_a_frozen_type() -> None:
    document = read({"name": "a", "parts": [{"size": 1}], "from": "x"})
    assert document == Document(name="a", parts=(Part(size=1),), **{"from": "x"})
    with pytest.raises(ValidationError, match="frozen"):
        document.name = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({}, "/name"),
        ({"name": 1}, "/name"),
        ({"name": "a", "surprise": 1}, "/surprise"),
        ({"name": "a", "from_": "x"}, "/from_"),
        ({"name": "a", "parts": [{}, {"size": "1"}]}, "/parts/1/size"),
        ({"name": "a", "parts": [{"size": 1.5}]}, "/parts/0/size"),
        ({"name": "a", "parts": [{"size": True}]}, "/parts/0/size"),
        ({"name": "a", "a/b~c": 1}, "/a~1b~0c"),
        ([], "/"),
        (None, "/"),
    ],
)
def test_a_fault_is_named_by_its_pointer(value: object, pointer: str) -> None:
    with pytest.raises(InputError) as caught:
        read(value)
    assert caught.value.code == "profile.invalid"
    assert str(caught.value).startswith(f"mine.toml: {pointer}: ")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"counts": "x"}, "/counts: input should be a valid integer or a valid array, found 'x'"),
        ({"counts": [1, "x"]}, "/counts/1: input should be a valid integer, found 'x'"),
        ({"kinds": {"k/2": "c"}}, "/kinds/k~12: input should be 'a' or 'b' or a valid integer, found 'c'"),
        ({"kinds": {"": 0}}, "/kinds/: input should be 'a' or 'b' or greater than or equal to 1, found 0"),
        ({"nested": {"size": "1"}}, "/nested/size: input should be a valid integer, found '1'"),
        ({"nested": [{}, {"size": "1"}]}, "/nested/1/size: input should be a valid integer, found '1'"),
        ({"nested": [{"missing": 1}]}, "/nested/0/missing: extra inputs are not permitted, found 1"),
        ({"nested": 1}, "/nested: input should be an object or a valid array, found 1"),
        ({"even": 1}, "/even: an even number is wanted, found 1"),
    ],
)
def test_a_fault_says_what_would_do_and_nothing_of_how_it_is_read(
    value: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        base.validate(Forms, value, code="profile.invalid", where="mine.toml")
    assert str(caught.value) == f"mine.toml: {said}"


@pytest.mark.parametrize(
    ("value", "place", "meant"),
    [
        ({"nme": 1}, "/nme", "name"),
        ({"fromm": 1}, "/fromm", "from"),
        ({"parts": [{"sise": 1}]}, "/parts/0/sise", "size"),
        ({"parts": [{"nam": 1}]}, "/parts/0/nam", None),
        ({"by_name": {"size": {"sise": 1}}}, "/by_name/size/sise", "size"),
    ],
)
def test_the_key_that_a_misspelt_one_stands_for_is_named(
    value: dict[str, object], place: str, meant: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        base.validate(Misspelt, value, code="profile.invalid", where="mine.toml")
    hint = f" (did you mean {meant}?)" if meant else ""
    assert str(caught.value) == f"mine.toml: {place}: extra inputs are not permitted{hint}, found 1"


def test_many_unknown_keys_are_compared_with_nothing() -> None:
    with pytest.raises(InputError) as caught:
        read({"name": "a"} | {f"nam{number}": 1 for number in range(101)})
    assert "did you mean" not in str(caught.value)


def test_all_faults_are_listed() -> None:
    with pytest.raises(InputError) as caught:
        read({"parts": [{"size": "1"}], "surprise": "x" * 100})
    message = str(caught.value)
    assert message.splitlines()[0] == "mine.toml: 3 faults"
    assert {row.strip().partition(":")[0] for row in message.splitlines()[1:]} == {
        "/name",
        "/parts/0/size",
        "/surprise",
    }
    assert max(map(len, message.splitlines())) < 140


@pytest.mark.parametrize(
    "value", [{"name": float("nan")}, {"name": "\ud800"}, {"name": b"a"}, {"name": {1, 2}}]
)
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(InputError) as caught:
        read(value)
    assert caught.value.code == "profile.invalid"


def test_schemas_and_templates_are_found() -> None:
    assert files.packaged("templates", "profiles", "hb-eval-2026.toml").is_file()
    assert files.packaged("templates", "mappings").is_dir()
    assert (files.root() / "schemas").is_dir()
