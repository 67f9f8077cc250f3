"""Whether a statement agrees with itself: what follows from its own rows and counts is computed again.

A signature says who made a claim, not that it adds up. Two mechanisms tell, without any evidence:

- A value that follows from others is computed again and compared (`_derived`): the words of the claim, rates,
  tiers and binding rows under both readings, the scope.
- Claims that are impossible for any evidence are refused (`_impossible`): more failures than runs, a row that
  is met by a value on the wrong side of its threshold.

Decimals have six digits, so a value written like the threshold may lie on either side of it. `parts` looks at
pooled bundles in the same way, `bounds` at values and bounds; what only the evidence shows, a replay tells.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final

from certkit.passport import implied, task_table
from certkit.passport.bounds import needs_none
from certkit.passport.implied import NOMINAL
from certkit.passport.terms import CLOCK_SKEW, millionths, rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from certkit.passport.statement import CriterionClaim, Dates, Predicate, RowAtTier, Statement

    Compared = tuple[str, Any, Any]
    """What is compared, in words; the stated value; the value computed again."""

MAX_VALIDITY: Final = timedelta(days=366)
EVIDENCE_NAME: Final = "evidence bundle"

_SHOWN: Final = 120


def disagreements(statement: Statement) -> Iterator[str]:
    """Yield how a statement contradicts itself; nothing where it agrees."""
    yield from _times(statement.predicate)
    yield from _impossible(statement.predicate)
    yield from differing(_derived(statement))


def differing(compared: Iterable[Compared]) -> Iterator[str]:
    """Yield in words the values that are not stated as they are computed."""
    for name, stated, computed in compared:
        if stated != computed:
            yield f"{name}: stated {_short(stated)}, expected {_short(computed)}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _derived(statement: Statement) -> Iterator[Compared]:
    predicate = statement.predicate
    agent, evidence, judgement = predicate.agent, predicate.evidence, predicate.assessment
    yield (
        "subjects",
        [(subject.name, f"sha256:{subject.digest.sha256}") for subject in statement.subject],
        [(agent.name, agent.digest), (EVIDENCE_NAME, evidence.digest)],
    )
    claim = implied.sentence(judgement.tier, judgement.profile.id, predicate.origin, predicate.challenges)
    yield "claim", predicate.claim, claim
    yield "name", predicate.name, implied.title(agent.name, agent.version, predicate.origin)
    yield from _rates(predicate)
    yield from task_table.sums(predicate.profile_of_reliability)
    yield from _tiers(predicate)
    yield from _scope(predicate)
    yield from _implied(predicate)


def _implied(predicate: Predicate) -> Iterator[Compared]:
    """Yield what a statement must say because of its other parts."""
    judgement, evidence, criteria = predicate.assessment, predicate.evidence, predicate.criteria
    cells = predicate.profile_of_reliability.cells
    limits = implied.limitations(predicate.agent, evidence, judgement.profile, criteria)
    yield from _listed("limitations", predicate.limitations, limits)
    yield from _listed("failure modes", predicate.known_failure_modes, implied.failure_modes(cells))
    yield from _listed("exclusions", predicate.scope.exclusions, implied.exclusions(evidence, criteria))
    ends = implied.triggers(judgement.tier, criteria)
    yield from _listed("re-test triggers", predicate.validity.retest_triggers, ends)
    graded = {(challenge.code, challenge.severity) for challenge in predicate.challenges}
    yield "challenges left out", [], sorted(set(implied.challenges(predicate).items()) - graded)


def _listed(name: str, stated: tuple[object, ...], expected: tuple[object, ...]) -> Iterator[Compared]:
    """Yield what a list lacks, what in it does not follow, and its length."""
    yield f"{name} left out", [], [item for item in expected if item not in stated]
    yield f"{name} that do not follow", [item for item in stated if item not in expected], []
    yield f"number of {name}", len(stated), len(expected)


def _rates(predicate: Predicate) -> Iterator[Compared]:
    """Yield the values of criteria that count successes, and the counts of the rate under faults."""
    faults = [cell for cell in predicate.profile_of_reliability.cells if cell.condition != NOMINAL]
    whole = sum(cell.successes for cell in faults), sum(cell.runs for cell in faults)
    for row in predicate.criteria:
        successes = row.counts.get("successes")
        if row.metric == "r_op" and row.state == "measured":
            yield f"successes and runs of {row.id}", (successes, row.n), whole
            yield f"runs of {row.id}", row.n, predicate.evidence.fault_runs
        if isinstance(row.value, str) and successes is not None:
            yield f"value of {row.id}", row.value, rate(successes, row.n or 0)


def _tiers(predicate: Predicate) -> Iterator[Compared]:
    """Yield tier, status and binding rows of the judgement, from the status of each row at each tier."""
    judgement = predicate.assessment
    readings = {"table": judgement.table, "bounded": judgement.bounded}
    for name, claimed in readings.items():
        if claimed is not None:
            yield f"tier under the {name} reading", claimed.tier, _attained(_statuses(predicate, name))
    reading = judgement.profile.reading
    decides = readings[reading]
    yield f"tier, which the {reading} reading decides", judgement.tier, decides.tier if decides else 0
    required = judgement.required_tier
    status = _statuses(predicate, reading).get(required)
    serious = [item for item in predicate.challenges if item.severity == "serious"]
    if status == "met" and any(item.state == "open" for item in serious):
        status = "contested"
    if answered := [item for item in predicate.challenges if item.state == "answered"]:
        yield "context that answers challenges", judgement.context is not None, True
        yield "answers without an author", [item.code for item in answered if not item.answered_by], []
    yield f"status of Tier {required}", judgement.status, status
    following = str(judgement.tier + 1)
    unmet = {
        row.id
        for row in predicate.criteria
        if following in row.tiers and _status(row.tiers[following], reading) != "met"
    }
    yield f"rows that bind Tier {following}", sorted(set(judgement.binding)), sorted(unmet)


def _statuses(predicate: Predicate, reading: str) -> dict[int, str]:
    """Return the status of every tier: it is met where all rows of it and of the tiers below are met."""
    by_tier: dict[int, set[str]] = {}
    for criterion in predicate.criteria:
        for tier, row in criterion.tiers.items():
            by_tier.setdefault(int(tier), set()).add(_status(row, reading))
    result: dict[int, str] = {}
    so_far: set[str] = set()
    for number in sorted(by_tier):
        so_far |= by_tier[number]
        unmet = "not_met" if "not_met" in so_far else "insufficient"
        result[number] = "met" if so_far == {"met"} and predicate.evidence.records else unmet
    return result


def _status(row: RowAtTier, reading: str) -> str:
    if reading == "table" or row.table == "not_tested":
        return row.table
    return "insufficient" if row.bounded is None else row.bounded.status


def _attained(statuses: dict[int, str]) -> int:
    return max((number for number, status in statuses.items() if status == "met"), default=0)


def _scope(predicate: Predicate) -> Iterator[Compared]:
    evidence, runs = predicate.evidence, predicate.profile_of_reliability.cells
    yield "domains of the scope", sorted(predicate.scope.domains), sorted({row.domain for row in runs})
    mix: Counter[str] = Counter()
    for row in runs:
        mix[row.condition] += row.runs
    yield "fault mix of the scope", predicate.scope.fault_mix, dict(mix)
    yield "nominal runs of the evidence", evidence.nominal_runs, mix[NOMINAL]
    yield "fault runs of the evidence", evidence.fault_runs, mix.total() - mix[NOMINAL]


def _impossible(predicate: Predicate) -> Iterator[str]:
    """Yield what cannot be, whatever the evidence is."""
    evidence, profile = predicate.evidence, predicate.profile_of_reliability
    if not predicate.criteria:
        yield "it has no criteria"
    yield from _twice("criterion", [row.id for row in predicate.criteria])
    yield from _twice("count of runs in", [(row.domain, row.condition) for row in profile.cells])
    yield from task_table.impossible(profile)
    for criterion in predicate.criteria:
        yield from _rows(criterion)
    if evidence.nominal_runs + evidence.fault_runs + evidence.novel_fault_runs > evidence.records:
        yield "its evidence has more runs than records"
    if predicate.supersedes in {predicate.agent.digest, evidence.digest}:
        yield "the digest that it supersedes is that of the agent or the evidence, not of a passport"
    yield from _validity(predicate)


def _twice(name: str, keys: list[Any]) -> Iterator[str]:
    for key, count in Counter(keys).items():
        if count > 1:
            place = key if isinstance(key, str) else ", ".join(filter(None, key)) or "all domains"
            yield f"{name} {place} occurs more than once"


def _validity(predicate: Predicate) -> Iterator[str]:
    validity = predicate.validity
    if validity.not_after < validity.not_before:
        yield "the validity ends before it begins"
    if validity.not_after - validity.not_before > MAX_VALIDITY:
        yield f"the validity is longer than {MAX_VALIDITY.days} days"


def _times(predicate: Predicate) -> Iterator[str]:
    validity, scope = predicate.validity, predicate.scope.dates
    dates = [scope, *(bundle.dates for bundle in predicate.evidence.bundles or ())]
    runs = (time for period in dates for time in (period.first_run, period.last_run))
    for time in (*runs, validity.not_before, validity.not_after):
        try:
            _ = time and time.astimezone(UTC)
        except OverflowError:
            yield f"{time} is no time in UTC"
    if not in_order(scope):
        yield "the times of its first and last run do not agree"


def late_run(predicate: Predicate) -> str | None:
    """Tell in words of a run that started after the validity began, None where none did."""
    last, start = last_run(predicate), predicate.validity.not_before
    if last is None or last - start <= CLOCK_SKEW:
        return None
    return f"rests on a run of {last.isoformat()}, and is valid from {start.isoformat()}"


def last_run(predicate: Predicate) -> datetime | None:
    """Return the start of the last run in any of the bundles, None where runs bear no times."""
    dates = [predicate.scope.dates, *(bundle.dates for bundle in predicate.evidence.bundles or ())]
    return max((period.last_run for period in dates if period.last_run is not None), default=None)


def _rows(criterion: CriterionClaim) -> Iterator[str]:
    """Yield the rows of a criterion whose value or bound lies on the wrong side of the threshold."""
    if not criterion.tiers:
        yield f"criterion {criterion.id} is judged at no tier"
    interval = criterion.interval
    if interval is not None and millionths(interval.low) > millionths(interval.high):
        yield f"the interval of criterion {criterion.id} ends before it begins"
    for tier, row in criterion.tiers.items():
        if not by_value(criterion, row):
            yield f"criterion {criterion.id} at Tier {tier} cannot be {row.table} with its value"
        if not by_bound(criterion, row):
            yield f"criterion {criterion.id} at Tier {tier} cannot be met by bounds with its bound"


def by_value(criterion: CriterionClaim, row: RowAtTier) -> bool:
    """Tell whether the value of a row allows its status by the table."""
    if row.table not in {"met", "not_met"}:
        return True
    value = criterion.value if row.value is None else row.value
    if value is None or criterion.state == "unmeasured":
        return False
    return allowed(row, by=value, met=row.table == "met")


def by_bound(criterion: CriterionClaim, row: RowAtTier) -> bool:
    """Tell whether the bound of a row allows its status by bounds."""
    bounded = row.bounded
    if bounded is None or bounded.status != "met":
        return True
    if row.table != "met":
        return False
    if bounded.bound is None:
        return needs_none(criterion, row)
    return allowed(row, by=bounded.bound, met=True)


def allowed(row: RowAtTier, *, by: str | bool, met: bool) -> bool:
    """Tell whether a row may be met, or unmet, by a number or a truth value."""
    if isinstance(by, bool) or isinstance(row.threshold, bool):
        return (by == row.threshold) == met
    value, asked = millionths(by), millionths(row.threshold)
    return value >= asked if (row.operator in {">", ">="}) == met else value <= asked


def in_order(dates: Dates) -> bool:
    """Tell whether the first and the last run are both there or neither is, the first not after the last."""
    if dates.first_run is None or dates.last_run is None:
        return dates.first_run is dates.last_run
    return dates.first_run <= dates.last_run
