"""Folders of tasks and of runs: what `generate` writes, and what `run` fills answer by answer.

A run's folder is a bundle from the first moment. Every reply is appended as soon as it is there, so that a
run that was stopped or killed goes on where it ended; a line that the kill cut is asked again. At the end
the bundle is sealed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from certkit._version import __version__
from certkit.bundle.manifest import MANIFEST_NAME
from certkit.bundle.writer import BundleWriter, new_bundle
from certkit.ground import canonical, files
from certkit.ground.document import Count, Document, GivenPath, fill
from certkit.ground.errors import UsageError
from certkit.ground.progress import SILENT, Progress
from certkit.probes import records
from certkit.probes.agents import Asking, agents_of, ask_all
from certkit.probes.generate import INSTANCES, generate
from certkit.probes.reading import MAX_FILE, read

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.probes.reading import Kept


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

    With `withhold` the inventory commits to the seed without telling it.

    Raises:
        UsageError: ``file.exists``, or ``usage.option`` for a seed that is empty or too long.
    """
    if not 0 < len(seed) <= records.MAX_SEED:
        raise UsageError("usage.option", f"--seed: a text of 1 to {records.MAX_SEED} characters")
    data = records.lines(generate(seed=seed, instances=instances))
    inventory = records.Inventory(
        generator=records.GENERATOR,
        seed=None if withhold else seed,
        seed_commitment=records.commitment(seed),
        instances=instances,
        tasks_digest=canonical.digest(data),
    )
    _begin(out, {records.TASKS: data, records.INVENTORY: _text(inventory)})
    return inventory


def run_probes(
    tasks: Path, out: Path, asking: Asking, *, sealing: bool = True, progress: Progress = SILENT
) -> Ran:
    """Ask an agent all questions of a folder of tasks that `out` does not hold a reply to yet.

    Raises:
        UsageError: ``usage.option`` where the spec names no agent, ``integrity.other-run`` where `out` is
            a run of other tasks or of another agent, and ``file.exists`` where it is something else.
    """
    agents = agents_of(asking, read(tasks).tasks)
    names = (records.INVENTORY, records.TASKS)
    copied = {name: files.read(tasks / records.FOLDER / name, limit=MAX_FILE) for name in names}
    run = fill(
        records.ProbeRun,
        asking,
        inventory=canonical.digest(copied[records.INVENTORY]),
        agent=asking.spec,
        name=asking.name or asking.spec[:200],
        temperature=0.0 if asking.spec.startswith("http:") else None,
        version=__version__,
    )
    writer, path = BundleWriter(out), f"{records.FOLDER}/{records.ANSWERS}"
    if not (out / records.FOLDER / records.RUN).is_file() or not (out / MANIFEST_NAME).is_file():
        _begin(out, {**copied, records.RUN: _text(run)}, run)
    with files.locked(out):
        writer.resume(path)
        kept = _held(out, run)
        questions, answers = list(records.asked(kept.tasks)), kept.answers
        if len(answers) == len(questions):  # what failed is asked again once everything was asked
            answers = {key: answer for key, answer in answers.items() if answer.status == "answered"}
            writer.write(path, records.lines(answers.values()))
        waiting = [question for question in questions if question[0] not in answers]
        progress.start("asking", len(waiting), "questions")
        with writer.appending(path) as append:
            for answer in ask_all(waiting, agents, asking):
                append(records.lines([answer]))
                answers[answer.key] = answer
                progress.advance(1)
        progress.finish()
        left = len(questions) - len(answers)
        digest = writer.seal().facts.digest if sealing and not left else None
    errors = sum(answer.status == "error" for answer in answers.values())
    return Ran(bundle=out, answered=len(answers) - errors, errors=errors, left=left, digest=digest)


def _text(document: Document) -> bytes:
    return canonical.pretty(document.to_dict()).encode()


def _begin(out: Path, contents: dict[str, bytes], run: records.ProbeRun | None = None) -> None:
    """Write the files of tasks or of a run, which is a bundle at once."""
    with new_bundle(out) as writer:
        if run is not None:
            origin = "simulated" if run.agent.startswith("reference:") else "measured"
            agent = {"name": run.name, "version": run.agent_version}
            writer.describe({"agent": agent, "protocol": {"origin": origin}})
        for name, data in contents.items():
            writer.write(f"{records.FOLDER}/{name}", data)


def _held(out: Path, run: records.ProbeRun) -> Kept:
    """Return what the folder of this run holds."""
    kept = read(out)
    for field in run.__struct_fields__:
        held, given = getattr(kept.run, field, None), getattr(run, field)
        if field != "version" and held != given:
            differing = f"holds another run: its {field} is {held}, not {given}"
            hint = "name a folder that does not exist, or run the same command as before"
            raise UsageError("integrity.other-run", differing, where=str(out), hint=hint)
    return kept
