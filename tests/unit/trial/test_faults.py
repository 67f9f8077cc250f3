"""What is done to each call, for every kind of fault."""

from __future__ import annotations

import pytest

from certkit.trial.faults import ERRORS, LENGTHS, CallPlace, PlannedFault, decide

# Eight calls: of tool a, and of tool b at 3 and 6. The fault begins at call 2, so that its source is a.
TOOLS = "aabaabaa"


def done(condition: str, fault: PlannedFault | None, cascade: str = "simultaneous") -> str:
    """Return what is done to each of the calls."""
    words = []
    for number, tool in enumerate(TOOLS, 1):
        source = None if fault is None or number < fault.onset else TOOLS[fault.onset - 1]
        made = decide(condition, cascade, fault, CallPlace(number, tool, source))  # type: ignore[arg-type]
        if made is None:
            words.append("-")
        elif made.effect == "run_response_lost":
            words.append("L")
        elif made.effect == "not_run":
            words.append("F")
            assert made.error in ERRORS
        else:
            words.append(
                {(True, False): "C", (False, True): "A", (True, True): "B"}[made.contradict, made.attack]
            )
        assert made is None or made.intended == condition
    return "".join(words)


@pytest.mark.parametrize(
    ("condition", "fault", "expected"),
    [
        ("nominal", None, "--------"),
        ("tool_failure", PlannedFault(onset=2), "-F------"),
        ("tool_failure", PlannedFault(onset=1, length=2), "FF------"),
        ("tool_failure", PlannedFault(onset=2, length=2), "-F------"),
        ("context_corruption", PlannedFault(onset=2), "-C-CC-CC"),
        ("stochastic", PlannedFault(onset=2, length=3, blocked=(0, 2)), "-F-F----"),
        ("combined", PlannedFault(onset=2, length=1), "-F-CC-CC"),
        ("combined", PlannedFault(onset=1, length=2), "FF-CC-CC"),
        ("adversarial", PlannedFault(onset=2), "-A------"),
        ("cascade", PlannedFault(onset=2, length=3), "-BCC----"),
        ("x_lost_response", PlannedFault(onset=2), "-L------"),
    ],
)
def test_a_fault_hits_the_calls_of_its_kind(
    condition: str, fault: PlannedFault | None, expected: str
) -> None:
    assert done(condition, fault) == expected


def test_a_sequential_cascade_fails_whatever_tool_is_called() -> None:
    assert done("cascade", PlannedFault(onset=2, length=4), "sequential") == "-FFFF---"


def test_every_condition_has_the_length_of_the_paper() -> None:
    assert dict(LENGTHS) == {
        "tool_failure": (1, 2),
        "context_corruption": (1, 1),
        "stochastic": (2, 3),
        "combined": (1, 2),
        "adversarial": (1, 1),
        "cascade": (3, 4),
        "x_lost_response": (1, 1),
    }
