"""The comparison as a value: what was found, and the document ``urn:certkit:comparison:v1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from certkit._version import __version__
from certkit.assessment.compare.effects import PER_RUN, Test
from certkit.document import to_builtins as plain
from certkit.errors import Exit

if TYPE_CHECKING:
    from certkit.assessment.compare.anova import Anova, Effect
    from certkit.assessment.compare.matched import Matched
    from certkit.assessment.compare.orders import Rank
    from certkit.assessment.statistics.estimators import Interval
    from certkit.assessment.statistics.resampling import Bootstrap
    from certkit.evidence.bundle.manifest import Facts

COMPARISON_SCHEMA: Final = "urn:certkit:comparison:v1"
ALPHA: Final = 0.05
"""Two-sided level at which a difference is called shown."""

MOST_DOMAINS: Final = 100
"""Domains of both bundles up to which each is tested on its own, ranked and analysed."""

Better = Literal["a", "b"]


class Side(Struct, frozen=True, kw_only=True):
    """One metric of one bundle: all its runs, whatever the other bundle has."""

    state: str
    value: float | None
    n: int
    successes: int | None = None
    reason: str | None = None


class Runs(Struct, frozen=True, kw_only=True):
    """Tests on runs as if each were independent, and sizes of effects on all runs of either bundle."""

    z: Test | None = None
    newcombe: Interval | None = None
    cohen_h: float | None = None
    welch: Test | None = None
    cohen_d: float | None = None
    hedges_g: float | None = None


class Compared(Struct, frozen=True, kw_only=True):
    """One metric of both bundles; `matched` is None where it cannot be compared, for the `reason`.

    `p_holm` is adjusted for the metrics that were tested beside the main one; `better` is None unless a
    difference is shown.
    """

    metric: str
    unit: str
    a: Side
    b: Side
    matched: Matched | None = None
    runs: Runs | None = None
    p_holm: float | None = None
    better: Better | None = None
    notes: tuple[str, ...] = ()
    reason: str | None = None


class Domain(Struct, frozen=True, kw_only=True):
    """The main metric in one domain; `p_holm` is adjusted for the number of domains tested."""

    domain: str
    a: Side
    b: Side
    matched: Matched | None = None
    p_holm: float | None = None
    better: Better | None = None
    reason: str | None = None


class Manner(Struct, frozen=True, kw_only=True):
    """Held-out faults met by one agent: intentional responses against trial and error, (successes, runs).

    The counts are those of runs: the summary does not say in which clusters they fall, so that `z` and the
    interval of the difference ignore clusters. None where one manner has no run.
    """

    intentional: tuple[int, int]
    trial_and_error: tuple[int, int]
    unknown: int
    difference: float | None = None
    z: Test | None = None
    newcombe: Interval | None = None
    cohen_h: float | None = None


class Unlike(Struct, frozen=True, kw_only=True):
    """A part of the protocol that the bundles do not share; None: not stated."""

    item: str
    a: str | None
    b: str | None


class Comparison(Struct, frozen=True, kw_only=True, eq=False):
    """Two agents compared on their evidence.

    `metrics` has the main metric first. `rates` are bootstrap intervals of the main metric: of A and of B by
    tasks, of both together by tasks, by agents and by both. `answer` is the result in words.
    """

    split: str
    facts: tuple[Facts, Facts]
    records: tuple[int, int]
    seed: int
    draws: int
    answer: str
    metrics: tuple[Compared, ...]
    domains: tuple[Domain, ...]
    rates: dict[str, Bootstrap]
    anova: Anova | None
    spearman: Rank | None
    kendall: Rank | None
    manners: tuple[Manner, Manner] | None
    not_alike: tuple[Unlike, ...]
    caveats: tuple[str, ...]

    @property
    def main(self) -> Compared:
        """The metric that the answer speaks of."""
        return self.metrics[0]

    @property
    def exit_code(self) -> Exit:
        """0 where some metric was compared, 4 where none could be."""
        comparable = any(metric.matched for metric in self.metrics)
        return Exit.OK if comparable else Exit.INSUFFICIENT

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit compare --json`` prints; every difference is A less B."""
        return {
            "schema": COMPARISON_SCHEMA,
            "tool": {"name": "certkit", "version": __version__},
            "split": self.split,
            "a": _bundle(self.facts[0], self.records[0]),
            "b": _bundle(self.facts[1], self.records[1]),
            "alpha": ALPHA,
            "seed": self.seed,
            "draws": self.draws,
            "answer": {"metric": self.main.metric, "better": self.main.better, "words": self.answer},
            "metrics": {row.metric: _metric(row) for row in self.metrics},
            "domains": [_domain(row) for row in self.domains],
            "rates": plain(self.rates),
            "anova": _anova(self.anova),
            "orders": {"spearman": plain(self.spearman), "kendall": plain(self.kendall)},
            "manners": None
            if self.manners is None
            else {name: _manner(row) for name, row in zip("ab", self.manners, strict=True)},
            "not_alike": plain(self.not_alike),
            "caveats": list(self.caveats),
            "exit_code": int(self.exit_code),
        }


def _bundle(facts: Facts, records: int) -> dict[str, Any]:
    agent = facts.manifest.agent
    return {
        "bundle": facts.digest,
        "sealed": facts.sealed,
        "origin": facts.manifest.protocol.origin,
        "records": records,
        "agent": {"name": agent.name, "version": agent.version, "digest": facts.agent_digest},
    }


def _metric(row: Compared) -> dict[str, Any]:
    return {
        "unit": row.unit,
        "a": plain(row.a),
        "b": plain(row.b),
        "better": row.better,
        "p_holm": row.p_holm,
        "matched": plain(row.matched),
        "per_run": None if row.runs is None else {"warning": PER_RUN, **plain(row.runs)},
        "notes": list(row.notes),
        "reason": row.reason,
    }


def _domain(row: Domain) -> dict[str, Any]:
    return {name: plain(getattr(row, name)) for name in row.__struct_fields__}


def _manner(row: Manner) -> dict[str, Any]:
    counts = {
        name: {"successes": s, "n": n, "value": s / n if n else None}
        for name, (s, n) in (("intentional", row.intentional), ("trial_and_error", row.trial_and_error))
    }
    rest = {name: plain(getattr(row, name)) for name in ("unknown", "difference", "z", "newcombe", "cohen_h")}
    return counts | rest | {"warning": PER_RUN}


def _anova(found: Anova | None) -> dict[str, Any] | None:
    if found is None:
        return None
    effects: dict[str, Effect | None] = {
        "agent": found.agent,
        "domain": found.domain,
        "interaction": found.interaction,
    }
    return {
        "observation": "one rate per agent, domain and cluster",
        "sums_of_squares": "type II",
        "observations": found.observations,
        **{name: plain(effect) for name, effect in effects.items()},
        "error": {"ss": found.error_ss, "df": found.error_df},
        "tukey": plain(found.pairs),
        "reason": found.reason,
    }
