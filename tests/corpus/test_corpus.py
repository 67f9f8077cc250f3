"""What certkit answers about the corpus is what was frozen, but for differences that are listed."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from msgspec import ValidationError

from certkit.ground import canonical
from tests.corpus.bundles import BUNDLES
from tests.corpus.comparing import (
    Difference,
    Figure,
    compare,
    figures,
    read_differences,
    read_expected,
    written,
)
from tests.corpus.logs import LOGS
from tests.corpus.program import answers

PLACE = "plain/hb-eval-2026/criteria/csi/1/status"


@cache
def _told(name: str) -> tuple[list[str], set[int]]:
    """Return what differs in a bundle and is not wanted, and the wanted differences that occur in it."""
    return compare(figures({name: read_expected()[name]}), figures({name: answers(name)}), read_differences())


@pytest.mark.parametrize("name", BUNDLES)
def test_a_drawn_bundle_gets_the_answers_that_were_frozen(name: str) -> None:
    assert _told(name)[0] == []


@pytest.mark.parametrize("name", LOGS)
def test_an_imported_log_gets_the_answers_that_were_frozen(name: str) -> None:
    if not LOGS[name].source.is_file():
        pytest.skip("the shared evidence is not beside this checkout")
    assert _told(name)[0] == []


def test_every_bundle_has_frozen_answers_and_none_is_left_over() -> None:
    assert list(read_expected()) == [*BUNDLES, *LOGS]


def test_every_listed_difference_occurs() -> None:
    waiting = set(range(len(listed := read_differences())))
    for name in (*BUNDLES, *LOGS):
        if not waiting:
            return
        if name in BUNDLES or LOGS[name].source.is_file():
            waiting -= _told(name)[1]
    if not all(log.source.is_file() for log in LOGS.values()):
        # What only an absent log shows cannot be asked for; it has to name that log.
        waiting -= {
            number for number in waiting if all(place.startswith("log-") for place in listed[number].where)
        }
    assert [listed[number] for number in sorted(waiting)] == []


def only(old: Figure | None, new: Figure | None, listed: dict[str, Any]) -> tuple[list[str], set[int]]:
    """Compare one figure at `PLACE`, None being absent, under one listed difference."""
    before, after = ({} if value is None else {PLACE: value} for value in (old, new))
    return compare(before, after, [Difference(where=["*/criteria/csi/*"], reason="r", **listed)])


@pytest.mark.parametrize(
    ("old", "new", "listed"),
    [
        ("met", "not_met", {"now": ["not_met"]}),
        ("met", "not_met", {"was": ["met"], "now": ["insufficient", "not_met"]}),
        (0.5, None, {"gone": True}),
        (None, 0.5, {"new": True}),
        (0.5, 0.4, {"lower": True}),
        (0.5, 0.6, {"higher": True, "within": 0.11}),
        ("csi frr", "frr", {"without": "csi"}),
        (0.5, "other", {"any": True}),
    ],
)
def test_a_listed_difference_is_no_complaint_and_counts_as_used(
    old: Figure | None, new: Figure | None, listed: dict[str, Any]
) -> None:
    assert only(old, new, listed) == ([], {0})


@pytest.mark.parametrize(
    ("old", "new", "listed"),
    [
        ("met", "insufficient", {"now": ["not_met"]}),
        ("not_met", "insufficient", {"was": ["met"], "now": ["insufficient"]}),
        (0.5, 0.4, {"gone": True}),
        (0.5, 0.4, {"new": True}),
        (0.5, 0.6, {"lower": True}),
        (0.5, 0.4, {"higher": True}),
        (0.5, 0.7, {"higher": True, "within": 0.1}),
        (0.5, None, {"lower": True}),
        ("csi frr", "csi", {"without": "csi"}),
    ],
)
def test_another_difference_than_the_listed_one_is_a_complaint(
    old: Figure | None, new: Figure | None, listed: dict[str, Any]
) -> None:
    complaints, used = only(old, new, listed)
    assert [line.split(":")[0] for line in complaints] == [PLACE]
    assert used == set()


def test_a_difference_that_does_not_occur_is_not_used() -> None:
    assert only("met", "met", {"now": ["not_met"]}) == ([], set())


@pytest.mark.parametrize("key", ["value", "margin"])
def test_values_are_compared_to_nine_digits(key: str) -> None:
    assert compare({key: 0.5}, {key: 0.5 + 5e-10}, []) == ([], set())
    assert compare({key: 0.5}, {key: 0.5 + 5e-9}, [])[0]


def test_bounds_are_compared_to_eight_digits() -> None:
    assert compare({"bounded.bound": 0.5}, {"bounded.bound": 0.5 + 5e-9}, []) == ([], set())
    assert compare({"bounded.bound": 0.5}, {"bounded.bound": 0.5 + 5e-8}, [])[0]


def test_a_count_a_text_and_a_truth_value_are_compared_exactly() -> None:
    assert compare({"n": 1}, {"n": 2}, [])[0]
    assert compare({"n": 1}, {"n": True}, [])[0]


@pytest.mark.parametrize(
    "text",
    [
        '[[difference]]\nwhere = "*"\nreason = "it demands nothing"\n',
        '[[difference]]\nwhere = "*"\nreason = " "\ngone = true\n',
        '[[difference]]\nwhere = "*"\nreason = "two things"\ngone = true\nany = true\n',
        '[[difference]]\nwhere = "*"\nreason = "a word that is none"\nvanished = true\n',
        '[[difference]]\nwhere = "*"\ngone = true\n',
    ],
)
def test_a_difference_that_is_badly_written_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        read_differences(text)


def test_a_pattern_may_stand_alone_or_in_a_list() -> None:
    text = '[[difference]]\nwhere = "a/*"\nreason = "r"\nwas = "x"\nnow = ["y", 1]\n'
    assert read_differences(text) == [Difference(where=["a/*"], reason="r", was=["x"], now=["y", 1])]


def test_answers_are_written_so_that_they_read_back() -> None:
    answers = {"a": {"b": {"n": 1, "x": 0.1}, "c": {}}, "d": "é"}
    assert canonical.loads(written(answers).encode()) == answers
