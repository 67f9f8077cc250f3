"""Language-neutral tricks with their honest twins: ``tricks/*.json``, expanded by `tests.support.tricks`.

A case holds groups of runs, the protocol, and how an assessment under ``hb-eval-2026`` ends: exit code, the
tier that stands, the codes of serious findings, and rows that are insufficient at the required tier.
`tests.support.tricks_maker` writes the files. ``limit: true`` marks what certkit does not see; the threat
model says so. What is `beyond` the oracle follows from more than the records: there the program alone is held
against the code, and the oracle against the twin's outcome.
"""

from __future__ import annotations

import json  # noqa: TID251 - what is written here must not depend on the door that reads it
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from certkit.assessment.assessment import Severity
from certkit.assessment.findings import FINDINGS
from tests.support import core_oracle, honest, tricks, tricks_maker, verdict_oracle
from tests.support.documents import certkit

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "tricks"
PROFILE = honest.ROOT / "templates" / "profiles" / "hb-eval-2026.toml"
DOCUMENTS = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
Document = dict[str, Any]


def cases() -> Iterator[Any]:
    for document in DOCUMENTS:
        assert document["format"] == "trick"
        for case in document["cases"]:
            yield pytest.param(document, case, id=f"{document['name']}: {case['name']}")


CASES = [*cases()]
WITHOUT_A_TRICK = {"plan-differs"}
"""It needs the plan of a trial: `tests.unit.summary.test_planned`."""


def profile_of(case: dict[str, Any], folder: Path) -> Path:
    """Write the table that a case is judged by."""
    text = PROFILE.read_text(encoding="utf-8")
    if listed := case.get("core_conditions"):
        text = text.replace('id = "hb-eval-2026"', 'id = "hb-eval-2026-own"')
        text = f"core_conditions = {json.dumps(listed)}\n{text}"
    path = folder / "profile.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("document", "case"), CASES)
def test_command_line(document: Document, case: dict[str, Any], tmp_path: Path) -> None:
    tier = document["require_tier"]
    bundle = str(tricks.write(case, tmp_path / "bundle"))
    profile = str(profile_of(case, tmp_path)) if "core_conditions" in case else "hb-eval-2026"
    assert certkit("bundle", "seal", bundle, "--json")[0] == 0
    given = ("assess", bundle, "--profile", profile, "--require-tier", str(tier), "--json")
    outcome, found = assessed(*given)
    assert outcome == case["expected"]
    severities = {item["code"]: item["severity"] for item in found}
    graded = case.get("graded", {})
    assert {code: severities.get(code) for code in graded} == graded
    if "strict" in case:
        assert assessed(*given, "--strict")[0] == case["strict"]


def assessed(*given: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return how an assessment ends, as a vector says it, and its findings."""
    code, document = certkit(*given)
    lacking = [
        row["id"]
        for row in document["criteria"]
        if row["tier"] == document["verdict"]["required_tier"]
        and row["status"] == "insufficient"
        and row["id"] != "csi"
    ]
    serious = [item["code"] for item in document["findings"] if item["severity"] == "serious"]
    found = {"exit_code": code, "tier": document["verdict"]["tier"], "serious": serious}
    return found | {"insufficient": lacking}, document["findings"]


@pytest.mark.parametrize(("document", "case"), CASES)
def test_the_oracle_expects_the_same(document: Document, case: dict[str, Any], tmp_path: Path) -> None:
    tier = document["require_tier"]
    table = verdict_oracle.read_profile(profile_of(case, tmp_path))
    judged = core_oracle.judge(tricks.records(case), tricks.manifest(case), table, core=True, limits=False)
    found = {"exit_code": judged.exit_code(tier), "tier": judged.tier, "serious": sorted(judged.findings)}
    lacking = [
        name
        for (name, n), row in judged.rows.items()
        if n == tier and row.status == "insufficient" and name != "csi"
    ]
    assert not any(row.close for row in judged.rows.values())
    wanted = by_the_oracle(document, case)
    assert found | {"insufficient": lacking} == wanted["expected"]
    if "strict" in wanted:
        found = {
            "exit_code": judged.exit_code(tier, strict=True),
            "tier": judged.tier_strict,
            "serious": sorted(judged.findings_strict),
        }
        assert found | {"insufficient": lacking} == wanted["strict"]


def by_the_oracle(document: Document, case: dict[str, Any]) -> dict[str, Any]:
    """Return the case whose outcome the oracle expects: the twin, where the finding is beyond it."""
    if "beyond" not in document:
        return case
    return next(other for other in document["cases"] if other["name"] == "twin")


def test_a_finding_beyond_the_oracle_is_all_that_parts_a_trick_from_its_twin() -> None:
    for document in DOCUMENTS:
        for case in document["cases"] if "beyond" in document else ():
            strictest = case.get("strict", case["expected"])
            contests = [] if case["name"] == "twin" else [document["beyond"]]
            assert strictest["serious"] == contests, document["name"]
            assert strictest["exit_code"] == (4 if contests else 0), document["name"]


def test_every_serious_finding_has_a_trick() -> None:
    told = {
        code
        for document in DOCUMENTS
        for case in document["cases"]
        for outcome in (case["expected"], case.get("strict", case["expected"]))
        for code in outcome["serious"]
    }
    assert told | WITHOUT_A_TRICK == {
        row.code for row in FINDINGS if Severity.SERIOUS in {row.severity, row.strict}
    }


CAUGHT = [case for case in CASES if case.values[1]["expected"]["serious"] == ["core-evidence"]]


@pytest.mark.parametrize(("document", "case"), CAUGHT)
def test_without_core_evidence_the_trick_gains_its_tier(
    document: Document, case: dict[str, Any], tmp_path: Path
) -> None:
    table = verdict_oracle.read_profile(profile_of(case, tmp_path))
    judged = core_oracle.judge(tricks.records(case), tricks.manifest(case), table, core=False, limits=False)
    assert judged.exit_code(document["require_tier"]) == 0


def test_each_trick_has_an_honest_twin_without_a_serious_finding() -> None:
    for document in tricks_maker.tricks():
        names = [case["name"] for case in document["cases"]]
        assert {"trick", "twin"} <= {*names}, document["name"]
        plain = [case for case in document["cases"] if case["name"] == "twin"]
        if not any(case.get("limit") for case in document["cases"] if case["name"] == "trick"):
            assert all(case["expected"]["serious"] == [] for case in plain), document["name"]


def test_the_files_are_those_that_the_maker_writes() -> None:
    wanted = {f"{document['name']}.json": tricks_maker.text(document) for document in tricks_maker.tricks()}
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == wanted
