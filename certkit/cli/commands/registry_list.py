"""``certkit registry list``: the entries of a registry, or the passports among them that are looked for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from certkit.cli import clock, output, places
from certkit.cli.options import Json, profile_digest
from certkit.cli.places import RegistryArgument, RegistryOption
from certkit.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from certkit.registry import Logged
    from certkit.registry.entry import AnyClaims
    from certkit.registry.state import Issued


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
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="What is valid at this time; every entry counts. Default: now."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the entries of a registry, oldest first, or the passports that the options ask for.

    DIR is a registry or an exported tree. The dates are those of the entries. All must give the checkpoint's
    root, which the registry's own key must have signed; who signed the entries is not checked.

    Example: certkit registry list registry --status current
    """
    place = places.the(folder, registry)
    if any(one is not None for one in (agent, tier, profile, status)):
        wanted = _Wanted(agent, tier, profile_digest(profile) if profile else None, status)
        _search(place, wanted, clock.moment(at, "--at") if at else clock.now(), json=json)
        return
    if at is not None:
        raise UsageError("usage.option", "--at goes with a search: the entries are what they are at any time")
    _all(place, json=json)


class _Wanted(NamedTuple):
    """What is looked for; None asks nothing. `agent` is a lineage, a part of one, or an agent's digest."""

    agent: str | None
    tier: int | None
    profile: str | None
    status: Ended | None

    def takes(self, one: Issued, status: str) -> bool:
        """Tell whether a passport is one of those that are looked for."""
        claims = one.claims
        return (
            (self.agent is None or self.agent == claims.agent or self.agent in one.lineage)
            and self.tier in {None, claims.tier}
            and self.profile in {None, claims.profile}
            and self.status in {None, status}
        )


def _search(place: Path, wanted: _Wanted, at: datetime, *, json: bool) -> None:
    """Show the passports that a search finds."""
    from certkit.registry.entry import timestamp  # noqa: PLC0415 - keeps the help fast

    now = timestamp(at)
    with places.own(place, hidden=json) as log:
        origin = log.head.checkpoint.origin
        found = [(one, one.standing(now)) for one in log.passports()]
    _show_found(origin, [(one, status) for one, status in found if wanted.takes(one, status)], json=json)


def _all(place: Path, *, json: bool) -> None:
    """Show every entry."""
    from certkit.registry.entry import Logged, read  # noqa: PLC0415 - keeps the help fast

    with places.own(place, hidden=json) as log:
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
        subject = "the log itself" if said.subject == origin else said.subject
        _line(one.index, said.issued_at, said.type, met, output.brief(one.found.passport_id), subject)
        if words := _words(one.found.claims):
            output.wrapped(words, first="        ", rest="        ")


def _words(claims: AnyClaims) -> str:
    """Return in words what an entry says beside what its line does."""
    from certkit.registry.entry import Drift, KeyChange, Note, Revocation  # noqa: PLC0415 - for the help
    from certkit.tlog.note import VerifierKey  # noqa: PLC0415 - the same

    match claims:
        case Drift():
            return f"{claims.result}{': ' if claims.rows else ''}{', '.join(claims.rows)}"
        case KeyChange():
            return f"the log is handed over to its key {VerifierKey.parse(claims.new).key_id.hex()}"
        case Note():
            return claims.text
        case Revocation():
            return f"{claims.reason}{': ' if claims.detail else ''}{claims.detail or ''}"
    return ""


def _line(index: int, time: str, what: str, tier: str, passport: str, lineage: str) -> None:
    """Print one row of a list; a long name has a line of its own."""
    line = f"{index:>6}  {time[:10]}  {what:<10}  {tier:<7}  {passport:<12}  "
    if len(line) + len(lineage) <= output.WIDTH:
        output.say(line + lineage)
    else:
        output.say(line.rstrip())
        output.wrapped(lineage, first="        ", rest="        ")


def _show_found(origin: str, found: list[tuple[Issued, str]], *, json: bool) -> None:
    if json:
        passports = [_found(one, status) for one, status in found]
        output.document(
            {"schema": "urn:certkit:registry-search:v1", "origin": origin, "passports": passports}
        )
        return
    output.wrapped(f"{origin}, {output.counted(len(found), 'passport')}, signatures not checked")
    for one, status in found:
        tier = f"Tier {one.claims.tier}" if one.claims.tier else "no tier"
        _line(one.index, one.issued_at, status, tier, output.brief(one.claims.passport_id), one.lineage)


def _found(one: Issued, status: str) -> dict[str, Any]:
    """Return a passport as JSON values."""
    claims = one.claims
    return {
        "index": one.index,
        "passport_id": claims.passport_id,
        "lineage": one.lineage,
        "agent": claims.agent,
        "profile": claims.profile,
        "tier": claims.tier,
        "not_before": claims.not_before,
        "not_after": claims.not_after,
        "attempt": claims.attempt,
        "status": status,
        "ended_by": one.ending.index if one.ending else None,
    }


def entry(logged: Logged) -> dict[str, Any]:
    """Return an entry as JSON values."""
    from msgspec import to_builtins  # noqa: PLC0415 - keeps the help fast

    body: dict[str, Any] = to_builtins(logged.found.entry)
    del body["v"]
    return {"index": logged.index, "leaf": logged.leaf.hex(), **body}
