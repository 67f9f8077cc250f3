"""Drift: whether an agent is still the one that was certified, and still behaves as well.

    found = drift(old, new)                  # two snapshots: of passports, of bundles, or one of each
    found = drift(old, new, before=earlier)  # with the trend over the lineage's passports before them
    found.result, found.exit_code            # 0 STABLE; 5 DRIFTED, IDENTITY_CHANGED; 4 the others
    found.to_dict()["behaviour"]

Three questions, in this order. Can the two be compared at all: same profile, domains, conditions and
protocol? Is it the same agent: which components changed? Does it behave worse: every row is tested for a loss
of at least the profile's margin over tasks, those that both sides ran as pairs; and r_op for a slow decline
over the last `TREND` passports of the lineage. A new identity restarts nothing.

Pure: no files, no clock. The rows and the rule that flags them are in `rows`, the arithmetic in `contrast`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from certkit.assessment.drift.contrast import contrast, panel, slopes
from certkit.assessment.drift.document import Change, Drift, Result, Row, Tiers, Trend
from certkit.assessment.drift.rows import LEAST, columns_of, moved, reaches, rows
from certkit.assessment.drift.snapshot import NOMINAL, Part, Snapshot
from certkit.ground import wording
from certkit.ground.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TREND: Final = range(3, 9)
"""Passports that a trend is taken over."""

TREND_LEVEL: Final = 0.005
"""p up to which a trend is flagged."""

_EXIT: Final[dict[Result, Exit]] = {
    "STABLE": Exit.OK,
    "DRIFTED": Exit.DRIFT,
    "IDENTITY_CHANGED": Exit.DRIFT,
    "UNDERPOWERED": Exit.INSUFFICIENT,
    "NOT_COMPARABLE": Exit.INSUFFICIENT,
}
NOT_COMPARABLE: Final = "not comparable: "
"""How a reason begins why two sides are not compared."""

JUDGED_BY_MODEL: Final = "independent_judge"


def drift(old: Snapshot, new: Snapshot, *, before: Sequence[Snapshot] = ()) -> Drift:
    """Compare a later side with an earlier one; `before` are the passports before both, in order."""
    apart = tuple(differences(old, new))
    identity = _identity(old, new)
    behaviour = () if apart else rows(old, new, panel([old.table, new.table]))
    declined = None if apart else trend([*before, old, new])
    worse = any(row.flagged for row in behaviour) or (declined is not None and declined.flagged)
    result = _result(behaviour, comparable=not apart, worse=worse, same=old.identity == new.identity)
    return Drift(
        result=result,
        exit_code=_EXIT[result],
        identity=identity,
        behaviour=behaviour,
        trend=declined,
        tier=Tiers(old=old.tier, new=new.tier),
        reasons=(
            *(f"{NOT_COMPARABLE}{item}" for item in apart),
            *_of_rows(behaviour),
            *((declined.sentence,) if declined is not None and declined.flagged else ()),
            *(_changed(change) for change in identity),
            *_of_sides(old, new, compared=not apart),
        ),
    )


def trend(lineage: Sequence[Snapshot]) -> Trend | None:
    """Return the trend of r_op over the last passports of a lineage, oldest first.

    Only passports that can be compared with the newest count, and evidence counts once. None for fewer
    than three of them, or where one has fewer than `LEAST` tasks under faults.
    """
    by_evidence = {side.evidence: side for side in lineage if not any(differences(side, lineage[-1]))}
    last = list(by_evidence.values())[-TREND[-1] :]
    if len(last) < TREND[0]:
        return None
    laid = panel([side.table for side in last])
    columns = columns_of(laid, "r_op")
    sides = laid.chosen(columns, None) if columns else None
    if sides is None or min(sides.k) < LEAST:
        return None
    slope = contrast(sides, [float(weight) for weight in slopes(len(last))])
    margin = next(
        (float(row.margin) for row in last[-1].criteria if row.metric == "r_op" and row.margin), 0.0
    )
    return Trend(
        loss=slope.loss,
        standard_error=slope.se,
        degrees_of_freedom=slope.freedom,
        probability=slope.p_loss,
        margin=margin,
        values=tuple(sides.means.tolist()),
        flagged=slope.p_loss <= TREND_LEVEL and reaches(slope.loss, margin),
    )


def differences(old: Snapshot, new: Snapshot) -> Iterator[str]:
    """Yield in words what keeps two sides from being compared; nothing where they can be."""
    if old.profile_digest != new.profile_digest:
        yield f"profile {old.profile_id} ({old.profile_digest}) and {new.profile_id} ({new.profile_digest})"
    for name, first, second in (
        ("domains", old.domains, new.domains),
        ("conditions", old.conditions, new.conditions),
    ):
        if lost := sorted(first - second):
            yield f"{name} of the old side alone: {', '.join(lost)}"
        if gained := sorted(second - first):
            yield f"{name} of the new side alone: {', '.join(gained)}"
    if old.domains == new.domains and old.conditions == new.conditions:
        for (domain, condition), runs in sorted(old.cells.items()):
            if condition != NOMINAL and (domain, condition) not in new.cells:
                yield f"no new run in {domain} under {condition}, where the old side has {runs:,}"
    yield from _protocol(old, new)


def _protocol(old: Snapshot, new: Snapshot) -> Iterator[str]:
    """Yield what differs in how the evidence was made and judged."""
    pairs = [
        ("origin", old.origin, new.origin),
        ("methodology", old.methodology, new.methodology),
        ("success rule", old.success_rule, new.success_rule),
    ]
    if "cascade" in old.conditions | new.conditions:
        pairs.append(("cascade definition", old.cascade_definition, new.cascade_definition))
    if JUDGED_BY_MODEL in {old.methodology, new.methodology} or (_has_ti(old) and _has_ti(new)):
        pairs.append(("judge", old.judge, new.judge))
    for name, first, second in pairs:
        if first != second:
            yield f"{name} {first or 'not stated'} and {second or 'not stated'}"


def _has_ti(side: Snapshot) -> bool:
    return any(row.metric == "ti" and row.judged for row in side.criteria)


def _identity(old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
    """Return every part of the identity that differs; nothing where the digests are the same."""
    if old.identity == new.identity:
        return ()
    changes = []
    if old.lineage != new.lineage:
        sides = (f"{side.lineage} {side.version}" for side in (old, new))
        changes.append(Change(role="agent", old=next(sides), new=next(sides)))
    elif old.version != new.version:
        changes.append(Change(role="version", old=old.version, new=new.version))
    roles = dict.fromkeys(part.role for part in (*old.components, *new.components))
    for role in roles:
        changes += _parts(role, _of_role(old, role), _of_role(new, role))
    return tuple(changes or [Change(role="agent", old=old.identity, new=new.identity)])


def _of_role(side: Snapshot, role: str) -> Counter[Part]:
    return Counter(part for part in side.components if part.role == role)


def _parts(role: str, old: Counter[Part], new: Counter[Part]) -> Iterator[Change]:
    """Pair the parts of one role that only one side has: by name, then in order."""
    gone, come = list((old - new).elements()), list((new - old).elements())
    pairs: list[tuple[Part | None, Part | None]] = []
    for part in list(gone):
        if same := next((part_of_new for part_of_new in come if part_of_new.name == part.name), None):
            pairs.append((part, same))
            gone.remove(part)
            come.remove(same)
    while gone or come:
        pairs.append((gone.pop(0) if gone else None, come.pop(0) if come else None))
    for first, second in pairs:
        yield Change(role=role, old=_part(first), new=_part(second))


def _part(part: Part | None) -> str | None:
    if part is None:
        return None
    return " ".join(text for text in (part.name, part.version, part.digest or "not pinned") if text)


def _result(behaviour: tuple[Row, ...], *, comparable: bool, worse: bool, same: bool) -> Result:
    if not comparable:
        return "NOT_COMPARABLE"
    if worse:
        return "DRIFTED"
    if not same:
        return "IDENTITY_CHANGED"
    return "STABLE" if any(row.is_overall and row.no_loss for row in behaviour) else "UNDERPOWERED"


def _of_rows(behaviour: tuple[Row, ...]) -> Iterator[str]:
    """Yield what is worse, what r_op overall shows, and what was not tested and why."""
    yield from (row.sentence for row in behaviour if row.flagged)
    yield from (row.sentence for row in behaviour if row.is_overall and row.is_tested and not row.flagged)
    yield from (f"{row.name} was not tested: {row.reason}" for row in behaviour if row.reason)


def _changed(change: Change) -> str:
    if change.old is None:
        return f"identity: {change.role} {change.new} was added"
    if change.new is None:
        return f"identity: {change.role} {change.old} was removed"
    return f"identity: {change.role} was {change.old}, is {change.new}"


def _of_sides(old: Snapshot, new: Snapshot, *, compared: bool) -> Iterator[str]:
    if old.tier != new.tier:
        yield f"tier: {wording.tier(old.tier)} before, {wording.tier(new.tier)} now"
    if old.evidence == new.evidence:
        yield "both sides rest on the same evidence, so that nothing new was observed"
    if old.origin == new.origin == "simulated":
        yield "both sides are specimens from simulated evidence"
    if compared:
        yield from _mix(old, new)


def _mix(old: Snapshot, new: Snapshot) -> Iterator[str]:
    extra = {cell: runs for cell, runs in new.cells.items() if cell not in old.cells and cell[1] != NOMINAL}
    if extra:
        named = ", ".join(f"{domain} under {condition}" for domain, condition in sorted(extra))
        yield f"{sum(extra.values()):,} new fault runs are not in r_op, the old side has none in {named}"
    share = moved(old, new, faults_only=True)
    if share > 0:
        yield (
            f"{float(100 * share):.1f} % of the fault runs moved between conditions;"
            " r_op is compared under the old mix"
        )
    yield from _shared(old, new)


def _shared(old: Snapshot, new: Snapshot) -> Iterator[str]:
    """Yield how many tasks both sides ran, or why none is known to be the same."""
    if old.table.salt is None or old.table.salt != new.table.salt:
        yield "the sides share no task salt, so no tasks are paired: see 'certkit bundle init --like'"
        return
    shared = {row.tag for row in old.table.rows} & {row.tag for row in new.table.rows}
    yield f"{len(shared):,} tasks are on both sides and are compared as pairs"
