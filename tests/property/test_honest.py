"""Honest evaluations are not refused: Tier 1 at exit 0, nothing serious, at most two warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support import core_oracle, honest, verdict_oracle
from tests.support.documents import certkit

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = "hb-eval-2026"
TABLE = honest.ROOT / "templates" / "profiles" / f"{PROFILE}.toml"


def assessed(name: str, folder: Path, tier: int) -> tuple[int, dict[str, Any]]:
    """Seal and assess an honest evaluation by the program's own commands."""
    bundle = str(honest.write(honest.evaluation(name), folder / "bundle"))
    code, _ = certkit("bundle", "seal", bundle, "--json")
    assert code == 0
    return certkit("assess", bundle, "--profile", PROFILE, "--require-tier", str(tier), "--json")


def graded(document: dict[str, Any], severity: str) -> list[str]:
    return [item["code"] for item in document["findings"] if item["severity"] == severity]


@pytest.mark.parametrize("name", honest.VARIANTS)
def test_an_honest_evaluation_attains_tier_1_without_a_serious_finding(name: str, tmp_path: Path) -> None:
    code, document = assessed(name, tmp_path, 1)
    assert (code, document["verdict"]["status"]) == (0, "met")
    assert graded(document, "serious") == []
    assert len(graded(document, "warning")) <= 2


def test_the_plain_evaluation_attains_tier_2(tmp_path: Path) -> None:
    code, document = assessed("plain", tmp_path, 2)
    assert (code, document["verdict"]["tier"]) == (0, 2)


@pytest.mark.parametrize("name", honest.VARIANTS)
def test_the_margin_is_clear(name: str) -> None:
    """Each row that decides Tier 1 passes by a tenth of its scale, on all runs and on core evidence."""
    made = honest.evaluation(name)
    judged = core_oracle.judge(
        made.records, made.manifest, verdict_oracle.read_profile(TABLE), core=True, limits=False
    )
    assert judged.tier >= 1
    assert not judged.findings
    scale = {"ti": 4, "violations": 5, "cascade_penalty": 100, "posterior": 0.4}
    for row in verdict_oracle.read_profile(TABLE)["criteria"]:
        found = judged.rows[row["id"], 1]
        if found.status == "not_applicable" or row.get("provisional"):
            continue
        asked = float(verdict_oracle.threshold_of(row, 1) or 0)
        for value in (found.value, found.core):
            assert value is not None, row["id"]
            margin = (
                asked - value if verdict_oracle.operator_of(row, 1) in core_oracle.UPPER else value - asked
            )
            assert margin >= 0.1 * scale.get(row["id"], 1), (row["id"], float(value))
