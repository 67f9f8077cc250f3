"""What only one door may do is done nowhere else, and `make house` finds what it is for."""

from __future__ import annotations

import ast
import pydoc
import re
from pathlib import Path

import pytest

import certkit
from tests import house

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
    "np.random.Generator": {"simulation", "assessment/plan.py"},
    "np.random.PCG64": {"simulation", "assessment/plan.py"},
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


def house_of(folder: Path, **modules: str) -> list[str]:
    """Write a package, each module under its path with ``__`` for a slash, and return its violations."""
    for place, text in modules.items():
        path = folder / "certkit" / f"{place.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return house.broken(house.modules(folder / "certkit"))


def test_a_package_that_keeps_the_rules_is_let_pass(tmp_path: Path) -> None:
    assert not house_of(
        tmp_path,
        cli__main="from certkit.ground import errors, files\nfrom certkit import _version\nclass Option: ...",
        ground__files="import os\nfrom certkit.ground.errors import Problem",
        ground__errors="class Problem: ...",
        next__tlog__tree="from certkit.ground import errors",
        _version="",
    )


@pytest.mark.parametrize(
    "importing",
    [
        "import certkit.tlog.tree",
        "from certkit.tlog import tree",
        "def later():\n    from certkit.tlog.tree import Leaf",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from certkit.tlog.tree import Leaf",
    ],
)
def test_a_circle_is_found(importing: str, tmp_path: Path) -> None:
    found = house_of(
        tmp_path,
        tlog__note=importing,
        tlog__tile="from certkit.tlog import note",
        tlog__tree="import certkit.tlog.tile",
    )
    assert found == ["circle: certkit.tlog.note ↔ certkit.tlog.tile ↔ certkit.tlog.tree"]


def test_a_class_name_used_twice_is_found(tmp_path: Path) -> None:
    found = house_of(tmp_path, tlog__tree="class Row: ...", report__page="def make():\n    class Row: ...")
    assert found == ["class name used twice: Row: certkit.report.page, certkit.tlog.tree"]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("ground__files", "tlog__tree"),
        ("next__ground__files", "next__tlog__tree"),
        ("cli__main", "workflow__run"),
    ],
)
def test_an_upward_import_is_found(low: str, high: str, tmp_path: Path) -> None:
    low_name, high_name = (f"certkit.{place.replace('__', '.')}" for place in (low, high))
    found = house_of(tmp_path, **{low: f"import {high_name}", high: ""})
    assert found == [f"upward import: {low_name} imports {high_name}"]


def test_tests_of_the_product_are_no_part_of_it() -> None:
    for path, tree in MODULES.items():
        assert "tests" not in imports(tree), path


def test_no_test_imports_from_another() -> None:
    for path in (ROOT / "tests").rglob("*.py"):
        lines = re.findall(r"^ *(?:from|import) .*\btest_.*", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert lines == [], f"{path}: what tests share stands in tests/support"


def test_type_checkers_see_the_names_that_the_package_loads_when_asked() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [
        node
        for node in block.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("certkit.")
    ]
    seen = {(alias.name, str(node.module)) for node in imports for alias in node.names}
    assert seen == {(name, f"certkit.{module}") for name, module in certkit._MODULES.items()}
    assert set(certkit._MODULES) <= set(certkit.__all__)
    assert not set(certkit._MODULES) & {path.stem for path in PACKAGE.iterdir()}, (
        "a module would hide the name"
    )


def test_python_shows_the_help_of_the_package() -> None:
    text = pydoc.plain(pydoc.render_doc(certkit))
    for name in set(certkit.__all__) - {"__version__"}:
        assert re.search(rf"\b{name}\b", text.partition("PACKAGE CONTENTS")[2]), name


def test_a_bundle_refuses_the_options_that_only_a_log_takes() -> None:
    """Two lists, since judging a bundle loads nothing of the importers."""
    from certkit.cli.commands import assess  # noqa: PLC0415 - typer is loaded for it
    from certkit.imports.job import ASSESS  # noqa: PLC0415 - the same

    assert assess._FOR_LOGS == ASSESS
