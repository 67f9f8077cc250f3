"""``certkit registry``: the log of passports as its keeper makes, fills, proves, checks and publishes it.

What each prints with ``--json`` stands above, as structs from which the published schemas are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Meta, structs

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.emit import brief, emit, emit_file, entries, fold, progress, warn
from certkit.ground import files
from certkit.ground.canonical import is_digest
from certkit.ground.document import BESIDE, Count, Digest, Document, GivenPath, Hash, Part, Text, Tier, fill
from certkit.ground.errors import UsageError
from certkit.ground.wording import many
from certkit.registry.admission import PROOF_SUFFIX, admit, checkpoint_in, inspect
from certkit.registry.entry import DriftResult
from certkit.registry.export import export as publish
from certkit.registry.log import load_log_key, log_key_file
from certkit.registry.registry import Registry
from certkit.workflow.verifying import taken

if TYPE_CHECKING:
    from certkit.registry.admission import Admitted
    from certkit.registry.auditing import Audit

Vkey = Annotated[Text, Meta(description="C2SP verifier key")]


class Head(Part, frozen=True, kw_only=True):
    """The state of a log."""

    origin: Text
    size: Count
    root: Hash


class Written(Part, frozen=True, kw_only=True):
    """An entry that was written, or that was there."""

    index: Count
    new: Annotated[bool, Meta(description="false: it was there")]


class Following(Part, frozen=True, kw_only=True):
    """What was logged along with a passport."""

    earlier: Annotated[Digest | None, Meta(description="what it was compared with when it was logged")]
    drift: Annotated[DriftResult | None, Meta(description="what that gave")]


class Issued(Document, frozen=True, kw_only=True, tag="urn:certkit:issued:v1"):
    """What certkit issue and certkit demo print."""

    passport: GivenPath
    passport_id: Digest
    tier: Tier
    index: Annotated[Count | None, Meta(description="the entry in the registry, null where not logged")]
    following: Annotated[Following, BESIDE]
    pdf_missing: Annotated[Text | None, Meta(description="why there is no PDF")]


class RegistryAppend(Written, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-append:v1"):
    """A logged passport."""

    proof: GivenPath
    following: Annotated[Following, BESIDE]


class RegistryProof(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-proof:v1"):
    """A proof that an entry is in the log."""

    index: Count
    proof: Annotated[Text, Meta(description="C2SP tlog-proof")]


class RegistryCheckpoint(Head, Document, frozen=True, kw_only=True, tag="urn:certkit:registry-checkpoint:v1"):
    """The head of a log, new, handed over to another key, or as it stands."""

    vkey: Vkey
    note: Annotated[Text, Meta(description="signed")]


class RegistryExport(Document, frozen=True, kw_only=True, tag="urn:certkit:registry-export:v1"):
    """A public tree that was written."""

    origin: Text
    size: Count
    before: Count | None
    written: Count


def log_key_of(named: Path | None, folder: Path) -> Ed25519PrivateKey:
    """Return a log's private key; see `log_key_file`."""
    return load_log_key(log_key_file(named, folder))


def logged_id(folder: Path, ident: str) -> str:
    """Return the whole id of a logged passport; what is none is returned as it was given."""
    if is_digest(ident):
        return ident
    with Registry.open(folder) as opened:
        return opened.logged(opened.find(ident)).found.passport_id or ident


def _head(log: Registry) -> RegistryCheckpoint:
    """Return the signed head of a registry."""
    head, note = log.head(), log.checkpoint().decode()
    return fill(RegistryCheckpoint, head, root=head.root.hex(), vkey=str(log.vkey), note=note)


_GIVE_OUT: Final = "publish this verifier key; auditors add it: certkit trust add --log VKEY"


def init(
    folder: opt.RegistryFolder,
    name: Annotated[str, opt.NAME(help="Its name: lower-case letters, digits, dots, hyphens.")],
    log_key: Annotated[
        Path | None,
        opt.LOG_KEY(
            help="Sign with this Ed25519 key and keep none in the registry. Default: make a new one."
        ),
    ] = None,
) -> None:
    """Make an empty registry and print the log's verifier key, which auditors need.

    Example: certkit registry init registry --name example-lab
    """
    key = log_key_of(log_key, folder) if log_key else Ed25519PrivateKey.generate()
    vkey = Registry.init(folder, name, key, at=context.now(), keep_key=log_key is None)
    with Registry.open(folder) as opened:
        document = _head(opened)
    emit(document, [str(vkey)], hints=[_GIVE_OUT])


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

    The same write also logs any drift since the previous passport. The same passport again gives its first
    index. A refused passport leaves nothing behind.

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
        progress=progress(),
        warn=warn,
    )
    proof = passport.with_name(passport.name + PROOF_SUFFIX)
    files.write(proof, appended.proof.to_bytes())
    done = "logged" if appended.new else "was logged already"
    line = f"{done} as entry {appended.index}; proof in {proof}"
    document = fill(RegistryAppend, appended, proof=proof, following=following(appended))
    emit(document, [line, *show_following(appended)])


def following(logged: Admitted | None) -> Following:
    """Return with which earlier passport a new one was compared when it was logged, and what that gave."""
    compared = logged.compared if logged else None
    return Following(
        earlier=compared.earlier if compared else None, drift=compared.drift.result if compared else None
    )


def show_following(logged: Admitted) -> list[str]:
    """Return in words what was logged along with a passport."""
    if (compared := logged.compared) is None:
        return []
    return fold(f"against passport {brief(compared.earlier)}: {compared.drift.result}", rest="  ")


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
    emit_file(RegistryProof(index=proof.index, proof=text.decode()), text, out, force=force)


def audit(
    folder: opt.RegistryFolder,
    trust: opt.TrustFile = None,
    since: opt.Since = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First make the stored tree again from the entries, if these are what was signed.",
        ),
    ] = False,
) -> None:
    """Make everything in a registry again from its bytes, and tell what does not hold.

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


def _show_audit(report: Audit) -> Iterator[str]:
    """Print whether a registry is sound, every finding, and what the files do not show."""
    held, log = entries(report.size), report.origin
    if report.total:
        yield from fold(f"UNSOUND: {many(report.total, 'finding')} in {held} of {log}")
    else:
        yield from fold(f"SOUND: {held}, {many(report.passports, 'passport')}, signed as {log}")
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
    context.check_outputs(out, force=force)
    with Registry.open(folder) as opened:
        opened.signed_head(context.heads_path())
        document = _head(opened)
    emit_file(document, (f"{document.vkey}\n" if vkey else document.note).encode(), out, force=force)


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
        opened.signed_head(context.heads_path())
    done = publish(folder, out, passports=passports, progress=progress())
    emit(
        fill(RegistryExport, done),
        fold(f"{out}: {entries(done.size)} of {done.origin}; {many(done.written, 'file')} written"),
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
    at: opt.EntryTime = None,
    trust: opt.Signers = None,
) -> None:
    """Hand the log over to another key, and print the new verifier key.

    The old key signs an entry that names the new key. Both sign the first checkpoint that covers it, the
    new key alone all later ones. Auditors add the new verifier key to the policy and keep the old one for
    older proofs. A private key that the registry holds is overwritten by the new one. If it is interrupted,
    run it again. The entry may not be dated before any other; with a trust policy, only the entries count
    that its keys signed.

    Example: certkit registry rotate-key registry
    """
    if (log_key is None) != (new_log_key is None):
        raise UsageError("usage.option", "--log-key and --new-log-key go together")
    moment, policy = context.dated(at), context.load_policy(trust) if trust else None
    heads = context.heads_path()
    with Registry.open(folder, heads=heads, progress=progress(), warn=warn) as opened:
        vkey = opened.hand_over(
            new=log_key_of(new_log_key, folder) if new_log_key else None,
            old=lambda: log_key_of(log_key, folder),
            at=moment,
            trust=policy,
        )
        document = _head(opened)
    emit(document, [str(vkey)], hints=[_GIVE_OUT])
