"""``certkit registry``: the log of passports, its entries, proofs and audit."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from certkit import files
from certkit.cli import context
from certkit.cli import documents_registry as documents
from certkit.cli.emit import emit, progress, warn
from certkit.cli.options import (
    AGENT,
    AT,
    LOG_KEY,
    OUT,
    PROFILE,
    TIER,
    EntryId,
    EntryTime,
    Force,
    HeadsFile,
    LogKey,
    PassphraseFile,
    PassportFile,
    RegistryFolder,
    SigningKey,
    Since,
    TrustFile,
    about,
    check_outputs,
    profile_digest,
)
from certkit.cli.views import registry as views
from certkit.document import fill
from certkit.errors import UsageError
from certkit.registry.admission import PROOF_SUFFIX, admit, checkpoint_in, inspect
from certkit.registry.entry import timestamp
from certkit.registry.log import load_log_key, log_key_file, make_log_key
from certkit.registry.reader import reading
from certkit.registry.registry import Registry
from certkit.registry.state import Query
from certkit.workflow.verifying import taken

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Ended(StrEnum):
    """How a passport may stand."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"
    EXPIRED = "expired"
    UPCOMING = "upcoming"


def log_key_of(named: Path | None, folder: Path, *, finishing: bool = False) -> Ed25519PrivateKey:
    """Return a log's private key, and say where others could read it; see `log_key_file`."""
    path = log_key_file(named, folder, finishing=finishing)
    key = load_log_key(path)
    context.warn_of_readers(path)
    return key


def init(
    folder: RegistryFolder,
    name: Annotated[str, typer.Option("--name", help="Its name: lower-case letters, digits, dots, hyphens.")],
    log_key: Annotated[
        Path | None,
        about(LOG_KEY, "Sign with this Ed25519 key and keep none in the registry. Default: make a new one."),
    ] = None,
) -> None:
    """Make an empty registry and print the log's verifier key, which auditors need.

    Example: certkit registry init registry --name example-lab
    """
    key = log_key_of(log_key, folder) if log_key else make_log_key()
    vkey = Registry.init(folder, name, key, at=context.now(), keep_key=log_key is None)
    emit(
        documents.RegistryInit(origin=vkey.name, vkey=str(vkey)),
        views.show_vkey(vkey),
    )


def append(
    folder: RegistryFolder,
    passport: PassportFile,
    key: SigningKey,
    trust: TrustFile = None,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    passphrase_file: PassphraseFile = None,
    at: EntryTime = None,
) -> None:
    """Log a passport, if a trusted issuer signed it and it is valid; write the proof beside it.

    What it supersedes, and a drift since the passport before it, are logged in one with it. The same
    passport again gives its first index. A refused passport leaves nothing behind.

    Example: certkit registry append registry passport.json --key issuer-key.pem
    """
    appended = admit(
        folder,
        taken(passport).passport,
        trust=context.load_policy(trust),
        submitter=context.signing_key(key, passphrase_file),
        log_key=log_key_of(log_key, folder),
        heads=context.heads_path(heads),
        at=context.dated(at),
        now=context.now(),
        progress=progress(),
        warn=warn,
    )
    proof = passport.with_name(passport.name + PROOF_SUFFIX)
    files.write(proof, appended.proof.to_bytes())
    emit(
        fill(documents.RegistryAppend, appended, proof=proof, following=views.following(appended)),
        views.show_appended(appended, proof),
    )


def list_(
    folder: RegistryFolder,
    ident: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="One entry: its index, a passport id, or 8 digits of one."),
    ] = None,
    agent: Annotated[
        str | None, about(AGENT, "Passports of this lineage, a part of its name, or a digest.")
    ] = None,
    tier: Annotated[int | None, about(TIER, "Passports of this tier.")] = None,
    profile: Annotated[
        str | None, about(PROFILE, "Passports under this profile: a name, or a digest.")
    ] = None,
    status: Annotated[Ended | None, typer.Option("--status", help="Passports that stand so.")] = None,
    at: Annotated[
        datetime | None, about(AT, "What is valid at this time; every entry counts. Default: now.")
    ] = None,
) -> None:
    """List the entries of a registry, oldest first, one of them, or the passports that options ask for.

    DIR is a registry or an exported tree. The dates are those of the entries. All must give the checkpoint's
    root, which the registry's own key must have signed; who signed the entries is not checked. One entry is
    proven to be in the log.

    Example: certkit registry list registry --status current
    """
    moment = at or context.now()
    query = Query(
        agent=agent,
        tier=tier,
        profile=profile_digest(profile) if profile else None,
        status=status.value if status else None,
    )
    if ident is not None:
        if query != Query():
            raise UsageError("usage.option", "an ID names one entry, and the options search for passports")
        _one(folder, ident)
    elif query != Query():
        _search(folder, query, moment)
    else:
        _all(folder, moment)


def _one(folder: Path, ident: str) -> None:
    """Show one entry."""
    with Registry.open(folder) as opened:
        head = opened.signed_head(context.own_heads())
        logged = opened.logged(opened.find(ident))
        opened.prove(logged.index)
    document = views.entry(documents.RegistryShow, logged, size=head.size)
    emit(
        document,
        views.show_entry(document.to_dict(), head),
    )


def _search(folder: Path, query: Query, at: datetime) -> None:
    """Show the passports that a search finds."""
    now = timestamp(at)
    with reading(folder, heads=context.own_heads(), progress=progress()) as log:
        origin = log.head.checkpoint.origin
        passports = [issued for issued in log.passports() if query.takes(issued, now)]
    emit(
        documents.RegistrySearch(
            origin=origin, passports=[views.searched(issued, now) for issued in passports]
        ),
        views.show_found(origin, passports, now),
    )


def _all(folder: Path, at: datetime) -> None:
    """Show every entry."""
    with reading(folder, heads=context.own_heads(), progress=progress()) as log:
        origin = log.head.checkpoint.origin
        entries, passports = log.listed()
    now = timestamp(at)
    stands = {passport_id: issued.standing(now) for passport_id, issued in passports.items()}
    emit(
        documents.RegistryList(origin=origin, entries=[views.listed(logged, stands) for logged in entries]),
        views.show_entries(origin, entries),
    )


def prove(
    folder: RegistryFolder,
    ident: EntryId,
    out: Annotated[Path | None, OUT] = None,
    force: Force = False,
) -> None:
    """Make a fresh proof that an entry is in the log, for offline use beside the passport.

    The registry's own key must have signed the checkpoint that it leads to.

    Example: certkit registry prove registry 0 -o passport.json.tlog-proof
    """
    check_outputs(out, force=force)
    with Registry.open(folder) as opened:
        opened.signed_head(context.own_heads())
        proof = opened.prove(opened.find(ident))
    text = proof.to_bytes()
    if out:
        files.write(out, text, overwrite=force)
    emit(
        documents.RegistryProof(index=proof.index, proof=text.decode()),
        [f"proof of entry {proof.index} written to {out}"] if out else text,
    )


def audit(
    folder: RegistryFolder,
    trust: TrustFile = None,
    since: Since = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First make the stored tree again from the entries, if these are what was signed.",
        ),
    ] = False,
    heads: HeadsFile = None,
) -> None:
    """Make everything in a registry again from its bytes, and tell what does not hold.

    DIR is a registry, or the tree that 'certkit registry export' wrote. It must continue what was last
    signed for it here, and what --since remembers.

    The log's verifier key and the issuers' keys come from the trust policy, never from the registry. Exit
    code 0: sound; 7: something does not hold; 8: signed by somebody whom the policy does not know.

    Example: certkit registry audit registry --trust trust.json
    """
    policy, remembered = context.load_policy(trust), context.heads_path(heads)
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
    emit(report.to_dict, views.show_audit(report), code=report.exit_code)
