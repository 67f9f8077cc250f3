"""The rooms import downwards only, and what only one door may do is done nowhere else."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from certkit.ground import canonical
from tests import house
from tests.support import watch

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "certkit"
MODULES = dict(house.modules().values())

# What a module may not call, and the doors that may: a room's folder or one file. Everything below the
# command line gets clock, seed and environment as arguments, so that the same evidence gives the same bytes.
BANNED = {
    "os.environ": {"cli"},
    "os.environb": {"cli"},
    "os.getenv": {"cli"},
    "os.urandom": set(),
    "datetime.now": {"cli"},
    "datetime.datetime.now": {"cli"},
    "datetime.utcnow": set(),
    "datetime.today": set(),
    "date.today": {"cli"},
    "time.time": {"cli"},
    "time.time_ns": {"cli"},
    "time.monotonic": {"cli"},
    "time.perf_counter": {"cli"},
    "uuid.uuid1": set(),
    "uuid.uuid4": set(),
    "np.random.default_rng": set(),
    "np.random.seed": set(),
    "np.random.rand": set(),
    "np.random.Generator": {"simulation", "assessment/plan/drawn.py"},
    "np.random.PCG64": {"simulation", "assessment/plan/drawn.py"},
    "os.replace": {"ground/files.py"},
    "os.rename": {"ground/files.py"},
    "shutil.move": set(),
}
MODULES_BANNED = {
    "json": {"ground/canonical.py"},
    "random": set(),
    "secrets": {"cli"},
    "pickle": set(),
    "marshal": set(),
    "orjson": set(),
    "requests": set(),
    "typer": {"cli"},
    "rich": {"cli"},
}


def allowed(path: Path, doors: set[str]) -> bool:
    relative = path.relative_to(PACKAGE)
    return relative.as_posix() in doors or relative.parts[0] in doors


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for an attribute of a name."""
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def imports(tree: ast.AST) -> set[str]:
    """Return the top names of everything that a module imports, also inside functions."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def renamed(tree: ast.AST) -> set[str]:
    """Return what a module imports by name, as dotted names: ``from os import environ`` is ``os.environ``."""
    return {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def test_what_only_a_door_may_do_is_done_there() -> None:
    for path, tree in MODULES.items():
        used = {dotted(node) for node in ast.walk(tree)} | renamed(tree)
        wrong = {name for name in used & set(BANNED) if not allowed(path, BANNED[name])}
        modules = imports(tree) & set(MODULES_BANNED)
        wrong |= {name for name in modules if not allowed(path, MODULES_BANNED[name])}
        assert wrong == set(), path


@pytest.mark.parametrize(
    "text",
    ["import os\nos.environ['A']", "from os import environ", "import json", "def f():\n    import random\n"],
)
def test_the_check_sees_what_it_forbids(text: str) -> None:
    tree = ast.parse(text)
    used = {dotted(node) for node in ast.walk(tree)} | renamed(tree)
    assert used & set(BANNED) or imports(tree) & set(MODULES_BANNED)


def test_rooms_import_downwards_only() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    if not program.exists():
        pytest.skip("import-linter is not installed beside this interpreter")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_modules_load_each_other_in_a_circle() -> None:
    assert house.circles() == []


def test_imports_inside_functions_count() -> None:
    assert "certkit.passport.claim" in house.imports()["certkit.passport.issuing"]


def test_every_option_is_declared_by_name() -> None:
    assert house.options()[""] == 0
    assert house.option_name(ast.parse('typer.Option(help="--no-name")', mode="eval").body) == ""  # type: ignore[arg-type]


def test_parses_are_seen_by_the_watch() -> None:
    with watch.watching() as seen:
        canonical.loads(b"[1]")
    assert seen.counts["parses"] == 1


def test_the_kind_of_a_criterion_is_told_by_no_name_of_a_metric() -> None:
    assert house.kinds_as_text() == 0
    assert house.kinds_in(ast.parse('a == "gap" or b in ("posterior", "r_op")')) == 2


def test_no_function_is_long() -> None:
    assert house.long_functions() == []


def test_tests_of_the_product_are_no_part_of_it() -> None:
    for path, tree in MODULES.items():
        assert "tests" not in imports(tree), path


def test_no_test_imports_from_another() -> None:
    for path in (ROOT / "tests").rglob("*.py"):
        lines = re.findall(r"^ *(?:from|import) .*\btest_.*", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert lines == [], f"{path}: what tests share stands in tests/support"


LAZY = [path for path in PACKAGE.rglob("__init__.py") if "lazy(" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", LAZY, ids=[path.parent.name for path in LAZY])
def test_type_checkers_see_the_names_that_a_package_loads_when_asked(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ".".join(path.relative_to(ROOT).parent.parts)
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {(node.module, ast.unparse(alias)) for node in imports for alias in node.names}
    (table,) = (node for node in ast.walk(tree) if isinstance(node, ast.Dict))
    offered = {(module, name) for module, names in ast.literal_eval(table).items() for name in names}
    assert seen == {(f"{package}.{module}", name) for module, name in offered}
    assert not {name for _, name in offered} & {item.stem for item in path.parent.iterdir()}, (
        "a module would hide the name"
    )
