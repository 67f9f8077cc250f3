"""Logs of real passports: what they say of one, and entries that the rules would refuse."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from certkit.passport import keys
from certkit.passport.verification import verify
from certkit.registry.admission import checker, inspect
from certkit.registry.entry import Entry, read, timestamp
from certkit.registry.entry import write as write_entry
from certkit.registry.registry import Registry
from certkit.registry.status import FileStatus, FolderStatus, write
from certkit.registry.writing import revoke
from certkit.summary.summary import CLUSTER_FIELDS
from tests.support import build as assessments
from tests.support.lineages import KEY, NOW, ORIGIN, hand, heads, policy
from tests.support.registries import LOG_KEY, log_entry

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey
    from certkit.passport.opening import Passport, Step
    from certkit.passport.trust import Trust
    from certkit.registry.auditing import Audit
    from certkit.registry.entry import AnyClaims
    from certkit.summary.summary import Summary
    from certkit.tlog.checkpoint import Checkpoint


DAY = timedelta(days=1)


def unseen(_origin: str) -> Checkpoint | None:
    return None


def head_of(folder: Path) -> Checkpoint:
    with Registry.open(folder) as registry:
        return registry.head()


def rows(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "registry.db", isolation_level=None)) as connection:
        connection.execute(statement, values)


def standing(folder: Path, one: Passport, trust: Trust, *, days: int = 1, **more: Any) -> Step:
    source = FolderStatus(folder, trust=trust, at=NOW + days * DAY, seen=more.pop("seen", unseen))
    return step(one, trust, days=days, status=source)


def step(one: Passport, trust: Trust, *, days: int = 1, **more: Any) -> Step:
    found = verify(one.to_json(), trust=trust, at=NOW + days * DAY, **more)
    return next(item for item in found.steps if item.id == "status")


def ended(folder: Path, index: int | str, **more: Any) -> int:
    with Registry.open(folder, heads=heads(folder)) as registry:
        return revoke(registry, str(index), reason="key-compromise", detail=None, hand=hand(**more))[1].index


def file(folder: Path, index: int, *, days: int = 0) -> bytes:
    return write(folder, index, key=LOG_KEY, heads=heads(folder), at=NOW + days * DAY)


def offline(data: bytes, one: Passport, trust: Trust, **more: Any) -> Step:
    source = FileStatus(data, trust=trust, at=NOW + more.get("days", 1) * DAY, seen=more.pop("seen", unseen))
    return step(one, trust, beside=source, **more)


def slip(folder: Path, *entries: bytes, log_key: Ed25519PrivateKey = LOG_KEY) -> None:
    """Log bytes as whoever holds the log's key could, past all rules."""
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(log_key) as turn:
        for data in entries:
            turn.add(data)


def stored(folder: Path, index: int) -> bytes:
    with Registry.open(folder) as registry, registry.reading() as its:
        data = its.entry(index)
    assert data is not None
    return data


def drafted(kind: str, subject: str, claims: AnyClaims, key: PrivateKey = KEY, **more: Any) -> bytes:
    """An entry as its members are given, and as nobody would write it by the rules."""
    members: dict[str, Any] = {
        "passport": None,
        "prev": None,
        "issued_at": timestamp(NOW + DAY),
        "log": ORIGIN,
    } | more
    return write_entry(
        Entry(
            type=kind,  # type: ignore[arg-type]
            subject=subject,
            claims=msgspec.to_builtins(claims),
            submitter=keys.key_id(key.public_key()),
            **members,
        ),
        key,
    )


def copied(folder: Path, index: int, key: PrivateKey, **changed: Any) -> bytes:
    """The entry that logs a passport once more, signed by another key."""
    found = read(stored(folder, index))
    assert found.passport is not None
    subject = changed.pop("subject", found.entry.subject)
    return drafted("passport", subject, found.passport, key, passport=found.entry.passport, **changed)


def silently(folder: Path, one: Passport, *more: AnyClaims) -> None:
    """Log a passport as nobody but whoever keeps the log can: with what they like after it."""
    with Registry.open(folder, heads=heads(folder)) as registry:
        done = registry.append(one.to_json(), check=checker(policy()), submitter=KEY, log_key=LOG_KEY, at=NOW)
        subject = registry.logged(done.index).found.entry.subject
        for claims in more:
            log_entry(registry, subject, claims, submitter=KEY, log_key=LOG_KEY, at=NOW)


def found(folder: Path, trust: object) -> list[tuple[str, str]]:
    report: Audit = inspect(folder, trust=trust)  # type: ignore[arg-type]
    return [(one.where, one.code) for one in report.findings]


def uneven(*clusters: tuple[int, int]) -> Summary:
    """The summary of fault runs in clusters of (runs, successes), with ten good nominal runs."""
    runs, good = (sum(column) for column in zip(*clusters, strict=True))
    cells = [
        assessments.cell("bank", "nominal", assessments.outcomes(10, 10)),
        assessments.cell("bank", "tool_failure", assessments.outcomes(runs, good, frr_missing=runs)),
    ]
    rows = [(0, 1000 + number, 1, 1) for number in range(10)]
    rows += [(1, number, n, y) for number, (n, y) in enumerate(clusters)]
    none = dict.fromkeys(CLUSTER_FIELDS, 0)
    kept = [(at, name, name, none | {"runs": n, "success": y, "failure": n - y}) for at, name, n, y in rows]
    return assessments.summary(cells, rows=assessments.clusters(kept))


TINY = uneven(*[(1, 1)] * 3, (1, 0))


def begun(summary: Summary, days: int, last: int | None = None) -> Summary:
    """The same runs with start times, the first of them so many days after `NOW`, and the last."""
    first, end = (
        int((NOW + day * DAY).timestamp() * 1_000_000) for day in (days, days if last is None else last)
    )
    times = structs.replace(summary.times, first=first, last=end)
    return structs.replace(summary, times=times)
