"""The typed graph of an argument: nodes, edges, and the state that each node has for it.

Nodes and edges are those of the GSN community standard, version 3, with its dialectic part. A node's state
is the worst of three: its own (what the evidence shows, or that nobody provided it), those of the nodes that
support it, and what challenges do to it: a sustained challenge refutes, an open one leaves it challenged.
Contexts, assumptions and justifications have a state of their own, and pass none on.

    graph = Graph(nodes=…, edges=…)
    states(graph, challenges)["G1"]
    faults(graph)                     # what breaks the rules of GSN; ours to mend, never a user's

This module knows the rules of graphs, and nothing of agents.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT: Final = "G1"


class State(StrEnum):
    """What a node amounts to, worst first."""

    REFUTED = "refuted"
    UNDEVELOPED = "undeveloped"
    CHALLENGED = "challenged"
    ASSERTED = "asserted"
    SUPPORTED = "supported"


_ORDER: Final = {state: place for place, state in enumerate(State)}


def worst(states: Iterable[State]) -> State:
    """Return the worst of some states."""
    return min(states, key=_ORDER.__getitem__)


class Kind(StrEnum):
    """The elements of GSN."""

    GOAL = "goal"
    STRATEGY = "strategy"
    SOLUTION = "solution"
    CONTEXT = "context"
    ASSUMPTION = "assumption"
    JUSTIFICATION = "justification"
    COUNTER_GOAL = "counter_goal"


Link = Literal["supported_by", "in_context_of", "challenges"]
BESIDE: Final = frozenset({Kind.CONTEXT, Kind.ASSUMPTION, Kind.JUSTIFICATION})
"""Kinds that stand beside a goal or strategy and support nothing."""


class Node(Struct, frozen=True, kw_only=True):
    """An element; `own` is the state that it has of itself, None where it has that of its support.

    `source` says what the node was built from: a row, a member of ``context.json``, a rule.
    """

    id: str
    kind: Kind
    text: str
    source: str
    own: State | None = None


class Edge(Struct, frozen=True, kw_only=True):
    """A link from the node that is supported, or placed in context, or that challenges."""

    start: str
    end: str
    kind: Link = "supported_by"


class Graph(Struct, frozen=True, kw_only=True):
    """The nodes of an argument, the root first, and their links."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def by_id(self) -> dict[str, Node]:
        """The nodes by their ids."""
        return {node.id: node for node in self.nodes}

    def below(self, name: str) -> tuple[str, ...]:
        """Return the nodes that support a node, in the order in which they were linked."""
        return tuple(edge.end for edge in self.edges if edge.start == name and edge.kind == "supported_by")

    def beside(self, name: str) -> tuple[str, ...]:
        """Return the contexts, assumptions and justifications of a node."""
        return tuple(edge.end for edge in self.edges if edge.start == name and edge.kind == "in_context_of")

    def against(self, name: str) -> tuple[str, ...]:
        """Return the counter-goals that challenge a node."""
        return tuple(edge.start for edge in self.edges if edge.end == name and edge.kind == "challenges")


def states(graph: Graph, effects: Mapping[str, State]) -> dict[str, State]:
    """Return the state of every node but counter-goals.

    `effects` is what each counter-goal does to the node that it challenges: `REFUTED` where it was
    sustained, `CHALLENGED` where it is open; those that are closed are left out.
    """
    below: dict[str, list[str]] = {}
    against: dict[str, list[State]] = {}
    for edge in graph.edges:
        if edge.kind == "supported_by":
            below.setdefault(edge.start, []).append(edge.end)
        elif edge.kind == "challenges" and edge.start in effects:
            against.setdefault(edge.end, []).append(effects[edge.start])
    nodes, made = graph.by_id, dict[str, State]()
    for name in _upwards(graph.nodes, below):
        node = nodes[name]
        support = [made[lower] for lower in below.get(name, ())]
        if node.own is not None:
            support.append(node.own)
        # Nothing stands under it and nothing was said of it: it is undeveloped.
        made[name] = worst([*(support or [State.UNDEVELOPED]), *against.get(name, ())])
    return made


def _upwards(nodes: tuple[Node, ...], below: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield every node but counter-goals after all that supports it."""
    done: set[str] = set()
    for node in nodes:
        waiting = [] if node.kind is Kind.COUNTER_GOAL else [node.id]
        while waiting:
            name = waiting[-1]
            missing = [lower for lower in below.get(name, ()) if lower not in done]
            if missing and name not in done:
                waiting += missing
                continue
            waiting.pop()
            if name not in done:
                done.add(name)
                yield name


_ENDS: Final[dict[Link, tuple[frozenset[Kind], frozenset[Kind]]]] = {
    "supported_by": (
        frozenset({Kind.GOAL, Kind.STRATEGY}),
        frozenset({Kind.GOAL, Kind.STRATEGY, Kind.SOLUTION}),
    ),
    "in_context_of": (frozenset({Kind.GOAL, Kind.STRATEGY}), BESIDE),
    "challenges": (frozenset({Kind.COUNTER_GOAL}), frozenset(Kind) - {Kind.COUNTER_GOAL}),
}
"""Which kinds a link may start and end at."""


def faults(graph: Graph) -> tuple[str, ...]:
    """Return what breaks the rules of GSN: one root, no circle, all reachable, fitting kinds."""
    return tuple(_faults(graph))


def _faults(graph: Graph) -> Iterator[str]:
    nodes = graph.by_id
    if len(nodes) != len(graph.nodes):
        yield "two nodes have one id"
    for edge in graph.edges:
        if missing := {edge.start, edge.end} - set(nodes):
            yield f"a link names {', '.join(sorted(missing))}, which is no node"
            return
        starts, ends = _ENDS[edge.kind]
        if nodes[edge.start].kind not in starts or nodes[edge.end].kind not in ends:
            yield f"{edge.start} cannot be linked to {edge.end} as {edge.kind}"
    if len(set(graph.edges)) != len(graph.edges):
        yield "a link stands there twice"
    supported = {edge.end for edge in graph.edges if edge.kind == "supported_by"}
    roots = [node.id for node in graph.nodes if node.kind is Kind.GOAL and node.id not in supported]
    if roots != [ROOT]:
        yield f"expected one root, {ROOT}, found {', '.join(roots) or 'none'}"
    if _has_circle(graph):
        yield "nodes support each other in a circle"
        return
    reached = _reached(graph)
    yield from (f"{node.id} is not reached from {ROOT}" for node in graph.nodes if node.id not in reached)
    aimless = {node.id for node in graph.nodes if node.kind is Kind.COUNTER_GOAL} - {
        edge.start for edge in graph.edges if edge.kind == "challenges"
    }
    yield from (f"{name} challenges nothing" for name in sorted(aimless))


def _has_circle(graph: Graph) -> bool:
    below: dict[str, set[str]] = {node.id: set() for node in graph.nodes}
    for edge in graph.edges:
        if edge.kind == "supported_by":
            below[edge.start].add(edge.end)
    while leaves := [name for name, lower in below.items() if not lower]:
        for name in leaves:
            del below[name]
        for lower in below.values():
            lower.difference_update(leaves)
    return bool(below)


def _reached(graph: Graph) -> set[str]:
    """Return what the root leads to, with what stands beside it and what speaks against it."""
    reached, waiting = set[str](), [ROOT]
    links: dict[str, list[str]] = {}
    for edge in graph.edges:
        start, end = (edge.end, edge.start) if edge.kind == "challenges" else (edge.start, edge.end)
        links.setdefault(start, []).append(end)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += links.get(name, ())
    return reached
