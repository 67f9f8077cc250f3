"""A serious challenge is answered by evidence that an independent reviewer agrees with, or it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.assessment.assessing import assess
from certkit.assessment.criteria import TierStatus
from certkit.assessment.words import sentence
from certkit.bundle import context
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.report.argument.challenges import check_answers
from certkit.summary.summary import Likeness
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from certkit.assessment.result import Assessment

TRICK = structs.replace(build.strong(), likeness=Likeness(oracles=3))
CODE = "oracle-varies"


def given(*changes: Callable[[dict[str, Any]], None], tier: int = 3) -> context.Given:
    """Return a context that answers the challenge, after `changes`."""
    document: dict[str, Any] = {
        "schema": context.CONTEXT_SCHEMA,
        "about": {"bundles": [build.facts().digest], "profile": build.profile().digest, "tier": tier},
        "owner": "olga",
        "people": [
            {"id": "olga", "name": "Olga", "relation": "same"},
            {"id": "ana", "name": "Ana", "relation": "affiliated"},
            {"id": "ravi", "name": "Ravi", "relation": "independent"},
        ],
        "reviewers": [{"person": person, "date": "2026-02-01"} for person in ("ravi", "ana")],
        "answers": [
            {
                "challenge": CODE,
                "state": "answered",
                "reason": "Each fault adds its own detour to the shortest plan.",
                "by": "ana",
                "agreed_by": "ravi",
                "evidence": [{"title": "plans", "digest": "sha256:" + "3" * 64}],
            }
        ],
    }
    for change in changes:
        change(document)
    read = context.read(canonical.canonical(document), where="context.json")
    return structs.replace(read, beside=frozenset({"sha256:" + "3" * 64}))


@pytest.mark.parametrize(("tasks", "said"), [(1, "1 task has several"), (3, "3 tasks have several")])
def test_one_task_has_and_three_have(tasks: int, said: str) -> None:
    of = structs.replace(build.strong(), likeness=Likeness(oracles=tasks))
    [item] = (item for item in build.judged(of).findings if item.code == CODE)
    assert item.message.startswith(said)


def judged(answers: context.Given | None) -> Assessment:
    return assess(TRICK, build.facts(), build.profile(), required_tier=3, context=answers)


def answer(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["answers"][0].update(fields)


def person(place: int, **fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["people"][place].update(fields)


def about(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["about"].update(fields)


def test_an_answered_challenge_lets_the_verdict_stand() -> None:
    found = judged(given())
    assert (found.verdict.status, found.exit_code) == (TierStatus.MET, 0)
    assert [(item.code, item.state, item.answered_by) for item in found.serious] == [
        (CODE, "answered", ("Ana, agreed by Ravi",))
    ]
    assert sentence(found).endswith("the highest; 1 challenge answered by Ana, agreed by Ravi.")
    document = found.to_dict()
    assert document["context"] == given().digest
    assert [item["state"] for item in document["findings"] if item["code"] == CODE] == ["answered"]


def test_without_an_answer_it_is_contested() -> None:
    found = judged(None)
    assert (found.verdict.status, found.exit_code) == (TierStatus.CONTESTED, 4)
    assert "CONTESTED by 1 open challenge: oracle-varies" in sentence(found)
    assert "context" not in found.to_dict()


def test_a_serious_finding_is_never_merely_accepted() -> None:
    """Neither where the evidence raises it nor, whatever the evidence is, where the file is read."""
    accepted = given(answer(state="accepted", by="olga", until="2030-01-01"))
    for read in (judged, check_answers):
        with pytest.raises(InputError, match=r"/answers/0/state: .*never merely accepted"):
            read(accepted)


def refused() -> Iterator[tuple[str, Callable[[dict[str, Any]], None]]]:
    yield "sustained", answer(state="sustained")
    yield "not yet said", answer(state=None)
    yield "no evidence", answer(evidence=[])
    yield "evidence without a digest", answer(evidence=[{"title": "plans"}])
    yield "evidence that lies nowhere", answer(evidence=[{"digest": "sha256:" + "4" * 64}])
    yield "nobody agrees", answer(agreed_by=None)
    yield "nobody wrote it", answer(by=None)
    yield "it ends", answer(until="2030-01-01")
    yield "another code", answer(challenge="runs-alike")
    yield "the reviewer is affiliated", person(2, relation="affiliated")
    yield "the reviewer has no name", person(2, name=None)
    yield "the reviewer's relation is not stated", person(2, relation=None)
    yield "the reviewer owns it", lambda document: document.update(owner="ravi")
    yield "who agrees is no reviewer", lambda document: document.update(reviewers=[])
    yield "the review has no date", lambda document: document["reviewers"][0].pop("date")
    yield "another bundle", about(bundles=["sha256:" + "7" * 64])
    yield "one bundle more", about(bundles=[build.facts().digest, "sha256:" + "7" * 64])
    yield "another profile", about(profile="sha256:" + "7" * 64)
    yield "another tier", about(tier=2)
    yield "about nothing", lambda document: document.update(about=None)


@pytest.mark.parametrize("change", [change for _, change in refused()], ids=[name for name, _ in refused()])
def test_anything_less_leaves_it_open(change: Callable[[dict[str, Any]], None]) -> None:
    found = judged(given(change))
    assert (found.verdict.status, found.exit_code) == (TierStatus.CONTESTED, 4)
    assert [item.state for item in found.serious] == ["open"]
