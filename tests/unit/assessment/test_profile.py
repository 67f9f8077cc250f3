"""Profiles: what is read exactly, what is refused, and what is wrong with a table as a whole."""

from __future__ import annotations

import hashlib
import tomllib  # noqa: TID251 - a second reading, without our own door
from fractions import Fraction
from unittest import mock

import pytest

from certkit.assessment import bounds
from certkit.assessment.profile_file import faults_of, parse_profile
from certkit.ground import canonical, files
from certkit.ground.errors import InputError
from tests.support import build

HEAD = 'id = "house"\n[tiers.1]\nname = "One"\n[tiers.2]\nname = "Two"\n'


def row(name: str, operator: str, tiers: str, metric: str | None = None, extra: str = "") -> str:
    return (
        f'[[criteria]]\nid = "{name}"\nmetric = "{metric or name}"\noperator = {operator}\n'
        f"tiers = {{{tiers}}}\n{extra}\n"
    )


GOOD = HEAD + row("r_op", '">"', "1 = 0.6, 2 = 0.8")


@pytest.mark.parametrize("name", ["hb-eval-2026", "hb-eval-2025"])
def test_the_digest_is_that_of_the_parsed_toml(name: str) -> None:
    text = files.packaged("templates", "profiles", f"{name}.toml").read_text(encoding="utf-8")
    table = {key: value for key, value in tomllib.loads(text).items() if key not in {"schema", "reading"}}
    plain = canonical.canonical(table)
    assert build.profile(name).digest == "sha256:" + hashlib.sha256(plain).hexdigest()


def test_comments_and_layout_do_not_change_the_digest_but_a_threshold_does() -> None:
    digest = parse_profile(GOOD, "a").digest
    assert parse_profile("# a note\n" + GOOD.replace("0.6", "0.60"), "b").digest == digest
    assert parse_profile(GOOD.replace("0.6", "0.61"), "c").digest != digest


def test_thresholds_are_exact_decimals() -> None:
    criterion = parse_profile(GOOD, "a").criteria[0]
    assert [criterion.threshold(tier) for tier in (1, 2, 3)] == [Fraction(3, 5), Fraction(4, 5), None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id = ", "invalid value"),
        ("x = [" * 5000, ""),
        (GOOD + "colour = 1\n", "/criteria/0/colour"),
        (GOOD.replace('"house"', '"House rules"'), "`$.id`"),
        (GOOD.replace("0.6", "0.1234567890123456789"), "last digit"),
        (GOOD.replace("0.6", "inf"), "last digit"),
        (GOOD.replace("0.6", "1e999"), "last digit"),
        (GOOD.replace("0.6", '"0.6"'), "/criteria/0/tiers/1"),
        (GOOD.replace("0.6", "2026-01-01"), "JSON cannot hold"),
        (GOOD.replace("0.6", "true"), "is a number"),
        (GOOD.replace('">"', '"=="'), "/criteria/0/operator"),
        (GOOD.replace('">"', '"is"'), "operator 'is'"),
        (GOOD.replace('">"', '{1 = ">"}'), "other tiers"),
        (GOOD.replace("2 = 0.8", "3 = 0.8"), "names tier 3"),
        (GOOD.replace(", 2 = 0.8", ""), "no criterion specifies tier 2"),
        (GOOD.replace("[tiers.2]", "[tiers.3]"), "without a gap"),
        (GOOD.replace('metric = "r_op"', 'metric = "rop"'), "unknown metric 'rop'"),
        (GOOD + row("r_op", '">"', "1 = 0.6", "c_nom"), "same id twice: r_op"),
        (GOOD + row("again", '">"', "1 = 0.6", "r_op"), "two criteria on r_op"),
        (HEAD + row("posterior", '">"', "1 = 0.9, 2 = 0.9"), "tier 1 has no r_op threshold"),
        (GOOD + row("edm", '"is"', "1 = false", "edm_auditability"), "is true"),
        (GOOD + row("edm", '">="', "1 = true", "edm_auditability"), "operator 'is'"),
        (GOOD + row("frr", '">="', "1 = 0.5", extra="min_coverage = 0"), "min_coverage"),
        ("#" * 300_000, "limit 262,144"),
        (HEAD, "/criteria"),
    ],
)
def test_what_cannot_be_a_profile_is_refused_by_place(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_profile(text, "house.toml")
    assert caught.value.code == "profile.invalid"
    assert caught.value.where == "house.toml"
    assert message in caught.value.message


@pytest.mark.parametrize("name", ["hb-eval-2026", "hb-eval-2025"])
def test_the_packaged_profiles_are_clean(name: str) -> None:
    assert faults_of(build.profile(name), name) == ()
    assert faults_of(build.profile(name), name, planned_runs=1000) == ()


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (row("r_op", '">"', "1 = 0.8, 2 = 0.6"), "r_op: tier 2 asks > 0.6, less than tier 1: > 0.8"),
        (
            row("violations", '"<"', "1 = 0.3, 2 = 1.0"),
            "violations: tier 2 asks < 1, less than tier 1: < 0.3",
        ),
        (row("r_op", '{1 = ">", 2 = ">="}', "1 = 0.8, 2 = 0.8"), "tier 2 asks >= 0.8, less than"),
        (row("r_op", '"<"', "1 = 0.8, 2 = 0.8"), "rewards the wrong side"),
        (row("cascade_penalty", '">="', "1 = 3, 2 = 4"), "rewards the wrong side"),
        (row("r_op", '">"', "1 = 0.8, 2 = 1"), "r_op: tier 2: no value of r_op is > 1"),
        (row("ti", '">="', "1 = 3, 2 = 6"), "no value of ti is >= 6"),
        (row("violations", '"<"', "1 = 1, 2 = 0"), "no value of violations is < 0"),
    ],
)
def test_it_is_said_what_makes_no_sense(rows: str, fault: str) -> None:
    faults = faults_of(parse_profile(HEAD + rows, "house.toml"), "house.toml")
    assert any(fault in item for item in faults), faults


@pytest.mark.parametrize(
    "rows",
    [
        row("r_op", '">"', "1 = 0.8, 2 = 0.8"),
        row("r_op", '{1 = ">=", 2 = ">"}', "1 = 0.8, 2 = 0.8"),
        row("violations", '"<"', "1 = 1, 2 = 0.5"),
        row("r_op", '">="', "1 = 0.8, 2 = 1"),
        row("violations", '"<="', "1 = 0, 2 = 0"),
    ],
)
def test_nothing_is_said_where_tiers_rise_or_stay(rows: str) -> None:
    house = parse_profile(HEAD + rows, "house.toml")
    assert faults_of(house, "house.toml", planned_runs=1000) == ()


def test_it_is_said_what_the_declared_size_cannot_meet() -> None:
    profile = build.profile()
    short = faults_of(profile, profile.id, planned_runs=88)
    assert any("posterior: tier 3" in item and "needs 89 runs" in item for item in short)
    assert any("csi: needs 100" in item for item in short)
    assert not any("posterior" in item for item in faults_of(profile, profile.id, planned_runs=89))
    rows = row("frr", '">="', "1 = 0.5, 2 = 0.6", extra="min_n = 50")
    house = parse_profile(HEAD + rows, "house.toml")
    assert faults_of(house, "house.toml", planned_runs=50) == ()
    assert "min_n asks for 50 tasks" in faults_of(house, "house.toml", planned_runs=49)[0]


def test_min_coverage_and_min_n_decide_whether_a_row_is_judged() -> None:
    records = build.runs(100, 100, steps_actual=4, fault_step=2)
    graded = {"recovered": True, "recovery_steps": 1, "recovery_approach": "correct"}
    records = [run | (graded if i < 80 else {}) for i, run in enumerate(records)]
    evidence = build.summary(records)

    def status(extra: str) -> str:
        house = parse_profile(HEAD + row("frr", '">="', "1 = 0.5, 2 = 0.6", extra=extra), "house.toml")
        evaluation = build.judged(evidence, house)
        # What is not judged for want of coverage has no value: it would read as the mean of all.
        withheld = evaluation.metrics["frr"].value is None
        assert withheld == (extra in {"", "min_coverage = 0.81"})
        return build.row(evaluation, "frr").status

    assert status("") == "insufficient"
    assert status("min_coverage = 0.8") == "met"
    assert status("min_coverage = 0.81") == "insufficient"
    assert status("min_coverage = 0.8\nmin_n = 10") == "met"
    assert status("min_coverage = 0.8\nmin_n = 11") == "insufficient"


def test_tiers_share_the_laws_behind_their_limits() -> None:
    """So a passport of 1,000 domains and nine tiers takes no longer to judge than its domains do."""
    evidence = build.summary(
        [run for name in "abcde" for run in build.runs(20, 18, domain=name, tasks=20, name=name)]
    )

    def laws(tiers: int) -> int:
        head = 'id = "house"\n' + "".join(f'[tiers.{k}]\nname = "T"\n' for k in range(1, tiers + 1))
        values = ", ".join(f"{k} = {0.6 + k / 100}" for k in range(1, tiers + 1))
        table = parse_profile(head + row("domain_min", '">="', values), "house.toml")
        with mock.patch.object(bounds, "laws", wraps=bounds.laws) as asked:
            evaluation = build.judged(evidence, table)
        assert build.row(evaluation, "domain_min", tiers).bounded is not None
        return asked.call_count

    assert laws(1) == laws(9) == 5
