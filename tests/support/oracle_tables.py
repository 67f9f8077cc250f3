"""Packaged profiles for any number of tasks, with further rows; limits compared with those of the oracle."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import bounded_oracle, honest, verdict_oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.core_oracle import Row

MILLIONTHS = {"pei", "pei_2025"}
"""Metrics whose sums are kept in millionths of a task."""
OWN = """
[[criteria]]
id = "own_gap"
metric = "gap"
operator = "<"
tiers = {1 = 30, 2 = 6}

[[criteria]]
id = "own_nominal"
metric = "c_nom"
operator = ">="
tiers = {1 = 0.4, 2 = 0.9, 3 = 1.0}

[[criteria]]
id = "own_weakest"
metric = "domain_min_nominal"
operator = ">="
tiers = {1 = 0.4, 2 = 0.9}

[[criteria]]
id = "own_attacks"
metric = "attack_success_rate"
operator = "<="
tiers = {1 = 0.3, 2 = 0.1}
"""


@cache
def text(name: str, condition: str | None = None) -> str:
    """Return the table of a packaged profile with `OWN`, and with a core condition if any."""
    written = (honest.ROOT / "templates" / "profiles" / f"{name}.toml").read_text(encoding="utf-8")
    few = verdict_oracle.many(written).replace(f'id = "{name}"', f'id = "few-{name}"')
    return (f'core_conditions = ["{condition}"]\n' if condition else "") + few + OWN


@cache
def table(name: str, condition: str | None = None) -> Mapping[str, Any]:
    """Return the same as the oracle reads it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile.toml"
        file.write_text(text(name, condition), encoding="utf-8")
        return verdict_oracle.read_profile(file)


def same_limit(found: Mapping[str, Any], wanted: Row) -> None:
    """Compare a row that was printed, with confidence limits, with the oracle's."""
    row, reading = found["bounded"], wanted.bounded
    key = found["id"], found["tier"], row, reading
    if reading is None:
        assert row is None, key
        return
    assert row["status"] == reading.status, key
    assert reading.k is None or row["k"] == reading.k, key
    if reading.bound is None or found["metric"] in bounded_oracle.ATTESTED_SPANS:
        assert row["bound"] is None, key  # from an attested number none is printed
    else:
        off = 2e-6 if found["metric"] in MILLIONTHS else 1e-8
        assert row["bound"] == pytest.approx(reading.bound, rel=off, abs=off), key
