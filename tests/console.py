"""Runs what the documentation shows: console blocks, Python blocks, and the files they need.

What a fenced block is, is told by its first word:

- ``console``: lines after ``$`` are run by a shell, in the order of the page, and print exactly the lines
  below them; a line ``…`` alone stands for any lines. A command that leaves with another code than 0 is
  followed by ``$ echo $?`` and the code. ``make`` is not run; its target must be in the Makefile.
- ``python``: a program; a ``text output`` block after it is what it prints.
- any block with ``file=NAME`` is written to that file first; later Python blocks of the page can import it;
- a block with ``needs=NAME`` is run where that program is, of the version that the page is about; or
  where that library of Python is.

README and tutorial run in a clone of the checkout. Every other page has a folder of its own that looks like
one: tests/data/, templates/, and build/interop, the programs that ``make interop`` brings.

A call of certkit at the beginning of a line, and every Python block, is run inside of this process; all else
by a shell, whose `certkit` is the same program. Neither draws PDFs: `tests.support.undrawn`.

    python -m tests.console --write      # puts what is really printed into blocks that have no ``…``
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from unittest import mock

from certkit.cli.main import run as run_program
from tests.support import undrawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).parents[1]
LOGS: Final = ROOT.parent / "shared" / "evidence" / "agentdojo"
"""Real logs, which are no part of the project; a block that names one runs where they are."""

_FENCE: Final = re.compile(r"^```(\S*)[ \t]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REAL: Final = re.compile(r"\bagentdojo-[\w.-]+\.jsonl\.gz\b")
_FILE: Final = re.compile(r"\bfile=(\S+)")
_NEEDS: Final = re.compile(r"\bneeds=(\S+)")
_ELISION: Final = "…"
_CALL: Final = re.compile(
    r"(?:(?P<name>[A-Z_]+)=(?P<value>\w+) )?certkit (?P<words>[^|&;<>$`*?~#\\]+)"
    r"(?:> (?P<out>[\w.-]+)|\| (?P<rest>.+))?"
)
"""One call of certkit: a variable, the arguments, and the file or the command that gets the output."""
_CONTENT: Final = re.compile(r"\$\(cat ([\w.-]+)\)")
"""The content of a file, as an argument."""
PROGRAMS: Final = {
    "cosign": ("cosign verify-blob-attestation --help", "--digestAlg"),  # since 3
    "node": ("ls build/interop/npm/node_modules/@sigstore", "verify"),
    "openssl": ("openssl version", "OpenSSL 3"),
}
"""Programs that pages may need: a command that shows whether they are here, and what it prints then."""


class Block(NamedTuple):
    """A fenced block: its language, the rest of its first line, its text, and where the text stands."""

    language: str
    info: str
    text: str
    start: int
    end: int


class Step(NamedTuple):
    """One command and the lines that are shown below it."""

    command: str
    shown: tuple[str, ...]


class Ran(NamedTuple):
    """What became of a step."""

    step: Step
    printed: tuple[str, ...]
    complaint: str | None


def pages() -> list[Path]:
    """Return the README and every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [Block(m[1], m[2], m[3], m.start(3), m.end(3)) for m in _FENCE.finditer(text)]


def steps(block: Block) -> list[Step]:
    """Return the commands of a console block. Lines before the first command are an error."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\") and not found[-1][1] and line.startswith("> "):
            found[-1] = (f"{found[-1][0][:-1]}{line[2:]}", [])
        else:
            found[-1][1].append(line.rstrip())
    return [Step(command, tuple(shown)) for command, shown in found]


def missing(block: Block) -> str | None:
    """Return the real log, the program or the library that a block needs and that is not here."""
    names = _REAL.findall(block.text)
    logs = [name for name in names if not (LOGS / name).is_file()]
    return next(iter(logs + [name for name in _NEEDS.findall(block.info) if not _is_here(name)]), None)


@functools.cache
def _is_here(program: str) -> bool:
    if program not in PROGRAMS:
        return find_spec(program) is not None
    command, told = PROGRAMS[program]
    code, printed = _run(["bash", "-c", f"command -v {program} >/dev/null && {command}"], ROOT)
    return code == 0 and any(told in line for line in printed)


def lay_out(folder: Path) -> None:
    """Make `folder` look like a checkout, as far as pages need it."""
    shutil.copytree(ROOT / "tests" / "data", folder / "tests" / "data")
    shutil.copytree(ROOT / "templates", folder / "templates")
    (folder / "tests" / "interop").mkdir()
    for script in (ROOT / "tests" / "interop").glob("*.cjs"):
        shutil.copyfile(script, folder / "tests" / "interop" / script.name)
    (folder / "build").mkdir()
    (folder / "build" / "interop").symlink_to(ROOT / "build" / "interop")


def clone(folder: Path) -> None:
    """Make `folder` a clone of this checkout, as it was last committed."""
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), folder], check=True, timeout=120
    )


def run_page(page: Path, folder: Path) -> Iterator[tuple[Block, list[Ran]]]:
    """Run the blocks of a page in `folder`, in order; yield what shows the output with what became of it."""
    found = blocks(page.read_text(encoding="utf-8"))
    for number, block in enumerate(found):
        if match := _FILE.search(block.info):
            target = folder / match[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        if block.language == "console" and missing(block) is None:
            for name in _REAL.findall(block.text):
                shutil.copyfile(LOGS / name, folder / name)
            yield block, _run_console(block, folder)
        elif block.language == "python" and missing(block) is None:
            after = found[number + 1] if number + 1 < len(found) else block
            output = after if after.info == "output" else block._replace(text="", start=block.end)
            yield output, [_run_python(block, output.text, folder)]


def _environment(folder: Path) -> dict[str, str]:
    places = (
        str(undrawn.PROGRAM.parent),
        str(Path(sys.executable).parent),
        str(ROOT / "build" / "interop" / "bin"),
    )
    return {
        "PATH": os.pathsep.join((*places, os.environ["PATH"])),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",  # so that both streams come in the order of a terminal
    }


def _run(command: list[str], folder: Path) -> tuple[int, tuple[str, ...]]:
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=120,
    )
    return done.returncode, _lines(done.stdout)


def _lines(printed: bytes) -> tuple[str, ...]:
    return tuple(line.rstrip() for line in printed.decode().splitlines())


def run_here(
    work: Callable[[], object], folder: Path, out: Path | None = None, **variables: str
) -> tuple[int, tuple[str, ...]]:
    """Do `work` in this process as if it were a program in `folder`; `out` takes its standard output."""
    raw, code = io.BytesIO(), 0
    shown = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    file = out.open("w", encoding="utf-8") if out else contextlib.nullcontext(shown)
    environment = _environment(folder) | {"COLUMNS": "80"} | variables
    with (
        file as stdout,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(shown),
        mock.patch.dict(os.environ, environment, clear=True),
        undrawn.pdfs(),
    ):
        try:
            work()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        except Exception:  # noqa: BLE001 - what breaks is shown, as a program's is
            traceback.print_exc()
            code = 1
    return code, _lines(raw.getvalue())


def _run_line(line: str, folder: Path) -> tuple[int, tuple[str, ...]]:
    put = _CONTENT.sub(lambda match: (folder / match[1]).read_text(encoding="utf-8").rstrip("\n"), line)
    if not (call := _CALL.fullmatch(put)):
        return _run(["bash", "-c", line], folder)
    variables = {call["name"]: call["value"]} if call["name"] else {}
    name = ".piped" if call["rest"] else call["out"]
    out = folder / name if name else None
    code, printed = run_here(lambda: run_program(shlex.split(call["words"])), folder, out, **variables)
    if call["rest"]:
        code, more = _run(["bash", "-c", f"cat .piped | {call['rest']}"], folder)
        printed += more
    return code, printed


def _run_console(block: Block, folder: Path) -> list[Ran]:
    ran: list[Ran] = []
    printed: tuple[str, ...]
    code, told = 0, True
    for step in steps(block):
        if step.command == "echo $?":
            printed, told = (str(code),), True
        elif match := re.match(r"make (\S+)", step.command):
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            complaint = None if match[1] in targets else f"the Makefile has no target {match[1]}"
            ran.append(Ran(step, step.shown, complaint))
            continue
        else:
            if not told:
                ran[-1] = ran[-1]._replace(complaint=f"left with {code}, and the page does not say so")
            code, printed = _run_line(step.command, folder)
            told = code == 0
        ran.append(Ran(step, printed, difference(step.shown, printed)))
    if not told:
        ran[-1] = ran[-1]._replace(complaint=f"left with {code}, and the page does not say so")
    return ran


def _run_python(block: Block, shown: str, folder: Path) -> Ran:
    step = Step(block.text, tuple(line.rstrip() for line in shown.splitlines()))
    program = compile(block.text, "<page>", "exec")
    with mock.patch.object(sys, "path", [str(folder), *sys.path]):  # files of the page are modules
        code, printed = run_here(lambda: exec(program, {"__name__": "__main__"}), folder)  # noqa: S102 - our page
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").parent == folder:
            del sys.modules[name]
    complaint = f"left with {code}" if code else difference(step.shown, printed)
    return Ran(step, printed, complaint)


def difference(shown: tuple[str, ...], printed: tuple[str, ...]) -> str | None:
    """Return what is shown and not printed so, or None. A line ``…`` stands for any lines."""
    if _ELISION not in shown:
        return None if shown == printed else "\n".join(("really prints:", *printed))
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == _ELISION:
            parts.append([])
        else:
            parts[-1].append(line)
    begin = 0
    for number, part in enumerate(parts):
        places = range(begin, len(printed) - len(part) + 1)
        if number == 0:
            places = places[:1]
        elif number == len(parts) - 1 and part:
            places = places[-1:]
        here = next((at for at in places if list(printed[at : at + len(part)]) == part), None)
        if here is None:
            return "\n".join(("does not print in this order:", *part, "but:", *printed))
        begin = here + len(part)
    return None


def refresh(page: Path) -> bool:
    """Put what is printed into the blocks of a page that have no elision; tell whether it changed."""
    text = page.read_text(encoding="utf-8")
    pieces: list[str] = []
    at = 0
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        for block, ran in run_page(page, Path(folder)):
            if any(line.startswith("Traceback ") for one in ran for line in one.printed):
                raise SystemExit(f"{page}: a program broke; nothing of this page was written")
            if block.language == "python" or any(_ELISION in one.step.shown for one in ran):
                for one in ran:
                    if one.complaint:
                        sys.stdout.write(f"{page}: mend by hand: {one.step.command}\n{one.complaint}\n")
                continue
            pieces.append(text[at : block.start] + _rewritten(block, ran))
            at = block.end
    new = "".join([*pieces, text[at:]])
    page.write_text(new, encoding="utf-8")
    return new != text


def _rewritten(block: Block, ran: list[Ran]) -> str:
    if block.info == "output":
        return "".join(f"{line}\n" for line in ran[0].printed)
    heads = re.findall(r"^\$ .*(?:\n> .*)*", block.text, re.MULTILINE)
    lines: list[str] = []
    for head, one in zip(heads, ran, strict=True):
        lines += [head, *one.printed]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path in pages() if "--write" in sys.argv else ():
        if refresh(path):
            sys.stdout.write(f"written: {path.relative_to(ROOT)}\n")
