"""A log as this user reads it: by the key that it says is its own, or by those of a trust policy.

    head = signed_head(registry, heads)              # what the registry's own key signed
    with whole(folder, heads) as log: ...            # to read every entry
    with lineage(folder, name, policy, heads, at=now) as found:
        found.history.passports, found.history.left_out

Whatever is read must go on from what the file `heads` remembers of the log. Whose key it is, is asked only
under a policy.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from certkit import files
from certkit.errors import InputError, MismatchError, UnavailableError, UntrustedError, UsageError
from certkit.passport import keys
from certkit.passport.checks import CLOCK_SKEW
from certkit.progress import SILENT, Progress
from certkit.registry import store
from certkit.registry.admission import keys_of_log
from certkit.registry.entry import timestamp
from certkit.registry.heads import refuse_fork, remembered
from certkit.registry.log import KEY_FILE, NEXT_KEY, load_log_key, make_log_key
from certkit.registry.reader import opened, reading
from certkit.registry.registry import Registry
from certkit.registry.state import Passports
from certkit.registry.status import log_key
from certkit.tlog.witness import Quorum, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from certkit.passport.trust import Trust
    from certkit.registry.reader import Reader
    from certkit.registry.registry import Logged
    from certkit.registry.state import History, Issued
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey


def signed_head(registry: Registry, heads: Path) -> Checkpoint:
    """Return the head of a registry that its own key signed.

    Raises `MismatchError` ``registry.rollback`` unless it goes on from what is remembered by that key.
    """
    with registry.reading() as log:
        head = log.verified_head(registry.vkey)
        if earlier := remembered(heads, registry.vkey):
            refuse_fork(earlier, head, log.root_at)
    return head


@contextmanager
def whole(folder: Path, heads: Path, progress: Progress = SILENT) -> Iterator[Reader]:
    """Open a log to read it whole, by the verifier key that a registry says is its own.

    An exported tree says no key, and is read by what its checkpoint says. Raises as
    `certkit.registry.reader.reading` does.
    """
    known: list[VerifierKey] = []
    if (folder / store.FILE).exists():
        with Registry.open(folder) as registry:
            known.append(registry.vkey)
    key = known[0] if known else None
    with reading(folder, key=key, seen=lambda _: remembered(heads, *known), progress=progress) as log:
        yield log


class Lineage(NamedTuple):
    """A lineage's history, with the log that it is read from."""

    log: Reader
    history: History


@contextmanager
def lineage(
    folder: Path,
    name: str,
    policy: Trust | None,
    heads: Path,
    *,
    at: datetime,
    progress: Progress = SILENT,
) -> Iterator[Lineage]:
    """Open a log and read a lineage's history; with a policy, only what counts of it.

    Under a policy one of its log keys must have signed the checkpoint, and as many witnesses as it asks for,
    none later than `at`. Raises `UntrustedError`, `MismatchError` ``registry.witnesses``, and `UsageError`
    ``registry.unknown`` where no passport counts.
    """
    if policy is None:
        with whole(folder, heads, progress) as log:
            yield Lineage(log, log.history(name))
        return
    quorum = Quorum.of(policy.witnesses.k, policy.witnesses.keys)
    key = _key(folder, policy)
    with reading(
        folder,
        key=key,
        witnesses=quorum.keys,
        seen=lambda origin: remembered(heads, *keys_of_log(policy, origin)),
        progress=progress,
    ) as log:
        cosigned = counted(log.head.cosigned, (at + CLOCK_SKEW).timestamp())
        if not quorum.is_met(cosigned):
            raise MismatchError(
                "registry.witnesses",
                f"{len(cosigned)} of {quorum.k} required witnesses cosigned",
                where=str(folder),
                hint="the log's keeper takes in what they sign: certkit registry cosign",
            )
        yield Lineage(log, log.history(name, policy))


def _key(folder: Path, policy: Trust) -> VerifierKey:
    """Return the policy's present key of a log; raise `UntrustedError` where it did not sign."""
    with opened(folder) as source:
        try:
            return log_key(source.note(), policy)
        except UnavailableError as error:
            raise UntrustedError(error.code, error.message, where=str(folder), hint=error.hint) from None


def drifted(found: History) -> bool:
    """Tell whether the log says that the latest passport drifted.

    On the evidence of the passport before it, about the same agent, one shows nothing new: that one decides.
    """
    logged = {claims.passport_id for _, claims in found.drifts}
    later = None
    for passport in reversed(found.passports):
        claims = passport.claims
        again = later == (claims.evidence, claims.agent)
        if later is not None and not again:
            return False
        if claims.passport_id in logged:
            return True
        later = (claims.evidence, claims.agent)
    return False


class Query(NamedTuple):
    """Which passports are looked for; None asks nothing. `agent` is a lineage, a part of one, or a digest."""

    agent: str | None = None
    tier: int | None = None
    profile: str | None = None
    status: str | None = None

    def takes(self, passport: Issued, status: str) -> bool:
        """Tell whether a passport of this status is one of those that are looked for."""
        claims = passport.claims
        return (
            (self.agent is None or self.agent == claims.agent or self.agent in passport.lineage)
            and self.tier in {None, claims.tier}
            and self.profile in {None, claims.profile}
            and self.status in {None, status}
        )


def search(log: Reader, query: Query, at: datetime) -> list[tuple[Issued, str]]:
    """Return the passports of a log that a query asks for, each with its status at a time.

    Raises as `Reader.passports` does.
    """
    now = timestamp(at)
    known = ((passport, passport.standing(now)) for passport in log.passports())
    return [(passport, status) for passport, status in known if query.takes(passport, status)]


def statuses(log: Reader, entries: Iterable[Logged], at: datetime) -> Mapping[int, str]:
    """Return how the passport of each passport entry stands, by the entry's index; whoever signed counts."""
    passports, now = Passports(log.policy()), timestamp(at)
    places = dict[int, str]()
    for entry in entries:
        passports.follow(entry)
        if entry.found.passport is not None:
            places[entry.index] = entry.found.passport.passport_id
    stands = {issued.claims.passport_id: issued.standing(now) for issued in passports.issued()}
    return {index: stands[passport_id] for index, passport_id in places.items() if passport_id in stands}


def log_key_file(named: Path | None, registry: Path, *, finishing: bool = False) -> Path:
    """Return the file of a log's private key: the one that was named, or that in the registry's folder.

    Where a change of keys was interrupted, nothing is signed with either but by what is `finishing` it.
    Raises `UsageError` ``registry.log-key``, `InputError` ``file.missing``.
    """
    path = named or registry / KEY_FILE
    if named is None and not finishing and (registry / NEXT_KEY).exists():
        raise UsageError(
            "registry.log-key",
            "a change of the log's key was interrupted",
            where=str(registry / NEXT_KEY),
            hint=f"finish it: certkit registry rotate-key {registry}",
        )
    if named is None and not path.exists():
        store.located(registry)
        raise InputError(
            "file.missing", "not found", where=str(path), hint="name the log's private key: --log-key FILE"
        )
    return path


def hand_over(
    registry: Registry,
    folder: Path,
    *,
    new: Ed25519PrivateKey | None,
    old: Callable[[], Ed25519PrivateKey],
    at: datetime,
    trust: Trust | None,
) -> VerifierKey:
    """Hand the log over to another key, or finish what was interrupted; return the new verifier key.

    Without a `new` key one is made, on the disk before it signs anything, and then takes the place of the
    key in the registry's folder. `old` is asked only where the old key still has to sign. Raises as
    `Registry.rotate` does.
    """
    kept = folder / NEXT_KEY
    coming = new or (load_log_key(kept) if kept.exists() else None)
    if coming is None or registry.vkey.public != coming.public_key().public_bytes_raw():
        leaving = old()
        # What is refused is refused before there is a key that nothing will use.
        registry.check_signing(leaving)
        if coming is None:
            keys.write_private(kept, make_log_key(), passphrase=None)
            coming = load_log_key(kept)
        registry.rotate(old=leaving, new=coming, at=at, trust=trust)
    if new is None:
        files.move(kept, folder / KEY_FILE)
    return registry.vkey
