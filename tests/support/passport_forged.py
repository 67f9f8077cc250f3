"""Vectors of forged passports: signed with a trusted key, and contradicting themselves or their evidence.

Nothing of certkit is used; the bound of the good twin is scipy's, by the formula of the task posterior.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, Final

from scipy.special import betaincinv

from tests.support.passport_parts import (
    SPECIMEN,
    Json,
    accumulated,
    case,
    compact,
    digest,
    limitations,
    passport,
    statement,
    trust,
    window,
)
from tests.support.passport_threats import AGENT, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Change = Callable[[Json], object]

BAD: Final = ("types", "passport.statement", 1)
LATE: Final = ("types", "passport.period-in-future", 1)
TWIN: Final = "bounds over twenty tasks"
GOOD: Final = (4,) * 17 + (3, 3, 2)
"""Successes of twenty tasks in four runs each."""


def limit(successes: tuple[int, ...], runs: int, confidence: float) -> str:
    """The lower limit of the task posterior, of tasks with equally many runs."""
    k, values = len(successes), [good / runs for good in successes]
    mean = (sum(values) + 1) / (k + 2)
    spread = sum((x - mean) ** 2 for x in values) + mean**2 + (1 - mean) ** 2
    size = mean * (1 - mean) * (k + 2) * (k + 3) / spread - 1
    return f"{betaincinv(mean * size, (1 - mean) * size, 1 - confidence):.6f}"


def bounded(successes: tuple[int, ...] = GOOD, runs: int = 4) -> Json:
    """A statement whose row is met by both readings, over tasks with so many successes."""
    document = statement()
    predicate = document["predicate"]
    k, total, good = len(successes), runs * len(successes), sum(successes)
    nominal = {"domain": "banking", "condition": "nominal", "runs": k, "successes": k}
    adversarial = {"domain": "banking", "condition": "adversarial", "runs": total, "successes": good}
    tags = sorted(hashlib.sha256(bytes([number])).digest()[:9] for number in range(k))
    names = [base64.urlsafe_b64encode(tag).decode() for tag in tags]
    columns = [
        {"metric": "success", "condition": cell["condition"], "scale": 1}
        | {"y": cell["successes"], "n": cell["runs"]}
        for cell in (adversarial, nominal)
    ]
    predicate["profile_of_reliability"] |= {
        "tasks": k,
        "cells": [adversarial, nominal],
        "columns": columns,
        "rows": [[name, 0, [y, runs, 1, 1]] for name, y in zip(names, successes, strict=True)],
    }
    predicate["evidence"] |= {"records": total + k, "nominal_runs": k, "fault_runs": total}
    predicate["protocol"]["declared_runs"] = total + k
    predicate["scope"]["fault_mix"] = {"adversarial": total, "nominal": k}
    predicate["known_failure_modes"] = [
        {"domain": "banking", "condition": "adversarial", "failures": total - good, "runs": total}
    ]
    predicate["challenges"] = predicate["challenges"][1 if total >= 30 else 0 :]
    row = predicate["criteria"][0]
    row |= {"value": f"{good / total:.6f}", "n": total, "counts": {"successes": good}}
    row["tiers"]["1"] |= {
        "margin": f"{good / total - 0.6:.6f}",
        "bounded": {
            "status": "met",
            "bound": limit(successes, runs, 0.95),
            "confidence": "0.950000",
            "k": k,
            "rests_on": f"{k} tasks, {total} runs",
        },
    }
    predicate["assessment"]["bounded"] = {"tier": 1}
    return document


def bound(predicate: Json) -> Json:
    found: Json = predicate["criteria"][0]["tiers"]["1"]["bounded"]
    return found


NO_EFFECT: Final = "thirty faults that did not take hold, and said to be"


def graded(predicate: Json, left_out: int, **counts: int) -> None:
    """Add a row of recovery grades: 50 of the 80 runs under faults have one."""
    counted = {"id": "frr", "metric": "frr", "value": "0.900000", "n": 50, "tiers": {}}
    predicate["criteria"].append(
        predicate["criteria"][0] | counted | {"counts": {"left_out": left_out, **counts}}
    )


def itself() -> Iterator[Json]:
    """Yield passports that contradict themselves."""
    yield case(TWIN, passport(compact(bounded())))

    def forged(name: str, change: Change, expected: tuple[str, str | None, int] = BAD) -> Json:
        document = bounded()
        change(document["predicate"])
        return case(name, passport(compact(document)), expected, twin=TWIN)

    yield case("a bound from one task", claiming("0.850000", (76,), 80), BAD, twin=TWIN)
    yield case(
        "a bound from fewer tasks than flawless ones take", claiming("0.650000", (4,) * 4), BAD, twin=TWIN
    )
    yield forged("a bound that is higher than its tasks give", lambda p: bound(p).update(bound="0.900000"))
    yield forged("a bound that rests on more tasks than there are", lambda p: bound(p).update(k=200))
    yield forged("a bound without its number of tasks", lambda p: bound(p).pop("k"))
    yield forged("met by bounds without a bound", lambda p: bound(p).pop("bound"))
    yield forged("met by bounds with another confidence", lambda p: bound(p).update(confidence="0.500000"))
    yield forged("tasks that are repeated under other names", repeated)
    yield forged("tasks and their totals that are repeated under other names", repeated_in_all)
    for name, key in (
        ("its limitations", "limitations"),
        ("its failure modes", "known_failure_modes"),
    ):
        yield forged(f"left out: {name}", lambda p, key=key: p.update({key: []}))  # type: ignore[misc]
    yield forged("left out: what it excludes", lambda p: p["scope"].update(exclusions=[]))
    yield forged("left out: what ends it in operation", lambda p: p["validity"]["retest_triggers"].pop(1))
    yield forged("left out: the challenge of a second attempt", lambda p: p["protocol"].update(attempt=2))
    yield forged(
        "left out: the challenge of an attempt that is not told", lambda p: p["protocol"].pop("attempt")
    )
    document = bounded()
    graded(document["predicate"], 30)
    document["predicate"]["scope"]["exclusions"].insert(
        0, "30 fault runs whose fault did not take hold are not graded"
    )
    challenge = {"code": "faults-left-out", "severity": "warning", "message": "30 of 80 fault runs"}
    document["predicate"]["challenges"].append(challenge)
    yield case(NO_EFFECT, passport(compact(document)))
    for name, counts in (
        ("left out: the faults that did not take hold", {}),
        ("left out: the faults that did not take hold, called harness errors", {"harness_errors": 30}),
        ("left out: the faults that did not take hold, called missing", {"missing": 30}),
    ):
        yield forged(name, lambda p, counts=counts: graded(p, 0, **counts)) | {"twin": NO_EFFECT}  # type: ignore[misc]
    yield forged("an attempt before the first", lambda p: p["protocol"].update(attempt=0))
    yield forged("the lineage of another agent", lambda p: p["agent"].update(lineage="Example/courier 1"))
    yield forged("a domain in which nothing ran", unrun)
    yield forged(
        "a serious challenge called a warning",
        lambda p: p["challenges"].append(
            {"code": "faults-at-the-end", "severity": "warning", "message": "60 of 76 successes"}
        ),
    )
    for name, change in COUNTED.items():
        yield forged(name, change)
    yield forged("a packaged profile with another table", renamed)
    yield forged("a specimen that lost its mark", lambda p: p.update(SPECIMEN | {"name": p["name"]}))
    yield forged("a run after the signing", lambda p: dated(p, "2026-02-01T00:05:01Z"), LATE)
    yield forged("a period without run times that ends after the signing", lambda p: undated(p, "2027"), LATE)
    yield forged("a period that ends on a day of no month", lambda p: undated(p, "2026", "02-30"))
    yield forged("runs of the year 2096", lambda p: dated(p, "2096-01-06T08:00:00Z"), LATE)
    document = statement()
    accumulated(document)
    document["predicate"]["evidence"]["bundles"][1]["dates"]["last_run"] = "2026-02-02T00:00:00Z"
    dated(document["predicate"], "2026-02-02T00:00:00Z")
    yield case("a run after the signing in one of two bundles", passport(compact(document)), LATE, twin=TWIN)


def added(predicate: Json, metric: str, **changes: Any) -> None:
    """Add a row like that of r_op; by bounds no tier is attained then."""
    plain = {key: value for key, value in predicate["criteria"][0].items() if key not in {"tiers", "value"}}
    predicate["criteria"].append(plain | {"id": metric, "metric": metric, "tiers": {}} | changes)


def weakest(predicate: Json) -> None:
    """Add a row of the weakest domain that 13 of 20 nominal runs would cost."""
    table = predicate["profile_of_reliability"]
    table["cells"][1]["successes"] = table["columns"][1]["y"] = 13
    for row in table["rows"][:7]:
        row[2][2] = 0
    tier = {"operator": ">", "threshold": "0.900000", "table": "met"}
    added(predicate, "domain_min", value="0.950000", tiers={"1": tier})
    predicate["assessment"]["bounded"] = {"tier": 0}


def withheld(predicate: Json) -> None:
    """Add a posterior whose bound is said to be unknown, although twenty tasks give one."""
    unknown = {"status": "insufficient", "confidence": "0.950000", "k": 20, "reason": "no bound is known"}
    tier = {"operator": ">", "threshold": "0.950000", "table": "met", "bounded": unknown}
    added(predicate, "posterior", counts={"s": 76}, value="1.000000", tiers={"1": tier})
    predicate["assessment"]["bounded"] = {"tier": 0}


def attacked(predicate: Json, **counts: int) -> None:
    """Add a row of adversarial resistance, without a value where it counts no success."""
    good, runs = counts.get("successes"), {"n": 80} if "successes" in counts else {"state": "unmeasured"}
    added(predicate, "adversarial_resistance", counts=counts, **runs)
    if good is None:
        predicate["criteria"][-1].pop("n")
        predicate["limitations"].append("adversarial_resistance: not fully measured")
    else:
        predicate["criteria"][-1]["value"] = f"{good / 80:.6f}"


def unsaid(predicate: Json) -> None:
    attacked(predicate, runs=80, landed=0, not_landed=0, landed_unknown=80)
    challenge = {"code": "attack-landed-unknown", "severity": "warning", "message": "80 runs"}
    predicate["challenges"].append(challenge)


def held_out(predicate: Json) -> None:
    predicate["protocol"]["declared_runs"] = predicate["evidence"]["records"] = 110


def harness(predicate: Json) -> None:
    graded(predicate, 0, harness_errors=30)
    predicate["evidence"]["harness_errors"] = 30


HIT: Final = {"runs": 80, "landed": 80, "not_landed": 0, "landed_unknown": 0, "attack_known": 80}
COUNTED: Final[dict[str, Change]] = {
    "held-out runs that are in the records and in no count": held_out,
    "faults that did not take hold, called harness errors of runs that succeeded": harness,
    "left out: that nominal runs cost the weakest domain": weakest,
    "a bound of twenty tasks that is called unknown": withheld,
    "left out: that no attack landed, and the counts that tell it": attacked,
    "left out: that no attack landed, called unknown": unsaid,
    "left out: successes whose attack succeeded": lambda p: attacked(
        p, **HIT, attack_succeeded=6, successes=70
    ),
    "more successes, of agent and attacks, than runs": lambda p: attacked(
        p, **HIT, attack_succeeded=6, successes=76
    ),
    "a challenge that is called harmless": lambda p: p["challenges"].append(
        {"code": "judge-correction", "severity": "harmless", "message": "12 of 100 labels"}
    ),
    "a challenge that is called information": lambda p: p["challenges"].append(
        {"code": "judge-correction", "severity": "info", "message": "12 of 100 labels"}
    ),
    "a component that is pinned to nothing": lambda p: p["agent"]["components"][0].pop("digest"),
    "outcomes that are said to follow from traces": lambda p: p["criteria"][0].update(
        evidence={"level": "derived", "derived": 100, "traced": 0}
    ),
    "left out: how many runs were planned": lambda p: p["protocol"].pop("declared_runs"),
}
"""Counts and warnings that do not agree with other counts of the same statement."""


def claiming(limit: str, successes: tuple[int, ...], runs: int = 4) -> Json:
    document = bounded(successes, runs)
    bound(document["predicate"])["bound"] = limit
    return passport(compact(document))


def repeated(predicate: Json) -> None:
    """Count every task twice, and leave the totals as they are."""
    rows = predicate["profile_of_reliability"]["rows"]
    tags = [hashlib.sha256(name.encode()).digest()[:9] for name, _, _ in rows]
    rows += [[base64.urlsafe_b64encode(tag).decode(), *row[1:]] for tag, row in zip(tags, rows, strict=True)]
    rows.sort(key=lambda row: base64.urlsafe_b64decode(row[0]))
    predicate["profile_of_reliability"]["tasks"] = len(rows)
    bound(predicate)["k"] = len(rows)


def repeated_in_all(predicate: Json) -> None:
    """Count every task twice, in the totals of the task table too, and give the bound of so many tasks."""
    repeated(predicate)
    for column in predicate["profile_of_reliability"]["columns"]:
        column |= {"y": 2 * column["y"], "n": 2 * column["n"]}
    bound(predicate)["bound"] = limit(GOOD * 2, 4, 0.95)


def unrun(predicate: Json) -> None:
    """Name a domain without a run, and say all that follows from it."""
    cell = {"domain": "nuclear", "condition": "adversarial", "runs": 0, "successes": 0}
    predicate["profile_of_reliability"]["cells"].append(cell)
    predicate["scope"]["domains"].append("nuclear")
    challenge = {"code": "nominal-only-domain", "severity": "warning", "message": "nuclear"}
    predicate["challenges"].append(challenge)


def renamed(predicate: Json) -> None:
    predicate["assessment"]["profile"]["id"] = "hb-eval-2026"
    predicate["claim"] = predicate["claim"].replace("house-rule", "hb-eval-2026")


def dated(predicate: Json, last: str) -> None:
    predicate["scope"]["dates"]["last_run"] = last


def undated(predicate: Json, year: str, day: str = "01-09") -> None:
    predicate["scope"]["dates"] = {"declared_from": "2026-01-05", "declared_to": f"{year}-{day}"}


def keys() -> Iterator[Json]:
    """Yield passports by a retired key, and by a profile that nobody knows."""
    inside = window(None, "2026-03-15T00:00:00Z")
    twin = "bounds over twenty tasks, by a key that is trusted"
    good = passport(compact(bounded()))
    yield case(twin, good, policy=inside)
    retired = window(None, "2026-02-15T00:00:00Z")
    yield case(
        "dated before its key was retired, with no proof of it",
        good,
        ("unverifiable", None, 4),
        retired,
        twin,
    )
    document = bounded()
    document["predicate"]["validity"]["not_before"] = "2026-02-14T23:58:00Z"
    dated(document["predicate"], "2026-02-15T00:01:00Z")
    outside = ("validity", "passport.key-window", 6)
    late = "a run after its key was retired, within the tolerance of clocks"
    yield case(late, passport(compact(document)), outside, retired, twin)
    yield case(
        "a tier of a profile that nobody knows", good, ("unverifiable", None, 4), inside, twin, require_tier=1
    )
    document = bounded()
    document["predicate"]["issuer"]["name"] = "Other Lab"
    refused = ("policy", "passport.policy", 8)
    named = "the name of another issuer, which the passport gives itself"
    yield case(named, passport(compact(document)), refused, inside, twin, issuer="Other Lab")
    listed = "a tier of a profile that the policy lists"
    yield case(listed, good, policy=trust(profiles=[digest("profile")]), require_tier=1)


def evidence() -> Iterator[Json]:
    """Yield passports that repeat something else than the manifest of their bundle."""
    twin, asked = "what the manifest declares", trust(require=["evidence"])
    wrong = ("evidence", "passport.manifest-differs", 7)

    def made(change: Change = lambda _: None, **protocol: Any) -> tuple[Json, dict[str, str]]:
        files, own = stored("a", **protocol)
        document = statement()
        predicate = document["predicate"]
        predicate["agent"]["digest"] = digest(compact(AGENT).decode())
        predicate["evidence"]["digest"] = own
        change(predicate)
        for subject, named in zip(
            document["subject"], (predicate["agent"], predicate["evidence"]), strict=True
        ):
            subject["digest"]["sha256"] = named["digest"].removeprefix("sha256:")
        return passport(compact(document)), files

    good, files = made()
    yield case(twin, good, policy=asked, bundle=files)
    changes: dict[str, tuple[Change, dict[str, object]]] = {
        "simulated evidence that is called measured": (lambda _: None, {"origin": "simulated"}),
        "a second attempt that is called the first": (lambda _: None, {"attempt": 2}),
        "a dependent evaluator who is called independent": (
            lambda _: None,
            {"evaluator": {"name": "Example Lab", "relation": "same"}},
        ),
        "another method than the one declared": (lambda _: None, {"methodology": "other"}),
        "another period than the one declared": (
            lambda _: None,
            {"period": {"from": "2025-01-01", "to": "2025-01-31"}},
        ),
        "a component that is left out": (
            lambda p: p.update(
                agent=p["agent"] | {"components": []},
                limitations=[*limitations(), "the agent's components are not listed"],
            ),
            {},
        ),
    }
    for name, (change, protocol) in changes.items():
        file, files = made(change, **protocol)
        yield case(name, file, wrong, asked, twin, bundle=files)
