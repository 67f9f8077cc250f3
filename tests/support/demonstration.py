"""The demonstration, `certkit demo`, with fixed keys, at a fixed date: made once for all its readers."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest import mock

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.cli import context
from certkit.cli.commands import demo
from tests.support import kept
from tests.support.running import Done, certkit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Demonstration(NamedTuple):
    """What the demonstration left: its folder, which is only read, its screen and its document.

    Both name it ``demo``, as it is named in the folder around it.
    """

    folder: Path
    screen: Done
    document: Done


@contextlib.contextmanager
def on_its_day() -> Iterator[None]:
    """Set the clock of the command line to the day of the demonstration."""
    with mock.patch.object(context, "now", return_value=DAY):
        yield


def demonstrate(out: Path | str) -> Done:
    """Run the demonstration with fixed keys, on its day."""
    private_keys = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in range(1, 256))
    with on_its_day(), mock.patch.object(Ed25519PrivateKey, "generate", side_effect=private_keys):
        return certkit("demo", "-o", out)


def make(folder: Path) -> None:
    """Make the demonstration in `folder`, with what it prints as a screen and as a document."""
    made: list[demo.Demonstrated] = []
    run = demo.demonstrate

    def kept_in_mind(*arguments: Any, **named: Any) -> demo.Demonstrated:
        made.append(run(*arguments, **named))
        return made[0]

    with contextlib.chdir(folder):
        with mock.patch.object(demo, "demonstrate", kept_in_mind):
            screen = demonstrate("demo")
        assert screen.code == 0, screen
        with on_its_day(), mock.patch.object(demo, "demonstrate", return_value=made[0]):
            document = certkit("demo", "-o", "demo", "--json")
    kept.write(folder / "printed.json", [("demo -o demo", screen), ("demo -o demo --json", document)])


def read(folder: Path) -> Demonstration:
    """Return what `make` left."""
    screen, document = (done for _, done in kept.read(folder / "printed.json"))
    return Demonstration(folder / "demo", screen, document)
