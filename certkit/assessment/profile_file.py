"""Profiles as people write them: TOML, read strictly, with every fault named.

    load_profile("hb-eval-2026"), load_profile("./house-rule.toml"), load_profile("pass-rate", ["c_nom=0.9"])

A number that a double cannot hold to the last digit is refused, so that the digest names one table and no
other. A file of the user's own is also refused where its table cannot mean what it says: thresholds that fall
as tiers rise, values that every agent or none has.
"""

from __future__ import annotations

import re
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from certkit.assessment.bounds import least_tasks
from certkit.assessment.catalogue import CATALOGUE, Unit
from certkit.assessment.profile import (
    CHANGED,
    Criterion,
    Operator,
    Profile,
    Reading,
    read_profile,
    with_thresholds,
)
from certkit.ground import files, toml
from certkit.ground.base import Authored, validate
from certkit.ground.errors import InputError, UsageError
from certkit.ground.wording import listed, many
from certkit.summary.summary import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEFAULT_PROFILE: Final = "hb-eval-2026"
MAX_TEXT: Final = 256 * 1024
"""Longest profile, characters."""

_CHANGE: Final = re.compile(
    r"([a-z0-9][a-z0-9._-]{0,63})(?:@([1-9]))?=(-?(?:[0-9]{1,9}(?:\.[0-9]{0,12})?|\.[0-9]{1,12}))"
)
"""``c_nom=0.9``, ``r_op@2=0.7``: a row, maybe its tier, and a number."""

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Prose = Annotated[str, Field(min_length=1, max_length=2000)]
_Tier = Annotated[str, Field(pattern=r"^[1-9]$")]


class TierTable(Authored):
    """One tier: its name, the confidence δ of its limits, and the source's guidance on SIL and ASIL."""

    name: _Prose
    confidence: Annotated[float, Field(gt=0.5, lt=1, description="δ of the confidence limits")] | None = None
    sil: _Prose | None = None
    asil: _Prose | None = None


class CriterionTable(Authored):
    """One row of the table. A tier that `tiers` leaves out is not specified by this row."""

    id: str
    metric: str
    operator: Operator | Annotated[dict[_Tier, Operator], Field(min_length=1)]
    tiers: Annotated[dict[_Tier, _Number | bool], Field(min_length=1)]
    provisional: bool = Field(
        default=False, description="the paper calls the row provisional: it decides only with --strict"
    )
    optional: bool = Field(
        default=False,
        description="left out where there is no run for it, if there is one for another row of the tier",
    )
    min_coverage: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="share of eligible runs that must be measured"
    )
    min_n: Annotated[int, Field(ge=0, le=2**53 - 1)] = Field(
        default=0, description="least number of tasks behind the value; of items, where it is attested"
    )
    margin: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="loss that counts as drift, in the metric's unit"
    )
    source: _Prose | None = None
    note: _Prose | None = None


class ProfileTable(Authored):
    """A tier table (``urn:certkit:profile:v1``)."""

    schema_: Literal["urn:certkit:profile:v1"] | None = Field(default=None, alias="schema")
    id: str
    title: _Prose | None = None
    reading: Reading = Field(default="table", description="averages (table) or confidence limits (bounded)")
    sources: tuple[_Prose, ...] = ()
    core: bool = Field(default=False, description="a tier must also stand on core evidence")
    core_conditions: tuple[str, ...] = Field(
        default=(), description="conditions of your own (x_) that count as core evidence"
    )
    tiers: Annotated[dict[_Tier, TierTable], Field(min_length=1)]
    criteria: Annotated[tuple[CriterionTable, ...], Field(min_length=1, max_length=100)]


def parse_profile(text: str, where: str) -> Profile:
    """Return the profile that a TOML text holds.

    Args:
        text: the TOML.
        where: what errors call it.

    Raises:
        InputError: ``profile.invalid`` naming every fault.
    """
    if len(text) > MAX_TEXT:
        raise InputError("profile.invalid", f"{len(text):,} characters, limit {MAX_TEXT:,}", where=where)
    table = _doubles(toml.loads(text, code="profile.invalid", where=where, parse_float=Decimal), where)
    written = validate(ProfileTable, table, code="profile.invalid", where=where)
    return read_profile(written.model_dump(mode="json", exclude_unset=True, exclude={"schema_"}), where=where)


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


def packaged_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with certkit, sorted."""
    folder = files.packaged("templates", "profiles")
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


def profile_text(name: str) -> str:
    """Return the TOML text of a packaged profile by name, or of a file by its path.

    Args:
        name: a path has a slash or ends in ``.toml``.

    Raises:
        UsageError: ``profile.unknown``.
        InputError: ``profile.invalid`` where it is not UTF-8, ``file.missing`` where there is no file.
    """
    if "/" in name or name.endswith(".toml"):
        path = Path(name)
    elif name in packaged_profiles():
        path = files.packaged("templates", "profiles", f"{name}.toml")
    else:
        known = ", ".join(packaged_profiles())
        hint = f"packaged: {known}; a file is named by its path: ./mine.toml"
        raise UsageError("profile.unknown", f"no profile {name!r}", hint=hint)
    try:
        return files.read(path, limit=4 * MAX_TEXT).decode()
    except UnicodeDecodeError:
        raise InputError("profile.invalid", "not UTF-8", where=name) from None


def load_profile(name: str, changes: Iterable[str] = (), *, checked: bool = True) -> Profile:
    """Return a packaged profile by name, or one read from the file at a path.

    Args:
        name: as `profile_text` takes it.
        changes: thresholds to change, as `changed` takes them.
        checked: refuse a file of the user's own in which `faults_of` finds a fault.
    """
    profile = parse_profile(profile_text(name), name)
    if checked and name not in packaged_profiles() and (faults := faults_of(profile, name)):
        raise InputError("profile.invalid", "\n  ".join(faults), where=name)
    return changed(profile, changes)


def changed(profile: Profile, changes: Iterable[str]) -> Profile:
    """Return a table with other thresholds; its id then ends with ``+set``, and its digest is another.

    Args:
        profile: the table.
        changes: ``c_nom=0.9``, or ``r_op@2=0.7`` where a row has a threshold at several tiers.

    Raises:
        UsageError: ``usage.option`` for a row or tier that the table does not have, with the nearest name,
            and for a threshold that no value or every value meets, with the range.
    """
    new: dict[str, dict[str, float]] = {}
    for text in changes:
        row, tier, value = _change(profile, text)
        if tier in new.setdefault(row.id, {}):
            raise UsageError("usage.option", f"--set {row.id}: two thresholds for Tier {tier}")
        new[row.id][tier] = value
    before: dict[str, dict[str, float]] = {}
    for row in profile.criteria:
        asked = new.get(row.id, {})
        tiers = {tier: float(row.tiers[tier]) for tier, value in asked.items() if value != row.tiers[tier]}
        before |= {row.id: tiers} if tiers else {}
    if not before:
        return profile
    result = with_thresholds(profile, new, profile.id + CHANGED, before)
    if faults := faults_of(result, result.id):
        raise UsageError("usage.option", "--set: " + "; ".join(faults))
    return result


def _change(profile: Profile, text: str) -> tuple[Criterion, str, float]:
    """Return the row, the tier and the threshold that ``ROW@TIER=THRESHOLD`` names."""
    match = _CHANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError("usage.option", f"--set {text[:60]!r} is not ROW=THRESHOLD", hint="--set c_nom=0.9")
    name, tier, number = match.groups()
    rows = {row.id: row for row in profile.criteria}
    if name not in rows:
        near = get_close_matches(name, rows, n=1)
        message = f"--set: {profile.id} has no row {name!r}; its rows are {', '.join(rows)}"
        hint = f"--set {near[0]}{f'@{tier}' * bool(tier)}={number}" if near else None
        raise UsageError("usage.option", message, hint=hint)
    row, spec = rows[name], CATALOGUE[rows[name].metric]
    if spec.unit is Unit.BOOLEAN:
        raise UsageError("usage.option", f"--set {name}: it is asked with yes or no, and has no threshold")
    if tier not in row.tiers and (tier or len(row.tiers) > 1):
        tiers = listed([f"{name}@{at}" for at in row.tiers])
        hint = f"--set {name}@{next(iter(row.tiers))}={number}"
        raise UsageError("usage.option", f"--set {name}: it has a threshold at {tiers}", hint=hint)
    value = Decimal(number)
    if not (spec.low <= Fraction(value) and (spec.high is None or Fraction(value) <= spec.high)):
        ends = f"{float(spec.low):g} to {float(spec.high):g}" if spec.high is not None else "0 and above"
        share = f"; {number} % is {float(value / 100):g}" if spec.unit is Unit.FRACTION else ""
        raise UsageError("usage.option", f"--set {name}={number}: its range is {ends}{share}")
    return row, tier or next(iter(row.tiers)), float(value)


def faults_of(profile: Profile, name: str, *, planned_runs: int | None = None) -> tuple[str, ...]:
    """Return what is wrong with a table, one sentence each; nothing where it can mean what it says.

    Args:
        profile: the table.
        name: what it was read from: another file may not take the id of a packaged table.
        planned_runs: rows that this many runs can never meet are faults too.
    """
    faults = list(profile.faults)
    packaged = name != profile.id and profile.id in packaged_profiles()
    if packaged and profile.digest != load_profile(profile.id).digest:
        faults.append(
            f"its id is that of the packaged profile {profile.id}, with other contents:"
            " give it an id of its own"
        )
    if planned_runs is not None:
        faults += (fault for row in profile.criteria for fault in _attainable(row, profile, planned_runs))
    return tuple(faults)


def _attainable(row: Criterion, profile: Profile, planned: int) -> Iterator[str]:
    """Yield why no evidence of so many runs can meet a row, every run being a fault run that succeeds."""
    if row.min_n > planned:
        yield f"{row.id}: min_n asks for {many(row.min_n, 'task')}, {many(planned)} are planned"
    if row.metric == "csi" and planned < WINDOW:
        yield f"{row.id}: needs {WINDOW} ordered runs, {planned:,} are planned"
    if CATALOGUE[row.metric].tau_of is None:
        return
    for tier, threshold, _ in row.specified():
        tau = profile.tau[tier]
        least = least_tasks(tau, threshold, both=True)
        if least > planned:
            chance = f"P(θ > {float(tau):g}) > {float(threshold):g}"
            lack = f"needs {many(least)}, all successful; {planned:,} are planned"
            yield f"{row.id}: tier {tier}: {chance} {lack}"
