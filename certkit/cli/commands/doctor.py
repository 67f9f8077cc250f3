"""``certkit doctor``."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final

from certkit import report
from certkit._version import __version__
from certkit.cli import settings
from certkit.cli.documents import Check, Doctor, InForce
from certkit.cli.emit import emit, fold
from certkit.errors import Exit

LEAST_PYTHON: Final = (3, 11)


def doctor() -> None:
    """Look at what this machine has and lacks: Python, packages, what makes a PDF, settings.

    Exit code 0: everything that certkit needs is here; a missing Pango only means that no PDF is made,
    and the lines to install it are printed. 1: something that it cannot do without is not. Below stand the
    settings in force, and where the value of each comes from: a variable, a file or the default.

    Example: certkit doctor
    """
    checks = [_python(), *_packages(), _pdf()]
    values = settings.in_force(Path.cwd())
    failed = any(check.state == "failed" for check in checks)
    emit(
        Doctor(
            certkit=__version__,
            ok=not failed,
            checks=checks,
            settings=[InForce(name=key, value=value, source=source) for key, value, source in values],
        ),
        _screen(checks, values),
        code=Exit.NEGATIVE if failed else Exit.OK,
    )


def _screen(checks: list[Check], values: list[tuple[str, Any, str]]) -> Iterator[str]:
    yield f"certkit {__version__}, {platform.platform(terse=True)}"
    packages = [check for check in checks if check.name.startswith("package ") and check.state == "ok"]
    yield f"{'ok':<8} {len(packages)} packages"
    for check in checks:
        if check not in packages:
            yield f"{check.state:<8} {check.name}: {check.found}"
            for line in check.hint:
                yield from fold(line, first="    hint: ", rest=" " * 10)
    yield ""
    for key, value, source in values:
        yield f"{key:<14}{value!s:<24}{source}"


def _python() -> Check:
    good = sys.version_info[:2] >= LEAST_PYTHON
    return Check("python", "ok" if good else "failed", platform.python_version())


def _packages() -> list[Check]:
    """Return one check per package that certkit declares to need."""
    try:
        declared = requires("certkit") or []
    except PackageNotFoundError:
        return [Check("packages", "failed", "certkit itself is not installed", ("pip install certkit",))]
    names = sorted(_name(line) for line in declared if "extra ==" not in line)
    return [_package(name) for name in names]


def _name(requirement: str) -> str:
    end = next((i for i, character in enumerate(requirement) if character in " <>=!~;[("), len(requirement))
    return requirement[:end]


def _package(name: str) -> Check:
    try:
        return Check(f"package {name}", "ok", version(name))
    except PackageNotFoundError:
        return Check(f"package {name}", "failed", "not installed", (f"pip install {name}",))


def _pdf() -> Check:
    missing = report.pdf_missing()
    if missing is None:
        return Check("pdf", "ok", "Pango, HarfBuzz and the report's font are here")
    return Check("pdf", "missing", f"{missing}; reports are made as HTML only", report.HINTS)
