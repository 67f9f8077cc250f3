"""How things are printed: pipes, narrow and plain terminals, hostile names, other encodings."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from certkit.assessment.profile_file import packaged_profiles
from certkit.cli.main import run as run_program
from certkit.ground import canonical
from tests.support import bundles
from tests.support.bundles import run
from tests.support.running import PROGRAM, Done, certkit, program
from tests.support.script import through

if TYPE_CHECKING:
    from tests.support.demonstration import Demonstration

ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("simulated") / "b"
    assert certkit("simulate", "-o", root, "--runs", 300, "--domains", 6, "-q").code == 0
    return root


def screens(root: Path) -> list[tuple[str, ...]]:
    return [
        ("assess", str(root)),
        ("assess", str(root), "-v"),
        ("assess", str(root), "-v", "-p", "hb-eval-2025"),
        ("bundle", "check", str(root)),
        ("bundle", "seal", str(root)),
        ("profile", "show"),
        ("profile", "show", "hb-eval-2026"),
        ("profile", "show", "hb-eval-2025"),
    ]


def width(line: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in line)


DOCUMENTS = (
    "import rows.csv --columns",
    "show first/passport.json --format",
    "registry prove",
    "registry status",
)
"""Commands that print a document, whose lines are its own."""


def too_wide(line: str) -> bool:
    """Tell whether a line leaves the screen for another reason than one word that is wider than it.

    A verifier key is one, and is to be copied; a digest is not.
    """
    return width(line) > 80 and (len(line.split()) > 1 or "sha256:" in line)


def test_every_screen_fits_eighty_columns(simulated: Path) -> None:
    for arguments in screens(simulated):
        assert [line for line in certkit(*arguments).out.splitlines() if too_wide(line)] == [], arguments


def test_every_command_fits_eighty_columns(
    demonstration: Demonstration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(line: str, done: Done) -> None:
        if not line.startswith(DOCUMENTS) or "-o" in line.split():
            assert [shown for shown in done.out.splitlines() if too_wide(shown)] == [], line

    for line, done in [("demo -o demo", demonstration.screen), *through(tmp_path)]:
        check(line, done)
    monkeypatch.chdir(tmp_path)
    for line in (
        "assess a b -v",
        "compare a b --paper-tests",
        "drift a b",
        "show first/passport.json --at 2026-03-02",
        "show first/passport.json --trust trust.json --at 2026-03-02",
        "verify first/passport.json --trust trust.json --at 2026-03-02 -v --bundle a --replay",
        "verify first/passport.json --trust trust.json --at 2036-03-02 -v",
        "show first/passport.json --format svr --trust trust.json --at 2026-03-02 -o x",
        "registry show registry",
        "registry audit tree --trust trust.json",
        "trust add --trust trust.json --profile hb-eval-2026 --domain d",
        "trust show --trust trust.json",
    ):
        done = certkit(*line.split())
        assert done.code not in {2, 70}, (line, done.err)
        check(line, done)


def test_no_escapes_where_there_is_no_terminal(simulated: Path) -> None:
    for arguments in screens(simulated):
        assert ESCAPE not in certkit(*arguments).out
    assert ESCAPE not in certkit("assess", simulated / "none").err


def on_a_terminal(*arguments: object, **environment: str) -> str:
    """Run the program with a terminal as its standard output and error, and return what that showed."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=other,
        stderr=other,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    )
    os.close(other)
    shown = all_shown(main)
    process.wait()
    return shown


def all_shown(main: int) -> str:
    """Return what a terminal is given until its other side is closed."""
    shown = b""
    with suppress(OSError):
        while data := os.read(main, 65536):
            shown += data
    os.close(main)
    return shown.decode()


def as_on_a_terminal(*arguments: object, **environment: str) -> str:
    """Return the same of the program in this process."""
    main, other = pty.openpty()
    with (
        ThreadPoolExecutor(1) as pool,
        mock.patch.dict(os.environ, TERM="xterm-256color", **environment),
        os.fdopen(other, "w", encoding="utf-8") as terminal,
        redirect_stdout(terminal),
        redirect_stderr(terminal),
    ):
        shown = pool.submit(all_shown, main)
        with suppress(SystemExit):
            run_program([str(argument) for argument in arguments])
        terminal.close()
        return shown.result()


def test_a_terminal_gets_colour_and_no_color_takes_it_away(simulated: Path) -> None:
    coloured = on_a_terminal("assess", simulated)
    plain = on_a_terminal("assess", simulated, NO_COLOR="1")
    numbers = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|9[0-7]|38)[;m]")
    assert numbers.search(coloured)
    assert not numbers.search(plain)
    # Colour adds nothing that is not also there in words.
    strip = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
    assert after_the_bars(strip.sub("", coloured)) == after_the_bars(strip.sub("", plain))
    assert len(after_the_bars(strip.sub("", plain)).splitlines()) > 20


@pytest.mark.parametrize(
    ("command", "begins"),
    [("bundle check", "valid: "), ("runs", "[0-9,]+ runs of "), ("compare", "No "), ("drift", "[A-Z_]+: ")],
)
def test_the_answer_of_a_screen_has_colour(command: str, begins: str, simulated: Path) -> None:
    sides = [simulated] * (2 if command in {"compare", "drift"} else 1)
    shown = as_on_a_terminal(*command.split(), *sides)
    assert re.search(rf"\x1b\[1(;[0-9]+)*m{begins}", shown)


@pytest.mark.parametrize(("columns", "widest"), [("40", 80), ("100", 100), ("300", 120)])
def test_a_wide_terminal_is_used(simulated: Path, columns: str, widest: int) -> None:
    shown = after_the_bars(as_on_a_terminal("assess", simulated, "-v", COLUMNS=columns, NO_COLOR="1"))
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).splitlines()
    assert widest - 10 < max(map(width, lines)) <= widest


def test_an_error_is_folded_on_a_terminal_and_one_line_in_a_log() -> None:
    arguments = ("plan", "--tier", 2, "--expect", "r_op=.5", "--reading", "bounded")
    logged = program(*arguments).err
    assert max(map(width, logged.splitlines())) > 80
    shown = as_on_a_terminal(*arguments).splitlines()
    assert max(map(width, shown)) <= 80
    assert " ".join(" ".join(shown).split()) == " ".join(logged.split())
    assert [line[:2] for line in shown] == ["er", *["  " for _ in shown[1:]]]


def test_a_terminal_gets_one_document_too(simulated: Path) -> None:
    shown = as_on_a_terminal("bundle", "check", simulated, "--json")
    assert canonical.loads(shown.encode())["records"] == 300


def after_the_bars(shown: str) -> str:
    """Leave out the progress bars, which are drawn before the result and taken away again."""
    return shown[shown.index("simulated-agent") :]


HOSTILE = "a\x1b[2J\x1b]0;t\x07\r\x08\x9b31m\u202e\u2066\nTier 3 (Autonomous) is attained"


def test_names_in_evidence_cannot_command_the_terminal_or_fake_a_line(tmp_path: Path) -> None:
    manifest = {
        **bundles.MANIFEST,
        "agent": {"name": HOSTILE, "version": HOSTILE, "provider": HOSTILE},
        "protocol": {
            "origin": "measured",
            "cascade_definition": HOSTILE,
            "success_rule": HOSTILE,
            "judge": {"name": HOSTILE, "independent": False},
            "evaluator": {"name": HOSTILE, "relation": "same"},
        },
        "imported": {
            "format": HOSTILE,
            "records": 2,
            "notes": [{"kind": "odd", "what": HOSTILE, "count": 1, "detail": HOSTILE}],
        },
    }
    records = [
        run(HOSTILE, domain=HOSTILE, task_id=HOSTILE, cluster_id=HOSTILE),
        run(2, domain=HOSTILE, task_id=HOSTILE, condition="adversarial", outcome="failure"),
    ]
    root = bundles.write(tmp_path / "b", {"a.jsonl": bundles.lines(records)}, manifest)
    spoilt = bundles.write(
        tmp_path / "c", {"a.jsonl": bundles.lines([*records, records[0] | {HOSTILE: 1}])}, manifest
    )
    twice = bundles.write(tmp_path / "d", {"a.jsonl": bundles.lines([*records, records[0]])}, manifest)
    commands = [
        ("assess", root),
        ("assess", root, "-v"),
        ("bundle", "check", root),
        ("assess", spoilt),
        ("assess", twice),
        ("assess", tmp_path / HOSTILE),
        ("profile", "show", HOSTILE),
        ("profile", "show", "./" + HOSTILE),
        ("bundle", "init", tmp_path / "e" / HOSTILE, "--agent", HOSTILE, "--version", "1"),
        (HOSTILE,),
        ("assess", "--" + HOSTILE),
    ]
    for command in commands:
        done = certkit(*command)
        shown = done.out + done.err
        assert shown
        obeyed = [c for c in shown if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}]
        assert obeyed == [], command
        assert done.code != 70
        if command[0] == "assess" and done.code in {1, 4}:
            assert not any(line.startswith("Tier 3") for line in shown.splitlines()), command


def test_hostile_names_are_kept_whole_in_documents(tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "b", [run(1, domain=HOSTILE)])
    done = certkit("bundle", "check", root, "--json")
    assert done.document["coverage"][0]["domain"] == HOSTILE
    assert ESCAPE not in done.out


@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["ascii", "LANG=C"],
)
def test_a_terminal_without_unicode_gets_letters(tmp_path: Path, environment: dict[str, str]) -> None:
    manifest = {**bundles.MANIFEST, "agent": {"name": "Größe", "version": "1"}}
    data = bundles.lines([run(1, domain="漢字"), run(2, domain="漢字", condition="stochastic")])
    root = bundles.write(tmp_path / "b", {"a.jsonl": data}, manifest)
    done = program("assess", root, "-v", **environment)
    assert done.code in {0, 1, 4}, done.err
    assert done.err == ""
    assert done.out.isascii()
    # Documents are UTF-8 whatever the terminal is, and lose nothing.
    assert (
        program("bundle", "check", root, "--json", **environment).document["coverage"][0]["domain"] == "漢字"
    )
    missing = program("show", tmp_path / "Größe", **environment)
    assert missing.code == 3
    assert "Traceback" not in missing.err


@pytest.mark.parametrize(
    "arguments",
    [("bundle", "check", "ROOT"), ("profile", "show", "--json"), ("--help",)],
)
def test_a_reader_that_went_away_is_no_verdict_and_no_noise(
    simulated: Path, arguments: tuple[str, ...]
) -> None:
    given = [str(simulated) if argument == "ROOT" else argument for argument in arguments]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([PROGRAM, *given], stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    # As a program that SIGPIPE ended: 0 or 1 would be taken for a verdict.
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_under_the_output_is_no_verdict(simulated: Path) -> None:
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("this system has no /dev/full")
    for words in (("bundle", "check", simulated, "--json"), ("profile", "show")):
        with device.open("wb") as full:
            done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2
        assert done.stderr == b"error: standard output: No space left on device\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell: str) -> None:
    done = program("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.code == 0
    assert "certkit" in done.out
    assert done.err == ""


def test_commands_are_completed() -> None:
    done = program(_CERTKIT_COMPLETE="complete_bash", COMP_WORDS="certkit b", COMP_CWORD="1")
    assert done.out.split() == ["bundle"]


def test_profiles_are_completed() -> None:
    words = "certkit assess bundle --profile hb-eval"
    done = program(_CERTKIT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD="4")
    assert set(done.out.split()) == {name for name in packaged_profiles() if name.startswith("hb-eval")}
    assert len(done.out.split()) > 1


def test_screens_do_not_depend_on_the_hash_seed(simulated: Path) -> None:
    shown = program("assess", simulated, "-v", PYTHONHASHSEED="31337").out
    assert shown == certkit("assess", simulated, "-v").out


def test_both_ways_to_start_are_one(simulated: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "certkit", "bundle", "check", simulated], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout.decode()) == (0, certkit("bundle", "check", simulated).out)
