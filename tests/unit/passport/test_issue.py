"""What a passport states, and what is not issued."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import pytest
from jsonschema import Draft202012Validator
from msgspec import structs

from certkit.bundle.folder import seal
from certkit.ground import canonical
from certkit.ground.errors import CertkitError, UsageError
from certkit.passport import payload, sealed
from certkit.passport.issuing import VALIDITY, Issuer, issue
from certkit.passport.opening import Passport, parse
from certkit.record.record import Split
from tests.support import build, bundles, schemas
from tests.support.evaluations import honest
from tests.support.making import ISSUER, KEY, NOW, issued, of_bundle
from tests.support.signers import signed_payload

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.bundles import Run


def predicate(found: Passport) -> dict[str, Any]:
    document: dict[str, Any] = canonical.loads(found.payload)
    inner: dict[str, Any] = document["predicate"]
    return inner


def test_the_file_is_a_sigstore_bundle_around_an_in_toto_statement() -> None:
    found = issued()
    document = canonical.loads(found.to_json())
    assert document["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert document["verificationMaterial"]["tlogEntries"] == []
    assert document["dsseEnvelope"]["payloadType"] == "application/vnd.in-toto+json"
    assert signed_payload(document["dsseEnvelope"], KEY.public_key()) == found.payload
    assert found.passport_id == "sha256:" + hashlib.sha256(found.payload).hexdigest()
    statement = canonical.loads(found.payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:certkit:agent-passport:v1"
    assert [subject["digest"]["sha256"] for subject in statement["subject"]] == ["0" * 64, "0" * 64]
    assert parse(found.to_json()).payload == found.payload


def test_the_payload_is_canonical_and_depends_on_nothing_but_its_input() -> None:
    first, second = issued(), issued()
    assert first.payload == second.payload == canonical.canonical(canonical.loads(first.payload))
    assert first.to_json() == second.to_json()  # Ed25519 signatures are deterministic


def test_no_decimal_is_a_json_number() -> None:
    def numbers(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [found for item in value.values() for found in numbers(item)]
        if isinstance(value, list):
            return [found for item in value for found in numbers(item)]
        return [value] if isinstance(value, float) else []

    assert numbers(canonical.loads(issued().payload)) == []


def test_every_part_that_the_design_lists_is_there() -> None:
    assert predicate(issued()).keys() >= {
        "issuer",
        "agent",
        "assessment",
        "profile_of_reliability",
        "criteria",
        "scope",
        "limitations",
        "known_failure_modes",
        "challenges",
        "validity",
        "origin",
    }


def test_the_claim_speaks_of_thresholds_and_of_no_tier_where_none_is_met() -> None:
    assert predicate(issued())["claim"] == "meets the Tier 3 evidence thresholds of profile hb-eval-2026"
    weak = issued(build.strong(bulk=10_000))
    assert predicate(weak)["claim"] == "meets the evidence thresholds of no tier of profile hb-eval-2026"
    assert predicate(weak)["assessment"]["tier"] == 0


def test_counts_and_decimals_of_a_criterion() -> None:
    x = build.STRONG
    successes = x["bulk"] + x["adversarial"] + x["weak"] + x["cascade"]
    row = next(item for item in predicate(issued())["criteria"] if item["id"] == "r_op")
    assert row["counts"]["successes"] == successes
    assert row["n"] == build.FAULTS
    assert abs(Fraction(row["value"]) - Fraction(successes, build.FAULTS)) <= Fraction(1, 2 * 10**6)
    assert row["tiers"]["3"]["threshold"] == "0.950000"
    assert row["tiers"]["3"]["table"] == "met"
    posterior = next(item for item in predicate(issued())["criteria"] if item["id"] == "posterior")
    assert "value" not in posterior
    assert posterior["tiers"]["1"]["value"] == "1.000000"


def test_an_unspecified_tier_makes_no_claim() -> None:
    row = next(item for item in predicate(issued())["criteria"] if item["id"] == "adversarial_resistance")
    assert row["tiers"].keys() == {"2", "3"}


def test_simulated_evidence_gives_a_specimen() -> None:
    found = predicate(issued(origin="simulated"))
    assert found["origin"] == "simulated"
    assert found["name"].startswith("SPECIMEN")
    assert found["claim"].startswith("specimen")
    assert not predicate(issued())["name"].startswith("SPECIMEN")


def test_retest_triggers_name_the_thresholds_of_the_certified_tier() -> None:
    triggers = predicate(issued())["validity"]["retest_triggers"]
    assert [(item["event"], item.get("metric"), item.get("threshold")) for item in triggers] == [
        ("component_change", None, None),
        ("metric_beyond_threshold", "r_op", "0.950000"),
        ("metric_beyond_threshold", "frr", "0.950000"),
        ("intervention_rate_above", None, "0.050000"),
    ]


def test_known_failure_modes_come_worst_first() -> None:
    modes = predicate(issued())["known_failure_modes"]
    shares = [Fraction(item["failures"], item["runs"]) for item in modes]
    assert shares == sorted(shares, reverse=True)
    assert modes[0]["condition"] in {"adversarial", "stochastic"}  # 50 of 1,000 each, the worst share


def test_the_published_schema_accepts_what_is_issued_and_refuses_less() -> None:
    schema = schemas.passport_schema()
    Draft202012Validator.check_schema(schema)
    found = issued(origin="simulated")
    Draft202012Validator(schema).validate(canonical.loads(found.to_json()))
    inner = schema["properties"]["dsseEnvelope"]["properties"]["payload"]["contentSchema"]
    statement = Draft202012Validator({**inner, "$defs": schema["$defs"]})
    document = canonical.loads(found.payload)
    statement.validate(document)
    del document["predicate"]["criteria"]
    assert not statement.is_valid(document)


def test_an_unsealed_bundle_is_not_issued() -> None:
    with pytest.raises(CertkitError) as caught:
        issued(sealed=False)
    assert (caught.value.code, caught.value.exit_code) == ("bundle.unsealed", 2)


@pytest.mark.parametrize("days", [-1, 367])
def test_a_validity_that_is_empty_or_endless_is_not_issued(days: int) -> None:
    summary = build.strong()
    with pytest.raises(CertkitError, match="the validity ends before it begins, or is longer than 366 days"):
        issue(
            build.judged(summary),
            summary,
            issuer=ISSUER,
            key=KEY,
            not_before=NOW,
            not_after=NOW + timedelta(days=days),
        )


def test_times_are_written_in_utc_and_cut_to_seconds() -> None:
    summary = build.strong()
    start = datetime(2026, 3, 1, 13, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=1)))
    found = issue(
        build.judged(summary),
        summary,
        issuer=ISSUER,
        key=KEY,
        not_before=start,
        not_after=start + timedelta(days=1),
        supersedes=canonical.digest(b"older"),
    )
    validity = predicate(found)["validity"]
    assert (validity["not_before"], validity["not_after"]) == ("2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z")
    assert predicate(found)["supersedes"] == canonical.digest(b"older")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (Fraction(2, 3), "0.666667"),
        (Fraction(5, 10**7), "0.000000"),  # half to even
        (Fraction(15, 10**7), "0.000002"),
        (Fraction(-1, 10**8), "0.000000"),
        (Fraction(-3, 2), "-1.500000"),
        (0.1, "0.100000"),
        (1e-300, "0.000000"),
        (123456.7, "123456.700000"),
    ],
)
def test_decimals(value: Fraction | float | None, text: str | None) -> None:
    assert canonical.decimal(value) == text


@pytest.mark.parametrize("name", ["", "  ", "x" * 513])
def test_an_issuer_without_a_usable_name_is_told(name: str) -> None:
    summary = build.strong()
    with pytest.raises(CertkitError) as caught:
        issue(
            build.judged(summary),
            summary,
            issuer=Issuer(name=name),
            key=KEY,
            not_before=NOW,
            not_after=NOW + timedelta(days=1),
        )
    assert (caught.value.code, caught.value.exit_code) == ("usage.option", 2)


def test_evidence_with_too_many_domains_for_one_passport_is_told() -> None:
    tally = build.outcomes(1, 1)
    cells = [build.cell(f"domain {i:0400}", "adversarial", tally) for i in range(6_000)]
    with pytest.raises(CertkitError) as caught:
        issued(build.summary(cells))
    assert (caught.value.code, caught.value.exit_code) == ("passport.too-large", 3)


def test_what_cannot_be_signed_is_the_callers_mistake() -> None:
    judged, chosen = build.judged(build.strong()), build.strong()
    bare = NOW.replace(tzinfo=None)
    for wrong in ({"supersedes": "sha256:1"}, {"not_before": bare}, {"not_after": bare}):
        options: dict[str, Any] = {"not_before": NOW, "not_after": NOW + VALIDITY, **wrong}
        with pytest.raises(UsageError):
            issue(judged, chosen, issuer=ISSUER, key=KEY, **options)


def test_a_signer_that_seals_another_payload_is_a_bug() -> None:
    class Other:
        key_id = canonical.digest(b"key")

        def seal(self, payload: bytes) -> dict[str, Any]:
            return sealed.seal(payload + b" ", KEY)

    judged, chosen = build.judged(build.strong()), build.strong()
    with pytest.raises(AssertionError):
        issue(
            judged, chosen, issuer=ISSUER, key=cast("Any", Other()), not_before=NOW, not_after=NOW + VALIDITY
        )


def test_runs_under_held_out_faults_are_left_out_of_the_criteria_and_said_to_be() -> None:
    known = build.strong()
    held_out = build.cell("shop", "byzantine", build.outcomes(70, 10), split=Split.NOVEL_FAULT)
    more = structs.replace(known, cells=(*known.cells, held_out), records=known.records + 70)
    found = predicate(issued(more))
    assert "70 runs under held-out faults are not in the criteria" in found["scope"]["exclusions"]
    assert (found["evidence"]["novel_fault_runs"], found["evidence"]["fault_runs"]) == (70, build.FAULTS)
    assert not any("held-out" in item for item in predicate(issued(known))["scope"]["exclusions"])


def test_a_passport_that_point_estimates_decide_says_so_and_another_does_not() -> None:
    summary = build.strong()
    told = {}
    for name in ("hb-eval-2026", "hb-eval-2026-bounded"):
        found = issue(
            build.judged(summary, name),
            summary,
            issuer=ISSUER,
            key=KEY,
            not_before=NOW,
            not_after=NOW + VALIDITY,
        )
        told[predicate(found)["assessment"]["profile"]["reading"]] = predicate(found)["limitations"]
    assert [any("point estimates" in item for item in told[name]) for name in ("table", "bounded")] == [
        True,
        False,
    ]


LATER = ("recover", "memory", "violations", "traceability")
"""How the fields begin that a run without an answer does not have."""


def changed(condition: str, /, count: int = 1, **fields: Any) -> list[Run]:
    """Return honest runs, of which the first `count` of a condition are otherwise."""
    runs = honest()
    places = [place for place, run in enumerate(runs) if run["condition"] == condition][:count]
    for place in places:
        kept = {name: value for name, value in runs[place].items() if fields.get(name, value) is not None}
        if fields.get("outcome") == "harness_error":
            kept = {name: value for name, value in kept.items() if not name.startswith((*LATER, "attack"))}
        runs[place] = kept | {name: value for name, value in fields.items() if value is not None}
    return runs


def labelled(runs: list[Run]) -> bytes:
    """Return a calibration of the first outcomes, on which judge and person agree."""
    raters = ({"rater": "j", "kind": "judge"}, {"rater": "h", "kind": "human"})
    scores = [{"item": run["run_id"], "score": int(run["outcome"] == "success")} for run in runs[:60]]
    return bundles.lines(score | rater for score in scores for rater in raters)


ODD: dict[str, tuple[list[Run], dict[str, Any], bool]] = {
    "a judge gave the outcomes": (honest(), {"methodology": "independent_judge"}, True),
    "a judge without labels": (honest(), {"methodology": "independent_judge"}, False),
    "labels beside a rule": (honest(), {"methodology": "trajectory"}, True),
    "one harness error of many under a fault": (changed("tool_failure", outcome="harness_error"), {}, False),
    "one harness error of many without": (changed("nominal", outcome="harness_error"), {}, False),
    "a nominal run that is held out": (changed("nominal", split="novel_fault"), {}, False),
    "held-out runs": (changed("tool_failure", 40, split="novel_fault"), {}, False),
    "attacks that do not say that they landed": (
        changed("adversarial", 9, attack_landed=None, attack_succeeded=True),
        {},
        False,
    ),
}


@pytest.mark.parametrize("profile", ["hb-eval-2026", "hb-eval-2026-bounded"])
@pytest.mark.parametrize("name", ODD)
def test_what_honest_evidence_gives_contradicts_nothing(tmp_path: Path, name: str, profile: str) -> None:
    runs, protocol, labels = ODD[name]
    stated = bundles.MANIFEST["protocol"] | {"tasks_independent": True} | protocol
    if protocol:
        stated |= {"judge": {"name": "j", "independent": True}}
    root = tmp_path / "b"
    bundles.write(root, {"a.jsonl": bundles.lines(runs)}, bundles.MANIFEST | {"protocol": stated})
    if labels:
        (root / "calibration").mkdir()
        (root / "calibration" / "ratings.jsonl").write_bytes(labelled(runs))
    seal(root)
    payload.read(of_bundle(root, profile=profile, now=NOW + timedelta(days=9)).payload)
