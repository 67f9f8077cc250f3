"""The files under ``integrity/``, read strictly: one bad line refuses them all, and every bad line is listed.

A file of generated tasks is compared with what its seed gives. Tasks of one's own, and tasks of a withheld
seed, go through the linter instead. Of a line that is no record, the first fault is told.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, structs

from certkit import canonical, files
from certkit.errors import CODES
from certkit.evidence.reading.lines import object_on, shown, split_lines
from certkit.evidence.records.faults import Fault, Faults, FaultsError
from certkit.probes import records
from certkit.probes.generate import generate, line
from certkit.probes.lint import lint
from certkit.probes.matching import Reading, judge, thousandths
from certkit.probes.records import Annotation, Answer, Inventory, Key, Mode, Run, Task, asked, commitment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILE: Final = 256 * 1024 * 1024
MAX_LINE: Final = 256 * 1024
_NAMES: Final = (records.INVENTORY, records.TASKS, records.RUN, records.ANSWERS, records.ANNOTATIONS)
_STATED: Final = ("confidence", "success_probability", "retrieval_risk", "neural_conflict")
_NEEDS: Final = {"difficulty": "rating", "construct": "family", "audit": "verdict"}

Item = TypeVar("Item", bound=Struct)


class IntegrityFaultsError(FaultsError):
    """What lies under ``integrity/`` was refused."""

    refusal = "integrity.invalid"
    lines = "files under integrity/"
    advice = "correct these {lines}; a run of certkit writes none of these faults"


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

    def replies(self) -> dict[Key, Reading]:
        """Return the replies reduced to integers, of which every score is made; a failed call is none."""
        replies = {}
        for key, _, question in asked(self.tasks):
            if (answer := self.answers.get(key)) is not None and answer.text is not UNSET:
                given = {name: getattr(answer, name) for name in _STATED}
                stated = {name: thousandths(share) for name, share in given.items() if share is not UNSET}
                replies[key] = structs.replace(judge(question, answer.text, mode=self.mode), **stated)
        return replies


def read(root: Path) -> Kept:
    """Return what lies under ``integrity/`` in a folder.

    Raises `IntegrityFaultsError`, or `InputError` ``file.missing`` where there are no tasks.
    """
    return _Reader(root / records.FOLDER).read()


class _Reader:
    """Reads the files of one folder, and collects their faults; the contents of a link are not read."""

    def __init__(self, folder: Path) -> None:
        self._faults = Faults()
        self._data = dict[str, bytes]()
        for path, is_link in files.inside(folder):
            name = path.relative_to(folder).as_posix()
            if is_link or name not in _NAMES:
                actual = "a link" if is_link else "another file"
                self._fault(name, 1, "", "integrity.file-name", f"a file {', '.join(_NAMES)}", actual)
            else:
                self._data[name] = files.read(path, limit=MAX_FILE)
        for name in (records.INVENTORY, records.TASKS):
            if name not in self._data:  # a file that is not there is an error of its own
                self._data[name] = b"" if self._faults else files.read(folder / name, limit=MAX_FILE)

    def read(self) -> Kept:
        before = self._faults.total
        inventory = self._checked(records.INVENTORY, 1, self._data[records.INVENTORY], Inventory)
        tasks = () if inventory is None else self._tasks(inventory)
        sound = self._faults.total == before
        questions = {key for key, _, _ in asked(tasks)} if sound else None
        run = (
            self._checked(records.RUN, 1, self._data[records.RUN], Run) if records.RUN in self._data else None
        )
        digest = canonical.digest(self._data[records.INVENTORY])
        if run is not None and run.inventory != digest:
            self._fault(records.RUN, 1, "/inventory", "integrity.inventory", digest, run.inventory)
        if records.ANSWERS in self._data and records.RUN not in self._data:
            self._fault(records.RUN, 1, "", "integrity.inventory", "run.json beside answers.jsonl", "nothing")
        answers = self._answers(questions)
        annotations = self._annotations(questions)
        if self._faults or inventory is None:
            raise IntegrityFaultsError(self._faults)
        return Kept(inventory=inventory, tasks=tasks, run=run, answers=answers, annotations=annotations)

    def _fault(self, name: str, number: int, *parts: str) -> None:
        """Note a fault by its pointer and code, what is expected, and what is found."""
        pointer, code, expected, actual = parts
        where = f"{records.FOLDER}/{name}"
        self._faults.note(
            [Fault(file=where, line=number, pointer=pointer, code=code, expected=expected, found=actual)]
        )

    def _lines(self, name: str, kind: type[Item]) -> Iterator[tuple[int, Item]]:
        for number, text in enumerate(split_lines(self._data.get(name, b"")), 1):
            if (item := self._checked(name, number, text, kind)) is not None:
                yield number, item

    def _checked(self, name: str, number: int, text: bytes, kind: type[Item]) -> Item | None:
        """Return the document in a text, or None once its fault is noted."""
        value = object_on(text, number, most=MAX_LINE, code="integrity.line")
        if isinstance(value, list):
            self._faults.note([structs.replace(fault, file=f"{records.FOLDER}/{name}") for fault in value])
            return None
        try:
            return msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError as error:
            self._fault(name, number, *_field_fault(value, str(error)))
        return None

    def _tasks(self, inventory: Inventory) -> tuple[Task, ...]:
        data, n = self._data[records.TASKS], inventory.instances
        self._check_inventory(inventory, canonical.digest(data))
        if inventory.seed is not None and n is not None:
            right = generate(seed=inventory.seed, instances=n)
            pairs = zip_longest(map(line, right), data.splitlines(keepends=True))
            for number, (expected, actual) in enumerate(pairs, 1):
                if expected != actual:
                    wrong = "the task that the generator gives", "another" if actual else "none"
                    self._fault(records.TASKS, number, "", "integrity.not-generated", *wrong)
            return right
        numbered = list(self._lines(records.TASKS, Task))
        tasks = tuple(task for _, task in numbered)
        for index, flaw in lint(tasks):
            rule = (flaw.pointer, flaw.rule, f"no task where {CODES[flaw.rule]}", flaw.found[:200])
            self._fault(records.TASKS, numbered[index][0], *rule)
        places = dict[str, int]()
        for number, task in numbered:
            if places.setdefault(task.id, number) != number:
                self._fault(
                    records.TASKS, number, "/id", "integrity.repeated", "an id of no other task", task.id
                )
        if not tasks:
            self._fault(records.TASKS, 1, "", "integrity.line", "at least one task", "none")
        return tasks

    def _check_inventory(self, inventory: Inventory, digest: str) -> None:
        generated = inventory.generator is not None
        told = [item is not None for item in (inventory.seed_commitment, inventory.instances)]
        if told != [generated, generated] or (inventory.seed is not None and not generated):
            expected = "seed, commitment and instances with a generator, and no other"
            self._fault(
                records.INVENTORY, 1, "/generator", "integrity.inventory", expected, f"{inventory.generator}"
            )
        right = inventory.seed_commitment if inventory.seed is None else commitment(inventory.seed)
        for pointer, expected, actual in (
            ("/seed_commitment", f"{right}", f"{inventory.seed_commitment}"),
            ("/tasks_digest", digest, inventory.tasks_digest),
        ):
            if expected != actual:
                self._fault(records.INVENTORY, 1, pointer, "integrity.inventory", expected, actual)

    def _answers(self, questions: set[Key] | None) -> dict[Key, Answer]:
        answers: dict[Key, Answer] = {}
        for number, answer in self._lines(records.ANSWERS, Answer):
            self._known(records.ANSWERS, number, answer.key, questions)
            if (answer.status == "answered") != (answer.text is not UNSET):
                expected = "text exactly where the status is answered"
                self._fault(
                    records.ANSWERS, number, "/text", "integrity.field", expected, f"status {answer.status}"
                )
            if answers.setdefault(answer.key, answer) is not answer:
                self._fault(
                    records.ANSWERS, number, "", "integrity.repeated", "one reply to a question", "a second"
                )
        return answers

    def _annotations(self, questions: set[Key] | None) -> tuple[Annotation, ...]:
        kept: dict[tuple[str, str, str, str], Annotation] = {}
        for number, item in self._lines(records.ANNOTATIONS, Annotation):
            self._known(records.ANNOTATIONS, number, item.key, questions)
            need = _NEEDS[item.kind]
            if getattr(item, need) is UNSET and (need != "rating" or item.valid is UNSET):
                self._fault(
                    records.ANNOTATIONS, number, f"/{need}", "integrity.field", f"a {need}", "nothing"
                )
            place = (item.kind, item.key.task, item.key.probe or "", item.rater)
            if kept.setdefault(place, item) is not item:
                expected = f"one {item.kind} line of {shown(item.rater)} on a question"
                self._fault(records.ANNOTATIONS, number, "/rater", "integrity.repeated", expected, "a second")
        return tuple(kept[key] for key in sorted(kept))

    def _known(self, name: str, number: int, key: Key, questions: set[Key] | None) -> None:
        if questions is not None and key not in questions:
            field, value = ("probe", key.probe) if Key(key.task, None) in questions else ("task", key.task)
            expected = f"a {field} of the tasks"
            self._fault(name, number, f"/{field}_id", "integrity.unknown", expected, shown(value))


def _field_fault(value: Any, error: str) -> tuple[str, str, str, str]:
    """Return pointer, code, what is expected and what is found of a value that is no record."""
    reason, _, path = error.partition(" - at `$")
    places = re.findall(r"\w+", path)
    expected = reason.removeprefix("Expected ").replace("Invalid enum value", "a value of the format, not")
    if named := re.search(r" (unknown|required) field `(.+)`", reason):
        places.append(named[2])
        expected = "a field of the format" if named[1] == "unknown" else "a value"
    for place in places[:1]:
        value = value.get(place, "nothing")
    return "".join(f"/{place}" for place in places), "integrity.field", expected, shown(value)
