"""``certkit registry``: the log of passports, its entries, proofs and audit."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import structs

from certkit import files
from certkit.canonical import is_digest
from certkit.cli import context
from certkit.cli import documents_registry as documents
from certkit.cli import options as opt
from certkit.cli.emit import emit, progress, warn
from certkit.cli.views import registry as views
from certkit.document import fill
from certkit.errors import UsageError
from certkit.registry.admission import PROOF_SUFFIX, admit, checkpoint_in, inspect
from certkit.registry.entry import timestamp
from certkit.registry.log import load_log_key, log_key_file, make_log_key
from certkit.registry.reader import reading
from certkit.registry.registry import Registry
from certkit.registry.standing import Query, ranked
from certkit.registry.state import Standing
from certkit.workflow.verifying import taken

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.registry.entry import Logged
    from certkit.registry.reader import Reader


def days(text: str) -> timedelta:
    """Read a number of days, ``30d``; raise `UsageError` ``usage.option``."""
    if (match := re.fullmatch(r"([1-9][0-9]{0,3})d", text)) is None:
        raise UsageError(
            "usage.option", f"--expiring: expected days, found {text[:80]!r}", hint="--expiring 30d"
        )
    return timedelta(days=int(match[1]))


def log_key_of(named: Path | None, folder: Path, *, finishing: bool = False) -> Ed25519PrivateKey:
    """Return a log's private key, and say where others could read it; see `log_key_file`."""
    path = log_key_file(named, folder, finishing=finishing)
    key = load_log_key(path)
    context.warn_of_readers(path)
    return key


def logged_id(folder: Path, ident: str) -> str:
    """Return the whole id of a logged passport; what is none is returned as it was given."""
    if is_digest(ident):
        return ident
    with Registry.open(folder) as opened:
        return opened.logged(opened.find(ident)).found.passport_id or ident


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
    key = log_key_of(log_key, folder) if log_key else make_log_key()
    vkey = Registry.init(folder, name, key, at=context.now(), keep_key=log_key is None)
    with Registry.open(folder) as opened:
        document = views.head(opened)
    emit(document, views.show_vkey(vkey))


def append(
    folder: opt.RegistryFolder,
    passport: opt.PassportFile,
    key: opt.SigningKey,
    trust: opt.TrustFile = None,
    log_key: opt.LogKey = None,
    heads: opt.HeadsFile = None,
    passphrase_file: opt.PassphraseFile = None,
    at: opt.EntryTime = None,
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
    folder: opt.RegistryFolder,
    ident: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="One entry: its index, a passport id, or 8 digits of one."),
    ] = None,
    agent: Annotated[
        str | None, opt.AGENT(help="Passports of this lineage, a part of its name, or a digest.")
    ] = None,
    tier: Annotated[int | None, opt.TIER(help="Passports of this tier.")] = None,
    profile: Annotated[
        str | None, opt.PROFILE(help="Passports under this profile: a name, or a digest.")
    ] = None,
    status: Annotated[Standing | None, typer.Option("--status", help="Passports that stand so.")] = None,
    expiring: Annotated[
        timedelta | None,
        typer.Option(
            "--expiring", metavar="30d", parser=days, help="Passports in force that end within so many days."
        ),
    ] = None,
    sort: Annotated[
        Literal["standing"] | None,
        typer.Option(
            "--sort", help="'standing': those in force first, by the limit of r_op; passports alone."
        ),
    ] = None,
    at: Annotated[
        datetime | None, opt.AT(help="What is valid at this time; every entry counts. Default: now.")
    ] = None,
) -> None:
    """List the entries of a registry, oldest first, one of them, or the passports that options ask for.

    DIR is a registry or an exported tree. The dates are those of the entries. All must give the checkpoint's
    root, which the registry's own key must have signed; who signed the entries is not checked. An entry whose
    passport was revoked or superseded, has expired or is not valid yet says so.

    Example: certkit registry list registry --status current
    """
    moment = at or context.now()
    query = Query(
        agent=agent,
        tier=tier,
        profile=opt.profile_digest(profile) if profile else None,
        status=status,
        expiring=timestamp(moment + expiring) if expiring else None,
    )
    asked = sort is not None or query != Query()
    if ident is not None and asked:
        raise UsageError("usage.option", "an ID names one entry, and the options search for passports")
    with reading(folder, heads=context.own_heads(), progress=progress()) as log:
        head, now = log.head.checkpoint, timestamp(moment)
        if ident is not None:
            rows = [views.listed(*log.find(ident), now)]
        else:
            rows = _rows(log, query if asked else None, now, ranking=sort is not None)
    listing = documents.RegistryList(origin=head.origin, size=head.size, entries=rows)
    emit(listing, views.show_entries(listing) if ident is None else views.show_entry(listing))


def _rows(log: Reader, query: Query | None, now: str, *, ranking: bool) -> list[documents.ListedEntry]:
    """Return all entries, or those of the passports that a query takes, by their standing where asked for."""
    entries, passports = log.listed()
    if query is None:
        return [views.listed(logged, passports.get(_passport_id(logged)), now) for logged in entries]
    taken = [issued for issued in passports.values() if query.takes(issued, now)]
    if not ranking:
        return [views.listed(entries[issued.index], issued, now) for issued in taken]
    return [
        views.listed(
            entries[issued.index], issued, now, limit=stated.limit if stated else None, label=label or None
        )
        for issued, stated, label in ranked(log, taken, now)
    ]


def _passport_id(logged: Logged) -> str:
    """Return the id of the passport that an entry logs, nothing for an entry of another type."""
    return logged.found.passport.passport_id if logged.found.passport else ""


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
    opt.check_outputs(out, force=force)
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
    heads: opt.HeadsFile = None,
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
