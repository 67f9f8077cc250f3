"""What a statement cannot say of its own rows, runs and bundles, whoever signed it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import certkit
from certkit.assessment.findings.findings import GRADED
from certkit.ground import canonical
from certkit.ground.errors import NegativeError
from certkit.ground.wording import UNDECLARED
from certkit.passport import derived, payload
from certkit.passport.statement import Predicate, Statement
from tests.support import passport_parts as maker
from tests.support.agreeing import agree
from tests.support.making import issued, of_bundle, sealed_bundle

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.passport.opening import Passport


def refused(document: dict[str, Any]) -> str:
    with pytest.raises(NegativeError) as caught:
        payload.read(canonical.canonical(document))
    assert caught.value.code == "passport.statement"
    return caught.value.message


def predicate_of(made: Passport) -> tuple[dict[str, Any], dict[str, Any]]:
    document: dict[str, Any] = canonical.loads(made.payload)
    return document, document["predicate"]


def row(predicate: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in predicate["criteria"] if one["id"] == "r_op")
    return found


def by_bounds(predicate: dict[str, Any]) -> None:
    """Let a row that its value does not meet be met by its bound."""
    row(predicate)["tiers"]["2"] = {
        "operator": ">",
        "threshold": "0.800000",
        "table": "not_met",
        "bounded": {"status": "met", "bound": "0.990000", "confidence": "0.950000"},
    }


def loosened(component: dict[str, Any]) -> None:
    component.pop("digest")
    component["pinned"] = False


def held_out(predicate: dict[str, Any]) -> None:
    predicate["protocol"]["declared_runs"] = 21
    predicate["evidence"].update(records=21, novel_fault_runs=1)
    predicate["scope"]["exclusions"].insert(0, "1 runs under held-out faults are not in the criteria")


def unversioned(predicate: dict[str, Any]) -> None:
    predicate["agent"]["version"] = "unversioned"
    predicate["name"] = predicate["name"].replace("1.0", "unversioned")


MODE = {"domain": "banking", "condition": "adversarial", "failures": 4, "runs": 16}

LEFT_OUT: dict[str, Callable[[dict[str, Any]], object]] = {
    "few-fault-runs": lambda p: p["challenges"][0].update(severity="info"),
    "narrow-fault-mix": lambda p: p["challenges"].pop(),
    "undeclared-independence": lambda p: row(p)["tiers"]["1"].update(
        bounded={"status": "insufficient", "confidence": "0.950000", "reason": UNDECLARED}
    ),
    "undeclared-attempt": lambda p: p["protocol"].pop("attempt"),
    "repeated-attempt": lambda p: p["protocol"].update(attempt=2),
    "temperature-not-zero": lambda p: p["protocol"].update(temperature="0.700000"),
    "protocol-not-stated": lambda p: p["protocol"].pop("methodology"),
    "declared-runs-differ": lambda p: p["protocol"].update(declared_runs=21),
    "evaluator-not-independent": lambda p: p["protocol"]["evaluator"].update(relation="same"),
    "judge-not-independent": lambda p: p["protocol"].update(
        judge={"name": p["agent"]["components"][0]["name"].upper(), "independent": True}
    ),
    "unpinned-components": lambda p: loosened(p["agent"]["components"][0]),
    "undeclared-runs": lambda p: p["protocol"].pop("declared_runs"),
    "unversioned-agent": unversioned,
    "held-out-runs": held_out,
}
CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a level that its traces do not give": (
        lambda p: row(p).update(evidence={"level": "traced", "derived": 0, "traced": 19}),
        "criteria r_op evidence level: claimed traced, the rest gives asserted",
    ),
    "more traces than records": (
        lambda p: row(p).update(evidence={"level": "traced", "derived": 0, "traced": 21}),
        "criterion r_op rests on more traces than records",
    ),
    "met by a bound and not by the value": (
        by_bounds,
        "criterion r_op at Tier 2 cannot stand so with its value and bound",
    ),
    "runs before all time": (
        lambda p: p["scope"]["dates"].update(first_run="0001-01-01T00:00:00+14:00"),
        "0001-01-01 00:00:00+14:00 is no time of a run or of a validity",
    ),
    "a first run after the last": (
        lambda p: p["scope"]["dates"].update(first_run="2099-01-01T00:00:00Z"),
        "the times of the first and last run do not agree",
    ),
    "a first run without a last": (
        lambda p: p["scope"].update(dates={"first_run": "2099-01-01T00:00:00Z"}),
        "the times of the first and last run do not agree",
    ),
    "a declared day that no month has": (
        lambda p: p["scope"].update(dates={"declared_from": "2026-01-01", "declared_to": "2026-02-30"}),
        '"2026-02-30" is no date, or time with offset, of the calendar',
    ),
    "a declared hour that no day has": (
        lambda p: p["scope"]["dates"].update(declared_to="2026-01-02T25:00:00Z"),
        '"2026-01-02T25:00:00Z" is no date, or time with offset, of the calendar',
    ),
    "a declared end before the beginning": (
        lambda p: p["scope"]["dates"].update(declared_from="2026-01-02", declared_to="2026-01-01"),
        "the period ends before it begins: 2026-01-02 to 2026-01-01",
    ),
    "an end after all time": (
        lambda p: p["validity"].update(not_after="9999-12-31T23:59:59-01:00"),
        "9999-12-31 23:59:59-01:00 is no time of a run or of a validity",
    ),
    "more runs than records": (
        lambda p: p["evidence"].update(records=19),
        "its evidence has 19 records, and 20 runs",
    ),
    "more held-out runs than records": (
        lambda p: p["evidence"].update(novel_fault_runs=1),
        "its evidence has 20 records, and 21 runs",
    ),
    "a domain twice": (
        lambda p: p["scope"].update(domains=["banking", "banking"]),
        "scope domains: claimed 2 rows, the rest gives 1",
    ),
    "runs counted twice": (
        lambda p: p["profile_of_reliability"]["cells"].append(
            {"domain": "banking", "condition": "nominal", "runs": 0, "successes": 0}
        ),
        "a cell, a column or a domain of its task table occurs twice",
    ),
    "more failures than runs": (
        lambda p: p["profile_of_reliability"]["cells"][0].update(successes=17),
        "a cell of its task table has more successes than runs",
    ),
    "a failure mode left out": (
        lambda p: p.update(known_failure_modes=[]),
        "known_failure_modes: claimed 0 rows, the rest gives 1",
    ),
    "fewer failures than there were": (
        lambda p: p.update(known_failure_modes=[MODE | {"failures": 3}]),
        "known_failure_modes banking/adversarial failures: claimed 3, the rest gives 4",
    ),
    "failures where nothing ran": (
        lambda p: p["known_failure_modes"].append(MODE | {"domain": "moon"}),
        "known_failure_modes: claimed 2 rows, the rest gives 1",
    ),
    "a failure mode twice": (
        lambda p: p["known_failure_modes"].append(MODE),
        "known_failure_modes: claimed 2 rows, the rest gives 1",
    ),
    "a limitation left out": (
        lambda p: p["limitations"].pop(),
        "limitations: claimed 1 rows, the rest gives 2",
    ),
    "an exclusion left out": (
        lambda p: p["scope"].update(exclusions=[]),
        "scope exclusions: claimed 0 rows, the rest gives 1",
    ),
    "nothing that ends it in operation": (
        lambda p: p["validity"].update(retest_triggers=[{"event": "component_change"}]),
        "validity retest_triggers: claimed 1 rows, the rest gives 3",
    ),
    **{
        f"a challenge left out: {code}": (
            change,
            f"the warning challenge {code} is left out",
        )
        for code, change in LEFT_OUT.items()
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_contradicts_itself_is_refused(name: str) -> None:
    change, words = CHANGES[name]
    document = maker.statement()
    payload.read(canonical.canonical(document))
    change(document["predicate"])
    assert refused(document).startswith(words)


@pytest.mark.parametrize(
    ("left_out", "severity"), [(9, "serious"), (8, "warning"), (2, "warning"), (1, "info")]
)
def test_faults_without_effect_are_among_the_challenges(left_out: int, severity: str) -> None:
    document = maker.statement()
    predicate = document["predicate"]
    graded = {"id": "frr", "metric": "frr", "n": 16 - left_out, "counts": {"left_out": left_out}}
    predicate["criteria"].append(row(predicate) | graded)
    predicate["challenges"].append({"code": "faults-left-out", "severity": severity, "message": "no effect"})
    agree(document)
    payload.read(canonical.canonical(document))
    assert predicate["assessment"]["status"] == ("contested" if severity == "serious" else "met")
    predicate["challenges"].pop()
    predicate["assessment"]["status"] = "met"
    predicate["claim"] = predicate["claim"].split(";")[0]
    assert refused(document) == f"the {severity} challenge faults-left-out is left out"


def pace(records: int, to: str) -> Callable[[dict[str, Any]], None]:
    def change(predicate: dict[str, Any]) -> None:
        predicate["scope"]["dates"] |= {"declared_from": "2026-01-01T00:00:00Z", "declared_to": to}
        predicate["evidence"]["records"] = records

    return change


def attacked(landed: int, missed: int, **changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(predicate: dict[str, Any]) -> None:
        counts = {"landed": landed, "not_landed": missed}
        row = next(part for part in predicate["criteria"] if part["metric"] == "r_op")
        predicate["criteria"].append(
            row | {"id": "ar", "metric": "adversarial_resistance", "counts": counts} | changes
        )

    return change


def harness(errors: int) -> Callable[[dict[str, Any]], None]:
    return lambda predicate: predicate["evidence"].update(harness_errors=errors)


def cascades(definition: str) -> Callable[[dict[str, Any]], None]:
    def change(predicate: dict[str, Any]) -> None:
        predicate["protocol"]["cascade_definition"] = definition
        predicate["scope"]["fault_mix"] = {"cascade": 16}
        predicate["criteria"].append(row(predicate) | {"id": "cp", "metric": "cascade_penalty"})

    return change


def in_a_domain(successes: int) -> Callable[[dict[str, Any]], None]:
    def change(predicate: dict[str, Any]) -> None:
        nominal(successes, ">=")(predicate)
        predicate["profile_of_reliability"]["cells"].append(
            {"domain": "shop", "condition": "adversarial", "runs": 80, "successes": 80}
        )
        predicate["criteria"].append(row(predicate) | {"id": "least", "metric": "domain_min"})

    return change


def nominal(successes: int, operator: str = ">") -> Callable[[dict[str, Any]], None]:
    def change(predicate: dict[str, Any]) -> None:
        cells = predicate["profile_of_reliability"]["cells"]
        next(cell for cell in cells if cell["condition"] == "nominal").update(successes=successes)
        row = next(part for part in predicate["criteria"] if part["metric"] == "r_op")
        row["tiers"]["1"] |= {"threshold": "0.700000", "operator": operator}

    return change


@pytest.mark.parametrize(
    ("change", "code", "severity"),
    [
        (pace(51, "2026-01-01T00:00:01Z"), "implausible-pace", "serious"),
        (pace(50, "2026-01-01T00:00:01Z"), "implausible-pace", None),
        (pace(51, "2026-01-01"), "implausible-pace", None),
        (attacked(7, 9), "attacks-left-out", "serious"),
        (attacked(14, 2), "attacks-left-out", "warning"),
        (attacked(15, 1), "attacks-left-out", None),
        (attacked(0, 16), "attacks-left-out", None),
        (attacked(0, 16), "no-attack-landed", "serious"),
        (attacked(0, 0), "no-attack-landed", None),
        (attacked(0, 0, n=None), "no-attack-landed", "serious"),
        (harness(2), "harness-errors", "warning"),
        (harness(1), "harness-errors", None),
        (cascades("in turn"), "cascade-definition", "warning"),
        (cascades("simultaneous"), "cascade-definition", None),
        (in_a_domain(1), "failures-elsewhere", "serious"),
        (in_a_domain(2), "failures-elsewhere", None),
        (nominal(2), "failures-elsewhere", "serious"),
        (nominal(2, ">="), "failures-elsewhere", None),
        (nominal(3), "failures-elsewhere", None),
        (nominal(1, ">="), "failures-elsewhere", "serious"),
    ],
)
def test_counts_give_serious_challenges(
    change: Callable[[dict[str, Any]], object], code: str, severity: str | None
) -> None:
    predicate = maker.statement()["predicate"]
    change(predicate)
    assert derived.challenges(msgspec.convert(predicate, Predicate)).get(code) == severity


@pytest.mark.parametrize(("errors", "judged"), [(10, True), (11, False)])
def test_frr_is_judged_up_to_one_harness_error_in_a_hundred(errors: int, *, judged: bool) -> None:
    predicate = maker.statement()["predicate"]
    counts = {"left_out": 0, "harness_errors": errors}
    predicate["criteria"].append(row(predicate) | {"id": "frr", "metric": "frr", "n": 989, "counts": counts})
    predicate["evidence"].update(fault_runs=1000, records=1004, harness_errors=errors)
    document = msgspec.convert(maker.statement() | {"predicate": predicate}, Statement)
    told = list(payload.contradictions(document))
    assert ("criterion frr is judged with too many harness errors" not in told) == judged


@pytest.mark.parametrize("names", [["\u200b"], ["A. Person", " . "], []])
def test_an_answer_is_by_somebody_with_a_name(names: list[str]) -> None:
    document, predicate = predicate_of(issued())
    predicate["challenges"].append(
        {
            "code": "names-alike",
            "severity": "serious",
            "message": "x",
            "state": "answered",
            "answered_by": names,
        }
    )
    predicate["assessment"]["context"] = "sha256:" + "0" * 64
    told = list(payload.contradictions(msgspec.convert(document, Statement)))
    assert "a challenge is answered by nobody, or in no context" in told
    predicate["challenges"][-1]["answered_by"] = ["A. Person"]
    told = list(payload.contradictions(msgspec.convert(document, Statement)))
    assert "a challenge is answered by nobody, or in no context" not in told


def test_tasks_that_contradict_a_posterior_are_among_the_challenges() -> None:
    _, predicate = predicate_of(issued())
    assert "repeats-as-independent" not in derived.challenges(msgspec.convert(predicate, Predicate))
    posterior = next(part for part in predicate["criteria"] if part["metric"] == "posterior")
    posterior["tiers"]["3"]["bounded"]["status"] = "not_met"
    follows = derived.challenges(msgspec.convert(predicate, Predicate))
    assert follows["repeats-as-independent"] == "serious"


def test_every_row_that_binds_is_named(tmp_path: Path) -> None:
    document, predicate = predicate_of(of_bundle(sealed_bundle(tmp_path / "bundle")))
    binding = predicate["assessment"]["binding"]
    assert len(binding) > 1
    for changed in (binding[1:], binding[:-1], [*binding, "posterior2"]):
        predicate["assessment"]["binding"] = changed
        assert refused(document).startswith("assessment binding")


def test_bundles_under_several_conditions_add_up_in_their_domains() -> None:
    document = maker.statement()
    maker.accumulated(document)
    predicate = document["predicate"]
    profile = predicate["profile_of_reliability"]
    profile["cells"] = [
        {"domain": "banking", "condition": condition, "runs": runs, "successes": good}
        for condition, runs, good in (("adversarial", 10, 8), ("cascade", 6, 4), ("nominal", 4, 4))
    ]
    profile["columns"] = [
        {"metric": "success", "condition": cell["condition"], "scale": 1}
        | {"y": cell["successes"], "n": cell["runs"]}
        for cell in profile["cells"]
    ]
    profile["tasks"], profile["rows"] = 1, [["AAAAAAAAAAAA", 0, [8, 10, 4, 6, 4, 4]]]
    predicate["scope"]["fault_mix"] = {"adversarial": 10, "cascade": 6, "nominal": 4}
    agree(document)
    assert payload.read(canonical.canonical(document)).predicate.evidence.bundles is not None


@pytest.mark.parametrize("count", ["successes", "n"])
def test_the_worst_domain_has_the_rate_of_its_counts(count: str) -> None:
    document, predicate = predicate_of(issued())
    worst = next(one for one in predicate["criteria"] if one["metric"] == "domain_min")
    if count == "n":
        worst["n"] = 0
        assert refused(document).startswith("criterion domain_min has more successes")
    else:
        worst["counts"]["successes"] = 0
        assert (
            refused(document)
            == f"criteria domain_min value: claimed {worst['value']}, the rest gives 0.000000"
        )


@pytest.mark.parametrize(
    "metric",
    [
        *("pei", "irs", "frr", "ti", "violations", "adversarial_resistance"),
        *("domain_min", "cascade_penalty", "gap", "posterior"),
    ],
)
def test_a_value_that_the_task_table_does_not_give_is_refused(metric: str) -> None:
    document, predicate = predicate_of(issued())
    rows = {part["metric"]: part for part in predicate["criteria"]}
    if metric == "gap":
        cells = predicate["profile_of_reliability"]["cells"]
        nominal, faults = (
            [part for part in cells if (part["condition"] == "nominal") is holds] for holds in (True, False)
        )
        rates = [
            sum(part["successes"] for part in side) / sum(part["runs"] for part in side)
            for side in (nominal, faults)
        ]
        value = f"{100 * (rates[0] - rates[1]):.6f}"
        predicate["criteria"].append(rows["cascade_penalty"] | {"id": "gap", "metric": "gap", "value": value})
    criterion = rows.get(metric, predicate["criteria"][-1])
    holders = [criterion] if "value" in criterion else list(criterion["tiers"].values())
    for holder in holders:
        holder["value"] = f"{float(holder['value']) - 0.0011:.6f}"
    criterion["counts"].pop("successes", None)
    predicate["assessment"]["profile"] |= {"id": "house-rule", "digest": "sha256:" + "0" * 64}
    agree(document)
    assert refused(document).startswith(f"value of {metric}: stated {holders[0]['value']}, expected ")


def test_an_honest_passport_supersedes_a_passport() -> None:
    document, predicate = predicate_of(issued())
    predicate["supersedes"] = issued().passport_id
    assert payload.read(canonical.canonical(document)).predicate.supersedes == issued().passport_id


def test_wrong_severities_are_told_in_the_order_of_the_challenges() -> None:
    document, predicate = predicate_of(issued())
    codes = ["unsealed", "times-backwards", "harness-errors", "outside-period", "one-start-time"]
    predicate["challenges"] += [{"code": code, "severity": "info", "message": "x"} for code in codes]
    told = list(payload.contradictions(msgspec.convert(document, Statement)))
    wrong = [
        f"the challenge {code} is of severity warning, and is said to be of severity info" for code in codes
    ]
    assert told[-len(codes) :] == wrong


def test_codes_of_several_severities_are_those_that_the_rules_grade() -> None:
    graded = set()
    for path in Path(certkit.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "finding"):
                continue
            if len(node.args) + len(node.keywords) > len(("code", "message")):
                assert isinstance(node.args[0], ast.Constant)
                graded.add(node.args[0].value)
    assert graded == GRADED
