"""``certkit simulate``: evidence that a simulation drew, to learn and to test."""

from __future__ import annotations

from typing import Annotated

import typer

from certkit.assessment.bundles import attains_tier
from certkit.cli import options as opt
from certkit.cli.emit import answer, emit, progress
from certkit.simulation.simulate import simulate as draw


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
