"""Documents that people write: unknown keys and wrong types are all named, by JSON pointer."""

from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from certkit import base, resources
from certkit.errors import InputError


class Part(base.Authored):
    """A part of a document."""

    size: int = 0


class Document(base.Authored):
    """A document with a name that is no Python name."""

    name: str
    parts: tuple[Part, ...] = ()
    from_: str | None = Field(default=None, alias="from")


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
    assert resources.path("templates", "profiles", "hb-eval-2026.toml").is_file()
    assert resources.path("templates", "mappings").is_dir()
    assert (resources.root() / "schemas").is_dir()
