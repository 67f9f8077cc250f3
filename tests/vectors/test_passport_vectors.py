"""Language-neutral cases of passports: ``passport/*.json``, each ``{"format": "passport", "cases": […]}``.

A case is a file, a trust policy and a question, and says how the verification ends:

- `file`: parts of text that are put together, each `times` over (left out: once), in UTF-8;
- `trust`: the content of ``trust.json``; `at`: the time of verification;
- `agent`, `domain`, `require_tier`: what else is asked, where it is;
- `expected`: `verdict`, the first failing `step` and its `code`, and the `exit_code`;
- `passport_id`: what the id must be, where it is told.

The files are made by `passport_maker`, which uses nothing of certkit.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certkit import canonical, passport
from certkit.errors import CODES
from tests.vectors import passport_maker
from tests.vectors.running import certkit

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "passport"
ASKED = ("agent", "domain", "require_tier")


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.json")):
        document = canonical.loads(path.read_bytes())
        assert document["format"] == "passport"
        for case in document["cases"]:
            yield pytest.param(case, id=f"{path.stem}: {case['name']}")


def built(case: dict[str, Any]) -> bytes:
    return "".join(part["text"] * part.get("times", 1) for part in case["file"]).encode()


def check(case: dict[str, Any], document: dict[str, Any], code: int) -> None:
    expected = case["expected"]
    failed = [step for step in document["steps"] if step["status"] == "failed"]
    assert document["verdict"] == expected["verdict"]
    assert (failed[0]["id"] if failed else None) == expected["step"]
    assert (failed[0]["code"] if failed else None) == expected["code"]
    assert (document["exit_code"], code) == (expected["exit_code"], expected["exit_code"])
    assert [step["number"] for step in document["steps"]] == list(range(1, 12))
    if "passport_id" in case:
        assert document["passport_id"] == case["passport_id"]
    broken = next((step["number"] for step in failed if step["number"] <= 4), 12)
    later = [step["status"] for step in document["steps"] if step["number"] > broken]
    assert set(later) <= {"skipped"}
    signed = document["steps"][2]["status"] == document["steps"][3]["status"] == "passed"
    assert ("claim" in document) == signed


@pytest.mark.parametrize("case", [*cases()])
def test_library(case: dict[str, Any]) -> None:
    verification = passport.verify(
        built(case),
        trust=passport.parse_trust(canonical.line(case["trust"]), "trust"),
        at=datetime.fromisoformat(case["at"]),
        **{name: case[name] for name in ASKED if name in case},
    )
    check(case, verification.to_dict(), int(verification.exit_code))
    assert {step.code for step in verification.steps if step.code} <= set(CODES)


@pytest.mark.parametrize("case", [*cases()])
def test_command_line(case: dict[str, Any], tmp_path: Path) -> None:
    file, trust = tmp_path / "passport.json", tmp_path / "trust.json"
    file.write_bytes(built(case))
    trust.write_bytes(canonical.line(case["trust"]))
    options = [
        text for name in ASKED if name in case for text in (f"--{name.replace('_', '-')}", str(case[name]))
    ]
    code, document = certkit(
        "verify", str(file), "--trust", str(trust), "--at", case["at"], "--json", *options
    )
    check(case, document, code)
    assert sorted(tmp_path.iterdir()) == [file, trust]


def test_the_files_are_what_their_maker_makes() -> None:
    made = passport_maker.files()
    assert {path.name for path in FOLDER.glob("*.json")} == set(made)
    for name, text in made.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text


def test_every_end_is_reached() -> None:
    expected = [param.values[0]["expected"] for param in cases()]
    assert {item["exit_code"] for item in expected} >= {0, 1, 3, 4, 6, 8}
    assert {item["step"] for item in expected} >= {
        "parse",
        "envelope",
        "signature",
        "types",
        "subject",
        "validity",
        "policy",
    }
