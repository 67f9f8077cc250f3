"""Files that commands read and write: nothing is overwritten unasked, and nothing but a file is read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.running import Done, certkit
from tests.support.script import LEAVES

if TYPE_CHECKING:
    from collections.abc import Iterator

# What each option writes that can write, and the rest of a line in which it does.
WRITES: Final = {
    ("assess", "-o"): "a",
    ("context init", "-o"): "a",
    ("show", "-o"): "first/passport.json --format markdown --trust trust.json --at 2026-03-02",
    ("report", "-o"): "a",
    ("view", "-o"): "a",
    ("registry prove", "-o"): "registry 0",
    ("registry status", "-o"): "registry 0",
    ("trial plan", "-o"): "trial.toml",
    ("keys generate", "-o"): "",
    ("keys generate", "--public"): "-o never.pem",
    ("import", "-o"): "records rows.csv --map map.toml --agent courier --agent-version 1",
    ("issue", "-o"): "a --key key.pem --issuer Lab",
    ("simulate", "-o"): "--runs 300 --domains 2",
    ("demo", "-o"): "",
    ("probes generate", "-o"): "--instances 1",
    ("probes sheet", "-o"): "probed --kind audit",
    ("probes run", "-o"): "tasks --agent reference:recency",
    ("trial run", "-o"): "plan.json --agent reference:gold",
}
IN_PLACE: Final = {"trust add"}
"""Commands that change the file that their first option names, which is what they are for."""


@pytest.fixture(scope="module")
def ran(
    script: tuple[Path, list[tuple[str, Done]]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """A folder in which every command has run once, and the lines that were run."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copytree(script[0], folder, dirs_exist_ok=True)
    return folder, [line for line, _ in script[1]]


@pytest.fixture
def root(ran: tuple[Path, list[str]]) -> Iterator[Path]:
    """That folder, as the present one."""
    folder, _ = ran
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        yield folder


def options(leaf: str) -> dict[str, Any]:
    """Return the options of a command by their first names."""
    return {item.opts[0]: item for item in LEAVES[leaf].params if item.param_type_name == "option"}


def test_every_option_that_writes_a_file_is_here() -> None:
    named = {
        (leaf, name)
        for leaf in LEAVES
        for name, item in options(leaf).items()
        if item.name in {"out", "public"} or re.search("write.*this file", item.help or "")
    }
    assert {(leaf, name) for leaf, name in named if name != "--force"} == set(WRITES)
    forced = {leaf for leaf in LEAVES if "--force" in options(leaf)}
    assert forced == {leaf for leaf, _ in list(WRITES)[:8]}


@pytest.mark.parametrize(("leaf", "option"), WRITES)
def test_what_is_there_is_replaced_only_by_force(leaf: str, option: str, root: Path) -> None:
    line = [*leaf.split(), *shlex.split(WRITES[leaf, option]), option, "there.html"]
    there = root / "there.html"
    there.write_bytes(b"kept")
    done = certkit(*line)
    assert (done.code, done.out) == (2, "")
    assert there.read_bytes() == b"kept"
    assert done.err.startswith("error: there.html: exists")
    assert not (root / "never.pem").exists()
    by_force = "--force" in options(leaf)
    other = ", or replace it with --force" if by_force else ""
    assert done.err.endswith(f"\nhint: choose another name{other}\n")
    assert certkit(*line, "--json").document["error"]["code"] == "file.exists"
    if by_force:
        assert certkit(*line, "--force").code in {0, 1, 4}
        assert there.read_bytes() != b"kept"
    there.unlink()
    if by_force:
        assert certkit(*line).code in {0, 1, 4}
        there.unlink()


def test_what_stands_in_the_way_is_told_before_the_work_is_done(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the bundle was judged for nothing")

    monkeypatch.setattr("certkit.api.judging.evaluate", never)
    (root / "case.html").write_bytes(b"kept")
    (root / "case.pdf").write_bytes(b"kept")
    for line in ("assess a -o case.html", "report a -o case.html", "report a -o case.pdf"):
        done = certkit(*line.split())
        assert (done.code, f"{line.split()[-1]}: exists" in done.err) == (2, True), line
    assert {(root / f"case.{end}").read_bytes() for end in ("html", "pdf")} == {b"kept"}


@pytest.mark.parametrize("target", ["folder", "pipe", "/dev/null"])
def test_force_replaces_files_alone(target: str, root: Path) -> None:
    (root / "folder").mkdir(exist_ok=True)
    if not (root / "pipe").exists():
        os.mkfifo(root / "pipe")
    done = certkit("assess", "a", "-o", target, "--force", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "file.not-regular")
    assert not Path(target).is_file()


# Lines of commands that the script shows with few files to read, or that do not work a second time.
LINES: Final = {
    "assess": ("a", "rows.csv --agent courier"),
    "context init": ("a -o never",),
    "bundle init": ("new --agent agent --version 1",),
    "drift": ("first/passport.json a --trust trust.json",),
    "import": ("records rows.csv -o never --map map.toml",),
    "issue": (
        "a -o never --key key.pem --issuer Lab --registry registry --trust trust.json",
        "a -o never --issuer Lab --keyless",
    ),
    "keys generate": ("-o never",),
    "registry cosign": ("registry cosigned --trust trust.json",),
    "registry init": ("never --name lab",),
    "registry rotate-key": ("registry --log-key key.pem --new-log-key next.pem",),
    "report": ("first/passport.json --bundle a -o never.html",),
    "show": ("first/passport.json -f svr -t trust.json --bundle a --replay -o never --at 2026-03-02",),
    "trial plan": ("trial.toml -o never --registry registry --agent gold --key key.pem",),
    "trust add": (
        "--trust trust.json --issuer Other --key public.pem",
        "--trust never.json --issuer Lab --key public.pem",
    ),
    "probes sheet": ("probed --kind audit -o never.csv", "probed --kind audit --rater Ann"),
    "verify": (
        "first/passport.json --trust trust.json --bundle a --replay --at 2026-03-02",
        "first/passport.json --issuer Lab",
    ),
}
ALONE: Final = {
    "assess": ("--agent", {"--map"}),
    "probes sheet": ("--rater", {"--take"}),
    "verify": ("--issuer", {"-k"}),
}
"""Of some commands, an option, and what is read where it is given, and not where it is absent."""
KEYLESS: Final = {"--identity-token-file", "--trust-config"}
OUTPUTS: Final = {"-o", "--public"}
REFUSALS: Final = {
    *("file.missing", "file.not-regular", "file.unreadable", "file.unwritable"),
    *("import.mapping", "import.source", "registry.missing"),
}
"""What is said of a pipe where a folder would do."""


@contextmanager
def in_time(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` in what waits for ever."""

    def over(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def trials(leaf: str, line: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield lines with a pipe for each thing that is read, and whether a folder would do there."""
    words, lead = shlex.split(line), len(leaf.split())
    mark, alone = ALONE.get(leaf, ("--keyless", KEYLESS))
    for place in range(lead, len(words)) if mark not in words else ():
        if words[place - 1] not in OUTPUTS and Path(words[place]).exists():
            either = Path(words[place]).is_dir() or words[0] in {"drift", "import", "report", "show"}
            yield either, [*words[:place], "./pipe", *words[place + 1 :]]
    for name, item in options(leaf).items():
        read = "Path" in type(item.type).__name__ or item.name in {"profile", "trusted_root"}
        refused = item.name == "profile" and "first/passport.json" in words  # a passport holds its own
        given = refused or set(item.opts) & set(words) or item.name in {"out", "public", "folder", "registry"}
        if read and not given and (mark in words) == (name in alone):
            yield item.name in {"bundle", "like"}, [*words, name, "./pipe"]


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_pipe_is_refused_wherever_something_is_read(
    leaf: str, root: Path, ran: tuple[Path, list[str]]
) -> None:
    if not (root / "pipe").exists():
        os.mkfifo(root / "pipe")
    first = next(line for line in ran[1] if f"{line} ".startswith(f"{leaf} "))
    lines = [f"{leaf} {rest}" for rest in LINES.get(leaf, ())] or [first]
    for folder, words in (trial for line in lines for trial in trials(leaf, line)):
        with in_time(60):
            done = certkit(*words, "--json")
        if done.code in {4, 7}:  # what a verification asks for is not there
            said = ("is a pipe, not a file", "is not a folder", "export.unverified")
            assert any(text in done.out for text in said), words
            continue
        assert done.code in {2, 3}, (words, done.out)
        assert done.document["error"]["code"] in (REFUSALS if folder else {"file.not-regular"}), words
        assert not list(root.glob("never*")), words
    assert (root / "pipe").is_fifo()
