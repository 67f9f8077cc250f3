"""The tier tables that come with certkit, and whether a claim has the rows of the one that it names.

A digest names a table; that the signed rows are those of that table it does not say. Where the table is at
hand the rows are compared, so that no issuer passes an easier table off under a known name. For a table of
somebody's own that is the replay's.

A table is read as TOML and no further: the models of the assessment would be slow to load, and what comes
with certkit needs no checking.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from certkit import canonical, files, resources, toml
from certkit.passport.terms import DIGITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.canonical import Digest
    from certkit.passport.statement import CriterionClaim, Predicate, RowAtTier

_MAX_TABLE: Final = 1 << 20
_UNIT: Final = Decimal(1).scaleb(-DIGITS)
_CONFIDENCE: Final = 0.95
_HALF: Final = Decimal("0.5")
"""From here up the lower end of a share lies below the share, whatever the few runs are shrunk towards."""


@cache
def packaged() -> dict[Digest, dict[str, Any]]:
    """Return the tables that come with certkit, by the digest of the profile."""
    found = {}
    for path in sorted(resources.path("templates", "profiles").glob("*.toml")):
        text = files.read(path, limit=_MAX_TABLE).decode()
        table = toml.loads(text, code="profile.invalid", where=path.name)
        found[canonical.digest(canonical.canonical(table))] = table
    return found


def disagreement(predicate: Predicate) -> str | None:
    """Return the first way in which a claim is not made under the table that it names.

    None where it is, and where the table is not at hand.
    """
    table = packaged().get(canonical.Digest(predicate.assessment.profile.digest))
    return None if table is None else next(_disagreements(predicate, table), None)


def _disagreements(predicate: Predicate, table: dict[str, Any]) -> Iterator[str]:
    profile, name = predicate.assessment.profile, table["id"]
    if profile.id != name:
        yield f"it names profile {profile.id} with the digest of {name}"
    if profile.reading != (reading := table.get("reading", "table")):
        yield f"the {profile.reading} reading decides, and the {reading} reading under profile {name}"
    wanted = {row["id"]: row for row in table["criteria"]}
    claimed = {row.id: row for row in predicate.criteria}
    for apart in sorted(wanted.keys() ^ claimed.keys()):
        has = "which it leaves out" if apart in wanted else "which the profile does not have"
        yield f"its criteria are not those of profile {name}: {apart}, {has}"
    for key in sorted(wanted.keys() & claimed.keys()):
        yield from _row(claimed[key], wanted[key], table)


def _row(claimed: CriterionClaim, wanted: dict[str, Any], table: dict[str, Any]) -> Iterator[str]:
    """Yield how a criterion is another than the table's."""
    of = f"criterion {claimed.id} of profile {table['id']}"
    if claimed.metric != wanted["metric"]:
        yield f"{of} is on {wanted['metric']}, and here on {claimed.metric}"
    if claimed.provisional != wanted.get("provisional", False):
        yield f"{of} is called provisional in one of the two"
    if claimed.drift_margin != _written(wanted.get("margin")):
        yield f"{of} has another drift margin than {claimed.drift_margin}"
    asked = {tier: (_operator(wanted, tier), _written(value)) for tier, value in wanted["tiers"].items()}
    found = {tier: (row.operator, row.threshold) for tier, row in claimed.tiers.items()}
    for tier in sorted(asked.keys() | found.keys()):
        if asked.get(tier) != found.get(tier):
            wants, has = (_shown(rows.get(tier)) for rows in (asked, found))
            yield f"{of} asks for {wants} at Tier {tier}, and here for {has}"
    for tier in sorted(asked.keys() & found.keys()):
        least = table["tiers"][tier].get("confidence", _CONFIDENCE)
        yield from _bounded(claimed, tier, claimed.tiers[tier], least)


def _bounded(claimed: CriterionClaim, tier: str, row: RowAtTier, least: float) -> Iterator[str]:
    """Yield what no bound can be; the packaged tables are of evidence whose size was declared."""
    found = row.bounded
    if found is None:
        return
    if Decimal(found.confidence) < Decimal(repr(least)):
        yield f"criterion {claimed.id} at Tier {tier} is bounded with less confidence than {least}"
    if claimed.metric != "r_op" or not isinstance(found.bound, str) or not isinstance(claimed.value, str):
        return
    if Decimal(found.bound) > Decimal(claimed.value) >= _HALF:
        yield f"criterion {claimed.id} at Tier {tier} has a lower bound above its value"


def _operator(wanted: dict[str, Any], tier: str) -> Any:
    operator = wanted["operator"]
    return operator if isinstance(operator, str) else operator[tier]


def _written(value: Any) -> Any:
    """Return a number of a table as a statement writes it."""
    if value is None or value is True:
        return value
    return f"{Decimal(repr(value)).quantize(_UNIT):f}"


def _shown(asked: tuple[Any, Any] | None) -> str:
    return "nothing" if asked is None else f"{asked[0]} {asked[1]}"
