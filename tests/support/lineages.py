"""Logs of real passports for tests: one agent's lineage, with what became of its passports."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from msgspec import structs

from certkit.ground.canonical import Digest
from certkit.passport import issuing, keys
from certkit.registry.admission import admit
from certkit.registry.registry import Registry
from certkit.registry.writing import Hand
from certkit.summary.summary import CLUSTER_FIELDS
from tests.support import build as assessments
from tests.support.making import ISSUER, KEY, NOW, trust
from tests.support.registries import LOG_KEY

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.passport.keys import PrivateKey
    from certkit.passport.opening import Passport
    from certkit.passport.trust import Trust
    from certkit.registry.admission import Admitted
    from certkit.summary.summary import Summary
    from certkit.tlog.note import VerifierKey

__all__ = [
    "KEY",
    "LINEAGE",
    "NOW",
    "ORIGIN",
    "begun",
    "clustered",
    "hand",
    "heads",
    "issue",
    "log",
    "new",
    "policy",
]


LINEAGE = "-/courier"
_ISSUED: dict[tuple[Any, ...], tuple[Passport, Any, Any]] = {}
"""Passports that were issued before, by what was asked for, with what that names."""
_LOG = f"urn:certkit:log:{keys.key_id(LOG_KEY.public_key())}:{NOW.isoformat(timespec='microseconds')}"
ORIGIN = f"certkit.lab/{uuid5(NAMESPACE_URL, _LOG)}"
"""The name of the log that `new` makes."""


def heads(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-heads.db")


def new(folder: Path) -> VerifierKey:
    return Registry.init(folder, "lab", LOG_KEY, at=NOW)


def policy(vkey: VerifierKey | None = None, **more: Any) -> Trust:
    return trust(logs=() if vkey is None else (str(vkey),), **more)


@cache
def clustered(successes: int) -> Summary:
    """The summary of 1,000 fault runs in 100 clusters, `successes` of them good, spread evenly."""
    good = [(number + 1) * successes // 100 - number * successes // 100 for number in range(100)]
    cells = [
        assessments.cell("bank", "nominal", assessments.outcomes(100, 95)),
        assessments.cell("bank", "tool_failure", assessments.outcomes(1000, successes, frr_missing=1000)),
    ]
    runs = [(0, 1000 + number, 1, int(number < 95)) for number in range(100)]
    runs += [(1, number, 10, y) for number, y in enumerate(good)]
    none = dict.fromkeys(CLUSTER_FIELDS, 0)
    rows = [(at, name, name, none | {"runs": n, "success": y, "failure": n - y}) for at, name, n, y in runs]
    return assessments.summary(cells, rows=assessments.clusters(rows))


def begun(summary: Summary, days: int) -> Summary:
    """The same runs, all of them so many days after `NOW`."""
    time = int((NOW + timedelta(days=days)).timestamp() * 1_000_000)
    return structs.replace(summary, times=structs.replace(summary.times, first=time, last=time))


def issue(number: int = 1, *, summary: Summary | None = None, **more: Any) -> Passport:
    """The passport on evidence bundle `number` of the strong agent; see `_issue`.

    The same arguments give the same passport, made once.
    """
    asked = (number, id(summary), *((name, id(one) if name == "key" else one) for name, one in more.items()))
    if asked not in _ISSUED:
        made = _issue(number, assessments.strong() if summary is None else summary, **more)
        _ISSUED[asked] = made, summary, more  # what has an id is held, so that no other gets it
    return _ISSUED[asked][0]


def _issue(
    number: int,
    summary: Summary,
    *,
    supersedes: str | None = None,
    days: int = 0,
    key: PrivateKey = KEY,
    identity: int = 0,
    **facts: Any,
) -> Passport:
    """The passport on some evidence, its `number`-th attempt."""
    judged = assessments.judged(summary, **({"attempt": number} | facts))
    own = structs.replace(
        judged.facts,
        digest=Digest(f"sha256:{number:064x}"),
        agent_digest=Digest(f"sha256:{identity:064x}"),
    )
    return issuing.issue(
        structs.replace(judged, facts=own),
        summary,
        issuer=ISSUER,
        key=key,
        not_before=NOW + timedelta(days=days),
        not_after=NOW + timedelta(days=days + 90),
        supersedes=None if supersedes is None else Digest(supersedes),
    )


def log(folder: Path, one: Passport, *, days: int = 0, **more: Any) -> Admitted:
    arguments: dict[str, Any] = {"trust": policy(), "submitter": KEY, "log_key": LOG_KEY} | more
    return admit(folder, one.to_json(), heads=heads(folder), at=NOW + timedelta(days=days), **arguments)


def hand(*, days: int = 0, submitter: PrivateKey = KEY, rules: Trust | None = None) -> Hand:
    return Hand(trust=rules or policy(), submitter=submitter, log_key=LOG_KEY, at=NOW + timedelta(days=days))
