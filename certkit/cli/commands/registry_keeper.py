"""Those of ``certkit registry`` that only the keeper of a log needs: publish it, change its key."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit import files
from certkit.cli import context
from certkit.cli import documents_registry as documents
from certkit.cli.commands.registry import log_key_of
from certkit.cli.emit import counted, emit, entries, fold, progress, warn
from certkit.cli.options import (
    AT,
    OUT,
    WITNESS,
    EntryTime,
    Force,
    HeadsFile,
    LogKey,
    RegistryFolder,
    Signers,
    TrustFile,
    about,
    check_outputs,
)
from certkit.cli.views import registry as views
from certkit.document import fill
from certkit.errors import UsageError
from certkit.registry.export import export as write
from certkit.registry.keeping import gather, hand_over
from certkit.registry.registry import Registry
from certkit.tlog.note import MAX_NOTE
from certkit.tlog.witness import Quorum

if TYPE_CHECKING:
    from certkit.tlog.note import Signed

_LATEST: Final = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


def checkpoint(
    folder: RegistryFolder,
    out: Annotated[Path | None, OUT] = None,
    force: Force = False,
    vkey: Annotated[
        bool, typer.Option("--vkey", help="Print the verifier key that it is signed with instead.")
    ] = False,
) -> None:
    """Print the log's signed checkpoint: its size and root, to be remembered elsewhere, or cosigned.

    The cosignatures that 'certkit registry cosign' took in stand below.

    Example: certkit registry checkpoint registry -o remembered.checkpoint
    """
    check_outputs(out, force=force)
    with Registry.open(folder) as opened:
        head, note, key = opened.signed_head(context.own_heads()), opened.checkpoint(), opened.vkey
    if out:
        files.write(out, note, overwrite=force)
    emit(
        fill(documents.RegistryCheckpoint, head, root=head.root.hex(), vkey=str(key), note=note.decode()),
        f"{key}\n".encode()
        if vkey
        else fold(f"checkpoint over {entries(head.size)} written to {out}")
        if out
        else note,
    )


def cosign(
    folder: RegistryFolder,
    returned: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="What witnesses returned: the checkpoint with their lines, or those alone.",
        ),
    ],
    witness: Annotated[
        list[str] | None,
        about(WITNESS, "A witness's verifier key, instead of the policy's; repeatable."),
    ] = None,
    trust: TrustFile = None,
    heads: HeadsFile = None,
    at: Annotated[datetime | None, about(AT, "The time that none may be later than. Default: now.")] = None,
) -> None:
    """Take in cosignatures of witnesses under the log's checkpoint as it stands.

    They stand below the checkpoint from then on, in the proofs and exports that are made and in the status
    files. An entry that is logged later makes a new checkpoint, which has to be cosigned anew. What is false,
    about another log or state, or by nobody known is refused.

    Example: certkit registry cosign registry cosigned.checkpoint --trust trust.json
    """
    asked = None if witness else context.load_policy(trust).witnesses
    quorum = Quorum.of(asked.k, asked.keys) if asked else Quorum.of(0, context.vkeys(witness, "--witness"))
    lines = [files.read(path, limit=MAX_NOTE) for path in returned]
    with Registry.open(folder, heads=context.heads_path(heads)) as opened:
        gathered = gather(opened, lines, witnesses=quorum.keys, at=at or context.now())
    required = asked.k if asked else None
    emit(
        fill(
            documents.RegistryCosign,
            gathered.head,
            root=gathered.head.root.hex(),
            added=[_witness(signed) for signed in gathered.added],
            cosigned=[_witness(signed) for signed in gathered.cosigned],
            required=required,
            ignored=gathered.ignored,
        ),
        views.show_gathered(gathered, required, _time),
    )


def _witness(signed: Signed) -> documents.Cosigner:
    return documents.Cosigner(vkey=str(signed.key), time=_time(signed))


def _time(signed: Signed) -> str:
    # What was put into the file past this program may be beyond the calendar.
    return datetime.fromtimestamp(min(signed.time or 0, _LATEST), UTC).isoformat().replace("+00:00", "Z")


def export(
    folder: RegistryFolder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder of the public tree.")],
    passports: Annotated[
        bool, typer.Option("--passports", help="Write the passports too, under blobs/; needed once.")
    ] = False,
) -> None:
    """Write the log as files for any static host (C2SP tlog-tiles), or bring such a tree up to date.

    The checkpoint is written last, so that a reader never finds one whose tiles are missing. A folder that
    holds another log, or a later state of this one, is refused.

    Example: certkit registry export registry public
    """
    with Registry.open(folder) as opened:
        # What was put back to an older state is not published.
        opened.signed_head(context.own_heads())
    done = write(folder, out, passports=passports, progress=progress())
    written = counted(done.written, "file")
    emit(
        fill(documents.RegistryExport, done),
        fold(f"{out}: {entries(done.size)} of {done.origin}; {written} written"),
    )


def rotate_key(
    folder: RegistryFolder,
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
    at: EntryTime = None,
    trust: Signers = None,
) -> None:
    """Hand the log over to another key, and print the new verifier key.

    The old key signs an entry that names the new one, and the checkpoint that first covers it; the new key
    signs that one too, and all later ones alone. Who audits adds the new verifier key to the policy and
    keeps the old one for older proofs. A private key that the registry holds is overwritten by the new one.
    If it is interrupted, run it again. The entry is not dated before any other; with a trust policy, before
    any that a key of it signed.

    Example: certkit registry rotate-key registry
    """
    if (log_key is None) != (new_log_key is None):
        raise UsageError("usage.option", "--log-key and --new-log-key go together")
    moment, policy = context.dated(at), context.load_policy(trust) if trust else None
    remembered = context.heads_path(heads)
    with Registry.open(folder, heads=remembered, progress=progress(), warn=warn) as opened:
        vkey = hand_over(
            opened,
            folder,
            new=log_key_of(new_log_key, folder) if new_log_key else None,
            old=lambda: log_key_of(log_key, folder, finishing=True),
            at=moment,
            trust=policy,
        )
        size = opened.head().size
    emit(
        documents.RegistryRotation(vkey=str(vkey), size=size),
        views.show_vkey(vkey),
    )
