"""The house in numbers, and its rules: ``make house``.

Prints the lines of each room, the number of classes, and the modules that three commands load. Exits with 1
where a rule is broken, and for no number:

- no module imports itself over others, imports for types alone included;
- a class name is used once;
- imports run down the list `ROOMS` only.

``certkit/next`` counts as the rooms inside it. What is no room of the list is above all of them: a room that
imports it imports upwards.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "certkit"

ROOMS: Final = (
    "_version", "ground", "tlog", "record", "bundle", "summary", "imports", "probes", "simulation", "trial",
    "assessment", "comparison", "passport", "registry", "report", "api", "cli",
)  # fmt: skip

Trees = dict[str, tuple[Path, ast.Module]]
Graph = dict[str, set[str]]

# Each command finds in its folder what those before it left; of the last three the modules are counted.
PREPARED: Final = """
simulate -o a --seed 3 --runs 300 --domains 2 --tier-target 1
bundle seal a
keys generate -o key.pem --public public.pem
registry init registry --name lab
trust add --trust trust.json --issuer Lab --key public.pem
issue a -o issued --key key.pem --issuer Lab --valid-from 2026-03-01
"""
COUNTED: Final = {
    "assess": "assess a --exit-zero",
    "verify": "verify issued/passport.json --trust trust.json --at 2026-03-03",
    "registry append": "registry append registry issued/passport.json --key key.pem --trust trust.json "
    "--at 2026-03-03T00:00:00Z",
}
PROGRAM: Final = """
import sys
from certkit.cli.main import main
for line in sys.argv[1:]:
    code = main(line.split())
    if code:
        sys.exit(code)
print(len(sys.modules), sum(name.partition(".")[0] == "certkit" for name in sys.modules), file=sys.stderr)
"""


def modules(package: Path = PACKAGE) -> Trees:
    """Return every module of a package by its dotted name, with its path and its syntax tree."""
    trees = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return trees


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a tree, in functions and branches too, without looking into expressions."""
    for _, field in ast.iter_fields(tree):
        for node in field if isinstance(field, list) else ():
            if isinstance(node, ast.stmt):
                yield node
            if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
                yield from statements(node)


def imports(trees: Trees) -> Graph:
    """Return the modules of the package that each module imports, inside functions and for types included.

    ``from package import name`` imports the submodule of that name, or else the package itself.
    """
    graph = {}
    for module, (_, tree) in trees.items():
        names: set[str] = set()
        for node in statements(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                deep = [f"{node.module}.{alias.name}" for alias in node.names]
                names |= {name if name in trees else str(node.module) for name in deep}
        graph[module] = names & set(trees) - {module}
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of modules in which each imports every other, directly or over others."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    below = {module: reach(module) for module in graph}
    groups = {frozenset(peer for peer in below[module] if module in below[peer]) for module in graph}
    return sorted(sorted(group) for group in groups if group)


def classes(trees: Trees) -> dict[str, list[str]]:
    """Return every class name with the modules that define a class of that name, as often as they do."""
    places = defaultdict(list)
    for module, (_, tree) in trees.items():
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    return dict(places)


def room(module: str) -> str:
    """Return the room of a module: the part of its name after ``certkit`` and ``next``, "" for these two."""
    parts = module.split(".")[1:]
    return "".join((parts[1:] if parts[:1] == ["next"] else parts)[:1])


def upward(graph: Graph) -> list[tuple[str, str]]:
    """Return the imports of a higher room by a lower one."""
    height = {name: place for place, name in enumerate(ROOMS)}
    return sorted(
        (module, imported)
        for module, names in graph.items()
        for imported in names
        if height.get(room(module), len(ROOMS)) < height.get(room(imported), len(ROOMS))
    )


def loaded() -> dict[str, tuple[int, int]]:
    """Return for each command of `COUNTED` how many modules it loads, and how many of them are certkit's."""
    numbers = {}
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {
            "PYTHONPATH": str(ROOT), "HOME": place, "XDG_STATE_HOME": place, "XDG_CONFIG_HOME": place,
        }  # fmt: skip

        def run(*commands: str) -> str:
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM, *commands],
                cwd=place, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                sys.exit(f"one of {commands}\n{done.stderr}")
            return done.stderr

        run(*PREPARED.strip().splitlines())
        # The claim rests on simulated evidence, which a policy has to accept.
        trust = Path(place, "trust.json")
        text = trust.read_text(encoding="utf-8").replace('specimens": false', 'specimens": true')
        trust.write_text(text, encoding="utf-8")
        for name, command in COUNTED.items():
            everything, certkit = map(int, run(command).split()[-2:])
            numbers[name] = everything, certkit
    return numbers


def broken(trees: Trees) -> list[str]:
    """Return a line for each violation of a rule."""
    graph = imports(trees)
    names = {name: places for name, places in sorted(classes(trees).items()) if len(places) > 1}
    return [
        *(f"circle: {' ↔ '.join(group)}" for group in circles(graph)),
        *(f"class name used twice: {name}: {', '.join(places)}" for name, places in names.items()),
        *(f"upward import: {module} imports {imported}" for module, imported in upward(graph)),
    ]


def main() -> int:
    """Print the numbers, then the violations."""
    trees = modules()
    lines: Counter[str] = Counter()
    for module, (path, _) in trees.items():
        lines[room(module)] += path.read_bytes().count(b"\n")
    for name in sorted(lines, key=[*ROOMS, *sorted(lines)].index):
        print(f"{name or 'certkit':<44}{lines[name]:>7,} lines")
    print(f"{'in all':<44}{lines.total():>7,} lines")
    print(f"{'classes':<44}{sum(map(len, classes(trees).values())):>7,}")
    for name, (everything, certkit) in loaded().items():
        print(f"{f'modules that {name} loads':<44}{everything:>7,}, {certkit} of certkit")
    violations = broken(trees)
    counts = Counter(line.partition(":")[0] for line in violations)
    for rule in ("circle", "class name used twice", "upward import"):
        print(f"{rule:<44}{counts[rule]:>7,}")
    print(*violations, sep="\n", end="\n" if violations else "")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
