"""Builds the reference log, the folder registry/ of the checkout: the worked examples, as a public tree.

    python -m tests.reference_log             # builds it anew in a temporary folder and says what is in it
    python -m tests.reference_log --write     # writes registry/, if the new log goes on from the one there
    python -m tests.reference_log --anew      # begins another log there, as long as none was released

Its keys are made from words that stand below. They are SPECIMENS: anyone can sign with them, so nothing that
they sign proves anything but that the program works. Every checkpoint that was ever committed is kept in
registry/checkpoints/, and the log has to go on from each of them.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from certkit import canonical, evidence, files, passport, workflow
from certkit.evidence.importers import ImportOptions, run
from certkit.evidence.simulate import simulate
from certkit.passport import keys
from certkit.progress import SILENT
from certkit.registry import Audit, Registry
from certkit.registry.admission import admit, inspect
from certkit.registry.ending import Hand, note, revoke
from certkit.registry.export import export
from certkit.registry.heads import read
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.note import Signer

if TYPE_CHECKING:
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey

ROOT: Final = Path(__file__).parents[1]
TREE: Final = ROOT / "registry"
CHECKPOINTS: Final = "checkpoints"
START: Final = datetime(2026, 1, 15, 12, tzinfo=UTC)
_MAX_NOTE: Final = 1 << 18


def _key(words: str) -> Ed25519PrivateKey:
    seed = hashlib.sha256(f"certkit reference log, SPECIMEN key that anyone can make: {words}".encode())
    return Ed25519PrivateKey.from_private_bytes(seed.digest())


ISSUER: Final = _key("issuer")
LOG: Final = _key("log")


def trust(vkey: VerifierKey) -> passport.Trust:
    """Return the policy that the log is audited with; its keys come from here and never from the tree."""
    key = passport.TrustedKey(pem=keys.public_pem(ISSUER.public_key()))
    issuer = passport.TrustedIssuer(name="SPECIMEN issuer", keys=(key,))
    return passport.Trust(issuers=(issuer,), logs=(str(vkey),), accept_specimens=True)


def build(out: Path) -> VerifierKey:
    """Build the log as an exported tree in `out`, with a checkpoint for each step; return its key."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        vkey = Registry.init(work / "log", "reference", LOG, at=START)
        steps = _Steps(work, trust(vkey))
        steps.run()
        export(work / "log", out, passports=True, progress=SILENT)
        for checkpoint in steps.checkpoints:
            files.write(out / CHECKPOINTS / f"{read(checkpoint).size:06}", checkpoint)
    return vkey


class _Steps:
    """What happens in the log, day by day."""

    def __init__(self, work: Path, policy: passport.Trust) -> None:
        self._work, self._policy = work, policy
        self.checkpoints: list[bytes] = []

    def run(self) -> None:
        """Log the worked example, then a simulated agent that is tested twice, drifts, and is revoked."""
        garden = self._work / "garden"
        source = ROOT / "tests" / "data" / "agentdojo" / "export.jsonl"
        run("agentdojo", source, garden, ImportOptions(), SILENT)
        self._log(garden, 0)
        first = self._log(self._simulated("good", 1, 2), 1)
        second = self._log(self._simulated("weak", 2, 0), 30, supersedes=first)
        with Registry.open(self._work / "log", heads=self._work / "heads.db") as registry:
            hand = Hand(trust=self._policy, submitter=ISSUER, log_key=LOG, at=START + timedelta(days=31))
            revoke(registry, second, reason="operation-below-threshold", detail=None, hand=hand)
            note(registry, None, "SPECIMEN log: its keys can be made by anyone", hand=hand)
        self._remember()

    def _simulated(self, name: str, attempt: int, tier: int) -> Path:
        bundle = self._work / name
        simulate(bundle, seed=attempt, runs=300, domains=3, tier_target=tier)
        manifest = canonical.loads((bundle / "bundle.json").read_bytes())
        manifest["protocol"]["attempt"] = attempt
        manifest = {key: value for key, value in manifest.items() if key != "files"}
        (bundle / "bundle.json").write_bytes(canonical.pretty(manifest).encode())
        evidence.seal(bundle)
        return bundle

    def _log(self, bundle: Path, day: int, *, supersedes: str | None = None) -> str:
        at = START + timedelta(days=day)
        opened = evidence.open_bundle(bundle)
        summary = evidence.summarise(opened)
        judged = workflow.assess(bundle)
        signed = passport.issue(
            judged,
            summary,
            issuer=passport.Issuer(name="SPECIMEN issuer", relation_to_evaluator="same"),
            key=ISSUER,
            not_before=at,
            not_after=at + timedelta(days=90),
            supersedes=None if supersedes is None else canonical.Digest(supersedes),
        )
        admit(
            self._work / "log",
            signed.to_json(),
            trust=self._policy,
            submitter=ISSUER,
            log_key=LOG,
            heads=self._work / "heads.db",
            at=at,
        )
        self._remember()
        return signed.passport_id

    def _remember(self) -> None:
        with Registry.open(self._work / "log") as registry:
            self.checkpoints.append(registry.checkpoint())


def remembered(tree: Path) -> list[Checkpoint]:
    """Return the checkpoints that were ever committed, the smallest first, each signed by the log."""
    found = sorted((tree / CHECKPOINTS).iterdir())
    notes = [files.read(path, limit=_MAX_NOTE) for path in found]
    return [open_checkpoint(data, key_of(data)).checkpoint for data in notes]


def key_of(data: bytes) -> VerifierKey:
    """Return the verifier key of the log whose origin a checkpoint states: the name is taken, not the key."""
    return Signer(read(data).origin, LOG).vkey


def audited(tree: Path) -> list[Audit]:
    """Audit a tree against its specimen policy, once for each checkpoint that it has to go on from."""
    policy = trust(key_of(files.read(tree / "checkpoint", limit=_MAX_NOTE)))
    return [inspect(tree, trust=policy, since=one) for one in remembered(tree)]


def main(arguments: list[str]) -> int:
    """Build it; write it where asked to and permitted; return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "tree"
        build(made)
        if "--write" in arguments and (TREE / "checkpoint").exists():
            shutil.copytree(TREE / CHECKPOINTS, made / CHECKPOINTS, dirs_exist_ok=True)
        reports = audited(made)
        for finding in {finding.message for report in reports for finding in report.findings}:
            print(finding)
        if any(report.total for report in reports):
            return 1
        print(f"{reports[-1].origin}: {reports[-1].size} entries, {reports[-1].passports} passports")
        if {"--write", "--anew"} & set(arguments):
            for old in ("checkpoint", "tile", "blobs", CHECKPOINTS):
                shutil.rmtree(TREE / old, ignore_errors=True)
            shutil.copytree(made, TREE, dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
