"""``certkit keys``: make, look at and replace signing keys."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.cli import clock, output
from certkit.cli.options import Json, Quiet
from certkit.cli.passphrase import PassphraseFile, ask_new, from_file, signing_key
from certkit.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.passport.keys import PrivateKey, PublicKey
    from certkit.passport.trust import Trust

app = typer.Typer(help="Make, look at and replace signing keys.", no_args_is_help=True, rich_markup_mode=None)


class Kind(StrEnum):
    """The types of key that sign."""

    ED25519 = "ed25519"
    P256 = "p256"


KeyFile = Annotated[Path, typer.Argument(metavar="KEY", help="A PEM file, private or public.")]
Type = Annotated[Kind, typer.Option("--type", help="Ed25519, or ECDSA P-256.")]
Ask = Annotated[bool, typer.Option("--ask-passphrase", help="Ask for a passphrase.")]


@app.command("generate")
def generate(
    out: Annotated[Path, typer.Option("-o", "--out", help="The file of the private key.")],
    public: Annotated[
        Path | None, typer.Option("--public", help="Also write the public key to this file.")
    ] = None,
    kind: Type = Kind.ED25519,
    passphrase_file: PassphraseFile = None,
    ask: Ask = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a private key (PKCS#8, readable by you alone); an existing file is never overwritten.

    Example: certkit keys generate -o issuer-key.pem --public public-key.pem
    """
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    _refuse_existing(public)
    passphrase = ask_new() if ask and passphrase_file is None else from_file(passphrase_file)
    key = keys.generate(kind.value)
    _write(key, out, public, passphrase)
    if json:
        output.document(_document(key.public_key(), encrypted=passphrase is not None))
    elif not quiet:
        _say_made(key.public_key(), out, encrypted=passphrase is not None)
        output.hint(f"give out 'certkit keys public {out}' and the id, by two ways; keep {out} to you")


@app.command("rotate")
def rotate(
    old: Annotated[
        Path, typer.Argument(metavar="OLD", help="The old key's PEM file; the public one will do.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The file of the new private key.")],
    public: Annotated[Path, typer.Option("--public", help="The file of the new public key.")],
    kind: Type = Kind.ED25519,
    passphrase_file: PassphraseFile = None,
    ask: Ask = False,
    trust: Annotated[
        Path | None, typer.Option("-t", "--trust", metavar="FILE", help="The trust policy to change.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When the new key takes over. Default: now.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a key that takes over from an old one, whose file is left alone.

    With --trust, that policy counts signatures by the old key up to --at, and by the new one from then.
    The passphrase is the new key's.

    Example: certkit keys rotate public-key.pem -o next-key.pem --public next-public.pem --trust trust.json
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import keys  # noqa: PLC0415 - the same

    _refuse_existing(public)
    moment = clock.moment(at, "--at") if at else clock.now().replace(microsecond=0)
    retired = _retired(old)
    passphrase = ask_new() if ask and passphrase_file is None else from_file(passphrase_file)
    key = keys.generate(kind.value)
    new = key.public_key()
    policy, odd = _changed(trust, retired, new, moment) if trust else (None, [])  # first: it may refuse
    _write(key, out, public, passphrase)
    if trust is not None and policy is not None:
        files.write(trust, policy)
    encrypted = passphrase is not None
    if json:
        rotation = {"schema": "urn:certkit:rotation:v1", "old": keys.key_id(retired), "at": _utc(moment)}
        output.document({**_document(new, encrypted=encrypted), **rotation, "trust": trust and str(trust)})
    elif not quiet:
        _say_made(new, out, encrypted=encrypted)
        _say_rotated(keys.key_id(retired), public, trust, moment)
        for item in odd:
            output.hint(item)


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


def _retired(path: Path) -> PublicKey:
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    if keys.is_private(path) and keys.is_encrypted(path):
        raise UsageError(
            "key.passphrase",
            "encrypted, and the passphrase is that of the new key",
            where=str(path),
            hint="name the old public key; 'certkit keys public KEY' prints it",
        )
    return _either(path, None)


def _refuse_existing(path: Path | None) -> None:
    from certkit import files  # noqa: PLC0415 - keeps the help fast

    if path is not None:
        files.check_target(path, overwrite=False)


def _write(key: PrivateKey, out: Path, public: Path | None, passphrase: bytes | None) -> None:
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.passport import keys  # noqa: PLC0415 - the same

    keys.write_private(out, key, passphrase=passphrase)
    if public is not None:
        files.write(public, keys.public_pem(key.public_key()).encode(), overwrite=False)


def _changed(trust: Path, retired: PublicKey, new: PublicKey, moment: datetime) -> tuple[bytes, list[str]]:
    """Return the bytes of a policy after the change of keys, which `load` will accept, and what is odd."""
    from certkit.cli.policy import checked, load  # noqa: PLC0415 - keeps the help fast
    from certkit.passport.rotation import rotated  # noqa: PLC0415 - the same

    policy = load(trust)
    odd = odd_rotation(policy, retired, moment)
    if moment < clock.now().replace(microsecond=0):
        time = _utc(moment)
        odd.append(f"the new key was made just now, and is to count from {time}")
        odd.append("passports that the old key signed since then no longer count")
    return checked(rotated(policy, retired, new, at=moment), trust), odd


def odd_rotation(policy: Trust, retired: PublicKey, moment: datetime) -> list[str]:
    """Return in words that a key which has a successor already gets one more, where it is so."""
    from certkit.passport.rotation import ended  # noqa: PLC0415 - keeps the help fast

    end = ended(policy, retired, at=moment)
    if end is None:
        return []
    return [f"the old key counts no longer than to {_utc(end)}; this adds one more key of its issuer"]


def _say_made(key: PublicKey, out: Path, *, encrypted: bool) -> None:
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    output.say(f"{out}: {keys.algorithm_name(key)} private key, {'' if encrypted else 'not '}encrypted")
    output.say(f"id {keys.key_id(key)}")


def _say_rotated(retired: str, public: Path, trust: Path | None, moment: datetime) -> None:
    output.wrapped(f"takes over from {retired}")
    if trust is not None:
        output.wrapped(f"{trust} written: the old key counts up to {_utc(moment)}, the new one from then")
    output.hint(f"give out {public} and the id, by two ways; sign with the old key no more")
    output.hint("others who trust the old key run")
    output.note(f"hint: certkit trust rotate OLD.pem {public} --at {_utc(moment)}")


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _document(key: PublicKey, **more: bool) -> dict[str, object]:
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast

    return {
        "schema": "urn:certkit:key:v1",
        "id": keys.key_id(key),
        "algorithm": keys.algorithm_name(key),
        "pem": keys.public_pem(key),
        **more,
    }
