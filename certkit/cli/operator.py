"""Those of ``certkit registry`` that only the operator of a log needs: publish it, change its key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.cli import clock, output, places
from certkit.cli.bar import progress
from certkit.cli.options import HeadsFile, Json, Quiet, heads_path
from certkit.cli.places import RegistryArgument, RegistryOption
from certkit.errors import UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NEXT_KEY: Final = "next-log-key.pem"

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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the log's signed checkpoint: its size and root, to be remembered elsewhere.

    Example: certkit registry checkpoint registry -o remembered.checkpoint
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    with Registry.open(places.the(folder, registry)) as opened, opened.reading() as log:
        note, head = log.note(), log.verified_head(opened.vkey)
    if out:
        files.write(out, note)
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
        output.say(f"checkpoint over {head.size:,} entries written to {out}")


def export(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[DIR] OUT", help="The registry, and the folder of the public tree."),
    ],
    registry: RegistryOption = None,
    passports: Annotated[
        bool, typer.Option("--passports", help="Write the passports too, under blobs/.")
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

    folder, out = places.split(words, registry, "OUT")
    done = write(folder, Path(out), passports=passports, progress=progress(hidden=quiet or json))
    if json:
        output.document({"schema": "urn:certkit:registry-export:v1", **done._asdict()})
    elif not quiet:
        entries = "1 entry" if done.size == 1 else f"{done.size:,} entries"
        files = "1 file" if done.written == 1 else f"{done.written:,} files"
        output.say(f"{out}: {entries} of {done.origin}; {files} written")


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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hand the log over to another key, and print the new verifier key.

    The old key signs an entry that names the new one, and the checkpoint that first covers it; the new key
    signs that one too, and all later ones alone. Who audits adds the new verifier key to the policy and
    keeps the old one for older proofs. If it is interrupted, run it again.

    Example: certkit registry rotate-key registry
    """
    from certkit.registry.registry import KEY_FILE, Registry, load_log_key  # noqa: PLC0415 - help is fast

    if (log_key is None) != (new_log_key is None):
        raise UsageError("usage.option", "--log-key and --new-log-key go together")
    place = places.the(folder, registry)
    kept = place / NEXT_KEY
    new = load_log_key(new_log_key) if new_log_key else _next_key(kept)
    with Registry.open(place, heads=heads_path(heads)) as opened:
        if opened.vkey.public != new.public_key().public_bytes_raw():
            old = load_log_key(log_key or place / KEY_FILE)
            moment = clock.moment(at, "--at") if at else clock.now()
            opened.rotate(old=old, new=new, at=moment)
        vkey, size = opened.vkey, opened.head().size
    if new_log_key is None:
        from certkit import files  # noqa: PLC0415 - keeps the help fast

        files.move(kept, place / KEY_FILE)
    if json:
        output.document({"schema": "urn:certkit:registry-rotation:v1", "vkey": str(vkey), "size": size})
    elif not quiet:
        output.say(str(vkey))
        output.note("hint: publish this verifier key; who audits adds it: certkit trust add --log VKEY")


def _next_key(path: Path) -> Ed25519PrivateKey:
    """Return the key that an interrupted change left, or a new one, on the disk before it signs anything."""
    from certkit.passport import keys  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import load_log_key, make_log_key  # noqa: PLC0415 - the same

    if not path.exists():
        keys.write_private(path, make_log_key(), passphrase=None)
    return load_log_key(path)


def migrate(
    folder: RegistryArgument = None,
    registry: RegistryOption = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring a registry that an older certkit wrote into the present format, in one transaction.

    Appending does the same by itself. No entry, tile or checkpoint changes.

    Example: certkit registry migrate registry
    """
    from certkit.registry import store  # noqa: PLC0415 - keeps the help fast

    place = places.the(folder, registry)
    with store.translated(place / store.FILE):
        store.connect(place, writable=True).close()
    if json:
        output.document({"schema": "urn:certkit:registry-migration:v1", "format": int(store.FORMAT)})
    elif not quiet:
        output.say(f"{place}: format {store.FORMAT}")
