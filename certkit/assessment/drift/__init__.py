"""Drift: whether an agent is still the one that was certified, and still behaves as well.

    found = drift(old, new)                  # two standings: of passports, of bundles, or one of each
    found.result, found.exit_code
    found.to_dict()["behaviour"]

Three questions, in this order. Can the two be compared at all: same profile, domains, conditions and
protocol? Is it the same agent: which components changed? Does it behave worse: each row is tested for a loss
of at least the profile's margin, one-sided, with cluster-robust standard errors.

r_op overall is flagged where p < .03; the family of all other rows by Benjamini–Hochberg at q = .02; each
only where the loss reaches the margin. r_op is compared under the old side's mix of domains and fault
conditions, so that a change of mix does not read as drift. Other rows are compared under the old mix of
domains; their integers do not tell conditions apart, so that they are not tested where the shares of the
conditions moved by more than `MIX_LIMIT`. What could not be tested is a row with its reason, never left out.

Pure: no files, no clock. Which rows there are is told in `rows`, their arithmetic in `difference`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, structs

from certkit.assessment.drift.difference import rejected
from certkit.assessment.drift.rows import MIX_LIMIT, Row, moved, rows
from certkit.assessment.drift.standing import NOMINAL, Part, Standing, standing
from certkit.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DRIFT_SCHEMA",
    "MIX_LIMIT",
    "Change",
    "Drift",
    "Row",
    "Standing",
    "differences",
    "drift",
    "standing",
]

DRIFT_SCHEMA: Final = "urn:certkit:drift:v1"
ALPHA: Final = 0.03
"""Level of the test of r_op overall."""

Q: Final = 0.02
"""False discovery rate of the family of all other rows."""

Result = Literal["NOT_COMPARABLE", "DRIFTED", "IDENTITY_CHANGED", "STABLE", "UNDERPOWERED"]
_EXIT: Final[dict[Result, Exit]] = {
    "STABLE": Exit.OK,
    "DRIFTED": Exit.DRIFT,
    "IDENTITY_CHANGED": Exit.DRIFT,
    "UNDERPOWERED": Exit.INSUFFICIENT,
    "NOT_COMPARABLE": Exit.INSUFFICIENT,
}
JUDGED_BY_MODEL: Final = "independent_judge"


class Change(Struct, frozen=True, kw_only=True):
    """One part of the identity that differs; None where a side does not have it."""

    role: str
    old: str | None
    new: str | None


class Drift(Struct, frozen=True, kw_only=True):
    """What became of an agent between two standings. `behaviour` is empty where they cannot be compared."""

    result: Result
    identity: tuple[Change, ...]
    behaviour: tuple[Row, ...]
    old_tier: int
    new_tier: int
    reasons: tuple[str, ...]

    @property
    def exit_code(self) -> Exit:
        """0 STABLE; 5 DRIFTED and IDENTITY_CHANGED; 4 UNDERPOWERED and NOT_COMPARABLE."""
        return _EXIT[self.result]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``certkit drift --json`` prints."""
        return {
            "schema": DRIFT_SCHEMA,
            "result": self.result,
            "exit_code": int(self.exit_code),
            "identity": [structs.asdict(change) for change in self.identity],
            "behaviour": [row.to_dict() for row in self.behaviour],
            "tier": {"old": self.old_tier, "new": self.new_tier},
            "reasons": list(self.reasons),
        }


def drift(old: Standing, new: Standing) -> Drift:
    """Compare a later standing with an earlier one."""
    apart = differences(old, new)
    identity = _identity(old, new)
    behaviour = () if apart else _decided(rows(old, new))
    result = _result(behaviour, comparable=not apart, same=old.identity == new.identity)
    return Drift(
        result=result,
        identity=identity,
        behaviour=behaviour,
        old_tier=old.tier,
        new_tier=new.tier,
        reasons=(
            *(f"not comparable: {item}" for item in apart),
            *_of_rows(behaviour),
            *(_changed(change) for change in identity),
            *_of_sides(old, new, compared=not apart),
        ),
    )


def differences(old: Standing, new: Standing) -> tuple[str, ...]:
    """Return in words what keeps two standings from being compared; nothing where they can be."""
    return tuple(_apart(old, new))


def _apart(old: Standing, new: Standing) -> Iterator[str]:
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


def _protocol(old: Standing, new: Standing) -> Iterator[str]:
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


def _has_ti(side: Standing) -> bool:
    return any(row.metric == "ti" and row.judged for row in side.criteria)


def _identity(old: Standing, new: Standing) -> tuple[Change, ...]:
    """Return every part of the identity that differs; nothing where the digests are the same."""
    if old.identity == new.identity:
        return ()
    found = []
    if (old.lineage, old.version) != (new.lineage, new.version):
        sides = (f"{side.lineage} {side.version}" for side in (old, new))
        found.append(Change(role="agent", old=next(sides), new=next(sides)))
    roles = dict.fromkeys(part.role for part in (*old.components, *new.components))
    for role in roles:
        found += _parts(role, _of_role(old, role), _of_role(new, role))
    return tuple(found or [Change(role="agent", old=old.identity, new=new.identity)])


def _of_role(side: Standing, role: str) -> Counter[Part]:
    return Counter(part for part in side.components if part.role == role)


def _parts(role: str, old: Counter[Part], new: Counter[Part]) -> Iterator[Change]:
    """Pair the parts of one role that only one side has: by name, then in order."""
    gone, come = list((old - new).elements()), list((new - old).elements())
    pairs: list[tuple[Part | None, Part | None]] = []
    for part in list(gone):
        if same := next((other for other in come if other.name == part.name), None):
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


def _decided(tested: tuple[Row, ...]) -> tuple[Row, ...]:
    """Give every row its state: r_op overall on its own, the others as one family."""
    family = [row for row in tested if row.is_tested and not row.is_overall]
    lost = rejected([row.test.p_loss for row in family], Q)
    gained = rejected([row.test.p_gain for row in family], Q)
    by_name = {row.key: pair for row, *pair in zip(family, lost, gained, strict=True)}

    def decided(row: Row) -> Row:
        if not row.is_tested:
            return row
        if row.is_overall:
            worse, better = row.test.p_loss < ALPHA, row.test.p_gain < ALPHA
        else:
            worse, better = by_name[row.key]
        return row.decided(worse=worse, better=better)

    return tuple(decided(row) for row in tested)


def _result(behaviour: tuple[Row, ...], *, comparable: bool, same: bool) -> Result:
    if not comparable:
        return "NOT_COMPARABLE"
    if any(row.flagged for row in behaviour):
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


def _of_sides(old: Standing, new: Standing, *, compared: bool) -> Iterator[str]:
    if old.tier != new.tier:
        yield f"tier: {_tier(old.tier)} before, {_tier(new.tier)} now"
    if old.evidence == new.evidence:
        yield "both sides rest on the same evidence, so that nothing new was observed"
    if old.origin == new.origin == "simulated":
        yield "both sides are specimens from simulated evidence"
    yield from _unseen(old, new)
    if compared:
        yield from _mix(old, new)


def _unseen(old: Standing, new: Standing) -> Iterator[str]:
    """Yield which changes of the agent its identity would not show."""
    sides = (("old", old), ("new", new))
    if silent := [name for name, side in sides if not side.components]:
        yield f"no components are listed on the {' and the '.join(silent)} side: a changed one would not show"
    for name, side in sides:
        total = len(side.components)
        pinned = sum(part.digest is not None for part in side.components)
        if pinned < total:
            yield f"the {name} side pins {pinned} of {total} components by digest; others can change unseen"


def _tier(number: int) -> str:
    return f"Tier {number}" if number else "no tier"


def _mix(old: Standing, new: Standing) -> Iterator[str]:
    extra = {cell: runs for cell, runs in new.cells.items() if cell not in old.cells and cell[1] != NOMINAL}
    if extra:
        named = ", ".join(f"{domain} under {condition}" for domain, condition in sorted(extra))
        yield f"{sum(extra.values()):,} new fault runs are not in r_op, the old side has none in {named}"
    share = moved(old, new)
    if share > 0:
        yield (
            f"the mix of domains and fault conditions moved by {float(100 * share):.1f} % of the runs;"
            " r_op is compared under the old mix"
        )
