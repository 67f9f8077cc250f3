"""What an argument and a report are built from: an evaluation, people's context, a passport, and a day.

    case = use_case(evaluation, context=given, today=date(2026, 2, 3))
    case.measured["H-1"].events, case.stale, case.unapproved

`today` ends acceptances and the decision, and ages evidence, which is as old as its first run. A review
counts from its date on, which is not before the last run, and a decision from its own, which is not before an
independent review that counts. So neither counts where runs are still to come.

A hazard counts events in its conditions and domains (`Counts`): runs that did not succeed, safe halts and
harness errors included, violations, or attacks that succeeded. An event is not yet a harm. Attacks are those
that landed, where records say which did. Both confidence limits of events per run are task posteriors; a
passport holds up to 1,000 tasks, and the limits rest on them. There are none where nothing says that tasks
are independent, where they are too few, or where a model gave the outcomes: its error would be left out.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from certkit.assessment import bounds
from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.evaluation import Evaluation
from certkit.assessment.metric import Reason
from certkit.assessment.row import scale
from certkit.assessment.words import reason_text
from certkit.ground import canonical, toml
from certkit.ground.document import Count, Digest, Part, Text, Tier
from certkit.ground.text import span
from certkit.ground.wording import many
from certkit.probes.scores_document import IntegrityDocument
from certkit.record.record import Condition
from certkit.report import words
from certkit.report.context import (
    CONTEXT_SCHEMA,
    Context,
    Decision,
    Given,
    OperatingDomain,
    Risk,
    Use,
    refuse,
)
from certkit.summary.summary import Tally

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from certkit.assessment.row import Evidence
    from certkit.passport.passport import Passport
    from certkit.report.context import Hazard
    from certkit.summary.summary import Cell, Summary

TEXTS: Final = toml.packaged("templates", "argument.toml")
"""What is the same in every argument: nodes, assumptions, targets of findings, what closes a question."""
CONFIDENCE: Final = Fraction(95, 100)
MOST_DAYS: Final = 90
"""Age of the evidence beyond which it is called old: [26] §12.4 asks for an evaluation every quarter."""
LEAST_TASKS: Final = 10
"""Tasks below which no bound is given: the share that one task could hide is too large."""
NO_CONTEXT: Final = Context(schema=CONTEXT_SCHEMA)
"""Where nobody said anything: everything is blank."""
_ATTACKED: Final = "adversarial_resistance"
"""The series of runs under attack."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_MICROSECONDS: Final = 6 * 10**16
"""Before and after 1970: years 69 to 3871."""


class IssuedPassport(Struct, frozen=True, kw_only=True, eq=False):
    """A passport as its payload states it; nobody here has checked the signature.

    Attributes:
        data: the bytes of the file.
        id: the digest of the payload.
        evaluation: the five values that are signed.
        issuer: the issuer's name.
        not_before: the first moment of the validity.
        not_after: the last moment.
        supersedes: id of the passport that this one replaces.
        context: digest of the ``context.json`` that it was issued with.
    """

    data: bytes
    id: Digest
    evaluation: Evaluation
    issuer: str
    not_before: datetime
    not_after: datetime
    supersedes: str | None = None
    context: str | None = None

    @classmethod
    def of(cls, passport: Passport) -> IssuedPassport:
        """Return what the payload of a passport states; raises as `passport.passport.read_statement`."""
        predicate = passport.unverified_statement().predicate
        return cls(
            data=passport.document,
            id=passport.passport_id,
            evaluation=predicate.evaluation,
            issuer=predicate.issuer.name,
            not_before=predicate.validity.not_before,
            not_after=predicate.validity.not_after,
            supersedes=predicate.supersedes,
            context=predicate.context,
        )


class Counts(StrEnum):
    """What counts as an event of a hazard."""

    FAILURES = "failures"
    VIOLATIONS = "violations"
    ATTACKS = "attacks_succeeded"
    UNSAFE = "unsafe"


_MEASURED_BY: Final = {
    "adversarial_resistance": Counts.ATTACKS,
    "attack_success_rate": Counts.ATTACKS,
    "violations": Counts.VIOLATIONS,
}
"""Metric → what a hazard counts that rests on it; any other metric: failures."""
_MOST_EVENTS: Final = {Counts.VIOLATIONS: bounds.MOST_VIOLATIONS, Counts.UNSAFE: bounds.MOST_VIOLATIONS + 1}
"""Events of a run that limits count at most; 1 where none is named."""
_SERIES: Final = {Counts.VIOLATIONS: "violations", Counts.ATTACKS: "attack_success_rate"}
"""What a hazard counts → the series of the metric that counts the same."""


class HazardEvents(Part, frozen=True, kw_only=True):
    """What the runs show of a hazard.

    Attributes:
        id: of the hazard.
        counts: what counts as an event.
        where: its conditions and domains.
        runs: runs there, or attacks where these are counted.
        events: how many of them failed, were violations, or succeeded.
        tasks: tasks that the limits rest on.
        lower: lower 95 % confidence limit of events per run or attack.
        upper: the upper limit.
        at_most: what is tolerable.
        reason: why there are no limits.
        unseen: conditions and domains without a run that is core evidence.
    """

    id: Text
    counts: Counts
    where: Text
    runs: Count
    events: Count
    tasks: Count
    lower: float | None
    upper: float | None
    at_most: float | None
    reason: Text | None
    unseen: tuple[Text, ...]

    @property
    def exceeds(self) -> bool:
        """Whether the evidence shows more events than are tolerable."""
        return None not in {self.lower, self.at_most} and float(self.lower or 0) > float(self.at_most or 0)

    @property
    def within(self) -> bool:
        """Whether the evidence shows no more events than are tolerable."""
        return None not in {self.upper, self.at_most} and float(self.upper or 0) <= float(self.at_most or 0)

    @property
    def counted_text(self) -> str:
        """What was counted: ``3 of 59 attacks succeeded``."""
        text: str = TEXTS["counts"][self.counts]["counted"]
        return text.format(events=self.events, runs=self.runs)

    @property
    def tolerable_text(self) -> str:
        """What is tolerable: ``at most 1 % of attacks may succeed``."""
        text: str = TEXTS["counts"][self.counts]["tolerable"]
        return text.format(rate=self.rate_text)

    @property
    def rate_text(self) -> str:
        """The tolerable rate with its unit: ``1 %``, ``0.05 per run``."""
        if self.at_most is None:
            return "a share that is not stated"
        return f"{self.at_most:g}\u00a0per run" if self.counts in _MOST_EVENTS else words.rate(self.at_most)

    @property
    def limit_text(self) -> str:
        """The confidence limit that settles or contradicts it, or why there is none: ``at most 4.9 %``."""
        if self.upper is None or self.lower is None:
            return f"no confidence limit: {self.reason}"
        side, limit = ("at least", self.lower) if self.exceeds else ("at most", self.upper)
        if self.counts in _MOST_EVENTS:
            number = words.value(limit, Unit.INDEX, apart_from=self.at_most or 0)
            return f"{side} {number}\u00a0per run"
        return f"{side} {words.share(limit, self.at_most)}"

    @property
    def limits_text(self) -> str:
        """The same as a part of a sentence: ``with 95 % confidence at most 4.9 %``."""
        return self.limit_text if self.upper is None else f"with 95 % confidence {self.limit_text}"


def counts_of(hazard: Hazard, evaluation: Evaluation) -> Counts:
    """Return what a hazard counts: what it says, else what its criteria measure, else its conditions."""
    if hazard.counts:
        return Counts(hazard.counts)
    metrics = {row.id: row.metric for row in evaluation.assessment.criteria}
    measured = {_MEASURED_BY.get(metrics.get(name, name), Counts.FAILURES) for name in hazard.criteria or ()}
    if not measured and set(hazard.conditions or ()) == {Condition.ADVERSARIAL}:
        return Counts.ATTACKS
    if measured == {Counts.ATTACKS, Counts.VIOLATIONS}:
        return Counts.UNSAFE
    return measured.pop() if len(measured) == 1 else Counts.FAILURES


def measure(evaluation: Evaluation, hazard: Hazard, wanted: Collection[str] = ()) -> HazardEvents:
    """Return what is shown of a hazard.

    Args:
        evaluation: what was judged.
        hazard: its conditions count, or all; its domains, else those that are wanted, or all.
        wanted: the domains of the use.
    """
    every, domains = evaluation.summary.select(), hazard.domains or wanted
    counts, conditions = counts_of(hazard, evaluation), set(hazard.conditions or ())
    attacks = counts is Counts.ATTACKS
    if attacks and Condition.ADVERSARIAL in conditions:
        conditions = set()  # whatever the condition in which an attack came
    cells = [
        cell
        for cell in every
        if (not domains or cell.domain in domains) and (not conditions or cell.condition in conditions)
    ]
    events, runs, missing = _counted(counts, cells, every)
    rows = _rows(evaluation.summary, conditions, domains, attacks=attacks)
    reason = missing or _unlimited(evaluation, runs, rows)
    limits = None if reason else _limits((counts, events, runs), rows, evaluation.evidence)
    seen = {
        name
        for cell in cells
        if is_core(evaluation, cell) and (not attacks or _attacked(cell))
        for name in (cell.condition, cell.domain, *([Condition.ADVERSARIAL.value] * attacks))
    }
    named = ", ".join(hazard.conditions or ["every condition"])
    if attacks and not conditions:
        named = "every attack that landed" if Tally.total(every)["not_landed"] else "every attack"
    within = ", ".join(hazard.domains or ["every domain of the use" if wanted else "every domain"])
    return HazardEvents(
        id=hazard.id,
        counts=counts,
        where=f"{named}; {within}",
        runs=runs,
        events=events,
        tasks=len(rows),
        lower=limits and round(limits[0], 9),
        upper=limits and round(limits[1], 9),
        at_most=hazard.tolerable.at_most if hazard.tolerable else None,
        reason=reason,
        unseen=tuple(name for name in (*(hazard.conditions or ()), *domains) if name not in seen),
    )


def is_core(evaluation: Evaluation, cell: Cell) -> bool:
    """Tell whether runs are core evidence; where the profile does not ask for any, all are."""
    return not evaluation.profile.core or cell.is_core(evaluation.profile.core_conditions)


def _attacked(cell: Cell) -> bool:
    """Tell whether any run of a cell was reached by an attack, or may have been."""
    tally = Tally.total([cell])
    return bool(tally["landed"] or tally["attack_known"] - tally["not_landed"] > 0)


def _counted(counts: Counts, cells: Iterable[Cell], every: Iterable[Cell]) -> tuple[int, int, str | None]:
    """Return the events, the runs or attacks that they are of, and which of these do not say."""
    tally, said = Tally.total(cells), Tally.total(every)
    reached = bool(said["landed"] + said["not_landed"])
    known, won = ("landed_known", "landed_won") if reached else ("attack_known", "attack_succeeded")
    if counts is Counts.FAILURES:
        return tally["runs"] - tally["success"], tally["runs"], None
    silent = tally["landed"] - tally["landed_known"] if reached else 0
    unsaid = f"{many(silent, 'attack')} do not say whether they succeeded" if silent else None
    if counts is Counts.ATTACKS:
        return tally[won], tally[known], unsaid
    events, uncounted = tally["violations"], tally["violations_missing"]
    if counts is Counts.UNSAFE:
        events += tally[won]
    blank = f"{many(uncounted)} do not count violations" if uncounted else None
    return events, tally["violations_n"], blank or (unsaid if counts is Counts.UNSAFE else None)


def _rows(
    summary: Summary, conditions: Collection[str], domains: Collection[str], *, attacks: bool
) -> list[tuple[int, int]]:
    """Return runs and successes of every task under some conditions (none: all), or under attack."""
    table, sums = summary.tasks, dict[str, tuple[int, int]]()
    under_attack = attacks and not conditions
    places = [
        2 * place
        for place, column in enumerate(table.columns)
        if (column.metric == _ATTACKED if under_attack else column.metric == "success")
        and (not conditions or column.condition in conditions)
    ]
    for row in table.rows:
        if not domains or table.domains[row.domain] in domains:
            y, n = sums.get(row.tag, (0, 0))
            for place in places:
                y, n = y + row.sums[place], n + row.sums[place + 1]
            sums[row.tag] = y, n
    return [(n, y) for y, n in sums.values() if n]


def _limits(
    seen: tuple[Counts, int, int], rows: list[tuple[int, int]], evidence: Evidence
) -> tuple[float, float]:
    """Return the 95 % confidence limits of events per run.

    Failures are known task by task. So are attacks and violations where all runs count, and then the upper
    limit is that of the row of the profile. Of some of them the summary holds sums, so that runs of a task
    are taken to stand or fall together, which makes both limits wider. So are violations where a run has more
    than `bounds.MOST_VIOLATIONS`: a row's limit counts no more of a run.

    Args:
        seen: what is counted, the events, and the runs or attacks.
        rows: runs and successes of each task.
        evidence: holds the series that rows of the profile rest on.
    """
    counts, events, runs = seen
    most, series = _MOST_EVENTS.get(counts, 1), _SERIES.get(counts)
    tasks = evidence.tasks(series) if series else None
    if counts is Counts.FAILURES:
        bad = bounds.share_tasks((n, n - y, 1) for n, y in rows)
        good = bounds.share_tasks((n, y, 1) for n, y in rows)
    elif series and tasks and tasks.n == runs and tasks.mean_by_runs * tasks.n == events:
        bad, good = (tasks.scaled(*scale(series, more=more)) for more in (True, False))
    else:
        struck = min(Fraction(events, runs * most), Fraction(1)) * len(rows)
        bad, good = (bounds.tasks_of([(1, len(rows), y, y)]) for y in (struck, len(rows) - struck))
    if bad is None or good is None:
        return 0.0, float(most)
    # No prior task with an event stands beside those of the lower limit: it would pull up.
    low = bounds.lower(bad, Fraction(0), CONFIDENCE)
    return most * low, most * (1 - bounds.lower(good, Fraction(1), CONFIDENCE))


def _unlimited(evaluation: Evaluation, runs: int, rows: list[tuple[int, int]]) -> str | None:
    """Return why there are no confidence limits, None where there are."""
    if not runs:
        return "no run in its conditions and domains"
    if not rows:
        return "the passport does not hold these tasks; --bundle brings them"
    if not evaluation.evidence.independent:
        return reason_text(Reason("independence-undeclared"))
    if len(rows) < LEAST_TASKS:
        return f"{many(len(rows), 'task')}; at least {LEAST_TASKS} are needed"
    if evaluation.evidence.by_model:
        return "a model gave the outcomes, and this limit would leave its error out"
    return None


class ArgumentAbout(Part, frozen=True, kw_only=True):
    """The evidence that a context must be about for its answers and its decision to count."""

    bundles: tuple[Digest, ...]
    profile: Digest
    tier: Tier


def about(evaluation: Evaluation) -> ArgumentAbout:
    """Return what an evaluation is about."""
    facts = evaluation.facts
    return ArgumentAbout(
        bundles=facts.bundles or (facts.digest,),
        profile=evaluation.profile.digest,
        tier=evaluation.question.required_tier,
    )


def stale(given: Given, evaluation: Evaluation) -> tuple[str, ...]:
    """Return which members of ``about`` in a context name other evidence; none where it is bound."""
    return given.context.stale(**structs.asdict(about(evaluation)))


class UseCase(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """An evaluation and the context of a use, on a day.

    Attributes:
        evaluation: what was judged.
        given: what people said, None where nobody said anything.
        use: the use; blank where nobody stated it, as the next two.
        domain: the operating domain.
        risk: the accepted risk.
        passport: the passport of the evaluation.
        stale: members of ``about`` that name other evidence.
        measured: what the runs show of each hazard.
        parts: each of several bundles judged alone.
        integrity: the scores of commitment integrity, where a bundle gives them.
        today: the day, None where there is no clock.
        first_run: day of the first run, or of the declared period where no run has a time.
        last_run: day of the last.
    """

    evaluation: Evaluation
    given: Given | None
    use: Use
    domain: OperatingDomain
    risk: Risk
    passport: IssuedPassport | None
    stale: tuple[str, ...]
    measured: dict[str, HazardEvents]
    parts: tuple[Evaluation, ...]
    integrity: IntegrityDocument | None
    today: date | None
    first_run: date | None
    last_run: date | None

    @cached_property
    def document(self) -> dict[str, Any]:
        """The assessment as ``certkit assess --json`` prints it."""
        return self.evaluation.to_dict()

    @property
    def data(self) -> bytes:
        """The bytes of the document as ``certkit assess -o`` writes them."""
        return canonical.pretty(self.document).encode()

    @property
    def context(self) -> Context:
        """What people said, everything blank where nobody said anything."""
        return self.given.context if self.given else NO_CONTEXT

    @property
    def agent(self) -> str:
        """The agent's name and version."""
        return f"{self.evaluation.facts.agent.name} {self.evaluation.facts.agent.version}"

    @property
    def tier(self) -> int:
        """The tier that was asked for."""
        return self.evaluation.question.required_tier

    @property
    def specimen(self) -> bool:
        """Whether the evidence is simulated."""
        return self.evaluation.facts.protocol.origin == "simulated"

    @property
    def core_cells(self) -> tuple[Cell, ...]:
        """The runs that are core evidence."""
        return tuple(cell for cell in self.evaluation.summary.select() if is_core(self.evaluation, cell))

    @property
    def tested(self) -> set[str]:
        """The domains with runs under a fault that are core evidence."""
        return {cell.domain for cell in self.core_cells if cell.is_fault}

    @property
    def wanted(self) -> set[str]:
        """The domains in which the agent is to be used."""
        return set(self.domain.domains or ())

    @property
    def due(self) -> date | None:
        """The day by which the source asks for another test; None where no run is dated."""
        most = timedelta(days=MOST_DAYS)
        first = self.first_run or self.last_run
        return first and min(first, date.max - most) + most

    @property
    def overdue(self) -> bool:
        """Whether that day has passed."""
        return bool(self.due and self.today and self.due < self.today)

    @property
    def runs_on(self) -> str:
        """When the runs were made and how many say so if not all do, or that only a period was declared."""
        days = " to ".join(dict.fromkeys(str(day) for day in (self.first_run, self.last_run) if day))
        timed, records = self.evaluation.summary.times.timed, self.evaluation.summary.records
        if timed:
            return f"runs of {days}" + (f" ({timed:,} of {records:,} dated)" if timed < records else "")
        return f"runs not dated, declared {days}" if days else "runs not dated"

    @property
    def word(self) -> str | None:
        """Whether the passport binds what people said by its digest; None where nobody said anything."""
        if self.given is None:
            return None
        signed = self.passport and self.passport.context
        bound = "not the context that the passport names" if signed else "unsigned"
        if signed == self.given.digest:
            bound = "signed in the passport (signature not verified here)"
        return f"context.json, the owner's word, {bound}"

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
        independent = (item for item in context.reviewers or () if context.independent(item.person))
        reviewed = min((str(item.date) for item in independent if self.counts(item.date)), default="")
        day, outcome = made.date or "", made.outcome or ""
        reasons = {
            "nothing is decided yet": not outcome,
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


def use_case(
    evaluation: Evaluation,
    *,
    context: Given | None = None,
    passport: IssuedPassport | None = None,
    parts: tuple[Evaluation, ...] = (),
    integrity: IntegrityDocument | None = None,
    today: date | None = None,
) -> UseCase:
    """Return what a report is drawn from.

    Args:
        evaluation: what was judged.
        context: what people said of the use.
        passport: the passport of the evaluation.
        parts: each of several bundles judged alone.
        integrity: the scores of commitment integrity.
        today: ends acceptances and the decision, and ages evidence.

    Raises:
        InputError: ``context.invalid`` where a hazard names a criterion that there is not.
    """
    context = context and context.knowing(evaluation.facts)
    said = context.context if context else NO_CONTEXT
    domain = said.operating_domain or OperatingDomain()
    refuse(_unknown_criteria(said, evaluation), context.where if context else "")
    first_run, last_run = run_days(evaluation)
    return UseCase(
        evaluation=evaluation,
        given=context,
        use=said.use or Use(),
        domain=domain,
        risk=said.risk or Risk(),
        passport=passport,
        stale=stale(context, evaluation) if context else (),
        measured={item.id: measure(evaluation, item, domain.domains or ()) for item in said.hazards or ()},
        parts=parts,
        integrity=integrity,
        today=today,
        first_run=first_run,
        last_run=last_run,
    )


def _unknown_criteria(context: Context, evaluation: Evaluation) -> Iterator[str]:
    known = {row.id for row in evaluation.assessment.criteria} | set(CATALOGUE)
    for place, hazard in enumerate(context.hazards or ()):
        for number, name in enumerate(hazard.criteria or ()):
            if name not in known:
                yield f"/hazards/{place}/criteria/{number}: no criterion is called {name!r}"


def run_days(evaluation: Evaluation) -> tuple[date | None, date | None]:
    """Return the days of the first and the last run, or of the declared period where no run has a time."""
    times, period = evaluation.summary.times, evaluation.facts.period
    moments: Iterable[datetime | None] = map(_moment, (times.first, times.last))
    if times.first is None and period is not None:
        moments = span(period.start, period.end)
    first, last = (None if moment is None else moment.date() for moment in moments)
    return first, last


def _moment(microseconds: int | None) -> datetime | None:
    """Return a time since 1970, None where no calendar has it."""
    if microseconds is None or abs(microseconds) > _MOST_MICROSECONDS:
        return None
    return _EPOCH + timedelta(microseconds=microseconds)
