"""``certkit registry revoke``, ``note``, ``status`` and ``cosign``: what is said about what is logged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from msgspec import Meta

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.registry import Head, Vkey, Written, log_key_of
from certkit.cli.emit import brief, emit, emit_file, entries, fold, progress, warn
from certkit.ground import files
from certkit.ground.document import Count, Digest, Document, Part, Text, fill
from certkit.ground.errors import UsageError
from certkit.ground.wording import many
from certkit.registry import writing
from certkit.registry.entry import WORDS, Reason
from certkit.registry.keeping import gather
from certkit.registry.registry import Registry
from certkit.registry.status import write as write_status
from certkit.tlog.checkpoint import Quorum
from certkit.tlog.note import MAX_NOTE

if TYPE_CHECKING:
    from certkit.tlog.note import Signed

Moment = Annotated[Text, Meta(extra_json_schema={"format": "date-time"})]


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
    required: Annotated[Count, Meta(description="how many the policy asks for")]


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
    trust: opt.TrustFile = None,
    log_key: opt.LogKey = None,
    passphrase_file: opt.PassphraseFile = None,
    at: opt.EntryTime = None,
) -> None:
    """Log that a passport no longer stands, signed by its issuer; nothing is taken out.

    The key must be one that the trust policy lists under the name of the passport's issuer. Logging it
    again returns the first entry. With evidence-false, every other passport of the lineage that the issuer
    gave on this evidence is revoked too. With --replaced-by it is superseded by the latest passport of the
    lineage; a passport that was issued with --supersedes needs no entry of its own.

    Example: certkit registry revoke registry 0 --reason key-compromise -k key.pem
    """
    if (reason is None) == (replaced_by is None):
        raise UsageError("usage.option", "expected either --reason or --replaced-by")
    hand = writing.Hand(
        trust=context.load_policy(trust),
        submitter=context.signing_key(key, passphrase_file),
        log_key=log_key_of(log_key, folder),
        at=context.dated(at),
    )
    with Registry.open(folder, heads=context.heads_path(), progress=progress(), warn=warn) as opened:
        if reason is not None:
            passport, entry, also = writing.revoke(opened, ident, reason=reason, detail=None, hand=hand)
        else:
            passport, entry = writing.supersede(opened, ident, by=str(replaced_by), hand=hand)
            also = ()
    ended = "revoked" if reason else "superseded"
    emit(
        RegistryRevoke(
            index=entry.index,
            new=entry.new,
            passport_id=passport,
            also=[AlsoRevoked(passport_id=revoked, index=index) for revoked, index in also],
        ),
        [
            f"{brief(passport)} {ended}{'' if entry.new else ' already'}, by entry {entry.index}",
            *(f"{brief(name)} revoked too, by entry {index}: it is on that evidence" for name, index in also),
        ],
    )


def note(
    folder: opt.RegistryFolder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The words.")],
    key: opt.SigningKey,
    trust: opt.TrustFile = None,
    log_key: opt.LogKey = None,
    passphrase_file: opt.PassphraseFile = None,
    at: opt.EntryTime = None,
) -> None:
    """Log words for the record, such as that nothing happened, which keeps a status young.

    Example: certkit registry note registry "nothing to report" -k issuer-key.pem
    """
    if not text.strip() or len(text) > WORDS:
        raise UsageError("usage.option", f"TEXT has not 1 to {WORDS:,} characters")
    hand = writing.Hand(
        trust=context.load_policy(trust),
        submitter=context.signing_key(key, passphrase_file),
        log_key=log_key_of(log_key, folder),
        at=context.dated(at),
    )
    with Registry.open(folder, heads=context.heads_path(), progress=progress(), warn=warn) as opened:
        entry = writing.note(opened, None, text, hand=hand)
    emit(RegistryNote(index=entry.index, new=entry.new), [f"noted, by entry {entry.index}"])


def status(
    folder: opt.RegistryFolder,
    ident: opt.EntryId,
    out: Annotated[Path | None, opt.OUT()] = None,
    force: opt.Force = False,
    log_key: opt.LogKey = None,
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
    data = write_status(folder, index, key=key, heads=context.heads_path(), at=context.dated(at))
    emit_file(data, data, out, force=force)


def cosign(
    folder: opt.RegistryFolder,
    returned: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="What witnesses returned: the checkpoint with their lines, or those alone.",
        ),
    ],
    trust: opt.TrustFile = None,
    at: Annotated[datetime | None, opt.AT(help="Latest time of a cosignature. Default: now.")] = None,
) -> None:
    """Take in cosignatures of witnesses under the log's checkpoint as it stands.

    From then on new proofs, exports and status files carry them. An entry that is logged later makes a new
    checkpoint, which has to be cosigned anew. A cosignature is refused if it is false, about another log or
    checkpoint, or if no witness of the policy made it.

    Example: certkit registry cosign registry cosigned.checkpoint
    """
    policy = context.load_policy(trust).witnesses
    witnesses = Quorum.of(policy.k, policy.keys).keys
    lines = [files.read(path, limit=MAX_NOTE) for path in returned]
    with Registry.open(folder, heads=context.heads_path()) as opened:
        gathered = gather(opened, lines, witnesses=witnesses, at=at or context.now())
    head = gathered.checkpoint
    cosigned = [_cosigner(signed) for signed in gathered.cosigned]
    document = fill(RegistryCosign, head, root=head.root.hex(), cosigned=cosigned, required=policy.k)
    emit(document, _show_cosigned(document))


def _show_cosigned(told: RegistryCosign) -> Iterator[str]:
    """Print who cosigned the checkpoint."""
    for cosigner in told.cosigned:
        yield from fold(f"cosigned by {cosigner.vkey.split('+')[0]} at {cosigner.time}", rest="  ")
    cosigned = many(len(told.cosigned), "cosignature")
    yield f"checkpoint over {entries(told.size)}: {cosigned}, and the policy asks for {told.required:,}"


def _cosigner(signed: Signed) -> Cosigner:
    time = datetime.fromtimestamp(min(signed.time or 0, 2**37), UTC)  # the calendar ends not far beyond
    return Cosigner(vkey=str(signed.key), time=time.isoformat().replace("+00:00", "Z"))
