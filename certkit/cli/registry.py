"""``certkit registry``: the append-only log of passports, its proofs and its audit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certkit.cli import clock, operator, output, places, registry_events, registry_history
from certkit.cli.bar import progress
from certkit.cli.operator import LogKey
from certkit.cli.options import HeadsFile, Json, Quiet, heads_path
from certkit.cli.passphrase import PassphraseFile, signing_key
from certkit.cli.places import RegistryArgument, RegistryOption
from certkit.cli.trust import TrustFile, load
from certkit.cli.verify import taken

if TYPE_CHECKING:
    from certkit.registry import Audit, Logged
    from certkit.registry.consequences import Consequences
    from certkit.registry.search import Found

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


class Ended(StrEnum):
    """How a passport may stand."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"
    EXPIRED = "expired"


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
    from certkit.registry.registry import Registry, load_log_key, make_log_key  # noqa: PLC0415 - help is fast

    key = load_log_key(log_key) if log_key else make_log_key()
    vkey = Registry.init(places.the(folder, registry), name, key, at=clock.now(), keep_key=log_key is None)
    if json:
        output.document({"schema": "urn:certkit:registry-init:v1", "origin": vkey.name, "vkey": str(vkey)})
    elif not quiet:
        output.say(str(vkey))
        output.note("hint: publish this verifier key; who audits adds it: certkit trust add --log VKEY")


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
    from certkit.registry.registry import KEY_FILE, load_log_key  # noqa: PLC0415 - the same

    folder, name = places.split(words, registry, "PASSPORT")
    passport = Path(name)
    appended = admit(
        folder,
        taken(passport).passport,
        trust=load(trust),
        submitter=signing_key(key, passphrase_file),
        log_key=load_log_key(log_key or folder / KEY_FILE),
        heads=heads_path(heads),
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
        _show_following(appended.following)


def _show_following(found: Consequences) -> None:
    earlier = (found.earlier or "").removeprefix("sha256:")[:12]
    if found.drift is not None:
        output.wrapped(f"against passport {earlier}: {found.drift.result}", rest="  ")
    elif found.reason is not None:
        output.wrapped(f"not compared with the passport before it: {found.reason}", rest="  ")


@app.command("list")
def list_(
    folder: RegistryArgument = None,
    registry: RegistryOption = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="Passports of this lineage, a part of its name, or a digest."),
    ] = None,
    tier: Annotated[int | None, typer.Option("--tier", min=0, max=9, help="Passports of this tier.")] = None,
    profile: Annotated[
        str | None, typer.Option("-p", "--profile", help="Passports under this profile: a name, or a digest.")
    ] = None,
    status: Annotated[Ended | None, typer.Option("--status", help="Passports that stand so.")] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The status at this time. Default: now.")
    ] = None,
    json: Json = False,
) -> None:
    """List the entries of a registry, oldest first, or the passports that the options ask for.

    A search reads the derived tables, which 'certkit registry reindex --check' compares with the entries.

    Example: certkit registry list registry --status current
    """
    from certkit.registry.registry import Registry  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.search import Query  # noqa: PLC0415 - the same

    place = places.the(folder, registry)
    if any(one is not None for one in (agent, tier, profile, status)):
        moment = clock.moment(at, "--at") if at else clock.now()
        query = Query(
            agent=agent, tier=tier, profile=_digest(profile), status=status.value if status else None
        )
        with Registry.open(place) as opened, opened.searching() as search:
            origin, found = opened.origin, search.passports(query, at=moment)
        _show_found(origin, found, json=json)
        return
    with Registry.open(place) as opened:
        origin, entries = opened.origin, list(opened.entries())
    if json:
        listed = [_entry(one) for one in entries]
        output.document({"schema": "urn:certkit:registry-list:v1", "origin": origin, "entries": listed})
        return
    output.wrapped(f"{origin}, {_entries(len(entries))}")
    for one in entries:
        entry, claims = one.found.entry, one.found.passport
        met = f"Tier {claims.tier}" if claims and claims.tier else "no tier" if claims else ""
        passport = (one.found.passport_id or "").removeprefix("sha256:")[:12]
        _line(one.index, entry.issued_at, entry.type, met, passport, entry.subject)


def _line(index: int, time: str, what: str, tier: str, passport: str, lineage: str) -> None:
    """Print one row of a list; a long name has a line of its own."""
    line = f"{index:>6}  {time[:10]}  {what:<10}  {tier:<7}  {passport:<12}  "
    if len(line) + len(lineage) <= output.WIDTH:
        output.say(line + lineage)
    else:
        output.say(line.rstrip())
        output.wrapped(lineage, first="        ", rest="        ")


def _digest(profile: str | None) -> str | None:
    """Return the digest of a profile that was named, or given by its digest."""
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast
    from certkit.canonical import is_digest  # noqa: PLC0415 - the same

    return profile if profile is None or is_digest(profile) else workflow.load_profile(profile).digest


def _show_found(origin: str, found: list[Found], *, json: bool) -> None:
    from msgspec import to_builtins  # noqa: PLC0415 - keeps the help fast

    if json:
        document = {"schema": "urn:certkit:registry-search:v1", "origin": origin}
        output.document({**document, "passports": [to_builtins(one) for one in found]})
        return
    output.wrapped(f"{origin}, {output.counted(len(found), 'passport')}")
    for one in found:
        tier = f"Tier {one.tier}" if one.tier else "no tier"
        name = one.passport_id.removeprefix("sha256:")[:12]
        _line(one.index, one.not_before, one.status, tier, name, one.lineage)


@app.command("show")
def show(words: Words, registry: RegistryOption = None, json: Json = False) -> None:
    """Show one entry, after proving that it is in the log as its checkpoint stands.

    Example: certkit registry show registry 0
    """
    from certkit.registry.registry import Registry  # noqa: PLC0415 - keeps the help fast

    folder, ident = places.split(words, registry, "ID")
    with Registry.open(folder) as opened:
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
    words: Words,
    registry: RegistryOption = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the proof to this file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a fresh proof that an entry is in the log, for offline use beside the passport.

    Example: certkit registry prove registry 0 -o passport.json.tlog-proof
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    folder, ident = places.split(words, registry, "ID")
    with Registry.open(folder) as opened:
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
        progress=progress(hidden=quiet or json),
    )
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
        output.wrapped(f"UNSOUND: {found} in {entries} of {report.origin}")
    else:
        output.wrapped(f"SOUND: {entries}, {passports}, signed as {report.origin}")
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


for command in (
    registry_history.history,
    registry_history.drift,
    registry_history.score,
    registry_events.revoke,
    registry_events.supersede,
    registry_events.note,
    registry_events.status,
    registry_events.reindex,
):
    app.command(command.__name__)(command)
app.command("checkpoint")(operator.checkpoint)
app.command("export")(operator.export)
app.command("rotate-key")(operator.rotate_key)
app.command("migrate")(operator.migrate)


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _entry(logged: Logged) -> dict[str, Any]:
    from msgspec import to_builtins  # noqa: PLC0415 - keeps the help fast

    body: dict[str, Any] = to_builtins(logged.found.entry)
    del body["v"]
    return {"index": logged.index, "leaf": logged.leaf.hex(), **body}
