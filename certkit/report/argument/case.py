"""What an argument and a report are built from: assessment, context, passport, and what follows from them.

    about = case(assessment, context=given, summary=summary, today=date(2026, 2, 3))
    about.measured["H-1"].failures, about.stale, about.unapproved

The summary is what the assessment rests on; hazards are measured on it. `today` ends acceptances and the
decision, and ages evidence, which is as old as its first run. A review counts from its date on, which is not
before the last run, and a decision from its own, which is not before an independent review that counts. So
neither counts where runs are still to come.

A hazard's failures are the runs in its conditions and domains that did not succeed, safe halts and harness
errors included: a failed task is not yet a harm. Runs under attack count as in adversarial resistance: where
records say which attacks landed, the others are left out, and a success under a successful attack failed.
The true share of failures stays below the bound with 95 % confidence, by the task posterior. There is no
bound where nothing says that tasks are independent, where they are too few, or where a model gave the
outcomes: its error would be left out.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from certkit.assessment.metrics.catalogue import CATALOGUE
from certkit.assessment.metrics.series import adversarial, resisted
from certkit.assessment.rater_error.labels import gives_outcomes
from certkit.assessment.result import moment
from certkit.assessment.statistics.posterior import lower
from certkit.bundle.context import CONTEXT_SCHEMA, Context, Decision, OperatingDomain, Risk, Use, refuse
from certkit.ground import canonical
from certkit.ground.wording import UNDECLARED
from certkit.record.record import Condition, Split
from certkit.summary.tasks import merged, per_cell, task_sums

if TYPE_CHECKING:
    from collections.abc import Collection

    from certkit.assessment.result import Assessment
    from certkit.bundle.context import Given, Hazard
    from certkit.bundle.manifest import Manifest, Protocol
    from certkit.report.view import Issued
    from certkit.summary.summary import Summary, Window

CONFIDENCE: Final = 0.95
MOST_DAYS: Final = 90
"""Age of the evidence beyond which it is called old: [26] §12.4 asks for an evaluation every quarter."""
LEAST_TASKS: Final = 10
"""Tasks below which no bound is told: the share that one task could hide is too large."""


class Measured(Struct, frozen=True, kw_only=True):
    """Runs and failures of a hazard, on how many tasks; the upper bound of their share, or why there is none.

    `where` says in which conditions and domains, `unseen` names those without a run.
    """

    where: str
    runs: int
    failures: int
    tasks: int
    bound: float | None
    reason: str | None
    unseen: tuple[str, ...]


def measure(summary: Summary, hazard: Hazard, protocol: Protocol, wanted: Collection[str] = ()) -> Measured:
    """Return what is shown of a hazard: in its conditions, or all; in its domains, those `wanted`, or all."""
    domains = hazard.domains or wanted
    chosen = [
        cell.split is Split.STANDARD
        and (not hazard.conditions or cell.condition in hazard.conditions)
        and (not domains or cell.domain in domains)
        for cell in summary.cells
    ]
    columns, attacks = summary.clusters.sums, resisted(summary)
    attacked = np.array([adversarial(cell.condition) for cell in summary.cells], np.bool_)
    under = attacked[summary.clusters.cell]
    good, counted = (
        np.where(under, attack, columns[name])
        for attack, name in zip(attacks, ("success", "runs"), strict=True)
    )
    taken = per_cell(summary.clusters, chosen, good, counted)
    cells = [summary.cells[place] for place in set(taken.group.tolist())]
    seen = {cell.condition for cell in cells} | {cell.domain for cell in cells}
    named = (*(hazard.conditions or ()), *domains)
    runs = int(taken.n.sum())
    sums = task_sums(merged(taken)).get(0)
    tasks = 0 if sums is None else int(sums.k)
    reason = _unbounded(summary, protocol, tasks)
    where = ", ".join(hazard.conditions or ["every condition"])
    within = ", ".join(hazard.domains or ["every domain of the use" if wanted else "every domain"])
    return Measured(
        where=f"{where}; {within}",
        runs=runs,
        failures=runs - int(taken.y.sum()),
        tasks=tasks,
        bound=None if sums is None or reason else 1 - float(lower(sums, CONFIDENCE)),
        reason=reason,
        unseen=tuple(name for name in named if name not in seen),
    )


def _unbounded(summary: Summary, protocol: Protocol, tasks: int) -> str | None:
    """Return why no bound can be told, None where one can."""
    if tasks == 0:
        return "no run in its conditions and domains"
    if not (summary.unclustered == 0 or protocol.tasks_independent is True):
        return UNDECLARED
    if tasks < LEAST_TASKS:
        return f"{tasks} tasks; at least {LEAST_TASKS} are needed"
    if gives_outcomes(protocol, summary.calibration):
        return "a model gave the outcomes, and this bound would leave its error out"
    return None


NO_CONTEXT: Final = Context(schema=CONTEXT_SCHEMA)
"""Where nobody said anything: everything is blank."""


class Case(Struct, frozen=True, kw_only=True, eq=False):
    """The assessment of a bundle and the context of a use, on a day.

    `document` is the assessment's, as JSON values; `use`, `domain` and `risk` are blank where nobody stated
    them. `stale` names the members of ``about`` that are about something else than this evidence; it is empty
    without a context. `measured` holds what the evidence shows of each hazard, `window` the runs in their
    order; `first_run` and `last_run` are the days of the first and the last run, or of the declared period
    where no run has a time.
    """

    assessment: Assessment
    document: dict[str, Any]
    given: Given | None
    use: Use
    domain: OperatingDomain
    risk: Risk
    signed: Issued | None
    stale: tuple[str, ...]
    measured: dict[str, Measured]
    window: Window | None
    today: date | None
    first_run: date | None
    last_run: date | None

    @property
    def context(self) -> Context:
        """What people said, everything blank where nobody said anything."""
        return self.given.context if self.given else NO_CONTEXT

    @property
    def due(self) -> date | None:
        """The day by which the source asks for another test; None where no run is dated."""
        most = timedelta(days=MOST_DAYS)
        first = self.first_run or self.last_run
        return first and min(first, date.max - most) + most

    @property
    def runs_on(self) -> str:
        """When the runs were made and how many say so if not all do, or that only a period was declared."""
        days = " to ".join(dict.fromkeys(str(day) for day in (self.first_run, self.last_run) if day))
        timed, every = self.assessment.times.timed, self.assessment.counts.records
        if timed:
            return f"runs of {days}" + (f" ({timed:,} of {every:,} dated)" if timed < every else "")
        return f"runs not dated, declared {days}" if days else "runs not dated"

    @property
    def word(self) -> str | None:
        """Whether the passport binds what people said by its digest; None where nobody said anything."""
        if self.given is None:
            return None
        named = self.signed and self.signed.predicate.assessment.context
        bound = "not the context that the passport names" if named else "unsigned"
        if named == self.given.digest:
            bound = "signed in the passport (signature not verified here)"
        return f"context.json, the owner's word, {bound}"

    @property
    def manifest(self) -> Manifest:
        """The manifest of the evidence."""
        return self.assessment.facts.manifest

    @property
    def data(self) -> bytes:
        """The bytes of the assessment document as ``certkit assess -o`` writes them."""
        return canonical.pretty(self.document).encode()

    @property
    def agent(self) -> str:
        """The agent's name and version."""
        return f"{self.manifest.agent.name} {self.manifest.agent.version}"

    @property
    def tier(self) -> int:
        """The tier that was asked for."""
        return self.assessment.verdict.required_tier

    @property
    def specimen(self) -> bool:
        """Whether the evidence is simulated."""
        return bool(self.document["bundle"]["origin"] == "simulated")

    @property
    def tested(self) -> set[str]:
        """The domains with runs under a fault."""
        return {cell["domain"] for cell in self.cells if cell["condition"] != Condition.NOMINAL}

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The domains and conditions with runs, those held out for new fault types left out."""
        cells = self.document["breakdown"]
        return [cell for cell in cells if cell["split"] == Split.STANDARD and cell["runs"]]

    @property
    def wanted(self) -> set[str]:
        """The domains in which the agent is to be used."""
        return set(self.domain.domains or ())

    def ended(self, until: str | None) -> bool:
        """Tell whether something ended, or before the last run; without a clock nothing holds."""
        if until is None or self.today is None:
            return until is not None
        return date.fromisoformat(until) < max(self.today, self.last_run or self.today)

    def counts(self, day: str | None) -> bool:
        """Tell whether a day is from the last run to today; without a clock none is."""
        made = date.fromisoformat(day) if day else None
        return made is not None and self.today is not None and (self.last_run or made) <= made <= self.today

    @property
    def reviewing(self) -> set[str]:
        """Who reviewed this evidence, and no other: a person with a name, on a day that counts."""
        dated = {item.person for item in self.context.reviewers or () if self.counts(item.date)}
        return set() if self.stale else dated & self.context.reviewing

    @property
    def unapproved(self) -> str | None:
        """Why no approving decision of the owner is in force for this evidence; None where one is."""
        context, made = self.context, self.context.decision or Decision()
        seen = (item for item in context.reviewers or () if context.independent(item.person))
        reviewed = min((str(item.date) for item in seen if self.counts(item.date)), default="")
        day, outcome = made.date or "", made.outcome or ""
        reasons = {
            "nobody has decided": not outcome,
            "it is about other evidence": bool(self.stale),
            "it is not by an owner with a name": made.by != context.owner or not context.named(made.by),
            f"it is {outcome}": not outcome.startswith("approved"),
            "it names no conditions": outcome == "approved_with_conditions" and not made.conditions,
            "it has no date": not day,
            f"it is of {day}, before the last run": day < str(self.last_run or ""),
            f"it is of {day}, which is to come": not self.counts(day),
            f"it ended on {made.until}": self.ended(made.until),
            "no independent review counts": not reviewed,
            f"it is of {day}, before the review of {reviewed}": day < reviewed,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)


def case(
    assessment: Assessment,
    *,
    context: Given | None = None,
    summary: Summary | None = None,
    signed: Issued | None = None,
    today: date | None = None,
) -> Case:
    """Return what a report is drawn from; a context with hazards needs the summary.

    Raises `InputError` ``context.invalid`` where a hazard names a criterion that there is not.
    """
    protocol = assessment.facts.manifest.protocol
    context = context and context.knowing(assessment.facts.manifest)
    times, period = assessment.times, protocol.period
    span = (times.first, times.last) if times.first is not None or period is None else period.span
    first_run, last_run = (time and time.date() for time in map(moment, span))
    said = context.context if context else NO_CONTEXT
    domain = said.operating_domain or OperatingDomain()
    used = domain.domains or ()
    if said.hazards and summary is None:
        raise TypeError("hazards are measured on the summary, which is missing")
    known = {row.id for row in assessment.criteria} | set(CATALOGUE)
    unknown = (
        f"/hazards/{place}/criteria/{number}: no criterion is called {name!r}"
        for place, hazard in enumerate(said.hazards or ())
        for number, name in enumerate(hazard.criteria or ())
        if name not in known
    )
    refuse(unknown, context.where if context else "")
    return Case(
        assessment=assessment,
        document=assessment.to_dict(),
        given=context,
        use=said.use or Use(),
        domain=domain,
        risk=said.risk or Risk(),
        signed=signed,
        stale=said.stale(**assessment.about) if context else (),
        measured={item.id: measure(summary, item, protocol, used) for item in said.hazards or () if summary},
        window=summary.window if summary else None,
        today=today,
        first_run=first_run,
        last_run=last_run,
    )
