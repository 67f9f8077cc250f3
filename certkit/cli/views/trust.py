"""A trust policy as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from certkit.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta
    from pathlib import Path

    from certkit.passport.trust import Trust

_LABEL: Final = 9  # beside it a digest ends in column 80
_DAY: Final = 24 * 60 * 60


def show_policy(policy: Trust, path: Path) -> None:
    """Print whose passports a policy accepts, which logs and witnesses it knows, and what it demands."""
    output.say(str(path))
    _issuers(policy)
    for log in policy.logs:
        entry("log", log)
    quorum = policy.witnesses
    entry("witness", f"{quorum.k} of {len(quorum.keys)} must have cosigned" if quorum.keys else "none")
    _below(quorum.keys)
    entry("requires", ", ".join(policy.require) or "signature and validity only")
    entry("status", f"no older than {age(policy.max_status_age)}, where it is asked for")
    entry("profile", "one of these" if policy.profiles else "any")
    _below(policy.profiles)
    entry("accepts", _accepts(policy))


def entry(label: str, text: str) -> None:
    """Print a paragraph behind its label."""
    output.wrapped(text, first=f"{label:<{_LABEL}}", rest=" " * _LABEL)


def age(limit: timedelta) -> str:
    """Return a period in whole days where it has such, else in hours."""
    seconds = limit.total_seconds()
    if seconds % _DAY == 0:
        return output.counted(int(seconds / _DAY), "day")
    return f"{seconds / 3600:,g} hours"


def _issuers(policy: Trust) -> None:
    for item in policy.candidates():
        entry("issuer", item.issuer)
        _below([item.id])
        if item.not_before or item.not_after:
            entry("", f"from {_day(item.not_before)} to {_day(item.not_after)}")
    identities = [(issuer.name, one) for issuer in policy.issuers for one in issuer.identities]
    for name, one in identities:
        entry("issuer", name)
        entry("", f"signed in as {one.identity}")
        entry("", f"at {one.issuer}")
    if not policy.candidates() and not identities:
        entry("issuer", "none: every passport will be refused")
    if policy.trusted_root is not None:
        entry("root", _members(policy.trusted_root))
    elif identities:
        entry("root", "none: no identity counts without --trusted-root")


def _below(items: Iterable[str]) -> None:
    for item in items:
        entry("", item)


def _members(root: dict[str, Any]) -> str:
    from certkit.passport.trusted_root import KINDS  # noqa: PLC0415 - keeps the help fast

    return "Sigstore: " + ", ".join(f"{name} ({len(root.get(kind, []))})" for kind, name in KINDS.items())


def _accepts(policy: Trust) -> str:
    parts = [f"Tier {policy.min_tier} and above" if policy.min_tier else "any tier, none included"]
    parts.append(f"{policy.reading} reading" if policy.reading else "the reading that the profile decides by")
    if policy.domains:
        parts.append(f"covering {', '.join(policy.domains)}")
    parts.append("specimens too" if policy.accept_specimens else "no specimens")
    return ", ".join(parts)


def _day(time: datetime | None) -> str:
    from certkit.passport.exports.words import day  # noqa: PLC0415 - keeps the help fast

    return "…" if time is None else day(time)
