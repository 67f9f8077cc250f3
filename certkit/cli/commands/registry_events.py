"""Those of ``certkit registry`` about one lineage, and those that only the keeper of a log needs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, get_args

import typer

from certkit import files
from certkit.cli import context
from certkit.cli import documents_registry as documents
from certkit.cli import options as opt
from certkit.cli.commands.registry import log_key_of
from certkit.cli.emit import brief, emit, entries, fold, progress, warn
from certkit.cli.views import registry as views
from certkit.document import fill
from certkit.errors import Exit, UsageError
from certkit.registry import writing
from certkit.registry.entry import WORDS, Reason
from certkit.registry.export import export as write
from certkit.registry.keeping import gather, hand_over
from certkit.registry.reader import reading
from certkit.registry.registry import Registry
from certkit.registry.status import write as write_status
from certkit.tlog.checkpoint import Quorum
from certkit.tlog.note import MAX_NOTE
from certkit.wording import many

if TYPE_CHECKING:
    from certkit.tlog.note import Signed


def history(
    folder: opt.RegistryFolder,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A lineage: provider/name, or the name alone where no provider is stated."
        ),
    ],
    trust: opt.Signers = None,
    at: opt.AsOf = None,
) -> None:
    """Tell a lineage's history: every passport, with its r_op and what became of it, and every event.

    DIR is a registry or an exported tree. All entries are read and must give the checkpoint's root, which the
    registry's own key must have signed. With a trust policy, one of its log keys must have, and only entries
    count whose signers it knows. --at is for validity; every entry counts, whenever it was logged.

    Exit code 0: nothing; 5: a drift of the latest passport is logged. That the log leaves no drift out is for
    'certkit registry audit' to tell.

    Example: certkit registry history registry gardener-1
    """
    policy, moment = context.load_policy(trust) if trust else None, context.now()
    opened = reading(folder, heads=context.own_heads(), trust=policy, at=moment, progress=progress())
    with opened as log:
        history = log.history(name, policy)
        told = views.told(log, history, at or moment, checked=policy is not None)
    emit(*told, code=Exit.DRIFT if history.drifted else Exit.OK)


def revoke(
    folder: opt.RegistryFolder,
    ident: opt.EntryId,
    key: opt.SigningKey,
    reason: Annotated[
        Reason | None,
        typer.Option("--reason", metavar="REASON", help=f"Why, one of: {', '.join(get_args(Reason))}."),
    ] = None,
    replaced_by: Annotated[
        str | None,
        typer.Option(
            "--replaced-by", metavar="ID", help="The passport that takes its place, instead of a reason."
        ),
    ] = None,
    detail: Annotated[str | None, typer.Option("--detail", help="More, in words.")] = None,
    trust: opt.TrustFile = None,
    log_key: opt.LogKey = None,
    heads: opt.HeadsFile = None,
    passphrase_file: opt.PassphraseFile = None,
    at: opt.EntryTime = None,
) -> None:
    """Log that a passport no longer stands, signed by its issuer; nothing is taken out.

    The key must be one that the trust policy lists under the name of the passport's issuer. The same again
    gives the first entry. With evidence-false, every other passport of the lineage that the issuer gave on
    this evidence is revoked too. With --replaced-by it is superseded by the latest passport of the lineage;
    one that says by itself what it supersedes needs none of this.

    Example: certkit registry revoke registry 0 --reason key-compromise -k key.pem
    """
    if (reason is None) == (replaced_by is None):
        raise UsageError("usage.option", "expected either --reason or --replaced-by")
    if detail is not None:
        if replaced_by is not None:
            raise UsageError("usage.option", "--detail goes with --reason")
        _check_words(detail, "--detail")
    hand = _hand(folder, key, passphrase_file, trust, log_key, at)
    with _writing(folder, heads) as opened:
        if replaced_by is None and reason is not None:
            done = writing.revoke(opened, ident, reason=reason, detail=detail, hand=hand)
            passport, entry, also, ended = done.passport_id, done.entry, done.also, "revoked"
        else:
            passport, entry = writing.supersede(opened, ident, by=str(replaced_by), hand=hand)
            also, ended = (), "superseded"
    lines = [f"{brief(passport)} {ended}{'' if entry.new else ' already'}, by entry {entry.index}"]
    lines += [
        f"{brief(revoked)} revoked too, by entry {index}: it is on that evidence" for revoked, index in also
    ]
    emit(
        documents.RegistryRevoke(
            index=entry.index,
            new=entry.new,
            passport_id=passport,
            also=[documents.AlsoRevoked(passport_id=revoked, index=index) for revoked, index in also],
        ),
        lines,
    )


def note(
    folder: opt.RegistryFolder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The words.")],
    key: opt.SigningKey,
    lineage: Annotated[
        str | None,
        typer.Option("--lineage", help="What it is about, as for 'history'. Default: the log itself."),
    ] = None,
    trust: opt.TrustFile = None,
    log_key: opt.LogKey = None,
    heads: opt.HeadsFile = None,
    passphrase_file: opt.PassphraseFile = None,
    at: opt.EntryTime = None,
) -> None:
    """Log words for the record, such as that nothing happened, which keeps a status young.

    Example: certkit registry note registry "nothing to report" -k issuer-key.pem
    """
    _check_words(text, "TEXT")
    hand = _hand(folder, key, passphrase_file, trust, log_key, at)
    about = _whole_name(folder, lineage) if lineage is not None else None
    with _writing(folder, heads) as opened:
        entry = writing.note(opened, about, text, hand=hand)
    emit(
        documents.RegistryNote(index=entry.index, new=entry.new),
        [f"noted{'' if entry.new else ' already'}, by entry {entry.index}"],
    )


def status(
    folder: opt.RegistryFolder,
    ident: opt.EntryId,
    out: Annotated[Path | None, opt.OUT()] = None,
    force: opt.Force = False,
    log_key: opt.LogKey = None,
    heads: opt.HeadsFile = None,
    at: Annotated[datetime | None, opt.AT(help="The time to state in the file. Default: now.")] = None,
) -> None:
    """Write a passport's status as a file for offline use, with the log's signed word on it.

    'certkit verify' finds it as PASSPORT.status. The file proves the entries it contains. The holder of the
    log's key only asserts, as of the file's time, that no other entry names this passport and that the log
    continues earlier checkpoints. Whoever remembers a later checkpoint refuses it.

    Example: certkit registry status registry 0 -o passport.json.status
    """
    opt.check_outputs(out, force=force)
    key = log_key_of(log_key, folder)
    with Registry.open(folder) as opened:
        index = opened.find(ident)
    moment = context.dated(at)
    remembered = context.heads_path(heads)
    data = write_status(folder, index, key=key, heads=remembered, at=moment)
    if out is not None:
        files.write(out, data, overwrite=force)
    emit(data, [f"status of entry {index} written to {out}"] if out else data)


def _writing(folder: Path, heads: Path | None) -> Registry:
    remembered = context.heads_path(heads)
    return Registry.open(folder, heads=remembered, progress=progress(), warn=warn)


def _hand(
    folder: Path,
    key: Path,
    passphrase_file: Path | None,
    trust: Path | None,
    log_key: Path | None,
    at: datetime | None,
) -> writing.Hand:
    return writing.Hand(
        trust=context.load_policy(trust),
        submitter=context.signing_key(key, passphrase_file),
        log_key=log_key_of(log_key, folder),
        at=context.dated(at),
    )


def _check_words(text: str, what: str) -> None:
    if not text.strip() or len(text) > WORDS:
        long = many(len(text), "character") if text.strip() else "no words"
        hint = f"1 to {WORDS:,} characters can be logged"
        raise UsageError("usage.option", f"{what} has {long}", hint=hint)


def _whole_name(folder: Path, lineage: str) -> str:
    """Return a lineage of the log by its whole name: what is misspelt could not be taken out again."""
    with reading(folder, heads=context.own_heads()) as log:
        return log.history(lineage).lineage


_LATEST: Final = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


def checkpoint(
    folder: opt.RegistryFolder,
    out: Annotated[Path | None, opt.OUT()] = None,
    force: opt.Force = False,
    vkey: Annotated[
        bool, typer.Option("--vkey", help="Print the verifier key that it is signed with instead.")
    ] = False,
) -> None:
    """Print the log's signed checkpoint: its size and root, to be remembered elsewhere, or cosigned.

    The cosignatures that 'certkit registry cosign' took in stand below.

    Example: certkit registry checkpoint registry -o remembered.checkpoint
    """
    opt.check_outputs(out, force=force)
    with Registry.open(folder) as opened:
        head, note, key = opened.signed_head(context.own_heads()), opened.checkpoint(), opened.vkey
        document = views.head(opened)
    if out:
        files.write(out, note, overwrite=force)
    emit(
        document,
        f"{key}\n".encode()
        if vkey
        else fold(f"checkpoint over {entries(head.size)} written to {out}")
        if out
        else note,
    )


def cosign(
    folder: opt.RegistryFolder,
    returned: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="What witnesses returned: the checkpoint with their lines, or those alone.",
        ),
    ],
    witness: Annotated[
        list[str] | None, opt.WITNESS(help="A witness's verifier key, instead of the policy's; repeatable.")
    ] = None,
    trust: opt.TrustFile = None,
    heads: opt.HeadsFile = None,
    at: Annotated[datetime | None, opt.AT(help="The time that none may be later than. Default: now.")] = None,
) -> None:
    """Take in cosignatures of witnesses under the log's checkpoint as it stands.

    They stand below the checkpoint from then on, in the proofs and exports that are made and in the status
    files. An entry that is logged later makes a new checkpoint, which has to be cosigned anew. What is false,
    about another log or state, or by nobody known is refused.

    Example: certkit registry cosign registry cosigned.checkpoint
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
    folder: opt.RegistryFolder,
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
    written = many(done.written, "file")
    emit(
        fill(documents.RegistryExport, done),
        fold(f"{out}: {entries(done.size)} of {done.origin}; {written} written"),
    )


def rotate_key(
    folder: opt.RegistryFolder,
    new_log_key: Annotated[
        Path | None,
        typer.Option(
            "--new-log-key",
            metavar="FILE",
            help="The key that takes over, where --log-key names the old one. Default: make one and keep "
            "it in the registry.",
        ),
    ] = None,
    log_key: opt.LogKey = None,
    heads: opt.HeadsFile = None,
    at: opt.EntryTime = None,
    trust: opt.Signers = None,
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
        document = views.head(opened)
    emit(document, views.show_vkey(vkey))
