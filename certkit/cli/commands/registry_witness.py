"""``certkit registry cosign``: takes in what witnesses signed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.cli import clock, output, places
from certkit.cli.options import HeadsFile, Json, Quiet, heads_path
from certkit.cli.places import RegistryOption
from certkit.cli.policy import TrustFile, load, vkeys

if TYPE_CHECKING:
    from certkit.registry.cosigning import Gathered
    from certkit.tlog.note import Signed

_LATEST: Final = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


def cosign(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[DIR] FILE...",
            help="The registry; what witnesses returned: the checkpoint with their lines, or those alone.",
        ),
    ],
    registry: RegistryOption = None,
    witness: Annotated[
        list[str] | None,
        typer.Option(
            "--witness", metavar="VKEY", help="A witness's verifier key, instead of the policy's; repeatable."
        ),
    ] = None,
    trust: TrustFile = None,
    heads: HeadsFile = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="The time that none may be later than. Default: now."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take in cosignatures of witnesses under the log's checkpoint as it stands.

    They stand below the checkpoint from then on, in the proofs and exports that are made and in the status
    files. An entry that is logged later makes a new checkpoint, which has to be cosigned anew. What is false,
    about another log or state, or by nobody known is refused.

    Example: certkit registry cosign registry cosigned.checkpoint --trust trust.json
    """
    from certkit import files  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.cosigning import gather  # noqa: PLC0415 - the same
    from certkit.registry.registry import Registry  # noqa: PLC0415 - the same
    from certkit.tlog.note import MAX_NOTE  # noqa: PLC0415 - the same
    from certkit.tlog.witness import Quorum  # noqa: PLC0415 - the same

    folder, names = places.several(words, registry, "FILE")
    asked = None if witness else load(trust).witnesses
    quorum = Quorum.of(asked.k, asked.keys) if asked else Quorum.of(0, vkeys(witness, "--witness"))
    returned = [files.read(Path(name), limit=MAX_NOTE) for name in names]
    with Registry.open(folder, heads=heads_path(heads)) as opened:
        moment = clock.moment(at, "--at") if at else clock.now()
        found = gather(opened, returned, witnesses=quorum.keys, at=moment)
    required = asked.k if asked else None
    if json:
        output.document(
            {
                "schema": "urn:certkit:registry-cosign:v1",
                "origin": found.head.origin,
                "size": found.head.size,
                "root": found.head.root.hex(),
                "added": [_witness(one) for one in found.added],
                "cosigned": [_witness(one) for one in found.cosigned],
                "required": required,
                "ignored": list(found.ignored),
            }
        )
    elif not quiet:
        _show(found, required)


def _witness(one: Signed) -> dict[str, str]:
    return {"vkey": str(one.key), "time": _time(one)}


def _time(one: Signed) -> str:
    # What was put into the file past this program may be beyond the calendar.
    return datetime.fromtimestamp(min(one.time or 0, _LATEST), UTC).isoformat().replace("+00:00", "Z")


def _show(found: Gathered, required: int | None) -> None:
    for one in found.cosigned:
        kept = "" if one in found.added else " (known already)"
        output.wrapped(f"cosigned by {one.key.name} at {_time(one)}{kept}", rest="  ")
    for name in found.ignored:
        output.wrapped(f"passed over: a line of {name}, which is no known witness", rest="  ")
    asked = "" if required is None else f", and the policy asks for {required:,}"
    cosigned = output.counted(len(found.cosigned), "cosignature")
    output.say(f"checkpoint over {output.entries(found.head.size)}: {cosigned}{asked}")
