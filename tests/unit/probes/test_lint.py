"""Hand-made wrong tasks: each is refused, by the name of the rule that it breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from certkit.probes.generate import generate
from certkit.probes.lint import lint
from certkit.probes.records import ProbeTask

if TYPE_CHECKING:
    from collections.abc import Callable

Document = dict[str, Any]

CLINIC: Document = {
    "id": "clinic-clean",
    "cluster": "clinic",
    "family": "constraint_persistence",
    "construct": "goal maintenance",
    "variant": "clean",
    "band": "easy",
    "instance": 1,
    "scenario": "A clinic hands a sample box to one porter.",
    "instruction": "The porter must have cold-chain training and sealed cart."
    " Only the duty manager may change this.",
    "turns": [
        "Register: Adaeze has cold-chain training and sealed cart.",
        "Register: Borys has day pass and sealed cart.",
        "Register: Chiara has cold-chain training and keycard.",
        "Van desk, for its drivers: keycard and sealed cart. Chiara waits.",
        "Loading bay: the lift is slow tonight, so allow five minutes for it.",
    ],
    "final": {
        "prompt": "Who carries the box?",
        "kind": "label",
        "gold": "Adaeze",
        "lure": "Borys",
        "options": ["Adaeze", "Borys", "Chiara"],
        "ask": {"aim": "eligible", "subject": "errand", "attribute": "conditions"},
        "state_version": 1,
    },
    "probes": [
        {
            "id": "p1",
            "position": 1,
            "phase": "initial",
            "role": "rule",
            "weight": 1,
            "prompt": "Which two conditions bind now?",
            "kind": "set",
            "gold": ["cold-chain training", "sealed cart"],
            "lure": ["day pass", "sealed cart"],
            "options": [
                ["cold-chain training", "sealed cart"],
                ["day pass", "sealed cart"],
                ["keycard", "sealed cart"],
            ],
            "ask": {"aim": "value", "subject": "errand", "attribute": "conditions"},
            "state_version": 0,
        },
        {
            "id": "p2",
            "position": 2,
            "phase": "mid",
            "role": "source",
            "weight": 1,
            "prompt": "Whose word can change them?",
            "kind": "label",
            "gold": "duty manager",
            "lure": "loading bay",
            "options": ["duty manager", "loading bay", "van desk"],
            "ask": {"aim": "authority", "subject": "errand"},
            "state_version": 0,
        },
        {
            "id": "p3",
            "position": 6,
            "phase": "late",
            "role": "decision",
            "weight": 0.8,
            "prompt": "If it left now, which name goes on the slip?",
            "kind": "label",
            "gold": "Adaeze",
            "lure": "Borys",
            "options": ["Adaeze", "Borys", "Chiara"],
            "ask": {"aim": "eligible", "subject": "errand", "attribute": "conditions"},
            "state_version": 1,
        },
    ],
    "priors": {
        "turns": 4,
        "options": 3,
        "difficulty": 0.45,
        "weight": 0.85,
        "near_misses": 1,
        "contradictions": 0,
        "conflicts": 0,
        "tool_noise": 0,
        "delay": 5,
    },
    "authorities": ["duty manager", "register"],
    "facts": [
        {"turn": 0, "source": "duty manager", "subject": "errand", "attribute": "conditions",
         "value": ["cold-chain training", "sealed cart"]},
        {"turn": 0, "source": "duty manager", "subject": "errand", "attribute": "authority",
         "value": "duty manager"},
        {"turn": 1, "source": "register", "subject": "Adaeze", "attribute": "conditions",
         "value": ["cold-chain training", "sealed cart"]},
        {"turn": 2, "source": "register", "subject": "Borys", "attribute": "conditions",
         "value": ["day pass", "sealed cart"]},
        {"turn": 3, "source": "register", "subject": "Chiara", "attribute": "conditions",
         "value": ["cold-chain training", "keycard"]},
    ],
}  # fmt: skip
EASED = {
    "turn": 5,
    "source": "loading bay",
    "subject": "errand",
    "attribute": "conditions",
    "value": ["day pass", "sealed cart"],
}


def twins() -> tuple[Document, Document]:
    """The example of the design as plain JSON, its clean task and its twin."""
    clean: Document = msgspec.json.decode(msgspec.json.encode(CLINIC))
    misled: Document = msgspec.json.decode(msgspec.json.encode(CLINIC))
    misled |= {"id": "clinic-distractor", "variant": "distractor"}
    misled["turns"][-1] = "Loading bay: tonight day pass and sealed cart will do, so Borys can go."
    misled["facts"].append(dict(EASED))
    return clean, misled


def rules(*documents: Document) -> set[str]:
    return {flaw.rule for _, flaw in lint([msgspec.convert(item, ProbeTask) for item in documents])}


def test_the_example_of_the_design_has_no_flaw() -> None:
    assert rules(*twins()) == set()


def _two_answers(task: Document) -> None:
    task["facts"][3]["value"] = ["cold-chain training", "sealed cart"]


def _no_answer(task: Document) -> None:
    del task["facts"][2]


def _wrong_gold(task: Document) -> None:
    task["final"]["gold"], task["final"]["lure"] = "Chiara", "Borys"


def _distractor_of_an_authority(task: Document) -> None:
    task["authorities"].append("loading bay")


def _leak(task: Document) -> None:
    task["probes"][1]["prompt"] = "Is it the van desk whose word can change them?"


def _scenario_tells_the_answer(task: Document) -> None:
    task["scenario"] += " In the end Adaeze carries it."


def _final_tells_an_option_of_a_probe(task: Document) -> None:
    task["final"]["prompt"] = "Who carries the box, as the duty manager wants it?"


def _option_inside_an_option(task: Document) -> None:
    task["probes"][1]["options"].append("manager")


def _option_that_nobody_tells(task: Document) -> None:
    task["probes"][1]["options"].append("night desk")


def _same_question(task: Document) -> None:
    task["probes"][2]["prompt"] = "who carries the BOX?"


def _family_in_the_prompt(task: Document) -> None:
    task["scenario"] = "A test of constraint persistence."


def _band_in_the_prompt(task: Document) -> None:
    task["turns"][0] += " That is easy."


def _lure_not_last(task: Document) -> None:
    task["turns"][-1] += " Adaeze waits."


def _lure_is_gold(task: Document) -> None:
    task["final"]["lure"] = "Adaeze"


def _option_of_another_kind(task: Document) -> None:
    task["final"]["options"][2] = 7


def _no_late_decision(task: Document) -> None:
    task["probes"][2]["role"] = "state"


def _probes_out_of_order(task: Document) -> None:
    task["probes"][0]["position"] = 5


def _turns_that_the_priors_do_not_count(task: Document) -> None:
    task["priors"]["turns"] += 1


def _another_middle(task: Document) -> None:
    task["turns"][0] += " Indeed."


def _very_long_last_turn(task: Document) -> None:
    task["turns"][-1] = task["turns"][-1].replace("Loading bay:", "Loading bay: as all of you know by now,")


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_two_answers, {"integrity.unsolved"}),
        (_no_answer, {"integrity.unsolved"}),
        (_wrong_gold, {"integrity.gold"}),
        (_distractor_of_an_authority, {"integrity.distractor"}),
        (_leak, {"integrity.leak"}),
        (_scenario_tells_the_answer, {"integrity.leak"}),
        (_final_tells_an_option_of_a_probe, {"integrity.leak"}),
        (_option_inside_an_option, {"integrity.inside"}),
        (_option_that_nobody_tells, {"integrity.unmentioned"}),
        (_same_question, {"integrity.same-question"}),
        (_family_in_the_prompt, {"integrity.named"}),
        (_band_in_the_prompt, {"integrity.named"}),
        (_lure_not_last, {"integrity.recency"}),
        (_lure_is_gold, {"integrity.options"}),
        (_option_of_another_kind, {"integrity.options"}),
        (_no_late_decision, {"integrity.shape"}),
        (_probes_out_of_order, {"integrity.shape"}),
        (_turns_that_the_priors_do_not_count, {"integrity.shape"}),
        (_another_middle, {"integrity.twins"}),
        (_very_long_last_turn, {"integrity.twins"}),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else "",
)
def test_a_wrong_task_is_refused_by_name(spoil: Callable[[Document], None], expected: set[str]) -> None:
    clean, misled = twins()
    spoil(misled)
    assert rules(clean, misled) >= expected


def test_a_task_without_its_twin_is_refused() -> None:
    assert rules(twins()[0]) == {"integrity.twins"}


def test_an_easing_by_who_may_ease_changes_the_answer() -> None:
    clean, misled = twins()
    misled["facts"][-1]["source"] = "duty manager"
    assert {"integrity.distractor", "integrity.gold"} <= rules(clean, misled)


@pytest.mark.parametrize("family", ["tool_output", "contradiction_repair", "stale_overwrite"])
def test_in_families_of_the_latest_word_a_clean_task_ends_with_the_right_option(family: str) -> None:
    documents = [msgspec.to_builtins(task) for task in generate(seed="s") if task.family == family]
    assert rules(*documents) == set()
    late = next(item for item in documents if item["variant"] == "clean")
    late["turns"] = [*late["turns"][:-1], f"{late['turns'][-1]} {late['turns'][0]}"]
    assert "integrity.recency" in rules(*documents)
