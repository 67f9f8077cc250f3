"""``certkit keys``: make, look at and replace signing keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certkit import files
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.documents import Key, Rotation
from certkit.cli.emit import emit, fold, hint, note
from certkit.errors import UsageError
from certkit.passport import keys
from certkit.passport.exports.words import utc
from certkit.passport.rotation import ended, rotated

if TYPE_CHECKING:
    from certkit.passport.keys import PrivateKey, PublicKey
    from certkit.passport.trust import Trust


class Kind(StrEnum):
    """The types of key that sign."""

    ED25519 = "ed25519"
    P256 = "p256"


Type = Annotated[Kind, typer.Option("--type", help="Ed25519, or ECDSA P-256.")]
Ask = Annotated[bool, typer.Option("--ask-passphrase", help="Ask for a passphrase.")]


def generate(
    out: Annotated[Path, opt.OUT(help="The file of the private key.")],
    public: Annotated[Path | None, opt.PUBLIC(help="Also write the public key to this file.")] = None,
    kind: Type = Kind.ED25519,
    passphrase_file: opt.PassphraseFile = None,
    ask: Ask = False,
) -> None:
    """Make a private key (PKCS#8, readable by you alone); an existing file is never overwritten.

    Example: certkit keys generate -o issuer-key.pem --public public-key.pem
    """
    _refuse_existing(public)
    passphrase = context.new_passphrase(passphrase_file, ask=ask)
    key = keys.generate(kind.value)
    _write(key, out, public, passphrase)
    encrypted = passphrase is not None
    emit(
        Key(**_members(key.public_key()), encrypted=encrypted),
        _generated(key.public_key(), out, encrypted=encrypted),
    )


def _generated(key: PublicKey, out: Path, *, encrypted: bool) -> Iterator[str]:
    yield from _made(key, out, encrypted=encrypted)
    hint(f"give out 'certkit keys show {out} --pem' and the id, by two ways; keep {out} to you")


def rotate(
    old: Annotated[
        Path, typer.Argument(metavar="OLD", help="The old key's PEM file; the public one will do.")
    ],
    out: Annotated[Path, opt.OUT(help="The file of the new private key.")],
    public: Annotated[Path, opt.PUBLIC()],
    kind: Type = Kind.ED25519,
    passphrase_file: opt.PassphraseFile = None,
    ask: Ask = False,
    trust: Annotated[Path | None, opt.TRUST(help="The trust policy to change.", envvar=None)] = None,
    at: opt.ChangeTime = None,
) -> None:
    """Make a key that takes over from an old one, whose file is left alone.

    With --trust, that policy counts signatures by the old key up to --at, and by the new one from then.
    The passphrase is the new key's.

    Example: certkit keys rotate public-key.pem -o next-key.pem --public next-public.pem --trust trust.json
    """
    _refuse_existing(public)
    moment = at or context.now().replace(microsecond=0)
    retired = _retired(old)
    passphrase = context.new_passphrase(passphrase_file, ask=ask)
    key = keys.generate(kind.value)
    new, encrypted = key.public_key(), passphrase is not None
    policy, odd = _changed(trust, retired, new, moment) if trust else (None, [])  # first: it may refuse
    _write(key, out, public, passphrase)
    if trust is not None and policy is not None:
        files.write(trust, policy)
    emit(
        Rotation(**_members(new), encrypted=encrypted, old=keys.key_id(retired), at=moment, trust=trust),
        _rotated(retired, new, out, public, trust, moment, odd, encrypted=encrypted),
    )


def _rotated(
    retired: PublicKey,
    new: PublicKey,
    out: Path,
    public: Path,
    trust: Path | None,
    moment: datetime,
    odd: list[str],
    *,
    encrypted: bool,
) -> Iterator[str]:
    yield from _made(new, out, encrypted=encrypted)
    yield from fold(f"takes over from {keys.key_id(retired)}")
    if trust is not None:
        yield from fold(f"{trust} written: the old key counts up to {utc(moment)}, the new one from then")
    hint(f"give out {public} and the id, by two ways; sign with the old key no more")
    hint("others who trust the old key run")
    note(f"hint: certkit trust rotate OLD.pem {public} --at {utc(moment)}")
    for item in odd:
        hint(item)


def show(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="A PEM file, private or public.")],
    pem: Annotated[bool, typer.Option("--pem", help="Print the public key in PEM instead.")] = False,
    passphrase_file: opt.PassphraseFile = None,
) -> None:
    """Print a key's id: the SHA-256 of its public key (SPKI, DER), by which two people can compare.

    Example: certkit keys show issuer-key.pem --pem > public-key.pem
    """
    public = context.public_key(key, passphrase_file)
    emit(
        Key(**_members(public)),
        keys.public_pem(public).encode() if pem else [keys.key_id(public)],
    )


def _retired(path: Path) -> PublicKey:
    if keys.is_private(path) and keys.is_encrypted(path):
        raise UsageError(
            "key.passphrase",
            "encrypted, and the passphrase is that of the new key",
            where=str(path),
            hint="name the old public key; 'certkit keys show KEY --pem' prints it",
        )
    return context.public_key(path, None)


def _refuse_existing(path: Path | None) -> None:
    if path is not None:
        files.check_target(path, overwrite=False)


def _write(key: PrivateKey, out: Path, public: Path | None, passphrase: bytes | None) -> None:
    keys.write_private(out, key, passphrase=passphrase)
    if public is not None:
        files.write(public, keys.public_pem(key.public_key()).encode(), overwrite=False)


def _changed(trust: Path, retired: PublicKey, new: PublicKey, moment: datetime) -> tuple[bytes, list[str]]:
    """Return the bytes of a policy after the change of keys, which will be accepted, and what is odd."""
    policy = context.load_policy(trust)
    odd = odd_rotation(policy, retired, moment)
    if moment < context.now().replace(microsecond=0):
        odd.append(f"the new key was made just now, and is to count from {utc(moment)}")
        odd.append("passports that the old key signed since then no longer count")
    return context.checked_policy(rotated(policy, retired, new, at=moment), trust), odd


def odd_rotation(policy: Trust, retired: PublicKey, moment: datetime) -> list[str]:
    """Return in words that a key which has a successor already gets one more, where it is so."""
    end = ended(policy, retired, at=moment)
    if end is None:
        return []
    return [f"the old key counts no longer than to {utc(end)}; this adds one more key of its issuer"]


def _made(key: PublicKey, out: Path, *, encrypted: bool) -> Iterator[str]:
    yield f"{out}: {keys.algorithm_name(key)} private key, {'' if encrypted else 'not '}encrypted"
    yield f"id {keys.key_id(key)}"


def _members(key: PublicKey) -> dict[str, Any]:
    return {"id": keys.key_id(key), "algorithm": keys.algorithm_name(key), "pem": keys.public_pem(key)}
