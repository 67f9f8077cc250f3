"""Names of lineages are compared after NFKC and case folding, and nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import MismatchError
from certkit.registry.writer import LineageIndex
from tests.support.registries import append, audited, filled, passport

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("lineage", ["Lab/agent", "\uff4cab/agent", "lab/AGENT"])
def test_another_spelling_is_no_new_lineage(tmp_path: Path, lineage: str) -> None:
    filled(tmp_path / "r", 1)
    with pytest.raises(MismatchError, match="holds 'lab/agent'") as caught:
        append(tmp_path / "r", passport(1, lineage=lineage))
    assert caught.value.code == "registry.lineage"
    assert append(tmp_path / "r", passport(1)).index == 1, "nothing was added"


@pytest.mark.parametrize(
    "lineage",
    ["lab/agent-2", "-/agent", "lab/\u00e1gent", "l\u0430b/agent", "l-ab/agent.", "lab/agent\u200b"],
)
def test_another_name_is_a_new_lineage(tmp_path: Path, lineage: str) -> None:
    filled(tmp_path / "r", 1)
    assert append(tmp_path / "r", passport(1, lineage=lineage)).index == 1


def test_an_audit_finds_another_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vkey = filled(tmp_path / "r", 1)
    monkeypatch.setattr(LineageIndex, "spelling", lambda _self, lineage: lineage)
    append(tmp_path / "r", passport(1, lineage="Lab/Agent"))
    findings = audited(tmp_path / "r", vkey).findings
    assert [(finding.code, finding.where) for finding in findings] == [("registry.chain", "entry 1")]
