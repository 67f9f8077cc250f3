"""An assessment carries commitment integrity beside the tiers, and warns of hollow successes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import certkit
from certkit import canonical
from certkit.assessment.findings.provenance import commitments
from certkit.assessment.integrity.scores import score
from certkit.evidence import seal
from certkit.evidence.integrity.running import Asking, generate_probes, run_probes
from certkit.probes.agents import agents_of
from certkit.probes.records import Family
from tests.support.bundles import campaign, of
from tests.support.integrity import answer, kept

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.probes.records import Answer, Key, Question, Task


def said(value: object) -> str:
    return canonical.line({"answer": value}).decode()


def _lucky(many: int) -> list[str]:
    """The codes found where so many of 144 successes hold no probe but the last."""
    left = {"many": many}

    def say(key: Key, task: Task, question: Question) -> Answer:
        label = isinstance(question.gold, str | int)
        lured = task.family is Family.TOOL and key.probe is not None and task.instance * 6 <= left["many"]
        if lured:
            return answer(key, said(question.lure))
        text = said(question.gold) if label else said(_parts(question.gold))
        return answer(key, text)

    scored = score(kept(say=say))
    return [item.code for item in commitments(scored)]


def _parts(gold: object) -> object:
    return list(gold) if isinstance(gold, tuple) else {"source": gold.source, "value": gold.value}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("many", "codes"),
    [(0, ["integrity-tasks"]), (12, ["integrity-tasks"]), (18, ["integrity-hollow", "integrity-tasks"])],
)
def test_more_than_a_tenth_of_hollow_successes_is_a_finding(many: int, codes: list[str]) -> None:
    assert _lucky(many) == codes


def test_missing_replies_are_a_finding() -> None:
    scored = score(kept(seed="stated", say=lambda *_: None))
    assert [item.code for item in commitments(scored)] == ["integrity-partial"]
    assert list(commitments(None)) == []


def test_the_verdict_is_the_same_with_and_without_integrity(tmp_path: Path) -> None:
    bundle = of(tmp_path / "bundle", campaign(200))
    seal(bundle)
    generate_probes(tmp_path / "tasks", seed="s", instances=1)
    spec = "reference:random"
    run_probes(tmp_path / "tasks", tmp_path / "b", Asking(spec, agents_of(spec, timeout=9)))
    without = certkit.assess(bundle).to_dict()
    shutil.copytree(tmp_path / "b" / "integrity", bundle / "integrity")
    seal(bundle)
    assessment = certkit.assess(bundle)
    document = assessment.to_dict()
    assert document["integrity"] == certkit.score_integrity(bundle).to_dict()
    assert "integrity" not in without
    for verdict in (document["verdict"], without["verdict"]):
        verdict["challenges"] = [item for item in verdict["challenges"] if "integrity" not in item["code"]]
    assert canonical.canonical(document["verdict"]) == canonical.canonical(without["verdict"])
    assert [document[name] for name in ("metrics", "criteria", "tiers", "fragility")] == [
        without[name] for name in ("metrics", "criteria", "tiers", "fragility")
    ]
