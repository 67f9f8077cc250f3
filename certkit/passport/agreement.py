"""Whether a statement agrees with itself: what its own rows, counts and words must give.

A signature says who made a claim, not that it adds up. What can be told from the statement alone is told
here, so that a tier which its own rows do not carry is refused without the evidence: rows that are judged
against their value, tiers against their rows, the sentence of the claim against the tier, the scope
against the counted runs, and in `parts` the bundles of an accumulation against the whole. What only the
evidence can tell is told by a replay.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Final

from certkit.passport import parts
from certkit.passport.terms import DIGITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.passport.statement import (
        Bound,
        Column,
        CriterionClaim,
        Predicate,
        RowAtTier,
        Statement,
        TaskTable,
    )

MAX_VALIDITY: Final = timedelta(days=366)
SPECIMEN: Final = "SPECIMEN (simulated evidence)"
EVIDENCE_NAME: Final = "evidence bundle"
NOMINAL: Final = "nominal"
EVERY_RUN: Final = "every run, no bound"
"""How a row that asks for the most that its metric can be says that it is judged by its value."""

MOST: Final = {
    "gap": "100.000000",
    "cascade_penalty": "100.000000",
    "ti": "5.000000",
    "human_trust_score": "5.000000",
}
"""The most that a metric can be, where that is not 1; the catalogue is too slow to load for it."""

SUCCESS: Final = "success"
TASKS: Final = 1_000
"""Tasks that a task table keeps."""

RANGES: Final[dict[str, tuple[int, int | None]]] = {
    **dict.fromkeys((SUCCESS, "frr", "pei", "irs", "adversarial_resistance"), (0, 1)),
    "ti": (1, 5),
    "violations": (0, None),
}
"""The least and the most that one run can add to a column of the task table."""

RATES: Final = frozenset({"r_op", "domain_min"})
"""The metrics that are successes over runs, of which `domain_min` is that of one domain."""

POINTS: Final = frozenset({"csi", "csi_windowed"})
"""The metrics that are judged by bounds without one: none is defined for them."""


def sentence(tier: int, profile: str, origin: str) -> str:
    """Return the claim in words, the only words in which a passport may make it."""
    shown = f"meets the Tier {tier} evidence thresholds of profile {profile}"
    if not tier:
        shown = f"meets the evidence thresholds of no tier of profile {profile}"
    return f"specimen, from simulated evidence: {shown}" if origin == "simulated" else shown


def title(name: str, version: str, origin: str) -> str:
    """Return the name of a passport; a specimen says so in it."""
    plain = f"Agent passport of {name} {version}"
    return f"{SPECIMEN}: {plain}" if origin == "simulated" else plain


def disagreement(statement: Statement) -> str | None:
    """Return the first way in which a statement contradicts itself, None where it agrees."""
    predicate = statement.predicate
    checks = (
        _subjects(statement),
        _times(predicate),
        _words(predicate),
        _rows(predicate),
        _counted(predicate),
        _table(predicate),
        _tiers(predicate),
        _scope(predicate),
        _named(predicate),
        parts.disagreements(predicate),
    )
    return next((found for check in checks for found in check), None)


def _subjects(statement: Statement) -> Iterator[str]:
    agent, evidence = statement.predicate.agent, statement.predicate.evidence
    found = [(subject.name, f"sha256:{subject.digest.sha256}") for subject in statement.subject]
    if [digest for _, digest in found] != [agent.digest, evidence.digest]:
        yield "the subjects are not the agent and the evidence that the predicate names"
    if [name for name, _ in found] != [agent.name, EVIDENCE_NAME]:
        yield "the subjects are not named as the predicate names them"


def _times(predicate: Predicate) -> Iterator[str]:
    dates = [predicate.scope.dates, *(part.dates for part in predicate.evidence.bundles or ())]
    runs = (time for one in dates for time in (one.first_run, one.last_run))
    for time in (*runs, predicate.validity.not_before, predicate.validity.not_after):
        try:
            _ = time and time.astimezone(UTC)
        except OverflowError:
            yield f"{time} is no time in UTC"


def _words(predicate: Predicate) -> Iterator[str]:
    judgement, agent = predicate.assessment, predicate.agent
    if predicate.claim != sentence(judgement.tier, judgement.profile.id, predicate.origin):
        yield f"the words of the claim are not those of Tier {judgement.tier} of {judgement.profile.id}"
    if predicate.name != title(agent.name, agent.version, predicate.origin):
        yield "its name is not that of a passport of this agent and origin"
    validity = predicate.validity
    if validity.not_after < validity.not_before:
        yield "the validity ends before it begins"
    if validity.not_after - validity.not_before > MAX_VALIDITY:
        yield f"the validity is longer than {MAX_VALIDITY.days} days"
    if all(trigger.event != "component_change" for trigger in validity.retest_triggers):
        yield "a changed component does not end it"


def _rows(predicate: Predicate) -> Iterator[str]:
    names = [row.id for row in predicate.criteria]
    if not names:
        yield "it has no criteria"
    if len(set(names)) != len(names):
        yield "a criterion occurs twice"
    for criterion in predicate.criteria:
        if not criterion.tiers:
            yield f"criterion {criterion.id} is judged at no tier"
        if (interval := criterion.interval) and _digits(interval.low) > _digits(interval.high):
            yield f"the interval of criterion {criterion.id} ends before it begins"
        for tier, row in criterion.tiers.items():
            if not _possible(criterion, row):
                yield f"criterion {criterion.id} at Tier {tier} is {row.table}, which its value is not"
            elif not carried(criterion.metric, row):
                yield f"criterion {criterion.id} at Tier {tier} is met by bounds, which its bound is not"


def _counted(predicate: Predicate) -> Iterator[str]:
    """Yield where a rate under faults is not that of the integers that the passport carries."""
    faults = [cell for cell in predicate.profile_of_reliability.cells if cell.condition != NOMINAL]
    told = sum(cell.successes for cell in faults), sum(cell.runs for cell in faults)
    for row in predicate.criteria:
        if row.metric not in RATES or row.state != "measured" or not isinstance(row.value, str):
            continue
        good, runs = row.counts.get("successes"), row.n
        whole = told == (good, runs) and runs == predicate.evidence.fault_runs
        if good is None or not runs or (row.metric == "r_op" and not whole):
            yield f"the counts of {row.id} are not those of its profile of reliability"
        elif 2 * abs(_digits(row.value) * runs - 10**DIGITS * good) > runs:  # half of the last digit
            yield f"{row.id} is {row.value}, which {good:,} of {runs:,} is not"


def _table(predicate: Predicate) -> Iterator[str]:
    """Yield how the task table is not one that any runs give."""
    table = predicate.profile_of_reliability
    keys = [(column.metric, column.condition) for column in table.columns]
    if len(set(keys)) != len(keys) or len(set(table.domains)) != len(table.domains):
        yield "a column or a domain of its task table occurs twice"
    if any((column.condition is None) == (column.metric == SUCCESS) for column in table.columns):
        yield "its task table tells conditions apart for other than successes"
    runs: dict[str, tuple[int, int]] = {}
    for cell in table.cells:
        good, count = runs.get(cell.condition, (0, 0))
        runs[cell.condition] = (good + cell.successes, count + cell.runs)
    told = {str(item.condition): (item.y, item.n) for item in table.columns if item.metric == SUCCESS}
    if told != {name: pair for name, pair in runs.items() if pair[1]}:
        yield "the successes of its task table are not over the runs that it counts"
    yield from _tasks(table)


def _tasks(table: TaskTable) -> Iterator[str]:
    """Yield how the rows of a task table are not its tasks."""
    names = [(row.tag, row.domain) for row in table.rows]
    order = [(urlsafe_b64decode(tag), domain) for tag, domain in names]
    if order != sorted(set(order)):
        yield "the rows of its task table are not sorted, or one occurs twice"
    kept = len({tag for tag, _ in names})
    if kept != min(table.tasks, TASKS):
        yield f"its task table has {kept:,} of {table.tasks:,} tasks"
    width = 2 * len(table.columns)
    if any(len(row.sums) != width or row.domain >= len(table.domains) for row in table.rows):
        yield "a row of its task table does not fit the columns and domains"
        return
    for place, column in enumerate(table.columns):
        pairs = [(row.sums[2 * place], row.sums[2 * place + 1]) for row in table.rows]
        if not all(_value_of_runs(column, y, n) for y, n in (*pairs, (column.y, column.n))):
            yield f"no runs give the integers of {column.metric} in its task table"
        total = tuple(map(sum, zip(*pairs, strict=True))) if pairs else (0, 0)
        if kept == table.tasks and total != (column.y, column.n):
            yield f"the integers of {column.metric} in its task table do not add up"


def _value_of_runs(column: Column, y: int, n: int) -> bool:
    """Tell whether y can be the sum of n values of a column's metric, scaled and rounded."""
    low, high = RANGES.get(column.metric, (0, None))  # a later writer may carry more
    least, most = low * column.scale * n, None if high is None else high * column.scale * n
    return y >= least and (most is None or y <= most) and (n > 0 or y == 0)


def _possible(criterion: CriterionClaim, row: RowAtTier) -> bool:
    """Tell whether some value that is written with these digits has the row's status."""
    if row.table not in {"met", "not_met"}:
        return True
    value = criterion.value if row.value is None else row.value
    if value is None or criterion.state == "unmeasured":
        return False
    if isinstance(value, bool) or isinstance(row.threshold, bool):
        return (value == row.threshold) == (row.table == "met")
    # What is written alike may lie on either side of the threshold, since both are rounded.
    found, asked = _digits(value), _digits(row.threshold)
    return found >= asked if (row.operator in {">", ">="}) == (row.table == "met") else found <= asked


def _digits(text: str) -> int:
    """Return a decimal as the integer of its digits, six of them after the point."""
    return int(text.replace(".", ""))


def carried(metric: str, row: RowAtTier) -> bool:
    """Tell whether the bound can carry the bounded status: only what passes is met by bounds."""
    found = row.bounded
    if found is None or found.status != "met":
        return True
    if metric not in POINTS and row.table != "met":
        return False
    if found.bound is None:
        return _met_without_bound(metric, row, found)
    if isinstance(found.bound, bool) or isinstance(row.threshold, bool):
        return found.bound == row.threshold
    bound, asked = _digits(found.bound), _digits(row.threshold)
    return bound >= asked if row.operator in {">", ">="} else bound <= asked


def _met_without_bound(metric: str, row: RowAtTier, found: Bound) -> bool:
    """Tell whether a row is one of the few for which no bound is defined, or that no bound could reach."""
    if metric in POINTS:
        return True
    asks_most = row.operator == ">=" and row.threshold == MOST.get(metric, "1.000000")
    return row.threshold is True or (asks_most and found.rests_on == EVERY_RUN)


def _status(row: RowAtTier, reading: str) -> str:
    if reading == "table" or row.table == "not_tested":
        return row.table
    return "insufficient" if row.bounded is None else row.bounded.status


def _judged(predicate: Predicate, reading: str) -> dict[int, str]:
    """Return the status of every tier, that of the tiers below included."""
    found: dict[int, set[str]] = {}
    for criterion in predicate.criteria:
        for tier, row in criterion.tiers.items():
            found.setdefault(int(tier), set()).add(_status(row, reading))
    result: dict[int, str] = {}
    below: set[str] = set()
    for number in sorted(found):
        below |= found[number]
        unmet = "not_met" if "not_met" in below else "insufficient"
        result[number] = "met" if below == {"met"} and predicate.evidence.records else unmet
    return result


def _attained(judged: dict[int, str]) -> int:
    return max((number for number, status in judged.items() if status == "met"), default=0)


def _tiers(predicate: Predicate) -> Iterator[str]:
    judgement = predicate.assessment
    reading = judgement.profile.reading
    decided = judgement.table if reading == "table" else judgement.bounded
    if judgement.tier != (decided.tier if decided else 0):
        yield f"tier {judgement.tier} is not the tier of the reading that decides"
    for name, claimed in (("table", judgement.table), ("bounded", judgement.bounded)):
        found = _attained(_judged(predicate, name))
        if claimed is not None and claimed.tier != found:
            yield f"its rows give Tier {found} under the {name} reading, it claims Tier {claimed.tier}"
    judged = _judged(predicate, reading)
    if judgement.required_tier not in judged:
        yield f"no row speaks of the required Tier {judgement.required_tier}"
    elif judgement.status != judged[judgement.required_tier]:
        yield f"Tier {judgement.required_tier} is {judged[judgement.required_tier]} by its rows"
    following = str(judgement.tier + 1)
    unmet = {
        row.id
        for row in predicate.criteria
        if following in row.tiers and _status(row.tiers[following], reading) != "met"
    }
    if set(judgement.binding) != unmet:
        yield f"the rows that bind Tier {following} are not those that it names"


def _scope(predicate: Predicate) -> Iterator[str]:
    evidence, runs = predicate.evidence, predicate.profile_of_reliability.cells
    if sorted(predicate.scope.domains) != sorted({row.domain for row in runs}):
        yield "its scope names other domains than its counts of runs"
    if len({(row.domain, row.condition) for row in runs}) != len(runs):
        yield "its runs of a domain under a condition are counted twice"
    mix: dict[str, int] = {}
    for row in runs:
        mix[row.condition] = mix.get(row.condition, 0) + row.runs
    if not parts.in_order(predicate.scope.dates):
        yield "the times of its first and last run do not agree"
    if predicate.scope.fault_mix != mix:
        yield "its fault mix is not that of its counts of runs"
    nominal = mix.get(NOMINAL, 0)
    if (nominal, sum(mix.values()) - nominal) != (evidence.nominal_runs, evidence.fault_runs):
        yield "its counts of runs are not those of the evidence that it names"
    if sum(mix.values()) + evidence.novel_fault_runs > evidence.records:
        yield "its evidence has more runs than records"


def _named(predicate: Predicate) -> Iterator[str]:
    """Yield what it names and cannot mean: failures of runs that nobody counted, another thing's digest."""
    counted = {(row.domain, row.condition): row.runs for row in predicate.profile_of_reliability.cells}
    for mode in predicate.known_failure_modes:
        of = (mode.domain, mode.condition)
        if not 1 <= mode.failures <= mode.runs or counted.get(of) != mode.runs:
            yield (
                f"{mode.failures:,} failures in {mode.runs:,} runs of {', '.join(of)}"
                " are not of those that it counts"
            )
    if predicate.supersedes in {predicate.agent.digest, predicate.evidence.digest}:
        yield "it supersedes what is no passport"
