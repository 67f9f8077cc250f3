"""Malformed, oversized and contradictory passports are refused with step and reason, without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certkit.ground import canonical
from certkit.passport.steps import STEPS
from certkit.passport.trust import parse as parse_trust
from tests.support import passports

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = Path(__file__).parents[2] / "vectors" / "passport"
EARLY = {"parse", "envelope", "signature"}


def early_cases() -> Iterator[Any]:
    for path in sorted(VECTORS.glob("*.json")):
        document = canonical.loads(path.read_bytes())
        for case in document["cases"] if document["format"] == "passport" else ():
            if case["expected"].get("step") in EARLY and "bundle" not in case:
                yield pytest.param(case, id=f"{path.stem}: {case['name']}")


@pytest.mark.parametrize("case", list(early_cases()))
def test_the_vectors_of_the_first_steps_end_as_they_must(case: dict[str, Any]) -> None:
    """The vectors' statements are of another form; what comes before a statement is read is the same."""
    data = b"".join(part["text"].encode() * part.get("times", 1) for part in case["file"])
    policy = parse_trust(canonical.line(case["trust"]), "trust.json")
    found = passports.verified(data, trust=policy)
    expected = case["expected"]
    assert found.deciding is not None
    assert (found.verdict, found.deciding.id, found.deciding.code, found.exit_code) == (
        *("rejected", expected["step"], expected["code"], expected["exit_code"]),
    )
    resting = found.steps[STEPS.index(expected["step"]) + 1 :]
    assert {item.status for item in resting} == {"skipped"}


def large(domains: int, letters: int) -> bytes:
    statement = passports.document()
    cell = statement["predicate"]["summary"]["cells"][0]
    names = (f"{place:06}" + "x" * letters for place in range(domains))
    statement["predicate"]["summary"]["cells"] = [cell | {"domain": name} for name in names]
    return passports.signed(statement)


def test_a_summary_of_too_many_domains_is_refused() -> None:
    found = passports.verified(large(1_001, 0))
    assert (found.exit_code, found.step("types").code) == (1, "passport.too-large")
    assert "1,001 domains, and a passport holds at most 1,000" in found.step("types").detail


def test_a_summary_of_too_many_bytes_is_refused() -> None:
    statement = passports.document()
    tasks = statement["predicate"]["summary"]["tasks"]
    tasks["domains"] = ["x" * 512 for _ in range(4_500)]
    found = passports.verified(passports.signed(statement))
    assert (found.exit_code, found.step("types").code) == (1, "passport.too-large")
    assert "bytes, and a passport holds at most 2,097,152" in found.step("types").detail


def test_a_large_summary_is_refused_within_300_mb(tmp_path: Path) -> None:
    (tmp_path / "passport.json").write_bytes(large(3_000, 380))
    (tmp_path / "trust.json").write_bytes(passports.lenient().to_json())
    assert (tmp_path / "passport.json").stat().st_size > 2_500_000
    program = f"""
from datetime import datetime
from pathlib import Path
from certkit.passport.trust import parse
from certkit.passport.verify import verify
policy = parse(Path("trust.json").read_bytes(), "trust.json")
at = datetime.fromisoformat("{passports.LATER}")
found = verify(Path("passport.json").read_bytes(), trust=policy, at=at)
assert found.exit_code == 1, found
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True)
    assert int(done.stdout) < 300_000  # kilobytes; `getrusage` would count the parent before the start


@pytest.mark.parametrize(
    ("tiers", "fault"),
    [
        ({"1": 0.7, "2": 0.6, "3": 0.9}, "tier 2 asks > 0.6, less than tier 1: > 0.7"),
        ({"1": -0.1, "2": 0.8, "3": 0.9}, "tier 1: every value of r_op is > -0.1"),
        ({"1": 0.7, "2": 0.8, "3": 1.0}, "tier 3: no value of r_op is > 1"),
    ],
)
def test_a_signed_table_keeps_the_rules_of_a_file(tiers: dict[str, float], fault: str) -> None:
    statement = passports.document()
    criteria = statement["predicate"]["profile"]["criteria"]
    next(row for row in criteria if row["metric"] == "r_op")["tiers"] = tiers
    found = passports.verified(passports.signed(statement))
    assert (found.exit_code, found.step("types").code) == (1, "passport.statement")
    assert found.step("types").detail.startswith("profile.criteria: ")
    assert fault in found.step("types").detail
