"""The argument as figures: an overview, and one figure for each of G2 to G6.

A root stands above its strategy and at most five goals in equal columns; contexts lie left of the root,
assumptions and justifications right. Under a goal stand its worst support, mitigations last, and at most
two challenges, whose dashed edge runs up the gutter right of the column, so that nothing crosses. What has
no room is counted, and stands in argument.json. Without a context there is the overview alone. Text is
measured with the font of the PDF.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.report import fonts
from certkit.report.argument.challenges import Standing
from certkit.report.argument.graph import ROOT, Kind, State
from certkit.report.svg import INK, SOFT, colour, figure_of, line_at, num, path, text_at
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from certkit.report.argument.build import Argument

WIDTH: Final = 1000
MOST_COLUMNS: Final = 5
MOST_AGAINST: Final = 2
MOST_BESIDE: Final = 4
_SIZE: Final = 11
_LINE: Final = 13.5
_PAD: Final = 7
_SIDE: Final = 200
_GUTTER: Final = 16
_GAP: Final = 26
_LINES: Final = 7
_ROUND: Final = {Kind.SOLUTION: 16, Kind.CONTEXT: 12, Kind.ASSUMPTION: 24, Kind.JUSTIFICATION: 24}


class Box(NamedTuple):
    """The outline of a drawn node."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The middle of its width."""
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height


def figures(argument: Argument) -> list[tuple[Markup, str]]:
    """Return the overview and the figures of G2 to G6, each with what it shows in one sentence."""
    names = (ROOT, "G2", "G3", "G4", "G5", "G6") if argument.context else (ROOT,)
    return [_Drawing(argument, name).drawn() for name in names]


class _Drawing:
    """The figure of one goal: its parts, and how far down they reach."""

    def __init__(self, argument: Argument, root: str) -> None:
        self.graph, self.root, self.parts, self.bottom = argument.graph, root, list[str](), 0.0
        self.nodes, self.states = argument.graph.by_id, argument.states
        self.standing = {f"ch-{item.code}": item.state for item in argument.challenges}

    def drawn(self) -> tuple[Markup, str]:
        """Return the figure, and its state with those of the goals that it shows."""
        graph, root = self.graph, self.root
        top = self.node(root, (WIDTH - 400) / 2, 4, 400)
        strategy = next((name for name in graph.below(root) if self.kind(name) is Kind.STRATEGY), None)
        beside = [*graph.beside(root), *(graph.beside(strategy) if strategy else ())]
        self.side(top, [name for name in beside if self.kind(name) is Kind.CONTEXT], 1)
        self.side(top, [name for name in beside if self.kind(name) is not Kind.CONTEXT], WIDTH - _SIDE - 1)
        upper = top
        if strategy:
            upper = self.node(strategy, (WIDTH - 340) / 2, top.bottom + _GAP, 340)
            self.link(top, upper)
        goals = [name for name in graph.below(strategy or root) if self.kind(name) is not Kind.STRATEGY]
        self.columns(upper, goals)
        if against := [name.removeprefix("ch-") for name in self.against(root)]:
            self.note(0, self.bottom + _GAP / 2, f"against {root}: {', '.join(against)}")
        self.more(0, self.bottom + 4, len(goals) - MOST_COLUMNS)
        states = [self.states[name] for name in goals]
        counts = ", ".join(f"{states.count(state)} {state.value}" for state in dict.fromkeys(states))
        said = f"{root} is {self.states[root].value}{': ' if counts else ''}{counts}."
        title = f"{said} {self.nodes[root].text}"
        return figure_of(f"argument-{root}", title, WIDTH, int(self.bottom) + 6, self.parts), said

    def kind(self, name: str) -> Kind:
        """Return the kind of a node."""
        return self.nodes[name].kind

    def against(self, *names: str) -> list[str]:
        """Return the challenges to some nodes that are open or sustained."""
        raised = (item for name in names for item in self.graph.against(name))
        return [item for item in raised if self.standing[item] in {Standing.OPEN, Standing.SUSTAINED}]

    def node(self, name: str, x: float, y: float, width: float) -> Box:
        """Draw a node with its id, state and text; its outline tells its kind, challenges are dashed."""
        node = self.nodes[name]
        said = node.state or self.standing[name]
        shade = colour(node.state or ("refuted" if said is Standing.SUSTAINED else "challenged"))
        room = width - 2 * _PAD - 14
        head = fonts.wrap(f"{name} {said.value}", _SIZE, room, lines=2)
        lines = [*head, *fonts.wrap(visible(node.text), _SIZE, room, lines=_LINES)]
        box = Box(x, y, width, _LINE * len(lines) + 2 * _PAD)
        slant, radius = 6 if node.kind is Kind.STRATEGY else 0, _ROUND.get(node.kind, 0)
        dash = ' stroke-dasharray="5 3"' if node.kind is Kind.COUNTER_GOAL else ""
        style = f'fill="#fff" stroke="{shade}" stroke-width="1.5"{dash}'
        if slant:
            d = f"M{num(x + slant)} {num(y)}H{num(box.right)}L{num(box.right - slant)} {num(box.bottom)}"
            self.parts.append(f'<path d="{d}H{num(x)}Z" {style}/>')
        else:
            size = f'width="{num(width)}" height="{num(box.height)}" rx="{radius}"'
            self.parts.append(f'<rect x="{num(x)}" y="{num(y)}" {size} {style}/>')
        for place, line in enumerate(lines):
            fill = shade if place < len(head) else INK
            at = y + _PAD + _LINE * (place + 0.78)
            self.parts.append(text_at(x + _PAD + 6, at, line, size=_SIZE, fill=fill))
        self.bottom = max(self.bottom, box.bottom)
        return box

    def note(self, x: float, y: float, text: str) -> None:
        """Write a line of small text."""
        self.parts.append(text_at(x, y + 11, text, size=10, fill=SOFT))
        self.bottom = max(self.bottom, y + 14)

    def more(self, x: float, y: float, count: int) -> float:
        """Say how many nodes have no room, and return where the next thing can stand."""
        if count > 0:
            self.note(x, y, f"{count} more: argument.json")
        return y + 18 if count > 0 else y

    def link(self, upper: Box, lower: Box) -> None:
        """Draw support: from the middle of one box's bottom to the middle of another's top."""
        half = lower.y - _GAP / 2
        start = f"M{num(upper.middle)} {num(upper.bottom)}"
        self.parts.append(path(f"{start}V{num(half)}H{num(lower.middle)}V{num(lower.y)}"))

    def side(self, top: Box, names: Sequence[str], x: float) -> None:
        """Draw what stands beside the root; the first is linked, the others stand below it."""
        y = top.y
        for name in names[:MOST_BESIDE]:
            box = self.node(name, x, y, _SIDE)
            if name == names[0]:
                left, right = sorted((top, box))
                self.parts.append(line_at(left.right, y + 12, right.x, y + 12, stroke=SOFT))
            y = box.bottom + 6
        self.more(x, y, len(names) - MOST_BESIDE)

    def columns(self, upper: Box, goals: Sequence[str]) -> None:
        """Draw the goals, the worst where there are too many, each with what stands under it."""
        grave = sorted(goals, key=lambda name: list(State).index(self.states[name]))[:MOST_COLUMNS]
        shown = [name for name in goals if name in grave]
        room = WIDTH / max(1, len(shown))
        width, y = min(330.0, room - _GUTTER - 6), self.bottom + _GAP
        boxes = {
            name: self.node(name, room * place + (room - width - _GUTTER) / 2, y, width)
            for place, name in enumerate(shown)
        }
        below = self.bottom + _GAP
        for name, box in boxes.items():
            self.link(upper, box)
            if self.root == ROOT:
                raised = len(self.against(*self.under(name)))
                said = "1 challenge" if raised == 1 else f"{raised or 'no'} challenges"
                self.note(box.x, box.bottom + 4, f"{said} open")
            else:
                self.column(name, box, below)

    def under(self, name: str) -> dict[str, None]:
        """Return a node with all that stands under it and beside it."""
        reached, waiting = dict[str, None](), [name]
        while waiting:
            goal = waiting.pop()
            if goal not in reached:
                reached[goal] = None
                waiting += (*self.graph.below(goal), *self.graph.beside(goal))
        return reached

    def column(self, name: str, box: Box, y: float) -> None:
        """Draw the worst support of a goal, and what challenges it."""
        if support := self.graph.below(name):
            grave = list(State).index
            first = min(support, key=lambda item: (item.startswith("Mi-"), grave(self.states[item])))
            lower = self.node(first, box.x, y, box.width)
            self.link(box, lower)
            y = self.more(box.x, lower.bottom + 4, len(support) - 1)
        y, against = y + 6, self.against(name)
        for item in against[:MOST_AGAINST]:
            raised = self.node(item, box.x, y, box.width)
            start, gutter = f"M{num(raised.right)} {num(y + 14)}", num(raised.right + _GUTTER / 2)
            d = f"{start}H{gutter}V{num(box.y + 12)}H{num(box.right)}"
            self.parts.append(path(d, stroke=SOFT, dash="4 3"))
            y = raised.bottom + 6
        self.more(box.x, y, len(against) - MOST_AGAINST)
