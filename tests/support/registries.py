"""Registries for tests: stand-in passports, of which a check of their own reads the facts.

The log does not know what a passport looks like; whoever appends says how one is checked. Real passports
are appended in tests/unit/registry/test_admission.py.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from uuid import NAMESPACE_URL, uuid5

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.passport import keys
from certkit.passport.trust import Candidate
from certkit.registry.audit import audit
from certkit.registry.entry import PassportFacts, PlanNotice
from certkit.registry.writer import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.registry.audit import RegistryAudit
    from certkit.registry.entry import AnyClaims, Logged
    from certkit.registry.writer import Appended
    from certkit.tlog.checkpoint import LogProof
    from certkit.tlog.note import VerifierKey

AT: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
LOG_KEY: Final = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
SUBMITTER: Final = Ed25519PrivateKey.from_private_bytes(b"\2" * 32)
STRANGER: Final = Ed25519PrivateKey.from_private_bytes(b"\3" * 32)
_LOG: Final = f"urn:certkit:log:{keys.key_id(LOG_KEY.public_key())}:{AT.isoformat(timespec='microseconds')}"
ORIGIN: Final = f"certkit.test/{uuid5(NAMESPACE_URL, _LOG)}"
"""The name of the log that `new` makes."""


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def passport(
    number: int,
    *,
    lineage: str = "lab/agent",
    profile: str = "profile",
    supersedes: str | None = None,
    blank: str = "",
) -> bytes:
    """The bytes of a stand-in passport; `blank` changes the file and not what it says."""
    facts = PassportFacts(
        passport_id=digest(f"passport {number}"),
        lineage=lineage,
        agent=digest("agent"),
        evidence=digest(f"evidence {number}"),
        attempt=1_000_000,
        tier=number % 4,
        profile=digest(profile),
        not_before="2026-03-01T00:00:00Z",
        not_after="2026-05-30T00:00:00Z",
        supersedes=supersedes,
    )
    return canonical.canonical(msgspec.to_builtins(facts)) + blank.encode()


def check(data: bytes, _at: datetime = AT) -> PassportFacts:
    """Read the facts of a stand-in passport."""
    try:
        return msgspec.convert(canonical.loads(data), PassportFacts)
    except msgspec.ValidationError as error:
        raise InputError("passport.form", str(error)) from None


def new(folder: Path) -> VerifierKey:
    return Registry.init(folder, "test", LOG_KEY, at=AT)


def heads(folder: Path) -> Path:
    """The file of signed heads, outside the registry."""
    return folder.parent / "state" / f"{folder.name}.heads"


def opened(folder: Path) -> Registry:
    """A registry that can be written."""
    return Registry.open(folder, heads=heads(folder))


def append(folder: Path, data: bytes, *, log_key: Ed25519PrivateKey = LOG_KEY) -> Appended:
    with opened(folder) as registry:
        return registry.append(data, check=check, submitter=SUBMITTER, log_key=log_key, at=AT)


def proof_of(folder: Path, appended: Appended) -> LogProof:
    """The proof of an entry, as the log stands now."""
    with Registry.open(folder) as registry:
        return registry.prove(appended.index)


def filled(folder: Path, count: int) -> VerifierKey:
    vkey = new(folder)
    with opened(folder) as registry:
        for number in range(count):
            registry.append(passport(number), check=check, submitter=SUBMITTER, log_key=LOG_KEY, at=AT)
    return vkey


def audited(folder: Path, vkey: VerifierKey) -> RegistryAudit:
    return audit(folder, log=vkey, submitters=submitters(), check=check)


def candidate(name: str, key: keys.PublicKey, **window: datetime) -> Candidate:
    """A key that a policy trusts, by whatever id."""
    return Candidate(issuer=name, key=key, id=name, hint="", **window)  # type: ignore[arg-type]


def submitters(**window: datetime) -> dict[str, Candidate]:
    name = keys.key_id(SUBMITTER.public_key())
    return {name: candidate(name, SUBMITTER.public_key(), **window)}


def log_entry(
    registry: Registry,
    subject: str,
    claims: AnyClaims,
    *,
    submitter: keys.PrivateKey,
    log_key: Ed25519PrivateKey,
    at: datetime,
) -> Appended:
    """Log an entry about `subject`, whoever may say so."""
    if isinstance(claims, PlanNotice):
        claims = structs.replace(claims, lineage=subject)
    with registry.turn(log_key) as turn:
        return turn.log(subject, claims, submitter=submitter, at=at)


def notice(words: str = "x") -> PlanNotice:
    """A plan that was announced, other ones for other words; whoever logs it fills in the lineage."""
    return PlanNotice(plan=digest(words), lineage="x")


def held(registry: Registry) -> list[Logged]:
    """Every entry of a registry, in order."""
    return [registry.logged(index) for index in range(registry.head().size)]


def flips(data: bytes) -> Iterator[bytes]:
    """Every eleventh byte, and the last, with one bit of it changed; `tests.faults.flips` takes every bit."""
    for place in sorted({*range(0, len(data), 11), len(data) - 1}):
        yield data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def poison(folder: Path, statement: str, *values: object) -> None:
    """Change the database of a registry behind its back."""
    with closing(sqlite3.connect(folder / "registry.db", isolation_level=None)) as connection:
        connection.execute(statement, values)
