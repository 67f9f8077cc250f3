"""Those of ``certkit registry`` that are about one lineage: its history, what ends a passport, its status."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit import files
from certkit.cli import context
from certkit.cli import documents_registry as documents
from certkit.cli.commands.registry import log_key_of
from certkit.cli.emit import brief, counted, emit, progress, warn
from certkit.cli.options import (
    OUT,
    AsOf,
    EntryId,
    EntryTime,
    Force,
    HeadsFile,
    LogKey,
    PassphraseFile,
    RegistryFolder,
    Signers,
    SigningKey,
    TrustFile,
    check_outputs,
)
from certkit.cli.views import registry as views
from certkit.errors import Exit, UsageError
from certkit.registry import writing
from certkit.registry.entry import WORDS
from certkit.registry.reader import reading
from certkit.registry.registry import Registry
from certkit.registry.status import write as write_status

if TYPE_CHECKING:
    from datetime import datetime


class Why(StrEnum):
    """The closed list of reasons for a revocation."""

    EVIDENCE_FALSE = "evidence-false"
    OPERATION_BELOW_THRESHOLD = "operation-below-threshold"
    ISSUED_IN_ERROR = "issued-in-error"
    KEY_COMPROMISE = "key-compromise"
    COMPONENT_CHANGE = "component-change"
    AGENT_WITHDRAWN = "agent-withdrawn"


def history(
    folder: RegistryFolder,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A lineage: provider/name, or the name alone where no provider is stated.",
        ),
    ],
    trust: Signers = None,
    at: AsOf = None,
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
        told = views.Told.of(log, log.history(name, policy), trust, at or moment)
    emit(told.to_dict, views.show_history(told), code=Exit.DRIFT if told.history.drifted else Exit.OK)


def revoke(
    folder: RegistryFolder,
    ident: EntryId,
    key: SigningKey,
    reason: Annotated[
        Why | None, typer.Option("--reason", metavar="REASON", help=f"Why, one of: {', '.join(Why)}.")
    ] = None,
    replaced_by: Annotated[
        str | None,
        typer.Option(
            "--replaced-by", metavar="ID", help="The passport that takes its place, instead of a reason."
        ),
    ] = None,
    detail: Annotated[str | None, typer.Option("--detail", help="More, in words.")] = None,
    trust: TrustFile = None,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    passphrase_file: PassphraseFile = None,
    at: EntryTime = None,
) -> None:
    """Log that a passport no longer stands, signed by its issuer; nothing is taken out.

    The key must be one that the trust policy lists under the name of the passport's issuer. The same again
    gives the first entry. With evidence-false, every other passport of the lineage that the issuer gave on
    this evidence is revoked too. With --replaced-by it is superseded by the latest passport of the lineage;
    one that says by itself what it supersedes needs none of this.

    Example: certkit registry revoke registry 0 --reason key-compromise --key issuer-key.pem
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
            done = writing.revoke(opened, ident, reason=reason.value, detail=detail, hand=hand)
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
    folder: RegistryFolder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The words.")],
    key: SigningKey,
    lineage: Annotated[
        str | None,
        typer.Option("--lineage", help="What it is about, as for 'history'. Default: the log itself."),
    ] = None,
    trust: TrustFile = None,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    passphrase_file: PassphraseFile = None,
    at: EntryTime = None,
) -> None:
    """Log words for the record, such as that nothing happened, which keeps a status young.

    Example: certkit registry note registry "nothing to report in March" --key issuer-key.pem
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
    folder: RegistryFolder,
    ident: EntryId,
    out: Annotated[Path | None, OUT] = None,
    force: Force = False,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    at: EntryTime = None,
) -> None:
    """Write a passport's status as a file for offline use, with the log's signed word on it.

    'certkit verify' finds it as PASSPORT.status. It proves what became of the passport; that nothing else was
    logged, and that the log goes on from earlier checkpoints, is the word of the log's key, as of the time in
    it. Whoever remembers a later checkpoint refuses it.

    Example: certkit registry status registry 0 -o passport.json.status
    """
    check_outputs(out, force=force)
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
        long = counted(len(text), "character") if text.strip() else "no words"
        hint = f"1 to {WORDS:,} characters can be logged"
        raise UsageError("usage.option", f"{what} has {long}", hint=hint)


def _whole_name(folder: Path, lineage: str) -> str:
    """Return a lineage of the log by its whole name: what is misspelt could not be taken out again."""
    with reading(folder, heads=context.own_heads()) as log:
        return log.history(lineage).lineage
