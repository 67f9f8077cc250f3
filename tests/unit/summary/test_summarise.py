"""The summary of drawn bundles is the one that a second implementation makes, run by run in plain Python."""

from __future__ import annotations

import base64
import hashlib
import hmac
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from certkit.bundle.folder import open_bundle
from certkit.ground import canonical
from certkit.record.columns import Columns
from certkit.record.faults import Faults
from certkit.record.reader import RecordReader
from certkit.summary.finish import finish
from certkit.summary.ratings import to_label
from certkit.summary.reduce import merge, reduce
from certkit.summary.summarise import summarise
from certkit.summary.summary import Summary, read_summary
from tests.support import bundles, strategies
from tests.support.naive_summary import Naive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certkit.summary.reduce import Partial

SALT = bytes(range(32))
drawn = settings(
    max_examples=40,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def manifest(**protocol: Any) -> dict[str, Any]:
    return {**bundles.MANIFEST, "protocol": {"origin": "measured", **protocol}}


def summarised(
    records: Sequence[bundles.Run],
    protocol: dict[str, Any],
    ratings: Sequence[bundles.Run] = (),
    **options: Any,
) -> tuple[Summary, tuple[str, ...]]:
    """Return the summary of records, and all run ids in the order in which they would be labelled."""
    with tempfile.TemporaryDirectory() as folder:
        root = bundles.write(Path(folder) / "b", {"a.jsonl": bundles.lines(records)}, manifest(**protocol))
        if ratings:
            (root / "calibration").mkdir()
            (root / "calibration" / "a.jsonl").write_bytes(bundles.lines(ratings))
        bundle = open_bundle(root)
        return summarise(bundle, **options), to_label(len(records), bundle)


def families(records: Sequence[bundles.Run]) -> st.SearchStrategy[list[bundles.Run]]:
    """Spread alike runs over some tasks and families, so that tasks differ and families share tasks."""
    return st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from([None, None, None, "f1", "f2"])),
        min_size=len(records),
        max_size=len(records),
    ).map(
        lambda places: [
            run | {"task_id": f"{run['domain']}/{task}"} | ({"cluster_id": family} if family else {})
            for run, (task, family) in zip(records, places, strict=True)
        ]
    )


records = strategies.records(max_count=12).flatmap(
    lambda listed: st.one_of(st.just(listed), families(listed))
)


@drawn
@given(
    records=records,
    core=st.sampled_from([(), ("x_own",)]),
    observable=st.sampled_from([None, False, True]),
    salt=st.sampled_from([None, SALT]),
    most=st.sampled_from([None, 1000, 3, 1]),
)
def test_every_field_is_that_of_the_naive_summary(
    records: list[bundles.Run],
    core: tuple[str, ...],
    observable: bool | None,  # noqa: FBT001 - drawn
    salt: bytes | None,
    most: int | None,
) -> None:
    protocol: dict[str, Any] = {} if observable is None else {"memory_observable": observable}
    if salt is not None:
        protocol["task_salt"] = salt.hex()
    summary, _ = summarised(records, protocol, core_conditions=core, most_tasks=most)
    document = summary.to_dict()
    assert read_summary(document) == summary
    labels, traces = document.pop("labels"), document.pop("traces")
    assert labels["state"] == "none"
    assert traces["named"] == sum(run.get("trace") is not None for run in records)
    assert traces["bare"] == sum(run.get("measured") == "derived" for run in records)
    expected = Naive(records, core=core, observable=observable is True).summary(salt, most)
    assert document == expected


def partial(records: Sequence[bundles.Run], salt: bytes | None = SALT) -> Partial:
    columns = RecordReader().read(bundles.lines(records)) if records else Columns.of_records(())
    assert not isinstance(columns, Faults)
    return reduce(columns, salt)


@drawn
@given(records=records, seed=st.integers(0, 2**32), order=st.permutations(range(5)))
def test_parts_add_up_in_any_partition_and_order(
    records: list[bundles.Run], seed: int, order: list[int]
) -> None:
    places = np.random.Generator(np.random.PCG64(seed)).integers(0, 5, len(records)).tolist()
    parts = [
        partial([run for run, place in zip(records, places, strict=True) if place == number])
        for number in range(5)
    ]
    first, second, *others = (parts[place] for place in order)
    options: dict[str, Any] = {"salt": SALT, "most_tasks": 3, "core_conditions": ("x_own",)}
    expected = finish(partial(records), **options)
    assert finish(merge(merge(first, second), merge(*others)), **options) == expected
    assert finish(merge(*others, merge(second, first)), **options) == expected


@st.composite
def ratings(draw: st.DrawFn, ids: Sequence[str]) -> list[bundles.Run]:
    """Draw ratings of runs and of one item that is none, by people and up to two judges."""
    items = st.sampled_from([*ids, "no-run"])
    pairs = draw(
        st.lists(
            st.tuples(items, st.sampled_from(["p", "q", "j", "k"])), unique=True, max_size=2 * len(ids) + 2
        )
    )
    references = {item: draw(st.sampled_from([None, 0.0, 0.5, 0.7, 1.0])) for item in [*ids, "no-run"]}
    return [
        {
            "item": item,
            "rater": rater,
            "score": draw(st.sampled_from([0.0, 0.699, 0.7, 1.0])),
            "reference": references[item],
            "kind": "judge" if rater in "jk" else "human",
        }
        for item, rater in pairs
    ]


@drawn
@given(records=records, data=st.data(), judge=st.sampled_from([None, None, "j", "k"]))
def test_labels_are_those_of_the_naive_summary(
    records: list[bundles.Run], data: st.DataObject, judge: str | None
) -> None:
    ids = [run["run_id"] for run in records][:40]
    rated = data.draw(ratings(ids))
    named = {} if judge is None else {"judge": {"name": judge, "independent": True}}
    summary, order = summarised(records, named, rated)
    document = summary.to_dict()["labels"]
    drawn = document.pop("drawn")
    assert document == Naive(records).labels(rated, judge)
    labelled = {
        rating["item"]
        for rating in rated
        if rating["reference"] is not None
        and any(other["item"] == rating["item"] and other["kind"] == "human" for other in rated)
    }
    if len(labelled) == summary.labels.referenced and rated:
        assert drawn == (labelled == set(order[: len(labelled)]))


def test_sums_beyond_a_double_are_text_in_json_and_read_back(tmp_path: Path) -> None:
    runs = [
        bundles.run(i, steps_actual=1, steps_oracle=1, violations=10**6, traceability=5.0)
        for i in range(2**9)
    ]
    summary = summarise(open_bundle(bundles.of(tmp_path, runs)))
    squares = summary.to_dict()["core"]["means"]["violations_normal"]["rows"][0][3]
    assert squares == str((2**9 * 10**6) ** 2)
    assert read_summary(canonical.loads(canonical.canonical(summary.to_dict()))) == summary


@pytest.mark.parametrize(
    ("runs", "reason", "counts"),
    [
        ([], "no-runs", {}),
        ([{}, {"sequence": 1}], "unordered", {"missing": 1, "runs": 2}),
        (
            [{"started_at": "2026-01-01T00:00:00Z"}, {"sequence": 1}],
            "mixed",
            {"sequence": 1, "runs": 2},
        ),
        (
            [{"started_at": "2026-01-01T00:00:00Z"}, {"started_at": "2026-01-01T01:00:00+01:00"}],
            "shared-times",
            {"shared": 1, "runs": 2},
        ),
    ],
)
def test_the_reason_why_there_is_no_order_is_a_code_with_its_numbers(
    tmp_path: Path, runs: list[bundles.Run], reason: str, counts: dict[str, int]
) -> None:
    records = [bundles.run(i, **fields) for i, fields in enumerate(runs)]
    order = summarise(open_bundle(bundles.of(tmp_path, records))).order
    assert (order.by, order.reason, order.counts) == (None, reason, counts)


def test_tags_are_those_of_the_salt_that_is_asked_for(tmp_path: Path) -> None:
    records = [bundles.run(1)]
    root = bundles.write(tmp_path / "b", {"a.jsonl": bundles.lines(records)}, manifest(task_salt="00" * 32))
    summary = summarise(open_bundle(root), salt=SALT)
    assert summary.tasks.salt == hashlib.sha256(SALT).hexdigest()[:16]
    expected = base64.urlsafe_b64encode(hmac.digest(SALT, b"d/1", "sha256")[:9]).decode()
    assert [row.tag for row in summary.tasks.rows] == [expected]
