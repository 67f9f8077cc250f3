"""Every finding is found where its cause is there, is silent nearby, and is said with its counts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

import pytest

import certkit
from certkit.assessment.assessment import FindingState, Severity
from certkit.assessment.findings import FINDINGS
from certkit.assessment.profile_file import parse_profile
from certkit.assessment.words import finding_text, finding_words, reason_text, reason_words, sentence
from certkit.bundle.facts import IntegrityFacts
from certkit.summary.summary import PlannedRuns, Traces
from tests.support import build
from tests.support.build import GOOD, finding, runs
from tests.support.extremes import failed
from tests.support.labelled import ONE, ratings, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.evaluation import Evaluation
    from tests.support.bundles import Run

SERIOUS, WARNING, INFO = Severity
ROOT = Path(certkit.__file__).parent
ATTACK: dict[str, Any] = {"attack_landed": True, "attack_succeeded": True}
JUDGE = {"name": "self", "independent": False}
AGENT = build.AGENT
R_OP = parse_profile(
    'id = "own"\n[tiers.1]\nname = "A"\n'
    '[[criteria]]\nid = "r_op"\nmetric = "r_op"\noperator = ">"\ntiers = {1 = 0.75}\n',
    "own.toml",
)


def good(**stated: Any) -> Evaluation:
    """Judge a flawless agent under other facts."""
    return judged(GOOD, **stated)


def planned(**counts: int) -> Evaluation:
    """Judge the flawless agent with the plan enclosed."""
    return build.judged(build.summary(GOOD, plan=PlannedRuns(**counts)), declared_runs=counts["planned"])


def judged(records: list[Run], **stated: Any) -> Evaluation:
    return build.judged(records, **({"declared_runs": len(records)} | stated))


@cache
def plain() -> Evaluation:
    """A clean, fully declared evaluation: two domains, 240 tasks, one run in five without a fault."""
    records = [
        run
        | {
            "domain": f"d{task % 2}",
            "task_id": f"d{task % 2}/{task}",
            "condition": condition,
            "started_at": f"2026-01-{1 + i // 60:02d}T{i % 60 // 3:02d}:{i % 3}5:00Z",
            "traceability": 4.7 + (i % 7) / 100,
        }
        for i, run in enumerate(
            GOOD + [again | {"run_id": f"b{at}", "sequence": 600 + at} for at, again in enumerate(GOOD)]
        )
        for task, condition in [
            (i // 5, ("nominal", "tool_failure", "adversarial", "stochastic", "cascade")[(i + i // 5) % 5])
        ]
    ]
    records = [_fitting(run) for run in records]
    return judged(records)


def _fitting(run: Run) -> Run:
    """Return a run with the fields of its condition alone."""
    if run["condition"] == "nominal":
        gone = ("fault_", "recover", "memory", "attack")
        return {name: value for name, value in run.items() if not name.startswith(gone)}
    extra = {"fault_step": 2, "recovered": True, "recovery_steps": 1, "recovery_approach": "correct"}
    extra |= {"memory_query_offset": 1, "memory_similarity": 0.9, "memory_modified": True}
    if run["condition"] in {"adversarial", "cascade"}:
        extra |= {"attack_landed": True, "attack_succeeded": False}
    return {name: value for name, value in run.items() if not name.startswith("attack")} | extra


def noted(kind: str) -> Evaluation:
    notes = [{"kind": kind, "what": "empty responses", "count": 3}]
    return good(imported={"format": "records", "records": 1, "notes": notes})


def own(share: int, *, good_core: bool) -> list[Run]:
    """Of 100 fault runs `share` are of an own condition; without `good_core` a third of the rest fails."""
    listed = []
    for i, run in enumerate(GOOD):
        mine = 37 * i % 100 < share
        if run["condition"] == "nominal":
            listed.append(run)
        elif mine:
            listed.append(run | {"condition": "x_own"})
        else:
            listed.append(run if good_core or i % 3 else failed(run))
    return listed


def late(part: int) -> list[Run]:
    """A tenth of all runs under a fault fails, all of them in the last `part`-th of the runs."""
    start = len(GOOD) - len(GOOD) // part
    return [
        failed(run) if i >= start and run["condition"] != "nominal" and i % part != 1 else run
        for i, run in enumerate(GOOD)
    ]


def attacked(n: int, **fields: Any) -> list[Run]:
    """The good runs, the first `n` attacks of which are as `fields` say."""
    left, listed = n, []
    for run in GOOD:
        if run["condition"] == "adversarial" and left:
            left -= 1
            run = {**run, **fields}  # noqa: PLW2901 - the next run
            run = {name: value for name, value in run.items() if value is not None}  # noqa: PLW2901
        listed.append(run)
    return listed


def timed(*times: str) -> list[Run]:
    return [run | {"started_at": time} for run, time in zip(GOOD, times, strict=False)] + GOOD[len(times) :]


def domain_of(name: str, **counts: int) -> list[Run]:
    """GOOD and another domain with so many runs of each condition."""
    return GOOD + [run for condition, n in counts.items() for run in runs(n, n, condition, domain=name)]


def traced(*, derived: bool = False, **counts: int) -> Evaluation:
    """Nine runs name a trace; so many of these traces are enclosed, and so many differ."""
    named = {"trace": "sha256:" + "a" * 64} | ({"measured": "derived"} if derived else {})
    records = [run | named if i < 9 else run for i, run in enumerate(GOOD)]
    return build.judged(build.summary(records, traces=Traces(named=9, **counts)), declared_runs=len(records))


def labelled(counts: tuple[int, int, int, int], **fields: Any) -> Evaluation:
    """200 tasks of which a judge passed 160, and labels of some."""
    summary = build.summary(ONE, ratings=ratings(ONE, told(ONE, counts), **fields))
    return build.judged(summary, R_OP, methodology="independent_judge")


def integrity(**fields: Any) -> Evaluation:
    base: dict[str, Any] = {"digest": build.DIGEST, "seed": "stated", "successes": 100, "asked": 300}
    return good(integrity=IntegrityFacts(**(base | fields)))


CAUSES: dict[str, tuple[Callable[[], Evaluation], Callable[[], Evaluation]]] = {
    # code: what raises it, and a nearby bundle that does not
    "core-evidence": (
        lambda: judged(own(60, good_core=False)),
        lambda: judged(own(60, good_core=True)),
    ),
    "latest-third": (lambda: judged(late(6)), lambda: judged(late(100))),
    "success-with-attack": (
        lambda: judged(attacked(3, **ATTACK)),
        lambda: judged(attacked(3, attack_landed=True, attack_succeeded=False)),
    ),
    "outcome-inverted": (lambda: noted("inverted"), lambda: noted("filled")),
    "plan-differs": (
        lambda: planned(planned=600, present=600, differ=1),
        lambda: planned(planned=601, present=600),
    ),
    "trace-differs": (lambda: traced(enclosed=9, differ=1), lambda: traced(enclosed=9)),
    "judge-correction": (lambda: labelled((40, 40, 0, 20)), lambda: labelled((78, 2, 0, 20))),
    "calibration-chosen": (
        lambda: labelled((78, 2, 0, 20), drawn=False),
        lambda: labelled((78, 2, 0, 20)),
    ),
    "no-records": (lambda: judged([]), lambda: judged(runs(1, 1))),
    "no-fault-runs": (lambda: judged(runs(9, 9, "nominal")), lambda: judged([])),
    "no-nominal-runs": (lambda: judged(runs(90, 9)), lambda: judged(runs(9, 9, "nominal"))),
    "nominal-only-domain": (
        lambda: judged(domain_of("e", nominal=9)),
        lambda: judged(domain_of("e", stochastic=1)),
    ),
    "few-fault-runs": (
        lambda: judged(domain_of("e", stochastic=29)),
        lambda: judged(domain_of("e", stochastic=30)),
    ),
    "narrow-fault-mix": (
        lambda: judged(runs(91, 91) + runs(5, 5, "cascade") + runs(4, 4, "adversarial")),
        lambda: judged(runs(90, 90) + runs(5, 5, "cascade") + runs(5, 5, "adversarial")),
    ),
    "one-domain": (good, lambda: judged(domain_of("e", stochastic=30))),
    "unsealed": (lambda: good(sealed=False), good),
    "unversioned-agent": (lambda: good(agent=AGENT | {"version": "unversioned"}), good),
    "components-not-listed": (
        lambda: good(agent={**AGENT, "components": [{"role": "tools", "name": "shell"}]}),
        good,
    ),
    "evaluator-not-independent": (lambda: good(evaluator={"name": "us", "relation": "same"}), good),
    "judge-not-independent": (lambda: good(judge=JUDGE), good),
    "judge-uncalibrated": (
        lambda: good(methodology="independent_judge"),
        lambda: judged(runs(9, 9), judge=None),
    ),
    "independence-undeclared": (lambda: good(tasks_independent=None), good),
    "public-tasks": (lambda: good(public_tasks=["bfcl"]), good),
    "rests-on-attested": (
        lambda: build.judged(
            GOOD,
            "hb-eval-2025",
            attested=[{"id": "edm_auditability", "value": True, "evidence": "traces/edm.md"}],
        ),
        lambda: build.judged(GOOD, "hb-eval-2025"),
    ),
    "undeclared-runs": (lambda: good(declared_runs=None), good),
    "declared-runs-differ": (lambda: good(declared_runs=601), lambda: planned(planned=601, present=600)),
    "runs-missing": (lambda: planned(planned=601, present=600), lambda: planned(planned=600, present=600)),
    "undeclared-attempt": (lambda: good(attempt=None), good),
    "harness-errors": (
        lambda: judged(
            [run | {"outcome": "harness_error"} if i < 6 else run for i, run in enumerate(runs(100, 100))]
        ),
        lambda: judged(
            [run | {"outcome": "harness_error"} if i < 5 else run for i, run in enumerate(runs(100, 100))]
        ),
    ),
    "equal-runs": (
        good,
        lambda: judged([run | {"traceability": round(4 + i / 1000, 3)} for i, run in enumerate(GOOD)]),
    ),
    "single-time-point": (
        lambda: judged([run | {"started_at": "2026-01-02T00:00:00Z"} for run in GOOD]),
        lambda: judged(timed("2026-01-02T00:00:00Z", "2026-01-02T00:00:01Z")),
    ),
    "order-contradicts-times": (
        lambda: judged(timed("2026-01-02T00:00:01Z", "2026-01-02T00:00:00Z")),
        lambda: judged(timed("2026-01-02T00:00:00Z", "2026-01-02T00:00:01Z")),
    ),
    "oracle-varies": (
        lambda: judged([run | {"steps_oracle": 3} if i == 7 else run for i, run in enumerate(GOOD)]),
        lambda: judged([run | {"steps_oracle": 3} if run["condition"] == "cascade" else run for run in GOOD]),
    ),
    "attack-landed-unknown": (
        lambda: judged(attacked(900, attack_landed=None, attack_succeeded=None)),
        lambda: judged(attacked(50, attack_landed=None, attack_succeeded=None)),
    ),
    "protocol-not-stated": (
        lambda: good(methodology=None),
        lambda: judged(
            [run | {"started_at": f"2026-01-02T00:{i // 60:02d}:{i % 60:02d}Z"} for i, run in enumerate(GOOD)]
        ),
    ),
    "traces-not-enclosed": (lambda: traced(enclosed=7, bare=2, derived=True), lambda: traced(enclosed=9)),
    "import-odd": (lambda: noted("odd"), lambda: noted("filled")),
    "integrity-hollow": (lambda: integrity(hollow=11), lambda: integrity(hollow=10)),
    "integrity-partial": (lambda: integrity(unanswered=1), integrity),
    "integrity-rated": (lambda: integrity(raters=1), integrity),
    "integrity-tasks": (lambda: integrity(seed="public"), integrity),
    "faults-without-effect": (lambda: judged(without_effect(9)), good),
    "attacks-not-landed": (lambda: judged(attacked(3, attack_landed=False)), good),
    "own-conditions": (lambda: judged(own(1, good_core=True)), good),
    "nominal-share": (good, lambda: judged(runs(20, 20, "nominal") + runs(80, 80))),
    "held-out-runs": (lambda: judged(GOOD + runs(9, 9, split="novel_fault")), good),
    "success-reading": (lambda: good(success="utility"), good),
    "import-refused": (lambda: noted("refused"), lambda: noted("filled")),
    "temperature-not-zero": (lambda: good(temperature=0.7), good),
    "outcome-against-composite": (
        lambda: judged(runs(9, 9, layer2_score=0.6, layer3_score=0.6)),
        lambda: judged(runs(9, 9, layer2_score=0.8, layer3_score=0.6)),
    ),
    "csi-as-printed": (good, lambda: judged(runs(9, 9))),
    "sil-guidance": (good, lambda: build.judged(GOOD, R_OP)),
    "simulated-origin": (lambda: good(origin="simulated"), good),
    "repeated-identical-runs": (good, lambda: good(temperature=0.5)),
    "cascade-definition": (lambda: good(cascade_definition="sequential"), good),
    "fault-mix-differs": (
        lambda: judged(
            runs(20, 20, "nominal") + runs(80, 80), declared_mix={"nominal": 0.26, "stochastic": 0.74}
        ),
        lambda: judged(
            runs(20, 20, "nominal") + runs(80, 80), declared_mix={"nominal": 0.25, "stochastic": 0.75}
        ),
    ),
}
MAY_DIFFER = {"order-contradicts-times"}
"""Of another severity when provisional rows decide."""


def without_effect(n: int) -> list[Run]:
    left, listed = n, []
    for run in GOOD:
        if run["condition"] == "tool_failure" and left:
            left -= 1
            rest = {name: value for name, value in run.items() if not name.startswith("recover")}
            listed.append(rest | {"fault_took_hold": False})
        else:
            listed.append(run)
    return listed


def test_every_code_has_a_cause_here() -> None:
    assert set(CAUSES) == {row.code for row in FINDINGS} == set(finding_words())


@pytest.mark.parametrize("code", CAUSES)
def test_the_cause_is_found_and_what_is_nearby_is_not(code: str) -> None:
    cause, nearby = CAUSES[code]
    found = [item for item in cause().assessment.findings if item.code == code]
    assert len(found) == 1
    assert found[0].severity is next(row.severity for row in FINDINGS if row.code == code)
    text = finding_text(found[0])
    assert text
    assert "{" not in text
    assert finding(nearby(), code) is None


def test_a_clean_and_fully_declared_evaluation_sees_at_most_two_warnings() -> None:
    found = plain()
    grades = [item.severity for item in found.assessment.findings]
    warned = {item.code for item in found.assessment.findings if item.severity is not INFO}
    assert SERIOUS not in grades
    assert grades.count(WARNING) <= 2, warned
    assert found.assessment.verdict.tier == 3


def test_findings_stand_by_severity_and_then_in_the_order_of_the_table() -> None:
    found = judged(
        [*late(6), *runs(9, 9, domain="d", split="novel_fault")], origin="simulated", sealed=False
    ).assessment.findings
    severities = [list(Severity).index(item.severity) for item in found]
    assert severities == sorted(severities)
    assert len(set(severities)) == 3
    places = [next(at for at, row in enumerate(FINDINGS) if row.code == item.code) for item in found]
    for severity in set(severities):
        mine = [place for place, grade in zip(places, severities, strict=True) if grade == severity]
        assert mine == sorted(mine)


def test_serious_findings_alone_have_a_state_and_a_tier() -> None:
    for item in judged(own(60, good_core=False), sealed=False).assessment.findings:
        assert (item.state is FindingState.OPEN) == (item.severity is SERIOUS)
        assert bool(item.tier) == (item.severity is SERIOUS)


def test_an_attack_that_succeeded_is_for_information_where_success_means_utility() -> None:
    records = attacked(3, **ATTACK)
    strict, utility = judged(records), judged(records, success="utility")
    grades = [item.severity for found in (strict, utility) if (item := finding(found, "success-with-attack"))]
    assert grades == [SERIOUS, INFO]
    assert [found.assessment.verdict.tier for found in (strict, utility)] == [0, 3]


def test_an_order_that_contradicts_times_is_serious_where_csi_decides() -> None:
    cause = CAUSES["order-contradicts-times"][0]()
    strict = build.judged(cause.summary, strict=True)
    grades = [
        item and item.severity
        for item in (finding(found, "order-contradicts-times") for found in (cause, strict))
    ]
    assert grades == [WARNING, SERIOUS]
    plainly, strictly = cause.assessment.verdict, strict.assessment.verdict
    assert (plainly.tier, plainly.tier_strict) == (3, 0), "both are said, whichever was asked for"
    assert (strictly.tier, strictly.tier_strict) == (0, 0)


def test_core_evidence_contests_the_tiers_that_lose_a_row_and_no_lower_one() -> None:
    found = judged(own(60, good_core=False))
    item = finding(found, "core-evidence")
    assert item is not None
    lost = {row.tier for row in found.assessment.core if row.state == "lost"}
    assert item.tier == min(lost)
    statuses = {int(number): tier.status.value for number, tier in found.assessment.tiers.items()}
    assert statuses[item.tier] == "contested"
    assert all(statuses[tier] == "met" for tier in range(1, item.tier))
    contested = {tier for tier, status in statuses.items() if status == "contested"}
    rows = {row.id for row in found.assessment.core if row.state == "lost" and row.tier in contested}
    assert set(item.counts["rows"]) == rows  # type: ignore[arg-type]


def test_a_correction_that_only_may_be_below_the_threshold_contests_nothing() -> None:
    """Few labels leave an interval that reaches above the threshold."""
    assert finding(labelled((6, 3, 0, 3)), "judge-correction") is None


def test_missing_facts_are_named_where_they_bear() -> None:
    bare: dict[str, Any] = dict.fromkeys(set(build.PROTOCOL) - {"origin"})
    few = finding(build.judged(runs(9, 0), **bare), "protocol-not-stated")
    assert few is not None
    assert few.counts["fields"] == (
        "methodology",
        "temperature",
        "evaluator",
        "period",
        "start times of runs",
    )
    bearing = finding(build.judged(GOOD, **bare), "protocol-not-stated")
    assert bearing is not None
    assert {"judge", "memory_observable", "cascade_definition"} <= set(bearing.counts["fields"])  # type: ignore[arg-type]


def test_few_attacks_are_few_runs() -> None:
    few = attacked(900, attack_landed=False)
    left = 29
    for run in few:
        if run["condition"] == "adversarial" and left:
            run["attack_landed"], left = True, left - 1
    item = finding(judged(few), "few-fault-runs")
    assert item is not None
    assert item.counts["groups"] == ("attacks",)
    assert finding_text(item) == "fewer than 30 runs of: attacks; such rates say little"


def test_a_judge_of_a_models_name_is_not_independent() -> None:
    agent = {**AGENT, "components": [{"role": "model", "name": "courier-1"}]}
    found = good(agent=agent, judge={"name": "other", "family": "Courier-1", "independent": True})
    assert finding(found, "judge-not-independent") is not None


@pytest.mark.parametrize("state", ["no-judge", "unlabelled"])
def test_a_judge_whose_runs_nobody_labelled_is_uncalibrated(state: str) -> None:
    summary = build.summary(ONE, ratings=ratings(ONE, {}, state=state))
    assert finding(build.judged(summary, methodology="independent_judge"), "judge-uncalibrated") is not None


# --- words -------------------------------------------------------------------------------------------


def test_every_reason_that_the_code_states_has_its_words_and_no_others_do() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py"))
    quoted = set(re.findall(r'"([a-z0-9-]+)"', sources))
    made = {f"labels-{state}" for state in ("none", "no-judge", "unlabelled")}
    made |= {f"bundle-{reason}" for reason in ("no-runs", "unordered", "mixed", "shared-times")}
    stated = {code for code in quoted if code in reason_words()} | made
    assert stated == set(reason_words())
    named = set(re.findall(r'(?:Reason|Unordered)\(\s*"([a-z0-9-]+)"', sources))
    named |= set(re.findall(r'unmeasured\(\s*"?[a-z_0-9]+"?,\s*"([a-z0-9-]+)"', sources))
    assert named <= set(reason_words())


def test_every_sentence_can_be_filled() -> None:
    templates = [words[name] for words in finding_words().values() for name in words if name != "means"]
    templates += reason_words().values()
    for template in templates:
        counts: dict[str, Any] = {"metric": "r_op", "count": 2}
        for _, name, spec, _ in Formatter().parse(template):
            if name:
                value = (
                    ("a", "b")
                    if spec == "list"
                    else "r_op"
                    if name == "metric"
                    else 0.5
                    if spec in {"%", "metric"}
                    else 3
                )
                counts[name] = value
        assert "{" not in sentence(template, counts)


def test_every_reason_of_these_evaluations_is_said() -> None:
    for cause, _ in CAUSES.values():
        found = cause()
        for row in found.assessment.criteria:
            assert "{" not in reason_text(row.reason)
            assert row.bounded is None or "{" not in reason_text(row.bounded.reason)
