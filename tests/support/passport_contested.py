"""Vectors of contested passports and of answers to challenges: open, answered, stale, by the wrong reviewer.

Nothing of certkit is used. Passports are verified; bundles are assessed with the context that answers.
"""

from __future__ import annotations

import tomllib  # noqa: TID251 - nothing of certkit is used
from typing import TYPE_CHECKING, Any, Final

from tests.support.passport_parts import Json, case, compact, digest, passport, statement, trust
from tests.support.passport_threats import stored

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD: Final = ("types", "passport.statement", 1)
OPEN: Final = ("unverifiable", None, 4)
MEETS: Final = "meets the Tier 1 evidence thresholds of profile house-rule"


def contested(state: str = "open", **more: object) -> Json:
    """A statement with a serious challenge, which is open or answered."""
    document = statement()
    predicate = document["predicate"]
    challenge = {"code": "oracle-varies", "severity": "serious", "message": "a task has several oracles"}
    predicate["challenges"].append(challenge | {"state": state} | more)
    if state == "open":
        predicate["claim"] = f"{MEETS}; CONTESTED by 1 open challenge: oracle-varies"
        predicate["assessment"]["status"] = "contested"
    else:
        predicate["claim"] = f"{MEETS}; 1 challenge answered by Ana and Ravi"
        predicate["assessment"]["context"] = digest("context")
    return document


def passports() -> Iterator[Json]:
    """Yield contested and answered passports under policies that accept them and that do not."""
    taken, answered = "contested, and the policy accepts that", "answered"
    by = {"answered_by": ["Ana", "Ravi"]}
    good = passport(compact(contested("answered", **by)))
    yield case(taken, passport(compact(contested())), policy=trust(accept_contested=True))
    yield case(answered, good)
    yield case("contested", passport(compact(contested())), OPEN, twin=taken)
    refusing = trust(accept_answered=False)
    yield case("answered, and the policy accepts no answer", good, OPEN, refusing, twin=answered)

    def forged(name: str, document: Json) -> Json:
        return case(name, passport(compact(document)), BAD, twin=answered)

    yield forged("answered by nobody", contested("answered"))
    unnamed = contested("answered", **by)
    del unnamed["predicate"]["assessment"]["context"]
    yield forged("answered in no context", unnamed)
    silent = contested("answered", **by)
    silent["predicate"]["claim"] = MEETS
    yield forged("answered, and the claim does not say so", silent)
    met = contested()
    met["predicate"]["assessment"]["status"] = "met"
    yield forged("contested, and stated to be met", met)
    milder = contested()
    milder["predicate"]["challenges"][-1]["severity"] = "warning"
    yield forged("contested, and the challenge called a warning in a claim that says contested", milder)


PROFILE: Final = """\
schema = "urn:certkit:profile:v1"
id = "house-rule"
reading = "table"
sources = ["this house"]

[tiers.1]
name = "enough"
confidence = 0.9

[[criteria]]
id = "r_op"
metric = "r_op"
operator = ">="
tiers = {1 = 0.5}
"""
PROFILE_DIGEST: Final = digest(compact(tomllib.loads(PROFILE)).decode())


def bundle() -> tuple[dict[str, str], str]:
    """Return the files of a sealed bundle that meets Tier 1 with an oracle that varies, and its digest."""
    runs = [
        {
            "run_id": f"{condition}-{task}",
            "domain": "banking",
            "task_id": f"task {task}",
            "condition": condition,
            "outcome": "success",
            "steps_actual": 5 + task % 3,
            "steps_oracle": 3 if (task, condition) == (0, "stochastic") else 4,
        }
        for condition in ("nominal", "tool_failure", "context_corruption", "stochastic")
        for task in range(12)
    ]
    return stored("contested", runs=runs)


def answer(**more: Any) -> Json:
    """Return an answer to the challenge, agreed by a reviewer who is independent."""
    return {
        "challenge": "oracle-varies",
        "state": "answered",
        "reason": "One plan was found shorter by a second tool.",
        "by": "ana",
        "agreed_by": "ravi",
        "evidence": [{"digest": digest("plans"), "where": "plans.txt"}],
    } | more


def context(
    evidence: str, *answers: Json, relation: str = "independent", date: str | None = "2026-02-01", **more: Any
) -> Json:
    """Return a context.json, bound to the evidence and the profile."""
    return {
        "schema": "urn:certkit:context:v1",
        "about": {"bundles": [evidence], "profile": PROFILE_DIGEST, "tier": 1} | more,
        "owner": "ana",
        "people": [
            {"id": "ana", "name": "Ana", "relation": "same"},
            {"id": "ravi", "name": "Ravi", "relation": relation},
        ],
        "reviewers": [{"person": "ravi", "date": date}],
        "answers": list(answers),
    }


def assessments() -> Json:
    """Return a bundle, its profile, and the contexts that answer its challenge or do not."""
    files, evidence = bundle()
    own = context(evidence, answer(), relation="same")
    nowhere = [{"digest": digest("other plans"), "where": "plans.txt"}]
    accepted = context(evidence, answer(state="accepted", until="2027-01-01"))
    cases = (
        ("contested", None, 4, "open"),
        ("answered", context(evidence, answer()), 0, "answered"),
        ("agreed by the developer's own reviewer", own, 4, "open"),
        ("agreed by a reviewer without a date", context(evidence, answer(), date=None), 4, "open"),
        ("agreed by nobody", context(evidence, answer(agreed_by=None)), 4, "open"),
        ("agreed by who answered", context(evidence, answer(agreed_by="ana")), 3, None),
        ("without evidence", context(evidence, answer(evidence=[])), 4, "open"),
        ("of evidence that lies nowhere", context(evidence, answer(evidence=nowhere)), 4, "open"),
        ("merely accepted", accepted, 3, None),
        ("of another bundle", context(digest("earlier evidence"), answer()), 4, "open"),
        ("of another profile", context(evidence, answer(), profile=digest("profile")), 4, "open"),
        ("of another tier", context(evidence, answer(), tier=2), 4, "open"),
        ("of another challenge", context(evidence, answer(challenge="names-alike")), 4, "open"),
    )
    listed = [
        {"name": name, "context": given, "expected": {"exit_code": exit_code, "state": state}}
        for name, given, exit_code, state in cases
    ]
    beside = {"plans.txt": "plans"}
    return {"format": "answers", "bundle": files, "beside": beside, "profile": PROFILE, "cases": listed}
