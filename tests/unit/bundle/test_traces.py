"""Traces: what a transcript shows is filled in, enclosed, and compared again when the bundle is assessed."""

from __future__ import annotations

import hashlib
import tracemalloc
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import zstandard

import certkit
from certkit.bundle.folder import open_bundle
from certkit.bundle.writer import seal
from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.imports import ImportOptions, run
from certkit.record import trace as traces
from certkit.summary.summarise import summarise
from certkit.summary.summary import Traces
from tests.support.importing import counts, imported

if TYPE_CHECKING:
    from pathlib import Path

MAPPING = """
[trace]
memory_tools = ["recall"]
checks = {"load" = "plan.load <= 12", "hours" = "plan.hours < 9"}
[when.condition]
tool_failure = "task_id != '0'"
nominal = "otherwise"
"""
SHOWN = {
    "steps_actual": 4,
    "fault_step": 2,
    "recovered": True,
    "recovery_steps": 1,
    "memory_query_offset": 1,
    "violations": 1,
    "layer2_score": 0.5,
}


INFO = {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "shop"}, "num_trials": 1}
LINE = b'{"run_id":"r","form":"messages","log":%b}'


FAULT = {"condition": "tool_failure"}


def call(name: str, key: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": key, "name": name}]}


def conversation(task: str, reward: float) -> dict[str, Any]:
    messages = [
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "?", "tool_calls": [{"id": "u", "name": "mine"}]},
        {"role": "tool", "id": "u", "error": True},  # the user's own call
        call("book", "a"),
        {"role": "tool", "id": "a", "error": True},
        call("recall", "b"),
        {"role": "tool", "id": "b", "error": False},
        {"role": "assistant", "content": 'Done:\n```json\n{"plan": {"load": 12, "hours": 9.5}}\n```'},
    ]
    return {"id": f"s{task}", "task_id": task, "reward_info": {"reward": reward}, "messages": messages}


def bundle(folder: Path, **options: Any) -> Path:
    runs = [conversation("0", 1.0), conversation("1", 1.0), conversation("2", 0.0)]
    (folder / "log.json").write_bytes(canonical.line({"info": INFO, "simulations": runs}))
    (folder / "map.toml").write_text(MAPPING)
    imported(None, folder / "log.json", folder / "out", mapping=folder / "map.toml", **options)
    return folder / "out"


def records(root: Path) -> list[dict[str, Any]]:
    return [canonical.loads(line) for line in (root / "records/runs.jsonl").read_bytes().splitlines()]


def test_a_conversation_gives_steps_fault_recovery_memory_and_violations(tmp_path: Path) -> None:
    nominal, won, lost = records(bundle(tmp_path))
    assert won.items() >= SHOWN.items()
    assert lost.items() >= {"fault_step": 2, "recovered": False, "memory_query_offset": 1}.items()
    assert "recovery_steps" not in lost
    assert nominal.keys() & set(traces.FIELDS) == {"steps_actual", "violations", "layer2_score"}
    assert {record["measured"] for record in (nominal, won, lost)} == {"derived"}
    [path] = (tmp_path / "out" / "traces").glob(f"{won['trace'].removeprefix('sha256:')}*")
    lines = list(map(canonical.loads, unpacked(path).splitlines()))
    assert lines[1] == {"run_id": won["run_id"], "form": "messages", "log": conversation("1", 1.0)}


def unpacked(path: Path) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(path.read_bytes()) as stream:
        return stream.read()


def test_events_show_the_same_as_messages() -> None:
    events = [
        {"event": "model"},
        {"event": "subtask", "events": [{"event": "model"}]},
        {"event": "tool", "function": "book", "error": {"type": "timeout"}},
        {"event": "model"},
        {"event": "tool", "function": "recall"},
        {"event": "model"},
        {"event": "span_begin", "type": "scorers"},
        {"event": "model"},
    ]
    messages = conversation("1", 1.0)["messages"]
    data = canonical.line({"events": events, "messages": messages})
    rules = traces.Rules(memory_tools=("recall",), checks={"a": "plan.load <= 12", "b": "plan.hours < 9"})
    shown = traces.shown(msgspec.json.decode(data, type=traces.Inspected))
    assert shown.fields(rules, "tool_failure", "success") == SHOWN
    assert shown.fields(rules, "tool_failure", "harness_error") == {"steps_actual": 4}


def test_a_call_of_the_turn_that_failed_is_no_recovery() -> None:
    calls = (
        traces.Call("pay", 2, failed=True),
        traces.Call("ls", 2, failed=False),
        traces.Call("ls", 5, failed=False),
    )
    fields = traces.Shown(5, calls).fields(traces.Rules(memory_tools=("ls",)), "tool_failure", "success")
    assert (fields["fault_step"], fields["recovery_steps"], fields["memory_query_offset"]) == (2, 3, 3)


def changed(root: Path, change: dict[str, Any]) -> list[str]:
    """Return the findings about traces after a change of the second record."""
    path, (first, second, third) = root / "records/runs.jsonl", records(root)
    second = {name: value for name, value in (second | change).items() if value is not None}
    path.write_bytes(b"".join(map(canonical.line, (first, second, third))))
    seal(root)
    found = certkit.assess(root, profile="hb-eval-2026").to_dict()["findings"]
    return [f"{item['severity']} {item['code']}" for item in found if item["code"] == "trace-differs"]


def test_an_assessment_derives_the_values_again(tmp_path: Path) -> None:
    root = bundle(tmp_path)
    assert changed(root, {}) == []
    assert summarise(open_bundle(root)).traces == Traces(named=3, enclosed=3, derived=3)


def test_a_full_trace_file_takes_no_further_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "FULL", 2 * len(canonical.line(conversation("0", 1.0))))
    root = bundle(tmp_path)
    first, second, third = (record["trace"] for record in records(root))
    assert first == second != third
    assert len(list((root / "traces").glob(f"*{traces.SUFFIX}"))) == 2
    assert changed(root, {}) == []
    assert summarise(open_bundle(root)).traces == Traces(named=3, enclosed=3, derived=3)


def test_a_line_end_between_the_values_of_a_log_does_not_end_the_line_of_its_trace() -> None:
    packer = traces.TracePacker()
    for name in ("a\n", 'b"'):
        packer.add(name, "messages", canonical.pretty(conversation("1", 1.0)).encode())
    shown = traces.shown(msgspec.convert(conversation("1", 1.0), traces.Conversation))
    assert list(traces.read(BytesIO(packer.packed()), "traces/a")) == [("a\n", shown), ('b"', shown)]


def test_the_order_of_records_does_not_hide_what_their_traces_contradict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "FULL", 2 * len(canonical.line(conversation("0", 1.0))))
    root = bundle(tmp_path)
    first, second, third = (record | {"steps_actual": 3} for record in records(root))
    (root / "records/runs.jsonl").write_bytes(canonical.line(second))
    (root / "records/others.jsonl").write_bytes(canonical.line(third) + canonical.line(first))
    seal(root)
    assert summarise(open_bundle(root)).traces == Traces(named=3, enclosed=3, differ=3)


def test_no_record_and_no_copy_beside_hides_what_a_trace_contradicts(tmp_path: Path) -> None:
    root = bundle(tmp_path)
    first, *others = records(root)
    decoy = first | {"run_id": "decoy"}
    lines = [decoy, first, *(record | {"steps_actual": 9} for record in others)]
    (root / "records/runs.jsonl").write_bytes(b"".join(map(canonical.line, lines)))
    [path] = (root / "traces").glob(f"*{traces.SUFFIX}")
    (root / "traces" / "zz.txt").write_bytes(path.read_bytes())
    seal(root)
    assert summarise(open_bundle(root)).traces == Traces(named=4, enclosed=3, derived=1, differ=2, bare=1)


@pytest.mark.parametrize(
    "more", [FAULT | {"fault_step": 1}, FAULT | {"recovered": True}, {"violations": 0}], ids=str
)
def test_what_a_trace_does_not_show_makes_no_record_derived(tmp_path: Path, more: dict[str, Any]) -> None:
    said = {"messages": [{"role": "assistant", "content": "Hi"}]}
    (tmp_path / "log.json").write_bytes(
        canonical.line({"info": INFO, "simulations": [conversation("0", 1.0) | said]})
    )
    imported(None, tmp_path / "log.json", tmp_path / "out")
    root = tmp_path / "out"
    [record] = records(root)
    assert summarise(open_bundle(root)).traces == Traces(named=1, enclosed=1, derived=1)
    (root / "records/runs.jsonl").write_bytes(canonical.line(record | more))
    seal(root)
    assert summarise(open_bundle(root)).traces == Traces(named=1, enclosed=1, bare=1)


def test_a_field_that_a_mapping_fills_is_not_derived(tmp_path: Path) -> None:
    log = {"info": INFO, "simulations": [conversation("0", 1.0) | {"broken": 0}]}
    (tmp_path / "log.json").write_bytes(canonical.line(log))
    (tmp_path / "map.toml").write_text('[columns]\nviolations = "reward_info.reward"\n')
    _, [record] = imported(None, tmp_path / "log.json", tmp_path / "out", mapping=tmp_path / "map.toml")
    assert ("measured" in record, "trace" in record) == (False, True)
    assert summarise(open_bundle(tmp_path / "out")).traces == Traces(named=1, enclosed=1)


@pytest.mark.parametrize(("column", "told"), [("reward_info.steps", 0), ("reward_info.reward", 1)])
def test_a_column_that_contradicts_a_transcript_is_told(tmp_path: Path, column: str, told: int) -> None:
    scored = {"reward_info": {"reward": 1.0, "steps": 4}}
    log = {"info": INFO, "simulations": [conversation("0", 1.0) | scored]}
    (tmp_path / "log.json").write_bytes(canonical.line(log))
    (tmp_path / "map.toml").write_text(f'[columns]\nsteps_actual = "{column}"\n')
    account, _ = imported(None, tmp_path / "log.json", tmp_path / "out", mapping=tmp_path / "map.toml")
    odd = counts(account, "odd")
    assert odd.get("runs whose transcript says something else than a column", 0) == told


OTHERS = {"messages": [], "events": [{"event": "model"}] * 3, "transcript": "text", "traj": 5}


@pytest.mark.parametrize("others", [OTHERS, {"a": ["not a number"]}], ids=["members of other formats", "NaN"])
def test_what_an_import_does_not_read_does_not_speak_against_it(
    tmp_path: Path, others: dict[str, Any]
) -> None:
    said = [{"role": "assistant", "content": "Hi"}]
    deep = (
        "[" * 60 + "12345678901234567890, " + '{"a": 1, "a": 2}' + "]" * 60
    )  # as a program of another kind may write it
    old = others | {"task_id": 1, "reward": 1.0, "info": {}, "traj": said}
    new = others | {"id": "1", "task_id": "1", "reward_info": {"reward": 1.0}, "messages": said}
    for name, log in (("old", [old]), ("new", {"info": INFO, "simulations": [new]})):
        text = canonical.line(log).decode().replace('"task_id"', f'"deep": {deep}, "task_id"', 1)
        (tmp_path / f"{name}.json").write_text(text.replace('"not a number"', "NaN"))
        given = {"domain": "d"} if name == "old" else {}
        imported(None, tmp_path / f"{name}.json", tmp_path / name, agent="a", **given)
        assert summarise(open_bundle(tmp_path / name)).traces == Traces(named=1, enclosed=1, derived=1)


@pytest.mark.parametrize("blanks", [0, *range(65_520, 65_540)])
def test_nan_and_infinities_are_null_wherever_they_stand_and_texts_stay(blanks: int) -> None:
    log = (
        '{"messages": [{"content": [-1, %sNaN, -Infinity, Infinity, "NaN \\" -Infinity", {"N": -Infinity}]}]}'
    )
    messages = traces.decoded((log % (" " * blanks)).encode(), traces.Conversation).messages
    assert messages is not None
    assert messages[0].content == [-1, None, None, None, 'NaN " -Infinity', {"N": None}]


@pytest.mark.parametrize("value", ["-NaN", "1NaN", "NaN1", "--Infinity", "[NaN", 'NaN"', '"NaN'])
def test_what_is_no_json_beside_nan_is_refused(value: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        traces.decoded(b'{"messages": [{"content": %s}]}' % value.encode(), traces.Conversation)


def test_events_within_events_are_all_met() -> None:
    inner: dict[str, Any] = {"event": "model"}
    for _ in range(400):
        inner = {"event": "model", "events": [inner, {"event": "model"}]}
    log = msgspec.convert({"events": [inner]}, traces.Inspected)
    assert traces.shown(log).steps == 801


def test_of_the_blocks_of_an_answer_two_are_kept() -> None:
    tracemalloc.start()
    try:
        assert traces.extract("{}" * 50_000 + '{"a": 1}') == {}
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_trace_file_counts_for_no_run_that_has_no_line_in_it(tmp_path: Path) -> None:
    root = bundle(tmp_path)
    assert changed(root, {"run_id": "another"}) == []
    assert summarise(open_bundle(root)).traces == Traces(named=3, enclosed=2, derived=2, bare=1)


@pytest.mark.parametrize(
    "change",
    [
        {"steps_actual": 3},
        {"violations": 0},
        {"violations": None},  # a derived record leaves nothing out
        {"recovery_steps": 0},
        {"steps_actual": 3, "measured": "asserted"},
        {"layer2_score": 1.0},
    ],
    ids=str,
)
def test_a_value_that_the_trace_contradicts_is_serious(tmp_path: Path, change: dict[str, Any]) -> None:
    assert changed(bundle(tmp_path), change) == ["serious trace-differs"]


def test_an_asserted_record_may_leave_out_what_its_trace_shows(tmp_path: Path) -> None:
    assert changed(bundle(tmp_path), {"violations": None, "measured": "asserted"}) == []


def test_no_transcript_is_enclosed_where_the_user_says_so(tmp_path: Path) -> None:
    root = bundle(tmp_path, traces=False)
    assert sorted(path.name for path in root.iterdir()) == ["bundle.json", "records"]
    assert records(root)[1].items() >= SHOWN.items()
    assert not {"trace", "measured"} & records(root)[1].keys()


@pytest.mark.parametrize(
    "data",
    [
        b"no zstd",
        zstandard.compress(LINE % b"{}" + b" " * (73 << 20)),
        zstandard.compress(b"["),
        zstandard.compress(b'{"run_id":"r","log":{}}'),
        zstandard.compress(LINE.replace(b"messages", b"others") % b"{}"),
        zstandard.compress(LINE % b'{"messages":{}}'),
        zstandard.compress(LINE % b"{}" + b"\n" + LINE % b"{}"),
        zstandard.compress(LINE % b"{}\n") + zstandard.compress(LINE % b"["),
        zstandard.compress(LINE % (b'{"id": [' + b"0," * 1_400_000 + b"0]}")),
    ],
)
def test_a_trace_that_cannot_be_read_is_refused(tmp_path: Path, data: bytes) -> None:
    root, digest = bundle(tmp_path), hashlib.sha256(data).hexdigest()
    (root / "traces" / f"{digest}{traces.SUFFIX}").write_bytes(data)
    with pytest.raises(CertkitError) as caught:
        changed(root, {"trace": f"sha256:{digest}"})
    assert caught.value.code == "bundle.trace"


def test_the_column_of_an_answer_is_checked_in_a_table(tmp_path: Path) -> None:
    rows = [{"reply": '{"plan": {"load": 1, "hours": 1}}'}, {"reply": "no JSON"}, {}]
    lead = {"domain": "d", "condition": "nominal", "outcome": "success"}
    lines = [lead | {"task_id": f"t{i}"} | row for i, row in enumerate(rows)]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(map(canonical.line, lines)))
    (tmp_path / "map.toml").write_text(
        '[trace]\nanswer = "reply"\nchecks = {"load" = "plan.load <= 12", "hours" = "plan.hours < 9"}\n'
    )
    _, found = imported(
        None, tmp_path / "rows.jsonl", tmp_path / "out", agent="a", mapping=tmp_path / "map.toml"
    )
    assert [(row.get("violations"), row.get("layer2_score")) for row in found] == [
        (0, 1),
        (2, 0),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("```" + "a" * 200_000, None),  # in proportion to its length: minutes, if its square
        ('Here:\n```json\n{"a": 1}\n```\nBye {"b": 2}', {"a": 1}),
        ('I say {"a": "}"} and {"b": 2}', {"a": "}"}),
        ('Use {braces} as in {"a": [1, 2]}.', {"a": [1, 2]}),
        ('It is {"a": 1, "b": [1, 2', {"a": 1, "b": [1, 2]}),
        ('It is {"a": 1, "b": {"c": 2, "d', {"a": 1, "b": {"c": 2}}),
        ("no braces", None),
        ("[1, 2]", None),
        ("{" * 5000, None),
        ("", None),
    ],
)
def test_json_is_found_by_the_five_strategies(text: str, value: object) -> None:
    assert traces.extract(text) == value


def test_a_check_that_is_no_expression_is_refused(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text('[trace]\nchecks = {"load" = "open(1)"}\n')
    (tmp_path / "rows.csv").write_text("task_id\nt\n")
    with pytest.raises(CertkitError, match="only min, max and len") as caught:
        run(tmp_path / "rows.csv", tmp_path / "out", ImportOptions(mapping=tmp_path / "map.toml"), SILENT)
    assert caught.value.code == "import.mapping"
