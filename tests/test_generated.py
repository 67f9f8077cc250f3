"""The schemas and the generated tables of the documentation are what the code makes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import jsonschema
import pytest

from certkit.cli.main import main
from certkit.ground import canonical
from certkit.imports import FORMATS
from certkit.record.record import FIELDS, Condition, Outcome
from tests import generate

if TYPE_CHECKING:
    from pathlib import Path

EXPORT = generate.ROOT / "tests" / "data" / "agentdojo" / "export.jsonl"


def test_nothing_differs() -> None:
    differing = [str(path.relative_to(generate.ROOT)) for path in generate.differing()]
    assert differing == [], "run 'make schemas'"


def test_no_schema_is_left_over() -> None:
    names = {path.name.removesuffix(".schema.json") for path in (generate.ROOT / "schemas").glob("*.json")}
    assert names == set(generate.SCHEMAS)


def test_no_page_of_a_command_is_left_over() -> None:
    assert {*generate.CLI.iterdir()} == {*generate.cli_pages()}


def test_every_table_stands_on_a_page() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (generate.ROOT / "docs").rglob("*.md"))
    assert [name for name in generate.TABLES if f"<!-- generated: {name} -->" not in pages] == []


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "records"])
def test_what_an_importer_fills_by_its_table_are_fields_of_a_record(name: str) -> None:
    lines = [line for line in generate.importer(name).splitlines() if line.startswith("| ")]
    words = {word for line in lines[1:] for word in re.findall(r"`([^`]+)`", line.split(" | ")[1])}
    known = {*FIELDS, *Condition, *Outcome}
    assert [word for word in sorted(words) if word not in known and not word.startswith("x_")] == []


@pytest.mark.parametrize("name", generate.SCHEMAS)
def test_a_schema_is_one_and_says_its_name(name: str) -> None:
    path = generate.ROOT / "schemas" / f"{name}.schema.json"
    schema = canonical.loads(path.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == "urn:certkit:" + name.replace(".", ":")


def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(generate.SCHEMAS[name]())


def _document(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, object]:
    code = main([*arguments, "--json"])
    return code, canonical.loads(capsys.readouterr().out.encode())


def test_what_commands_print_fits_the_published_schemas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    assert _document(capsys, "import", "agentdojo", str(EXPORT), "-o", str(bundle))[0] == 0
    code, assessment = _document(capsys, "assess", str(bundle))
    assert code == 4
    _validator("assessment.v1").validate(assessment)
    _validator("bundle.v1").validate(canonical.loads((bundle / "bundle.json").read_bytes()))
    for line in (bundle / "records" / "runs.jsonl").read_bytes().splitlines():
        _validator("record.v1").validate(canonical.loads(line))


def test_errors_fit_the_published_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle"
    assert _document(capsys, "bundle", "init", str(bundle), "--agent", "a", "--version", "1")[0] == 0
    (bundle / "records" / "runs.jsonl").write_bytes(b"\n{}\n")
    failing = (
        (("assess", str(bundle)), 3, "bundle.records-invalid"),
        (("assess", str(tmp_path / "none")), 3, "file.missing"),
        (("assess", str(bundle), "--profile", "none"), 2, "profile.unknown"),
        (("assess",), 2, "usage.option"),
    )
    for arguments, exit_code, code in failing:
        found, document = _document(capsys, *arguments)
        _validator("error.v1").validate(document)
        assert isinstance(document, dict)
        assert (found, document["error"]["code"]) == (exit_code, code)


def test_a_row_of_a_sheet_is_in_the_published_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "runs.csv"
    sheet.write_text(
        'task_id,domain,condition,Result,Note\nt,d,nominal,ok,"two\nlines"\nu,d,nominal,great,\n'
    )
    _, document = _document(capsys, "import", str(sheet), "--agent", "a", "-o", str(tmp_path / "b"))
    _validator("error.v1").validate(document)
    assert isinstance(document, dict)
    assert document["error"]["faults"][1]["row"] == 3
