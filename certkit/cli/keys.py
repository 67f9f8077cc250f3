"""``certkit keys``: make and look at signing keys."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.cli import output
from certkit.cli.options import Json, Quiet
from certkit.cli.passphrase import PassphraseFile, ask_new, from_file, signing_key

if TYPE_CHECKING:
    from certkit.passport.keys import PublicKey

app = typer.Typer(help="Make and look at signing keys.", no_args_is_help=True, rich_markup_mode=None)


class Kind(StrEnum):
    """The types of key that sign."""

    ED25519 = "ed25519"
    P256 = "p256"


KeyFile = Annotated[Path, typer.Argument(metavar="KEY", help="A PEM file, private or public.")]


@app.command("generate")
def generate(
    out: Annotated[Path, typer.Option("-o", "--out", help="The file of the private key.")],
    public: Annotated[
        Path | None, typer.Option("--public", help="Also write the public key to this file.")
    ] = None,
    kind: Annotated[Kind, typer.Option("--type", help="Ed25519, or ECDSA P-256.")] = Kind.ED25519,
    passphrase_file: PassphraseFile = None,
    ask: Annotated[bool, typer.Option("--ask-passphrase", help="Ask for a passphrase.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a private key (PKCS#8, readable by you alone); an existing file is never overwritten.

    Example: certkit keys generate -o issuer-key.pem --public public-key.pem
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.errors import UsageError  # noqa: PLC0415 - the same
    from certkit.passport import keys  # noqa: PLC0415 - the same

    if public is not None and public.exists():
        raise UsageError("file.exists", "exists", where=str(public), hint="choose another name or remove it")
    passphrase = ask_new() if ask and passphrase_file is None else from_file(passphrase_file)
    key = keys.generate(kind.value)
    keys.write_private(out, key, passphrase=passphrase)
    if public is not None:
        files.write(public, keys.public_pem(key.public_key()).encode(), overwrite=False)
    if json:
        output.document(_document(key.public_key(), encrypted=passphrase is not None))
    elif not quiet:
        protected = "encrypted" if passphrase is not None else "not encrypted"
        output.say(f"{out}: {keys.algorithm_name(key.public_key())} private key, {protected}")
        output.say(f"id {keys.key_id(key.public_key())}")
        output.note(f"hint: give out 'certkit keys public {out}' and the id, by two ways; keep {out} to you")


@app.command("public")
def public(key: KeyFile, passphrase_file: PassphraseFile = None, json: Json = False) -> None:
    """Print the public key in PEM.

    Example: certkit keys public issuer-key.pem > public-key.pem
    """
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    found = _either(key, passphrase_file)
    if json:
        output.document(_document(found))
    else:
        output.raw(keys.public_pem(found))


@app.command("id")
def id_(key: KeyFile, passphrase_file: PassphraseFile = None, json: Json = False) -> None:
    """Print a key's id: the SHA-256 of its public key (SPKI, DER), by which two people can compare.

    Example: certkit keys id public-key.pem
    """
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    found = _either(key, passphrase_file)
    if json:
        output.document(_document(found))
    else:
        output.say(keys.key_id(found))


def _either(path: Path, passphrase_file: Path | None) -> PublicKey:
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    if keys.is_private(path):
        return signing_key(path, passphrase_file).public_key()
    return keys.load_public(path)


def _document(key: PublicKey, **more: bool) -> dict[str, object]:
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    return {
        "schema": "urn:certkit:key:v1",
        "id": keys.key_id(key),
        "algorithm": keys.algorithm_name(key),
        "pem": keys.public_pem(key),
        **more,
    }
