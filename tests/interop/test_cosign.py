"""cosign, Sigstore's command, verifies a passport with a key, or a certificate and a root."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from certkit.passport import keys
from tests import console
from tests.interop import install
from tests.support import keyless, stamping, twins
from tests.support import passport_parts as maker
from tests.support.signers import ALGORITHMS
from tests.support.virtual_sigstore import compact

PASSPORT: Final = "urn:certkit:agent-passport:v1"
EMPTY: Final = {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}
NOT_READ: Final = {"a proof for another tree", "another root", "a proof for another place"}
"""Copies in a proof of what stands in the entry, or is signed by the checkpoint: cosign reads the latter."""
ROOT: Final = keyless.INSTANCE.trusted_root()
SOMEBODY: Final = ("--certificate-identity", keyless.WHO, "--certificate-oidc-issuer", keyless.WHERE)


class Cosign:
    """``cosign verify-blob-attestation`` on files in a folder; true for what it verifies."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder

    def __call__(self, bundle: bytes, *options: str, root: Any = EMPTY, kind: str = PASSPORT) -> bool:
        (self._folder / "passport.json").write_bytes(bundle)
        (self._folder / "root.json").write_bytes(compact(root))  # without one, cosign may ask the network
        done = subprocess.run(
            [
                *(self._program, "verify-blob-attestation", "--bundle", "passport.json", "--type", kind),
                *("--trusted-root", "root.json", *options),
            ],
            cwd=self._folder,
            env={"HOME": str(self._folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode in {0, 1}, done.stderr
        assert ("Verified OK" in done.stderr) == (done.returncode == 0), done.stderr
        return done.returncode == 0

    def by_key(self, bundle: bytes, pem: str, *options: str, root: Any = EMPTY, kind: str = PASSPORT) -> bool:
        (self._folder / "public.pem").write_text(pem)
        options = ("--key", "public.pem", "--insecure-ignore-tlog=true", *options)
        return self(bundle, *options, root=root, kind=kind)


@pytest.fixture
def verifies(cosign: str, tmp_path: Path) -> Cosign:
    return Cosign(cosign, tmp_path)


def about(digest: str) -> tuple[str, ...]:
    return ("--digest", digest, "--digestAlg", "sha256")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_good_passport_is_verified_and_its_twins_are_not(
    verifies: Cosign, algorithm: keys.Algorithm
) -> None:
    made = twins.by_key(algorithm)
    options = (made.pem, *about(made.agent))
    found = {name for name, data in made.files.items() if verifies.by_key(data, *options)}
    assert found == {twins.GOOD, twins.ANOTHER_HINT}  # who names a key needs no hint at it
    good = made.files[twins.GOOD]
    stranger = keys.public_pem(keys.generate(algorithm).public_key())
    assert not verifies.by_key(good, stranger, *about(made.agent))
    assert not verifies.by_key(good, made.pem, *about("f" * 64))
    assert not verifies.by_key(good, *options, kind="https://example.com/other")


def test_a_timestamp_beside_a_key_is_verified_and_its_twins_are_not(verifies: Cosign) -> None:
    tokens = {
        twins.GOOD: (stamping.TOKEN,),
        "none": (),
        "of another authority": (stamping.OTHER.timestamp(stamping.DIGEST),),
        "over something else": (stamping.INSTANCE.timestamp(bytes(32)),),
    }
    bundles = {name: compact(stamping.stamped(*found)) for name, found in tokens.items()}
    agent, pem = twins.agent_of(bundles[twins.GOOD]), maker.pem(maker.LAB)
    options = ("--use-signed-timestamps", *about(agent))
    found = {
        name for name, data in bundles.items() if verifies.by_key(data, pem, *options, root=stamping.ROOT)
    }
    assert found == {twins.GOOD}


def test_a_keyless_passport_is_verified_and_its_twins_are_not(verifies: Cosign) -> None:
    files = twins.by_certificate(but=NOT_READ)
    options = (*SOMEBODY, "--use-signed-timestamps", "--check-claims=false")
    assert {name for name, data in files.items() if verifies(data, *options, root=ROOT)} == {twins.GOOD}


@pytest.mark.parametrize(
    "changes",
    [
        {"root": keyless.OTHER.trusted_root()},
        {"root": keyless.INSTANCE.trusted_root(ca=keyless.SIGNED - keyless.SECOND)},
        {"root": keyless.INSTANCE.trusted_root(tsa=keyless.SIGNED - keyless.SECOND)},
        {"who": ("--certificate-identity", "b@example.com", *SOMEBODY[2:])},
        {"who": (*SOMEBODY[:2], "--certificate-oidc-issuer", "https://evil.example.com")},
        {"digest": "f" * 64},
    ],
    ids=["other instance", "ended CA", "ended TSA", "other identity", "other issuer", "other agent"],
)
def test_whoever_expects_something_else_refuses_it(verifies: Cosign, changes: dict[str, Any]) -> None:
    good = compact(keyless.GOOD)

    def accepts(
        root: Any = ROOT, who: tuple[str, ...] = SOMEBODY, digest: str = twins.agent_of(good)
    ) -> bool:
        return verifies(good, *who, "--use-signed-timestamps", *about(digest), root=root)

    assert accepts()
    assert not accepts(**changes)


def test_the_command_for_passports_without_a_key_is_as_the_documentation_gives_it(
    cosign: str, tmp_path: Path
) -> None:
    page = (install.ROOT / "docs" / "how-to" / "verify-a-passport.md").read_text(encoding="utf-8")
    [shown] = [block.text for block in console.blocks(page) if block.language == "sh"]
    command = (
        shown.strip()
        .replace("issuer@example.com", keyless.WHO)
        .replace("https://accounts.google.com", keyless.WHERE)
    )
    (tmp_path / "issued").mkdir()
    (tmp_path / "root.json").write_bytes(compact(ROOT))
    (tmp_path / "agent.txt").write_text(twins.agent_of(compact(keyless.GOOD)))
    for bundle, code in ((keyless.GOOD, 0), (keyless.ENTRIES["timestamp stripped"], 1)):
        (tmp_path / "issued" / "passport.json").write_bytes(compact(bundle))
        done = subprocess.run(
            ["bash", "-c", f"{command} --trusted-root root.json"],
            cwd=tmp_path,
            env={
                "HOME": str(tmp_path),
                "PATH": os.pathsep.join((str(Path(cosign).parent), os.environ["PATH"])),
            },
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, done.stderr
