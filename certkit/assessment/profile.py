"""A profile: the table of criteria that evidence is judged against, as TOML that people copy and edit.

Thresholds are decimals and are compared as exact fractions: 4/5 is not above 0.80, and it is at least
0.8. A number that a double cannot hold to the last digit is refused, so that the digest (SHA-256 of the
canonical JSON of the parsed TOML; comments and layout do not count) names one table and no other.

    >>> profile = parse('''
    ... id = "house-rule"
    ... [tiers.1]
    ... name = "Pilot"
    ... [[criteria]]
    ... id = "r_op"
    ... metric = "r_op"
    ... operator = ">"
    ... tiers = {1 = 0.60}
    ... ''', "house-rule.toml")
    >>> profile.criteria[0].threshold(1)
    Fraction(3, 5)
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import Field, model_validator

from certkit.assessment.metrics.catalogue import CATALOGUE, Unit
from certkit.ground import canonical, toml
from certkit.ground.base import Authored, validate
from certkit.ground.errors import InputError

MAX_TEXT: Final = 256 * 1024
"""Longest profile, characters."""

Operator = Literal[">", ">=", "<", "<=", "is"]
Reading = Literal["table", "bounded"]
Stopping = Literal["declared", "anytime"]

CONFIDENCE: Final = 0.95
"""δ of a tier that states none."""

_Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
_Text = Annotated[str, Field(min_length=1, max_length=2000)]
_Tier = Annotated[str, Field(pattern=r"^[1-9]$")]
_Share = Annotated[float, Field(gt=0, le=1)]
_Number = Annotated[float, Field(allow_inf_nan=False)]


@lru_cache(1024)
def exact(value: float) -> Fraction:
    """Return the decimal that a number was written as."""
    return Fraction(repr(value))


class TierInfo(Authored):
    """One tier: its name, the confidence δ of its bounds, and the source's guidance on SIL and ASIL."""

    name: _Text
    confidence: Annotated[float, Field(gt=0.5, lt=1, description="δ of the bounded reading")] | None = None
    sil: _Text | None = None
    asil: _Text | None = None


class Criterion(Authored):
    """One row of the table. A tier that `tiers` leaves out is not specified by this row."""

    id: _Name
    metric: _Name
    operator: Operator | Annotated[dict[_Tier, Operator], Field(min_length=1)]
    tiers: Annotated[dict[_Tier, _Number | bool], Field(min_length=1)]
    provisional: bool = Field(default=False, description="the source calls the row provisional")
    min_coverage: _Share = Field(default=1.0, description="share of eligible runs that must be measured")
    min_n: Annotated[int, Field(ge=0, le=2**53 - 1)] = Field(
        default=0, description="least number of tasks behind the value; of items, where it is attested"
    )
    margin: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="loss that counts as drift, in the metric's unit"
    )
    source: _Text | None = None
    note: _Text | None = None

    @model_validator(mode="after")
    def _fits(self) -> Criterion:
        if self.metric not in CATALOGUE:
            raise ValueError(f"unknown metric {self.metric!r}; known: {', '.join(CATALOGUE)}")
        if isinstance(self.operator, dict) and self.operator.keys() != self.tiers.keys():
            raise ValueError("operator names other tiers than tiers does")
        boolean = CATALOGUE[self.metric].unit is Unit.BOOLEAN
        for tier, threshold in self.tiers.items():
            if boolean != (threshold is True) or threshold is False:
                raise ValueError(
                    f"tier {tier}: the threshold of {self.metric} is {'true' if boolean else 'a number'}"
                )
            if boolean != (self.operator_at(int(tier)) == "is"):
                raise ValueError(f"tier {tier}: operator 'is' goes with yes-or-no metrics and with no other")
        return self

    def threshold(self, tier: int) -> Fraction | None:
        """Return the exact threshold at `tier`, 1 for yes, None where the tier has no such row."""
        value = self.tiers.get(str(tier))
        if value is None:
            return None
        return Fraction(1) if value is True else exact(value)

    def operator_at(self, tier: int) -> Operator:
        """Return the operator at `tier`, which must be one that the row specifies, or the row's only one."""
        if isinstance(self.operator, str):
            return self.operator
        return self.operator[str(tier)]


class Profile(Authored):
    """A tier table (``urn:certkit:profile:v1``)."""

    schema_: Literal["urn:certkit:profile:v1"] | None = Field(default=None, alias="schema")
    id: _Name
    title: _Text | None = None
    reading: Reading = Field(default="table", description="the reading that decides")
    stopping: Stopping = Field(
        default="declared",
        description="anytime: bounds that hold although the evidence was looked at while it grew",
    )
    sources: tuple[_Text, ...] = ()
    tiers: Annotated[dict[_Tier, TierInfo], Field(min_length=1)]
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Profile:
        numbers = self.tier_numbers
        if numbers != tuple(range(1, len(numbers) + 1)):
            raise ValueError("tiers are not numbered 1, 2, 3 … without a gap")
        ids = [row.id for row in self.criteria]
        if repeated := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"criteria holds the same id twice: {', '.join(repeated)}")
        metrics = [row.metric for row in self.criteria]
        if metrics.count("r_op") > 1:
            raise ValueError("two criteria on r_op: its threshold is the τ of the posterior")
        named = {int(tier) for row in self.criteria for tier in row.tiers}
        if extra := sorted(named - set(numbers)):
            raise ValueError(f"a criterion names tier {extra[0]}, which tiers does not list")
        if empty := sorted(set(numbers) - named):
            raise ValueError(f"no criterion specifies tier {empty[0]}")
        for row in self.criteria:
            if CATALOGUE[row.metric].tau_of and (lost := {int(tier) for tier in row.tiers} - set(self.tau)):
                raise ValueError(f"{row.id}: tier {min(lost)} has no r_op threshold to be the posterior's τ")
        return self

    @cached_property
    def tier_numbers(self) -> tuple[int, ...]:
        """The tiers, ascending from 1."""
        return tuple(sorted(int(tier) for tier in self.tiers))

    @cached_property
    def tau(self) -> dict[int, Fraction]:
        """The aggregate threshold of every tier that has one: that of its r_op row ([26] §3.1)."""
        rows = [row for row in self.criteria if row.metric == "r_op"]
        pairs = {tier: row.threshold(tier) for row in rows for tier in self.tier_numbers}
        return {tier: value for tier, value in pairs.items() if value is not None}

    @property
    def delta(self) -> dict[int, Fraction]:
        """δ of every tier that has a τ."""
        return {tier: self.confidence(tier) for tier in self.tau}

    def confidence(self, tier: int) -> Fraction:
        """Return δ of a tier, .95 where the profile states none."""
        return exact(self.tiers[str(tier)].confidence or CONFIDENCE)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as it was written, in JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @cached_property
    def digest(self) -> canonical.Digest:
        """The digest that names this table in every assessment and passport."""
        return canonical.digest(canonical.canonical(self.to_dict()))


def parse(text: str, where: str) -> Profile:
    """Return the profile that a TOML text holds; `where` names it in errors.

    Raises `InputError` with code ``profile.invalid`` naming every fault.
    """
    if len(text) > MAX_TEXT:
        raise InputError("profile.invalid", f"{len(text):,} characters, limit {MAX_TEXT:,}", where=where)
    table = toml.loads(text, code="profile.invalid", where=where, parse_float=Decimal)
    value = _doubles(table, where)
    return validate(Profile, value, code="profile.invalid", where=where)


def _doubles(value: Any, where: str) -> Any:
    """Return `value` with decimals as floats, refusing any that a float does not hold exactly as written."""
    if isinstance(value, dict):
        return {key: _doubles(item, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_doubles(item, where) for item in value]
    if isinstance(value, Decimal):
        if not value.is_finite() or Decimal(repr(float(value))) != value:
            raise InputError(
                "profile.invalid",
                f"number {str(value)[:40]} cannot be kept to the last digit",
                where=where,
                hint="write at most 15 significant digits",
            )
        return float(value)
    return value
