"""``certkit simulate``."""

from __future__ import annotations

from typing import Annotated

import typer

from certkit.cli import output
from certkit.cli.options import DomainCount, FaultMix, Icc, Json, Out, Quiet, mix
from certkit.cli.views.bar import progress


def simulate(
    out: Out,
    seed: Annotated[
        int, typer.Option("--seed", min=0, envvar="CERTKIT_SEED", help="Seed of every draw.")
    ] = 1,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs, nominal ones included.")] = 1000,
    domains: DomainCount = 5,
    tier_target: Annotated[
        int,
        typer.Option("--tier-target", min=0, max=3, help="The tier that the agent shall attain; 0: none."),
    ] = 1,
    icc: Icc = 0.05,
    fault_mix: FaultMix = None,
    no_seal: Annotated[bool, typer.Option("--no-seal", help="Leave the bundle open for additions.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a bundle of simulated evidence: to learn, to test, never to certify.

    The same seed gives the same bytes. The manifest says that the evidence is simulated.

    Example: certkit simulate -o bundle --seed 7 --runs 1000 --domains 5 --tier-target 2
    """
    from certkit.simulation.simulate import simulate as write  # noqa: PLC0415 - keeps the help fast

    simulated = write(
        out,
        seed=seed,
        runs=runs,
        domains=domains,
        tier_target=tier_target,
        icc=icc,
        fault_mix=mix(fault_mix),
        seal=not no_seal,
        progress=progress(hidden=quiet or json),
    )
    if json:
        output.document(
            {
                "schema": "urn:certkit:simulation:v1",
                "bundle": str(out),
                "seed": seed,
                "records": simulated.runs,
            }
        )
    elif not quiet:
        output.say(f"{out}: {simulated.runs:,} simulated records, tier target {tier_target}, seed {seed}")
        output.note(f"hint: certkit assess {out}")
