"""The files under ``integrity/``, read strictly: one bad line refuses them all, and every fault is listed.

A file of generated tasks is compared with what its seed gives. Tasks of one's own, and tasks of a withheld
seed, go through the linter instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, structs

from certkit import canonical, files
from certkit.errors import InputError
from certkit.evidence.reading.lines import pointer, shown, split_lines
from certkit.evidence.records.faults import LIMIT, Fault, Faults, FaultsError
from certkit.probes.answer import (
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
    Run,
    Status,
    asked,
)
from certkit.probes.generate import commitment, generate, line
from certkit.probes.lint import lint
from certkit.probes.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

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


class Kept(Struct, frozen=True, kw_only=True):
    """What the files hold: tasks with their origin, and what was run and said of them."""

    inventory: Inventory
    tasks: tuple[Task, ...]
    run: Run | None
    answers: dict[Key, Answer]
    annotations: tuple[Annotation, ...]


def read(root: Path) -> Kept:
    """Return what lies under ``integrity/`` in a folder.

    Raises `IntegrityFaultsError`, `InputError` ``integrity.file-name`` for any other file or link there, or
    ``file.missing`` where there are no tasks.
    """
    folder = root / FOLDER
    present = set()
    for path, is_link in files.inside(folder):
        name = path.relative_to(folder).as_posix()
        if name not in _NAMES or is_link:
            refused = f"{FOLDER}/{name} is {'a link' if is_link else 'none of ' + ', '.join(_NAMES)}"
            raise InputError("integrity.file-name", refused, where=str(root))
        present.add(name)
    return _Reader(folder, present).read()


class _Reader:
    """Reads the files of one folder, and collects their faults."""

    def __init__(self, folder: Path, present: set[str]) -> None:
        self._folder = folder
        self._present = present
        self._faults = Faults()

    def read(self) -> Kept:
        data = {
            name: self._bytes(name) for name in _NAMES if name in self._present or name in {INVENTORY, TASKS}
        }
        inventory = self._document(INVENTORY, data[INVENTORY], Inventory)
        tasks = () if inventory is None else self._tasks(inventory, data[TASKS])
        self._refuse()
        assert inventory is not None  # noqa: S101 - otherwise there were faults
        run = self._document(RUN, data[RUN], Run) if RUN in data else None
        if run is not None and run.inventory != canonical.digest(data[INVENTORY]):
            self._fault(
                RUN, 1, "/inventory", "integrity.inventory", "the digest of inventory.json", run.inventory
            )
        if ANSWERS in data and RUN not in data:
            self._fault(RUN, 1, "", "integrity.inventory", "run.json beside answers.jsonl", "nothing")
        questions = {key for key, _, _ in asked(tasks)}
        answers = self._answers(data.get(ANSWERS, b""), questions)
        annotations = self._annotations(data.get(ANNOTATIONS, b""), questions)
        self._refuse()
        return Kept(inventory=inventory, tasks=tasks, run=run, answers=answers, annotations=annotations)

    def _bytes(self, name: str) -> bytes:
        return files.read(self._folder / name, limit=MAX_FILE)

    def _refuse(self) -> None:
        if self._faults:
            raise IntegrityFaultsError(self._faults)

    def _fault(  # noqa: PLR0917 - the six parts of a fault, in the order in which it is printed
        self, name: str, number: int, place: str, code: str, expected: str, actual: str
    ) -> None:
        file = f"{FOLDER}/{name}"
        self._faults.note(
            [Fault(file=file, line=number, pointer=place, code=code, expected=expected, found=actual)]
        )

    def _document(self, name: str, data: bytes, kind: type[Item]) -> Item | None:
        return self._checked(name, 1, data, kind)

    def _lines(self, name: str, data: bytes, kind: type[Item]) -> Iterator[tuple[int, Item]]:
        for number, text in enumerate(split_lines(data), 1):
            if len(text) > MAX_LINE:
                self._fault(
                    name, number, "", "integrity.line", f"at most {MAX_LINE:,} bytes", f"{len(text):,}"
                )
            elif (item := self._checked(name, number, text, kind)) is not None:
                yield number, item

    def _checked(self, name: str, number: int, text: bytes, kind: type[Item]) -> Item | None:
        """Return the document in a text, or None once its faults are noted."""
        try:
            value = canonical.loads(text)
        except InputError as error:
            reason = f"{error.message} ({error.code})"
            self._fault(name, number, "", "integrity.line", "one strict JSON object", reason)
            return None
        if not isinstance(value, dict):
            self._fault(name, number, "", "integrity.line", "one JSON object", shown(value))
            return None
        try:
            return msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError:
            for place, expected, actual in _field_faults(value, kind):
                self._fault(name, number, place, "integrity.field", expected, actual)
            return None

    def _tasks(self, inventory: Inventory, data: bytes) -> tuple[Task, ...]:
        self._check_inventory(inventory, data)
        if inventory.seed is not None and inventory.instances is not None:
            if inventory.instances * 48 > MAX_TASKS:
                self._fault(
                    INVENTORY, 1, "/instances", "integrity.field", f"at most {MAX_TASKS // 48:,}", "more"
                )
                return ()
            right = generate(seed=inventory.seed, instances=inventory.instances)
            lines = [line(task) for task in right]
            if b"".join(lines) == data:
                return right
            self._differing(lines, data)
        numbered = list(self._lines(TASKS, data, Task))
        tasks = tuple(task for _, task in numbered)
        for index, flaw in lint(tasks):
            number = numbered[index][0]
            self._fault(TASKS, number, flaw.pointer, flaw.rule, flaw.expected, flaw.found[:200])
        for number, name in _repeated((number, task.id) for number, task in numbered):
            self._fault(TASKS, number, "/id", "integrity.repeated", "an id of its own", name)
        if not tasks and not self._faults:
            self._fault(TASKS, 1, "", "integrity.line", "at least one task", "nothing")
        return tasks

    def _check_inventory(self, inventory: Inventory, data: bytes) -> None:
        made = (inventory.seed_commitment, inventory.instances)
        if (inventory.generator is None) != (made == (None, None)) or (
            inventory.generator is None and inventory.seed is not None
        ):
            expected = "a commitment and instances exactly where there is a generator"
            self._fault(INVENTORY, 1, "/generator", "integrity.inventory", expected, "something else")
        if inventory.seed is not None and commitment(inventory.seed) != inventory.seed_commitment:
            expected = commitment(inventory.seed)
            self._fault(
                INVENTORY,
                1,
                "/seed_commitment",
                "integrity.inventory",
                expected,
                f"{inventory.seed_commitment}",
            )
        if (digest := canonical.digest(data)) != inventory.tasks_digest:
            self._fault(
                INVENTORY,
                1,
                "/tasks_digest",
                "integrity.inventory",
                inventory.tasks_digest,
                f"{digest} in {TASKS}",
            )

    def _differing(self, right: list[bytes], data: bytes) -> None:
        """Note every line that is not what the seed gives."""
        present = split_lines(data)
        for number in range(1, max(len(right), len(present)) + 1):
            wanted = right[number - 1].rstrip(b"\n") if number <= len(right) else None
            held = present[number - 1] if number <= len(present) else None
            if wanted != held and self._faults.total < LIMIT:
                expected = "the task that the seed gives" if wanted else "no further task"
                actual = (
                    "another" if held is not None and wanted else "a task" if held is not None else "no task"
                )
                self._fault(TASKS, number, "", "integrity.not-generated", expected, actual)

    def _answers(self, data: bytes, questions: set[Key]) -> dict[Key, Answer]:
        answers: dict[Key, Answer] = {}
        for number, answer in self._lines(ANSWERS, data, Answer):
            self._known(ANSWERS, number, answer.key, questions)
            if (answer.status is Status.ANSWERED) != (answer.text is not UNSET):
                expected = "text exactly where the status is answered"
                self._fault(ANSWERS, number, "/text", "integrity.field", expected, f"status {answer.status}")
            if answers.setdefault(answer.key, answer) is not answer:
                self._fault(ANSWERS, number, "", "integrity.repeated", "one reply to a question", "a second")
        return answers

    def _annotations(self, data: bytes, questions: set[Key]) -> tuple[Annotation, ...]:
        kept: dict[tuple[str, Key, str], Annotation] = {}
        for number, item in self._lines(ANNOTATIONS, data, Annotation):
            key = key_of(item)
            self._known(ANNOTATIONS, number, key, questions)
            if getattr(item, _NEEDS[item.kind]) is UNSET and (
                item.kind != "difficulty" or item.valid is UNSET
            ):
                place = f"/{_NEEDS[item.kind]}"
                self._fault(ANNOTATIONS, number, place, "integrity.field", f"a {place[1:]}", "nothing")
            if kept.setdefault((item.kind, key, item.rater), item) is not item:
                expected = f"one {item.kind} line of {shown(item.rater)} on a question"
                self._fault(ANNOTATIONS, number, "/rater", "integrity.repeated", expected, "a second")
        return tuple(
            kept[key]
            for key in sorted(kept, key=lambda key: (key[0], key[1].task, key[1].probe or "", key[2]))
        )

    def _known(self, name: str, number: int, key: Key, questions: set[Key]) -> None:
        if key not in questions:
            unknown = key.task if Key(key.task, None) not in questions else f"{key.task} {key.probe}"
            place = "/task_id" if Key(key.task, None) not in questions else "/probe_id"
            self._fault(name, number, place, "integrity.unknown", "a question of the tasks", shown(unknown))


def key_of(item: Annotation) -> Key:
    """Return the question, or with no probe the task, that an annotation is about."""
    return Key(item.task_id, None if item.probe_id is UNSET else item.probe_id)


def _repeated(items: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    seen: set[str] = set()
    for number, name in items:
        if name in seen:
            yield number, name
        seen.add(name)


def _field_faults(value: dict[str, Any], kind: type[Struct]) -> Iterator[tuple[str, str, str]]:
    """Yield pointer, what is expected and what is found of every wrong field."""
    fields = {field.encode_name: field for field in structs.fields(kind)}
    for name in value.keys() - fields.keys() - {"schema"}:
        yield pointer(name), "a field of the format", shown(value[name])
    for name, field in fields.items():
        if name not in value:
            if field.required:
                yield pointer(name), "a value", "nothing"
            continue
        try:
            msgspec.convert(value[name], field.type, strict=True)
        except msgspec.ValidationError as error:
            reason, _, place = str(error).partition(" - at `$")
            deeper = place.rstrip("`").replace("[", "/").replace("]", "").replace(".", "/")
            yield pointer(name) + deeper, reason[:1].lower() + reason[1:], shown(value[name])
    if value.get("schema", kind.__struct_config__.tag) != kind.__struct_config__.tag:
        yield "/schema", str(kind.__struct_config__.tag), shown(value["schema"])
