"""Builds the reference log, the folder registry/ of the checkout: the worked examples, as a public tree.

    python -m tests.reference_log             # says what is in it, and how many entries would be added
    python -m tests.reference_log --write     # adds them
    python -m tests.reference_log --write --anew    # begins another log, of the next `EDITION`

A log is never rewritten: where a format changed so that today's program cannot read it, another one takes its
place, under another key and so another origin. Where the program of today issues other passports than those
that were logged last, a further generation of the examples is appended, dated after the one before; where it
issues the same, nothing is. The same program makes the same bytes on the same log, everywhere.

Its keys are made from words that stand below. They are SPECIMENS: anyone can sign with them, so nothing that
they sign proves anything but that the program works. A checkpoint for every step is kept in
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

from certkit.assessment.bundles import assess_bundles
from certkit.bundle.writer import seal
from certkit.ground import canonical, files
from certkit.ground.progress import SILENT
from certkit.imports import ImportOptions, run
from certkit.passport import keys
from certkit.passport.issue import issue
from certkit.passport.trust import Trust, TrustedIssuer, TrustedKey
from certkit.registry import log as store
from certkit.registry.audit import inspect
from certkit.registry.entry import moment
from certkit.registry.heads import head_of
from certkit.registry.publish import export
from certkit.registry.reader import CHECKPOINT, Published
from certkit.registry.writer import Hand, Registry, admit, revoke
from certkit.simulation.simulate import simulate
from certkit.tlog.checkpoint import open_checkpoint
from certkit.tlog.note import Signer
from tests.support.registries import held

if TYPE_CHECKING:
    from certkit.passport.passport import Passport
    from certkit.registry.audit import RegistryAudit
    from certkit.tlog.checkpoint import Checkpoint
    from certkit.tlog.note import VerifierKey

ROOT: Final = Path(__file__).parents[1]
TREE: Final = ROOT / "registry"
CHECKPOINTS: Final = "checkpoints"
PARTS: Final = (CHECKPOINT, CHECKPOINTS, "tile", store.BLOBS)
START: Final = datetime(2026, 1, 15, 12, tzinfo=UTC)
GENERATION: Final = timedelta(days=120)
"""From the first entry of the examples to the first of those that another program issues."""
VALID: timedelta = timedelta(days=90)
NAME: Final = "SPECIMEN issuer"
_MAX_NOTE: Final = 1 << 18


def _key(words: str) -> Ed25519PrivateKey:
    seed = hashlib.sha256(f"certkit reference log, SPECIMEN key that anyone can make: {words}".encode())
    return Ed25519PrivateKey.from_private_bytes(seed.digest())


ISSUER: Final = _key("issuer")
EDITION: Final = 8
"""Which log this is; counted up where one is begun anew."""
LOG: Final = _key(f"log {EDITION}")


def trust(vkey: VerifierKey) -> Trust:
    """Return the policy that the log is audited with; its keys come from here and never from the tree."""
    key = TrustedKey(pem=keys.public_pem(ISSUER.public_key()))
    issuer = TrustedIssuer(name=NAME, keys=(key,))
    return Trust(issuers=(issuer,), logs=(str(vkey),), accept_specimens=True)


class _Work:
    """The log, made again as a registry in a folder for the time being."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self._folder, self._log, self._heads = folder, folder / "log", folder / "heads.db"
        self.vkey = Registry.init(self._log, "reference", LOG, at=START)
        self._policy = trust(self.vkey)
        self.checkpoints: list[bytes] = []
        if (tree / CHECKPOINT).exists():
            self._restore(Published(tree))
            shutil.copytree(tree / store.BLOBS, self._log / store.BLOBS, dirs_exist_ok=True)

    def _restore(self, tree: Published) -> None:
        entries = [data for batch in tree.batches() for _, data in batch]
        with self._opened() as registry, registry.turn(LOG) as turn:
            registry._log.extend(entries, turn.signer)
            turn.index.rebuild()
            if registry._log.note() != tree.note():
                raise SystemExit("registry/ holds another log, or a damaged one: nothing is written")

    def _opened(self) -> Registry:
        return Registry.open(self._log, heads=self._heads)

    def _last(self) -> int:
        """Return the number of the generation that was logged last, -1 for none."""
        with self._opened() as registry:
            times = [moment(one.entry.body.issued_at) for one in held(registry)]
        return max((time - START) // GENERATION for time in times) if times else -1

    def grow(self) -> None:
        """Append a generation of the examples, unless they are what was logged last."""
        last = self._last()
        if last >= 0:
            issued = {one.passport_id for _, one in self._examples(last)}
            with self._opened() as registry:
                logged = {one.entry.passport_id for one in held(registry)}
            if issued <= logged:
                return
        self._append(last + 1)

    def _examples(self, generation: int) -> list[tuple[datetime, Passport]]:
        """Issue the worked example, and those of a simulated agent that is tested twice and gets worse."""
        garden = self._folder / f"garden-{generation}"
        source = ROOT / "tests" / "data" / "agentdojo" / "export.jsonl"
        run(source, garden, ImportOptions(), SILENT)
        good, weak = (self._simulated(generation, seed, tier) for seed, tier in ((1, 2), (2, 0)))
        start = START + generation * GENERATION
        days = [start, start + timedelta(days=1), start + timedelta(days=30)]
        first = self._issue(garden, generation + 1, days[0])
        second = self._issue(good, 2 * generation + 1, days[1])
        third = self._issue(weak, 2 * generation + 2, days[2], supersedes=second.passport_id)
        return list(zip(days, (first, second, third), strict=True))

    def _simulated(self, generation: int, seed: int, tier: int) -> Path:
        bundle = self._folder / f"simulated-{generation}-{seed}"
        simulate(bundle, seed=seed, runs=300, domains=3, tier_target=tier)
        return bundle

    def _issue(self, bundle: Path, attempt: int, at: datetime, supersedes: str | None = None) -> Passport:
        """Issue the passport of a bundle that declares which attempt it is."""
        manifest = canonical.loads((bundle / "bundle.json").read_bytes())
        manifest["protocol"]["attempt"] = attempt
        manifest = {key: value for key, value in manifest.items() if key != "files"}
        (bundle / "bundle.json").write_bytes(canonical.pretty(manifest).encode())
        seal(bundle)
        return issue(
            assess_bundles(bundle),
            issuer=NAME,
            key=ISSUER,
            relation_to_evaluator="same",
            not_before=at,
            not_after=at + VALID,
            supersedes=supersedes,
        )

    def _append(self, generation: int) -> None:
        """Log the examples, day by day, and revoke the last one."""
        examples = self._examples(generation)
        for at, one in examples:
            admit(
                self._log,
                one.to_json(),
                trust=self._policy,
                submitter=ISSUER,
                log_key=LOG,
                heads=self._heads,
                at=at,
            )
            self._remember()
        at = START + generation * GENERATION + timedelta(days=31)
        hand = Hand(trust=self._policy, submitter=ISSUER, log_key=LOG, at=at)
        with self._opened() as registry:
            last = examples[-1][1].passport_id
            revoke(registry, last, reason="operation-below-threshold", detail=None, hand=hand)
        self._remember()

    def _remember(self) -> None:
        with Registry.open(self._log) as registry:
            self.checkpoints.append(registry.checkpoint())

    def export(self, out: Path) -> None:
        """Bring a tree up to date, with a checkpoint for each step."""
        export(self._log, out, passports=True, progress=SILENT)
        for checkpoint in self.checkpoints:
            files.write(out / CHECKPOINTS / f"{head_of(checkpoint).size:06}", checkpoint)


def grow(tree: Path) -> int:
    """Bring the log in a tree, or an empty folder, up to date; return how many entries were added."""
    before = size(tree)
    with tempfile.TemporaryDirectory() as name:
        work = _Work(Path(name), tree)
        work.grow()
        work.export(tree)
    return size(tree) - before


def size(tree: Path) -> int:
    """Return how many entries the log in a tree has, 0 where there is none."""
    path = tree / CHECKPOINT
    return head_of(files.read(path, limit=_MAX_NOTE)).size if path.exists() else 0


def remembered(tree: Path) -> list[Checkpoint]:
    """Return the checkpoints that are kept beside the log, the smallest first, each signed by it."""
    return [signed(files.read(path, limit=_MAX_NOTE)) for path in sorted((tree / CHECKPOINTS).iterdir())]


def signed(data: bytes) -> Checkpoint:
    """Return the checkpoint in a note that the log's key signed; raise `CertkitError` for any other."""
    return open_checkpoint(data, key_of(data)).checkpoint


def key_of(data: bytes) -> VerifierKey:
    """Return the verifier key of the log whose origin a checkpoint states: the name is taken, not the key."""
    return Signer(head_of(data).origin, LOG).vkey


def audited(tree: Path, *more: Checkpoint) -> list[RegistryAudit]:
    """Audit a tree against its specimen policy, once for each checkpoint that it has to go on from."""
    policy = trust(key_of(files.read(tree / CHECKPOINT, limit=_MAX_NOTE)))
    return [inspect(tree, trust=policy, since=one) for one in (*remembered(tree), *more)]


def main(arguments: list[str]) -> int:
    """Say what is there and what would be added, or add it; return the exit code."""
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "tree"
        made.mkdir()
        for part in () if "--anew" in arguments else PARTS:
            if (TREE / part).is_dir():
                shutil.copytree(TREE / part, made / part)
            elif (TREE / part).exists():
                shutil.copyfile(TREE / part, made / part)
        added = grow(made)
        reports = audited(made)
        for finding in {finding.message for report in reports for finding in report.findings}:
            print(finding)
        if any(report.total for report in reports):
            return 1
        done = "added" if "--write" in arguments else "would be added: --write adds them"
        last = reports[-1]
        print(f"{last.origin}: {last.size} entries, {last.passports} passports; {added} entries {done}")
        if "--write" in arguments:
            for part in PARTS if "--anew" in arguments else ():
                if (TREE / part).is_dir():
                    shutil.rmtree(TREE / part)
            shutil.copytree(made, TREE, dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
