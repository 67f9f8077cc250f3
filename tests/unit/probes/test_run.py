"""Running an agent: what it is asked, how it may fail, and that a run goes on where it stopped."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pytest

from certkit.bundle.folder import open_bundle
from certkit.ground import canonical, files
from certkit.ground.errors import CertkitError, UsageError
from certkit.probes.agents import Asking, agents_of, prompt
from certkit.probes.reading import read
from certkit.probes.records import Mode, asked
from certkit.probes.running import Ran, generate_probes, run_probes
from tests.support import agents
from tests.support.running import certkit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType


WRITERS = ("integrity/running.py", "certkit/ground/files.py", "bundle/folder.py")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probes") / "tasks"
    generate_probes(folder, seed="s", instances=1)
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks of one's own with four probes: the cheapest inventory."""
    folder = tmp_path_factory.mktemp("probes") / "own"
    generate_probes(folder, seed="s", instances=1)
    path = folder / "integrity" / "tasks.jsonl"
    data = b"".join(
        line for line in path.read_bytes().splitlines(keepends=True) if b"tool_output-easy-1" in line
    )
    path.write_bytes(data)
    inventory = msgspec.json.decode((folder / "integrity" / "inventory.json").read_bytes())
    inventory |= dict.fromkeys(["generator", "seed", "seed_commitment", "instances"])
    inventory["tasks_digest"] = canonical.digest(data)
    (folder / "integrity" / "inventory.json").write_bytes(canonical.canonical(inventory))
    return folder


def run(tasks: Path, out: Path, spec: str, **how: Any) -> Ran:
    return run_probes(tasks, out, Asking(spec, key="k1", **{"timeout": 30} | how))


def lines(out: Path) -> list[dict[str, Any]]:
    data = (out / "integrity" / "answers.jsonl").read_bytes()
    return [msgspec.json.decode(line) for line in data.splitlines()]


def contents(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_function_is_asked_everything_once_attempts_first_and_nothing_is_appended(
    tasks: Path, tmp_path: Path
) -> None:
    agents.PROMPTS.clear()
    ran = run(tasks, tmp_path / "b", "python:tests.support.agents:remembers")
    assert (ran.answered, ran.errors, ran.left) == (150, 0, 0)
    generated = read(tasks).tasks
    questions = list(asked(generated))
    assert [prompt(*question, Mode.JSON) for question in questions] == agents.PROMPTS
    assert [key.probe for key, _, _ in questions[:48]] == [None] * 48
    for (_, task, question), text in zip(questions, agents.PROMPTS, strict=True):
        positions = [
            text.index(part) for part in (task.scenario, task.instruction, *task.turns, question.prompt)
        ]
        assert positions == sorted(positions)
        assert "reply number" not in text
        assert not {"distractor", task.family.value, task.id} & set(text.split())
    assert [line["text"] for line in lines(tmp_path / "b")][:2] == [
        f"reply number {n:04} – ž" for n in (1, 2)
    ]


def test_the_run_is_a_sealed_bundle(tasks: Path, tmp_path: Path) -> None:
    ran = run(tasks, tmp_path / "b", "reference:oracle")
    bundle = open_bundle(tmp_path / "b")
    assert (bundle.facts.sealed, bundle.facts.digest) == (True, ran.digest)
    assert bundle.manifest.protocol.origin == "simulated"
    again = run(tasks, tmp_path / "b", "reference:oracle")
    assert again == ran


def test_a_program_answers_in_one_process_or_isolated_in_one_for_each_call(two: Path, tmp_path: Path) -> None:
    spec = agents.program(tmp_path / "agent.py", "answers")
    assert run(two, tmp_path / "one", spec).answered == 6
    assert len({line["text"].split()[0] for line in lines(tmp_path / "one")}) == 1
    run(two, tmp_path / "many", spec, isolation=True)
    assert len({line["text"].split()[0] for line in lines(tmp_path / "many")}) == 6


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ("dies", ""),
        ("hangs", "no reply within"),
        ("floods", "limit 1,000,000"),
        ("babbles", "InputError"),
        ("other-id", "the reply is to call 0"),
    ],
)
def test_a_program_that_fails_is_counted_and_the_run_ends(
    how: str, word: str, two: Path, tmp_path: Path
) -> None:
    spec = agents.program(tmp_path / "agent.py", how)
    ran = run(
        two,
        tmp_path / "b",
        spec,
        timeout=0.3 if how == "hangs" else 30,
        retries=0,
        jobs=3 if how == "hangs" else 1,
    )
    assert (ran.answered, ran.errors) == ((5, 1) if how == "dies" else (0, 6))
    errors = [line["error"] for line in lines(tmp_path / "b") if line["status"] == "error"]
    assert all(word in error for error in errors)


def test_a_child_that_holds_the_pipes_does_not_hold_the_run(two: Path, tmp_path: Path) -> None:
    spec = agents.program(tmp_path / "agent.py", "leaves-a-child")
    asking = Asking(spec, timeout=0.3, retries=0, jobs=3)
    running = threading.Thread(target=run_probes, args=(two, tmp_path / "b", asking), daemon=True)
    running.start()
    running.join(timeout=15)  # the child lives longer
    assert [line["error"] for line in lines(tmp_path / "b")] == ["TimeoutError: no reply within 0.3 s"] * 6
    assert not running.is_alive()


def test_a_call_that_failed_is_made_again(two: Path, tmp_path: Path) -> None:
    ran = run(two, tmp_path / "b", agents.program(tmp_path / "agent.py", "dies"))
    assert (ran.answered, ran.errors) == (6, 0)
    assert sorted(line["calls"] for line in lines(tmp_path / "b")) == [1, 1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("raises", "SystemExit"),
        ("raises_what_cannot_be_shown", "Hidden"),
        ("sleeps", "no reply within"),
        ("returns_nothing", "NoneType"),
        ("floods", "more than 1,000,000"),
        ("returns_what_only_looks_like_text", "Worded"),
    ],
)
def test_a_function_that_fails_is_counted(name: str, word: str, two: Path, tmp_path: Path) -> None:
    spec, timeout = f"python:tests.support.agents:{name}", 0.2 if name == "sleeps" else 30
    ran = run(two, tmp_path / "b", spec, timeout=timeout, jobs=6, retries=1)
    assert (ran.answered, ran.errors) == (0, 6)
    assert {(line["calls"], word in line["error"]) for line in lines(tmp_path / "b")} == {(2, True)}


def test_a_run_with_failed_calls_ends_with_4_and_no_traceback(two: Path, tmp_path: Path) -> None:
    spec = "python:tests.support.agents:raises"
    done = certkit("probes", "run", two, "--agent", spec, "-o", tmp_path / "b", "--retries", "0")
    assert (done.code, "0 answered, 6 failed, 0 left" in done.out) == (4, True)
    assert "Traceback" not in done.err + done.out
    assert certkit("probes", "score", tmp_path / "b").code == 4


def test_a_long_reply_is_cut_and_what_is_no_text_replaced(two: Path, tmp_path: Path) -> None:
    run(two, tmp_path / "b", "python:tests.support.agents:talks_too_much")
    assert {(len(line["text"]), line["text"][0], line["cut"]) for line in lines(tmp_path / "b")} == {
        (20_000, "?", True)
    }


class Endpoint(BaseHTTPRequestHandler):
    """An endpoint that answers with what it was asked, and fails as its path says."""

    seen: ClassVar[list[tuple[str, Any, dict[str, Any]]]] = []
    calls = itertools.count()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        document = msgspec.json.decode(body)
        self.seen.append((self.path, self.headers["Authorization"], document))
        first = next(self.calls) == 0
        if self.path.startswith("/busy") and first:
            self.send_error(503)
        elif self.path.startswith("/moved"):
            self.send_response(307)
            self.send_header("Location", "/v1/chat/completions")
            self.end_headers()
        else:
            text = "" if self.path.startswith("/empty") else '{"answer": "x"}'
            reply = {"choices": [{"message": {"content": text}}]} if text else {}
            data = msgspec.json.encode(reply)
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.seen, Endpoint.calls = [], itertools.count()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http:http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_an_endpoint_is_asked_with_model_temperature_and_key(
    endpoint: str, two: Path, tmp_path: Path
) -> None:
    ran = run(two, tmp_path / "b", f"{endpoint}/busy/v1", model="m", jobs=2)
    assert (ran.answered, ran.errors) == (6, 0)
    assert sum(line["calls"] for line in lines(tmp_path / "b")) == 7
    assert {(path, key) for path, key, _ in Endpoint.seen} == {("/busy/v1/chat/completions", "Bearer k1")}
    document = Endpoint.seen[0][2]
    assert (document["model"], document["temperature"]) == ("m", 0)
    assert len(document["messages"]) == 1
    kept = read(tmp_path / "b").run
    assert kept is not None
    assert kept.temperature == 0
    assert b"k1" not in b"".join(path.read_bytes() for path in (tmp_path / "b" / "integrity").iterdir())


@pytest.mark.parametrize(("path", "word"), [("/moved", "HTTP Error 307"), ("/empty", "choices")])
def test_an_endpoint_that_moves_or_says_nothing_is_an_error(
    path: str, word: str, endpoint: str, two: Path, tmp_path: Path
) -> None:
    ran = run(two, tmp_path / "b", endpoint + path, model="m", retries=0)
    assert (ran.answered, ran.errors) == (0, 6)
    assert {word in line["error"] for line in lines(tmp_path / "b")} == {True}
    assert {seen for seen, _, _ in Endpoint.seen} == {f"{path}/chat/completions"}


def test_calls_run_out_and_the_same_command_goes_on(tasks: Path, tmp_path: Path) -> None:
    left = [
        run(tasks, tmp_path / "b", "reference:prose", max_calls=n, jobs=jobs).left
        for n, jobs in ((1, 1), (60, 3), (88, 1), (1, 1))
    ]
    assert left == [149, 89, 1, 0]
    run(tasks, tmp_path / "at-once", "reference:prose")
    by_steps, at_once = (sorted(map(str, lines(tmp_path / name))) for name in ("b", "at-once"))
    assert by_steps == at_once


def test_questions_that_always_fail_leave_no_other_unasked(two: Path, tmp_path: Path) -> None:
    agents.PROMPTS.clear()
    spec = "python:tests.support.agents:fails_at_first"
    left = [run(two, tmp_path / "b", spec, max_calls=2, retries=0).left for _ in range(3)]
    assert left == [4, 2, 0]
    assert len(set(agents.PROMPTS)) == 6
    again = run(two, tmp_path / "b", "python:tests.support.agents:fails_at_first", retries=0)
    assert (again.answered, again.errors, again.left) == (6, 0, 0)


def _killed(at: int, tasks: Path, out: Path) -> bool:
    """Run in a process that is gone, as by SIGKILL, at a line of the code that writes; False if it ends."""
    if (child := os.fork()) == 0:
        lines_left = itertools.count(at, -1)

        def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
            if not frame.f_code.co_filename.endswith(WRITERS):
                return None
            if event == "line" and next(lines_left) == 0:
                os._exit(9)
            return trace

        sys.settrace(trace)
        try:
            run(tasks, out, "reference:oracle")
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_a_run_that_is_killed_at_any_line_goes_on_to_the_same_bytes(two: Path, tmp_path: Path) -> None:
    run(two, tmp_path / "whole", "reference:oracle")
    whole = contents(tmp_path / "whole")
    for at in itertools.count(1, 61):
        out = tmp_path / f"b{at}"
        killed = _killed(at, two, out)
        ran = run(two, out, "reference:oracle")
        assert (ran.answered, ran.errors, ran.left, contents(out)) == (6, 0, 0, whole), at
        shutil.rmtree(out)
        if not killed:
            break
    assert at > 100


def test_a_process_that_is_killed_goes_on_and_asks_every_question_once(tmp_path: Path) -> None:
    generate_probes(tmp_path / "tasks", seed="k")
    path = tmp_path / "b" / "integrity" / "answers.jsonl"
    spec = agents.program(tmp_path / "agent.py", "answers")
    command = [sys.executable, "-m", "certkit", "probes", "run", "tasks", "--agent", spec, "-o", "b", "-q"]
    process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
    while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") > 50):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert 50 < path.read_bytes().count(b"\n") < 450
    with path.open("ab") as stream:
        stream.write(b'{"task_id":"cut')
    ran = run(tmp_path / "tasks", tmp_path / "b", spec)
    assert (ran.answered, ran.errors, ran.left) == (450, 0, 0)
    assert len({(line["task_id"], line.get("probe_id")) for line in lines(tmp_path / "b")}) == 450


def test_the_same_command_asks_again_what_failed(two: Path, tmp_path: Path) -> None:
    spec = agents.program(tmp_path / "agent.py", "dies")
    first = run(two, tmp_path / "b", spec, retries=0)
    assert (first.answered, first.errors, first.left) == (5, 1, 0)
    kept = [line for line in lines(tmp_path / "b") if line["status"] == "answered"]
    again = run(two, tmp_path / "b", spec, retries=0)
    assert (again.answered, again.errors, again.left) == (6, 0, 0)
    assert [line for line in lines(tmp_path / "b") if line in kept] == kept
    assert open_bundle(tmp_path / "b").facts.sealed


@pytest.mark.parametrize(
    "spec",
    ["", "oracle", "reference:nobody", "python:", "python:os", "python:no_such_module:f",
     "python:tests.support.agents:PROMPTS", "command:", "command:no-such-program-anywhere",
     'command:"', "http:ftp://x", "http:http://x"],
)  # fmt: skip
def test_a_spec_that_names_no_agent_is_refused(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        agents_of(Asking(spec))
    assert caught.value.exit_code == 2
    assert "IndexError" not in str(caught.value)
    assert "unpack" not in str(caught.value)


@pytest.mark.parametrize("address", ["https://me:hidden@x.org/v1", "https://x.org/v1?key=hidden"])
def test_an_address_with_a_secret_in_it_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        agents_of(Asking(f"http:{address}", model="m"))
    assert (caught.value.exit_code, "hidden" in str(caught.value)) == (2, False)


def test_a_folder_is_written_by_its_own_run_alone(two: Path, tasks: Path, tmp_path: Path) -> None:
    run(two, tmp_path / "b", "reference:oracle", max_calls=2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    before = (tmp_path / "b" / "integrity" / "answers.jsonl").read_bytes()
    for out, folder, spec, mode, code in (
        ("b", two, "reference:prose", Mode.JSON, "integrity.other-run"),
        ("b", two, "reference:oracle", Mode.TEXT, "integrity.other-run"),
        ("b", tasks, "reference:oracle", Mode.JSON, "integrity.other-run"),
        ("full", two, "reference:oracle", Mode.JSON, "file.exists"),
    ):
        with pytest.raises(CertkitError) as caught:
            run(folder, tmp_path / out, spec, mode=mode)
        assert (caught.value.code, caught.value.exit_code) == (code, 2)
    assert (tmp_path / "b" / "integrity" / "answers.jsonl").read_bytes() == before


def test_a_run_that_goes_on_elsewhere_is_left_alone(two: Path, tmp_path: Path) -> None:
    run(two, tmp_path / "b", "reference:oracle", max_calls=2)
    path = tmp_path / "b" / "integrity" / "answers.jsonl"
    path.write_bytes(path.read_bytes() + b'{"half')
    with files.locked(tmp_path / "b"), pytest.raises(UsageError, match="another program"):
        run(two, tmp_path / "b", "reference:oracle")
    assert path.read_bytes().endswith(b'{"half')


def test_a_run_goes_on_with_the_model_and_the_names_it_began_with(two: Path, tmp_path: Path) -> None:
    spec = "reference:oracle"
    begun = Asking(spec, "Ana", "1", "m1", max_calls=2)
    run_probes(two, tmp_path / "b", begun)
    for change in ({"name": "Bo"}, {"agent_version": "2"}, {"model": "m2"}, {"name": None}):
        with pytest.raises(UsageError) as caught:
            run_probes(two, tmp_path / "b", begun._replace(**change))
        ((field, value),) = change.items()
        assert f"{getattr(begun, field)}, not {value or spec}" in caught.value.message
    assert run_probes(two, tmp_path / "b", begun).left == 2
