"""``certkit show``: a passport on one screen, and what is said of its signature."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec import convert, structs

from certkit.cli import emit
from certkit.cli.commands import export as shown
from certkit.cli.views import table
from certkit.ground import canonical
from certkit.passport import keys, words
from certkit.passport.opening import parse
from certkit.passport.statement import Predicate
from tests.support.making import issued, of_bundle, sealed_bundle, trust
from tests.support.running import certkit, program

if TYPE_CHECKING:
    from pathlib import Path

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
    predicate = canonical.loads(issued().payload)["predicate"]
    for said in (
        "SIGNATURE NOT CHECKED",
        issued().passport_id,
        predicate["claim"],
        predicate["agent"]["digest"],
        "Table reading: Tier 3 (decides); bounded reading: no tier.",
        "2026-03-01T12:00:00Z to 2026-05-30T12:00:00Z: 89 days left",
        "Example Lab",
        "relation to the evaluator: same; relation to the developer: not stated",
        "measured, 128,770 records: 25,750 nominal, 103,020 under faults",
        "hb-eval-2026",
        '"bank", "shop"',
        "adversarial 1,000, cascade 1,020, nominal 25,750, stochastic 1,000, tool_failure 100,000",
        "bank, adversarial: failed 50 of 1,000 runs",
        "and 1 more; --json has them",
        *predicate["limitations"],
        *(item["code"] for item in predicate["challenges"]),
        *words.IS_NOT,
    ):
        assert said in text


def rows_of(text: str) -> dict[str, str]:
    """The rows of the table by their ids, which stand behind the full names of most."""
    lines = [line for line in text.splitlines() if re.search("[<≥>≤]", line)]
    named = ((re.search(r"\((\w+)\)", line), line) for line in lines)
    return {
        found[1] if found else "_".join(line.lower().split("  ")[0].split()): line for found, line in named
    }


@pytest.mark.usefixtures("folder")
def test_the_table_shows_what_is_signed() -> None:
    screen = show()
    rows, by_tier = rows_of(screen), screen.partition("posterior by tier: ")[2].splitlines()[0].split(", ")
    for criterion in canonical.loads(issued().payload)["predicate"]["criteria"]:
        line = rows[{"violations": "violations_per_run"}.get(criterion["id"], criterion["id"])]
        cells = {line[33:42].strip(): criterion.get("value")}
        if cells == {"by tier": None}:
            values = (criterion["tiers"][tier]["value"] for tier in "123")
            cells = dict(zip(by_tier, values, strict=True))
        for cell, value in cells.items():
            assert float(cell.lstrip(">")) == pytest.approx(float(value), abs=0.0005)
        assert len(re.findall("✓[✓✗?]", line)) == len(criterion["tiers"])  # met by the table at every tier


@pytest.mark.usefixtures("folder")
def test_with_a_policy_the_verdict_stands_first_and_decides_the_exit_code() -> None:
    text = show("--trust", "trust.json")
    assert text.startswith("VERIFIED, as of 2026-03-02T00:00:00Z: ")
    assert "Not checked: registry, status, evidence, replay" in text
    expired = certkit("show", "passport.json", "--trust", "trust.json", "--at", "2026-06-02")
    assert expired.code == 6
    assert expired.out.startswith("REJECTED at step 6 (validity), as of 2026-06-02T00:00:00Z: ")
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
    (folder / "passport.json").write_bytes(issued(origin="simulated").to_json())
    text = show()
    assert "SPECIMEN (simulated evidence): Agent passport of courier 1.0" in text
    assert "specimen, from simulated evidence: meets" in text


def test_what_was_not_measured_is_neither_zero_nor_passed(folder: Path) -> None:
    (folder / "passport.json").write_bytes(of_bundle(sealed_bundle(folder / "bundle")).to_json())
    rows = rows_of(show())
    payload = parse((folder / "passport.json").read_bytes()).payload
    criteria = canonical.loads(payload)["predicate"]["criteria"]
    unmeasured = [item["id"] for item in criteria if item["state"] == "unmeasured"]
    assert unmeasured
    for name in unmeasured:
        line = rows[{"violations": "violations_per_run"}.get(name, name)]
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
        assert (">.95 +?" in done.out) == is_ascii
        assert "\x1b" not in done.out


def test_hostile_names_move_no_cursor(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert folder.is_dir()
    predicate = issued().unverified_statement().predicate
    name = "x\x1b[2J\u202ey\nTier 9"
    agent = structs.replace(predicate.agent, name=name)
    hostile = structs.replace(predicate, agent=agent, name=name)
    for line in shown._passport(hostile, issued().passport_id, "valid"):
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
    assert "as of" not in certkit("show", folder / "passport.json").out.split("Limitations")[0]


def test_columns_of_the_table_stay_apart() -> None:
    rows = canonical.loads(issued().payload)["predicate"]
    for row in rows["criteria"]:
        for at in row["tiers"].values():
            if at["threshold"] not in (True, False):
                at["threshold"] = "0.000001"
    cells = [line for line in map(str, shown._table(convert(rows, Predicate))) if "1e-06" in line]
    assert cells
    for line in cells:
        assert len(line) <= 80
        assert line.count("1e-06") == len(re.findall(r" \S{1,2}1e-06 \S\S(?= |$)", line))
