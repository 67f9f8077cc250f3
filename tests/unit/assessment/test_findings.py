"""Every finding is found where its cause is there, and is silent where it is not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from certkit.assessment.findings.findings import SEVERITY, Severity
from certkit.assessment.findings.plausibility import identical_repeats
from certkit.record.record import Split
from certkit.summary.summary import Stretch, Tally, Times, Traces, Window
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable

    from certkit.assessment.result import Assessment
    from certkit.summary.summary import Cell


def schedule(domain: str = "a", nominal: int = 20, fault: int = 80, **fields: int) -> list[Cell]:
    """A domain on the stratified schedule whose fault runs carry `fields`."""
    return [
        build.cell(domain, "nominal", build.outcomes(nominal, nominal)),
        build.cell(domain, "tool_failure", build.outcomes(fault, fault, **fields)),
    ]


def found(cells: list[Cell] | None = None, **facts: Any) -> Assessment:
    listed = schedule() if cells is None else cells
    times = Times(timed=1, first=late(10), last=late(10), distinct=1)
    return build.judged(build.summary(listed, rows=build.clusters(), times=times), **facts)


def mixed(**conditions: int) -> Assessment:
    """Return the judgement of runs under faults, by condition."""
    return found([build.cell("a", name, build.outcomes(n, n)) for name, n in conditions.items()])


def timed(**times: int) -> Assessment:
    return build.judged(build.summary(schedule(), times=Times(**times)))


def in_blocks() -> Assessment:
    part = Stretch(
        runs=10, failures=0, pei_n=0, pei_fixed=0, pei_squares=0, irs_yes=0, irs_no=0, irs_silent=0,
        irs_incomplete=0, domains_missing=1,
    )  # fmt: skip
    whole = structs.replace(part, domains_missing=0)
    window = Window(order="sequence", reason=None, runs=100, stretches=(part, *[whole] * 9))
    return build.judged(build.summary(schedule(), ordered=window))


def repeated(*rows: tuple[int, int, int, dict[str, int]], **facts: Any) -> Assessment:
    return build.judged(build.summary(schedule(), rows=build.clusters(rows)), **facts)


def uneven(runs: list[int]) -> list[tuple[int, int, int, dict[str, int]]]:
    """Tasks under faults with so many runs, one failure each."""
    return [(1, task, task, {"runs": n, "failure": 1, "success": n - 1}) for task, n in enumerate(runs)]


def apart(
    nominal: tuple[int, int], *rows: tuple[int, int], novel: tuple[tuple[int, int], ...] = (), **facts: Any
) -> Assessment:
    """Tasks with (successes, runs): one nominal pair for each of `rows` under faults, and held-out ones."""
    cells = [
        build.cell("a", "nominal", build.outcomes(len(rows) * nominal[1], len(rows) * nominal[0])),
        build.cell("a", "tool_failure", build.outcomes(sum(n for _, n in rows), sum(s for s, _ in rows))),
    ]
    if novel:
        held = build.outcomes(sum(n for _, n in novel), sum(s for s, _ in novel))
        cells.append(build.cell("a", "tool_failure", held, split=Split.NOVEL_FAULT))
    whole = build.summary(cells)
    place = {(item.split, item.condition): number for number, item in enumerate(whole.cells)}
    listed = []
    for task, (s, n) in enumerate(rows):
        number = place[Split.STANDARD, "nominal"]
        listed.append((number, task, task, {"runs": nominal[1], "success": nominal[0]}))
        listed.append((place[Split.STANDARD, "tool_failure"], task, task, {"runs": n, "success": s}))
    for task, (s, n) in enumerate(novel):
        number = place[Split.NOVEL_FAULT, "tool_failure"]
        listed.append((number, 1000 + task, 1000 + task, {"runs": n, "success": s}))
    return build.judged(structs.replace(whole, clusters=build.clusters(listed)), **facts)


def said(of: Assessment, code: str) -> str | None:
    return next((item.message for item in of.findings if item.code == code), None)


MICRO = 1_000_000
JUDGE = {"name": "self", "independent": False}
UNVERSIONED = {"name": "courier", "version": "unversioned"}
LOOSE = {"name": "courier", "version": "1", "components": [{"role": "tools", "name": "shell"}]}
ATTACK = "adversarial"


def imported(kind: str, what: str = "empty responses") -> dict[str, Any]:
    return {
        "format": "records",
        "records": 1,
        "notes": [{"kind": kind, "what": what, "count": 3}],
    }


def late(day: int) -> int:
    return int(datetime(2026, 1, day, 23, 30, tzinfo=UTC).timestamp()) * MICRO


CAUSES: dict[str, Callable[[], Assessment]] = {
    "no-records": lambda: found([]),
    "no-fault-runs": lambda: found([build.cell("a", "nominal", build.outcomes(9, 9))]),
    "held-out-runs": lambda: found(
        [
            build.cell("a", "stochastic", build.outcomes(90, 9)),
            build.cell("a", "stochastic", build.outcomes(9, 9), split=Split.NOVEL_FAULT),
        ]
    ),
    "no-nominal-runs": lambda: found([build.cell("a", "stochastic", build.outcomes(90, 9))]),
    "simulated-origin": lambda: found(origin="simulated"),
    "unsealed": lambda: found(sealed=False),
    "unversioned-agent": lambda: found(agent=UNVERSIONED),
    "components-not-listed": lambda: found(agent=UNVERSIONED),
    "unpinned-components": lambda: found(agent=LOOSE),
    "derived-differs": lambda: build.judged(
        structs.replace(build.strong(), traces=Traces(named=9, enclosed=9, derived=8, differ=1))
    ),
    "traces-not-enclosed": lambda: build.judged(
        structs.replace(
            build.summary([build.cell("a", "stochastic", build.outcomes(9, 9))]),
            traces=Traces(named=9, enclosed=7, bare=2),
        )
    ),
    "protocol-not-stated": lambda: found(methodology=None),
    "evaluator-not-independent": lambda: found(evaluator={"name": "us", "relation": "same"}),
    "judge-not-independent": lambda: found(judge=JUDGE),
    "temperature-not-zero": lambda: found(temperature=0.7),
    "repeated-attempt": lambda: found(attempt=2),
    "success-reading": lambda: found(success_rule="utility only"),
    "cascade-definition": lambda: found(
        [build.cell("a", "cascade", build.outcomes(9, 9))], cascade_definition="sequential"
    ),
    "unread-parts": lambda: found(unread=("integrity/",)),
    "import-odd": lambda: found(imported=imported("odd")),
    "import-guessed": lambda: found(imported=imported("guessed")),
    "import-refused": lambda: found(imported=imported("refused")),
    "declared-runs-differ": lambda: found(declared_runs=120),
    "harness-errors": lambda: found(
        [build.cell("a", "stochastic", build.outcomes(100, 94, harness_error=6))]
    ),
    "nominal-only-domain": lambda: found([build.cell("b", "nominal", build.outcomes(9, 9)), *schedule()]),
    "nominal-share": lambda: found(schedule(nominal=22, fault=78)),
    "few-fault-runs": lambda: found(schedule(nominal=7, fault=29)),
    "fault-mix-differs": lambda: found(declared_mix={"nominal": 0.2, "tool_failure": 0.5, "stochastic": 0.3}),
    "outside-period": lambda: timed(timed=2, first=late(10), last=late(31) + 31 * 60 * MICRO, distinct=2),
    "one-start-time": lambda: timed(timed=100, first=late(1), last=late(1), distinct=1),
    "constant-interval": lambda: timed(
        timed=100, first=late(1), last=late(2), distinct=100, constant_interval=MICRO
    ),
    "times-backwards": lambda: timed(timed=100, first=late(1), last=late(2), distinct=100, backwards=3),
    "domains-in-blocks": in_blocks,
    "undeclared-independence": lambda: build.judged(structs.replace(build.strong(), unclustered=1)),
    "repeats-uneven": lambda: repeated(*uneven([1] * 10 + [20] * 10)),
    "repeated-identical-runs": lambda: repeated((0, 1, 1, {"runs": 4, "failure": 4})),
    "no-attack-landed": lambda: found([build.cell("a", ATTACK, build.outcomes(9, 9, not_landed=9))]),
    "fault-effect-unknown": lambda: found(schedule(effect_unknown=1)),
    "faults-at-the-end": lambda: found(schedule(onset_success=10, onset_last=6)),
    "attack-landed-unknown": lambda: found([build.cell("a", ATTACK, build.outcomes(9, 9, landed_unknown=9))]),
    "faults-left-out": lambda: found(schedule(frr_left_out=41)),
    "narrow-fault-mix": lambda: mixed(stochastic=91, cascade=5, adversarial=4),
    "oracle-equals-actual": lambda: found(schedule(oracle_success=40, oracle_equal=38)),
    "success-with-violations": lambda: found(schedule(success_with_violations=1)),
    "outcome-against-rule-a": lambda: found(schedule(rule_a_checked=9, rule_a_differs=1)),
    "outcome-against-composite": lambda: found(schedule(composite_checked=9, composite_differs=1)),
    "no-halt-due": lambda: found(schedule(risk_reported=9)),
    "few-human-checks": lambda: found(schedule(ti_n=80, human_checked=19)),
    "csi-as-printed": lambda: build.judged(build.strong()),
    "sil-guidance": found,
    "judge-uncalibrated": found,
    "clusters-joined": lambda: build.judged(structs.replace(build.summary(schedule()), joined=2)),
    "undeclared-attempt": lambda: found(attempt=None),
    "undeclared-runs": lambda: found(declared_runs=None),
}
ELSEWHERE = {
    # need whole records, see test_contested
    *("repeats-as-independent", "success-with-attack", "own-conditions-dominate", "attacks-left-out"),
    "failures-elsewhere",
    *(
        "runs-alike",
        "names-alike",
        "names-accents",
        "tasks-not-distinct",
        "oracle-varies",
        "implausible-pace",
    ),
    *(
        "integrity-hollow",
        "integrity-partial",
        "integrity-rated",
        "integrity-tasks",
    ),  # see test_commitments
    *("calibration-chosen", "judge-correction"),  # need ratings, see test_judge_error
    *("periods-differ", "periods-not-compared"),  # need several bundles, see the passports'
}


def test_every_code_has_a_cause_here() -> None:
    assert set(CAUSES) | ELSEWHERE == set(SEVERITY)


@pytest.mark.parametrize("code", CAUSES)
def test_the_cause_is_found(code: str) -> None:
    findings = [item for item in CAUSES[code]().findings if item.code == code]
    assert len(findings) == 1
    assert findings[0].severity is SEVERITY[code]
    assert findings[0].message


def test_clean_evidence_has_only_the_standing_remarks() -> None:
    clean = found(declared_runs=100)
    assert build.codes(clean) == {"sil-guidance", "judge-uncalibrated", "narrow-fault-mix"}


def test_tasks_and_not_families_are_counted_over_all_faults() -> None:
    cells = [build.cell("a", name, build.outcomes(200, 200)) for name in ("cascade", "nominal", "stochastic")]

    def of(rows: list[tuple[tuple[int, int, int], int]]) -> set[str]:
        table = build.clusters(
            (at, family, task, {"runs": n, "success": n}) for (at, family, task), n in rows
        )
        return build.codes(build.judged(build.summary(cells, rows=table)))

    families = [((0, 1 + (task > 0), task), 4) for task in range(50)]
    drawn = [((2 * (i % 2), task, task), 1 + 6 * (i % 2 == task % 2)) for task in range(50) for i in range(2)]
    lifted = [((2 * i, task, task), 4) for task in range(50) for i in range(1 + task % 2)]
    nominal = [((1, task, task), 1 + 19 * (task % 2)) for task in range(50)]
    assert "repeats-uneven" not in of(families) | of(drawn) | of(lifted)
    assert "repeats-uneven" in of(nominal)


def test_findings_stand_by_severity() -> None:
    severities = [list(Severity).index(item.severity) for item in found([], origin="simulated").findings]
    assert severities == sorted(severities)
    assert len(set(severities)) > 1


@pytest.mark.parametrize(
    ("just", "code"),
    [
        (lambda: found(schedule(nominal=21, fault=79)), "nominal-share"),
        (lambda: found(schedule(nominal=19, fault=81)), "nominal-share"),
        (lambda: found(schedule(nominal=8, fault=30)), "few-fault-runs"),
        (lambda: found(schedule(ti_n=80, human_checked=20)), "few-human-checks"),
        (lambda: found(schedule(ti_n=80), judge=None), "few-human-checks"),
        (
            lambda: found([build.cell("a", "stochastic", build.outcomes(100, 95, harness_error=5))]),
            "harness-errors",
        ),
        (lambda: found(declared_mix={"nominal": 0.25, "tool_failure": 0.75}), "fault-mix-differs"),
        (
            lambda: timed(timed=2, first=late(1), last=late(31), distinct=2, constant_interval=5),
            "constant-interval",
        ),
        (lambda: timed(timed=2, first=late(1), last=late(31), distinct=2), "outside-period"),
        (
            lambda: found(
                schedule(rule_a_checked=9, rule_a_differs=1), methodology="constraint_verification"
            ),
            "outcome-against-rule-a",
        ),
        (lambda: repeated((0, 1, 1, {"runs": 4, "success": 4}), temperature=0.5), "repeated-identical-runs"),
        (lambda: repeated(*uneven([10] * 50 + [20] * 50)), "repeats-uneven"),
        (lambda: repeated(*uneven([1, 2, 3, 4, 5] * 20)), "repeats-uneven"),  # as chance deals 300 runs
        (lambda: mixed(stochastic=90, cascade=5, adversarial=5), "narrow-fault-mix"),
        (lambda: found(schedule(oracle_success=40, oracle_equal=37)), "oracle-equals-actual"),
        (lambda: found(schedule(onset_success=10, onset_last=5)), "faults-at-the-end"),
        (lambda: found(schedule(onset_success=9, onset_last=9)), "faults-at-the-end"),
        (lambda: found(schedule(oracle_success=9, oracle_equal=9)), "oracle-equals-actual"),
    ],
)
def test_the_limit_itself_is_no_finding(just: Callable[[], Assessment], code: str) -> None:
    assert code not in build.codes(just())


def test_declared_runs_are_compared_with_all_records() -> None:
    assert "declared-runs-differ" not in build.codes(found(declared_runs=100))
    message = next(f.message for f in found(declared_runs=99).findings if f.code == "declared-runs-differ")
    assert "99 runs declared, 100 recorded" in message


def test_missing_protocol_facts_are_named_where_they_bear() -> None:
    bare = found(**dict.fromkeys(set(build.PROTOCOL) - {"origin"}))
    message = next(f.message for f in bare.findings if f.code == "protocol-not-stated")
    assert "methodology, temperature, evaluator, period" in message
    assert "judge" not in message
    bearing = found(
        [build.cell("a", "cascade", Tally(runs=9, success=9, irs_silent=9, ti_n=9))],
        **dict.fromkeys(set(build.PROTOCOL) - {"origin"}),
    )
    message = next(f.message for f in bearing.findings if f.code == "protocol-not-stated")
    assert all(name in message for name in ("judge", "memory_observable", "cascade_definition"))


def test_repeats_of_a_task_are_added_over_clusters_before_they_are_judged() -> None:
    same = {"runs": 3, "success": 3}
    rows = [
        (0, 1, 7, same),
        (0, 1, 8, same),
        (0, 2, 7, {"runs": 2, "failure": 2}),  # task 7 under another cluster: not one outcome after all
        (1, 1, 8, same),  # the same task in another cell is another repeat
        (1, 1, 9, {"runs": 1, "success": 1}),  # not repeated
        (1, 1, 5, {"runs": 2, "success": 1, "failure": 1}),
        (1, 2, 6, {"runs": 1}),
        (1, 3, 6, {"runs": 1}),  # two safe halts, one in each cluster
    ]
    assert identical_repeats(build.clusters(rows)) == (3, 3 + 3 + 2)
    assert identical_repeats(build.clusters(reversed(rows))) == (3, 3 + 3 + 2)
    assert identical_repeats(build.clusters()) == (0, 0)


def test_sil_arithmetic_stands_beside_the_sources_text() -> None:
    tiers = found().to_dict()["tiers"]
    assert "failure probability per demand by 0.05" in tiers["3"]["guidance"]["arithmetic"]
    assert "at best the SIL 1 band" in tiers["3"]["guidance"]["arithmetic"]
    assert "no SIL band" in tiers["1"]["guidance"]["arithmetic"]
    assert build.judged(build.strong(), "hb-eval-2025").to_dict()["tiers"]["3"]["guidance"] is None


def test_held_out_faults_are_set_beside_the_runs_that_count() -> None:
    counted, novel = [(9, 10), (8, 10), (10, 10)] * 8, [(4, 10), (6, 10), (5, 10)] * 3
    assert said(apart((2, 2), *counted, novel=tuple(novel)), "held-out-runs") == (
        "90 of 378 runs are held-out faults (split novel_fault), which no row counts; under faults 45 of 90"
        " succeed, of those that count 216 of 240"
    )


def test_held_out_runs_without_a_fault_or_without_others_have_nothing_to_be_set_against() -> None:
    lone = build.cell("a", "nominal", build.outcomes(9, 9), split=Split.NOVEL_FAULT)
    assert "under faults 0 of 0 succeed" in (said(found([*schedule(), lone]), "held-out-runs") or "")
    alone = build.cell("a", "stochastic", build.outcomes(9, 3), split=Split.NOVEL_FAULT)
    told = said(found([alone]), "held-out-runs") or ""
    assert told.endswith("under faults 3 of 9 succeed, of those that count 0 of 0")


def test_own_conditions_are_warned_of_above_a_tenth() -> None:
    cells = (("stochastic", 88), ("x_own", 12))
    judged = found([build.cell("a", name, build.outcomes(runs, runs)) for name, runs in cells])
    [item] = [item for item in judged.findings if item.code == "own-conditions-dominate"]
    assert item.severity == "warning"


def test_few_attacks_are_few_fault_runs() -> None:
    attacks = build.outcomes(29, 29, landed=29, landed_success=29)
    judged = found([build.cell("a", ATTACK, attacks), build.cell("a", "stochastic", build.outcomes(90, 90))])
    assert said(judged, "few-fault-runs") == "adversarial resistance rests on 29 runs, fewer than 30"


def test_a_judge_of_a_models_name_is_not_independent() -> None:
    agent = LOOSE | {"components": [{"role": "model", "name": "courier-1"}]}
    judged = found(agent=agent, judge={"name": "other", "family": "Courier_1", "independent": True})
    assert said(judged, "judge-not-independent") is not None
