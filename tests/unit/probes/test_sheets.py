"""Sheets: blinded and shuffled on the way out, strict on the way in."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from certkit.ground.errors import InputError
from certkit.probes.agents import Asking, told
from certkit.probes.reading import read
from certkit.probes.records import Family, asked
from certkit.probes.running import generate_probes, run_probes
from certkit.probes.sheets import COLUMNS, sheet, take
from tests.support.running import certkit

if TYPE_CHECKING:
    from pathlib import Path

    from certkit.probes.sheets import Kind


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sheets")
    generate_probes(root / "tasks", seed="s")
    run_probes(root / "tasks", root / "b", Asking("reference:distractor"))
    return root / "b"


def table(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))


@pytest.mark.parametrize(("kind", "rows"), [("difficulty", 144), ("construct", 48), ("audit", 48)])
def test_a_sheet_tells_neither_task_nor_family_nor_verdict(kind: Kind, rows: int, bundle: Path) -> None:
    kept = read(bundle)
    made, count = sheet(kept, kind)
    assert count == rows
    head, *body = table(made)
    assert tuple(head) == COLUMNS[kind]
    assert len(body) == rows
    text = made.decode()
    assert not any(task.id in text or task.family in text for task in kept.tasks)
    names = [row[0] for row in body]
    assert names == sorted(names)
    assert {cell for row in body for cell in row[len(head) - (1 if kind == "audit" else 2) :]} == {""}


def test_an_audit_is_drawn_equally_by_verdict_and_family_and_tells_no_right_option(bundle: Path) -> None:
    kept = read(bundle)
    head, *body = table(sheet(kept, "audit")[0])
    assert head == ["row", "question", "reply", "verdict"]
    stream = io.StringIO()
    csv.writer(stream).writerows([head, *([*row[:3], "match"] for row in body)])
    taken = take(kept, "audit", stream.getvalue().encode(), rater="a", adjudicated=False, where="x.csv")
    replies = kept.replies()
    families = {task.id: task.family for task in kept.tasks}
    drawn = Counter((replies[item.key].verdict.value, families[item.key.task]) for item in taken)
    assert drawn == {(verdict, family): 3 for verdict in ("match", "no") for family in Family}
    asked_of = {key: (task, question) for key, task, question in asked(kept.tasks)}
    for row, item in zip(body, taken, strict=True):
        task, question = asked_of[item.key]
        probe = () if item.key.probe is None else (question.prompt,)
        assert row[1] == "\n".join((told(task), *probe))


def test_a_filled_sheet_comes_back_as_annotations(bundle: Path, tmp_path: Path) -> None:
    copy, path = shutil.copytree(bundle, tmp_path / "b"), tmp_path / "x.csv"
    for rater, rating in (("a", "4"), ("b", "5")):
        assert certkit("probes", "sheet", str(copy), "--kind", "difficulty", "-o", str(path)).code == 0
        head, *body = table(path.read_bytes())
        filled = [
            [*row[:2], rating if number < 10 else "", "yes" if number < 10 else ""]
            for number, row in enumerate(body)
        ]
        stream = io.StringIO()
        csv.writer(stream).writerows([head, *filled])
        path.write_text("\ufeff" + stream.getvalue(), newline="")
        options = ("--kind", "difficulty", "--take", str(path), "--rater", rater)
        done = certkit("probes", "sheet", str(copy), *options, "--json")
        assert (done.code, done.document["rows"]) == (0, 10)
        assert (
            certkit("probes", "sheet", str(copy), *options, "--json").document["error"]["code"]
            == "integrity.field"
        )
        path.unlink()
    scored = certkit("probes", "score", str(copy), "--json").document
    assert (scored["raters"]["difficulty"]["tasks"], scored["raters"]["difficulty"]["ratings"]) == (10, 20)
    assert scored["raters"]["difficulty"]["pairs"][0]["n"] == 10


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("difficulty", lambda rows: rows[1].__setitem__(2, "6")),
        ("difficulty", lambda rows: rows[1].__setitem__(2, "3.5")),
        ("difficulty", lambda rows: rows[1].__setitem__(3, "perhaps")),
        ("construct", lambda rows: rows[1].__setitem__(2, "memory")),
        ("construct", lambda rows: rows[1].__setitem__(3, "no")),
        ("audit", lambda rows: rows[1].__setitem__(3, "right")),
        ("audit", lambda rows: rows[1].__setitem__(0, "000000000000")),
        ("audit", lambda rows: rows[0].__setitem__(0, "id")),
        ("audit", lambda rows: rows[1].append("more")),
    ],
)
def test_a_wrong_sheet_is_refused_with_its_row(kind: Kind, spoil: object, bundle: Path) -> None:
    kept = read(bundle)
    rows = table(sheet(kept, kind)[0])
    spoil(rows)  # type: ignore[operator]
    stream = io.StringIO()
    csv.writer(stream).writerows(rows)
    with pytest.raises(InputError) as caught:
        take(kept, kind, stream.getvalue().encode(), rater="a", adjudicated=False, where="x.csv")
    assert caught.value.code == "integrity.field"
    assert str(caught.value).startswith("x.csv")


def test_every_wrong_row_of_a_sheet_is_named(bundle: Path) -> None:
    kept = read(bundle)
    rows = table(sheet(kept, "difficulty")[0])
    for number, (rating, valid) in enumerate([("6", "yes"), ("3", "yes"), ("3", "perhaps")], 1):
        rows[number][-2:] = [rating, valid]
    stream = io.StringIO()
    csv.writer(stream).writerows([*rows, rows[2]])
    with pytest.raises(InputError) as caught:
        take(kept, "difficulty", stream.getvalue().encode(), rater="a", adjudicated=False, where="x.csv")
    named = re.findall(r"row (\d+):", str(caught.value))
    assert named == ["2", "4", str(len(rows) + 1)]


def test_an_audit_of_one_run_is_no_audit_of_another(bundle: Path, tmp_path: Path) -> None:
    run_probes(bundle, tmp_path / "other", Asking("reference:oracle"))
    rows = table(sheet(read(tmp_path / "other"), "audit")[0])
    stream = io.StringIO()
    csv.writer(stream).writerows([rows[0], *([*row[:3], "match"] for row in rows[1:])])
    with pytest.raises(InputError, match="is no row of this sheet"):
        take(read(bundle), "audit", stream.getvalue().encode(), rater="a", adjudicated=False, where="x.csv")


@pytest.mark.parametrize(("kind", "word"), [("construct", ", ".join(Family)), ("audit", "unclear")])
def test_whoever_gets_a_sheet_is_told_what_it_may_hold(
    kind: Kind, word: str, bundle: Path, tmp_path: Path
) -> None:
    done = certkit("probes", "sheet", bundle, "--kind", kind, "-o", tmp_path / "x.csv")
    assert word in done.err


def test_a_reply_is_no_formula_of_a_spreadsheet(bundle: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(bundle, tmp_path / "b")
    path = copy / "integrity" / "answers.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"text":"{', b'"text":"=1+{'))
    assert all(row[2].startswith("'=1+") for row in table(sheet(read(copy), "audit")[0])[1:])
