"""Times that others state: cosignatures for a time to come, dates of what is no entry, words too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.passport.trust import Witnesses
from certkit.passport.verification import verify
from certkit.registry.drifts import Compared, logged
from certkit.registry.entry import LIMIT, ROW_LENGTH
from certkit.registry.registry import Registry
from certkit.tlog.checkpoint import with_signatures
from tests.support.lineages import NOW, clustered, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY
from tests.support.signers import Signer
from tests.support.standings import DAY, drafted, file, offline, rows, standing

if TYPE_CHECKING:
    from pathlib import Path

WITNESSES = [
    Signer(f"w{number}.example", Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))
    for number in (7, 8, 9)
]
TWO = Witnesses(k=2, keys=tuple(str(one.witness_vkey) for one in WITNESSES))


def cosigned(folder: Path, *days: int) -> None:
    """Have the first witnesses cosign the log as it stands, each on a day."""
    with Registry.open(folder) as registry:
        data = registry.checkpoint()
    text = data.decode().partition("\n\n")[0] + "\n"
    times = [int((NOW + day * DAY).timestamp()) for day in days]
    lines = [one.cosign(text, time) for one, time in zip(WITNESSES, times, strict=False)]
    rows(folder, "UPDATE checkpoint SET note = ?", with_signatures(data, lines))


@pytest.mark.parametrize(
    ("days", "standing_so", "registered"),
    [
        ((1, 1), ("passed", False), ("passed", None)),
        ((1, 30_000, 2), ("passed", False), ("passed", None)),
        ((1, 30_000), ("skipped", True), ("skipped", "passport.unavailable")),
        ((30_000, 30_000), ("skipped", True), ("skipped", "passport.unavailable")),
    ],
)
def test_a_cosignature_for_a_time_to_come_makes_no_quorum(
    tmp_path: Path,
    days: tuple[int, ...],
    standing_so: tuple[str, bool],
    registered: tuple[str, str | None],
) -> None:
    folder = tmp_path / "r"
    trust = policy(new(folder), witnesses=TWO)
    logged = log(folder, one := issue(1))
    cosigned(folder, *days)
    with Registry.open(folder) as registry:
        proof = registry.prove(logged.index).to_bytes()
    for found in (standing(folder, one, trust, days=2), offline(file(folder, 0, days=2), one, trust, days=2)):
        assert (found.status, "of unknown age" in found.detail) == standing_so
    verified = verify(one.to_json(), trust=trust, at=NOW + 2 * DAY, proof=proof)
    found = next(step for step in verified.steps if step.id == "registry")
    assert (found.status, found.code) == registered


def slip_raw(folder: Path, data: bytes) -> None:
    with Registry.open(folder, heads=heads(folder)) as registry, registry.turn(LOG_KEY) as turn:
        registry._log.extend([data], turn.signer)


def test_a_drift_with_long_names_has_room(tmp_path: Path) -> None:
    new(tmp_path / "r")
    log(tmp_path / "r", first := issue(1, summary=clustered(900)))
    told = log(tmp_path / "r", second := issue(2, summary=clustered(600))).compared
    assert told is not None
    found = told.drift
    for letter in ("x", "\N{GRINNING FACE}"):
        long = tuple(structs.replace(row, domain=letter * 200) for row in found.behaviour)
        said = logged(
            second.passport_id, Compared(first.passport_id, structs.replace(found, behaviour=long * 8))
        )
        assert said is not None
        assert {len(row.encode()) <= ROW_LENGTH + 2 for row in said.rows} == {True}
        assert said.rows[0].endswith("\N{HORIZONTAL ELLIPSIS}")
        assert len(drafted("drift", "-/courier", said)) < LIMIT
