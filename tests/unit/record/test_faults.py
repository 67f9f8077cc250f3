"""Faults as people read them: like ones together, and every kind that there is room for."""

from __future__ import annotations

from certkit.record.faults import SHOWN, Fault, Faults


def test_faults_at_different_fields_are_all_shown() -> None:
    faults = Faults(
        Fault(line=1, pointer=f"/x_{number}", code="record.value", expected="a number", found="a text")
        for number in range(SHOWN + 2)
    )
    assert len([*faults.grouped()]) == SHOWN + 2


def test_kinds_of_faults_beyond_the_limit_are_counted_in_the_total_alone() -> None:
    def fault(kind: int, line: int) -> Fault:
        return Fault(line=line, pointer="", code="record.value", expected=f"kind {kind}", found="x")

    whole = Faults()
    for start in (0, 40):
        part = Faults(fault(kind, line) for kind in range(start, start + 40) for line in (1, 2, 3))
        whole.add(part, lambda item: item)
    assert whole.total == 240
    lines = list(whole.grouped())
    assert lines[0].startswith("3 rows (first line 1, 2, 3)")
    assert (len(lines), lines[-1]) == (SHOWN + 1, "and 210 more")


def test_like_faults_with_many_values_are_counted_together() -> None:
    faults = Faults(
        Fault(line=line, pointer="/x", code="record.value", expected="a time", found=f"{line}")
        for line in range(1, 202)
    )
    [line] = faults.grouped()
    assert line.startswith(
        "201 rows (first line 1, 2, 3) /x: expected a time, found 1, 2, 3, 4, 5 and others"
    )
