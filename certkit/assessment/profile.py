"""A profile: the table of criteria that evidence is judged against.

This module holds the table as frozen structs, which travel in every passport; `profile_file` reads the TOML
that people write. Thresholds are decimals and are compared as exact fractions: 4/5 is not above 0.80, and it
is at least 0.8. The digest (SHA-256 of the canonical JSON without default values) names one table and no
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, structs

from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.ground import canonical
from certkit.ground.document import Part, read_part
from certkit.ground.wording import listed
from certkit.record.record import RunKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment.metric import Value

Operator = Literal[">", ">=", "<", "<=", "is"]
Reading = Literal["table", "bounded"]

CONFIDENCE: Final = 0.95
"""δ of a tier that states none."""

Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$(?!\n)")]
CHANGED: Final = "+set"
"""What the id of a table ends with whose thresholds were changed for one call; no file may say it."""
ProfileName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}(\+set)?$(?!\n)")]
Prose = Annotated[str, Meta(min_length=1, max_length=2000)]
TierNumber = Annotated[str, Meta(pattern=r"^[1-9]$(?!\n)")]
Threshold = float | bool
CORE_METRICS: Final = frozenset(
    {
        *(
            "r_op",
            "c_nom",
            "gap",
            "frr",
            "pei",
            "irs",
            "ti",
            "violations",
            "domain_min",
            "domain_min_nominal",
        ),
        *("adversarial_resistance", "attack_success_rate", "cascade_penalty", "posterior"),
    }
)
"""Metrics that have a value on core evidence; attested and provisional rows stand as they are."""
LEAST_COVERAGE: Final = 0.5
"""Share of eligible runs below which a row would rest on the smaller part of the evidence."""
_UP: Final = frozenset({">", ">="})
_STRICT: Final = frozenset({">", "<"})


@lru_cache(1024)
def exact(value: float) -> Fraction:
    """Return the decimal that a number was written as."""
    return Fraction(repr(value))


class TierInfo(Part, frozen=True, kw_only=True, omit_defaults=True):
    """One tier of a table.

    Attributes:
        name: what its source calls it.
        confidence: δ that its bounds must hold with.
        sil: the source's guidance on SIL.
        asil: the source's guidance on ASIL.
    """

    name: Prose
    confidence: Annotated[float, Meta(gt=0.5, lt=1)] | None = None
    sil: Prose | None = None
    asil: Prose | None = None


class Criterion(Part, frozen=True, kw_only=True, omit_defaults=True):
    """One row of a table. A tier that `tiers` leaves out does not specify the row.

    Attributes:
        id: the name of the row.
        metric: what is compared, a name of the catalogue.
        operator: how, for all tiers or by tier.
        tiers: the threshold by tier.
        provisional: the source calls the row provisional; it decides no tier unless asked to.
        optional: the row is left out where no run is there for it, if one is for another row of the tier.
        min_coverage: the share of eligible runs that must carry the metric's fields.
        min_n: the least number of tasks behind the value; of items, where it is attested.
        margin: the loss that counts as drift, in the metric's unit.
        source: where its thresholds stand.
        note: what a reader should know.
    """

    id: Name
    metric: Name
    operator: Operator | Mapping[TierNumber, Operator]
    tiers: Annotated[Mapping[TierNumber, Threshold], Meta(min_length=1)]
    provisional: bool = False
    optional: bool = False
    min_coverage: Annotated[float, Meta(gt=0, le=1)] = 1.0
    min_n: Annotated[int, Meta(ge=0, le=canonical.MAX_INTEGER)] = 0
    margin: Annotated[float, Meta(ge=0)] | None = None
    source: Prose | None = None
    note: Prose | None = None

    def __post_init__(self) -> None:
        if self.metric not in CATALOGUE:
            raise ValueError(f"unknown metric {self.metric!r}; known: {', '.join(CATALOGUE)}")
        if not isinstance(self.operator, str) and self.operator.keys() != self.tiers.keys():
            raise ValueError("operator names other tiers than tiers does")
        boolean = CATALOGUE[self.metric].unit is Unit.BOOLEAN
        for tier, threshold in self.tiers.items():
            if boolean != (threshold is True) or threshold is False:
                wanted = "true" if boolean else "a number"
                raise ValueError(f"tier {tier}: the threshold of {self.metric} is {wanted}")
            if boolean != (self.operator_at(int(tier)) == "is"):
                raise ValueError(f"tier {tier}: operator 'is' goes with yes-or-no metrics and with no other")

    def threshold(self, tier: int) -> Fraction | None:
        """Return the exact threshold at `tier`, 1 for yes, None where the tier has no such row."""
        value = self.tiers.get(str(tier))
        if value is None:
            return None
        return Fraction(1) if value is True else exact(value)

    def operator_at(self, tier: int) -> Operator:
        """Return the operator at `tier`, which the row must specify."""
        return self.operator if isinstance(self.operator, str) else self.operator[str(tier)]

    def specified(self) -> Iterator[tuple[int, Fraction, Operator]]:
        """Yield the tiers that compare a number, ascending, each with its threshold and operator."""
        for tier in sorted(map(int, self.tiers)):
            threshold = self.threshold(tier)
            if threshold is not None and self.operator_at(tier) != "is":
                yield tier, threshold, self.operator_at(tier)


class Profile(Part, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A tier table (``urn:certkit:profile:v1``).

    Attributes:
        id: the name of the table.
        title: its name for readers.
        reading: which reading decides: averages (`table`) or confidence limits (`bounded`).
        sources: where the table is from.
        core: a tier must also stand on core evidence.
        core_conditions: conditions of the evaluator's own (`x_`) that count as core evidence.
        tiers: the tiers by number, from 1 without a gap.
        criteria: the rows.
        changed: by row and tier, the thresholds before they were changed for one call; `id` then ends with
            ``+set``.
    """

    id: ProfileName
    title: Prose | None = None
    reading: Reading = "table"
    sources: tuple[Prose, ...] = ()
    core: bool = False
    core_conditions: tuple[Annotated[str, Meta(pattern=r"^x_[a-z0-9_]{1,62}$(?!\n)")], ...] = ()
    tiers: Annotated[Mapping[TierNumber, TierInfo], Meta(min_length=1)]
    criteria: Annotated[tuple[Criterion, ...], Meta(min_length=1, max_length=100)]
    changed: Mapping[Name, Annotated[Mapping[TierNumber, float], Meta(min_length=1)]] = {}

    def __post_init__(self) -> None:
        for reason in _inconsistencies(self):
            raise ValueError(reason)

    @property
    def tier_numbers(self) -> tuple[int, ...]:
        """The tiers, ascending from 1."""
        return tuple(range(1, len(self.tiers) + 1))

    @property
    def tau(self) -> dict[int, Fraction]:
        """The aggregate threshold of every tier that has one: that of its r_op row ([26] §3.1)."""
        rows = [row for row in self.criteria if row.metric == "r_op"]
        pairs = {tier: row.threshold(tier) for row in rows for tier in self.tier_numbers}
        return {tier: value for tier, value in pairs.items() if value is not None}

    def confidence(self, tier: int) -> Fraction:
        """Return δ of a tier, .95 where the profile states none."""
        return exact(self.tiers[str(tier)].confidence or CONFIDENCE)

    @property
    def needs(self) -> frozenset[RunKind]:
        """The runs that its rows need: normal ones, under faults, under attack."""
        return frozenset(kind for row in self.criteria for kind in CATALOGUE[row.metric].needs)

    @property
    def judged_kinds(self) -> frozenset[RunKind]:
        """The runs that its rows judge: all kinds where a row is about any run."""
        every = any(not CATALOGUE[row.metric].needs for row in self.criteria)
        return frozenset(RunKind) if every else self.needs

    def asks(self, metric: str) -> bool:
        """Tell whether a row compares a metric."""
        return any(row.metric == metric for row in self.criteria)

    @property
    def original(self) -> Profile:
        """The table before its thresholds were changed for one call; itself where none was."""
        if not self.changed:
            return self
        return with_thresholds(self, self.changed, self.id.removesuffix(CHANGED), {})

    @property
    def options(self) -> tuple[str, ...]:
        """What names it on the command line behind ``--profile``: its id, and every changed threshold."""
        return self.original.id, *(f"--set {change.replace(' ', '')}" for change in self._changes("="))

    @property
    def name(self) -> str:
        """Its id as people read it: ``pass-rate with c_nom ≥ 0.9`` where a threshold was changed."""
        return f"{self.original.id} with {listed(list(self._changes()))}" if self.changed else self.id

    def _changes(self, sign: str | None = None) -> Iterator[str]:
        """Yield every changed threshold: ``r_op@2 > 0.7``; the tier is left out where the row has one."""
        for row in self.criteria:
            for tier in self.changed.get(row.id, ()):
                operator = row.operator_at(int(tier)).replace(">=", "≥").replace("<=", "≤")
                at = f"@{tier}" if len(row.tiers) > 1 else ""
                yield f"{row.id}{at} {sign or operator} {float(row.tiers[tier]):.10g}"

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the table cannot mean what it says; files and passports with such a table are refused."""
        checks = (_direction, _falling, _range)
        return tuple(fault for row in self.criteria for check in checks for fault in check(row))

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON values, without defaults."""
        value: dict[str, Any] = msgspec.to_builtins(self)
        return value

    @cached_property
    def digest(self) -> canonical.Digest:
        """The digest that names this table."""
        return canonical.digest(canonical.canonical(self.to_dict()))


def with_thresholds(
    profile: Profile, thresholds: Mapping[str, Mapping[str, float]], name: str, changed: Mapping[str, Any]
) -> Profile:
    """Return a table with other thresholds.

    Args:
        profile: the table.
        thresholds: the new ones, by row and tier.
        name: its new id.
        changed: the thresholds before.
    """
    criteria = tuple(
        structs.replace(row, tiers={**row.tiers, **thresholds.get(row.id, {})}) for row in profile.criteria
    )
    return structs.replace(profile, id=name, criteria=criteria, changed=changed)


def _inconsistencies(profile: Profile) -> list[str]:
    numbers = {str(number) for number in profile.tier_numbers}
    if profile.tiers.keys() != numbers:
        return ["tiers are not numbered 1, 2, 3 … without a gap"]
    ids = [row.id for row in profile.criteria]
    reasons = []
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        reasons.append(f"criteria holds the same id twice: {', '.join(repeated)}")
    metrics = [row.metric for row in profile.criteria]
    if twice := sorted({name for name in metrics if metrics.count(name) > 1}):
        reasons.append(f"two criteria on {twice[0]}: a metric has one row, with a threshold for each tier")
    named = {tier for row in profile.criteria for tier in row.tiers}
    if extra := sorted(named - numbers):
        reasons.append(f"a criterion names tier {extra[0]}, which tiers does not list")
    if empty := sorted(numbers - named):
        reasons.append(f"no criterion specifies tier {empty[0]}")
    for row in profile.criteria:
        lost = {int(tier) for tier in row.tiers} - profile.tau.keys()
        if CATALOGUE[row.metric].tau_of and lost:
            reasons.append(f"{row.id}: tier {min(lost)} has no r_op threshold to be the posterior's τ")
        stands = row.metric in CORE_METRICS or row.provisional or CATALOGUE[row.metric].attested
        if profile.core and not stands:
            reasons.append(f"{row.id}: {row.metric} has no value on core evidence; leave out core = true")
    if profile.core_conditions and not profile.core:
        reasons.append("core_conditions goes with core = true")
    return [*reasons, *_changes_astray(profile)]


def _changes_astray(profile: Profile) -> Iterator[str]:
    """Yield why the thresholds before a change are not those of this table."""
    if bool(profile.changed) != profile.id.endswith(CHANGED):
        yield f"changed goes with an id that ends with {CHANGED}"
    tiers = {row.id: row.tiers for row in profile.criteria if CATALOGUE[row.metric].unit is not Unit.BOOLEAN}
    for name, before in profile.changed.items():
        if not before.keys() <= tiers.get(name, {}).keys():
            yield f"changed names a threshold of {name} that the table does not have"


def read_profile(value: Any, *, where: str | None = None) -> Profile:
    """Return the profile in JSON values.

    Raises:
        InputError: ``profile.invalid`` naming the first fault.
    """
    return read_part(Profile, value, "profile.invalid", where)


def margin_of(value: Value, operator: Operator, threshold: Fraction) -> Value:
    """Return by how much a value passes; a float is compared with the double nearest the threshold."""
    difference = value - (threshold if isinstance(value, Fraction) else float(threshold))
    return -difference if operator in {"<", "<="} else difference


def passes(value: Value, operator: Operator, threshold: Fraction) -> bool:
    """Tell whether a value is on the good side of a threshold, or on one that is not strict."""
    margin = margin_of(value, operator, threshold)
    return margin > 0 if operator in {">", "<"} else margin >= 0


def _direction(row: Criterion) -> Iterator[str]:
    higher = CATALOGUE[row.metric].higher
    for tier, _, operator in row.specified():
        if (operator in _UP) != higher:
            wanted = "above or at least" if higher else "below or at most"
            yield f"{row.id}: tier {tier}: operator {operator} rewards the wrong side, not {wanted}"


def _falling(row: Criterion) -> Iterator[str]:
    previous: tuple[int, Fraction, Operator] | None = None
    for tier, threshold, operator in row.specified():
        if previous is not None:
            below, before, strict = previous
            change = threshold - before if CATALOGUE[row.metric].higher else before - threshold
            loosened = change == 0 and strict in _STRICT and operator not in _STRICT
            if change < 0 or loosened:
                asked = f"{operator} {float(threshold):g}"
                lower = f"tier {below}: {strict} {float(before):g}"
                yield f"{row.id}: tier {tier} asks {asked}, less than {lower}"
        previous = (tier, threshold, operator)


def _range(row: Criterion) -> Iterator[str]:
    """Yield thresholds that every value of the metric meets, and those that none does."""
    spec = CATALOGUE[row.metric]
    for tier, threshold, operator in row.specified():
        worst, best = (spec.low, spec.high) if operator in _UP else (spec.high, spec.low)
        asked = f"{row.metric} is {operator} {float(threshold):g}"
        if worst is not None and passes(worst, operator, threshold):
            yield f"{row.id}: tier {tier}: every value of {asked}"
        if best is not None and not passes(best, operator, threshold):
            yield f"{row.id}: tier {tier}: no value of {asked}"
    if row.min_coverage < LEAST_COVERAGE:
        yield f"{row.id}: min_coverage {row.min_coverage:g} lets most of the evidence be missing"
