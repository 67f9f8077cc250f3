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
from certkit.passport.differing import difference
from certkit.text import skeleton

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from certkit.passport.bounds import Row
    from certkit.passport.statement import Predicate, Profile, RowAtTier

_MAX_TABLE: Final = 1 << 20
_CONFIDENCE: Final = 0.95


def packaged(profile: Profile) -> dict[str, Any] | None:
    """Return the packaged profile with that id, or else with that digest, as read from TOML.

    An id that differs from it in case, marks or blanks only is that id: no reader would see the difference.
    """
    names = sorted(path.stem for path in resources.path("templates", "profiles").glob("*.toml"))
    alike = next((name for name in names if _bare(name) == _bare(profile.id)), None)
    if alike is not None:  # the others need not be read
        return _read(alike)
    return next((table for table in map(_read, names) if _digest(table) == profile.digest), None)


def _bare(name: str) -> str:
    """Return the letters and digits of a name, however they are written."""
    return "".join(letter for letter in skeleton(name) if letter.isalnum())


@cache
def _read(name: str) -> dict[str, Any]:
    path = resources.path("templates", "profiles", f"{name}.toml")
    return toml.loads(files.read(path, limit=_MAX_TABLE).decode(), code="profile.invalid", where=path.name)


def _digest(table: dict[str, Any]) -> str:
    return canonical.digest(canonical.canonical(table))


def disagreements(predicate: Predicate, criteria: Iterable[Row]) -> Iterator[str]:
    """Yield how the rows of a claim are not those of the packaged profile that it names.

    Nothing where they are, and where neither id nor digest is that of a packaged profile.
    """
    table = packaged(predicate.assessment.profile)
    if table is None:
        return
    if mismatch := difference(_claimed(predicate), _wanted(predicate, table), f"{table['id']} has"):
        yield mismatch
    least = {row["id"]: row.get("min_n", 0) for row in table["criteria"]}
    for row in criteria:
        name, wanted = row.criterion.id, least.get(row.criterion.id, 0)
        judged = {at.table for at in row.criterion.tiers.values()} & {"met", "not_met"}
        if judged and row.tasks is not None and row.tasks < wanted:
            yield f"criterion {name} is judged on {row.tasks} tasks, and {table['id']} asks for {wanted}"


def _claimed(predicate: Predicate) -> dict[str, Any]:
    """Return what a claim states and a profile decides."""
    profile = predicate.assessment.profile
    return {
        "profile": [profile.id, profile.digest, profile.reading, profile.stopping or "declared"],
        "criteria": {
            row.id: {
                "metric": row.metric,
                "provisional": row.provisional,
                "margin": row.drift_margin,
                "tiers": {tier: _row(at.operator, at.threshold, at) for tier, at in row.tiers.items()},
            }
            for row in predicate.criteria
        },
    }


def _wanted(predicate: Predicate, table: dict[str, Any]) -> dict[str, Any]:
    """Return the same as a packaged profile decides it, for the attempt that is claimed."""
    attempt = predicate.protocol.attempt or 1
    stated = {row.id: row.tiers for row in predicate.criteria}
    criteria = {}
    for row in table["criteria"]:
        operator, tiers = row["operator"], {}
        for tier, threshold in row["tiers"].items():
            confidence = Fraction(repr(table["tiers"][tier].get("confidence", _CONFIDENCE)))
            tiers[tier] = _row(
                operator if isinstance(operator, str) else operator[tier],
                _written(threshold),
                stated.get(row["id"], {}).get(tier),
                terms.decimal(corrected(confidence, attempt)),
            )
        criteria[row["id"]] = {
            "metric": row["metric"],
            "provisional": row.get("provisional", False),
            "margin": _written(row.get("margin")),
            "tiers": tiers,
        }
    reading, stopping = table.get("reading", "table"), table.get("stopping", "declared")
    return {"profile": [table["id"], _digest(table), reading, stopping], "criteria": criteria}


def _row(
    operator: str, threshold: Any, at: RowAtTier | None, confidence: str | None = None
) -> dict[str, Any]:
    """Return what a tier asks; the confidence, by default the stated one, where a bound is stated."""
    row = {"asks": f"{operator} {threshold}"}
    if at is not None and at.bounded is not None:
        row["confidence"] = confidence or at.bounded.confidence
    return row


def _written(value: Any) -> Any:
    """Return a number of a profile as a statement writes it."""
    return value if value is None or value is True else terms.decimal(Fraction(repr(value)))


def corrected(confidence: Fraction, attempt: int) -> Fraction:
    """Return the confidence that an attempt is held to, as `certkit.assessment` has it."""
    alpha = 1 - confidence
    return 1 - (alpha if attempt == 1 else alpha * Fraction(1, 5) / (attempt * (attempt - 1)))
