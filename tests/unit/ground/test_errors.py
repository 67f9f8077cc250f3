"""The error tree: every code is documented, raised somewhere, and printed in the same shape."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from certkit.ground.errors import CODES, CertkitError, Exit, InputError, UsageError
from certkit.record.faults import Fault, Faults, RecordFaultsError
from tests import generate

PACKAGE = Path(__file__).parents[3] / "certkit"


def strings(path: Path) -> set[str]:
    """Return every string literal of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_documented_code_is_raised_somewhere() -> None:
    used: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name != "errors.py":
            used |= strings(path)
    assert set(CODES) - used == set()


def test_every_code_in_the_source_is_documented() -> None:
    rooms = {code.partition(".")[0] for code in CODES}
    shape = re.compile(rf"({'|'.join(rooms)})\.[a-z]+[0-9]*(-[a-z]+)*\Z")
    files = (".json", ".jsonl", ".html", ".pdf", ".db", ".toml", ".pem")
    # The tables of `__init__` files name modules, some of which look like codes.
    modules = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    used = {text for path in modules for text in strings(path) if shape.match(text)}
    assert {text for text in used - set(CODES) if not text.endswith(files)} == set()


def test_codes_and_meanings_are_words() -> None:
    for code, meaning in CODES.items():
        assert re.fullmatch(r"[a-z]+\.[a-z]+[0-9]*(-[a-z]+)*", code)
        assert meaning == meaning.strip()
        assert not meaning.endswith(".")


def test_an_undocumented_code_cannot_be_raised() -> None:
    with pytest.raises(AssertionError, match=r"no\.such-code"):
        CertkitError("no.such-code", "never")
    fault = Fault(line=1, pointer="", code="no.such-code", expected="a", found="b")
    with pytest.raises(AssertionError, match=r"no\.such-code"):
        RecordFaultsError(Faults([fault]))


def test_exit_codes_are_the_published_ones() -> None:
    assert {item.value for item in Exit} == {0, 1, 2, 3, 4, 5, 6, 7, 8, 70}
    assert set(generate.EXIT_MEANING) == set(Exit)
    assert UsageError("usage.option", "x").exit_code == 2
    assert InputError("json.syntax", "x").exit_code == 3
    assert CertkitError("internal.bug", "x").exit_code == 70


def test_an_error_says_where_first() -> None:
    error = InputError("json.syntax", "cut off", where="a.json", hint="ask its sender")
    assert str(error) == "a.json: cut off"
    assert error.to_dict() == {
        "code": "json.syntax",
        "message": "cut off",
        "where": "a.json",
        "hint": "ask its sender",
    }
    assert InputError("json.syntax", "cut off").to_dict() == {"code": "json.syntax", "message": "cut off"}


def test_faults_are_listed_with_their_total() -> None:
    fault = Fault(
        file="records/a.jsonl", line=3, pointer="/x", code="record.type", expected="an integer", found='"8"'
    )
    shown = 'records/a.jsonl:3 /x: expected an integer, found "8" [record.type]'
    one = RecordFaultsError(Faults([fault]))
    assert str(one) == f"1 problem in the records\n  {shown}"
    faults = Faults([fault] * 1234)
    many = RecordFaultsError(faults)
    assert str(many).splitlines() == [
        "1,234 problems in the records",
        '  1,234 rows (first records/a.jsonl:3) /x: expected an integer, found "8" [record.type]',
    ]
    assert many.to_dict()["total"] == 1234
    assert many.to_dict()["faults"] == 50 * [
        {
            "file": "records/a.jsonl",
            "line": 3,
            "pointer": "/x",
            "code": "record.type",
            "expected": "an integer",
            "found": '"8"',
        }
    ]
    assert many.exit_code == 3


def test_a_refusal_carries_its_hint_into_a_traceback() -> None:
    assert UsageError("usage.option", "no", hint="say yes").__notes__ == ["hint: say yes"]
    assert not hasattr(UsageError("usage.option", "no"), "__notes__")
