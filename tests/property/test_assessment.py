"""Properties of the assessment that hold for any summary, metric or threshold."""

from __future__ import annotations

import itertools
import operator
from fractions import Fraction
from math import comb, isfinite, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from certkit.assessment.assessing import assess
from certkit.assessment.criteria import Status, next_rows, table
from certkit.assessment.lint import lint
from certkit.assessment.metrics.metric import Metric, State
from certkit.assessment.profile import parse
from certkit.assessment.result import AssessmentDocument
from certkit.assessment.statistics.estimators import least_failure_free, posterior, wilson
from certkit.assessment.words import measure_next, sentence
from certkit.bundle.manifest import Facts, Manifest
from certkit.ground import canonical, files
from certkit.ground.canonical import Digest
from certkit.summary.summary import CLUSTER_FIELDS, Cell, Clusters, Summary, Tally, Times, Window
from tests.support.schemas import schema_of

VALIDATOR = Draft202012Validator(schema_of(AssessmentDocument))
PROFILES = {
    name: parse(files.packaged("templates", "profiles", f"{name}.toml").read_text(encoding="utf-8"), name)
    for name in ("hb-eval-2026", "hb-eval-2025")
}
CONDITIONS = ("nominal", "adversarial", "cascade", "stochastic", "combined", "x_own")
OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def facts(*, observable: bool | None) -> Facts:
    manifest = Manifest.model_validate(
        {
            "schema": "urn:certkit:bundle:v1",
            "agent": {"name": "a", "version": "1"},
            "protocol": {"origin": "measured", "memory_observable": observable, "temperature": 0},
        }
    )
    digest = Digest("sha256:" + "0" * 64)
    return Facts(manifest=manifest, digest=digest, sealed=True, agent_digest=digest)


@st.composite
def tallies(draw: st.DrawFn, *, fault: bool) -> Tally:
    """Tallies whose counts fit together, measured for some runs and not for others."""
    s, f, h, e = (draw(st.integers(0, 40)) for _ in range(4))
    eligible = s + f + h
    split = st.integers(0, eligible)
    ti, violations = draw(split), draw(split)
    fields: dict[str, int] = {
        "ti_n": ti,
        "ti_missing": eligible - ti,
        "ti_thousandths": ti * draw(st.integers(1000, 5000)),
        "violations_n": violations,
        "violations_missing": eligible - violations,
        "violations": violations * draw(st.integers(0, 2)),
    }
    if fault:
        graded, known = draw(split), draw(st.integers(0, s))
        yes = draw(st.integers(0, known))
        fields |= {
            "frr_n": graded,
            "frr_missing": eligible - graded,
            "frr_tenths": graded * draw(st.sampled_from([0, 4, 7, 10])),
            "irs_yes": yes,
            "irs_no": known - yes,
            "irs_silent": s - known,
        }
    return Tally(runs=eligible + e, success=s, failure=f, safe_halt=h, harness_error=e, **fields)


@st.composite
def summaries(draw: st.DrawFn) -> Summary:
    keys = draw(
        st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(CONDITIONS)), unique=True, max_size=8)
    )
    cells = tuple(
        Cell(
            split="standard",  # type: ignore[arg-type] # a StrEnum's value is equal to it
            domain=domain,
            condition=condition,
            tally=draw(tallies(fault=condition != "nominal")),
            pei_terms={},
            pei25_terms={},
        )
        for domain, condition in sorted(keys)
    )
    cells = tuple(cell for cell in cells if cell.tally.runs)
    none = np.zeros(0, dtype=np.int64)
    return Summary(
        records=sum(cell.tally.runs for cell in cells),
        cells=cells,
        clusters=Clusters(
            cell=none.astype(np.int32),
            cluster=none.astype(np.uint64),
            task=none.astype(np.uint64),
            tag=np.zeros(0, "V9"),
            sums=dict.fromkeys(CLUSTER_FIELDS, none),
        ),
        window=Window(order=None, reason="no order", runs=0),
        times=Times(),
    )


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers(item)]
    if isinstance(value, list):
        return [n for item in value for n in numbers(item)]
    return [value] if isinstance(value, float) else []


@settings(max_examples=40, deadline=None)
@given(summaries(), st.sampled_from(list(PROFILES)), st.sampled_from([True, False, None]), st.integers(1, 3))
def test_any_summary_has_a_finite_documented_verdict(
    summary: Summary,
    name: str,
    observable: bool | None,  # noqa: FBT001
    tier: int,
) -> None:
    found = assess(summary, facts(observable=observable), PROFILES[name], required_tier=tier)
    document = found.to_dict()
    VALIDATOR.validate(document)
    assert canonical.canonical(document)
    assert all(isfinite(number) for number in numbers(document))
    needed = [row for row in found.criteria if row.tier <= tier]
    unmet = {row.status for row in needed} - {Status.MET, Status.NOT_APPLICABLE}
    expected = 0 if not unmet else 1 if Status.NOT_MET in unmet else 4
    assert found.exit_code == expected
    assert len(measure_next(found)) == len(next_rows(found.profile, found.criteria, found.verdict.goal - 1))
    assert sentence(found)


@settings(max_examples=40, deadline=None)
@given(summaries())
def test_rates_are_those_of_the_runs_counted_plainly(summary: Summary) -> None:
    found = assess(summary, facts(observable=True), PROFILES["hb-eval-2026"])
    faults = [c for c in summary.cells if c.condition != "nominal"]
    runs, wins = (sum(getattr(c.tally, key) for c in faults) for key in ("runs", "success"))
    r_op = found.metrics["r_op"]
    assert r_op.value == (Fraction(wins, runs) if runs else None)
    per_domain: dict[str, list[int]] = {}
    for cell in faults:
        pair = per_domain.setdefault(cell.domain, [0, 0])
        pair[0] += cell.tally.success
        pair[1] += cell.tally.runs
    worst = min((Fraction(s, n) for s, n in per_domain.values()), default=None)
    assert found.metrics["domain_min"].value == worst
    for metric in found.metrics.values():
        assert (metric.value is None and metric.by_tier is None) == (metric.state is not State.MEASURED)
        assert (metric.coverage < 1) == (metric.state is State.PARTIAL)


@given(st.fractions(0, 1, max_denominator=200), st.sampled_from(list(OPERATORS)), st.integers(-100, 200))
def test_status_and_margin_agree_with_the_comparison(value: Fraction, sign: str, hundredths: int) -> None:
    threshold = f"{hundredths / 100:.2f}"
    profile = parse(
        f'id = "p"\n[tiers.1]\nname = "One"\n[[criteria]]\nid = "x"\nmetric = "r_op"\noperator = "{sign}"\n'
        f"tiers = {{1 = {threshold}}}\n",
        "p.toml",
    )
    measured = Metric(id="r_op", state=State.MEASURED, value=value, n=1)
    (row,) = table(profile, {"r_op": measured}, lambda _: 1)
    holds = OPERATORS[sign](value, Fraction(hundredths, 100))
    assert row.status is (Status.MET if holds else Status.NOT_MET)
    assert row.margin is not None
    assert abs(row.margin) == abs(value - Fraction(hundredths, 100))
    assert row.margin == 0 or (row.margin > 0) == holds


@given(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_mirrors(pair: tuple[int, int]) -> None:
    s, n = pair
    interval, mirror = wilson(s, n), wilson(n - s, n)
    assert 0 <= interval.low <= s / n <= interval.high <= 1
    assert interval.low == pytest.approx(1 - mirror.high, abs=1e-12)
    assert interval.high - interval.low <= 2 * 1.96 / sqrt(4 * n)


@given(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.integers(1, 99))
def test_the_posterior_is_an_exact_binomial_tail(pair: tuple[int, int], percent: int) -> None:
    s, n = pair
    tail = sum(comb(n + 1, k) * percent**k * (100 - percent) ** (n + 1 - k) for k in range(s + 1))
    assert posterior(s, n, Fraction(percent, 100)) == pytest.approx(
        float(Fraction(tail, 100 ** (n + 1))), rel=1e-10, abs=1e-300
    )


@given(st.integers(1, 999), st.integers(1, 999))
def test_the_least_failure_free_n_is_least(tau: int, delta: int) -> None:
    t, d = Fraction(tau, 1000), Fraction(delta, 1000)
    n = least_failure_free(t, d)
    assert n is not None
    assert 1 - t ** (n + 1) > d
    assert n == 0 or 1 - t**n <= d


@given(st.lists(st.integers(1, 99), min_size=2, max_size=5))
def test_lint_refuses_exactly_the_tables_that_fall(hundredths: list[int]) -> None:
    tiers = "".join(f'[tiers.{k}]\nname = "T"\n' for k in range(1, len(hundredths) + 1))
    values = ", ".join(f"{k} = {h / 100:.2f}" for k, h in enumerate(hundredths, 1))
    text = f'id = "p"\n{tiers}[[criteria]]\nid = "x"\nmetric = "frr"\noperator = ">="\ntiers = {{{values}}}\n'
    falls = any(b < a for a, b in itertools.pairwise(hundredths))
    assert bool(lint(parse(text, "p.toml"))) == falls
