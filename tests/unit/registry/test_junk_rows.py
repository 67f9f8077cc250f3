"""What somebody put beside a checkpoint: rows of ``cosignature``, and lines below the one that is served."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit.ground.errors import MismatchError
from certkit.ground.progress import SILENT
from certkit.registry.audit import audit
from certkit.registry.publish import export
from certkit.registry.writer import Registry
from certkit.tlog.checkpoint import Quorum
from tests.support.registries import AT, append, check, filled, opened, passport, poison, submitters
from tests.support.signers import Signer
from tests.support.witnesses import KEYS, TIME, A, B, line, note, taken, text

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.registry.audit import RegistryAudit
    from certkit.tlog.note import VerifierKey

PUT = "REPLACE INTO cosignature VALUES (?, ?, ?)"
JUNK: dict[str, tuple[str, object]] = {
    "bytes": ("x", b"\0junk"),
    "no bytes": (str(KEYS[0]), b""),
    "text": (str(KEYS[0]), "words"),
    "a number": (str(KEYS[0]), 7),
    "no key": ("x", line("other\n", "a.example/w", A, TIME)),
    "of another text": (str(KEYS[0]), line("other\n", "a.example/w", A, TIME)),
    "of no text": ("\0\x7f", b"\xff\n"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(tmp_path / "r", 1)
    return tmp_path / "r"


def report(folder: Path, log: VerifierKey, k: int = 0) -> RegistryAudit:
    return audit(
        folder, log=log, submitters=submitters(), check=check, quorum=Quorum.of(k, map(str, KEYS)), at=AT
    )


def key(folder: Path) -> VerifierKey:
    with Registry.open(folder) as registry:
        return registry.vkey


def repaired(folder: Path) -> list[str]:
    with opened(folder) as registry:
        return registry.repair()


@pytest.mark.parametrize("what", JUNK)
@pytest.mark.parametrize("size", [0, 1, "x"])
def test_a_row_that_is_no_cosignature_changes_nothing(folder: Path, what: str, size: object) -> None:
    log = key(folder)
    taken(folder, line(text(folder), "b.example/w", B, TIME))
    before = note(folder)
    poison(folder, PUT, size, *JUNK[what])
    assert note(folder) == before
    assert report(folder, log, k=1).findings == ()
    assert append(folder, passport(1)).index == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE tile SET hashes = zeroblob(length(hashes)) WHERE level = 0",
        "DELETE FROM tile",
    ],
)
def test_the_stored_tree_is_made_again_from_the_entries(folder: Path, damage: str) -> None:
    log = key(folder)
    append(folder, passport(1))
    whole = report(folder, log)
    poison(folder, damage)
    assert report(folder, log).total > 0
    assert len(repaired(folder)) == 1
    assert report(folder, log) == whole
    assert append(folder, passport(2)).index == 2


def test_nothing_is_made_again_from_entries_that_were_not_signed(folder: Path) -> None:
    append(folder, passport(1))
    poison(folder, "UPDATE leaf SET entry = x'00' WHERE idx = 0")
    poison(folder, "DELETE FROM tile")
    with pytest.raises(MismatchError, match="nothing was repaired") as caught:
        repaired(folder)
    assert caught.value.code == "registry.inconsistent"


def test_the_tree_that_is_served_has_the_registrys_lines_and_no_others(folder: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "out", key(folder)
    taken(folder, line(text(folder), "a.example/w", A, TIME))
    export(folder, out, passports=True, progress=SILENT)
    kept = (out / "checkpoint").read_bytes()
    raw = Signer(KEYS[1].name, Ed25519PrivateKey.from_private_bytes(b"\x08" * 32)).cosign(text(folder), TIME)
    false = type(raw)(raw.name, raw.key_id, raw.value[:-1] + bytes([raw.value[-1] ^ 1]))
    (out / "checkpoint").write_bytes(kept + false.line.encode())
    assert [one.code for one in report(out, log).findings] == ["registry.checkpoint"]
    assert export(folder, out, passports=True, progress=SILENT).written == 1
    assert (out / "checkpoint").read_bytes() == kept == note(folder)
    assert export(folder, out, passports=True, progress=SILENT).written == 0
    assert report(out, log, k=1).findings == ()
    # Who wants to keep what was cosigned there takes it in first.
    (out / "checkpoint").write_bytes(kept + raw.line.encode())
    taken(folder, (out / "checkpoint").read_bytes())
    export(folder, out, passports=True, progress=SILENT)
    assert report(out, log, k=2).findings == ()
