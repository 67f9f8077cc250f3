"""The argument of a case as a typed graph: goals G1 to G6 with what stands under and against them.

    argument = build(case)
    argument.supported, argument.because
    argument.states["G3.1"]

A leaf under G4 to G6 is supported by evidence, asserted where people own the assumptions that it rests on,
and else undeveloped. What nobody provided is said to be missing in the node's own text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from certkit.assessment import CATALOGUE, Status
from certkit.report import words
from certkit.report.argue import ASSUMPTIONS
from certkit.report.argument.challenges import ASSUMED, Challenge, Standing, challenges, monitored, unowned
from certkit.report.argument.claim import reasons
from certkit.report.argument.graph import Edge, Graph, Kind, Node, State, states
from certkit.report.results import deciding, rows, unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certkit.assessment.metrics.catalogue import Group
    from certkit.evidence.context import Hazard
    from certkit.report.argument.case import Case
    from certkit.report.argument.graph import Link

_BY_STATUS: Final = {
    Status.MET: State.SUPPORTED,
    Status.NOT_MET: State.REFUTED,
    Status.INSUFFICIENT: State.UNDEVELOPED,
    Status.NOT_TESTED: State.UNDEVELOPED,
}
_LIMITS: Final = {">": "more than", ">=": "at least", "<": "less than", "<=": "at most"}
_EFFECTS: Final = {Standing.SUSTAINED: State.REFUTED, Standing.OPEN: State.CHALLENGED}


class Argument(Struct, frozen=True, kw_only=True, eq=False):
    """The graph with the state of each node; `because` says why the claim about the use is not supported."""

    graph: Graph
    states: dict[str, State]
    challenges: tuple[Challenge, ...]
    because: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """Whether the claim about the use stands."""
        return not self.because

    def count(self, state: Standing) -> int:
        """Return how many challenges are in a state."""
        return sum(challenge.state is state for challenge in self.challenges)


class _Builder:
    """Nodes and links as they are added; each is added once."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []

    def add(
        self,
        name: str,
        text: str,
        *,
        under: str | None = None,
        kind: Kind = Kind.GOAL,
        source: str = "rule",
        own: State | None = None,
    ) -> str:
        self.nodes[name] = Node(id=name, kind=kind, text=text, source=source, own=own)
        if under is not None:
            link: Link = (
                "supported_by" if kind in {Kind.GOAL, Kind.STRATEGY, Kind.SOLUTION} else "in_context_of"
            )
            self.edges.append(Edge(start=under, end=name, kind=link))
        return name

    def beside(self, name: str, title: str, text: str | None, *, under: str, kind: Kind, source: str) -> None:
        """Add what people say, undeveloped where they say nothing."""
        own = State.ASSERTED if text else State.UNDEVELOPED
        self.add(name, f"{title}: {text or 'not provided'}", under=under, kind=kind, source=source, own=own)


def build(case: Case) -> Argument:
    """Return the argument of a case, with the state of every node."""
    raised = challenges(case)
    made = _Builder()
    _top(made, case)
    _results(made, case)
    _hazards(made, case)
    _evidence(made, case)
    _use(made, case)
    _operation(made, case)
    _against(made, raised)
    nodes = sorted(made.nodes.values(), key=lambda node: node.kind is Kind.COUNTER_GOAL)
    graph = Graph(nodes=tuple(nodes), edges=tuple(dict.fromkeys(made.edges)))
    effects = {f"ch-{item.code}": _EFFECTS[item.state] for item in raised if item.state in _EFFECTS}
    found = states(graph, effects)
    return Argument(
        graph=graph, states=found, challenges=raised, because=tuple(reasons(case, graph, found, raised))
    )


def _top(made: _Builder, case: Case) -> None:
    agent, context = case.document["agent"], case.context
    name = f"{agent['name']} {agent['version']}"
    purpose = context.use.purpose if context.use and context.use.purpose else "a purpose that nobody stated"
    made.add("G1", f"{name}, used for {purpose}, keeps every identified hazard within the accepted risk.")
    made.add(
        "C1",
        f"Agent: {name}, {agent['digest']}",
        under="G1",
        kind=Kind.CONTEXT,
        source="manifest",
        own=State.SUPPORTED,
    )
    domain = context.operating_domain
    described = None
    if domain is not None and (domain.description or domain.domains):
        described = "; ".join(filter(None, (domain.description, ", ".join(domain.domains or ()))))
    places = (
        ("C2", "Operating domain", described, "/operating_domain"),
        ("C3", "Accepted risk", context.risk.criterion if context.risk else None, "/risk/criterion"),
    )
    for node, title, text, source in places:
        made.beside(node, title, text, under="G1", kind=Kind.CONTEXT, source=source)
    made.add(
        "C4",
        f"Last run: {case.last_run or 'not dated'}",
        under="G1",
        kind=Kind.CONTEXT,
        source="records",
        own=State.SUPPORTED if case.last_run else State.UNDEVELOPED,
    )
    made.add(
        "S1",
        "Over the hazards, what was measured, whether it is true, whether it fits this use, and what comes"
        " after.",
        under="G1",
        kind=Kind.STRATEGY,
    )

    made.add("G2", "Every hazard of this use is identified and guarded.", under="S1")
    made.add("S2", "Over each hazard.", under="G2", kind=Kind.STRATEGY)
    method = context.hazard_identification.method if context.hazard_identification else None
    source, title = "/hazard_identification/method", "How hazards were looked for"
    made.beside("J1", title, method, under="S2", kind=Kind.JUSTIFICATION, source=source)
    for item in context.assumptions or ():
        if item.text is not None:
            own = State.ASSERTED if item.owner and item.rationale else State.UNDEVELOPED
            text = f"{item.text} (owner {item.owner or 'nobody'})"
            source = f"/assumptions/{item.id}"
            made.add(item.id, text, under="S1", kind=Kind.ASSUMPTION, source=source, own=own)


def _results(made: _Builder, case: Case) -> None:
    document, tier = case.document, case.tier
    info, profile = document["tiers"][str(tier)], document["profile"]
    made.add(
        "G3",
        f"The evidence meets every threshold of Tier {tier} ({info['name']}) of profile {profile['id']},"
        f" {profile['reading']} reading.",
        under="S1",
    )
    made.add("S3", "Over the groups of criteria that the tier specifies.", under="G3", kind=Kind.STRATEGY)
    fit = case.context.risk.thresholds_fit if case.context.risk else None
    source = "/risk/thresholds_fit"
    made.beside("J2", "Why these thresholds fit", fit, under="S3", kind=Kind.JUSTIFICATION, source=source)
    groups: dict[Group, list[dict[str, Any]]] = {}
    for row in rows(document, tier):
        if deciding(row, profile["reading"]) in _BY_STATUS:
            groups.setdefault(CATALOGUE[row["metric"]].group, []).append(row)
    for place, group in enumerate(type(next(iter(CATALOGUE.values())).group), start=1):
        if group in groups:
            goal = made.add(f"G3.{place}", f"The thresholds on {group.value} are met.", under="S3")
            for row in groups[group]:
                _criterion(made, row, goal, profile["reading"])
    if tier > 1 and info["lower"] is not None and info["lower"] not in {Status.MET, "contested"}:
        own = _BY_STATUS[Status(info["lower"])]
        made.add("G3.6", "The thresholds of the tiers below are met.", under="S3", source="verdict", own=own)
    if not groups:
        made.nodes["S3"] = Node(
            id="S3", kind=Kind.STRATEGY, text=made.nodes["S3"].text, source="rule", own=State.UNDEVELOPED
        )


def _criterion(made: _Builder, row: dict[str, Any], goal: str, reading: str) -> None:
    spec, status = CATALOGUE[row["metric"]], deciding(row, reading)
    name = made.add(
        f"G3-{row['id']}", f"{words.capital(spec.title)}: {in_words(row)}.", under=goal, source=row["id"]
    )
    bounded = row["bounded"]
    seen = words.value(row["value"], unit(row), beside=row["threshold"])
    if bounded is not None and bounded["bound"] is not None:
        seen += f", bound {words.value(bounded['bound'], unit(row), beside=row['threshold'])}"
    made.add(
        f"Sn-{row['id']}",
        f"{words.capital(spec.title)}: {seen}; {status.replace('_', ' ')}",
        under=name,
        kind=Kind.SOLUTION,
        source=f"criteria/{row['id']}",
        own=_BY_STATUS[status],
    )


def in_words(row: dict[str, Any]) -> str:
    """Return what a row asks, in words: ``more than 80 % of runs under faults succeed``."""
    limit = words.threshold(row["operator"], row["threshold"], unit(row))
    for sign in sorted(_LIMITS, key=len, reverse=True):
        shown = words.operator(sign)
        if limit.startswith(f"{shown}\u00a0"):
            limit = f"{_LIMITS[sign]} {limit.removeprefix(shown).strip()}"
            break
    return CATALOGUE[row["metric"]].asked.format(limit=limit)


def _hazards(made: _Builder, case: Case) -> None:
    for place, hazard in enumerate(case.context.hazards or ()):
        _hazard(made, case, hazard, f"/hazards/{place}")


def _hazard(made: _Builder, case: Case, hazard: Hazard, source: str) -> None:
    measured, goal = case.measured[hazard.id], f"G2.{hazard.id}"
    criteria, mitigations = hazard.criteria or (), hazard.mitigations or ()
    rate = "the accepted risk"
    if hazard.tolerable is not None:
        rate = f"{100 * hazard.tolerable.at_most:g} % of runs"
    by = words.listed([*criteria, *mitigations]) if criteria or mitigations else "nothing that anyone named"
    text = f"{hazard.title or hazard.id}: {by} keep it within {rate}."
    guarded = bool(criteria or mitigations) and not measured.unseen
    made.add(goal, text, under="S2", source=source, own=None if guarded else State.UNDEVELOPED)
    bound = f"below {100 * measured.bound:.2g} % with 95 % confidence" if measured.bound is not None else None
    seen = f"{measured.failures:,} of {measured.runs:,} runs in its conditions and domains failed; "
    made.add(
        f"Sn-{goal}",
        seen + (bound or f"no bound: {measured.reason}"),
        under=goal,
        kind=Kind.SOLUTION,
        source="records",
        own=State.SUPPORTED if measured.runs else State.UNDEVELOPED,
    )
    for name in criteria:
        if f"G3-{name}" in made.nodes:
            made.edges.append(Edge(start=goal, end=f"G3-{name}"))
        else:
            text = f"{name}: the tier that was asked for does not specify it, or nothing was measured"
            made.add(f"Sn-{goal}:{name}", text, under=goal, kind=Kind.SOLUTION, own=State.UNDEVELOPED)
    known = {item.id: item for item in case.context.mitigations or ()}
    for name in mitigations:
        item = known[name]
        own = State.ASSERTED if item.what and item.owner else State.UNDEVELOPED
        told = f"{item.what or 'not provided'} (owner {item.owner or 'nobody'})"
        made.nodes[f"Mi-{name}"] = Node(
            id=f"Mi-{name}", kind=Kind.SOLUTION, text=told, source=f"/mitigations/{name}", own=own
        )
        made.edges.append(Edge(start=goal, end=f"Mi-{name}"))


def _leaf(
    made: _Builder, case: Case, name: str, text: str, *, evidence: str | None, assumed: Iterable[str] = ()
) -> None:
    """Add a leaf of G4 to G6: supported by evidence, asserted by owned assumptions, else undeveloped."""
    parent, assumed = name.partition(".")[0], tuple(assumed)
    missing = set(unowned(case.context, parent)) if assumed else set()
    own = State.ASSERTED if assumed and not missing & set(assumed) else State.UNDEVELOPED
    made.add(name, text, under=parent, own=None if evidence else own)
    if evidence:
        made.add(
            f"Sn-{name}", evidence, under=name, kind=Kind.SOLUTION, source="manifest", own=State.SUPPORTED
        )
    for assumption in assumed:
        node = _assumption(case, assumption, owned=assumption not in missing)
        made.nodes[assumption] = node
        made.edges.append(Edge(start=name, end=assumption, kind="in_context_of"))


def _assumption(case: Case, name: str, *, owned: bool) -> Node:
    text = ASSUMPTIONS[int(name.partition("-")[2]) - 1][0]
    owner = next((item.owner for item in case.context.assumptions or () if item.id == name), None)
    return Node(
        id=name,
        kind=Kind.ASSUMPTION,
        text=f"{text} (owner {owner or 'nobody'})",
        source="rule" if owner is None else f"/assumptions/{name}",
        own=State.ASSERTED if owned else State.UNDEVELOPED,
    )


def _evidence(made: _Builder, case: Case) -> None:
    made.add("G4", "The evidence is what it says it is.", under="S1")
    bundle, protocol = case.document["bundle"], case.manifest.get("protocol") or {}
    _leaf(
        made,
        case,
        "G4.1",
        "The evidence is unchanged since it was sealed.",
        evidence=f"Every file has the digest that was sealed: {bundle['digest']}"
        if bundle["sealed"]
        else None,
    )
    declared = protocol.get("declared_runs")
    planned = (
        f"{bundle['records']:,} runs were declared, and all are there"
        if declared == bundle["records"]
        else None
    )
    _leaf(made, case, "G4.2", "All planned runs are there.", evidence=planned, assumed=("A-6", "A-7"))
    judge = case.document["judge"]
    calibrated = judge.get("correction") is not None
    rated = (
        f"{judge['items']:,} items were rated beside the judge, and its error is in the bounds"
        if calibrated
        else None
    )
    _leaf(made, case, "G4.3", "Success was judged rightly.", evidence=rated, assumed=("A-2", "A-4"))
    parts = (case.manifest.get("agent") or {}).get("components") or ()
    pinned = bool(parts) and all(part.get("digest") for part in parts)
    whole = (
        f"All {words.plural(len(parts), 'component')} of the agent are pinned by digest" if pinned else None
    )
    _leaf(
        made,
        case,
        "G4.4",
        "The evidence is of the agent deployed, made by whom it names.",
        evidence=whole,
        assumed=("A-3",),
    )


def _use(made: _Builder, case: Case) -> None:
    made.add("G5", "What was tested resembles what this use will bring.", under="S1")
    domain = case.context.operating_domain
    wanted = set(domain.domains or () if domain else ())
    covered = (
        f"Runs under faults in {words.listed(sorted(wanted))}" if wanted and wanted <= case.tested else None
    )
    _leaf(made, case, "G5.1", "Each domain of use was run.", evidence=covered)
    _leaf(
        made,
        case,
        "G5.2",
        "The faults and attacks are those to expect.",
        evidence=None,
        assumed=ASSUMED["G5"],
    )


def _operation(made: _Builder, case: Case) -> None:
    watching = case.context.monitoring or ()
    own = State.ASSERTED if monitored(case.context) else State.UNDEVELOPED
    text = "A change for the worse is noticed and acted on."
    made.add("G6", text, under="S1", source="/monitoring", own=None if watching else own)
    for place, item in enumerate(watching):
        told = (
            f"{item.measure or 'not provided'}: {item.limit or 'no limit'}; then {item.action or 'nothing'}"
        )
        complete = item.limit and item.owner and item.action
        made.add(
            f"In-{item.id}",
            told,
            under="G6",
            kind=Kind.SOLUTION,
            source=f"/monitoring/{place}",
            own=State.ASSERTED if complete else State.UNDEVELOPED,
        )


def _against(made: _Builder, raised: Iterable[Challenge]) -> None:
    for item in raised:
        target = item.target
        while target not in made.nodes:
            target = target.rpartition(".")[0]
        made.nodes[f"ch-{item.code}"] = Node(
            id=f"ch-{item.code}", kind=Kind.COUNTER_GOAL, text=item.text, source=item.code
        )
        made.edges.append(Edge(start=f"ch-{item.code}", end=target, kind="challenges"))
