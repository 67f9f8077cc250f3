"""Sides of a comparison from tallies of tasks: summaries, and what is judged of them."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from msgspec import structs

from certkit.assessment.assessment import Assessment, Attained, Question, Row, Status, TierStatus, Verdict
from certkit.assessment.evaluation import Evaluation
from certkit.assessment.profile import Criterion, Profile, TierInfo
from certkit.bundle.facts import AgentFacts, ComponentFacts, Facts, JudgeFacts, ProtocolFacts
from certkit.comparison.contrast import Sides, sides_of, weighed
from certkit.record.columns import Columns
from certkit.record.record import Outcome, Record
from certkit.summary.finish import finish
from certkit.summary.reduce import reduce
from certkit.summary.summary import TaskColumn, TaskRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from certkit.comparison.contrast import Runs
    from certkit.summary.summary import Summary, TaskTable

Cells = dict[tuple[str, str], dict[str, tuple[int, int]]]
"""Domain and condition → task → (successes, runs)."""
Sums = dict[str, dict[str, tuple[int, int]]]
"""Metric → task → (sum in thousandths, number of values), in domain d."""

HIGH, LOW = Fraction(8, 10), Fraction(6, 10)
RULE = "sha256:" + "5" * 64
AGENT = AgentFacts(
    name="a",
    version="1",
    digest="sha256:" + "1" * 64,
    components=(ComponentFacts(role="model", name="m", version="1", digest="sha256:" + "d" * 64),),
)
PROTOCOL = ProtocolFacts(
    origin="measured",
    methodology="trajectory",
    judge=JudgeFacts(name="j", family="f", independent=True),
    memory_observable=True,
    cascade_definition="simultaneous",
    success_rule=RULE,
)


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def facts(evidence: str, protocol: ProtocolFacts = PROTOCOL, agent: AgentFacts = AGENT) -> Facts:
    return Facts(agent=agent, protocol=protocol, digest=digest(evidence), sealed=True)


def run(number: int, **fields: Any) -> Record:
    base = {"run_id": str(number), "domain": "d", "condition": "x_f", "outcome": Outcome.SUCCESS}
    return Record(**{"task_id": f"t{number}", **base, **fields})


def summarised(records: Iterable[Record], *, salt: bytes | None = b"s", observable: bool = True) -> Summary:
    """The summary of records, with all their tasks."""
    partial = reduce(Columns.of_records(list(records)), salt)
    return finish(partial, memory_observable=observable, most_tasks=None, salt=salt)


def records(cells: Cells, **fields: Any) -> list[Record]:
    """Runs of tasks; the first of each succeed."""
    counted = [
        (domain, condition, task, i < y)
        for (domain, condition), tasks in cells.items()
        for task, (y, n) in tasks.items()
        for i in range(n)
    ]
    return [
        run(
            number,
            domain=domain,
            condition=condition,
            task_id=task,
            outcome=Outcome.SUCCESS if good else Outcome.FAILURE,
            **fields,
        )
        for number, (domain, condition, task, good) in enumerate(counted)
    ]


def attempts(
    successes: Iterable[int],
    n: int = 4,
    *,
    first: int = 0,
    domain: str = "bank",
    condition: str = "tool_failure",
    family: int = 1,
    **fields: Any,
) -> list[Record]:
    """One task after another with `n` runs each; every `family` of them are one cluster."""
    numbered = [(first + place, place, y, i) for place, y in enumerate(successes) for i in range(n)]
    return [
        run(
            0,
            run_id=f"{domain} {condition} {task} {i}",
            domain=domain,
            condition=condition,
            task_id=f"task {task}",
            cluster_id=f"family {first + place // family}" if family > 1 else None,
            outcome=Outcome.SUCCESS if i < y else Outcome.FAILURE,
            **{
                name: value[i % len(value)] if isinstance(value, list) else value
                for name, value in fields.items()
            },
        )
        for task, place, y, i in numbered
    ]


def with_sums(table: TaskTable, more: Sums) -> TaskTable:
    """A task table of successes that also holds other metrics; their tasks are not those of the runs."""
    columns = [column for column in table.columns if column.condition]
    width = 2 * len(columns)  # they come first
    names = sorted({task for tasks in more.values() for task in tasks})
    places = sorted({*table.domains, "d"})
    rows = [
        TaskRow(row.tag, places.index(table.domains[row.domain]), (*row.sums[:width], *[0] * 2 * len(more)))
        for row in table.rows
    ]
    for task in names:
        tag = urlsafe_b64encode(hashlib.sha256(task.encode()).digest()[:9]).decode()
        sums = (x for tasks in more.values() for x in tasks.get(task, (0, 0)))
        rows.append(TaskRow(tag, places.index("d"), (*[0] * width, *sums)))
    columns += [
        TaskColumn(
            metric=metric,
            scale=1000,
            y=sum(y for y, _ in tasks.values()),
            n=sum(n for _, n in tasks.values()),
        )
        for metric, tasks in more.items()
    ]
    return structs.replace(
        table,
        tasks=table.tasks + len(names),
        domains=tuple(places),
        columns=tuple(columns),
        rows=tuple(sorted(rows, key=lambda row: (row.tag, row.domain))),
    )


def profile(metrics: Iterable[str] = (), margin: float | None = 0.05) -> Profile:
    criteria = [
        Criterion(
            id=name,
            metric=name,
            operator="<" if name == "violations" else ">",
            tiers={"1": 0.5},
            margin=0.25 if name == "ti" and margin else margin,
        )
        for name in ("r_op", *metrics)
    ]
    return Profile(id="p", tiers={"1": TierInfo(name="one")}, criteria=tuple(criteria))


def assessment(table: Profile, tier: int = 1, unjudged: Sequence[str] = ()) -> Assessment:
    rows = tuple(
        Row(
            id=row.id,
            metric=row.metric,
            tier=1,
            status=Status.INSUFFICIENT if row.id in unjudged else Status.MET,
        )
        for row in table.criteria
    )
    verdict = Verdict(
        tier=tier,
        tier_strict=tier,
        required_tier=1,
        status=TierStatus.MET if tier else TierStatus.NOT_MET,
        decides="table",
        table=Attained(tier=tier),
        bounded=Attained(tier=0),
        binding=(),
    )
    return Assessment(criteria=rows, tiers={}, verdict=verdict)


def evaluation(facts: Facts, summary: Summary, table: Profile, judgement: Assessment) -> Evaluation:
    return Evaluation(facts=facts, summary=summary, profile=table, question=Question(), assessment=judgement)


def side(
    cells: Cells,
    more: Sums | None = None,
    *,
    nominal: int = 100,
    salt: str | None = "s",
    tier: int = 1,
    evidence: str | None = None,
    identity: str = "1",
    agent: AgentFacts = AGENT,
    unjudged: Sequence[str] = (),
    **protocol: Any,
) -> Evaluation:
    """A side whose fault runs are `cells`; `more` are the sums of other metrics."""
    every = dict(cells)
    for domain in {domain for domain, _ in cells} if nominal else ():
        every[domain, "nominal"] = {f"nominal {domain} {i}": (1, 1) for i in range(nominal)}
    stated = structs.replace(PROTOCOL, **protocol)
    summary = summarised(
        records(every),
        salt=None if salt is None else salt.encode(),
        observable=stated.memory_observable is True,
    )
    # The sums of other metrics have no runs: a summary that is checked would be refused.
    structs.force_setattr(summary, "tasks", with_sums(summary.tasks, more or {}))
    agent = structs.replace(agent, digest="sha256:" + identity * 64)
    table = profile(more or ())
    known = facts(evidence or str(id(every)), stated, agent)
    return evaluation(known, summary, table, assessment(table, tier, unjudged))


def even(rate: Fraction, *, tasks: int = 60, size: int = 10, names: str = "") -> dict[str, tuple[int, int]]:
    """Tasks around a mean rate: half of them one success above it, half one below."""
    middle = int(rate * size)
    return {f"{names}{i}": (middle + (1 if i % 2 else -1), size) for i in range(tasks)}


def one(rate: Fraction, more: Sums | None = None, **changes: Any) -> Evaluation:
    return side({("d", "x_f"): even(rate)}, more, **changes)


def values(value: int, tasks: int = 60) -> dict[str, tuple[int, int]]:
    """One value per task, in thousandths, half of them a little more and half a little less."""
    return {f"m{i}": (value + (20 if i % 2 else -20), 1) for i in range(tasks)}


def laid(*columns: Iterable[float | None]) -> Sides:
    """One condition, one domain, one run a task; None where a side lacks the task."""
    rows: dict[tuple[int, int], list[list[Runs]]] = {}
    for place, column in enumerate(columns):
        for unit, x in enumerate(column):
            row = rows.setdefault((unit, 0), [[] for _ in columns])
            if x is not None:
                row[place].append((0, float(x), 1))
    return sides_of(weighed(rows, len(columns)))


def apart(*columns: Iterable[float]) -> Sides:
    """Sides that share no task."""
    listed = [list(column) for column in columns]
    return laid(
        *(
            [x if other == place else None for other, column in enumerate(listed) for x in column]
            for place in range(len(listed))
        )
    )
