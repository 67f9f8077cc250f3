"""The bounded reading against the oracle: the same evidence gives the same bounds and loses the same rows."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from certkit.assessment.assessing import assess
from certkit.assessment.profile import Profile, parse
from certkit.ground.files import packaged as path
from tests.support import bounded_oracle, clustered, strategies, verdict_oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from certkit.bundle.manifest import Facts
    from certkit.summary.summary import Summary

PROFILES = ("hb-eval-2026", "hb-eval-2026-bounded", "hb-eval-2025")
REACHED = ((1.0, 1.0, 200, 0), (0.5, 0.3, 60, 0), (0.5, 0.3, 200, 0), (0.9, 0.9, 90, 3), (1.0, 1.0, 9, 0))
"""Success, quality, tasks and tasks in a family of bundles that together reach every status."""

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
tiers = {1 = 0.5, 2 = 0.9, 3 = 1.0}
"""


def thorough(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        phases=(
            Phase.explicit,
            Phase.reuse,
            Phase.generate,
        ),  # a design is short, and shrinking it takes minutes
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@cache
def text(name: str, stopping: str) -> str:
    written = path("templates", "profiles", f"{name}.toml").read_text(encoding="utf-8")
    return f'stopping = "{stopping}"\n{verdict_oracle.many(written)}{OWN}'


@cache
def tables(name: str, stopping: str) -> tuple[Profile, Mapping[str, Any]]:
    """Return a profile as certkit and as the oracle read it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile.toml"
        file.write_text(text(name, stopping), encoding="utf-8")
        return parse(file.read_text(encoding="utf-8"), file.name), verdict_oracle.read_profile(file)


def rows(summary: Summary, facts: Facts, profile: Profile) -> dict[tuple[str, int], Any]:
    document = assess(summary, facts, profile).to_dict()
    return {(row["id"], row["tier"]): row["bounded"] for row in document["criteria"]}


def compare(contents: strategies.Contents, name: str, stopping: str = "declared") -> None:
    profile, table = tables(name, stopping)
    found = rows(*clustered.summarised(contents), profile)
    wanted = bounded_oracle.read(contents.records, contents.manifest, table)
    assert found.keys() == wanted.keys()
    for key, reading in wanted.items():
        row = found[key]
        if reading.status == "not_applicable":
            assert row is None, key
            continue
        assert row["status"] == reading.status, (key, row, reading)
        assert row["k"] == reading.k, (key, row, reading)
        if reading.bound is None:
            assert row["bound"] is None, (key, row, reading)
        else:
            assert row["bound"] == pytest.approx(reading.bound, rel=1e-8, abs=1e-9), (key, row, reading)


@pytest.mark.parametrize("name", PROFILES)
@thorough(8)
@given(design=clustered.designs(), manifest=clustered.manifests())
def test_every_bound_is_the_oracles(name: str, design: clustered.Design, manifest: strategies.Run) -> None:
    compare(clustered.bundle(clustered.made(design), manifest), name)


@pytest.mark.parametrize("name", PROFILES)
@thorough(5)
@given(contents=strategies.bundles())
def test_small_bundles_are_read_as_by_the_oracle(name: str, contents: strategies.Contents) -> None:
    compare(contents, name)


def test_the_designs_reach_every_status_of_every_row_that_is_bounded() -> None:
    seen: set[tuple[str, str]] = set()
    for success, good, tasks, family in REACHED:
        design = clustered.Design(
            seed=1, tasks=tasks, runs=5, domains=2, family=family, success=success, good=good, guided=good
        )
        contents = clustered.bundle(clustered.made(design), clustered.manifest(n=400 if tasks > 9 else 5))
        for name in PROFILES[1:]:
            _, table = tables(name, "declared")
            wanted = bounded_oracle.read(contents.records, contents.manifest, table)
            seen |= {(row, reading.status) for (row, _), reading in wanted.items()}
    criteria = [row for name in PROFILES[1:] for row in tables(name, "declared")[1]["criteria"]]
    for row in criteria:
        if row["metric"] in {"csi_windowed", "safe_halt_on_risk"} or row["operator"] == "is":
            continue
        statuses = {status for name, status in seen if name == row["id"]}
        assert statuses >= {"met", "insufficient"}, row["id"]
        assert "not_met" in statuses or row["metric"] in bounded_oracle.ATTESTED_SPANS, row["id"]
    assert {("csi_windowed", "met"), ("csi_windowed", "not_tested")} <= seen


@thorough(2)
@given(design=clustered.designs(), manifest=clustered.manifests())
def test_bounds_at_any_time_are_the_oracles(design: clustered.Design, manifest: strategies.Run) -> None:
    compare(clustered.bundle(clustered.made(design), manifest), "hb-eval-2026", "anytime")
