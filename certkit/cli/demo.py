"""``certkit demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certkit.cli import output
from certkit.cli.bar import progress
from certkit.cli.options import Json, Quiet


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write.")] = Path("build/demo"),
    seed: Annotated[
        int, typer.Option("--seed", min=0, envvar="CERTKIT_SEED", help="Seed of the simulation.")
    ] = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate the evidence of a Tier 2 agent, seal it, assess it, and tell what to try next.

    Example: certkit demo -o build/demo
    """
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast

    result = workflow.demo(out, seed=seed, progress=progress(hidden=quiet or json))
    if json:
        output.document(result.to_dict())
    elif not quiet:
        from certkit.cli.render import show_assessment  # noqa: PLC0415 - only where a table is drawn

        show_assessment(result, verbose=False)
        output.say()
        output.say(f"Written: {out}/bundle/ (the evidence), {out}/assessment.json (the verdict)")
        output.say("Try next:")
        output.say(f"  certkit bundle show {out}/bundle")
        output.say(f"  certkit assess {out}/bundle --require-tier 3")
        output.say("  certkit import agentdojo LOG.jsonl.gz -o my-bundle && certkit assess my-bundle")
