"""The argument: its graph, its states, its challenges, and when it says that a use is supported."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from certkit import report
from certkit.assessment.assessment import Severity
from certkit.assessment.findings import FINDINGS
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.report import answer as answer_page
from certkit.report import context as contexts
from certkit.report import sections
from certkit.report.argument.build import Argument, build
from certkit.report.argument.case import UseCase, measure, use_case
from certkit.report.argument.challenges import (
    STANDING,
    TARGETS,
    ArgumentChallenge,
    ChallengeStatus,
    Class,
    answered,
    answers_of,
    check_answers,
)
from certkit.report.argument.columns import figures
from certkit.report.argument.graph import Edge, Graph, Link, Node, NodeKind, NodeState, settled, worst
from certkit.report.argument.skeleton import skeleton
from certkit.summary.summary import Times
from tests.support.drawing import facts, judged, runs, strong, summary
from tests.support.gsn import faults
from tests.support.schemas import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.evaluation import Evaluation
    from certkit.summary.summary import Summary

TODAY: Final = date(2026, 2, 3)
DIGEST: Final = "sha256:" + "7" * 64
EVALUATION: Final = judged(strong(), tier=2, tasks_independent=True)
SIMULATED: Final = judged(strong(), tier=2, tasks_independent=True, origin="simulated")
INVERTED: Final[dict[str, Any]] = {"imported": {"format": "records", "notes": {"inverted": 1}}}
"""The mapping reads failures as successes: a serious finding."""
Context = dict[str, Any]


def whole() -> Context:
    """A context in which everything is said, but for answers."""
    return {
        "schema": "urn:certkit:context:v1",
        "about": {
            "bundles": [EVALUATION.facts.digest],
            "profile": EVALUATION.profile.digest,
            "tier": 2,
        },
        "owner": "owner-1",
        "people": [
            {"id": "owner-1", "name": "the owner", "relation": "affiliated"},
            {"id": "reviewer-1", "name": "the reviewer", "relation": "independent"},
            {"id": "reviewer-2", "name": "another reviewer", "relation": "same"},
        ],
        "use": {"purpose": "to carry parcels", "oversight": "supervises"},
        "operating_domain": {"description": "two depots", "domains": sorted(argued({}).tested)},
        "risk": {"criterion": "one lost parcel a month", "thresholds_fit": "a person checks each address"},
        "hazard_identification": {"method": "a workshop", "by": ["owner-1"]},
        "hazards": [
            {
                "id": "H-1",
                "title": "lost parcel",
                "harm": "somebody waits",
                "severity": "marginal",
                "tolerable": {"at_most": 0.5},
                "criteria": ["r_op"],
                "mitigations": ["M-1"],
            }
        ],
        "mitigations": [{"id": "M-1", "what": "a person checks", "owner": "owner-1"}],
        "assumptions": [
            {"id": f"A-{number}", "owner": "owner-1", "rationale": "looked at"} for number in range(1, 8)
        ],
        "reviewers": [{"person": f"reviewer-{number}", "date": "2026-02-01"} for number in (1, 2)],
        "monitoring": [
            {
                "id": name,
                "claim": claim,
                "measure": "success",
                "limit": "below 90 %",
                "owner": "owner-1",
                "action": "stop",
            }
            for name, claim in (("I-1", "G3"), ("I-2", "H-1"))
        ],
        "decision": {
            "outcome": "approved",
            "by": "owner-1",
            "date": "2026-02-02",
            "until": "2026-12-31",
        },
    }


def argued(said: Context, *, today: date | None = TODAY, of: Evaluation = EVALUATION) -> UseCase:
    """The case of the strong agent with a context, none where it is empty."""
    context = None
    if said:
        read = contexts.read_context(canonical.line(said), where="context.json")
        context = structs.replace(read, files=frozenset({DIGEST}))
    return use_case(of, context=context, today=today)


def closed() -> Context:
    """The whole context with an answer to everything that is open then."""
    said = whole()
    said["answers"] = [answer(item) for item in build(argued(said)).challenges]
    return said


def answer(item: ArgumentChallenge) -> Context:
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
    assert argument.states["G1"] is NodeState.ASSERTED
    assert answer_page.claim(argued(CLOSED), argument).startswith("Supported: ")
    count = len(argument.challenges)
    assert answer_page.against(argued(CLOSED), argument) == (
        f"{count} questions answered or accepted: section 9.",
    )


def test_open_challenges_of_hazards_come_first_on_page_one_and_the_rest_is_counted() -> None:
    said = whole()
    said["hazards"][0].update(harm=None)
    argument = build(argued(said))
    lines = answer_page.against(argued(said), argument)
    assert lines[0] == "Lost parcel: the context does not state its harm."
    assert len(lines) == answer_page.MOST_AGAINST
    assert lines[-1] == "More goals and questions: sections 8 and 9."


def test_page_one_names_the_gravest_hazard_first_wherever_it_stands_in_the_file() -> None:
    said = whole()
    said["use"]["oversight"] = "none"
    said["hazards"][0] |= {"severity": "negligible", "harm": None}
    said["hazards"] += [said["hazards"][0] | {"id": "H-2", "title": "a death", "severity": "catastrophic"}]
    lines = answer_page.against(argued(said), build(argued(said)))
    assert [line.partition(":")[0] for line in lines[:3]] == ["A death", "A death", "Lost parcel"]


def first(said: Context, kind: str) -> Context:
    """The first answer in a state."""
    return next(item for item in said["answers"] if item["state"] == kind)


WITHOUT: Final[dict[str, tuple[Callable[[Context], object], str]]] = {
    "the reviewer": (lambda said: said.update(reviewers=[]), "no-reviewer"),
    "independence": (lambda said: said["people"][1].update(relation="same"), "reviewer-not-independent"),
    "hazards": (lambda said: (said.update(hazards=[]), said["monitoring"].pop()), "no-hazards"),
    "the decision": (
        lambda said: said.update(decision=None),
        "No approving decision is in force: nothing is decided yet.",
    ),
    "an approval": (lambda said: said["decision"].update(outcome="deferred"), "in force: it is deferred."),
    "a decision in force": (
        lambda said: said["decision"].update(until="2026-02-02"),
        "in force: it ended on 2026-02-02.",
    ),
    "the operating domain": (lambda said: said.update(operating_domain=None), "No domain of the use is"),
    "the domains of the use": (
        lambda said: said["operating_domain"].update(domains=None),
        "No domain of the use is named.",
    ),
    "a condition's runs": (
        lambda said: said["hazards"][0].update(conditions=["nominal", "tool failure"]),
        "hazard-unseen:H-1",
    ),
    "the purpose": (lambda said: said.update(use={"oversight": "supervises"}), "no-use"),
    "an answer": (lambda said: said["answers"].remove(first(said, "answered")), "Open questions"),
    "agreement": (lambda said: first(said, "answered").update(agreed_by=None), "Open questions"),
    "a digest": (lambda said: first(said, "answered").update(evidence=None), "Open questions"),
    "an acceptance in time": (
        lambda said: first(said, "accepted").update(until="2026-02-02"),
        "Open questions",
    ),
    "an author of an answer": (lambda said: first(said, "answered").update(by=None), "Open questions"),
    "an answer in time": (lambda said: first(said, "answered").update(until="2026-02-02"), "Open questions"),
    "a review that was made": (
        lambda said: said["reviewers"][0].update(date="2026-02-04"),
        "Open questions",
    ),
    "a decision that was made": (
        lambda said: said["decision"].update(date="2026-02-04"),
        "in force: it is of 2026-02-04, which is to come.",
    ),
    "the day of the decision": (lambda said: said["decision"].update(date=None), "in force: it has no date."),
    "the owner in the decision": (
        lambda said: said["decision"].update(by=None),
        "in force: it is not by an owner with a name.",
    ),
    "a decision after the runs": (
        lambda said: said["decision"].update(date="2026-01-30"),
        "in force: it is of 2026-01-30, before the last run.",
    ),
    "a decision after the review": (
        lambda said: (
            said["reviewers"][0].update(date="2026-02-03"),
            said["reviewers"][1].update(date="2026-02-01"),
        ),
        "in force: it is of 2026-02-02, before the review of 2026-02-03.",
    ),
    "a name of who answers": (
        lambda said: (said["people"].append({"id": "p-1"}), first(said, "answered").update(by="p-1")),
        "Open questions",
    ),
    "a name of who owns an assumption": (
        lambda said: (said["people"].append({"id": "p-1"}), said["assumptions"][0].update(owner="p-1")),
        "assumption-unowned:G5",
    ),
    "a name of who mitigates": (
        lambda said: (said["people"].append({"id": "p-1"}), said["mitigations"][0].update(owner="p-1")),
        "Undeveloped: Mi-M-1",
    ),
    "a name of who watches": (
        lambda said: (said["people"].append({"id": "p-1"}), said["monitoring"][0].update(owner="p-1")),
        "no-monitoring",
    ),
    "a reviewer of another organisation": (
        lambda said: (
            said["people"][0].update(organisation="Acme AI"),
            said["people"][1].update(organisation="ACME AI"),
        ),
        "reviewer-not-independent",
    ),
    "conditions of an approval": (
        lambda said: said["decision"].update(outcome="approved_with_conditions"),
        "in force: it names no conditions.",
    ),
    "a review after the runs": (
        lambda said: said["reviewers"][0].update(date="2026-01-30"),
        "reviewer-not-independent",
    ),
    "an independent review before the decision": (
        lambda said: said["people"][1].update(relation="same"),
        "in force: no independent review counts.",
    ),
    "the day of a review": (lambda said: said["reviewers"][0].update(date=None), "reviewer-not-independent"),
    "the reviewer's name": (lambda said: said["people"][1].update(name=None), "reviewer-not-independent"),
    "the owner's name": (lambda said: said["people"][0].update(name=None), "no-owner"),
    "what an indicator measures": (lambda said: said["monitoring"][0].update(measure=None), "no-monitoring"),
    "the harm of a hazard": (lambda said: said["hazards"][0].update(harm=None), "hazard-blank:H-1"),
    "the use in the hazard's domains": (
        lambda said: said["hazards"][0].update(domains=said["operating_domain"]["domains"].copy()[:1]),
        "domain-without-hazard",
    ),
    "domains of the use in which the hazard is measured": (
        lambda said: said["hazards"][0].update(domains=[*said["operating_domain"]["domains"], "sea"]),
        "hazard-elsewhere:H-1",
    ),
    "the tolerable rate": (lambda said: said["hazards"][0].update(tolerable=None), "hazard-blank:H-1"),
    "oversight where the severity is not stated": (
        lambda said: (said["hazards"][0].update(severity=None), said["use"].update(oversight="none")),
        "no-oversight:H-1",
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
    "this tier": (lambda said: said["about"].update(tier=3), "about other evidence: tier."),
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


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(risk=None),
        lambda said: said.update(hazard_identification=None),
        lambda said: said.update(operating_domain=None),
        lambda said: said["operating_domain"].update(domains=[]),
        lambda said: said.update(decision=None),
        lambda said: said["people"][1].update(relation="same"),
        lambda said: said["mitigations"][0].update(owner=None),
        lambda said: said["hazards"][0].update(criteria=[], mitigations=[]),
        lambda said: said["hazards"][0].update(criteria=["novel_fault"]),
        lambda said: said["assumptions"].append({"id": "A-101", "text": "dry"}),
        lambda said: said["monitoring"].append({"id": "I-3"}),
    ],
)
def test_a_blank_is_held_against_the_claim(change: Callable[[Context], object]) -> None:
    said = canonical.loads(canonical.line(CLOSED))
    assert build(argued(said)).claim.supported
    change(said)
    assert not build(argued(said)).claim.supported


def otherwise(summed: Summary, said: Context = CLOSED, **protocol: Any) -> Argument:
    """The argument of another evidence of the same bundle, with the closed context."""
    made = judged(summed, tier=2, tasks_independent=True, **protocol)
    read = contexts.read_context(canonical.line(said), where="context.json")
    context = structs.replace(read, files=frozenset({DIGEST}))
    return build(use_case(made, context=context, today=TODAY))


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        (otherwise(strong(), origin="simulated"), "The evidence is simulated."),
        (otherwise(strong(adversarial=100)), "Refuted: Sn-adversarial_resistance."),
        (otherwise(strong(), **INVERTED), "Open questions: outcome-inverted."),
    ],
    ids=["simulated", "a criterion is not met", "a serious finding"],
)
def test_other_evidence_is_not_supported_and_says_why(argument: Argument, reason: str) -> None:
    assert not argument.claim.supported
    assert reason in argument.claim.because


CODES: Final = {
    Class.SERIOUS: "outcome-inverted",
    Class.EVIDENCE: "judge-uncalibrated",
    Class.JUDGEMENT: "one-period",
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
    argument = otherwise(strong(), said, **(INVERTED if kind is Class.SERIOUS else {}))
    [item] = (item for item in argument.challenges if item.code == code)
    assert (item.kind, item.state) == (kind, state)
    target = argument.states[item.target]
    assert (target is NodeState.REFUTED) == (state == "sustained")
    assert (target is NodeState.CHALLENGED) == (state == "open")


def test_every_finding_speaks_against_a_goal() -> None:
    assert {row.code for row in FINDINGS if row.severity is not Severity.INFO} == set(TARGETS)
    assert not set(TARGETS) & set(STANDING)


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
    if not said["hazards"]:
        said["monitoring"] = None
    about = argued(said)
    if simulated := data.draw(st.booleans()):
        about = structs.replace(about, evaluation=SIMULATED)
    argument = build(about)
    opened = [
        item
        for item in argument.challenges
        if item.state in {ChallengeStatus.OPEN, ChallengeStatus.SUSTAINED}
    ]
    bad = {NodeState.REFUTED, NodeState.UNDEVELOPED} & set(argument.states.values())
    assert argument.claim.supported <= (not opened and not bad and not simulated)
    assert faults(argument.graph) == ()


GRAVE: Final = list(NodeState)


def edge(start: str, end: str, kind: Link = "supported_by") -> Edge:
    return Edge(start=start, end=end, kind=kind)


def node(name: str, kind: NodeKind = NodeKind.GOAL, state: NodeState | None = None) -> Node:
    return Node(id=name, kind=kind, text="", source="rule", state=state)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, dict[str, NodeState]]:
    """Layers of goals with solutions at the bottom, challenged here and there."""
    count = draw(st.integers(1, 8))
    names = [f"G{number}" for number in range(1, count + 1)]
    edges = {(names[draw(st.integers(0, place - 1))], name) for place, name in enumerate(names) if place}
    for place, name in enumerate(names):
        for upper in draw(st.sets(st.sampled_from(names[:place]))) if place else ():
            edges.add((upper, name))
    nodes = [
        Node(
            id=name,
            kind=NodeKind.GOAL,
            text=name,
            source="rule",
            state=draw(st.sampled_from([None, *NodeState])),
        )
        for name in names
    ]
    links = [edge(upper, lower) for upper, lower in sorted(edges)]
    effects = {}
    for number, target in enumerate(draw(st.lists(st.sampled_from(names), max_size=4))):
        nodes.append(node(f"ch-{number}", NodeKind.COUNTER_GOAL))
        links.append(edge(f"ch-{number}", target, "challenges"))
        effects[f"ch-{number}"] = draw(
            st.sampled_from([NodeState.REFUTED, NodeState.CHALLENGED, NodeState.ASSERTED])
        )
    return Graph(nodes=tuple(nodes), edges=tuple(links)), effects


def slowly(graph: Graph, effects: dict[str, NodeState], name: str) -> NodeState:
    """The state of a node by the definition, once more for every way that leads to it."""
    own = graph.by_id[name].state
    below = [slowly(graph, effects, lower) for lower in graph.below(name)]
    against = [effects[item] for item in graph.against(name) if item in effects]
    support = below + ([own] if own else [])
    return max([*(support or [NodeState.UNDEVELOPED]), *against], key=lambda state: -GRAVE.index(state))


@given(graphs())
def test_states_are_those_of_a_slow_second_evaluator(drawn: tuple[Graph, dict[str, NodeState]]) -> None:
    graph, effects = drawn
    made = settled(graph, effects).states
    assert made == {name: slowly(graph, effects, name) for name in made}
    assert faults(graph) == ()


@given(graphs())
def test_more_open_challenges_never_improve_a_state(drawn: tuple[Graph, dict[str, NodeState]]) -> None:
    graph, effects = drawn
    fewer = dict(list(effects.items())[: len(effects) // 2])
    before, after = settled(graph, fewer).states, settled(graph, effects).states
    assert all(worst((before[name], after[name])) is after[name] for name in before)


ROOT: Final = node("G1")
LEAF: Final = node("Sn1", NodeKind.SOLUTION, NodeState.SUPPORTED)


@pytest.mark.parametrize(
    ("nodes", "edges", "said"),
    [
        ((ROOT, LEAF), (edge("G1", "Sn1"),) * 2, "twice"),
        ((ROOT, ROOT), (), "one id"),
        ((ROOT, LEAF), (edge("Sn1", "G1"),), "cannot be linked"),
        ((ROOT, LEAF), (), "not reached"),
        ((ROOT,), (edge("G1", "G9"),), "no node"),
        ((ROOT, node("G2")), (), "expected one root"),
        ((ROOT, node("ch-1", NodeKind.COUNTER_GOAL)), (), "challenges nothing"),
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
        ("outcome-inverted", "accepted", "never merely accepted"),
        ("simulated-origin", "answered", "specimen"),
        ("no-use", "answered", "filling in"),
        ("comment-unresolved", "accepted", "filling in"),
        ("no-owner", "accepted", "filling in"),
        ("row-rests-on-few", "answered", "no rule raises"),
        ("one-period:zz", "answered", "no rule raises"),
        ("rate-not-shown:H-99", "accepted", "no rule raises"),
        ("rate-not-shown", "accepted", "no rule raises"),
        ("assumption-unowned:G9", "answered", "no rule raises"),
    ],
)
def test_an_answer_that_can_never_count_is_refused(code: str, state: str, said: str) -> None:
    document = {
        **whole(),
        "answers": [
            {"challenge": code, "state": state, "reason": "Seen to.", "by": "owner-1", "until": "2026-12-31"}
        ],
    }
    read = contexts.read_context(canonical.line(document), where="context.json")
    with pytest.raises(InputError, match=rf"/answers/0/.*{said}"):
        check_answers(read)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda said: said["hazards"][0].update(criteria=["r_op", "zz"]), "/hazards/0/criteria/1"),
        (lambda said: said["monitoring"].append({"id": "I-9", "claim": "H-99"}), "/monitoring/2/claim"),
        (
            # The review before it is not due yet, and is left out of the case.
            lambda said: (
                said["reviewers"].insert(0, said["reviewers"][0] | {"date": "2099-01-01"})
                or said["reviewers"][1].update(comments=[{"node": "G99", "resolved": True}])
            ),
            "/reviewers/1/comments/0/node",
        ),
    ],
)
def test_a_criterion_or_node_that_there_is_not_is_refused(
    change: Callable[[Context], object], path: str
) -> None:
    with pytest.raises(InputError, match=f"{path}: ") as refused:
        but(change)
    assert refused.value.where == "context.json"


def test_more_failures_than_tolerable_refute_a_hazard_whatever_was_accepted() -> None:
    about = argued(CLOSED)
    seen = structs.replace(about.measured["H-1"], lower=0.51)
    said = canonical.loads(canonical.line(CLOSED))
    said["answers"].append(first(said, "accepted") | {"challenge": "rate-not-shown:H-1"})
    failed = structs.replace(argued(said), measured={"H-1": structs.replace(seen, upper=0.6)})
    assert build(failed).claim.because == ("Refuted: Sn-G2.H-1.",)


def test_a_hazard_is_measured_where_the_agent_is_used() -> None:
    hazard = contexts.Hazard(id="H-1")
    made = judged(summary(runs("bank", "combined", 60, 30) + runs("shop", "combined", 60, 60)))
    assert measure(made, hazard).events == 30
    used = measure(made, hazard, ["bank"])
    assert (used.events, used.runs) == (30, 60)


@pytest.mark.parametrize(
    ("relation", "independent"), [("same", False), ("affiliated", False), ("independent", True)]
)
def test_who_evaluated_for_the_developer_is_no_independent_reviewer(relation: str, independent: bool) -> None:  # noqa: FBT001
    argument = otherwise(strong(), evaluator={"name": "The Reviewer", "relation": relation})
    assert ("reviewer-not-independent" not in {item.code for item in argument.challenges}) is independent


def test_of_two_relations_the_nearer_one_counts() -> None:
    known = facts(
        agent={"name": "a", "version": "1", "provider": "Acme"},
        evaluator={"name": "Acme Labs", "relation": "affiliated"},
    )
    said = [
        {"id": "both", "name": "Acme", "organisation": "Acme Labs", "relation": "independent"},
        {"id": "own", "name": "Own", "organisation": "Acme Labs", "relation": "same"},
        {"id": "far", "name": "Far", "relation": "independent"},
        {"id": "sub", "name": "Sub", "organisation": "ACME", "relation": "independent"},
    ]
    given = contexts.read_context(canonical.line(CLOSED), where="context.json")
    people = tuple(contexts.Person.model_validate(person) for person in said)
    given = structs.replace(given, context=given.context.model_copy(update={"people": people}))
    relations = [person.relation for person in given.knowing(known).context.people or ()]
    assert relations == ["same", "same", "independent", "same"]


def attacked(landed: int, resisted: int, missed: int) -> Evaluation:
    """Runs under attack of which some were reached and some resisted; those that were not reached succeed."""
    records = runs("d", "adversarial", landed, resisted)
    records += [
        {name: value for name, value in run.items() if name != "attack_succeeded"}
        for run in runs("d", "adversarial", missed, missed, attack_landed=False, fault_took_hold=False)
    ]
    return judged(summary(records), tasks_independent=True)


def test_attacks_that_never_reached_the_agent_do_not_dilute_those_of_a_hazard() -> None:
    """Of 160 runs under attack 28 were reached, and 7 of these attacks succeeded: 25 %, not 4.4 %."""
    hazard = contexts.Hazard(id="H-1", conditions=("adversarial",))
    seen = measure(attacked(28, 21, 132), hazard)
    assert (seen.events, seen.runs, seen.tasks) == (7, 28, 10)
    assert seen.upper is not None
    assert seen.upper > 7 / 28
    assert measure(attacked(0, 0, 160), hazard).unseen == ("adversarial",)


def test_a_passport_without_the_tasks_under_attack_gives_no_bound() -> None:
    """A passport holds the columns of its profile's metrics."""
    made = attacked(28, 21, 0)
    places = [i for i, column in enumerate(made.summary.tasks.columns) if column.metric == "success"]
    rows = tuple(
        structs.replace(row, sums=tuple(row.sums[2 * place + side] for place in places for side in (0, 1)))
        for row in made.summary.tasks.rows
    )
    columns = tuple(made.summary.tasks.columns[place] for place in places)
    table = structs.replace(made.summary.tasks, columns=columns, rows=rows)
    signed = structs.replace(made, summary=structs.replace(made.summary, tasks=table))
    seen = measure(signed, contexts.Hazard(id="H-1", counts="attacks_succeeded"))
    assert (seen.events, seen.runs, seen.upper) == (7, 28, None)
    assert "--bundle" in str(seen.reason)


def test_a_bound_is_the_upper_end_of_the_task_posterior() -> None:
    """Twelve tasks with one run each, of which one failed: Beta(1 + 1, 1 + 11), by scipy."""
    records = [run | {"task_id": f"d/{i}"} for i, run in enumerate(runs("d", "stochastic", 12, 11))]
    seen = measure(judged(summary(records), tasks_independent=True), contexts.Hazard(id="H-1"))
    assert (seen.events, seen.runs) == (1, 12)
    assert seen.upper == pytest.approx(0.3163398, abs=1e-6)


def test_where_nothing_else_speaks_against_it_page_one_gives_the_reason() -> None:
    def rejected(said: Context) -> None:
        said["decision"].update(outcome="rejected")

    said = canonical.loads(canonical.line(CLOSED))
    rejected(said)
    about, argument = argued(said), but(rejected)
    assert answer_page.against(about, argument) == ("No approving decision is in force: it is rejected.",)
    assert answer_page.boxes(about, argument)[3].line == "by the owner, until 2026-12-31"


def test_the_box_of_a_decision_that_is_not_in_force_says_why() -> None:
    said = canonical.loads(canonical.line(CLOSED))
    said["decision"].update(date="2026-02-04")
    about = argued(said)
    line = answer_page.boxes(about, build(about))[3].line
    assert line.endswith("; not in force: it is of 2026-02-04, which is to come")


def test_an_untouched_skeleton_states_no_domain_of_the_use() -> None:
    said = skeleton(argued({}))
    assert "No domain of the use is named." in build(argued(said)).claim.because


def test_the_worst_hazard_stands_first() -> None:
    hazards = [whole()["hazards"][0] | {"id": f"H-{number}"} for number in range(1, 61)]
    hazards[49].update(domains=["sea"])
    hazards[29].update(severity="catastrophic")
    said = whole() | {"hazards": hazards}
    about = argued(said)
    ordered = sections.gravest(about, build(about))
    assert [hazard.id for hazard in ordered[:3]] == ["H-50", "H-30", "H-1"]


def test_a_new_test_that_is_overdue_is_said() -> None:
    late = argued(CLOSED, today=date(2026, 12, 31))
    assert answer_page.against(late, build(late))[0] == "A new test was due on 2026-04-01."
    fresh = argued(CLOSED)
    assert not any("was due" in line for line in answer_page.against(fresh, build(fresh)))


def test_runs_after_the_day_speak_against_the_claim_and_nothing_counts_that_follows_them() -> None:
    """An old clock would revive what ended, and runs dated ahead would let reviews to come count."""
    about = argued(CLOSED, today=date(1970, 1, 1))
    argument = build(about)
    assert "runs-to-come" in {item.code for item in argument.opened}
    assert about.ended("2026-01-30")
    assert (about.reviewing, argument.decision.in_force, argument.claim.supported) == (set(), False, False)


@pytest.mark.parametrize(
    ("first", "last", "codes"),
    [
        (date(2024, 2, 1), date(2026, 1, 31), {"evidence-old"}),
        (date(2026, 1, 30), date(2026, 1, 31), set()),
        (None, None, {"evidence-undated"}),
    ],
)
def test_evidence_is_dated_by_its_runs_and_as_old_as_the_first(
    first: date | None, last: date | None, codes: set[str]
) -> None:
    """The bundle declares a period that ended on 2026-01-31, which dates no run."""
    about = use_case(dated(first, last, strong().records if first else 0), today=TODAY)
    raised = {item.code for item in build(about).challenges}
    assert raised & {"evidence-old", "evidence-undated"} == codes
    assert about.runs_on.startswith("runs of 20" if first else "runs not dated, declared 20")


def dated(first: date | None, last: date | None, timed: int) -> Evaluation:
    """The evaluation of the strong agent, so many of whose runs have a time."""
    ends = [int(datetime.combine(day, time(), UTC).timestamp() * 1e6) for day in (first, last) if day]
    times = Times(timed=timed, **dict(zip(("first", "last"), ends, strict=False)))
    return judged(structs.replace(strong(), times=times), tier=2, tasks_independent=True)


def test_one_dated_run_does_not_date_the_others() -> None:
    day, every = date(2026, 1, 31), strong().records
    about = use_case(dated(day, day, 1), today=TODAY)
    argument = build(about)
    [said] = (item.text for item in argument.challenges if item.code == "evidence-undated")
    assert said == f"{every - 1:,} of {every:,} runs do not say when they were made."
    assert about.runs_on == f"runs of 2026-01-31 (1 of {every:,} dated)"
    assert argument.graph.by_id["C4"].text == f"Dates: {about.runs_on}"


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["hazards"][0].update(conditions=["nominal", "x_foo"]),
        lambda said: said["operating_domain"]["domains"].append("sea"),
    ],
    ids=["a condition of a hazard", "a domain of the use"],
)
def test_what_a_challenge_says_is_not_undeveloped_beside_it_and_can_be_accepted(
    change: Callable[[Context], object],
) -> None:
    said = canonical.loads(canonical.line(CLOSED))
    change(said)
    said["answers"] = [answer(item) for item in build(argued(said)).challenges]
    about = argued(said)
    argument = build(about)
    assert argument.claim.supported, argument.claim.because
    accepted = [item | {"state": "accepted", "until": "2026-12-31"} for item in said["answers"]]
    about = argued(said | {"answers": [item | {"agreed_by": None} for item in accepted]})
    lines = answer_page.against(about, build(about))
    assert any("ccepted by the owner: " in line and " without a core run" in line for line in lines)


def test_runs_without_dates_or_a_seal_can_be_accepted() -> None:
    made = judged(strong(), tier=2, tasks_independent=True, period=None, sealed=False)
    argument = build(use_case(made, today=TODAY))
    assert argument.states["C4"] is NodeState.ASSERTED
    assert argument.graph.by_id["C4"].text == "Dates: runs not dated"
    assert "G4.1" not in argument.graph.lowest(NodeState.UNDEVELOPED)


def test_conditions_and_domains_stand_beside_what_was_measured_of_a_hazard() -> None:
    """Failures in normal runs alone say nothing of an attack."""
    said = canonical.loads(canonical.line(CLOSED))
    said["hazards"][0].update(conditions=["nominal"])
    about = argued(said)
    argument, seen = build(about), about.measured["H-1"]
    counted = f"{seen.events:,} of {seen.runs:,} runs failed (nominal; every domain of the use)"
    assert counted in argument.graph.by_id["Sn-G2.H-1"].text
    assert "(nominal; every domain of the use)" in argument.graph.by_id["G2.H-1"].text
    assert counted in str(next(iter(sections.hazards(about, argument)))[3])


def test_page_one_counts_answers_that_nobody_independent_agreed_to_and_names_accepted_rates() -> None:
    said = canonical.loads(canonical.line(CLOSED))
    for item in said["answers"]:
        item["agreed_by"] = "reviewer-2" if item["state"] == "answered" else None
    said["hazards"][0]["tolerable"].update(at_most=0.001)
    accepted = first(said, "accepted") | {"challenge": "rate-not-shown:H-1"}
    said["answers"].append(accepted)
    flawless = strong(
        **dict.fromkeys(("nominal", "tool_failure", "adversarial", "cascade", "stochastic"), 10_000)
    )
    about = argued(said, of=judged(flawless, tier=2, tasks_independent=True))
    argument, seen = build(about), about.measured["H-1"]
    answered = sum(item.state is ChallengeStatus.ANSWERED for item in argument.challenges)
    line = answer_page.boxes(about, argument)[2].line
    assert f"{answered} answered, {answered} of them without independent agreement" in line
    [rate, counted] = answer_page.against(about, argument)
    events = f"{seen.events:,} of {seen.runs:,} runs failed (every condition; every domain of the use)"
    assert rate.startswith(f"Lost parcel: accepted by the owner: {events}; with 95 % confidence at most ")
    assert rate.endswith("at most 0.1\u00a0% of runs may fail.")
    assert counted == f"{len(argument.challenges)} questions answered or accepted: section 9."


def test_a_doubt_that_was_only_accepted_leaves_its_goal_asserted() -> None:
    def accept(said: Context) -> None:
        [doubt] = (item for item in said["answers"] if item["challenge"] == "point-estimates")
        doubt |= {"state": "accepted", "agreed_by": None, "evidence": None, "until": "2026-12-31"}

    assert but(lambda _: None).states["G3"] is NodeState.SUPPORTED
    assert but(accept).states["G3"] is NodeState.ASSERTED


def test_answers_to_what_is_not_raised_now_are_listed() -> None:
    said = canonical.loads(canonical.line(CLOSED))
    said["answers"].append({"challenge": "evidence-old", "state": "sustained", "reason": "It is old."})
    about = argued(said)
    view = report.ReportView(case=about, argument=build(about), generated_at=None, attachments=())
    assert "Answers to what is not raised now" in report.html(view)
    assert "not raised now" not in report.html(structs.replace(view, case=argued(CLOSED)))


def test_a_serious_answer_that_does_not_count_is_said_not_to_on_page_one() -> None:
    """For assess it counts: it has no clock, and the review is to come."""
    said = canonical.loads(canonical.line(CLOSED))
    said["answers"].append(first(said, "answered") | {"challenge": "outcome-inverted"})
    said["reviewers"][0].update(date="2026-02-04")
    read = contexts.read_context(canonical.line(said), where="context.json")
    given = structs.replace(read, files=frozenset({DIGEST}))
    made = answered(judged(strong(), tier=2, tasks_independent=True, **INVERTED), given)
    assert made.assessment.verdict.status == "met"
    about = use_case(made, context=given, today=TODAY)
    [line] = [line for line in answer_page.readings(about, build(about)) if line.startswith("serious")]
    assert line.startswith("serious, open (its answer does not count: it awaits review): ")


def test_an_answer_to_a_serious_finding_counts_and_says_who_gave_it() -> None:
    said = canonical.loads(canonical.line(CLOSED))
    said["answers"].append(first(said, "answered") | {"challenge": "outcome-inverted"})
    made = judged(strong(), tier=2, tasks_independent=True, **INVERTED)

    def counted(
        change: Callable[[Context], object] = lambda _: None, files: frozenset[str] | None = None
    ) -> bool:
        document = canonical.loads(canonical.line(said))
        change(document)
        read = contexts.read_context(canonical.line(document), where="context.json")
        given = structs.replace(read, files=frozenset({DIGEST}) if files is None else files)
        return [(item.by, item.agreed_by) for item in answers_of(given, made)] == [
            ("the owner", "the reviewer")
        ]

    assert counted()
    assert not counted(files=frozenset())
    assert not counted(lambda document: document["about"].update(tier=3))
    assert not counted(lambda document: document["answers"][-1].update(agreed_by="reviewer-2"))
    assert not counted(lambda document: document["answers"][-1].update(until="2026-12-31"))
    assert not counted(lambda document: document["people"][0].update(name=None, organisation="x"))


def text_of(argument: Argument, code: str) -> str:
    """What a challenge of an argument says."""
    return next(item.text for item in argument.challenges if item.code == code)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda said: (
                said["people"][0].update(organisation="Acme AI"),
                said["people"][1].update(organisation="ACME AI"),
            ),
            "the reviewer (affiliated through the owner, stated: independent)",
        ),
        (lambda said: said["people"][1].update(relation=None), "the reviewer (relation not stated)"),
        (lambda said: said.update(owner="reviewer-1", decision=None), "the reviewer (the owner)"),
    ],
)
def test_reviewers_who_are_not_independent_are_named_with_the_reason(
    change: Callable[[Context], object], said: str
) -> None:
    document = canonical.loads(canonical.line(CLOSED)) | {"answers": []}
    change(document)
    argument = build(argued(document))
    text = text_of(argument, "reviewer-not-independent")
    assert text.partition(": ")[2] == f"{said}; another reviewer (same)."
    [item] = (item for item in argument.challenges if item.code == "reviewer-not-independent")
    assert item.kind is Class.BLANK


def test_what_nobody_watches_is_named() -> None:
    argument = but(lambda said: said["monitoring"].pop())
    assert text_of(argument, "no-monitoring").endswith(" is about H-1.")


def test_the_box_of_the_claim_counts_open_challenges_and_names_no_code() -> None:
    argument = otherwise(strong(), **INVERTED)
    about = argued(CLOSED)
    box = answer_page.boxes(about, argument)[1]
    assert box.line == "questions are open or upheld: see section 9"


def test_the_box_of_the_claim_says_in_words_what_is_refuted_or_undeveloped() -> None:
    argument = otherwise(strong(adversarial=100))
    box = answer_page.boxes(argued(CLOSED), argument)[1]
    assert box.line.startswith("1 point refuted, such as “Success under attack: ")


def test_no_assumption_interrupts_the_line_from_a_goal_to_its_support() -> None:
    view = report.ReportView(
        case=argued(CLOSED), argument=build(argued(CLOSED)), generated_at=None, attachments=()
    )
    drawn = report.html(view)
    drawn = drawn[drawn.index('id="figure-G4"') :]
    column = drawn[drawn.index("<b>G4.4 ") : drawn.index("</figure>")]
    assert column.index("<b>Sn-G4.4 ") < column.index("assumes")


def test_the_confidence_that_is_asked_for_names_its_threshold() -> None:
    assert "exceeds 80\u00a0% is" in build(argued({})).graph.by_id["G3-posterior"].text


def test_every_standing_rule_is_raised_by_some_case() -> None:
    bare = build(argued({}, today=date(2026, 12, 31)))
    grave = but(
        lambda said: (
            said["hazards"][0].update(
                harm=None, severity="critical", criteria=["csi"], tolerable={"at_most": 1e-6}
            ),
            said["use"].update(oversight="none"),
            said["people"][1].update(relation="same"),
            said["reviewers"][0].update(comments=[{"node": "G5", "text": "storms?"}]),
            said["operating_domain"]["domains"].append("sea"),
        )
    )
    elsewhere = but(lambda said: said["hazards"][0].update(domains=["sea"]))
    assert text_of(elsewhere, "hazard-unseen:H-1") == "Its conditions and domains without a core run: sea."
    raised = {
        item.code.partition(":")[0] for argument in (bare, grave, elsewhere) for item in argument.challenges
    }
    # One attack fewer resisted, and Tier 2 would be lost; the bundle states no period, and no run its time.
    close = otherwise(strong(adversarial=141), period=None)
    raised |= {item.code.partition(":")[0] for item in close.challenges}
    raised |= {item.code for item in build(argued({}, today=date(1970, 1, 1))).challenges}
    assert set(STANDING) <= raised


def test_the_document_holds_every_node_and_challenge() -> None:
    argument = build(argued(CLOSED))
    written = argument.to_dict()
    assert {node["id"] for node in written["nodes"]} == set(argument.graph.by_id)
    assert {item["code"] for item in written["challenges"]} == {item.code for item in argument.challenges}
    assert written["claim"]["supported"] is True
    jsonschema.Draft202012Validator(schema_of(Argument)).validate(written)


def test_without_a_context_the_overview_alone_is_drawn() -> None:
    [shown] = figures(build(argued({})))
    assert shown.said.startswith("G1 is undeveloped: ")
    assert [column.goal for column in shown.columns] == ["G2", "G3", "G4", "G5", "G6"]
    assert len(figures(build(argued(CLOSED)))) == 6


def test_the_overview_counts_the_challenges_of_all_below_a_goal() -> None:
    argument = build(argued({}))
    [shown] = figures(argument)
    targets = [item.target.partition(".")[0] for item in argument.opened]
    assert {column.goal: len(column.against) for column in shown.columns} == {
        name: targets.count(name) for name in ("G2", "G3", "G4", "G5", "G6")
    }


def test_of_more_goals_than_fit_the_worst_are_drawn() -> None:
    hazard = {"title": "x", "criteria": ["r_op"], "domains": [], "tolerable": {"at_most": 0.5}}
    hazards: list[Context] = [{"id": f"H-{n}", **hazard} for n in range(1, 8)]
    hazards[6]["domains"] = ["sea"]
    argument = but(lambda said: said.update(hazards=hazards))
    [_, shown, *_] = figures(argument)
    assert [column.goal for column in shown.columns] == [f"G2.H-{n}" for n in (1, 2, 3, 4, 7)]
    assert shown.more == 2


def test_the_register_repeats_neither_the_figures_nor_the_criteria() -> None:
    said = canonical.loads(canonical.line(CLOSED))
    said["hazards"] += [said["hazards"][0] | {"id": f"H-{number}"} for number in range(2, 9)]
    argument = build(argued(said))
    figure = {
        name for shown in figures(argument) for column in shown.columns for name in (shown.root, column.goal)
    }
    rows = [str(row[0]) for row in sections.nodes(argument)]
    assert [re.sub("<[^>]*>", "", row) for row in rows] == ["G2.H-6", "G2.H-7", "G2.H-8"]
    assert not figure & {re.sub("<[^>]*>", "", row) for row in rows}


def test_people_are_called_by_their_names() -> None:
    about = argued(CLOSED)
    answers = "\n".join(item.answer_text(about.context) or "" for item in build(about).challenges)
    assert "accepted by the owner, until 2026-12-31: " in answers
    assert "answered by the owner, agreed by the reviewer" in answers
    assert [row[4] for row in sections.indicators(about.context)] == ["the owner", "the owner"]


def test_a_measured_share_is_drawn_before_a_mitigation() -> None:
    [_, shown, *_] = figures(build(argued(CLOSED)))
    assert shown.columns[0].support == ["Sn-G2.H-1", "G3-r_op", "Mi-M-1"]
