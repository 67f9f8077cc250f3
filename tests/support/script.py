"""Every command of the program once, in an order in which each finds what it needs; but for `demo`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Final

import pytest

from certkit.registry.writer import Registry
from certkit.tlog.note import write_note
from tests import generate
from tests.support.running import Done, certkit, edit
from tests.support.signers import WITNESS
from tests.support.trials import TRIAL

LEAVES: Final = {
    " ".join(words[1:]): command for words, command in generate.commands() if not hasattr(command, "commands")
}

COSIGNED: Final = 1_772_500_000
"""2026-03-03, in seconds since 1970."""

ISSUE: Final = "--key key.pem --issuer Lab --valid-from 2026-03-0"
LOGGING: Final = "--key key.pem --trust trust.json --at 2026-03-03T00:00:00Z"

SCRIPT: Final = f"""
simulate -o a --seed 3 --runs 300 --domains 2 --tier-target 1
simulate -o b --seed 4 --runs 300 --domains 2 --tier-target 2
bundle init empty --agent a --version 1
bundle seal a
bundle check a
import rows.csv --columns
import records rows.csv --map map.toml --dry-run
import records rows.csv -o imported --map map.toml --agent courier --agent-version 1
assess a
assess empty
explain r_op
runs a --failed
context init a -o context.json
compare a b
drift a b
drift a a
plan --tier 1 --expect r_op=0.9
trial plan trial.toml -o plan.json
trial check plan.json
trial run plan.json --agent reference:gold -o tried
trial mcp plan.json --run none --events served -- ./server
probes generate -o tasks --instances 1
probes run tasks --agent reference:recency -o probed
probes score probed
probes sheet probed --kind audit -o audit.csv
profile show
profile show hb-eval-2026
profile show hb-eval-2025
keys generate -o key.pem --public public.pem
keys generate -o next.pem
registry init registry --name lab
trust add --trust trust.json --issuer Lab --key public.pem --log {{vkey}} --witness {{witness}}
trust show --trust trust.json
issue a -o first {ISSUE}1 --registry registry --trust trust.json
show first/passport.json --at 2026-03-02
issue a -o second {ISSUE}2
registry append registry second/passport.json {LOGGING}
verify first/passport.json --trust trust.json --at 2026-03-02
verify rows.csv --trust trust.json
show first/passport.json --format markdown --trust trust.json --at 2026-03-02
show a
report a -o case.html
view a -o runs.html --force
registry show registry
registry show registry --expiring 30 --at 2026-03-04
registry show registry 0
registry prove registry 0
registry revoke registry 0 --replaced-by 1 {LOGGING}
registry revoke registry 1 --reason issued-in-error {LOGGING}
registry show registry {{lineage}}
registry cosign registry cosigned --trust trust.json --at 2026-03-04
registry audit registry --trust trust.json
registry export registry tree
registry rotate-key registry --at 2026-03-04
trust add --trust trust.json --log {{vkey}}
registry status registry 0 --at 2026-03-05
show missing.json
"""

REFUSED: Final = {
    "show missing.json",
    "trial mcp plan.json --run none --events served -- ./server",
}


def through(root: Path, *options: str) -> list[tuple[str, Done]]:
    """Run the script in `root` with `options` behind every line; return each line with what it left."""
    _folder(root)
    known: dict[str, Any] = {"witness": WITNESS.witness_vkey}
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("XDG_STATE_HOME", str(root / "state"))
        patch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        for template in SCRIPT.strip().splitlines():
            if template.startswith("show first") and "agent" not in known:
                facts = certkit(*template.split(), "--json").document["statement"]["predicate"]["facts"]
                name, provider = facts["agent"]["name"], facts["agent"].get("provider")
                lineage = f"{provider}/{name}" if provider else name
                known |= {"agent": facts["agent"]["digest"], "lineage": lineage}
            if template.startswith("registry cosign"):
                _cosign(root / "cosigned")
            line = template.format(**known)
            done = certkit(*shlex.split(line), *options)
            assert done.code not in ({70} if line in REFUSED else {2, 70}), (line, done)
            if line.startswith(("registry init", "registry rotate-key")):
                known["vkey"] = done.document["vkey"] if "--json" in options else done.out.split()[0]
            if line.startswith("trust add"):
                edit(root / "trust.json", accept_specimens=True)
            found.append((line, done))
    return found


def _cosign(path: Path) -> None:
    """Write the checkpoint of the registry as a witness returned it."""
    with Registry.open(Path("registry")) as registry:
        note = registry.checkpoint().decode()
    text = note[: note.index("\n\n") + 1]
    path.write_bytes(write_note(text, [WITNESS.cosign(text, COSIGNED)]))


def _folder(root: Path) -> None:
    (root / "trial.toml").write_text(TRIAL.format(seed=1, tasks=1, more=""))
    (root / "rows.csv").write_text("task,result\nt/1,ok\nt/2,bad\n")
    (root / "map.toml").write_text(
        '[columns]\ntask_id = "task"\noutcome = "result"\n'
        '[values.outcome]\nok = "success"\nbad = "failure"\n'
        '[constants]\ndomain = "d"\ncondition = "nominal"\n'
    )
