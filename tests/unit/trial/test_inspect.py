"""Inspect AI: a task runs a plan, and its log is what the tool boundary makes of the same runs."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib  # noqa: TID251 - a second reading, without our own door
import zipfile
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import zstandard

from certkit import assess
from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.imports import ImportOptions, run
from certkit.imports.source import MAX_LOG_ROW
from certkit.record.outcome import FIELDS, decode_log, derive
from certkit.record.planned import PLAN_FILE, plan_digest
from certkit.record.trace import logs as traces_of
from certkit.summary.summarise import summarise
from certkit.summary.summary import PlannedRuns
from certkit.trial.boundary import Boundary, OwnRules
from certkit.trial.plan import read_plan
from tests.support.trials import GIVEN_AWAY, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.bundle.manifest import Imported
    from certkit.record.outcome import RunLog
    from certkit.trial.plan import PlannedRun, TrialPlan

ROOT = Path(__file__).parents[3]
WRITER = ROOT / "tests" / "support" / "inspect_trials.py"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs that Inspect writes of trials."""
    if importlib.util.find_spec("inspect_ai") is None:
        pytest.skip("inspect_ai is not installed")
    folder = tmp_path_factory.mktemp("trials")
    more = {"XDG_DATA_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", str(WRITER), str(folder)]
    done = subprocess.run(command, capture_output=True, env=os.environ | more, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return folder


@pytest.fixture(scope="module")
def plan(written: Path) -> TrialPlan:
    return read_plan((written / "plan.json").read_bytes(), where="plan.json")


@pytest.fixture(scope="module")
def bundle(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Imports the logs of a name, once."""
    out = tmp_path_factory.mktemp("bundles")

    def make(name: str) -> Path:
        if not (out / name).exists():
            run(logs(written, name), out / name, ImportOptions(), SILENT)
        return out / name

    return make


def logs(written: Path, name: str) -> Path:
    """Return the folder of the logs of a name, of which one kind needs the package of a model's provider."""
    if name == "bridge" and importlib.util.find_spec("openai") is None:
        pytest.skip("openai is not installed")
    return written / name


def runs(folder: Path) -> dict[str, RunLog]:
    """Return the logs of runs that a bundle encloses."""
    made: dict[str, RunLog] = {}
    for path in sorted((folder / "traces").glob("*.zst")):
        with path.open("rb") as file:
            made |= {run_id: decode_log(log) for run_id, form, log in traces_of(file, "") if form == "trial"}
    return made


def notes(folder: Path, kind: str) -> dict[str, int]:
    account: Imported | None = open_bundle(folder).manifest.imported
    assert account is not None
    return {note.what: note.count for note in account.notes if note.kind == kind}


def calls(log: RunLog) -> list[Any]:
    return [event for event in log.events if event.event == "call"]


def sized(key: str) -> int:
    return len(key)


def by_boundary(plan: TrialPlan, planned: PlannedRun, *, two: bool) -> RunLog:
    """Return the log of the run of an agent that does the same in a loop of Python."""
    task = plan.tasks_by_id()[planned.task]
    boundary = Boundary(plan, planned, task, OwnRules(task.attack))
    tools = boundary.wrap({"lookup": lambda key: {"key": key, "total": 41}, "count": sized})
    good = 0
    while good < 4:
        key = f"k{good}"
        for name in ("lookup", "count") if two else ("lookup",):
            try:
                tools[name](key=key)
                good += 1
            except Exception:  # noqa: BLE001, S110 - the agent tries again
                pass
    attacked = False if plan.attacks(planned) else None
    return decode_log(boundary.finish(answer="42", success=True, violations=0, attack_succeeded=attacked))


@pytest.mark.parametrize("name", ["react", "generate", "bridge", "killed"])
def test_a_run_is_what_the_boundary_makes_of_it(
    name: str, plan: TrialPlan, bundle: Callable[[str], Path]
) -> None:
    made, rows = runs(bundle(name)), {record["run_id"]: record for record in records(bundle(name))}
    assert [*made] == [planned.id for planned in plan.runs]
    for planned in plan.runs:
        expected = by_boundary(plan, planned, two=name == "generate")
        fields = {key: value for key, value in rows[planned.id].items() if key in FIELDS}
        assert fields == derive(expected)
        assert rows[planned.id]["measured"] == "derived"
        assert [call.tool for call in calls(made[planned.id])] == [call.tool for call in calls(expected)]
        hit = [(call.fault.intended, call.fault.attack) if call.fault else None for call in calls(expected)]
        assert hit == [
            (call.fault.intended, call.fault.attack) if call.fault else None
            for call in calls(made[planned.id])
        ]


def test_the_same_plan_gives_the_same_faults(bundle: Callable[[str], Path]) -> None:
    # In parallel; one by one with approval of the task's own, killed and resumed.
    assert runs(bundle("react")) == runs(bundle("killed"))
    assert notes(bundle("killed"), "odd") == {}


def test_a_tool_that_is_blocked_did_not_run_and_one_that_is_altered_did(
    bundle: Callable[[str], Path],
) -> None:
    hit = [call for log in runs(bundle("react")).values() for call in calls(log) if call.fault]
    assert {call.fault.effect for call in hit} == {"not_run", "run_response_lost", "run_response_altered"}
    for call in hit:
        assert call.fault.boundary == "tool"
        assert call.fault.observed == call.fault.injected
        true = call.result and msgspec.json.decode(call.result)
        assert (true is None) == (call.fault.effect == "not_run")
        assert true is None or true["total"] == 41
        if call.fault.effect == "run_response_altered":
            assert call.fault.observed["result"] != call.result


def test_behind_a_bridge_answers_are_altered_or_lost(bundle: Callable[[str], Path]) -> None:
    hit = [call for log in runs(bundle("bridge")).values() for call in calls(log) if call.fault]
    assert {call.fault.boundary for call in hit} == {"model"}
    assert {call.fault.effect for call in hit} == {"run_response_lost", "run_response_altered"}
    assert all(call.fault.observed == call.fault.injected for call in hit)


def test_searches_of_memory_show(bundle: Callable[[str], Path]) -> None:
    asked = [record for record in records(bundle("memory")) if "memory_query_offset" in record]
    assert len(asked) == 5  # each run with an error
    assert {(it["memory_query_offset"], it["memory_similarity"], it["memory_modified"]) for it in asked} == {
        (1, 0.91, True)
    }
    assert open_bundle(bundle("memory")).manifest.protocol.memory_observable is True


def test_a_rater_says_how_traceable_a_run_is_and_nothing_of_success(bundle: Callable[[str], Path]) -> None:
    rated = {record["steps_actual"] - 1: record.get("traceability") for record in records(bundle("memory"))}
    assert rated == {4: 4, 5: 5}
    assert {record["outcome"] for record in records(bundle("memory"))} == {"success"}
    judge = open_bundle(bundle("memory")).manifest.protocol.judge
    assert judge is not None
    assert (judge.name, judge.independent) == ("mockllm/model", False)


def test_an_agent_that_hands_over_is_safe_and_makes_no_further_call(bundle: Callable[[str], Path]) -> None:
    outcomes = {record["run_id"]: record["outcome"] for record in records(bundle("halts"))}
    halted = {run_id: log for run_id, log in runs(bundle("halts")).items() if outcomes[run_id] == "safe_halt"}
    assert len(halted) == 5
    for log in halted.values():
        assert log.events[-2].reason == "it fails"
        assert log.events[-3].fault is not None


@pytest.mark.parametrize(("name", "made"), [("calls", 8), ("limit", 5)])
def test_an_agent_that_is_stopped_has_failed(name: str, made: int, bundle: Callable[[str], Path]) -> None:
    assert {record["outcome"] for record in records(bundle(name))} == {"failure"}
    assert {len(calls(log)) for log in runs(bundle(name)).values()} == {made}
    assert {log.events[-1].ended for log in runs(bundle(name)).values()} == {"call_limit"}


def test_approval_that_takes_the_place_of_the_plans_is_counted(bundle: Callable[[str], Path]) -> None:
    assert notes(bundle("bypassed"), "odd") == {
        "runs with tool calls that the plan's approver was not asked for": 10,
        "runs whose planned fault hit no call": 8,
    }


def test_the_bundle_names_the_plan_and_is_recomputed(plan: TrialPlan, bundle: Callable[[str], Path]) -> None:
    protocol = open_bundle(bundle("react")).manifest.protocol
    assert (protocol.plan, protocol.declared_runs) == (plan.digest, 10)
    codes = {finding.code for finding in assess(bundle("react")).assessment.findings}
    assert not codes & {"trace-differs", "runs-missing"}


def test_runs_that_were_not_made_are_missed(written: Path, tmp_path: Path) -> None:
    first = min((written / "killed").glob("*.eval"))
    run(first, tmp_path / "out", ImportOptions(), SILENT)
    assert len(records(tmp_path / "out")) == 5
    assert "runs-missing" in {finding.code for finding in assess(tmp_path / "out").assessment.findings}


def test_a_task_without_a_plan_is_imported_as_before(written: Path, tmp_path: Path) -> None:
    with pytest.raises(CertkitError):
        run(written / "plain", tmp_path / "no", ImportOptions(), SILENT)
    run(written / "plain", tmp_path / "out", ImportOptions(condition="nominal"), SILENT)
    assert {record["task_id"] for record in records(tmp_path / "out")} == {"plain/t0", "plain/t1"}


def test_what_the_page_shows_makes_evidence(bundle: Callable[[str], Path]) -> None:
    made = records(bundle("page"))
    assert {record["task_id"] for record in made} == {"refund", "address"}
    hit = [record for record in made if record["condition"] != "nominal"]
    assert len(hit) == 8
    assert all(record["fault_took_hold"] and record["measured"] == "derived" for record in hit)


def test_tasks_that_do_not_fit_the_plan_are_told(written: Path) -> None:
    assert msgspec.json.decode((written / "refused.json").read_bytes()) == [
        "trial.invalid: the dataset has no sample for 1 task of the plan, the first is 't1'",
        "usage.option: the task has 3 epochs",
        "left out: 1 sample of no task of the plan, first 't2'",
    ]


def said(written: Path, name: str) -> Iterator[str]:
    """Yield every text that a model was given: messages, and descriptions of tools."""
    path = next(logs(written, name).iterdir())
    if path.suffix == ".json":
        samples = msgspec.json.decode(path.read_bytes())["samples"]
    else:
        with zipfile.ZipFile(path) as file, path.open("rb") as raw:
            members = [it for it in file.infolist() if it.filename.startswith("samples/")]
            samples = [msgspec.json.decode(data) for data in starmap(unpacked, ((raw, it) for it in members))]
    for sample in samples:
        yield from sample["attachments"].values()
        for message in sample["events_data"]["messages"]:
            yield str(message["content"])
            yield str((message.get("error") or {}).get("message"))
        for event in sample["events"]:
            yield from (str(it) for it in event.get("tools") or () if event["event"] == "model")


def unpacked(file: Any, member: zipfile.ZipInfo) -> bytes:
    file.seek(member.header_offset + 26)
    lengths = file.read(4)
    file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), 1)
    packed: bytes = file.read(member.compress_size)
    return zstandard.ZstdDecompressor().decompressobj().decompress(packed)


@pytest.mark.parametrize("name", ["react", "bridge", "halts"])
def test_no_text_says_that_the_agent_is_evaluated(name: str, written: Path) -> None:
    texts = {*said(written, name)}
    assert any("timed out after 30 s" in text for text in texts)
    assert not [text for text in texts if GIVEN_AWAY.search(text)]


def test_the_installed_inspect_is_one_that_this_was_tried_with() -> None:
    try:
        version = importlib.metadata.version("inspect-ai")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("inspect_ai is not installed")
    [extra] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "inspect"
    ]
    low, high = re.findall(r"[0-9.]+", extra)
    number: Callable[[str], list[int]] = lambda text: [int(part) for part in text.split(".")]  # noqa: E731
    assert number(low) <= number(version) < number(high)


# Logs made by hand: what the import refuses, without Inspect.

DRAWN: dict[str, Any] = {
    "schema": "urn:certkit:trial-plan:v1",
    "seed": 1,
    "cascade_definition": "sequential",
    "tasks_independent": None,
    "worlds": [],
    "tasks": [{"id": "t", "domain": "d", "steps": 2}],
    "runs": [
        {"id": "r-0", "task": "t", "condition": "tool_failure"},
        {"id": "r-1", "task": "t", "condition": "nominal"},
    ],
}
PLAN = plan_digest(DRAWN)
TOLD = {"plan": DRAWN | {"digest": PLAN}}


def planned(**more: Any) -> dict[str, Any]:
    return {"plan": PLAN, "run": "r-0"} | more


def sample(
    events: list[Any] | None = None, about: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    metadata = {"certkit": planned(**(about or {}))}
    base = {"id": "r-0", "epoch": 1, "scores": {"match": {"value": "C"}}, "events": events or []}
    return base | {"metadata": metadata} | more


def call(result: str = "1", **more: Any) -> dict[str, Any]:
    return {"event": "tool", "id": "c", "function": "look", "arguments": {}, "result": result} | more


def hit(injected: Any, **more: Any) -> dict[str, Any]:
    data = {"intended": "tool_failure", "call": "c", "effect": "run_response_altered", "injected": injected}
    return {"event": "info", "source": "certkit.fault", "data": data | more}


def given(content: Any, **more: Any) -> dict[str, Any]:
    return {"event": "model", "input": [{"role": "tool", "tool_call_id": "c", "content": content} | more]}


def imported(path: Path, *samples: dict[str, Any], **header: Any) -> Path:
    about = {"task": "sums", "model": "org/m", "created": "2025-01-01T00:00:00+00:00"}
    about |= {"metadata": {"certkit": TOLD}} | header
    document = {"version": 2, "status": "success", "eval": about, "samples": [*samples]}
    path.mkdir(exist_ok=True)
    (path / "a.json").write_bytes(canonical.line(document))
    run(path / "a.json", path / "out", ImportOptions(), SILENT)
    return path / "out"


@pytest.mark.parametrize(
    ("seen", "hold"),
    [(given("2"), True), (given([{"type": "text", "text": "2"}]), True), (given("1"), False), ({}, False)],
)
def test_a_fault_took_hold_where_the_model_got_what_was_injected(
    seen: dict[str, Any],
    hold: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
) -> None:
    [record] = records(imported(tmp_path, sample([call(), hit({"result": "2"}), seen])))
    assert record["fault_took_hold"] is hold
    assert record["fault_step"] == 1


def test_messages_and_attachments_are_found_where_the_log_keeps_them(tmp_path: Path) -> None:
    pool = {
        "messages": [{"role": "user"}, {"role": "tool", "tool_call_id": "c", "content": "attachment://x"}]
    }
    events = [
        call("attachment://y"),
        hit({"result": "attachment://x"}),
        {"event": "model", "input_refs": [[0, 2]]},
    ]
    held = sample(events, events_data=pool, attachments={"x": "2" * 200, "y": "1" * 200})
    [event, _] = runs(imported(tmp_path, held))["r-0"].events
    assert event.result == "1" * 200
    assert event.fault is not None
    assert event.fault.observed == event.fault.injected == {"result": "2" * 200}


def test_what_scoring_calls_is_no_call_of_the_agent(tmp_path: Path) -> None:
    [record] = records(
        imported(tmp_path, sample([call(), {"event": "span_begin", "type": "scorers"}, call()]))
    )
    assert record["steps_actual"] == 2


def test_a_score_says_what_became_of_constraints_and_attack(tmp_path: Path) -> None:
    score = {"match": {"value": "C", "metadata": {"certkit": {"violations": 2}}}}
    [record] = records(imported(tmp_path, sample([call()], scores=score)))
    assert (record["violations"], record["outcome"]) == (2, "failure")


def test_the_users_rule_says_what_success_is(tmp_path: Path) -> None:
    with pytest.raises(CertkitError):
        imported(tmp_path, sample(scores={"match": {"value": 0.7}}))
    options = ImportOptions(success="scores.match.value >= 0.5")
    run(tmp_path / "a.json", tmp_path / "out", options, SILENT)
    assert runs(tmp_path / "out")["r-0"].events[-1].success is True
    assert records(tmp_path / "out")[0]["outcome"] == "success"


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ([sample(), sample(epoch=2)], "each run of the plan once"),
        ([sample(about={"plan": "sha256:b"})], "a run of the plan"),
        ([sample(about={"run": 3})], "a sample as certkit.trial.inspect plans it"),
        ([sample(about={"run": "r-2"})], "a run of the plan"),
        ([sample([hit(None, effect="nothing")])], "events as certkit.trial.inspect writes them"),
        ([sample([{"event": "info", "source": "certkit.memory", "data": 3}])], "events as certkit"),
        (
            [sample(scores={"m": {"value": 1, "metadata": {"certkit": {"violations": -1}}}})],
            "a score of a run",
        ),
    ],
)
def test_what_certkit_does_not_write_is_refused(held: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(CertkitError) as caught:
        imported(tmp_path, *held)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "told",
    [{"plan": PLAN}, {"plan": DRAWN | {"digest": PLAN, "seed": 2}}, {"plan": {"digest": PLAN}}, {}],
)
def test_a_plan_whose_digest_does_not_hold_is_refused(told: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(CertkitError):
        imported(tmp_path, sample([call()]), metadata={"certkit": told})
    assert not (tmp_path / "out").exists()


def test_what_was_planned_comes_from_the_plan_and_not_from_the_sample(tmp_path: Path) -> None:
    claimed = {"condition": "nominal", "task": "u", "domain": "e", "oracle": 9, "attack": True, "trial": 5}
    out = imported(tmp_path, sample([call(), hit({"result": "2"}), given("2")], about=claimed))
    [record] = records(out)
    names = ("run_id", "task_id", "domain", "condition", "steps_oracle", "trial")
    assert [record[name] for name in names] == ["r-0", "t", "d", "tool_failure", 2, 0]
    assert "attack_attempted" not in record


def test_the_plan_of_a_log_is_enclosed_and_says_what_the_manifest_states(tmp_path: Path) -> None:
    worlds = [{"name": "old", "public": True}, {"name": "new"}]
    document = DRAWN | {"worlds": worlds}
    told = document | {"digest": plan_digest(document)}
    about = {"plan": told["digest"]}
    out = imported(tmp_path, sample([call()], about=about), metadata={"certkit": {"plan": told}})
    assert canonical.loads((out / PLAN_FILE).read_bytes()) == told
    protocol = open_bundle(out).manifest.protocol
    assert (protocol.plan, protocol.plan_seed, protocol.declared_runs) == (told["digest"], 1, 2)
    assert protocol.public_tasks == ("old",)
    assert open_bundle(out).facts.protocol.plan == told["digest"]
    assert summarise(open_bundle(out)).plan == PlannedRuns(planned=2, present=1)


def test_a_log_that_grows_when_it_is_read_is_refused(tmp_path: Path) -> None:
    attachments = {"x": "x" * (MAX_LOG_ROW // 64)}
    events = [call("attachment://x", id=f"c{number}") for number in range(400)]
    with pytest.raises(CertkitError, match="attachments of more than"):
        imported(tmp_path, sample(events, attachments=attachments))
    assert 400 * len(attachments["x"]) > 64 * 1024 * 1024


def test_references_without_end_are_refused(tmp_path: Path) -> None:
    pool = {"messages": [{"role": "user"}] * 5_000}
    far = [{"event": "model", "input_refs": [[1, 5_000]] * 100}] * 40
    with pytest.raises(CertkitError, match="inputs of more than"):
        imported(tmp_path, sample(far, events_data=pool))


def test_an_event_of_certkits_without_a_plan_is_nothing(tmp_path: Path) -> None:
    make = partial(imported, tmp_path, sample([call(), hit({"result": "2"})], metadata={}))
    with pytest.raises(CertkitError, match="a log that does not say whether faults were injected"):
        make()
