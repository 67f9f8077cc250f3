"""A folder with a registry, a policy and one passport to append, for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.passport import keys
from tests.support.passports import KEY, issued
from tests.support.running import certkit, edit

if TYPE_CHECKING:
    from pathlib import Path


AT = ("--at", "2026-03-02")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a key, a passport that is valid at `AT`, a registry and a policy that trusts both."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    keys.write_private(tmp_path / "key.pem", KEY, passphrase=None)
    (tmp_path / "public.pem").write_text(keys.public_pem(KEY.public_key()))
    (tmp_path / "passport.json").write_bytes(issued().to_json())
    made = certkit("registry", "init", tmp_path / "registry", "--name", "lab")
    assert made.code == 0
    assert made.err.startswith("hint: ")
    trust = ("trust", "add", "--trust", tmp_path / "trust.json", "--issuer", "Lab", "-q")
    added = certkit(*trust, "--key", tmp_path / "public.pem", "--log", made.out.strip())
    assert added.code == 0
    edit(tmp_path / "trust.json", require=["registry"])
    return tmp_path


def append(place: Path, *more: object, registry: str = "registry") -> tuple[object, ...]:
    return (
        *("registry", "append", place / registry, place / "passport.json"),
        *("--key", place / "key.pem", "--trust", place / "trust.json", *AT, *more),
    )
