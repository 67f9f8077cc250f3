"""Evidence at its edges: always a verdict in words, the right exit code, and numbers that JSON has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from certkit.bundle.manifest import Period
from certkit.ground import base
from certkit.ground.errors import InputError
from tests.support import bundles
from tests.support.bundles import Run, run
from tests.support.extremes import GOOD, failed, full
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path


def broken(record: Run) -> Run:
    return {k: v for k, v in failed(record).items() if k not in {"violations", "traceability"}} | {
        "outcome": "harness_error"
    }


# What the evidence is, and the exit code of Tier 1: 4 where nothing measured fails, 1 where something does.
CASES: dict[str, tuple[list[Run], int]] = {
    "zero records": ([], 4),
    "one nominal success": ([run(0)], 4),
    "one nominal failure": ([run(0, outcome="failure")], 4),
    # One task is too few to judge, whatever it shows.
    "one fault run that succeeds": ([full(0, "stochastic")], 4),
    "one fault run that fails": ([failed(full(0, "stochastic"))], 4),
    "one safe halt": ([run(0, condition="stochastic", outcome="safe_halt")], 4),
    "nothing but one harness error": ([run(0, condition="stochastic", outcome="harness_error")], 4),
    "no fault runs": ([full(i) for i in range(200)], 4),
    "one domain, all there, all well": (GOOD, 0),
    "a domain with nominal runs only": ([*GOOD, full(999, domain="e", task_id="e/1", sequence=999)], 4),
    "all failures": ([failed(record) for record in GOOD], 1),
    "all safe halts": ([failed(record) | {"outcome": "safe_halt"} for record in GOOD], 1),
    "all harness errors": ([broken(record) for record in GOOD], 1),
    # A share of harness errors up to 1 % is borne, above it the field metrics are insufficient.
    "one harness error among six hundred": ([broken(GOOD[1]), *GOOD[2:], GOOD[0]], 0),
    "ten harness errors among six hundred": ([*map(broken, GOOD[:10]), *GOOD[10:]], 4),
    "all of the novel split": ([record | {"split": "novel_fault"} for record in GOOD], 4),
    "an x_ condition alone": ([run(i, condition="x_own") for i in range(100)], 4),
    "a cascade without single faults": ([full(i, "cascade") for i in range(100)], 4),
    "attacks that never landed": ([full(i, "adversarial", attack_landed=False) for i in range(100)], 4),
    "enormous counts": ([full(i, "stochastic", violations=10**6, steps_actual=10**6) for i in range(17)], 1),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("profile", ["hb-eval-2026", "hb-eval-2025"])
def test_a_verdict_in_words_whatever_the_evidence(name: str, profile: str, tmp_path: Path) -> None:
    records, code = CASES[name]
    root = bundles.of(tmp_path / "b", records)
    text = certkit("assess", root, "-v", "-p", profile)
    done = certkit("assess", root, "--json", "-p", profile)
    assert text.err == done.err == ""
    assert text.code == done.code
    assert done.code in {0, 1, 4}
    if profile == "hb-eval-2026":
        assert done.code == code
    assert re.search(
        r"^(HB-Eval tiers: cannot be judged|No tier of \S+ is met|Tier \d \([^)]+\)\s+of\s+\S+\s+is\s+met)",
        text.out,
        re.MULTILINE,
    )
    for word in ("nan", "inf ", "None", "Traceback", "Fraction"):
        assert word not in text.out, word
    # The strict reader refuses NaN and infinities; every value is a number, a truth or nothing.
    document = done.document
    assert document["bundle"]["records"] == len(records)
    for metric in document["metrics"].values():
        assert metric["state"] in {"measured", "partial", "unmeasured"}
        assert (metric.get("value") is None) <= (metric["state"] != "measured" or "by_tier" in metric)
        assert metric["state"] != "unmeasured" or metric["reason"]
    # What is not measured is neither passed nor zero.
    for row in document["criteria"]:
        metric = document["metrics"][row["metric"]]
        if metric["state"] == "unmeasured":
            assert row["status"] in {"not_tested", "insufficient", "not_applicable"}, row
            assert row["value"] is None
            assert row["margin"] is None
        if metric["state"] == "partial":
            assert row["status"] in {"insufficient", "not_applicable"}, row
    assert (document["verdict"]["tier"] > 0) == (document["tiers"]["1"]["status"] == "met")


def test_the_good_agent_of_these_cases_is_good_for_every_row(tmp_path: Path) -> None:
    """The cases above take one thing away from evidence that meets Tier 3; this is that evidence."""
    document = certkit("assess", bundles.of(tmp_path / "b", GOOD), "--json", "--require-tier", 3).document
    lost = [row["id"] for row in document["criteria"] if row["status"] not in {"met", "not_applicable"}]
    assert lost == []
    assert document["verdict"]["tier"] == 3


def test_a_domain_without_fault_runs_is_named(tmp_path: Path) -> None:
    records, _ = CASES["a domain with nominal runs only"]
    document = certkit("assess", bundles.of(tmp_path / "b", records), "--json").document
    assert document["tiers"]["1"]["insufficient"] == ["domain_min"]
    assert document["metrics"]["domain_min"]["by_domain"]["e"]["n"] == 0
    assert document["metrics"]["domain_min"]["by_domain"]["e"]["value"] is None


def test_no_records_are_no_verdict_of_any_kind(tmp_path: Path) -> None:
    done = certkit("assess", bundles.of(tmp_path / "b", []))
    assert done.code == 4
    assert "the bundle holds no records" in done.out
    for tier in (1, 2, 3):
        assert certkit("assess", tmp_path / "b", "--require-tier", tier, "-q").code == 4


UNREAL = {
    "a day that no month has": ({"from": "2026-02-01", "to": "2026-02-30"}, "/protocol/period/to"),
    "an hour that no day has": ({"to": "2026-01-02T25:00:00Z"}, "/protocol/period/to"),
    "midnight as the end of a day": ({"from": "2026-01-01T24:00:00Z"}, "/protocol/period/from"),
    "a time without offset": ({"from": "2026-01-01T10:00:00"}, "/protocol/period/from"),
    "an end before the beginning": ({"from": "2026-01-08", "to": "2026-01-07T23:00:00Z"}, "/protocol/period"),
}
REAL = {
    "one day": {"from": "2026-01-08T10:00:00+02:00", "to": "2026-01-08"},
    "a leap day": {"to": "2028-02-29"},
    "the first day": {"from": "0001-01-01", "to": "0001-01-01"},
    "the last day": {"to": "9999-12-31"},
}


def undated(root: Path, period: dict[str, str]) -> Path:
    """Write a bundle whose runs have no start times, and whose manifest declares the period."""
    runs = [{name: value for name, value in record.items() if name != "started_at"} for record in GOOD]
    protocol = bundles.MANIFEST["protocol"] | {"period": period}
    return bundles.write(root, {"runs.jsonl": bundles.lines(runs)}, bundles.MANIFEST | {"protocol": protocol})


@pytest.mark.parametrize("name", UNREAL)
def test_a_period_of_no_calendar_is_refused_by_its_place(tmp_path: Path, name: str) -> None:
    period, place = UNREAL[name]
    done = certkit("assess", undated(tmp_path / "b", period), "--json")
    assert (done.code, done.document["error"]["code"]) == (3, "bundle.manifest-invalid")
    assert f"{place}: " in done.document["error"]["message"]


@pytest.mark.parametrize("name", REAL)
def test_a_period_of_the_calendar_is_reported(tmp_path: Path, name: str) -> None:
    root = undated(tmp_path / "b", REAL[name])
    assert certkit("assess", root).code == 0
    assert certkit("report", root, "-o", tmp_path / "report.html").code == 0
    assert certkit("context", "init", root, "-o", tmp_path / "context.json").code == 0


TIMES = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.dates().map(str),
    st.datetimes(timezones=st.timezones()).map(lambda time: time.isoformat()),
    st.from_regex(
        r"\A[0-9]{4}-[01][0-9]-[0-3][0-9](T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2}))?\Z"
    ),
)


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES)
@example("0001-01-01T00:00:00+01:00", None)
@example("", "")
def test_any_text_is_a_time_in_microseconds_or_refused(start: str | None, end: str | None) -> None:
    try:
        period = base.validate(Period, {"from": start, "to": end}, code="bundle.manifest-invalid", where="m")
    except InputError:
        return
    assert [time is None for time in period.span] == [start is None, end is None]
    first, last = period.span
    assert first is None or last is None or first <= last
