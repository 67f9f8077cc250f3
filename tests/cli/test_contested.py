"""A contested verdict on every screen, and what an answer makes of it."""

from __future__ import annotations

import json  # noqa: TID251 - a user's own file
import re
import shlex
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from certkit.assessment.profile_file import profile_text
from certkit.bundle.writer import seal
from tests.support import bundles, evaluations
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

FINDING = "serious, open: 3 runs count as successes although an attack on them succeeded"


@pytest.fixture(scope="module")
def contested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed bundle whose rows of Tier 2 are met, with three successes under a successful attack."""
    root = tmp_path_factory.mktemp("contested") / "bundle"
    runs = evaluations.honest()
    attacked = [run for run in runs if run.get("attack_landed") and run["outcome"] == "success"]
    for run in attacked[:3]:
        run["attack_succeeded"] = True
    evaluations.written(root, runs)
    seal(root)
    return root


def answering(folder: Path, shown: dict[str, Any]) -> Path:
    """Write a context.json that answers the challenge of an assessment."""
    path = folder / "context.json"
    document = {
        "schema": "urn:certkit:context:v1",
        "about": {
            "bundles": [shown["bundle"]["digest"]],
            "profile": shown["profile"]["digest"],
            "tier": shown["verdict"]["required_tier"],
        },
        "people": [
            {"id": "ana", "name": "Ana", "relation": "same"},
            {"id": "ravi", "name": "Ravi", "relation": "independent"},
        ],
        "reviewers": [{"person": "ravi", "date": "2026-02-01"}],
        "answers": [
            {
                "challenge": "success-with-attack",
                "state": "answered",
                "reason": "The three attacks changed a file that the task does not read.",
                "by": "ana",
                "agreed_by": "ravi",
                "evidence": [{"digest": f"sha256:{sha256(b'plans').hexdigest()}", "where": "plans.txt"}],
            }
        ],
    }
    path.write_text(json.dumps(document), encoding="utf-8")
    (folder / "plans.txt").write_text("plans", encoding="utf-8")
    return path


def test_the_screen_says_right_above_the_verdict_what_contests_it(contested: Path) -> None:
    done = certkit("assess", contested, "--require-tier", "2")
    answer = done.out.partition("\n\n")[0]
    told = " ".join(answer.split())
    assert "On averages: Tier 3 (this decides). With 95 % confidence: Tier 2." in told
    assert "Tier 2 is contested: its rows are met, and success-with-attack is open." in told
    assert "1 serious" in told
    joined = answer.replace("\\\n", "").splitlines()
    assert (len(joined) <= 9, joined[-1].startswith("Next: ")) == (True, True)
    assert FINDING.capitalize() in " ".join(done.out.rpartition("\nOpen questions: ")[2].split())
    assert done.code == 4


def test_a_rule_that_reads_failures_as_successes_contests_a_yes(tmp_path: Path) -> None:
    for word, code in (("good", 0), ("no", 4)):
        out = tmp_path / word
        rows = [
            {**run, "verdict": word if run["outcome"] == "success" else "?"} for run in evaluations.honest()
        ]
        lines = [json.dumps({name: row[name] for name in row if name != "outcome"}) for row in rows]
        (tmp_path / "runs.jsonl").write_text("\n".join(lines), encoding="utf-8")
        given = ("--agent", "a", "--independent-tasks", "--success", f"verdict == '{word}'")
        certkit("import", tmp_path / "runs.jsonl", "-o", out, *given)
        done = certkit("assess", out, "--require-tier", "2")
        contested = "and outcome-inverted is open" in " ".join(done.out.split())
        assert (done.code, contested) == (code, bool(code))


def test_quiet_leaves_serious_findings_on_standard_error(contested: Path, tmp_path: Path) -> None:
    done = certkit("assess", contested, "-q")
    assert (done.out, done.code) == ("", 4)
    assert done.err.startswith(FINDING)
    honest = evaluations.written(tmp_path / "honest", evaluations.honest())
    done = certkit("assess", honest, "-q")
    assert (done.out, done.err, done.code) == ("", "", 0)


def test_json_names_readings_and_findings(contested: Path) -> None:
    document = certkit("assess", contested, "--json").document
    verdict = document["verdict"]
    assert (verdict["status"], verdict["tier"], verdict["decides"]) == ("contested", 0, "table")
    assert (verdict["table"], verdict["bounded"]) == ({"tier": 3}, {"tier": 2})
    (serious,) = [item for item in document["findings"] if item["severity"] == "serious"]
    assert f"serious, open: {serious.pop('message')}" == FINDING
    assert serious == {
        "code": "success-with-attack",
        "severity": "serious",
        "counts": {"runs": 3},
        "tier": 1,
        "state": "open",
    }


def test_an_answer_is_carried_into_the_passport_and_through_a_replay(contested: Path, tmp_path: Path) -> None:
    shown = certkit("assess", contested, "--require-tier", "2", "--json").document
    context = answering(tmp_path, shown)
    done = certkit("assess", contested, "--require-tier", "2", "--context", context)
    assert done.code == 0
    assert "none serious; 1 serious answered" in " ".join(done.out.split())
    answered = FINDING.replace("serious, open", "Serious, answered by Ana, agreed by Ravi")
    assert answered in " ".join(done.out.split())
    key, public = tmp_path / "key.pem", tmp_path / "public.pem"
    assert certkit("keys", "generate", "-o", key, "--public", public, "-q").code == 0
    out, trust = tmp_path / "issued", tmp_path / "trust.json"
    named = ("--issuer", "Lab", "--require-tier", "2", "--context", context, "-o", out)
    done = certkit("issue", contested, "--key", key, *named)
    assert done.code == 0, done.err
    assert certkit("trust", "add", "--trust", trust, "--issuer", "Lab", "--key", public).code == 0
    passport = out / "passport.json"
    done = certkit("verify", passport, "--trust", trust, "--bundle", contested, "--replay")
    assert done.code == 0, done.out + done.err
    options = ("--trust", trust, "--bundle", contested, "--replay", "--json")
    said = [
        item for item in certkit("verify", passport, *options).document["not_checked"] if "answers" in item
    ]
    word = "answers to success-with-attack: that they were given, and who agreed, is the issuer's word"
    assert said == [f"{word} (--replay --context FILE)"]
    held = certkit("verify", passport, *options, "--context", context)
    assert (held.code, [item for item in held.document["not_checked"] if "answers" in item]) == (0, [])
    context.write_text(context.read_text(encoding="utf-8") + " ", encoding="utf-8")
    other = certkit("verify", passport, *options, "--context", context)
    assert (other.code, other.document["steps"][10]["code"]) == (7, "passport.replay-differs")


def following(*words: object) -> list[str]:
    """The words of the command that an assessment proposes, but for the program's name."""
    command = re.split(r"\n(?:Next|then): ", certkit("assess", *words).out)[1].partition("\n\n")[0]
    return shlex.split(command.replace("\\\n", ""))[1:]


def test_the_next_command_judges_under_the_profile_tier_and_context_that_were_chosen(
    contested: Path, tmp_path: Path
) -> None:
    own, chosen = tmp_path / "own.toml", tmp_path / "chosen.json"
    table = profile_text("hb-eval-2026")
    own.write_text(table.replace('id = "hb-eval-2026"', 'id = "own"'), encoding="utf-8")
    options = ("-p", str(own), "--require-tier", "2")
    command = following(contested, *options)
    assert command == ["context", "init", str(contested), *options, "-o", "context.json"]
    assert certkit(*command[:-1], chosen).code == 0
    answering(tmp_path, certkit("assess", contested, *options, "--json").document).replace(chosen)
    context = ("--context", str(chosen))
    command = following(contested, *options, *context)
    assert command[:8] == ["issue", str(contested), *options, *context]


def test_the_next_command_of_several_bundles_takes_several(tmp_path: Path) -> None:
    folders = []
    for start in (0, 100):
        records = [
            bundles.run(number, task_id=f"d/{number}", condition="tool_failure", outcome="failure")
            for number in range(start, start + 30)
        ]
        folders.append(bundles.of(tmp_path / f"b{start}", records))
    assert following(*folders) == ["bundle", "seal", "BUNDLE"]
    for folder in folders:
        seal(folder)
    assert following(folders[0]) == ["report", str(folders[0]), "-o", "b0.html"]
    command = following(*folders)
    assert command[0] == "explain"  # every run failed: no plan is made with a number that is nobody's
    assert certkit(*command).code == 0


def test_what_stands_above_the_table_is_whole_or_says_where_it_stands(tmp_path: Path) -> None:
    records = [bundles.run(number, condition=("nominal", "stochastic")[number % 2]) for number in range(8)]
    answer = certkit("assess", bundles.of(tmp_path / "b", records)).out.partition("\n\n")[0]
    assert "…" not in answer.replace(str(tmp_path), "")
    assert "Open questions: 10, none serious; -v lists all.\n" in answer
    told = " ".join(answer.split())
    short = "Tier 1 has too little evidence for r_op, domain_min and posterior"
    assert f"{short}; has no evidence for pei and 5 more." in told
    gap = "rests on 1 task; the profile asks for 10: add tasks."
    assert f"Biggest gap: Operational reliability (r_op): {gap}" in told


def test_the_screen_answers_the_tier_that_is_required(tmp_path: Path) -> None:
    outcomes = ["harness_error", *["success"] * 7]
    records = [
        bundles.run(number, outcome=outcome, condition="stochastic")
        for number, outcome in enumerate(outcomes)
    ]
    folder = bundles.of(tmp_path / "b", records)
    seal(folder)
    at_one, at_two = (certkit("assess", folder, "--require-tier", tier).out.splitlines() for tier in (1, 2))
    assert any("Tier 1 has too little evidence for r_op" in line for line in at_one[:8])
    assert any("Tier 2 has too little evidence for r_op" in line for line in at_two[:8])
    assert "1 harness error among the failures" in " ".join(at_one[:2])
    command = next(line for line in at_two[:8] if line.startswith("Next: "))
    assert command == "Next: certkit explain pei"
    assert certkit(*shlex.split(command)[2:]).code == 0
    assert "harness_error" in certkit("explain", "harness_error").out


def test_the_printed_command_to_issue_leads_on_where_it_is_copied(tmp_path: Path) -> None:
    evaluations.written(tmp_path / "b", evaluations.honest())
    seal(tmp_path / "b")
    printed = certkit("assess", tmp_path / "b").out
    assert "--key KEY.pem --issuer NAME" in printed
    named = ("issue", tmp_path / "b", "--key", tmp_path / "KEY.pem", "-o", tmp_path / "issued", "--issuer")
    copied = certkit(*named, "NAME")
    assert (copied.code, "--issuer: NAME is a placeholder" in copied.err) == (2, True)
    unmade = certkit(*named, "Lab")
    assert (unmade.code, "hint: certkit keys generate -o " in unmade.err) == (3, True)
    assert not (tmp_path / "issued").exists()
