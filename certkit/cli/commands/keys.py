"""``certkit keys``: make signing keys."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import answer, emit, fold
from certkit.ground import files
from certkit.passport import keys
from certkit.passport.keys import Algorithm

Type = Annotated[Algorithm, typer.Option("--type", help="Ed25519, or ECDSA P-256.")]
Ask = Annotated[bool, typer.Option("--ask-passphrase", help="Ask for a passphrase.")]


def generate(
    out: Annotated[Path, opt.OUT(help="The file of the private key.")],
    public: Annotated[Path | None, opt.PUBLIC(help="Also write the public key to this file.")] = None,
    kind: Type = "ed25519",
    passphrase_file: opt.PassphraseFile = None,
    ask: Ask = False,
) -> None:
    """Make a private key (PKCS#8, readable by you alone); an existing file is never overwritten.

    Example: certkit keys generate -o issuer-key.pem --public public-key.pem
    """
    if public is not None:
        files.check_target(public, overwrite=False)
    passphrase = context.new_passphrase(passphrase_file, ask=ask)
    key = keys.generate(kind)
    keys.write_private(out, key, passphrase=passphrase)
    if public is not None:
        files.write(public, keys.public_pem(key.public_key()).encode(), overwrite=False)
    key_id, algorithm = keys.key_id(key.public_key()), keys.algorithm_name(key.public_key())
    pem, encrypted = keys.public_pem(key.public_key()), passphrase is not None
    document = answer("key", id=key_id, algorithm=algorithm, pem=pem, encrypted=encrypted)
    about = fold(f"{out}: {algorithm} private key, {'' if encrypted else 'not '}encrypted")
    place = str(public) if public else f"what 'openssl pkey -in {quote(str(out))} -pubout' prints"
    emit(document, [*about, f"id {key_id}"], hints=[f"publish {place} and the id apart; keep {out} secret"])
