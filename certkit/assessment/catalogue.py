"""The metrics that certkit computes, in the order in which they are listed.

`templates/metrics.toml` says what a metric is, and the words that people read; `metrics` computes its value.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import Final

from msgspec import Struct, convert

from certkit.ground import toml
from certkit.record.record import RunKind


class Unit(StrEnum):
    """What a metric's number means."""

    FRACTION = "fraction"
    INDEX = "index"
    PROBABILITY = "probability"
    PP = "pp"
    POINTS = "points"
    PER_RUN = "violations per run"
    BOOLEAN = "boolean"


_RANGES: Final[dict[Unit, tuple[Fraction, Fraction | None]]] = {
    **dict.fromkeys(Unit, (Fraction(0), Fraction(1))),
    Unit.PP: (Fraction(-100), Fraction(100)),
    Unit.POINTS: (Fraction(1), Fraction(5)),
    Unit.PER_RUN: (Fraction(0), None),
}
"""The least and the greatest value of each unit; None where there is none."""


class Group(StrEnum):
    """The goals of the safety case that criteria stand under (G3.1 to G3.5)."""

    SUCCESS = "success under faults"
    RECOVERY = "recovery"
    CONDUCT = "conduct"
    HARD = "hard conditions"
    STABILITY = "stability"


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
    example: str | None = None
    needs: frozenset[RunKind] = frozenset({RunKind.FAULTS})
    higher: bool = True
    tau_of: str | None = None
    attested: bool = False

    @property
    def low(self) -> Fraction:
        """The least value."""
        return _RANGES[self.unit][0]

    @property
    def high(self) -> Fraction | None:
        """The greatest value; None where there is none."""
        return _RANGES[self.unit][1]


CATALOGUE: Final = {
    name: convert({"id": name, **table}, Spec)
    for name, table in toml.packaged("templates", "metrics.toml").items()
}
ATTESTED: Final = tuple(name for name, spec in CATALOGUE.items() if spec.attested)
"""Metrics that no record can carry: the manifest states them, with the file that shows it."""

WEAKEST: Final = {"domain_min": "r_op", "domain_min_nominal": "c_nom"}
"""The metrics of the weakest domain, each with the success rate whose least value it is."""


def named(metric: str) -> str:
    """Return the full name of a metric with its id: ``operational reliability (r_op)``."""
    title = CATALOGUE[metric].title
    return f"{title[:-1]}, {metric})" if title.endswith(")") else f"{title} ({metric})"
