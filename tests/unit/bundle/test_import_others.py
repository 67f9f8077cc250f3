"""every_eval_ever and OpenTelemetry: what a sample and a trace say, and what the user must say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from certkit.bundle.facts import UNVERSIONED
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.ground.progress import SILENT
from certkit.imports import ImportFaultsError, ImportOptions, run
from tests.support.importing import counts, imported

if TYPE_CHECKING:
    from pathlib import Path


def sample(name: str, **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "instance_level_eval_0.2.1",
        "evaluation_id": "e",
        "model_id": "org/m",
        "evaluation_name": "gsm8k",
        "sample_id": name,
        "interaction_type": "multi_turn",
        "messages": [{"turn_idx": 0, "role": "user"}, {"turn_idx": 1, "role": "assistant"}],
        "evaluation": {"score": 1.0, "is_correct": True},
    } | more


def test_samples_of_every_eval_ever(tmp_path: Path) -> None:
    rows = [
        sample("a"),
        sample("a", evaluation={"score": 0.0, "is_correct": False}),
        sample(
            "b", messages=None, error="timeout", evaluation={"score": 0, "is_correct": False, "num_turns": 3}
        ),
    ]
    (tmp_path / "u_samples.jsonl").write_bytes(b"".join(map(canonical.line, rows)))
    account, records = imported(None, tmp_path / "u_samples.jsonl", tmp_path / "out", condition="nominal")
    assert account.imported.format == "every-eval"
    found = [(r["run_id"], r["outcome"], r["trial"], r["steps_actual"]) for r in records]
    assert found == [
        ("gsm8k/a#0", "success", 0, 1),
        ("gsm8k/a#1", "failure", 1, 1),
        ("gsm8k/b#0", "harness_error", 0, 3),
    ]
    assert counts(account, "odd") == {
        "samples again in the same evaluation, taken as further trials": 1,
        "samples with an error, taken as harness errors": 1,
    }
    again = [*rows[:2], rows[0] | {"evaluation_id": "converted again"}]
    (tmp_path / "u_samples.jsonl").write_bytes(b"".join(map(canonical.line, again)))
    account, _ = imported(None, tmp_path / "u_samples.jsonl", tmp_path / "again", condition="nominal")
    assert counts(account, "odd") == {
        "samples again in another evaluation, taken as further trials": 1,
        "samples again in the same evaluation, taken as further trials": 1,
    }
    rows[0]["metadata"] = {"attack": "prompt_injection"}
    (tmp_path / "u_samples.jsonl").write_bytes(b"".join(map(canonical.line, rows)))
    account, _ = imported(None, tmp_path / "u_samples.jsonl", tmp_path / "named", condition="nominal")
    assert counts(account, "odd")["runs called nominal by --condition whose names say injection"] == 1


def attributes(**values: object) -> list[dict[str, Any]]:
    return [
        {
            "key": key.replace("__", "."),
            "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v},
        }
        for key, v in values.items()
    ]


def spans(trace: str, label: str, parent: str = "") -> list[dict[str, Any]]:
    result = attributes(gen_ai__evaluation__name="judge", gen_ai__evaluation__score__label=label)
    root = attributes(gen_ai__operation__name="invoke_agent", gen_ai__agent__name="clerk", shop__task="t1")
    chat = attributes(gen_ai__operation__name="chat")
    tool = attributes(gen_ai__operation__name="execute_tool", error__type="timeout")
    events = [{"name": "gen_ai.evaluation.result", "attributes": result}]
    lead = {"traceId": trace, "startTimeUnixNano": "1767225600000000000"}
    return [
        lead | {"spanId": "2", "parentSpanId": "1", "attributes": chat},
        lead | {"spanId": "3", "parentSpanId": "1", "attributes": tool, "status": {"code": 2}},
        lead | {"spanId": "1", "parentSpanId": parent, "name": "run", "attributes": root, "events": events},
    ]


def exported(*groups: list[dict[str, Any]]) -> dict[str, Any]:
    resource = {"attributes": attributes(service__name="shop")}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": group}]} for group in groups]}


@pytest.mark.parametrize("lines", [False, True])
def test_traces_of_opentelemetry_however_their_spans_are_spread(tmp_path: Path, *, lines: bool) -> None:
    first, second = spans("a", "pass"), spans("b", "fail", parent="0" * 16)  # as some exporters write none
    parts = (
        [exported(first[:1]), exported(second, first[1:])]
        if lines
        else [exported(first[:1], second, first[1:])]
    )
    (tmp_path / "spans.json").write_bytes(b"".join(map(canonical.line, parts)))
    with pytest.raises(ImportFaultsError) as caught:
        imported(None, tmp_path / "spans.json", tmp_path / "out")
    assert "domain, task_id, condition" in str(caught.value)
    (tmp_path / "map.toml").write_text(
        '[columns]\ntask_id = "attributes.`shop.task`"\n[when.condition]\n'
        'tool_failure = "tool_errors > 0"\nnominal = "otherwise"\n'
    )
    account, records = imported(
        None, tmp_path / "spans.json", tmp_path / "out", mapping=tmp_path / "map.toml", domain="shop"
    )
    assert account.agent.name == "clerk"
    assert records[0] == {
        "run_id": "a",
        "steps_actual": 1,
        "started_at": "2026-01-01T00:00:00+00:00",
        "outcome": "success",
        "task_id": "t1",
        "condition": "tool_failure",
        "domain": "shop",
    }
    assert [(record["run_id"], record["outcome"]) for record in records] == [
        ("a", "success"),
        ("b", "failure"),
    ]


def test_a_sample_that_contradicts_itself_is_refused_and_an_equal_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "u_samples.jsonl"
    path.write_bytes(canonical.line(sample("a")) * 3)
    account, _ = imported(None, path, tmp_path / "out", condition="nominal")
    assert counts(account, "odd") == {"lines equal to an earlier line": 2}
    path.write_bytes(canonical.line(sample("a", evaluation={"score": 0.0, "is_correct": True})))
    with pytest.raises(ImportFaultsError, match="expected no score of 0 where is_correct is true"):
        imported(None, path, tmp_path / "none", condition="nominal")


def test_traces_that_are_left_out_are_told_and_crashed_ones_are_not_left_out(tmp_path: Path) -> None:
    lead, group = {"traceId": "b", "spanId": "1"}, spans("a", "pass")
    group[2]["attributes"] += attributes(test__case__name="t")
    given: dict[str, Any] = {"domain": "shop", "condition": "nominal"}
    path = tmp_path / "spans.json"
    path.write_bytes(canonical.line(exported(group, group[:2], [lead | {"name": "GET /"}])))
    account, [record] = imported(None, path, tmp_path / "out", **given)
    assert record["steps_actual"] == 1
    assert counts(account, "refused") == {
        "spans that the log repeats": 2,
        "traces without a span of an agent, a model or a tool, a test case and an error": 1,
    }
    agent = {"attributes": attributes(gen_ai__operation__name="invoke_agent")}
    case = {"attributes": attributes(test__case__name="u")}
    for crashed, asked in (
        (lead | agent, "task_id, outcome"),
        (lead | {"status": {"code": "STATUS_CODE_ERROR"}}, "task_id, outcome"),
        (lead | case, "outcome"),
    ):
        path.write_bytes(canonical.line(exported(group, [crashed])))
        with pytest.raises(ImportFaultsError, match=f"a value for {asked}"):
            imported(None, path, tmp_path / "none", **given)


def test_a_trace_that_crashed_before_it_named_an_agent_is_of_the_only_one(tmp_path: Path) -> None:
    group = spans("a", "pass")
    group[2]["attributes"] += attributes(test__case__name="t")
    crashed = {"traceId": "b", "spanId": "1", "attributes": attributes(test__case__name="u")}
    (tmp_path / "spans.json").write_bytes(canonical.line(exported(group, [crashed])))
    given = {"domain": "d", "condition": "nominal", "success": "tool_errors == 1"}
    account, records = imported(None, tmp_path / "spans.json", tmp_path / "out", **given)
    assert account.agent.name == "clerk"
    assert [record["outcome"] for record in records] == ["success", "failure"]


def evaluated(trace: str, *results: dict[str, Any], **root: Any) -> list[dict[str, Any]]:
    events = [
        {
            "name": "gen_ai.evaluation.result",
            "attributes": attributes(**{f"gen_ai.evaluation.{key}": held for key, held in result.items()}),
        }
        for result in results
    ]
    agent = attributes(gen_ai__operation__name="invoke_agent", test__case__name="t")
    return [{"traceId": trace, "spanId": "1", "attributes": agent, "events": events} | root]


NOMINAL: dict[str, Any] = {"domain": "shop", "condition": "nominal"}


def test_a_trace_is_one_run(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    root = evaluated("a", {"name": "correct", "score.label": "pass"})
    case = {"parentSpanId": "1", "attributes": attributes(test__case__name="u")}
    for more in ({}, case):
        path.write_bytes(canonical.line(exported([*root, {"traceId": "a", "spanId": "2"} | more])))
        with pytest.raises(
            ImportFaultsError, match=r"expected one root span and test\.case\.name in a trace"
        ) as caught:
            imported(None, path, tmp_path / "none", **NOMINAL)
        assert caught.value.faults[0].hint == "export each case as a trace of its own"


def test_of_several_evaluations_the_user_says_which_decides(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    first = evaluated("a", {"name": "correct", "score.label": "Pass"}, status={"code": 2})
    second = evaluated("b", {"name": "polite", "score.label": "fail"})
    path.write_bytes(canonical.line(exported(first, second)))
    test = "evaluations.correct.label == VALUE"
    with pytest.raises(ImportFaultsError, match=f'--success "{test}" .the evaluations are correct, polite'):
        imported(None, path, tmp_path / "none", **NOMINAL)
    path.write_bytes(canonical.line(exported(first)))
    account, [record] = imported(None, path, tmp_path / "out", **NOMINAL)
    assert record["outcome"] == "success"
    assert counts(account, "odd") == {"traces that ended in an error and passed": 1}


def test_a_pass_with_a_score_of_0_is_told_and_one_id_in_two_cases_is_one_trace(tmp_path: Path) -> None:
    path, [chat, tool, root] = tmp_path / "spans.json", spans("AB", "pass")
    [event] = root["events"]
    score = {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0.0}}
    path.write_bytes(canonical.line(exported([chat, tool | {"traceId": "ab"}, root])))
    mapping = {"domain": "shop", "condition": "nominal"}
    (tmp_path / "map.toml").write_text('[columns]\ntask_id = "attributes.`shop.task`"\n')
    _, records = imported(None, path, tmp_path / "out", mapping=tmp_path / "map.toml", **mapping)
    assert [record["run_id"] for record in records] == ["ab"]
    event["attributes"].append(score)
    path.write_bytes(canonical.line(exported([chat, tool, root])))
    account, [record] = imported(None, path, tmp_path / "told", mapping=tmp_path / "map.toml", **mapping)
    assert record["outcome"] == "success"
    assert counts(account, "odd") == {"traces that passed with a score of 0": 1}


def test_results_of_one_evaluation_that_differ_refuse_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_bytes(canonical.line(exported(spans("a", "pass"), spans("a", "fail")[2:])))
    with pytest.raises(ImportFaultsError, match="'judge' again, with another, in trace a"):
        imported(None, path, tmp_path / "none", domain="shop", condition="nominal")


@pytest.mark.parametrize(
    ("key", "column", "version"),
    [("gen_ai.request.model", "model", UNVERSIONED), ("gen_ai.agent.version", "version", "2")],
)
def test_traces_of_two_models_or_versions_of_an_agent_are_not_pooled(
    tmp_path: Path, key: str, column: str, version: str
) -> None:
    path = tmp_path / "spans.json"

    def written(*told: str) -> None:
        groups = [spans(name, "pass") for name in "ab"]
        for group, name in zip(groups, told, strict=True):
            group[0]["attributes"] += attributes(**{key.replace(".", "__"): name})
        path.write_bytes(canonical.line(exported(*groups)))

    written("1", "2")
    (tmp_path / "map.toml").write_text("[columns]\ntask_id = 'attributes.`shop.task`'\n")
    given: dict[str, Any] = {"domain": "shop", "condition": "nominal", "mapping": tmp_path / "map.toml"}
    with pytest.raises(InputError, match="has several versions: 1, 2") as caught:
        imported(None, path, tmp_path / "none", **given)
    assert f"--split-by {column}" in (caught.value.hint or "")
    options = ImportOptions(split_by=column, **given)
    assert len(run(path, tmp_path / "each", options, SILENT)) == len("12")
    written("2", "2")
    account, _ = imported(None, path, tmp_path / "out", **given)
    assert account.agent.version == version
