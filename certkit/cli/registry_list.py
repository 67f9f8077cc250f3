"""``certkit registry list``: the entries of a registry, and what its derived tables find among them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certkit.cli import clock, output, places
from certkit.cli.options import Json, profile_digest
from certkit.cli.places import RegistryArgument, RegistryOption
from certkit.errors import UsageError

if TYPE_CHECKING:
    from certkit.registry import Logged
    from certkit.registry.search import Found


class Ended(StrEnum):
    """How a passport may stand."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"
    EXPIRED = "expired"
    UPCOMING = "upcoming"


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

    DIR is a registry or an exported tree. The dates are those of the entries. All must give the checkpoint's
    root, which the registry's own key must have signed; who signed the entries is not checked. A search reads
    a registry's derived tables, which 'certkit registry reindex --check' compares with the entries.

    Example: certkit registry list registry --status current
    """
    from certkit.registry.entry import read  # noqa: PLC0415 - keeps the help fast
    from certkit.registry.history import reading  # noqa: PLC0415 - the same
    from certkit.registry.registry import Logged, Registry  # noqa: PLC0415 - the same
    from certkit.registry.search import Query  # noqa: PLC0415 - the same

    place = places.the(folder, registry)
    asked = any(one is not None for one in (agent, tier, profile, status))
    if at is not None and not asked:
        raise UsageError("usage.option", "--at goes with a search: the entries are what they are at any time")
    if asked:
        moment = clock.moment(at, "--at") if at else clock.now()
        query = Query(
            agent=agent,
            tier=tier,
            profile=profile_digest(profile) if profile else None,
            status=status.value if status else None,
        )
        with Registry.open(place) as opened:
            origin = places.signed_head(opened).origin
            with opened.searching() as search:
                found = search.passports(query, at=moment)
            logged = [opened.logged(one.index).found.entry.issued_at for one in found]
        _show_found(origin, found, logged, json=json)
        return
    with reading(place, key=places.own_key(place)) as log:
        origin = log.head.checkpoint.origin
        entries = [Logged(index, leaf, read(data)) for index, data, leaf in log.entries()]
    if json:
        listed = [entry(one) for one in entries]
        output.document({"schema": "urn:certkit:registry-list:v1", "origin": origin, "entries": listed})
        return
    output.wrapped(f"{origin}, {output.entries(len(entries))}, signatures not checked")
    for one in entries:
        said, claims = one.found.entry, one.found.passport
        met = f"Tier {claims.tier}" if claims and claims.tier else "no tier" if claims else ""
        passport = (one.found.passport_id or "").removeprefix("sha256:")[:12]
        _line(one.index, said.issued_at, said.type, met, passport, said.subject)


def _line(index: int, time: str, what: str, tier: str, passport: str, lineage: str) -> None:
    """Print one row of a list; a long name has a line of its own."""
    line = f"{index:>6}  {time[:10]}  {what:<10}  {tier:<7}  {passport:<12}  "
    if len(line) + len(lineage) <= output.WIDTH:
        output.say(line + lineage)
    else:
        output.say(line.rstrip())
        output.wrapped(lineage, first="        ", rest="        ")


def _show_found(origin: str, found: list[Found], logged: list[str], *, json: bool) -> None:
    from msgspec import to_builtins  # noqa: PLC0415 - keeps the help fast

    if json:
        document = {"schema": "urn:certkit:registry-search:v1", "origin": origin}
        output.document({**document, "passports": [to_builtins(one) for one in found]})
        return
    output.wrapped(f"{origin}, {output.counted(len(found), 'passport')}, by tables that are not checked")
    for one, time in zip(found, logged, strict=True):
        tier = f"Tier {one.tier}" if one.tier else "no tier"
        name = one.passport_id.removeprefix("sha256:")[:12]
        _line(one.index, time, one.status, tier, name, one.lineage)


def entry(logged: Logged) -> dict[str, Any]:
    """Return an entry as JSON values."""
    from msgspec import to_builtins  # noqa: PLC0415 - keeps the help fast

    body: dict[str, Any] = to_builtins(logged.found.entry)
    del body["v"]
    return {"index": logged.index, "leaf": logged.leaf.hex(), **body}
