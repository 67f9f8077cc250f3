"""The argument as figures: an overview, and one figure for each of G2 to G6.

A root stands above its strategy and at most five goals in equal columns; contexts lie left of the root,
assumptions and justifications right. Under a goal stand its worst support and at most two challenges, whose
dashed edge runs up the gutter right of the column, so that nothing crosses. What has no room is counted, and
stands in the register of nodes. Text is measured with the font of the PDF.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.report import fonts
from certkit.report.argument.challenges import Standing
from certkit.report.argument.graph import ROOT, Kind, State, worst
from certkit.report.svg import STATES, figure_of, line_at, num, text_at
from certkit.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from certkit.report.argument.build import Argument
    from certkit.report.argument.graph import Node

WIDTH: Final = 1000
MOST_COLUMNS: Final = 5
MOST_AGAINST: Final = 2
_SIZE: Final = 11
_LINE: Final = 13.5
_PAD: Final = 7
_SIDE: Final = 200
_GUTTER: Final = 16
_GAP: Final = 26
_LINES: Final = 7
_INK, _SOFT = "#1c1c1c", "#5f6368"


class Box(NamedTuple):
    """A drawn node: its outline and its text."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The middle of its width."""
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height


class _Drawing:
    """Parts of a figure, and how far down they reach."""

    def __init__(self, argument: Argument) -> None:
        self.argument, self.parts, self.bottom = argument, list[str](), 0.0
        self.nodes = argument.graph.by_id
        self.standing = {f"ch-{item.code}": item.state for item in argument.challenges}

    def node(self, name: str, x: float, y: float, width: float) -> Box:
        """Draw a node with its id, state and text."""
        node = self.nodes[name]
        state = self.argument.states.get(name)
        head = f"{name}  {state.value if state else self.standing[name].value}"
        lines = [head, *fonts.wrap(visible(node.text), _SIZE, width - 2 * _PAD - 14, lines=_LINES)]
        box = Box(x, y, width, _LINE * len(lines) + 2 * _PAD)
        colour = _colour(state, self.standing.get(name))
        self.parts.append(_outline(node, box, colour))
        for place, line in enumerate(lines):
            at = y + _PAD + _LINE * (place + 0.78)
            fill = colour if place == 0 else _INK
            self.parts.append(text_at(x + _PAD + 6, at, line, size=_SIZE, fill=fill))
        self.bottom = max(self.bottom, box.bottom)
        return box

    def note(self, x: float, y: float, text: str) -> None:
        """Write a line of small text below a column."""
        self.parts.append(text_at(x, y + 11, text, size=10, fill=_SOFT))
        self.bottom = max(self.bottom, y + 14)

    def link(self, upper: Box, lower: Box) -> None:
        """Draw support: from the middle of one box's bottom to the middle of another's top."""
        half = lower.y - _GAP / 2
        path = f"M{num(upper.middle)} {num(upper.bottom)}V{num(half)}H{num(lower.middle)}"
        self.parts.append(f'<path d="{path}V{num(lower.y)}" fill="none" stroke="{_INK}"/>')

    def beside(self, box: Box, other: Box) -> None:
        """Draw context: a level line between two boxes."""
        y = max(box.y, other.y) + 12
        left, right = sorted((box, other), key=lambda item: item.x)
        self.parts.append(line_at(left.x + left.width, y, right.x, y, stroke=_SOFT))

    def challenge(self, target: Box, box: Box) -> None:
        """Draw a challenge: a dashed line up the gutter to the right of the column."""
        right, y = box.x + box.width, box.y + 14
        x = right + _GUTTER / 2
        end = target.x + target.width
        path = f"M{num(right)} {num(y)}H{num(x)}V{num(target.y + 12)}H{num(end)}"
        self.parts.append(f'<path d="{path}" fill="none" stroke="{_SOFT}" stroke-dasharray="4 3"/>')


def _colour(state: State | None, standing: Standing | None) -> str:
    if state is not None:
        return STATES[state][0]
    return STATES["refuted" if standing is Standing.SUSTAINED else "challenged"][0]


def _outline(node: Node, box: Box, colour: str) -> str:
    """Return the outline of a node by its kind; challenges are dashed."""
    x, y, right, bottom = (num(at) for at in (box.x, box.y, box.x + box.width, box.bottom))
    style = f'fill="#fff" stroke="{colour}" stroke-width="1.5"'
    if node.kind is Kind.STRATEGY:
        inner, outer = num(box.x + 6), num(box.x + box.width - 6)
        return f'<path d="M{inner} {y}H{right}L{outer} {bottom}H{x}Z" {style}/>'
    radius = {Kind.SOLUTION: 16, Kind.CONTEXT: 12, Kind.ASSUMPTION: 24, Kind.JUSTIFICATION: 24}.get(
        node.kind, 0
    )
    dash = ' stroke-dasharray="5 3"' if node.kind is Kind.COUNTER_GOAL else ""
    size = f'width="{num(box.width)}" height="{num(box.height)}"'
    return f'<rect x="{x}" y="{y}" {size} rx="{radius}" {style}{dash}/>'


def figures(argument: Argument) -> tuple[tuple[str, Markup], ...]:
    """Return the overview and the figures of G2 to G6, each with a title that says what it shows."""
    return tuple((name, _drawn(argument, name)) for name in (ROOT, "G2", "G3", "G4", "G5", "G6"))


def _drawn(argument: Argument, root: str) -> Markup:
    drawing, graph = _Drawing(argument), argument.graph
    top = drawing.node(root, (WIDTH - 400) / 2, 4, 400)
    strategy = next((name for name in graph.below(root) if drawing.nodes[name].kind is Kind.STRATEGY), None)
    sides = [*graph.beside(root), *(graph.beside(strategy) if strategy else ())]
    left = [name for name in sides if drawing.nodes[name].kind is Kind.CONTEXT]
    right = [name for name in sides if name not in left]
    _side(drawing, top, left, 0)
    _side(drawing, top, right, WIDTH - _SIDE)
    upper = top
    if strategy:
        upper = drawing.node(strategy, (WIDTH - 340) / 2, top.bottom + _GAP, 340)
        drawing.link(top, upper)
    goals = [
        name
        for name in graph.below(strategy or root)
        if drawing.nodes[name].kind in {Kind.GOAL, Kind.SOLUTION}
    ]
    _columns(drawing, upper, _gravest(argument, goals), overview=root == ROOT)
    _against(drawing, top, root, drawing.bottom + _GAP / 2)
    if left_out := len(goals) - MOST_COLUMNS:
        drawing.note(0, drawing.bottom + 4, f"{left_out} more: register of nodes" if left_out > 0 else "")
    state = argument.states[root]
    counts = _counts(argument, goals)
    title = f"{root}, {state.value}: {drawing.nodes[root].text} {counts}"
    return figure_of(f"argument-{root}", title, WIDTH, int(drawing.bottom) + 6, drawing.parts)


def _gravest(argument: Argument, goals: Sequence[str]) -> list[str]:
    """Return the goals that have a column: the worst where there are too many, in their own order."""
    if len(goals) <= MOST_COLUMNS:
        return list(goals)
    order = list(State)
    kept = set(sorted(goals, key=lambda name: order.index(argument.states[name]))[:MOST_COLUMNS])
    return [name for name in goals if name in kept]


def _side(drawing: _Drawing, top: Box, names: Sequence[str], x: float) -> None:
    y = 4.0
    for name in names[:4]:
        box = drawing.node(name, x, y, _SIDE)
        if y == 4.0:  # noqa: PLR2004 - the first one is linked, the others stand below it
            drawing.beside(top, box)
        y = box.bottom + 6
    if len(names) > 4:  # noqa: PLR2004 - boxes that fit beside a root
        drawing.note(x, y, f"{len(names) - 4} more: register of nodes")


def _columns(drawing: _Drawing, upper: Box, goals: Sequence[str], *, overview: bool) -> None:
    if not goals:
        return
    room = WIDTH / len(goals)
    width = min(230.0, room - _GUTTER - 6)
    y = drawing.bottom + _GAP
    boxes = [
        drawing.node(name, room * place + (room - width - _GUTTER) / 2, y, width)
        for place, name in enumerate(goals)
    ]
    for box in boxes:
        drawing.link(upper, box)
    below = max(box.bottom for box in boxes) + _GAP
    for name, box in zip(goals, boxes, strict=True):
        if overview:
            _counted(drawing, name, box)
        else:
            _column(drawing, name, box, below)


def _column(drawing: _Drawing, name: str, box: Box, y: float) -> None:
    """Draw the worst support of a goal, and what challenges it."""
    argument = drawing.argument
    support = argument.graph.below(name)
    if support:
        grave = worst(argument.states[lower] for lower in support)
        shown = next(lower for lower in support if argument.states[lower] is grave)
        lower = drawing.node(shown, box.x, y, box.width)
        drawing.link(box, lower)
        y = lower.bottom + 4
        if len(support) > 1:
            drawing.note(box.x, y, f"{len(support) - 1} more: register of nodes")
            y += 18
    _against(drawing, box, name, y + 6)


def _against(drawing: _Drawing, target: Box, name: str, y: float) -> None:
    against = [item for item in drawing.argument.graph.against(name) if _counts_here(drawing, item)]
    if target.width > 300:  # noqa: PLR2004 - the root of the figure: there is room beside each other
        if against:
            drawing.note(0, y, f"against {name}: {', '.join(item.removeprefix('ch-') for item in against)}")
        return
    for item in against[:MOST_AGAINST]:
        box = drawing.node(item, target.x, y, target.width)
        drawing.challenge(target, box)
        y = box.bottom + 6
    if len(against) > MOST_AGAINST:
        drawing.note(target.x, y, f"{len(against) - MOST_AGAINST} more: register of nodes")


def _counts_here(drawing: _Drawing, name: str) -> bool:
    return drawing.standing[name] in {Standing.OPEN, Standing.SUSTAINED}


def _counted(drawing: _Drawing, name: str, box: Box) -> None:
    """Write below a goal of the overview how many challenges it and what supports it have."""
    graph = drawing.argument.graph
    below, waiting = set[str](), [name]
    while waiting:
        goal = waiting.pop()
        if goal not in below:
            below.add(goal)
            waiting += [lower for lower in (*graph.below(goal), *graph.beside(goal)) if lower not in below]
    raised = [item for goal in below for item in graph.against(goal) if _counts_here(drawing, item)]
    said = "1 challenge" if len(raised) == 1 else f"{len(raised)} challenges"
    drawing.note(box.x, box.bottom + 4, f"{said} open" if raised else "no open challenge")


def _counts(argument: Argument, goals: Sequence[str]) -> str:
    states = [argument.states[name] for name in goals]
    return ", ".join(f"{states.count(state)} {state.value}" for state in dict.fromkeys(states))
