"""What an operator does with a log: export it, show its checkpoint, change its key."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from certkit.passport import keys
from tests.support.one_passport import append, place  # noqa: F401 - a fixture is used by its name
from tests.support.registries import contents
from tests.support.running import Done, certkit
from tests.support.two_passports import checkpoint, log_key

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def logged(place: Path) -> Path:  # noqa: F811 - the same
    """The folder with one passport logged."""
    assert certkit(*append(place)).code == 0
    return place


def audit(logged: Path, folder: str, *more: object) -> Done:
    return certkit("registry", "audit", logged / folder, "--trust", logged / "trust.json", *more)


def test_an_exported_tree_is_audited_like_the_registry(logged: Path) -> None:
    done = certkit("registry", "export", logged / "registry", logged / "public", "--passports")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("; 4 files written\n")
    assert set(contents(logged / "public")) > {"checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1"}
    sound = audit(logged, "public")
    assert sound.code == 0
    assert sound.out.startswith("SOUND: 1 entry, 1 passport, signed as")
    assert (
        audit(logged, "public", "--json").document["root"]
        == (audit(logged, "registry", "--json").document["root"])
    )
    again = certkit("registry", "export", logged / "registry", logged / "public", "--json").document
    assert (again["size"], again["before"], again["written"]) == (1, 1, 0)
    bundle = logged / "public" / "tile" / "entries" / "000.p" / "1"
    bundle.write_bytes(bundle.read_bytes().replace(b"e", b"f", 1))
    assert audit(logged, "public", "-q").code == 7


@pytest.mark.parametrize(
    ("out", "code", "exit_code"),
    [
        ("issuer", "registry.export", 7),
        ("registry", "usage.option", 2),
        ("registry/public", "usage.option", 2),
        ("public.pem", "file.unwritable", 2),
    ],
)
def test_an_export_over_something_else_is_refused(logged: Path, out: str, code: str, exit_code: int) -> None:
    (logged / "issuer").mkdir()
    (logged / "issuer" / "letter.txt").write_text("x")
    before = contents(logged)
    done = certkit("registry", "export", logged / "registry", logged / out, "--json")
    assert (done.code, done.document["error"]["code"]) == (exit_code, code)
    assert contents(logged) == before


def test_a_remembered_checkpoint_shows_a_rollback(logged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry, remembered = logged / "registry", logged / "remembered"
    shutil.copytree(registry, logged / "backup")
    remembered.write_bytes(checkpoint(registry))
    assert audit(logged, "registry", "--since", remembered).code == 0
    empty = certkit("registry", "init", logged / "empty", "--name", "lab", "--log-key", log_key(registry))
    assert empty.code == 0
    other = audit(logged, "empty", "--since", remembered, "--json")
    assert (other.code, other.document["error"]["code"]) == (8, "registry.untrusted-log")

    # The user's own file of heads remembers as much, unless another one is named.
    with closing(sqlite3.connect(logged / "backup" / "registry.db")) as connection:
        connection.execute("DELETE FROM leaf")
        connection.commit()
    proof = logged / "passport.json.tlog-proof"
    monkeypatch.setenv("CERTKIT_HEADS", str(logged / "none"))
    assert audit(logged, "registry", "--since", proof).code == 0
    assert audit(logged, "registry", "--since", logged / "public.pem", "--json").code == 3


def test_a_restored_backup_is_neither_signed_on_nor_sound(
    place: Path,  # noqa: F811 - the same
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(place / "registry", place / "backup")
    assert certkit(*append(place)).code == 0
    shutil.rmtree(place / "registry")
    shutil.copytree(place / "backup", place / "registry")
    refused = certkit(*append(place, "--json"))
    assert (refused.code, refused.document["error"]["code"]) == (7, "registry.rollback")
    found = audit(place, "registry", "--json").document["findings"]
    assert [one["code"] for one in found] == ["registry.rollback"]
    monkeypatch.setenv("CERTKIT_HEADS", str(place / "others.db"))
    assert audit(place, "registry", "-q").code == 0
    assert certkit(*append(place, "-q")).code == 0


def test_where_heads_are_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811 - the same
    monkeypatch.setenv("HOME", str(place / "home"))
    for name, value, heads in (
        ("XDG_STATE_HOME", "", "home/.local/state/certkit/heads.db"),
        ("XDG_STATE_HOME", str(place / "state"), "state/certkit/heads.db"),
        ("CERTKIT_HEADS", str(place / "own.db"), "own.db"),
    ):
        monkeypatch.delenv("CERTKIT_HEADS", raising=False)
        monkeypatch.setenv(name, value)
        assert certkit(*append(place, "-q")).code == 0
        assert (place / heads).is_file()


def test_another_key_takes_over(logged: Path) -> None:
    registry = logged / "registry"
    key = log_key(registry)
    old = key.read_bytes()
    done = certkit("registry", "rotate-key", registry)
    assert done.code == 0
    assert done.err.startswith("hint: ")
    assert key.read_bytes() != old
    assert [path.name for path in key.parent.iterdir()] == [key.name]
    unknown = audit(logged, "registry", "--json")
    assert unknown.code == 7
    assert done.out.strip() in str(unknown.document["findings"])
    assert audit(logged, "registry").err.endswith("confirms its new key: certkit trust add --log VKEY\n")
    added = certkit("trust", "add", "--trust", logged / "trust.json", "--log", done.out.strip(), "-q")
    assert added.code == 0
    assert audit(logged, "registry", "-q").code == 0
    assert certkit(*append(logged, "-q")).code == 0
    shown = certkit("registry", "show", registry, "--json").document
    assert [one["type"] for one in shown["entries"]] == ["passport", "key"]
    assert shown["vkey"] == done.out.strip()


def test_a_change_of_keys_that_was_interrupted_is_finished(logged: Path) -> None:
    registry = logged / "registry"
    key = log_key(registry)
    old = key.read_bytes()
    assert certkit("registry", "rotate-key", registry, "-q").code == 0
    key.rename(key.with_name(f"{key.name}.next"))  # as it was just before the last step
    key.write_bytes(old)
    refused = certkit(*append(logged, "--json"))
    assert (refused.code, refused.document["error"]["code"]) == (2, "registry.log-key")
    assert f"certkit registry rotate-key {registry}" in refused.document["error"]["hint"]
    again = certkit("registry", "rotate-key", registry, "--json")
    assert (again.code, again.document["size"]) == (0, 2)
    assert certkit(*append(logged, "-q")).code == 0


def test_a_key_of_ones_own_takes_over(logged: Path) -> None:
    registry = logged / "registry"
    keys.write_private(logged / "next.pem", keys.generate("ed25519"), passphrase=None)
    old, new = log_key(registry), logged / "next.pem"
    before = old.read_bytes()
    done = certkit("registry", "rotate-key", registry, "--new-log-key", new)
    assert (done.code, old.read_bytes()) == (0, before)
    assert f"--log-key {new}" in done.err
    assert certkit(*append(logged, "--log-key", new, "-q")).code == 0
    back = ("registry", "rotate-key", registry, "--log-key", new, "--new-log-key", old, "--json")
    refused = certkit(*back)
    assert (refused.code, refused.document["error"]["code"]) == (2, "registry.log-key")
    assert "certkit keys generate" in refused.document["error"]["hint"]


@pytest.mark.parametrize("named", ["--new-log-key", "--log-key"])
def test_a_key_that_would_lie_in_the_registry_does_not_take_over(logged: Path, named: str) -> None:
    registry = logged / "registry"
    inside = registry / "r" / ".." / "next.pem"
    (registry / "r").mkdir()
    if named == "--log-key":
        shutil.copy(log_key(registry), inside)  # a new key would be made beside it
    else:
        keys.write_private(inside, keys.generate("ed25519"), passphrase=None)
    before = contents(registry)
    refused = certkit("registry", "rotate-key", registry, named, inside, "--json")
    assert (refused.code, refused.document["error"]["code"]) == (2, "usage.option")
    assert refused.document["error"]["message"].startswith(f"{named}: ")
    assert contents(registry) == before
    assert certkit("registry", "show", registry, "--json").document["size"] == 1


def test_another_format_is_refused(logged: Path) -> None:
    with closing(sqlite3.connect(logged / "registry" / "registry.db")) as connection:
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'format'")
        connection.commit()
    refused = certkit("registry", "show", logged / "registry", "--json")
    assert (refused.code, refused.document["error"]["code"]) == (3, "registry.format")
