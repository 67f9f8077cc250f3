"""@sigstore/verify, Sigstore's library for npm, verifies a passport with a key, or a certificate."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from certkit.ground import canonical
from certkit.passport import keys
from tests.interop import install
from tests.support import keyless, twins
from tests.support.signers import ALGORITHMS
from tests.support.virtual_sigstore import compact

if TYPE_CHECKING:
    from tests.support.virtual_sigstore import Sigstore

HERE: Final = Path(__file__).parent
NOT_READ: Final = {"a proof for another tree", "another root"}
"""The copies of size and root in a proof: this client reads those that the checkpoint signs."""


class Script:
    """A script beside this file, run on files in a folder."""

    def __init__(self, packages: Path, folder: Path) -> None:
        self._packages, self._folder = packages, folder

    def verified(self, script: str, *arguments: str, files: dict[str, bytes]) -> set[str]:
        """Return the names of those files that are verified; all others are refused."""
        for name, data in files.items():
            (self._folder / name).write_bytes(data)
        done = subprocess.run(
            ["node", str(HERE / script), str(self._packages), *arguments, *files],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        said = dict(zip(files, done.stdout.splitlines(), strict=True))
        assert {text.split()[0] for text in said.values()} <= {"verified", "refused"}
        return {name for name, text in said.items() if text == "verified"}

    def by_key(self, pem: str, files: dict[str, bytes]) -> set[str]:
        (self._folder / "public.pem").write_text(pem)
        return self.verified("sigstore_js.cjs", "public.pem", files=files)

    def by_certificate(
        self,
        files: dict[str, bytes],
        *,
        root: Sigstore = keyless.INSTANCE,
        who: str = keyless.WHO,
        where: str = keyless.WHERE,
    ) -> set[str]:
        (self._folder / "root.json").write_bytes(compact(root.trusted_root()))
        return self.verified("sigstore_js_keyless.cjs", "root.json", who, where, files=files)


@pytest.fixture
def script(packages: Path, tmp_path: Path) -> Script:
    return Script(packages, tmp_path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_good_passport_is_verified_and_its_twins_are_not(script: Script, algorithm: keys.Algorithm) -> None:
    made = twins.by_key(algorithm)
    assert script.by_key(made.pem, made.files) == {twins.GOOD}
    stranger = keys.public_pem(keys.generate(algorithm).public_key())
    assert script.by_key(stranger, made.files) == set()


def test_a_keyless_passport_is_verified_and_its_twins_are_not(script: Script) -> None:
    assert script.by_certificate(twins.by_certificate(but=NOT_READ)) == {twins.GOOD}


@pytest.mark.parametrize(
    "changes",
    [{"who": "b@example.com"}, {"where": "https://evil.example.com"}, {"root": keyless.OTHER}],
    ids=["other identity", "other issuer", "other instance"],
)
def test_whoever_expects_somebody_else_refuses_it(script: Script, changes: dict[str, Any]) -> None:
    good = {twins.GOOD: compact(keyless.GOOD)}
    assert script.by_certificate(good) == {twins.GOOD}
    assert script.by_certificate(good, **changes) == set()


def test_every_package_is_pinned_by_its_digest() -> None:
    packages = canonical.loads(install.LOCK.read_bytes())["packages"]
    asked = canonical.loads(install.MANIFEST.read_bytes())["dependencies"]
    assert packages.pop("")["dependencies"] == asked
    assert {name: packages[f"node_modules/{name}"]["version"] for name in asked} == asked
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
