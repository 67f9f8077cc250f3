"""``certkit simulate`` and ``certkit demo``: evidence that a simulation drew, to learn and to test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certkit import workflow
from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.commands.issue import document, screen
from certkit.cli.emit import emit, progress
from certkit.cli.views.assessment import show_assessment
from certkit.ground.document import Count, Document, GivenPath
from certkit.simulation.simulate import simulate as draw

if TYPE_CHECKING:
    from certkit.cli.emit import Line
    from certkit.workflow import IssuedFiles


class Simulation(Document, frozen=True, kw_only=True, tag="urn:certkit:simulation:v1"):
    """What certkit simulate prints."""

    bundle: GivenPath
    seed: Count
    records: Count


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
        progress=progress(),
    )
    told = f"{out}: {simulated.runs:,} simulated records, tier target {tier_target}, seed {seed}"
    emit(Simulation(bundle=out, seed=seed, records=simulated.runs), [told], hints=[f"certkit assess {out}"])


def demo(out: opt.Out = Path("build/demo"), seed: opt.Seed = 1) -> None:
    """Run the whole chain on simulated evidence: simulate, assess, issue, register, report.

    Example: certkit demo -o build/demo
    """
    issued = workflow.demo(out, seed=seed, at=context.now(), progress=progress())
    emit(document(issued, out), _demonstrated(issued, out))


def _demonstrated(issued: IssuedFiles, out: Path) -> Iterator[Line]:
    yield from show_assessment(issued.assessment, verbose=False)
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
