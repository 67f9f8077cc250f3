"""The document that ``certkit drift --json`` prints."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from certkit.document import Count, Document, Part, Share, Text, Tier

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


class Behaviour(Part, frozen=True, kw_only=True):
    """One mean over tasks, old against new, in its metric's unit.

    `difference` is the change for the worse, `limit` the one that is not exceeded with 95 % confidence,
    `probability` the one-sided p of a loss, adjusted for all rows; `reason` tells why a row was not tested.
    """

    criterion: Text
    metric: Text
    domain: Text | None
    condition: Text | None
    unit: Text
    old: float | None
    new: float | None
    n: Counts
    tasks: Counts
    difference: float | None
    margin: float | None
    standard_error: float | None
    degrees_of_freedom: Count | None
    probability: Share | None
    limit: float | None
    state: State
    flagged: bool
    reason: Text | None


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
    """What is known of a side; `doubts` are steps of the verification that failed although it is signed."""

    passport_id: Text | None
    signature: Literal["trusted", "not_checked", "none"]
    doubts: tuple[Text, ...]


class SidesKnown(Part, frozen=True, kw_only=True):
    """What is known of either side."""

    old: SideKnown
    new: SideKnown


class DriftDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:drift:v1"):
    """An agent compared with itself at a later time."""

    result: Result
    exit_code: Count
    identity: tuple[Change, ...]
    behaviour: tuple[Behaviour, ...]
    trend: Trend | None
    tier: Tiers
    reasons: tuple[Text, ...]
    sides: SidesKnown | UnsetType = UNSET
