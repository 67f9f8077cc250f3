"""``certkit registry``: the append-only log of passports, its proofs and its audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certkit.cli import clock, output
from certkit.cli.bar import progress
from certkit.cli.options import Json, Quiet
from certkit.cli.passphrase import PassphraseFile, signing_key
from certkit.cli.trust import TrustFile, load

if TYPE_CHECKING:
    from certkit.registry import Audit, Logged

app = typer.Typer(
    help="Log passports so that nobody can deny, forget or backdate one; prove and audit it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

MAX_PASSPORT = 64 * 1024 * 1024

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The registry's folder.")]
RegistryFolder = Annotated[
    Path,
    typer.Option("-r", "--registry", metavar="DIR", envvar="CERTKIT_REGISTRY", help="The registry's folder."),
]
Ident = Annotated[
    str,
    typer.Argument(metavar="ID", help="An index, a passport id, or at least the first 8 digits of one."),
]
LogKey = Annotated[
    Path | None,
    typer.Option("--log-key", metavar="FILE", help="The log's private key. Default: in the registry."),
]


@app.command("init")
def init(
    folder: Folder,
    name: Annotated[str, typer.Option("--name", help="Its name: lower-case letters, digits, dots, hyphens.")],
    log_key: Annotated[
        Path | None,
        typer.Option(
            "--log-key",
            metavar="FILE",
            help="Sign with this Ed25519 key and keep none in the registry. Default: make a new one.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make an empty registry and print the log's verifier key, which auditors need.

    Example: certkit registry init registry --name example-lab
    """
    from certkit.registry.registry import Registry, load_log_key, make_log_key  # noqa: PLC0415 - help is fast

    key = load_log_key(log_key) if log_key else make_log_key()
    vkey = Registry.init(folder, name, key, at=clock.now(), keep_key=log_key is None)
    if json:
        output.document({"schema": "urn:certkit:registry-init:v1", "origin": vkey.name, "vkey": str(vkey)})
    elif not quiet:
        output.say(str(vkey))
        output.note("hint: publish this verifier key; who audits adds it: certkit trust add --log VKEY")


@app.command("append")
def append(
    passport: Annotated[Path, typer.Argument(metavar="PASSPORT", help="The file passport.json.")],
    registry: RegistryFolder,
    key: Annotated[
        Path,
        typer.Option("--key", metavar="FILE", help="The private key of who submits, usually the issuer."),
    ],
    trust: TrustFile = None,
    log_key: LogKey = None,
    passphrase_file: PassphraseFile = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The time of the entry. Default: now.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Log a passport, if a trusted issuer signed it and it is valid; write the proof beside it.

    The same passport again gives its first index. A refused passport leaves nothing behind.

    Example: certkit registry append passport.json --registry registry --key issuer-key.pem
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.admission import PROOF_SUFFIX, admit  # noqa: PLC0415 - the same
    from certkit.registry.registry import KEY_FILE, load_log_key  # noqa: PLC0415 - the same

    appended = admit(
        registry,
        files.read(passport, limit=MAX_PASSPORT),
        trust=load(trust),
        submitter=signing_key(key, passphrase_file),
        log_key=load_log_key(log_key or registry / KEY_FILE),
        at=clock.moment(at, "--at") if at else clock.now(),
    )
    proof = passport.with_name(passport.name + PROOF_SUFFIX)
    files.write(proof, appended.proof.to_bytes())
    if json:
        output.document(
            {
                "schema": "urn:certkit:registry-append:v1",
                "index": appended.index,
                "new": appended.new,
                "proof": str(proof),
            }
        )
    elif not quiet:
        done = "logged" if appended.new else "was logged already"
        output.say(f"{done} as entry {appended.index}; proof in {proof}")


@app.command("list")
def list_(registry: RegistryFolder, json: Json = False) -> None:
    """List the entries of a registry, oldest first.

    Example: certkit registry list --registry registry
    """
    from certkit.registry.registry import Registry  # noqa: PLC0415 - keeps the help fast

    with Registry.open(registry) as opened:
        origin, entries = opened.origin, list(opened.entries())
    if json:
        listed = [_entry(one) for one in entries]
        output.document({"schema": "urn:certkit:registry-list:v1", "origin": origin, "entries": listed})
        return
    output.say(f"{origin}, {_entries(len(entries))}")
    for one in entries:
        entry, claims = one.found.entry, one.found.claims
        tier = f"Tier {claims.tier}" if claims and claims.tier else "no tier" if claims else ""
        passport = claims.passport_id.removeprefix("sha256:")[:12] if claims else ""
        output.say(
            f"{one.index:>6}  {entry.issued_at}  {entry.type:<9}  {tier:<7}  {passport:<12}  {entry.subject}"
        )


@app.command("show")
def show(ident: Ident, registry: RegistryFolder, json: Json = False) -> None:
    """Show one entry, after proving that it is in the log as its checkpoint stands.

    Example: certkit registry show 0 --registry registry
    """
    from certkit.registry.registry import Registry  # noqa: PLC0415 - keeps the help fast

    with Registry.open(registry) as opened:
        logged = opened.logged(opened.find(ident))
        opened.prove(logged.index)
        head = opened.head()
    document = _entry(logged)
    if json:
        output.document({"schema": "urn:certkit:registry-show:v1", "size": head.size, **document})
        return
    for name, value in document.items():
        for label, text in value.items() if isinstance(value, dict) else [(None, value)]:
            shown = "none" if text is None else text
            output.say(f"{name if label is None else label.replace('_', ' '):<12} {shown}")
    output.say(
        f"{'included in':<12} {head.origin}, {head.size:,} entries; 'certkit registry audit' checks more"
    )


@app.command("prove")
def prove(
    ident: Ident,
    registry: RegistryFolder,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the proof to this file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a fresh proof that an entry is in the log, for offline use beside the passport.

    Example: certkit registry prove 0 --registry registry -o passport.json.tlog-proof
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    with Registry.open(registry) as opened:
        proof = opened.prove(opened.find(ident))
    text = proof.to_bytes()
    if out:
        files.write(out, text)
    if json:
        output.document(
            {"schema": "urn:certkit:registry-proof:v1", "index": proof.index, "proof": text.decode()}
        )
    elif not out:
        output.raw(text.decode())
    elif not quiet:
        output.say(f"proof of entry {proof.index} written to {out}")


@app.command("audit")
def audit(folder: Folder, trust: TrustFile = None, json: Json = False, quiet: Quiet = False) -> None:
    """Make everything in a registry again from its bytes, and tell what does not hold.

    The log's verifier key and the issuers' keys come from the trust policy, never from the registry. Exit
    code 0: sound; 7: something does not hold; 8: signed by somebody whom the policy does not know.

    Example: certkit registry audit registry --trust trust.json
    """
    from certkit.registry.admission import inspect  # noqa: PLC0415 - keeps the help fast

    report = inspect(folder, trust=load(trust), progress=progress(hidden=quiet or json))
    if json:
        output.document(report.to_dict())
    elif not quiet:
        _show_audit(report)
    raise typer.Exit(report.exit_code)


def _show_audit(report: Audit) -> None:
    entries = _entries(report.size)
    passports = "1 passport" if report.passports == 1 else f"{report.passports:,} passports"
    if report.total:
        found = "1 finding" if report.total == 1 else f"{report.total:,} findings"
        output.say(f"UNSOUND: {found} in {entries} of {report.origin}")
    else:
        output.say(f"SOUND: {entries}, {passports}, signed as {report.origin}")
    for one in report.findings:
        output.wrapped(f"{one.where}: {one.message} [{one.code}]", first="  ", rest="    ")
    if report.total > len(report.findings):
        output.say(f"  and {report.total - len(report.findings):,} more")
    for note in report.notes:
        output.wrapped(f"note: {note}")
    output.say()
    output.say("Not shown by these files:")
    for text in report.not_shown:
        output.wrapped(text, first="  ", rest="    ")


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _entry(logged: Logged) -> dict[str, Any]:
    from msgspec import to_builtins  # noqa: PLC0415 - keeps the help fast

    body: dict[str, Any] = to_builtins(logged.found.entry)
    del body["v"]
    return {"index": logged.index, "leaf": logged.leaf.hex(), **body}
