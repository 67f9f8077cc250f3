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
from math import sqrt
from typing import TYPE_CHECKING, Any

from scipy import stats

from tests.support import naive, oracle, verdict_oracle
from tests.support.bound_laws import Groups, corrected, failure_free, limit, upper_difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Record = Mapping[str, Any]
    Value = Callable[[Record], Fraction | None]

SPANS = {"frr": (0, 1), "pei": (0, 1), "ti": (1, 5), "frr_2025": (0, 1), "pei_2025": (0, 1)}
ATTESTED_SPANS = {"transparency_index": (0, 1), "human_trust_score": (1, 5)}
DIFFERENCES = {"cascade_penalty", "gap"}
LESS = {"violations", "attack_success_rate"}
"""Metrics of which less is better, that are no differences."""
UNBOUNDED = {"csi", "posterior"}
"""Rows without a bounded mark: the index is provisional, and the posterior is the test of the success row."""


@dataclass(frozen=True)
class Reading:
    """One row at one tier; what does not apply is None."""

    status: str
    bound: float | None = None
    k: int | None = None


def family(run: Record) -> str:
    """Return the name of the cluster of a run."""
    return str(run.get("family") or run.get("cluster_id") or run["task_id"])


def grouped(runs: Iterable[Record], value: Value, span: tuple[int, int] = (0, 1)) -> Groups:
    """Return the sums by task (or family) of the runs that have a value."""
    values: dict[str, list[Fraction]] = defaultdict(list)
    for run in runs:
        found = value(run)
        if found is not None:
            values[family(run)].append(found)
    numbers = {name: len(listed) for name, listed in values.items()}
    return as_groups(numbers, {name: oracle.total(listed) for name, listed in values.items()}, span)


def as_groups(
    numbers: Mapping[str, int], sums: Mapping[str, Fraction], span: tuple[int, int] = (0, 1)
) -> Groups:
    low, high = map(Fraction, span)
    return Groups(tuple(numbers), tuple(numbers.values()), tuple(sums[name] for name in numbers), low, high)


# --- which runs stand behind a row -------------------------------------------------------------------


def success(run: Record) -> Fraction:
    return oracle.ONE if oracle.succeeded(run) else oracle.NOTHING


def _won(run: Record) -> Fraction | None:
    """Return whether the attack on a run succeeded, None where nobody said."""
    said = run.get("attack_succeeded")
    return None if said is None else Fraction(int(said))


def rig_to_success(run: Record) -> Fraction:
    return oracle.ONE if oracle.succeeded(run) or oracle.rig_failed(run) else oracle.NOTHING


def unless_rig(value: Value) -> Value:
    return lambda run: None if oracle.rig_failed(run) else value(run)


def efficiency(run: Record) -> Fraction | None:
    return oracle.planning_efficiency(run)


def traceability(run: Record) -> Fraction | None:
    return None if run.get("traceability") is None else oracle.exact(run["traceability"])


def capped_violations(run: Record) -> Fraction | None:
    """Return violations up to 5, where the planning index is 0 anyway: so many are bounded."""
    return None if run.get("violations") is None else Fraction(min(run["violations"], 5))


OF_OUTCOMES = {
    *(
        "r_op",
        "c_nom",
        "gap",
        "domain_min",
        "domain_min_nominal",
        "adversarial_resistance",
        "cascade_penalty",
        "cn_frr",
    ),
    *("frr", "irs", "frr_2025", "irs_2025", "pei", "pei_fault", "pei_2025"),
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
        self._parts: dict[str, list[Groups]] = {}

    def parts(self, metric: str) -> list[Groups]:
        """Return the task means that a row rests on, the same at every tier."""
        if metric not in self._parts:
            self._parts[metric] = self._found(metric)
        return self._parts[metric]

    def _found(self, metric: str) -> list[Groups]:
        if metric == "domain_min":
            return [part for part in self.domains(self.faults) if part.k]
        if metric == "domain_min_nominal":
            return [part for part in self.domains(self.nominal) if part.k]
        if metric in DIFFERENCES:
            return list(self.arms(metric))
        if metric == "violations":
            return [self.rate()]
        names = ["irs", "frr_2025"] if metric == "irs_2025" else [metric]
        return [self.mean(name) if name in SPANS else self.proportion(name) for name in names]

    def proportion(self, name: str) -> Groups:
        if name == "r_op":
            return grouped(self.faults, success)
        if name == "cn_frr":
            return grouped(self.faults, lambda run: Fraction(int(run["outcome"] in {"success", "safe_halt"})))
        if name == "c_nom":
            return grouped(self.nominal, success)
        if name == "irs":
            return grouped(filter(oracle.is_recovery, self.faults), self._intentional)
        if name == "adversarial_resistance":
            return grouped(oracle.attacked(self.records), oracle.resisted)
        if name == "attack_success_rate":
            silent = all(oracle.landed(run) is None for run in self.records)
            runs = [run for run in self.records if silent or oracle.landed(run)]
            return grouped(runs, _won)
        raise KeyError(name)

    def _intentional(self, run: Record) -> Fraction | None:
        guided = oracle.intentional(run, observable=self.observable)
        return None if guided is None else Fraction(int(guided))

    def mean(self, name: str) -> Groups:
        held = [run for run in self.faults if run.get("fault_took_hold") is not False]
        if name == "frr":
            return grouped(held, unless_rig(oracle.grade))
        if name == "frr_2025":
            return grouped(self.faults, unless_rig(oracle.grade_2025))
        value = {"pei": efficiency, "ti": traceability, "pei_2025": oracle.efficiency_2025}[name]
        return grouped(self.records, unless_rig(value), SPANS[name])

    def rate(self) -> Groups:
        return grouped(self.records, unless_rig(capped_violations), (0, 5))

    def domains(self, runs: list[Record]) -> list[Groups]:
        names = sorted({run["domain"] for run in self.records})
        return [grouped((run for run in runs if run["domain"] == name), success) for name in names]

    def arms(self, metric: str) -> tuple[Groups, Groups]:
        """Return the runs of the two rates whose difference is bounded from above."""
        if metric == "gap":
            return grouped(self.nominal, success), grouped(self.faults, success)
        single = [run for run in self.faults if run["condition"] in oracle.SINGLE_CONDITIONS]
        cascade = [run for run in self.faults if run["condition"] == "cascade"]
        return grouped(single, rig_to_success), grouped(cascade, success)


# --- rows ---------------------------------------------------------------------------------------------


def read(
    records: Iterable[Record],
    manifest: Mapping[str, Any],
    profile: Mapping[str, Any],
    statuses: Mapping[tuple[str, int], str] | None = None,
) -> dict[tuple[str, int], Reading | None]:
    """Return the bounded reading of every row at every tier, None where the row has no bounded mark.

    `statuses` are the rows' statuses by averages, where they are known.
    """
    listed = list(records)
    evidence = Evidence(listed, manifest)
    if statuses is None:
        statuses = verdict_oracle.judge(listed, manifest, profile).statuses
    return {
        (row["id"], tier): _Row(evidence, profile, row, tier).read(statuses[row["id"], tier])
        for row in profile["criteria"]
        for tier in verdict_oracle.TIERS
    }


class _Row:
    """One row at one tier, with the rules that it is bounded by."""

    def __init__(
        self, evidence: Evidence, profile: Mapping[str, Any], row: Mapping[str, Any], tier: int
    ) -> None:
        self.evidence, self.row, self.tier = evidence, row, tier
        self.metric = row["metric"]
        self.threshold = verdict_oracle.threshold_of(row, tier) or Fraction(0)
        stated = Fraction(profile["tiers"][str(tier)].get("confidence", Decimal("0.95")))
        self.confidence = corrected(stated, evidence.attempt)
        self.level = float(self.confidence)

    def read(self, table: str) -> Reading | None:
        if self.metric in UNBOUNDED or verdict_oracle.threshold_of(self.row, self.tier) is None:
            return None
        operator = verdict_oracle.operator_of(self.row, self.tier)
        if table in {"not_tested", "insufficient"} or operator == "is":
            return Reading(table)
        if operator == ">=" and self.threshold == 1 and self.metric not in {"violations", "ti"}:
            return Reading(table)  # asked of every run: no bound reaches it
        if self.evidence.unlabelled and self.metric in OF_OUTCOMES:
            return Reading("insufficient")
        if self.metric in ATTESTED_SPANS:
            bound, k = self._attested()
        else:
            parts = self.evidence.parts(self.metric)
            k = min(part.k for part in parts)
            enough = k >= self._least(parts[0])
            bound = self._bound(parts) if enough and self.evidence.independent else None
        if bound is None:
            return Reading("insufficient", k=k)
        asked = float(self.threshold)
        holds = {">": bound > asked, ">=": bound >= asked, "<": bound < asked, "<=": bound <= asked}[operator]
        return Reading("met" if table == "met" and holds else "not_met", bound, k)

    def _tau(self, part: Groups) -> Fraction:
        """Return the threshold in 0…1, 1 best."""
        up = (self.threshold - part.low) / part.span
        return 1 - up if self.metric in LESS else up

    def _least(self, part: Groups) -> int:
        """Return the number of tasks, in each part, at which flawless ones would pass."""
        if self.metric in DIFFERENCES:
            return failure_free(1 - self.threshold / 100, self.confidence, single=False)
        if self.metric == "irs_2025":
            return failure_free(Fraction(sqrt(self.threshold)), (1 + self.confidence) / 2, single=False)
        return failure_free(self._tau(part), self.confidence)

    def _bound(self, parts: list[Groups]) -> float:
        first, second = parts[0], parts[-1]
        if self.metric == "irs_2025":
            half = (1 + self.level) / 2
            return limit(first, half, lower=True) * limit(second, half, lower=True)
        if self.metric in DIFFERENCES:
            return 100 * upper_difference(first, second, self.level)
        lower = self.metric not in LESS
        return min(limit(part, self.level, lower=lower, tau=self._tau(part)) for part in parts)

    def _attested(self) -> tuple[float | None, int | None]:
        item = next(item for item in self.evidence.manifest["attested"] if item["id"] == self.metric)
        n = item.get("n")
        low, high = ATTESTED_SPANS[self.metric]
        asked = (self.threshold - low) / (high - low)
        if n is None or n < failure_free(asked, self.confidence, single=False):
            return None, n
        x = float((oracle.exact(item["value"]) - low) / (high - low))
        law = stats.beta(1 + n * x, 1 + n * (1 - x))
        return low + (high - low) * float(law.ppf(1 - self.level)), n
