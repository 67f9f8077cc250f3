"""``certkit simulate`` and ``certkit demo``: evidence that a simulation drew, to learn and to test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import structs

from certkit.assessment.bundles import attains_tier
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.issue import document, screen
from certkit.cli.emit import answer, emit, progress
from certkit.cli.views.assessment import show_evaluation
from certkit.ground import canonical, files
from certkit.simulation.simulate import simulate as draw

if TYPE_CHECKING:
    from datetime import datetime

    from certkit.api.issuing import IssuedFiles
    from certkit.cli.emit import Line
    from certkit.report.context import Given

_TIER: Final = 2
"""The tier that the agent of the demonstration aims at, and that is asked for."""


def simulate(
    out: opt.Out,
    seed: opt.Seed = 1,
    runs: Annotated[int, opt.RUNS(min=1)] = 1000,
    domains: opt.DomainCount = 5,
    tier_target: Annotated[
        int,
        typer.Option("--tier-target", min=0, max=3, help="The tier that the agent shall attain; 0: none."),
    ] = 1,
    icc: opt.Icc = 0.05,
    fault_mix: opt.FaultMix = None,
    agent: Annotated[str, opt.AGENT(help="What the simulated agent is called.")] = "simulated-agent",
    agent_version: Annotated[str, opt.AGENT_VERSION()] = "1.0.0",
    no_seal: opt.NoSeal = False,
) -> None:
    """Write a bundle of simulated evidence: to learn, to test, never to certify.

    The same seed gives the same bytes. The manifest says that the evidence is simulated.

    Example: certkit simulate -o bundle --seed 7 --runs 1000 --tier-target 2
    """
    simulated = draw(
        out,
        seed=seed,
        runs=runs,
        domains=domains,
        tier_target=tier_target,
        icc=icc,
        fault_mix=fault_mix,
        agent=agent,
        version=agent_version,
        seal=not no_seal,
        attains=attains_tier,
        progress=progress(),
    )
    told = f"{out}: {simulated.runs:,} simulated records, tier target {tier_target}, seed {seed}"
    document = answer("simulation", bundle=out, seed=seed, records=simulated.runs)
    emit(document, [told], hints=[f"certkit assess {out}"])


def demo(out: opt.Out = Path("build/demo"), seed: opt.Seed = 1) -> None:
    """Run the whole chain on simulated evidence: simulate, assess, issue, register, report.

    Example: certkit demo -o build/demo
    """
    issued = _demonstrate(out, seed=seed, at=context.now())
    emit(document(issued, out), _demonstrated(issued, out))


def _demonstrate(out: Path, *, seed: int, at: datetime) -> IssuedFiles:
    """Write the demonstration into a new folder: bundle, context, the issued files, registry and policy.

    The policy accepts specimens and requires no proof of registration. Keys are drawn from the operating
    system's randomness; everything else follows from `seed` and the time `at`.
    """
    # Loaded here, since 'certkit simulate' needs none of it.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    from certkit.api.issuing import Logging, own_trust, write_issued  # noqa: PLC0415
    from certkit.api.judging import judge  # noqa: PLC0415
    from certkit.assessment.assessment import Question  # noqa: PLC0415
    from certkit.assessment.profile_file import DEFAULT_PROFILE, load_profile  # noqa: PLC0415
    from certkit.passport import keys  # noqa: PLC0415
    from certkit.passport.issue import VALIDITY, issue  # noqa: PLC0415
    from certkit.registry.writer import Registry  # noqa: PLC0415

    name, table = "certkit demo", load_profile(DEFAULT_PROFILE)
    with files.building(out) as folder:
        bundle = folder / "bundle"
        draw(
            bundle,
            seed=seed,
            runs=1000,
            domains=5,
            tier_target=_TIER,
            attains=attains_tier,
            progress=progress(),
        )
        given = _context(bundle, table.digest, at, at + VALIDITY)
        files.write(folder / "context.json", given.data)
        key, log_key = keys.generate("ed25519"), Ed25519PrivateKey.generate()
        keys.write_private(folder / "issuer-key.pem", key, passphrase=None)
        vkey = Registry.init(folder / "registry", "demo", log_key, at=at)
        trust = structs.replace(own_trust(name, key), logs=(str(vkey),), accept_specimens=True)
        files.write(folder / "trust.json", trust.to_json())
        judged = judge([bundle], table, Question(required_tier=_TIER), given, progress=progress())
        passport = issue(
            judged,
            issuer=name,
            key=key,
            not_before=at,
            not_after=at + VALIDITY,
            relation_to_evaluator="same",
            relation_to_developer="same",
            context=given.digest,
        )
        heads = folder / "heads.db"
        issued = write_issued(
            folder / "issued",
            judged,
            passport,
            key=key,
            today=at.date(),
            given=given,
            logging=Logging(registry=folder / "registry", log_key=log_key, heads=heads, trust=trust, at=at),
        )
        heads.unlink()  # a demonstration leaves nothing outside its folder
        files.lift(folder / "issued")
    return issued


def _context(bundle: Path, profile: str, at: datetime, until: datetime) -> Given:
    """Return the packaged example of a context, bound to the demonstration's evidence and its time."""
    from certkit.bundle.folder import open_bundle  # noqa: PLC0415 - 'certkit simulate' needs none of it
    from certkit.report.context import MAX_BYTES, read_context  # noqa: PLC0415 - the same

    template = files.packaged("templates", "context", "example.json")
    example = canonical.loads(files.read(template, limit=MAX_BYTES))
    example["about"] = {"bundles": [open_bundle(bundle).facts.digest], "profile": profile, "tier": _TIER}
    for dated in (example["reviewers"][0], example["hazard_identification"], example["decision"]):
        dated["date"] = f"{at:%Y-%m-%d}"
    for ending in (example["answers"][0], example["decision"]):
        ending["until"] = f"{until:%Y-%m-%d}"
    return read_context(canonical.pretty(example).encode(), where="context.json")


def _demonstrated(issued: IssuedFiles, out: Path) -> Iterator[Line]:
    yield from show_evaluation(issued.judged, verbose=False)
    yield ""
    yield from screen(issued, out)
    yield ""
    yield "Try next:"
    yield f"  certkit verify {out}/passport.json --trust {out}/trust.json \\"
    yield f"    --bundle {out}/bundle --replay"
    yield f"  certkit registry audit {out}/registry --trust {out}/trust.json"
    yield "and on a real log:"
    yield "  certkit import LOG -o my-bundle"
    yield "  certkit assess my-bundle"
    yield f"  certkit issue my-bundle --key {out}/issuer-key.pem --issuer Me -o my-passport"
