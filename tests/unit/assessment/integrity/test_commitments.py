"""An assessment carries commitment integrity beside the tiers, and warns of hollow successes."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

import certkit
from certkit import report, workflow
from certkit.assessment.findings.provenance import commitments
from certkit.assessment.integrity.scores import score
from certkit.bundle.folder import seal
from certkit.cli.commands.verify import show_verification
from certkit.ground import canonical
from certkit.ground.progress import SILENT
from certkit.passport.claim import from_bundle
from certkit.passport.replay import manifest_difference
from certkit.passport.verification import verify
from certkit.probes.agents import Asking
from certkit.probes.generate import generate
from certkit.probes.reading import read
from certkit.probes.records import Family, asked, lines
from certkit.probes.running import generate_probes, run_probes
from tests.support.bundles import campaign, of
from tests.support.integrity import answer, kept
from tests.support.making import NOW, of_bundle, runs, trust
from tests.support.running import certkit as run_certkit

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.probes.records import ProbeAnswer, ProbeTask, Question, QuestionKey


def said(value: object) -> str:
    return canonical.line({"answer": value}).decode()


def _lucky(many: int) -> list[str]:
    """The codes found where so many of 144 successes hold no probe but the last."""
    left = {"many": many}

    def say(key: QuestionKey, task: ProbeTask, question: Question) -> ProbeAnswer:
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


def test_ratings_on_which_the_core_rests_are_a_finding() -> None:
    def say(key: QuestionKey, task: ProbeTask, question: Question) -> ProbeAnswer:
        return answer(key, said(question.gold if task.family is Family.TOOL else "unknown"))

    bare = score(kept(seed="stated", say=say))
    notes = [
        {"kind": "difficulty", "task_id": key.task, "probe_id": key.probe, "rater": "me", "valid": False}
        for key, task, _ in asked(generate(seed="stated"))
        if key.probe is not None and task.family is Family.TOOL and key.probe == "p2"
    ]
    rated = score(kept(seed="stated", say=say, notes=notes))
    assert rated.core.value != bare.core.value
    assert (rated.raters.people, bare.raters.people) == (1, 0)
    (found,) = commitments(rated)
    assert found.code == "integrity-rated"
    assert found.message.endswith("the ratings of 1 rater")
    assert list(commitments(bare)) == []


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``integrity/`` of an agent that draws options."""
    root = tmp_path_factory.mktemp("replies")
    generate_probes(root / "tasks", seed="s", instances=1)
    spec = "reference:random"
    run_probes(root / "tasks", root / "b", Asking(spec, "a", "1"), sealing=False)
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
    assert probed.integrity is not None
    assert probed.to_dict()["integrity"] == certkit.score_integrity(bundle).to_dict()
    assert "integrity" not in without.to_dict()
    for part in ("verdict", "metrics", "criteria", "tiers", "fragility"):
        first, second = (canonical.canonical(item.to_dict()[part]) for item in (probed, without))
        assert first == second
    with_section, without_section = (report.html(report.view(item)) for item in (probed, without))
    assert 'id="commitments"' not in without_section
    section = with_section[with_section.index('id="commitments"') :]
    section = section[: section.index("</section>")]
    success, hollow = probed.integrity.success.successes, len(probed.integrity.hollow.tasks)
    assert f"answered {success} of 48 tasks rightly" in section
    assert f"{hollow} of {success} successes hold fewer than half" in section
    assert section.count('class="bar"') == 2 * len(Family)
    codes = {item.code for item in probed.challenges} - {item.code for item in without.challenges}
    assert codes == {"integrity-hollow"}


def test_a_passport_carries_the_counts_and_its_replay_finds_a_changed_reply(
    replies: Path, tmp_path: Path
) -> None:
    bundle = of(tmp_path / "bundle", runs())
    shutil.copytree(replies, bundle / "integrity")
    note = {"kind": "difficulty", "task_id": "tool_output-easy-1-clean", "rater": "me", "rating": 5}
    (bundle / "integrity" / "annotations.jsonl").write_bytes(canonical.line(note))
    seal(bundle)
    scored = certkit.score_integrity(bundle)
    issued = of_bundle(bundle)
    opened, replay = from_bundle(bundle, workflow.load_profile, progress=SILENT)
    verified = verify(issued.to_json(), trust=trust(), at=NOW, evidence=opened, replay=replay)
    assert verified.verdict == "verified"
    assert verified.statement is not None
    stated = verified.statement.predicate.integrity
    assert stated is not None
    listed = {
        f"integrity/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (bundle / "integrity").iterdir()
    }
    assert stated.digest == canonical.digest(canonical.canonical(listed))
    predicate = structs.replace(
        verified.statement.predicate, integrity=structs.replace(stated, digest=verified.passport_id or "")
    )
    forged = structs.replace(verified.statement, predicate=predicate)
    told = manifest_difference(forged, opened())
    assert told is not None
    assert told.startswith("integrity digest: claimed ")
    core = f"{float(scored.core.value or 0):.6f}"
    assert (stated.seed, stated.core, stated.raters) == ("stated", core, 1)
    assert "integrity-rated" in {item.code for item in verified.statement.predicate.challenges}
    assert [(cell.tasks, cell.family, cell.variant) for cell in stated.cells] == [
        (3, family, variant) for family in sorted(Family) for variant in ("clean", "distractor")
    ]
    assert sum(cell.matched for cell in stated.cells) == scored.accuracy.matched
    assert sum(cell.successes for cell in stated.cells) == scored.success.successes
    line = (
        f"success {scored.success.successes}/48, held {scored.accuracy.matched}/102,"
        f" core {stated.core} by the ratings of 1 rater; stated tasks"
    )
    (tmp_path / "p.json").write_bytes(issued.to_json())
    assert line in " ".join(run_certkit("show", tmp_path / "p.json").out.split())
    shown = " ".join(show_verification(verified, verbose=False, dated=False))
    assert f"probes, beside the tier: {line}" in " ".join(shown.split())

    answers = bundle / "integrity" / "answers.jsonl"
    first, *rest = answers.read_bytes().splitlines(keepends=True)
    kept = read(bundle)
    key, _, question = next(asked(kept.tasks))
    wrong = kept.replies()[key].verdict != "match"
    text = said(question.gold if wrong else question.lure)
    answers.write_bytes(lines([answer(key, text)]) + b"".join(rest))
    assert answers.read_bytes().splitlines()[0] != first.rstrip()
    seal(bundle)
    opened, replay = from_bundle(bundle, workflow.load_profile, progress=SILENT)
    again = verify(issued.to_json(), trust=trust(), at=NOW, evidence=opened, replay=replay)
    (step,) = (step for step in again.steps if step.id == "replay")
    assert step.code == "passport.replay-differs"
    assert step.detail.startswith("integrity ")
