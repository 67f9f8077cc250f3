"""``certkit show``: a passport on one screen, and what is said of its signature."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from certkit.assessment.assessment import Severity
from certkit.cli import emit
from certkit.cli.commands import show as shown
from certkit.cli.views import table
from certkit.ground import canonical
from certkit.passport import keys, words
from certkit.passport.passport import read_passport
from tests.support.passports import NOW, evaluation, issued, of_bundle, sealed_bundle, trust
from tests.support.running import certkit, program

if TYPE_CHECKING:
    from certkit.assessment.assessment import Row

AT = "2026-03-02"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "passport.json").write_bytes(issued().to_json())
    (tmp_path / "trust.json").write_bytes(trust().to_json())
    (tmp_path / "other.json").write_bytes(trust(keys.generate("p256")).to_json())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def show(*more: object, at: str = AT) -> str:
    done = certkit("show", "passport.json", "--at", at, *more)
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.mark.usefixtures("folder")
def test_one_screen_tells_everything_that_matters() -> None:
    text = " ".join(show().split())
    predicate = issued().unverified_statement().predicate
    for said in (
        "SIGNATURE NOT CHECKED",
        "Tier 2 of hb-eval-2026 by averages; Tier 1 with confidence limits",
        predicate.facts.agent.digest,
        predicate.facts.digest,
        predicate.profile.digest,
        "On averages: Tier 2 (this decides). With 95 % confidence: Tier 1.",
        "2026-03-01T12:00:00Z to 2026-05-30T12:00:00Z: 89 days left",
        '"Example Lab"',
        "relation to the evaluator: same; relation to the developer: not stated",
        "evidence measured, sealed",
        "300 runs: 60 normal, 240 under faults, 2 domains",
        '"banking", "healthcare"',
        *(item.code for item in predicate.assessment.findings if item.severity is not Severity.INFO),
        *words.IS_NOT,
    ):
        assert said in text


def rows_of(text: str) -> list[str]:
    """The lines of the table, one for each row of the profile in its order."""
    return text.partition("\ncriterion ")[2].partition("\n")[2].partition("\n✓ met")[0].splitlines()


def signed_rows() -> list[list[Row]]:
    """The signed rows of the passport in the working directory: for each criterion its tiers."""
    predicate = read_passport(Path("passport.json").read_bytes()).unverified_statement().predicate
    rows = predicate.assessment.criteria
    return [[row for row in rows if row.id == item.id] for item in predicate.profile.criteria]


@pytest.mark.usefixtures("folder")
def test_the_table_shows_what_is_signed() -> None:
    marks = {"met": "✓", "not_met": "✗", "insufficient": "\\?", "not_tested": "–", "not_applicable": ""}
    screen = show()
    lines, signed = rows_of(screen), signed_rows()
    assert len(lines) == len(signed)
    for line, rows in zip(lines, signed, strict=True):
        cell, values = line[28:36].strip(), {row.tier: row.value for row in rows}
        if cell == "by tier":
            [each] = [text for text in screen.splitlines() if text.startswith("confidence in success: ")]
            found = re.findall(r"[<>]?(\S+) for ((?:(?:, | and )?Tier \d)+)", each)
            cells = {int(tier): value for value, tiers in found for tier in re.findall(r"\d", tiers)}
        else:
            cells = dict.fromkeys(values, cell.lstrip("<>"))
        for tier, value in values.items():
            assert float(cells[tier]) == pytest.approx(value, abs=0.0005), line
        pairs = ((row.status, row.bounded.status if row.bounded else "not_applicable") for row in rows)
        wanted = (f"{marks[first]} {marks[second]}".rstrip() for first, second in pairs)
        assert re.search(".*".join(wanted), line)


@pytest.mark.usefixtures("folder")
def test_with_a_policy_the_verdict_stands_first_and_decides_the_exit_code() -> None:
    text = show("--trust", "trust.json")
    assert text.startswith("✓ VERIFIED as of 2026-03-02T00:00:00Z")
    assert "Not checked: evidence (--bundle DIR), replay (--bundle DIR --replay)" in " ".join(text.split())
    expired = certkit("show", "passport.json", "--trust", "trust.json", "--at", "2026-06-02")
    assert expired.code == 6
    assert expired.out.startswith("✗ REJECTED as of 2026-06-02T00:00:00Z at step 7 (validity): ")
    assert "EXPIRED 2 days ago" in expired.out


@pytest.mark.usefixtures("folder")
def test_what_no_trusted_key_signed_is_not_repeated_under_a_policy() -> None:
    for more in ((), ("--json",)):
        done = certkit("show", "passport.json", "--trust", "other.json", "--at", AT, *more)
        assert done.code == 8
        assert "courier" not in done.out
    assert done.document == {
        "schema": "urn:certkit:show:v1",
        "passport_id": None,
        "verification": done.document["verification"],
        "statement": None,
    }
    assert done.document["verification"]["verdict"] == "rejected"


@pytest.mark.usefixtures("folder")
def test_json_is_the_signed_statement() -> None:
    document = certkit("show", "passport.json", "--json").document
    assert document == {
        "schema": "urn:certkit:show:v1",
        "passport_id": issued().passport_id,
        "verification": None,
        "statement": canonical.loads(issued().payload),
    }
    checked = certkit("show", "passport.json", "--trust", "trust.json", "--at", AT, "--json").document
    verification = checked["verification"]
    assert (verification["verdict"], verification["at"]) == ("verified", "2026-03-02T00:00:00Z")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("2026-03-01T11:59:59Z", "NOT YET VALID"),
        ("2026-05-29T12:00:00Z", "1 day left"),
        ("2026-05-30T12:00:00Z", "0 days left"),
        ("2026-05-30T12:00:01Z", "EXPIRED 0 days ago"),
    ],
)
def test_validity_is_told_as_of_the_time_asked_for(at: str, said: str) -> None:
    assert said in " ".join(show(at=at).split())


def test_a_specimen_says_so(folder: Path) -> None:
    (folder / "passport.json").write_bytes(issued(evaluation(origin="simulated")).to_json())
    text = " ".join(show().split())
    assert "(specimen, simulated evidence)" in text
    assert "SIMULATED: this evidence says nothing about a real agent." in text


def test_what_was_not_measured_is_neither_zero_nor_passed(folder: Path) -> None:
    (folder / "passport.json").write_bytes(of_bundle(sealed_bundle(folder / "bundle")).to_json())
    lines = rows_of(show())
    unmeasured = [
        line for line, rows in zip(lines, signed_rows(), strict=True) if rows[0].status == "not_tested"
    ]
    assert unmeasured
    for line in unmeasured:
        assert re.split(" {2,}", line)[1] == "–"
        assert "✓" not in line


def test_a_file_that_is_no_passport_says_what_it_is(folder: Path) -> None:
    for name, data, code in (
        ("a.pdf", b"%PDF-1.7 ...", "pdf.no-passport"),
        ("a.json", b"{}", "passport.form"),
        ("a.txt", b"hello", "json.syntax"),
    ):
        (folder / name).write_bytes(data)
        done = certkit("show", name, "--json")
        assert (done.code, done.document["error"]["code"]) == (3, code)
    assert certkit("show", "missing.json").code == 3


@pytest.mark.parametrize("more", [(), ("--trust", "trust.json")])
def test_every_line_fits_80_columns_in_any_encoding(folder: Path, more: tuple[str, ...]) -> None:
    options = [folder / item if item.endswith(".json") else item for item in more]
    arguments = ("show", folder / "passport.json", "--at", AT, *options)
    for done, is_ascii in (
        (certkit(*arguments), False),
        (program(*arguments, PYTHONIOENCODING="ascii"), True),
    ):
        assert done.code == 0
        assert is_ascii or max(map(len, done.out.splitlines())) <= 80
        assert (">.95 x ?" in done.out) == is_ascii
        assert "\x1b" not in done.out


def test_hostile_names_move_no_cursor(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert folder.is_dir()
    predicate = issued().unverified_statement().predicate
    facts = predicate.facts
    agent = structs.replace(facts.agent, name="x\x1b[2J\u202ey\nTier 9")
    hostile = structs.replace(predicate, facts=structs.replace(facts, agent=agent))
    for line in shown._screen(None, hostile, NOW, dated=True, in_pdf=False):
        emit._print(line)
    text = capfdbinary.readouterr().out.decode()
    assert re.search("[\x00-\x09\x0b-\x1f\u202e]", text) is None
    assert not [line for line in text.splitlines() if line.startswith("Tier 9")]


def test_a_number_is_rounded_to_its_column() -> None:
    assert [table.digits(value) for value in (None, True, 0.9999999, -12.345678, 4)] == (
        ["–", "yes", "1.000", "-12.3", "4.000"]
    )
    assert table.digits(0.9999999, probability=True) == ">.9999"


def test_a_time_asked_for_is_told_without_a_policy_too(folder: Path) -> None:
    assert "89 days left as of 2026-03-02T00:00:00Z" in " ".join(show().split())
    assert "as of" not in certkit("show", folder / "passport.json").out


def test_columns_of_the_table_stay_apart() -> None:
    asked = [table.Asked(">=", 1e-06, "met", "not_met")] * 3
    rows = [table.Cells("violations", "violations", "0.079", "0.081", 300, asked)]
    line = str([*table.table(rows, range(1, 4), reading="table", limit_tier=1, confidence=0.95)][2])
    assert len(line) <= 80
    assert len(re.findall(r" ≥1e-06 ✓ ✗(?= |$)", line)) == 3
