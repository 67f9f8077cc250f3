"""The signed payload: a statement as bytes, and back.

    payload = write(statement)            # canonical JSON, the bytes that are signed
    read(payload)                         # the statement, or why it is none
    difference({"tier": 2}, {"tier": 1}, "the evidence gives")     # the first difference, in words

`read` returns a statement only if its form is valid and its parts agree: some evidence could give its
integers (`_impossible`), derived fields equal those of `derived`, rows are those of the packaged profile it
names, and values and bounds follow from the tasks (`bounds`). Decimals have six digits, so a value written
like the threshold may lie on either side of it. Who signed is not known here, and the rows of a profile
that does not come with certkit are compared by a replay alone.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from datetime import timedelta
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from certkit.assessment.findings.findings import GRADED, SEVERITY, STATED
from certkit.ground import canonical, files, toml
from certkit.ground.canonical import decimal, millionths
from certkit.ground.errors import InputError, NegativeError
from certkit.ground.text import letters, skeleton, span
from certkit.passport import bounds, derived
from certkit.passport import statement as st
from certkit.passport.statement import MAX_VALIDITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.assessment.task_table import TaskTable

TASKS: Final = 1_000
"""Tasks that a task table keeps."""
RANGES: Final[dict[str, tuple[int, int]]] = {
    **dict.fromkeys(("success", "frr", "pei", "irs", "adversarial_resistance"), (0, 1)),
    "ti": (1, 5),
}
"""The least and the most that a run can add to a column."""

_YEARS: Final = range(2, 9998)
"""Years in which a time has a day before and after it, whatever its offset."""
_JUDGED: Final = {"met", "not_met"}
_NAMES: Final = ("id", "metric", "code", "role", "name", "domain", "condition")
_SHOWN: Final = 100
_MAX_TABLE: Final = 1 << 20
_CONFIDENCE: Final = 0.95


def write(statement: st.Statement) -> bytes:
    """Return the payload that is signed: the statement's canonical JSON."""
    return canonical.canonical(st.plain(statement))


@lru_cache(maxsize=8)  # a lineage's latest are asked for again and again; a statement may take megabytes
def read(payload: bytes) -> st.Statement:
    """Return the statement in a payload whose signature holds.

    Raises `NegativeError` ``passport.types`` where it is a statement of another kind,
    ``passport.statement`` or a ``json.*`` code where it is malformed or contradicts itself, and
    ``passport.period-in-future`` where it is valid before its last run.
    """
    try:
        document = canonical.loads(payload, where="payload")
    except InputError as error:
        raise NegativeError(error.code, error.message, where="payload") from None
    if not isinstance(document, dict):
        raise NegativeError("passport.types", "the payload is not a statement")
    for key, expected in (("_type", st.STATEMENT_TYPE), ("predicateType", st.PREDICATE_TYPE)):
        if document.get(key) != expected:
            raise NegativeError(
                "passport.types", f"expected {key} {expected}, found {str(document.get(key))[:80]}"
            )
    try:
        statement = msgspec.convert(document, st.Statement)
    except msgspec.ValidationError as error:
        text = str(error)
        raise NegativeError("passport.statement", text[:1].lower() + text[1:]) from None
    if contradiction := next(contradictions(statement), None):
        raise NegativeError("passport.statement", contradiction)
    if late := derived.late(statement.predicate, statement.predicate.validity.not_before):
        raise NegativeError("passport.period-in-future", late)
    return statement


def contradictions(statement: st.Statement) -> Iterator[str]:
    """Yield how a statement contradicts itself; nothing where it agrees."""
    predicate = statement.predicate
    if faults := list(_impossible(predicate)):
        yield from faults
        return
    stated, expected = (
        {"subject": document["subject"], **document["predicate"]}
        for document in (st.plain(statement), st.plain(derived.rebuilt(predicate)))
    )
    if mismatch := difference(stated, expected, "the rest gives"):
        yield mismatch
    graded = {(item.code, item.severity) for item in predicate.challenges}
    for code, severity in derived.challenges(predicate).items():
        if (code, severity) not in graded:
            yield f"the {severity} challenge {code} is left out"
    for code, severity in ((item.code, item.severity) for item in predicate.challenges):
        graver = code not in GRADED or (severity == "info" and code not in STATED)
        if graver and (gravest := SEVERITY.get(code, severity)) != severity:
            yield f"the challenge {code} is of severity {gravest}, and is said to be of severity {severity}"
    answered = [item for item in predicate.challenges if item.state == "answered"]
    named = all(item.answered_by and all(map(letters, item.answered_by)) for item in answered)
    if answered and not (named and predicate.assessment.context):
        yield "a challenge is answered by nobody, or in no context"
    rows = [bounds.Row(predicate, criterion) for criterion in predicate.criteria]
    yield from profile_differences(predicate, rows)
    yield from bounds.disagreements(predicate, rows)


def difference(claimed: Any, computed: Any, source: str, path: tuple[str, ...] = ()) -> str | None:
    """Return the first place where values differ, None where they are equal; `source` says what computed."""
    if claimed == computed:
        return None
    if isinstance(claimed, dict) and isinstance(computed, dict):
        for key in (*computed, *(key for key in claimed if key not in computed)):
            parts = claimed.get(key, "nothing"), computed.get(key, "nothing")
            if inner := difference(*parts, source, (*path, key)):
                return inner
        return None
    if isinstance(claimed, list) and isinstance(computed, list):
        for number, parts in enumerate(zip(claimed, computed, strict=False), start=1):
            if inner := difference(*parts, source, (*path, _name(parts[1], number))):
                return inner
        claimed, computed = f"{len(claimed)} rows", f"{len(computed)}"
    shown = [
        text if len(text := str(item)) <= _SHOWN else text[:_SHOWN] + "…" for item in (claimed, computed)
    ]
    texts = isinstance(claimed, str) and isinstance(computed, str)
    alike = ", in letters that look alike" if texts and skeleton(claimed) == skeleton(computed) else ""
    return f"{' '.join(path)}: claimed {shown[0]}, {source} {shown[1]}{alike}"


def _name(row: Any, number: int) -> str:
    """Return the names that tell a row from others, or its number from 1."""
    names = [str(row[key]) for key in _NAMES if key in row] if isinstance(row, dict) else []
    return "/".join(dict.fromkeys(names)) or str(number)


def _impossible(predicate: st.Predicate) -> Iterator[str]:
    """Yield why no evidence gives such a statement; nothing where some does."""
    evidence = predicate.evidence
    yield from _times(predicate)
    if len({row.id for row in predicate.criteria}) != len(predicate.criteria) or not predicate.criteria:
        yield "it has no criteria, or one of them twice"
    runs = evidence.nominal_runs + evidence.fault_runs + evidence.novel_fault_runs
    errors = max((row.counts.get("harness_errors", 0) for row in predicate.criteria), default=0)
    if runs > evidence.records:
        yield f"its evidence has {evidence.records:,} records, and {runs:,} runs"
    if len({part.digest for part in evidence.bundles or ()}) != len(evidence.bundles or ()):
        yield "a bundle is counted twice"
    yield from _table(predicate.profile_of_reliability)
    good = sum(cell.successes for cell in predicate.profile_of_reliability.cells)
    if not errors <= evidence.harness_errors <= runs - good:
        yield "its evidence has fewer harness errors than a row, or more than runs that did not succeed"
    for criterion in predicate.criteria:
        shown = criterion.evidence
        if shown and shown.derived + shown.traced > evidence.records:
            yield f"criterion {criterion.id} rests on more traces than records"
        yield from _miscounted(criterion, evidence.fault_runs)
        for tier, row in criterion.tiers.items():
            if not possible(criterion, row):
                yield f"criterion {criterion.id} at Tier {tier} cannot stand so with its value and bound"


def _miscounted(criterion: st.CriterionClaim, faults: int) -> Iterator[str]:
    """Yield why no runs give the counts of a row: harness errors above 1 % leave frr unjudged."""
    counts, judged = criterion.counts, any(row.table in _JUDGED for row in criterion.tiers.values())
    if criterion.metric == "frr" and judged and 100 * counts.get("harness_errors", 0) > faults:
        yield f"criterion {criterion.id} is judged with too many harness errors"
    n, good = criterion.n or 0, counts.get("successes", 0)
    attacked = min(counts.get("runs", n), n + counts.get("landed_unknown", 0))
    if good > n or good + counts.get("attack_succeeded", 0) > attacked:
        yield f"criterion {criterion.id} has more successes, of agent and attacks, than runs"


def _times(predicate: st.Predicate) -> Iterator[str]:
    validity = predicate.validity
    periods = [predicate.scope.dates, *(bundle.dates for bundle in predicate.evidence.bundles or ())]
    runs = [time for period in periods for time in (period.first_run, period.last_run) if time is not None]
    for time in (*runs, validity.not_before, validity.not_after):
        if time.year not in _YEARS:
            yield f"{time} is no time of a run or of a validity"
    for dates in periods:
        start, end = dates.first_run, dates.last_run
        if (start is None) != (end is None) or (start is not None and end is not None and end < start):
            yield "the times of the first and last run do not agree"
        try:
            span(dates.declared_from, dates.declared_to)
        except ValueError as error:
            yield str(error)
    if not timedelta(0) <= validity.not_after - validity.not_before <= MAX_VALIDITY:
        yield f"the validity ends before it begins, or is longer than {MAX_VALIDITY.days} days"


def _table(table: TaskTable) -> Iterator[str]:
    """Yield why no runs give a task table, so that no such table decides about bounds or drift."""
    places = [(cell.domain, cell.condition) for cell in table.cells]
    columns = [(column.metric, column.condition) for column in table.columns]
    order = [(urlsafe_b64decode(row.tag), row.domain) for row in table.rows]
    width = 2 * len(columns)
    if any(len(keys) != len(set(keys)) for keys in (places, columns, table.domains)):
        yield "a cell, a column or a domain of its task table occurs twice"
    if order != sorted(set(order)) or len({tag for tag, _ in order}) != min(table.tasks, TASKS):
        yield "the rows of its task table are not sorted, or not as many as it says"
    if any(len(row.sums) != width or row.domain >= len(table.domains) for row in table.rows):
        yield "a row of its task table does not fit the columns and domains"
        return
    counted = {("success", cell.condition) for cell in table.cells}
    if {key for key in columns if key[0] == "success" or key[1] is not None} != counted:
        yield "its task table does not count the successes of every condition"
    if any(cell.successes > cell.runs or not cell.runs for cell in table.cells):
        yield "a cell of its task table has more successes than runs, or no runs"
    whole = len({row.tag for row in table.rows}) == table.tasks
    for place, column in enumerate(table.columns):
        low, high = RANGES.get(column.metric, (0, canonical.MAX_INTEGER))
        total, pairs = (column.y, column.n), [row.sums[2 * place : 2 * place + 2] for row in table.rows]
        if not all(low * column.scale * n <= y <= high * column.scale * n for y, n in (*pairs, total)):
            yield f"no runs give the integers of {column.metric} in its task table"
        cells = [cell for cell in table.cells if cell.condition == column.condition]
        by_cells = sum(cell.successes for cell in cells), sum(cell.runs for cell in cells)
        by_rows = sum(y for y, _ in pairs), sum(n for _, n in pairs)
        if (column.condition is not None and total != by_cells) or (whole and total != by_rows):
            yield f"the totals of {column.metric} in its task table are not those of its cells and rows"


def possible(criterion: st.CriterionClaim, row: st.RowAtTier) -> bool:
    """Tell whether the value and the bound of a row allow its status by the table and by bounds."""
    value = criterion.value if row.value is None else row.value
    if row.table in _JUDGED and (
        value is None
        or criterion.state == "unmeasured"
        or not _allowed(row, by=value, met=row.table == "met")
    ):
        return False
    bounded = row.bounded
    if bounded is None or bounded.status != "met":
        return True
    if bounded.bound is None:
        return row.table == "met" and bounds.needs_none(criterion, row)
    return row.table == "met" and _allowed(row, by=bounded.bound, met=True)


def _allowed(row: st.RowAtTier, *, by: str | bool, met: bool) -> bool:
    """Tell whether a row may be met, or unmet, by a number or a truth value."""
    if isinstance(by, bool) or isinstance(row.threshold, bool):
        return (by == row.threshold) == met
    value, asked = millionths(by), millionths(row.threshold)
    return value >= asked if (row.operator in {">", ">="}) == met else value <= asked


def packaged(profile: st.Profile) -> dict[str, Any] | None:
    """Return the packaged profile with that id, or else with that digest, as read from TOML.

    An id that differs from it in case, marks or blanks only is that id: no reader would see the difference.
    """
    if alike := _names().get(letters(profile.id)):  # the others need not be read
        return _read(alike)
    return next((_read(name) for name in _names().values() if _digest(name) == profile.digest), None)


@cache
def _names() -> dict[str, str]:
    paths = files.packaged("templates", "profiles").glob("*.toml")
    return {letters(path.stem): path.stem for path in sorted(paths)}


@cache
def _read(name: str) -> dict[str, Any]:
    path = files.packaged("templates", "profiles", f"{name}.toml")
    return toml.loads(files.read(path, limit=_MAX_TABLE).decode(), code="profile.invalid", where=path.name)


@cache
def _digest(name: str) -> str:
    return canonical.digest(canonical.canonical(_read(name)))


def profile_differences(predicate: st.Predicate, rows: Iterable[bounds.Row]) -> Iterator[str]:
    """Yield how the rows of a claim are not those of the packaged profile that it names.

    Nothing where they are, and where neither id nor digest is that of a packaged profile.
    """
    table = packaged(predicate.assessment.profile)
    if table is None:
        return
    wanted = _wanted(table["id"], predicate.protocol.attempt or 1)
    if mismatch := difference(_claimed(predicate), wanted, f"{table['id']} has"):
        yield mismatch
    least = {row["id"]: row.get("min_n", 0) for row in table["criteria"]}
    for row in rows:
        name, fewest = row.criterion.id, least.get(row.criterion.id, 0)
        judged = {at.table for at in row.criterion.tiers.values()} & {"met", "not_met"}
        if judged and row.tasks is not None and row.tasks < fewest:
            yield f"criterion {name} is judged on {row.tasks} tasks, and {table['id']} asks for {fewest}"


def _claimed(predicate: st.Predicate) -> dict[str, Any]:
    """Return what a claim states and a profile decides."""
    profile = predicate.assessment.profile
    return {
        "profile": [profile.id, profile.digest, profile.reading, profile.stopping or "declared"],
        "criteria": {
            row.id: {
                "metric": row.metric,
                "provisional": row.provisional,
                "margin": row.drift_margin,
                "tiers": {
                    tier: [at.operator, at.threshold, at.bounded and at.bounded.confidence]
                    for tier, at in row.tiers.items()
                },
            }
            for row in predicate.criteria
        },
    }


@lru_cache
def _wanted(name: str, attempt: int) -> dict[str, Any]:
    """Return the same as a packaged profile decides it for an attempt."""
    table, criteria = _read(name), {}
    for row in table["criteria"]:
        operator, tiers = row["operator"], {}
        for tier, threshold in row["tiers"].items():
            confidence = Fraction(repr(table["tiers"][tier].get("confidence", _CONFIDENCE)))
            tiers[tier] = [
                operator if isinstance(operator, str) else operator[tier],
                _written(threshold),
                decimal(corrected(confidence, attempt)),
            ]
        criteria[row["id"]] = {
            "metric": row["metric"],
            "provisional": row.get("provisional", False),
            "margin": _written(row.get("margin")),
            "tiers": tiers,
        }
    reading, stopping = table.get("reading", "table"), table.get("stopping", "declared")
    return {"profile": [name, _digest(name), reading, stopping], "criteria": criteria}


def _written(value: Any) -> Any:
    """Return a number of a profile as a statement writes it."""
    return value if value is None or value is True else decimal(Fraction(repr(value)))


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that an attempt is held to, as `certkit.assessment` has it."""
    alpha = 1 - confidence
    return 1 - (alpha if attempt == 1 else alpha * Fraction(1, 5) / (attempt * (attempt - 1)))
