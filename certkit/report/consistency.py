"""Whether an assessment document carries its own verdict.

A file can claim anything. Before a report repeats a verdict, it is derived again from the rows: each
row's status from its margin, each margin from value and threshold, each tier from its rows, the verdict
from the tiers. Thresholds are compared with the profile where that is at hand. What this cannot show is
whether the values are true: that takes the evidence.
"""

from __future__ import annotations

import re
from math import isclose
from typing import TYPE_CHECKING, Any, Final

from certkit.assessment import Status
from certkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.assessment import Profile

_SETTLED: Final = {Status.MET, Status.NOT_APPLICABLE}
_JUDGED: Final = {Status.MET, Status.NOT_MET}
WITHOUT_BOUND: Final = {"csi", "csi_windowed"}
"""Metrics whose bounded reading has no bound."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z")
_LISTED: Final = (Status.MET, Status.NOT_MET, Status.INSUFFICIENT, Status.NOT_TESTED)


def deciding(row: dict[str, Any], reading: str) -> Status:
    """Return the status of a row under a reading; what a tier does not specify has no bounded one."""
    bounded = row["bounded"]
    return Status(row["status"] if reading == "table" or bounded is None else bounded["status"])


def check(document: dict[str, Any], profile: Profile | None, *, where: str) -> None:
    """Raise `InputError` ``report.assessment-contradicts`` naming the first contradiction."""
    for fault in _faults(document, profile):
        raise InputError(
            "report.assessment-contradicts",
            fault,
            where=where,
            hint="assess the bundle again; a report repeats only what the rows carry",
        )


def _faults(document: dict[str, Any], profile: Profile | None) -> Iterator[str]:
    names = [document["profile"]["id"], *(row["id"] for row in document["criteria"])]
    if strange := [name for name in names if not _NAME.match(name)]:
        yield f"{strange[0][:64]!r} is not an identifier"
    for row in document["criteria"]:
        yield from _row(row, document["metrics"])
    if profile is not None:
        yield from _thresholds(document["criteria"], profile)
    yield from _tiers(document)


def _row(row: dict[str, Any], metrics: dict[str, Any]) -> Iterator[str]:
    name = f"{row['id']} at Tier {row['tier']}"
    metric = metrics[row["metric"]]
    value = metric["by_tier"].get(str(row["tier"])) if "by_tier" in metric else metric["value"]
    if row["value"] != value:
        yield f"{name}: value {row['value']}, but its metric is {value}"
    status = Status(row["status"])
    if (status is Status.NOT_APPLICABLE) != (row["threshold"] is None or row["operator"] is None):
        yield f"{name}: a threshold goes with every status but not_applicable"
    elif status in _JUDGED:
        yield from _margin(row, name)
    bounded = row["bounded"]
    if (bounded is None) != (status is Status.NOT_APPLICABLE):
        yield f"{name}: a bounded reading goes with every status but not_applicable"
    elif bounded is not None and bounded["status"] == Status.MET and not _passes(row, bounded["bound"]):
        yield f"{name}: met by bounds with the bound {bounded['bound']}"


def _passes(row: dict[str, Any], bound: float | None) -> bool:
    """Tell whether a bound carries a row that is met by bounds; some metrics have none."""
    if bound is None:
        return row["metric"] in WITHOUT_BOUND or isinstance(row["threshold"], bool)
    threshold = row["threshold"]
    if row["operator"] in {">", ">="}:
        # What is asked of every run is beyond any bound.
        return bool(bound >= threshold or (threshold == 1 and row["operator"] == ">="))
    return bool(bound <= threshold)


def _margin(row: dict[str, Any], name: str) -> Iterator[str]:
    value, threshold, margin = row["value"], row["threshold"], row["margin"]
    if value is None or margin is None:
        yield f"{name}: {row['status']} without a value and a margin"
        return
    # The margin is exact before it is rounded to a double, so its sign decides even where value and
    # threshold round to the same double.
    difference = float(value) - float(threshold)
    expected = -difference if row["operator"] in {"<", "<="} else difference
    if not isclose(margin, expected, rel_tol=1e-9, abs_tol=1e-9):
        yield f"{name}: margin {margin}, but value and threshold give {expected}"
    met = margin > 0 if row["operator"] in {">", "<"} else margin >= 0
    if met != (row["status"] == Status.MET):
        yield f"{name}: {row['status']} with margin {margin}"


def _thresholds(rows: list[dict[str, Any]], profile: Profile) -> Iterator[str]:
    found = {(row["id"], row["tier"]): row for row in rows}
    wanted = {(item.id, tier) for item in profile.criteria for tier in profile.tier_numbers}
    if found.keys() != wanted or len(found) != len(rows):
        yield f"the rows are not those of profile {profile.id}"
        return
    for item in profile.criteria:
        for tier in profile.tier_numbers:
            row, threshold = found[item.id, tier], item.threshold(tier)
            same = row["threshold"] is None if threshold is None else row["threshold"] == float(threshold)
            operator = None if threshold is None else item.operator_at(tier)
            if not same or row["operator"] != operator or row["metric"] != item.metric:
                yield f"{item.id} at Tier {tier}: not the threshold of profile {profile.id}"


def _tiers(document: dict[str, Any]) -> Iterator[str]:
    reading, tiers, verdict = document["profile"]["reading"], document["tiers"], document["verdict"]
    numbers = sorted(map(int, tiers))
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        yield "tiers are not numbered 1, 2, 3 …"
        return
    if extra := {row["tier"] for row in document["criteria"]} - set(numbers):
        yield f"a row names tier {min(extra)}, which the tiers do not list"
    lower: Status | None = None
    attained = 0
    for number in numbers:
        tier = tiers[str(number)]
        rows = [row for row in document["criteria"] if row["tier"] == number]
        for status in _LISTED:
            ids = [row["id"] for row in rows if deciding(row, reading) is status]
            if sorted(tier[status.value]) != sorted(ids):
                yield f"Tier {number} does not list the rows that are {status.value}"
        derived = _status({deciding(row, reading) for row in rows} | ({lower} if lower else set()))
        if document["bundle"]["records"] == 0 and derived is Status.MET:
            derived = Status.INSUFFICIENT
        if tier["status"] != derived:
            yield f"Tier {number} is said to be {tier['status']}, its rows make it {derived}"
        attained = number if derived is Status.MET else attained
        lower = derived
    yield from _verdict(document, verdict, attained, reading)
    for name in ("table", "bounded"):
        if verdict[name]["tier"] != (found := _carried(document, name, numbers)):
            yield f"the {name} reading is said to give tier {verdict[name]['tier']}, its rows carry {found}"


def _carried(document: dict[str, Any], reading: str, numbers: list[int]) -> int:
    """Return the highest tier whose rows, and those of all tiers below, are settled under a reading."""
    attained = 0
    for number in numbers:
        found = {deciding(row, reading) for row in document["criteria"] if row["tier"] == number}
        if _status(found) is not Status.MET or document["bundle"]["records"] == 0:
            break
        attained = number
    return attained


def _verdict(document: dict[str, Any], verdict: dict[str, Any], attained: int, reading: str) -> Iterator[str]:
    if verdict["tier"] != attained:
        yield f"the verdict is tier {verdict['tier']}, the rows carry tier {attained}"
    required = document["tiers"].get(str(verdict["required_tier"]))
    if required is None or verdict["status"] != required["status"]:
        yield f"the verdict's status is not that of Tier {verdict['required_tier']}"
    rows = [row for row in document["criteria"] if row["tier"] == attained + 1]
    binding = {row["id"] for row in rows if deciding(row, reading) not in _SETTLED}
    if set(verdict["binding"]) != binding:
        yield f"the binding rows are not the open rows of Tier {attained + 1}"


def _status(found: set[Status]) -> Status:
    if Status.NOT_MET in found:
        return Status.NOT_MET
    return Status.MET if found <= _SETTLED and Status.MET in found else Status.INSUFFICIENT
