"""Inspect AI: logs that it writes itself, old forms by hand, and archives that mean harm."""

from __future__ import annotations

import gzip
import importlib.util
import io
import os
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
from certkit.imports import ImportOptions, archive, run, source
from certkit.summary.summarise import summarise
from tests.support.importing import READ, SHARED, TELLS_PEAK, counts, imported, peak_of, peak_of_import

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITER = Path(__file__).parents[2] / "support" / "inspect_logs.py"
EVAL = {"task": "sums", "model": "org/m-1", "created": "2025-01-01T00:00:00+00:00"}


def sample(name: str | int = 1, epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": name, "epoch": epoch, "scores": {"match": {"value": "C"}}} | more


def zipped(
    path: Path, members: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED, level: int | None = None
) -> Path:
    with zipfile.ZipFile(path, "w", packing, compresslevel=level) as file:
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
    told = (
        "--success EXPRESSION (a sample says that scores.match.value is 'C', scores.closeness.value is 0.75)"
    )
    assert told in str(caught.value)
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
    values = ["C", "I", "P", "N", True, 0, 1.0, "no", "YES", "1.0", "0", "-0e1"]
    path = log(tmp_path / "a.json", [sample(i, scores={"s": {"value": v}}) for i, v in enumerate(values)])
    account, records = imported(None, path, tmp_path / "out", condition="nominal")
    assert [record["outcome"] == "success" for record in records] == [
        *(True, False, False, False),
        *(True, False, True, False),
        *(True, True, False, False),
    ]
    assert counts(account, "odd") == {"partly correct answers, taken as failures": 1}
    with pytest.raises(CertkitError, match="found a log that does not say whether faults were injected"):
        imported(None, path, tmp_path / "none")
    [told] = [note.detail for note in account.imported.notes if note.what == "outcome"]
    assert told == "5 success, 7 failure, by the score of s (C, true, yes, 1: success)"


def test_scores_are_read_as_inspect_reads_them(tmp_path: Path) -> None:
    reading = pytest.importorskip("inspect_ai.scorer", reason="the extra interop is not installed")
    to_float, values = reading.value_to_float(), ["C", "I", "N", True, False, "yes", "No", "TRUE", "1e0", 0.0]
    samples = [sample(number, scores={"s": {"value": value}}) for number, value in enumerate(values)]
    _, records = imported(None, log(tmp_path / "a.json", samples), tmp_path / "out", condition="nominal")
    assert [record["outcome"] == "success" for record in records] == [
        to_float(value) == 1 for value in values
    ]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.7], '--success "scores.s.value >= THRESHOLD"'),
        (["0", "10"], "(10 lies outside 0 to 1)"),
        ([1.0, 1.5, None, -1.0], "(1.5 and -1.0 lie outside 0 to 1)"),
        (["unsafe", "safe"], "--success EXPRESSION (a sample says that scores.s.value is 'unsafe')"),
        (["c"], "(a sample says that scores.s.value is 'c')"),  # no mark of Inspect's
        ([{"k": 0.7}], '--success "scores.s.value.k >= THRESHOLD"'),
        ([{"a": 1, "b": 0}], "(a sample says that scores.s.value.a is 1, scores.s.value.b is 0)"),
        ([["C"]], "(a sample says that scores.s.value is ['C'])"),
    ],
)
def test_a_score_that_is_neither_1_nor_0_needs_the_users_word(
    tmp_path: Path, values: list[object], told: str
) -> None:
    samples = [sample(number, scores={"s": {"value": value}}) for number, value in enumerate(values)]
    assert told in str(refused(log(tmp_path / "a.json", samples)))


def test_a_threshold_decides_what_a_number_means(tmp_path: Path) -> None:
    numbers = log(tmp_path / "b.json", [sample(1, scores={"s t": {"value": {"k": 0.7}}})])
    assert "--success 'scores.`s t`.value.k >= THRESHOLD'" in str(refused(numbers))
    _, [record] = imported(
        None, numbers, tmp_path / "b", condition="nominal", success="scores.`s t`.value.k >= 0.8"
    )
    assert record["outcome"] == "failure"


def test_several_scores_of_a_sample_decide_where_they_agree(tmp_path: Path) -> None:
    both: list[dict[str, Any]] = [
        {"match": {"value": mark}, "judge": {"value": number}} for mark, number in (("C", 1), ("I", 0))
    ]
    path = log(tmp_path / "a.json", [sample(number, scores=each) for number, each in enumerate(both)])
    account, records = imported(None, path, tmp_path / "out", condition="nominal")
    assert [record["outcome"] for record in records] == ["success", "failure"]
    assert any("by the score of match, judge" in (note.detail or "") for note in account.imported.notes)
    both[1]["judge"]["value"] = 1
    path = log(tmp_path / "a.json", [sample(number, scores=each) for number, each in enumerate(both)])
    assert "scores.match.value is 'I', scores.judge.value is 1" in str(refused(path))


FIRST_HOUR = SHARED / "first-hour"


@pytest.mark.skipif(not FIRST_HOUR.is_dir(), reason="the shared evidence is not beside this checkout")
@pytest.mark.parametrize(
    "name",
    [
        *("yes-no.json", "numeric-strings.json", "epochs.json", "errored.json", "nan.json", "range.json"),
        *("score-on-error.json", "retry/", "retry-uuid/"),
    ],
)
def test_small_logs_made_after_bug_reports(tmp_path: Path, name: str) -> None:
    wanted = canonical.loads((FIRST_HOUR / "expected.json").read_bytes())["cases"][f"inspect-{name}"]
    path = FIRST_HOUR / f"inspect-{name}"
    if "refused" in wanted:
        with pytest.raises(CertkitError) as caught:
            imported(None, path, tmp_path / "out", condition="nominal")
        assert wanted["refused"] in str(caught.value)
        return
    account, records = imported(None, path, tmp_path / "out", condition="nominal")
    outcomes = Counter(record["outcome"] for record in records)
    assert [outcomes["success"], outcomes.total()] == wanted["success"]
    assert outcomes["harness_error"] == wanted.get("harness_errors", 0)
    assert len({record["task_id"] for record in records}) == wanted.get("tasks", len(records))
    replaced = counts(account, "refused").get("samples that a later log of the same task replaces", 0)
    assert replaced == wanted.get("replaced", 0)


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
    path = log(tmp_path / "a log.json", [sample(1)])
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
    ("member", "held", "test"),
    [
        (
            "metadata",
            {"attack": "ignore previous"},
            "metadata.attack != null and metadata.attack in ['ignore previous']",
        ),
        (
            "task_args",
            {"mode": "jailbreak"},
            "eval.task_args.mode != null and eval.task_args.mode in ['jailbreak']",
        ),
        ("solver", "jailbreak", "eval.solver != null and eval.solver in ['jailbreak']"),
        ("task", "prompt_injection", "eval.task != null and eval.task in ['prompt_injection']"),
    ],
)
def test_an_attack_that_a_log_names_is_warned_of(tmp_path: Path, member: str, held: Any, test: str) -> None:
    of_sample, of_log = ({member: held}, {}) if member == "metadata" else ({}, {member: held})
    path = log(tmp_path / "a.json", [sample(1, **of_sample)], **of_log)
    account, _ = imported(None, path, tmp_path / "out", condition="nominal")
    [note] = [note for note in account.imported.notes if "whose names say" in note.what]
    assert f'`adversarial = "{test}"`' in (note.detail or "")
    (tmp_path / "map.toml").write_text(f'[when.condition]\nadversarial = "{test}"\n')
    _, [record] = imported(None, path, tmp_path / "mapped", mapping=tmp_path / "map.toml")
    assert record["condition"] == "adversarial"


def test_a_log_without_scores_or_samples_is_refused_with_the_next_step(tmp_path: Path) -> None:
    path = log(tmp_path / "a.json", [sample(1, scores={})])
    scored = f"--scorer NAME --output-file {tmp_path / 'a-scored.json'}"
    assert refused(path).hint == f"import it scored: inspect score {path} {scored}"
    (tmp_path / "logs").mkdir()
    log(tmp_path / "logs" / "a.json", [sample(2)])
    log(tmp_path / "logs" / "b.json", [sample(1, scores={})])
    assert str(refused(tmp_path / "logs")) == "b.json: no sample has a score"  # beside one that is scored
    assert "the samples are not in this file" in str(refused(log(tmp_path / "b.json", [])))


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
    assert "--success: expected values that decide outcome, found nothing in scores.graded.value" in str(
        error
    )
    rule = "eval.task == 'a' and scores.match.value == 'C' or eval.task == 'b' and scores.graded.value >= 0.5"
    _, records = imported(None, folder, tmp_path / "out", condition="nominal", success=rule)
    outcomes = {record["task_id"]: record["outcome"] for record in records}
    assert outcomes == {"a/1": "success", "a/2": "failure", "b/3": "success"}


def retried(folder: Path, *logs: tuple[str, list[dict[str, Any]]], **header: Any) -> Path:
    """Write logs of one task, each with the hour at which it was begun and its samples; return the folder."""
    folder.mkdir()
    for hour, samples in logs:
        begun = {"task_id": "t", "run_id": hour, "created": f"2026-01-01T{hour}:00:00+00:00"}
        log(folder / f"{hour}.json", samples, **(begun | header))
    return folder


def test_an_interrupted_archive_and_its_retry(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    eval_ = EVAL | {"task_id": "t", "created": "2025-01-01T12:00:00+02:00"}
    start = canonical.line({"version": 2, "eval": eval_})
    wrong, right = sample("a/b", scores={"match": {"value": "I"}}), canonical.line(sample("a/b"))
    members = {"_journal/start.json": start, "samples/a/b_epoch_1.json": canonical.line(wrong)}
    zipped(folder / "2.eval", members | {"samples/d_epoch_1.json": canonical.line(sample("d"))})
    eval_ |= {"run_id": "again", "created": "2025-01-01T11:00:00+00:00"}  # an hour later
    header = canonical.line({"version": 2, "status": "success", "eval": eval_})
    members = {"header.json": header, "samples/a/b_epoch_1.json": right}
    zipped(folder / "1.eval", members | {"samples/c_epoch_1.json": canonical.line(sample("c"))})
    account, records = imported(None, folder, tmp_path / "out", condition="nominal")
    assert {record["task_id"]: record["outcome"] for record in records} == {
        "sums/a/b": "success",
        "sums/c": "success",
        "sums/d": "success",
    }
    assert counts(account, "odd") == {"samples to which a later log gives another score": 1}
    assert counts(account, "refused") == {"samples that a later log of the same task replaces": 1}


def test_the_log_begun_last_counts_of_three(tmp_path: Path) -> None:
    broken, failed = (
        sample(1, scores={}, error={"message": "x"}),
        sample(2, 2, scores={"match": {"value": "I"}}),
    )
    logs = [("08", [broken, failed]), ("10", [sample(1)]), ("09", [broken, failed, sample(2, 1)])]
    folder = retried(tmp_path / "logs", *logs)
    account, records = imported(None, folder, tmp_path / "out", condition="nominal")
    assert {record["run_id"]: record["outcome"] for record in records} == {
        "sums/1#1": "success",
        "sums/2#2": "failure",
        "sums/2#1": "success",
    }
    assert counts(account, "refused") == {"samples that a later log of the same task replaces": 3}
    assert counts(account, "odd") == {}


@pytest.mark.parametrize("changed", [{"task_id": None}, {"task_id": ""}])
def test_samples_without_a_task_id_are_further_trials(tmp_path: Path, changed: dict[str, Any]) -> None:
    folder = retried(tmp_path / "logs", ("08", [sample(1)]), ("09", [sample(1)]), **changed)
    account, records = imported(None, folder, tmp_path / "out", condition="nominal")
    assert [record["run_id"] for record in records] == ["sums/1#1", "sums/1#1.1"]
    assert counts(account, "odd") == {"samples again in another log, taken as further trials": 1}


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
    first, second = sorted(accounts, key=lambda account: account.agent.name)
    assert [first.imported.records, second.imported.records] == [3, 1]
    assert counts(first, "refused") == {"samples that a copied log repeats": 2}
    told = [note.detail for a in (first, second) for note in a.imported.notes if note.what == "outcome"]
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
    assert "(a sample says that scores.other.value is 'C')" in str(refused(log(tmp_path / "a.json", samples)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_that_holds_a_name_twice_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.eval", {"header.json": HEADER})
    with zipfile.ZipFile(path, "a") as file:
        for value in "IC":
            file.writestr("samples/1_epoch_1.json", canonical.line(sample(scores={"s": {"value": value}})))
    assert "two members of one name" in str(refused(path))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_sample_that_was_made_again_after_a_crash_counts_once(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.eval", {"header.json": HEADER})
    with zipfile.ZipFile(path, "a") as file:
        for made in (sample(error={"message": "the process ended"}, scores=None), sample()):
            file.writestr("samples/1_epoch_1.json", canonical.line(made))
    account, summary = imported(None, path, tmp_path / "out", condition="nominal")
    assert account.imported.records == 1
    assert counts(account, "odd") == {}
    assert summary is not None


@pytest.mark.parametrize(
    ("name", "value", "warned"),
    [("attack_success", 1, 1), ("attack_success", 0, 0), ("match", 1, 0), ("counterattacks", 1, 0)],
)
def test_a_success_by_a_score_that_speaks_of_attacks_is_told(
    name: str, value: int, warned: int, tmp_path: Path
) -> None:
    path = log(tmp_path / "a.json", [sample(scores={name: {"value": value}})])
    account, _ = imported(None, path, tmp_path / "out", condition="adversarial")
    what = "runs read as successes by a score whose name speaks of attacks"
    assert counts(account, "inverted") == ({what: 1} if warned else {})
    rule = f"scores.{name}.value == 0"
    account, _ = imported(None, path, tmp_path / "said", condition="adversarial", success=rule)
    assert counts(account, "inverted") == {}


def test_two_agents_in_a_folder_of_logs_need_a_choice(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log(folder / "a.json", [sample()])
    log(folder / "b.json", [sample()], model="org/m-2")
    with pytest.raises(CertkitError) as caught:
        imported(None, folder, tmp_path / "out", condition="nominal")
    first, out = f"certkit import {folder}", f"--condition nominal -o {tmp_path / 'out'}"
    each, single = f"{first} --split-by agent {out}", f"{first} --agent org/m-2 {out}"
    hint = f"a bundle of each: {each}\nor one of them, for instance: {single}"
    assert (caught.value.code, caught.value.hint) == ("import.choice-needed", hint)
    accounts = run(folder, tmp_path / "out", ImportOptions(condition="nominal", split_by="agent"), SILENT)
    assert {account.out.name for account in accounts} == {"org-m-1", "org-m-2"}


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
    content = b" " * (320 << 20)
    packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
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
    ("parts", "told"),
    [
        pytest.param((b'"', b"\xff", 60 << 20, b'"'), "import.row", id="a long text that is no UTF-8"),
        pytest.param((b"[", b"[],", 21 << 20, b"[]]"), "import.row", id="many empty lists"),
        pytest.param(
            (b"[", b'{"a":{"b":0}},', 400_000, b"0]"), "imported", id="as many objects as a sample may hold"
        ),
        pytest.param((b'["', b"a", 60 << 20, b'",NaN]'), "imported", id="a long text, and NaN"),
        pytest.param((b"[", b"NaN ", 15_000_000, b"]"), "import.row", id="NaN by the million"),
        pytest.param((b'"' + EMOJI, b"a", 37 << 20, b'"'), "imported", id="a text with an emoji"),
        pytest.param((b'"' + EMOJI, b"a", 60 << 20, b'"'), "import.row", id="a longer one"),
    ],
)
def test_a_sample_takes_at_most_300_megabytes(
    tmp_path: Path, parts: tuple[bytes, bytes, int, bytes], told: str
) -> None:
    begin, repeated, times, end = parts  # put together here: the collected tests would hold it all
    value = begin + repeated * times + end
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
    [{"id": LONG}, {"scores": {LONG: {"value": "C"}}}],
    ids=["id", "name of a score"],
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
    yield (
        "zip bomb",
        "import.source",
        zipped(folder / "bomb.eval", {"header.json": HEADER, sample: blank}, level=1),
    )
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
