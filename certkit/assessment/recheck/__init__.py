"""Rechecking published claims: whether what is printed follows from what is printed beside it.

Claims are written in a small TOML form, one table per claim; `parse` reads them, `recheck` does the
arithmetic. Numbers stand as they are printed, because their digits are their tolerance (`printed`);
counts that are not printed are searched (`claim`).

    claims = parse(text, "claims.toml")
    done = recheck(claims, profiles=load_profile)
    done.exit_code, done.claims[0].arithmetic

It judges arithmetic and nothing else: a consistent claim may rest on bad evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct
from pydantic import Field

from certkit import toml
from certkit.assessment.recheck.claim import Claim, Name, Result, State, Text
from certkit.assessment.recheck.definitions import (
    CsiFactorClaim,
    CsiTrendClaim,
    LargestDeviationClaim,
    TierClaim,
)
from certkit.assessment.recheck.means import CountClaim, RepeatsClaim, StandardErrorClaim, TTestClaim
from certkit.assessment.recheck.proportions import IntervalClaim, PosteriorClaim, SilClaim, ZTestClaim
from certkit.assessment.recheck.relations import (
    AggregateClaim,
    DifferenceClaim,
    EveryClaim,
    ProductClaim,
    SameClaim,
)
from certkit.base import Authored, validate
from certkit.document import DIALECT, Count, Document
from certkit.errors import Exit, InputError

if TYPE_CHECKING:
    from certkit.assessment.recheck.claim import Profiles

__all__ = ["KINDS", "Claim", "Claims", "RecheckDocument", "Result", "State", "parse", "recheck"]

CLAIMS_SCHEMA: Final = "urn:certkit:claims:v1"
MAX_TEXT: Final = 1024 * 1024
"""Longest document, characters."""
_CODE: Final = "recheck.invalid"
_ORDER: Final = tuple(State)

KINDS: Final[dict[str, type[Claim]]] = {
    "posterior": PosteriorClaim,
    "interval": IntervalClaim,
    "z-test": ZTestClaim,
    "tier": TierClaim,
    "sil": SilClaim,
    "aggregate": AggregateClaim,
    "difference": DifferenceClaim,
    "product": ProductClaim,
    "every": EveryClaim,
    "same": SameClaim,
    "largest-deviation": LargestDeviationClaim,
    "csi-factor": CsiFactorClaim,
    "csi-trend": CsiTrendClaim,
    "count": CountClaim,
    "repeats": RepeatsClaim,
    "standard-error": StandardErrorClaim,
    "t-test": TTestClaim,
}
"""The form of every kind of claim."""


class Head(Authored):
    """The document before its claims are read one by one, so that an error can name its claim."""

    schema_: Literal["urn:certkit:claims:v1"] | None = Field(default=None, alias="schema")
    id: Name
    title: Text | None = None
    sources: tuple[Text, ...] = ()
    claims: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=2000)]


class Claims(Struct, frozen=True, kw_only=True):
    """Claims, read."""

    id: str
    title: str | None
    sources: tuple[str, ...]
    claims: tuple[Claim, ...]


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


def claims_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a file of claims, its TOML parsed with its decimals as text."""
    body: dict[str, Any] = Head.model_json_schema(by_alias=True)
    definitions = body.pop("$defs", {})
    for kind, form in KINDS.items():
        made = form.model_json_schema(by_alias=True)
        definitions |= made.pop("$defs", {})
        made["properties"]["kind"] = {"const": kind}
        definitions[kind] = made
    body["properties"]["claims"]["items"] = {"oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in KINDS]}
    about = {"title": "certkit claims", "description": "Published claims, for 'certkit recheck'."}
    return {
        "$schema": DIALECT,
        "$id": CLAIMS_SCHEMA,
        **body,
        **about,
        "$defs": dict(sorted(definitions.items())),
    }


def parse(text: str, where: str) -> Claims:
    """Return the claims that a TOML text holds; `where` names it in errors.

    Raises `InputError` ``recheck.invalid`` naming the claim and every fault of it.
    """
    if len(text) > MAX_TEXT:
        raise InputError(_CODE, f"{len(text):,} characters, limit {MAX_TEXT:,}", where=where)
    # Decimals stay the text that they are: 0.20 says more than 0.2.
    table = toml.loads(text, code=_CODE, where=where, parse_float=str)
    head = validate(Head, table, code=_CODE, where=where)
    claims = tuple(_claim(item, number, where) for number, item in enumerate(head.claims, 1))
    names = Counter(claim.id for claim in claims)
    if repeated := sorted(name for name, times in names.items() if times > 1):
        raise InputError(_CODE, f"two claims have the id {repeated[0]!r}", where=where)
    return Claims(id=head.id, title=head.title, sources=head.sources, claims=claims)


def _claim(item: dict[str, Any], number: int, where: str) -> Claim:
    place = f"{where}: claim {number}"
    kind = item.get("kind")
    form = KINDS.get(kind) if isinstance(kind, str) else None
    if form is None:
        stated = repr(kind)[:60]
        raise InputError(_CODE, f"/kind: one of {', '.join(KINDS)}, found {stated}", where=place)
    return validate(form, item, code=_CODE, where=place)


def recheck(claims: Claims, *, profiles: Profiles) -> RecheckDocument:
    """Return what the arithmetic says of every claim; `profiles` finds a tier table by its name."""
    results = sorted(
        (claim.check(profiles) for claim in claims.claims), key=lambda it: _ORDER.index(it.state)
    )
    number = Counter(result.state for result in results)
    against = number[State.IMPOSSIBLE] + number[State.INCONSISTENT]
    code = Exit.NEGATIVE if against else Exit.INSUFFICIENT if number[State.UNDECIDABLE] else Exit.OK
    return RecheckDocument(
        id=claims.id,
        title=claims.title,
        sources=claims.sources,
        counts={state: number[state] for state in State},
        exit_code=code,
        claims=tuple(results),
    )
