"""The built packages, installed in an empty environment outside the checkout, run the demo.

    python -m tests.wheel

Builds the wheel and the source distribution, installs each in a virtual environment of its own, and runs
the program there. Needs the package index, or a cache of pip that holds the dependencies.
"""

from __future__ import annotations

import json  # noqa: TID251 - checks a document from outside, without the package under test
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PROFILES: Final = sorted(
    {file.stem for file in (ROOT / "templates" / "profiles").glob("*.toml")} - {"published"}
)
WANTED: Final = (
    "schemas/record.v1.schema.json",
    "schemas/bundle.v1.schema.json",
    *(f"templates/profiles/{name}.toml" for name in PROFILES),
)


class PackagingError(AssertionError):
    """Something that the built packages must do and do not."""


def _run(*command: object, cwd: Path) -> str:
    # Nothing of the checkout may be found by accident.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        shown = " ".join(str(part) for part in command)
        raise PackagingError(f"{shown} left with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _python(folder: Path) -> Path:
    venv.create(folder, with_pip=True, system_site_packages=False, clear=True)
    return folder / "bin" / "python"


def build(folder: Path) -> tuple[Path, Path]:
    """Build the wheel and the source distribution into `folder` and return their paths."""
    builder = _python(folder / "builder")
    _run(builder, "-m", "pip", "install", "--quiet", "hatchling>=1.27", cwd=folder)
    out = folder / "dist"
    for target in ("wheel", "sdist"):
        _run(builder, "-m", "hatchling", "build", "-t", target, "-d", out, cwd=ROOT)
    [wheel] = out.glob("*.whl")
    [sdist] = out.glob("*.tar.gz")
    return wheel, sdist


def check_contents(wheel: Path, sdist: Path) -> None:
    """Demand the data files, the licence and the type marker, and nothing that does not belong."""
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    wanted = {f"certkit/_data/{name}" for name in WANTED} | {"certkit/__init__.py", "certkit/py.typed"}
    if missing := wanted - inside:
        raise PackagingError(f"the wheel lacks {sorted(missing)}")
    if strangers := {name.partition("/")[0] for name in inside if not name.startswith("certkit")}:
        raise PackagingError(f"the wheel would install {sorted(strangers)} beside the package")
    if not any(name.endswith("LICENSE") for name in inside):
        raise PackagingError("the wheel has no licence")
    with tarfile.open(sdist) as archive_:
        names = {name.partition("/")[2] for name in archive_.getnames()}
    if missing := {*WANTED, "LICENSE", "Makefile", "tests/wheel.py", "pyproject.toml"} - names:
        raise PackagingError(f"the source distribution lacks {sorted(missing)}")


def check_installed(package: Path, folder: Path) -> None:
    """Install `package` alone in `folder` and run what a newcomer would."""
    python = _python(folder / "env")
    _run(python, "-m", "pip", "install", "--quiet", package, cwd=folder)
    certkit = folder / "env" / "bin" / "certkit"
    where = _run(python, "-c", "import certkit; print(certkit.__file__)", cwd=folder).strip()
    if not Path(where).is_relative_to(folder.resolve()) and not Path(where).is_relative_to(folder):
        raise PackagingError(f"certkit was imported from {where}")
    listed = json.loads(_run(certkit, "profile", "show", "--json", cwd=folder))
    if [item["id"] for item in listed["profiles"]] != PROFILES:
        raise PackagingError(f"the packaged profiles are {listed}")
    _run(certkit, "demo", "-o", folder / "demo", cwd=folder)
    assessment = json.loads((folder / "demo" / "assessment.json").read_text(encoding="utf-8"))
    if assessment["verdict"]["tier"] != 1:
        raise PackagingError(f"the demonstration attained tier {assessment['verdict']['tier']}")
    # A refused record needs the published schema, which is made from the types and not read from a file.
    bad = folder / "demo" / "bundle" / "records" / "b.jsonl"
    bad.write_bytes(b"{}\n")
    (folder / "demo" / "bundle" / "bundle.json").unlink()
    _run(certkit, "bundle", "init", folder / "demo" / "bundle", "--agent", "a", "--version", "1", cwd=folder)
    refused = subprocess.run(
        [certkit, "assess", folder / "demo" / "bundle"], check=False, capture_output=True
    )
    if refused.returncode != 3:
        raise PackagingError(f"a bad record left with {refused.returncode}: {refused.stderr.decode()}")


def main() -> int:
    """Build and check both packages; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="certkit-wheel-") as name:
        folder = Path(name)
        try:
            wheel, sdist = build(folder)
            check_contents(wheel, sdist)
            for package in (wheel, sdist):
                place = folder / package.suffix.strip(".")
                place.mkdir()
                check_installed(package, place)
                sys.stdout.write(f"{package.name}: installed alone, the demonstration runs\n")
        except PackagingError as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
