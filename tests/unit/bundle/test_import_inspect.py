"""Inspect AI: logs that it writes itself, old forms by hand, and archives that mean harm."""

from __future__ import annotations

import gzip
import importlib.util
import io
import os
import re
import shlex
import struct
import subprocess
import sys
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from certkit.bundle.folder import open_bundle
from certkit.cli.main import main
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, Exit
from certkit.ground.progress import SILENT
from certkit.imports import ImportFaultsError, ImportOptions, archive, run, source
from certkit.summary.summarise import summarise
from tests.support.importing import READ, TELLS_PEAK, counts, imported, peak_of, peak_of_import

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITER = Path(__file__).parents[2] / "support" / "inspect_logs.py"
EVAL = {"task": "sums", "model": "org/m-1", "created": "2025-01-01T00:00:00+00:00"}


def sample(name: str | int = 1, epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": name, "epoch": epoch, "scores": {"match": {"value": "C"}}} | more


def zipped(path: Path, members: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def log(path: Path, samples: list[dict[str, Any]], status: str = "success", **header: Any) -> Path:
    document = {"version": 2, "status": status, "eval": EVAL | header, "samples": samples}
    path.write_bytes(canonical.line(document))
    return path


def refused(path: Path, **options: Any) -> CertkitError:
    out = path.parent / "refused"
    with pytest.raises(CertkitError) as caught:
        run(path, out, ImportOptions(**({"condition": "nominal"} | options)), SILENT)
    assert not list(path.parent.glob("*refused*"))
    return caught.value


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    folder = tmp_path_factory.mktemp("inspect")
    environment = os.environ | {"XDG_DATA_HOME": str(folder / "home")}  # Inspect keeps unfinished logs there
    command = [sys.executable, "-W", "ignore", str(WRITER), str(folder)]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return folder


@pytest.fixture
def attacked(tmp_path: Path) -> Path:
    """A mapping for the logs of `written`, whose metadata tell of attacks."""
    cases = 'nominal = "metadata.attack == \'none\'"\nadversarial = "otherwise"\n'
    (tmp_path / "attacked.toml").write_text(f"[when.condition]\n{cases}")
    return tmp_path / "attacked.toml"


@pytest.mark.parametrize("form", ["eval", "deflate", "json"])
def test_a_log_that_inspect_writes(written: Path, tmp_path: Path, attacked: Path, form: str) -> None:
    account, records = imported(None, written / form, tmp_path / "out", mapping=attacked)
    assert Counter((r["task_id"], r["outcome"]) for r in records) == {
        ("sums/one/plus", "success"): 2,
        ("sums/two", "failure"): 2,
        ("sums/bad", "harness_error"): 2,
    }
    assert {record["trial"] for record in records} == {0, 1}
    assert account.agent.name == "mockllm/model"
    assert all("started_at" in record for record in records)


def test_a_limit_and_a_tool_that_fails_at_first_in_a_log_that_inspect_writes(
    written: Path, tmp_path: Path
) -> None:
    account, records = imported(None, written / "tools", tmp_path / "out", condition="tool_failure")
    fields = ("task_id", "outcome", "steps_actual", "fault_step", "recovered", "recovery_steps", "measured")
    assert [tuple(map(record.get, fields)) for record in records] == [
        ("tools/endless", "failure", 4, 1, False, None, "derived"),
        ("tools/plain", "success", 3, 1, True, 1, "derived"),
    ]
    assert counts(account, "odd") == {"samples that hit a limit": 1}


def test_an_evaluation_that_was_killed_keeps_the_samples_that_inspect_had_written(
    written: Path, tmp_path: Path
) -> None:
    account, records = imported(None, written / "cut", tmp_path / "out", condition="nominal")
    assert [(r["task_id"], r["outcome"]) for r in records] == [("sums/a/b", "success"), ("sums/c", "success")]
    assert counts(account, "odd") == {"logs of evaluations that did not finish": 1}


def test_what_a_person_changed_after_the_evaluation(written: Path, tmp_path: Path, attacked: Path) -> None:
    account, records = imported(None, written / "edited", tmp_path / "out", mapping=attacked)
    outcomes = {(r["task_id"].removeprefix("sums/"), r["trial"]): r["outcome"] for r in records}
    assert [outcomes["two", 0], outcomes["two", 1]] == ["success", "failure"]
    assert [outcomes["one/plus", 0], outcomes["one/plus", 1]] == ["success", "harness_error"]
    assert counts(account, "odd") == {
        "samples with an error, taken as harness errors": 2,
        "samples that a person declared invalid, taken as harness errors": 1,
        "samples whose score a person changed": 1,
    }


def test_several_scorers_and_a_condition_from_metadata_need_the_users_word(
    written: Path, tmp_path: Path
) -> None:
    [path] = (written / "two").iterdir()
    with pytest.raises(CertkitError) as caught:
        run(path, tmp_path / "out", ImportOptions(condition="nominal"), SILENT)
    assert "--success \"scores.match.value == 'C'\" (the scorers are match, closeness)" in str(caught.value)
    file = tmp_path / "map.toml"
    file.write_text(
        "[when.outcome]\nsuccess = \"scores.match.value == 'C' and scores.closeness.value >= 0.5\"\n"
        'failure = "otherwise"\n[when.condition]\nnominal = "metadata.attack == \'none\'"\n'
        'adversarial = "otherwise"\n'
    )
    _, records = imported(None, path, tmp_path / "out", mapping=file)
    assert Counter((r["condition"], r["outcome"]) for r in records) == {
        ("nominal", "success"): 2,
        ("adversarial", "failure"): 2,
        ("nominal", "harness_error"): 2,
    }


def test_steps_are_the_model_events_before_scoring_in_old_and_new_logs(tmp_path: Path) -> None:
    events = [
        {"event": "model"},
        {"event": "subtask", "events": [{"event": "model"}]},
        {"event": "span_begin", "type": "scorers"},
        {"event": "model"},
    ]
    old = [*events[:2], {"event": "step", "action": "begin", "type": "scorer"}, {"event": "model"}]
    path = log(tmp_path / "a.json", [sample(1, events=events), sample(2, transcript={"events": old})])
    _, records = imported(None, path, tmp_path / "out", condition="nominal")
    assert [record["steps_actual"] for record in records] == [2, 2]


def test_what_a_score_says(tmp_path: Path) -> None:
    values = ["C", "I", "P", "N", True, 0, 1.0, "no"]
    path = log(tmp_path / "a.json", [sample(i, scores={"s": {"value": v}}) for i, v in enumerate(values)])
    account, records = imported(None, path, tmp_path / "out", condition="nominal")
    assert [record["outcome"] == "success" for record in records] == [
        *(True, False, False, False),
        *(True, False, True, False),
    ]
    assert counts(account, "odd") == {"partly correct answers, taken as failures": 1}
    assert counts(account, "guessed") == {"outcomes": len(values)}
    with pytest.raises(CertkitError, match="found a log that does not say whether faults were injected"):
        imported(None, path, tmp_path / "none")
    [told] = [note.detail for note in account.imported.notes if note.what == "outcome"]
    assert told == "3 success, 5 failure, by the score of s (C, true, yes, 1: success)"
    numbers = log(tmp_path / "b.json", [sample(1, scores={"s t": {"value": {"k": 0.7}}})])
    assert "--success 'scores.`s t`.value.k >= THRESHOLD'" in str(refused(numbers))
    _, [record] = imported(
        None, numbers, tmp_path / "b", condition="nominal", success="scores.`s t`.value.k >= 0.8"
    )
    assert record["outcome"] == "failure"


@pytest.mark.parametrize(
    ("name", "value", "given", "guessed"),
    [
        ("cost", 1, {}, True),
        ("spent", True, {}, True),
        ("cost", "C", {}, False),
        ("task_success", 1, {}, False),
        ("cost", 1, {"success": "scores.cost.value < 2"}, False),
    ],
)
def test_a_number_of_a_scorer_is_a_guess_unless_its_name_or_the_user_says_what_it_means(
    tmp_path: Path, name: str, value: object, given: dict[str, str], *, guessed: bool
) -> None:
    path = log(tmp_path / "a.json", [sample(1, scores={name: {"value": value}})])
    account, _ = imported(None, path, tmp_path / "out", condition="nominal", **given)
    assert ("outcomes" in counts(account, "guessed")) == guessed
    notes = [note.detail or "" for note in account.imported.notes if note.kind == "guessed"]
    assert all(f'if that is right: --success "scores.{name}.value ' in note for note in notes)


@pytest.mark.parametrize(
    "name",
    [
        *("attack_success", "hallucinated", "errors_found", "jailbreakRate", "malicious_task_success"),
        *("harmfulness", "leaks", "cheating", "not_solved", "riskScore", "compromised"),
    ],
)
def test_a_scorer_whose_name_means_harm_needs_the_users_word(tmp_path: Path, name: str) -> None:
    path = log(tmp_path / "a.json", [sample(1, scores={name: {"value": 1}})])
    assert "--success EXPRESSION" in str(refused(path))  # whether much is good, nobody can tell
    path = log(tmp_path / "a.json", [sample(1, scores={"quality": {"value": 7}})])
    assert '--success "scores.quality.value >= THRESHOLD"' in str(refused(path))


@pytest.mark.parametrize(
    ("name", "values", "proposed"),
    [
        ("s", ["fine", "wrong?"], "scores.s.value == VALUE"),  # the first may be the bad one
        ("toxicity", ["pass", "fail"], "scores.toxicity.value == VALUE"),  # a pass may be either
        ("s", ["I", "Yes", "I"], "scores.s.value == 'C'"),
        ("s", [True], "scores.s.value == VALUE"),
        ("success", [False], "scores.success.value == true"),
        ("s", ["fail", "error"], "scores.s.value == VALUE"),
        ("s", ["fail", "pass"], "scores.s.value == 'pass'"),
        ("harmful", ["yes", "no"], "scores.harmful.value == VALUE"),
        ("harmlessness", [0.7], "EXPRESSION"),
        ("s", [["a"], None, "x" * 100], "EXPRESSION"),
    ],
)
def test_a_value_that_the_log_has_is_proposed(
    tmp_path: Path, name: str, values: list[object], proposed: str
) -> None:
    beside = {"b": {"value": 1}} if name in {"s", "success"} else {}
    samples = [sample(at, scores={name: {"value": held}} | beside) for at, held in enumerate(values)]
    path = log(tmp_path / "a.json", samples)
    assert re.search(rf'--success "?{re.escape(proposed)}"?( |$)', str(refused(path)))


def test_labels_that_do_not_say_what_is_good_are_asked_for(tmp_path: Path) -> None:
    labels = ["unsafe", "safe", "unsafe"]
    path = log(tmp_path / "a.json", [sample(i, scores={"v": {"value": v}}) for i, v in enumerate(labels)])
    hint = str(refused(path).hint)
    assert "say what is missing, with the good one of 'unsafe', 'safe' as VALUE: certkit import" in hint
    with pytest.raises(CertkitError, match="--success: VALUE is a placeholder"):
        imported(None, path, tmp_path / "out", condition="nominal", success="scores.v.value == VALUE")


def test_of_a_score_with_several_values_none_is_proposed(tmp_path: Path) -> None:
    values = {"attack_success": 1.0, "utility": 1.0}
    path = log(tmp_path / "a.json", [sample(1, scores={"s": {"value": values}})])
    told = "outcome: --success EXPRESSION (the values of s are attack_success, utility)"
    assert told in str(refused(path))
    one = log(tmp_path / "b.json", [sample(1, scores={"s": {"value": {"attack_success": 1.0}}})])
    assert "outcome: --success EXPRESSION" in str(refused(one))


def test_bundles_split_by_a_setting_have_their_own_header(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name, at in (("react", 0.0), ("plain", 1.0)):
        config: dict[str, Any] = {"solver": name, "model_generate_config": {"temperature": at}}
        log(tmp_path / "logs" / f"{name}.json", [sample(1), sample(2)], **config)
    options = ImportOptions(condition="nominal", split_by="eval.solver")
    found = {
        account.out.name: account for account in run(tmp_path / "logs", tmp_path / "out", options, SILENT)
    }
    for name, at in (("react", 0.0), ("plain", 1.0)):
        manifest = open_bundle(found[name].out).manifest
        assert [part.name for part in manifest.agent.components if part.role == "scaffold"] == [name]
        assert manifest.protocol.temperature == at
        assert not counts(found[name], "odd")


def test_a_score_that_a_person_changed_and_a_sample_declared_invalid(tmp_path: Path) -> None:
    changed = {"match": {"value": "C", "history": [{"value": "I"}, {"value": "C"}]}}
    samples = [sample(1, scores=changed), sample(2, invalidation={"author": "p"}), sample(3)]
    account, records = imported(
        None, log(tmp_path / "a.json", samples), tmp_path / "out", condition="nominal"
    )
    assert [record["outcome"] for record in records] == ["success", "harness_error", "success"]
    assert counts(account, "odd") == {
        "samples whose score a person changed": 1,
        "samples that a person declared invalid, taken as harness errors": 1,
    }


def test_the_refusal_of_a_log_without_conditions_is_the_next_command(tmp_path: Path) -> None:
    path = log(tmp_path / "a log.json", [sample(1, scores={"score": {"value": 0.7}})])
    out = tmp_path / "out"
    with pytest.raises(CertkitError) as caught:
        run(path, out, ImportOptions(traces=False, attempt=2), SILENT)
    command = str(caught.value.hint).splitlines()[0].partition("if no fault was injected: ")[2]
    words = shlex.split(command)
    assert words[:3] == ["certkit", "import", str(path)]
    assert {"--no-traces", "--attempt"} <= set(words)
    done = subprocess.run(
        [sys.executable, "-m", *words], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, f"hint: certkit assess {out}\n")
    [record] = (out / "records" / "runs.jsonl").read_bytes().splitlines()
    assert canonical.loads(record)["outcome"] == "success"


@pytest.mark.parametrize(
    ("member", "held"),
    [
        ("metadata", {"attack": "prompt_injection"}),
        ("metadata", {"fault": {"type": "latency"}}),
        ("task_args", {"mode": "jailbreak"}),
        ("tags", ["prompt injection"]),
        ("solver", "jailbreak"),
        ("solver_args", {"fault": "latency"}),
        ("task", "prompt_injection"),
    ],
)
def test_a_fault_that_stands_in_a_log_is_not_nominal(tmp_path: Path, member: str, held: Any) -> None:
    of_sample, of_log = ({member: held}, {}) if member == "metadata" else ({}, {member: held})
    path = log(tmp_path / "a.json", [sample(1, **of_sample)], **of_log)
    error = refused(path)
    assert "expected no fault in a nominal run" in str(error)
    assert f"{next(iter(held)) if isinstance(held, dict) else member}" in str(error)
    assert "--condition" not in str(error.hint)
    (tmp_path / "map.toml").write_text(str(error).partition("as a note: `")[2].rpartition("` under")[0])
    (tmp_path / "map.toml").write_text("[columns]\n" + (tmp_path / "map.toml").read_text())
    if "fault" not in held and not isinstance(held, list):
        imported(None, path, tmp_path / "out", condition="nominal", mapping=tmp_path / "map.toml")


def test_a_log_without_scores_or_samples_is_refused_with_the_next_step(tmp_path: Path) -> None:
    path = log(tmp_path / "a.json", [sample(1, scores={})])
    scored = f"--scorer NAME --output-file {tmp_path / 'a-scored.json'}"
    assert refused(path).hint == f"import it scored: inspect score {path} {scored}"
    (tmp_path / "logs").mkdir()
    log(tmp_path / "logs" / "a.json", [sample(2)])
    log(tmp_path / "logs" / "b.json", [sample(1, scores={})])
    assert str(refused(tmp_path / "logs")) == "b.json: no sample has a score"  # beside one that is scored
    assert "holds no samples" in str(refused(log(tmp_path / "b.json", [])))


def test_what_a_wrong_answer_proposes_is_the_right_one(tmp_path: Path) -> None:
    samples = [
        sample(at, scores={"match": {"value": held}, "b": {"value": 1}}) for at, held in enumerate("IPNC")
    ]
    error = refused(log(tmp_path / "a.json", samples))
    assert isinstance(error, ImportFaultsError)
    assert len({fault.hint for fault in error.faults}) == 1
    assert "scores.match.value == 'C'" in error.faults[0].hint


@pytest.mark.parametrize(("scorer", "proposed"), [("match", "== 'C'"), ("attack_success", "== VALUE")])
def test_of_letters_one_alone_is_a_success(tmp_path: Path, scorer: str, proposed: str) -> None:
    for number, letters in enumerate(("CIP", "ICP", "II")):
        samples = [
            sample(at, scores={scorer: {"value": held}, "b": {"value": 1}}) for at, held in enumerate(letters)
        ]
        error = refused(log(tmp_path / f"{number}.json", samples))
        assert f"scores.{scorer}.value {proposed}" in str(error.hint)
        assert f"scores.{scorer}.value {proposed}" in str(error)


def test_a_word_beside_letters_is_not_proposed(tmp_path: Path) -> None:
    for number, words in enumerate((("C", "unknown", "I"), ("refused", "I"))):
        samples = [sample(at, scores={"match": {"value": word}}) for at, word in enumerate(words)]
        assert "scores.match.value == 'C'" in str(refused(log(tmp_path / f"{number}.json", samples)).hint)


def test_a_score_that_is_none_is_a_harness_error_and_a_sample_with_nan_has_a_trace(tmp_path: Path) -> None:
    rows = b",".join(
        b'{"id": %d, "epoch": 1, "metadata": {"x": Infinity}, "events": [{"event": "model"}],'
        b' "scores": {"match": {"value": %s}}}' % (number, value)
        for number, value in enumerate((b'"C"', b"NaN", b"null"))
    )
    header = canonical.line({"version": 2, "status": "success", "eval": EVAL})[:-2]
    (tmp_path / "a.json").write_bytes(header + b', "samples": [' + rows + b"]}")
    account, records = imported(None, tmp_path / "a.json", tmp_path / "out", condition="nominal")
    assert [record["outcome"] for record in records] == ["success", "harness_error", "harness_error"]
    assert {record["measured"] for record in records} == {"derived"}
    assert summarise(open_bundle(tmp_path / "out")).traces.derived == 3
    assert counts(account, "odd") == {"samples without a score, taken as harness errors": 2}


def test_samples_of_other_scorers_are_no_harness_errors(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log(folder / "a.json", [sample(1), sample(2, scores={"match": {"value": "I"}})], task="a")
    log(folder / "b.json", [sample(3, scores={"graded": {"value": 0.7}})], task="b")
    error = refused(folder, success="scores.graded.value >= 0.5")
    assert "if another score decides there, tell such runs apart: \"eval.task == 'a' and" in str(error)
    rule = "eval.task == 'a' and scores.match.value == 'C' or eval.task == 'b' and scores.graded.value >= 0.5"
    _, records = imported(None, folder, tmp_path / "out", condition="nominal", success=rule)
    assert [record["outcome"] for record in records] == ["success", "failure", "success"]


def test_what_was_guessed_of_one_agent_is_told_of_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log(folder / "a.json", [sample(1, scores={"cost": {"value": 0}})], model="one")
    log(folder / "b.json", [sample(2)], model="two")
    accounts = run(folder, tmp_path / "out", ImportOptions(condition="nominal", split_by="agent"), SILENT)
    assert [sorted(counts(account, "guessed")) for account in accounts] == [["outcomes"], []]


def test_an_interrupted_archive_and_a_retried_log(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    start = canonical.line({"version": 2, "eval": EVAL})
    first = canonical.line(sample("a/b", uuid="u1"))
    zipped(folder / "1.eval", {"_journal/start.json": start, "samples/a/b_epoch_1.json": first})
    header = canonical.line({"version": 2, "status": "success", "eval": EVAL})
    second = canonical.line(sample("c", uuid="u2"))
    members = {"header.json": header, "samples/a/b_epoch_1.json": first, "samples/c_epoch_1.json": second}
    zipped(folder / "2.eval", members)
    account, records = imported(None, folder, tmp_path / "out", condition="nominal")
    assert [record["task_id"] for record in records] == ["sums/a/b", "sums/c"]
    assert counts(account, "odd") == {"logs of evaluations that did not finish": 1}
    assert counts(account, "refused") == {"samples that a retried or copied log repeats": 1}


def test_a_copy_of_a_log_counts_once_and_an_account_names_its_own_scorers(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    header = {"run_id": "r", "task_id": "x"}
    for name in ("a.json", "copy.json"):
        log(folder / name, [sample(1), sample(2)], **header)
    log(folder / "variant.json", [sample(1)], **(header | {"task_id": "y"}))  # of the same call, and no copy
    scored = {"judge": {"value": "C"}}
    log(folder / "other.json", [sample(3, scores=scored)], **(header | {"model": "org/m-2"}))
    given: dict[str, Any] = {"condition": "nominal", "split_by": "agent"}
    accounts = run(folder, tmp_path / "out", ImportOptions(**given), SILENT)
    assert [account.imported.records for account in accounts] == [3, 1]
    assert counts(accounts[0], "refused") == {"samples that a retried or copied log repeats": 2}
    told = [note.detail for a in accounts for note in a.imported.notes if note.what == "outcome"]
    assert [detail.partition(", ")[2] for detail in told if detail] == [
        "by the score of match (C, true, yes, 1: success)",
        "by the score of judge (C, true, yes, 1: success)",
    ]


@pytest.mark.parametrize(("status", "held", "told"), [("success", 2, 1), ("success", 3, 0), ("error", 2, 0)])
def test_a_finished_log_holds_the_samples_that_it_declares(
    tmp_path: Path, status: str, held: int, told: int
) -> None:
    header = {"version": 2, "status": status, "eval": EVAL, "results": {"total_samples": 3}}
    samples = [sample(number, epoch) for number, epoch in ((1, 1), (1, 2), (2, 1))][:held]
    (tmp_path / "a.json").write_bytes(canonical.line(header | {"samples": [*samples, samples[0]]}))
    members = {f"samples/{row['id']}_epoch_{row['epoch']}.json": canonical.line(row) for row in samples}
    zipped(tmp_path / "b.eval", {"header.json": canonical.line(header)} | members)
    for name in ("a.json", "b.eval"):
        account, _ = imported(None, tmp_path / name, tmp_path / f"{name}.out", condition="nominal")
        odd = counts(account, "odd")
        assert odd.get("logs that hold another number of samples than they declare", 0) == told


def test_an_unscored_sample_is_a_harness_error_and_copies_that_differ_are_refused(
    tmp_path: Path,
) -> None:
    folder, header = tmp_path / "logs", {"run_id": "r", "task_id": "x"}
    folder.mkdir()
    wrong = {"match": {"value": "I"}}
    log(folder / "a.json", [sample(1, scores=None), sample(2)], **header)
    _, records = imported(None, folder / "a.json", tmp_path / "out", condition="nominal")
    assert Counter(record["outcome"] for record in records) == {"success": 1, "harness_error": 1}
    log(folder / "b.json", [sample(1, scores=wrong), sample(2)], **header)
    assert "expected the scores of its copy, found other scores" in str(refused(folder))
    log(folder / "b.json", [sample(1, scores=wrong), sample(2, scores=wrong)], **header)
    assert "expected the scores of its copy, found other scores" in str(refused(folder))


@pytest.mark.parametrize(
    "name",
    [
        *("solver", "solver_args", "model_args", "model_roles", "model_generate_config"),
        *("revision", "task_args", "task_version"),
    ],
)
def test_logs_of_one_model_with_other_settings_are_told(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in (0, 0.5):
        header: dict[str, Any] = {name: {"temperature": number}}
        log(folder / f"{number}.json", [sample(str(number))], **header)
    account, _ = imported(None, folder, tmp_path / "out", condition="nominal")
    assert counts(account, "odd") == {f"logs with another {name} than the first": 1}


def test_logs_of_other_solvers_are_told_in_archives_and_documents(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, (name, task) in enumerate((("weak", "t1"), ("strong", "t1"), ("other", "t2"))):
        header = {"version": 2, "status": "success", "eval": EVAL | {"task": task}}
        header |= {"plan": {"steps": [{"solver": name, "params": {}}]}}
        (folder / f"{number}.json").write_bytes(canonical.line(header | {"samples": [sample(f"j{number}")]}))
        row = canonical.line(sample(f"e{number}"))
        zipped(
            folder / f"{number}.eval", {"header.json": canonical.line(header), "samples/1_epoch_1.json": row}
        )
    account, _ = imported(None, folder, tmp_path / "out", condition="nominal")
    assert counts(account, "odd") == {"logs with another plan than the first": 2}  # tasks have their own


def test_members_of_a_document_in_any_order_say_the_same_or_are_refused(tmp_path: Path) -> None:
    path, document = tmp_path / "a.json", {"eval": EVAL, "samples": [sample()], "status": "success"}
    path.write_bytes(canonical.line(document | {"version": 2}))
    account, _ = imported(None, path, tmp_path / "out", condition="nominal")
    assert counts(account, "odd") == {}
    path.write_bytes(canonical.line({"version": 2, "status": "success", "samples": [sample()], "eval": EVAL}))
    assert "the samples stand before `eval`" in str(refused(path))


def test_another_scorer_within_a_log_needs_the_users_word(tmp_path: Path) -> None:
    samples = [sample(1), sample(2, scores={"other": {"value": "C"}})]
    assert "the scorers are match, other" in str(refused(log(tmp_path / "a.json", samples)))


def test_a_log_declared_invalid_is_told_where_no_sample_is(tmp_path: Path) -> None:
    document = {"version": 2, "status": "success", "eval": EVAL, "samples": [sample()], "invalidated": True}
    (tmp_path / "a.json").write_bytes(canonical.line(document))
    account, _ = imported(None, tmp_path / "a.json", tmp_path / "out", condition="nominal")
    assert counts(account, "odd") == {"logs declared invalid of which no sample is": 1}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_that_holds_a_name_twice_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.eval", {"header.json": HEADER})
    with zipfile.ZipFile(path, "a") as file:
        for value in "IC":
            file.writestr("samples/1_epoch_1.json", canonical.line(sample(scores={"s": {"value": value}})))
    assert "two members of one name" in str(refused(path))


def test_two_agents_in_a_folder_of_logs_need_a_choice(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log(folder / "a.json", [sample()])
    log(folder / "b.json", [sample()], model="org/m-2")
    with pytest.raises(CertkitError) as caught:
        imported(None, folder, tmp_path / "out", condition="nominal")
    first, out = f"certkit import {folder}", f"--condition nominal -o {tmp_path / 'out'}"
    each, single = f"{first} --split-by agent {out}", f"{first} --agent org/m-1 {out}"
    hint = f"a bundle of each: {each}\nor one of them, for instance: {single}"
    assert (caught.value.code, caught.value.hint) == ("import.choice-needed", hint)
    accounts = run(folder, tmp_path / "out", ImportOptions(condition="nominal", split_by="agent"), SILENT)
    assert [account.out.name for account in accounts] == ["org-m-1", "org-m-2"]


def test_an_agent_without_a_run_is_no_bundle_and_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log(folder / "a.json", [], status="error")
    log(folder / "b.json", [sample()], model="org/m-2")
    with pytest.raises(CertkitError, match="nothing was imported of agent 'org/m-1'"):
        imported(None, folder, tmp_path / "out", condition="nominal", agent="org/m-1")
    assert not (tmp_path / "out").exists()
    words = [str(folder), "--condition", "nominal", "--split-by", "agent", "-o", str(tmp_path / "out")]
    assert main(["import", *words]) == Exit.INSUFFICIENT
    assert 'left out: "org/m-1", of whom the log has no run to import' in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["org-m-2"]


def test_bundles_by_column_keep_what_was_told_of_their_agent(tmp_path: Path) -> None:
    path = log(tmp_path / "log.json", [sample(1), sample(2, epoch=2)], status="started")
    accounts = run(path, tmp_path / "out", ImportOptions(condition="nominal", split_by="epoch"), SILENT)
    assert len(accounts) == 2
    for account in accounts:
        assert account.without == ()
        assert counts(account, "odd") == {"logs of evaluations that did not finish": 1}


EMOJI = "😀".encode()
HEADER = canonical.line({"version": 2, "status": "success", "eval": EVAL})


def with_zstd(path: Path, packed: bytes, *, size: int, crc: int, method: int = archive.ZSTD) -> Path:
    """Write an archive whose sample is a zstd member, which zipfile itself cannot write."""
    zipped(path, {"header.json": HEADER})
    with zipfile.ZipFile(path, "a") as file:
        member = zipfile.ZipInfo("samples/1_epoch_1.json")
        file.writestr(member, packed)
        member.compress_type, member.file_size, member.CRC = method, size, crc
    return path


def test_zstd_members_of_several_frames(tmp_path: Path) -> None:
    data = canonical.line(sample(target="x" * 100))
    packed = b"".join(zstandard.compress(part) for part in (data[:50], data[50:]))
    path = with_zstd(tmp_path / "a.eval", packed, size=len(data), crc=zlib.crc32(data))
    _, [record] = imported(None, path, tmp_path / "out", condition="nominal")
    assert record["task_id"] == "sums/1"


def test_zstd_without_frames_or_with_a_wrong_checksum(tmp_path: Path) -> None:
    data = canonical.line(sample())
    for packed, crc in ((b"no frame at all", 0), (zstandard.compress(data), 1)):
        error = refused(with_zstd(tmp_path / "a.eval", packed, size=len(data), crc=crc))
        assert error.code == "import.source"
        assert "is damaged" in str(error)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"header_offset": 3}, "none begins where the list says so"),
        ({"header_offset": 1 << 40}, "none begins where the list says so"),
        ({"header_offset": (1 << 64) - 1}, "is damaged"),
        ({"compress_type": 12}, "packed with method 12"),
        ({"CRC": 0}, "wrong size or checksum"),
        ({"compress_size": 9}, "wrong size or checksum"),
        ({"file_size": 9}, "holds more than it declares"),
        ({"file_size": 999}, "wrong size or checksum"),
        ({"compress_size": 1 << 40}, "declares 1,099,511,627,776 bytes"),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_that_is_not_as_the_list_says(
    tmp_path: Path, method: int, changed: dict[str, int], told: str
) -> None:
    path = zipped(tmp_path / "a.eval", {"header.json": HEADER})
    with zipfile.ZipFile(path, "a", method) as file:
        file.writestr("samples/1_epoch_1.json", canonical.line(sample()))
        for name, value in changed.items():
            setattr(file.infolist()[-1], name, value)
    error = refused(path)
    assert (error.code, told in str(error)) == ("import.source", True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.eval"]


@TELLS_PEAK
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, archive.ZSTD])
def test_a_bomb_that_declares_ten_bytes_is_refused_within_300_megabytes(tmp_path: Path, method: int) -> None:
    content = b" " * (500 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = packer.compress(content) + packer.flush()
    packed = zstandard.compress(content) if method == archive.ZSTD else deflated
    path = with_zstd(tmp_path / "a.eval", packed, size=10, crc=zlib.crc32(content), method=method)
    assert "holds more than it declares" in str(refused(path))
    code, peak = peak_of_import(path)
    assert (code, peak <= 300_000_000) == ("import.source", True)


def test_what_stands_before_a_member_is_looked_at(tmp_path: Path) -> None:
    path, name = tmp_path / "a.eval", "samples/1_epoch_1.json"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", HEADER)
        with file.open(name, "w", force_zip64=True) as stream:  # with an extra field before the content
            stream.write(canonical.line(sample()))
    imported(None, path, tmp_path / "out", condition="nominal")
    renamed = path.read_bytes().replace(name.encode(), b"samples/2_epoch_1.json", 1)
    flagged = bytearray(path.read_bytes())
    flagged[flagged.rindex(b"PK\x01\x02") + 8] |= 1
    for data, told in ((renamed, "called otherwise where it stands"), (flagged, "is encrypted")):
        (tmp_path / "b.eval").write_bytes(data)
        assert told in str(refused(tmp_path / "b.eval"))


def test_a_member_that_declares_ten_gigabytes(tmp_path: Path) -> None:
    path = with_zstd(tmp_path / "a.eval", b"x", size=10**10, crc=0)
    error = refused(path)
    assert (error.code, "declares 10,000,000,000 bytes" in str(error)) == ("import.source", True)


@pytest.mark.parametrize(
    "name", ["../samples/1.json", "/samples/1.json", "samples/../../x.json", "c:/x.json"]
)
def test_a_member_whose_name_leaves_the_archive(tmp_path: Path, name: str) -> None:
    error = refused(zipped(tmp_path / "a.eval", {"header.json": HEADER, name: b"{}"}))
    assert (error.code, "leaves the archive" in str(error)) == ("import.source", True)


def test_a_truncated_archive(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "a.eval", {"header.json": HEADER, "samples/1_epoch_1.json": canonical.line(sample())}
    )
    path.write_bytes(path.read_bytes()[:-30])
    error = refused(path)
    assert (error.code, "truncated archive" in str(error), bool(error.hint)) == ("import.source", True, True)


def test_a_member_whose_bytes_changed(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "a.eval", {"header.json": HEADER, "samples/1_epoch_1.json": canonical.line(sample())}
    )
    with zipfile.ZipFile(path) as file:
        member = file.getinfo("samples/1_epoch_1.json")
    data = path.read_bytes()
    crc = member.CRC.to_bytes(4, "little")
    assert data.count(crc) == 2  # beside the member, and at the end
    path.write_bytes(data.replace(crc, bytes(byte ^ 1 for byte in crc)))
    error = refused(path)
    assert (error.code, "is damaged" in str(error)) == ("import.source", True)


def test_a_zip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "FREE", 1 << 20)
    path = zipped(tmp_path / "a.eval", {"header.json": HEADER, "samples/1_epoch_1.json": b" " * (4 << 20)})
    error = refused(path)
    assert (error.code, "times its size" in str(error)) == ("import.unpacks", True)


@TELLS_PEAK
@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param(b'"' + b"\xff" * (60 << 20) + b'"', "import.row", id="a long text that is no UTF-8"),
        pytest.param(b"[" + b"[]," * (21 << 20) + b"[]]", "import.row", id="many empty lists"),
        pytest.param(
            b"[" + b'{"a":{"b":0}},' * 400_000 + b"0]", "imported", id="as many objects as a sample may hold"
        ),
        pytest.param(b'["' + b"a" * (60 << 20) + b'",NaN]', "imported", id="a long text, and NaN"),
        pytest.param(b"[" + b"NaN " * 15_000_000 + b"]", "import.row", id="NaN by the million"),
        pytest.param(b'"' + EMOJI + b"a" * (37 << 20) + b'"', "imported", id="a text with an emoji"),
        pytest.param(b'"' + EMOJI + b"a" * (60 << 20) + b'"', "import.row", id="a longer one"),
    ],
)
def test_a_sample_takes_at_most_300_megabytes(tmp_path: Path, value: bytes, told: str) -> None:
    lead = b'{"id": 1, "epoch": 1, "scores": {"s": {"value": "C"}}, "messages": [{"role": "assistant", '
    path = zipped(
        tmp_path / "a.eval",
        {"header.json": HEADER, "samples/1_epoch_1.json": lead + b'"content": ' + value + b"}]}"},
        zipfile.ZIP_STORED,  # packed, it would be refused before
    )
    code, peak = peak_of_import(path)
    assert (code, peak <= 300_000_000) == (told, True)
    assert len([*tmp_path.iterdir()]) == 1 + (told == "imported")
    if told == "imported":
        (traced,) = (tmp_path / "a.eval.out" / "traces").glob("*.zst")
        assert peak_of(READ, traced)[1] <= 300_000_000


LONG = "x" * 5000


@pytest.mark.parametrize(
    "more",
    [{"id": LONG}, {"uuid": LONG}, {"scores": {LONG: {"value": "C"}}}],
    ids=["id", "uuid", "name of a score"],
)
def test_a_long_text_in_place_of_a_word_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    members = {"header.json": HEADER, "samples/1_epoch_1.json": canonical.line(sample() | more)}
    assert refused(zipped(tmp_path / "a.eval", members)).code == "import.row"


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"id": 1, "epoch": 1, "metadata": ' + b'{"a":' * 5000, b'{"id": "\xff", "epoch": 1}'],
    ids=["deep", "deep-metadata", "not-utf-8"],
)
def test_nesting_and_bytes_that_are_no_text(tmp_path: Path, data: bytes) -> None:
    error = refused(zipped(tmp_path / "a.eval", {"header.json": HEADER, "samples/1_epoch_1.json": data}))
    assert error.code == "import.row"
    assert "a.eval/samples/1_epoch_1.json:1" in str(error)


def test_a_stored_archive_is_read_from_memory_alone(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("header.json", HEADER)
        file.writestr("samples/1_epoch_1.json", canonical.line(sample(metadata={"spread": 1})))
    (tmp_path / "a.eval").write_bytes(buffer.getvalue())
    imported(None, tmp_path / "a.eval", tmp_path / "out", condition="nominal")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.eval", "out"]


def _bombs(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield named bad inputs, of the size at which the limits of every import stop them."""
    blank, sample = b" " * (200 << 20), "samples/1_epoch_1.json"
    yield "zip bomb", "import.source", zipped(folder / "bomb.eval", {"header.json": HEADER, sample: blank})
    yield "declares", "import.source", with_zstd(folder / "declares.eval", b"x", size=10**10, crc=0)
    (packed := folder / "bomb.json.gz").write_bytes(gzip.compress(b"[" + blank, 1))
    yield "gzip bomb", "json.too-large", packed
    (cut := folder / "cut.eval").write_bytes((folder / "bomb.eval").read_bytes()[:100_000])
    yield "truncated", "import.source", cut
    plain = zipfile.ZIP_STORED
    deep = zipped(folder / "deep.eval", {"header.json": HEADER, sample: b"[" * 60_000_000}, plain)
    yield "deep", "import.row", deep
    invalid = zipped(folder / "utf8.eval", {"header.json": HEADER, sample: b"\xff" * 60_000_000}, plain)
    yield "no UTF-8", "import.row", invalid
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, *[0] * 7, len("0000000"), *[0] * 6)
    lead, listed = b"PK\x03\x04" + bytes(26), b"".join(entry + b"%07d" % at for at in range(1_000_000))
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65535, 65535, len(listed), len(lead), 0)
    (many := folder / "many.eval").write_bytes(lead + listed + end)
    yield "many members", "import.source", many
    (wide := folder / "wide.csv").write_bytes(
        b",".join(b"c%d" % at for at in range(980_000)) + b"\n" + b"," * 979_999
    )
    yield "many columns", "import.source", wide


@TELLS_PEAK
def test_named_bad_inputs_are_refused_within_300_megabytes_and_leave_nothing(tmp_path: Path) -> None:
    for name, code, path in _bombs(tmp_path):
        told, peak = peak_of_import(path)
        assert (name, told, peak <= 300_000_000) == (name, code, True)
    assert {path.suffix for path in tmp_path.iterdir()} == {".eval", ".gz", ".csv"}
