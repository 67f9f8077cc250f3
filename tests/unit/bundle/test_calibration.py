"""Calibration files: what is read, in whatever order it stands, and everything that refuses them."""

from __future__ import annotations

import hashlib
import json  # noqa: TID251 - what is written here must not depend on the door that reads it
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from certkit.bundle import labels as calibration
from certkit.bundle.folder import Bundle, open_bundle
from certkit.bundle.labels import (
    Calibration,
    check_line,
    label_order,
    read_calibration,
)
from certkit.ground import canonical
from certkit.ground.errors import InputError
from certkit.record.faults import CalibrationFaultsError, Fault
from certkit.summary.pooling import accumulate
from certkit.summary.ratings import to_label
from certkit.summary.summarise import summarise
from tests.support import bundles
from tests.support.schemas import calibration_schema

if TYPE_CHECKING:
    from pathlib import Path

JUDGED = {**bundles.MANIFEST, "protocol": {"origin": "measured", "judge": {"name": "j", "independent": True}}}


def rating(item: str = "i", rater: str = "ann", score: Any = 1, **fields: Any) -> dict[str, Any]:
    return {"item": item, "rater": rater, "score": score, **fields}


def lines(*ratings: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in ratings)


def bundle(root: Path, **files: bytes) -> Bundle:
    bundles.write(root, {}, JUDGED)
    (root / "calibration").mkdir()
    for name, data in files.items():
        (root / "calibration" / f"{name}.jsonl").write_bytes(data)
    return open_bundle(root)


def read(root: Path, *ratings: dict[str, Any]) -> Calibration:
    found = read_calibration(bundle(root, a=lines(*ratings)))
    assert found is not None
    return found


def refused(root: Path, **files: bytes) -> CalibrationFaultsError:
    with pytest.raises(CalibrationFaultsError) as caught:
        read_calibration(bundle(root, **files))
    return caught.value


def plain(found: Calibration | None) -> Any:
    assert found is not None
    arrays = [column.tolist() for column in (found.reference, found.item, found.rater, found.score)]
    return found.items, found.domains, found.raters, arrays


def test_a_table_of_ratings_is_read(tmp_path: Path) -> None:
    found = read(
        tmp_path / "b",
        rating("two", "j", 0.75, reference=True, domain="bank"),
        rating("one", "j", score=True, x_note="kept, not read"),
        rating("two", "ann", 1, reference=1.0),
    )
    assert found.items == ("one", "two")
    assert found.domains == (None, "bank")
    assert found.reference.tolist() == [-1, 1_000_000]
    assert [(rater.name, rater.kind) for rater in found.raters] == [("ann", "human"), ("j", "judge")]
    rows = zip(found.item.tolist(), found.rater.tolist(), found.score.tolist(), strict=True)
    assert list(rows) == [(0, 1, 1_000_000), (1, 0, 1_000_000), (1, 1, 750_000)]


def test_neither_the_order_of_lines_nor_the_files_they_stand_in_matter(tmp_path: Path) -> None:
    ratings = [
        rating("a", "j", 0.1, reference=0.2),
        rating("a", "ann", 0.3, kind="judge"),
        rating("b", "j", 0.4),
    ]
    found = {
        repr(plain(read_calibration(bundle(tmp_path / str(number), x=lines(one), y=lines(*rest)))))
        for number, (one, *rest) in enumerate(permutations(ratings))
    }
    assert len(found) == 1


@pytest.mark.parametrize("name", ["Claude Judge", "claude\u00a0judge", "J"])
def test_a_judge_is_no_person_in_any_case_of_its_name(tmp_path: Path, name: str) -> None:
    first = rating(rater="claude judge", kind="judge")  # beside j, which the manifest names
    found = read(tmp_path / "silent", first, rating("k", rater=name))
    assert {rater.kind for rater in found.raters} == {"judge"}
    faults = refused(tmp_path / "person", a=lines(first, rating("k", rater=name, kind="human"))).faults
    assert [(fault.line, fault.pointer, fault.code) for fault in faults] == [
        (2, "/kind", "calibration.differs")
    ]


def test_a_person_whose_name_is_like_the_judge_s_is_a_person(tmp_path: Path) -> None:
    found = read(tmp_path, rating(rater="j"), rating(rater="J. Ng", kind="human"), rating(rater="jo"))
    assert [rater.kind for rater in found.raters] == ["human", "judge", "human"]


def test_a_bundle_without_ratings_has_no_calibration(tmp_path: Path) -> None:
    bundles.write(tmp_path / "none", {})
    assert read_calibration(open_bundle(tmp_path / "none")) is None
    assert read_calibration(bundle(tmp_path / "empty", a=b"")) is None


def test_what_lies_between_two_millionths_counts_as_the_lower_one() -> None:
    assert [
        calibration.millionths(score) for score in (0.7, 0.69999999, 0.7000001, 0.3, 1.0, True, False)
    ] == [
        700_000,
        699_999,
        700_000,
        300_000,
        1_000_000,
        1_000_000,
        0,
    ]
    assert all(calibration.millionths(count / 1e6) == count for count in range(0, 10**6 + 1, 37))


HOSTILE: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "", "calibration.line"),
    "spaces": (b"  \t", "", "calibration.line"),
    "not JSON": (b"{item: 1}", "", "calibration.line"),
    "two objects": (lines(rating()).strip() * 2, "", "calibration.line"),
    "a list": (b"[1]", "", "calibration.line"),
    "a key twice": (b'{"item":"i","rater":"r","score":1,"score":0}', "", "calibration.line"),
    "NaN": (b'{"item":"i","rater":"r","score":NaN}', "", "calibration.line"),
    "infinity": (b'{"item":"i","rater":"r","score":1e999}', "", "calibration.line"),
    "not UTF-8": (b'{"item":"\xff","rater":"r","score":1}', "", "calibration.line"),
    "lone surrogate": (rb'{"item":"\ud800","rater":"r","score":1}', "", "calibration.line"),
    "deep": (b'{"x_":' + b"[" * 100 + b"]" * 100 + b"}", "", "calibration.line"),
    "too long": (lines(rating("i" * calibration.MAX_LINE)).strip(), "", "calibration.line"),
    "no item": (b'{"rater":"r","score":1}', "/item", "calibration.field"),
    "no rater": (b'{"item":"i","score":1}', "/rater", "calibration.field"),
    "no score": (b'{"item":"i","rater":"r"}', "/score", "calibration.field"),
    "null score": (b'{"item":"i","rater":"r","score":null}', "/score", "calibration.field"),
    "score in words": (b'{"item":"i","rater":"r","score":"1"}', "/score", "calibration.field"),
    "score above 1": (b'{"item":"i","rater":"r","score":1.0000001}', "/score", "calibration.field"),
    "score below 0": (b'{"item":"i","rater":"r","score":-0.1}', "/score", "calibration.field"),
    "empty item": (b'{"item":"","rater":"r","score":1}', "/item", "calibration.field"),
    "long item": (lines(rating("i" * 513)).strip(), "/item", "calibration.field"),
    "item a number": (b'{"item":7,"rater":"r","score":1}', "/item", "calibration.field"),
    "unknown kind": (lines(rating(kind="Judge")).strip(), "/kind", "calibration.field"),
    "reference of 5": (lines(rating(reference=5)).strip(), "/reference", "calibration.field"),
    "unknown field": (lines(rating(weight=1)).strip(), "/weight", "calibration.field"),
    "unknown field, odd name": (lines(rating() | {"a/b~": 1}).strip(), "/a~1b~0", "calibration.field"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_is_refused_with_its_place(name: str) -> None:
    line, pointer, code = HOSTILE[name]
    faults = check_line(line, 7)
    assert isinstance(faults, list)
    assert [(fault.line, fault.pointer, fault.code) for fault in faults] == [(7, pointer, code)]
    assert len(str(faults[0])) < 250


def test_all_faults_of_a_line_are_named() -> None:
    faults = check_line(b'{"item":1,"score":"2","colour":"red"}')
    assert isinstance(faults, list)
    assert {fault.pointer for fault in faults} == {"/item", "/rater", "/score", "/colour"}


def test_a_refusal_names_file_and_line_and_what_was_expected(tmp_path: Path) -> None:
    error = refused(tmp_path / "b", a=lines(rating(score="0.8")), b=lines(rating("k"), rating("l", score=3)))
    assert error.code == "calibration.invalid"
    assert error.exit_code == 3
    assert error.total == 2
    assert [(fault.file, fault.line) for fault in error.faults] == [
        ("calibration/a.jsonl", 1),
        ("calibration/b.jsonl", 2),
    ]
    expected = 'calibration/a.jsonl:1 /score: expected a number, or true or false, found "0.8"'
    assert expected in str(error)
    assert "2 problems in the ratings" in str(error)


@pytest.mark.parametrize(
    ("first", "second", "pointer", "code"),
    [
        (rating(), rating(score=1), "/rater", "calibration.repeated"),
        (rating(), rating(score=0), "/rater", "calibration.repeated"),
        (rating(reference=1), rating(rater="bob", reference=0.9), "/reference", "calibration.differs"),
        (rating(domain="a"), rating(rater="bob", domain="b"), "/domain", "calibration.differs"),
        (rating(kind="judge"), rating("k", kind="human"), "/kind", "calibration.differs"),
    ],
)
def test_lines_that_contradict_each_other_are_refused_in_one_file_and_in_two(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], pointer: str, code: str
) -> None:
    one = refused(tmp_path / "one", a=lines(first, second)).faults
    two = refused(tmp_path / "two", a=lines(first), b=lines(second)).faults

    def place(faults: list[Fault]) -> list[tuple[str, int, str, str]]:
        return [(fault.file, fault.line, fault.pointer, fault.code) for fault in faults]

    assert place(one) == [("calibration/a.jsonl", 2, pointer, code)]
    assert place(two) == [("calibration/b.jsonl", 1, pointer, code)]
    assert "calibration/a.jsonl:1" in str(one[0])


def test_many_faults_are_counted_and_a_few_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = refused(tmp_path / "b", a=b"{}\n" * 200)
    assert error.total == 600
    assert len(error.faults) == 50
    monkeypatch.setattr("certkit.record.faults.MOST", 100)
    error = refused(tmp_path / "c", a=b"{}\n" * 200)
    assert error.total == 102
    assert str(error).startswith("more than 100 problems in the ratings; the rest was not read")


@pytest.mark.parametrize("name", ["calibration/notes.txt", "calibration/deep/a.jsonl"])
def test_a_file_that_would_not_be_read_is_refused(tmp_path: Path, name: str) -> None:
    bundles.write(tmp_path / "b", {})
    (tmp_path / "b" / name).parent.mkdir(parents=True)
    (tmp_path / "b" / name).write_bytes(lines(rating()))
    with pytest.raises(InputError) as caught:
        read_calibration(open_bundle(tmp_path / "b"))
    assert caught.value.code == "calibration.file-name"


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [("MAX_BYTES", 100, "limit 100"), ("MAX_LINES", 2, "more than 2 lines"), ("MAX_RATERS", 2, "2 raters")],
)
def test_the_limits_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, message: str
) -> None:
    within = bundle(tmp_path / "in", a=lines(rating(rater="r1"), rating(rater="r2")))
    monkeypatch.setattr(calibration, limit, value)
    assert read_calibration(within) is not None
    beyond = bundle(tmp_path / "out", a=lines(rating(rater="r1"), rating(rater="r2")), b=lines(rating()))
    with pytest.raises(InputError, match=message) as caught:
        read_calibration(beyond)
    assert caught.value.code == "calibration.too-large"


VALUES: list[Any] = [
    None, True, False, 0, 1, 2, -1, 0.5, 1.5, "", "a", "judge", "human", "x" * 512, "x" * 513, [], {},
]  # fmt: skip


@pytest.mark.parametrize("field", ["item", "rater", "score", "reference", "kind", "domain", "x_own", "y"])
def test_schema_and_reader_accept_and_refuse_the_same(field: str) -> None:
    Draft202012Validator.check_schema(calibration_schema())
    validator = Draft202012Validator(calibration_schema())
    for value in VALUES:
        line = {**rating(), field: value}
        assert validator.is_valid(line) == (not isinstance(check_line(canonical.line(line)), list)), line
    missing = {name: value for name, value in rating().items() if name != field}
    assert validator.is_valid(missing) == (not isinstance(check_line(canonical.line(missing)), list))


def drawn_from(records: list[dict[str, Any]]) -> list[str]:
    return label_order(json.dumps(record).encode() for record in records)


def test_the_runs_to_label_are_drawn_by_a_hash_that_every_run_enters() -> None:
    runs = [bundles.run(number) for number in range(40)]
    texts = [json.dumps(run, sort_keys=True, separators=(",", ":")).encode() for run in runs]
    seed = hashlib.sha256(b"".join(sorted(hashlib.sha256(text).digest() for text in texts))).digest()
    names = [run["run_id"] for run in runs]
    order = sorted(names, key=lambda name: hashlib.sha256(seed + name.encode()).hexdigest())
    assert drawn_from(runs) == order
    assert drawn_from([dict(reversed(run.items())) | {"human_checked": True} for run in runs[::-1]]) == order
    assert drawn_from([*runs, bundles.run(40)])[:40] != order


def test_ids_that_are_moved_to_other_runs_are_drawn_anew() -> None:
    runs = [bundles.run(number) | {"confidence": number / 40} for number in range(40)]
    moved = [run | {"run_id": other["run_id"]} for run, other in zip(runs, runs[::-1], strict=True)]
    assert drawn_from(moved) != drawn_from(runs)
    assert sorted(drawn_from(moved)) == sorted(drawn_from(runs))


def test_a_reference_counts_between_the_scores_that_people_gave(tmp_path: Path) -> None:
    """The judge's own score is no truth, and a number that nobody gave is none either."""
    shown = read(
        tmp_path,
        rating("alone", "j", 1, kind="judge", reference=1),
        rating("other", "j", 1, kind="judge", reference=1),
        rating("other", "ann", 0),
        rating("people", "j", 0, kind="judge", reference=0.75),
        rating("people", "ann", 0.5),
        rating("people", "bob", 1),
    )
    assert shown.labelled == ("people",)


@pytest.mark.parametrize("labels", ["drawn", "chosen"])
def test_a_bundle_tells_whether_the_drawn_runs_were_labelled(labels: str, tmp_path: Path) -> None:
    root = bundles.of(tmp_path / "bundle", [bundles.run(number) for number in range(30)])
    drawn = to_label(5, open_bundle(root))
    every = [bundles.run(number)["run_id"] for number in range(30)]
    labelled = [name for name in every if name not in drawn][:5] if labels == "chosen" else drawn
    (root / "calibration").mkdir()
    given = [(name, *rater) for name in labelled for rater in (("j", "judge"), ("ann", "human"))]
    ratings = lines(*(rating(name, rater, 1, kind=kind, reference=1) for name, rater, kind in given))
    (root / "calibration" / "a.jsonl").write_bytes(ratings)
    found = summarise(open_bundle(root)).labels
    assert (found.state, found.referenced) == ("labelled", 5)
    assert found.drawn is (labels == "drawn")


@pytest.mark.parametrize("together", [True, False])
def test_bundles_that_are_judged_together_are_one_draw(together: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    """Labels of the first of two bundles do not vouch for the second."""
    numbers = range(20), range(20, 40)
    roots = [
        bundles.of(tmp_path / f"{place}", [bundles.run(number) for number in part])
        for place, part in enumerate(numbers)
    ]
    drawn = to_label(10, *map(open_bundle, roots if together else roots[:1]))
    (roots[0] / "calibration").mkdir()
    given = [(name, *rater) for name in drawn for rater in (("j", "judge"), ("ann", "human"))]
    ratings = lines(*(rating(name, rater, 1, kind=kind, reference=1) for name, rater, kind in given))
    (roots[0] / "calibration" / "a.jsonl").write_bytes(ratings)
    alone = summarise(open_bundle(roots[0])).labels
    both = accumulate([open_bundle(root) for root in roots]).summary.labels
    assert (alone.drawn, both.drawn) == (not together, together)


def test_a_scale_has_the_bounds_that_lines_declare(tmp_path: Path) -> None:
    five = {"low": 1, "high": 5}
    found = read(tmp_path, rating("i", "ann", 3.8, reference=3.8, **five), rating("k", "j", True, **five))
    assert (found.scale, found.score.tolist(), found.reference.tolist()) == (
        (1.0, 5.0),
        [700_000, 1_000_000],
        [700_000, calibration.ABSENT],
    )


def test_every_variable_has_ratings_and_bounds_of_its_own(tmp_path: Path) -> None:
    traced = {"variable": "traceability", "low": 1, "high": 5}
    found = read(
        tmp_path, rating("i", "j", 1), rating("i", "j", 2, **traced), rating("k", "ann", 5, **traced)
    )
    assert (found.items, list(found.others)) == (("i",), ["traceability"])
    other = found.others["traceability"]
    assert (other.items, other.scale, other.score.tolist()) == (("i", "k"), (1.0, 5.0), [250_000, 1_000_000])
    alone = read(tmp_path / "alone", rating("i", "j", 2, **traced))
    assert (alone.items, alone.others["traceability"].items) == ((), ("i",))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (rating(score=6, low=1, high=5), "/score"),
        (rating(score=3, low=1, high=5, reference=0), "/reference"),
        (rating(score=1, low=1, high=1), "/low"),
        (rating(score=-0.5), "/score"),
    ],
)
def test_a_score_off_its_scale_is_refused(line: dict[str, Any], place: str) -> None:
    found = check_line(json.dumps(line).encode())
    assert isinstance(found, list)
    assert [(fault.pointer, fault.code) for fault in found] == [(place, "calibration.field")]


def test_one_variable_has_one_scale(tmp_path: Path) -> None:
    error = refused(tmp_path, a=lines(rating("i", score=4, low=1, high=5), rating("k", score=1)))
    assert "calibration.differs" in {fault.code for fault in error.faults}
