"""The rules of GSN (community standard, version 3), as a check of graphs."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from certkit.report.argument.graph import ROOT, Graph, NodeKind

if TYPE_CHECKING:
    from collections.abc import Iterator

_UPPER = {NodeKind.GOAL, NodeKind.STRATEGY}
_BESIDE = {NodeKind.CONTEXT, NodeKind.ASSUMPTION, NodeKind.JUSTIFICATION}
_ENDS = {
    "supported_by": (_UPPER, {*_UPPER, NodeKind.SOLUTION}),
    "in_context_of": (_UPPER, _BESIDE),
    "challenges": ({NodeKind.COUNTER_GOAL}, set(NodeKind) - {NodeKind.COUNTER_GOAL}),
}


def faults(graph: Graph) -> tuple[str, ...]:
    """What breaks the rules: one root, no circle, all reachable, fitting kinds."""
    return tuple(_faults(graph))


def _faults(graph: Graph) -> Iterator[str]:  # noqa: C901 - one rule after another
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
    roots = [node.id for node in graph.nodes if node.kind is NodeKind.GOAL and node.id not in supported]
    if roots != [ROOT]:
        yield f"expected one root, {ROOT}, found {', '.join(roots) or 'none'}"
    try:
        TopologicalSorter({name: graph.below(name) for name in nodes}).prepare()
    except CycleError:
        yield "nodes support each other in a circle"
    reached, waiting = set[str](), [ROOT]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += (*graph.below(name), *graph.attached(name), *graph.against(name))
    yield from (f"{node.id} is not reached from {ROOT}" for node in graph.nodes if node.id not in reached)
    challenging = {edge.start for edge in graph.edges if edge.kind == "challenges"}
    for node in graph.nodes:
        if node.kind is NodeKind.COUNTER_GOAL and node.id not in challenging:
            yield f"{node.id} challenges nothing"
