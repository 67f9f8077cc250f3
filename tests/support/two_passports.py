"""A folder with a registry of two passports of one agent, for the command line, and its commands."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.cli.context import log_key_path
from certkit.passport import keys
from certkit.registry.writer import Registry
from tests.support.lineages import KEY, clustered, issue
from tests.support.running import Done, certkit
from tests.support.standings import issued_in

DAY = "2026-03-02"
NAME = "courier"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, which one works in, with a registry of two passports of one agent, the later one worse."""
    shutil.copytree(_made(), tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CERTKIT_HEADS", str(tmp_path / "heads.db"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@cache
def _made() -> Path:
    """Make the folder once for all tests of a process."""
    folder = Path(tempfile.mkdtemp(prefix="certkit-two-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("CERTKIT_HEADS", str(folder / "heads.db"))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        _make(folder)
    return folder


def _make(tmp_path: Path) -> None:
    keys.write_private(tmp_path / "key.pem", KEY, passphrase=None)
    (tmp_path / "public.pem").write_text(keys.public_pem(KEY.public_key()))
    made = certkit("registry", "init", "registry", "--name", "lab")
    added = certkit(
        *("trust", "add", "--trust", "trust.json", "--issuer", "Lab", "--key", "public.pem"),
        *("--log", made.out.strip(), "-q"),
    )
    assert (made.code, added.code) == (0, 0)
    first = issue(1, summary=clustered(900), tasks_independent=True)
    (tmp_path / "first.json").write_bytes(first.to_json())
    second = issue(2, summary=clustered(600), supersedes=first.passport_id, tasks_independent=True)
    (tmp_path / "second.json").write_bytes(second.to_json())
    assert log("first.json").out.startswith("logged as entry 0; ")
    assert log("second.json").out.startswith("logged as entry 1; ")


def log(name: str, *more: object) -> Done:
    return certkit(
        *("registry", "append", "registry", name, "--key", "key.pem", "--trust", "trust.json"),
        *("--at", DAY, *more),
    )


def ending(*words: object) -> Done:
    return certkit("registry", *words, "--key", "key.pem", "--trust", "trust.json", "--at", DAY)


def verify(name: str, *more: object, at: str = DAY) -> Done:
    return certkit("verify", name, "--trust", "trust.json", "--at", at, "--json", *more)


def status(done: Done) -> dict[str, object]:
    found: dict[str, object] = next(step for step in done.document["steps"] if step["id"] == "status")
    return found


def narrow(done: Done) -> str:
    assert max(map(len, done.out.splitlines())) <= 80, done.out
    return done.out


STRANGER = Ed25519PrivateKey.from_private_bytes(b"\x11" * 32)
TRUST = ("--trust", "trust.json")


def passport_ids(folder: Path) -> list[str]:
    return [issued.claims.passport_id for issued in issued_in(folder)]


def log_key(folder: Path) -> Path:
    """The file of the private key of the log in a registry."""
    with Registry.open(folder) as opened:
        return log_key_path(opened.origin)


def checkpoint(folder: Path) -> bytes:
    """The signed checkpoint of a registry."""
    with Registry.open(folder) as opened:
        return opened.checkpoint()
