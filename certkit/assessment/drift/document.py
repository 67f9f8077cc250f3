"""A drift and its rows, which are the document of ``certkit drift --json``."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from certkit.ground.document import Count, Document, Part, Share, Text, Tier

Result = Literal["NOT_COMPARABLE", "DRIFTED", "IDENTITY_CHANGED", "STABLE", "UNDERPOWERED"]
State = Literal["WORSE", "BETTER", "EQUIVALENT", "UNDERPOWERED"]


class Change(Part, frozen=True, kw_only=True):
    """One part of the identity that differs; null where a side does not have it."""

    role: Text
    old: Text | None
    new: Text | None


class Counts(Part, frozen=True, kw_only=True):
    """A number of either side."""

    old: Count
    new: Count


class Tiers(Part, frozen=True, kw_only=True):
    """The tier of either side, 0 for none."""

    old: Tier
    new: Tier


class Row(Part, frozen=True, kw_only=True):
    """One mean over tasks, old against new, in its metric's unit.

    `difference` is the change for the worse, `limit` the one that is not exceeded with 95 % confidence,
    `probability` the one-sided p of a loss, adjusted for all rows; `reason` tells why a row was not tested.
    """

    criterion: Text
    metric: Text
    domain: Text | None
    condition: Text | None
    unit: Text
    old: float | None = None
    new: float | None = None
    n: Counts = Counts(old=0, new=0)
    tasks: Counts = Counts(old=0, new=0)
    difference: float | None = None
    margin: float | None
    standard_error: float | None = None
    degrees_of_freedom: Count | None = None
    probability: Share | None = None
    limit: float | None = None
    state: State = "UNDERPOWERED"
    flagged: bool = False
    reason: Text | None = None

    @property
    def is_overall(self) -> bool:
        """Whether this is r_op overall, which tells whether an agent is stable."""
        return self.metric == "r_op" and self.domain is None and self.condition is None

    @property
    def is_tested(self) -> bool:
        """Whether the row was tested."""
        return self.reason is None

    @property
    def no_loss(self) -> bool:
        """Whether a loss of the margin is excluded with 95 % confidence."""
        return self.is_tested and self.limit is not None and self.limit < (self.margin or 0.0)

    @property
    def name(self) -> str:
        """The row in words."""
        where = f" in {self.domain}" if self.domain is not None else ""
        return f"{self.criterion}{where}" + (f" under {self.condition}" if self.condition is not None else "")

    @property
    def sentence(self) -> str:
        """What a tested row shows, in words."""
        values = (
            f"{self.name}: {self.old:.3f} ({self.tasks.old:,} tasks) before,"
            f" {self.new:.3f} ({self.tasks.new:,} tasks) now"
        )
        if self.flagged:
            grounds = f"(margin {self.margin:g}, adjusted p {self.probability:.2g})"
            return f"{values}; a loss of {self.difference:.3f} {grounds}"
        less = "is excluded" if self.no_loss else "is not excluded"
        return f"{values}; a loss of {self.margin:g} {less}: at most {self.limit:.3f} with 95 % confidence"


class Trend(Part, frozen=True, kw_only=True):
    """The decline of r_op over the last passports: the fitted loss from the first of them to the last.

    `values` is r_op of each passport, in order, over the tasks as they are compared.
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
        return (
            f"r_op over the last {len(self.values)} passports: a fitted loss of {self.loss:.3f}"
            f" (margin {self.margin:g}, p {self.probability:.2g})"
        )


class SideKnown(Part, frozen=True, kw_only=True):
    """What is known of a side; a bundle has no passport."""

    passport_id: Text | None
    signature: Literal["trusted", "not_checked", "none"]


class SidesKnown(Part, frozen=True, kw_only=True):
    """What is known of either side, and of the passports before them that the trend takes."""

    before: tuple[SideKnown, ...]
    old: SideKnown
    new: SideKnown


class Drift(Document, frozen=True, kw_only=True, tag="urn:certkit:drift:v1"):
    """An agent compared with itself at a later time.

    `behaviour` is empty where the sides cannot be compared, `trend` null where fewer than three can be.
    """

    result: Result
    exit_code: Count
    identity: tuple[Change, ...]
    behaviour: tuple[Row, ...]
    trend: Trend | None
    tier: Tiers
    reasons: tuple[Text, ...]
    sides: SidesKnown | UnsetType = UNSET
