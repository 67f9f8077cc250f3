"""Whose entries an operator goes by: changing the log's key under a trust policy, and to a former key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from certkit.cli.context import heads_path
from certkit.passport import keys
from certkit.registry.entry import Note
from certkit.registry.log import KEY_FILE, load_log_key
from certkit.registry.registry import Registry
from tests.support.one_passport import place  # noqa: F401 - a fixture is used by its name
from tests.support.registries import STRANGER, log_entry
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path


def test_no_strangers_date_keeps_the_log_from_changing_its_key(place: Path) -> None:  # noqa: F811 - the same
    folder = place / "registry"
    with Registry.open(folder, heads=heads_path()) as registry:
        log_key, far = load_log_key(folder / KEY_FILE), datetime(9998, 1, 1, tzinfo=UTC)
        log_entry(registry, "x", Note(text="x"), submitter=STRANGER, log_key=log_key, at=far)
    refused = certkit("registry", "rotate-key", folder, "--json")
    assert (refused.code, refused.document["error"]["code"]) == (7, "registry.time")
    assert "by a trust policy" in refused.document["error"]["hint"]
    rotated = certkit("registry", "rotate-key", folder, "--trust", place / "trust.json", "--json")
    assert (rotated.code, rotated.document["size"]) == (0, 2)


def test_a_key_that_the_log_had_is_refused_with_what_to_do(place: Path) -> None:  # noqa: F811 - the same
    folder = place / "registry"
    (folder / KEY_FILE).rename(place / "old.pem")
    keys.write_private(place / "next.pem", keys.generate("ed25519"), passphrase=None)
    old, new = place / "old.pem", place / "next.pem"
    change = ("registry", "rotate-key", folder, "--json")
    assert certkit(*change, "--log-key", old, "--new-log-key", new).code == 0
    back = certkit(*change, "--log-key", new, "--new-log-key", old)
    assert (back.code, back.document["error"]["code"]) == (2, "registry.log-key")
    assert "certkit keys generate" in back.document["error"]["hint"]
