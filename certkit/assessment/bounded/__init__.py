"""The bounded reading: every row of the table must hold with the confidence of its tier, clusters respected.

The table reading compares point estimates with thresholds. This one compares the bound that the truth
passes with confidence δ: the tier's own, raised for every attempt after the first. A row that the table
reading does not meet is never met here.

- Proportions: the Beta posterior on the effective number of runs.
- Means of bounded scores: the worse of the cluster-robust t bound and the Beta bound.
- Violations: the worse of the t bound and the Gamma bound. Differences: the posterior of the difference,
  arms as if they shared no task, which is conservative where they do.
- The weakest domain: a bound per domain, the worst of them. Consistency: `csi_windowed` as it is; no bound
  of it is known.
- Attested numbers: the Beta bound on the n that is stated. Yes-or-no rows, and rows asked of every run, which
  no bound reaches: as the table reads them.

With ``stopping = "anytime"`` in the profile the bounds are those of `certkit.assessment.bounded.anytime`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, structs

from certkit.assessment.bounded import anytime, bounds
from certkit.assessment.criteria import Bounded, Row, Status, passes
from certkit.assessment.findings.findings import runs
from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.assessment.metrics.metrics_2025 import ATTESTED
from certkit.assessment.metrics.series import METRICS, Grouped, Series, Totals, grouped, series, totals
from certkit.assessment.rater_error.labels import OF_OUTCOMES, unlabelled

if TYPE_CHECKING:
    from certkit.assessment.metrics.metric import Metric
    from certkit.assessment.metrics.view import View
    from certkit.assessment.profile import Profile

MEANS: Final = {"frr", "pei", "pei_fault", "ti", "frr_2025", "pei_2025"}
"""Metrics that are means of bounded scores."""
ARMS: Final = {"cascade_penalty": ("single", "cascade"), "gap": ("c_nom", "r_op")}
"""Metrics that are the success of one arm minus that of another, and the series of the two."""
_POINTS: Final = {"csi", "csi_windowed"}
_PP: Final = 100
HALF: Final = 0.5
"""What clusters of nearly one size may be worth less than the number that is needed."""


class Found(Struct, frozen=True, kw_only=True):
    """A bound in the metric's unit and how it was got, or the reason why there is none."""

    bound: float | None = None
    method: str | None = None
    clusters: int | None = None
    n_eff: float | None = None
    reason: str | None = None


class Clustered(Struct, frozen=True, kw_only=True, eq=False):
    """A series with its clusters and sums; `sums` is None where no run carries it."""

    of: Series
    clusters: Grouped
    sums: Totals | None

    def scaled(self, threshold: Fraction) -> Fraction:
        """Return a threshold on the scale 0 to 1."""
        low, span = self.of.ends
        return (threshold * self.of.scale - low) / span

    def unscaled(self, value: float) -> float:
        """Return a value on the scale 0 to 1 in the metric's unit."""
        low, span = self.of.ends
        return (low + value * span) / self.of.scale


class Reader:
    """Judges rows by bounds; holds what several rows rest on."""

    def __init__(self, view: View, profile: Profile, metrics: dict[str, Metric]) -> None:
        self._view, self._profile, self._metrics = view, profile, metrics
        self._known: dict[str, Clustered] = {}
        self.attempt = view.manifest.protocol.attempt or 1
        self._anytime = profile.stopping == "anytime"
        self._unlabelled = unlabelled(view.summary.calibration, view.manifest.protocol)

    def read(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """Return the rows with their bounded reading."""
        return tuple(structs.replace(row, bounded=self.judge(row)) for row in rows)

    def confidence(self, tier: int) -> Fraction:
        """Return the confidence that a row of `tier` must hold with, at this attempt."""
        return bounds.corrected(self._profile.confidence(tier), self.attempt)

    def judge(self, row: Row) -> Bounded | None:
        """Return the bounded reading of a row, None where the tier does not specify it."""
        if row.threshold is None or row.operator is None:
            return None
        confidence = self.confidence(row.tier)
        if row.metric.id in _POINTS and row.status is not Status.NOT_TESTED:
            return self._point(row, confidence)
        if row.status in {Status.NOT_TESTED, Status.INSUFFICIENT}:
            return Bounded(status=row.status, confidence=float(confidence), reason=row.reason)
        if row.metric.unit is Unit.BOOLEAN:
            return Bounded(status=row.status, confidence=float(confidence), method="attested, no bound")
        if of_every_run(row):
            return Bounded(status=row.status, confidence=float(confidence), method="every run, no bound")
        if self._unlabelled and row.metric.id in OF_OUTCOMES:
            return Bounded(status=Status.INSUFFICIENT, confidence=float(confidence), reason=self._unlabelled)
        found = self._bound(row, row.threshold, confidence)
        status = Status.INSUFFICIENT
        if found.bound is not None:
            status = Status.NOT_MET
            if row.status is Status.MET and self._holds(row, found.bound, confidence):
                status = Status.MET
        return Bounded(
            status=status,
            bound=found.bound,
            confidence=float(confidence),
            method=found.method,
            clusters=found.clusters,
            n_eff=found.n_eff,
            reason=found.reason,
        )

    def _holds(self, row: Row, bound: float, confidence: Fraction) -> bool:
        assert row.threshold is not None  # noqa: S101 - rows without one are not judged
        assert row.operator is not None  # noqa: S101 - the same
        if row.metric.id == "posterior":
            return bound > max(row.threshold, confidence)
        return passes(bound, row.operator, row.threshold)

    def _point(self, row: Row, confidence: Fraction) -> Bounded:
        """Judge consistency by the windowed index, which has no bound."""
        metric = self._metrics["csi_windowed"]
        judged = row.judged_by(metric)
        value = "" if metric.value is None else f" {float(metric.value):.4f}"
        return Bounded(
            status=Status.INSUFFICIENT if judged.status is Status.NOT_TESTED else judged.status,
            confidence=float(confidence),
            method=f"csi_windowed{value}, no bound",
            reason=judged.reason,
        )

    def clustered(self, metric: str) -> Clustered:
        """Return a series of all domains with its sums."""
        if metric not in self._known:
            observable = self._view.manifest.protocol.memory_observable is True
            of = series(self._view.summary, metric, memory_observable=observable)
            clusters = grouped(self._view.summary, of)
            self._known[metric] = Clustered(of=of, clusters=clusters, sums=totals(of, clusters).get(0))
        return self._known[metric]

    def _bound(self, row: Row, threshold: Fraction, confidence: Fraction) -> Found:
        name, lower = row.metric.id, row.operator in {">", ">="}
        if name == "posterior":
            return self._posterior(self._profile.tau[row.tier], confidence)
        if name == "domain_min":
            return self._domains(confidence)
        if name == "irs_2025":
            return self._product(("irs", "frr_2025"), confidence)
        if name in ARMS:
            return self._difference(*ARMS[name], confidence)
        if name in ATTESTED:
            return self._attested(row.metric, threshold, confidence, lower=lower)
        if name not in METRICS:
            return Found(reason=f"no bound is defined for {name}")
        data = self.clustered(name)
        if name == "violations":
            return self._rate(data, confidence)
        return self._share(data, threshold, confidence, lower=lower, mean=name in MEANS)

    def _share(
        self,
        data: Clustered,
        threshold: Fraction | None,
        confidence: Fraction,
        *,
        lower: bool,
        mean: bool = False,
    ) -> Found:
        """Bound a proportion or a mean of bounded scores; `threshold` sets how many clusters it takes."""
        sums, delta = data.sums, float(confidence)
        if sums is None:
            return _nothing()
        if self._anytime:
            return self._at_any_time(data, delta, lower=lower)
        needed = bounds.LEAST_CLUSTERS
        if threshold is not None:
            scaled = data.scaled(threshold)
            needed = bounds.clusters_needed(scaled if lower else 1 - scaled, confidence)
        if sums.worth < needed - HALF:
            return _few(sums.k, needed, delta, sums.worth)
        sample = bounds.sample(data.of, sums)
        n_eff = float(bounds.effective_runs(sample, delta, icc0=self._profile.icc0))
        beta = float(bounds.beta_bound(sample.mean, n_eff, delta, lower=lower))
        if not mean:
            return Found(bound=data.unscaled(beta), method="beta", clusters=sums.k, n_eff=n_eff)
        student = float(bounds.t_bound(sample, delta, lower=lower))
        worse, method = min((beta, "beta"), (student, "t")) if lower else max((beta, "beta"), (student, "t"))
        return Found(bound=data.unscaled(worse), method=method, clusters=sums.k, n_eff=n_eff)

    def _at_any_time(self, data: Clustered, delta: float, *, lower: bool) -> Found:
        clusters = data.clusters
        means, counts = anytime.distinct(clusters.y, clusters.n, *data.of.ends)
        bound = (anytime.lower_bound if lower else anytime.upper_bound)(means, counts, delta)
        return Found(bound=data.unscaled(bound), method="e-process", clusters=len(clusters.n))

    def _rate(self, data: Clustered, confidence: Fraction) -> Found:
        """Bound violations per run from above."""
        sums, delta = data.sums, float(confidence)
        if sums is None:
            return _nothing()
        if sums.worth < bounds.LEAST_CLUSTERS - HALF:
            return _few(sums.k, bounds.LEAST_CLUSTERS, delta, sums.worth)
        sample = bounds.sample(data.of, sums)
        n_eff = float(bounds.effective_runs(sample, delta, icc0=self._profile.icc0, counts=True))
        if self._anytime:
            bound = anytime.upper_rate(sample.mean, n_eff, delta)
            return Found(bound=bound, method="e-process, Poisson", clusters=sums.k, n_eff=n_eff)
        gamma = float(bounds.gamma_bound(sample.mean, n_eff, delta))
        worse, method = max((gamma, "gamma"), (float(bounds.t_bound(sample, delta, lower=False)), "t"))
        return Found(bound=worse, method=method, clusters=sums.k, n_eff=n_eff)

    def arms(self, one: str, other: str, confidence: Fraction) -> tuple[bounds.Arm, bounds.Arm] | None:
        """Return two series as what their runs are worth, None where one has no runs or too few clusters."""
        found = []
        for name in (one, other):
            data = self.clustered(name)
            if data.sums is None or data.sums.worth < bounds.LEAST_CLUSTERS - HALF:
                return None
            sample = bounds.sample(data.of, data.sums)
            n_eff = float(bounds.effective_runs(sample, float(confidence), icc0=self._profile.icc0))
            found.append(bounds.Arm(mean=sample.mean, n_eff=n_eff))
        return found[0], found[1]

    def _difference(self, one: str, other: str, confidence: Fraction) -> Found:
        """Bound the success of one arm minus that of another from above, in percentage points."""
        delta = float(confidence)
        data = [self.clustered(name) for name in (one, other)]
        sums = [part.sums for part in data if part.sums is not None]
        if len(sums) < len(data):
            return _nothing()
        smaller = min(sums, key=lambda part: part.worth)
        clusters = min(part.k for part in sums)
        if self._anytime:
            half = 1 - (1 - delta) / 2
            high = self._at_any_time(data[0], half, lower=False).bound or 0.0
            low = self._at_any_time(data[1], half, lower=True).bound or 0.0
            return Found(bound=_PP * (high - low), method="e-process per arm", clusters=clusters)
        found = self.arms(one, other, confidence)
        if found is None:
            return _few(clusters, bounds.LEAST_CLUSTERS, delta, smaller.worth)
        return Found(
            bound=_PP * bounds.difference_bound(*found, delta),
            method="beta difference",
            clusters=clusters,
            n_eff=min(arm.n_eff for arm in found),
        )

    def _posterior(self, tau: Fraction, confidence: Fraction) -> Found:
        """Return P(θ > τ) on the effective number of runs; at any time, 1 - 1/E."""
        data, delta = self.clustered("r_op"), float(confidence)
        if data.sums is None:
            return _nothing()
        if self._anytime:
            clusters = data.clusters
            means, counts = anytime.distinct(clusters.y, clusters.n, 0, 1)
            evidence = anytime.log_evidence(means, counts, float(tau))
            bound = max(0.0, -float(np.expm1(-evidence)))
            return Found(bound=bound, method="1 - 1/E, e-process", clusters=data.sums.k)
        needed = bounds.clusters_needed(tau, confidence)
        if data.sums.worth < needed - HALF:
            return _few(data.sums.k, needed, delta, data.sums.worth)
        sample = bounds.sample(data.of, data.sums)
        n_eff = float(bounds.effective_runs(sample, delta, icc0=self._profile.icc0))
        bound = float(bounds.above(sample.mean, n_eff, float(tau)))
        return Found(bound=bound, method="beta", clusters=data.sums.k, n_eff=n_eff)

    def domain_bounds(self, confidence: Fraction) -> dict[str, Found]:
        """Return the lower bound of r_op in every domain that has runs under a fault, by name."""
        names = list(self._view.domains)
        place = {name: number for number, name in enumerate(names)}
        of = self.clustered("r_op").of
        # Cells of another split have no runs in this series, so that their number does not matter.
        number = np.array([place.get(cell.domain, 0) for cell in self._view.summary.cells], np.int64)
        clusters = grouped(self._view.summary, of, number)
        edges = np.searchsorted(clusters.group, np.arange(len(names) + 1)).tolist()
        found = {}
        for index, sums in totals(of, clusters).items():
            part = slice(edges[index], edges[index + 1])
            own = Grouped(
                group=clusters.group[part],
                cluster=clusters.cluster[part],
                y=clusters.y[part],
                n=clusters.n[part],
            )
            data = Clustered(of=of, clusters=own, sums=sums)
            found[names[index]] = self._share(data, None, confidence, lower=True)
        return found

    def _domains(self, confidence: Fraction) -> Found:
        """Bound r_op in every domain; the worst counts, and none may be too small to be bounded."""
        found = self.domain_bounds(confidence)
        for name, part in found.items():
            if part.bound is None:
                return Found(reason=f"{name}: {part.reason}", clusters=part.clusters)
        if not found:
            return _nothing()
        worst = min(found, key=lambda name: (found[name].bound or 0.0, name))
        return structs.replace(found[worst], method=f"{found[worst].method}, {worst}")

    def _product(self, names: tuple[str, str], confidence: Fraction) -> Found:
        """Bound a product of two shares from below: each with half of the error."""
        half = 1 - (1 - confidence) / 2
        parts = [
            self._share(self.clustered(name), None, half, lower=True, mean=name in MEANS) for name in names
        ]
        product = 1.0
        for part in parts:
            if part.bound is None:
                return part
            product *= max(0.0, part.bound)
        return Found(
            bound=product,
            method="product of two bounds",
            clusters=min(part.clusters or 0 for part in parts),
            n_eff=min((part.n_eff for part in parts if part.n_eff is not None), default=None),
        )

    def _attested(self, metric: Metric, threshold: Fraction, confidence: Fraction, *, lower: bool) -> Found:
        """Bound an attested mean on the number that is stated with it, taken as independent."""
        spec = CATALOGUE[metric.id]
        low, high = spec.low or Fraction(0), spec.high or Fraction(1)
        if metric.n is None or metric.value is None:
            return Found(reason="the attestation does not state on how many it rests")
        scaled = (threshold - low) / (high - low)
        needed = bounds.clusters_needed(scaled if lower else 1 - scaled, confidence)
        if metric.n < needed:
            return _few(metric.n, needed, float(confidence))
        mean = float((Fraction(metric.value) - low) / (high - low))
        bound = float(bounds.beta_bound(mean, metric.n, float(confidence), lower=lower))
        return Found(
            bound=float(low) + bound * float(high - low),
            method="beta, attested n",
            clusters=metric.n,
            n_eff=float(metric.n),
        )


def of_every_run(row: Row) -> bool:
    """Tell whether a row asks for the most that its metric can be, which no bound ever reaches."""
    return (
        row.operator == ">=" and row.threshold is not None and row.threshold == CATALOGUE[row.metric.id].high
    )


def _nothing() -> Found:
    return Found(reason="no run that a bound could rest on")


def _few(found: int, needed: int, delta: float, worth: float | None = None) -> Found:
    unequal = "" if worth is None or worth > found - HALF else f" worth {worth:.1f} of equal size"
    return Found(
        reason=f"{runs(found, 'cluster')}{unequal}, {needed:,} needed for a bound with confidence {delta:g}",
        clusters=found,
    )
