"""``certkit compare`` on the command line: the answer first, one document, exit codes, 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import bundles
from tests.support.bundles import run
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An agent of Tier 2 and one of Tier 1, on tasks of the same names."""
    root = tmp_path_factory.mktemp("compare")
    for name, seed, tier in (("a", 1, 2), ("b", 2, 1)):
        arguments = ("--seed", seed, "--runs", 600, "--domains", 5, "--tier-target", tier, "-q")
        assert certkit("simulate", "-o", root / name, *arguments).code == 0
    return root / "a", root / "b"


def test_the_answer_stands_first(pair: tuple[Path, Path]) -> None:
    done = certkit("compare", *pair)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("A succeeds under faults more often than B: ")
    assert "of them on both sides" in done.out.replace("\n", " ")
    assert max(map(len, done.out.splitlines())) <= 80
    assert max(map(len, certkit("compare", *pair, "--paper-tests").out.splitlines())) <= 80


def test_the_document_says_what_the_text_says(pair: tuple[Path, Path]) -> None:
    done = certkit("compare", *pair, "--json")
    document = done.document
    assert (done.code, done.err, document["schema"]) == (0, "", "urn:certkit:comparison:v1")
    assert (document["answer"]["metric"], document["answer"]["better"]) == ("r_op", "a")
    assert document["answer"]["words"] in certkit("compare", *pair).out.replace("\n", " ")
    matched = document["metrics"]["r_op"]["matched"]
    assert matched["a"] - matched["b"] == pytest.approx(matched["difference"], abs=1e-12)
    for side, folder in zip("ab", pair, strict=True):
        assessed = certkit("assess", folder, "--json").document
        assert document[side]["bundle"] == assessed["bundle"]["digest"]
        for name, row in document["metrics"].items():
            value = row[side]["value"]
            assert (None if value is None else round(value, 6), row[side]["n"]) == (
                assessed["metrics"][name]["value"],
                assessed["metrics"][name]["n"],
            )


def test_repetition_changes_nothing(pair: tuple[Path, Path]) -> None:
    once = certkit("compare", *pair, "--json").out
    assert certkit("compare", *pair, "--json").out == once


def test_the_same_bundle_twice_has_no_difference(pair: tuple[Path, Path]) -> None:
    document = certkit("compare", pair[0], pair[0], "--json").document
    for row in document["metrics"].values():
        assert (row["matched"]["difference"], row["matched"]["p"]) == (0.0, 1.0)
        assert row["better"] is None
    assert "A and B are the same bundle" in document["caveats"]
    assert certkit("compare", pair[0], pair[0]).code == 0


def test_quiet_prints_nothing(pair: tuple[Path, Path]) -> None:
    assert certkit("compare", *pair, "-q") == type(certkit())(0, "", "")


def test_without_held_out_faults_there_is_nothing_to_compare(pair: tuple[Path, Path]) -> None:
    done = certkit("compare", *pair, "--novel")
    assert (done.code, done.err) == (4, "")
    assert done.out.startswith(
        "Success under held-out faults cannot be compared: there are no held-out runs.\n"
    )
    document = certkit("compare", *pair, "--novel", "--json").document
    assert document["split"] == "novel_fault"
    assert document["metrics"]["novel_fault"]["a"]["value"] is None


def test_held_out_faults_show_intentional_responses_against_trial_and_error(tmp_path: Path) -> None:
    memory = {"memory_query_offset": 1, "memory_similarity": 0.9, "memory_modified": True}
    fault = {"condition": "tool_failure", "split": "novel_fault"}
    folders = []
    for name, failures in (("a", 2), ("b", 7)):
        runs = [
            run(
                place,
                task_id=f"d/{place}",
                outcome="failure" if place < failures else "success",
                **fault,
                **(memory if place % 2 else memory | {"memory_similarity": 0.1}),
            )
            for place in range(12)
        ]
        folders.append(bundles.of(tmp_path / name, runs))
    document = certkit("compare", *folders, "--novel", "--json").document
    assert document["metrics"]["novel_fault"]["matched"]["tasks"] == [12, 12]


def test_bundles_that_share_nothing_are_exit_code_4(tmp_path: Path) -> None:
    one = bundles.of(tmp_path / "one", [run(0, condition="tool_failure")])
    other = bundles.of(tmp_path / "other", [run(0, domain="e", task_id="e/1", condition="tool_failure")])
    done = certkit("compare", one, other)
    assert (done.code, done.err) == (4, "")
    assert "Nothing can be compared." in done.out.replace("\n", " ")


def test_a_missing_or_refused_bundle_is_an_error(tmp_path: Path, pair: tuple[Path, Path], bad: Path) -> None:
    for folder, code in ((tmp_path / "none", "file.missing"), (bad, "bundle.records-invalid")):
        done = certkit("compare", pair[0], folder, "--json")
        assert (done.code, done.err) == (3, "")
        assert done.document["error"]["code"] == code
        assert certkit("compare", folder, pair[0]).err.startswith(f"error: {folder}: ")


def test_protocols_that_differ_are_told(tmp_path: Path) -> None:
    runs = [run(place, task_id=f"d/{place}", condition="tool_failure") for place in range(3)]
    manifest = {
        **bundles.MANIFEST,
        "protocol": {"origin": "measured", "temperature": 0.5, "success_rule": "\x1b[2J all of it"},
    }
    one = bundles.of(tmp_path / "one", runs)
    other = bundles.write(tmp_path / "other", {"a.jsonl": bundles.lines(runs)}, manifest)
    done = certkit("compare", one, other)
    assert "- temperature: A not stated, B 0.5\n" in done.out
    assert "\x1b" not in done.out


def test_hostile_domain_names_keep_the_table_in_its_columns(tmp_path: Path) -> None:
    domain = "\x1b[2J" + "long " * 20
    runs = [run(i, domain=domain, task_id=f"t/{i}", condition="tool_failure") for i in range(6)]
    one, other = (bundles.of(tmp_path / name, runs) for name in ("one", "other"))
    done = certkit("compare", one, other)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_tests_that_take_runs_for_independent_are_shown_on_demand(pair: tuple[Path, Path]) -> None:
    usual, asked = certkit("compare", *pair).out, certkit("compare", *pair, "--paper-tests").out
    for name in ("  z ", "welch", "cohen d", "ANOVA", "spearman", "kendall"):
        assert name not in usual
        assert name in asked
    assert "treat runs as independent" in " ".join(asked.split())
