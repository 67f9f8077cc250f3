"""Small things that a user meets: near commands, counts with their nouns, files that editors know, colour."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from certkit.assessment.assessment import Finding, Severity
from certkit.assessment.profile_file import packaged_profiles
from certkit.assessment.words import finding_text
from certkit.cli import emit
from certkit.ground import canonical
from tests.support import bundles, passports
from tests.support.bundles import run
from tests.support.running import certkit

PACKAGE = Path(__file__).parents[2] / "certkit"
COUNTED = (
    "records|runs|rows|tasks|domains|files|bundles|entries|agents|columns|passports|proofs|days|questions"
)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("asess bundle", ["certkit assess"]),
        ("bundle chek bundle", ["certkit bundle check"]),
        ("seal bundle", ["certkit bundle seal"]),
        ("generate", ["certkit probes generate", "certkit keys generate"]),
        ("xyz", []),
    ],
)
def test_a_command_that_is_not_there_brings_the_near_one(words: str, meant: list[str]) -> None:
    done = certkit(*words.split())
    assert done.code == 2
    assert re.findall(r"^hint: did you mean (.*)\?$", done.err, re.MULTILINE) == meant
    assert "has no command" in done.err.splitlines()[0]


def test_a_passport_that_is_given_to_assess_is_to_be_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("passport.json").write_bytes(passports.issued().to_json())
    done = certkit("assess", "passport.json")
    assert done.code == 3
    assert done.err.splitlines() == [
        "error: passport.json: this is a passport, which is judged already",
        "hint: certkit verify passport.json",
        "hint: certkit show passport.json",
    ]


def test_a_log_that_is_no_passport_is_not_called_one(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_bytes(b'{"a": 1}')
    done = certkit("assess", tmp_path / "log.json")
    assert (done.code, "this is a passport" in done.err) == (3, False)


def test_one_record_is_a_record(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(canonical.line(run(1)))
    out = tmp_path / "bundle"
    assert "1 record of " in certkit("import", log, "--agent", "m", "-o", out).out.splitlines()[0]
    assert "imported             records: 1 record\n" in certkit("bundle", "check", out).out


def test_no_sentence_puts_a_plural_behind_a_number_that_may_be_one() -> None:
    wrong: list[tuple[str, str, str]] = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.JoinedStr):
                continue
            for value, after in zip(node.values, node.values[1:], strict=False):
                if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                    continue
                number = ast.unparse(value.value)
                grouped = value.format_spec is not None and ast.unparse(value.format_spec) == "f','"
                plural = re.match(rf" ({COUNTED})\b", str(after.value))
                if grouped and plural and not re.search(r"[A-Z]{3}", number):  # a constant is more than one
                    wrong.append((path.name, number, str(after.value)))
    assert wrong == []


def test_an_agent_whose_parts_nobody_lists_is_said_so_in_words() -> None:
    code, severity = "components-not-listed", Severity.WARNING
    empty = Finding(code=code, severity=severity, counts={"listed": 0, "unpinned": 0, "names": ()})
    assert finding_text(empty) == "the manifest does not say what the agent is made of"
    loose = Finding(code=code, severity=severity, counts={"listed": 3, "unpinned": 1, "names": ("model m",)})
    assert finding_text(loose) == "components of the agent without a digest: 1 of 3 (model m)"


def test_files_to_fill_in_name_their_schema_for_editors(tmp_path: Path) -> None:
    root = tmp_path / "bundle"
    assert certkit("bundle", "init", root, "--agent", "a", "--version", "1").code == 0
    (root / "records" / "runs.jsonl").write_bytes(bundles.lines([run(1)]))
    for command in (("bundle", "check", root), ("bundle", "seal", root), ("bundle", "check", root)):
        assert certkit(*command).code == 0
        manifest = canonical.loads((root / "bundle.json").read_bytes())
        assert isinstance(manifest, dict)
        assert manifest["$schema"] == manifest["schema"] == "urn:certkit:bundle:v1"
    context = tmp_path / "context.json"
    assert certkit("context", "init", root, "-o", context).code == 0
    assert context.read_bytes().startswith(b'{\n  "$schema": "urn:certkit:context:v1",\n')
    assert certkit("assess", root, "--context", context).code == 4
    again = certkit("context", "init", root, "--from", context, "-o", tmp_path / "again.json")
    assert again.code == 0
    assert b'"editor_schema"' not in (tmp_path / "again.json").read_bytes()


@pytest.mark.parametrize("name", packaged_profiles())
def test_a_profile_to_copy_names_its_schema_for_editors(name: str) -> None:
    assert certkit("profile", "show", name, "--toml").out.startswith("#:schema urn:certkit:profile:v1\n")


def test_a_screen_is_coloured_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["DRIFTED", "an agent\x1b[31m"]
    assert list(emit.coloured(lines, "bold red")) == lines
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    drawn = list(emit.coloured(lines, "bold red"))
    assert [str(line) for line in drawn] == ["DRIFTED", "an agent\\u001b[31m"]
    assert {getattr(line, "style", None) for line in drawn} == {"bold red"}
    assert list(emit.coloured(lines, "")) == lines
