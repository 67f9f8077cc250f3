"""The oracle's second half: from exact metrics and a profile's TOML to statuses, tiers and binding rows.

Like `tests.support.oracle` it follows the design and imports nothing of certkit. A profile is read as it is
published: ``[[criteria]]`` with `id`, `metric`, `operator` (one, or a table per tier), `tiers`, and
optionally `min_coverage`. Tasks are not counted: `many` takes `min_n` out of a profile.
"""

from __future__ import annotations

import tomllib  # noqa: TID251 - a second reading, without our own door
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.support.oracle import UNMEASURED, Metric, exact, metrics, posterior

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

TIERS = (1, 2, 3)
LOST = {"not_met", "insufficient", "not_tested"}
ATTESTED = {
    "transparency_index",
    "human_trust_score",
    "edm_auditability",
    "safe_halt_protocol",
    "recovery_patterns_documented",
}


@dataclass(frozen=True)
class Verdict:
    """What a profile says of some evidence. `statuses` is keyed by (criterion, tier)."""

    statuses: dict[tuple[str, int], str]
    tiers: dict[int, str]
    tier: int
    binding: frozenset[str]


def read_profile(path: Path) -> dict[str, Any]:
    """Return a profile with its numbers as exact decimals."""
    return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)


def many(text: str) -> str:
    """Return a profile's text without the number of tasks that its rows ask for."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("min_n"))


def threshold_of(criterion: Mapping[str, Any], tier: int) -> Fraction | None:
    """Return the threshold of a criterion at a tier, or None where the tier does not specify it."""
    value = criterion["tiers"].get(str(tier))
    return None if value is None else Fraction(value)


def operator_of(criterion: Mapping[str, Any], tier: int) -> str:
    operator = criterion["operator"]
    return str(operator if isinstance(operator, str) else operator[str(tier)])


def passes(value: Fraction, operator: str, threshold: Fraction) -> bool:
    return {
        ">": value > threshold,
        ">=": value >= threshold,
        "<": value < threshold,
        "<=": value <= threshold,
        "is": value == threshold,
    }[operator]


def attested(manifest: Mapping[str, Any], name: str) -> Metric:
    """Return what the manifest attests under `name`."""
    for item in manifest.get("attested", ()):
        if item["id"] == name:
            value = item["value"]
            return Metric("measured", Fraction(int(value)) if isinstance(value, bool) else exact(value), 1, 1)
    return UNMEASURED


def posterior_metric(found: Mapping[str, Metric], profile: Mapping[str, Any], tier: int) -> Metric:
    """Return P(θ > τ) with τ the profile's threshold on r_op at this tier, [26] §3.1."""
    aggregate = next((item for item in profile["criteria"] if item["metric"] == "r_op"), None)
    threshold = None if aggregate is None else threshold_of(aggregate, tier)
    faults = found["r_op"]
    if threshold is None or faults.value is None:
        return UNMEASURED
    value = posterior(faults.detail["successes"], faults.n, threshold)
    return Metric("measured", value, faults.n, faults.n)


def status(metric: Metric, criterion: Mapping[str, Any], tier: int) -> str:
    """Return the status of one criterion at one tier."""
    threshold = threshold_of(criterion, tier)
    if threshold is None:
        return "not_applicable"
    if metric.value is None:
        return "not_tested"
    coverage = Fraction(metric.n, metric.eligible) if metric.eligible else Fraction(1)
    if metric.state == "partial" and coverage < Fraction(criterion.get("min_coverage", 1)):
        return "insufficient"
    if metric.too_many_harness_errors or metric.incomplete:
        return "insufficient"
    return "met" if passes(metric.value, operator_of(criterion, tier), threshold) else "not_met"


def judge(
    records: Iterable[Mapping[str, Any]],
    manifest: Mapping[str, Any],
    profile: Mapping[str, Any],
    found: Mapping[str, Metric] | None = None,
    *,
    strict: bool = False,
) -> Verdict:
    """Return the verdict of `profile` on `records`, whose metrics are `found` where they are known.

    A provisional row decides nothing unless `strict`.
    """
    found = metrics(records, manifest) if found is None else found
    statuses: dict[tuple[str, int], str] = {}
    for criterion in profile["criteria"]:
        for tier in TIERS:
            name = criterion["metric"]
            if name == "posterior":
                metric = posterior_metric(found, profile, tier)
            else:
                metric = attested(manifest, name) if name in ATTESTED else found[name]
            statuses[criterion["id"], tier] = status(metric, criterion, tier)
    deciding = decisive(profile, strict=strict)
    tiers = tier_statuses(statuses, deciding)
    attained = max((tier for tier in TIERS if tiers[tier] == "met"), default=0)
    binding = frozenset(
        name
        for (name, tier), value in statuses.items()
        if name in deciding and tier == attained + 1 and value in LOST
    )
    return Verdict(statuses, tiers, attained, binding)


def decisive(profile: Mapping[str, Any], *, strict: bool) -> set[str]:
    """Return the rows that decide a tier."""
    return {row["id"] for row in profile["criteria"] if strict or not row.get("provisional")}


def tier_statuses(statuses: Mapping[tuple[str, int], str], deciding: set[str]) -> dict[int, str]:
    """Return the status of every tier, which includes the rows of the lower ones."""
    return {
        tier: _worst(value for (name, k), value in statuses.items() if name in deciding and k <= tier)
        for tier in TIERS
    }


def _worst(statuses: Iterable[str]) -> str:
    rows = set(statuses)
    if "not_met" in rows:
        return "not_met"
    return "insufficient" if rows & LOST else "met"
