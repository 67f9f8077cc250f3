"""A trust policy as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit.cli.emit import fold, hint
from certkit.passport.editing import cautions
from certkit.passport.trusted_root import KINDS
from certkit.passport.words import day
from certkit.wording import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from certkit.passport.trust import Trust

_LABEL: Final = 9  # beside it a digest ends in column 80
_DAY: Final = 24 * 60 * 60


def show_policy(policy: Trust, path: Path, odd: Sequence[str]) -> Iterator[str]:
    """Print whose passports a policy accepts, what it knows, what it demands, and what in it is odd."""
    yield str(path)
    yield from _issuers(policy)
    for log in policy.logs:
        yield from _entry("log", log)
    quorum = policy.witnesses
    yield from _entry(
        "witness", f"{quorum.k} of {len(quorum.keys)} must have cosigned" if quorum.keys else "none"
    )
    yield from _below(quorum.keys)
    yield from _entry("requires", ", ".join(policy.require) or "signature and validity only")
    yield from _entry("status", f"no older than {age(policy.max_status_age)}, where it is asked for")
    yield from _entry("profile", "one of these" if policy.profiles else "any")
    yield from _below(policy.profiles)
    yield from _entry("accepts", _accepts(policy))
    for item in odd:
        yield from _entry("odd", item)
    for item in cautions(policy):
        yield from _entry("caution", item)
    yield f"{len(odd)} odd" if odd else "nothing odd"


def show_written(policy: Trust, path: Path, more: Iterable[str]) -> Iterator[str]:
    """Print that a policy was written, what it holds, `more`, and what it lacks."""
    count, people = len(policy.candidates()), sum(len(issuer.identities) for issuer in policy.issuers)
    held = [many(count, "trusted key")]
    if people:
        held.append("1 identity" if people == 1 else f"{people} identities")
    held.append(many(len(policy.logs), "log key"))
    if policy.witnesses.keys:
        held.append(f"{policy.witnesses.k} of {len(policy.witnesses.keys)} witnesses")
    yield from fold(f"{path} written: {', '.join(held)}")
    yield from more
    if people and policy.trusted_root is None:
        hint("no identity counts without a root: certkit trust add --trusted-root FILE")
    if not count and not people:
        hint("certkit trust add --issuer NAME --key PUBLIC.pem")


def _entry(label: str, text: str) -> Iterator[str]:
    """Print a paragraph behind its label."""
    yield from fold(text, first=f"{label:<{_LABEL}}", rest=" " * _LABEL)


def age(limit: timedelta) -> str:
    """Return a period in whole days where it has such, else in hours."""
    seconds = limit.total_seconds()
    if seconds % _DAY == 0:
        return many(int(seconds / _DAY), "day")
    return f"{seconds / 3600:,g} hours"


def _issuers(policy: Trust) -> Iterator[str]:
    for item in policy.candidates():
        yield from _entry("issuer", item.issuer)
        yield from _below([item.id])
        if item.not_before or item.not_after:
            yield from _entry("", f"from {_day(item.not_before)} to {_day(item.not_after)}")
    identities = [(issuer.name, identity) for issuer in policy.issuers for identity in issuer.identities]
    for name, identity in identities:
        yield from _entry("issuer", name)
        yield from _entry("", f"signed in as {identity.identity}")
        yield from _entry("", f"at {identity.issuer}")
    if not policy.candidates() and not identities:
        yield from _entry("issuer", "none: every passport will be refused")
    if policy.trusted_root is not None:
        yield from _entry("root", _members(policy.trusted_root))
    elif identities:
        yield from _entry("root", "none: no identity counts without --trusted-root")


def _below(items: Iterable[str]) -> Iterator[str]:
    for item in items:
        yield from _entry("", item)


def _members(root: dict[str, Any]) -> str:
    return "Sigstore: " + ", ".join(f"{name} ({len(root.get(kind, []))})" for kind, name in KINDS.items())


def _accepts(policy: Trust) -> str:
    parts = [f"Tier {policy.min_tier} and above" if policy.min_tier else "any tier, none included"]
    parts.append(f"{policy.reading} reading" if policy.reading else "the reading that the profile decides by")
    if policy.domains:
        parts.append(f"covering {', '.join(policy.domains)}")
    parts.append("specimens too" if policy.accept_specimens else "no specimens")
    if policy.accept_contested:
        parts.append("contested tiers too")
    if not policy.accept_answered:
        parts.append("no tier with an answered challenge")
    return ", ".join(parts)


def _day(time: datetime | None) -> str:
    return "…" if time is None else day(time)
