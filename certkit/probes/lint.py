"""The linter: whether tasks are what they claim to be, by a solver of its own.

    flaws = lint(tasks)          # (index of the task, Flaw) for every flaw; `ground.errors` tells the rules

The solver folds the facts of the authorities in order, and looks up what every question asks for. The recency
law is told in docs/reference/integrity.md.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from certkit.probes import records
from certkit.probes.matching import normal
from certkit.probes.records import (
    Ask,
    Fact,
    ProbeQuestion,
    ProbeTask,
    SourcedValue,
    Value,
    Variant,
    parts,
    surface,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEAR: Final = 0.2
"""How much longer the last turn of a twin may be than the other's, as a share of the longer."""
_NAMES: Final = [
    normal(name.replace("_", " ")) for name in (*records.Family, *records.Band, Variant.DISTRACTOR)
]
_KINDS: Final = {"label": str, "number": int, "set": tuple, "pair": SourcedValue}


class Flaw(NamedTuple):
    """One flaw of a task: the name of the rule that it breaks, the field, and what stands there."""

    rule: str
    pointer: str
    found: str


def solve(
    facts: Sequence[Fact], authorities: Sequence[str], ask: Ask, options: Sequence[Value]
) -> tuple[Value, int] | None:
    """Return the option that the facts of the authorities give, and the turn that settled it.

    None where they give no option, or several.
    """
    state = {(fact.subject, fact.attribute): fact for fact in facts if fact.source in authorities}
    holding = [fact for fact in state.values() if fact.attribute == ask.attribute]
    rule = state.get((ask.subject, "authority" if ask.aim == "authority" else ask.attribute))
    if ask.aim == "holder":
        answers = [(fact.subject, fact.turn) for fact in holding if fact.value == ask.value]
    elif rule is None:
        answers = []
    elif ask.aim == "eligible":  # who meets all conditions, and the later of the two statements
        terms = set(parts(rule.value))
        meeting = (fact for fact in holding if fact is not rule and terms <= set(parts(fact.value)))
        answers = [(fact.subject, max(rule.turn, fact.turn)) for fact in meeting]
    elif ask.aim == "source":
        answers = [(rule.source, rule.turn)]
    else:
        source = f" from {rule.source}" if isinstance(options[0], SourcedValue) else ""
        answers = [(surface(rule.value) + source, rule.turn)]
    fitting = [option for option in options if len(answers) == 1 and surface(option) == answers[0][0]]
    return (fitting[0], answers[0][1]) if len(fitting) == 1 else None


def lint(tasks: Sequence[ProbeTask]) -> list[tuple[int, Flaw]]:
    """Return the flaws of all tasks, each with the index of its task."""
    clusters: dict[str, list[ProbeTask]] = defaultdict(list)
    for task in tasks:
        clusters[task.cluster].append(task)
    twins = [clusters[task.cluster] for task in tasks]
    return [(number, flaw) for number, task in enumerate(tasks) for flaw in _flaws(task, twins[number])]


def mentions(task: ProbeTask) -> str:
    """Return the words of instruction and turns, in which options are mentioned."""
    return normal("\n".join((task.instruction, *task.turns)))


def mentioned_last(question: ProbeQuestion, words: str) -> Value:
    """Return the option of a question that is mentioned last in `words`, those of `mentions`."""
    return max(question.options, key=lambda option: words.rfind(normal(surface(option))))


def _flaws(task: ProbeTask, twins: Sequence[ProbeTask]) -> Iterator[Flaw]:
    yield from _shape(task)
    if task is twins[-1] and (unlike := _unlike(twins)):
        yield Flaw("integrity.twins", "/cluster", unlike)
    words = mentions(task)
    questions = [(key.probe, question) for key, _, question in records.asked((task,))]
    told = normal("\n".join((task.scenario, *(question.prompt for _, question in questions)))) + words
    if named := [name.strip() for name in _NAMES if name in told]:
        yield Flaw("integrity.named", "/turns", ", ".join(named))
    said = [fact.source for fact in task.facts if fact.turn == len(task.turns)]
    if task.variant is Variant.DISTRACTOR and not (said and set(said).isdisjoint(task.authorities)):
        yield Flaw("integrity.distractor", "/facts", ", ".join(said) or "nothing")
    prompts = [normal(question.prompt) for _, question in questions]
    every = [option for _, question in questions for option in question.options]
    yield from _leaks("/scenario", task.scenario, every)
    for number, (name, question) in enumerate(questions):
        place = f"/probes/{name}" if name else "/final"
        if prompts[number] in prompts[:number]:
            yield Flaw("integrity.same-question", place, question.prompt)
        yield from _leaks(f"{place}/prompt", question.prompt, question.options if name else every)
        yield from _question(task, question, place, words)


def _leaks(place: str, text: str, options: Sequence[Value]) -> Iterator[Flaw]:
    for option in options:
        if all(normal(part) in normal(text) for part in parts(option)):
            yield Flaw("integrity.leak", place, surface(option))


def _shape(task: ProbeTask) -> Iterator[Flaw]:
    last, positions = task.probes[-1], [probe.position for probe in task.probes]
    turns, ids = [fact.turn for fact in task.facts], {probe.id for probe in task.probes}
    for place, right, actual in (
        ("/id", task.id == f"{task.cluster}-{task.variant}", task.id),
        ("/probes", (last.phase, last.role) == ("late", "decision"), f"{last.phase} {last.role} at the end"),
        ("/probes", positions == sorted(positions), f"positions {positions}"),
        ("/probes", len(ids) == len(positions), "an id twice"),
        ("/turns", len(task.turns) == task.priors.turns + 1, f"{len(task.turns)} turns"),
        ("/facts", turns == sorted(turns) and max(turns, default=0) <= len(task.turns), f"turns {turns}"),
    ):
        if not right:
            yield Flaw("integrity.shape", place, actual[:200])


def _question(task: ProbeTask, question: ProbeQuestion, place: str, words: str) -> Iterator[Flaw]:
    surfaces = [normal(surface(option)) for option in question.options]
    gold, lure = question.gold, question.lure
    kinds = {type(option) is _KINDS[question.kind] for option in question.options}
    known = gold != lure and {gold, lure} <= {*question.options}
    if len(set(surfaces)) < len(surfaces) or kinds != {True} or not known:
        listed = ", ".join(map(surface, question.options))
        yield Flaw("integrity.options", place, f"{listed}; gold {surface(gold)}, lure {surface(lure)}")
        return
    for option in surfaces:
        if option not in words:
            yield Flaw("integrity.unmentioned", f"{place}/options", option.strip())
        if outer := next((another for another in surfaces if option != another and option in another), None):
            yield Flaw("integrity.inside", f"{place}/options", f"{option.strip()} in {outer.strip()}")
    solved = solve(task.facts, task.authorities, question.ask, question.options)
    if solved is None:
        yield Flaw("integrity.unsolved", f"{place}/ask", "none, or several")
    elif solved != (gold, question.state_version):
        yield Flaw("integrity.gold", f"{place}/gold", f"{surface(gold)} of turn {question.state_version}")
    last = mentioned_last(question, words)
    misled, latest = task.variant is Variant.DISTRACTOR, task.family in records.LATEST
    kept = last == lure if misled else (last == gold) is latest
    if not kept:
        yield Flaw("integrity.recency", f"{place}/options", surface(last))


def _unlike(tasks: Sequence[ProbeTask]) -> str:
    """Return how tasks of one cluster are no twins; empty where they are."""
    if sorted(task.variant for task in tasks) != sorted(Variant):
        return ", ".join(task.variant for task in tasks)
    first, second = map(_before_last, tasks)
    if first != second:
        return "they differ before the last turn"
    lengths = sorted(len(task.turns[-1]) for task in tasks)
    if lengths[1] - lengths[0] > NEAR * lengths[1]:
        return f"{lengths[0]} and {lengths[1]} characters"
    return ""


def _before_last(task: ProbeTask) -> ProbeTask:
    """Return what a task has in common with its twin."""
    facts = tuple(fact for fact in task.facts if fact.turn < len(task.turns))
    return structs.replace(task, id="", variant=Variant.CLEAN, turns=task.turns[:-1], facts=facts)
