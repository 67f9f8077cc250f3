"""A second, independent bounded reading: every row held with its tier's confidence, clusters respected.

Written from the design (statistics, "The bounded reading") on raw records and a profile's TOML, with the
bounds of `tests.support.bound_laws`; imports nothing of certkit. The table reading, which a bounded row can
only take away from, is that of `tests.support.verdict_oracle`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import expm1, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from tests.support import naive, oracle, verdict_oracle
from tests.support.bound_laws import (
    Groups,
    bernoulli_worth,
    beta,
    corrected,
    failure_free,
    log_evidence,
    lower_at_any_time,
    lower_mean,
    lower_proportion,
    upper_difference,
    upper_rate,
    upper_rate_at_any_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Record = Mapping[str, Any]
    Value = Callable[[Record], Fraction | None]

SPANS = {"frr": (0, 1), "pei": (0, 1), "ti": (1, 5), "frr_2025": (0, 1), "pei_2025": (0, 1)}
ATTESTED_SPANS = {"transparency_index": (0, 1), "human_trust_score": (1, 5)}
LEAST = 10
"""Clusters below which nothing is bounded."""

LEAST_RUNS, LEAST_RECOVERIES = 500, 5


@dataclass(frozen=True)
class Reading:
    """One row at one tier; what does not apply is None."""

    status: str
    bound: float | None = None
    n_eff: float | None = None
    clusters: int | None = None


def family(run: Record) -> str:
    """Return the name of the cluster of a run."""
    return str(run.get("family") or run.get("cluster_id") or run["task_id"])


def grouped(runs: Iterable[Record], value: Value, span: tuple[int, int] = (0, 1)) -> Groups:
    """Return the sums by cluster of the runs that have a value."""
    numbers: dict[str, int] = defaultdict(int)
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for run in runs:
        found = value(run)
        if found is not None:
            numbers[family(run)] += 1
            sums[family(run)] += found
    return Groups(tuple(numbers.values()), tuple(sums.values()), Fraction(span[0]), Fraction(span[1]))


# --- which runs stand behind a row -------------------------------------------------------------------


def success(run: Record) -> Fraction:
    return Fraction(int(oracle.succeeded(run)))


def rig_to_success(run: Record) -> Fraction:
    return Fraction(int(oracle.succeeded(run) or oracle.rig_failed(run)))


def unless_rig(value: Value) -> Value:
    return lambda run: None if oracle.rig_failed(run) else value(run)


def efficiency(run: Record) -> Fraction | None:
    return oracle.planning_efficiency(run)


def traceability(run: Record) -> Fraction | None:
    return None if run.get("traceability") is None else oracle.exact(run["traceability"])


def violations(run: Record) -> Fraction | None:
    return None if run.get("violations") is None else Fraction(run["violations"])


class Evidence:
    """The clusters behind every row of some records."""

    def __init__(self, records: Iterable[Record], manifest: Mapping[str, Any]) -> None:
        listed = list(records)
        named = zip(listed, naive.families(listed), strict=True)
        self.records = oracle.standard([{**run, "family": family} for run, family in named])
        self.faults = oracle.faulty(self.records)
        self.nominal = [run for run in self.records if run["condition"] == "nominal"]
        self.observable = manifest["protocol"].get("memory_observable") is True
        self.manifest = manifest
        self.attempt = manifest["protocol"].get("attempt") or 1

    def proportion(self, name: str) -> Groups:
        if name in {"r_op", "posterior"}:
            return grouped(self.faults, success)
        if name == "c_nom":
            return grouped(self.nominal, success)
        if name == "irs":
            return grouped(filter(oracle.is_recovery, self.faults), self._intentional)
        if name == "adversarial_resistance":
            return grouped(self._attacked(), success)
        raise KeyError(name)

    def _intentional(self, run: Record) -> Fraction | None:
        guided = oracle.intentional(run, observable=self.observable)
        return None if guided is None else Fraction(int(guided))

    def _attacked(self) -> list[Record]:
        runs = [run for run in self.records if run["condition"] == "adversarial"]
        if all(run.get("attack_landed") is None for run in runs):
            return runs
        hopeless = [run for run in runs if run.get("attack_landed") is None and oracle.rig_failed(run)]
        return [run for run in runs if run.get("attack_landed") is True] + hopeless

    def mean(self, name: str) -> Groups:
        held = [run for run in self.faults if run.get("fault_took_hold") is not False]
        if name == "frr":
            return grouped(held, unless_rig(oracle.grade))
        if name == "frr_2025":
            return grouped(self.faults, unless_rig(oracle.grade_2025))
        value = {"pei": efficiency, "ti": traceability, "pei_2025": oracle.efficiency_2025}[name]
        if name == "ti":
            return grouped(self.records, unless_rig(value), SPANS[name])
        return millionths(self.records, unless_rig(value))

    def rate(self) -> Groups:
        return grouped(self.records, unless_rig(violations))

    def domains(self) -> list[Groups]:
        names = sorted({run["domain"] for run in self.records})
        return [grouped((run for run in self.faults if run["domain"] == name), success) for name in names]

    def arms(self, metric: str) -> tuple[Groups, Groups]:
        """Return the runs of the two rates whose difference is bounded from above."""
        if metric == "gap":
            return grouped(self.nominal, success), grouped(self.faults, success)
        single = [run for run in self.faults if run["condition"] in oracle.SINGLE_CONDITIONS]
        cascade = [run for run in self.faults if run["condition"] == "cascade"]
        return grouped(single, rig_to_success), grouped(cascade, success)


def millionths(runs: Iterable[Record], value: Value) -> Groups:
    """Return sums by cluster, kept in millionths per domain, condition and task as the summary keeps them."""
    cells: dict[tuple[str, ...], list[Fraction]] = defaultdict(list)
    for run in runs:
        found = value(run)
        if found is not None:
            cells[family(run), run["domain"], run["condition"], run["task_id"]].append(found)
    numbers: dict[str, int] = defaultdict(int)
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for name, values in cells.items():
        numbers[name[0]] += len(values)
        sums[name[0]] += half_up(sum(values, Fraction(0)), 10**6)
    return Groups(tuple(numbers.values()), tuple(sums.values()))


def half_up(value: Fraction, unit: int) -> Fraction:
    """Return a number rounded to a multiple of 1/unit."""
    return Fraction((2 * value.numerator * unit + value.denominator) // (2 * value.denominator), unit)


# --- the windowed index -------------------------------------------------------------------------------


def csi_windowed(records: Sequence[Record], *, observable: bool) -> tuple[str, float | None]:
    """Return the state and value of certkit's index over ten windows of all ordered runs."""
    ordered = oracle.in_order(records)
    if ordered is None or len(ordered) < LEAST_RUNS:
        return "unmeasured", None
    n = len(ordered)
    windows = [ordered[n * i // 10 : n * (i + 1) // 10] for i in range(10)]
    found = [[oracle.planning_efficiency(run) for run in window] for window in windows]
    asked = [
        [oracle.intentional(run, observable=observable) for run in window if oracle.is_recovery(run)]
        for window in windows
    ]
    efficiencies = [[float(value) for value in window if value is not None] for window in found]
    guided = [[float(value) for value in window if value is not None] for window in asked]
    if min(map(len, guided)) < LEAST_RECOVERIES or min(map(len, efficiencies)) < 2:
        return "unmeasured", None
    broken = [run["outcome"] == "harness_error" for run in ordered]
    lacking = any(
        value is None and run["outcome"] != "harness_error"
        for window, values in zip(windows, found, strict=True)
        for run, value in zip(window, values, strict=True)
    )
    partial = lacking or any(None in window for window in asked) or 100 * sum(broken) > n
    failed = [0.0 if oracle.succeeded(run) else 1.0 for run in ordered]
    drop = 0.0
    if len(set(failed)) > 1:
        line = stats.linregress(np.arange(n), failed, alternative="greater")
        drop = min(1.0, (n - 1) * max(0.0, float(line.slope))) if line.pvalue < 0.05 else 0.0
    value = (1 - min(1.0, 4 * pei_sigma(efficiencies))) * (1 - min(1.0, 4 * irs_sigma(guided))) * (1 - drop)
    return "partial" if partial else "measured", value


def pei_sigma(windows: list[list[float]]) -> float:
    if all(max(window) == min(window) for window in windows):
        same = max(map(max, windows)) == min(map(min, windows))
        p = 1.0 if same else 0.0
    else:
        p = stats.f_oneway(*windows).pvalue
    return between(windows) if p < 0.05 else 0.0


def irs_sigma(windows: list[list[float]]) -> float:
    yes = [sum(window) for window in windows]
    no = [len(window) - sum(window) for window in windows]
    if not sum(yes) or not sum(no):
        return 0.0
    p = stats.chi2_contingency([yes, no], correction=False).pvalue
    return between(windows) if p < 0.05 else 0.0


def between(windows: list[list[float]]) -> float:
    """Return the spread of the window means beyond what the spread inside the windows explains."""
    means = [float(np.mean(window)) for window in windows]
    inside = [float(np.var(window, ddof=1)) / len(window) for window in windows]
    return sqrt(max(0.0, float(np.var(means, ddof=1)) - float(np.mean(inside))))


# --- rows ---------------------------------------------------------------------------------------------


def read(
    records: Iterable[Record], manifest: Mapping[str, Any], profile: Mapping[str, Any]
) -> dict[tuple[str, int], Reading]:
    """Return the bounded reading of every row at every tier."""
    listed = list(records)
    evidence = Evidence(listed, manifest)
    known = [row for row in profile["criteria"] if row["metric"] != "csi_windowed"]
    table = verdict_oracle.judge(listed, manifest, {**profile, "criteria": known}).statuses
    return {
        (row["id"], tier): _Row(evidence, profile, row, tier).read(table.get((row["id"], tier), ""))
        for row in profile["criteria"]
        for tier in verdict_oracle.TIERS
    }


@dataclass(frozen=True)
class _Found:
    """A bound, or (bound None) too few clusters for one."""

    bound: float | None
    n_eff: float | None
    clusters: int


class _Row:
    """One row at one tier, with the rules that it is bounded by."""

    def __init__(
        self, evidence: Evidence, profile: Mapping[str, Any], row: Mapping[str, Any], tier: int
    ) -> None:
        self.evidence, self.profile, self.row, self.tier = evidence, profile, row, tier
        self.metric = row["metric"]
        self.threshold = verdict_oracle.threshold_of(row, tier) or Fraction(0)
        self.icc0 = float(profile.get("icc0", 1))
        stated = Fraction(profile["tiers"][str(tier)].get("confidence", Decimal("0.95")))
        self.confidence = corrected(stated, evidence.attempt)
        self.level = float(self.confidence)
        self.anytime = profile.get("stopping") == "anytime"

    def read(self, table: str) -> Reading:
        if verdict_oracle.threshold_of(self.row, self.tier) is None:
            return Reading("not_applicable")
        operator = verdict_oracle.operator_of(self.row, self.tier)
        if self.metric in {"csi", "csi_windowed"}:
            return self._windowed(operator, table)
        if table in {"not_tested", "insufficient"} or operator == "is":
            return Reading(table)
        if operator == ">=" and self.threshold == 1 and self.metric not in {"violations", "ti"}:
            return Reading(table)  # asked of every run: no bound reaches it
        found = self._bound()
        if found is None or found.bound is None:
            return Reading("insufficient", clusters=None if found is None else found.clusters)
        bound = found.bound
        asked = float(max(self.threshold, self.confidence) if self.metric == "posterior" else self.threshold)
        holds = {">": bound > asked, ">=": bound >= asked, "<": bound < asked, "<=": bound <= asked}[operator]
        status = "met" if table == "met" and holds else "not_met"
        return Reading(status, bound, found.n_eff, found.clusters)

    def _windowed(self, operator: str, table: str) -> Reading:
        if self.metric == "csi" and table == "not_tested":
            return Reading("not_tested")
        state, value = csi_windowed(self.evidence.records, observable=self.evidence.observable)
        if value is None:
            return Reading("insufficient" if self.metric == "csi" else "not_tested")
        if state == "partial":
            return Reading("insufficient")
        held = value >= float(self.threshold) if operator == ">=" else value > float(self.threshold)
        return Reading("met" if held else "not_met")

    def _bound(self) -> _Found | None:
        if self.metric in ATTESTED_SPANS:
            return self._attested()
        if self.metric == "posterior":
            return self._posterior()
        if self.metric == "domain_min":
            return self._domains()
        if self.metric in {"cascade_penalty", "gap"}:
            return self._difference()
        if self.metric == "violations":
            groups = self.evidence.rate()
            if groups.equal < LEAST - 0.5:
                return _Found(None, None, groups.k)
            upper = upper_rate_at_any_time if self.anytime else upper_rate
            return _Found(*upper(groups, self.level, self.icc0), groups.k)
        if self.metric == "irs_2025":
            return self._product()
        return self._mean(self._groups(self.metric), self.level, self.threshold, robust=self.metric in SPANS)

    def _groups(self, metric: str) -> Groups:
        return self.evidence.mean(metric) if metric in SPANS else self.evidence.proportion(metric)

    def _mean(
        self, groups: Groups, level: float, threshold: Fraction | None = None, *, robust: bool = False
    ) -> _Found:
        if self.anytime:
            bound = lower_at_any_time(groups, level)
            return _Found(float(groups.low) + float(groups.high - groups.low) * bound, None, groups.k)
        least = LEAST
        if threshold is not None:
            scaled = (threshold - groups.low) / (groups.high - groups.low)
            least = max(LEAST, failure_free(scaled, self.confidence))
        if groups.equal < least - 0.5:
            return _Found(None, None, groups.k)
        bound, n_eff = (lower_mean if robust else lower_proportion)(groups, level, self.icc0)
        return _Found(bound, n_eff, groups.k)

    def _posterior(self) -> _Found:
        row = next(item for item in self.profile["criteria"] if item["metric"] == "r_op")
        tau = verdict_oracle.threshold_of(row, self.tier)
        assert tau is not None
        groups = self.evidence.proportion("posterior")
        if self.anytime:
            evidence = log_evidence(groups, float(tau))
            return _Found(max(0.0, -expm1(-evidence)), None, groups.k)
        if groups.equal < max(LEAST, failure_free(tau, self.confidence)) - 0.5:
            return _Found(None, None, groups.k)
        p, n_eff = bernoulli_worth(groups, self.level, self.icc0)
        return _Found(float(beta(p, n_eff).sf(float(tau))), n_eff, groups.k)

    def _domains(self) -> _Found:
        found = [self._mean(groups, self.level) for groups in self.evidence.domains()]
        small = [part for part in found if part.bound is None]
        return small[0] if small else min(found, key=lambda part: part.bound or 0.0)

    def _difference(self) -> _Found:
        left, right = self.evidence.arms(self.metric)
        k = min(left.k, right.k)
        if self.anytime:
            half = 1 - (1 - self.level) / 2
            high = 1 - lower_at_any_time(left, half, mirrored=True)
            return _Found(100 * (high - lower_at_any_time(right, half)), None, k)
        if min(left.equal, right.equal) < LEAST - 0.5:
            return _Found(None, None, k)
        bound, n_eff = upper_difference(left, right, self.level, self.icc0)
        return _Found(100 * bound, n_eff, k)

    def _product(self) -> _Found:
        half = float(1 - (1 - self.confidence) / 2)
        memory, grades = self._groups("irs"), self._groups("frr_2025")
        parts = self._mean(memory, half), self._mean(grades, half, robust=True)
        for part in parts:
            if part.bound is None:
                return part
        left, right = (max(0.0, part.bound or 0.0) for part in parts)
        worths = [part.n_eff for part in parts if part.n_eff is not None]
        return _Found(left * right, min(worths, default=None), min(memory.k, grades.k))

    def _attested(self) -> _Found | None:
        item = next(item for item in self.evidence.manifest["attested"] if item["id"] == self.metric)
        n = item.get("n")
        if n is None:
            return None
        low, high = ATTESTED_SPANS[self.metric]
        scaled = (self.threshold - low) / (high - low)
        if n < max(LEAST, failure_free(scaled, self.confidence)):
            return _Found(None, None, n)
        p = float((oracle.exact(item["value"]) - low) / (high - low))
        return _Found(low + (high - low) * float(beta(p, n).isf(self.level)), float(n), n)
