"""Properties of the assessment that hold for any records, metric or threshold."""

from __future__ import annotations

import itertools
import operator
from fractions import Fraction
from functools import cache
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certkit.assessment.answer import advice, open_rows, verdict_text
from certkit.assessment.assess import assess
from certkit.assessment.assessment import Status, TierStatus, read_assessment
from certkit.assessment.metric import Metric, wilson
from certkit.assessment.profile_file import faults_of, parse_profile
from certkit.assessment.row import Evidence, judge
from certkit.ground import canonical
from certkit.ground.document import State, to_builtins
from certkit.summary.summary import read_summary
from tests.support import build, strategies

if TYPE_CHECKING:
    from tests.support.strategies import Run

PROFILES = ("hb-eval-2026", "hb-eval-2026-bounded", "hb-eval-2025")
OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers(item)]
    if isinstance(value, list):
        return [n for item in value for n in numbers(item)]
    return [value] if isinstance(value, float) else []


@settings(max_examples=40, deadline=None)
@given(
    strategies.records(max_count=40),
    st.sampled_from(PROFILES),
    st.sampled_from([True, False, None]),
    st.integers(1, 3),
    st.booleans(),
)
def test_any_records_have_a_finite_verdict_that_follows_from_their_document(
    records: list[Run],
    name: str,
    observable: bool | None,  # noqa: FBT001
    tier: int,
    strict: bool,  # noqa: FBT001
) -> None:
    found = build.judged(records, name, tier=tier, strict=strict, memory_observable=observable)
    document = found.to_dict()
    assert canonical.canonical(document)
    assert all(isfinite(number) for number in numbers(document))
    assessment, reading = found.assessment, found.profile.reading
    deciding = [
        row.deciding(reading) or row.status
        for row in assessment.criteria
        if row.tier <= tier and (strict or not row.provisional)
        if row.deciding(reading) is not None or (row.provisional and strict)
    ]
    unmet = set(deciding) - {Status.MET, Status.NOT_APPLICABLE}
    if assessment.verdict.status is not TierStatus.CONTESTED:
        expected = 0 if not unmet and records else 1 if Status.NOT_MET in unmet else 4
        assert found.exit_code == expected
    assert len(advice(found)) == len(open_rows(found))
    assert verdict_text(found)
    assert read_assessment(canonical.loads(canonical.canonical(to_builtins(assessment)))) == assessment
    summary = read_summary(canonical.loads(canonical.canonical(found.summary.to_dict())))
    assert assess(summary, found.facts, found.profile, found.question) == assessment
    for metric in found.metrics.values():
        assert (metric.coverage < 1) == (metric.state is State.PARTIAL)
        if metric.state is State.UNMEASURED:
            assert metric.value is None
            assert metric.by_tier is None


@cache
def flawless() -> Any:
    return build.summary(build.GOOD)


@given(st.fractions(0, 1, max_denominator=200), st.sampled_from(list(OPERATORS)), st.integers(-100, 200))
def test_status_and_margin_agree_with_the_comparison(value: Fraction, sign: str, hundredths: int) -> None:
    threshold = f"{hundredths / 100:.2f}"
    profile = parse_profile(
        f'id = "p"\n[tiers.1]\nname = "One"\n[[criteria]]\nid = "x"\nmetric = "r_op"\noperator = "{sign}"\n'
        f"tiers = {{1 = {threshold}}}\n",
        "p.toml",
    )
    measured = Metric(id="r_op", state=State.MEASURED, value=value, n=1)
    evidence = Evidence(flawless(), build.facts(), profile).replaced({"r_op": measured}, {}, {})
    row = judge(evidence, profile.criteria[0], 1)
    holds = OPERATORS[sign](value, Fraction(hundredths, 100))
    assert row.status is (Status.MET if holds else Status.NOT_MET)
    assert row.margin is not None
    assert abs(row.margin) == pytest.approx(float(abs(value - Fraction(hundredths, 100))), abs=5.1e-7)
    assert row.margin == 0 or (row.margin > 0) == holds


@given(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_mirrors(pair: tuple[int, int]) -> None:
    s, n = pair
    interval, mirror = wilson(s, n), wilson(n - s, n)
    assert 0 <= interval.low <= s / n <= interval.high <= 1
    assert interval.low == pytest.approx(1 - mirror.high, abs=1e-12)
    assert interval.high - interval.low <= 2 * 1.96 / sqrt(4 * n)


@given(st.lists(st.integers(1, 99), min_size=2, max_size=5))
def test_exactly_the_tables_that_fall_are_refused(hundredths: list[int]) -> None:
    tiers = "".join(f'[tiers.{k}]\nname = "T"\n' for k in range(1, len(hundredths) + 1))
    values = ", ".join(f"{k} = {h / 100:.2f}" for k, h in enumerate(hundredths, 1))
    text = f'id = "p"\n{tiers}[[criteria]]\nid = "x"\nmetric = "frr"\noperator = ">="\ntiers = {{{values}}}\n'
    falls = any(b < a for a, b in itertools.pairwise(hundredths))
    assert bool(faults_of(parse_profile(text, "p.toml"), "p.toml")) == falls
