"""``certkit probes``: commitment integrity, from tasks over an agent's replies to scores."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from certkit.bundle.folder import open_bundle
from certkit.bundle.manifest import MANIFEST_NAME
from certkit.bundle.writer import BundleWriter
from certkit.cli.emit import answer, emit, progress
from certkit.cli.options import AGENT, AGENT_VERSION, NAME, OUT, SEED, BundleFolder, NoSeal, Out
from certkit.ground import files
from certkit.ground.document import State
from certkit.ground.errors import Exit, UnavailableError
from certkit.ground.wording import many
from certkit.probes.agents import Asking
from certkit.probes.generate import INSTANCES
from certkit.probes.reading import read
from certkit.probes.records import ANNOTATIONS, FOLDER, MAX_INSTANCES, PUBLIC, Mode, lines
from certkit.probes.running import generate_probes, run_probes
from certkit.probes.score import score as score_kept
from certkit.probes.scores_document import IntegrityDocument
from certkit.probes.sheets import MAX_SHEET, Kind, allowed, take
from certkit.probes.sheets import sheet as write_sheet


def generate(
    out: Out,
    seed: Annotated[
        str, SEED(help="What tasks are drawn from.", metavar="TEXT", min=None, max=None)
    ] = PUBLIC,
    instances: Annotated[
        int,
        typer.Option(
            "--instances", min=1, max=MAX_INSTANCES, help="Tasks for every family, variant and difficulty."
        ),
    ] = INSTANCES,
    withhold: Annotated[
        bool, typer.Option("--withhold-seed", help="Commit to the seed in the inventory without telling it.")
    ] = False,
) -> None:
    """Write tasks with side questions about the commitments that their answers rest on.

    An agent that may have seen the public tasks is better asked with a seed of your own, kept until the run
    is over.

    Example: certkit probes generate -o tasks --seed "a text of your own"
    """
    inventory = generate_probes(out, seed=seed, instances=instances, withhold=withhold)
    told = f"{out}: {many(48 * instances, 'task')} with {many(102 * instances, 'probe')}"
    emit(inventory, [told], hints=[f"certkit probes run {out} --agent command:./my-agent -o bundle"])


def run(
    tasks: Annotated[Path, typer.Argument(metavar="TASKS", help="The folder that 'probes generate' wrote.")],
    agent: Annotated[
        str, AGENT(help="python:MODULE:FUNCTION, command:LINE, http:URL, or reference:NAME.", metavar="SPEC")
    ],
    out: Annotated[Path, OUT(help="The folder to write; a run that stopped goes on in it.")],
    mode: Annotated[Mode, typer.Option("--mode", help="The form of reply that is asked for.")] = Mode.JSON,
    model: Annotated[str | None, typer.Option("--model", help="http: the model's name.")] = None,
    isolate: Annotated[bool, typer.Option("--isolate", help="command: a process for every call.")] = False,
    name: Annotated[str | None, NAME(help="The agent's name; else its spec.")] = None,
    agent_version: Annotated[str, AGENT_VERSION()] = "unversioned",
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait for a reply.")] = 60,
    retries: Annotated[
        int, typer.Option("--retries", min=0, max=100, help="Calls to make again without a reply.")
    ] = 2,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", min=1, help="Stop after so many calls, to go on.")
    ] = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, max=256, help="Questions asked at once.")] = 1,
    no_seal: NoSeal = False,
) -> None:
    """Ask an agent every question of the tasks, each in a prompt of its own, and keep the replies.

    All attempts come first, then all probes. The same command goes on where an earlier one stopped. Exit code
    0: every question has a reply; 4: calls are left, or some failed. The key of an HTTP endpoint is read from
    CERTKIT_AGENT_KEY.

    Example: certkit probes run tasks --agent "command:./my-agent" -o bundle
    """
    sys.path.insert(0, str(Path.cwd()))
    with redirect_stdout(sys.stderr):  # what a Python agent prints is no result
        ran = run_probes(
            tasks,
            out,
            Asking(
                spec=agent,
                name=name,
                agent_version=agent_version,
                model=model,
                key=os.environ.get("CERTKIT_AGENT_KEY"),
                mode=mode,
                isolation=isolate,
                timeout=timeout,
                retries=retries,
                max_calls=max_calls,
                jobs=jobs,
            ),
            sealing=not no_seal,
            progress=progress(),
        )
    again = ran.errors or ran.left
    told = f"{out}: {ran.answered:,} answered, {ran.errors:,} failed, {ran.left:,} left to ask"
    emit(
        ran,
        [told, *([ran.digest] if ran.digest else [])],
        code=Exit.INSUFFICIENT if again else Exit.OK,
        hints=["run the same command again to go on" if again else f"certkit probes score {out}"],
    )


def score(folder: BundleFolder) -> None:
    """Tell how often an agent succeeds, and whether it held what its answers rest on.

    A success is hollow where fewer than half of its probes were held. Nothing here moves a tier. Exit code 0:
    every question has a reply; 4: some or all are missing.

    Example: certkit probes score bundle
    """
    if not folder.is_dir():
        open_bundle(folder)  # refuses it with its reason
    if not all((folder / name).exists() for name in (FOLDER, MANIFEST_NAME)):
        how = "certkit probes generate -o tasks\ncertkit probes run tasks --agent SPEC -o bundle"
        raise UnavailableError("integrity.missing", "holds no run of probes", where=str(folder), hint=how)
    kept = read(folder)  # first, as it lists every fault
    open_bundle(folder, progress=progress())
    scored = score_kept(kept)
    code = Exit.OK if scored.state is State.MEASURED else Exit.INSUFFICIENT
    emit(scored, _scored(scored), code=code)


def sheet(
    folder: BundleFolder,
    kind: Annotated[
        Kind, typer.Option("--kind", help="difficulty of tasks, construct (the family), audit of replies.")
    ],
    out: Annotated[Path | None, OUT(metavar="CSV", help="Write a sheet here.")] = None,
    filled: Annotated[
        Path | None, typer.Option("--take", metavar="CSV", help="Take in a filled one.")
    ] = None,
    rater: Annotated[str | None, typer.Option("--rater", help="Who filled it in.")] = None,
    adjudicated: Annotated[
        bool, typer.Option("--adjudicated", help="These values decide where raters differ.")
    ] = False,
) -> None:
    """Write a sheet for people to fill in, or take a filled one into the bundle.

    Rows are shuffled and tell neither task nor family nor verdict. Taking a sheet in adds to
    integrity/annotations.jsonl, and seals the bundle again if it was sealed.

    Example: certkit probes sheet bundle --kind audit -o audit.csv
    """
    path = filled if out is None else out
    if path is None or (out and filled) or (filled is None) != (rater is None):
        raise typer.BadParameter("either -o, or --take with --rater", param_hint="--take")
    bundle = open_bundle(folder, progress=progress())
    kept, digest = read(folder), None
    if path is out:
        data, rows = write_sheet(kept, kind)
        files.write(path, data, overwrite=False)
        words, hints = "to fill in", [allowed(kind)]
    else:
        data = files.read(path, limit=MAX_SHEET)
        taken = take(kept, kind, data, rater=rater or "", adjudicated=adjudicated, where=str(path))
        writer = BundleWriter(folder)
        writer.write(f"{FOLDER}/{ANNOTATIONS}", lines((*kept.annotations, *taken)))
        digest = writer.seal().facts.digest if bundle.facts.sealed else None
        rows, words, hints = len(taken), "taken in", []
    told = [f"{path}: {many(rows, 'row')} {words}", *([digest] if digest else [])]
    emit(answer("probes-sheet", sheet=path, rows=rows, digest=digest), told, hints=hints)


def _scored(scored: IntegrityDocument) -> Iterator[str]:
    success, accuracy, core = scored.success, scored.accuracy, scored.core
    if missing := success.unanswered + accuracy.unanswered:
        yield f"{scored.state}: {many(missing, 'question')} without a reply"
    yield (
        f"success {success.successes}/{success.n}   probes {accuracy.matched}/{accuracy.n}"
        f"   unclear {accuracy.unclear}"
    )
    low, high, floor, ceiling = map(_short, (core.low, core.high, core.floor, core.ceiling))
    value = f"between {low} and {high}" if core.value is None else _short(core.value)
    if core.interval:
        value += f" [{', '.join(map(_short, core.interval))}]"
    yield f"core {value}, attainable {floor} to {ceiling}"
    yield f"hollow: {len(scored.hollow.tasks)} of {success.successes:,} successes"
    if scored.seed != "stated":
        yield f"seed of the tasks: {scored.seed}"


def _short(value: float | Fraction) -> str:
    return f"{float(value):.3f}".removeprefix("0")
