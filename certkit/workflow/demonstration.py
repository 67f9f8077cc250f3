"""The demonstration: the whole chain on simulated evidence, in one folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from certkit.bundle import context
from certkit.bundle.folder import open_bundle
from certkit.ground import canonical, files
from certkit.ground.progress import SILENT, Progress
from certkit.passport import keys
from certkit.passport.issuing import VALIDITY, Issuer
from certkit.registry.registry import Registry
from certkit.simulation.simulate import simulate
from certkit.workflow.issuing import IssuedFiles, Logging, issue, own_trust
from certkit.workflow.named import DEFAULT_PROFILE, load_profile

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from certkit.bundle.context import Given


TIER: Final = 2
"""The tier that the simulated agent aims at, and that is asked for."""


def demo(out: Path, *, seed: int, at: datetime, progress: Progress = SILENT) -> IssuedFiles:
    """Run the whole chain on simulated evidence of a Tier 2 agent: simulate, issue, register, report.

    `out` becomes a folder with ``bundle/``, ``context.json``, the files of `issue`, ``issuer-key.pem``,
    ``registry/`` and a ``trust.json`` that accepts specimens and requires no proof of registration. Keys are
    drawn from the operating system's randomness; everything else follows from `seed` and the time `at`.
    """
    name = "certkit demo"
    with files.building(out) as folder:
        simulate(folder / "bundle", seed=seed, runs=1000, domains=5, tier_target=TIER, progress=progress)
        given = _context(folder / "bundle", at)
        files.write(folder / "context.json", given.data)
        key, log_key = keys.generate("ed25519"), Ed25519PrivateKey.generate()
        keys.write_private(folder / "issuer-key.pem", key, passphrase=None)
        vkey = Registry.init(folder / "registry", "demo", log_key, at=at)
        trust = structs.replace(own_trust(name, key), logs=(str(vkey),), accept_specimens=True)
        files.write(folder / "trust.json", trust.to_json())
        issued = issue(
            folder / "bundle",
            folder / "issued",
            key=key,
            issuer=Issuer(name=name, relation_to_evaluator="same", relation_to_developer="same"),
            at=at,
            required_tier=TIER,
            context=given,
            logging=Logging(
                registry=folder / "registry", log_key=log_key, heads=folder / "heads.db", trust=trust
            ),
            progress=progress,
        )
        (folder / "heads.db").unlink()  # a demonstration leaves nothing outside its folder
        files.lift(folder / "issued")
    return issued


def _context(bundle: Path, at: datetime) -> Given:
    """Return the packaged example of a context, bound to the demonstration's evidence and its time."""
    template = files.packaged("templates", "context", "example.json")
    document = canonical.loads(files.read(template, limit=context.MAX_BYTES))
    document["about"] = {
        "bundles": [open_bundle(bundle).facts.digest],
        "profile": load_profile(DEFAULT_PROFILE).digest,
        "tier": TIER,
    }
    document["reviewers"][0]["date"] = f"{at:%Y-%m-%d}"
    document["answers"][0]["until"] = f"{at + VALIDITY:%Y-%m-%d}"
    return context.read(canonical.pretty(document).encode(), where="context.json")
