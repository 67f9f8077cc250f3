"""The comparison as a value: what was found, and the document ``urn:certkit:comparison:v1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct

from certkit.assessment.compare import document
from certkit.assessment.result import AgentPart
from certkit.document import fill
from certkit.errors import Exit

if TYPE_CHECKING:
    from certkit.assessment.compare.document import Better, Domain, Side, Unlike
    from certkit.assessment.compare.matched import Matched
    from certkit.assessment.compare.paper import PaperTests
    from certkit.assessment.statistics.resampling import Bootstrap
    from certkit.evidence.bundle.manifest import Facts

ALPHA: Final = 0.05
"""Two-sided level at which a difference is called shown."""

MOST_DOMAINS: Final = 100
"""Domains of both bundles up to which each is tested on its own."""


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
    p_holm: float | None = None
    better: Better | None = None
    notes: tuple[str, ...] = ()
    reason: str | None = None


class Manner(Struct, frozen=True, kw_only=True):
    """Held-out faults met by one agent: intentional responses against trial and error, (successes, runs).

    `difference` is None where one manner has no run.
    """

    intentional: tuple[int, int]
    trial_and_error: tuple[int, int]
    unknown: int
    difference: float | None = None


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
    manners: tuple[Manner, Manner] | None
    paper_tests: PaperTests | None
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
        a, b = map(_bundle, self.facts, self.records)
        answer = document.Answer(metric=self.main.metric, better=self.main.better, words=self.answer)
        manners = None
        if self.manners is not None:
            manners = document.Manners(**dict(zip("ab", map(_manner, self.manners), strict=True)))
        return fill(
            document.ComparisonDocument,
            self,
            a=a,
            b=b,
            alpha=ALPHA,
            answer=answer,
            metrics={row.metric: fill(document.MetricPart, row) for row in self.metrics},
            manners=manners,
            paper_tests=self.paper_tests or UNSET,
        ).to_dict()


def _bundle(facts: Facts, records: int) -> document.BundlePart:
    return document.BundlePart(
        bundle=facts.digest,
        sealed=facts.sealed,
        origin=facts.manifest.protocol.origin,
        records=records,
        agent=fill(AgentPart, facts.manifest.agent, digest=facts.agent_digest),
    )


def _manner(row: Manner) -> document.MannerPart:
    return fill(
        document.MannerPart,
        row,
        intentional=_share(row.intentional),
        trial_and_error=_share(row.trial_and_error),
    )


def _share(counts: tuple[int, int]) -> document.SharePart:
    successes, n = counts
    return document.SharePart(successes=successes, n=n, value=successes / n if n else None)
