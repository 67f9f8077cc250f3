"""What is parsed of a hostile PDF: what is asked for, once, and no more than any PDF needs."""

from __future__ import annotations

import pytest

from certkit.passport import pdf, pdf_reader
from tests.support.pdfs import PASSPORT, attaching, code, packed, stream

INSIDE = [
    (1, b"<< /Type /Catalog /Names << /EmbeddedFiles << /Names [(passport.json) 10 0 R] >> >> >>"),
    (10, b"<< /Type /Filespec /F (passport.json) /EF << /F 11 0 R >> >>"),
]
ATTACHED = {11: stream(PASSPORT)}


def test_objects_in_a_stream_are_read() -> None:
    assert pdf.take(packed(INSIDE, extra=ATTACHED)).passport == PASSPORT
    assert pdf.take(packed([*INSIDE, (50, b"[0]" * 9), (51, b"7")], extra=ATTACHED)).passport == PASSPORT
    assert pdf.take(packed([(50, b"null"), *INSIDE], extra=ATTACHED)).passport == PASSPORT


def test_what_nobody_asks_for_in_an_object_stream_is_not_parsed() -> None:
    broken = b"<< /A [ (never closed"
    for place in range(3):
        inside = [*INSIDE[:place], (50, broken), *INSIDE[place:]]
        assert pdf.take(packed(inside, extra=ATTACHED)).passport == PASSPORT


def test_an_object_in_a_stream_ends_where_the_next_begins() -> None:
    cut = [(1, INSIDE[0][1][:-3]), (50, b">>"), INSIDE[1]]
    assert code(packed(cut, extra=ATTACHED)) == "pdf.unreadable"


def test_objects_are_read_from_no_stream_of_another_kind() -> None:
    made = packed(INSIDE, extra=ATTACHED)
    assert made.count(b"/ObjStm") == 1
    assert code(made.replace(b"/ObjStm", b"/ObjXxx")) == "pdf.unreadable"


@pytest.mark.parametrize("offsets", [[0, 0], [9, 0], [5, 5], [-1, 95], [0, 10**9]])
def test_objects_of_a_stream_that_overlap_or_leave_it_are_refused(offsets: list[int]) -> None:
    assert code(packed(INSIDE, offsets=offsets, extra=ATTACHED)) == "pdf.unreadable"


def test_where_objects_of_a_stream_begin_is_exact() -> None:
    (_, first), (_, second) = INSIDE
    after = len(first) + 1
    assert pdf.take(packed(INSIDE, offsets=[0, after], extra=ATTACHED)).passport == PASSPORT
    assert code(packed(INSIDE, offsets=[-1, after], extra=ATTACHED)) == "pdf.unreadable"
    three = [INSIDE[0], (50, b""), (10, second)]
    assert pdf.take(packed(three, offsets=[0, after, after + 1], extra=ATTACHED)).passport == PASSPORT
    assert code(packed(three, offsets=[0, after, after], extra=ATTACHED)) == "pdf.unreadable"
    blank = [(1, b"\n " + first), (10, b" " + second)]
    assert pdf.take(packed(blank, extra=ATTACHED)).passport == PASSPORT


def test_object_streams_in_a_crowd_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, found in ((1, None), (0, "pdf.unreadable")):
        monkeypatch.setattr(pdf_reader, "MAX_STREAMS", most)
        if found is None:
            assert pdf.take(packed(INSIDE, extra=ATTACHED)).passport == PASSPORT
        else:
            assert code(packed(INSIDE, extra=ATTACHED)) == found


def test_an_object_that_its_stream_holds_twice_or_not_is_refused() -> None:
    twice = packed([*INSIDE, INSIDE[1]], extra=ATTACHED)
    assert code(twice) == "pdf.unreadable"
    other = packed([INSIDE[0], (12, INSIDE[1][1])], extra=ATTACHED)
    assert code(other.replace(b"12 1", b"10 1")) == "pdf.unreadable"  # as the table has it


def test_object_streams_are_bounded() -> None:
    many = [(200 + place, b"0") for place in range(pdf_reader.MAX_IN_STREAM - len(INSIDE))]
    assert pdf.take(packed([*INSIDE, *many], extra=ATTACHED)).passport == PASSPORT
    assert code(packed([*INSIDE, *many, (199, b"0")], extra=ATTACHED)) == "pdf.unreadable"
    filled = (50, b" " * pdf_reader.MAX_STREAM)
    assert code(packed([*INSIDE, filled], extra=ATTACHED)) == "pdf.unreadable"
    long = (1, INSIDE[0][1] + b" " * pdf_reader.MAX_PARSED)
    assert code(packed([long, INSIDE[1]], extra=ATTACHED)) == "pdf.unreadable"


def test_the_parser_is_stopped_wherever_the_work_is() -> None:
    nested = b"[%s]" % (b"[%s]" % (b"[]" * 50_000) * (pdf_reader.MAX_READS // 50_000))
    assert code(attaching(("passport.json", PASSPORT), o4=nested)) == "pdf.unreadable"
    assert code(attaching(("passport.json", PASSPORT), o4=b"%" * pdf_reader.MAX_READS)) == "pdf.unreadable"
