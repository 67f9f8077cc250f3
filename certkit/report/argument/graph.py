"""The typed graph of an argument: nodes, edges, and the state that each node has for it.

Nodes and edges are those of the GSN community standard, version 3, with its dialectic part. A node's state
is the worst of three: its own (what the evidence shows, or that nobody provided it), those of the nodes that
support it, and what challenges do to it: a sustained challenge refutes, an open one leaves it challenged.
Contexts, assumptions and justifications have a state of their own, and pass none on.

    graph = settled(Graph(nodes=…, edges=…), effects)
    graph.by_id["G1"].state

This module knows the rules of states, and nothing of agents. That graphs keep to the rules of GSN is tested.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct, structs

from certkit.ground.document import Part, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT: Final = "G1"


class NodeState(StrEnum):
    """What a node amounts to, worst first."""

    REFUTED = "refuted"
    UNDEVELOPED = "undeveloped"
    CHALLENGED = "challenged"
    ASSERTED = "asserted"
    SUPPORTED = "supported"


def worst(states: Iterable[NodeState]) -> NodeState:
    """Return the worst of some states."""
    return min(states, key=list(NodeState).index)


class NodeKind(StrEnum):
    """The elements of GSN."""

    GOAL = "goal"
    STRATEGY = "strategy"
    SOLUTION = "solution"
    CONTEXT = "context"
    ASSUMPTION = "assumption"
    JUSTIFICATION = "justification"
    COUNTER_GOAL = "counter_goal"


Link = Literal["supported_by", "in_context_of", "challenges"]


class Node(Part, frozen=True, kw_only=True):
    """A node; a counter-goal has no state, that of its challenge holds."""

    id: Text
    kind: NodeKind
    text: Text
    state: NodeState | None
    source: Annotated[str, Meta(description="the row, the member of context.json or the rule that made it")]


class Edge(Part, frozen=True, kw_only=True, rename={"start": "from", "end": "to"}):
    """A link from the node that is supported, or placed in context, or that challenges."""

    start: Text
    end: Text
    kind: Link


class Graph(Struct, frozen=True, kw_only=True, dict=True):
    """The nodes of an argument, the root first, and their links."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def by_id(self) -> dict[str, Node]:
        """The nodes by their ids."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def _linked(self) -> dict[tuple[str, Link], list[str]]:
        """What each node is linked to; for challenges, what challenges it."""
        made: dict[tuple[str, Link], list[str]] = {}
        for edge in self.edges:
            start, end = (edge.end, edge.start) if edge.kind == "challenges" else (edge.start, edge.end)
            made.setdefault((start, edge.kind), []).append(end)
        return made

    def below(self, name: str) -> tuple[str, ...]:
        """Return the nodes that support a node, in the order in which they were linked."""
        return tuple(self._linked.get((name, "supported_by"), ()))

    def attached(self, name: str) -> tuple[str, ...]:
        """Return the contexts, assumptions and justifications of a node."""
        return tuple(self._linked.get((name, "in_context_of"), ()))

    def against(self, name: str) -> tuple[str, ...]:
        """Return the counter-goals that challenge a node."""
        return tuple(self._linked.get((name, "challenges"), ()))

    def under(self, name: str) -> dict[str, None]:
        """Return a node with everything that stands under it and beside that."""
        reached, waiting = dict[str, None](), [name]
        while waiting:
            node = waiting.pop()
            if node not in reached:
                reached[node] = None
                waiting += (*self.below(node), *self.attached(node))
        return reached

    @cached_property
    def states(self) -> dict[str, NodeState]:
        """The state of every node that has one."""
        return {node.id: node.state for node in self.nodes if node.state is not None}

    def lowest(self, state: NodeState) -> list[str]:
        """Return the nodes in a state, those left out that merely have it from their support."""
        has = self.states
        names = (name for name in has if has[name] == state)
        return [name for name in names if not any(has[lower] == state for lower in self.below(name))]


def settled(graph: Graph, effects: Mapping[str, NodeState]) -> Graph:
    """Return a graph without circles, its nodes now with the state that all of the graph gives them.

    A node comes with the state that it has of itself, None where it has that of its support. `effects` is
    what each counter-goal does to the node that it challenges: `REFUTED` where it was sustained, `CHALLENGED`
    where it is open; those that are closed are left out.
    """
    made: dict[str, NodeState] = {}

    def state(name: str) -> NodeState:
        if name not in made:
            stated = graph.by_id[name].state
            support = [*map(state, graph.below(name)), *([stated] if stated else [])]
            against = [effects[item] for item in graph.against(name) if item in effects]
            # Nothing stands under it and nothing was said of it: it is undeveloped.
            made[name] = worst([*(support or [NodeState.UNDEVELOPED]), *against])
        return made[name]

    nodes = (
        node if node.kind is NodeKind.COUNTER_GOAL else structs.replace(node, state=state(node.id))
        for node in graph.nodes
    )
    return Graph(nodes=tuple(nodes), edges=graph.edges)
