"""``certkit registry``: the append-only log of passports, its proofs and its audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.cli import clock, output, passphrase, places
from certkit.cli.commands import registry_events, registry_history, registry_list, registry_witness
from certkit.cli.commands import registry_operator as operator
from certkit.cli.commands.registry_operator import LogKey
from certkit.cli.commands.verify import taken
from certkit.cli.lineage import OfLineage
from certkit.cli.options import Force, HeadsFile, Json, Quiet, check_outputs, heads_path
from certkit.cli.passphrase import PassphraseFile, signing_key
from certkit.cli.places import RegistryArgument, RegistryOption
from certkit.cli.policy import TrustFile, load
from certkit.cli.views import following
from certkit.cli.views.bar import progress

if TYPE_CHECKING:
    from certkit.registry import Audit

app = typer.Typer(
    help="Log passports so that nobody can deny, forget or backdate one; prove and audit it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[DIR] ID",
        help="The registry, and an index, a passport id, or at least the first 8 digits of one.",
    ),
]


@app.command("init")
def init(
    name: Annotated[str, typer.Option("--name", help="Its name: lower-case letters, digits, dots, hyphens.")],
    log_key: Annotated[
        Path | None,
        typer.Option(
            "--log-key",
            metavar="FILE",
            help="Sign with this Ed25519 key and keep none in the registry. Default: make a new one.",
        ),
    ] = None,
    folder: RegistryArgument = None,
    registry: RegistryOption = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make an empty registry and print the log's verifier key, which auditors need.

    Example: certkit registry init registry --name example-lab
    """
    from certkit.registry.log_key import make_log_key  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    place = places.the(folder, registry)
    key = passphrase.log_key(log_key, place) if log_key else make_log_key()
    vkey = Registry.init(place, name, key, at=clock.now(), keep_key=log_key is None)
    if json:
        output.document({"schema": "urn:certkit:registry-init:v1", "origin": vkey.name, "vkey": str(vkey)})
    elif not quiet:
        output.say(str(vkey))
        output.hint("publish this verifier key; auditors add it: certkit trust add --log VKEY")


@app.command("append")
def append(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[DIR] PASSPORT",
            help="The registry, and the file passport.json, or the PDF that it is attached to.",
        ),
    ],
    key: Annotated[
        Path,
        typer.Option("--key", metavar="FILE", help="The private key of who submits, usually the issuer."),
    ],
    registry: RegistryOption = None,
    trust: TrustFile = None,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    passphrase_file: PassphraseFile = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The time of the entry. Default: now.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Log a passport, if a trusted issuer signed it and it is valid; write the proof beside it.

    What it supersedes, and a drift since the passport before it, are logged in one with it. The same
    passport again gives its first index. A refused passport leaves nothing behind.

    Example: certkit registry append registry passport.json --key issuer-key.pem
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.admission import PROOF_SUFFIX, admit  # noqa: PLC0415 - the same

    folder, name = places.split(words, registry, "PASSPORT")
    passport = Path(name)
    appended = admit(
        folder,
        taken(passport).passport,
        trust=load(trust),
        submitter=signing_key(key, passphrase_file),
        log_key=passphrase.log_key(log_key, folder),
        heads=heads_path(heads),
        at=clock.dated(at),
        now=clock.now(),
        progress=progress(hidden=quiet or json),
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
                **following.document(appended),
            }
        )
    elif not quiet:
        done = "logged" if appended.new else "was logged already"
        output.say(f"{done} as entry {appended.index}; proof in {proof}")
        following.show(appended)


app.command("list")(registry_list.list_)


@app.command("show")
def show(words: Words, registry: RegistryOption = None, json: Json = False) -> None:
    """Show one entry, after proving that it is in the log as its checkpoint stands.

    The registry's own key must have signed the checkpoint; who signed the entry is not checked.

    Example: certkit registry show registry 0
    """
    from certkit.registry.registry import Registry  # noqa: PLC0415 - keeps the help fast

    folder, ident = places.split(words, registry, "ID")
    with Registry.open(folder) as opened:
        head = places.signed_head(opened)
        logged = opened.logged(opened.find(ident))
        opened.prove(logged.index)
    document = registry_list.entry(logged)
    if json:
        output.document({"schema": "urn:certkit:registry-show:v1", "size": head.size, **document})
        return
    for name, value in document.items():
        what = _PARTS.get(name, "")
        for label, text in value.items() if isinstance(value, dict) else [(None, value)]:
            shown = "none" if text is None else text
            _item(f"{what}{label}" if label else name, shown)
    _item("included in", f"{head.origin}, {output.entries(head.size)}; 'certkit registry audit' checks more")


# Of which part of an entry a member is, where it would be taken for the entry's own.
_PARTS: Final = {"passport": "file ", "prev": "prev "}


def _item(label: str, text: object) -> None:
    label = label.removesuffix("_id").removesuffix(" sha256").replace("_", " ")
    digest = str(text).startswith("sha256:")  # beside a label of eight it ends in column 80
    output.wrapped(str(text), first=f"{label:<8} " if digest else f"{label:<15}", rest=" " * 15)


@app.command("prove")
def prove(
    words: Words,
    registry: RegistryOption = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the proof to this file.")] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a fresh proof that an entry is in the log, for offline use beside the passport.

    The registry's own key must have signed the checkpoint that it leads to.

    Example: certkit registry prove registry 0 -o passport.json.tlog-proof
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    check_outputs(out, force=force)
    folder, ident = places.split(words, registry, "ID")
    with Registry.open(folder) as opened:
        places.signed_head(opened)
        proof = opened.prove(opened.find(ident))
    text = proof.to_bytes()
    if out:
        files.write(out, text, overwrite=force)
    if json:
        output.document(
            {"schema": "urn:certkit:registry-proof:v1", "index": proof.index, "proof": text.decode()}
        )
    elif not out:
        output.raw(text.decode())
    elif not quiet:
        output.say(f"proof of entry {proof.index} written to {out}")


@app.command("audit")
def audit(
    folder: RegistryArgument = None,
    registry: RegistryOption = None,
    trust: TrustFile = None,
    since: Annotated[
        Path | None,
        typer.Option("--since", metavar="FILE", help="A checkpoint, or a proof, that the log must continue."),
    ] = None,
    heads: HeadsFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make everything in a registry again from its bytes, and tell what does not hold.

    DIR is a registry, or the tree that 'certkit registry export' wrote. It must continue what was last
    signed for it here, and what --since remembers.

    The log's verifier key and the issuers' keys come from the trust policy, never from the registry. Exit
    code 0: sound; 7: something does not hold; 8: signed by somebody whom the policy does not know.

    Example: certkit registry audit registry --trust trust.json
    """
    from certkit.registry.admission import checkpoint_in, inspect  # noqa: PLC0415 - keeps the help fast

    policy = load(trust)
    report = inspect(
        places.the(folder, registry),
        trust=policy,
        heads=heads_path(heads),
        since=checkpoint_in(since, policy) if since else None,
        at=clock.now(),
        progress=progress(hidden=quiet or json),
    )
    if json:
        output.document(report.to_dict())
    elif not quiet:
        _show_audit(report)
    raise typer.Exit(report.exit_code)


def _show_audit(report: Audit) -> None:
    entries = output.entries(report.size)
    passports = "1 passport" if report.passports == 1 else f"{report.passports:,} passports"
    if report.total:
        found = "1 finding" if report.total == 1 else f"{report.total:,} findings"
        output.wrapped(f"UNSOUND: {found} in {entries} of {report.origin}")
    else:
        output.wrapped(f"SOUND: {entries}, {passports}, signed as {report.origin}")
    if report.index is not None:
        output.say(f"the tables that searches read {'agree' if report.index == 'agrees' else 'DO NOT agree'}")
    for one in report.findings:
        output.wrapped(f"{one.where}: {one.message} [{one.code}]", first="  ", rest="    ")
    if report.total > len(report.findings):
        output.say(f"  and {report.total - len(report.findings):,} more")
    for note in report.notes:
        output.wrapped(f"note: {note}")
    if any(one.code == "registry.log-keys" for one in report.findings):
        output.hint("where the log's keeper confirms its new key: certkit trust add --log VKEY")
    output.say()
    output.say("Not shown by these files:")
    for text in report.not_shown:
        output.wrapped(text, first="  ", rest="    ")


app.command("history", cls=OfLineage)(registry_history.history)
app.command("drift", cls=OfLineage)(registry_history.drift)
for command in (
    registry_events.revoke,
    registry_events.supersede,
    registry_events.note,
    registry_events.status,
    registry_events.reindex,
):
    app.command(command.__name__)(command)
app.command("checkpoint")(operator.checkpoint)
app.command("vkey")(operator.vkey)
app.command("cosign")(registry_witness.cosign)
app.command("export")(operator.export)
app.command("rotate-key")(operator.rotate_key)
app.command("migrate")(operator.migrate)
