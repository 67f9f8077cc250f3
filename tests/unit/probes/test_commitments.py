"""Commitment integrity stands beside the tiers: its counts are facts, and move none of them."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

import pytest

import certkit
from certkit.bundle.writer import seal
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.probes.agents import Asking
from certkit.probes.records import Family
from certkit.probes.running import generate_probes, run_probes
from tests.support import build
from tests.support.bundles import campaign, of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``integrity/`` of an agent that draws options."""
    root = tmp_path_factory.mktemp("replies")
    generate_probes(root / "tasks", seed="s", instances=1)
    run_probes(root / "tasks", root / "b", Asking("reference:random", "a", "1"), sealing=False)
    run = root / "b" / "integrity" / "run.json"
    run.write_bytes(run.read_bytes().replace(b"reference:random", b"command:a"))
    return root / "b" / "integrity"


def test_with_and_without_integrity_the_verdict_has_the_same_bytes(replies: Path, tmp_path: Path) -> None:
    bundle = of(tmp_path / "bundle", campaign(200))
    seal(bundle)
    without = certkit.assess(bundle)
    shutil.copytree(replies, bundle / "integrity")
    seal(bundle)
    probed = certkit.assess(bundle)
    assert without.to_dict()["integrity"] is None
    for part in ("verdict", "metrics", "criteria", "tiers", "core", "fragility"):
        first, second = (canonical.canonical(item.to_dict()[part]) for item in (probed, without))
        assert first == second
    assert build.codes(probed) - build.codes(without) == {"integrity-hollow"}


def test_the_facts_hold_the_counts_of_the_score_and_the_digest_of_the_files(
    replies: Path, tmp_path: Path
) -> None:
    bundle = of(tmp_path / "bundle", campaign(20))
    shutil.copytree(replies, bundle / "integrity")
    note = {"kind": "difficulty", "task_id": "tool_output-easy-1-clean", "rater": "me", "rating": 5}
    (bundle / "integrity" / "annotations.jsonl").write_bytes(canonical.line(note))
    seal(bundle)
    scored, found = certkit.score_integrity(bundle), certkit.assess(bundle).facts.integrity
    assert found is not None
    listed = {
        f"integrity/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (bundle / "integrity").iterdir()
    }
    assert found.digest == canonical.digest(canonical.canonical(listed))
    assert (found.seed, found.raters) == ("stated", 1)
    assert found.core == round(float(scored.core.value or 0), 6)
    assert [(cell.tasks, cell.family, cell.variant) for cell in found.cells] == [
        (3, family, variant) for family in sorted(Family) for variant in ("clean", "distractor")
    ]
    assert sum(cell.matched for cell in found.cells) == scored.accuracy.matched
    assert sum(cell.successes for cell in found.cells) == found.successes == scored.success.successes
    assert (found.hollow, found.asked) == (len(scored.hollow.tasks), scored.success.n + scored.accuracy.n)


def test_replies_of_another_agent_are_refused(replies: Path, tmp_path: Path) -> None:
    bundle = of(tmp_path / "bundle", campaign(20))
    shutil.copytree(replies, bundle / "integrity")
    run = bundle / "integrity" / "run.json"
    run.write_bytes(run.read_bytes().replace(b'"agent_version": "1"', b'"agent_version": "2"'))
    seal(bundle)
    with pytest.raises(InputError) as caught:
        certkit.assess(bundle)
    assert caught.value.code == "integrity.inventory"
