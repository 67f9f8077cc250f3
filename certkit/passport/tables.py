"""Whether a claim has the rows of the packaged profile that it names.

A digest names a profile and does not say that the signed rows are those of the profile. Where the profile
comes with certkit the rows are compared, so that no issuer passes easier ones off under a known name. The
rows of any other profile are compared by a replay.

A profile is read as TOML and no further: its models are slow to load, and packaged files need no checking.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from certkit import canonical, files, resources, toml
from certkit.passport import terms
from certkit.passport.agreement import differing
from certkit.passport.bounds import tasks_of
from certkit.text import skeleton

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.canonical import Digest
    from certkit.passport.agreement import Compared
    from certkit.passport.statement import CriterionClaim, Predicate, Profile

_MAX_TABLE: Final = 1 << 20
_CONFIDENCE: Final = 0.95


def packaged(profile: Profile) -> dict[str, Any] | None:
    """Return the packaged profile with that id, or else with that digest, as read from TOML.

    An id that differs from it in case, marks or blanks only is that id: no reader would see the difference.
    """
    paths = {path.stem: path for path in resources.path("templates", "profiles").glob("*.toml")}
    alike = next((name for name in paths if _bare(name) == _bare(profile.id)), None)
    if alike is not None:  # the others need not be read
        return _read(alike)[1]
    return next((table for digest, table in map(_read, sorted(paths)) if digest == profile.digest), None)


def _bare(name: str) -> str:
    """Return the letters and digits of a name, however they are written."""
    return "".join(letter for letter in skeleton(name) if letter.isalnum())


@cache
def _read(name: str) -> tuple[Digest, dict[str, Any]]:
    path = resources.path("templates", "profiles", f"{name}.toml")
    table = toml.loads(files.read(path, limit=_MAX_TABLE).decode(), code="profile.invalid", where=path.name)
    return canonical.digest(canonical.canonical(table)), table


def disagreements(predicate: Predicate) -> Iterator[str]:
    """Yield how the rows of a claim are not those of the packaged profile that it names.

    Nothing where they are, and where neither id nor digest is that of a packaged profile.
    """
    table = packaged(predicate.assessment.profile)
    if table is not None:
        yield from differing(_compared(predicate, table))


def _compared(predicate: Predicate, table: dict[str, Any]) -> Iterator[Compared]:
    profile, name = predicate.assessment.profile, table["id"]
    yield "id of the profile", profile.id, name
    yield f"digest of profile {name}", profile.digest, _read(name)[0]
    yield f"reading that decides under profile {name}", profile.reading, table.get("reading", "table")
    yield (
        f"stopping rule of profile {name}",
        profile.stopping or "declared",
        table.get("stopping", "declared"),
    )
    wanted = {row["id"]: row for row in table["criteria"]}
    claimed = {row.id: row for row in predicate.criteria}
    for key in sorted(wanted.keys() | claimed.keys()):
        criterion = f"criterion {key} of profile {name}"
        if key in wanted and key in claimed:
            attempt = predicate.protocol.attempt or 1
            yield from _row(criterion, claimed[key], wanted[key], table, attempt)
            k = tasks_of(predicate.profile_of_reliability, claimed[key].metric)
            least, met = wanted[key].get("min_n", 0), {row.table for row in claimed[key].tiers.values()}
            if k is not None and k < least and met & {"met", "not_met"}:
                yield f"tasks of {criterion}", k, f"at least {least}"
        else:
            yield (criterion, "a row", "no row") if key in claimed else (criterion, "no row", "a row")


def _row(
    name: str, claimed: CriterionClaim, wanted: dict[str, Any], table: dict[str, Any], attempt: int
) -> Iterator[Compared]:
    """Yield the fields of a criterion that the profile decides."""
    yield f"metric of {name}", claimed.metric, wanted["metric"]
    yield f"whether it is provisional, {name}", claimed.provisional, wanted.get("provisional", False)
    yield f"drift margin of {name}", claimed.drift_margin, _written(wanted.get("margin"))
    operator = wanted["operator"]
    asked = {
        tier: (operator if isinstance(operator, str) else operator[tier], _written(value))
        for tier, value in wanted["tiers"].items()
    }
    stated = {tier: (row.operator, row.threshold) for tier, row in claimed.tiers.items()}
    for tier in sorted(asked.keys() | stated.keys()):
        yield f"Tier {tier} of {name}", _shown(stated.get(tier)), _shown(asked.get(tier))
    for tier in sorted(asked.keys() & stated.keys()):
        bounded = claimed.tiers[tier].bounded
        if bounded is not None:
            confidence = table["tiers"][tier].get("confidence", _CONFIDENCE)
            expected = terms.decimal(corrected(Fraction(repr(confidence)), attempt))
            yield f"confidence at Tier {tier} of {name}", bounded.confidence, expected


def _written(value: Any) -> Any:
    """Return a number of a profile as a statement writes it."""
    return value if value is None or value is True else terms.decimal(Fraction(repr(value)))


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that an attempt is held to, as `certkit.assessment` has it."""
    alpha = 1 - confidence
    return 1 - (alpha if attempt == 1 else alpha * Fraction(1, 5) / (attempt * (attempt - 1)))


def _shown(row: tuple[Any, Any] | None) -> str:
    return "nothing" if row is None else f"{row[0]} {row[1]}"
