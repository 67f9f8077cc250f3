"""Every document that a command prints names its schema, and fits it where it is published."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from certkit.bundle.identity import accumulation_digest
from certkit.bundle.writer import seal
from certkit.ground import canonical
from tests import generate
from tests.support.bundles import of, run
from tests.support.script import LEAVES, REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Done


@pytest.fixture(scope="module")
def printed(script: tuple[Path, list[tuple[str, Done]]]) -> list[tuple[str, dict[str, Any]]]:
    """Every command of the script with the document that it printed."""
    _, ran = script
    assert {line for line, done in ran if "error" in done.document} == REFUSED
    return [(line, done.document) for line, done in ran]


def published(printed: list[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield every line whose document has a published schema, with the document and its validator."""
    for line, document in printed:
        name = document["schema"].removeprefix("urn:certkit:").replace(":", ".")
        if name in generate.SCHEMAS:
            yield line, document, jsonschema.Draft202012Validator(generate.SCHEMAS[name]())


def test_what_a_command_prints_fits_its_published_schema(printed: list[tuple[str, dict[str, Any]]]) -> None:
    failed = {}
    for line, document, validator in published(printed):
        faults = [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(document)]
        if faults:
            failed[line] = faults[:5]
    assert failed == {}


def test_every_document_names_its_schema_first(printed: list[tuple[str, dict[str, Any]]]) -> None:
    for line, document in printed:
        assert next(iter(document)) == "schema", line
        assert re.fullmatch(r"urn:certkit:[a-z-]+:v1", document["schema"]), line


def test_every_command_is_in_the_script(printed: list[tuple[str, dict[str, Any]]]) -> None:
    run_here = {leaf for leaf in LEAVES for line, _ in printed if re.match(rf"{re.escape(leaf)}(\s|$)", line)}
    assert set(LEAVES) - run_here == set()


def test_closed_schemas_refuse_a_key_too_many_and_one_too_few(
    printed: list[tuple[str, dict[str, Any]]],
) -> None:
    for line, document, validator in published(printed):
        assert not validator.is_valid(document | {"surprise": 1}), line
        assert not validator.is_valid({key: value for key, value in document.items() if key != "schema"}), (
            line
        )


def test_the_identity_of_pooled_bundles_is_the_digest_of_its_document(tmp_path: Path) -> None:
    roots = [of(tmp_path / name, [run(name, sequence=None)]) for name in "ab"]
    digests = [seal(root).facts.digest for root in roots]
    document = {"schema": "urn:certkit:accumulation:v1", "bundles": list(digests)}
    assert accumulation_digest(digests) == canonical.digest(canonical.canonical(document))
