"""What the figures of the argument show: an overview, and one figure for each of G2 to G6.

A root stands above its strategy and at most five goals, the worst where there are more. Under a goal stand
its support, worst first and mitigations last, and its open challenges; the overview counts those of all that
the goal rests on. Without a context there is the overview alone. Templates draw it, and cut where room ends.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from certkit.report.argument.graph import ROOT, NodeKind, NodeState
from certkit.report.figures import word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.report.argument.build import Argument

MOST_COLUMNS: Final = 5
_GRAVE: Final = list(NodeState).index


class GoalColumn(NamedTuple):
    """A goal, what supports it and what challenges it; in the overview, what challenges all below it."""

    goal: str
    support: list[str]
    against: list[str]


class Figure(NamedTuple):
    """The figure of a goal: its state in one sentence, and what stands left of, right of and below it."""

    root: str
    said: str
    contexts: list[str]
    assumed: list[str]
    strategy: str | None
    columns: list[GoalColumn]
    more: int
    against: list[str]


def figures(argument: Argument) -> list[Figure]:
    """Return the overview and the figures of G2 to G6."""
    names = (ROOT, "G2", "G3", "G4", "G5", "G6") if argument.context else (ROOT,)
    return [_figure(argument, name) for name in names]


def drawn(argument: Argument) -> set[str]:
    """Return the goals and strategies that some figure shows."""
    names = set[str]()
    for figure in figures(argument):
        names |= {figure.root, *filter(None, [figure.strategy])}
        for column in figure.columns:
            names |= {column.goal, *column.support[:1]}
    return names


def _figure(argument: Argument, root: str) -> Figure:
    graph, states = argument.graph, argument.states
    kinds = {node.id: node.kind for node in argument.nodes}
    strategy = next((name for name in graph.below(root) if kinds[name] is NodeKind.STRATEGY), None)
    goals = graph.below(strategy or root)
    worst = sorted(goals, key=lambda name: _GRAVE(states[name]))[:MOST_COLUMNS]
    attached = [*graph.attached(root), *(graph.attached(strategy) if strategy else ())]
    counts = Counter(states[name] for name in goals)
    listed = ", ".join(f"{count} {word(state)}" for state, count in counts.items())
    return Figure(
        root=root,
        said=f"{root} is {word(states[root])}{': ' if listed else ''}{listed}.",
        contexts=[name for name in attached if kinds[name] is NodeKind.CONTEXT],
        assumed=[name for name in attached if kinds[name] is not NodeKind.CONTEXT],
        strategy=strategy,
        columns=[_column(argument, name, overview=root == ROOT) for name in goals if name in worst],
        more=len(goals) - len(worst),
        against=_against(argument, [root]),
    )


def _column(argument: Argument, goal: str, *, overview: bool) -> GoalColumn:
    below = argument.graph.below(goal)
    support = sorted(below, key=lambda name: (name.startswith("Mi-"), _GRAVE(argument.states[name])))
    if overview:
        return GoalColumn(goal, [], _against(argument, argument.graph.under(goal)))
    return GoalColumn(goal, support, _against(argument, [goal]))


def _against(argument: Argument, names: Iterable[str]) -> list[str]:
    """Return the challenges to some nodes that are open or sustained."""
    opened = {f"ch-{item.code}" for item in argument.opened}
    return [item for name in names for item in argument.graph.against(name) if item in opened]
