"""certkit against the oracle: the same evidence must give the same figures and lose the same rows."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from certkit.ground import canonical
from tests.support import breaking, core_oracle, honest, oracle, strategies, verdict_oracle
from tests.support.core_oracle import same
from tests.support.documents import certkit
from tests.support.line_by_line import check_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILES = ("hb-eval-2026", "hb-eval-2025")
COUNTED = ("c_nom", "r_op", "cn_frr", "domain_min", "adversarial_resistance")
AVERAGED = ("frr", "pei", "pei_fault", "irs", "ti", "violations", "frr_2025", "pei_2025", "irs_2025")
SEED = 9  # found by a search: with it, few bundles reach every tier and status
DERIVED = ("gap", "cascade_penalty", "csi", "safe_halt_on_risk")
thorough = settings(
    max_examples=14,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # to shrink a bundle takes minutes and helps little
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@cache
def profile(name: str) -> Mapping[str, Any]:
    return verdict_oracle.read_profile(honest.ROOT / "templates" / "profiles" / f"{name}.toml")


def few(name: str, folder: Path) -> Path:
    """Write the same table for any number of tasks, since drawn bundles have few."""
    text = (honest.ROOT / "templates" / "profiles" / f"{name}.toml").read_text(encoding="utf-8")
    file = folder / f"{name}.toml"
    file.write_text(
        verdict_oracle.many(text).replace(f'id = "{name}"', f'id = "few-{name}"'), encoding="utf-8"
    )
    return file


def assess(contents: strategies.Contents, *names: str) -> dict[str, Any]:
    """Return the assessment of a bundle under each profile."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = str(contents.write(Path(folder) / "bundle"))
        return {
            name: certkit(
                "assess", bundle, "--profile", str(few(name, Path(folder))), "--require-tier", "1", "--json"
            )[1]
            for name in names
        }


def test_every_figure_status_and_tier_is_the_oracles() -> None:
    """And the drawn bundles reach every tier, and every row in every status."""
    seen: set[str] = set()

    def compare(contents: strategies.Contents) -> None:
        figures = oracle.metrics(contents.records, contents.manifest)
        for name, document in assess(contents, *PROFILES).items():
            wanted = core_oracle.judge(contents.records, contents.manifest, profile(name))
            same_verdict(document, wanted, profile(name))
            seen.add(f"{name} tier {core_oracle.attained(wanted.uncontested)}")
            seen.update(f"{row} {judged.status}" for (row, _), judged in wanted.rows.items())
            if name == "hb-eval-2026":
                same_figures(document["metrics"], figures)
                same_domains(document["metrics"]["domain_min"], oracle.standard(contents.records))
                signed_margins(document)

    for drawn, examples in ((strategies.bundles(), 24), (strategies.bundles(strong=True), 20)):
        seed(SEED)(settings(thorough, max_examples=examples)(given(drawn)(compare)))()
    for name in PROFILES:
        rows = [row["id"] for row in profile(name)["criteria"]]
        assert {f"{name} tier {tier}" for tier in (0, 1, 2, 3)} <= seen
        assert {f"{row} {status}" for row in rows for status in ("met", "not_met", "not_tested")} <= seen


def same_figures(found: dict[str, Any], wanted: Mapping[str, oracle.Metric]) -> None:
    """Value, state and denominator of every metric."""
    for name in (*COUNTED, *AVERAGED, *DERIVED):
        metric = wanted[name]
        assert found[name]["state"] == metric.state, name
        if metric.value is None or metric.state == "partial":  # the mean of some is withheld
            assert found[name]["value"] is None, name
        else:
            assert same(found[name]["value"], float(metric.value)), name
    for name in ("c_nom", "r_op", "frr", "pei", "irs", "ti", "violations", "adversarial_resistance"):
        assert found[name]["n"] == wanted[name].n, name
    for name in ("c_nom", "r_op"):
        assert found[name].get("successes", 0) == wanted[name].detail.get("successes", 0), name
    same_posterior(found["posterior"], wanted["r_op"])


def same_posterior(found: dict[str, Any], faults: oracle.Metric) -> None:
    """The exact binomial tail."""
    if faults.value is None:
        assert found["state"] == "unmeasured"
        return
    successes = faults.detail["successes"]
    assert (found["s"], found["n"]) == (successes, faults.n)
    aggregate = next(row for row in profile("hb-eval-2026")["criteria"] if row["id"] == "r_op")
    for tier in (1, 2, 3):
        threshold = verdict_oracle.threshold_of(aggregate, tier)
        assert threshold is not None
        exact = oracle.posterior(successes, faults.n, threshold)
        assert found["by_tier"][str(tier)] == pytest.approx(float(exact), abs=1.1e-9)


def same_domains(found: dict[str, Any], records: list[Any]) -> None:
    """Successes and runs of every domain, and the least of them."""
    wanted = oracle.domain_min(records)
    table = {
        domain: (rate.detail.get("successes", 0), rate.n)
        for domain, rate in wanted.detail.get("by_domain", {}).items()
    }
    if table:
        assert {name: (row["successes"], row["n"]) for name, row in found["by_domain"].items()} == table
        assert same(found["by_domain"][found["domain"]]["value"], float(wanted.value or 0))


def same_verdict(document: dict[str, Any], wanted: core_oracle.Judgement, table: Mapping[str, Any]) -> None:
    """The status of every row at every tier, the tier, and the rows that bind it."""
    statuses = {key: row.status for key, row in wanted.rows.items()}
    assert {(row["id"], row["tier"]): row["status"] for row in document["criteria"]} == statuses
    deciding = verdict_oracle.decisive(table, strict=False)
    open_rows = {key for key, s in statuses.items() if key[0] in deciding and s in verdict_oracle.LOST}
    for tier, listed in document["tiers"].items():
        lost = {name for name, k in open_rows if k == int(tier)}
        assert {*listed["not_met"], *listed["insufficient"], *listed["not_tested"]} == lost
    if any(row.close for row in wanted.rows.values()):
        return
    assert {int(tier): row["status"] for tier, row in document["tiers"].items()} == wanted.tiers
    assert document["verdict"]["tier"] == wanted.tier
    binding = document["verdict"]["binding"]
    assert {*binding} == {name for name, k in open_rows if k == wanted.tier + 1}
    assert len(binding) == len({*binding})


def signed_margins(document: dict[str, Any]) -> None:
    """A margin is positive exactly where a measured row passes."""
    for row in document["criteria"]:
        if row["status"] == "met":
            assert row["margin"] >= 0
            assert row["margin"] > 0 or row["operator"] in {">=", "<="}
        elif row["status"] == "not_met":
            assert row["margin"] <= 0
            assert row["margin"] < 0 or row["operator"] in {">", "<"}


@thorough
@given(strategies.bundles(), st.permutations([0, 1, 2]))
def test_neither_file_names_nor_the_order_of_lines_change_a_figure(
    contents: strategies.Contents, order: list[int]
) -> None:
    rows = [line + b"\n" for data in contents.files.values() for line in data.splitlines()]
    moved = {f"records/{2 - i}.jsonl": b"".join(rows[::-1][i::3]) for i in order}
    other = strategies.Contents(contents.manifest, contents.records, moved)
    left, right = (assess(item, "hb-eval-2026")["hb-eval-2026"] for item in (contents, other))
    for part in ("metrics", "criteria", "tiers", "verdict"):
        assert canonical.canonical(left[part]) == canonical.canonical(right[part])


@settings(max_examples=120, deadline=None)
@given(breaking.broken_records())
def test_a_broken_rule_is_the_one_that_is_reported(broken: breaking.Broken) -> None:
    found = check_lines(canonical.line(broken.record))
    assert [(fault.code, fault.pointer) for fault in found] == [(broken.code, broken.pointer)]


@thorough
@given(strategies.bundles(max_groups=3, max_count=8), breaking.broken_records(), st.integers(0, 99))
def test_one_broken_record_refuses_the_bundle(
    contents: strategies.Contents, broken: breaking.Broken, place: int
) -> None:
    # A domain, task and run of its own, so that it breaks no rule between records besides.
    unique = {"run_id": "broken", "domain": "broken", "task_id": "broken"}
    record = {
        name: unique[name] if name in unique and value else value for name, value in broken.record.items()
    }
    target = sorted(contents.files)[place % len(contents.files)]
    lines = contents.files[target].splitlines(keepends=True)
    at = place % (len(lines) + 1)
    lines.insert(at, canonical.line(record))
    files = contents.files | {target: b"".join(lines)}
    with tempfile.TemporaryDirectory() as folder:
        bundle = strategies.Contents(contents.manifest, [], files).write(Path(folder) / "bundle")
        code, document = certkit("assess", str(bundle), "--json")
    assert (code, document["error"]["code"]) == (3, "bundle.records-invalid")
    assert [(f["file"], f["line"], f["pointer"], f["code"]) for f in document["error"]["faults"]] == [
        (target, at + 1, broken.pointer, broken.code)
    ]


def test_the_oracles_posterior_on_a_known_value() -> None:
    # Ten failure-free runs: 1 - threshold^11.
    assert oracle.posterior(10, 10, oracle.exact(0.8)) == 1 - oracle.exact(0.8) ** 11
    assert float(oracle.posterior(820, 1000, oracle.exact(0.8))) == pytest.approx(0.941630, abs=5e-7)
