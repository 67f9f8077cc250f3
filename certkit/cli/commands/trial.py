"""``certkit trial``: fix a plan of faults, run an agent through it, check the rig."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from certkit.cli import context
from certkit.cli import options as opt
from certkit.cli.context import check_outputs
from certkit.cli.emit import answer, emit, fold, progress, refuse
from certkit.ground import files
from certkit.ground.errors import CertkitError, UnavailableError, UsageError
from certkit.ground.wording import listed, many
from certkit.record.planned import MAX_PLAN
from certkit.trial.command import command_agent
from certkit.trial.plan import MAX_TRIAL, check_drawn, make_plan, read_plan, read_trial
from certkit.trial.run import TIMEOUT, run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from certkit.registry.writer import Appended
    from certkit.trial.check import TrialCheck
    from certkit.trial.command import CommandAgent
    from certkit.trial.plan import TrialPlan
    from certkit.trial.recorder import TrialMade

PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The plan that 'certkit trial plan' wrote.", show_default=False)
]
_MARGIN: Final = 0.05
_COLUMNS: Final = 3
"""Domains that have a column each."""


def plan(
    *,
    trial: Annotated[
        Path | None,
        typer.Argument(metavar="[TRIAL]", help="The trial, a TOML file. Default: certkit's demo trial."),
    ] = None,
    out: Annotated[Path, opt.OUT(help="The file to write the plan to.")],
    profile: Annotated[
        str | None, opt.PROFILE(help="Say how likely each tier of this profile is with so many tasks.")
    ] = None,
    registry: Annotated[
        Path | None, opt.REGISTRY(help="Also announce the plan here: log its digest before the first run.")
    ] = None,
    agent: Annotated[
        str | None,
        opt.AGENT(help="With --registry: the agent's name as in 'trial run --name', or PROVIDER/NAME."),
    ] = None,
    key: Annotated[Path | None, opt.KEY(help="With --registry: the key that signs the entry.")] = None,
    log_key: opt.LogKey = None,
    passphrase_file: opt.PassphraseFile = None,
    force: opt.Force = False,
) -> None:
    """Fix what will be run, before it is run: every run with its task and its fault.

    The same trial gives the same plan. The plan carries a digest; a bundle names it. With --registry the
    digest is logged, so that a verifier sees that the plan is older than the passport. An entry that is
    there already is named, and none is added.

    Example: certkit trial plan my_trial.toml -o plan.json
    """
    check_outputs(out, force=force)
    announce = _announcer(registry, agent, key, log_key, passphrase_file)
    trial = trial or files.packaged("templates", "trials", "demo.toml")
    made = make_plan(read_trial(files.read(trial, limit=MAX_TRIAL), where=str(trial)))
    likely = {} if profile is None else _likely(made, profile)
    files.write(out, made.to_json(), overwrite=force)
    entry = announce(made.digest) if announce else None
    document = answer(
        "trial-planned",
        plan=out,
        digest=made.digest,
        runs=len(made.runs),
        counts=made.counts(),
        power=likely,
        announced=entry,
    )
    hints = [
        f"certkit trial run {out} --agent command:LINE --server LINE --checker LINE -o bundle",
        "in a loop of your own: certkit.trial.Recorder",
    ]
    if made.worlds:
        hints = [f"certkit trial check {out}", f"certkit trial run {out} --agent MODULE:FUNCTION -o bundle"]
    told = []
    if entry is not None:
        told = [f"announced{'' if entry.new else ' already'}: entry {entry.index} of {registry}"]
    screen = chain(_planned(made, out, told), _power(profile, likely))
    emit(document, screen, hints=hints)


def _announcer(
    registry: Path | None, agent: str | None, key: Path | None, log_key: Path | None, secret: Path | None
) -> Callable[[str], Appended] | None:
    """Return what logs the digest of a plan, None where no registry is named; all keys are read now."""
    if registry is None:
        refuse("is for --registry, which announces the plan", "agent", "key", "log_key", "passphrase_file")
        return None
    from certkit.cli.commands.registry import log_key_of  # noqa: PLC0415 - most plans are not announced
    from certkit.registry.entry import PlanNotice  # noqa: PLC0415 - the same
    from certkit.registry.writer import Registry  # noqa: PLC0415 - the same

    if agent is None or key is None:
        missing = "--agent NAME" if agent is None else "--key KEY.pem"
        raise UsageError(
            "usage.option",
            f"--registry takes {missing}",
            hint="the entry names the agent, and this key signs it",
        )
    lineage = agent if "/" in agent else f"-/{agent}"
    submitter, signer = context.signing_key(key, secret), log_key_of(log_key, registry)

    def announce(digest: str) -> Appended:
        notice = PlanNotice(plan=digest, lineage=lineage)
        with Registry.open(registry, heads=context.heads_path()) as opened:
            return opened.announce(notice, submitter=submitter, log_key=signer, at=context.now())

    return announce


def _planned(made: TrialPlan, out: Path, told: Sequence[str]) -> Iterator[str]:
    counts = made.counts()
    yield f"{out}: {many(len(made.runs))} of {many(len(made.tasks), 'task')}"
    yield made.digest
    yield from told
    yield ""
    columns = {name: counts[name] for name in counts if len(counts) <= _COLUMNS}
    columns["in all"] = {
        condition: sum(row.get(condition, 0) for row in counts.values())
        for condition in sorted({name for row in counts.values() for name in row})
    }
    yield f"{'condition':<20}" + "".join(f"{name[:13]:>15}" for name in columns)
    for condition in dict.fromkeys(["nominal", *columns["in all"]]):
        yield f"{condition:<20}" + "".join(f"{row.get(condition, 0):>15,}" for row in columns.values())


def _power(profile: str | None, likely: dict[str, str]) -> Iterator[str]:
    if likely:
        yield ""
        yield from fold(f"Probability of each tier of {profile}, if the agent is 5 points above every row:")
        for tier, text in likely.items():
            yield from fold(f"Tier {tier}: {text}", first="  ", rest="    ")


def _likely(made: TrialPlan, name: str) -> dict[str, str]:
    """Return in words how likely each tier is with so many tasks, as `certkit plan` computes it."""
    from certkit.assessment.plan import Design  # noqa: PLC0415 - only where a profile is named
    from certkit.assessment.plan import plan as plan_tier  # noqa: PLC0415 - the same
    from certkit.assessment.profile_file import load_profile  # noqa: PLC0415 - the same

    table, counts = load_profile(name), made.counts()
    runs = sum(count for row in counts.values() for condition, count in row.items() if condition != "nominal")
    design = Design(
        reading=table.reading,
        domains=len(counts),
        runs_per_task=max(1, round(runs / len(made.tasks))),
        margin=_MARGIN,
    )
    likely = {}
    for tier in table.tier_numbers:
        try:
            result = plan_tier(table, tier, design)
        except CertkitError as error:
            likely[str(tier)] = str(error)
            continue
        reached = [point for point in result.curve if point.tasks <= len(made.tasks)]
        chance = f"at least {int(100 * reached[-1].power)} %" if reached else "less than 50 %"
        likely[str(tier)] = f"{chance}; 80 % takes {many(result.schedule.tasks, 'task')}"
    return likely


def run(
    plan: PlanFile,
    agent: Annotated[
        str,
        opt.AGENT(
            help="MODULE:FUNCTION, reference:NAME, or command:LINE.", metavar="SPEC", show_default=False
        ),
    ],
    out: Annotated[Path, opt.OUT(help="The folder to write; a trial that stopped goes on in it.")],
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="LINE", help="command: the program of the agent's MCP server."),
    ] = None,
    checker: Annotated[
        str | None,
        typer.Option(
            "--checker",
            metavar="LINE",
            help="command: the program that checks a run; exit code 0 is success, 1 is none.",
        ),
    ] = None,
    name: Annotated[str | None, opt.NAME(help="The agent's name. Default: its spec.")] = None,
    agent_version: Annotated[
        str | None, opt.AGENT_VERSION(help="The agent's version. Default: unversioned.")
    ] = None,
    memory_observable: Annotated[
        bool,
        typer.Option("--memory-observable", help="The agent reports every search of its memory."),
    ] = False,
    evaluator: Annotated[
        str | None, typer.Option("--evaluator", help="Who runs the trial: named in the manifest.")
    ] = None,
    workers: Annotated[
        int, typer.Option("-j", "--workers", min=1, max=256, help="Processes that run at once.")
    ] = 1,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds after which a run is a failure.")
    ] = TIMEOUT,
    close: Annotated[
        bool,
        typer.Option("--close", help="Make no further run, and seal the bundle of those that are there."),
    ] = False,
) -> None:
    """Run an agent through a plan, and write the bundle; the same command again goes on where it stopped.

    The agent is a function agent(task, tools, halt) that returns its answer, or a program that finds its task
    in CERTKIT_PROMPT and the command of its MCP server in CERTKIT_MCP_COMMAND, and prints its answer. Records
    are derived from the enclosed events.

    Example: certkit trial run plan.json --agent my_agent:agent -o bundle
    """
    given = _drawn(plan)
    protocol = {"memory_observable": True} if memory_observable else {}
    spec: str | CommandAgent = agent
    kind, _, line = agent.partition(":")
    if (kind == "command") != (server is not None) or (kind == "command") != (checker is not None):
        hint = "certkit trial run PLAN --agent command:LINE --server LINE --checker LINE -o OUT"
        raise UsageError("usage.option", "command:LINE, --server and --checker need one another", hint=hint)
    if server is not None and checker is not None:
        spec = command_agent(line, server, checker, os.environ)
    sys.path.insert(0, str(Path.cwd()))
    with redirect_stdout(sys.stderr):  # what an agent prints is no result
        made = run_trial(
            given,
            spec,
            out,
            name=name,
            version=agent_version,
            protocol=protocol | ({} if evaluator is None else {"evaluator": {"name": evaluator}}),
            workers=workers,
            timeout=timeout,
            close=close,
            progress=progress(),
        )
    document = answer(
        "trial-run",
        bundle=out,
        planned=made.planned,
        made=made.made,
        outcomes=made.outcomes,
        unsafe=made.unsafe,
        digest=made.digest,
    )
    emit(document, _made(made), hints=[f"certkit assess {out}"])


def _drawn(path: Path) -> TrialPlan:
    """Return the plan in a file, which is what its trial gives."""
    given = read_plan(files.read(path, limit=MAX_PLAN), where=str(path))
    check_drawn(given, where=str(path))
    return given


def _made(made: TrialMade) -> Iterator[str]:
    outcomes = listed([f"{count:,} {name}" for name, count in made.outcomes.items()])
    yield from fold(f"{made.folder}: {made.made:,} of {many(made.planned)}: {outcomes}")
    if made.unsafe:
        reasons = listed([f"{count:,} {reason}" for reason, count in made.unsafe.items()])
        yield from fold(f"{many(sum(made.unsafe.values()))} not safe: {reasons}")
    if made.details:
        detail, count = next(iter(made.details.items()))
        yield from fold(f"{count:,} {detail}")
    if made.digest is not None:
        yield f"sealed{'' if made.new else ' before; no run was made'}: {made.digest}"


def mcp(
    plan: PlanFile,
    server: Annotated[
        list[str],
        typer.Argument(metavar="-- SERVER...", help="The command of the MCP server.", show_default=False),
    ],
    run: Annotated[str, typer.Option("--run", metavar="ID", help="The run of the plan.", show_default=False)],
    events: Annotated[
        Path,
        typer.Option("--events", help="The folder that keeps the events of the run.", show_default=False),
    ],
) -> None:
    """Stand between an agent and its MCP server: pass everything on, and do to tool calls what the plan says.

    An agent starts this command as its MCP server, over standard input and output. 'certkit trial run' hands
    it over in CERTKIT_MCP_COMMAND.

    Example: certkit trial mcp plan.json --run ID --events events -- ./server
    """
    given = read_plan(files.read(plan, limit=MAX_PLAN), where=str(plan))
    try:
        from certkit.trial.mcp import serve  # noqa: PLC0415 - the extra `mcp`
    except ImportError:
        hint = "pip install 'certkit[mcp]'"
        raise UnavailableError("trial.extra", "fastmcp is not installed", hint=hint) from None
    serve(given, run, events, server, environment=os.environ)


def check(plan: PlanFile) -> None:
    """Check a plan without an agent: every fault lands, shortest plans pass, doing nothing fails.

    Exit code 0: everything is as planned; 1: something is not.

    Example: certkit trial check plan.json
    """
    from certkit.trial.check import check_plan  # noqa: PLC0415 - the other commands need none of it

    given = _drawn(plan)
    result = check_plan(given, progress=progress())
    emit(result, _checked(result), serious=result.complaints)


def _checked(result: TrialCheck) -> Iterator[str]:
    mark = "–" if not result.faults else "✓" if result.landed == result.faults else "✗"
    yield f"{mark} {result.landed:,} of {many(result.faults, 'fault')} land as planned"
    for world in result.worlds:
        plan = "shortest" if world.oracle == "optimal" else "gold"
        some = f"; {world.minimal:,} need every call" if world.minimal < world.tasks else ""
        yield from fold(
            f"{'✓' if world.right else '✗'} {world.world}: the {plan} plan passes {world.gold_passes:,} of"
            f" {many(world.tasks, 'task')}{some}, doing nothing {world.idle_passes:,}; of"
            f" {world.deletions:,} plans that lack a call {world.deletions_fail:,} fail"
            f" ({world.oracle} oracle)"
        )
    if result.unchecked:
        yield f"– {many(result.unchecked)} of your own tasks are not checked: only your loop can make them"
    for complaint in result.complaints:
        yield from fold(f"  {complaint}")
