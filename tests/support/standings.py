"""Logs of real passports: what they say of one, and entries that the rules would refuse."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from certkit.passport import keys
from certkit.passport.verify import verify
from certkit.registry.audit import inspect
from certkit.registry.entry import Entry, PlanNotice, read, timestamp
from certkit.registry.entry import write as write_entry
from certkit.registry.fold import Passports
from certkit.registry.reader import reading
from certkit.registry.status import FileStatus, FolderStatus, write
from certkit.registry.writer import Registry, checker, revoke
from tests.support.lineages import KEY, NOW, ORIGIN, hand, heads, policy, uneven
from tests.support.registries import LOG_KEY, log_entry, notice

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.keys import PrivateKey
    from certkit.passport.passport import Passport
    from certkit.passport.steps import Step
    from certkit.passport.trust import Trust
    from certkit.registry.audit import RegistryAudit
    from certkit.registry.entry import AnyClaims
    from certkit.registry.fold import LoggedPassport
    from certkit.registry.writer import Appended, Hand
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
        return revoke(
            registry, str(index), reason="key-compromise", detail=None, hand=hand(**more)
        ).entry.index


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


def issued_in(folder: Path, trust: Trust | None = None) -> list[LoggedPassport]:
    """The passports that a log holds by a policy, or by whoever signed, with what ended them."""
    with reading(folder) as its:
        passports = Passports(its.policy(trust))
        for logged in its.logged():
            passports.follow(logged)
        return list(passports.issued())


def announce(registry: Registry, subject: str | None, words: str, *, hand: Hand) -> Appended:
    """Log a plan of a lineage, or of some other one."""
    return log_entry(
        registry,
        subject or "lab/other",
        notice(words),
        submitter=hand.submitter,
        log_key=hand.log_key,
        at=hand.at,
    )


def stored(folder: Path, index: int) -> bytes:
    with Registry.open(folder) as registry, registry.reading() as its:
        data = its.entry(index)
    assert data is not None
    return data


def drafted(kind: str, subject: str, claims: AnyClaims, key: PrivateKey = KEY, **more: Any) -> bytes:
    """An entry as its members are given, and as nobody would write it by the rules."""
    if isinstance(claims, PlanNotice):
        claims = structs.replace(claims, lineage=subject)
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
    subject = changed.pop("subject", found.body.subject)
    return drafted("passport", subject, found.passport, key, passport=found.body.passport, **changed)


def silently(folder: Path, one: Passport, *more: AnyClaims) -> None:
    """Log a passport as nobody but whoever keeps the log can: with what they like after it."""
    with Registry.open(folder, heads=heads(folder)) as registry:
        done = registry.append(one.to_json(), check=checker(policy()), submitter=KEY, log_key=LOG_KEY, at=NOW)
        subject = registry.logged(done.index).entry.body.subject
        for claims in more:
            log_entry(registry, subject, claims, submitter=KEY, log_key=LOG_KEY, at=NOW)


def found(folder: Path, trust: object) -> list[tuple[str, str]]:
    report: RegistryAudit = inspect(folder, trust=trust)  # type: ignore[arg-type]
    return [(one.where, one.code) for one in report.findings]


TINY = uneven(*[(1, 1)] * 3, (1, 0))
