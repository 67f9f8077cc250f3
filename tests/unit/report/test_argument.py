"""The argument: its graph, its states, its challenges, and when it says that a use is supported."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from certkit import canonical
from certkit.assessment.findings.findings import SEVERITY, Severity
from certkit.errors import InputError
from certkit.evidence import context as contexts
from certkit.evidence.summary.summary import Likeness
from certkit.report import answer as answer_page
from certkit.report.argument.build import Argument, build
from certkit.report.argument.case import Case, case
from certkit.report.argument.challenges import (
    STANDING,
    TARGETS,
    Challenge,
    Class,
    Standing,
    check_answers,
)
from certkit.report.argument.graph import Edge, Graph, Kind, Link, Node, State, settled, worst
from certkit.report.exports import EXPORTS
from tests.support.build import judged, perfect, strong
from tests.support.gsn import faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.evidence.summary.summary import Summary

TODAY: Final = date(2026, 2, 3)
DIGEST: Final = "sha256:" + "7" * 64
ASSESSMENT: Final = judged(strong(), tier=2, tasks_independent=True, methodology="trajectory")
ODD: Final = structs.replace(strong(), likeness=Likeness(oracles=3))
"""The strong agent, but one task has two oracles: a serious finding."""
TASKS: Final = perfect(200, 2)
"""What hazards are measured on: the strong agent's summary knows no tasks."""
Context = dict[str, Any]


def whole() -> Context:
    """A context in which everything is said, but for answers."""
    return {
        "schema": "urn:certkit:context:v1",
        "about": {
            "bundles": [ASSESSMENT.facts.digest],
            "profile": ASSESSMENT.profile.digest,
            "tier": 2,
        },
        "owner": "owner-1",
        "people": [
            {"id": "owner-1", "relation": "affiliated"},
            {"id": "reviewer-1", "relation": "independent"},
            {"id": "reviewer-2", "relation": "same"},
        ],
        "use": {"purpose": "to carry parcels", "oversight": "supervises"},
        "operating_domain": {"description": "two depots", "domains": sorted(argued({}).tested)},
        "risk": {"criterion": "one lost parcel a month", "thresholds_fit": "a person checks each address"},
        "hazard_identification": {"method": "a workshop", "by": ["owner-1"]},
        "hazards": [
            {
                "id": "H-1",
                "title": "lost parcel",
                "tolerable": {"at_most": 0.5},
                "criteria": ["r_op"],
                "mitigations": ["M-1"],
            }
        ],
        "mitigations": [{"id": "M-1", "what": "a person checks", "owner": "owner-1"}],
        "assumptions": [
            {"id": f"A-{number}", "owner": "owner-1", "rationale": "looked at"} for number in range(1, 8)
        ],
        "reviewers": [{"person": "reviewer-1"}, {"person": "reviewer-2"}],
        "monitoring": [
            {"id": name, "claim": claim, "limit": "below 90 %", "owner": "owner-1", "action": "stop"}
            for name, claim in (("I-1", "G3"), ("I-2", "H-1"))
        ],
        "decision": {"outcome": "approved", "by": "owner-1", "until": "2026-12-31"},
    }


def argued(said: Context, *, today: date | None = TODAY) -> Case:
    """The case of the strong agent with a context, none where it is empty."""
    context = None
    if said:
        read = contexts.read(canonical.line(said), where="context.json")
        context = structs.replace(read, beside=frozenset({DIGEST}))
    return case(ASSESSMENT, context=context, summary=TASKS, today=today)


def closed() -> Context:
    """The whole context with an answer to everything that is open then."""
    said = whole()
    said["answers"] = [answer(item) for item in build(argued(said)).challenges]
    return said


def answer(item: Challenge) -> Context:
    if item.kind is Class.JUDGEMENT:
        return {
            "challenge": item.code,
            "state": "accepted",
            "reason": "it is small",
            "by": "owner-1",
            "until": "2026-12-31",
        }
    return {
        "challenge": item.code,
        "state": "answered",
        "reason": "see the file",
        "by": "owner-1",
        "agreed_by": "reviewer-1",
        "evidence": [{"title": "a file", "digest": DIGEST}],
    }


CLOSED: Final = closed()


def but(change: Callable[[Context], object]) -> Argument:
    """The argument of the closed context after a change of it."""
    said = canonical.loads(canonical.line(CLOSED))
    change(said)
    return build(argued(said))


def test_a_case_in_which_everything_is_closed_is_supported() -> None:
    argument = build(argued(CLOSED))
    assert argument.claim.because == ()
    assert argument.claim.supported
    assert argument.states["G1"] is State.ASSERTED
    assert answer_page.claim(argued(CLOSED), argument).startswith("Supported: ")


def first(said: Context, kind: str) -> Context:
    """The first answer in a state."""
    return next(item for item in said["answers"] if item["state"] == kind)


WITHOUT: Final[dict[str, tuple[Callable[[Context], object], str]]] = {
    "the reviewer": (lambda said: said.update(reviewers=[]), "no-reviewer"),
    "independence": (lambda said: said["people"][1].update(relation="same"), "reviewer-not-independent"),
    "hazards": (lambda said: said.update(hazards=[]), "No hazard is named."),
    "the decision": (lambda said: said.update(decision=None), "No approving decision is in force."),
    "an approval": (lambda said: said["decision"].update(outcome="deferred"), "No approving decision"),
    "a decision in force": (
        lambda said: said["decision"].update(until="2026-02-02"),
        "No approving decision",
    ),
    "the operating domain": (lambda said: said.update(operating_domain=None), "No operating domain"),
    "the purpose": (lambda said: said.update(use={"oversight": "supervises"}), "No purpose is stated."),
    "an answer": (lambda said: said["answers"].remove(first(said, "answered")), "Open challenges"),
    "agreement": (lambda said: first(said, "answered").update(agreed_by=None), "Open challenges"),
    "a digest": (lambda said: first(said, "answered").update(evidence=None), "Open challenges"),
    "an acceptance in time": (
        lambda said: first(said, "accepted").update(until="2026-02-02"),
        "Open challenges",
    ),
    "an owner of an assumption": (lambda said: said["assumptions"].pop(), "A-7"),
    "a mitigation's owner": (lambda said: said["mitigations"][0].update(owner=None), "Undeveloped: Mi-M-1"),
    "a domain's runs": (lambda said: said["operating_domain"]["domains"].append("sea"), "domain-unseen"),
    "the hazard's runs": (lambda said: said["hazards"][0].update(domains=["sea"]), "Undeveloped"),
    "a rate that is shown": (
        lambda said: said["hazards"][0]["tolerable"].update(at_most=1e-6),
        "rate-not-shown:H-1",
    ),
    "a criterion that is measured": (
        lambda said: said["hazards"][0].update(criteria=["novel_fault"]),
        "Undeveloped",
    ),
    "monitoring": (lambda said: said["monitoring"].pop(), "no-monitoring"),
    "this evidence": (lambda said: said["about"].update(bundles=[DIGEST]), "about other evidence: bundles"),
    "this tier": (lambda said: said["about"].update(tier=3), "about other evidence: tier"),
    "a doubt that is no fault": (lambda said: first(said, "answered").update(state="sustained"), "Refuted"),
    "a resolved comment": (
        lambda said: said["reviewers"][0].update(comments=[{"node": "G5", "text": "storms?"}]),
        "comment-unresolved",
    ),
}


@pytest.mark.parametrize("missing", WITHOUT)
def test_without_one_thing_it_is_not_supported_and_says_why(missing: str) -> None:
    change, reason = WITHOUT[missing]
    argument = but(change)
    assert not argument.claim.supported
    assert any(reason in line for line in argument.claim.because), argument.claim.because


def otherwise(summed: Summary, said: Context = CLOSED, **protocol: Any) -> Argument:
    """The argument of another evidence of the same bundle, with the closed context."""
    made = judged(summed, tier=2, tasks_independent=True, methodology="trajectory", **protocol)
    read = contexts.read(canonical.line(said), where="context.json")
    context = structs.replace(read, beside=frozenset({DIGEST}))
    return build(case(made, context=context, summary=TASKS, today=TODAY))


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        (otherwise(strong(), origin="simulated"), "The evidence is simulated."),
        (otherwise(strong(adversarial=500)), "Refuted: Sn-adversarial_resistance."),
        (otherwise(ODD), "Open challenges: oracle-varies."),
    ],
    ids=["simulated", "a criterion is not met", "a serious finding"],
)
def test_other_evidence_is_not_supported_and_says_why(argument: Argument, reason: str) -> None:
    assert not argument.claim.supported
    assert reason in argument.claim.because


CODES: Final = {
    Class.SERIOUS: "oracle-varies",
    Class.EVIDENCE: "judge-uncalibrated",
    Class.JUDGEMENT: "single-time-point",
}
REACHED: Final = {
    Class.SERIOUS: {"answered", "sustained"},
    Class.EVIDENCE: {"answered", "accepted", "sustained"},
    Class.JUDGEMENT: {"answered", "accepted", "sustained"},
}


@pytest.mark.parametrize(
    ("kind", "state"), [(kind, state) for kind in REACHED for state in sorted(REACHED[kind] | {"open"})]
)
def test_every_state_of_every_class_is_reached(kind: Class, state: str) -> None:
    """A blank is open, or it is filled in and gone."""
    code, said = CODES[kind], canonical.loads(canonical.line(CLOSED))
    said["answers"] = [item for item in said["answers"] if item["challenge"] != code]
    if state != "open":
        until = {"until": "2026-12-31"} if state == "accepted" else {}
        agreed = {"agreed_by": "reviewer-1"} if state == "answered" else {}
        evidence = [{"title": "a file", "digest": DIGEST}]
        by = {"reason": "it is so", "by": "owner-1", "evidence": evidence}
        said["answers"].append({"challenge": code, "state": state} | by | until | agreed)
    argument = otherwise(ODD if kind is Class.SERIOUS else strong(), said)
    [item] = (item for item in argument.challenges if item.code == code)
    assert (item.kind, item.state) == (kind, state)
    target = argument.states[item.target]
    assert (target is State.REFUTED) == (state == "sustained")
    assert (target is State.CHALLENGED) == (state == "open")


def test_every_finding_speaks_against_a_goal() -> None:
    asked = {code for code, severity in SEVERITY.items() if severity is not Severity.INFO}
    assert asked <= set(TARGETS)


@given(st.data())
def test_no_context_supports_a_use_with_something_open(data: st.DataObject) -> None:
    said = canonical.loads(canonical.line(CLOSED))
    for name in data.draw(
        st.sets(st.sampled_from(sorted(set(said) - {"schema", "people", "owner"})), max_size=4)
    ):
        said[name] = None
    dropped = data.draw(st.sets(st.integers(0, len(CLOSED["answers"]) - 1), max_size=3))
    if said["answers"]:
        said["answers"] = [item for place, item in enumerate(said["answers"]) if place not in dropped]
    if said["hazards"] and not said["mitigations"]:
        said["hazards"] = None
    argument = build(argued(said))
    opened = [item for item in argument.challenges if item.state in {Standing.OPEN, Standing.SUSTAINED}]
    bad = {State.REFUTED, State.UNDEVELOPED} & set(argument.states.values())
    assert argument.claim.supported <= (not opened and not bad)
    assert faults(argument.graph) == ()


GRAVE: Final = list(State)


def edge(start: str, end: str, kind: Link = "supported_by") -> Edge:
    return Edge(start=start, end=end, kind=kind)


def node(name: str, kind: Kind = Kind.GOAL, state: State | None = None) -> Node:
    return Node(id=name, kind=kind, text="", source="rule", state=state)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, dict[str, State]]:
    """Layers of goals with solutions at the bottom, challenged here and there."""
    count = draw(st.integers(1, 8))
    names = [f"G{number}" for number in range(1, count + 1)]
    edges = {(names[draw(st.integers(0, place - 1))], name) for place, name in enumerate(names) if place}
    for place, name in enumerate(names):
        for upper in draw(st.sets(st.sampled_from(names[:place]))) if place else ():
            edges.add((upper, name))
    nodes = [
        Node(id=name, kind=Kind.GOAL, text=name, source="rule", state=draw(st.sampled_from([None, *State])))
        for name in names
    ]
    links = [edge(upper, lower) for upper, lower in sorted(edges)]
    effects = {}
    for number, target in enumerate(draw(st.lists(st.sampled_from(names), max_size=4))):
        nodes.append(node(f"ch-{number}", Kind.COUNTER_GOAL))
        links.append(edge(f"ch-{number}", target, "challenges"))
        effects[f"ch-{number}"] = draw(st.sampled_from([State.REFUTED, State.CHALLENGED]))
    return Graph(nodes=tuple(nodes), edges=tuple(links)), effects


def slowly(graph: Graph, effects: dict[str, State], name: str) -> State:
    """The state of a node by the definition, once more for every way that leads to it."""
    own = graph.by_id[name].state
    below = [slowly(graph, effects, lower) for lower in graph.below(name)]
    against = [effects[item] for item in graph.against(name) if item in effects]
    support = below + ([own] if own else [])
    return max([*(support or [State.UNDEVELOPED]), *against], key=lambda state: -GRAVE.index(state))


@given(graphs())
def test_states_are_those_of_a_slow_second_evaluator(drawn: tuple[Graph, dict[str, State]]) -> None:
    graph, effects = drawn
    made = settled(graph, effects).states
    assert made == {name: slowly(graph, effects, name) for name in made}
    assert faults(graph) == ()


@given(graphs())
def test_more_open_challenges_never_improve_a_state(drawn: tuple[Graph, dict[str, State]]) -> None:
    graph, effects = drawn
    fewer = dict(list(effects.items())[: len(effects) // 2])
    before, after = settled(graph, fewer).states, settled(graph, effects).states
    assert all(worst((before[name], after[name])) is after[name] for name in before)


ROOT: Final = node("G1")
LEAF: Final = node("Sn1", Kind.SOLUTION, State.SUPPORTED)


@pytest.mark.parametrize(
    ("nodes", "edges", "said"),
    [
        ((ROOT, LEAF), (edge("G1", "Sn1"),) * 2, "twice"),
        ((ROOT, ROOT), (), "one id"),
        ((ROOT, LEAF), (edge("Sn1", "G1"),), "cannot be linked"),
        ((ROOT, LEAF), (), "not reached"),
        ((ROOT,), (edge("G1", "G9"),), "no node"),
        ((ROOT, node("G2")), (), "expected one root"),
        ((ROOT, node("ch-1", Kind.COUNTER_GOAL)), (), "challenges nothing"),
    ],
)
def test_what_breaks_the_rules_of_gsn_is_named(
    nodes: tuple[Node, ...], edges: tuple[Edge, ...], said: str
) -> None:
    assert said in "; ".join(faults(Graph(nodes=nodes, edges=edges)))


def test_a_circle_is_named() -> None:
    ring = tuple(map(node, ("G1", "G2", "G3")))
    edges = tuple(edge(a, b) for a, b in (("G1", "G2"), ("G2", "G3"), ("G3", "G2")))
    assert "circle" in "; ".join(faults(Graph(nodes=ring, edges=edges)))


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        ("no-such-thing", "answered", "no rule raises"),
        ("sil-guidance", "answered", "no rule raises"),
        ("simulated-origin", "answered", "specimen"),
        ("no-use", "answered", "filling in"),
        ("no-owner", "accepted", "filling in"),
        ("calibration-chosen", "accepted", "never merely accepted"),
    ],
)
def test_an_answer_that_can_never_count_is_refused(code: str, state: str, said: str) -> None:
    document = {
        **whole(),
        "answers": [
            {"challenge": code, "state": state, "reason": "Seen to.", "by": "owner-1", "until": "2026-12-31"}
        ],
    }
    read = contexts.read(canonical.line(document), where="context.json").context
    with pytest.raises(InputError, match=rf"/answers/0/.*{said}"):
        check_answers(read, "context.json")


def test_every_standing_rule_is_raised_by_some_case() -> None:
    bare = build(argued({}, today=date(2026, 12, 31)))
    grave = but(
        lambda said: (
            said["hazards"][0].update(severity="critical", criteria=["csi"], tolerable={"at_most": 1e-6}),
            said["use"].update(oversight="none"),
            said["people"][1].update(relation="same"),
            said["reviewers"][0].update(comments=[{"node": "G5", "text": "storms?"}]),
            said["operating_domain"]["domains"].append("sea"),
        )
    )
    raised = {item.code.partition(":")[0] for argument in (bare, grave) for item in argument.challenges}
    # These three depend on the assessment: unequal readings, few decisive outcomes, runs without a time.
    assert set(STANDING) - raised <= {"point-estimates", "fragile", "evidence-undated", "evidence-old"}


def test_the_exports_hold_every_node_and_challenge() -> None:
    about = argued(CLOSED)
    argument = build(about)
    written = argument.to_dict()
    assert {node["id"] for node in written["nodes"]} == set(argument.graph.by_id)
    assert written["claim"]["supported"] is True
    assert EXPORTS["gsn"](about, argument).count("  text: ") == len(argument.nodes)
    assert EXPORTS["register"](about, argument).count("\n| ") == 1 + len(argument.challenges)
