"""Times that others state: cosignatures for a time to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.passport.trust import Witnesses
from certkit.passport.verify import verify
from certkit.registry.writer import Registry
from certkit.tlog.checkpoint import with_signatures
from tests.support.lineages import NOW, issue, log, new, policy
from tests.support.signers import Signer
from tests.support.standings import DAY, file, offline, rows, standing

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
