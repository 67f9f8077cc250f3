"""``certkit doctor``."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from certkit._version import __version__
from certkit.cli import output
from certkit.cli.options import Json
from certkit.errors import Exit

DOCTOR_SCHEMA: Final = "urn:certkit:doctor:v1"
LEAST_PYTHON: Final = (3, 11)
LEAST_DISK: Final = 1 << 30
"""Free bytes below which a large bundle may not fit beside its copy."""


class Check(NamedTuple):
    """One thing looked at: ``ok``, ``missing`` (something optional cannot be done) or ``failed``."""

    name: str
    state: str
    found: str
    hint: tuple[str, ...] = ()


def doctor(
    folder: Annotated[
        Path, typer.Option("--folder", help="The folder whose disk is looked at.", file_okay=False)
    ] = Path(),
    json: Json = False,
) -> None:
    """Look at what this machine has and lacks: Python, packages, what makes a PDF, disk space.

    Exit code 0: everything that certkit needs is here; a missing Pango only means that no PDF is made,
    and the lines to install it are printed. 1: something that it cannot do without is not.

    Example: certkit doctor
    """
    checks = [_python(), *_packages(), _pdf(), _disk(folder)]
    failed = any(check.state == "failed" for check in checks)
    if json:
        listed = [{**check._asdict(), "hint": list(check.hint)} for check in checks]
        output.document({"schema": DOCTOR_SCHEMA, "certkit": __version__, "ok": not failed, "checks": listed})
    else:
        _say(checks)
    raise typer.Exit(Exit.NEGATIVE if failed else Exit.OK)


def _say(checks: list[Check]) -> None:
    output.say(f"certkit {__version__}, {platform.platform(terse=True)}")
    packages = [check for check in checks if check.name.startswith("package ") and check.state == "ok"]
    output.say(f"{'ok':<8} {len(packages)} packages")
    for check in checks:
        if check not in packages:
            output.say(f"{check.state:<8} {check.name}: {check.found}")
            for line in check.hint:
                output.wrapped(line, first="    hint: ", rest=" " * 10)


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
    end = next((i for i, of in enumerate(requirement) if of in " <>=!~;[("), len(requirement))
    return requirement[:end]


def _package(name: str) -> Check:
    try:
        return Check(f"package {name}", "ok", version(name))
    except PackageNotFoundError:
        return Check(f"package {name}", "failed", "not installed", (f"pip install {name}",))


def _pdf() -> Check:
    from certkit.report import HINTS, pdf_missing  # noqa: PLC0415 - keeps the help fast

    missing = pdf_missing()
    if missing is None:
        return Check("pdf", "ok", "Pango, HarfBuzz and the report's font are here")
    return Check("pdf", "missing", f"{missing}; reports are made as HTML only", HINTS)


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    found = f"{free / (1 << 30):.1f} GiB free"
    if free >= LEAST_DISK:
        return Check("disk", "ok", found)
    return Check("disk", "missing", found, ("large bundles need more space than this",))
