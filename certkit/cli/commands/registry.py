"""``certkit registry``: the log of passports as its keeper makes, fills, ends, checks and publishes it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.api.passport_files import taken
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import answer, brief, coloured, emit, emit_file, fold, progress
from certkit.ground import files
from certkit.ground.canonical import is_digest
from certkit.ground.errors import CertkitError, InputError, UsageError
from certkit.ground.wording import many
from certkit.passport import keys
from certkit.passport.checks import shown
from certkit.passport.logs import PROOF_SUFFIX
from certkit.registry import writer
from certkit.registry.audit import inspect
from certkit.registry.entry import Reason
from certkit.registry.publish import export as publish
from certkit.registry.reader import checkpoint_in
from certkit.registry.status import write as write_status
from certkit.registry.writer import Registry, admit, load_log_key
from certkit.tlog.checkpoint import Quorum
from certkit.tlog.note import MAX_NOTE

if TYPE_CHECKING:
    from certkit.cli.emit import Line
    from certkit.registry.audit import RegistryAudit

_PUBLISH: Final = "publish this verifier key; auditors add it: certkit trust add --log VKEY"


def log_key_file(named: Path | None, folder: Path) -> Path:
    """Return the file of a log's private key: the named one, or the default one of the registry in `folder`.

    Raises `InputError` ``file.missing``.
    """
    if named is not None:
        return named
    with Registry.open(folder) as opened:
        path = context.log_key_path(opened.origin)
    if not path.exists():
        hint = "name the log's private key: --log-key FILE"
        raise InputError("file.missing", "the log's private key is not here", where=str(path), hint=hint)
    return path


def log_key_of(named: Path | None, folder: Path) -> Ed25519PrivateKey:
    """Return a log's private key; see `log_key_file`."""
    return load_log_key(log_key_file(named, folder))


def refuse_inside(option: str, path: Path, folder: Path) -> None:
    """Refuse a file for the log's private key in the registry's folder, which is copied and handed out.

    Raises:
        UsageError: ``usage.option``, naming the option and the path.
    """
    if path.resolve().is_relative_to(folder.resolve()):
        raise UsageError("usage.option", f"{option}: the key would lie in the registry", where=str(path))


def logged_id(folder: Path, ident: str) -> str:
    """Return the whole id of a logged passport; an id that is whole already is returned as it is."""
    if is_digest(ident):
        return ident
    with Registry.open(folder) as opened:
        return opened.logged(opened.find(ident)).entry.passport_id or ident


def _head(schema: str, log: Registry, **more: Any) -> dict[str, Any]:
    """Return a document with the head of a registry, its signed note and verifier key."""
    head, note = log.head(), log.checkpoint().decode()
    root, vkey = head.root.hex(), str(log.vkey)
    return answer(schema, origin=head.origin, size=head.size, root=root, vkey=vkey, note=note, **more)


def init(
    folder: opt.RegistryFolder,
    name: Annotated[str, opt.NAME(help="Its name: lower-case letters, digits, dots, hyphens.")],
    log_key: Annotated[
        Path | None,
        opt.LOG_KEY(
            help="The log's Ed25519 key: this file, or a new key written there. Default: a new one in your "
            "configuration folder."
        ),
    ] = None,
) -> None:
    """Make an empty registry and print the log's verifier key, which auditors need.

    The private key that signs the log never lies in the registry's folder.

    Example: certkit registry init my-registry --name example-lab
    """
    at = context.now()
    is_new = log_key is None or not log_key.exists()
    key = Ed25519PrivateKey.generate() if is_new or log_key is None else load_log_key(log_key)
    path = log_key or context.log_key_path(writer.origin_of(name, key, at))
    refuse_inside("--log-key", path, folder)
    if is_new:
        files.make_folder(path.parent)
        keys.write_private(path, key, passphrase=None)
    try:
        vkey = Registry.init(folder, name, key, at=at)
    except CertkitError:
        if is_new:
            path.unlink()
        raise
    with Registry.open(folder) as opened:
        document = _head("registry-init", opened, log_key=path)
    emit(document, [str(vkey)], hints=[f"the log's private key: {path}", _PUBLISH])


def append(
    folder: opt.RegistryFolder,
    passport: opt.PassportFile,
    key: opt.SigningKey,
    trust: opt.TrustFile = None,
    log_key: opt.LogKey = None,
    passphrase_file: opt.PassphraseFile = None,
    at: opt.EntryTime = None,
) -> None:
    """Log a passport, if a trusted issuer signed it and it is valid; write the proof beside it.

    The same passport again gives its first index. A refused passport leaves nothing behind.

    Example: certkit registry append registry passport.json --key issuer-key.pem
    """
    appended = admit(
        folder,
        taken(passport).passport,
        trust=context.load_policy(trust),
        submitter=context.signing_key(key, passphrase_file),
        log_key=log_key_of(log_key, folder),
        heads=context.heads_path(),
        at=context.dated(at),
    )
    proof = passport.with_name(passport.name + PROOF_SUFFIX)
    files.write(proof, appended.proof.to_bytes())
    done = "logged" if appended.new else "was logged already"
    document = answer("registry-append", index=appended.index, new=appended.new, proof=proof)
    emit(document, [f"{done} as entry {appended.index}; proof in {proof}"])


def prove(
    folder: opt.RegistryFolder,
    ident: opt.EntryId,
    out: Annotated[Path | None, opt.OUT()] = None,
    force: opt.Force = False,
) -> None:
    """Make a fresh proof that an entry is in the log, for offline use beside the passport.

    The registry's own key must have signed the checkpoint that it leads to.

    Example: certkit registry prove registry 0 -o passport.json.tlog-proof
    """
    context.check_outputs(out, force=force)
    with Registry.open(folder) as opened:
        opened.signed_head(context.heads_path())
        proof = opened.prove(opened.find(ident))
    text = proof.to_bytes()
    document = answer("registry-proof", index=proof.index, proof=text.decode())
    emit_file(document, text, out, force=force)


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
    """Log that a passport is revoked, signed by its issuer; nothing is taken out.

    The key must be one that the trust policy lists under the name of the passport's issuer. Logging it
    again returns the first entry. With evidence-false, every other passport of the lineage that the issuer
    gave on this evidence is revoked too. With --replaced-by it is superseded by the latest passport of the
    lineage; a passport that was issued with --supersedes needs no entry of its own.

    Example: certkit registry revoke registry 0 --reason key-compromise -k key.pem
    """
    if (reason is None) == (replaced_by is None):
        raise UsageError("usage.option", "expected either --reason or --replaced-by")
    hand = writer.Hand(
        trust=context.load_policy(trust),
        submitter=context.signing_key(key, passphrase_file),
        log_key=log_key_of(log_key, folder),
        at=context.dated(at),
    )
    with Registry.open(folder, heads=context.heads_path()) as opened:
        if reason is not None:
            revoked = writer.revoke(opened, ident, reason=reason, detail=None, hand=hand)
        else:
            revoked = writer.supersede(opened, ident, by=str(replaced_by), hand=hand)
    entry = revoked.entry
    ended = f"{'revoked' if reason else 'superseded'}{'' if entry.new else ' already'}"
    also = [
        f"{brief(passport_id)} revoked too, by entry {index}: it is on that evidence"
        for passport_id, index in revoked.also.items()
    ]
    screen = [f"{brief(revoked.passport_id)} {ended}, by entry {entry.index}", *also]
    emit(answer("registry-revoke", **structs.asdict(revoked)), screen)


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
    continues earlier checkpoints. A reader who remembers a later checkpoint refuses it.

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
    """Take in cosignatures of witnesses under the log's checkpoint as it is now.

    From then on new proofs, exports and status files carry them. An entry that is logged later makes a new
    checkpoint, which has to be cosigned again. A cosignature is refused if it is false, about another log or
    checkpoint, or if no witness of the policy made it.

    Example: certkit registry cosign registry cosigned.checkpoint
    """
    policy = context.load_policy(trust).witnesses
    witnesses = Quorum.of(policy.k, policy.keys).keys
    lines = [files.read(path, limit=MAX_NOTE) for path in returned]
    with Registry.open(folder, heads=context.heads_path()) as opened:
        gathered = writer.gather(opened, lines, witnesses=witnesses, at=at or context.now())
        times = {  # the calendar ends not far beyond 2**37 seconds
            signed.key: datetime.fromtimestamp(min(signed.time or 0, 2**37), UTC)
            for signed in gathered.cosigned
        }
        cosigned = [{"vkey": str(key), "time": time} for key, time in times.items()]
        document = _head("registry-cosign", opened, cosigned=cosigned, required=policy.k)
    size, count = many(gathered.checkpoint.size, "entry"), many(len(cosigned), "cosignature")
    emit(
        document,
        [
            *(f"cosigned by {key.name} at {shown(time)}" for key, time in times.items()),
            f"checkpoint over {size}: {count}, and the policy asks for {policy.k:,}",
        ],
    )


def audit(
    folder: opt.RegistryFolder,
    trust: opt.TrustFile = None,
    since: opt.Since = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First make tree and index again from the entries, if these give the signed root.",
        ),
    ] = False,
) -> None:
    """Make everything in a registry again from its bytes, and say what does not hold.

    DIR is a registry, or the tree that 'certkit registry export' wrote. It must continue what was last
    signed for it here, and what --since remembers.

    The log's verifier key and the issuers' keys come from the trust policy, never from the registry. Exit
    code 0: sound; 7: something does not hold; 8: signed by somebody whom the policy does not know.

    Example: certkit registry audit registry --trust trust.json
    """
    policy, remembered = context.load_policy(trust), context.heads_path()
    repaired = []
    if repair:
        with Registry.open(folder, heads=remembered) as opened:
            repaired = opened.repair()
    report = inspect(
        folder,
        trust=policy,
        heads=remembered,
        since=checkpoint_in(since, policy) if since else None,
        at=context.now(),
        progress=progress(),
    )
    report = structs.replace(report, notes=(*report.notes, *(f"repaired: {text}" for text in repaired)))
    rotated = any(finding.code == "registry.log-keys" for finding in report.findings)
    advice = ["where the log's keeper confirms its new key: certkit trust add --log VKEY"] if rotated else []
    emit(report, _show_audit(report), hints=advice)


def _show_audit(report: RegistryAudit) -> Iterator[Line]:
    """Print whether a registry is sound, every finding, and what the files do not show."""
    size, log = many(report.size, "entry"), report.origin
    if report.total:
        unsound = f"UNSOUND: {many(report.total, 'finding')} in {size} of {log}"
        yield from coloured(fold(unsound), "bold red")
    else:
        sound = f"SOUND: {size}, {many(report.passports, 'passport')}, signed as {log}"
        yield from coloured(fold(sound), "bold green")
    for finding in report.findings:
        yield from fold(f"{finding.where}: {finding.message} [{finding.code}]", first="  ", rest="    ")
    if report.total > len(report.findings):
        yield f"  and {report.total - len(report.findings):,} more"
    for note in report.notes:
        yield from fold(f"note: {note}")
    yield ""
    yield "Not shown by these files:"
    for text in report.not_shown:
        yield from fold(text, first="  ", rest="    ")


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
        # A registry that was put back to an older state is not published.
        opened.signed_head(context.heads_path())
    done = publish(folder, out, passports=passports, progress=progress())
    text = f"{out}: {many(done.size, 'entry')} of {done.origin}; {many(done.written, 'file')} written"
    emit(answer("registry-export", **done._asdict()), fold(text))


def rotate_key(
    folder: opt.RegistryFolder,
    new_log_key: Annotated[
        Path | None,
        typer.Option(
            "--new-log-key",
            metavar="FILE",
            help="The key that takes over. Default: make one, which replaces the file of the old one.",
        ),
    ] = None,
    log_key: opt.LogKey = None,
    at: opt.EntryTime = None,
) -> None:
    """Hand the log over to another key, and print the new verifier key.

    The old key signs an entry that names the new key. Both sign the first checkpoint that covers it, the
    new key alone all later ones. Auditors add the new verifier key to the policy and keep the old one for
    older proofs. If it is interrupted, run it again.

    Example: certkit registry rotate-key registry
    """
    moment = context.dated(at)
    path = log_key_file(log_key, folder)
    if new_log_key is None:
        refuse_inside("--log-key", path, folder)  # the new key takes the place of the old one
    else:
        refuse_inside("--new-log-key", new_log_key, folder)
    with Registry.open(folder, heads=context.heads_path()) as opened:
        vkey = opened.hand_over(path, new=load_log_key(new_log_key) if new_log_key else None, at=moment)
        document = _head("registry-rotate-key", opened)
    hints = [f"append and revoke take it with --log-key {new_log_key}"] if new_log_key else []
    emit(document, [str(vkey)], hints=[*hints, _PUBLISH])
