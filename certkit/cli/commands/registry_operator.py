"""Those of ``certkit registry`` that only the operator of a log needs: publish it, change its key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.cli import clock, output, passphrase, places
from certkit.cli.lineage import Signers
from certkit.cli.options import Force, HeadsFile, Json, Quiet, check_outputs, heads_path
from certkit.cli.places import RegistryArgument, RegistryOption
from certkit.cli.policy import load
from certkit.cli.views.bar import progress
from certkit.errors import UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LogKey = Annotated[
    Path | None,
    typer.Option("--log-key", metavar="FILE", help="The log's private key. Default: in the registry."),
]


def checkpoint(
    folder: RegistryArgument = None,
    registry: RegistryOption = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Write the checkpoint to this file.")
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the log's signed checkpoint: its size and root, to be remembered elsewhere, or cosigned.

    The cosignatures that 'certkit registry cosign' took in stand below.

    Example: certkit registry checkpoint registry -o remembered.checkpoint
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    check_outputs(out, force=force)
    with Registry.open(places.the(folder, registry)) as opened:
        head, note = places.signed_head(opened), opened.checkpoint()
    if out:
        files.write(out, note, overwrite=force)
    if json:
        output.document(
            {
                "schema": "urn:certkit:registry-checkpoint:v1",
                "origin": head.origin,
                "size": head.size,
                "root": head.root.hex(),
                "note": note.decode(),
            }
        )
    elif not out:
        output.raw(note.decode())
    elif not quiet:
        output.wrapped(f"checkpoint over {output.entries(head.size)} written to {out}")


def vkey(folder: RegistryArgument = None, registry: RegistryOption = None, json: Json = False) -> None:
    """Print the log's verifier key as it is now, which 'init' and 'rotate-key' printed.

    The checkpoint must be signed with it.

    Example: certkit registry vkey registry
    """
    from certkit.registry.registry import Registry  # noqa: PLC0415 - keeps the help fast

    with Registry.open(places.the(folder, registry)) as opened, opened.reading() as log:
        key = opened.vkey
        log.verified_head(key)
    if json:
        output.document({"schema": "urn:certkit:registry-vkey:v1", "origin": key.name, "vkey": str(key)})
    else:
        output.raw(f"{key}\n")


def export(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[DIR] OUT", help="The registry, and the folder of the public tree."),
    ],
    registry: RegistryOption = None,
    passports: Annotated[
        bool, typer.Option("--passports", help="Write the passports too, under blobs/; needed once.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the log as files for any static host (C2SP tlog-tiles), or bring such a tree up to date.

    The checkpoint is written last, so that a reader never finds one whose tiles are missing. A folder that
    holds another log, or a later state of this one, is refused.

    Example: certkit registry export registry public
    """
    from certkit.registry.export import export as write  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    folder, out = places.split(words, registry, "OUT")
    with Registry.open(folder) as opened:
        places.signed_head(opened)  # what was put back to an older state is not published
    done = write(folder, Path(out), passports=passports, progress=progress(hidden=quiet or json))
    if json:
        output.document({"schema": "urn:certkit:registry-export:v1", **done._asdict()})
    elif not quiet:
        entries, files = output.entries(done.size), output.counted(done.written, "file")
        output.wrapped(f"{out}: {entries} of {done.origin}; {files} written")


def rotate_key(
    folder: RegistryArgument = None,
    registry: RegistryOption = None,
    new_log_key: Annotated[
        Path | None,
        typer.Option(
            "--new-log-key",
            metavar="FILE",
            help="The key that takes over, where --log-key names the old one. Default: make one and keep "
            "it in the registry.",
        ),
    ] = None,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The time of the entry. Default: now.")
    ] = None,
    trust: Signers = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hand the log over to another key, and print the new verifier key.

    The old key signs an entry that names the new one, and the checkpoint that first covers it; the new key
    signs that one too, and all later ones alone. Who audits adds the new verifier key to the policy and
    keeps the old one for older proofs. A private key that the registry holds is overwritten by the new one.
    If it is interrupted, run it again. The entry is not dated before any other; with a trust policy, before
    any that a key of it signed.

    Example: certkit registry rotate-key registry
    """
    from certkit.registry.log_key import KEY_FILE, NEXT_KEY  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    if (log_key is None) != (new_log_key is None):
        raise UsageError("usage.option", "--log-key and --new-log-key go together")
    place = places.the(folder, registry)
    kept = place / NEXT_KEY
    moment, policy = clock.dated(at), None if trust is None else load(trust)
    shown = progress(hidden=quiet or json)
    with Registry.open(place, heads=heads_path(heads), now=clock.now(), progress=shown) as opened:
        new = passphrase.log_key(new_log_key, place) if new_log_key else _kept(kept)
        if new is None or opened.vkey.public != new.public_key().public_bytes_raw():
            old = passphrase.log_key(log_key, place, finishing=True)
            # What is refused is refused before there is a key that nothing will use.
            opened.check_signing(old)
            opened.rotate(old=old, new=new or _made(kept), at=moment, trust=policy)
        vkey, size = opened.vkey, opened.head().size
    if new_log_key is None:
        from certkit import files  # noqa: PLC0415 - keeps the help fast

        files.move(kept, place / KEY_FILE)
    if json:
        output.document({"schema": "urn:certkit:registry-rotation:v1", "vkey": str(vkey), "size": size})
    elif not quiet:
        output.say(str(vkey))
        output.hint("publish this verifier key; auditors add it: certkit trust add --log VKEY")


def _kept(path: Path) -> Ed25519PrivateKey | None:
    """Return the key that an interrupted change left."""
    from certkit.registry.log_key import load_log_key  # noqa: PLC0415 - keeps the help fast

    return load_log_key(path) if path.exists() else None


def _made(path: Path) -> Ed25519PrivateKey:
    """Return a new key, on the disk before it signs anything."""
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.log_key import load_log_key, make_log_key  # noqa: PLC0415 - the same

    keys.write_private(path, make_log_key(), passphrase=None)
    return load_log_key(path)
