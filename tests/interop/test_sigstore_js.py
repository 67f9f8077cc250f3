"""@sigstore/verify, Sigstore's client for npm, verifies a passport with a key, or a certificate and a root.

The packages are installed into ``build/interop`` once, with npm. Without node, npm or a network the tests
are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from certkit import canonical
from certkit.passport import dsse, keys, sealed
from tests.unit.passport import test_keyless as keyless
from tests.unit.passport.making import issued
from tests.virtual_sigstore import compact

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.passport.keys import PrivateKey

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "interop"
VERSION: Final = "4.1.3"
NOT_READ: Final = {"a proof for another tree", "another root"}


@pytest.fixture
def packages() -> Path:
    """Return the folder that holds the packages."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not on this machine")
    installed = FOLDER / "node_modules" / "@sigstore" / "verify" / "package.json"
    if not installed.is_file() or canonical.loads(installed.read_bytes())["version"] != VERSION:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "package.json").write_text("{}")
        done = subprocess.run(
            [
                npm,
                "install",
                "--no-audit",
                "--no-fund",
                "--silent",
                "--fetch-retries=0",
                f"@sigstore/verify@{VERSION}",
            ],
            cwd=FOLDER,
            capture_output=True,
            check=False,
            timeout=300,
        )
        if done.returncode:
            pytest.skip("npm could not install @sigstore/verify: no network")
    return FOLDER


def edited(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    document = canonical.loads(data)
    change(document)
    return canonical.line(document)


def twins(data: bytes, payload: bytes, stranger: PrivateKey) -> dict[str, bytes]:
    """Return passports that must be refused, by what is wrong with them."""
    better = dsse.encode(payload.replace(b"Tier 3", b"Tier 4"))
    material = sealed.seal(payload, stranger)["verificationMaterial"]
    foreign = sealed.seal(payload, stranger) | {
        "verificationMaterial": canonical.loads(data)["verificationMaterial"]
    }
    return {
        "payload": edited(data, lambda d: d["dsseEnvelope"].update(payload=better)),
        "payloadType": edited(data, lambda d: d["dsseEnvelope"].update(payloadType="application/json")),
        "signed by another key": canonical.line(foreign),
        "hint at another key": edited(data, lambda d: d.update(verificationMaterial=material)),
        "no signature": edited(data, lambda d: d["dsseEnvelope"].update(signatures=[])),
    }


def test_good_passports_are_verified_and_their_twins_are_not(packages: Path, tmp_path: Path) -> None:
    for algorithm in keys.ALGORITHMS:  # one test, so that one process installs the packages
        compare(packages, tmp_path, algorithm)
    compare_keyless(packages, tmp_path)


def compare(packages: Path, tmp_path: Path, algorithm: keys.Algorithm) -> None:
    key = keys.generate(algorithm)
    found = issued(key=key)
    files = {"good": found.to_json(), **twins(found.to_json(), found.payload, keys.generate(algorithm))}
    (tmp_path / "public.pem").write_text(keys.public_pem(key.public_key()))
    check(packages, tmp_path, "sigstore_js.cjs", ["public.pem"], files)


def compare_keyless(packages: Path, tmp_path: Path) -> None:
    """Compare the verdicts on certificates; the copies of root and size in a proof are not read there."""
    bundles = {
        "good": keyless.GOOD,
        **{name: keyless.signed(signer) for name, signer in keyless.CERTIFICATES.items()},
        **keyless.ENTRIES,
    }
    files = {name: compact(document) for name, document in bundles.items() if name not in NOT_READ}
    (tmp_path / "root.json").write_bytes(compact(keyless.INSTANCE.trusted_root()))
    check(packages, tmp_path, "sigstore_js_keyless.cjs", ["root.json", keyless.WHO, keyless.WHERE], files)


def check(packages: Path, folder: Path, script: str, arguments: list[str], files: dict[str, bytes]) -> None:
    """Assert that the script verifies the good file and refuses all others."""
    for name, data in files.items():
        (folder / f"{name}.json").write_bytes(data)
    done = subprocess.run(
        [
            "node",
            str(Path(__file__).with_name(script)),
            str(packages),
            *arguments,
            *(f"{name}.json" for name in files),
        ],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=120,
    )
    said = dict(zip(files, done.stdout.decode().splitlines(), strict=True))
    assert {name: text.split()[0] for name, text in said.items()} == {
        name: "verified" if name == "good" else "refused" for name in files
    }, said
