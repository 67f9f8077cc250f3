"""Generated tasks: how many, from what they follow, and that the linter finds nothing in them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter

import pytest

from certkit.probes.generate import SeededDraw, generate
from certkit.probes.lint import lint
from certkit.probes.records import Band, Family, Variant, asked, commitment, lines, surface

SEEDS = ("public-1", "a second seed", "ein dritter – ß")
PRINT = """
import sys
from certkit.probes.generate import generate
from certkit.probes.records import lines
sys.stdout.buffer.write(lines(generate(seed="s")))
"""


def test_three_tasks_in_every_cell_and_306_probes() -> None:
    tasks = generate(seed="public-1")
    cells = Counter((task.family, task.variant, task.band) for task in tasks)
    assert cells == {(f, v, b): 3 for f in Family for v in Variant for b in Band}
    assert len(tasks) == 144
    assert sum(len(task.probes) for task in tasks) == 306
    assert {len(task.probes) for task in tasks if task.family is Family.CONSTRAINT} == {3}
    assert len({task.id for task in tasks}) == 144
    assert (
        sum(len({surface(o) for o in q.options}) == task.priors.options for _, task, q in asked(tasks)) == 450
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_linter_finds_nothing_in_what_is_generated(seed: str) -> None:
    assert lint(generate(seed=seed, instances=12)) == []


def test_another_seed_shares_no_task() -> None:
    told = [{(t.instruction, t.turns) for t in generate(seed=seed, instances=10)} for seed in SEEDS]
    assert len(set.union(*told)) == sum(map(len, told)) == 3 * 480


def test_more_instances_leave_the_first_ones_as_they_are() -> None:
    few, many = generate(seed="s", instances=1), generate(seed="s", instances=2)
    assert set(few) == {task for task in many if task.instance == 1}


@pytest.mark.parametrize("hash_seed", ["0", "1", "4711"])
def test_the_same_bytes_for_a_seed_whatever_the_order_of_hashes(hash_seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINT], capture_output=True, check=True, env={"PYTHONHASHSEED": hash_seed}
    )
    assert done.stdout == lines(generate(seed="s"))


def test_twins_differ_in_their_last_turn_alone() -> None:
    for clean, misled in zip(*[iter(generate(seed="public-1"))] * 2, strict=True):
        assert clean.cluster == misled.cluster
        assert clean.turns[:-1] == misled.turns[:-1]
        assert clean.turns[-1] != misled.turns[-1]
        assert (clean.final, clean.probes) == (misled.final, misled.probes)


def test_the_commitment_is_a_digest_of_generator_nul_and_seed() -> None:
    assert commitment("x") == "sha256:" + hashlib.sha256(b"certkit-probes/1\0x").hexdigest()


def test_draws_are_even_and_depend_on_all_that_names_them() -> None:
    draw = SeededDraw("seed", "here")
    drawn = Counter(draw.below(f"n{number}", 7) for number in range(7000))
    assert sum((count - 1000) ** 2 / 1000 for count in drawn.values()) < 22.5  # χ², 6 degrees, p = .001
    values = {
        SeededDraw(*where).below(name, 2**60)
        for where in (("a", "b"), ("a", "c"), ("b", "b"))
        for name in "xy"
    }
    assert len(values) == 6
    assert sorted(draw.some("all", "abcdef", 6)) == list("abcdef")
