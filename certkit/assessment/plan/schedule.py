"""A schedule of runs: how many under which condition in every domain, in how many clusters.

Domains are equal, and the runs of a cluster (a task, or a family of tasks) are spread over the conditions.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any, Final

from msgspec import Struct

from certkit.assessment.plan.demand import Of
from certkit.assessment.plan.power import Runs
from certkit.assessment.profile import Reading, exact
from certkit.errors import UsageError
from certkit.evidence.records.record import SINGLE_FAULTS, Condition
from certkit.evidence.records.schedule import EVEN_MIX, MAX_DOMAINS, NOMINAL_SHARE

MAX_ATTEMPT: Final = 1000
CLUSTER_SIZE: Final = 5
"""Runs under faults of one cluster, unless stated: one under each of the five conditions of [26]."""


class Design(Struct, frozen=True, kw_only=True):
    """What a schedule is made for.

    `mix` is the share of each condition among the fault runs, which are 80 % of all. Clusters have
    `cluster_size` runs under faults each, or there are `clusters` of them, however many the runs are.
    `power` is wanted of every row; `joint`: of all rows together.
    """

    reading: Reading
    domains: int = 5
    icc: float = 0.1
    power: float = 0.8
    joint: bool = False
    attempt: int = 1
    cluster_size: int | None = CLUSTER_SIZE
    clusters: int | None = None
    mix: dict[str, Fraction]

    def to_dict(self) -> dict[str, Any]:
        """Return the design as JSON values."""
        return {
            "reading": self.reading,
            "domains": self.domains,
            "icc": self.icc,
            "power": self.power,
            "joint": self.joint,
            "attempt": self.attempt,
            "cluster_size": self.cluster_size,
            "clusters": self.clusters,
            "nominal_share": NOMINAL_SHARE,
            "fault_mix": {name: float(share) for name, share in self.mix.items()},
        }


def design(
    reading: Reading,
    *,
    domains: int = 5,
    icc: float = 0.1,
    power: float = 0.8,
    joint: bool = False,
    attempt: int = 1,
    cluster_size: int | None = None,
    clusters: int | None = None,
    fault_mix: dict[str, float] | None = None,
) -> Design:
    """Return a design, `CLUSTER_SIZE` runs a cluster where neither size nor number of clusters is given.

    Raises `UsageError` ``usage.option`` for what cannot be.
    """
    faults = [str(condition) for condition in Condition if condition is not Condition.NOMINAL]
    mix = dict(EVEN_MIX if fault_mix is None else fault_mix)
    complaint = None
    if not 1 <= domains <= MAX_DOMAINS:
        complaint = f"domains: expected 1 to {MAX_DOMAINS}, found {domains}"
    elif not 0 <= icc < 1:
        complaint = f"icc: expected 0 to below 1, found {icc:g}"
    elif not 0 < power < 1:
        complaint = f"power: expected more than 0 and less than 1, found {power:g}"
    elif not 1 <= attempt <= MAX_ATTEMPT:
        complaint = f"attempt: expected 1 to {MAX_ATTEMPT:,}, found {attempt:,}"
    elif cluster_size is not None and clusters is not None:
        complaint = "cluster_size and clusters: one follows from the other, give one"
    elif cluster_size is not None and cluster_size < 1:
        complaint = f"cluster_size: expected 1 or more, found {cluster_size:,}"
    elif clusters is not None and clusters < domains:
        complaint = f"clusters: expected one per domain or more, found {clusters:,} for {domains} domains"
    else:
        complaint = _mix_complaint(mix, faults)
    if complaint:
        raise UsageError("usage.option", complaint)
    return Design(
        reading=reading,
        domains=domains,
        icc=icc,
        power=power,
        joint=joint,
        attempt=attempt,
        cluster_size=(cluster_size or CLUSTER_SIZE) if clusters is None else None,
        clusters=clusters,
        mix={name: exact(float(mix[name])) for name in faults if mix.get(name)},
    )


def _mix_complaint(mix: dict[str, float], faults: list[str]) -> str | None:
    if unknown := sorted(set(mix) - set(faults)):
        return f"fault_mix: {unknown[0]!r} is none of {', '.join(sorted(faults))}"
    if all(0 <= share <= 1 for share in mix.values()) and abs(sum(mix.values()) - 1) <= 1e-9:  # noqa: PLR2004
        return None
    listed = ", ".join(f"{name}={share:g}" for name, share in mix.items())
    return f"fault_mix: expected shares of at least 0 that sum to 1, found {listed}"


class Schedule(Struct, frozen=True, kw_only=True):
    """Runs per condition and clusters of each domain; `success` is the rate under faults, where expected."""

    domains: int
    icc: float
    per_domain: dict[str, int]
    clusters_per_domain: int
    success: Fraction | None = None

    @property
    def runs(self) -> int:
        """Runs in all."""
        return self.domains * sum(self.per_domain.values())

    @property
    def clusters(self) -> int:
        """Clusters in all."""
        return self.domains * self.clusters_per_domain

    def counted(self, of: Of) -> Runs | None:
        """Return the runs of a denominator and the clusters that hold them, None where there are none.

        Recoveries are those that the expected success gives.
        """
        n, clusters = self._number(of), self.clusters
        if of is Of.DOMAIN:
            clusters = self.clusters_per_domain
        return Runs(n=n, k=min(n, clusters), icc=self.icc) if n else None

    def _number(self, of: Of) -> int:
        cells = self.per_domain
        faults = sum(cells.values()) - cells[Condition.NOMINAL]
        if of is Of.DOMAIN:
            return faults
        if of is Of.RECOVERIES:
            return int(self.domains * faults * (self.success or 0))
        single = sum(cells.get(condition, 0) for condition in SINGLE_FAULTS)
        one = {
            Of.FAULT: faults,
            Of.ALL: sum(cells.values()),
            Of.NOMINAL: cells[Condition.NOMINAL],
            Of.ADVERSARIAL: cells.get(Condition.ADVERSARIAL, 0),
            Of.SINGLE: single,
            Of.CASCADE: cells.get(Condition.CASCADE, 0),
        }
        return self.domains * one[of]

    def to_dict(self) -> dict[str, Any]:
        """Return the schedule as JSON values."""
        return {
            "domains": self.domains,
            "per_domain": self.per_domain,
            "runs_per_domain": sum(self.per_domain.values()),
            "clusters_per_domain": self.clusters_per_domain,
            "total": {name: self.domains * runs for name, runs in self.per_domain.items()},
            "runs": self.runs,
            "clusters": self.clusters,
        }


def scheduled(of: Design, faults: int, success: Fraction | None) -> Schedule:
    """Return the schedule with at least `faults` runs under faults in every domain, every cell rounded up."""
    cells = {name: ceil(share * faults) for name, share in of.mix.items()}
    total = sum(cells.values())
    nominal = exact(NOMINAL_SHARE)
    if of.clusters is None:
        clusters = ceil(Fraction(total, of.cluster_size or CLUSTER_SIZE))
    else:
        clusters = min(of.clusters // of.domains, total)
    return Schedule(
        domains=of.domains,
        icc=of.icc,
        per_domain={str(Condition.NOMINAL): ceil(total * nominal / (1 - nominal)), **cells},
        clusters_per_domain=clusters,
        success=success,
    )
