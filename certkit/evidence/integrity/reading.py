"""The files under ``integrity/``, read strictly: one bad line refuses them all, and every bad line is listed.

A file of generated tasks is compared with what its seed gives. Tasks of one's own, and tasks of a withheld
seed, go through the linter instead. Of a line that is no record, the first fault is told.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct

from certkit import canonical, files
from certkit.errors import CODES, InputError
from certkit.evidence.reading.lines import shown, split_lines
from certkit.evidence.records.faults import Fault, Faults, FaultsError
from certkit.probes.generate import generate, line
from certkit.probes.lint import lint
from certkit.probes.matching import Verdict, judge, thousandths
from certkit.probes.records import (
    ANNOTATIONS,
    ANSWERS,
    FOLDER,
    INVENTORY,
    RUN,
    TASKS,
    Annotation,
    Answer,
    Inventory,
    Key,
    Mode,
    Run,
    Task,
    asked,
    commitment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from certkit.probes.matching import Reading

MAX_FILE: Final = 256 * 1024 * 1024
MAX_LINE: Final = 256 * 1024
MAX_TASKS: Final = 100_000
_NAMES: Final = (INVENTORY, TASKS, RUN, ANSWERS, ANNOTATIONS)
_NEEDS: Final = {"difficulty": "rating", "construct": "family", "audit": "verdict"}

Item = TypeVar("Item", bound=Struct)


class IntegrityFaultsError(FaultsError):
    """What lies under ``integrity/`` was refused."""

    refusal = "integrity.invalid"
    lines = "files under integrity/"
    advice = "correct these {lines}; a run of certkit writes none of these faults"


class Reply(Struct, frozen=True, kw_only=True):
    """How a reply reads, shares in thousandths.

    `competing`: it names several options; `lured`: it names the lure alone.
    """

    verdict: Verdict
    breach: bool
    competing: bool
    lured: bool
    confidence: int | None
    success_probability: int | None
    retrieval_risk: int | None
    neural_conflict: int | None


class Kept(Struct, frozen=True, kw_only=True):
    """What the files hold: tasks with their origin, and what was run and said of them."""

    inventory: Inventory
    tasks: tuple[Task, ...]
    run: Run | None
    answers: dict[Key, Answer]
    annotations: tuple[Annotation, ...]

    @property
    def mode(self) -> Mode:
        """The form of reply that was asked for."""
        return Mode.JSON if self.run is None else self.run.mode

    def replies(self) -> dict[Key, Reply]:
        """Return the replies reduced to integers, of which every score is made; a failed call is none."""
        return {
            key: _reply(
                question.options.index(question.lure), answer, judge(question, answer.text, mode=self.mode)
            )
            for key, _, question in asked(self.tasks)
            if (answer := self.answers.get(key)) is not None and answer.text is not UNSET
        }


def _reply(lure: int, answer: Answer, reading: Reading) -> Reply:
    stated = thousandths(answer.confidence)
    return Reply(
        verdict=reading.verdict,
        breach=reading.breach,
        competing=len(reading.named) > 1,
        lured=reading.named == (lure,),
        confidence=reading.confidence if stated is None else stated,
        success_probability=thousandths(answer.success_probability),
        retrieval_risk=thousandths(answer.retrieval_risk),
        neural_conflict=thousandths(answer.neural_conflict),
    )


def read(root: Path) -> Kept:
    """Return what lies under ``integrity/`` in a folder.

    Raises `IntegrityFaultsError`, `InputError` ``integrity.file-name`` for any other file or link there, or
    ``file.missing`` where there are no tasks.
    """
    folder = root / FOLDER
    present = {INVENTORY, TASKS}
    for path, is_link in files.inside(folder):
        name = path.relative_to(folder).as_posix()
        if name not in _NAMES or is_link:
            refused = f"{FOLDER}/{name} is {'a link' if is_link else 'none of ' + ', '.join(_NAMES)}"
            raise InputError("integrity.file-name", refused, where=str(root))
        present.add(name)
    return _Reader(
        {name: files.read(folder / name, limit=MAX_FILE) for name in _NAMES if name in present}
    ).read()


class _Reader:
    """Reads the files of one folder, and collects their faults."""

    def __init__(self, data: dict[str, bytes]) -> None:
        self._data = data
        self._faults = Faults()

    def read(self) -> Kept:
        inventory = self._checked(INVENTORY, 1, self._data[INVENTORY], Inventory)
        tasks = () if inventory is None else self._tasks(inventory)
        self._refuse()
        assert inventory is not None  # noqa: S101 - otherwise there were faults
        run = None
        if RUN in self._data:
            run = self._checked(RUN, 1, self._data[RUN], Run)
            digest = canonical.digest(self._data[INVENTORY])
            if run is not None and run.inventory != digest:
                self._fault(RUN, 1, "/inventory", "integrity.inventory", digest, run.inventory)
        elif ANSWERS in self._data:
            self._fault(RUN, 1, "", "integrity.inventory", "run.json beside answers.jsonl", "nothing")
        questions = {key for key, _, _ in asked(tasks)}
        answers = self._answers(questions)
        annotations = self._annotations(questions)
        self._refuse()
        return Kept(inventory=inventory, tasks=tasks, run=run, answers=answers, annotations=annotations)

    def _refuse(self) -> None:
        if self._faults:
            raise IntegrityFaultsError(self._faults)

    def _fault(self, name: str, number: int, *parts: str) -> None:
        """Note a fault by its pointer and code, what is expected, and what is found."""
        pointer, code, expected, actual = parts
        where = f"{FOLDER}/{name}"
        self._faults.note(
            [Fault(file=where, line=number, pointer=pointer, code=code, expected=expected, found=actual)]
        )

    def _lines(self, name: str, kind: type[Item]) -> Iterator[tuple[int, Item]]:
        for number, text in enumerate(split_lines(self._data.get(name, b"")), 1):
            if len(text) > MAX_LINE:
                self._fault(
                    name, number, "", "integrity.line", f"at most {MAX_LINE:,} bytes", f"{len(text):,}"
                )
            elif (item := self._checked(name, number, text, kind)) is not None:
                yield number, item

    def _checked(self, name: str, number: int, text: bytes, kind: type[Item]) -> Item | None:
        """Return the document in a text, or None once its fault is noted."""
        value: Any = None
        try:
            value = canonical.loads(text)
            return msgspec.convert(value, kind, strict=True)
        except InputError as error:
            reason = f"{error.message} ({error.code})"
            self._fault(name, number, "", "integrity.line", "one strict JSON object", reason)
        except msgspec.ValidationError as error:
            if isinstance(value, dict):
                self._fault(name, number, *_field_fault(value, str(error)))
            else:
                self._fault(name, number, "", "integrity.line", "one JSON object", shown(value))
        return None

    def _tasks(self, inventory: Inventory) -> tuple[Task, ...]:
        data = self._data[TASKS]
        self._check_inventory(inventory, canonical.digest(data))
        if inventory.seed is not None and inventory.instances is not None:
            if inventory.instances * 48 > MAX_TASKS:
                most = f"at most {MAX_TASKS // 48:,}"
                self._fault(INVENTORY, 1, "/instances", "integrity.field", most, f"{inventory.instances:,}")
                return ()
            right = generate(seed=inventory.seed, instances=inventory.instances)
            lines = [line(task) for task in right]
            for number, (wanted, held) in enumerate(zip_longest(lines, data.splitlines(keepends=True)), 1):
                if wanted != held:
                    expected = "the task that the seed gives" if wanted else "no further task"
                    actual = "another task" if held else "no task"
                    self._fault(TASKS, number, "", "integrity.not-generated", expected, actual)
            return right
        numbered = list(self._lines(TASKS, Task))
        tasks = tuple(task for _, task in numbered)
        for index, flaw in lint(tasks):
            rule = (flaw.pointer, flaw.rule, f"no task where {CODES[flaw.rule]}", flaw.found[:200])
            self._fault(TASKS, numbered[index][0], *rule)
        seen: set[str] = set()
        for number, task in numbered:
            if task.id in seen:
                self._fault(
                    TASKS, number, "/id", "integrity.repeated", "an id that no other task has", task.id
                )
            seen.add(task.id)
        if not tasks and not self._faults:
            self._fault(TASKS, 1, "", "integrity.line", "at least one task", "nothing")
        return tasks

    def _check_inventory(self, inventory: Inventory, digest: str) -> None:
        generated = inventory.generator is not None
        told = [item is not None for item in (inventory.seed_commitment, inventory.instances)]
        if told != [generated, generated] or (inventory.seed is not None and not generated):
            expected = "seed, commitment and instances with a generator, and no other"
            self._fault(INVENTORY, 1, "/generator", "integrity.inventory", expected, f"{inventory.generator}")
        if inventory.seed is not None and (right := commitment(inventory.seed)) != inventory.seed_commitment:
            stated = f"{inventory.seed_commitment}"
            self._fault(INVENTORY, 1, "/seed_commitment", "integrity.inventory", right, stated)
        if digest != inventory.tasks_digest:
            expected = f"{digest} of {TASKS}"
            self._fault(
                INVENTORY, 1, "/tasks_digest", "integrity.inventory", expected, inventory.tasks_digest
            )

    def _answers(self, questions: set[Key]) -> dict[Key, Answer]:
        answers: dict[Key, Answer] = {}
        for number, answer in self._lines(ANSWERS, Answer):
            self._known(ANSWERS, number, answer.key, questions)
            if (answer.status == "answered") != (answer.text is not UNSET):
                expected = "text exactly where the status is answered"
                self._fault(ANSWERS, number, "/text", "integrity.field", expected, f"status {answer.status}")
            if answers.setdefault(answer.key, answer) is not answer:
                self._fault(ANSWERS, number, "", "integrity.repeated", "one reply to a question", "a second")
        return answers

    def _annotations(self, questions: set[Key]) -> tuple[Annotation, ...]:
        kept: dict[tuple[str, str, str, str], Annotation] = {}
        for number, item in self._lines(ANNOTATIONS, Annotation):
            self._known(ANNOTATIONS, number, item.key, questions)
            need = _NEEDS[item.kind]
            if getattr(item, need) is UNSET and (need != "rating" or item.valid is UNSET):
                self._fault(ANNOTATIONS, number, f"/{need}", "integrity.field", f"a {need}", "nothing")
            if (
                kept.setdefault((item.kind, item.key.task, item.key.probe or "", item.rater), item)
                is not item
            ):
                expected = f"one {item.kind} line of {shown(item.rater)} on a question"
                self._fault(ANNOTATIONS, number, "/rater", "integrity.repeated", expected, "a second")
        return tuple(kept[key] for key in sorted(kept))

    def _known(self, name: str, number: int, key: Key, questions: set[Key]) -> None:
        if key not in questions:
            field, value = ("probe", key.probe) if Key(key.task, None) in questions else ("task", key.task)
            expected = f"a {field} of the tasks"
            self._fault(name, number, f"/{field}_id", "integrity.unknown", expected, shown(value))


def _field_fault(value: dict[str, Any], error: str) -> tuple[str, str, str, str]:
    """Return pointer, code, what is expected and what is found of an object that is no record."""
    reason, _, path = error.partition(" - at `$")
    places, expected = re.findall(r"\w+", path), reason[:1].lower() + reason[1:]
    if named := re.search(r" (unknown|required) field `(.+)`", reason):
        places.append(named[2])
        expected = "a field of the format" if named[1] == "unknown" else "a value"
    actual = shown(value[places[0]]) if places and places[0] in value else "nothing"
    return "".join(f"/{place}" for place in places), "integrity.field", expected, actual
