"""Folders of tasks and of runs: what `generate` writes, and what `run` fills answer by answer.

A run's folder is a bundle from the first moment. Every reply is appended as soon as it is there, so that a
run that was stopped or killed goes on where it ended; a line that the kill cut is asked again. At the end
the replies are put in the order of asking, and the bundle is sealed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from certkit import canonical, files
from certkit._version import __version__
from certkit.document import Count, Document, GivenPath
from certkit.errors import UsageError
from certkit.evidence.bundle.folder import init, seal
from certkit.evidence.bundle.manifest import MANIFEST_NAME
from certkit.evidence.integrity.reading import MAX_FILE, read
from certkit.probes import records
from certkit.probes.agents import Limits, ask_all
from certkit.probes.generate import INSTANCES, generate, line, tasks_file
from certkit.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from certkit.evidence.integrity.reading import Kept
    from certkit.probes.agents import Agent

_HINT = "name a folder that does not exist, or run the same command as before"


class Asking(NamedTuple):
    """Who is asked, and how; without a name the agent has that of its spec."""

    spec: str
    agents: Callable[[], Agent]
    name: str | None = None
    version: str = "unversioned"
    model: str | None = None
    mode: records.Mode = records.Mode.JSON
    isolation: bool = False
    limits: Limits = Limits()


class Ran(Document, frozen=True, kw_only=True, tag="urn:certkit:probes-run:v1"):
    """What certkit probes run prints; the digest is null where the bundle is not sealed."""

    bundle: GivenPath
    answered: Count
    errors: Count
    left: Count
    digest: str | None


def generate_probes(
    out: Path, *, seed: str = records.PUBLIC, instances: int = INSTANCES, withhold: bool = False
) -> records.Inventory:
    """Write generated tasks to ``integrity/`` in a new folder, and return their inventory.

    With `withhold` the inventory commits to the seed without telling it. Raises `UsageError` ``file.exists``,
    or ``usage.option`` for a seed that is empty or too long, or that is withheld and public.
    """
    if not 0 < len(seed) <= records.MAX_SEED:
        raise UsageError("usage.option", f"--seed: a text of 1 to {records.MAX_SEED} characters")
    if withhold and seed.startswith("public-"):
        known = f"--withhold-seed: everybody knows {seed}"
        raise UsageError("usage.option", known, hint="give a seed of your own with --seed")
    data = tasks_file(generate(seed=seed, instances=instances))
    inventory = records.Inventory(
        generator=records.GENERATOR,
        seed=None if withhold else seed,
        seed_commitment=records.commitment(seed),
        instances=instances,
        tasks_digest=canonical.digest(data),
    )
    contents = {records.TASKS: data, records.INVENTORY: canonical.pretty(inventory.to_dict()).encode()}
    with files.building(out) as folder:
        for name, written in contents.items():
            files.write(folder / records.FOLDER / name, written)
    return inventory


def run_probes(
    tasks: Path, out: Path, asking: Asking, *, sealing: bool = True, progress: Progress = SILENT
) -> Ran:
    """Ask an agent all questions of a folder of tasks that `out` does not hold a reply to yet.

    Raises `UsageError` ``integrity.other-run`` where `out` is a run of other tasks or of another agent, and
    ``file.exists`` where it is something else.
    """
    read(tasks)
    names = (records.INVENTORY, records.TASKS)
    copied = {name: files.read(tasks / records.FOLDER / name, limit=MAX_FILE) for name in names}
    run = records.Run(
        inventory=canonical.digest(copied[records.INVENTORY]),
        agent=asking.spec,
        model=asking.model,
        name=asking.name or asking.spec[:200],
        agent_version=asking.version,
        mode=asking.mode,
        isolation=asking.isolation,
        temperature=0.0 if asking.spec.startswith("http:") else None,
        version=__version__,
    )
    if not out.is_dir() or not any(out.iterdir()):
        _begin(out, {**copied, records.RUN: canonical.pretty(run.to_dict()).encode()}, run)
    elif not (out / records.FOLDER / records.RUN).is_file() or not (out / MANIFEST_NAME).is_file():
        raise UsageError("file.exists", "exists and is no folder of a run", where=str(out), hint=_HINT)
    with files.locked(out):
        before = read_cut(out)
        for field in set(run.__struct_fields__) - {"version"}:
            held, given = getattr(before.run, field, None), getattr(run, field)
            if held != given:
                differing = f"holds another run: its {field} is {held}, not {given}"
                raise UsageError("integrity.other-run", differing, where=str(out), hint=_HINT)
        return _go_on(out, before, asking, sealing, progress)


def _begin(out: Path, contents: dict[str, bytes], run: records.Run) -> None:
    with files.building(out) as folder:
        init(
            folder,
            agent=run.name,
            version=run.agent_version,
            origin="simulated" if run.agent.startswith("reference:") else "measured",
        )
        (folder / "records").rmdir()
        for name, data in contents.items():
            files.write(folder / records.FOLDER / name, data)


def read_cut(out: Path) -> Kept:
    """Return what a run's folder holds, without what a kill or a power cut left unfinished."""
    folder = out / records.FOLDER
    for path in (*out.glob(f".{MANIFEST_NAME}.*"), *folder.glob(f".{records.ANSWERS}.*")):
        path.unlink()
    path = folder / records.ANSWERS
    if path.is_file() and not path.is_symlink():
        data = files.read(path, limit=MAX_FILE)
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            files.write(path, whole)
    return read(out)


def _go_on(out: Path, kept: Kept, asking: Asking, sealing: bool, progress: Progress) -> Ran:  # noqa: FBT001
    before, path = kept.answers, out / records.FOLDER / records.ANSWERS
    answers = {key: answer for key, answer in before.items() if answer.status == "answered"}
    questions = list(records.asked(kept.tasks))
    if len(answers) < len(before):  # what failed is asked again
        files.write(path, b"".join(map(line, answers.values())))
    waiting = [question for question in questions if question[0] not in answers]
    progress.start("asking", len(waiting), "questions")
    with files.appending(path) as append:
        for answer in ask_all(waiting, asking.agents, asking.mode, asking.limits):
            append(line(answer))
            answers[answer.key] = answer
            progress.advance(1)
    progress.finish()
    digest, left = None, len(questions) - len(answers)
    if not left:
        ordered = b"".join(line(answers[key]) for key, _, _ in questions)
        if files.read(path, limit=MAX_FILE) != ordered:
            files.write(path, ordered)
        digest = seal(out).facts.digest if sealing else None
    errors = sum(answer.status == "error" for answer in answers.values())
    return Ran(bundle=out, answered=len(answers) - errors, errors=errors, left=left, digest=digest)
