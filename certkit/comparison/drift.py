"""Drift: whether an agent is still the one that was certified, and still behaves as well.

    result = drift(old, new)                  # each an `Evaluation`, of a passport or a bundle
    result = drift(old, new, before=earlier)  # with the trend over the lineage's passports before both
    result.result, result.exit_code           # 0 STABLE; 5 DRIFTED, IDENTITY_CHANGED; 4 the others

It asks three questions, in this order. Can the two be compared at all: same profile, domains, conditions and
protocol? Is it the same agent: which components changed? Does it behave worse? The rows of behaviour are
success under faults (r_op) overall; every other criterion of the profile that is a mean over tasks; success
of normal runs; r_op by domain; r_op by fault condition.

A row is flagged where its loss is at least the profile's margin and its p, adjusted for all rows (Benjamini &
Hochberg), is at most `ROW_LEVEL`. r_op is also searched for a slow decline over the last passports of the
lineage; a new identity restarts nothing.

With five domains of 40 tasks x 5 runs it finds a loss of 10 points in all of them nearly always, and one in a
single domain in 27 to 38 %. To find that in 80 % takes about 100 tasks x 5 runs in each domain.

No files, no clock. The arithmetic is in `contrast`.
"""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal

from msgspec import structs

from certkit.assessment.assessment import Status
from certkit.assessment.catalogue import CATALOGUE, named
from certkit.assessment.words import amount_text, names, p_text, value_text
from certkit.comparison.contrast import (
    LEAST,
    Contrast,
    Panel,
    Sides,
    adjusted,
    contrast,
    limit,
    mean,
    mixed,
    moved,
    slopes,
)
from certkit.ground.document import Count, Document, Part, Share, Text
from certkit.ground.errors import Exit
from certkit.ground.wording import many, tier_name
from certkit.record.record import Condition, is_fault
from certkit.summary.summary import TASK_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from certkit.assessment.evaluation import Evaluation
    from certkit.assessment.profile import Profile
    from certkit.bundle.facts import ComponentFacts, Facts, JudgeFacts

Result = Literal["NOT_COMPARABLE", "DRIFTED", "IDENTITY_CHANGED", "STABLE", "UNDERPOWERED"]
State = Literal["WORSE", "BETTER", "EQUIVALENT", "UNDERPOWERED"]

ROW_LEVEL: Final = 0.015
"""Adjusted p up to which a row is flagged."""
TREND_LEVEL: Final = 0.005
"""p up to which a trend is flagged."""
TREND: Final = range(3, 9)
"""Passports that a trend is taken over."""
DERIVED: Final = frozenset(
    {"posterior", "domain_min", "domain_min_nominal", "gap", "cascade_penalty", "csi", "r_op", "c_nom"}
)
"""Metrics that follow from others, are no mean over tasks, or have rows of their own here."""
_JUDGED: Final = frozenset({Status.MET, Status.NOT_MET})
_DIGITS: Final = 1e-9
"""A loss that is the margin but for rounding reaches it."""


class Change(Part, frozen=True, kw_only=True):
    """One part of the identity that differs.

    Attributes:
        role: the component's role, `agent` or `version`.
        old: null where the old side does not have it.
        new: null where the new side does not have it.
    """

    role: Text
    old: Text | None
    new: Text | None


class OldNew(Part, frozen=True, kw_only=True):
    """A number of either side."""

    old: Count
    new: Count


class DriftRow(Part, frozen=True, kw_only=True):
    """One mean over tasks, old against new, in its metric's unit.

    Attributes:
        criterion: the row of the profile.
        metric: what is compared.
        domain: in one domain, null for all.
        condition: under one condition, null for all.
        unit: the metric's.
        old: the mean of the old side; null where it has none.
        new: the mean of the new side, under the old mix of domains and conditions.
        tasks: the tasks of either side.
        difference: the change for the worse.
        margin: the loss that counts as drift, null where the profile states none.
        standard_error: of the difference.
        degrees_of_freedom: of its t distribution.
        probability: the one-sided p of a loss, adjusted for all rows.
        limit: the loss is below this with 95 % confidence.
        state: what the row shows.
        flagged: whether it is drift.
        reason: why the row was not tested.
    """

    criterion: Text
    metric: Text
    domain: Text | None = None
    condition: Text | None = None
    unit: Text
    old: float | None = None
    new: float | None = None
    tasks: OldNew = OldNew(old=0, new=0)
    difference: float | None = None
    margin: float | None = None
    standard_error: float | None = None
    degrees_of_freedom: Count | None = None
    probability: Share | None = None
    limit: float | None = None
    state: State = "UNDERPOWERED"
    flagged: bool = False
    reason: Text | None = None

    @property
    def is_overall(self) -> bool:
        """Whether this is r_op overall, which decides whether an agent is stable."""
        return self.metric == "r_op" and self.domain is None and self.condition is None

    @property
    def excludes_loss(self) -> bool:
        """Whether a loss of the margin is excluded with 95 % confidence."""
        return self.reason is None and self.limit is not None and self.limit < (self.margin or 0.0)

    @property
    def name(self) -> str:
        """The row in words."""
        where = f" in {self.domain}" if self.domain is not None else ""
        return f"{self.criterion}{where}" + (f" under {self.condition}" if self.condition is not None else "")


class Trend(Part, frozen=True, kw_only=True):
    """The decline of r_op over the last passports: the fitted loss from the first of them to the last.

    Attributes:
        loss: the fitted loss.
        standard_error: of the loss.
        degrees_of_freedom: of its t distribution.
        probability: the one-sided p of a loss.
        margin: the loss that counts as drift.
        values: r_op of every passport in order, over the tasks as they are compared.
        flagged: whether it is drift.
    """

    loss: float
    standard_error: float
    degrees_of_freedom: Count
    probability: Share
    margin: float
    values: tuple[float, ...]
    flagged: bool

    @property
    def sentence(self) -> str:
        """What the trend shows, in words."""
        unit = CATALOGUE["r_op"].unit
        return (
            f"{named('r_op')} over the last {len(self.values)} passports: a line through them falls by"
            f" {amount_text(self.loss, unit)}; the margin is {amount_text(self.margin, unit)}"
            f" (p {p_text(self.probability)})"
        )


class SideKnown(Part, frozen=True, kw_only=True):
    """What is known of a side.

    Attributes:
        passport_id: null where the side is a bundle.
        signature: whether the passport's signature was checked.
    """

    passport_id: Text | None
    signature: Literal["trusted", "not_checked", "none"]


class Drift(Document, frozen=True, kw_only=True, tag="urn:certkit:drift:v1"):
    """An agent compared with itself at a later time.

    Attributes:
        result: the first that holds: `NOT_COMPARABLE`, `DRIFTED`, `IDENTITY_CHANGED`, `STABLE` (a loss of the
            margin in r_op is excluded), `UNDERPOWERED`.
        identity: what changed of the agent.
        behaviour: the rows; empty where the sides cannot be compared.
        trend: null where fewer than three passports can be compared.
        tier: the tier of either side, 0 for none.
        reasons: what a reader should know, in words.
        sides: what the command knows of all sides, oldest first.
    """

    result: Result
    identity: tuple[Change, ...]
    behaviour: tuple[DriftRow, ...]
    trend: Trend | None
    tier: OldNew
    reasons: tuple[Text, ...]
    sides: tuple[SideKnown, ...] = ()

    def __repr__(self) -> str:
        return f"<Drift: {self.result}, exit code {self.exit_code:d}>"

    @property
    def exit_code(self) -> Exit:
        """0 stable; 5 drifted, or another agent; 4 not comparable, or too little evidence."""
        if self.result == "STABLE":
            return Exit.OK
        return Exit.DRIFT if self.result in {"DRIFTED", "IDENTITY_CHANGED"} else Exit.INSUFFICIENT


def drift(old: Evaluation, new: Evaluation, *, before: Sequence[Evaluation] = ()) -> Drift:
    """Return a later side compared with an earlier one.

    Args:
        old: the earlier side.
        new: the later side.
        before: the passports of the lineage before both, oldest first.
    """
    apart = tuple(differences(old, new))
    identity = _identity(old.facts, new.facts)
    behaviour = () if apart else rows(old, new)
    decline = None if apart else trend([*before, old, new])
    result: Result = "UNDERPOWERED"
    if apart:
        result = "NOT_COMPARABLE"
    elif any(row.flagged for row in behaviour) or (decline is not None and decline.flagged):
        result = "DRIFTED"
    elif old.facts.agent.digest != new.facts.agent.digest:
        result = "IDENTITY_CHANGED"
    elif any(row.is_overall and row.excludes_loss for row in behaviour):
        result = "STABLE"
    return Drift(
        result=result,
        identity=identity,
        behaviour=behaviour,
        trend=decline,
        tier=OldNew(old=old.assessment.verdict.tier, new=new.assessment.verdict.tier),
        reasons=(
            *(f"not comparable: {item}" for item in apart),
            *_of_rows(behaviour),
            *((decline.sentence,) if decline is not None and decline.flagged else ()),
            *map(_change_text, identity),
            *_of_sides(old, new, compared=not apart),
        ),
    )


def trend(lineage: Sequence[Evaluation]) -> Trend | None:
    """Return the trend of r_op over the last passports of a lineage, oldest first.

    Only passports that can be compared with the newest count, and evidence counts once. None for fewer than
    three of them, or where one has fewer than `LEAST` tasks under faults.
    """
    newest = lineage[-1]
    by_evidence = {side.facts.digest: side for side in lineage if not any(differences(side, newest))}
    last = list(by_evidence.values())[-TREND[-1] :]
    if len(last) < TREND[0]:
        return None
    sides = Panel([side.summary.tasks for side in last]).sides("r_op")
    if min(sides.k) < LEAST:
        return None
    fall = contrast(sides, [float(weight) for weight in slopes(len(last))])
    margin = _margin(newest.profile) or 0.0
    return Trend(
        loss=round(fall.loss, 9),
        standard_error=round(fall.se, 9),
        degrees_of_freedom=fall.freedom,
        probability=round(fall.p_loss, 9),
        margin=margin,
        values=tuple(round(value, 9) for value in sides.means),
        flagged=fall.p_loss <= TREND_LEVEL and reaches(fall.loss, margin),
    )


def reaches(loss: float, margin: float | None) -> bool:
    """Tell whether a loss is at least the margin."""
    return loss >= (margin or 0.0) - _DIGITS


def _margin(profile: Profile) -> float | None:
    """Return the loss of r_op that counts as drift."""
    return next((row.margin for row in profile.criteria if row.metric == "r_op"), None)


def differences(old: Evaluation, new: Evaluation) -> Iterator[str]:
    """Yield in words what keeps two sides from being compared; nothing where they can be."""
    if old.profile != new.profile:
        yield " and ".join(f"profile {side.profile.id} ({side.profile.digest})" for side in (old, new))
    before, now = _runs(old), _runs(new)
    alike = True
    for place, name in enumerate(("domains", "conditions")):
        first, second = ({cell[place] for cell in runs} for runs in (before, now))
        alike &= first == second
        for label, alone in (("old", first - second), ("new", second - first)):
            if alone:
                yield f"{name} of the {label} side alone: {', '.join(sorted(alone))}"
    for (domain, condition), runs in sorted(before.items()):
        if alike and is_fault(condition) and (domain, condition) not in now:
            yield f"no new run in {domain} under {condition}, where the old side has {runs:,}"
    yield from _protocol(old, new)


def _protocol(old: Evaluation, new: Evaluation) -> Iterator[str]:
    """Yield what differs in how the evidence was made and judged."""
    a, b = old.facts.protocol, new.facts.protocol
    pairs = [
        ("origin", a.origin, b.origin),
        ("methodology", a.methodology, b.methodology),
        ("success", a.success or "strict", b.success or "strict"),
        ("success rule", a.success_rule, b.success_rule),
    ]
    if any(condition == Condition.CASCADE for _, condition in (*_runs(old), *_runs(new))):
        pairs.append(("cascade definition", a.cascade_definition, b.cascade_definition))
    scores = [row.id for row in old.profile.criteria if row.metric == "ti"]
    scored = any(_is_judged(old, name) and _is_judged(new, name) for name in scores)
    if scored or "independent_judge" in {a.methodology, b.methodology}:
        pairs.append(("judge", _judge(a.judge), _judge(b.judge)))
    for name, first, second in pairs:
        if first != second:
            yield f"{name} {first or 'not stated'} and {second or 'not stated'}"


def _runs(side: Evaluation) -> dict[tuple[str, str], int]:
    """Return the standard runs of every domain and condition."""
    counts: Counter[tuple[str, str]] = Counter()
    for cell in side.summary.select():
        counts[cell.domain, cell.condition] += int(cell.counts["runs"])
    return counts


def _is_judged(side: Evaluation, criterion: str) -> bool:
    """Tell whether a criterion was measured well enough to be met or not met at some tier."""
    return any(row.id == criterion and row.status in _JUDGED for row in side.assessment.criteria)


def _judge(judge: JudgeFacts | None) -> str | None:
    if judge is None:
        return None
    return f"{judge.name} ({judge.family})" if judge.family else judge.name


def _identity(old: Facts, new: Facts) -> tuple[Change, ...]:
    """Return every part of the identity that differs; nothing where the digests are the same."""
    a, b = old.agent, new.agent
    if a.digest == b.digest:
        return ()
    changes = []
    if a.lineage != b.lineage:
        first, second = (f"{agent.lineage} {agent.version}" for agent in (a, b))
        changes.append(Change(role="agent", old=first, new=second))
    elif a.version != b.version:
        changes.append(Change(role="version", old=a.version, new=b.version))
    for role in dict.fromkeys(part.role for part in (*a.components, *b.components)):
        before, now = (Counter(part for part in side.components if part.role == role) for side in (a, b))
        gone, come = list((before - now).elements()), list((now - before).elements())
        same = {part.name for part in gone} & {part.name for part in come}
        for side in (gone, come):  # parts of one name are a pair
            side.sort(key=lambda part: (part.name not in same, part.name if part.name in same else ""))
        changes += [Change(role=role, old=_part(x), new=_part(y)) for x, y in zip_longest(gone, come)]
    return tuple(changes or [Change(role="agent", old=a.digest, new=b.digest)])


def _part(part: ComponentFacts | None) -> str | None:
    if part is None:
        return None
    return " ".join(text for text in (part.name, part.version, part.digest or "not pinned") if text)


def rows(old: Evaluation, new: Evaluation) -> tuple[DriftRow, ...]:
    """Return the rows of two sides that can be compared, each with its state; all tested are one family."""
    panel = Panel([old.summary.tasks, new.summary.tasks])
    tested = [
        _tested(row, old, new, panel.sides(row.metric, row.condition, row.domain))
        for row in _listed(old, new)
    ]
    p_losses = iter(adjusted([change.p_loss for _, change in tested if change]))
    p_gains = iter(adjusted([change.p_gain for _, change in tested if change]))
    decided = []
    for row, change in tested:
        state, probability = row.state, None
        if change is not None:
            probability, p_gain = next(p_losses), next(p_gains)
            if probability <= ROW_LEVEL and reaches(change.loss, row.margin):
                state = "WORSE"
            elif p_gain <= ROW_LEVEL and reaches(-change.loss, row.margin):
                state = "BETTER"
            probability = round(probability, 9)
        decided.append(structs.replace(row, probability=probability, state=state, flagged=state == "WORSE"))
    return tuple(decided)


def _listed(old: Evaluation, new: Evaluation) -> Iterator[DriftRow]:
    """Yield the rows of two sides in their order, not yet tested."""

    def row(metric: str, domain: str | None = None, condition: str | None = None) -> DriftRow:
        criterion = next((item for item in old.profile.criteria if item.metric == metric), None)
        margin = criterion.margin if criterion else None
        if metric == "c_nom" and margin is None:
            margin = _margin(old.profile)
        return DriftRow(
            criterion=criterion.id if criterion else metric,
            metric=metric,
            domain=domain,
            condition=condition,
            unit=CATALOGUE[metric].unit.value,
            margin=margin,
        )

    yield row("r_op")
    for criterion in old.profile.criteria:
        if criterion.metric not in DERIVED:
            yield structs.replace(row(criterion.metric), criterion=criterion.id, margin=criterion.margin)
    cells = {*_runs(old), *_runs(new)}
    if any(not is_fault(condition) for _, condition in cells):
        yield row("c_nom")
    faults = [cell for cell in cells if is_fault(cell[1])]
    yield from (row("r_op", domain) for domain in sorted({domain for domain, _ in faults}))
    yield from (row("r_op", None, condition) for condition in sorted({condition for _, condition in faults}))


def _tested(
    row: DriftRow, old: Evaluation, new: Evaluation, sides: Sides
) -> tuple[DriftRow, Contrast | None]:
    """Return a row with its means, and its contrast, or the reason why it is not tested."""
    row = structs.replace(row, tasks=OldNew(old=sides.k[0], new=sides.k[1]))
    if withheld := _withheld(row, old, new, sides.k):  # the mean of some runs would be read as that of all
        return structs.replace(row, reason=withheld), None
    before, now = (round(mean(side), 9) if side else None for side in sides.units)
    reason = None if row.margin is not None else "no drift margin is stated for it"
    reason = _too_few(sides.k) or mixed(row.metric, old.summary, new.summary) or reason
    row = structs.replace(row, old=before, new=now, reason=reason)
    if not all(sides.k):
        return row, None
    change = contrast(sides, (1, -1) if CATALOGUE[row.metric].higher else (-1, 1))
    row = structs.replace(
        row,
        difference=round(change.loss, 9),
        standard_error=round(change.se, 9),
        degrees_of_freedom=change.freedom,
    )
    if reason is not None:
        return row, None
    most, margin = round(limit(sides, row.metric), 9), row.margin or 0.0
    same = most < margin and limit(sides.swapped, row.metric) < margin
    return structs.replace(row, limit=most, state="EQUIVALENT" if same else "UNDERPOWERED"), change


def _withheld(row: DriftRow, old: Evaluation, new: Evaluation, k: Sequence[int]) -> str | None:
    """Return why no mean of a row is shown, None where one is."""
    if row.metric not in {"r_op", "c_nom", *TASK_COLUMNS}:
        return "passports carry no sums of it"
    if not any(k):
        return "neither side measured it"
    if not all(k) or row.metric in {"r_op", "c_nom"}:
        return None
    if row.metric == "irs" and old.summary.memory_observable != new.summary.memory_observable:
        return "the sides declare differently whether memory queries were observable"
    sides = (("old", old), ("new", new))
    unjudged = " and the ".join(name for name, side in sides if not _is_judged(side, row.criterion))
    return f"not measured well enough to be judged on the {unjudged} side" if unjudged else None


def _too_few(k: Sequence[int]) -> str | None:
    if not all(k):
        return f"only the {'new' if k[1] else 'old'} side measured it"
    sides = zip(("old", "new"), k, strict=True)
    few = " and ".join(f"the {name} side has {count}" for name, count in sides if count < LEAST)
    return f"a row takes {LEAST} tasks a side, and {few}" if few else None


def _of_rows(behaviour: Sequence[DriftRow]) -> Iterator[str]:
    """Yield what is worse, what r_op overall shows, and what was not tested and why."""
    yield from (_row_text(row) for row in behaviour if row.flagged)
    yield from (_row_text(row) for row in behaviour if row.is_overall and not row.reason and not row.flagged)
    by_reason: dict[str, list[str]] = {}
    for row in behaviour:
        if row.reason:
            by_reason.setdefault(row.reason, []).append(row.name)
    for reason, row_names in by_reason.items():
        yield f"not tested: {names(row_names)}: {reason}"
    unclear = sum(row.state == "UNDERPOWERED" and not row.reason for row in behaviour)
    if unclear:
        yield f"{unclear} of {many(len(behaviour), 'row')} had too few tasks to tell"


def _row_text(row: DriftRow) -> str:
    """Return what a tested row shows: it was flagged, or it is r_op overall."""
    spec = CATALOGUE[row.metric]
    name = named(row.metric) if row.name == row.metric else row.name
    before, now = (
        f"{value_text(value, spec.unit)} ({many(count, 'task')})"
        for value, count in ((row.old, row.tasks.old), (row.new, row.tasks.new))
    )
    margin = amount_text(row.margin or 0.0, spec.unit)
    if row.state in {"WORSE", "BETTER"}:
        size = amount_text(abs(row.difference or 0.0), spec.unit)
        verb = "fell" if spec.higher == row.flagged else "rose"
        p = f" (adjusted p {p_text(row.probability or 0.0)})" if row.flagged else ""
        return f"{name} {verb} from {before} to {now}: {size} {row.state.lower()}; the margin is {margin}{p}"
    if row.excludes_loss:
        return f"{name} was {before}, is {now}: it fell by less than {margin} (95 % confidence)"
    most = amount_text(row.limit or 0.0, spec.unit)
    return (
        f"{name} was {before}, is {now}: it may have fallen by {margin} or more, up to {most}"
        " (95 % confidence)"
    )


def _change_text(change: Change) -> str:
    if change.old is None:
        return f"identity: {change.role} {change.new} was added"
    if change.new is None:
        return f"identity: {change.role} {change.old} was removed"
    return f"identity: {change.role} was {change.old}, is {change.new}"


def _of_sides(old: Evaluation, new: Evaluation, *, compared: bool) -> Iterator[str]:
    before, now = (side.assessment.verdict.tier for side in (old, new))
    if before != now:
        yield f"tier: {tier_name(before)} before, {tier_name(now)} now"
    if old.facts.digest == new.facts.digest:
        yield "both sides are the same evidence: nothing new was observed"
    if old.facts.protocol.origin == new.facts.protocol.origin == "simulated":
        yield "both sides are simulated evidence"
    if compared:
        yield from _of_mix(old, new)


def _of_mix(old: Evaluation, new: Evaluation) -> Iterator[str]:
    before, now = _runs(old), _runs(new)
    extra = {cell: runs for cell, runs in now.items() if cell not in before and is_fault(cell[1])}
    if extra:
        where = ", ".join(f"{domain} under {condition}" for domain, condition in sorted(extra))
        runs = many(sum(extra.values()), "new fault run")
        yield f"not in r_op: {runs} in {where}, where the old side has none"
    share = moved(old.summary.select(), new.summary.select(), faults_only=True)
    if share > 0:
        percent = f"{float(100 * share):.1f} %"
        yield f"{percent} of the fault runs moved between conditions; r_op is compared under the old mix"
    first, second = old.summary.tasks, new.summary.tasks
    if first.salt is None or first.salt != second.salt:
        yield "the sides share no task salt, so no tasks are paired: see 'certkit bundle init --like'"
        return
    shared = {row.tag for row in first.rows} & {row.tag for row in second.rows}
    yield f"compared as pairs: {many(len(shared), 'task')} that both sides ran"
