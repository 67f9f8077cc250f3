"""The summary of drawn bundles is the one that a second implementation makes, run by run in plain Python."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from certkit.bundle.folder import open_bundle
from certkit.next.finish import finish
from certkit.next.reduce import merge, reduce
from certkit.next.summarise import summarise, to_label
from certkit.next.summary import Summary, read_summary
from certkit.record.reader import Reader
from tests.next.naive_summary import Naive
from tests.support import bundles, strategies

if TYPE_CHECKING:
    from collections.abc import Sequence

SALT = bytes(range(32))
drawn = settings(
    max_examples=60,
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
            run
            | {"task_id": f"{run['domain']}/{task}"}
            | ({"cluster_id": family} if family else {})
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
    observable: bool | None,
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
