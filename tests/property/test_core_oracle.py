"""Averages, confidence limits and core evidence against the oracle, through the command line alone."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support import core_designs, core_oracle, honest, oracle_tables
from tests.support.core_designs import Design
from tests.support.core_oracle import same
from tests.support.documents import certkit

if TYPE_CHECKING:
    from collections.abc import Iterator

PROFILES = ("hb-eval-2026", "hb-eval-2026-bounded")
thorough = settings(
    max_examples=28,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # a design is short, and shrinking it takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

REACHING = {
    "half of the faults are the evaluator's own": Design(
        1, 40, 4, core=0.6, other=1.0, kinds=("core", "own", "no effect"), says_landed=True
    ),
    "no core fault run": Design(2, 30, 3, kinds=("own", "no effect"), core=1.0),
    "a domain without a core run": Design(3, 30, 3, domains=3, kinds=("own", "listed"), other=1.0),
    "normal runs fail": Design(4, 40, 4, core=1.0, normal=0.6),
    "held-out runs fail": Design(5, 40, 4, core=1.0, other=0.3, kinds=("core", "held out"), normal=1.0),
    "easy normal runs": Design(6, 20, 3, core=0.7, normal=1.0, padding=300),
    "attacks that never landed": Design(7, 50, 4, core=0.65, other=1.0, kinds=("core", "not landed")),
    "everything succeeds": Design(8, 60, 3, core=1.0, normal=1.0),
    "everything fails": Design(9, 20, 2, core=0.1, normal=0.1),
    "late runs fail": Design(10, 60, 4, core=1.0, normal=1.0, late=0.4),
    "success with a landed attack": Design(11, 60, 4, core=1.0, normal=1.0, wins_with_attack=0.02),
    "cascades are of the evaluator's own": Design(
        12, 50, 4, core=1.0, normal=1.0, kinds=("core", "own"), faults=("adversarial", "cascade")
    ),
    "cascades without effect": Design(
        13,
        60,
        4,
        core=1.0,
        normal=1.0,
        cascade=0.6,
        kinds=("core", "no effect"),
        faults=("adversarial", "cascade"),
    ),
    "normal runs of two easy tasks": Design(14, 40, 2, core=1.0, normal=0.75, padding=300, easy_tasks=2),
}


table = partial(oracle_tables.table, condition=core_designs.LISTED)


def assessed(
    made: honest.Evaluation, name: str, folder: Path, tier: int
) -> Iterator[tuple[bool, int, dict[str, Any]]]:
    """Yield exit code and document of an assessment, provisional rows not counted and then counted."""
    bundle = str(honest.write(made, folder / "bundle"))
    profile = folder / "profile.toml"
    profile.write_text(oracle_tables.text(name, core_designs.LISTED), encoding="utf-8")
    asked = ["assess", bundle, "--profile", str(profile), "--require-tier", str(tier), "--json"]
    yield False, *certkit(*asked)
    yield True, *certkit(*asked, "--strict")


def compare(made: honest.Evaluation, name: str, tier: int) -> None:
    wanted = core_oracle.judge(made.records, made.manifest, table(name))
    close = any(row.close for row in wanted.rows.values())
    with tempfile.TemporaryDirectory() as folder:
        for strict, code, document in assessed(made, name, Path(folder), tier):
            same_rows(document, wanted)
            same_core(document, wanted)
            if close:  # a doubt of the last digit decides a tier
                continue
            tiers, codes = wanted.tiers, wanted.findings
            if strict:
                tiers, codes = wanted.tiers_strict, wanted.findings_strict
            found = {int(number): each["status"] for number, each in document["tiers"].items()}
            assert found == tiers
            assert code == wanted.exit_code(tier, strict=strict)
            assert document["verdict"]["tier_strict"] == wanted.tier_strict
            assert document["verdict"]["tier"] == (wanted.tier_strict if strict else wanted.tier)
            serious = {item["code"] for item in document["findings"] if item["severity"] == "serious"}
            assert serious & {"core-evidence", "latest-third", "success-with-attack"} == codes


def same_rows(document: dict[str, Any], wanted: core_oracle.Judgement) -> None:
    found = {(row["id"], row["tier"]): row for row in document["criteria"]}
    assert found.keys() == wanted.rows.keys()
    for key, row in wanted.rows.items():
        assert found[key]["status"] == row.status, key
        if row.status != "not_applicable" and row.value is not None:
            assert same(found[key]["value"], row.value), (key, found[key], float(row.value))
        oracle_tables.same_limit(found[key], row)


def same_core(document: dict[str, Any], wanted: core_oracle.Judgement) -> None:
    """Every lost row is told, and what is told of a row that is met is the oracle's value."""
    told = {(row["id"], row["tier"]): row for row in document["core"]}
    assert told.keys() >= {key for key, row in wanted.rows.items() if row.lost and not row.close}
    for key, row in told.items():
        core = wanted.rows[key].core
        if core is not None:
            # A summary holds planning efficiency in whole millionths a run; a mean may be half of one off.
            near = key[0] in oracle_tables.MILLIONTHS and abs(row["value"] - float(core)) <= 1e-6
            assert near or same(row["value"], core), (key, row, wanted.rows[key])


@pytest.mark.parametrize("name", PROFILES)
@thorough
@given(design=core_designs.designs(), manifest=core_designs.manifests(), tier=st.sampled_from([1, 2, 3]))
def test_every_row_tier_and_exit_code_is_the_oracles(
    name: str, design: Design, manifest: dict[str, Any], tier: int
) -> None:
    compare(honest.Evaluation(manifest, core_designs.records(design)), name, tier)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("reached", REACHING)
def test_designs_that_reach_each_loss_are_judged_as_by_the_oracle(name: str, reached: str) -> None:
    made = honest.Evaluation(core_designs.manifest(), core_designs.records(REACHING[reached]))
    compare(made, name, 1)


def test_the_packaged_tables_of_2026_ask_for_core_evidence() -> None:
    assert [table(name).get("core") for name in PROFILES] == [True, True]


def test_the_designs_lose_each_row_on_core_evidence() -> None:
    """The oracle alone: without such designs the comparison could not fail."""
    lost: set[str] = set()
    insufficient: set[str] = set()
    codes: set[str] = set()
    tiers: set[tuple[int, str]] = set()
    for design in REACHING.values():
        rows = [row for row in table("hb-eval-2026")["criteria"] if row["metric"] != "csi"]
        profile = {**table("hb-eval-2026"), "criteria": rows}
        made = core_designs.records(design)
        judged = core_oracle.judge(made, core_designs.manifest(), profile, core=True, limits=False)
        alone = core_oracle.judge(made, core_designs.manifest(), profile, core=False, limits=False)
        lost |= {name for (name, _), row in judged.rows.items() if row.lost}
        insufficient |= {
            name for (name, tier), row in judged.rows.items() if row.status != alone.rows[name, tier].status
        }
        codes |= judged.findings
        tiers |= {(n, status) for n, status in judged.tiers.items()}
    deciding = {row["id"] for row in table("hb-eval-2026")["criteria"] if not row.get("provisional")}
    assert deciding - lost == {"own_attacks"}  # own conditions carry no attacks here: test_gates has them
    assert insufficient >= {"r_op", "posterior", "domain_min", "frr", "irs", "cascade_penalty", "own_gap"}
    assert codes == {"core-evidence", "latest-third", "success-with-attack"}
    assert tiers >= {(1, "contested"), (1, "met"), (1, "not_met"), (1, "insufficient"), (2, "contested")}
