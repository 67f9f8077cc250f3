"""Several bundles pooled: as one bundle that holds all runs, and never what may not be pooled."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from certkit import imports
from certkit.bundle.facts import PeriodFacts, ProtocolFacts
from certkit.bundle.folder import Bundle, open_bundle
from certkit.bundle.writer import seal
from certkit.ground.errors import InputError, UsageError
from certkit.ground.progress import SILENT
from certkit.record.faults import RecordFaultsError
from certkit.summary.pooling import accumulate
from certkit.summary.summarise import summarise
from tests.support import bundles

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.summary.pooling import Pooled

CONDITIONS = ("nominal", "adversarial", "tool_failure", "cascade")


def campaign(name: str, month: int, count: int = 30, **fields: Any) -> list[bundles.Run]:
    """Return runs of one month, whose sequence begins at 0 and whose tasks are those of every month."""
    return [
        bundles.run(
            f"{name}-{i}",
            domain="de"[i % 2],
            task_id=f"{'de'[i % 2]}/{i % 6}",
            cluster_id=f"family-{i % 3}",
            condition=CONDITIONS[i % 4],
            outcome="failure" if (i + month) % 5 == 0 else "success",
            sequence=i,
            started_at=f"2026-{month:02d}-02T10:{i:02d}:00Z",
            steps_actual=3 + i % 4,
            steps_oracle=3,
            violations=i % 2,
        )
        | fields
        for i in range(count)
    ]


def protocol(**fields: Any) -> dict[str, Any]:
    return {**bundles.MANIFEST, "protocol": {"origin": "measured", **fields}}


def made(root: Path, runs: list[bundles.Run], **fields: Any) -> Bundle:
    bundles.write(root, {"a.jsonl": bundles.lines(runs)}, protocol(**fields))
    return seal(root)


def three(tmp_path: Path) -> list[Bundle]:
    return [made(tmp_path / str(month), campaign(f"m{month}", month)) for month in (1, 2, 3)]


def pooled(found: list[Bundle]) -> Pooled:
    return accumulate(found)


def test_pooled_bundles_are_one_bundle_with_all_runs_and_one_sequence(tmp_path: Path) -> None:
    found = pooled(three(tmp_path))
    whole = [
        run | {"sequence": 30 * (month - 1) + run["sequence"]}
        for month in (1, 2, 3)
        for run in campaign(f"m{month}", month)
    ]
    assert found.summary == summarise(open_bundle(bundles.of(tmp_path / "whole", whole)))
    assert [part.summary.records for part in found.parts] == [30, 30, 30]


def test_the_order_in_which_they_are_given_does_not_matter(tmp_path: Path) -> None:
    first, second, third = three(tmp_path)
    one, other = pooled([first, second, third]), pooled([third, first, second])
    assert one.summary == other.summary
    assert one.facts == other.facts
    assert [part.facts.digest for part in one.parts] == [x.facts.digest for x in (first, second, third)]


def test_the_digest_is_that_of_the_canonical_list(tmp_path: Path) -> None:
    found = three(tmp_path)
    listed = ",".join(f'"{one.facts.digest}"' for one in found)
    text = f'{{"bundles":[{listed}],"schema":"urn:certkit:accumulation:v1"}}'
    assert pooled(found).facts.digest == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_each_part_is_the_bundle_alone(tmp_path: Path) -> None:
    found = three(tmp_path)
    for part, bundle in zip(pooled(found).parts, found, strict=True):
        assert part.summary == summarise(bundle)


def test_without_start_times_the_declared_periods_order_the_bundles(tmp_path: Path) -> None:
    plain = [{k: v for k, v in run.items() if k != "started_at"} for run in campaign("a", 1)]
    late = made(tmp_path / "late", plain, period={"from": "2026-02-01", "to": "2026-02-28"})
    other = [run | {"run_id": "b" + run["run_id"]} for run in plain]
    early = made(tmp_path / "early", other[:20], period={"from": "2026-01-01", "to": "2026-01-31"})
    found = pooled([late, early])
    assert [part.facts.digest for part in found.parts] == [early.facts.digest, late.facts.digest]
    assert (found.summary.order.by, found.summary.order.runs) == ("sequence", 50)
    # the latest run is the last of February
    assert found.summary.order.latest[-1].success is (plain[-1]["outcome"] == "success")
    assert found.facts.period == PeriodFacts(start="2026-01-01", end="2026-02-28")


def test_a_bundle_without_a_time_leaves_the_runs_without_an_order(tmp_path: Path) -> None:
    plain = [{k: v for k, v in run.items() if k != "started_at"} for run in campaign("a", 1)]
    found = pooled([made(tmp_path / "a", plain), made(tmp_path / "b", campaign("b", 2))])
    assert found.summary.order.by is None
    assert found.summary.order.reason == "bundle-times-unknown"
    assert found.summary.order.counts == {"unknown": 1, "bundles": 2}


def test_tags_are_those_of_a_salt_that_all_share(tmp_path: Path) -> None:
    salts = {"a": "01" * 32, "b": "01" * 32, "c": "02" * 32}
    found = {
        name: made(tmp_path / name, campaign(name, month), task_salt=salt)
        for month, (name, salt) in enumerate(salts.items(), 1)
    }
    alone = summarise(found["a"])
    together = pooled([found["a"], found["b"]]).summary
    assert together.tasks.salt == alone.tasks.salt
    assert [row.tag for row in together.tasks.rows] == [row.tag for row in alone.tasks.rows]
    assert pooled([found["a"], found["c"]]).summary.tasks.salt is None


def test_bundles_that_overlap_are_ordered_by_start_times_alone(tmp_path: Path) -> None:
    odd = [run for run in campaign("a", 1, 40) if run["sequence"] % 2]
    even = [run for run in campaign("b", 1, 40) if not run["sequence"] % 2]
    found = pooled([made(tmp_path / "a", odd), made(tmp_path / "b", even)])
    assert found.summary.order.by == "started_at"
    merged = sorted([*odd, *even], key=lambda run: str(run["started_at"]))
    assert [run.success for run in found.summary.order.latest] == [
        run["outcome"] == "success" for run in merged
    ]


def test_bundles_that_overlap_by_their_declared_periods_have_no_order(tmp_path: Path) -> None:
    plain = [{k: v for k, v in run.items() if k != "started_at"} for run in campaign("a", 1)]
    other = [run | {"run_id": "b" + run["run_id"]} for run in plain[:20]]
    period = {"from": "2026-01-01", "to": "2026-01-31"}
    found = pooled([made(tmp_path / "a", plain, period=period), made(tmp_path / "b", other, period=period)])
    assert found.summary.order.reason == "bundles-overlap"


def test_the_reason_of_a_bundle_is_that_of_all_with_its_place(tmp_path: Path) -> None:
    runs = campaign("b", 2)
    for run in runs[:2]:
        run |= {"started_at": "2026-02-01T00:00:00Z"}
        del run["sequence"]
    found = pooled([made(tmp_path / "b", runs), made(tmp_path / "a", campaign("a", 1))])
    assert found.summary.order.reason == "bundle-shared-times"
    assert found.summary.order.counts == {"shared": 1, "runs": 30, "bundle": 2}


def test_starts_that_go_backwards_within_a_bundle_are_counted(tmp_path: Path) -> None:
    runs = campaign("a", 1)
    runs[3]["started_at"], runs[4]["started_at"] = runs[4]["started_at"], runs[3]["started_at"]
    found = pooled([made(tmp_path / "a", runs), made(tmp_path / "b", campaign("b", 2))])
    assert found.summary.times.backwards == 1


@pytest.mark.parametrize("count", [0, 1, 101])
def test_two_to_a_hundred_bundles_are_pooled(tmp_path: Path, count: int) -> None:
    with pytest.raises(UsageError):
        accumulate([made(tmp_path / "a", campaign("a", 1))] * count)


def refused(found: list[Bundle], code: str) -> InputError:
    with pytest.raises(InputError) as caught:
        pooled(found)
    assert caught.value.code == code
    return caught.value


def test_the_same_bundle_twice_is_refused(tmp_path: Path) -> None:
    one = made(tmp_path / "a", campaign("a", 1))
    copy = made(tmp_path / "b", campaign("a", 1))
    assert str(tmp_path / "a") in str(refused([one, copy], "accumulation.repeated"))


def test_the_same_record_file_in_two_bundles_is_refused_and_both_are_named(tmp_path: Path) -> None:
    one = made(tmp_path / "a", campaign("a", 1))
    other = made(tmp_path / "b", campaign("a", 1), declared_runs=30)
    message = str(refused([one, other], "accumulation.repeated"))
    assert all(f"{tmp_path}/{name}/records/a.jsonl" in message for name in "ab")


def test_two_empty_record_files_are_not_the_same_evidence(tmp_path: Path) -> None:
    found = pooled([made(tmp_path / "a", []), made(tmp_path / "b", [], declared_runs=0)])
    assert found.summary.records == 0


def test_a_run_id_used_in_two_bundles_is_refused_and_both_files_are_named(tmp_path: Path) -> None:
    one = made(tmp_path / "a", campaign("a", 1))
    other = made(tmp_path / "b", [*campaign("b", 2), bundles.run("a-7", task_id="d/0", sequence=99)])
    error = refused([one, other], "bundle.records-invalid")
    assert isinstance(error, RecordFaultsError)
    (fault,) = error.faults
    places = {f"{fault.file}:{fault.line}", fault.found.rpartition("as at ")[2]}
    assert places == {f"{tmp_path}/a/records/a.jsonl:8", f"{tmp_path}/b/records/a.jsonl:31"}
    assert (fault.code, error.total) == ("record.duplicate-run-id", 1)


def test_two_logs_of_one_file_name_can_be_pooled_once_one_is_renamed(tmp_path: Path) -> None:
    made_of: dict[str, Path] = {}
    for name in ("first/runs.csv", "second/runs.csv", "second/other.csv"):
        log = tmp_path / name
        log.parent.mkdir(exist_ok=True)
        rows = [f"t{number},d,nominal,success,{name}" for number in range(3)]
        log.write_text("\n".join(["task_id,domain,condition,outcome,x_log", *rows]))
        made_of[name] = tmp_path / f"bundle-{len(made_of)}"
        imports.run(log, made_of[name], imports.ImportOptions(agent="a"), SILENT)
    first, same, renamed = map(open_bundle, made_of.values())
    assert "rename one and import it again" in str(refused([first, same], "bundle.records-invalid").hint)
    assert pooled([first, renamed]).summary.records == 6


def test_a_task_in_two_domains_is_refused_across_bundles(tmp_path: Path) -> None:
    one = made(tmp_path / "a", [bundles.run("a", domain="d", task_id="t")])
    other = made(tmp_path / "b", [bundles.run("b", domain="e", task_id="t")])
    error = refused([one, other], "bundle.records-invalid")
    assert isinstance(error, RecordFaultsError)
    assert [fault.code for fault in error.faults] == ["record.task-in-two-domains"]


def test_a_sequence_may_begin_anew_in_every_bundle_but_not_repeat_within_one(tmp_path: Path) -> None:
    twice = [*campaign("b", 2), bundles.run("b-x", task_id="d/0", sequence=3)]
    error = refused(
        [made(tmp_path / "a", campaign("a", 1)), made(tmp_path / "b", twice)], "bundle.records-invalid"
    )
    assert str(tmp_path / "b") in str(error)


def test_another_agent_is_refused(tmp_path: Path) -> None:
    one = made(tmp_path / "a", campaign("a", 1))
    manifest = protocol() | {"agent": {"name": "a", "version": "2"}}
    bundles.write(tmp_path / "b", {"a.jsonl": bundles.lines(campaign("b", 2))}, manifest)
    assert "a 2" in str(refused([one, seal(tmp_path / "b")], "accumulation.agent"))


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [
        ("methodology", "trajectory", "independent_judge"),
        ("methodology", "trajectory", None),
        ("success_rule", "utility", "utility and no attack"),
        ("judge", {"name": "j", "independent": True}, {"name": "j", "independent": False}),
        ("judge", {"name": "j", "family": "f", "independent": True}, None),
        ("cascade_definition", "simultaneous", "sequential"),
        ("memory_observable", True, False),
        ("memory_observable", True, None),
    ],
)
def test_another_protocol_class_is_refused_and_the_field_is_named(
    tmp_path: Path, field: str, one: Any, other: Any
) -> None:
    first = made(tmp_path / "a", campaign("a", 1), **{field: one})
    second = made(tmp_path / "b", campaign("b", 2), **({} if other is None else {field: other}))
    assert f"protocol.{field}" in str(refused([first, second], "accumulation.protocol"))
    third = made(tmp_path / "c", campaign("c", 3), **{field: one})
    assert pooled([first, third]).summary.records == 60


def test_what_manifests_state_is_joined_and_what_differs_is_left_out(tmp_path: Path) -> None:
    first = made(
        tmp_path / "a",
        campaign("a", 1),
        declared_runs=40,
        attempt=1,
        temperature=0,
        declared_mix={"nominal": 0.25},
        evaluator={"name": "A", "relation": "independent"},
        period={"from": "2026-01-01", "to": "2026-01-31"},
    )
    second = made(
        tmp_path / "b",
        campaign("b", 2),
        declared_runs=30,
        attempt=3,
        temperature=0.7,
        declared_mix={"nominal": 0.5},
        evaluator={"name": "B", "relation": "affiliated"},
        period={"from": "2026-02-01T00:00:00Z", "to": "2026-02-28"},
    )
    facts = pooled([first, second]).facts
    assert facts.protocol == ProtocolFacts(origin="measured", declared_runs=70, attempt=3)
    assert facts.period == PeriodFacts(start="2026-01-01", end="2026-02-28")


def test_public_tasks_of_any_bundle_are_those_of_all(tmp_path: Path) -> None:
    first = made(tmp_path / "a", campaign("a", 1), public_tasks=["bfcl"])
    second = made(tmp_path / "b", campaign("b", 2))
    third = made(tmp_path / "c", campaign("c", 3), public_tasks=["agentdojo"])
    assert pooled([first, second, third]).facts.protocol.public_tasks == ("agentdojo", "bfcl")


def test_what_one_bundle_leaves_out_is_left_out_of_all(tmp_path: Path) -> None:
    first = made(
        tmp_path / "a",
        campaign("a", 1),
        declared_runs=40,
        temperature=0,
        attempt=2,
        evaluator={"name": "A"},
        period={"from": "2026-01-01", "to": "2026-01-31"},
    )
    second = made(tmp_path / "b", campaign("b", 2))
    facts = pooled([first, second]).facts
    assert (facts.protocol, facts.period) == (ProtocolFacts(origin="measured", attempt=2), None)


def test_simulated_evidence_makes_the_whole_simulated_and_an_open_bundle_the_whole_unsealed(
    tmp_path: Path,
) -> None:
    first = made(tmp_path / "a", campaign("a", 1))
    bundles.write(tmp_path / "b", {"a.jsonl": bundles.lines(campaign("b", 2))}, protocol(origin="simulated"))
    facts = pooled([first, open_bundle(tmp_path / "b")]).facts
    assert (facts.protocol.origin, facts.sealed) == ("simulated", False)


def test_of_attested_values_the_lowest_counts(tmp_path: Path) -> None:
    found = []
    for month, attested in ((1, 0.5), (2, 0.95)):
        runs = campaign(f"m{attested}", month)
        root = tmp_path / str(attested)
        item = {"id": "transparency_index", "value": attested, "evidence": "study.txt"}
        bundles.write(root, {"a.jsonl": bundles.lines(runs)}, protocol() | {"attested": [item]})
        (root / "study.txt").write_text("a study")
        found.append(seal(root))
    together = pooled(found)
    assert [item.value for item in together.facts.attested] == [0.5]


def ratings(root: Path, runs: list[bundles.Run], *lines: dict[str, Any]) -> Bundle:
    bundles.write(root, {"a.jsonl": bundles.lines(runs)}, protocol())
    (root / "calibration").mkdir()
    (root / "calibration" / "a.jsonl").write_bytes(bundles.lines(lines))
    return seal(root)


def test_ratings_are_pooled_and_a_shared_one_counts_once(tmp_path: Path) -> None:
    shared = {"item": "a-1", "rater": "j", "score": 0.5, "reference": 1, "kind": "judge"}
    person = {"item": "a-1", "rater": "p", "score": 1}
    first = ratings(tmp_path / "a", campaign("a", 1), shared, person)
    second = ratings(tmp_path / "b", campaign("b", 2), shared, person | {"item": "b-2", "reference": 1})
    labels = pooled([first, second]).summary.labels
    outcomes = [campaign("a", 1)[1]["outcome"], campaign("b", 2)[2]["outcome"]]
    assert (labels.state, labels.referenced) == ("labelled", 2)
    assert labels.counts == (outcomes.count("success"), 0, outcomes.count("failure"), 0)
    assert labels.contradicted == (outcomes[0] == "success")


@pytest.mark.parametrize(
    ("change", "code"), [({"score": 1}, "calibration.repeated"), ({"reference": 0}, "calibration.differs")]
)
def test_ratings_that_contradict_across_bundles_are_refused(
    tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    shared = {"item": "i", "rater": "j", "score": 0.5, "reference": 1}
    first = ratings(tmp_path / "a", campaign("a", 1), shared)
    second = ratings(tmp_path / "b", campaign("b", 2), shared | change)
    assert code in str(refused([first, second], "calibration.invalid"))
