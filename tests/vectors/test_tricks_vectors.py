"""Language-neutral tricks with their honest twins: ``tricks/*.json``, expanded by `tests.support.tricks`.

A case holds groups of runs, the protocol, and how an assessment under ``hb-eval-2026`` ends: exit code, the
tier that stands, the codes of serious findings, and rows that are insufficient at the required tier.
`tests.support.tricks_maker` writes the files. ``limit: true`` marks what certkit does not see; the threat
model says so.
"""

from __future__ import annotations

import json  # noqa: TID251 - what is written here must not depend on the door that reads it
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import core_oracle, honest, tricks, tricks_maker, verdict_oracle
from tests.support.documents import certkit

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "tricks"
PROFILE = honest.ROOT / "templates" / "profiles" / "hb-eval-2026.toml"


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        assert document["format"] == "trick"
        for case in document["cases"]:
            yield pytest.param(document["require_tier"], case, id=f"{document['name']}: {case['name']}")


CASES = [*cases()]


def profile_of(case: dict[str, Any], folder: Path) -> Path:
    """Write the table that a case is judged by."""
    text = PROFILE.read_text(encoding="utf-8")
    if listed := case.get("core_conditions"):
        text = text.replace('id = "hb-eval-2026"', 'id = "hb-eval-2026-own"')
        text = f"core_conditions = {json.dumps(listed)}\n{text}"
    path = folder / "profile.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("tier", "case"), CASES)
def test_command_line(tier: int, case: dict[str, Any], tmp_path: Path) -> None:
    made = honest.Evaluation(tricks.manifest(case), tricks.records(case))
    bundle = str(honest.write(made, tmp_path / "bundle"))
    profile = str(profile_of(case, tmp_path)) if "core_conditions" in case else "hb-eval-2026"
    assert certkit("bundle", "seal", bundle, "--json")[0] == 0
    code, document = certkit("assess", bundle, "--profile", profile, "--require-tier", str(tier), "--json")
    lacking = [
        row["id"]
        for row in document["criteria"]
        if row["tier"] == tier and row["status"] == "insufficient" and row["id"] != "csi"
    ]
    serious = [item["code"] for item in document["findings"] if item["severity"] == "serious"]
    found = {"exit_code": code, "tier": document["verdict"]["tier"], "serious": serious}
    assert found | {"insufficient": lacking} == case["expected"]


@pytest.mark.parametrize(("tier", "case"), CASES)
def test_the_oracle_expects_the_same(tier: int, case: dict[str, Any], tmp_path: Path) -> None:
    table = verdict_oracle.read_profile(profile_of(case, tmp_path))
    judged = core_oracle.judge(tricks.records(case), tricks.manifest(case), table, core=True, limits=False)
    found = {"exit_code": judged.exit_code(tier), "tier": judged.tier, "serious": sorted(judged.findings)}
    lacking = [
        name
        for (name, n), row in judged.rows.items()
        if n == tier and row.status == "insufficient" and name != "csi"
    ]
    assert not any(row.close for row in judged.rows.values())
    assert found | {"insufficient": lacking} == case["expected"]


CAUGHT = [case for case in CASES if case.values[1]["expected"]["serious"] == ["core-evidence"]]


@pytest.mark.parametrize(("tier", "case"), CAUGHT)
def test_without_core_evidence_the_trick_gains_its_tier(
    tier: int, case: dict[str, Any], tmp_path: Path
) -> None:
    table = verdict_oracle.read_profile(profile_of(case, tmp_path))
    judged = core_oracle.judge(tricks.records(case), tricks.manifest(case), table, core=False, limits=False)
    assert judged.exit_code(tier) == 0


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
