"""``certkit doctor``."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta

from certkit import report
from certkit._version import __version__
from certkit.cli.emit import emit, fold
from certkit.cli.main import SETTINGS, from_file
from certkit.document import Document, Part, Text
from certkit.errors import Exit

LEAST_PYTHON: Final = (3, 11)


class Check(Part, frozen=True):
    """One thing looked at: ``ok``, ``missing`` (something optional cannot be done) or ``failed``."""

    name: Text
    state: Literal["ok", "missing", "failed"]
    found: Text
    hint: tuple[Text, ...] = ()


class InForce(Part, frozen=True, kw_only=True):
    """A setting, with where its value comes from."""

    name: Text
    value: str | int | None
    source: Text


class Doctor(Document, frozen=True, kw_only=True, tag="urn:certkit:doctor:v1"):
    """What this machine has and lacks."""

    certkit: Text
    ok: bool
    checks: Sequence[Check]
    settings: Annotated[Sequence[InForce], Meta(description="every setting, with where its value comes from")]


def doctor() -> None:
    """Look at what this machine has and lacks: Python, packages, what makes a PDF, settings.

    Exit code 0: everything that certkit needs is here; a missing Pango only means that no PDF is made,
    and the lines to install it are printed. 1: something that it cannot do without is not. Below stand the
    settings in force, and where the value of each comes from: a variable, a file or the default.

    Example: certkit doctor
    """
    checks = [_python(), *_packages(), _pdf()]
    values = list(_in_force())
    failed = any(check.state == "failed" for check in checks)
    emit(
        Doctor(
            certkit=__version__,
            ok=not failed,
            checks=checks,
            settings=values,
        ),
        _screen(checks, values),
        code=Exit.NEGATIVE if failed else Exit.OK,
    )


def _screen(checks: list[Check], values: list[InForce]) -> Iterator[str]:
    yield f"certkit {__version__}, {platform.platform(terse=True)}"
    packages = [check for check in checks if check.name.startswith("package ") and check.state == "ok"]
    yield f"{'ok':<8} {len(packages)} packages"
    for check in checks:
        if check not in packages:
            yield f"{check.state:<8} {check.name}: {check.found}"
            for line in check.hint:
                yield from fold(line, first="    hint: ", rest=" " * 10)
    yield ""
    for item in values:
        yield f"{item.name:<14}{item.value!s:<24}{item.source}"


def _in_force() -> Iterator[InForce]:
    """Yield every setting with its value and where that comes from: a variable, the file or the default."""
    chosen, name = from_file(Path.cwd())
    for key, setting in SETTINGS.items():
        if setting.variable in os.environ:
            yield InForce(name=key, value=os.environ[setting.variable], source=setting.variable)
        else:
            value = chosen.get(key, setting.default)
            yield InForce(name=key, value=value, source=str(name) if key in chosen else "default")


def _python() -> Check:
    good = sys.version_info[:2] >= LEAST_PYTHON
    return Check("python", "ok" if good else "failed", platform.python_version())


def _packages() -> list[Check]:
    """Return one check per package that certkit declares to need."""
    try:
        declared = requires("certkit") or []
    except PackageNotFoundError:
        return [Check("packages", "failed", "certkit itself is not installed", ("pip install certkit",))]
    names = sorted(re.split(r"[^\w.-]", line)[0] for line in declared if "extra ==" not in line)
    return [_package(name) for name in names]


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
