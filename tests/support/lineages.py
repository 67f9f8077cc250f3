"""Logs of real passports for tests: one agent's lineage, with what became of its passports."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from msgspec import structs

from certkit.bundle.folder import open_bundle
from certkit.passport import keys
from certkit.passport.issue import VALIDITY
from certkit.registry.writer import Hand, Registry, admit
from certkit.summary.summarise import summarise
from tests.support import bundles
from tests.support.passports import KEY, NOW, evaluation, issued, trust
from tests.support.registries import LOG_KEY

if TYPE_CHECKING:
    from certkit.passport.keys import PrivateKey
    from certkit.passport.passport import Passport
    from certkit.passport.trust import Trust
    from certkit.registry.writer import Admitted
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
    "uneven",
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
def uneven(*tasks: tuple[int, int], nominal: int = 10, failed: int = 0) -> Summary:
    """The summary of fault runs in tasks of (runs, successes), with nominal runs of which some failed."""
    records = [
        bundles.run(f"n{number}", task_id=f"n/{number}", outcome="failure" if number < failed else "success")
        for number in range(nominal)
    ]
    records += [
        bundles.run(
            f"f{number}-{run}",
            task_id=f"f/{number}",
            condition="tool_failure",
            outcome="success" if run < good else "failure",
        )
        for number, (runs, good) in enumerate(tasks)
        for run in range(runs)
    ]
    with tempfile.TemporaryDirectory() as folder:
        return summarise(open_bundle(bundles.of(Path(folder) / "b", records)))


def clustered(successes: int) -> Summary:
    """The summary of 1,000 fault runs in 100 tasks, `successes` of them good, spread evenly."""
    good = [(number + 1) * successes // 100 - number * successes // 100 for number in range(100)]
    return uneven(*((10, count) for count in good), nominal=100, failed=5)


def begun(summary: Summary, days: int) -> Summary:
    """The same runs, all of them so many days after `NOW`."""
    time = int((NOW + timedelta(days=days)).timestamp() * 1_000_000)
    times = structs.replace(summary.times, timed=summary.records, first=time, last=time)
    return structs.replace(summary, times=times)


def issue(number: int = 1, *, summary: Summary | None = None, **more: Any) -> Passport:
    """The passport on evidence bundle `number` of the strong agent; see `_issue`.

    The same arguments give the same passport, made once.
    """
    asked = (number, id(summary), *((name, id(one) if name == "key" else one) for name, one in more.items()))
    if asked not in _ISSUED:
        made = _issue(number, summary, **more)
        _ISSUED[asked] = made, summary, more  # what has an id is held, so that no other gets it
    return _ISSUED[asked][0]


def _issue(
    number: int,
    summary: Summary | None,
    *,
    supersedes: str | None = None,
    days: int = 0,
    key: PrivateKey = KEY,
    identity: int = 0,
    **facts: Any,
) -> Passport:
    """The passport on some evidence, its `number`-th attempt."""
    digests = {"digest": f"sha256:{number:064x}", "agent_digest": f"sha256:{identity:064x}"}
    start = NOW + timedelta(days=days)
    return issued(
        evaluation(summary, **{"attempt": number, **digests, **facts}),
        key=key,
        not_before=start,
        not_after=start + VALIDITY,
        supersedes=supersedes,
    )


def log(folder: Path, one: Passport, *, days: int = 0, **more: Any) -> Admitted:
    arguments: dict[str, Any] = {"trust": policy(), "submitter": KEY, "log_key": LOG_KEY} | more
    return admit(folder, one.to_json(), heads=heads(folder), at=NOW + timedelta(days=days), **arguments)


def hand(*, days: int = 0, submitter: PrivateKey = KEY, rules: Trust | None = None) -> Hand:
    return Hand(trust=rules or policy(), submitter=submitter, log_key=LOG_KEY, at=NOW + timedelta(days=days))
