"""An evaluation: facts, summary, profile, question and the assessment that follows from them.

A passport signs exactly these five. Screens, reports, exports and the registry read them, and nothing made
from them; what they need beside (metrics, breakdown, fragility) is computed from the summary when they ask.

    evaluation = evaluate(summary, facts, profile)
    evaluation.assessment.verdict.tier
    evaluation.to_dict()            # ``urn:certkit:assessment:v1``
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from certkit.assessment.assess import assess
from certkit.assessment.assessment import Assessment, Question
from certkit.assessment.fragility import Fragility, fragility
from certkit.assessment.metric import Metric, written
from certkit.assessment.profile import Profile
from certkit.assessment.raters import judge_report
from certkit.assessment.row import Evidence
from certkit.assessment.variation import variation
from certkit.assessment.words import finding_text, reason_text
from certkit.bundle.facts import Facts
from certkit.ground.document import State, to_builtins
from certkit.summary.summary import Cell, Summary, Tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from certkit.assessment.metric import Interval, Reason
    from certkit.assessment.metrics import Groups
    from certkit.ground.errors import Exit

SCHEMA = "urn:certkit:assessment:v1"


class Evaluation(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What was judged, by what, and the judgement.

    Attributes:
        facts: what the manifest states.
        summary: the records, reduced.
        profile: the tier table.
        question: what else the verdict depends on.
        assessment: the judgement.
    """

    facts: Facts
    summary: Summary
    profile: Profile
    question: Question
    assessment: Assessment

    @cached_property
    def evidence(self) -> Evidence:
        """Summary and facts as rows read them: metrics, and the tasks that carry them."""
        return Evidence(self.summary, self.facts, self.profile)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric by name, in the order of the catalogue."""
        return self.evidence.metrics

    @property
    def groups(self) -> Groups:
        """The runs by condition and domain."""
        return self.evidence.groups

    @cached_property
    def fragility(self) -> Fragility:
        """How little would have to be otherwise for the tier to change."""
        return fragility(self.evidence, self.assessment, self.question)

    @property
    def exit_code(self) -> Exit:
        """The exit code of ``certkit assess`` for the required tier."""
        return self.assessment.verdict.exit_code

    def to_dict(self) -> dict[str, Any]:
        """Return the document ``urn:certkit:assessment:v1``, with sentences and all metrics."""
        facts, groups = self.facts, self.groups
        judged = to_builtins(self.assessment)
        for item, finding in zip(judged["findings"], self.assessment.findings, strict=True):
            item["message"] = finding_text(finding)
        for item, row in zip(judged["criteria"], self.assessment.criteria, strict=True):
            _explained(item, row.reason)
            if row.bounded is not None:
                _explained(item["bounded"], row.bounded.reason)
        return {
            "schema": SCHEMA,
            "tool": judged.pop("tool"),
            "bundle": {
                "digest": facts.digest,
                "sealed": facts.sealed,
                "origin": facts.protocol.origin,
                "records": self.summary.records,
                "nominal_runs": groups.nominal["runs"],
                "fault_runs": groups.fault["runs"],
                "harness_errors": groups.every["harness_error"],
                "novel_fault_runs": groups.novel["runs"],
                "domains": list(self.summary.domains),
                "bundles": list(facts.bundles),
            },
            "agent": {
                "name": facts.agent.name,
                "version": facts.agent.version,
                "digest": facts.agent.digest,
            },
            "profile": {
                "id": self.profile.id,
                "digest": self.profile.digest,
                "reading": self.profile.reading,
                **({"changed": to_builtins(self.profile.changed)} if self.profile.changed else {}),
            },
            "metrics": {name: metric_dict(metric, self.evidence) for name, metric in self.metrics.items()},
            "breakdown": [cell_dict(cell) for cell in self.summary.cells],
            **judged,
            "judge": to_builtins(judge_report(self.summary, facts)),
            "fragility": to_builtins(self.fragility),
            "variation": to_builtins(variation(self.summary)),
            "integrity": to_builtins(facts.integrity),
        }


def evaluate(
    summary: Summary, facts: Facts, profile: Profile, question: Question | None = None
) -> Evaluation:
    """Return the evaluation of a summary; raises as `assess`."""
    question = question or Question()
    return Evaluation(
        facts=facts,
        summary=summary,
        profile=profile,
        question=question,
        assessment=assess(summary, facts, profile, question),
    )


def cell_dict(cell: Cell) -> dict[str, Any]:
    """Return the runs and outcomes of a cell as JSON values."""
    tally = Tally.total([cell])
    outcomes = ("runs", "success", "failure", "safe_halt", "harness_error")
    where = {"split": cell.split.value, "domain": cell.domain, "condition": cell.condition}
    counts = {name: tally[name] for name in outcomes}
    return {
        **where,
        "effect": cell.effect.value,
        **counts,
        "rate": round(tally["success"] / tally["runs"], 6),
    }


def _explained(item: dict[str, Any], reason: Reason | None) -> None:
    if reason is not None:
        item["reason"]["message"] = reason_text(reason)


def metric_dict(metric: Metric, evidence: Evidence) -> dict[str, Any]:
    """Return a metric as JSON values: fixed keys, its own counts and details beside them.

    `interval` is over tasks, `interval_by_runs` Wilson's.
    """
    value: dict[str, Any] = {"state": metric.state.value}
    if metric.by_tier is None:
        value["value"] = written(metric.value, metric.id)
    value |= {"unit": metric.unit.value, "n": metric.n, **metric.counts}
    if metric.by_tier is not None:
        value["by_tier"] = {str(tier): round(chance, 9) for tier, chance in metric.by_tier.items()}
    value |= _intervals(evidence.interval(metric), metric.interval_by_runs)
    if metric.state is State.PARTIAL:
        value["coverage"] = round(float(metric.coverage), 6)
    if reason := metric.reason or metric.blocked:
        value["reason"] = reason_text(reason)
    return {**value, **_plain(_detail(metric, evidence)), "source": metric.source}


def _intervals(by_tasks: Interval | None, by_runs: Interval | None, name: str = "interval") -> dict[str, Any]:
    """Return the interval over tasks, and after it the one that takes runs as independent."""
    named = {name: by_tasks, f"{name}_by_runs": by_runs}
    return {key: to_builtins(interval) for key, interval in named.items() if interval is not None}


def _detail(metric: Metric, evidence: Evidence) -> dict[str, Any]:
    """Return the details of a metric, with intervals over tasks beside those by runs."""
    detail = dict(metric.detail)
    if "by_domain" in detail:
        series = evidence.parts(metric.id)[0][0]
        detail["by_domain"] = {
            domain: row | _intervals(evidence.interval_of(series, domain), None)
            for domain, row in detail["by_domain"].items()
        }
    for arm in ("single", "cascade"):
        if (by_runs := detail.pop(f"{arm}_interval_by_runs", None)) is not None:
            detail |= _intervals(evidence.interval_of(arm), by_runs, f"{arm}_interval")
    return detail


def _plain(value: Any) -> Any:
    """Return details as JSON values, fractions with six decimals."""
    if isinstance(value, Fraction):
        return float(round(value, 6))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return to_builtins(value)
