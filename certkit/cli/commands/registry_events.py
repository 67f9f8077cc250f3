"""Those of ``certkit registry`` that end a passport, tell its status, and keep the derived tables right."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit.cli import clock, output, passphrase, places
from certkit.cli.commands.registry_operator import LogKey
from certkit.cli.options import Force, HeadsFile, Json, Quiet, check_outputs, heads_path
from certkit.cli.passphrase import PassphraseFile, signing_key
from certkit.cli.places import RegistryOption
from certkit.cli.policy import TrustFile, load
from certkit.cli.views.bar import progress
from certkit.errors import UsageError

if TYPE_CHECKING:
    from certkit.registry.ending import Hand
    from certkit.registry.registry import Appended

Words = Annotated[
    list[str],
    typer.Argument(metavar="[DIR] ID", help="The registry, and a passport: an entry's index, or its id."),
]
Key = Annotated[Path, typer.Option("--key", metavar="FILE", help="The private key of the issuer.")]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="The time of the entry. Default: now.")]


class Why(StrEnum):
    """The closed list of reasons for a revocation."""

    EVIDENCE_FALSE = "evidence-false"
    OPERATION_BELOW_THRESHOLD = "operation-below-threshold"
    ISSUED_IN_ERROR = "issued-in-error"
    KEY_COMPROMISE = "key-compromise"
    COMPONENT_CHANGE = "component-change"
    AGENT_WITHDRAWN = "agent-withdrawn"


def revoke(
    words: Words,
    reason: Annotated[
        Why, typer.Option("--reason", metavar="REASON", help=f"Why, one of: {', '.join(Why)}.")
    ],
    key: Key,
    registry: RegistryOption = None,
    detail: Annotated[str | None, typer.Option("--detail", help="More, in words.")] = None,
    trust: TrustFile = None,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    passphrase_file: PassphraseFile = None,
    at: At = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Log that a passport no longer stands, signed by its issuer; nothing is taken out.

    The key must be one that the trust policy lists under the name of the passport's issuer. The same again
    gives the first entry. With evidence-false, every other passport of the lineage that the issuer gave on
    this evidence is revoked too.

    Example: certkit registry revoke registry 0 --reason key-compromise --key issuer-key.pem
    """
    from certkit.registry.ending import revoke as write  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    folder, ident = places.split(words, registry, "ID")
    if detail is not None:
        _check_words(detail, "--detail")
    hand = _hand(folder, key, passphrase_file, trust, log_key, at)
    shown = progress(hidden=quiet or json)
    with Registry.open(folder, heads=heads_path(heads), now=clock.now(), progress=shown) as opened:
        done = write(opened, ident, reason=reason.value, detail=detail, hand=hand)
    brief = output.brief(done.passport_id)
    also = [{"passport_id": passport, "index": index} for passport, index in done.also]
    _report("revoke", done.entry, done.passport_id, f"{brief} revoked", json=json, quiet=quiet, also=also)
    if not (json or quiet):
        for passport, index in done.also:
            output.say(f"{output.brief(passport)} revoked too, by entry {index}: it is on that evidence")


def supersede(
    words: Words,
    by: Annotated[str, typer.Option("--by", metavar="ID", help="The passport that takes its place.")],
    key: Key,
    registry: RegistryOption = None,
    trust: TrustFile = None,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    passphrase_file: PassphraseFile = None,
    at: At = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Log that the latest passport of a lineage takes the place of an earlier one, signed by its issuer.

    A passport that says by itself what it supersedes needs none of this.

    Example: certkit registry supersede registry 0 --by 1 --key issuer-key.pem
    """
    from certkit.registry.ending import supersede as write  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    folder, ident = places.split(words, registry, "ID")
    hand = _hand(folder, key, passphrase_file, trust, log_key, at)
    shown = progress(hidden=quiet or json)
    with Registry.open(folder, heads=heads_path(heads), now=clock.now(), progress=shown) as opened:
        passport, done = write(opened, ident, by=by, hand=hand)
    _report("supersede", done, passport, f"{output.brief(passport)} superseded", json=json, quiet=quiet)


def note(
    words: Annotated[list[str], typer.Argument(metavar="[DIR] TEXT", help="The registry, and the words.")],
    key: Annotated[Path, typer.Option("--key", metavar="FILE", help="The private key of who says so.")],
    registry: RegistryOption = None,
    lineage: Annotated[
        str | None,
        typer.Option("--lineage", help="What it is about, as for 'history'. Default: the log itself."),
    ] = None,
    trust: TrustFile = None,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    passphrase_file: PassphraseFile = None,
    at: At = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Log words for the record, such as that nothing happened, which keeps a status young.

    Example: certkit registry note registry "nothing to report in March" --key issuer-key.pem
    """
    from certkit.registry.ending import note as write  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same

    folder, text = places.split(words, registry, "TEXT")
    _check_words(text, "TEXT")
    hand = _hand(folder, key, passphrase_file, trust, log_key, at)
    about = _whole_name(folder, lineage) if lineage is not None else None
    shown = progress(hidden=quiet or json)
    with Registry.open(folder, heads=heads_path(heads), now=clock.now(), progress=shown) as opened:
        done = write(opened, about, text, hand=hand)
    _report("note", done, None, "noted", json=json, quiet=quiet)


def status(
    words: Words,
    registry: RegistryOption = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The file, such as passport.json.status.")
    ] = None,
    force: Force = False,
    log_key: LogKey = None,
    heads: HeadsFile = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The time that it states. Default: now.")
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option("--since", metavar="FILE", help="A checkpoint, or a proof, that its reader remembers."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a passport's status as a file for offline use, with the log's signed word on it.

    'certkit verify' finds it as PASSPORT.status. It proves what became of the passport; that nothing came
    later is the word of the log's key, as of the time in it. Whoever remembers an earlier checkpoint of the
    log, from an audit, takes it only with the proof that the log goes on from there: --since.

    Example: certkit registry status registry 0 -o passport.json.status
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.admission import checkpoint_in  # noqa: PLC0415 - the same
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same
    from certkit.registry.statusfile import write  # noqa: PLC0415 - the same

    check_outputs(out, force=force)
    folder, ident = places.split(words, registry, "ID")
    key = passphrase.log_key(log_key, folder)
    with Registry.open(folder) as opened:
        index = opened.find(ident)
    moment = clock.dated(at)
    known = checkpoint_in(since, None) if since else None
    data = write(folder, index, key=key, heads=heads_path(heads), at=moment, since=known)
    if out is not None:
        files.write(out, data, overwrite=force)
    if json or out is None:
        output.raw(data.decode())
    elif not quiet:
        output.say(f"status of entry {index} written to {out}")


def _hand(
    folder: Path,
    key: Path,
    passphrase_file: Path | None,
    trust: Path | None,
    log_key: Path | None,
    at: str | None,
) -> Hand:
    from certkit.registry.ending import Hand  # noqa: PLC0415 - keeps the help fast

    return Hand(
        trust=load(trust),
        submitter=signing_key(key, passphrase_file),
        log_key=passphrase.log_key(log_key, folder),
        at=clock.dated(at),
    )


def _check_words(text: str, what: str) -> None:
    from certkit.registry.entry import WORDS  # noqa: PLC0415 - keeps the help fast

    if not text.strip() or len(text) > WORDS:
        long = output.counted(len(text), "character") if text.strip() else "no words"
        hint = f"1 to {WORDS:,} characters can be logged"
        raise UsageError("usage.option", f"{what} has {long}", hint=hint)


def _whole_name(folder: Path, lineage: str) -> str:
    """Return a lineage of the log by its whole name: what is misspelt could not be taken out again."""
    with places.own(folder, hidden=True) as log:
        return log.history(lineage).lineage


def _report(
    what: str, done: Appended, passport: str | None, words: str, *, json: bool, quiet: bool, **more: object
) -> None:
    if json:
        document: dict[str, object] = {"schema": f"urn:certkit:registry-{what}:v1", "index": done.index}
        about = {} if passport is None else {"passport_id": passport}
        output.document(document | {"new": done.new} | about | more)
    elif not quiet:
        output.say(f"{words}{'' if done.new else ' already'}, by entry {done.index}")
