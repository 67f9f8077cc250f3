"""``certkit plan`` on the command line: screen, document, the correlation of a bundle, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import Exit
from tests.support.running import certkit, program

if TYPE_CHECKING:
    from pathlib import Path

TABLE = ("plan", "--tier", "2")
LIMITS = (*TABLE, "--reading", "bounded", "--margin", "10")


def test_the_screen_says_first_how_many_tasks_the_tier_takes() -> None:
    done = certkit(*LIMITS)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line != line.rstrip()] == []
    document = certkit(*LIMITS, "--json").document
    schedule = document["schedule"]
    answer = " ".join(lines[: lines.index("")])
    assert answer.startswith(
        f"With {schedule['tasks']} tasks (5 domains x {schedule['tasks_per_domain']}) and {schedule['runs']}"
        f" runs, Tier 2 (Production + oversight) of hb-eval-2026 is met with {int(100 * document['power'])} %"
        " probability if the agent is 10 points above every row. "
    )
    assert f"({document['driver']}) asks for most." in answer
    start = next(number for number, line in enumerate(lines) if line.startswith("criterion"))
    assert lines[start].split() == ["criterion", "asked", "expected", "least", "tasks", "power"]
    powers = [int(line.split()[-2]) for line in lines[start + 1 : lines.index("", start)]]
    assert powers == sorted(powers)
    assert min(powers) >= 80
    assert schedule["runs"] == 5 * sum(schedule["per_domain"].values())
    assert "csi: provisional in the paper: it decides no tier (--strict counts it)" in done.out
    assert "success is 92.5 % under every fault and in every domain" in " ".join(done.out.split())


def test_what_is_expected_stands_in_the_sentence() -> None:
    done = certkit(*TABLE, "--expect", "r_op=.9,ti=4.5", "--expect", "cascade_penalty=8")
    answer = " ".join(done.out.split("\n\n")[0].split())
    assert "if cascade_penalty is 8.0 points, r_op is 90.0 %, ti is 4.50, and the agent is 5 points" in answer
    assert "with confidence limits (--reading bounded) it takes more" in answer
    assert "under every fault" not in done.out


def test_the_correlation_is_measured_in_a_bundle(tmp_path: Path) -> None:
    evidence = tmp_path / "bundle"
    made = certkit(
        *("simulate", "-o", evidence, "--seed", 1, "--runs", 1000, "--domains", 5, "--tier-target", 2)
    )
    assert made.code == 0
    measured = certkit("assess", evidence, "--json").document["variation"]
    document = certkit(*TABLE, "--bundle", evidence, "--json").document
    assert document["design"]["icc"] == pytest.approx(measured["icc"])
    assert document["design"]["icc_tasks"] == measured["tasks"]
    screen = " ".join(certkit(*TABLE, "--bundle", evidence).out.split())
    assert f"correlate by {measured['icc']:.2f}, measured in {measured['tasks']} tasks." in screen
    both = certkit(*TABLE, "--bundle", evidence, "--icc", ".2")
    assert (both.code, "--icc cannot be used together with --bundle" in both.err) == (Exit.USAGE, True)


def test_a_terminal_without_blocks_gets_letters() -> None:
    done = program(*TABLE, PYTHONIOENCODING="ascii")
    assert (done.code, done.err) == (0, "")
    assert "Probability of the tier by tasks:" in done.out
    assert done.out.isascii()


def test_no_number_of_tasks_is_a_negative_answer() -> None:
    done = certkit(*TABLE, "--expect", "r_op=.78,frr=.75")
    assert (done.code, done.out) == (Exit.NEGATIVE, "")
    assert done.err.startswith(
        "error: no number of tasks is enough: r_op at Tier 2: 78.0 % expected, > 80 % asked;"
    )
    as_json = certkit(*TABLE, "--expect", "r_op=.78", "--json")
    assert (as_json.code, as_json.document["error"]["code"]) == (Exit.NEGATIVE, "plan.impossible")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tier", 2, "--expect", "rop=.9"), "nothing can be expected of 'rop' here"),
        (("--tier", 2, "--expect", "r_op"), "expectation 'r_op' is not METRIC=VALUE"),
        (("--tier", 2, "--expect", "r_op=.9,r_op=.8"), "two expectations of r_op"),
        (("--expect", "r_op=.9"), "Missing option '--tier'"),
        (("--tier", 4), "tier 4 is not in profile hb-eval-2026, which has 1 to 3"),
        (("--tier", 2, "--icc", 1), "'--icc'"),
        (("--tier", 2, "--reading", "tea"), "'--reading'"),
        (("--tier", 2, "-p", "nonsense"), "nonsense"),
    ],
)
def test_a_wrong_command_line(arguments: tuple[object, ...], message: str) -> None:
    done = certkit("plan", *arguments)
    assert (done.code, done.out) == (Exit.USAGE, "")
    assert message in done.err
