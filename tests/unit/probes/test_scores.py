"""Scores: the worked example as fractions, the table of reference agents, and an independent computation."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from scipy.stats import t as student

from certkit.ground import canonical
from certkit.probes.agents import reply
from certkit.probes.generate import generate
from certkit.probes.matching import ReplyGrade
from certkit.probes.raters import validity
from certkit.probes.records import (
    Band,
    Family,
    Mode,
    ProbeAnswer,
    ProbeQuestion,
    ProbeTask,
    QuestionKey,
    Variant,
    surface,
)
from certkit.probes.score import context_risk, probe_weight, score, scored
from tests.support import integrity_oracle as oracle
from tests.support.integrity import answer, kept

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = generate(seed="public-1")


def one(family: Family, variant: Variant, band: Band) -> ProbeTask:
    return next(t for t in TASKS if (t.family, t.variant, t.band) == (family, variant, band))


def said(choice: Any, **more: Any) -> str:
    document = {"answer": msgspec.to_builtins(choice), **more}
    return canonical.line(document).decode()


CARRIED = one(Family.CONSTRAINT, Variant.DISTRACTOR, Band.EASY)
REPAIRED = one(Family.REPAIR, Variant.CLEAN, Band.HARD)
NOTES = [
    {"kind": "difficulty", "task_id": CARRIED.id, "rater": "a", "rating": 2},
    {"kind": "difficulty", "task_id": CARRIED.id, "rater": "b", "rating": 3},
    {"kind": "construct", "task_id": CARRIED.id, "probe_id": "p2", "rater": "a", "valid": False,
     "family": "constraint_persistence"},
]  # fmt: skip


def example(key: QuestionKey, _: ProbeTask, question: ProbeQuestion) -> ProbeAnswer:
    texts = {
        QuestionKey(CARRIED.id, "p1"): said(question.gold, confidence=0.9),
        QuestionKey(CARRIED.id, "p2"): said(
            question.options[-1 if question.options[-1] != question.gold else 0], confidence=0.7
        ),
        QuestionKey(REPAIRED.id, "p1"): said(question.gold, confidence=1),
        QuestionKey(REPAIRED.id, "p2"): said(question.gold, confidence=0.5),
    }
    if key == QuestionKey(CARRIED.id, "p3"):
        return answer(key, f"It is {surface(question.gold)}.", confidence=0.8)
    return answer(key, texts.get(key, said(question.gold)))


def test_the_worked_example_of_the_design_as_fractions() -> None:
    data = kept([CARRIED, REPAIRED], say=example, notes=NOTES)
    replies = data.replies()
    task, repaired = scored(CARRIED, replies, data.annotations), scored(REPAIRED, replies)
    assert task.weight == Fraction(85, 100)
    found = [validity(CARRIED, probe, data.annotations) for probe in CARRIED.probes]
    assert found == ["sampled", "needs_review", "sampled"]
    assert [context_risk(probe.position, 6, probe.phase, CARRIED.variant) for probe in CARRIED.probes] == [
        Fraction(3275, 10000),
        Fraction(525, 1000),
        Fraction(9475, 10000),
    ]
    weights = [
        probe_weight(probe.weight, task.weight, nu) for probe, nu in zip(CARRIED.probes, found, strict=True)
    ]
    assert weights == [
        Fraction(8075, 10000),
        Fraction(6375, 10000),
        Fraction(646, 1000),
    ]
    assert task.scores["core"] == Fraction(452921, 669120)
    assert repaired.weight == Fraction(12535, 10000)
    assert float(repaired.scores["core"] or 0) == pytest.approx(0.920135, abs=5e-7)
    alone = [
        score(kept([item], say=example, notes=NOTES if item is CARRIED else ()))
        for item in (CARRIED, REPAIRED)
    ]
    assert [float(item.full.value or 0) for item in alone] == pytest.approx([0.651552, 0.843470], abs=5e-7)
    both = score(data)
    assert float(both.core.value or 0) == pytest.approx(0.821843, abs=5e-7)
    assert float(both.full.value or 0) == pytest.approx(0.765918, abs=5e-7)


def agent(name: str) -> Callable[[QuestionKey, ProbeTask, ProbeQuestion], ProbeAnswer]:
    return lambda key, task, question: answer(key, reply(name, key, task, question, Mode.JSON))


@pytest.mark.parametrize("seed", ["public-1", "fresh one", "fresh two"])
@pytest.mark.parametrize(
    ("name", "successes", "matched", "core"),
    [
        ("oracle", 144, 306, 0.915366),
        ("prose", 144, 306, 0.841837),
        ("distractor", 72, 153, 0.562425),
        ("recency", 27, 54, 0.341837),
        ("no-memory", 0, 0, 0.209484),
    ],
)
def test_reference_agents_score_the_same_on_every_seed(
    seed: str, name: str, successes: int, matched: int, core: float
) -> None:
    scored = score(kept(seed=seed, say=agent(name)))
    assert (scored.state, scored.success.successes, scored.accuracy.matched) == (
        "measured",
        successes,
        matched,
    )
    assert float(scored.core.value or 0) == pytest.approx(core, abs=5e-7)
    exact = {
        "oracle": scored.core.ceiling,
        "prose": scored.core.ceiling - Fraction(5, 68),
        "no-memory": scored.core.floor + Fraction(5, 34),
    }
    assert scored.core.value == exact.get(name, scored.core.value)


@pytest.mark.parametrize("seed", ["public-1", "fresh one", "fresh two"])
def test_random_options_are_right_as_often_as_chance_says(seed: str) -> None:
    scored = score(kept(seed=seed, say=agent("random")))
    assert abs(scored.success.successes - 37.6) < 20.9
    assert abs(scored.accuracy.matched - 79.9) < 30.5


class Dice:
    """Seeded draws."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def randrange(self, low: int, high: int | None = None) -> int:
        return int(self.rng.integers(low, high))

    def random(self) -> float:
        return float(self.rng.random())

    def choice(self, items: Any) -> Any:
        return items[self.randrange(len(items))]

    def shuffled(self, items: Any) -> list[Any]:
        return [items[place] for place in self.rng.permutation(len(items))]


def noise(rng: Dice, *, supplied: bool) -> Callable[[QuestionKey, ProbeTask, ProbeQuestion], ProbeAnswer]:
    """An agent that says anything, with shares in thousandths."""

    def say(key: QuestionKey, _: ProbeTask, question: ProbeQuestion) -> ProbeAnswer:
        chosen = rng.choice(question.options)

        def share() -> float:
            return rng.randrange(1001) / 1000

        forms = [
            said(chosen, confidence=share()),
            surface(chosen),
            f"{surface(chosen)} or {surface(rng.choice(question.options))}",
            said("none of them"),
        ]
        names = ("success_probability", "retrieval_risk", "neural_conflict") if supplied else ()
        return answer(key, rng.choice(forms), confidence=share(), **{name: share() for name in names})

    return say


def notes(rng: Dice) -> list[dict[str, Any]]:
    made: dict[tuple[str, ...], dict[str, Any]] = {}
    for _ in range(rng.randrange(400)):
        task = rng.choice(TASKS)
        place = {"task_id": task.id} | (
            {"probe_id": rng.choice(task.probes).id} if rng.random() < 0.5 else {}
        )
        kind = rng.choice(["difficulty", "construct"])
        note = {"kind": kind, "rater": rng.choice("abc"), **place}
        note |= (
            {"rating": rng.randrange(1, 6)}
            if kind == "difficulty"
            else {"family": task.family.value if rng.random() < 0.8 else rng.choice(list(Family)).value}
        )
        note |= {"valid": rng.random() < 0.7} if rng.random() < 0.2 else {}
        note |= {"adjudicated": rng.random() < 0.5} if rng.random() < 0.3 else {}
        made[kind, task.id, str(place.get("probe_id")), str(note["rater"])] = note
    return list(made.values())


@pytest.mark.parametrize("number", range(6))
def test_scores_equal_an_independent_computation(number: int) -> None:
    rng = Dice(number)
    said_of_them, supplied = notes(rng), number % 2 == 0
    data = kept(TASKS, say=noise(rng, supplied=supplied), notes=said_of_them)
    replies = data.replies()
    scored = score(data)
    rows = [msgspec.to_builtins(task) for task in TASKS]
    seen: dict[str, dict[str, Any]] = {task.id: {} for task in TASKS}
    for (name, probe), read in replies.items():
        if probe is not None:
            seen[name][probe] = {
                "match": read.verdict is ReplyGrade.MATCH,
                "breach": read.breach,
                "several": read.competing,
                **{
                    share: (getattr(read, share) or 0) / 1000
                    for share in ("confidence", "success_probability", "retrieval_risk", "neural_conflict")
                },
            }
    core = oracle.overall(rows, seen, "core", said_of_them)
    assert float(scored.core.value or 0) == pytest.approx(core, abs=2e-6)
    assert float(scored.full.value or 0) == pytest.approx(
        oracle.overall(rows, seen, "full", said_of_them), abs=2e-6
    )
    if supplied:
        neural = oracle.overall(rows, seen, "neural", said_of_them)
        assert float(scored.neural.value or 0) == pytest.approx(neural, abs=2e-6)
    else:
        assert scored.neural.value is None
    half = oracle.half_width(rows, seen, said_of_them, float(student.ppf(0.975, 71)))
    assert scored.core.interval == pytest.approx((core - half, core + half), abs=2e-6)
    halves = [[row for row in rows if row["variant"] == variant] for variant in ("clean", "distractor")]
    clean, misled = (oracle.overall(half, seen, "core", said_of_them) for half in halves)
    assert float(scored.distractor_gap.value or 0) == pytest.approx(clean - misled, abs=2e-6)


def test_another_order_of_lines_changes_nothing() -> None:
    rng = Dice(5)
    data = kept(TASKS, say=noise(rng, supplied=True), notes=notes(rng))
    answers = rng.shuffled(list(data.answers.items()))
    turned = msgspec.structs.replace(
        data, answers=dict(answers), annotations=tuple(rng.shuffled(data.annotations))
    )
    assert score(turned).to_dict() == score(data).to_dict()


def test_a_missing_reply_leaves_no_value_but_both_ends() -> None:
    full, gone = agent("oracle"), QuestionKey(TASKS[0].id, "p1")
    scored = score(kept(say=lambda key, task, question: None if key == gone else full(key, task, question)))
    assert scored.state == "partial"
    assert scored.core.value is None
    assert scored.core.low < scored.core.high == scored.core.ceiling
    assert (scored.accuracy.matched, scored.accuracy.unanswered) == (305, 1)
    assert scored.success.weighted == 1


def test_no_reply_at_all_is_unmeasured() -> None:
    scored = score(kept(say=lambda *_: None))
    assert (scored.state, scored.core.value) == ("unmeasured", None)
    assert (scored.core.low, scored.core.high) == (scored.core.floor, scored.core.ceiling)


def test_an_unclear_reply_is_wrong_and_at_best_right() -> None:
    def say(key: QuestionKey, _: ProbeTask, question: ProbeQuestion) -> ProbeAnswer:
        return answer(key, said(f"{surface(question.gold)}, {surface(question.lure)}"))

    scored = score(kept(say=say))
    assert (scored.accuracy.matched, scored.accuracy.unclear) == (0, 306)
    assert scored.core.value == scored.core.low
    assert scored.core.high == scored.core.ceiling - Fraction(5, 68)


def test_a_success_without_half_of_its_probes_is_hollow() -> None:
    def say(key: QuestionKey, task: ProbeTask, question: ProbeQuestion) -> ProbeAnswer:
        lucky = task.family is Family.CONSTRAINT and key.probe not in {None, "p3"}
        return answer(key, said(question.lure if lucky else question.gold))

    scored = score(kept(say=say))
    hollow = {task.id for task in TASKS if task.family is Family.CONSTRAINT}
    assert set(scored.hollow.tasks) == hollow
    assert scored.success.successes == 144
    assert scored.repair_precision.value == 1


def test_raters_agree_as_the_agreement_module_says() -> None:
    ratings = [(1, 1), (2, 3), (3, 3), (4, 4), (5, 4), (2, 2)]
    rated = [
        {"kind": "difficulty", "task_id": task.id, "rater": rater, "rating": rating}
        for task, pair in zip(TASKS, ratings, strict=False)
        for rater, rating in zip("ab", pair, strict=True)
    ]
    difficulty = score(kept(say=lambda *_: None, notes=rated)).raters.difficulty
    (pair,) = difficulty.pairs
    # 1 - observed/expected disagreement, both squared
    expected = 1 - sum((a - b) ** 2 for a, b in ratings) * 6 / sum(
        (a - b) ** 2 for a, _ in ratings for _, b in ratings
    )
    assert pair.quadratic == pytest.approx(expected)
    assert (difficulty.tasks, difficulty.ratings) == (6, 12)
    assert difficulty.bands == {Band.EASY: Fraction(34, 60), Band.MEDIUM: None, Band.HARD: None}
    assert difficulty.rising is None


def test_an_audit_mends_the_core() -> None:
    wrong = next(task for task in TASKS if task.family is Family.BINDING)

    def say(key: QuestionKey, _: ProbeTask, question: ProbeQuestion) -> ProbeAnswer:
        missed = key == (wrong.id, "p1")
        return answer(key, said("the place of the other one" if missed else question.gold))

    audited = [
        {"kind": "audit", "task_id": wrong.id, "probe_id": "p1", "rater": rater, "verdict": "match"}
        for rater in "ab"
    ] + [{"kind": "audit", "task_id": TASKS[0].id, "probe_id": "p1", "rater": "a", "verdict": "match"}]
    scored = score(kept(say=say, notes=audited))
    assert scored.audit is not None
    assert (scored.audit.confirmed, scored.audit.overturned, scored.audit.unclear) == (1, 1, 0)
    assert [scored.audit.false_negative, scored.audit.false_positive] == [Fraction(1), Fraction(0)]
    assert scored.audit.core == scored.core.ceiling
    assert scored.core.value is not None
    assert scored.core.value < scored.core.ceiling


def test_people_who_recognise_families() -> None:
    rows = [
        {"kind": "construct", "task_id": task.id, "probe_id": "p1", "rater": rater,
         "family": "tool_output" if rater == "b" and task is TASKS[0] else task.family.value}
        for task in TASKS[::6]
        for rater in "ab"
    ]  # fmt: skip
    construct = score(kept(say=lambda *_: None, notes=rows)).raters.construct
    assert [item.accuracy for item in construct.raters] == [1, Fraction(23, 24)]
    assert construct.raters[1].macro == (7 + Fraction(2, 3)) / 8
    assert construct.confusions == ((Family.CONSTRAINT, Family.TOOL, 1),)


@pytest.mark.parametrize(("second", "unclear"), [("no", 1), ("match", 0)])
def test_those_who_adjudicate_differently_leave_a_reply_unclear(second: str, unclear: int) -> None:
    notes = [
        {"kind": "audit", "task_id": TASKS[0].id, "probe_id": "p1", "rater": rater, "verdict": verdict}
        | ({} if rater == "c" else {"adjudicated": True})
        for rater, verdict in (("a", "match"), ("b", second), ("c", "no"))
    ]
    scored = score(kept(say=lambda key, _, question: answer(key, said(question.gold)), notes=notes))
    assert scored.audit is not None
    assert (scored.audit.confirmed, scored.audit.unclear) == (1 - unclear, unclear)
