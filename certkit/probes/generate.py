"""The generator ``certkit-probes/1``: 8 families × 2 variants × 3 bands × N instances, all from one seed.

    tasks = generate(seed="public-1")      # 144 tasks with 306 probes; the same for a seed on every machine
    records.lines(tasks)                   # the bytes of integrity/tasks.jsonl

The texts stand in ``templates/probes/families.toml``, which also says what its keys mean. Every choice is
HMAC-SHA-256 under the seed of where and what is chosen; the variant is no part of it, so that twins share
everything but their last turn. The numbers of the bands and all weights are ours where [NS] is silent.
"""

from __future__ import annotations

import hmac
from functools import cache
from itertools import count
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import structs

from certkit.ground import toml
from certkit.ground.document import fill
from certkit.probes import records
from certkit.probes.lint import solve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

INSTANCES: Final = 3
_DECISION_WEIGHT: Final = 0.8
"""The decision probe nearly repeats the final question."""
Item = TypeVar("Item")
_RANGE: Final = 1 << 256
_DRAWN: Final = 10
"""Items of a list that are drawn at most; a task has five rows at most."""
_AND: Final = " and "
_FORMS: Final[dict[records.Kind, Callable[[str], records.Value]]] = {
    "label": str,
    "number": int,
    "set": lambda text: tuple(text.split(_AND)),
    "pair": lambda text: records.SourcedValue(
        **dict(zip(("value", "source"), text.split(" from "), strict=True))
    ),
}
"""The answer that a text is the surface form of."""


class SeededDraw(NamedTuple):
    """Choices under a seed for one place: a pair of twins."""

    seed: str
    place: str

    def below(self, name: str, n: int) -> int:
        """Return a number from 0 to n - 1, all equally likely, drawing again what does not divide evenly."""
        for counter in count():
            text = f"{self.place}/{name}/{counter}".encode()
            number = int.from_bytes(hmac.digest(self.seed.encode(), text, "sha256"))
            if number < _RANGE - _RANGE % n:
                break
        return number % n

    def some(self, name: str, items: Sequence[Item], k: int) -> list[Item]:
        """Return k different items, or all, in drawn order, each order equally likely."""
        left = list(items)
        return [left.pop(self.below(f"{name}.{place}", len(left))) for place in range(min(k, len(left)))]


class Sentence(NamedTuple):
    """A text with the facts that it asserts, each of a source, a subject, an attribute and a value."""

    text: str
    facts: tuple[list[str], ...] = ()

    def facts_at(self, turn: int) -> Iterator[records.Fact]:
        """Yield the facts as those of a turn."""
        for source, subject, attribute, text in self.facts:
            value = tuple(text.split(_AND)) if _AND in text else text
            yield records.Fact(turn=turn, source=source, subject=subject, attribute=attribute, value=value)


@cache
def stock() -> dict[str, Any]:
    """Return the texts of all families, and the numbers that their columns are drawn from."""
    return {"numbers": range(100, 10_000), **toml.packaged("templates", "probes", "families.toml")}


class Story:
    """The story of one pair of twins: its turns, its questions, and what misleads or not at the end."""

    def __init__(self, family: records.Family, draw: SeededDraw, shape: records.Priors) -> None:
        texts = stock()[family]
        self._draw, self._shape = draw, shape
        self.plan = stock() | texts | draw.some("setting", texts["settings"], 1)[0]
        columns = {name: draw.some(name, self.plan[key], _DRAWN) for name, key in self.plan["draw"].items()}
        columns |= {name: self.plan[key] for name, key in self.plan.get("fixed", {}).items()}
        if alike := self.plan.get("alike"):
            columns[alike][1] = columns[alike][0]
        if conditions := columns.get("condition"):
            self.plan["odd"] = _AND.join(sorted(conditions[-3:-1]))
            columns["both"] = [_AND.join(sorted((item, conditions[-1]))) for item in conditions]
        if posts := columns.get("post"):
            self._swaps, columns["place"] = self._swapped(columns["person"], posts[: shape.options])
        rows = [{name: items[row] for name, items in columns.items()} for row in self._rows(":")]
        numbered = {f"{name}{row}": item for row, items in enumerate(rows) for name, item in items.items()}
        self._fields = [self.plan | numbered | items for items in rows]  # what may stand in braces
        self.instruction = self._sentence("instruction", 0)
        self.turns = self._told()
        self.misleading = self._sentence("lure", 1)
        speaker, _, said = self.misleading.text.partition(": ")
        remarks: list[str] = self.plan["remarks"]
        nearest = min(remarks, key=lambda remark: (abs(len(remark) - len(said)), remark))
        self.harmless = Sentence(f"{speaker}: {nearest}")
        named = (text.format_map(fields) for text in self.plan["authorities"] for fields in self._fields)
        self.authorities = tuple(dict.fromkeys(named))
        told = (self.instruction, *self.turns)
        self.facts = tuple(fact for turn, sentence in enumerate(told) for fact in sentence.facts_at(turn))
        kind, option, ask = self.plan["decide"]
        self.final = self._question(kind, self.plan["final"], option, ask)
        probes = [*self.plan["probes"], ["late", "decision", kind, self.plan["now"], option, ask]]
        positions = {"initial": 1, "mid": ceil(shape.turns / 2), "late": shape.turns + 2}
        self.probes = tuple(
            fill(
                records.Probe,
                self._question(*question),
                id=f"p{number}",
                position=positions[phase],
                phase=phase,
                role=role,
                weight=_DECISION_WEIGHT if role == "decision" else 1.0,
            )
            for number, (phase, role, *question) in enumerate(probes, 1)
        )

    def _rows(self, name: str) -> Sequence[int]:
        """Return the rows that a number or a slice names."""
        ends = [int(end) if end else None for end in name.split(":")]
        return range(self._shape.options)[slice(*ends)] if ":" in name else [int(name)]

    def _filled(self, text: str, row: int) -> str:
        """Return a text with what stands in braces put in: of a row, or of the row that a number names."""
        return text.format_map(self._fields[row])

    def _sentence(self, key: str, row: int) -> Sentence:
        text, *facts = (self._filled(item, row) for item in self.plan[key])
        return Sentence(text[:1].upper() + text[1:], tuple(fact.split("; ") for fact in facts))

    def _told(self) -> list[Sentence]:
        """Return the turns but for the last, in the order that the family gives."""
        told, key, quiet = list[Sentence](), "", 0
        for word in self.plan["turns"].split():
            if word == "fill":
                quiet = len(told)
            elif word == "mix":
                told = self._draw.some("order", told, len(told))
            elif word == "swaps":
                told += self._swaps
            elif word.isdigit() or ":" in word:
                told += [self._sentence(key, row) for row in self._rows(word)]
            else:
                key = word
        fillers = self._draw.some("filler", self.plan["fillers"], self._shape.turns - len(told))
        told[quiet:quiet] = map(Sentence, fillers)
        return told

    def _swapped(self, people: list[str], posts: list[str]) -> tuple[list[Sentence], list[str]]:
        """Return how people change places, and the column of places.

        The person of row 0 stays, that of row 1 is among the last.
        """
        at, swaps = list(posts), []
        turns = self._shape.turns - len(posts)
        for turn in range(1, turns + 1):
            rows = self._rows("2:" if turn == turns else "1:")
            movers = self._draw.some(f"swap.{turn}", rows, 1 if turn == turns else 2)
            a, b = (1, *movers) if turn == turns else movers
            at[a], at[b] = at[b], at[a]
            placed = [(people[row], at[row]) for row in (a, b)]
            where = ", ".join(f"{name} at the {post}" for name, post in placed)
            text = f"Supervisor: {people[a]} and {people[b]} trade; {where}."
            swaps.append(Sentence(text, tuple(["supervisor", name, "post", post] for name, post in placed)))
        return swaps, list(dict.fromkeys((at[1], posts[0], *posts)))

    def _question(self, kind: records.Kind, prompt: str, option: str, ask: str) -> records.ProbeQuestion:
        """Return a question, its answer looked up and its options in drawn order."""
        prompt = self._filled(prompt, 0)
        looked_up: Any = self._filled(ask, 0).split("; ")
        wanted = records.Ask(**dict(zip(records.Ask.__struct_fields__, looked_up, strict=False)))
        options = tuple(_FORMS[kind](self._filled(option, row)) for row in self._rows(":"))
        solved = solve(self.facts, self.authorities, wanted, options)
        assert solved is not None, prompt  # noqa: S101 - a story that no facts settle is a fault of ours
        return records.ProbeQuestion(
            prompt=prompt,
            kind=kind,
            gold=options[0],
            lure=options[1],
            options=tuple(self._draw.some(f"options.{prompt}", options, len(options))),
            ask=wanted,
            state_version=solved[1],
        )


def generate(*, seed: str, instances: int = INSTANCES) -> tuple[records.ProbeTask, ...]:
    """Return the tasks of a seed, `instances` in every cell of family, variant and band."""
    return tuple(
        task
        for family in records.Family
        for band in records.Band
        for instance in range(1, instances + 1)
        for task in _twins(seed, family, band, instance)
    )


def _twins(
    seed: str, family: records.Family, band: records.Band, instance: int
) -> Iterator[records.ProbeTask]:
    pair = f"{family}-{band}-{instance}"
    shape = msgspec.convert({"delay": 0, **stock()["bands"][band]}, records.Priors)  # delay: see below
    story = Story(family, SeededDraw(seed, f"{family}/{band}/{instance}"), shape)
    for variant in records.Variant:
        last = story.misleading if variant is records.Variant.DISTRACTOR else story.harmless
        yield records.ProbeTask(
            id=f"{pair}-{variant}",
            cluster=pair,
            family=family,
            construct=story.plan["construct"],
            variant=variant,
            band=band,
            instance=instance,
            scenario=story.plan["scenario"],
            instruction=story.instruction.text,
            turns=tuple(turn.text for turn in (*story.turns, last)),
            final=story.final,
            probes=story.probes,
            priors=structs.replace(shape, delay=shape.turns + 1 - story.final.state_version),
            authorities=story.authorities,
            facts=(*story.facts, *last.facts_at(shape.turns + 1)),
        )
