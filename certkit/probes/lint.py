"""The linter: whether tasks are what they claim to be, by a solver of its own.

    flaws = lint(tasks)          # (index of the task, Flaw) for every flaw

The solver folds the facts of the authorities in order, and looks up what every question asks for. In the
*recency law*, the option mentioned last in instruction and turns is the lure where somebody misleads; in a
clean task it is the right one in the families `LATEST` and in no other, so that an agent that repeats what it
read last fails where it should.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from certkit.probes.matching import normal
from certkit.probes.task import (
    LATEST,
    Aim,
    Ask,
    Band,
    Fact,
    Family,
    Kind,
    Pair,
    Phase,
    Question,
    Role,
    Task,
    Value,
    Variant,
    parts,
    surface,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEAR: Final = 0.2
"""How much longer the last turn of a twin may be than the other's, as a share of the longer."""

_NAMES: Final = (*(normal(name.replace("_", " ")) for name in (*Family, *Band)), normal("distractor"))
_KINDS: Final = {Kind.LABEL: str, Kind.NUMBER: int, Kind.SET: tuple, Kind.PAIR: Pair}


class Flaw(Struct, frozen=True, kw_only=True):
    """One flaw of a task: the name of the rule that it breaks, the field, and both sides."""

    rule: str
    pointer: str
    expected: str
    found: str


def solve(
    facts: Sequence[Fact], authorities: Sequence[str], ask: Ask, options: Sequence[Value]
) -> tuple[Value, int] | None:
    """Return the option that the facts of the authorities give, and the turn that settled it.

    None where they give no option, or several.
    """
    state = {(fact.subject, fact.attribute): fact for fact in facts if fact.source in authorities}
    if ask.aim is Aim.HOLDER:
        held = {
            (subject, ask.attribute): fact for (subject, name), fact in state.items() if name == ask.attribute
        }
        answers = [(fact.subject, fact.turn) for fact in held.values() if fact.value == ask.value]
    elif ask.aim is Aim.ELIGIBLE:
        answers = _eligible(state, ask)
    else:
        attribute = "authority" if ask.aim is Aim.AUTHORITY else ask.attribute
        fact = state.get((ask.subject, attribute))
        answers = (
            []
            if fact is None
            else [(fact.source if ask.aim is Aim.SOURCE else surface(fact.value), fact.turn)]
        )
        if fact is not None and isinstance(options[0], Pair):
            answers = [(f"{surface(fact.value)} from {fact.source}", fact.turn)]
    fitting = [option for option in options if len(answers) == 1 and surface(option) == answers[0][0]]
    return (fitting[0], answers[0][1]) if len(fitting) == 1 else None


def _eligible(state: dict[tuple[str, str], Fact], ask: Ask) -> list[tuple[str, int]]:
    """Return who meets all conditions of the subject, and when the later of the two facts was stated."""
    rule = state.get((ask.subject, ask.attribute))
    if rule is None:
        return []
    return [
        (subject, max(rule.turn, fact.turn))
        for (subject, attribute), fact in state.items()
        if attribute == ask.attribute and subject != ask.subject and set(_list(rule)) <= set(_list(fact))
    ]


def _list(fact: Fact) -> tuple[str, ...]:
    return fact.value if isinstance(fact.value, tuple) else (fact.value,)


def lint(tasks: Sequence[Task]) -> list[tuple[int, Flaw]]:
    """Return the flaws of all tasks, each with the index of its task."""
    flaws = [(number, flaw) for number, task in enumerate(tasks) for flaw in _flaws(task)]
    clusters: dict[str, list[int]] = defaultdict(list)
    for number, task in enumerate(tasks):
        clusters[task.cluster].append(number)
    for numbers in clusters.values():
        flaws += [(numbers[-1], flaw) for flaw in _unlike([tasks[number] for number in numbers])]
    return sorted(flaws, key=lambda item: item[0])


def mentions(task: Task) -> str:
    """Return the words of instruction and turns, in which options are mentioned."""
    return normal("\n".join((task.instruction, *task.turns)))


def mentioned_last(question: Question, words: str) -> Value:
    """Return the option of a question that is mentioned last in `words`, those of `mentions`."""
    return max(question.options, key=lambda option: words.rfind(normal(surface(option))))


def _flaws(task: Task) -> Iterator[Flaw]:
    yield from _shape(task)
    words = mentions(task)
    asked = "\n".join((task.scenario, *(question.prompt for _, question in task.questions())))
    told = normal(asked) + words
    if named := [name.strip() for name in _NAMES if name in told]:
        yield _flaw("integrity.named", "/turns", "no name of a family, band or variant", ", ".join(named))
    if task.variant is Variant.DISTRACTOR:
        yield from _distractor(task)
    seen: dict[str, str] = {}
    for name, question in task.questions():
        place = "/final" if name is None else f"/probes/{name}"
        prompt = normal(question.prompt)
        first = seen.setdefault(prompt, place)
        if first != place:
            yield _flaw("integrity.same-question", place, f"another question than {first}", question.prompt)
        yield from _question(task, question, place, words)
        theirs = question.options if name is not None else _all_options(task)
        leaks = [
            surface(option) for option in theirs if all(normal(part) in prompt for part in parts(option))
        ]
        if leaks:
            yield _flaw("integrity.leak", f"{place}/prompt", "none of the options", ", ".join(leaks))


def _all_options(task: Task) -> list[Value]:
    return [option for _, question in task.questions() for option in question.options]


def _shape(task: Task) -> Iterator[Flaw]:
    last, positions = task.probes[-1], [probe.position for probe in task.probes]
    if (last.phase, last.role) != (Phase.LATE, Role.DECISION):
        actual = f"{last.phase} {last.role}"
        yield _flaw("integrity.shape", f"/probes/{last.id}", "a late decision as the last probe", actual)
    if positions != sorted(positions) or len({probe.id for probe in task.probes}) < len(positions):
        yield _flaw(
            "integrity.shape", "/probes", "probes with ids of their own in order of position", f"{positions}"
        )
    if len(task.turns) != task.priors.turns + 1:
        yield _flaw(
            "integrity.shape", "/turns", f"{task.priors.turns} turns and a last one", f"{len(task.turns)}"
        )
    if any(fact.turn > len(task.turns) for fact in task.facts):
        yield _flaw("integrity.shape", "/facts", f"facts of turns 0 to {len(task.turns)}", "a later one")
    if [fact.turn for fact in task.facts] != sorted(fact.turn for fact in task.facts):
        yield _flaw("integrity.shape", "/facts", "facts in the order of their turns", "another order")


def _distractor(task: Task) -> Iterator[Flaw]:
    said = [fact for fact in task.facts if fact.turn == len(task.turns)]
    if not said:
        yield _flaw("integrity.distractor", "/facts", "what the last turn asserts", "nothing")
    for fact in said:
        if fact.source in task.authorities:
            yield _flaw(
                "integrity.distractor", "/facts", "a last turn from no authority", f"one from {fact.source}"
            )


def _question(task: Task, question: Question, place: str, words: str) -> Iterator[Flaw]:
    surfaces = [normal(surface(option)) for option in question.options]
    kinds = {type(option) is _KINDS[question.kind] for option in question.options}
    if len(set(surfaces)) < len(surfaces) or kinds != {True}:
        yield _flaw(
            "integrity.options", f"{place}/options", f"different options of kind {question.kind}", "others"
        )
        return
    if question.gold not in question.options or question.lure not in question.options:
        yield _flaw("integrity.options", place, "gold and lure among the options", "others")
        return
    if question.gold == question.lure:
        yield _flaw(
            "integrity.options", f"{place}/lure", "another option than the gold one", surface(question.lure)
        )
    for option in surfaces:
        if option not in words:
            yield _flaw("integrity.unmentioned", f"{place}/options", "options that are told", option.strip())
        if outer := next((another for another in surfaces if option != another and option in another), None):
            yield _flaw(
                "integrity.inside",
                f"{place}/options",
                "no option in another",
                f"{option.strip()} in{outer}".strip(),
            )
    yield from _answered(task, question, place)
    last = mentioned_last(question, words)
    if task.variant is Variant.DISTRACTOR:
        kept, expected = last == question.lure, "the lure mentioned last"
    elif task.family in LATEST:
        kept, expected = last == question.gold, "the right option mentioned last"
    else:
        kept, expected = last != question.gold, "another option than the right one mentioned last"
    if not kept:
        yield _flaw("integrity.recency", f"{place}/options", expected, surface(last))


def _answered(task: Task, question: Question, place: str) -> Iterator[Flaw]:
    solved = solve(task.facts, task.authorities, question.ask, question.options)
    if solved is None:
        yield _flaw("integrity.unsolved", f"{place}/ask", "facts that give one option", "none, or several")
    elif solved[0] != question.gold:
        yield _flaw("integrity.gold", f"{place}/gold", surface(solved[0]), surface(question.gold))
    elif solved[1] != question.state_version:
        yield _flaw("integrity.gold", f"{place}/state_version", str(solved[1]), str(question.state_version))


def _unlike(twins: list[Task]) -> Iterator[Flaw]:
    """Yield how tasks of one cluster are no twins."""
    if sorted(task.variant for task in twins) != sorted(Variant):
        differing = ", ".join(task.variant for task in twins)
        yield _flaw("integrity.twins", "/cluster", "one clean and one distractor task", differing)
        return
    first, second = twins
    same = structs.replace(
        first,
        id=second.id,
        variant=second.variant,
        turns=(*first.turns[:-1], second.turns[-1]),
        facts=second.facts,
    )
    before = [[fact for fact in task.facts if fact.turn < len(first.turns)] for task in twins]
    if same != second or before[0] != before[1]:
        yield _flaw(
            "integrity.twins", "", "twins that differ in their last turn alone", f"{first.id} and {second.id}"
        )
    lengths = sorted(len(task.turns[-1]) for task in twins)
    if lengths[1] - lengths[0] > NEAR * lengths[1]:
        differing = f"{lengths[0]} and {lengths[1]} characters"
        yield _flaw("integrity.twins", "/turns", "last turns of about one length", differing)


def _flaw(rule: str, pointer: str, expected: str, found: str) -> Flaw:
    return Flaw(rule=rule, pointer=pointer, expected=expected, found=found)
