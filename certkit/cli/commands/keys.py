"""``certkit keys``: make, look at and replace signing keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import UNSET, Meta, UnsetType, structs

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import emit, fold
from certkit.ground import files
from certkit.ground.document import Digest, Document, Text
from certkit.passport import keys
from certkit.passport.keys import Algorithm

if TYPE_CHECKING:
    from certkit.passport.keys import PublicKey


class Key(Document, frozen=True, kw_only=True, tag="urn:certkit:key:v1"):
    """A public key; of one that was made, whether it is encrypted, and the key that it replaces."""

    id: Annotated[Digest, Meta(description="SHA-256 of the public key, SPKI in DER")]
    algorithm: Text
    pem: Annotated[Text, Meta(description="the public key")]
    encrypted: bool | UnsetType = UNSET
    replaces: Digest | UnsetType = UNSET


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
    made = _generated(out, public, kind, passphrase_file, ask=ask)
    advice = f"publish 'certkit keys show {out} --pem' and the id apart; keep {out} secret"
    emit(made, _shown(made, out), hints=[advice])


def rotate(
    old: Annotated[
        Path, typer.Argument(metavar="OLD", help="The old key's PEM file; the public one will do.")
    ],
    out: Annotated[Path, opt.OUT(help="The file of the new private key.")],
    public: Annotated[Path, opt.PUBLIC()],
    kind: Type = "ed25519",
    passphrase_file: opt.PassphraseFile = None,
    ask: Ask = False,
) -> None:
    """Make a key that takes over from an old one, whose file is left alone.

    Every trust policy that holds the old key, yours too, then follows with 'certkit trust rotate'. The
    passphrase is the new key's.

    Example: certkit keys rotate old.pem -o next.pem --public next-public.pem
    """
    retired = keys.key_id(context.public_key(old, None))
    made = structs.replace(_generated(out, public, kind, passphrase_file, ask=ask), replaces=retired)
    hints = (
        f"publish {public} and the id apart; sign no more with the old key",
        f"in every trust policy that holds the old key: certkit trust rotate OLD.pem {public}",
    )
    emit(made, _shown(made, out), hints=hints)


def _generated(
    out: Path, public: Path | None, kind: Algorithm, passphrase_file: Path | None, *, ask: bool
) -> Key:
    """Write a new pair of keys; return its document."""
    if public is not None:
        files.check_target(public, overwrite=False)
    passphrase = context.new_passphrase(passphrase_file, ask=ask)
    key = keys.generate(kind)
    keys.write_private(out, key, passphrase=passphrase)
    if public is not None:
        files.write(public, keys.public_pem(key.public_key()).encode(), overwrite=False)
    return _document(key.public_key(), encrypted=passphrase is not None)


def _shown(made: Key, out: Path) -> Iterator[str]:
    yield from fold(f"{out}: {made.algorithm} private key, {'' if made.encrypted else 'not '}encrypted")
    yield f"id {made.id}"
    if made.replaces is not UNSET:
        yield from fold(f"takes over from {made.replaces}")


def show(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="A PEM file, private or public.")],
    pem: Annotated[bool, typer.Option("--pem", help="Print the public key in PEM instead.")] = False,
    passphrase_file: opt.PassphraseFile = None,
) -> None:
    """Print a key's id: the SHA-256 of its public key (SPKI, DER), by which two people can compare.

    Example: certkit keys show issuer-key.pem --pem > public-key.pem
    """
    public = context.public_key(key, passphrase_file)
    emit(_document(public), keys.public_pem(public).encode() if pem else [keys.key_id(public)])


def _document(key: PublicKey, *, encrypted: bool | UnsetType = UNSET) -> Key:
    return Key(
        id=keys.key_id(key), algorithm=keys.algorithm_name(key), pem=keys.public_pem(key), encrypted=encrypted
    )
