"""Rechecking published claims: whether what is printed follows from what is printed beside it.

Claims are written in a small TOML form, one table per claim; `parse` reads them, `recheck` does the
arithmetic. Numbers stand as they are printed, because their digits are their tolerance (`printed`).

    claims = parse(text, "claims.toml")
    done = recheck(claims, profiles=load_profile)
    done.exit_code, done.claims[0].arithmetic

It judges arithmetic and nothing else: a consistent claim may rest on bad evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta
from pydantic import Field, model_validator

from certkit.assessment.recheck.claim import Name, Result, State, Text
from certkit.assessment.recheck.proportions import CountClaim, IntervalClaim, PosteriorClaim
from certkit.assessment.recheck.relations import (
    AggregateClaim,
    DifferenceClaim,
    EveryClaim,
    ProductClaim,
    SameClaim,
    StandardErrorClaim,
    TierClaim,
    TTestClaim,
)
from certkit.ground import toml
from certkit.ground.base import Authored, validate
from certkit.ground.document import Count, Document, fill
from certkit.ground.errors import Exit

if TYPE_CHECKING:
    from certkit.assessment.recheck.claim import Profiles

__all__ = ["Claims", "RecheckDocument", "Result", "State", "parse", "recheck"]

_CODE: Final = "recheck.invalid"
_ORDER: Final = tuple(State)

AnyClaim = Annotated[
    PosteriorClaim
    | IntervalClaim
    | TierClaim
    | AggregateClaim
    | DifferenceClaim
    | ProductClaim
    | EveryClaim
    | SameClaim
    | CountClaim
    | StandardErrorClaim
    | TTestClaim,
    Field(discriminator="kind"),
]
"""The form of every kind of claim."""


class Claims(Authored):
    """Claims of one or several publications."""

    schema_: Literal["urn:certkit:claims:v1"] | None = Field(default=None, alias="schema")
    id: Name
    title: Text | None = None
    sources: tuple[Text, ...] = ()
    claims: Annotated[tuple[AnyClaim, ...], Field(min_length=1, max_length=2000)]

    @model_validator(mode="after")
    def _named_once(self) -> Claims:
        names = Counter(claim.id for claim in self.claims)
        if repeated := sorted(name for name, times in names.items() if times > 1):
            raise ValueError(f"two claims have the id {repeated[0]!r}")
        return self


class RecheckDocument(Document, frozen=True, kw_only=True, tag="urn:certkit:recheck:v1"):
    """What arithmetic says of published claims; the worst first, in the file's order among equals.

    The exit code is 1 where a claim is impossible or inconsistent, else 4 where one is undecidable, else 0.
    """

    id: str
    title: str | None
    sources: tuple[str, ...]
    counts: Annotated[
        Mapping[State, Count],
        Meta(extra_json_schema={"propertyNames": {"enum": list(State)}, "required": list(State)}),
    ]
    exit_code: Count
    claims: tuple[Result, ...]


def parse(text: str, where: str) -> Claims:
    """Return the claims that a TOML text holds; `where` names it in errors.

    Raises `InputError` ``recheck.invalid`` naming every fault by its place.
    """
    # Decimals stay the text that they are: 0.20 says more than 0.2.
    table = toml.loads(text, code=_CODE, where=where, parse_float=str)
    return validate(Claims, table, code=_CODE, where=where)


def recheck(claims: Claims, *, profiles: Profiles) -> RecheckDocument:
    """Return what the arithmetic says of every claim; `profiles` finds a tier table by its name."""
    results = [claim.check(profiles) for claim in claims.claims]
    number = Counter(result.state for result in results)
    against = number[State.IMPOSSIBLE] + number[State.INCONSISTENT]
    code = Exit.NEGATIVE if against else Exit.INSUFFICIENT if number[State.UNDECIDABLE] else Exit.OK
    ordered = tuple(sorted(results, key=lambda result: _ORDER.index(result.state)))
    counts = {state: number[state] for state in State}
    return fill(RecheckDocument, claims, counts=counts, exit_code=code, claims=ordered)
