"""Whose key a checkpoint is opened with: that of the log in its text, whatever lines stand below it."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.ground import canonical
from certkit.ground.errors import CertkitError
from certkit.ground.progress import SILENT
from certkit.passport import trust as policies
from certkit.passport.verify import verify
from certkit.registry.audit import inspect
from certkit.registry.publish import export
from certkit.registry.reader import checkpoint_in, log_key
from certkit.registry.status import FileStatus, write
from certkit.registry.writer import Registry, gather
from certkit.tlog.checkpoint import Checkpoint, sign_checkpoint
from certkit.tlog.note import KeyType, Signature, VerifierKey
from tests.support.lineages import NOW, heads, issue, log, new, policy
from tests.support.registries import LOG_KEY, STRANGER
from tests.support.signers import Signer
from tests.support.standings import DAY, standing, step, unseen

if TYPE_CHECKING:
    from pathlib import Path

OTHER = Signer("certkit.other/1", STRANGER)
LATER = Ed25519PrivateKey.from_private_bytes(b"\x0b" * 32)


def junk(key: VerifierKey) -> str:
    return Signature(key.name, key.key_id, bytes(64)).line


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("own_first", [True, False])
def test_a_line_in_the_name_of_another_log_of_the_policy_hurts_nobody(
    tmp_path: Path, *, first: bool, own_first: bool
) -> None:
    folder, out = tmp_path / "r", tmp_path / "out"
    vkey = new(folder)
    proof = log(folder, one := issue(1)).proof.to_bytes()
    word = write(folder, 0, key=LOG_KEY, heads=heads(folder), at=NOW + DAY)
    export(folder, out, passports=True, progress=SILENT)
    logs = (str(vkey), str(OTHER.vkey)) if own_first else (str(OTHER.vkey), str(vkey))
    trust = structs.replace(policy(vkey), logs=logs, require=("registry", "status"))

    def soiled(note: str) -> str:
        text, lines = note.split("\n\n")
        lines = junk(OTHER.vkey) + lines if first else lines + junk(OTHER.vkey)
        return f"{text}\n\n{lines}"

    (out / "checkpoint").write_text(soiled((out / "checkpoint").read_text()))
    assert standing(out, one, trust).status == "passed"
    assert inspect(out, trust=trust).findings == ()
    head, note = proof.decode().split("\n\n", 1)
    found = verify(one.to_json(), trust=trust, at=NOW + DAY, proof=f"{head}\n\n{soiled(note)}".encode())
    assert [item.status for item in found.steps if item.id == "registry"] == ["passed"]
    document = canonical.loads(word)
    assert isinstance(document, dict)
    document["checkpoint"] = soiled(str(document["checkpoint"]))
    beside = FileStatus(canonical.canonical(document), trust=trust, at=NOW + DAY, seen=unseen)
    assert step(one, trust, status=beside).status == "passed"


def test_no_log_of_the_policy_speaks_for_another(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    vkey = new(folder)
    trust = structs.replace(policy(vkey), logs=(str(vkey), str(OTHER.vkey)))
    with Registry.open(folder) as registry:
        head, note = registry.head(), registry.checkpoint()
    forged = sign_checkpoint(Checkpoint(vkey.name, head.size, head.root), Signer(OTHER.name, STRANGER))
    (tmp_path / "own").write_bytes(note)
    (tmp_path / "forged").write_bytes(forged)
    assert checkpoint_in(tmp_path / "own", trust) == head
    with pytest.raises(CertkitError) as caught:
        checkpoint_in(tmp_path / "forged", trust)
    assert caught.value.code == "tlog.unsigned"
    with pytest.raises(CertkitError) as caught:
        log_key(forged, trust)
    assert caught.value.code == "registry.untrusted-log"
    assert "lists last" in str(caught.value)


def test_an_audit_hears_no_witness_with_a_key_that_the_log_gave_up(tmp_path: Path) -> None:
    """Though the policy does not list that key as one of the log."""
    folder = tmp_path / "r"
    new(folder)
    with Registry.open(folder, heads=heads(folder)) as registry:
        _, vkey = registry.rotate(old=LOG_KEY, new=LATER, at=NOW)
        for key, codes in ((LOG_KEY, ["registry.witnesses"]), (STRANGER, [])):
            signer = Signer("independent.example", key)
            line = signer.cosign(registry.head().text, int(NOW.timestamp())).line.encode()
            gather(registry, [line], witnesses=[signer.witness_vkey], at=NOW)
            quorum = policies.Witnesses(k=1, keys=(str(signer.witness_vkey),))
            report = inspect(folder, trust=policy(vkey, witnesses=quorum), at=NOW)
            assert [one.code for one in report.findings] == codes


def test_no_key_of_a_log_is_a_witness(tmp_path: Path) -> None:
    """Neither the present one nor one that was given up, by whatever name, and of whatever log."""
    old, new_key = new(tmp_path / "r"), Signer("certkit.lab/1", LATER).vkey
    independent = VerifierKey("w.example", KeyType.COSIGNATURE, b"\7" * 32)
    for logs in permutations((str(old), str(new_key), str(OTHER.vkey))):
        for key in (old, new_key, OTHER.vkey):  # a log's key in the form of a witness's
            witness = VerifierKey("independent.example", KeyType.COSIGNATURE, key.public)
            names = (str(independent), str(witness))
            trust = structs.replace(policy(), logs=logs, witnesses=policies.Witnesses(keys=names))
            with pytest.raises(CertkitError) as caught:
                policies.parse(trust.to_json(), "trust.json")
            assert (caught.value.code, caught.value.exit_code) == ("trust.invalid", 3)
            assert "'independent.example' has a key of the log" in str(caught.value)
            assert "remove this witness" in str(caught.value.hint)
            kept = structs.replace(trust, witnesses=policies.Witnesses(k=1, keys=names[:1]))
            assert policies.parse(kept.to_json(), "trust.json") == kept
