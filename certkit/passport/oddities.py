"""Warnings about a trust policy that is well formed and does not do what its author may expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from certkit.passport.terms import MAX_VALIDITY
from certkit.passport.trusted_root import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from certkit.passport.trust import Candidate, Trust

LOGS: Final[tuple[Kind, ...]] = ("tlogs", "ctlogs")


def oddities(policy: Trust, *, at: datetime, profiles: Collection[str]) -> tuple[str, ...]:
    """Return warnings about a policy at the aware time `at`; `profiles` are the digests that are known.

    Faults that `trust.parse` refuses are not repeated here: a quorum of more witnesses than there are, a key
    that occurs twice, a window that ends before it begins.
    """
    return (*_issuers(policy, at), *_unmet(policy), *_profiles(policy, profiles))


def cautions(policy: Trust) -> Iterator[str]:
    """Yield what a policy lets pass that a careful verifier would not."""
    if not policy.profiles:
        yield "any profile is accepted: a passport may be judged by a table that asks for little"
    if policy.reading != "bounded":
        yield "the table reading may decide: a tier then rests on point estimates, however few the tasks"
    if policy.max_status_age > MAX_VALIDITY:
        yield "a status of any age counts: it may be older than a revocation"
    if policy.trusted_root is not None:
        lacking = [KINDS[kind] for kind in LOGS if not policy.trusted_root.get(kind)]
        if lacking:
            yield f"the trusted root names no {' and no '.join(lacking)}: it verifies no certificate"


def _issuers(policy: Trust, at: datetime) -> Iterator[str]:
    names = [issuer.name for issuer in policy.issuers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{names.count(name)} issuers are called {name}: their keys count as those of one"
    for issuer in policy.issuers:
        if not issuer.keys and not issuer.identities:
            yield f"issuer {issuer.name} has no key and no identity"
    candidates = policy.candidates()
    for key in candidates:
        if key.not_after is not None and key.not_after < at:
            yield f"key {key.id} of {key.issuer} has ended, at {_utc(key.not_after)}"
        if key.not_before is not None and key.not_before > at:
            yield f"key {key.id} of {key.issuer} does not count yet, but from {_utc(key.not_before)} on"
    rooted = policy.trusted_root is not None and any(issuer.identities for issuer in policy.issuers)
    if not rooted and not any(_counts(key, at) for key in candidates):
        yield "no issuer counts now: every passport that is signed today will be refused"


def _counts(key: Candidate, at: datetime) -> bool:
    begun = key.not_before is None or key.not_before <= at
    return begun and (key.not_after is None or at <= key.not_after)


def _unmet(policy: Trust) -> Iterator[str]:
    """Yield the requirements and names that nothing in the policy can fulfil."""
    if policy.trusted_root is None:
        if any(issuer.identities for issuer in policy.issuers):
            yield "no identity counts without a trusted root"
        if "timestamp" in policy.require:
            yield "a timestamp is required, and none counts without a trusted root"
    for name in ("registry", "status"):
        if name in policy.require and not policy.logs:
            yield f"{name} is required, and no log is trusted"
    if policy.witnesses.keys and not policy.witnesses.k:
        yield f"{len(policy.witnesses.keys)} witnesses are named, and none of them is required"


def _profiles(policy: Trust, known: Collection[str]) -> Iterator[str]:
    for digest in policy.profiles:
        if digest not in known:
            yield f"profile {digest} is none of those that come with certkit, nor one that was named"


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
