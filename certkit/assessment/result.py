"""The assessment: everything that was found about a bundle under a profile, as one value.

`to_dict` gives the document ``urn:certkit:assessment:v1``; text, JSON and exit code all come from this
one object.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from certkit._version import __version__
from certkit.assessment.metrics.metric import Metric, plain

if TYPE_CHECKING:
    from certkit.assessment.bounded.fragility import Fragility
    from certkit.assessment.criteria import Row
    from certkit.assessment.findings.findings import Finding
    from certkit.assessment.profile import Profile
    from certkit.assessment.rater_error import JudgeReport
    from certkit.assessment.statistics.variation import Variation
    from certkit.assessment.verdict import Tier, Verdict
    from certkit.errors import Exit
    from certkit.evidence.bundle.manifest import Facts
    from certkit.evidence.summary.summary import Cell

ASSESSMENT_SCHEMA: Final = "urn:certkit:assessment:v1"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Counts(Struct, frozen=True, kw_only=True):
    """What was assessed: all records, and of the standard split nominal and fault runs."""

    records: int
    nominal_runs: int
    fault_runs: int
    harness_errors: int
    novel_fault_runs: int
    domains: tuple[str, ...]


class BundleResult(Struct, frozen=True, kw_only=True):
    """One of several bundles that were pooled, alone: its time, its counts, and the tier that it shows.

    `declared_from` and `declared_to` are the declared period, `first_run` and `last_run` the start times in
    microseconds since 1970. `by_domain` holds successes and runs under faults, whose sums are `successes`
    and `fault_runs`.
    """

    digest: str
    declared_from: str | None
    declared_to: str | None
    first_run: int | None
    last_run: int | None
    records: int
    nominal_runs: int
    fault_runs: int
    successes: int
    by_domain: dict[str, tuple[int, int]]
    table: int
    bounded: int

    def to_dict(self) -> dict[str, Any]:
        """Return the bundle as JSON values, times in RFC 3339."""
        return structs.asdict(self) | {
            "first_run": _time(self.first_run),
            "last_run": _time(self.last_run),
            "by_domain": {
                name: {"successes": successes, "n": n} for name, (successes, n) in self.by_domain.items()
            },
            "table": {"tier": self.table},
            "bounded": {"tier": self.bounded},
        }


def moment(microseconds: int | None) -> datetime | None:
    """Return a time in microseconds since 1970 as an aware datetime."""
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


def _time(microseconds: int | None) -> str | None:
    found = moment(microseconds)
    return None if found is None else found.isoformat().replace("+00:00", "Z")


class Assessment(Struct, frozen=True, kw_only=True, eq=False):
    """The judgement of a bundle under a profile, or of several pooled, which `bundles` then lists."""

    facts: Facts
    profile: Profile
    counts: Counts
    metrics: dict[str, Metric]
    criteria: tuple[Row, ...]
    tiers: tuple[Tier, ...]
    verdict: Verdict
    findings: tuple[Finding, ...]
    cells: tuple[Cell, ...]
    judge: JudgeReport
    fragility: Fragility
    variation: Variation | None = None
    bundles: tuple[BundleResult, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """The exit code of ``certkit assess`` for the required tier."""
        return self.verdict.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit assess --json`` prints."""
        facts, manifest = self.facts, self.facts.manifest
        return {
            "schema": ASSESSMENT_SCHEMA,
            "tool": {"name": "certkit", "version": __version__},
            "bundle": {
                "digest": facts.digest,
                "sealed": facts.sealed,
                "origin": manifest.protocol.origin,
                **plain(self.counts),
            },
            "agent": {
                "name": manifest.agent.name,
                "version": manifest.agent.version,
                "digest": facts.agent_digest,
            },
            "profile": {
                "id": self.profile.id,
                "digest": self.profile.digest,
                "reading": self.profile.reading,
            },
            "metrics": {name: metric.to_dict() for name, metric in self.metrics.items()},
            "breakdown": [_breakdown(cell) for cell in self.cells],
            "criteria": [row.to_dict() for row in self.criteria],
            "tiers": {str(tier.number): tier.to_dict() for tier in self.tiers},
            "verdict": self.verdict.to_dict(),
            "findings": [plain(finding) for finding in self.findings],
            "judge": self.judge.to_dict(),
            "fragility": plain(self.fragility),
            "variation": plain(self.variation),
            **({"bundles": [bundle.to_dict() for bundle in self.bundles]} if self.bundles else {}),
        }


def _breakdown(cell: Cell) -> dict[str, Any]:
    tally = cell.tally
    return {
        "split": str(cell.split),
        "domain": cell.domain,
        "condition": cell.condition,
        "runs": tally.runs,
        "success": tally.success,
        "failure": tally.failure,
        "safe_halt": tally.safe_halt,
        "harness_error": tally.harness_error,
        "rate": tally.success / tally.runs if tally.runs else None,
    }
