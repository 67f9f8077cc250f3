"""``certkit registry revoke``, ``note``, ``status`` and ``cosign``: what is said about what is logged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, get_args

import typer
from msgspec import Meta

from certkit import files
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.registry import Head, Vkey, Written, log_key_of
from certkit.cli.emit import brief, emit, entries, fold, progress, warn
from certkit.document import Count, Digest, Document, Part, Text, fill
from certkit.errors import UsageError
from certkit.registry import writing
from certkit.registry.entry import WORDS, Reason
from certkit.registry.keeping import gather
from certkit.registry.reader import reading
from certkit.registry.registry import Registry
from certkit.registry.status import write as write_status
from certkit.tlog.checkpoint import Quorum
from certkit.tlog.note import MAX_NOTE
from certkit.wording import many

if TYPE_CHECKING:
    from certkit.tlog.checkpoint import SignedCheckpoint
    from certkit.tlog.note import Signed

Moment = Annotated[Text, Meta(extra_json_schema={"format": "date-time"})]
_LATEST: Final = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


class AlsoRevoked(Part, frozen=True, kw_only=True):
    """A passport on the same evidence, with the entry that revokes it."""

    passport_id: Digest
    index: Count


class RegistryRevoke(Written, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-revoke:v1"):
    """A logged revocation."""

    passport_id: Digest
    also: Sequence[AlsoRevoked]


class RegistryNote(Written, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-note:v1"):
    """Logged words."""


class Cosigner(Part, frozen=True, kw_only=True):
    """A witness, and the time that it states."""

    vkey: Vkey
    time: Moment


class RegistryCosign(Head, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-cosign:v1"):
    """The witnesses of a checkpoint."""

    cosigned: Sequence[Cosigner]
    required: Annotated[Count | None, Meta(description="null where the policy did not say who is known")]


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
        RegistryRevoke(
            index=entry.index,
            new=entry.new,
            passport_id=passport,
            also=[AlsoRevoked(passport_id=revoked, index=index) for revoked, index in also],
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
        RegistryNote(index=entry.index, new=entry.new),
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
    context.check_outputs(out, force=force)
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
    with reading(folder, heads=context.heads_path()) as log:
        return log.history(lineage).lineage


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
            RegistryCosign,
            gathered.checkpoint,
            root=gathered.checkpoint.root.hex(),
            cosigned=[_cosigner(signed) for signed in gathered.cosigned],
            required=required,
        ),
        _show_gathered(gathered, required),
    )


def _show_gathered(gathered: SignedCheckpoint, required: int | None) -> Iterator[str]:
    """Print who cosigned the checkpoint."""
    for signed in gathered.cosigned:
        yield from fold(f"cosigned by {signed.key.name} at {_cosigner(signed).time}", rest="  ")
    asked = "" if required is None else f", and the policy asks for {required:,}"
    cosigned = many(len(gathered.cosigned), "cosignature")
    yield f"checkpoint over {entries(gathered.checkpoint.size)}: {cosigned}{asked}"


def _cosigner(signed: Signed) -> Cosigner:
    # A time that was put into the file past this program may be beyond the calendar.
    time = datetime.fromtimestamp(min(signed.time or 0, _LATEST), UTC)
    return Cosigner(vkey=str(signed.key), time=time.isoformat().replace("+00:00", "Z"))
