"""The house in numbers: how large, how entangled and how plainly worded certkit is, beside what it should be.

    python -m tests.house             # the table; leaves with 1 where a rule of structure is broken
    python -m tests.house --strict    # and with 1 where any number misses its target

Rules of structure are no circle of imports, no long function and no upward import. Every number is defined at
the function that measures it. How long `make test` takes is not measured here: time it on a quiet machine.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from certkit.assessment.bounded import Judged
from certkit.cli.main import TABLE
from tests import generate
from tests.support import build, watch, words

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "certkit"
LONGEST: Final = 60
"""Lines that a function may have at most."""

SPECIAL: Final = {"posterior", "domain_min", "gap", "cascade_penalty", "irs_2025", "violations"}
"""Metrics that are no plain mean of tasks, whose name tells the kind of a criterion."""

LATER: Final = {"first hour": 2_500, "argument": 1_500, "commitment": 2_500}
"""Lines that importing real logs, the safety case and commitment integrity may add to a house of 39,000.

Of commitment integrity, 320 stand in cli, report and passport; of the first hour, its command `explain`.
"""

COMMITMENT: Final = ("probes", "evidence/integrity", "assessment/integrity", "cli/commands/probes.py")
"""Where commitment integrity alone stands."""

RUN: Final = {"audit": 45, "append": 45, "replay": 75}
"""Files of certkit that may run for each, at most."""


class Row(NamedTuple):
    """One number, and the most that it should be; `rule` where the house falls without it."""

    what: str
    measured: int
    target: int
    rule: bool = False

    @property
    def ok(self) -> bool:
        return self.measured <= self.target


@cache
def modules() -> dict[str, tuple[Path, ast.Module]]:
    """Return every module of certkit with its path and its tree, by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return found


def lines(*rooms: str) -> int:
    """Lines of all kinds in rooms and Python files; with no room named, in all of certkit."""
    places = [PACKAGE / room for room in rooms] or [PACKAGE]
    paths = [path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))]
    return sum(path.read_bytes().count(b"\n") for path in paths)


def files(room: str) -> int:
    """Python files of a room, ``__init__.py`` of subfolders aside."""
    return sum(
        path.name != "__init__.py" or path.parent.name == room for path in (PACKAGE / room).rglob("*.py")
    )


def imports() -> dict[str, set[str]]:
    """Modules that each module loads, as it is loaded, inside functions or by `TABLE`; not for types alone.

    ``from package import name`` loads the submodule of that name, or else the package itself.
    """
    graph: dict[str, set[str]] = {}
    for name, (_, tree) in modules().items():
        graph[name] = set()
        for node in _loading(tree):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names if alias.name in modules()}
            elif isinstance(node, ast.ImportFrom):
                within = [f"{node.module}.{alias.name}" for alias in node.names]
                graph[name] |= {deep if deep in modules() else node.module or "" for deep in within}
    graph["certkit.cli.main"] |= {f"certkit.cli.commands.{command.module}" for command in TABLE}
    return {name: loaded & set(graph) - {name} for name, loaded in graph.items()}


def _loading(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        checked = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        if not checked:
            yield child
            yield from _loading(child)


@cache
def circles() -> list[list[str]]:
    """Groups of modules each of which loads, over others or at once, every other of its group."""
    graph = imports()

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    below = {name: reached(name) for name in graph}
    groups = {frozenset(other for other in below[name] if name in below[other]) for name in graph}
    return sorted(sorted(group) for group in groups if group)


@cache
def long_functions() -> list[str]:
    """Functions whose body, from its docstring on, is longer than `LONGEST`; options come before."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path, tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.body[-1].end_lineno or 0) - node.body[0].lineno >= LONGEST
    ]


@cache
def upward_imports() -> list[str]:
    """What import-linter refuses, by the layers in pyproject.toml."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    found = [line.strip() for line in done.stdout.splitlines() if "is not allowed to import" in line]
    return found or ([done.stdout + done.stderr] if done.returncode else [])


def _declares(node: ast.AST) -> TypeGuard[ast.Call]:
    """Tell whether this is a call of ``typer.Option``, or a ``partial`` of it that commands complete."""
    if not isinstance(node, ast.Call):
        return False
    called = [ast.unparse(part) for part in (node.func, *node.args[:1])]
    return called[0] == "typer.Option" or called == ["partial", "typer.Option"]


def options() -> Counter[str]:
    """How many calls of ``typer.Option`` declare each option, by its first long name; "" where none is given.

    A ``partial`` without a name declares no option: those that complete it do.
    """
    return Counter(
        option
        for name, (_, tree) in modules().items()
        if name.startswith("certkit.cli")
        for node in ast.walk(tree)
        if _declares(node)
        for option in [option_name(node)]
        if option or ast.unparse(node.func) != "partial"
    )


def option_name(call: ast.Call) -> str:
    """Return the first long name that a declaration gives, "" where it gives none."""
    words = [str(word.value) for word in call.args if isinstance(word, ast.Constant)]
    return next((word for word in words if word.startswith("--")), "")


def kinds_as_text() -> int:
    """Comparisons with the name of a `SPECIAL` metric, outside of `assessment/metrics` and `kinds.py`."""
    at_home = ("certkit.assessment.metrics.", "certkit.assessment.kinds")
    return sum(kinds_in(tree) for name, (_, tree) in modules().items() if not name.startswith(at_home))


def kinds_in(tree: ast.AST) -> int:
    """Comparisons with the name of a `SPECIAL` metric in a module."""
    return sum(
        isinstance(part, ast.Constant) and part.value in SPECIAL
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        for part in (side.elts if isinstance(side, ast.Tuple | ast.Set | ast.List) else [side])
    )


def nameless() -> int:
    """Parameters and local variables called `of`, `one`, `other`, `found` or `own`; not fields."""
    return sum(
        (node.arg if isinstance(node, ast.arg) else node.id) in {"of", "one", "other", "found", "own"}
        for _, tree in modules().values()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    )


def judging() -> tuple[int, int]:
    """Files between the tally of a single criterion and its tier, and the types defined in these files.

    Other metrics, agreement, findings and the profile's own file are left out.
    """
    profile, summary, manifest = build.profile(), build.strong(), build.facts().manifest
    rows = tuple(row for row in profile.criteria if row.id == "r_op")
    profile = profile.model_copy(update={"criteria": rows})
    with watch.watching() as seen:
        Judged(summary, manifest, profile).tier("bounded")
    aside = ("findings", "rater_error", "metrics/csi", "metrics/metrics_2025", "profile")
    files = {name for name in seen.files if not name.removeprefix("assessment/").startswith(aside)}
    kinds = {
        kind
        for kind in seen.types
        for path in [kind.__module__.removeprefix("certkit.").replace(".", "/")]
        if {f"{path}.py", f"{path}/__init__.py"} & files
    }
    return len(files), len(kinds)


def rows() -> list[Row]:
    """Measure everything."""
    used, (files_to_verdict, types_to_verdict) = watch.traced(), judging()
    declared = options()
    leaves = [command for _, command in generate.commands() if not hasattr(command, "commands")]
    explain = lines("cli/commands/explain.py")
    rooms = ("passport", "registry", "tlog", "report", "workflow", "cli")
    return [
        Row("import circles", len(circles()), 0, rule=True),
        Row(f"functions over {LONGEST} lines", len(long_functions()), 0, rule=True),
        Row("upward imports", len(upward_imports()), 0, rule=True),
        Row("lines in certkit", lines(), 39_000 + sum(LATER.values())),
        Row(f"lines in {', '.join(rooms)}", lines(*rooms), 18_500 + LATER["argument"] + 320 + explain),
        Row(
            "lines in evidence, assessment, without commitment integrity",
            lines("evidence", "assessment") - lines("evidence/integrity", "assessment/integrity"),
            18_500 + LATER["first hour"] - explain,
        ),
        Row("lines of commitment integrity", lines(*COMMITMENT), LATER["commitment"]),
        Row("files in registry", files("registry"), 20),
        Row("files in cli", files("cli"), 32),
        Row("commands", len(leaves), 48),
        Row("options that are declared more than once", sum(n > 1 for n in declared.values()), 0),
        Row("declarations of options", declared.total(), len(declared)),
        Row("options without a literal name", declared[""], 0),
        *(Row(f"files that run for {name}", used[name][0], most) for name, most in RUN.items()),
        Row("JSON parses per append", used["append"][1], 8),
        Row("openings of the registry per audit", used["audit"][2], 1),
        Row("files from a criterion's tally to its verdict", files_to_verdict, 11),
        Row("types from a criterion's tally to its verdict", types_to_verdict, 9),
        Row("comparisons of a criterion's kind as text", kinds_as_text(), 0),
        Row("variables called of, one, other, found, own", nameless(), 0),
        Row("phrases that have to be read twice", len(words.riddles()), 0),
    ]


def main() -> int:
    """Print the table, or what `--words` lists."""
    parser = argparse.ArgumentParser(prog="python -m tests.house")
    parser.add_argument("--strict", action="store_true", help="fail where any number misses its target")
    parser.add_argument("--words", action="store_true", help="list every phrase that has to be read twice")
    asked = parser.parse_args()
    if asked.words:
        print("\n".join(words.riddles()))
        return 0
    table = rows()
    print(f"{'measured':<66}{'today':>8}{'target':>8}")
    for row in table:
        print(f"{row.what:<66}{row.measured:>8,}{row.target:>8,}  {'ok' if row.ok else 'not ok'}")
    for broken in [*map(" → ".join, circles()), *long_functions(), *upward_imports()]:
        print(broken)
    return any(not row.ok and (row.rule or asked.strict) for row in table)


if __name__ == "__main__":
    sys.exit(main())
