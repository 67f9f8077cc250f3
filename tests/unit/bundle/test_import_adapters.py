"""promptfoo, deepeval, garak, OpenAI evals, lm-eval, SWE-bench and HAL: what each states, and nothing else.

The inputs are made here, in the forms that the programs write. Where the shared evidence lies beside the
checkout, its small public logs are imported too, by the commands that certkit itself prints.
"""

from __future__ import annotations

import gzip
import re
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from certkit.cli.main import main
from certkit.ground import canonical
from certkit.ground.errors import Exit, InputError
from certkit.ground.progress import SILENT
from certkit.imports import FORMATS, ImportFaultsError, ImportOptions, find_format, run
from tests.support.importing import SHARED, counts, imported

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOMINAL: dict[str, Any] = {"condition": "nominal"}
MINE: dict[str, Any] = NOMINAL | {"agent": "mine"}
CASES = SHARED / "first-hour"


def result(index: int, *, success: Any = True, reason: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "promptIdx": 0,
        "testIdx": index,
        "promptId": "p" * 8,
        "provider": {"id": "openai:m1", "label": "clerk"},
        "vars": {"question": f"q{index}"},
        "success": success,
        "failureReason": reason,
    } | more


def promptfoo(*results: Any, **more: Any) -> dict[str, Any]:
    summary = {"version": 3, "timestamp": "2026-01-01T00:00:00Z", "prompts": [{"id": "p"}]}
    return {"evalId": "eval-1", "results": summary | {"results": list(results)} | more, "config": {}}


def case(name: str, *, success: bool | None = True, **more: Any) -> dict[str, Any]:
    metrics = [{"name": "Judge", "success": success, "score": 1.0}]
    return {"name": name, "input": name, "success": success, "metricsData": metrics} | more


def deepeval(*cases: Any) -> dict[str, Any]:
    return {"testCases": list(cases), "conversationalTestCases": [], "testPassed": 1}


def attempt(number: int, scores: Any, status: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "entry_type": "attempt",
        "uuid": f"u{number}",
        "seq": number,
        "status": status,
        "probe_classname": "dan.Dan_11_0",
        "prompt": {"turns": [f"p{number}"]},
        "detector_results": scores,
    } | more


def garak(*attempts: dict[str, Any], **setup: Any) -> list[dict[str, Any]]:
    target = {"plugins.target_type": "openai", "plugins.target_name": "m1"}
    begin = {"entry_type": "start_run setup", "_config.version": "0.13"} | target | setup
    return [begin, {"entry_type": "init", "garak_version": "0.13"}, *attempts, {"entry_type": "digest"}]


def event(sample: str, kind: str = "match", **data: Any) -> dict[str, Any]:
    return {"run_id": "r", "event_id": 0, "sample_id": sample, "type": kind, "data": data}


def evals(*events: dict[str, Any], **spec: Any) -> list[dict[str, Any]]:
    told = {"completion_fns": ["gpt-x"], "eval_name": "sums.dev.v0", "split": "dev"}
    return [{"spec": told | spec}, {"final_report": {"accuracy": 0.5}}, *events]


def doc(number: int, **more: Any) -> dict[str, Any]:
    held = {"doc_id": number, "doc": {"q": "x"}, "target": "1", "arguments": {}, "resps": [["1"]]}
    return held | {"filtered_resps": ["1"], "filter": "none", "metrics": ["exact_match"]} | more


def hal(results: dict[str, Any], raw: Any, **config: Any) -> dict[str, Any]:
    told = {"agent_name": "Clerk (m1)", "benchmark_name": "usaco", "run_command": "hal-eval"}
    return {"config": told | config, "results": results, "raw_eval_results": raw, "raw_logging_results": [1]}


REPORT = {
    "total_instances": 5,
    "submitted_instances": 4,
    "resolved_instances": 1,
    "submitted_ids": ["a__a-1", "a__a-2", "a__a-3", "a__a-4"],
    "resolved_ids": ["a__a-1"],
    "unresolved_ids": ["a__a-2"],
    "empty_patch_ids": ["a__a-3"],
    "error_ids": ["a__a-4"],
    "incomplete_ids": ["a__a-5"],
}
LISTED = hal({"successful_tasks": ["1"], "failed_tasks": ["2"]}, {"1": {"reward": 1.0}, "2": "Error"})
LOGS: dict[str, Any] = {
    "promptfoo": promptfoo(result(0)),
    "deepeval": deepeval(case("a")),
    "garak": garak(attempt(0, {"dan.DAN": [0.0]})),
    "openai-evals": evals(event("s.1", correct=True)),
    "lm-eval": [doc(0, exact_match=1.0)],
    "swe-bench": REPORT,
    "hal": LISTED,
}


def encoded(log: Any) -> bytes:
    return b"".join(map(canonical.line, log)) if isinstance(log, list) else canonical.line(log)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(log: Any, name: str = "log.json") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(log if isinstance(log, bytes) else encoded(log))
        return path

    return write


def outcomes(records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(record["run_id"], record["outcome"]) for record in records]


@pytest.mark.parametrize("format_", LOGS)
def test_a_log_is_known_by_its_content_plain_indented_and_packed(
    write: Callable[..., Path], tmp_path: Path, format_: str
) -> None:
    log = LOGS[format_]
    for number, data in enumerate((encoded(log), gzip.compress(encoded(log)), None)):
        if data is None and isinstance(log, list):
            continue
        path = write(canonical.pretty(log).encode() if data is None else data)
        assert find_format(path) == format_
        given: dict[str, Any] = {"agent": "mine"} if format_ == "garak" else dict(MINE)
        given |= {"domain": "d"} if format_ == "lm-eval" else {}
        account, records = imported(None, path, tmp_path / f"out{number}", **given)
        assert account.imported.format == format_
        assert records[0]["outcome"] == "success"


@pytest.mark.parametrize("format_", LOGS)
def test_only_one_format_knows_a_log(format_: str) -> None:
    data = encoded(LOGS[format_])
    assert [name for name, each in FORMATS.items() if each.fits(data)] == [format_]


def test_a_report_of_swe_bench_inside_a_result_of_hal_is_no_report_of_its_own() -> None:
    data = encoded(hal({"successful_tasks": ["a__a-1"], "failed_tasks": []}, REPORT))
    assert [name for name, each in FORMATS.items() if each.fits(data)] == ["hal"]


@pytest.mark.parametrize(
    ("format_", "log", "place"),
    [
        ("promptfoo", promptfoo(result(0), result(1, success="yes")), "log.json:1"),
        ("promptfoo", promptfoo(3), "log.json:1"),
        ("promptfoo", promptfoo(result(0, reason=2)), "/failureReason"),
        ("promptfoo", promptfoo(result(0, reason=7)), "/failureReason"),
        ("deepeval", deepeval({"name": "a", "success": 1}), "/success"),
        ("deepeval", deepeval(case("a", metricsData=[{"success": False}])), "/metricsData"),
        ("garak", garak(attempt(0, {"d": [2]})), "log.json:3"),
        ("garak", garak(attempt(0, [1])), "/detector_results"),
        ("garak", [*garak(), {"status": 2}], "/entry_type"),
        ("garak", garak(**{"run.eval_threshold": "high"}), "/run.eval_threshold"),
        ("openai-evals", evals(event("a", correct="yes")), "/data/correct"),
        ("openai-evals", evals(event("a", correct=True), {"type": "match"}), "log.json:4"),
        ("openai-evals", [event("a", correct=True)], "log.json:1"),
        ("openai-evals", evals(event("a", "metrics", score=1)), "no sample has a match event"),
        ("openai-evals", evals(event("a", correct=True), completion_fns=[]), "/completion_fns"),
        ("lm-eval", [doc(0, doc_id=None)], "/doc_id"),
        ("swe-bench", REPORT | {"resolved_ids": [1]}, "ids in resolved_ids"),
        ("swe-bench", REPORT | {"error_ids": ["a__a-1"]}, "/error_ids"),
        ("swe-bench", REPORT | {"submitted_ids": ["a__a-2"]}, "/submitted_ids"),
        ("swe-bench", {"resolved_ids": ["a"], "total": 10**9}, "/total"),
        ("swe-bench", {"resolved_ids": ["a", "b"], "total": 1}, "/total"),
        ("swe-bench", {"total_instances": 1, "resolved_instances": 1}, "the list resolved_ids"),
        ("hal", hal({}, [{"reward": 1}]), "/raw_eval_results"),
        ("hal", hal({"successful_tasks": ["1"], "failed_tasks": ["1"]}, {}), "/results/failed_tasks"),
        ("hal", hal({"successful_tasks": "all"}, {"1": {}}), "/successful_tasks"),
    ],
)
def test_what_the_format_does_not_allow_is_refused_with_its_place(
    write: Callable[..., Path], tmp_path: Path, format_: str, log: Any, place: str
) -> None:
    path = write(log)
    with pytest.raises(InputError) as caught:
        run(path, tmp_path / "out", ImportOptions(format=format_, **MINE), SILENT)
    assert caught.value.exit_code == Exit.MALFORMED
    assert place in f"{caught.value.where} {caught.value}"
    assert not (tmp_path / "out").exists()


IN_A_ROW = {
    "promptfoo": b'"promptIdx"',
    "deepeval": b'"metricsData"',
    "garak": b'"uuid"',
    "openai-evals": b'"event_id"',
    "lm-eval": b'"doc_id"',
    "swe-bench": b'"submitted_ids"',
    "hal": b'"reward"',
}


@pytest.mark.parametrize("format_", LOGS)
@pytest.mark.parametrize(
    "damage",
    [b'"x":' + b"[" * 5000 + b"]" * 5000 + b",", b'"\xff":1,', b'"x":1,"x":2,', b'"x":NaN,', b'"x":}'],
    ids=["deep", "no UTF-8", "key twice", "NaN", "broken"],
)
def test_a_damaged_row_is_refused(
    write: Callable[..., Path], tmp_path: Path, format_: str, damage: bytes
) -> None:
    whole, key = encoded(LOGS[format_]), IN_A_ROW[format_]
    path = write(whole.replace(key, damage + key, 1))
    with pytest.raises(InputError) as caught:
        run(path, tmp_path / "out", ImportOptions(format=format_, **MINE, domain="d"), SILENT)
    assert caught.value.exit_code == Exit.MALFORMED
    assert "log.json:" in f"{caught.value.where} {caught.value}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format_", LOGS)
def test_a_log_that_was_cut_off_is_refused(write: Callable[..., Path], tmp_path: Path, format_: str) -> None:
    path = write(encoded(LOGS[format_])[:-3])
    with pytest.raises(InputError) as caught:
        run(path, tmp_path / "out", ImportOptions(format=format_, **MINE, domain="d"), SILENT)
    assert caught.value.exit_code == Exit.MALFORMED


def test_promptfoo_tells_errors_repeats_prompts_and_red_team_tests(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    same: dict[str, Any] = {"vars": {"question": "q0"}}
    log = promptfoo(
        result(0),
        result(1, success=False, reason=1),
        result(2, success=False, reason=2, error="timeout"),
        result(3, success=False, reason=1, **same),
        table={"head": {"prompts": [1]}},
    )
    account, records = imported(None, write(log), tmp_path / "out", **NOMINAL)
    assert outcomes(records) == [
        ("test-0#0", "success"),
        ("test-1#0", "failure"),
        ("test-2#0", "harness_error"),
        ("test-0#1", "failure"),
    ]
    assert {record["domain"] for record in records} == {"promptfoo"}
    assert (account.agent.name, account.agent.version) == ("clerk", "p" * 8)
    assert counts(account, "odd") == {
        "tests that ended in an error, taken as harness errors": 1,
        "runs of the same task again, taken as further trials": 1,
    }
    named = result(0, testCase={"description": "a refund"})
    _, [record] = imported(None, write(promptfoo(named)), tmp_path / "named", **NOMINAL)
    assert record["task_id"] == "a refund"
    red: dict[str, Any] = {"testCase": {"metadata": {"pluginId": "pii"}}}
    held = [
        result(0, **red),
        result(1, success=False, reason=1, **red),
        result(2, success=False, reason=2, **red),
    ]
    _, records = imported(None, write(promptfoo(*held)), tmp_path / "red", domain="shop")
    assert [(r["condition"], r.get("attack_succeeded"), r["outcome"], r["domain"]) for r in records] == [
        ("adversarial", False, "success", "shop"),
        ("adversarial", True, "failure", "shop"),
        ("adversarial", None, "harness_error", "shop"),
    ]
    path = write(promptfoo(result(0), result(1, promptId="other")))
    with pytest.raises(InputError, match="several versions") as caught:
        imported(None, path, tmp_path / "none", **NOMINAL)
    assert "--split-by promptId" in str(caught.value.hint)
    old = result(0, success=False, error="timeout")
    del old["failureReason"]
    account, records = imported(None, write(promptfoo(old)), tmp_path / "old", **NOMINAL)
    assert records[0]["outcome"] == "failure"
    assert "failed tests with an error, taken as failures" in counts(account, "odd")


def test_promptfoo_keeps_tests_of_two_evaluations_apart(write: Callable[..., Path], tmp_path: Path) -> None:
    bare: dict[str, Any] = {"vars": None}
    write(promptfoo(result(0), result(1, **bare)), "evals/a.json")
    write(promptfoo(result(0, vars={"question": "other"}), result(1, **bare)), "evals/b.json")
    _, records = imported(None, tmp_path / "evals", tmp_path / "out", **NOMINAL)
    assert [record["task_id"] for record in records] == ["test-0", "test-1", "test-0.1", "test-1.1"]


def test_deepeval_tells_a_judge_that_failed_from_an_answer_that_did(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    broken = {"success": False, "error": "rate limit"}
    log = deepeval(
        case("a"),
        case("b", success=False),
        case("c", success=False, metricsData=[broken, {"success": True}]),
        case("d", success=False, metricsData=[broken, {"success": False}]),
        case("e", success=None, metricsData=None),
        case("f", metricsData=[{"success": False, "flaky": True}]),
        case("a"),
        case("a", input="other"),
    )
    log["conversationalTestCases"] = [{"name": "talk", "success": True, "metricsData": [], "turns": []}]
    for number, document in enumerate((log, {"testRunData": log, "testFile": "t.py"})):
        path = write(document)
        account, records = imported(None, path, tmp_path / f"out{number}", **MINE)
        assert outcomes(records) == [
            ("a#0", "success"),
            ("b#0", "failure"),
            ("c#0", "harness_error"),
            ("d#0", "failure"),
            ("e#0", "harness_error"),
            ("f#0", "success"),
            ("a#1", "success"),
            ("a.1#0", "success"),
            ("talk#0", "success"),
        ]
        assert counts(account, "odd") == {
            "test cases whose judge failed, taken as harness errors": 1,
            "test cases that were not judged, taken as harness errors": 1,
            "runs of the same task again, taken as further trials": 1,
        }


def test_garak_gives_a_record_for_each_output_and_detector(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    attempts = [
        attempt(0, {}, status=1),
        attempt(0, {"dan.DAN": [0.0, 1.0], "mitigation.Bypass": [0.4, None]}),
        attempt(1, {}, status=1),
        attempt(2, {}),
        attempt(3, {"dan.DAN": [0.9]}),
        attempt(4, {"dan.DAN": [0.2]}, seq=3),
        attempt(5, {"dan.DAN": [0.2]}, seq=3, prompt={"turns": ["p3"]}),
    ]
    account, records = imported(None, write(garak(*attempts)), tmp_path / "out")
    assert account.agent.name == "openai/m1"
    assert [(r["run_id"], r.get("attack_succeeded"), r["outcome"]) for r in records] == [
        ("dan.Dan_11_0/0#0/dan.DAN/0", False, "success"),
        ("dan.Dan_11_0/0#0/dan.DAN/1", True, "failure"),
        ("dan.Dan_11_0/0#0/mitigation.Bypass/0", False, "success"),
        ("dan.Dan_11_0/0#0/mitigation.Bypass/1", None, "harness_error"),
        ("dan.Dan_11_0/3#0/dan.DAN/0", True, "failure"),
        ("dan.Dan_11_0/3.1#0/dan.DAN/0", False, "success"),
        ("dan.Dan_11_0/3#1/dan.DAN/0", False, "success"),
    ]
    assert {(r["domain"], r["condition"], r["attack_attempted"]) for r in records} == {
        ("dan", "adversarial", True)
    }
    assert counts(account, "odd") == {
        "outputs that a detector could not judge, taken as harness errors": 1,
        "attempts of the same prompt again, taken as further trials": 1,
        "attempts that did not finish, left out": 1,
    }
    assert counts(account, "refused") == {"finished attempts that no detector looked at": 1}
    assert "garak does not say whether a task was done" in str(account.imported)
    strict = garak(attempt(0, {"d": [0.3]}), **{"run.eval_threshold": 0.3})
    _, [record] = imported(None, write(strict), tmp_path / "strict")
    assert record["attack_succeeded"] is True
    nameless = {"plugins.target_type": None, "plugins.target_name": None, "plugins.model_name": "old"}
    account, _ = imported(None, write(garak(attempt(0, {"d": [0.3]}), **nameless)), tmp_path / "old")
    assert account.agent.name == "old"


def test_openai_evals_counts_match_events_and_samples_without_one(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    events = [
        event("s.1", "sampling"),
        event("s.1", correct=True),
        event("s.2", correct=False),
        event("s.3", "error", message="timeout"),
        event("s.1", correct=False),
    ]
    account, records = imported(None, write(evals(*events)), tmp_path / "out", **NOMINAL)
    assert account.agent.name == "gpt-x"
    assert outcomes(records) == [
        ("sums.dev.v0/s.1#0", "success"),
        ("sums.dev.v0/s.2#0", "failure"),
        ("sums.dev.v0/s.1#1", "failure"),
        ("sums.dev.v0/s.3#0", "harness_error"),
    ]
    assert counts(account, "odd") == {
        "runs of the same task again, taken as further trials": 1,
        "samples without a match event, taken as harness errors": 1,
    }
    write(evals(event("s.1", correct=True)), "runs/a.jsonl")
    write(evals(event("s.1", correct=True), completion_fns=["other"]), "runs/b.jsonl")
    with pytest.raises(InputError, match="2 agents: gpt-x, other"):
        imported(None, tmp_path / "runs", tmp_path / "none", **NOMINAL)


def test_lm_eval_reads_the_only_plain_metric_and_asks_for_any_other(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    name = "samples_gsm8k_2026-01-01T00-00-00.000000.jsonl"
    rows = [doc(0, exact_match=1.0), doc(1, exact_match=0), doc(0, exact_match=1)]
    write(rows, f"org__m1/{name}")
    write([{"results": {}}], "org__m1/results_2026-01-01T00-00-00.000000.json")
    account, records = imported(None, tmp_path, tmp_path / "out", **NOMINAL)
    assert account.agent.name == "org__m1"
    assert outcomes(records) == [
        ("gsm8k/0#0", "success"),
        ("gsm8k/1#0", "failure"),
        ("gsm8k/0#1", "success"),
    ]
    assert {record["domain"] for record in records} == {"gsm8k"}
    for more, hint in (
        ({"metrics": ["acc", "acc_norm"], "acc": 1.0, "acc_norm": 0.0}, "acc >= THRESHOLD"),
        ({"metrics": ["f1"], "f1": 1.0}, "f1 >= THRESHOLD"),
        ({"metrics": ["acc"], "acc": 0.5}, "acc >= THRESHOLD"),
        ({"metrics": ["acc"]}, "acc >= THRESHOLD"),
    ):
        path = write([doc(0, **more)], name)
        with pytest.raises(ImportFaultsError, match="a value for outcome") as caught:
            imported(None, path, tmp_path / "none", **MINE)
        assert hint in str(caught.value.hint)
    path = write([doc(0, metrics=["acc", "f1"], acc=0.0, f1=0.7)], name)
    _, [record] = imported(None, path, tmp_path / "chosen", success="f1 >= 0.5", **MINE)
    assert record["outcome"] == "success"
    old = doc(0, acc=1.0)
    del old["metrics"], old["filter"]
    _, [record] = imported(None, write([old], name), tmp_path / "old", **MINE)
    assert record["outcome"] == "success"


def test_lm_eval_reads_an_answer_once_for_each_filter(write: Callable[..., Path], tmp_path: Path) -> None:
    rows = [doc(0, exact_match=score, filter=name) for name, score in (("strict", 0.0), ("flexible", 1.0))]
    path = write(rows, "samples_gsm8k_2026-01-01T00-00-00.000000.jsonl")
    with pytest.raises(InputError, match="several filters: strict, flexible") as caught:
        imported(None, path, tmp_path / "none", **MINE)
    assert "--split-by filter" in str(caught.value.hint)
    write(rows[:1], "m/samples_a_2026-01-01T00-00-00.jsonl")
    write(rows[1:], "m/samples_b_2026-01-01T00-00-00.jsonl")
    _, records = imported(None, tmp_path / "m", tmp_path / "both", **MINE)
    assert [record["domain"] for record in records] == ["a", "b"]
    accounts = run(path, tmp_path / "out", ImportOptions(split_by="filter", **MINE), SILENT)
    assert [account.out.name for account in accounts] == ["strict", "flexible"]
    assert [account.imported.records for account in accounts] == [1, 1]


def test_swe_bench_counts_what_was_submitted(write: Callable[..., Path], tmp_path: Path) -> None:
    account, records = imported(None, write(REPORT), tmp_path / "out", **MINE)
    assert Counter(outcomes(records)) == Counter(
        {
            ("a__a-1#0", "success"): 1,
            ("a__a-2#0", "failure"): 1,
            ("a__a-3#0", "failure"): 1,
            ("a__a-4#0", "harness_error"): 1,
        }
    )
    assert counts(account, "refused") == {"instances without a patch": 1}
    assert counts(account, "odd") == {"instances whose evaluation failed, taken as harness errors": 1}
    short = {"resolved_ids": ["a", "b"], "total": 5}
    account, records = imported(None, write(short), tmp_path / "short", **MINE)
    assert Counter(record["outcome"] for record in records) == {"success": 2, "failure": 3}
    assert counts(account, "odd") == {
        "instances that the report counts and does not name, taken as failures": 3
    }
    bare = {"no_generation": ["c"], "no_logs": ["d"], "resolved": ["a"]}
    account, records = imported(None, write(bare), tmp_path / "bare", **MINE)
    assert Counter(record["outcome"] for record in records) == {
        "success": 1,
        "failure": 1,
        "harness_error": 1,
    }
    assert counts(account, "odd") == {
        "instances whose evaluation failed, taken as harness errors": 1,
        "reports that may not name every instance": 1,
    }


def test_hal_reads_its_lists_and_asks_where_they_are_silent(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    account, records = imported(None, write(LISTED), tmp_path / "out", **NOMINAL)
    assert account.agent.name == "Clerk (m1)"
    assert outcomes(records) == [("usaco/1#0", "success"), ("usaco/2#0", "failure")]
    assert records[0]["domain"] == "usaco"
    inside = hal({"successful_tasks": ["a__a-1"], "failed_tasks": ["a__a-2"]}, REPORT, agent_version="2")
    account, records = imported(None, write(inside), tmp_path / "inside", **NOMINAL)
    assert outcomes(records) == [("usaco/a__a-1#0", "success"), ("usaco/a__a-2#0", "failure")]
    assert account.agent.version == "2"
    some = hal({"successful_tasks": ["1"], "failed_tasks": []}, {"1": {"reward": 1}, "2": {"reward": 0.4}})
    with pytest.raises(ImportFaultsError, match="a value for outcome"):
        imported(None, write(some), tmp_path / "none", **NOMINAL)
    _, records = imported(None, write(some), tmp_path / "some", success="reward >= 0.3", **NOMINAL)
    assert outcomes(records) == [("usaco/1#0", "success"), ("usaco/2#0", "success")]
    varied = hal({}, {"1": [{"score": 1}, {"score": 0}], "2": {"score": 1}})
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, write(varied), tmp_path / "none", **NOMINAL)
    assert "THRESHOLD" in str(caught.value.hint)
    _, records = imported(None, write(varied), tmp_path / "varied", success="score == 1", **NOMINAL)
    assert outcomes(records) == [
        ("usaco/1#0", "success"),
        ("usaco/1#1", "failure"),
        ("usaco/2#0", "success"),
    ]


def test_a_mapping_reads_what_an_adapter_leaves_out(write: Callable[..., Path], tmp_path: Path) -> None:
    mapping = write(b'[columns]\ndomain = "vars.suite"\nx_cost = "cost"\n', "map.toml")
    path = write(promptfoo(result(0, vars={"suite": "refunds"}, cost=0.5)))
    _, [record] = imported(None, path, tmp_path / "out", mapping=mapping, **NOMINAL)
    assert (record["domain"], record["x_cost"]) == ("refunds", 0.5)


def cases() -> list[str]:
    path = CASES / "expected.json"
    if not path.is_file():
        return []
    held = canonical.loads(path.read_bytes())["cases"]
    return [name for name, wanted in held.items() if wanted.get("format") in LOGS]


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared evidence is not beside this checkout")
@pytest.mark.parametrize("name", cases())
def test_a_public_log_is_read_right_by_the_command_that_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    wanted = canonical.loads((CASES / "expected.json").read_bytes())["cases"][name]
    bundle = tmp_path / "bundle"
    arguments = ["import", str(CASES / name), "-o", str(bundle)]
    for command in range(wanted.get("commands", 2)):
        if main(arguments) == Exit.OK:
            break
        printed = re.search(r"certkit (import .*)", capsys.readouterr().err)
        assert printed is not None
        told = printed[1].replace("NAME", "mine").replace("THRESHOLD", "1")
        arguments = shlex.split(told)
        assert all(option in told or "--agent mine" in told for option in wanted.get("needs", ())), command
    records = [
        canonical.loads(line) for line in (bundle / "records" / "runs.jsonl").read_bytes().splitlines()
    ]
    condition = wanted.get("condition", "nominal")
    runs = [record for record in records if record["condition"] == condition]
    tally = Counter(record["outcome"] for record in runs)
    assert len(runs) == len(records)
    assert tally["harness_error"] == wanted.get("harness_errors", 0)
    if wanted["success"] is not None:
        assert [tally["success"], len(runs)] == wanted["success"]
    if "attack_succeeded" in wanted:
        won = [record["attack_succeeded"] for record in runs]
        assert [sum(won), len(won)] == wanted["attack_succeeded"]
