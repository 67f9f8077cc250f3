"""The files under ``integrity/``, read strictly: one bad line refuses them all, and every bad line is listed.

Of a line that is no record, the first fault is told.
"""

from __future__ import annotations

import re
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, structs

from certkit.ground import canonical, files
from certkit.ground.errors import CODES
from certkit.probes import records
from certkit.probes.generate import generate
from certkit.probes.lint import lint
from certkit.probes.matching import Reading, judge, thousandths
from certkit.probes.records import (
    Annotation,
    Inventory,
    Mode,
    ProbeAnswer,
    ProbeRun,
    ProbeTask,
    QuestionKey,
    QuestionLine,
    asked,
)
from certkit.record.faults import Fault, Faults, FaultsError
from certkit.record.reader import object_on, shown, split_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_FILE: Final = 256 * 1024 * 1024
MAX_LINE: Final = 256 * 1024
_NAMES: Final = (records.INVENTORY, records.TASKS, records.RUN, records.ANSWERS, records.ANNOTATIONS)
_STATED: Final = ("confidence", "success_probability", "retrieval_risk", "neural_conflict")

Item = TypeVar("Item", bound=Struct)
Said = TypeVar("Said", bound=QuestionLine)


class IntegrityFaultsError(FaultsError):
    """What lies under ``integrity/`` was refused."""

    refusal = "integrity.invalid"
    lines = "files under integrity/"
    advice = "correct these {lines}; a run of certkit writes none of these faults"


class Kept(Struct, frozen=True, kw_only=True):
    """What the files hold: tasks with their origin, and what was run and said of them."""

    inventory: Inventory
    tasks: tuple[ProbeTask, ...]
    run: ProbeRun | None
    answers: dict[QuestionKey, ProbeAnswer]
    annotations: tuple[Annotation, ...]

    def replies(self) -> dict[QuestionKey, Reading]:
        """Return the replies reduced to integers, of which every score is made; a failed call is none."""
        replies, mode = {}, Mode.JSON if self.run is None else self.run.mode
        for key, _, question in asked(self.tasks):
            if (answer := self.answers.get(key)) is not None and answer.text is not UNSET:
                given = {name: getattr(answer, name) for name in _STATED}
                stated = {name: thousandths(share) for name, share in given.items() if share is not UNSET}
                replies[key] = structs.replace(judge(question, answer.text, mode=mode), **stated)
        return replies


def read(root: Path, load: Callable[[str], bytes] | None = None) -> Kept:
    """Return what lies under ``integrity/`` in a folder.

    Args:
        root: The folder that holds ``integrity/``.
        load: Returns the bytes of a file by its path below `root`; default: the file as it is now.

    Raises:
        IntegrityFaultsError: a line is refused.
        InputError: ``file.missing`` where there are no tasks, and what `load` raises.
    """
    return _Reader(
        root / records.FOLDER, load or (lambda path: files.read(root / path, limit=MAX_FILE))
    ).read()


class _Reader:
    """Reads the files of one folder, and collects their faults; the contents of a link are not read."""

    def __init__(self, folder: Path, load: Callable[[str], bytes]) -> None:
        self._faults = Faults()
        self._data = dict[str, bytes]()
        for path, is_link in files.inside(folder):
            name = path.relative_to(folder).as_posix()
            if is_link or name not in _NAMES:
                actual = "a link" if is_link else "another file"
                self._fault(name, 1, "", "integrity.file-name", f"a file {', '.join(_NAMES)}", actual)
            else:
                self._data[name] = load(f"{records.FOLDER}/{name}")
        for name in (records.INVENTORY, records.TASKS):
            if name not in self._data:  # a file that is not there is an error of its own
                self._data[name] = b"" if self._faults else load(f"{records.FOLDER}/{name}")

    def read(self) -> Kept:
        before = self._faults.total
        inventory = self._checked(records.INVENTORY, 1, self._data[records.INVENTORY], Inventory)
        tasks = () if inventory is None else self._tasks(inventory)
        sound = self._faults.total == before
        questions = {key for key, _, _ in asked(tasks)} if sound else None
        run = None
        if self._data.keys() & {records.RUN, records.ANSWERS}:  # there are no answers without a run
            run = self._checked(records.RUN, 1, self._data.get(records.RUN, b""), ProbeRun)
        if run is not None:
            self._same(records.RUN, "inventory", self._data[records.INVENTORY], run)
        answers = self._said(records.ANSWERS, ProbeAnswer, questions)
        annotations = self._said(records.ANNOTATIONS, Annotation, questions)
        if self._faults or inventory is None:
            raise IntegrityFaultsError(self._faults)
        return Kept(
            inventory=inventory,
            tasks=tasks,
            run=run,
            answers={answer.key: answer for answer in answers.values()},
            annotations=tuple(annotations[place] for place in sorted(annotations, key=str)),
        )

    def _fault(self, name: str, number: int, *told: str) -> None:
        """Note a fault by its pointer and code, what is expected and found; end where they are enough."""
        pointer, code, expected, actual = told
        place = f"{records.FOLDER}/{name}"
        self._faults.note(
            [Fault(file=place, line=number, pointer=pointer, code=code, expected=expected, found=actual)]
        )
        if self._faults.enough():
            raise IntegrityFaultsError(self._faults)

    def _same(self, name: str, field: str, data: bytes, document: Struct) -> None:
        """Note a fault where a field of a document is not the digest of other data."""
        if (actual := getattr(document, field)) != (digest := canonical.digest(data)):
            self._fault(name, 1, f"/{field}", "integrity.inventory", digest, actual)

    def _lines(self, name: str, kind: type[Item]) -> Iterator[tuple[int, Item]]:
        for number, text in enumerate(split_lines(self._data.get(name, b"")), 1):
            if (item := self._checked(name, number, text, kind)) is not None:
                yield number, item

    def _checked(self, name: str, number: int, text: bytes, kind: type[Item]) -> Item | None:
        """Return the document in a text, or None once its fault is noted."""
        value = object_on(text, number, most=MAX_LINE, code="integrity.line")
        if isinstance(value, list):
            for fault in value:
                self._fault(name, number, fault.pointer, fault.code, fault.expected, fault.found)
            return None
        try:
            return msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError as error:
            self._fault(name, number, *_field_fault(value, str(error)))
        return None

    def _tasks(self, inventory: Inventory) -> tuple[ProbeTask, ...]:
        data = self._data[records.TASKS]
        self._same(records.INVENTORY, "tasks_digest", data, inventory)
        if inventory.seed is None or inventory.instances is None:
            return self._linted()
        right = generate(seed=inventory.seed, instances=inventory.instances)
        pairs = zip_longest(BytesIO(records.lines(right)), BytesIO(data))
        for number, (expected, actual) in enumerate(pairs, 1):
            if expected != actual:
                wrong = "the task that the generator gives", "another" if actual else "none"
                self._fault(records.TASKS, number, "", "integrity.not-generated", *wrong)
        return right

    def _linted(self) -> tuple[ProbeTask, ...]:
        """Return tasks that no known seed gives, which must pass the linter."""
        numbered = list(self._lines(records.TASKS, ProbeTask))
        tasks = tuple(task for _, task in numbered)
        for index, flaw in lint(tasks):
            expected = f"no task where {CODES[flaw.rule]}"
            self._fault(
                records.TASKS, numbered[index][0], flaw.pointer, flaw.rule, expected, flaw.found[:200]
            )
        if not tasks:
            self._fault(records.TASKS, 1, "", "integrity.line", "at least one task", "none")
        return tasks

    def _said(
        self, name: str, kind: type[Said], questions: set[QuestionKey] | None
    ) -> dict[tuple[Any, ...], Said]:
        """Return the lines about questions, one for each question, of annotations for each kind and rater."""
        said: dict[tuple[Any, ...], Said] = {}
        for number, item in self._lines(name, kind):
            if questions is not None and item.key not in questions:
                field = "probe_id" if QuestionKey(item.task_id, None) in questions else "task_id"
                actual = shown(getattr(item, field))
                self._fault(name, number, f"/{field}", "integrity.unknown", "one of the tasks' ids", actual)
            place = (getattr(item, "kind", ""), *item.key, getattr(item, "rater", ""))
            if said.setdefault(place, item) is not item:
                self._fault(name, number, "", "integrity.repeated", "one reply or rating", "a second")
        return said


def _field_fault(value: Any, error: str) -> tuple[str, str, str, str]:
    """Return pointer, code, what is expected and what is found of a value that is no record."""
    reason, _, path = error.partition(" - at `$")
    places = re.findall(r"\w+", path)
    expected = reason.removeprefix("Expected ").replace("Invalid enum value", "a value of the format, not")
    if named := re.search(r" (unknown|required) field `(.+)`", reason):
        places.append(named[2])
        expected = "a field of the format" if named[1] == "unknown" else "a value"
    actual = shown(value.get(places[0], "nothing") if places else value)
    return "".join(f"/{place}" for place in places), "integrity.field", expected, actual
