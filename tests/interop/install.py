"""Brings the programs that tests/interop needs and that pip does not bring.

    python -m tests.interop.install        # what 'make interop' runs

- ``@sigstore/verify`` into build/interop, with npm, at the versions and digests of the lock file beside this
  module.
- ``cosign`` into build/interop, as the package of Debian's unstable release, with apt: from the mirror that
  this machine uses, under the signature that its keys verify. It is unpacked, nothing is installed.
- Chromium, poppler and qpdf where they are not on the path, as Debian's packages: root installs them.

Tests fetch nothing themselves. What cannot be had is said, and skips the tests that need it; npm that is here
and cannot install is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.browser import PROGRAM
from tests.support.drawing import READERS

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "interop"
PACKAGES: Final = FOLDER / "npm"
COSIGN: Final = FOLDER / "bin" / "cosign"
MANIFEST: Final = Path(__file__).with_name("package.json")
LOCK: Final = Path(__file__).with_name("package-lock.json")


class InstallError(Exception):
    """Why something could not be had, in one line."""


def has_packages() -> bool:
    """Tell whether the packages of the lock file, and no others, are installed."""
    lock = PACKAGES / LOCK.name
    return lock.is_file() and lock.read_bytes() == LOCK.read_bytes()


def install_packages() -> None:
    """Install the packages of the lock file. Raises `InstallError`."""
    shutil.rmtree(PACKAGES, ignore_errors=True)
    PACKAGES.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name) / PACKAGES.name
        folder.mkdir()
        for file in (MANIFEST, LOCK):
            shutil.copyfile(file, folder / file.name)
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], folder)
        folder.rename(PACKAGES)


def install_cosign() -> None:
    """Unpack cosign's newest Debian package. Raises `InstallError`."""
    COSIGN.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        for part in ("state/lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        (folder / "unstable.sources").write_text(
            f"Types: deb\nURIs: {_mirror()}\nSuites: unstable\nComponents: main\n"
            "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        )
        options = [
            f"Dir::Etc::sourcelist={folder}/unstable.sources",
            "Dir::Etc::sourceparts=/dev/null",
            f"Dir::State={folder}/state",
            f"Dir::Cache={folder}/cache",
            "APT::Sandbox::User=",  # this folder is not readable by apt's own user
            "Acquire::Languages=none",
            "APT::Update::Error-Mode=any",
        ]
        apt = ["apt-get", "--quiet", *(part for option in options for part in ("-o", option))]
        _run([*apt, "update"], folder)
        _run([*apt, "download", "cosign"], folder)
        [package] = folder.glob("cosign_*.deb")
        _run(["dpkg-deb", "--extract", str(package), str(folder / "unpacked")], folder)
        unpacked = folder / "unpacked/usr/bin/cosign"
        _run([str(unpacked), "version"], folder)  # it may want a newer C library than is here
        unpacked.rename(COSIGN)


def install_debian(*packages: str) -> None:
    """Install packages of Debian's. Raises `InstallError`."""
    _mirror()  # elsewhere the packages of these names may bring no programs
    if os.geteuid():
        raise InstallError(f"only root installs packages: apt-get install {' '.join(packages)}")
    for words in (["update"], ["--yes", "--no-install-recommends", "install", *packages]):
        _run(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", *words], ROOT)


def _mirror() -> str:
    """Return the address that this machine has Debian's packages from."""
    told = _run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"], ROOT
    )
    for line in told.splitlines():
        origin, _, address = line.partition(" ")
        if origin == "Debian" and address.rstrip("/").endswith("/debian"):
            return address
    raise InstallError("apt has no packages of Debian's here")


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"{command[0]}: {error}") from None
    if done.returncode:
        said = "; ".join(line.strip() for line in done.stderr.splitlines()[:2])
        raise InstallError(f"{command[0]} left with {done.returncode}: {said}")
    return done.stdout


def main() -> int:
    """Bring what can be had; return 1 if npm is here and could not install."""
    code = 0
    if has_packages():
        print("@sigstore/verify: installed")
    elif shutil.which("npm") is None:
        print("@sigstore/verify: not installed, for npm is not here; its tests are skipped")
    else:
        try:
            install_packages()
        except InstallError as error:
            print(f"error: @sigstore/verify: {error}", file=sys.stderr)
            code = 1
        else:
            print("@sigstore/verify: installed by npm")
    if COSIGN.is_file():
        print("cosign: unpacked")
    else:
        _bring("cosign", install_cosign, "its tests want a cosign 3 on the path")
    if PROGRAM is not None:
        print(f"Chromium: {PROGRAM}")
    else:
        _bring("Chromium", partial(install_debian, "chromium"), "its tests are skipped")
    if all(map(shutil.which, READERS)):
        print("poppler and qpdf: on the path")
    else:
        readers = partial(install_debian, "poppler-utils", "qpdf")
        _bring("poppler and qpdf", readers, "the tests that read PDFs are skipped")
    return code


def _bring(name: str, install: Callable[[], None], otherwise: str) -> None:
    try:
        install()
    except InstallError as error:
        print(f"{name}: not to be had ({error}); {otherwise}")
    else:
        print(f"{name}: from Debian's package")


if __name__ == "__main__":
    sys.exit(main())
