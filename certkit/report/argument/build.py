"""The argument of a case as a typed graph: goals G1 to G6 with what stands under and against them.

    argument = build(case)
    argument.claim.supported, argument.claim.because
    argument.states["G3.1"], argument.to_dict()      # argument.json

A leaf under G4 to G6 is supported by evidence, asserted where people own the assumptions that it rests on,
and else undeveloped. What is missing from the context is said in the node's own text.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import UNSET, Meta

from certkit.assessment import raters
from certkit.assessment.assessment import Status, TierStatus
from certkit.assessment.catalogue import CATALOGUE, Group
from certkit.ground import canonical
from certkit.ground.document import Digest, Document, Part, Text, fill
from certkit.ground.text import quoted
from certkit.ground.wording import listed, many
from certkit.report import words
from certkit.report.argument.case import TEXTS, ArgumentAbout, HazardEvents, about
from certkit.report.argument.challenges import (
    ASSUMED,
    STATUS_WORDS,
    ArgumentChallenge,
    ChallengeStatus,
    challenges,
    unowned,
    unwatched,
    watched,
)
from certkit.report.argument.graph import ROOT, Edge, Graph, Link, Node, NodeKind, NodeState, settled
from certkit.report.context import HazardIdentification, refuse
from certkit.report.results import asked_in_words, bound, judged_rows, measured, rows, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from certkit.assessment.assessment import Row
    from certkit.report.argument.case import UseCase
    from certkit.report.context import Given, Hazard

_BY_STATUS: Final = {
    Status.MET: NodeState.SUPPORTED,
    Status.NOT_MET: NodeState.REFUTED,
    Status.INSUFFICIENT: NodeState.UNDEVELOPED,
    Status.NOT_TESTED: NodeState.UNDEVELOPED,
}
_EFFECTS: Final = {
    ChallengeStatus.SUSTAINED: NodeState.REFUTED,
    ChallengeStatus.OPEN: NodeState.CHALLENGED,
    ChallengeStatus.ACCEPTED: NodeState.ASSERTED,
}
_SUPPORTS: Final = {NodeKind.GOAL, NodeKind.STRATEGY, NodeKind.SOLUTION}


class UseClaim(Part, frozen=True, kw_only=True):
    """The claim about the use: its state, and every reason why it does not stand."""

    id: Text
    text: Text
    state: NodeState
    supported: bool
    because: tuple[Text, ...]


class DecisionPart(Part, frozen=True, kw_only=True):
    """What the owner decided, and whether an approval is in force for this evidence."""

    in_force: bool
    outcome: Text | None = None
    by: Text | None = None
    date: Text | None = None
    until: Text | None = None


class Argument(Document, frozen=True, kw_only=True, dict=True, tag="urn:certkit:argument:v1"):
    """The argument of a safety case as a typed graph, after GSN version 3."""

    about: ArgumentAbout
    assessment: Digest
    context: Annotated[Digest | None, Meta(description="SHA-256 of context.json as it was given")]
    claim: UseClaim
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    challenges: tuple[ArgumentChallenge, ...]
    hazards: tuple[HazardEvents, ...]
    decision: DecisionPart

    @cached_property
    def graph(self) -> Graph:
        """The nodes and links."""
        return Graph(nodes=self.nodes, edges=self.edges)

    @property
    def states(self) -> dict[str, NodeState]:
        """The state of every node that has one."""
        return self.graph.states

    @property
    def opened(self) -> list[ArgumentChallenge]:
        """The challenges that are open or sustained."""
        return [
            item
            for item in self.challenges
            if item.state in {ChallengeStatus.OPEN, ChallengeStatus.SUSTAINED}
        ]


def build(case: UseCase) -> Argument:
    """Return the argument of a case, with the state of every node.

    Raises:
        InputError: ``context.invalid`` where a comment or an indicator is about a node that there is not.
    """
    raised = challenges(case)
    effects = {f"ch-{item.code}": _EFFECTS[item.state] for item in raised if item.state in _EFFECTS}
    graph = settled(_Builder(case, effects).built(raised), effects)
    if case.given and not case.stale:
        refuse(_unknown(case.given, graph), case.given.where)
    because = tuple(_reasons(case, graph, raised))
    root = graph.by_id[ROOT]
    return Argument(
        about=about(case.evaluation),
        assessment=canonical.digest(canonical.canonical(case.document)),
        context=case.given.digest if case.given else None,
        claim=UseClaim(
            id=ROOT, text=root.text, state=graph.states[ROOT], supported=not because, because=because
        ),
        nodes=graph.nodes,
        edges=graph.edges,
        challenges=raised,
        hazards=tuple(case.measured.values()),
        decision=fill(DecisionPart, case.context.decision, in_force=case.unapproved is None),
    )


def _unknown(given: Given, graph: Graph) -> Iterator[str]:
    """Yield the paths of comments and indicators about nodes that there are not."""
    said = canonical.loads(given.data)  # the case leaves out reviews that come later, and so moves the others
    named = {
        f"/monitoring/{at}/claim": item.get("claim") for at, item in enumerate(said.get("monitoring") or ())
    }
    named |= {
        f"/reviewers/{at}/comments/{number}/node": comment["node"]
        for at, reviewer in enumerate(said.get("reviewers") or ())
        for number, comment in enumerate(reviewer.get("comments") or ())
    }
    known = {*graph.by_id, *(hazard["id"] for hazard in said.get("hazards") or ())}
    for path, name in named.items():
        if name and name not in known:
            yield f"{path}: the argument has no node {name!r}"


def _reasons(case: UseCase, graph: Graph, raised: tuple[ArgumentChallenge, ...]) -> Iterator[str]:
    """Yield every reason why the claim about the use does not stand; none where it does."""
    if case.specimen:
        yield "The evidence is simulated."
    if case.stale:
        yield f"The context is about other evidence: {listed(case.stale)}."
    for state in (NodeState.REFUTED, NodeState.UNDEVELOPED):
        if names := graph.lowest(state):
            yield f"{words.capital(state.value)}: {listed(names)}."
    for status in (ChallengeStatus.SUSTAINED, ChallengeStatus.OPEN):
        if codes := [item.code for item in raised if item.state is status]:
            yield f"{words.capital(STATUS_WORDS[status])} questions: {listed(codes)}."
    yield from unstated(case).values()


def unstated(case: UseCase) -> dict[str, str]:
    """Return what a claim about a use needs and no challenge asks for, by the path of its member."""
    decision = case.unapproved and f"No approving decision is in force: {case.unapproved}."
    domains = "" if case.wanted else "No domain of the use is named."
    return {
        path: said for path, said in (("/operating_domain/domains", domains), ("/decision", decision)) if said
    }


class _Builder:
    """The nodes and links of a case, as they are added; each is there once."""

    def __init__(self, case: UseCase, effects: Mapping[str, NodeState]) -> None:
        self.case, self.effects = case, effects
        self.nodes, self.edges = dict[str, Node](), list[Edge]()

    def built(self, raised: Iterable[ArgumentChallenge]) -> Graph:
        """Return the whole graph with its counter-goals, before states are settled."""
        self.top()
        self.results()
        for place, hazard in enumerate(self.case.context.hazards or ()):
            self.hazard(hazard, f"/hazards/{place}")
        self.evidence()
        self.operation()
        for item in raised:
            target = item.target
            while target not in self.nodes:
                target = target.rpartition(".")[0]
            name = f"ch-{item.code}"
            self.add(name, text=item.text, kind=NodeKind.COUNTER_GOAL, source=item.code)
            self.edges.append(Edge(start=name, end=target, kind="challenges"))
        return Graph(nodes=tuple(self.nodes.values()), edges=tuple(dict.fromkeys(self.edges)))

    def add(
        self,
        name: str,
        under: str | None = None,
        text: str | None = None,
        *,
        kind: NodeKind = NodeKind.GOAL,
        source: str = "rule",
        state: NodeState | None = None,
    ) -> None:
        """Add a node under another one, or beside it, as its kind demands; its text is fixed unless told."""
        text = TEXTS["nodes"][name] if text is None else text
        self.nodes[name] = Node(id=name, kind=kind, text=text, source=source, state=state)
        if under is not None:
            link: Link = "supported_by" if kind in _SUPPORTS else "in_context_of"
            self.edges.append(Edge(start=under, end=name, kind=link))

    def statement(
        self,
        name: str,
        title: str,
        text: str | None,
        under: str,
        *,
        source: str,
        kind: NodeKind = NodeKind.CONTEXT,
    ) -> None:
        """Add what people say, or the evidence where the source is no path; undeveloped if missing."""
        given = NodeState.ASSERTED if source.startswith("/") else NodeState.SUPPORTED
        state = given if text else NodeState.UNDEVELOPED
        self.add(name, under, f"{title}: {text or 'not provided'}", kind=kind, source=source, state=state)

    def solution(self, name: str, under: str, text: str, source: str, state: NodeState) -> None:
        """Add a solution with the state that it has of itself."""
        self.add(name, under, text, kind=NodeKind.SOLUTION, source=source, state=state)

    def top(self) -> None:
        """Add the claim about the use, what it is about, and the goal that its hazards are guarded."""
        name, context = quoted(self.case.agent), self.case.context
        purpose = (self.case.use.purpose or "not stated").removesuffix(".")
        claim = f"{name} keeps every identified hazard of its use within the accepted risk."
        self.add(ROOT, text=f"{claim} Use: {purpose}.")
        domain = self.case.domain
        described = "; ".join(filter(None, (domain.description, ", ".join(domain.domains or ()))))
        identity = f"{name}, {self.case.evaluation.facts.agent.digest[:23]}…"
        for node, title, text, source in (
            ("C1", "Agent", identity, "manifest"),
            ("C2", "Operating domain", described, "/operating_domain/domains"),
            ("C3", "Accepted risk", self.case.risk.criterion, "/risk/criterion"),
        ):
            self.statement(node, title, text, ROOT, source=source)
        summary = self.case.evaluation.summary
        # Where a run has no time, a challenge says so; undeveloped here too, it could not be accepted.
        state = NodeState.SUPPORTED if summary.times.timed == summary.records else NodeState.ASSERTED
        dates = f"Dates: {self.case.runs_on}"
        self.add("C4", ROOT, dates, kind=NodeKind.CONTEXT, source="records", state=state)
        self.add("S1", ROOT, kind=NodeKind.STRATEGY)
        self.add("G2", "S1")
        self.add("S2", "G2", kind=NodeKind.STRATEGY)
        method = (context.hazard_identification or HazardIdentification()).method
        title, source = "How hazards were looked for", "/hazard_identification/method"
        self.statement("J1", title, method, "S2", source=source, kind=NodeKind.JUSTIFICATION)
        for item in context.assumptions or ():
            if item.text is not None:
                self.assumption(item.id, item.text, "S1")

    def assumption(self, name: str, text: str, under: str) -> None:
        """Add an assumption, asserted where somebody owns it with a rationale."""
        given = {item.id: item for item in self.case.context.assumptions or ()}.get(name)
        owned = given is not None and self.case.context.named(given.owner) and given.rationale
        self.add(
            name,
            under,
            f"{text.removesuffix('.')} (owner: {self.case.context.called(given.owner if given else None)})",
            kind=NodeKind.ASSUMPTION,
            source="rule" if given is None else f"/assumptions/{name}",
            state=NodeState.ASSERTED if owned else NodeState.UNDEVELOPED,
        )

    def results(self) -> None:
        """Add the goal that the tier's thresholds are met: a goal a group, and one for each criterion."""
        evaluation, tier = self.case.evaluation, self.case.tier
        profile = evaluation.profile
        by = "on averages" if profile.reading == "table" else "with confidence limits"
        meets = (
            f"The evidence meets every threshold of Tier {tier} ({profile.tiers[str(tier)].name}) of profile"
        )
        self.add("G3", "S1", f"{meets} {profile.name}, {by}.")
        groups: dict[Group, list[Row]] = {}
        for row, _ in judged_rows(evaluation, tier):
            groups.setdefault(CATALOGUE[row.metric].group, []).append(row)
        self.add("S3", "G3", kind=NodeKind.STRATEGY, state=None if groups else NodeState.UNDEVELOPED)
        fit, source = self.case.risk.thresholds_fit, "/risk/thresholds_fit"
        self.statement(
            "J2", "Why these thresholds fit", fit, "S3", source=source, kind=NodeKind.JUSTIFICATION
        )
        for place, group in enumerate(Group, start=1):
            if group in groups:
                self.add(f"G3.{place}", "S3", f"The thresholds on {group.value} are met.")
            for row in groups.get(group, ()):
                self.criterion(row, f"G3.{place}")
        lower = evaluation.assessment.tiers[str(tier - 1)].status if tier > 1 else TierStatus.MET
        if lower in {TierStatus.NOT_MET, TierStatus.INSUFFICIENT}:
            self.add("G3.6", "S3", source="verdict", state=_BY_STATUS[Status(lower)])

    def criterion(self, row: Row, under: str) -> None:
        """Add what a criterion asks, and what was measured."""
        status, name = status_of(row, self.case.evaluation), f"G3-{row.id}"
        title = words.capital(CATALOGUE[row.metric].title)
        self.add(name, under, f"{title}: {asked_in_words(row, self.case.evaluation)}.", source=row.id)
        limit = f", confidence limit {bound(row)}" if bound(row) else ""
        text = f"{title}: {measured(row)}{limit}; {status.replace('_', ' ')}"
        self.solution(f"Sn-{row.id}", name, text, f"criteria/{row.id}", _BY_STATUS[status])

    def hazard(self, hazard: Hazard, source: str) -> None:
        """Add a hazard with what was measured, its criteria and its mitigations."""
        seen, goal = self.case.measured[hazard.id], f"G2.{hazard.id}"
        guards = (*(hazard.criteria or ()), *(hazard.mitigations or ()))
        by = words.plain(listed(guards)) if guards else "no named criterion or mitigation"
        state = None if guards else NodeState.UNDEVELOPED
        title = words.capital(hazard.title or hazard.id)
        text = f"{title}: {seen.tolerable_text} ({seen.where}); guarded by {by}."
        self.add(goal, "S2", text, source=source, state=state)
        # Where the rate is not shown, the question about it holds for the evidence as it does for the hazard.
        state = self.effects.get(f"ch-rate-not-shown:{hazard.id}", NodeState.SUPPORTED)
        if not (seen.runs and seen.at_most):
            state = NodeState.UNDEVELOPED
        elif seen.exceeds:
            state = NodeState.REFUTED
        text = f"{words.capital(seen.counted_text)} ({seen.where}); {seen.limits_text}"
        self.solution(f"Sn-{goal}", goal, text, "records", state)
        specified = {row.id: row for row in rows(self.case.evaluation, self.case.tier)}
        for name in hazard.criteria or ():
            if f"G3-{name}" in self.nodes:
                self.edges.append(Edge(start=goal, end=f"G3-{name}", kind="supported_by"))
            elif name in specified and specified[name].status in _BY_STATUS:  # it decides no tier
                self.criterion(specified[name], goal)
            else:
                text = f"{name}: the tier that was asked for does not specify it, or nothing was measured"
                self.solution(f"Sn-{goal}:{name}", goal, text, f"{source}/criteria", NodeState.UNDEVELOPED)
        known = {item.id: item for item in self.case.context.mitigations or ()}
        for name in hazard.mitigations or ():
            item = known[name]
            state = (
                NodeState.ASSERTED
                if item.what and self.case.context.named(item.owner)
                else NodeState.UNDEVELOPED
            )
            text = f"{item.what or 'not provided'} (owner: {self.case.context.called(item.owner)})"
            self.solution(f"Mi-{name}", goal, text, f"/mitigations/{name}", state)

    def evidence(self) -> None:
        """Add whether the evidence is true, and whether it fits the use."""
        case, facts, wanted = self.case, self.case.evaluation.facts, self.case.wanted
        records, parts = case.evaluation.summary.records, facts.agent.components
        judge = raters.judge_report(case.evaluation.summary, facts)
        covered, labelled = sorted(wanted & case.tested), many(sum(judge.counts), "run")
        planned, plan = facts.protocol.declared_runs == records, case.evaluation.summary.plan
        if plan is not UNSET:
            planned = plan.present == plan.planned and not plan.astray
        pinned = bool(parts) and all(part.digest for part in parts)
        sealed = f"Every file has the digest that was sealed: {facts.digest[:23]}…"
        rated = f"{labelled} of the judge have labels by people, and its error is in the limits"
        for goal in ("G4", "G5"):
            self.add(goal, "S1")
        if facts.sealed:
            self.leaf("G4.1", sealed)
        else:  # the challenge unsealed says so, and can be accepted
            self.add("G4.1", "G4", state=NodeState.ASSERTED)
        self.leaf("G4.2", planned and f"{many(records)} were declared, and all are there", "A-6", "A-7")
        self.leaf("G4.3", judge.corrected is not None and rated, "A-2", "A-4")
        text = f"Every component of the agent is pinned by its digest ({len(parts)})"
        self.leaf("G4.4", pinned and text, "A-3")
        self.leaf("G5.1", bool(covered) and f"Core runs under faults in {', '.join(covered)}")
        self.leaf("G5.2", False, *ASSUMED["G5"])

    def leaf(self, name: str, evidence: str | Literal[False], *assumed: str) -> None:
        """Add a leaf: supported by evidence, asserted by owned assumptions, else undeveloped."""
        goal = name.partition(".")[0]
        owned = bool(assumed) and not set(assumed) & set(unowned(self.case.context, goal))
        state = NodeState.ASSERTED if owned else NodeState.UNDEVELOPED
        self.add(name, goal, state=None if evidence else state)
        if evidence:
            self.solution(f"Sn-{name}", name, evidence, "manifest", NodeState.SUPPORTED)
        for assumption in assumed:
            self.assumption(assumption, TEXTS["assumptions"][assumption]["text"], name)

    def operation(self) -> None:
        """Add what is watched after the decision."""
        watching = self.case.context.monitoring or ()
        state = NodeState.UNDEVELOPED if unwatched(self.case.context) else NodeState.ASSERTED
        self.add("G6", "S1", source="/monitoring", state=None if watching else state)
        for place, item in enumerate(watching):
            measure, limit = item.measure or "not provided", item.limit or "no limit"
            state = NodeState.ASSERTED if watched(item, self.case.context) else NodeState.UNDEVELOPED
            text = f"{measure}: {limit}; then {item.action or 'nothing'}"
            self.solution(f"In-{item.id}", "G6", text, f"/monitoring/{place}", state)
