"""Every document that a command prints has a published schema, and fits it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import pytest

from certkit.assessment.recheck import parse
from certkit.bundle.folder import seal
from certkit.bundle.identity import accumulation_digest
from certkit.ground import canonical, files, toml
from tests import generate
from tests.support.bundles import of, run
from tests.support.script import LEAVES, REFUSED

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Done

PUBLISHED_ELSEWHERE: Final = {
    "agent-passport": "a predicate type; its schema stands in passport.v1 at the payload",
}


@pytest.fixture(scope="module")
def printed(script: tuple[Path, list[tuple[str, Done]]]) -> list[tuple[str, dict[str, Any]]]:
    """Every command of the script with the document that it printed."""
    _, ran = script
    assert {line for line, done in ran if "error" in done.document} == REFUSED
    return [(line, done.document) for line, done in ran]


def test_what_every_command_prints_fits_its_published_schema(
    printed: list[tuple[str, dict[str, Any]]],
) -> None:
    failed = {}
    for line, document in printed:
        name = document["schema"].removeprefix("urn:certkit:").replace(":", ".")
        validator = jsonschema.Draft202012Validator(generate.SCHEMAS[name]())
        faults = [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(document)]
        if faults:
            failed[line] = faults[:5]
    assert failed == {}


def test_every_command_is_in_the_script(printed: list[tuple[str, dict[str, Any]]]) -> None:
    run_here = {leaf for leaf in LEAVES for line, _ in printed if re.match(rf"{re.escape(leaf)}(\s|$)", line)}
    assert set(LEAVES) - run_here == set()


def test_every_schema_that_the_code_names_is_published() -> None:
    named = set()
    for path in (generate.ROOT / "certkit").rglob("*.py"):
        named |= set(re.findall(r"urn:certkit:([a-z0-9-]+):v1", path.read_text(encoding="utf-8")))
    published = {name.removesuffix(".v1") for name in generate.SCHEMAS}
    assert named - published == set(PUBLISHED_ELSEWHERE)


def test_every_command_prints_a_schema_of_its_own_or_a_shared_one(
    printed: list[tuple[str, dict[str, Any]]],
) -> None:
    used = {document["schema"].split(":")[2] for _, document in printed}
    files = {
        "accumulation",
        "argument",
        "bundle",
        "calibration",
        "claims",
        "context",
        "passport",
        "profile",
        "record",
    }
    files.add("status")
    files |= {f"integrity-{part}" for part in ("inventory", "task", "run", "answer", "annotation")}
    assert {name.removesuffix(".v1") for name in generate.SCHEMAS} - used - files == set()


def test_closed_schemas_refuse_a_key_too_many_and_one_too_few(
    printed: list[tuple[str, dict[str, Any]]],
) -> None:
    for line, document in printed:
        name = document["schema"].removeprefix("urn:certkit:").replace(":", ".")
        validator = jsonschema.Draft202012Validator(generate.SCHEMAS[name]())
        assert not validator.is_valid(document | {"surprise": 1}), line
        assert not validator.is_valid({key: value for key, value in document.items() if key != "schema"}), (
            line
        )


def test_packaged_claims_fit_the_schema_of_claims() -> None:
    validator = jsonschema.Draft202012Validator(generate.SCHEMAS["claims.v1"]())
    for path in files.packaged("templates", "recheck").glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        table = toml.loads(text, code="recheck.invalid", where=path.name, parse_float=str)
        validator.validate(table)
        assert not validator.is_valid(table | {"claims": [{"id": "x", "kind": "surprise"}]})
        parse(text, path.name)


def test_the_identity_of_pooled_bundles_is_the_digest_of_its_document(tmp_path: Path) -> None:
    roots = [of(tmp_path / name, [run(name, sequence=None)]) for name in "ab"]
    digests = [seal(root).facts.digest for root in roots]
    document = {"schema": "urn:certkit:accumulation:v1", "bundles": list(digests)}
    jsonschema.Draft202012Validator(generate.SCHEMAS["accumulation.v1"]()).validate(document)
    assert accumulation_digest(digests) == canonical.digest(canonical.canonical(document))
