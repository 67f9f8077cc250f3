"""The document that other programs read, its schema, and the words for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from scipy import stats

from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metric import asked, shown
from certkit.assessment.result import AssessmentDocument
from certkit.assessment.words import measure_next, sentence
from certkit.ground import canonical
from tests.support import build
from tests.support.degenerate import CASES
from tests.support.schemas import profile_schema, schema_of

if TYPE_CHECKING:
    from certkit.assessment.result import Assessment
    from certkit.summary.summary import Summary

EVIDENCE: dict[str, Summary] = {name: build.summary(cells) for name, cells in CASES.items()} | {
    "strong": build.strong(),
    "weak": build.strong(weak=100, irs_yes=3),
}


@pytest.mark.parametrize("profile", ["hb-eval-2026", "hb-eval-2025"])
@pytest.mark.parametrize("case", EVIDENCE)
def test_every_document_has_the_published_form(case: str, profile: str) -> None:
    document = build.judged(EVIDENCE[case], profile).to_dict()
    read_back = canonical.loads(canonical.canonical(document))
    Draft202012Validator(schema_of(AssessmentDocument)).validate(read_back)
    assert set(read_back["metrics"]) == set(CATALOGUE)


def test_the_schemas_are_schemas_and_name_themselves() -> None:
    for schema, name in ((schema_of(AssessmentDocument), "assessment"), (profile_schema(), "profile")):
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"urn:certkit:{name}:v1"
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_profile_schema_accepts_the_packaged_profiles_and_refuses_strange_keys() -> None:
    validator = Draft202012Validator(profile_schema())
    for name in ("hb-eval-2026", "hb-eval-2025"):
        document = build.profile(name).to_dict()
        assert validator.is_valid(document)
        assert not validator.is_valid({**document, "colour": "red"})


def test_the_assessment_schema_refuses_a_value_where_nothing_was_measured() -> None:
    validator = Draft202012Validator(schema_of(AssessmentDocument))
    document = build.judged(build.summary([])).to_dict()
    assert validator.is_valid(document)
    document["metrics"]["r_op"]["value"] = 0.0
    assert not validator.is_valid(document)


def test_the_fixed_keys() -> None:
    document = build.judged(build.strong(weak=300), tier=2).to_dict()
    assert document["schema"] == "urn:certkit:assessment:v1"
    assert document["bundle"]["records"] == document["bundle"]["nominal_runs"] + build.FAULTS
    assert document["bundle"]["domains"] == ["bank", "shop"]
    assert document["profile"]["reading"] == "table"
    rows = {(row["id"], row["tier"]): row for row in document["criteria"]}
    assert len(rows) == len(document["criteria"]) == 33
    weakest = rows["domain_min", 1]
    assert weakest["operator"] == ">="
    assert (weakest["threshold"], weakest["value"], weakest["margin"]) == (0.4, 0.3, -0.1)
    assert weakest["status"] == "not_met"
    assert weakest["bounded"] == {
        "status": "not_met",
        "bound": pytest.approx(stats.beta(20.06, 40.12).ppf(0.05), abs=1e-3),
        "confidence": 0.95,
        "k": 10,
        "rests_on": "30 families of tasks, 102,020 runs (bank) and 10 families of tasks, 1,000 runs (shop)",
        "reason": None,
    }
    assert rows["adversarial_resistance", 1]["bounded"] is None
    assert rows["adversarial_resistance", 1]["status"] == "not_applicable"
    assert rows["adversarial_resistance", 1]["threshold"] is None
    assert rows["csi", 1]["provisional"] is True
    assert document["tiers"]["1"]["not_met"] == ["domain_min"]
    assert document["verdict"] == {
        "tier": 0,
        "required_tier": 2,
        "status": "not_met",
        "readings": {"table": 0, "bounded": 0},
        "decides": "table",
        "challenges": document["verdict"]["challenges"],
        "table": {"tier": 0},
        "bounded": {"tier": 0},
        "binding": ["domain_min"],
    }
    raised = {item["code"]: item for item in document["findings"] if item["severity"] != "info"}
    assert [(item["code"], item["severity"]) for item in document["verdict"]["challenges"]] == [
        (code, item["severity"]) for code, item in raised.items()
    ]
    assert {item["state"] for item in document["verdict"]["challenges"]} == {"open"}
    assert document["metrics"]["r_op"]["successes"] == sum(
        item["success"] for item in document["breakdown"] if item["condition"] != "nominal"
    )


def test_the_same_evidence_gives_the_same_bytes() -> None:
    first, second = (canonical.canonical(build.judged(build.strong()).to_dict()) for _ in range(2))
    assert first == second


def test_the_verdict_in_words() -> None:
    assert sentence(build.judged(build.strong())) == (
        "Tier 3 (Autonomous) is attained under hb-eval-2026, the highest."
    )
    second = sentence(build.judged(build.strong(ti_thousandths=4_200_000)))
    assert second == (
        "Tier 2 (Production + oversight) is attained under hb-eval-2026. Tier 3 fails"
        " on traceability index (ti)."
    )
    mixed = sentence(build.judged(build.summary(CASES["all failures"])))
    assert "fails on" in mixed
    assert "has no evidence for" in mixed
    assert sentence(build.judged(build.summary([]))) == "No tier is attained: the bundle holds no records."


def advice(found: Assessment) -> dict[str, str]:
    """Return what to measure next by the id that stands behind each full name."""
    lines = (line.split("): ", 1) for line in measure_next(found))
    return {name.rpartition("(")[2]: text for name, text in lines}


def test_what_to_measure_next_is_said_row_by_row() -> None:
    found = build.judged(build.summary([build.cell("a", "stochastic", build.outcomes(20, 14))]))
    said = advice(found)
    assert tuple(said) == found.verdict.binding
    assert measure_next(found)[0].startswith("Confidence in success under faults (posterior): ")
    assert "fault runs would show it" in said["posterior"]
    assert "70.0 % success" in said["posterior"]
    assert "steps_oracle" in said["pei"]
    near = build.judged(build.summary([build.cell("a", "stochastic", build.outcomes(10_000, 5_998))]))
    assert advice(near)["r_op"] == "59.98 % where Tier 1 asks > 60 %."
    hopeless = build.judged(build.summary([build.cell("a", "stochastic", build.outcomes(20, 4))]))
    said = advice(hopeless)
    assert said["r_op"] == "20.0 % where Tier 1 asks > 60 %."
    assert "is too low, however many runs" in said["posterior"]
    assert said["domain_min"].endswith("in a.")
    rig = build.outcomes(100, 90, harness_error=5, ti_n=95, ti_thousandths=95 * 5000)
    said = advice(build.judged(build.summary([build.cell("a", "stochastic", rig)])))
    assert "repair the test rig" in said["ti"]


def test_numbers_as_people_read_them() -> None:
    shown_as = {
        Unit.FRACTION: "67.5 %",
        Unit.PP: "0.7 pp",
        Unit.INDEX: "0.675",
        Unit.PROBABILITY: "0.6750",
        Unit.BOOLEAN: "yes",
    }
    for unit, text in shown_as.items():
        assert shown(0.675, unit) == text
    assert shown(None, Unit.INDEX) == "not measured"
    threshold = build.profile().criteria[0].threshold(1)
    assert threshold is not None
    assert asked(">", threshold, Unit.FRACTION) == "> 60 %"
