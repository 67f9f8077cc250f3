"""How a command gets the passphrase of a private key: from a file, or by asking on a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.errors import UsageError

if TYPE_CHECKING:
    from certkit.passport.keys import PrivateKey

MAX_PASSPHRASE: Final = 4096

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        envvar="CERTKIT_PASSPHRASE_FILE",
        help="A file whose first line is the key's passphrase.",
    ),
]


def from_file(path: Path | None) -> bytes | None:
    """Return the first line of a passphrase file, None where no file is named."""
    from certkit import files  # noqa: PLC0415 - keeps the help fast

    if path is None:
        return None
    line = files.read(path, limit=MAX_PASSPHRASE).split(b"\n", 1)[0].removesuffix(b"\r")
    if not line:
        raise UsageError("key.passphrase", "the first line is empty", where=str(path))
    return line


def ask_new() -> bytes:
    """Ask twice for a new passphrase."""
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)).encode()


def signing_key(path: Path, passphrase_file: Path | None) -> PrivateKey:
    """Return the private key in a file, asking for its passphrase where that is needed and possible."""
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    passphrase = from_file(passphrase_file)
    if passphrase is None and sys.stdin.isatty() and keys.is_encrypted(path):
        passphrase = str(typer.prompt(f"Passphrase of {path}", hide_input=True, err=True)).encode()
    return keys.load_private(path, passphrase=passphrase)
