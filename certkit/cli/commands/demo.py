"""``certkit demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from certkit.cli import clock, output
from certkit.cli.options import Json, Quiet
from certkit.cli.views.bar import progress


def demo(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The folder to write; must not exist or be empty.")
    ] = Path("build/demo"),
    seed: Annotated[
        int, typer.Option("--seed", min=0, envvar="CERTKIT_SEED", help="Seed of the simulation.")
    ] = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the whole chain on simulated evidence: simulate, assess, issue, register, report.

    Example: certkit demo -o build/demo
    """
    from certkit import workflow  # noqa: PLC0415 - keeps the help fast
    from certkit.cli.commands.issue import document, show  # noqa: PLC0415 - the same

    issued = workflow.demo(out, seed=seed, at=clock.now(), progress=progress(hidden=quiet or json))
    if json:
        output.document(document(issued, out))
    elif not quiet:
        from certkit.cli.views.render import show_assessment  # noqa: PLC0415 - only where a table is drawn

        show_assessment(issued.assessment, verbose=False)
        output.say()
        show(issued, out)
        output.say()
        output.say("Try next:")
        output.say(f"  certkit verify {out}/passport.json --trust {out}/trust.json \\")
        output.say(f"    --bundle {out}/bundle --replay")
        output.say(f"  certkit registry audit {out}/registry --trust {out}/trust.json")
        output.say("and on a real log:")
        output.say("  certkit import agentdojo LOG.jsonl.gz -o my-bundle")
        output.say("  certkit assess my-bundle")
        output.say(f"  certkit issue my-bundle --key {out}/issuer-key.pem --issuer Me -o my-passport")
