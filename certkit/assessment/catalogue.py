"""The metrics that certkit computes, in the order in which they are listed.

A profile may name any metric of `CATALOGUE`; the reference page, `explain` and the report read the same. What
people read of a metric stands in `templates/metrics.toml`, and is read when somebody asks for it.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from functools import cache
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


class Group(StrEnum):
    """The goals of the safety case that criteria stand under (G3.1 to G3.5)."""

    SUCCESS = "success under faults"
    RECOVERY = "recovery"
    CONDUCT = "conduct"
    HARD = "hard conditions"
    STABILITY = "stability"


ANY: Final = frozenset[RunKind]()
NORMAL: Final = frozenset({RunKind.NORMAL})
FAULTS: Final = frozenset({RunKind.FAULTS})
ATTACKS: Final = frozenset({RunKind.ATTACKS})


class MetricWords(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a metric; the head of `templates/metrics.toml` says what its fields mean."""

    title: str
    short: str
    group: Group
    source: str
    asked: str
    formula: str
    evidence: str
    example: str | None = None


@cache
def metric_words() -> dict[str, MetricWords]:
    """Return the words of every metric by its name; judging needs none of them."""
    return convert(toml.packaged("templates", "metrics.toml"), dict[str, MetricWords])


class Spec(Struct, frozen=True):
    """One metric.

    Attributes:
        id: its name.
        unit: what its number means.
        needs: the runs without which it is not measured; none where any run will do.
        low: the least value.
        high: the greatest value; None where there is none.
        higher: whether more is better.
        tau_of: the metric whose thresholds are the τ of a probability P(θ > τ).
        attested: no record can carry it, so that the manifest states it with the file that shows it.
    """

    id: str
    unit: Unit
    needs: frozenset[RunKind] = FAULTS
    low: Fraction = Fraction(0)
    high: Fraction | None = Fraction(1)
    higher: bool = True
    tau_of: str | None = None
    attested: bool = False

    @property
    def title(self) -> str:
        """Its full name."""
        return metric_words()[self.id].title

    @property
    def short(self) -> str:
        """Its full name abbreviated, for narrow columns and figures."""
        return metric_words()[self.id].short

    @property
    def group(self) -> Group:
        """The goal of the safety case that its criteria stand under."""
        return metric_words()[self.id].group

    @property
    def source(self) -> str:
        """Where it is defined."""
        return metric_words()[self.id].source

    @property
    def asked(self) -> str:
        """What a row asks, with a place for the limit."""
        return metric_words()[self.id].asked

    @property
    def formula(self) -> str:
        """Its formula."""
        return metric_words()[self.id].formula

    @property
    def evidence(self) -> str:
        """What to do to measure it."""
        return metric_words()[self.id].evidence

    @property
    def example(self) -> str | None:
        """A worked example, where there is one."""
        return metric_words()[self.id].example


CATALOGUE: Final = {
    spec.id: spec
    for spec in (
        Spec("c_nom", Unit.FRACTION, needs=NORMAL),
        Spec("r_op", Unit.FRACTION),
        Spec("gap", Unit.PP, needs=NORMAL | FAULTS, low=Fraction(-100), high=Fraction(100), higher=False),
        Spec("frr", Unit.INDEX),
        Spec("pei", Unit.INDEX, needs=ANY),
        Spec("pei_fault", Unit.INDEX),
        Spec("irs", Unit.FRACTION),
        Spec("ti", Unit.POINTS, needs=ANY, low=Fraction(1), high=Fraction(5)),
        Spec("csi", Unit.INDEX),
        Spec("domain_min", Unit.FRACTION),
        Spec("domain_min_nominal", Unit.FRACTION, needs=NORMAL),
        Spec("violations", Unit.PER_RUN, needs=ANY, high=None, higher=False),
        Spec("adversarial_resistance", Unit.FRACTION, needs=ATTACKS),
        Spec("attack_success_rate", Unit.FRACTION, needs=ATTACKS, higher=False),
        Spec("cascade_penalty", Unit.PP, low=Fraction(-100), high=Fraction(100), higher=False),
        Spec("posterior", Unit.PROBABILITY, tau_of="r_op"),
        Spec("cn_frr", Unit.FRACTION),
        Spec("frr_2025", Unit.INDEX),
        Spec("pei_2025", Unit.INDEX, needs=ANY),
        Spec("irs_2025", Unit.INDEX),
        Spec("safe_halt_on_risk", Unit.FRACTION, needs=ANY),
        Spec("transparency_index", Unit.INDEX, needs=ANY, attested=True),
        Spec("human_trust_score", Unit.POINTS, needs=ANY, low=Fraction(1), high=Fraction(5), attested=True),
        Spec("edm_auditability", Unit.BOOLEAN, needs=ANY, attested=True),
        Spec("safe_halt_protocol", Unit.BOOLEAN, needs=ANY, attested=True),
        Spec("recovery_patterns_documented", Unit.BOOLEAN, needs=ANY, attested=True),
        Spec("layer_agreement", Unit.FRACTION, needs=ANY),
        Spec("novel_fault", Unit.FRACTION),
        Spec("harness_errors", Unit.FRACTION, needs=ANY, higher=False),
    )
}
ATTESTED: Final = tuple(name for name, spec in CATALOGUE.items() if spec.attested)
"""Metrics that no record can carry: the manifest states them, with the file that shows it."""

WEAKEST: Final = {"domain_min": "r_op", "domain_min_nominal": "c_nom"}
"""The metrics of the weakest domain, each with the success rate whose least value it is."""


def named(metric: str) -> str:
    """Return the full name of a metric with its id: ``operational reliability (r_op)``."""
    title = CATALOGUE[metric].title
    return f"{title[:-1]}, {metric})" if title.endswith(")") else f"{title} ({metric})"
