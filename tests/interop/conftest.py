"""Fixtures of the programs that pip does not bring; 'make interop' does, and tests fetch nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.interop import install
from tests.support.browser import PROGRAM, Browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def packages() -> Path:
    """Return the folder that holds @sigstore/verify; a run of continuous integration that has npm has it."""
    absent = [name for name in ("node", "npm") if shutil.which(name) is None]
    if absent:
        pytest.skip(f"not on this machine: {', '.join(absent)}")
    if not install.has_packages():
        told = "@sigstore/verify is not installed; 'make interop' does it"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    return install.PACKAGES


@pytest.fixture(scope="session")
def cosign() -> str:
    """Return cosign 3: the one that 'make interop' unpacked, or that of this machine."""
    found = str(install.COSIGN) if install.COSIGN.is_file() else shutil.which("cosign")
    if found is None:
        pytest.skip(
            "cosign is not on this machine; where apt has Debian's packages, 'make interop' brings it"
        )
    told = subprocess.run(
        [found, "verify-blob-attestation", "--help"], capture_output=True, text=True, check=True
    )
    if "--digestAlg" not in told.stdout:
        pytest.skip("the cosign of this machine is older than 3")
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("no Chromium is on this machine: 'make interop' brings it to Debian")
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened
