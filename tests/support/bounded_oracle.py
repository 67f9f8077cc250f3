"""A second, independent bounded reading: every row held with its tier's confidence, tasks respected.

Written from the design (statistics, "One rule for every row") on raw records and a profile's TOML, with the
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
    above,
    at_any_time,
    corrected,
    failure_free,
    limit,
    log_evidence,
    upper_difference,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Record = Mapping[str, Any]
    Value = Callable[[Record], Fraction | None]

SPANS = {"frr": (0, 1), "pei": (0, 1), "ti": (1, 5), "frr_2025": (0, 1), "pei_2025": (0, 1)}
ATTESTED_SPANS = {"transparency_index": (0, 1), "human_trust_score": (1, 5)}
LEAST_RUNS, LEAST_RECOVERIES = 500, 5


@dataclass(frozen=True)
class Reading:
    """One row at one tier; what does not apply is None."""

    status: str
    bound: float | None = None
    k: int | None = None


def family(run: Record) -> str:
    """Return the name of the cluster of a run."""
    return str(run.get("family") or run.get("cluster_id") or run["task_id"])


def grouped(runs: Iterable[Record], value: Value, span: tuple[int, int | None] = (0, 1)) -> Groups:
    """Return the sums by task (or family) of the runs that have a value."""
    numbers: dict[str, int] = defaultdict(int)
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for run in runs:
        found = value(run)
        if found is not None:
            numbers[family(run)] += 1
            sums[family(run)] += found
    return as_groups(numbers, sums, span)


def as_groups(
    numbers: Mapping[str, int], sums: Mapping[str, Fraction], span: tuple[int, int | None] = (0, 1)
) -> Groups:
    low, high = Fraction(span[0]), None if span[1] is None else Fraction(span[1])
    return Groups(tuple(numbers), tuple(numbers.values()), tuple(sums[name] for name in numbers), low, high)


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


OF_OUTCOMES = {
    "r_op",
    "posterior",
    "c_nom",
    "gap",
    "domain_min",
    "adversarial_resistance",
    "cascade_penalty",
} | {
    *("frr", "irs", "cn_frr", "frr_2025", "irs_2025", "pei", "pei_fault", "pei_2025"),
}
"""Metrics that count successes; in `pei` a short run is worth nothing where it failed."""


class Evidence:
    """The tasks behind every row of some records."""

    def __init__(self, records: Iterable[Record], manifest: Mapping[str, Any]) -> None:
        listed = list(records)
        protocol = manifest["protocol"]
        declared = protocol.get("tasks_independent") is True
        # A model gave the outcomes, and these bundles hold no labels by a person.
        self.unlabelled = protocol.get("methodology") == "independent_judge" or (
            protocol.get("judge") is not None and protocol.get("methodology") != "trajectory"
        )
        self.independent = declared or all(run.get("cluster_id") for run in listed)
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
        if all(oracle.landed(run) is None for run in runs):
            return runs
        hopeless = [run for run in runs if oracle.landed(run) is None and oracle.rig_failed(run)]
        return [run for run in runs if oracle.landed(run)] + hopeless

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
        return grouped(self.records, unless_rig(violations), (0, None))

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
    return as_groups(numbers, sums)


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


class _Row:
    """One row at one tier, with the rules that it is bounded by."""

    def __init__(
        self, evidence: Evidence, profile: Mapping[str, Any], row: Mapping[str, Any], tier: int
    ) -> None:
        self.evidence, self.profile, self.row, self.tier = evidence, profile, row, tier
        self.metric = row["metric"]
        self.threshold = verdict_oracle.threshold_of(row, tier) or Fraction(0)
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
        if self.evidence.unlabelled and self.metric in OF_OUTCOMES:
            return Reading("insufficient")
        if self.metric in ATTESTED_SPANS:
            bound, k = self._attested()
        else:
            parts = self._parts()
            k = min(part.k for part in parts)
            enough = self.anytime or k >= self._least(parts[0])
            bound = self._bound(parts) if enough and self.evidence.independent else None
        if bound is None:
            return Reading("insufficient", k=k)
        asked = float(max(self.threshold, self.confidence) if self.metric == "posterior" else self.threshold)
        holds = {">": bound > asked, ">=": bound >= asked, "<": bound < asked, "<=": bound <= asked}[operator]
        return Reading("met" if table == "met" and holds else "not_met", bound, k)

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

    def _parts(self) -> list[Groups]:
        """Return the task means that the row rests on."""
        if self.metric == "domain_min":
            return [part for part in self.evidence.domains() if part.k]
        if self.metric in {"cascade_penalty", "gap"}:
            return list(self.evidence.arms(self.metric))
        if self.metric == "violations":
            return [self.evidence.rate()]
        names = ["irs", "frr_2025"] if self.metric == "irs_2025" else [self.metric]
        return [
            self.evidence.mean(name) if name in SPANS else self.evidence.proportion(name) for name in names
        ]

    def _tau(self) -> Fraction:
        row = next(item for item in self.profile["criteria"] if item["metric"] == "r_op")
        return verdict_oracle.threshold_of(row, self.tier) or Fraction(0)

    def _least(self, part: Groups) -> int:
        """Return the number of tasks, in each part, at which flawless ones would pass."""
        if self.metric == "posterior":
            return failure_free(self._tau(), max(self.threshold, self.confidence))
        if self.metric in {"cascade_penalty", "gap"}:
            return failure_free(1 - self.threshold / 100, self.confidence)
        if self.metric == "violations":
            return failure_free(1 - self.threshold / 5, self.confidence)
        if self.metric == "irs_2025":
            return failure_free(Fraction(sqrt(self.threshold)), (1 + self.confidence) / 2)
        return failure_free((self.threshold - part.low) / part.span, self.confidence)

    def _bound(self, parts: list[Groups]) -> float:
        first, second = parts[0], parts[-1]
        half = (1 + self.level) / 2
        rule = at_any_time if self.anytime else limit
        if self.metric == "posterior":
            s, n = int(sum(first.sums)), sum(first.runs)
            tau = float(self._tau())
            chance = above(first, tau)
            if self.anytime:
                chance = min(chance, max(0.0, -expm1(-log_evidence(first.best(lower=True), tau))))
            return min(chance, float(stats.beta(1 + s, 1 + n - s).sf(tau)))
        if self.metric == "irs_2025":
            return rule(first, half, lower=True) * rule(second, half, lower=True)
        if self.metric in {"cascade_penalty", "gap"}:
            highest = 100 * upper_difference(first, second, self.level)
            if self.anytime:
                apart = rule(first, half, lower=False) - rule(second, half, lower=True)
                return max(highest, 100 * apart)
            return highest
        return min(rule(part, self.level, lower=self.metric != "violations") for part in parts)

    def _attested(self) -> tuple[float | None, int | None]:
        item = next(item for item in self.evidence.manifest["attested"] if item["id"] == self.metric)
        n = item.get("n")
        low, high = ATTESTED_SPANS[self.metric]
        if n is None or n < failure_free((self.threshold - low) / (high - low), self.confidence):
            return None, n
        x = float((oracle.exact(item["value"]) - low) / (high - low))
        law = stats.beta(1 + n * x, 1 + n * (1 - x))
        return low + (high - low) * float(law.ppf(1 - self.level)), n
