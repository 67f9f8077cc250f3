"""The metrics that certkit computes: what stands in `templates/metrics.toml`, as values.

A profile may name any metric of `CATALOGUE`; the reference page, `explain` and the report read the same.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from math import inf
from typing import Any, Final

from msgspec import Struct, convert

from certkit.ground import toml


class Unit(StrEnum):
    """What a metric's number means."""

    FRACTION = "fraction"
    INDEX = "index"
    PROBABILITY = "probability"
    PP = "pp"
    POINTS = "points"
    PER_RUN = "violations per run"
    BOOLEAN = "boolean"


class Group(StrEnum):
    """The goals of the safety case that criteria stand under (G3.1 to G3.5)."""

    SUCCESS = "success under faults"
    RECOVERY = "recovery"
    CONDUCT = "conduct"
    HARD = "hard conditions"
    STABILITY = "stability"


class Runs(StrEnum):
    """Runs without which a metric is not measured."""

    NORMAL = "normal"
    FAULTS = "faults"
    ATTACKS = "attacks"


class Spec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric; the head of `templates/metrics.toml` says what its fields mean."""

    id: str
    title: str
    short: str
    group: Group
    unit: Unit
    source: str
    asked: str
    formula: str
    evidence: str
    needs: frozenset[Runs] = frozenset({Runs.FAULTS})
    example: str | None = None
    low: Fraction
    high: Fraction | None
    higher: bool = True
    tau_of: str | None = None
    attested: bool = False


def _spec(name: str, told: dict[str, Any]) -> Spec:
    low, high = told.pop("ends", (0, 1))
    ends = {"low": Fraction(low), "high": None if high == inf else Fraction(high)}
    return convert({"id": name, **ends, **told}, Spec)


CATALOGUE: Final = {
    name: _spec(name, told) for name, told in toml.packaged("templates", "metrics.toml").items()
}
ATTESTED: Final = tuple(name for name, spec in CATALOGUE.items() if spec.attested)
"""Metrics that no record can carry: the manifest states them, with the file that shows it."""


def named(metric: str) -> str:
    """Return the full name of a metric with its id: ``operational reliability (r_op)``."""
    title = CATALOGUE[metric].title
    return f"{title[:-1]}, {metric})" if title.endswith(")") else f"{title} ({metric})"
