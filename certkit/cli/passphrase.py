"""How a command gets a private key, and its passphrase: from a file, or by asking on a terminal.

A key that others on the machine could read is used, and that is said: who keeps it so may have a reason, such
as a secret that a container is given, and a refusal would only teach people to copy it.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.cli import output
from certkit.errors import InputError, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey

MAX_PASSPHRASE: Final = 4096
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

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
    key = keys.load_private(path, passphrase=passphrase)
    _warn_of_readers(path)
    return key


def log_key(named: Path | None, registry: Path, *, finishing: bool = False) -> Ed25519PrivateKey:
    """Return a log's private key: the one that was named, or that in the registry's folder.

    Where a change of keys was interrupted, nothing is signed with either but by what is `finishing` it.
    """
    from certkit.registry import store  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.log_key import KEY_FILE, NEXT_KEY, load_log_key  # noqa: PLC0415 - the same

    path = named or registry / KEY_FILE
    if named is None and not finishing and (registry / NEXT_KEY).exists():
        raise UsageError(
            "registry.log-key",
            "a change of the log's key was interrupted",
            where=str(registry / NEXT_KEY),
            hint=f"finish it: certkit registry rotate-key {registry}",
        )
    if named is None and not path.exists():
        store.located(registry)
        raise InputError(
            "file.missing", "not found", where=str(path), hint="name the log's private key: --log-key FILE"
        )
    key = load_log_key(path)
    _warn_of_readers(path)
    return key


def _warn_of_readers(path: Path) -> None:
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    mode = stat.S_IMODE(path.stat().st_mode)
    if stat.S_ISREG(path.stat().st_mode) and mode & _OTHERS and not keys.is_encrypted(path):
        output.note(f"warning: {path}: not encrypted, and open to others (mode {mode:04o})")
        output.note(f"hint: chmod 600 {path}")
