"""The argument of a case as a typed graph: goals G1 to G6 with what stands under and against them.

    argument = build(case)
    argument.claim.supported, argument.claim.because
    argument.states["G3.1"], argument.to_dict()      # argument.json

A leaf under G4 to G6 is supported by evidence, asserted where people own the assumptions that it rests on,
and else undeveloped. What is missing from the context is said in the node's own text.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from certkit.assessment.criteria import Status
from certkit.assessment.metrics.catalogue import CATALOGUE, Group
from certkit.bundle.context import HazardIdentification, refuse
from certkit.ground import canonical
from certkit.ground.document import Digest, Document, Part, Text, Tier, fill
from certkit.ground.text import quoted
from certkit.report import words
from certkit.report.argument.challenges import (
    ASSUMED,
    Challenge,
    Standing,
    challenges,
    unowned,
    unwatched,
    watched,
)
from certkit.report.argument.graph import ROOT, Edge, Graph, Kind, Link, Node, State, settled
from certkit.report.results import bound, deciding, in_words, measured, rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.bundle.context import Given, Hazard
    from certkit.report.argument.case import Case

ASSUMPTIONS: Final = (
    (
        "The recorded tasks resemble those of the intended use.",
        "Tasks were chosen for convenience, or operation has drifted from them.",
    ),
    (
        "An outcome recorded as a success is a success.",
        "A lenient check, a judge that errs, or a success rule that ignores a side effect.",
    ),
    (
        "The agent assessed is the agent deployed.",
        "A model alias, prompt, tool or memory changed after the runs; only digests pin a component.",
    ),
    (
        "Runs say something new each time.",
        "Repeats of one task at temperature 0 stand or fall together, and look like many runs.",
    ),
    (
        "Injected faults took hold and resemble real ones.",
        "A fault that never reached the agent tests nothing; real faults have other shapes and other shares.",
    ),
    (
        "All runs that were made are in the bundle.",
        "Failed runs, or whole attempts, were left out before the bundle was sealed.",
    ),
    (
        "A failure of the test rig is not the agent's.",
        "Harness errors count against the agent here; a rig that hides failures would not be seen.",
    ),
)
"""What the verdict takes for granted, A-1 to A-7, and how each could be false."""

_BY_STATUS: Final = {
    Status.MET: State.SUPPORTED,
    Status.NOT_MET: State.REFUTED,
    Status.INSUFFICIENT: State.UNDEVELOPED,
    Status.NOT_TESTED: State.UNDEVELOPED,
}
_EFFECTS: Final = {
    Standing.SUSTAINED: State.REFUTED,
    Standing.OPEN: State.CHALLENGED,
    Standing.ACCEPTED: State.ASSERTED,
}
_SUPPORTS: Final = {Kind.GOAL, Kind.STRATEGY, Kind.SOLUTION}


class AboutPart(Part, frozen=True, kw_only=True):
    """The evidence that the argument is about."""

    bundles: tuple[Digest, ...]
    profile: Digest
    tier: Tier


class Claim(Part, frozen=True, kw_only=True):
    """The claim about the use: its state, and every reason why it does not stand."""

    id: Text
    text: Text
    state: State
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

    about: AboutPart
    assessment: Digest
    context: Annotated[Digest | None, Meta(description="SHA-256 of context.json as it was given")]
    claim: Claim
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    challenges: tuple[Challenge, ...]
    decision: DecisionPart

    @cached_property
    def graph(self) -> Graph:
        """The nodes and links."""
        return Graph(nodes=self.nodes, edges=self.edges)

    @property
    def states(self) -> dict[str, State]:
        """The state of every node that has one."""
        return self.graph.states

    @property
    def opened(self) -> list[Challenge]:
        """The challenges that are open or sustained."""
        return [item for item in self.challenges if item.state in {Standing.OPEN, Standing.SUSTAINED}]


def build(case: Case) -> Argument:
    """Return the argument of a case, with the state of every node.

    Raises `InputError` ``context.invalid`` where a comment or an indicator is about a node that there is not.
    """
    raised = challenges(case)
    effects = {f"ch-{item.code}": _EFFECTS[item.state] for item in raised if item.state in _EFFECTS}
    graph = settled(_Builder(case).built(raised), effects)
    if case.given and not case.stale:
        refuse(_unknown(case.given, graph), case.given.where)
    because = tuple(_reasons(case, graph, raised))
    root = graph.by_id[ROOT]
    return Argument(
        about=AboutPart(**case.assessment.about),
        assessment=canonical.digest(canonical.canonical(case.document)),
        context=case.given.digest if case.given else None,
        claim=Claim(
            id=ROOT, text=root.text, state=graph.states[ROOT], supported=not because, because=because
        ),
        nodes=graph.nodes,
        edges=graph.edges,
        challenges=raised,
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


def _reasons(case: Case, graph: Graph, raised: tuple[Challenge, ...]) -> Iterator[str]:
    """Yield every reason why the claim about the use does not stand; none where it does."""
    if case.specimen:
        yield "The evidence is simulated."
    if case.stale:
        yield f"The context is about other evidence: {words.listed(case.stale)}."
    for state in (State.REFUTED, State.UNDEVELOPED):
        if names := graph.lowest(state):
            yield f"{words.capital(state.value)}: {words.listed(names)}."
    for standing in (Standing.SUSTAINED, Standing.OPEN):
        if codes := [item.code for item in raised if item.state is standing]:
            yield f"{words.capital(standing.value)} challenges: {words.listed(codes)}."
    yield from unstated(case).values()


def unstated(case: Case) -> dict[str, str]:
    """Return what a claim about a use needs and no challenge asks for, by the path of its member."""
    decision = case.unapproved and f"No approving decision is in force: {case.unapproved}."
    domains = "" if case.wanted else "No domain of the use is named."
    return {
        path: said for path, said in (("/operating_domain/domains", domains), ("/decision", decision)) if said
    }


class _Builder:
    """The nodes and links of a case, as they are added; each is there once."""

    def __init__(self, case: Case) -> None:
        self.case, self.nodes, self.edges = case, dict[str, Node](), list[Edge]()

    def built(self, raised: Iterable[Challenge]) -> Graph:
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
            self.add(name, item.text, kind=Kind.COUNTER_GOAL, source=item.code)
            self.edges.append(Edge(start=name, end=target, kind="challenges"))
        return Graph(nodes=tuple(self.nodes.values()), edges=tuple(dict.fromkeys(self.edges)))

    def add(
        self,
        name: str,
        text: str,
        under: str | None = None,
        *,
        kind: Kind = Kind.GOAL,
        source: str = "rule",
        state: State | None = None,
    ) -> None:
        """Add a node under another one, or beside it, as its kind demands."""
        self.nodes[name] = Node(id=name, kind=kind, text=text, source=source, state=state)
        if under is not None:
            link: Link = "supported_by" if kind in _SUPPORTS else "in_context_of"
            self.edges.append(Edge(start=under, end=name, kind=link))

    def said(
        self, name: str, title: str, text: str | None, under: str, *, source: str, kind: Kind = Kind.CONTEXT
    ) -> None:
        """Add what people say, or the evidence where the source is no path; undeveloped if missing."""
        given = State.ASSERTED if source.startswith("/") else State.SUPPORTED
        state = given if text else State.UNDEVELOPED
        self.add(name, f"{title}: {text or 'not provided'}", under, kind=kind, source=source, state=state)

    def shown(self, name: str, under: str, text: str, source: str, state: State) -> None:
        """Add a solution with the state that it has of itself."""
        self.add(name, text, under, kind=Kind.SOLUTION, source=source, state=state)

    def top(self) -> None:
        """Add the claim about the use, what it is about, and the goal that its hazards are guarded."""
        name, context = quoted(self.case.agent), self.case.context
        purpose = (self.case.use.purpose or "nobody stated it").removesuffix(".")
        self.add(
            ROOT, f"{name} keeps every identified hazard of its use within the accepted risk. Use: {purpose}."
        )
        domain = self.case.domain
        described = "; ".join(filter(None, (domain.description, ", ".join(domain.domains or ()))))
        identity = f"{name}, {self.case.document['agent']['digest'][:23]}…"
        for node, title, text, source in (
            ("C1", "Agent", identity, "manifest"),
            ("C2", "Operating domain", described, "/operating_domain/domains"),
            ("C3", "Accepted risk", self.case.risk.criterion, "/risk/criterion"),
        ):
            self.said(node, title, text, ROOT, source=source)
        times = self.case.assessment.times
        # Where a run has no time, a challenge says so; undeveloped here too, it could not be accepted.
        state = State.SUPPORTED if times.timed == self.case.assessment.counts.records else State.ASSERTED
        self.add("C4", f"Dates: {self.case.runs_on}", ROOT, kind=Kind.CONTEXT, source="records", state=state)
        self.add(
            "S1",
            "Over the hazards, what was measured, whether it is true, whether it fits this use, and what"
            " comes after.",
            ROOT,
            kind=Kind.STRATEGY,
        )
        self.add("G2", "Every hazard of this use is identified and guarded.", "S1")
        self.add("S2", "Over each hazard.", "G2", kind=Kind.STRATEGY)
        method = (context.hazard_identification or HazardIdentification()).method
        source = "/hazard_identification/method"
        self.said("J1", "How hazards were looked for", method, "S2", source=source, kind=Kind.JUSTIFICATION)
        for item in context.assumptions or ():
            if item.text is not None:
                self.assumption(item.id, item.text, "S1")

    def assumption(self, name: str, text: str, under: str) -> None:
        """Add an assumption, asserted where somebody owns it with a rationale."""
        given = {item.id: item for item in self.case.context.assumptions or ()}.get(name)
        owned = given is not None and self.case.context.named(given.owner) and given.rationale
        self.add(
            name,
            f"{text.removesuffix('.')} (owner: {self.case.context.called(given.owner if given else None)})",
            under,
            kind=Kind.ASSUMPTION,
            source="rule" if given is None else f"/assumptions/{name}",
            state=State.ASSERTED if owned else State.UNDEVELOPED,
        )

    def results(self) -> None:
        """Add the goal that the tier's thresholds are met: a goal a group, and one for each criterion."""
        document, tier = self.case.document, self.case.tier
        info, profile = document["tiers"][str(tier)], document["profile"]
        meets = f"The evidence meets every threshold of Tier {tier} ({info['name']}) of profile"
        self.add("G3", f"{meets} {profile['id']}, {profile['reading']} reading.", "S1")
        groups: dict[Group, list[dict[str, Any]]] = {}
        for row in rows(document, tier):
            if deciding(row, profile["reading"]) in _BY_STATUS:
                groups.setdefault(CATALOGUE[row["metric"]].group, []).append(row)
        text = "Over the groups of criteria that the tier specifies."
        self.add("S3", text, "G3", kind=Kind.STRATEGY, state=None if groups else State.UNDEVELOPED)
        fit, source = self.case.risk.thresholds_fit, "/risk/thresholds_fit"
        self.said("J2", "Why these thresholds fit", fit, "S3", source=source, kind=Kind.JUSTIFICATION)
        for place, group in enumerate(Group, start=1):
            if group in groups:
                self.add(f"G3.{place}", f"The thresholds on {group.value} are met.", "S3")
            for row in groups.get(group, ()):
                self.criterion(row, f"G3.{place}", deciding(row, profile["reading"]))
        if tier > 1 and info["lower"] is not None and info["lower"] not in {Status.MET, "contested"}:
            state = _BY_STATUS[Status(info["lower"])]
            text = "The thresholds of the tiers below are met."
            self.add("G3.6", text, "S3", source="verdict", state=state)

    def criterion(self, row: dict[str, Any], under: str, status: Status) -> None:
        """Add what a criterion asks, and what was measured."""
        name, title = f"G3-{row['id']}", words.capital(CATALOGUE[row["metric"]].title)
        self.add(name, f"{title}: {in_words(row, self.case.document)}.", under, source=row["id"])
        least = f", bound {bound(row)}" if bound(row) else ""
        text = f"{title}: {measured(row)}{least}; {status.replace('_', ' ')}"
        self.shown(f"Sn-{row['id']}", name, text, f"criteria/{row['id']}", _BY_STATUS[status])

    def hazard(self, hazard: Hazard, source: str) -> None:
        """Add a hazard with what was measured, its criteria and its mitigations."""
        seen, goal = self.case.measured[hazard.id], f"G2.{hazard.id}"
        guards = (*(hazard.criteria or ()), *(hazard.mitigations or ()))
        at_most = hazard.tolerable.at_most if hazard.tolerable else None
        rate = "a share that nobody stated" if at_most is None else words.rate(at_most)
        by = words.plain(words.listed(guards)) if guards else "nothing that anyone named"
        state = None if guards else State.UNDEVELOPED
        title = words.capital(hazard.title or hazard.id)
        text = f"{title}: of its runs ({seen.where}) at most {rate} may fail; guarded by {by}."
        self.add(goal, text, "S2", source=source, state=state)
        share = f"no bound: {seen.reason}"
        if seen.bound is not None:
            share = f"below {words.share(seen.bound, at_most)} with 95 % confidence"
        text = f"{seen.failures:,} of {seen.runs:,} runs ({seen.where}) failed; {share}"
        state = State.SUPPORTED if seen.runs and at_most else State.UNDEVELOPED
        if at_most is not None and seen.failures > at_most * seen.runs:
            state = State.REFUTED
        self.shown(f"Sn-{goal}", goal, text, "records", state)
        for name in hazard.criteria or ():
            if f"G3-{name}" in self.nodes:
                self.edges.append(Edge(start=goal, end=f"G3-{name}", kind="supported_by"))
            else:
                text = f"{name}: the tier that was asked for does not specify it, or nothing was measured"
                self.shown(f"Sn-{goal}:{name}", goal, text, f"{source}/criteria", State.UNDEVELOPED)
        known = {item.id: item for item in self.case.context.mitigations or ()}
        for name in hazard.mitigations or ():
            item = known[name]
            state = State.ASSERTED if item.what and self.case.context.named(item.owner) else State.UNDEVELOPED
            text = f"{item.what or 'not provided'} (owner: {self.case.context.called(item.owner)})"
            self.shown(f"Mi-{name}", goal, text, f"/mitigations/{name}", state)

    def evidence(self) -> None:
        """Add whether the evidence is true, and whether it fits the use."""
        case, bundle, wanted = self.case, self.case.document["bundle"], self.case.wanted
        declared, parts = case.manifest.protocol.declared_runs, case.manifest.agent.components
        judge = case.document["judge"]
        planned = f"{bundle['records']:,} runs were declared, and all are there"
        rated = f"{judge['items']:,} items were rated beside the judge, and its error is in the bounds"
        pinned = f"Every component of the agent is pinned by its digest ({len(parts)})"
        calibrated = judge.get("correction") is not None
        whole = bool(parts) and all(part.digest for part in parts)
        covered = sorted(wanted & case.tested)
        run = f"Runs under faults in {words.listed(covered)}" if covered else None
        self.add("G4", "The evidence is what it says it is.", "S1")
        text = "The evidence is unchanged since it was sealed."
        if bundle["sealed"]:
            self.leaf("G4.1", text, f"Every file has the digest that was sealed: {bundle['digest'][:23]}…")
        else:  # the challenge unsealed says so, and can be accepted
            self.add("G4.1", text, "G4", state=State.ASSERTED)
        everything = declared == bundle["records"]
        self.leaf("G4.2", "All planned runs are there.", planned if everything else None, ("A-6", "A-7"))
        self.leaf("G4.3", "Success was judged rightly.", rated if calibrated else None, ("A-2", "A-4"))
        text = "The evidence is of the agent deployed, made by whom it names."
        self.leaf("G4.4", text, pinned if whole else None, ("A-3",))
        self.add("G5", "What was tested resembles what this use will bring.", "S1")
        self.leaf("G5.1", "Each domain of use was run.", run)
        self.leaf("G5.2", "The faults and attacks are those to expect.", None, ASSUMED["G5"])

    def leaf(self, name: str, text: str, evidence: str | None, assumed: Iterable[str] = ()) -> None:
        """Add a leaf: supported by evidence, asserted by owned assumptions, else undeveloped."""
        goal, assumed = name.partition(".")[0], tuple(assumed)
        owned = bool(assumed) and not set(assumed) & set(unowned(self.case.context, goal))
        state = State.ASSERTED if owned else State.UNDEVELOPED
        self.add(name, text, goal, state=None if evidence else state)
        if evidence:
            self.shown(f"Sn-{name}", name, evidence, "manifest", State.SUPPORTED)
        for assumption in assumed:
            self.assumption(assumption, ASSUMPTIONS[int(assumption.removeprefix("A-")) - 1][0], name)

    def operation(self) -> None:
        """Add what is watched after the decision."""
        watching = self.case.context.monitoring or ()
        state = State.UNDEVELOPED if unwatched(self.case.context) else State.ASSERTED
        text = "A change for the worse is noticed and acted on."
        self.add("G6", text, "S1", source="/monitoring", state=None if watching else state)
        for place, item in enumerate(watching):
            measure, limit = item.measure or "not provided", item.limit or "no limit"
            state = State.ASSERTED if watched(item, self.case.context) else State.UNDEVELOPED
            text = f"{measure}: {limit}; then {item.action or 'nothing'}"
            self.shown(f"In-{item.id}", "G6", text, f"/monitoring/{place}", state)
