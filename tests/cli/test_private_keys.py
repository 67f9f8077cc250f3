"""A private key that others on the machine could read is used, and that is said."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

from certkit.passport import keys
from tests.support.running import Done, certkit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READS = (
    ("key.pem", "keys show key.pem"),
    ("key.pem", "keys show key.pem --pem"),
    ("key.pem", "keys rotate key.pem -o {new} --public {new}.public"),
    ("key.pem", "issue a -o {new} --key key.pem --issuer Lab"),
    ("key.pem", "registry note registry {new} --key key.pem --trust trust.json"),
    (
        "key.pem",
        "export first/passport.json -f in-toto-svr -t trust.json -k key.pem --at 2026-03-02 -o {new}",
    ),
    (
        "registry/log-key.pem",
        "registry note registry {new} --key key.pem --trust trust.json",
    ),
    ("registry/log-key.pem", "registry status registry 0"),
    ("next.pem", "registry init {new} --name lab --log-key next.pem"),
)


@pytest.fixture(scope="module")
def root(
    script: tuple[Path, list[tuple[str, Done]]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("keys")
    shutil.copytree(script[0], folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield folder


@pytest.mark.parametrize(("name", "line"), READS)
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o644, 0o666, 0o604, 0o620])
def test_a_key_that_is_open_to_others_is_used_with_a_warning(
    name: str, line: str, mode: int, root: Path
) -> None:
    number = READS.index((name, line))
    (root / name).chmod(mode)
    try:
        done = certkit(*shlex.split(line.format(new=f"new-{number}-{mode:o}")))
    finally:
        (root / name).chmod(0o600)
    assert done.code == 0, done.err
    warned = [
        said for said in done.err.splitlines() if said.startswith(("warning: ", f"hint: chmod 600 {name}"))
    ]
    private = mode in {0o600, 0o400}
    assert warned == (
        []
        if private
        else [
            f"warning: {name}: not encrypted, and open to others (mode {mode:04o})",
            f"hint: chmod 600 {name}",
        ]
    )
    assert "warning" not in done.out


def test_an_encrypted_key_needs_no_warning(tmp_path: Path) -> None:
    path, phrase = tmp_path / "key.pem", tmp_path / "phrase"
    phrase.write_text("correct horse\n")
    keys.write_private(path, keys.generate("ed25519"), passphrase=b"correct horse")
    path.chmod(0o644)
    done = certkit("keys", "show", path, "--passphrase-file", phrase)
    assert (done.code, done.err) == (0, "")


def test_a_public_key_needs_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "public.pem"
    path.write_text(keys.public_pem(keys.generate("p256").public_key()))
    path.chmod(0o644)
    assert certkit("keys", "show", path).err == ""
