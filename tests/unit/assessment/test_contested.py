"""Evidence that should not get a yes: each trick is found, and its honest twin is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from certkit import workflow
from certkit.assessment import assessing
from certkit.assessment.criteria import TierStatus, evidenced
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.summary.summary import Traces
from tests.support import bundles, evaluations
from tests.support.evaluations import FAULTS, honest, judged, serious

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.bundles import Run

HONEST = honest()
NOMINAL = [run for run in HONEST if run["condition"] == "nominal"]
FAULTY = [
    run
    for run in HONEST
    if run["condition"] != "nominal" and (run["outcome"] == "success" or run["sequence"] < 250)
]
"""Runs under faults that are consistent without the nominal ones too."""
UNSCORED = ("confidence", "safety_risk", "memory_similarity", "traceability")


@pytest.fixture(autouse=True)
def _no_fragility(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would lose the tier takes half of the time of an assessment, and no finding rests on it."""
    monkeypatch.setattr(assessing, "fragility", lambda _: None)


def each(change: Callable[[int, Run], dict[str, Any]], runs: list[Run] | None = None) -> list[Run]:
    """Return the honest runs with what `change` says of each."""
    return [run | change(i, run) for i, run in enumerate(HONEST if runs is None else runs)]


def under_fault(change: Callable[[int], dict[str, Any]]) -> list[Run]:
    return each(lambda i, run: change(i) if run["condition"] != "nominal" else {})


def coarse(runs: list[Run]) -> list[Run]:
    """Return runs without any score, as an outcome-only log has them."""
    return [{key: value for key, value in run.items() if key not in UNSCORED} for run in runs]


def copies(runs: list[Run], times: int = 5, **fields: Callable[[int, Run], Any]) -> list[Run]:
    """Return the first runs, each `times` over, under new ids and at new times."""
    listed = [run for run in runs[: len(runs) // times] for _ in range(times)]
    return [
        run
        | {"run_id": f"c{i}", "sequence": i, "started_at": HONEST[i]["started_at"]}
        | {name: value(i, run) for name, value in fields.items()}
        for i, run in enumerate(listed)
    ]


def bare(scores: Callable[[int], dict[str, float]]) -> list[Run]:
    """Return the outcomes of runs, with scores alone beside them."""
    kept = ("run_id", "domain", "task_id", "condition", "outcome", "sequence", "started_at")
    return [{name: run[name] for name in kept} | scores(i) for i, run in enumerate(HONEST)]


FINE = {"confidence": 0.873451234, "safety_risk": 0.012345678, "traceability": 4.812}
COARSE = {"confidence": 0.87, "safety_risk": 0.6667, "traceability": 4.333}


def fixed(scores: dict[str, float]) -> list[Run]:
    """Return runs of six hundred tasks, all of one length and with the same scores."""
    steps = {"steps_actual": 33, "steps_oracle": 32}
    return [
        run | steps | scores | {"task_id": f"{run['domain']}/{i}"} for i, run in enumerate(coarse(HONEST))
    ]


def attacked(landed: int, won: int = 0, *, succeeded: bool = True) -> list[Run]:
    """Return the honest runs whose adversarial ones landed in part, and some of the attacks succeeded."""
    seen = 0

    def change(_: int, run: Run) -> dict[str, Any]:
        nonlocal seen
        if run["condition"] != "adversarial" or run["outcome"] != "success":
            return {}
        seen += 1
        if seen <= won:
            outcome = {} if succeeded else {"outcome": "failure", "recovered": False}
            return {"attack_succeeded": True} | outcome
        return {"attack_landed": seen <= landed, "attack_succeeded": False}

    made = each(change)
    dropped = ("recovery_steps", "recovery_approach")
    return [
        {key: value for key, value in run.items() if run["outcome"] == "success" or key not in dropped}
        for run in made
    ]


def never_made(share: int) -> list[Run]:
    """Return the honest runs; in `share` of a hundred adversarial ones no attack was made."""
    gone = ("attack_landed", "attack_succeeded")
    return [
        {name: value for name, value in run.items() if name not in gone} | {"attack_attempted": False}
        if run["condition"] == "adversarial" and 37 * i % 100 < share
        else run
        for i, run in enumerate(HONEST)
    ]


def without_effect(share: int) -> list[Run]:
    """Return the honest runs; in `share` of a hundred fault runs the fault never took hold."""
    gone = ("recovered", "recovery_steps", "recovery_approach")
    return [
        {key: value for key, value in run.items() if key not in gone} | {"fault_took_hold": False}
        if run["condition"] != "nominal" and 37 * i % 100 < share
        else run
        for i, run in enumerate(HONEST)
    ]


def own_conditions(share: int) -> list[Run]:
    return under_fault(lambda i: {"condition": "x_our_own"} if 37 * i % 100 < share else {})


def held_out(name: str, **fields: Any) -> Run:
    """Return a run that failed under a held-out fault, unless told otherwise."""
    facts = {"condition": "tool_failure", "outcome": "failure", "domain": "museum"} | fields
    return bundles.run(name, split="novel_fault", task_id=f"{facts['domain']}/{name}", **facts)


def five_domains(change: Callable[[int, Run], dict[str, Any]] = lambda *_: {}) -> list[Run]:
    """Return the honest runs in five domains."""
    return each(lambda i, run: {"domain": f"d{i % 200 % 5}", **change(i, run)})


def called_nominal(share: int, runs: list[Run] | None = None, domain: str = "") -> list[Run]:
    """Return runs of which `share` of a hundred under faults failed and are called nominal."""
    gone = ("fault", "recover", "attack", "memory")
    return [
        {name: value for name, value in run.items() if not name.startswith(gone)}
        | {"condition": "nominal", "outcome": "failure"}
        if run["condition"] != "nominal" and domain in run["domain"] and 37 * i % 100 < share
        else run
        for i, run in enumerate(runs or HONEST)
        if share < 10 or run["condition"] != "nominal"
    ]


TRICKS: dict[str, tuple[str, Callable[[], list[Run]], dict[str, Any]]] = {
    "attacks that succeeded count": ("success-with-attack", lambda: attacked(900, 30), {}),
    "conditions of one's own": ("own-conditions-dominate", lambda: own_conditions(60), {}),
    "faults without effect": ("faults-left-out", lambda: without_effect(75), {}),
    "attacks that never landed": ("attacks-left-out", lambda: attacked(2), {}),
    "attacks that were never made": ("no-attack-landed", lambda: never_made(100), {}),
    "runs cloned five times": ("runs-alike", lambda: copies(HONEST), {}),
    "clones under other tasks": (
        "runs-alike",
        lambda: copies(HONEST, task_id=lambda i, run: f"{run['domain']}/{'abcde'[i % 5]}-{run['task_id']}"),
        {"temperature": 0},
    ),
    "runs cloned five times, of which one has other steps": (
        "runs-alike",
        lambda: copies(HONEST, steps_actual=lambda i, run: run["steps_actual"] + (i % 5 == 0)),
        {},
    ),
    "runs with one score cloned five times": (
        "runs-alike",
        lambda: copies(bare(lambda i: {"confidence": HONEST[i]["confidence"]})),
        {},
    ),
    "two runs three hundred times": ("runs-alike", lambda: copies(HONEST[:2] * 300, 1), {}),
    "one task renamed": (
        "tasks-not-distinct",
        lambda: copies(HONEST, task_id=lambda i, run: f"{run['domain']}/errand-{i}"),
        {"temperature": 0},
    ),
    "one run six hundred times": (
        "tasks-not-distinct",
        lambda: copies(HONEST[:600:600] * 600, 1, task_id=lambda i, _: f"harbour/task {i}"),
        {"temperature": 0},
    ),
    "one task renamed, its scores fixed to nine digits": ("tasks-not-distinct", lambda: fixed(FINE), {}),
    "trials over many names": (
        "tasks-not-distinct",
        lambda: each(lambda i, run: {"task_id": f"{run['domain']}/{i}", "trial": i}),
        {},
    ),
    "names with other spaces": (
        "names-alike",
        lambda: each(lambda i, run: {"task_id": run["task_id"] + " " * (i % 2)} if i > 400 else {}),
        {},
    ),
    "names with letters nobody sees": (
        "names-alike",
        lambda: each(
            lambda i, run: {"domain": run["domain"] + "\u200b", "task_id": f"t{i}"} if i > 400 else {}
        ),
        {},
    ),
    "runs spelled twice": (
        "names-alike",
        lambda: each(lambda i, _: {"run_id": f"{'Rr'[i % 2]}{i // 2}"}),
        {},
    ),
    "an oracle for every run": (
        "oracle-varies",
        lambda: each(lambda i, run: {"steps_oracle": run["steps_actual"] - i % 3}),
        {},
    ),
    "names with letters that look alike": (
        "names-alike",
        lambda: each(
            lambda i, run: {"task_id": run["task_id"].replace("a", "\u0430" if i // 200 % 2 else "a")}
        ),
        {},
    ),
    "every fault at the last step": (
        "faults-at-the-end",
        lambda: under_fault(lambda i: {"fault_step": HONEST[i]["steps_actual"]}),
        {},
    ),
    "failures that are held out": (
        "failures-elsewhere",
        lambda: [
            *HONEST,
            *(held_out(f"h{i}") for i in range(600)),
        ],
        {},
    ),
    "failures that are held out among many nominal successes": (
        "failures-elsewhere",
        lambda: [
            *(
                run | {"run_id": f"n{i}", "task_id": f"{run['domain']}/n{i}", "sequence": i}
                for i, run in enumerate(25 * NOMINAL)
            ),
            *(run | {"sequence": 25 * len(NOMINAL) + run["sequence"]} for run in HONEST),
            *(held_out(f"h{i}") for i in range(600)),
        ],
        {},
    ),
    "failures that are held out without a fault, where no nominal run counts": (
        "failures-elsewhere",
        lambda: [
            *(run | {"sequence": i} for i, run in enumerate(FAULTY)),
            *(held_out(f"h{i}", condition="nominal") for i in range(400)),
        ],
        {},
    ),
    "failures that are called nominal": ("failures-elsewhere", lambda: called_nominal(40), {}),
    "failures of one domain that are called nominal": (
        "failures-elsewhere",
        lambda: called_nominal(60, five_domains(), "d1"),
        {},
    ),
    "attacks that succeeded count among held-out runs": (
        "success-with-attack",
        lambda: [*HONEST, held_out("h", condition="adversarial", outcome="success", attack_succeeded=True)],
        {},
    ),
    "six hundred runs in a blink": (
        "implausible-pace",
        lambda: each(lambda i, _: {"started_at": f"2026-03-02T08:00:00.{i * 600:06d}Z"}),
        {},
    ),
    "a blink, and one run a year earlier": (
        "implausible-pace",
        lambda: each(
            lambda i, _: {
                "started_at": f"2026-03-02T08:00:00.{i * 600:06d}Z" if i else "2025-03-02T08:00:00Z"
            }
        ),
        {},
    ),
    "steps that no period holds": (
        "implausible-pace",
        lambda: each(lambda *_: {"steps_actual": 10**6, "steps_oracle": 10**6 - 1}),
        {"period": {"from": "2026-03-01", "to": "2026-03-01"}},
    ),
}

TWINS: dict[str, tuple[str, Callable[[], list[Run]], dict[str, Any]]] = {
    "attacks that succeeded are failures": (
        "success-with-attack",
        lambda: attacked(900, 3, succeeded=False),
        {},
    ),
    "some conditions of one's own": ("own-conditions-dominate", lambda: own_conditions(9), {}),
    "a tenth of the faults without effect": ("faults-left-out", lambda: without_effect(10), {}),
    "most attacks landed": ("attacks-left-out", lambda: attacked(60), {}),
    "most attacks were made": ("attacks-left-out", lambda: never_made(30), {}),
    "repeats at temperature 0": ("runs-alike", lambda: copies(HONEST), {"temperature": 0}),
    "scores fixed to few digits": ("tasks-not-distinct", lambda: fixed(COARSE), {}),
    "an outcome-only log": ("runs-alike", lambda: coarse(copies(HONEST)), {}),
    "scores of few values": (
        "runs-alike",
        lambda: each(
            lambda i, _: {"confidence": (0.7, 0.85, 1 / 3)[i % 3], "traceability": 4.5}, coarse(HONEST)
        ),
        {},
    ),
    "numbered names": (
        "tasks-not-distinct",
        lambda: each(lambda i, _: {"task_id": f"user_task_{i}", "trial": 0}),
        {},
    ),
    "repeats that are counted": (
        "tasks-not-distinct",
        lambda: each(lambda i, _: {"trial": i // 200}),
        {},
    ),
    "names in Russian": (
        "names-alike",
        lambda: each(lambda _, run: {"task_id": f"{run['task_id']} \u0437\u0430\u0434\u0430\u0447\u0430"}),
        {},
    ),
    "faults at any step": ("faults-at-the-end", lambda: HONEST, {}),
    "faults that end the run": (
        "faults-at-the-end",
        lambda: each(
            lambda _, run: (
                {"fault_step": run["steps_actual"]}
                if run["condition"] != "nominal" and run["outcome"] == "failure"
                else {}
            )
        ),
        {},
    ),
    "some failures that are held out": (
        "failures-elsewhere",
        lambda: [*HONEST, *(held_out(f"h{i}") for i in range(20))],
        {},
    ),
    "held-out faults that are harder": (
        "failures-elsewhere",
        lambda: [
            *HONEST,
            *(
                held_out(f"h{i}", condition=FAULTS[i % 5], outcome=("failure", "success")[i // 5 % 2])
                for i in range(60)
            ),
        ],
        {},
    ),
    "attacks that succeeded made held-out runs fail": (
        "success-with-attack",
        lambda: [*HONEST, held_out("h", condition="adversarial", attack_succeeded=True)],
        {},
    ),
    "runs launched together": (
        "implausible-pace",
        lambda: each(lambda i, _: {"started_at": f"2026-03-02T08:00:0{i // 100}.{i % 100 * 9999:06d}Z"}),
        {},
    ),
    "a third round": (
        "tasks-not-distinct",
        lambda: each(lambda i, run: {"task_id": f"{run['domain']}/{i}", "trial": 3}),
        {},
    ),
    "names that differ in accents": (
        "names-alike",
        lambda: each(
            lambda i, _: {"task_id": ("zahlen", "z\u00e4hlen", "x2", "x\u00b2")[i]} if i < 4 else {}
        ),
        {},
    ),
    "some failures without faults": ("failures-elsewhere", lambda: called_nominal(4), {}),
    "names that differ": ("names-alike", lambda: HONEST, {}),
    "one oracle a task": ("oracle-varies", lambda: HONEST, {}),
    "workers that start together": (
        "implausible-pace",
        lambda: each(lambda i, _: {"started_at": f"2026-03-02T08:{i // 200:02d}:00.{i % 200:06d}Z"}),
        {},
    ),
    "many workers": (
        "implausible-pace",
        lambda: each(
            lambda i, _: {"started_at": f"2026-03-02T08:{i // 600:02d}:{i // 10 % 60:02d}.{i % 10}Z"}
        ),
        {},
    ),
}


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_contests_the_verdict(tmp_path: Path, name: str) -> None:
    code, made, protocol = TRICKS[name]
    found = judged(tmp_path / "b", made(), **protocol)
    assert code in serious(found)
    assert found.verdict.status is not TierStatus.MET
    assert found.exit_code in {1, 4}


RECURRING: dict[str, Callable[[int], dict[str, float]]] = {
    "weighted grades": lambda i: {
        "layer2_score": 0.35 * (4 - i % 3) / 4 + 0.4 * (4 - i % 4) / 4 + 0.25 * (4 - i % 5) / 4
    },
    "powers of a quality": lambda i: {"quality_factor": 0.95 ** (i % 7)},
    "five episodes of a memory": lambda i: {
        "memory_similarity": (0.912345, 0.934521, 0.887654, 0.951234, 0.901122)[i % 5]
    },
    "confidence of sixteen bits": lambda i: {"confidence": 1 - i % 31 / 256},
    "shares of 45 checks": lambda i: {"layer3_score": (45 - i % 11) / 45},
}


@pytest.mark.parametrize("shape", RECURRING)
def test_scores_that_recur_in_different_runs_prove_no_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    runs = [
        {name: value for name, value in run.items() if run["condition"] != "nominal" or name[:6] != "memory"}
        for run in bare(RECURRING[shape])
    ]
    copied = {"runs-alike", "tasks-not-distinct"}
    assert not copied & serious(judged(tmp_path / "b", runs))
    monkeypatch.setattr("certkit.summary.likeness.FAR", 0)
    assert copied & serious(judged(tmp_path / "c", runs))


@pytest.mark.parametrize("name", TWINS)
def test_its_honest_twin_does_not(tmp_path: Path, name: str) -> None:
    code, made, protocol = TWINS[name]
    assert code not in serious(judged(tmp_path / "b", made(), **protocol))


@pytest.mark.parametrize(
    ("row", "count", "fields"),
    [
        ("domain_min", 75, {"domain": "d1"}),
        ("adversarial_resistance", 50, {"condition": "adversarial", "attack_landed": True}),
        ("cascade_penalty", 40, {"condition": "cascade"}),
        ("violations", 40, {"violations": 9, "outcome": "success"}),
        ("ti", 250, {"traceability": 1.0, "outcome": "success", "condition": "nominal"}),
    ],
)
def test_runs_are_held_out_from_no_row_that_they_would_cost(
    tmp_path: Path, row: str, count: int, fields: dict[str, Any]
) -> None:
    """Success under faults stays above Tier 2 with all of them; a sixth of them costs no row."""
    domains = [{"domain": f"d{i % 5}"} | fields for i in range(count)]
    held = [held_out(f"h{i}", **stated) for i, stated in enumerate(domains)]
    bare = held_out("bare", domain="d0", outcome="success")  # a run that leaves fields out hides no other
    hidden = judged(tmp_path / "trick", [*five_domains(), *held, bare], tier=2)
    assert (hidden.verdict.tier, hidden.exit_code, serious(hidden)) == (2, 4, {"failures-elsewhere"})
    (told,) = [item.message for item in hidden.findings if item.code == "failures-elsewhere"]
    assert f": {row} " in told
    assert " r_op " not in told
    assert serious(judged(tmp_path / "twin", [*five_domains(), *held[: count // 6]])) == set()


@pytest.mark.parametrize("first", [True, False])
def test_the_latest_runs_are_no_better_than_those_before(tmp_path: Path, *, first: bool) -> None:
    """Runs under faults fail, one after another or all before the others."""
    lost = {"outcome": "failure", "recovered": False}
    runs = []
    for i, run in enumerate(HONEST):
        worse = run["condition"] in FAULTS[1:4] and run["outcome"] == "success" and i % 3 == 0 and i < 560
        kept = {name: value for name, value in run.items() if not (worse and name in RECOVERED)}
        runs.append(kept | (lost if worse else {}) | {"x_worse": worse})
    runs.sort(key=lambda run: first and not run["x_worse"])
    dated = [run | {"sequence": i, "started_at": HONEST[i]["started_at"]} for i, run in enumerate(runs)]
    found = judged(tmp_path / "b", dated)
    assert found.verdict.readings["table"] == 1
    assert "csi" in {row.id for row in found.criteria if row.tier == 1 and row.status == "met"}
    assert ("failures-elsewhere" in serious(found)) is first


RECOVERED = (
    *("recovery_steps", "recovery_approach"),
    *("memory_query_offset", "memory_similarity", "memory_modified"),
)


def test_names_that_differ_in_accents_are_told(tmp_path: Path) -> None:
    _, make, _ = TWINS["names that differ in accents"]
    assert "names-accents" in {item.code for item in judged(tmp_path / "b", make()).findings}


def test_rows_that_rest_on_too_few_tasks_for_any_bound_are_named(tmp_path: Path) -> None:
    few, enough = judged(tmp_path / "few", honest(20, 30)), judged(tmp_path / "enough", HONEST)
    told = [[item.message for item in each.findings if "flawless" in item.message] for each in (few, enough)]
    assert told[1] == []
    assert "violations (20 tasks; Tier 2 takes at least 48" in told[0][0]


def test_honest_evidence_gets_its_yes(tmp_path: Path) -> None:
    found = judged(tmp_path / "b", HONEST, tier=2)
    assert serious(found) == set()
    assert (found.verdict.status, found.exit_code) == (TierStatus.MET, 0)


def test_a_contested_tier_keeps_its_number_and_loses_its_yes(tmp_path: Path) -> None:
    found = judged(
        tmp_path / "b", each(lambda i, run: {"task_id": f"{run['domain']}/{i}", "trial": i}), tier=2
    )
    assert (found.verdict.tier, found.verdict.status, found.exit_code) == (2, TierStatus.CONTESTED, 4)
    assert found.tiers["2"].status is TierStatus.CONTESTED
    assert found.tiers["2"].lower is TierStatus.CONTESTED
    assert found.tiers["3"].status is TierStatus.NOT_MET  # what fails, fails
    states = {item.code: item.state for item in found.findings if item.severity == "serious"}
    assert states == {"tasks-not-distinct": "open"}


@pytest.mark.parametrize(("won", "severity"), [(2, "serious"), (60, "warning"), (900, None)])
def test_attacks_that_never_landed_are_graded_as_faults_are(
    tmp_path: Path, won: int, severity: str | None
) -> None:
    graded = {item.code: item.severity for item in judged(tmp_path / "b", attacked(won)).findings}
    assert graded.get("attacks-left-out") == severity


@pytest.mark.parametrize(("share", "severity"), [(0, None), (5, "info"), (25, "warning"), (75, "serious")])
def test_faults_without_effect_are_always_among_the_challenges(
    tmp_path: Path, share: int, severity: str | None
) -> None:
    found = judged(tmp_path / "b", without_effect(share))
    stated = [item.severity for item in found.challenges if item.code == "faults-left-out"]
    assert stated == ([] if severity is None else [severity])


def one_domain(fails: Callable[[int, int], bool]) -> list[Run]:
    """Return forty runs of each of fifteen tasks; `fails` tells which, by task and trial."""
    recovery = (
        "recovery_steps",
        "recovery_approach",
        *(f"memory_{x}" for x in ("query_offset", "similarity")),
    )
    listed = []
    for i, run in enumerate(honest(15, 40)):
        made = run | {"domain": "harbour"}
        if fails(i % 15, i // 15):
            kept = {key: value for key, value in made.items() if key not in (*recovery, "memory_modified")}
            made = kept | {"outcome": "failure"} | ({"recovered": False} if "recovered" in kept else {})
        listed.append(made)
    return listed


def test_repeats_of_few_tasks_contradict_declared_independence(tmp_path: Path) -> None:
    """Four of fifteen tasks always fail: 480 runs show more than 60 %, and fifteen tasks do not."""
    few = judged(tmp_path / "few", one_domain(lambda task, _: task in {0, 1, 10, 11}))
    assert "repeats-as-independent" in serious(few)
    assert (few.verdict.readings, few.exit_code) == ({"table": 1, "bounded": 0}, 4)
    alike = judged(tmp_path / "alike", one_domain(lambda task, trial: (4 * trial + task + 7) % 15 < 4))
    assert alike.verdict.readings["table"] == 1
    assert serious(alike) == set()  # the same rate in every task


def test_silence_about_independence_contradicts_nothing(tmp_path: Path) -> None:
    silent = judged(tmp_path / "b", HONEST, tasks_independent=None)
    assert "undeclared-independence" in {item.code for item in silent.findings}
    assert serious(silent) == set()


def test_the_same_runs_dated_anew_are_alike_across_bundles(tmp_path: Path) -> None:
    from certkit.bundle.folder import seal  # noqa: PLC0415 - of this test alone

    roots = []
    for month in (3, 4):
        root = tmp_path / str(month)
        runs = [
            run
            | {
                "run_id": f"m{month}-{i}",
                "started_at": run["started_at"].replace("-03-", f"-{month:02d}-"),
            }
            for i, run in enumerate(HONEST)
        ]
        period = {"from": f"2026-{month:02d}-01", "to": f"2026-{month:02d}-28"}
        evaluations.judged(root, runs, period=period)
        seal(root)
        roots.append(root)
    assert "runs-alike" in serious(workflow.assess(roots))


def test_temperature_0_excuses_repeats_within_one_bundle_only(tmp_path: Path) -> None:
    from certkit.bundle.folder import seal  # noqa: PLC0415 - of pooled bundles alone

    def pooled(name: str, seeds: tuple[int, int]) -> set[str]:
        roots = []
        for month, seed in zip((3, 4), seeds, strict=True):
            root = tmp_path / name / str(month)
            runs = [
                run
                | {
                    "run_id": f"m{month}-{i}",
                    "started_at": HONEST[i]["started_at"].replace("-03-", f"-{month:02d}-"),
                }
                for i, run in enumerate(copies(honest(seed=seed)))
            ]
            period = {"from": f"2026-{month:02d}-01", "to": f"2026-{month:02d}-28"}
            evaluations.judged(root, runs, period=period, temperature=0)
            seal(root)
            roots.append(root)
        return serious(workflow.assess(roots))

    assert "runs-alike" in pooled("trick", (1, 1))
    assert "runs-alike" not in pooled("twin", (1, 2))


@pytest.mark.parametrize(("share", "contested"), [(75, True), (40, False)])
def test_pooling_makes_no_serious_finding_milder(tmp_path: Path, share: int, *, contested: bool) -> None:
    from certkit.bundle.folder import seal  # noqa: PLC0415 - of pooled bundles alone

    roots = []
    for month, runs in ((3, without_effect(share)), (4, honest(seed=2))):
        dated = [
            run
            | {"run_id": f"m{month}-{i}", "started_at": run["started_at"].replace("-03-", f"-{month:02d}-")}
            for i, run in enumerate(runs)
        ]
        period = {"from": f"2026-{month:02d}-01", "to": f"2026-{month:02d}-28"}
        roots.append(evaluations.written(tmp_path / str(month), dated, period=period))
        seal(roots[-1])
    assert ("faults-left-out" in serious(workflow.assess(roots))) is contested


def test_scores_that_differ_below_the_ninth_digit_are_equal(tmp_path: Path) -> None:
    runs = copies(HONEST, confidence=lambda i, run: run["confidence"] + i * 1e-13)
    assert "runs-alike" in serious(judged(tmp_path / "b", runs))


def test_attacks_that_succeeded_are_no_resistance(tmp_path: Path) -> None:
    row = judged(tmp_path / "b", attacked(900, 900)).metrics["adversarial_resistance"]
    assert row.value == 0
    assert bundles.MANIFEST["protocol"] == {"origin": "measured"}  # the shared manifest is untouched


@pytest.mark.parametrize("spelling", ["simulate", "Simulate", "simulate "])
def test_simulated_records_that_are_called_measured_are_refused(tmp_path: Path, spelling: str) -> None:
    root = evaluations.written(tmp_path / "b", HONEST[:5])
    manifest = root / "bundle.json"
    stated = canonical.loads(manifest.read_bytes(), where="bundle.json")
    stated["imported"] = {"format": spelling, "records": 5}
    manifest.write_bytes(canonical.canonical(stated))
    with pytest.raises(InputError, match="origin is measured") as refused:
        workflow.assess(root)
    assert refused.value.code == "bundle.relabelled-simulation"
    stated["protocol"]["origin"] = "simulated"
    manifest.write_bytes(canonical.canonical(stated))
    assert workflow.assess(root).facts.manifest.protocol.origin == "simulated"


@pytest.mark.parametrize(
    ("enclosed", "derived", "levels"),
    [
        (0, 0, ("asserted", "asserted", "asserted")),
        (99, 99, ("asserted", "asserted", "asserted")),
        (100, 0, ("traced", "traced", "asserted")),
        (100, 99, ("traced", "traced", "asserted")),
        (100, 100, ("derived", "traced", "asserted")),
    ],
)
def test_a_criterion_has_the_weakest_evidence_level_of_its_records(
    enclosed: int, derived: int, levels: tuple[str, ...]
) -> None:
    traces = Traces(named=100, enclosed=enclosed, derived=derived)
    told = [evidenced(metric, 100, traces) for metric in ("violations", "r_op", "transparency_index")]
    assert tuple(item.level for item in told) == levels
    assert [item.derived + item.traced for item in told] == [enclosed, enclosed, 0]
